/* test_pow2.c - masks, shifts and reciprocals against / and %. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "common/pow2.h"

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static const uint32_t edges[] = {
    0,     1,     2,     3,          5,          7,          255,        256,        257,        641,
    65535, 65536, 65537, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xaaaaaaab, 0xfffffffe, 0xffffffff};
enum { N_EDGES = sizeof edges / sizeof *edges };

static void check(uint32_t x, uint32_t d)
{
    lw_divider by = lw_divider_of(d);
    cr_assert(lw_divide(x, by) == x / d && lw_modulo(x, by) == x % d, "%u by %u gives %u", x, d,
              lw_divide(x, by));
}

Test(pow2, invariant_division_is_exact)
{
    for (int i = 0; i < N_EDGES; i++)
        for (int j = 1; j < N_EDGES; j++)
            check(edges[i], edges[j]);
    uint64_t state = 1;
    for (int k = 0; k < 2000000; k++) {
        uint32_t x = next_random(&state), d = next_random(&state) >> (next_random(&state) & 31);
        check(x, d ? d : 1);
        if (d)
            check(x / d * d - 1, d); /* just below a multiple */
    }
}

Test(pow2, powers_of_two)
{
    for (int k = 0; k < 32; k++) {
        uint32_t p = UINT32_C(1) << k;
        cr_expect(lw_is_pow2(p) && lw_log2_floor(p) == k && lw_pow2_ceil(p) == p);
        cr_expect(k < 2 || (!lw_is_pow2(p - 1) && lw_log2_floor(p - 1) == k - 1 && lw_pow2_ceil(p - 1) == p));
        for (int i = 0; i < N_EDGES; i++) {
            cr_expect_eq(lw_pow2_div(edges[i], p), edges[i] / p);
            cr_expect_eq(lw_pow2_mod(edges[i], p), edges[i] % p);
            cr_expect_eq(lw_pow2_round_up(edges[i], p), ((uint64_t)edges[i] + p - 1) / p * p);
        }
    }
    cr_expect(!lw_is_pow2(0));
}
