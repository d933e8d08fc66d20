/* infer_tuning.h - the numbers that tune inference, with the measurement that chose them. */
#ifndef LW_INFER_TUNING_H
#define LW_INFER_TUNING_H

/* CPU product, 4096 x 4096 weights, one thread of a Zen 3 core, in billions of multiplications and additions
 * a second, best of several: weights of 8 bits on 16-bit pairs 124 (M = 1024) and 106 (M = 64); of pairs that
 * allow maddubs 160 and 149. ONNX Runtime 1.32, which always takes maddubs, in the same minutes: 148 and 151.
 */

/* Rows of A and vectors of B's columns whose sums the CPU product keeps in registers: 6 x 2 sums, 2 vectors
 * of B and one of A fill 15 of the 16 registers of AVX2; 6 x 4, 4 and 1 fill 29 of the 32 of AVX-512. */
enum { LW_CPU_GEMM_ROWS = 6 };
#if defined(LW_ISA_avx512bw)
enum { LW_CPU_GEMM_VECTORS = 4 };
#else
enum { LW_CPU_GEMM_VECTORS = 2 };
#endif

/* The same on a Xeon with AMX, 1 / 8 / 16 threads, M = 1024: AVX-512BW 114 / 685 / -, VNNI 367 / 2,246 / -,
 * tiles 551 / 3,440 / 6,560; M = 64: VNNI 408 / 1,796 / -, tiles 573 / 2,990 / 3,850. Rows of A and sums that
 * are 64 bytes longer than a power of two and blocks of 512 instead of 1024 made no difference beyond that
 * between two hours. */

/* AMX: rows of a tile of A and steps (of 4 bytes) of a tile, as the hardware has them (two tiles of 16 rows
 * of 64 bytes); the panels of AVX-512 VNNI are filled up to whole tiles. */
enum { LW_CPU_TILE_ROWS = 32, LW_CPU_TILE_STEPS = 16, LW_CPU_TILE_LEAST_ROWS = 16 };
#if defined(LW_ISA_avx512vnni)
enum { LW_CPU_STEPS_TOGETHER = LW_CPU_TILE_STEPS };
#else
enum { LW_CPU_STEPS_TOGETHER = 1 };
#endif

/* Depth of a block, in elements: a panel's block (16 columns x 1024 bytes with AVX2) and a tile of A (6 x
 * 1024 16-bit numbers) share a 32 KiB first-level cache. */
enum { LW_CPU_GEMM_DEPTH = 1024 };

/* Rows of a block: 96 x 1024 16-bit numbers of A stay in a 512 KiB second-level cache while the panels of a
 * group pass by. */
enum { LW_CPU_GEMM_BLOCK_ROWS = 96 };

/* Panels of a group, one task: few rows read every panel once, so that small groups spread best; many rows
 * read A once per group. */
enum { LW_CPU_GEMM_PANELS_FEW = 2, LW_CPU_GEMM_PANELS_MANY = 16, LW_CPU_GEMM_ROWS_MANY = 48 };

/* Columns whose results are finished at a time, in arrays on the stack. */
enum { LW_CPU_GEMM_FINISH = 256 };

/* Positions of a convolution whose patches are laid out at a time. 512 x (9 x 64 channels) bytes stay within
 * a 512 KiB second-level cache. */
enum { LW_CPU_CONV_POSITIONS = 512 };

/* ---- CUDA ---- */

/* Threads of a block of the product for few rows. */
enum { LW_CUDA_FEW_THREADS = 256, LW_CUDA_FEW_BLOCKS = 4 };
/* Columns a warp takes at a time, loads of each before it computes; for 1, 4 and 8 rows. */
#define LW_CUDA_FEW_1 1, 4
#define LW_CUDA_FEW_4 2, 2
#define LW_CUDA_FEW_8 4, 1
/* Bytes of depth of 8 rows in shared memory at a time. */
#define LW_CUDA_FEW_CHUNK_8 4096

/* Tiles of dot products: warps down and across, rows and columns of a lane, stages, blocks that shall be
 * resident on a multiprocessor. */
#define LW_CUDA_DOT_LARGE 4, 2, 8, 8, 3, 2
#define LW_CUDA_DOT_SMALL 2, 2, 4, 4, 4, 4

/* Tiles of tensor cores: warps down and across, 16-row and 8-column products of a warp, stages, blocks that
 * shall be resident. */
#define LW_CUDA_TENSOR_LARGE 2, 4, 4, 8, 4, 1
#define LW_CUDA_TENSOR_MIDDLE 2, 2, 2, 8, 4, 2
#define LW_CUDA_TENSOR_SMALL 1, 4, 2, 2, 6, 2

/* Products of at least so many rows and multiply-adds go to cuBLASLt, where it is installed. */
#define LW_CUDA_LT_ROWS 256
#define LW_CUDA_LT_WORK (INT64_C(1) << 32)

/* Softmax and layer norm: threads of a block, 16-byte loads of a thread; rows up to LW_CUDA_SHORT_ROW get one
 * warp each. */
enum { LW_CUDA_ROW_THREADS = 128, LW_CUDA_ROW_FOURS = 8, LW_CUDA_SHORT_ROW = 512 };

#endif
