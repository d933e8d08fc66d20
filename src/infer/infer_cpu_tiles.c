/* infer_cpu_tiles.c - the int8 product on AMX: 32 rows of A by two times 32 columns of a panel at a time, in
 * four tiles of sums. B is packed as for AVX-512 VNNI (infer_cpu_isa.c), whose kernels take over where there
 * are few rows. */
#include "infer/infer_cpu_kernels.h"

#include <string.h>

#include "common/simd_tile.h"
#include "infer/infer_tuning.h"

enum {
    DEPTH = 4,
    COLUMNS = 64,
    STEP = COLUMNS * DEPTH,
    STEPS = LW_TILE_BYTES / DEPTH,
    ROWS = 2 * LW_TILE_ROWS
};
_Static_assert((int)ROWS == (int)LW_CPU_TILE_ROWS && (int)STEPS == (int)LW_CPU_TILE_STEPS,
               "the caller lays A out in such tiles");

/* Row by row, signed bytes plus 128, missing rows and bytes 0. */
static void pack_a(const uint8_t *a, bool is_signed, int64_t lda, int64_t k, int64_t steps, int rows,
                   int32_t *tile, int32_t *row_sum)
{
    uint8_t flip = is_signed ? 0x80 : 0, *to = (uint8_t *)(void *)tile;
    for (int i = 0; i < ROWS; i++, to += steps * DEPTH) {
        uint32_t sum = 0;
        int64_t n = i < rows ? k : 0;
        for (int64_t b = 0; b < n; b++) {
            to[b] = a[i * lda + b] ^ flip;
            sum += to[b];
        }
        memset(to + n, 0, (size_t)(steps * DEPTH - n));
        if (i < rows)
            row_sum[i] = (int32_t)sum;
    }
}

static void multiply(const int32_t *a, int64_t lda, int64_t steps, const int8_t *panel, bool add, int32_t *c,
                     int64_t ldc)
{
    const int32_t *a1 = a + LW_TILE_ROWS * lda;
    for (int half = 0; half < COLUMNS; half += 32) {
        int32_t *c0 = c + half, *c1 = c0 + LW_TILE_ROWS * ldc;
        const int8_t *b = panel + half * DEPTH;
        if (add) {
            lw_tile_load(0, c0, ldc * 4);
            lw_tile_load(1, c0 + 16, ldc * 4);
            lw_tile_load(2, c1, ldc * 4);
            lw_tile_load(3, c1 + 16, ldc * 4);
        } else {
            lw_tile_zero(0);
            lw_tile_zero(1);
            lw_tile_zero(2);
            lw_tile_zero(3);
        }
        for (int64_t s = 0; s < steps; s += STEPS, b += STEPS * STEP) {
            lw_tile_load(4, a + s, lda * 4);
            lw_tile_load(6, b, STEP);
            lw_tile_load(7, b + 16 * DEPTH, STEP);
            lw_tile_dot(0, 4, 6);
            lw_tile_load(5, a1 + s, lda * 4);
            lw_tile_dot(1, 4, 7);
            lw_tile_dot(2, 5, 6);
            lw_tile_dot(3, 5, 7);
        }
        lw_tile_store(0, c0, ldc * 4);
        lw_tile_store(1, c0 + 16, ldc * 4);
        lw_tile_store(2, c1, ldc * 4);
        lw_tile_store(3, c1 + 16, ldc * 4);
    }
}

const lw_infer_cpu_tiles lw_infer_tiles_amx = {
    .pack_a = pack_a, .begin = lw_tile_begin, .end = lw_tile_end, .multiply = multiply};
