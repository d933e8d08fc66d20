/* align_cpu_lanes.h - the kernels of align_cpu_kernels.h for lanes of LANE_BITS bits. Included three times
 * by align_cpu_isa.c, once per width, hence without a guard. */

#define LANE_PASTE3(a, b, c) a##b##c
#define LANE_NAME3(a, b, c) LANE_PASTE3(a, b, c)
#define V(name) LANE_NAME3(lw_v, LANE_BITS, _##name) /* a primitive of this width */
#define S(name) LANE_NAME3(lw_i, LANE_BITS, _##name) /* a signed one */
#define K(name) LANE_NAME3(name, _, LANE_BITS)       /* a function of this width */
#define LANE_T LANE_NAME3(uint, LANE_BITS, _t)
enum { K(lanes) = LW_VEC_BYTES * 8 / LANE_BITS };

#include "align/align_cpu_pairs_lanes.h"
#include "align/align_cpu_score_lanes.h"

#undef LANE_PASTE3
#undef LANE_NAME3
#undef V
#undef S
#undef K
#undef LANE_T
#undef LANE_BITS
