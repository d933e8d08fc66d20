/* overlap.h - alignments whose four ends are free, as EMBOSS needle scores them, by semiglobal ones.
 *
 * A new letter scores 0 with every letter. Each target gets as many of it at either end as its query has
 * letters; then the whole query is aligned to that in semiglobal mode. A query letter that would stand beyond
 * the target's end pairs with the new letter for nothing, and the target's ends are free by the mode; so the
 * scores are those of free ends, and without the pairs with the new letter the path is one of them. */
#ifndef LW_OVERLAP_H
#define LW_OVERLAP_H

#include "align/align_backend.h"
#include "align/encode.h"

/* Adds the letter. LW_E_ARG: there is no code left. */
lw_status lw_overlap_scoring(lw_scoring *scoring, lw_error *err);

/* Every target with `pad` of the letter at either end; pad < 0: with as many as the query of its number has
 * letters. LW_E_RANGE, LW_E_NOMEM. */
lw_status lw_overlap_pad(const lw_scoring *scoring, const lw_seqs *queries, const lw_seqs *targets,
                         int64_t pad, lw_encoded *out, lw_error *err);

/* Ends of a hit on a padded target, on query and target themselves. */
void lw_overlap_ends(lw_hit *hit, int32_t query_len, int32_t target_len);

/* The traced path without its pairs with the letter: task and path then speak of query and target themselves.
 * False: nothing is left of it. */
bool lw_overlap_trim(lw_trace_task *task, lw_path *path, uint32_t *cigar, int32_t query_len,
                     int32_t target_len);

#endif
