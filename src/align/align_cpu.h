/* align_cpu.h - what the parts of the CPU backend share: its context, and pairs as vectors.
 *
 *   align_cpu.c         the context and the row of the table
 *   align_cpu_engine.c  pairs in vectors: number ranges, loading, running
 *   align_cpu_ends.c    pair_ends()
 *   align_cpu_trace.c   trace()
 *   align_cpu_place.c   place() */
#ifndef LW_ALIGN_CPU_H
#define LW_ALIGN_CPU_H

#include <string.h>

#include "align/align_backend.h"
#include "align/align_cpu_kernels.h"
#include "align/align_cpu_tuning.h"
#include "align/align_order.h"
#include "align/align_select.h"

/* A block of vector memory that grows and does not keep its content. */
typedef struct lw_cpu_buffer {
    uint8_t *p;
    size_t size;
} lw_cpu_buffer;

/* At least so many bytes. */
lw_status lw_cpu_need(lw_cpu_buffer *b, size_t size, lw_error *err);

/* How scores are held in unsigned lanes. */
typedef struct lw_cpu_range {
    int width;            /* 0, 1, 2: 8, 16, 32 bits */
    uint32_t zero, floor; /* floor: no H of a matrix is lower */
    lw_cpu_gaps gaps;
    int32_t lowest; /* matrix entries below count as this */
} lw_cpu_range;

lw_cpu_range lw_cpu_make_range(const lw_scoring *sc, lw_mode mode, int64_t rows, int64_t columns,
                               int64_t pairs);

static inline int64_t lw_cpu_at_most(int64_t x, int64_t bound)
{
    return x < bound ? x : bound;
}

/* One pair to be scored or traced. */
typedef struct lw_cpu_item {
    const uint8_t *query, *target;
    int32_t m, n;
    int32_t tag; /* the caller's */
} lw_cpu_item;

/* A wave within a band of diagonals: see align_cpu_engine.c. */
typedef struct lw_cpu_band {
    int32_t excess;
    int32_t first; /* diagonal that strips begin with, the one before the band: negative */
    int32_t rows;  /* of a strip */
    int64_t strips;
    lw_cpu_range range;
} lw_cpu_band;

/* A pairs job with its memory, loaded with a batch of items or with one item as a wave, whole or in a band.
 */
typedef struct lw_cpu_engine {
    lw_cpu_pairs_job job;
    lw_cpu_range range;
    int lanes, n_items;
    const lw_cpu_item *items;
    int64_t steps;
    lw_cpu_band band;
    int64_t newest;       /* strip of the band that began last */
    int64_t reversed_end; /* letters before the end of the target's first letter in `reversed` */
    int16_t matrix[LW_MAX_LETTERS * LW_MAX_LETTERS]; /* by target letter, nothing below range.lowest */
    int8_t narrow[LW_MAX_LETTERS * LW_MAX_LETTERS];  /* the same in bytes, where they fit */
    const uint8_t *lane_profile[LW_CPU_MAX_LANES];
    lw_cpu_buffer profile, query, target, may_end, state, gathered, best, directions, saved, reversed;
} lw_cpu_engine;

typedef struct lw_cpu_worker {
    lw_cpu_engine engine;
    lw_cpu_buffer profile, index, h, d, border, maxima, top, active, codes, items, selects, exact;
} lw_cpu_worker;

typedef struct lw_cpu {
    lw_align_setup setup;
    const lw_cpu_kernels *kernels;
    bool small_alphabet; /* lookups by table of 4 x 4 */
    /* Bands: pairs of fewer cells get none; the excess of the first where no score is known, -1: guessed;
     * also those that cost more than they save. For tests. */
    int64_t band_cells;
    int32_t first_excess;
    bool every_band;
    size_t trace_bytes; /* of directions that the trace of a long pair keeps; fewer for tests */
    int16_t transposed[LW_MAX_LETTERS * LW_MAX_LETTERS];
    int32_t row_best[LW_MAX_LETTERS]; /* most that a query letter can score, at least 0 */
    lw_word_index words;
    lw_block_map map;
    int64_t *first_block;
    int32_t longest_ref;
    int n_workers;
    lw_cpu_worker *workers;
} lw_cpu;

/* ---- pairs engine ---------------------------------------------------------------------------------- */

static inline int64_t lw_cpu_lane_count(const lw_cpu *c, int width)
{
    return c->kernels->vector_bytes >> width;
}

/* Puts x into lane `lane` of the vector at p. */
static inline void lw_cpu_put(uint8_t *p, int width, int64_t lane, uint32_t x)
{
    if (width == 0)
        p[lane] = (uint8_t)x;
    else if (width == 1)
        ((uint16_t *)p)[lane] = (uint16_t)x;
    else
        ((uint32_t *)p)[lane] = x;
}

