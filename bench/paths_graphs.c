/* paths_graphs.c - random graphs and Bellman's equation. */
#include "paths_graphs.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "paths/checkpoint.h"
#include "paths/paths_backend.h"

static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static uint32_t draw_below(uint64_t *state, uint32_t below)
{
    return draw(state) % below;
}

void paths_graph_free(paths_graph *g)
{
    free(g->start), free(g->to), free(g->weight), free(g->next);
    if (!g->lent)
        free(g->matrix);
}

static void put_weight(paths_graph *g, int64_t e, int64_t w)
{
    w = g->kind->next ? w * (g->n + 1) + 1 : w;
    switch (g->kind->type) {
    case LW_PATHS_S32:
        ((int32_t *)g->weight)[e] = (int32_t)w;
        break;
    case LW_PATHS_S64:
        ((int64_t *)g->weight)[e] = w;
        break;
    case LW_PATHS_F32:
        ((float *)g->weight)[e] = (float)w / 8;
        break;
    case LW_PATHS_F64:
        ((double *)g->weight)[e] = (double)w / 8;
        break;
    }
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

lw_status paths_graph_random(paths_graph *g, const paths_kind *kind, int64_t n, int degree, lw_error *err)
{
    uint64_t state = 20260101;
    size_t size = (size_t)lw_paths_size(kind->type), m = (size_t)(n * degree);
    int32_t *row = malloc((size_t)degree * sizeof *row);
    *g = (paths_graph){.kind = kind,
                       .n = n,
                       .start = malloc(((size_t)n + 1) * sizeof *g->start),
                       .to = malloc(m * sizeof *g->to),
                       .weight = malloc(m * size),
                       .matrix = malloc((size_t)(n * n) * size),
                       .next = kind->next ? malloc((size_t)(n * n) * sizeof *g->next) : NULL};
    if (!row || !g->start || !g->to || !g->weight || !g->matrix || (kind->next && !g->next)) {
        free(row);
        paths_graph_free(g);
        return lw_fail_memory(err, (size_t)(n * n) * size);
    }
    g->start[0] = 0;
    for (int64_t i = 0, e = 0; i < n; i++) {
        for (int d = 1; d < degree; d++)
            row[d] = (int32_t)draw_below(&state, (uint32_t)n);
        row[0] = (int32_t)((i + 1) % n);
        qsort(row, (size_t)degree, sizeof *row, by_number);
        for (int d = 0; d < degree; d++) {
            if (row[d] == i || (d > 0 && row[d] == row[d - 1]))
                continue;
            g->to[e] = row[d];
            put_weight(g, e++, 1 + draw_below(&state, (uint32_t)kind->most));
        }
        g->start[i + 1] = e;
    }
    free(row);
    return LW_OK;
}

/* --- interactions ----------------------------------------------------------------------------------- */

typedef struct pair {
    int32_t from, to, weight;
} pair;

static int by_ends(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    int from = (x->from > y->from) - (x->from < y->from), to = (x->to > y->to) - (x->to < y->to);
    return from ? from : to ? to : (x->weight > y->weight) - (x->weight < y->weight);
}

/* Vertex v is drawn with probability proportional to (v + 20)^-(1 / 1.4): degrees then fall off as a power of
 * -(1 + 1.4) (Chung and Lu, PNAS 99:15879, 2002), the largest being some 2,000 of 20,000 vertices. */
static int32_t draw_hub(uint64_t *state, int64_t n)
{
    const double shift = 20, power = 1 - 1 / 1.4;
    double low = pow(shift, power), high = pow((double)n + shift, power);
    double x = low + (high - low) * (draw(state) + 0.5) / 2147483648.0;
    int64_t v = (int64_t)(pow(x, 1 / power) - shift);
    return (int32_t)(v < 0 ? 0 : v >= n ? n - 1 : v);
}

lw_status paths_graph_interactions(paths_graph *g, const paths_kind *kind, int64_t n, int64_t edges,
                                   lw_error *err)
{
    uint64_t state = 20260102;
    int64_t m = 0, capacity = 2 * (edges + n);
    pair *pairs = malloc((size_t)capacity * sizeof *pairs);
    *g = (paths_graph){.kind = kind,
                       .n = n,
                       .lent = true,
                       .start = calloc((size_t)n + 1, sizeof *g->start),
                       .to = malloc((size_t)capacity * sizeof *g->to),
                       .weight = malloc((size_t)capacity * (size_t)lw_paths_size(kind->type))};
    if (!pairs || !g->start || !g->to || !g->weight) {
        free(pairs);
        paths_graph_free(g);
        return lw_fail_memory(err, (size_t)capacity * sizeof *pairs);
    }
    for (int64_t i = 0; i < edges + n; i++) {
        int32_t u = i < n ? (int32_t)i : draw_hub(&state, n), v = draw_hub(&state, n);
        int32_t weight = 1 + (int32_t)draw_below(&state, (uint32_t)kind->most);
        if (i < n && i > 0 && u == v) /* no vertex stays alone */
            v = 0;
        if (u == v)
            continue;
        pairs[m++] = (pair){u, v, weight};
        pairs[m++] = (pair){v, u, weight};
    }
    qsort(pairs, (size_t)m, sizeof *pairs, by_ends);
    int64_t e = 0;
    for (int64_t i = 0; i < m; i++) {
        if (i > 0 && pairs[i].from == pairs[i - 1].from && pairs[i].to == pairs[i - 1].to)
            continue;
        g->to[e] = pairs[i].to;
        put_weight(g, e++, pairs[i].weight);
        g->start[pairs[i].from + 1] = e;
    }
    free(pairs);
    return LW_OK;
}

lw_status paths_graph_write(const paths_graph *g, const char *path, lw_error *err)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return lw_fail(err, LW_E_IO, "%s: %s", path, strerror(errno));
    fputs("protein1 protein2 combined_score\n", f);
    for (int64_t u = 0; u < g->n; u++)
        for (int64_t e = g->start[u]; e < g->start[u + 1]; e++)
            if (u < g->to[e])
                fprintf(f, "9606.ENSP%011lld 9606.ENSP%011d %d\n", (long long)u, g->to[e],
                        1000 - ((const int32_t *)g->weight)[e]);
    bool failed = ferror(f);
    if (fclose(f) != 0 || failed)
        return lw_fail(err, LW_E_IO, "%s: writing failed: %s", path, strerror(errno));
    return LW_OK;
}

