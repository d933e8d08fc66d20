#!/usr/bin/env python3
"""Runs small jobs of every command while one thing fails: the n-th allocation, thread, write, read, open, rename,
fsync or close (inject.c), a signal that comes in the middle, a full disk, a closed pipe. After each, either the
result is there and right, or: exit code 1 (130, 143 after a signal), one line that says why, and no file that was
not there before.

    run.py --program BUILD/lanewise --inject BUILD/libinject.so [--every N] [--only WORD] [-v]

--every N takes every N-th place only. The last line counts cases."""
import argparse
import collections
import hashlib
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MOST_PLACES = 400  # of one fault in one job: beyond, places are left out evenly


def write(path, text):
    with open(path, "w" if isinstance(text, str) else "wb") as file:
        file.write(text)


def npy(path, dtype, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, shape)
    header = header.ljust(128 - 11) + "\n"
    write(path, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def inputs(folder):
    draw = random.Random(5)
    letters = lambda n: "".join(draw.choice("ACGT") for _ in range(n))
    reference = letters(1500)
    write(folder + "/ref.fa", ">one\n%s\n>two\n%s\n" % (reference, letters(300)))
    reads = []
    for i in range(40):
        at = draw.randrange(1400)
        read = list(reference[at:at + 80])
        read[draw.randrange(len(read))] = "A"
        reads.append("".join(read))
    write(folder + "/reads.fq", "".join("@r%d\n%s\n+\n%s\n" % (i, r, "I" * len(r)) for i, r in enumerate(reads)))
    write(folder + "/a.fa", "".join(">a%d\n%s\n" % (i, r) for i, r in enumerate(reads)))
    write(folder + "/b.fa", "".join(">b%d\n%s\n" % (i, r[:70]) for i, r in enumerate(reads)))
    proteins = ["".join(draw.choice("ACDEFGHIKLMNPQRSTVWY") for _ in range(60)) for _ in range(30)]
    write(folder + "/db.fa", "".join(">p%d\n%s\n" % (i, p) for i, p in enumerate(proteins)))
    write(folder + "/query.fa", "".join(">q%d\n%s\n" % (i, p[5:50]) for i, p in enumerate(proteins[:4])))
    edges = ["v%d\tv%d\t%d" % (draw.randrange(60), draw.randrange(60), draw.randrange(1, 50)) for _ in range(300)]
    write(folder + "/graph.tsv", "\n".join(edges) + "\n")
    npy(folder + "/f.npy", "<f4", (3, 8), struct.pack("<24f", *range(24)))


def jobs(program, folder):
    """name -> arguments"""
    subprocess.run([program, "makedb", "db.fa", "-o", "db.lwdb"], cwd=folder, check=True, capture_output=True)
    subprocess.run([program, "align", "ref.fa", "reads.fq", "-o", "in.bam"], cwd=folder, check=True, capture_output=True)
    layer = ["layer", "softmax", "--input", "x=f.npy", "-o", "out.npy"]
    table = {
        "align-bam": ["align", "ref.fa", "reads.fq", "-o", "out.bam"],
        "align-cram": ["align", "ref.fa", "reads.fq", "-o", "out.cram"],
        "align-sam": ["align", "ref.fa", "reads.fq", "-o", "out.sam"],
        "realign": ["realign", "ref.fa", "in.bam", "-o", "out.bam"],
        "pairs": ["pairs", "a.fa", "b.fa", "-o", "out.tsv"],
        "makedb": ["makedb", "db.fa", "-o", "out.lwdb"],
        "search": ["search", "query.fa", "db.fa", "-o", "out.tsv"],
        "search-lwdb": ["search", "query.fa", "db.lwdb", "-o", "out.tsv"],
        "apsp": ["apsp", "graph.tsv", "-o", "out.npy", "--next"],
        "apsp-text": ["apsp", "graph.tsv", "-o", "out.tsv"],
        "layer": layer,
    }
    model = "/usr/lib/python3/dist-packages/onnx/backend/test/data/node/test_qlinearmatmul_2D/model.onnx"
    for place in (model, model.replace("/usr/lib/python3/dist-packages/onnx/backend/test", "/usr/share/libonnx-testdata")):
        if os.path.exists(place):
            shutil.copy(place, folder + "/model.onnx")
            table["infer-describe"] = ["infer", "model.onnx", "--describe"]
            break
    return table


class Faults:
    def __init__(self, args, folder):
        self.args, self.folder, self.table = args, folder, collections.OrderedDict()
        self.failed = 0

    def files(self):
        return {name: os.stat(os.path.join(self.folder, name)).st_size for name in os.listdir(self.folder)}

    def digest(self, names):
        text = hashlib.sha256()
        for name in sorted(names):
            with open(os.path.join(self.folder, name), "rb") as file:
                text.update(name.encode() + file.read())
        return text.hexdigest()

    def clean(self, before):
        for name in os.listdir(self.folder):
            if name not in before:
                os.unlink(os.path.join(self.folder, name))

    def run(self, job, fault=None, count=None, **more):
        # the CUDA runtime is linked into the program, and its allocations are not the program's
        if job[0] not in ("makedb", "infer"):
            job = job + ["--backend", "cpu"]
        env = dict(os.environ, TMPDIR=self.folder, ASAN_OPTIONS="detect_leaks=0")
        if fault:
            env.update(LD_PRELOAD=self.args.inject, LW_FAULT=fault)
        if count:
            env["LW_FAULT_COUNT"] = count
        return subprocess.run([self.args.program] + job + ["-q"] + ["-t", "2"] * ("--describe" not in job), cwd=self.folder, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **more)

    def wrong(self, kind, name, what, done=None):
        self.failed += 1
        self.table[kind][2] += 1
        print("FAILED %s, %s: %s" % (name, kind, what))
        if done is not None and self.failed < 40:
            print("  exit %s\n  %s" % (done.returncode, done.stderr.decode(errors="replace").strip()[:600]))

    def judge(self, kind, name, place, done, before, expected, must_work=False):
        """One run with a fault: the right result, or a clean failure."""
        row = self.table.setdefault(kind, [0, 0, 0])
        row[0] += 1
        after = self.files()
        made = [n for n in after if n not in before]
        label = "%s at %s" % (name, place)
        errors = [l for l in done.stderr.decode(errors="replace").splitlines()
                  if l.startswith("lanewise ") and ": warning: " not in l]  # htslib may have its say before
        if done.returncode == 0:
            if errors:
                self.wrong(kind, label, "exit 0 with an error", done)
            elif self.digest(made) != expected[0] or done.stdout != expected[1]:
                self.wrong(kind, label, "exit 0, but the result differs", done)
        elif done.returncode == 1:
            row[1] += 1
            if must_work:
                self.wrong(kind, label, "should have gone on", done)
            elif len(errors) != 1:
                self.wrong(kind, label, "%d lines of error" % len(errors), done)
            elif made:
                self.wrong(kind, label, "left behind %s" % made, done)
        else:
            self.wrong(kind, label, "died", done)
        if {n: after.get(n) for n in before} != before:
            self.wrong(kind, label, "an input changed")
        self.clean(before)

    def counted(self, name, job, kinds, before, expected):
        for kind in kinds:
            with tempfile.NamedTemporaryFile() as file:
                self.run(job, kind + ":0", file.name)
                n = int(file.read() or 0)
            self.clean(before)
            # then comes htslib 1.16's, which frees a reference twice when it cannot be read
            if name == "align-cram" and kind in ("read-error", "close"):
                n = min(n, 5 if kind == "read-error" else 1)
            step = max(1, n // MOST_PLACES + (n % MOST_PLACES > 0)) * self.args.every
            for place in range(1, n + 1, step):
                try:
                    done = self.run(job, "%s:%d" % (kind, place))
                except subprocess.TimeoutExpired:
                    self.table.setdefault(kind, [0, 0, 0])
                    self.wrong(kind, "%s at %d" % (name, place), "hangs")
                    self.clean(before)
                    continue
                self.judge(kind, name, place, done, before, expected,
                           must_work=kind.endswith("-short") or kind == "write-again")
                if kind == "read-short":
                    break

    def signals(self, name, job, before, expected):
        """The same job, larger, is stopped by a signal at several moments."""
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            kind = number.name
            row = self.table.setdefault(kind, [0, 0, 0])
            for delay in (0.0, 0.003, 0.008, 0.02, 0.05, 0.1, 0.2)[::self.args.every]:
                more = [] if job[0] == "makedb" else ["--backend", "cpu"]
                child = subprocess.Popen([self.args.program] + job + more + ["-q", "-t", "2"], cwd=self.folder, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         env=dict(os.environ, TMPDIR=self.folder))
                time.sleep(delay)
                child.send_signal(number)
                sent = time.monotonic()
                try:
                    out, text = child.communicate(timeout=20)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.communicate()
                    self.wrong(kind, name, "does not stop")
                    continue
                row[0] += 1
                took = time.monotonic() - sent
                made = [n for n in os.listdir(self.folder) if n not in before]
                final = [n for n in made if ".tmp." not in n and "lanewise" not in n]
                label = "%s after %g s" % (name, delay)
                if child.returncode not in (0, code, -int(number)):
                    self.wrong(kind, label, "exit code %d" % child.returncode)
                elif child.returncode != 0:
                    row[1] += 1
                    # a signal before the handler is there takes the process as it takes any other
                    if number != signal.SIGKILL and made:
                        self.wrong(kind, label, "left behind %s" % made)
                    if number != signal.SIGKILL and took > 1 + 2 * self.args.slow:
                        self.wrong(kind, label, "took %.1f s to stop" % took)
                if final and (self.digest(final) != expected[0]):
                    self.wrong(kind, label, "the final file is not whole")
                self.clean(before)

    def ignored_timer(self, before):
        """The parent ignores and blocks SIGALRM; a run that waits for a silent pipe stops by one signal all the same."""
        def ignore():
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        row = self.table.setdefault("SIGTERM, SIGALRM ignored", [0, 0, 0])
        os.mkfifo(os.path.join(self.folder, "pipe"))
        pipe = os.open(os.path.join(self.folder, "pipe"), os.O_RDWR)
        child = subprocess.Popen([self.args.program, "align", "ref.fa", "pipe", "-o", "out.sam", "-q"], cwd=self.folder, preexec_fn=ignore)
        time.sleep(0.3 + self.args.slow)
        child.send_signal(signal.SIGTERM)
        row[0] += 1
        try:
            code = child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        os.close(pipe)
        os.unlink(os.path.join(self.folder, "pipe"))
        if code == 143:
            row[1] += 1
        else:
            self.wrong("SIGTERM, SIGALRM ignored", "align", "exit code %d" % code)
        self.clean(before)

    def full_disk(self, name, job, before):
        """Everything beyond a few bytes of output fails (file size limit), and /dev/full as the output."""
        for limit in (0, 100):
            def limit_size(limit=limit):
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            done = self.run(job, preexec_fn=limit_size)
            self.judge("file size limit", name, limit, done, before, ("", b""))

    def summary(self, seconds):
        print("%-16s %8s %16s %8s" % ("fault", "tried", "clean failures", "wrong"))
        for kind, (tried, clean, wrong) in self.table.items():
            print("%-16s %8d %16d %8d" % (kind, tried, clean, wrong))
        tried = sum(row[0] for row in self.table.values())
        print("faults: %d tried in %.0f s" % (tried, seconds))
        print("cases: %d passed, %d failed, 0 skipped" % (tried - self.failed, self.failed))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--inject", required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--slow", type=float, default=0, help="the machine is slow: signals may take longer")
    args = parser.parse_args()
    args.program, args.inject = os.path.abspath(args.program), os.path.abspath(args.inject)
    started = time.monotonic()
    kinds = ["memory", "thread", "open", "read-error", "read-short", "read-again", "write-full", "write-broken",
             "write-error", "write-short", "write-again", "rename", "fsync", "close"]
    with tempfile.TemporaryDirectory() as folder:
        inputs(folder)
        faults = Faults(args, folder)
        table = jobs(args.program, folder)
        before = faults.files()
        for name, job in table.items():
            if args.only and args.only not in name:
                continue
            done = faults.run(job)
            if done.returncode != 0:
                print("FAILED %s: does not run: %s" % (name, done.stderr.decode()))
                faults.failed += 1
                continue
            expected = (faults.digest([n for n in os.listdir(folder) if n not in before]), done.stdout)
            faults.clean(before)
            faults.counted(name, job, kinds, before, expected)
            if "-o" in job:
                faults.full_disk(name, job, before)
                faults.signals(name, job, before, expected)
        if not args.only:
            faults.ignored_timer(before)
        faults.summary(time.monotonic() - started)
    return 1 if faults.failed else 0


if __name__ == "__main__":
    sys.exit(main())
