/* bench_pairs.c - pairs of sequences with their paths, in several shapes: the score alone and the whole call
 * from sequences to CIGARs. */
#include "bench.h"
#include "letters.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/align_backend.h"
#include "align/cigar.h"
#include "common/fail.h"

/* Pairs of one shape: targets of random letters, queries drawn from their beginnings with errors. */
typedef struct shape {
    int32_t query, target;
    int64_t n;
} shape;

typedef struct input {
    uint8_t *codes;
    int64_t *start[2];
    int32_t *len[2];
    lw_seqs queries, targets;
} input;

typedef struct running {
    const lw_align_backend *row;
    const lw_align_setup *setup;
    void *context;
    const input *in;
    lw_hit *hits;
    lw_path *paths;
    lw_cigars cigars;
} running;

enum { SCALAR_CELLS = 30000000, VERIFY_PIECE = 64, ERRORS_PER_MILLE = 50 };

static void input_free(input *in)
{
    free(in->codes);
    for (int k = 0; k < 2; k++)
        free(in->start[k]), free(in->len[k]);
}

typedef struct make_call {
    const shape *s;
    input *in;
} make_call;

static lw_status make_piece(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const make_call *call = arg;
    const shape *s = call->s;
    input *in = call->in;
    const int64_t to = (piece + 1) * VERIFY_PIECE < s->n ? (piece + 1) * VERIFY_PIECE : s->n;
    for (int64_t i = piece * VERIFY_PIECE; i < to; i++) {
        uint64_t state = 20260101 + 7919 * (uint64_t)i;
        in->len[0][i] = s->query, in->len[1][i] = s->target;
        in->start[0][i] = i * s->query;
        in->start[1][i] = s->n * s->query + i * s->target;
        uint8_t *query = in->codes + in->start[0][i], *target = in->codes + in->start[1][i];
        for (int32_t j = 0; j < s->target; j++)
            target[j] = (uint8_t)letters_below(&state, 4);
        int32_t at =
            s->target > s->query ? (int32_t)letters_below(&state, (uint32_t)(s->target - s->query)) : 0;
        const letters_source from = {target, s->target, 4, ERRORS_PER_MILLE};
        letters_draw(&state, &from, at, query, s->query);
    }
    return LW_OK;
}

static lw_status input_make(input *in, const shape *s, lw_pool *pool, lw_error *err)
{
    *in = (input){.codes = malloc((size_t)(s->n * (s->query + s->target)))};
    bool there = in->codes != NULL;
    for (int k = 0; k < 2; k++) {
        in->start[k] = malloc((size_t)s->n * sizeof(int64_t));
        in->len[k] = malloc((size_t)s->n * sizeof(int32_t));
        there = there && in->start[k] && in->len[k];
    }
    if (!there) {
        input_free(in);
        return lw_fail_memory(err, (size_t)(s->n * (s->query + s->target)));
    }
    in->queries = (lw_seqs){.n = s->n, .codes = in->codes, .start = in->start[0], .len = in->len[0]};
    in->targets = (lw_seqs){.n = s->n, .codes = in->codes, .start = in->start[1], .len = in->len[1]};
    make_call call = {s, in};
    return lw_pool_for(pool, (s->n + VERIFY_PIECE - 1) / VERIFY_PIECE, make_piece, &call, err);
}

static lw_status run_ends(void *arg, lw_error *err)
{
    running *r = arg;
    return r->row->pair_ends(r->context, &r->in->queries, &r->in->targets, r->hits, err);
}

static lw_status run_paths(void *arg, lw_error *err)
{
    running *r = arg;
    r->cigars.n = 0;
    return lw_align_pairs_with(r->row, r->context, r->setup, &r->in->queries, &r->in->targets, r->hits,
                               r->paths, &r->cigars, err);
}

/* Every path of a piece scores what its hit says, and ends there. */
static lw_status check_piece(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker;
    const running *r = arg;
    const int64_t n = r->in->queries.n, to = (piece + 1) * VERIFY_PIECE < n ? (piece + 1) * VERIFY_PIECE : n;
    for (int64_t i = piece * VERIFY_PIECE; i < to; i++) {
        const lw_hit *hit = &r->hits[i];
        if (hit->target < 0)
            continue;
        const lw_path *path = &r->paths[i];
        const uint32_t *op = r->cigars.op + path->cigar;
        int64_t q = path->qstart, t = path->tstart;
        for (int32_t k = 0; k < path->n_cigar; k++) {
            q += (op[k] & 15) != 2 ? op[k] >> 4 : 0;
            t += (op[k] & 15) != 1 ? op[k] >> 4 : 0;
        }
        int64_t score =
            q != hit->qend || t != hit->tend
                ? INT32_MIN
                : lw_path_score(r->setup->scoring, r->in->codes + r->in->start[0][i] + path->qstart,
                                r->in->codes + r->in->start[1][i] + path->tstart, op, path->n_cigar);
        if (score != hit->score)
            return lw_fail(
                err, LW_E_INTERNAL,
                "bench align: backend %s: the path of pair %lld ends at %lld/%lld and scores %lld; its "
                "end is %d/%d with %d",
                r->row->base.name, (long long)i, (long long)q, (long long)t, (long long)score, hit->qend,
                hit->tend, hit->score);
    }
    return LW_OK;
}

