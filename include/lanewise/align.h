/* align.h - exact pairwise alignment: local, global, semi-global, affine gaps.
 *
 * Units: lengths in letters; positions 0-based, half-open; scores in matrix units. A gap of k >= 1
 * letters costs gap_open + k * gap_extend. Recurrence: Gotoh, J. Mol. Biol. 162:705 (1982); local
 * form: Smith and Waterman, J. Mol. Biol. 147:195 (1981).
 *
 * Which optimum is reported is part of the contract, so that every backend returns the same one:
 * highest score, then forward strand, then the target that comes first, then the smallest target
 * end, then the smallest query end. The path is traced from that end: the diagonal if it attains
 * H, else a deletion, else an insertion; inside a gap, extend if that attains the value, else
 * open; a local path stops at the first H = 0. Gaps therefore lie as far left as they can. */
#ifndef LANEWISE_ALIGN_H
#define LANEWISE_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LW_MAX_LETTERS = 32, LW_NO_CODE = 255, LW_MAX_SCORE = 32767 };

typedef enum lw_mode {
    LW_LOCAL = 0,     /* best pair of substrings; none at all when nothing scores above 0 */
    LW_GLOBAL = 1,    /* both sequences from end to end */
    LW_SEMIGLOBAL = 2 /* the whole query; the target's ends are free */
} lw_mode;

typedef enum lw_strands { LW_FORWARD = 1, LW_REVERSE = 2, LW_BOTH_STRANDS = 3 } lw_strands;

typedef enum lw_alphabet_type { LW_DNA = 0, LW_PROTEIN = 1 } lw_alphabet_type;

/* Letters, their scores and the gap penalties. A plain value: copy it freely. Filled by one of the
 * lw_scoring_* calls below. */
typedef struct lw_scoring {
    lw_alphabet_type type;
    int32_t n_letters;                  /* codes are 0 .. n_letters-1, n_letters <= LW_MAX_LETTERS */
    char letter[LW_MAX_LETTERS + 1];    /* code -> upper-case letter */
    uint8_t code[256];                  /* byte -> code, LW_NO_CODE outside the alphabet */
    uint8_t substituted[256];           /* 1 where a valid letter has no column and counts as X (protein) */
    uint8_t complement[LW_MAX_LETTERS]; /* DNA: code of the complementary letter; protein: identity */
    int16_t score[LW_MAX_LETTERS * LW_MAX_LETTERS]; /* [query code * LW_MAX_LETTERS + target code] */
    int32_t max_score, min_score;                   /* over the n_letters x n_letters entries */
    int32_t gap_open, gap_extend;                   /* penalties, 0 .. LW_MAX_SCORE */
} lw_scoring;

/* DNA letters ACGTN (U = T, other IUPAC codes = N) with `match` for equal, -`mismatch` for
 * different letters and -1 wherever N takes part, as bwa mem. match 0..32767, mismatch 0..32767
 * (both given as magnitudes). LW_E_ARG. */
lw_status lw_scoring_dna(lw_scoring *out, int match, int mismatch, int gap_open, int gap_extend,
                         lw_error *err);

/* A built-in matrix by name (BLOSUM45/50/62/80/90, PAM30/70/250, NUC.4.4) or a file in NCBI's format.
 * `type` says how letters without a column are treated: DNA counts them as N, protein as X.
 * LW_E_ARG (penalties), LW_E_INPUT (file), LW_E_IO. */
lw_status lw_scoring_matrix(lw_scoring *out, const char *name_or_file, lw_alphabet_type type, int gap_open,
                            int gap_extend, lw_error *err);

/* n sequences of codes, back to back in any order. Borrowed. Every len[i] >= 0; codes < n_letters. */
typedef struct lw_seqs {
    int64_t n;
    const uint8_t *codes;
    const int64_t *start; /* of sequence i within codes */
    const int32_t *len;   /* letters */
} lw_seqs;

#ifdef __cplusplus
}
#endif
#endif
