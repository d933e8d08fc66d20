/* simd_minplus.h - vectors for min-plus arithmetic: five lane types with load, store, set1, add and min.
 *
 * As with simd.h a kernel source is compiled once per instruction set (LW_ISA_<name>), and generic vectors of
 * the compiler stand in where there is none. For T in u16, s32, s64, f32, f64:
 *
 *   lw_Tv, LW_Tv_LANES               the register (lw_s32v) and its lanes (LW_s32v_LANES)
 *   lw_Tv_load, lw_Tv_store          any address
 *   lw_Tv_set1, lw_Tv_add, lw_Tv_min add wraps in integers; no operand of a float's min is NaN
 *   LW_Tv_AFRESH                     add overwrites its first operand, so that one is better loaded anew for
 *                                    each addition (lw_afresh()) than copied
 *   LW_MINPLUS_VECTORS               registers side by side in a row of a product tile: with 6 rows, what
 *                                    16 (else 32) registers hold besides the operands */
#ifndef LW_SIMD_MINPLUS_H
#define LW_SIMD_MINPLUS_H

#include <stdint.h>
#include <string.h>

#if defined(LW_ISA_avx512bw) || defined(LW_ISA_avx2) || defined(LW_ISA_sse41)
#include <immintrin.h>
#elif defined(LW_ISA_neon)
#include <arm_neon.h>
#endif

/* The same pointer, but the compiler does not know: what is read through it is read again. */
static inline __attribute__((always_inline, unused)) const void *lw_afresh(const void *p)
{
    __asm__("" : "+r"(p));
    return p;
}

#define LW_MINPLUS static inline __attribute__((always_inline, unused))

/* One lane type from the names of its five operations. P is the pointer type of load and store. */
#define LW_MINPLUS_TYPE(T, C, VECTOR, BYTES, P, LOAD, STORE, SET1, ADD, MIN)                                 \
    typedef VECTOR lw_##T##v;                                                                                \
    enum { LW_##T##v_LANES = BYTES / sizeof(C) };                                                            \
    LW_MINPLUS lw_##T##v lw_##T##v_load(const C *p)                                                          \
    {                                                                                                        \
        return LOAD((const P *)p);                                                                           \
    }                                                                                                        \
    LW_MINPLUS void lw_##T##v_store(C *p, lw_##T##v v)                                                       \
    {                                                                                                        \
        STORE((P *)p, v);                                                                                    \
    }                                                                                                        \
    LW_MINPLUS lw_##T##v lw_##T##v_set1(C x)                                                                 \
    {                                                                                                        \
        return SET1(x);                                                                                      \
    }                                                                                                        \
    LW_MINPLUS lw_##T##v lw_##T##v_add(lw_##T##v a, lw_##T##v b)                                             \
    {                                                                                                        \
        return ADD(a, b);                                                                                    \
    }                                                                                                        \
    LW_MINPLUS lw_##T##v lw_##T##v_min(lw_##T##v a, lw_##T##v b)                                             \
    {                                                                                                        \
        return MIN(a, b);                                                                                    \
    }

#if defined(LW_ISA_avx512bw)

enum { LW_MINPLUS_VECTORS = 2 };
#define LW_SET16(x) _mm512_set1_epi16((short)(x))
LW_MINPLUS_TYPE(u16, uint16_t, __m512i, 64, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, LW_SET16,
                _mm512_add_epi16, _mm512_min_epu16)
LW_MINPLUS_TYPE(s32, int32_t, __m512i, 64, __m512i, _mm512_loadu_si512, _mm512_storeu_si512,
                _mm512_set1_epi32, _mm512_add_epi32, _mm512_min_epi32)
LW_MINPLUS_TYPE(s64, int64_t, __m512i, 64, __m512i, _mm512_loadu_si512, _mm512_storeu_si512,
                _mm512_set1_epi64, _mm512_add_epi64, _mm512_min_epi64)
LW_MINPLUS_TYPE(f32, float, __m512, 64, float, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps,
                _mm512_add_ps, _mm512_min_ps)
LW_MINPLUS_TYPE(f64, double, __m512d, 64, double, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd,
                _mm512_add_pd, _mm512_min_pd)

#elif defined(LW_ISA_avx2)

enum { LW_MINPLUS_VECTORS = 2 };
/* a * 1 + b, rounded once, is a + b. AMD's processors add and take minima on the same two pipes, but have two
 * more for products: 4.7 instead of 3.0 vectors a nanosecond (Zen 3, 3 GHz, six rows of two). Intel's do both
 * on the same pipes either way. */
LW_MINPLUS __m256 lw_add_ps(__m256 a, __m256 b)
{
    return _mm256_fmadd_ps(a, _mm256_set1_ps(1), b);
}
LW_MINPLUS __m256d lw_add_pd(__m256d a, __m256d b)
{
    return _mm256_fmadd_pd(a, _mm256_set1_pd(1), b);
}
#define LW_SET16(x) _mm256_set1_epi16((short)(x))
LW_MINPLUS __m256i lw_min_epi64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}
LW_MINPLUS_TYPE(u16, uint16_t, __m256i, 32, __m256i, _mm256_loadu_si256, _mm256_storeu_si256, LW_SET16,
                _mm256_add_epi16, _mm256_min_epu16)
