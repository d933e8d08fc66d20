/* infer_cpu.c - the CPU backend: products of 8-bit matrices on 16-bit pairs, convolutions as such products,
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
#include "infer/infer_cpu_kernels.h"
#include "infer/infer_tuning.h"

static lw_status choose_kernels(const lw_infer_cpu_kernels **out, lw_error *err)
{
    static const lw_infer_cpu_kernels *const kernels[LW_ISA_COUNT] = {
#if defined(__x86_64__)
        [LW_ISA_AVX512BW] = &lw_infer_kernels_avx512bw,
        [LW_ISA_AVX2] = &lw_infer_kernels_avx2,
        [LW_ISA_SSE41] = &lw_infer_kernels_sse41,
#elif defined(__aarch64__)
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
    return LW_OK;
}

/* ---- the product --------------------------------------------------------------------------------- */

typedef struct product_job {
    const lw_gemm *g;
    const lw_infer_cpu_kernels *kernels;
    int64_t pairs;    /* of the depth */
    int32_t *a;       /* m x pairs: two 16-bit numbers each */
    int32_t *ones;    /* pairs of 1: a row that sums columns */
    int32_t *row_sum; /* of a */
    int16_t **panel;  /* one per worker */
    int32_t *tile;    /* one LW_CPU_GEMM_ROWS x columns per worker, what a multiplication leaves */
} product_job;

static int32_t byte_at(const void *p, int64_t i, bool is_signed)
{
    return is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
}

/* Packs the panels of columns [first, first + columns), the missing columns as 0, and sums the columns. */
static void pack_panels(const product_job *job, int64_t first, int64_t columns, int16_t *panel, int32_t *sum)
{
    const lw_gemm *g = job->g;
    int wide = job->kernels->columns;
    int64_t whole = columns / wide, size = job->pairs * wide * 2;
    job->kernels->pack((const char *)g->b + first, g->b_signed, g->ldb, g->k, (int)whole, panel);
    if (columns > whole * wide) {
        int16_t *last = panel + whole * size;
        memset(last, 0, (size_t)size * sizeof *last);
        for (int64_t k = 0; k < g->k; k++)
            for (int64_t j = whole * wide; j < columns; j++)
                last[(k / 2 * wide + j - whole * wide) * 2 + k % 2] =
                    (int16_t)byte_at(g->b, k * g->ldb + first + j, g->b_signed);
    }
    for (int64_t p = 0; p * wide < columns; p++, panel += size, sum += wide)
        job->kernels->multiply(1, job->ones, job->pairs, job->pairs, panel, sum, wide);
}

/* One group of panels, all rows. */
static lw_status product_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)err;
    const product_job *job = arg;
    const lw_gemm *g = job->g;
    enum { MOST_COLUMNS = LW_CPU_GEMM_PANELS * 64 };
    int32_t sum[MOST_COLUMNS];
    int wide = job->kernels->columns;
    int64_t first = task * LW_CPU_GEMM_PANELS * wide, columns = g->n - first;
    if (columns > LW_CPU_GEMM_PANELS * wide)
        columns = LW_CPU_GEMM_PANELS * wide;
    int16_t *panels = job->panel[worker];
    int32_t *tile = job->tile + worker * LW_CPU_GEMM_ROWS * wide;
    pack_panels(job, first, columns, panels, sum);
    for (int64_t at = 0; at < columns; at += wide) {
        const int16_t *panel = panels + at * job->pairs * 2;
        int64_t here = columns - at < wide ? columns - at : wide;
        for (int64_t i = 0; i < g->m; i += LW_CPU_GEMM_ROWS) {
            int rows = g->m - i < LW_CPU_GEMM_ROWS ? (int)(g->m - i) : LW_CPU_GEMM_ROWS;
            job->kernels->multiply(rows, job->a + i * job->pairs, job->pairs, job->pairs, panel, tile, wide);
            for (int r = 0; r < rows; r++) {
                uint32_t za = (uint32_t)g->a_zero[g->a_zero_is_scalar ? 0 : i + r],
                         of_a = (uint32_t)job->row_sum[i + r];
                for (int64_t j = 0; j < here; j++) {
                    uint32_t zb = (uint32_t)g->b_zero[g->b_zero_is_scalar ? 0 : first + at + j];
                    uint32_t value = (uint32_t)tile[r * wide + j] - za * (uint32_t)sum[at + j] - zb * of_a +
                                     (uint32_t)g->k * za * zb;
                    g->c[(i + r) * g->ldc + first + at + j] = (int32_t)value;
                }
            }
        }
    }
    return LW_OK;
}

