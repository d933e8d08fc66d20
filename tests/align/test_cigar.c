/* test_cigar.c - what follows from a path: =/X, NM, MD, score, MAPQ. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "align/cigar.h"

static uint32_t ops[16];

static int parse(const char *text)
{
    int n = 0;
    for (char *p = (char *)text; *p; p++) {
        uint32_t length = (uint32_t)strtoul(p, &p, 10);
        ops[n++] = length << 4 | (uint32_t)(strchr("MIDNSHP=X", *p) - "MIDNSHP=X");
    }
    return n;
}

static void encode(const lw_scoring *s, const char *text, uint8_t *codes)
{
    for (size_t i = 0; text[i]; i++)
        codes[i] = s->code[(unsigned char)text[i]];
}

Test(cigar, dna_by_hand)
{
    static const struct {
        const char *query, *target, *path, *split, *md;
        int nm, matches, columns, score; /* at 1 -4 6 1 */
    } cases[] = {
        {"ACGT", "ACGT", "4M", "4=", "4", 0, 4, 4, 4},
        {"ACGT", "AGGT", "4M", "1=1X2=", "1G2", 1, 3, 4, -1},
        {"acgt", "ACGU", "4M", "4=", "4", 0, 4, 4, 4},
        {"ACGT", "TCGA", "4M", "1X2=1X", "0T2A0", 2, 2, 4, -6},
        {"AACC", "AAGGCC", "2M2D2M", "2=2D2=", "2^GG2", 2, 4, 6, -4},
        {"AATCC", "AAGGCC", "2M2D1I2M", "2=2D1I2=", "2^GG2", 3, 4, 7, -11},
        /* a mismatch right behind a deletion: the 0 keeps them apart */
        {"AATC", "AAGGCC", "2M2D2M", "2=2D1X1=", "2^GG0C1", 3, 3, 6, -9},
        {"ANGT", "ANGT", "4M", "1=1X2=", "1N2", 1, 3, 4, 2},
        /* IUPAC codes score as N, yet calmd counts equal ones as a match */
        {"ARGT", "ARGT", "4M", "4=", "4", 0, 4, 4, 2},
        {"ARGT", "AAGT", "4M", "1=1X2=", "1A2", 1, 3, 4, 2},
        {"AAAA", "AA", "1M2I1M", "1=2I1=", "2", 2, 2, 4, -6},
        /* a gap in parts costs what it costs in one */
        {"AAAA", "AA", "1M1I1I1M", "1=2I1=", "2", 2, 2, 4, -6},
        {"AAAAA", "AA", "1M2I0M1I1M", "1=3I1=", "2", 3, 2, 5, -7},
    };
    lw_scoring s;
    lw_match_table table;
    cr_assert_eq(lw_scoring_dna(&s, 1, 4, 6, 1, NULL), LW_OK);
    lw_match_table_fill(&table, &s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = parse(cases[i].path);
        lw_path_counts counts;
        lw_path_count(&table, cases[i].query, cases[i].target, ops, n, &counts);
        cr_expect_eq(counts.nm, cases[i].nm, "case %zu: NM %d", i, (int)counts.nm);
        cr_expect_eq(counts.matches, cases[i].matches, "case %zu", i);
        cr_expect_eq(counts.columns, cases[i].columns, "case %zu", i);
        cr_expect_eq(counts.query_letters, (int64_t)strlen(cases[i].query));
        cr_expect_eq(counts.target_letters, (int64_t)strlen(cases[i].target));
        kstring_t text = {0};
        cr_expect_eq(lw_path_md(&table, cases[i].query, cases[i].target, ops, n, &text), 0);
        cr_expect_str_eq(text.s, cases[i].md, "case %zu: MD %s", i, text.s);
        text.l = 0;
        lw_cigars split = {0};
        cr_expect_eq(lw_path_split(&table, cases[i].query, cases[i].target, ops, n, &split, NULL), LW_OK);
        lw_path_text(split.op, split.n, &text);
        cr_expect_str_eq(text.s, cases[i].split, "case %zu: %s", i, text.s);
        uint8_t q[16], t[16];
        encode(&s, cases[i].query, q);
        encode(&s, cases[i].target, t);
        cr_expect_eq(lw_path_score(&s, q, t, ops, n), cases[i].score, "case %zu: %d", i,
                     (int)lw_path_score(&s, q, t, ops, n));
        free(split.op);
        ks_free(&text);
    }
}

Test(cigar, protein)
{
    lw_scoring s;
    lw_match_table table;
    lw_path_counts counts;
    cr_assert_eq(lw_scoring_matrix(&s, "BLOSUM62", LW_PROTEIN, 11, 1, NULL), LW_OK);
    lw_match_table_fill(&table, &s);
    /* X and what counts as X never match; B, Z and * are letters like others */
    lw_path_count(&table, "WXUBZ*j", "WXUBZ*J", ops, parse("7M"), &counts);
    cr_assert_eq(counts.matches, 4);
    cr_assert_eq(counts.nm, 3);
}

Test(cigar, empty_path_is_a_star)
{
    kstring_t text = {0};
    cr_assert_eq(lw_path_text(NULL, 0, &text), 0);
    cr_assert_str_eq(text.s, "*");
    ks_free(&text);
}

Test(cigar, mapq)
{
    lw_scoring s;
    cr_assert_eq(lw_scoring_dna(&s, 2, 4, 6, 1, NULL), LW_OK);
    cr_assert_eq(lw_mapq(&s, LW_LOCAL, 100, 100, 60), 0);
    cr_assert_eq(lw_mapq(&s, LW_LOCAL, 100, 0, 60), 60);
    cr_assert_eq(lw_mapq(&s, LW_LOCAL, 100, 90, 60), 25);
    cr_assert_eq(lw_mapq(&s, LW_LOCAL, 99, 90, 60), 22); /* floor(22.7) */
    cr_assert_eq(lw_mapq(&s, LW_LOCAL, 1000000000, 999999999, 60), 0);
    /* semiglobal: of the highest score the read could have, 2 * 50 */
    cr_assert_eq(lw_mapq(&s, LW_SEMIGLOBAL, 90, 80, 50), 25);
    cr_assert_eq(lw_mapq(&s, LW_SEMIGLOBAL, 90, LW_NO_SECOND, 50), 60);
    cr_assert_eq(lw_mapq(&s, LW_SEMIGLOBAL, -20, LW_NO_SECOND, 50), 0);
    cr_assert_eq(lw_mapq(&s, LW_SEMIGLOBAL, -20, -60, 50), 60);
    cr_assert_eq(lw_mapq(&s, LW_GLOBAL, -20, -20, 50), 60);
}
