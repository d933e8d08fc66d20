/* dpx_cases.h - every primitive of dpx.cuh in its three forms: the body that the host test runs directly and
 * the GPU test in a kernel. */
#ifndef LW_DPX_CASES_H
#define LW_DPX_CASES_H

#include "common/dpx.cuh"

enum { LW_DPX_FORMS = 28 };

/* best: what kernels call on this side; any: the portable form; host: the definition. */
LW_HD void lw_dpx_forms(uint32_t a, uint32_t b, uint32_t c, uint32_t *best, uint32_t *any, uint32_t *host)
{
    int32_t x = (int32_t)a, y = (int32_t)b, z = (int32_t)c;
    int n = 0;
#define CASE(best_form, any_form, host_form)                                                                 \
    best[n] = (uint32_t)(best_form), any[n] = (uint32_t)(any_form), host[n] = (uint32_t)(host_form), n++
#define CASE2(name, args) CASE(name args, name##_any args, name##_host args)
    CASE2(lw_addmax, (x, y, z));
    CASE2(lw_addmin, (x, y, z));
    CASE2(lw_max3, (x, y, z));
    CASE2(lw_max3_relu, (x, y, z));
    CASE2(lw_min3, (x, y, z));
    CASE2(lw_add2, (a, b));
    CASE2(lw_max2, (a, b));
    CASE2(lw_min2, (a, b));
    CASE2(lw_max_relu2, (a, b));
    CASE2(lw_addmax2, (a, b, c));
    CASE2(lw_addmax_relu2, (a, b, c));
    CASE2(lw_addmin2, (a, b, c));
    CASE2(lw_max3_2, (a, b, c));
    CASE2(lw_max3_relu2, (a, b, c));
    CASE2(lw_addminu2, (a, b, c));
    CASE2(lw_min3u2, (a, b, c));
    /* halves that are numbers: exponents below the all-ones pattern */
    uint32_t f = a & 0xbbffbbffu, g = b & 0xbbffbbffu;
    CASE(lw_addh2(f, g), lw_addh2_host(f, g), lw_addh2_host(f, g));
    CASE2(lw_maxh2, (f, g));
    uint32_t mask = (c & 1 ? LW_HALF_ONE_LOW : 0) | (c & 2 ? LW_HALF_ONE_HIGH : 0);
    CASE(lw_maskaddh2(f, mask, g), lw_maskaddh2_host(f, mask, g), lw_maskaddh2_host(f, mask, g));
    CASE(lw_maskadd_reluh2(f, mask, g), lw_maskadd_reluh2_host(f, mask, g),
         lw_maskadd_reluh2_host(f, mask, g));
    CASE(lw_twice_low2(a), lw_pack2(lw_low2(a), lw_low2(a)), lw_pack2(lw_low2(a), lw_low2(a)));
    CASE(lw_twice_high2(a), lw_pack2(lw_high2(a), lw_high2(a)), lw_pack2(lw_high2(a), lw_high2(a)));
    CASE(lw_lows2(a, b), lw_pack2(lw_low2(a), lw_low2(b)), lw_pack2(lw_low2(a), lw_low2(b)));
    CASE(lw_highs2(a, b), lw_pack2(lw_high2(a), lw_high2(b)), lw_pack2(lw_high2(a), lw_high2(b)));
    CASE(lw_signed_bytes2(a, b, 1), lw_signed_bytes2_host(a, b, 1), lw_signed_bytes2_host(a, b, 1));
    CASE(lw_signed_bytes2(a, b, 3), lw_signed_bytes2_host(a, b, 3), lw_signed_bytes2_host(a, b, 3));
    /* integers held in halves: sums that stay within +-2047 */
    int32_t u = (int32_t)(a % 2047) - 1023, v = (int32_t)(b % 2047) - 1023;
    uint32_t hu = lw_half_from_int(u), hv = lw_half_from_int(v);
    CASE(lw_int_from_half(lw_addh2(hu, hv) & 0xffffu), u + v, u + v);
    CASE(lw_int_from_half(lw_maxh2(hu, hv) & 0xffffu), u > v ? u : v, u > v ? u : v);
#undef CASE2
#undef CASE
}

/* Word k of a sequence: pairs of boundary values first, random words after. */
LW_HD uint32_t lw_dpx_word(uint32_t k)
{
    const uint32_t edge[] = {0,     1,     0x7fff, 0x8000, 0xffff, 0x8001,
                             0x7ff, 0x400, 0x3ff,  0x87ff, 0x7bff, 0xfbff};
    if (k < 144)
        return edge[k % 12] | edge[k / 12] << 16;
    k ^= k >> 16, k *= 0x7feb352d, k ^= k >> 15, k *= 0x846ca68b, k ^= k >> 16;
    return k;
}

#endif
