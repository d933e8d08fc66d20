/* infer_cpu.c - the CPU backend: products of 8-bit matrices, convolutions as such products,
 * rows of softmax and layer norm, all spread over the pool.
 *
 * Zero points come in at the end: sum (a - za)(b - zb) = sum ab - za sum b - zb sum a + K za zb. The sums
 * wrap modulo 2^32 on the way and are exact in the end, since the result fits int32 (checked by the
 * operators). */
#include "infer/infer_backend.h"

#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "common/fail.h"
#include "infer/elements.h"
#include "infer/infer_cpu_kernels.h"
#include "infer/infer_tuning.h"

static lw_status choose_kernels(const lw_infer_cpu_kernels **out, const lw_infer_cpu_tiles **tiles,
                                lw_error *err)
{
    static const lw_infer_cpu_kernels *const kernels[LW_ISA_COUNT] = {
#if defined(__x86_64__)
        [LW_ISA_AVX512VNNI] = &lw_infer_kernels_avx512vnni,
        [LW_ISA_AVX512BW] = &lw_infer_kernels_avx512bw,
        [LW_ISA_AVX2] = &lw_infer_kernels_avx2,
        [LW_ISA_SSE41] = &lw_infer_kernels_sse41,
#elif defined(__aarch64__)
        [LW_ISA_DOTPROD] = &lw_infer_kernels_dotprod,
        [LW_ISA_NEON] = &lw_infer_kernels_neon,
#endif
        [LW_ISA_PLAIN] = &lw_infer_kernels_plain,
    };
    unsigned usable;
    LW_TRY(lw_isa_usable(&usable, err));
    *out = kernels[LW_ISA_PLAIN];
    for (int isa = LW_ISA_PLAIN - 1; isa >= 0; isa--)
        if (kernels[isa] && (usable >> isa & 1))
            *out = kernels[isa];
    *tiles = NULL;
#if defined(LW_HAVE_AMX)
    if (usable >> LW_ISA_AMX & 1) /* which has AVX-512 VNNI beside it */
        *tiles = &lw_infer_tiles_amx;
#endif
    return LW_OK;
}

/* ---- the product --------------------------------------------------------------------------------- */

/* All of B as the kernels want it. */
typedef struct packed_b {
    const lw_infer_cpu_kernels *base, *kernels; /* those of the instruction set, and those packed for */
    int64_t n, k;
    int64_t panels, panel_size; /* bytes */
    int8_t *data;               /* panels * panel_size */
    int32_t *sum;               /* of each column, padded to whole panels */
    lw_infer_excess *excess;    /* of each panel; NULL: none anywhere */
} packed_b;

typedef struct product_job {
    const lw_gemm *g;
    const lw_infer_cpu_kernels *kernels;
    const lw_infer_cpu_tiles *tiles; /* NULL: the kernels multiply */
    int64_t steps;                   /* of the depth */
    int64_t panel_steps;             /* of a panel, and of A's rows for tiles */
    int64_t panels;                  /* of B */
    int64_t panel_size;              /* bytes */
    int64_t group;                   /* panels of a task, */
    int64_t rows_of_task, row_tasks; /* rows of one, and tasks one below the other */
    int workers;
    int tile_rows;      /* rows of A that are multiplied at a time */
    int64_t block_rows; /* rows of A whose sums are kept until they are whole, */
    int64_t ld;         /* and numbers of such a row */
    int64_t depth;      /* steps of a block */
    int32_t *a;         /* tiles of A */
    int32_t *row_sum;   /* of A as stored */
    const packed_b *b;  /* NULL: each task packs its own panels */
    int8_t **scratch;   /* of each worker: a group of panels, then its column sums, then sums of a block */
    size_t scratch_panels, scratch_sums;
} product_job;

