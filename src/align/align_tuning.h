/* align_tuning.h - the shapes of the CUDA alignment kernels, and the measurements that chose them (one H200,
 * docs/kernels.md section "align" has the commands). */
#ifndef LW_ALIGN_TUNING_H
#define LW_ALIGN_TUNING_H

/* X(word, local, lanes of a group, query letters of a lane, several passes, warps of a block); the first row
 * of the wanted word that holds the query is taken, so rows go from narrow to wide, and the last of each word
 * has passes. */
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
    /* Rows of reference per block maximum: fewer cost memory, more cost recomputation. */
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
    /* Device memory that one launch of tasks fills with directions. */
    LW_TRACE_BATCH_MB = 2048,
    /* CIGAR operations a task is given room for at first. */
    LW_TRACE_OPS = 16,
    LW_TRACE_WARPS = 4,
    /* Contexts that overlap copies and computing, and the query letters of one place() call. */
    LW_CUDA_LANES = 2,
    LW_CUDA_BATCH_LETTERS = 10 << 20
};

/* Cells of one sub-batch: about a second, after which host->stop is looked at. */
#define LW_SUBBATCH_CELLS 4e12

#endif
