/* paths_cpu.c - the CPU backend: blocked Floyd-Warshall (Venkataraman, Sahni and Mukhopadhyaya, JEA 8, 2003)
 * on vectors and all cores.
 *
 * For each block of pivots K: the block d(K,K) is closed first; then the row panel d(K,*) and the column
 * panel d(*,K) are multiplied (min-plus) by it, once, which is exact since it is closed; then everything else
 * takes the product of the two panels. All three are the same product kernel on packed panels. Distances
 * below 2^15 run in 16-bit lanes: where the driver proved that they stay there, or, unproved, with a look at
 * the result (the rule in paths_backend.h). 64-bit integers below 2^53 run as float64, which no vector unit
 * adds and compares slower. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cpu.h"
#include "common/fail.h"
#include "paths/paths_backend.h"
#include "paths/paths_cpu_kernels.h"
#include "paths/paths_cpu_tuning.h"

typedef struct cpu {
    lw_pool *pool;
    const lw_host *host;
    const lw_paths_cpu_kernels *kernels; /* LW_LANES of them */
    const char *isa;
} cpu;

/* One matrix in one lane type on its way through the k-blocks. */
typedef struct solver {
    const cpu *cpu;
    const lw_paths_cpu_kernels *kernels;
    char *matrix;
    int64_t n, ld, tiles;
    int64_t k0;                       /* this block's first pivot */
    int depth;                        /* its pivots */
    char *rows;                       /* column panel d(*,K), packed by tiles of rows */
    char *columns;                    /* row panel d(K,*), packed by tiles of columns */
    char *block_rows, *block_columns; /* d(K,K), packed both ways */
} solver;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void *at(const solver *s, int64_t i, int64_t j)
{
    return s->matrix + (i * s->ld + j) * s->kernels->size;
}

/* Bytes of a packed tile; strips are full, so tiles are equally long. */
static int64_t tile_bytes(const solver *s)
{
    return (int64_t)LW_CPU_TILE * LW_CPU_PIVOTS * s->kernels->size;
}

/* Multiplies one tile of the row panel by the closed block. `packed` is where the tile's old columns go. */
static void row_panel_tile(const solver *s, int64_t tile)
{
    int64_t j = tile * LW_CPU_TILE, columns = least(LW_CPU_TILE, s->n - j);
    char *packed = s->columns + tile * tile_bytes(s);
    s->kernels->pack_columns(packed, at(s, s->k0, j), s->ld, columns, s->depth);
    s->kernels->product(at(s, s->k0, j), s->ld, s->depth, columns, s->block_rows, packed, s->depth);
}

static void column_panel_tile(const solver *s, int64_t tile)
{
    int64_t i = tile * LW_CPU_TILE, rows = least(LW_CPU_TILE, s->n - i);
    char *packed = s->rows + tile * tile_bytes(s);
    s->kernels->pack_rows(packed, at(s, i, s->k0), s->ld, rows, s->depth);
    s->kernels->product(at(s, i, s->k0), s->ld, rows, s->depth, packed, s->block_columns, s->depth);
}

/* Task t: tile t / 2 of the row panel (even t) or column panel; packed anew for the product. The tile that
 * holds the block itself lies in both panels and was multiplied before. */
static lw_status panel_task(void *arg, int64_t t, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const solver *s = arg;
    int64_t tile = t / 2, first = tile * LW_CPU_TILE, extent = least(LW_CPU_TILE, s->n - first);
    bool own = tile == s->k0 / LW_CPU_TILE;
    if (t % 2 == 0) {
        if (!own)
            row_panel_tile(s, tile);
        s->kernels->pack_columns(s->columns + tile * tile_bytes(s), at(s, s->k0, first), s->ld, extent,
                                 s->depth);
    } else {
        if (!own)
            column_panel_tile(s, tile);
        s->kernels->pack_rows(s->rows + tile * tile_bytes(s), at(s, first, s->k0), s->ld, extent, s->depth);
    }
    return LW_OK;
}

/* The parts of one tile's rows (or columns) that are no pivots: at most two, {first, length} each, counted
 * from the tile's first. A pivot block that is no whole number of packed strips of `strip` stays in: to take
 * part again changes nothing. */
