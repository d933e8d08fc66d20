/* grid.cuh - what the blocks of a launch do together (lw_launch_together() in cuda_check.h). */
#ifndef LW_GRID_CUH
#define LW_GRID_CUH

#include <stdint.h>
#include "common/warp.cuh"

#ifdef __CUDACC__

/* One more in *arrived, after what this thread has seen written; their number, before what is read next. */
LW_DEVICE void lw_arrive(uint32_t *arrived)
{
#if __CUDA_ARCH__ >= 700
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
#else
    __threadfence();
    atomicAdd(arrived, 1u);
#endif
}

LW_DEVICE uint32_t lw_arrivals(const uint32_t *arrived)
{
#if __CUDA_ARCH__ >= 700
    uint32_t n;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(arrived) : "memory");
    return n;
#else
    uint32_t n = *(const volatile uint32_t *)arrived;
    __threadfence();
    return n;
#endif
}

/* Waits until all threads of `blocks` blocks are here. *arrived is 0 at first and counts up; meeting: 1, 2,
 * ... What any of them stored in global memory before is what lw_fresh() loads after. */
LW_DEVICE void lw_meet(uint32_t *arrived, uint32_t blocks, uint32_t meeting)
{
    __syncthreads();
    if (blocks > 1 && threadIdx.x == 0) {
        lw_arrive(arrived);
        while (lw_arrivals(arrived) < blocks * meeting)
            ;
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
