/* test_paths.c - the driver: checkpoints taken, resumed and refused; limits of the inner types; .npy orders.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/npy.h"
#include "paths/bounds.h"
#include "paths/checkpoint.h"
#include "paths/graph.h"
#include "paths/paths_backend.h"

static uint64_t random_state = 99;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

/* m random edges of weight 1 .. most. */
static lw_graph *random_graph(int64_t n, int64_t m, uint32_t most)
{
    lw_edges edges = {0};
    lw_graph *g;
    for (int64_t e = 0; e < m; e++)
        cr_assert(lw_edges_add(&edges, draw((uint32_t)n), draw((uint32_t)n), lw_weight_whole(1 + draw(most)),
                               NULL) == LW_OK);
    cr_assert(lw_graph_build(&g, n, &edges, NULL, false, false, 1, NULL) == LW_OK);
    return g;
}

/* 1 -> 2 -> ... with these weights. */
static lw_graph *path_graph(int64_t n, const int64_t *weights)
{
    lw_edges edges = {0};
    lw_graph *g;
    for (int64_t v = 0; v + 1 < n; v++)
        cr_assert(lw_edges_add(&edges, v, v + 1, lw_weight_whole(weights[v]), NULL) == LW_OK);
    cr_assert(lw_graph_build(&g, n, &edges, NULL, false, false, 1, NULL) == LW_OK);
    return g;
}

/* A host that stops once `limit` pivots are done. */
typedef struct stopper {
    double limit;
    int stop;
} stopper;

static void stop_later(void *user, double done, double total, double work)
{
    (void)total, (void)work;
    stopper *s = user;
    s->stop = done >= s->limit;
}

static lw_status solve(lw_paths *out, const lw_graph *g, const char *backend, int dtype,
                       const char *checkpoint, stopper *s, bool next, lw_error *err)
{
    lw_host host = {.user = s, .progress = stop_later, .stop = s ? &s->stop : NULL};
    lw_paths_options o = {.backend = backend,
                          .threads = 2,
                          .dtype = dtype,
                          .checkpoint = checkpoint,
                          .checkpoint_seconds = 1e9,
                          .next = next,
                          .host = s ? &host : NULL};
    return lw_paths_solve(out, g, &o, err);
}

Test(paths, checkpoints)
{
    char file[] = "/tmp/lw-checkpoint-XXXXXX";
    close(mkstemp(file));
    static const char *const backends[] = {"scalar", "cpu"};
    for (int dtype = LW_PATHS_S32; dtype <= LW_PATHS_F64; dtype++)
        for (int first = 0; first < 2; first++)
            for (int next = 0; next < 2; next++) {
                remove(file);
                lw_graph *g = random_graph(300, 1500, 1000), *other = random_graph(300, 1500, 1000);
                lw_paths want, got;
                lw_error err = {0};
                cr_assert(solve(&want, g, "scalar", dtype, NULL, NULL, next, &err) == LW_OK, "%s",
                          err.message);
                /* stopped twice, on one backend and then on the other, then taken to the end */
                stopper s = {.limit = 96};
                cr_expect(solve(&got, g, backends[first], dtype, file, &s, next, NULL) == LW_E_INTERRUPTED);
                int64_t k = 0;
                lw_paths_type type;
                FILE *f = fopen(file, "rb");
                cr_assert(f != NULL, "no checkpoint after a stop");
                fclose(f);
                cr_expect(lw_checkpoint_peek(file, 0, 300, &type, &k, NULL) == LW_E_INPUT);
                s = (stopper){.limit = 200};
                cr_expect(solve(&got, g, backends[!first], dtype, file, &s, next, NULL) == LW_E_INTERRUPTED);
                /* another graph, or the same for another purpose, must not go on from it */
                cr_expect(solve(&got, other, "cpu", dtype, file, NULL, next, &err) == LW_E_INPUT);
                cr_expect(strstr(err.message, "another graph") != NULL, "%s", err.message);
                cr_expect(solve(&got, g, "cpu", dtype, file, NULL, !next, NULL) == LW_E_INPUT);
                /* a damaged byte is noticed */
                f = fopen(file, "r+b");
                fseek(f, 5000, SEEK_SET);
                int byte = getc(f);
                fseek(f, 5000, SEEK_SET);
                putc(byte ^ 4, f);
                fclose(f);
                err = (lw_error){0};
                cr_expect(solve(&got, g, "cpu", dtype, file, NULL, next, &err) == LW_E_INPUT);
                cr_expect(strstr(err.message, "damaged") != NULL, "%s", err.message);
                f = fopen(file, "r+b");
                fseek(f, 5000, SEEK_SET);
                putc(byte, f);
                fclose(f);
                err = (lw_error){0};
                cr_assert(solve(&got, g, backends[first], dtype, file, NULL, next, &err) == LW_OK, "%s",
                          err.message);
                cr_expect(got.relaxations < 0.7 * 300.0 * 300 * 300, "it began afresh");
                size_t count = 300 * 300;
                cr_expect(memcmp(want.distance, got.distance, count * (size_t)lw_paths_size(want.type)) == 0);
                if (next)
                    cr_expect(memcmp(want.next, got.next, count * sizeof *want.next) == 0);
                cr_expect(access(file, F_OK) != 0, "the checkpoint stayed after the end");
                lw_paths_free(&want);
                lw_paths_free(&got);
                lw_graph_free(g);
                lw_graph_free(other);
            }
}

