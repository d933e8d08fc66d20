/* test_search_screen.c - the bounds that the CPU search screens with are never below the scores of the scalar
 * reference, in any instruction set. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "align/search_backend.h"
#include "align/search_cpu_kernels.h"
#include "common/cpu.h"
#include "search_sets.h"

enum { N_QUERIES = 5 };

static const struct {
    lw_isa isa;
    const char *name;
    const lw_search_kernels *kernels;
} tables[] = {
#if defined(__x86_64__)
    {LW_ISA_AVX512BW, "avx512bw", &lw_search_kernels_avx512bw},
    {LW_ISA_AVX2, "avx2", &lw_search_kernels_avx2},
    {LW_ISA_SSE41, "sse41", &lw_search_kernels_sse41},
#elif defined(__aarch64__)
    {LW_ISA_NEON, "neon", &lw_search_kernels_neon},
#endif
    {LW_ISA_PLAIN, "plain", &lw_search_kernels_plain},
};

static void *vectors(size_t bytes)
{
    void *p = aligned_alloc(LW_SEARCH_VEC_MAX, (bytes / LW_SEARCH_VEC_MAX + 1) * LW_SEARCH_VEC_MAX);
    cr_assert_not_null(p);
    memset(p, 0, bytes);
    return p;
}

/* Subjects over the lanes, each to the one that is free first. */
static void lay_out(lw_search_plan *plan, const lw_search_kernels *k, const search_set *s)
{
    int32_t free_at[LW_SEARCH_VEC_MAX] = {0}, last[LW_SEARCH_VEC_MAX];
    const int lanes = k->vector_bytes;
    *plan = (lw_search_plan){.events = malloc((size_t)(s->n + lanes) * sizeof *plan->events),
                             .letters = vectors((size_t)(s->letters + 8 * s->n + 4096) * (size_t)lanes)};
    memset(plan->letters, LW_DATABASE_PAD, (size_t)(s->letters + 8 * s->n + 4096) * (size_t)lanes);
    memset(last, -1, sizeof last);
    for (int32_t i = 0; i < s->n; i++) {
        int lane = 0;
        for (int l = 1; l < lanes; l++)
            lane = free_at[l] < free_at[lane] ? l : lane;
        plan->events[plan->n_events++] =
            (lw_search_event){.block = free_at[lane], .lane = lane, .done = last[lane], .next = i};
        for (int32_t j = 0; j < s->len[i]; j++)
            plan->letters[(free_at[lane] * k->columns + j) * lanes + lane] = s->codes[s->start[i] + j];
        last[lane] = i;
        free_at[lane] += (s->len[i] - 1) / k->columns + 1;
        plan->n_blocks = free_at[lane] > plan->n_blocks ? free_at[lane] : plan->n_blocks;
    }
    for (int lane = 0; lane < lanes; lane++)
        plan->events[plan->n_events++] =
            (lw_search_event){.block = (int32_t)plan->n_blocks, .lane = lane, .done = last[lane], .next = -1};
}

/* The scores of all subjects, by the scalar reference: [query * subjects + subject]. */
static int32_t *exact_scores(const lw_scoring *scoring, const search_set *queries, search_set *subjects)
{
    lw_database_view view = set_view(subjects);
    lw_seqs all = set_seqs(queries);
    lw_search_setup setup = {.scoring = scoring, .database = &view};
    void *context;
    size_t n = (size_t)subjects->n;
    lw_search_hit *hits = calloc(n * N_QUERIES, sizeof *hits);
    int32_t n_hits[N_QUERIES], min_score[N_QUERIES], *score = calloc(n * N_QUERIES, sizeof *score);
    for (int q = 0; q < N_QUERIES; q++)
        min_score[q] = 1;
    cr_assert_eq(lw_search_scalar.open(&lw_search_scalar, &context, &setup, NULL), LW_OK);
    lw_search_request request = {.queries = &all, .min_score = min_score, .top_n = (int32_t)n};
    lw_search_result result = {.hits = hits, .stride = (int64_t)n, .n_hits = n_hits};
    cr_assert_eq(lw_search_scalar.search(context, &request, &result, NULL), LW_OK);
    lw_search_scalar.close(context);
    for (size_t q = 0; q < N_QUERIES; q++)
        for (int32_t k = 0; k < n_hits[q]; k++)
            score[q * n + (size_t)view.order[hits[q * n + (size_t)k].subject]] =
                hits[q * n + (size_t)k].score;
    free(hits);
    return score;
}

