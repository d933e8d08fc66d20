/* product_float.h - the float product's kernel, which product_float_isa.c holds for each instruction set. */
#ifndef LW_PRODUCT_FLOAT_H
#define LW_PRODUCT_FLOAT_H

#include <stdbool.h>
#include <stdint.h>

enum { LW_FLOAT_TILE_ROWS = 6, LW_FLOAT_TILE_COLUMNS = 32 /* at most */ };

/* Depth of a block: a panel's (384 x 16 numbers, 24 KiB) stays in a 32 KiB first-level cache. */
enum { LW_FLOAT_DEPTH = 384 };

/* Tasks a worker, at least, where B is packed already. */
enum { LW_FLOAT_TASKS = 4 };

typedef struct lw_float_kernels {
    int columns; /* of a tile */
    /* c[i][j] (0 first, unless `add`) += the products of a tile of A, `rows` numbers for each k, and a panel
     * of B, `columns` numbers for each k, one after the other in the order of k, each operation rounded. */
    void (*multiply)(int rows, int64_t k, const float *a, const float *b, bool add, float *c, int64_t ldc);
} lw_float_kernels;

extern const lw_float_kernels lw_float_kernels_plain, lw_float_kernels_avx2, lw_float_kernels_avx512bw;

#endif
