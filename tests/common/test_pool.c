/* test_pool.c - parallel loops: every index once, no two tasks of one worker at a time, the lowest failure;
 * of htslib's pool and of teams, and what a team's threads do between loops. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
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

typedef lw_status opener(lw_pool **out, int threads, lw_error *err);
typedef lw_status looper(lw_pool *pool, int64_t n,
                         lw_status (*task)(void *arg, int64_t i, int worker, lw_error *err), void *arg,
                         lw_error *err);
static opener *const openers[] = {lw_pool_open, lw_pool_open_team};
static looper *const loopers[] = {lw_pool_for, lw_pool_for_shares};

/* Both openers and both loopers, threads 0 (no pool) to THREADS. */
enum { KINDS = 4 * (THREADS + 1) };

static lw_pool *open_kind(int kind, looper **loop)
{
    lw_pool *pool = NULL;
    int threads = kind / 4;
    *loop = loopers[kind / 2 % 2];
    if (threads > 0)
        cr_assert_eq(openers[kind % 2](&pool, threads, NULL), LW_OK);
    cr_expect_eq(lw_pool_threads(pool), threads > 0 ? threads : 1);
    return pool;
}

Test(pool, every_index_once)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 10000};
    static loop_state s;
    for (int kind = 0; kind < KINDS; kind++) {
        looper *loop;
        lw_pool *pool = open_kind(kind, &loop);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            memset(&s, 0, sizeof s);
            s.fail_from = -1;
            cr_expect_eq(loop(pool, sizes[k], task, &s, NULL), LW_OK);
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
    for (int kind = 0; kind < KINDS; kind++) {
        looper *loop;
        lw_pool *pool = open_kind(kind, &loop);
        for (int round = 0; round < 20; round++) {
            memset(&s, 0, sizeof s);
            s.fail_from = 100 + round;
            lw_error err = {0};
            char expected[32];
            snprintf(expected, sizeof expected, "index %d", 100 + round);
            cr_expect_eq(loop(pool, 10000, task, &s, &err), LW_E_INPUT);
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
    for (int kind = 0; kind < 2; kind++) {
        lw_pool *pool = NULL;
        memset(states, 0, sizeof states);
        cr_assert_eq(openers[kind](&pool, THREADS, NULL), LW_OK);
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
}

/* What a loop's last task wrote must be seen by its caller, and what he writes then by the next loop's. */
typedef struct numbers {
    int64_t of[100];
    atomic_llong sum;
} numbers;

static lw_status add_one(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    numbers *all = arg;
    all->of[i]++;
    atomic_fetch_add(&all->sum, all->of[i]);
    return LW_OK;
}

/* Tiny loops at once, and others so far apart that the threads have gone to sleep, are about to, or look
 * still; with more threads than any machine has processors, too. */
Test(pool, many_tiny_loops, .timeout = 60)
{
    static const int threads[] = {2, 3, 8, 300};
    for (int k = 0; k < 4; k++)
        for (int apart = 0; apart < 2; apart++) {
            lw_pool *pool = NULL;
            static numbers all;
            memset(&all, 0, sizeof all);
            cr_assert_eq(lw_pool_open_team(&pool, threads[k], NULL), LW_OK);
            int64_t sum = 0;
            int rounds = apart || threads[k] > 100 ? 100 : 3000;
            for (int round = 0; round < rounds; round++) {
                int64_t n = 2 + round * 7 % 99;
                for (int64_t i = 0; i < n; i++)
                    sum += all.of[i] + 1;
                cr_assert_eq(loopers[round % 2](pool, n, add_one, &all, NULL), LW_OK);
                cr_assert_eq(all.sum, sum);
                all.of[round % 100] += 5;
                struct timespec pause = {0, round * 2000L};
                if (apart)
                    nanosleep(&pause, NULL);
            }
            lw_pool_close(pool); /* while they look */
        }
}

Test(pool, closed_at_once, .timeout = 60)
{
    static numbers all;
    for (int round = 0; round < 200; round++) {
        lw_pool *pool = NULL;
        cr_assert_eq(lw_pool_open_team(&pool, 1 + round % 5, NULL), LW_OK);
        for (int k = 0; k < round % 3; k++)
            cr_expect_eq(lw_pool_for(pool, 5, add_one, &all, NULL), LW_OK);
        if (round % 7 == 0)
            cr_expect_not_null(lw_pool_hts(pool));
        cr_expect_eq(lw_pool_for(pool, round % 4, add_one, &all, NULL), LW_OK);
        lw_pool_close(pool);
    }
}

typedef struct nest {
    lw_pool *pool;
    atomic_int inner;
} nest;

static lw_status count(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)i, (void)err;
    nest *n = arg;
    cr_expect_eq(worker, 0);
    atomic_fetch_add(&n->inner, 1);
    return LW_OK;
}

static lw_status loop_again(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)i, (void)worker;
    nest *n = arg;
    return lw_pool_for(n->pool, 10, count, n, err);
}

/* A team's thread that asks for its own team gets no help, and does not wait for it. */
Test(pool, loops_within_a_teams_tasks)
{
    nest n = {0};
    cr_assert_eq(lw_pool_open_team(&n.pool, THREADS, NULL), LW_OK);
    cr_expect_eq(lw_pool_for(n.pool, 50, loop_again, &n, NULL), LW_OK);
    cr_expect_eq(n.inner, 500);
    lw_pool_close(n.pool);
}

Test(pool, scratch)
{
    lw_pool *pool = NULL;
    cr_assert_eq(lw_pool_open_team(&pool, 2, NULL), LW_OK);
    for (int which = 0; which <= 2; which++) {
        char *first = lw_pool_scratch(pool, which, 100);
        cr_assert_not_null(first);
        memset(first, which, 100);
        cr_expect_eq(lw_pool_scratch(pool, which, 50), first);
        char *more = lw_pool_scratch(pool, which, 100000);
        cr_assert_not_null(more);
        cr_expect_eq((uintptr_t)more % 64, 0);
        memset(more, which, 100000);
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
