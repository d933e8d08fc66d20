/* paths_cpu_isa.c - the kernels of one instruction set. Compiled once per instruction set (CMakeLists.txt)
 * with LW_ISA_NAME set to its name. */
#include "paths/paths_cpu_kernels.h"

#include <math.h>
#include <string.h>

#include "common/simd_minplus.h"
#include "paths/paths_backend.h"
#include "paths/paths_cpu_tuning.h"

#define LANE s32
#define ELEMENT int32_t
#define NOTHING LW_PATHS_INF_S32
#include "paths/paths_cpu_lanes.h"
#define LANE s64
#define ELEMENT int64_t
#define NOTHING LW_PATHS_INF_S64
#include "paths/paths_cpu_lanes.h"
#define LANE f32
#define ELEMENT float
#define NOTHING INFINITY
#include "paths/paths_cpu_lanes.h"
#define LANE f64
#define ELEMENT double
#define NOTHING ((double)INFINITY)
#include "paths/paths_cpu_lanes.h"
#define LANE u16
#define ELEMENT uint16_t
#define NOTHING LW_PATHS_INF_U16
#include "paths/paths_cpu_lanes.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define ROW(LANE, T)                                                                                         \
    {                                                                                                        \
        .width = LW_MINPLUS_VECTORS * (int)LW_##LANE##v_LANES, .size = sizeof(T), .close = close_##LANE,     \
        .pack_rows = pack_rows_##LANE, .pack_columns = pack_columns_##LANE, .product = product_##LANE        \
    }

const lw_paths_cpu_kernels PASTE(lw_paths_cpu_, LW_ISA_NAME)[LW_LANES] = {
    [LW_LANE_S32] = ROW(s32, int32_t), [LW_LANE_S64] = ROW(s64, int64_t),  [LW_LANE_F32] = ROW(f32, float),
    [LW_LANE_F64] = ROW(f64, double),  [LW_LANE_U16] = ROW(u16, uint16_t),
};
