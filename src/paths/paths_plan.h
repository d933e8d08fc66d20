/* paths_plan.h - how the numbers of a job are run: the type inside, what is proved about the distances, and
 * from where on an inner value means "no path". */
#ifndef LW_PATHS_PLAN_H
#define LW_PATHS_PLAN_H

#include "paths/graph.h"
#include "paths/paths_backend.h"

/* Results in int32 lie within +-(2^30 - 1). */
#define LW_RESULT_S32_MAX INT64_C(1073741823)

typedef struct lw_plan {
    lw_paths_type inner;
    bool whole; /* weights are integers */
    bool negative;
    int64_t low, high; /* of distances before scaling, whole weights only */
    int64_t max_weight;
    bool proved;   /* high holds; else look at the result (half rule) */
    int64_t scale; /* w -> w * scale + 1 for next hops; 1: w -> w */
    int grid;      /* weights with fractions, next hops: w -> ceil(w * 2^grid) first */
} lw_plan;

const char *lw_paths_type_name(lw_paths_type type); /* "int32" */
int64_t lw_plan_infinity(lw_paths_type type);       /* of the integer types */

/* What the graph tells by itself: whole, negative, max_weight. */
void lw_plan_facts(const lw_graph *graph, lw_plan *plan);
/* The result type for --dtype, refused where it cannot hold the weights: LW_E_RANGE. */
lw_status lw_plan_result(const lw_graph *graph, int dtype, lw_paths_type *out, lw_error *err);
/* The inner type for whole weights, given the facts, low, high and scale. LW_E_RANGE: 62 bits do not do. */
lw_status lw_plan_inner(lw_plan *plan, const lw_graph *graph, const lw_host *host, lw_error *err);
/* Whether scaled distances within [low, high] fit `type` (the rule of paths_backend.h). hops: most edges of a
 * shortest path, counted only with scale. */
bool lw_plan_fits(const lw_plan *plan, int64_t high, lw_paths_type type, int64_t hops);
/* The failure where they do not fit 62 bits. */
lw_status lw_plan_refuse(const lw_plan *plan, lw_error *err);
/* Inner values above it mean "no path". Where high is proved, infinity may have sunk, but not to there; where
 * it is not, no weight is negative and infinity stayed what it was. */
int64_t lw_plan_limit(const lw_plan *plan);

#endif
