/* seqio.h - reads sequences: FASTA and FASTQ (plain, gzip, bgzip), SAM, BAM and CRAM, from files or
 * standard input, in batches of bounded memory.
 *
 * The format is found from the content. Sequence letters are delivered as text, upper or lower case as they
 * stand, in the orientation in which the read left the machine (BAM's reverse-strand records are turned
 * back); which letters are legal is the caller's business (src/align/encode.h). What a file's format promises
 * is checked: every failure is one line with file, record number, name and remedy. */
#ifndef LW_SEQIO_H
#define LW_SEQIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"
#include "common/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sam_hdr_t; /* htslib's header */
struct bam1_t;    /* and record */

/* The longest name that BAM and CRAM hold. */
enum { LW_BAM_NAME_MAX = 254 };

typedef enum lw_file_kind {
    LW_FILE_FASTA,
    LW_FILE_FASTQ,
    LW_FILE_SAM,
    LW_FILE_BAM,
    LW_FILE_CRAM
} lw_file_kind;

/* One record. Texts are offsets into lw_read_batch.text, each followed by a NUL; use the lw_read_* calls
 * below. */
typedef struct lw_read {
    int64_t name;    /* up to the first white space; BAM's "*" is the empty name */
    int64_t comment; /* what follows on the header line, without the white space between */
    int64_t seq;     /* letters */
    int64_t qual;    /* Phred + 33, as many as letters; -1: none */
    int64_t aux;     /* offset into lw_read_batch.aux: BAM-encoded tags to carry on; -1: none */
    int64_t number;  /* 1-based, of this record within its file (of BAM: all records counted) */
    int32_t name_len, comment_len;
    int32_t len;     /* letters, >= 0; a sequence longer than 2^31 - 1 letters is refused */
    int32_t aux_len; /* bytes */
    int32_t input;   /* index of its file */
    uint16_t
        flag; /* of BAM: the bits of 0x1 | 0x40 | 0x80 | 0x200 | 0x400 (pair flags, QC-fail, duplicate) */
    uint8_t from_bam; /* 1: came from SAM, BAM or CRAM */
} lw_read;

/* A batch owns its arrays and keeps them between calls. Zero-initialise; free with lw_read_batch_free(). */
typedef struct lw_read_batch {
    int64_t n;       /* records; 0 at the end of the last input */
    int64_t first;   /* records delivered before this batch, all inputs together */
    int64_t letters; /* sum of read[].len */
    lw_read *read;
    char *text;
    uint8_t *aux;
    int64_t n_text, n_aux; /* bytes in use */
    int64_t read_capacity, text_capacity, aux_capacity;
} lw_read_batch;

static inline const char *lw_read_name(const lw_read_batch *b, int64_t i)
{
    return b->text + b->read[i].name;
}

static inline const char *lw_read_comment(const lw_read_batch *b, int64_t i)
{
    return b->text + b->read[i].comment;
}

static inline const char *lw_read_seq(const lw_read_batch *b, int64_t i)
{
    return b->text + b->read[i].seq;
}

/* NULL where there are no qualities. */
static inline const char *lw_read_qual(const lw_read_batch *b, int64_t i)
{
    return b->read[i].qual < 0 ? NULL : b->text + b->read[i].qual;
}

/* BAM-encoded tags without NM MD AS XS SA MC MQ, ready to be appended to a bam1_t's data; aux_len bytes. */
static inline const uint8_t *lw_read_aux(const lw_read_batch *b, int64_t i)
{
    return b->read[i].aux < 0 ? NULL : b->aux + b->read[i].aux;
}

void lw_read_batch_free(lw_read_batch *batch); /* frees the arrays, zeroes *batch */

typedef struct lw_seqio_options {
    lw_pool *pool;         /* helps decoding BGZF, BAM and CRAM; NULL: the calling thread alone */
    const char *reference; /* FASTA to decode CRAM with (lw_refs_indexed_fasta()); NULL: none */
    const lw_host *host;   /* warnings and stop; may be NULL */
    bool whole_records;    /* for lw_seqio_record(): CRAM's NM and MD are wanted too */
    int group; /* a batch ends only after a multiple of this many records (2: interleaved pairs); 0 = 1 */
} lw_seqio_options;

/* How many records there were. */
typedef struct lw_seqio_counts {
    int64_t records, letters;         /* delivered */
    int64_t secondary, supplementary; /* of BAM: left out */
    int64_t unnamed, empty;           /* delivered with an empty name, with an empty sequence */
} lw_seqio_counts;

typedef struct lw_seqio lw_seqio;

/* Opens and examines every input before anything is read ("-": standard input, at most once). Borrows
 * options' pointers and the paths until closed. CRAM never fetches references over the network: it uses
 * `reference`, and local places that the file itself names. LW_E_IO: missing, unreadable; LW_E_INPUT: empty,
 * unknown format, BAM or CRAM without its end-of-file block; LW_E_NOMEM. */
lw_status lw_seqio_open(lw_seqio **out, const char *const *paths, int n_paths,
                        const lw_seqio_options *options, lw_error *err);
void lw_seqio_close(lw_seqio *reader); /* NULL is allowed */

int lw_seqio_inputs(const lw_seqio *reader);
const char *lw_seqio_path(const lw_seqio *reader, int input); /* "standard input" for "-" */
lw_file_kind lw_seqio_kind(const lw_seqio *reader, int input);
/* The SAM header of an input of kind SAM, BAM or CRAM, else NULL; valid until closed. */
struct sam_hdr_t *lw_seqio_header(const lw_seqio *reader, int input);

/* Fills *batch with the next records: at most max_records (0: no limit), and no further record once
 * max_letters (0: no limit) letters are there; so one record always fits. batch->n == 0 means the end of the
 * last input. After a failure the batch's content is unspecified and the reader can only be closed.
 * LW_E_INPUT, LW_E_IO, LW_E_NOMEM, LW_E_INTERRUPTED. */
lw_status lw_seqio_read(lw_seqio *reader, lw_read_batch *batch, int64_t max_records, int64_t max_letters,
                        lw_error *err);

/* The next record of a single SAM, BAM or CRAM input as it stands, whatever its flags; *got false: there was
 * none. Not to be mixed with lw_seqio_read(). As there; a CIGAR and a SEQ of different lengths, and in SAM
 * text a RNAME or RNEXT that the header does not have, are LW_E_INPUT. */
lw_status lw_seqio_record(lw_seqio *reader, struct bam1_t *record, bool *got, lw_error *err);

const lw_seqio_counts *lw_seqio_count(const lw_seqio *reader);

/* How much of the inputs was read, 0 to 1, by their bytes; below 0 where it cannot be known (a pipe). */
double lw_seqio_fraction(const lw_seqio *reader);

/* "FILE: record NUMBER (NAME)" for messages about read i; returns text. */
const char *lw_read_where(const lw_seqio *reader, const lw_read_batch *batch, int64_t i, char *text,
                          size_t size);

#ifdef __cplusplus
}
#endif
#endif
