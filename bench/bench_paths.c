/* bench_paths.c - Floyd-Warshall on random graphs: every backend and lane type over sizes from 256 up, next
 * hops, the largest matrices in and out of device memory, the whole program from an edge list to .npy, CPU
 * threads, and scipy on one core where Python has it. Every distance of every run is proved right
 * (paths_graphs.h) before its time counts; repeated runs must give the same bytes, and so must all backends.
 */
#include "bench.h"

#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/npy.h"
#include "paths/memory.h"
#include "paths/paths_backend.h"
#include "paths_graphs.h"

/* Edges per vertex of the random graphs: the time does not depend on them, that of the proof does. */
enum { DEGREE = 8 };
/* The scalar row goes this far: an eighth of a second a run. */
enum { SCALAR_MOST = 512 };
/* Runs of this many seconds are not repeated. */
static const double long_run = 0.2;

static const paths_kind kinds[] = {
    {"s32", LW_PATHS_S32, 30000, LW_PATHS_INF_S32 - 1, false, 256, false},
    {"u16", LW_PATHS_S32, 100, LW_PATHS_INF_S32 - 1, false, 1024, true},
    {"f32", LW_PATHS_F32, 30000, 0, false, 256, false},
    {"s64", LW_PATHS_S64, 30000, LW_PATHS_INF_S64 - 1, false, 256, false},
    {"f64", LW_PATHS_F64, 30000, 0, false, 256, false},
    {"s32 with next hops", LW_PATHS_S32, 100, LW_PATHS_INF_S32 - 1, true, 256, false},
};
enum { S32, U16, F32, S64, F64, NEXT, KINDS };

/* What all policies must agree on. */
typedef struct known {
    const paths_kind *kind;
    int64_t n;
    int degree;
    uint64_t sum;
} known;

/* The bench with what it remembers. */
typedef struct session {
    bench *b;
    known seen[128];
    int n_seen;
} session;

/* One thing to time. */
typedef struct task {
    const lw_paths_backend *row;
    const paths_kind *kind;
    int64_t n;
    int degree;
    lw_pool *pool;        /* NULL: one thread */
    int64_t device_bytes; /* 0: what is free */
    const char *name;     /* NULL: the kind's */
} task;

typedef struct outcome {
    bool left_out;  /* not in 16 bits, or no memory */
    double seconds; /* median of the kernel's */
    char how[96];
} outcome;

static bool is_cuda(const lw_paths_backend *row)
{
    return strncmp(row->base.name, "cuda", 4) == 0;
}

static double cube(int64_t n)
{
    return (double)n * (double)n * (double)n;
}

/* One solve, from the weights to the distances. */
static lw_status solve(const bench *b, const task *t, paths_graph *g, lw_paths_report *report, lw_error *err)
{
    LW_TRY(paths_graph_fill(g, b->pool, err));
    void *context = NULL;
    lw_host quiet = {.stop = b->host->stop};
    lw_paths_setup setup = {
        .pool = t->pool, .device = b->device, .device_bytes = t->device_bytes, .host = &quiet};
    LW_TRY(t->row->open(t->row, &context, &setup, err));
    lw_paths_job job = {.type = t->kind->type,
                        .n = g->n,
                        .matrix = g->matrix,
                        .ld = g->n,
                        .high = t->kind->high,
                        .max_weight = t->kind->most,
                        .next = g->next,
                        .next_ld = g->n,
                        .edge_start = g->start,
                        .edge_to = g->to,
                        .edge_weight = g->weight};
    if (g->next)
        job.max_weight = job.max_weight * (g->n + 1) + 1;
    *report = (lw_paths_report){0};
    lw_status status = t->row->solve(context, &job, report, err);
    t->row->close(context);
    return status;
}

/* The same matrix as the first run of this graph, whatever ran it. */
static lw_status same_as_before(session *s, const task *t, uint64_t sum, lw_error *err)
{
    for (int i = 0; i < s->n_seen; i++) {
        const known *k = &s->seen[i];
        if (k->kind != t->kind || k->n != t->n || k->degree != t->degree)
            continue;
        if (k->sum == sum)
            return LW_OK;
        return lw_fail(
            err, LW_E_INTERNAL,
            "%s, %s, n = %lld: other bytes than the run before: no speed is shown for wrong results",
            t->row->base.name, t->kind->name, (long long)t->n);
    }
    if (s->n_seen < (int)(sizeof s->seen / sizeof *s->seen))
        s->seen[s->n_seen++] = (known){t->kind, t->n, t->degree, sum};
    return LW_OK;
}

