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
    /* Words of directions of two jobs, beyond which they keep checkpoints: 4 MB, so that a batch has warps
       enough. */
    LW_PATH_MOST_WORDS = 1 << 20,
    /* Rows and columns between two checkpoints. */
    LW_PATH_TILE = 128,
    /* Rows from which on a warp walks each path, not a thread: 16,000 of 1,000 x 1,000 took 0.20 ms instead
       of 0.73, 65,536 of 150 x 200 0.53 instead of 0.32. */
    LW_PATH_WALK_ROWS = 400,
    /* Rows of tiles of a scout, and jobs of a batch at most that have scouts. */
    LW_PATH_SCOUT_TILES = 32,
    LW_PATH_SCOUTED_JOBS = 16,
    /* Jobs of a batch: three of them are on their way at a time. */
    LW_PATH_BATCH_JOBS = 1 << 16,
    /* Warps of a block that fills, and warps of a multiprocessor. */
    LW_PATH_WARPS = 2,
    LW_PATH_RESIDENT = 16,
    /* Bands of pairs (align_band.h): the least excess, and the shorter sequence's letters, worth a band;
       parts of the length by which excesses are counted; pairs that are looked at, and so many letters of
       each, to learn how alike pairs are; how many are remembered. */
    LW_BAND_LEAST = 8,
    LW_BAND_SHORTEST = 256,
    LW_BAND_PARTS = 64,
    LW_BAND_SAMPLE = 64,
    LW_BAND_CUT = 2048,
    LW_BAND_MEMORY = 1024,
    /* Bytes that one thread copies at a time, and pieces that the caller copies alone. */
    LW_COPY_PIECE = 4 << 20,
    LW_COPY_ALONE = 4,
    /* Contexts that overlap copies and computing, and the query letters of one place() call. */
    LW_CUDA_LANES = 2,
    LW_CUDA_BATCH_LETTERS = 10 << 20
};

/* Cells of a batch of paths, with directions and with checkpoints: several waves of warps, as the last one of
 * a batch is never full (1,000 x 1,000: 4e9 cells are 1.9 waves and ran at 1.70 TCUPS in the kernel). */
#define LW_PATH_BATCH_CELLS 1.6e10
#define LW_PATH_TILES_CELLS 2.5e11

/* A band is tried if it will take less than this share of the whole matrix's time, and pairs are looked at
 * before if there are so many cells. */
#define LW_BAND_SAVES 0.9
#define LW_BAND_LOOK_CELLS 2e10

/* Cells of one sub-batch: under a second on an H200, after which host->stop is looked at. */
#define LW_SUBBATCH_CELLS 4e12

#endif
