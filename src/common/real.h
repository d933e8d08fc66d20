/* real.h - functions of floats whose last bit is the same on every processor.
 *
 * glibc computes expf, logf, powf, sinf and cosf in double; the other functions of floats are polynomials in
 * float whose last bits depend on whether the C library's compiler fused products and sums, as it does for
 * ARM and not for x86-64: of 400,000 numbers within 8, erff differs for 2,553, log1pf for 191, tanhf for 44
 * (by up to 3 units in the last place). The doubles differ too, but such a difference survives the rounding
 * to float about once in 10^8 numbers. */
#ifndef LW_REAL_H
#define LW_REAL_H

#include <math.h>

static inline float lw_tanh(float x)
{
    return (float)tanh((double)x);
}
static inline float lw_erf(float x)
{
    return (float)erf((double)x);
}
static inline float lw_log1p(float x)
{
    return (float)log1p((double)x);
}
static inline float lw_expm1(float x)
{
    return (float)expm1((double)x);
}

#endif
