/* align_band.h - bands of the matrix that hold every optimal path, proved from a lower bound of the score.
 *
 * Cell (i, j) of m query and n target letters lies on diagonal d = j - i; a global path begins on 0 and ends
 * on D = n - m. A band of excess w holds the diagonals from min(0, D) - w to max(0, D) + w. A path that
 * leaves it touches the diagonal v = w + 1 steps beyond one of its borders, since a gap letter moves it by
 * one diagonal and a pair of letters by none.
 *
 * What such a path can score, global: say it touches d = max(0, D) + v. It takes d deleted letters to come
 * from diagonal 0 and d - D inserted ones to go back to D, or x more of each, so that n - d - x letters are
 * paired. Gaps cost open + k extend, or the less of two such prices: open, extend >= 0, so a price never
 * falls with k and several gaps cost no less than one of their total length. With s the greatest entry of the
 * matrix, or 0 if that is negative, the score is at most s (n - d - x) - cost(d + x) - cost(d - D + x), which
 * is greatest for x = 0. n - max(0, D) = min(m, n), and of d and d - D one is v and the other |D| + v:
 *
 *     U(v) = s (min(m, n) - v) - cost(v) - cost(|D| + v)
 *
 * The other border gives the same with query and target exchanged. More v only lowers it.
 *
 * Semiglobal (target letters at both ends are free): a path may begin and end on any diagonal, but all m
 * query letters are used. One that touches d = max(0, D) + v pairs i letters at most before (i, j) and n - j
 * after it, n - d in all, and inserts the other m - n + d; one that touches min(0, D) - v has inserted v -
 * min(0, D) letters on its way there from the first row, and pairs the others at most. Both ways
 *
 *     U(v) = s (min(m, n) - v) - cost(v + max(0, -D))
 *
 * Beyond v = min(m, n) nothing can be touched: a path has min(m, n) - v >= 0 pairs there. Local paths are not
 * held: one that touches a diagonal far off pays for no gap.
 *
 * If the score of some path, for example the best one within the band, is greater than U(w + 1), then every
 * optimal path lies in the band, each of several equally good ones too. So computing the cells of the band
 * alone, with minus infinity around it, gives more than the same score:
 * - Each state (H, E, F) on an optimal path has its true value, since the best path to it continues to an
 *   optimal path and thus lies in the band.
 * - Where several sources of such a state tie, each of them is on an optimal path as well, so that it has its
 *   true value too; and one that loses in the whole matrix has no greater value in the band.
 * So the path chosen by the tie rule is the same, operation by operation, and so is the end cell. */
#ifndef LW_ALIGN_BAND_H
#define LW_ALIGN_BAND_H

#include <stdint.h>
#include "lanewise/align.h"

/* What a path scores at most that touches the diagonal v >= 1 steps beyond the band of excess 0. INT64_MIN:
 * there is no such path. */
static inline int64_t lw_band_beyond(const lw_scoring *s, lw_mode mode, int32_t m, int32_t n, int64_t v)
{
    const int64_t shorter = m < n ? m : n, best = s->max_score > 0 ? s->max_score : 0;
    const int64_t apart = n > m ? (int64_t)n - m : (int64_t)m - n;
    if (v > shorter)
        return INT64_MIN;
    int64_t score = best * (shorter - v);
    if (mode == LW_GLOBAL)
        score -= (int64_t)lw_gap_cost(s, (int32_t)v) + lw_gap_cost(s, (int32_t)(apart + v));
    else
        score -= lw_gap_cost(s, (int32_t)(m > n ? apart + v : v));
    return score;
}

/* The least excess whose band holds every optimal path, given that some path has `score`. */
static inline int32_t lw_band_excess(const lw_scoring *s, lw_mode mode, int32_t m, int32_t n, int64_t score)
{
    int32_t low = 0, high = m < n ? m : n; /* a band of excess `high` is the whole matrix */
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (lw_band_beyond(s, mode, m, n, (int64_t)middle + 1) < score)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

#endif
