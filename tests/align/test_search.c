/* test_search.c - every row of the search backends against the scalar reference, to the last tie. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/search_backend.h"
#include "sanitized.h"
#include "search_sets.h"

static void protein_scoring(lw_scoring *out, int open, int extend)
{
    lw_scoring letters;
    cr_assert_eq(lw_scoring_matrix(&letters, "BLOSUM62", LW_PROTEIN, open, extend, NULL), LW_OK);
    lw_search_scoring(out, &letters);
}

static void dna_scoring(lw_scoring *out, int match, int mismatch, int open, int extend)
{
    lw_scoring letters;
    cr_assert_eq(lw_scoring_dna(&letters, match, mismatch, open, extend, NULL), LW_OK);
    lw_search_scoring(out, &letters);
}

typedef struct question {
    const char *what;
    const lw_scoring *scoring;
    search_set *queries, *subjects;
    int32_t top_n, min_score, filter;
    int64_t device_bytes;
} question;

typedef struct answer {
    lw_search_hit *hits;
    int32_t *n_hits;
    int64_t stride;
    lw_search_counts counts;
} answer;

static double advanced;

static void advance(void *user, double cells)
{
    (void)user;
    advanced += cells;
}

static answer ask(const lw_search_backend *row, const question *q, lw_pool *pool)
{
    lw_database_view view = set_view(q->subjects);
    lw_seqs queries = set_seqs(q->queries);
    lw_search_setup setup = {
        .scoring = q->scoring, .database = &view, .pool = pool, .device_bytes = q->device_bytes};
    answer a = {.stride = q->top_n < view.n ? q->top_n : view.n};
    size_t n = (size_t)queries.n;
    a.hits = calloc(n * (size_t)a.stride + 1, sizeof *a.hits);
    a.n_hits = calloc(n + 1, sizeof *a.n_hits);
    int32_t *min_score = calloc(n + 1, sizeof *min_score), *filter = calloc(n + 1, sizeof *filter);
    for (size_t i = 0; i < n; i++) {
        min_score[i] = q->min_score;
        filter[i] = q->filter;
    }
    void *context = NULL;
    lw_error err = {0};
    cr_assert_eq(row->open(row, &context, &setup, &err), LW_OK, "%s: %s", row->base.name, err.message);
    lw_search_request request = {.queries = &queries,
                                 .min_score = min_score,
                                 .filter = q->filter > 0 ? filter : NULL,
                                 .top_n = q->top_n,
                                 .advance = advance,
                                 .counts = &a.counts};
    lw_search_result result = {.hits = a.hits, .stride = a.stride, .n_hits = a.n_hits};
    advanced = 0;
    const int calls = row == &lw_search_scalar ? 1 : 2; /* twice: a context keeps no state between calls */
    for (int call = 0; call < calls; call++) {
        a.counts = (lw_search_counts){0};
        cr_assert_eq(row->search(context, &request, &result, &err), LW_OK, "%s, %s: %s", row->base.name,
                     q->what, err.message);
    }
    double cells = 0;
    for (size_t i = 0; i < n; i++)
        cells += (double)calls * queries.len[i] * (double)view.letters;
    cr_expect_float_eq(advanced, cells, 1e-6 * cells + 0.5, "%s, %s: progress", row->base.name, q->what);
    row->close(context);
    free(min_score), free(filter);
    return a;
}

static void free_answer(answer *a)
{
    free(a->hits), free(a->n_hits);
}

static bool usable(const lw_search_backend *row)
{
    return row->base.usable(&row->base, 0, NULL) == LW_OK;
}

static void expect_equal(const answer *got, const answer *want, int64_t n_queries, const char *row,
                         const char *what)
{
    for (int64_t i = 0; i < n_queries; i++) {
        cr_expect_eq(got->n_hits[i], want->n_hits[i], "%s, %s: query %lld has %d hits, not %d", row, what,
                     (long long)i, got->n_hits[i], want->n_hits[i]);
        for (int32_t k = 0; k < want->n_hits[i] && k < got->n_hits[i]; k++) {
            lw_search_hit g = got->hits[i * got->stride + k], w = want->hits[i * want->stride + k];
            if (g.score == w.score && g.subject == w.subject)
                continue;
            cr_expect(false, "%s, %s: query %lld hit %d is subject %d score %d, not subject %d score %d", row,
                      what, (long long)i, k, g.subject, g.score, w.subject, w.score);
            return;
        }
    }
}

