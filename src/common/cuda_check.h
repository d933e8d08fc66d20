/* cuda_check.h - CUDA calls whose failures become one line and LW_E_DEVICE; kernel launches (in .cu files).
 */
#ifndef LW_CUDA_CHECK_H
#define LW_CUDA_CHECK_H

#include <cuda_runtime.h>

#include "common/fail.h"

/* What a failed CUDA call becomes. Clears the error that is kept per thread, so that a failure that does not
 * destroy the CUDA context (no memory, bad launch) is not reported once more by the next call. */
static inline lw_status lw_cuda_fail(lw_error *err, cudaError_t code, const char *what)
{
    cudaGetLastError();
    if (code == cudaErrorMemoryAllocation)
        return lw_fail(err, LW_E_DEVICE,
                       "the GPU has too little free memory (%s): close other programs on it or limit "
                       "this one's share",
                       what);
    return lw_fail(err, LW_E_DEVICE, "CUDA: %s: %s", what, cudaGetErrorString(code));
}

/* LW_CUDA_TRY(err, "copying reads", cudaMemcpyAsync(...)); returns from the caller on failure. */
#define LW_CUDA_TRY(err, what, call)                                                                         \
    do {                                                                                                     \
        cudaError_t lw_cuda_code_ = (call);                                                                  \
        if (lw_cuda_code_ != cudaSuccess)                                                                    \
            return lw_cuda_fail(err, lw_cuda_code_, what);                                                   \
    } while (0)

/* The same where there is something to clean up; the function has `lw_status status` and a label `end`. */
#define LW_CUDA_TRY_END(err, what, call)                                                                     \
    do {                                                                                                     \
        cudaError_t lw_cuda_code_ = (call);                                                                  \
        if (lw_cuda_code_ != cudaSuccess) {                                                                  \
            status = lw_cuda_fail(err, lw_cuda_code_, what);                                                 \
            goto end;                                                                                        \
        }                                                                                                    \
    } while (0)

#ifdef __cplusplus
/* Launches a kernel that takes one struct of arguments by value. */
template <typename Args>
static inline cudaError_t lw_launch(void (*kernel)(Args), dim3 grid, unsigned threads, size_t shared_bytes,
                                    cudaStream_t stream, Args args)
{
    void *list[1] = {&args};
    return cudaLaunchKernel((const void *)kernel, grid, dim3(threads), list, shared_bytes, stream);
}

/* The same with blocks that wait for each other (grid.cuh): all of them run at a time, or the launch fails.
 */
template <typename Args>
static inline cudaError_t lw_launch_together(void (*kernel)(Args), dim3 grid, unsigned threads,
                                             size_t shared_bytes, cudaStream_t stream, Args args)
{
    void *list[1] = {&args};
    return cudaLaunchCooperativeKernel((const void *)kernel, grid, dim3(threads), list, shared_bytes, stream);
}

#endif

#endif
