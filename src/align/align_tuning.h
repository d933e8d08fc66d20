/* align_tuning.h - the shapes of the CUDA alignment kernels, and the measurements that chose them (one H200,
 * docs/kernels.md section "align" has the commands). */
#ifndef LW_ALIGN_TUNING_H
#define LW_ALIGN_TUNING_H

/* X(word, local, lanes of a group, query letters of a lane, several passes, warps of a block); the first row
 * of the wanted word that holds the query is taken, so rows go from narrow to wide, and the last of each word
 * has passes.
 *
 * 10^12 cells a second of whole place() calls, two contexts, 30,000 letters of reference, both strands:
 * - H 8x13, reads of 100: 5.66; 8x19, 150: 6.15 (126 registers, 16 warps a multiprocessor, limited by shared
 *   memory); 16x16, 250: 5.41; 32x16, 500: 5.20; 1,000 in two passes: 4.55, in one pass of 32x32 (143
 * registers, 10 warps) 3.54
 * - S16 32x16, 5,000: 2.41; HALF 8x19, 150: 4.51; S32 8x19, 150: 2.96
 * 8x7 is for guides and adapters and was not measured. Words other than H have few rows: each costs seconds
 * of compiling per architecture. */
#define LW_SCORE_CLASSES(X)                                                                                  \
    X(LW_WORD_H, 1, 8, 7, 0, 4)                                                                              \
    X(LW_WORD_H, 1, 8, 13, 0, 4)                                                                             \
    X(LW_WORD_H, 1, 8, 19, 0, 4)                                                                             \
    X(LW_WORD_H, 1, 16, 16, 0, 4)                                                                            \
    X(LW_WORD_H, 1, 32, 16, 1, 4)                                                                            \
    X(LW_WORD_HALF, 1, 8, 19, 0, 4)                                                                          \
    X(LW_WORD_HALF, 1, 32, 16, 1, 4)                                                                         \
    X(LW_WORD_S16, 1, 16, 16, 0, 4)                                                                          \
    X(LW_WORD_S16, 1, 32, 16, 1, 4)                                                                          \
    X(LW_WORD_S16, 0, 8, 20, 0, 4)                                                                           \
    X(LW_WORD_S16, 0, 32, 16, 1, 4)                                                                          \
    X(LW_WORD_S32, 1, 8, 19, 0, 4)                                                                           \
    X(LW_WORD_S32, 1, 32, 16, 1, 4)                                                                          \
    X(LW_WORD_S32, 0, 8, 20, 0, 4)                                                                           \
    X(LW_WORD_S32, 0, 32, 16, 1, 4)

/* X(local, lanes, letters, warps): the kernels that look at single columns again; short, then long. */
#define LW_COLUMN_CLASSES(X)                                                                                 \
    X(1, 8, 20, 4)                                                                                           \
    X(1, 32, 16, 4)                                                                                          \
    X(0, 8, 20, 4)                                                                                           \
    X(0, 32, 16, 4)

enum {
    /* Rows of reference per block maximum: fewer cost memory, more cost recomputation (at 64 and reads of 150
     * the columns take 4.8 ms for 92.7 ms of scores over 30,000 rows; over 4,600,000 they do not show). */
    LW_BLOCK_ROWS_SMALL = 64,  /* references up to LW_SMALL_ROWS */
    LW_BLOCK_ROWS_LARGE = 256, /* beyond */
    LW_SMALL_ROWS = 1 << 18,
    /* Warps that a launch should have per multiprocessor before references are cut into pieces. */
    LW_WARPS_WANTED = 128,
    /* A piece is at least this many times longer than the stretch that warms it up. */
    LW_PIECE_SPANS = 8,
    /* Reads of one sub-batch: enough for eight waves of warps over a short reference. */
    LW_SUBBATCH_READS = 1 << 16,
    /* Directions of one warp, beyond which a task goes the way of long ones: 2 MB, so that a launch of
     * LW_TRACE_BATCH_MB has warps enough. */
    LW_TRACE_MOST_WORDS = 1 << 19,
    /* Device memory that one launch of tasks fills with directions: 131,072 tasks of 150, 3.9 ms to fill and
     * 0.5 ms to walk; 4 GB were not faster. */
    LW_TRACE_BATCH_MB = 2048,
    /* CIGAR operations a task is given room for at first. */
    LW_TRACE_OPS = 16,
    LW_TRACE_WARPS = 4,
    /* Bytes that one thread copies at a time, and pieces that the caller copies alone. */
    LW_COPY_PIECE = 4 << 20,
    LW_COPY_ALONE = 4,
    /* Contexts that overlap copies and computing, and the query letters of one place() call. */
    LW_CUDA_LANES = 2,
    LW_CUDA_BATCH_LETTERS = 10 << 20
};

/* Cells of one sub-batch: under a second on an H200, after which host->stop is looked at. */
#define LW_SUBBATCH_CELLS 4e12

#endif
