/* product_float.c - products of float matrices. A and B are packed into tiles of rows and panels of columns,
 * sums stay in registers over the whole depth: every result is the sum in the order of k, whatever the
 * instruction set. */
#include "infer/product_float.h"

#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "common/fail.h"
#include "infer/product.h"

static lw_status choose_kernels(const lw_float_kernels **out, lw_error *err)
{
    unsigned usable;
    LW_TRY(lw_isa_usable(&usable, err));
    *out = &lw_float_kernels_plain;
#if defined(__x86_64__)
    if (usable >> LW_ISA_AVX2 & 1)
        *out = &lw_float_kernels_avx2;
    if (usable >> LW_ISA_AVX512BW & 1)
        *out = &lw_float_kernels_avx512bw;
#endif
    return LW_OK;
}

typedef struct float_job {
    const lw_float_gemm *g;
    const lw_float_kernels *kernels;
    float *a;      /* tiles, each k x its rows */
    float **panel; /* of each worker */
} float_job;

/* alpha goes into A where rows of B are contiguous, and to the sum where they are not. */
static bool scales_a(const lw_float_gemm *g)
{
    return g->b_column == 1;
}

static lw_status pack_a_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const float_job *job = arg;
    const lw_float_gemm *g = job->g;
    int64_t first = task * LW_FLOAT_TILE_ROWS, rows = g->m - first;
    rows = rows < LW_FLOAT_TILE_ROWS ? rows : LW_FLOAT_TILE_ROWS;
    float *to = job->a + first * g->k, alpha = scales_a(g) ? g->alpha : 1;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < g->k; k++)
            to[k * rows + i] = alpha * g->a[(first + i) * g->a_row + k * g->a_column];
    return LW_OK;
}

/* Columns that are missing are 0. */
static void pack_panel(const lw_float_gemm *g, int64_t first, int64_t columns, int wide, float *panel)
{
    for (int64_t j = columns; j < wide; j++)
        for (int64_t k = 0; k < g->k; k++)
            panel[k * wide + j] = 0;
    if (g->b_column == 1) {
        for (int64_t k = 0; k < g->k; k++)
            memcpy(panel + k * wide, g->b + k * g->b_row + first, (size_t)columns * sizeof *panel);
        return;
    }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t k = 0; k < g->k; k++)
            panel[k * wide + j] = g->b[k * g->b_row + (first + j) * g->b_column];
}

static lw_status panel_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)err;
    const float_job *job = arg;
    const lw_float_gemm *g = job->g;
    int wide = job->kernels->columns;
    int64_t first = task * wide, columns = g->n - first < wide ? g->n - first : wide;
    float sum[LW_FLOAT_TILE_ROWS * LW_FLOAT_TILE_COLUMNS];
    bool onto_c = scales_a(g) && g->accumulate;
    pack_panel(g, first, columns, wide, job->panel[worker]);
    for (int64_t top = 0; top < g->m; top += LW_FLOAT_TILE_ROWS) {
        int64_t rows = g->m - top < LW_FLOAT_TILE_ROWS ? g->m - top : LW_FLOAT_TILE_ROWS;
        float *c = g->c + top * g->ldc + first;
        memset(sum, 0, sizeof sum);
        for (int64_t i = 0; onto_c && i < rows; i++)
            memcpy(sum + i * wide, c + i * g->ldc, (size_t)columns * sizeof *c);
        job->kernels->multiply((int)rows, g->k, job->a + top * g->k, job->panel[worker], sum);
        for (int64_t i = 0; i < rows; i++)
            if (scales_a(g))
                memcpy(c + i * g->ldc, sum + i * wide, (size_t)columns * sizeof *c);
            else
                for (int64_t j = 0; j < columns; j++)
                    c[i * g->ldc + j] =
                        g->alpha * sum[i * wide + j] + (g->accumulate ? c[i * g->ldc + j] : 0);
    }
    return LW_OK;
}

/* Few rows: B is read once, as it lies. */
static void few_rows(const lw_float_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        float *c = g->c + i * g->ldc;
        if (!g->accumulate)
            memset(c, 0, (size_t)g->n * sizeof *c);
        for (int64_t k = 0; k < g->k; k++) {
            float a = g->alpha * g->a[i * g->a_row + k * g->a_column];
            const float *b = g->b + k * g->b_row;
            for (int64_t j = 0; j < g->n; j++)
                c[j] += a * b[j];
        }
    }
}

enum { FEW_ROWS = 3 };

lw_status lw_float_product(lw_pool *pool, const lw_float_gemm *g, lw_error *err)
{
    float_job job = {.g = g};
    if (g->m == 0 || g->n == 0)
        return LW_OK;
    if (scales_a(g) && g->m <= FEW_ROWS) {
        few_rows(g);
        return LW_OK;
    }
    LW_TRY(choose_kernels(&job.kernels, err));
    int wide = job.kernels->columns;
    int64_t panels = (g->n + wide - 1) / wide, tiles = (g->m + LW_FLOAT_TILE_ROWS - 1) / LW_FLOAT_TILE_ROWS;
    /* small products are not worth a dispatch */
    if (g->m * g->n * g->k < 1 << 16 || panels == 1)
        pool = NULL;
    int workers = lw_pool_threads(pool);
    size_t panel = (size_t)g->k * (size_t)wide + 16, tile = (size_t)(g->m * g->k) + 16; /* 64 bytes apart */
    float *memory = malloc((tile + panel * (size_t)workers) * sizeof *memory);
    job.a = memory;
    job.panel = malloc((size_t)workers * sizeof *job.panel);
    lw_status status = LW_OK;
    if (!memory || !job.panel)
        status = lw_fail_memory(err, (tile + panel * (size_t)workers) * sizeof *memory);
    for (int w = 0; status == LW_OK && w < workers; w++)
        job.panel[w] = memory + tile + (size_t)w * panel;
    if (status == LW_OK)
        status = lw_pool_for(pool, tiles, pack_a_task, &job, err);
    if (status == LW_OK)
        status = lw_pool_for(pool, panels, panel_task, &job, err);
    free(memory);
    free(job.panel);
    return status;
}
