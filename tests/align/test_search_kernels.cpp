/* test_search_kernels.cpp - the score kernel's own source, in every arithmetic and form, run on the host lane
 * by lane (host_lanes.h) and compared with the recurrence. Needs no GPU. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "align/host_lanes.h"

#include "align/search_bounds.cuh"
#include "align/search_kernels.cuh"
#include "align/search_plan.h"
#include "align/search_profile.h"

enum { LETTERS = 6, MOST_SUBJECTS = 64, MOST_LETTERS = 8192, MOST_QUERIES = 8 };

typedef struct text {
    uint8_t *codes;
    int32_t len;
} text;

/* One kernel against one small database. */
typedef struct trial {
    int arithmetic, keeps;
    bool gapless, listed; /* listed: pairs by list, as second runs name them */
    int n_queries, n_subjects;
    int32_t query_len[MOST_QUERIES];
    int32_t subject_len; /* longest */
} trial;

static int16_t scores[32 * 32];
static int32_t open_extend, extend;
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static int32_t plain(text q, text t, bool gapless)
{
    static int32_t h[MOST_LETTERS + 1], f[MOST_LETTERS + 1];
    memset(h, 0, sizeof h), memset(f, 0, sizeof f);
    int32_t best = 0;
    for (int32_t i = 0; i < t.len; i++) {
        int32_t diagonal = 0, e = 0;
        for (int32_t j = 1; j <= q.len; j++) {
            int32_t x = diagonal + scores[q.codes[j - 1] * 32 + t.codes[i]];
            if (!gapless)
                x = lw_max3_host(x, e, f[j]);
            x = x > 0 ? x : 0;
            diagonal = h[j];
            h[j] = x;
            best = x > best ? x : best;
            e = lw_max_host(e - extend, x - open_extend);
            f[j] = lw_max_host(f[j] - extend, x - open_extend);
        }
    }
    return best;
}

template <int A, int FORM> static void body_of(void *jobs, const trial *t, bool border)
{
    const lw_sw_job *j = (const lw_sw_job *)jobs;
    if (t->gapless)
        lw_sw_scores<A, FORM, 1, true>(j);
    else if (t->keeps == LW_SW_EXACT)
        lw_sw_scores<A, FORM, 1, false>(j);
    else if (t->keeps == LW_SW_FROM_BELOW)
        lw_sw_scores<A, FORM, LW_SW_EVERY, false>(j);
    else if (border)
        lw_sw_bounds<FORM, true>(j);
    else
        lw_sw_bounds<FORM, false>(j);
}

typedef struct one_launch {
    const lw_sw_job *job;
    const trial *what;
    int form;
    bool border;
} one_launch;

static void body(void *argument)
{
    one_launch *l = (one_launch *)argument;
    void *job = (void *)l->job;
    bool two = l->form == LW_SW_TWO_SUBJECTS;
    switch (l->what->arithmetic) {
    case LW_SW_HALF:
        two ? body_of<LW_SW_HALF, LW_SW_TWO_SUBJECTS>(job, l->what, l->border)
            : body_of<LW_SW_HALF, LW_SW_TWO_QUERIES>(job, l->what, l->border);
        break;
    case LW_SW_REAL:
        two ? body_of<LW_SW_REAL, LW_SW_TWO_SUBJECTS>(job, l->what, l->border)
            : body_of<LW_SW_REAL, LW_SW_TWO_QUERIES>(job, l->what, l->border);
        break;
    case LW_SW_S16:
        body_of<LW_SW_S16, LW_SW_TWO_SUBJECTS>(job, l->what, l->border);
        break;
    default:
        body_of<LW_SW_S32, LW_SW_TWO_QUERIES>(job, l->what, l->border);
    }
}

static int longer_first(const void *x, const void *y)
{
    return ((const text *)y)->len - ((const text *)x)->len;
}

