/* lab_float.cu - float techniques: chains of additions, the fast functions, single against double. */
#include "lab.h"

#include <math.h>
#include <string.h>

#define VARIANTS(list) list, (int)(sizeof list / sizeof *list)

static uint32_t bits_of(float f)
{
    uint32_t x;
    memcpy(&x, &f, 4);
    return x;
}

/* --- independent accumulators ------------------------------------------------------------------------- */

/* 64 additions a round; the sums are whole numbers below 2^24, so every order gives the same one. */
template <int N> static __global__ void accumulators(lab_args p)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = (float)(((const uint32_t *)p.in)[threadIdx.x] & 3), sum[N] = {};
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int k = 0; k < 64; k++)
            sum[k % N] += value;
    for (int k = 1; k < N; k++)
        sum[0] += sum[k];
    ((float *)p.out)[i] = sum[0];
}

static void accumulators_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t i = 0; i < 128; i++)
        out[i] = bits_of((float)(((const uint32_t *)args->in)[i] & 3) * 64 * (float)args->rounds);
}

static const lab_variant accumulators_variants[] = {
    {"1", (const void *)accumulators<1>, 128, "FADD"},
    {"2", (const void *)accumulators<2>, 128, "FADD"},
    {"4", (const void *)accumulators<4>, 128, "FADD"},
    {"8", (const void *)accumulators<8>, 128, "FADD"},
};

/* --- loop unrolling --------------------------------------------------------------------------------- */

enum { UNROLL_LENGTH = 64 };
template <int N> static __global__ void unrolled(lab_args p)
{
    __shared__ float value[UNROLL_LENGTH * 128];
    uint32_t i = blockIdx.x * 128 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < UNROLL_LENGTH; k++)
        value[k * 128 + threadIdx.x] = (float)(((const uint32_t *)p.in)[k * 128 + threadIdx.x] & 3);
    __syncthreads();
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll N
        for (int k = 0; k < UNROLL_LENGTH; k++)
            sum += value[k * 128 + threadIdx.x];
    ((float *)p.out)[i] = sum;
}

static void unrolled_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t i = 0; i < 128; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < UNROLL_LENGTH; k++)
            sum += ((const uint32_t *)args->in)[k * 128 + i] & 3;
        out[i] = bits_of((float)(sum * args->rounds));
    }
}

static const lab_variant unrolled_variants[] = {
    {"1", (const void *)unrolled<1>, 128, "LDS"},
    {"2", (const void *)unrolled<2>, 128, "LDS"},
    {"4", (const void *)unrolled<4>, 128, "LDS"},
    {"8", (const void *)unrolled<8>, 128, "LDS"},
    {"full", (const void *)unrolled<UNROLL_LENGTH>, 128, "LDS"},
};

/* --- the fast functions ----------------------------------------------------------------------------- */

enum { DIVIDE, EXP, LOG, SIN, RSQRT };

template <int F, bool FAST_ONE> static __device__ __forceinline__ float function(float x)
{
    switch (F) {
    case DIVIDE: /* of a number that is no power of two */
        return FAST_ONE ? __fdividef(1.7f, x) : 1.7f / x;
    case EXP:
        return FAST_ONE ? __expf(x) : expf(x);
    case LOG:
        return FAST_ONE ? __logf(x) : logf(x);
    case SIN:
        return FAST_ONE ? __sinf(x) : sinf(x);
    default:
        return FAST_ONE ? rsqrtf(x) : 1 / sqrtf(x);
    }
}

/* Eight numbers a thread, each round on arguments of its own: x + r / 1024, x in 1 .. 2. */
template <int F, bool FAST_ONE> static __global__ void functions(lab_args p)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 1 + (float)(((const uint32_t *)p.in)[threadIdx.x] >> 8) * 0x1p-24f, sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        float at = x + (float)(r % 1024) * 0x1p-10f;
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum += function<F, FAST_ONE>(at + (float)k);
    }
    ((float *)p.out)[i] = sum;
}

