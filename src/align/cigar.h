/* cigar.h - what follows from a path: its score, M split into = and X, NM and MD.
 *
 * Paths are BAM operations without clips; `query` and `target` point at the first aligned letter of
 * each, as text, the query in the orientation in which it was aligned. */
#ifndef LW_CIGAR_H
#define LW_CIGAR_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/kstring.h>
#include "lanewise/align.h"
#include "align/align_backend.h"

/* Which letters count as a match. DNA follows samtools calmd: IUPAC codes in 4 bits, equal and not N.
 * Protein: the same letter with a column of its own, and not X. 0: never a match. */
typedef struct lw_match_table {
    uint8_t same_as[256];
} lw_match_table;

void lw_match_table_fill(lw_match_table *out, const lw_scoring *scoring);

/* Counts along a path. nm = mismatches + inserted + deleted letters. */
typedef struct lw_path_counts {
    int64_t matches;
    int64_t columns; /* alignment length, gaps included */
    int64_t nm;
    int64_t query_letters, target_letters;
} lw_path_counts;

void lw_path_count(const lw_match_table *match, const char *query, const char *target, const uint32_t *cigar,
                   int64_t n_cigar, lw_path_counts *out);

/* Appends the path with every M, = and X cut into = and X anew. LW_E_NOMEM. */
lw_status lw_path_split(const lw_match_table *match, const char *query, const char *target,
                        const uint32_t *cigar, int64_t n_cigar, lw_cigars *out, lw_error *err);

/* Whether the path has an = or X that the letters contradict. */
bool lw_path_contradicts(const lw_match_table *match, const char *query, const char *target,
                         const uint32_t *cigar, int64_t n_cigar);

/* Appends the MD string of samtools calmd. Non-zero when memory is out. */
int lw_path_md(const lw_match_table *match, const char *query, const char *target, const uint32_t *cigar,
               int64_t n_cigar, kstring_t *out);

/* The score of a path of codes: the sum of its columns less the cost of its gaps. Operations of one kind in a
 * row are one gap, as other programs may write it. */
int64_t lw_path_score(const lw_scoring *scoring, const uint8_t *query, const uint8_t *target,
                      const uint32_t *cigar, int64_t n_cigar);

/* Appends a path as text ("5=1X3I"); "*" for an empty one. Non-zero when memory is out. */
int lw_path_text(const uint32_t *cigar, int64_t n_cigar, kstring_t *out);

/* MAPQ of the best placement; `second` LW_NO_SECOND counts as 0. */
uint8_t lw_mapq(const lw_scoring *scoring, lw_mode mode, int32_t score, int32_t second, int32_t query_len);

#endif
