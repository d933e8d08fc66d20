/* align_cpu_tuning.h - the numbers that tune the CPU backend, and the measurement behind each. */
#ifndef LW_ALIGN_CPU_TUNING_H
#define LW_ALIGN_CPU_TUNING_H

/* Measured with `lanewise bench align` and reads of 150 letters with 2 % errors against 30,000 letters, one
 * thread, on a Xeon (Sapphire Rapids) unless it says otherwise. GCUPS. */
enum {
    /* Rows that a strip walks before it moves on; the tiles of a query are of equal height. 180 rows are 29
     * kB of profile (4 letters) and H with 32-byte vectors, about the first-level cache. Random reads:
     * AVX-512BW 90 with 180 rows, 65 with 90; AVX2 58 with 180, 34 with 360. */
    LW_CPU_TILE_ROWS = 180,
    /* Blocks of reference columns for which maxima are kept, about: bounds a group's memory at 4 MB, and a
     * block looked at again costs 1/65536 of the pass. */
    LW_CPU_BLOCKS = 1 << 16,
    /* Steps of a pairs job between two looks at its results: their target letters, maxima and rows are 48 kB
     * with 32-byte vectors. */
    LW_CPU_STEPS = 512,
    /* A pair of more cells than this gets all lanes for itself (the wave form): a batch of pairs of this size
     * needs 8 MB of directions with 32-byte vectors of 16-bit lanes, while a wave of 1,000 x 1,000 letters
     * spends 15 of its 1,015 steps on its start and end. */
    LW_CPU_WAVE_CELLS = 1 << 20,
    /* Bytes of directions that the trace of a long pair keeps: 16 million cells. Beyond, it keeps checkpoints
     * and computes pieces again, once for up to 32 times as many cells, twice for up to 1,024 times. */
    LW_CPU_TRACE_BYTES = 8 << 20,
    /* Bytes of score profiles (a byte for each letter of a query and of the alphabet) of a batch or a wave;
     * beyond, scores are gathered one by one. */
    LW_CPU_PROFILE_BYTES = 64 << 20,
    /* Checkpoints of one level of a long trace: 8 bytes a query letter each with 32-bit lanes. */
    LW_CPU_CHECKPOINTS = 32,
    /* Pairs of fewer cells get no band. 400 x 400 letters with 5 % errors took as long in bands as without,
     * 1,000 x 1,000 half of the time (EPYC, Zen 3, AVX2, as the three below). */
    LW_CPU_BAND_CELLS = 500000,
    /* What a step of a band costs beside its cells, in rows; and the most that a band may cost, in percent of
     * the matrix. At 1,000 letters bands of 16 rows take 20 % more time a row than the matrix. */
    LW_CPU_BAND_STEP_ROWS = 4,
    LW_CPU_BAND_PERCENT = 65,
    /* The band that guesses what excess a pair needs has that of the shorter one's letters / share, which is
     * 4 % of the cells of pairs as long as each other, and so many rows and all rows / part more. Unlike
     * pairs are left alone after that: of their instructions it takes 2 % at 1,000 letters, 0.2 % at 10,000.
     * What it expects to be lost of the best possible score is raised by 1/8: a band too narrow is computed
     * in vain, one of the next height of strips costs 1/2 more. */
    LW_CPU_SCOUT_SHARE = 48,
    LW_CPU_SCOUT_LETTERS = 128,
    LW_CPU_SCOUT_PART = 16,
    LW_CPU_SCOUT_MARGIN = 8,
};

#endif