static int without_pivots(const solver *s, int64_t first, int64_t extent, int strip, int64_t parts[2][2])
{
    int64_t begin = s->k0 - first, end = begin + s->depth;
    if (begin < 0 || begin >= extent || begin % strip != 0 || (end % strip != 0 && end != extent)) {
        parts[0][0] = 0, parts[0][1] = extent;
        return 1;
    }
    int n = 0;
    if (begin > 0)
        parts[n][0] = 0, parts[n++][1] = begin;
    if (end < extent)
        parts[n][0] = end, parts[n++][1] = extent - end;
    return n;
}

/* Task t: one tile of rows times a group of tiles of columns, the panels left out. */
static lw_status product_task(void *arg, int64_t t, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const solver *s = arg;
    const lw_paths_cpu_kernels *k = s->kernels;
    int64_t row = t % s->tiles, i = row * LW_CPU_TILE, stride = (int64_t)s->depth * k->size;
    int64_t first = t / s->tiles * LW_CPU_GROUP, last = least(first + LW_CPU_GROUP, s->tiles);
    int64_t rows[2][2], columns[2][2];
    int row_parts = without_pivots(s, i, least(LW_CPU_TILE, s->n - i), LW_CPU_ROWS, rows);
    for (int64_t column = first; column < last; column++) {
        int64_t j = column * LW_CPU_TILE;
        int column_parts = without_pivots(s, j, least(LW_CPU_TILE, s->n - j), k->width, columns);
        for (int x = 0; x < row_parts; x++)
            for (int y = 0; y < column_parts; y++)
                k->product(at(s, i + rows[x][0], j + columns[y][0]), s->ld, rows[x][1], columns[y][1],
                           s->rows + row * tile_bytes(s) + rows[x][0] * stride,
                           s->columns + column * tile_bytes(s) + columns[y][0] * stride, s->depth);
    }
    return LW_OK;
}

/* One block of pivots, which lies within one tile. */
static lw_status solve_block(solver *s, lw_error *err)
{
    const lw_paths_cpu_kernels *k = s->kernels;
    int64_t own = s->k0 / LW_CPU_TILE;
    k->close(at(s, s->k0, s->k0), s->ld, s->depth);
    k->pack_rows(s->block_rows, at(s, s->k0, s->k0), s->ld, s->depth, s->depth);
    k->pack_columns(s->block_columns, at(s, s->k0, s->k0), s->ld, s->depth, s->depth);
    row_panel_tile(s, own);
    column_panel_tile(s, own);
    LW_TRY(lw_pool_for(s->cpu->pool, 2 * s->tiles, panel_task, s, err));
    int64_t groups = (s->tiles + LW_CPU_GROUP - 1) / LW_CPU_GROUP;
    return lw_pool_for(s->cpu->pool, s->tiles * groups, product_task, s, err);
}

static lw_status solver_open(solver *s, const cpu *c, int lane, void *matrix, int64_t n, int64_t ld,
                             lw_error *err)
{
    *s = (solver){.cpu = c, .kernels = &c->kernels[lane], .matrix = matrix, .n = n, .ld = ld};
    s->tiles = (n + LW_CPU_TILE - 1) / LW_CPU_TILE;
    size_t panel = (size_t)(s->tiles * tile_bytes(s)) + 64;
    s->rows = aligned_alloc(64, panel / 64 * 64 + 64);
    s->columns = aligned_alloc(64, panel / 64 * 64 + 64);
    s->block_rows = aligned_alloc(64, (size_t)tile_bytes(s));
    s->block_columns = aligned_alloc(64, (size_t)tile_bytes(s));
    if (!s->rows || !s->columns || !s->block_rows || !s->block_columns)
        return lw_fail_memory(err, 2 * panel);
    return LW_OK;
}

static void solver_close(solver *s)
{
    free(s->rows);
    free(s->columns);
    free(s->block_rows);
    free(s->block_columns);
}

/* --- 16 bits ---------------------------------------------------------------------------------------- */

typedef struct narrow {
    const lw_paths_job *job;
    uint16_t *lanes; /* n x n */
    int32_t *most;   /* by row of the result: the largest finite value */
} narrow;

/* Any weight of 2^15 - 1 or more becomes "no edge": no shortest path that fits has it. */
static lw_status narrow_row(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const narrow *w = arg;
    const int32_t *from = (const int32_t *)w->job->matrix + i * w->job->ld;
    uint16_t *to = w->lanes + i * w->job->n;
    for (int64_t j = 0; j < w->job->n; j++)
        to[j] = (uint16_t)(from[j] < LW_PATHS_INF_U16 ? from[j] : LW_PATHS_INF_U16);
    return LW_OK;
}

