/* team.c - threads that look for the next loop before they sleep.
 *
 * The caller offers a loop to each member by the member's own word of state, and takes back what was not
 * accepted when nothing is left to do, so that nobody waits for a thread that sleeps or has lost its
 * processor. */
#include "common/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "common/fail.h"
#include "common/pause.h"
#include "common/pool.h"
#include "common/team_tuning.h"

/* Where a member is. ASLEEP and WAITING (looking) become OFFERED by the caller, and again what they were if
 * he takes the offer back; OFFERED becomes BUSY by the member. */
enum { ASLEEP, WAITING, OFFERED, BUSY, LEAVING };

typedef struct member {
    _Alignas(64) atomic_int state;
    lw_team *team;
    int worker;
    int before; /* the state before the offer, for the caller */
    int rank;   /* among those who sleep; -1: awake. Read once the offer is accepted */
    pthread_t thread;
    pthread_mutex_t lock; /* of its sleep */
    pthread_cond_t woken;
    _Alignas(64) atomic_llong next; /* of its own share, which ends at */
    int64_t end;
} member;

struct lw_team {
    int threads;
    bool may_look; /* no more threads than processors */
    atomic_bool taken;

    /* what the caller who has the team writes before he offers: read once an offer is accepted, until `left`
     * is counted down */
    void (*work)(void *arg, int64_t i, int worker);
    void *arg;
    int64_t n;
    bool shares, look;
    int sleepers, *sleeper; /* members to be woken, by rank */

    /* the caller's own */
    int started;                /* members that are there, he among them; 0: not tried yet */
    int64_t quiet_until, asked; /* ns */
    bool known;                 /* the next three are */
    pthread_t who;
    int64_t lost, used; /* of his thread when asked: involuntary switches, ns */

    _Alignas(64) atomic_llong next; /* of a loop without shares */
    _Alignas(64) atomic_int left;   /* members offered and not yet done */
    atomic_bool caller_sleeps;
    pthread_mutex_t lock;
    pthread_cond_t done;
    member member[];
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Looks until *word is no longer `value` or the time is over. */
static void look(atomic_int *word, int value, int64_t until)
{
    do {
        for (int i = 0; i < LW_TEAM_LOOKS; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return;
            lw_pause();
        }
    } while (now() < until);
}

static void run(lw_team *t, int worker)
{
    if (!t->shares)
        for (int64_t i; (i = atomic_fetch_add(&t->next, 1)) < t->n;)
            t->work(t->arg, i, worker);
    /* the worker's own share, then what is left of its neighbours' */
    for (int k = 0; t->shares && k < t->threads; k++) {
        member *of = &t->member[(worker + k) % t->threads];
        while (atomic_load_explicit(&of->next, memory_order_relaxed) < of->end) {
            int64_t i = atomic_fetch_add(&of->next, 1);
            if (i < of->end)
                t->work(t->arg, i, worker);
        }
    }
}

/* ---- members --------------------------------------------------------------------------------------- */

static void wake(member *m)
{
    pthread_mutex_lock(&m->lock);
    pthread_cond_signal(&m->woken);
    pthread_mutex_unlock(&m->lock);
}

/* What the sleeper of this rank (the caller: -1) wakes. */
static void wake_next(lw_team *t, int rank)
{
    int first = LW_TEAM_WAKES * (rank + 1);
    for (int k = first; k < first + LW_TEAM_WAKES && k < t->sleepers; k++)
        wake(&t->member[t->sleeper[k]]);
}

static void *serve(void *arg)
{
    member *m = arg;
    lw_team *t = m->team;
    for (;;) {
        int state = OFFERED;
        if (atomic_compare_exchange_strong(&m->state, &state, BUSY)) {
            if (m->rank >= 0)
                wake_next(t, m->rank);
            run(t, m->worker);
            bool looks = t->look;
            atomic_store(&m->state, looks ? WAITING : ASLEEP);
            if (atomic_fetch_sub(&t->left, 1) == 1 && atomic_load(&t->caller_sleeps)) {
                pthread_mutex_lock(&t->lock);
                pthread_cond_signal(&t->done);
                pthread_mutex_unlock(&t->lock);
            }
            if (looks)
                look(&m->state, WAITING, now() + LW_TEAM_LOOK);
        } else if (state == LEAVING) {
            return NULL;
        }
        state = WAITING;
        atomic_compare_exchange_strong(&m->state, &state, ASLEEP);
        pthread_mutex_lock(&m->lock);
        while (atomic_load(&m->state) == ASLEEP)
            pthread_cond_wait(&m->woken, &m->lock);
        pthread_mutex_unlock(&m->lock);
    }
}

/* ---- the caller ------------------------------------------------------------------------------------ */

/* Members that cannot be started are not missed. */
static void start(lw_team *t)
{
    for (t->started = 1; t->started < t->threads; t->started++) {
        member *m = &t->member[t->started];
        if (pthread_create(&m->thread, NULL, serve, m) != 0)
            return;
    }
}

/* Whether waiting threads shall look: not where others need the processors. */
static bool shall_look(lw_team *t)
{
    if (!t->may_look)
        return false;
    int64_t time = now();
    if (time < t->quiet_until)
        return false;
    if (time < t->asked)
        return true;
    t->asked = time + LW_TEAM_ASK;
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0)
        return true;
    int64_t used = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
                   (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
    /* what a thread has lost before its first loop here says nothing of now */
    bool same = t->known && pthread_equal(t->who, pthread_self());
    int64_t had = used - t->used, lost = usage.ru_nivcsw - t->lost;
    bool crowded = same && lost >= 2 && had >= 0 && had <= LW_TEAM_LOST;
    if (!same || crowded || had > LW_TEAM_LOST || had < 0) { /* less than nothing: its name, another's time */
        t->known = true;
        t->who = pthread_self();
        t->used = used;
        t->lost = usage.ru_nivcsw;
    }
    if (crowded)
        t->quiet_until = time + LW_TEAM_QUIET;
    return !crowded;
}

static void offer(lw_team *t, int members)
{
    t->sleepers = 0;
    atomic_store(&t->left, members);
    for (int w = 1; w <= members; w++) {
        member *m = &t->member[w];
        int state = WAITING;
        m->before = WAITING;
        m->rank = -1;
        if (atomic_compare_exchange_strong(&m->state, &state, OFFERED))
            continue;
        m->before = ASLEEP; /* and nobody else ends that */
        m->rank = t->sleepers;
        t->sleeper[t->sleepers++] = w;
    }
    for (int k = 0; k < t->sleepers; k++)
        atomic_store(&t->member[t->sleeper[k]].state, OFFERED);
    wake_next(t, -1);
}

static void take_back(lw_team *t, int members)
{
    for (int w = 1; w <= members; w++) {
        int state = OFFERED;
        if (atomic_compare_exchange_strong(&t->member[w].state, &state, t->member[w].before))
            atomic_fetch_sub(&t->left, 1);
    }
}

static void wait_for_members(lw_team *t)
{
    int64_t until = t->look ? now() + LW_TEAM_LOOK : 0;
    int left;
    while ((left = atomic_load(&t->left)) != 0 && t->look && now() < until)
        look(&t->left, left, until);
    if (left == 0)
        return;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->caller_sleeps, true);
    while (atomic_load(&t->left) != 0)
        pthread_cond_wait(&t->done, &t->lock);
    atomic_store(&t->caller_sleeps, false);
    pthread_mutex_unlock(&t->lock);
}

