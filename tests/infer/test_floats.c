/* test_floats.c - floats whose bits do not depend on the instruction set: products in the order of k, erf and
 * Gelu. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "common/real.h"
#include "infer/elements.h"
#include "infer/product.h"

static uint64_t state = 1;

static uint32_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static float *numbers(int64_t n)
{
    float *p = malloc((size_t)n * sizeof *p + 4);
    for (int64_t i = 0; i < n; i++)
        p[i] = (float)((int)(next() % 20001) - 10000) * 1e-3f;
    return p;
}

/* One element as docs/infer.md states it: alpha goes into A where rows of B are contiguous. */
static float sum_of(const lw_float_gemm *g, int64_t i, int64_t j, float before)
{
    bool scales_a = g->b_column == 1;
    float sum = scales_a && g->accumulate ? before : 0;
    for (int64_t k = 0; k < g->k; k++) {
        float a = g->a[i * g->a_row + k * g->a_column];
        sum += (scales_a ? g->alpha * a : a) * g->b[k * g->b_row + j * g->b_column];
    }
    return scales_a ? sum : g->alpha * sum + (g->accumulate ? before : 0);
}

Test(floats, products_sum_in_the_order_of_the_depth)
{
    for (int round = 0; round < 150; round++) {
        int64_t m = 1 + next() % 20, n = 1 + next() % 70, k = next() % (round % 8 ? 60 : 1000);
        bool a_turned = next() % 2, b_turned = next() % 2;
        float *a = numbers(m * k), *b = numbers(k * n), *c = numbers(m * n),
              *before = malloc((size_t)(m * n) * 4);
        lw_kept keep = {NULL, NULL};
        lw_float_gemm g = {.m = m,
                           .n = n,
                           .k = k,
                           .a = a,
                           .b = b,
                           .a_row = a_turned ? 1 : k,
                           .a_column = a_turned ? m : 1,
                           .b_row = b_turned ? 1 : n,
                           .b_column = b_turned ? k : 1,
                           .c = c,
                           .ldc = n,
                           .alpha = next() % 2 ? 1 : 0.3f,
                           .accumulate = next() % 2,
                           .keep_b = next() % 2 ? &keep : NULL};
        for (int turn = 0; turn < 2; turn++) { /* the second with what was kept */
            memcpy(before, c, (size_t)(m * n) * 4);
            cr_assert_eq(lw_float_product(NULL, &g, NULL), LW_OK);
            for (int64_t i = 0; i < m * n; i++) {
                float want = sum_of(&g, i / n, i % n, before[i]);
                cr_assert(c[i] == want, "round %d, %lld x %lld x %lld, element %lld: %.9g, not %.9g", round,
                          (long long)m, (long long)n, (long long)k, (long long)i, (double)c[i], (double)want);
            }
        }
        if (keep.release)
            keep.release(keep.data);
        free(a);
        free(b);
        free(c);
        free(before);
    }
}

Test(floats, erf_is_within_a_unit_in_the_last_place)
{
    int wrong = 0, count = 0;
    for (float x = 1e-30f; x < 8; x *= 1.0001f, count++) {
        float want = (float)erf((double)x), y = lw_erf(x);
        wrong += y != want;
        cr_assert(y == want || y == nextafterf(want, 0) || y == nextafterf(want, 2),
                  "erf(%.9g) is %.9g, not %.9g", (double)x, (double)y, (double)want);
        cr_assert(lw_erf(-x) == -y);
    }
    cr_assert(wrong <= 2, "%d of %d are not the correctly rounded ones", wrong, count);
    cr_assert(isnan(lw_erf(NAN)) && lw_erf(INFINITY) == 1 && lw_erf(-INFINITY) == -1);
    cr_assert(lw_erf(0.0f) == 0 && signbit(lw_erf(-0.0f)));
}

Test(floats, exp_is_the_c_library_s)
{
    for (double x = -710; x < 700; x += 0.0371) {
        double want = exp(x), y = lw_exp(x);
        cr_assert(x < -700 ? y < 1e-300 : fabs(y - want) <= 1e-14 * want, "exp(%.17g) is %.17g, not %.17g", x,
                  y, want);
    }
    cr_assert(isnan(lw_exp((double)NAN)) && lw_exp((double)-INFINITY) < 1e-300 && lw_exp(0) == 1);
}

