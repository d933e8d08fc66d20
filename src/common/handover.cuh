/* handover.cuh - one warp of a grid hands rows of data in global memory to another: the giver says how far it
 * has come, the taker waits for that. Only where the giver is sure to run already (work is taken in order).
 */
#ifndef LW_HANDOVER_CUH
#define LW_HANDOVER_CUH

#include <stdint.h>
#include "common/warp.cuh"

#ifdef __CUDACC__

/* What this thread has written before is seen by whoever sees `value`. */
LW_DEVICE void lw_publish(int32_t *progress, int32_t value)
{
    __threadfence();
    *(volatile int32_t *)progress = value;
}

/* Waits until at least `value` has been published. Then lw_taken() reads what was written before that. */
LW_DEVICE void lw_await(const int32_t *progress, int32_t value)
{
    while (*(const volatile int32_t *)progress < value) {
#if __CUDA_ARCH__ >= 700
        __nanosleep(200);
#endif
    }
    __threadfence();
}

/* A word that another multiprocessor has written: not from the cache that may hold it as it was. */
LW_DEVICE uint2 lw_taken2(const uint2 *at)
{
    return __ldcg(at);
}

LW_DEVICE uint32_t lw_taken(const uint32_t *at)
{
    return __ldcg(at);
}

#endif
#endif
