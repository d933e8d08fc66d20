/* align_cpu_isa.c - the kernels of one instruction set. Compiled once per instruction set (src/align/
 * CMakeLists.txt) with LW_ISA_NAME set to its name. */
#include "align/align_cpu_kernels.h"

#include <stddef.h>

#include "common/simd.h"

#define LANE_BITS 8
#include "align/align_cpu_lanes.h"
#define LANE_BITS 16
#include "align/align_cpu_lanes.h"
#define LANE_BITS 32
#include "align/align_cpu_lanes.h"

#define ISA_PASTE(a, b) a##b
#define ISA_TABLE(name) ISA_PASTE(lw_cpu_kernels_, name)

const lw_cpu_kernels ISA_TABLE(LW_ISA_NAME) = {
    .vector_bytes = LW_VEC_BYTES,
    .profile = {profile_8, profile_16, profile_32},
    .score = {score_8, score_16, score_32},
    .pairs_begin = {pairs_begin_8, pairs_begin_16, pairs_begin_32},
    .pairs = {pairs_8, pairs_16, pairs_32},
};
