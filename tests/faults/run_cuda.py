#!/usr/bin/env python3
"""Runs small jobs of every command on every GPU backend while a CUDA call fails: the n-th one, or all from the n-th on;
the n-th allocation, on either side; device memory that ends half way, whether the device says so beforehand or not. After each, either
the result is there and right, or: exit code 1, one line that says why, no file that was not there before, and nothing
of the device's kept (inject_cuda.c counts memory, streams and events). On a real GPU also signals while kernels run,
and many processes at once.

    run_cuda.py --program BUILD/tests/lanewise-faults [--pretend] [--every N] [--only REGEX] [--parts matrix,hostile,faults,signals,together]

--pretend needs no GPU: kernels do nothing there, so that results are compared with those of an undisturbed run alike.
--every N takes every N-th place only. The last line counts cases."""
import argparse
import collections
import concurrent.futures
import gzip
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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "infer"))
import hostile_gpu  # noqa: E402
import run as faults  # noqa: E402
import tiny_onnx as onnx  # noqa: E402

ALIGN, PATHS, INFER = ("cuda-dpx", "cuda-half2", "cuda-int"), ("cuda-dpx", "cuda-int"), ("cuda-tensor", "cuda-dp4a", "cuda-int")
JOBS = {  # arguments, backends
    "align": (["align", "ref.fa", "reads.fq", "-N", "1", "-o", "out.bam"], ALIGN),
    "pairs": (["pairs", "a.fa", "b.fa", "-o", "out.tsv"], ALIGN + ("auto",)),
    "pairs, scores": (["pairs", "a.fa", "b.fa", "--scores-only", "-o", "out.tsv"], ALIGN[:1]),
    "pairs, two prices": (["pairs", "a.fa", "b.fa", "-A", "2", "-O", "4,24", "-E", "2,1", "-o", "out.tsv"], ALIGN[:1]),
    "realign": (["realign", "ref.fa", "in.bam", "-o", "out.bam"], ALIGN),
    "search": (["search", "query.fa", "db.fa", "-o", "out.tsv"], ALIGN + ("auto",)),
    "search, filter": (["search", "query.fa", "db.fa", "--gapless-filter", "-o", "out.tsv"], ALIGN[:1]),
    "apsp": (["apsp", "graph.tsv", "-o", "out.npy", "--next"], PATHS + ("auto",)),
    "apsp, pieces": (["apsp", "wide.tsv", "--gpu-mem", "4M", "-o", "out.npy"], PATHS[:1]),
    "infer": (["infer", "model.onnx", "--input", "fx.npy", "--output", "out.npy"], INFER),
    "infer, batches": (["infer", "letters.onnx", "--fasta", "db.fa", "--encode", "onehot:ACGT", "--window", "9", "--batch", "3",
                        "--output", "out.npy"], INFER[:1]),
    # the same shapes again and again: a CUDA graph
    "infer, reads": (["infer", "reads.onnx", "--reads", "reads.fq", "--encode", "onehot:ACGT", "--window", "40", "--batch", "8", "--output",
                      "out.npy"], INFER[:1]),
    "layer": (["layer", "linear", "--input", "x=x.npy", "--input", "x-scale=0.02", "--input", "w=w.npy", "--input", "w-scale=0.01",
               "--input", "y-scale=0.5", "-o", "out.npy"], INFER + ("auto",)),
    "layer, softmax": (["layer", "softmax", "--input", "x=fx.npy", "-o", "out.npy"], INFER[:1]),
    "layer, convolution": (["layer", "conv2d", "--input", "x=image.npy", "--input", "x-scale=0.02", "--input", "w=kernel.npy", "--input",
                            "w-scale=0.01", "--input", "y-scale=0.5", "-o", "out.npy"], INFER[:1]),
    "layer, recurrent": (["layer", "lstm-int8", "--input", "x=steps.npy", "--input", "w=lw.npy", "--input", "r=lr.npy", "--input", "w-scale=0.01",
                          "--input", "r-scale=0.02", "-o", "out.npy"], INFER[:1]),
    "devices": (["devices"], (None,)),
}


