/* paths_graphs.h - the graphs that the bench of shortest paths runs on, and the proof that a result is right.
 *
 * Every weight is positive, and sums are exact in every type (fractions are eighths). Distances then have a
 * certificate that is much cheaper than computing them: d(i,i) = 0 and, for i != j, Bellman's equation
 * d(i,j) = min over edges (i,v) of w(i,v) + d(v,j). Any solution is the distances: following the edge that
 * attains the minimum lowers d each time, so it ends at j and d is the length of a real path; and d can be no
 * longer than the shortest path, by induction along it. The check looks at all n * n entries in n * edges
 * steps, and at every next hop by the rule of its definition. */
#ifndef LW_BENCH_PATHS_GRAPHS_H
#define LW_BENCH_PATHS_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/pool.h"
#include "lanewise/paths.h"

/* What is computed. */
typedef struct paths_kind {
    const char *name;
    lw_paths_type type;
    int most;      /* weights are 1 .. most, in floating types eighths of that */
    int64_t high;  /* told to the backend as the bound of distances; unused in floating types */
    bool next;     /* with next hops, on weights w * (n + 1) + 1 */
    int64_t least; /* smallest n for which it is meant */
    bool halves;   /* rows that do not run it in 16 bits are left out */
} paths_kind;

typedef struct paths_graph {
    const paths_kind *kind;
    int64_t n;
    int64_t *start; /* n + 1; edges ascend within a vertex */
    int32_t *to;
    void *weight;  /* of the kind's type */
    void *matrix;  /* n * n; borrowed if `lent` */
    int32_t *next; /* n * n, or NULL */
    bool lent;
} paths_graph;

/* A ring, so that everything is reached, and `degree` - 1 random edges per vertex. LW_E_NOMEM. */
lw_status paths_graph_random(paths_graph *out, const paths_kind *kind, int64_t n, int degree, lw_error *err);

/* An undirected graph like a network of human protein interactions: `edges` pairs at most, drawn so that
 * degrees fall off as a power of -2.4; weights 1 .. 850, as 1000 - score of STRING's. No matrix. */
lw_status paths_graph_interactions(paths_graph *out, const paths_kind *kind, int64_t n, int64_t edges,
                                   lw_error *err);

/* Its pairs as STRING writes them: "protein1 protein2 combined_score". LW_E_IO. */
lw_status paths_graph_write(const paths_graph *graph, const char *path, lw_error *err);

void paths_graph_free(paths_graph *graph);

/* Puts the weights into the matrix. */
lw_status paths_graph_fill(const paths_graph *graph, lw_pool *pool, lw_error *err);

/* Whether the matrix holds the distances, and next the next hops. LW_E_INTERNAL with a wrong entry. */
lw_status paths_graph_verify(const paths_graph *graph, lw_pool *pool, const char *backend, lw_error *err);

/* A checksum of the matrix and of next. */
lw_status paths_graph_checksum(const paths_graph *graph, lw_pool *pool, uint64_t *sum, lw_error *err);

#endif