static void pack_panel(const lw_infer_cpu_kernels *kernels, const lw_gemm *g, int64_t panel, int64_t steps,
                       int64_t panel_steps, int8_t *to, int32_t *sum)
{
    int64_t first = panel * kernels->columns;
    int columns = g->n - first < kernels->columns ? (int)(g->n - first) : kernels->columns;
    if (g->b_transposed)
        kernels->pack_transposed((const uint8_t *)g->b + first * g->ldb, g->b_signed, g->ldb, g->k, columns,
                                 to);
    else
        kernels->pack((const uint8_t *)g->b + first, g->b_signed, g->ldb, g->k, columns, to);
    int step = kernels->columns * kernels->depth;
    memset(to + steps * step, 0, (size_t)((panel_steps - steps) * step));
    kernels->column_sums(to, steps, sum);
}

/* One group of panels, all rows or some: block of rows by block of depth, so that what the inner loops read
 * stays in the caches. */
static lw_status product_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)err;
    const product_job *job = arg;
    const lw_gemm *g = job->g;
    const lw_infer_cpu_kernels *kernels = job->kernels;
    int wide = kernels->columns;
    int64_t first = task / job->row_tasks * job->group;
    int64_t panels = job->panels - first < job->group ? job->panels - first : job->group;
    int64_t top = task % job->row_tasks * job->rows_of_task;
    int64_t end = g->m - top < job->rows_of_task ? g->m : top + job->rows_of_task;
    /* whether the panels behind these are this worker's next, and not another's share */
    int64_t groups = (job->panels + job->group - 1) / job->group;
    bool more = first + panels < job->panels &&
                (job->row_tasks > 1 || task + 1 < (worker + 1) * groups / job->workers);
    const int8_t *panel;
    const int32_t *column_sum;
    int32_t *block = (int32_t *)(void *)(job->scratch[worker] + job->scratch_panels + job->scratch_sums);
    if (job->b) {
        panel = job->b->data + first * job->panel_size;
        column_sum = job->b->sum + first * wide;
    } else {
        int8_t *packed = job->scratch[worker];
        int32_t *sum = (int32_t *)(void *)(packed + job->scratch_panels);
        for (int64_t p = 0; p < panels; p++)
            pack_panel(kernels, g, first + p, job->steps, job->panel_steps, packed + p * job->panel_size,
                       sum + p * wide);
        panel = packed;
        column_sum = sum;
    }
    int64_t step = wide * kernels->depth; /* bytes */
    int64_t ld = job->ld, whole = job->tiles ? job->panel_steps : job->steps, depth = job->depth;
    if (job->tiles)
        job->tiles->begin();
    for (; top < end; top += job->block_rows) {
        int64_t rows = end - top < job->block_rows ? end - top : job->block_rows;
        for (int64_t s = 0; s == 0 || s<whole; s += depth> 0 ? depth : 1) {
            int64_t steps = whole - s < depth ? whole - s : depth;
            for (int64_t p = 0; p < panels; p++) {
                const int8_t *b = panel + p * job->panel_size + s * step;
                /* fetch the next block of B bit by bit meanwhile */
                const int8_t *next = b + job->panel_size;
                if (p + 1 == panels)
                    next = s + steps < whole  ? panel + (s + steps) * step
                           : top + rows < end ? panel
                           : more             ? next - s * step
                                              : b;
                int64_t tiles = (rows + job->tile_rows - 1) / job->tile_rows;
                int64_t ahead = (steps * step + tiles - 1) / tiles;
                for (int64_t i = 0; job->tiles && i < rows; i += LW_CPU_TILE_ROWS, next += ahead)
                    job->tiles->multiply(job->a + (top + i) * job->panel_steps + s * LW_CPU_TILE_ROWS, steps,
                                         b, next, ahead, s > 0, block + i * ld + p * wide, ld);
                for (int64_t i = 0; !job->tiles && i < rows; i += LW_CPU_GEMM_ROWS, next += ahead) {
                    for (int64_t at = 0; rows > LW_CPU_GEMM_ROWS && at < ahead; at += 64)
                        __builtin_prefetch(next + at, 0, 2);
                    int here = rows - i < LW_CPU_GEMM_ROWS ? (int)(rows - i) : LW_CPU_GEMM_ROWS;
                    kernels->multiply(here, job->a + (top + i) * job->steps + s * here, steps, b, s > 0,
                                      block + i * ld + p * wide, ld);
                }
            }
        }
        for (int64_t p = 0; job->b && job->b->excess && p < panels; p++)
            for (int64_t i = 0; i < rows; i += LW_CPU_GEMM_ROWS) {
                int here = rows - i < LW_CPU_GEMM_ROWS ? (int)(rows - i) : LW_CPU_GEMM_ROWS;
                kernels->add_excess(here, job->a + (top + i) * job->steps, &job->b->excess[first + p],
                                    block + i * ld + p * wide, ld);
            }
        int64_t columns = g->n - first * wide < panels * wide ? g->n - first * wide : panels * wide;
        lw_infer_tile tile = {.first_row = top,
                              .first_column = first * wide,
                              .rows = (int)rows,
                              .columns = (int)columns,
                              .sum = block,
                              .ld = ld,
                              .row_sum = job->row_sum + top,
                              .column_sum = column_sum,
                              .a_shift = kernels->a_added[g->a_signed],
                              .b_shift = g->b_signed ? 0 : -128};
        kernels->finish(g, &tile);
    }
    if (job->tiles)
        job->tiles->end();
    return LW_OK;
}

