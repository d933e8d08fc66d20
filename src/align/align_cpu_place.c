/* align_cpu_place.c - place() of the CPU backend: reads against references. */
#include "align/align_cpu.h"

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

typedef struct place_call {
    lw_cpu *c;
    const lw_seqs *reads;
    const int64_t *order; /* non-empty reads, see align_order.h */
    int64_t n;
    int groups_per_task;
    lw_placements *out;
} place_call;

/* One read of a task. */
typedef struct placing {
    lw_select select;
    lw_select_ask ask;
    const uint8_t *codes[2]; /* forward, reverse */
    int64_t window;          /* first target letter of the columns scored again */
} placing;

static int strand_count(const lw_cpu *c)
{
    return (c->setup.strands & LW_FORWARD ? 1 : 0) + (c->setup.strands & LW_REVERSE ? 1 : 0);
}

static lw_cpu_range group_range(const lw_cpu *c, int32_t longest)
{
    lw_cpu_range r = lw_cpu_make_range(c->setup.scoring, c->setup.mode, longest, c->longest_ref,
                                       longest < c->longest_ref ? longest : c->longest_ref);
    if (r.width == 0 && c->setup.scoring->max_score > INT8_MAX) /* idle_of() needs room for one match */
        r.width = 1;
    return r;
}

/* Scores up to which rows need no gaps: what opening a gap costs, as far as one more match fits below the
 * lane's top bit (the kernel says why). */
static int64_t idle_of(const lw_scoring *sc, lw_cpu_range r)
{
    int64_t max_score = sc->max_score > 0 ? sc->max_score : 0;
    int64_t least = r.gaps.open_extend[0];
    if (r.gaps.pieces == 2)
        least = lw_cpu_at_most(r.gaps.open_extend[1], least);
    return lw_cpu_at_most(least, ((int64_t)1 << ((8 << r.width) - 1)) - 1 - max_score);
}

/* The largest power of two that is at most idle + 1. */
static int64_t level_of(int64_t idle)
{
    int64_t level = 1;
    while (2 * level <= idle + 1)
        level *= 2;
    return level;
}

/* Whether chance alone is likely to leave a score of `level` or more elsewhere, so that maxima below do not
 * matter: a cell has it about once in 4^(matches needed), and 20 times that many cells fail to have it once
 * in a thousand. A wrong guess costs a second pass. */
static bool loose_enough(const lw_cpu *c, int32_t rows, lw_cpu_range r)
{
    const lw_scoring *sc = c->setup.scoring;
    if (c->setup.mode != LW_LOCAL || sc->max_score <= 0)
        return false;
    int64_t matches = (level_of(idle_of(sc, r)) + sc->max_score - 1) / sc->max_score, letters = 0;
    for (int64_t t = 0; t < c->setup.refs->n; t++)
        letters += c->setup.refs->len[t];
    return matches < 20 && rows * letters * strand_count(c) >= (int64_t)20 << 2 * matches;
}

/* The reads order[at] ... that make one group: as many as the lanes of the narrowest width that holds the
 * longest, two lanes a read for both strands. */
static int64_t group_reads(const lw_cpu *c, const place_call *call, int64_t at, int64_t end, lw_cpu_range *r,
                           int32_t *longest)
{
    int64_t take = lw_cpu_lane_count(c, 0) / strand_count(c);
    for (;;) {
        take = take < end - at ? take : end - at;
        *longest = 0;
        for (int64_t x = at; x < at + take; x++)
            if (call->reads->len[call->order[x]] > *longest)
                *longest = call->reads->len[call->order[x]];
        *r = group_range(c, *longest);
        int64_t room = lw_cpu_lane_count(c, r->width) / strand_count(c);
        if (take <= room)
            return take;
        take = room;
    }
}

