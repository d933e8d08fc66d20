/* align_cpu_trace.c - trace() of the CPU backend: the paths of pairs whose ends are known. */
#include "align/align_cpu.h"

#include <stdlib.h>
#include <string.h>

#include "align/align_band.h"
#include "common/fail.h"

enum { OP_MATCH = 0, OP_INSERTION = 1, OP_DELETION = 2 };

/* A walk back from the end of an alignment. */
typedef struct walk {
    const lw_scoring *sc;
    lw_mode mode;
    const uint8_t *query, *target;
    int64_t i, j;  /* letters left on either side */
    int64_t value; /* of H, or of the gap the walk is in */
    enum { IN_H, IN_DELETION, IN_INSERTION } state;
    int piece; /* of the gap */
    uint32_t op, run;
    int64_t first; /* of this path in cigars */
    lw_cigars *cigars;
} walk;

static lw_status flush_op(walk *k, lw_error *err)
{
    if (k->run == 0)
        return LW_OK;
    LW_TRY(lw_cigars_reserve(k->cigars, 1, err));
    k->cigars->op[k->cigars->n++] = k->run << 4 | k->op;
    k->run = 0;
    return LW_OK;
}

static lw_status push_op(walk *k, uint32_t op, lw_error *err)
{
    if (op != k->op) {
        LW_TRY(flush_op(k, err));
        k->op = op;
    }
    k->run++;
    return LW_OK;
}

static int64_t extend_of(const walk *k)
{
    return k->piece ? k->sc->gap_extend2 : k->sc->gap_extend;
}

static int64_t open_extend_of(const walk *k)
{
    return (k->piece ? k->sc->gap_open2 : k->sc->gap_open) + extend_of(k);
}

/* The end of the walk: a border or, in local mode, a zero inside. What is left of the score must be H there.
 */
static lw_status walk_border(walk *k, lw_error *err)
{
    if (k->state != IN_H)
        k->value += open_extend_of(k);
    k->state = IN_H;
    int64_t border = k->mode == LW_LOCAL || (k->mode == LW_SEMIGLOBAL && k->i == 0)
                         ? 0
                         : lw_cpu_gap_score(k->sc, k->i + k->j);
    if (k->value != border)
        return lw_fail(err, LW_E_INTERNAL, "a traced alignment leaves %lld of its score where %lld is due",
                       (long long)k->value, (long long)border);
    if (k->mode != LW_LOCAL)
        for (; k->i > 0; k->i--)
            LW_TRY(push_op(k, OP_INSERTION, err));
    if (k->mode == LW_GLOBAL)
        for (; k->j > 0; k->j--)
            LW_TRY(push_op(k, OP_DELETION, err));
    return flush_op(k, err);
}

/* Walks while the path stays in steps >= first, whose directions the engine holds. *done: it has ended. */
static lw_status walk_steps(walk *k, const lw_cpu_engine *e, int lane_of_item, int64_t first, bool *done,
                            lw_error *err)
{
    const int width = e->range.width;
    const int64_t rows = e->job.rows;
    const bool two = e->job.gaps.pieces == 2;
    const size_t vector = (size_t)e->lanes << width, cell_bits = two ? 8 : 4,
                 cells = ((size_t)8 << width) / cell_bits, column = (size_t)rows / cells * vector;
    *done = false;
    for (;;) {
        if (k->i == 0 || k->j == 0 || (k->state == IN_H && k->mode == LW_LOCAL && k->value == 0)) {
            *done = true;
            return walk_border(k, err);
        }
        int64_t row = k->i - 1, lane = lane_of_item, step = k->j - 1;
        if (e->job.wave) {
            const int64_t strip = row / rows;
            lane = e->job.banded ? strip % e->lanes : strip;
            row -= strip * rows;
            step += strip;
        }
        if (step < first)
            return LW_OK;
        uint32_t lane_bits = lw_cpu_get(
            e->directions.p + (size_t)(step - first) * column + (size_t)row / cells * vector, width, lane);
        uint32_t d = lane_bits >> cell_bits * ((size_t)row % cells);
        /* In a gap, the cell just reached says whether the gap goes on through it. */
        const uint32_t extends = k->piece ? d >> LW_CPU_SECOND_PIECE : d;
        if (k->state == IN_DELETION && (extends & LW_CPU_DELETION_EXTENDS)) {
            k->value += extend_of(k);
            LW_TRY(push_op(k, OP_DELETION, err));
            k->j--;
        } else if (k->state == IN_INSERTION && (extends & LW_CPU_INSERTION_EXTENDS)) {
            k->value += extend_of(k);
            LW_TRY(push_op(k, OP_INSERTION, err));
            k->i--;
        } else if (k->state != IN_H) {
            k->value += open_extend_of(k);
            k->state = IN_H;
        } else if (d & LW_CPU_DIAGONAL) {
            k->value -= k->sc->score[k->query[k->i - 1] * LW_MAX_LETTERS + k->target[k->j - 1]];
            LW_TRY(push_op(k, OP_MATCH, err));
            k->i--, k->j--;
        } else {
            const bool deletion = d & (two ? LW_CPU_DELETION | LW_CPU_SECOND_DELETION : LW_CPU_DELETION);
            k->state = deletion ? IN_DELETION : IN_INSERTION;
            k->piece = two && !(d & (deletion ? LW_CPU_DELETION : LW_CPU_INSERTION));
            LW_TRY(push_op(k, k->state == IN_DELETION ? OP_DELETION : OP_INSERTION, err));
            if (k->state == IN_DELETION)
                k->j--;
            else
                k->i--;
        }
    }
}

