/* lab_integer.cu - integer techniques: dot products of bytes, minimum of sums, alignment cells, division,
 * wide numbers, bits. */
#include "lab.h"

#include <string.h>
#include <cuda_fp16.h>

#include "common/dp4a.cuh"
#include "common/dpx.cuh"
#include "common/pow2.h"

#define VARIANTS(list) list, (int)(sizeof list / sizeof *list)

/* --- dot products of signed bytes --------------------------------------------------------------------- */

enum { PLAIN, APART, DP2A, DP4A };

/* Byte i, by an instruction that the compiler does not recognise as part of a dot product. */
static __device__ __forceinline__ int byte_apart(uint32_t word, int i)
{
    int r;
    asm volatile("bfe.s32 %0, %1, %2, 8;" : "=r"(r) : "r"(word), "r"(8 * i));
    return r;
}

template <int HOW> static __device__ __forceinline__ int dot(uint32_t a, uint32_t b, int sum)
{
    if constexpr (HOW == DP4A)
        return __dp4a((int)a, (int)b, sum);
    else if constexpr (HOW == DP2A) { /* of bytes: two of a widened at a time */
        uint32_t low,
            high; /* prmt, unlike __byte_perm, copies a byte's sign where a selector's top bit says so */
        asm("prmt.b32 %0, %1, 0, 0x9180;" : "=r"(low) : "r"(a));
        asm("prmt.b32 %0, %1, 0, 0xb3a2;" : "=r"(high) : "r"(a));
        return __dp2a_hi((int)high, (int)b, __dp2a_lo((int)low, (int)b, sum));
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum += HOW == PLAIN ? (int)(int8_t)(a >> (8 * i)) * (int8_t)(b >> (8 * i))
                                : byte_apart(a, i) * byte_apart(b, i);
        return sum;
    }
}

/* Eight weights a thread against one word of activations that changes every round; CHAINS sums. */
template <int HOW, int CHAINS> static __global__ void dots(lab_args p)
{
    const uint32_t *in = (const uint32_t *)p.in + threadIdx.x;
    uint32_t weight[8], activation = in[8 * 256];
    int sum[CHAINS] = {};
    for (int k = 0; k < 8; k++)
        weight[k] = in[k * 256];
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        activation = activation * 5 + 1;
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum[k % CHAINS] = dot<HOW>(activation, weight[k], sum[k % CHAINS]);
    }
    for (int k = 1; k < CHAINS; k++)
        sum[0] += sum[k];
    ((int *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = sum[0];
}

/* Each word says where the next one is: the load is waited for every time. */
template <int HOW> static __global__ void dots_waiting(lab_args p)
{
    const uint32_t *in = (const uint32_t *)p.in;
    uint32_t at = threadIdx.x, weight = in[threadIdx.x];
    int sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds * 8; r++) {
        uint32_t word = in[at];
        sum = dot<HOW>(word, weight, sum);
        at = word >> 12;
    }
    ((int *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

enum { ROWS = 32, SEPARATE = DP4A + 1, BYTES };

/* Byte I and copies of its sign, by one instruction; the compiler makes two of some bytes. It does not see
 * that this is part of a dot product either. */
template <int I> static __device__ __forceinline__ int byte_signed(uint32_t word)
{
    int r;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(r) : "r"(word), "n"(0x8880 + 0x1111 * I));
    return r;
}

static __device__ __forceinline__ int dot_separate(uint32_t a, uint32_t b, int sum)
{
    sum += byte_signed<0>(a) * byte_signed<0>(b);
    sum += byte_signed<1>(a) * byte_signed<1>(b);
    sum += byte_signed<2>(a) * byte_signed<2>(b);
    return sum + byte_signed<3>(a) * byte_signed<3>(b);
}

/* One word at a time from shared memory, where each word says in which of ROWS rows the chain's next one is,
 * so that a chain waits for every load. A thread reads its own column: no bank conflict. Eight words a round,
 * whatever the number of chains. BYTES loads each byte by itself, sign and all, as a loop over int8_t does.
 */
template <int HOW, int CHAINS> static __global__ void __launch_bounds__(256) dots_chained(lab_args p)
{
    __shared__ uint32_t words[ROWS * 256];
    const uint32_t *in = (const uint32_t *)p.in + threadIdx.x;
    for (int k = 0; k < ROWS; k++)
        words[k * 256 + threadIdx.x] = in[k * 256];
    const uint32_t weight = in[ROWS * 256], column = threadIdx.x * 4;
    uint32_t at[CHAINS];
    int sum[CHAINS] = {};
    for (int k = 0; k < CHAINS; k++)
        at[k] = (uint32_t)k * 1024 | column;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int step = 0; step < 8 / CHAINS; step++)
#pragma unroll
            for (int k = 0; k < CHAINS; k++) {
                const char *here = (const char *)words + at[k];
                if (HOW == BYTES) {
                    int byte[4];
                    for (int i = 0; i < 4; i++) {
                        byte[i] = *(const volatile int8_t *)(here + i);
                        asm("" : "+r"(byte[i])); /* else the compiler makes a word of them, for IDP.4A */
                        sum[k] += byte[i] * (int)(int8_t)(weight >> (8 * i));
                    }
                    at[k] = (uint32_t)(byte[1] & 0x7c) << 8 | column;
                } else {
                    uint32_t word = *(const uint32_t *)here;
                    sum[k] =
                        HOW == SEPARATE ? dot_separate(word, weight, sum[k]) : dot<HOW>(word, weight, sum[k]);
                    at[k] = (word & 0x7c00) | column;
                }
            }
    for (int k = 1; k < CHAINS; k++)
        sum[0] += sum[k];
    ((int *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = sum[0];
}

static void dots_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    const uint32_t *in = (const uint32_t *)args->in;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t activation = in[8 * 256 + i];
        for (uint32_t r = 0; r < args->rounds; r++) {
            activation = activation * 5 + 1;
            for (int k = 0; k < 8; k++)
                out[i] = (uint32_t)lw_dp4a_ss_portable(activation, in[k * 256 + i], (int)out[i]);
        }
    }
}

static void dots_waiting_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    const uint32_t *in = (const uint32_t *)args->in;
    for (uint32_t i = 0; i < 256; i++)
        for (uint32_t r = 0, at = i; r < args->rounds * 8; r++) {
            out[i] = (uint32_t)lw_dp4a_ss_portable(in[at], in[i], (int)out[i]);
            at = in[at] >> 12;
        }
}

