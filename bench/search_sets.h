/* search_sets.h - sets of sequences in database codes, made from a seed, for the tests and the bench of the
 * search. */
#ifndef LW_TEST_SEARCH_SETS_H
#define LW_TEST_SEARCH_SETS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "align/database.h"

/* A growing set; place i of the file is sequence i here. Aborts when memory runs out. */
typedef struct search_set {
    int64_t n, capacity, letters, codes_capacity;
    uint8_t *codes;
    int64_t *start;
    int32_t *len;
    /* set_view(): by length */
    int64_t *view_start;
    int32_t *view_len, *view_order;
} search_set;

static inline void *set_grow(void *p, size_t bytes)
{
    void *moved = realloc(p, bytes ? bytes : 1);
    if (!moved)
        abort();
    return moved;
}

static inline void set_add(search_set *s, const uint8_t *codes, int32_t len)
{
    if (s->n == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        s->start = set_grow(s->start, (size_t)s->capacity * sizeof *s->start);
        s->len = set_grow(s->len, (size_t)s->capacity * sizeof *s->len);
    }
    if (s->letters + len > s->codes_capacity) {
        s->codes_capacity = 2 * (s->letters + len);
        s->codes = set_grow(s->codes, (size_t)s->codes_capacity);
    }
    if (len > 0)
        memcpy(s->codes + s->letters, codes, (size_t)len);
    s->start[s->n] = s->letters;
    s->len[s->n++] = len;
    s->letters += len;
}

static inline void set_free(search_set *s)
{
    free(s->codes), free(s->start), free(s->len), free(s->view_start), free(s->view_len), free(s->view_order);
    *s = (search_set){0};
}

static inline lw_seqs set_seqs(const search_set *s)
{
    return (lw_seqs){.n = s->n, .codes = s->codes, .start = s->start, .len = s->len};
}

static inline const search_set **set_sorting(void)
{
    static const search_set *sorting;
    return &sorting;
}

static inline int set_compare(const void *a, const void *b)
{
    const search_set *s = *set_sorting();
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (s->len[x] != s->len[y])
        return s->len[x] > s->len[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The set as a database; valid until the next set_add() or set_free(). */
static inline lw_database_view set_view(search_set *s)
{
    size_t n = (size_t)s->n;
    s->view_start = set_grow(s->view_start, n * sizeof *s->view_start);
    s->view_len = set_grow(s->view_len, n * sizeof *s->view_len);
    s->view_order = set_grow(s->view_order, n * sizeof *s->view_order);
    for (int32_t i = 0; i < s->n; i++)
        s->view_order[i] = i;
    *set_sorting() = s;
    qsort(s->view_order, n, sizeof *s->view_order, set_compare);
    int32_t n_codes = 1;
    for (int64_t k = 0; k < s->letters; k++)
        n_codes = s->codes[k] >= n_codes ? s->codes[k] + 1 : n_codes;
    for (int64_t i = 0; i < s->n; i++) {
        s->view_start[i] = s->start[s->view_order[i]];
        s->view_len[i] = s->len[s->view_order[i]];
    }
    return (lw_database_view){.n = s->n,
                              .letters = s->letters,
                              .n_codes = n_codes,
                              .codes = s->codes,
                              .start = s->view_start,
                              .len = s->view_len,
                              .order = s->view_order};
}

/* ---- random sequences -------------------------------------------------------------------------------- */

/* splitmix64 */
static inline uint64_t set_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline double set_uniform(uint64_t *state) /* [0, 1) */
{
    return (double)(set_random(state) >> 11) * 0x1p-53;
}

/* Amino acids by their frequency in UniProtKB/Swiss-Prot: a letter for each of 256 values of a byte. */
static inline const uint8_t *set_amino_acids(void)
{
    static uint8_t table[256];
    static const struct {
        char letter;
        int share; /* of 256 */
    } share[20] = {{'A', 21}, {'R', 14}, {'N', 10}, {'D', 14}, {'C', 4},  {'Q', 10}, {'E', 17},
                   {'G', 18}, {'H', 6},  {'I', 15}, {'L', 25}, {'K', 15}, {'M', 6},  {'F', 10},
                   {'P', 12}, {'S', 17}, {'T', 14}, {'W', 3},  {'Y', 7},  {'V', 18}};
    if (table[255] == 0) {
        int at = 0;
        for (int i = 0; i < 20; i++)
            for (int k = 0; k < share[i].share; k++)
                table[at++] = (uint8_t)(strchr(LW_DATABASE_PROTEIN, share[i].letter) - LW_DATABASE_PROTEIN);
    }
    return table;
}

static inline void set_random_protein(uint64_t *state, uint8_t *codes, int32_t n)
{
    const uint8_t *table = set_amino_acids();
    for (int32_t i = 0; i < n; i += 8) {
        uint64_t bits = set_random(state);
        for (int32_t k = i; k < n && k < i + 8; k++, bits >>= 8)
            codes[k] = table[bits & 255];
    }
}

/* Lengths of a Swiss-Prot-like database: a log-normal body of median 294 and a thin power-law tail. */
static inline int32_t set_random_length(uint64_t *state, int32_t max_len)
{
    for (;;) {
        double n;
        if (set_uniform(state) < 0.0015) {
            n = floor(2500.0 * pow(1.0 - set_uniform(state), -1.0 / 1.9));
        } else { /* Box and Muller */
            double r = sqrt(-2.0 * log(1.0 - set_uniform(state))),
                   angle = 6.283185307179586 * set_uniform(state);
            n = floor(exp(log(294.0) + 0.605 * r * cos(angle)) + 0.5);
        }
        if (n >= 2 && n <= max_len)
            return (int32_t)n;
    }
}

/* A mutated copy of n letters: substitutions and gaps with the given chances. Returns its length; out has
 * room for 4 n + 64. */
static inline int32_t set_mutate(uint64_t *state, const uint8_t *codes, int32_t n, double substitution,
                                 double gap, uint8_t *out)
{
    const uint8_t *table = set_amino_acids();
    int32_t m = 0;
    for (int32_t i = 0; i < n && m < 4 * n;) {
        double x = set_uniform(state);
        if (x < gap) {
            int32_t length = 1 + (int32_t)(-log(1.0 - set_uniform(state)) / 0.4);
            if (x < gap / 2) {
                i += length;
                continue;
            }
            for (; length > 0 && m < 4 * n; length--)
                out[m++] = table[set_random(state) & 255];
        }
        out[m++] = set_uniform(state) < substitution ? table[set_random(state) & 255] : codes[i];
        i++;
    }
    return m;
}

#endif
