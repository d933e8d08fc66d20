/* The library as its users see it: nothing but the public header. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lanewise/align.h"

enum { MOST = 16 };

typedef struct set {
    uint8_t codes[4096];
    int64_t start[MOST];
    int32_t len[MOST];
    lw_seqs seqs;
} set;

static void fill(set *s, const lw_scoring *scoring, const char *const *text, int n)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        s->start[i] = at;
        s->len[i] = (int32_t)strlen(text[i]);
        cr_assert_eq(lw_scoring_encode(scoring, text[i], s->len[i], s->codes + at), -1);
        at += s->len[i];
    }
    s->seqs = (lw_seqs){.n = n, .codes = s->codes, .start = s->start, .len = s->len};
}

/* A path as text. */
static const char *text_of(const lw_pair *pair, const uint32_t *cigars, char text[256])
{
    *text = '\0';
    for (int32_t k = 0; k < pair->n_cigar; k++) {
        uint32_t op = cigars[pair->cigar + k];
        snprintf(text + strlen(text), 256 - strlen(text), "%u%c", op >> 4, "MID"[op & 15]);
    }
    return text;
}

static const char *const backends[] = {"scalar", "cpu", "cuda-dpx", "cuda-half2", "cuda-int"};
enum { N_BACKENDS = sizeof backends / sizeof *backends };

static lw_aligner *open_aligner(const lw_scoring *scoring, lw_mode mode, unsigned strands,
                                const char *backend)
{
    lw_aligner *a = NULL;
    lw_error err = {0};
    lw_aligner_options o = {.mode = mode, .strands = strands, .backend = backend, .threads = 2};
    lw_status status = lw_aligner_open(&a, scoring, &o, &err);
    if (status == LW_E_UNSUPPORTED)
        return NULL;
    cr_assert_eq(status, LW_OK, "%s: %s", backend, err.message);
    cr_assert_str_eq(lw_aligner_backend(a), backend);
    return a;
}

Test(aligner, pairs)
{
    static const char *const query[] = {"ACGTTGCA", "acgu", "AAAA", "TTGCAACG", ""};
    static const char *const target[] = {"GGACGTGCAGG", "ACGT", "TTTT", "CGTTGCAA", "ACGT"};
    lw_scoring scoring;
    set q, t;
    cr_assert_eq(lw_scoring_dna(&scoring, 2, 3, 1, 1, NULL), LW_OK);
    fill(&q, &scoring, query, 5);
    fill(&t, &scoring, target, 5);
    for (int b = 0; b < N_BACKENDS; b++) {
        lw_aligner *a = open_aligner(&scoring, LW_LOCAL, LW_BOTH_STRANDS, backends[b]);
        if (!a)
            continue;
        lw_pair scores[5], pairs[5];
        uint32_t *cigars = NULL;
        char text[256];
        cr_assert_eq(lw_aligner_scores(a, &q.seqs, &t.seqs, scores, NULL), LW_OK);
        cr_assert_eq(lw_aligner_paths(a, &q.seqs, &t.seqs, pairs, &cigars, NULL), LW_OK);
        for (int i = 0; i < 5; i++) {
            cr_assert_eq(scores[i].score, pairs[i].score);
            cr_assert_eq(scores[i].tend, pairs[i].tend);
            cr_assert_eq(scores[i].tstart, -1);
        }
        cr_assert_eq(pairs[0].score, 2 * 7 - 2, "%s: %d", backends[b], pairs[0].score);
        cr_assert_str_eq(text_of(&pairs[0], cigars, text), "3M1I4M");
        cr_assert_eq(pairs[0].tstart, 2);
        cr_assert_eq(pairs[0].tend, 9);
        cr_assert_eq(pairs[1].score, 8);
        cr_assert(pairs[2].aligned && pairs[2].reverse);
        cr_assert_eq(pairs[2].score, 8);
        cr_assert_eq(pairs[3].score, 16);
        cr_assert(pairs[3].reverse);
        cr_assert(!pairs[4].aligned);
        cr_assert_eq(pairs[4].score, 0);
        free(cigars);
        lw_aligner_close(a);
    }
}