static lw_status pack_a_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const product_job *job = arg;
    const lw_gemm *g = job->g;
    if (job->tiles) {
        int64_t row = task * LW_CPU_PACK_ROWS, top = row / LW_CPU_TILE_ROWS * LW_CPU_TILE_ROWS;
        for (int64_t i = row; i < row + LW_CPU_PACK_ROWS; i++)
            job->tiles->pack_a(i < g->m ? (const uint8_t *)g->a + i * g->lda : NULL, g->a_signed, g->k,
                               job->panel_steps, (int)(i - top), job->a + top * job->panel_steps,
                               i < g->m ? job->row_sum + i : NULL);
        return LW_OK;
    }
    int64_t i = task * LW_CPU_GEMM_ROWS;
    int rows = g->m - i < LW_CPU_GEMM_ROWS ? (int)(g->m - i) : LW_CPU_GEMM_ROWS;
    job->kernels->pack_a((const uint8_t *)g->a + i * g->lda, g->a_signed, g->lda, g->k, rows,
                         job->a + i * job->steps, job->row_sum + i);
    return LW_OK;
}

static void release_packed(void *data)
{
    packed_b *b = data;
    for (int64_t p = 0; b->excess && p < b->panels; p++)
        free(b->excess[p].entry);
    free(b->excess);
    free(b->data);
    free(b->sum);
    free(b);
}

typedef struct pack_job {
    const lw_gemm *g;
    packed_b *b;
    int64_t steps, panel_steps;
} pack_job;

static lw_status pack_b_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker;
    const pack_job *job = arg;
    packed_b *b = job->b;
    int8_t *panel = b->data + task * b->panel_size;
    pack_panel(b->kernels, job->g, task, job->steps, job->panel_steps, panel,
               b->sum + task * b->kernels->columns);
    return b->excess ? b->kernels->take_excess(panel, job->steps, &b->excess[task], err) : LW_OK;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static void set_kernels(product_job *job, const lw_infer_cpu_kernels *kernels)
{
    const lw_gemm *g = job->g;
    job->kernels = kernels;
    job->steps = (g->k + kernels->depth - 1) / kernels->depth;
    job->panels = (g->n + kernels->columns - 1) / kernels->columns;
    int together = kernels->steps_together;
    job->panel_steps = (job->steps + together - 1) / together * together;
    job->panel_size = (int64_t)rounded((size_t)(job->panel_steps * kernels->depth * kernels->columns));
}

static lw_status product_of(product_job *job, const lw_gemm *g, lw_error *err)
{
    const lw_infer_cpu_kernels *kernels;
    *job = (product_job){.g = g};
    LW_TRY(choose_kernels(&kernels, &job->tiles, err));
    if (g->m < LW_CPU_TILE_LEAST_ROWS)
        job->tiles = NULL;
    set_kernels(job, kernels);
    return LW_OK;
}