/* Longest distances around the limits of 16 and 32 bits, proved and not, on both CPU rows. */
Test(paths, limits)
{
    static const int64_t sums[] = {16383,
                                   16384,
                                   32766,
                                   32767,
                                   65535,
                                   536870911,
                                   536870912,
                                   1073741822,
                                   1073741823,
                                   1073741824,
                                   2147483646,
                                   INT64_C(2147483647),
                                   INT64_C(4294967296)};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        for (int pieces = 1; pieces <= 40; pieces += 13)
            for (int b = 0; b < 2; b++)
                for (int negative = 0; negative < 2; negative++) {
                    int64_t weights[64], n = pieces + 2;
                    for (int p = 0; p < pieces; p++)
                        weights[p] = sums[i] / pieces + (p < sums[i] % pieces);
                    weights[pieces] = negative ? -1 : 0;
                    lw_graph *g = path_graph(n, weights);
                    const char *backend = b ? "cpu" : "scalar";
                    lw_paths d;
                    lw_error err = {0};
                    lw_status status = solve(&d, g, backend, LW_PATHS_S64, NULL, NULL, true, &err);
                    cr_assert(status == LW_OK, "%s", err.message);
                    const int64_t *wide = d.distance;
                    cr_expect(wide[pieces] == sums[i], "%lld is %lld", (long long)sums[i],
                              (long long)wide[pieces]);
                    cr_expect(wide[pieces + 1] == sums[i] - negative);
                    cr_expect(wide[n] == INT64_MAX, "what is not reached");
                    cr_expect(d.next[pieces] == 1 && d.next[n] == -1);
                    lw_paths_free(&d);
                    status = solve(&d, g, backend, LW_PATHS_S32, NULL, NULL, false, &err);
                    if (sums[i] > 1073741823) {
                        cr_expect(status == LW_E_RANGE && strstr(err.message, "--dtype int64"));
                    } else {
                        cr_assert(status == LW_OK, "%s", err.message);
                        const int32_t *narrow = d.distance;
                        cr_expect(narrow[pieces] == sums[i] && narrow[n] == INT32_MAX);
                        lw_paths_free(&d);
                    }
                    lw_graph_free(g);
                }
}

Test(paths, bounds_hold)
{
    for (int trial = 0; trial < 60; trial++) {
        int64_t n = 2 + draw(40);
        lw_edges edges = {0};
        lw_graph *g;
        for (int64_t e = 0; e < 2 * n; e++)
            lw_edges_add(&edges, draw((uint32_t)n), draw((uint32_t)n), lw_weight_whole(draw(100)), NULL);
        cr_assert(lw_graph_build(&g, n, &edges, NULL, false, trial % 2, 1, NULL) == LW_OK);
        int64_t by_sum = lw_bound_by_sum(g), by_search = by_sum;
        cr_assert(lw_bound_by_search(g, &by_search, NULL, NULL) == LW_OK);
        lw_paths d;
        cr_assert(solve(&d, g, "scalar", LW_PATHS_S32, NULL, NULL, false, NULL) == LW_OK);
        for (int64_t i = 0; i < n * n; i++) {
            int32_t x = ((int32_t *)d.distance)[i];
            cr_expect(x == INT32_MAX || (x <= by_search && x <= by_sum), "%d is above a bound", x);
        }
        lw_paths_free(&d);
        lw_graph_free(g);
    }
}