static double exact(uint32_t f, double x)
{
    return f == DIVIDE ? (double)1.7f / x
           : f == EXP  ? exp(x)
           : f == LOG  ? log(x)
           : f == SIN  ? sin(x)
                       : 1 / sqrt(x);
}

static void functions_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    for (uint32_t i = 0; i < 256; i++) {
        float x = 1 + (float)(((const uint32_t *)args->in)[i] >> 8) * 0x1p-24f;
        double sum = 0;
        for (uint32_t r = 0; r < args->rounds; r++)
            for (int k = 0; k < 8; k++)
                sum += exact(v->a, (double)(x + (float)r * 0x1p-10f + (float)k));
        out[i] = bits_of((float)sum);
    }
}

#define TWO(name, precise, fast, f)                                                                          \
    static const lab_variant name[] = {                                                                      \
        {precise, (const void *)functions<f, false>, 256, NULL, 0, false, f},                                \
        {fast, (const void *)functions<f, true>, 256, "MUFU", 0, false, f},                                  \
    }
TWO(divide_variants, "/", "__fdividef", DIVIDE);
TWO(exp_variants, "expf", "__expf", EXP);
TWO(log_variants, "logf", "__logf", LOG);
TWO(sin_variants, "sinf", "__sinf", SIN);
TWO(rsqrt_variants, "1 / sqrtf", "rsqrtf", RSQRT);

/* The greatest error in units in the last place of the nearest float, over n arguments from low to high:
 * evenly spread, or for logarithms and roots evenly over the bit patterns. */
template <int F, bool FAST_ONE> static __global__ void errors(lab_args p)
{
    float worst = 0, most = 0, low = __uint_as_float(p.a), high = __uint_as_float(p.b);
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += gridDim.x * blockDim.x) {
        double part = (double)i / p.n;
        float x = F == LOG || F == RSQRT ? __uint_as_float(p.a + (uint32_t)(part * (p.b - p.a)))
                                         : (float)(low + part * ((double)high - low));
        double want = F == DIVIDE ? (double)1.7f / x
                      : F == EXP  ? exp((double)x)
                      : F == LOG  ? log((double)x)
                      : F == SIN  ? sin((double)x)
                                  : 1 / sqrt((double)x);
        float nearest = (float)want;
        /* distance of neighbouring floats there; subnormal numbers have that of the least normal one */
        uint32_t exponent = __float_as_uint(nearest) >> 23 & 255;
        double ulp = ldexp(1.0, (int)(exponent ? exponent : 1) - 150);
        double error = fabs((double)function<F, FAST_ONE>(x) - want);
        worst = fmaxf(worst, (float)(error / ulp));
        most = fmaxf(most, (float)error);
    }
    atomicMax((unsigned *)p.out, __float_as_uint(worst));
    atomicMax((unsigned *)p.out + 1,
              __float_as_uint(most)); /* of floats >= 0 the patterns order as they do */
}

#define FUNCTION(name, fast, precise, range, low, high, f)                                                   \
    {                                                                                                        \
        name, fast, precise, range, low, high,                                                               \
        {                                                                                                    \
            (const void *)errors<f, true>, (const void *)errors<f, false>                                    \
        }                                                                                                    \
    }
extern const lab_function lab_functions[LAB_FUNCTIONS] = {
    FUNCTION("division", "__fdividef(1.7, x)", "1.7 / x", "x = 1 to 1000", 1, 1000, DIVIDE),
    FUNCTION("exp", "__expf", "expf", "-87 to 88", -87, 88, EXP),
    FUNCTION("log", "__logf", "logf", "0.01 to 100 by bit patterns", 0.01f, 100, LOG),
    FUNCTION("sin", "__sinf", "sinf", "-3.14159 to 3.14159", -3.14159f, 3.14159f, SIN),
    FUNCTION("reciprocal root", "rsqrtf", "1 / sqrtf", "1e-30 to 1e30 by bit patterns", 1e-30f, 1e30f, RSQRT),
};