typedef struct excess_job {
    const lw_gemm *g;
    const lw_infer_cpu_kernels *kernels;
    int64_t *count; /* of each worker */
} excess_job;

enum { EXCESS_COLUMNS = 256 };

static lw_status excess_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)err;
    const excess_job *job = arg;
    const lw_gemm *g = job->g;
    int64_t first = task * EXCESS_COLUMNS,
            columns = g->n - first < EXCESS_COLUMNS ? g->n - first : EXCESS_COLUMNS;
    int64_t row = g->b_transposed ? 1 : g->ldb, column = g->b_transposed ? g->ldb : 1;
    job->count[worker] += job->kernels->count_excess((const uint8_t *)g->b + first * column, g->b_signed, row,
                                                     column, g->k, columns);
    return LW_OK;
}

/* How many pairs of B are too large for kernels->narrow; -1: no memory. */
static int64_t count_excess(lw_pool *pool, const lw_infer_cpu_kernels *kernels, const lw_gemm *g)
{
    int workers = lw_pool_threads(pool);
    excess_job job = {g, kernels->narrow, calloc((size_t)workers, sizeof(int64_t))};
    int64_t sum = job.count ? 0 : -1;
    if (job.count)
        lw_pool_for(pool, (g->n + EXCESS_COLUMNS - 1) / EXCESS_COLUMNS, excess_task, &job, NULL);
    for (int w = 0; job.count && w < workers; w++)
        sum += job.count[w];
    free(job.count);
    return sum;
}

/* Takes B from the node's slot, where it is packed at the first call, and the kernels that it was packed for.
 * job->b stays NULL where there is no slot or no memory: then the tasks pack. */
static void use_kept_b(lw_pool *pool, product_job *job)
{
    const lw_gemm *g = job->g;
    lw_kept *keep = g->keep_b;
    if (keep && keep->release == release_packed) {
        packed_b *b = keep->data;
        if (b->base == job->kernels && b->n == g->n && b->k == g->k) {
            set_kernels(job, b->kernels);
            job->b = b;
        }
        return;
    }
    if (!keep || keep->data) /* the latter: another backend's */
        return;
    packed_b *b = calloc(1, sizeof *b);
    if (!b)
        return;
    const lw_infer_cpu_kernels *base = job->kernels;
    int64_t excess = base->narrow ? count_excess(pool, base, g) : -1;
    bool narrow = excess >= 0 && excess <= g->n * g->k / LW_CPU_GEMM_EXCESS;
    if (narrow)
        set_kernels(job, base->narrow);
    *b = (packed_b){.base = base,
                    .kernels = job->kernels,
                    .n = g->n,
                    .k = g->k,
                    .panels = job->panels,
                    .panel_size = job->panel_size,
                    .data = aligned_alloc(64, (size_t)(job->panels * job->panel_size + 64)),
                    .sum = malloc((size_t)(job->panels * job->kernels->columns) * sizeof(int32_t)),
                    .excess =
                        narrow && excess > 0 ? calloc((size_t)job->panels, sizeof(lw_infer_excess)) : NULL};
    pack_job pack = {g, b, job->steps, job->panel_steps};
    if (!b->data || !b->sum || (narrow && excess > 0 && !b->excess) ||
        lw_pool_for(pool, b->panels, pack_b_task, &pack, NULL) != LW_OK) {
        release_packed(b);
        set_kernels(job, base);
        return;
    }
    keep->data = b;
    keep->release = release_packed;
    job->b = b;
}

/* Chooses how many panels and rows a task takes: at least LW_CPU_TASKS a worker, where that can be. Where B
 * is not packed yet, each task takes all rows of the panels that it packs. */
