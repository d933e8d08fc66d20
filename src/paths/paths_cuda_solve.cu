/* paths_cuda_solve.cu - blocked Floyd-Warshall on one GPU, in device memory or out of host memory.
 *
 * In core. For each k-block: close the diagonal block, then its row and column panel, then update all the
 * rest with one min-plus product. Two streams: `rest` runs the product of k-block k on everything but block
 * rows and columns k and k + 1, while `chain` (urgent) updates block row and column k + 1 and already closes
 * k-block k + 1. Who reads and writes what:
 *   rest(k)    reads panels[k % 2], writes blocks outside rows and columns k, k + 1
 *   chain(k+1) reads panels[k % 2], writes blocks of row and column k + 1, then panels[(k + 1) % 2]
 * The two share no block, and panels[(k + 1) % 2] was last read by rest(k - 1), which chain(k + 1) awaits.
 *
 * Out of core. The same three steps with blocks of thousands of pivots: the matrix stays in host memory, the
 * packed panels of the current block stay on the device, and all other tiles pass through a ring of slots,
 * copied in, updated and copied out by three streams. A tile costs block^2 words each way for block^3 steps,
 * so copies hide behind the product from a block of about 1200 up (15 T steps/s against 50 GB/s each way). */
#include "paths/paths_cuda.h"

/* --- in device memory ---------------------------------------------------------------------------------- */

/* A square matrix on the device with its panels. */
typedef struct square {
    void *c;
    int64_t ldc; /* words */
    int blocks;
} square;

static lw_status product(run *r, lw_paths_product p, cudaStream_t stream, lw_error *err)
{
    const lw_paths_kernels *k = r->k;
    int64_t grid = lw_paths_product_blocks(&p, k->tile / (k->cols * k->lanes));
    p.one = 1;
    if (grid > 0)
        LW_CUDA_TRY(
            err, "min-plus product",
            lw_launch(k->product, dim3((unsigned)grid), (unsigned)k->threads, (size_t)k->shared, stream, p));
    return LW_OK;
}

static lw_paths_product of_block(const run *r, const square *m, int kb)
{
    lw_paths_product p = {};
    p.c = m->c, p.ldc = m->ldc;
    p.a = r->x->buffers[PANEL_A0 + kb % 2].p, p.b = r->x->buffers[PANEL_B0 + kb % 2].p;
    p.pitch = p.depth = r->k->tile;
    p.rows = p.cols = m->blocks;
    p.skip = kb;
    return p;
}

static lw_status pack(run *r, const lw_paths_pack *p, int64_t blocks, int64_t depth, cudaStream_t stream,
                      lw_error *err)
{
    const lw_paths_kernels *k = r->k;
    dim3 grid((unsigned)blocks, (unsigned)(depth / (LW_PACK_WORDS * k->lanes)), 2);
    LW_CUDA_TRY(err, "packing panels", lw_launch(k->pack, grid, LW_PACK_THREADS, 0, stream, *p));
    return LW_OK;
}

/* Closes block kb: its diagonal block, then row and column panel, and packs them. */
static lw_status close_block(run *r, const square *m, int kb, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_kernels *k = r->k;
    lw_paths_diagonal d = {m->c, m->ldc, (int64_t)kb * k->tile, x->flag};
    LW_CUDA_TRY(err, "diagonal block",
                lw_launch(k->diagonal, dim3(1),
                          (unsigned)(k->tile * k->tile / (LW_DIAGONAL_ROWS * LW_DIAGONAL_ROWS)), 0, x->chain,
                          d));
    if (m->blocks > 1) {
        lw_paths_product p = of_block(r, m, kb);
        lw_paths_pack q = {m->c, m->ldc, d.k0, (void *)p.a, (void *)p.b, k->tile, 0};
        p.cross = 1, p.at = kb;
        LW_TRY(pack(r, &q, m->blocks, k->tile, x->chain, err));
        LW_TRY(product(r, p, x->chain, err));
        LW_TRY(pack(r, &q, m->blocks, k->tile, x->chain, err));
    }
    LW_CUDA_TRY(err, "recording", cudaEventRecord(x->chain_done[kb % 4], x->chain));
    return LW_OK;
}

