/* dpx.cuh - the add-and-select arithmetic of alignment and shortest paths, on one 32-bit number, on two
 * 16-bit numbers in a word, and on two half-precision numbers in a word.
 *
 * Every primitive NAME has three forms that agree on every input:
 *   NAME       what a kernel calls: one DPX instruction on Hopper and later, NAME_any on older GPUs,
 * NAME_host in host code; NAME_any   portable bit arithmetic, a few instructions on any GPU (and callable on
 * the host); NAME_host  the definition, spelled out half by half. tests/common compares the three. Sums wrap
 * around (two's complement), as the instructions do.
 *
 * Suffixes: none = s32; 2 = two s16 in a word; u2 = two u16 in a word; h2 = two halves in a word. In "relu"
 * forms the result is at least 0.
 *
 * Half-precision integers ("form H"). The fp16 patterns 0 .. 2047 are the numbers 0 .. 2047 in units of
 * 2^-24: subnormals have that spacing, and the first binade (1024 .. 2047) keeps it. Negative numbers are the
 * same with the sign bit set. So lw_addh2() adds such integers exactly while sums stay within +-2047 - an
 * addition on the FMA pipe, while all the rest of the arithmetic is on the ALU pipe - and a result >= 0 is at
 * once an s16 for the integer primitives, to which a negative result looks like a very negative s16. */
#ifndef LW_DPX_CUH
#define LW_DPX_CUH

#include <stdint.h>
#include "common/hd.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 12
#define LW_DPX_DEVICE 1
#else
#define LW_DPX_DEVICE 0
#endif
/* Paired half minimum, maximum and multiply-add with relu. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define LW_HALF2_DEVICE 1
#else
#define LW_HALF2_DEVICE 0
#endif
#if defined(__CUDA_ARCH__)
#define LW_ON_DEVICE 1
#else
#define LW_ON_DEVICE 0
#endif

/* The three-way choice that every primitive makes. */
#if LW_DPX_DEVICE
#define LW_FORM(dpx, any, host) (dpx)
#elif LW_ON_DEVICE
#define LW_FORM(dpx, any, host) (any)
#else
#define LW_FORM(dpx, any, host) (host)
#endif

/* --- packing
 * ------------------------------------------------------------------------------------------------ */

LW_HD uint32_t lw_pack2(int32_t low, int32_t high)
{
    return ((uint32_t)low & 0xffffu) | ((uint32_t)high << 16);
}

LW_HD int32_t lw_low2(uint32_t word)
{
    return (int32_t)(word << 16) >> 16;
}

LW_HD int32_t lw_high2(uint32_t word)
{
    return (int32_t)word >> 16;
}

/* Four bytes of the eight in high:low, from bit `bits` (0 .. 31) on. */
LW_HD uint32_t lw_four_bytes(uint32_t low, uint32_t high, uint32_t bits)
{
#if LW_ON_DEVICE
    return __funnelshift_r(low, high, bits);
#else
    return (uint32_t)(((uint64_t)high << 32 | low) >> bits);
#endif
}

/* Byte k of two words, as s16, in the two halves of one. */
LW_HD uint32_t lw_signed_bytes2_host(uint32_t low, uint32_t high, int k)
{
    return lw_pack2((int32_t)(low << (24 - 8 * k)) >> 24, (int32_t)(high << (24 - 8 * k)) >> 24);
}

LW_HD uint32_t lw_signed_bytes2(uint32_t low, uint32_t high, int k)
{
#if LW_ON_DEVICE
    /* selectors with the upper bit set repeat the sign of their byte */
    uint32_t word;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(low), "r"(high), "r"(0xc480u + 0x1111u * (uint32_t)k));
    return word;
#else
    return lw_signed_bytes2_host(low, high, k);
#endif
}