def inputs(folder, program):
    faults.inputs(folder)
    draw = random.Random(3)
    for name, kind, shape in (("x", "|u1", (33, 96)), ("w", "|i1", (50, 96)), ("image", "|u1", (2, 8, 13, 11)),
                              ("kernel", "|i1", (12, 8, 3, 3)), ("fx", "<f4", (12, 96)), ("steps", "<f4", (3, 2, 6)),
                              ("lw", "|i1", (1, 6, 20)), ("lr", "|i1", (1, 5, 20))):
        size = 4 if kind == "<f4" else 1
        for n in shape:
            size *= n
        data = draw.randbytes(size)
        if kind == "<f4":
            data = b"".join(onnx.floats(b / 64 - 2) for b in data[::4])
        faults.npy("%s/%s.npy" % (folder, name), kind, shape, data)
    t = onnx
    constants = [t.tensor("w1", t.INT8, [96, 40], draw.randbytes(3840)), t.tensor("scale", t.FLOAT, [], t.floats(0.03)),
                 t.tensor("zero", t.UINT8, [], bytes([128])), t.tensor("none", t.INT8, [], bytes([0]))]
    nodes = [t.node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
             t.node("QLinearMatMul", ["q", "scale", "zero", "w1", "scale", "none", "scale", "zero"], ["h"]),
             t.node("DequantizeLinear", ["h", "scale", "zero"], ["d"]), t.node("Softmax", ["d"], ["y"])]
    faults.write(folder + "/model.onnx", t.model(nodes, [t.value("x", t.FLOAT, [12, 96])], [t.value("y", t.FLOAT, [12, 40])], constants))
    faults.write(folder + "/letters.onnx", onnx.mean_of_letters())
    constants[1:2] = [t.tensor("scale", t.FLOAT, [], t.floats(0.02)), t.tensor("w", t.INT8, [16, 4, 5], draw.randbytes(320))]
    nodes = [t.node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
             t.node("QLinearConv", ["q", "scale", "zero", "w", "scale", "none", "scale", "zero"], ["h"]),
             t.node("DequantizeLinear", ["h", "scale", "zero"], ["d"]), t.node("Relu", ["d"], ["y"])]
    faults.write(folder + "/reads.onnx", t.model(nodes, [t.value("x", t.FLOAT, ["n", 4, 40])], [t.value("y", t.FLOAT, ["n", 16, 36])], constants))
    faults.write(folder + "/wide.tsv", "".join("v%d\tv%d\t%d\n" % (draw.randrange(900), draw.randrange(900), draw.randrange(1, 50))
                                               for _ in range(5000)))
    subprocess.run([program, "align", "ref.fa", "reads.fq", "-o", "in.bam", "-q", "--backend", "cpu"], cwd=folder, check=True)


def told(line):
    """What a line of inject_cuda.c's says: exit code, numbers, what was not given back."""
    code, calls, allocations, peak, left = line.rstrip("\n").split("\t")
    return int(code), {"calls": int(calls), "allocations": int(allocations), "peak": int(peak)}, left.strip()


def options(job, backend):
    if job[0] == "devices":
        return []
    return ["-q", "-t", "2", "--backend", backend]


def renamed(job, i):
    """The outputs of the i-th job."""
    return ["r%05d%s" % (i, w[3:]) if w.startswith("out.") else w for w in job]


def without_names(name, data, folder, mark):
    """Headers name the place of the reference, and the output."""
    data = gzip.decompress(data) if name.endswith(".bam") else data
    return data.replace(folder.encode(), b"").replace(mark.encode(), b"out")


def same_arrays(one, other):
    """Two .npy files: the same bytes, but floats up to their last bits."""
    if one == other or one is None or other is None or len(one) != len(other) or one[:128] != other[:128] or b"<f4" not in one[:128]:
        return one == other
    at = 10 + int.from_bytes(one[8:10], "little")
    n = (len(one) - at) // 4
    for a, b in zip(struct.unpack("<%df" % n, one[at:]), struct.unpack("<%df" % n, other[at:])):
        if a != b and not (math.isnan(a) and math.isnan(b)) and not math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5):
            return False
    return True