Test(aligner, placed_reads)
{
    static const char *const read[] = {"ACGGATTTACAGG", "CACACACA", "GGATTACAGG"};
    static const char *const target[] = {"ACGTTGCAACGGATTTACAGGTTTCACACACACACACAGG"};
    lw_scoring scoring;
    set q, t;
    cr_assert_eq(lw_scoring_dna(&scoring, 1, 4, 2, 1, NULL), LW_OK);
    fill(&q, &scoring, read, 3);
    fill(&t, &scoring, target, 1);
    /* nine letters too far to the right; amid a repeat, at one of its copies; with a letter missing */
    const lw_placement places[] = {{.read = 0, .target = 0, .start = 17, .end = 30, .score = INT32_MIN},
                                   {.read = 1, .target = 0, .start = 26, .end = 34, .score = 8},
                                   {.read = 1, .target = 0, .start = 26, .end = 34, .score = INT32_MIN},
                                   {.read = 2, .target = 0, .start = 10, .end = 20, .score = -7}};
    static const int32_t starts[] = {8, 26, 24, 10}, scores[] = {13, 8, 8, 7};
    static const char *const paths[] = {"13M", "8M", "8M", "3M1D7M"};
    for (int b = 0; b < N_BACKENDS; b++) {
        lw_aligner *a = open_aligner(&scoring, LW_SEMIGLOBAL, LW_FORWARD, backends[b]);
        if (!a)
            continue;
        lw_pair pairs[4];
        uint32_t *cigars = NULL;
        char text[256];
        cr_assert_eq(lw_aligner_realign(a, &q.seqs, &t.seqs, 3, 4, places, pairs, &cigars, NULL), LW_OK);
        for (int i = 0; i < 4; i++) {
            cr_expect_eq(pairs[i].tstart, starts[i], "%s: place %d starts at %d", backends[b], i,
                         pairs[i].tstart);
            cr_expect_eq(pairs[i].score, scores[i], "%s: place %d scores %d", backends[b], i, pairs[i].score);
            cr_expect_str_eq(text_of(&pairs[i], cigars, text), paths[i]);
        }
        free(cigars);
        lw_aligner_close(a);
    }
}

Test(aligner, refuses)
{
    static const char *const one[] = {"ACGT", "AC"};
    lw_scoring dna, protein;
    lw_error err = {0};
    lw_pair pairs[2];
    uint32_t *cigars = NULL;
    set q, t;
    cr_assert_eq(lw_scoring_dna(&dna, 1, 4, 6, 1, NULL), LW_OK);
    cr_assert_eq(lw_scoring_matrix(&protein, "BLOSUM62", LW_PROTEIN, 11, 1, NULL), LW_OK);
    fill(&q, &dna, one, 2);
    fill(&t, &dna, one, 1);
    uint8_t codes[4];
    cr_assert_eq(lw_scoring_encode(&dna, "AC-T", 4, codes), 2);
    lw_aligner *a = NULL;
    cr_assert_eq(lw_aligner_open(&a, &protein, &(lw_aligner_options){.strands = LW_BOTH_STRANDS}, &err),
                 LW_E_ARG);
    cr_assert_eq(lw_aligner_open(&a, &dna, &(lw_aligner_options){.backend = "none"}, NULL), LW_E_ARG);
    cr_assert_null(a);
    a = open_aligner(&dna, LW_LOCAL, LW_FORWARD, "cpu");
    err = (lw_error){0};
    cr_assert_eq(lw_aligner_scores(a, &q.seqs, &t.seqs, pairs, &err), LW_E_ARG);
    cr_assert_str_eq(err.message, "2 queries and 1 targets do not make pairs");
    const lw_placement place = {.read = 0, .target = 0, .start = 2, .end = 5, .score = INT32_MIN};
    cr_assert_eq(lw_aligner_realign(a, &q.seqs, &t.seqs, 5, 1, &place, pairs, &cigars, NULL), LW_E_ARG);
    lw_aligner_close(a);
    a = open_aligner(&dna, LW_SEMIGLOBAL, LW_FORWARD, "cpu");
    err = (lw_error){0};
    cr_assert_eq(lw_aligner_realign(a, &q.seqs, &t.seqs, 5, 1, &place, pairs, &cigars, &err), LW_E_ARG);
    cr_assert_str_eq(err.message, "place 0: read 0 at 2-5 of target 0 is not there");
    q.codes[1] = 77;
    cr_assert_eq(lw_aligner_paths(a, &q.seqs, &q.seqs, pairs, &cigars, NULL), LW_E_ARG);
    lw_aligner_close(a);
}