static void widen_a(const product_job *job)
{
    const lw_gemm *g = job->g;
    for (int64_t i = 0; i < g->m; i++) {
        uint32_t sum = 0;
        for (int64_t k = 0; k < job->pairs; k++) {
            int32_t x = byte_at(g->a, i * g->lda + 2 * k, g->a_signed);
            int32_t y = 2 * k + 1 < g->k ? byte_at(g->a, i * g->lda + 2 * k + 1, g->a_signed) : 0;
            sum += (uint32_t)(x + y);
            job->a[i * job->pairs + k] = (int32_t)((uint32_t)(uint16_t)x | (uint32_t)(uint16_t)y << 16);
        }
        job->row_sum[i] = (int32_t)sum;
    }
}

static lw_status cpu_gemm(lw_pool *pool, const lw_gemm *g, lw_error *err)
{
    product_job job = {.g = g, .pairs = (g->k + 1) / 2};
    lw_status status = LW_OK;
    if (g->m == 0 || g->n == 0)
        return LW_OK;
    LW_TRY(choose_kernels(&job.kernels, err));
    int wide = job.kernels->columns, workers = lw_pool_threads(pool);
    int64_t groups = (g->n + LW_CPU_GEMM_PANELS * wide - 1) / (LW_CPU_GEMM_PANELS * wide);
    /* small products are not worth a dispatch */
    if (g->m * g->n * g->k < 1 << 18) {
        pool = NULL;
        workers = 1;
    }
    size_t panel_bytes =
        ((size_t)(job.pairs * wide * 2 * LW_CPU_GEMM_PANELS) * sizeof(int16_t) + 63) & ~(size_t)63;
    job.a = malloc((size_t)(g->m * job.pairs + 1) * sizeof *job.a);
    job.ones = malloc((size_t)job.pairs * sizeof *job.ones + 1);
    job.row_sum = malloc((size_t)g->m * sizeof *job.row_sum);
    job.panel = calloc((size_t)workers, sizeof *job.panel);
    job.tile = malloc((size_t)(workers * LW_CPU_GEMM_ROWS * wide) * sizeof *job.tile);
    bool complete = job.a && job.ones && job.row_sum && job.panel && job.tile;
    for (int w = 0; complete && w < workers; w++) {
        job.panel[w] = aligned_alloc(64, panel_bytes + 64);
        complete = job.panel[w] != NULL;
    }
    if (complete) {
        for (int64_t k = 0; k < job.pairs; k++)
            job.ones[k] = 1 | 1 << 16;
        widen_a(&job);
        status = lw_pool_for(pool, groups, product_task, &job, err);
    } else {
        status = lw_fail_memory(err, panel_bytes * (size_t)workers);
    }
    for (int w = 0; job.panel && w < workers; w++)
        free(job.panel[w]);
    free(job.a);
    free(job.ones);
    free(job.row_sum);
    free(job.panel);
    free(job.tile);
    return status;
}

/* ---- convolution: weights times patches ------------------------------------------------------------ */

/* Patches of output positions [first, first + n) as columns: row (c, q) holds x's element under kernel place
 * q of channel c for each position, the zero point outside the image. */
