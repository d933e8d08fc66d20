/* dp4a.cuh - dot products of four bytes (or two 16-bit numbers with two bytes), accumulated in 32 bits.
 *
 * Every primitive has three forms that give the same bits: the instruction (compute capability 6.1 and
 * later, IDP.4A / IDP.2A), a form for older GPUs (lw_*_portable, also what the cuda-int policy asks for) and
 * the host's. Sums wrap modulo 2^32 like the instruction's; callers bound K so that they cannot. */
#ifndef LW_DP4A_CUH
#define LW_DP4A_CUH

#include <stdint.h>
#include "common/hd.h"

LW_HD int32_t lw_byte_s(uint32_t word, int i)
{
    return (int8_t)(word >> (8 * i));
}

LW_HD int32_t lw_byte_u(uint32_t word, int i)
{
    return (int32_t)(word >> (8 * i) & 255);
}

/* c + sum a_i * b_i, i = 0..3, without the instruction. */
LW_HD int32_t lw_dp4a_ss_portable(uint32_t a, uint32_t b, int32_t c)
{
    uint32_t sum = (uint32_t)c;
    for (int i = 0; i < 4; i++)
        sum += (uint32_t)(lw_byte_s(a, i) * lw_byte_s(b, i));
    return (int32_t)sum;
}

LW_HD int32_t lw_dp4a_uu_portable(uint32_t a, uint32_t b, int32_t c)
{
    uint32_t sum = (uint32_t)c;
    for (int i = 0; i < 4; i++)
        sum += (uint32_t)(lw_byte_u(a, i) * lw_byte_u(b, i));
    return (int32_t)sum;
}

/* unsigned a, signed b: uint8 activations against int8 weights */
LW_HD int32_t lw_dp4a_us_portable(uint32_t a, uint32_t b, int32_t c)
{
    uint32_t sum = (uint32_t)c;
    for (int i = 0; i < 4; i++)
        sum += (uint32_t)(lw_byte_u(a, i) * lw_byte_s(b, i));
    return (int32_t)sum;
}

/* c + a_lo * b_0 + a_hi * b_1, a of two signed 16-bit numbers, b's lower two bytes. */
LW_HD int32_t lw_dp2a_lo_ss_portable(uint32_t a, uint32_t b, int32_t c)
{
    return (int32_t)((uint32_t)c + (uint32_t)((int16_t)a * lw_byte_s(b, 0)) +
                     (uint32_t)((int16_t)(a >> 16) * lw_byte_s(b, 1)));
}

/* The same with b's upper two bytes. */
LW_HD int32_t lw_dp2a_hi_ss_portable(uint32_t a, uint32_t b, int32_t c)
{
    return lw_dp2a_lo_ss_portable(a, b >> 16, c);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610
#define LW_HAVE_DP4A 1
#else
#define LW_HAVE_DP4A 0
#endif

LW_HD int32_t lw_dp4a_ss(uint32_t a, uint32_t b, int32_t c)
{
#if LW_HAVE_DP4A
    return __dp4a((int)a, (int)b, c);
#else
    return lw_dp4a_ss_portable(a, b, c);
#endif
}

LW_HD int32_t lw_dp4a_uu(uint32_t a, uint32_t b, int32_t c)
{
#if LW_HAVE_DP4A
    return (int32_t)__dp4a(a, b, (unsigned)c);
#else
    return lw_dp4a_uu_portable(a, b, c);
#endif
}

LW_HD int32_t lw_dp4a_us(uint32_t a, uint32_t b, int32_t c)
{
#if LW_HAVE_DP4A
    int32_t d; /* the intrinsics have no mixed form, PTX has */
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    return lw_dp4a_us_portable(a, b, c);
#endif
}

/* The same without the instruction, on the device too: the bytes pass through registers of their own, so that
 * the compiler does not join the multiply-adds into one IDP.4A (the portable form it does join). */
LW_HD int32_t lw_dp4a_ss_apart(uint32_t a, uint32_t b, int32_t c)
{
#if defined(__CUDA_ARCH__)
    for (int i = 0; i < 4; i++) {
        int32_t x = lw_byte_s(a, i), y = lw_byte_s(b, i);
        asm("" : "+r"(x));
        asm("" : "+r"(y));
        c += x * y;
    }
    return c;
#else
    return lw_dp4a_ss_portable(a, b, c);
#endif
}

LW_HD int32_t lw_dp2a_lo_ss(uint32_t a, uint32_t b, int32_t c)
{
#if LW_HAVE_DP4A
    return __dp2a_lo((int)a, (int)b, c);
#else
    return lw_dp2a_lo_ss_portable(a, b, c);
#endif
}

LW_HD int32_t lw_dp2a_hi_ss(uint32_t a, uint32_t b, int32_t c)
{
#if LW_HAVE_DP4A
    return __dp2a_hi((int)a, (int)b, c);
#else
    return lw_dp2a_hi_ss_portable(a, b, c);
#endif
}

#endif
