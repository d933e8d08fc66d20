/* grid.cuh - what the blocks of a launch do together (lw_launch_together() in cuda_check.h). */
#ifndef LW_GRID_CUH
#define LW_GRID_CUH

#include <stdint.h>
#include "common/warp.cuh"

#ifdef __CUDACC__

/* Waits until all threads of `blocks` blocks are here. *arrived is 0 at first and counts up; meeting: 1, 2,
 * ... What any of them stored in global memory before is what lw_fresh() loads after. */
LW_DEVICE void lw_meet(uint32_t *arrived, uint32_t blocks, uint32_t meeting)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile uint32_t *)arrived < blocks * meeting)
            ;
        __threadfence();
    }
    __syncthreads();
}

/* Past the first-level cache, which other multiprocessors' stores do not reach. */
LW_DEVICE float lw_fresh(const float *global)
{
    return __ldcg(global);
}

LW_DEVICE uint32_t lw_fresh_word(const uint32_t *global)
{
    return __ldcg(global);
}

#endif
#endif
