/* align_cpu_kernels.h - the vector kernels of the CPU backend, one table per instruction set.
 *
 * All values in vectors are unsigned lanes of 8, 16 or 32 bits that hold score + zero, where `zero` is
 * chosen so that nothing wraps (lw_cpu_make_range in align_cpu_engine.c has the proof). Gaps are kept before
 * their opening is paid, in the form
 *
 *   D(i,j+1) = max(D(i,j) - extend, H(i,j))      so that a deletion scores D - (open + extend)
 *   I(i+1,j) = max(I(i,j) - extend, H(i,j))      likewise
 *   H(i,j)   = max(H(i-1,j-1) + score, max(D, I) - (open + extend)), and at least zero in local mode
 *
 * which needs one subtraction fewer than Gotoh's own and keeps D and I at or above some H. With two-piece
 * gaps there are two of D and of I, each with penalties of its own, and H takes the best of all four. */
#ifndef LW_ALIGN_CPU_KERNELS_H
#define LW_ALIGN_CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/align.h"

enum {
    LW_CPU_ALIGN = 64,  /* alignment of all vector memory */
    LW_CPU_COLUMNS = 8, /* reference columns that a strip keeps in registers */
    LW_CPU_CHUNK = 512, /* columns between two visits of a row tile */
    LW_CPU_MAX_LANES = 64,
    LW_CPU_ROW_ROUND = 8, /* rows of a pairs job are a multiple of this */
};

/* Gap penalties as a kernel subtracts them, cut off where the range allows it, and as borders cost: not cut
 * off. With two pieces a gap costs the less of two prices. */
typedef struct lw_cpu_gaps {
    int pieces; /* 1 or 2 */
    uint32_t open_extend[2], extend[2];
    int64_t border_open[2], border_extend[2];
} lw_cpu_gaps;

/* What a gap of n letters along a border costs. */
static inline int64_t lw_cpu_border_cost(const lw_cpu_gaps *gaps, int64_t n)
{
    if (n == 0)
        return 0;
    const int64_t first = gaps->border_open[0] + n * gaps->border_extend[0],
                  second = gaps->border_open[1] + n * gaps->border_extend[1];
    return gaps->pieces == 2 && second < first ? second : first;
}

/* Scores of a group of queries, one per lane, against one reference. */
typedef struct lw_cpu_score_job {
    lw_mode mode;
    int32_t rows, tile_rows; /* query rows; how many of them are walked at a time */
    const uint8_t *profile;  /* [letter][row] vectors: the score of each lane's letter, modulo 2^N */
    const uint8_t *codes;    /* the reference */
    int64_t columns;         /* >= 1 */
    uint8_t *h, *d; /* [row], [piece][row] vectors: H and D at the left border, left at the last column; in
                       local mode d is zero everywhere and h is the kernel's own */
    uint32_t zero;
    lw_cpu_gaps gaps;
    /* Local: scores up to `idle` need no gaps (idle <= each open_extend, idle + max_score < 2^(N-1)); `level`
     * is the largest power of two <= idle + 1. Loose: maxima below level are reported as level - 1, which
     * costs less; all others are exact. */
    uint32_t idle, level;
    bool loose;
    int block_shift;        /* a block is 1 << block_shift columns, at least LW_CPU_COLUMNS */
    uint8_t *maxima;        /* a vector per block: highest H that may end an alignment (not global) */
    uint8_t *top_h, *top_i; /* scratch of LW_CPU_CHUNK + 1 vectors; of as many for each piece */
    int32_t *active;        /* scratch of 2 numbers per row tile */
} lw_cpu_score_job;

/* A profile by lookups, for alphabets of a table (see lw_cpu_pairs_job). */
typedef struct lw_cpu_profile_job {
    int32_t rows;
    int n_letters;
    const uint8_t *index; /* [row] vectors: query letter << 2, or bit 7 set for a fifth letter; 1 where the
                             lane has no letter, which scores 0 */
    uint8_t table[5][16]; /* [reference letter][index]: score - base */
    uint32_t other[5], base;
    uint8_t *profile; /* [letter][row] vectors */
} lw_cpu_profile_job;