class Run:
    """One process with one fault, in a folder of its own."""
    def __init__(self, args, source, job, fault=None):
        self.args, self.source, self.count = args, source, 0
        self.command = [args.program] + renamed(job, 0)
        self.env = dict(os.environ)
        if args.pretend:
            self.env["LW_CUDA_PRETEND"] = "1"
        if fault and fault.split(":")[0] in ("host", "thread"):
            self.env.update(LD_PRELOAD=args.inject, LW_FAULT=fault.replace("host", "memory"))
        elif fault:
            self.env["LW_CUDA_FAULT"] = fault

    def go(self):
        folder = tempfile.mkdtemp()
        try:
            for name in os.listdir(self.source):
                os.link(os.path.join(self.source, name), os.path.join(folder, name))
            tell = folder + ".tell"
            self.env.update(TMPDIR=folder, LW_CUDA_TELL=tell, LW_FAULT_COUNT=folder + ".count")
            try:
                done = subprocess.run(self.command, cwd=folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=self.args.limit)
            except subprocess.TimeoutExpired:
                self.code = None
                return self
            self.code, self.out, self.err = done.returncode, done.stdout, done.stderr.decode(errors="replace")
            given = set(os.listdir(self.source))
            self.made = sorted(n for n in os.listdir(folder) if n not in given)
            self.bytes = {}
            for name in self.made:
                with open(os.path.join(folder, name), "rb") as file:
                    data = file.read()
                self.bytes["out" + name[6:]] = without_names(name, data, folder, "r00000")
            self.told, self.left = {}, ""
            if os.path.exists(tell):
                with open(tell) as file:
                    _, self.told, self.left = told(file.read())
                os.unlink(tell)
            if os.path.exists(folder + ".count"):
                with open(folder + ".count") as file:
                    self.count = int(file.read())
                os.unlink(folder + ".count")
        finally:
            shutil.rmtree(folder)
        return self


class Result:
    pass