/* The one body: all rows, with and without threads. */
static void compare_rows(const question *q)
{
    lw_pool *pool;
    cr_assert_eq(lw_pool_open(&pool, 3, NULL), LW_OK);
    answer want = ask(&lw_search_scalar, q, NULL);
    for (int r = 1; r < lw_search_backend_count; r++) {
        const lw_search_backend *row = lw_search_backends[r];
        if (!usable(row))
            continue;
        for (int threads = 0; threads < 2; threads++) {
            answer got = ask(row, q, threads ? pool : NULL);
            expect_equal(&got, &want, q->queries->n, row->base.name, q->what);
            cr_expect_eq(got.counts.pairs, want.counts.pairs, "%s, %s: pairs", row->base.name, q->what);
            cr_expect_eq(got.counts.filtered, want.counts.filtered, "%s, %s: filtered", row->base.name,
                         q->what);
            free_answer(&got);
        }
    }
    free_answer(&want);
    lw_pool_close(pool);
}

static void add_random(search_set *s, uint64_t *state, int32_t len)
{
    uint8_t *codes = malloc((size_t)len + 1);
    set_random_protein(state, codes, len);
    set_add(s, codes, len);
    free(codes);
}

/* A mutated piece of sequence i of `from`, between random ends. */
static void add_relative(search_set *s, const search_set *from, int64_t i, uint64_t *state, double change)
{
    int32_t n = from->len[i], cut = n ? (int32_t)(set_random(state) % (uint64_t)n) / 4 : 0;
    uint8_t *codes = malloc((size_t)n * 4 + 64 + 200);
    int32_t m = (int32_t)(set_random(state) % 100);
    set_random_protein(state, codes, m);
    m += set_mutate(state, from->codes + from->start[i] + cut, n - cut, change, change / 4, codes + m);
    set_add(s, codes, m);
    free(codes);
}

Test(search, random_proteins_of_every_length)
{
    static const int32_t lengths[] = {0,   1,   2,   3,   4,   5,   7,   8,   15,  16,  17,  31,  32,  33,
                                      47,  48,  63,  64,  65,  95,  96,  97,  127, 128, 129, 130, 191, 192,
                                      193, 255, 256, 257, 319, 320, 321, 383, 384, 385, 511, 512, 513};
    enum { N = sizeof lengths / sizeof *lengths };
    uint64_t state = 11;
    search_set queries = {0}, few = {0}, subjects = {0};
    for (int i = 0; i < N; i++) {
        add_random(&queries, &state, lengths[i]);
        if (i % LW_FEWER(1, 3) == 0)
            set_add(&few, queries.codes + queries.start[i], queries.len[i]);
    }
    for (int i = 0; i < N; i++) {
        add_random(&subjects, &state, lengths[(i * 7 + 3) % N]);
        add_relative(&subjects, &queries, i, &state, 0.02 + 0.015 * i);
    }
    add_random(&subjects, &state, 2100);
    add_random(&subjects, &state, 0);
    lw_scoring scoring;
    static const int gaps[][2] = {{11, 1}, {0, 0}, {0, 3}, {5, 0}, {40, 40}};
    static const int32_t tops[] = {1, 3, 10, INT32_MAX};
    for (int g = 0; g < 5; g++) {
        protein_scoring(&scoring, gaps[g][0], gaps[g][1]);
        char what[64];
        snprintf(what, sizeof what, "gaps %d/%d top %d", gaps[g][0], gaps[g][1], tops[g & 3]);
        question q = {.what = what,
                      .scoring = &scoring,
                      .queries = g == 0 ? &queries : &few,
                      .subjects = &subjects,
                      .top_n = tops[g & 3],
                      .min_score = g == 3 ? 40 : 1};
        compare_rows(&q);
    }
    set_free(&queries), set_free(&few), set_free(&subjects);
}

