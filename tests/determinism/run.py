#!/usr/bin/env python3
"""The same input gives the same bytes: every command on every backend that can run here, on every instruction set,
with several numbers of threads and sizes of a batch, from a file and from a pipe, and again and again; and every mode,
preset, gap scheme and form of output of align, pairs and realign on every backend, from larger inputs. @PG lines, which
quote the command line, are left out of SAM; BAM and CRAM are compared as the SAM that they hold and, between runs of one
command line, byte by byte. Rows for a GPU are skipped, by name, where there is none.

    run.py --program BUILD/lanewise [--repeats N] [--only WORD]"""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "faults"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "infer"))
import run as faults  # its small inputs
import tiny_onnx  # noqa: E402

SETS = ("", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon")
SMALL = ["--batch", "700"]
LITTLE = ["--gpu-mem", "600M"]
# command line, and what may be added to it on a GPU without changing the result
JOBS = {
    "align, SAM": (["align", "ref.fa", "reads.fq", "-o", "out.sam", "--secondary", "2"], SMALL),
    "align, global": (["align", "ref.fa", "reads.fq", "-o", "out.paf", "--mode", "semiglobal"], SMALL),
    "pairs": (["pairs", "a.fa", "b.fa", "-o", "out.tsv", "--mode", "global"], SMALL),
    "pairs, two prices": (["pairs", "a.fa", "b.fa", "-o", "out.tsv", "-A", "2", "-O", "4,24", "-E", "2,1"], SMALL),
    "realign": (["realign", "ref.fa", "in.sam", "-o", "out.sam"], SMALL),
    "search": (["search", "query.fa", "db.fa", "-o", "out.tsv", "--align"], LITTLE),
    "apsp": (["apsp", "graph.tsv", "-o", "out.npy", "--next"], LITTLE),
    "apsp, routes": (["apsp", "graph.tsv", "-o", "out.tsv", "--stats"], LITTLE),
    "linear": (["layer", "linear", "--input", "x=x.npy", "--input", "x-scale=0.02", "--input", "w=w.npy", "--input", "w-scale=0.01",
                "--input", "y-scale=0.5", "-o", "out.npy"], []),
    "convolution": (["layer", "conv2d", "--input", "x=image.npy", "--input", "x-scale=0.02", "--input", "w=kernel.npy", "--input",
                     "w-scale=0.01", "--input", "y-scale=0.5", "--set", "pads=1,1,1,1", "-o", "out.npy"], []),
    "model": (["infer", "model8.onnx", "--input", "x.npy", "--output", "out.npy"], []),
}

TWO_PIECE = ["-A", "2", "-B", "4", "-O", "4,24", "-E", "2,1"]
PAIRS, PROTEINS, READS = ["pairs", "wa.fa", "wb.fa"], ["pairs", "pa.fa", "pb.fa"], ["align", "wref.fa", "reads.fa"]
# on every backend, from the inputs of wide()
WIDE = {
    "align, local": READS + ["-o", "out.sam", "--eqx"],
    "align, semiglobal, secondary": READS + ["-o", "out.sam", "--mode", "semiglobal", "-N", "3"],
    "align, one strand, PAF": READS + ["-o", "out.paf", "--strand", "forward"],
    "align, mates": READS + ["-o", "out.sam", "-p", "--insert", "0,900"],
    "align, two-piece gaps": READS + ["-o", "out.sam"] + TWO_PIECE,
    "align, semiglobal, two-piece gaps": READS + ["-o", "out.sam", "--mode", "semiglobal"] + TWO_PIECE,
    "realign": ["realign", "wref.fa", "placed.sam", "-o", "out.sam"],
    "realign, two-piece gaps": ["realign", "wref.fa", "placed.sam", "-o", "out.sam"] + TWO_PIECE,
    "pairs, edit": PAIRS + ["-o", "out.tsv", "--preset", "edit"],
    "pairs, edit, scores": PAIRS + ["-o", "out.tsv", "--preset", "edit", "--scores-only"],
    "pairs, water": PAIRS + ["-o", "out.tsv", "--preset", "water"],
    "pairs, needle": PAIRS + ["-o", "out.tsv", "--preset", "needle"],
    "pairs, needle, scores": PAIRS + ["-o", "out.tsv", "--preset", "needle", "--scores-only"],
    "pairs, both strands, SAM": PAIRS + ["-o", "out.sam", "--strand", "both"],
    "pairs, both strands, two-piece gaps": PAIRS + ["-o", "out.paf", "--strand", "both"] + TWO_PIECE,
    "pairs, min score, in small batches": PAIRS + ["-o", "out.tsv", "--min-score", "20", "--batch", "3k"],
    "protein pairs, water": PROTEINS + ["-o", "out.tsv", "--preset", "water"],
    "protein pairs, needle": PROTEINS + ["-o", "out.tsv", "--preset", "needle"],
    "protein pairs, PAM30": PROTEINS + ["-o", "out.paf", "--matrix", "PAM30", "--mode", "global"],
    "all pairs": ["pairs", "qa.fa", "wb.fa", "--all", "-o", "out.npy"],
    "all pairs, edit": ["pairs", "qa.fa", "wb.fa", "--all", "-o", "out.npy", "--preset", "edit"],
    "all pairs, needle": ["pairs", "qa.fa", "wb.fa", "--all", "-o", "out.npy", "--preset", "needle"],
    "all pairs, two-piece gaps": ["pairs", "qa.fa", "wb.fa", "--all", "-o", "out.npy"] + TWO_PIECE,
}
for _mode in ("local", "global", "semiglobal"):
    WIDE["pairs, " + _mode] = PAIRS + ["-o", "out.tsv", "--mode", _mode]
    WIDE["pairs, %s, scores" % _mode] = PAIRS + ["-o", "out.tsv", "--mode", _mode, "--scores-only"]
    WIDE["pairs, %s, two-piece gaps" % _mode] = PAIRS + ["-o", "out.tsv", "--mode", _mode] + TWO_PIECE
    WIDE["pairs, %s, two-piece gaps, scores" % _mode] = (
        PAIRS + ["-o", "out.tsv", "--mode", _mode, "--scores-only"] + TWO_PIECE)


def fasta(path, sequences):
    faults.write(path, "".join(">s%d\n%s\n" % (i, s) for i, s in enumerate(sequences)))


def wide(folder):
    """Pairs from one letter to 1,500, relatives with errors and gaps as well as strangers; reads of a reference that
    holds a repeat, some of them with a gap of 5 to 40 letters."""
    draw = random.Random(11)

    def letters(n, of="ACGT"):
        return "".join(draw.choice(of) for _ in range(n))

    def relative(sequence, of="ACGT"):
        out = []
        for c in sequence:
            u = draw.random()
            out.append(draw.choice(of) if u < 0.03 else c if u < 0.98 else "" if u < 0.99 else c + draw.choice(of))
        at, n = draw.randrange(len(out) + 1), draw.choice((0, 0, 7, 30))
        return "".join(out[:at] + ([letters(n, of)] if draw.random() < 0.5 else []) + out[at + n:]) or draw.choice(of)

    lengths = [1, 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129] + [150] * 60 + [400] * 4 + [1500]
    first = [letters(n) for n in lengths]
    second = [relative(letters(20) + s + letters(30)) for s in first]
    second[20], second[3], first[25] = letters(200), "T", first[25][:70] + "NNNRYN" + first[25][76:]
    fasta(folder + "/wa.fa", first)
    fasta(folder + "/wb.fa", second)
    fasta(folder + "/qa.fa", first[14:22])
    acids = "ACDEFGHIKLMNPQRSTVWY"
    first = [letters(n, acids) for n in (1, 2, 30, 64, 65, 100, 200, 300)]
    fasta(folder + "/pa.fa", first)
    fasta(folder + "/pb.fa", [relative(letters(9, acids) + s, acids) for s in first])
    repeat = letters(200)
    reference = letters(300) + repeat + letters(200) + repeat + letters(300)
    fasta(folder + "/wref.fa", [reference, letters(50) + repeat[:170] + letters(60)])
    reads = []
    for i in range(30):
        at = draw.randrange(len(reference) - 450)
        for piece in (reference[at:at + 150], reference[at + 300:at + 450]):
            read = relative(piece)
            reads.append(read if len(reads) % 2 == 0 else read[::-1].translate(str.maketrans("ACGT", "TGCA")))
    faults.write(folder + "/reads.fa", "".join(">p%d\n%s\n" % (i // 2, r) for i, r in enumerate(reads)))


def arrays(folder):
    draw = random.Random(3)
    for name, kind, shape in (("x", "|u1", (33, 96)), ("w", "|i1", (50, 96)), ("image", "|u1", (2, 8, 13, 11)),
                              ("kernel", "|i1", (12, 8, 3, 3))):
        size = 1
        for n in shape:
            size *= n
        faults.npy("%s/%s.npy" % (folder, name), kind, shape, draw.randbytes(size))
    t = tiny_onnx
    constants = [t.tensor("w1", t.INT8, [96, 40], draw.randbytes(3840)), t.tensor("w2", t.INT8, [40, 70], draw.randbytes(2800)),
                 t.tensor("scale", t.FLOAT, [], t.floats(0.03)), t.tensor("coarse", t.FLOAT, [], t.floats(9.0)),
                 t.tensor("zero", t.UINT8, [], bytes([128])), t.tensor("none", t.INT8, [], bytes([0]))]
    nodes = [t.node("QLinearMatMul", ["x", "scale", "zero", "w1", "scale", "none", "scale", "zero"], ["h"]),
             t.node("QLinearMatMul", ["h", "scale", "zero", "w2", "scale", "none", "scale", "zero"], ["y"])]
    faults.write(folder + "/model8.onnx", t.model(nodes, [t.value("x", t.UINT8, [33, 96])], [t.value("y", t.UINT8, [33, 70])], constants))


def more_inputs(program, folder):
    arrays(folder)
    wide(folder)
    subprocess.run([program, "align", "ref.fa", "reads.fq", "-q", "-o", "in.sam"], cwd=folder, check=True)
    # gaps so dear that realign finds better ones
    subprocess.run([program, "align", "wref.fa", "reads.fa", "-O", "30", "-E", "3", "-q", "-o", "placed.sam"], cwd=folder, check=True)


def usable(program, command):
    """Rows that the program itself calls usable; a row that then fails is a failure."""
    done = subprocess.run([program, command, "--backend", "list"], stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return [row[0] for row, state in zip(lines[::2], lines[1::2]) if state[0].startswith("usable")]


class Matrix:
    """One job, in a folder of its own."""
    def __init__(self, program, inputs, name, repeats):
        self.program, self.name, self.repeats, self.passed, self.failed = program, name, repeats, 0, 0
        self.job, self.more = JOBS.get(name, (WIDE.get(name), []))
        self.lines, self.runs = [], collections.Counter()
        self.folder = tempfile.mkdtemp()
        for file in os.listdir(inputs):
            os.link(os.path.join(inputs, file), os.path.join(self.folder, file))

    def result(self, job, extra=(), disable="", stdin=None):
        env = dict(os.environ, LANEWISE_DISABLE=disable)
        done = subprocess.run([self.program] + job + ["-q"] + list(extra), cwd=self.folder, env=env, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        if done.returncode != 0:
            return "exit %d: %s" % (done.returncode, done.stderr.decode().strip())
        text = hashlib.sha256()
        for name in sorted(os.listdir(self.folder)):
            if not name.startswith("out."):
                continue
            with open(os.path.join(self.folder, name), "rb") as file:
                body = file.read()
            if name.endswith(".sam"):
                body = b"".join(l for l in body.splitlines(True) if not l.startswith(b"@PG"))
            text.update(name.encode() + body)
            os.unlink(os.path.join(self.folder, name))
        return text.hexdigest()

    def compare(self, what, got, want):
        if got == want:
            self.passed += 1
        else:
            self.failed += 1
            self.lines.append("FAILED %s, %s: %s" % (self.name, what, got if got.startswith("exit") else "other bytes"))

    def run(self):
        want = self.result(self.job, ["--backend", "scalar"])
        if want.startswith("exit"):
            self.compare("scalar", want, "a result")
            return self
        backends = usable(self.program, self.job[0])
        if self.name in WIDE:
            for backend in backends[1:]:
                self.compare(backend, self.result(self.job, ["--backend", backend]), want)
            self.lines.append("%s: %s" % (self.name, " ".join(backends)))
            return self
        for backend in backends:
            if backend == "cpu":
                settings = [(threads, [], disable) for disable in SETS for threads in (("1", "2", "5") if not disable else ("2",))]
                settings += [("2", self.more, "")] if self.more == SMALL else []
            elif backend == "scalar":
                settings = [("2", [], "")]
            else:
                settings = [(threads, more, "") for threads in ("1", "2", "5") for more in ([[], self.more] if self.more else [[]])]
            for threads, more, disable in settings:
                for _ in range(self.repeats if backend != "scalar" else 1):
                    got = self.result(self.job, ["--backend", backend, "-t", threads] + more, disable)
                    self.runs[backend] += 1
                    self.compare("%s, -t %s %s, without '%s'" % (backend, threads, " ".join(more), disable), got, want)
        self.compare("again", self.result(self.job), want)
        at = 2 if self.job[0] in ("align", "realign") else 1
        if self.job[0] in ("align", "pairs", "realign", "apsp"):
            with open(os.path.join(self.folder, self.job[at]), "rb") as file:
                text = file.read()
            piped = self.result(self.job[:at] + ["-"] + self.job[at + 1:], (), "", text)
            self.compare("from a pipe", piped, want)
        self.lines.append("%s: %s" % (self.name, ", ".join("%s %d" % pair for pair in self.runs.items())))
        return self

    def again(self, suffix):
        job = ["align", "ref.fa", "reads.fq", "-o", "out." + suffix]
        want = self.result(job, ["-t", "2"])
        self.compare("again", self.result(job, ["-t", "2"]), want)
        return self


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    program, started = os.path.abspath(args.program), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        faults.inputs(folder)
        more_inputs(program, folder)
        rows = [Matrix(program, folder, name, args.repeats) for name in (*JOBS, *WIDE) if args.only in name]
        files = [Matrix(program, folder, "align, " + suffix, 1) for suffix in ("bam", "cram")]
        known = usable(program, "pairs") + usable(program, "layer")
        skipped = [b for b in ("cuda-dpx", "cuda-half2", "cuda-int", "cuda-tensor", "cuda-dp4a") if b not in known]
        print("".join("skipped: %s, not usable here\n" % b for b in skipped), end="")
        done = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for row in pool.map(lambda row: row.run() if row.job else row.again(row.name.split()[-1]), rows + files):
                print("\n".join(row.lines), end="\n" if row.lines else "", flush=True)
                shutil.rmtree(row.folder)
                done.append(row)
    failed = sum(row.failed for row in done)
    print("determinism: %d comparisons in %.0f s" % (sum(row.passed for row in done) + failed, time.monotonic() - started))
    print("cases: %d passed, %d failed, %d skipped" % (sum(row.passed for row in done), failed, len(skipped)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
