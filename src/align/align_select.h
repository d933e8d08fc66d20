/* align_select.h - from block maxima to placements, exactly.
 *
 * A score pass leaves, for each strand of a read, the highest H among the end cells of each block of
 * reference columns. A selection turns these into what lw_placements wants, asking for the cells of a few
 * blocks only:
 *
 *     lw_select_begin(&s, ...);
 *     while (lw_select_next(&s, &ask))
 *         score the columns first .. last of `ask` exactly and hand them over, in any pieces but in order:
 *         lw_select_column(&s, tend, score, qend);
 *
 * A column's score is the highest H among its end cells, qend its smallest row; scores below ask.score may
 * be given too low or left out. Plain C, no allocation: it serves every backend that makes block maxima. */
#ifndef LW_ALIGN_SELECT_H
#define LW_ALIGN_SELECT_H

#include <stdint.h>
#include "align/align_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks of all references, in their order. Block b of a reference covers the target ends
 * b * B + 1 .. (b + 1) * B, B = 1 << shift; in semiglobal mode block 0 also covers target end 0. In global
 * mode a reference is one block, whose end is its length. */
typedef struct lw_block_map {
    const lw_seqs *refs;
    const int64_t *first_block; /* of each reference; n + 1 entries */
    int shift;
} lw_block_map;

/* The block maxima of one strand: unsigned numbers of `bytes` bytes, `stride` bytes apart, holding
 * score + zero. */
typedef struct lw_block_maxima {
    const uint8_t *base;
    int64_t stride;
    int bytes; /* 1, 2, 4 */
    uint32_t zero;
    bool loose; /* scores at or below `vague` are upper bounds only */
    int32_t vague;
} lw_block_maxima;

/* A block, or nothing (target -1). */
typedef struct lw_select_place {
    int32_t target;
    uint8_t reverse;
    int64_t block; /* within the target */
} lw_select_place;

typedef struct lw_select_ask {
    lw_select_place place;
    int32_t first, last; /* target ends */
    int32_t score;       /* what must be exact: scores at or above */
} lw_select_ask;

/* A block that is partly inside a neighbourhood, after its remaining columns were scored. */
typedef struct lw_select_exact {
    lw_select_place place;
    lw_hit best; /* target -1: nothing that matters */
} lw_select_exact;

typedef struct lw_select {
    const lw_align_setup *setup;
    const lw_block_map *map;
    lw_block_maxima maxima[2]; /* forward, reverse; base NULL: strand not wanted */
    int32_t read_length;
    lw_hit *hits, *ties;
    /* state */
    int phase;
    int k; /* the hit or tie in hand */
    lw_hit *list;
    int n_list, list_capacity; /* co-optimal placements */
    int32_t best;
    lw_select_place cursor;
    const lw_hit *zones; /* neighbourhoods that the present search keeps out of */
    int n_zones;
    bool vague;             /* ended early: loose maxima could not tell. Make exact ones and begin again. */
    lw_select_exact *exact; /* the caller's: 2 * n_hits (at least 2) entries */
    int n_exact;
    lw_select_ask ask;
    lw_hit found;
} lw_select;

/* hits and ties as in lw_placements, for one read of read_length >= 1 letters; ties may be NULL. */
void lw_select_begin(lw_select *s, const lw_align_setup *setup, const lw_block_map *map, int32_t read_length,
                     const lw_block_maxima *forward, const lw_block_maxima *reverse, lw_hit *hits,
                     lw_hit *ties, lw_select_exact *exact);

/* True: the columns of *ask are wanted. False: hits and ties are filled. */
bool lw_select_next(lw_select *s, lw_select_ask *ask);

void lw_select_column(lw_select *s, int32_t tend, int32_t score, int32_t qend);

/* The first block of the map that fits `limit` blocks or a few more: shift and first_block (n + 1 entries).
 */
void lw_block_map_make(lw_block_map *map, const lw_seqs *refs, lw_mode mode, int64_t limit,
                       int64_t *first_block);

#ifdef __cplusplus
}
#endif
#endif