Test(search, one_query)
{
    static const int32_t lengths[] = {1, 17, 64, 100, 300, 700};
    uint64_t state = 12;
    lw_scoring scoring;
    protein_scoring(&scoring, 11, 1);
    for (int i = 0; i < 6; i++) {
        search_set queries = {0}, subjects = {0};
        add_random(&queries, &state, lengths[i]);
        for (int k = 0; k < 150; k++)
            add_random(&subjects, &state, set_random_length(&state, 1500));
        for (int k = 0; k < 5; k++)
            add_relative(&subjects, &queries, 0, &state, 0.1 * k);
        question q = {.what = "one query",
                      .scoring = &scoring,
                      .queries = &queries,
                      .subjects = &subjects,
                      .top_n = 10,
                      .min_score = 1};
        compare_rows(&q);
        q.what = "one query, all hits";
        q.top_n = INT32_MAX;
        compare_rows(&q);
        set_free(&queries), set_free(&subjects);
    }
}

/* Equal scores everywhere: ties go by the place in the file. */
Test(search, ties)
{
    uint64_t state = 13;
    search_set queries = {0}, subjects = {0};
    uint8_t codes[300];
    set_random_protein(&state, codes, 300);
    set_add(&queries, codes, 60);
    set_add(&queries, codes + 30, 30);
    for (int i = 0; i < 200; i++)
        set_add(&subjects, codes, 60 + (i * 37) % 97);
    lw_scoring scoring;
    protein_scoring(&scoring, 11, 1);
    static const int32_t tops[] = {1, 7, 64, 199, 200, 201};
    for (int i = 0; i < 6; i++) {
        question q = {.what = "ties",
                      .scoring = &scoring,
                      .queries = &queries,
                      .subjects = &subjects,
                      .top_n = tops[i],
                      .min_score = 1};
        compare_rows(&q);
    }
    set_free(&queries), set_free(&subjects);
}

/* Sequences whose best score is exactly `score` against each other: letters worth 1000, 100, 10 and 1. */
static void add_exact(search_set *s, int32_t score)
{
    static uint8_t codes[4096];
    int32_t n = 0;
    for (int digit = 0, worth = 1000; digit < 4; digit++, worth /= 10)
        for (; score >= worth; score -= worth)
            codes[n++] = (uint8_t)digit;
    set_add(s, codes, n);
}

Test(search, width_boundaries)
{
    static const int32_t scores[] = {120,   127,   128,   129,   243,   250,    254,   255,   256,   257,
                                     300,   2037,  2045,  2046,  2047,  2048,   2049,  2050,  16383, 16384,
                                     31766, 32700, 32765, 32766, 32767, 32768,  32769, 33000, 65000, 65533,
                                     65534, 65535, 65536, 65537, 70000, 131071, 131072};
    enum { N = sizeof scores / sizeof *scores };
    lw_scoring scoring;
    dna_scoring(&scoring, 1, 32767, 32767, 0);
    for (int q = 0; q < scoring.n_letters; q++)
        for (int t = 0; t < scoring.n_letters; t++)
            scoring.score[q * LW_MAX_LETTERS + t] =
                q == t ? (int16_t[]){1000, 100, 10, 1, 0}[q < 4 ? q : 4] : -32767;
    scoring.max_score = 1000;
    search_set all = {0};
    for (int i = 0; i < N; i++)
        add_exact(&all, scores[i]);
    question q = {.what = "exact scores",
                  .scoring = &scoring,
                  .queries = &all,
                  .subjects = &all,
                  .top_n = N,
                  .min_score = 1};
    compare_rows(&q);
    set_free(&all);

    /* the same with small letters: identical runs, so that every cell of the diagonal counts */
    dna_scoring(&scoring, 1, 1, 2, 1);
    static const int32_t runs[] = {126, 127,  128,  253,  254,  255,  256,
                                   257, 2045, 2046, 2047, 2048, 2049, 2050};
    for (int i = 0; i < 14; i++) {
        uint8_t codes[2100] = {0};
        set_add(&all, codes, runs[i]);
    }
    q = (question){
        .what = "runs", .scoring = &scoring, .queries = &all, .subjects = &all, .top_n = 14, .min_score = 1};
    compare_rows(&q);
    set_free(&all);

    /* scores of 16 bits and more from matrices whose entries do not fit a byte */
    dna_scoring(&scoring, 200, 300, 500, 100);
    uint64_t state = 14;
    for (int i = 0; i < 40; i++) {
        uint8_t codes[600];
        for (int k = 0; k < 600; k++)
            codes[k] = (uint8_t)(i % 3 == 0 ? 0 : set_random(&state) % 5);
        set_add(&all, codes, 10 + i * 14);
    }
    q = (question){.what = "wide matrix",
                   .scoring = &scoring,
                   .queries = &all,
                   .subjects = &all,
                   .top_n = 9,
                   .min_score = 1};
    compare_rows(&q);
    set_free(&all);
}