/* Adds the result of one task. */
static lw_status run_task(session *s, const task *t, outcome *out, lw_error *err)
{
    bench *b = s->b;
    *out = (outcome){0};
    double bytes =
        (double)t->n * (double)t->n * (double)(lw_paths_size(t->kind->type) + (t->kind->next ? 4 : 0));
    double there = (double)lw_memory_available();
    if (there >= 0 && bytes * 1.1 > there) {
        char what[64], reason[128];
        snprintf(what, sizeof what, "%s, %s, n = %lld", t->row->base.name, t->kind->name, (long long)t->n);
        snprintf(reason, sizeof reason, "it takes %.1f GB of memory, and %.1f GB are free", bytes / 1e9,
                 there / 1e9);
        out->left_out = true;
        return bench_skip(b, "apsp", what, reason, err);
    }
    bool one = t->pool == NULL && !is_cuda(t->row);
    paths_graph g;
    lw_paths_report report = {0};
    uint64_t sum;
    double *rate = malloc((size_t)b->repeats * sizeof *rate),
           *seconds = malloc((size_t)b->repeats * sizeof *seconds);
    lw_status status = rate && seconds ? paths_graph_random(&g, t->kind, t->n, t->degree, err)
                                       : lw_fail_memory(err, (size_t)b->repeats * sizeof *rate);
    if (status != LW_OK) {
        free(rate), free(seconds);
        return status;
    }
    double before = bench_now(true);
    LW_TRY_END(solve(b, t, &g, &report, err));
    double first = one ? bench_now(true) - before : report.kernel_seconds;
    snprintf(out->how, sizeof out->how, "%s", report.how);
    if (t->kind->halves && !strstr(report.how, "16")) {
        out->left_out = true;
        goto end;
    }
    LW_TRY_END(paths_graph_verify(&g, b->pool, t->row->base.name, err));
    LW_TRY_END(paths_graph_checksum(&g, b->pool, &sum, err));
    LW_TRY_END(same_as_before(s, t, sum, err));
    int repeats = !one && report.kernel_seconds >= long_run ? 1 : b->repeats;
    for (int i = 0; i < repeats; i++) {
        seconds[i] = first;
        if (repeats > 1) {
            /* one thread: its own clock, the filling of the matrix included (less than a hundredth) */
            before = bench_now(true);
            LW_TRY_END(solve(b, t, &g, &report, err));
            seconds[i] = one ? bench_now(true) - before : report.kernel_seconds;
            LW_TRY_END(paths_graph_checksum(&g, b->pool, &sum, err));
            LW_TRY_END(same_as_before(s, t, sum, err));
        }
        rate[i] = 1e-9 * cube(t->n) / seconds[i];
    }
    bench_result about = {.domain = "apsp", .unit = "Grelax/s", .verified = true, .one_thread = one};
    snprintf(about.name, sizeof about.name, "%s%s", t->name ? t->name : t->kind->name,
             one ? " (one thread)" : "");
    snprintf(about.backend, sizeof about.backend, "%s", t->row->base.name);
    if (t->degree == DEGREE)
        snprintf(about.shape, sizeof about.shape, "n = %lld", (long long)t->n);
    else
        snprintf(about.shape, sizeof about.shape, "n = %lld, %d edges a vertex", (long long)t->n, t->degree);
    LW_TRY_END(bench_add(b, &about, rate, repeats, err));
    out->seconds = 1e-9 * cube(t->n) / b->results[b->n - 1].median;
end:
    free(rate), free(seconds);
    paths_graph_free(&g);
    return status;
}

/* Adds a number that is no rate. */
static lw_status add_number(bench *b, const char *name, const char *backend, const char *shape,
                            const char *unit, double value, lw_error *err)
{
    bench_result about = {.domain = "apsp", .verified = true};
    snprintf(about.name, sizeof about.name, "%s", name);
    snprintf(about.backend, sizeof about.backend, "%s", backend);
    snprintf(about.shape, sizeof about.shape, "%s", shape);
    snprintf(about.unit, sizeof about.unit, "%s", unit);
    return bench_add(b, &about, &value, 1, err);
}

/* --- time against n --------------------------------------------------------------------------------- */

typedef struct fit { /* of log time against log n */
    double n, x, y, xx, xy;
    int64_t from, to;
} fit;

static void fit_add(fit *f, int64_t n, double seconds)
{
    double x = log((double)n), y = log(seconds);
    f->from = f->n > 0 ? f->from : n;
    f->to = n;
    f->n++, f->x += x, f->y += y, f->xx += x * x, f->xy += x * y;
}

