/* test_backends.c - every usable row, and the cpu row once per instruction set, against the scalar row: all
 * types, sizes around tiles, negative and zero weights, next hops, checkpoints and resumed runs, 16 bits
 * proved, verified and too few, and matrices that do not fit the device memory they may take. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "common/device.h"
#include "paths/paths_backend.h"
#include "sanitized.h"

enum { EXTRA = 3 }; /* elements after each row that nobody may touch */

typedef struct graph {
    lw_paths_type type;
    int64_t n, ld, size;
    void *matrix; /* weights */
    bool negative;
    int64_t low, high, max_weight;
    int64_t *start;
    int32_t *to;
    void *weight;
} graph;

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

static double get(const graph *g, const void *m, int64_t at)
{
    switch (g->type) {
    case LW_PATHS_S32:
        return ((const int32_t *)m)[at];
    case LW_PATHS_S64:
        return (double)((const int64_t *)m)[at];
    case LW_PATHS_F32:
        return (double)((const float *)m)[at];
    default:
        return ((const double *)m)[at];
    }
}

static void put(const graph *g, void *m, int64_t at, double value)
{
    switch (g->type) {
    case LW_PATHS_S32:
        ((int32_t *)m)[at] = isinf(value) ? LW_PATHS_INF_S32 : (int32_t)value;
        break;
    case LW_PATHS_S64:
        ((int64_t *)m)[at] = isinf(value) ? LW_PATHS_INF_S64 : (int64_t)value;
        break;
    case LW_PATHS_F32:
        ((float *)m)[at] = (float)value;
        break;
    default:
        ((double *)m)[at] = value;
        break;
    }
}

/* Kinds of weights. HUGE_: sums past 2^53. */
enum { SMALL, ZEROS, NEGATIVE, FRACTIONS, LARGE, HUGE_, KINDS };

static bool suits(int kind, lw_paths_type type)
{
    bool integer = type == LW_PATHS_S32 || type == LW_PATHS_S64;
    return kind == FRACTIONS ? !integer : kind == HUGE_ ? type == LW_PATHS_S64 : integer;
}

/* degree: edges per vertex, about. Negative weights come from potentials, so that no cycle is negative. */
static graph make(lw_paths_type type, int64_t n, double degree, int kind)
{
    graph g = {.type = type, .n = n, .ld = n + EXTRA, .size = lw_paths_size(type)};
    g.matrix = malloc((size_t)(g.ld * (n + 1) * g.size));
    int64_t *potential = malloc((size_t)(n + 1) * sizeof *potential);
    int64_t largest = kind == LARGE && n > 1 ? (LW_PATHS_INF_S32 - 1) / (n - 1) : kind == ZEROS ? 1 : 50;
    for (int64_t i = 0; i < n; i++)
        potential[i] = kind == NEGATIVE ? draw(1000) : 0;
    g.start = calloc((size_t)n + 1, sizeof *g.start);
    int64_t capacity = 16;
    g.to = malloc((size_t)capacity * 4);
    g.weight = malloc((size_t)capacity * 8);
    for (int64_t i = 0; i < n; i++) {
        g.start[i + 1] = g.start[i];
        for (int64_t j = 0; j < g.ld; j++) {
            double w = i == j ? 0 : INFINITY;
            if (i != j && j < n && draw(1000000) < degree / (double)n * 1e6) {
                w = (double)(draw((uint32_t)largest + 1) + potential[i] - potential[j]);
                if (kind == FRACTIONS)
                    w += draw(1000) / 1000.0;
                if (kind == HUGE_)
                    w = ldexp(draw(1u << 31), 20) + draw(1u << 20);
                g.negative |= w < 0;
                g.max_weight = w > (double)g.max_weight ? (int64_t)w : g.max_weight;
                if (g.start[i + 1] == capacity) {
                    capacity *= 2;
                    g.to = realloc(g.to, (size_t)capacity * 4);
                    g.weight = realloc(g.weight, (size_t)capacity * 8);
                }
                g.to[g.start[i + 1]] = (int32_t)j;
                put(&g, g.weight, g.start[i + 1]++, w);
            }
            put(&g, g.matrix, i * g.ld + j, j < n ? w : -77);
        }
    }
    free(potential);
    g.low = kind == NEGATIVE ? -1000 : 0;
    g.high = kind == NEGATIVE       ? 1000 + 50 * (n + 1)
             : type == LW_PATHS_S64 ? LW_PATHS_INF_S64 - 1
                                    : LW_PATHS_INF_S32 - 1;
    return g;
}

