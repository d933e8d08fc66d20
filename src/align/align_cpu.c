/* align_cpu.c - the CPU backend: vectors of pairs, threads over groups of them.
 *
 * place() scores groups of queries, one per lane and each strand a lane of its own, against every reference
 * (lw_cpu_kernels.score), and lets align_select.c turn the block maxima into placements; the few blocks it
 * asks for are scored again as pairs (lw_cpu_kernels.pairs), as are pair_ends() and trace(). A trace first
 * tries the path without gaps, which needs no matrix. */
#include "align/align_backend.h"

#include <stdlib.h>
#include <string.h>

#include "align/align_cpu_kernels.h"
#include "align/align_cpu_tuning.h"
#include "align/align_order.h"
#include "align/align_select.h"
#include "common/cpu.h"
#include "common/fail.h"

/* ---- memory ------------------------------------------------------------------------------------------ */

/* A block of vector memory that grows and does not keep its content. */
typedef struct buffer {
    uint8_t *p;
    size_t size;
} buffer;

static lw_status need(buffer *b, size_t size, lw_error *err)
{
    if (size <= b->size)
        return LW_OK;
    size = (size + size / 4 + LW_CPU_ALIGN) & ~(size_t)(LW_CPU_ALIGN - 1);
    free(b->p);
    b->size = 0;
    b->p = aligned_alloc(LW_CPU_ALIGN, size);
    if (!b->p)
        return lw_fail_memory(err, size);
    b->size = size;
    return LW_OK;
}

/* ---- number ranges ------------------------------------------------------------------------------------- */

/* How scores are held in unsigned lanes. */
typedef struct range {
    int width; /* 0, 1, 2: 8, 16, 32 bits */
    uint32_t zero;
    lw_cpu_gaps gaps;
    int32_t lowest; /* matrix entries below count as this */
} range;

static int64_t at_most(int64_t x, int64_t bound)
{
    return x < bound ? x : bound;
}

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
 * subtracted before a maximum is taken.
 *
 * With two-piece gaps all of this holds for the D and I of either piece: each lies between some H and S. A
 * piece whose penalties are cut off never gives a score above 0. A gap costs the less of two prices, so the
 * price of everything by the cheaper piece bounds H, while the penalty subtracted last may be that of either.
 */
static range make_range(const lw_scoring *sc, lw_mode mode, int64_t rows, int64_t columns, int64_t pairs)
{
    range r = {.gaps = {.pieces = sc->two_piece ? 2 : 1,
                        .border_open = {sc->gap_open, sc->gap_open2},
                        .border_extend = {sc->gap_extend, sc->gap_extend2}}};
    const int64_t highest = sc->max_score > 0 ? pairs * sc->max_score : 0;
    int64_t lowest = sc->min_score < 0 ? -(int64_t)sc->min_score : 0, everything = INT64_MAX;
    if (mode == LW_LOCAL)
        lowest = at_most(lowest, highest);
    int64_t zero = lowest;
    for (int p = 0; p < r.gaps.pieces; p++) {
        const int64_t open = r.gaps.border_open[p], extend = r.gaps.border_extend[p],
                      most = mode == LW_LOCAL ? highest : INT64_MAX;
        r.gaps.open_extend[p] = (uint32_t)at_most(open + extend, most);
        r.gaps.extend[p] = (uint32_t)at_most(extend, most);
        zero = r.gaps.open_extend[p] > zero ? r.gaps.open_extend[p] : zero;
        everything = at_most(mode == LW_GLOBAL ? 2 * open + (rows + columns) * extend : open + rows * extend,
                             everything);
    }
    if (mode != LW_LOCAL)
        zero += everything + 1;
    r.width = zero + highest < 1 << 8 ? 0 : zero + highest < 1 << 16 ? 1 : 2;
    r.zero = (uint32_t)zero;
    r.lowest = (int32_t)-lowest;
    return r;
}

/* ---- context ---------------------------------------------------------------------------------------------
 */

/* One pair to be scored or traced. */
typedef struct item {
    const uint8_t *query, *target;
    int32_t m, n;
    int32_t tag; /* the caller's */
} item;

/* A pairs job with its memory, loaded with a batch of items or with one item as a wave. */
typedef struct engine {
    lw_cpu_pairs_job job;
    range range;
    int lanes, n_items;
    const item *items;
    int64_t steps;
    int16_t matrix[LW_MAX_LETTERS * LW_MAX_LETTERS]; /* by target letter, nothing below range.lowest */
    int8_t narrow[LW_MAX_LETTERS * LW_MAX_LETTERS];  /* the same in bytes, where they fit */
    const uint8_t *lane_profile[LW_CPU_MAX_LANES];
    buffer profile, query, target, may_end, state, gathered, best, directions, saved;
} engine;

typedef struct worker {
    engine engine;
    buffer profile, index, h, d, border, maxima, top, active, codes, items, selects, exact;
} worker;

typedef struct cpu {
    lw_align_setup setup;
    const lw_cpu_kernels *kernels;
    bool small_alphabet; /* lookups by table of 4 x 4 */
    int16_t transposed[LW_MAX_LETTERS * LW_MAX_LETTERS];
    int32_t row_best[LW_MAX_LETTERS]; /* most that a query letter can score, at least 0 */
    lw_word_index words;
    lw_block_map map;
    int64_t *first_block;
    int32_t longest_ref;
    int n_workers;
    worker *workers;
} cpu;

