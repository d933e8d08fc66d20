/* align_cpu_engine.c - pairs in the lanes of vectors: how their scores are held, loading and running them. */
#include "align/align_cpu.h"

#include <string.h>

#include "common/fail.h"

/* The narrowest lanes that hold every value of a matrix of `rows` x `columns` cells (counted with the rows
 * that fill up a vector) whose alignments match at most `pairs` letters.
 *
 * Local. 0 <= H <= S = pairs * max_score, and D, I lie between some H and S. A penalty, or the magnitude of a
 * negative entry, beyond S acts as S does: what it is subtracted from falls to 0 or below either way, and H
 * is at least 0. So with all of them cut off at S, zero = the largest of them: no difference below H -
 * penalty >= 0 is ever formed, and no sum above zero + S.
 *
 * Otherwise H(i,j) is at least the cost of deleting and inserting everything, open + i * extend in
 * semiglobal and twice open + (i + j) * extend in global mode, and one more penalty or entry may be
 * subtracted before a maximum is taken. So no H is lower than `floor`, and what counts as floor, since it is
 * not computed (bands), does not count as more than it is.
 *
 * With two-piece gaps all of this holds for the D and I of either piece: each lies between some H and S. A
 * piece whose penalties are cut off never gives a score above 0. A gap costs the less of two prices, so the
 * price of everything by the cheaper piece bounds H, while the penalty subtracted last may be that of either.
 */
lw_cpu_range lw_cpu_make_range(const lw_scoring *sc, lw_mode mode, int64_t rows, int64_t columns,
                               int64_t pairs)
{
    lw_cpu_range r = {.gaps = {.pieces = sc->two_piece ? 2 : 1,
                               .border_open = {sc->gap_open, sc->gap_open2},
                               .border_extend = {sc->gap_extend, sc->gap_extend2}}};
    const int64_t highest = sc->max_score > 0 ? pairs * sc->max_score : 0;
    int64_t lowest = sc->min_score < 0 ? -(int64_t)sc->min_score : 0, everything = INT64_MAX;
    if (mode == LW_LOCAL)
        lowest = lw_cpu_at_most(lowest, highest);
    int64_t zero = lowest;
    for (int p = 0; p < r.gaps.pieces; p++) {
        const int64_t open = r.gaps.border_open[p], extend = r.gaps.border_extend[p],
                      most = mode == LW_LOCAL ? highest : INT64_MAX;
        r.gaps.open_extend[p] = (uint32_t)lw_cpu_at_most(open + extend, most);
        r.gaps.extend[p] = (uint32_t)lw_cpu_at_most(extend, most);
        zero = r.gaps.open_extend[p] > zero ? r.gaps.open_extend[p] : zero;
        everything = lw_cpu_at_most(
            mode == LW_GLOBAL ? 2 * open + (rows + columns) * extend : open + rows * extend, everything);
    }
    if (mode != LW_LOCAL)
        zero += everything + 1;
    r.width = zero + highest < 1 << 8 ? 0 : zero + highest < 1 << 16 ? 1 : 2;
    r.zero = (uint32_t)zero;
    r.floor = (uint32_t)(mode == LW_LOCAL ? zero : zero - everything);
    r.lowest = (int32_t)-lowest;
    return r;
}

static int32_t round_rows(int64_t rows)
{
    return (int32_t)((rows + LW_CPU_ROW_ROUND - 1) / LW_CPU_ROW_ROUND * LW_CPU_ROW_ROUND);
}

static uint32_t target_index(uint8_t code)
{
    return code < 4 ? code : 0x80u;
}

/* The range for items, and whether they are one wave. `rows` becomes the rows per lane. */
lw_cpu_range lw_cpu_plan_range(const lw_cpu *c, const lw_cpu_item *items, int n, bool wave, int32_t *rows)
{
    int32_t m = 0, columns = 0, pairs = 0;
    for (int k = 0; k < n; k++) {
        int32_t shorter = items[k].m < items[k].n ? items[k].m : items[k].n;
        m = items[k].m > m ? items[k].m : m;
        columns = items[k].n > columns ? items[k].n : columns;
        pairs = shorter > pairs ? shorter : pairs;
    }
    lw_cpu_range r = {0};
    for (int width = 0; width < 3; width++) {
        int64_t lanes = lw_cpu_lane_count(c, width);
        *rows = wave ? round_rows((m + lanes - 1) / lanes) : round_rows(m);
        r = lw_cpu_make_range(c->setup.scoring, c->setup.mode, wave ? *rows * lanes : *rows, columns, pairs);
        /* best_row must fit a lane */
        if (r.width <= width && (width == 2 || *rows < 1 << (8 << width))) {
            r.width = width;
            break;
        }
    }
    return r;
}

