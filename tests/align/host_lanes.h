/* host_lanes.h - runs a kernel's own source on the host: every thread of one block is a coroutine that gives
 * way where the lanes of a warp or the threads of a block meet. Slow, and exact: the arithmetic is the host
 * form of dpx.cuh.
 *
 * Include before the kernel, in one file of a program. Shared memory is static; the dynamic array is
 * host_shared, which the kernel finds under its own name. */
#ifndef LW_TEST_HOST_LANES_H
#define LW_TEST_HOST_LANES_H

#include <cuda_runtime.h>
#include <limits.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#include "common/dpx.cuh"
#include "common/warp.cuh"

#undef __global__
#undef __shared__
#undef __launch_bounds__
#define __global__ static
#define __shared__ static
#define __launch_bounds__(...)
#define LW_DEVICE static inline
#define LW_DYNAMIC_SHARED(type, name) type *const name = (type *)host_shared

enum { HOST_MOST_THREADS = 256, HOST_STACK = 128 << 10 };

struct host_index {
    unsigned x, y;
};

static host_index threadIdx, blockIdx, blockDim;
static uint4 host_shared[8192];

/* In which order threads take their turns between two meetings, where no kernel may depend on one: as they
 * are numbered, the other way round, or at random, some warps slower than others for a while. */
enum { HOST_FORWARD, HOST_BACKWARD, HOST_RANDOM };

static int host_order = HOST_FORWARD;
static uint32_t host_random = 1;

/* A meeting writes into one of two boards in turn, so that nobody overwrites what a slower lane still reads.
 */
static struct {
    int n, now;
    void (*body)(void *);
    void *argument;
    jmp_buf scheduler, thread[HOST_MOST_THREADS];
    ucontext_t start;
    bool started[HOST_MOST_THREADS], done[HOST_MOST_THREADS];
    int met[HOST_MOST_THREADS];               /* meetings of its warp that a thread has come to */
    int arrived[HOST_MOST_THREADS], released; /* meetings of the whole block, of each thread and of all */
    uint32_t board[2][HOST_MOST_THREADS];
    char *stacks;
} host;

/* Gives way to the other threads. Not by swapcontext(), whose two system calls took half of a test's time;
 * for this jumping between stacks programs are compiled without _FORTIFY_SOURCE. */
static void host_yield(void)
{
    if (_setjmp(host.thread[host.now]) == 0)
        _longjmp(host.scheduler, 1);
}

static void host_entry(void)
{
    host.body(host.argument);
    host.done[host.now] = true;
    host_yield();
}

/* Lets a thread go on until it gives way. */
static void host_resume(int i)
{
    if (_setjmp(host.scheduler) != 0)
        return;
    if (host.started[i])
        _longjmp(host.thread[i], 1);
    host.started[i] = true;
    getcontext(&host.start);
    host.start.uc_stack.ss_sp = host.stacks + (size_t)i * HOST_STACK;
    host.start.uc_stack.ss_size = HOST_STACK;
    host.start.uc_link = NULL;
    makecontext(&host.start, host_entry, 0);
    setcontext(&host.start);
}

static uint32_t host_draw(uint32_t below)
{
    host_random = host_random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)host_random * below >> 32);
}

/* The order of a round, and in how many of four rounds each warp takes part. */
static void host_shuffle(int *order, int *speed)
{
    static int rounds;
    for (int i = 0; i < host.n; i++)
        order[i] = host_order == HOST_BACKWARD ? host.n - 1 - i : i;
    for (int warp = 0; warp * LW_WARP < host.n; warp++)
        speed[warp] = host_order != HOST_RANDOM ? 4 : rounds % 512 == 0 ? 1 + (int)host_draw(4) : speed[warp];
    for (int i = host.n - 1; host_order == HOST_RANDOM && i > 0; i--) {
        const int k = (int)host_draw((uint32_t)i + 1), other = order[i];
        order[i] = order[k], order[k] = other;
    }
    rounds++;
}

/* Runs body(argument) as block `block` of `threads` threads. */
static void host_run_block(int threads, unsigned block, void (*body)(void *), void *argument)
{
    host.n = threads;
    host.body = body;
    host.argument = argument;
    host.stacks = (char *)malloc((size_t)threads * HOST_STACK);
    if (!host.stacks)
        abort();
    blockIdx = {block, 0};
    blockDim = {(unsigned)threads, 1};
    for (int i = 0; i < threads; i++) {
        host.started[i] = host.done[i] = false;
        host.met[i] = host.arrived[i] = 0;
    }
    host.released = 0;
    int order[HOST_MOST_THREADS], met[HOST_MOST_THREADS / LW_WARP], speed[HOST_MOST_THREADS / LW_WARP];
    for (int warp = 0; warp < HOST_MOST_THREADS / LW_WARP; warp++)
        speed[warp] = 4;
    for (bool any = true; any;) {
        any = false;
        int least = INT_MAX;
        for (int i = 0; i < threads; i++) {
            least = !host.done[i] && host.arrived[i] < least ? host.arrived[i] : least;
            if (i % LW_WARP == 0)
                met[i / LW_WARP] = INT_MAX;
            if (!host.done[i] && host.met[i] < met[i / LW_WARP])
                met[i / LW_WARP] = host.met[i];
        }
        host.released = least;
        host_shuffle(order, speed);
        bool rests[HOST_MOST_THREADS / LW_WARP];
        for (int warp = 0; warp * LW_WARP < threads; warp++)
            rests[warp] = speed[warp] < 4 && (int)host_draw(4) >= speed[warp];
        for (int k = 0; k < threads; k++) {
            const int i = order[k], warp = i / LW_WARP;
            any |= !host.done[i];
            /* who has met the others waits for all of them */
            if (host.done[i] || rests[warp] || host.met[i] > met[warp])
                continue;
            host.now = i;
            threadIdx = {(unsigned)i, 0};
            host_resume(i);
        }
    }
    free(host.stacks);
}