/* Random subjects, a third of them pieces of a query with changes, one empty and one of one letter. */
static void make_subjects(const trial *t, const text *queries, text *subjects)
{
    for (int i = 0; i < t->n_subjects; i++) {
        text *s = &subjects[i];
        int32_t len = i == 0 ? 0 : i == 1 ? 1 : (int32_t)draw((uint32_t)t->subject_len + 1);
        s->codes = (uint8_t *)malloc((size_t)len + 1);
        s->len = len;
        const text *q = &queries[i % t->n_queries];
        int32_t from = (int32_t)draw((uint32_t)q->len);
        for (int32_t k = 0; k < len; k++) {
            bool copy = i % 3 == 2 && from < q->len && draw(12) > 0;
            s->codes[k] = copy ? q->codes[from] : (uint8_t)draw(LETTERS);
            from += 1 + (draw(30) == 0) - (draw(30) == 0 && from > 0);
        }
    }
    qsort(subjects, (size_t)t->n_subjects, sizeof *subjects, longer_first);
}

static void run(const trial *t)
{
    static uint8_t codes[MOST_LETTERS * MOST_QUERIES];
    static text queries[MOST_QUERIES], subjects[MOST_SUBJECTS];
    int32_t at[MOST_QUERIES], base[MOST_QUERIES], used = 0;
    int pairs = (t->n_subjects + 1) / 2;
    for (int i = 0; i < t->n_queries; i++) {
        at[i] = used;
        base[i] = 2 * pairs * i;
        queries[i] = {codes + used, t->query_len[i]};
        for (int32_t k = 0; k < t->query_len[i]; k++)
            codes[used++] = (uint8_t)draw(LETTERS);
    }
    make_subjects(t, queries, subjects);

    const bool above = t->keeps == LW_SW_FROM_ABOVE;
    bool alone = t->n_queries == 1 && (t->arithmetic != LW_SW_S32 || t->listed);
    lw_sw_program p = {};
    lw_error err = {};
    lw_status status =
        alone ? lw_sw_plan_query(&p, t->arithmetic == LW_SW_S32 ? LW_SW_TWO_QUERIES : LW_SW_TWO_SUBJECTS,
                                 t->query_len[0], 0, &err)
              : lw_sw_plan_pack(&p, t->arithmetic == LW_SW_S32 ? 1 : 2, t->n_queries, t->query_len, at, base,
                                &err);
    cr_assert(status == LW_OK);

    /* rows as search_select.cu makes them */
    uint32_t first[MOST_SUBJECTS / 2 + 1], row = LW_SW_PAD_ROWS;
    for (int i = 0; i < pairs; i++) {
        first[i] = row;
        row += (uint32_t)subjects[2 * i].len + 1;
    }
    first[pairs] = row;
    size_t n_rows = row + LW_SW_PAD_ROWS + (size_t)subjects[0].len + 4096;
    uint8_t *stream = (uint8_t *)malloc(2 * n_rows);
    memset(stream, LETTERS << LW_SW_LETTER_SHIFT, 2 * n_rows);
    for (int i = 0; i <= pairs; i++)
        stream[2 * (first[i] - 1)] = stream[2 * first[i] - 1] =
            LETTERS << LW_SW_LETTER_SHIFT | LW_SW_SEPARATOR;
    for (int i = 0; i < t->n_subjects; i++)
        for (int32_t k = 0; k < subjects[i].len; k++)
            stream[2 * (first[i / 2] + (uint32_t)k) + (i & 1)] =
                (uint8_t)(subjects[i].codes[k] << LW_SW_LETTER_SHIFT);

    lw_sw_segment segments[MOST_SUBJECTS];
    int32_t list[MOST_SUBJECTS], chosen[MOST_SUBJECTS], n_segments = 0;
    for (int i = 0; i < pairs; i += segments[n_segments - 1].n) {
        int many = 1 + (int)draw(3);
        many = many < pairs - i ? many : pairs - i;
        segments[n_segments++] = {first[i], (int32_t)(first[i + many] - first[i]) - 1, i, many};
    }
    for (int i = 0; i < pairs; i++) {
        list[i] = pairs - 1 - i;
        chosen[i] = (i + 3) % pairs;
    }
    n_segments = t->listed ? pairs : n_segments;
    uint2 *border = (uint2 *)calloc(2 * n_rows, sizeof *border);
    uint32_t *carry = (uint32_t *)calloc(2 * (size_t)pairs, sizeof *carry);
    int32_t *out = (int32_t *)calloc(2 * (size_t)(pairs * t->n_queries), sizeof *out);
    uint4 *profile = (uint4 *)malloc(lw_sw_profile_bytes(p.form, t->arithmetic, LETTERS + 1));
    for (int i = 0; i < p.n_passes; i++) {
        const lw_sw_pass *pass = &p.passes[i];
        lw_sw_profile task = {profile,
                              pass->lanes,
                              p.form,
                              t->arithmetic,
                              t->gapless || above || t->arithmetic == LW_SW_S32 ? 0 : open_extend,
                              above ? LW_SW_NEVER : 0};
        for (size_t k = 0; k < lw_sw_profile_bytes(p.form, t->arithmetic, LETTERS + 1) / 4; k++)
            ((uint32_t *)profile)[k] = lw_sw_profile_word(&task, codes, scores, LETTERS + 1, (int)k);
        int32_t counter = 0;
        lw_sw_job job = {};
        job.stream = stream;
        job.segments = t->listed ? NULL : segments;
        job.first_row = first;
        job.list = list;
        job.chosen = chosen;
        job.n_segments = &n_segments;
        job.counter = &counter;
        job.profile = profile;
        job.lanes = pass->lanes;
        job.scores = out;
        job.border = border;
        job.carry = carry;
        job.n_letters = LETTERS + 1;
        job.group = pass->group;
        job.reads_border = pass->reads_border;
        job.writes_border = pass->writes_border;
        job.border_keep = pass->border_keep;
        job.open_extend = open_extend;
        job.extend = extend;
        one_launch l = {&job, t, p.form, p.border};
        host_run_block(LW_SW_THREADS, 0, body, &l);
    }
    int32_t bound = t->keeps == LW_SW_FROM_BELOW ? open_extend + (LW_SW_EVERY - 2) * extend : 0;
    int64_t sum_got = 0, sum_want = 0;
    for (int q = 0; q < t->n_queries; q++)
        for (int i = 0; i < t->n_subjects; i++) {
            int place = t->listed ? 2 * (pairs - 1 - i / 2) + (i & 1) : i;
            int32_t got = out[2 * pairs * q + place], want = plain(queries[q], subjects[i], t->gapless);
            sum_got += got;
            sum_want += want;
            cr_expect(above ? want <= got : got <= want && want <= got + bound,
                      "arithmetic %d form %d keeps %d%s%s gaps %d/%d: query %d of %d letters, subject %d of "
                      "%d: %d, "
                      "not %d",
                      t->arithmetic, p.form, t->keeps, t->gapless ? " gapless" : "",
                      t->listed ? " listed" : "", open_extend, extend, q, queries[q].len, i, subjects[i].len,
                      got, want);
        }
    /* a bound that says nothing would be one as well */
    cr_expect(sum_got <= sum_want + 8 * t->n_queries * t->n_subjects,
              "form %d: sum of bounds %lld, of scores %lld", p.form, (long long)sum_got, (long long)sum_want);
    for (int i = 0; i < t->n_subjects; i++)
        free(subjects[i].codes);
    free(stream), free(border), free(carry), free(out), free(profile), free(p.passes);
}

