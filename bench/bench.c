/* bench.c - the table of domains and the timing that they share. */
#include "bench.h"

#include <stdlib.h>
#include <time.h>

#include "common/fail.h"

const bench_domain bench_domains[] = {
    {"align", "reads against a reference, and paths", bench_align},
    {"apsp", "all-pairs shortest paths of random graphs", bench_paths},
    {"search", "queries against a protein database", bench_search},
};
const int bench_domain_count = (int)(sizeof bench_domains / sizeof *bench_domains);

double bench_now(bool of_thread)
{
    struct timespec t;
    clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

lw_status bench_add(bench *b, const bench_result *about, double *rates, int n, lw_error *err)
{
    if (b->n == b->capacity) {
        int capacity = 2 * b->capacity + 16;
        bench_result *grown = realloc(b->results, (size_t)capacity * sizeof *grown);
        if (!grown)
            return lw_fail_memory(err, (size_t)capacity * sizeof *grown);
        b->results = grown;
        b->capacity = capacity;
    }
    qsort(rates, (size_t)n, sizeof *rates, compare);
    bench_result *r = &b->results[b->n++];
    *r = *about;
    r->repeats = n;
    r->minimum = rates[0];
    r->median = rates[n / 2];
    r->maximum = rates[n - 1];
    lw_say(b->host, LW_SAY_INFO, "%s, %s, %s: %.5g %s", r->name, r->backend, r->shape, r->median, r->unit);
    return LW_OK;
}

lw_status bench_measure(bench *b, const bench_result *about, double amount,
                        lw_status (*work)(void *arg, lw_error *err), void *arg, lw_error *err)
{
    double *rate = malloc((size_t)b->repeats * sizeof *rate);
    if (!rate)
        return lw_fail_memory(err, (size_t)b->repeats * sizeof *rate);
    lw_status status = work(arg, err);
    for (int k = 0; k < b->repeats && status == LW_OK; k++) {
        double start = bench_now(about->one_thread);
        status = work(arg, err);
        rate[k] = amount / (bench_now(about->one_thread) - start);
        if (lw_stopped(b->host) && status == LW_OK)
            status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    }
    if (status == LW_OK)
        status = bench_add(b, about, rate, b->repeats, err);
    free(rate);
    return status;
}
