/* database.h - sequences to be searched: in memory from FASTA, or mapped from a .lwdb file. */
#ifndef LW_DATABASE_H
#define LW_DATABASE_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/align.h"
#include "lanewise/search.h"
#include "common/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Codes of a database are its own and do not depend on the matrix of a search: the position of the
 * letter in one of these. They begin with the 24 letters of NCBI's files and with the five of
 * lw_scoring_dna(), so the codes past those are rare. */
#define LW_DATABASE_PROTEIN "ARNDCQEGHILKMFPSTWYVBZX*UOJ"
#define LW_DATABASE_DNA "ACGTNRYSWKMBDHV"

/* No letter has this code: kernels may use it for what lies beyond the end of a sequence. */
enum { LW_DATABASE_PAD = LW_MAX_LETTERS - 1 };

/* The sequences by length, longest first, and by place in the user's file where lengths agree.
 * Everything is borrowed, read-only and may be a mapped file larger than the host's memory, so read it
 * front to back and in large pieces where you can. */
typedef struct lw_database_view {
    int64_t n;            /* sequences, 0 .. INT32_MAX */
    int64_t letters;      /* sum of len[] */
    int32_t n_codes;      /* 1 + the highest code that occurs, at least 1: 20 where proteins are plain */
    const uint8_t *codes; /* one byte a letter */
    const int64_t *start; /* of sequence i within codes */
    const int32_t *len;   /* letters, descending, may be 0 */
    const int32_t *order; /* place of sequence i in the user's file, 0 .. n-1, each once */
    bool packed; /* start[i+1] = start[i] + len[i] for all i: whole ranges copy as one piece; else start[]
                    is in any order and a copy must gather */
} lw_database_view;

const lw_database_view *lw_database_get_view(const lw_database *database);
const char *lw_database_name(const lw_database *database, int64_t i); /* of sequence i of the view */
const char *lw_database_path(const lw_database *database);            /* as it was given */
/* How often each code occurs: LW_MAX_LETTERS numbers. */
const int64_t *lw_database_code_counts(const lw_database *database);
bool lw_database_duplicate_names(const lw_database *database);
bool lw_database_mapped(const lw_database *database); /* a file whose blocks have checksums to compare */

/* Compares names and codes with their checksums; LW_OK at once where the database is not a file. LW_E_INPUT,
 * LW_E_INTERRUPTED. */
lw_status lw_database_check_blocks(const lw_database *database, lw_pool *pool, const lw_host *host,
                                   lw_error *err);

/* The letters of a type in the order of their codes. */
const char *lw_database_alphabet(lw_alphabet_type type);

/* Byte -> code of either case; LW_NO_CODE: not a letter of this type. U counts as T in DNA. */
void lw_database_codes(lw_alphabet_type type, uint8_t code[256]);

/* "WHERE: 'c' at position P is not a ... letter". Returns LW_E_INPUT. */
lw_status lw_database_letter_error(const char *where, lw_alphabet_type type, unsigned char c,
                                   int64_t position, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
