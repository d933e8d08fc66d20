/* search_cpu.c - the CPU search: one subject a lane, as narrow lanes as hold the scores, threads over pieces
 * of the database.
 *
 * Passes. The first one walks the whole database in chunks, for packs of queries, in the narrowest lanes that
 * the matrix fits. Where few hits are wanted it only screens: it computes the most that the scores can be
 * (search_cpu_screen.h). Subjects that may be among the best go on a list per query; the best of a list are
 * scored exactly now and then, which raises the bar, and what is left in the second pass. What the lanes
 * cannot hold (or, with a filter, what it lets through) goes on another list; the next passes walk those
 * lists, in wider lanes each time, until nothing is left: 32 bits hold everything.
 */
#include "align/search_backend.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "align/search_cpu_kernels.h"
#include "align/search_cpu_tuning.h"
#include "align/search_top.h"
#include "common/cpu.h"
#include "common/fail.h"

enum { WIDTH_8, WIDTH_16, WIDTH_32, N_WIDTHS };

typedef struct cpu {
    lw_search_setup setup;
    const lw_search_kernels *kernels;
    int narrowest;     /* first width that the matrix and the penalties fit */
    int32_t low, high; /* lowest and highest matrix entry, and 0 */
    int8_t table[LW_MAX_LETTERS][3][LW_MAX_LETTERS];
    lw_search_screen screen;
    int8_t screen_table[LW_MAX_LETTERS][3][LW_MAX_LETTERS]; /* with what the diagonal earns there */
    int32_t *chunk; /* first subject of each chunk; one more at the end */
    int64_t n_chunks;
} cpu;

/* ---- opening ------------------------------------------------------------------------------------------- */

static const lw_search_kernels *kernels_of(lw_isa isa)
{
    switch (isa) {
#if defined(__x86_64__)
    case LW_ISA_AVX512BW:
        return &lw_search_kernels_avx512bw;
    case LW_ISA_AVX2:
        return &lw_search_kernels_avx2;
    case LW_ISA_SSE41:
        return &lw_search_kernels_sse41;
#elif defined(__aarch64__)
    case LW_ISA_NEON:
        return &lw_search_kernels_neon;
#endif
    case LW_ISA_PLAIN:
        return &lw_search_kernels_plain;
    default:
        return NULL;
    }
}

/* The lane value of score 0 and where overflow begins (search_cpu_lanes.h has the reasons). */
static void set_range(const cpu *c, int width, bool gapless, int32_t *zero, int32_t *limit)
{
    static const int32_t lowest[N_WIDTHS] = {INT8_MIN, INT16_MIN, 0},
                         highest[N_WIDTHS] = {INT8_MAX, INT16_MAX, INT32_MAX};
    const lw_scoring *sc = c->setup.scoring;
    *zero = lowest[width];
    *limit = highest[width];
    if (!c->kernels->wraps || gapless || width == WIDTH_32)
        return;
    *zero += sc->gap_open + 2 * sc->gap_extend - c->low;
    *limit -= c->high - 1;
}

static void make_tables(cpu *c)
{
    const lw_scoring *sc = c->setup.scoring;
    for (int q = 0; q < sc->n_letters; q++)
        for (int t = 0; t < sc->n_letters; t++) {
            int32_t s = sc->score[q * LW_MAX_LETTERS + t];
            c->low = s < c->low ? s : c->low;
            c->high = s > c->high ? s : c->high;
        }
    for (int q = 0; q < LW_MAX_LETTERS; q++)
        for (int t = 0; t < LW_MAX_LETTERS; t++) {
            /* what lies beyond the end of a subject may not raise a score: the lowest entry does not */
            int32_t s = q < sc->n_letters && t < sc->n_letters ? sc->score[q * LW_MAX_LETTERS + t] : c->low;
            c->table[q][0][t] = (int8_t)(s & 0xff);
            c->table[q][1][t] = (int8_t)(s >> 8 & 0xff);
            c->table[q][2][t] = (int8_t)(s < 0 ? -1 : 0);
        }
    int32_t open_extend = sc->gap_open + sc->gap_extend, zero, limit;
    c->narrowest = c->low >= INT8_MIN && c->high <= INT8_MAX && open_extend <= INT8_MAX ? WIDTH_8
                   : open_extend <= INT16_MAX                                           ? WIDTH_16
                                                                                        : WIDTH_32;
    for (; c->narrowest < WIDTH_32; c->narrowest++) { /* no lane that holds next to nothing */
        enum { WORTH_WHILE = 64 };
        set_range(c, c->narrowest, false, &zero, &limit);
        if (limit - zero >= WORTH_WHILE)
            break;
    }
    if (c->narrowest != WIDTH_8)
        return;
    c->screen = c->kernels->screen_range(sc->gap_open, sc->gap_extend, c->low, c->high);
    for (int q = 0; q < LW_MAX_LETTERS; q++)
        for (int t = 0; t < LW_MAX_LETTERS; t++)
            c->screen_table[q][0][t] = (int8_t)((c->table[q][0][t] + 2 * sc->gap_extend) & 0xff);
}

/* Chunks of at least so many letters, and long enough for the longest subject of each to hide among the other
 * lanes. */
