/* refs.h - reference sequences, all of them in memory. */
#ifndef LW_REFS_H
#define LW_REFS_H

#include <stdint.h>
#include "lanewise/status.h"
#include "common/outfile.h"
#include "common/pool.h"

typedef struct lw_refs {
    char *path;     /* as given */
    int64_t n;      /* sequences, >= 1 */
    int64_t total;  /* letters of all */
    char **name;    /* to the first white space; unique, not empty */
    char *letters;  /* upper case, one sequence after the other, a NUL behind each */
    int64_t *start; /* of sequence i within letters */
    int32_t *len;   /* letters, >= 1 */
} lw_refs;

/* Loads every record of a FASTA file (plain, gzip, bgzip, or "-"; FASTQ does too). LW_E_IO, LW_E_INPUT: as
 * lw_seqio_open() and lw_seqio_read(), and for no records, an empty or duplicate name, an empty sequence;
 * LW_E_NOMEM. */
lw_status lw_refs_load(lw_refs **out, const char *path, lw_pool *pool, const lw_host *host, lw_error *err);
void lw_refs_free(lw_refs *refs); /* NULL is allowed */

/* SAM's M5: MD5 of the upper-case letters, in hexadecimal. LW_E_NOMEM. */
lw_status lw_refs_md5(const lw_refs *refs, int64_t i, char md5[33], lw_error *err);

/* A FASTA file with its .fai beside it that holds these references, as CRAM needs (hts_set_fai_filename): the
 * file they came from where it is indexed already, else a copy in the temporary folder, removed by
 * lw_fasta_close(). Never writes beside the user's file. LW_E_IO, LW_E_NOMEM. */
typedef struct lw_fasta lw_fasta;
lw_status lw_refs_indexed_fasta(lw_fasta **out, const lw_refs *refs, lw_temporaries *temporaries,
                                lw_error *err);
const char *lw_fasta_path(const lw_fasta *fasta);
void lw_fasta_close(lw_fasta *fasta); /* NULL is allowed */

#endif
