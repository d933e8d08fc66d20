/* infer_cuda.c - the cuda-* rows of inference: contexts, device memory and copies. */
#include "infer/infer_cuda.h"

#include <stdlib.h>

#include "common/cuda_check.h"
#include "common/device.h"
#include "common/fail.h"

/* ---- memory -------------------------------------------------------------------------------------- */

lw_status lw_cuda_allocate_if_free(infer_cuda *x, void **out, int64_t bytes, lw_error *err)
{
    size_t size = bytes > 0 ? (size_t)bytes : 1;
    *out = NULL;
    if (x->recording)
        return lw_cuda_arena_take(x->recording, out, (int64_t)size, err);
    cudaError_t code = x->pooled ? cudaMallocAsync(out, size, x->stream) : cudaMalloc(out, size);
    if (code == cudaErrorMemoryAllocation && x->kept) { /* a kept run holds memory that this one needs */
        cudaGetLastError();
        lw_cuda_forget_kept(x);
        code = cudaMallocAsync(out, size, x->stream);
    }
    if (code == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* launches look at it */
        *out = NULL;
        return LW_OK;
    }
    LW_CUDA_TRY(err, "allocating device memory", code);
    return LW_OK;
}

lw_status lw_cuda_allocate(infer_cuda *x, void **out, int64_t bytes, lw_error *err)
{
    LW_TRY(lw_cuda_allocate_if_free(x, out, bytes, err));
    return *out ? LW_OK : lw_cuda_fail(err, cudaErrorMemoryAllocation, "allocating device memory");
}

lw_status lw_cuda_allocate_aside(infer_cuda *x, void **out, int64_t bytes, lw_error *err)
{
    *out = NULL;
    LW_CUDA_TRY(err, "allocating device memory", cudaMallocAsync(out, (size_t)(bytes + !bytes), x->aside));
    cudaError_t code = cudaStreamSynchronize(x->aside);
    if (code == cudaSuccess)
        return LW_OK;
    cudaFreeAsync(*out, x->aside);
    *out = NULL;
    return lw_cuda_fail(err, code, "allocating device memory");
}

void lw_cuda_release(infer_cuda *x, void *p)
{
    if (!p || lw_cuda_arena_give(x->recording, p) || lw_cuda_arena_give(x->kept, p))
        return;
    if (x->pooled)
        cudaFreeAsync(p, x->stream);
    else
        cudaFree(p);
}

static void copy_release(lw_device_copy *base)
{
    lw_cuda_copy *copy = (lw_cuda_copy *)base;
    lw_cuda_release(copy->x, copy->p);
    lw_cuda_release(copy->x, copy->packed.owned ? copy->packed.bytes : NULL);
    lw_cuda_release(copy->x, copy->packed.sum);
    lw_cuda_release(copy->x, copy->offset);
    free(copy);
}

/* Device memory for a buffer; of elements that the host has, memory that outlives a recorded run. */
static lw_status attach(infer_cuda *x, lw_buffer *buffer, lw_error *err)
{
    lw_cuda_copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        return lw_fail_memory(err, sizeof *copy);
    *copy = (lw_cuda_copy){.base = {.release = copy_release}, .x = x};
    lw_status status = x->recording && buffer->data ? lw_cuda_allocate_aside(x, &copy->p, buffer->bytes, err)
                                                    : lw_cuda_allocate(x, &copy->p, buffer->bytes, err);
    if (status != LW_OK) {
        free(copy);
        return status;
    }
    buffer->device = &copy->base;
    return LW_OK;
}

lw_status lw_cuda_device(infer_cuda *x, lw_tensor *t, void **out, lw_error *err)
{
    lw_buffer *buffer = t->buffer;
    cudaStream_t stream = x->recording ? x->aside : x->stream;
    if (x->recording && buffer->data)
        LW_TRY(lw_cuda_recording_keep(x, t, err));
    if (!buffer->device) {
        LW_TRY(attach(x, buffer, err));
        cudaError_t code = cudaMemcpyAsync(((lw_cuda_copy *)buffer->device)->p, buffer->data,
                                           (size_t)buffer->bytes, cudaMemcpyHostToDevice, stream);
        if (code == cudaSuccess && x->recording)
            code = cudaStreamSynchronize(stream);
        if (code != cudaSuccess) { /* nobody shall take it for a copy */
            copy_release(buffer->device);
            buffer->device = NULL;
            return lw_cuda_fail(err, code, "copying a tensor to the GPU");
        }
    }
    *out = ((lw_cuda_copy *)buffer->device)->p;
    return LW_OK;
}

lw_status lw_cuda_tensor(infer_cuda *x, lw_tensor **out, lw_dtype dtype, int rank, const int64_t *dim,
                         void **p, lw_error *err)
{
    LW_TRY(lw_tensor_new_elsewhere(out, dtype, rank, dim, err));
    LW_TRY(attach(x, (*out)->buffer, err)); /* *out is the caller's to release */
    *p = ((lw_cuda_copy *)(*out)->buffer->device)->p;
    return LW_OK;
}

