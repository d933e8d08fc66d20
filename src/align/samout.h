/* samout.h - SAM, BAM and CRAM by htslib; protein, which htslib's records cannot hold, as SAM text. */
#ifndef LW_SAMOUT_H
#define LW_SAMOUT_H

#include "align/aligned.h"
#include "common/refs.h"

/* One @SQ line. */
typedef struct lw_sq {
    const char *name;
    int32_t len;
    char md5[33];
} lw_sq;

/* Everything is borrowed until the writer is closed. */
typedef struct lw_samout_options {
    lw_align_format format; /* LW_FORMAT_SAM, LW_FORMAT_BAM or LW_FORMAT_CRAM */
    lw_alphabet_type type;  /* LW_PROTEIN: SAM only */
    lw_pool *pool;
    const lw_host *host;
    const lw_match_table *match;
    const lw_sq *sq;
    int64_t n_sq;
    bool targets_by_name;            /* `pairs`: a target's @SQ line has its name, not its number */
    const char *ur;                  /* UR of all @SQ lines; NULL: none */
    struct sam_hdr_t *const *header; /* of SAM, BAM and CRAM inputs: @RG, @PG and @CO are kept */
    const char *const *header_path;  /* their files, for messages */
    int n_headers;
    const char *read_group;   /* "@RG\tID:...", with tabs or with \t spelt out; NULL: none */
    const char *command_line; /* for @PG; NULL: none */
    const char *fasta;        /* CRAM: indexed FASTA file of the references */
    bool unmapped;            /* write reads without an alignment */
} lw_samout_options;

/* Writes the header. LW_E_ARG (read group), LW_E_INPUT (headers that contradict each other), LW_E_IO,
 * LW_E_NOMEM. */
lw_status lw_samout_open(lw_sink **out, const lw_samout_options *options, lw_outfile *file, lw_error *err);

/* UR for a reference file: "file://" and the absolute path; empty (still LW_OK) for what is no regular file
 * or has a path that a header line cannot carry. */
lw_status lw_sam_ur(const char *path, kstring_t *out, lw_error *err);

#endif
