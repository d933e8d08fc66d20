/* mates.h - which placements of two mates make a pair, and the fields in which each names the other. */
#ifndef LW_MATES_H
#define LW_MATES_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/align.h"
#include "align/align_backend.h"

/* Accepted distances from the forward mate's first aligned letter to the reverse mate's last one. */
typedef struct lw_insert_range {
    int32_t low, high;
} lw_insert_range;

/* One placement of a mate, with its start once it was traced. */
typedef struct lw_mate_end {
    int32_t target, tstart, tend;
    bool reverse;
} lw_mate_end;

/* Forward-reverse on one target: the forward mate starts before the reverse mate ends, and the distance
 * lies within the range. */
bool lw_proper_pair(const lw_mate_end *a, const lw_mate_end *b, lw_insert_range range);

/* Whether a proper pair of these placements is possible when the forward one starts anywhere from
 * forward_first (the earliest its trace could reach) to its tend. */
bool lw_may_be_proper(const lw_hit *forward, int32_t forward_first, const lw_hit *reverse,
                      lw_insert_range range);

/* TLEN of the record of a in a pair with b: 5' end of b less 5' end of a, as samtools fixmate; 0 unless both
 * lie on one target. */
int64_t lw_template_length(const lw_mate_end *a, const lw_mate_end *b);

/* Length of a read name without a final /1 or /2. */
int32_t lw_mate_name_length(const char *name, int32_t length);

#endif