static void walk_finish(walk *k, lw_path *path, int32_t tbegin)
{
    for (int64_t a = k->first, b = k->cigars->n - 1; a < b; a++, b--) {
        uint32_t op = k->cigars->op[a];
        k->cigars->op[a] = k->cigars->op[b];
        k->cigars->op[b] = op;
    }
    *path = (lw_path){.qstart = (int32_t)k->i,
                      .tstart = (int32_t)(k->j + tbegin),
                      .cigar = k->first,
                      .n_cigar = (int32_t)(k->cigars->n - k->first)};
}

/* If the score is that of the diagonal that ends at the end cell, every cell of this diagonal has H equal to
 * what the letters before it leave of the score (more would make the end better, less would contradict
 * the letters that follow), so the walk back takes it all the way, to the first zero in local mode. */
static bool trace_diagonal(const walk *k, int32_t m, int32_t n, int32_t score, int32_t *letters)
{
    int64_t left = score;
    int32_t length = m < n ? m : n, i = 0;
    if (k->mode == LW_GLOBAL ? m != n : k->mode == LW_SEMIGLOBAL && m > n)
        return false;
    if (length == 0) { /* nothing to walk along; empty sequences have no address either */
        *letters = 0;
        return left == 0;
    }
    const uint8_t *query = k->query + m, *target = k->target + n;
    for (; i < length && !(k->mode == LW_LOCAL && left == 0); i++)
        left -= k->sc->score[query[-1 - i] * LW_MAX_LETTERS + target[-1 - i]];
    *letters = i;
    return left == 0;
}

int64_t lw_cpu_span_of(const lw_cpu *c, const uint8_t *query, int64_t m, int64_t score)
{
    int64_t price = -score;
    for (int64_t i = 0; i < m; i++)
        price += c->row_best[query[i]];
    const int64_t letters = lw_gap_letters(c->setup.scoring, price);
    return letters < 0 ? -1 : m + letters;
}

typedef struct trace_call {
    lw_cpu *c;
    const lw_seqs *queries, *targets;
    const lw_trace_task *tasks;
    lw_path *paths;
    int64_t n, chunk;
    lw_cigars *parts; /* of each chunk */
} trace_call;

static walk begin_walk(const lw_cpu *c, const lw_cpu_item *it, int32_t score, lw_cigars *cigars)
{
    return (walk){.sc = c->setup.scoring,
                  .mode = c->setup.mode,
                  .query = it->query,
                  .target = it->target,
                  .i = it->m,
                  .j = it->n,
                  .value = score,
                  .cigars = cigars,
                  .first = cigars->n};
}