static void drop(graph *g)
{
    free(g->matrix), free(g->start), free(g->to), free(g->weight);
}

typedef struct answer {
    void *matrix;
    int32_t *next;
    lw_paths_report report;
} answer;

static void forget(answer *a)
{
    free(a->matrix), free(a->next);
}

static lw_paths_job job_of(const graph *g, answer *a, bool with_next)
{
    size_t bytes = (size_t)(g->ld * (g->n + 1) * g->size);
    *a = (answer){.matrix = malloc(bytes)};
    memcpy(a->matrix, g->matrix, bytes);
    lw_paths_job job = {.type = g->type,
                        .n = g->n,
                        .matrix = a->matrix,
                        .ld = g->ld,
                        .negative = g->negative,
                        .low = g->low,
                        .high = g->high,
                        .max_weight = g->max_weight};
    if (with_next) {
        a->next = malloc((size_t)(g->ld * (g->n + 1)) * 4);
        for (int64_t i = 0; i < g->ld * (g->n + 1); i++)
            a->next[i] = -99;
        job.next = a->next, job.next_ld = g->ld;
        job.edge_start = g->start, job.edge_to = g->to, job.edge_weight = g->weight;
    }
    return job;
}

/* A row, and for the cpu row the instruction sets it must do without. */
typedef struct contender {
    const lw_paths_backend *row;
    const char *disabled;
    char name[64];
} contender;
enum { MAX_CONTENDERS = 16 };

static lw_status solve(const contender *c, const lw_paths_job *job, int64_t device_bytes, answer *a,
                       lw_error *err)
{
    void *context = NULL;
    lw_paths_setup setup = {.device_bytes = device_bytes};
    setenv("LANEWISE_DISABLE", c->disabled ? c->disabled : "", 1);
    lw_status status = c->row->open(c->row, &context, &setup, err);
    if (status == LW_OK)
        status = c->row->solve(context, job, &a->report, err);
    c->row->close(context);
    return status;
}

static void expect_same(const graph *g, const answer *want, const answer *got, const char *what)
{
    int64_t wrong = 0, first = -1;
    for (int64_t i = 0; i < g->n; i++)
        for (int64_t j = 0; j < g->ld; j++) {
            int64_t at = i * g->ld + j;
            double x = get(g, want->matrix, at), y = get(g, got->matrix, at);
            bool integer = g->type == LW_PATHS_S32 || g->type == LW_PATHS_S64;
            bool none = integer && j < g->n && x > (double)g->high; /* infinity may have drifted */
            double bound = integer ? 0 : 1e-5 * fabs(x);
            bool same = none ? y > (double)g->high : isinf(x) ? isinf(y) : fabs(x - y) <= bound;
            if (g->type == LW_PATHS_S64 && !none) /* beyond 2^53 as well */
                same = ((int64_t *)want->matrix)[at] == ((int64_t *)got->matrix)[at];
            if (want->next && j < g->n)
                same &= want->next[at] == got->next[at];
            if (!same && wrong++ == 0)
                first = at;
        }
    cr_expect(wrong == 0,
              "%s (%s): %lld entries differ, the first at row %lld, column %lld: %.9g, should be %.9g", what,
              got->report.how, (long long)wrong, (long long)(first / g->ld), (long long)(first % g->ld),
              first < 0 ? 0 : get(g, got->matrix, first), first < 0 ? 0 : get(g, want->matrix, first));
}

static const contender reference = {.row = &lw_paths_scalar, .name = "scalar"};

