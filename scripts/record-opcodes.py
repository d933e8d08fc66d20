#!/usr/bin/env python3
"""Writes the opcodes of the bench's kernels as a C table, which the build links into the program for machines
without cuobjdump (bench/opcodes.h).

  scripts/record-opcodes.py CUOBJDUMP OBJECT... > opcodes_record.c"""
import importlib.util
import os
import sys

spec = importlib.util.spec_from_file_location("check_cuda", os.path.join(os.path.dirname(os.path.abspath(__file__)), "check-cuda.py"))
check_cuda = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(check_cuda)


def main():
    tool = sys.argv[1]
    os.environ["PATH"] = os.path.dirname(os.path.realpath(tool)) + os.pathsep + os.environ["PATH"]
    print('/* Made by scripts/record-opcodes.py. */\n#include "opcodes.h"\n\nconst opcodes_recorded opcodes_record[] = {')
    for kernels in check_cuda.read(tool, sys.argv[2:]):
        for (arch, name), kernel in sorted(kernels.items()):
            codes = sorted(kernel.opcodes.items(), key=lambda item: -item[1])[:16]
            print('    {"%s", "%s", "%s"},' % (arch, name, ",".join("%s %d" % item for item in codes)))
    print("    {0, 0, 0},\n};")


if __name__ == "__main__":
    main()
