/* test_scalar.c - the reference against results worked out by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/align_backend.h"

typedef struct result {
    int score, qstart, qend, tstart, tend;
    char cigar[64];
} result;

static void encode(const lw_scoring *s, const char *text, uint8_t *codes)
{
    for (size_t i = 0; text[i]; i++)
        codes[i] = s->code[(unsigned char)text[i]];
}

static result align(const lw_scoring *s, lw_mode mode, const char *query, const char *target)
{
    uint8_t q[64], t[64];
    encode(s, query, q);
    encode(s, target, t);
    int64_t start = 0;
    int32_t m = (int32_t)strlen(query), n = (int32_t)strlen(target);
    lw_seqs queries = {1, q, &start, &m}, targets = {1, t, &start, &n};
    lw_align_setup setup = {
        .scoring = s, .mode = mode, .strands = LW_FORWARD, .min_score = INT32_MIN, .n_hits = 1};
    void *context;
    cr_assert_eq(lw_align_scalar.open(&lw_align_scalar, &context, &setup, NULL), LW_OK);
    lw_hit hit;
    cr_assert_eq(lw_align_scalar.pair_ends(context, &queries, &targets, &hit, NULL), LW_OK);
    result r = {.qstart = -1, .qend = -1, .tstart = -1, .tend = -1, .cigar = "*"};
    if (hit.target >= 0) {
        lw_trace_task task = {.query = 0};
        lw_path path;
        lw_cigars cigars = {0};
        lw_error err = {0};
        lw_trace_window(s, mode, &hit, &task);
        cr_assert_eq(lw_align_scalar.trace(context, &queries, &targets, 1, &task, &path, &cigars, &err),
                     LW_OK, "%s", err.message);
        r = (result){hit.score, path.qstart, hit.qend, path.tstart, hit.tend, ""};
        for (int k = 0; k < path.n_cigar; k++)
            sprintf(r.cigar + strlen(r.cigar), "%u%c", cigars.op[path.cigar + k] >> 4,
                    "MID"[cigars.op[path.cigar + k] & 15]);
        free(cigars.op);
    }
    lw_align_scalar.close(context);
    return r;
}

Test(scalar, by_hand)
{
    static const struct {
        lw_mode mode;
        int a, b, o, e;
        const char *query, *target;
        result want;
    } cases[] = {
        {LW_LOCAL, 1, 4, 6, 1, "ACGT", "TTACGTTT", {4, 0, 4, 2, 6, "4M"}},
        {LW_LOCAL, 1, 4, 6, 1, "AAAA", "CCCC", {0, -1, -1, -1, -1, "*"}},
        {LW_LOCAL, 1, 4, 6, 1, "", "CCCC", {0, -1, -1, -1, -1, "*"}},
        {LW_LOCAL, 2, 3, 1, 1, "ACGTACGT", "ACGTTACGT", {14, 0, 8, 0, 9, "3M1D5M"}}, /* the gap lies left */
        {LW_LOCAL, 1, 4, 0, 1, "AACC", "AAGCC", {3, 0, 4, 0, 5, "2M1D2M"}},
        {LW_LOCAL, 1, 1, 6, 1, "GGGGGGTTTTTT", "AAACCCTTTTTT", {6, 6, 12, 6, 12, "6M"}},
        {LW_GLOBAL, 1, 4, 6, 1, "ACGT", "AGT", {-4, 0, 4, 0, 3, "1M1I2M"}},
        {LW_GLOBAL, 1, 4, 6, 1, "", "ACG", {-9, 0, 0, 0, 3, "3D"}},
        {LW_GLOBAL, 1, 4, 6, 1, "ACG", "", {-9, 0, 3, 0, 0, "3I"}},
        {LW_GLOBAL, 1, 4, 6, 1, "", "", {0, 0, 0, 0, 0, ""}},
        {LW_GLOBAL, 1, 4, 6, 1, "A", "A", {1, 0, 1, 0, 1, "1M"}},
        {LW_SEMIGLOBAL, 1, 4, 6, 1, "ACGT", "TTACGTTT", {4, 0, 4, 2, 6, "4M"}},
        {LW_SEMIGLOBAL, 1, 4, 6, 1, "ACTT", "GGACGTGG", {-1, 0, 4, 2, 6, "4M"}},
        {LW_LOCAL, 1, 4, 6, 1, "NNNN", "ACGT", {0, -1, -1, -1, -1, "*"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lw_scoring s;
        cr_assert_eq(lw_scoring_dna(&s, cases[i].a, cases[i].b, cases[i].o, cases[i].e, NULL), LW_OK);
        result got = align(&s, cases[i].mode, cases[i].query, cases[i].target), want = cases[i].want;
        cr_expect(got.score == want.score && got.qstart == want.qstart && got.qend == want.qend &&
                      got.tstart == want.tstart && got.tend == want.tend &&
                      strcmp(got.cigar, want.cigar) == 0,
                  "case %zu: %s vs %s: %d %d-%d %d-%d %s", i, cases[i].query, cases[i].target, got.score,
                  got.qstart, got.qend, got.tstart, got.tend, got.cigar);
    }
}
