/* elements_isa.c - functions of many floats for one instruction set. Compiled once per instruction set
 * (src/infer/CMakeLists.txt) with LW_ISA_NAME set to its name: plain loops for the compiler to make vectors
 * of. */
#include "infer/elements.h"

#include "common/real.h"

static void erf_of(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = lw_erf(x[i]);
}

static void gelu_of(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = 0.5f * x[i] * (1 + lw_erf(x[i] * 0.7071067811865476f));
}

/* ---- rows ------------------------------------------------------------------------------------------ */

enum { PARTS = 8 };

static double whole(const double part[PARTS])
{
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

/* The sum of `expression` over i in [0, n): every eighth, then those eight. */
#define SUM(result, expression)                                                                              \
    do {                                                                                                     \
        double part[PARTS] = {0};                                                                            \
        int64_t first = 0;                                                                                   \
        for (; first + PARTS <= n; first += PARTS)                                                           \
            for (int p = 0; p < PARTS; p++) {                                                                \
                int64_t i = first + p;                                                                       \
                part[p] += expression;                                                                       \
            }                                                                                                \
        for (int p = 0; first + p < n; p++) {                                                                \
            int64_t i = first + p;                                                                           \
            part[p] += expression;                                                                           \
        }                                                                                                    \
        result = whole(part);                                                                                \
    } while (0)

static void softmax(int64_t rows, int64_t n, const float *x, float *y)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        float most[PARTS], largest = -INFINITY;
        double sum;
        int64_t whole_parts = n / PARTS * PARTS;
        for (int p = 0; p < PARTS; p++)
            most[p] = largest;
        for (int64_t i = 0; i < whole_parts; i += PARTS)
            for (int p = 0; p < PARTS; p++)
                most[p] = x[i + p] > most[p] ? x[i + p] : most[p];
        for (int p = 0; p < PARTS; p++)
            largest = most[p] > largest ? most[p] : largest;
        for (int64_t i = whole_parts; i < n; i++)
            largest = x[i] > largest ? x[i] : largest;
        SUM(sum, lw_exp((double)x[i] - (double)largest));
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(lw_exp((double)x[i] - (double)largest) / sum);
    }
}

static void layer_norm(int64_t rows, int64_t n, const float *x, const float *scale, const float *bias,
                       float epsilon, float *y, float *mean, float *inverse)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        double sum, squares;
        SUM(sum, x[i]);
        double average = sum / (double)n;
        SUM(squares, ((double)x[i] - average) * ((double)x[i] - average));
        double by = 1 / sqrt(squares / (double)n + (double)epsilon);
        if (bias)
            for (int64_t i = 0; i < n; i++)
                y[i] = (float)(((double)x[i] - average) * by * (double)scale[i] + (double)bias[i]);
        else
            for (int64_t i = 0; i < n; i++)
                y[i] = (float)(((double)x[i] - average) * by * (double)scale[i]);
        if (mean)
            mean[r] = (float)average;
        if (inverse)
            inverse[r] = (float)by;
    }
}

#define ISA_PASTE(a, b) a##b
#define ISA_TABLE(name) ISA_PASTE(lw_elements_, name)
const lw_elements ISA_TABLE(LW_ISA_NAME) = {erf_of, gelu_of, softmax, layer_norm};
