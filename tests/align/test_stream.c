/* test_stream.c - the pipeline: order, the first failure, changing over to other lanes, a bounded number of
 * batches. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "align/stream.h"
#include "common/fail.h"

typedef struct item {
    int64_t number, result;
} item;

typedef struct toy {
    int64_t n, read, written;
    int64_t read_fails_at, work_fails_at, write_fails_at; /* -1: never */
    int lanes_refused;                                    /* sets of lanes that cannot be opened */
    atomic_int open, most_open, fall_backs;
    bool in_order;
} toy;

static lw_status toy_read(void *arg, void *batch, bool *end, lw_error *err)
{
    toy *t = arg;
    if (t->read == t->read_fails_at)
        return lw_fail(err, LW_E_INPUT, "read %lld", (long long)t->read);
    *end = t->read == t->n;
    ((item *)batch)->number = t->read;
    t->read += !*end;
    return LW_OK;
}

static lw_status toy_open(void *arg, int lane, void **context, lw_error *err)
{
    toy *t = arg;
    if (t->lanes_refused > 0 && lane == 1)
        return lw_fail(err, LW_E_DEVICE, "lane %d is not to be had", lane);
    *context = t;
    atomic_fetch_add(&t->open, 1);
    return LW_OK;
}

static void toy_close(void *arg, void *context)
{
    toy *t = arg;
    cr_assert_eq(context, t);
    atomic_fetch_sub(&t->open, 1);
}

static int toy_fall_back(void *arg, const lw_error *reason)
{
    toy *t = arg;
    cr_assert_eq(reason->status, LW_E_DEVICE);
    t->lanes_refused--;
    atomic_fetch_add(&t->fall_backs, 1);
    return 2;
}

static lw_status toy_work(void *arg, void *context, void *batch, lw_error *err)
{
    toy *t = arg;
    item *it = batch;
    (void)context;
    if (it->number % 7 == 3)
        usleep(300); /* so that batches overtake each other */
    if (t->work_fails_at >= 0 && it->number >= t->work_fails_at)
        return lw_fail(err, LW_E_RANGE, "work %lld", (long long)it->number);
    it->result = it->number * it->number;
    return LW_OK;
}

static lw_status toy_write(void *arg, void *batch, lw_error *err)
{
    toy *t = arg;
    item *it = batch;
    if (it->number == t->write_fails_at)
        return lw_fail(err, LW_E_IO, "write %lld", (long long)it->number);
    t->in_order = t->in_order && it->number == t->written && it->result == it->number * it->number;
    t->written++;
    return LW_OK;
}

static lw_status run(toy *t, int n_batches, int n_lanes, const lw_host *host, lw_error *err)
{
    static const lw_stream_ops empty;
    lw_stream_ops ops = empty;
    item items[16] = {{0, 0}};
    void *batches[16];
    for (int i = 0; i < 16; i++)
        batches[i] = &items[i];
    ops = (lw_stream_ops){t, toy_read, toy_open, toy_work, toy_close, toy_fall_back, toy_write};
    t->in_order = true;
    lw_status status = lw_stream_run(&ops, batches, n_batches, n_lanes, host, err);
    cr_assert_eq(atomic_load(&t->open), 0, "every lane is closed");
    cr_assert(t->in_order);
    return status;
}

static toy fresh(int64_t n)
{
    return (toy){.n = n, .read_fails_at = -1, .work_fails_at = -1, .write_fails_at = -1};
}

Test(stream, keeps_the_order)
{
    for (int lanes = 1; lanes <= 4; lanes++)
        for (int batches = 2; batches <= 9; batches++)
            for (int64_t n = 0; n <= 40; n += 20) {
                toy t = fresh(n);
                cr_assert_eq(run(&t, batches, lanes, NULL, NULL), LW_OK);
                cr_assert_eq(t.written, n);
            }
}

Test(stream, first_failure_in_input_order_wins)
{
    for (int round = 0; round < 20; round++) {
        lw_error err = {0};
        toy t = fresh(50);
        t.work_fails_at = 11;
        t.read_fails_at = 30;
        cr_assert_eq(run(&t, 8, 3, NULL, &err), LW_E_RANGE);
        cr_assert_str_eq(err.message, "work 11");
        cr_assert_eq(t.written, 11);
    }
}

Test(stream, failures_of_reader_and_writer)
{
    lw_error err = {0};
    toy t = fresh(50);
    t.read_fails_at = 30;
    cr_assert_eq(run(&t, 8, 3, NULL, &err), LW_E_INPUT);
    cr_assert_str_eq(err.message, "read 30");
    cr_assert_eq(t.written, 30);
    t = fresh(50);
    t.write_fails_at = 5;
    err = (lw_error){0};
    cr_assert_eq(run(&t, 8, 3, NULL, &err), LW_E_IO);
    cr_assert_eq(t.written, 5);
}

Test(stream, falls_back_to_other_lanes)
{
    lw_error err = {0};
    toy t = fresh(30);
    t.lanes_refused = 2;
    cr_assert_eq(run(&t, 6, 3, NULL, &err), LW_OK);
    cr_assert_eq(atomic_load(&t.fall_backs), 2);
    cr_assert_eq(t.written, 30, "what was read before the change is not lost");
    cr_assert_eq(err.status, LW_OK);
}

Test(stream, stops_when_asked)
{
    volatile int stop = 1;
    lw_host host = {.stop = &stop};
    lw_error err = {0};
    toy t = fresh(30);
    cr_assert_eq(run(&t, 6, 2, &host, &err), LW_E_INTERRUPTED);
    cr_assert_eq(t.written, 0);
}
