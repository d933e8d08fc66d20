/* numerics.c - input of the probe and its judgement. */
#include "common/numerics.h"

#include <math.h>
#include <stdio.h>

void lw_numerics_input(float *in)
{
    uint32_t state = 1;
    in[0] = 1 + 0x1p-12f;  /* its square is 1 + 2^-11 + 2^-24, which rounds to 1 + 2^-11 */
    in[1] = -1 - 0x1p-11f; /* so a fused sum is 2^-24 and one of two roundings 0 */
    in[2] = 0x1p-126f;     /* a quarter of it is subnormal */
    for (int i = 0; i < 2 * LW_PROBES; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes' quick generator */
        in[3 + i] = 1 + (float)(state >> 8) * 0x1p-20f;
    }
}

lw_numerics lw_numerics_judge(const float *in, const float *out)
{
    lw_numerics n = {
        .fused = out[0] != 0, .flushes = out[1] == 0, .exact_division = true, .exact_root = true};
    for (int i = 0; i < LW_PROBES; i++) {
        /* quotients and roots of floats, rounded to double and then to float, are the nearest floats: double
         * has more than twice the digits */
        float quotient = (float)((double)in[3 + i] / (double)in[3 + LW_PROBES + i]);
        float root = (float)sqrt((double)in[3 + i]);
        n.exact_division = n.exact_division && out[2 + i] == quotient;
        n.exact_root = n.exact_root && out[2 + LW_PROBES + i] == root;
    }
    return n;
}

void lw_numerics_text(const lw_numerics *n, char *text, size_t size)
{
    snprintf(text, size, "products and sums %s, subnormals %s, division %s, roots %s",
             n->fused ? "fused" : "rounded apart", n->flushes ? "flushed to zero" : "kept",
             n->exact_division ? "exact" : "approximate", n->exact_root ? "exact" : "approximate");
}