static lw_status add_exponent(bench *b, const paths_kind *kind, const char *backend, const fit *f,
                              lw_error *err)
{
    if (f->n < 2)
        return LW_OK;
    char name[48], shape[96];
    snprintf(name, sizeof name, "%s: time ~ n^", kind->name);
    snprintf(shape, sizeof shape, "n = %lld ... %lld", (long long)f->from, (long long)f->to);
    return add_number(b, name, backend, shape, "exponent",
                      (f->n * f->xy - f->x * f->y) / (f->n * f->xx - f->x * f->x), err);
}

/* One row and kind over the sizes from `least` on, each twice the one before: rates, times, and their
 * exponent over all sizes and over the large ones, which fill the machine. */
static lw_status bench_sizes(session *s, const lw_paths_backend *row, const paths_kind *kind, int64_t least,
                             int64_t most, lw_error *err)
{
    enum { LARGE = 4096 };
    bench *b = s->b;
    fit all = {0}, large = {0};
    for (int64_t n = least; n <= most; n *= 2) {
        task t = {.row = row, .kind = kind, .n = n, .degree = DEGREE, .pool = b->pool};
        outcome o;
        LW_TRY(run_task(s, &t, &o, err));
        if (o.left_out)
            break;
        char shape[96];
        snprintf(shape, sizeof shape, "n = %lld", (long long)n);
        if (kind == &kinds[S32])
            LW_TRY(add_number(b, "s32: kernel time", row->base.name, shape, "ms", 1e3 * o.seconds, err));
        fit_add(&all, n, o.seconds);
        if (n >= LARGE)
            fit_add(&large, n, o.seconds);
    }
    LW_TRY(add_exponent(b, kind, row->base.name, &all, err));
    return add_exponent(b, kind, row->base.name, &large, err);
}

/* --- large and small -------------------------------------------------------------------------------- */

/* A matrix in device memory against the same with too little of it. */
static lw_status bench_out_of_core(session *s, const lw_paths_backend *row, lw_error *err)
{
    bench *b = s->b;
    int64_t n = b->quick ? 1024 : 49152, bytes = b->quick ? 5 << 20 : INT64_C(4) << 30;
    char name[48], shape[96];
    outcome in, out;
    snprintf(name, sizeof name, "s32 with %s of device memory", b->quick ? "5 MiB" : "4 GiB");
    task t = {.row = row, .kind = &kinds[S32], .n = n, .degree = DEGREE, .pool = b->pool};
    LW_TRY(run_task(s, &t, &in, err));
    if (in.left_out)
        return LW_OK;
    t.device_bytes = bytes;
    t.name = name;
    LW_TRY(run_task(s, &t, &out, err));
    if (!strstr(out.how, "out of host memory"))
        return lw_fail(err, LW_E_INTERNAL, "%s ran in core with %lld bytes", row->base.name,
                       (long long)bytes);
    snprintf(shape, sizeof shape, "n = %lld", (long long)n);
    snprintf(name + strlen(name), sizeof name - strlen(name), ": time");
    return add_number(b, name, row->base.name, shape, "in core", out.seconds / in.seconds, err);
}