static void dots_chained_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    const uint32_t *in = (const uint32_t *)args->in;
    for (uint32_t i = 0; i < 256; i++)
        for (uint32_t k = 0; k < v->a; k++)
            for (uint32_t r = 0, row = k; r < args->rounds * 8 / v->a; r++) {
                uint32_t word = in[row * 256 + i];
                out[i] = (uint32_t)lw_dp4a_ss_portable(word, in[ROWS * 256 + i], (int)out[i]);
                row = word >> 10 & (ROWS - 1);
            }
}

#define CHAINED(name, how, chains, opcode)                                                                   \
    {                                                                                                        \
        name, (const void *)dots_chained<how, chains>, 256, opcode, 0, false, chains                         \
    }
static const lab_variant chained1_variants[] = {
    CHAINED("bytes loaded one by one", BYTES, 1, "LDS"),
    CHAINED("bytes taken apart", SEPARATE, 1, "LDS"),
    CHAINED("dp4a", DP4A, 1, "IDP.4A"),
};
static const lab_variant chained2_variants[] = {
    CHAINED("bytes taken apart", SEPARATE, 2, "LDS"),
    CHAINED("dp4a", DP4A, 2, "IDP.4A"),
};
static const lab_variant chained4_variants[] = {
    CHAINED("bytes taken apart", SEPARATE, 4, "LDS"),
    CHAINED("dp4a", DP4A, 4, "IDP.4A"),
};
static const lab_variant chained8_variants[] = {
    CHAINED("bytes loaded one by one", BYTES, 8, "LDS"),
    CHAINED("bytes taken apart", SEPARATE, 8, "LDS"),
    CHAINED("plain C", PLAIN, 8, "LDS"),
    CHAINED("dp4a", DP4A, 8, "IDP.4A"),
};

static const lab_variant dots_variants[] = {
    {"plain C, 1 chain", (const void *)dots<PLAIN, 1>, 256},
    {"bytes apart, 1 chain", (const void *)dots<APART, 1>, 256},
    {"bytes apart, 4 chains", (const void *)dots<APART, 4>, 256},
    {"dp2a, 4 chains", (const void *)dots<DP2A, 4>, 256, "IDP.2A"},
    {"dp4a, 1 chain", (const void *)dots<DP4A, 1>, 256, "IDP.4A"},
    {"dp4a, 4 chains", (const void *)dots<DP4A, 4>, 256, "IDP.4A"},
};
static const lab_variant dots_few_variants[] = {
    {"bytes apart, 1 chain", (const void *)dots<APART, 1>, 256},
    {"bytes apart, 4 chains", (const void *)dots<APART, 4>, 256},
    {"dp4a, 1 chain", (const void *)dots<DP4A, 1>, 256, "IDP.4A"},
    {"dp4a, 4 chains", (const void *)dots<DP4A, 4>, 256, "IDP.4A"},
};
static const lab_variant dots_waiting_variants[] = {
    {"bytes apart", (const void *)dots_waiting<APART>, 256},
    {"dp4a", (const void *)dots_waiting<DP4A>, 256, "IDP.4A"},
};

/* --- taking bytes out of a word --------------------------------------------------------------------- */

enum { SHIFT, BFE, PERMUTE };
template <int HOW> static __global__ void bytes(lab_args p)
{
    uint32_t x = ((const uint32_t *)p.in)[threadIdx.x], sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        x = x * 5 + 1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t byte;
            if (HOW == SHIFT)
                byte = x >> (8 * i) & 255;
            else if (HOW == BFE)
                asm volatile("bfe.u32 %0, %1, %2, 8;" : "=r"(byte) : "r"(x), "r"(8 * i));
            else
                byte = __byte_perm(x, 0, 0x4440 + (uint32_t)i);
            sum = sum * 3 + byte;
        }
    }
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static void bytes_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t t = 0; t < 256; t++) {
        uint32_t x = ((const uint32_t *)args->in)[t];
        for (uint32_t r = 0; r < args->rounds; r++) {
            x = x * 5 + 1;
            for (int i = 0; i < 4; i++)
                out[t] = out[t] * 3 + (x >> (8 * i) & 255);
        }
    }
}

static const lab_variant bytes_variants[] = {
    {"shift and mask", (const void *)bytes<SHIFT>, 256},
    {"bfe", (const void *)bytes<BFE>, 256},
    {"byte_perm", (const void *)bytes<PERMUTE>, 256, "PRMT"},
};

/* --- minimum of sums -------------------------------------------------------------------------------- */

enum { DPX, PLAIN_MIN, APART_MIN, MIN3, MIXED };
/* For eight c and two pivots a step: c = max(min(c, d + a), e + b), of which no two choices can be joined; or
 * with THREE c = min(c, d + a, e + b). p.c is 1, which the compiler cannot know, so that x * p.c + y stays an
 * addition of its own. */
