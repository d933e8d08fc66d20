#!/usr/bin/env python3
"""The same input gives the same bytes: every command on every backend that can run here, on every instruction set,
with 1, 2 and 5 threads, from a file and from a pipe, and twice; and every mode, preset, gap scheme and form of output
of align, pairs and realign on every backend, from larger inputs. @PG lines, which quote the command line, are left
out of SAM; BAM and CRAM are compared as the SAM that they hold and, between runs of one command line, byte by byte.
Rows for a GPU are skipped, by name, where there is none.

    run.py --program BUILD/lanewise"""
import argparse
import hashlib
import os
import random
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


class Matrix:
    def __init__(self, program, folder):
        self.program, self.folder, self.passed, self.failed, self.skipped = program, folder, 0, 0, 0

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
        """Rows that the program itself calls usable; a row that then fails is a failure."""
        done = subprocess.run([self.program, command, "--backend", "list"], stdout=subprocess.PIPE, text=True, check=True)
        lines = [line.split() for line in done.stdout.splitlines()]
        return [row[0] for row, state in zip(lines[::2], lines[1::2]) if state[0].startswith("usable")]

    def wide(self):
        backends = {command: self.usable(command) for command in ("align", "realign", "pairs")}
        for name, job in WIDE.items():
            want = self.result(job, ["--backend", "scalar"])
            if want.startswith("exit"):
                self.compare(name, want, "a result")
            for backend in backends[job[0]][1:]:
                self.compare("%s, %s" % (name, backend), self.result(job, ["--backend", backend]), want)
        print("%d jobs of larger inputs: %s" % (len(WIDE), " ".join(backends["pairs"])))
        for backend in ("cuda-dpx", "cuda-half2", "cuda-int"):
            if backend not in backends["pairs"]:
                print("skipped: %s, not usable here" % backend)
                self.skipped += 1

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
        wide(folder)
        subprocess.run([program, "align", "ref.fa", "reads.fq", "-q", "-o", "in.sam"], cwd=folder, check=True)
        # gaps so dear that realign finds better ones
        subprocess.run([program, "align", "wref.fa", "reads.fa", "-O", "30", "-E", "3", "-q", "-o", "placed.sam"],
                       cwd=folder, check=True)
        matrix = Matrix(program, folder)
        matrix.run()
        matrix.wide()
    print("cases: %d passed, %d failed, %d skipped" % (matrix.passed, matrix.failed, matrix.skipped))
    return 1 if matrix.failed else 0


if __name__ == "__main__":
    sys.exit(main())
