/* minplus.cuh - the step of a min-plus matrix product, c = min(c, a0 + b0, a1 + b1), in the forms that
 * different chips and number types like best, and the copy that feeds it.
 *
 * nvcc joins min(a + b, c) into one instruction wherever the target has one, in plain C too. An addition
 * written as a * one + b, with `one` a run-time 1, it cannot join: that goes to the multiply-add pipe. The
 * plain form needs it to time what chips without the joined instruction do; the DPX forms use it to give
 * both pipes work. */
#ifndef LW_MINPLUS_CUH
#define LW_MINPLUS_CUH

#include <stdint.h>
#include "common/dpx.cuh"
#include "common/shared.cuh"

/* How words are added and compared. A word holds one number, with LW_STEP_U16X2 two. */
enum {
    LW_STEP_S32,
    LW_STEP_U16X2,    /* sums must stay below 2^16 in each half */
    LW_STEP_F32_BITS, /* numbers >= 0 or infinite: those order as their bit patterns do */
    LW_STEP_S32_PLAIN,
    LW_STEP_F32,
    LW_STEP_S64,
    LW_STEP_F64
};

#ifdef __CUDACC__
#define LW_STEP_FN template <int STEP, bool SPLIT> static __device__ __forceinline__

/* SPLIT: where a form has the choice, two additions on one pipe and one three-way minimum on the other
 * instead of two joined add-mins. */
LW_STEP_FN int32_t lw_minplus2(int32_t c, int32_t a0, int32_t b0, int32_t a1, int32_t b1, int32_t one)
{
    if (STEP == LW_STEP_S32_PLAIN) {
        int32_t s0 = a0 * one + b0, s1 = a1 * one + b1;
        c = s0 < c ? s0 : c;
        return s1 < c ? s1 : c;
    }
    if (SPLIT)
        return lw_min3(a0 * one + b0, a1 * one + b1, c);
    return lw_addmin(a1, b1, lw_addmin(a0, b0, c));
}

LW_STEP_FN uint32_t lw_minplus2(uint32_t c, uint32_t a0, uint32_t b0, uint32_t a1, uint32_t b1, int32_t one)
{
    if (SPLIT) /* nothing is carried from half to half, see LW_STEP_U16X2 */
        return lw_min3u2(a0 * (uint32_t)one + b0, a1 * (uint32_t)one + b1, c);
    return lw_addminu2(a1, b1, lw_addminu2(a0, b0, c));
}

LW_STEP_FN float lw_minplus2(float c, float a0, float b0, float a1, float b1, int32_t one)
{
    if (STEP == LW_STEP_F32)
        return fminf(fminf(c, a0 + b0), a1 + b1);
    return __int_as_float(lw_min3(__float_as_int(a0 + b0), __float_as_int(a1 + b1), __float_as_int(c)));
}

LW_STEP_FN int64_t lw_minplus2(int64_t c, int64_t a0, int64_t b0, int64_t a1, int64_t b1, int32_t one)
{
    int64_t s0 = a0 + b0, s1 = a1 + b1;
    c = s0 < c ? s0 : c;
    return s1 < c ? s1 : c;
}

LW_STEP_FN double lw_minplus2(double c, double a0, double b0, double a1, double b1, int32_t one)
{
    double s0 = a0 + b0, s1 = a1 + b1;
    c = s0 < c ? s0 : c;
    return s1 < c ? s1 : c;
}

/* The same value, of which the compiler knows nothing: what was computed from it before is computed anew
 * instead of being kept in registers over a long loop. */
static __device__ __forceinline__ int64_t lw_forget(int64_t value)
{
    asm volatile("" : "+l"(value));
    return value;
}
#endif /* __CUDACC__ */
#endif