static inline uint32_t lw_cpu_get(const uint8_t *p, int width, int64_t lane)
{
    return width == 0 ? p[lane] : width == 1 ? ((const uint16_t *)p)[lane] : ((const uint32_t *)p)[lane];
}

/* Lookup indices: query | target is query letter << 2 | target letter in the low byte, or has bit 7 set where
 * a fifth letter takes part; the bytes above have bit 7 set and so take those of `other`, which are 0. */
static inline uint32_t lw_cpu_query_index(uint8_t code)
{
    return 0x80808000u | (code < 4 ? (uint32_t)code << 2 : 0x80u);
}

/* Vectors of a job's state, and of directions that a step leaves. */
static inline size_t lw_cpu_state_vectors(const lw_cpu_pairs_job *job)
{
    return (size_t)(1 + job->gaps.pieces) * (size_t)job->rows + 2 + (size_t)job->gaps.pieces;
}

static inline size_t lw_cpu_direction_vectors(const lw_cpu_pairs_job *job, int width)
{
    return ((size_t)job->rows * (size_t)job->gaps.pieces) >> (width + 1);
}

lw_cpu_range lw_cpu_plan_range(const lw_cpu *c, const lw_cpu_item *items, int n, bool wave, int32_t *rows);
lw_status lw_cpu_engine_load(const lw_cpu *c, lw_cpu_engine *e, const lw_cpu_item *items, int n, bool wave,
                             lw_error *err);
/* The band of this excess (align_band.h) or of a greater one that costs no more; false: none that is worth
 * while. */
bool lw_cpu_plan_band(const lw_cpu *c, const lw_cpu_item *it, int32_t excess, lw_cpu_band *band);
lw_status lw_cpu_engine_load_band(const lw_cpu *c, lw_cpu_engine *e, const lw_cpu_item *it,
                                  const lw_cpu_band *band, lw_error *err);
/* The step that a strip of the band that is loaded begins with. */
int64_t lw_cpu_band_begins(const lw_cpu_engine *e, int64_t strip);
void lw_cpu_engine_run(const lw_cpu *c, lw_cpu_engine *e, int64_t first, int64_t last, bool directions,
                       void (*look)(void *arg, const lw_cpu_engine *e, int64_t first, int64_t last),
                       void *arg);

static inline bool lw_cpu_is_long(const lw_cpu_item *it)
{
    return (int64_t)it->m * it->n > LW_CPU_WAVE_CELLS;
}

/* How many of the items from the first on make one batch: as many as there are lanes, none of them long. */
int lw_cpu_batch_of(const lw_cpu *c, const lw_cpu_item *items, int64_t n);

int lw_cpu_compare_items(const void *a, const void *b);

/* Pairs by size, largest first, so that lanes and threads finish together. */
typedef struct lw_cpu_sized {
    int64_t size, index;
} lw_cpu_sized;

int lw_cpu_compare_sizes(const void *a, const void *b);

/* Tasks per thread: several, so that the last ones are short, but of many items each. */
int64_t lw_cpu_chunk_of(const lw_cpu *c, int64_t n);

/* Copies a sequence, or its reverse complement. */
static inline void lw_cpu_take_strand(uint8_t *out, const uint8_t *codes, int32_t n, bool reverse,
                                      const lw_scoring *sc)
{
    if (n > 0 && !reverse)
        memcpy(out, codes, (size_t)n);
    else
        for (int32_t i = 0; i < n; i++)
            out[i] = sc->complement[codes[n - 1 - i]];
}

static inline int64_t lw_cpu_gap_score(const lw_scoring *sc, int64_t letters)
{
    if (letters == 0)
        return 0;
    const int64_t first = sc->gap_open + letters * sc->gap_extend,
                  second = sc->gap_open2 + letters * sc->gap_extend2;
    return -(sc->two_piece && second < first ? second : first);
}

/* The best end cell of each item so far: raw lane values, 0: none. */
typedef struct lw_cpu_end {
    uint32_t raw;
    int64_t column, row; /* 0-based */
} lw_cpu_end;

static inline bool lw_cpu_better(const lw_cpu_end *a, const lw_cpu_end *b)
{
    if (a->raw != b->raw)
        return a->raw > b->raw;
    return a->column != b->column ? a->column < b->column : a->row < b->row;
}

/* ---- the row's functions ---------------------------------------------------------------------------- */

/* Target letters that a path of the query's m letters may span if it scores `score` or more: m and the
 * deletions that still leave the score. The proof is with lw_trace_window(); here each letter counts with the
 * most it can score itself. -1: no bound. */
int64_t lw_cpu_span_of(const lw_cpu *c, const uint8_t *query, int64_t m, int64_t score);

lw_status lw_cpu_pair_ends(void *context, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                           lw_error *err);
lw_status lw_cpu_trace(void *context, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                       const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err);
lw_status lw_cpu_place(void *context, const lw_seqs *reads, lw_placements *out, lw_error *err);

#endif
