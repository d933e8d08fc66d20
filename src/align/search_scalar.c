/* search_scalar.c - the reference: every pair by the scalar alignment reference, one after the other. */
#include "align/search_backend.h"

#include <stdlib.h>
#include <string.h>

#include "align/align_backend.h"
#include "align/search_top.h"
#include "common/fail.h"

typedef struct scalar {
    lw_search_setup setup;
    void *align; /* of lw_align_scalar */
} scalar;

static void scalar_close(void *context)
{
    scalar *s = context;
    if (s)
        lw_align_scalar.close(s->align);
    free(s);
}

static lw_status scalar_open(const lw_search_backend *self, void **context, const lw_search_setup *setup,
                             lw_error *err)
{
    (void)self;
    scalar *s = calloc(1, sizeof *s);
    if (!s)
        return lw_fail_memory(err, sizeof *s);
    s->setup = *setup;
    lw_align_setup align = {
        .scoring = setup->scoring, .mode = LW_LOCAL, .strands = LW_FORWARD, .min_score = 1, .n_hits = 1};
    lw_status status = lw_align_scalar.open(&lw_align_scalar, &s->align, &align, err);
    if (status != LW_OK) {
        free(s);
        return status;
    }
    *context = s;
    return LW_OK;
}

/* Best local score without gaps: the best run on any diagonal. */
static int32_t gapless_score(const lw_scoring *sc, const uint8_t *query, int32_t m, const uint8_t *subject,
                             int32_t n)
{
    int32_t best = 0;
    for (int64_t diagonal = 1 - (int64_t)m; diagonal < n; diagonal++) {
        int32_t run = 0;
        for (int64_t i = diagonal < 0 ? -diagonal : 0; i < m && i + diagonal < n; i++) {
            run += sc->score[query[i] * LW_MAX_LETTERS + subject[i + diagonal]];
            run = run > 0 ? run : 0;
            best = run > best ? run : best;
        }
    }
    return best;
}

static lw_status scalar_search(void *context, const lw_search_request *request, const lw_search_result *out,
                               lw_error *err)
{
    const scalar *s = context;
    const lw_database_view *db = s->setup.database;
    const lw_seqs *queries = request->queries;
    lw_search_hit *all = malloc((size_t)(db->n ? db->n : 1) * sizeof *all);
    if (!all)
        return lw_fail_memory(err, (size_t)db->n * sizeof *all);
    lw_status status = LW_OK;
    for (int64_t q = 0; q < queries->n; q++) {
        const uint8_t *query = queries->codes + queries->start[q];
        int32_t m = queries->len[q], threshold = request->filter ? request->filter[q] : 0;
        int64_t n = 0, filtered = 0;
        for (int32_t i = 0; i < db->n; i++) {
            const uint8_t *subject = db->codes + db->start[i];
            if (lw_stopped(s->setup.host)) {
                status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
                goto end;
            }
            if (threshold > 0 && gapless_score(s->setup.scoring, query, m, subject, db->len[i]) < threshold) {
                filtered++;
                continue;
            }
            lw_seqs one_query = {1, queries->codes, &queries->start[q], &m};
            lw_seqs one_subject = {1, db->codes, &db->start[i], &db->len[i]};
            lw_hit hit;
            LW_TRY_END(lw_align_scalar.pair_ends(s->align, &one_query, &one_subject, &hit, err));
            if (hit.target >= 0 && hit.score >= request->min_score[q])
                all[n++] = (lw_search_hit){.score = hit.score, .subject = i};
        }
        out->n_hits[q] = lw_top_sort(all, n, request->top_n, db->order);
        memcpy(out->hits + q * out->stride, all, (size_t)out->n_hits[q] * sizeof *all);
        if (request->counts) {
            request->counts->pairs += db->n;
            request->counts->cells += (int64_t)m * db->letters;
            request->counts->filtered += filtered;
        }
        if (request->advance)
            request->advance(request->user, (double)m * (double)db->letters);
    }
end:
    free(all);
    return status;
}

const lw_search_backend lw_search_scalar = {
    .base = {.name = "scalar",
             .what = "the textbook recurrence, one thread: the judge of the others",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_scalar},
    .batch_letters = 1,
    .open = scalar_open,
    .search = scalar_search,
    .close = scalar_close,
};
