#!/usr/bin/env python3
"""emboss_check.py water|needle dna|protein N SEED: N random pairs, their scores by EMBOSS and by lanewise, with
and without paths and as a matrix; says how many agree. Short sequences are left out: EMBOSS 6.6
scores those of one letter 0 or -3.4e38, and overlooks matches of one letter at the matrix's border."""
import random
import re
import subprocess
import sys

program, kind, n, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
letters = "ACGT" if kind == "dna" else "ARNDCQEGHILKMFPSTWYV"
rare = "N" if kind == "dna" else "XBZ"


def relative(s):
    """The same with substitutions, gaps and other ends."""
    out = []
    for c in s:
        x = random.random()
        if x < 0.1:
            out.append(random.choice(letters + rare))
        elif x < 0.15:
            out.append(c + "".join(random.choice(letters) for _ in range(random.randrange(1, 6))))
        elif x > 0.05 + 0.15:
            out.append(c)
    out = "".join(out)[random.randrange(0, 20):]
    return out if len(out) > 11 else s


with open("a.fa", "w") as a, open("b.fa", "w") as b:
    for i in range(n):
        s = "".join(random.choice(letters) for _ in range(random.choice([12, 17, 25, 40, 100, 150])))
        t = relative(s) if random.random() < 0.8 else "".join(random.choice(letters) for _ in range(random.randrange(12, 60)))
        if random.random() < 0.3:
            t = "".join(random.choice(letters) for _ in range(random.randrange(1, 30))) + t
        a.write(f">a{i}\n{s}\n")
        b.write(f">b{i}\n{t}\n")
type_ = ["-snucleotide1", "-snucleotide2"] if kind == "dna" else ["-sprotein1", "-sprotein2"]
pairs = list(zip(open("a.fa").read().split(">")[1:], open("b.fa").read().split(">")[1:]))
theirs = []
for i, (s, t) in enumerate(pairs):
    open("1.fa", "w").write(">" + s)
    open("2.fa", "w").write(">" + t)
    out = subprocess.run([program, "1.fa", "2.fa", "stdout", "-gapopen", "10", "-gapextend", "0.5", *type_],
                         capture_output=True, text=True).stdout
    score = re.search(r"# Score: (-?[0-9.]+)", out)
    theirs.append(score.group(1) if score else "0.0")
common = ["lanewise", "pairs", "a.fa", "b.fa", "--preset", program, "--type", kind, "-q"]
lines = subprocess.run(common, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
ours = [line.split("\t")[3] for line in lines]
bare = subprocess.run(common + ["--scores-only"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
if [line.split("\t")[3] for line in bare] != ours:
    print("--scores-only differs")
subprocess.run(common + ["--all", "-o", "all.npy"], check=True)
data = open("all.npy", "rb").read()[-8 * n * n:]
import struct
diagonal = [struct.unpack_from("<d", data, 8 * (n * i + i))[0] for i in range(n)]
if [f"{x:.1f}" for x in diagonal] != ours:
    print("--all differs")
wrong = 0
for i, (x, y) in enumerate(zip(theirs, ours)):
    if x != y:
        wrong += 1
        if wrong < 8:
            print(f"EMBOSS {x}, here {y}: {pairs[i][0].split()[1]} {pairs[i][1].split()[1]} {lines[i]}")
print(f"{program} {kind}: {n} pairs, {n - wrong} agree")
