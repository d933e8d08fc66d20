#!/usr/bin/env python3
"""Runs the real program on the cases of *.case files and compares standard output, standard error, exit code
and the files that stay behind.

    run.py --program BUILD/lanewise [--bless] FILE.case...

A case:

    == name of the case
    needs shared samtools     what must be there, else the case is skipped, loudly: `shared` is the folder
                              beside the checkout, `gpu` and `nogpu` a CUDA device or none, another word a program
    $ lanewise align ...      lines of a bash script, run in an empty folder with `lanewise` on the PATH;
                              $DATA is data/ of the checkout, $SHARED the folder beside it, $CASES this one;
                              $SANITIZED is set where a sanitizer looks at every access: there long inputs are shorter
    exit 1                    default 0
    files out.sam             what the folder holds afterwards, if that matters ('-': nothing)
    stdout any                default: must be empty
    stdout
    |a line, compared as it is
    ~a regular expression that must match a whole line
    ...                       any number of lines
    stderr
    |...

Lines that begin with '#' are comments. --bless writes what the program did into the cases that failed.
The last line counts the cases."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TIMEOUT_SECONDS = 400


class Case:
    def __init__(self, name, line):
        self.name, self.line = name, line
        self.script, self.needs, self.comments = [], [], []
        self.exit, self.files = 0, None
        self.expected = {"stdout": [], "stderr": []}


def parse(path):
    cases, stream = [], None
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            line = line.rstrip("\n")
            word, _, rest = line.partition(" ")
            if word == "==":
                cases.append(Case(rest, number))
                stream = None
            elif not line or line[0] == "#":
                if cases and line:
                    cases[-1].comments.append(line)
            elif word == "$":
                cases[-1].script.append(rest)
            elif word == "needs":
                cases[-1].needs += rest.split()
            elif word == "exit":
                cases[-1].exit = int(rest)
            elif word == "files":
                cases[-1].files = [] if rest == "-" else rest.split()
            elif word in ("stdout", "stderr"):
                stream = word
                cases[-1].expected[word] = None if rest == "any" else []
            elif stream and (line[0] in "|~" or line == "..."):
                cases[-1].expected[stream].append(line)
            else:
                sys.exit(f"{path}:{number}: what is '{line}'?")
    return cases


def match(expected, got):
    """Whether the lines `got` are those expected; '...' stands for any number of lines."""
    if not expected:
        return not got
    head = expected[0]
    if head == "...":
        return any(match(expected[1:], got[i:]) for i in range(len(got) + 1))
    if not got:
        return False
    same = head[1:] == got[0] if head[0] == "|" else re.fullmatch(head[1:], got[0]) is not None
    return same and match(expected[1:], got[1:])


def missing(case, program):
    for need in case.needs:
        if need == "shared":
            if not os.path.isdir(os.path.join(ROOT, "..", "shared", "data")):
                return "the folder ../shared is not there"
        elif need in ("gpu", "nogpu"):
            listing = subprocess.run([program, "devices"], capture_output=True, text=True).stdout
            has_gpu = "\ndevice 0:" in listing
            if has_gpu != (need == "gpu"):
                return "no CUDA device" if need == "gpu" else "there is a CUDA device"
        elif not shutil.which(need):
            return f"{need} is not installed"
    return None


def run(case, program, folder):
    env = dict(os.environ, LC_ALL="C", DATA=os.path.join(ROOT, "data"), CASES=HERE,
               SHARED=os.path.join(ROOT, "..", "shared"), PATH=f"{folder}/bin:{os.environ['PATH']}")
    env.pop("REF_PATH", None)
    os.mkdir(f"{folder}/bin")
    os.symlink(os.path.abspath(program), f"{folder}/bin/lanewise")
    work = f"{folder}/work"
    os.mkdir(work)
    script = "\n".join(case.script)
    try:
        done = subprocess.run(["bash", "-c", script], cwd=work, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return None, [], [], []
    lines = [out.decode("utf-8", "backslashreplace").splitlines() for out in (done.stdout, done.stderr)]
    return done.returncode, lines[0], lines[1], sorted(os.listdir(work))


def difference(case, code, out, err, files):
    text = []
    if code is None:
        return [f"  did not end within {TIMEOUT_SECONDS} s"]
    if code != case.exit:
        text.append(f"  exit code {code}, expected {case.exit}")
    for name, got in (("stdout", out), ("stderr", err)):
        want = case.expected[name]
        if want is not None and not match(want, got):
            text += [f"  {name} expected:"] + [f"    {line}" for line in want]
            text += [f"  {name} was:"] + [f"    {line}" for line in got[:60]]
    if case.files is not None and sorted(case.files) != files:
        text.append(f"  files {files}, expected {sorted(case.files)}")
    return text


def render(case):
    text = [f"== {case.name}"] + case.comments
    if case.needs:
        text.append("needs " + " ".join(case.needs))
    text += ["$ " + line for line in case.script]
    if case.exit:
        text.append(f"exit {case.exit}")
    if case.files is not None:
        text.append("files " + (" ".join(case.files) or "-"))
    for name in ("stdout", "stderr"):
        if case.expected[name] is None:
            text.append(f"{name} any")
        elif case.expected[name]:
            text += [name] + case.expected[name]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("cases", nargs="+")
    options = parser.parse_args()
    passed = failed = skipped = 0
    for path in options.cases:
        cases = parse(path)
        changed = False
        for case in cases:
            where = f"{os.path.basename(path)}:{case.line}: {case.name}"
            reason = missing(case, options.program)
            if reason:
                print(f"{where}: skipped: {reason}")
                skipped += 1
                continue
            with tempfile.TemporaryDirectory(prefix="lw-cli-") as folder:
                code, out, err, files = run(case, options.program, folder)
            text = difference(case, code, out, err, files)
            if not text:
                passed += 1
                continue
            failed += 1
            print(f"FAILED {where}")
            print("\n".join(text))
            if options.bless and code is not None:
                changed = True
                case.exit = code
                if case.files is not None:
                    case.files = files
                for name, got in (("stdout", out), ("stderr", err)):
                    want = case.expected[name]
                    if want is not None and not match(want, got):
                        case.expected[name] = ["|" + line for line in got]
        if changed:
            with open(path, encoding="utf-8") as text:
                head = text.read().split("== ", 1)[0]
            with open(path, "w", encoding="utf-8") as text:
                text.write(head + "\n".join(render(case) for case in cases))
    print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