static lw_status widen_row(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const narrow *w = arg;
    int32_t *to = (int32_t *)w->job->matrix + i * w->job->ld;
    const uint16_t *from = w->lanes + i * w->job->n;
    for (int64_t j = 0; j < w->job->n; j++)
        to[j] = from[j] == LW_PATHS_INF_U16 ? LW_PATHS_INF_S32 : from[j];
    return LW_OK;
}

static lw_status largest_row(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const narrow *w = arg;
    const uint16_t *row = w->lanes + i * w->job->n;
    int32_t most = 0;
    for (int64_t j = 0; j < w->job->n; j++) {
        int32_t d = row[j] == LW_PATHS_INF_U16 ? 0 : row[j];
        most = d > most ? d : most;
    }
    w->most[i] = most;
    return LW_OK;
}

/* --- 64-bit integers as float64 --------------------------------------------------------------------- */

/* Whether every number of the run is an integer that float64 holds: an entry is the length of a path without
 * repeated vertices or, with negative weights, of a walk that is no shorter than the shortest path; the sum
 * of two of them must stay below 2^53. */
static bool fits_f64(const lw_paths_job *job)
{
    const double limit = 9007199254740992.0; /* 2^53 */
    return job->type == LW_PATHS_S64 && 2 * (double)job->max_weight * (double)job->n < limit &&
           -2 * (double)job->low < limit;
}

/* Infinity may have sunk in a matrix of a resumed run, by less than that (fits_f64()). */
static lw_status to_f64_row(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const lw_paths_job *job = arg;
    char *row = (char *)job->matrix + i * job->ld * 8;
    for (int64_t j = 0; j < job->n; j++) {
        int64_t d;
        memcpy(&d, row + 8 * j, sizeof d);
        double x = d > LW_PATHS_INF_S64 / 2 ? (double)INFINITY : (double)d;
        memcpy(row + 8 * j, &x, sizeof x);
    }
    return LW_OK;
}

static lw_status from_f64_row(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const lw_paths_job *job = arg;
    char *row = (char *)job->matrix + i * job->ld * 8;
    for (int64_t j = 0; j < job->n; j++) {
        double x;
        memcpy(&x, row + 8 * j, sizeof x);
        int64_t d = isinf(x) ? LW_PATHS_INF_S64 : (int64_t)x;
        memcpy(row + 8 * j, &d, sizeof d);
    }
    return LW_OK;
}

/* --- next hops -------------------------------------------------------------------------------------- */

/* Edges from the last to the first, so that the smallest vertex stays. */
#define LW_NEXT_ROW(name, T)                                                                                 \
    static lw_status name(void *arg, int64_t i, int worker, lw_error *err)                                   \
    {                                                                                                        \
        (void)worker, (void)err;                                                                             \
        const lw_paths_job *job = arg;                                                                       \
        const T *d = job->matrix, *goal = d + i * job->ld, *w = job->edge_weight;                            \
        int32_t *restrict next = job->next + i * job->next_ld;                                               \
        T limit = (T)job->high;                                                                              \
        for (int64_t j = 0; j < job->n; j++)                                                                 \
            next[j] = -1;                                                                                    \
        for (int64_t e = job->edge_start[i + 1] - 1; e >= job->edge_start[i]; e--) {                         \
            int32_t v = job->edge_to[e];                                                                     \
            T weight = w[e];                                                                                 \
            const T *onward = d + v * job->ld;                                                               \
            for (int64_t j = 0; j < job->n; j++)                                                             \
                next[j] = weight + onward[j] == goal[j] && goal[j] <= limit ? v : next[j];                   \
        }                                                                                                    \
        next[i] = (int32_t)i;                                                                                \
        return LW_OK;                                                                                        \
    }
LW_NEXT_ROW(next_row_s32, int32_t)
LW_NEXT_ROW(next_row_s64, int64_t)

/* --- the row's functions ---------------------------------------------------------------------------- */

