/* paths_backend.h - the one interface between the shortest-path driver and its implementations.
 *
 * A backend is a row of lw_paths_backends[]. Row 0 is the scalar reference, the judge of all the
 * others: integer types give the same matrix on every row, floating types agree within the bound stated
 * in lanewise/paths.h (blocked loops add the edges of one path in another order). */
#ifndef LW_PATHS_BACKEND_H
#define LW_PATHS_BACKEND_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/paths.h"
#include "common/backend.h"
#include "common/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "No path" inside a matrix, and the limits that follow. In floating types it is IEEE +infinity.
 *
 * s32: infinity I = 2^30 - 1, so I + I = 2^31 - 2 still fits and min(d, a + b) needs no test. Finite values
 * are at most I - 1. Without negative weights I is never undercut: a sum that contains I is at least I, and
 * the entry it competes with is at most I. So the run is exact arithmetic in the semiring ({0 .. I}, min, +)
 * in which every sum of I or more counts as I; a true distance below I comes out exact, and only one of I or
 * more looks like "no path" - the driver excludes that by a bound or by a check after the run. With negative
 * weights of which no path sums below `low`, an entry without a path can sink to I + 2 * low: it is I plus at
 * most one prefix and one suffix (each a path inside one matrix). The driver lets such a job run in s32 only
 * if high - 2 * low < I, so every value above `high` means "no path". s64: the same with 2^62 - 1. u16
 * (inside a row only): 2^15 - 1, non-negative jobs only. */
#define LW_PATHS_INF_U16 32767
#define LW_PATHS_INF_S32 1073741823
#define LW_PATHS_INF_S64 INT64_C(4611686018427387903)

/* One matrix to solve in place. */
typedef struct lw_paths_job {
    lw_paths_type type; /* of matrix and edge_weight: s32, s64, f32, f64 */
    int64_t n;          /* vertices; 0 and 1 are legal */
    void *matrix; /* host memory, row-major: d(i,j) is element i * ld + j (64-bit product). In: the least edge
                   * weight, 0 on the diagonal, infinity where there is no edge. Out: the distances. On
                   * failure the contents are unspecified */
    int64_t ld;   /* elements, >= n; elements past n in a row are not touched */

    /* Facts that the driver has proved. There is never a negative cycle: the driver looks for one
     * (Bellman-Ford over the edges) before it allocates a matrix. A row that meets d(i,i) < 0 all the same -
     * it may look after each k-block - returns LW_E_INTERNAL. */
    bool negative;      /* some weight is negative. false: every entry and every sum is >= 0 (so f32 may be
                         * compared by its bit pattern) */
    int64_t low, high;  /* s32, s64: every finite distance lies in [low, high]; high is the infinity - 1 where
                         * nothing  better is known. Not filled for f32, f64 */
    int64_t max_weight; /* s32, s64: the largest finite entry of the matrix at the start.
                         * 16 bits are right without a further look if !negative and high < LW_PATHS_INF_U16
                         * (entries above that become infinity: no shortest path has such an edge). Otherwise
                         * a row may run in 16 bits and verify: if !negative, max_weight <= 16383 and the
                         * result holds no finite value above 16383, it is right (a longer shortest path would
                         * have a prefix in 16384 .. 32766, steps being at most 16383); else it runs again
                         * from the matrix, which must still be there */

    /* Pivots 0 .. k_begin - 1 are done already in matrix (a resumed run); 0 for a fresh one. Any value in
     * [0, n], not only multiples of a row's tile. */
    int64_t k_begin;
    /* Checkpoints; NULL: none wanted. After each k-block a row asks want(user, k), k = pivots done; if that
     * says true it makes the host matrix current and calls save(user, k, err). A failing save fails the
     * solve. The matrix at k is the same for every row and type of tiling: the distances over paths whose
     * inner vertices are < k. */
    bool (*checkpoint_want)(void *user, int64_t k);
    lw_status (*checkpoint_save)(void *user, int64_t k, lw_error *err);
    void *checkpoint_user;

    /* Next hops; NULL: none wanted. Integer types only. next[i * next_ld + j] := the smallest v with an edge
     * (i,v) and w(i,v) + d(v,j) = d(i,j), found after the solve in one pass over the edges of row i, which
     * ascend in v, so the first match wins; i itself where i = j; -1 where there is no path. Every weight is
     * such that no cycle sums to 0 (the driver runs on w * N + 1), so following hops ends. Edges in
     * compressed rows: those of vertex i are edge_start[i] .. edge_start[i + 1] - 1; no self-loops, one edge
     * per (i,v). */
    int32_t *next;
    int64_t next_ld;
    const int64_t *edge_start; /* n + 1 */
    const int32_t *edge_to;
    const void *edge_weight; /* int32_t or int64_t, by type */
} lw_paths_job;

