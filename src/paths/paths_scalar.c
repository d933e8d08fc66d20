/* paths_scalar.c - the reference: Floyd-Warshall as in the textbook (Floyd, CACM 5:345, 1962), one pivot at a
 * time, one thread. Kept this simple for ever, since it judges all other rows. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fail.h"
#include "paths/paths_backend.h"

/* Pivots between two looks at progress, stop and checkpoint. */
enum { LW_SCALAR_BLOCK = 64 };

/* Relaxations a second on one core of a 2.5 GHz machine, for the estimate only. */
static const double scalar_rate = 1e9;

#define LW_RELAX(name, T)                                                                                    \
    static void name(T *d, int64_t n, int64_t ld, int64_t k)                                                 \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                      \
            for (int64_t j = 0; j < n; j++)                                                                  \
                if (d[i * ld + k] + d[k * ld + j] < d[i * ld + j])                                           \
                    d[i * ld + j] = d[i * ld + k] + d[k * ld + j];                                           \
    }
LW_RELAX(relax_s32, int32_t)
LW_RELAX(relax_s64, int64_t)
LW_RELAX(relax_f32, float)
LW_RELAX(relax_f64, double)

#define LW_NEXT(name, T)                                                                                     \
    static void name(const lw_paths_job *job)                                                                \
    {                                                                                                        \
        const T *d = job->matrix, *w = job->edge_weight;                                                     \
        for (int64_t i = 0; i < job->n; i++)                                                                 \
            for (int64_t j = 0; j < job->n; j++) {                                                           \
                int32_t hop = i == j ? (int32_t)i : -1;                                                      \
                T goal = d[i * job->ld + j];                                                                 \
                int64_t e = job->edge_start[i], end = job->edge_start[i + 1];                                \
                for (; hop < 0 && goal <= (T)job->high && e < end; e++)                                      \
                    if (w[e] + d[job->edge_to[e] * job->ld + j] == goal)                                     \
                        hop = job->edge_to[e];                                                               \
                job->next[i * job->next_ld + j] = hop;                                                       \
            }                                                                                                \
    }
LW_NEXT(next_s32, int32_t)
LW_NEXT(next_s64, int64_t)

static lw_status scalar_supports(const lw_paths_backend *self, lw_paths_type type, lw_error *err)
{
    (void)self, (void)type, (void)err;
    return LW_OK;
}

typedef struct scalar {
    const lw_host *host;
} scalar;

static lw_status scalar_open(const lw_paths_backend *self, void **context, const lw_paths_setup *setup,
                             lw_error *err)
{
    (void)self;
    scalar *s = malloc(sizeof *s);
    if (!s)
        return lw_fail_memory(err, sizeof *s);
    s->host = setup->host;
    *context = s;
    return LW_OK;
}

static lw_status scalar_estimate(void *context, const lw_paths_job *job, lw_paths_estimate *out,
                                 lw_error *err)
{
    (void)context, (void)err;
    double n = (double)job->n;
    *out = (lw_paths_estimate){.seconds = n * n * (n - (double)job->k_begin) / scalar_rate};
    return LW_OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lw_status scalar_solve(void *context, const lw_paths_job *job, lw_paths_report *report, lw_error *err)
{
    const scalar *s = context;
    int64_t n = job->n, ld = job->ld;
    double start = now();
    for (int64_t k = job->k_begin; k < n; k++) {
        switch (job->type) {
        case LW_PATHS_S32:
            relax_s32(job->matrix, n, ld, k);
            break;
        case LW_PATHS_S64:
            relax_s64(job->matrix, n, ld, k);
            break;
        case LW_PATHS_F32:
            relax_f32(job->matrix, n, ld, k);
            break;
        case LW_PATHS_F64:
            relax_f64(job->matrix, n, ld, k);
            break;
        }
        report->relaxations += (double)n * (double)n;
        int64_t done = k + 1;
        if (done % LW_SCALAR_BLOCK != 0 && done != n)
            continue;
        if (s->host && s->host->progress)
            s->host->progress(s->host->user, (double)done, (double)n, report->relaxations);
        if (job->checkpoint_want && job->checkpoint_want(job->checkpoint_user, done))
            LW_TRY(job->checkpoint_save(job->checkpoint_user, done, err));
        if (lw_stopped(s->host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    }
    double solved = now();
    if (job->next && job->type == LW_PATHS_S32)
        next_s32(job);
    else if (job->next)
        next_s64(job);
    report->kernel_seconds += now() - start;
    report->next_seconds += now() - solved;
    strcpy(report->how, "one pivot at a time");
    return LW_OK;
}

const lw_paths_backend lw_paths_scalar = {
    .base = {.name = "scalar",
             .what = "the reference: one thread, no SIMD, as in the textbook",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_scalar},
    .supports = scalar_supports,
    .open = scalar_open,
    .estimate = scalar_estimate,
    .solve = scalar_solve,
    .close = free,
};
