/* paths_run.c - the runs of a job: over the whole graph, one per component, once more for next hops. */
#include "paths/paths_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fail.h"
#include "paths/bounds.h"
#include "paths/paths_arcs.h"
#include "paths/paths_convert.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The largest finite entry of a matrix of whole non-negative distances. */
static int64_t largest_finite(const void *matrix, lw_paths_type type, int64_t count)
{
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t d = type == LW_PATHS_S32 ? ((const int32_t *)matrix)[i] : ((const int64_t *)matrix)[i];
        most = d > most && d < lw_plan_infinity(type) ? d : most;
    }
    return most;
}

/* Solves the arcs in matrix (n * n of the inner type, filled here), next hops included; matrix is then of
 * plan.inner, which may have changed from s32 to s64 if a look at the result asked for it. *matrix is made
 * larger then. */
static lw_status solve_arcs(lw_run *r, const int32_t *members, int64_t n, const int32_t *local, void **matrix,
                            int32_t *next, lw_error *err)
{
    lw_plan *p = &r->plan;
    const lw_paths_options *o = r->options;
    lw_arcs a = {0};
    lw_status status = LW_OK;
    for (;;) {
        LW_TRY(lw_arcs_make(&a, r->graph, p, r->potential, members, n, local, err));
        lw_paths_job job = {.type = p->inner, .n = n, .matrix = *matrix, .ld = n, .negative = p->negative};
        if (p->inner <= LW_PATHS_S64) {
            job.low = p->low * p->scale;
            job.high = lw_plan_limit(p);
            int64_t m = a.start[n];
            for (int64_t e = 0; e < m; e++) {
                int64_t w = p->inner == LW_PATHS_S32 ? ((int32_t *)a.weight)[e] : ((int64_t *)a.weight)[e];
                job.max_weight = w > job.max_weight ? w : job.max_weight;
            }
        }
        if (next) {
            job.next = next;
            job.next_ld = n;
            job.edge_start = a.start;
            job.edge_to = a.to;
            job.edge_weight = a.weight;
        }
        if (o->checkpoint) {
            lw_checkpoint *c = &r->checkpoint;
            lw_paths_type type = p->inner;
            c->last = now();
            c->type = p->inner;
            c->n = n;
            c->matrix = *matrix;
            LW_TRY_END(lw_checkpoint_peek(c->path, c->fingerprint, n, &type, &job.k_begin, err));
            if (type != p->inner) /* of the run in 32 bits that did not suffice */
                job.k_begin = 0;
            job.checkpoint_want = lw_checkpoint_want;
            job.checkpoint_save = lw_checkpoint_save;
            job.checkpoint_user = c;
        }
        if (job.k_begin > 0) {
            LW_TRY_END(lw_checkpoint_load(&r->checkpoint, *matrix, err));
            lw_say(o->host, LW_SAY_INFO, "resumed from %s: %lld of %lld pivots are done", o->checkpoint,
                   (long long)job.k_begin, (long long)n);
        } else {
            LW_TRY_END(lw_arcs_fill(&a, p->inner, *matrix, r->pool, err));
        }
        LW_TRY_END(r->backend->solve(r->context, &job, &r->report, err));
        if (p->proved || p->inner != LW_PATHS_S32 ||
            largest_finite(*matrix, p->inner, n * n) <= LW_PATHS_INF_S32 / 2)
            break;
        lw_say(o->host, LW_SAY_INFO, "distances pass half of int32's range: once more with 64 bits");
        p->inner = LW_PATHS_S64;
        p->proved = true;
        if (!lw_plan_fits(p, p->high, p->inner, p->scale > 1 ? r->graph->n : 0)) {
            status = lw_plan_refuse(p, err);
            goto end;
        }
        LW_TRY_END(r->backend->supports(r->backend, p->inner, err));
        void *larger = realloc(*matrix, (size_t)(n * n * 8));
        if (!larger) {
            status = lw_fail_memory(err, (size_t)(n * n * 8));
            goto end;
        }
        *matrix = larger;
        lw_arcs_free(&a);
    }
end:
    lw_arcs_free(&a);
    return status;
}

