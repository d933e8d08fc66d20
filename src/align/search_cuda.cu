/* search_cuda.cu - the database search on a CUDA device: opening, closing, and one call from its queries to
 * their hits. search_cuda_context.h names the files of the steps in between.
 *
 * The database is cut into chunks that fit the device; chunks stay there when all fit, else two places take
 * turns and the next chunk travels while this one is searched. Queries are grouped into packs; a pack against
 * a chunk is a unit of work, of which LW_SW_SLOTS are in flight. A unit runs without waiting for the host:
 *
 * - First run: all pairs of subjects, in the first arithmetic of the policy's ladder. With DPX it gives
 * bounds of the scores, from above (search_bounds.cuh) or from below (search_kernels.cuh), but scores where
 * long subjects are concerned.
 * - Rounds: pairs that may be among the top_n best are chosen and scored exactly; what a narrow type cannot
 *   hold, again in the next arithmetic of the ladder. Bounds from above take two rounds: the scores of the
 *   most promising pairs set the bar for the others.
 * - Hits: the best top_n of the unit, which the host merges with those of the other chunks. */
#include "align/search_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "align/search_cuda_context.h"

extern "C" void lw_search_cuda_close(void *opened)
{
    context *c = (context *)opened;
    if (!c)
        return;
    cudaSetDevice(c->setup.device);
    cudaDeviceSynchronize();
    for (int i = 0; c->places && i < c->n_places; i++) {
        place *p = &c->places[i];
        for (int l = 0; l < MAX_LISTS; l++)
            cudaFree(p->lists[l].memory.at);
        cudaFree(p->memory.at);
        free(p->host_first_row);
        if (p->ready)
            cudaEventDestroy(p->ready);
        for (int s = 0; s < LW_SW_SLOTS; s++)
            if (p->used[s])
                cudaEventDestroy(p->used[s]);
    }
    for (int i = 0; i < LW_SW_SLOTS; i++) {
        slot *s = &c->slots[i];
        cudaFree(s->device.at), cudaFree(s->border.at);
        cudaFreeHost(s->pinned.at), cudaFreeHost(s->hits.at);
        cudaEvent_t events[] = {s->begin, s->fork, s->join, s->end};
        for (cudaEvent_t e : events)
            if (e)
                cudaEventDestroy(e);
        if (s->stream)
            cudaStreamDestroy(s->stream);
        if (s->aside)
            cudaStreamDestroy(s->aside);
    }
    for (int i = 0; i < 2; i++) {
        cudaFreeHost(c->staging[i].at);
        if (c->staged[i])
            cudaEventDestroy(c->staged[i]);
    }
    if (c->origin)
        cudaEventDestroy(c->origin);
    if (c->turn)
        cudaEventDestroy(c->turn);
    if (c->upload)
        cudaStreamDestroy(c->upload);
    cudaFree(c->raw.at), cudaFree(c->tables.at);
    free(c->places), free(c->chunks);
    free(c);
}

static lw_status open_streams(context *c, lw_error *err)
{
    const char *what = "preparing streams";
    LW_CUDA_TRY(err, what, cudaStreamCreateWithFlags(&c->upload, cudaStreamNonBlocking));
    LW_CUDA_TRY(err, what, cudaEventCreate(&c->origin));
    LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&c->turn, cudaEventDisableTiming));
    int least, greatest;
    LW_CUDA_TRY(err, what, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int i = 0; i < 2; i++)
        LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&c->staged[i], cudaEventDisableTiming));
    for (int i = 0; i < LW_SW_SLOTS; i++) {
        slot *s = &c->slots[i];
        LW_CUDA_TRY(err, what, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
        LW_CUDA_TRY(err, what, cudaStreamCreateWithPriority(&s->aside, cudaStreamNonBlocking, greatest));
        LW_CUDA_TRY(err, what, cudaEventCreate(&s->begin));
        LW_CUDA_TRY(err, what, cudaEventCreate(&s->end));
        LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&s->fork, cudaEventDisableTiming));
        LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&s->join, cudaEventDisableTiming));
    }
    for (int i = 0; i < c->n_places; i++) {
        place *p = &c->places[i];
        p->chunk = -1;
        LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&p->ready, cudaEventDisableTiming));
        for (int s = 0; s < LW_SW_SLOTS; s++)
            LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&p->used[s], cudaEventDisableTiming));
    }
    return LW_OK;
}

