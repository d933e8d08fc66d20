/* numerics.cuh - the probe of numerics.h; each build of it shows that build's options. */
#ifndef LW_NUMERICS_CUH
#define LW_NUMERICS_CUH

#include <math.h>
#include "common/numerics.h"
#include "common/warp.cuh"

/* One thread. in: LW_PROBE_INPUTS, out: LW_PROBE_OUTPUTS. */
LW_DEVICE void lw_numerics_probe(const float *in, float *out)
{
    out[0] = in[0] * in[0] + in[1];
    out[1] = in[2] * 0.25f;
    for (int i = 0; i < LW_PROBES; i++) {
        out[2 + i] = in[3 + i] / in[3 + LW_PROBES + i];
        out[2 + LW_PROBES + i] = sqrtf(in[3 + i]);
    }
}

#endif