/* What solve() tells about its run. Zeroed by the caller. */
typedef struct lw_paths_report {
    double kernel_seconds; /* computing alone: events on a device; wall time of the loops on a CPU */
    double next_seconds;   /* of that, the next hops */
    double relaxations; /* min(d, a + b) done for real, padding not counted: n * n * (n - k_begin) when in one
                           run */
    char how[96];       /* e.g. "u16 proved, in core, tile 128x128x16"; static facts for -v and bench */
} lw_paths_report;

/* How a context is opened. Everything is borrowed and outlives the context. */
typedef struct lw_paths_setup {
    lw_pool *pool;        /* CPU threads; NULL: the calling thread alone */
    int device;           /* CUDA ordinal */
    int64_t device_bytes; /* most device memory to take; 0: what is free */
    const lw_host *host;  /* progress(done = pivots done, total = n, work = relaxations so far) and stop,
                           * looked at  after each k-block; may be NULL */
} lw_paths_setup;

typedef struct lw_paths_estimate {
    double seconds;       /* rough; 0: unknown */
    int64_t host_bytes;   /* beyond matrix and next */
    int64_t device_bytes; /* 0 on CPU rows */
} lw_paths_estimate;

typedef struct lw_paths_backend lw_paths_backend;
struct lw_paths_backend {
    lw_backend base; /* name, what, policy, usable(), rank() */
    /* LW_OK, or LW_E_UNSUPPORTED with the reason: this row has no code for `type`. */
    lw_status (*supports)(const lw_paths_backend *self, lw_paths_type type, lw_error *err);
    lw_status (*open)(const lw_paths_backend *self, void **context, const lw_paths_setup *setup,
                      lw_error *err);
    /* What solve(job) will need. job->matrix and job->next may still be NULL (next: non-NULL means wanted).
     * LW_E_NOMEM with the numbers when device_bytes cannot hold the smallest working set. */
    lw_status (*estimate)(void *context, const lw_paths_job *job, lw_paths_estimate *out, lw_error *err);
    /* May be called many times on one context (the components of a graph). LW_E_INTERRUPTED, LW_E_NOMEM,
     * LW_E_DEVICE. */
    lw_status (*solve)(void *context, const lw_paths_job *job, lw_paths_report *report, lw_error *err);
    void (*close)(void *context); /* NULL is allowed */
};

/* All rows, in order scalar, cpu, cuda-dpx, cuda-half2, cuda-int; rows that were not compiled in are there
 * too and say so in usable(). */
extern const lw_paths_backend *const lw_paths_backends[];
extern const int lw_paths_backend_count;

/* The rows themselves, each defined beside its functions (cuda: paths_cuda*.{c,cu}). */
extern const lw_paths_backend lw_paths_scalar, lw_paths_cpu, lw_paths_cuda_dpx, lw_paths_cuda_half2,
    lw_paths_cuda_int;

/* usable() of cuda-half2, which no machine can use. */
lw_status lw_paths_half2_usable(const lw_backend *self, int device, lw_error *err);

/* Bytes of one element. */
static inline int64_t lw_paths_size(lw_paths_type type)
{
    return type == LW_PATHS_S64 || type == LW_PATHS_F64 ? 8 : 4;
}

#ifdef __cplusplus
}
#endif
#endif
