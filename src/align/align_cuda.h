/* align_cuda.h - what the CUDA backend's kernels and its host side share. Positions in `codes` arrays count
 * letters from the start of the device buffer. */
#ifndef LW_ALIGN_CUDA_H
#define LW_ALIGN_CUDA_H

#include <stdint.h>
#include "align/align_backend.h"

/* How one 32-bit word holds scores.
 *   H    two scores as half-precision integers, added on the FMA pipe, selected by DPX (see dpx.cuh): <= 2047
 *   HALF the same numbers with half-precision maxima, for GPUs without DPX: <= 2047
 *   S16  two s16: <= 32767
 *   S32  one score */
enum { LW_WORD_H, LW_WORD_HALF, LW_WORD_S16, LW_WORD_S32 };

/* "Minus infinity" of S16 and S32: below every score that can occur there, and twice it still fits (the
 * kernels add it to a score once). The host lets S16 be used only where all scores stay above -LW_FAR_S16;
 * the driver keeps |H| < 2^30. */
#define LW_FAR_S16 16000
#define LW_FAR_S32 (1 << 30)

/* Bytes in front of and behind sequences on the device: kernels run past the ends of a sequence by less than
 * a block of rows and a warp, and read letters there whose cells do not count. */
enum { LW_MARGIN = 64 };

/* A query strand: read * 2 + (1 for the reverse complement); -1 is nobody. */
typedef struct lw_slot {
    int32_t item[2]; /* the low and the high half of a word; S32 uses [0] */
} lw_slot;

/* A stretch of reference that is streamed in one go. Row r is reference letter r (local mode), or, in the
 * other modes, row 0 is the boundary in front of the letters and row r > 0 is letter r - 1. */
typedef struct lw_segment {
    int64_t ref;  /* of the letter at the beginning of the stretch */
    int64_t out;  /* where its first written value goes */
    int32_t rows; /* to the end of the reference (blocks) or of the window (columns) */
    int32_t warm; /* leading blocks (or columns) that only warm up: not written */
    int32_t
        blocks; /* blocks to run, the warm-up ones included; columns: the row where a global alignment ends */
} lw_segment;

typedef struct lw_score_table {
    int16_t score[LW_MAX_LETTERS * LW_MAX_LETTERS];
    uint8_t complement[LW_MAX_LETTERS];
} lw_score_table;

typedef struct lw_queries {
    const uint8_t *codes;
    const int64_t *start;
    const int32_t *len;
} lw_queries;

/* One cell of the landscape: the best score in a target column and the smallest query end that has it. */
typedef struct lw_column {
    int32_t score, qend;
} lw_column;

/* A score times this, plus a column, is one s32. */
enum { LW_KEY_COLUMNS = 32 };

typedef struct lw_score_args {
    lw_queries queries;
    const lw_slot *slots;
    int64_t n_slots;
    const uint8_t *refs;
    const lw_segment *segments;
    const int32_t *group; /* segments group[g] .. group[g + 1] - 1 go to one warp; not used when paired */
    int32_t n_groups;     /* 1 when paired */
    int32_t paired;       /* 1: slot i streams segment i alone; 0: every slot streams all segments */
    uint32_t *words;      /* block maxima: [slot * words_stride + segment.out + block] */
    int64_t words_stride; /* 0 when paired */
    lw_column *columns;
    uint2
        *border; /* rows of one warp, border_stride apart: the column between two passes over a long query */
    int64_t border_stride;
    const lw_score_table *table;
    int32_t n_letters;
    int32_t mode;
    int32_t block_rows;
    uint32_t open, extend;    /* -(gap_open + gap_extend) and -gap_extend as the kernel's words want them */
    int32_t len_min, len_max; /* columns: queries outside are another kernel's */
    int32_t keyed;            /* columns: no local score reaches 2^31 / LW_KEY_COLUMNS */
} lw_score_args;

typedef void (*lw_score_kernel)(lw_score_args);

/* One row of the table in align_tuning.h. */
typedef struct lw_score_class {
    int word, local;
    int lanes, columns; /* a query is spread over `lanes` lanes with `columns` letters each */
    int passes;         /* 1: longer queries go through in several passes */
    int warps;          /* of one block */
    lw_score_kernel kernel;
} lw_score_class;

extern const lw_score_class lw_score_classes[]; /* narrow before wide, within each kind of word */
extern const int lw_score_class_count;
extern const lw_score_class lw_column_classes[]; /* local short, local long, other short, other long */

/* Bytes of shared memory that one block of a class takes. */
int64_t lw_score_shared_bytes(const lw_score_class *c, int n_letters);

/* --- selection
 * ---------------------------------------------------------------------------------------------- */

/* Neighbouring blocks of one reference whose columns some read needs one by one: computed by the column
 * kernels between two rounds. */
typedef struct lw_node {
    int32_t strand, first, n_blocks; /* blocks counted from the read's first */
    int32_t next;                    /* of the same read; -1 */
    int32_t at;                      /* of its first column */
} lw_node;

typedef struct lw_select_args {
    const uint32_t *words;
    const int64_t
        *view; /* [read * 2 + strand]: first word * 4 + (0 low half, 1 high half, 2 whole word); -1: none */
    const int32_t *len;       /* of reads */
    const int32_t *ref_block; /* first block of each reference, and one more */
    const int32_t *ref_len;
    const int64_t *ref_start;
    int32_t n_refs;
    int32_t paired;      /* 1: read i sees reference i alone */
    const int32_t *list; /* reads to do */
    int32_t n_list;
    int32_t *again,
        *counts;   /* reads that wait for nodes; counts: how many, nodes asked for, columns of these */
    int32_t *head; /* first node of each read */
    lw_node *nodes;
    lw_slot *slots; /* one per node, for the column kernels */
    lw_segment *segments;
    const lw_column *columns;
    int32_t capacity, column_capacity;
    int32_t resolved; /* nodes [0, resolved) have their columns */
    int32_t mode, block_rows, min_score, n_hits, n_ties;
    int32_t max_score, gap_open, gap_extend;
    lw_hit *hits, *ties;
} lw_select_args;

/* Lane l of a group runs l rows behind lane 0, so block b of the score kernels covers parts of rows
 * b * block_rows up to (b + 1) * block_rows + LW_BLOCK_TAIL - 1. */
enum { LW_BLOCK_TAIL = 31, LW_SELECT_WARPS = 4 };

__global__ void lw_select_kernel(lw_select_args a);

#endif
