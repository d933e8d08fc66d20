/* align_order.c - guessing where reads come from, for the order in which they are scored. */
#include "align/align_order.h"

#include <stdlib.h>

#include "common/fail.h"

enum {
    SMALL = 1 << 20, /* letters; in larger references, high scores fill few of the columns */
    STEP = 8,        /* letters between the words of a read that are looked up */
    SLACK = 16,      /* two words agree if gaps of this many letters explain their places */
    LOOKS = 64,      /* words looked at, at most */
};

lw_status lw_word_index_make(lw_word_index *index, const lw_scoring *scoring, const lw_seqs *refs,
                             lw_error *err)
{
    int64_t letters = 0, place = 0;
    *index = (lw_word_index){.word = 6};
    for (int64_t r = 0; r < refs->n; r++)
        letters += refs->len[r];
    if (scoring->type != LW_DNA || letters > SMALL)
        return LW_OK;
    while ((int64_t)1 << 2 * index->word < 4 * letters) /* so that most words that occur do so once */
        index->word++;
    size_t words = (size_t)1 << 2 * index->word;
    index->at = calloc(words, sizeof *index->at);
    if (!index->at)
        return lw_fail_memory(err, words * sizeof *index->at);
    for (int64_t r = 0; r < refs->n; r++) {
        size_t word = 0;
        int run = 0; /* letters of ACGT up to here */
        for (int32_t j = 0; j < refs->len[r]; j++, place++) {
            uint8_t code = refs->codes[refs->start[r] + j];
            run = code < 4 ? run + 1 : 0;
            word = (word << 2 | (code & 3)) & (words - 1);
            if (run >= index->word)
                index->at[word] = (int32_t)(place - index->word + 2);
        }
    }
    return LW_OK;
}

/* The place of the first letter of the read, or of its reverse complement: the first one that two words agree
 * on; -1: none. */
static int64_t guess(const lw_word_index *index, const lw_scoring *scoring, const uint8_t *codes, int32_t n)
{
    int64_t seen[2][LOOKS];
    int n_seen[2] = {0, 0};
    for (int32_t i = 0; i + index->word <= n && i < LOOKS * STEP; i += STEP) {
        size_t word[2] = {0, 0};
        bool plain = true;
        for (int k = 0; k < index->word; k++) {
            uint8_t code = codes[i + k], complement = scoring->complement[code];
            plain = plain && code < 4 && complement < 4;
            word[0] |= (size_t)(code & 3) << 2 * (index->word - 1 - k);
            word[1] |= (size_t)(complement & 3) << 2 * k;
        }
        for (int reverse = 0; plain && reverse < 2; reverse++) {
            if (!index->at[word[reverse]])
                continue;
            int64_t place = index->at[word[reverse]] - 1 - (reverse ? n - i - index->word : i);
            for (int k = 0; k < n_seen[reverse]; k++)
                if (llabs(seen[reverse][k] - place) <= SLACK)
                    return place < 0 ? 0 : place;
            seen[reverse][n_seen[reverse]++] = place;
        }
    }
    return -1;
}

int64_t lw_order_key(const lw_word_index *index, const lw_scoring *scoring, const uint8_t *codes, int32_t n)
{
    int power = 0;
    while (n >> power >= 16)
        power++;
    int64_t length_class = 8 * (int64_t)power + (n >> power); /* n in eighths of a power of two */
    int64_t place = index->at ? guess(index, scoring, codes, n) : 0;
    return length_class << 32 | (place < 0 ? 0 : INT32_MAX - place);
}
