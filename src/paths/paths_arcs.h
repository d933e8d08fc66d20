/* paths_arcs.h - the graph as kernels see it, and the matrix of its weights. */
#ifndef LW_PATHS_ARCS_H
#define LW_PATHS_ARCS_H

#include "common/pool.h"
#include "paths/paths_plan.h"

/* Weights ready to be summed: scaled for routes, those too heavy for any shortest path left out. Rows as in
 * lw_graph. */
typedef struct lw_arcs {
    int64_t n;
    int64_t *start;
    int32_t *to;
    void *weight; /* of the inner type */
} lw_arcs;

/* The arcs among `members` (ascending; NULL: all n), with local[] giving each vertex's number there.
 * potential: w(u,v) + h(u) - h(v) is run in the place of w(u,v); may be NULL. LW_E_NOMEM. */
lw_status lw_arcs_make(lw_arcs *out, const lw_graph *graph, const lw_plan *plan, const double *potential,
                       const int32_t *members, int64_t n, const int32_t *local, lw_error *err);
void lw_arcs_free(lw_arcs *arcs);

/* Rows are worked on in groups, so that a task is worth its dispatch. */
enum { LW_ROW_GROUP = 16 };

/* Puts them into a matrix of n * n. */
lw_status lw_arcs_fill(const lw_arcs *arcs, lw_paths_type type, void *matrix, lw_pool *pool, lw_error *err);

#endif
