/* paths_cpu_kernels.h - the vector kernels of the CPU backend, one table per instruction set. */
#ifndef LW_PATHS_CPU_KERNELS_H
#define LW_PATHS_CPU_KERNELS_H

#include <stdint.h>

/* Lane types: those of lw_paths_type in its order, then 16 bits. */
enum { LW_LANE_S32, LW_LANE_S64, LW_LANE_F32, LW_LANE_F64, LW_LANE_U16, LW_LANES };

/* Rows of a product tile. */
enum { LW_CPU_ROWS = 6 };

/* A panel of `rows` rows (or columns) and `depth` pivots is packed in strips of LW_CPU_ROWS rows (or `width`
 * columns): pivot after pivot, the strip's elements side by side; a strip that is not full is filled up with
 * infinity. */
typedef struct lw_paths_cpu_kernels {
    int width; /* columns of a product tile */
    int size;  /* bytes of an element */
    /* Floyd-Warshall within a depth x depth block. */
    void (*close)(void *block, int64_t ld, int depth);
    /* Packs m[0 .. rows) x m[0 .. depth), element (i, k) at i * ld + k. */
    void (*pack_rows)(void *out, const void *m, int64_t ld, int64_t rows, int depth);
    /* Packs m[0 .. depth) x m[0 .. columns), element (k, j) at k * ld + j. */
    void (*pack_columns)(void *out, const void *m, int64_t ld, int64_t columns, int depth);
    /* c := min(c, a + b) over rows x columns and all pivots; a from pack_rows, b from pack_columns. */
    void (*product)(void *c, int64_t ld, int64_t rows, int64_t columns, const void *a, const void *b,
                    int depth);
} lw_paths_cpu_kernels;

extern const lw_paths_cpu_kernels lw_paths_cpu_plain[LW_LANES], lw_paths_cpu_sse41[LW_LANES],
    lw_paths_cpu_avx2[LW_LANES], lw_paths_cpu_avx512bw[LW_LANES], lw_paths_cpu_neon[LW_LANES];

#endif
