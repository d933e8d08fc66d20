/* search_cuda_unit.cu - a unit of work, one pack of queries against one chunk: its programs, and its arrays
 * on the device. */
#include "align/search_cuda_context.h"

#include <stdlib.h>
#include <string.h>

void lw_sw_free_unit(unit *u)
{
    free(u->first.passes);
    for (int i = 0; u->again && i < u->pack->n; i++)
        for (int l = 0; l < LW_SW_LEVELS; l++)
            free(u->again[i][l].passes);
    free(u->again);
    free(u->again_jobs[0][0]); /* and all others */
    free(u->len);
    free(u->codes_at);
    free(u->base);
}

/* Letters of the subject that an alignment of a query may span: a positive score pays for so many gaps. 0: no
 * bound. */
static int64_t span(const context *c, const uint8_t *query, int32_t len)
{
    if (c->extend == 0)
        return 0;
    int64_t best = 0;
    for (int32_t i = 0; i < len; i++)
        best += c->row_best[query[i]];
    int64_t gaps = (best - (c->open_extend - c->extend)) / c->extend;
    return len + (gaps > 0 ? gaps : 0);
}

/* Overlap of the pieces that long subjects are cut into; 0: not cut. Cutting pays where one lane group would
 * work on the longest subject for longer than all groups on everything else. */
static int choose_overlap(const unit *u)
{
    const context *c = u->c;
    if (u->first.border || u->k->n_pairs == 0)
        return 0;
    int group = 1;
    for (int i = 0; i < u->first.n_passes; i++)
        if (u->first.passes[i].group > group)
            group = u->first.passes[i].group;
    double groups = (double)c->multiprocessors * 2 * LW_SW_WARPS * (32 / group);
    double rows = (double)u->k->rows * (u->first.form == LW_SW_TWO_QUERIES ? 2 : 1) / groups;
    int32_t longest = c->setup.database->len[u->k->first];
    if (longest < rows / 2)
        return 0;
    int64_t most = 0;
    for (int i = 0; i < u->pack->n; i++) {
        const lw_seqs *q = u->request->queries;
        int64_t one = span(c, q->codes + q->start[u->pack->queries[i]], u->len[i]);
        if (one == 0)
            return 0;
        most = one > most ? one : most;
    }
    int64_t overlap = LW_SW_PIECE_ROWS / 2;
    while (overlap < most)
        overlap *= 2;
    return overlap <= 16384 ? (int)overlap : 0;
}

lw_status lw_sw_plan_unit(unit *u, lw_error *err)
{
    context *c = u->c;
    const lw_seqs *queries = u->request->queries;
    int n = u->pack->n;
    u->len = (int32_t *)malloc((size_t)n * sizeof *u->len);
    u->codes_at = (int32_t *)malloc((size_t)n * sizeof *u->codes_at);
    u->base = (int32_t *)malloc((size_t)n * sizeof *u->base);
    u->again = (lw_sw_program(*)[LW_SW_LEVELS])calloc((size_t)n, sizeof *u->again);
    if (!u->len || !u->codes_at || !u->base || !u->again)
        return lw_fail_memory(err, (size_t)n * sizeof *u->again);
    int32_t at = 0;
    for (int i = 0; i < n; i++) {
        u->len[i] = queries->len[u->pack->queries[i]];
        u->codes_at[i] = at;
        if (INT32_MAX - at < u->len[i])
            return lw_fail(err, LW_E_RANGE,
                           "queries of more than %d letters together are too long for the GPU search",
                           INT32_MAX);
        at += u->len[i];
    }
    u->arithmetic = lw_sw_first_arithmetic(c, u->request, u->pack->queries, n, u->pack->filter);
    /* exact at once where the bounds would keep most pairs anyway */
    bool most_wanted = u->request->top_n > u->k->n / (c->tiles ? 8 * LW_SW_PROMISING : 16);
    u->keeps = u->arithmetic != LW_SW_HALF || u->pack->filter || most_wanted ? LW_SW_EXACT
               : c->tiles                                                    ? LW_SW_FROM_ABOVE
                                                                             : LW_SW_FROM_BELOW;
    u->n_rounds = u->keeps == LW_SW_FROM_ABOVE ? 2 : 1;
    /* scores[] of query i start at i * stride; the number of pieces is known once the list is */
    int halves = u->arithmetic == LW_SW_S32 ? 1 : 2;
    lw_sw_program shape = {}; /* for the choice of the list: bases do not matter */
    for (int i = 0; i < n; i++)
        u->base[i] = 0;
    bool alone = n == 1 && halves == 2;
    LW_TRY(alone ? lw_sw_plan_query(&u->first, LW_SW_TWO_SUBJECTS, u->len[0], 0, err)
                 : lw_sw_plan_pack(&u->first, halves, n, u->len, u->codes_at, u->base, err));
    int group = 1;
    for (int i = 0; i < u->first.n_passes; i++)
        if (u->first.passes[i].group > group)
            group = u->first.passes[i].group;
    LW_TRY(lw_sw_need_list(c, u->p, u->k, group, choose_overlap(u), &u->list, err));
    if (!alone) {
        int32_t stride = 2 * (u->k->n_pairs + u->list->n_pieces);
        for (int i = 0; i < n; i++)
            u->base[i] = i * stride;
        shape = u->first;
        u->first = {};
        free(shape.passes);
        LW_TRY(lw_sw_plan_pack(&u->first, halves, n, u->len, u->codes_at, u->base, err));
    }
    u->n_jobs = 2 * u->first.n_passes;
    u->n_profiles = (u->keeps == LW_SW_FROM_ABOVE ? 2 : 1) * u->first.n_passes;
    for (int i = 0; i < n; i++)
        for (int l = 0; l < c->n_levels; l++) {
            int form = c->ladder[l] == LW_SW_S32 ? LW_SW_TWO_QUERIES : LW_SW_TWO_SUBJECTS;
            LW_TRY(lw_sw_plan_query(&u->again[i][l], form, u->len[i], u->codes_at[i], err));
            u->n_jobs += u->n_rounds * u->again[i][l].n_passes;
            u->n_profiles += u->again[i][l].n_passes;
        }
    return LW_OK;
}