/* The cuda rows that can run here; says so where there is none. */
static int gpu_rows(contender *out)
{
    int n = 0;
    lw_error err = {0};
    for (int i = 0; i < lw_paths_backend_count; i++) {
        const lw_paths_backend *row = lw_paths_backends[i];
        if (strncmp(row->base.name, "cuda", 4) != 0 || row->base.usable(&row->base, 0, &err) != LW_OK)
            continue;
        out[n] = (contender){.row = row};
        snprintf(out[n++].name, sizeof out->name, "%s", row->base.name);
    }
    static bool said;
    if (n == 0 && !said)
        fprintf(stderr, "SKIPPED without a GPU: the cuda rows (%s)\n", err.message);
    said = true;
    return n;
}

/* The cpu row with its best instruction set, then with one less, and so on to plain C. To take away what this
 * processor does not have leaves the same kernels. */
static int cpu_rows(contender *out)
{
    static const char *const sets[] = {"", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon"};
    int n = 0;
    unsigned before = 0;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        unsigned usable = 0;
        lw_error err = {0};
        setenv("LANEWISE_DISABLE", sets[i], 1);
        cr_assert(lw_isa_usable(&usable, &err) == LW_OK, "%s", err.message);
        if (usable == before)
            continue;
        before = usable;
        out[n] = (contender){.row = &lw_paths_cpu, .disabled = sets[i]};
        snprintf(out[n++].name, sizeof out->name, "cpu without %s", *sets[i] ? sets[i] : "nothing");
    }
    return n;
}

static int all_rows(contender *out)
{
    int n = cpu_rows(out);
    return n + gpu_rows(out + n);
}

/* Runs the scalar row and the others with these limits, and compares. device_bytes limits cuda rows, so only
 * these run then. how: what the dpx row must say of its run; NULL: anything. */
static void check(const graph *g, bool with_next, int64_t device_bytes, const char *what, const char *how)
{
    contender rows[MAX_CONTENDERS];
    int n_rows = device_bytes ? gpu_rows(rows) : all_rows(rows);
    if (n_rows == 0) /* the reference alone has nobody to agree with */
        return;
    answer want, got;
    lw_error err = {0};
    lw_paths_job job = job_of(g, &want, with_next);
    cr_assert(solve(&reference, &job, 0, &want, &err) == LW_OK, "%s", err.message);
    for (int r = 0; r < n_rows; r++) {
        job = job_of(g, &got, with_next);
        lw_status status = solve(&rows[r], &job, device_bytes, &got, &err);
        char name[256];
        snprintf(name, sizeof name, "%s: %s, n = %lld, type %d", rows[r].name, what, (long long)g->n,
                 (int)g->type);
        cr_expect(status == LW_OK, "%s: %s", name, err.message);
        if (status == LW_OK)
            expect_same(g, &want, &got, name);
        if (how && rows[r].row == &lw_paths_cuda_dpx)
            cr_expect(strstr(got.report.how, how) != NULL, "%s ran as '%s', not '%s'", name, got.report.how,
                      how);
        forget(&got);
    }
    forget(&want);
}

static const lw_paths_type types[] = {LW_PATHS_S32, LW_PATHS_S64, LW_PATHS_F32, LW_PATHS_F64};

Test(paths_backends, all_types_sizes_and_weights)
{
    static const int64_t sizes[] = {0,  1,  2,   3,   5,   6,   7,   63,  64,  65,  95,
                                    96, 97, 127, 128, 129, 191, 192, 193, 257, 385, 401};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int kind = 0; kind < KINDS; kind++) {
                bool integer = types[t] == LW_PATHS_S32 || types[t] == LW_PATHS_S64;
                if (!suits(kind, types[t]) ||
                    (LW_SANITIZED && sizes[s] > 200 && kind != SMALL && kind != FRACTIONS))
                    continue;
                random_state = (uint64_t)(s * 100 + kind);
                graph g = make(types[t], sizes[s], kind % 2 ? 3 : 8, kind);
                check(&g, integer && kind != ZEROS, 0, "random graph", NULL);
                drop(&g);
            }
}

/* A path 0 -> 1 -> ... of equal weights: the longest distances there are. */
static graph path(int64_t n, double weight)
{
    graph g = make(LW_PATHS_S32, n, 0, SMALL);
    g.to = realloc(g.to, (size_t)n * 4);
    g.weight = realloc(g.weight, (size_t)n * 8);
    for (int64_t i = 0; i + 1 < n; i++) {
        put(&g, g.matrix, i * g.ld + i + 1, weight);
        g.to[i] = (int32_t)i + 1;
        put(&g, g.weight, i, weight);
        g.start[i + 1] = i + 1;
    }
    g.start[n] = n - 1;
    g.max_weight = (int64_t)weight;
    return g;
}

