/* test_statistics.c - E-values and bit scores against what BLAST 2.12 prints for the same numbers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "align/statistics.h"

static lw_statistics protein(const char *matrix, int open, int extend)
{
    lw_scoring scoring;
    lw_statistics s;
    lw_error err = {0};
    cr_assert_eq(lw_scoring_matrix(&scoring, matrix, LW_PROTEIN, open, extend, NULL), LW_OK);
    cr_assert_eq(lw_statistics_find(&s, &scoring, &err), LW_OK, "%s", err.message);
    return s;
}

static void expect_row(const lw_statistics *s, int32_t score, double space, const char *evalue,
                       const char *bits)
{
    char text[LW_STATISTIC_TEXT];
    lw_print_evalue(text, lw_evalue(s, score, space));
    cr_expect_str_eq(text, evalue, "score %d: E-value %s, not %s", score, text, evalue);
    lw_print_bits(text, lw_bit_score(s, score));
    cr_expect_str_eq(text, bits, "score %d: %s bits, not %s", score, text, bits);
}

/* blastp -comp_based_stats 0 -seg no, without finite-size correction, 3993 sequences of 2,128,052 letters */
Test(statistics, as_blastp)
{
    lw_statistics s = protein("BLOSUM62", 11, 1);
    double space = lw_search_space(&s, 57, 2128052, 3993);
    expect_row(&s, 308, space, "4.12e-30", "123");
    expect_row(&s, 258, space, "2.59e-24", "103");
    expect_row(&s, 215, space, "2.51e-19", "87.4");
    expect_row(&s, 50, space, "3.4", "23.9");
    expect_row(&s, 46, space, "9.9", "22.3");
    space = lw_search_space(&s, 635, 2128052, 3993);
    expect_row(&s, 3192, space, "0.0", "1234");
    expect_row(&s, 572, space, "1.83e-59", "224");
}

Test(statistics, cutoff_is_the_smallest_score)
{
    static const double evalues[] = {1e-180, 1e-50, 0.001, 1, 10, 1e6, 1e12};
    lw_statistics s = protein("BLOSUM62", 11, 1);
    double space = lw_search_space(&s, 300, 200000000, 570000);
    for (int i = 0; i < 7; i++) {
        int32_t cut = lw_evalue_cutoff(&s, evalues[i], space);
        cr_expect(lw_evalue(&s, cut, space) <= evalues[i]);
        cr_expect(cut == 1 || lw_evalue(&s, cut - 1, space) > evalues[i]);
    }
}

Test(statistics, known_and_unknown)
{
    static const struct {
        const char *matrix;
        int open, extend;
        double lambda;
    } known[] = {{"BLOSUM45", 14, 2, 0.195}, {"BLOSUM50", 13, 2, 0.193}, {"BLOSUM80", 10, 1, 0.299},
                 {"BLOSUM90", 10, 1, 0.290}, {"PAM30", 9, 1, 0.294},     {"PAM70", 10, 1, 0.291},
                 {"PAM250", 14, 2, 0.182}};
    for (int i = 0; i < 7; i++)
        cr_expect_eq(protein(known[i].matrix, known[i].open, known[i].extend).lambda, known[i].lambda, "%s",
                     known[i].matrix);
    lw_scoring scoring;
    lw_statistics s;
    lw_error err = {0};
    cr_assert_eq(lw_scoring_matrix(&scoring, "BLOSUM62", LW_PROTEIN, 12, 3, NULL), LW_OK);
    cr_expect_eq(lw_statistics_find(&s, &scoring, &err), LW_E_ARG);
    cr_expect(strstr(err.message, "11/1") && strstr(err.message, "--no-evalue"), "%s", err.message);
    scoring.score[0]++; /* no longer BLOSUM62, whatever its name */
    err = (lw_error){0};
    cr_expect_eq(lw_statistics_find(&s, &scoring, &err), LW_E_ARG);
    cr_expect(strstr(err.message, "BLOSUM80"), "%s", err.message);
}

Test(statistics, dna)
{
    lw_scoring scoring;
    lw_statistics s;
    lw_error err = {0};
    cr_assert_eq(lw_scoring_dna(&scoring, 2, 3, 5, 2, NULL), LW_OK);
    cr_assert_eq(lw_statistics_find(&s, &scoring, &err), LW_OK, "%s", err.message);
    cr_expect_eq(s.lambda, 0.625);
    cr_expect(s.even);
    /* blastn, 300 sequences: the E-value of an odd score is that of the even one below, its bits are not */
    cr_expect_eq(lw_evalue(&s, 139, 1e9), lw_evalue(&s, 138, 1e9));
    char text[LW_STATISTIC_TEXT];
    lw_print_bits(text, lw_bit_score(&s, 139));
    cr_expect_str_eq(text, "126");
    cr_assert_eq(lw_scoring_dna(&scoring, 4, 6, 10, 4, NULL), LW_OK); /* the same, doubled */
    cr_assert_eq(lw_statistics_find(&s, &scoring, &err), LW_OK, "%s", err.message);
    cr_expect_eq(s.lambda, 0.3125);
    cr_assert_eq(lw_scoring_dna(&scoring, 1, 4, 6, 1, NULL), LW_OK);
    cr_expect_eq(lw_statistics_find(&s, &scoring, &err), LW_E_ARG);
    cr_assert_eq(lw_scoring_dna(&scoring, 1, 17, 6, 1, NULL), LW_OK);
    err = (lw_error){0};
    cr_expect_eq(lw_statistics_find(&s, &scoring, &err), LW_E_ARG);
    cr_expect(strstr(err.message, "2/-3"), "%s", err.message);
}

Test(statistics, formats)
{
    static const struct {
        double value;
        const char *evalue;
    } cases[] = {{0, "0.0"},
                 {1e-181, "0.0"},
                 {3.456e-120, "3.46e-120"},
                 {8.99e-4, "8.99e-04"},
                 {0.0009, "0.001"},
                 {0.0996, "0.100"},
                 {0.1, "0.10"},
                 {0.996, "1.00"},
                 {1, "1.0"},
                 {9.96, "10.0"},
                 {12.6, "13"}};
    char text[LW_STATISTIC_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lw_print_evalue(text, cases[i].value);
        cr_expect_str_eq(text, cases[i].evalue, "%g: %s, not %s", cases[i].value, text, cases[i].evalue);
    }
    lw_print_bits(text, 99.85);
    cr_expect_str_eq(text, "99.8");
    lw_print_bits(text, 123.96);
    cr_expect_str_eq(text, "123");
    lw_print_bits(text, 123456.7);
    cr_expect_str_eq(text, "1.235e+05");
}
