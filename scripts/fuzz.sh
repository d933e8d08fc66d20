#!/usr/bin/env bash
# Runs the fuzz targets of tests/fuzz under the address and undefined-behaviour sanitizers, two at a time, each from
# the corpus kept for it. The same seed gives the same sequence of inputs, as long as there is time for: a short run goes
# over what a longer one went over before. An input that breaks a target is left as build/fuzz/found/TARGET-SEED-*, and
# printed.
# Usage: scripts/fuzz.sh [--seed N] [--minimise] [SECONDS [TARGET...]]    default: seed 1, 20 seconds, all targets
#        --minimise also writes what reaches new code back to tests/fuzz/corpus
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
minimise=0 seed=1
while [[ ${1:-} == --* ]]; do
    case $1 in
    --minimise) minimise=1 ;;
    --seed) seed=$2 && shift ;;
    *) echo "fuzz.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
done
seconds=${1:-20}
shift || true
targets=("$@")
[ ${#targets[@]} -eq 0 ] && targets=(sequences matrix database graph npy onnx options align search paths layers)

mkdir -p build
cmake --preset fuzz -DLW_WERROR=ON >build/fuzz.log 2>&1 &&
    cmake --build build/fuzz --target "${targets[@]/#/fuzz-}" >>build/fuzz.log 2>&1 ||
    { tail -n 40 build/fuzz.log; exit 1; }
mkdir -p build/fuzz/found
# what asks for more gets nothing: every machine has as little memory
export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=600
# where addresses are random, so is a part of what the fuzzer takes for new
fixed=()
setarch -R true 2>/dev/null && fixed=(setarch -R)

# What broke TARGET: the sanitizer's words and the input itself, since the machine that found it may not be there later.
explain() { # TARGET OPTIONS...
    local target=$1 input
    shift
    input=$(ls -t build/fuzz/found/"$target-$seed"-* 2>/dev/null | grep -v slow-unit | head -n 1)
    if [ -z "$input" ]; then
        tail -n 30 "build/fuzz/$target.log"
        return
    fi
    timeout 100 "build/fuzz/tests/fuzz/fuzz-$target" "$@" "$input" >"build/fuzz/$target-again.log" 2>&1
    grep -vE '^INFO:|: Running|^Running:' "build/fuzz/$target-again.log" | head -n 30
    echo "--- the same in the run that found it:"
    grep -nE 'ERROR|runtime error|SUMMARY|    #[0-9] ' "build/fuzz/$target.log" | head -n 12
    echo "--- $input, as base64:"
    base64 "$input" | head -n 200
}

run() { # TARGET SECONDS
    local folder=build/fuzz/corpus/$1 options=(-timeout=20)
    rm -rf "$folder"
    mkdir -p "$folder/kept" "$folder/new"
    [ -f "tests/fuzz/corpus/$1.tar.gz" ] && tar -xzf "tests/fuzz/corpus/$1.tar.gz" -C "$folder/kept"
    find "$folder/kept" -type f | LC_ALL=C sort | paste -sd, >"$folder/list" # a folder's own order depends on its file system
    # the program's own signal handlers take the timer's signal
    [ "$1" = options ] && options=(-timeout=0)
    options+=(-rss_limit_mb=4000 -max_len=6000)
    "${fixed[@]}" "build/fuzz/tests/fuzz/fuzz-$1" "$folder/new" -seed_inputs="@$folder/list" -seed="$seed" -reload=0 \
        -max_total_time="$2" -close_fd_mask=3 "${options[@]}" -artifact_prefix="build/fuzz/found/$1-$seed-" \
        -print_final_stats=1 >"build/fuzz/$1.log" 2>&1
    local code=$? runs
    runs=$(grep -oE 'number_of_executed_units: [0-9]+' "build/fuzz/$1.log" | grep -oE '[0-9]+$')
    if [ $code -eq 0 ]; then
        echo "fuzz $1: ${runs:-0} inputs of seed $seed in $2 s, clean"
    else
        echo "FAILED: fuzz $1 after ${runs:-0} inputs of seed $seed"
        explain "$1" "${options[@]}"
        return 1
    fi
    if [ $minimise -eq 1 ]; then
        local smaller
        smaller=$(mktemp -d)
        "build/fuzz/tests/fuzz/fuzz-$1" -merge=1 "${options[@]}" "$smaller" "$folder/kept" "$folder/new" \
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