static void run_all(int32_t o, int32_t e, const trial *trials, int n)
{
    state = 88172645463325252u;
    open_extend = o;
    extend = e;
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++)
            scores[i * 32 + j] = (int16_t)(i == j ? 5 : -(1 + (i * 3 + j) % 4));
    for (int i = 0; i < n; i++)
        run(&trials[i]);
}

static const trial bounded[] = {
    {LW_SW_HALF, LW_SW_FROM_BELOW, false, false, 1, 40, {64}, 90},
    {LW_SW_HALF, LW_SW_FROM_BELOW, false, false, 1, 31, {33}, 60},
    {LW_SW_HALF, LW_SW_FROM_BELOW, false, false, 1, 8, {1100}, 90},
    {LW_SW_HALF, LW_SW_FROM_BELOW, false, false, 1, 12, {600}, 60},
    {LW_SW_HALF, LW_SW_FROM_BELOW, false, false, 1, 5, {2100}, 50},
    {LW_SW_HALF, LW_SW_FROM_BELOW, false, false, 3, 14, {64, 30, 100}, 60},
    {LW_SW_HALF, LW_SW_FROM_BELOW, false, false, 5, 6, {1060, 40, 1030, 70, 10}, 50},
};

static const trial above[] = {
    {LW_SW_HALF, LW_SW_FROM_ABOVE, false, false, 1, 40, {64}, 90},
    {LW_SW_HALF, LW_SW_FROM_ABOVE, false, false, 1, 31, {33}, 60},
    {LW_SW_HALF, LW_SW_FROM_ABOVE, false, false, 1, 8, {1100}, 90},
    {LW_SW_HALF, LW_SW_FROM_ABOVE, false, false, 1, 12, {600}, 60},
    {LW_SW_HALF, LW_SW_FROM_ABOVE, false, false, 1, 5, {2100}, 50},
    {LW_SW_HALF, LW_SW_FROM_ABOVE, false, false, 1, 60, {90}, 7},
    {LW_SW_HALF, LW_SW_FROM_ABOVE, false, false, 3, 14, {64, 30, 100}, 60},
    {LW_SW_HALF, LW_SW_FROM_ABOVE, false, false, 5, 6, {1060, 40, 1030, 70, 10}, 50},
};

