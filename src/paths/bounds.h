/* bounds.h - what can be proved about the distances of a graph before they are computed. */
#ifndef LW_BOUNDS_H
#define LW_BOUNDS_H

#include "paths/graph.h"

/* Looks for a negative cycle with Bellman and Ford's method from a virtual vertex that has an arc of weight 0
 * to all others (so the whole graph is searched), stopping as soon as the predecessors close one. O(n m) at
 * worst; a few passes over the edges on most graphs. Without a negative cycle the virtual distances are what
 * it leaves: h(v) = min over i of d(i,v) <= 0, so that w(u,v) + h(u) - h(v) >= 0 for every edge (but for
 * rounding). Whole weights: *least is their least, the least distance of all pairs. Weights with fractions:
 * potential[0 .. n) takes them. LW_E_INPUT: a cycle, shown by names with its sum. LW_E_NOMEM,
 * LW_E_INTERRUPTED. */
lw_status lw_find_negative_cycle(const lw_graph *graph, int64_t *least, double *potential,
                                 const lw_host *host, lw_error *err);

/* Largest finite distance at most, of a whole-weighted graph: a simple path leaves every vertex at most once,
 * so the sum over vertices of the heaviest arc out (at least 0) is a bound. INT64_MAX where it is not below
 * that. */
int64_t lw_bound_by_sum(const lw_graph *graph);

/* A tighter bound for non-negative whole weights: in a strongly connected component d(i,j) <= d(i,r) + d(r,j)
 * for any r, so two searches (Dijkstra, Numer. Math. 1:269, 1959) from one vertex bound it. Works when every
 * weakly connected component is strongly connected (undirected graphs); else *bound stays as it was. The
 * caller has checked that lw_bound_by_sum() is below 2^62. LW_E_NOMEM. */
lw_status lw_bound_by_search(const lw_graph *graph, int64_t *bound, const lw_host *host, lw_error *err);

/* Weakly connected components: component[v] in 0 .. *count - 1, numbered by their smallest vertex.
 * LW_E_NOMEM. */
lw_status lw_find_components(const lw_graph *graph, int32_t *component, int64_t *count, lw_error *err);

#endif