static const lw_paths_cpu_kernels *const tables[LW_ISA_COUNT] = {
    [LW_ISA_PLAIN] = lw_paths_cpu_plain,
#if defined(__x86_64__)
    [LW_ISA_SSE41] = lw_paths_cpu_sse41,
    [LW_ISA_AVX2] = lw_paths_cpu_avx2,
    [LW_ISA_AVX512BW] = lw_paths_cpu_avx512bw,
#elif defined(__aarch64__)
    [LW_ISA_NEON] = lw_paths_cpu_neon,
#endif
};

static lw_status cpu_supports(const lw_paths_backend *self, lw_paths_type type, lw_error *err)
{
    (void)self, (void)type, (void)err;
    return LW_OK;
}

static lw_status cpu_open(const lw_paths_backend *self, void **context, const lw_paths_setup *setup,
                          lw_error *err)
{
    (void)self;
    unsigned usable;
    LW_TRY(lw_isa_usable(&usable, err));
    cpu *c = malloc(sizeof *c);
    if (!c)
        return lw_fail_memory(err, sizeof *c);
    int isa = 0;
    while (!(usable & 1u << isa) || !tables[isa]) /* best first; plain is always there */
        isa++;
    *c = (cpu){
        .pool = setup->pool, .host = setup->host, .kernels = tables[isa], .isa = lw_isa_name((lw_isa)isa)};
    *context = c;
    return LW_OK;
}

/* 0: not in 16 bits; 1: proved; 2: to be looked at afterwards. */
static int sixteen_bits(const lw_paths_job *job)
{
    if (job->type != LW_PATHS_S32 || job->negative)
        return 0;
    if (job->high < LW_PATHS_INF_U16)
        return 1;
    /* a checkpoint would overwrite the matrix from which to begin again */
    return job->max_weight <= LW_PATHS_INF_U16 / 2 && !job->checkpoint_want && job->k_begin == 0 ? 2 : 0;
}

static lw_status cpu_estimate(void *context, const lw_paths_job *job, lw_paths_estimate *out, lw_error *err)
{
    (void)err;
    const cpu *c = context;
    double n = (double)job->n;
    int lane = sixteen_bits(job) ? LW_LANE_U16 : fits_f64(job) ? LW_LANE_F64 : (int)job->type;
    double panels = 2 * n * LW_CPU_PIVOTS * c->kernels[lane].size;
    *out = (lw_paths_estimate){
        .seconds = n * n * (n - (double)job->k_begin) / lw_cpu_rates[lane] / lw_pool_threads(c->pool),
        .host_bytes = (int64_t)(panels + (lane == LW_LANE_U16 ? n * n * 2 : 0)),
    };
    return LW_OK;
}

/* The driver has excluded negative cycles; one all the same shows on the diagonal. */
static lw_status look_at_diagonal(const solver *s, lw_paths_type type, lw_error *err)
{
    for (int64_t i = 0; i < s->n; i++) {
        const void *d = at(s, i, i);
        bool bad = type == LW_PATHS_S32   ? *(const int32_t *)d < 0
                   : type == LW_PATHS_S64 ? *(const int64_t *)d < 0
                   : type == LW_PATHS_F32 ? *(const float *)d < 0
                                          : *(const double *)d < 0;
        if (bad)
            return lw_fail(err, LW_E_INTERNAL,
                           "vertex %lld lies on a negative cycle that was not found before", (long long)i);
    }
    return LW_OK;
}

/* All k-blocks from k_begin on. w: the 16-bit copy to widen before a checkpoint is saved, or NULL. type: what
 * the lanes hold. */