/* Fills e->narrow and says whether profiles of all queries are worth their memory. */
static bool takes_profiles(const lw_cpu *c, lw_cpu_engine *e, int64_t profile_bytes)
{
    const int n = c->setup.scoring->n_letters;
    if (profile_bytes > LW_CPU_PROFILE_BYTES)
        return false;
    for (int t = 0; t < n; t++)
        for (int q = 0; q < n; q++) {
            int16_t s = e->matrix[t * LW_MAX_LETTERS + q];
            if (s < INT8_MIN || s > INT8_MAX)
                return false;
            e->narrow[t * LW_MAX_LETTERS + q] = (int8_t)s;
        }
    return true;
}

/* The profiles of the queries of the lanes; a wave's lanes share one. `letter` is the bytes from letter to
 * letter. */
static lw_status load_profiles(const lw_cpu *c, lw_cpu_engine *e, size_t letter, lw_error *err)
{
    const int n = e->job.wave ? 1 : e->n_items, n_letters = c->setup.scoring->n_letters;
    LW_TRY(lw_cpu_need(&e->query, letter, err));
    LW_TRY(lw_cpu_need(&e->profile, (size_t)n * (size_t)n_letters * letter, err));
    for (int k = 0; k < n; k++) {
        const size_t m = (size_t)e->items[k].m;
        memcpy(e->query.p, e->items[k].query, m);
        memset(e->query.p + m, 0, letter - m);
        lw_cpu_query_profile_job job = {.n_letters = n_letters,
                                        .table = e->narrow,
                                        .codes = e->query.p,
                                        .n = letter,
                                        .profile_letter = letter,
                                        .profile = e->profile.p + (size_t)k * (size_t)n_letters * letter};
        c->kernels->query_profile(&job);
    }
    for (int lane = 0; lane < LW_CPU_MAX_LANES; lane++) { /* idle lanes look somewhere */
        const size_t k = lane < n ? (size_t)lane : 0, strip = lane < e->lanes ? (size_t)lane : 0;
        e->lane_profile[lane] = e->job.wave && !e->job.banded ? e->profile.p + strip * (size_t)e->job.rows
                                                              : e->profile.p + k * (size_t)n_letters * letter;
    }
    e->job.profile = e->lane_profile;
    e->job.profile_letter = letter;
    return LW_OK;
}