/* --- single against double precision ---------------------------------------------------------------- */

/* Horner's scheme with four polynomials a thread, 16 steps a round; coefficients keep everything between 0
 * and 2. */
template <typename T> static __global__ void horner(lab_args p)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    T x = (T)0.5 + (T)(((const uint32_t *)p.in)[threadIdx.x] & 255) / (T)1024, sum[4] = {0, 1, 2, 3};
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < 4; j++)
                sum[j] = sum[j] * x + (T)0.25;
    ((float *)p.out)[i] = (float)(sum[0] + sum[1] + sum[2] + sum[3]);
}

static void horner_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t i = 0; i < 256; i++) {
        double x = 0.5 + (((const uint32_t *)args->in)[i] & 255) / 1024.0, total = 0;
        for (int j = 0; j < 4; j++) {
            double sum = j;
            for (uint32_t r = 0; r < args->rounds * 16; r++)
                sum = sum * x + 0.25;
            total += sum;
        }
        out[i] = bits_of((float)total);
    }
}

static const lab_variant horner_variants[] = {
    {"double", (const void *)horner<double>, 256, "DFMA"},
    {"single", (const void *)horner<float>, 256, "FFMA"},
};

#define FUNCTION_ROW(title, where, variants)                                                                 \
    {                                                                                                        \
        title, "256 threads, 8 blocks a multiprocessor", "calls", where, 256 * 4, 0, 1 << 22, 0, 1000, 3, 0, \
            8, 8, false, 256, 2e-5, NULL, functions_reference, VARIANTS(variants)                            \
    }

static const lab_technique techniques[] = {
    {"independent accumulators", "128 threads a multiprocessor, 64 additions a round", "additions",
     "src/paths/paths_kernels.cuh: 64 sums a thread; src/align/search_kernels.cuh: 32 columns a lane",
     128 * 4, 0, 1 << 20, 0, 2000, 3, 0, 1, 64, false, 128, 0, NULL, accumulators_reference,
     VARIANTS(accumulators_variants)},
    {"unrolling", "128 threads a multiprocessor, sums of 64 words", "additions",
     "src/paths/paths_kernels.cuh, src/align/search_kernels.cuh: four rows a step", UNROLL_LENGTH * 128 * 4,
     0, 1 << 20, 0, 1000, 3, 0, 1, UNROLL_LENGTH, false, 128, 0, NULL, unrolled_reference,
     VARIANTS(unrolled_variants)},
    FUNCTION_ROW("float division", "src/infer/infer_cuda_rows.cu: one reciprocal a row", divide_variants),
    FUNCTION_ROW("exponential", "src/infer/infer_cuda_rows.cu: __expf after the maximum is subtracted",
                 exp_variants),
    FUNCTION_ROW("logarithm", "src/infer/infer_cuda_elements.cu: logf", log_variants),
    FUNCTION_ROW("sine", NOT_USED, sin_variants),
    FUNCTION_ROW("reciprocal square root", "src/infer/infer_cuda_rows.cu: 1 / sqrtf, once a row",
                 rsqrt_variants),
    {"single and double precision", "256 threads, 8 blocks a multiprocessor, Horner's scheme", "FMAs",
     "src/paths: f32 beside f64", 256 * 4, 0, 1 << 22, 0, 500, 3, 0, 8, 64, false, 256, 2e-6, NULL,
     horner_reference, VARIANTS(horner_variants)},
};
extern const lab_list lab_float = {techniques, (int)(sizeof techniques / sizeof *techniques)};
extern const char *const lab_softmax_names[LAB_SOFTMAX_WAYS] = {"expf /", "expf __fdividef", "__expf /",
                                                                "__expf __fdividef", "__expf reciprocal"};
