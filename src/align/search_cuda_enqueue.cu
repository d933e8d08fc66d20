/* search_cuda_enqueue.cu - the steps of a unit on the device, none of which waits for the host. */
#include "align/search_cuda_context.h"

#include <stdlib.h>
#include <string.h>

static cudaError_t launch(const unit *u, cudaStream_t stream, int arithmetic, int form, int keeps,
                          bool gapless, bool border, int first_job, int n_jobs, int64_t items)
{
    const context *c = u->c;
    int64_t blocks = (items + LW_SW_WARPS - 1) / LW_SW_WARPS,
            most = 2 * c->multiprocessors - LW_SW_SPARE_BLOCKS;
    lw_sw_launch l = {arithmetic,
                      form,
                      keeps,
                      gapless,
                      border,
                      u->device.jobs + first_job,
                      n_jobs,
                      (int)(blocks < 1      ? 1
                            : blocks < most ? blocks
                                            : most),
                      c->n_classes + 1,
                      stream};
    if (keeps == LW_SW_FROM_ABOVE)
        return lw_sw_launch_bounds(&l);
    return arithmetic == LW_SW_HALF || arithmetic == LW_SW_S16 ? lw_sw_launch_narrow(&l)
                                                               : lw_sw_launch_wide(&l);
}

/* The first run: long subjects exactly on the second stream, the others on the first. Its last pass is the
 * earliest that lets the next unit's first run in: were the passes of two units mixed, both would end
 * together and leave nothing to run beside their second runs, which fill but a few multiprocessors. */
static lw_status first_run(const unit *u, lw_error *err)
{
    slot *s = u->s;
    const lw_sw_program *p = &u->first;
    const char *what = "scoring";
    int spread = p->form == LW_SW_TWO_QUERIES ? 2 : 1;
    if (u->list->n_long) {
        LW_CUDA_TRY(err, what, cudaEventRecord(s->fork, s->stream));
        LW_CUDA_TRY(err, what, cudaStreamWaitEvent(s->aside, s->fork, 0));
        for (int i = 0; i < p->n_passes; i++)
            LW_CUDA_TRY(err, what,
                        launch(u, s->aside, u->arithmetic, p->form, LW_SW_EXACT, u->pack->filter, p->border,
                               u->long_jobs + i, 1,
                               (int64_t)u->list->n_long * spread / (32 / p->passes[i].group) + 1));
    }
    if (u->list->n_rest) {
        LW_CUDA_TRY(err, what, cudaStreamWaitEvent(s->stream, u->c->turn, 0));
        for (int i = 0; i < p->n_passes; i++) {
            if (i == p->n_passes - 1)
                LW_CUDA_TRY(err, what, cudaEventRecord(u->c->turn, s->stream));
            LW_CUDA_TRY(err, what,
                        launch(u, s->stream, u->arithmetic, p->form, u->keeps, u->pack->filter, p->border,
                               u->rest_jobs + i, 1,
                               (int64_t)u->list->n_rest * spread / (32 / p->passes[i].group) + 1));
        }
    }
    if (u->list->n_long) {
        LW_CUDA_TRY(err, what, cudaEventRecord(s->join, s->aside));
        LW_CUDA_TRY(err, what, cudaStreamWaitEvent(s->stream, s->join, 0));
    }
    return LW_OK;
}

/* Chosen pairs of every query in one arithmetic: queries of one pass together, the others one after another,
 * since they share the border. */
static lw_status run_again(const unit *u, int level, const int *first_job, lw_error *err)
{
    const context *c = u->c;
    int n = u->pack->n, form = c->ladder[level] == LW_SW_S32 ? LW_SW_TWO_QUERIES : LW_SW_TWO_SUBJECTS;
    /* a filter lets many pairs through; bounds are met by few, and blocks without work cost time as well */
    int64_t items =
        u->pack->filter || u->keeps == LW_SW_EXACT ? 2 * (int64_t)u->k->n_pairs : LW_SW_AGAIN_ITEMS;
    int n_single = 0, first_single = 0;
    for (int i = n - 1; i >= 0; i--)
        if (u->again[i][level].n_passes == 1) {
            n_single++;
            first_single = first_job[i];
        }
    if (n_single) {
        int64_t share = (int64_t)4 * c->multiprocessors * LW_SW_WARPS / n_single + 1;
        LW_CUDA_TRY(err, "scoring again",
                    launch(u, u->s->stream, c->ladder[level], form, LW_SW_EXACT, false, false, first_single,
                           n_single, smaller(items, share)));
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; u->again[i][level].n_passes > 1 && k < u->again[i][level].n_passes; k++)
            LW_CUDA_TRY(err, "scoring again",
                        launch(u, u->s->stream, c->ladder[level], form, LW_SW_EXACT, false, true,
                               first_job[i] + k, 1, items));
    return LW_OK;
}

