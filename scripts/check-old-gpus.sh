#!/usr/bin/env bash
# Compiles every CUDA source of the library for GPUs that CUDA 13 no longer makes code for (Pascal and Volta), with
# Debian's clang-19 and the assembler and headers of CUDA 12 from PyPI, all under build/cuda12. Compiles only: such
# a program would still need CUDA 12's runtime. Takes about ten minutes on two cores, so scripts/test.sh leaves it out.
# Usage: scripts/check-old-gpus.sh [ARCHITECTURE...]    (default: sm_60 sm_61 sm_70)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
archs=("$@")
[ ${#archs[@]} -eq 0 ] && archs=(sm_60 sm_61 sm_70)
cuda=build/cuda12
command -v clang-19 >/dev/null || { echo "check-old-gpus: clang-19 is not installed (Debian: apt-get install clang-19)" >&2; exit 1; }
if [ ! -x $cuda/bin/ptxas ]; then
    python3 -m pip install -q --no-deps --target build/cuda12-wheels nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79
    mkdir -p $cuda
    cp -r build/cuda12-wheels/nvidia/cuda_nvcc/. build/cuda12-wheels/nvidia/cuda_runtime/. $cuda/
    chmod +x $cuda/bin/ptxas
fi
failed=0
for arch in "${archs[@]}"; do
    for source in src/*/*.cu; do
        # sources without kernels are host code
        if clang-19 -x cuda --cuda-path=$cuda --cuda-gpu-arch="$arch" --cuda-device-only -O1 -std=c++17 -Wno-unknown-cuda-version \
            -Isrc -Iinclude -include scripts/clang-cuda.h -S "$source" -o build/old-gpu.ptx &&
            { ! grep -q '\.entry' build/old-gpu.ptx || $cuda/bin/ptxas -arch="$arch" build/old-gpu.ptx -o build/old-gpu.o; }; then
            echo "$arch $source"
        else
            echo "FAILED: $arch $source"
            failed=$((failed + 1))
        fi
    done
done
rm -f build/old-gpu.ptx build/old-gpu.o
[ "$failed" -eq 0 ] || { echo "check-old-gpus: $failed failed" >&2; exit 1; }
echo "check-old-gpus: all sources compile for ${archs[*]}"