/* The first pairs by the scalar reference, to the last operation. */
static lw_status check_sample(const running *r, lw_error *err)
{
    lw_seqs queries = r->in->queries, targets = r->in->targets;
    int64_t cells = (int64_t)queries.len[0] * targets.len[0];
    int64_t n = cells < SCALAR_CELLS ? SCALAR_CELLS / cells : cells < 4 * (int64_t)SCALAR_CELLS ? 1 : 0;
    n = n < queries.n ? n : queries.n;
    n = n < 2000 ? n : 2000;
    queries.n = targets.n = n;
    lw_hit *hits = calloc((size_t)n + 1, sizeof *hits);
    lw_path *paths = calloc((size_t)n + 1, sizeof *paths);
    lw_cigars cigars = {0};
    void *context = NULL;
    lw_status status = hits && paths ? LW_OK : lw_fail_memory(err, (size_t)n * sizeof *hits);
    if (status == LW_OK)
        status = lw_align_scalar.open(&lw_align_scalar, &context, r->setup, err);
    if (status == LW_OK)
        status = lw_align_pairs_with(&lw_align_scalar, context, r->setup, &queries, &targets, hits, paths,
                                     &cigars, err);
    for (int64_t i = 0; i < n && status == LW_OK; i++) {
        bool same = hits[i].target == r->hits[i].target;
        if (same && hits[i].target >= 0)
            same =
                hits[i].score == r->hits[i].score && hits[i].tend == r->hits[i].tend &&
                hits[i].qend == r->hits[i].qend && paths[i].n_cigar == r->paths[i].n_cigar &&
                paths[i].qstart == r->paths[i].qstart && paths[i].tstart == r->paths[i].tstart &&
                (paths[i].n_cigar == 0 || memcmp(cigars.op + paths[i].cigar, r->cigars.op + r->paths[i].cigar,
                                                 (size_t)paths[i].n_cigar * sizeof *cigars.op) == 0);
        if (!same)
            status = lw_fail(
                err, LW_E_INTERNAL,
                "bench align: backend %s aligns pair %lld with score %d to %d/%d, the scalar reference "
                "with %d to %d/%d, or by another path",
                r->row->base.name, (long long)i, r->hits[i].score, r->hits[i].qend, r->hits[i].tend,
                hits[i].score, hits[i].qend, hits[i].tend);
    }
    if (context)
        lw_align_scalar.close(context);
    free(hits), free(paths), free(cigars.op);
    return status;
}

/* Rates count all cells of the matrices; where bands spare some, the row says how many were computed. */
static void tell_share(bench_result *about, int at, double computed)
{
    about->shape[at] = '\0';
    if (computed < 1)
        snprintf(about->shape + at, sizeof about->shape - (size_t)at, ", %.0f %% of cells computed",
                 100 * computed);
}

