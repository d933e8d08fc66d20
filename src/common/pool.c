/* pool.c - parallel loops over htslib's thread pool.
 *
 * htslib's pool and not OpenMP: BGZF and CRAM coding already runs on it, so one pool keeps -t N a
 * promise about the whole program, and ThreadSanitizer understands its pthreads. */
#include "common/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <htslib/thread_pool.h>

#include "common/fail.h"

struct lw_pool {
    struct hts_tpool *hts;
    int threads;
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

static void *run(void *arg)
{
    runner *self = arg;
    loop *l = self->loop;
    for (;;) {
        int64_t i = atomic_fetch_add(&l->next, 1);
        /* tasks behind a failure are skipped, those before it still run: the lowest failure wins */
        if (i >= l->n || i > atomic_load(&l->failed_at))
            return NULL;
        lw_error err = {0};
        lw_status status = l->task(l->arg, i, self->worker, &err);
        if (status == LW_OK)
            continue;
        pthread_mutex_lock(&l->lock);
        if (i < atomic_load(&l->failed_at)) {
            atomic_store(&l->failed_at, i);
            l->error = err;
            l->error.status = status;
        }
        pthread_mutex_unlock(&l->lock);
    }
}

int lw_pool_default_threads(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

lw_status lw_pool_open(lw_pool **out, int threads, lw_error *err)
{
    if (threads == 0)
        threads = lw_pool_default_threads();
    lw_pool *pool = malloc(sizeof *pool);
    if (!pool)
        return lw_fail_memory(err, sizeof *pool);
    pool->threads = threads;
    pool->hts = hts_tpool_init(threads);
    if (!pool->hts) {
        free(pool);
        return lw_fail(err, LW_E_NOMEM, "%d threads could not be started", threads);
    }
    *out = pool;
    return LW_OK;
}

void lw_pool_close(lw_pool *pool)
{
    if (!pool)
        return;
    hts_tpool_destroy(pool->hts);
    free(pool);
}

int lw_pool_threads(const lw_pool *pool)
{
    return pool ? pool->threads : 1;
}

struct hts_tpool *lw_pool_hts(lw_pool *pool)
{
    return pool ? pool->hts : NULL;
}

lw_status lw_pool_for(lw_pool *pool, int64_t n,
                      lw_status (*task)(void *arg, int64_t i, int worker, lw_error *err), void *arg,
                      lw_error *err)
{
    int runners = lw_pool_threads(pool);
    if (runners > n)
        runners = (int)n;
    if (runners <= 1) {
        for (int64_t i = 0; i < n; i++)
            LW_TRY(task(arg, i, 0, err));
        return LW_OK;
    }
    loop l = {.task = task, .arg = arg, .n = n};
    atomic_init(&l.next, 0);
    atomic_init(&l.failed_at, n);
    pthread_mutex_init(&l.lock, NULL);
    runner *team = malloc((size_t)runners * sizeof *team);
    hts_tpool_process *queue = team ? hts_tpool_process_init(pool->hts, runners, 1) : NULL;
    if (!queue) {
        free(team);
        pthread_mutex_destroy(&l.lock);
        return lw_fail_memory(err, (size_t)runners * sizeof *team);
    }
    int dispatched = 0;
    for (; dispatched < runners; dispatched++) {
        team[dispatched] = (runner){.loop = &l, .worker = dispatched};
        if (hts_tpool_dispatch(pool->hts, queue, run, &team[dispatched]) < 0)
            break;
    }
    if (dispatched == 0) { /* no thread would take it: the caller does the work */
        runner self = {.loop = &l, .worker = 0};
        run(&self);
    }
    hts_tpool_process_flush(queue);
    hts_tpool_process_destroy(queue);
    free(team);
    pthread_mutex_destroy(&l.lock);
    if (atomic_load(&l.failed_at) < n)
        return lw_fail(err, l.error.status, "%s", l.error.message);
    return LW_OK;
}