/* Room on the device, and in pinned memory for what travels there: those arrays lie in both alike. */
static lw_status need_room(unit *u, unit_arrays *counting, size_t results, unit_arrays *host, lw_error *err)
{
    slot *s = u->s;
    bool border = u->first.border;
    for (int i = 0; i < u->pack->n; i++)
        for (int l = 0; l < u->c->n_levels; l++)
            border = border || u->again[i][l].border;
    if (border)
        LW_TRY(need_device(&s->border, 2 * sizeof(uint2) * ((size_t)u->k->rows + 1), err));
    LW_TRY(need_device(&s->device, lw_sw_cut_arrays(u, NULL, counting), err));
    LW_TRY(need_pinned(&s->pinned, counting->travelling + results, err));
    lw_sw_cut_arrays(u, s->device.at, &u->device);
    ptrdiff_t shift = s->pinned.at - s->device.at;
    host->codes = (uint8_t *)((char *)u->device.codes + shift);
    host->lanes = (lw_sw_lane *)((char *)u->device.lanes + shift);
    host->jobs = (lw_sw_job *)((char *)u->device.jobs + shift);
    host->profiles = (lw_sw_profile *)((char *)u->device.profiles + shift);
    host->queries = (lw_sw_query *)((char *)u->device.queries + shift);
    return LW_OK;
}

static void write_queries(const unit *u, const unit_arrays *host, const lw_top *tops)
{
    const lw_seqs *queries = u->request->queries;
    const unit_arrays *device = &u->device;
    const size_t pairs = (size_t)u->k->n_pairs, stride = 2 * (pairs + (size_t)u->list->n_pieces);
    for (int i = 0; i < u->pack->n; i++) {
        int64_t query = u->pack->queries[i];
        memcpy(host->codes + u->codes_at[i], queries->codes + queries->start[query], (size_t)u->len[i]);
        lw_sw_query *q = &host->queries[i];
        q->scores = device->scores + stride * i;
        q->list = device->lists + pairs * i;
        q->exact = device->exact + 2 * pairs * i;
        for (int r = 0; r < u->n_rounds; r++)
            for (int l = 0; l < LW_SW_LEVELS; l++)
                q->chosen[r][l] = device->chosen + pairs * (size_t)((u->n_rounds * i + r) * LW_SW_LEVELS + l);
        q->histogram = device->histograms + LW_SW_BINS * i;
        q->counts = device->counts + LW_SW_COUNTS * i;
        q->min_score = tops[query].min_score;
        q->filter = u->pack->filter ? u->request->filter[query] : 0;
    }
}

static void write_first_run(unit *u, writer *w)
{
    int profiles = lw_sw_write_profiles(w, &u->first, u->arithmetic, u->pack->filter, false);
    lw_sw_job job = {};
    job.scores = u->device.scores;
    job.segments = u->list->segments;
    job.n_segments = u->list->counts + LONG_COUNT;
    u->long_jobs = lw_sw_write_jobs(w, &u->first, profiles, &job);
    if (u->keeps == LW_SW_FROM_ABOVE)
        profiles = lw_sw_write_profiles(w, &u->first, u->arithmetic, false, true);
    job.segments += u->list->n_long;
    job.n_segments = u->list->counts + REST_COUNT;
    u->rest_jobs = lw_sw_write_jobs(w, &u->first, profiles, &job);
    /* The last row of one segment is row 0 of the next. Both runs may be on the device at a time, and keep
     * other things there (G and E, or H and X): the others' border lies one row further, so that the long
     * ones' last row is their own. */
    for (int i = 0; u->first.border && i < u->first.n_passes; i++)
        w->host.jobs[u->rest_jobs + i].border += u->first.form == LW_SW_TWO_QUERIES ? 2 : 1;
}

/* Jobs of a level stand together, queries of one pass first. Both rounds share the profiles. */
static lw_status write_rounds(unit *u, writer *w, lw_error *err)
{
    const int n = u->pack->n;
    int *place = (int *)malloc((LW_SW_ROUNDS * LW_SW_LEVELS + 1) * (size_t)n * sizeof *place);
    if (!place)
        return lw_fail_memory(err, (LW_SW_ROUNDS * LW_SW_LEVELS + 1) * (size_t)n * sizeof *place);
    int *profiles = place + LW_SW_ROUNDS * LW_SW_LEVELS * n;
    for (int r = 0; r < LW_SW_ROUNDS; r++)
        for (int l = 0; l < LW_SW_LEVELS; l++, place += n)
            u->again_jobs[r][l] = place;
    for (int l = 0; l < u->c->n_levels; l++) {
        for (int i = 0; i < n; i++)
            profiles[i] = lw_sw_write_profiles(w, &u->again[i][l], u->c->ladder[l], false, false);
        for (int r = 0; r < u->n_rounds; r++)
            for (int single = 1; single >= 0; single--)
                for (int i = 0; i < n; i++) {
                    if ((u->again[i][l].n_passes == 1) != (single == 1))
                        continue;
                    const lw_sw_query *q = &w->host.queries[i];
                    lw_sw_job job = {};
                    job.scores = q->exact;
                    job.list = q->list;
                    job.chosen = q->chosen[r][l];
                    job.n_segments = q->counts + LW_SW_N_CHOSEN + r * LW_SW_LEVELS + l;
                    u->again_jobs[r][l][i] = lw_sw_write_jobs(w, &u->again[i][l], profiles[i], &job);
                }
    }
    return LW_OK;
}