static void lay_out_patches(const lw_conv *v, int64_t first, int64_t n, uint8_t *columns)
{
    int64_t image = v->in[0] * v->in[1] * v->in[2], patch = v->kernel[0] * v->kernel[1] * v->kernel[2];
    const uint8_t *x = v->x;
    for (int64_t row = 0; row < v->c * patch; row++) {
        int64_t c = row / patch, q = row % patch;
        int64_t q2 = q % v->kernel[2], q1 = q / v->kernel[2] % v->kernel[1],
                q0 = q / v->kernel[2] / v->kernel[1];
        for (int64_t i = 0; i < n; i++) {
            int64_t p = first + i, p2 = p % v->out[2], p1 = p / v->out[2] % v->out[1],
                    p0 = p / v->out[2] / v->out[1];
            int64_t i0 = p0 * v->stride[0] + q0 * v->dilation[0] - v->pad[0];
            int64_t i1 = p1 * v->stride[1] + q1 * v->dilation[1] - v->pad[1];
            int64_t i2 = p2 * v->stride[2] + q2 * v->dilation[2] - v->pad[2];
            bool inside = i0 >= 0 && i0 < v->in[0] && i1 >= 0 && i1 < v->in[1] && i2 >= 0 && i2 < v->in[2];
            *columns++ = inside ? x[c * image + (i0 * v->in[1] + i1) * v->in[2] + i2] : (uint8_t)v->x_zero;
        }
    }
}

typedef struct conv_job {
    const lw_conv *v;
    int64_t depth, positions;
} conv_job;

static lw_status conv_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker;
    const conv_job *job = arg;
    const lw_conv *v = job->v;
    int64_t first = task * LW_CPU_CONV_POSITIONS;
    int64_t n =
        job->positions - first < LW_CPU_CONV_POSITIONS ? job->positions - first : LW_CPU_CONV_POSITIONS;
    uint8_t *columns = malloc((size_t)(job->depth * n) + 1);
    if (!columns)
        return lw_fail_memory(err, (size_t)(job->depth * n));
    lay_out_patches(v, first, n, columns);
    lw_gemm g = {.m = v->o,
                 .n = n,
                 .k = job->depth,
                 .a = v->w,
                 .b = columns,
                 .a_signed = v->w_signed,
                 .b_signed = v->x_signed,
                 .lda = job->depth,
                 .ldb = n,
                 .ldc = job->positions,
                 .a_zero = v->w_zero,
                 .b_zero = &v->x_zero,
                 .b_zero_is_scalar = true,
                 .c = v->y + first};
    lw_status status = cpu_gemm(NULL, &g, err);
    free(columns);
    return status;
}

static lw_status cpu_conv(lw_pool *pool, const lw_conv *v, lw_error *err)
{
    conv_job job = {.v = v,
                    .depth = v->c * v->kernel[0] * v->kernel[1] * v->kernel[2],
                    .positions = v->out[0] * v->out[1] * v->out[2]};
    int64_t tasks = (job.positions + LW_CPU_CONV_POSITIONS - 1) / LW_CPU_CONV_POSITIONS;
    return lw_pool_for(tasks > 1 ? pool : NULL, tasks, conv_task, &job, err);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

typedef struct rows_job {
    int64_t rows, n, each;
    const float *x, *scale, *bias;
    float *y, *mean, *inverse;
    float epsilon;
    bool is_softmax;
} rows_job;

static lw_status rows_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker;
    const rows_job *job = arg;
    int64_t first = task * job->each, rows = job->rows - first < job->each ? job->rows - first : job->each;
    const float *x = job->x + first * job->n;
    float *y = job->y + first * job->n;
    if (job->is_softmax)
        return lw_infer_scalar.softmax(NULL, rows, job->n, x, y, err);
    return lw_infer_scalar.layer_norm(NULL, rows, job->n, x, job->scale, job->bias, job->epsilon, y,
                                      job->mean ? job->mean + first : NULL,
                                      job->inverse ? job->inverse + first : NULL, err);
}

static lw_status over_rows(lw_pool *pool, rows_job *job, lw_error *err)
{
    int64_t work = job->rows * job->n, tasks = work < 1 << 14 ? 1 : 4 * lw_pool_threads(pool);
    tasks = tasks > job->rows ? job->rows : tasks;
    if (tasks == 0)
        return LW_OK;
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
             .what = "vectors of 16-bit pairs, all threads",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_cpu},
    .gemm = cpu_gemm,
    .conv = cpu_conv,
    .softmax = cpu_softmax,
    .layer_norm = cpu_layer_norm,
};