/* Loads items of which each lane takes `rows` rows, in e->range; `strips` only of a band. */
static lw_status load(const lw_cpu *c, lw_cpu_engine *e, const lw_cpu_item *items, int n, bool wave,
                      int32_t rows, int64_t strips, lw_error *err)
{
    const lw_scoring *sc = c->setup.scoring;
    lw_cpu_pairs_job *job = &e->job;
    e->items = items;
    e->n_items = n;
    const int width = e->range.width, vector = c->kernels->vector_bytes;
    e->lanes = (int)lw_cpu_lane_count(c, width);
    *job = (lw_cpu_pairs_job){.mode = c->setup.mode,
                              .wave = wave,
                              .banded = strips > 0,
                              .rows = rows,
                              .zero = e->range.zero,
                              .floor = e->range.floor,
                              .below_border = true,
                              .gaps = e->range.gaps,
                              .matrix = c->small_alphabet ? NULL : e->matrix};
    if (job->matrix)
        for (int k = 0; k < LW_MAX_LETTERS * LW_MAX_LETTERS; k++)
            e->matrix[k] = (int16_t)(c->transposed[k] > e->range.lowest ? c->transposed[k] : e->range.lowest);
    int32_t base = sc->min_score > e->range.lowest ? sc->min_score : e->range.lowest;
    job->base = (uint32_t)base;
    for (int k = 0; k < 16; k++) {
        int32_t s = sc->score[(k >> 2) * LW_MAX_LETTERS + (k & 3)];
        job->table[k] = (uint8_t)((s > base ? s : base) - base);
    }
    int32_t other = sc->n_letters > 4 ? sc->score[4 * LW_MAX_LETTERS + 4] : base;
    job->other = (uint32_t)((other > base ? other : base) - base);

    const size_t row_bytes = job->matrix ? (size_t)e->lanes : (size_t)vector;
    /* whole vectors of rows, and one behind the last strip */
    const size_t all_rows = (size_t)rows * (strips ? (size_t)strips : wave ? (size_t)e->lanes : 1);
    const size_t letter = (all_rows / (size_t)vector + 2) * (size_t)vector;
    const bool profiles =
        job->matrix && takes_profiles(c, e, (int64_t)letter * sc->n_letters * (wave ? 1 : n));
    if (profiles)
        LW_TRY(load_profiles(c, e, letter, err));
    else
        LW_TRY(lw_cpu_need(&e->query, (size_t)rows * row_bytes, err));
    LW_TRY(lw_cpu_need(&e->may_end, (size_t)rows * (size_t)vector, err));
    LW_TRY(lw_cpu_need(&e->state, lw_cpu_state_vectors(job) * (size_t)vector, err));
    LW_TRY(lw_cpu_need(&e->target, (size_t)(LW_CPU_STEPS + 1) * row_bytes, err)); /* see band_targets() */
    LW_TRY(lw_cpu_need(&e->best, 2 * (size_t)LW_CPU_STEPS * (size_t)vector, err));
    if (job->matrix)
        LW_TRY(lw_cpu_need(&e->gathered, ((size_t)rows + (size_t)vector) * (size_t)vector, err));
    job->query = e->query.p;
    job->target = e->target.p;
    job->may_end = e->may_end.p;
    job->state = e->state.p;
    job->gathered = e->gathered.p;

    memset(e->may_end.p, 0, (size_t)rows * (size_t)vector);
    if (!profiles)
        memset(e->query.p, job->matrix ? 0 : 0x80, (size_t)rows * row_bytes);
    e->steps = 0;
    for (int lane = 0; lane < (strips ? 0 : wave ? e->lanes : n); lane++) {
        const lw_cpu_item *it = &items[wave ? 0 : lane];
        int64_t from = wave ? (int64_t)lane * rows : 0;
        int64_t take = it->m - from < rows ? it->m - from : rows;
        for (int64_t i = 0; i < take; i++) {
            uint8_t code = it->query[from + i];
            if (job->matrix && !profiles)
                e->query.p[(size_t)i * row_bytes + (size_t)lane] = code;
            else if (!job->matrix)
                lw_cpu_put(e->query.p + (size_t)i * row_bytes, width, lane, lw_cpu_query_index(code));
            if (c->setup.mode == LW_LOCAL || from + i == it->m - 1)
                lw_cpu_put(e->may_end.p + (size_t)i * (size_t)vector, width, lane, ~0u);
        }
        if (take > 0 && it->n + (wave ? lane : 0) > e->steps)
            e->steps = it->n + (wave ? lane : 0);
    }
    c->kernels->pairs_begin[width](job);
    return LW_OK;
}

lw_status lw_cpu_engine_load(const lw_cpu *c, lw_cpu_engine *e, const lw_cpu_item *items, int n, bool wave,
                             lw_error *err)
{
    int32_t rows;
    e->range = lw_cpu_plan_range(c, items, n, wave, &rows);
    return load(c, e, items, n, wave, rows, 0, err);
}

