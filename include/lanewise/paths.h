/* paths.h - all-pairs shortest paths.
 *
 * Method: Floyd-Warshall (Floyd, CACM 5:345, 1962), blocked. Whole weights are computed as integers, exactly,
 * and every backend returns the same matrix. Weights with fractions are computed in float32 or float64: a
 * distance is then the sum of at most n - 1 weights added in some order, so it lies within (n - 1) * u * (sum
 * of the absolute weights of the path) of the true one, u = 2^-24 or 2^-53; where all sums are exact (dyadic
 * weights), so is the result.
 *
 * Conventions: d(i,i) = 0; parallel edges keep the least; zero-weight edges are edges; negative edges
 * are allowed; a negative cycle is an error that shows one. "No path" is the type's largest value in integer
 * matrices and +infinity in floating ones. Vertices are numbered from 0 here. */
#ifndef LANEWISE_PATHS_H
#define LANEWISE_PATHS_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types of a distance matrix. */
typedef enum lw_paths_type {
    LW_PATHS_S32 = 0, /* inside: finite |d| <= 2^30 - 2; results: |d| <= 2^30 - 1 */
    LW_PATHS_S64 = 1, /* inside: finite |d| <= 2^62 - 2 */
    LW_PATHS_F32 = 2,
    LW_PATHS_F64 = 3
} lw_paths_type;
enum { LW_PATHS_AUTO = -1 }; /* int32 for whole weights, else float32 */

/* --- graphs --------------------------------------------------------------------------------- */

typedef struct lw_graph lw_graph; /* immutable once made; any number of threads may read it */

typedef enum lw_graph_format {
    LW_GRAPH_AUTO,  /* by the file's suffix, else by its content */
    LW_GRAPH_GR,    /* DIMACS shortest path: "p sp N M", "a FROM TO WEIGHT", vertices from 1 */
    LW_GRAPH_MTX,   /* Matrix Market coordinate; vertices from 1 */
    LW_GRAPH_EDGES, /* a table of edges, blanks, tabs or commas; names or numbers */
    LW_GRAPH_GFA,   /* GFA 1: vertices SEGMENT+ and SEGMENT-, the two ends of a segment */
    LW_GRAPH_NPY    /* dense weights; +inf or the integer type's largest value: no edge; vertices from 0 */
} lw_graph_format;

typedef enum lw_transform {
    LW_TRANSFORM_NONE,
    LW_TRANSFORM_RECIPROCAL, /* 1 / x */
    LW_TRANSFORM_MINUSLOG,   /* -ln x */
    LW_TRANSFORM_1000_MINUS  /* 1000 - x: STRING's scores */
} lw_transform;

typedef struct lw_graph_options {
    lw_graph_format format;
    bool undirected; /* every edge counts in both directions */
    lw_transform transform;
    /* Edge lists: columns by header name or 1-based number. NULL: from 1 and to 2 (BioGRID's tables: the
     * official symbols); the weight is column 3 if there are exactly 3 columns or column 3 is a number, and 1
     * if there are 2. weight "none": every edge weighs 1, in every format. */
    const char *from, *to, *weight;
} lw_graph_options;

/* Reads `path` ("-": standard input), plain or gzip. Sets *out on LW_OK only. LW_E_INPUT with file, line and
 * text; LW_E_IO; LW_E_NOMEM; LW_E_ARG: a column that is not there. */
lw_status lw_graph_read(lw_graph **out, const char *path, const lw_graph_options *options,
                        const lw_host *host, lw_error *err);
void lw_graph_free(lw_graph *graph); /* NULL is allowed */

int64_t lw_graph_vertices(const lw_graph *graph);
int64_t lw_graph_edges(const lw_graph *graph); /* arcs after parallel edges and idle self-loops are gone */
bool lw_graph_whole(const lw_graph *graph);    /* every weight is an integer */
bool lw_graph_named(const lw_graph *graph);    /* vertices have names of their own, not only numbers */
/* The vertex's name in the file. The text is the graph's own, or in `number` where vertices are numbers. */
enum { LW_VERTEX_NUMBER = 24 };
const char *lw_graph_name(const lw_graph *graph, int64_t vertex, char number[LW_VERTEX_NUMBER]);
int64_t lw_graph_find(const lw_graph *graph, const char *name); /* -1: no such vertex */

/* --- distances ------------------------------------------------------------------------------ */

typedef struct lw_paths_options {
    const char *backend;       /* as --backend; NULL: "auto" */
    int device;                /* CUDA ordinal */
    int threads;               /* CPU threads; 0: all */
    int64_t device_bytes;      /* most device memory to take; 0: what is free */
    int dtype;                 /* of the result: lw_paths_type or LW_PATHS_AUTO */
    bool next;                 /* next hops too */
    bool components;           /* solve every connected component by itself */
    bool force;                /* go on although memory will not do */
    const char *checkpoint;    /* file to save the state in and to resume from; NULL: none */
    double checkpoint_seconds; /* between two saves */
    const lw_host *host;       /* may be NULL */
} lw_paths_options;