static lw_status trace_batch(const lw_cpu *c, lw_cpu_worker *w, const lw_cpu_item *items, int n,
                             const trace_call *call, lw_cigars *cigars, lw_error *err)
{
    lw_cpu_engine *e = &w->engine;
    LW_TRY(lw_cpu_engine_load(c, e, items, n, false, err));
    LW_TRY(lw_cpu_need(&e->directions,
                       (size_t)e->steps * lw_cpu_direction_vectors(&e->job, e->range.width) *
                           (size_t)c->kernels->vector_bytes,
                       err));
    lw_cpu_engine_run(c, e, 0, e->steps, true, NULL, NULL);
    for (int x = 0; x < n; x++) {
        const lw_trace_task *task = &call->tasks[items[x].tag];
        walk k = begin_walk(c, &items[x], task->score, cigars);
        bool done;
        LW_TRY(walk_steps(&k, e, x, 0, &done, err));
        walk_finish(&k, &call->paths[items[x].tag], task->tbegin + task->tlen - items[x].n);
    }
    return LW_OK;
}

/* Walks through the steps [first, last) of a wave whose state before `first` is in e->state, from the right:
 * if their directions fit the memory, at once; else in pieces from checkpoints, each computed again. */
static lw_status trace_steps(const lw_cpu *c, lw_cpu_engine *e, walk *k, int64_t first, int64_t last,
                             bool *done, lw_error *err)
{
    const size_t vector = (size_t)c->kernels->vector_bytes,
                 state_bytes = lw_cpu_state_vectors(&e->job) * vector,
                 step_bytes = lw_cpu_direction_vectors(&e->job, e->range.width) * vector;
    int64_t room = (int64_t)(c->trace_bytes / step_bytes);
    room = room < 1 ? 1 : room;
    if (last - first <= room) {
        LW_TRY(lw_cpu_need(&e->directions, (size_t)(last - first) * step_bytes, err));
        lw_cpu_engine_run(c, e, first, last, true, NULL, NULL);
        return walk_steps(k, e, 0, first, done, err);
    }
    int64_t piece = (last - first + LW_CPU_CHECKPOINTS - 1) / LW_CPU_CHECKPOINTS;
    piece = piece < room ? room : piece;
    int64_t pieces = (last - first + piece - 1) / piece;
    uint8_t *saved = malloc((size_t)pieces * state_bytes);
    if (!saved)
        return lw_fail_memory(err, (size_t)pieces * state_bytes);
    for (int64_t p = 0; p < pieces; p++) {
        memcpy(saved + (size_t)p * state_bytes, e->state.p, state_bytes);
        if (p + 1 < pieces)
            lw_cpu_engine_run(c, e, first + p * piece, first + (p + 1) * piece, false, NULL, NULL);
    }
    lw_status status = LW_OK;
    for (int64_t p = pieces - 1; p >= 0 && status == LW_OK && !*done; p--) {
        int64_t from = first + p * piece, to = from + piece < last ? from + piece : last;
        memcpy(e->state.p, saved + (size_t)p * state_bytes, state_bytes);
        status = trace_steps(c, e, k, from, to, done, err);
    }
    free(saved);
    return status;
}

/* With a band, or NULL. */
static lw_status trace_wave(const lw_cpu *c, lw_cpu_worker *w, const lw_cpu_item *it, const lw_cpu_band *band,
                            const trace_call *call, lw_cigars *cigars, lw_error *err)
{
    lw_cpu_engine *e = &w->engine;
    const lw_trace_task *task = &call->tasks[it->tag];
    if (band)
        LW_TRY(lw_cpu_engine_load_band(c, e, it, band, err));
    else
        LW_TRY(lw_cpu_engine_load(c, e, it, 1, true, err));
    walk k = begin_walk(c, it, task->score, cigars);
    bool done = false;
    LW_TRY(trace_steps(c, e, &k, 0, e->steps, &done, err));
    walk_finish(&k, &call->paths[it->tag], task->tbegin + task->tlen - it->n);
    return LW_OK;
}

/* The band that holds all paths with the score of a task; false: none that is worth while. */
static bool band_of(const lw_cpu *c, const lw_cpu_item *it, int32_t score, lw_cpu_band *band)
{
    const lw_mode mode = c->setup.mode;
    return mode != LW_LOCAL && (int64_t)it->m * it->n >= c->band_cells &&
           lw_cpu_plan_band(c, it, lw_band_excess(c->setup.scoring, mode, it->m, it->n, score), band);
}