bool lw_team_run(lw_team *t, int64_t n, bool shares, void (*work)(void *arg, int64_t i, int worker),
                 void *arg)
{
    if (n <= 0)
        return true;
    if (atomic_exchange(&t->taken, true))
        return false;
    if (t->started == 0)
        start(t);
    int members = n < t->started ? (int)n - 1 : t->started - 1;
    t->work = work;
    t->arg = arg;
    t->n = n;
    t->shares = shares;
    t->look = shall_look(t);
    atomic_store(&t->next, 0);
    for (int64_t w = 0; shares && w < t->threads; w++) {
        atomic_store(&t->member[w].next, w * n / t->threads);
        t->member[w].end = (w + 1) * n / t->threads;
    }
    offer(t, members);
    run(t, 0);
    if (atomic_load(&t->left) != 0) {
        take_back(t, members);
        wait_for_members(t);
    }
    atomic_store(&t->taken, false);
    return true;
}

lw_status lw_team_open(lw_team **out, int threads, lw_error *err)
{
    size_t size = sizeof(lw_team) + (size_t)threads * sizeof(member); /* a multiple of 64, as both are */
    lw_team *t = aligned_alloc(64, size);
    int *sleeper = calloc((size_t)threads, sizeof *sleeper);
    if (!t || !sleeper) {
        free(t);
        free(sleeper);
        return lw_fail_memory(err, size);
    }
    memset(t, 0, size);
    t->threads = threads;
    t->may_look = threads <= lw_pool_default_threads();
    t->sleeper = sleeper;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->done, NULL);
    for (int w = 0; w < threads; w++) {
        member *m = &t->member[w];
        m->team = t;
        m->worker = w;
        atomic_init(&m->state, ASLEEP);
        pthread_mutex_init(&m->lock, NULL);
        pthread_cond_init(&m->woken, NULL);
    }
    *out = t;
    return LW_OK;
}

void lw_team_close(lw_team *t)
{
    if (!t)
        return;
    for (int w = 1; w < t->started; w++) {
        atomic_store(&t->member[w].state, LEAVING);
        wake(&t->member[w]);
    }
    for (int w = 1; w < t->started; w++)
        pthread_join(t->member[w].thread, NULL);
    for (int w = 0; w < t->threads; w++) {
        pthread_cond_destroy(&t->member[w].woken);
        pthread_mutex_destroy(&t->member[w].lock);
    }
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    free(t->sleeper);
    free(t);
}
