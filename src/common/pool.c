/* pool.c - parallel loops over htslib's thread pool or a team.
 *
 * htslib's pool and not OpenMP: BGZF and CRAM coding already runs on it, so one pool keeps -t N a
 * promise about the whole program, and ThreadSanitizer understands its pthreads. A team (team.c) answers
 * faster; it has no htslib pool beside it. */
#include "common/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <htslib/thread_pool.h>

#include "common/fail.h"
#include "common/quota.h"
#include "common/team.h"

struct lw_pool {
    int threads;
    struct hts_tpool *hts; /* or */
    lw_team *team;
    struct memory {
        void *data;
        size_t bytes;
    } * scratch; /* threads + 1 */
};

/* One lw_pool_for() call: runners take the next i until there is none. */
typedef struct loop {
    lw_status (*task)(void *arg, int64_t i, int worker, lw_error *err);
    void *arg;
    int64_t n;
    atomic_llong next;
    atomic_llong failed_at; /* lowest i that failed so far; n: none */
    pthread_mutex_t lock;   /* guards error */
    lw_error error;
} loop;

typedef struct runner {
    loop *loop;
    int worker;
} runner;

/* Tasks behind a failure are skipped, those before it still run: the lowest failure wins. */
static void perform(void *arg, int64_t i, int worker)
{
    loop *l = arg;
    if (i > atomic_load(&l->failed_at))
        return;
    lw_error err = {0};
    lw_status status = l->task(l->arg, i, worker, &err);
    if (status == LW_OK)
        return;
    pthread_mutex_lock(&l->lock);
    if (i < atomic_load(&l->failed_at)) {
        atomic_store(&l->failed_at, i);
        l->error = err;
        l->error.status = status;
    }
    pthread_mutex_unlock(&l->lock);
}

static void *run(void *arg)
{
    runner *self = arg;
    loop *l = self->loop;
    for (int64_t i; (i = atomic_fetch_add(&l->next, 1)) < l->n && i <= atomic_load(&l->failed_at);)
        perform(l, i, self->worker);
    return NULL;
}

/* A kernel for more processors than a set has room for refuses to tell; none is built for as many as this. */
enum { MOST_PROCESSORS = CPU_SETSIZE << 6 };

int lw_pool_default_threads(void)
{
    int count = 0, paid = lw_quota_processors("");
    for (int room = CPU_SETSIZE; count == 0 && room <= MOST_PROCESSORS; room *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)room);
        if (!set)
            break;
        if (sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)room), set) == 0)
            count = CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)room), set);
        CPU_FREE(set);
    }
    return count == 0 ? 1 : count < paid ? count : paid;
}

static lw_status start_hts(lw_pool *pool, lw_error *err)
{
    pool->hts = hts_tpool_init(pool->threads);
    return pool->hts ? LW_OK : lw_fail(err, LW_E_NOMEM, "%d threads could not be started", pool->threads);
}

static lw_status open_pool(lw_pool **out, int threads, bool is_team, lw_error *err)
{
    if (threads == 0)
        threads = lw_pool_default_threads();
    lw_pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->scratch = calloc((size_t)threads + 1, sizeof *pool->scratch);
    if (!pool || !pool->scratch) {
        free(pool);
        return lw_fail_memory(err, ((size_t)threads + 1) * sizeof *pool->scratch);
    }
    pool->threads = threads;
    lw_status status = is_team ? lw_team_open(&pool->team, threads, err) : start_hts(pool, err);
    if (status != LW_OK) {
        lw_pool_close(pool);
        return status;
    }
    *out = pool;
    return LW_OK;
}

lw_status lw_pool_open(lw_pool **out, int threads, lw_error *err)
{
    return open_pool(out, threads, false, err);
}

lw_status lw_pool_open_team(lw_pool **out, int threads, lw_error *err)
{
    return open_pool(out, threads, true, err);
}

void lw_pool_close(lw_pool *pool)
{
    if (!pool)
        return;
    lw_team_close(pool->team);
    if (pool->hts)
        hts_tpool_destroy(pool->hts);
    for (int w = 0; w <= pool->threads; w++)
        free(pool->scratch[w].data);
    free(pool->scratch);
    free(pool);
}

int lw_pool_threads(const lw_pool *pool)
{
    return pool ? pool->threads : 1;
}

struct hts_tpool *lw_pool_hts(lw_pool *pool)
{
    if (pool && pool->team && start_hts(pool, NULL) == LW_OK) {
        lw_team_close(pool->team);
        pool->team = NULL;
    }
    return pool ? pool->hts : NULL;
}

void *lw_pool_scratch(lw_pool *pool, int which, size_t bytes)
{
    struct memory *m = &pool->scratch[which];
    if (bytes > m->bytes) {
        free(m->data);
        m->data = aligned_alloc(64, (bytes + 63) / 64 * 64);
        m->bytes = m->data ? bytes : 0;
    }
    return m->data;
}

/* False when no thread would take any of it: the caller does the work. A loop whose tasks cannot fail does
 * not fail either, also without memory. */
static bool run_jobs(lw_pool *pool, loop *l, int runners)
{
    runner *job = malloc((size_t)runners * sizeof *job);
    hts_tpool_process *queue = job ? hts_tpool_process_init(pool->hts, runners, 1) : NULL;
    int dispatched = 0;
    for (; queue && dispatched < runners; dispatched++) {
        job[dispatched] = (runner){.loop = l, .worker = dispatched};
        if (hts_tpool_dispatch(pool->hts, queue, run, &job[dispatched]) < 0)
            break;
    }
    if (queue) {
        hts_tpool_process_flush(queue);
        hts_tpool_process_destroy(queue);
    }
    free(job);
    return dispatched > 0;
}

static lw_status run_loop(lw_pool *pool, int64_t n, bool shares,
                          lw_status (*task)(void *arg, int64_t i, int worker, lw_error *err), void *arg,
                          lw_error *err)
{
    int runners = lw_pool_threads(pool);
    if (runners > n)
        runners = (int)n;
    loop l = {.task = task, .arg = arg, .n = n};
    atomic_init(&l.next, 0);
    atomic_init(&l.failed_at, n);
    lw_status status = LW_OK;
    bool alone = runners <= 1;
    pthread_mutex_init(&l.lock, NULL);
    if (!alone && pool->team)
        alone = !lw_team_run(pool->team, n, shares, perform, &l);
    else if (!alone)
        alone = !run_jobs(pool, &l, runners);
    for (int64_t i = 0; alone && status == LW_OK && i < n; i++)
        status = task(arg, i, 0, err);
    pthread_mutex_destroy(&l.lock);
    if (status == LW_OK && atomic_load(&l.failed_at) < n)
        status = lw_fail(err, l.error.status, "%s", l.error.message);
    return status;
}

lw_status lw_pool_for(lw_pool *pool, int64_t n,
                      lw_status (*task)(void *arg, int64_t i, int worker, lw_error *err), void *arg,
                      lw_error *err)
{
    return run_loop(pool, n, false, task, arg, err);
}

lw_status lw_pool_for_shares(lw_pool *pool, int64_t n,
                             lw_status (*task)(void *arg, int64_t i, int worker, lw_error *err), void *arg,
                             lw_error *err)
{
    return run_loop(pool, n, true, task, arg, err);
}
