/* infer_cpu_kernels.h - the kernels that infer_cpu_isa.c holds for each instruction set.
 *
 * A step is `depth` consecutive rows of B (2 or 4), what one 32-bit lane sums at a time. Operands as stored:
 *   B  signed bytes (unsigned ones less 128), in panels of `columns` columns: for each step, `columns` groups
 *      of `depth` bytes; missing rows and columns are 0
 *   A  int32 for each row and step, as lw_dot_a() makes it (simd_dot.h); in tiles of up to LW_CPU_GEMM_ROWS
 * rows: for each step, one int32 of each row Zero points shift along; see infer_cpu.c. */
#ifndef LW_INFER_CPU_KERNELS_H
#define LW_INFER_CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include "infer/infer_backend.h"

/* A finished rectangle of a product: rows [first_row, +rows) and columns [first_column, +columns). */
typedef struct lw_infer_tile {
    int64_t first_row, first_column;
    int rows, columns;
    const int32_t *sum; /* of products as stored; ld int32 from row to row */
    int64_t ld;
    const int32_t *row_sum, *column_sum; /* of A and B as stored, from the first row and column on */
    int32_t a_shift, b_shift;            /* what was added to A and B, so to their zero points */
} lw_infer_tile;

/* What a panel of narrow B lacks: few single bytes, column by column. */
enum { LW_CPU_GEMM_A_BEYOND = 16, LW_INFER_EXCESS_COLUMNS = 16 };
typedef struct lw_infer_excess {
    struct lw_infer_excess_entry {
        uint32_t step;
        uint32_t group; /* its bytes, all but one 0 */
    } * entry;
    int64_t start[LW_INFER_EXCESS_COLUMNS + 1]; /* of each column's entries */
} lw_infer_excess;

typedef struct lw_infer_cpu_kernels {
    int columns; /* of a panel */
    int depth;
    int a_added[2];     /* to A's bytes, unsigned and signed ones, where they are stored */
    int steps_together; /* panels are filled up with zeros to a multiple of so many steps */
    /* Packs k rows and `columns` columns of b (the panel's first ones that exist), b[row * ldb + column]. */
    void (*pack)(const uint8_t *b, bool is_signed, int64_t ldb, int64_t k, int columns, int8_t *panel);
    /* The same from transposed storage, b[column * ldb + row]. */
    void (*pack_transposed)(const uint8_t *b, bool is_signed, int64_t ldb, int64_t k, int columns,
                            int8_t *panel);
    /* Packs a tile of A, a[row * lda + k]. */
    void (*pack_a)(const uint8_t *a, bool is_signed, int64_t lda, int64_t k, int rows, int32_t *tile,
                   int32_t *row_sum);
    void (*column_sums)(const int8_t *panel, int64_t steps, int32_t *sum);
    /* c[i][j] (+)= A's tile times the panel over `steps` steps. */
    void (*multiply)(int rows, const int32_t *a, int64_t steps, const int8_t *panel, bool add, int32_t *c,
                     int64_t ldc);
    /* Corrects for zero points and writes the tile as g->result says. */
    void (*finish)(const lw_gemm *g, const lw_infer_tile *tile);
    /* Faster kernels of the same instruction set for a B that is narrow: stored as signed bytes, rows 2 k and
     * 2 k + 1 sum to at most LW_DOT_NARROW_PAIR in magnitude (NULL: none). Those have: */
    const struct lw_infer_cpu_kernels *narrow;
    /* how many pairs of B are larger; strides in bytes; */
    int64_t (*count_excess)(const uint8_t *b, bool is_signed, int64_t row, int64_t column, int64_t k,
                            int64_t columns);
    /* making a packed panel narrow, what is too much going to *out, whose entries the caller frees; */
    lw_status (*take_excess)(int8_t *panel, int64_t steps, lw_infer_excess *out, lw_error *err);
    /* and c += A's tile times that. Reads LW_CPU_GEMM_A_BEYOND numbers beyond the tile. */
    void (*add_excess)(int rows, const int32_t *a, const lw_infer_excess *excess, int32_t *c, int64_t ldc);
} lw_infer_cpu_kernels;

/* Matrix tiles, which take the place of pack_a() and multiply() where there are many rows: A in groups of
 * LW_CPU_TILE_ROWS rows, missing ones 0, each of LW_CPU_TILE_ROWS * steps numbers in the tiles' own order. */
typedef struct lw_infer_cpu_tiles {
    /* Packs a group's row i (row NULL: a missing one). */
    void (*pack_a)(const uint8_t *row, bool is_signed, int64_t k, int64_t steps, int i, int32_t *tile,
                   int32_t *row_sum);
    /* Around a thread's calls of multiply(). */
    void (*begin)(void);
    void (*end)(void);
    /* a: of one group, from a step on that is a multiple of LW_CPU_TILE_STEPS, as `steps` is. Fetches about
     * `ahead` bytes from `next` into the caches meanwhile. */
    void (*multiply)(const int32_t *a, int64_t steps, const int8_t *panel, const int8_t *next, int64_t ahead,
                     bool add, int32_t *c, int64_t ldc);
} lw_infer_cpu_tiles;

extern const lw_infer_cpu_tiles lw_infer_tiles_amx;
extern const lw_infer_cpu_kernels lw_infer_kernels_plain, lw_infer_kernels_sse41, lw_infer_kernels_avx2,
    lw_infer_kernels_avx512bw, lw_infer_kernels_avx512vnni, lw_infer_kernels_dotprod, lw_infer_kernels_neon,
    lw_infer_kernels_avx2_narrow;

#endif
