/* search_cpu_lists.c - what becomes of scores and bounds: the best so far, lists for later passes,
 * candidates. */
#include <stdlib.h>
#include <string.h>

#include "align/search_cpu.h"
#include "align/search_cpu_tuning.h"
#include "common/fail.h"

lw_status lw_scan_put_on_list(lw_scan_list *l, int32_t subject, int32_t at_most, lw_error *err)
{
    if (l->n == l->capacity) {
        int64_t capacity = l->capacity ? 2 * l->capacity : 64;
        lw_search_hit *more = realloc(l->entry, (size_t)capacity * sizeof *more);
        if (!more)
            return lw_fail_memory(err, (size_t)capacity * sizeof *more);
        l->entry = more;
        l->capacity = capacity;
    }
    l->entry[l->n++] = (lw_search_hit){.score = at_most, .subject = subject};
    return LW_OK;
}

/* What becomes of a score; the caller holds the lock. */
static lw_status file_score(lw_scan_call *call, int32_t query, int32_t subject, int32_t score, lw_error *err)
{
    if (call->filtering)
        return lw_scan_put_on_list(&call->later[query], subject, INT32_MAX, err);
    if (score == LW_SEARCH_OVERFLOW) {
        call->rescued++;
        return lw_scan_put_on_list(&call->later[query], subject, INT32_MAX, err);
    }
    return lw_top_add(&call->tops[query], (lw_search_hit){.score = score, .subject = subject},
                      call->request->top_n, call->cpu->setup.database->order, err);
}

enum { SHORT = -2 }; /* in place of a score that cannot be among the best */

void lw_scan_drop_short(lw_scan_list *l, int32_t bar)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < l->n; k++)
        if (l->entry[k].score >= bar)
            l->entry[kept++] = l->entry[k];
    l->n = kept;
}

/* Files the values of screened subjects of a query; the caller holds the lock. */
static lw_status file_bounds(lw_scan_call *call, int32_t query, const int32_t *subjects, int64_t n,
                             const int32_t *values, int64_t stride, lw_error *err)
{
    const int32_t above = call->cpu->screen.above, bar = call->tops[query].min_score;
    lw_scan_screening *screen = &call->screens[query];
    for (int64_t i = 0; i < n; i++) {
        int32_t value = values[i * stride];
        if (value == LW_SEARCH_OVERFLOW) {
            call->rescued++;
            screen->overflows++;
            LW_TRY(lw_scan_put_on_list(&call->later[query], subjects[i], INT32_MAX, err));
        } else if (value != SHORT && value + above >= bar) {
            LW_TRY(lw_scan_put_on_list(&screen->candidates, subjects[i], value + above, err));
        }
    }
    screen->seen += n;
    return LW_OK;
}

lw_status lw_scan_file_scores(lw_scan_call *call, lw_scan_form kind, const int32_t *queries,
                              int32_t n_queries, const int32_t *subjects, int64_t n, int32_t *scores,
                              lw_error *err)
{
    int64_t n_short = 0;
    for (int32_t q = 0; q < n_queries; q++) {
        int32_t least = call->request->min_score[queries[q]];
        if (kind == LW_SCAN_FILTER) {
            least = call->request->filter[queries[q]];
        } else {
            pthread_mutex_lock(&call->lock);
            least = call->tops[queries[q]].min_score - (kind == LW_SCAN_SCREEN ? call->cpu->screen.above : 0);
            pthread_mutex_unlock(&call->lock);
        }
        for (int64_t i = 0; i < n; i++) {
            int32_t *score = &scores[i * n_queries + q];
            if (*score < least && *score != LW_SEARCH_OVERFLOW) {
                *score = SHORT;
                n_short++;
            }
        }
    }
    if (n_short == n * n_queries && kind != LW_SCAN_FILTER)
        return LW_OK;
    lw_status status = LW_OK;
    pthread_mutex_lock(&call->lock);
    if (kind == LW_SCAN_FILTER)
        call->filtered += n_short;
    for (int32_t q = 0; q < n_queries && status == LW_OK; q++) {
        if (kind == LW_SCAN_SCREEN)
            status = file_bounds(call, queries[q], subjects, n, scores + q, n_queries, err);
        for (int64_t i = 0; kind != LW_SCAN_SCREEN && i < n && status == LW_OK; i++)
            if (scores[i * n_queries + q] != SHORT)
                status = file_score(call, queries[q], subjects[i], scores[i * n_queries + q], err);
    }
    pthread_mutex_unlock(&call->lock);
    return status;
}

int lw_scan_by_subject(const void *a, const void *b)
{
    int32_t x = ((const lw_search_hit *)a)->subject, y = ((const lw_search_hit *)b)->subject;
    return x < y ? -1 : x > y;
}

