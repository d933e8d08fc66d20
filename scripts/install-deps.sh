#!/usr/bin/env bash
# Installs the Debian packages that lanewise needs and that are missing; nothing else.
# Usage: scripts/install-deps.sh [--tests|--arm]    --tests adds what the tests and checks need, --arm what
# scripts/check-arm.sh does.
set -euo pipefail

build=(build-essential cmake ninja-build pkg-config libhts-dev zlib1g-dev libsimde-dev libprotobuf-c-dev protobuf-c-compiler libonnx-dev)
tests=(ccache clang libclang-rt-dev libcriterion-dev samtools bwa minimap2 python3 python3-venv clang-format libonnx-testdata libparasail-dev parasail python3-scipy python3-networkx
       python3-parasail)
packages=("${build[@]}")
[ "${1:-}" = --tests ] && packages+=("${tests[@]}")
[ "${1:-}" = --arm ] && packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user samtools python3)

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "install-deps: these Debian packages are missing and need root (no sudo here): ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
fi
command -v apt-get >/dev/null || { echo "install-deps: no apt-get here; install the counterparts of: ${missing[*]}" >&2; exit 1; }
echo "install-deps: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
