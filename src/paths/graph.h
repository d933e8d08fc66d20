/* graph.h - a weighted directed graph in compressed rows, and how readers make one. */
#ifndef LW_GRAPH_H
#define LW_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/paths.h"

/* Whole weights lie within +-2^53, where text, float64 and int64 agree on every number; what sums of them fit
 * is the 2^9 of them fits the s64 kernels whatever n, and larger sums are checked by the driver's bound. */
#define LW_WEIGHT_MAX INT64_C(9007199254740992)

/* Names of vertices: texts in one block and a hash table of their numbers. */
typedef struct lw_names {
    char *text;
    size_t used, capacity;
    size_t *offset; /* of vertex v's text */
    int64_t n, offset_capacity;
    int32_t *slot;  /* open addressing, -1 free */
    size_t n_slots; /* a power of two */
} lw_names;

struct lw_graph {
    int64_t n;      /* vertices */
    int64_t *start; /* n + 1 */
    int32_t *to;    /* ascending within a row; no parallel edges, self-loops only if negative */
    int64_t *whole; /* weights, if every one is an integer; else NULL */
    double *real;   /* else */
    bool negative;  /* some weight is < 0 */
    lw_names names; /* names.n is 0 where vertices are numbers */
    int64_t base;   /* number of vertex 0 in the file, where vertices are numbers */
};

/* Edges as a reader meets them, in any order. Weights are int64_t until the first fraction. */
typedef struct lw_edges {
    int64_t n, capacity;
    int32_t *from, *to;
    union {
        int64_t *whole;
        double *real;
    } weight;
    bool is_real;
} lw_edges;

/* One weight. */
typedef struct lw_weight {
    bool is_whole;
    int64_t whole; /* if is_whole */
    double real;   /* always */
} lw_weight;

/* A finite decimal number, the whole text. Returns NULL, or what is wrong ("not a number", ...). */
const char *lw_weight_parse(const char *text, lw_weight *out);
/* NULL, or what is wrong. */
const char *lw_weight_transform(lw_weight *weight, lw_transform transform);
/* LW_E_ARG for a transform of weights that the file does not have. */
lw_status lw_graph_no_weights(const char *name, lw_error *err);
lw_weight lw_weight_real(double value); /* whole where it can be */
lw_weight lw_weight_whole(int64_t value);

lw_status lw_edges_add(lw_edges *edges, int64_t from, int64_t to, lw_weight weight, lw_error *err);
void lw_edges_free(lw_edges *edges);

/* The number of `text` (length bytes), a new one if it is new. LW_E_NOMEM; LW_E_RANGE: 2^31 - 1 vertices. */
lw_status lw_names_intern(lw_names *names, const char *text, size_t length, int32_t *vertex, lw_error *err);
int32_t lw_names_find(const lw_names *names, const char *text, size_t length); /* -1: none */
const char *lw_names_text(const lw_names *names, int64_t vertex);
void lw_names_free(lw_names *names);

/* Makes a graph of n vertices out of the edges; takes the names (may be NULL) and frees the edges, also on
 * failure. sorted: names are put in order first: ascending if all are whole numbers, else by bytes. */
lw_status lw_graph_build(lw_graph **out, int64_t n, lw_edges *edges, lw_names *names, bool sorted,
                         bool undirected, int64_t base, lw_error *err);

/* The weight of edge number e. */
static inline double lw_graph_weight(const lw_graph *g, int64_t e)
{
    return g->whole ? (double)g->whole[e] : g->real[e];
}

/* The readers: graph_text.c, graph_gfa.c, graph_edges.c, graph_dense.c. */
struct lw_lines;
lw_status lw_graph_read_gr(lw_graph **out, struct lw_lines *lines, const lw_graph_options *options,
                           lw_error *err);
lw_status lw_graph_read_mtx(lw_graph **out, struct lw_lines *lines, const lw_graph_options *options,
                            lw_error *err);
lw_status lw_graph_read_gfa(lw_graph **out, struct lw_lines *lines, const lw_graph_options *options,
                            const lw_host *host, lw_error *err);
lw_status lw_graph_read_edges(lw_graph **out, struct lw_lines *lines, const lw_graph_options *options,
                              const lw_host *host, lw_error *err);
lw_status lw_graph_read_npy(lw_graph **out, const char *path, const lw_graph_options *options, lw_error *err);

#endif
