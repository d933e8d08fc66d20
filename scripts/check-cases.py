#!/usr/bin/env python3
"""Looks up every test that docs/cases.md names; a row without one is a mistake too."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    rows = wrong = 0
    with open(os.path.join(ROOT, "docs/cases.md"), encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            if not line.startswith("| ") or line.startswith(("| report", "|---")):
                continue
            rows += 1
            # a name may hold backticks of its own only at its end
            tests = re.findall(r"`([\w/]+\.(?:case|c|cpp|cu|py)): (.+?)`(?=;| \|)", line)
            if not tests:
                wrong += 1
                print(f"docs/cases.md:{number}: a report without a test")
            for path, name in tests:
                full = os.path.join(ROOT, "tests", path)
                body = open(full, encoding="utf-8").read() if os.path.exists(full) else ""
                found = f"== {name}\n" in body if path.endswith(".case") else re.search(rf"\b{re.escape(name)}\b", body)
                if not found:
                    wrong += 1
                    print(f"docs/cases.md:{number}: no test '{name}' in tests/{path}")
    print(f"check-cases: {rows} reports, {wrong} without their test")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
