/* stream.c - the threads and queues of the pipeline. */
#include "align/stream.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/fail.h"

enum batch_state { FREE, READING, WAITING, WORKING, FINISHED };

typedef struct batch_slot {
    void *batch;
    enum batch_state state;
    int64_t number; /* in input order */
    lw_status status;
    lw_error error;
} batch_slot;

typedef struct stream {
    const lw_stream_ops *ops;
    batch_slot *slots;
    int n_slots;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t read; /* batches numbered so far */
    bool at_end;  /* `read` is final */
    bool quit;    /* everyone is to stop */
    int opened, refused;
    bool lanes_quit; /* this set of lanes is to stop */
    lw_error lane_error;
} stream;

typedef struct lane {
    stream *stream;
    int index;
    pthread_t thread;
} lane;

/* The slot in `state` with the lowest number; NULL: none. */
static batch_slot *find(stream *s, enum batch_state state)
{
    batch_slot *found = NULL;
    for (int i = 0; i < s->n_slots; i++)
        if (s->slots[i].state == state && (!found || s->slots[i].number < found->number))
            found = &s->slots[i];
    return found;
}

static void set_state(stream *s, batch_slot *slot, enum batch_state state)
{
    pthread_mutex_lock(&s->lock);
    slot->state = state;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *run_reader(void *arg)
{
    stream *s = arg;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        batch_slot *slot = NULL;
        while (!s->quit && !(slot = find(s, FREE)))
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->quit) {
            pthread_mutex_unlock(&s->lock);
            return NULL;
        }
        slot->state = READING;
        slot->error = (lw_error){0};
        pthread_mutex_unlock(&s->lock);

        bool end = false;
        lw_status status = s->ops->read(s->ops->arg, slot->batch, &end, &slot->error);

        pthread_mutex_lock(&s->lock);
        slot->status = status;
        if (status != LW_OK) { /* the failure travels as a finished batch, so that it keeps its turn */
            slot->number = s->read++;
            slot->state = FINISHED;
        } else if (end) {
            slot->state = FREE;
        } else {
            slot->number = s->read++;
            slot->state = WAITING;
        }
        end = end || status != LW_OK;
        s->at_end = end;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        if (end)
            return NULL;
    }
}

static void *run_lane(void *arg)
{
    lane *self = arg;
    stream *s = self->stream;
    void *context = NULL;
    lw_error err = {0};
    lw_status status = s->ops->open_lane(s->ops->arg, self->index, &context, &err);
    pthread_mutex_lock(&s->lock);
    if (status != LW_OK) {
        if (s->refused++ == 0) {
            s->lane_error = err;
            s->lane_error.status = status;
        }
    } else {
        s->opened++;
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    while (status == LW_OK) {
        pthread_mutex_lock(&s->lock);
        batch_slot *slot = NULL;
        while (!s->quit && !s->lanes_quit && !(slot = find(s, WAITING)) && !s->at_end)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->quit || s->lanes_quit || !slot) {
            pthread_mutex_unlock(&s->lock);
            break;
        }
        slot->state = WORKING;
        pthread_mutex_unlock(&s->lock);
        slot->status = s->ops->work(s->ops->arg, context, slot->batch, &slot->error);
        set_state(s, slot, FINISHED);
    }
    if (status == LW_OK)
        s->ops->close_lane(s->ops->arg, context);
    return NULL;
}

static void quit(stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Starts n lanes and waits until each is open. After a failure none is left. */
static lw_status start_lanes(stream *s, lane **lanes, int n, lw_error *err)
{
    *lanes = calloc((size_t)n, sizeof **lanes);
    if (!*lanes)
        return lw_fail_memory(err, (size_t)n * sizeof **lanes);
    int started = 0;
    s->opened = s->refused = 0;
    s->lanes_quit = false;
    for (; started < n; started++) {
        (*lanes)[started] = (lane){.stream = s, .index = started};
        if (pthread_create(&(*lanes)[started].thread, NULL, run_lane, &(*lanes)[started]) != 0)
            break;
    }
    pthread_mutex_lock(&s->lock);
    while (s->opened + s->refused < started)
        pthread_cond_wait(&s->changed, &s->lock);
    bool good = started == n && s->refused == 0;
    s->lanes_quit = !good;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (good)
        return LW_OK;
    for (int i = 0; i < started; i++)
        pthread_join((*lanes)[i].thread, NULL);
    free(*lanes);
    *lanes = NULL;
    if (started < n)
        return lw_fail(err, LW_E_NOMEM, "a compute thread could not be started");
    return lw_fail(err, s->lane_error.status, "%s", s->lane_error.message);
}

/* The caller's part: batches in input order until the last one or a failure. */
static lw_status write_all(stream *s, const lw_host *host, lw_error *err)
{
    for (int64_t next = 0;; next++) {
        batch_slot *slot = NULL;
        pthread_mutex_lock(&s->lock);
        for (;;) {
            slot = find(s, FINISHED);
            if (slot && slot->number == next)
                break;
            slot = NULL;
            if (s->at_end && next == s->read)
                break;
            pthread_cond_wait(&s->changed, &s->lock);
        }
        pthread_mutex_unlock(&s->lock);
        if (!slot)
            return LW_OK;
        if (slot->status != LW_OK)
            return lw_fail(err, slot->status, "%s", slot->error.message);
        if (lw_stopped(host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
        LW_TRY(s->ops->write(s->ops->arg, slot->batch, err));
        set_state(s, slot, FREE);
    }
}

lw_status lw_stream_run(const lw_stream_ops *ops, void *const *batches, int n_batches, int n_lanes,
                        const lw_host *host, lw_error *err)
{
    stream s = {.ops = ops, .n_slots = n_batches};
    pthread_t reader;
    lane *lanes = NULL;
    lw_status status = LW_OK;
    s.slots = calloc((size_t)n_batches, sizeof *s.slots);
    if (!s.slots)
        return lw_fail_memory(err, (size_t)n_batches * sizeof *s.slots);
    for (int i = 0; i < n_batches; i++)
        s.slots[i].batch = batches[i];
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    if (pthread_create(&reader, NULL, run_reader, &s) != 0) {
        status = lw_fail(err, LW_E_NOMEM, "the reading thread could not be started");
        goto end;
    }
    for (;;) { /* reading goes on meanwhile: opening a device takes a while */
        lw_error reason = {0};
        status = start_lanes(&s, &lanes, n_lanes, &reason);
        if (status == LW_OK)
            break;
        n_lanes = ops->fall_back && !lw_stopped(host) ? ops->fall_back(ops->arg, &reason) : 0;
        if (n_lanes == 0) {
            lw_fail(err, status, "%s", reason.message);
            break;
        }
    }
    if (status == LW_OK)
        status = write_all(&s, host, err);
    quit(&s);
    for (int i = 0; lanes && i < n_lanes; i++)
        pthread_join(lanes[i].thread, NULL);
    pthread_join(reader, NULL);
    free(lanes);
end:
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
    free(s.slots);
    return status;
}
