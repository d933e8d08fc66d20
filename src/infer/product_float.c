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

/* All of B in panels, as a node keeps it. */
typedef struct kept_panels {
    const lw_float_kernels *kernels;
    int64_t n, k;
    float panel[];
} kept_panels;

typedef struct float_job {
    const lw_float_gemm *g;
    const lw_float_kernels *kernels;
    float *a;          /* tiles, each k x its rows */
    kept_panels *kept; /* NULL: each task packs its own panel, */
    float **panel;     /* of each worker */
    int64_t rows_of_task, row_tasks;
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

static lw_status keep_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const float_job *job = arg;
    const lw_float_gemm *g = job->g;
    int wide = job->kernels->columns;
    int64_t first = task * wide;
    pack_panel(g, first, g->n - first < wide ? g->n - first : wide, wide, job->kept->panel + first * g->k);
    return LW_OK;
}

static void release_panels(void *data)
{
    free(data);
}

/* Takes B from the node's slot, where it is packed at the first call. */
static void use_kept_b(lw_pool *pool, float_job *job)
{
    const lw_float_gemm *g = job->g;
    lw_kept *keep = g->keep_b;
    if (keep && keep->release == release_panels) {
        kept_panels *b = keep->data;
        job->kept = b->kernels == job->kernels && b->n == g->n && b->k == g->k ? b : NULL;
        return;
    }
    if (!keep || keep->data) /* the latter: another backend's */
        return;
    int wide = job->kernels->columns;
    int64_t panels = (g->n + wide - 1) / wide;
    job->kept = malloc(sizeof *job->kept + (size_t)(panels * wide * g->k) * sizeof(float));
    if (!job->kept)
        return;
    job->kept->kernels = job->kernels;
    job->kept->n = g->n;
    job->kept->k = g->k;
    *keep = (lw_kept){job->kept, release_panels};
    lw_pool_for(pool, panels, keep_task, job, NULL); /* its tasks cannot fail */
}

/* A tile's results go to c at once where they are whole vectors and nothing is left to do; then the depth may
 * be cut into blocks that stay in the first-level cache. */
static lw_status panel_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)err;
    const float_job *job = arg;
    const lw_float_gemm *g = job->g;
    int wide = job->kernels->columns;
    int64_t first = task / job->row_tasks * wide, columns = g->n - first < wide ? g->n - first : wide;
    int64_t begin = task % job->row_tasks * job->rows_of_task;
    int64_t end = g->m - begin < job->rows_of_task ? g->m : begin + job->rows_of_task;
    float sum[LW_FLOAT_TILE_ROWS * LW_FLOAT_TILE_COLUMNS];
    const float *panel = job->kept ? job->kept->panel + first * g->k : job->panel[worker];
    bool simple = scales_a(g) || (g->alpha == 1 && !g->accumulate);
    bool onto_c = scales_a(g) && g->accumulate, direct = simple && columns == wide;
    int64_t depth = direct ? LW_FLOAT_DEPTH : g->k, k = 0;
    if (!job->kept)
        pack_panel(g, first, columns, wide, job->panel[worker]);
    do {
        int64_t here = g->k - k < depth ? g->k - k : depth;
        for (int64_t top = begin; top < end; top += LW_FLOAT_TILE_ROWS) {
            int64_t rows = end - top < LW_FLOAT_TILE_ROWS ? end - top : LW_FLOAT_TILE_ROWS;
            float *c = g->c + top * g->ldc + first;
            const float *a = job->a + top * g->k + k * rows;
            if (direct) {
                job->kernels->multiply((int)rows, here, a, panel + k * wide, onto_c || k > 0, c, g->ldc);
                continue;
            }
            memset(sum, 0, sizeof sum);
            for (int64_t i = 0; onto_c && i < rows; i++)
                memcpy(sum + i * wide, c + i * g->ldc, (size_t)columns * sizeof *c);
            job->kernels->multiply((int)rows, here, a, panel, true, sum, wide);
            for (int64_t i = 0; i < rows; i++)
                if (simple)
                    memcpy(c + i * g->ldc, sum + i * wide, (size_t)columns * sizeof *c);
                else
                    for (int64_t j = 0; j < columns; j++)
                        c[i * g->ldc + j] =
                            g->alpha * sum[i * wide + j] + (g->accumulate ? c[i * g->ldc + j] : 0);
        }
        k += here;
    } while (k < g->k);
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
    use_kept_b(pool, &job);
    int workers = lw_pool_threads(pool);
    size_t panel = job.kept ? 0 : (size_t)g->k * (size_t)wide + 16,
           tile = (size_t)(g->m * g->k) + 16; /* 64 bytes apart */
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
    /* panels that are packed already may be shared by several tasks */
    int64_t wanted = workers > 1 && job.kept ? LW_FLOAT_TASKS * (int64_t)workers : 1;
    int64_t row_tasks = (wanted + panels - 1) / panels;
    job.rows_of_task = (tiles + row_tasks - 1) / row_tasks * LW_FLOAT_TILE_ROWS;
    job.row_tasks = (g->m + job.rows_of_task - 1) / job.rows_of_task;
    if (status == LW_OK)
        status = lw_pool_for_shares(pool, panels * job.row_tasks, panel_task, &job, err);
    free(memory);
    free(job.panel);
    return status;
}
