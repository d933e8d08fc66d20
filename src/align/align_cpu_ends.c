/* align_cpu_ends.c - pair_ends() of the CPU backend: scores of pairs and where they end. */
#include "align/align_cpu.h"

#include <stdlib.h>
#include <string.h>

#include "align/align_band.h"
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
        if (e->job.banded) {
            shift = e->band.strips - 1;
            if (lane != shift % e->lanes)
                continue;
        }
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

/* Guesses the excess that a pair needs: its first part in a narrow band has a score, and what that lacks of
 * the best possible one, the rest is expected to lack as well, and some more. -1: a narrow band does not pay.
 */
static lw_status guess_excess(const lw_cpu *c, lw_cpu_engine *e, const lw_cpu_item *it, int32_t *excess,
                              lw_error *err)
{
    const lw_scoring *sc = c->setup.scoring;
    const int64_t shorter = it->m < it->n ? it->m : it->n, apart = (int64_t)it->m + it->n - 2 * shorter;
    lw_cpu_band band;
    *excess = -1;
    if (!lw_cpu_plan_band(c, it, (int32_t)(shorter / LW_CPU_SCOUT_SHARE), &band))
        return LW_OK;
    LW_TRY(lw_cpu_engine_load_band(c, e, it, &band, err));
    const int64_t part = (LW_CPU_SCOUT_LETTERS + it->m / LW_CPU_SCOUT_PART) / band.rows + 1; /* strips */
    if (part >= band.strips)
        return LW_OK;
    lw_cpu_engine_run(c, e, 0, lw_cpu_band_begins(e, part), false, NULL, NULL);
    uint32_t highest = 0;
    for (int64_t k = 0; k < (int64_t)e->job.rows * e->lanes; k++) {
        const uint32_t h = lw_cpu_get(e->job.state, e->range.width, k);
        highest = h > highest && k % e->lanes < part ? h : highest;
    }
    const int64_t best = sc->max_score > 0 ? sc->max_score : 0;
    int64_t lost = best * part * band.rows - ((int64_t)highest - e->range.zero);
    lost = (lost > 0 ? lost : 0) * shorter / (part * band.rows);
    const int64_t score = best * shorter - lost - lost / LW_CPU_SCOUT_MARGIN -
                          (c->setup.mode == LW_GLOBAL ? lw_gap_cost(sc, (int32_t)apart) : 0);
    *excess = lw_band_excess(sc, c->setup.mode, it->m, it->n, score);
    return LW_OK;
}

/* Looks for an end within a band, then in a wider one if the score found asks for that. *proved: it is that
 * of the whole matrix. */
static lw_status ends_in_band(const lw_cpu *c, lw_cpu_engine *e, const lw_cpu_item *it, lw_cpu_end *end,
                              bool *proved, lw_error *err)
{
    const lw_scoring *sc = c->setup.scoring;
    int32_t excess = c->first_excess;
    *proved = false;
    if (c->setup.mode == LW_LOCAL || (int64_t)it->m * it->n < c->band_cells)
        return LW_OK;
    if (excess < 0)
        LW_TRY(guess_excess(c, e, it, &excess, err));
    for (lw_cpu_band band; !*proved && excess >= 0 && lw_cpu_plan_band(c, it, excess, &band);) {
        *end = (lw_cpu_end){0};
        LW_TRY(lw_cpu_engine_load_band(c, e, it, &band, err));
        const int64_t look =
            c->setup.mode == LW_GLOBAL ? e->steps - 1 : lw_cpu_band_begins(e, band.strips - 1);
        lw_cpu_engine_run(c, e, 0, look, false, NULL, NULL);
        lw_cpu_engine_run(c, e, look, e->steps, false, look_for_ends, end);
        /* Nothing is higher than it would be in the whole matrix, so that some path scores this. */
        int64_t score = end->raw ? (int64_t)end->raw - e->range.zero : INT32_MIN;
        const int64_t before = lw_cpu_gap_score(sc, it->m);
        score = c->setup.mode == LW_SEMIGLOBAL && before > score ? before : score;
        const int32_t needed = lw_band_excess(sc, c->setup.mode, it->m, it->n, score);
        *proved = needed <= band.excess;
        excess = needed;
    }
    return LW_OK;
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

static void keep_end(const lw_align_setup *setup, lw_hit *hits, const lw_cpu_item *it, const lw_cpu_end *end,
                     const lw_cpu_range *range, int reverse)
{
    lw_hit *hit = &hits[it->tag];
    if (setup->mode == LW_SEMIGLOBAL) /* the cell before the first column */
        keep_better_end(setup, hit, it->tag, lw_cpu_gap_score(setup->scoring, it->m), 0, it->m, reverse);
    if (end->raw)
        keep_better_end(setup, hit, it->tag, (int64_t)end->raw - range->zero, end->column + 1, end->row + 1,
                        reverse);
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
        int64_t left = 0; /* that no band did */
        for (int64_t at = 0; at < n; at++) {
            lw_cpu_end end;
            bool proved;
            LW_TRY(ends_in_band(c, &k->engine, &items[at], &end, &proved, err));
            if (proved)
                keep_end(setup, call->hits, &items[at], &end, &k->engine.range, reverse);
            else
                items[left++] = items[at];
        }
        n = left;
        for (int64_t at = 0; at < n;) {
            int take = lw_cpu_batch_of(c, items + at, n - at);
            lw_cpu_end ends[LW_CPU_MAX_LANES];
            memset(ends, 0, sizeof ends);
            LW_TRY(lw_cpu_engine_load(c, &k->engine, items + at, take, lw_cpu_is_long(&items[at]), err));
            lw_cpu_engine_run(c, &k->engine, 0, k->engine.steps, false, look_for_ends, ends);
            for (int x = 0; x < take; x++)
                keep_end(setup, call->hits, &items[at + x], &ends[x], &k->engine.range, reverse);
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