/* Direction bits of a cell: four, and four more with two-piece gaps. H has the first source of diagonal,
 * deletion, deletion by the second piece, insertion (its bit is there only where there is another to tell it
 * from), insertion by the second piece. The extension bits belong to the gap that leaves the cell; those of
 * the second piece are LW_CPU_SECOND_PIECE bits higher. */
enum {
    LW_CPU_DIAGONAL = 1,
    LW_CPU_DELETION = 2,
    LW_CPU_DELETION_EXTENDS = 4,
    LW_CPU_INSERTION_EXTENDS = 8,
    LW_CPU_INSERTION = 16,
    LW_CPU_SECOND_DELETION = 32,
    LW_CPU_SECOND_PIECE = 4
};

/* Pairs of sequences. Batch form: lane l is a pair of its own and step t is its target column t. Wave form:
 * the lanes are consecutive strips of `rows` letters of one query, and strip s works at step t on column
 * t - s, so that what it needs from the strip above it was made one step earlier. There are as many strips as
 * lanes, or with `banded` more: a lane then goes on with the next strip that has none (align_cpu_engine.c).
 */
typedef struct lw_cpu_pairs_job {
    lw_mode mode;
    int wave, banded;
    int32_t rows;         /* per lane, a multiple of LW_CPU_ROW_ROUND */
    uint32_t zero, floor; /* floor: no H is lower */
    /* Wave form: the lane of the first strip that there is, and whether the upper border is above it; with
     * bands, instead, cells that are not computed and count as `floor`. */
    int first_lane, below_border;
    lw_cpu_gaps gaps;
    /* Scores: from a table of 4 x 4 letters (query and target hold lookup indices in lanes, see
     * lw_cpu_query_index()); or, where profile is set, from the profiles of the queries (target holds a byte
     * a lane); or, where matrix is set, gathered one by one (query and target hold a byte a lane). */
    const uint8_t *const *profile; /* of each lane, and of others up to a multiple of 16: [target letter][row]
                                      bytes */
    size_t profile_letter;         /* bytes from letter to letter; a vector may be read behind the last row */
    const int16_t *matrix;         /* [target letter * LW_MAX_LETTERS + query letter] */
    uint8_t table[16];             /* score - base of query letter << 2 | target letter */
    uint32_t other, base;     /* score - base where a fifth letter takes part; base modulo 2^N is added */
    const uint8_t *query;     /* [row] */
    const uint8_t *target;    /* [step - first step of this call] */
    const uint8_t *may_end;   /* [row] vectors: all ones where an alignment may end */
    uint8_t *state;           /* [rows] H, [piece][rows] D, bottom H, previous top H, [piece] bottom I */
    uint8_t *gathered;        /* scratch where profile or matrix is set: a vector for each row, and for each
                                 byte of a vector */
    uint8_t *best, *best_row; /* [step - first] vectors: highest H that may end, 0: none, and the first row
                                 in the lane that has it; NULL: not wanted. Rows must fit the lane. */
    uint8_t *directions;      /* [step - first][row / (N / 4)] vectors of 4 bits a cell; with two pieces of 8,
                                 and twice as many; NULL: not wanted */
} lw_cpu_pairs_job;

/* Scores of the letters of a query with every target letter. */
typedef struct lw_cpu_query_profile_job {
    int n_letters;
    const int8_t *table;      /* [target letter * LW_MAX_LETTERS + query letter] */
    const uint8_t *codes;     /* below LW_MAX_LETTERS */
    size_t n, profile_letter; /* whole vectors */
    uint8_t *profile;
} lw_cpu_query_profile_job;

typedef struct lw_cpu_kernels {
    int vector_bytes;
    void (*query_profile)(const lw_cpu_query_profile_job *job);
    /* index 0, 1, 2: lanes of 8, 16, 32 bits */
    void (*profile[3])(const lw_cpu_profile_job *job);
    void (*score[3])(const lw_cpu_score_job *job);
    void (*pairs_begin[3])(const lw_cpu_pairs_job *job);                        /* fills state for step 0 */
    void (*pairs[3])(const lw_cpu_pairs_job *job, int64_t first, int64_t last); /* steps [first, last) */
} lw_cpu_kernels;

extern const lw_cpu_kernels lw_cpu_kernels_avx512bw, lw_cpu_kernels_avx2, lw_cpu_kernels_sse41,
    lw_cpu_kernels_neon, lw_cpu_kernels_plain;

#endif