/* Few hits of many subjects, whose bounds decide which of them are scored exactly: relatives crowd around the
 * bar and around what 8 bits hold, with lengths and penalties that move the floors. */
Test(search, few_of_many)
{
    static const struct {
        int open, extend, top_n, min_score;
    } cases[] = {{11, 1, 10, 1}, {11, 1, 1, 60}, {9, 2, 12, 1}, {13, 1, 3, 200}, {6, 2, 5, 1},
                 {0, 1, 8, 1},   {11, 0, 8, 1},  {10, 4, 6, 1}, {32, 1, 10, 1},  {11, 1, 14, 30}};
    uint64_t state = 44;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        search_set queries = {0}, subjects = {0};
        for (int k = 0; k < 5; k++)
            add_random(&queries, &state, (int32_t[]){1, 16, 37, 64, 129}[k]);
        if (i == 0) /* in passes on GPUs */
            add_random(&queries, &state, 1100);
        for (int k = 0; k < 3; k++) /* long among short ones: scored alone */
            add_random(&subjects, &state, 700 + 90 * k);
        for (int k = 0; k < 400; k++)
            add_random(&subjects, &state, set_random_length(&state, 120));
        for (int k = 0; k < 110; k++)
            add_relative(&subjects, &queries, 2 + k % 3, &state, 0.008 * (k % 60));
        for (int k = 0; k < 40; k++) /* ties */
            set_add(&subjects, subjects.codes + subjects.start[400 + k], subjects.len[400 + k]);
        lw_scoring scoring;
        protein_scoring(&scoring, cases[i].open, cases[i].extend);
        question q = {.what = "few of many",
                      .scoring = &scoring,
                      .queries = &queries,
                      .subjects = &subjects,
                      .top_n = cases[i].top_n,
                      .min_score = cases[i].min_score};
        compare_rows(&q);
        set_free(&queries), set_free(&subjects);
    }
}

/* Scores that the screen does not tell apart: nearly all subjects are candidates, in two rounds. */
Test(search, all_candidates)
{
    uint64_t state = 45;
    search_set queries = {0}, subjects = {0};
    uint8_t codes[100];
    for (int i = 0; i < 903; i++) {
        int32_t n = i < 3 ? 91 : 20 + (int32_t)(set_random(&state) % 60);
        for (int32_t k = 0; k < n; k++)
            codes[k] = (uint8_t)(set_random(&state) % 4);
        if (i >= 3 && i % 42 == 0) /* a few that it does */
            memcpy(codes, queries.codes + queries.start[i / 42 % 3] + 20, 20 + (size_t)(i / 42));
        set_add(i < 3 ? &queries : &subjects, codes, n < 40 && i % 42 == 0 ? 40 : n);
    }
    lw_scoring scoring;
    dna_scoring(&scoring, 1, 3, 15, 0);
    question q = {.what = "all candidates",
                  .scoring = &scoring,
                  .queries = &queries,
                  .subjects = &subjects,
                  .top_n = 8,
                  .min_score = 1};
    compare_rows(&q);
    set_free(&queries), set_free(&subjects);
}

Test(search, gapless_filter)
{
    uint64_t state = 15;
    search_set queries = {0}, subjects = {0};
    for (int i = 0; i < 6; i++)
        add_random(&queries, &state, 20 + i * 61);
    for (int i = 0; i < LW_FEWER(200, 50); i++)
        add_random(&subjects, &state, set_random_length(&state, 700));
    for (int i = 0; i < 60; i++)
        add_relative(&subjects, &queries, i % 6, &state, 0.01 * i);
    lw_scoring scoring;
    protein_scoring(&scoring, 11, 1);
    static const int32_t filters[] = {1, 20, 24, 30, 60, 300, 100000};
    for (int i = 0; i < 7; i++) {
        question q = {.what = "filter",
                      .scoring = &scoring,
                      .queries = &queries,
                      .subjects = &subjects,
                      .top_n = 1000,
                      .min_score = 10,
                      .filter = filters[i]};
        compare_rows(&q);
    }
    set_free(&queries), set_free(&subjects);
}

