/* align_paths.h - what the kernels of paths (align_cuda_fill.cu, align_cuda_walk.cu) and their host side
 * (align_cuda_paths.h) share.
 *
 * A job is one query strand against one window of a target. Jobs lie side by side in bundles, each bundle the
 * work of one warp: the query's letters are the columns, LW_PATH_COLUMNS to a lane, a group of lanes to a job
 * (to two jobs with words of two scores); the target's letters are the rows. Queries longer than a warp's
 * columns are cut into strips, one warp each, which hand H and F of their last column to the next.
 *
 * Within a band (align_band.h) only some rows of each column are computed. Where a lane's 16 columns have
 * left it, the lane goes on to those that a whole group further right enter it, so that a group of a few
 * lanes goes down the band of a whole job (lw_band_turn()). With checkpoints, whose bands are wide, each
 * strip takes the rows that its columns have in the band (lw_strip_rows()). Both compute some cells around
 * the band; values from outside are minus infinity. */
#ifndef LW_ALIGN_PATHS_H
#define LW_ALIGN_PATHS_H

#include <stdint.h>
#include "align/align_cuda.h"
#include "common/hd.h"

enum {
    LW_PATH_COLUMNS = 16, /* of a lane */
    LW_PATH_STRIP = 32 * LW_PATH_COLUMNS,
    LW_PATH_SIDE = 2,   /* rows that a lane takes side by side */
    LW_PATH_TURNS = 2,  /* columns that strips without checkpoints hand over, in turn */
    LW_PATH_HANDED = 64 /* rows that a strip hands over at a time */
};

/* Where an alignment may end. */
enum { LW_END_CORNER, LW_END_LAST_COLUMN, LW_END_ANYWHERE };

typedef struct lw_path_job {
    int64_t query;  /* place of the first letter of the query as aligned */
    int64_t target; /* of the window's first letter */
    int32_t qlen, tlen;
    int32_t least; /* below that a score proves nothing, and there is no path */
} lw_path_job;

typedef struct lw_bundle {
    int64_t scratch;  /* directions, or checkpoints: first word */
    int64_t border;   /* directions in several strips: what these hand over, first word */
    int32_t first, n; /* jobs */
    int32_t lanes;    /* of a group; 32 with more than one strip */
    int32_t blocks;   /* of LW_PATH_COLUMNS columns in a strip: as many as lanes, or more within a band */
    int32_t strips;
    int32_t rows;        /* the longest window */
    int32_t height;      /* checkpoints: the most rows of a strip */
    int32_t first_strip; /* the number of its first one in the batch */
    int32_t band;        /* 0: all cells */
    int32_t low,
        high; /* the band: what row - column may be, both from 0, columns in front of the query too */
} lw_bundle;

typedef struct lw_strip {
    int32_t bundle, strip;
} lw_strip;

/* The best end cell in one strip. */
typedef struct lw_path_end {
    int32_t score, row; /* row of the matrix, from 0; the first that has the score */
    int32_t column;     /* first query letter of the LW_PATH_COLUMNS that hold the cell; may be negative */
} lw_path_end;

/* The letters of sequences: `bits` (4 or 8) to a letter, in words of 32 bits. */
typedef struct lw_letters {
    const uint32_t *words;
    int32_t bits;
} lw_letters;

/* How scores are held. A value v is zero + v * scale (in each half of a word); with directions the lowest
 * bits are tags: see align_cuda_fill.cu. */
typedef struct lw_path_arithmetic {
    uint32_t zero, floor;             /* H = 0; the least H may be */
    uint32_t edge_h, edge_f[2];       /* left of the first column */
    uint32_t outside_h, outside_f[2]; /* outside a band; E as F */
    int32_t scale, tag, pad; /* of a matrix entry; the whole entry of a column in front of the query */
    uint32_t open[2], extend_e[2], extend_f[2]; /* what is added, by piece */
    /* a cell's code = source + E's bits * weight_e + F's bits * weight_f, a word = word * shift + code for
     * each column, and bias in the end, since F's bits are never 0. Not constants of the kernel, so that
     * these sums are multiply-adds on the FMA pipe. */
    uint32_t shift, weight_e[2], weight_f[2], bias;
    uint32_t one, minus; /* 1 and -1, likewise */
} lw_path_arithmetic;

