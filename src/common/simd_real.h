/* simd_real.h - vectors of float32 lanes, on top of simd.h: the compiler's own vector types, so that +, - and
 * * are operators and round each by themselves (-ffp-contract=off).
 *
 *   lw_real_vec, LW_REAL_LANES
 *   lw_real_load, lw_real_store   not aligned
 *   lw_real_set1 */
#ifndef LW_SIMD_REAL_H
#define LW_SIMD_REAL_H

#include "common/simd.h"

typedef float lw_real_vec __attribute__((vector_size(LW_VEC_BYTES)));
enum { LW_REAL_LANES = LW_VEC_BYTES / 4 };

LW_SIMD lw_real_vec lw_real_load(const float *p)
{
    lw_real_vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
LW_SIMD void lw_real_store(float *p, lw_real_vec v)
{
    memcpy(p, &v, sizeof v);
}
LW_SIMD lw_real_vec lw_real_set1(float x)
{
    return x - (lw_real_vec){0}; /* a scalar operand goes to every lane; x - 0 is x, also for -0 */
}

#endif
