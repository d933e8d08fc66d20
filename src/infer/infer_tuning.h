/* infer_tuning.h - the numbers that tune inference, with the measurement that chose them. */
#ifndef LW_INFER_TUNING_H
#define LW_INFER_TUNING_H

/* CPU product, 4096 x 4096 weights, one thread of a Zen 3 core of a busy machine, in billions of
 * multiplications and additions a second of processor time, in turns: weights of 8 bits on 16-bit pairs 120
 * (M = 64) and 116 (M = 1024); on maddubs 157 and 149. ONNX Runtime 1.32, which always takes maddubs: 149 and
 * 142. The inner loops alone, from the first-level cache: pairs 152, pairs that lie there as 16-bit numbers
 * 153 (6 x 2 sums) and 155 (4 x 3), maddubs 186; unrolled four times and with the next block of B fetched
 * meanwhile +4 % in all. */

/* Rows of A and vectors of B's columns whose sums the CPU product keeps in registers: 6 x 2 sums, 2 vectors
 * of B and one of A fill 15 of the 16 registers of AVX2; 6 x 4, 4 and 1 fill 29 of the 32 of AVX-512
 * and NEON (by count: no ARM machine was at hand to measure on). */
enum { LW_CPU_GEMM_ROWS = 6 };
#if defined(LW_ISA_avx512bw) || defined(LW_ISA_neon)
enum { LW_CPU_GEMM_VECTORS = 4 };
#else
enum { LW_CPU_GEMM_VECTORS = 2 };
#endif

/* The same on a Xeon, 1 / 8 threads, M = 1024: AVX-512BW 114 / 685, VNNI 367 / 2,246. */

/* AMX: rows of a tile of A and steps (of 4 bytes) of a tile, as the hardware has them (two tiles of 16 rows
 * of 64 bytes); the panels of AVX-512 VNNI are filled up to whole tiles. */
enum { LW_CPU_TILE_ROWS = 32, LW_CPU_TILE_STEPS = 16, LW_CPU_TILE_LEAST_ROWS = 16 };

/* AMX: depth of a block, in elements, and rows of a block. The same Xeon, one thread, M = 1024, ms of the
 * best of three (a busy neighbour doubles them), depth x rows: 256 x 96 21.5, 256 x 256 20.2, 512 x 96 22.0,
 * 512 x 256 17.0, 512 x 1024 20.8, 1024 x 96 20.3, 1024 x 256 18.3, 1024 x 1024 23.5, 4096 x 256 18.9; M =
 * 64: 512 1.18, 1024 1.17, 4096 1.31. Tiles that never leave the first-level cache: 3.1 TOPS, which would be
 * 11.1 ms. */
enum { LW_CPU_TILE_DEPTH = 512, LW_CPU_TILE_BLOCK_ROWS = 256 };
#if defined(LW_ISA_avx512vnni)
enum { LW_CPU_STEPS_TOGETHER = LW_CPU_TILE_STEPS };
#else
enum { LW_CPU_STEPS_TOGETHER = 1 };
#endif

/* Depth of a block, in elements: a panel's block (16 columns x 1024 bytes with AVX2) and a tile of A (6 x
 * 1024 16-bit numbers) share a 32 KiB first-level cache. */
enum { LW_CPU_GEMM_DEPTH = 1024 };

/* Bytes of B that are fetched ahead where fewer rows than a tile read it once; 4096 x 4096 weights, 1 row,
 * one thread of a Zen 3 core, ms, medians of 14 in turns: 0 1.90, 512 1.49, 2048 1.41, 8192 1.30. */
enum { LW_CPU_GEMM_AHEAD = 8192 };

/* Rows of a block: 96 x 1024 16-bit numbers of A stay in a 512 KiB second-level cache while the panels of a
 * group pass by. */
enum { LW_CPU_GEMM_BLOCK_ROWS = 96 };

/* Panels of a group, one task: few rows read every panel once, so that small groups spread best; many rows
 * read A once per group. */
enum { LW_CPU_GEMM_PANELS_FEW = 2, LW_CPU_GEMM_PANELS_MANY = 16, LW_CPU_GEMM_ROWS_MANY = 48 };

/* Rows of A that a task packs for tiles (a divisor of theirs), and bytes of A from which on packing is spread
 * over the workers. */
enum { LW_CPU_PACK_ROWS = 4, LW_CPU_PACK_LEAST = 1 << 15 };

/* Tasks a worker, at least. 4096 x 4096 weights by AMX, 16 threads of a Xeon, ms of the best of 80: M = 64,
 * panels of a task 1 (64 tasks) 0.113, 2 0.128, 4 0.201. M = 1024, best of 8, panels x rows of a task: 4 x
 * 256 1.79 to 2.02, 4 x 128 2.22, 4 x 64 2.27, 2 x 256 2.33, 1 x 256 2.51, 4 x 1024 3.35. */
