/* product_float_isa.c - the float product of one instruction set. Compiled once per instruction set
 * (src/infer/CMakeLists.txt) with LW_ISA_NAME set to its name. */
#include "infer/product_float.h"

#include "common/simd_real.h"

enum { COLUMNS = 2 * LW_REAL_LANES };
_Static_assert((int)COLUMNS <= (int)LW_FLOAT_TILE_COLUMNS, "the caller's sums have room");

/* `rows` is a constant at each call below, so that the sums stay in registers; GCC 12 keeps the elements of
 * an array in memory as well. 6 x 2 sums, two vectors of B and one of A: 15 registers. */
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define NAMES(i) lw_real_vec sum##i##0 = lw_real_set1(0), sum##i##1 = sum##i##0;
#define GET(i)                                                                                               \
    if (rows > i) {                                                                                          \
        sum##i##0 = lw_real_load(c + i * ldc);                                                               \
        sum##i##1 = lw_real_load(c + i * ldc + LW_REAL_LANES);                                               \
    }
#define ADD(i)                                                                                               \
    if (rows > i) {                                                                                          \
        lw_real_vec x = lw_real_set1(a[i]);                                                                  \
        sum##i##0 = sum##i##0 + x * b0;                                                                      \
        sum##i##1 = sum##i##1 + x * b1;                                                                      \
    }
#define PUT(i)                                                                                               \
    if (rows > i) {                                                                                          \
        lw_real_store(c + i * ldc, sum##i##0);                                                               \
        lw_real_store(c + i * ldc + LW_REAL_LANES, sum##i##1);                                               \
    }
LW_SIMD void multiply_rows(int rows, int64_t k, const float *a, const float *b, bool add, float *c,
                           int64_t ldc)
{
    EACH_ROW(NAMES)
    if (add) {
        EACH_ROW(GET)
    }
    for (; k > 0; k--, a += rows, b += COLUMNS) {
        lw_real_vec b0 = lw_real_load(b), b1 = lw_real_load(b + LW_REAL_LANES);
        EACH_ROW(ADD)
    }
    EACH_ROW(PUT)
}

static void multiply(int rows, int64_t k, const float *a, const float *b, bool add, float *c, int64_t ldc)
{
    switch (rows) {
    case 1:
        multiply_rows(1, k, a, b, add, c, ldc);
        break;
    case 2:
        multiply_rows(2, k, a, b, add, c, ldc);
        break;
    case 3:
        multiply_rows(3, k, a, b, add, c, ldc);
        break;
    case 4:
        multiply_rows(4, k, a, b, add, c, ldc);
        break;
    case 5:
        multiply_rows(5, k, a, b, add, c, ldc);
        break;
    default:
        multiply_rows(6, k, a, b, add, c, ldc);
    }
}
_Static_assert(LW_FLOAT_TILE_ROWS == 6, "multiply() has a case for each number of rows");

#define ISA_PASTE(a, b) a##b
#define ISA_TABLE(name) ISA_PASTE(lw_float_kernels_, name)
const lw_float_kernels ISA_TABLE(LW_ISA_NAME) = {COLUMNS, multiply};
