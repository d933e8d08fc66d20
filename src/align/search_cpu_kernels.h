/* search_cpu_kernels.h - the vector kernels of the CPU search, one table per instruction set.
 *
 * Every lane of a vector aligns a subject of its own with the same query. A plan lays the letters of many
 * subjects out for that: where a subject ends the next one begins in the same lane, so that lanes stay busy
 * whatever the lengths. */
#ifndef LW_SEARCH_CPU_KERNELS_H
#define LW_SEARCH_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/align.h"

enum {
    LW_SEARCH_MAX_COLUMNS = 8, /* subject letters that a pass over the query takes at once, at most */
    LW_SEARCH_VEC_MAX = 64,    /* bytes of the widest vector, and alignment of all vector memory */
    LW_SEARCH_OVERFLOW = -1    /* in place of a score that the lane could not hold */
};

/* At block `block` the lane has finished `done` and begins `next`: indices of subjects in the plan, -1: none.
 */
typedef struct lw_search_event {
    int32_t block, lane, done, next;
} lw_search_event;

typedef struct lw_search_plan {
    int64_t n_blocks; /* of as many letters a lane as a pass takes */
    uint8_t *letters; /* [block][column] vectors: every byte of a lane is its letter, LW_DATABASE_PAD where
                         none is */
    int64_t n_events; /* by block; those of block n_blocks end what is left */
    lw_search_event *events;
} lw_search_plan;

/* Queries against a plan. */
typedef struct lw_search_job {
    int32_t n_queries;
    const int32_t *len; /* of query q; their codes stand back to back. screen(): each has an even number,
                           where need be by a last code that scores the lowest entry with every letter */
    const uint8_t *codes;
    int32_t n_used; /* codes that occur in the queries */
    const uint8_t *used;
    /* Scores of a query code against the 32 subject codes: their bytes, lowest first (the third is the sign).
     */
    const int8_t (*table)[3][LW_MAX_LETTERS];
    int32_t open_extend, extend;
    int32_t zero;  /* the lane value of score 0 */
    int32_t limit; /* a best value of at least this may be wrong: overflow */
    const lw_search_plan *plan;
    uint8_t *columns; /* scratch: two vectors for each letter of the queries */
    uint8_t *profile; /* scratch: LW_SEARCH_MAX_COLUMNS vectors for each of 32 codes */
    uint8_t *best;    /* scratch: a vector for each query */
    uint8_t *scratch; /* of screen(), in place of those three: screen_scratch() bytes */
    int32_t *scores;  /* out: [subject of the plan * n_queries + query], or LW_SEARCH_OVERFLOW */
} lw_search_job;

/* What a value of screen() says of the exact score: it is at most value + above. */
typedef struct lw_search_screen {
    int32_t zero, limit; /* for the job; limit <= 0: lanes of 8 bits are too narrow */
    int32_t above;
} lw_search_screen;

/* One query against one subject at a time, for subjects so long that other lanes would wait for them: lane l
 * holds the letters l * rows to (l + 1) * rows - 1 of the query. */
typedef struct lw_search_striped_job {
    int32_t rows;
    const uint8_t *subject;
    int32_t n;
    int32_t open_extend, extend;
    const uint8_t *profile; /* [subject code][row] vectors of scores */
    uint8_t *columns;       /* scratch: three vectors for each row */
} lw_search_striped_job;

typedef struct lw_search_kernels {
    int vector_bytes;
    int columns; /* subject letters that a pass takes at once: 4 or 8 */
    bool wraps;  /* score[] wants room below zero and above the limit, see search_cpu_lanes.h */
    /* index 0, 1, 2: lanes of 8, 16, 32 bits */
    void (*score[3])(const lw_search_job *job);
    void (*gapless[3])(const lw_search_job *job);            /* best score without gaps */
    int32_t (*striped[3])(const lw_search_striped_job *job); /* a score, or LW_SEARCH_OVERFLOW */
    /* Upper bounds of the scores, in lanes of 8 bits, for these penalties and entries from lowest to highest.
     */
    lw_search_screen (*screen_range)(int32_t open, int32_t extend, int32_t lowest, int32_t highest);
    size_t (*screen_scratch)(const lw_search_job *job); /* for its queries */
    void (*screen)(const lw_search_job *job);
} lw_search_kernels;

extern const lw_search_kernels lw_search_kernels_avx512bw, lw_search_kernels_avx2, lw_search_kernels_sse41,
    lw_search_kernels_neon, lw_search_kernels_plain;

#endif
