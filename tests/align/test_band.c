/* test_band.c - the bound behind proved bands against every path of small matrices. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "align/align_band.h"

enum { MOST = 5, LETTERS = 2, FAR = -1000000 };

static lw_error err;

static int32_t greatest(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static bool is_beyond(int32_t i, int32_t j, int32_t m, int32_t n, int32_t v)
{
    const int32_t d = j - i, longer = n - m;
    return d <= (longer < 0 ? longer : 0) - v || d >= (longer > 0 ? longer : 0) + v;
}

/* The best score of the paths that touch a diagonal v steps beyond the band of excess 0, by cells, states and
 * whether it has been touched. A gap's price is settled when it closes, letter by letter from its start, so
 * that any price by length will do. FAR: there is none. */
static int32_t best_beyond(const lw_scoring *s, lw_mode mode, const uint8_t *q, int32_t m, const uint8_t *t,
                           int32_t n, int32_t v)
{
    int32_t best[MOST + 1][MOST + 1][2], found = FAR;
    for (int32_t i = 0; i <= m; i++)
        for (int32_t j = 0; j <= n; j++) {
            int32_t *here = best[i][j];
            here[0] = here[1] = FAR;
            if (i == 0 && (j == 0 || mode == LW_SEMIGLOBAL))
                here[0] = 0;
            for (int touched = 0; touched < 2; touched++) {
                if (i > 0 && j > 0)
                    here[touched] =
                        greatest(here[touched], best[i - 1][j - 1][touched] +
                                                    s->score[q[i - 1] * LW_MAX_LETTERS + t[j - 1]]);
                for (int32_t k = 1; k <= i; k++)
                    here[touched] = greatest(here[touched], best[i - k][j][touched] - lw_gap_cost(s, k));
                for (int32_t k = 1; k <= j; k++)
                    here[touched] = greatest(here[touched], best[i][j - k][touched] - lw_gap_cost(s, k));
            }
            /* a gap that ends further in has touched no diagonal further out than its two ends */
            if (is_beyond(i, j, m, n, v)) {
                here[1] = greatest(here[1], here[0]);
                here[0] = FAR;
            }
            if (i == m && (j == n || mode == LW_SEMIGLOBAL))
                found = greatest(found, here[1]);
        }
    return found;
}

/* All sequences of up to MOST - 1 and MOST letters. */
static void every_pair(const char *what, const lw_scoring *s, bool may_be_reached)
{
    bool reached = false;
    for (lw_mode mode = LW_GLOBAL; mode <= LW_SEMIGLOBAL; mode++)
        for (int32_t m = 0; m < MOST; m++)
            for (int32_t n = 0; n <= MOST; n++)
                for (uint32_t bits = 0; bits < 1u << (m + n); bits++) {
                    uint8_t q[MOST], t[MOST];
                    for (int32_t i = 0; i < m; i++)
                        q[i] = bits >> i & 1;
                    for (int32_t j = 0; j < n; j++)
                        t[j] = bits >> (m + j) & 1;
                    for (int32_t v = 1; v <= MOST + 1; v++) {
                        const int32_t most = best_beyond(s, mode, q, m, t, n, v);
                        const int64_t bound = lw_band_beyond(s, mode, m, n, v);
                        if (most <= FAR / 2)
                            continue;
                        cr_assert(most <= bound, "%s, mode %d, %d x %d, %d beyond: %d, bound %ld", what, mode,
                                  m, n, v, most, (long)bound);
                        reached |= most == bound;
                    }
                }
    cr_assert(reached || !may_be_reached, "%s: a bound that nothing reaches", what);
}

Test(band, bound_holds_for_every_path)
{
    const int schemes[][6] = {{1, 4, 6, 1, -1, 0},  {2, 4, 4, 2, 24, 1}, {1, 1, 0, 0, -1, 0},
                              {5, 4, 10, 0, -1, 0}, {3, 1, 0, 2, -1, 0}, {1, 1, 1, 3, 3, 0},
                              {4, 1, 0, 1, 2, 0}};
    for (size_t k = 0; k < sizeof schemes / sizeof *schemes; k++) {
        lw_scoring s;
        char what[40];
        cr_assert_eq(lw_scoring_dna(&s, schemes[k][0], schemes[k][1], schemes[k][2], schemes[k][3], &err),
                     LW_OK);
        if (schemes[k][4] >= 0)
            cr_assert_eq(lw_scoring_two_piece(&s, schemes[k][4], schemes[k][5], &err), LW_OK, "%s",
                         err.message);
        snprintf(what, sizeof what, "scheme %zu", k);
        every_pair(what, &s, true);
    }
}

/* Matrices that reward mismatches, or nothing at all. */
Test(band, bound_holds_for_any_matrix)
{
    uint64_t state = 1;
    for (int k = 0; k < 12; k++) {
        lw_scoring s;
        char what[40];
        cr_assert_eq(lw_scoring_dna(&s, 1, 1, k % 4, k % 3, &err), LW_OK);
        s.max_score = INT32_MIN;
        for (int q = 0; q < LETTERS; q++)
            for (int t = 0; t < LETTERS; t++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                const int score = (int)((state >> 33) % 11) - (k % 2 ? 12 : 5);
                s.score[q * LW_MAX_LETTERS + t] = (int16_t)score;
                s.max_score = score > s.max_score ? score : s.max_score;
            }
        snprintf(what, sizeof what, "matrix %d", k);
        every_pair(what, &s, false);
    }
}

/* The excess is the least that the bound proves, for every score. */
Test(band, excess_is_the_least)
{
    lw_scoring s;
    cr_assert_eq(lw_scoring_dna(&s, 2, 4, 4, 1, &err), LW_OK);
    for (lw_mode mode = LW_GLOBAL; mode <= LW_SEMIGLOBAL; mode++)
        for (int32_t m = 0; m < 14; m++)
            for (int32_t n = 0; n < 14; n++)
                for (int32_t score = -80; score < 30; score++) {
                    const int32_t shorter = m < n ? m : n;
                    int32_t least = 0;
                    while (least < shorter && lw_band_beyond(&s, mode, m, n, least + 1) >= score)
                        least++;
                    cr_assert_eq(lw_band_excess(&s, mode, m, n, score), least, "%d x %d, %d", m, n, score);
                }
}
