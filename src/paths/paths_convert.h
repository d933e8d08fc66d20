/* paths_convert.h - from the inner matrix to the result's type. */
#ifndef LW_PATHS_CONVERT_H
#define LW_PATHS_CONVERT_H

#include "common/pool.h"
#include "paths/paths_plan.h"

typedef struct lw_conversion {
    const lw_plan *plan;
    lw_paths_type to;
    int64_t limit; /* inner values above it mean "no path" */
} lw_conversion;

/* Converts count elements; in and out may be the same if the loop never writes ahead of what it reads:
 * forwards for a narrower or equal type, backwards for a wider one. Returns the index of an element that does
 * not fit, or -1. */
int64_t lw_convert(const lw_conversion *c, void *out, const void *in, int64_t count);
/* n * n elements in place, by all threads where both types have one size. */
lw_status lw_convert_matrix(const lw_conversion *c, void *matrix, const lw_graph *graph, lw_pool *pool,
                            lw_error *err);

/* An inner value as the distance that it stands for. */
int64_t lw_convert_one(const lw_plan *plan, const void *matrix, int64_t i);
/* The failure of a distance from i to j that is too large for int32. LW_E_RANGE. */
lw_status lw_convert_refuse(const lw_graph *graph, int64_t i, int64_t j, int64_t distance, lw_error *err);

#endif
