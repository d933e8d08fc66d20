/* paths_cuda_move.cu - what the cuda-* rows do to a matrix besides closing it: copies between host and
 * device, narrowing to 16 bits and widening, padding, and the next hops of a closed matrix. */
#include <string.h>

#include "paths/paths_cuda.h"

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

typedef struct lw_paths_drifted {
    void *c;
    int64_t ldc, rows, cols, high, infinity;
} lw_paths_drifted;

template <typename number> __global__ void lw_paths_settle_kernel(lw_paths_drifted p)
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

static lw_status ready_staging(paths_cuda *x, const place *m, lw_error *err)
{
    for (int s = 0; s < 2; s++) {
        if (!x->pinned[s])
            LW_CUDA_TRY(err, "allocating pinned memory", cudaMallocHost(&x->pinned[s], LW_PATHS_CHUNK));
        if (m->halves)
            LW_TRY(lw_paths_need(x, CHUNK0 + s, LW_PATHS_CHUNK, err));
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
lw_status lw_paths_upload(paths_cuda *x, const place *m, lw_error *err)
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
lw_status lw_paths_download(paths_cuda *x, const place *m, lw_error *err)
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

lw_status lw_paths_pad(const run *r, void *c, int64_t ldc, int64_t rows, int64_t cols, int64_t to_rows,
                       int64_t to_cols, lw_error *err)
{
    const lw_paths_kernels *k = r->k;
    uint64_t value = infinity_word(k, r->job->type);
    lw_paths_fill right = {(char *)c + cols * k->bytes, ldc, rows, to_cols - cols, value};
    lw_paths_fill below = {(char *)c + rows * ldc * k->bytes, ldc, to_rows - rows, to_cols, value};
    for (int i = 0; i < 2; i++) {
        lw_paths_fill f = i == 0 ? right : below;
        if (f.rows > 0 && f.cols > 0)
            LW_CUDA_TRY(
                err, "padding",
                lw_launch(k->bytes == 8 ? lw_paths_fill_kernel<uint64_t> : lw_paths_fill_kernel<uint32_t>,
                          grid_for(f.rows, f.cols), 256, 0, r->x->in, f));
    }
    return LW_OK;
}

lw_status lw_paths_settle(run *r, void *c, int64_t ldc, int64_t rows, int64_t cols, lw_error *err)
{
    const lw_paths_job *job = r->job;
    bool wide = job->type == LW_PATHS_S64;
    if (!job->negative || (!wide && job->type != LW_PATHS_S32))
        return LW_OK;
    lw_paths_drifted s = {c, ldc, rows, cols, job->high, wide ? LW_PATHS_INF_S64 : LW_PATHS_INF_S32};
    LW_CUDA_TRY(err, "settling",
                lw_launch(wide ? lw_paths_settle_kernel<int64_t> : lw_paths_settle_kernel<int32_t>,
                          grid_for(rows, cols), 256, 0, r->x->rest, s));
    return LW_OK;
}

lw_status lw_paths_verify(run *r, const void *c, int64_t words, lw_error *err)
{
    paths_cuda *x = r->x;
    *x->flag = 0;
    lw_paths_check_kernel<<<1024, 256, 0, x->rest>>>((const uint32_t *)c, words, x->flag);
    LW_CUDA_TRY(err, "verifying", cudaGetLastError());
    LW_CUDA_TRY(err, "verifying", cudaStreamSynchronize(x->rest));
    r->overflow = *(volatile int *)x->flag != 0;
    *x->flag = 0;
    return LW_OK;
}

/* --- next hops ----------------------------------------------------------------------------------------- */

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

int64_t lw_paths_next_bytes(const lw_paths_job *job, bool strip, int64_t limit)
{
    if (!job->next)
        return 0;
    int64_t word = lw_paths_size(job->type), cols = strip_cols(job->n, word, limit);
    return job->n * cols * (8 + (strip ? word : 0)) + (job->n + 1) * 8 + edge_cap(job, limit) * (4 + word);
}

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
lw_status lw_paths_next_hops(run *r, const place *device, int64_t limit, lw_error *err)
{
    paths_cuda *x = r->x;
    const lw_paths_job *job = r->job;
    int64_t n = job->n, size = lw_paths_size(job->type), cols = strip_cols(n, size, limit),
            cap = edge_cap(job, limit);
    bool in_core = device->device, strip = !in_core || device->halves;
    for (int s = 0; s < 2; s++)
        LW_TRY(lw_paths_need(x, NEXT0 + s, n * cols * 4, err));
    if (strip)
        LW_TRY(lw_paths_need(x, STRIP, n * cols * size, err));
    LW_TRY(lw_paths_need(x, EDGE_START, (n + 1) * 8, err));
    LW_TRY(lw_paths_need(x, EDGE_TO, cap * 4 + 4, err));
    LW_TRY(lw_paths_need(x, EDGE_WEIGHT, cap * size + size, err));
    place out = {};
    double seconds = 0;
    int64_t rows = 0;
    for (int64_t col0 = 0, s = 0; col0 < n; col0 += cols, s ^= 1) {
        int64_t width = n - col0 < cols ? n - col0 : cols;
        lw_paths_next p = {};
        p.d = device->device + col0 * size, p.ldd = device->device_pitch / size, p.ldn = cols;
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
                LW_TRY(lw_paths_upload(x, &in, err));
        }
        LW_CUDA_TRY(err, "timing", cudaEventRecord(x->begin, x->rest));
        if (strip && in_core) {
            lw_paths_halves h = {(int32_t *)p.d,           cols, (uint32_t *)device->device + col0 / 2,
                                 device->device_pitch / 4, n,    width};
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
            LW_TRY(lw_paths_download(x, &out, err));
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
    LW_TRY(lw_paths_download(x, &out, err));
    r->report->next_seconds += seconds;
    r->report->kernel_seconds += seconds;
    return LW_OK;
}
