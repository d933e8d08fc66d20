#!/usr/bin/env python3
"""The table of graphs in tests/data/apsp (expected.json: SHA-256 of whole distance matrices, made by independent
programs), through the real program, on every backend that can run here. Graphs of the categories real and gfa lie in
../shared and are skipped, loudly, where that folder is absent; so are the largest graphs where SANITIZED is set.

    tables.py BUILD/lanewise"""
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "apsp")
SHARED = os.path.join(HERE, "..", "..", "..", "shared")
NOTHING = {"i4": 2**31 - 1, "i8": 2**63 - 1}
OPTIONS = {"flights_hops": ["--weight", "none"], "biogrid_hops": ["--undirected"], "float_any_100": ["--dtype", "float64"]}
SIZE = {"i4": "i", "i8": "q", "f4": "f", "f8": "d"}


def read_npy(path):
    """(type, values) of a little-endian .npy file, in C order."""
    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    kind = eval(data[10 : 10 + length])["descr"][1:]
    body = data[10 + length :]
    return kind, struct.unpack("<%d%s" % (len(body) // int(kind[1]), SIZE[kind]), body)


def backends(program):
    listing = subprocess.run([program, "devices", "--json"], capture_output=True, text=True, check=True).stdout
    rows = json.loads(listing)["backends"]["paths"]
    for row in rows:
        if row["usable"]:
            yield row["name"], ""
            if row["name"] == "cpu":
                yield "cpu", "avx512bw"
                yield "cpu", "avx512bw,avx2"
                yield "cpu", "avx512bw,avx2,sse41,neon"
        else:
            print(f"SKIPPED backend {row['name']}: {row['reason']}")


def check(program, case, backend, disabled, folder):
    """None, or what is wrong."""
    graph = case["path"]
    out = os.path.join(folder, "out.npy")
    environment = dict(os.environ, LANEWISE_DISABLE=disabled)

    def run(*options):
        if os.path.exists(out):
            os.remove(out)
        command = [program, "apsp", graph, "-o", out, "--backend", backend, *OPTIONS.get(case["name"], []), *options]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    result = run()
    if case["negative_cycle"]:
        good = result.returncode == 1 and "negative cycle" in result.stderr and not os.path.exists(out)
        return None if good else f"no negative cycle: {result.returncode} {result.stderr}"
    beyond = case["category"] == "int32_limits" and max(-case["min"], case["max"]) > 2**30 - 1
    if beyond:
        if result.returncode != 1 or "--dtype int64" not in result.stderr or os.path.exists(out):
            return f"int32 was not refused: {result.returncode} {result.stderr}"
        result = run("--dtype", "int64")
    if result.returncode != 0:
        return f"exit code {result.returncode}: {result.stderr}"
    if beyond or not case.get("exact", True):
        kind, got = read_npy(out)
        other, want = read_npy(os.path.join(DATA, case["rows_file"]))
        if kind == "i8":
            want = [NOTHING["i8"] if w == NOTHING[other] and case["name"] != "big_sentinel" else w for w in want]
            return None if list(got) == want else f"{got} is not {want}"
        near = len(got) == len(want) and all(a == b or abs(a - b) <= 1e-9 * abs(b) for a, b in zip(got, want))
        return None if near else "distances differ by more than 1e-9"
    digest = hashlib.sha256(open(out, "rb").read()).hexdigest()
    return None if digest == case["sha256_npy"] else "the matrix differs"


def main():
    program = os.path.abspath(sys.argv[1])
    cases, failures, count = [], 0, 0
    for case in json.load(open(os.path.join(DATA, "expected.json"))):
        case["path"] = os.path.join(DATA, case["file"])
        if case["category"] in ("real", "gfa"):
            case["path"] = os.path.normpath(os.path.join(SHARED, "cases", "apsp", case["file"]))
            if not os.path.exists(case["path"]):
                print(f"SKIPPED {case['name']}: {case['path']} is not here")
                continue
        cases.append(case)
        if case["name"] == "mt_gfa_oriented":  # the same numbers from the GFA file itself
            cases.append(dict(case, path=os.path.join(SHARED, "data", "graph", "MT.gfa")))
    with tempfile.TemporaryDirectory() as folder:
        for backend, disabled in backends(program):
            for case in cases:
                if (backend == "scalar" or "sse41" in disabled) and case["n"] > 1000:
                    continue  # too slow for a test
                if os.environ.get("SANITIZED") and case["n"] > 1000:
                    print(f"SKIPPED {case['name']}: minutes under a sanitizer; the plain build runs it")
                    continue
                count += 1
                wrong = check(program, case, backend, disabled, folder)
                if wrong:
                    failures += 1
                    print(f"FAILED {case['name']} on {backend} ({disabled or 'everything'}): {wrong}")
    print(f"{count} runs, {failures} failures")
    return failures > 0


sys.exit(main())