static lw_status make_chunks(cpu *c, lw_error *err)
{
    const lw_database_view *db = c->setup.database;
    int64_t capacity = 64, lanes = c->kernels->vector_bytes >> c->narrowest, n = 0;
    int32_t *chunk = malloc((size_t)capacity * sizeof *chunk);
    if (!chunk)
        return lw_fail_memory(err, (size_t)capacity * sizeof *chunk);
    int32_t at = 0;
    while (at < db->n && db->len[at] > 0) { /* empty subjects come last and score 0 */
        if (n + 2 > capacity) {
            capacity *= 2;
            int32_t *more = realloc(chunk, (size_t)capacity * sizeof *chunk);
            if (!more) {
                free(chunk);
                return lw_fail_memory(err, (size_t)capacity * sizeof *chunk);
            }
            chunk = more;
        }
        chunk[n++] = at;
        int64_t wanted = search_cpu_tuning.chunk_letters, letters = 0;
        if (wanted < lanes * db->len[at])
            wanted = lanes * db->len[at];
        for (; at < db->n && db->len[at] > 0 && letters < wanted; at++)
            letters += db->len[at];
    }
    chunk[n] = at;
    c->chunk = chunk;
    c->n_chunks = n;
    return LW_OK;
}

static void cpu_close(void *context)
{
    cpu *c = context;
    if (c)
        free(c->chunk);
    free(c);
}

static lw_status cpu_open(const lw_search_backend *self, void **context, const lw_search_setup *setup,
                          lw_error *err)
{
    (void)self;
    unsigned usable;
    LW_TRY(lw_isa_usable(&usable, err));
    cpu *c = calloc(1, sizeof *c);
    if (!c)
        return lw_fail_memory(err, sizeof *c);
    c->setup = *setup;
    for (int isa = 0; isa < LW_ISA_COUNT && !c->kernels; isa++)
        if (usable & 1u << isa)
            c->kernels = kernels_of((lw_isa)isa);
    make_tables(c);
    lw_status status = make_chunks(c, err);
    if (status != LW_OK) {
        free(c);
        return status;
    }
    *context = c;
    return LW_OK;
}

/* ---- plans ----------------------------------------------------------------------------------------------
 */

/* Memory that a worker keeps between its tasks. */
typedef struct worker {
    int64_t chunk; /* whose plan is laid out; -1: none */
    lw_search_plan plan;
    int64_t letters_capacity, events_capacity, subjects_capacity, columns_capacity, scores_capacity;
    int32_t *subjects; /* of the plan */
    int32_t *first_block;
    uint8_t *columns;
    int32_t *scores;
    _Alignas(LW_SEARCH_VEC_MAX) uint8_t profile[LW_MAX_LETTERS * LW_SEARCH_MAX_COLUMNS * LW_SEARCH_VEC_MAX];
} worker;

static lw_status reserve(void *array, int64_t *capacity, int64_t wanted, size_t each, lw_error *err)
{
    void **at = array;
    if (wanted <= *capacity && *at)
        return LW_OK;
    size_t bytes = ((size_t)wanted * each / LW_SEARCH_VEC_MAX + 1) * LW_SEARCH_VEC_MAX;
    free(*at);
    *at = aligned_alloc(LW_SEARCH_VEC_MAX, bytes);
    if (!*at) {
        *capacity = 0;
        return lw_fail_memory(err, bytes);
    }
    *capacity = wanted;
    return LW_OK;
}

static int32_t blocks_of(const cpu *c, int32_t len)
{
    return (len - 1) / c->kernels->columns + 1;
}

enum { FOUR = 4 };

/* Four letters as a number, the first one lowest. */
static uint32_t four_letters(const uint8_t codes[FOUR])
{
    return ((uint32_t)codes[0] | (uint32_t)codes[1] << 8 | (uint32_t)codes[2] << 16 |
            (uint32_t)codes[3] << 24) &
           0x1f1f1f1f;
}

/* The last letters of a subject, fewer than four or none, and pads. */
static uint32_t last_letters(const uint8_t *codes, int32_t left)
{
    uint8_t four[FOUR] = {LW_DATABASE_PAD, LW_DATABASE_PAD, LW_DATABASE_PAD, LW_DATABASE_PAD};
    for (int32_t k = 0; k < left; k++)
        four[k] = codes[k];
    return four_letters(four);
}

/* Four lanes of bytes: row l of x is a lane and becomes column l of four, as a transpose of 4 x 4 bytes. */
static void put_bytes(uint8_t *to, int vector, const uint32_t x[4])
{
    const uint32_t even = 0x00ff00ff;
    uint32_t a02 = (x[0] & even) | (x[1] & even) << 8, a13 = (x[0] >> 8 & even) | (x[1] & ~even);
    uint32_t b02 = (x[2] & even) | (x[3] & even) << 8, b13 = (x[2] >> 8 & even) | (x[3] & ~even);
    uint32_t column[FOUR] = {(a02 & 0xffff) | b02 << 16, (a13 & 0xffff) | b13 << 16,
                             a02 >> 16 | (b02 & 0xffff0000), a13 >> 16 | (b13 & 0xffff0000)};
    for (int k = 0; k < FOUR; k++)
        for (int l = 0; l < 4; l++)
            to[k * vector + l] = (uint8_t)(column[k] >> 8 * l);
}

/* Wider lanes: each of their bytes is the letter. */
static void put_wide(uint8_t *to, int vector, int width, const uint32_t x[4])
{
    for (int l = 0; l < 4; l++)
        for (int k = 0; k < FOUR; k++)
            memset(to + k * vector + (l << width), (int)(x[l] >> 8 * k & 0xff), (size_t)1 << width);
}

