/* simd_dot.h - products of signed bytes summed in 32 bits, under one name for every instruction set; on top
 * of simd.h.
 *
 *   LW_DOT_LANES        32-bit sums in a vector
 *   LW_DOT_DEPTH        products that one lane sums at a time: 2 (through 16 bits) or 4
 *   lw_dot_a(byte, is_signed, n, &sum)
 *                       LW_DOT_DEPTH bytes of A (n of them there, the rest 0) as the int32 that lw_dot()
 *                       wants in every lane; adds them, as they are stored, to sum
 *   LW_DOT_TO_UNSIGNED, LW_DOT_TO_SIGNED
 *                       what is added to A's bytes, unsigned and signed ones, where they are stored
 *   LW_DOT_ONES         A of ones
 *   lw_dot_b(p)         LW_DOT_LANES groups of LW_DOT_DEPTH signed bytes
 *   lw_dot_get(p), lw_dot_put(p, v)
 *                       LW_DOT_LANES sums from and to memory, not aligned
 *   lw_dot(sum, a, b)   sum + the products of each lane's group: exact, modulo 2^32
 *
 * 16-bit pairs and not maddubs: that one saturates sums of two uint8 x int8 products. LW_DOT_NARROW asks for
 * it (avx2 only): then each pair of B's bytes, the first with the second and the third with the fourth of a
 * group, must have |b_0| + |b_1| <= LW_DOT_NARROW_PAIR = 128, so that no sum exceeds 255 * 128 = 32,640 <
 * 32,768. */
#ifndef LW_SIMD_DOT_H
#define LW_SIMD_DOT_H

#include <stdbool.h>
#include "common/simd.h"

enum { LW_DOT_NARROW_PAIR = 128 };

enum { LW_DOT_LANES = LW_VEC_BYTES / 4 };

