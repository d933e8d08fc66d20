/* paths_plan.c - what can be proved about the numbers, and the types that follow. */
#include "paths/paths_plan.h"

#include <float.h>
#include <math.h>

#include "common/fail.h"
#include "paths/bounds.h"

__extension__ typedef __int128 wide; /* for sums of products of 62-bit numbers */

const char *lw_paths_type_name(lw_paths_type type)
{
    static const char *const names[] = {"int32", "int64", "float32", "float64"};
    return names[type];
}

int64_t lw_plan_infinity(lw_paths_type type)
{
    return type == LW_PATHS_S32 ? LW_PATHS_INF_S32 : LW_PATHS_INF_S64;
}

void lw_plan_facts(const lw_graph *g, lw_plan *p)
{
    p->whole = g->whole != NULL;
    p->negative = g->negative;
    for (int64_t e = 0; g->whole && e < g->start[g->n]; e++)
        p->max_weight = g->whole[e] > p->max_weight ? g->whole[e] : p->max_weight;
}

bool lw_plan_fits(const lw_plan *p, int64_t high, lw_paths_type type, int64_t hops)
{
    wide infinity = lw_plan_infinity(type), top = (wide)high * p->scale + hops;
    wide bottom = (wide)p->low * p->scale;
    return top - 2 * bottom < infinity;
}

int64_t lw_plan_limit(const lw_plan *p)
{
    return p->proved ? p->high * p->scale + p->scale - 1 : lw_plan_infinity(p->inner) - 1;
}

lw_status lw_plan_refuse(const lw_plan *p, lw_error *err)
{
    if (p->scale > 1)
        return lw_fail(err, LW_E_RANGE,
                       "next hops need distance * %lld + edges, and distances from %.3g to %.3g make that "
                       "exceed 62 bits; "
                       "divide the weights by a common factor",
                       (long long)p->scale, (double)p->low, (double)p->high);
    return lw_fail(err, LW_E_RANGE,
                   "distances from %.3g to %.3g may exceed 62 bits; divide the weights by a common factor",
                   (double)p->low, (double)p->high);
}

lw_status lw_plan_inner(lw_plan *p, const lw_graph *g, const lw_host *host, lw_error *err)
{
    int64_t hops = p->scale > 1 ? g->n : 0;
    p->proved = true;
    if (lw_plan_fits(p, p->high, LW_PATHS_S32, hops)) {
        p->inner = LW_PATHS_S32;
        return LW_OK;
    }
    if (p->high < LW_PATHS_INF_S64 && !p->negative && g->n > 0) {
        LW_TRY(lw_bound_by_search(g, &p->high, host, err));
        if (lw_plan_fits(p, p->high, LW_PATHS_S32, hops)) {
            p->inner = LW_PATHS_S32;
            return LW_OK;
        }
    }
    /* run and look: a shortest path of I or more has a prefix in the upper half of 0 .. I - 1 if its steps
     * fit into that half, and prefixes are entries of the matrix */
    wide step = (wide)p->max_weight * p->scale + 1;
    if (!p->negative && step <= LW_PATHS_INF_S32 / 2) {
        p->inner = LW_PATHS_S32;
        p->proved = false;
        return LW_OK;
    }
    p->inner = LW_PATHS_S64;
    if (lw_plan_fits(p, p->high, LW_PATHS_S64, hops))
        return LW_OK;
    return lw_plan_refuse(p, err);
}

lw_status lw_plan_result(const lw_graph *g, int dtype, lw_paths_type *out, lw_error *err)
{
    bool whole = g->whole != NULL;
    *out = dtype != LW_PATHS_AUTO ? (lw_paths_type)dtype : whole ? LW_PATHS_S32 : LW_PATHS_F32;
    char a[LW_VERTEX_NUMBER], b[LW_VERTEX_NUMBER];
    for (int64_t u = 0; !whole && *out != LW_PATHS_F64 && u < g->n; u++)
        for (int64_t e = g->start[u]; e < g->start[u + 1]; e++) {
            double w = g->real[e];
            if ((*out == LW_PATHS_S32 || *out == LW_PATHS_S64) && w != floor(w))
                return lw_fail(
                    err, LW_E_RANGE,
                    "edge %s -> %s weighs %.9g, which is no whole number; use --dtype float32 or float64",
                    lw_graph_name(g, u, a), lw_graph_name(g, g->to[e], b), w);
            if (*out == LW_PATHS_F32 && (fabs(w) > FLT_MAX || (w != 0 && fabs(w) < FLT_MIN)))
                return lw_fail(err, LW_E_RANGE, "edge %s -> %s weighs %.9g, %s float32; use --dtype float64",
                               lw_graph_name(g, u, a), lw_graph_name(g, g->to[e], b), w,
                               fabs(w) > 1 ? "beyond" : "too little for");
        }
    if (!whole && *out <= LW_PATHS_S64) /* whole, but beyond 2^53 */
        return lw_fail(err, LW_E_RANGE, "weights beyond 2^53 cannot be summed exactly; use --dtype float64");
    return LW_OK;
}