static void expect_bounds(const lw_scoring *scoring, const search_set *queries, search_set *subjects,
                          const char *what)
{
    unsigned usable;
    cr_assert_eq(lw_isa_usable(&usable, NULL), LW_OK);
    int32_t *exact = exact_scores(scoring, queries, subjects), low = 0, high = 0;
    const int64_t n = subjects->n;
    for (int a = 0; a < scoring->n_letters; a++)
        for (int b = 0; b < scoring->n_letters; b++) {
            int32_t s = scoring->score[a * LW_MAX_LETTERS + b];
            low = s < low ? s : low;
            high = s > high ? s : high;
        }
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        const lw_search_kernels *k = tables[t].kernels;
        const lw_search_screen range = k->screen_range(scoring->gap_open, scoring->gap_extend, low, high);
        if (!(usable & 1u << tables[t].isa) || range.limit <= 0)
            continue;
        static int8_t table[LW_MAX_LETTERS][3][LW_MAX_LETTERS];
        for (int a = 0; a < LW_MAX_LETTERS; a++)
            for (int b = 0; b < LW_MAX_LETTERS; b++)
                table[a][0][b] =
                    (int8_t)(2 * scoring->gap_extend + (a < scoring->n_letters && b < scoring->n_letters
                                                            ? scoring->score[a * LW_MAX_LETTERS + b]
                                                            : low));
        lw_search_plan plan;
        lay_out(&plan, k, subjects);
        int32_t len[N_QUERIES];
        uint8_t *codes = malloc((size_t)queries->letters + N_QUERIES), used[LW_MAX_LETTERS];
        int64_t letters = 0;
        for (int q = 0; q < N_QUERIES; q++) {
            len[q] = queries->len[q];
            memcpy(codes + letters, queries->codes + queries->start[q], (size_t)len[q]);
            if (len[q] % 2)
                codes[letters + len[q]++] = LW_DATABASE_PAD;
            letters += len[q];
        }
        for (int a = 0; a < LW_MAX_LETTERS; a++)
            used[a] = (uint8_t)a;
        lw_search_job job = {.n_queries = N_QUERIES,
                             .len = len,
                             .codes = codes,
                             .n_used = LW_MAX_LETTERS,
                             .used = used,
                             .table = (const int8_t(*)[3][LW_MAX_LETTERS])table,
                             .open_extend = scoring->gap_open + scoring->gap_extend,
                             .extend = scoring->gap_extend,
                             .zero = range.zero,
                             .limit = range.limit,
                             .plan = &plan,
                             .scores = calloc((size_t)n * N_QUERIES, sizeof *job.scores)};
        uint8_t *scratch = vectors(k->screen_scratch(&job));
        job.scratch = scratch;
        k->screen(&job);
        double excess = 0;
        for (int64_t i = 0; i < n; i++)
            for (int q = 0; q < N_QUERIES; q++) {
                int32_t value = job.scores[i * N_QUERIES + q], score = exact[q * n + i];
                if (value == LW_SEARCH_OVERFLOW) {
                    /* gaps that cost next to nothing turn so often that bounds say little */
                    if (scoring->gap_open > 0)
                        cr_expect_geq(score + 3 * range.above, range.limit,
                                      "%s, %s: query %d, subject %lld: score %d overflows", tables[t].name,
                                      what, q, (long long)i, score);
                    continue;
                }
                cr_expect_geq(value + range.above, score,
                              "%s, %s: query %d, subject %lld: bound %d + %d, score %d", tables[t].name, what,
                              q, (long long)i, value, range.above, score);
                excess += value + range.above - score;
            }
        /* scores below `open` look like it */
        if (scoring->gap_open > 0)
            cr_expect_leq(excess / (double)(n * N_QUERIES), scoring->gap_open + 3 * range.above, "%s, %s",
                          tables[t].name, what);
        free(plan.events), free(plan.letters), free(codes), free(job.scores), free(scratch);
    }
    free(exact);
}

Test(search_screen, bounds_are_never_below_scores)
{
    static const struct {
        const char *matrix;
        int open, extend;
    } cases[] = {
        {"BLOSUM62", 11, 1}, {"BLOSUM62", 5, 2}, {"BLOSUM45", 14, 2}, {"PAM250", 13, 0}, {"BLOSUM80", 0, 1}};
    /* shorter and longer than what is scored at a time, odd and even */
    static const int32_t lengths[N_QUERIES] = {1, 33, 256, 290, 777};
    uint64_t state = 61;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        search_set queries = {0}, subjects = {0};
        uint8_t codes[4 * 1000 + 64];
        lw_scoring letters, scoring;
        cr_assert_eq(
            lw_scoring_matrix(&letters, cases[i].matrix, LW_PROTEIN, cases[i].open, cases[i].extend, NULL),
            LW_OK);
        lw_search_scoring(&scoring, &letters);
        for (int q = 0; q < N_QUERIES; q++) {
            set_random_protein(&state, codes, lengths[q]);
            set_add(&queries, codes, lengths[q]);
        }
        for (int k = 0; k < 230; k++) {
            int32_t n = 1 + (int32_t)(set_random(&state) % 130);
            set_random_protein(&state, codes, n);
            if (k % 3 == 0) { /* a related piece, with gaps of both kinds */
                int64_t from = (int64_t)(set_random(&state) % (uint64_t)queries.letters);
                int32_t piece = (int32_t)(queries.letters - from < 140 ? queries.letters - from : 140);
                n = set_mutate(&state, queries.codes + from, piece, 0.01 * (k % 70), 0.002 * (k % 40), codes);
            }
            set_add(&subjects, codes, n > 0 ? n : 1);
        }
        expect_bounds(&scoring, &queries, &subjects, cases[i].matrix);
        set_free(&queries), set_free(&subjects);
    }
}
