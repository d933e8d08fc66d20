/* The judge of the numeric probe, with what each compiler option would make of it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "common/numerics.h"

/* The probe on the host, as a build with these options would compute it. */
static void probe(const float *in, float *out, lw_numerics as)
{
    volatile float product = in[0] * in[0];
    out[0] = as.fused ? fmaf(in[0], in[0], in[1]) : product + in[1];
    out[1] = as.flushes ? 0 : in[2] * 0.25f;
    for (int i = 0; i < LW_PROBES; i++) {
        float quotient = in[3 + i] / in[3 + LW_PROBES + i], root = sqrtf(in[3 + i]);
        out[2 + i] = as.exact_division || i != 5 ? quotient : nextafterf(quotient, 10);
        out[2 + LW_PROBES + i] = as.exact_root || i != 7 ? root : nextafterf(root, 0);
    }
}

Test(numerics, every_combination_is_told)
{
    for (int bits = 0; bits < 16; bits++) {
        float in[LW_PROBE_INPUTS], out[LW_PROBE_OUTPUTS];
        lw_numerics as = {bits & 1, bits & 2, bits & 4, bits & 8};
        lw_numerics_input(in);
        probe(in, out, as);
        lw_numerics got = lw_numerics_judge(in, out);
        cr_assert(got.fused == as.fused && got.flushes == as.flushes &&
                      got.exact_division == as.exact_division && got.exact_root == as.exact_root,
                  "combination %d", bits);
    }
}

Test(numerics, text)
{
    char text[128];
    lw_numerics_text(&(lw_numerics){true, false, true, false}, text, sizeof text);
    cr_assert_str_eq(text, "products and sums fused, subnormals kept, division exact, roots approximate");
}