static void share_out(product_job *job, int workers, int64_t whole_rows)
{
    int64_t wanted = (int64_t)LW_CPU_TASKS * workers, least = job->tile_rows;
    job->rows_of_task = job->b && workers > 1 ? job->block_rows : whole_rows;
    for (;;) {
        int64_t groups = (job->panels + job->group - 1) / job->group;
        job->row_tasks = (whole_rows + job->rows_of_task - 1) / job->rows_of_task;
        if (groups * job->row_tasks >= wanted)
            break;
        if (job->group > 1)
            job->group /= 2;
        else if (job->b && job->rows_of_task >= 2 * least)
            job->rows_of_task = job->rows_of_task / 2 / least * least;
        else
            break;
    }
    if (job->block_rows > job->rows_of_task)
        job->block_rows = job->rows_of_task;
}

static lw_status cpu_gemm(lw_pool *pool, const lw_gemm *g, lw_error *err)
{
    product_job job;
    lw_status status = LW_OK;
    if (g->m == 0 || g->n == 0)
        return LW_OK;
    LW_TRY(product_of(&job, g, err));
    /* small products are not worth a dispatch */
    if (g->m * g->n * g->k < 1 << 18)
        pool = NULL;
    use_kept_b(pool, &job);
    int wide = job.kernels->columns, workers = lw_pool_threads(pool);
    job.group = g->m < LW_CPU_GEMM_ROWS_MANY ? LW_CPU_GEMM_PANELS_FEW : LW_CPU_GEMM_PANELS_MANY;
    int64_t per_worker = (job.panels + workers - 1) / workers;
    job.group = job.group > per_worker ? per_worker : job.group;
    /* of A, of a tile and of what is kept of them */
    int tile_rows = job.tile_rows = job.tiles ? LW_CPU_TILE_ROWS : LW_CPU_GEMM_ROWS;
    int64_t tiles = (g->m + tile_rows - 1) / tile_rows, whole_rows = job.tiles ? tiles * tile_rows : g->m;
    /* one tile of rows reads every panel once, from one end to the other */
    int64_t depth = job.tiles ? LW_CPU_TILE_DEPTH : LW_CPU_GEMM_DEPTH;
    int64_t block = job.tiles ? LW_CPU_TILE_BLOCK_ROWS : LW_CPU_GEMM_BLOCK_ROWS;
    job.depth = g->m <= tile_rows ? job.panel_steps : depth / job.kernels->depth;
    job.block_rows = whole_rows < block ? whole_rows : block;
    job.workers = workers;
    share_out(&job, workers, whole_rows);
    /* rows of sums a multiple of 4096 bytes apart would share their places in the first-level cache */
    job.ld = job.group * wide + (job.tiles ? LW_CPU_TILE_STEPS : 0);
    job.scratch_panels = job.b ? 0 : rounded((size_t)(job.group * job.panel_size));
    job.scratch_sums = job.b ? 0 : rounded((size_t)(job.group * wide) * sizeof(int32_t));
    size_t scratch =
        job.scratch_panels + job.scratch_sums + rounded((size_t)(job.block_rows * job.ld) * sizeof(int32_t));
    int64_t a_numbers = whole_rows * (job.tiles ? job.panel_steps : job.steps) + LW_CPU_GEMM_A_BEYOND;
    size_t a_bytes = rounded((size_t)a_numbers * sizeof *job.a),
           row_sums = rounded((size_t)g->m * sizeof *job.row_sum),
           pointers = (size_t)workers * sizeof *job.scratch;
    /* pieces that the pool keeps; without one, a single piece for all */
    char *memory = pool ? lw_pool_scratch(pool, workers, a_bytes + row_sums + pointers)
                        : aligned_alloc(64, a_bytes + row_sums + rounded(pointers) + scratch + 64);
    bool complete = memory != NULL;
    if (complete) {
        job.a = (int32_t *)(void *)memory;
        job.row_sum = (int32_t *)(void *)(memory + a_bytes);
        job.scratch = (int8_t **)(void *)(memory + a_bytes + row_sums);
    }
    for (int w = 0; complete && w < workers; w++) {
        job.scratch[w] = pool ? lw_pool_scratch(pool, w, scratch + 64)
                              : (int8_t *)memory + a_bytes + row_sums + rounded(pointers);
        complete = job.scratch[w] != NULL;
    }
    if (complete) {
        int64_t pack = job.tiles ? whole_rows / LW_CPU_PACK_ROWS : tiles;
        status = lw_pool_for(g->m * g->k < LW_CPU_PACK_LEAST ? NULL : pool, pack, pack_a_task, &job, err);
        if (status == LW_OK)
            status = lw_pool_for_shares(pool, (job.panels + job.group - 1) / job.group * job.row_tasks,
                                        product_task, &job, err);
    } else {
        status = lw_fail_memory(err, a_bytes + scratch * (size_t)workers);
    }
    if (!pool)
        free(memory);
    return status;
}

