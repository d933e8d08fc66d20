/* search_top.h - the best hits of a query, kept while they come. */
#ifndef LW_SEARCH_TOP_H
#define LW_SEARCH_TOP_H

#include <stdint.h>
#include "align/search_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts hits by score, highest first, then by place in the user's file; returns how many of the n are among
 * the first top_n, and leaves those in front, sorted. */
int32_t lw_top_sort(lw_search_hit *hits, int64_t n, int32_t top_n, const int32_t *order);

/* A list that holds the best top_n of all that were added, and some more for a while. Zero-initialise but for
 * min_score; free with free(hits). */
typedef struct lw_top {
    lw_search_hit *hits;
    int64_t n, capacity;
    int32_t min_score; /* lower scores cannot be among the best: grows when the list is cut */
} lw_top;

/* LW_E_NOMEM. A hit below top->min_score is dropped. */
lw_status lw_top_add(lw_top *top, lw_search_hit hit, int32_t top_n, const int32_t *order, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