enum { LW_CPU_TASKS = 4 };

/* B is multiplied by maddubs if no more than one in so many of its bytes starts a pair that is too large for
 * it; what is too much is added afterwards. */
enum { LW_CPU_GEMM_EXCESS = 100 };

/* Columns whose results are finished at a time, in arrays on the stack. */
enum { LW_CPU_GEMM_FINISH = 256 };

/* Positions of a convolution whose patches are laid out at a time. 512 x (9 x 64 channels) bytes stay within
 * a 512 KiB second-level cache. */
enum { LW_CPU_CONV_POSITIONS = 512 };

/* ---- CUDA ---- */

/* Products, whole runs on one H200 (132 multiprocessors, 1.98 GHz, CUDA 13.0), weights 16384 x 16384 read
 * from memory (268 MB), results in bytes, all lines in one process, every result checked; us:
 * - 1 row, by DP4A, columns a warp x loads: 1x4 68.7, 1x8 71.4, 2x4 70.5, 2x2 64.6 with 8 blocks (66.8 with
 * 4), 4x1 64.6, 4x2 67.0
 * - 1 row, the warps of a block divide the depth (another card, where 2x2 makes 65.7): 2 columns x 4 loads
 * and 4 blocks 62.7, 3 blocks 62.4, 4x4 and 2 blocks 62.5; any depth, 3 blocks 62.9, 4 blocks 65.0 (spills)
 * - 4 rows by DP4A: 2x2 77.3, 4x1 68.1 with 8 blocks (69.6 with 4), 4x2 78.9, 2x4 78.3
 * - 8 rows by DP4A: 4x1 97.7, 2x2 92.4, 4x2 with 2 blocks and 8192 bytes of depth 88.4, 4x2 with 16384 108
 * - 8 rows on tensor cores, fragments from memory: 16 columns x 2 loads 70.7, x 4 103.8, 32 columns x 2 94.8
 * - 32 rows: stages of 64 bytes 93.0, of 128 70.8, of 256 68.3 (at 16 rows the same); fragments from
 * memory 93.6; cuBLASLt and a requantization 81.8
 * - 64 rows: 64 x 64 tiles, stages of 256 bytes 74.9, of 128 83.3; 32 x 64 tiles 93.4; cuBLASLt 85.2
 * - 128 rows: 128 x 128 tiles, stages of 64 bytes 144.6, of 128 122.1; cuBLASLt 85.5
 * - 256 rows: 216.6 (128 x 256 tiles 268.8); cuBLASLt 178.3
 * - 4096 rows: 3293 (128 x 256 tiles 4556); cuBLASLt 1470
 * Lines of memory as long as a stage is deep are what few rows gain from: 16384 rows that are read 64 bytes
 * at a time leave a page of memory after each. */
enum { LW_CUDA_FEW_THREADS = 256 };
/* Products of one row by dot products: columns that a block reads at a time, loads of a lane from each;
 * blocks a multiprocessor for whole slices, and for any; columns that a group of warps makes. */
#define LW_CUDA_ONE 2, 4, 4, 3
enum { LW_CUDA_ONE_EACH = 8 };
/* Of up to 4 and 8 rows, and of one without the instruction: rows, columns a warp takes at a time, loads of
 * each before it computes; blocks a multiprocessor and bytes of depth of the rows in shared memory. */
#define LW_CUDA_INT_ONE 1, 2, 2
#define LW_CUDA_FEW_4 4, 4, 1
#define LW_CUDA_FEW_8 8, 4, 2
enum { LW_CUDA_FEW_BLOCKS_4 = 8, LW_CUDA_FEW_BLOCKS_8 = 2 };
enum { LW_CUDA_INT_ONE_CHUNK = 32768, LW_CUDA_FEW_CHUNK_4 = 8192, LW_CUDA_FEW_CHUNK_8 = 8192 };
/* The same on tensor cores, for 5 to 8 rows: 16-column and 8-row products of a warp, loads. */
#define LW_CUDA_FEW_TENSOR 1, 1, 2

