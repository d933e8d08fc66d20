#!/usr/bin/env bash
# The laws of the architecture that a script can check (CONTRIBUTING.md lists them). Prints each breach as
# file:line and exits 1 if there is one.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
breaches=0

# law NAME PATTERN PATHS... : no line of the sources under PATHS matches PATTERN
law() {
    local name=$1 pattern=$2 found
    shift 2
    found=$(grep -rnE --include='*.c' --include='*.h' --include='*.cu' --include='*.cuh' -e "$pattern" "$@" 2>/dev/null)
    [ -z "$found" ] && return
    printf '%s\n%s\n\n' "$name" "$found"
    breaches=$((breaches + $(wc -l <<<"$found")))
}

law 'common depends on nothing of ours' '#include "(align|paths|infer|cli)/' src/common
law 'align depends on common only' '#include "(paths|infer|cli)/' src/align
law 'paths depends on common only' '#include "(align|infer|cli)/' src/paths
law 'infer depends on common only' '#include "(align|paths|cli)/' src/infer
cli=$(grep -rnE '#include "(align|paths|infer)/' src/cli --include='*.c' --include='*.h')
if [ -n "$cli" ]; then
    printf 'the command line uses the public headers and common\n%s\n\n' "$cli"
    breaches=$((breaches + 1))
fi
law 'architecture knowledge lives in src/common' \
    '__CUDA_ARCH__|\basm( |\()|__v(i|add|max|min|ib|cmp|sub)[a-z0-9_]*\(|__dp[24]a|__shfl|__(ballot|any|all)_sync|__reduce_[a-z]+_sync|_mm(256|512)?_[a-z0-9]+_|\b_tile_[a-z]+\(|\bv(ld|st|add|max)1?q_[a-z0-9]+\(|immintrin|arm_neon|simde/|cudaDevAttrComputeCapability' \
    src/align src/paths src/infer src/cli
law 'no __activemask in product code' '__activemask' src
law 'the library never prints and never exits' '\b(exit|abort|_exit)\(|(^|[^a-z_])v?printf\(|printf\(std(out|err)|\bputs\(|\bputchar\(|\bf?put[sc]\(.*std(out|err)|\bperror\(' src/align src/paths src/infer src/common
law 'nothing unfinished' '\b(TODO|FIXME|XXX|HACK)\b|[Nn]ot implemented|placeholder' src include bench tests
law 'copies and fills of the domains name their stream, as the default one is waited for by none of ours' \
    '\bcuda(Memcpy|Memcpy2D|Memset|Memset2D)\(' src/align src/paths src/infer
law 'no global fast math' 'use_fast_math|ffast-math' src CMakeLists.txt CMakePresets.json cmake

# global symbols of the library; onnx__ is what protoc-c makes of ONNX's own definition
for archive in build/*/liblanewise.a; do
    [ -f "$archive" ] || continue
    symbols=$(nm --defined-only --extern-only "$archive" 2>/dev/null |
        awk 'NF == 3 && $2 ~ /[TDBR]/ && $3 !~ /^(lw_|_Z|__|cudaGraph|fatbin|onnx__)/ {print $3}' | sort -u)
    if [ -n "$symbols" ]; then
        printf 'global names of %s begin with lw_\n%s\n\n' "$archive" "$symbols"
        breaches=$((breaches + 1))
    fi
    break
done

if [ "$breaches" -gt 0 ]; then
    echo "check-laws: $breaches breaches" >&2
    exit 1
fi
echo "check-laws: all laws hold"