lw_status lw_run_checkpoint(lw_run *r, lw_paths_type result, lw_error *err)
{
    const lw_paths_options *o = r->options;
    const lw_graph *g = r->graph;
    lw_plan *p = &r->plan;
    int64_t m = g->start[g->n], kind[2] = {p->scale, result};
    uint64_t sum = lw_checksum(0, kind, sizeof kind);
    sum = lw_checksum(sum, g->start, (g->n + 1) * 8);
    sum = lw_checksum(sum, g->to, m * 4);
    sum = lw_checksum(sum, g->whole ? (const void *)g->whole : (const void *)g->real, m * 8);
    r->checkpoint = (lw_checkpoint){
        .path = o->checkpoint, .interval = o->checkpoint_seconds, .host = o->host, .fingerprint = sum};
    lw_paths_type type = p->inner;
    int64_t k;
    LW_TRY(lw_checkpoint_peek(o->checkpoint, sum, g->n, &type, &k, err));
    LW_TRY(lw_checkpoint_try(o->checkpoint, err));
    if (type != p->inner && type == LW_PATHS_S64) { /* it had been found that 32 bits do not suffice */
        p->inner = type;
        p->proved = true;
    }
    return LW_OK;
}

lw_status lw_run_whole(lw_run *r, lw_paths *out, lw_error *err)
{
    lw_paths_type to = out->type;
    LW_TRY(solve_arcs(r, NULL, out->n, NULL, &out->distance, out->next, err));
    if (out->n == 0)
        return LW_OK;
    lw_conversion c = {.plan = &r->plan, .to = to, .limit = lw_plan_limit(&r->plan)};
    return lw_convert_matrix(&c, out->distance, r->graph, r->pool, err);
}

lw_status lw_run_components(lw_run *r, lw_paths *out, lw_error *err)
{
    int64_t n = out->n, count, size = lw_paths_size(out->type);
    lw_status status = LW_OK;
    int32_t *component = malloc(((size_t)n + 1) * sizeof *component);
    int32_t *members = malloc(((size_t)n + 1) * sizeof *members),
            *local = malloc(((size_t)n + 1) * sizeof *local);
    int64_t *first = NULL;
    void *piece = NULL, *row = NULL;
    int32_t *piece_next = NULL;
    lw_host host = r->host;
    if (!component || !members || !local) {
        status = lw_fail_memory(err, (size_t)n * 12);
        goto end;
    }
    LW_TRY_END(lw_find_components(r->graph, component, &count, err));
    first = calloc((size_t)count + 2, sizeof *first);
    row = malloc((size_t)(n * size) + 8);
    if (!first || !row) {
        status = lw_fail_memory(err, (size_t)(count * 8 + n * size));
        goto end;
    }
    for (int64_t v = 0; v < n; v++)
        first[component[v] + 2]++;
    for (int64_t c = 0; c < count; c++)
        first[c + 2] += first[c + 1];
    for (int64_t v = 0; v < n; v++) /* first[c + 1] ends where component c + 1 begins */
        members[first[component[v] + 1]++] = (int32_t)v;
    int64_t largest = 0;
    for (int64_t c = 0; c < count; c++)
        for (int64_t at = first[c]; at < first[c + 1]; at++)
            local[members[at]] = (int32_t)(at - first[c]);
    for (int64_t c = 0; c < count; c++)
        largest = first[c + 1] - first[c] > largest ? first[c + 1] - first[c] : largest;
    lw_say(host.say ? &host : NULL, LW_SAY_INFO, "%lld connected components, the largest of %lld vertices",
           (long long)count, (long long)largest);
    for (int64_t i = 0; i < n; i++) /* nothing between components */
        for (int64_t j = 0; j < n; j++)
            switch (out->type) {
            case LW_PATHS_S32:
                ((int32_t *)out->distance)[i * n + j] = INT32_MAX;
                break;
            case LW_PATHS_S64:
                ((int64_t *)out->distance)[i * n + j] = INT64_MAX;
                break;
            case LW_PATHS_F32:
                ((float *)out->distance)[i * n + j] = INFINITY;
                break;
            case LW_PATHS_F64:
                ((double *)out->distance)[i * n + j] = INFINITY;
                break;
            }
    if (out->next)
        memset(out->next, 0xFF, (size_t)(n * n) * sizeof *out->next);
    for (int64_t c = 0; c < count; c++) {
        const int32_t *m = members + first[c];
        int64_t k = first[c + 1] - first[c];
        piece = malloc((size_t)(k * k * lw_paths_size(r->plan.inner)));
        piece_next = out->next ? malloc((size_t)(k * k) * sizeof *piece_next) : NULL;
        if (!piece || (out->next && !piece_next)) {
            status = lw_fail_memory(err, (size_t)(k * k * 12));
            goto end;
        }
        LW_TRY_END(solve_arcs(r, m, k, local, &piece, piece_next, err));
        lw_conversion conv = {.plan = &r->plan, .to = out->type, .limit = lw_plan_limit(&r->plan)};
        for (int64_t i = 0; i < k; i++) {
            const char *in = (const char *)piece + i * k * lw_paths_size(r->plan.inner);
            int64_t bad = lw_convert(&conv, row, in, k);
            if (bad >= 0) {
                status = lw_convert_refuse(r->graph, m[i], m[bad], lw_convert_one(&r->plan, in, bad), err);
                goto end;
            }
            for (int64_t j = 0; j < k; j++) {
                int64_t at = m[i] * n + m[j];
                memcpy((char *)out->distance + at * size, (char *)row + j * size, (size_t)size);
                if (out->next)
                    out->next[at] = piece_next[i * k + j] < 0 ? -1 : m[piece_next[i * k + j]];
            }
        }
        free(piece);
        free(piece_next);
        piece = NULL;
        piece_next = NULL;
        if (host.progress)
            host.progress(host.user, (double)first[c + 1], (double)n, r->report.relaxations);
    }
end:
    free(component);
    free(members);
    free(local);
    free(first);
    free(row);
    free(piece);
    free(piece_next);
    return status;
}

