/* paths_tuning.h - tile shapes of the CUDA product. */
#ifndef LW_PATHS_TUNING_H
#define LW_PATHS_TUNING_H

/* Words a thread holds (rows, columns), warps of a thread block (rows, columns), pivots of a stage, stages,
 * thread blocks that shall be resident on a multiprocessor, SPLIT of 8, order.
 *
 * Whole runs on one H200 (132 multiprocessors, 1.98 GHz, CUDA 13.0), n = 16,384 (64-bit words: 8,192), in
 * 10^12 relaxations a second, all variants of a line in one process, results equal by checksum:
 * - s32 dpx, tile 128x128: SPLIT 0 14.7, 1 15.1, 2 15.5, 3 15.8, 4 14.3, 6 13.9, 8 12.5; 16x8 words 14.8
 * - s32 dpx, tile 128x64: SPLIT 2 15.95, 3 16.65 (rows 16.71, 2 stages 16.72, 2 stages of 32 16.48), 4 16.85,
 *   5 16.78
 * - u16 dpx, tile 128x128: SPLIT 0 28.7, 2 30.6, 3 31.0, 4 32.3 (rows 31.1, two stages of 32 31.6), 5 31.8
 * - f32 dpx, tile 128x64: rows 15.8, snake 15.0, two stages of 32 pivots 13.1; tile 128x128 14.9
 * - s32 and f32 plain, tile 128x64: rows 13.5 and 13.0, snake 13.35 and 12.7
 * - s64: 4x4 words 2.95, 8x4 2.94
 * - f64: 4x4 words 4.66, 8x4 5.10 */
#define LW_TILE_S32_DPX 8, 8, 4, 1, 16, 3, 4, 4, LW_ORDER_SNAKE
#define LW_TILE_U16_DPX 8, 8, 4, 1, 16, 3, 4, 4, LW_ORDER_SNAKE
#define LW_TILE_F32_DPX 8, 8, 4, 1, 16, 3, 4, 0, LW_ORDER_ROWS
#define LW_TILE_S32_PLAIN 8, 8, 4, 1, 16, 3, 4, 0, LW_ORDER_ROWS
#define LW_TILE_F32_PLAIN 8, 8, 4, 1, 16, 3, 4, 0, LW_ORDER_ROWS
#define LW_TILE_S64_PLAIN 4, 4, 4, 2, 16, 3, 2, 0, LW_ORDER_ROWS
#define LW_TILE_F64_PLAIN 8, 4, 2, 2, 16, 3, 4, 0, LW_ORDER_ROWS

/* Relaxations a clock and multiprocessor in those runs, for estimates. */
#define LW_RATE_S32_DPX 64.4
#define LW_RATE_U16_DPX 123.5
#define LW_RATE_F32_DPX 60.5
#define LW_RATE_S32_PLAIN 51.5
#define LW_RATE_F32_PLAIN 49.8
#define LW_RATE_S64_PLAIN 11.3
#define LW_RATE_F64_PLAIN 19.5

/* Staging of host memory, bytes of each of two pinned buffers. */
#define LW_PATHS_CHUNK (16 << 20)
/* Bytes of next hops that are computed at a time. */
#define LW_PATHS_STRIP (256 << 20)
/* Device memory left alone when no limit is given. */
#define LW_PATHS_RESERVE (INT64_C(256) << 20)

/* Unproved 16-bit runs: a result that holds no finite value above 16383 is right when no weight is (see
 * lw_paths_job.max_weight). It is tried where it saves much and where 16 steps of the largest weight fit, so
 * that a run in vain (half the time of the s32 run that follows) is rare. */
#define LW_PATHS_SAFE_U16 16383
#define LW_PATHS_TRY_U16_WEIGHT 1023
#define LW_PATHS_TRY_U16_N 1024

#endif
