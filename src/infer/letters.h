/* letters.h - sequence letters as numbers that a model takes: one-hot columns, k-mer numbers, letter indices.
 */
#ifndef LW_LETTERS_H
#define LW_LETTERS_H

#include "infer/tensor.h"

typedef enum lw_encoding { LW_ONE_HOT, LW_KMERS, LW_INDICES } lw_encoding;

enum { LW_MOST_LETTERS = 64, LW_MOST_K = 13 };

typedef struct lw_letters {
    lw_encoding encoding;
    char letters[LW_MOST_LETTERS + 1];
    int n;             /* letters */
    int k;             /* of k-mers; else 1 */
    int64_t offset;    /* added to every k-mer number */
    uint8_t code[256]; /* of a byte: its letter's index, LW_OTHER_LETTER, or LW_NO_LETTER */
} lw_letters;

enum { LW_OTHER_LETTER = 254, LW_NO_LETTER = 255 };

/* From "onehot:LETTERS", "index", "index:LETTERS", "kmer:K" or "kmer:K+OFFSET". Upper and lower case are the
 * same, and so are T and U unless both are listed. LW_E_ARG. */
lw_status lw_letters_parse(lw_letters *out, const char *text, lw_error *err);

/* Tokens or columns of a window of `length` letters. */
int64_t lw_letters_tokens(const lw_letters *letters, int64_t length);

/* Where an element goes: token t of window i, channel c (one-hot; else 0) is element
 * i * window + t * token + c * channel. */
typedef struct lw_letters_layout {
    int64_t window, token, channel;
} lw_letters_layout;

/* Encodes letters [0, n) of a window of `length` >= n letters as window i of t (float32, or an integer type
 * that holds every number); the missing ones count as unknown letters. Returns the index of the first byte
 * that is no letter, or -1. */
int64_t lw_letters_encode(const lw_letters *letters, const char *seq, int64_t n, int64_t length, lw_tensor *t,
                          int64_t i, const lw_letters_layout *layout);

/* The largest number that comes out. */
int64_t lw_letters_most(const lw_letters *letters);

#endif
