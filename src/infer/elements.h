/* elements.h - functions of many floats, which elements_isa.c holds for each instruction set. */
#ifndef LW_ELEMENTS_H
#define LW_ELEMENTS_H

#include <stdint.h>

/* y[i] = f(x[i]), the same bits on every instruction set. */
typedef void (*lw_elements_function)(int64_t n, const float *x, float *y);

typedef struct lw_elements {
    lw_elements_function erf;
    lw_elements_function gelu; /* x / 2 (1 + erf(x / sqrt 2)), each operation rounded */
} lw_elements;

extern const lw_elements lw_elements_plain, lw_elements_avx2, lw_elements_avx512bw;

#endif
