/* test_pool.c - parallel loops: every index once, no two tasks of one worker at a time, the lowest failure.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <criterion/criterion.h>

#include "common/fail.h"
#include "common/pool.h"

enum { THREADS = 4 };

typedef struct loop_state {
    atomic_int seen[10000];
    atomic_int busy[THREADS];
    int64_t fail_from; /* indices from here on fail; -1: none */
    atomic_int overlaps;
} loop_state;

static lw_status task(void *arg, int64_t i, int worker, lw_error *err)
{
    loop_state *s = arg;
    atomic_fetch_add(&s->overlaps, atomic_fetch_add(&s->busy[worker], 1) != 0);
    atomic_fetch_add(&s->seen[i], 1);
    atomic_fetch_sub(&s->busy[worker], 1);
    if (s->fail_from >= 0 && i >= s->fail_from)
        return lw_fail(err, LW_E_INPUT, "index %lld", (long long)i);
    return LW_OK;
}

Test(pool, every_index_once)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 10000};
    static loop_state s;
    for (int threads = 0; threads <= THREADS; threads++) {
        lw_pool *pool = NULL;
        if (threads > 0)
            cr_assert_eq(lw_pool_open(&pool, threads, NULL), LW_OK);
        cr_expect_eq(lw_pool_threads(pool), threads > 0 ? threads : 1);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            memset(&s, 0, sizeof s);
            s.fail_from = -1;
            cr_expect_eq(lw_pool_for(pool, sizes[k], task, &s, NULL), LW_OK);
            for (int64_t i = 0; i < 10000; i++)
                cr_expect(s.seen[i] == (i < sizes[k]));
            cr_expect_eq(s.overlaps, 0);
        }
        lw_pool_close(pool);
    }
}

Test(pool, lowest_failure_wins)
{
    static loop_state s;
    for (int threads = 0; threads <= THREADS; threads++) {
        lw_pool *pool = NULL;
        if (threads > 0)
            cr_assert_eq(lw_pool_open(&pool, threads, NULL), LW_OK);
        for (int round = 0; round < 50; round++) {
            memset(&s, 0, sizeof s);
            s.fail_from = 100 + round;
            lw_error err = {0};
            char expected[32];
            snprintf(expected, sizeof expected, "index %d", 100 + round);
            cr_expect_eq(lw_pool_for(pool, 10000, task, &s, &err), LW_E_INPUT);
            cr_expect_str_eq(err.message, expected);
            for (int i = 0; i <= 100 + round; i++)
                cr_expect_eq(s.seen[i], 1);
        }
        lw_pool_close(pool);
    }
}

typedef struct caller {
    lw_pool *pool;
    loop_state *state;
} caller;

static void *run_loops(void *arg)
{
    caller *c = arg;
    for (int round = 0; round < 20; round++)
        cr_expect_eq(lw_pool_for(c->pool, 1000, task, c->state, NULL), LW_OK);
    return NULL;
}

Test(pool, several_callers_at_a_time)
{
    static loop_state states[3];
    lw_pool *pool = NULL;
    cr_assert_eq(lw_pool_open(&pool, THREADS, NULL), LW_OK);
    pthread_t thread[3];
    caller callers[3];
    for (int i = 0; i < 3; i++) {
        states[i].fail_from = -1;
        callers[i] = (caller){pool, &states[i]};
        pthread_create(&thread[i], NULL, run_loops, &callers[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        for (int k = 0; k < 1000; k++)
            cr_expect_eq(states[i].seen[k], 20);
        cr_expect_eq(states[i].overlaps, 0);
    }
    lw_pool_close(pool);
}

Test(pool, default_size)
{
    lw_pool *pool = NULL;
    cr_assert_eq(lw_pool_open(&pool, 0, NULL), LW_OK);
    cr_expect(lw_pool_threads(pool) >= 1);
    cr_expect_eq(lw_pool_threads(pool), lw_pool_default_threads());
    cr_expect_not_null(lw_pool_hts(pool));
    cr_expect_null(lw_pool_hts(NULL));
    lw_pool_close(pool);
    lw_pool_close(NULL);
}
