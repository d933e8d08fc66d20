#!/usr/bin/env python3
"""Reads the machine code in a library or program and checks it against scripts/cuda-expectations.tsv:
every row names kernels (a regular expression over demangled-enough names), architectures and an opcode that must,
or must not, be there; and kernels that must not spill. Prints one line a breach, exits 1 if there is one.

  scripts/check-cuda.py FILE...            check
  scripts/check-cuda.py --table FILE...    print what was found as Markdown: docs/machine-code.md is made by
      cmake --preset release && cmake --build build/release --target lanewise
      scripts/check-cuda.py --table build/release/liblanewise.a > docs/machine-code.md

cuobjdump and nvdisasm are taken from the toolkit, else from PyPI (into build/tools)."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find_cuobjdump():
    for candidate in ("cuobjdump", "/usr/local/cuda/bin/cuobjdump"):
        path = shutil.which(candidate)
        if path:
            return path
    tools = os.path.join(ROOT, "build", "tools")
    path = os.path.join(tools, "nvidia", "cu13", "bin", "cuobjdump")
    if not os.path.exists(path):
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tools, "nvidia-cuda-cuobjdump",
                        "nvidia-cuda-nvdisasm"],
                       check=True)
    if not os.path.exists(path):
        found = [os.path.join(d, "cuobjdump") for d, _, files in os.walk(tools) if "cuobjdump" in files]
        if not found:
            sys.exit("check-cuda: no cuobjdump in the toolkit nor in PyPI's nvidia-cuda-cuobjdump")
        path = found[0]
    # nvdisasm lies beside it
    for program in ("cuobjdump", "nvdisasm"):
        if os.path.exists(os.path.join(os.path.dirname(path), program)):
            os.chmod(os.path.join(os.path.dirname(path), program), 0o755)
    os.environ["PATH"] = os.path.dirname(path) + os.pathsep + os.environ["PATH"]
    return path


class Kernel:
    def __init__(self):
        self.opcodes = Counter()
        self.registers = self.stack = self.shared = 0
        self.local = []  # addresses of instructions on local memory
        self.loops = []  # first and last address, of branches backwards
        self.aside = 1 << 62  # from here on: what warps do that are not together, and then branch back
        self.places = defaultdict(list)  # addresses of the opcodes that LOOPS asks for


def functions(data):
    """(name, machine code) of the functions in a cubin, a 64-bit ELF file."""
    table, = struct.unpack_from("<Q", data, 40)
    size, n, names = struct.unpack_from("<HHH", data, 58)
    # name, type, flags, address, offset, length
    sections = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(n)]
    for name, _, _, _, offset, length in sections:
        start = sections[names][4] + name
        text = data[start:data.index(b"\0", start)].decode()
        if text.startswith(".text."):
            yield text[len(".text."):], data[offset:offset + length]


def disassemble(tool, arch, code):
    """Fills Kernel objects from [(Kernel, machine code)], all of one architecture, by one process: each takes half a
    second before it reads its first instruction."""
    looked_for = {opcode for _, _, _, rule, opcode, _ in expectations() if rule == "loop-nospill"}
    with tempfile.NamedTemporaryFile() as file:
        for _, text in code:
            file.write(text)
        file.flush()
        nvdisasm = os.path.join(os.path.dirname(os.path.realpath(tool)), "nvdisasm")
        process = subprocess.Popen([nvdisasm, "-b", "SM" + arch[3:], file.name], stdout=subprocess.PIPE, text=True)
        rest, base, end = iter(code), 0, 0
        for line in process.stdout:
            words = line.split(None, 3)
            if len(words) < 2 or not words[0].startswith("/*") or words[0] == "/*":
                continue
            at = int(words[0].strip("/*"), 16)  # /*0010*/ [@P0] OPCODE ...
            while at >= end:
                k, text = next(rest)
                base, end = end, end + len(text)
            opcode = (words[2] if words[1][0] == "@" else words[1]).rstrip(";")
            name = opcode.split(".")[0]
            k.opcodes[opcode] += 1
            if name in ("STL", "LDL", "BRA") or name in looked_for:
                at -= base
                if name == "BRA":
                    target = re.search(r"\b0x([0-9a-f]+)", line.split(";")[0])
                    to = int(target[1], 16) - base if target else at + 1
                    if opcode.startswith("BRA.DIV"):
                        k.aside = min(k.aside, to)
                    elif to <= at:
                        k.loops.append((to, at))
                elif name in looked_for:
                    k.places[name].append(at)
                else:
                    k.local.append(at)
    if process.wait() != 0:
        sys.exit("check-cuda: nvdisasm failed")


def read(tool, paths, wanted=lambda arch, name: True):
    """For each file {(arch, function): Kernel} of its device functions; opcodes only of the wanted ones."""
    files, code = [], defaultdict(list)
    for path in paths:
        kernels = defaultdict(Kernel)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([tool, "-xelf", "all", os.path.abspath(path)], cwd=folder, stdout=subprocess.DEVNULL, check=True)
            for cubin in sorted(os.listdir(folder)):
                arch = re.search(r"\.(sm_\d+[af]?)\.cubin$", cubin)[1]
                with open(os.path.join(folder, cubin), "rb") as file:
                    for name, text in functions(file.read()):
                        k = kernels[arch, name]
                        if wanted(arch, name):
                            code[arch].append((k, text))
        usage = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
        arch = kernel = None
        for line in usage.splitlines():
            if m := re.match(r"\s*arch = (sm_\d+[af]?)", line):
                arch = m[1]
            elif m := re.search(r"Function (\S+?):?$", line.strip()):
                kernel = m[1]
            elif (m := re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", line)) and (arch, kernel) in kernels:
                k = kernels[arch, kernel]
                k.registers, k.stack, k.shared = map(int, m.groups())
        files.append(kernels)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda arch: disassemble(tool, arch, code[arch]), sorted(code)))
    return files


def count(kernel, opcode):
    """Instructions that are `opcode` with any further modifiers: "LDS.128" counts "LDS.U.128" too."""
    base, *modifiers = opcode.split(".")
    total = 0
    for name, n in kernel.opcodes.items():
        parts = name.split(".")
        if parts[0] == base and all(m in parts[1:] for m in modifiers):
            total += n
    return total


def hot_loop(kernel, opcode):
    """First and last address of the smallest loop with most of the instructions `opcode`; None if there is none."""
    places = kernel.places[opcode]
    loops = [(a, b) for a, b in kernel.loops if b < kernel.aside and 2 * sum(a <= p <= b for p in places) > len(places)]
    return min(loops, key=lambda loop: loop[1] - loop[0], default=None)


def spills_in_loop(kernel, opcode):
    """How many instructions on local memory are in the loop that counts; at least 1 if that loop was not found."""
    loop = hot_loop(kernel, opcode)
    return sum(loop[0] <= at <= loop[1] for at in kernel.local) if loop else 1


def expectations():
    with open(os.path.join(ROOT, "scripts", "cuda-expectations.tsv")) as f:
        for number, line in enumerate(f, 1):
            if line.strip() and not line.startswith("#"):
                fields = line.rstrip("\n").split("\t")
                if len(fields) != 5:
                    sys.exit(f"check-cuda: cuda-expectations.tsv line {number}: five fields expected")
                yield number, fields[0], fields[1].split(","), fields[2], fields[3], fields[4]


def check(kernels):
    breaches = 0
    archs = sorted({arch for arch, _ in kernels})
    for number, pattern, wanted, rule, opcode, _ in expectations():
        matched = 0
        for (arch, name), k in sorted(kernels.items()):
            if not re.search(pattern, name) or (wanted != ["all"] and arch[3:] not in wanted):
                continue
            matched += 1
            wrong = None
            if rule == "has" and count(k, opcode) == 0:
                wrong = f"no {opcode}"
            elif rule == "lacks" and count(k, opcode) > 0:
                wrong = f"{count(k, opcode)} x {opcode}"
            elif rule == "nospill" and (k.stack > 0 or count(k, "STL") + count(k, "LDL") > 0):
                wrong = f"stack of {k.stack} bytes, {count(k, 'STL')} local stores"
            elif rule == "loop-nospill" and spills_in_loop(k, opcode) > 0:
                wrong = f"local memory in the loop of {opcode}" if hot_loop(k, opcode) else f"no loop of {opcode}"
            elif rule not in ("has", "lacks", "nospill", "loop-nospill"):
                sys.exit(f"check-cuda: cuda-expectations.tsv line {number}: unknown rule {rule}")
            if wrong:
                breaches += 1
                print(f"{arch} {name}: {wrong} (expectation on line {number})")
        if matched == 0 and (wanted == ["all"] or set(wanted) & {a[3:] for a in archs}):
            breaches += 1
            print(f"expectation on line {number} matches no kernel: {pattern}")
    print(f"check-cuda: {len(kernels)} kernels over {', '.join(archs)}: {breaches} breaches")
    return breaches


def family(name):
    """The function's own name: lw_sw_scores of _Z12lw_sw_scoresILi0E..."""
    m = re.match(r"_Z(?:N\d+_GLOBAL__N__\w+?\d+)?(\d+)", name)
    return name[m.end():m.end() + int(m[1])] if m else name


