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
#include <stdint.h>
#include <string.h>

#include "common/hd.h"

/* erf(x) / x as a polynomial in t = x^2 / 7.875 - 1, from its Chebyshev series over [-1, 1]: relative error
 * 7e-15, so that nearly every result is the correctly rounded one (all but about one in 10^7). Beyond
 * 3.96, where t ends, erf rounds to 1. No branches and no calls, so that loops over it become vectors; even
 * and odd powers apart, so that two chains run at a time. */
static inline float lw_erf(float x)
{
    double v = x > 3.96f ? 3.96f : x < -3.96f ? -3.96f : x; /* NaN stays */
    double t = v * v * (1 / 7.875) - 1, s = t * t;
    double even = 1.1391042001887027e-07;
    even = even * s + 5.0801604670683038e-07;
    even = even * s + 5.8985537587599943e-06;
    even = even * s + 4.0131180231899371e-05;
    even = even * s + 0.00024012914673363962;
    even = even * s + 0.0011587069247753442;
    even = even * s + 0.0044760196321168826;
    even = even * s + 0.013591666529492299;
    even = even * s + 0.032077265781694821;
    even = even * s + 0.059253887727357658;
    even = even * s + 0.090395191106697997;
    even = even * s + 0.13261565733130315;
    even = even * s + 0.35632256286415814;
    double odd = -3.7542305793195995e-07;
    odd = odd * s + -1.4777335348302525e-06;
    odd = odd * s + -1.6254283120416726e-05;
    odd = odd * s + -0.00010008902173531083;
    odd = odd * s + -0.000542197407565698;
    odd = odd * s + -0.0023443372768609484;
    odd = odd * s + -0.0080455579602410187;
    odd = odd * s + -0.021553444803434685;
    odd = odd * s + -0.044872338507985755;
    odd = odd * s + -0.074482186310958279;
    odd = odd * s + -0.10829635302863255;
    odd = odd * s + -0.17794681663359549;
    return (float)(v * (even + t * odd));
}
/* e^x for x <= 700, relative error 1e-14, less than 1e-300 below -700: 2^k times the Taylor series of the
 * rest, |rest| <= ln 2 / 2. Adding 1.5 * 2^52 rounds to an integer, whose low bits are k. No branches and no
 * calls either. */
LW_HD double lw_exp(double x)
{
    double v = x < -700 ? -700 : x; /* NaN stays */
    double t = v * 1.4426950408889634 + 0x1.8p52, k = t - 0x1.8p52;
    double r =
        v - k * 0x1.62e42feep-1 - k * 0x1.a39ef35793c76p-33; /* ln 2 in two parts, the first of 32 bits */
    double s = r * r;
    double even = 1.0 / 3628800, odd = 1.0 / 39916800;
    even = even * s + 1.0 / 40320;
    odd = odd * s + 1.0 / 362880;
    even = even * s + 1.0 / 720;
    odd = odd * s + 1.0 / 5040;
    even = even * s + 1.0 / 24;
    odd = odd * s + 1.0 / 120;
    even = even * s + 1.0 / 2;
    odd = odd * s + 1.0 / 6;
    even = even * s + 1;
    odd = odd * s + 1;
    uint64_t bits;
    double scale;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits << 52) + (UINT64_C(1023) << 52);
    memcpy(&scale, &bits, sizeof scale);
    return (even + r * odd) * scale;
}

/* By e^(-2 |x|), whose difference from 1 has a relative error of 4e-14 from 1/8 on; by the series below,
 * where what is left out is 5e-14. So nearly every result is the correctly rounded one, as of tanh in double.
 * The device computes the same, in two roundings (--fmad=false). */
LW_HD float lw_tanh(float x)
{
    double v = x, a = fabs(v), s = v * v;
    if (a < 0.125) {
        double t = -1382.0 / 155925;
        t = t * s + 62.0 / 2835;
        t = t * s + -17.0 / 315;
        t = t * s + 2.0 / 15;
        t = t * s + -1.0 / 3;
        return (float)copysign(a + a * (s * t), v);
    }
    double e = lw_exp(-2 * a); /* NaN stays */
    return (float)copysign((1 - e) / (1 + e), v);
}

/* 1 / (1 + e^-x), each step rounded to float; e^88.7 still is one. */
LW_HD float lw_sigmoid(float x)
{
    double v = -(double)x;
    return 1 / (1 + (float)lw_exp(v > 88.7 ? 88.7 : v));
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
