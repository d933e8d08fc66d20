/* test_mates.c - proper pairs and template lengths. */
#include <criterion/criterion.h>

#include "align/mates.h"

Test(mates, proper_pair)
{
    const lw_insert_range range = {100, 500};
    const lw_mate_end forward = {.target = 0, .tstart = 1000, .tend = 1100};
    static const struct {
        lw_mate_end mate;
        bool proper;
    } cases[] = {
        {{0, 1200, 1300, true}, true},   {{0, 1000, 1099, true}, false}, /* 99 is too short */
        {{0, 1000, 1100, true}, true},   {{0, 1400, 1500, true}, true},  {{0, 1400, 1501, true}, false},
        {{0, 1200, 1300, false}, false}, {{1, 1200, 1300, true}, false}, {{-1, 1200, 1300, true}, false},
        {{0, 800, 900, true}, false}, /* facing away */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect_eq(lw_proper_pair(&forward, &cases[i].mate, range), cases[i].proper, "case %zu", i);
        cr_expect_eq(lw_proper_pair(&cases[i].mate, &forward, range), cases[i].proper, "case %zu", i);
    }
}

Test(mates, template_length)
{
    lw_mate_end a = {.target = 0, .tstart = 1000, .tend = 1100}, b = {0, 1250, 1300, true};
    cr_assert_eq(lw_template_length(&a, &b), 300);
    cr_assert_eq(lw_template_length(&b, &a), -300);
    b.reverse = false;
    cr_assert_eq(lw_template_length(&a, &b), 250);
    b.target = 1;
    cr_assert_eq(lw_template_length(&a, &b), 0);
    b.target = a.target = -1;
    cr_assert_eq(lw_template_length(&a, &b), 0);
}

/* The coarse test, made before starts are known, may not turn away what the fine one accepts. */
Test(mates, coarse_test_is_never_narrower)
{
    const lw_insert_range range = {50, 60};
    for (int tend = 90; tend <= 110; tend++)
        for (int tstart = 80; tstart < tend; tstart++)
            for (int mate = 100; mate < 200; mate++) {
                lw_mate_end f = {0, tstart, tend, false}, r = {0, mate - 10, mate, true};
                lw_hit forward = {.tend = tend}, reverse = {.tend = mate, .reverse = 1};
                if (lw_proper_pair(&f, &r, range))
                    cr_assert(lw_may_be_proper(&forward, 80, &reverse, range));
            }
}

Test(mates, names)
{
    cr_assert_eq(lw_mate_name_length("read/1", 6), 4);
    cr_assert_eq(lw_mate_name_length("read/2", 6), 4);
    cr_assert_eq(lw_mate_name_length("read/3", 6), 6);
    cr_assert_eq(lw_mate_name_length("/1", 2), 2);
    cr_assert_eq(lw_mate_name_length("", 0), 0);
}
