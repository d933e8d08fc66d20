/* infer_cpu_kernels.h - the kernels that infer_cpu_isa.c holds for each instruction set. */
#ifndef LW_INFER_CPU_KERNELS_H
#define LW_INFER_CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* B's panel of `columns` columns: for each pair of rows (k, k + 1), `columns` pairs of 16-bit numbers; rows
 * beyond k are 0. */
typedef struct lw_infer_cpu_kernels {
    int columns; /* of a panel */
    /* Packs `panels` panels, one after the other, of columns that all exist; b: k rows, ldb elements apart.
     */
    void (*pack)(const void *b, bool is_signed, int64_t ldb, int64_t k, int panels, int16_t *panel);
    /* c[i][j] = sum of a's pairs times the panel's, for `rows` <= LW_CPU_GEMM_ROWS rows; a: rows x pairs of
     * two 16-bit numbers as int32, lda int32 from row to row. */
    void (*multiply)(int rows, const int32_t *a, int64_t lda, int64_t pairs, const int16_t *panel, int32_t *c,
                     int64_t ldc);
} lw_infer_cpu_kernels;

extern const lw_infer_cpu_kernels lw_infer_kernels_plain, lw_infer_kernels_sse41, lw_infer_kernels_avx2,
    lw_infer_kernels_avx512bw, lw_infer_kernels_neon;

#endif
