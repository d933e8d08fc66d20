/* align_backend.h - the one interface between the alignment driver and its implementations.
 *
 * A backend is a row of lw_align_backends[]. Row 0 is the scalar reference, the judge of all the
 * others: every row returns the same values from the same input, to the last tie. */
#ifndef LW_ALIGN_BACKEND_H
#define LW_ALIGN_BACKEND_H

#include "lanewise/align.h"
#include "common/backend.h"
#include "common/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Co-optimal placements of one mate that pairing looks at: the first 64 by the tie rule. */
enum { LW_MAX_TIES = 64 };

/* The end cell of an alignment, in coordinates of the sequences as aligned (a reverse hit: of the
 * reverse complement of the read). Ends are exclusive: the last aligned letter is [tend - 1]. */
typedef struct lw_hit {
    int32_t score;  /* H at the end cell; meaningless when target < 0 */
    int32_t target; /* index of the reference; -1: no alignment */
    int32_t tend, qend;
    int32_t second;  /* highest H over end cells on another reference or strand, or more than one
                        read length from tend on the same one; local: 0 if there is none;
                        otherwise LW_NO_SECOND if there is none */
    uint8_t reverse; /* 1: the read's reverse complement aligns */
} lw_hit;

enum { LW_NO_SECOND = INT32_MIN };

/* How a context is opened. Everything is borrowed and outlives the context. */
typedef struct lw_align_setup {
    const lw_scoring *scoring;
    lw_mode mode;
    unsigned strands;     /* lw_strands */
    const lw_seqs *refs;  /* what place() aligns against; NULL for pairs only */
    int32_t min_score;    /* hits below are dropped (local: at least 1; otherwise INT32_MIN = keep all) */
    int32_t n_hits;       /* place(): 1 + secondary placements wanted */
    int32_t n_ties;       /* place(): co-optimal placements wanted, 0 .. LW_MAX_TIES */
    lw_pool *pool;        /* CPU threads; NULL: the calling thread alone */
    int device;           /* CUDA ordinal this context lives on */
    int64_t device_bytes; /* most device memory to take, 0: what is free */
    const lw_host *host;  /* may be NULL */
    /* where pair_ends() and pairs() leave how many cells they computed for each cell of the matrices, if
     * bands (align_band.h) spared some: pairs that a band did not prove count with both of their runs; NULL:
     * nobody asks */
    double *computed;
} lw_align_setup;

/* What place() fills; the arrays are the caller's.
 * hits[i * n_hits + k]: k-th placement of read i: k = 0 the optimum by the tie rule; k > 0 the rule
 *   repeated over end cells that lie on another reference or strand than each earlier one, or more
 *   than one read length from it; hits after the last have target -1.
 * ties[i * n_ties + k]: the first n_ties placements (strand, target, tend; each with its smallest
 *   qend) whose score equals the optimum, in tie order, ties[.. 0] = hits[.. 0]; then target -1.
 * `second` is filled for hits[.. 0] and for every tie, and is 0 in later hits. */
typedef struct lw_placements {
    lw_hit *hits;
    lw_hit *ties; /* NULL when n_ties is 0 */
} lw_placements;

/* One path to trace: from the end cell (qlen, tlen) of query[0, qlen) against
 * target[tbegin, tbegin + tlen). `score` is H there, already known. The window is wide enough to
 * hold every optimal path (lw_trace_window() below), so the path equals that of the whole matrix. */
typedef struct lw_trace_task {
    int64_t query;  /* index into queries */
    int64_t target; /* index into targets */
    int32_t qlen;
    int32_t tbegin, tlen;
    int32_t score;
    uint8_t reverse; /* query is the reverse complement of queries[query]; qlen letters of that */
} lw_trace_task;

/* A traced path. CIGAR operations are BAM's (length << 4 | op) with op M = 0, I = 1, D = 2 only, from
 * the start of the alignment to its end; clips and the split of M into = and X are the driver's. */
typedef struct lw_path {
    int32_t qstart, tstart; /* of the first aligned letter; tstart in target coordinates */
    int64_t cigar;          /* index of the first operation in lw_cigars.op */
    int32_t n_cigar;
} lw_path;

typedef struct lw_cigars { /* grows; owned by the caller, freed with free(op) */
    uint32_t *op;
    int64_t n, capacity;
} lw_cigars;

typedef struct lw_align_backend lw_align_backend;
struct lw_align_backend {
    lw_backend base; /* name, policy, usable(), rank() */
    /* Contexts of one device that may work at the same time (each used by one thread). */
    int lanes;
    /* Letters of query per place() call that keep this backend busy. */
    int64_t batch_letters;
    lw_status (*open)(const lw_align_backend *self, void **context, const lw_align_setup *setup,
                      lw_error *err);
    lw_status (*place)(void *context, const lw_seqs *reads, lw_placements *out, lw_error *err);
    /* hits[i]: best end cell of queries i against targets i over setup->strands; `second` = 0. */
    lw_status (*pair_ends)(void *context, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                           lw_error *err);
    /* targets NULL: setup->refs. Appends to cigars; paths[i] belongs to tasks[i]. */
    lw_status (*trace)(void *context, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                       const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err);
    /* pair_ends() over forward strands and the paths to those ends in one go; paths[i] belongs to hits[i] and
     * has no operations where there is no alignment. Appends to cigars. NULL: no faster than one after the
     * other. */
    lw_status (*pairs)(void *context, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                       lw_path *paths, lw_cigars *cigars, lw_error *err);
    void (*close)(void *context); /* NULL is allowed */
};

/* All rows, in order scalar, cpu, cuda-dpx, cuda-half2, cuda-int; rows that were not compiled in are
 * there too and say so in usable(). */
extern const lw_align_backend *const lw_align_backends[];
extern const int lw_align_backend_count;

/* The rows themselves, each defined beside its functions. */
extern const lw_align_backend lw_align_scalar, lw_align_cpu, lw_align_cuda_dpx, lw_align_cuda_half2,
    lw_align_cuda_int;

/* The task that traces `hit`: fills all but `query`, with the target window that holds every optimal path
 * ending there (the proof is in align.c). */
void lw_trace_window(const lw_scoring *scoring, lw_mode mode, const lw_hit *hit, lw_trace_task *task);

/* Ends and paths of pairs: backend->pairs if there is one, else its pair_ends() and trace(). */
lw_status lw_align_pairs_with(const lw_align_backend *backend, void *context, const lw_align_setup *setup,
                              const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits, lw_path *paths,
                              lw_cigars *cigars, lw_error *err);

/* The most letters that one gap may have for this price; -1: any number. */
int64_t lw_gap_letters(const lw_scoring *scoring, int64_t price);

/* Makes room for `more` operations. LW_E_NOMEM. */
lw_status lw_cigars_reserve(lw_cigars *cigars, int64_t more, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
