#!/usr/bin/env python3
"""Runs small jobs that together launch every kernel of the program, under the four tools of compute-sanitizer: memcheck
(with its leak check), racecheck, initcheck and synccheck. Prints a table of findings and the kernels that no job
launched, and exits 1 if there is a finding or a kernel of the library was left out.

    check-gpu.py [--tools memcheck,...] [--jobs N] [--only REGEX] [--cover N] BUILD/tests/lanewise-faults

The program must be the one with tests/faults/inject_cuda.c, which writes down what it launches (target
lanewise-faults). --pretend needs no GPU and no sanitizer: it only shows which kernels the jobs ask for."""
import argparse
import collections
import concurrent.futures
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "infer"))
import tiny_onnx as t  # noqa: E402

TOOLS = {
    "memcheck": ["--leak-check", "full"],
    "racecheck": ["--racecheck-report", "all"],
    "initcheck": [],
    "synccheck": [],
}
# a GPU's results lead these to kernels that they do not launch without one; two need one of many multiprocessors, and cuBLASLt
ALWAYS = re.compile(r"pairs long.*cuda-dpx|many (deep )?tiles|many small tiles cuda-dp4a|product (large signed|huge) cuda-tensor|align (semiglobal )?(90|700) cuda-dpx")
# for a process of its own each: cuBLASLt's kernels take long under racecheck, and are instrumented with the rest
APART = ("product huge cuda-tensor", "product large signed cuda-tensor")
LONG = re.compile(r"apsp u16|search|pairs long|product (large|huge)")  # under racecheck
# found where nothing is wrong: initcheck does not follow what cuBLASLt's kernel stores
KNOWN = {"initcheck": re.compile(r"Uninitialized __global__ memory read of size 4 bytes at lw_finish")}
# under racecheck the laboratory's kernels take minutes: each of so many processes runs its part of them, a few blocks of
# each, as races are those of a block's threads, and misses the results of the rest, which the other tools' whole runs verify
LABORATORY = {"bench techniques": ["bench", "techniques", "--quick", "--repeat", "1"], "bench ceilings": ["bench", "ceilings", "--quick", "--repeat", "1"]}
PARTS = {"racecheck": {"bench techniques": 12, "bench ceilings": 2}}
LAB = re.compile(r"^(lab_|any_shifts|bits|votes|sums|broadcast|bytes|cells|census|compaction|divisions|dots|errors|functions|horner|logic|"
                 r"probe_|relax|residual|running_sums|softmax_|transposition|unrolled|upper_halves|wide_|block_sums|accumulators|"
                 r"mask_)")  # kernels of `lanewise bench` alone


def write(path, data):
    with open(path, "w" if isinstance(data, str) else "wb") as file:
        file.write(data)


