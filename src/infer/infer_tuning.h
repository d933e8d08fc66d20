/* infer_tuning.h - the numbers that tune inference, with the measurement that chose them. */
#ifndef LW_INFER_TUNING_H
#define LW_INFER_TUNING_H

/* Rows of A that the CPU product keeps in registers with two vectors of columns: 6 x 2 sums, 2 vectors of B
 * and one of A fill 15 of the 16 registers of AVX2. */
enum { LW_CPU_GEMM_ROWS = 6, LW_CPU_GEMM_VECTORS = 2 };

/* Panels that are packed together: with AVX2 4 x 16 columns are a cache line of B. One panel at a time
 * took 2.4 times as long at 512 x 4096 x 4096. */
enum { LW_CPU_GEMM_PANELS = 4 };

/* Positions of a convolution whose patches are laid out at a time. 512 x (9 x 64 channels) bytes stay within
 * a 512 KiB second-level cache. */
enum { LW_CPU_CONV_POSITIONS = 512 };

#endif
