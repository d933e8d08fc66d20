/* test_dpx.c - the portable forms of dpx.cuh against its host forms. The device forms: test_dpx_gpu.cu. */
#include <criterion/criterion.h>

#include "common/dpx_cases.h"
#include "common/warp.cuh"

Test(dpx, portable_forms_equal_the_definitions)
{
    uint32_t best[LW_DPX_FORMS], any[LW_DPX_FORMS], host[LW_DPX_FORMS];
    for (uint32_t i = 0; i < 400; i++)
        for (uint32_t j = 0; j < 400; j++) {
            uint32_t a = lw_dpx_word(i), b = lw_dpx_word(j), c = lw_dpx_word(i * 37 + j);
            lw_dpx_forms(a, b, c, best, any, host);
            for (int k = 0; k < LW_DPX_FORMS; k++)
                cr_assert(best[k] == host[k] && any[k] == host[k],
                          "form %d of %08x %08x %08x: %08x %08x %08x", k, a, b, c, best[k], any[k], host[k]);
        }
}

Test(dpx, halves_hold_integers)
{
    for (int32_t v = -2047; v <= 2047; v++) {
        uint32_t pattern = lw_half_from_int(v);
        cr_assert(lw_half_units(pattern) == v && lw_int_from_half(pattern) == v);
        cr_assert(v == 0 || lw_half_round(v) == pattern);
        if (v >= 0)
            cr_assert(pattern == (uint32_t)v);
    }
    for (uint32_t pattern = 0; pattern < 0x7c00; pattern++) /* every finite half survives the round trip */
        cr_assert(lw_half_round(lw_half_units(pattern)) == pattern);
}

Test(warp, host_reductions)
{
    int32_t lane[32];
    for (int i = 0; i < 32; i++)
        lane[i] = i % 3 - 1;
    cr_assert(lw_reduce_add_host(lane, 32) == -1);
    cr_assert(lw_reduce_max_host(lane, 32) == 1 && lw_reduce_min_host(lane, 32) == -1);
    cr_assert(lw_reduce_max_host(lane, 2) == 0);
    cr_assert(lw_ballot_host(lane, 4) == 0xd);
}
