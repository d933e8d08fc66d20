/* align.c - what the alignment driver and all its backends share: the table of backends and the size
 * of trace windows. */
#include "align/align_backend.h"

#include <stdlib.h>

#include "common/fail.h"

const lw_align_backend *const lw_align_backends[] = {&lw_align_scalar, &lw_align_cpu, &lw_align_cuda_dpx,
                                                     &lw_align_cuda_half2, &lw_align_cuda_int};
const int lw_align_backend_count = (int)(sizeof lw_align_backends / sizeof *lw_align_backends);

int lw_align_backend_list(int device, lw_backend_info *out, int capacity)
{
    const lw_backend *rows[sizeof lw_align_backends / sizeof *lw_align_backends];
    for (int i = 0; i < lw_align_backend_count; i++)
        rows[i] = &lw_align_backends[i]->base;
    return lw_backend_describe(rows, lw_align_backend_count, device, out, capacity);
}

int64_t lw_gap_letters(const lw_scoring *scoring, int64_t price)
{
    int64_t letters = 0;
    for (int piece = 0; piece < (scoring->two_piece ? 2 : 1); piece++) {
        int64_t room = price - (piece ? scoring->gap_open2 : scoring->gap_open);
        int64_t extend = piece ? scoring->gap_extend2 : scoring->gap_extend;
        if (extend == 0)
            return -1;
        if (room > 0 && room / extend > letters)
            letters = room / extend;
    }
    return letters;
}

/* Every path that ends at (qend, tend) with score S consumes at most qend query letters in its diagonal
 * steps, each worth at most max = max(max_score, 0). With D > 0 deleted target letters it pays at least
 * open + D * extend, so S <= qend * max - open - D * extend, that is
 *     D <= (qend * max - open - S) / extend,
 * and it spans at most qend + D target letters. With two pieces it pays at least the less of two such prices,
 * and D is at most the greater of the two bounds. With extend = 0 there is no such bound. Cells outside the
 * window can only lower-bound H inside it, and H on a path that attains S cannot be lower than it is in the
 * whole matrix without S being lower too; so each test of the walk back comes out the same. */
void lw_trace_window(const lw_scoring *scoring, lw_mode mode, const lw_hit *hit, lw_trace_task *task)
{
    int64_t span = hit->tend;
    if (mode != LW_GLOBAL) {
        int64_t max_score = scoring->max_score > 0 ? scoring->max_score : 0;
        int64_t letters = lw_gap_letters(scoring, hit->qend * max_score - hit->score);
        if (letters >= 0)
            span = hit->qend + letters;
    }
    if (span > hit->tend)
        span = hit->tend;
    task->target = hit->target;
    task->qlen = hit->qend;
    task->tbegin = (int32_t)(hit->tend - span);
    task->tlen = (int32_t)span;
    task->score = hit->score;
    task->reverse = hit->reverse;
}

lw_status lw_align_pairs_with(const lw_align_backend *backend, void *context, const lw_align_setup *setup,
                              const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits, lw_path *paths,
                              lw_cigars *cigars, lw_error *err)
{
    if (backend->pairs && setup->strands == LW_FORWARD)
        return backend->pairs(context, queries, targets, hits, paths, cigars, err);
    const int64_t n = queries->n;
    LW_TRY(backend->pair_ends(context, queries, targets, hits, err));
    lw_trace_task *tasks = calloc((size_t)n + 1, sizeof *tasks);
    lw_path *traced = malloc(((size_t)n + 1) * sizeof *traced);
    lw_status status = LW_OK;
    if (!tasks || !traced) {
        status = lw_fail_memory(err, (size_t)n * (sizeof *tasks + sizeof *traced));
        goto end;
    }
    int64_t n_tasks = 0;
    for (int64_t i = 0; i < n; i++) {
        if (hits[i].target < 0)
            continue;
        lw_trace_window(setup->scoring, setup->mode, &hits[i], &tasks[n_tasks]);
        tasks[n_tasks++].query = i;
    }
    LW_TRY_END(backend->trace(context, queries, targets, n_tasks, tasks, traced, cigars, err));
    n_tasks = 0;
    for (int64_t i = 0; i < n; i++)
        paths[i] = hits[i].target < 0 ? (lw_path){0} : traced[n_tasks++];
end:
    free(tasks);
    free(traced);
    return status;
}