static const lw_cpu_kernels *choose_kernels(unsigned usable)
{
    static const lw_cpu_kernels *const kernels[LW_ISA_COUNT] = {
#if defined(__x86_64__)
        [LW_ISA_AVX512BW] = &lw_cpu_kernels_avx512bw,
        [LW_ISA_AVX2] = &lw_cpu_kernels_avx2,
        [LW_ISA_SSE41] = &lw_cpu_kernels_sse41,
#elif defined(__aarch64__)
        [LW_ISA_NEON] = &lw_cpu_kernels_neon,
#endif
        [LW_ISA_PLAIN] = &lw_cpu_kernels_plain,
    };
    for (int isa = 0; isa < LW_ISA_PLAIN; isa++)
        if (kernels[isa] && (usable >> isa & 1))
            return kernels[isa];
    return kernels[LW_ISA_PLAIN];
}

/* Whether a table of the first four letters and one number for all that concerns the fifth say everything. */
static bool fits_table(const lw_scoring *sc)
{
    int32_t lowest = sc->min_score < 0 ? sc->min_score : 0; /* 0: what stands for no letter in a profile */
    if (sc->n_letters > 5 || (int64_t)sc->max_score - lowest > 255)
        return false;
    for (int q = 0; q < sc->n_letters; q++)
        for (int t = 0; t < sc->n_letters; t++)
            if ((q == 4 || t == 4) && sc->score[q * LW_MAX_LETTERS + t] != sc->score[4 * LW_MAX_LETTERS + 4])
                return false;
    return true;
}

static void cpu_close(void *context)
{
    cpu *c = context;
    if (!c)
        return;
    for (int w = 0; c->workers && w < c->n_workers; w++) {
        worker *k = &c->workers[w];
        buffer *all[] = {&k->engine.profile,
                         &k->engine.query,
                         &k->engine.target,
                         &k->engine.may_end,
                         &k->engine.state,
                         &k->engine.gathered,
                         &k->engine.best,
                         &k->engine.directions,
                         &k->engine.saved,
                         &k->profile,
                         &k->index,
                         &k->h,
                         &k->d,
                         &k->border,
                         &k->maxima,
                         &k->top,
                         &k->active,
                         &k->codes,
                         &k->items,
                         &k->selects,
                         &k->exact};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            free(all[i]->p);
    }
    free(c->workers);
    free(c->first_block);
    free(c->words.at);
    free(c);
}

static lw_status cpu_open(const lw_align_backend *self, void **context, const lw_align_setup *setup,
                          lw_error *err)
{
    (void)self;
    unsigned usable;
    LW_TRY(lw_isa_usable(&usable, err));
    cpu *c = calloc(1, sizeof *c);
    if (!c)
        return lw_fail_memory(err, sizeof *c);
    c->setup = *setup;
    c->kernels = choose_kernels(usable);
    c->small_alphabet = fits_table(setup->scoring);
    for (int q = 0; q < LW_MAX_LETTERS; q++)
        for (int t = 0; t < LW_MAX_LETTERS; t++)
            c->transposed[t * LW_MAX_LETTERS + q] = setup->scoring->score[q * LW_MAX_LETTERS + t];
    for (int q = 0; q < setup->scoring->n_letters; q++)
        for (int t = 0; t < setup->scoring->n_letters; t++)
            if (setup->scoring->score[q * LW_MAX_LETTERS + t] > c->row_best[q])
                c->row_best[q] = setup->scoring->score[q * LW_MAX_LETTERS + t];
    c->n_workers = lw_pool_threads(setup->pool);
    c->workers = calloc((size_t)c->n_workers, sizeof *c->workers);
    size_t n_refs = setup->refs ? (size_t)setup->refs->n : 0;
    c->first_block = malloc((n_refs + 1) * sizeof *c->first_block);
    if (!c->workers || !c->first_block) {
        cpu_close(c);
        return lw_fail_memory(err, (n_refs + 1) * sizeof *c->first_block);
    }
    if (setup->refs) {
        lw_block_map_make(&c->map, setup->refs, setup->mode, LW_CPU_BLOCKS, c->first_block);
        for (size_t r = 0; r < n_refs; r++)
            if (setup->refs->len[r] > c->longest_ref)
                c->longest_ref = setup->refs->len[r];
        lw_status status = lw_word_index_make(&c->words, setup->scoring, setup->refs, err);
        if (status != LW_OK) {
            cpu_close(c);
            return status;
        }
    }
    *context = c;
    return LW_OK;
}

/* ---- pairs engine
 * ------------------------------------------------------------------------------------------ */

static int64_t lane_count(const cpu *c, int width)
{
    return c->kernels->vector_bytes >> width;
}

static int32_t round_rows(int64_t rows)
{
    return (int32_t)((rows + LW_CPU_ROW_ROUND - 1) / LW_CPU_ROW_ROUND * LW_CPU_ROW_ROUND);
}

/* Puts x into lane `lane` of the vector at p. */
static void put(uint8_t *p, int width, int64_t lane, uint32_t x)
{
    if (width == 0)
        p[lane] = (uint8_t)x;
    else if (width == 1)
        ((uint16_t *)p)[lane] = (uint16_t)x;
    else
        ((uint32_t *)p)[lane] = x;
}

static uint32_t get(const uint8_t *p, int width, int64_t lane)
{
    return width == 0 ? p[lane] : width == 1 ? ((const uint16_t *)p)[lane] : ((const uint32_t *)p)[lane];
}

/* Lookup indices: query | target is query letter << 2 | target letter in the low byte, or has bit 7 set where
 * a fifth letter takes part; the bytes above have bit 7 set and so take those of `other`, which are 0. */
static uint32_t query_index(uint8_t code)
{
    return 0x80808000u | (code < 4 ? (uint32_t)code << 2 : 0x80u);
}

static uint32_t target_index(uint8_t code)
{
    return code < 4 ? code : 0x80u;
}

