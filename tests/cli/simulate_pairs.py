#!/usr/bin/env python3
"""simulate_pairs.py REF.fa N SEED OUT1.fq OUT2.fq: pairs of 100 letters with substitutions, insertions and
deletions; one pair in ten has mates on two sequences or far apart, one in fifty a mate of noise."""
import random
import sys

reference, n, seed, first, second = sys.argv[1:]
random.seed(int(seed))
sequences, name = {}, None
for line in open(reference):
    if line[0] == ">":
        name = line[1:].split()[0]
        sequences[name] = []
    else:
        sequences[name].append(line.strip().upper())
sequences = {k: "".join(v) for k, v in sequences.items()}
names = sorted(sequences)
LENGTH = 100
PAIR = str.maketrans("ACGTN", "TGCAN")


def read(letters):
    out = []
    gap = random.random() < 0.5 and random.randrange(5, 95)
    for k, c in enumerate(letters):
        if gap and k == gap:
            if random.random() < 0.5:
                out.append("".join(random.choice("ACGT") for _ in range(random.randrange(1, 9))))
            elif random.random() < 0.9:
                skip = random.randrange(1, 9)
                gap = -skip
        if isinstance(gap, int) and gap < 0:
            gap += 1
            continue
        out.append(random.choice("ACGT") if random.random() < 0.03 else c)
    return "".join(out)[:LENGTH]


with open(first, "w") as one, open(second, "w") as two:
    for i in range(int(n)):
        kind = random.random()
        a = random.choice(names)
        span = random.randrange(250, 500)
        start = random.randrange(len(sequences[a]) - span)
        left = sequences[a][start:start + LENGTH + 20]
        right = sequences[a][start + span - LENGTH - 20:start + span]
        if kind < 0.1:
            b = random.choice(names)
            at = random.randrange(len(sequences[b]) - 200)
            right = sequences[b][at:at + LENGTH + 20]
        elif kind < 0.12:
            right = "".join(random.choice("ACGT") for _ in range(LENGTH))
        mates = [read(left), read(right[::-1].translate(PAIR))]
        if random.random() < 0.5:
            mates.reverse()
        for file, mate in zip((one, two), mates):
            file.write(f"@p{i}\n{mate}\n+\n{'I' * len(mate)}\n")
