/* encode.c - from letters to codes. */
#include "align/encode.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

/* Codes are below LW_MAX_LETTERS, so one bit tells LW_NO_CODE apart from all of them. */
_Static_assert((LW_NO_CODE & 0x80) != 0 && LW_MAX_LETTERS <= 0x80,
               "codes and LW_NO_CODE must differ in bit 7");

int64_t lw_encode(const lw_scoring *scoring, const char *text, int64_t n, uint8_t *codes,
                  lw_substitutions *counts)
{
    const uint8_t *letter = (const uint8_t *)text;
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t code = scoring->code[letter[i]];
        codes[i] = code;
        bad |= code;
    }
    if (bad & 0x80)
        for (int64_t i = 0; i < n; i++)
            if (codes[i] == LW_NO_CODE)
                return i;
    if (counts && scoring->type == LW_PROTEIN) {
        unsigned any = 0;
        for (int64_t i = 0; i < n; i++)
            any |= scoring->substituted[letter[i]];
        for (int64_t i = 0; any && i < n; i++)
            counts->count[letter[i]] += scoring->substituted[letter[i]];
    }
    return -1;
}

lw_status lw_illegal_letter(const lw_scoring *scoring, const char *where, char letter, int64_t position,
                            lw_error *err)
{
    char shown[16];
    unsigned char c = (unsigned char)letter;
    if (isprint(c))
        snprintf(shown, sizeof shown, "'%c'", letter);
    else
        snprintf(shown, sizeof shown, "byte 0x%02x", c);
    return lw_fail(err, LW_E_INPUT, "%s: %s at position %lld is not a %s letter%s", where, shown,
                   (long long)position + 1, scoring->type == LW_DNA ? "nucleotide" : "protein",
                   c == '-' || c == '.' ? ": remove the gaps of aligned sequences first" : "");
}

lw_status lw_encoded_reserve(lw_encoded *out, int64_t n, int64_t letters, lw_error *err)
{
    if (letters > out->codes_capacity) {
        free(out->codes);
        out->codes_capacity = 0;
        out->codes = malloc((size_t)letters);
        if (!out->codes)
            return lw_fail_memory(err, (size_t)letters);
        out->codes_capacity = letters;
    }
    if (n > out->seqs_capacity) {
        free(out->start);
        free(out->len);
        out->seqs_capacity = 0;
        out->start = malloc((size_t)n * sizeof *out->start);
        out->len = malloc((size_t)n * sizeof *out->len);
        if (!out->start || !out->len)
            return lw_fail_memory(err, (size_t)n * sizeof *out->start);
        out->seqs_capacity = n;
    }
    out->seqs = (lw_seqs){.n = n, .codes = out->codes, .start = out->start, .len = out->len};
    return LW_OK;
}

lw_status lw_encode_batch(const lw_scoring *scoring, const lw_seqio *reader, const lw_read_batch *batch,
                          lw_encoded *out, lw_substitutions *counts, lw_error *err)
{
    LW_TRY(lw_encoded_reserve(out, batch->n, batch->letters, err));
    int64_t at = 0;
    for (int64_t i = 0; i < batch->n; i++) {
        const char *text = lw_read_seq(batch, i);
        int64_t bad = lw_encode(scoring, text, batch->read[i].len, out->codes + at, counts);
        if (bad >= 0) {
            char where[512];
            return lw_illegal_letter(scoring, lw_read_where(reader, batch, i, where, sizeof where), text[bad],
                                     bad, err);
        }
        out->start[i] = at;
        out->len[i] = batch->read[i].len;
        at += batch->read[i].len;
    }
    return LW_OK;
}

lw_status lw_encode_refs(const lw_scoring *scoring, const lw_refs *refs, lw_encoded *out,
                         lw_substitutions *counts, lw_error *err)
{
    LW_TRY(lw_encoded_reserve(out, refs->n, refs->total, err));
    int64_t at = 0;
    for (int64_t i = 0; i < refs->n; i++) {
        const char *text = refs->letters + refs->start[i];
        int64_t bad = lw_encode(scoring, text, refs->len[i], out->codes + at, counts);
        if (bad >= 0) {
            char where[512];
            snprintf(where, sizeof where, "%.300s: record %lld (%.80s)",
                     strcmp(refs->path, "-") == 0 ? "standard input" : refs->path, (long long)i + 1,
                     refs->name[i]);
            return lw_illegal_letter(scoring, where, text[bad], bad, err);
        }
        out->start[i] = at;
        out->len[i] = refs->len[i];
        at += refs->len[i];
    }
    return LW_OK;
}

void lw_encoded_free(lw_encoded *encoded)
{
    free(encoded->codes);
    free(encoded->start);
    free(encoded->len);
    memset(encoded, 0, sizeof *encoded);
}

void lw_warn_substitutions(const lw_host *host, const lw_substitutions *counts)
{
    char list[512] = "";
    size_t used = 0;
    for (int c = 'A'; c <= 'Z'; c++) {
        int64_t n = counts->count[c] + counts->count[tolower(c)];
        if (n > 0 && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%c %lld", used ? ", " : "", c,
                                     (long long)n);
    }
    if (used > 0)
        lw_say(host, LW_SAY_WARNING, "letters without a column in the matrix counted as X: %s", list);
}

/* --- type ------------------------------------------------------------------------------------------- */

enum { OTHER, AMBIGUOUS, BASE };

/* How many of n letters are plain bases; -1 if one is a letter but no nucleotide code. What is no letter of
 * either alphabet ('-', '1') speaks for neither: it is for the encoder to refuse. */
static int64_t count_bases(const char *letters, int64_t n)
{
    uint8_t kind[256] = {OTHER};
    for (const char *p = "RYSWKMBDHVryswkmbdhv"; *p; p++)
        kind[(unsigned char)*p] = AMBIGUOUS;
    for (const char *p = "ACGTUNacgtun"; *p; p++)
        kind[(unsigned char)*p] = BASE;
    int64_t bases = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t k = kind[(unsigned char)letters[i]];
        if (k == OTHER && (isalpha((unsigned char)letters[i]) || letters[i] == '*'))
            return -1;
        bases += k == BASE;
    }
    return bases;
}

lw_alphabet_type lw_guess_type(const char *letters, int64_t n)
{
    int64_t bases = count_bases(letters, n);
    return bases >= 0 && (double)bases >= 0.9 * (double)n ? LW_DNA : LW_PROTEIN;
}

lw_alphabet_type lw_guess_refs_type(const lw_refs *refs)
{
    int64_t bases = 0;
    for (int64_t i = 0; i < refs->n; i++) {
        int64_t more = count_bases(refs->letters + refs->start[i], refs->len[i]);
        if (more < 0)
            return LW_PROTEIN;
        bases += more;
    }
    return (double)bases >= 0.9 * (double)refs->total ? LW_DNA : LW_PROTEIN;
}