static lw_status open_context(context *c, int policy, lw_error *err)
{
    int device = c->setup.device;
    LW_CUDA_TRY(err, "choosing the device", cudaSetDevice(device));
    LW_CUDA_TRY(err, "asking the device",
                cudaDeviceGetAttribute(&c->multiprocessors, cudaDevAttrMultiProcessorCount, device));
    LW_CUDA_TRY(err, "asking the device",
                cudaDeviceGetAttribute(&c->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    size_t free_bytes, total_bytes;
    LW_CUDA_TRY(err, "asking for free memory", cudaMemGetInfo(&free_bytes, &total_bytes));
    c->budget = (int64_t)free_bytes - LW_SW_RESERVE;
    if (c->setup.device_bytes > 0 && c->setup.device_bytes < c->budget)
        c->budget = c->setup.device_bytes;
    const lw_scoring *sc = c->setup.scoring;
    c->extend = sc->gap_extend;
    c->open_extend = sc->gap_open + sc->gap_extend;
    lw_sw_make_classes(c);
    lw_sw_make_ladder(c, policy);
    LW_TRY(lw_sw_make_chunks(c, err));
    int64_t bytes = 0;
    for (int64_t i = 0; i < c->n_chunks; i++)
        bytes += (int64_t)lw_sw_place_bytes(&c->chunks[i]);
    c->resident = bytes <= c->budget / 3;
    c->n_places = c->resident || c->n_chunks < 2 ? (int)c->n_chunks : 2;
    c->places = (place *)calloc((size_t)c->n_places + 1, sizeof *c->places);
    if (!c->places)
        return lw_fail_memory(err, (size_t)c->n_places * sizeof *c->places);
    LW_TRY(open_streams(c, err));
    cutter count = {};
    cut(&count, (uint8_t *)0, 256);
    cut(&count, (int16_t *)0, sizeof c->class_scores / 2);
    LW_TRY(need_device(&c->tables, count.used, err));
    cutter tables = {c->tables.at, 0};
    c->device_class_of = cut(&tables, (uint8_t *)0, 256);
    c->device_scores = cut(&tables, (int16_t *)0, sizeof c->class_scores / 2);
    LW_CUDA_TRY(err, "copying scores",
                cudaMemcpyAsync(c->device_class_of, c->class_of, 256, cudaMemcpyHostToDevice, c->upload));
    LW_CUDA_TRY(err, "copying scores",
                cudaMemcpyAsync(c->device_scores, c->class_scores, sizeof c->class_scores,
                                cudaMemcpyHostToDevice, c->upload));
    /* the slots' streams wait neither for this one nor for the default one */
    LW_CUDA_TRY(err, "copying scores", cudaStreamSynchronize(c->upload));
    return LW_OK;
}

extern "C" lw_status lw_search_cuda_open(const lw_search_backend *self, void **out,
                                         const lw_search_setup *setup, lw_error *err)
{
    context *c = (context *)calloc(1, sizeof *c);
    if (!c)
        return lw_fail_memory(err, sizeof *c);
    c->setup = *setup;
    lw_status status = open_context(c, self->base.policy, err);
    if (status != LW_OK) {
        lw_search_cuda_close(c);
        return status;
    }
    *out = c;
    return LW_OK;
}

/* Waits for the unit of a slot and merges its hits. */
static lw_status collect(context *c, slot *s, const lw_search_request *request, lw_top *tops, lw_error *err)
{
    if (!s->busy)
        return LW_OK;
    s->busy = false;
    const char *what = "searching";
    LW_CUDA_TRY(err, what, cudaEventSynchronize(s->end));
    int n = s->pack->n;
    int32_t n_hits = s->host_counts[LW_SW_COUNTS * n];
    if (n_hits > 0) {
        LW_TRY(need_pinned(&s->hits, (size_t)n_hits * sizeof(lw_search_hit), err));
        LW_CUDA_TRY(err, what,
                    cudaMemcpyAsync(s->hits.at, s->device_hits, (size_t)n_hits * sizeof(lw_search_hit),
                                    cudaMemcpyDeviceToHost, s->stream));
        LW_CUDA_TRY(err, what, cudaStreamSynchronize(s->stream));
    }
    double cells = 0;
    for (int i = 0; i < n; i++) {
        int64_t query = s->pack->queries[i];
        const int32_t *counts = s->host_counts + LW_SW_COUNTS * i;
        const lw_search_hit *hits = (const lw_search_hit *)s->hits.at + counts[LW_SW_FIRST_HIT];
        for (int32_t k = 0; k < counts[LW_SW_N_HITS]; k++) {
            lw_search_hit hit = hits[k];
            hit.subject += (int32_t)s->chunk->first;
            LW_TRY(lw_top_add(&tops[query], hit, request->top_n, c->setup.database->order, err));
        }
        cells += (double)request->queries->len[query] * (double)s->chunk->letters;
        if (request->counts) {
            if (s->pack->filter)
                request->counts->filtered += s->chunk->n - counts[LW_SW_N_PASSED];
            request->counts->rescued += counts[LW_SW_N_RESCUED];
        }
    }
    if (request->counts) {
        float begin, end;
        LW_CUDA_TRY(err, what, cudaEventElapsedTime(&begin, c->origin, s->begin));
        LW_CUDA_TRY(err, what, cudaEventElapsedTime(&end, c->origin, s->end));
        double from = begin > c->busy_until ? begin : c->busy_until;
        if (end > from) {
            request->counts->busy_seconds += 1e-3 * (end - from);
            c->busy_until = end;
        }
    }
    if (request->advance)
        request->advance(request->user, cells);
    return LW_OK;
}

extern "C" lw_status lw_search_cuda_search(void *opened, const lw_search_request *request,
                                           const lw_search_result *out, lw_error *err)
{
    context *c = (context *)opened;
    const lw_database_view *db = c->setup.database;
    const lw_seqs *queries = request->queries;
    lw_status status = LW_OK;
    lw_top *tops = (lw_top *)calloc((size_t)queries->n + 1, sizeof *tops);
    packs p = {};
    int turn = 0;
    int64_t most = LW_SW_PACK_QUERIES;
    if (!tops)
        return lw_fail_memory(err, (size_t)queries->n * sizeof *tops);
    for (int64_t i = 0; i < queries->n; i++) {
        tops[i].min_score = request->min_score[i];
        if (request->counts) {
            request->counts->pairs += db->n;
            request->counts->cells += (int64_t)queries->len[i] * db->letters;
            if (queries->len[i] == 0 && request->filter && request->filter[i] > 0)
                request->counts->filtered += db->n;
        }
    }
    LW_CUDA_TRY_END(err, "choosing the device", cudaSetDevice(c->setup.device));
    LW_CUDA_TRY_END(err, "starting the clock", cudaEventRecord(c->origin, c->slots[0].stream));
    c->busy_until = 0;
    for (int64_t i = 0; i < c->n_chunks; i++)
        most = smaller(most, c->budget / 3 / LW_SW_SLOTS / lw_sw_query_bytes(&c->chunks[i]));
    LW_TRY_END(lw_sw_make_packs(c, request, most > 0 ? (int)most : 1, &p, err));
    for (int64_t k = 0; k < c->n_chunks && p.n; k++) {
        place *at;
        LW_TRY_END(lw_sw_fetch_chunk(c, k, &at, err));
        for (int64_t i = 0; i < p.n; i++) {
            slot *s = &c->slots[turn];
            turn = (turn + 1) % LW_SW_SLOTS;
            LW_TRY_END(collect(c, s, request, tops, err));
            if (lw_stopped(c->setup.host)) {
                status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
                goto end;
            }
            unit u = {};
            u.c = c, u.s = s, u.p = at, u.k = &c->chunks[k], u.pack = &p.pack[i], u.request = request;
            status = lw_sw_enqueue(&u, tops, err);
            lw_sw_free_unit(&u);
            if (status != LW_OK)
                goto end;
        }
    }
    for (int i = 0; i < LW_SW_SLOTS; i++, turn = (turn + 1) % LW_SW_SLOTS)
        LW_TRY_END(collect(c, &c->slots[turn], request, tops, err));
    for (int64_t i = 0; i < queries->n; i++) {
        int32_t kept = lw_top_sort(tops[i].hits, tops[i].n, request->top_n, db->order);
        if (kept > 0)
            memcpy(out->hits + i * out->stride, tops[i].hits, (size_t)kept * sizeof *out->hits);
        out->n_hits[i] = kept;
    }
end:
    if (status != LW_OK) { /* leave nothing in flight that borrows from the caller */
        cudaDeviceSynchronize();
        for (int i = 0; i < LW_SW_SLOTS; i++)
            c->slots[i].busy = false;
    }
    for (int64_t i = 0; i < queries->n; i++)
        free(tops[i].hits);
    free(tops);
    lw_sw_free_packs(&p);
    return status;
}
