#!/usr/bin/env python3
"""Compares the JSON of `lanewise bench --json` with what docs/formats.md says of it: bench_json.py RUN.json formats.md

Every member of the file must stand in the section "JSON of `bench`", in backquotes; every member that the section
demands must be in the file; numbers are numbers, texts are texts, and what is verified has a rate."""
import json
import re
import sys

ALWAYS = {
    "": {"schema": str, "host": dict, "results": list, "ceilings": list, "findings": list, "skipped": list},
    "host": {"version": str, "threads": int, "isa": list, "numeric_fingerprint": str},
    "results": {"domain": str, "name": str, "backend": str, "shape": str, "verified": bool, "unit": str,
                "median": (int, float), "min": (int, float), "max": (int, float), "repeats": int},
    "ceilings": {"name": str, "per_clock": (int, float), "per_second": (int, float)},
    "findings": {"technique": str, "sentence": str, "where": str},
    "skipped": {"domain": str, "what": str, "reason": str},
}


def fail(text):
    sys.exit(f"{sys.argv[1]}: {text}")


def members(value, found):
    """The names of all members, at any depth."""
    if isinstance(value, dict):
        for name, child in value.items():
            found.add(name)
            members(child, found)
    elif isinstance(value, list):
        for child in value:
            members(child, found)
    return found


def check(place, value):
    for name, kind in ALWAYS[place].items():
        if name not in value:
            fail(f"{place or 'the file'} lacks {name}")
        if not isinstance(value[name], kind):
            fail(f"{place}.{name} is {value[name]!r}")


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        run = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        section = re.search(r"^## JSON of `bench`$(.*?)(?=^## |\Z)", f.read(), re.M | re.S)
    if not section:
        fail("docs/formats.md has no section on it")
    documented = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]*)`", section[1]))))
    check("", run)
    check("host", run["host"])
    for place in ("results", "ceilings", "findings", "skipped"):
        for value in run[place]:
            check(place, value)
    schema = re.search(r'"(lanewise-bench-\d+)"', section[1])
    if not schema or run["schema"] != schema[1]:
        fail(f"schema {run['schema']} is not the one that is documented")
    if unknown := members(run, set()) - documented:
        fail(f"not documented: {', '.join(sorted(unknown))}")
    if undocumented := {n for names in ALWAYS.values() for n in names} - documented:
        fail(f"not documented: {', '.join(sorted(undocumented))}")
    if not run["results"]:
        fail("no results")
    for r in run["results"]:
        if not r["min"] <= r["median"] <= r["max"] or r["median"] <= 0 or not r["verified"]:
            fail(f"{r}")
    print(f"{sys.argv[1]}: as documented")


main()
