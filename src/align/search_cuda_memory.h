/* search_cuda_memory.h - device and pinned memory that only grows, and arrays cut out of it. For .cu files.
 */
#ifndef LW_SEARCH_CUDA_MEMORY_H
#define LW_SEARCH_CUDA_MEMORY_H

#include "common/cuda_check.h"

typedef struct buffer {
    char *at;
    size_t bytes;
} buffer;

/* Makes room for `bytes`, growing by copies of nothing: what was there is lost. */
static inline lw_status need_device(buffer *b, size_t bytes, lw_error *err)
{
    if (b->bytes >= bytes)
        return LW_OK;
    cudaFree(b->at);
    *b = {NULL, 0};
    void *p;
    LW_CUDA_TRY(err, "reserving device memory for the search", cudaMalloc(&p, bytes));
    *b = {(char *)p, bytes};
    return LW_OK;
}

static inline lw_status need_pinned(buffer *b, size_t bytes, lw_error *err)
{
    if (b->bytes >= bytes)
        return LW_OK;
    cudaFreeHost(b->at);
    *b = {NULL, 0};
    void *p;
    LW_CUDA_TRY(err, "reserving pinned memory", cudaMallocHost(&p, bytes));
    *b = {(char *)p, bytes};
    return LW_OK;
}

/* Cuts arrays out of a buffer, 256 bytes apart; with at = NULL it only counts. */
typedef struct cutter {
    char *at;
    size_t used;
} cutter;

template <typename T> static inline T *cut(cutter *c, T *, size_t n)
{
    size_t from = c->used;
    c->used += (n * sizeof(T) + 255) & ~(size_t)255;
    return c->at ? (T *)(c->at + from) : NULL;
}

#endif
