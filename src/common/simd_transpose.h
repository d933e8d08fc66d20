/* simd_transpose.h - bytes of many sequences side by side, for kernels with a sequence a lane.
 *
 *   lw_load_unaligned
 *   lw_transpose16(out, pitch, lane)  out[row * pitch + l] = lane[l][row], 0 <= l < 16, for LW_VEC_BYTES rows
 *   lw_iN_load8(p)                    N = 8, 16, 32: a signed byte for each lane of N bits, p aligned to what
 * is loaded */
#ifndef LW_SIMD_TRANSPOSE_H
#define LW_SIMD_TRANSPOSE_H

#include <stddef.h>

#include "common/simd.h"

/* lw_zip_low, lw_zip_high: the bytes of a and b in turn, from the lower and upper half of each group of 16.
 * lw_store_groups: group g of 16 bytes to p + g * stride. */
#if defined(LW_ISA_avx512bw)

LW_SIMD lw_vec lw_load_unaligned(const void *p)
{
    return _mm512_loadu_si512(p);
}
LW_SIMD lw_vec lw_zip_low(lw_vec a, lw_vec b)
{
    return _mm512_unpacklo_epi8(a, b);
}
LW_SIMD lw_vec lw_zip_high(lw_vec a, lw_vec b)
{
    return _mm512_unpackhi_epi8(a, b);
}
LW_SIMD void lw_store_groups(uint8_t *p, size_t stride, lw_vec v)
{
    _mm_store_si128((__m128i *)(void *)p, _mm512_castsi512_si128(v));
    _mm_store_si128((__m128i *)(void *)(p + stride), _mm512_extracti32x4_epi32(v, 1));
    _mm_store_si128((__m128i *)(void *)(p + 2 * stride), _mm512_extracti32x4_epi32(v, 2));
    _mm_store_si128((__m128i *)(void *)(p + 3 * stride), _mm512_extracti32x4_epi32(v, 3));
}
LW_SIMD lw_vec lw_i16_load8(const void *p)
{
    return _mm512_cvtepi8_epi16(_mm256_load_si256(p));
}
LW_SIMD lw_vec lw_i32_load8(const void *p)
{
    return _mm512_cvtepi8_epi32(_mm_load_si128(p));
}

#elif defined(LW_ISA_avx2)

LW_SIMD lw_vec lw_load_unaligned(const void *p)
{
    return _mm256_loadu_si256(p);
}
LW_SIMD lw_vec lw_zip_low(lw_vec a, lw_vec b)
{
    return _mm256_unpacklo_epi8(a, b);
}
LW_SIMD lw_vec lw_zip_high(lw_vec a, lw_vec b)
{
    return _mm256_unpackhi_epi8(a, b);
}
LW_SIMD void lw_store_groups(uint8_t *p, size_t stride, lw_vec v)
{
    _mm_store_si128((__m128i *)(void *)p, _mm256_castsi256_si128(v));
    _mm_store_si128((__m128i *)(void *)(p + stride), _mm256_extracti128_si256(v, 1));
}
LW_SIMD lw_vec lw_i16_load8(const void *p)
{
    return _mm256_cvtepi8_epi16(_mm_load_si128(p));
}
LW_SIMD lw_vec lw_i32_load8(const void *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(p));
}

#elif defined(LW_ISA_sse41)

LW_SIMD lw_vec lw_load_unaligned(const void *p)
{
    return _mm_loadu_si128(p);
}
LW_SIMD lw_vec lw_zip_low(lw_vec a, lw_vec b)
{
    return _mm_unpacklo_epi8(a, b);
}
LW_SIMD lw_vec lw_zip_high(lw_vec a, lw_vec b)
{
    return _mm_unpackhi_epi8(a, b);
}
LW_SIMD void lw_store_groups(uint8_t *p, size_t stride, lw_vec v)
{
    (void)stride;
    _mm_store_si128((__m128i *)(void *)p, v);
}
LW_SIMD lw_vec lw_i16_load8(const void *p)
{
    return _mm_cvtepi8_epi16(_mm_loadl_epi64(p));
}
LW_SIMD lw_vec lw_i32_load8(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm_cvtepi8_epi32(_mm_cvtsi32_si128(four));
}

#else

LW_SIMD lw_vec lw_load_unaligned(const void *p)
{
    lw_vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
#if defined(LW_ISA_neon)
LW_SIMD lw_vec lw_zip_low(lw_vec a, lw_vec b)
{
    return vzip1q_u8(a, b);
}
LW_SIMD lw_vec lw_zip_high(lw_vec a, lw_vec b)
{
    return vzip2q_u8(a, b);
}
LW_SIMD lw_vec lw_i16_load8(const void *p)
{
    return vreinterpretq_u8_s16(vmovl_s8(vld1_s8(p)));
}
LW_SIMD lw_vec lw_i32_load8(const void *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    int16x8_t wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
    return vreinterpretq_u8_s32(vmovl_s16(vget_low_s16(wide)));
}
#else
LW_SIMD lw_vec lw_zip_low(lw_vec a, lw_vec b)
{
    lw_vec v;
    for (int k = 0; k < LW_VEC_BYTES; k++)
        v[k] = k % 2 ? b[k / 2] : a[k / 2];
    return v;
}
LW_SIMD lw_vec lw_zip_high(lw_vec a, lw_vec b)
{
    lw_vec v;
    for (int k = 0; k < LW_VEC_BYTES; k++)
        v[k] = k % 2 ? b[8 + k / 2] : a[8 + k / 2];
    return v;
}
LW_SIMD lw_vec lw_i16_load8(const void *p)
{
    int16_t lane[8];
    for (int k = 0; k < 8; k++)
        lane[k] = ((const int8_t *)p)[k];
    return lw_load_unaligned(lane);
}
LW_SIMD lw_vec lw_i32_load8(const void *p)
{
    int32_t lane[4];
    for (int k = 0; k < 4; k++)
        lane[k] = ((const int8_t *)p)[k];
    return lw_load_unaligned(lane);
}
#endif
LW_SIMD void lw_store_groups(uint8_t *p, size_t stride, lw_vec v)
{
    (void)stride;
    lw_store(p, v);
}

#endif

LW_SIMD lw_vec lw_i8_load8(const void *p)
{
    return lw_load(p);
}

/* A stage zips vector k with vector k + 8; after four of them every row is together, first row first. */
LW_SIMD void lw_transpose16(uint8_t *out, size_t pitch, const uint8_t *const lane[16])
{
    lw_vec a[16], b[16];
#pragma GCC unroll 16
    for (int l = 0; l < 16; l++)
        a[l] = lw_load_unaligned(lane[l]);
#pragma GCC unroll 4
    for (int stage = 0; stage < 4; stage++) {
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            b[2 * k] = lw_zip_low(a[k], a[k + 8]);
            b[2 * k + 1] = lw_zip_high(a[k], a[k + 8]);
        }
#pragma GCC unroll 16
        for (int k = 0; k < 16; k++)
            a[k] = b[k];
    }
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++)
        lw_store_groups(out + (size_t)k * pitch, 16 * pitch, a[k]);
}

#endif