template <int HOW, bool THREE> static __global__ void relax(lab_args p)
{
    const int *in = (const int *)p.in + threadIdx.x;
    int c[8], a = in[8 * 256] & 0xffff, b = in[9 * 256] & 0xffff, one = (int)p.c;
    for (int k = 0; k < 8; k++)
        c[k] = in[k * 256] & 0x7fffffff;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            int d = c[(k + 1) % 8], e = c[(k + 2) % 8];
            if (THREE)
                c[k] = HOW == DPX || (HOW == MIXED && k % 2)
                           ? __viaddmin_s32(e, b, __viaddmin_s32(d, a, c[k]))
                           : __vimin3_s32(e * one + b, d * one + a, c[k]);
            else if (HOW == DPX)
                c[k] = __viaddmax_s32(e, b, __viaddmin_s32(d, a, c[k]));
            else if (HOW == PLAIN_MIN)
                c[k] = max(e + b, min(d + a, c[k]));
            else
                c[k] = max(e * one + b, min(d * one + a, c[k]));
        }
    }
    for (int k = 1; k < 8; k++)
        c[0] ^= c[k];
    ((int *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = c[0];
}

static void relax_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    const uint32_t *in = (const uint32_t *)args->in;
    for (uint32_t t = 0; t < 256; t++) {
        int32_t c[8], a = (int32_t)(in[8 * 256 + t] & 0xffff), b = (int32_t)(in[9 * 256 + t] & 0xffff);
        for (int k = 0; k < 8; k++)
            c[k] = (int32_t)(in[k * 256 + t] & 0x7fffffff);
        for (uint32_t r = 0; r < args->rounds; r++)
            for (int k = 0; k < 8; k++) {
                int32_t d = lw_add_host(c[(k + 1) % 8], a), e = lw_add_host(c[(k + 2) % 8], b);
                c[k] = v->a ? lw_min3_host(e, d, c[k]) : lw_max_host(e, lw_min_host(d, c[k]));
            }
        for (int k = 0; k < 8; k++)
            out[t] ^= (uint32_t)c[k];
    }
}

static const lab_variant relax_variants[] = {
    {"additions apart", (const void *)relax<APART_MIN, false>, 256, "VIMNMX", 0, false, 0, 0, 1},
    {"plain C", (const void *)relax<PLAIN_MIN, false>, 256, NULL, 0, false, 0, 0, 1},
    {"DPX", (const void *)relax<DPX, false>, 256, "VIADDMNMX", 0, false, 0, 0, 1},
};
static const lab_variant relax3_variants[] = {
    {"two DPX", (const void *)relax<DPX, true>, 256, "VIADDMNMX", 0, false, 1, 0, 1},
    {"two additions, minimum of three", (const void *)relax<MIN3, true>, 256, "VIMNMX3", 0, false, 1, 0, 1},
    {"half of each", (const void *)relax<MIXED, true>, 256, "VIMNMX3", 0, false, 1, 0, 1},
};

/* --- cells of an alignment -------------------------------------------------------------------------- */

/* Sixteen columns in registers, a row a round; 11 to open, 1 to extend; scores -4 .. 3 by column, the same in
 * every row, so that scores stay below 64. Words of one score, of two s16, of two halves, and of two halves
 * whose patterns are integers (dpx.cuh, form H). */
enum { CELLS_S32, CELLS_S16, CELLS_HALF, CELLS_H, COLUMNS = 16, OPEN = 11, EXTEND = 1 };

static __host__ __device__ int column_score(uint32_t random)
{
    return (int)(random & 7) - 4;
}

template <int HOW> static __device__ __forceinline__ uint32_t word_of(int v)
{
    if (HOW == CELLS_S32)
        return (uint32_t)v;
    if (HOW == CELLS_S16)
        return lw_pack2(v, v);
    if (HOW == CELLS_H)
        return lw_half_from_int(v) * 0x10001u;
    __half2 h = __floats2half2_rn((float)v, (float)v);
    uint32_t x;
    memcpy(&x, &h, 4);
    return x;
}

template <int HOW> static __global__ void __launch_bounds__(256) cells(lab_args p)
{
    uint32_t score[COLUMNS], h[COLUMNS], e[COLUMNS], best = 0;
    for (int k = 0; k < COLUMNS; k++) {
        score[k] = word_of<HOW>(column_score(((const uint32_t *)p.in)[k * 256 + threadIdx.x]));
        h[k] = e[k] = 0;
    }
    const uint32_t open = word_of<HOW>(-OPEN - EXTEND), extend = word_of<HOW>(-EXTEND);
    const uint32_t extend_int = lw_pack2(-EXTEND, -EXTEND); /* form H: E and F are s16 to DPX */
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        uint32_t diagonal = 0, f = 0;
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            uint32_t t, g;
            if (HOW == CELLS_S32) {
                t = (uint32_t)((int)diagonal + (int)score[k]);
                diagonal = h[k];
                h[k] = (uint32_t)lw_max3_relu((int)t, (int)e[k], (int)f);
                g = (uint32_t)((int)h[k] + (int)open);
                e[k] = (uint32_t)lw_addmax((int)e[k], (int)extend, (int)g);
                f = (uint32_t)lw_addmax((int)f, (int)extend, (int)g);
                best = k & 1 ? (uint32_t)lw_max3((int)best, (int)h[k - (k & 1)], (int)h[k]) : best;
            } else if (HOW == CELLS_S16) {
                t = lw_addmax2(diagonal, score[k], e[k]);
                diagonal = h[k];
                h[k] = lw_max_relu2(t, f);
                g = lw_add2(h[k], open);
                e[k] = lw_addmax2(e[k], extend, g);
                f = lw_addmax2(f, extend, g);
                best = k & 1 ? lw_max3_2(best, h[k - (k & 1)], h[k]) : best;
            } else if (HOW == CELLS_HALF) {
                t = lw_addh2(diagonal, score[k]);
                diagonal = h[k];
                h[k] = lw_maxh2(lw_maxh2(lw_maxh2(t, e[k]), f), 0);
                g = lw_addh2(h[k], open);
                e[k] = lw_maxh2(lw_addh2(e[k], extend), g);
                f = lw_maxh2(lw_addh2(f, extend), g);
                best = k & 1 ? lw_maxh2(lw_maxh2(best, h[k - (k & 1)]), h[k]) : best;
            } else {
                t = lw_addh2(diagonal, score[k]);
                diagonal = h[k];
                h[k] = lw_max3_relu2(t, e[k], f);
                g = lw_addh2(h[k], open);
                e[k] = lw_addmax_relu2(e[k], extend_int, g);
                f = lw_addmax_relu2(f, extend_int, g);
                best = k & 1 ? lw_max3_2(best, h[k - (k & 1)], h[k]) : best;
            }
        }
    }
    if (HOW == CELLS_HALF) { /* as a number */
        __half2 value;
        memcpy(&value, &best, 4);
        best = (uint32_t)(int)__low2float(value) | (uint32_t)(int)__high2float(value) << 16;
    }
    ((uint32_t *)p.out)[blockIdx.x * 256 + threadIdx.x] = best;
}