/* All letters of the alphabet, and scores that depend on which side a letter is on. */
Test(search, every_letter_and_asymmetric_scores)
{
    uint64_t state = 16;
    search_set queries = {0}, subjects = {0};
    lw_scoring scoring;
    protein_scoring(&scoring, 8, 2);
    for (int i = 0; i < 90; i++) {
        uint8_t codes[400];
        for (int k = 0; k < 400; k++)
            codes[k] = (uint8_t)(set_random(&state) % (uint64_t)scoring.n_letters);
        set_add(i < 10 ? &queries : &subjects, codes, (int32_t)(set_random(&state) % 400));
    }
    question q = {.what = "all letters",
                  .scoring = &scoring,
                  .queries = &queries,
                  .subjects = &subjects,
                  .top_n = 20,
                  .min_score = 1};
    compare_rows(&q);
    for (int a = 0; a < scoring.n_letters; a++)
        for (int b = 0; b < scoring.n_letters; b++)
            scoring.score[a * LW_MAX_LETTERS + b] = (int16_t)((int)(set_random(&state) % 16) - 10);
    scoring.max_score = 5;
    scoring.min_score = -10;
    q.what = "asymmetric scores";
    compare_rows(&q);
    set_free(&queries), set_free(&subjects);
}

/* Nothing to do is no error. */
Test(search, empty)
{
    search_set none = {0}, some = {0};
    uint64_t state = 17;
    add_random(&some, &state, 0);
    add_random(&some, &state, 30);
    add_random(&some, &state, 0);
    lw_scoring scoring;
    protein_scoring(&scoring, 11, 1);
    question q = {.what = "empty",
                  .scoring = &scoring,
                  .queries = &none,
                  .subjects = &some,
                  .top_n = 5,
                  .min_score = 1};
    compare_rows(&q);
    q.queries = &some;
    compare_rows(&q);
    q.subjects = &none;
    compare_rows(&q);
    set_free(&some), set_free(&none);
}

/* Many more subjects than lanes, one of them a giant, in little device memory. */
Test(search, outlier_and_streaming)
{
    uint64_t state = 18;
    search_set queries = {0}, subjects = {0};
    for (int i = 0; i < 3; i++)
        add_random(&queries, &state, 30 + 40 * i);
    for (int i = 0; i < 700; i++)
        add_random(&subjects, &state, set_random_length(&state, 900));
    add_random(&subjects, &state, 36000);
    lw_scoring scoring;
    protein_scoring(&scoring, 11, 1);
    question q = {.what = "outlier",
                  .scoring = &scoring,
                  .queries = &queries,
                  .subjects = &subjects,
                  .top_n = 25,
                  .min_score = 1,
                  .device_bytes = 48 << 20};
    compare_rows(&q);
    set_free(&queries), set_free(&subjects);
}

/* Queries that no kernel takes in one go, alone and beside short ones; few of many subjects are wanted. */
Test(search, long_queries)
{
    uint64_t state = 19;
    static const int32_t lengths[] = {1023, 1025, 1600, 2049, 70, 33, 1};
    enum { N = sizeof lengths / sizeof *lengths };
    search_set queries = {0}, subjects = {0};
    for (int i = 0; i < N; i++)
        add_random(&queries, &state, lengths[i]);
    for (int i = 0; i < LW_FEWER(180, 50); i++)
        add_random(&subjects, &state, 20 + set_random_length(&state, 500) / 2);
    for (int i = 0; i < 14; i++)
        add_relative(&subjects, &queries, i % N, &state, 0.03 * i);
    lw_scoring scoring;
    protein_scoring(&scoring, 11, 1);
    question q = {.what = "long queries",
                  .scoring = &scoring,
                  .queries = &queries,
                  .subjects = &subjects,
                  .top_n = 7,
                  .min_score = 1};
    compare_rows(&q);
    for (int i = 0; i < 4; i++) {
        search_set one = {0};
        set_add(&one, queries.codes + queries.start[i], queries.len[i]);
        q.queries = &one;
        q.what = "one long query";
        q.filter = i == 2 ? 40 : 0;
        compare_rows(&q);
        set_free(&one);
    }
    set_free(&queries), set_free(&subjects);
}

