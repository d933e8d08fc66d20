/* test_products.c - every backend's int8 products and convolutions against the scalar reference: the same
 * bits, on every instruction set that this processor has. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "infer/infer_backend.h"
#include "infer/product.h"

static uint64_t state = 1;

static uint32_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static int64_t up_to(int64_t least, int64_t most)
{
    return least + next() % (most - least + 1);
}

static uint8_t *bytes(int64_t n)
{
    uint8_t *p = malloc((size_t)n + 1);
    bool extreme = next() % 4 == 0; /* both ends: where 16-bit sums would saturate */
    for (int64_t i = 0; i < n; i++)
        p[i] = extreme ? (next() % 2 ? 0x80 : 0x7f) ^ (next() % 2 ? 0xff : 0) : (uint8_t)next();
    return p;
}

/* Weights whose pairs stay within the bound of the narrow kernels, and reach it; or all but a few. */
static void make_narrow(uint8_t *p, int64_t n, bool is_signed, bool all)
{
    static const int8_t large[] = {-128, 127, -128, -128, 127, 127, 65, -65, -65, 64};
    for (int64_t i = 0; i < n; i++)
        p[i] = (uint8_t)((p[i] & 0x80 ? -64 : 64) + (is_signed ? 0 : 128));
    for (int64_t i = next() % 600; !all && i < n; i += 300 + next() % 600)
        for (int64_t j = i, last = i + 1 + next() % 2; j < last && j < n; j++)
            p[j] = (uint8_t)(large[next() % sizeof large] + (is_signed ? 0 : 128));
}

static int32_t *zeros_of(int64_t n, bool is_signed)
{
    int32_t *p = malloc((size_t)n * sizeof *p + 1);
    for (int64_t i = 0; i < n; i++)
        p[i] = (int32_t)(next() % 256) - (is_signed ? 128 : 0);
    return p;
}

typedef struct operands {
    lw_result result;
    int32_t *bias;
    float *multiplier, *row_scale, *real_bias;
} operands;

static operands random_result(int64_t m, int64_t n, bool rows)
{
    operands o = {.bias = malloc((size_t)n * 4 + 4),
                  .multiplier = malloc((size_t)n * 4 + 4),
                  .row_scale = malloc((size_t)m * 4 + 4),
                  .real_bias = malloc((size_t)n * 4 + 4)};
    for (int64_t j = 0; j < n; j++) {
        o.bias[j] = (int32_t)(next() % 200001) - 100000;
        /* powers of two make ties at .5 */
        o.multiplier[j] = next() % 2 ? 1.0f / (float)(1 << next() % 16) : (float)(next() % 1000 + 1) * 1e-6f;
        o.real_bias[j] = (float)(next() % 1000) * 0.01f;
    }
    for (int64_t i = 0; i < m; i++)
        o.row_scale[i] = (float)(next() % 100 + 1) * 0.01f;
    bool is_signed = next() % 2;
    o.result = (lw_result){.kind = (lw_result_kind)(next() % 3),
                           .bias = next() % 2 ? o.bias : NULL,
                           .multiplier = o.multiplier,
                           .one_multiplier = next() % 3 == 0,
                           .row_scale = rows && next() % 2 ? o.row_scale : NULL,
                           .real_bias = next() % 2 ? o.real_bias : NULL,
                           .zero = (int32_t)(next() % 256) - (is_signed ? 128 : 0),
                           .low = is_signed ? -128 : 0,
                           .high = is_signed ? 127 : 255};
    return o;
}

static void free_result(operands *o)
{
    free(o->bias);
    free(o->multiplier);
    free(o->row_scale);
    free(o->real_bias);
}

