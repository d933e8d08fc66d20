/* dp4a_cases.h - every byte dot product in every form that can run here, over boundary values and random
 * words: the body that the host test runs directly and the GPU test runs in a kernel. */
#ifndef LW_DP4A_CASES_H
#define LW_DP4A_CASES_H

#include "common/dp4a.cuh"

enum { LW_DP4A_FORMS = 5 };

/* out[form]: the instruction's (or this side's best) form; portable[form]: the form without it. */
LW_HD void lw_dp4a_forms(uint32_t a, uint32_t b, int32_t c, int32_t *out, int32_t *portable)
{
    out[0] = lw_dp4a_ss(a, b, c), portable[0] = lw_dp4a_ss_portable(a, b, c);
    out[1] = lw_dp4a_uu(a, b, c), portable[1] = lw_dp4a_uu_portable(a, b, c);
    out[2] = lw_dp4a_us(a, b, c), portable[2] = lw_dp4a_us_portable(a, b, c);
    out[3] = lw_dp2a_lo_ss(a, b, c), portable[3] = lw_dp2a_lo_ss_portable(a, b, c);
    out[4] = lw_dp2a_hi_ss(a, b, c), portable[4] = lw_dp2a_hi_ss_portable(a, b, c);
}

/* Word k of a sequence that holds byte boundaries first and random words after. */
LW_HD uint32_t lw_dp4a_word(uint32_t k)
{
    const uint32_t edges[] = {0,          0x01010101, 0x7f7f7f7f, 0x80808080,
                              0xffffffff, 0x7f80ff00, 0x80007fff, 0x00800080};
    if (k < 8)
        return edges[k];
    k ^= k >> 16, k *= 0x7feb352d, k ^= k >> 15, k *= 0x846ca68b, k ^= k >> 16;
    return k;
}

#endif
