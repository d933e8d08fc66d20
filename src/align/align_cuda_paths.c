/* align_cuda_paths.c - the host side of paths on the GPU: opening, closing, the calls, and batches one after
 * the other (align_cuda_paths.h says where their steps are). */
#include "align/align_cuda_paths.h"

#include <string.h>

#include "align/align_tuning.h"

lw_status lw_paths_open(lw_paths **out, const lw_paths_setup *setup, lw_error *err)
{
    lw_paths *p = (lw_paths *)calloc(1, sizeof *p);
    if (!p)
        return lw_fail_memory(err, sizeof *p);
    p->by = *setup;
    for (int i = 0; i < STAGES; i++) {
        cudaError_t code = cudaStreamCreateWithFlags(&p->stages[i].stream, cudaStreamNonBlocking);
        if (code != cudaSuccess) {
            lw_paths_close(p);
            return lw_cuda_fail(err, code, "creating a stream");
        }
    }
    *out = p;
    return LW_OK;
}

static void drop(stage *s)
{
    area *device[] = {&s->input, &s->work, &s->output}, *pinned[] = {&s->p_input, &s->p_output};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) {
        cudaFree(device[i]->at);
        device[i]->at = NULL, device[i]->bytes = 0;
    }
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        cudaFreeHost(pinned[i]->at);
        pinned[i]->at = NULL, pinned[i]->bytes = 0;
    }
}

void lw_paths_close(lw_paths *p)
{
    if (!p)
        return;
    for (int i = 0; i < STAGES; i++) {
        if (p->stages[i].stream) {
            cudaStreamSynchronize(p->stages[i].stream);
            cudaStreamDestroy(p->stages[i].stream);
        }
        drop(&p->stages[i]);
        free(p->stages[i].starts.at);
    }
    free(p->order.at), free(p->spare.at), free(p->key.at), free(p->excess.at), free(p->again.at);
    free(p);
}

/* Waits for all stages and gives their memory back. */
static lw_status finish_and_drop(lw_paths *p, lw_error *err)
{
    lw_status status = LW_OK;
    for (int i = 0; i < STAGES && status == LW_OK; i++) {
        status = lw_paths_finish(p, &p->stages[i], err);
        drop(&p->stages[i]);
    }
    return status;
}

/* Runs the jobs of `list` (NULL: all n), with bands as they are or to be chosen. */
lw_status lw_paths_run_list(lw_paths *p, const int32_t *list, int64_t n, bool choose, lw_error *err)
{
    lw_status status = LW_OK;
    LW_TRY(lw_paths_sort(p, list, n, choose, err));
    if (p->ops_per_job == 0)
        p->ops_per_job = 8;
    int64_t most = LW_PATH_BATCH_JOBS;
    int n_stages = STAGES, turn = 0;
    bool scarce = false; /* there was less memory than the budget */
    for (int64_t first = 0; first < n && status == LW_OK;) {
        if (lw_stopped(p->by.setup->host)) {
            status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
            break;
        }
        stage *s = &p->stages[turn % n_stages];
        status = lw_paths_finish(p, s, err);
        if (status != LW_OK)
            break;
        lw_error local;
        memset(&local, 0, sizeof local);
        p->out_of_memory = false;
        const int64_t share = p->by.budget / n_stages / 8 * 7, head = job_number(p, first);
        const bool tiles = ((const uint64_t *)p->key.at)[head] >> KEY_TILES;
        int32_t qlen, tlen, tile = 0;
        lengths_of(p, head, &qlen, &tlen);
        if (tiles)
            tile = lw_paths_tile_for(p, qlen, tlen, excess_of(p, head), share);
        if (tiles && tile == 0) {
            if (n_stages == 1) {
                status = lw_fail(
                    err, LW_E_DEVICE,
                    "aligning %d letters with %d takes more than %ld MB of GPU memory: raise the limit "
                    "(--gpu-mem), if there is one, or use --backend cpu",
                    qlen, tlen, (long)(share >> 20));
                break;
            }
            /* one batch at a time, with all the memory */
            status = finish_and_drop(p, err);
            n_stages = 1, turn = 0;
            continue;
        }
        lw_paths_cut(p, s, first, n, most, share, tile);
        status = lw_paths_prepare(p, s, &local);
        if (status == LW_OK)
            status = lw_paths_launch(p, s, &local);
        if (status == LW_E_DEVICE && p->out_of_memory && (s->n > 1 || n_stages > 1)) {
            /* fewer jobs at a time; in the end one stage alone */
            cudaStreamSynchronize(s->stream);
            status = finish_and_drop(p, err);
            scarce = true;
            if (s->n > 1)
                most = s->n / 2;
            else
                n_stages = 1, turn = 0;
            continue;
        }
        if (status != LW_OK) {
            lw_fail(err, status, "%s", local.message);
            break;
        }
        first += s->n;
        turn++;
        if (n_stages == 1 && !scarce) { /* the one that needed all the memory is on its way */
            status = finish_and_drop(p, err);
            n_stages = STAGES, turn = 0;
        }
    }
    for (int i = 0; i < STAGES; i++) {
        stage *s = &p->stages[(turn + i) % STAGES];
        if (status == LW_OK) {
            status = lw_paths_finish(p, s, err);
        } else if (s->busy) {
            cudaStreamSynchronize(s->stream);
            s->busy = false;
        }
    }
    return status;
}

static lw_status run_jobs(lw_paths *p, int64_t n, lw_error *err)
{
    LW_TRY(lw_paths_run_all(p, n, err));
    if (!p->by.setup->computed)
        return LW_OK;
    *p->by.setup->computed = p->cells > 0 ? p->computed / p->cells : 1;
    return LW_OK;
}

lw_status lw_paths_trace(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                         const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    p->queries = queries;
    p->targets = targets;
    p->tasks = tasks;
    p->ends_at = LW_END_CORNER;
    p->scores = false;
    p->hits = NULL;
    p->paths = paths;
    p->cigars = cigars;
    return n > 0 ? run_jobs(p, n, err) : LW_OK;
}

lw_status lw_paths_pairs(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                         lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    const lw_mode mode = p->by.setup->mode;
    p->queries = queries;
    p->targets = targets;
    p->tasks = NULL;
    p->ends_at = mode == LW_LOCAL ? LW_END_ANYWHERE : mode == LW_GLOBAL ? LW_END_CORNER : LW_END_LAST_COLUMN;
    p->scores = paths == NULL;
    p->hits = hits;
    p->paths = paths;
    p->cigars = cigars;
    return queries->n > 0 ? run_jobs(p, queries->n, err) : LW_OK;
}

lw_status lw_paths_ends(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                        lw_error *err)
{
    lw_cigars none = {NULL, 0, 0};
    const lw_status status = lw_paths_pairs(p, queries, targets, hits, NULL, &none, err);
    free(none.op);
    return status;
}