def npy(path, dtype, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, "(%s,)" % ", ".join(map(str, shape)) if shape else "()")
    header = header.ljust(128 - 11) + "\n"
    write(path, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def fasta(path, name, sequences):
    write(path, "".join(">%s%d\n%s\n" % (name, i, s) for i, s in enumerate(sequences)))


def changed(draw, text, alphabet, rate):
    out = []
    for letter in text:
        dice = draw.random()
        if dice < rate:
            out.append(draw.choice(alphabet))
        elif dice < rate * 1.3:
            continue
        elif dice < rate * 1.6:
            out.append(letter + draw.choice(alphabet))
        else:
            out.append(letter)
    return "".join(out)


def sequences(folder):
    """reads and pairs of several lengths, proteins, graphs"""
    draw = random.Random(7)
    dna, protein = "ACGT", "ACDEFGHIKLMNPQRSTVWY"
    letters = lambda n, alphabet=dna: "".join(draw.choice(alphabet) for _ in range(n))
    reference = letters(5000)
    fasta(folder + "/ref.fa", "chr", [reference, letters(400)])
    for n, many in ((40, 20), (90, 20), (145, 20), (250, 10), (700, 4), (1500, 2), (2600, 1)):
        reads = []
        for _ in range(many):
            at = draw.randrange(len(reference) - n)
            reads.append(changed(draw, reference[at:at + n], dna, 0.03))
        write(folder + "/r%d.fq" % n, "".join("@r%d\n%s\n+\n%s\n" % (i, r, "I" * len(r)) for i, r in enumerate(reads)))
        fasta(folder + "/a%d.fa" % n, "a", reads)
        fasta(folder + "/b%d.fa" % n, "b", [changed(draw, r, dna, 0.05) for r in reads])
    for n, many in ((45, 30), (150, 16), (900, 4)):
        one = [letters(n, protein) for _ in range(many)]
        fasta(folder + "/pa%d.fa" % n, "a", one)
        fasta(folder + "/pb%d.fa" % n, "b", [changed(draw, p, protein, 0.2) for p in one])
    # a database with near and far relatives of the queries
    queries = [letters(n, protein) for n in (30, 60, 200, 400, 900)]
    database = [changed(draw, queries[k // 8 % 5], protein, 0.02 * (k % 20)) if k % 8 == 0 else letters(draw.randrange(20, 130), protein)
                for k in range(400)]
    fasta(folder + "/db.fa", "s", database)
    for i, q in enumerate(queries):
        fasta(folder + "/q%d.fa" % i, "q%d_" % i, [q])
    fasta(folder + "/queries.fa", "q", queries)
    fasta(folder + "/short.fa", "sq", [letters(draw.randrange(20, 45), protein) for _ in range(12)] + [queries[0]])
    fasta(folder + "/long.fa", "l", [letters(2500, protein) + queries[3] + letters(2500, protein), letters(3000, protein)] + database[:50])
    fasta(folder + "/longqueries.fa", "lq", [letters(1100, protein), letters(1150, protein)])
    fasta(folder + "/longquery.fa", "lq", [letters(1200, protein) + queries[3] + letters(900, protein)])
    fasta(folder + "/dna-db.fa", "d", [letters(draw.randrange(100, 900)) for _ in range(60)] + [reference[500:900]])
    fasta(folder + "/dna-q.fa", "dq", [reference[600:760], letters(100)])
    edges = lambda n, weight: "".join("v%d\tv%d\t%s\n" % (draw.randrange(n), draw.randrange(n), weight()) for _ in range(n * 6))
    write(folder + "/small1030.tsv", edges(1030, lambda: draw.randrange(1, 50)))
    for n in (100, 150):
        write(folder + "/small%d.tsv" % n, edges(n, lambda: draw.randrange(1, 50)))
        write(folder + "/large%d.tsv" % n, edges(n, lambda: draw.randrange(1, 2000000)))
        write(folder + "/float%d.tsv" % n, edges(n, lambda: "%.3f" % (draw.random() * 9 + 0.1)))
    far = [draw.randrange(10**12) for _ in range(200)]
    write(folder + "/far.tsv", "".join("v%d\tv%d\t%d\n" % (a, b, draw.randrange(1, 50) + far[a] - far[b])
                                       for a, b in ((draw.randrange(200), draw.randrange(200)) for _ in range(1200)) if a != b))
    # no negative cycle: differences of potentials
    potential = [draw.randrange(1000) for _ in range(200)]
    write(folder + "/negative.tsv", "".join("v%d\tv%d\t%d\n" % (a, b, draw.randrange(1, 50) + potential[a] - potential[b])
                                            for a, b in ((draw.randrange(200), draw.randrange(200)) for _ in range(1200)) if a != b))


def arrays(folder):
    draw = random.Random(11)

    def floats(name, *shape):
        n = 1
        for d in shape:
            n *= d
        npy(folder + "/" + name + ".npy", "<f4", shape, struct.pack("<%df" % n, *(draw.uniform(-3, 3) for _ in range(n))))

    def bytes_(name, code, *shape):
        n = 1
        for d in shape:
            n *= d
        npy(folder + "/" + name + ".npy", "|u1" if code == "B" else "|i1", shape, draw.randbytes(n))

    for rows in (1, 3, 4, 7, 8, 16, 40, 70, 200):
        bytes_("x%d" % rows, "B", rows, 96)
        bytes_("deep%d" % rows, "B", rows, 1100)
        bytes_("deep512_%d" % rows, "B", rows, 512)
    bytes_("w", "b", 130, 96)  # outputs x inputs
    bytes_("wt", "b", 96, 130)
    bytes_("wdeep", "b", 1100, 60)
    bytes_("wwide", "b", 1100, 300)
    bytes_("wodd", "b", 1100, 61)
    bytes_("w512", "b", 512, 72)
    bytes_("big-x", "b", 512, 2048)
    bytes_("huge-x", "B", 2048, 2048)
    bytes_("big-signed", "b", 512, 2048)
    bytes_("big-w", "b", 2048, 2048)
    bytes_("whole-x", "B", 1, 2048)
    bytes_("whole-w", "b", 2048, 32)
    bytes_("channels", "B", 1, 48, 9, 9)
    bytes_("channels-kernel", "b", 20, 48, 3, 3)
    # tiles for every multiprocessor of a large GPU, and six for each
    bytes_("small-tiles-a", "B", 900, 9, 32)
    bytes_("small-tiles-b", "b", 900, 32, 8)
    bytes_("tiles-a", "B", 140, 70, 64)
    bytes_("tiles-b", "b", 140, 64, 40)
    bytes_("deep-tiles-a", "B", 140, 40, 256)
    bytes_("deep-tiles-b", "b", 140, 256, 40)
    bytes_("many-a", "B", 3, 40, 64)
    bytes_("many-b", "b", 3, 64, 33)
    floats("fx", 40, 96)
    floats("pictures", 2, 8, 13, 11)
    bytes_("image", "B", 2, 8, 13, 11)
    bytes_("kernel", "b", 12, 8, 3, 3)
    bytes_("depthwise", "b", 8, 1, 3, 3)
    bytes_("signal", "B", 2, 8, 50)
    bytes_("kernel1", "b", 12, 8, 5)
    bytes_("q", "b", 2, 3, 20, 16)
    floats("steps", 5, 6, 12)  # steps x sequences x inputs
    for name, gates in (("lstm", 4), ("gru", 3)):
        bytes_(name + "-w", "b", 2, 12, gates * 20)
        bytes_(name + "-r", "b", 2, 20, gates * 20)
    npy(folder + "/scales.npy", "<f4", (2,), struct.pack("<2f", 0.01, 0.02))
    bytes_("zeros", "b", 2)
    for width in (10, 100, 500, 1500, 5000, 40000):
        floats("rows%d" % width, 5, width)
        floats("scale%d" % width, width)


def models(folder):
    """float operators that the layers have not"""
    F, I, B = t.FLOAT, t.INT64, t.UINT8
    draw = random.Random(13)
    weights = t.tensor("w", F, [96, 50], struct.pack("<4800f", *(draw.uniform(-1, 1) for _ in range(4800))))
    half = t.tensor("half", F, [], t.floats(0.5))
    zero = t.tensor("zero", t.UINT8, [], bytes([3]))
    rows = t.tensor("rows", I, [3], struct.pack("<3q", 5, 0, 39))
    index = lambda name, *v: t.tensor(name, I, [len(v)], struct.pack("<%dq" % len(v), *v))
    x = t.value("x", F, [40, 96])
    nodes = [
        t.node("MatMul", ["x", "w"], ["m"]), t.node("Sigmoid", ["m"], ["s"]), t.node("Mul", ["m", "s"], ["p"]),
        t.node("Transpose", ["p"], ["pt"], perm=[1, 0]), t.node("IsNaN", ["p"], ["n"]), t.node("Where", ["n", "half", "p"], ["c"]),
        t.node("Gather", ["c", "rows"], ["g"]), t.node("ReduceMean", ["c"], ["r"], axes=[1], keepdims=0),
        t.node("Slice", ["pt", "from", "to", "axes", "steps"], ["sl"]), t.node("Erf", ["sl"], ["e"]), t.node("Softmax", ["e"], ["z"]),
        t.node("DynamicQuantizeLinear", ["c"], ["dq", "ds", "dz"]), t.node("DequantizeLinear", ["dq", "ds", "dz"], ["dd"]),
        t.node("QuantizeLinear", ["dd", "half", "zero"], ["qq"]), t.node("Concat", ["p", "c"], ["cat"], axis=1),
        t.node("Sub", ["dd", "half"], ["sub"]), t.node("Split", ["cat"], ["first", "second"], axis=1),
        t.node("Reshape", ["x", "images"], ["xi"]), t.node("Conv", ["xi", "wide-kernel"], ["conv"], pads=[1, 1]),
        t.node("Conv", ["conv", "deep-kernel"], ["deep"], group=16), t.node("LSTM", ["deep", "lw", "lr"], ["ly", "lh", "lc"], hidden_size=24),
        t.node("GRU", ["deep", "gw", "gr"], ["gy", "gh"], hidden_size=24),
        t.node("QLinearConcat", ["half", "zero", "qq", "quarter", "zero", "qq", "half", "zero"], ["joined"], "com.microsoft", axis=1),
    ]
    some = lambda name, *shape: t.tensor(name, F, shape, struct.pack("<%df" % math.prod(shape), *(draw.uniform(-1, 1) for _ in range(math.prod(shape)))))
    more = [t.tensor("quarter", F, [], t.floats(0.25)), index("images", 40, 4, 24), some("wide-kernel", 16, 4, 3), some("deep-kernel", 16, 1, 3), some("lw", 1, 96, 22), some("lr", 1, 96, 24),
            some("gw", 1, 72, 22), some("gr", 1, 72, 24)]
    outputs = [t.value(n, F, s) for n, s in (("g", [3, 50]), ("r", [40]), ("z", [50, 20]), ("cat", [40, 100]), ("sub", [40, 50]))]
    outputs.append(t.value("qq", B, [40, 50]))
    write(folder + "/float.onnx", t.model(nodes, [x], outputs, [weights, half, zero, rows, index("from", 0), index("to", 40), index("axes", 1),
                                                                index("steps", 2)] + more,
                                          extra_opset=t.chunk(8, t.chunk(1, "com.microsoft") + t.number(2, 1))))


def pooling(folder):
    """pooling, tables, comparisons, casts, gathered tuples"""
    F, I, B = t.FLOAT, t.INT64, t.UINT8
    half, zero = t.tensor("half", F, [], t.floats(0.5)), t.tensor("zero", B, [], bytes([3]))
    coarse, fine = t.tensor("coarse", F, [], t.floats(0.05)), t.tensor("fine", F, [], t.floats(1 / 256))
    none = t.tensor("none", t.UINT8, [], bytes(1))
    tuples = t.tensor("tuples", I, [3, 2], struct.pack("<6q", 1, 7, 0, 0, 1, 3))
    tail = [t.value("p", F, [2, 8, 13, 11])]
    microsoft = "com.microsoft"
    nodes = [
        t.node("MaxPool", ["p"], ["max"], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
        t.node("AveragePool", ["p"], ["mean"], kernel_shape=[3, 3]), t.node("GlobalAveragePool", ["mean"], ["all"]),
        t.node("GlobalMaxPool", ["max"], ["most"]), t.node("QuantizeLinear", ["p", "coarse", "zero"], ["b"]),
        t.node("QLinearAveragePool", ["b", "coarse", "zero", "coarse", "zero"], ["bm"], microsoft, kernel_shape=[2, 2]),
        t.node("QLinearGlobalAveragePool", ["b", "coarse", "zero", "coarse", "zero"], ["ball"], microsoft),
        t.node("QLinearSigmoid", ["bm", "coarse", "zero", "fine", "none"], ["bs"], microsoft),
        t.node("QLinearLeakyRelu", ["bs", "fine", "none", "fine", "none"], ["bl"], microsoft, alpha=0.1),
        t.node("QLinearSoftmax", ["bl", "fine", "none", "fine", "none"], ["bz"], microsoft, axis=-1, opset=13),
        t.node("Greater", ["mean", "half"], ["greater"]), t.node("Equal", ["mean", "half"], ["equal"]),
        t.node("Or", ["greater", "equal"], ["either"]), t.node("Cast", ["either"], ["number"], to=1),
        t.node("GatherND", ["mean", "tuples"], ["gathered"]),
    ]
    made = [t.value(n, kind, shape) for n, kind, shape in (
        ("all", F, [2, 8, 1, 1]), ("most", F, [2, 8, 1, 1]), ("ball", B, [2, 8, 1, 1]), ("bz", B, [2, 8, 12, 10]),
        ("number", F, [2, 8, 11, 9]), ("gathered", F, [3, 11, 9]))]
    extra = t.chunk(8, t.chunk(1, microsoft) + t.number(2, 1))
    write(folder + "/pooling.onnx", t.model(nodes, tail, made, [half, zero, coarse, fine, none, tuples], 17, extra))


def jobs(folder, backends):
    """name -> arguments; everything that chooses a kernel: backend, word, shape, passes, mode"""
    table = collections.OrderedDict()

    def add(name, *arguments):
        table[name] = list(arguments)

    add("devices", "devices")
    for backend in backends:
        b = ["--backend", backend, "-q", "-t", "2"]
        if backend not in ("cuda-tensor", "cuda-dp4a"):
            for n in (40, 90, 145, 250, 700, 1500):
                add("align %d %s" % (n, backend), "align", "ref.fa", "r%d.fq" % n, "-o", "@.sam", *b)
                add("align semiglobal %d %s" % (n, backend), "align", "ref.fa", "r%d.fq" % n, "-o", "@.sam", "--mode", "semiglobal", *b)
            for n in (90, 250, 700):
                add("align secondary %d %s" % (n, backend), "align", "ref.fa", "r%d.fq" % n, "-N", "3", "-o", "@.sam", *b)
                # beyond half-precision integers, beyond 16 bits
                add("align s16 %d %s" % (n, backend), "align", "ref.fa", "r%d.fq" % n, "-A", "20", "-B", "30", "-O", "40", "-E", "10", "-o", "@.sam", *b)
                add("align s32 %d %s" % (n, backend), "align", "ref.fa", "r%d.fq" % n, "-A", "900", "-B", "900", "-O", "900", "-E", "90", "-o", "@.sam", *b)
                add("align s32 semiglobal %d %s" % (n, backend), "align", "ref.fa", "r%d.fq" % n, "-A", "900", "-B", "900", "-O", "900", "-E", "90",
                    "--mode", "semiglobal", "-o", "@.sam", *b)
            add("align protein %s" % backend, "align", "pb150.fa", "pa150.fa", "-o", "@.sam", *b)
            for mode in ("local", "global", "semiglobal"):
                for n in (145, 1500):
                    add("pairs %s %d %s" % (mode, n, backend), "pairs", "a%d.fa" % n, "b%d.fa" % n, "--mode", mode, "-o", "@.tsv", *b)
                add("pairs two-piece %s %s" % (mode, backend), "pairs", "a250.fa", "b250.fa", "--mode", mode, "-A", "2", "-O", "4,24", "-E", "2,1",
                    "-o", "@.tsv", *b)
                add("pairs s32 %s %s" % (mode, backend), "pairs", "a250.fa", "b250.fa", "--mode", mode, "-A", "900", "-B", "900", "-O", "900", "-E", "90",
                    "-o", "@.tsv", *b)
                add("pairs s32 two-piece %s %s" % (mode, backend), "pairs", "a250.fa", "b250.fa", "--mode", mode, "-A", "900", "-B", "900", "-O",
                    "900,1900", "-E", "90,20", "-o", "@.tsv", *b)
            # directions of large pairs are computed twice, from checkpoints
            add("pairs long %s" % backend, "pairs", "a2600.fa", "b2600.fa", "--mode", "global", "-o", "@.tsv", *b)
            add("pairs long two-piece %s" % backend, "pairs", "a2600.fa", "b2600.fa", "-A", "2", "-O", "4,24", "-E", "2,1", "-o", "@.tsv", *b)
            add("pairs long s32 %s" % backend, "pairs", "a2600.fa", "b2600.fa", "--mode", "global", "-A", "900", "-B", "900", "-O", "900", "-E",
                "90", "-o", "@.tsv", *b)
            add("pairs long s32 two-piece %s" % backend, "pairs", "a2600.fa", "b2600.fa", "-A", "900", "-B", "900", "-O", "900,1900", "-E", "90,20",
                "-o", "@.tsv", *b)
            for n in (45, 150, 900):
                add("pairs protein %d %s" % (n, backend), "pairs", "pa%d.fa" % n, "pb%d.fa" % n, "-o", "@.tsv", *b)
            add("pairs scores %s" % backend, "pairs", "a145.fa", "b145.fa", "--scores-only", "-o", "@.tsv", *b)
            add("pairs all %s" % backend, "pairs", "a40.fa", "b40.fa", "--all", "-o", "@.npy", *b)
            add("realign %s" % backend, "realign", "ref.fa", "in.sam", "-o", "@.sam", *b)
            for n in range(5):
                add("search %d %s" % (n, backend), "search", "q%d.fa" % n, "db.fa", "-o", "@.tsv", *b)
            add("search many %s" % backend, "search", "queries.fa", "db.fa", "--align", "--outfmt", "tsv", "-o", "@.tsv", *b)
            add("search all hits %s" % backend, "search", "queries.fa", "db.fa", "--top", "0", "-o", "@.tsv", *b)
            add("search other gaps %s" % backend, "search", "queries.fa", "db.fa", "-O", "9", "-E", "2", "-o", "@.tsv", *b)
            add("search high %s" % backend, "search", "queries.fa", "db.fa", "-O", "300", "-E", "30", "--no-evalue", "-o", "@.tsv", *b)
            add("search filter %s" % backend, "search", "queries.fa", "db.fa", "--gapless-filter", "-o", "@.tsv", *b)
            add("search short %s" % backend, "search", "short.fa", "db.fa", "-o", "@.tsv", *b)
            add("search short, other gaps %s" % backend, "search", "short.fa", "db.fa", "-O", "9", "-E", "2", "-o", "@.tsv", *b)
            add("search short, filter %s" % backend, "search", "short.fa", "db.fa", "--gapless-filter", "-o", "@.tsv", *b)
            add("search long, filter %s" % backend, "search", "longquery.fa", "long.fa", "--gapless-filter", "-o", "@.tsv", *b)
            add("search long %s" % backend, "search", "longquery.fa", "long.fa", "-o", "@.tsv", *b)
            add("search long two %s" % backend, "search", "longqueries.fa", "db.fa", "-o", "@.tsv", *b)
            add("search long subjects %s" % backend, "search", "queries.fa", "long.fa", "-o", "@.tsv", *b)
            add("search dna %s" % backend, "search", "dna-q.fa", "dna-db.fa", "-o", "@.tsv", *b)
        if backend in ("cuda-dpx", "cuda-int"):
            for graph in ("small100", "small150", "large150", "float150"):
                add("apsp %s %s" % (graph, backend), "apsp", graph + ".tsv", "-o", "@.npy", "--next", *b)
            add("apsp int64 %s" % backend, "apsp", "large150.tsv", "--dtype", "int64", "--next", "-o", "@.npy", *b)
            add("apsp float64 %s" % backend, "apsp", "float150.tsv", "--dtype", "float64", "--next", "-o", "@.npy", *b)
            add("apsp negative int64 %s" % backend, "apsp", "far.tsv", "--dtype", "int64", "-o", "@.npy", *b)
            # few edges and small weights: two distances a word
            add("apsp u16 %s" % backend, "apsp", "small1030.tsv", "-o", "@.npy", *b)
            add("apsp negative %s" % backend, "apsp", "negative.tsv", "-o", "@.npy", *b)
            add("apsp routes %s" % backend, "apsp", "small100.tsv", "--stats", "-o", "@.tsv", *b)
            add("apsp little memory %s" % backend, "apsp", "small1030.tsv", "--gpu-mem", "4M", "-o", "@.npy", *b)
        if backend in ("cuda-tensor", "cuda-dp4a", "cuda-int"):
            layer = lambda name, kind, *more: add("%s %s" % (name, backend), "layer", kind, "-o", "@.npy", *more, *b)
            scales = ["--input", "x-scale=0.02", "--input", "w-scale=0.01", "--input", "y-scale=0.5"]
            for rows in (1, 3, 4, 7, 8, 16, 40, 70, 200):
                layer("linear %d" % rows, "linear", "--input", "x=x%d.npy" % rows, "--input", "w=w.npy", *scales)
                layer("product %d" % rows, "matmul-integer", "--input", "x=deep%d.npy" % rows, "--input", "w=wdeep.npy")
                layer("product wide %d" % rows, "matmul-integer", "--input", "x=deep%d.npy" % rows, "--input", "w=wwide.npy")
                layer("product deep %d" % rows, "matmul-integer", "--input", "x=deep512_%d.npy" % rows, "--input", "w=w512.npy", "--input", "w-zero=3",
                      "--input", "x-zero=7")
            layer("product large", "matmul-integer", "--input", "x=big-x.npy", "--input", "w=big-w.npy")  # cuBLASLt, where it is
            if backend == "cuda-tensor":  # unsigned rows go to cuBLASLt later
                layer("product huge", "matmul-integer", "--input", "x=huge-x.npy", "--input", "w=big-w.npy")
            layer("product large signed", "matmul-integer", "--input", "x=big-signed.npy", "--input", "w=big-w.npy")
            layer("convolution of channels", "conv2d", "--input", "x=channels.npy", "--input", "w=channels-kernel.npy", "--input", "w-zero=2", *scales)
            layer("product whole", "matmul-integer", "--input", "x=whole-x.npy", "--input", "w=whole-w.npy")  # full slices of one row
            layer("product odd", "matmul-integer", "--input", "x=deep40.npy", "--input", "w=wodd.npy")
            layer("products", "matmul-integer", "--input", "x=many-a.npy", "--input", "w=many-b.npy")
            layer("many tiles", "matmul-integer", "--input", "x=tiles-a.npy", "--input", "w=tiles-b.npy")
            layer("many small tiles", "matmul-integer", "--input", "x=small-tiles-a.npy", "--input", "w=small-tiles-b.npy")
            layer("many deep tiles", "matmul-integer", "--input", "x=deep-tiles-a.npy", "--input", "w=deep-tiles-b.npy")
            layer("dynamic", "linear-dynamic", "--input", "x=fx.npy", "--input", "w=wt.npy", "--input", "w-scale=0.01")
            layer("convolution", "conv2d", "--input", "x=image.npy", "--input", "w=kernel.npy", "--set", "pads=1,1,1,1", *scales)
            layer("depthwise", "conv2d", "--input", "x=image.npy", "--input", "w=depthwise.npy", "--set", "groups=8", *scales)
            layer("convolution 1d", "conv1d", "--input", "x=signal.npy", "--input", "w=kernel1.npy", "--set", "stride=2", *scales)
            layer("attention", "attention", *[w for n in "qkv" for w in ("--input", "%s=q.npy" % n, "--input", "%s-scale=0.02" % n)])
            layer("bytes", "add", "--input", "x=x40.npy", "--input", "x-scale=0.1", "--input", "b=x40.npy", "--input", "b-scale=0.2", "--input",
                  "y-scale=0.3")
            for kind in ("lstm", "gru"):
                of = ["--input", "x=steps.npy", "--input", "w=%s-w.npy" % kind, "--input", "r=%s-r.npy" % kind, "--input", "w-scale=scales.npy",
                      "--input", "r-scale=scales.npy", "--set", "direction=bidirectional"]
                layer(kind, kind + "-int8", "--input", "w-zero=zeros.npy", "--input", "r-zero=zeros.npy", *of)
            for width in (10, 100, 500, 1500, 5000, 40000):
                layer("softmax %d" % width, "softmax", "--input", "x=rows%d.npy" % width)
                layer("layer norm %d" % width, "layernorm", "--input", "x=rows%d.npy" % width, "--input", "scale=scale%d.npy" % width)
            add("pooling %s" % backend, "infer", "pooling.onnx", "--input", "pictures.npy", *[w for i in range(6) for w in ("--output", "@.%d.npy" % i)], *b)
            add("model %s" % backend, "infer", "float.onnx", "--input", "fx.npy", *[w for i in range(6) for w in ("--output", "@.%d.npy" % i)], *b)
    return table


def found(text):
    """What a tool found, alike findings in one line."""
    lines, last = collections.Counter(), None
    for line in text.splitlines():
        line = line.replace("=========", "").rstrip()
        if re.match(r" (Host API|Uninit|Invalid|Race|Error|Warning|Leaked|Barrier|Program hit|Divergent|Missing)", line):
            last = re.sub(r"0x[0-9a-f]+", "0x", line.strip())
            if not re.search(r"__global__|__shared__|hazard", last):
                lines[last] += 1
        elif last and re.match(r" +(at|and) (void |unsigned|int|[A-Za-z_])", line):
            lines["%s %s" % (re.sub(r"bytes.*", "bytes", last), re.sub(r"\+0x.*", "", line.strip()))] += 1
        elif "ERROR SUMMARY" in line and " 0 errors" not in line or "RACECHECK SUMMARY" in line and " 0 hazards" not in line:
            lines[line.strip()] += 1
    return "\n".join("%5d  %s" % (n, line) for line, n in lines.most_common())


class Check:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.known, self.by_tool = set(), collections.OrderedDict()
        self.runs, self.failed, self.seconds = collections.Counter(), collections.Counter(), collections.Counter()
        self.end = time.monotonic() + args.until
        self.left_out = self.number = 0
        self.late = collections.Counter()
        self.notes = []

    def one(self, tool, some, number):
        """Runs some jobs by one process under one tool; (tool, names, exit code, what the tool said, kernels, seconds)."""
        if time.monotonic() > self.end:
            return tool, some, None, "", {}, 0
        jobs, kernels = os.path.join(self.folder, "jobs.%d" % number), os.path.join(self.folder, "kernels.%d" % number)
        with open(jobs, "w") as file:
            for i, arguments in enumerate(some.values()):
                out = "out%d.%d" % (number, i)
                file.write("\t".join(["-", "/dev/null", "said%d" % number] + [a.replace("@", out) if a.startswith("@.") else a for a in arguments]) + "\n")
        env = dict(os.environ, LW_CUDA_KERNELS=kernels, LW_CUDA_JOBS=jobs)
        in_parts = [re.fullmatch(r".* part (\d+/\d+)", name) for name in some]
        in_parts = in_parts[0] if in_parts else None
        if in_parts:
            env.update(LW_CUDA_PART=in_parts[1], LW_CUDA_BLOCKS="8")
        command = [self.args.program]
        if tool == "pretend":
            env["LW_CUDA_PRETEND"] = "1"
        elif tool != "none":
            command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "99", "--print-limit", "20", "--log-file", "log%d" % number] + TOOLS[tool] + command
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            code = process.wait(timeout=self.args.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = "timeout"
        read = lambda path: open(path, errors="replace").read() if os.path.exists(path) else ""
        exits = [line.split("\t")[0] for line in read(jobs + ".done").splitlines()]
        wrong = [name for name, done in zip(some, exits + ["none"] * len(some)) if done != "0" and not (in_parts and done == "1")]
        text = read(os.path.join(self.folder, "log%d" % number))
        text = found(text)
        known = [line for line in text.splitlines() if tool in KNOWN and KNOWN[tool].search(line)]
        if known and all(line in known or "ERROR SUMMARY" in line for line in text.splitlines()):
            self.notes += ["%s, known: %s" % (tool, line.strip()) for line in known]
            text, code = "", 0 if code == 99 else code
        if code == "timeout":
            code = 0
            self.late[tool] += len(wrong)
            some = {name: some[name] for name in some if name not in wrong}
            if text:
                code = 99
        elif wrong:
            text = "jobs that failed: %s\n%s%s" % (", ".join(wrong), read(os.path.join(self.folder, "said%d" % number)), text)
            code = code or 1
        ran = collections.Counter()
        for line in read(kernels).splitlines():
            n, mangled = line.split("\t")
            ran[mangled] += int(n)
        for made in os.listdir(self.folder):
            if re.match(r"(out|said|log|jobs\.|kernels\.)%d(\.|$)" % number, made):
                os.unlink(os.path.join(self.folder, made))
        return tool, some, code, text, ran, time.monotonic() - started

    def lists(self, table, n):
        """The jobs in n lists; neighbours, which are alike, in different ones; what takes long first."""
        table = dict(sorted(table.items(), key=lambda job: not LONG.search(job[0])))
        names = [name for name in table if name not in APART]
        return [{name: table[name]} for name in table if name in APART] + [{name: table[name] for name in names[i::n]} for i in range(min(n, len(names)))]

    def run(self, table):
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            waiting = []
            for tool in self.args.tools.split(","):
                self.by_tool[tool] = collections.Counter()
                laboratory = []
                for name, words in LABORATORY.items() if self.args.laboratory else ():
                    n = PARTS.get(tool, {}).get(name, 1)
                    laboratory += [{name + (" part %d/%d" % (i, n) if n > 1 else ""): words} for i in range(n)]
                for some in (self.lists(table, self.args.lists) if table else []) + laboratory:
                    self.number += 1
                    waiting.append(pool.submit(self.one, tool, some, self.number))
            for one in concurrent.futures.as_completed(waiting):
                tool, some, code, text, ran, took = one.result()
                if code is None:
                    self.left_out += len(some)
                    continue
                self.runs[tool] += len(some)
                self.seconds[tool] += took
                self.known.update(ran)
                self.by_tool[tool].update({k: n for k, n in ran.items() if n})
                if self.args.verbose:
                    print("%s: %s: exit %s, %d kernels, %.1f s" % (tool, "; ".join(some) if len(some) < 3 else "%d jobs" % len(some), code,
                                                                   sum(1 for n in ran.values() if n), took), flush=True)
                if code != 0:
                    self.failed[tool] += 1
                    print("FAILED %s: exit %s of %s\n%s" % (tool, code, "; ".join(some), "\n".join(text.splitlines()[:self.args.show])), flush=True)

    def cover(self, table, times):
        """The jobs with which every kernel is launched by so many of them, as far as there are so many: greedily, as the
        jobs go without a GPU, and those that only a real result leads to more kernels."""
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            done = list(pool.map(lambda job: self.one("pretend", dict([job[1]]), -1 - job[0]), enumerate(table.items())))
        kernels, wanted = {}, {}
        for _, some, code, text, ran, _ in done:
            name = list(some)[0]
            kernels[name] = {k for k, n in ran.items() if n}
            if code != 0:
                self.failed["pretend"] += 1
                print("FAILED without a GPU: %s: exit %s\n%s" % (name, code, text))
            for k in kernels[name]:
                wanted[k] = min(times, wanted.get(k, 0) + 1)
        chosen = {n: a for n, a in table.items() if ALWAYS.match(n)}
        for name in chosen:
            for k in kernels[name]:
                wanted[k] = max(0, wanted[k] - 1)
        while any(wanted.values()):
            best = max((n for n in table if n not in chosen), key=lambda n: sum(1 for k in kernels[n] if wanted[k]))
            chosen[best] = table[best]
            for k in kernels[best]:
                wanted[k] = max(0, wanted[k] - 1)
        print("%d of %d jobs launch each of %d kernels" % (len(chosen), len(table), len(wanted)), flush=True)
        return chosen

    def names(self, mangled):
        filt = shutil.which("c++filt") or shutil.which("cu++filt")
        if not filt or not mangled:
            return {m: m for m in mangled}
        mangled = sorted(mangled)
        text = subprocess.run([filt], input="\n".join(mangled), stdout=subprocess.PIPE, text=True).stdout.splitlines()
        return {m: re.sub(r"^void ", "", re.sub(r"\(.*$", "", line.replace("(anonymous namespace)::", ""))) for m, line in zip(mangled, text)}

    def report(self):
        names = self.names(self.known)
        failed = sum(self.failed.values())
        product = {m for m in self.known if not LAB.match(names[m])}
        lab = self.known - product
        print("| tool | jobs | kernels of the library | of the laboratory | launches | seconds | lists with findings |\n|---|---|---|---|---|---|---|")
        for tool, ran in self.by_tool.items():
            print("| %s | %d | %d of %d | %d of %d | %d | %.0f | %d |" % (tool, self.runs[tool], len(product & set(ran)), len(product), len(lab & set(ran)),
                                                                  len(lab), sum(ran.values()), self.seconds[tool], self.failed[tool]))
        for note in sorted(set(self.notes)):
            print(note)
        tool = shutil.which("cuobjdump")
        if tool:
            text = subprocess.run([tool, "-symbols", self.args.program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            code = {line.split()[-1] for line in text.splitlines() if re.match(r"(FUNC|STT_FUNC)\s.*ENTRY", line)}
            print("%d kernels in the machine code, %d of them known to the program" % (len(code), len(code & self.known)))
            failed += len(code - self.known)
        missing = collections.defaultdict(list)
        for tool, ran in self.by_tool.items():
            wanted = (product if not self.args.only else set()) | (lab if self.args.laboratory else set())
            for mangled in (wanted if self.runs[tool] else set()) - set(ran):
                missing[names[mangled]].append(tool)
        for name, tools in sorted(missing.items()):
            print("not launched under %s: %s" % (", ".join(tools), name))
        failed += len(missing)
        for tool, n in self.late.items():
            self.left_out += n
            print("SKIPPED: %d jobs under %s that had not ended after %d s" % (n, tool, self.args.limit))
        if self.left_out:
            print("SKIPPED: %d runs for which there was no time" % self.left_out)
        print("cases: %d passed, %d failed, %d skipped" % (sum(self.runs.values()) - failed, failed, self.left_out))
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=900, help="seconds that one process may take")
    parser.add_argument("--only", default="", help="jobs whose name matches this regular expression")
    parser.add_argument("--names", help="a file that names the jobs, one a line")
    parser.add_argument("--backends", default="cuda-dpx,cuda-half2,cuda-int,cuda-tensor,cuda-dp4a")
    parser.add_argument("--cover", type=int, default=0, metavar="N",
                        help="only so many jobs as are needed to have every kernel launched by N of them (0: all jobs)")
    parser.add_argument("--until", type=float, default=1e9, help="seconds after which nothing more is started")
    parser.add_argument("--laboratory", action="store_true", help="the kernels of `lanewise bench techniques ceilings`, too")
    parser.add_argument("--lists", type=int, default=8, help="the jobs are done by so many processes a tool")
    parser.add_argument("--show", type=int, default=60, help="lines of a finding")
    parser.add_argument("--pretend", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    if args.pretend:
        args.tools = "pretend"
    elif args.tools != "none" and not shutil.which("compute-sanitizer"):
        os.environ["PATH"] += os.pathsep + "/usr/local/cuda/bin" + os.pathsep + "/usr/local/cuda/compute-sanitizer"
        if not shutil.which("compute-sanitizer"):
            print("SKIPPED: no compute-sanitizer here")
            return 0
    with tempfile.TemporaryDirectory() as folder:
        sequences(folder)
        arrays(folder)
        models(folder)
        pooling(folder)
        subprocess.run([args.program, "align", "ref.fa", "r250.fq", "--backend", "cpu", "-q", "-o", "in.sam"], cwd=folder, check=True)
        check = Check(args, folder)
        table = {n: a for n, a in jobs(folder, args.backends.split(",")).items() if re.search(args.only, n)}
        if args.names:
            with open(args.names) as file:
                table = {n: table[n] for n in file.read().splitlines()}
        check.run(check.cover(table, args.cover) if args.cover else table)
        return check.report()


if __name__ == "__main__":
    sys.exit(main())
