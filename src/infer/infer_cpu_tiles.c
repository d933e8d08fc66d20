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

/* Tile after tile: for every 64 bytes of depth, 32 rows of 64 bytes one after the other. Signed bytes plus
 * 128, missing rows and bytes 0. */
static void pack_a(const uint8_t *row, bool is_signed, int64_t k, int64_t steps, int i, int32_t *tile,
                   int32_t *row_sum)
{
    uint8_t flip = is_signed ? 0x80 : 0, *to = (uint8_t *)(void *)tile + i * LW_TILE_BYTES;
    uint32_t sum = 0;
    for (int64_t left = k, s = 0; s < steps; s += STEPS, to += ROWS * LW_TILE_BYTES) {
        if (!row) {
            memset(to, 0, LW_TILE_BYTES);
            continue;
        }
        int here = left < LW_TILE_BYTES ? (int)left : LW_TILE_BYTES;
        if (here == LW_TILE_BYTES)
            for (int b = 0; b < LW_TILE_BYTES; b++)
                sum += to[b] = row[b] ^ flip;
        else
            for (int b = 0; b < LW_TILE_BYTES; b++)
                sum += to[b] = b < here ? row[b] ^ flip : 0;
        row += here;
        left -= here;
    }
    if (row_sum)
        *row_sum = (int32_t)sum;
}

static void multiply(const int32_t *a, int64_t steps, const int8_t *panel, const int8_t *next, int64_t ahead,
                     bool add, int32_t *c, int64_t ldc)
{
    /* what is fetched of `next` beside each tile of the depth */
    int64_t each = ahead * STEPS / (2 * steps);
    for (int half = 0; half < COLUMNS; half += 32) {
        int32_t *c0 = c + half, *c1 = c0 + LW_TILE_ROWS * ldc;
        const int8_t *b = panel + half * DEPTH;
        const int32_t *x = a;
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
        for (int64_t s = 0; s < steps; s += STEPS, b += STEPS * STEP, x += STEPS * ROWS) {
            lw_tile_load(4, x, LW_TILE_BYTES);
            lw_tile_load(6, b, STEP);
            lw_tile_load(7, b + 16 * DEPTH, STEP);
            lw_tile_dot(0, 4, 6);
            lw_tile_load(5, x + STEPS * LW_TILE_ROWS, LW_TILE_BYTES);
            lw_tile_dot(1, 4, 7);
            lw_tile_dot(2, 5, 6);
            lw_tile_dot(3, 5, 7);
            for (int64_t at = 0; at < each; at += 64)
                __builtin_prefetch(next + at, 0, 2);
            next += each;
        }
        lw_tile_store(0, c0, ldc * 4);
        lw_tile_store(1, c0 + 16, ldc * 4);
        lw_tile_store(2, c1, ldc * 4);
        lw_tile_store(3, c1 + 16, ldc * 4);
    }
}

const lw_infer_cpu_tiles lw_infer_tiles_amx = {
    .pack_a = pack_a, .begin = lw_tile_begin, .end = lw_tile_end, .multiply = multiply};
