/* search_cuda_packs.cu - which queries run together, and which alone. */
#include "align/search_cuda_context.h"

#include <stdlib.h>
#include <string.h>

void lw_sw_free_packs(packs *p)
{
    free(p->pack);
    free(p->queries);
    *p = {};
}

typedef struct ranked {
    int64_t query;
    int32_t len;
    int filter;
} ranked;

static int compare_ranked(const void *x, const void *y)
{
    const ranked *a = (const ranked *)x, *b = (const ranked *)y;
    if (a->filter != b->filter)
        return a->filter - b->filter;
    if (a->len != b->len)
        return a->len > b->len ? -1 : 1;
    return a->query < b->query ? -1 : 1;
}

/* The first arithmetic for a pack: gapless scores above the limit of a narrow type are of no use as a filter.
 */
int lw_sw_first_arithmetic(const context *c, const lw_search_request *r, const int64_t *queries, int n,
                           bool filter)
{
    int a = c->ladder[0];
    if (filter && a == LW_SW_S16)
        return LW_SW_S32;
    for (int i = 0; i < n && filter; i++)
        if (r->filter[queries[i]] > c->limit[0])
            return LW_SW_S32;
    return a;
}

/* Relative cost of the longest `alone` of n queries one by one and of the others together. */
static lw_status pack_slots(const ranked *q, int n, int alone, double *slots, lw_error *err)
{
    *slots = 0;
    for (int i = 0; i < alone; i++) {
        lw_sw_program p = {};
        lw_status status = lw_sw_plan_query(&p, LW_SW_TWO_SUBJECTS, q[i].len, 0, err);
        *slots += p.slots;
        free(p.passes);
        if (status != LW_OK)
            return status;
    }
    if (alone < n) {
        int32_t len[LW_SW_PACK_QUERIES], zero[LW_SW_PACK_QUERIES] = {};
        for (int i = alone; i < n; i++)
            len[i - alone] = q[i].len;
        lw_sw_program p = {};
        lw_status status = lw_sw_plan_pack(&p, 2, n - alone, len, zero, zero, err);
        *slots += p.slots;
        free(p.passes);
        if (status != LW_OK)
            return status;
    }
    return LW_OK;
}

lw_status lw_sw_make_packs(const context *c, const lw_search_request *r, int most, packs *out, lw_error *err)
{
    const lw_seqs *queries = r->queries;
    size_t room = (size_t)queries->n + 1;
    ranked *rank = (ranked *)malloc(room * sizeof *rank);
    out->pack = (pack *)calloc(room, sizeof *out->pack);
    out->queries = (int64_t *)malloc(room * sizeof *out->queries);
    lw_status status = LW_OK;
    int64_t n = 0, at = 0;
    if (!rank || !out->pack || !out->queries) {
        status = lw_fail_memory(err, room * sizeof *rank);
        goto end;
    }
    for (int64_t i = 0; i < queries->n; i++)
        if (queries->len[i] > 0)
            rank[n++] = {i, queries->len[i], r->filter && r->filter[i] > 0};
    qsort(rank, (size_t)n, sizeof *rank, compare_ranked);
    for (int64_t i = 0; i < n; i++)
        out->queries[i] = rank[i].query;
    while (at < n) {
        int some = 0, alone = 0;
        while (at + some < n && some < most && rank[at + some].filter == rank[at].filter)
            some++;
        int arithmetic = lw_sw_first_arithmetic(c, r, out->queries + at, some, rank[at].filter);
        /* the profile of two queries a word is too large for some GPUs */
        bool fits =
            lw_sw_profile_bytes(LW_SW_TWO_QUERIES, arithmetic, c->n_classes + 1) + LW_SW_STATIC_BYTES <=
            (size_t)c->shared_bytes;
        if (arithmetic == LW_SW_S16 || some == 1 || !fits) {
            alone = some;
        } else if (arithmetic != LW_SW_S32) {
            double best = 0;
            for (int k = 0; k <= some; k++) {
                double slots;
                LW_TRY_END(pack_slots(rank + at, some, k, &slots, err));
                if (k == 0 || slots < best) {
                    best = slots;
                    alone = k;
                }
            }
        }
        for (int k = 0; k < alone; k++)
            out->pack[out->n++] = {1, out->queries + at + k, rank[at].filter != 0};
        if (alone < some)
            out->pack[out->n++] = {some - alone, out->queries + at + alone, rank[at].filter != 0};
        at += some;
    }
end:
    free(rank);
    return status;
}
