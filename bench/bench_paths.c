/* bench_paths.c - Floyd-Warshall on random graphs of 256 vertices and more: every backend and lane type,
 * checked against the scalar row (small) or against searches from single vertices (large), then timed; the
 * exponent of time against n; scipy on one core where Python has it. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/npy.h"
#include "paths/paths_backend.h"

/* Edges per vertex of the random graphs, about that of a protein-interaction network. */
enum { DEGREE = 16 };
/* Up to here the scalar row is the judge: one second of it. */
enum { SCALAR_MOST = 1024 };
/* Vertices from which larger results are searched again. */
enum { SOURCES = 3 };

/* What is timed. `most`: the heaviest weight. In 16 bits the bound is given as proved; 1 .. 100 keeps
 * distances far below. */
typedef struct kind {
    const char *name;
    lw_paths_type type;
    int most;
    int64_t high;
    bool next;
} kind;

static const kind kinds[] = {
    {"s32", LW_PATHS_S32, 30000, LW_PATHS_INF_S32 - 1, false},
    {"u16", LW_PATHS_S32, 100, LW_PATHS_INF_U16 - 1, false},
    {"f32", LW_PATHS_F32, 30000, 0, false},
    {"s64", LW_PATHS_S64, 30000, LW_PATHS_INF_S64 - 1, false},
    {"f64", LW_PATHS_F64, 30000, 0, false},
    {"s32 next", LW_PATHS_S32, 100, LW_PATHS_INF_S32 - 1, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* A graph of one kind, its matrix for one row after the other. */
typedef struct input {
    const kind *kind;
    int64_t n;
    int64_t *start;
    int32_t *to;
    void *weight; /* of the kind's type; for next hops scaled by n + 1, plus 1 */
    void *matrix;
    int32_t *next;
} input;

static uint32_t random_below(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

static void input_free(input *in)
{
    free(in->start), free(in->to), free(in->weight), free(in->matrix), free(in->next);
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static lw_status input_make(input *in, const kind *k, int64_t n, lw_error *err)
{
    uint64_t state = 20260101;
    size_t size = (size_t)lw_paths_size(k->type), m = (size_t)n * DEGREE;
    *in = (input){.kind = k,
                  .n = n,
                  .start = malloc(((size_t)n + 1) * sizeof *in->start),
                  .to = malloc(m * sizeof *in->to),
                  .weight = malloc(m * size),
                  .matrix = malloc((size_t)(n * n) * size),
                  .next = k->next ? malloc((size_t)(n * n) * sizeof *in->next) : NULL};
    if (!in->start || !in->to || !in->weight || !in->matrix || (k->next && !in->next)) {
        input_free(in);
        return lw_fail_memory(err, (size_t)(n * n) * size);
    }
    in->start[0] = 0;
    for (int64_t i = 0, e = 0; i < n; i++) {
        int32_t row[DEGREE];
        for (int d = 0; d < DEGREE; d++)
            row[d] = (int32_t)random_below(&state, (uint32_t)n);
        row[0] = (int32_t)((i + 1) % n); /* a ring, so that everything is reached */
        qsort(row, DEGREE, sizeof *row, by_number);
        for (int d = 0; d < DEGREE; d++) {
            if (row[d] == i || (d > 0 && row[d] == row[d - 1]))
                continue;
            int64_t w = 1 + random_below(&state, (uint32_t)k->most);
            w = k->next ? w * (n + 1) + 1 : w;
            in->to[e] = row[d];
            if (k->type == LW_PATHS_S32)
                ((int32_t *)in->weight)[e] = (int32_t)w;
            else if (k->type == LW_PATHS_S64)
                ((int64_t *)in->weight)[e] = w;
            else if (k->type == LW_PATHS_F32)
                ((float *)in->weight)[e] = (float)w / 8; /* sums stay exact */
            else
                ((double *)in->weight)[e] = (double)w / 8;
            e++;
        }
        in->start[i + 1] = e;
    }
    return LW_OK;
}

static double value(lw_paths_type type, const void *array, int64_t at)
{
    return type == LW_PATHS_S32   ? ((const int32_t *)array)[at]
           : type == LW_PATHS_S64 ? (double)((const int64_t *)array)[at]
           : type == LW_PATHS_F32 ? (double)((const float *)array)[at]
                                  : ((const double *)array)[at];
}

#define FILL(T, NOTHING)                                                                                     \
    do {                                                                                                     \
        T *row = (T *)in->matrix + i * n;                                                                    \
        for (int64_t j = 0; j < n; j++)                                                                      \
            row[j] = NOTHING;                                                                                \
        for (int64_t e = in->start[i]; e < in->start[i + 1]; e++)                                            \
            row[in->to[e]] = ((const T *)in->weight)[e];                                                     \
        row[i] = 0;                                                                                          \
    } while (0)

static lw_status fill_row(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const input *in = arg;
    int64_t n = in->n;
    switch (in->kind->type) {
    case LW_PATHS_S32:
        FILL(int32_t, LW_PATHS_INF_S32);
        break;
    case LW_PATHS_S64:
        FILL(int64_t, LW_PATHS_INF_S64);
        break;
    case LW_PATHS_F32:
        FILL(float, INFINITY);
        break;
    default:
        FILL(double, INFINITY);
        break;
    }
    return LW_OK;
}

/* One solve by one row, from the weights to the distances. */
static lw_status solve(const bench *b, const lw_paths_backend *row, input *in, lw_pool *pool,
                       lw_paths_report *report, lw_error *err)
{
    LW_TRY(lw_pool_for(b->pool, in->n, fill_row, in, err));
    void *context = NULL;
    lw_paths_setup setup = {.pool = pool, .device = b->device, .host = &(lw_host){.stop = b->host->stop}};
    LW_TRY(row->open(row, &context, &setup, err));
    lw_paths_job job = {.type = in->kind->type,
                        .n = in->n,
                        .matrix = in->matrix,
                        .ld = in->n,
                        .high = in->kind->high,
                        .max_weight = in->kind->most,
                        .next = in->next,
                        .next_ld = in->n,
                        .edge_start = in->start,
                        .edge_to = in->to,
                        .edge_weight = in->weight};
    if (in->next)
        job.max_weight = job.max_weight * (in->n + 1) + 1;
    *report = (lw_paths_report){0};
    lw_status status = row->solve(context, &job, report, err);
    row->close(context);
    return status;
}

/* --- verification ----------------------------------------------------------------------------------- */

/* Distances from `source`, by passes over the edges of what improved. d: n; waiting: n, zeroed. */
static void search(const input *in, int64_t source, double *d, unsigned char *waiting)
{
    for (int64_t v = 0; v < in->n; v++)
        d[v] = INFINITY;
    d[source] = 0;
    waiting[source] = 1;
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t u = 0; u < in->n; u++) {
            if (!waiting[u])
                continue;
            waiting[u] = 0;
            for (int64_t e = in->start[u]; e < in->start[u + 1]; e++) {
                double through = d[u] + value(in->kind->type, in->weight, e);
                if (through < d[in->to[e]]) {
                    d[in->to[e]] = through;
                    waiting[in->to[e]] = 1;
                    changed = true;
                }
            }
        }
    }
}

/* Rows of some vertices against searches from them; next hops must be edges that lead on. */
static lw_status verify(const input *in, const char *backend, lw_error *err)
{
    lw_paths_type type = in->kind->type;
    double *d = malloc((size_t)in->n * sizeof *d);
    unsigned char *waiting = calloc((size_t)in->n, 1);
    int64_t wrong = 0, sources = in->n <= SCALAR_MOST ? in->n : SOURCES;
    if (!d || !waiting) {
        free(d), free(waiting);
        return lw_fail_memory(err, (size_t)in->n * sizeof *d);
    }
    for (int64_t s = 0; s < sources; s++) {
        int64_t i = in->n <= SCALAR_MOST ? s : s * (in->n - 1) / (SOURCES - 1);
        search(in, i, d, waiting);
        for (int64_t j = 0; j < in->n; j++) {
            double got = value(type, in->matrix, i * in->n + j);
            bool good = got == d[j];
            if (in->next && i != j) {
                int32_t hop = in->next[i * in->n + j];
                double w = INFINITY;
                for (int64_t e = in->start[i]; e < in->start[i + 1]; e++)
                    if (in->to[e] == hop)
                        w = value(type, in->weight, e);
                good = good && hop >= 0 && w + value(type, in->matrix, hop * in->n + j) == d[j];
            }
            wrong += !good;
        }
    }
    free(d), free(waiting);
    if (wrong)
        return lw_fail(err, LW_E_INTERNAL,
                       "%s, %s, n = %lld: %lld distances differ from searches of single vertices", backend,
                       in->kind->name, (long long)in->n, (long long)wrong);
    return LW_OK;
}

/* --- timing ----------------------------------------------------------------------------------------- */

typedef struct fit { /* of log time against log n */
    double n, x, y, xx, xy;
} fit;

static lw_status bench_row(bench *b, const lw_paths_backend *row, const kind *k, int64_t n, lw_pool *pool,
                           fit *line, lw_error *err)
{
    bool one = pool == NULL && strncmp(row->base.name, "cuda", 4) != 0;
    input in;
    LW_TRY(input_make(&in, k, n, err));
    lw_paths_report report;
    lw_status status = solve(b, row, &in, pool, &report, err);
    if (status == LW_OK)
        status = verify(&in, row->base.name, err);
    /* long runs need no repeats */
    int repeats = report.kernel_seconds > 5 ? 1 : b->repeats;
    double *rate = malloc((size_t)repeats * sizeof *rate);
    if (!rate)
        status = lw_fail_memory(err, sizeof *rate);
    for (int i = 0; i < repeats && status == LW_OK; i++) {
        double before = bench_now(true);
        if (i > 0 || repeats > 1)
            status = solve(b, row, &in, pool, &report, err);
        /* one thread: its own clock, the filling of the matrix included (less than a hundredth) */
        double seconds = one && repeats > 1 ? bench_now(true) - before : report.kernel_seconds;
        rate[i] = 1e-9 * (double)n * (double)n * (double)n / seconds;
    }
    if (status == LW_OK) {
        bench_result about = {.domain = "apsp", .unit = "Grelax/s", .verified = true, .one_thread = one};
        snprintf(about.name, sizeof about.name, "%s%s", k->name, one ? " (one thread)" : "");
        snprintf(about.backend, sizeof about.backend, "%s", row->base.name);
        snprintf(about.shape, sizeof about.shape, "n = %lld", (long long)n);
        status = bench_add(b, &about, rate, repeats, err);
        const bench_result *r = &b->results[b->n - 1];
        double x = log((double)n), y = log((double)n * (double)n * (double)n / r->median);
        line->n++, line->x += x, line->y += y, line->xx += x * x, line->xy += x * y;
    }
    free(rate);
    input_free(&in);
    return status;
}

/* scipy's Floyd-Warshall on the same graph, and the sum of its distances against ours. */
static lw_status bench_scipy(bench *b, int64_t n, lw_error *err)
{
    static const char script[] = "import sys, time\n"
                                 "try:\n"
                                 "    import numpy, scipy.sparse.csgraph as g\n"
                                 "except ImportError:\n"
                                 "    sys.exit(3)\n"
                                 "m = numpy.load(sys.argv[1])\n"
                                 "t = time.thread_time()\n"
                                 "d = g.floyd_warshall(m)\n"
                                 "print(time.thread_time() - t, repr(float(d.sum())))\n";
    input in;
    LW_TRY(input_make(&in, &kinds[4], n, err)); /* float64, scipy's own type */
    char path[] = "/tmp/lw-bench-XXXXXX", command[512];
    lw_npy array = {.dtype = LW_F64, .ndim = 2, .shape = {n, n}, .count = n * n, .data = in.matrix};
    lw_outfile *file = NULL;
    lw_status status = LW_OK;
    int fd = mkstemp(path);
    if (fd < 0) {
        status = lw_fail(err, LW_E_IO, "no temporary file in /tmp");
        goto end;
    }
    close(fd);
    LW_TRY_END(lw_pool_for(b->pool, n, fill_row, &in, err));
    LW_TRY_END(lw_outfile_open(&file, path, NULL, err));
    LW_TRY_END(lw_outfile_close(file, lw_npy_write(file, &array, err), err));
    snprintf(command, sizeof command,
             "for p in python3 /usr/bin/python3; do $p -c '%s' %s 2>/dev/null && exit 0; done; exit 3",
             script, path);
    double seconds = 0, sum = 0;
    FILE *pipe = popen(command, "r");
    int fields = pipe ? fscanf(pipe, "%lf %lf", &seconds, &sum) : 0;
    int code = pipe ? pclose(pipe) : 1;
    remove(path);
    if (fields != 2 || code != 0) {
        lw_say(b->host, LW_SAY_INFO, "scipy is not installed, so it is not compared");
        goto end;
    }
    lw_paths_report report;
    LW_TRY_END(solve(b, &lw_paths_cpu, &in, NULL, &report, err));
    double ours = 0;
    for (int64_t i = 0; i < n * n; i++)
        ours += ((const double *)in.matrix)[i];
    if (fabs(ours - sum) > 1e-9 * ours) {
        status = lw_fail(err, LW_E_INTERNAL, "scipy's distances sum to %.17g, ours to %.17g", sum, ours);
        goto end;
    }
    bench_result about = {.domain = "apsp",
                          .name = "scipy floyd_warshall (one thread)",
                          .backend = "peer",
                          .unit = "Grelax/s",
                          .verified = true,
                          .one_thread = true};
    snprintf(about.shape, sizeof about.shape, "n = %lld", (long long)n);
    double rate = 1e-9 * (double)n * (double)n * (double)n / seconds;
    status = bench_add(b, &about, &rate, 1, err);
end:
    input_free(&in);
    return status;
}

static bool wanted(const bench *b, const lw_paths_backend *row)
{
    bool cuda = strncmp(row->base.name, "cuda", 4) == 0;
    return (strcmp(b->backend, "auto") == 0 || strcmp(b->backend, row->base.name) == 0 ||
            (cuda && strcmp(b->backend, "cuda") == 0)) &&
           row->base.usable(&row->base, b->device, NULL) == LW_OK;
}

lw_status bench_paths(bench *b, lw_error *err)
{
    for (int r = 0; r < lw_paths_backend_count; r++) {
        const lw_paths_backend *row = lw_paths_backends[r];
        if (!wanted(b, row))
            continue;
        bool scalar = row == &lw_paths_scalar, cuda = strncmp(row->base.name, "cuda", 4) == 0;
        int64_t most = b->quick ? 512 : b->vertices ? b->vertices : cuda ? 32768 : 4096;
        for (int k = 0; k < KINDS; k++) {
            if (row->supports(row, kinds[k].type, NULL) != LW_OK)
                continue;
            fit line = {0};
            for (int64_t n = 256; n <= most && n <= (scalar ? SCALAR_MOST : most); n *= 2) {
                /* 64-bit lanes are for the few; a quarter of the size tells enough */
                if (lw_paths_size(kinds[k].type) == 8 && n > 1024 && n > most / 4)
                    break;
                LW_TRY(bench_row(b, row, &kinds[k], n, b->pool, &line, err));
            }
            if (line.n < 2)
                continue;
            bench_result about = {.domain = "apsp", .unit = "exponent", .verified = true};
            snprintf(about.name, sizeof about.name, "%s: time ~ n^", kinds[k].name);
            snprintf(about.backend, sizeof about.backend, "%s", row->base.name);
            snprintf(about.shape, sizeof about.shape, "%d sizes from n = 256", (int)line.n);
            double slope = (line.n * line.xy - line.x * line.y) / (line.n * line.xx - line.x * line.x);
            LW_TRY(bench_add(b, &about, &slope, 1, err));
        }
    }
    if (b->quick || !wanted(b, &lw_paths_cpu))
        return LW_OK;
    fit none = {0};
    for (int k = 0; k < KINDS; k++)
        LW_TRY(bench_row(b, &lw_paths_cpu, &kinds[k], 2000, NULL, &none, err));
    return bench_scipy(b, 2000, err);
}
