/* search_cpu_score.c - the kernels over subjects: many of them side by side, or one striped over all lanes.
 */
#include <stdlib.h>
#include <string.h>

#include "align/search_cpu.h"
#include "align/search_cpu_tuning.h"
#include "common/fail.h"

void lw_scan_set_range(const lw_scan *c, int width, bool gapless, int32_t *zero, int32_t *limit)
{
    static const int32_t lowest[LW_SCAN_WIDTHS] = {INT8_MIN, INT16_MIN, 0},
                         highest[LW_SCAN_WIDTHS] = {INT8_MAX, INT16_MAX, INT32_MAX};
    const lw_scoring *sc = c->setup.scoring;
    *zero = lowest[width];
    *limit = highest[width];
    if (!c->kernels->wraps || gapless || width == LW_SCAN_32)
        return;
    *zero += sc->gap_open + 2 * sc->gap_extend - c->low;
    *limit -= c->high - 1;
}

lw_status lw_scan_score(lw_scan_call *call, lw_scan_worker *w, lw_scan_form kind, int width,
                        const int32_t *queries, int32_t n_queries, int64_t n_subjects, lw_error *err)
{
    const lw_seqs *all = call->request->queries;
    const lw_scan *c = call->cpu;
    int32_t *len = malloc((size_t)n_queries * sizeof *len);
    int64_t letters = 0;
    for (int32_t q = 0; q < n_queries; q++)
        letters += (int64_t)all->len[queries[q]] + 1;
    uint8_t *codes = malloc((size_t)letters);
    lw_status status = LW_OK;
    if (!len || !codes) {
        status = lw_fail_memory(err, (size_t)letters);
        goto end;
    }
    uint8_t used[LW_MAX_LETTERS], seen[LW_MAX_LETTERS] = {0};
    int32_t n_used = 0;
    letters = 0;
    for (int32_t q = 0; q < n_queries; q++) {
        len[q] = all->len[queries[q]];
        memcpy(codes + letters, all->codes + all->start[queries[q]], (size_t)len[q]);
        if (kind == LW_SCAN_SCREEN && len[q] % 2)
            codes[letters + len[q]++] = LW_DATABASE_PAD;
        letters += len[q];
    }
    for (int64_t k = 0; k < letters; k++)
        seen[codes[k]] = 1;
    for (int code = 0; code < LW_MAX_LETTERS; code++)
        if (seen[code])
            used[n_used++] = (uint8_t)code;
    LW_TRY_END(
        lw_scan_reserve(&w->scores, &w->scores_capacity, n_subjects * n_queries, sizeof *w->scores, err));
    const int vector = c->kernels->vector_bytes;
    lw_search_job job = {.n_queries = n_queries,
                         .len = len,
                         .codes = codes,
                         .n_used = n_used,
                         .used = used,
                         .table = kind == LW_SCAN_SCREEN ? c->screen_table : c->table,
                         .open_extend = c->setup.scoring->gap_open + c->setup.scoring->gap_extend,
                         .extend = c->setup.scoring->gap_extend,
                         .plan = &w->plan,
                         .scores = w->scores};
    if (kind == LW_SCAN_SCREEN) {
        int64_t bytes = (int64_t)c->kernels->screen_scratch(&job);
        LW_TRY_END(
            lw_scan_reserve(&w->columns, &w->columns_capacity, bytes / vector + 1, (size_t)vector, err));
        job.scratch = w->columns;
        job.zero = c->screen.zero;
        job.limit = c->screen.limit;
        c->kernels->screen(&job);
    } else {
        /* two vectors a letter, and behind them one a query */
        LW_TRY_END(
            lw_scan_reserve(&w->columns, &w->columns_capacity, 2 * letters + n_queries, (size_t)vector, err));
        job.columns = w->columns;
        job.profile = w->profile;
        job.best = w->columns + 2 * letters * vector;
        lw_scan_set_range(c, width, kind == LW_SCAN_FILTER, &job.zero, &job.limit);
        (kind == LW_SCAN_FILTER ? c->kernels->gapless : c->kernels->score)[width](&job);
    }
end:
    free(len), free(codes);
    return status;
}

/* How many of the n subjects, longest first, go one by one, because too many lanes would be idle while they
 * last: the number that costs least, in rows of vectors. */
static int64_t count_long(const lw_scan_call *call, int width, int32_t query, const lw_search_hit *subjects,
                          int64_t n)
{
    const int32_t *len = call->cpu->setup.database->len;
    const int64_t lanes = call->cpu->kernels->vector_bytes >> width, m = call->request->queries->len[query];
    const int64_t striped_column = search_cpu_tuning.striped_rows + (m - 1) / lanes + 1;
    int64_t left = 0, striped = 0, first = 0, least = INT64_MAX;
    for (int64_t k = 0; k < n; k++)
        left += len[subjects[k].subject];
    for (int64_t k = 0; k <= n; k++) {
        int64_t longest = k < n ? len[subjects[k].subject] : 0;
        int64_t cost = striped * striped_column + (longest > left / lanes ? longest : left / lanes) * m;
        if (cost < least) {
            least = cost;
            first = k;
        }
        striped += longest;
        left -= longest;
    }
    return first;
}