def span(values):
    return str(min(values)) if min(values) == max(values) else f"{min(values)}-{max(values)}"


HEAD = """# Machine code of the kernels

What the compiler made of the product's kernels for each architecture of a release build: {kernels} kernels, the instances of
{families} functions for {archs} architectures, read from the library by `cuobjdump`. `scripts/test.sh cuda` checks the rules on
every change; `scripts/check-cuda.py` says how this page is made. What the kernels do and how fast they are is told in
[kernels.md](kernels.md); `lanewise bench techniques` and `ceilings` show the opcodes of the laboratory's kernels.

## Opcodes and spills

A row is a rule of `scripts/cuda-expectations.tsv`: kernels (a pattern over their mangled names) that must have an opcode, must
lack it, or must keep everything in registers (`nospill`), or do so in the smallest loop that has most of an opcode
(`loop-nospill`). Cells count the opcode in each of the kernels that match, from the
least to the most, or the kernels that use local memory there; in parentheses where nothing is demanded of that architecture. An empty
cell: it has no such kernel.
"""

REGISTERS = """
## Registers

Of a thread, from the instance that needs fewest to the one that needs most; after a slash, how many instances use local memory
(spilled registers, or an array with an index that is not known).
"""


def table(kernels):
    archs = sorted({int(arch[3:]) for arch, _ in kernels})
    head = "| " + " | ".join(f"sm_{a}" for a in archs) + " |\n" + "|---" * (len(archs) + 1) + "|"
    print(HEAD.format(kernels=len(kernels), families=len({family(name) for _, name in kernels}), archs=len(archs)))
    print("| kernels, rule " + head)
    for _, pattern, wanted, rule, opcode, what in expectations():
        cells = []
        for a in archs:
            matching = [k for (arch, name), k in kernels.items() if arch == f"sm_{a}" and re.search(pattern, name)]
            if not matching:
                cell = ""
            elif rule == "nospill":
                cell = f"{sum(k.stack > 0 or count(k, 'STL') > 0 for k in matching)} of {len(matching)}"
            elif rule == "loop-nospill":
                cell = f"{sum(spills_in_loop(k, opcode) > 0 for k in matching)} of {len(matching)}"
            else:
                cell = span([count(k, opcode) for k in matching])
            cells.append(f"({cell})" if cell and wanted != ["all"] and str(a) not in wanted else cell)
        print(f"| {what} (`{pattern}`) **{f'{rule} {opcode}'.strip()}** | " + " | ".join(cells) + " |")
    print(REGISTERS)
    print("| kernel " + head)
    for name in sorted({family(name) for _, name in kernels}):
        cells = []
        for a in archs:
            ks = [k for (arch, full), k in kernels.items() if arch == f"sm_{a}" and family(full) == name]
            spilling = sum(k.stack > 0 or count(k, "STL") > 0 for k in ks)
            cells.append(span([k.registers for k in ks]) + (f" / {spilling} of {len(ks)}" if spilling else "") if ks else "")
        print(f"| `{name}` | " + " | ".join(cells) + " |")


def main():
    args = sys.argv[1:]
    as_table = args[:1] == ["--table"]
    if as_table:
        args = args[1:]
    if not args:
        sys.exit(__doc__)
    kernels, rules = {}, [(pattern, archs) for _, pattern, archs, _, _, _ in expectations()]

    def ruled(arch, name):
        return any((archs == ["all"] or arch[3:] in archs) and re.search(pattern, name) for pattern, archs in rules)

    for found in read(find_cuobjdump(), args, (lambda arch, name: True) if as_table else ruled):
        kernels.update(found)
    if as_table:
        return table(kernels)
    return 1 if check(kernels) else 0


if __name__ == "__main__":
    sys.exit(main())