/* From the values of the first run to hits. */
static lw_status pick(const unit *u, lw_error *err)
{
    const context *c = u->c;
    const char *what = "picking hits";
    cudaStream_t stream = u->s->stream;
    lw_sw_selection selection = {};
    selection.queries = u->device.queries;
    selection.n_queries = u->pack->n;
    selection.n_pairs = u->k->n_pairs;
    selection.n_subjects = (int32_t)u->k->n;
    selection.bound = u->keeps == LW_SW_FROM_BELOW ? lw_sw_first_run_bound(c) : 0;
    selection.above = u->keeps == LW_SW_FROM_ABOVE;
    selection.exact_pairs = u->keeps == LW_SW_EXACT ? u->k->n_pairs : u->list->long_pairs;
    memcpy(selection.limit, c->limit, sizeof c->limit);
    selection.clip = (int32_t)smaller(
        LW_SW_BINS - 1, c->ladder[0] == LW_SW_HALF || c->ladder[0] == LW_SW_REAL ? 2047 : INT32_MAX);
    selection.top_n = u->request->top_n;
    selection.filter = u->pack->filter;
    selection.hits = u->device.hits;
    selection.n_hits = u->device.n_hits;
    if (u->list->n_folds)
        LW_CUDA_TRY(err, what, lw_sw_fold_pieces(&selection, u->list->folds, u->list->n_folds, stream));
    for (int r = 0; r < u->n_rounds; r++) {
        selection.round = r;
        LW_CUDA_TRY(err, what, lw_sw_select(&selection, c->multiprocessors, stream));
        for (int l = 0; l < c->n_levels; l++) {
            if (l > 0)
                LW_CUDA_TRY(err, what, lw_sw_promote(&selection, l - 1, stream));
            LW_TRY(run_again(u, l, u->again_jobs[r][l], err));
        }
    }
    LW_CUDA_TRY(err, what, lw_sw_take_hits(&selection, stream));
    return LW_OK;
}

lw_status lw_sw_enqueue(unit *u, const lw_top *tops, lw_error *err)
{
    context *c = u->c;
    slot *s = u->s;
    const char *what = "starting a search";
    const size_t results = (LW_SW_COUNTS * (size_t)u->pack->n + 1) * sizeof(int32_t);
    unit_arrays counting = {};
    writer w = {u, {}, 0, 0, 0};
    LW_TRY(lw_sw_plan_unit(u, err));
    LW_TRY(need_room(u, &counting, results, &w.host, err));
    write_queries(u, &w.host, tops);
    write_first_run(u, &w);
    LW_TRY(write_rounds(u, &w, err));
    LW_CUDA_TRY(err, what, cudaStreamWaitEvent(s->stream, u->p->ready, 0));
    LW_CUDA_TRY(err, what, cudaEventRecord(s->begin, s->stream));
    LW_CUDA_TRY(
        err, what,
        cudaMemcpyAsync(s->device.at, s->pinned.at, counting.travelling, cudaMemcpyHostToDevice, s->stream));
    LW_CUDA_TRY(err, what,
                cudaMemsetAsync(s->device.at + counting.zeroed_from, 0,
                                counting.zeroed_to - counting.zeroed_from, s->stream));
    LW_CUDA_TRY(err, what,
                lw_sw_make_profiles(u->device.profiles, w.n_profiles, u->device.codes, c->device_scores,
                                    c->n_classes + 1, s->stream));
    LW_TRY(first_run(u, err));
    LW_TRY(pick(u, err));
    LW_CUDA_TRY(err, what,
                cudaMemcpyAsync(s->pinned.at + counting.travelling, u->device.counts, results,
                                cudaMemcpyDeviceToHost, s->stream));
    LW_CUDA_TRY(err, what, cudaEventRecord(s->end, s->stream));
    LW_CUDA_TRY(err, what, cudaEventRecord(u->p->used[s - c->slots], s->stream));
    s->host_counts = (const int32_t *)(s->pinned.at + counting.travelling);
    s->device_hits = u->device.hits;
    s->pack = u->pack;
    s->chunk = u->k;
    s->busy = true;
    return LW_OK;
}
