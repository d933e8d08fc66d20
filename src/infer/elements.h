/* elements.h - functions of many floats, which elements_isa.c holds for each instruction set. */
#ifndef LW_ELEMENTS_H
#define LW_ELEMENTS_H

#include <stdint.h>

#include "lanewise/lanewise.h"

/* y[i] = f(x[i]), the same bits on every instruction set, as all here are. */
typedef void (*lw_elements_function)(int64_t n, const float *x, float *y);

typedef struct lw_elements {
    lw_elements_function erf;
    lw_elements_function gelu; /* x / 2 (1 + erf(x / sqrt 2)), each operation rounded */
    /* Rows of n numbers each; sums in double, of every eighth number and then of those eight. x may be y. */
    void (*softmax)(int64_t rows, int64_t n, const float *x, float *y);
    /* (x - mean) / sqrt(variance + epsilon) * scale + bias; bias, mean and inverse may be NULL. */
    void (*layer_norm)(int64_t rows, int64_t n, const float *x, const float *scale, const float *bias,
                       float epsilon, float *y, float *mean, float *inverse);
} lw_elements;

extern const lw_elements lw_elements_plain, lw_elements_avx2, lw_elements_avx512bw;

/* Those of this processor. LW_E_ARG: LANEWISE_DISABLE names something unknown. */
lw_status lw_elements_choose(const lw_elements **out, lw_error *err);

#endif
