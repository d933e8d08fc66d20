/* search_cpu.h - the parts of the CPU search: what a context, a worker and a call hold, and who does what.
 *
 * Private to search_cpu.c (opening, passes), search_cpu_layout.c (subjects into lanes), search_cpu_score.c
 * (kernels over them) and search_cpu_lists.c (what becomes of the scores). */
#ifndef LW_SEARCH_CPU_H
#define LW_SEARCH_CPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "align/search_backend.h"
#include "align/search_cpu_kernels.h"
#include "align/search_top.h"

enum { LW_SCAN_8, LW_SCAN_16, LW_SCAN_32, LW_SCAN_WIDTHS };

typedef struct lw_scan {
    lw_search_setup setup;
    const lw_search_kernels *kernels;
    int narrowest;     /* first width that the matrix and the penalties fit */
    int32_t low, high; /* lowest and highest matrix entry, and 0 */
    int8_t table[LW_MAX_LETTERS][3][LW_MAX_LETTERS];
    lw_search_screen screen;
    int8_t screen_table[LW_MAX_LETTERS][3][LW_MAX_LETTERS]; /* with what the diagonal earns there */
    int32_t *chunk; /* first subject of each chunk; one more at the end */
    int64_t n_chunks;
} lw_scan;

/* Memory that a worker keeps between its tasks. */
typedef struct lw_scan_worker {
    int64_t chunk; /* whose plan is laid out; -1: none */
    lw_search_plan plan;
    int64_t letters_capacity, events_capacity, subjects_capacity, columns_capacity, scores_capacity;
    int32_t *subjects; /* of the plan */
    uint8_t *columns;
    int32_t *scores;
    _Alignas(LW_SEARCH_VEC_MAX) uint8_t profile[LW_MAX_LETTERS * LW_SEARCH_MAX_COLUMNS * LW_SEARCH_VEC_MAX];
} lw_scan_worker;

/* Consecutive queries that are scored together. */
typedef struct lw_scan_pack {
    int32_t first, n; /* within `queries` of the call */
    int32_t letters;
} lw_scan_pack;

typedef struct lw_scan_list {
    lw_search_hit *entry; /* score: the most that it can be */
    int64_t n, capacity;
} lw_scan_list;

/* Part of a list: a task of the later passes. */
typedef struct lw_scan_piece {
    int32_t query;
    int64_t from, to;
} lw_scan_piece;

/* Which subjects of a query are worth an exact score. */
typedef struct lw_scan_screening {
    bool on;
    int64_t seen, overflows; /* subjects screened, and how many of them had no bound */
    int64_t wait;            /* so many candidates call for a round of exact scores, which raise the bar */
    lw_scan_list candidates;
} lw_scan_screening;

typedef enum { LW_SCAN_EXACT, LW_SCAN_SCREEN, LW_SCAN_FILTER } lw_scan_form; /* of a task's kernel */

typedef struct lw_scan_call {
    const lw_scan *cpu;
    const lw_search_request *request;
    int width; /* of this pass */
    bool filtering;
    lw_scan_worker *workers;
    int32_t *query; /* those that are not empty, longest first */
    int64_t n_queries;
    lw_scan_pack *packs;
    int64_t n_packs;
    lw_top *tops; /* by query of the request, as everything below */
    lw_scan_screening *screens;
    lw_scan_list *lists, *later; /* subjects of this pass and of the next */
    lw_scan_piece *pieces;
    int64_t n_pieces;
    pthread_mutex_t lock; /* guards tops, screens, later and what follows */
    int64_t filtered, rescued;
} lw_scan_call;

/* --- search_cpu_score.c --------------------------------------------------------------------------- */

/* The lane value of score 0 and where overflow begins (search_cpu_lanes.h has the reasons). */
void lw_scan_set_range(const lw_scan *c, int width, bool gapless, int32_t *zero, int32_t *limit);
/* Runs a kernel over the plan of the worker, which is laid out for this width, into its scores.
 * LW_E_NOMEM. */
lw_status lw_scan_score(lw_scan_call *call, lw_scan_worker *w, lw_scan_form kind, int width,
                        const int32_t *queries, int32_t n_queries, int64_t n_subjects, lw_error *err);
/* Scores n subjects in lanes of this width and files the scores. `score` is the most that it can be, and the
 * order changes. LW_E_NOMEM. */
lw_status lw_scan_score_subjects(lw_scan_call *call, lw_scan_worker *w, int width, int32_t query,
                                 lw_search_hit *subjects, int64_t n, lw_error *err);

/* --- search_cpu_layout.c -------------------------------------------------------------------------- */

/* Grows *array, a worker's, aligned for vectors; what it held is lost. LW_E_NOMEM. */
lw_status lw_scan_reserve(void *array, int64_t *capacity, int64_t wanted, size_t each, lw_error *err);
/* Lays n subjects out over the lanes: each goes to the lane that is free first. LW_E_NOMEM. */
lw_status lw_scan_lay_out(const lw_scan *c, lw_scan_worker *w, int width, const int32_t *subjects, int64_t n,
                          lw_error *err);

/* --- search_cpu_lists.c --------------------------------------------------------------------------- */

/* A subject whose score is at most `at_most`. LW_E_NOMEM. */
lw_status lw_scan_put_on_list(lw_scan_list *l, int32_t subject, int32_t at_most, lw_error *err);
/* Drops what cannot reach the bar any more. */
void lw_scan_drop_short(lw_scan_list *l, int32_t bar);
/* For qsort() of hits, in the order of the database, longest first. */
int lw_scan_by_subject(const void *a, const void *b);
/* Files the scores of n subjects against the queries of a task. Takes the lock. LW_E_NOMEM. */
lw_status lw_scan_file_scores(lw_scan_call *call, lw_scan_form kind, const int32_t *queries,
                              int32_t n_queries, const int32_t *subjects, int64_t n, int32_t *scores,
                              lw_error *err);
/* Raises the bar to what the best have so far; the caller holds the lock or is alone. */
void lw_scan_raise_bar(lw_scan_call *call, int32_t query);
/* The best candidates leave the list for `to`, at most n; the caller holds the lock or is alone.
 * LW_E_NOMEM. */
lw_status lw_scan_take_best(lw_scan_call *call, int32_t query, int64_t n, lw_scan_list *to, lw_error *err);
/* So many candidates are scored at a time: enough to raise the bar, and a vector full. */
int64_t lw_scan_n_promising(const lw_scan_call *call);
/* Exact scores for the most promising candidates of a query, when many have come since the last time, and
 * before screening is given up: as long as that raises the bar and many stay. LW_E_NOMEM. */
lw_status lw_scan_score_promising(lw_scan_call *call, lw_scan_worker *w, int32_t query, lw_error *err);
/* Exact scores for what is too high to have bounds, in wider lanes, if those will hold it: that raises the
 * bar most. LW_E_NOMEM. */
lw_status lw_scan_score_overflows(lw_scan_call *call, lw_scan_worker *w, int32_t query, lw_error *err);

#endif