static size_t profile_vectors(const context *c, int form, int arithmetic)
{
    return lw_sw_profile_bytes(form, arithmetic, c->n_classes + 1) / sizeof(uint4);
}

size_t lw_sw_cut_arrays(const unit *u, char *at, unit_arrays *a)
{
    cutter m = {at, 0};
    size_t n = (size_t)u->pack->n, pairs = (size_t)u->k->n_pairs, letters = 0, vectors = 0;
    for (size_t i = 0; i < n; i++)
        letters += (size_t)u->len[i];
    vectors += profile_vectors(u->c, u->first.form, u->arithmetic) * (size_t)u->first.n_passes *
               (u->keeps == LW_SW_FROM_ABOVE ? 2 : 1);
    for (size_t i = 0; i < n; i++)
        for (int l = 0; l < u->c->n_levels; l++)
            vectors +=
                profile_vectors(u->c, u->again[i][l].form, u->c->ladder[l]) * (size_t)u->again[i][l].n_passes;
    a->codes = cut(&m, a->codes, letters);
    a->lanes = cut(&m, a->lanes, 32 * (size_t)u->n_profiles);
    a->jobs = cut(&m, a->jobs, (size_t)u->n_jobs);
    a->profiles = cut(&m, a->profiles, (size_t)u->n_profiles);
    a->queries = cut(&m, a->queries, n);
    a->travelling = m.used;
    a->zeroed_from = m.used;
    a->counters = cut(&m, a->counters, (size_t)u->n_jobs);
    a->counts = cut(&m, a->counts, LW_SW_COUNTS * n + 1);
    a->n_hits = a->counts ? a->counts + LW_SW_COUNTS * n : NULL;
    a->histograms = cut(&m, a->histograms, LW_SW_BINS * n);
    a->zeroed_to = m.used;
    a->profile = cut(&m, a->profile, vectors);
    a->scores = cut(&m, a->scores, 2 * (pairs + (size_t)u->list->n_pieces) * n);
    a->lists = cut(&m, a->lists, pairs * n);
    a->exact = cut(&m, a->exact, 2 * pairs * n);
    a->chosen = cut(&m, a->chosen, (size_t)u->n_rounds * LW_SW_LEVELS * pairs * n);
    a->carry = cut(&m, a->carry, 2 * (pairs + (size_t)u->list->n_pieces));
    a->hits = cut(&m, a->hits, 2 * pairs * n);
    return m.used;
}

/* Device bytes of a query in a unit, for the choice of the packs' size. */
int64_t lw_sw_query_bytes(const chunk *k)
{
    return (int64_t)k->n_pairs * (8 + 4 + 8 + 4 * LW_SW_ROUNDS * LW_SW_LEVELS + 16) + 4 * LW_SW_BINS +
           (1 << 20);
}

/* Profiles of a program's passes: for kernels that keep G (a gap's opening is in every score), or H. Returns
 * the index of the first. */
int lw_sw_write_profiles(writer *w, const lw_sw_program *p, int arithmetic, bool gapless, bool above)
{
    int first = w->n_profiles;
    const bool plain = gapless || above || arithmetic == LW_SW_S32;
    for (int i = 0; i < p->n_passes; i++, w->n_profiles++) {
        memcpy(w->host.lanes + 32 * w->n_profiles, p->passes[i].lanes, sizeof p->passes[i].lanes);
        w->host.profiles[w->n_profiles] = {w->u->device.profile + w->n_vectors,
                                           w->u->device.lanes + 32 * w->n_profiles,
                                           p->form,
                                           arithmetic,
                                           plain ? 0 : w->u->c->open_extend,
                                           above ? LW_SW_NEVER : 0};
        w->n_vectors += profile_vectors(w->u->c, p->form, arithmetic);
    }
    return first;
}

/* One job for each pass, all fields but those that say which segments. Returns the index of the first. */
int lw_sw_write_jobs(writer *w, const lw_sw_program *p, int first_profile, const lw_sw_job *common)
{
    int first = w->n_jobs;
    for (int i = 0; i < p->n_passes; i++, w->n_jobs++) {
        const lw_sw_pass *pass = &p->passes[i];
        lw_sw_job *j = &w->host.jobs[w->n_jobs];
        *j = *common;
        j->stream = w->u->p->stream;
        j->first_row = w->u->p->first_row;
        j->counter = w->u->device.counters + w->n_jobs;
        j->profile = w->host.profiles[first_profile + i].out;
        j->lanes = w->host.profiles[first_profile + i].lanes;
        j->border = (uint2 *)w->u->s->border.at;
        j->carry = w->u->device.carry;
        j->n_letters = w->u->c->n_classes + 1;
        j->group = pass->group;
        j->reads_border = pass->reads_border;
        j->writes_border = pass->writes_border;
        j->border_keep = pass->border_keep;
        j->open_extend = w->u->c->open_extend;
        j->extend = w->u->c->extend;
    }
    return first;
}