LW_MINPLUS_TYPE(s32, int32_t, __m256i, 32, __m256i, _mm256_loadu_si256, _mm256_storeu_si256,
                _mm256_set1_epi32, _mm256_add_epi32, _mm256_min_epi32)
LW_MINPLUS_TYPE(s64, int64_t, __m256i, 32, __m256i, _mm256_loadu_si256, _mm256_storeu_si256,
                _mm256_set1_epi64x, _mm256_add_epi64, lw_min_epi64)
LW_MINPLUS_TYPE(f32, float, __m256, 32, float, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, lw_add_ps,
                _mm256_min_ps)
LW_MINPLUS_TYPE(f64, double, __m256d, 32, double, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd,
                lw_add_pd, _mm256_min_pd)

#elif defined(LW_ISA_sse41)

enum { LW_MINPLUS_VECTORS = 2 };
#define LW_SET16(x) _mm_set1_epi16((short)(x))
/* Lane by lane in general registers: SSE4.1 compares no 64-bit lanes. */
LW_MINPLUS __m128i lw_min_epi64(__m128i a, __m128i b)
{
    int64_t a0 = _mm_cvtsi128_si64(a), b0 = _mm_cvtsi128_si64(b);
    int64_t a1 = _mm_extract_epi64(a, 1), b1 = _mm_extract_epi64(b, 1);
    return _mm_set_epi64x(a1 < b1 ? a1 : b1, a0 < b0 ? a0 : b0);
}
LW_MINPLUS_TYPE(u16, uint16_t, __m128i, 16, __m128i, _mm_loadu_si128, _mm_storeu_si128, LW_SET16,
                _mm_add_epi16, _mm_min_epu16)
LW_MINPLUS_TYPE(s32, int32_t, __m128i, 16, __m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_set1_epi32,
                _mm_add_epi32, _mm_min_epi32)
LW_MINPLUS_TYPE(s64, int64_t, __m128i, 16, __m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_set1_epi64x,
                _mm_add_epi64, lw_min_epi64)
LW_MINPLUS_TYPE(f32, float, __m128, 16, float, _mm_loadu_ps, _mm_storeu_ps, _mm_set1_ps, _mm_add_ps,
                _mm_min_ps)
LW_MINPLUS_TYPE(f64, double, __m128d, 16, double, _mm_loadu_pd, _mm_storeu_pd, _mm_set1_pd, _mm_add_pd,
                _mm_min_pd)

#elif defined(LW_ISA_neon)

