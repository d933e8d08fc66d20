/* align_order.h - in which order reads are scored: those of like length and, as far as a look at a few short
 * words can tell, from neighbouring places of a small reference together. Reads that share a vector then have
 * their high scores in the same columns, and the vector does the work of gaps once. Only the speed depends on
 * it. */
#ifndef LW_ALIGN_ORDER_H
#define LW_ALIGN_ORDER_H

#include <stdint.h>
#include "lanewise/align.h"

/* The last place of each word of the references; `at` NULL: no guessing (protein, large references). */
typedef struct lw_word_index {
    int32_t *at; /* 1 + place in all references laid end to end; 0: none */
    int word;    /* letters */
} lw_word_index;

/* Frees with free(index->at). LW_E_NOMEM. */
lw_status lw_word_index_make(lw_word_index *index, const lw_scoring *scoring, const lw_seqs *refs,
                             lw_error *err);

/* Sorts by descending key: class of length (steps of an eighth), then place. */
int64_t lw_order_key(const lw_word_index *index, const lw_scoring *scoring, const uint8_t *codes, int32_t n);

#endif