Test(paths_backends, halves_proved_verified_and_too_few)
{
    const int64_t n = LW_FEWER(1100, 400), safe = 16383 / (n - 1); /* the longest sum in verified 16 bits */
    graph g = path(300, 109);
    g.high = 299 * 109; /* 32591 < 32767 */
    check(&g, true, 0, "path in proved 16 bits", "u16 dpx proved");
    drop(&g);
    g = path(n, (double)safe);
    check(&g, true, 0, "path in verified 16 bits", "u16 dpx verified");
    drop(&g);
    g = path(n, (double)(safe + 1));
    check(&g, true, 0, "path past the safe value", "too few");
    drop(&g);
    g = path(n, 1000);
    check(&g, true, 0, "path past 16 bits", "too few");
    drop(&g);
    random_state = 5;
    g = make(LW_PATHS_S32, LW_FEWER(1301, 401), 6, SMALL);
    check(&g, true, 0, "graph in verified 16 bits", "u16 dpx verified");
    drop(&g);
}

Test(paths_backends, sums_at_the_limit)
{
    for (int64_t past = 0; past < 2; past++) { /* the longest distance is infinity - 1, then infinity */
        graph g = path(3, 0);
        put(&g, g.matrix, 1, (double)(LW_PATHS_INF_S32 / 2));
        put(&g, g.matrix, g.ld + 2, (double)(LW_PATHS_INF_S32 - 1 - LW_PATHS_INF_S32 / 2 + past));
        g.max_weight = LW_PATHS_INF_S32 - 1;
        check(&g, false, 0, "limit", NULL);
        drop(&g);
    }
}

Test(paths_backends, out_of_host_memory)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int kind = 0; kind < KINDS; kind++) {
            bool integer = types[t] == LW_PATHS_S32 || types[t] == LW_PATHS_S64;
            if (!suits(kind, types[t]))
                continue;
            for (int64_t n = 600; n <= 900; n += 149) {
                random_state = (uint64_t)n;
                graph g = make(types[t], n, 5, kind);
                /* less than in core, enough for the smallest pieces and a strip of next hops */
                bool next = integer && kind != ZEROS;
                int64_t limit = (next ? n * 512 * (8 + g.size) : n * n * g.size) * 23 / 20;
                check(&g, next, limit, "out of core", "out of host memory");
                drop(&g);
            }
        }
}

typedef struct saves {
    const graph *g;
    const void *matrix; /* of the running job */
    void *state;        /* the graph after `done` pivots, by the textbook */
    int64_t done, count;
} saves;

#define ADVANCE(T)                                                                                           \
    for (; s->done < k; s->done++)                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            T *row = (T *)s->state + i * s->g->ld, *pivot = (T *)s->state + s->done * s->g->ld,              \
              via = row[s->done];                                                                            \
            for (int64_t j = 0; j < n; j++)                                                                  \
                row[j] = via + pivot[j] < row[j] ? via + pivot[j] : row[j];                                  \
        }

static void advance(saves *s, int64_t k)
{
    int64_t n = s->g->n;
    if (s->g->type == LW_PATHS_S32)
        ADVANCE(int32_t)
    else
        ADVANCE(int64_t)
}

static bool want_save(void *user, int64_t k)
{
    (void)user, (void)k;
    return true;
}

static lw_status take_save(void *user, int64_t k, lw_error *err)
{
    (void)err;
    saves *s = user;
    advance(s, k);
    int64_t wrong = 0;
    for (int64_t i = 0; i < s->g->n; i++)
        wrong +=
            memcmp((const char *)s->matrix + i * s->g->ld * s->g->size,
                   (const char *)s->state + i * s->g->ld * s->g->size, (size_t)(s->g->n * s->g->size)) != 0;
    cr_expect(wrong == 0, "after %lld pivots %lld rows differ", (long long)k, (long long)wrong);
    s->count++;
    return LW_OK;
}

