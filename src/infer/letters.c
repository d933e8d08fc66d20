/* letters.c - sequence letters as numbers. */
#include "infer/letters.h"

#include <ctype.h>
#include <string.h>

#include "common/fail.h"
#include "common/numbers.h"

static lw_status take_letters(lw_letters *l, const char *text, lw_error *err)
{
    for (const char *p = text; *p; p++) {
        char letter = (char)toupper((unsigned char)*p);
        if (!isalpha((unsigned char)*p) && *p != '*' && *p != '-')
            return lw_fail(err, LW_E_ARG, "--encode: '%c' in '%s' is no letter", *p, text);
        if (strchr(l->letters, letter))
            return lw_fail(err, LW_E_ARG, "--encode: the letter '%c' is there twice in '%s'", *p, text);
        if (l->n == LW_MOST_LETTERS)
            return lw_fail(err, LW_E_ARG, "--encode: more than %d letters", LW_MOST_LETTERS);
        l->letters[l->n++] = letter;
    }
    return l->n ? LW_OK : lw_fail(err, LW_E_ARG, "--encode: the letters are missing, as in onehot:ACGT");
}

/* K and perhaps "+OFFSET". */
static lw_status take_k(lw_letters *l, const char *text, lw_error *err)
{
    char k_text[16];
    int64_t k;
    size_t n = strcspn(text, "+");
    if (n >= sizeof k_text)
        return lw_fail(err, LW_E_ARG, "--encode: kmer:%s is not kmer:K or kmer:K+OFFSET", text);
    memcpy(k_text, text, n);
    k_text[n] = '\0';
    LW_TRY(lw_parse_int(k_text, "--encode kmer", 1, LW_MOST_K, &k, err));
    l->k = (int)k;
    return text[n] ? lw_parse_int(text + n + 1, "--encode kmer's offset", 0, INT32_MAX / 2, &l->offset, err)
                   : LW_OK;
}

lw_status lw_letters_parse(lw_letters *out, const char *text, lw_error *err)
{
    *out = (lw_letters){.k = 1};
    if (strncmp(text, "onehot:", 7) == 0) {
        out->encoding = LW_ONE_HOT;
        LW_TRY(take_letters(out, text + 7, err));
    } else if (strncmp(text, "kmer:", 5) == 0) {
        out->encoding = LW_KMERS;
        LW_TRY(take_letters(out, "ACGT", err));
        LW_TRY(take_k(out, text + 5, err));
    } else if (strcmp(text, "index") == 0 || strncmp(text, "index:", 6) == 0) {
        out->encoding = LW_INDICES;
        LW_TRY(take_letters(out, text[5] ? text + 6 : "ACGT", err));
    } else {
        return lw_fail(err, LW_E_ARG,
                       "--encode %s: one of onehot:LETTERS, kmer:K, kmer:K+OFFSET, index or index:LETTERS is "
                       "expected",
                       text);
    }
    for (int c = 0; c < 256; c++) {
        const char *at = c ? strchr(out->letters, toupper(c)) : NULL;
        if (!at && (c == 'U' || c == 'u'))
            at = strchr(out->letters, 'T');
        if (!at && (c == 'T' || c == 't'))
            at = strchr(out->letters, 'U');
        bool is_letter = isalpha(c) || c == '*' || c == '-' || c == '.';
        out->code[c] = (uint8_t)(at ? at - out->letters : is_letter ? LW_OTHER_LETTER : LW_NO_LETTER);
    }
    return LW_OK;
}

int64_t lw_letters_tokens(const lw_letters *letters, int64_t length)
{
    return length - letters->k + 1;
}

int64_t lw_letters_most(const lw_letters *l)
{
    return l->encoding == LW_ONE_HOT   ? 1
           : l->encoding == LW_INDICES ? l->n
                                       : (INT64_C(1) << 2 * l->k) + l->offset;
}

static void store(lw_tensor *t, int64_t at, int64_t value)
{
    switch (t->dtype) {
    case LW_F32:
        ((float *)t->data)[at] = (float)value;
        break;
    case LW_F64:
        ((double *)t->data)[at] = (double)value;
        break;
    case LW_I64:
    case LW_U64:
        ((int64_t *)t->data)[at] = value;
        break;
    case LW_I32:
    case LW_U32:
        ((int32_t *)t->data)[at] = (int32_t)value;
        break;
    case LW_I16:
    case LW_U16:
        ((int16_t *)t->data)[at] = (int16_t)value;
        break;
    default:
        ((int8_t *)t->data)[at] = (int8_t)value;
    }
}

int64_t lw_letters_encode(const lw_letters *l, const char *seq, int64_t n, int64_t length, lw_tensor *t,
                          int64_t i, const lw_letters_layout *layout)
{
    int64_t at = i * layout->window, mask = (INT64_C(1) << 2 * l->k) - 1, word = 0, known = 0;
    for (int64_t p = 0; p < length; p++) {
        uint8_t code = p < n ? l->code[(unsigned char)seq[p]] : LW_OTHER_LETTER;
        if (code == LW_NO_LETTER)
            return p;
        switch (l->encoding) {
        case LW_ONE_HOT:
            for (int c = 0; c < l->n; c++)
                store(t, at + p * layout->token + c * layout->channel, c == code);
            break;
        case LW_INDICES:
            store(t, at + p * layout->token, code == LW_OTHER_LETTER ? l->n : code);
            break;
        case LW_KMERS: /* the last k letters, the first one in the highest place */
            known = code == LW_OTHER_LETTER ? 0 : known + 1;
            word = (word << 2 | (code & 3)) & mask;
            if (p >= l->k - 1)
                store(t, at + (p - l->k + 1) * layout->token, (known >= l->k ? word : mask + 1) + l->offset);
        }
    }
    return -1;
}
