/* align_cpu_ends.c - pair_ends() of the CPU backend: scores of pairs and where they end. */
#include "align/align_cpu.h"

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

static void look_for_ends(void *arg, const lw_cpu_engine *e, int64_t first, int64_t last)
{
    lw_cpu_end *ends = arg;
    const int width = e->range.width;
    const size_t vector = (size_t)e->lanes << width;
    const bool global = e->job.mode == LW_GLOBAL;
    for (int lane = 0; lane < (e->job.wave ? e->lanes : e->n_items); lane++) {
        const int k = e->job.wave ? 0 : lane;
        int64_t n = e->items[k].n, shift = e->job.wave ? lane : 0;
        int64_t from = first > shift ? first : shift, to = last < n + shift ? last : n + shift;
        if (global && from < n - 1 + shift)
            from = n - 1 + shift;
        for (int64_t t = from; t < to; t++) {
            uint32_t raw = lw_cpu_get(e->job.best + (size_t)(t - first) * vector, width, lane);
            if (raw < ends[k].raw || raw == 0)
                continue;
            lw_cpu_end found = {.raw = raw,
                                .column = t - shift,
                                .row =
                                    lw_cpu_get(e->job.best_row + (size_t)(t - first) * vector, width, lane) +
                                    shift * e->job.rows};
            if (lw_cpu_better(&found, &ends[k]))
                ends[k] = found;
        }
    }
}

typedef struct ends_call {
    lw_cpu *c;
    const lw_seqs *queries, *targets;
    const int64_t *order;
    int64_t chunk;
    lw_hit *hits;
} ends_call;

static void keep_better_end(const lw_align_setup *setup, lw_hit *hit, int32_t i, int64_t score, int64_t tend,
                            int64_t qend, int reverse)
{
    if (score < setup->min_score || (setup->mode == LW_LOCAL && score < 1))
        return;
    if (hit->target < 0 || score > hit->score)
        *hit = (lw_hit){.score = (int32_t)score,
                        .target = i,
                        .tend = (int32_t)tend,
                        .qend = (int32_t)qend,
                        .reverse = (uint8_t)reverse};
}

static lw_status ends_task(void *arg, int64_t t, int w, lw_error *err)
{
    const ends_call *call = arg;
    lw_cpu *c = call->c;
    const lw_align_setup *setup = &c->setup;
    const lw_scoring *sc = setup->scoring;
    lw_cpu_worker *k = &c->workers[w];
    if (lw_stopped(setup->host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    int64_t first = t * call->chunk,
            last = first + call->chunk < call->queries->n ? first + call->chunk : call->queries->n;
    size_t letters = 0;
    for (int64_t o = first; o < last; o++)
        letters += (size_t)call->queries->len[call->order[o]];
    LW_TRY(lw_cpu_need(&k->codes, letters, err));
    LW_TRY(lw_cpu_need(&k->items, (size_t)(last - first) * sizeof(lw_cpu_item), err));
    for (int reverse = 0; reverse < 2; reverse++) {
        if (!(setup->strands & (reverse ? LW_REVERSE : LW_FORWARD)))
            continue;
        lw_cpu_item *items = (lw_cpu_item *)k->items.p;
        uint8_t *codes = k->codes.p;
        int64_t n = 0;
        for (int64_t o = first; o < last; o++) {
            int64_t i = call->order[o];
            int32_t rows = call->queries->len[i], columns = call->targets->len[i];
            if (!reverse || !(setup->strands & LW_FORWARD))
                call->hits[i] = (lw_hit){.target = -1};
            if (rows == 0 || columns == 0) {
                if (setup->mode == LW_GLOBAL)
                    keep_better_end(setup, &call->hits[i], (int32_t)i,
                                    lw_cpu_gap_score(sc, rows + (int64_t)columns), columns, rows, reverse);
                else if (setup->mode == LW_SEMIGLOBAL)
                    keep_better_end(setup, &call->hits[i], (int32_t)i, lw_cpu_gap_score(sc, rows), 0, rows,
                                    reverse);
                continue;
            }
            lw_cpu_take_strand(codes, call->queries->codes + call->queries->start[i], rows, reverse, sc);
            items[n++] = (lw_cpu_item){.query = codes,
                                       .target = call->targets->codes + call->targets->start[i],
                                       .m = rows,
                                       .n = columns,
                                       .tag = (int32_t)i};
            codes += rows;
        }
        for (int64_t at = 0; at < n;) {
            int take = lw_cpu_batch_of(c, items + at, n - at);
            lw_cpu_end ends[LW_CPU_MAX_LANES];
            memset(ends, 0, sizeof ends);
            LW_TRY(lw_cpu_engine_load(c, &k->engine, items + at, take, lw_cpu_is_long(&items[at]), err));
            lw_cpu_engine_run(c, &k->engine, 0, k->engine.steps, false, look_for_ends, ends);
            for (int x = 0; x < take; x++) {
                const lw_cpu_item *it = &items[at + x];
                lw_hit *hit = &call->hits[it->tag];
                if (setup->mode == LW_SEMIGLOBAL) /* the cell before the first column */
                    keep_better_end(setup, hit, it->tag, lw_cpu_gap_score(sc, it->m), 0, it->m, reverse);
                if (ends[x].raw)
                    keep_better_end(setup, hit, it->tag, (int64_t)ends[x].raw - k->engine.range.zero,
                                    ends[x].column + 1, ends[x].row + 1, reverse);
            }
            at += take;
        }
    }
    return LW_OK;
}

lw_status lw_cpu_pair_ends(void *context, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                           lw_error *err)
{
    lw_cpu *c = context;
    int64_t n = queries->n;
    if (n == 0)
        return LW_OK;
    lw_cpu_sized *sizes = malloc((size_t)n * sizeof *sizes);
    int64_t *order = malloc((size_t)n * sizeof *order);
    if (!sizes || !order) {
        free(sizes), free(order);
        return lw_fail_memory(err, (size_t)n * sizeof *sizes);
    }
    for (int64_t i = 0; i < n; i++)
        sizes[i] = (lw_cpu_sized){.size = (int64_t)queries->len[i] * targets->len[i], .index = i};
    qsort(sizes, (size_t)n, sizeof *sizes, lw_cpu_compare_sizes);
    for (int64_t i = 0; i < n; i++)
        order[i] = sizes[i].index;
    int64_t longest = sizes[0].size;
    free(sizes);
    ends_call call = {.c = c,
                      .queries = queries,
                      .targets = targets,
                      .order = order,
                      .chunk = longest > LW_CPU_WAVE_CELLS ? 1 : lw_cpu_chunk_of(c, n),
                      .hits = hits};
    lw_status status = lw_pool_for(c->setup.pool, (n + call.chunk - 1) / call.chunk, ends_task, &call, err);
    free(order);
    return status;
}
