/* letters.h - made-up sequences for the benches: a generator, and queries drawn from targets with errors. */
#ifndef LW_BENCH_LETTERS_H
#define LW_BENCH_LETTERS_H

#include <stdint.h>

/* Knuth's linear congruential generator, its upper bits. */
static inline uint32_t letters_below(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

typedef struct letters_source {
    const uint8_t *target;
    int32_t target_len;
    uint32_t letters;   /* of the alphabet */
    uint32_t per_mille; /* errors: eight of ten substitutions, one insertion, one deletion */
} letters_source;

/* `len` letters from place `at` of the target on; beyond its end, random ones. */
static inline void letters_draw(uint64_t *state, const letters_source *from, int32_t at, uint8_t *to,
                                int32_t len)
{
    for (int32_t k = 0; k < len;) {
        uint32_t error = letters_below(state, 1000) < from->per_mille ? 1 + letters_below(state, 10) : 0;
        if (error == 9) { /* deletion */
            at++;
            continue;
        }
        to[k++] =
            error || at >= from->target_len ? (uint8_t)letters_below(state, from->letters) : from->target[at];
        at += error != 10; /* insertion */
    }
}

#endif
