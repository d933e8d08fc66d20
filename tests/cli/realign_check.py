#!/usr/bin/env python3
"""Checks what `lanewise realign` wrote, record by record, with code of its own.

    realign_check.py [--sorted] REF.fa IN.sam OUT.sam MATCH MISMATCH OPEN EXTEND

The order of records is that of IN (unless --sorted); names, flags, MAPQ, SEQ, QUAL and clips stay; every CIGAR
rescores to AS; AS is at least the score that the input's CIGAR has under the same scheme; NM and MD fit; OC and
OP hold what was; PNEXT, MC and TLEN fit the mate. Records that differ are listed with the reason, the last line
counts them."""
import re
import sys

arguments = [a for a in sys.argv[1:] if a != "--sorted"]
by_place = "--sorted" in sys.argv
reference, source, result = arguments[:3]
MATCH, MISMATCH, OPEN, EXTEND = map(int, arguments[3:7])
errors = 0


def wrong(record, text):
    global errors
    errors += 1
    if errors <= 20:
        print(f"WRONG {record[0]} (flag {record[1]}): {text}")


def fasta(path):
    sequences, name = {}, None
    for line in open(path):
        if line[0] == ">":
            name = line[1:].split()[0]
            sequences[name] = []
        else:
            sequences[name].append(line.strip().upper())
    return {name: "".join(parts) for name, parts in sequences.items()}


def records(path):
    found = []
    for line in open(path):
        if line[0] == "@" and re.match("@(HD|SQ|RG|PG|CO)\t", line):
            continue
        fields = line.rstrip("\n").split("\t")
        found.append((fields[0], int(fields[1]), fields[2], int(fields[3]), fields[4], fields[5], fields[6],
                      int(fields[7]), int(fields[8]), fields[9], fields[10], {f[:2]: f[5:] for f in fields[11:]}))
    return found


def operations(cigar):
    return [(int(n), op) for n, op in re.findall(r"(\d+)([MIDNSHP=X])", cigar)]


def clips(cigar):
    core = re.sub(r"^(\d+[HS])*|(\d+[HS])*$", "", cigar)
    at = cigar.index(core)
    return cigar[:at], core, cigar[at + len(core):]


def walk(record, ref):
    """Score, NM and MD of a record's alignment."""
    q, t, score, nm, md, run = 0, record[3] - 1, 0, 0, "", 0
    seq = record[9].upper()
    for n, op in operations(record[5]):
        if op in "M=X":
            for k in range(n):
                a, b = seq[q + k], ref[t + k]
                plain = a in "ACGT" and b in "ACGT"
                score += (MATCH if a == b else -MISMATCH) if plain else -1
                if a == b and a != "N":
                    run += 1
                else:
                    nm, md, run = nm + 1, f"{md}{run}{b}", 0
            q, t = q + n, t + n
        elif op == "I":
            score, nm, q = score - OPEN - n * EXTEND, nm + n, q + n
        elif op == "D":
            score, nm, md, run, t = score - OPEN - n * EXTEND, nm + n, f"{md}{run}^{ref[t:t + n]}", 0, t + n
        elif op == "S":
            q += n
    return score, nm, f"{md}{run}", t


def five_prime(record):
    end = record[3] - 1 + sum(n for n, op in operations(record[5]) if op in "MDN=X")
    return end if record[1] & 16 else record[3] - 1


ref = fasta(reference)
old, new = records(source), records(result)
if len(old) != len(new):
    sys.exit(f"{len(old)} records in, {len(new)} out")
if by_place:
    order = {name: k for k, name in enumerate(ref)}
    places = [(order.get(r[2], len(order)), r[3]) for r in new]
    if places != sorted(places):
        sys.exit("the output is not sorted")
    waiting = {}
    for r in new:
        waiting.setdefault((r[0], r[1], r[9], r[10]), []).append(r)
    new = [waiting[(r[0], r[1], r[9], r[10])].pop(0) for r in old]

changed = better = aligned = 0
ours = {"OC", "OP", "AS", "NM", "MD", "MC"}
for a, b in zip(old, new):
    if (a[0], a[1], a[2], a[4], a[6], a[9], a[10]) != (b[0], b[1], b[2], b[4], b[6], b[9], b[10]):
        wrong(b, "a field changed that must not")
    if {k: v for k, v in a[11].items() if k not in ours} != {k: v for k, v in b[11].items() if k not in ours}:
        wrong(b, "a tag changed that must not")
    if a[1] & 0x904 or a[9] == "*" or a[5] == "*" or re.search("[NP]", a[5]):
        if a[5] != b[5] or a[11].get("AS") != b[11].get("AS") or (a[3] != b[3] and not a[1] & 4):
            wrong(b, "should have passed through")
        continue
    aligned += 1
    (before, core_a, after), (before_b, core_b, after_b) = clips(a[5]), clips(b[5])
    if (before, after) != (before_b, after_b):
        wrong(b, f"clips: {a[5]} became {b[5]}")
    score_a = walk(a, ref[a[2]])[0]
    score, nm, md, end = walk(b, ref[b[2]])
    if str(score) != b[11].get("AS"):
        wrong(b, f"{b[5]} scores {score}, AS is {b[11].get('AS')}")
    if score < score_a:
        wrong(b, f"{b[5]} scores {score}, {a[5]} scored {score_a}")
    if (str(nm), md) != (b[11].get("NM"), b[11].get("MD")):
        wrong(b, f"NM {nm} MD {md}, written {b[11].get('NM')} {b[11].get('MD')}")
    if (a[3], a[5]) == (b[3], b[5]):
        if "OC" in b[11] and "OC" not in a[11]:
            wrong(b, "OC without a change")
        continue
    changed += 1
    better += score > score_a
    if "OC" in b[11] and (b[11]["OC"], b[11]["OP"]) != (a[5], str(a[3])):
        wrong(b, f"OC {b[11]['OC']} OP {b[11]['OP']}, it was {a[5]} {a[3]}")
    why = f"scores {score - score_a} more" if score > score_a else "scores the same, by the tie rule"
    print(f"{b[0]} {a[2]}:{a[3]} {a[5]} ({score_a}) -> {b[3]} {b[5]} ({score}): {why}")

primary = {}
for a, b in zip(old, new):
    if b[1] & 1 and not b[1] & 0x900:
        primary[(b[0], b[1] & 0xC0)] = (a, b)
mates = 0
for (name, which), (a, b) in primary.items():
    if (name, which ^ 0xC0) not in primary:
        continue
    mate_a, mate = primary[(name, which ^ 0xC0)]
    mates += 1
    if mate[3] != b[7]:
        wrong(b, f"PNEXT {b[7]}, the mate is at {mate[3]}")
    if "MC" in b[11] and not mate[1] & 4 and b[11]["MC"] != mate[5]:
        wrong(b, f"MC {b[11]['MC']}, the mate has {mate[5]}")
    if b[2] == mate[2] and not (b[1] | mate[1]) & 4:
        if five_prime(mate_a) - five_prime(a) == a[8] and b[8] != five_prime(mate) - five_prime(b):
            wrong(b, f"TLEN {b[8]}, the mates span {five_prime(mate) - five_prime(b)}")
        if b[8] != -mate[8]:
            wrong(b, f"TLEN {b[8]}, the mate's {mate[8]}")
print(f"{len(new)} records, {aligned} realigned, {mates} with mates, {changed} changed, {better} better: "
      f"{errors} wrong")
sys.exit(errors > 0)
