/* paths_kernels.h - the device functions of blocked Floyd-Warshall, as the driver in paths_cuda.cu launches
 * them: one table row per arithmetic, geometry beside the function pointers.
 *
 * Words. A matrix on the device is rows of words; a word holds `lanes` neighbouring distances (1, or 2 in
 * 16 bits). Sizes are padded to whole tiles with infinity, which no shortest path uses.
 *
 * Blocks. `tile` pivots make a k-block. Rows and columns of the matrix are cut into blocks of `tile`
 * distances; a thread block of the product computes tile x (cols * lanes) of them.
 *
 * Panels. The product reads its operands from packed panels: a[row block][pivot][tile], which is the column
 * panel transposed (each distance in all lanes of its word), and b[column tile][pivot][cols], the row
 * panel. `pitch` is the number of pivots that a panel holds. */
#ifndef LW_PATHS_KERNELS_H
#define LW_PATHS_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* c[i][j] = min(c[i][j], min over k < depth of a[k][i] + b[k][j]) on the tiles of a matrix of rows x rows
 * blocks. cross: block row and block column `at`, without block row and block column `skip` and
 * without block (at, at). Otherwise: all but block rows and block columns skip .. skip + n_skip - 1. */
typedef struct lw_paths_product {
    void *c;
    int64_t ldc; /* words */
    const void *a, *b;
    int64_t pitch;
    int32_t depth;             /* a multiple of the stage depth; the tile is one */
    int32_t one;               /* 1 */
    int32_t cross, rows, cols; /* in blocks */
    int32_t at, skip, n_skip;
} lw_paths_product;

/* Thread blocks of a product. */
static inline int64_t lw_paths_product_blocks(const lw_paths_product *p, int per_block)
{
    if (p->cross) /* the row, then the column; at == skip: the panels of one k-block */
        return (p->cols - 1 + p->rows - (p->at == p->skip ? 1 : 2)) * (int64_t)per_block;
    return (p->rows - p->n_skip) * (int64_t)(p->cols - p->n_skip) * per_block;
}

/* Packs depth pivots from k0 (both multiples of the tile) into panels at pivot 0: a from columns k0.. of c,
 * b from rows k0.. of c; either may be NULL. */
typedef struct lw_paths_pack {
    const void *c;
    int64_t ldc;
    int64_t k0;
    void *a, *b;
    int64_t pitch;
    int64_t offset; /* first pivot inside the panel */
} lw_paths_pack;

/* Floyd-Warshall of the diagonal block at k0. *negative becomes 1 when a pivot k has d(k,k) < 0: the first
 * such k is the highest vertex of a negative cycle, and until then no number has grown past a real path. */
typedef struct lw_paths_diagonal {
    void *c;
    int64_t ldc;
    int64_t k0;
    int *negative;
} lw_paths_diagonal;

typedef struct lw_paths_kernels {
    const char *name; /* as reports spell it */
    int bytes;        /* of a word */
    int lanes;
    int tile, cols;
    int threads, shared; /* of the product */
    double rate;         /* relaxations a clock and multiprocessor, for estimates (paths_tuning.h) */
    void (*product)(lw_paths_product);
    void (*pack)(lw_paths_pack);
    void (*diagonal)(lw_paths_diagonal);
} lw_paths_kernels;

extern const lw_paths_kernels lw_paths_s32_dpx, lw_paths_u16_dpx, lw_paths_f32_dpx; /* paths_cuda_dpx.cu */
extern const lw_paths_kernels lw_paths_s32_plain, lw_paths_f32_plain, lw_paths_s64_plain,
    lw_paths_f64_plain; /* paths_cuda_plain.cu */

enum { LW_PACK_THREADS = 256, LW_PACK_WORDS = 32 }; /* a pack block reads LW_PACK_WORDS words of a row */
enum { LW_DIAGONAL_ROWS = 4 };                      /* a thread of the diagonal holds 4 x 4 distances */

#ifdef __cplusplus
}
#endif
#endif