/* Shows v to all and returns what the lanes of this warp have shown, when all have. */
static const uint32_t *host_meet(uint32_t v)
{
    const int me = host.now;
    uint32_t *board = host.board[host.met[me]++ & 1];
    board[me] = v;
    host_yield();
    return board + (me & ~(LW_WARP - 1));
}

static inline int lw_lane(void)
{
    return (int)(threadIdx.x & (LW_WARP - 1));
}

static inline uint32_t lw_opaque(uint32_t value)
{
    return value;
}

static inline void lw_warp_sync(uint32_t mask)
{
    (void)mask;
    host_meet(0);
}

/* All threads leave in one round, so that the lanes of a warp stay together. */
static inline void __syncthreads(void)
{
    const int me = host.now;
    host.arrived[me]++;
    do
        host_yield();
    while (host.released < host.arrived[me]);
}

static inline int lw_any(uint32_t mask, int predicate)
{
    (void)mask;
    const uint32_t *lanes = host_meet(predicate != 0);
    for (int i = 0; i < LW_WARP; i++)
        if (lanes[i])
            return 1;
    return 0;
}

static inline uint32_t lw_ballot(uint32_t mask, int predicate)
{
    (void)mask;
    const uint32_t *lanes = host_meet(predicate != 0);
    uint32_t bits = 0;
    for (int i = 0; i < LW_WARP; i++)
        bits |= lanes[i] << i;
    return bits;
}

static inline int lw_trailing_ones(uint32_t bits)
{
    int n = 0;
    while (n < LW_WARP && (bits >> n & 1))
        n++;
    return n;
}

static inline uint32_t lw_from_below(uint32_t mask, uint32_t value, int delta, int width)
{
    (void)mask, (void)width;
    int lane = lw_lane();
    const uint32_t *lanes = host_meet(value);
    return lane >= delta ? lanes[lane - delta] : value;
}

static inline uint32_t lw_from_above(uint32_t mask, uint32_t value, int delta, int width)
{
    (void)mask, (void)width;
    int lane = lw_lane();
    const uint32_t *lanes = host_meet(value);
    return lane + delta < LW_WARP ? lanes[lane + delta] : value;
}

static inline uint32_t lw_from_lane(uint32_t mask, uint32_t value, int source, int width)
{
    (void)mask, (void)width;
    return host_meet(value)[source];
}

static inline uint64_t lw_from_first64(uint32_t mask, uint64_t value)
{
    (void)mask;
    const uint32_t low = host_meet((uint32_t)value)[0];
    return (uint64_t)host_meet((uint32_t)(value >> 32))[0] << 32 | low;
}

static inline int32_t lw_reduce_max_xor(uint32_t mask, int32_t value, int width)
{
    (void)mask;
    const uint32_t *lanes = host_meet((uint32_t)value);
    int32_t most = (int32_t)lanes[0];
    for (int i = 1; i < width; i++)
        most = (int32_t)lanes[i] > most ? (int32_t)lanes[i] : most;
    return most;
}

static inline int32_t lw_reduce_min_xor(uint32_t mask, int32_t value, int width)
{
    (void)mask;
    const uint32_t *lanes = host_meet((uint32_t)value);
    int32_t least = (int32_t)lanes[0];
    for (int i = 1; i < width; i++)
        least = (int32_t)lanes[i] < least ? (int32_t)lanes[i] : least;
    return least;
}

static inline int atomicAdd(int32_t *at, int32_t value)
{
    int before = *at;
    *at += value;
    return before;
}

static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value)
{
    unsigned long long before = *at;
    *at += value;
    return before;
}

/* Shared memory by number: bytes from its beginning. */
static inline uint32_t lw_shared_address(const void *shared)
{
    return (uint32_t)((const char *)shared - (const char *)host_shared);
}

static inline uint4 lw_shared_load4(uint32_t address)
{
    return *(const uint4 *)((const char *)host_shared + address);
}

template <int N>
static inline void lw_shared_take(uint32_t address, bool take, uint32_t &first, uint32_t (&rest)[N])
{
    const uint32_t *from = (const uint32_t *)((const char *)host_shared + address);
    first = take ? from[0] : first;
    for (int i = 0; i < N; i++)
        rest[i] = take ? from[1 + i] : rest[i];
}

static inline void lw_publish(int32_t *progress, int32_t value)
{
    *progress = value;
}

static inline void lw_await(const int32_t *progress, int32_t value)
{
    /* with one warp nobody else will ever go on */
    for (int rounds = 0; *(const volatile int32_t *)progress < value; rounds++) {
        if (host.n <= LW_WARP || rounds > 100000000)
            abort();
        host_yield();
    }
}

static inline uint2 lw_taken2(const uint2 *at)
{
    return *at;
}

static inline uint32_t lw_taken(const uint32_t *at)
{
    return *at;
}

#endif