/* Fills the profile from the indices of the group's letters. */
static void profile_by_lookup(const lw_cpu *c, lw_cpu_worker *k, int32_t rows, lw_cpu_range r)
{
    const lw_scoring *sc = c->setup.scoring;
    int32_t base = sc->min_score > r.lowest ? sc->min_score : r.lowest;
    base = base < 0 ? base : 0;
    lw_cpu_profile_job job = {.rows = rows,
                              .n_letters = sc->n_letters,
                              .index = k->index.p,
                              .base = (uint32_t)base,
                              .profile = k->profile.p};
    for (int t = 0; t < sc->n_letters; t++) {
        for (int q = 0; q < 5; q++) {
            int32_t s = q < sc->n_letters ? sc->score[q * LW_MAX_LETTERS + t] : base;
            uint32_t above = (uint32_t)((s > base ? s : base) - base);
            if (q < 4)
                job.table[t][q << 2] = (uint8_t)above;
            else
                job.other[t] = above;
        }
        job.table[t][1] = (uint8_t)-base;
    }
    c->kernels->profile[r.width](&job);
}

/* Scores the reads of one group against all references; the block maxima go to `maxima`. */
static lw_status score_group(lw_cpu *c, lw_cpu_worker *k, placing *reads, int64_t n, int32_t rows,
                             lw_cpu_range r, bool loose, uint8_t *maxima, lw_error *err)
{
    const lw_align_setup *setup = &c->setup;
    const lw_scoring *sc = setup->scoring;
    const lw_seqs *refs = setup->refs;
    const size_t vector = (size_t)c->kernels->vector_bytes;
    const size_t row_bytes = (size_t)rows * vector, pieces = (size_t)r.gaps.pieces;
    const int64_t idle = idle_of(sc, r);
    LW_TRY(lw_cpu_need(&k->profile, (size_t)sc->n_letters * row_bytes, err));
    LW_TRY(lw_cpu_need(&k->h, row_bytes, err));
    LW_TRY(lw_cpu_need(&k->d, pieces * row_bytes, err));
    LW_TRY(lw_cpu_need(&k->border, row_bytes, err));
    LW_TRY(lw_cpu_need(&k->top, (1 + pieces) * (LW_CPU_CHUNK + 1) * vector, err));
    /* tiles of equal height, so that no short one is left over */
    int32_t tiles = (rows + LW_CPU_TILE_ROWS - 1) / LW_CPU_TILE_ROWS, tile = (rows + tiles - 1) / tiles;
    LW_TRY(lw_cpu_need(&k->active, 2 * (size_t)tiles * sizeof(int32_t), err));
    for (int32_t i = 0; i < rows; i++)
        for (size_t l = 0; l < vector >> r.width; l++) {
            int64_t border = r.zero;
            if (setup->mode == LW_GLOBAL)
                border += lw_cpu_gap_score(sc, i + 1);
            lw_cpu_put(k->border.p + (size_t)i * vector, r.width, (int64_t)l, (uint32_t)border);
        }
    if (c->small_alphabet) {
        LW_TRY(lw_cpu_need(&k->index, row_bytes, err));
        for (size_t l = 0; l < vector >> r.width; l++)
            lw_cpu_put(k->index.p, r.width, (int64_t)l, 0x80808001u);
        for (int32_t i = 1; i < rows; i++)
            memcpy(k->index.p + (size_t)i * vector, k->index.p, vector);
    } else {
        memset(k->profile.p, 0, (size_t)sc->n_letters * row_bytes);
    }
    int64_t lane = 0;
    for (int64_t x = 0; x < n; x++)
        for (int strand = 0; strand < 2; strand++) {
            const uint8_t *codes = reads[x].codes[strand];
            if (!codes)
                continue;
            int32_t m = reads[x].select.read_length;
            /* Shorter reads end in the last row, except in global mode, where H is taken from its row. Rows
             * above a read score 0 with every letter, which carries row 0 of the matrix down to it. */
            int32_t skip = setup->mode == LW_GLOBAL ? 0 : rows - m;
            if (c->small_alphabet)
                for (int32_t i = 0; i < m; i++)
                    lw_cpu_put(k->index.p + (size_t)(skip + i) * vector, r.width, lane,
                               lw_cpu_query_index(codes[i]));
            for (int32_t i = 0; i < m && !c->small_alphabet; i++) {
                const int16_t *row = &sc->score[codes[i] * LW_MAX_LETTERS];
                uint8_t *p = k->profile.p + (size_t)(skip + i) * vector;
                for (int letter = 0; letter < sc->n_letters; letter++, p += row_bytes)
                    lw_cpu_put(p, r.width, lane, (uint32_t)(row[letter] > r.lowest ? row[letter] : r.lowest));
            }
            for (int32_t i = 0; i < m && setup->mode == LW_SEMIGLOBAL; i++)
                lw_cpu_put(k->border.p + (size_t)(skip + i) * vector, r.width, lane,
                           (uint32_t)(r.zero + lw_cpu_gap_score(sc, i + 1)));
            lane++;
        }
    if (c->small_alphabet)
        profile_by_lookup(c, k, rows, r);
    for (int64_t t = 0; t < refs->n; t++) {
        if (refs->len[t] == 0)
            continue;
        uint8_t *first = maxima + (size_t)c->map.first_block[t] * vector;
        memcpy(k->h.p, k->border.p, row_bytes);
        for (size_t p = 0; p < pieces; p++)
            memcpy(k->d.p + p * row_bytes, k->border.p, row_bytes);
        lw_cpu_score_job job = {.mode = setup->mode,
                                .rows = rows,
                                .tile_rows = tile,
                                .profile = k->profile.p,
                                .codes = refs->codes + refs->start[t],
                                .columns = refs->len[t],
                                .h = k->h.p,
                                .d = k->d.p,
                                .zero = r.zero,
                                .gaps = r.gaps,
                                .idle = (uint32_t)idle,
                                .level = (uint32_t)level_of(idle),
                                .loose = loose,
                                .block_shift = c->map.shift,
                                .maxima = first,
                                .top_h = k->top.p,
                                .top_i = k->top.p + (LW_CPU_CHUNK + 1) * vector,
                                .active = (int32_t *)k->active.p};
        c->kernels->score[r.width](&job);
        if (setup->mode == LW_GLOBAL) {
            lane = 0;
            for (int64_t x = 0; x < n; x++)
                for (int strand = 0; strand < 2; strand++)
                    if (reads[x].codes[strand]) {
                        size_t last = (size_t)reads[x].select.read_length - 1;
                        lw_cpu_put(first, r.width, lane, lw_cpu_get(k->h.p + last * vector, r.width, lane));
                        lane++;
                    }
        }
        if (lw_stopped(setup->host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    }
    return LW_OK;
}

/* Gives the columns that were asked for to their selections. */
static void look_for_columns(void *arg, const lw_cpu_engine *e, int64_t first, int64_t last)
{
    placing *reads = arg;
    const int width = e->range.width;
    const size_t vector = (size_t)e->lanes << width;
    for (int x = 0; x < e->n_items; x++) {
        placing *read = &reads[e->items[x].tag];
        int64_t from = read->ask.first - read->window - 1, to = read->ask.last - read->window;
        for (int64_t t = from > first ? from : first; t < to && t < last; t++) {
            uint32_t raw = lw_cpu_get(e->job.best + (size_t)(t - first) * vector, width, x);
            if (raw)
                lw_select_column(
                    &read->select, (int32_t)(read->window + t + 1), (int32_t)(raw - e->range.zero),
                    (int32_t)lw_cpu_get(e->job.best_row + (size_t)(t - first) * vector, width, x) + 1);
        }
    }
}

/* The same for a wave: the lanes meet a column at different steps, so its best cell is put together first. */
typedef struct wave_columns {
    int64_t first; /* column of cell[0] */
    int64_t n;
    lw_cpu_end *cell;
} wave_columns;

static void look_for_wave_columns(void *arg, const lw_cpu_engine *e, int64_t first, int64_t last)
{
    wave_columns *columns = arg;
    const int width = e->range.width;
    const size_t vector = (size_t)e->lanes << width;
    for (int lane = 0; lane < e->lanes; lane++) {
        int64_t from = columns->first + lane, to = from + columns->n;
        for (int64_t t = from > first ? from : first; t < to && t < last; t++) {
            lw_cpu_end found = {.raw = lw_cpu_get(e->job.best + (size_t)(t - first) * vector, width, lane),
                                .row =
                                    lw_cpu_get(e->job.best_row + (size_t)(t - first) * vector, width, lane) +
                                    (int64_t)lane * e->job.rows};
            if (found.raw && lw_cpu_better(&found, &columns->cell[t - from]))
                columns->cell[t - from] = found;
        }
    }
}

static lw_status answer_wave(const lw_cpu *c, lw_cpu_worker *k, const lw_cpu_item *it, placing *read,
                             lw_error *err)
{
    lw_cpu_engine *e = &k->engine;
    LW_TRY(lw_cpu_engine_load(c, e, it, 1, true, err));
    int64_t first = read->ask.first > read->window ? read->ask.first - read->window - 1 : 0;
    wave_columns columns = {.first = first, .n = read->ask.last - read->window - first};
    LW_TRY(lw_cpu_need(&e->saved, (size_t)columns.n * sizeof(lw_cpu_end), err));
    columns.cell = (lw_cpu_end *)e->saved.p;
    memset(columns.cell, 0, (size_t)columns.n * sizeof(lw_cpu_end));
    lw_cpu_engine_run(c, e, 0, e->steps, false, look_for_wave_columns, &columns);
    for (int64_t x = 0; x < columns.n; x++)
        if (columns.cell[x].raw)
            lw_select_column(&read->select, (int32_t)(read->window + first + x + 1),
                             (int32_t)(columns.cell[x].raw - e->range.zero),
                             (int32_t)columns.cell[x].row + 1);
    return LW_OK;
}

/* Rounds of questions and answers until every selection is complete. */
static lw_status select_all(const lw_cpu *c, lw_cpu_worker *k, placing *reads, int64_t n, lw_error *err)
{
    const lw_align_setup *setup = &c->setup;
    const lw_seqs *refs = setup->refs;
    lw_cpu_item *items = (lw_cpu_item *)k->items.p;
    for (;;) {
        int64_t asked = 0;
        for (int64_t x = 0; x < n; x++) {
            placing *read = &reads[x];
            if (!lw_select_next(&read->select, &read->ask))
                continue;
            const lw_select_ask *ask = &read->ask;
            int32_t m = read->select.read_length;
            int64_t score = ask->score;
            if (setup->mode == LW_LOCAL)
                score = score < 1 ? 1 : score;
            else /* no end cell of a semiglobal alignment is lower */
                score =
                    score < lw_cpu_gap_score(setup->scoring, m) ? lw_cpu_gap_score(setup->scoring, m) : score;
            int64_t span = lw_cpu_span_of(c, read->codes[ask->place.reverse], m, score);
            read->window = span < 0 || span > ask->first ? 0 : ask->first - span;
            if (ask->first == 0) /* semiglobal: before the first column */
                lw_select_column(&read->select, 0, (int32_t)lw_cpu_gap_score(setup->scoring, m), m);
            items[asked++] =
                (lw_cpu_item){.query = read->codes[ask->place.reverse],
                              .target = refs->codes + refs->start[ask->place.target] + read->window,
                              .m = m,
                              .n = (int32_t)(ask->last - read->window),
                              .tag = (int32_t)x};
        }
        if (asked == 0)
            return LW_OK;
        qsort(items, (size_t)asked, sizeof *items, lw_cpu_compare_items);
        for (int64_t at = 0; at < asked;) {
            int take = lw_cpu_batch_of(c, items + at, asked - at);
            if (lw_cpu_is_long(&items[at])) {
                LW_TRY(answer_wave(c, k, &items[at], &reads[items[at].tag], err));
            } else {
                LW_TRY(lw_cpu_engine_load(c, &k->engine, items + at, take, false, err));
                int64_t looked = k->engine.steps; /* first column that anyone asked for */
                for (int y = 0; y < take; y++) {
                    const placing *read = &reads[items[at + y].tag];
                    int64_t column = read->ask.first - read->window - 1;
                    looked = column > looked ? looked : column < 0 ? 0 : column;
                }
                lw_cpu_engine_run(c, &k->engine, 0, looked, false, NULL, NULL);
                lw_cpu_engine_run(c, &k->engine, looked, k->engine.steps, false, look_for_columns, reads);
            }
            at += take;
        }
    }
}

static lw_status place_task(void *arg, int64_t t, int w, lw_error *err)
{
    const place_call *call = arg;
    lw_cpu *c = call->c;
    const lw_align_setup *setup = &c->setup;
    lw_cpu_worker *k = &c->workers[w];
    const size_t vector = (size_t)c->kernels->vector_bytes,
                 group_bytes = (size_t)c->map.first_block[setup->refs->n] * vector;
    /* tasks hold equal numbers of reads; groups within one are cut by width */
    int64_t per_task = (int64_t)call->groups_per_task * (lw_cpu_lane_count(c, 0) / strand_count(c));
    int64_t first = t * per_task, last = first + per_task < call->n ? first + per_task : call->n;
    int64_t n = last - first;
    size_t letters = 0;
    for (int64_t x = first; x < last; x++)
        letters += 2 * (size_t)call->reads->len[call->order[x]];
    const size_t exact_each = setup->n_hits > 1 ? 2 * (size_t)setup->n_hits : 2;
    LW_TRY(lw_cpu_need(&k->codes, letters, err));
    LW_TRY(lw_cpu_need(&k->items, (size_t)n * sizeof(lw_cpu_item), err));
    LW_TRY(lw_cpu_need(&k->selects, (size_t)n * sizeof(placing), err));
    LW_TRY(lw_cpu_need(&k->exact, (size_t)n * exact_each * sizeof(lw_select_exact), err));
    placing *reads = (placing *)k->selects.p;
    uint8_t *codes = k->codes.p;
    int64_t groups = 0;
    for (int64_t x = 0; x < n;) {
        lw_cpu_range r;
        int32_t longest;
        x += group_reads(c, call, first + x, last, &r, &longest);
        groups++;
    }
    LW_TRY(lw_cpu_need(&k->maxima, (size_t)groups * group_bytes, err));
    /* loose maxima first, where they are likely to do; then exact ones for the groups where they did not */
    for (int pass = 0; pass < 2; pass++) {
        int64_t group = 0;
        bool again = false;
        for (int64_t x = 0; x < n; group++) {
            lw_cpu_range r;
            int32_t longest;
            int64_t take = group_reads(c, call, first + x, last, &r, &longest);
            uint8_t *maxima = k->maxima.p + (size_t)group * group_bytes;
            bool wanted = pass == 0, loose = pass == 0 && loose_enough(c, longest, r);
            for (int64_t y = 0; y < take && pass; y++)
                wanted = wanted || reads[x + y].select.vague;
            for (int64_t y = 0, lane = 0; y < take && wanted; y++) {
                placing *read = &reads[x + y];
                int64_t i = call->order[first + x + y];
                int32_t m = call->reads->len[i];
                lw_block_maxima views[2] = {{0}, {0}};
                if (pass == 0)
                    *read = (placing){0};
                for (int reverse = 0; reverse < 2; reverse++) {
                    if (!(setup->strands & (reverse ? LW_REVERSE : LW_FORWARD)))
                        continue;
                    if (pass == 0) {
                        lw_cpu_take_strand(codes, call->reads->codes + call->reads->start[i], m, reverse,
                                           setup->scoring);
                        read->codes[reverse] = codes;
                        codes += m;
                    }
                    views[reverse] =
                        (lw_block_maxima){.base = maxima + (lane << r.width),
                                          .stride = (int64_t)vector,
                                          .bytes = 1 << r.width,
                                          .zero = r.zero,
                                          .loose = loose,
                                          .vague = (int32_t)(level_of(idle_of(setup->scoring, r)) - 1)};
                    lane++;
                }
                if (pass == 0 || read->select.vague)
                    lw_select_begin(&read->select, setup, &c->map, m, &views[0], &views[1],
                                    call->out->hits + i * setup->n_hits,
                                    call->out->ties ? call->out->ties + i * setup->n_ties : NULL,
                                    (lw_select_exact *)k->exact.p + (size_t)(x + y) * exact_each);
            }
            if (wanted)
                LW_TRY(score_group(c, k, reads + x, take, longest, r, loose, maxima, err));
            again = again || wanted;
            x += take;
        }
        if (again)
            LW_TRY(select_all(c, k, reads, n, err));
    }
    return LW_OK;
}

typedef struct key_call {
    const lw_cpu *c;
    const lw_seqs *reads;
    lw_placements *out;
    lw_cpu_sized *keys;
} key_call;

enum { KEY_CHUNK = 1024 };

/* The keys by which reads are ordered; empty reads have no placements and key -1. */
static lw_status key_task(void *arg, int64_t t, int w, lw_error *err)
{
    (void)w, (void)err;
    const key_call *call = arg;
    const lw_align_setup *setup = &call->c->setup;
    for (int64_t i = t * KEY_CHUNK; i < call->reads->n && i < (t + 1) * KEY_CHUNK; i++) {
        int32_t m = call->reads->len[i];
        int64_t key = m == 0 ? -1
                             : lw_order_key(&call->c->words, setup->scoring,
                                            call->reads->codes + call->reads->start[i], m);
        call->keys[i] = (lw_cpu_sized){.size = key, .index = i};
        for (int h = 0; m == 0 && h < setup->n_hits; h++)
            call->out->hits[i * setup->n_hits + h] = (lw_hit){.target = -1};
        for (int h = 0; m == 0 && call->out->ties && h < setup->n_ties; h++)
            call->out->ties[i * setup->n_ties + h] = (lw_hit){.target = -1};
    }
    return LW_OK;
}

lw_status lw_cpu_place(void *context, const lw_seqs *reads, lw_placements *out, lw_error *err)
{
    lw_cpu *c = context;
    const lw_align_setup *setup = &c->setup;
    lw_cpu_sized *sizes = malloc(((size_t)reads->n + 1) * sizeof *sizes);
    int64_t *order = malloc(((size_t)reads->n + 1) * sizeof *order);
    if (!sizes || !order) {
        free(sizes), free(order);
        return lw_fail_memory(err, ((size_t)reads->n + 1) * sizeof *sizes);
    }
    key_call keys = {.c = c, .reads = reads, .out = out, .keys = sizes};
    lw_status status = lw_pool_for(setup->pool, (reads->n + KEY_CHUNK - 1) / KEY_CHUNK, key_task, &keys, err);
    if (status != LW_OK) {
        free(sizes), free(order);
        return status;
    }
    qsort(sizes, (size_t)reads->n, sizeof *sizes, lw_cpu_compare_sizes);
    int64_t n = 0; /* empty reads come last */
    for (; n < reads->n && sizes[n].size >= 0; n++)
        order[n] = sizes[n].index;
    free(sizes);
    /* two groups a task fill the lanes of the second look, where there is work enough for all threads */
    int64_t group = lw_cpu_lane_count(c, 0) / strand_count(c);
    place_call call = {.c = c,
                       .reads = reads,
                       .order = order,
                       .n = n,
                       .groups_per_task = n >= 8 * group * c->n_workers ? 2 : 1,
                       .out = out};
    int64_t per_task = call.groups_per_task * group;
    status = lw_pool_for(setup->pool, (n + per_task - 1) / per_task, place_task, &call, err);
    free(order);
    return status;
}