/* ---- convolution: patches times weights ------------------------------------------------------------ */

/* Patches of output positions [first, first + n) of one image as rows: each holds x's elements under the
 * kernel, channel by channel, and the zero point outside the image. */
static void lay_out_patches(const lw_conv *v, const uint8_t *x, int64_t first, int64_t n, uint8_t *row)
{
    int64_t plane = v->in[0] * v->in[1] * v->in[2], step = v->dilation[2], width = v->kernel[2];
    for (int64_t p = first; p < first + n; p++) {
        int64_t top0 = p / v->out[2] / v->out[1] * v->stride[0] - v->pad[0];
        int64_t top1 = p / v->out[2] % v->out[1] * v->stride[1] - v->pad[1];
        int64_t left = p % v->out[2] * v->stride[2] - v->pad[2];
        /* kernel columns [from, to) lie inside */
        int64_t from = left < 0 ? (-left + step - 1) / step : 0;
        int64_t to = left >= v->in[2] ? 0 : (v->in[2] - left + step - 1) / step;
        from = from < width ? from : width;
        to = to < from ? from : to < width ? to : width;
        for (int64_t c = 0; c < v->c; c++)
            for (int64_t q0 = 0; q0 < v->kernel[0]; q0++)
                for (int64_t q1 = 0; q1 < v->kernel[1]; q1++, row += width) {
                    int64_t i0 = top0 + q0 * v->dilation[0], i1 = top1 + q1 * v->dilation[1];
                    if (i0 < 0 || i0 >= v->in[0] || i1 < 0 || i1 >= v->in[1]) {
                        memset(row, v->x_zero, (size_t)width);
                        continue;
                    }
                    const uint8_t *line = x + c * plane + (i0 * v->in[1] + i1) * v->in[2];
                    for (int64_t q = 0; q < from; q++)
                        row[q] = (uint8_t)v->x_zero;
                    for (int64_t q = from; q < to; q++)
                        row[q] = line[left + q * step];
                    for (int64_t q = to; q < width; q++)
                        row[q] = (uint8_t)v->x_zero;
                }
    }
}

typedef struct conv_job {
    const lw_conv *v;
    int64_t depth, positions, chunks; /* chunks of positions in an image */
    lw_kept *weights;
} conv_job;

static lw_gemm conv_product(const conv_job *job)
{
    const lw_conv *v = job->v;
    return (lw_gemm){.n = v->o,
                     .k = job->depth,
                     .b = v->w,
                     .a_signed = v->x_signed,
                     .b_signed = v->w_signed,
                     .b_transposed = true,
                     .lda = job->depth,
                     .ldb = job->depth,
                     .ldc = job->positions,
                     .keep_b = job->weights,
                     .a_zero = &v->x_zero,
                     .a_zero_is_scalar = true,
                     .b_zero = v->w_zero,
                     .result = v->result,
                     .c_by_column = true};
}

static lw_status conv_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker;
    const conv_job *job = arg;
    const lw_conv *v = job->v;
    int64_t image = task / job->chunks, first = task % job->chunks * LW_CPU_CONV_POSITIONS;
    int64_t left = job->positions - first, n = left < LW_CPU_CONV_POSITIONS ? left : LW_CPU_CONV_POSITIONS;
    uint8_t *rows = malloc((size_t)(job->depth * n) + 1);
    if (!rows)
        return lw_fail_memory(err, (size_t)(job->depth * n));
    lay_out_patches(v, (const uint8_t *)v->x + image * v->x_step, first, n, rows);
    lw_gemm g = conv_product(job);
    int64_t size = v->result.kind == LW_RESULT_QUANTIZED ? 1 : 4;
    g.m = n;
    g.a = rows;
    g.c = (char *)v->y + (image * v->y_step + first) * size;
    lw_status status = cpu_gemm(NULL, &g, err);
    free(rows);
    return status;
}