static void cells_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    for (uint32_t t = 0; t < 256; t++) {
        int h[COLUMNS] = {0}, e[COLUMNS] = {0}, best = 0;
        for (uint32_t r = 0; r < args->rounds; r++) {
            int diagonal = 0, f = 0;
            for (int k = 0; k < COLUMNS; k++) {
                int cell = diagonal + column_score(((const uint32_t *)args->in)[k * 256 + t]);
                cell = cell > e[k] ? cell : e[k];
                cell = cell > f ? cell : f;
                cell = cell > 0 ? cell : 0;
                diagonal = h[k];
                h[k] = cell;
                int g = cell - OPEN - EXTEND;
                e[k] = e[k] - EXTEND > g ? e[k] - EXTEND : g;
                f = f - EXTEND > g ? f - EXTEND : g;
                best = cell > best ? cell : best;
            }
        }
        out[t] = v->a == CELLS_S32 ? (uint32_t)best : (uint32_t)best * 0x10001u;
    }
}

static const lab_variant cells_variants[] = {
    {"s32", (const void *)cells<CELLS_S32>, 256, "VIADDMNMX", 0, false, CELLS_S32},
};
static const lab_variant cells2_variants[] = {
    {"half2", (const void *)cells<CELLS_HALF>, 256, "HADD2", 80, false, CELLS_HALF},
    {"s16x2", (const void *)cells<CELLS_S16>, 256, "VIADDMNMX", 0, false, CELLS_S16},
    {"halves that are integers", (const void *)cells<CELLS_H>, 256, "VIADDMNMX", 0, false, CELLS_H},
};

/* --- division by a number that stays the same ------------------------------------------------------- */

enum { MASK, MULTIPLY, DIVIDE_OP, CONSTANT };
/* Four quotients and remainders a round. p.a: divisor, p.b: multiplier, p.c: shifts. */
template <int HOW> static __global__ void divisions(lab_args p)
{
    uint32_t x = ((const uint32_t *)p.in)[threadIdx.x], sum = 0;
    lw_divider d;
    d.divisor = p.a;
    d.multiplier = p.b;
    d.shift1 = (uint8_t)(p.c & 255);
    d.shift2 = (uint8_t)(p.c >> 8);
    uint32_t shift = (uint32_t)lw_log2_floor(p.a), mask = p.a - 1;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            x = x * 5 + 1;
            uint32_t q = HOW == MASK        ? x >> shift
                         : HOW == MULTIPLY  ? lw_divide(x, d)
                         : HOW == DIVIDE_OP ? x / p.a
                                            : x / 24;
            uint32_t rest = HOW == MASK        ? x & mask
                            : HOW == MULTIPLY  ? x - q * d.divisor
                            : HOW == DIVIDE_OP ? x % p.a
                                               : x % 24;
            sum += q * 3 + rest;
        }
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static void divisions_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    for (uint32_t t = 0; t < 256; t++) {
        uint32_t x = ((const uint32_t *)args->in)[t];
        for (uint32_t r = 0; r < args->rounds * 4; r++) {
            x = x * 5 + 1;
            out[t] += x / v->a * 3 + x % v->a;
        }
    }
}

/* 24: l = 5, multiplier floor(2^32 (32 - 24) / 24) + 1, shifts 1 and 4 (pow2.h) */
static const lab_variant divisions_variants[] = {
    {"/ and % by 24, unknown", (const void *)divisions<DIVIDE_OP>, 256, NULL, 0, false, 24, 1431655766u,
     1 | 4 << 8},
    {"/ and % by 24, constant", (const void *)divisions<CONSTANT>, 256, NULL, 0, false, 24, 1431655766u,
     1 | 4 << 8},
    {"multiplication for 24", (const void *)divisions<MULTIPLY>, 256, NULL, 0, false, 24, 1431655766u,
     1 | 4 << 8},
    {"shift and mask for 32", (const void *)divisions<MASK>, 256, NULL, 0, false, 32, 0, 0},
};

/* --- wide numbers ----------------------------------------------------------------------------------- */

enum {
    UPPER_INTRINSIC,
    UPPER_PLAIN,
    UPPER_SIGNED_INTRINSIC,
    UPPER_SIGNED_PLAIN,
    UPPER64_INTRINSIC,
    UPPER64_PIECES,
    UPPER64_SIGNED_INTRINSIC,
    UPPER64_SIGNED_128,
    UPPER64_SIGNED_CORRECTED
};
__extension__ typedef __int128 wide;

template <int HOW> static __global__ void upper_halves(lab_args p)
{
    const uint32_t *in = (const uint32_t *)p.in + threadIdx.x;
    uint64_t x = (uint64_t)in[256] << 32 | in[0], y = (uint64_t)in[512] << 32 | in[768];
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (HOW == UPPER_INTRINSIC)
                x = x * 5 + __umulhi((uint32_t)x, (uint32_t)y);
            else if (HOW == UPPER_PLAIN)
                x = x * 5 + ((uint64_t)(uint32_t)x * (uint32_t)y >> 32);
            else if (HOW == UPPER_SIGNED_INTRINSIC)
                x = x * 5 + (uint64_t)__mulhi((int)x, (int)y);
            else if (HOW == UPPER_SIGNED_PLAIN)
                x = x * 5 + (uint64_t)((int64_t)(int32_t)x * (int32_t)y >> 32);
            else if (HOW == UPPER64_INTRINSIC)
                x = x * 5 + __umul64hi(x, y);
            else if (HOW == UPPER64_SIGNED_INTRINSIC)
                x = x * 5 + (uint64_t)__mul64hi((long long)x, (long long)y);
            else if (HOW == UPPER64_SIGNED_128)
                x = x * 5 + (uint64_t)((wide)(int64_t)x * (int64_t)y >> 64);
            else if (HOW == UPPER64_SIGNED_CORRECTED) /* a negative factor counts as 2^64 more */
                x = x * 5 + __umul64hi(x, y) - ((int64_t)x < 0 ? y : 0) - ((int64_t)y < 0 ? x : 0);
            else {
                uint64_t a = x >> 32, b = (uint32_t)x, c = y >> 32, d = (uint32_t)y;
                uint64_t low = b * d, middle = a * d + (low >> 32), other = b * c + (uint32_t)middle;
                x = x * 5 + a * c + (middle >> 32) + (other >> 32);
            }
        }
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = (uint32_t)(x ^ x >> 32);
}

