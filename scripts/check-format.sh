#!/usr/bin/env bash
# Formatting as .clang-format says, no tabs in C, no trailing blanks. --fix formats in place.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(git ls-files '*.c' '*.h' '*.cu' '*.cuh')
if [ "${1:-}" = --fix ]; then
    clang-format -i "${files[@]}"
    exit 0
fi
clang-format --dry-run --Werror "${files[@]}"
if git grep -nIE '[[:blank:]]+$' -- '*.c' '*.h' '*.cu' '*.cuh' '*.sh' '*.py' '*.txt' '*.cmake' ':!data' ':!tests/data'; then
    echo "check-format: trailing blanks" >&2
    exit 1
fi
echo "check-format: ${#files[@]} files"