typedef struct lw_fill_args {
    lw_letters queries, targets;
    const lw_path_job *jobs;
    const lw_bundle *bundles;
    const lw_strip *strips; /* as they are taken, each after its left neighbour */
    int32_t n_strips;
    int32_t *next;     /* strips taken so far */
    int32_t *progress; /* of each strip by number: rows of border ready */
    uint32_t *scratch;
    uint32_t *border;
    lw_path_end *ends;   /* [strip][LW_PATH_ENDS] */
    uint32_t *best_rows; /* LW_END_ANYWHERE: [strip][half][lane][column] H in the first row of the lane's
                            greatest */
    const lw_score_table *table;
    int32_t n_letters, mode, ends_at;
    int32_t gap_open[2], gap_extend[2]; /* penalties */
    int32_t tile, tile_bits; /* checkpoints: rows and columns between two, a power of two; 0: directions */
    /* 1: ends alone, no paths. Then strips keep nothing but the columns that they hand over, and these in
     * LW_PATH_TURNS places: a strip comes to a row when its left neighbour has left it, which so needs no
     * more of the column that the strip overwrites. */
    int32_t scores;
    int32_t keep_mask; /* checkpoints lie above the rows that have none of these bits */
    lw_path_arithmetic by;
} lw_fill_args;

/* Jobs of a bundle at most: 32 groups of one lane, two jobs a word. */
enum { LW_PATH_ENDS = 64 };

typedef struct lw_path_result {
    int64_t ops;                               /* first operation in the batch's compact list */
    int32_t n_ops;                             /* -1: the score is a lower bound, the band proves nothing */
    int32_t qstart, tstart, qend, tend, score; /* coordinates within query and window */
} lw_path_result;

/* Where a path comes into a tile: letters not yet consumed, state (LW_PATH_M or a gap's, and 4 times its
 * piece), operations finished there. */
typedef struct lw_path_mark {
    int32_t i, j, state, n_ops;
} lw_path_mark;

/* A scout's path where it has stopped: the same, its marks, and whether the path goes on from there. */
typedef struct lw_path_scout {
    lw_path_mark end;
    int32_t n_marks, more;
} lw_path_scout;

typedef struct lw_walk_args {
    lw_fill_args fill;
    int32_t n_jobs;
    /* Scouts (see path_tiles()): of each job, 0 for none; rows of tiles of each; their marks and operations
     * at most, of each; whether this launch runs them. */
    int32_t scouts, scout_tiles, most_marks, most_ops, scouting;
    lw_path_scout *scout;
    lw_path_mark *marks;
    uint32_t *scout_ops;
    const int32_t *bundle_of; /* of each job */
    uint32_t *spare;          /* operations of each job, last one first */
    const int64_t *spare_at;  /* where each job's begin, and one more */
    uint32_t *ops;            /* as many at most as there are spare ones */
    unsigned long long *ops_used;
    lw_path_result *results;
    int32_t halves;      /* scores in a word: 1 or 2 */
    int32_t job_threads; /* threads that walk a path over directions: 1 or a warp */
} lw_walk_args;

typedef void (*lw_fill_kernel)(lw_fill_args);
typedef void (*lw_walk_kernel)(lw_walk_args);

/* [word: 0 two scores, 1 one][pieces - 1][1: with directions] */
extern const lw_fill_kernel lw_fill_kernels[2][2][2];
extern const lw_walk_kernel lw_walk_kernels[2];  /* [pieces - 1], over directions */
extern const lw_walk_kernel lw_tiles_kernels[2]; /* [pieces - 1], over checkpoints */

