/* lab_build.cu - compiled four times with different options (LAB_BUILD names the build, LAB_OPTIONS the
 * options): what -ftz, -fmad and -use_fast_math do to the same lines. */
#include "lab.h"

#include <math.h>

#include "common/numerics.cuh"
#include "common/warp.cuh"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/* names of their own for each build's kernels, so that their machine code can be told apart */
#define SOFTMAX JOIN(softmax, LAB_BUILD)
#define RESIDUAL JOIN(residual, LAB_BUILD)
#define CENSUS JOIN(census, LAB_BUILD)
#define PROBE JOIN(probe, LAB_BUILD)

enum { EXACT, FAST, RECIPROCAL };

template <int E> static __device__ __forceinline__ float exponential(float x)
{
    return E == FAST ? __expf(x) : expf(x);
}

/* One warp a row, 32 columns a lane in registers: read once, written once. Further rounds start from what
 * the round before left, as a compute-bound kernel would. */
template <int E, int D> static __global__ void __launch_bounds__(256) SOFTMAX(lab_args p)
{
    uint32_t row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= p.n)
        return;
    const float4 *in = (const float4 *)p.in + (size_t)row * (LAB_ROW / 4) + lane;
    float4 *out = (float4 *)p.out + (size_t)row * (LAB_ROW / 4) + lane;
    float x[32];
    for (int k = 0; k < 8; k++) {
        float4 v = in[k * 32];
        x[4 * k] = v.x, x[4 * k + 1] = v.y, x[4 * k + 2] = v.z, x[4 * k + 3] = v.w;
    }
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        float most = x[0], sum = 0;
        for (int k = 1; k < 32; k++)
            most = fmaxf(most, x[k]);
        most = lw_reduce_fmax_xor(LW_ALL_LANES, most, 32);
        for (int k = 0; k < 32; k++) {
            x[k] = exponential<E>(x[k] - most);
            sum += x[k];
        }
        sum = lw_reduce_fadd_xor(LW_ALL_LANES, sum, 32);
        float reciprocal = 1 / sum;
        for (int k = 0; k < 32; k++)
            x[k] = D == EXACT ? x[k] / sum : D == FAST ? __fdividef(x[k], sum) : x[k] * reciprocal;
    }
    for (int k = 0; k < 8; k++)
        out[k * 32] = make_float4(x[4 * k], x[4 * k + 1], x[4 * k + 2], x[4 * k + 3]);
}

static __global__ void RESIDUAL(lab_args p)
{
    float x = ((const float *)p.in)[threadIdx.x], y = ((const float *)p.in2)[threadIdx.x];
    ((float *)p.out)[threadIdx.x] = x * x + y;
}

static __global__ void CENSUS(lab_args p)
{
    ((float *)p.out)[threadIdx.x] = expf(((const float *)p.in)[threadIdx.x]);
}

static __global__ void PROBE(lab_args p)
{
    lw_numerics_probe((const float *)p.in, (float *)p.out);
}

extern const lab_build JOIN(lab_build, LAB_BUILD) = {
    LAB_OPTIONS,
    {(const void *)SOFTMAX<EXACT, EXACT>, (const void *)SOFTMAX<EXACT, FAST>,
     (const void *)SOFTMAX<FAST, EXACT>, (const void *)SOFTMAX<FAST, FAST>,
     (const void *)SOFTMAX<FAST, RECIPROCAL>},
    (const void *)RESIDUAL,
    (const void *)CENSUS,
    (const void *)PROBE,
};