/* --- matrix ----------------------------------------------------------------------------------------- */

#define FILL(T, NOTHING)                                                                                     \
    do {                                                                                                     \
        T *row = (T *)g->matrix + i * n;                                                                     \
        for (int64_t j = 0; j < n; j++)                                                                      \
            row[j] = NOTHING;                                                                                \
        for (int64_t e = g->start[i]; e < g->start[i + 1]; e++)                                              \
            row[g->to[e]] = ((const T *)g->weight)[e];                                                       \
        row[i] = 0;                                                                                          \
    } while (0)

static lw_status fill_row(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const paths_graph *g = arg;
    int64_t n = g->n;
    switch (g->kind->type) {
    case LW_PATHS_S32:
        FILL(int32_t, LW_PATHS_INF_S32);
        break;
    case LW_PATHS_S64:
        FILL(int64_t, LW_PATHS_INF_S64);
        break;
    case LW_PATHS_F32:
        FILL(float, INFINITY);
        break;
    case LW_PATHS_F64:
        FILL(double, INFINITY);
        break;
    }
    return LW_OK;
}

lw_status paths_graph_fill(const paths_graph *g, lw_pool *pool, lw_error *err)
{
    return lw_pool_for(pool, g->n, fill_row, (void *)g, err);
}

typedef struct check {
    const paths_graph *graph;
    const char *backend;
    char *best;    /* n elements a worker */
    int32_t *hop;  /* the same */
    uint64_t *sum; /* by row */
} check;

