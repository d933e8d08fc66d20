/* align_cuda_memory.h - memory that only grows: on the device, pinned, plain. */
#ifndef LW_ALIGN_CUDA_MEMORY_H
#define LW_ALIGN_CUDA_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>

#include "common/cuda_check.h"

typedef struct area {
    void *at;
    size_t bytes;
} area;

/* *out_of_memory (may be NULL): that is why it failed. */
static inline lw_status area_device(area *a, size_t bytes, bool *out_of_memory, lw_error *err)
{
    if (a->bytes >= bytes && a->at)
        return LW_OK;
    if (a->at)
        cudaFree(a->at);
    a->at = NULL, a->bytes = 0;
    size_t wanted = bytes + bytes / 8 + 256;
    cudaError_t code = cudaMalloc(&a->at, wanted);
    if (code != cudaSuccess) {
        a->at = NULL;
        if (out_of_memory)
            *out_of_memory = code == cudaErrorMemoryAllocation;
        return lw_cuda_fail(err, code, "allocating device memory");
    }
    a->bytes = wanted;
    return LW_OK;
}

static inline lw_status area_pinned(area *a, size_t bytes, lw_error *err)
{
    if (a->bytes >= bytes && a->at)
        return LW_OK;
    if (a->at)
        cudaFreeHost(a->at);
    a->at = NULL, a->bytes = 0;
    size_t wanted = bytes + bytes / 8 + 256;
    if (cudaMallocHost(&a->at, wanted) != cudaSuccess) {
        cudaGetLastError();
        a->at = NULL;
        return lw_fail_memory(err, wanted);
    }
    a->bytes = wanted;
    return LW_OK;
}

static inline lw_status area_host(area *a, size_t bytes, lw_error *err)
{
    if (a->bytes >= bytes && a->at)
        return LW_OK;
    free(a->at);
    a->at = malloc(bytes + bytes / 8 + 256);
    a->bytes = a->at ? bytes + bytes / 8 + 256 : 0;
    return a->at ? LW_OK : lw_fail_memory(err, bytes);
}

#endif