static lw_status bench_shape(bench *b, const lw_align_backend *row, const lw_scoring *sc, lw_mode mode,
                             const shape *s, const input *in, bool scores, lw_error *err)
{
    static const char *const modes[] = {"local", "global", "semiglobal"};
    lw_align_setup setup = {.scoring = sc,
                            .mode = mode,
                            .strands = LW_FORWARD,
                            .min_score = mode == LW_LOCAL ? 1 : INT32_MIN,
                            .n_hits = 1,
                            .pool = b->pool,
                            .device = b->device,
                            .host = b->host};
    double computed = 1;
    setup.computed = &computed;
    running r = {.row = row, .setup = &setup, .in = in};
    bench_result about = {.domain = "align", .verified = true, .unit = "GCUPS"};
    snprintf(about.backend, sizeof about.backend, "%s", row->base.name);
    snprintf(about.shape, sizeof about.shape, "%lld x %dx%d %s%s", (long long)s->n, s->query, s->target,
             modes[mode], sc->two_piece ? ", two-piece gaps" : "");
    const int cells_text = (int)strlen(about.shape);
    const double cells = (double)s->n * s->query * s->target;
    r.hits = calloc((size_t)s->n, sizeof *r.hits);
    r.paths = calloc((size_t)s->n, sizeof *r.paths);
    lw_status status = LW_OK;
    if (!r.hits || !r.paths)
        status = lw_fail_memory(err, (size_t)s->n * sizeof *r.hits);
    if (status == LW_OK)
        status = row->open(row, &r.context, &setup, err);
    if (status == LW_OK && scores) {
        snprintf(about.name, sizeof about.name, "scores of pairs");
        status = run_ends(&r, err);
    }
    if (status == LW_OK && scores) {
        tell_share(&about, cells_text, computed);
        status = bench_measure(b, &about, cells * 1e-9, run_ends, &r, err);
    }
    if (status == LW_OK)
        status = run_paths(&r, err);
    if (status == LW_OK)
        status = lw_pool_for(b->pool, (s->n + VERIFY_PIECE - 1) / VERIFY_PIECE, check_piece, &r, err);
    if (status == LW_OK)
        status = check_sample(&r, err);
    if (status == LW_OK) {
        snprintf(about.name, sizeof about.name, "pairs with paths");
        tell_share(&about, cells_text, computed);
        status = bench_measure(b, &about, cells * 1e-9, run_paths, &r, err);
    }
    if (status == LW_OK) { /* the same runs as milliseconds a call */
        bench_result *last = &b->results[b->n - 1];
        about = *last;
        double ms[3] = {cells * 1e-6 / last->maximum, cells * 1e-6 / last->median,
                        cells * 1e-6 / last->minimum};
        snprintf(about.unit, sizeof about.unit, "ms");
        status = bench_add(b, &about, ms, 3, err);
        if (status == LW_OK)
            b->results[b->n - 1].repeats = b->results[b->n - 2].repeats;
    }
    if (r.context)
        row->close(r.context);
    free(r.hits), free(r.paths), free(r.cigars.op);
    return status;
}

/* A whole number from 1 to INT32_MAX that ends before `after`; moves *text behind that. */
static bool next_number(const char **text, char after, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = isdigit((unsigned char)**text) ? strtoll(*text, &end, 10) : 0;
    if (value < 1 || value > INT32_MAX || errno != 0 || (after && *end != after))
        return false;
    *text = end + (after != 0);
    *out = value;
    return true;
}

/* "150x200:1000000,1000x1000:100000" */
static lw_status next_shape(const char **text, shape *s, lw_error *err)
{
    const char *given = *text;
    int64_t query, target;
    if (!next_number(text, 'x', &query) || !next_number(text, ':', &target) || !next_number(text, 0, &s->n) ||
        (**text != '\0' && (**text != ',' || (*text)[1] == '\0')))
        return lw_fail(err, LW_E_ARG,
                       "--pairs '%.60s': shapes are written as QUERYxTARGET:PAIRS, with commas between, each "
                       "number from 1 to %d",
                       given, INT32_MAX);
    s->query = (int32_t)query;
    s->target = (int32_t)target;
    *text += **text == ',';
    return LW_OK;
}

lw_status bench_pairs_check(const char *shapes, lw_error *err)
{
    shape s;
    do
        LW_TRY(next_shape(&shapes, &s, err));
    while (*shapes);
    return LW_OK;
}

lw_status bench_pairs(bench *b, lw_error *err)
{
    const char *shapes = b->pairs   ? b->pairs
                         : b->quick ? "150x200:500,600x600:20"
                                    : "150x200:20000,1000x1000:1000";
    lw_status status = LW_OK;
    while (*shapes && status == LW_OK) {
        shape s;
        input in;
        LW_TRY(next_shape(&shapes, &s, err));
        LW_TRY(input_make(&in, &s, b->pool, err));
        for (int i = 1; i < lw_align_backend_count && status == LW_OK; i++) {
            const lw_align_backend *row = lw_align_backends[i];
            lw_error reason = {0};
            if (!bench_wants(b, row->base.name))
                continue;
            if (row->base.usable(&row->base, b->device, &reason) != LW_OK) {
                lw_say(b->host, LW_SAY_INFO, "%s: %s", row->base.name, reason.message);
                continue;
            }
            for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL && status == LW_OK; mode++) {
                lw_scoring sc;
                if (b->mode >= 0 && mode != (lw_mode)b->mode)
                    continue;
                LW_TRY_END(lw_scoring_dna(&sc, 1, 4, 6, 1, err));
                LW_TRY_END(bench_shape(b, row, &sc, mode, &s, &in, b->scores, err));
                if (!b->two_piece)
                    continue;
                LW_TRY_END(lw_scoring_dna(&sc, 2, 4, 4, 2, err));
                LW_TRY_END(lw_scoring_two_piece(&sc, 24, 1, err));
                LW_TRY_END(bench_shape(b, row, &sc, mode, &s, &in, false, err));
            }
        }
    end:
        input_free(&in);
    }
    return status;
}