static const trial exact[] = {
    {LW_SW_HALF, LW_SW_EXACT, false, false, 1, 30, {70}, 70},
    {LW_SW_HALF, LW_SW_EXACT, false, true, 1, 30, {70}, 70},
    {LW_SW_HALF, LW_SW_EXACT, false, true, 1, 8, {1100}, 70},
    {LW_SW_HALF, LW_SW_EXACT, false, false, 3, 14, {64, 30, 100}, 60},
    {LW_SW_S16, LW_SW_EXACT, false, true, 1, 30, {40}, 70},
    {LW_SW_S16, LW_SW_EXACT, false, false, 1, 8, {1100}, 70},
    {LW_SW_REAL, LW_SW_EXACT, false, false, 1, 30, {64}, 70},
    {LW_SW_REAL, LW_SW_EXACT, false, true, 1, 8, {1100}, 60},
    {LW_SW_REAL, LW_SW_EXACT, false, false, 3, 6, {40, 1100, 30}, 60},
    {LW_SW_S32, LW_SW_EXACT, false, true, 1, 20, {50}, 60},
    {LW_SW_S32, LW_SW_EXACT, false, true, 1, 8, {1100}, 60},
    {LW_SW_S32, LW_SW_EXACT, false, false, 3, 6, {40, 90, 1050}, 60},
};

static const trial gapless[] = {
    {LW_SW_HALF, LW_SW_EXACT, true, false, 1, 20, {80}, 60},
    {LW_SW_HALF, LW_SW_EXACT, true, false, 2, 6, {80, 1100}, 60},
    {LW_SW_REAL, LW_SW_EXACT, true, false, 1, 8, {1100}, 60},
    {LW_SW_REAL, LW_SW_EXACT, true, false, 2, 9, {80, 20}, 60},
    {LW_SW_S32, LW_SW_EXACT, true, false, 2, 6, {80, 1100}, 60},
};

static const int32_t gaps[][2] = {{12, 1}, {7, 2}, {0, 0}, {9, 0}};

Test(search_kernels, bounds_hold)
{
    for (int g = 0; g < 4; g++)
        run_all(gaps[g][0], gaps[g][1], bounded, sizeof bounded / sizeof *bounded);
}

Test(search_kernels, bounds_from_above_hold)
{
    run_all(LW_SW_TILE_OPEN, LW_SW_TILE_EXTEND, above, sizeof above / sizeof *above);
}

Test(search_kernels, exact_scores)
{
    for (int g = 0; g < 4; g++)
        run_all(gaps[g][0], gaps[g][1], exact, sizeof exact / sizeof *exact);
}

Test(search_kernels, gapless_scores)
{
    run_all(12, 1, gapless, sizeof gapless / sizeof *gapless);
}
