/* paths_cuda_plain.cu - kernels for every GPU, and for types that DPX does not know. */
#include "paths/paths_kernels.cuh"
#include "paths/paths_tuning.h"

extern "C" {
const lw_paths_kernels lw_paths_s32_plain =
    lw_paths_make<int32_t, uint32_t, 1, LW_STEP_S32_PLAIN, LW_TILE_S32_PLAIN>(
        "s32", LW_RATE_S32_PLAIN, lw_paths_diagonal_kernel<int32_t, int32_t, 1, 128>);
const lw_paths_kernels lw_paths_f32_plain = lw_paths_make<float, uint32_t, 1, LW_STEP_F32, LW_TILE_F32_PLAIN>(
    "f32", LW_RATE_F32_PLAIN, lw_paths_diagonal_kernel<float, float, 1, 128>);
const lw_paths_kernels lw_paths_s64_plain =
    lw_paths_make<int64_t, uint64_t, 1, LW_STEP_S64, LW_TILE_S64_PLAIN>(
        "s64", LW_RATE_S64_PLAIN, lw_paths_diagonal_kernel<int64_t, int64_t, 1, 64>);
const lw_paths_kernels lw_paths_f64_plain =
    lw_paths_make<double, uint64_t, 1, LW_STEP_F64, LW_TILE_F64_PLAIN>(
        "f64", LW_RATE_F64_PLAIN, lw_paths_diagonal_kernel<double, double, 1, 64>);
}