/* Two bytes of each of two words in turn: the lower ones, or the upper ones. */
LW_HD uint32_t lw_bytes_in_turn(uint32_t a, uint32_t b, int upper)
{
#if LW_ON_DEVICE
    return __byte_perm(a, b, upper ? 0x7362 : 0x5140);
#else
    a >>= 16 * upper, b >>= 16 * upper;
    return (a & 255) | (b & 255) << 8 | (a & 0xff00) << 8 | (b & 0xff00) << 16;
#endif
}

/* --- s32
 * ---------------------------------------------------------------------------------------------------- */

LW_HD int32_t lw_add_host(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

LW_HD int32_t lw_max_host(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

LW_HD int32_t lw_min_host(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* max(a + b, c) */
LW_HD int32_t lw_addmax_host(int32_t a, int32_t b, int32_t c)
{
    return lw_max_host(lw_add_host(a, b), c);
}

LW_HD int32_t lw_addmax_any(int32_t a, int32_t b, int32_t c)
{
    int32_t sum = (int32_t)((uint32_t)a + (uint32_t)b);
    return sum > c ? sum : c;
}

LW_HD int32_t lw_addmax(int32_t a, int32_t b, int32_t c)
{
    return LW_FORM(__viaddmax_s32(a, b, c), lw_addmax_any(a, b, c), lw_addmax_host(a, b, c));
}

/* min(a + b, c) */
LW_HD int32_t lw_addmin_host(int32_t a, int32_t b, int32_t c)
{
    return lw_min_host(lw_add_host(a, b), c);
}

LW_HD int32_t lw_addmin_any(int32_t a, int32_t b, int32_t c)
{
    int32_t sum = (int32_t)((uint32_t)a + (uint32_t)b);
    return sum < c ? sum : c;
}

LW_HD int32_t lw_addmin(int32_t a, int32_t b, int32_t c)
{
    return LW_FORM(__viaddmin_s32(a, b, c), lw_addmin_any(a, b, c), lw_addmin_host(a, b, c));
}

/* max(a, b, c) and max(a, b, c, 0) */
LW_HD int32_t lw_max3_host(int32_t a, int32_t b, int32_t c)
{
    return lw_max_host(lw_max_host(a, b), c);
}

LW_HD int32_t lw_max3_any(int32_t a, int32_t b, int32_t c)
{
    int32_t m = a > b ? a : b;
    return m > c ? m : c;
}

LW_HD int32_t lw_max3(int32_t a, int32_t b, int32_t c)
{
    return LW_FORM(__vimax3_s32(a, b, c), lw_max3_any(a, b, c), lw_max3_host(a, b, c));
}

LW_HD int32_t lw_max3_relu_host(int32_t a, int32_t b, int32_t c)
{
    return lw_max_host(lw_max3_host(a, b, c), 0);
}

LW_HD int32_t lw_max3_relu_any(int32_t a, int32_t b, int32_t c)
{
    int32_t m = lw_max3_any(a, b, c);
    return m > 0 ? m : 0;
}

LW_HD int32_t lw_max3_relu(int32_t a, int32_t b, int32_t c)
{
    return LW_FORM(__vimax3_s32_relu(a, b, c), lw_max3_relu_any(a, b, c), lw_max3_relu_host(a, b, c));
}

LW_HD int32_t lw_min3_host(int32_t a, int32_t b, int32_t c)
{
    return lw_min_host(lw_min_host(a, b), c);
}

LW_HD int32_t lw_min3_any(int32_t a, int32_t b, int32_t c)
{
    int32_t m = a < b ? a : b;
    return m < c ? m : c;
}

LW_HD int32_t lw_min3(int32_t a, int32_t b, int32_t c)
{
    return LW_FORM(__vimin3_s32(a, b, c), lw_min3_any(a, b, c), lw_min3_host(a, b, c));
}

/* --- two s16 in a word
 * -------------------------------------------------------------------------------------- */

LW_HD uint32_t lw_add2_host(uint32_t a, uint32_t b)
{
    return lw_pack2(lw_low2(a) + lw_low2(b), lw_high2(a) + lw_high2(b));
}

LW_HD uint32_t lw_max2_host(uint32_t a, uint32_t b)
{
    return lw_pack2(lw_max_host(lw_low2(a), lw_low2(b)), lw_max_host(lw_high2(a), lw_high2(b)));
}

LW_HD uint32_t lw_min2_host(uint32_t a, uint32_t b)
{
    return lw_pack2(lw_min_host(lw_low2(a), lw_low2(b)), lw_min_host(lw_high2(a), lw_high2(b)));
}

/* The carry out of the lower half is kept from the upper one: bit 15 of each half is added apart, by xor. */
LW_HD uint32_t lw_add2_any(uint32_t a, uint32_t b)
{
    return ((a & 0x7fff7fffu) + (b & 0x7fff7fffu)) ^ ((a ^ b) & 0x80008000u);
}

/* Upper halves compare as whole words: where they are equal, either word gives the same upper half. */
LW_HD uint32_t lw_max2_any(uint32_t a, uint32_t b)
{
    int32_t high = (int32_t)a > (int32_t)b ? (int32_t)a : (int32_t)b;
    int32_t la = (int32_t)(a << 16), lb = (int32_t)(b << 16);
    return ((uint32_t)high & 0xffff0000u) | ((uint32_t)(la > lb ? la : lb) >> 16);
}

LW_HD uint32_t lw_min2_any(uint32_t a, uint32_t b)
{
    int32_t high = (int32_t)a < (int32_t)b ? (int32_t)a : (int32_t)b;
    int32_t la = (int32_t)(a << 16), lb = (int32_t)(b << 16);
    return ((uint32_t)high & 0xffff0000u) | ((uint32_t)(la < lb ? la : lb) >> 16);
}

LW_HD uint32_t lw_add2(uint32_t a, uint32_t b)
{
    return LW_FORM(__vadd2(a, b), lw_add2_any(a, b), lw_add2_host(a, b));
}

LW_HD uint32_t lw_max2(uint32_t a, uint32_t b)
{
    return LW_FORM(__vmaxs2(a, b), lw_max2_any(a, b), lw_max2_host(a, b));
}

LW_HD uint32_t lw_min2(uint32_t a, uint32_t b)
{
    return LW_FORM(__vmins2(a, b), lw_min2_any(a, b), lw_min2_host(a, b));
}

/* max(a, b, 0) */
LW_HD uint32_t lw_max_relu2_host(uint32_t a, uint32_t b)
{
    return lw_max2_host(lw_max2_host(a, b), 0);
}

LW_HD uint32_t lw_max_relu2_any(uint32_t a, uint32_t b)
{
    return lw_max2_any(lw_max2_any(a, b), 0);
}

LW_HD uint32_t lw_max_relu2(uint32_t a, uint32_t b)
{
    return LW_FORM(__vimax_s16x2_relu(a, b), lw_max_relu2_any(a, b), lw_max_relu2_host(a, b));
}

/* max(a + b, c), max(a + b, c, 0), min(a + b, c) */
LW_HD uint32_t lw_addmax2_host(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_max2_host(lw_add2_host(a, b), c);
}

LW_HD uint32_t lw_addmax2_any(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_max2_any(lw_add2_any(a, b), c);
}

LW_HD uint32_t lw_addmax2(uint32_t a, uint32_t b, uint32_t c)
{
    return LW_FORM(__viaddmax_s16x2(a, b, c), lw_addmax2_any(a, b, c), lw_addmax2_host(a, b, c));
}

LW_HD uint32_t lw_addmax_relu2_host(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_max2_host(lw_addmax2_host(a, b, c), 0);
}

LW_HD uint32_t lw_addmax_relu2_any(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_max2_any(lw_addmax2_any(a, b, c), 0);
}

LW_HD uint32_t lw_addmax_relu2(uint32_t a, uint32_t b, uint32_t c)
{
    return LW_FORM(__viaddmax_s16x2_relu(a, b, c), lw_addmax_relu2_any(a, b, c),
                   lw_addmax_relu2_host(a, b, c));
}

LW_HD uint32_t lw_addmin2_host(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_min2_host(lw_add2_host(a, b), c);
}

LW_HD uint32_t lw_addmin2_any(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_min2_any(lw_add2_any(a, b), c);
}

LW_HD uint32_t lw_addmin2(uint32_t a, uint32_t b, uint32_t c)
{
    return LW_FORM(__viaddmin_s16x2(a, b, c), lw_addmin2_any(a, b, c), lw_addmin2_host(a, b, c));
}

/* max(a, b, c), max(a, b, c, 0) */
LW_HD uint32_t lw_max3_2_host(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_max2_host(lw_max2_host(a, b), c);
}

LW_HD uint32_t lw_max3_2_any(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_max2_any(lw_max2_any(a, b), c);
}

LW_HD uint32_t lw_max3_2(uint32_t a, uint32_t b, uint32_t c)
{
    return LW_FORM(__vimax3_s16x2(a, b, c), lw_max3_2_any(a, b, c), lw_max3_2_host(a, b, c));
}

LW_HD uint32_t lw_max3_relu2_host(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_max2_host(lw_max3_2_host(a, b, c), 0);
}

LW_HD uint32_t lw_max3_relu2_any(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_max2_any(lw_max3_2_any(a, b, c), 0);
}

LW_HD uint32_t lw_max3_relu2(uint32_t a, uint32_t b, uint32_t c)
{
    return LW_FORM(__vimax3_s16x2_relu(a, b, c), lw_max3_relu2_any(a, b, c), lw_max3_relu2_host(a, b, c));
}

/* --- two u16 in a word
 * -------------------------------------------------------------------------------------- */

/* min(a + b, c), unsigned halves */
LW_HD uint32_t lw_addminu2_host(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t low = (a + b) & 0xffffu, high = ((a >> 16) + (b >> 16)) & 0xffffu;
    uint32_t cl = c & 0xffffu, ch = c >> 16;
    return (low < cl ? low : cl) | ((high < ch ? high : ch) << 16);
}

LW_HD uint32_t lw_addminu2_any(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t sum = lw_add2_any(a, b);
    uint32_t high = sum < c ? sum : c, la = sum << 16, lc = c << 16;
    return (high & 0xffff0000u) | ((la < lc ? la : lc) >> 16);
}

LW_HD uint32_t lw_addminu2(uint32_t a, uint32_t b, uint32_t c)
{
    return LW_FORM(__viaddmin_u16x2(a, b, c), lw_addminu2_any(a, b, c), lw_addminu2_host(a, b, c));
}

/* min(a, b, c), unsigned halves */
LW_HD uint32_t lw_min3u2_host(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_addminu2_host(a, 0, lw_addminu2_host(b, 0, c));
}

LW_HD uint32_t lw_min3u2_any(uint32_t a, uint32_t b, uint32_t c)
{
    return lw_addminu2_any(a, 0, lw_addminu2_any(b, 0, c));
}

LW_HD uint32_t lw_min3u2(uint32_t a, uint32_t b, uint32_t c)
{
    return LW_FORM(__vimin3_u16x2(a, b, c), lw_min3u2_any(a, b, c), lw_min3u2_host(a, b, c));
}

/* --- two halves in a word
 * ----------------------------------------------------------------------------------- */

/* Pattern of the integer v in units of 2^-24, |v| <= 2047; and back. */
LW_HD uint32_t lw_half_from_int(int32_t v)
{
    return v < 0 ? 0x8000u | (uint32_t)-v : (uint32_t)v;
}

LW_HD int32_t lw_int_from_half(uint32_t pattern)
{
    int32_t magnitude = (int32_t)(pattern & 0x7fffu);
    return pattern & 0x8000u ? -magnitude : magnitude;
}

/* Value of a finite half in units of 2^-24: an integer below 2^41. */
LW_HD int64_t lw_half_units(uint32_t pattern)
{
    uint32_t exponent = (pattern >> 10) & 31, fraction = pattern & 1023;
    int64_t magnitude = exponent ? (int64_t)(1024 + fraction) << (exponent - 1) : (int64_t)fraction;
    return pattern & 0x8000u ? -magnitude : magnitude;
}

/* The half nearest to `units` * 2^-24, ties to even; beyond 65504 + half a step: infinity. */
LW_HD uint32_t lw_half_round(int64_t units)
{
    uint32_t sign = units < 0 ? 0x8000u : 0;
    uint64_t v = units < 0 ? (uint64_t)-units : (uint64_t)units;
    uint32_t shift = 0;
    while ((v >> shift) >= 2048)
        shift++;
    uint64_t kept = v >> shift, rest = v - (kept << shift), half = shift ? (uint64_t)1 << (shift - 1) : 0;
    if (shift && (rest > half || (rest == half && (kept & 1))))
        kept++; /* 2048 carries into the exponent by itself below */
    uint32_t pattern = kept < 1024 ? (uint32_t)kept : (shift << 10) + (uint32_t)kept;
    return sign | (pattern < 0x7c00u ? pattern : 0x7c00u);
}

LW_HD uint32_t lw_addh_one(uint32_t a, uint32_t b)
{
    if ((a & 0xffffu) == 0x8000u && (b & 0xffffu) == 0x8000u)
        return 0x8000u; /* only -0 + -0 is -0 */
    return lw_half_round(lw_half_units(a & 0xffffu) + lw_half_units(b & 0xffffu));
}

/* a + b on finite halves, rounded to nearest even, subnormals kept. */
LW_HD uint32_t lw_addh2_host(uint32_t a, uint32_t b)
{
    return lw_addh_one(a, b) | (lw_addh_one(a >> 16, b >> 16) << 16);
}

LW_HD uint32_t lw_addh2(uint32_t a, uint32_t b)
{
#if LW_ON_DEVICE
    __half2 x, y, z;
    __builtin_memcpy(&x, &a, 4);
    __builtin_memcpy(&y, &b, 4);
    z = __hadd2(x, y);
    __builtin_memcpy(&a, &z, 4);
    return a;
#else
    return lw_addh2_host(a, b);
#endif
}

/* max(a, b) on halves that are not NaN; -0 counts as less than +0. As sign and magnitude, negative patterns
 * order backwards: flipping their lower 15 bits makes them s16 that order as the numbers do. */
LW_HD uint32_t lw_maxh2_any(uint32_t a, uint32_t b)
{
    uint32_t na = (a >> 15) & 0x00010001u, nb = (b >> 15) & 0x00010001u;
    uint32_t m = lw_max2_any(a ^ (na * 0x7fffu), b ^ (nb * 0x7fffu));
    return m ^ (((m >> 15) & 0x00010001u) * 0x7fffu);
}

LW_HD uint32_t lw_maxh_one(uint32_t a, uint32_t b)
{
    int64_t x = lw_half_units(a), y = lw_half_units(b);
    if (x == y) /* +0 and -0 */
        return a & b;
    return x > y ? a : b;
}

LW_HD uint32_t lw_maxh2_host(uint32_t a, uint32_t b)
{
    return lw_maxh_one(a & 0xffffu, b & 0xffffu) | (lw_maxh_one(a >> 16, b >> 16) << 16);
}

LW_HD uint32_t lw_maxh2(uint32_t a, uint32_t b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    __half2 x, y, z;
    __builtin_memcpy(&x, &a, 4);
    __builtin_memcpy(&y, &b, 4);
    z = __hmax2(x, y);
    __builtin_memcpy(&a, &z, 4);
    return a;
#elif LW_ON_DEVICE
    return lw_maxh2_any(a, b);
#else
    return lw_maxh2_host(a, b);
#endif
}

/* 1.0 in the low half, in the high half, in both. */
#define LW_HALF_ONE_LOW 0x00003c00u
#define LW_HALF_ONE_HIGH 0x3c000000u
#define LW_HALF_ONES 0x3c003c00u

/* One half of a word in both halves; an operand modifier where the result goes into half-precision
 * arithmetic. */
LW_HD uint32_t lw_twice_low2(uint32_t a)
{
#if LW_ON_DEVICE
    __half2 x;
    __builtin_memcpy(&x, &a, 4);
    x = __low2half2(x);
    __builtin_memcpy(&a, &x, 4);
    return a;
#else
    return lw_pack2(lw_low2(a), lw_low2(a));
#endif
}

LW_HD uint32_t lw_twice_high2(uint32_t a)
{
#if LW_ON_DEVICE
    __half2 x;
    __builtin_memcpy(&x, &a, 4);
    x = __high2half2(x);
    __builtin_memcpy(&a, &x, 4);
    return a;
#else
    return lw_pack2(lw_high2(a), lw_high2(a));
#endif
}

/* The low halves of two words, or their high halves, in one. */
LW_HD uint32_t lw_lows2(uint32_t a, uint32_t b)
{
#if LW_ON_DEVICE
    return __byte_perm(a, b, 0x5410);
#else
    return lw_pack2(lw_low2(a), lw_low2(b));
#endif
}

LW_HD uint32_t lw_highs2(uint32_t a, uint32_t b)
{
#if LW_ON_DEVICE
    return __byte_perm(a, b, 0x7632);
#else
    return lw_pack2(lw_high2(a), lw_high2(b));
#endif
}

/* a * m + b on finite halves, each half of m being 0 or 1.0: an addition that a mask switches off. */
LW_HD uint32_t lw_maskaddh2_host(uint32_t a, uint32_t m, uint32_t b)
{
    uint32_t keep = (m & 0x3c00u ? 0xffffu : 0x8000u) | (m & 0x3c000000u ? 0xffff0000u : 0x80000000u);
    return lw_addh2_host(a & keep, b);
}

LW_HD uint32_t lw_maskaddh2(uint32_t a, uint32_t m, uint32_t b)
{
#if LW_ON_DEVICE
    __half2 x, y, z;
    __builtin_memcpy(&x, &a, 4);
    __builtin_memcpy(&y, &m, 4);
    __builtin_memcpy(&z, &b, 4);
    z = __hfma2(x, y, z);
    __builtin_memcpy(&a, &z, 4);
    return a;
#else
    return lw_maskaddh2_host(a, m, b);
#endif
}

/* The same with a floor of 0; +0 where the sum is -0. */
LW_HD uint32_t lw_maskadd_reluh2_host(uint32_t a, uint32_t m, uint32_t b)
{
    uint32_t sum = lw_maskaddh2_host(a, m, b), negative = (sum >> 15) & 0x00010001u;
    return sum & ~(negative * 0xffffu);
}

LW_HD uint32_t lw_maskadd_reluh2(uint32_t a, uint32_t m, uint32_t b)
{
#if LW_HALF2_DEVICE
    __half2 x, y, z;
    __builtin_memcpy(&x, &a, 4);
    __builtin_memcpy(&y, &m, 4);
    __builtin_memcpy(&z, &b, 4);
    z = __hfma2_relu(x, y, z);
    __builtin_memcpy(&a, &z, 4);
    return a;
#elif LW_ON_DEVICE
    uint32_t sum = lw_maskaddh2(a, m, b), negative = (sum >> 15) & 0x00010001u;
    return sum & ~(negative * 0xffffu);
#else
    return lw_maskadd_reluh2_host(a, m, b);
#endif
}

#endif
