/* search_profile.h - the words of a profile, as the score kernel reads them from shared memory. */
#ifndef LW_SEARCH_PROFILE_H
#define LW_SEARCH_PROFILE_H

#include "align/search_select.h"
#include "common/dpx.cuh"

LW_HD uint32_t lw_sw_profile_number(int32_t v, int arithmetic)
{
    return arithmetic == LW_SW_S32 || arithmetic == LW_SW_S16 ? (uint32_t)v & 0xffffu : lw_half_from_int(v);
}

/* Word `at`: 4 words a quad, 32 quads (one a lane) a group of columns, and so on for all columns of a letter;
 * see lw_sw_diagonal(). Columns past a query's end, and all columns against the pad letter, which is the
 * last, are absent: they add nothing to G, that is -(open + extend) to H; or leave nothing of H. */
LW_HD uint32_t lw_sw_profile_word(const lw_sw_profile *task, const uint8_t *codes, const int16_t *scores,
                                  int n_letters, int at)
{
    bool packed = LW_SW_QUAD_COLUMNS(task->form, task->arithmetic) == 8;
    int quads = LW_SW_COLUMNS / (packed ? 8 : 4);
    int i = at & 3, lane = (at >> 2) & 31, quad = (at >> 7) % quads, letter = (at >> 7) / quads;
    const lw_sw_lane *l = &task->lanes[lane];
    uint32_t word = task->absent;
    for (int half = 0; half < 2; half++) {
        int part = packed ? 0 : half, column = packed ? quad * 8 + 2 * i + half : quad * 4 + i;
        if (column < l->n_codes[part] && letter < n_letters - 1) {
            int32_t s = scores[codes[l->codes[part] + column] * 32 + letter] + task->offset;
            word = (word & 0xffff0000u >> 16 * half) | lw_sw_profile_number(s, task->arithmetic) << 16 * half;
        }
    }
    return word;
}

#endif