static void upper_halves_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    for (uint32_t t = 0; t < 256; t++) {
        const uint32_t *in = (const uint32_t *)args->in + t;
        uint64_t x = (uint64_t)in[256] << 32 | in[0], y = (uint64_t)in[512] << 32 | in[768];
        for (uint32_t r = 0; r < args->rounds * 4; r++) {
            uint64_t upper;
            if (v->a == 32)
                upper = v->b ? (uint64_t)((int64_t)(int32_t)x * (int32_t)y >> 32)
                             : (uint64_t)(uint32_t)x * (uint32_t)y >> 32;
            else if (v->b) { /* four products, the upper halves of the factors signed */
                int64_t a = (int64_t)x >> 32, c = (int64_t)y >> 32, b = (uint32_t)x, d = (uint32_t)y;
                int64_t middle = a * d + (int64_t)((uint64_t)b * (uint64_t)d >> 32);
                int64_t other = b * c + (int64_t)(uint32_t)middle;
                upper = (uint64_t)(a * c + (middle >> 32) + (other >> 32));
            } else {
                uint64_t a = x >> 32, b = (uint32_t)x, c = y >> 32, d = (uint32_t)y;
                uint64_t low = b * d, middle = a * d + (low >> 32), other = b * c + (uint32_t)middle;
                upper = a * c + (middle >> 32) + (other >> 32);
            }
            x = x * 5 + upper;
        }
        out[t] = (uint32_t)(x ^ x >> 32);
    }
}

static const lab_variant upper_variants[] = {
    {"64-bit product, shifted", (const void *)upper_halves<UPPER_PLAIN>, 256, NULL, 0, false, 32},
    {"__umulhi", (const void *)upper_halves<UPPER_INTRINSIC>, 256, "IMAD.HI", 0, false, 32},
};
static const lab_variant upper_signed_variants[] = {
    {"64-bit product, shifted", (const void *)upper_halves<UPPER_SIGNED_PLAIN>, 256, NULL, 0, false, 32, 1},
    {"__mulhi", (const void *)upper_halves<UPPER_SIGNED_INTRINSIC>, 256, "IMAD.HI", 0, false, 32, 1},
};
static const lab_variant upper64_signed_variants[] = {
    {"__umul64hi, corrected", (const void *)upper_halves<UPPER64_SIGNED_CORRECTED>, 256, "IMAD.WIDE", 0,
     false, 64, 1},
    {"128-bit product, shifted", (const void *)upper_halves<UPPER64_SIGNED_128>, 256, "IMAD.WIDE", 0, false,
     64, 1},
    {"__mul64hi", (const void *)upper_halves<UPPER64_SIGNED_INTRINSIC>, 256, "IMAD.WIDE", 0, false, 64, 1},
};
static const lab_variant upper64_variants[] = {
    {"four products of 32 bits", (const void *)upper_halves<UPPER64_PIECES>, 256, NULL, 0, false, 64},
    {"__umul64hi", (const void *)upper_halves<UPPER64_INTRINSIC>, 256, NULL, 0, false, 64},
};

/* x += y on 256 bits. */
template <int CARRY_FLAG> static __global__ void wide_sums(lab_args p)
{
    const uint32_t *in = (const uint32_t *)p.in + threadIdx.x;
    uint32_t x[8], y[8];
    for (int k = 0; k < 8; k++)
        x[k] = in[k * 256], y[k] = in[(8 + k) * 256];
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        if (CARRY_FLAG)
            asm volatile("add.cc.u32 %0, %0, %8; addc.cc.u32 %1, %1, %9; addc.cc.u32 %2, %2, %10;"
                         "addc.cc.u32 %3, %3, %11; addc.cc.u32 %4, %4, %12; addc.cc.u32 %5, %5, %13;"
                         "addc.cc.u32 %6, %6, %14; addc.u32 %7, %7, %15;"
                         : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]), "+r"(x[4]), "+r"(x[5]), "+r"(x[6]),
                           "+r"(x[7])
                         : "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]),
                           "r"(y[7]));
        else {
            uint32_t carry = 0;
#pragma unroll
            for (int k = 0; k < 8; k++) {
                uint32_t sum = x[k] + y[k], with = sum + carry;
                carry = (sum < x[k]) | (with < sum);
                x[k] = with;
            }
        }
    }
    for (int k = 1; k < 8; k++)
        x[0] ^= x[k];
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}

static void wide_sums_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t t = 0; t < 256; t++) {
        uint64_t x[8];
        for (int k = 0; k < 8; k++)
            x[k] = ((const uint32_t *)args->in)[k * 256 + t];
        for (uint32_t r = 0; r < args->rounds; r++)
            for (uint64_t k = 0, carry = 0; k < 8; k++) {
                uint64_t sum = x[k] + ((const uint32_t *)args->in)[(8 + k) * 256 + t] + carry;
                x[k] = (uint32_t)sum;
                carry = sum >> 32;
            }
        for (int k = 0; k < 8; k++)
            out[t] ^= (uint32_t)x[k];
    }
}

static const lab_variant wide_sums_variants[] = {
    {"carries by comparison", (const void *)wide_sums<0>, 256},
    {"add.cc and addc", (const void *)wide_sums<1>, 256, "IADD3.X"},
};

/* --- bits ------------------------------------------------------------------------------------------- */

