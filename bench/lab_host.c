/* lab_host.c - the ceilings and techniques of the CPU, and the GPU's after them. What a CPU shows of the
 * techniques is their arithmetic: the same sums, residuals and tails, timed on one thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common/device.h"
#include "common/dp4a.cuh"
#include "common/dpx.cuh"
#include "common/fail.h"
#include "common/pow2.h"
#include "lab.h"

static bool wants_gpu(const bench *b)
{
    return strcmp(b->backend, "auto") == 0 || strncmp(b->backend, "cuda", 4) == 0;
}

/* --- ceilings ------------------------------------------------------------------------------------------- */

typedef struct copying {
    char *from, *to;
    size_t bytes, piece;
    lw_pool *pool;
} copying;

static lw_status copy_piece(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    copying *c = arg;
    memcpy(c->to + (size_t)i * c->piece, c->from + (size_t)i * c->piece, c->piece);
    return LW_OK;
}

static lw_status copy_all(void *arg, lw_error *err)
{
    copying *c = arg;
    return lw_pool_for(c->pool, (int64_t)(c->bytes / c->piece), copy_piece, c, err);
}

/* Copying counts both directions. */
static lw_status host_copy(bench *b, lw_pool *pool, lw_error *err)
{
    copying c = {.bytes = (size_t)(b->quick ? 64 : 512) << 20, .piece = (size_t)1 << 20, .pool = pool};
    c.from = malloc(c.bytes);
    c.to = malloc(c.bytes);
    lw_status status = c.from && c.to ? LW_OK : lw_fail_memory(err, 2 * c.bytes);
    if (status == LW_OK) {
        bench_result about = {
            .domain = "ceilings", .name = "copy", .backend = "cpu", .unit = "GB/s", .verified = true};
        memset(c.from, 1, c.bytes);
        snprintf(about.shape, sizeof about.shape, "%zu MiB, %s", c.bytes >> 20,
                 pool ? "all threads" : "1 thread");
        status = bench_measure(b, &about, 2e-9 * (double)c.bytes, copy_all, &c, err);
        if (status == LW_OK && memcmp(c.from, c.to, c.bytes) != 0)
            status = lw_fail(err, LW_E_INTERNAL, "bench ceilings: the copy differs");
    }
    free(c.from), free(c.to);
    return status;
}

lw_status bench_ceilings(bench *b, lw_error *err)
{
    lw_error reason = {0};
    lw_device device;
    if (bench_wants(b, "cpu")) {
        LW_TRY(host_copy(b, NULL, err));
        if (lw_pool_threads(b->pool) > 1)
            LW_TRY(host_copy(b, b->pool, err));
    }
    if (wants_gpu(b) && lw_device_query(b->device, &device, &reason) != LW_OK)
        return bench_skip(b, "ceilings", "GPU", reason.message, err);
    return LW_OK; /* the GPU's were measured before: bench_run() */
}

/* --- techniques ----------------------------------------------------------------------------------------- */

enum { WORDS = 4096 };

/* A case: `rounds` passes over WORDS inputs, whose result must be what the reference says. */
typedef struct host_case {
    const char *technique, *name, *unit;
    double work; /* of one word in one pass */
    uint32_t (*run)(const uint32_t *in, uint32_t rounds);
    uint32_t (*reference)(const uint32_t *in, uint32_t rounds);
} host_case;

#define OVER_WORDS(expression)                                                                               \
    uint32_t sum = 0;                                                                                        \
    for (uint32_t r = 0; r < rounds; r++)                                                                    \
        for (uint32_t i = 0; i < WORDS; i++) {                                                               \
            uint32_t x = in[i] ^ r;                                                                          \
            sum = sum * 3 + (uint32_t)(expression);                                                          \
        }                                                                                                    \
    return sum

static volatile uint32_t divisor = 24, power = 32; /* volatile: not known to the compiler */

static uint32_t divide_plain(const uint32_t *in, uint32_t rounds)
{
    uint32_t d = divisor;
    OVER_WORDS(x / d + x % d);
}

