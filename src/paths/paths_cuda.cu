/* paths_cuda.cu - the cuda-* rows: contexts, and the plan of a solve. */
#include <stdio.h>
#include <stdlib.h>

#include "common/device.h"
#include "paths/paths_cuda.h"

static const lw_paths_kernels *kernels_for(const paths_cuda *x, const lw_paths_job *job)
{
    bool dpx = x->policy == LW_CUDA_DPX;
    switch (job->type) {
    case LW_PATHS_S32:
        return dpx ? &lw_paths_s32_dpx : &lw_paths_s32_plain;
    case LW_PATHS_F32:
        return dpx && !job->negative ? &lw_paths_f32_dpx : &lw_paths_f32_plain;
    case LW_PATHS_S64:
        return &lw_paths_s64_plain;
    default:
        return &lw_paths_f64_plain;
    }
}

lw_status lw_paths_need(paths_cuda *x, int which, int64_t bytes, lw_error *err)
{
    buffer *b = &x->buffers[which];
    if (b->bytes >= bytes)
        return LW_OK;
    cudaFree(b->p);
    *b = (buffer){};
    LW_CUDA_TRY(err, "allocating device memory", cudaMalloc(&b->p, (size_t)bytes));
    b->bytes = bytes;
    return LW_OK;
}

void lw_paths_drop(paths_cuda *x, int first, int last)
{
    for (int i = first; i <= last; i++) {
        cudaFree(x->buffers[i].p);
        x->buffers[i] = (buffer){};
    }
}

/* --- memory plans ------------------------------------------------------------------------------------- */

/* Bytes that this context may take, those it holds included. */
static lw_status available(paths_cuda *x, int64_t *out, lw_error *err)
{
    size_t free_bytes, total;
    LW_CUDA_TRY(err, "asking for free memory", cudaMemGetInfo(&free_bytes, &total));
    int64_t held = 0;
    for (int i = 0; i < N_BUFFERS; i++)
        held += x->buffers[i].bytes;
    *out = (int64_t)free_bytes + held - LW_PATHS_RESERVE;
    if (x->limit > 0 && x->limit < *out)
        *out = x->limit;
    return LW_OK;
}

static int64_t in_core_bytes(const lw_paths_kernels *k, const lw_paths_job *job, int64_t limit)
{
    int64_t n = ceil_div(job->n, k->tile) * k->tile, words = n / k->lanes;
    return (n * words + 2 * (n + words) * k->tile) * k->bytes +
           (k->lanes == 2 ? 2 * (int64_t)LW_PATHS_CHUNK : 0) + lw_paths_next_bytes(job, k->lanes == 2, limit);
}

static int64_t out_of_core_bytes(const lw_paths_kernels *k, int64_t n, int64_t block)
{
    return (2 * ceil_div(n, block) * block * block + SLOTS * block * block + 4 * block * k->tile) * k->bytes;
}

/* The largest block whose working set fits; 0: none. */
static int64_t out_of_core_block(const lw_paths_kernels *k, const lw_paths_job *job, int64_t limit)
{
    if (lw_paths_next_bytes(job, true, limit) > limit)
        return 0;
    for (int64_t blocks = 2; blocks <= ceil_div(job->n, k->tile); blocks++) {
        int64_t block = ceil_div(ceil_div(job->n, blocks), k->tile) * k->tile;
        if (out_of_core_bytes(k, job->n, block) <= limit)
            return block;
    }
    return 0;
}

/* 16 bits: 1 proved, 2 to be verified, 0 not to be tried. */
static int halves(const paths_cuda *x, const lw_paths_job *job, int64_t limit)
{
    if (x->policy != LW_CUDA_DPX || job->type != LW_PATHS_S32 || job->negative ||
        in_core_bytes(&lw_paths_u16_dpx, job, limit) > limit)
        return 0;
    if (job->high < LW_PATHS_INF_U16)
        return 1;
    return job->n >= LW_PATHS_TRY_U16_N && job->max_weight <= LW_PATHS_TRY_U16_WEIGHT ? 2 : 0;
}

/* --- the row ------------------------------------------------------------------------------------------- */

static lw_status cuda_supports(const lw_paths_backend *self, lw_paths_type type, lw_error *err)
{
    (void)self, (void)type, (void)err;
    return LW_OK;
}

