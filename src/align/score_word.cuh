/* score_word.cuh - one cell and one row of the recurrence, for every way to hold scores in a word.
 *
 *   H = max(diagonal + s, E, F) (local: and 0);  E' = max(E - extend, H - open');  F' likewise
 *
 * with open' = gap_open + gap_extend. E' belongs to the next row of the same column, F' to the next column of
 * the same row. Local mode floors E and F at 0 where that is free: a gap state below 0 never wins against a
 * new start. */
#ifndef LW_SCORE_WORD_CUH
#define LW_SCORE_WORD_CUH

#include "align/align_cuda.h"
#include "common/dpx.cuh"
#include "common/shared.cuh"
#include "common/warp.cuh"

template <int WORD> LW_DEVICE uint32_t lw_word_of(int32_t low, int32_t high)
{
    if (WORD == LW_WORD_S32)
        return (uint32_t)low;
    if (WORD == LW_WORD_S16)
        return lw_pack2(low, high);
    /* Local scores are >= 0 and <= 2047: subtracting 2047 or more always ends at or below 0. */
    low = low < -2047 ? -2047 : low;
    high = high < -2047 ? -2047 : high;
    return lw_half_from_int(low) | lw_half_from_int(high) << 16;
}

template <int WORD> LW_DEVICE constexpr int32_t lw_far(void)
{
    return WORD == LW_WORD_S32 ? -LW_FAR_S32 : WORD == LW_WORD_S16 ? -LW_FAR_S16 : -2047;
}

/* A cell in two steps, so that a row can take the diagonal step of its next column before it overwrites the H
 * which that step reads: no register has to be copied. */
template <int WORD> LW_DEVICE uint32_t lw_cell_begin(uint32_t diagonal, uint32_t s, uint32_t e)
{
    if (WORD == LW_WORD_H)
        return lw_addh2(diagonal, s);
    if (WORD == LW_WORD_HALF)
        return lw_maxh2(lw_addh2(diagonal, s), e);
    if (WORD == LW_WORD_S16)
        return lw_addmax2(diagonal, s, e);
    return (uint32_t)lw_addmax((int32_t)diagonal, (int32_t)s, (int32_t)e);
}

template <int WORD, int LOCAL>
LW_DEVICE void lw_cell_end(uint32_t t, uint32_t open, uint32_t extend, uint32_t &h, uint32_t &e, uint32_t &f)
{
    static_assert(LOCAL || WORD == LW_WORD_S16 || WORD == LW_WORD_S32,
                  "half-precision words hold local scores");
    if (WORD == LW_WORD_H) {
        h = lw_max3_relu2(t, e, f);
        uint32_t g = lw_addh2(h, open);
        e = lw_addmax_relu2(e, extend, g);
        f = lw_addmax_relu2(f, extend, g);
    } else if (WORD == LW_WORD_HALF) {
        h = lw_maxh2(t, lw_maxh2(f, 0));
        uint32_t g = lw_addh2(h, open);
        e = lw_maxh2(lw_addh2(e, extend), g);
        f = lw_maxh2(lw_addh2(f, extend), g);
    } else if (WORD == LW_WORD_S16) {
        h = LOCAL ? lw_max_relu2(t, f) : lw_max2(t, f);
        uint32_t g = lw_add2(h, open);
        e = LOCAL ? lw_addmax_relu2(e, extend, g) : lw_addmax2(e, extend, g);
        f = LOCAL ? lw_addmax_relu2(f, extend, g) : lw_addmax2(f, extend, g);
    } else {
        h = (uint32_t)(LOCAL ? lw_max3((int32_t)t, (int32_t)f, 0) : lw_addmax((int32_t)f, 0, (int32_t)t));
        int32_t g = (int32_t)(h + open);
        e = (uint32_t)lw_addmax((int32_t)e, (int32_t)extend, g);
        f = (uint32_t)lw_addmax((int32_t)f, (int32_t)extend, g);
    }
}

template <int WORD> LW_DEVICE uint32_t lw_word_max(uint32_t a, uint32_t b)
{
    if (WORD == LW_WORD_S32)
        return (uint32_t)lw_addmax((int32_t)a, 0, (int32_t)b);
    return WORD == LW_WORD_HALF ? lw_maxh2(a, b) : lw_max2(a, b);
}

template <int WORD> LW_DEVICE uint32_t lw_word_max3(uint32_t a, uint32_t b, uint32_t c)
{
    if (WORD == LW_WORD_S32)
        return (uint32_t)lw_max3((int32_t)a, (int32_t)b, (int32_t)c);
    return WORD == LW_WORD_HALF ? lw_maxh2(lw_maxh2(a, b), c) : lw_max3_2(a, b, c);
}