/* Edges from the last to the first, so that the smallest vertex stays. */
#define CHECK(T, NOTHING)                                                                                    \
    do {                                                                                                     \
        T *restrict best = (T *)(c->best + worker * n * (int64_t)sizeof(T));                                 \
        const T *d = g->matrix, *goal = d + i * n, *w = g->weight;                                           \
        for (int64_t j = 0; j < n; j++)                                                                      \
            best[j] = NOTHING, hop[j] = -1;                                                                  \
        for (int64_t e = g->start[i + 1] - 1; e >= g->start[i]; e--) {                                       \
            const T *onward = d + g->to[e] * n;                                                              \
            T weight = w[e];                                                                                 \
            int32_t v = g->to[e];                                                                            \
            if (g->next)                                                                                     \
                for (int64_t j = 0; j < n; j++)                                                              \
                    hop[j] = weight + onward[j] == goal[j] && goal[j] < NOTHING ? v : hop[j];                \
            for (int64_t j = 0; j < n; j++) {                                                                \
                T through = weight + onward[j];                                                              \
                best[j] = through < best[j] ? through : best[j];                                             \
            }                                                                                                \
        }                                                                                                    \
        best[i] = 0, hop[i] = (int32_t)i;                                                                    \
        for (int64_t j = 0; j < n; j++)                                                                      \
            if (best[j] != goal[j]) {                                                                        \
                wrong = j, got = (double)goal[j], want = (double)best[j];                                    \
                break;                                                                                       \
            }                                                                                                \
    } while (0)

static lw_status check_row(void *arg, int64_t i, int worker, lw_error *err)
{
    const check *c = arg;
    const paths_graph *g = c->graph;
    int64_t n = g->n, wrong = -1;
    double got = 0, want = 0;
    int32_t *restrict hop = c->hop + worker * n;
    switch (g->kind->type) {
    case LW_PATHS_S32:
        CHECK(int32_t, LW_PATHS_INF_S32);
        break;
    case LW_PATHS_S64:
        CHECK(int64_t, LW_PATHS_INF_S64);
        break;
    case LW_PATHS_F32:
        CHECK(float, INFINITY);
        break;
    case LW_PATHS_F64:
        CHECK(double, (double)INFINITY);
        break;
    }
    const char *what = "distance";
    for (int64_t j = 0; g->next && wrong < 0 && j < n; j++)
        if (g->next[i * n + j] != hop[j])
            what = "next hop", wrong = j, got = g->next[i * n + j], want = hop[j];
    if (wrong < 0)
        return LW_OK;
    return lw_fail(
        err, LW_E_INTERNAL,
        "%s, %s, n = %lld: the %s from vertex %lld to %lld is %.17g, but the edges of the first make "
        "it %.17g: no speed is shown for wrong results",
        c->backend, g->kind->name, (long long)n, what, (long long)i, (long long)wrong, got, want);
}

lw_status paths_graph_verify(const paths_graph *g, lw_pool *pool, const char *backend, lw_error *err)
{
    size_t rows = (size_t)(g->n * lw_pool_threads(pool));
    check c = {.graph = g,
               .backend = backend,
               .best = malloc(rows * (size_t)lw_paths_size(g->kind->type)),
               .hop = malloc(rows * sizeof *c.hop)};
    lw_status status = c.best && c.hop ? lw_pool_for(pool, g->n, check_row, &c, err)
                                       : lw_fail_memory(err, rows * sizeof *c.hop);
    free(c.best), free(c.hop);
    return status;
}

static lw_status sum_row(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const check *c = arg;
    const paths_graph *g = c->graph;
    int64_t row = g->n * lw_paths_size(g->kind->type);
    c->sum[i] = lw_checksum(0, (const char *)g->matrix + i * row, row);
    if (g->next)
        c->sum[i] = lw_checksum(c->sum[i], g->next + i * g->n, g->n * 4);
    return LW_OK;
}

lw_status paths_graph_checksum(const paths_graph *g, lw_pool *pool, uint64_t *sum, lw_error *err)
{
    check c = {.graph = g, .sum = malloc((size_t)g->n * sizeof *c.sum + 1)};
    if (!c.sum)
        return lw_fail_memory(err, (size_t)g->n * sizeof *c.sum);
    lw_status status = lw_pool_for(pool, g->n, sum_row, &c, err);
    *sum = lw_checksum(0, c.sum, g->n * 8);
    free(c.sum);
    return status;
}