/* Tiles of dot products: warps down and across, rows and columns of a lane, bytes of depth of a stage,
 * stages, blocks that shall be resident on a multiprocessor, segments unrolled. TOPS of 134 at 4096 x 4096 x
 * 4096, at 4096 x 4096 x 16384, at 2048 x 2048 x 2048 and at 512 x 4096 x 4096 (H200):
 * - 2, 2, 8, 8, 128, 3, 3, 2: 116.9 120.3 101.7 99.8; 2, 2, 8, 8, 128, 2, 4, 2: 115.1 118.4 97.8 93.2
 * - 4, 2, 8, 8, 128, 2, 2, 2: 113.6 117.5 98.1 93.3, one segment unrolled 112.2 116.2 98.1 91.7
 * - 2, 2, 8, 8, 64, 3, 4, 2: 112.2 115.7 93.5 88.7; 2, 2, 4, 4, 64, 4, 4, 4: 113.6 116.7 102.4 102.9
 * - 4, 2, 16, 8, 64, 3, 1, 4: 103.7 112.0; 4, 2, 8, 16, 64, 3, 1, 4: 100.6 110.1 */
#define LW_CUDA_DOT_LARGE 2, 2, 8, 8, 128, 3, 3, 2
#define LW_CUDA_DOT_SMALL 2, 2, 4, 4, 64, 4, 4, 4
/* The large ones: their size, tiles a multiprocessor from which on they are as fast, and shared memory of the
 * blocks that shall be resident: where a block cannot have that much (232,448 bytes on 9.0), neither can a
 * multiprocessor. */
enum { LW_CUDA_DOT_ROWS = 64, LW_CUDA_DOT_COLUMNS = 128, LW_CUDA_DOT_WAVES = 6 };
enum { LW_CUDA_DOT_SHARED = 3 * 3 * (LW_CUDA_DOT_ROWS + LW_CUDA_DOT_COLUMNS) * 128 };
/* The same without the instruction: a segment is 16 times as many. */
#define LW_CUDA_INT_TILE 2, 2, 4, 4, 64, 4, 4, 1

/* Tiles of tensor cores: warps down and across, 16-row and 8-column products of a warp, bytes of depth of a
 * stage, stages, blocks that shall be resident. */
#define LW_CUDA_TENSOR_LARGE 2, 4, 4, 4, 64, 4, 2
#define LW_CUDA_TENSOR_SMALL 1, 4, 2, 2, 64, 6, 2
#define LW_CUDA_TENSOR_DEEP_32 1, 4, 2, 2, 256, 3, 2
#define LW_CUDA_TENSOR_DEEP_64 1, 4, 4, 2, 256, 3, 1
/* Shared memory that the deep ones need. */
enum { LW_CUDA_DEEP = 256, LW_CUDA_DEEP_SHARED = (64 + 64) * 256 * 3 };

/* Products of at least so many rows and multiply-adds go to cuBLASLt, where it is installed; rows of unsigned
 * bytes, which are made signed first, from more work on. One H200, whole runs, mma.sync tiles / the library
 * with that pass, us, rows x weights: 256 x 4096^2 26.0 / 32.8, 4096 x 1024^2 32.2 / 35.7 (2^32); 512 x
 * 4096^2 48.0 / 42.9 (2^33); 1024 x 4096^2 68.0 / 57.4, 16384 x 1024^2 102.7 / 88.3 (2^34); 128 x 16384^2 145
 * / 94; 4096 x 4096^2 244 / 138; 4096 x 16384^2 3398 / 1510. */
#define LW_CUDA_LT_ROWS 65
#define LW_CUDA_LT_WORK (INT64_C(1) << 31)
#define LW_CUDA_LT_FLIPPED_WORK (INT64_C(1) << 33)

/* Float convolutions with fewer outputs a group have a thread for each result, others tiles of 64 x 64. */
enum { LW_CUDA_FLOAT_OUTPUTS = 8 };

/* Runs by CUDA graphs: replays after which a recording has paid; recordings in a row that did not, or failed,
 * after which there are no more. */
enum { LW_CUDA_REPLAYS_THAT_PAY = 8, LW_CUDA_RECORDINGS_IN_VAIN = 4 };

/* Recurrent layers: products of a state and a row of weights that a block shall have at least; fewer blocks
 * meet sooner. One for each thread, by count; 4 blocks take 5.4 us a step of 128 float units in both
 * directions, 128 blocks 9.8 us with 33 sequences (H200); rows of R that did not stay in shared memory
 * took 45. */
enum { LW_CUDA_RECURRENT_PRODUCTS = 256 };

/* Softmax and layer norm: threads of a block, 16-byte loads of a thread; rows up to LW_CUDA_SHORT_ROW get one
 * warp each. 65536 x 4096: both 4.15 TB/s, 524288 x 512: 4.20 (copying: 4.27). */
enum { LW_CUDA_ROW_THREADS = 128, LW_CUDA_ROW_FOURS = 8, LW_CUDA_SHORT_ROW = 512 };

#endif
