/* paths_cuda.cu - the cuda-* rows: blocked Floyd-Warshall on one GPU, in device memory or out of host memory.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda_check.h"
#include "common/device.h"
#include "paths/paths_backend.h"
#include "paths/paths_kernels.h"
#include "paths/paths_tuning.h"

/* --- small kernels: padding, 16 bits, next hops ------------------------------------------------------ */

typedef struct lw_paths_fill {
    void *c;
    int64_t ldc, rows, cols;
    uint64_t value; /* the lowest bytes */
} lw_paths_fill;

template <typename word> __global__ void lw_paths_fill_kernel(lw_paths_fill p)
{
    for (int64_t i = blockIdx.y; i < p.rows; i += gridDim.y)
        for (int64_t j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; j < p.cols;
             j += (int64_t)gridDim.x * blockDim.x)
            ((word *)p.c)[i * p.ldc + j] = (word)p.value;
}

/* s32 <-> u16, row by row; columns from `cols` to the end of a row of words become infinity. */
typedef struct lw_paths_halves {
    int32_t *wide;
    int64_t ldw;
    uint32_t *words;
    int64_t ldc; /* words */
    int64_t rows, cols;
} lw_paths_halves;

__global__ void lw_paths_narrow_kernel(lw_paths_halves p)
{
    for (int64_t i = blockIdx.y; i < p.rows; i += gridDim.y)
        for (int64_t j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; j < p.ldc;
             j += (int64_t)gridDim.x * blockDim.x) {
            const int32_t *from = p.wide + i * p.ldw + 2 * j;
            int32_t low = 2 * j < p.cols ? from[0] : LW_PATHS_INF_U16;
            int32_t high = 2 * j + 1 < p.cols ? from[1] : LW_PATHS_INF_U16;
            p.words[i * p.ldc + j] =
                (uint32_t)min(low, LW_PATHS_INF_U16) | (uint32_t)min(high, LW_PATHS_INF_U16) << 16;
        }
}

__global__ void lw_paths_widen_kernel(lw_paths_halves p)
{
    for (int64_t i = blockIdx.y; i < p.rows; i += gridDim.y)
        for (int64_t j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; j < p.cols;
             j += (int64_t)gridDim.x * blockDim.x) {
            int32_t v = ((const uint16_t *)(p.words + i * p.ldc))[j];
            p.wide[i * p.ldw + j] = v == LW_PATHS_INF_U16 ? LW_PATHS_INF_S32 : v;
        }
}

/* *found becomes 1 when a finite value lies above LW_PATHS_SAFE_U16. */
__global__ void lw_paths_check_kernel(const uint32_t *words, int64_t n, int *found)
{
    bool bad = false;
    for (int64_t x = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; x < n;
         x += (int64_t)gridDim.x * blockDim.x) {
        uint32_t low = words[x] & 0xffff, high = words[x] >> 16;
        bad |= (low > LW_PATHS_SAFE_U16 && low != LW_PATHS_INF_U16) ||
               (high > LW_PATHS_SAFE_U16 && high != LW_PATHS_INF_U16);
    }
    if (bad)
        *found = 1;
}

/* With negative weights infinity drifts; this brings it back. */
typedef struct lw_paths_settle {
    void *c;
    int64_t ldc, rows, cols, high, infinity;
} lw_paths_settle;

template <typename number> __global__ void lw_paths_settle_kernel(lw_paths_settle p)
{
    for (int64_t i = blockIdx.y; i < p.rows; i += gridDim.y)
        for (int64_t j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; j < p.cols;
             j += (int64_t)gridDim.x * blockDim.x) {
            number *d = (number *)p.c + i * p.ldc + j;
            if (*d > (number)p.high)
                *d = (number)p.infinity;
        }
}

/* Next hops of the rows row0 + blockIdx.x and `cols` columns from col0 on. */
typedef struct lw_paths_next {
    const void *d; /* all vertices x these columns; rows are padded to a multiple of 4 */
    int64_t ldd;
    int32_t *next; /* the first of these rows and columns; rows padded likewise */
    int64_t ldn;
    int64_t row0, col0;
    int32_t cols;
    int64_t high;         /* a larger distance means no path */
    const int64_t *start; /* of row0 and on */
    int64_t first;        /* the edge that to[0] and weight[0] are */
    const int32_t *to;
    const void *weight;
} lw_paths_next;