enum { POPC, POPC_PLAIN, POPCLL, CLZ, CLZ_PLAIN, BFIND, CLZLL, FFS, FFSLL, BREV, BREV_PLAIN, BREVLL };

template <int HOW> static __device__ __forceinline__ uint32_t bits_of_word(uint32_t x)
{
    uint64_t both = (uint64_t)(x * 3) << 32 | x;
    uint32_t r;
    switch (HOW) {
    case POPC:
        return (uint32_t)__popc(x);
    case POPC_PLAIN: /* sums in fields of 2, 4, 8 bits, then by a multiplication */
        x -= x >> 1 & 0x55555555;
        x = (x & 0x33333333) + (x >> 2 & 0x33333333);
        return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
    case POPCLL:
        return (uint32_t)__popcll(both);
    case CLZ:
        return (uint32_t)__clz((int)x);
    case CLZ_PLAIN: /* bits below the highest set one filled, then counted as above */
        x |= x >> 1;
        x |= x >> 2;
        x |= x >> 4;
        x |= x >> 8;
        x |= x >> 16;
        return 32 - bits_of_word<POPC_PLAIN>(x);
    case BFIND:
        asm volatile("bfind.u32 %0, %1;" : "=r"(r) : "r"(x));
        return 31 - r; /* of 0 it is -1: 32 */
    case CLZLL:
        return (uint32_t)__clzll((long long)both);
    case FFS:
        return (uint32_t)__ffs((int)x);
    case FFSLL:
        return (uint32_t)__ffsll((long long)both);
    case BREV:
        return __brev(x);
    case BREV_PLAIN:
        x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
        x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
        x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
        return __byte_perm(x, 0, 0x0123);
    default:
        return (uint32_t)(__brevll(both) >> 7);
    }
}

template <int HOW> static __global__ void bits(lab_args p)
{
    uint32_t x = ((const uint32_t *)p.in)[threadIdx.x], sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int k = 0; k < 8; k++) {
            x = x * 5 + 1;
            sum = sum * 3 + bits_of_word<HOW>(x);
        }
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static uint32_t bit_reversed(uint64_t x, int width)
{
    uint64_t r = 0;
    for (int i = 0; i < width; i++)
        r |= (x >> i & 1) << (width - 1 - i);
    return (uint32_t)(width == 64 ? r >> 7 : r);
}

static void bits_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    for (uint32_t t = 0; t < 256; t++) {
        uint32_t x = ((const uint32_t *)args->in)[t];
        for (uint32_t r = 0; r < args->rounds * 8; r++) {
            x = x * 5 + 1;
            uint64_t both = (uint64_t)(x * 3) << 32 | x;
            uint32_t value;
            switch (v->a) {
            case POPC:
                value = (uint32_t)__builtin_popcount(x);
                break;
            case POPCLL:
                value = (uint32_t)__builtin_popcountll(both);
                break;
            case CLZ:
                value = x ? (uint32_t)__builtin_clz(x) : 32;
                break;
            case CLZLL:
                value = both ? (uint32_t)__builtin_clzll(both) : 64;
                break;
            case FFS:
                value = (uint32_t)__builtin_ffs((int)x);
                break;
            case FFSLL:
                value = (uint32_t)__builtin_ffsll((long long)both);
                break;
            case BREV:
                value = bit_reversed(x, 32);
                break;
            default:
                value = bit_reversed(both, 64);
                break;
            }
            out[t] = out[t] * 3 + value;
        }
    }
}

#define BITS(name, how, opcode, as)                                                                          \
    {                                                                                                        \
        name, (const void *)bits<how>, 256, opcode, 0, false, as                                             \
    }
static const lab_variant count_variants[] = {
    BITS("plain C", POPC_PLAIN, NULL, POPC),
    BITS("__popc", POPC, "POPC", POPC),
    BITS("__popcll", POPCLL, "POPC", POPCLL),
};
static const lab_variant find_variants[] = {
    BITS("clz in plain C", CLZ_PLAIN, NULL, CLZ),
    BITS("__clz", CLZ, "FLO", CLZ),
    BITS("bfind", BFIND, "FLO", CLZ),
    BITS("__clzll", CLZLL, "FLO", CLZLL),
    BITS("__ffs", FFS, "FLO", FFS),
    BITS("__ffsll", FFSLL, "FLO", FFSLL),
};
static const lab_variant reverse_variants[] = {
    BITS("plain C", BREV_PLAIN, NULL, BREV),
    BITS("__brev", BREV, "BREV", BREV),
    BITS("__brevll", BREVLL, "BREV", BREVLL),
};

/* --- shifts of many words --------------------------------------------------------------------------- */

enum { SHIFTS, SHIFTS_64, FUNNEL_WRAP, FUNNEL_CLAMP };
/* Eight words shifted left by 1 .. 31 bits, the upper ones take in what the lower ones give. */
template <int HOW> static __global__ void wide_shifts(lab_args p)
{
    const uint32_t *in = (const uint32_t *)p.in + threadIdx.x;
    uint32_t x[8];
    for (int k = 0; k < 8; k++)
        x[k] = in[k * 256];
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        uint32_t s = (x[7] & 15) + 1, last = x[7];
#pragma unroll
        for (int k = 7; k > 0; k--)
            x[k] = HOW == SHIFTS        ? x[k] << s | x[k - 1] >> (32 - s)
                   : HOW == SHIFTS_64   ? (uint32_t)((((uint64_t)x[k] << 32 | x[k - 1]) << s) >> 32)
                   : HOW == FUNNEL_WRAP ? __funnelshift_l(x[k - 1], x[k], s)
                                        : __funnelshift_lc(x[k - 1], x[k], s);
        x[0] = (x[0] << s) + last;
    }
    for (int k = 1; k < 8; k++)
        x[0] ^= x[k];
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}

