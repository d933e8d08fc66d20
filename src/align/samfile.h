/* samfile.h - whole records to SAM, BAM or CRAM by htslib, whatever happens to the file behind it. */
#ifndef LW_SAMFILE_H
#define LW_SAMFILE_H

#include <stdbool.h>
#include <htslib/sam.h>
#include "lanewise/align.h"
#include "common/outfile.h"
#include "common/pool.h"

typedef struct lw_samfile lw_samfile;

/* Everything is borrowed until the file is closed. */
typedef struct lw_samfile_options {
    lw_align_format format; /* LW_FORMAT_SAM, LW_FORMAT_BAM or LW_FORMAT_CRAM */
    sam_hdr_t *header;
    lw_pool *pool;        /* encodes SAM and BAM; NULL: the calling thread alone */
    const char *fasta;    /* CRAM: indexed FASTA file of the references */
    bool many_references; /* CRAM: the records jump between references */
} lw_samfile_options;

/* Adds our @PG line, chained to those that are there. command_line NULL: without CL. LW_E_INPUT, LW_E_NOMEM.
 */
lw_status lw_samfile_add_program(sam_hdr_t *header, const char *command_line, lw_error *err);

/* Writes the header. LW_E_IO, LW_E_NOMEM. */
lw_status lw_samfile_open(lw_samfile **out, const lw_samfile_options *options, lw_outfile *file,
                          lw_error *err);
/* LW_E_IO, also for an earlier record; LW_E_INTERNAL: a record that the format cannot hold. */
lw_status lw_samfile_write(lw_samfile *self, const bam1_t *record, lw_error *err);
/* Whether what was written so far has arrived, as far as is known. LW_E_IO. */
lw_status lw_samfile_check(const lw_samfile *self, lw_error *err);
/* Ends the stream and frees self; the output file itself stays open. NULL is allowed. */
lw_status lw_samfile_close(lw_samfile *self, lw_status so_far, lw_error *err);

#endif