def run_list(args, source, items):
    """Many jobs with one fault each, [(arguments, fault)], by one process, or by as many as die or hang; [Result]."""
    folder, results = tempfile.mkdtemp(), []
    names = os.listdir(source)
    for name in names:
        os.link(os.path.join(source, name), os.path.join(folder, name))
    env = dict(os.environ, TMPDIR=folder, LW_CUDA_JOBS=folder + "/list", LW_CUDA_JOB_SECONDS=str(args.limit))
    if args.pretend:
        env["LW_CUDA_PRETEND"] = "1"
    read = lambda name: open(os.path.join(folder, name), "rb").read() if os.path.exists(os.path.join(folder, name)) else b""
    while len(results) < len(items):
        first = len(results)
        with open(folder + "/list", "w") as file:
            for i, (job, fault) in enumerate(items[first:], first):
                file.write("\t".join([fault or "-", "o%05d" % i, "e%05d" % i] + renamed(job, i)) + "\n")
        done = subprocess.run([args.program], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = read("list.done").decode().splitlines()
        if os.path.exists(folder + "/list.done"):
            os.unlink(folder + "/list.done")
        for line in lines + [None] * (len(lines) < len(items) - first):
            i, r = len(results), Result()
            results.append(r)
            r.code, r.told, r.left = (None if done.returncode in (-signal.SIGALRM, 128 + signal.SIGALRM) else done.returncode, {}, "") if line is None else told(line)
            mark = "r%05d" % i
            r.out, r.err = read("o%05d" % i), read("e%05d" % i).decode(errors="replace")
            r.made = sorted(n for n in os.listdir(folder) if n.startswith(mark))
            r.bytes = {}
            for name in r.made:
                data = read(name)
                r.bytes["out" + name[6:]] = without_names(name, data, folder, mark)
            for name in r.made + ["o%05d" % i, "e%05d" % i]:
                if os.path.exists(os.path.join(folder, name)):
                    os.unlink(os.path.join(folder, name))
    left = [n for n in os.listdir(folder) if n not in names and n != "list"]
    if left:
        results[-1].made = results[-1].made + left
    shutil.rmtree(folder)
    return results


class Faults:
    def __init__(self, args, source):
        self.args, self.source = args, source
        self.table = collections.OrderedDict()
        self.failed = 0
        self.messages = collections.Counter()

    def wrong(self, kind, label, what, run=None):
        self.failed += 1
        self.table.setdefault(kind, [0, 0, 0, 0])[3] += 1
        if self.failed <= self.args.show:
            print("FAILED %s: %s" % (label, what))
            if run is not None and run.code is not None:
                print("  exit %s\n  %s" % (run.code, run.err.strip()[:500]), flush=True)

    def judge(self, kind, label, run, want):
        row = self.table.setdefault(kind, [0, 0, 0, 0])
        row[0] += 1
        if run.code is None:
            return self.wrong(kind, label, "hangs")
        errors = [l for l in run.err.splitlines() if l.startswith("lanewise ") and ": warning: " not in l]
        if run.code == 0:
            row[2] += 1
            if errors:
                self.wrong(kind, label, "exit 0 with an error", run)
            # half of the pairs by a GPU that computes nothing, half by the CPU: neither result
            elif self.args.pretend and label.startswith("pairs") and (kind in ("memory", "limit", "squeeze") or "going on with" in run.err):
                pass
            elif want and not any(run.bytes == w.bytes and run.out == w.out for w in want):
                self.wrong(kind, label, "exit 0, but the result differs", run)
        elif run.code == 1:
            row[1] += 1
            if len(errors) != 1:
                self.wrong(kind, label, "%d lines of error" % len(errors), run)
            elif run.made:
                self.wrong(kind, label, "left behind %s" % run.made, run)
            elif kind not in ("host", "thread") and not re.search(r"CUDA|GPU|device|memory|cuBLAS|backend", errors[0]):
                self.wrong(kind, label, "the error does not say that it was the GPU", run)
            self.messages[re.sub(r"\d+", "N", errors[0] if errors else "")] += 1
        else:
            self.wrong(kind, label, "died", run)
        if run.left:
            self.wrong(kind, label, "not given back: %s" % run.left, run)

    def places(self, n):
        step = max(1, -(-n // self.args.most)) * self.args.every
        return range(1, n + 1, step)

    def all(self):
        names = [(name, job + options(job, backend), backend) for name, (job, backends) in JOBS.items() for backend in backends
                 if re.search(self.args.only, "%s %s" % (name, backend))]
        pool = concurrent.futures.ThreadPoolExecutor(self.args.jobs)
        wants = run_list(self.args, self.source, [(job, None) for _, job, _ in names])
        cpu = run_list(self.args, self.source, [([w for w in JOBS[name][0] if w not in ("--gpu-mem", "4M")] + options(job, "cpu"), None) for name, job, _ in names])
        kinds, plan, single = self.args.kinds.split(","), [], []
        for (name, job, backend), want, right in zip(names, wants, cpu):
            label = "%s, %s" % (name, backend)
            if want.code != 0:
                self.wrong("undisturbed", label, "does not run", want)
                continue
            if want.left:
                self.wrong("undisturbed", label, "not given back: %s" % want.left, want)
            print("%s: %d calls, %d allocations, %d bytes" % (label, want.told["calls"], want.told["allocations"], want.told["peak"]))
            # @PG lines quote the command line; floats differ in their last bits
            if not self.args.pretend and not name.startswith(("align", "realign", "devices", "infer", "layer, softmax")) and want.bytes != right.bytes:
                self.wrong("undisturbed", label, "differs from the CPU's result", want)
            # what a GPU's memory does not hold the CPU does: on a real GPU that is the same result
            good = None if name == "devices" else [want, right] if self.args.pretend else [want]
            for kind in kinds:
                if kind in ("call", "lost"):
                    places = self.places(want.told["calls"])
                elif kind == "memory":
                    places = self.places(want.told["allocations"])
                elif kind in ("limit", "squeeze"):
                    places = [want.told["peak"] * k // 16 for k in range(0, 16, self.args.coarse)]
                elif self.args.inject:
                    n = Run(self.args, self.source, job, kind + ":0").go().count
                    single += [(kind, label, "%s:%d" % (kind, place), job, good) for place in self.places(n)]
                    places = []
                else:
                    places = []
                plan += [(kind, label, "%s:%d" % (kind, place), job, good) for place in places]
        random.Random(1).shuffle(plan)  # what there is no time for is missing everywhere a little
        end, size, left_out = time.monotonic() + self.args.until, self.args.together, 0

        def some(items):
            return run_list(self.args, self.source, [(i[3], i[2]) for i in items]) if time.monotonic() < end else [None] * len(items)

        parts = [plan[i:i + size] for i in range(0, len(plan), size)]
        runs = [run for part in pool.map(some, parts) for run in part]
        runs += pool.map(lambda i: Run(self.args, self.source, i[3], i[2]).go(), single)
        for (kind, label, fault, _, good), run in zip(plan + single, runs):
            if run is None:
                left_out += 1
            else:
                self.judge(kind, "%s, %s" % (label, fault), run, good)
        if left_out:
            print("%d of %d places were not tried: no time was left" % (left_out, len(plan)))

    def hostile(self):
        """Models that lead nowhere good: every backend says no, or gives what scalar gives."""
        with tempfile.TemporaryDirectory() as source:  # each run of the other parts links all that stands in theirs
            self.hostile_in(source)

    def hostile_in(self, source):
        items = []
        for name, model, inputs in hostile_gpu.models():
            if not re.search(self.args.only, name):
                continue
            faults.write("%s/h.%s.onnx" % (source, name), model)
            words = ["infer", "h.%s.onnx" % name, "--output", "out.npy", "-q", "-t", "2"]
            for letter, array in inputs.items():
                faults.write("%s/h.%s.%s.npy" % (source, name, letter), array)
                words += ["--input", "%s=h.%s.%s.npy" % (letter, name, letter)]
            items.append((name, words))
        slices = [(backend, items[i::4]) for i in range(4) for backend in INFER + ("cpu", "scalar")]
        runs = collections.defaultdict(dict)
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            done = pool.map(lambda one: run_list(self.args, source, [(words + ["--backend", one[0]], None) for _, words in one[1]]), slices)
            for (backend, some), results in zip(slices, done):
                runs[backend].update((name, run) for (name, _), run in zip(some, results))
        others = collections.Counter()
        for backend in ("cpu",) + INFER:
            kind = "hostile models, " + backend
            row = self.table.setdefault(kind, [0, 0, 0, 0])
            for name, _ in items:
                run, right = runs[backend][name], runs["scalar"][name]
                row[0] += 1
                errors = [l for l in run.err.splitlines() if l.startswith("lanewise ") and ": warning: " not in l]
                if run.code is None or run.code < 0:
                    self.wrong(kind, name, "hangs" if run.code is None else "died", run)
                elif run.code not in (0, 1):
                    self.wrong(kind, name, "exit %d" % run.code, run)
                elif len(errors) != run.code or any(ord(c) < 32 for c in run.err.replace("\n", "")):
                    self.wrong(kind, name, "%d lines of error" % len(errors), run)
                elif re.search(r"CUDA|internal|device context", run.err):
                    self.wrong(kind, name, "the GPU failed", run)
                elif run.code != right.code:
                    self.wrong(kind, name, "exit %d, scalar %d" % (run.code, right.code), run if run.code else right)
                elif run.left:
                    self.wrong(kind, name, "not given back: %s" % run.left, run)
                elif run.code == 1 and run.made:
                    self.wrong(kind, name, "left behind %s" % run.made)
                elif run.code == 0 and not (self.args.pretend and backend != "cpu") and not same_arrays(run.bytes.get("out.npy"), right.bytes.get("out.npy")):
                    self.wrong(kind, name, "another result than scalar's")
                else:
                    row[2 - run.code] += 1
                    if run.err != right.err:
                        others[backend] += 1
        for backend, n in others.items():
            print("%s: %d messages in other words than scalar's" % (backend, n))

    def matrix(self):
        """The jobs of tests/determinism on every backend, with several numbers of threads and batches, again and again."""
        import importlib.util
        spec = importlib.util.spec_from_file_location("determinism", os.path.join(os.path.dirname(HERE), "determinism", "run.py"))
        determinism = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(determinism)
        determinism.more_inputs(self.args.program, self.source)
        items = []
        table = dict(determinism.JOBS)
        table.update((name, (job, [])) for name, job in determinism.WIDE.items())
        for name, (job, more) in table.items():
            backends = INFER if job[0] in ("layer", "infer") else PATHS if job[0] == "apsp" else ALIGN
            for backend in ("cpu",) + backends:
                for threads in ("1", "2", "5"):
                    for extra in [[]] + ([more] if more and backend != "cpu" else []):
                        items += [(name, backend, job + ["-q", "-t", threads, "--backend", backend] + extra)] * self.args.repeats
        parts = [items[i::self.args.jobs] for i in range(self.args.jobs)]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            runs = list(pool.map(lambda some: run_list(self.args, self.source, [(i[2], None) for i in some]), parts))
        plain = lambda run: {n: b"\n".join(l for l in b.split(b"\n") if not l.startswith(b"@PG")) if n.endswith(".sam") else b
                             for n, b in run.bytes.items()}
        first = {}
        done = [one for some, results in zip(parts, runs) for one in zip(some, results)]
        for (name, backend, job), run in sorted(done, key=lambda one: one[0][1] != "cpu"):  # the CPU's first
            kind = "same bytes, " + backend
            row = self.table.setdefault(kind, [0, 0, 0, 0])
            row[0] += 1
            if run.code != 0:
                self.wrong(kind, " ".join(job), "failed", run)
            elif plain(run) != first.setdefault(name, plain(run)) and not self.args.pretend:
                self.wrong(kind, " ".join(job), "other bytes")
            else:
                row[2] += 1

    # --- on a real GPU ---------------------------------------------------------------------------------------
    def large(self, folder):
        """Inputs whose kernels run for seconds."""
        def letters(n, alphabet):
            return os.urandom(n).translate(bytes(alphabet[i % len(alphabet)] for i in range(256)))
        acgt, protein = b"ACGT", b"ACDEFGHIKLMNPQRSTVWY"
        with open(folder + "/large.fa", "wb") as file:
            file.write(b">large\n" + letters(30_000_000, acgt) + b"\n")
        with open(folder + "/many.fa", "wb") as file:
            for i in range(40_000):
                file.write(b">r%d\n%s\n" % (i, letters(150, acgt)))
        with open(folder + "/proteins.fa", "wb") as file:
            for i in range(100_000):
                file.write(b">p%d\n%s\n" % (i, letters(400, protein)))
        with open(folder + "/queries.fa", "wb") as file:
            for i in range(2_000):
                file.write(b">q%d\n%s\n" % (i, letters(400, protein)))
        for name in "cd":
            with open(folder + "/%s.fa" % name, "wb") as file:
                for i in range(6):
                    file.write(b">%d\n%s\n" % (i, letters(600_000, acgt)))
        draw = random.Random(1)
        with open(folder + "/large.tsv", "w") as file:
            for _ in range(200_000):
                file.write("%d\t%d\t%d\n" % (draw.randrange(40_000), draw.randrange(40_000), draw.randrange(1, 5000)))

    def signals(self):
        """Signals while kernels run, and at moments from the start of small jobs to their end; then the same again, whole."""
        long = {
            "align": ["align", "large.fa", "many.fa", "-o", "out.bam"],
            "pairs": ["pairs", "c.fa", "d.fa", "-o", "out.tsv"],
            "search": ["search", "queries.fa", "proteins.fa", "-o", "out.tsv"],
            "apsp": ["apsp", "large.tsv", "--dtype", "int64", "-o", "out.npy"],
            "infer": ["infer", "reads.onnx", "--reads", "many.fa", "--encode", "onehot:ACGT", "--window", "40", "--step", "1",
                      "--batch", "1", "--output", "out.npy"],
        }
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(self.source):
                os.link(os.path.join(self.source, name), os.path.join(folder, name))
            self.large(folder)
            short = {name: JOBS[name][0] for name in ("align", "pairs", "search", "apsp", "infer")}
            cases = [(name, job, short[name]) for name, job in long.items() if re.search(self.args.only, name)]
            with concurrent.futures.ThreadPoolExecutor(min(len(cases) or 1, self.args.jobs)) as pool:
                for lines in pool.map(lambda case: self.signals_of(folder, *case), cases):
                    print("\n".join(lines))

    def signals_of(self, source, name, job, small):
        lines = []
        with tempfile.TemporaryDirectory() as folder:
            for file in os.listdir(source):
                os.link(os.path.join(source, file), os.path.join(folder, file))
            before = set(os.listdir(folder))
            command = [self.args.program] + small + ["-q", "--backend", "cuda"]
            go = lambda: subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=dict(os.environ, TMPDIR=folder))
            started, first = time.monotonic(), go()
            whole, length = self.contents(folder, set(os.listdir(folder)) - before), time.monotonic() - started
            if first.returncode != 0 or not whole:
                self.wrong("signals", name, "does not run: %s" % first.stderr.decode(errors="replace")[:300])
                return lines
            for n in whole:
                os.unlink(os.path.join(folder, n))
            kinds = ((signal.SIGINT, 130), (signal.SIGKILL, -9), (signal.SIGTERM, 143))
            moments = [(job, number, code, delay) for (number, code), delay in
                       zip((kinds[0], kinds[1], kinds[2], kinds[0]), (1.2, 1.5, 1.8, 2.5))]
            moments += [(small, number, code, length * k / 8) for k in range(9) for number, code in kinds]
            for words, number, code, delay in moments[::self.args.every]:
                lines += self.signal(folder, before, words, number, code, delay, whole, name)
                if number == signal.SIGKILL:
                    # what was left behind is in nobody's way
                    again = go()
                    if again.returncode != 0 or self.contents(folder, whole) != whole:
                        self.wrong(number.name, name, "the next run: exit %d, other bytes" % again.returncode)
                for n in set(os.listdir(folder)) - before:
                    os.unlink(os.path.join(folder, n))
        return lines

    @staticmethod
    def contents(folder, names):
        found = {}
        for name in names:
            if os.path.exists(os.path.join(folder, name)):
                with open(os.path.join(folder, name), "rb") as file:
                    found[name] = file.read()
        return found

    def signal(self, folder, before, words, number, code, delay, whole, name):
        """One signal to one process after `delay` seconds."""
        label = "%s, %s after %.2f s" % (name, number.name, delay)
        row = self.table.setdefault(number.name, [0, 0, 0, 0])
        row[0] += 1
        child = subprocess.Popen([self.args.program] + words + ["-q", "--backend", "cuda"], cwd=folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=folder))
        time.sleep(delay)
        child.send_signal(number)
        sent = time.monotonic()
        try:
            _, text = child.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            self.wrong(number.name, label, "does not stop")
            return []
        took = time.monotonic() - sent
        made = [n for n in os.listdir(folder) if n not in before]
        final = [n for n in made if ".tmp." not in n]
        if child.returncode == 0:
            row[2] += 1  # it had ended before
        elif child.returncode == -number and delay < 0.1:
            row[1] += 1  # it had not begun
        elif child.returncode != code:
            self.wrong(number.name, label, "exit code %d: %s" % (child.returncode, text.decode(errors="replace")[:200]))
        else:
            row[1] += 1
            if number != signal.SIGKILL and made:
                self.wrong(number.name, label, "left behind %s" % made)
            if number != signal.SIGKILL and took > 1:
                self.wrong(number.name, label, "took %.1f s to stop" % took)
        if any(whole.get(n) != data for n, data in self.contents(folder, final).items()):
            self.wrong(number.name, label, "a final file that is not whole: %s" % final)
        return ["%s: exit %d, %.2f s after it" % (label, child.returncode, took)]

    def together(self):
        """Many processes at once on one GPU give one answer."""
        job = ["pairs", "a.fa", "b.fa", "-o", "out.tsv"]
        want = Run(self.args, self.source, job + options(job, "cpu")).go()
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            runs = list(pool.map(lambda i: Run(self.args, self.source, job + options(job, ALIGN[i % 3])).go(), range(64)))
        for i, run in enumerate(runs):
            self.judge("64 processes at once", "process %d" % i, run, [want])
            if run.code not in (0, None):
                self.wrong("64 processes at once", "process %d" % i, "failed", run)
        print("64 processes at once: %.1f s" % (time.monotonic() - started))

    def summary(self, seconds):
        print("%-20s %8s %15s %12s %8s" % ("fault", "tried", "clean failures", "right result", "wrong"))
        for kind, (tried, clean, right, wrong) in self.table.items():
            print("%-20s %8d %15d %12d %8d" % (kind, tried, clean, right, wrong))
        tried = sum(row[0] for row in self.table.values())
        if self.args.messages:
            for message, n in self.messages.most_common():
                print("%6d  %s" % (n, message))
        print("CUDA faults: %d tried in %.0f s" % (tried, seconds))
        print("cases: %d passed, %d failed, 0 skipped" % (max(0, tried - self.failed), self.failed))


def unwrapped(library):
    """CUDA calls of the library that the layer lets through."""
    with open(os.path.join(HERE, "inject_cuda.c")) as file:
        known = set(re.findall(r"^(?:CALL\w*\(|/\* WRAPPED )(_*cuda\w+)", file.read(), re.M))
    text = subprocess.run(["nm", "-u", library], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    used = set(re.findall(r"\bU (_*cuda\w+)", text))
    return sorted(used - known - {"cudaGetErrorString", "__cudaPopCallConfiguration", "__cudaPushCallConfiguration", "__cudaRegisterFatBinary",
                                  "__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary", "__cudaRegisterVar", "__cudaInitModule"})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", help="whose CUDA calls must all be known to the layer")
    parser.add_argument("--inject", help="libinject.so: the n-th allocation of the host's and the n-th thread fail, too; with --pretend")
    parser.add_argument("--pretend", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--most", type=int, default=400, help="places of one fault in one job; beyond, they are left out evenly")
    parser.add_argument("--coarse", type=int, default=1, help="every so many sixteenths of the memory")
    parser.add_argument("--only", default="")
    parser.add_argument("--together", type=int, default=100, help="faults of one process")
    parser.add_argument("--kinds", default="call,lost,memory,limit,squeeze,host,thread")
    parser.add_argument("--parts", default="matrix,hostile,faults,signals,together")
    parser.add_argument("--repeats", type=int, default=3, help="of the same job in the matrix")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=60, help="seconds after which a process hangs")
    parser.add_argument("--until", type=float, default=1e9, help="seconds after which no more faults are tried")
    parser.add_argument("--show", type=int, default=40)
    parser.add_argument("--messages", action="store_true", help="count the messages, too")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    # a real driver allocates in the program's name
    args.inject = os.path.abspath(args.inject) if args.inject and args.pretend else None
    if not args.pretend:
        probe = subprocess.run([args.program, "devices"], stdout=subprocess.PIPE, text=True).stdout
        if "device 0:" not in probe:
            print("SKIPPED: no CUDA device here: faults of the CUDA runtime are tried with --pretend only")
            print("cases: 0 passed, 0 failed, 1 skipped")
            return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as source:
        inputs(source, args.program)
        tried = Faults(args, source)
        for name in unwrapped(args.library) if args.library else []:
            tried.wrong("calls", name, "inject_cuda.c does not know it")
        if not args.pretend and "matrix" in args.parts:
            tried.matrix()
        if "hostile" in args.parts:
            tried.hostile()
        if "faults" in args.parts:
            tried.all()
        if not args.pretend and "signals" in args.parts:
            tried.signals()
        if not args.pretend and "together" in args.parts:
            tried.together()
        tried.summary(time.monotonic() - started)
    return 1 if tried.failed else 0


if __name__ == "__main__":
    sys.exit(main())
