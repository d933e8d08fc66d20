/* paths_cuda_dpx.cu - kernels that use the joined add-min and the three-way minimum of Hopper. */
#include "paths/paths_kernels.cuh"
#include "paths/paths_tuning.h"

extern "C" {
const lw_paths_kernels lw_paths_s32_dpx = lw_paths_make<int32_t, uint32_t, 1, LW_STEP_S32, LW_TILE_S32_DPX>(
    "s32 dpx", LW_RATE_S32_DPX, lw_paths_diagonal_kernel<int32_t, int32_t, 1, 128>);
const lw_paths_kernels lw_paths_u16_dpx =
    lw_paths_make<uint32_t, uint32_t, 2, LW_STEP_U16X2, LW_TILE_U16_DPX>(
        "u16 dpx", LW_RATE_U16_DPX, lw_paths_diagonal_kernel<uint32_t, int32_t, 2, 128>);
const lw_paths_kernels lw_paths_f32_dpx =
    lw_paths_make<float, uint32_t, 1, LW_STEP_F32_BITS, LW_TILE_F32_DPX>(
        "f32 dpx", LW_RATE_F32_DPX, lw_paths_diagonal_kernel<float, float, 1, 128>);
}
