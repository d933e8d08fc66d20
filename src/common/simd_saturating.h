/* simd_saturating.h - signed lanes for kernels whose scores sit at the bottom of the lane's range, so that
 * the saturation of an addition is the floor of a local alignment and needs no instruction of its own.
 *
 *   lw_iN_set1, max, min          N = 8, 16, 32; signed
 *   lw_iN_adds, subs              N = 8, 16: saturate at both ends. N = 32: adds is floored at 0, which is
 * the bottom there, and subs wraps lw_i8_lookup32(table, i)      table[i] for lanes 0 <= i < 32 */
#ifndef LW_SIMD_SATURATING_H
#define LW_SIMD_SATURATING_H

#include "common/simd.h"

#if defined(LW_ISA_avx512bw) || defined(LW_ISA_avx2) || defined(LW_ISA_sse41)

#if defined(LW_ISA_avx512bw)
#define LW_MM(name) _mm512_##name
#define LW_MM_TABLE(half) _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(half)))
#elif defined(LW_ISA_avx2)
#define LW_MM(name) _mm256_##name
#define LW_MM_TABLE(half) _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(half)))
#else
#define LW_MM(name) _mm_##name
#define LW_MM_TABLE(half) _mm_loadu_si128((const __m128i *)(const void *)(half))
#endif

