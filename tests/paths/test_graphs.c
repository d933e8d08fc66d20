/* test_graphs.c - the proof that the bench relies on: right matrices pass, wrong ones do not. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "paths/paths_backend.h"
#include "paths_graphs.h"

static const paths_kind kinds[] = {
    {"s32", LW_PATHS_S32, 100, LW_PATHS_INF_S32 - 1, false, 1, false},
    {"s64", LW_PATHS_S64, 100, LW_PATHS_INF_S64 - 1, false, 1, false},
    {"f32", LW_PATHS_F32, 100, 0, false, 1, false},
    {"f64", LW_PATHS_F64, 100, 0, false, 1, false},
    {"next", LW_PATHS_S32, 100, LW_PATHS_INF_S32 - 1, true, 1, false},
};

static void solve(const paths_graph *g)
{
    void *context = NULL;
    lw_error err = {0};
    lw_paths_setup setup = {0};
    lw_paths_report report = {0};
    cr_assert(paths_graph_fill(g, NULL, &err) == LW_OK);
    cr_assert(lw_paths_scalar.open(&lw_paths_scalar, &context, &setup, &err) == LW_OK);
    lw_paths_job job = {.type = g->kind->type,
                        .n = g->n,
                        .matrix = g->matrix,
                        .ld = g->n,
                        .high = g->kind->high,
                        .max_weight = g->kind->most,
                        .next = g->next,
                        .next_ld = g->n,
                        .edge_start = g->start,
                        .edge_to = g->to,
                        .edge_weight = g->weight};
    cr_assert(lw_paths_scalar.solve(context, &job, &report, &err) == LW_OK, "%s", err.message);
    lw_paths_scalar.close(context);
}

/* Adds `by` (or, with INFINITY, takes the path away) to one entry; returns whether the proof still holds. */
static bool holds_after(const paths_graph *g, int64_t at, double by)
{
    char before[8];
    lw_error err = {0};
    int64_t size = lw_paths_size(g->kind->type);
    char *entry = (char *)g->matrix + at * size;
    memcpy(before, entry, (size_t)size);
    switch (g->kind->type) {
    case LW_PATHS_S32:
        *(int32_t *)entry = isinf(by) ? LW_PATHS_INF_S32 : *(int32_t *)entry + (int32_t)by;
        break;
    case LW_PATHS_S64:
        *(int64_t *)entry = isinf(by) ? LW_PATHS_INF_S64 : *(int64_t *)entry + (int64_t)by;
        break;
    case LW_PATHS_F32:
        *(float *)entry += (float)by;
        break;
    case LW_PATHS_F64:
        *(double *)entry += by;
        break;
    }
    lw_status status = paths_graph_verify(g, NULL, "test", &err);
    memcpy(entry, before, (size_t)size);
    cr_expect(status == LW_OK || (status == LW_E_INTERNAL && strstr(err.message, "no speed is shown")), "%s",
              err.message);
    return status == LW_OK;
}

Test(paths_graphs, wrong_results_are_refused)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        paths_graph g;
        lw_error err = {0};
        uint64_t sum, other;
        int64_t n = 61;
        cr_assert(paths_graph_random(&g, &kinds[k], n, 4, &err) == LW_OK);
        solve(&g);
        cr_assert(paths_graph_verify(&g, NULL, "test", &err) == LW_OK, "%s: %s", kinds[k].name, err.message);
        cr_assert(paths_graph_checksum(&g, NULL, &sum, &err) == LW_OK);
        static const int64_t places[] = {0, 1, 60, 61 * 30 + 31, 61 * 60, 61 * 61 - 1};
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            cr_expect(!holds_after(&g, places[p], 1), "%s: one too long at %lld", kinds[k].name,
                      (long long)places[p]);
            cr_expect(!holds_after(&g, places[p], -1), "%s: one too short at %lld", kinds[k].name,
                      (long long)places[p]);
            cr_expect(!holds_after(&g, places[p], INFINITY), "%s: no path at %lld", kinds[k].name,
                      (long long)places[p]);
        }
        for (int64_t at = 0; g.next && at < n * n; at += 7) {
            int32_t before = g.next[at];
            g.next[at] = (int32_t)((before + 1) % n);
            cr_expect(paths_graph_verify(&g, NULL, "test", &(lw_error){0}) == LW_E_INTERNAL);
            cr_assert(paths_graph_checksum(&g, NULL, &other, &err) == LW_OK);
            cr_expect(other != sum);
            g.next[at] = before;
        }
        cr_expect(holds_after(&g, 5, 0));
        paths_graph_free(&g);
    }
}

Test(paths_graphs, interactions_are_symmetric_and_connected_enough)
{
    paths_graph g;
    lw_error err = {0};
    int64_t n = 500, largest = 0;
    cr_assert(paths_graph_interactions(&g, &kinds[0], n, 20 * n, &err) == LW_OK);
    for (int64_t u = 0; u < n; u++) {
        int64_t degree = g.start[u + 1] - g.start[u];
        cr_expect(degree > 0, "vertex %lld is alone", (long long)u);
        largest = degree > largest ? degree : largest;
        for (int64_t e = g.start[u]; e < g.start[u + 1]; e++) {
            bool back = false;
            for (int64_t f = g.start[g.to[e]]; f < g.start[g.to[e] + 1]; f++)
                back |= g.to[f] == u && ((int32_t *)g.weight)[f] == ((int32_t *)g.weight)[e];
            cr_expect(back && g.to[e] != u);
        }
    }
    cr_expect(largest > 4 * g.start[n] / n, "the largest degree is %lld", (long long)largest);
    paths_graph_free(&g);
}