/* The range for items, and whether they are one wave. `rows` becomes the rows per lane. */
static range plan_range(const cpu *c, const item *items, int n, bool wave, int32_t *rows)
{
    int32_t m = 0, columns = 0, pairs = 0;
    for (int k = 0; k < n; k++) {
        int32_t shorter = items[k].m < items[k].n ? items[k].m : items[k].n;
        m = items[k].m > m ? items[k].m : m;
        columns = items[k].n > columns ? items[k].n : columns;
        pairs = shorter > pairs ? shorter : pairs;
    }
    range r = {0};
    for (int width = 0; width < 3; width++) {
        int64_t lanes = lane_count(c, width);
        *rows = wave ? round_rows((m + lanes - 1) / lanes) : round_rows(m);
        r = make_range(c->setup.scoring, c->setup.mode, wave ? *rows * lanes : *rows, columns, pairs);
        /* best_row must fit a lane */
        if (r.width <= width && (width == 2 || *rows < 1 << (8 << width))) {
            r.width = width;
            break;
        }
    }
    return r;
}

/* Vectors of a job's state, and of directions that a step leaves. */
static size_t state_vectors(const lw_cpu_pairs_job *job)
{
    return (size_t)(1 + job->gaps.pieces) * (size_t)job->rows + 2 + (size_t)job->gaps.pieces;
}

static size_t direction_vectors(const lw_cpu_pairs_job *job, int width)
{
    return ((size_t)job->rows * (size_t)job->gaps.pieces) >> (width + 1);
}

/* Fills e->narrow and says whether profiles of all queries are worth their memory. */
static bool takes_profiles(const cpu *c, engine *e, int64_t profile_bytes)
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
static lw_status load_profiles(const cpu *c, engine *e, size_t letter, lw_error *err)
{
    const int n = e->job.wave ? 1 : e->n_items, n_letters = c->setup.scoring->n_letters;
    LW_TRY(need(&e->query, letter, err));
    LW_TRY(need(&e->profile, (size_t)n * (size_t)n_letters * letter, err));
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
        const size_t k = lane < n ? (size_t)lane : 0, band = lane < e->lanes ? (size_t)lane : 0;
        e->lane_profile[lane] = e->job.wave ? e->profile.p + band * (size_t)e->job.rows
                                            : e->profile.p + k * (size_t)n_letters * letter;
    }
    e->job.profile = e->lane_profile;
    e->job.profile_letter = letter;
    return LW_OK;
}

static lw_status engine_load(const cpu *c, engine *e, const item *items, int n, bool wave, lw_error *err)
{
    const lw_scoring *sc = c->setup.scoring;
    lw_cpu_pairs_job *job = &e->job;
    int32_t rows;
    e->range = plan_range(c, items, n, wave, &rows);
    e->items = items;
    e->n_items = n;
    const int width = e->range.width, vector = c->kernels->vector_bytes;
    e->lanes = (int)lane_count(c, width);
    *job = (lw_cpu_pairs_job){.mode = c->setup.mode,
                              .wave = wave,
                              .rows = rows,
                              .zero = e->range.zero,
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
    /* whole vectors of rows, and one behind the last band */
    const size_t letter =
        ((size_t)rows * (wave ? (size_t)e->lanes : 1) / (size_t)vector + 2) * (size_t)vector;
    const bool profiles =
        job->matrix && takes_profiles(c, e, (int64_t)letter * sc->n_letters * (wave ? 1 : n));
    if (profiles)
        LW_TRY(load_profiles(c, e, letter, err));
    else
        LW_TRY(need(&e->query, (size_t)rows * row_bytes, err));
    LW_TRY(need(&e->may_end, (size_t)rows * (size_t)vector, err));
    LW_TRY(need(&e->state, state_vectors(job) * (size_t)vector, err));
    LW_TRY(need(&e->target, (size_t)LW_CPU_STEPS * row_bytes, err));
    LW_TRY(need(&e->best, 2 * (size_t)LW_CPU_STEPS * (size_t)vector, err));
    if (job->matrix)
        LW_TRY(need(&e->gathered, ((size_t)rows + (size_t)vector) * (size_t)vector, err));
    job->query = e->query.p;
    job->target = e->target.p;
    job->may_end = e->may_end.p;
    job->state = e->state.p;
    job->gathered = e->gathered.p;

    memset(e->may_end.p, 0, (size_t)rows * (size_t)vector);
    if (!profiles)
        memset(e->query.p, job->matrix ? 0 : 0x80, (size_t)rows * row_bytes);
    e->steps = 0;
    for (int lane = 0; lane < (wave ? e->lanes : n); lane++) {
        const item *it = &items[wave ? 0 : lane];
        int64_t from = wave ? (int64_t)lane * rows : 0;
        int64_t take = it->m - from < rows ? it->m - from : rows;
        for (int64_t i = 0; i < take; i++) {
            uint8_t code = it->query[from + i];
            if (job->matrix && !profiles)
                e->query.p[(size_t)i * row_bytes + (size_t)lane] = code;
            else if (!job->matrix)
                put(e->query.p + (size_t)i * row_bytes, width, lane, query_index(code));
            if (c->setup.mode == LW_LOCAL || from + i == it->m - 1)
                put(e->may_end.p + (size_t)i * (size_t)vector, width, lane, ~0u);
        }
        if (take > 0 && it->n + (wave ? lane : 0) > e->steps)
            e->steps = it->n + (wave ? lane : 0);
    }
    c->kernels->pairs_begin[width](job);
    return LW_OK;
}

/* The target letters of the steps [first, last). */
static void engine_targets(const cpu *c, engine *e, int64_t first, int64_t last)
{
    const bool table = !e->job.matrix;
    const int width = e->range.width;
    const size_t row_bytes = table ? (size_t)c->kernels->vector_bytes : (size_t)e->lanes;
    memset(e->target.p, table ? 0x80 : 0, (size_t)(last - first) * row_bytes);
    for (int lane = 0; lane < (e->job.wave ? e->lanes : e->n_items); lane++) {
        const item *it = &e->items[e->job.wave ? 0 : lane];
        int64_t shift = e->job.wave ? lane : 0;
        int64_t from = first > shift ? first : shift, to = last < it->n + shift ? last : it->n + shift;
        for (int64_t t = from; t < to; t++) {
            uint8_t code = it->target[t - shift];
            if (table)
                put(e->target.p + (size_t)(t - first) * row_bytes, width, lane, target_index(code));
            else
                e->target.p[(size_t)(t - first) * row_bytes + (size_t)lane] = code;
        }
    }
}

/* Runs the steps [first, last) in pieces; after each piece looks(arg, e, piece first, piece last), if there
 * is one, sees best and best_row. With directions, all steps must fit e->directions. */
static void engine_run(const cpu *c, engine *e, int64_t first, int64_t last, bool directions,
                       void (*look)(void *arg, const engine *e, int64_t first, int64_t last), void *arg)
{
    const int width = e->range.width;
    const size_t vector = (size_t)c->kernels->vector_bytes;
    for (int64_t t = first; t < last; t += LW_CPU_STEPS) {
        int64_t to = last - t < LW_CPU_STEPS ? last : t + LW_CPU_STEPS;
        engine_targets(c, e, t, to);
        e->job.best = look ? e->best.p : NULL;
        e->job.best_row = look ? e->best.p + LW_CPU_STEPS * vector : NULL;
        e->job.directions =
            directions ? e->directions.p + (size_t)(t - first) * direction_vectors(&e->job, width) * vector
                       : NULL;
        c->kernels->pairs[width](&e->job, t, to);
        if (look)
            look(arg, e, t, to);
    }
}

/* ---- ends of pairs ---------------------------------------------------------------------------------------
 */

/* The best end cell of each item so far: raw lane values, 0: none. */
typedef struct end_cell {
    uint32_t raw;
    int64_t column, row; /* 0-based */
} end_cell;

static bool better(const end_cell *a, const end_cell *b)
{
    if (a->raw != b->raw)
        return a->raw > b->raw;
    return a->column != b->column ? a->column < b->column : a->row < b->row;
}

static void look_for_ends(void *arg, const engine *e, int64_t first, int64_t last)
{
    end_cell *ends = arg;
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
            uint32_t raw = get(e->job.best + (size_t)(t - first) * vector, width, lane);
            if (raw < ends[k].raw || raw == 0)
                continue;
            end_cell found = {.raw = raw,
                              .column = t - shift,
                              .row = get(e->job.best_row + (size_t)(t - first) * vector, width, lane) +
                                     shift * e->job.rows};
            if (better(&found, &ends[k]))
                ends[k] = found;
        }
    }
}