Test(paths_backends, checkpoints_and_resumed_runs)
{
    contender rows[MAX_CONTENDERS];
    int n_rows = all_rows(rows);
    random_state = 11;
    graph graphs[] = {make(LW_PATHS_S32, 450, 4, SMALL), path(LW_FEWER(1100, 460), 25),
                      make(LW_PATHS_S64, 450, 4, SMALL)};
    for (size_t v = 0; v < sizeof graphs / sizeof *graphs; v++) {
        answer want;
        lw_error err = {0};
        lw_paths_job job = job_of(&graphs[v], &want, false);
        cr_assert(solve(&reference, &job, 0, &want, &err) == LW_OK);
        for (int r = 0; r < n_rows; r++)
            for (int64_t limit = 0; limit <= 3 << 19; limit += 3 << 19) {
                const graph *g = &graphs[v];
                if (limit && (g->n > 1000 || rows[r].row == &lw_paths_cpu))
                    continue;
                answer got, state;
                job = job_of(g, &state, false);
                job = job_of(g, &got, false);
                saves s = {.g = g, .matrix = got.matrix, .state = state.matrix};
                job.checkpoint_want = want_save, job.checkpoint_save = take_save, job.checkpoint_user = &s;
                lw_status status = solve(&rows[r], &job, limit, &got, &err);
                cr_expect(status == LW_OK, "%s: %s", rows[r].name, err.message);
                cr_expect(s.count >= 4, "%s saved %lld times", rows[r].name, (long long)s.count);
                expect_same(g, &want, &got, rows[r].name);
                forget(&got), forget(&state);
                for (int64_t k = 1; k <= g->n; k += g->n / 3) { /* resume after any number of pivots */
                    job = job_of(g, &got, false);
                    saves t = {.g = g, .state = got.matrix};
                    advance(&t, k);
                    job.k_begin = k;
                    status = solve(&rows[r], &job, limit, &got, &err);
                    cr_expect(status == LW_OK, "%s: %s", rows[r].name, err.message);
                    expect_same(g, &want, &got, rows[r].name);
                    forget(&got);
                }
            }
        forget(&want);
    }
    for (size_t v = 0; v < sizeof graphs / sizeof *graphs; v++)
        drop(&graphs[v]);
}

Test(paths_backends, negative_cycle_is_reported)
{
    contender rows[MAX_CONTENDERS];
    int n_rows = all_rows(rows);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int r = 0; r < n_rows; r++)
            for (int64_t limit = 0; limit <= 3 << 19; limit += 3 << 19) {
                if (limit && rows[r].row == &lw_paths_cpu)
                    continue;
                random_state = 3;
                graph g = make(types[t], 450, 3, NEGATIVE);
                put(&g, g.matrix, 100 * g.ld + 440, 5);
                put(&g, g.matrix, 440 * g.ld + 7, -3000);
                put(&g, g.matrix, 7 * g.ld + 100, 2);
                answer a;
                lw_error err = {0};
                lw_paths_job job = job_of(&g, &a, false);
                lw_status status = solve(&rows[r], &job, limit, &a, &err);
                cr_expect(status == LW_E_INTERNAL, "%s: type %d: status %d", rows[r].name, (int)types[t],
                          (int)status);
                forget(&a);
                drop(&g);
            }
}

Test(paths_backends, too_little_memory_is_refused_with_numbers)
{
    contender rows[MAX_CONTENDERS];
    int n_rows = gpu_rows(rows);
    for (int r = 0; r < n_rows; r++) {
        void *context = NULL;
        lw_error err = {0};
        lw_paths_setup setup = {.device_bytes = 1 << 20};
        cr_assert(rows[r].row->open(rows[r].row, &context, &setup, &err) == LW_OK);
        lw_paths_job job = {
            .type = LW_PATHS_S32, .n = 20000, .ld = 20000, .high = LW_PATHS_INF_S32 - 1, .max_weight = 5000};
        lw_paths_estimate estimate;
        cr_expect(rows[r].row->estimate(context, &job, &estimate, &err) == LW_E_NOMEM);
        cr_expect(strstr(err.message, "1.6") != NULL, "%s", err.message);
        rows[r].row->close(context);
    }
}
