/* bench.h - what the domains of `lanewise bench` share. A bench verifies a backend against the scalar
 * reference (and peers against us) on the input it then times; a result that was not verified is not timed.
 */
#ifndef LW_BENCH_H
#define LW_BENCH_H

#include <stdbool.h>
#include "common/pool.h"
#include "lanewise/status.h"

typedef struct bench_result {
    char domain[16];                 /* "align" */
    char name[48];                   /* what was timed: "place", "parasail sw_striped_avx2_256_sat" */
    char backend[32];                /* row of the table, or "peer" */
    char shape[96];                  /* of the input */
    char unit[16];                   /* "GCUPS" */
    bool verified;                   /* the same answers as the reference */
    double median, minimum, maximum; /* in `unit` */
    int repeats;
    bool one_thread; /* timed by the clock of the calling thread, which a busy machine does not stretch */
} bench_result;

typedef struct bench {
    int repeats;         /* timed runs per result, after one that is not */
    bool quick;          /* small inputs: a check that everything runs */
    int64_t letters;     /* of the database of `search`; 0: by the device */
    int64_t vertices;    /* largest graph of `apsp`; 0: by the device */
    const char *backend; /* "auto": all rows that can run; else one row's name */
    int device;
    lw_pool *pool; /* all threads of this run */
    const lw_host *host;
    bench_result *results;
    int n, capacity;
} bench;

/* One domain: adds its results. A wrong answer is LW_E_INTERNAL. */
typedef struct bench_domain {
    const char *name, *what;
    lw_status (*run)(bench *b, lw_error *err);
} bench_domain;

extern const bench_domain bench_domains[];
extern const int bench_domain_count;

lw_status bench_align(bench *b, lw_error *err);
lw_status bench_cigars(bench *b, lw_error *err); /* a part of align */
lw_status bench_paths(bench *b, lw_error *err);
lw_status bench_search(bench *b, lw_error *err);

/* Seconds: of the wall clock, or that the calling thread ran. */
double bench_now(bool of_thread);

/* Adds a result of these n >= 1 rates, which are put in order. The other members are those of *about. */
lw_status bench_add(bench *b, const bench_result *about, double *rates, int n, lw_error *err);

/* Runs work(arg) once and then b->repeats times, and adds a result whose numbers are amount / seconds. The
 * other members are those of *about. */
lw_status bench_measure(bench *b, const bench_result *about, double amount,
                        lw_status (*work)(void *arg, lw_error *err), void *arg, lw_error *err);

#endif