lw_status lw_run_grid_hops(lw_run *r, lw_paths *out, lw_error *err)
{
    int64_t n = out->n;
    lw_plan *p = &r->plan;
    /* what is run has no negative weights; the largest distance, doubled for the rounding of its computation
     * and of the grid */
    double reach = 0;
    for (int64_t i = 0; i < n * n; i++) {
        double d =
            out->type == LW_PATHS_F32 ? (double)((float *)out->distance)[i] : ((double *)out->distance)[i];
        reach = !isinf(d) && d > reach ? d : reach;
    }
    reach *= 2;
    *p = (lw_plan){.inner = LW_PATHS_S64, .proved = true, .scale = n + 1};
    /* (high - 2 low) * scale + hops < 2^62 - 1: with high = -low = 2^limit, 3 * 2^limit * 2^bits(scale) <=
     * 2^61 */
    int bits = 0;
    while ((INT64_C(1) << bits) <= n + 1)
        bits++;
    int exponent = 0;
    frexp(reach, &exponent); /* reach < 2^exponent */
    p->grid = reach > 0 ? 60 - bits - exponent : 0;
    p->high = INT64_C(1) << (60 - bits);
    lw_paths hops = {.n = n, .type = LW_PATHS_S64, .next = out->next};
    hops.distance = malloc((size_t)(n * n * 8) + 8);
    if (!hops.distance)
        return lw_fail_memory(err, (size_t)(n * n * 8));
    lw_status status =
        r->options->components ? lw_run_components(r, &hops, err) : lw_run_whole(r, &hops, err);
    free(hops.distance);
    return status;
}

void lw_run_undo_potential(const lw_run *r, lw_paths *out)
{
    const double *h = r->potential;
    for (int64_t i = 0; i < out->n; i++)
        for (int64_t j = 0; j < out->n; j++) {
            int64_t at = i * out->n + j;
            if (i == j)
                continue;
            if (out->type == LW_PATHS_F32)
                ((float *)out->distance)[at] = (float)((double)((float *)out->distance)[at] - h[i] + h[j]);
            else
                ((double *)out->distance)[at] += h[j] - h[i];
        }
}