/* The letters of the plan, whose events tell which subject each lane has at which block. */
static void write_letters(const cpu *c, const lw_search_plan *plan, int width, const int32_t *subjects)
{
    /* Short pieces from all over the database: fetched a few subjects ahead, or every one begins with a miss.
     */
    enum { AHEAD = 12, PREFETCH_LETTERS = 1024, CACHE_LINE = 64 };
    const lw_database_view *db = c->setup.database;
    int vector = c->kernels->vector_bytes, lanes = vector >> width;
    const uint8_t *codes[LW_SEARCH_VEC_MAX] = {NULL};
    int32_t left[LW_SEARCH_VEC_MAX] = {0};
    uint8_t *to = plan->letters;
    int64_t event = 0;
    const int columns = c->kernels->columns;
    for (int64_t four = 0; four < plan->n_blocks * columns / FOUR; four++, to += FOUR * vector) {
        int64_t block = four * FOUR / columns;
        for (; event < plan->n_events && plan->events[event].block == block; event++) {
            int32_t subject = subjects[plan->events[event].next], lane = plan->events[event].lane;
            codes[lane] = db->codes + db->start[subject];
            left[lane] = db->len[subject];
            if (event + AHEAD < plan->n_events) {
                int32_t coming = subjects[plan->events[event + AHEAD].next];
                for (int32_t k = 0; k < db->len[coming] && k < PREFETCH_LETTERS; k += CACHE_LINE)
                    __builtin_prefetch(db->codes + db->start[coming] + k);
            }
        }
        for (int lane = 0; lane < lanes; lane += 4) {
            uint32_t x[4];
            for (int l = 0; l < 4; l++) {
                if (left[lane + l] >= FOUR) {
                    x[l] = four_letters(codes[lane + l]);
                    codes[lane + l] += FOUR;
                    left[lane + l] -= FOUR;
                } else {
                    x[l] = last_letters(codes[lane + l], left[lane + l]);
                    left[lane + l] = 0;
                }
            }
            if (width == WIDTH_8)
                put_bytes(to + lane, vector, x);
            else
                put_wide(to + (lane << width), vector, width, x);
        }
    }
}

/* Lays n subjects out over the lanes: each goes to the lane that is free first. */
static lw_status lay_out(const cpu *c, worker *w, int width, const int32_t *subjects, int64_t n,
                         lw_error *err)
{
    const lw_database_view *db = c->setup.database;
    int vector = c->kernels->vector_bytes, lanes = vector >> width;
    lw_search_plan *plan = &w->plan;
    int32_t free_at[LW_SEARCH_VEC_MAX] = {0}, last[LW_SEARCH_VEC_MAX];
    LW_TRY(reserve(&plan->events, &w->events_capacity, n + lanes, sizeof *plan->events, err));
    plan->n_events = 0;
    for (int lane = 0; lane < lanes; lane++)
        last[lane] = -1;
    for (int64_t i = 0; i < n; i++) {
        int lane = 0;
        for (int l = 1; l < lanes; l++)
            lane = free_at[l] < free_at[lane] ? l : lane;
        plan->events[plan->n_events++] =
            (lw_search_event){.block = free_at[lane], .lane = lane, .done = last[lane], .next = (int32_t)i};
        last[lane] = (int32_t)i;
        free_at[lane] += blocks_of(c, db->len[subjects[i]]);
    }
    plan->n_blocks = 0;
    for (int lane = 0; lane < lanes; lane++)
        plan->n_blocks = free_at[lane] > plan->n_blocks ? free_at[lane] : plan->n_blocks;
    int64_t bytes = plan->n_blocks * c->kernels->columns * vector;
    LW_TRY(reserve(&plan->letters, &w->letters_capacity, bytes, 1, err));
    write_letters(c, plan, width, subjects);
    for (int lane = 0; lane < lanes; lane++)
        plan->events[plan->n_events++] =
            (lw_search_event){.block = (int32_t)plan->n_blocks, .lane = lane, .done = last[lane], .next = -1};
    return LW_OK;
}

/* ---- one search() call ------------------------------------------------------------------------------------
 */

/* Consecutive queries that are scored together. */
typedef struct pack {
    int32_t first, n; /* within `queries` of the call */
    int32_t letters;
} pack;

typedef struct list {
    lw_search_hit *entry; /* score: the most that it can be */
    int64_t n, capacity;
} list;

/* Part of a list: a task of the later passes. */
typedef struct piece {
    int32_t query;
    int64_t from, to;
} piece;

/* Which subjects of a query are worth an exact score. */
typedef struct screening {
    bool on;
    int64_t seen, overflows; /* subjects screened, and how many of them had no bound */
    int64_t wait;            /* so many candidates call for a round of exact scores, which raise the bar */
    list candidates;
} screening;

typedef enum { EXACT, SCREEN, FILTER } form; /* of a task's kernel */

typedef struct search_call {
    const cpu *cpu;
    const lw_search_request *request;
    int width; /* of this pass */
    bool filtering;
    worker *workers;
    int32_t *query; /* those that are not empty, longest first */
    int64_t n_queries;
    pack *packs;
    int64_t n_packs;
    lw_top *tops; /* by query of the request, as everything below */
    screening *screens;
    list *lists, *later; /* subjects of this pass and of the next */
    piece *pieces;
    int64_t n_pieces;
    pthread_mutex_t lock; /* guards tops, screens, later and what follows */
    int64_t filtered, rescued;
} search_call;

static lw_status put_on_list(list *l, int32_t subject, int32_t at_most, lw_error *err)
{
    if (l->n == l->capacity) {
        int64_t capacity = l->capacity ? 2 * l->capacity : 64;
        lw_search_hit *more = realloc(l->entry, (size_t)capacity * sizeof *more);
        if (!more)
            return lw_fail_memory(err, (size_t)capacity * sizeof *more);
        l->entry = more;
        l->capacity = capacity;
    }
    l->entry[l->n++] = (lw_search_hit){.score = at_most, .subject = subject};
    return LW_OK;
}