/* Bytes of one letter in a lane's part of the profile, which begins at the lane's place. */
template <int C> LW_DEVICE constexpr uint32_t lw_letter_bytes(void)
{
    return (C + 3) / 4 * LW_WARP * (uint32_t)sizeof(uint4);
}

/* One reference letter against a lane's C query letters. `profile` is the shared address of the lane's place
 * in the row of that letter; `diagonal` is H to the upper left of the first column. Returns the running
 * maximum over `m` and the row (modes other than local: and the row's last H). */
template <int WORD, int LOCAL, int C>
LW_DEVICE uint32_t lw_row(uint32_t profile, uint32_t diagonal, uint32_t open, uint32_t extend,
                          uint32_t (&h)[C], uint32_t (&e)[C], uint32_t &f, uint32_t m)
{
    uint4 s4 = lw_shared_load4(profile);
    uint32_t t = lw_cell_begin<WORD>(diagonal, s4.x, e[0]);
#pragma unroll
    for (int c = 0; c < C; c++) {
        uint32_t next = 0;
        if (c + 1 < C) {
            if ((c + 1) % 4 == 0)
                s4 = lw_shared_load4(profile + (c + 1) / 4 * LW_WARP * (uint32_t)sizeof(uint4));
            uint32_t s = (c + 1) % 4 == 0 ? s4.x : (c + 1) % 4 == 1 ? s4.y : (c + 1) % 4 == 2 ? s4.z : s4.w;
            next = lw_cell_begin<WORD>(h[c], s, e[c + 1]);
        }
        lw_cell_end<WORD, LOCAL>(t, open, extend, h[c], e[c], f);
        t = next;
        if (LOCAL && c % 2 == 1)
            m = lw_word_max3<WORD>(m, h[c - 1], h[c]);
        else if (LOCAL && c == C - 1)
            m = lw_word_max<WORD>(m, h[c]);
    }
    return LOCAL ? m : lw_word_max<WORD>(m, h[C - 1]);
}

/* Code of letter i of an item's strand. */
LW_DEVICE int lw_query_code(const lw_queries &q, const lw_score_table *table, int32_t item, int32_t i)
{
    int read = item >> 1;
    const uint8_t *codes = q.codes + q.start[read];
    return item & 1 ? table->complement[codes[q.len[read] - 1 - i]] : codes[i];
}

/* Writes a lane's part of the profile: [letter][chunk][lane], four words of 16 bytes each, so that a warp
 * reads a chunk without bank conflicts. The query's letters lie at the end of the `total` columns; those in
 * front of it are padding: local and semiglobal rows keep H = 0 there (score 0 for any letter), global ones
 * let the cost of the leading gap come down the column of E. In modes other than local the letter n_letters
 * is the boundary row: its scores leave real columns to F, which so counts the gap at the start of the query.
 */
template <int WORD, int LOCAL, int C>
LW_DEVICE void lw_build_profile(uint4 *profile, const lw_queries &q, const lw_score_table *table,
                                int n_letters, int mode, const int32_t (&item)[2], const int32_t (&qlen)[2],
                                int32_t first_column, int32_t total)
{
    const int halves = WORD == LW_WORD_S32 ? 1 : 2;
    const int n_rows = n_letters + !LOCAL;
    for (int chunk = 0; chunk < (C + 3) / 4; chunk++) {
        int code[2][4];
        for (int half = 0; half < halves; half++)
            for (int k = 0; k < 4; k++) {
                int32_t i = first_column + chunk * 4 + k - (total - qlen[half]);
                bool real = chunk * 4 + k < C && i >= 0 && item[half] >= 0;
                code[half][k] = real ? lw_query_code(q, table, item[half], i) : -1;
            }
        for (int letter = 0; letter < n_rows; letter++) {
            uint32_t s[4];
            for (int k = 0; k < 4; k++) {
                int32_t value[2] = {0, 0};
                for (int half = 0; half < halves; half++) {
                    int at = code[half][k];
                    if (!LOCAL && letter == n_letters)
                        value[half] = at < 0 ? 0 : lw_far<WORD>();
                    else if (at < 0)
                        value[half] = !LOCAL && mode == LW_GLOBAL ? lw_far<WORD>() : 0;
                    else
                        value[half] = table->score[at * LW_MAX_LETTERS + letter];
                }
                s[k] = lw_word_of<WORD>(value[0], value[1]);
            }
            profile[(letter * ((C + 3) / 4) + chunk) * LW_WARP] = make_uint4(s[0], s[1], s[2], s[3]);
        }
    }
    lw_warp_sync(LW_ALL_LANES);
}

/* The dynamic shared memory of a kernel. */
extern __shared__ uint4 lw_shared[];

#endif
