/* database.h - sequences to be searched: in memory from FASTA, or mapped from a .lwdb file. */
#ifndef LW_DATABASE_H
#define LW_DATABASE_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/align.h"

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
    const uint8_t *codes; /* one byte a letter */
    const int64_t *start; /* of sequence i within codes */
    const int32_t *len;   /* letters, descending, may be 0 */
    const int32_t *order; /* place of sequence i in the user's file, 0 .. n-1, each once */
    bool packed; /* start[i+1] = start[i] + len[i] for all i: whole ranges copy as one piece; else start[]
                    is in any order and a copy must gather */
} lw_database_view;

#ifdef __cplusplus
}
#endif
#endif
