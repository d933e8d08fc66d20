/* realign_batch.c - a batch of records on a compute lane. */
#include "align/realign.h"

#include <stdlib.h>
#include <string.h>

#include "align/realign_tuning.h"
#include "common/fail.h"

bam1_t *lw_realign_next(lw_realign_batch *b)
{
    if (b->n == b->capacity) {
        int64_t capacity = 2 * b->capacity + 1024;
        bam1_t **record = realloc(b->record, (size_t)capacity * sizeof *record);
        if (!record)
            return NULL;
        b->record = record;
        lw_realign_item *item = realloc(b->item, (size_t)capacity * sizeof *item);
        if (!item)
            return NULL;
        b->item = item;
        memset(record + b->capacity, 0, (size_t)(capacity - b->capacity) * sizeof *record);
        b->capacity = capacity;
    }
    if (!b->record[b->n])
        b->record[b->n] = bam_init1();
    return b->record[b->n];
}

void lw_realign_take(lw_realign_batch *b)
{
    b->item[b->n].letters = b->letters;
    b->letters += b->record[b->n]->core.l_qseq;
    b->n++;
}

void lw_realign_batch_free(lw_realign_batch *b)
{
    for (int64_t i = 0; i < b->capacity; i++)
        if (b->record[i])
            bam_destroy1(b->record[i]);
    free(b->record);
    free(b->item);
    free(b->codes);
    *b = (lw_realign_batch){0};
}

struct lw_realign_lane {
    const lw_realign_run *run;
    lw_realign_solver solver;
    lw_realign_task *task;
    int64_t *start; /* of each task's letters within the batch's codes */
    int32_t *len;
    int64_t task_capacity;
    lw_cigars cigars;
    lw_realign_scratch *scratch; /* one for each of the pool's threads */
    lw_realign_counts *counts;
};

lw_status lw_realign_lane_open(lw_realign_lane **out, const lw_realign_run *run,
                               const lw_align_backend *backend, int device, lw_error *err)
{
    size_t threads = (size_t)lw_pool_threads(run->pool);
    lw_realign_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return lw_fail_memory(err, sizeof *lane);
    lane->run = run;
    lane->scratch = calloc(threads, sizeof *lane->scratch);
    lane->counts = calloc(threads, sizeof *lane->counts);
    lane->solver = (lw_realign_solver){.backend = backend, .scoring = &run->scoring, .pad = run->pad};
    lw_align_setup setup = {.scoring = &run->scoring,
                            .mode = LW_SEMIGLOBAL,
                            .strands = LW_FORWARD,
                            .min_score = INT32_MIN,
                            .n_hits = 1,
                            .pool = run->pool,
                            .device = device,
                            .device_bytes = run->device_bytes,
                            .host = run->host};
    lw_status status = lane->scratch && lane->counts
                           ? backend->open(backend, &lane->solver.context, &setup, err)
                           : lw_fail_memory(err, threads * sizeof *lane->counts);
    if (status != LW_OK) {
        lw_realign_lane_close(lane);
        return status;
    }
    *out = lane;
    return LW_OK;
}

void lw_realign_lane_close(lw_realign_lane *lane)
{
    if (!lane)
        return;
    if (lane->solver.context)
        lane->solver.backend->close(lane->solver.context);
    lw_realign_solver_free(&lane->solver);
    for (int t = 0; lane->scratch && t < lw_pool_threads(lane->run->pool); t++)
        lw_realign_scratch_free(&lane->scratch[t]);
    free(lane->scratch);
    free(lane->counts);
    free(lane->task);
    free(lane->start);
    free(lane->len);
    free(lane->cigars.op);
    free(lane);
}

typedef struct batch_job {
    lw_realign_lane *lane;
    lw_realign_batch *batch;
} batch_job;

static int64_t chunks_of(const lw_realign_batch *b)
{
    return (b->n + LW_REALIGN_CHUNK - 1) / LW_REALIGN_CHUNK;
}

static int64_t chunk_end(const lw_realign_batch *b, int64_t chunk)
{
    int64_t end = (chunk + 1) * LW_REALIGN_CHUNK;
    return end < b->n ? end : b->n;
}

static lw_status begin_chunk(void *arg, int64_t chunk, int worker, lw_error *err)
{
    (void)worker, (void)err;
    batch_job *job = arg;
    lw_realign_batch *b = job->batch;
    for (int64_t i = chunk * LW_REALIGN_CHUNK; i < chunk_end(b, chunk); i++)
        lw_realign_begin(job->lane->run, b->record[i], &b->item[i], b->codes + b->item[i].letters);
    return LW_OK;
}

