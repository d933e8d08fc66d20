/* test_scoring.c - alphabets and matrix files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/align_run.h"
#include "lanewise/align.h"

static int score(const lw_scoring *s, char q, char t)
{
    return s->score[s->code[(unsigned char)q] * LW_MAX_LETTERS + s->code[(unsigned char)t]];
}

Test(scoring, dna_has_one_n_rule)
{
    lw_scoring s;
    cr_assert_eq(lw_scoring_dna(&s, 1, 4, 6, 1, NULL), LW_OK);
    cr_expect_eq(score(&s, 'A', 'a'), 1);
    cr_expect_eq(score(&s, 'U', 't'), 1);
    cr_expect_eq(score(&s, 'A', 'C'), -4);
    cr_expect_eq(score(&s, 'N', 'N'), -1);
    cr_expect_eq(score(&s, 'R', 'A'), -1);
    cr_expect_eq(s.complement[s.code['A']], s.code['T']);
    cr_expect_eq(s.complement[s.code['N']], s.code['N']);
    cr_expect_eq(s.code['-'], LW_NO_CODE);
    cr_expect_eq(s.code['E'], LW_NO_CODE);
    cr_expect_eq(s.max_score, 1);
    cr_expect_eq(s.min_score, -4);
}

Test(scoring, penalties_out_of_range_are_refused)
{
    lw_scoring s;
    lw_error err = {0};
    cr_expect_eq(lw_scoring_dna(&s, 1, 4, -1, 1, &err), LW_E_ARG);
    cr_expect_str_eq(err.message, "gap open penalty -1 is outside 0 to 32767");
    cr_expect_eq(lw_scoring_dna(&s, 1, 4, 6, 32768, NULL), LW_E_ARG);
    cr_expect_eq(lw_scoring_dna(&s, 40000, 4, 6, 1, NULL), LW_E_ARG);
}

Test(scoring, built_in_matrices)
{
    static const struct {
        const char *name;
        char q, t;
        int score;
    } cases[] = {{"BLOSUM62", 'W', 'W', 11}, {"blosum62", 'B', 'D', 4},  {"BLOSUM45", 'W', 'W', 15},
                 {"BLOSUM50", 'A', 'R', -2}, {"BLOSUM80", 'C', 'C', 13}, {"BLOSUM90", '*', '*', 1},
                 {"PAM30", 'A', 'A', 6},     {"PAM70", 'W', 'W', 13},    {"PAM250", 'W', 'W', 17},
                 {"BLOSUM62", 'X', 'A', 0},  {"BLOSUM62", '*', 'A', -4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lw_scoring s;
        lw_error err = {0};
        cr_assert_eq(lw_scoring_matrix(&s, cases[i].name, LW_PROTEIN, 11, 1, &err), LW_OK, "%s", err.message);
        cr_expect_eq(score(&s, cases[i].q, cases[i].t), cases[i].score, "%s %c %c: %d", cases[i].name,
                     cases[i].q, cases[i].t, score(&s, cases[i].q, cases[i].t));
    }
    lw_scoring s;
    cr_assert_eq(lw_scoring_matrix(&s, "BLOSUM62", LW_PROTEIN, 11, 1, NULL), LW_OK);
    for (const char *p = "UOJ"; *p; p++)
        cr_expect(s.code[(unsigned char)*p] == s.code['X'] && s.substituted[(unsigned char)*p],
                  "%c counts as X", *p);
    cr_assert_eq(lw_scoring_matrix(&s, "NUC.4.4", LW_DNA, 6, 1, NULL), LW_OK);
    cr_expect_eq(score(&s, 'R', 'A'), 1);
    cr_expect_eq(s.complement[s.code['R']], s.code['Y']);
}

static lw_status from_text(const char *text, lw_alphabet_type type, lw_scoring *s, lw_error *err)
{
    char path[] = "/tmp/lw-matrix-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    fputs(text, file);
    fclose(file);
    memset(err, 0, sizeof *err);
    lw_status status = lw_scoring_matrix(s, path, type, 5, 1, err);
    remove(path);
    return status;
}

Test(scoring, a_gap_costs_the_less_of_two_prices_however_large_the_other)
{
    lw_scoring s;
    lw_error err;
    cr_assert_eq(lw_scoring_dna(&s, 2, 4, 4, 2, &err), LW_OK);
    cr_assert_eq(lw_scoring_two_piece(&s, 24, 1, &err), LW_OK);
    cr_expect_eq(lw_gap_cost(&s, 19), 42);
    cr_expect_eq(lw_gap_cost(&s, 20), 44);
    cr_expect_eq(lw_gap_cost(&s, 21), 45);
    cr_assert_eq(lw_scoring_dna(&s, 2, 4, 4, 2, &err), LW_OK);
    cr_assert_eq(lw_scoring_two_piece(&s, 0, 32767, &err), LW_OK);
    cr_expect_eq(lw_gap_cost(&s, 100000), 200004);
}

Test(scoring, user_matrix_columns_are_found_by_their_letters)
{
    lw_scoring s;
    lw_error err;
    cr_assert_eq(
        from_text("# order is free\r\n  T G C A N\r\nA -4 -4 -4 5 -1\r\nC -4 -4 6 -4 -1\nG -4 7 -4 -4 -1\n"
                  "T 8 -4 -4 -4 -1\nN -1 -1 -1 -1 -1",
                  LW_DNA, &s, &err),
        LW_OK, "%s", err.message);
    cr_expect_eq(score(&s, 'A', 'A'), 5);
    cr_expect_eq(score(&s, 'C', 'C'), 6);
    cr_expect_eq(score(&s, 'G', 'G'), 7);
    cr_expect_eq(score(&s, 'T', 'U'), 8);
}

Test(scoring, bad_matrix_files_are_named_with_their_line)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "no matrix in this file"},
        {"A C\nA 1 2\n", "1 rows for 2 columns: the matrix is not square"},
        {"A C\nA 1\nC 1 2\n", "line 2: row A has 1 scores for 2 columns"},
        {"A C\nA 1 2 3\n", "line 2: row A has 3 scores"},
        {"A C\nA 1 x\n", "line 2: row A: score: 'x' is not a whole number"},
        {"A C\nA 1 40000\n", "outside -32767 to 32767"},
        {"A A\n", "column A stands twice"},
        {"A C\nA 1 2\nA 1 2\n", "row A stands twice"},
        {"A C\nG 1 2\n", "not square"},
        {"AB C\n", "is not one letter"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lw_scoring s;
        lw_error err;
        cr_expect_eq(from_text(cases[i].text, LW_PROTEIN, &s, &err), LW_E_INPUT);
        cr_expect(strstr(err.message, cases[i].says), "'%s' does not say '%s'", err.message, cases[i].says);
    }
}

/* A CIGAR operation holds 28 bits, rows beyond the last are counted with 32. */
Test(scoring, lengths_that_no_alignment_holds)
{
    lw_scoring usual, free_gaps;
    lw_error err = {0};
    cr_assert_eq(lw_scoring_dna(&usual, 1, 4, 6, 1, &err), LW_OK);
    cr_assert_eq(lw_scoring_dna(&free_gaps, 1, 4, 6, 0, &err), LW_OK);
    const int32_t operation = (1 << 28) - 1;
    const struct {
        const lw_scoring *scoring;
        lw_mode mode;
        int32_t query, target;
        lw_status status;
    } cases[] = {{&usual, LW_LOCAL, 200, operation + 1, LW_OK},
                 {&usual, LW_SEMIGLOBAL, 200, INT32_MAX - 1024, LW_OK},
                 {&usual, LW_SEMIGLOBAL, 200, INT32_MAX - 1023, LW_E_RANGE},
                 {&usual, LW_LOCAL, operation + 1, 200, LW_E_RANGE},
                 {&usual, LW_GLOBAL, 200, operation + 1, LW_E_RANGE},
                 {&free_gaps, LW_LOCAL, 200, operation, LW_OK},
                 {&free_gaps, LW_LOCAL, 200, operation + 1, LW_E_RANGE},
                 {&free_gaps, LW_SEMIGLOBAL, 200, operation + 1, LW_E_RANGE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(
            lw_check_range(cases[i].scoring, cases[i].mode, cases[i].query, cases[i].target, "a.fa", &err),
            cases[i].status, "case %zu: %s", i, err.message);
}