lw_status lw_cuda_upload(infer_cuda *x, void *to, const void *from, int64_t bytes, lw_error *err)
{
    if (lw_cuda_recording_asks(x))
        return lw_fail(err, LW_E_UNSUPPORTED, "an upload cannot be recorded");
    LW_CUDA_TRY(err, "copying to the GPU",
                cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyHostToDevice, x->stream));
    return LW_OK;
}

lw_status lw_cuda_fill(infer_cuda *x, void *to, int byte, int64_t bytes, lw_error *err)
{
    LW_CUDA_TRY(err, "filling device memory", cudaMemsetAsync(to, byte, (size_t)bytes, x->stream));
    return LW_OK;
}

lw_status lw_cuda_launched(const char *what, lw_error *err)
{
    LW_CUDA_TRY(err, what, cudaGetLastError());
    return LW_OK;
}

static lw_status cuda_fetch(void *context, lw_tensor *t, lw_error *err)
{
    infer_cuda *x = context;
    bool there = t->buffer->data != NULL;
    if (!there && lw_cuda_recording_asks(x))
        return lw_fail(err, LW_E_UNSUPPORTED, "what the host works on cannot be recorded");
    LW_TRY(lw_tensor_allocate(t, err));
    if (there)
        return LW_OK;
    LW_CUDA_TRY(err, "copying a tensor from the GPU",
                cudaMemcpyAsync(t->data, ((lw_cuda_copy *)t->buffer->device)->p, (size_t)t->buffer->bytes,
                                cudaMemcpyDeviceToHost, x->stream));
    LW_CUDA_TRY(err, "running kernels", cudaStreamSynchronize(x->stream));
    return LW_OK;
}

/* ---- contexts ------------------------------------------------------------------------------------ */

static void cuda_close(void *context)
{
    infer_cuda *x = context;
    if (!x)
        return;
    cudaSetDevice(x->device);
    if (x->stream)
        cudaStreamSynchronize(x->stream);
    lw_cuda_forget(x);
    lw_lt_close(x->lt);
    if (x->aside)
        cudaStreamDestroy(x->aside);
    if (x->stream) {
        cudaStreamSynchronize(x->stream);
        cudaStreamDestroy(x->stream);
    }
    free(x);
}

static lw_status device_open(infer_cuda *x, lw_error *err)
{
    lw_device d;
    LW_TRY(lw_device_query(x->device, &d, err));
    x->multiprocessors = d.multiprocessors;
    x->shared_bytes = d.shared_bytes;
    LW_CUDA_TRY(err, "opening the device", cudaSetDevice(x->device));
    LW_CUDA_TRY(err, "opening the device", cudaStreamCreateWithFlags(&x->stream, cudaStreamNonBlocking));
    LW_CUDA_TRY(err, "opening the device", cudaStreamCreateWithFlags(&x->aside, cudaStreamNonBlocking));
    int pools = 0;
    LW_CUDA_TRY(err, "opening the device",
                cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, x->device));
    x->pooled = pools != 0;
    if (x->pooled) { /* what is freed stays with this process for the next node */
        cudaMemPool_t pool;
        uint64_t keep = UINT64_MAX;
        LW_CUDA_TRY(err, "opening the device", cudaDeviceGetDefaultMemPool(&pool, x->device));
        LW_CUDA_TRY(err, "opening the device",
                    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    }
    return LW_OK;
}

static lw_status cuda_open(const lw_infer_backend *self, void **context, const lw_host *host, lw_error *err)
{
    infer_cuda *x = calloc(1, sizeof *x);
    if (!x)
        return lw_fail_memory(err, sizeof *x);
    x->policy = self->base.policy;
    x->library = self == &lw_infer_cuda_library;
    x->host = host;
    lw_status status = device_open(x, err);
    if (status != LW_OK) {
        cuda_close(x);
        return status;
    }
    *context = x;
    return LW_OK;
}

static lw_status cuda_wait(void *context, lw_error *err)
{
    infer_cuda *x = context;
    LW_CUDA_TRY(err, "running kernels", cudaStreamSynchronize(x->stream));
    return LW_OK;
}

#define LW_ROW(name_, what_, policy_)                                                                        \
    {                                                                                                        \
        .base = {.name = name_,                                                                              \
                 .what = what_,                                                                              \
                 .policy = policy_,                                                                          \
                 .usable = lw_backend_cuda_usable,                                                           \
                 .rank = lw_backend_cuda_rank},                                                              \
        .open = cuda_open, .close = cuda_close, .node = lw_cuda_node, .run = lw_cuda_run,                    \
        .fetch = cuda_fetch, .wait = cuda_wait, .kernel = lw_cuda_kernel                                     \
    }

const lw_infer_backend lw_infer_cuda_tensor =
    LW_ROW("cuda-tensor", "wide 8-bit products on tensor cores, narrow ones by DP4A", LW_CUDA_TENSOR);
const lw_infer_backend lw_infer_cuda_library =
    LW_ROW("cublaslt", "8-bit products by NVIDIA's library", LW_CUDA_TENSOR);
const lw_infer_backend lw_infer_cuda_dp4a =
    LW_ROW("cuda-dp4a", "8-bit products by four-byte dot products", LW_CUDA_DP4A);
const lw_infer_backend lw_infer_cuda_int =
    LW_ROW("cuda-int", "8-bit products by plain multiply-adds, on any GPU", LW_CUDA_INT);
