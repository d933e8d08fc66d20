/* simd_tile.h - matrix tiles of AMX under names that kernels use: 16 rows of 64 bytes each. Tiles are named
 * by numbers 0 to 7, which must be constants.
 *
 *   lw_tile_begin(), lw_tile_end()   around a thread's use of tiles, whose content then is undefined; what
 * tiles are loaded from must have been written by another function lw_tile_zero(t) lw_tile_load(t, p,
 * stride), lw_tile_store(t, p, stride)   rows `stride` bytes apart lw_tile_dot(c, a, b)             c[i][j]
 * += sum over k of a[i][k] * b[k / 4][4 j + k % 4] for 64 k: a unsigned bytes, b signed bytes, c int32, exact
 * modulo 2^32 */
#ifndef LW_SIMD_TILE_H
#define LW_SIMD_TILE_H

#include <immintrin.h>
#include <stdint.h>

enum { LW_TILE_ROWS = 16, LW_TILE_BYTES = 64 };

/* Palette 1 with all eight tiles. In memory from the start: the compiler sees the instruction read 8 bytes of
 * it only, and would drop stores to the others. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} lw_tile_shapes = {
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

static inline void lw_tile_begin(void)
{
    _tile_loadconfig(&lw_tile_shapes);
}

static inline void lw_tile_end(void)
{
    _tile_release();
}

/* macros, since the numbers become part of the instructions' names */
#define lw_tile_zero(t) _tile_zero(t)
#define lw_tile_load(t, p, stride) _tile_loadd(t, p, stride)
#define lw_tile_store(t, p, stride) _tile_stored(t, p, stride)
#define lw_tile_dot(c, a, b) _tile_dpbusd(c, a, b)

#endif
