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
#include "align/search_cpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "align/search_cpu_tuning.h"
#include "common/cpu.h"
#include "common/fail.h"

/* --- opening -------------------------------------------------------------------------------------- */

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

static void make_tables(lw_scan *c)
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
    c->narrowest = c->low >= INT8_MIN && c->high <= INT8_MAX && open_extend <= INT8_MAX ? LW_SCAN_8
                   : open_extend <= INT16_MAX                                           ? LW_SCAN_16
                                                                                        : LW_SCAN_32;
    for (; c->narrowest < LW_SCAN_32; c->narrowest++) { /* no lane that holds next to nothing */
        enum { WORTH_WHILE = 64 };
        lw_scan_set_range(c, c->narrowest, false, &zero, &limit);
        if (limit - zero >= WORTH_WHILE)
            break;
    }
    if (c->narrowest != LW_SCAN_8)
        return;
    c->screen = c->kernels->screen_range(sc->gap_open, sc->gap_extend, c->low, c->high);
    for (int q = 0; q < LW_MAX_LETTERS; q++)
        for (int t = 0; t < LW_MAX_LETTERS; t++)
            c->screen_table[q][0][t] = (int8_t)((c->table[q][0][t] + 2 * sc->gap_extend) & 0xff);
}

/* Chunks of at least so many letters, and long enough for the longest subject of each to hide among the other
 * lanes. */
static lw_status make_chunks(lw_scan *c, lw_error *err)
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
    lw_scan *c = context;
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
    lw_scan *c = calloc(1, sizeof *c);
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

/* --- passes --------------------------------------------------------------------------------------- */

/* Later passes: part of a query's list. */
static lw_status piece_task(void *arg, int64_t i, int number, lw_error *err)
{
    lw_scan_call *call = arg;
    lw_scan_worker *w = &call->workers[number];
    const lw_scan_piece *p = &call->pieces[i];
    if (lw_stopped(call->cpu->setup.host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    return lw_scan_score_subjects(call, w, call->width, p->query, call->lists[p->query].entry + p->from,
                                  p->to - p->from, err);
}

/* Whether all queries of a pack are screened. */
static bool screens(lw_scan_call *call, const lw_scan_pack *p)
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
    lw_scan_call *call = arg;
    const lw_scan *c = call->cpu;
    lw_scan_worker *w = &call->workers[number];
    int64_t chunk = i / call->n_packs;
    const lw_scan_pack *p = &call->packs[i % call->n_packs];
    if (lw_stopped(c->setup.host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    int32_t first = c->chunk[chunk];
    int64_t n = c->chunk[chunk + 1] - first;
    if (w->chunk != chunk) {
        w->chunk = -1;
        LW_TRY(lw_scan_reserve(&w->subjects, &w->subjects_capacity, n, sizeof *w->subjects, err));
        for (int64_t k = 0; k < n; k++)
            w->subjects[k] = first + (int32_t)k;
        LW_TRY(lw_scan_lay_out(c, w, call->width, w->subjects, n, err));
        w->chunk = chunk;
    }
    lw_scan_form kind = call->filtering ? LW_SCAN_FILTER : screens(call, p) ? LW_SCAN_SCREEN : LW_SCAN_EXACT;
    LW_TRY(lw_scan_score(call, w, kind, call->width, call->query + p->first, p->n, n, err));
    LW_TRY(lw_scan_file_scores(call, kind, call->query + p->first, p->n, w->subjects, n, w->scores, err));
    for (int32_t q = 0; q < p->n && kind == LW_SCAN_SCREEN; q++) {
        LW_TRY(lw_scan_score_overflows(call, w, call->query[p->first + q], err));
        LW_TRY(lw_scan_score_promising(call, w, call->query[p->first + q], err));
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
static void tidy_list(const lw_scan_call *call, int64_t query, lw_scan_list *l)
{
    lw_scan_drop_short(l, call->tops[query].min_score);
    if (l->n)
        qsort(l->entry, (size_t)l->n, sizeof *l->entry, lw_scan_by_subject);
}

/* Cuts the lists of a pass. false: there is nothing left to do. */
static lw_status cut_lists(lw_scan_call *call, bool *more, lw_error *err)
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
        const lw_scan_list *l = &call->lists[q];
        for (int64_t from = 0; from < l->n; from += most)
            call->pieces[call->n_pieces++] = (lw_scan_piece){
                .query = (int32_t)q, .from = from, .to = from + most < l->n ? from + most : l->n};
    }
    return LW_OK;
}

/* The second pass: the candidates of the first. The most promising of them come first, since their exact
 * scores may rule out the others. */
static lw_status score_candidates(lw_scan_call *call, lw_error *err)
{
    const int64_t n = call->request->queries->n;
    for (int round = 0; round < 2; round++) {
        for (int64_t q = 0; q < n; q++) {
            lw_scan_raise_bar(call, (int32_t)q);
            lw_scan_drop_short(&call->screens[q].candidates, call->tops[q].min_score);
            LW_TRY(lw_scan_take_best(call, (int32_t)q, round == 0 ? lw_scan_n_promising(call) : INT32_MAX,
                                     &call->lists[q], err));
        }
        bool more;
        LW_TRY(cut_lists(call, &more, err));
        if (more)
            LW_TRY(lw_pool_for(call->cpu->setup.pool, call->n_pieces, piece_task, call, err));
    }
    return LW_OK;
}

/* Makes the lists of the next pass this one's. */
static lw_status next_lists(lw_scan_call *call, bool *more, lw_error *err)
{
    lw_scan_list *lists = call->lists;
    call->lists = call->later;
    call->later = lists;
    for (int64_t q = 0; q < call->request->queries->n; q++)
        lists[q].n = 0;
    return cut_lists(call, more, err);
}

/* Queries in the order given, without the empty ones, in packs. */
static lw_status make_packs(lw_scan_call *call, lw_error *err)
{
    const lw_scan *c = call->cpu;
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
    lw_scan_pack *p = NULL;
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
            *p = (lw_scan_pack){.first = (int32_t)call->n_queries};
        }
        call->query[call->n_queries++] = (int32_t)q;
        p->n++;
        p->letters += len;
    }
    return LW_OK;
}

static void free_call(lw_scan_call *call)
{
    if (call->workers)
        for (int t = 0; t < lw_pool_threads(call->cpu->setup.pool); t++) {
            lw_scan_worker *w = &call->workers[t];
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
static bool filter_fits(const lw_scan_call *call)
{
    static const int32_t holds[LW_SCAN_WIDTHS] = {UINT8_MAX, UINT16_MAX, INT32_MAX};
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
    const lw_scan *c = context;
    const lw_database_view *db = c->setup.database;
    lw_scan_call state = {
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
