/* paths_arcs.c - from the graph to arcs and matrices. */
#include "paths/paths_arcs.h"

#include <math.h>
#include <stdlib.h>

#include "common/fail.h"

/* The weight of edge e of u as it is run. */
static double run_weight(const lw_graph *g, const double *potential, int64_t u, int64_t e)
{
    double w = lw_graph_weight(g, e);
    if (potential) {
        w += potential[u] - potential[g->to[e]];
        w = w > 0 ? w : 0; /* less than 0 by rounding alone */
    }
    return w;
}

void lw_arcs_free(lw_arcs *a)
{
    free(a->start);
    free(a->to);
    free(a->weight);
    *a = (lw_arcs){0};
}

lw_status lw_arcs_make(lw_arcs *out, const lw_graph *g, const lw_plan *p, const double *potential,
                       const int32_t *members, int64_t n, const int32_t *local, lw_error *err)
{
    int64_t size = lw_paths_size(p->inner), m = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t u = members ? members[i] : i;
        m += g->start[u + 1] - g->start[u];
    }
    *out = (lw_arcs){.n = n,
                     .start = malloc(((size_t)n + 1) * sizeof *out->start),
                     .to = malloc(((size_t)m + 1) * sizeof *out->to),
                     .weight = malloc(((size_t)m + 1) * (size_t)size)};
    if (!out->start || !out->to || !out->weight) {
        lw_arcs_free(out);
        return lw_fail_memory(err, (size_t)(m * (size + 4) + n * 8));
    }
    int64_t at = 0;
    out->start[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t u = members ? members[i] : i;
        for (int64_t e = g->start[u]; e < g->start[u + 1]; e++) {
            if (p->inner == LW_PATHS_F32)
                ((float *)out->weight)[at] = (float)run_weight(g, potential, u, e);
            else if (p->inner == LW_PATHS_F64)
                ((double *)out->weight)[at] = run_weight(g, potential, u, e);
            else {
                int64_t w;
                if (p->whole) {
                    w = g->whole[e];
                } else { /* rounded up, so that no cycle of sum >= 0 becomes negative */
                    double d = ceil(ldexp(run_weight(g, potential, u, e), p->grid));
                    if (d > (double)p->high)
                        continue;
                    w = (int64_t)d;
                }
                if (w > p->high) /* on no shortest path, and perhaps too large for the type */
                    continue;
                w = p->scale > 1 ? w * p->scale + 1 : w;
                if (p->inner == LW_PATHS_S32)
                    ((int32_t *)out->weight)[at] = (int32_t)w;
                else
                    ((int64_t *)out->weight)[at] = w;
            }
            out->to[at++] = local ? local[g->to[e]] : g->to[e];
        }
        out->start[i + 1] = at;
    }
    return LW_OK;
}

typedef struct fill_job {
    const lw_arcs *arcs;
    lw_paths_type type;
    void *matrix;
} fill_job;

#define LW_FILL_ROW(T, INFINITE)                                                                             \
    do {                                                                                                     \
        T *row = (T *)f->matrix + i * n;                                                                     \
        for (int64_t j = 0; j < n; j++)                                                                      \
            row[j] = INFINITE;                                                                               \
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)                                              \
            row[a->to[e]] = ((const T *)a->weight)[e];                                                       \
        row[i] = 0;                                                                                          \
    } while (0)

static lw_status fill_rows(void *arg, int64_t group, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const fill_job *f = arg;
    const lw_arcs *a = f->arcs;
    int64_t n = a->n;
    for (int64_t i = group * LW_ROW_GROUP; i < n && i < (group + 1) * LW_ROW_GROUP; i++)
        switch (f->type) {
        case LW_PATHS_S32:
            LW_FILL_ROW(int32_t, LW_PATHS_INF_S32);
            break;
        case LW_PATHS_S64:
            LW_FILL_ROW(int64_t, LW_PATHS_INF_S64);
            break;
        case LW_PATHS_F32:
            LW_FILL_ROW(float, INFINITY);
            break;
        case LW_PATHS_F64:
            LW_FILL_ROW(double, INFINITY);
            break;
        }
    return LW_OK;
}

lw_status lw_arcs_fill(const lw_arcs *arcs, lw_paths_type type, void *matrix, lw_pool *pool, lw_error *err)
{
    fill_job fill = {.arcs = arcs, .type = type, .matrix = matrix};
    return lw_pool_for(pool, (arcs->n + LW_ROW_GROUP - 1) / LW_ROW_GROUP, fill_rows, &fill, err);
}