constexpr int NEXT_THREADS = 128, NEXT_COLS = 4 * NEXT_THREADS, NEXT_BATCH = 4;

/* Thread blocks of consecutive rows run together on the same columns, so that those columns of the matrix
 * stay in the L2 cache. Four edges at a time, to have four loads under way. */
template <typename number>
__global__ void __launch_bounds__(NEXT_THREADS) lw_paths_next_kernel(lw_paths_next p)
{
    int j = (int)(blockIdx.y * NEXT_THREADS + threadIdx.x) * 4;
    if (j >= p.cols)
        return;
    struct alignas(16) four {
        number x[4];
    };
    int64_t i = p.row0 + blockIdx.x;
    const number *d = (const number *)p.d + j;
    four goal = *(const four *)(d + i * p.ldd);
    int hop[4], missing = 0;
    for (int c = 0; c < 4; c++) {
        hop[c] = p.col0 + j + c == i ? (int)i : -1;
        bool wanted = hop[c] < 0 && goal.x[c] <= (number)p.high;
        missing |= wanted << c;
    }
    int64_t end = p.start[blockIdx.x + 1] - p.first;
    for (int64_t e = p.start[blockIdx.x] - p.first; missing && e < end; e += NEXT_BATCH) {
        four via[NEXT_BATCH];
        int to[NEXT_BATCH];
        number weight[NEXT_BATCH];
#pragma unroll
        for (int u = 0; u < NEXT_BATCH; u++) { /* past the end: the last edge once more */
            int64_t at = min(e + u, end - 1);
            to[u] = p.to[at];
            weight[u] = ((const number *)p.weight)[at];
            via[u] = *(const four *)(d + to[u] * p.ldd);
        }
#pragma unroll
        for (int u = 0; u < NEXT_BATCH; u++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (missing >> c & 1 && weight[u] + via[u].x[c] == goal.x[c]) {
                    hop[c] = to[u];
                    missing &= ~(1 << c);
                }
    }
    *(int4 *)(p.next + blockIdx.x * p.ldn + j) = make_int4(hop[0], hop[1], hop[2], hop[3]);
}

/* --- context ------------------------------------------------------------------------------------------ */

typedef struct buffer {
    void *p;
    int64_t bytes;
} buffer;

enum { SLOTS = 3 };
enum {
    MATRIX,
    PANEL_A0,
    PANEL_A1,
    PANEL_B0,
    PANEL_B1,
    CHUNK0, /* 16-bit runs: rows on their way in or out */
    CHUNK1,
    SLOT0,
    BIG_A = SLOT0 + SLOTS,
    BIG_B,
    STRIP,
    NEXT0,
    NEXT1,
    EDGE_START,
    EDGE_TO,
    EDGE_WEIGHT,
    N_BUFFERS
};

typedef struct paths_cuda {
    int policy;
    int device, multiprocessors;
    double clock_hz;
    int64_t limit; /* 0: what is free */
    lw_pool *pool;
    const lw_host *host;
    cudaStream_t chain, rest, in, out;
    cudaEvent_t chain_done[4], rest_done[4]; /* by k-block, modulo 4 */
    cudaEvent_t loaded[SLOTS], computed[SLOTS], stored[SLOTS], turn;
    cudaEvent_t moved[2], computed_next[2];
    cudaEvent_t begin, end; /* timing */
    int *flag;              /* pinned; written by kernels */
    void *pinned[2];        /* staging of LW_PATHS_CHUNK bytes each */
    buffer buffers[N_BUFFERS];
} paths_cuda;

/* One solve on its way. */
typedef struct run {
    paths_cuda *x;
    const lw_paths_job *job;
    const lw_paths_kernels *k;
    lw_paths_report *report;
    int64_t done;  /* pivots; host memory may be older */
    int64_t saved; /* pivots done in the host matrix */
    bool verify;   /* 16 bits without a proof */
    bool overflow; /* 16 bits were too few */
} run;

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

/* The pattern of infinity in every lane of a word. */
static uint64_t infinity_word(const lw_paths_kernels *k, lw_paths_type type)
{
    if (k->lanes == 2)
        return LW_PATHS_INF_U16 | (uint64_t)LW_PATHS_INF_U16 << 16;
    switch (type) {
    case LW_PATHS_S32:
        return LW_PATHS_INF_S32;
    case LW_PATHS_F32:
        return 0x7f800000;
    case LW_PATHS_S64:
        return (uint64_t)LW_PATHS_INF_S64;
    default:
        return UINT64_C(0x7ff0000000000000);
    }
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static lw_status need(paths_cuda *x, int which, int64_t bytes, lw_error *err)
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

static void drop(paths_cuda *x, int first, int last)
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

/* Columns of the matrix whose next hops are found at a time. */
static int64_t strip_cols(int64_t n, int64_t word_bytes, int64_t limit)
{
    int64_t fit = limit / 4 / (n * (8 + word_bytes)) / NEXT_COLS * NEXT_COLS;
    int64_t cols = LW_PATHS_STRIP / (4 * n) / NEXT_COLS * NEXT_COLS;
    if (cols > fit)
        cols = fit;
    int64_t all = ceil_div(n, NEXT_COLS) * NEXT_COLS;
    return cols < NEXT_COLS ? NEXT_COLS : cols > all ? all : cols;
}

/* Edges that are on the device at a time. */
static int64_t edge_cap(const lw_paths_job *job, int64_t limit)
{
    int64_t edges = job->edge_start ? job->edge_start[job->n] : 0;
    int64_t fit = limit / 8 / (4 + lw_paths_size(job->type));
    if (fit < job->n)
        fit = job->n; /* a row at least */
    return edges < fit ? edges : fit;
}

static int64_t next_bytes(const lw_paths_job *job, bool strip, int64_t limit)
{
    if (!job->next)
        return 0;
    int64_t word = lw_paths_size(job->type), cols = strip_cols(job->n, word, limit);
    return job->n * cols * (8 + (strip ? word : 0)) + (job->n + 1) * 8 + edge_cap(job, limit) * (4 + word);
}

static int64_t in_core_bytes(const lw_paths_kernels *k, const lw_paths_job *job, int64_t limit)
{
    int64_t n = ceil_div(job->n, k->tile) * k->tile, words = n / k->lanes;
    return (n * words + 2 * (n + words) * k->tile) * k->bytes +
           (k->lanes == 2 ? 2 * (int64_t)LW_PATHS_CHUNK : 0) + next_bytes(job, k->lanes == 2, limit);
}

static int64_t out_of_core_bytes(const lw_paths_kernels *k, int64_t n, int64_t block)
{
    return (2 * ceil_div(n, block) * block * block + SLOTS * block * block + 4 * block * k->tile) * k->bytes;
}

/* The largest block whose working set fits; 0: none. */
static int64_t out_of_core_block(const lw_paths_kernels *k, const lw_paths_job *job, int64_t limit)
{
    if (next_bytes(job, true, limit) > limit)
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

/* --- copies between the host's matrix and the device, through pinned memory --------------------------- */

typedef struct rows_copy {
    char *to;
    const char *from;
    int64_t to_pitch, from_pitch, width, rows, per;
} rows_copy;

static lw_status copy_task(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const rows_copy *c = (const rows_copy *)arg;
    int64_t end = (i + 1) * c->per < c->rows ? (i + 1) * c->per : c->rows;
    for (int64_t r = i * c->per; r < end; r++)
        memcpy(c->to + r * c->to_pitch, c->from + r * c->from_pitch, (size_t)c->width);
    return LW_OK;
}

static lw_status copy_rows(paths_cuda *x, char *to, int64_t to_pitch, const char *from, int64_t from_pitch,
                           int64_t width, int64_t rows, lw_error *err)
{
    int64_t parts = 2 * lw_pool_threads(x->pool);
    rows_copy c = {to, from, to_pitch, from_pitch, width, rows, ceil_div(rows, parts)};
    return lw_pool_for(x->pool, ceil_div(rows, c.per), copy_task, &c, err);
}

/* A matrix in host memory, or columns of one, and where it lies on the device. In bytes. */
typedef struct place {
    char *host;
    int64_t host_pitch, width, rows;
    char *device;
    int64_t device_pitch;
    bool halves; /* s32 on the host, u16 in words on the device */
} place;

static lw_status ready_staging(paths_cuda *x, const place *m, lw_error *err)
{
    for (int s = 0; s < 2; s++) {
        if (!x->pinned[s])
            LW_CUDA_TRY(err, "allocating pinned memory", cudaMallocHost(&x->pinned[s], LW_PATHS_CHUNK));
        if (m->halves)
            LW_TRY(need(x, CHUNK0 + s, LW_PATHS_CHUNK, err));
    }
    if (m->width > LW_PATHS_CHUNK)
        return lw_fail(err, LW_E_RANGE, "a matrix row of %lld bytes is too long", (long long)m->width);
    return LW_OK;
}

static dim3 grid_for(int64_t rows, int64_t cols)
{
    int64_t x = ceil_div(cols, 256);
    return dim3((unsigned)(x < 4096 ? x : 4096), (unsigned)(rows < 32768 ? rows : 32768));
}

/* Returns when all is on the device. */
static lw_status upload(paths_cuda *x, const place *m, lw_error *err)
{
    LW_TRY(ready_staging(x, m, err));
    int64_t per = LW_PATHS_CHUNK / m->width;
    for (int64_t r = 0, s = 0; r < m->rows; r += per, s ^= 1) {
        int64_t rows = m->rows - r < per ? m->rows - r : per;
        if (r >= 2 * per)
            LW_CUDA_TRY(err, "copying to the GPU", cudaEventSynchronize(x->moved[s]));
        LW_TRY(copy_rows(x, (char *)x->pinned[s], m->width, m->host + r * m->host_pitch, m->host_pitch,
                         m->width, rows, err));
        char *device = m->device + r * m->device_pitch;
        if (m->halves) {
            void *chunk = x->buffers[CHUNK0 + s].p;
            LW_CUDA_TRY(err, "copying to the GPU",
                        cudaMemcpyAsync(chunk, x->pinned[s], (size_t)(rows * m->width),
                                        cudaMemcpyHostToDevice, x->in));
            lw_paths_halves h = {(int32_t *)chunk,    m->width / 4, (uint32_t *)device,
                                 m->device_pitch / 4, rows,         m->width / 4};
            LW_CUDA_TRY(err, "narrowing",
                        lw_launch(lw_paths_narrow_kernel, grid_for(rows, h.ldc), 256, 0, x->in, h));
        } else {
            LW_CUDA_TRY(err, "copying to the GPU",
                        cudaMemcpy2DAsync(device, (size_t)m->device_pitch, x->pinned[s], (size_t)m->width,
                                          (size_t)m->width, (size_t)rows, cudaMemcpyHostToDevice, x->in));
        }
        LW_CUDA_TRY(err, "copying to the GPU", cudaEventRecord(x->moved[s], x->in));
    }
    LW_CUDA_TRY(err, "copying to the GPU", cudaStreamSynchronize(x->in));
    return LW_OK;
}

/* Returns when all is in host memory. The device side must be complete, or awaited by x->out. */
static lw_status download(paths_cuda *x, const place *m, lw_error *err)
{
    LW_TRY(ready_staging(x, m, err));
    int64_t per = LW_PATHS_CHUNK / m->width, chunks = ceil_div(m->rows, per);
    for (int64_t c = 0; c <= chunks; c++) { /* chunk c starts while chunk c - 1 is spread */
        int64_t s = c % 2, r = c * per;
        if (c < chunks) {
            int64_t rows = m->rows - r < per ? m->rows - r : per;
            char *device = m->device + r * m->device_pitch;
            if (m->halves) {
                void *chunk = x->buffers[CHUNK0 + s].p;
                lw_paths_halves h = {(int32_t *)chunk,    m->width / 4, (uint32_t *)device,
                                     m->device_pitch / 4, rows,         m->width / 4};
                LW_CUDA_TRY(err, "widening",
                            lw_launch(lw_paths_widen_kernel, grid_for(rows, h.cols), 256, 0, x->out, h));
                LW_CUDA_TRY(err, "copying from the GPU",
                            cudaMemcpyAsync(x->pinned[s], chunk, (size_t)(rows * m->width),
                                            cudaMemcpyDeviceToHost, x->out));
            } else {
                LW_CUDA_TRY(err, "copying from the GPU",
                            cudaMemcpy2DAsync(x->pinned[s], (size_t)m->width, device, (size_t)m->device_pitch,
                                              (size_t)m->width, (size_t)rows, cudaMemcpyDeviceToHost,
                                              x->out));
            }
            LW_CUDA_TRY(err, "copying from the GPU", cudaEventRecord(x->moved[s], x->out));
        }
        if (c > 0) {
            int64_t before = r - per, rows = m->rows - before < per ? m->rows - before : per;
            LW_CUDA_TRY(err, "copying from the GPU", cudaEventSynchronize(x->moved[s ^ 1]));
            LW_TRY(copy_rows(x, m->host + before * m->host_pitch, m->host_pitch,
                             (const char *)x->pinned[s ^ 1], m->width, m->width, rows, err));
        }
    }
    return LW_OK;
}

/* Infinity in rows [rows, to_rows) and, in the rows above, columns [cols, to_cols), in words. */
static lw_status pad(const lw_paths_kernels *k, void *c, int64_t ldc, int64_t rows, int64_t cols,
                     int64_t to_rows, int64_t to_cols, uint64_t value, cudaStream_t stream, lw_error *err)
{
    lw_paths_fill right = {(char *)c + cols * k->bytes, ldc, rows, to_cols - cols, value};
    lw_paths_fill below = {(char *)c + rows * ldc * k->bytes, ldc, to_rows - rows, to_cols, value};
    for (int i = 0; i < 2; i++) {
        lw_paths_fill f = i == 0 ? right : below;
        if (f.rows > 0 && f.cols > 0)
            LW_CUDA_TRY(
                err, "padding",
                lw_launch(k->bytes == 8 ? lw_paths_fill_kernel<uint64_t> : lw_paths_fill_kernel<uint32_t>,
                          grid_for(f.rows, f.cols), 256, 0, stream, f));
    }
    return LW_OK;
}

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

/* A 16-bit result that was not proved beforehand: sets r->overflow if it may be wrong. */
static lw_status verify(run *r, lw_error *err)
{
    paths_cuda *x = r->x;
    place m = in_core_place(r);
    int64_t n = ceil_div(r->job->n, r->k->tile) * r->k->tile;
    *x->flag = 0;
    lw_paths_check_kernel<<<1024, 256, 0, x->rest>>>((const uint32_t *)m.device, n * (m.device_pitch / 4),
                                                     x->flag);
    LW_CUDA_TRY(err, "verifying", cudaGetLastError());
    LW_CUDA_TRY(err, "verifying", cudaStreamSynchronize(x->rest));
    r->overflow = *(volatile int *)x->flag != 0;
    *x->flag = 0;
    return LW_OK;
}

static lw_status save_in_core(run *r, int64_t k, lw_error *err)
{
    if (r->verify) {
        LW_TRY(verify(r, err));
        if (r->overflow)
            return LW_OK;
    }
    place m = in_core_place(r);
    LW_TRY(download(r->x, &m, err));
    r->saved = k;
    return r->job->checkpoint_save(r->job->checkpoint_user, k, err);
}

static lw_status settle(run *r, void *c, int64_t ldc, int64_t rows, int64_t cols, lw_error *err)
{
    const lw_paths_job *job = r->job;
    bool wide = job->type == LW_PATHS_S64;
    if (!job->negative || (!wide && job->type != LW_PATHS_S32))
        return LW_OK;
    lw_paths_settle s = {c, ldc, rows, cols, job->high, wide ? LW_PATHS_INF_S64 : LW_PATHS_INF_S32};
    LW_CUDA_TRY(err, "settling",
                lw_launch(wide ? lw_paths_settle_kernel<int64_t> : lw_paths_settle_kernel<int32_t>,
                          grid_for(rows, cols), 256, 0, r->x->rest, s));
    return LW_OK;
}

static lw_status next_hops(run *r, bool in_core, int64_t limit, lw_error *err);

static lw_status in_core(run *r, int64_t limit, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    const lw_paths_kernels *k = r->k;
    int64_t n = ceil_div(job->n, k->tile) * k->tile, words = n / k->lanes;
    drop(x, SLOT0, BIG_B);
    LW_TRY(need(x, MATRIX, n * words * k->bytes, err));
    for (int s = 0; s < 2; s++) {
        LW_TRY(need(x, PANEL_A0 + s, n * k->tile * k->bytes, err));
        LW_TRY(need(x, PANEL_B0 + s, words * k->tile * k->bytes, err));
    }
    place m = in_core_place(r);
    /* 16 bits: rows are padded as they are narrowed */
    LW_TRY(pad(k, m.device, words, job->n, k->lanes == 2 ? words : job->n, n, words,
               infinity_word(k, job->type), x->in, err));
    LW_TRY(upload(x, &m, err));
    square whole = {m.device, words, (int)(n / k->tile)};
    LW_TRY(close_square(r, &whole, (int)((r->saved < job->n ? r->saved : job->n - 1) / k->tile), save_in_core,
                        err));
    if (r->verify && !r->overflow)
        LW_TRY(verify(r, err));
    if (r->overflow)
        return LW_OK;
    LW_TRY(settle(r, m.device, words, job->n, job->n, err));
    LW_CUDA_TRY(err, "settling", cudaStreamSynchronize(x->rest));
    if (job->next)
        LW_TRY(next_hops(r, true, limit, err));
    return download(x, &m, err);
}

/* --- next hops ----------------------------------------------------------------------------------------- */

/* Puts the edges of rows from row0 on onto the device, as many rows as fit into `cap` edges. */
static lw_status load_edges(run *r, int64_t row0, int64_t cap, int64_t *rows, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    int64_t size = lw_paths_size(job->type), first = job->edge_start[row0], end = row0;
    while (end < job->n && job->edge_start[end + 1] - first <= cap)
        end++;
    int64_t edges = job->edge_start[end] - first;
    *rows = end - row0;
    LW_CUDA_TRY(err, "copying edges",
                cudaMemcpyAsync(x->buffers[EDGE_START].p, job->edge_start + row0, (size_t)(*rows + 1) * 8,
                                cudaMemcpyHostToDevice, x->rest));
    if (edges > 0) {
        LW_CUDA_TRY(err, "copying edges",
                    cudaMemcpyAsync(x->buffers[EDGE_TO].p, job->edge_to + first, (size_t)edges * 4,
                                    cudaMemcpyHostToDevice, x->rest));
        LW_CUDA_TRY(err, "copying edges",
                    cudaMemcpyAsync(x->buffers[EDGE_WEIGHT].p, (const char *)job->edge_weight + first * size,
                                    (size_t)(edges * size), cudaMemcpyHostToDevice, x->rest));
    }
    return LW_OK;
}

/* The pass over the edges, a strip of columns at a time; a strip is copied out while the next is computed. */
static lw_status next_hops(run *r, bool in_core, int64_t limit, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    int64_t n = job->n, size = lw_paths_size(job->type), cols = strip_cols(n, size, limit),
            cap = edge_cap(job, limit);
    bool strip = !in_core || r->k->lanes == 2;
    for (int s = 0; s < 2; s++)
        LW_TRY(need(x, NEXT0 + s, n * cols * 4, err));
    if (strip)
        LW_TRY(need(x, STRIP, n * cols * size, err));
    LW_TRY(need(x, EDGE_START, (n + 1) * 8, err));
    LW_TRY(need(x, EDGE_TO, cap * 4 + 4, err));
    LW_TRY(need(x, EDGE_WEIGHT, cap * size + size, err));
    place whole = in_core_place(r), out = {};
    double seconds = 0;
    int64_t rows = 0;
    for (int64_t col0 = 0, s = 0; col0 < n; col0 += cols, s ^= 1) {
        int64_t width = n - col0 < cols ? n - col0 : cols;
        lw_paths_next p = {};
        p.d = whole.device + col0 * size, p.ldd = whole.device_pitch / size, p.ldn = cols;
        if (strip) {
            p.d = x->buffers[STRIP].p, p.ldd = cols;
            place in = {(char *)job->matrix + col0 * size,
                        job->ld * size,
                        width * size,
                        n,
                        (char *)p.d,
                        cols * size,
                        false};
            if (!in_core)
                LW_TRY(upload(x, &in, err));
        }
        LW_CUDA_TRY(err, "timing", cudaEventRecord(x->begin, x->rest));
        if (strip && in_core) {
            lw_paths_halves h = {(int32_t *)p.d,         cols, (uint32_t *)whole.device + col0 / 2,
                                 whole.device_pitch / 4, n,    width};
            LW_CUDA_TRY(err, "widening",
                        lw_launch(lw_paths_widen_kernel, grid_for(n, width), 256, 0, x->rest, h));
        }
        p.col0 = col0, p.cols = (int32_t)width, p.high = job->high;
        p.start = (const int64_t *)x->buffers[EDGE_START].p, p.to = (const int32_t *)x->buffers[EDGE_TO].p;
        p.weight = x->buffers[EDGE_WEIGHT].p;
        for (int64_t row0 = 0; row0 < n; row0 += rows) {
            if (rows < n) /* not all of them are there already */
                LW_TRY(load_edges(r, row0, cap, &rows, err));
            p.row0 = row0, p.first = job->edge_start[row0];
            p.next = (int32_t *)x->buffers[NEXT0 + s].p + row0 * cols;
            dim3 grid((unsigned)rows, (unsigned)ceil_div(width, NEXT_COLS));
            LW_CUDA_TRY(err, "next hops",
                        lw_launch(size == 8 ? lw_paths_next_kernel<int64_t> : lw_paths_next_kernel<int32_t>,
                                  grid, NEXT_THREADS, 0, x->rest, p));
        }
        LW_CUDA_TRY(err, "timing", cudaEventRecord(x->end, x->rest));
        LW_CUDA_TRY(err, "recording", cudaEventRecord(x->computed_next[s], x->rest));
        if (col0 > 0)
            LW_TRY(download(x, &out, err));
        LW_CUDA_TRY(err, "waiting", cudaStreamWaitEvent(x->out, x->computed_next[s], 0));
        out = (place){(char *)(job->next + col0),      job->next_ld * 4, width * 4, n,
                      (char *)x->buffers[NEXT0 + s].p, cols * 4,         false};
        float ms = 0;
        LW_CUDA_TRY(err, "next hops", cudaEventSynchronize(x->end));
        LW_CUDA_TRY(err, "timing", cudaEventElapsedTime(&ms, x->begin, x->end));
        seconds += ms * 1e-3;
        if (lw_stopped(x->host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted while looking for next hops");
    }
    LW_TRY(download(x, &out, err));
    r->report->next_seconds += seconds;
    r->report->kernel_seconds += seconds;
    return LW_OK;
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
    LW_TRY(pad(k, *c, g->block, rows, cols, g->block, g->block, infinity_word(k, r->job->type), x->in, err));
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
        LW_TRY(settle(r, c, g->block, rows, cols, err));
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
    cudaEvent_t begin, end;
    LW_CUDA_TRY(err, "timing", cudaEventCreate(&begin));
    LW_CUDA_TRY(err, "timing", cudaEventCreate(&end));
    lw_status status = LW_OK;
    float ms;
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
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return status;
}

static lw_status out_of_core(run *r, int64_t block, int64_t limit, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    const lw_paths_kernels *k = r->k;
    big g = {block, ceil_div(job->n, block), 0};
    drop(x, 0, N_BUFFERS - 1);
    for (int s = 0; s < SLOTS; s++)
        LW_TRY(need(x, SLOT0 + s, block * block * k->bytes, err));
    for (int s = 0; s < 2; s++) {
        LW_TRY(need(x, BIG_A + s, g.blocks * block * block * k->bytes, err));
        LW_TRY(need(x, PANEL_A0 + s, block * k->tile * k->bytes, err));
        LW_TRY(need(x, PANEL_B0 + s, block * k->tile * k->bytes, err));
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
        drop(x, 0, N_BUFFERS - 1);
        status = next_hops(r, false, limit, err);
    }
    return status;
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
    drop(x, 0, N_BUFFERS - 1);
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
    if (out < next_bytes(job, true, limit))
        out = next_bytes(job, true, limit);
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
        LW_TRY(in_core(&half, limit, err));
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
            LW_TRY(in_core(&r, limit, err));
        } else {
            int64_t block = out_of_core_block(r.k, job, limit);
            if (block == 0)
                return too_little(r.k, job, limit, err);
            LW_TRY(out_of_core(&r, block, limit, err));
            where = "out of host memory";
        }
    }
    report->relaxations += (double)job->n * (double)job->n * (double)(job->n - job->k_begin);
    snprintf(report->how, sizeof report->how, "%s%s, %s, tile %dx%dx%d", r.k->name, choice, where, r.k->tile,
             r.k->cols * r.k->lanes, r.k->tile);
    return LW_OK;
}

static lw_status half2_usable(const lw_backend *self, int device, lw_error *err)
{
    (void)device;
    return lw_fail(
        err, LW_E_UNSUPPORTED,
        "%s: paired halves hold whole numbers up to 2048 only, too few for distances; use cuda-int",
        self->name);
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
    LW_ROW("cuda-half2", "not for distances", LW_CUDA_HALF2, half2_usable);
const lw_paths_backend lw_paths_cuda_int = LW_ROW(
    "cuda-int", "blocked, plain additions and minima, on any GPU", LW_CUDA_INT, lw_backend_cuda_usable);
}
