/* bench.h - what the domains of `lanewise bench` share. A bench verifies a backend against the scalar
 * reference (and peers against us) on the input it then times; a result that was not verified is not timed.
 */
#ifndef LW_BENCH_H
#define LW_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "common/outfile.h"
#include "common/pool.h"
#include "lanewise/lanewise.h"
#include "lanewise/status.h"
#include "nvml.h"

typedef struct bench_result {
    char domain[16];                 /* "align" */
    char name[96];                   /* what was timed: "place", "parasail sw_striped_avx2_256_sat" */
    char backend[32];                /* row of the table, or "peer" */
    char shape[96];                  /* of the input */
    char unit[16];                   /* "GCUPS" */
    bool verified;                   /* the same answers as the reference */
    double median, minimum, maximum; /* in `unit` */
    int repeats;
    bool one_thread; /* timed by the clock of the calling thread, which a busy machine does not stretch */
    bool in_cache;   /* of a device, run after run: no share of the memory's bandwidth is told */
    double error;    /* greatest relative error of float results against the reference; 0: they are equal */

    /* what the frame adds to results of a GPU; 0 or empty: not known */
    nvml_reading before, after;
    double per_clock; /* work of one clock and multiprocessor, in the unit without its prefix */
    double per_watt;  /* in `unit` */
    char limit[48];   /* name of the ceiling that bounds it */
    double share;     /* part of the ceiling that was reached, 1 = all of it */
    /* the ceiling's operations for a byte of the card's memory; where a bench sets it, units of work without
     * prefix, which the frame turns into those */
    double intensity;

    /* of kernels of the laboratory */
    int registers, local_bytes; /* a thread; registers 0: not a kernel */
    char opcodes[160];          /* "VIADDMNMX 128, IMAD 8", from the machine code of this program */
} bench_result;

/* A row that did not run here. */
typedef struct bench_skipped {
    char domain[16], what[64], reason[256];
} bench_skipped;

/* What a technique's kernels showed on this machine. */
typedef struct bench_finding {
    char technique[64], sentence[512], where[160];
} bench_finding;

/* A measured ceiling of the card. */
typedef struct bench_ceiling {
    char name[48];     /* "VIADDMNMX s32", "copy" */
    double per_clock;  /* lane-operations a clock and multiprocessor; 0 for bandwidths */
    double per_second; /* lane-operations, or bytes */
} bench_ceiling;

enum { BENCH_MAX_CEILINGS = 128, BENCH_MAX_SIZES = 16 };

typedef struct bench {
    int repeats;      /* timed runs per result, after one that is not */
    bool quick;       /* small inputs: a check that everything runs */
    int64_t letters;  /* of the database of `search`; 0: by the device */
    int64_t vertices; /* largest graph of `apsp`; 0: by the device */
    int n_sizes;      /* of --sizes; 0: each domain's own */
    int64_t sizes[BENCH_MAX_SIZES];
    int64_t size;        /* the one of them that a domain is called for; 0: its own */
    const char *pairs;   /* shapes of pairs, alone; NULL: all of `align` */
    int mode;            /* of these, a lw_mode; -1: all */
    bool scores;         /* time pairs without their paths too */
    bool two_piece;      /* and with two-piece gaps */
    const char *backend; /* "auto": all rows that can run; else one row's name */
    int device;
    bool device_named; /* by --device: no such GPU is then an error, not rows that are skipped */
    lw_pool *pool;     /* all threads of this run */
    const lw_host *host;
    bench_result *results;
    int n, capacity;
    bench_skipped *skipped;
    int n_skipped, skipped_capacity;
    bench_finding *findings;
    int n_findings, findings_capacity;
    bench_ceiling ceilings[BENCH_MAX_CEILINGS];
    int n_ceilings;
    double seconds; /* of the whole run */
    int n_wrong;    /* results that are not those of the reference, and were not timed */
    nvml sensor;
    nvml_reading first; /* of the sensor, before anything ran */
    nvml_reading last;  /* when the last result was added */
    int multiprocessors;
    struct opcodes *opcodes;              /* of the laboratory's kernels, once they were read */
    char device_name[256], numerics[256]; /* of the GPU; empty without one */
} bench;