void lw_scan_raise_bar(lw_scan_call *call, int32_t query)
{
    lw_top *top = &call->tops[query];
    if (top->n >= call->request->top_n) {
        top->n = lw_top_sort(top->hits, top->n, call->request->top_n, call->cpu->setup.database->order);
        top->min_score = top->hits[top->n - 1].score;
    }
}

lw_status lw_scan_take_best(lw_scan_call *call, int32_t query, int64_t n, lw_scan_list *to, lw_error *err)
{
    lw_scan_list *from = &call->screens[query].candidates;
    const int64_t first =
        from->n > n ? lw_top_sort(from->entry, from->n, (int32_t)n, call->cpu->setup.database->order)
                    : from->n;
    to->n = 0;
    for (int64_t k = 0; k < first; k++)
        LW_TRY(lw_scan_put_on_list(to, from->entry[k].subject, from->entry[k].score, err));
    from->n -= first;
    if (from->n)
        memmove(from->entry, from->entry + first, (size_t)from->n * sizeof *from->entry);
    return LW_OK;
}

int64_t lw_scan_n_promising(const lw_scan_call *call)
{
    const int64_t lanes = call->cpu->kernels->vector_bytes >> call->width,
                  twice = 2 * (int64_t)call->request->top_n;
    return twice > lanes ? twice : lanes;
}

/* Whether so many subjects stay that screening saves nothing, once the bar has had time to rise. */
static bool too_many_stay(const lw_scan_call *call, int32_t query)
{
    const lw_scan_screening *screen = &call->screens[query];
    return screen->seen >= (int64_t)call->request->top_n * search_cpu_tuning.screen_settled &&
           screen->candidates.n + screen->overflows > screen->seen / search_cpu_tuning.screen_share;
}

lw_status lw_scan_score_promising(lw_scan_call *call, lw_scan_worker *w, int32_t query, lw_error *err)
{
    lw_scan_screening *screen = &call->screens[query];
    lw_scan_list best = {0};
    lw_status status = LW_OK;
    for (bool again = true; again;) {
        best.n = 0;
        pthread_mutex_lock(&call->lock);
        const int32_t bar = call->tops[query].min_score;
        const bool many = too_many_stay(call, query);
        if (screen->on && (many || screen->candidates.n >= screen->wait))
            status = lw_scan_take_best(call, query, lw_scan_n_promising(call), &best, err);
        screen->on = screen->on && (!many || best.n > 0); /* none: all overflow */
        pthread_mutex_unlock(&call->lock);
        if (status != LW_OK || best.n == 0)
            break;
        LW_TRY_END(lw_scan_score_subjects(call, w, call->width, query, best.entry, best.n, err));
        pthread_mutex_lock(&call->lock);
        lw_scan_raise_bar(call, query);
        lw_scan_drop_short(&screen->candidates, call->tops[query].min_score);
        screen->wait = screen->candidates.n + search_cpu_tuning.screen_round;
        again = too_many_stay(call, query);
        if (again && call->tops[query].min_score == bar)
            screen->on = again = false;
        pthread_mutex_unlock(&call->lock);
    }
end:
    free(best.entry);
    return status;
}

lw_status lw_scan_score_overflows(lw_scan_call *call, lw_scan_worker *w, int32_t query, lw_error *err)
{
    const int32_t *len = call->cpu->setup.database->len, m = call->request->queries->len[query];
    int32_t zero, limit;
    lw_scan_set_range(call->cpu, call->width + 1, false, &zero, &limit);
    lw_scan_list now = {0};
    lw_status status = LW_OK;
    pthread_mutex_lock(&call->lock);
    lw_scan_list *later = &call->later[query];
    int64_t kept = 0;
    for (int64_t k = 0; k < later->n; k++) {
        const int64_t n = len[later->entry[k].subject], shorter = n < m ? n : m;
        if (status == LW_OK && shorter * call->cpu->high < (int64_t)limit - zero)
            status = lw_scan_put_on_list(&now, later->entry[k].subject, INT32_MAX, err);
        else
            later->entry[kept++] = later->entry[k];
    }
    later->n = kept;
    pthread_mutex_unlock(&call->lock);
    if (status == LW_OK && now.n > 0)
        status = lw_scan_score_subjects(call, w, call->width + 1, query, now.entry, now.n, err);
    if (status == LW_OK && now.n > 0) {
        pthread_mutex_lock(&call->lock);
        lw_scan_raise_bar(call, query);
        lw_scan_drop_short(&call->screens[query].candidates, call->tops[query].min_score);
        pthread_mutex_unlock(&call->lock);
    }
    free(now.entry);
    return status;
}