static void wide_shifts_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t t = 0; t < 256; t++) {
        uint32_t x[8];
        for (int k = 0; k < 8; k++)
            x[k] = ((const uint32_t *)args->in)[k * 256 + t];
        for (uint32_t r = 0; r < args->rounds; r++) {
            uint32_t s = (x[7] & 15) + 1, last = x[7];
            for (int k = 7; k > 0; k--)
                x[k] = x[k] << s | x[k - 1] >> (32 - s);
            x[0] = (x[0] << s) + last;
        }
        for (int k = 0; k < 8; k++)
            out[t] ^= x[k];
    }
}

/* Shifts by 0 to 32 bits, both ends included: what a shift of many words by any distance needs. By 32 bits
 * the lower word takes the upper one's place; a funnel shift that wraps shifts by 0 instead. */
enum { ANY_64, ANY_TESTED, ANY_CLAMP, ANY_WRAP };
template <int HOW> static __global__ void any_shifts(lab_args p)
{
    const uint32_t *in = (const uint32_t *)p.in + threadIdx.x;
    uint32_t x = in[0], y = in[256];
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint32_t s = min(x & 63, 32u), shifted;
            if (HOW == ANY_64)
                shifted = (uint32_t)(((uint64_t)x << 32 | y) << s >> 32);
            else if (HOW == ANY_TESTED)
                shifted = s == 0 ? x : s == 32 ? y : x << s | y >> (32 - s);
            else if (HOW == ANY_CLAMP)
                shifted = __funnelshift_lc(y, x, s);
            else
                shifted = __funnelshift_l(y, x, s);
            y = y * 5 + x;
            x = shifted + y;
        }
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = x ^ y;
}

static void any_shifts_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t t = 0; t < 256; t++) {
        uint32_t x = ((const uint32_t *)args->in)[t], y = ((const uint32_t *)args->in)[256 + t];
        for (uint32_t r = 0; r < args->rounds * 4; r++) {
            uint32_t s = (x & 63) < 32 ? x & 63 : 32;
            uint32_t shifted = (uint32_t)(((uint64_t)x << 32 | y) << s >> 32);
            y = y * 5 + x;
            x = shifted + y;
        }
        out[t] = x ^ y;
    }
}

static const lab_variant any_shifts_variants[] = {
    {"0 and 32 tested for", (const void *)any_shifts<ANY_TESTED>, 256, "SHF"},
    {"64-bit shift in C", (const void *)any_shifts<ANY_64>, 256, "SHF"},
    {"funnel shift, clamped", (const void *)any_shifts<ANY_CLAMP>, 256, "SHF"},
    {"funnel shift, wrapped", (const void *)any_shifts<ANY_WRAP>, 256, "SHF", 0, true},
};

static const lab_variant shifts_variants[] = {
    {"two shifts and or", (const void *)wide_shifts<SHIFTS>, 256, "SHF"},
    {"64-bit shift in C", (const void *)wide_shifts<SHIFTS_64>, 256, "SHF"},
    {"funnel shift, wrapped", (const void *)wide_shifts<FUNNEL_WRAP>, 256, "SHF"},
    {"funnel shift, clamped", (const void *)wide_shifts<FUNNEL_CLAMP>, 256, "SHF"},
};

/* --- three inputs at once --------------------------------------------------------------------------- */

/* The table of a logic function of three inputs: its value for a, b, c all of whose combinations these are.
 */
enum { LUT_A = 0xf0, LUT_B = 0xcc, LUT_C = 0xaa };
constexpr int majority_lut = (LUT_A & LUT_B) | (LUT_A & LUT_C) | (LUT_B & LUT_C);
constexpr int choose_lut = (LUT_A & LUT_B) | (~LUT_A & LUT_C & 0xff);

enum { LOGIC_APART, LOGIC_PLAIN, LOGIC_LOP3 };

static __device__ __forceinline__ uint32_t and_apart(uint32_t a, uint32_t b)
{
    uint32_t r; /* LOP3 all the same, but one for two inputs */
    asm volatile("and.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

static __device__ __forceinline__ uint32_t or_apart(uint32_t a, uint32_t b)
{
    uint32_t r;
    asm volatile("or.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

/* The majority of three bits, and one of two chosen by a third: the mixing steps of SHA-2. */
template <int HOW> static __global__ void logic(lab_args p)
{
    const uint32_t *in = (const uint32_t *)p.in + threadIdx.x;
    uint32_t a = in[0], b = in[256], c = in[512];
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint32_t majority, choice;
            if (HOW == LOGIC_LOP3) {
                asm("lop3.b32 %0, %1, %2, %3, %4;"
                    : "=r"(majority)
                    : "r"(a), "r"(b), "r"(c), "n"(majority_lut));
                asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(choice) : "r"(a), "r"(b), "r"(c), "n"(choose_lut));
            } else if (HOW == LOGIC_PLAIN) {
                majority = (a & b) | (a & c) | (b & c);
                choice = (a & b) | (~a & c);
            } else {
                majority = or_apart(or_apart(and_apart(a, b), and_apart(a, c)), and_apart(b, c));
                choice = or_apart(and_apart(a, b), and_apart(~a, c));
            }
            a = c * 5 + choice;
            c = b;
            b = majority + r;
        }
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = a ^ b ^ c;
}

static void logic_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t t = 0; t < 256; t++) {
        const uint32_t *in = (const uint32_t *)args->in + t;
        uint32_t a = in[0], b = in[256], c = in[512];
        for (uint32_t r = 0; r < args->rounds; r++)
            for (int k = 0; k < 4; k++) {
                uint32_t majority = 0, choice = 0;
                for (int i = 0; i < 32; i++) {
                    uint32_t ones = (a >> i & 1) + (b >> i & 1) + (c >> i & 1);
                    majority |= (uint32_t)(ones >= 2) << i;
                    choice |= ((a >> i & 1 ? b : c) >> i & 1) << i;
                }
                a = c * 5 + choice;
                c = b;
                b = majority + r;
            }
        out[t] = a ^ b ^ c;
    }
}

static const lab_variant logic_variants[] = {
    {"two inputs at a time", (const void *)logic<LOGIC_APART>, 256, "LOP3"},
    {"plain C", (const void *)logic<LOGIC_PLAIN>, 256, "LOP3"},
    {"lop3 with computed table", (const void *)logic<LOGIC_LOP3>, 256, "LOP3"},
};

