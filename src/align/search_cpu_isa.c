/* search_cpu_isa.c - the search kernels of one instruction set. Compiled once per instruction set
 * (CMakeLists.txt of this folder) with LW_ISA_NAME set to its name. */
#include "align/search_cpu_kernels.h"

#include <stddef.h>
#include <string.h>

#include "common/simd_saturating.h"
#include "common/simd_transpose.h"

/* 512-bit vectors: Intel's processors do saturating additions on one port, plain ones on two. */
#if defined(LW_ISA_avx512bw)
#define SEARCH_WRAPS
static const bool wraps = true;
#else
static const bool wraps = false;
#endif

/* Two vectors a column stay in registers, of which 512-bit vectors have 32. */
enum { SEARCH_COLUMNS = LW_VEC_BYTES == 64 ? 8 : 4 };

/* Rows between two looks at whether a late gap matters any more: a look costs as much as two rows. */
enum { STRIPED_LATE = 4 };

#define LANE_BITS 8
#include "align/search_cpu_lanes.h"
#define LANE_BITS 16
#include "align/search_cpu_lanes.h"
#define LANE_BITS 32
#include "align/search_cpu_lanes.h"

#include "align/search_cpu_screen.h"

#define ISA_PASTE(a, b) a##b
#define ISA_TABLE(name) ISA_PASTE(lw_search_kernels_, name)

const lw_search_kernels ISA_TABLE(LW_ISA_NAME) = {
    .vector_bytes = LW_VEC_BYTES,
    .columns = SEARCH_COLUMNS,
    .wraps = wraps,
    .score = {score_8, score_16, score_32},
    .gapless = {gapless_8, gapless_16, gapless_32},
    .striped = {striped_8, striped_16, striped_32},
    .screen_range = screen_range,
    .screen_scratch = screen_scratch,
    .screen = screen,
};
