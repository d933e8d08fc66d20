/* simd_dot.h - products of 16-bit pairs summed in 32 bits, under one name for every instruction set; on top
 * of simd.h.
 *
 *   LW_DOT_LANES               32-bit sums in a vector
 *   lw_v16_dot(sum, a, b)      sum + a_0 * b_0 + a_1 * b_1 for each pair of signed 16-bit numbers: exact for
 * numbers within +-16 k, as 8-bit values are lw_v16_pairs_s8/_u8(p, q)  LW_DOT_LANES bytes from p and from q,
 * side by side and widened: p_0 q_0 p_1 q_1 ...
 *
 * The 16-bit route and not maddubs: that one saturates sums of two uint8 x int8 products. */
#ifndef LW_SIMD_DOT_H
#define LW_SIMD_DOT_H

#include "common/simd.h"

enum { LW_DOT_LANES = LW_VEC_BYTES / 4 };

#if defined(LW_ISA_avx512bw)

LW_SIMD lw_vec lw_v16_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}
LW_SIMD __m256i lw_interleave_16(const void *p, const void *q)
{
    __m128i a = _mm_loadu_si128(p), b = _mm_loadu_si128(q);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(a, b)), _mm_unpackhi_epi8(a, b),
                                   1);
}
LW_SIMD lw_vec lw_v16_pairs_s8(const void *p, const void *q)
{
    return _mm512_cvtepi8_epi16(lw_interleave_16(p, q));
}
LW_SIMD lw_vec lw_v16_pairs_u8(const void *p, const void *q)
{
    return _mm512_cvtepu8_epi16(lw_interleave_16(p, q));
}

#elif defined(LW_ISA_avx2)

LW_SIMD lw_vec lw_v16_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
LW_SIMD lw_vec lw_v16_pairs_s8(const void *p, const void *q)
{
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(_mm_loadl_epi64(p), _mm_loadl_epi64(q)));
}
LW_SIMD lw_vec lw_v16_pairs_u8(const void *p, const void *q)
{
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(_mm_loadl_epi64(p), _mm_loadl_epi64(q)));
}

#elif defined(LW_ISA_sse41)

LW_SIMD lw_vec lw_v16_dot(lw_vec sum, lw_vec a, lw_vec b)
{
    return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
}
LW_SIMD __m128i lw_load_4(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm_cvtsi32_si128(v);
}
LW_SIMD lw_vec lw_v16_pairs_s8(const void *p, const void *q)
{
    return _mm_cvtepi8_epi16(_mm_unpacklo_epi8(lw_load_4(p), lw_load_4(q)));
}
LW_SIMD lw_vec lw_v16_pairs_u8(const void *p, const void *q)
{
    return _mm_cvtepu8_epi16(_mm_unpacklo_epi8(lw_load_4(p), lw_load_4(q)));
}

#else /* NEON and the compiler's generic vectors: loops that the compiler turns into vectors */

LW_SIMD lw_vec lw_v16_dot(lw_vec sum, lw_vec a, lw_vec b)
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
LW_SIMD lw_vec lw_v16_pairs_s8(const void *p, const void *q)
{
    int16_t x[2 * LW_DOT_LANES];
    lw_vec v;
    for (int i = 0; i < LW_DOT_LANES; i++) {
        x[2 * i] = ((const int8_t *)p)[i];
        x[2 * i + 1] = ((const int8_t *)q)[i];
    }
    memcpy(&v, x, sizeof v);
    return v;
}
LW_SIMD lw_vec lw_v16_pairs_u8(const void *p, const void *q)
{
    int16_t x[2 * LW_DOT_LANES];
    lw_vec v;
    for (int i = 0; i < LW_DOT_LANES; i++) {
        x[2 * i] = ((const uint8_t *)p)[i];
        x[2 * i + 1] = ((const uint8_t *)q)[i];
    }
    memcpy(&v, x, sizeof v);
    return v;
}

#endif
#endif