static lw_status timer_start(run *r, lw_error *err)
{
    LW_CUDA_TRY(err, "timing", cudaEventRecord(r->x->begin, r->x->rest));
    LW_CUDA_TRY(err, "timing", cudaStreamWaitEvent(r->x->chain, r->x->begin, 0));
    return LW_OK;
}

/* Waits for all that was launched since timer_start(). */
static lw_status timer_stop(run *r, double *seconds, lw_error *err)
{
    float ms = 0;
    LW_CUDA_TRY(err, "timing", cudaEventRecord(r->x->end, r->x->rest));
    LW_CUDA_TRY(err, "computing", cudaEventSynchronize(r->x->end));
    LW_CUDA_TRY(err, "timing", cudaEventElapsedTime(&ms, r->x->begin, r->x->end));
    *seconds += ms * 1e-3;
    return LW_OK;
}

static lw_status look(const run *r, lw_error *err)
{
    if (*(volatile int *)r->x->flag)
        return lw_fail(err, LW_E_INTERNAL, "the graph has a negative cycle, found while closing the matrix");
    if (lw_stopped(r->x->host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted after %lld of %lld pivots", (long long)r->done,
                       (long long)r->job->n);
    return LW_OK;
}

static lw_status tell(run *r, int64_t done, lw_error *err)
{
    const lw_host *host = r->x->host;
    double n = (double)r->job->n;
    if (done > r->done) {
        r->done = done < r->job->n ? done : r->job->n;
        if (host && host->progress)
            host->progress(host->user, (double)r->done, n, n * n * (double)(r->done - r->job->k_begin));
    }
    return look(r, err);
}

/* Closes the matrix from block `first` on. With `save` it reports progress and calls save(r, k) at the
 * checkpoints. */
static lw_status close_square(run *r, const square *m, int first,
                              lw_status (*save)(run *r, int64_t k, lw_error *err), lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    int64_t tile = r->k->tile;
    double unused = 0, *seconds = save ? &r->report->kernel_seconds : &unused;
    LW_TRY(timer_start(r, err));
    LW_TRY(close_block(r, m, first, err));
    for (int kb = first; kb < m->blocks; kb++) {
        int64_t k = (kb + 1) * tile < job->n ? (kb + 1) * tile : job->n;
        bool stop = save && job->checkpoint_want && job->checkpoint_want(job->checkpoint_user, k);
        bool ahead = kb + 1 < m->blocks && !stop;
        LW_CUDA_TRY(err, "waiting", cudaStreamWaitEvent(x->rest, x->chain_done[kb % 4], 0));
        if (ahead) {
            if (kb > first)
                LW_CUDA_TRY(err, "waiting", cudaStreamWaitEvent(x->chain, x->rest_done[(kb - 1) % 4], 0));
            lw_paths_product p = of_block(r, m, kb);
            p.cross = 1, p.at = kb + 1;
            LW_TRY(product(r, p, x->chain, err));
            LW_TRY(close_block(r, m, kb + 1, err));
        }
        lw_paths_product p = of_block(r, m, kb);
        p.n_skip = ahead ? 2 : 1;
        LW_TRY(product(r, p, x->rest, err));
        LW_CUDA_TRY(err, "recording", cudaEventRecord(x->rest_done[kb % 4], x->rest));
        if (save && kb >= first + 2) { /* stay two blocks ahead of the device, no more */
            LW_CUDA_TRY(err, "computing", cudaEventSynchronize(x->rest_done[(kb - 2) % 4]));
            LW_TRY(tell(r, (kb - 1) * tile, err));
        }
        if (stop) {
            LW_TRY(timer_stop(r, seconds, err));
            LW_TRY(tell(r, k, err));
            LW_TRY(save(r, k, err));
            if (r->overflow)
                return LW_OK;
            LW_TRY(timer_start(r, err));
            if (kb + 1 < m->blocks)
                LW_TRY(close_block(r, m, kb + 1, err));
        }
    }
    LW_TRY(timer_stop(r, seconds, err));
    return save ? tell(r, job->n, err) : look(r, err);
}

static place in_core_place(const run *r)
{
    const lw_paths_job *job = r->job;
    const lw_paths_kernels *k = r->k;
    int64_t size = lw_paths_size(job->type), words = ceil_div(job->n, k->tile) * k->tile / k->lanes;
    return (place){
        (char *)job->matrix, job->ld * size, job->n * size, job->n, (char *)r->x->buffers[MATRIX].p,
        words * k->bytes,    k->lanes == 2};
}

/* The words of an in-core matrix are contiguous, padding included. */
static lw_status verify(run *r, const place *m, lw_error *err)
{
    int64_t rows = ceil_div(r->job->n, r->k->tile) * r->k->tile;
    return lw_paths_verify(r, m->device, rows * (m->device_pitch / 4), err);
}

static lw_status save_in_core(run *r, int64_t k, lw_error *err)
{
    place m = in_core_place(r);
    if (r->verify) {
        LW_TRY(verify(r, &m, err));
        if (r->overflow)
            return LW_OK;
    }
    LW_TRY(lw_paths_download(r->x, &m, err));
    r->saved = k;
    return r->job->checkpoint_save(r->job->checkpoint_user, k, err);
}

lw_status lw_paths_in_core(run *r, int64_t limit, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    const lw_paths_kernels *k = r->k;
    int64_t n = ceil_div(job->n, k->tile) * k->tile, words = n / k->lanes;
    lw_paths_drop(x, SLOT0, BIG_B);
    LW_TRY(lw_paths_need(x, MATRIX, n * words * k->bytes, err));
    for (int s = 0; s < 2; s++) {
        LW_TRY(lw_paths_need(x, PANEL_A0 + s, n * k->tile * k->bytes, err));
        LW_TRY(lw_paths_need(x, PANEL_B0 + s, words * k->tile * k->bytes, err));
    }
    place m = in_core_place(r);
    /* 16 bits: rows are padded as they are narrowed */
    LW_TRY(lw_paths_pad(r, m.device, words, job->n, k->lanes == 2 ? words : job->n, n, words, err));
    LW_TRY(lw_paths_upload(x, &m, err));
    square whole = {m.device, words, (int)(n / k->tile)};
    LW_TRY(close_square(r, &whole, (int)((r->saved < job->n ? r->saved : job->n - 1) / k->tile), save_in_core,
                        err));
    if (r->verify && !r->overflow)
        LW_TRY(verify(r, &m, err));
    if (r->overflow)
        return LW_OK;
    LW_TRY(lw_paths_settle(r, m.device, words, job->n, job->n, err));
    LW_CUDA_TRY(err, "settling", cudaStreamSynchronize(x->rest));
    if (job->next)
        LW_TRY(lw_paths_next_hops(r, &m, limit, err));
    return lw_paths_download(x, &m, err);
}

/* --- out of host memory -------------------------------------------------------------------------------- */

typedef struct big {
    int64_t block, blocks; /* pivots of one, number of them */
    int64_t tiles_done;    /* tiles passed through the ring: the slot is tiles_done % SLOTS */
} big;

/* Pivots, rows or columns of block b. */
static int64_t extent(const run *r, const big *g, int64_t b)
{
    int64_t left = r->job->n - b * g->block;
    return left < g->block ? left : g->block;
}

static char *tile_host(const run *r, const big *g, int64_t i, int64_t j)
{
    const lw_paths_job *job = r->job;
    return (char *)job->matrix + (i * g->block * job->ld + j * g->block) * lw_paths_size(job->type);
}

/* Starts copying tile (i,j) into the next slot, and lets `rest` wait for it. */
static lw_status tile_in(run *r, big *g, int64_t i, int64_t j, void **c, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_kernels *k = r->k;
    int64_t s = g->tiles_done % SLOTS, rows = extent(r, g, i), cols = extent(r, g, j);
    if (g->tiles_done >= SLOTS) {
        LW_CUDA_TRY(err, "copying from the GPU", cudaEventSynchronize(x->stored[s]));
        LW_TRY(look(r, err));
    }
    *c = x->buffers[SLOT0 + s].p;
    LW_TRY(lw_paths_pad(r, *c, g->block, rows, cols, g->block, g->block, err));
    LW_CUDA_TRY(err, "copying to the GPU",
                cudaMemcpy2DAsync(*c, (size_t)(g->block * k->bytes), tile_host(r, g, i, j),
                                  (size_t)(r->job->ld * k->bytes), (size_t)(cols * k->bytes), (size_t)rows,
                                  cudaMemcpyHostToDevice, x->in));
    LW_CUDA_TRY(err, "recording", cudaEventRecord(x->loaded[s], x->in));
    LW_CUDA_TRY(err, "waiting", cudaStreamWaitEvent(x->rest, x->loaded[s], 0));
    return LW_OK;
}

/* Copies the slot that was filled last back to tile (i,j) once `rest` has done with it. */
static lw_status tile_out(run *r, big *g, int64_t i, int64_t j, bool last, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_kernels *k = r->k;
    int64_t s = g->tiles_done++ % SLOTS, rows = extent(r, g, i), cols = extent(r, g, j);
    void *c = x->buffers[SLOT0 + s].p;
    if (last)
        LW_TRY(lw_paths_settle(r, c, g->block, rows, cols, err));
    LW_CUDA_TRY(err, "recording", cudaEventRecord(x->computed[s], x->rest));
    LW_CUDA_TRY(err, "waiting", cudaStreamWaitEvent(x->out, x->computed[s], 0));
    LW_CUDA_TRY(err, "copying from the GPU",
                cudaMemcpy2DAsync(tile_host(r, g, i, j), (size_t)(r->job->ld * k->bytes), c,
                                  (size_t)(g->block * k->bytes), (size_t)(cols * k->bytes), (size_t)rows,
                                  cudaMemcpyDeviceToHost, x->out));
    LW_CUDA_TRY(err, "recording", cudaEventRecord(x->stored[s], x->out));
    return LW_OK;
}

/* Panel pieces of block b: a holds rows, b columns. */
static char *big_panel(const run *r, const big *g, int which, int64_t b)
{
    return (char *)r->x->buffers[which].p + b * g->block * g->block * r->k->bytes;
}

static lw_status big_pack(run *r, const big *g, void *c, int64_t depth, void *a, void *b, int64_t size,
                          lw_error *err)
{
    lw_paths_pack q = {c, g->block, 0, a, b, g->block, 0};
    int64_t tile = r->k->tile;
    return pack(r, &q, ceil_div(size, tile), ceil_div(depth, tile) * tile, r->x->rest, err);
}

static lw_status big_product(run *r, const big *g, void *c, int64_t i, int64_t j, int64_t kb, lw_error *err)
{
    int64_t tile = r->k->tile;
    lw_paths_product p = {};
    p.c = c, p.ldc = g->block;
    p.a = big_panel(r, g, BIG_A, i), p.b = big_panel(r, g, BIG_B, j);
    p.pitch = g->block, p.depth = (int32_t)(ceil_div(extent(r, g, kb), tile) * tile);
    p.rows = (int32_t)ceil_div(extent(r, g, i), tile), p.cols = (int32_t)ceil_div(extent(r, g, j), tile);
    return product(r, p, r->x->rest, err);
}

static lw_status big_block(run *r, big *g, int64_t kb, lw_error *err)
{
    paths_cuda *x = r->x;
    int64_t tile = r->k->tile, size = extent(r, g, kb);
    bool last = kb == g->blocks - 1;
    void *c;
    LW_TRY(tile_in(r, g, kb, kb, &c, err));
    square diagonal = {c, g->block, (int)ceil_div(size, tile)};
    LW_TRY(close_square(r, &diagonal, 0, NULL, err));
    LW_TRY(big_pack(r, g, c, size, big_panel(r, g, BIG_A, kb), big_panel(r, g, BIG_B, kb), size, err));
    LW_TRY(tile_out(r, g, kb, kb, last, err));
    /* The panels: the closed diagonal block holds a zero diagonal, so one product from the old values is all.
     */
    for (int64_t j = 0; j < g->blocks; j++) {
        if (j == kb)
            continue;
        void *b = big_panel(r, g, BIG_B, j);
        LW_TRY(tile_in(r, g, kb, j, &c, err));
        LW_TRY(big_pack(r, g, c, size, NULL, b, extent(r, g, j), err));
        LW_TRY(big_product(r, g, c, kb, j, kb, err));
        LW_TRY(big_pack(r, g, c, size, NULL, b, extent(r, g, j), err));
        LW_TRY(tile_out(r, g, kb, j, last, err));
    }
    for (int64_t i = 0; i < g->blocks; i++) {
        if (i == kb)
            continue;
        void *a = big_panel(r, g, BIG_A, i);
        LW_TRY(tile_in(r, g, i, kb, &c, err));
        LW_TRY(big_pack(r, g, c, size, a, NULL, extent(r, g, i), err));
        LW_TRY(big_product(r, g, c, i, kb, kb, err));
        LW_TRY(big_pack(r, g, c, size, a, NULL, extent(r, g, i), err));
        LW_TRY(tile_out(r, g, i, kb, last, err));
    }
    for (int64_t i = 0; i < g->blocks; i++)
        for (int64_t j = 0; j < g->blocks; j++) {
            if (i == kb || j == kb)
                continue;
            LW_TRY(tile_in(r, g, i, j, &c, err));
            LW_TRY(big_product(r, g, c, i, j, kb, err));
            LW_TRY(tile_out(r, g, i, j, last, err));
        }
    /* The next block reads what this one wrote. */
    LW_CUDA_TRY(err, "recording", cudaEventRecord(x->turn, x->out));
    LW_CUDA_TRY(err, "waiting", cudaStreamWaitEvent(x->in, x->turn, 0));
    return LW_OK;
}

static lw_status big_blocks(run *r, big *g, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    cudaEvent_t begin = NULL, end = NULL;
    lw_status status = LW_OK;
    float ms;
    LW_CUDA_TRY_END(err, "timing", cudaEventCreate(&begin));
    LW_CUDA_TRY_END(err, "timing", cudaEventCreate(&end));
    LW_CUDA_TRY_END(err, "timing", cudaEventRecord(begin, x->in));
    for (int64_t kb = job->k_begin / g->block; kb < g->blocks && kb * g->block < job->n; kb++) {
        LW_TRY_END(big_block(r, g, kb, err));
        int64_t k = kb * g->block + extent(r, g, kb);
        LW_TRY_END(tell(r, k, err));
        if (job->checkpoint_want && job->checkpoint_want(job->checkpoint_user, k)) {
            LW_CUDA_TRY_END(err, "copying from the GPU", cudaStreamSynchronize(x->out));
            LW_TRY_END(look(r, err));
            LW_TRY_END(job->checkpoint_save(job->checkpoint_user, k, err));
        }
    }
    LW_CUDA_TRY_END(err, "timing", cudaEventRecord(end, x->out));
    LW_CUDA_TRY_END(err, "computing", cudaEventSynchronize(end));
    LW_CUDA_TRY_END(err, "timing", cudaEventElapsedTime(&ms, begin, end));
    r->report->kernel_seconds += ms * 1e-3;
    status = look(r, err);
end:
    if (begin)
        cudaEventDestroy(begin);
    if (end)
        cudaEventDestroy(end);
    return status;
}

lw_status lw_paths_out_of_core(run *r, int64_t block, int64_t limit, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    const lw_paths_kernels *k = r->k;
    big g = {block, ceil_div(job->n, block), 0};
    lw_paths_drop(x, 0, N_BUFFERS - 1);
    for (int s = 0; s < SLOTS; s++)
        LW_TRY(lw_paths_need(x, SLOT0 + s, block * block * k->bytes, err));
    for (int s = 0; s < 2; s++) {
        LW_TRY(lw_paths_need(x, BIG_A + s, g.blocks * block * block * k->bytes, err));
        LW_TRY(lw_paths_need(x, PANEL_A0 + s, block * k->tile * k->bytes, err));
        LW_TRY(lw_paths_need(x, PANEL_B0 + s, block * k->tile * k->bytes, err));
    }
    /* Pinned, the matrix is copied by the device alone, while we go on. Where it cannot be pinned, the
     * driver stages the copies itself: the same result, slower. */
    size_t bytes = (size_t)(((job->n - 1) * job->ld + job->n) * k->bytes);
    bool pinned = cudaHostRegister(job->matrix, bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (!pinned) {
        cudaGetLastError();
        lw_say(x->host, LW_SAY_INFO, "%.1f GB of host memory cannot be pinned: copies will not overlap",
               (double)bytes / 1e9);
    }
    lw_status status = big_blocks(r, &g, err);
    cudaDeviceSynchronize();
    if (pinned)
        cudaHostUnregister(job->matrix);
    if (status == LW_OK && job->next) {
        lw_paths_drop(x, 0, N_BUFFERS - 1);
        place nowhere = {};
        status = lw_paths_next_hops(r, &nowhere, limit, err);
    }
    return status;
}
