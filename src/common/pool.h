/* pool.h - the program's worker threads: htslib's pool, shared by computing and by BGZF/CRAM coding, so that
 * -t N means N threads in all and not N of each kind; or a team for computing alone. */
#ifndef LW_POOL_H
#define LW_POOL_H

#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lw_pool lw_pool;

/* A pool of `threads` >= 1 workers; 0: one per online CPU that this process may use. LW_E_NOMEM. */
lw_status lw_pool_open(lw_pool **out, int threads, lw_error *err);
/* The same for one caller whose loops follow each other closely: he works as one of the threads, and the
 * others look for the next loop for a moment before they sleep (not where there are more threads than
 * processors, or where other processes take these). A second caller at the same time is left alone with his
 * loop. Once lw_pool_hts() was asked for it is a pool like any other. */
lw_status lw_pool_open_team(lw_pool **out, int threads, lw_error *err);
/* What 0 means: the online CPUs that this process may use, at most what its control groups pay for. */
int lw_pool_default_threads(void);
void lw_pool_close(lw_pool *pool);        /* NULL is allowed */
int lw_pool_threads(const lw_pool *pool); /* NULL: 1 */

/* Memory that the pool keeps, 64-byte aligned and of undefined content: for worker `which`, or one more piece
 * where that is lw_pool_threads(); until the next call for the same. For pools with one caller. NULL: no
 * memory. */
void *lw_pool_scratch(lw_pool *pool, int which, size_t bytes);

/* htslib's htsThreadPool.pool, for hts_set_thread_pool(). NULL: none, or a team's could not be started. */
struct hts_tpool *lw_pool_hts(lw_pool *pool);

/* Calls task(arg, i, worker) for every i in [0, n), spread over the pool, and returns when all are done.
 * worker is in [0, lw_pool_threads(pool)) and no two tasks with the same worker run at once, so that it can
 * index scratch memory. With pool NULL or one thread the caller does the work. May be called from several
 * threads at a time, but not from within a task. Returns the status of the lowest-numbered i that failed;
 * after a failure remaining tasks may be skipped. */
lw_status lw_pool_for(lw_pool *pool, int64_t n,
                      lw_status (*task)(void *arg, int64_t i, int worker, lw_error *err), void *arg,
                      lw_error *err);
/* The same; each worker begins with its own contiguous share of [0, n), the same in every call with the same
 * n, so that what a task reads again and again stays in the caches of one core. */
lw_status lw_pool_for_shares(lw_pool *pool, int64_t n,
                             lw_status (*task)(void *arg, int64_t i, int worker, lw_error *err), void *arg,
                             lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
