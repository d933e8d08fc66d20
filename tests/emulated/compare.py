#!/usr/bin/env python3
"""Two builds of the program, for two processors, give the same bytes: every command on small inputs and on pieces of
data/. @PG lines, which quote the command line, are left out of SAM; BAM and CRAM are compared as SAM. What differs is
named; each program runs in a folder of its own.

    compare.py PROGRAM OTHER"""
import argparse
import gzip
import os
import random
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
DATA = os.path.join(os.path.dirname(TESTS), "data")
sys.path.insert(0, os.path.join(TESTS, "faults"))
import run as faults  # its small inputs


def fasta(path, records, letters):
    """The first records of a gzipped FASTA file, each cut to so many letters."""
    out = []
    with gzip.open(path, "rt") as text:
        for line in text:
            if line[0] == ">":
                if len(out) == records:
                    break
                out.append([line.strip(), ""])
            else:
                out[-1][1] += line.strip()[:letters - len(out[-1][1])]
    return "".join("%s\n%s\n" % tuple(r) for r in out)


def inputs(folder):
    """Fills the folder with what JOBS name."""
    faults.inputs(folder)
    write = faults.write
    write(folder + "/ce.fa", fasta(DATA + "/ref/ce.fa.gz", 3, 12000))
    with gzip.open(DATA + "/reads/illumina_ce1000.fastq.gz", "rt") as text:
        write(folder + "/ce.fq", "".join(next(text) for _ in range(4 * 60)))
    write(folder + "/prot.fa", fasta(DATA + "/protein/query500.fasta.gz", 5, 400))
    write(folder + "/sprot.fa", fasta(DATA + "/protein/db4000.fasta.gz", 150, 1000))
    draw = random.Random(7)
    edges = lambda weight: "".join("%d\t%d\t%s\n" % (draw.randrange(90), draw.randrange(90), weight()) for _ in range(500))
    write(folder + "/wide.tsv", edges(lambda: draw.randrange(1, 1 << 27)))
    write(folder + "/huge.tsv", edges(lambda: draw.randrange(1, 1 << 50)))
    write(folder + "/real.tsv", edges(lambda: "%.6f" % draw.uniform(0, 3)))
    floats = [draw.gauss(0, 3) for _ in range(8 * 515)] + [-0.0, 1e-40, 3e38, -3e38]
    faults.npy(folder + "/x.npy", "<f4", (len(floats),), struct.pack("<%df" % len(floats), *floats))
    faults.npy(folder + "/rows.npy", "<f4", (8, 515), struct.pack("<%df" % (8 * 515), *floats[:8 * 515]))
    faults.npy(folder + "/w.npy", "|i1", (515, 70), bytes(draw.randrange(256) for _ in range(515 * 70)))
    faults.npy(folder + "/q.npy", "|u1", (8, 515), bytes(draw.randrange(256) for _ in range(8 * 515)))
    faults.npy(folder + "/z.npy", "|i1", (), b"\x05")
    some = lambda n: struct.pack("<%df" % n, *(draw.gauss(0, 1) for _ in range(n)))
    faults.npy(folder + "/sizes.npy", "<f4", (515,), some(515))
    faults.npy(folder + "/steps.npy", "<f4", (20, 2, 30), some(1200))
    faults.npy(folder + "/lw.npy", "<f4", (1, 64, 30), some(64 * 30))
    faults.npy(folder + "/lr.npy", "<f4", (1, 64, 16), some(64 * 16))


SCALES = ["x-scale=0.02", "w-scale=0.01"]
JOBS = [
    ["align", "ce.fa", "ce.fq", "-o", "out.sam", "--secondary", "2"],
    ["align", "ce.fa", "ce.fq", "-o", "out.bam", "-O", "4,24", "-E", "2,1"],
    ["align", "ce.fa", "ce.fq", "-o", "out.paf", "--mode", "semiglobal"],
    ["align", "ref.fa", "reads.fq", "-o", "out.cram"],
    ["realign", "ce.fa", "in.sam", "-o", "out.sam"],
    ["pairs", "a.fa", "b.fa", "-o", "out.tsv", "--mode", "global"],
    ["pairs", "a.fa", "b.fa", "--all", "-o", "out.npy"],
    ["makedb", "sprot.fa", "-o", "out.lwdb"],
    ["search", "prot.fa", "sprot.fa", "-o", "out.tsv", "--align"],
    ["search", "prot.fa", "sprot.fa", "-o", "out.tsv", "--top", "0"],
    ["apsp", "graph.tsv", "-o", "out.npy", "--next"],
    ["apsp", "wide.tsv", "-o", "out.npy", "--next"],
    ["apsp", "huge.tsv", "-o", "out.npy", "--dtype", "int64"],
    ["apsp", "real.tsv", "-o", "out.npy"],
    ["apsp", "real.tsv", "-o", "out.tsv", "--dtype", "float64", "--undirected"],
    ["layer", "matmul-integer", "--input", "x=q.npy", "w=w.npy"],
    ["layer", "matmul", "--input", "x=q.npy", "w=w.npy", "y-scale=0.9", "x-zero=128"] + SCALES,
    ["layer", "linear-dynamic", "--input", "x=rows.npy", "w=w.npy", "w-scale=0.01"],
    ["layer", "linear-rows", "--input", "x=rows.npy", "w=w.npy", "w-scale=0.01"],
    ["layer", "quantize", "--input", "x=x.npy", "y-scale=0.03", "y-zero=z.npy"],
    ["layer", "softmax", "--input", "x=rows.npy"],
    ["layer", "layernorm", "--input", "x=rows.npy", "scale=sizes.npy"],
    ["layer", "lstm", "--input", "x=steps.npy", "w=lw.npy", "r=lr.npy"],
] + [["layer", name, "--input", "x=x.npy"] for name in ("relu", "sigmoid", "tanh", "gelu", "silu")]


def result(program, folder, job):
    done = subprocess.run([program] + job + ["-q"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900)
    if done.returncode:
        return None, "exit %d: %s" % (done.returncode, done.stderr.decode().strip())
    files = {}
    for name in sorted(n for n in os.listdir(folder) if n.startswith("out.")):
        path = os.path.join(folder, name)
        if name.endswith((".bam", ".cram")):
            body = subprocess.run(["samtools", "view", "-h", "--no-PG", "-T", "ref.fa", path], cwd=folder, check=True, stdout=subprocess.PIPE).stdout
        else:
            with open(path, "rb") as file:
                body = file.read()
        if name.endswith("am"):
            body = b"".join(line for line in body.splitlines(True) if not line.startswith(b"@PG"))
        files[name] = body
        os.unlink(path)
    return files, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("other")
    args = parser.parse_args()
    programs = [os.path.abspath(args.program), os.path.abspath(args.other)]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as base:
        folder = base + "/work" # the same name for both, since outputs quote names
        os.mkdir(folder)
        inputs(folder)
        subprocess.run([programs[1], "align", "ce.fa", "ce.fq", "-q", "-o", "in.sam"], cwd=folder, check=True)
        for job in JOBS:
            if job[0] == "layer":
                job = job[:2] + [w for word in job[3:] for w in ("--input", word)] + ["-o", "out.npy"]
            (one, why), (two, other_why) = (result(p, folder, job) for p in programs)
            if one is not None and one == two:
                passed += 1
                continue
            failed += 1
            print("FAILED %s: %s" % (" ".join(job), why or other_why or "other bytes in " +
                                     ", ".join(n for n in one if one[n] != two.get(n))))
    print("cases: %d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
