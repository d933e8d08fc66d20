/* simd.h - vectors of unsigned 8-, 16- and 32-bit lanes under the names that kernels use.
 *
 * A kernel source is compiled once per instruction set (lw_isa_source() in cmake/LwTargets.cmake defines
 * LW_ISA_<name>); without any of them the same names stand on the compiler's generic vectors. Every
 * operation gives the same lanes on every instruction set:
 *
 *   lw_vec, LW_VEC_BYTES          the register and its size
 *   lw_load, lw_store             aligned to LW_VEC_BYTES
 *   lw_and, lw_or
 *   lw_vN_set1, add, sub, max     N = 8, 16, 32; add and sub wrap, max is unsigned
 *   lw_v8_max_by_compare          lw_v8_max by other instructions where those keep another port busy
 *   lw_vN_add_floor(a, b)         a + b, but at least the lane's top bit alone, for a >= that and sums that
 *                                 fit the lane: one saturating signed addition
 *   lw_any_bits(v, mask)          non-zero when v & mask is
 *   lw_vN_any_above(a, b)         non-zero when a > b in any lane (unsigned)
 *   lw_vN_if_equal(a, b, x, y)    x where a == b, y elsewhere
 *   lw_vN_or_if_equal(v, a, b, x) v | x where a == b, v elsewhere
 *   lw_v8_lookup(table, i, other) table[i] in lanes with i < 16, other's lane where bit 7 of i is set */
#ifndef LW_SIMD_H
#define LW_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(LW_ISA_avx512bw) || defined(LW_ISA_avx2) || defined(LW_ISA_sse41)
#include <immintrin.h>
#elif defined(LW_ISA_neon)
#include <arm_neon.h>
#endif

#define LW_SIMD static inline __attribute__((always_inline, unused))

#if defined(LW_ISA_avx512bw)

typedef __m512i lw_vec;
enum { LW_VEC_BYTES = 64 };