static lw_status trace_task(void *arg, int64_t t, int w, lw_error *err)
{
    const trace_call *call = arg;
    lw_cpu *c = call->c;
    const lw_scoring *sc = c->setup.scoring;
    lw_cpu_worker *k = &c->workers[w];
    lw_cigars *cigars = &call->parts[t];
    if (lw_stopped(c->setup.host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    int64_t first = t * call->chunk, last = first + call->chunk < call->n ? first + call->chunk : call->n;
    size_t letters = 0;
    for (int64_t x = first; x < last; x++)
        letters += (size_t)call->tasks[x].qlen;
    LW_TRY(lw_cpu_need(&k->codes, letters, err));
    LW_TRY(lw_cpu_need(&k->items, (size_t)(last - first) * sizeof(lw_cpu_item), err));
    lw_cpu_item *items = (lw_cpu_item *)k->items.p;
    uint8_t *codes = k->codes.p;
    int64_t n = 0;
    for (int64_t x = first; x < last; x++) {
        const lw_trace_task *task = &call->tasks[x];
        const uint8_t *query = call->queries->codes + call->queries->start[task->query];
        /* the first qlen letters of the strand */
        if (task->reverse)
            query += call->queries->len[task->query] - task->qlen;
        lw_cpu_take_strand(codes, query, task->qlen, task->reverse, sc);
        lw_cpu_item it = {.query = codes,
                          .target = call->targets->codes + call->targets->start[task->target] + task->tbegin,
                          .m = task->qlen,
                          .n = task->tlen,
                          .tag = (int32_t)x};
        walk path = begin_walk(c, &it, task->score, cigars);
        int32_t matched;
        if (trace_diagonal(&path, it.m, it.n, task->score, &matched)) {
            path.op = OP_MATCH;
            path.run = (uint32_t)matched;
            path.i -= matched, path.j -= matched;
            LW_TRY(flush_op(&path, err));
            walk_finish(&path, &call->paths[x], task->tbegin);
            continue;
        }
        if (it.m == 0 || it.n == 0) {
            LW_TRY(walk_border(&path, err));
            walk_finish(&path, &call->paths[x], task->tbegin);
            continue;
        }
        int64_t span = c->setup.mode == LW_GLOBAL ? -1 : lw_cpu_span_of(c, codes, it.m, task->score);
        if (span >= 0 && span < it.n) {
            it.target += it.n - span;
            it.n = (int32_t)span;
        }
        lw_cpu_band band;
        if (band_of(c, &it, task->score, &band)) {
            LW_TRY(trace_wave(c, k, &it, &band, call, cigars, err));
            continue;
        }
        items[n++] = it;
        codes += it.m;
    }
    qsort(items, (size_t)n, sizeof *items, lw_cpu_compare_items);
    for (int64_t at = 0; at < n;) {
        int take = lw_cpu_batch_of(c, items + at, n - at);
        if (lw_cpu_is_long(&items[at]))
            LW_TRY(trace_wave(c, k, &items[at], NULL, call, cigars, err));
        else
            LW_TRY(trace_batch(c, k, items + at, take, call, cigars, err));
        at += take;
    }
    return LW_OK;
}

lw_status lw_cpu_trace(void *context, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                       const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    lw_cpu *c = context;
    if (n == 0)
        return LW_OK;
    int64_t longest = 0;
    for (int64_t x = 0; x < n; x++) {
        int64_t cells = (int64_t)tasks[x].qlen * tasks[x].tlen;
        longest = cells > longest ? cells : longest;
    }
    trace_call call = {.c = c,
                       .queries = queries,
                       .targets = targets ? targets : c->setup.refs,
                       .tasks = tasks,
                       .paths = paths,
                       .n = n,
                       .chunk = longest > LW_CPU_WAVE_CELLS ? 1 : lw_cpu_chunk_of(c, n)};
    int64_t parts = (n + call.chunk - 1) / call.chunk;
    call.parts = calloc((size_t)parts, sizeof *call.parts);
    if (!call.parts)
        return lw_fail_memory(err, (size_t)parts * sizeof *call.parts);
    lw_status status = lw_pool_for(c->setup.pool, parts, trace_task, &call, err);
    for (int64_t t = 0; t < parts; t++) {
        const lw_cigars *part = &call.parts[t];
        if (status == LW_OK)
            status = lw_cigars_reserve(cigars, part->n, err);
        if (status == LW_OK) {
            if (part->n)
                memcpy(cigars->op + cigars->n, part->op, (size_t)part->n * sizeof *part->op);
            for (int64_t x = t * call.chunk; x < n && x < (t + 1) * call.chunk; x++)
                paths[x].cigar += cigars->n;
            cigars->n += part->n;
        }
        free(part->op);
    }
    free(call.parts);
    return status;
}