/* Rows of a strip that have room for directions, by the time of its first lane: the kernels go by fours. */
LW_HD int32_t lw_path_slots(int32_t rows, int32_t blocks)
{
    return (rows + LW_PATH_SIDE * (blocks - 1) + 3) / 4 * 4;
}

/* Within a band a group's lane has block k of columns, then block k + lanes, and so on. Each block is
 * LW_PATH_SIDE rows behind its left neighbour. The time, by the rows of block 0, at which the lane of block k
 * goes on, when the block has all rows of the band and its right neighbour has taken those that it needs. The
 * next block must not begin above its first row; that it is not later than the row above the band's first is
 * what lw_band_lanes() sees to. Letters come by eight rows, so these times are multiples of eight, and no two
 * are the same: a lane that goes on takes from its left neighbour what that has computed of its new block. */
LW_HD int32_t lw_band_turn(int32_t high, int32_t lanes, int32_t k)
{
    const int32_t done = (LW_PATH_COLUMNS + LW_PATH_SIDE) * (k + 1) + high,
                  begun = LW_PATH_SIDE * lanes + 8 * k;
    return ((done > begun ? done : begun) + 7) / 8 * 8;
}

/* How many lanes a band needs: block k + lanes begins in row lw_band_turn() - 2 (k + lanes), which must be
 * above row 16 (k + lanes) + low, the first of the band in its first column. */
LW_HD int32_t lw_band_lanes(int32_t low, int32_t high)
{
    const int32_t turn = LW_PATH_COLUMNS + LW_PATH_SIDE;
    const int32_t by_height = (high - low + turn + 8 + turn - 1) / turn,
                  by_start = low < 8 ? (8 - low + LW_PATH_COLUMNS - 1) / LW_PATH_COLUMNS : 1;
    return by_height > by_start ? by_height : by_start;
}

/* The rows [from, to) of a strip over checkpoints, `from` a tile's first. */
typedef struct lw_rows {
    int32_t from, to;
} lw_rows;

LW_HD lw_rows lw_strip_rows(const lw_bundle *b, int32_t strip, int32_t tile)
{
    lw_rows r = {0, b->rows};
    if (b->band) {
        const int32_t above = strip * LW_PATH_STRIP + b->low - 1,
                      below = (strip + 1) * LW_PATH_STRIP + b->high;
        r.from = above > 0 ? above / tile * tile : 0;
        r.to = below < b->rows ? below : b->rows;
    }
    return r;
}

/* Words of directions of one row of a warp and lane, and bits of one cell. */
LW_HD int32_t lw_direction_words(int halves, int pieces)
{
    return LW_PATH_COLUMNS * 4 * pieces * halves / 32;
}

#ifdef __cplusplus
extern "C" {
#endif

int64_t lw_fill_shared_bytes(int halves, int n_letters);                /* per warp */
int64_t lw_tiles_shared_bytes(int pieces, int32_t tile, int n_letters); /* per block of tile / 128 warps */

/* --- the host side ----------------------------------------------------------------------------------------
 */

/* What a context lends; borrowed. */
typedef struct lw_paths_setup {
    const lw_align_setup *setup;
    int policy;
    int multiprocessors;
    int64_t shared_bytes;        /* of a block at most */
    int64_t budget;              /* device bytes */
    const lw_score_table *table; /* on the device */
    const uint8_t *refs;         /* on the device, a byte to a letter */
    const int64_t *ref_start;    /* on the host; of letters in refs */
} lw_paths_setup;

typedef struct lw_paths lw_paths;

/* Streams and memory that are kept from call to call. */
lw_status lw_paths_open(lw_paths **out, const lw_paths_setup *setup, lw_error *err);
void lw_paths_close(lw_paths *paths); /* NULL is allowed */

/* As lw_align_backend.trace and .pairs (forward strands). */
lw_status lw_paths_trace(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                         const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err);
lw_status lw_paths_pairs(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                         lw_path *paths, lw_cigars *cigars, lw_error *err);
/* As lw_align_backend.pair_ends, forward strands; not in local mode. */
lw_status lw_paths_ends(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                        lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