static uint32_t divide_multiply(const uint32_t *in, uint32_t rounds)
{
    lw_divider d = lw_divider_of(divisor);
    OVER_WORDS(lw_divide(x, d) + lw_modulo(x, d));
}

static uint32_t power_plain(const uint32_t *in, uint32_t rounds)
{
    uint32_t d = power;
    OVER_WORDS(x / d + x % d);
}

static uint32_t power_shift(const uint32_t *in, uint32_t rounds)
{
    uint32_t d = power;
    OVER_WORDS(lw_pow2_div(x, d) + lw_pow2_mod(x, d));
}

static uint32_t dot_portable(const uint32_t *in, uint32_t rounds)
{
    OVER_WORDS(lw_dp4a_ss_portable(x, in[i ^ 1], (int32_t)i));
}

static uint32_t dot_bytes(const uint32_t *in, uint32_t rounds)
{
    OVER_WORDS((int32_t)i + (int8_t)x * (int8_t)in[i ^ 1] + (int8_t)(x >> 8) * (int8_t)(in[i ^ 1] >> 8) +
               (int8_t)(x >> 16) * (int8_t)(in[i ^ 1] >> 16) + (int8_t)(x >> 24) * (int8_t)(in[i ^ 1] >> 24));
}

static uint32_t addmax_host(const uint32_t *in, uint32_t rounds)
{
    OVER_WORDS(lw_addmax2_host(x, in[i ^ 1], in[i ^ 2]));
}

static uint32_t addmax_any(const uint32_t *in, uint32_t rounds)
{
    OVER_WORDS(lw_addmax2_any(x, in[i ^ 1], in[i ^ 2]));
}

static uint32_t popcount_builtin(const uint32_t *in, uint32_t rounds)
{
    OVER_WORDS(__builtin_popcount(x));
}