static lw_status finish_chunk(void *arg, int64_t chunk, int worker, lw_error *err)
{
    batch_job *job = arg;
    lw_realign_lane *lane = job->lane;
    lw_realign_batch *b = job->batch;
    for (int64_t i = chunk * LW_REALIGN_CHUNK; i < chunk_end(b, chunk); i++) {
        lw_realign_item *item = &b->item[i];
        const lw_realign_task *task = item->task >= 0 ? &lane->task[item->task] : NULL;
        LW_TRY(lw_realign_finish(lane->run, b->record[i], item, task,
                                 task ? lane->cigars.op + task->cigar : NULL, b->codes + item->letters,
                                 &lane->scratch[worker], &lane->counts[worker], err));
    }
    return LW_OK;
}

static lw_status list_tasks(lw_realign_lane *lane, lw_realign_batch *b, int64_t *n, lw_error *err)
{
    const lw_realign_run *run = lane->run;
    if (b->n > lane->task_capacity) {
        free(lane->task);
        free(lane->start);
        free(lane->len);
        lane->task_capacity = 0;
        lane->task = malloc((size_t)b->n * sizeof *lane->task);
        lane->start = malloc((size_t)b->n * sizeof *lane->start);
        lane->len = malloc((size_t)b->n * sizeof *lane->len);
        if (!lane->task || !lane->start || !lane->len)
            return lw_fail_memory(err, (size_t)b->n * sizeof *lane->task);
        lane->task_capacity = b->n;
    }
    *n = 0;
    for (int64_t i = 0; i < b->n; i++) {
        lw_realign_item *item = &b->item[i];
        if (item->kind != LW_REALIGN || item->proved)
            continue;
        lane->start[*n] = item->letters + item->clipped;
        lane->len[*n] = item->query_len;
        lane->task[*n] = (lw_realign_task){.read = *n,
                                           .target = run->ref_of[b->record[i]->core.tid],
                                           .start = item->old_pos,
                                           .end = item->old_end,
                                           .present = item->present};
        item->task = (*n)++;
    }
    return LW_OK;
}

lw_status lw_realign_lane_work(lw_realign_lane *lane, lw_realign_batch *b, lw_error *err)
{
    const lw_realign_run *run = lane->run;
    if (b->letters > b->codes_capacity) {
        free(b->codes);
        b->codes_capacity = 0;
        b->codes = malloc((size_t)b->letters);
        if (!b->codes)
            return lw_fail_memory(err, (size_t)b->letters);
        b->codes_capacity = b->letters;
    }
    batch_job job = {.lane = lane, .batch = b};
    int64_t n = 0;
    LW_TRY(lw_pool_for(run->pool, chunks_of(b), begin_chunk, &job, err));
    LW_TRY(list_tasks(lane, b, &n, err));
    lane->cigars.n = 0;
    lane->solver.cells = 0;
    lw_seqs reads = {.n = n, .codes = b->codes, .start = lane->start, .len = lane->len};
    if (n > 0)
        LW_TRY(
            lw_realign_solve(&lane->solver, &reads, &run->ref_codes.seqs, n, lane->task, &lane->cigars, err));
    int threads = lw_pool_threads(run->pool);
    memset(lane->counts, 0, (size_t)threads * sizeof *lane->counts);
    LW_TRY(lw_pool_for(run->pool, chunks_of(b), finish_chunk, &job, err));
    b->cells = lane->solver.cells;
    b->counts = (lw_realign_counts){0};
    for (int t = 0; t < threads; t++)
        lw_realign_counts_add(&b->counts, &lane->counts[t]);
    return LW_OK;
}

void lw_realign_counts_add(lw_realign_counts *sum, const lw_realign_counts *more)
{
    for (int k = 0; k < LW_REALIGN_KINDS; k++)
        sum->kind[k] += more->kind[k];
    sum->proved += more->proved;
    sum->changed += more->changed;
    sum->moved += more->moved;
    sum->improved += more->improved;
    sum->widened += more->widened;
    sum->at_edge += more->at_edge;
    sum->gain += more->gain;
    sum->highest_gain = more->highest_gain > sum->highest_gain ? more->highest_gain : sum->highest_gain;
    sum->letters += more->letters;
}
