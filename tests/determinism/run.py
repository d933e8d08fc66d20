#!/usr/bin/env python3
"""The same input gives the same bytes: every command on every backend that can run here, on every instruction set,
with 1, 2 and 5 threads, from a file and from a pipe, and twice. @PG lines, which quote the command line, are left
out of SAM; BAM and CRAM are compared as the SAM that they hold and, between runs of one command line, byte by byte.

    run.py --program BUILD/lanewise"""
import argparse
import hashlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "faults"))
import run as faults  # its small inputs

SETS = ("", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon")
JOBS = {
    "align, SAM": ["align", "ref.fa", "reads.fq", "-o", "out.sam", "--secondary", "2"],
    "align, global": ["align", "ref.fa", "reads.fq", "-o", "out.paf", "--mode", "semiglobal"],
    "pairs": ["pairs", "a.fa", "b.fa", "-o", "out.tsv", "--mode", "global"],
    "realign": ["realign", "ref.fa", "in.sam", "-o", "out.sam"],
    "search": ["search", "query.fa", "db.fa", "-o", "out.tsv", "--align"],
    "apsp": ["apsp", "graph.tsv", "-o", "out.npy", "--next"],
    "apsp, routes": ["apsp", "graph.tsv", "-o", "out.tsv", "--stats"],
}


class Matrix:
    def __init__(self, program, folder):
        self.program, self.folder, self.passed, self.failed = program, folder, 0, 0

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
            print("FAILED %s: %s" % (what, got if got.startswith("exit") else "other bytes"))

    def usable(self, command):
        done = subprocess.run([self.program, command, "--backend", "list"], stdout=subprocess.PIPE, text=True)
        names = []
        for line in done.stdout.splitlines():
            words = line.split()
            if words and words[0] in ("scalar", "cpu", "cuda-dpx", "cuda-half2", "cuda-int"):
                runs = subprocess.run([self.program] + JOBS_OF[command] + ["-q", "--backend", words[0]], cwd=self.folder,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                if runs.returncode == 0:
                    names.append(words[0])
        for name in os.listdir(self.folder):
            if name.startswith("out."):
                os.unlink(os.path.join(self.folder, name))
        return names

    def run(self):
        for name, job in JOBS.items():
            want = self.result(job, ["--backend", "scalar"])
            if want.startswith("exit"):
                self.compare(name, want, "a result")
                continue
            backends = self.usable(job[0])
            for backend in backends:
                for disable in SETS if backend == "cpu" else ("",):
                    for threads in ("1", "2", "5") if backend == "cpu" and not disable else ("2",):
                        got = self.result(job, ["--backend", backend, "-t", threads], disable)
                        self.compare("%s, %s, -t %s, without '%s'" % (name, backend, threads, disable), got, want)
            again = self.result(job)
            self.compare("%s, again" % name, again, want)
            at = 2 if job[0] in ("align", "realign") else 1
            with open(os.path.join(self.folder, job[at]), "rb") as file:
                text = file.read()
            if job[0] in ("align", "pairs", "realign", "apsp"):
                piped = self.result(job[:at] + ["-"] + job[at + 1:], (), "", text)
                self.compare("%s, from a pipe" % name, piped, want)
            print("%s: %s" % (name, " ".join(backends)))
        for suffix in ("bam", "cram"):
            job = ["align", "ref.fa", "reads.fq", "-o", "out." + suffix]
            want = self.result(job, ["-t", "2"])
            self.compare("align, %s, again" % suffix, self.result(job, ["-t", "2"]), want)


JOBS_OF = {}
for _job in JOBS.values():
    JOBS_OF.setdefault(_job[0], _job)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    with tempfile.TemporaryDirectory() as folder:
        faults.inputs(folder)
        subprocess.run([program, "align", "ref.fa", "reads.fq", "-q", "-o", "in.sam"], cwd=folder, check=True)
        matrix = Matrix(program, folder)
        matrix.run()
    print("cases: %d passed, %d failed, 0 skipped" % (matrix.passed, matrix.failed))
    return 1 if matrix.failed else 0


if __name__ == "__main__":
    sys.exit(main())
