#!/usr/bin/env bash
# Runs the fuzz targets of tests/fuzz under the address and undefined-behaviour sanitizers, two at a time, each from
# the corpus kept for it. An input that breaks one is left as build/fuzz/found/TARGET-crash-*.
# Usage: scripts/fuzz.sh [--minimise] [SECONDS [TARGET...]]    default: 20 seconds, all targets
#        --minimise also writes what reaches new code back to tests/fuzz/corpus
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
minimise=0
[ "${1:-}" = --minimise ] && minimise=1 && shift
seconds=${1:-20}
shift || true
targets=("$@")
[ ${#targets[@]} -eq 0 ] && targets=(sequences matrix database graph npy onnx options align search paths layers)

mkdir -p build
cmake --preset fuzz -DLW_WERROR=ON >build/fuzz.log 2>&1 && cmake --build build/fuzz >>build/fuzz.log 2>&1 ||
    { tail -n 40 build/fuzz.log; exit 1; }
mkdir -p build/fuzz/found

run() { # TARGET SECONDS
    local folder=build/fuzz/corpus/$1 options=(-timeout=20 -malloc_limit_mb=600)
    mkdir -p "$folder"
    [ -f "tests/fuzz/corpus/$1.tar.gz" ] && tar -xzf "tests/fuzz/corpus/$1.tar.gz" -C "$folder"
    # htslib takes as much as a CRAM container declares, up to 8 GB, and touches none of it
    [ "$1" = sequences ] && options=(-timeout=20 -malloc_limit_mb=20000)
    # the program's own signal handlers take the timer's signal
    [ "$1" = options ] && options=(-timeout=0)
    "build/fuzz/tests/fuzz/fuzz-$1" "$folder" -max_total_time="$2" -max_len=6000 -rss_limit_mb=4000 -close_fd_mask=3 \
        "${options[@]}" -artifact_prefix="build/fuzz/found/$1-" -print_final_stats=1 >"build/fuzz/$1.log" 2>&1
    local code=$? runs
    runs=$(grep -oE 'number_of_executed_units: [0-9]+' "build/fuzz/$1.log" | grep -oE '[0-9]+$')
    if [ $code -eq 0 ]; then
        echo "fuzz $1: ${runs:-0} inputs in $2 s, clean"
    else
        echo "FAILED: fuzz $1 after ${runs:-0} inputs: $(ls build/fuzz/found/"$1"-* 2>/dev/null | tail -n 1)"
        return 1
    fi
    if [ $minimise -eq 1 ]; then
        local smaller
        smaller=$(mktemp -d)
        "build/fuzz/tests/fuzz/fuzz-$1" -merge=1 -max_len=6000 -rss_limit_mb=4000 "${options[@]}" "$smaller" "$folder" \
            >>"build/fuzz/$1.log" 2>&1
        mkdir -p tests/fuzz/corpus
        tar -C "$smaller" --sort=name --owner=0 --group=0 --mtime=@0 -cf - . | gzip -n9 >"tests/fuzz/corpus/$1.tar.gz"
        rm -r "$smaller"
    fi
}

failed=0
for ((i = 0; i < ${#targets[@]}; i += 2)); do
    pids=()
    for target in "${targets[@]:i:2}"; do
        run "$target" "$seconds" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || failed=$((failed + 1))
    done
done
echo "fuzz: $((${#targets[@]} - failed)) targets clean, $failed failed"
[ "$failed" -eq 0 ]