LW_SIMD lw_vec lw_load(const void *p)
{
    return _mm512_load_si512(p);
}
LW_SIMD void lw_store(void *p, lw_vec v)
{
    _mm512_store_si512(p, v);
}
LW_SIMD lw_vec lw_and(lw_vec a, lw_vec b)
{
    return _mm512_and_si512(a, b);
}
LW_SIMD lw_vec lw_or(lw_vec a, lw_vec b)
{
    return _mm512_or_si512(a, b);
}
#define LW_SIMD_LANES(N, INT)                                                                                \
    LW_SIMD lw_vec lw_v##N##_set1(uint32_t x)                                                                \
    {                                                                                                        \
        return _mm512_set1_epi##N((INT)x);                                                                   \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_add(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm512_add_epi##N(a, b);                                                                      \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_sub(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm512_sub_epi##N(a, b);                                                                      \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_max(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm512_max_epu##N(a, b);                                                                      \
    }                                                                                                        \
    LW_SIMD int lw_v##N##_any_above(lw_vec a, lw_vec b)                                                      \
    {                                                                                                        \
        return _mm512_cmpgt_epu##N##_mask(a, b) != 0;                                                        \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_if_equal(lw_vec a, lw_vec b, lw_vec x, lw_vec y)                                \
    {                                                                                                        \
        return _mm512_mask_blend_epi##N(_mm512_cmpeq_epi##N##_mask(a, b), y, x);                             \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_or_if_equal(lw_vec v, lw_vec a, lw_vec b, lw_vec x)                             \
    {                                                                                                        \
        return _mm512_mask_blend_epi##N(_mm512_cmpeq_epi##N##_mask(a, b), v, _mm512_or_si512(v, x));         \
    }
LW_SIMD_LANES(8, char)
LW_SIMD_LANES(16, short)
LW_SIMD_LANES(32, int)

LW_SIMD int lw_any_bits(lw_vec v, lw_vec mask)
{
    return _mm512_test_epi32_mask(v, mask) != 0;
}
/* Intel's processors take 512-bit maxima on port 0 alone, comparisons on port 5 and blends on both. */
LW_SIMD lw_vec lw_v8_max_by_compare(lw_vec a, lw_vec b)
{
    return _mm512_mask_mov_epi8(b, _mm512_cmpgt_epu8_mask(a, b), a);
}
LW_SIMD lw_vec lw_v8_add_floor(lw_vec a, lw_vec b)
{
    return _mm512_adds_epi8(a, b);
}
LW_SIMD lw_vec lw_v16_add_floor(lw_vec a, lw_vec b)
{
    return _mm512_adds_epi16(a, b);
}
LW_SIMD lw_vec lw_v32_add_floor(lw_vec a, lw_vec b)
{
    return _mm512_max_epu32(_mm512_add_epi32(a, b), _mm512_set1_epi32(INT32_MIN));
}
LW_SIMD lw_vec lw_v8_lookup(const uint8_t table[16], lw_vec i, lw_vec other)
{
    __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(i), _mm512_shuffle_epi8(t, i), other);
}

#elif defined(LW_ISA_avx2)

typedef __m256i lw_vec;
enum { LW_VEC_BYTES = 32 };

LW_SIMD lw_vec lw_load(const void *p)
{
    return _mm256_load_si256(p);
}
LW_SIMD void lw_store(void *p, lw_vec v)
{
    _mm256_store_si256(p, v);
}
LW_SIMD lw_vec lw_and(lw_vec a, lw_vec b)
{
    return _mm256_and_si256(a, b);
}
LW_SIMD lw_vec lw_or(lw_vec a, lw_vec b)
{
    return _mm256_or_si256(a, b);
}
#define LW_SIMD_LANES(N, INT)                                                                                \
    LW_SIMD lw_vec lw_v##N##_set1(uint32_t x)                                                                \
    {                                                                                                        \
        return _mm256_set1_epi##N((INT)x);                                                                   \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_add(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm256_add_epi##N(a, b);                                                                      \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_sub(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm256_sub_epi##N(a, b);                                                                      \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_max(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm256_max_epu##N(a, b);                                                                      \
    }                                                                                                        \
    LW_SIMD int lw_v##N##_any_above(lw_vec a, lw_vec b)                                                      \
    {                                                                                                        \
        return _mm256_movemask_epi8(_mm256_cmpeq_epi##N(_mm256_max_epu##N(a, b), b)) != -1;                  \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_if_equal(lw_vec a, lw_vec b, lw_vec x, lw_vec y)                                \
    {                                                                                                        \
        return _mm256_blendv_epi8(y, x, _mm256_cmpeq_epi##N(a, b));                                          \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_or_if_equal(lw_vec v, lw_vec a, lw_vec b, lw_vec x)                             \
    {                                                                                                        \
        return _mm256_or_si256(v, _mm256_and_si256(x, _mm256_cmpeq_epi##N(a, b)));                           \
    }
LW_SIMD_LANES(8, char)
LW_SIMD_LANES(16, short)
LW_SIMD_LANES(32, int)

LW_SIMD int lw_any_bits(lw_vec v, lw_vec mask)
{
    return !_mm256_testz_si256(v, mask);
}
LW_SIMD lw_vec lw_v8_add_floor(lw_vec a, lw_vec b)
{
    return _mm256_adds_epi8(a, b);
}
LW_SIMD lw_vec lw_v16_add_floor(lw_vec a, lw_vec b)
{
    return _mm256_adds_epi16(a, b);
}
LW_SIMD lw_vec lw_v32_add_floor(lw_vec a, lw_vec b)
{
    return _mm256_max_epu32(_mm256_add_epi32(a, b), _mm256_set1_epi32(INT32_MIN));
}
LW_SIMD lw_vec lw_v8_lookup(const uint8_t table[16], lw_vec i, lw_vec other)
{
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(t, i), other, i);
}

#elif defined(LW_ISA_sse41)

typedef __m128i lw_vec;
enum { LW_VEC_BYTES = 16 };

LW_SIMD lw_vec lw_load(const void *p)
{
    return _mm_load_si128(p);
}
LW_SIMD void lw_store(void *p, lw_vec v)
{
    _mm_store_si128(p, v);
}
LW_SIMD lw_vec lw_and(lw_vec a, lw_vec b)
{
    return _mm_and_si128(a, b);
}
LW_SIMD lw_vec lw_or(lw_vec a, lw_vec b)
{
    return _mm_or_si128(a, b);
}
#define LW_SIMD_LANES(N, INT)                                                                                \
    LW_SIMD lw_vec lw_v##N##_set1(uint32_t x)                                                                \
    {                                                                                                        \
        return _mm_set1_epi##N((INT)x);                                                                      \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_add(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm_add_epi##N(a, b);                                                                         \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_sub(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm_sub_epi##N(a, b);                                                                         \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_max(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return _mm_max_epu##N(a, b);                                                                         \
    }                                                                                                        \
    LW_SIMD int lw_v##N##_any_above(lw_vec a, lw_vec b)                                                      \
    {                                                                                                        \
        return _mm_movemask_epi8(_mm_cmpeq_epi##N(_mm_max_epu##N(a, b), b)) != 0xffff;                       \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_if_equal(lw_vec a, lw_vec b, lw_vec x, lw_vec y)                                \
    {                                                                                                        \
        return _mm_blendv_epi8(y, x, _mm_cmpeq_epi##N(a, b));                                                \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_or_if_equal(lw_vec v, lw_vec a, lw_vec b, lw_vec x)                             \
    {                                                                                                        \
        return _mm_or_si128(v, _mm_and_si128(x, _mm_cmpeq_epi##N(a, b)));                                    \
    }
LW_SIMD_LANES(8, char)
LW_SIMD_LANES(16, short)
LW_SIMD_LANES(32, int)

LW_SIMD int lw_any_bits(lw_vec v, lw_vec mask)
{
    return !_mm_testz_si128(v, mask);
}
LW_SIMD lw_vec lw_v8_add_floor(lw_vec a, lw_vec b)
{
    return _mm_adds_epi8(a, b);
}
LW_SIMD lw_vec lw_v16_add_floor(lw_vec a, lw_vec b)
{
    return _mm_adds_epi16(a, b);
}
LW_SIMD lw_vec lw_v32_add_floor(lw_vec a, lw_vec b)
{
    return _mm_max_epu32(_mm_add_epi32(a, b), _mm_set1_epi32(INT32_MIN));
}
LW_SIMD lw_vec lw_v8_lookup(const uint8_t table[16], lw_vec i, lw_vec other)
{
    __m128i t = _mm_loadu_si128((const __m128i *)table);
    return _mm_blendv_epi8(_mm_shuffle_epi8(t, i), other, i);
}

#elif defined(LW_ISA_neon)

typedef uint8x16_t lw_vec;
enum { LW_VEC_BYTES = 16 };

LW_SIMD lw_vec lw_load(const void *p)
{
    return vld1q_u8(p);
}
LW_SIMD void lw_store(void *p, lw_vec v)
{
    vst1q_u8(p, v);
}
LW_SIMD lw_vec lw_and(lw_vec a, lw_vec b)
{
    return vandq_u8(a, b);
}
LW_SIMD lw_vec lw_or(lw_vec a, lw_vec b)
{
    return vorrq_u8(a, b);
}
/* IN and OUT turn bytes into N-bit lanes and back. */
#define LW_SIMD_LANES(N, IN, OUT)                                                                            \
    LW_SIMD lw_vec lw_v##N##_set1(uint32_t x)                                                                \
    {                                                                                                        \
        return OUT(vdupq_n_u##N((uint##N##_t)x));                                                            \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_add(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return OUT(vaddq_u##N(IN(a), IN(b)));                                                                \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_sub(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return OUT(vsubq_u##N(IN(a), IN(b)));                                                                \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_max(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return OUT(vmaxq_u##N(IN(a), IN(b)));                                                                \
    }                                                                                                        \
    LW_SIMD int lw_v##N##_any_above(lw_vec a, lw_vec b)                                                      \
    {                                                                                                        \
        return vmaxvq_u##N(vcgtq_u##N(IN(a), IN(b))) != 0;                                                   \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_if_equal(lw_vec a, lw_vec b, lw_vec x, lw_vec y)                                \
    {                                                                                                        \
        return vbslq_u8(OUT(vceqq_u##N(IN(a), IN(b))), x, y);                                                \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_or_if_equal(lw_vec v, lw_vec a, lw_vec b, lw_vec x)                             \
    {                                                                                                        \
        return vorrq_u8(v, vandq_u8(x, OUT(vceqq_u##N(IN(a), IN(b)))));                                      \
    }
LW_SIMD_LANES(8, , )
LW_SIMD_LANES(16, vreinterpretq_u16_u8, vreinterpretq_u8_u16)
LW_SIMD_LANES(32, vreinterpretq_u32_u8, vreinterpretq_u8_u32)

LW_SIMD int lw_any_bits(lw_vec v, lw_vec mask)
{
    return vmaxvq_u8(vandq_u8(v, mask)) != 0;
}
LW_SIMD lw_vec lw_v8_add_floor(lw_vec a, lw_vec b)
{
    return vreinterpretq_u8_s8(vqaddq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}
LW_SIMD lw_vec lw_v16_add_floor(lw_vec a, lw_vec b)
{
    return vreinterpretq_u8_s16(vqaddq_s16(vreinterpretq_s16_u8(a), vreinterpretq_s16_u8(b)));
}
LW_SIMD lw_vec lw_v32_add_floor(lw_vec a, lw_vec b)
{
    return vreinterpretq_u8_s32(vqaddq_s32(vreinterpretq_s32_u8(a), vreinterpretq_s32_u8(b)));
}
LW_SIMD lw_vec lw_v8_lookup(const uint8_t table[16], lw_vec i, lw_vec other)
{
    return vqtbx1q_u8(other, vld1q_u8(table), i); /* other's where i >= 16 */
}

#else /* the compiler's generic vectors */

typedef uint8_t lw_vec __attribute__((vector_size(16)));
enum { LW_VEC_BYTES = 16 };

LW_SIMD lw_vec lw_load(const void *p)
{
    lw_vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
LW_SIMD void lw_store(void *p, lw_vec v)
{
    memcpy(p, &v, sizeof v);
}
LW_SIMD lw_vec lw_and(lw_vec a, lw_vec b)
{
    return a & b;
}
LW_SIMD lw_vec lw_or(lw_vec a, lw_vec b)
{
    return a | b;
}
#define LW_SIMD_LANES(N)                                                                                     \
    typedef uint##N##_t lw_u##N##_lanes __attribute__((vector_size(16)));                                    \
    LW_SIMD lw_vec lw_v##N##_set1(uint32_t x)                                                                \
    {                                                                                                        \
        return (lw_vec)((lw_u##N##_lanes){0} + (uint##N##_t)x);                                              \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_add(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return (lw_vec)((lw_u##N##_lanes)a + (lw_u##N##_lanes)b);                                            \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_sub(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        return (lw_vec)((lw_u##N##_lanes)a - (lw_u##N##_lanes)b);                                            \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_max(lw_vec a, lw_vec b)                                                         \
    {                                                                                                        \
        lw_vec above = (lw_vec)((lw_u##N##_lanes)a > (lw_u##N##_lanes)b);                                    \
        return (a & above) | (b & ~above);                                                                   \
    }                                                                                                        \
    LW_SIMD int lw_v##N##_any_above(lw_vec a, lw_vec b)                                                      \
    {                                                                                                        \
        lw_vec above = (lw_vec)((lw_u##N##_lanes)a > (lw_u##N##_lanes)b);                                    \
        uint64_t half[2];                                                                                    \
        memcpy(half, &above, sizeof half);                                                                   \
        return (half[0] | half[1]) != 0;                                                                     \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_if_equal(lw_vec a, lw_vec b, lw_vec x, lw_vec y)                                \
    {                                                                                                        \
        lw_vec same = (lw_vec)((lw_u##N##_lanes)a == (lw_u##N##_lanes)b);                                    \
        return (x & same) | (y & ~same);                                                                     \
    }                                                                                                        \
    LW_SIMD lw_vec lw_v##N##_or_if_equal(lw_vec v, lw_vec a, lw_vec b, lw_vec x)                             \
    {                                                                                                        \
        return v | (x & (lw_vec)((lw_u##N##_lanes)a == (lw_u##N##_lanes)b));                                 \
    }
LW_SIMD_LANES(8)
LW_SIMD_LANES(16)
LW_SIMD_LANES(32)

LW_SIMD int lw_any_bits(lw_vec v, lw_vec mask)
{
    uint64_t half[2];
    v &= mask;
    memcpy(half, &v, sizeof half);
    return (half[0] | half[1]) != 0;
}
LW_SIMD lw_vec lw_v8_add_floor(lw_vec a, lw_vec b)
{
    return lw_v8_max(lw_v8_add(a, b), lw_v8_set1(0x80));
}
LW_SIMD lw_vec lw_v16_add_floor(lw_vec a, lw_vec b)
{
    return lw_v16_max(lw_v16_add(a, b), lw_v16_set1(0x8000));
}
LW_SIMD lw_vec lw_v32_add_floor(lw_vec a, lw_vec b)
{
    return lw_v32_max(lw_v32_add(a, b), lw_v32_set1(0x80000000));
}

LW_SIMD lw_vec lw_v8_lookup(const uint8_t table[16], lw_vec i, lw_vec other)
{
    uint8_t at[LW_VEC_BYTES], r[LW_VEC_BYTES];
    memcpy(at, &i, sizeof at);
    for (int k = 0; k < LW_VEC_BYTES; k++)
        r[k] = table[at[k] & 15];
    lw_vec v, high = (lw_vec)(i >= 0x80);
    memcpy(&v, r, sizeof v);
    return (other & high) | (v & ~high);
}

#endif

#if !defined(LW_ISA_avx512bw)
LW_SIMD lw_vec lw_v8_max_by_compare(lw_vec a, lw_vec b)
{
    return lw_v8_max(a, b);
}
#endif

#endif