static uint32_t popcount_fields(const uint32_t *in, uint32_t rounds)
{
    uint32_t sum = 0;
    for (uint32_t r = 0; r < rounds; r++)
        for (uint32_t i = 0; i < WORDS; i++) {
            uint32_t x = in[i] ^ r;
            x -= x >> 1 & 0x55555555;
            x = (x & 0x33333333) + (x >> 2 & 0x33333333);
            sum = sum * 3 + (((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24);
        }
    return sum;
}

/* Whole numbers below 2^24: every order gives the same sum. */
#define ACCUMULATE(N)                                                                                        \
    static uint32_t accumulate_##N(const uint32_t *in, uint32_t rounds)                                      \
    {                                                                                                        \
        float total = 0;                                                                                     \
        for (uint32_t r = 0; r < rounds; r++) {                                                              \
            float sum[N] = {0};                                                                              \
            for (uint32_t i = 0; i < WORDS; i += N)                                                          \
                for (uint32_t k = 0; k < N; k++)                                                             \
                    sum[k] += (float)(in[i + k] & 1023);                                                     \
            for (uint32_t k = 1; k < N; k++)                                                                 \
                sum[0] += sum[k];                                                                            \
            total = sum[0];                                                                                  \
        }                                                                                                    \
        return (uint32_t)total;                                                                              \
    }
ACCUMULATE(1)
ACCUMULATE(2)
ACCUMULATE(4)
ACCUMULATE(8)

static const host_case host_cases[] = {
    {"independent accumulators", "1", "additions", 1, accumulate_1, accumulate_1},
    {"independent accumulators", "2", "additions", 1, accumulate_2, accumulate_1},
    {"independent accumulators", "4", "additions", 1, accumulate_4, accumulate_1},
    {"independent accumulators", "8", "additions", 1, accumulate_8, accumulate_1},
    {"division", "/ and % by 24, unknown", "divisions", 1, divide_plain, divide_plain},
    {"division", "multiplication for 24", "divisions", 1, divide_multiply, divide_plain},
    {"division", "/ and % by 32, unknown", "divisions", 1, power_plain, power_plain},
    {"division", "shift and mask for 32", "divisions", 1, power_shift, power_plain},
    {"dot product of bytes", "lw_dp4a_ss_portable", "products", 4, dot_portable, dot_bytes},
    {"dot product of bytes", "plain C", "products", 4, dot_bytes, dot_portable},
    {"minimum of sums, two s16", "half by half", "words", 1, addmax_host, addmax_any},
    {"minimum of sums, two s16", "whole words", "words", 1, addmax_any, addmax_host},
    {"counting bits", "builtin", "words", 1, popcount_builtin, popcount_fields},
    {"counting bits", "fields", "words", 1, popcount_fields, popcount_builtin},
};

typedef struct host_run {
    const host_case *row;
    const uint32_t *in;
    uint32_t rounds, result;
} host_run;

static lw_status run_case(void *arg, lw_error *err)
{
    (void)err;
    host_run *h = arg;
    h->result = h->row->run(h->in, h->rounds);
    return LW_OK;
}

static lw_status host_kernels(bench *b, lw_error *err)
{
    uint32_t *in = malloc(WORDS * sizeof *in);
    if (!in)
        return lw_fail_memory(err, WORDS * sizeof *in);
    lw_status status = LW_OK;
    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = lab_hash(i + 1);
    for (size_t k = 0; k < sizeof host_cases / sizeof *host_cases && status == LW_OK; k++) {
        const host_case *row = &host_cases[k];
        host_run h = {.row = row, .in = in, .rounds = 3};
        status = run_case(&h, err);
        if (status == LW_OK && h.result != row->reference(in, 3))
            status = lw_fail(err, LW_E_INTERNAL, "bench techniques: %s, %s: wrong on this CPU",
                             row->technique, row->name);
        h.rounds = b->quick ? 200 : 2000;
        bench_result about = {.domain = "techniques", .backend = "cpu", .verified = true, .one_thread = true};
        snprintf(about.name, sizeof about.name, "%s: %s", row->technique, row->name);
        snprintf(about.shape, sizeof about.shape, "%d words, one thread", WORDS);
        snprintf(about.unit, sizeof about.unit, "G%s/s", row->unit);
        if (status == LW_OK)
            status = bench_measure(b, &about, row->work * WORDS * h.rounds * 1e-9, run_case, &h, err);
    }
    free(in);
    return status;
}

/* What the float results of this CPU and C library look like. */
static lw_status host_floats(bench *b, lw_error *err)
{
    double fused = 0, apart = 0;
    for (int k = 12; k <= 23; k++) { /* see lab.c: residuals() */
        volatile float x = 1 + ldexpf(1, -k), y = -(1 + ldexpf(1, 1 - k));
        volatile float product = x * x;
        double want = ldexp(1, -2 * k), one = fabs(fmaf(x, x, y) - want) / want,
               two = fabs((double)product + y - want) / want;
        fused = one > fused ? one : fused;
        apart = two > apart ? two : apart;
    }
    LW_TRY(bench_find(b, "residual x*x + y, CPU", "", err,
                      "k = 12 to 23: the greatest relative error is %g by fmaf and %g with two roundings",
                      fused, apart));
    int normal = 0, subnormal = 0, zero = 0;
    for (int i = 0; i < LAB_CENSUS; i++) {
        volatile float x = (float)(-87 - 0.02 * i);
        float r = expf(x);
        normal += r >= 0x1p-126f;
        subnormal += r > 0 && r < 0x1p-126f;
        zero += r == 0;
    }
    return bench_find(b, "tail of expf, CPU", "", err,
                      "of exp(-87) to exp(-107.46) in %d steps, %d are normal, %d subnormal, %d zero",
                      LAB_CENSUS, normal, subnormal, zero);
}

lw_status bench_techniques(bench *b, lw_error *err)
{
    lw_error reason = {0};
    lw_device device;
    if (bench_wants(b, "cpu")) {
        LW_TRY(host_kernels(b, err));
        LW_TRY(host_floats(b, err));
    }
    if (!wants_gpu(b))
        return LW_OK;
    if (lw_device_query(b->device, &device, &reason) != LW_OK)
        return bench_skip(b, "techniques", "GPU", reason.message, err);
    return lab_techniques(b, err);
}