#if defined(LW_ISA_avx512bw)
LW_SIMD lw_vec lw_dot_get(const int32_t *p)
{
    return _mm512_loadu_si512(p);
}
LW_SIMD void lw_dot_put(int32_t *p, lw_vec v)
{
    _mm512_storeu_si512(p, v);
}
#elif defined(LW_ISA_avx2)
LW_SIMD lw_vec lw_dot_get(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
LW_SIMD void lw_dot_put(int32_t *p, lw_vec v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}
#elif defined(LW_ISA_sse41)
LW_SIMD lw_vec lw_dot_get(const int32_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
LW_SIMD void lw_dot_put(int32_t *p, lw_vec v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}
#else
LW_SIMD lw_vec lw_dot_get(const int32_t *p)
{
    lw_vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
LW_SIMD void lw_dot_put(int32_t *p, lw_vec v)
{
    memcpy(p, &v, sizeof v);
}
#endif

#if defined(LW_ISA_avx512vnni) || defined(LW_DOT_NARROW) || defined(LW_ISA_neon)

#if defined(LW_ISA_neon) /* signed bytes, on both sides */
enum { LW_DOT_TO_UNSIGNED = -128, LW_DOT_TO_SIGNED = 0 };
typedef int8_t lw_dot_byte;
#else /* unsigned bytes by signed ones */
enum { LW_DOT_TO_UNSIGNED = 0, LW_DOT_TO_SIGNED = 128 };
typedef uint8_t lw_dot_byte;
#endif
#if defined(LW_ISA_neon) && !defined(LW_ISA_dotprod)
enum { LW_DOT_DEPTH = 2, LW_DOT_ONES = 0x01010101 };
#else
enum { LW_DOT_DEPTH = 4, LW_DOT_ONES = 0x01010101 };
#endif

/* Four bytes; a depth of two twice over. */
LW_SIMD int32_t lw_dot_a(const uint8_t byte[LW_DOT_DEPTH], bool is_signed, int n, uint32_t *sum)
{
    lw_dot_byte stored[4] = {0};
    int32_t a;
    for (int d = 0; d < n; d++) {
        stored[d] = (lw_dot_byte)(byte[d] + (is_signed ? LW_DOT_TO_SIGNED : LW_DOT_TO_UNSIGNED));
        *sum += (uint32_t)stored[d];
    }
    for (int d = LW_DOT_DEPTH; d < 4; d++)
        stored[d] = stored[d - LW_DOT_DEPTH];
    memcpy(&a, stored, sizeof a);
    return a;
}
#if defined(LW_ISA_avx512vnni)

LW_SIMD lw_vec lw_dot_b(const void *p)
{
    return _mm512_loadu_si512(p);
}
LW_SIMD lw_vec lw_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return _mm512_dpbusd_epi32(sum, a, b); /* does not saturate */
}

#elif defined(LW_ISA_avx2)

LW_SIMD lw_vec lw_dot_b(const void *p)
{
    return _mm256_loadu_si256(p);
}
LW_SIMD lw_vec lw_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}

#elif defined(LW_ISA_dotprod)

LW_SIMD lw_vec lw_dot_b(const void *p)
{
    return vld1q_u8(p);
}
LW_SIMD lw_vec lw_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return vreinterpretq_u8_s32(
        vdotq_s32(vreinterpretq_s32_u8(sum), vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

#else /* NEON: a product of two signed bytes fits 16 bits, and pairs of them are added up in 32 */

LW_SIMD lw_vec lw_dot_b(const void *p)
{
    return vcombine_u8(vld1_u8(p), vdup_n_u8(0));
}
LW_SIMD lw_vec lw_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    int16x8_t product = vmull_s8(vreinterpret_s8_u8(vget_low_u8(a)), vreinterpret_s8_u8(vget_low_u8(b)));
    return vreinterpretq_u8_s32(vpadalq_s16(vreinterpretq_s32_u8(sum), product));
}

#endif

#else

enum { LW_DOT_DEPTH = 2, LW_DOT_TO_UNSIGNED = 0, LW_DOT_TO_SIGNED = 0, LW_DOT_ONES = 0x00010001 };

LW_SIMD int32_t lw_dot_a(const uint8_t byte[2], bool is_signed, int n, uint32_t *sum)
{
    int32_t x = is_signed ? (int8_t)byte[0] : byte[0], y = n < 2 ? 0 : is_signed ? (int8_t)byte[1] : byte[1];
    *sum += (uint32_t)(x + y);
    return (int32_t)((uint32_t)(uint16_t)x | (uint32_t)(uint16_t)y << 16);
}

#if defined(LW_ISA_avx512bw)

LW_SIMD lw_vec lw_dot_b(const void *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(p));
}
LW_SIMD lw_vec lw_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}

#elif defined(LW_ISA_avx2)

LW_SIMD lw_vec lw_dot_b(const void *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
}
LW_SIMD lw_vec lw_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

#elif defined(LW_ISA_sse41)

LW_SIMD lw_vec lw_dot_b(const void *p)
{
    return _mm_cvtepi8_epi16(_mm_loadl_epi64(p));
}
LW_SIMD lw_vec lw_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
}

#else /* the compiler's generic vectors: loops that it turns into vectors */

LW_SIMD lw_vec lw_dot_b(const void *p)
{
    int16_t x[2 * LW_DOT_LANES];
    lw_vec v;
    for (int i = 0; i < 2 * LW_DOT_LANES; i++)
        x[i] = ((const int8_t *)p)[i];
    memcpy(&v, x, sizeof v);
    return v;
}
LW_SIMD lw_vec lw_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    int32_t s[LW_DOT_LANES];
    int16_t x[2 * LW_DOT_LANES], y[2 * LW_DOT_LANES];
    memcpy(s, &sum, sizeof s);
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < LW_DOT_LANES; i++)
        s[i] = (int32_t)((uint32_t)s[i] + (uint32_t)(x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1]));
    memcpy(&sum, s, sizeof s);
    return sum;
}

#endif
#endif
#endif