#define LW_SIMD_SIGNED(N, INT)                                                                               \
    LW_SIMD lw_vec lw_i##N##_set1(int32_t x)                                                                 \
    {                                                                                                        \
        return LW_MM(set1_epi##N)((INT)x);                                                                   \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_max(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return LW_MM(max_epi##N)(a, b);                                                                      \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_min(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return LW_MM(min_epi##N)(a, b);                                                                      \
    }
#define LW_SIMD_SATURATING(N)                                                                                \
    LW_SIMD lw_vec lw_i##N##_adds(lw_vec a, lw_vec b)                                                        \
    {                                                                                                        \
        return LW_MM(adds_epi##N)(a, b);                                                                     \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_subs(lw_vec a, lw_vec b)                                                        \
    {                                                                                                        \
        return LW_MM(subs_epi##N)(a, b);                                                                     \
    }
LW_SIMD_SIGNED(8, char)
LW_SIMD_SIGNED(16, short)
LW_SIMD_SIGNED(32, int)
LW_SIMD_SATURATING(8)
LW_SIMD_SATURATING(16)

LW_SIMD lw_vec lw_i32_adds(lw_vec a, lw_vec b)
{
    return LW_MM(max_epi32)(LW_MM(add_epi32)(a, b), lw_i32_set1(0));
}
LW_SIMD lw_vec lw_i32_subs(lw_vec a, lw_vec b)
{
    return LW_MM(sub_epi32)(a, b);
}

/* The byte shuffle looks at bits 0 to 3, and gives 0 where bit 7 is set: after + 0x70 that is i >= 16, after
 * - 16 i < 16. */
LW_SIMD lw_vec lw_i8_lookup32(const int8_t table[32], lw_vec i)
{
    lw_vec low = LW_MM(shuffle_epi8)(LW_MM_TABLE(table), lw_v8_add(i, lw_v8_set1(0x70)));
    lw_vec high = LW_MM(shuffle_epi8)(LW_MM_TABLE(table + 16), lw_v8_sub(i, lw_v8_set1(16)));
    return lw_or(low, high);
}

#elif defined(LW_ISA_neon)

/* IN and OUT turn bytes into signed N-bit lanes and back. */
#define LW_SIMD_SIGNED(N, IN, OUT)                                                                           \
    LW_SIMD lw_vec lw_i##N##_set1(int32_t x)                                                                 \
    {                                                                                                        \
        return OUT(vdupq_n_s##N((int##N##_t)x));                                                             \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_max(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return OUT(vmaxq_s##N(IN(a), IN(b)));                                                                \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_min(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return OUT(vminq_s##N(IN(a), IN(b)));                                                                \
    }
#define LW_SIMD_SATURATING(N, IN, OUT)                                                                       \
    LW_SIMD lw_vec lw_i##N##_adds(lw_vec a, lw_vec b)                                                        \
    {                                                                                                        \
        return OUT(vqaddq_s##N(IN(a), IN(b)));                                                               \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_subs(lw_vec a, lw_vec b)                                                        \
    {                                                                                                        \
        return OUT(vqsubq_s##N(IN(a), IN(b)));                                                               \
    }
LW_SIMD_SIGNED(8, vreinterpretq_s8_u8, vreinterpretq_u8_s8)
LW_SIMD_SIGNED(16, vreinterpretq_s16_u8, vreinterpretq_u8_s16)
LW_SIMD_SIGNED(32, vreinterpretq_s32_u8, vreinterpretq_u8_s32)
LW_SIMD_SATURATING(8, vreinterpretq_s8_u8, vreinterpretq_u8_s8)
LW_SIMD_SATURATING(16, vreinterpretq_s16_u8, vreinterpretq_u8_s16)

LW_SIMD lw_vec lw_i32_adds(lw_vec a, lw_vec b)
{
    return lw_i32_max(lw_v32_add(a, b), lw_i32_set1(0));
}
LW_SIMD lw_vec lw_i32_subs(lw_vec a, lw_vec b)
{
    return lw_v32_sub(a, b);
}

LW_SIMD lw_vec lw_i8_lookup32(const int8_t table[32], lw_vec i)
{
    uint8x16x2_t t = {{vreinterpretq_u8_s8(vld1q_s8(table)), vreinterpretq_u8_s8(vld1q_s8(table + 16))}};
    return vqtbl2q_u8(t, i);
}

#else /* the compiler's generic vectors */

#define LW_SIMD_SIGNED(N)                                                                                    \
    typedef int##N##_t lw_s##N##_lanes __attribute__((vector_size(16)));                                     \
    LW_SIMD lw_vec lw_i##N##_set1(int32_t x)                                                                 \
    {                                                                                                        \
        return (lw_vec)((lw_s##N##_lanes){0} + (int##N##_t)x);                                               \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_max(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        lw_vec above = (lw_vec)((lw_s##N##_lanes)a > (lw_s##N##_lanes)b);                                    \
        return (a & above) | (b & ~above);                                                                   \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_min(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        lw_vec above = (lw_vec)((lw_s##N##_lanes)a > (lw_s##N##_lanes)b);                                    \
        return (b & above) | (a & ~above);                                                                   \
    }
/* Both saturate where the wrapped result has the wrong sign: towards MAX if a is not negative, else towards
 * MIN. */
#define LW_SIMD_SATURATING(N)                                                                                \
    LW_SIMD lw_vec lw_i##N##_adds(lw_vec a, lw_vec b)                                                        \
    {                                                                                                        \
        lw_vec sum = lw_v##N##_add(a, b);                                                                    \
        lw_vec wrong = (lw_vec)((lw_s##N##_lanes)((a ^ sum) & (b ^ sum)) < 0);                               \
        lw_vec end = (lw_vec)((lw_s##N##_lanes)((lw_s##N##_lanes)a < 0) ^ INT##N##_MAX);                     \
        return (end & wrong) | (sum & ~wrong);                                                               \
    }                                                                                                        \
    LW_SIMD lw_vec lw_i##N##_subs(lw_vec a, lw_vec b)                                                        \
    {                                                                                                        \
        lw_vec difference = lw_v##N##_sub(a, b);                                                             \
        lw_vec wrong = (lw_vec)((lw_s##N##_lanes)((a ^ b) & (a ^ difference)) < 0);                          \
        lw_vec end = (lw_vec)((lw_s##N##_lanes)((lw_s##N##_lanes)a < 0) ^ INT##N##_MAX);                     \
        return (end & wrong) | (difference & ~wrong);                                                        \
    }
LW_SIMD_SIGNED(8)
LW_SIMD_SIGNED(16)
LW_SIMD_SIGNED(32)
LW_SIMD_SATURATING(8)
LW_SIMD_SATURATING(16)

LW_SIMD lw_vec lw_i32_adds(lw_vec a, lw_vec b)
{
    return lw_i32_max(lw_v32_add(a, b), lw_i32_set1(0));
}
LW_SIMD lw_vec lw_i32_subs(lw_vec a, lw_vec b)
{
    return lw_v32_sub(a, b);
}

LW_SIMD lw_vec lw_i8_lookup32(const int8_t table[32], lw_vec i)
{
    lw_vec r;
    for (int k = 0; k < LW_VEC_BYTES; k++)
        r[k] = (uint8_t)table[i[k] & 31];
    return r;
}

#endif
#endif