/* Zero-initialise; owns its arrays, freed with lw_paths_free(). */
typedef struct lw_paths {
    int64_t n;
    lw_paths_type type;
    void *distance; /* d(i,j) at i * n + j */
    int32_t *
        next; /* NULL unless asked for. The first vertex after i on a shortest route to j: among shortest
               * routes those of fewest edges, among these the smallest vertex number. i where i = j, -1
               * without a path. Weights with fractions: the routes are shortest for the weights rounded up to
               * a grid of at most 2^-40 of the largest distance (exact where that grid holds all weights) */
    char backend[32], how[192]; /* what ran */
    double kernel_seconds, relaxations;
} lw_paths;

/* LW_E_RANGE: a distance exceeds the type, naming a pair or an edge and --dtype; LW_E_INPUT: a negative
 * cycle, shown by names with its sum; LW_E_NOMEM with the numbers, before any work; LW_E_UNSUPPORTED,
 * LW_E_DEVICE, LW_E_INTERRUPTED (the checkpoint, if any, is up to date); LW_E_IO: the checkpoint. */
lw_status lw_paths_solve(lw_paths *out, const lw_graph *graph, const lw_paths_options *options,
                         lw_error *err);
void lw_paths_free(lw_paths *paths); /* the arrays; NULL is allowed */

/* Whether there is a path from i to j. */
bool lw_paths_reached(const lw_paths *paths, int64_t i, int64_t j);
/* d(i,j) as text: "inf", an integer, or the shortest decimal of 6 to 9 (float64: 15 to 17) digits that reads
 * back the same. Returns its length. */
enum { LW_DISTANCE_TEXT = 32 };
int lw_paths_text(const lw_paths *paths, int64_t i, int64_t j, char text[LW_DISTANCE_TEXT]);

/* --- outputs --------------------------------------------------------------------------------
 * All write `path` whole or not at all ("-": standard output); temporaries (common/outfile.h) may be NULL.
 * LW_E_IO; LW_E_INPUT for the lists they read. */

typedef enum lw_matrix_format {
    LW_MATRIX_NPY,   /* n x n; the names of named vertices go to PATH.names.txt (".npy" replaced), next
                      * hops to PATH.next.npy (int32, -1: no path) */
    LW_MATRIX_TSV,   /* a heading of names, then one row per vertex */
    LW_MATRIX_LONG,  /* "from to distance", one line per pair with a path, i = j left out */
    LW_MATRIX_PHYLIP /* square: n, then name and distances; "inf" where there is no path */
} lw_matrix_format;

struct lw_temporaries;

/* The name of a file that lies beside PATH: ".npy" at its end replaced by `suffix` (".names.txt",
 * ".next.npy"), or `suffix` behind another name. malloc'ed; NULL: no memory. */
char *lw_paths_beside(const char *path, const char *suffix);

/* LW_E_ARG: next hops with a format that cannot carry them or without a file name. */
lw_status lw_paths_write(const lw_paths *paths, const lw_graph *graph, lw_matrix_format format,
                         const char *path, struct lw_temporaries *temporaries, lw_error *err);

/* LW_E_INPUT where a name of a vertex cannot be written in this format: one with blanks in PHYLIP, with a tab
 * in the others of text. lw_paths_write() asks it too; before a long run it is better known. */
lw_status lw_paths_writable(const lw_graph *graph, lw_matrix_format format, lw_error *err);

/* The pairs of a file of lines "FROM TO" (blanks, tabs or commas; # comments). LW_E_INPUT: a line that is
 * none, a vertex that the graph lacks. */
typedef struct lw_paths_pairs lw_paths_pairs;
lw_status lw_paths_pairs_read(lw_paths_pairs **out, const lw_graph *graph, const char *path, lw_error *err);
void lw_paths_pairs_free(lw_paths_pairs *pairs); /* NULL is allowed */

/* "#from to distance hops route" for every pair, in their order. Needs next hops. No path: inf, -1, *. */
lw_status lw_paths_write_routes(const lw_paths *paths, const lw_graph *graph, const lw_paths_pairs *pairs,
                                const char *path, struct lw_temporaries *temporaries, lw_error *err);

/* Lines "## NAME VALUE" (vertices, pairs_reached, diameter, radius, mean_distance), then per vertex: how many
 * others it reaches, its eccentricity (largest distance among those), mean distance, closeness r / sum * r /
 * (n - 1) (Wasserman and Faust's for r of n - 1 reached) and harmonic closeness (mean of 1 / d over all
 * others). Distances run from the vertex outwards. */
lw_status lw_paths_write_stats(const lw_paths *paths, const lw_graph *graph, const char *path,
                               struct lw_temporaries *temporaries, lw_error *err);

/* The sets of a file of lines "SET VERTEX", or of GMT (NAME, description, members; suffix .gmt). Vertices
 * that the graph lacks are left out and counted in one warning per set. LW_E_INPUT: a line that is none, no
 * sets. */
typedef struct lw_paths_sets lw_paths_sets;
lw_status lw_paths_sets_read(lw_paths_sets **out, const lw_graph *graph, const char *path,
                             const lw_host *host, lw_error *err);
void lw_paths_sets_free(lw_paths_sets *sets); /* NULL is allowed */

/* For every ordered pair of two sets S, T: closest = mean over t in T of min over s in S of d(s,t), shortest
 * = mean over t and s of d(s,t) (Guney et al., Nat. Commun. 7:10331, 2016), over what is reached, with the
 * counts. */
lw_status lw_paths_write_sets(const lw_paths *paths, const lw_paths_sets *sets, const char *path,
                              struct lw_temporaries *temporaries, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