static void cuda_close(void *context)
{
    paths_cuda *x = (paths_cuda *)context;
    if (!x)
        return;
    cudaSetDevice(x->device);
    lw_paths_drop(x, 0, N_BUFFERS - 1);
    cudaEvent_t events[] = {x->chain_done[0],    x->chain_done[1], x->chain_done[2],
                            x->chain_done[3],    x->rest_done[0],  x->rest_done[1],
                            x->rest_done[2],     x->rest_done[3],  x->loaded[0],
                            x->loaded[1],        x->loaded[2],     x->computed[0],
                            x->computed[1],      x->computed[2],   x->stored[0],
                            x->stored[1],        x->stored[2],     x->turn,
                            x->moved[0],         x->moved[1],      x->computed_next[0],
                            x->computed_next[1], x->begin,         x->end};
    for (cudaEvent_t event : events)
        if (event)
            cudaEventDestroy(event);
    cudaStream_t streams[] = {x->chain, x->rest, x->in, x->out};
    for (cudaStream_t stream : streams)
        if (stream)
            cudaStreamDestroy(stream);
    cudaFreeHost(x->flag);
    for (int s = 0; s < 2; s++)
        cudaFreeHost(x->pinned[s]);
    free(x);
}

static lw_status events_open(cudaEvent_t *events, int n, lw_error *err)
{
    for (int i = 0; i < n; i++)
        LW_CUDA_TRY(err, "opening the device", cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    return LW_OK;
}

static lw_status device_open(paths_cuda *x, lw_error *err)
{
    lw_device d;
    LW_TRY(lw_device_query(x->device, &d, err));
    x->multiprocessors = d.multiprocessors;
    x->clock_hz = d.clock_khz > 0 ? d.clock_khz * 1e3 : 1.5e9;
    LW_CUDA_TRY(err, "opening the device", cudaSetDevice(x->device));
    int calm, urgent;
    LW_CUDA_TRY(err, "opening the device", cudaDeviceGetStreamPriorityRange(&calm, &urgent));
    LW_CUDA_TRY(err, "opening the device",
                cudaStreamCreateWithPriority(&x->chain, cudaStreamNonBlocking, urgent));
    LW_CUDA_TRY(err, "opening the device",
                cudaStreamCreateWithPriority(&x->rest, cudaStreamNonBlocking, calm));
    LW_CUDA_TRY(err, "opening the device", cudaStreamCreateWithFlags(&x->in, cudaStreamNonBlocking));
    LW_CUDA_TRY(err, "opening the device", cudaStreamCreateWithFlags(&x->out, cudaStreamNonBlocking));
    LW_TRY(events_open(x->chain_done, 4, err));
    LW_TRY(events_open(x->rest_done, 4, err));
    LW_TRY(events_open(x->loaded, SLOTS, err));
    LW_TRY(events_open(x->computed, SLOTS, err));
    LW_TRY(events_open(x->stored, SLOTS, err));
    LW_TRY(events_open(&x->turn, 1, err));
    LW_TRY(events_open(x->moved, 2, err));
    LW_TRY(events_open(x->computed_next, 2, err));
    LW_CUDA_TRY(err, "opening the device", cudaEventCreate(&x->begin));
    LW_CUDA_TRY(err, "opening the device", cudaEventCreate(&x->end));
    LW_CUDA_TRY(err, "opening the device", cudaMallocHost((void **)&x->flag, sizeof *x->flag));
    return LW_OK;
}

static lw_status kernels_open(const lw_paths_kernels *k, lw_error *err)
{
    LW_CUDA_TRY(err, "loading kernels",
                cudaFuncSetAttribute((const void *)k->product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     k->shared));
    LW_CUDA_TRY(err, "loading kernels",
                cudaFuncSetAttribute((const void *)k->product, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared));
    return LW_OK;
}

static lw_status cuda_open(const lw_paths_backend *self, void **context, const lw_paths_setup *setup,
                           lw_error *err)
{
    paths_cuda *x = (paths_cuda *)calloc(1, sizeof *x);
    if (!x)
        return lw_fail_memory(err, sizeof *x);
    x->policy = self->base.policy;
    x->device = setup->device;
    x->limit = setup->device_bytes;
    x->pool = setup->pool;
    x->host = setup->host;
    lw_status status = device_open(x, err);
    if (status != LW_OK) {
        cuda_close(x);
        return status;
    }
    *context = x;
    return LW_OK;
}

/* The smallest working set, for messages. */
static lw_status too_little(const lw_paths_kernels *k, const lw_paths_job *job, int64_t limit, lw_error *err)
{
    int64_t in = in_core_bytes(k, job, limit), out = out_of_core_bytes(k, job->n, k->tile);
    if (out < lw_paths_next_bytes(job, true, limit))
        out = lw_paths_next_bytes(job, true, limit);
    return lw_fail(
        err, LW_E_NOMEM,
        "%lld vertices need %.2f GB of GPU memory, or at least %.2f GB in pieces; %.2f GB may be used",
        (long long)job->n, (double)in / 1e9, (double)out / 1e9, (double)limit / 1e9);
}

static lw_status cuda_estimate(void *context, const lw_paths_job *job, lw_paths_estimate *out, lw_error *err)
{
    paths_cuda *x = (paths_cuda *)context;
    const lw_paths_kernels *k = kernels_for(x, job);
    int64_t limit = 0;
    LW_CUDA_TRY(err, "opening the device", cudaSetDevice(x->device));
    LW_TRY(available(x, &limit, err));
    *out = (lw_paths_estimate){};
    out->host_bytes = 2 * (int64_t)LW_PATHS_CHUNK;
    if (halves(x, job, limit)) {
        k = &lw_paths_u16_dpx;
        out->device_bytes = in_core_bytes(k, job, limit);
    } else if (in_core_bytes(k, job, limit) <= limit) {
        out->device_bytes = in_core_bytes(k, job, limit);
    } else {
        int64_t block = out_of_core_block(k, job, limit);
        if (block == 0)
            return too_little(k, job, limit, err);
        out->device_bytes = out_of_core_bytes(k, job->n, block);
    }
    double n = (double)job->n;
    out->seconds = n * n * (n - (double)job->k_begin) / (k->rate * x->multiprocessors * x->clock_hz);
    return LW_OK;
}

static lw_status cuda_solve(void *context, const lw_paths_job *job, lw_paths_report *report, lw_error *err)
{
    paths_cuda *x = (paths_cuda *)context;
    run r = {x, job, kernels_for(x, job), report, job->k_begin, job->k_begin, false, false};
    if (job->n == 0)
        return LW_OK;
    int64_t limit = 0;
    LW_CUDA_TRY(err, "opening the device", cudaSetDevice(x->device));
    LW_TRY(available(x, &limit, err));
    *x->flag = 0;
    const char *choice = "", *where = "in core";
    int narrow = halves(x, job, limit);
    if (narrow) {
        run half = r;
        half.k = &lw_paths_u16_dpx;
        half.verify = narrow == 2;
        LW_TRY(kernels_open(half.k, err));
        LW_TRY(lw_paths_in_core(&half, limit, err));
        choice = narrow == 1 ? " proved" : " verified";
        if (half.overflow) {
            choice = " after 16 bits were too few";
            r.saved = r.done = half.saved;
        } else {
            r = half;
        }
        narrow = !half.overflow;
    }
    if (!narrow) {
        LW_TRY(kernels_open(r.k, err));
        if (in_core_bytes(r.k, job, limit) <= limit) {
            LW_TRY(lw_paths_in_core(&r, limit, err));
        } else {
            int64_t block = out_of_core_block(r.k, job, limit);
            if (block == 0)
                return too_little(r.k, job, limit, err);
            LW_TRY(lw_paths_out_of_core(&r, block, limit, err));
            where = "out of host memory";
        }
    }
    report->relaxations += (double)job->n * (double)job->n * (double)(job->n - job->k_begin);
    snprintf(report->how, sizeof report->how, "%s%s, %s, tile %dx%dx%d", r.k->name, choice, where, r.k->tile,
             r.k->cols * r.k->lanes, r.k->tile);
    return LW_OK;
}

#define LW_ROW(name_, what_, policy_, usable_)                                                               \
    {                                                                                                        \
        {name_, what_, policy_, usable_, lw_backend_cuda_rank}, cuda_supports, cuda_open, cuda_estimate,     \
            cuda_solve, cuda_close                                                                           \
    }

extern "C" {
const lw_paths_backend lw_paths_cuda_dpx =
    LW_ROW("cuda-dpx", "blocked, with the joined add-min and the three-way minimum of Hopper", LW_CUDA_DPX,
           lw_backend_cuda_usable);
const lw_paths_backend lw_paths_cuda_half2 =
    LW_ROW("cuda-half2", "not for distances", LW_CUDA_HALF2, lw_paths_half2_usable);
const lw_paths_backend lw_paths_cuda_int = LW_ROW(
    "cuda-int", "blocked, plain additions and minima, on any GPU", LW_CUDA_INT, lw_backend_cuda_usable);
}
