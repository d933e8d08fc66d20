/* pow2.h - division and remainder without the divide instruction: masks and shifts where the divisor is a
 * power of two, a precomputed reciprocal where it is any other number that stays the same for a whole loop.
 */
#ifndef LW_POW2_H
#define LW_POW2_H

#include <stdbool.h>
#include <stdint.h>
#include "common/hd.h"

LW_HD bool lw_is_pow2(uint32_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

/* floor(log2(x)), x >= 1. */
LW_HD int lw_log2_floor(uint32_t x)
{
#if defined(__CUDA_ARCH__)
    return 31 - __clz((int)x);
#else
    return 31 - __builtin_clz(x);
#endif
}

/* Least power of two >= x, for 1 <= x <= 2^31. */
LW_HD uint32_t lw_pow2_ceil(uint32_t x)
{
    return x <= 1 ? 1 : UINT32_C(2) << lw_log2_floor(x - 1);
}

/* x / d, x % d and the least multiple of d that is >= x, for d a power of two. */
LW_HD uint32_t lw_pow2_div(uint32_t x, uint32_t d)
{
    return x >> lw_log2_floor(d);
}

LW_HD uint32_t lw_pow2_mod(uint32_t x, uint32_t d)
{
    return x & (d - 1);
}

LW_HD uint64_t lw_pow2_round_up(uint64_t x, uint64_t d)
{
    return (x + d - 1) & ~(d - 1);
}

/* The upper half of a 32 x 32 bit product. */
LW_HD uint32_t lw_mulhi_u32(uint32_t a, uint32_t b)
{
#if defined(__CUDA_ARCH__)
    return __umulhi(a, b);
#else
    return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

/* Division by an invariant d >= 1: Granlund and Montgomery, "Division by Invariant Integers using
 * Multiplication", PLDI 1994, figure 4.1. With l = ceil(log2 d) and
 *     m = floor(2^32 (2^l - d) / d) + 1,   t = mulhi(m, x),
 * the quotient is (t + ((x - t) >> min(l, 1))) >> max(l - 1, 0), exact for every 32-bit x. */
typedef struct lw_divider {
    uint32_t divisor;
    uint32_t multiplier;
    uint8_t shift1, shift2;
} lw_divider;

static inline lw_divider lw_divider_of(uint32_t d)
{
    int l = d <= 1 ? 0 : lw_log2_floor(d - 1) + 1;
    lw_divider r;
    r.divisor = d;
    r.multiplier = (uint32_t)(((((uint64_t)1 << l) - d) << 32) / d + 1);
    r.shift1 = (uint8_t)(l < 1 ? l : 1);
    r.shift2 = (uint8_t)(l > 1 ? l - 1 : 0);
    return r;
}

LW_HD uint32_t lw_divide(uint32_t x, lw_divider d)
{
    uint32_t t = lw_mulhi_u32(d.multiplier, x);
    return (t + ((x - t) >> d.shift1)) >> d.shift2;
}

LW_HD uint32_t lw_modulo(uint32_t x, lw_divider d)
{
    return x - lw_divide(x, d) * d.divisor;
}

#endif
