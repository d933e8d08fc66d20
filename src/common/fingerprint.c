/* fingerprint.c - hashing what floating point does here. */
#include "common/fingerprint.h"

#include <math.h>
#include <string.h>

#include "common/real.h"

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_float(uint64_t hash, float value)
{
    return hash_bytes(hash, &value, sizeof value);
}

static uint64_t hash_double(uint64_t hash, double value)
{
    return hash_bytes(hash, &value, sizeof value);
}

uint64_t lw_numeric_fingerprint(void)
{
    enum { ROUNDS = 1024 };
    uint64_t hash = 0xcbf29ce484222325u;
    uint32_t state = 1;
    for (int i = 0; i < ROUNDS; i++) {
        float x[3];
        for (int k = 0; k < 3; k++) {
            state = state * 1664525u + 1013904223u;  /* Numerical Recipes' quick generator */
            x[k] = (float)(int32_t)state * 0x1p-28f; /* within 8 */
        }
        /* volatile: computed here by this machine, not by the compiler */
        volatile float a = x[0], b = x[1], c = x[2];
        volatile double d = x[0];
        hash = hash_float(hash, a * b + c);
        hash = hash_float(hash, a / b);
        hash = hash_float(hash, sqrtf(fabsf(c)));
        hash = hash_float(hash, a * 0x1p-127f * b);
        hash = hash_float(hash, rintf(2 * a) * 0.5f);
        hash = hash_float(hash, expf(a));
        hash = hash_float(hash, lw_log1p(fabsf(b)));
        hash = hash_double(hash, d * b + c);
        hash = hash_double(hash, exp(d));
    }
    return hash;
}