/* ---- bands -----------------------------------------------------------------------------------------------
 *
 * A wave in which the lanes take only the cells of a band of diagonals (align_band.h), and turns: strip s,
 * the rows from s * rows on, belongs to lane s % lanes and is at column step - s. It begins on the diagonal
 * `first`, one before the band, or at the left border, and stays until strip s + lanes takes its lane:
 *
 *     begins(s) = max(s * (rows + 1) + first, s)
 *
 * For B diagonals from `first` to the last of the band, not counting `first`, its cells of the band are
 * within rows + B columns, and it stays for lanes * (rows + 1) steps: as many are needed and
 *
 *     B <= (lanes - 1) * rows + lanes
 *
 * The strip above it goes up to rows + 1 steps earlier, which the same bound allows: its first row is in the
 * band, and so is what is above it, before column s * rows + the last diagonal, and the strip above is there
 * until column (s - 1 + lanes) * (rows + 1) - s + first. From then on this is the first strip that there is,
 * with `floor` above it.
 *
 * Cells outside the band that are computed come from values that are none too high: true ones, floor, and
 * others like themselves. So each cell has at least what the band alone gives and at most what the whole
 * matrix does, which is the same where optimal paths are (align_band.h). The first diagonal of a strip lacks
 * what is left of it, and above where the strip above has gone on; so it is no part of the band. */

int64_t lw_cpu_band_begins(const lw_cpu_engine *e, int64_t strip)
{
    const int64_t step = strip * (e->job.rows + 1) + e->band.first;
    return step > strip ? step : strip;
}

/* The last strip that has begun when `step` is computed. */
static int64_t newest_strip(const lw_cpu_engine *e, int64_t step)
{
    int64_t strip = (step - e->band.first) / (e->job.rows + 1);
    strip = strip < step ? strip : step;
    return strip < e->band.strips ? strip : e->band.strips - 1;
}

/* The strip in a lane when `newest` is the last to have begun; negative: none. */
static int64_t strip_in(const lw_cpu_engine *e, int lane, int64_t newest)
{
    const int64_t turn = newest - newest % e->lanes + lane;
    return turn > newest ? turn - e->lanes : turn;
}

bool lw_cpu_plan_band(const lw_cpu *c, const lw_cpu_item *it, int32_t excess, lw_cpu_band *band)
{
    const int64_t apart = (int64_t)it->n - it->m, shorter = apart < 0 ? it->n : it->m;
    const int64_t diagonals = /* of the band */
        (apart < 0 ? -apart : apart) + 2 * lw_cpu_at_most(excess, shorter) + 1;
    for (int width = 0; width < 3; width++) {
        const int64_t lanes = lw_cpu_lane_count(c, width);
        const int32_t rows = round_rows((diagonals > lanes ? diagonals - lanes : 0) / (lanes - 1) + 1);
        const int64_t strips = (it->m + (int64_t)rows - 1) / rows;
        /* as wide as the lanes allow */
        const int64_t spare = (lanes - 1) * rows + lanes - diagonals;
        const int64_t wide = lw_cpu_at_most(excess + spare / 2, shorter);
        *band = (lw_cpu_band){.excess = (int32_t)wide,
                              .first = (int32_t)((apart < 0 ? apart : 0) - wide - 1),
                              .rows = rows,
                              .strips = strips,
                              .range = lw_cpu_make_range(c->setup.scoring, c->setup.mode, strips * rows,
                                                         it->n, it->m < it->n ? it->m : it->n)};
        if (band->range.width > width || (width < 2 && rows >= 1 << (8 << width)))
            continue;
        band->range.width = width;
        if (c->every_band)
            return true;
        const int64_t matrix =
            lw_cpu_is_long(it) ? (it->m / lanes + 1) * (it->n + lanes) : it->m * (int64_t)it->n / lanes;
        return (it->n + strips) * (rows + LW_CPU_BAND_STEP_ROWS) < matrix / 100 * LW_CPU_BAND_PERCENT;
    }
    return false;
}

lw_status lw_cpu_engine_load_band(const lw_cpu *c, lw_cpu_engine *e, const lw_cpu_item *it,
                                  const lw_cpu_band *band, lw_error *err)
{
    e->range = band->range;
    e->band = *band;
    LW_TRY(load(c, e, it, 1, true, band->rows, band->strips, err));
    e->steps = it->n + band->strips - 1;
    /* the target from its end, with room for lanes that are beyond it or not at its begin */
    const int letter = e->job.matrix ? 0 : e->range.width;
    const int64_t around = 3 * (int64_t)e->lanes, letters = it->n + 2 * around;
    LW_TRY(lw_cpu_need(&e->reversed, (size_t)letters << letter, err));
    e->reversed_end = around + it->n;
    for (int64_t x = 0; x < letters; x++) {
        const int64_t j = e->reversed_end - 1 - x;
        const uint8_t code = j >= 0 && j < it->n ? it->target[j] : e->job.matrix ? 0 : 4;
        lw_cpu_put(e->reversed.p, letter, x, e->job.matrix ? code : target_index(code));
    }
    return LW_OK;
}