/* Next hops where degrees are those of dense and of sparse networks, and a matrix of a few tiles. */
static lw_status bench_shapes(session *s, const lw_paths_backend *row, int64_t most, lw_error *err)
{
    static const struct {
        int kind;
        int64_t n;
        int degree;
    } shapes[] = {{S32, 2000, DEGREE}, {NEXT, 16384, 256}, {NEXT, 32768, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (shapes[i].n > most)
            continue;
        outcome o;
        task t = {.row = row,
                  .kind = &kinds[shapes[i].kind],
                  .n = shapes[i].n,
                  .degree = shapes[i].degree,
                  .pool = s->b->pool};
        LW_TRY(run_task(s, &t, &o, err));
    }
    return LW_OK;
}

/* Shares of a machine: 1, 2, 4 ... threads of the CPU. */
static lw_status bench_threads(session *s, int64_t n, lw_error *err)
{
    bench *b = s->b;
    int most = lw_pool_threads(b->pool);
    double one = 0;
    for (int threads = 1; threads <= most;
         threads = threads < most && 2 * threads > most ? most : 2 * threads) {
        lw_pool *pool = NULL;
        char name[48], shape[96];
        snprintf(name, sizeof name, "s32, %d threads", threads);
        LW_TRY(lw_pool_open(&pool, threads, err));
        task t = {
            .row = &lw_paths_cpu, .kind = &kinds[S32], .n = n, .degree = DEGREE, .pool = pool, .name = name};
        outcome o;
        lw_status status = run_task(s, &t, &o, err);
        lw_pool_close(pool);
        LW_TRY(status);
        if (o.left_out)
            return LW_OK;
        one = threads == 1 ? o.seconds : one;
        snprintf(name, sizeof name, "s32, speed-up of %d threads", threads);
        snprintf(shape, sizeof shape, "n = %lld", (long long)n);
        if (threads > 1)
            LW_TRY(add_number(b, name, "cpu", shape, "x", one / o.seconds, err));
    }
    return LW_OK;
}

/* --- the whole program ------------------------------------------------------------------------------ */

extern char **environ;

/* The exit code of a program, from PATH where its name has no slash; -1 where it could not be run or was
 * killed. Its output goes nowhere, with `quiet` what it says about errors too. */
static int run_program(const char *program, const char *const *arguments, bool quiet)
{
    posix_spawn_file_actions_t nowhere;
    if (posix_spawn_file_actions_init(&nowhere) != 0)
        return -1;
    pid_t child;
    int code = -1;
    if (posix_spawn_file_actions_addopen(&nowhere, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        (!quiet || posix_spawn_file_actions_adddup2(&nowhere, STDOUT_FILENO, STDERR_FILENO) == 0) &&
        posix_spawnp(&child, program, &nowhere, NULL, (char *const *)(uintptr_t)arguments, environ) == 0 &&
        waitpid(child, &code, 0) == child)
        code = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
    else
        code = -1;
    posix_spawn_file_actions_destroy(&nowhere);
    return code;
}

/* Runs this program with these arguments. Seconds of the wall clock, start and end of the process
 * included. */
static lw_status run_self(const char *const *arguments, double *seconds, lw_error *err)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return lw_fail(err, LW_E_UNSUPPORTED, "/proc/self/exe is not there");
    self[length] = '\0';
    double begun = bench_now(false);
    int code = run_program(self, arguments, false);
    *seconds = bench_now(false) - begun;
    return code == 0 ? LW_OK : lw_fail(err, LW_E_INTERNAL, "lanewise apsp failed with code %d", code);
}

/* Reads the .npy and proves it. */
static lw_status verify_file(const session *s, paths_graph *g, const char *path, const char *backend,
                             lw_error *err)
{
    lw_npy array = {0};
    LW_TRY(lw_npy_read(&array, path, err));
    lw_status status = LW_OK;
    if (array.dtype != LW_I32 || array.ndim != 2 || array.shape[0] != g->n || array.shape[1] != g->n)
        status = lw_fail(err, LW_E_INTERNAL, "%s is not the matrix that was asked for", path);
    int32_t *d = array.data;
    for (int64_t i = 0; status == LW_OK && i < array.count; i++)
        d[i] = d[i] == INT32_MAX ? LW_PATHS_INF_S32 : d[i];
    g->matrix = array.data;
    if (status == LW_OK)
        status = paths_graph_verify(g, s->b->pool, backend, err);
    g->matrix = NULL;
    lw_npy_free(&array);
    return status;
}

/* From an edge list to .npy, by a process of its own. */
static lw_status bench_program(session *s, const lw_paths_backend *row, int64_t n, lw_error *err)
{
    static const paths_kind scores = {"interactions", LW_PATHS_S32, 850, LW_PATHS_INF_S32 - 1, false, 1,
                                      false};
    bench *b = s->b;
    if (access("/proc/self/exe", R_OK) != 0) {
        lw_say(b->host, LW_SAY_INFO, "the whole program is timed on Linux only");
        return LW_OK;
    }
    char folder[1024], edges[1100], matrix[1100], names[1100], device[16], threads[16], shape[96];
    LW_TRY(bench_folder(folder, sizeof folder, err));
    snprintf(edges, sizeof edges, "%s/edges.txt", folder);
    snprintf(matrix, sizeof matrix, "%s/d.npy", folder);
    snprintf(names, sizeof names, "%s/d.names.txt", folder);
    snprintf(device, sizeof device, "%d", b->device);
    snprintf(threads, sizeof threads, "%d", lw_pool_threads(b->pool));
    bool cuda = strncmp(row->base.name, "cuda", 4) == 0; /* --device is for these */
    const char *arguments[] = {"lanewise",    "apsp",
                               edges,         "--undirected",
                               "--transform", "1000-x",
                               "-o",          matrix,
                               "--backend",   row->base.name,
                               "-t",          threads,
                               "-q",          cuda ? "--device" : NULL,
                               device,        NULL};
    paths_graph g = {0};
    lw_status status = paths_graph_interactions(&g, &scores, n, 40 * n, err);
    double seconds[3];
    int runs = b->quick ? 1 : 3;
    if (status != LW_OK)
        goto end;
    LW_TRY_END(paths_graph_write(&g, edges, err));
    for (int i = 0; i < runs; i++) {
        LW_TRY_END(run_self(arguments, &seconds[i], err));
        LW_TRY_END(verify_file(s, &g, matrix, row->base.name, err));
    }
    snprintf(shape, sizeof shape, "%lld vertices, %lld interactions", (long long)n,
             (long long)g.start[n] / 2);
    bench_result about = {.domain = "apsp", .name = "edge list to .npy, wall", .unit = "s", .verified = true};
    snprintf(about.backend, sizeof about.backend, "%s", row->base.name);
    snprintf(about.shape, sizeof about.shape, "%s", shape);
    status = bench_add(b, &about, seconds, runs, err);
end:
    paths_graph_free(&g);
    remove(edges), remove(matrix), remove(names), rmdir(folder);
    return status;
}

/* --- a peer ----------------------------------------------------------------------------------------- */

/* scipy's Floyd-Warshall on the same graph; its matrix is proved like ours and must be the same. */
static lw_status bench_scipy(session *s, int64_t n, lw_error *err)
{
    static const char script[] = "import sys, time\n"
                                 "try:\n"
                                 "    import numpy, scipy.sparse.csgraph as g\n"
                                 "except ImportError:\n"
                                 "    sys.exit(3)\n"
                                 "m = numpy.load(sys.argv[1])\n"
                                 "t = time.thread_time()\n"
                                 "d = g.floyd_warshall(m)\n"
                                 "t = time.thread_time() - t\n"
                                 "numpy.save(sys.argv[1], d)\n"
                                 "print(t, file=open(sys.argv[2], \"w\"))\n";
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    bench *b = s->b;
    const task peer = {.row = &lw_paths_cpu, .kind = &kinds[F64], .n = n, .degree = DEGREE};
    paths_graph g;
    LW_TRY(paths_graph_random(&g, peer.kind, n, peer.degree, err)); /* float64, scipy's own type */
    char folder[1024], matrix[1100], time[1100];
    lw_npy array = {.dtype = LW_F64, .ndim = 2, .shape = {n, n}, .count = n * n, .data = g.matrix};
    lw_npy theirs = {0};
    lw_outfile *file = NULL;
    lw_status status = LW_OK;
    uint64_t sum;
    status = bench_folder(folder, sizeof folder, err);
    if (status != LW_OK) {
        paths_graph_free(&g);
        return status;
    }
    snprintf(matrix, sizeof matrix, "%s/d.npy", folder);
    snprintf(time, sizeof time, "%s/time", folder);
    LW_TRY_END(paths_graph_fill(&g, b->pool, err));
    LW_TRY_END(lw_outfile_open(&file, matrix, NULL, err));
    LW_TRY_END(lw_outfile_close(file, lw_npy_write(file, &array, err), err));
    bool ran = false;
    for (size_t i = 0; i < sizeof pythons / sizeof *pythons && !ran; i++) {
        const char *arguments[] = {"python3", "-c", script, matrix, time, NULL};
        ran = run_program(pythons[i], arguments, true) == 0;
    }
    FILE *from = ran ? fopen(time, "r") : NULL;
    double seconds = 0;
    int fields = from ? fscanf(from, "%lf", &seconds) : 0;
    if (from)
        fclose(from);
    if (fields != 1 || seconds <= 0) {
        status = bench_skip(b, "apsp", "scipy", "not installed, so it is not compared", err);
        goto end;
    }
    LW_TRY_END(lw_npy_read(&theirs, matrix, err));
    if (theirs.dtype != LW_F64 || theirs.count != n * n) {
        status = lw_fail(err, LW_E_INTERNAL, "scipy wrote another matrix than was asked for");
        goto end;
    }
    memcpy(g.matrix, theirs.data, (size_t)(n * n) * sizeof(double));
    LW_TRY_END(paths_graph_verify(&g, b->pool, "scipy", err));
    LW_TRY_END(paths_graph_checksum(&g, b->pool, &sum, err));
    LW_TRY_END(same_as_before(s, &peer, sum, err));
    bench_result about = {.domain = "apsp",
                          .name = "scipy floyd_warshall (one thread)",
                          .backend = "peer",
                          .unit = "Grelax/s",
                          .verified = true,
                          .one_thread = true};
    snprintf(about.shape, sizeof about.shape, "n = %lld", (long long)n);
    double rate = 1e-9 * cube(n) / seconds;
    status = bench_add(b, &about, &rate, 1, err);
end:
    remove(matrix), remove(time), rmdir(folder);
    lw_npy_free(&theirs);
    paths_graph_free(&g);
    return status;
}

/* --- all -------------------------------------------------------------------------------------------- */

static bool wanted(const bench *b, const lw_paths_backend *row)
{
    return bench_wants(b, row->base.name) && row->base.usable(&row->base, b->device, NULL) == LW_OK;
}

/* The largest size of a row and kind. The first CUDA row is the one to measure; the others show what other
 * GPUs would run. 64-bit lanes are for the few: a smaller size tells enough. */
static int64_t largest(const bench *b, const lw_paths_backend *row, bool first, int kind)
{
    int64_t most = b->vertices ? b->vertices : 4096;
    if (row == &lw_paths_scalar)
        return SCALAR_MOST;
    if (b->quick)
        return kind == U16 ? 1024 : 512;
    if (!is_cuda(row))
        return kinds[kind].type == LW_PATHS_S64 || kinds[kind].type == LW_PATHS_F64 ? most / 2 : most;
    most = b->vertices ? b->vertices : 65536;
    int64_t cap = lw_paths_size(kinds[kind].type) == 8 ? 8192 : !first ? 16384 : kind == S32 ? 65536 : 32768;
    if (kind == NEXT) /* larger ones are in bench_shapes() */
        cap = 8192;
    return most < cap ? most : cap;
}

/* --sizes: graphs of that many vertices and nothing else. */
static lw_status bench_one_size(session *s, int64_t n, lw_error *err)
{
    for (int r = 0; r < lw_paths_backend_count; r++) {
        const lw_paths_backend *row = lw_paths_backends[r];
        if (!wanted(s->b, row))
            continue;
        if (row == &lw_paths_scalar && n > SCALAR_MOST) {
            char what[64];
            snprintf(what, sizeof what, "%s, n = %lld", row->base.name, (long long)n);
            LW_TRY(bench_skip(s->b, "apsp", what, "too slow for graphs of this size", err));
            continue;
        }
        for (int k = 0; k < KINDS; k++)
            if (row->supports(row, kinds[k].type, NULL) == LW_OK)
                LW_TRY(bench_sizes(s, row, &kinds[k], n, n, err));
    }
    return LW_OK;
}

lw_status bench_paths(bench *b, lw_error *err)
{
    session s = {.b = b};
    if (b->size)
        return bench_one_size(&s, b->size, err);
    const lw_paths_backend *program = NULL; /* the last wanted CPU row, or the first CUDA row */
    bool first = true;
    for (int r = 0; r < lw_paths_backend_count; r++) {
        const lw_paths_backend *row = lw_paths_backends[r];
        if (!wanted(b, row))
            continue;
        for (int k = 0; k < KINDS; k++)
            if (row->supports(row, kinds[k].type, NULL) == LW_OK)
                LW_TRY(bench_sizes(&s, row, &kinds[k], kinds[k].least, largest(b, row, first, k), err));
        if (is_cuda(row) && first) {
            int64_t most = b->quick ? 512 : b->vertices ? b->vertices : 65536;
            LW_TRY(bench_shapes(&s, row, most, err));
            if (b->quick || most >= 49152)
                LW_TRY(bench_out_of_core(&s, row, err));
            program = row;
            first = false;
        } else if (row == &lw_paths_cpu) {
            program = row;
        }
    }
    if (program) {
        int64_t most = b->vertices ? b->vertices : is_cuda(program) ? 20000 : 4096;
        LW_TRY(bench_program(&s, program, b->quick ? 512 : most < 20000 ? most : 20000, err));
    }
    if (b->quick || !wanted(b, &lw_paths_cpu))
        return LW_OK;
    LW_TRY(bench_threads(&s, 4096, err));
    for (int k = 0; k < KINDS; k++) {
        task t = {.row = &lw_paths_cpu, .kind = &kinds[k], .n = 2000, .degree = DEGREE};
        outcome o;
        LW_TRY(run_task(&s, &t, &o, err));
    }
    return bench_scipy(&s, 2000, err);
}
