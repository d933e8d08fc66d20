/* seqio_input.h - what the readers of text and of SAM, BAM and CRAM share: an open input, and a batch that
 * grows.
 *
 * Private to seqio.c, which opens inputs and goes from one to the next, seqio_text.c and seqio_bam.c. */
#ifndef LW_SEQIO_INPUT_H
#define LW_SEQIO_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <htslib/sam.h>

#include "common/fail.h"
#include "common/seqio.h"

enum {
    LW_SEQIO_STOP_INTERVAL = 4096, /* records between two looks at the host's stop flag */
    LW_SEQIO_NAME_SHOWN = 80       /* characters of a name in messages */
};

typedef struct lw_input {
    const char *path;  /* as given */
    const char *shown; /* for messages */
    lw_file_kind kind;
    bool regular; /* may be opened again */
    int64_t bytes;
    int fd;       /* of the open file, which owns it; -1: closed */
    BGZF *text;   /* FASTA, FASTQ */
    htsFile *hts; /* SAM, BAM, CRAM */
    sam_hdr_t *header;
    bool open_end;     /* SAM: the last line has no line end */
    size_t line_bytes; /* SAM: of the line that was parsed last */
    /* of text */
    uint8_t *buffer;
    int begin, end; /* what of the buffer is unread */
    int64_t line;   /* 1-based, of the next unread character */
} lw_input;

struct lw_seqio {
    lw_seqio_options options;
    int n;
    int current; /* input being read */
    lw_input *inputs;
    lw_seqio_counts counts;
    int64_t number; /* records of the current input so far */
    bam1_t *record;
};

/* Grows *array, of elements of `size` bytes, to hold `need` of them. LW_E_NOMEM. */
lw_status lw_batch_reserve(void *array, int64_t *capacity, int64_t need, size_t size, lw_error *err);
/* Room for so many more bytes of text. */
lw_status lw_batch_reserve_text(lw_read_batch *b, int64_t more, lw_error *err);

/* A failure in the record being read, which is read[n] of the batch; its name may not be there yet (name_len
 * 0). LW_E_INPUT. */
lw_status lw_fail_record(const lw_seqio *r, const lw_read_batch *b, lw_error *err, const char *format, ...)
    LW_PRINTF(4, 5);

/* --- FASTA and FASTQ, seqio_text.c ---------------------------------------------------------------- */

/* Puts the text stream before the first record and tells FASTA from FASTQ. Takes `stream`. */
lw_status lw_text_open(const lw_seqio *r, lw_input *in, hFILE *stream, lw_error *err);
/* The next record of the current input; *got: there was one, now read[n]. */
lw_status lw_text_read(lw_seqio *r, lw_read_batch *b, lw_read *read, bool *got, lw_error *err);

/* --- SAM, BAM and CRAM, seqio_bam.c --------------------------------------------------------------- */

/* Reads the header; in->kind says which it is. Takes `stream`. */
lw_status lw_bam_open(const lw_seqio *r, lw_input *in, hFILE *stream, lw_error *err);
/* The next primary record of the current input; *got: there was one, now read[n]. */
lw_status lw_bam_read(lw_seqio *r, lw_read_batch *b, lw_read *read, bool *got, lw_error *err);

#endif
