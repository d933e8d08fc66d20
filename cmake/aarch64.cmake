# For 64-bit ARM, from another machine: Debian's cross compiler, libraries that scripts/check-arm.sh put into
# build/arm64-root, programs run by QEMU.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(lw_triple aarch64-linux-gnu)
set(lw_qemu qemu-aarch64)
set(lw_root arm64-root)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