/* The cycle named in the message is walked: its edges exist and their sum is negative, as it says. */
Test(paths, negative_cycles_are_real)
{
    for (int trial = 0; trial < 100; trial++) {
        int64_t n = 3 + draw(60);
        lw_edges edges = {0};
        lw_graph *g;
        for (int64_t e = 0; e < 3 * n; e++)
            lw_edges_add(&edges, draw((uint32_t)n), draw((uint32_t)n),
                         lw_weight_whole((int64_t)draw(100) - (trial % 3 ? 20 : 8)), NULL);
        cr_assert(lw_graph_build(&g, n, &edges, NULL, false, false, 1, NULL) == LW_OK);
        /* the textbook on int64 says whether there is one */
        int64_t *d = malloc((size_t)(n * n) * sizeof *d);
        for (int64_t i = 0; i < n * n; i++)
            d[i] = i % (n + 1) ? INT64_C(1) << 50 : 0;
        for (int64_t u = 0; u < n; u++)
            for (int64_t e = g->start[u]; e < g->start[u + 1]; e++)
                if (g->whole[e] < d[u * n + g->to[e]])
                    d[u * n + g->to[e]] = g->whole[e];
        bool negative = false;
        for (int64_t k = 0; k < n && !negative; k++)
            for (int64_t i = 0; i < n && !negative; i++) {
                for (int64_t j = 0; j < n; j++)
                    if (d[i * n + k] + d[k * n + j] < d[i * n + j])
                        d[i * n + j] = d[i * n + k] + d[k * n + j];
                negative = d[i * n + i] < 0;
            }
        free(d);
        lw_paths out;
        lw_error err = {0};
        lw_status status = solve(&out, g, "cpu", LW_PATHS_S64, NULL, NULL, false, &err);
        cr_expect(status == (negative ? LW_E_INPUT : LW_OK), "trial %d: %s", trial, err.message);
        if (status == LW_OK) {
            lw_paths_free(&out);
        } else {
            long long sum, walked = 0, from, to;
            char *list = strstr(err.message, "minimum: ");
            cr_assert(list && sscanf(strstr(err.message, "sum "), "sum %lld", &sum) == 1, "%s", err.message);
            if (!strstr(list, "...")) {
                char *p = list + 9;
                long long first = from = strtoll(p, &p, 10);
                while (strncmp(p, " -> ", 4) == 0) {
                    to = strtoll(p + 4, &p, 10);
                    int64_t e = g->start[from - 1];
                    while (e < g->start[from] && g->to[e] != to - 1)
                        e++;
                    cr_assert(e < g->start[from], "%s: no edge %lld -> %lld", err.message, from, to);
                    walked += g->whole[e];
                    from = to;
                }
                cr_expect(from == first && walked == sum && sum < 0, "%s", err.message);
            }
        }
        lw_graph_free(g);
    }
}

Test(npy, header_is_numpys)
{
    char head[LW_NPY_HEADER];
    int64_t shape[] = {3, 4};
    size_t n = lw_npy_header(head, LW_I32, 2, shape);
    cr_expect(n == 128);
    cr_expect(memcmp(head + 10, "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }", 59) == 0);
    cr_expect(head[127] == '\n');
    n = lw_npy_header(head, LW_U8, 1, shape);
    cr_expect(n % 64 == 0 &&
              memcmp(head + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", 57) == 0);
}

Test(npy, halves)
{
    static const struct {
        uint16_t half;
        float value;
    } cases[] = {{0, 0.0f},     {0x3C00, 1.0f},           {0xC000, -2.0f},   {0x7BFF, 65504.0f},
                 {1, 0x1p-24f}, {0x3FF, 1023 * 0x1p-24f}, {0x400, 0x1p-14f}, {0x7C00, INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(lw_half_to_float(cases[i].half) == cases[i].value, "%04x", cases[i].half);
}

/* ape#64: more than 46,340 vertices, so that i * n + j passes 2^31. The matrices are mapped and all but
 * empty. */
Test(paths, places_past_32_bits)
{
    enum { N = 46342 };
    size_t bytes = (size_t)N * N * 4;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    int32_t *d = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    int32_t *next = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (d == MAP_FAILED || next == MAP_FAILED)
        cr_skip_test("no address space for two matrices of 46,342 vertices");
    int64_t weights[N - 1];
    for (int64_t i = 0; i < N - 1; i++)
        weights[i] = 7;
    lw_graph *g = path_graph(N, weights);
    lw_paths p = {.n = N, .type = LW_PATHS_S32, .distance = d, .next = next};
    for (int64_t i = N - 3; i < N; i++)
        for (int64_t j = N - 3; j < N; j++) {
            d[i * N + j] = j < i ? INT32_MAX : (int32_t)(7 * (j - i));
            next[i * N + j] = (int32_t)(j < i ? -1 : j == i ? i : i + 1);
        }
    char list[] = "/tmp/lw-pairs-XXXXXX", out[] = "/tmp/lw-routes-XXXXXX", text[256] = "";
    lw_error err = {0};
    lw_paths_pairs *pairs;
    int fd = mkstemp(list);
    cr_assert(fd >= 0 && dprintf(fd, "46340 46342\n46342 46341\n") > 0);
    close(fd);
    close(mkstemp(out));
    cr_assert(lw_paths_pairs_read(&pairs, g, list, &err) == LW_OK, "%s", err.message);
    cr_assert(lw_paths_write_routes(&p, g, pairs, out, NULL, &err) == LW_OK, "%s", err.message);
    FILE *f = fopen(out, "r");
    cr_assert(f && fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    cr_expect_str_eq(text, "#from\tto\tdistance\thops\troute\n46340\t46342\t14\t2\t46340,46341,46342\n"
                           "46342\t46341\tinf\t-1\t*\n");
    remove(list), remove(out);
    lw_paths_pairs_free(pairs);
    lw_graph_free(g);
    munmap(d, bytes), munmap(next, bytes);
}
