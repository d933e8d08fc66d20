/* aligned.h - a read with its alignments, as the writers see it, and what a writer is. */
#ifndef LW_ALIGNED_H
#define LW_ALIGNED_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>
#include "lanewise/align.h"
#include "align/align_backend.h"
#include "align/cigar.h"
#include "common/outfile.h"
#include "common/seqio.h"

/* One alignment. Coordinates are those of the sequences as aligned: of the read's reverse complement when
 * `reverse`. Texts are borrowed from the batch or the references. */
typedef struct lw_alignment {
    int32_t target; /* index of the reference, or of the pair; -1: no alignment, all else unspecified */
    const char *target_name, *target_letters;
    int32_t target_len;
    int32_t score, second; /* second: LW_NO_SECOND counts as 0 */
    int32_t qstart, qend, tstart, tend;
    bool reverse;
    uint8_t mapq;
    const uint32_t *cigar; /* M I D, or = X I D with --eqx; no clips */
    int32_t n_cigar;
    bool ends_only; /* the path and with it the starts are not known */
    lw_path_counts counts;
} lw_alignment;

/* One read, its primary alignment and its secondary ones. */
typedef struct lw_aligned_read {
    const lw_read_batch *batch;
    int64_t index; /* in batch */
    const char *name;
    int32_t name_len;
    const char *forward, *reversed; /* letters; reversed (reverse complement) is there if some alignment is */
    int n;                          /* alignments, >= 1; [0] is the primary one and may have target -1 */
    const lw_alignment *alignment;
    const char *pair_target;  /* `pairs`: name of the target, also where nothing aligned; else NULL */
    int which_mate;           /* 1 or 2; 0: not part of a pair */
    const lw_alignment *mate; /* the mate's primary alignment; NULL unless paired */
    int32_t mate_len;         /* letters of the mate */
    bool proper;              /* the pair is a proper one */
} lw_aligned_read;

/* Formatted records of consecutive reads, filled by one thread, then written in order. Keeps its memory from
 * batch to batch; zero-initialise, free with lw_chunk_free(). */
typedef struct lw_chunk {
    kstring_t text;  /* text formats */
    bam1_t **record; /* SAM, BAM, CRAM by htslib */
    int64_t n_record, record_capacity;
    kstring_t scratch[3];
} lw_chunk;

void lw_chunk_free(lw_chunk *chunk);

/* A writer of one format. */
typedef struct lw_sink lw_sink;
struct lw_sink {
    /* Appends the records of one read to chunk. Called from many threads at a time, each with its own chunk.
     */
    lw_status (*format)(const lw_sink *self, lw_chunk *chunk, const lw_aligned_read *read, lw_error *err);
    /* Writes a chunk and empties it. LW_E_IO. */
    lw_status (*write)(lw_sink *self, lw_chunk *chunk, lw_error *err);
    /* Ends the stream and frees self; the output file itself stays open. LW_E_IO. */
    lw_status (*close)(lw_sink *self, lw_status so_far, lw_error *err);
};

#endif