/* What becomes of a score; the caller holds the lock. */
static lw_status file_score(search_call *call, int32_t query, int32_t subject, int32_t score, lw_error *err)
{
    if (call->filtering)
        return put_on_list(&call->later[query], subject, INT32_MAX, err);
    if (score == LW_SEARCH_OVERFLOW) {
        call->rescued++;
        return put_on_list(&call->later[query], subject, INT32_MAX, err);
    }
    return lw_top_add(&call->tops[query], (lw_search_hit){.score = score, .subject = subject},
                      call->request->top_n, call->cpu->setup.database->order, err);
}

enum { SHORT = -2 }; /* in place of a score that cannot be among the best */

/* Drops what cannot reach the bar any more. */
static void drop_short(list *l, int32_t bar)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < l->n; k++)
        if (l->entry[k].score >= bar)
            l->entry[kept++] = l->entry[k];
    l->n = kept;
}

/* Files the values of screened subjects of a query; the caller holds the lock. */
static lw_status file_bounds(search_call *call, int32_t query, const int32_t *subjects, int64_t n,
                             const int32_t *values, int64_t stride, lw_error *err)
{
    const int32_t above = call->cpu->screen.above, bar = call->tops[query].min_score;
    screening *screen = &call->screens[query];
    for (int64_t i = 0; i < n; i++) {
        int32_t value = values[i * stride];
        if (value == LW_SEARCH_OVERFLOW) {
            call->rescued++;
            screen->overflows++;
            LW_TRY(put_on_list(&call->later[query], subjects[i], INT32_MAX, err));
        } else if (value != SHORT && value + above >= bar) {
            LW_TRY(put_on_list(&screen->candidates, subjects[i], value + above, err));
        }
    }
    screen->seen += n;
    return LW_OK;
}

/* Files the scores of n subjects against the queries of a task. What falls short (most of them) is sorted out
 * before the lock is taken. */
static lw_status file_scores(search_call *call, form kind, const int32_t *queries, int32_t n_queries,
                             const int32_t *subjects, int64_t n, int32_t *scores, lw_error *err)
{
    int64_t n_short = 0;
    for (int32_t q = 0; q < n_queries; q++) {
        int32_t least = call->request->min_score[queries[q]];
        if (kind == FILTER) {
            least = call->request->filter[queries[q]];
        } else {
            pthread_mutex_lock(&call->lock);
            least = call->tops[queries[q]].min_score - (kind == SCREEN ? call->cpu->screen.above : 0);
            pthread_mutex_unlock(&call->lock);
        }
        for (int64_t i = 0; i < n; i++) {
            int32_t *score = &scores[i * n_queries + q];
            if (*score < least && *score != LW_SEARCH_OVERFLOW) {
                *score = SHORT;
                n_short++;
            }
        }
    }
    if (n_short == n * n_queries && kind != FILTER)
        return LW_OK;
    lw_status status = LW_OK;
    pthread_mutex_lock(&call->lock);
    if (kind == FILTER)
        call->filtered += n_short;
    for (int32_t q = 0; q < n_queries && status == LW_OK; q++) {
        if (kind == SCREEN)
            status = file_bounds(call, queries[q], subjects, n, scores + q, n_queries, err);
        for (int64_t i = 0; kind != SCREEN && i < n && status == LW_OK; i++)
            if (scores[i * n_queries + q] != SHORT)
                status = file_score(call, queries[q], subjects[i], scores[i * n_queries + q], err);
    }
    pthread_mutex_unlock(&call->lock);
    return status;
}

/* Runs a kernel over the plan of the worker, which is laid out for this width. */
static lw_status score(search_call *call, worker *w, form kind, int width, const int32_t *queries,
                       int32_t n_queries, int64_t n_subjects, lw_error *err)
{
    const lw_seqs *all = call->request->queries;
    const cpu *c = call->cpu;
    int32_t *len = malloc((size_t)n_queries * sizeof *len);
    int64_t letters = 0;
    for (int32_t q = 0; q < n_queries; q++)
        letters += (int64_t)all->len[queries[q]] + 1;
    uint8_t *codes = malloc((size_t)letters);
    lw_status status = LW_OK;
    if (!len || !codes) {
        status = lw_fail_memory(err, (size_t)letters);
        goto end;
    }
    uint8_t used[LW_MAX_LETTERS], seen[LW_MAX_LETTERS] = {0};
    int32_t n_used = 0;
    letters = 0;
    for (int32_t q = 0; q < n_queries; q++) {
        len[q] = all->len[queries[q]];
        memcpy(codes + letters, all->codes + all->start[queries[q]], (size_t)len[q]);
        if (kind == SCREEN && len[q] % 2)
            codes[letters + len[q]++] = LW_DATABASE_PAD;
        letters += len[q];
    }
    for (int64_t k = 0; k < letters; k++)
        seen[codes[k]] = 1;
    for (int code = 0; code < LW_MAX_LETTERS; code++)
        if (seen[code])
            used[n_used++] = (uint8_t)code;
    LW_TRY_END(reserve(&w->scores, &w->scores_capacity, n_subjects * n_queries, sizeof *w->scores, err));
    const int vector = c->kernels->vector_bytes;
    lw_search_job job = {.n_queries = n_queries,
                         .len = len,
                         .codes = codes,
                         .n_used = n_used,
                         .used = used,
                         .table = kind == SCREEN ? c->screen_table : c->table,
                         .open_extend = c->setup.scoring->gap_open + c->setup.scoring->gap_extend,
                         .extend = c->setup.scoring->gap_extend,
                         .plan = &w->plan,
                         .scores = w->scores};
    if (kind == SCREEN) {
        int64_t bytes = (int64_t)c->kernels->screen_scratch(&job);
        LW_TRY_END(reserve(&w->columns, &w->columns_capacity, bytes / vector + 1, (size_t)vector, err));
        job.scratch = w->columns;
        job.zero = c->screen.zero;
        job.limit = c->screen.limit;
        c->kernels->screen(&job);
    } else {
        /* two vectors a letter, and behind them one a query */
        LW_TRY_END(reserve(&w->columns, &w->columns_capacity, 2 * letters + n_queries, (size_t)vector, err));
        job.columns = w->columns;
        job.profile = w->profile;
        job.best = w->columns + 2 * letters * vector;
        set_range(c, width, kind == FILTER, &job.zero, &job.limit);
        (kind == FILTER ? c->kernels->gapless : c->kernels->score)[width](&job);
    }
end:
    free(len), free(codes);
    return status;
}

