/* search_output.h - writes the hits of a search: BLAST's table, TSV, SAM. */
#ifndef LW_SEARCH_OUTPUT_H
#define LW_SEARCH_OUTPUT_H

#include <stdio.h>
#include "align/align_backend.h"
#include "align/database.h"
#include "common/outfile.h"
#include "common/seqio.h"
#include "lanewise/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One reported hit. Coordinates are 0-based, half-open, of the sequences as aligned: a reverse hit aligns the
 * reverse complement of the query. */
typedef struct lw_match {
    int32_t query;   /* index into the batch */
    int32_t subject; /* index into the view */
    int32_t score;
    bool reverse;
    int32_t qstart, qend, tstart, tend; /* starts are -1 where nothing was traced */
    double bits, evalue;
    int64_t cigar; /* index of its first operation */
    int32_t n_cigar;
} lw_match;

typedef struct lw_search_writer {
    FILE *to;
    const lw_database *database;
    const lw_scoring *scoring; /* in the codes of the database */
    lw_search_format format;
    bool statistics; /* bits and E-values are known */
    bool traced;
    const char *command_line;
} lw_search_writer;

/* The batch whose hits are written. */
typedef struct lw_search_batch {
    const lw_read_batch *reads;
    const lw_seqs
        *queries; /* their codes; reverse complements follow from reads->n on, where there are any */
    const uint32_t *cigar;
} lw_search_batch;

/* What stands before the first hit. */
void lw_search_write_begin(const lw_search_writer *writer);

/* The hits of one query, best first; SAM gets a record even where there is none. `more` is the score of the
 * best hit that was not reported, 0: none. */
void lw_search_write_query(const lw_search_writer *writer, const lw_search_batch *batch, int32_t query,
                           const lw_match *matches, int64_t n, int32_t more);

#ifdef __cplusplus
}
#endif
#endif