enum { LW_MINPLUS_VECTORS = 3 };
LW_MINPLUS int64x2_t lw_min_s64(int64x2_t a, int64x2_t b)
{
    return vbslq_s64(vcgtq_s64(a, b), b, a);
}
LW_MINPLUS_TYPE(u16, uint16_t, uint16x8_t, 16, uint16_t, vld1q_u16, vst1q_u16, vdupq_n_u16, vaddq_u16,
                vminq_u16)
LW_MINPLUS_TYPE(s32, int32_t, int32x4_t, 16, int32_t, vld1q_s32, vst1q_s32, vdupq_n_s32, vaddq_s32, vminq_s32)
LW_MINPLUS_TYPE(s64, int64_t, int64x2_t, 16, int64_t, vld1q_s64, vst1q_s64, vdupq_n_s64, vaddq_s64,
                lw_min_s64)
LW_MINPLUS_TYPE(f32, float, float32x4_t, 16, float, vld1q_f32, vst1q_f32, vdupq_n_f32, vaddq_f32, vminq_f32)
LW_MINPLUS_TYPE(f64, double, float64x2_t, 16, double, vld1q_f64, vst1q_f64, vdupq_n_f64, vaddq_f64, vminq_f64)

#else /* the compiler's generic vectors */

enum { LW_MINPLUS_VECTORS = 2 };
#define LW_MINPLUS_GENERIC(T, C, M)                                                                          \
    typedef C lw_##T##v __attribute__((vector_size(16)));                                                    \
    typedef M lw_##T##v_mask __attribute__((vector_size(16)));                                               \
    enum { LW_##T##v_LANES = 16 / sizeof(C) };                                                               \
    LW_MINPLUS lw_##T##v lw_##T##v_load(const C *p)                                                          \
    {                                                                                                        \
        lw_##T##v v;                                                                                         \
        memcpy(&v, p, sizeof v);                                                                             \
        return v;                                                                                            \
    }                                                                                                        \
    LW_MINPLUS void lw_##T##v_store(C *p, lw_##T##v v)                                                       \
    {                                                                                                        \
        memcpy(p, &v, sizeof v);                                                                             \
    }                                                                                                        \
    LW_MINPLUS lw_##T##v lw_##T##v_set1(C x)                                                                 \
    {                                                                                                        \
        lw_##T##v v;                                                                                         \
        for (int i = 0; i < LW_##T##v_LANES; i++)                                                            \
            v[i] = x;                                                                                        \
        return v;                                                                                            \
    }                                                                                                        \
    LW_MINPLUS lw_##T##v lw_##T##v_add(lw_##T##v a, lw_##T##v b)                                             \
    {                                                                                                        \
        return a + b;                                                                                        \
    }                                                                                                        \
    LW_MINPLUS lw_##T##v lw_##T##v_min(lw_##T##v a, lw_##T##v b)                                             \
    {                                                                                                        \
        lw_##T##v_mask below = (lw_##T##v_mask)(a < b);                                                      \
        return (lw_##T##v)(((lw_##T##v_mask)a & below) | ((lw_##T##v_mask)b & ~below));                      \
    }
LW_MINPLUS_GENERIC(u16, uint16_t, uint16_t)
LW_MINPLUS_GENERIC(s32, int32_t, int32_t)
LW_MINPLUS_GENERIC(s64, int64_t, int64_t)
LW_MINPLUS_GENERIC(f32, float, int32_t)
LW_MINPLUS_GENERIC(f64, double, int64_t)

#endif

enum {
    LW_u16v_AFRESH = 0,
    LW_s32v_AFRESH = 0,
    LW_s64v_AFRESH = 0,
#if defined(LW_ISA_avx2)
    LW_f32v_AFRESH = 1,
    LW_f64v_AFRESH = 1
#else
    LW_f32v_AFRESH = 0,
    LW_f64v_AFRESH = 0
#endif
};

#endif
