/* infer_cpu_isa.c - the int8 product of one instruction set. Compiled once per instruction set
 * (src/infer/CMakeLists.txt) with LW_ISA_NAME set to its name. */
#include "infer/infer_cpu_kernels.h"

#include "common/simd_dot.h"
#include "infer/infer_tuning.h"

enum { COLUMNS = LW_CPU_GEMM_VECTORS * LW_DOT_LANES };

/* Row by row over all panels, so that whole cache lines of b are used while they are there. */
static void pack(const void *b, bool is_signed, int64_t ldb, int64_t k, int panels, int16_t *panel)
{
    static const uint8_t zeros[LW_CPU_GEMM_PANELS * COLUMNS];
    const int64_t panel_size = (k + 1) / 2 * 2 * COLUMNS;
    const uint8_t *row = b;
    for (int64_t i = 0; i < k; i += 2, row += 2 * ldb, panel += 2 * COLUMNS) {
        const uint8_t *next = i + 1 < k ? row + ldb : zeros;
        for (int p = 0; p < panels; p++)
            for (int v = 0; v < LW_CPU_GEMM_VECTORS; v++) {
                int at = p * COLUMNS + v * LW_DOT_LANES;
                lw_store(panel + p * panel_size + v * 2 * LW_DOT_LANES,
                         is_signed ? lw_v16_pairs_s8(row + at, next + at)
                                   : lw_v16_pairs_u8(row + at, next + at));
            }
    }
}

/* `rows` is a constant at each call below, so that the sums stay in registers. */
LW_SIMD void multiply_rows(int rows, const int32_t *a, int64_t lda, int64_t pairs, const int16_t *panel,
                           int32_t *c, int64_t ldc)
{
    lw_vec sum[LW_CPU_GEMM_ROWS][LW_CPU_GEMM_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < LW_CPU_GEMM_VECTORS; v++)
            sum[i][v] = lw_v32_set1(0);
    for (int64_t k = 0; k < pairs; k++) {
        lw_vec b[LW_CPU_GEMM_VECTORS];
        for (int v = 0; v < LW_CPU_GEMM_VECTORS; v++)
            b[v] = lw_load(panel + (k * LW_CPU_GEMM_VECTORS + v) * 2 * LW_DOT_LANES);
        for (int i = 0; i < rows; i++) {
            lw_vec pair = lw_v32_set1((uint32_t)a[i * lda + k]);
            for (int v = 0; v < LW_CPU_GEMM_VECTORS; v++)
                sum[i][v] = lw_v16_dot(sum[i][v], pair, b[v]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < LW_CPU_GEMM_VECTORS; v++)
            memcpy(c + i * ldc + v * LW_DOT_LANES, &sum[i][v], sizeof sum[i][v]);
}

static void multiply(int rows, const int32_t *a, int64_t lda, int64_t pairs, const int16_t *panel, int32_t *c,
                     int64_t ldc)
{
    switch (rows) {
    case 1:
        multiply_rows(1, a, lda, pairs, panel, c, ldc);
        break;
    case 2:
        multiply_rows(2, a, lda, pairs, panel, c, ldc);
        break;
    case 3:
        multiply_rows(3, a, lda, pairs, panel, c, ldc);
        break;
    case 4:
        multiply_rows(4, a, lda, pairs, panel, c, ldc);
        break;
    case 5:
        multiply_rows(5, a, lda, pairs, panel, c, ldc);
        break;
    default:
        multiply_rows(6, a, lda, pairs, panel, c, ldc);
    }
}
_Static_assert(LW_CPU_GEMM_ROWS == 6, "multiply() has a case for each number of rows");

#define ISA_PASTE(a, b) a##b
#define ISA_TABLE(name) ISA_PASTE(lw_infer_kernels_, name)
const lw_infer_cpu_kernels ISA_TABLE(LW_ISA_NAME) = {.columns = COLUMNS, .pack = pack, .multiply = multiply};