/* Gives a strip its lane's rows of the query. */
static void place_strip(const lw_cpu *c, lw_cpu_engine *e, int64_t strip)
{
    const lw_cpu_item *it = e->items;
    const int width = e->range.width, lane = (int)(strip % e->lanes);
    const size_t vector = (size_t)c->kernels->vector_bytes;
    const int64_t rows = e->job.rows, from = strip * rows, take = it->m - from < rows ? it->m - from : rows;
    if (e->job.profile) {
        e->lane_profile[lane] = e->profile.p + from;
    } else {
        for (int64_t i = 0; i < rows; i++) {
            const uint8_t code = i < take ? it->query[from + i] : 0;
            if (e->job.matrix)
                e->query.p[(size_t)i * (size_t)e->lanes + (size_t)lane] = code;
            else
                lw_cpu_put(e->query.p + (size_t)i * vector, width, lane,
                           lw_cpu_query_index(i < take ? code : 4));
        }
    }
    if (strip == e->band.strips - 1)
        lw_cpu_put(e->may_end.p + (size_t)(take - 1) * vector, width, lane, ~0u);
}

/* The cells left of a strip that begins. */
static void begin_strip(const lw_cpu *c, lw_cpu_engine *e, int64_t strip)
{
    const lw_cpu_pairs_job *job = &e->job;
    const int width = e->range.width, lane = (int)(strip % e->lanes), pieces = job->gaps.pieces;
    const size_t vector = (size_t)c->kernels->vector_bytes, rows_bytes = (size_t)job->rows * vector;
    const int64_t from = strip * job->rows;
    const bool at_border = lw_cpu_band_begins(e, strip) == strip;
    for (int32_t i = 0; i < job->rows; i++) {
        const uint32_t left =
            at_border ? (uint32_t)(job->zero - lw_cpu_border_cost(&job->gaps, from + i + 1)) : job->floor;
        for (int k = 0; k <= pieces; k++) /* H, and each D */
            lw_cpu_put(job->state + (size_t)k * rows_bytes + (size_t)i * vector, width, lane, left);
    }
    lw_cpu_put(job->state + (size_t)(1 + pieces) * rows_bytes + vector, width, lane,
               at_border ? (uint32_t)(job->zero - lw_cpu_border_cost(&job->gaps, from)) : job->floor);
}

/* Makes the lanes ready for `step`, which some strip may begin with, or which is the first one of a run;
 * returns the step before which that is to be done again. */
static int64_t take_turns(const lw_cpu *c, lw_cpu_engine *e, int64_t step, bool first_of_run)
{
    const int64_t newest = newest_strip(e, step);
    if (first_of_run) {
        memset(e->may_end.p, 0, (size_t)e->job.rows * (size_t)c->kernels->vector_bytes);
        for (int lane = 0; lane < e->lanes; lane++)
            if (strip_in(e, lane, newest) >= 0)
                place_strip(c, e, strip_in(e, lane, newest));
    }
    if (lw_cpu_band_begins(e, newest) == step) {
        place_strip(c, e, newest);
        begin_strip(c, e, newest);
    }
    e->newest = newest;
    e->job.below_border = newest < e->lanes;
    e->job.first_lane = newest < e->lanes ? 0 : (int)((newest + 1) % e->lanes);
    return newest + 1 < e->band.strips ? lw_cpu_band_begins(e, newest + 1) : INT64_MAX;
}

/* The target letters of a band's steps [first, last). As strips are one column apart, those of a step lie
 * side by side in the target reversed: from lane 0 on to that of the newest strip, and on to the last lane,
 * which has the strips before. Idle lanes get any letters. */