/* One domain: adds its results. A wrong answer is LW_E_INTERNAL. */
typedef struct bench_domain {
    const char *name, *what;
    lw_status (*run)(bench *b, lw_error *err);
    int (*list)(int device, lw_backend_info *out, int capacity); /* its backends; NULL: no table of them */
    const char *size; /* what the numbers of --sizes are here; NULL: it has no sizes */
    int64_t least, most;
} bench_domain;

extern const bench_domain bench_domains[];
extern const int bench_domain_count;

lw_status bench_align(bench *b, lw_error *err);
lw_status bench_cigars(bench *b, lw_error *err);                /* a part of align */
lw_status bench_pairs(bench *b, lw_error *err);                 /* a part of bench_align() */
lw_status bench_pairs_check(const char *shapes, lw_error *err); /* LW_E_ARG: not what --pairs takes */
lw_status bench_paths(bench *b, lw_error *err);
lw_status bench_infer(bench *b, lw_error *err);
lw_status bench_search(bench *b, lw_error *err);
lw_status bench_ceilings(bench *b, lw_error *err);
lw_status bench_techniques(bench *b, lw_error *err);

/* Runs the domains whose bit (1 << index in bench_domains) is set, after measuring the ceilings of the GPU.
 * The caller fills repeats ... host and frees with bench_free(). */
lw_status bench_run(bench *b, unsigned domains, lw_error *err);
void bench_free(bench *b);

/* Seconds: of the wall clock, or that the calling thread ran. */
double bench_now(bool of_thread);

/* Adds a result of these n >= 1 rates, which are put in order. The other members are those of *about; sensor
 * readings, per-clock and per-watt figures and the share of the ceiling are added for backends "cuda...". */
lw_status bench_add(bench *b, const bench_result *about, double *rates, int n, lw_error *err);

/* Runs work(arg) once and then b->repeats times, and adds a result whose numbers are amount / seconds. The
 * other members are those of *about. */
lw_status bench_measure(bench *b, const bench_result *about, double amount,
                        lw_status (*work)(void *arg, lw_error *err), void *arg, lw_error *err);

/* Whether --backend asks for this row: auto is all of them, cuda all of CUDA's. */
bool bench_wants(const bench *b, const char *backend);

/* Makes a folder for temporary files in $TMPDIR, else in /tmp. The caller empties and removes it. */
lw_status bench_folder(char *path, size_t size, lw_error *err);

/* Lists a row that cannot run here. */
lw_status bench_skip(bench *b, const char *domain, const char *what, const char *reason, lw_error *err);

lw_status bench_find(bench *b, const char *technique, const char *where, lw_error *err, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));

/* Says that a result is wrong; the run goes on to the next kernel and fails at its end. */
void bench_wrong(bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Remembers a ceiling of the card, for the shares of what is timed after it. */
void bench_ceiling_add(bench *b, const char *name, double per_clock, double per_second);
const bench_ceiling *bench_ceiling_find(const bench *b, const char *name);

/* Sets r->limit and r->share where a ceiling bounds the result (limits.c). */
void bench_limit(const bench *b, bench_result *r);

/* A unit without its prefix: 1e9 for "GCUPS"; 0 if it is no rate. */
double bench_unit_scale(const char *unit);

/* Four digits, and no exponent where one can be done without. */
void bench_number(char *text, size_t size, double x);

/* The tables (table.c), and the JSON that docs/formats.md describes. */
void bench_print(const bench *b, FILE *to);
void bench_write_json(const bench *b, FILE *to);

/* lanewise bench compare: Markdown of n JSON files to `markdown`, and with `base` BASE.md, BASE.svg and
 * BASE.html. What cannot be compared is said and left out. LW_E_INPUT: a file is no JSON of a bench. */
lw_status bench_compare(const char *const *paths, int n, const char *base, FILE *markdown,
                        lw_temporaries *temporaries, const lw_host *host, lw_error *err);

#endif
