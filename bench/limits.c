/* limits.c - which ceiling of the card bounds a result, how many operations a unit of work costs there, and
 * how many of them a byte of the card's memory feeds (docs/kernels.md derives the numbers). */
#include "bench.h"

#include <string.h>

typedef struct limit {
    const char *domain, *name, *backend; /* name, backend: the beginning of it; "" is any */
    const char *unit;
    const char *ceiling;
    double operations; /* of the ceiling's kind, for one unit of work without prefix */
    double intensity;  /* operations for a byte of device memory */
} limit;

static const limit limits[] = {
    /* a word of two cells: three VIADDMNMX/VIMNMX3 and half a maximum. A read of 150 bytes meets 60,000
     * letters of the reference, which stays in the cache: 9 million cells for 150 bytes and what is written
     * of it. */
    {"align", "place", "cuda-dpx", "GCUPS", "VIADDMNMX s16x2", 3.5 / 2, 5e4},
    /* two halves a word: 6.5 operations on the ALU pipe (HMNMX2 and the rest) */
    {"align", "place", "cuda-half2", "GCUPS", "HMNMX2", 6.5 / 2, 1e5},
    /* one cell a word */
    {"align", "place", "cuda-int", "GCUPS", "VIADDMNMX s32", 3.5, 1e5},
    /* the maximum only in every fourth row; a byte of the database meets 64 letters of query or more */
    {"search", "score", "cuda-dpx", "GCUPS", "VIADDMNMX s16x2", 3.125 / 2, 100},
    {"search", "score", "cuda-half2", "GCUPS", "HMNMX2", 6.5 / 2, 208},
    {"search", "score", "cuda-int", "GCUPS", "VIADDMNMX s32", 3.5, 224},
    /* one VIADDMNMX a relaxation; half the steps go to both pipes, so more than all of it is possible. A tile
     * of 128 x 64 words is read and written once for 128 pivots. */
    {"apsp", "s32", "cuda-dpx", "Grelax/s", "VIADDMNMX s32", 1, 16},
    {"apsp", "u16", "cuda-dpx", "Grelax/s", "VIADDMNMX u16x2", 0.5, 16},
    /* one FADD and half a VIMNMX3 in issue slots of 128 lanes */
    {"apsp", "f32", "cuda-dpx", "Grelax/s", "FFMA", 1.5, 24},
    /* an IMAD on the one pipe, a VIMNMX on the other */
    {"apsp", "s32", "cuda-int", "Grelax/s", "IMAD", 1, 16},
    /* eight operations an instruction; the tensor cores are counted in operations */
    {"infer", "", "cuda-dp4a", "TOPS", "IDP.4A", 1.0 / 8, 0},
    {"infer", "", "cuda-tensor", "TOPS", "IMMA s8", 1, 0},
    /* read once and written once, or weights that are read once */
    {"infer", "softmax", "cuda", "TB/s", "copy", 1, 0},
    {"infer", "layernorm", "cuda", "TB/s", "copy", 1, 0},
    {"infer", "copy", "cuda", "TB/s", "copy", 1, 0},
    {"infer", "", "cuda", "TB/s", "read", 1, 0},
    {"techniques", "softmax", "cuda", "GB/s", "copy", 1, 0},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

void bench_limit(const bench *b, bench_result *r)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits && r->share <= 0; i++) {
        const limit *l = &limits[i];
        if (strcmp(l->domain, r->domain) != 0 || strcmp(l->unit, r->unit) != 0 || !begins(r->name, l->name) ||
            !begins(r->backend, l->backend))
            continue;
        const bench_ceiling *c = bench_ceiling_find(b, l->ceiling);
        if (c && c->per_second > 0) {
            memcpy(r->limit, c->name, sizeof r->limit);
            r->share = r->median * bench_unit_scale(r->unit) * l->operations / c->per_second;
            r->intensity = r->intensity > 0 ? r->intensity * l->operations : l->intensity;
        }
    }
}
