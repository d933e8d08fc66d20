/* encode.h - from letters to the codes that kernels compare, with every letter checked. */
#ifndef LW_ENCODE_H
#define LW_ENCODE_H

#include <stdint.h>
#include "lanewise/align.h"
#include "common/refs.h"
#include "common/seqio.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Letters that the matrix has no column for and that counted as X. Zero-initialise. */
typedef struct lw_substitutions {
    int64_t count[256];
} lw_substitutions;

/* Encodes n letters of text. Returns -1, or the 0-based position of the first letter outside the alphabet
 * (codes behind it are unspecified). counts may be NULL. */
int64_t lw_encode(const lw_scoring *scoring, const char *text, int64_t n, uint8_t *codes,
                  lw_substitutions *counts);

/* "WHERE: letter 'x' at position N is not ..." as LW_E_INPUT; position is 0-based as lw_encode() returns it.
 */
lw_status lw_illegal_letter(const lw_scoring *scoring, const char *where, char letter, int64_t position,
                            lw_error *err);

/* The codes of a batch or of the references, back to back, ready for a backend. Owns its arrays and keeps
 * them between calls; zero-initialise, free with lw_encoded_free(). */
typedef struct lw_encoded {
    lw_seqs seqs; /* views of the arrays below */
    uint8_t *codes;
    int64_t *start;
    int32_t *len;
    int64_t codes_capacity, seqs_capacity;
} lw_encoded;

/* LW_E_INPUT names file, record, position (1-based) and letter of the first illegal one; LW_E_NOMEM. */
lw_status lw_encode_batch(const lw_scoring *scoring, const lw_seqio *reader, const lw_read_batch *batch,
                          lw_encoded *out, lw_substitutions *counts, lw_error *err);
lw_status lw_encode_refs(const lw_scoring *scoring, const lw_refs *refs, lw_encoded *out,
                         lw_substitutions *counts, lw_error *err);
/* Room for n sequences of so many letters in all; their starts, lengths and codes are to be filled in. */
lw_status lw_encoded_reserve(lw_encoded *out, int64_t n, int64_t letters, lw_error *err);
void lw_encoded_free(lw_encoded *encoded);

/* One warning for the whole run, "letters without a column in the matrix counted as X: U 3, O 1"; nothing if
 * there were none. */
void lw_warn_substitutions(const lw_host *host, const lw_substitutions *counts);

/* What `--type auto` takes sequences to be: DNA when all letters are IUPAC nucleotide codes and at least 90 %
 * are ACGTUN, else protein. Empty text is DNA. */
lw_alphabet_type lw_guess_type(const char *letters, int64_t n);
lw_alphabet_type lw_guess_refs_type(const lw_refs *refs);

#ifdef __cplusplus
}
#endif
#endif
