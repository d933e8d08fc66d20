#!/usr/bin/env bash
# lanewise on 64-bit ARM, from another machine: builds it with Debian's cross compiler, runs tests under QEMU with and
# without NEON's dot products, and compares the bytes that it writes with those of a build for this machine.
# Debian's ARM libraries go to build/arm64-root, which needs no root and leaves the system alone; the compiler, QEMU
# and samtools are installed where they are missing.
# Usage: scripts/check-arm.sh [--all] [PROGRAM]
#   PROGRAM   this machine's build, to compare with (default: build/default/lanewise, else build/cpu/lanewise)
#   --all     every test that makes sense under an emulator: about half an hour
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
all=0
[ "${1:-}" = --all ] && all=1 && shift
own=${1:-}
for preset in default cpu; do
    [ -z "$own" ] && [ -x build/$preset/lanewise ] && own=build/$preset/lanewise
done
[ -n "$own" ] || { echo "check-arm: build the program for this machine first (cmake --preset cpu)" >&2; exit 1; }
root=$PWD/build/arm64-root

scripts/install-deps.sh --arm
if [ ! -e "$root/complete" ]; then
    echo "check-arm: Debian's ARM libraries into build/arm64-root" >&2
    rm -rf "$root"
    # a package database of its own, with this machine's sources; packages are unpacked, not installed
    mkdir -p "$root"/apt/{lists,cache/archives}/partial "$root"/usr/{lib,bin,sbin}
    for folder in lib bin sbin; do
        ln -s usr/$folder "$root/$folder"
    done
    : >"$root/apt/status"
    cat >"$root/apt/conf" <<END
APT::Architecture "arm64";
APT::Architectures "arm64";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Dir::State "$root/apt";
Dir::State::status "$root/apt/status";
Dir::Cache "$root/apt/cache";
END
    export APT_CONFIG=$root/apt/conf
    apt-get update -qq
    apt-get install -qq -y --download-only libc6-dev zlib1g-dev libhts-dev libprotobuf-c-dev libonnx-dev libcriterion-dev >/dev/null
    for package in "$root"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    rm -r "$root/apt"
    unset APT_CONFIG
    touch "$root/complete"
fi

cmake --preset arm64 -DLW_WERROR=ON >build/arm64.log
tests=(common.test_cpu common.test_numbers align.test_scalar align.test_encode infer.test_products infer.test_onnx_nodes)
if [ "$all" -eq 1 ]; then
    cmake --build build/arm64 >>build/arm64.log || { tail -n 40 build/arm64.log; exit 1; }
    ctest --test-dir build/arm64 -j "$(nproc)" --timeout 3000 --output-on-failure -E 'infer\.(ort_|layers)'
else
    cmake --build build/arm64 --target lanewise-cli "${tests[@]}" >>build/arm64.log || { tail -n 40 build/arm64.log; exit 1; }
    pattern=$(IFS='|' && echo "^(${tests[*]})$")
    ctest --test-dir build/arm64 -j "$(nproc)" --timeout 600 --output-on-failure -R "${pattern//./\\.}"
fi
QEMU_CPU=cortex-a53 ctest --test-dir build/arm64 --timeout 600 --output-on-failure -R 'common\.test_cpu|infer\.test_products'
tests/emulated/compare.py build/arm64/tests/lanewise "$own"
LANEWISE_DISABLE=neon tests/emulated/compare.py build/arm64/tests/lanewise "$own"
