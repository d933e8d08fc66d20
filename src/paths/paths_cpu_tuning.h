/* paths_cpu_tuning.h - the numbers of the CPU backend and the measurements that chose them. */
#ifndef LW_PATHS_CPU_TUNING_H
#define LW_PATHS_CPU_TUNING_H

/* Pivots of a k-block: a strip of 96 x 16 s32 columns is 6 KB and stays in the first-level cache while all
 * row strips pass. */
enum { LW_CPU_PIVOTS = 96 };

/* Rows and columns of a tile: a multiple of 6 (rows of a product tile) and of every width up to 64 (u16 at
 * 512 bits). Tiles are the unit of packing. */
enum { LW_CPU_TILE = 192 };

/* Tiles of columns in one task of the product: 768 columns x 96 pivots x 4 bytes = 288 KB, second-level
 * cache. */
enum { LW_CPU_GROUP = 4 };

/* Rows of the matrix that the product fetches ahead of its tile, two tiles: on a Zen 3 core at n = 2,000 the
 * product ran at 36 / 24 / 10 / 50 G relaxations/s (s32, f32, f64, u16) without, 32 / 28 / 17 / 71 one tile
 * ahead, 43 / 36 / 18 / 62 two and 43 / 36 / 17 / 68 four. */
enum { LW_CPU_AHEAD = 12 };

/* Relaxations a second and core for the estimate, by lane type (s32, s64, f32, f64, u16). */
static const double lw_cpu_rates[] = {20e9, 6e9, 20e9, 10e9, 45e9};

#endif