static lw_status run_blocks(solver *s, const lw_paths_job *job, lw_paths_type type, narrow *w,
                            lw_paths_report *report, lw_error *err)
{
    bool as_f64 = type == LW_PATHS_F64 && job->type == LW_PATHS_S64;
    const lw_host *host = s->cpu->host;
    for (int64_t k = job->k_begin; k < s->n; k += s->depth) {
        /* up to a multiple of the block, so that a block never straddles two tiles */
        s->k0 = k;
        s->depth = (int)least(LW_CPU_PIVOTS - k % LW_CPU_PIVOTS, s->n - k);
        LW_TRY(solve_block(s, err));
        if (job->negative)
            LW_TRY(look_at_diagonal(s, type, err));
        int64_t done = k + s->depth;
        report->relaxations += (double)s->n * (double)s->n * s->depth;
        if (host && host->progress)
            host->progress(host->user, (double)done, (double)s->n, report->relaxations);
        if (job->checkpoint_want && job->checkpoint_want(job->checkpoint_user, done)) {
            if (w)
                LW_TRY(lw_pool_for(s->cpu->pool, s->n, widen_row, w, err));
            if (as_f64)
                LW_TRY(lw_pool_for(s->cpu->pool, s->n, from_f64_row, (void *)job, err));
            LW_TRY(job->checkpoint_save(job->checkpoint_user, done, err));
            if (as_f64)
                LW_TRY(lw_pool_for(s->cpu->pool, s->n, to_f64_row, (void *)job, err));
        }
        if (lw_stopped(host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    }
    return LW_OK;
}

/* In 16 bits; *fitted: the matrix holds the result. */
static lw_status solve_narrow(const cpu *c, const lw_paths_job *job, bool proved, bool *fitted,
                              lw_paths_report *report, lw_error *err)
{
    int64_t n = job->n;
    lw_status status = LW_OK;
    solver s = {0};
    narrow w = {.job = job,
                .lanes = aligned_alloc(64, ((size_t)(n * n * 2) / 64 + 1) * 64),
                .most = malloc((size_t)n * sizeof *w.most)};
    if (!w.lanes || !w.most) {
        status = lw_fail_memory(err, (size_t)(n * n * 2));
        goto end;
    }
    LW_TRY_END(lw_pool_for(c->pool, n, narrow_row, &w, err));
    LW_TRY_END(solver_open(&s, c, LW_LANE_U16, w.lanes, n, n, err));
    LW_TRY_END(run_blocks(&s, job, job->type, &w, report, err));
    *fitted = true;
    if (!proved) {
        LW_TRY_END(lw_pool_for(c->pool, n, largest_row, &w, err));
        for (int64_t i = 0; i < n; i++)
            *fitted = *fitted && w.most[i] <= LW_PATHS_INF_U16 / 2;
    }
    if (*fitted)
        LW_TRY_END(lw_pool_for(c->pool, n, widen_row, &w, err));
end:
    solver_close(&s);
    free(w.lanes);
    free(w.most);
    return status;
}

static lw_status cpu_solve(void *context, const lw_paths_job *job, lw_paths_report *report, lw_error *err)
{
    const cpu *c = context;
    double start = now();
    int narrow_mode = job->n > 1 ? sixteen_bits(job) : 0;
    bool fitted = false;
    if (narrow_mode)
        LW_TRY(solve_narrow(c, job, narrow_mode == 1, &fitted, report, err));
    bool as_f64 = fits_f64(job);
    if (!fitted) {
        solver s = {0};
        lw_paths_type type = as_f64 ? LW_PATHS_F64 : job->type;
        lw_status status = solver_open(&s, c, (int)type, job->matrix, job->n, job->ld, err);
        if (status == LW_OK && as_f64)
            status = lw_pool_for(c->pool, job->n, to_f64_row, (void *)job, err);
        if (status == LW_OK)
            status = run_blocks(&s, job, type, NULL, report, err);
        if (status == LW_OK && as_f64)
            status = lw_pool_for(c->pool, job->n, from_f64_row, (void *)job, err);
        solver_close(&s);
        LW_TRY(status);
    }
    double solved = now();
    if (job->next)
        LW_TRY(lw_pool_for(c->pool, job->n, job->type == LW_PATHS_S32 ? next_row_s32 : next_row_s64,
                           (void *)job, err));
    report->kernel_seconds += now() - start;
    report->next_seconds += now() - solved;
    snprintf(report->how, sizeof report->how, "%s%s, %d threads",
             as_f64             ? "as float64, "
             : !narrow_mode     ? ""
             : narrow_mode == 1 ? "16 bits (proved), "
             : fitted           ? "16 bits (verified), "
                                : "16 bits did not suffice, ",
             c->isa, lw_pool_threads(c->pool));
    return LW_OK;
}

const lw_paths_backend lw_paths_cpu = {
    .base = {.name = "cpu",
             .what = "blocked, on vectors (AVX-512, AVX2, SSE4.1, NEON or plain C) and all cores",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_cpu},
    .supports = cpu_supports,
    .open = cpu_open,
    .estimate = cpu_estimate,
    .solve = cpu_solve,
    .close = free,
};