/* ---- the collection of real proteins --------------------------------------------------------------------
 */

Test(search, real_proteins)
{
    FILE *file = fopen(LW_SHARED_DIR "/cases/dbsearch/scores.npy", "rb");
    if (!file)
        cr_skip_test("no " LW_SHARED_DIR "/cases/dbsearch");
    enum { QUERIES = 20, SUBJECTS = 3993 };
    static int32_t scores[QUERIES * SUBJECTS];
    uint8_t head[10];
    cr_assert_eq(fread(head, 1, 10, file), 10);
    cr_assert_eq(fseek(file, head[8] + 256 * head[9], SEEK_CUR), 0);
    cr_assert_eq(fread(scores, sizeof *scores, QUERIES * SUBJECTS, file), (size_t)QUERIES * SUBJECTS);
    fclose(file);

    lw_database *all_queries, *db;
    lw_error err = {0};
    cr_assert_eq(
        lw_database_open(&db, LW_SHARED_DIR "/data/protein/db4000.fasta.gz", LW_LETTERS_AUTO, 1, NULL, &err),
        LW_OK, "%s", err.message);
    cr_assert_eq(lw_database_open(&all_queries, LW_SHARED_DIR "/data/protein/query500.fasta.gz",
                                  LW_LETTERS_AUTO, 1, NULL, &err),
                 LW_OK, "%s", err.message);
    const lw_database_view *view = lw_database_get_view(db), *from = lw_database_get_view(all_queries);
    cr_assert_eq(view->n, SUBJECTS);

    /* the queries in the order of the scores */
    search_set queries = {0};
    char name[256];
    file = fopen(LW_SHARED_DIR "/cases/dbsearch/queries.txt", "r");
    cr_assert(file);
    while (fscanf(file, "%255s", name) == 1)
        for (int64_t i = 0; i < from->n; i++)
            if (strcmp(lw_database_name(all_queries, i), name) == 0)
                set_add(&queries, from->codes + from->start[i], from->len[i]);
    fclose(file);
    cr_assert_eq(queries.n, QUERIES);

    lw_scoring scoring;
    protein_scoring(&scoring, 10, 1); /* theirs: the first letter of a gap costs 11 */
    lw_pool *pool;
    cr_assert_eq(lw_pool_open(&pool, 2, NULL), LW_OK);
    for (int r = 1; r < lw_search_backend_count; r++) {
        const lw_search_backend *row = lw_search_backends[r];
        if (!usable(row))
            continue;
        lw_search_setup setup = {.scoring = &scoring, .database = view, .pool = pool};
        void *context;
        cr_assert_eq(row->open(row, &context, &setup, &err), LW_OK, "%s", err.message);
        lw_seqs seqs = set_seqs(&queries);
        int32_t min_score[QUERIES], n_hits[QUERIES];
        for (int i = 0; i < QUERIES; i++)
            min_score[i] = 1;
        lw_search_hit *hits = calloc((size_t)QUERIES * SUBJECTS, sizeof *hits);
        lw_search_request request = {.queries = &seqs, .min_score = min_score, .top_n = SUBJECTS};
        lw_search_result result = {.hits = hits, .stride = SUBJECTS, .n_hits = n_hits};
        cr_assert_eq(row->search(context, &request, &result, &err), LW_OK, "%s", err.message);
        int64_t wrong = 0;
        for (int i = 0; i < QUERIES; i++) {
            int64_t positive = 0;
            for (int k = 0; k < SUBJECTS; k++)
                positive += scores[i * SUBJECTS + k] > 0;
            wrong += n_hits[i] != positive;
            for (int k = 0; k < n_hits[i]; k++) {
                lw_search_hit h = hits[(int64_t)i * SUBJECTS + k],
                              p = k ? hits[(int64_t)i * SUBJECTS + k - 1] : h;
                wrong += h.score != scores[i * SUBJECTS + view->order[h.subject]];
                wrong += k && (h.score > p.score ||
                               (h.score == p.score && view->order[h.subject] < view->order[p.subject]));
            }
        }
        cr_expect_eq(wrong, 0, "%s: %lld wrong", row->base.name, (long long)wrong);
        free(hits);
        row->close(context);
    }
    lw_pool_close(pool);
    lw_database_close(db);
    lw_database_close(all_queries);
    set_free(&queries);
}
