/* search_cuda_ladder.cu - the letters and the arithmetics of the kernels, by the scores that they must hold.
 */
#include "align/search_cuda_context.h"

/* Letters whose scores agree against every query letter are one letter to the kernels. */
void lw_sw_make_classes(context *c)
{
    const lw_scoring *sc = c->setup.scoring;
    for (int t = 0; t < sc->n_letters; t++) {
        int k = 0;
        for (; k < c->n_classes; k++) {
            bool same = true;
            for (int q = 0; q < sc->n_letters && same; q++)
                same = c->class_scores[q * 32 + k] == sc->score[q * LW_MAX_LETTERS + t];
            if (same)
                break;
        }
        if (k == c->n_classes) {
            for (int q = 0; q < sc->n_letters; q++)
                c->class_scores[q * 32 + k] = sc->score[q * LW_MAX_LETTERS + t];
            c->n_classes++;
        }
        c->class_of[t] = (uint8_t)k;
    }
    for (int q = 0; q < sc->n_letters; q++)
        for (int k = 0; k < c->n_classes; k++)
            if (c->row_best[q] < c->class_scores[q * 32 + k])
                c->row_best[q] = c->class_scores[q * 32 + k];
}

/* How much a maximum kept in every LW_SW_EVERY-th row may miss: open_extend one row below the best cell, one
 * extension for each row more. */
int32_t lw_sw_first_run_bound(const context *c)
{
    return c->open_extend + (LW_SW_EVERY - 2) * c->extend;
}

/* The arithmetics of a policy that fit the scores. A type that holds 0 .. capacity - 1 is right as long as
 * all H stay below its limit: the first H to reach the limit comes from one below it, so it is at most limit
 * - 1 + max_score = capacity - 1 and is seen. Differences: |G| <= open_extend, |G + s'| <= |min_score| or
 * capacity. */
void lw_sw_make_ladder(context *c, int policy)
{
    const lw_scoring *sc = c->setup.scoring;
    int32_t high = 0, low = 0;
    for (int q = 0; q < sc->n_letters; q++)
        for (int t = 0; t < sc->n_letters; t++) {
            int32_t s = sc->score[q * LW_MAX_LETTERS + t];
            high = s > high ? s : high;
            low = s < low ? s : low;
        }
    int32_t o = c->open_extend;
    /* 2048 values hold every sum if none of the terms comes near; at least 256 scores are told apart */
    bool halves = o <= 1000 && high <= 1000 && low >= -1000 && 2048 - high - lw_sw_first_run_bound(c) >= 256;
    bool shorts = o <= 8000 && high <= 8000 && low >= -8000;
    static_assert(LW_SW_TILE_HIGH < LW_SW_TILE_OPEN,
                  "a gap costs more than a letter brings: search_bounds.cuh");
    c->tiles = o == LW_SW_TILE_OPEN && c->extend == LW_SW_TILE_EXTEND && high <= LW_SW_TILE_HIGH;
    if (policy == LW_CUDA_DPX && halves) {
        c->limit[c->n_levels] = 2048 - high;
        c->ladder[c->n_levels++] = LW_SW_HALF;
    }
    if (policy == LW_CUDA_DPX && shorts) {
        c->limit[c->n_levels] = 32768 - high;
        c->ladder[c->n_levels++] = LW_SW_S16;
    }
    if (policy == LW_CUDA_HALF2 && halves) {
        c->limit[c->n_levels] = 2048 - high;
        c->ladder[c->n_levels++] = LW_SW_REAL;
    }
    c->limit[c->n_levels] = INT32_MAX; /* the driver of the search has checked that scores fit */
    c->ladder[c->n_levels++] = LW_SW_S32;
}