static lw_status cpu_conv(lw_pool *pool, const lw_conv *v, lw_error *err)
{
    lw_kept own = {0};
    conv_job job = {.v = v,
                    .depth = v->c * v->kernel[0] * v->kernel[1] * v->kernel[2],
                    .positions = v->out[0] * v->out[1] * v->out[2],
                    .weights = v->keep_w ? v->keep_w : &own};
    job.chunks = (job.positions + LW_CPU_CONV_POSITIONS - 1) / LW_CPU_CONV_POSITIONS;
    lw_gemm g = conv_product(&job);
    product_job product;
    if (job.chunks * v->images == 0 || v->o == 0)
        return LW_OK;
    LW_TRY(product_of(&product, &g, err));
    use_kept_b(pool, &product); /* before the tasks, which only read it */
    if (!product.b)
        job.weights = NULL;
    lw_status status =
        lw_pool_for(job.chunks * v->images > 1 ? pool : NULL, job.chunks * v->images, conv_task, &job, err);
    if (own.release)
        own.release(own.data);
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

typedef struct rows_job {
    int64_t rows, n, each;
    const float *x, *scale, *bias;
    float *y, *mean, *inverse;
    float epsilon;
    const lw_elements *elements;
    bool is_softmax;
} rows_job;

static lw_status rows_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const rows_job *job = arg;
    int64_t first = task * job->each, rows = job->rows - first < job->each ? job->rows - first : job->each;
    const float *x = job->x + first * job->n;
    float *y = job->y + first * job->n;
    if (job->is_softmax)
        job->elements->softmax(rows, job->n, x, y);
    else
        job->elements->layer_norm(rows, job->n, x, job->scale, job->bias, job->epsilon, y,
                                  job->mean ? job->mean + first : NULL,
                                  job->inverse ? job->inverse + first : NULL);
    return LW_OK;
}

static lw_status over_rows(lw_pool *pool, rows_job *job, lw_error *err)
{
    int64_t work = job->rows * job->n, tasks = work < 1 << 14 ? 1 : 4 * lw_pool_threads(pool);
    tasks = tasks > job->rows ? job->rows : tasks;
    if (tasks == 0)
        return LW_OK;
    LW_TRY(lw_elements_choose(&job->elements, err));
    job->each = (job->rows + tasks - 1) / tasks;
    return lw_pool_for(tasks > 1 ? pool : NULL, (job->rows + job->each - 1) / job->each, rows_task, job, err);
}

static lw_status cpu_softmax(lw_pool *pool, int64_t rows, int64_t n, const float *x, float *y, lw_error *err)
{
    rows_job job = {.rows = rows, .n = n, .x = x, .y = y, .is_softmax = true};
    return over_rows(pool, &job, err);
}

static lw_status cpu_layer_norm(lw_pool *pool, int64_t rows, int64_t n, const float *x, const float *scale,
                                const float *bias, float epsilon, float *y, float *mean,
                                float *inverse_deviation, lw_error *err)
{
    rows_job job = {.rows = rows,
                    .n = n,
                    .x = x,
                    .scale = scale,
                    .bias = bias,
                    .epsilon = epsilon,
                    .y = y,
                    .mean = mean,
                    .inverse = inverse_deviation};
    return over_rows(pool, &job, err);
}

const lw_infer_backend lw_infer_cpu = {
    .base = {.name = "cpu",
             .what = "AMX, AVX-512 VNNI, else vectors of 16-bit pairs; all threads",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_cpu},
    .gemm = cpu_gemm,
    .conv = cpu_conv,
    .softmax = cpu_softmax,
    .layer_norm = cpu_layer_norm,
};
