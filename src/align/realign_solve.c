/* realign_solve.c - many reads in their windows, by any backend: ends, paths, and wider windows where an
 * alignment touches the edge of its own. */
#include "align/realign.h"

#include <stdlib.h>
#include <string.h>

#include "align/realign_tuning.h"
#include "common/fail.h"

static lw_status resize(void *array, int64_t n, size_t size, lw_error *err)
{
    void *grown = realloc(*(void **)array, (size_t)n * size);
    if (!grown)
        return lw_fail_memory(err, (size_t)n * size);
    *(void **)array = grown;
    return LW_OK;
}

static lw_status reserve(lw_realign_solver *s, int64_t n, lw_error *err)
{
    if (n <= s->capacity)
        return LW_OK;
    LW_TRY(resize(&s->task, n, sizeof *s->task, err));
    LW_TRY(resize(&s->query_start, n, sizeof *s->query_start, err));
    LW_TRY(resize(&s->query_len, n, sizeof *s->query_len, err));
    LW_TRY(resize(&s->target_start, n, sizeof *s->target_start, err));
    LW_TRY(resize(&s->target_len, n, sizeof *s->target_len, err));
    LW_TRY(resize(&s->hit, n, sizeof *s->hit, err));
    LW_TRY(resize(&s->trace, n, sizeof *s->trace, err));
    LW_TRY(resize(&s->path, n, sizeof *s->path, err));
    s->capacity = n;
    return LW_OK;
}

void lw_realign_solver_free(lw_realign_solver *s)
{
    free(s->task);
    free(s->query_start);
    free(s->query_len);
    free(s->target_start);
    free(s->target_len);
    free(s->hit);
    free(s->trace);
    free(s->path);
    *s = (lw_realign_solver){0};
}

/* The window of a task: letters first .. first + len - 1 of its target. */
static void window(const lw_realign_task *t, int64_t pad, int32_t target_len, int32_t *first, int32_t *len)
{
    int64_t begin = t->start - pad, end = t->end + pad;
    *first = (int32_t)(begin > 0 ? begin : 0);
    *len = (int32_t)(end < target_len ? end : target_len) - *first;
}

/* One round: the tasks listed in s->task[0 .. n) in windows of `pad`. Lists those that touch an edge again
 * and returns their number in *left. */
static lw_status solve_round(lw_realign_solver *s, const lw_seqs *reads, const lw_seqs *targets, int64_t n,
                             int64_t pad, lw_realign_task *tasks, lw_cigars *cigars, int64_t *left,
                             lw_error *err)
{
    for (int64_t k = 0; k < n; k++) {
        const lw_realign_task *t = &tasks[s->task[k]];
        int32_t first;
        window(t, pad, targets->len[t->target], &first, &s->target_len[k]);
        s->target_start[k] = targets->start[t->target] + first;
        s->query_start[k] = reads->start[t->read];
        s->query_len[k] = reads->len[t->read];
        s->cells += (double)s->query_len[k] * (double)s->target_len[k];
    }
    lw_seqs q = {.n = n, .codes = reads->codes, .start = s->query_start, .len = s->query_len};
    lw_seqs w = {.n = n, .codes = targets->codes, .start = s->target_start, .len = s->target_len};
    LW_TRY(s->backend->pair_ends(s->context, &q, &w, s->hit, err));
    for (int64_t k = 0; k < n; k++) {
        const lw_realign_task *t = &tasks[s->task[k]];
        lw_hit *hit = &s->hit[k];
        int32_t first = (int32_t)(s->target_start[k] - targets->start[t->target]);
        if (hit->score == t->present)
            hit->tend = t->end - first;
        s->trace[k] = (lw_trace_task){.query = k};
        lw_trace_window(s->scoring, LW_SEMIGLOBAL, hit, &s->trace[k]);
        s->trace[k].target = k;
    }
    LW_TRY(s->backend->trace(s->context, &q, &w, n, s->trace, s->path, cigars, err));
    *left = 0;
    for (int64_t k = 0; k < n; k++) {
        lw_realign_task *t = &tasks[s->task[k]];
        int32_t first = (int32_t)(s->target_start[k] - targets->start[t->target]);
        int32_t last = first + s->target_len[k];
        t->score = s->hit[k].score;
        t->new_start = first + s->path[k].tstart;
        t->new_end = first + s->hit[k].tend;
        t->cigar = s->path[k].cigar;
        t->n_cigar = s->path[k].n_cigar;
        t->at_edge =
            (t->new_start == first && first > 0) || (t->new_end == last && last < targets->len[t->target]);
        if (t->at_edge)
            s->task[(*left)++] = s->task[k]; /* at or before k */
    }
    return LW_OK;
}

lw_status lw_realign_solve(lw_realign_solver *s, const lw_seqs *reads, const lw_seqs *targets, int64_t n,
                           lw_realign_task *tasks, lw_cigars *cigars, lw_error *err)
{
    LW_TRY(reserve(s, n, err));
    for (int64_t i = 0; i < n; i++)
        s->task[i] = i;
    int64_t left = n;
    for (int64_t pads = 1; pads <= LW_REALIGN_MOST_PADS && left > 0; pads *= 2) {
        for (int64_t k = 0; pads > 1 && k < left; k++)
            tasks[s->task[k]].widened = true;
        LW_TRY(solve_round(s, reads, targets, left, pads * s->pad, tasks, cigars, &left, err));
    }
    return LW_OK;
}