/* How many of the n subjects, longest first, go one by one, because too many lanes would be idle while they
 * last: the number that costs least, in rows of vectors. */
static int64_t count_long(const search_call *call, int width, int32_t query, const lw_search_hit *subjects,
                          int64_t n)
{
    const int32_t *len = call->cpu->setup.database->len;
    const int64_t lanes = call->cpu->kernels->vector_bytes >> width, m = call->request->queries->len[query];
    const int64_t striped_column = search_cpu_tuning.striped_rows + (m - 1) / lanes + 1;
    int64_t left = 0, striped = 0, first = 0, least = INT64_MAX;
    for (int64_t k = 0; k < n; k++)
        left += len[subjects[k].subject];
    for (int64_t k = 0; k <= n; k++) {
        int64_t longest = k < n ? len[subjects[k].subject] : 0;
        int64_t cost = striped * striped_column + (longest > left / lanes ? longest : left / lanes) * m;
        if (cost < least) {
            least = cost;
            first = k;
        }
        striped += longest;
        left -= longest;
    }
    return first;
}

/* The query, striped over lanes of this width: the rows, and the profile behind three columns. */
static lw_status make_stripes(const search_call *call, worker *w, int width, int32_t query,
                              lw_search_striped_job *job, lw_error *err)
{
    const cpu *c = call->cpu;
    const lw_database_view *db = c->setup.database;
    const uint8_t *codes = call->request->queries->codes + call->request->queries->start[query];
    const int32_t m = call->request->queries->len[query];
    const int vector = c->kernels->vector_bytes, lanes = vector >> width;
    const int32_t rows = (m - 1) / lanes + 1;
    LW_TRY(
        reserve(&w->columns, &w->columns_capacity, (3 + (int64_t)db->n_codes) * rows, (size_t)vector, err));
    uint8_t *profile = w->columns + 3 * (size_t)rows * (size_t)vector, *to = profile;
    for (int t = 0; t < db->n_codes; t++)
        for (int32_t row = 0; row < rows; row++, to += vector)
            for (int lane = 0; lane < lanes; lane++) {
                int64_t i = (int64_t)lane * rows + row;
                int32_t s = i < m ? c->setup.scoring->score[codes[i] * LW_MAX_LETTERS + t] : c->low;
                if (width == WIDTH_8)
                    ((int8_t *)to)[lane] = (int8_t)s;
                else if (width == WIDTH_16)
                    ((int16_t *)(void *)to)[lane] = (int16_t)s;
                else
                    ((int32_t *)(void *)to)[lane] = s;
            }
    *job = (lw_search_striped_job){.rows = rows,
                                   .open_extend = c->setup.scoring->gap_open + c->setup.scoring->gap_extend,
                                   .extend = c->setup.scoring->gap_extend,
                                   .profile = profile,
                                   .columns = w->columns};
    return LW_OK;
}

static int by_subject(const void *a, const void *b)
{
    int32_t x = ((const lw_search_hit *)a)->subject, y = ((const lw_search_hit *)b)->subject;
    return x < y ? -1 : x > y;
}

static int by_promise(const void *a, const void *b)
{
    int32_t x = ((const lw_search_hit *)a)->score, y = ((const lw_search_hit *)b)->score;
    return x > y ? -1 : x == y ? by_subject(a, b) : 1;
}

/* Raises the bar to what the best have so far; the caller holds the lock or is alone. */
static void raise_bar(search_call *call, int32_t query)
{
    lw_top *top = &call->tops[query];
    if (top->n >= call->request->top_n) {
        top->n = lw_top_sort(top->hits, top->n, call->request->top_n, call->cpu->setup.database->order);
        top->min_score = top->hits[top->n - 1].score;
    }
}

/* Scores n subjects one by one, those that promise most first: the others may fall short of the bar then. */
static lw_status score_striped(search_call *call, worker *w, int width, int32_t query,
                               lw_search_hit *subjects, int64_t n, lw_error *err)
{
    const cpu *c = call->cpu;
    const lw_database_view *db = c->setup.database;
    lw_search_striped_job job;
    LW_TRY(make_stripes(call, w, width, query, &job, err));
    qsort(subjects, (size_t)n, sizeof *subjects, by_promise);
    for (int64_t k = 0; k < n; k++) {
        pthread_mutex_lock(&call->lock);
        if (call->request->top_n <= search_cpu_tuning.bar_hits)
            raise_bar(call, query);
        bool falls_short = subjects[k].score < call->tops[query].min_score;
        pthread_mutex_unlock(&call->lock);
        if (falls_short)
            break;
        job.subject = db->codes + db->start[subjects[k].subject];
        job.n = db->len[subjects[k].subject];
        int32_t score = c->kernels->striped[width](&job);
        LW_TRY(file_scores(call, EXACT, &query, 1, &subjects[k].subject, 1, &score, err));
    }
    return LW_OK;
}