/* Calls each backend but the first, the CPU with each instruction set. */
static void each_backend(void (*check)(const lw_infer_backend *backend, const char *name, void *arg),
                         void *arg)
{
    static const char *const disable[] = {
        "", "dotprod", "amx", "avx512vnni", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon"};
    for (int b = 1; b < lw_infer_backend_count; b++) {
        lw_error err = {0};
        const lw_infer_backend *backend = lw_infer_backends[b];
        if (!backend->gemm || backend->base.usable(&backend->base, 0, &err) != LW_OK)
            continue;
        bool is_cpu = strcmp(backend->base.name, "cpu") == 0;
        unsigned set = 0;
        for (size_t d = 0; d < (is_cpu ? sizeof disable / sizeof *disable : 1); d++) {
            char name[100];
            unsigned before = set;
            setenv("LANEWISE_DISABLE", disable[d], 1);
            cr_assert_eq(lw_isa_usable(&set, &err), LW_OK);
            if (set == before) /* this processor has none of them */
                continue;
            snprintf(name, sizeof name, "%s less '%s'", backend->base.name, disable[d]);
            check(backend, name, arg);
        }
        unsetenv("LANEWISE_DISABLE");
    }
}

/* Teams of several sizes, and the calling thread alone: all give the same bits. */
enum { TEAMS = 4 };

static void open_teams(lw_pool **pool)
{
    static const int threads[TEAMS - 1] = {5, 2, 16};
    for (int i = 0; i < TEAMS - 1; i++)
        cr_assert_eq(lw_pool_open_team(&pool[i], threads[i], NULL), LW_OK);
    pool[TEAMS - 1] = NULL;
}

static void close_teams(lw_pool **pool)
{
    for (int i = 0; i < TEAMS; i++)
        lw_pool_close(pool[i]);
}

typedef struct gemm_case {
    lw_gemm g;
    void *want, *got;
    size_t bytes;
    lw_pool *const *pool; /* TEAMS */
} gemm_case;

static void check_gemm(const lw_infer_backend *backend, const char *name, void *arg)
{
    gemm_case *c = arg;
    lw_error err = {0};
    lw_gemm g = c->g;
    lw_kept kept = {0};
    g.c = c->got;
    for (int run = 0; run < TEAMS; run++) { /* nothing kept, then kept, then used again */
        g.keep_b = run ? &kept : NULL;
        memset(c->got, 0x55, c->bytes);
        cr_assert_eq(backend->gemm(c->pool[run], &g, &err), LW_OK, "%s: %s", name, err.message);
        cr_assert(memcmp(c->got, c->want, c->bytes) == 0,
                  "%s, run %d: %lld x %lld x %lld, a %s, b %s%s, result %d", name, run, (long long)g.m,
                  (long long)g.n, (long long)g.k, g.a_signed ? "s8" : "u8", g.b_signed ? "s8" : "u8",
                  g.b_transposed ? " transposed" : "", g.result.kind);
    }
    if (kept.release)
        kept.release(kept.data);
}

Test(products, gemm, .timeout = 300)
{
    static const int64_t sizes[][3] = {{1, 1, 1},   {1, 70, 4099},  {7, 33, 3},   {5, 64, 1024},   {6, 16, 2},
                                       {13, 17, 0}, {97, 257, 515}, {200, 65, 9}, {64, 1100, 2050}};
    lw_pool *pool[TEAMS];
    open_teams(pool);
    for (int round = 0; round < 60; round++) {
        const int64_t *s = sizes[round % (sizeof sizes / sizeof *sizes)];
        bool small = round >= 27;
        int64_t m = small ? up_to(1, 20) : s[0], n = small ? up_to(1, 150) : s[1],
                k = small ? up_to(1, 70) : s[2];
        bool sa = next() % 2, sb = next() % 2, transposed = next() % 2, by_column = next() % 4 == 0;
        int64_t lda = k + up_to(0, 3), ldb = (transposed ? k : n) + up_to(0, 3), ldc = (by_column ? m : n);
        uint8_t *a = bytes(m * lda), *b = bytes((transposed ? n : k) * ldb);
        if (round % 3 == 0)
            make_narrow(b, (transposed ? n : k) * ldb, sb, round % 2 == 0);
        int32_t *za = zeros_of(m, sa), *zb = zeros_of(n, sb);
        operands o = random_result(m, n, true);
        size_t size = (size_t)(m * n) * (o.result.kind == LW_RESULT_QUANTIZED ? 1 : 4);
        gemm_case c = {.g = {.m = m,
                             .n = n,
                             .k = k,
                             .a = a,
                             .b = b,
                             .a_signed = sa,
                             .b_signed = sb,
                             .b_transposed = transposed,
                             .lda = lda,
                             .ldb = ldb,
                             .ldc = ldc,
                             .a_zero = za,
                             .b_zero = zb,
                             .a_zero_is_scalar = next() % 2,
                             .b_zero_is_scalar = next() % 2,
                             .result = o.result,
                             .c_by_column = by_column},
                       .want = malloc(size),
                       .got = malloc(size),
                       .bytes = size,
                       .pool = pool};
        c.g.c = c.want;
        cr_assert_eq(lw_infer_backends[0]->gemm(NULL, &c.g, NULL), LW_OK);
        each_backend(check_gemm, &c);
        free(a), free(b), free(za), free(zb), free(c.want), free(c.got);
        free_result(&o);
    }
    close_teams(pool);
}

typedef struct conv_case {
    lw_conv v;
    void *want, *got;
    size_t bytes;
    lw_pool *pool;
} conv_case;

static void check_conv(const lw_infer_backend *backend, const char *name, void *arg)
{
    conv_case *c = arg;
    lw_error err = {0};
    lw_conv v = c->v;
    lw_kept kept = {0};
    v.y = c->got;
    for (int run = 0; run < 3; run++) {
        v.keep_w = run ? &kept : NULL;
        memset(c->got, 0x55, c->bytes);
        cr_assert_eq(backend->conv(c->pool, &v, &err), LW_OK, "%s: %s", name, err.message);
        cr_assert(memcmp(c->got, c->want, c->bytes) == 0, "%s, run %d: %lld -> %lld channels, result %d",
                  name, run, (long long)v.c, (long long)v.o, v.result.kind);
    }
    if (kept.release)
        kept.release(kept.data);
}

Test(products, conv, .timeout = 300)
{
    lw_pool *pool;
    cr_assert_eq(lw_pool_open_team(&pool, 3, NULL), LW_OK);
    for (int round = 0; round < 60; round++) {
        lw_conv v = {.dims = 1 + round % 3,
                     .c = up_to(1, 5),
                     .o = up_to(1, 20),
                     .in = {1, 1, 1},
                     .out = {1, 1, 1},
                     .kernel = {1, 1, 1},
                     .stride = {1, 1, 1},
                     .dilation = {1, 1, 1},
                     .images = up_to(1, 3),
                     .x_signed = next() % 2,
                     .w_signed = next() % 2};
        for (int k = 3 - v.dims; k < 3; k++) {
            v.kernel[k] = up_to(1, 4);
            v.stride[k] = up_to(1, 3);
            v.dilation[k] = up_to(1, 3);
            v.pad[k] = up_to(0, 5);
            int64_t reach = (v.kernel[k] - 1) * v.dilation[k] + 1, end = up_to(0, 5);
            v.in[k] = up_to(1, v.dims == 1 ? 1500 : v.dims == 2 ? 30 : 9);
            if (v.in[k] + v.pad[k] + end < reach)
                v.in[k] = reach;
            v.out[k] = (v.in[k] + v.pad[k] + end - reach) / v.stride[k] + 1;
        }
        int64_t in = v.in[0] * v.in[1] * v.in[2], out = v.out[0] * v.out[1] * v.out[2],
                patch = v.c * v.kernel[0] * v.kernel[1] * v.kernel[2];
        v.x_step = v.c * in;
        v.y_step = v.o * out;
        uint8_t *x = bytes(v.images * v.x_step), *w = bytes(v.o * patch);
        if (round % 2)
            make_narrow(w, v.o * patch, v.w_signed, round % 4 == 1);
        int32_t *zw = zeros_of(v.o, v.w_signed);
        operands o = random_result(1, v.o, false);
        v.x = x;
        v.w = w;
        v.w_zero = zw;
        v.x_zero = (int32_t)(next() % 256) - (v.x_signed ? 128 : 0);
        v.result = o.result;
        size_t size = (size_t)(v.images * v.y_step) * (o.result.kind == LW_RESULT_QUANTIZED ? 1 : 4);
        conv_case c = {.v = v, .want = malloc(size), .got = malloc(size), .bytes = size, .pool = pool};
        c.v.y = c.want;
        cr_assert_eq(lw_infer_backends[0]->conv(NULL, &c.v, NULL), LW_OK);
        each_backend(check_conv, &c);
        free(x), free(w), free(zw), free(c.want), free(c.got);
        free_result(&o);
    }
    lw_pool_close(pool);
}

/* Sums in the order of k, however the product is shared out. */
Test(products, floats)
{
    static const int64_t sizes[][3] = {{4, 33, 70}, {50, 70, 33}, {130, 20, 400}, {31, 390, 385}};
    lw_pool *pool[TEAMS];
    open_teams(pool);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        float *a = malloc((size_t)(m * k) * sizeof *a), *b = malloc((size_t)(k * n) * sizeof *b),
              *c = malloc((size_t)(m * n) * sizeof *c);
        lw_kept kept = {0};
        for (int64_t i = 0; i < m * k; i++)
            a[i] = (float)(int)(next() % 2001) / 1000 - 1;
        for (int64_t i = 0; i < k * n; i++)
            b[i] = (float)(int)(next() % 2001) / 1000 - 1;
        for (int run = 0; run < TEAMS; run++) {
            lw_float_gemm g = {.m = m,
                               .n = n,
                               .k = k,
                               .a = a,
                               .a_row = k,
                               .a_column = 1,
                               .b = b,
                               .b_row = n,
                               .b_column = 1,
                               .c = c,
                               .ldc = n,
                               .alpha = 1,
                               .keep_b = run ? &kept : NULL};
            memset(c, 0x55, (size_t)(m * n) * sizeof *c);
            cr_assert_eq(lw_float_product(pool[run], &g, NULL), LW_OK);
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    float sum = 0;
                    for (int64_t l = 0; l < k; l++) {
                        volatile float product = a[i * k + l] * b[l * n + j]; /* rounded by itself */
                        sum += product;
                    }
                    cr_assert(sum == c[i * n + j], "%lld x %lld x %lld, run %d", (long long)m, (long long)n,
                              (long long)k, run);
                }
        }
        kept.release(kept.data);
        free(a), free(b), free(c);
    }
    close_teams(pool);
}