static bool is_long(const item *it)
{
    return (int64_t)it->m * it->n > LW_CPU_WAVE_CELLS;
}

/* How many of the items from the first on make one batch: as many as there are lanes, none of them long. */
static int batch_of(const cpu *c, const item *items, int64_t n)
{
    if (is_long(&items[0]))
        return 1;
    int32_t rows;
    int take = 1;
    while (take < n && !is_long(&items[take]) &&
           take < lane_count(c, plan_range(c, items, take + 1, false, &rows).width))
        take++;
    return take;
}

static int compare_items(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int64_t p = (int64_t)x->m * x->n, q = (int64_t)y->m * y->n;
    if (p != q)
        return p > q ? -1 : 1;
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

/* Copies a sequence, or its reverse complement. */
static void take_strand(uint8_t *out, const uint8_t *codes, int32_t n, bool reverse, const lw_scoring *sc)
{
    if (n > 0 && !reverse)
        memcpy(out, codes, (size_t)n);
    else
        for (int32_t i = 0; i < n; i++)
            out[i] = sc->complement[codes[n - 1 - i]];
}

typedef struct ends_call {
    cpu *c;
    const lw_seqs *queries, *targets;
    const int64_t *order;
    int64_t chunk;
    lw_hit *hits;
} ends_call;

static int64_t gap_score(const lw_scoring *sc, int64_t letters)
{
    if (letters == 0)
        return 0;
    const int64_t first = sc->gap_open + letters * sc->gap_extend,
                  second = sc->gap_open2 + letters * sc->gap_extend2;
    return -(sc->two_piece && second < first ? second : first);
}

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
    cpu *c = call->c;
    const lw_align_setup *setup = &c->setup;
    const lw_scoring *sc = setup->scoring;
    worker *k = &c->workers[w];
    if (lw_stopped(setup->host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    int64_t first = t * call->chunk,
            last = first + call->chunk < call->queries->n ? first + call->chunk : call->queries->n;
    size_t letters = 0;
    for (int64_t o = first; o < last; o++)
        letters += (size_t)call->queries->len[call->order[o]];
    LW_TRY(need(&k->codes, letters, err));
    LW_TRY(need(&k->items, (size_t)(last - first) * sizeof(item), err));
    for (int reverse = 0; reverse < 2; reverse++) {
        if (!(setup->strands & (reverse ? LW_REVERSE : LW_FORWARD)))
            continue;
        item *items = (item *)k->items.p;
        uint8_t *codes = k->codes.p;
        int64_t n = 0;
        for (int64_t o = first; o < last; o++) {
            int64_t i = call->order[o];
            int32_t rows = call->queries->len[i], columns = call->targets->len[i];
            if (!reverse || !(setup->strands & LW_FORWARD))
                call->hits[i] = (lw_hit){.target = -1};
            if (rows == 0 || columns == 0) {
                if (setup->mode == LW_GLOBAL)
                    keep_better_end(setup, &call->hits[i], (int32_t)i, gap_score(sc, rows + (int64_t)columns),
                                    columns, rows, reverse);
                else if (setup->mode == LW_SEMIGLOBAL)
                    keep_better_end(setup, &call->hits[i], (int32_t)i, gap_score(sc, rows), 0, rows, reverse);
                continue;
            }
            take_strand(codes, call->queries->codes + call->queries->start[i], rows, reverse, sc);
            items[n++] = (item){.query = codes,
                                .target = call->targets->codes + call->targets->start[i],
                                .m = rows,
                                .n = columns,
                                .tag = (int32_t)i};
            codes += rows;
        }
        for (int64_t at = 0; at < n;) {
            int take = batch_of(c, items + at, n - at);
            end_cell ends[LW_CPU_MAX_LANES];
            memset(ends, 0, sizeof ends);
            LW_TRY(engine_load(c, &k->engine, items + at, take, is_long(&items[at]), err));
            engine_run(c, &k->engine, 0, k->engine.steps, false, look_for_ends, ends);
            for (int x = 0; x < take; x++) {
                const item *it = &items[at + x];
                lw_hit *hit = &call->hits[it->tag];
                if (setup->mode == LW_SEMIGLOBAL) /* the cell before the first column */
                    keep_better_end(setup, hit, it->tag, gap_score(sc, it->m), 0, it->m, reverse);
                if (ends[x].raw)
                    keep_better_end(setup, hit, it->tag, (int64_t)ends[x].raw - k->engine.range.zero,
                                    ends[x].column + 1, ends[x].row + 1, reverse);
            }
            at += take;
        }
    }
    return LW_OK;
}

/* Pairs by size, largest first, so that lanes and threads finish together. */
typedef struct sized {
    int64_t size, index;
} sized;

static int compare_sizes(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Tasks per thread: several, so that the last ones are short, but of many items each. */
static int64_t chunk_of(const cpu *c, int64_t n)
{
    int64_t chunk = n / (8 * (int64_t)c->n_workers) + 1;
    return chunk < 64 ? 64 : chunk > 4096 ? 4096 : chunk;
}

static lw_status cpu_pair_ends(void *context, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                               lw_error *err)
{
    cpu *c = context;
    int64_t n = queries->n;
    if (n == 0)
        return LW_OK;
    sized *sizes = malloc((size_t)n * sizeof *sizes);
    int64_t *order = malloc((size_t)n * sizeof *order);
    if (!sizes || !order) {
        free(sizes), free(order);
        return lw_fail_memory(err, (size_t)n * sizeof *sizes);
    }
    for (int64_t i = 0; i < n; i++)
        sizes[i] = (sized){.size = (int64_t)queries->len[i] * targets->len[i], .index = i};
    qsort(sizes, (size_t)n, sizeof *sizes, compare_sizes);
    for (int64_t i = 0; i < n; i++)
        order[i] = sizes[i].index;
    int64_t longest = sizes[0].size;
    free(sizes);
    ends_call call = {.c = c,
                      .queries = queries,
                      .targets = targets,
                      .order = order,
                      .chunk = longest > LW_CPU_WAVE_CELLS ? 1 : chunk_of(c, n),
                      .hits = hits};
    lw_status status = lw_pool_for(c->setup.pool, (n + call.chunk - 1) / call.chunk, ends_task, &call, err);
    free(order);
    return status;
}

/* ---- trace -----------------------------------------------------------------------------------------------
 */

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
    int64_t border =
        k->mode == LW_LOCAL || (k->mode == LW_SEMIGLOBAL && k->i == 0) ? 0 : gap_score(k->sc, k->i + k->j);
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
static lw_status walk_steps(walk *k, const engine *e, int lane_of_item, int64_t first, bool *done,
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
            lane = row / rows;
            row -= lane * rows;
            step += lane;
        }
        if (step < first)
            return LW_OK;
        uint32_t lane_bits = get(
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

/* Target letters that a path of the query's m letters may span if it scores `score` or more: m and the
 * deletions that still leave the score. The proof is with lw_trace_window(); here each letter counts with the
 * most it can score itself. -1: no bound. */
static int64_t span_of(const cpu *c, const uint8_t *query, int64_t m, int64_t score)
{
    int64_t price = -score;
    for (int64_t i = 0; i < m; i++)
        price += c->row_best[query[i]];
    const int64_t letters = lw_gap_letters(c->setup.scoring, price);
    return letters < 0 ? -1 : m + letters;
}

typedef struct trace_call {
    cpu *c;
    const lw_seqs *queries, *targets;
    const lw_trace_task *tasks;
    lw_path *paths;
    int64_t n, chunk;
    lw_cigars *parts; /* of each chunk */
} trace_call;

static walk begin_walk(const cpu *c, const item *it, int32_t score, lw_cigars *cigars)
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

static lw_status trace_batch(const cpu *c, worker *w, const item *items, int n, const trace_call *call,
                             lw_cigars *cigars, lw_error *err)
{
    engine *e = &w->engine;
    LW_TRY(engine_load(c, e, items, n, false, err));
    LW_TRY(
        need(&e->directions,
             (size_t)e->steps * direction_vectors(&e->job, e->range.width) * (size_t)c->kernels->vector_bytes,
             err));
    engine_run(c, e, 0, e->steps, true, NULL, NULL);
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
static lw_status trace_steps(const cpu *c, engine *e, walk *k, int64_t first, int64_t last, bool *done,
                             lw_error *err)
{
    const size_t vector = (size_t)c->kernels->vector_bytes, state_bytes = state_vectors(&e->job) * vector,
                 step_bytes = direction_vectors(&e->job, e->range.width) * vector;
    int64_t room = (int64_t)(LW_CPU_TRACE_BYTES / step_bytes);
    room = room < 1 ? 1 : room;
    if (last - first <= room) {
        LW_TRY(need(&e->directions, (size_t)(last - first) * step_bytes, err));
        engine_run(c, e, first, last, true, NULL, NULL);
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
            engine_run(c, e, first + p * piece, first + (p + 1) * piece, false, NULL, NULL);
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

static lw_status trace_wave(const cpu *c, worker *w, const item *it, const trace_call *call,
                            lw_cigars *cigars, lw_error *err)
{
    engine *e = &w->engine;
    const lw_trace_task *task = &call->tasks[it->tag];
    LW_TRY(engine_load(c, e, it, 1, true, err));
    walk k = begin_walk(c, it, task->score, cigars);
    bool done = false;
    LW_TRY(trace_steps(c, e, &k, 0, e->steps, &done, err));
    walk_finish(&k, &call->paths[it->tag], task->tbegin + task->tlen - it->n);
    return LW_OK;
}

static lw_status trace_task(void *arg, int64_t t, int w, lw_error *err)
{
    const trace_call *call = arg;
    cpu *c = call->c;
    const lw_scoring *sc = c->setup.scoring;
    worker *k = &c->workers[w];
    lw_cigars *cigars = &call->parts[t];
    if (lw_stopped(c->setup.host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    int64_t first = t * call->chunk, last = first + call->chunk < call->n ? first + call->chunk : call->n;
    size_t letters = 0;
    for (int64_t x = first; x < last; x++)
        letters += (size_t)call->tasks[x].qlen;
    LW_TRY(need(&k->codes, letters, err));
    LW_TRY(need(&k->items, (size_t)(last - first) * sizeof(item), err));
    item *items = (item *)k->items.p;
    uint8_t *codes = k->codes.p;
    int64_t n = 0;
    for (int64_t x = first; x < last; x++) {
        const lw_trace_task *task = &call->tasks[x];
        const uint8_t *query = call->queries->codes + call->queries->start[task->query];
        /* the first qlen letters of the strand */
        if (task->reverse)
            query += call->queries->len[task->query] - task->qlen;
        take_strand(codes, query, task->qlen, task->reverse, sc);
        item it = {.query = codes,
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
        int64_t span = c->setup.mode == LW_GLOBAL ? -1 : span_of(c, codes, it.m, task->score);
        if (span >= 0 && span < it.n) {
            it.target += it.n - span;
            it.n = (int32_t)span;
        }
        items[n++] = it;
        codes += it.m;
    }
    qsort(items, (size_t)n, sizeof *items, compare_items);
    for (int64_t at = 0; at < n;) {
        int take = batch_of(c, items + at, n - at);
        if (is_long(&items[at]))
            LW_TRY(trace_wave(c, k, &items[at], call, cigars, err));
        else
            LW_TRY(trace_batch(c, k, items + at, take, call, cigars, err));
        at += take;
    }
    return LW_OK;
}

static lw_status cpu_trace(void *context, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                           const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    cpu *c = context;
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
                       .chunk = longest > LW_CPU_WAVE_CELLS ? 1 : chunk_of(c, n)};
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

/* ---- place -----------------------------------------------------------------------------------------------
 */

typedef struct place_call {
    cpu *c;
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

static int strand_count(const cpu *c)
{
    return (c->setup.strands & LW_FORWARD ? 1 : 0) + (c->setup.strands & LW_REVERSE ? 1 : 0);
}

static range group_range(const cpu *c, int32_t longest)
{
    range r = make_range(c->setup.scoring, c->setup.mode, longest, c->longest_ref,
                         longest < c->longest_ref ? longest : c->longest_ref);
    if (r.width == 0 && c->setup.scoring->max_score > INT8_MAX) /* idle_of() needs room for one match */
        r.width = 1;
    return r;
}

/* Scores up to which rows need no gaps: what opening a gap costs, as far as one more match fits below the
 * lane's top bit (the kernel says why). */
static int64_t idle_of(const lw_scoring *sc, range r)
{
    int64_t max_score = sc->max_score > 0 ? sc->max_score : 0;
    int64_t least = r.gaps.open_extend[0];
    if (r.gaps.pieces == 2)
        least = at_most(r.gaps.open_extend[1], least);
    return at_most(least, ((int64_t)1 << ((8 << r.width) - 1)) - 1 - max_score);
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
static bool loose_enough(const cpu *c, int32_t rows, range r)
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
static int64_t group_reads(const cpu *c, const place_call *call, int64_t at, int64_t end, range *r,
                           int32_t *longest)
{
    int64_t take = lane_count(c, 0) / strand_count(c);
    for (;;) {
        take = take < end - at ? take : end - at;
        *longest = 0;
        for (int64_t x = at; x < at + take; x++)
            if (call->reads->len[call->order[x]] > *longest)
                *longest = call->reads->len[call->order[x]];
        *r = group_range(c, *longest);
        int64_t room = lane_count(c, r->width) / strand_count(c);
        if (take <= room)
            return take;
        take = room;
    }
}

/* Fills the profile from the indices of the group's letters. */
static void profile_by_lookup(const cpu *c, worker *k, int32_t rows, range r)
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
static lw_status score_group(cpu *c, worker *k, placing *reads, int64_t n, int32_t rows, range r, bool loose,
                             uint8_t *maxima, lw_error *err)
{
    const lw_align_setup *setup = &c->setup;
    const lw_scoring *sc = setup->scoring;
    const lw_seqs *refs = setup->refs;
    const size_t vector = (size_t)c->kernels->vector_bytes;
    const size_t row_bytes = (size_t)rows * vector, pieces = (size_t)r.gaps.pieces;
    const int64_t idle = idle_of(sc, r);
    LW_TRY(need(&k->profile, (size_t)sc->n_letters * row_bytes, err));
    LW_TRY(need(&k->h, row_bytes, err));
    LW_TRY(need(&k->d, pieces * row_bytes, err));
    LW_TRY(need(&k->border, row_bytes, err));
    LW_TRY(need(&k->top, (1 + pieces) * (LW_CPU_CHUNK + 1) * vector, err));
    /* tiles of equal height, so that no short one is left over */
    int32_t tiles = (rows + LW_CPU_TILE_ROWS - 1) / LW_CPU_TILE_ROWS, tile = (rows + tiles - 1) / tiles;
    LW_TRY(need(&k->active, 2 * (size_t)tiles * sizeof(int32_t), err));
    for (int32_t i = 0; i < rows; i++)
        for (size_t l = 0; l < vector >> r.width; l++) {
            int64_t border = r.zero;
            if (setup->mode == LW_GLOBAL)
                border += gap_score(sc, i + 1);
            put(k->border.p + (size_t)i * vector, r.width, (int64_t)l, (uint32_t)border);
        }
    if (c->small_alphabet) {
        LW_TRY(need(&k->index, row_bytes, err));
        for (size_t l = 0; l < vector >> r.width; l++)
            put(k->index.p, r.width, (int64_t)l, 0x80808001u);
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
                    put(k->index.p + (size_t)(skip + i) * vector, r.width, lane, query_index(codes[i]));
            for (int32_t i = 0; i < m && !c->small_alphabet; i++) {
                const int16_t *row = &sc->score[codes[i] * LW_MAX_LETTERS];
                uint8_t *p = k->profile.p + (size_t)(skip + i) * vector;
                for (int letter = 0; letter < sc->n_letters; letter++, p += row_bytes)
                    put(p, r.width, lane, (uint32_t)(row[letter] > r.lowest ? row[letter] : r.lowest));
            }
            for (int32_t i = 0; i < m && setup->mode == LW_SEMIGLOBAL; i++)
                put(k->border.p + (size_t)(skip + i) * vector, r.width, lane,
                    (uint32_t)(r.zero + gap_score(sc, i + 1)));
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
                        put(first, r.width, lane, get(k->h.p + last * vector, r.width, lane));
                        lane++;
                    }
        }
        if (lw_stopped(setup->host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    }
    return LW_OK;
}

/* Gives the columns that were asked for to their selections. */
static void look_for_columns(void *arg, const engine *e, int64_t first, int64_t last)
{
    placing *reads = arg;
    const int width = e->range.width;
    const size_t vector = (size_t)e->lanes << width;
    for (int x = 0; x < e->n_items; x++) {
        placing *read = &reads[e->items[x].tag];
        int64_t from = read->ask.first - read->window - 1, to = read->ask.last - read->window;
        for (int64_t t = from > first ? from : first; t < to && t < last; t++) {
            uint32_t raw = get(e->job.best + (size_t)(t - first) * vector, width, x);
            if (raw)
                lw_select_column(&read->select, (int32_t)(read->window + t + 1),
                                 (int32_t)(raw - e->range.zero),
                                 (int32_t)get(e->job.best_row + (size_t)(t - first) * vector, width, x) + 1);
        }
    }
}

/* The same for a wave: the lanes meet a column at different steps, so its best cell is put together first. */
typedef struct wave_columns {
    int64_t first; /* column of cell[0] */
    int64_t n;
    end_cell *cell;
} wave_columns;

static void look_for_wave_columns(void *arg, const engine *e, int64_t first, int64_t last)
{
    wave_columns *columns = arg;
    const int width = e->range.width;
    const size_t vector = (size_t)e->lanes << width;
    for (int lane = 0; lane < e->lanes; lane++) {
        int64_t from = columns->first + lane, to = from + columns->n;
        for (int64_t t = from > first ? from : first; t < to && t < last; t++) {
            end_cell found = {.raw = get(e->job.best + (size_t)(t - first) * vector, width, lane),
                              .row = get(e->job.best_row + (size_t)(t - first) * vector, width, lane) +
                                     (int64_t)lane * e->job.rows};
            if (found.raw && better(&found, &columns->cell[t - from]))
                columns->cell[t - from] = found;
        }
    }
}

static lw_status answer_wave(const cpu *c, worker *k, const item *it, placing *read, lw_error *err)
{
    engine *e = &k->engine;
    LW_TRY(engine_load(c, e, it, 1, true, err));
    int64_t first = read->ask.first > read->window ? read->ask.first - read->window - 1 : 0;
    wave_columns columns = {.first = first, .n = read->ask.last - read->window - first};
    LW_TRY(need(&e->saved, (size_t)columns.n * sizeof(end_cell), err));
    columns.cell = (end_cell *)e->saved.p;
    memset(columns.cell, 0, (size_t)columns.n * sizeof(end_cell));
    engine_run(c, e, 0, e->steps, false, look_for_wave_columns, &columns);
    for (int64_t x = 0; x < columns.n; x++)
        if (columns.cell[x].raw)
            lw_select_column(&read->select, (int32_t)(read->window + first + x + 1),
                             (int32_t)(columns.cell[x].raw - e->range.zero),
                             (int32_t)columns.cell[x].row + 1);
    return LW_OK;
}

/* Rounds of questions and answers until every selection is complete. */
static lw_status select_all(const cpu *c, worker *k, placing *reads, int64_t n, lw_error *err)
{
    const lw_align_setup *setup = &c->setup;
    const lw_seqs *refs = setup->refs;
    item *items = (item *)k->items.p;
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
                score = score < gap_score(setup->scoring, m) ? gap_score(setup->scoring, m) : score;
            int64_t span = span_of(c, read->codes[ask->place.reverse], m, score);
            read->window = span < 0 || span > ask->first ? 0 : ask->first - span;
            if (ask->first == 0) /* semiglobal: before the first column */
                lw_select_column(&read->select, 0, (int32_t)gap_score(setup->scoring, m), m);
            items[asked++] = (item){.query = read->codes[ask->place.reverse],
                                    .target = refs->codes + refs->start[ask->place.target] + read->window,
                                    .m = m,
                                    .n = (int32_t)(ask->last - read->window),
                                    .tag = (int32_t)x};
        }
        if (asked == 0)
            return LW_OK;
        qsort(items, (size_t)asked, sizeof *items, compare_items);
        for (int64_t at = 0; at < asked;) {
            int take = batch_of(c, items + at, asked - at);
            if (is_long(&items[at])) {
                LW_TRY(answer_wave(c, k, &items[at], &reads[items[at].tag], err));
            } else {
                LW_TRY(engine_load(c, &k->engine, items + at, take, false, err));
                int64_t looked = k->engine.steps; /* first column that anyone asked for */
                for (int y = 0; y < take; y++) {
                    const placing *read = &reads[items[at + y].tag];
                    int64_t column = read->ask.first - read->window - 1;
                    looked = column > looked ? looked : column < 0 ? 0 : column;
                }
                engine_run(c, &k->engine, 0, looked, false, NULL, NULL);
                engine_run(c, &k->engine, looked, k->engine.steps, false, look_for_columns, reads);
            }
            at += take;
        }
    }
}

static lw_status place_task(void *arg, int64_t t, int w, lw_error *err)
{
    const place_call *call = arg;
    cpu *c = call->c;
    const lw_align_setup *setup = &c->setup;
    worker *k = &c->workers[w];
    const size_t vector = (size_t)c->kernels->vector_bytes,
                 group_bytes = (size_t)c->map.first_block[setup->refs->n] * vector;
    /* tasks hold equal numbers of reads; groups within one are cut by width */
    int64_t per_task = (int64_t)call->groups_per_task * (lane_count(c, 0) / strand_count(c));
    int64_t first = t * per_task, last = first + per_task < call->n ? first + per_task : call->n;
    int64_t n = last - first;
    size_t letters = 0;
    for (int64_t x = first; x < last; x++)
        letters += 2 * (size_t)call->reads->len[call->order[x]];
    const size_t exact_each = setup->n_hits > 1 ? 2 * (size_t)setup->n_hits : 2;
    LW_TRY(need(&k->codes, letters, err));
    LW_TRY(need(&k->items, (size_t)n * sizeof(item), err));
    LW_TRY(need(&k->selects, (size_t)n * sizeof(placing), err));
    LW_TRY(need(&k->exact, (size_t)n * exact_each * sizeof(lw_select_exact), err));
    placing *reads = (placing *)k->selects.p;
    uint8_t *codes = k->codes.p;
    int64_t groups = 0;
    for (int64_t x = 0; x < n;) {
        range r;
        int32_t longest;
        x += group_reads(c, call, first + x, last, &r, &longest);
        groups++;
    }
    LW_TRY(need(&k->maxima, (size_t)groups * group_bytes, err));
    /* loose maxima first, where they are likely to do; then exact ones for the groups where they did not */
    for (int pass = 0; pass < 2; pass++) {
        int64_t group = 0;
        bool again = false;
        for (int64_t x = 0; x < n; group++) {
            range r;
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
                        take_strand(codes, call->reads->codes + call->reads->start[i], m, reverse,
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
    const cpu *c;
    const lw_seqs *reads;
    lw_placements *out;
    sized *keys;
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
        call->keys[i] = (sized){.size = key, .index = i};
        for (int h = 0; m == 0 && h < setup->n_hits; h++)
            call->out->hits[i * setup->n_hits + h] = (lw_hit){.target = -1};
        for (int h = 0; m == 0 && call->out->ties && h < setup->n_ties; h++)
            call->out->ties[i * setup->n_ties + h] = (lw_hit){.target = -1};
    }
    return LW_OK;
}

static lw_status cpu_place(void *context, const lw_seqs *reads, lw_placements *out, lw_error *err)
{
    cpu *c = context;
    const lw_align_setup *setup = &c->setup;
    sized *sizes = malloc(((size_t)reads->n + 1) * sizeof *sizes);
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
    qsort(sizes, (size_t)reads->n, sizeof *sizes, compare_sizes);
    int64_t n = 0; /* empty reads come last */
    for (; n < reads->n && sizes[n].size >= 0; n++)
        order[n] = sizes[n].index;
    free(sizes);
    /* two groups a task fill the lanes of the second look, where there is work enough for all threads */
    int64_t group = lane_count(c, 0) / strand_count(c);
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

const lw_align_backend lw_align_cpu = {
    .base = {.name = "cpu",
             .what = "vectors of pairs (AVX-512BW, AVX2, SSE4.1, NEON or plain C), all threads",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_cpu},
    .lanes = 1,
    .batch_letters = 8 << 20,
    .open = cpu_open,
    .place = cpu_place,
    .pair_ends = cpu_pair_ends,
    .trace = cpu_trace,
    .close = cpu_close,
};
