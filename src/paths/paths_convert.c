/* paths_convert.c - inner values to results. */
#include "paths/paths_convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "paths/paths_arcs.h"

static int64_t floor_divide(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

int64_t lw_convert(const lw_conversion *c, void *out, const void *in, int64_t count)
{
    const lw_plan *p = c->plan;
    if (p->inner >= LW_PATHS_F32) { /* nothing to convert */
        if (out != in)
            memcpy(out, in, (size_t)(count * lw_paths_size(p->inner)));
        return -1;
    }
    bool backwards = lw_paths_size(c->to) > lw_paths_size(p->inner);
    if (p->inner == LW_PATHS_S32 && c->to == LW_PATHS_S32 && p->scale == 1) { /* the usual case, vectorised */
        const int32_t *from = in;
        int32_t *to = out, limit = (int32_t)c->limit;
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i] > limit ? INT32_MAX : from[i];
        return -1;
    }
    for (int64_t step = 0; step < count; step++) {
        int64_t i = backwards ? count - 1 - step : step;
        int64_t d = p->inner == LW_PATHS_S32 ? ((const int32_t *)in)[i] : ((const int64_t *)in)[i];
        bool reached = d <= c->limit;
        if (p->scale > 1 && reached)
            d = floor_divide(d, p->scale);
        switch (c->to) {
        case LW_PATHS_S32:
            if (reached && (d > LW_RESULT_S32_MAX || d < -LW_RESULT_S32_MAX))
                return i;
            ((int32_t *)out)[i] = reached ? (int32_t)d : INT32_MAX;
            break;
        case LW_PATHS_S64:
            ((int64_t *)out)[i] = reached ? d : INT64_MAX;
            break;
        case LW_PATHS_F32:
            ((float *)out)[i] = reached ? (float)d : INFINITY;
            break;
        case LW_PATHS_F64:
            ((double *)out)[i] = reached ? (double)d : INFINITY;
            break;
        }
    }
    return -1;
}

typedef struct convert_job {
    const lw_conversion *c;
    char *matrix;
    int64_t n;
} convert_job;

/* Rows of one matrix in place, types of one size. A value out of range is left to the caller, who looks
 * again. */
static lw_status convert_rows(void *arg, int64_t group, int worker, lw_error *err)
{
    (void)worker;
    const convert_job *j = arg;
    int64_t first = group * LW_ROW_GROUP, rows = j->n - first < LW_ROW_GROUP ? j->n - first : LW_ROW_GROUP;
    char *at = j->matrix + first * j->n * lw_paths_size(j->c->to);
    int64_t bad = lw_convert(j->c, at, at, rows * j->n);
    if (bad >= 0)
        return lw_fail(err, LW_E_RANGE, "%lld", (long long)(first * j->n + bad));
    return LW_OK;
}

lw_status lw_convert_refuse(const lw_graph *g, int64_t i, int64_t j, int64_t d, lw_error *err)
{
    char a[LW_VERTEX_NUMBER], b[LW_VERTEX_NUMBER];
    return lw_fail(
        err, LW_E_RANGE, "the distance from %s to %s is %lld, beyond int32's +-%lld; use --dtype int64",
        lw_graph_name(g, i, a), lw_graph_name(g, j, b), (long long)d, (long long)LW_RESULT_S32_MAX);
}

int64_t lw_convert_one(const lw_plan *p, const void *matrix, int64_t i)
{
    int64_t d = p->inner == LW_PATHS_S32 ? ((const int32_t *)matrix)[i] : ((const int64_t *)matrix)[i];
    return p->scale > 1 ? floor_divide(d, p->scale) : d;
}

lw_status lw_convert_matrix(const lw_conversion *c, void *matrix, const lw_graph *g, lw_pool *pool,
                            lw_error *err)
{
    int64_t n = g->n, bad = -1;
    if (lw_paths_size(c->to) == lw_paths_size(c->plan->inner)) {
        convert_job j = {.c = c, .matrix = matrix, .n = n};
        lw_error where = {0};
        lw_status status = lw_pool_for(pool, (n + LW_ROW_GROUP - 1) / LW_ROW_GROUP, convert_rows, &j, &where);
        if (status == LW_E_RANGE)
            bad = strtoll(where.message, NULL, 10);
        else if (status != LW_OK)
            return lw_fail(err, status, "%s", where.message);
    } else {
        bad = lw_convert(c, matrix, matrix, n * n);
    }
    if (bad >= 0)
        return lw_convert_refuse(g, bad / n, bad % n, lw_convert_one(c->plan, matrix, bad), err);
    return LW_OK;
}