Test(floats, tanh_and_sigmoid_are_the_nearest_floats)
{
    int wrong = 0, count = 0;
    for (float x = 1e-30f; x < 100; x *= 1.0001f, count++) {
        float want = (float)tanh((double)x), y = lw_tanh(x);
        wrong += y != want;
        cr_assert(y == want || y == nextafterf(want, 0) || y == nextafterf(want, 2),
                  "tanh(%.9g) is %.9g, not %.9g", (double)x, (double)y, (double)want);
        cr_assert(lw_tanh(-x) == -y);
        double sigmoid[2] = {1 / (1 + exp(-(double)x)), 1 / (1 + exp((double)x))};
        cr_assert(fabs(lw_sigmoid(x) - sigmoid[0]) <= 1.2e-7 * sigmoid[0]);
        cr_assert(fabs(lw_sigmoid(-x) - sigmoid[1]) <= 1.8e-7 * sigmoid[1] + 1e-38);
    }
    cr_assert(wrong <= 2, "%d of %d are not the correctly rounded ones", wrong, count);
    cr_assert(isnan(lw_tanh(NAN)) && lw_tanh(INFINITY) == 1 && lw_tanh(-INFINITY) == -1);
    cr_assert(lw_tanh(0.0f) == 0 && signbit(lw_tanh(-0.0f)));
    cr_assert(isnan(lw_sigmoid(NAN)) && lw_sigmoid(INFINITY) == 1 && lw_sigmoid(-INFINITY) < 1e-38f);
}

Test(floats, rows_are_the_same_on_every_instruction_set)
{
    const lw_elements *best;
    cr_assert_eq(lw_elements_choose(&best, NULL), LW_OK);
    for (int n = 1; n < 80; n++) {
        enum { ROWS = 3 };
        float *x = numbers(ROWS * n), *scale = numbers(n), *bias = numbers(n);
        float y[2][ROWS * 80], mean[2][ROWS], inverse[2][ROWS];
        if (n % 7 == 0)
            x[n / 2] = -INFINITY;
        lw_elements_plain.softmax(ROWS, n, x, y[0]);
        best->softmax(ROWS, n, x, y[1]);
        cr_assert(memcmp(y[0], y[1], (size_t)(ROWS * n) * 4) == 0);
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += (double)y[0][n + i];
        cr_assert(fabs(sum - 1) < 1e-6);
        x[n / 2] = 1;
        lw_elements_plain.layer_norm(ROWS, n, x, scale, n % 2 ? bias : NULL, 1e-5f, y[0], mean[0],
                                     inverse[0]);
        best->layer_norm(ROWS, n, x, scale, n % 2 ? bias : NULL, 1e-5f, y[1], mean[1], inverse[1]);
        cr_assert(memcmp(y[0], y[1], (size_t)(ROWS * n) * 4) == 0 &&
                  memcmp(mean[0], mean[1], sizeof *mean) == 0 &&
                  memcmp(inverse[0], inverse[1], sizeof *inverse) == 0);
        free(x);
        free(scale);
        free(bias);
    }
}

Test(floats, functions_of_many_are_those_of_one)
{
    const lw_elements *all[] = {
        &lw_elements_plain,
#if defined(__x86_64__)
        &lw_elements_avx2,
        &lw_elements_avx512bw,
#endif
    };
    static const int isa[] = {LW_ISA_PLAIN, LW_ISA_AVX2, LW_ISA_AVX512BW};
    unsigned usable;
    cr_assert_eq(lw_isa_usable(&usable, NULL), LW_OK);
    enum { N = 1003 };
    float *x = numbers(N), y[N];
    x[3] = NAN;
    x[4] = INFINITY;
    x[5] = -INFINITY;
    for (size_t v = 0; v < sizeof all / sizeof *all; v++) {
        if (!(usable >> isa[v] & 1))
            continue;
        for (int gelu = 0; gelu < 2; gelu++) {
            (gelu ? all[v]->gelu : all[v]->erf)(N, x, y);
            for (int i = 0; i < N; i++) {
                float want = gelu ? 0.5f * x[i] * (1 + lw_erf(x[i] * 0.7071067811865476f)) : lw_erf(x[i]);
                cr_assert(memcmp(&y[i], &want, 4) == 0 || (isnan(y[i]) && isnan(want)),
                          "f(%.9g) is %.9g, not %.9g", (double)x[i], (double)y[i], (double)want);
            }
        }
    }
    free(x);
}
