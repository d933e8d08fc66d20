/* align_cpu_tuning.h - the numbers that tune the CPU backend, and the measurement behind each. */
#ifndef LW_ALIGN_CPU_TUNING_H
#define LW_ALIGN_CPU_TUNING_H

enum {
    /* What a strip walks before it moves on, the profile of 4 letters and H of its rows, should stay in the
     * first-level cache. */
    LW_CPU_TILE_BYTES = 28 << 10,
    /* Blocks of reference columns for which maxima are kept, about: bounds a group's memory at 4 MB, and a
     * block looked at again costs 1/65536 of the pass. */
    LW_CPU_BLOCKS = 1 << 16,
    /* Steps of a pairs job between two looks at its results. */
    LW_CPU_STEPS = 512,
    /* A pair of more cells than this gets all lanes for itself (the wave form): below, filling a vector with
     * pairs of like size wastes less than the wave's start and end. */
    LW_CPU_WAVE_CELLS = 1 << 20,
    /* Bytes of directions that a trace keeps; beyond, it keeps checkpoints and computes pieces again. */
    LW_CPU_TRACE_BYTES = 8 << 20,
    /* Checkpoints of one level of a long trace. */
    LW_CPU_CHECKPOINTS = 32,
};

#endif