/* --- the table -------------------------------------------------------------------------------------- */

/* 256 threads, per_sm blocks a multiprocessor; the first block is compared. */
#define ROW(title, shape, unit, where, words, rounds, per_sm, work, reference, variants)                     \
    {                                                                                                        \
        title, shape, unit, where, (words)*4, 0, 1 << 22, 0, rounds, 5, 0, per_sm, work, false, 256, 0,      \
            NULL, reference, VARIANTS(variants)                                                              \
    }
#define FULL "256 threads, 8 blocks a multiprocessor"

/* A thread waits for its loads unless it has chains enough, or the multiprocessor warps enough. */
#define CHAINED_ROW(title, shape, per_sm, variants)                                                          \
    ROW(title, shape, "products", "src/infer/infer_cuda_product.cuh: sums side by side", (ROWS + 1) * 256,   \
        1000, per_sm, 32, dots_chained_reference, variants)
#define FEW_WARPS "256 threads a multiprocessor, each load tells the next"
#define MORE_WARPS "512 threads a multiprocessor, each load tells the next"

static const lab_technique techniques[] = {
    ROW("dot product of bytes, 8 warps", "256 threads a multiprocessor", "products",
        "src/common/dp4a.cuh; src/infer/infer_cuda_product.cuh", 9 * 256, 2000, 1, 32, dots_reference,
        dots_few_variants),
    ROW("dot product of bytes", FULL, "products", "src/common/dp4a.cuh; src/infer/infer_cuda_product.cuh",
        9 * 256, 1000, 8, 32, dots_reference, dots_variants),
    ROW("dot product that waits for memory", "256 threads a multiprocessor, each load tells the next",
        "products", NOT_USED, 1 << 20, 20, 1, 32, dots_waiting_reference, dots_waiting_variants),
    CHAINED_ROW("dot product in 1 chain of loads, 8 warps", FEW_WARPS, 1, chained1_variants),
    CHAINED_ROW("dot product in 2 chains of loads, 8 warps", FEW_WARPS, 1, chained2_variants),
    CHAINED_ROW("dot product in 4 chains of loads, 8 warps", FEW_WARPS, 1, chained4_variants),
    CHAINED_ROW("dot product in 8 chains of loads, 8 warps", FEW_WARPS, 1, chained8_variants),
    CHAINED_ROW("dot product in 1 chain of loads, 16 warps", MORE_WARPS, 2, chained1_variants),
    CHAINED_ROW("dot product in 2 chains of loads, 16 warps", MORE_WARPS, 2, chained2_variants),
    CHAINED_ROW("dot product in 4 chains of loads, 16 warps", MORE_WARPS, 2, chained4_variants),
    CHAINED_ROW("dot product in 8 chains of loads, 16 warps", MORE_WARPS, 2, chained8_variants),
    ROW("byte of a word", FULL, "bytes", "src/align/score_word.cuh: letters by fours", 256, 1000, 8, 4,
        bytes_reference, bytes_variants),
    ROW("minimum of sums", FULL, "relaxations", "src/common/dpx.cuh: lw_addmax, lw_addmin", 10 * 256, 1000, 8,
        16, relax_reference, relax_variants),
    ROW("minimum of two sums", FULL, "relaxations", "src/paths/paths_kernels.cuh, src/common/minplus.cuh",
        10 * 256, 1000, 8, 16, relax_reference, relax3_variants),
    ROW("alignment cells, one a word", FULL, "cells", "src/align/score_word.cuh: cuda-int", COLUMNS * 256,
        500, 2, COLUMNS, cells_reference, cells_variants),
    ROW("alignment cells, two a word", FULL, "cells", "src/align/score_word.cuh: cuda-dpx, cuda-half2",
        COLUMNS * 256, 500, 2, 2 * COLUMNS, cells_reference, cells2_variants),
    ROW("division", FULL, "divisions", "src/common/pow2.h; src/infer/infer_cuda_product.cuh", 256, 500, 8, 4,
        divisions_reference, divisions_variants),
    ROW("upper half of a product", FULL, "products", "src/common/pow2.h: lw_mulhi_u32", 4 * 256, 500, 8, 4,
        upper_halves_reference, upper_variants),
    ROW("upper half of a 64-bit product", FULL, "products", NOT_USED, 4 * 256, 500, 8, 4,
        upper_halves_reference, upper64_variants),
    ROW("upper half of a signed product", FULL, "products", NOT_USED, 4 * 256, 500, 8, 4,
        upper_halves_reference, upper_signed_variants),
    ROW("upper half of a signed 64-bit product", FULL, "products", NOT_USED, 4 * 256, 500, 8, 4,
        upper_halves_reference, upper64_signed_variants),
    ROW("sums of 256 bits", FULL, "sums", "src/paths: s64 sums", 16 * 256, 500, 8, 1, wide_sums_reference,
        wide_sums_variants),
    ROW("counting bits", FULL, "words", "src/align/search_select.cu", 256, 500, 8, 8, bits_reference,
        count_variants),
    ROW("finding bits", FULL, "words", "src/common/pow2.h: lw_log2_floor; src/align/align_cuda_select.cu",
        256, 500, 8, 8, bits_reference, find_variants),
    ROW("reversing bits", FULL, "words", NOT_USED, 256, 500, 8, 8, bits_reference, reverse_variants),
    ROW("shift of eight words", FULL, "words", "src/common/dpx.cuh: lw_four_bytes", 8 * 256, 500, 8, 8,
        wide_shifts_reference, shifts_variants),
    ROW("shift by 0 to 32 bits", FULL, "words", NOT_USED, 2 * 256, 500, 8, 4, any_shifts_reference,
        any_shifts_variants),
    ROW("logic of three inputs", FULL, "functions", "src/common/dpx.cuh: the portable forms", 3 * 256, 500, 8,
        8, logic_reference, logic_variants),
};
extern const lab_list lab_integer = {techniques, (int)(sizeof techniques / sizeof *techniques)};
