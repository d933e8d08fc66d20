/* host_cuda.h - the calls of the CUDA runtime that the host side of a kernel makes, on the host: device
 * memory is memory, streams do their work at once, and a launch runs its blocks one after the other
 * (host_lanes.h). Include after common/cuda_check.h and before the sources that are to run so. */
#ifndef LW_TEST_HOST_CUDA_H
#define LW_TEST_HOST_CUDA_H

#include <stdlib.h>
#include <string.h>

#include "align/host_lanes.h"
#include "common/cuda_check.h"

static cudaError_t host_malloc(void **out, size_t bytes)
{
    *out = malloc(bytes);
    if (*out)
        memset(*out, 0x5a, bytes); /* nothing may depend on what was there */
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t host_free(void *at)
{
    free(at);
    return cudaSuccess;
}

static cudaError_t host_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                             cudaStream_t stream)
{
    (void)kind, (void)stream;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

static cudaError_t host_set(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    memset(to, value, bytes);
    return cudaSuccess;
}

static cudaError_t host_stream(cudaStream_t *out, unsigned flags)
{
    (void)flags;
    *out = (cudaStream_t)1;
    return cudaSuccess;
}

static cudaError_t host_wait(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

#define cudaMalloc host_malloc
#define cudaMallocHost host_malloc
#define cudaFree host_free
#define cudaFreeHost host_free
#define cudaMemcpyAsync host_copy
#define cudaMemsetAsync host_set
#define cudaStreamCreateWithFlags host_stream
#define cudaStreamSynchronize host_wait
#define cudaStreamDestroy host_wait
#define cudaFuncSetAttribute(kernel, what, value) ((void)(kernel), cudaSuccess)
#define cudaGetErrorString(code) ((void)(code), "failed")
#define cudaGetLastError() ((void)0)

template <typename Args> struct host_call {
    void (*kernel)(Args);
    Args args;
};

template <typename Args> static void host_enter(void *call)
{
    ((host_call<Args> *)call)->kernel(((host_call<Args> *)call)->args);
}

/* A kernel that takes its work from a counter, of which warps wait for each other, runs in one block of so
 * many warps. */
static bool (*host_takes_turns)(const void *kernel);
static unsigned host_warps = 1;

template <typename Args>
static cudaError_t host_launch(void (*kernel)(Args), dim3 grid, unsigned threads, size_t shared,
                               cudaStream_t stream, Args args)
{
    (void)stream;
    if (shared > sizeof host_shared)
        abort();
    host_call<Args> call = {kernel, args};
    const bool turns = host_takes_turns && host_takes_turns((const void *)kernel);
    unsigned warps = host_warps;
    while (shared / (threads / LW_WARP) * warps > sizeof host_shared)
        warps--;
    if (turns)
        host_run_block((int)(warps * LW_WARP), 0, host_enter<Args>, &call);
    for (unsigned block = 0; !turns && block < grid.x; block++)
        host_run_block((int)threads, host_order == HOST_BACKWARD ? grid.x - 1 - block : block,
                       host_enter<Args>, &call);
    return cudaSuccess;
}

#define lw_launch host_launch

#endif