/* Scores n subjects in lanes of this width. `score` is the most that it can be, and the order changes. */
static lw_status score_subjects(search_call *call, worker *w, int width, int32_t query,
                                lw_search_hit *subjects, int64_t n, lw_error *err)
{
    w->chunk = -1;
    qsort(subjects, (size_t)n, sizeof *subjects, by_subject); /* longest first */
    int64_t longs = count_long(call, width, query, subjects, n);
    if (longs > 0)
        LW_TRY(score_striped(call, w, width, query, subjects, longs, err));
    if (longs == n)
        return LW_OK;
    subjects += longs, n -= longs;
    LW_TRY(reserve(&w->subjects, &w->subjects_capacity, n, sizeof *w->subjects, err));
    for (int64_t k = 0; k < n; k++)
        w->subjects[k] = subjects[k].subject;
    LW_TRY(lay_out(call->cpu, w, width, w->subjects, n, err));
    LW_TRY(score(call, w, EXACT, width, &query, 1, n, err));
    return file_scores(call, EXACT, &query, 1, w->subjects, n, w->scores, err);
}

/* Later passes: part of a query's list. */
static lw_status piece_task(void *arg, int64_t i, int number, lw_error *err)
{
    search_call *call = arg;
    worker *w = &call->workers[number];
    const piece *p = &call->pieces[i];
    if (lw_stopped(call->cpu->setup.host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    return score_subjects(call, w, call->width, p->query, call->lists[p->query].entry + p->from,
                          p->to - p->from, err);
}

/* The best candidates leave the list for `to`, at most n; the caller holds the lock or is alone. */
static lw_status take_best(search_call *call, int32_t query, int64_t n, list *to, lw_error *err)
{
    list *from = &call->screens[query].candidates;
    const int64_t first =
        from->n > n ? lw_top_sort(from->entry, from->n, (int32_t)n, call->cpu->setup.database->order)
                    : from->n;
    to->n = 0;
    for (int64_t k = 0; k < first; k++)
        LW_TRY(put_on_list(to, from->entry[k].subject, from->entry[k].score, err));
    from->n -= first;
    if (from->n)
        memmove(from->entry, from->entry + first, (size_t)from->n * sizeof *from->entry);
    return LW_OK;
}

/* So many candidates are scored at a time: enough to raise the bar, and a vector full. */
static int64_t n_promising(const search_call *call)
{
    const int64_t lanes = call->cpu->kernels->vector_bytes >> call->width,
                  twice = 2 * (int64_t)call->request->top_n;
    return twice > lanes ? twice : lanes;
}

/* Whether so many subjects stay that screening saves nothing, once the bar has had time to rise. */
static bool too_many_stay(const search_call *call, int32_t query)
{
    const screening *screen = &call->screens[query];
    return screen->seen >= (int64_t)call->request->top_n * search_cpu_tuning.screen_settled &&
           screen->candidates.n + screen->overflows > screen->seen / search_cpu_tuning.screen_share;
}

/* Exact scores for the most promising candidates of a query, when many have come since the last time, and
 * before screening is given up: as long as that raises the bar and many stay.
 */
static lw_status score_promising(search_call *call, worker *w, int32_t query, lw_error *err)
{
    screening *screen = &call->screens[query];
    list best = {0};
    lw_status status = LW_OK;
    for (bool again = true; again;) {
        best.n = 0;
        pthread_mutex_lock(&call->lock);
        const int32_t bar = call->tops[query].min_score;
        const bool many = too_many_stay(call, query);
        if (screen->on && (many || screen->candidates.n >= screen->wait))
            status = take_best(call, query, n_promising(call), &best, err);
        screen->on = screen->on && (!many || best.n > 0); /* none: all overflow */
        pthread_mutex_unlock(&call->lock);
        if (status != LW_OK || best.n == 0)
            break;
        LW_TRY_END(score_subjects(call, w, call->width, query, best.entry, best.n, err));
        pthread_mutex_lock(&call->lock);
        raise_bar(call, query);
        drop_short(&screen->candidates, call->tops[query].min_score);
        screen->wait = screen->candidates.n + search_cpu_tuning.screen_round;
        again = too_many_stay(call, query);
        if (again && call->tops[query].min_score == bar)
            screen->on = again = false;
        pthread_mutex_unlock(&call->lock);
    }
end:
    free(best.entry);
    return status;
}

/* Exact scores for what is too high to have bounds, in wider lanes, if those will hold it: that raises the
 * bar most. */
static lw_status score_overflows(search_call *call, worker *w, int32_t query, lw_error *err)
{
    const int32_t *len = call->cpu->setup.database->len, m = call->request->queries->len[query];
    int32_t zero, limit;
    set_range(call->cpu, call->width + 1, false, &zero, &limit);
    list now = {0};
    lw_status status = LW_OK;
    pthread_mutex_lock(&call->lock);
    list *later = &call->later[query];
    int64_t kept = 0;
    for (int64_t k = 0; k < later->n; k++) {
        const int64_t n = len[later->entry[k].subject], shorter = n < m ? n : m;
        if (status == LW_OK && shorter * call->cpu->high < (int64_t)limit - zero)
            status = put_on_list(&now, later->entry[k].subject, INT32_MAX, err);
        else
            later->entry[kept++] = later->entry[k];
    }
    later->n = kept;
    pthread_mutex_unlock(&call->lock);
    if (status == LW_OK && now.n > 0)
        status = score_subjects(call, w, call->width + 1, query, now.entry, now.n, err);
    if (status == LW_OK && now.n > 0) {
        pthread_mutex_lock(&call->lock);
        raise_bar(call, query);
        drop_short(&call->screens[query].candidates, call->tops[query].min_score);
        pthread_mutex_unlock(&call->lock);
    }
    free(now.entry);
    return status;
}

/* Whether all queries of a pack are screened. */
static bool screens(search_call *call, const pack *p)
{
    bool all = true;
    pthread_mutex_lock(&call->lock);
    for (int32_t q = 0; q < p->n; q++)
        all = all && call->screens[call->query[p->first + q]].on;
    pthread_mutex_unlock(&call->lock);
    return all;
}

/* The first pass: a chunk of the database against a pack of queries. */
static lw_status chunk_task(void *arg, int64_t i, int number, lw_error *err)
{
    search_call *call = arg;
    const cpu *c = call->cpu;
    worker *w = &call->workers[number];
    int64_t chunk = i / call->n_packs;
    const pack *p = &call->packs[i % call->n_packs];
    if (lw_stopped(c->setup.host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    int32_t first = c->chunk[chunk];
    int64_t n = c->chunk[chunk + 1] - first;
    if (w->chunk != chunk) {
        w->chunk = -1;
        LW_TRY(reserve(&w->subjects, &w->subjects_capacity, n, sizeof *w->subjects, err));
        for (int64_t k = 0; k < n; k++)
            w->subjects[k] = first + (int32_t)k;
        LW_TRY(lay_out(c, w, call->width, w->subjects, n, err));
        w->chunk = chunk;
    }
    form kind = call->filtering ? FILTER : screens(call, p) ? SCREEN : EXACT;
    LW_TRY(score(call, w, kind, call->width, call->query + p->first, p->n, n, err));
    LW_TRY(file_scores(call, kind, call->query + p->first, p->n, w->subjects, n, w->scores, err));
    for (int32_t q = 0; q < p->n && kind == SCREEN; q++) {
        LW_TRY(score_overflows(call, w, call->query[p->first + q], err));
        LW_TRY(score_promising(call, w, call->query[p->first + q], err));
    }
    if (call->request->advance) {
        double letters = 0;
        for (int64_t k = 0; k < n; k++)
            letters += c->setup.database->len[first + k];
        pthread_mutex_lock(&call->lock);
        call->request->advance(call->request->user, letters * p->letters);
        pthread_mutex_unlock(&call->lock);
    }
    return LW_OK;
}

/* Drops what has fallen short since it went on the list, and puts the rest in the view's order, longest
 * first. */
static void tidy_list(const search_call *call, int64_t query, list *l)
{
    drop_short(l, call->tops[query].min_score);
    if (l->n)
        qsort(l->entry, (size_t)l->n, sizeof *l->entry, by_subject);
}

/* Cuts the lists of a pass. false: there is nothing left to do. */
static lw_status cut_lists(search_call *call, bool *more, lw_error *err)
{
    int64_t n = call->request->queries->n, entries = 0, n_pieces = 0;
    for (int64_t q = 0; q < n; q++) {
        tidy_list(call, q, &call->lists[q]);
        entries += call->lists[q].n;
    }
    /* a piece for each thread, but of full vectors */
    const int64_t lanes = call->cpu->kernels->vector_bytes >> call->width;
    int64_t most = entries / lw_pool_threads(call->cpu->setup.pool) / lanes * lanes + lanes;
    most = most < search_cpu_tuning.list_subjects ? most : search_cpu_tuning.list_subjects;
    for (int64_t q = 0; q < n; q++)
        n_pieces += (call->lists[q].n + most - 1) / most;
    *more = n_pieces > 0;
    if (n_pieces == 0)
        return LW_OK;
    free(call->pieces);
    call->pieces = malloc((size_t)n_pieces * sizeof *call->pieces);
    if (!call->pieces)
        return lw_fail_memory(err, (size_t)n_pieces * sizeof *call->pieces);
    call->n_pieces = 0;
    for (int64_t q = 0; q < n; q++) {
        const list *l = &call->lists[q];
        for (int64_t from = 0; from < l->n; from += most)
            call->pieces[call->n_pieces++] =
                (piece){.query = (int32_t)q, .from = from, .to = from + most < l->n ? from + most : l->n};
    }
    return LW_OK;
}

/* The second pass: the candidates of the first. The most promising of them come first, since their exact
 * scores may rule out the others. */
static lw_status score_candidates(search_call *call, lw_error *err)
{
    const int64_t n = call->request->queries->n;
    for (int round = 0; round < 2; round++) {
        for (int64_t q = 0; q < n; q++) {
            raise_bar(call, (int32_t)q);
            drop_short(&call->screens[q].candidates, call->tops[q].min_score);
            LW_TRY(take_best(call, (int32_t)q, round == 0 ? n_promising(call) : INT32_MAX, &call->lists[q],
                             err));
        }
        bool more;
        LW_TRY(cut_lists(call, &more, err));
        if (more)
            LW_TRY(lw_pool_for(call->cpu->setup.pool, call->n_pieces, piece_task, call, err));
    }
    return LW_OK;
}

/* Makes the lists of the next pass this one's. */
static lw_status next_lists(search_call *call, bool *more, lw_error *err)
{
    list *lists = call->lists;
    call->lists = call->later;
    call->later = lists;
    for (int64_t q = 0; q < call->request->queries->n; q++)
        lists[q].n = 0;
    return cut_lists(call, more, err);
}

/* Queries in the order given, without the empty ones, in packs. */
static lw_status make_packs(search_call *call, lw_error *err)
{
    const cpu *c = call->cpu;
    const lw_seqs *queries = call->request->queries;
    size_t n = (size_t)queries->n + 1;
    call->query = malloc(n * sizeof *call->query);
    call->packs = malloc(n * sizeof *call->packs);
    call->tops = calloc(n, sizeof *call->tops);
    call->screens = calloc(n, sizeof *call->screens);
    call->lists = calloc(n, sizeof *call->lists);
    call->later = calloc(n, sizeof *call->later);
    int threads = lw_pool_threads(c->setup.pool);
    call->workers = aligned_alloc(LW_SEARCH_VEC_MAX, (size_t)threads * sizeof *call->workers);
    if (!call->query || !call->packs || !call->tops || !call->screens || !call->lists || !call->later ||
        !call->workers)
        return lw_fail_memory(err, n * sizeof *call->tops);
    memset(call->workers, 0, (size_t)threads * sizeof *call->workers);
    for (int t = 0; t < threads; t++)
        call->workers[t].chunk = -1;
    const bool few =
        c->screen.limit > 0 &&
        (int64_t)call->request->top_n * search_cpu_tuning.screen_subjects <= c->setup.database->n;
    pack *p = NULL;
    for (int64_t q = 0; q < queries->n; q++) {
        call->tops[q].min_score = call->request->min_score[q];
        call->screens[q].on = few && !call->filtering;
        call->screens[q].wait = (int64_t)call->request->top_n + search_cpu_tuning.screen_round;
        int32_t len = queries->len[q];
        if (len == 0)
            continue;
        if (!p || p->n == search_cpu_tuning.pack_queries ||
            (int64_t)p->letters + len > search_cpu_tuning.pack_letters) {
            p = &call->packs[call->n_packs++];
            *p = (pack){.first = (int32_t)call->n_queries};
        }
        call->query[call->n_queries++] = (int32_t)q;
        p->n++;
        p->letters += len;
    }
    return LW_OK;
}

static void free_call(search_call *call)
{
    if (call->workers)
        for (int t = 0; t < lw_pool_threads(call->cpu->setup.pool); t++) {
            worker *w = &call->workers[t];
            free(w->plan.letters), free(w->plan.events), free(w->subjects), free(w->columns), free(w->scores);
        }
    for (int64_t q = 0; q < call->request->queries->n; q++) {
        if (call->tops)
            free(call->tops[q].hits);
        if (call->screens)
            free(call->screens[q].candidates.entry);
        if (call->lists)
            free(call->lists[q].entry);
        if (call->later)
            free(call->later[q].entry);
    }
    free(call->workers), free(call->query), free(call->packs), free(call->tops), free(call->screens),
        free(call->lists), free(call->later);
    free(call->pieces);
    pthread_mutex_destroy(&call->lock);
}

/* Whether the lanes of this width can tell that the filter's threshold is reached. */
static bool filter_fits(const search_call *call)
{
    static const int32_t holds[N_WIDTHS] = {UINT8_MAX, UINT16_MAX, INT32_MAX};
    for (int64_t q = 0; q < call->n_queries; q++)
        if (call->request->filter[call->query[q]] > holds[call->width])
            return false;
    return true;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lw_status cpu_search(void *context, const lw_search_request *request, const lw_search_result *out,
                            lw_error *err)
{
    const cpu *c = context;
    const lw_database_view *db = c->setup.database;
    search_call state = {
        .cpu = c, .request = request, .width = c->narrowest, .filtering = request->filter != NULL};
    lw_status status = LW_OK;
    double started = now();
    pthread_mutex_init(&state.lock, NULL);
    LW_TRY_END(make_packs(&state, err));
    while (state.filtering && !filter_fits(&state))
        state.width++;
    LW_TRY_END(lw_pool_for(c->setup.pool, c->n_chunks * state.n_packs, chunk_task, &state, err));
    if (state.filtering) { /* what passed is scored from the narrowest lanes on */
        state.filtering = false;
        state.width = c->narrowest - 1;
    } else {
        LW_TRY_END(score_candidates(&state, err));
    }
    for (;;) {
        bool more;
        state.width++;
        LW_TRY_END(next_lists(&state, &more, err));
        if (!more)
            break;
        LW_TRY_END(lw_pool_for(c->setup.pool, state.n_pieces, piece_task, &state, err));
    }
    for (int64_t q = 0; q < request->queries->n; q++) {
        lw_top *top = &state.tops[q];
        out->n_hits[q] = lw_top_sort(top->hits, top->n, request->top_n, db->order);
        if (out->n_hits[q])
            memcpy(out->hits + q * out->stride, top->hits, (size_t)out->n_hits[q] * sizeof *top->hits);
    }
    if (request->counts) {
        int64_t letters = 0;
        for (int64_t q = 0; q < request->queries->n; q++)
            letters += request->queries->len[q];
        int64_t n_empty = db->n - c->chunk[c->n_chunks]; /* they pass no filter */
        for (int64_t q = 0; q < request->queries->n; q++)
            if (request->filter && request->filter[q] > 0)
                request->counts->filtered += request->queries->len[q] == 0 ? db->n : n_empty;
        request->counts->pairs += request->queries->n * db->n;
        request->counts->cells += letters * db->letters;
        request->counts->filtered += state.filtered;
        request->counts->rescued += state.rescued;
        request->counts->busy_seconds += now() - started;
    }
end:
    free_call(&state);
    return status;
}

const lw_search_backend lw_search_cpu = {
    .base = {.name = "cpu",
             .what = "SIMD lanes of 8, 16 and 32 bits, one subject a lane, all threads",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_cpu},
    .batch_letters = 1 << 16,
    .open = cpu_open,
    .search = cpu_search,
    .close = cpu_close,
};
