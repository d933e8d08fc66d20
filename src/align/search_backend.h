/* search_backend.h - the one interface between the database search driver and its implementations.
 *
 * A backend is a row of lw_search_backends[]. Row 0 is the scalar reference, the judge of all the
 * others: every row returns the same hits from the same input, to the last tie. */
#ifndef LW_SEARCH_BACKEND_H
#define LW_SEARCH_BACKEND_H

#include "align/database.h"
#include "common/backend.h"
#include "common/pool.h"
#include "lanewise/align.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a context is opened. Everything is borrowed and outlives the context. */
typedef struct lw_search_setup {
    /* Local mode, in the codes of the database, the whole alphabet of its type: every code of a query is
     * below n_letters, every code of a subject below database->n_codes <= n_letters <= LW_DATABASE_PAD.
     * score[query code * LW_MAX_LETTERS + subject code] may be asymmetric. */
    const lw_scoring *scoring;
    const lw_database_view *database; /* may exceed device_bytes: then each search() streams it in chunks */
    lw_pool *pool;                    /* CPU threads; NULL: the calling thread alone */
    int device;                       /* CUDA ordinal this context lives on */
    int64_t device_bytes;             /* most device memory to take, 0: what is free */
    const lw_host *host;              /* may be NULL; host->progress is the driver's, see `advance` below */
} lw_search_setup;

typedef struct lw_search_hit {
    int32_t score;   /* exact, > 0 */
    int32_t subject; /* index into the view (not the user's order: that is view->order[subject]) */
} lw_search_hit;

/* What happened, for -v and the bench. search() adds to it. */
typedef struct lw_search_counts {
    int64_t pairs;       /* query x subject pairs, all of them */
    int64_t cells;       /* sum of query length x subject length over pairs */
    int64_t filtered;    /* pairs the gapless filter dropped */
    int64_t rescued;     /* pairs scored again because a narrow type could not hold the score */
    double busy_seconds; /* time the device (CPU rows: the pool) was computing */
} lw_search_counts;

/* One search() call: every query against the whole database. The arrays have queries->n entries. */
typedef struct lw_search_request {
    const lw_seqs *queries;   /* any number, any lengths, empty ones included; the driver adds reverse
                                 complements as queries of their own. One long query or many short ones: the
                                 backend picks its form (two subjects or two queries a word) by what is here */
    const int32_t *min_score; /* per query, >= 1: hits below are dropped */
    const int32_t *filter; /* NULL: no filter. Else per query: a subject is a hit only if its best local score
                              without gaps, exact, is at least this too. <= 0: no filter for that query */
    int32_t top_n;         /* 1 .. INT32_MAX: hits kept per query; n of the view or more means all */
    /* Called after each piece of work, from any thread, one call at a time; may be NULL. */
    void (*advance)(void *user, double cells);
    void *user;
    lw_search_counts *counts; /* may be NULL */
} lw_search_request;

/* hits[q * stride + k], 0 <= k < n_hits[q]: the top_n best subjects of query q among those that pass
 * min_score and filter, best first: by score, then by view->order, smaller first. Arrays are the
 * caller's; stride >= min(top_n, n of the view). Scores never saturate: what a narrow type cannot hold is
 * scored again in a wider one before it is compared with anything. The driver has checked that every score
 * fits int32. */
typedef struct lw_search_result {
    lw_search_hit *hits;
    int64_t stride;
    int32_t *n_hits;
} lw_search_result;

typedef struct lw_search_backend lw_search_backend;
struct lw_search_backend {
    lw_backend base; /* name, policy, usable(), rank() */
    /* Query letters a search() call should bring at least, if there are as many. */
    int64_t batch_letters;
    lw_status (*open)(const lw_search_backend *self, void **context, const lw_search_setup *setup,
                      lw_error *err);
    /* One thread at a time per context. LW_E_INTERRUPTED when host->stop is set. */
    lw_status (*search)(void *context, const lw_search_request *request, const lw_search_result *out,
                        lw_error *err);
    void (*close)(void *context); /* NULL is allowed */
};

/* Scores in the letters of a matrix -> the same in the codes of a database. A letter without a code there
 * scores 0 (the driver refuses it where it occurs). */
void lw_search_scoring(lw_scoring *out, const lw_scoring *letters);

/* All rows, in order scalar, cpu, cuda-dpx, cuda-half2, cuda-int; rows that were not compiled in are
 * there too and say so in usable(). */
extern const lw_search_backend *const lw_search_backends[];
extern const int lw_search_backend_count;

/* The rows themselves, each defined beside its functions. */
extern const lw_search_backend lw_search_scalar, lw_search_cpu, lw_search_cuda_dpx, lw_search_cuda_half2,
    lw_search_cuda_int;

#ifdef __cplusplus
}
#endif
#endif