static void band_targets(lw_cpu_engine *e, int64_t first, int64_t last)
{
    const size_t letter = e->job.matrix ? 1 : (size_t)1 << e->range.width;
    const size_t row_bytes = (size_t)e->lanes * letter;
    const int64_t lane = e->newest % e->lanes, begin = e->newest - lane;
    uint8_t *out = e->target.p;
    const uint8_t *at = e->reversed.p + (e->reversed_end - 1 - first + begin) * (int64_t)letter;
    for (int64_t t = first; t < last; t++, out += row_bytes, at -= letter) {
        memcpy(out, at, row_bytes);
        memcpy(out + (size_t)(lane + 1) * letter, at - row_bytes + (size_t)(lane + 1) * letter, row_bytes);
    }
}

/* The target letters of the steps [first, last). */
static void engine_targets(const lw_cpu *c, lw_cpu_engine *e, int64_t first, int64_t last)
{
    const bool table = !e->job.matrix;
    const int width = e->range.width;
    const size_t row_bytes = table ? (size_t)c->kernels->vector_bytes : (size_t)e->lanes;
    memset(e->target.p, table ? 0x80 : 0, (size_t)(last - first) * row_bytes);
    for (int lane = 0; lane < (e->job.wave ? e->lanes : e->n_items); lane++) {
        const lw_cpu_item *it = &e->items[e->job.wave ? 0 : lane];
        int64_t shift = e->job.wave ? lane : 0;
        int64_t from = first > shift ? first : shift, to = last < it->n + shift ? last : it->n + shift;
        for (int64_t t = from; t < to; t++) {
            uint8_t code = it->target[t - shift];
            if (table)
                lw_cpu_put(e->target.p + (size_t)(t - first) * row_bytes, width, lane, target_index(code));
            else
                e->target.p[(size_t)(t - first) * row_bytes + (size_t)lane] = code;
        }
    }
}

/* Runs the steps [first, last) in pieces; after each piece looks(arg, e, piece first, piece last), if there
 * is one, sees best and best_row. With directions, all steps must fit e->directions. */
void lw_cpu_engine_run(const lw_cpu *c, lw_cpu_engine *e, int64_t first, int64_t last, bool directions,
                       void (*look)(void *arg, const lw_cpu_engine *e, int64_t first, int64_t last),
                       void *arg)
{
    const int width = e->range.width;
    const size_t vector = (size_t)c->kernels->vector_bytes;
    for (int64_t t = first, to; t < last; t = to) {
        to = last - t < LW_CPU_STEPS ? last : t + LW_CPU_STEPS;
        if (e->job.banded)
            to = lw_cpu_at_most(take_turns(c, e, t, t == first), to);
        if (e->job.banded)
            band_targets(e, t, to);
        else
            engine_targets(c, e, t, to);
        e->job.best = look ? e->best.p : NULL;
        e->job.best_row = look ? e->best.p + LW_CPU_STEPS * vector : NULL;
        e->job.directions =
            directions
                ? e->directions.p + (size_t)(t - first) * lw_cpu_direction_vectors(&e->job, width) * vector
                : NULL;
        c->kernels->pairs[width](&e->job, t, to);
        if (look)
            look(arg, e, t, to);
    }
}

int lw_cpu_batch_of(const lw_cpu *c, const lw_cpu_item *items, int64_t n)
{
    if (lw_cpu_is_long(&items[0]))
        return 1;
    int32_t rows;
    int take = 1;
    while (take < n && !lw_cpu_is_long(&items[take]) &&
           take < lw_cpu_lane_count(c, lw_cpu_plan_range(c, items, take + 1, false, &rows).width))
        take++;
    return take;
}

int lw_cpu_compare_items(const void *a, const void *b)
{
    const lw_cpu_item *x = a, *y = b;
    int64_t p = (int64_t)x->m * x->n, q = (int64_t)y->m * y->n;
    if (p != q)
        return p > q ? -1 : 1;
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

int lw_cpu_compare_sizes(const void *a, const void *b)
{
    const lw_cpu_sized *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

int64_t lw_cpu_chunk_of(const lw_cpu *c, int64_t n)
{
    int64_t chunk = n / (8 * (int64_t)c->n_workers) + 1;
    return chunk < 64 ? 64 : chunk > 4096 ? 4096 : chunk;
}
