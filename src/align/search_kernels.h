/* search_kernels.h - what the database search hands to its CUDA kernels: plain structures and launch
 * functions, so that kernels of different arithmetic are compiled apart. */
#ifndef LW_SEARCH_KERNELS_H
#define LW_SEARCH_KERNELS_H

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdint.h>

/* Arithmetic of a kernel. HALF and REAL hold integers as half-precision patterns (dpx.cuh), HALF with integer
 * maxima on them, REAL with half-precision maxima; S16 is two s16 a word, S32 one number a word. */
enum { LW_SW_HALF, LW_SW_REAL, LW_SW_S16, LW_SW_S32 };

/* The two ways to fill the halves of a word:
 *   TWO_SUBJECTS  one query, the two subjects of a pair: two letters a row, the profile holds two columns a
 * word; TWO_QUERIES   one subject, two queries (S32: one): one letter a row, a word of the profile for each
 * column (S32: as above). */
enum { LW_SW_TWO_SUBJECTS, LW_SW_TWO_QUERIES };

enum {
    LW_SW_COLUMNS = 32, /* query columns a lane holds: H and F of each in registers */
    LW_SW_THREADS = 256,
    LW_SW_WARPS = LW_SW_THREADS / 32,
    LW_SW_MIN_CARRY_GROUP =
        4 /* fewest lanes of a group that reads a border: one for each row of a block of four */
};

/* Rows of the stream: two bytes each, the letters of the two subjects of a pair, times 8; bit 0 marks the
 * separator row that stands before every pair and after the last. */
enum { LW_SW_LETTER_SHIFT = 3, LW_SW_SEPARATOR = 1, LW_SW_PAD_ROWS = 128 };

/* A run of rows that a group of lanes works through: `rows` from `begin`, with a separator before and after
 * (real or, where a long subject is cut, imagined), holding n subject pairs from `subject` on. */
typedef struct lw_sw_segment {
    uint32_t begin;
    int32_t rows;
    int32_t subject;
    int32_t n;
} lw_sw_segment;

/* One lane's share of the columns. */
typedef struct lw_sw_lane {
    uint32_t keep;      /* 0xffff in each half that continues the lane to the left (S32: all or none) */
    int32_t low, high;  /* index in scores[] where a query ends in that half, else -1 */
    int32_t codes[2];   /* of the lane's first column in each half, index into query codes; -1: none */
    int32_t n_codes[2]; /* columns from there on that are letters */
} lw_sw_lane;

/* One pass of one program over one list of segments. Pointers are device pointers. */
typedef struct lw_sw_job {
    const uint8_t *stream;
    const lw_sw_segment *segments; /* NULL: pairs list[], each one segment */
    const uint32_t *first_row;     /* of a pair, for lists */
    const int32_t *list;           /* pairs; the score of list[k] goes to index k */
    const int32_t *chosen;         /* NULL: all of list[]; else indices k into it */
    const int32_t *n_segments;     /* how many segments, list or chosen entries */
    int32_t *counter;              /* of work items taken; zero before the launch */
    const uint4 *profile;          /* letter rows of LW_SW_COLUMNS x 32 lanes */
    const lw_sw_lane *lanes;       /* 32 */
    int32_t *scores;
    uint2 *border;   /* G and E (bounds from above: H and X) of the last column: row (TWO_QUERIES: 2 * row +
                        half) */
    uint32_t *carry; /* maximum so far of pairs (TWO_QUERIES: 2 * pair + half) */
    int32_t n_letters;
    int32_t group; /* lanes of a group, 1 .. 32 */
    int32_t reads_border, writes_border;
    uint32_t border_keep; /* halves of the border that continue a query */
    int32_t open_extend, extend;
} lw_sw_job;

/* What a kernel finds of the scores: the scores; bounds from below, as it keeps the running maximum in every
 * LW_SW_EVERY-th row only (HALF); or bounds from above (HALF, LW_SW_TILE_OPEN and LW_SW_TILE_EXTEND). */
enum { LW_SW_EXACT, LW_SW_FROM_BELOW, LW_SW_FROM_ABOVE };
enum { LW_SW_EVERY = 4 };
/* open + extend, extend: operands of the kernels that bound from above are constants. */
enum { LW_SW_TILE_OPEN = 12, LW_SW_TILE_EXTEND = 1 };

/* Kernels of one arithmetic. jobs[] is in device memory, one block row each. */
typedef struct lw_sw_launch {
    int arithmetic, form, keeps;
    bool gapless;
    bool border; /* some job reads or writes one */
    const lw_sw_job *jobs;
    int n_jobs;
    int blocks; /* per job */
    int n_letters;
    cudaStream_t stream;
} lw_sw_launch;

/* -60000 in both halves: added to anything that HALF and REAL hold, it gives a number below 0. */
#define LW_SW_NEVER 0xfb53fb53u

/* Columns in a quad word of the profile: two of one query share a word, as 16-bit numbers, unless it holds
 * those of two queries. */
#define LW_SW_QUAD_COLUMNS(form, arithmetic)                                                                 \
    ((form) == LW_SW_TWO_SUBJECTS || (arithmetic) == LW_SW_S32 ? 8 : 4)

/* Bytes of a profile, which is what the launch asks for of a block's shared memory. */
static inline size_t lw_sw_profile_bytes(int form, int arithmetic, int n_letters)
{
    return (size_t)n_letters * LW_SW_COLUMNS * 32 * 16 / LW_SW_QUAD_COLUMNS(form, arithmetic);
}

/* What a block has beside that, at most. */
enum { LW_SW_STATIC_BYTES = 12288 };

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t lw_sw_launch_narrow(const lw_sw_launch *l); /* HALF and S16 */
cudaError_t lw_sw_launch_wide(const lw_sw_launch *l);   /* REAL and S32 */
cudaError_t lw_sw_launch_bounds(const lw_sw_launch *l); /* HALF, from above */
#ifdef __cplusplus
}
#endif
#endif