/* The query, striped over lanes of this width: the rows, and the profile behind three columns. */
static lw_status make_stripes(const lw_scan_call *call, lw_scan_worker *w, int width, int32_t query,
                              lw_search_striped_job *job, lw_error *err)
{
    const lw_scan *c = call->cpu;
    const lw_database_view *db = c->setup.database;
    const uint8_t *codes = call->request->queries->codes + call->request->queries->start[query];
    const int32_t m = call->request->queries->len[query];
    const int vector = c->kernels->vector_bytes, lanes = vector >> width;
    const int32_t rows = (m - 1) / lanes + 1;
    LW_TRY(lw_scan_reserve(&w->columns, &w->columns_capacity, (3 + (int64_t)db->n_codes) * rows,
                           (size_t)vector, err));
    uint8_t *profile = w->columns + 3 * (size_t)rows * (size_t)vector, *to = profile;
    for (int t = 0; t < db->n_codes; t++)
        for (int32_t row = 0; row < rows; row++, to += vector)
            for (int lane = 0; lane < lanes; lane++) {
                int64_t i = (int64_t)lane * rows + row;
                int32_t s = i < m ? c->setup.scoring->score[codes[i] * LW_MAX_LETTERS + t] : c->low;
                if (width == LW_SCAN_8)
                    ((int8_t *)to)[lane] = (int8_t)s;
                else if (width == LW_SCAN_16)
                    ((int16_t *)(void *)to)[lane] = (int16_t)s;
                else
                    ((int32_t *)(void *)to)[lane] = s;
            }
    *job = (lw_search_striped_job){.rows = rows,
                                   .open_extend = c->setup.scoring->gap_open + c->setup.scoring->gap_extend,
                                   .extend = c->setup.scoring->gap_extend,
                                   .profile = profile,
                                   .columns = w->columns};
    return LW_OK;
}

static int by_promise(const void *a, const void *b)
{
    int32_t x = ((const lw_search_hit *)a)->score, y = ((const lw_search_hit *)b)->score;
    return x > y ? -1 : x == y ? lw_scan_by_subject(a, b) : 1;
}

/* Scores n subjects one by one, those that promise most first: the others may fall short of the bar then. */
static lw_status score_striped(lw_scan_call *call, lw_scan_worker *w, int width, int32_t query,
                               lw_search_hit *subjects, int64_t n, lw_error *err)
{
    const lw_scan *c = call->cpu;
    const lw_database_view *db = c->setup.database;
    lw_search_striped_job job;
    LW_TRY(make_stripes(call, w, width, query, &job, err));
    qsort(subjects, (size_t)n, sizeof *subjects, by_promise);
    for (int64_t k = 0; k < n; k++) {
        pthread_mutex_lock(&call->lock);
        if (call->request->top_n <= search_cpu_tuning.bar_hits)
            lw_scan_raise_bar(call, query);
        bool falls_short = subjects[k].score < call->tops[query].min_score;
        pthread_mutex_unlock(&call->lock);
        if (falls_short)
            break;
        job.subject = db->codes + db->start[subjects[k].subject];
        job.n = db->len[subjects[k].subject];
        int32_t score = c->kernels->striped[width](&job);
        LW_TRY(lw_scan_file_scores(call, LW_SCAN_EXACT, &query, 1, &subjects[k].subject, 1, &score, err));
    }
    return LW_OK;
}

lw_status lw_scan_score_subjects(lw_scan_call *call, lw_scan_worker *w, int width, int32_t query,
                                 lw_search_hit *subjects, int64_t n, lw_error *err)
{
    w->chunk = -1;
    qsort(subjects, (size_t)n, sizeof *subjects, lw_scan_by_subject); /* longest first */
    int64_t longs = count_long(call, width, query, subjects, n);
    if (longs > 0)
        LW_TRY(score_striped(call, w, width, query, subjects, longs, err));
    if (longs == n)
        return LW_OK;
    subjects += longs, n -= longs;
    LW_TRY(lw_scan_reserve(&w->subjects, &w->subjects_capacity, n, sizeof *w->subjects, err));
    for (int64_t k = 0; k < n; k++)
        w->subjects[k] = subjects[k].subject;
    LW_TRY(lw_scan_lay_out(call->cpu, w, width, w->subjects, n, err));
    LW_TRY(lw_scan_score(call, w, LW_SCAN_EXACT, width, &query, 1, n, err));
    return lw_scan_file_scores(call, LW_SCAN_EXACT, &query, 1, w->subjects, n, w->scores, err);
}
