/* align_scalar.c - the reference: Gotoh's three-state recurrence as the textbook has it, 32 bits, one
 * thread, whole matrices. Every other backend is compared with this file, so it stays simple.
 *
 *   E(i,j) = max(E(i,j-1) - extend, H(i,j-1) - open - extend)     a deletion: target letters only
 *   F(i,j) = max(F(i-1,j) - extend, H(i-1,j) - open - extend)     an insertion: query letters only
 *   H(i,j) = max(H(i-1,j-1) + score(q_i, t_j), E(i,j), F(i,j))    and 0 in local mode
 *
 * With two-piece gaps each of E and F is two such states, one for each pair of penalties, and H is the
 * largest of all; a gap costs the less of its two prices.
 *
 * Row 0 and column 0 are 0 in local mode; the cost of a gap of that length in global mode; in
 * semiglobal mode row 0 is 0 and column 0 the cost of a gap. */
#include "align/align_backend.h"

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

/* Below any score that can occur (|H| < 2^30, checked by the driver), and far enough from INT32_MIN that one
 * more penalty does not wrap. */
static const int32_t MINUS_INFINITY = INT32_MIN / 2;

typedef struct scalar {
    lw_align_setup setup;
} scalar;

static lw_status scalar_open(const lw_align_backend *self, void **context, const lw_align_setup *setup,
                             lw_error *err)
{
    (void)self;
    scalar *s = malloc(sizeof *s);
    if (!s)
        return lw_fail_memory(err, sizeof *s);
    s->setup = *setup;
    *context = s;
    return LW_OK;
}

static void scalar_close(void *context)
{
    free(context);
}

static int32_t max32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Cost of a gap of k letters, as a score; 0 for no gap. */
static int32_t gap(const lw_scoring *sc, int32_t k)
{
    return k == 0 ? 0 : -lw_gap_cost(sc, k);
}

/* Penalties of a gap's first letter and of each further one, by piece. */
typedef struct penalties {
    int pieces;
    int32_t open[2], extend[2];
} penalties;

static penalties penalties_of(const lw_scoring *sc)
{
    return (penalties){.pieces = sc->two_piece ? 2 : 1,
                       .open = {sc->gap_open + sc->gap_extend, sc->gap_open2 + sc->gap_extend2},
                       .extend = {sc->gap_extend, sc->gap_extend2}};
}

static int32_t pair_score(const lw_scoring *sc, uint8_t q, uint8_t t)
{
    return sc->score[q * LW_MAX_LETTERS + t];
}

/* Copies a sequence, or its reverse complement. */
static void take_strand(uint8_t *out, const uint8_t *codes, int32_t n, bool reverse, const lw_scoring *sc)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = reverse ? sc->complement[codes[n - 1 - i]] : codes[i];
}

/* ---- scores ------------------------------------------------------------------------------------ */

/* The best end cell in one target column: its score and, among equal ones, the smallest query end. */
typedef struct column {
    int32_t score; /* MINUS_INFINITY: no alignment may end here */
    int32_t qend;
} column;

/* Fills best[0 .. n] for query[0, m) against target[0, n). h is scratch of m + 1
 * numbers, e of twice as many. */
static void score_columns(const lw_scoring *sc, lw_mode mode, const uint8_t *query, int32_t m,
                          const uint8_t *target, int32_t n, column *best, int32_t *h, int32_t *e)
{
    const penalties gaps = penalties_of(sc);
    for (int32_t j = 0; j <= n; j++) {
        int32_t diagonal = 0, f[2] = {MINUS_INFINITY, MINUS_INFINITY};
        best[j] = (column){.score = MINUS_INFINITY};
        for (int32_t i = 0; i <= m; i++) {
            int32_t left = h[i]; /* H(i, j-1), from the column before */
            if (j == 0) {
                h[i] = mode == LW_LOCAL ? 0 : gap(sc, i);
                e[2 * i] = e[2 * i + 1] = MINUS_INFINITY;
            } else if (i == 0) {
                h[i] = mode == LW_GLOBAL ? gap(sc, j) : 0;
            } else {
                h[i] = diagonal + pair_score(sc, query[i - 1], target[j - 1]);
                for (int p = 0; p < gaps.pieces; p++) {
                    int32_t *deletion = &e[2 * i + p];
                    *deletion = max32(*deletion - gaps.extend[p], left - gaps.open[p]);
                    f[p] = max32(f[p] - gaps.extend[p], h[i - 1] - gaps.open[p]);
                    h[i] = max32(h[i], max32(*deletion, f[p]));
                }
                if (mode == LW_LOCAL)
                    h[i] = max32(h[i], 0);
            }
            diagonal = left;
            bool may_end = mode == LW_LOCAL        ? i > 0 && j > 0
                           : mode == LW_SEMIGLOBAL ? i == m
                                                   : i == m && j == n;
            if (may_end && h[i] > best[j].score)
                best[j] = (column){.score = h[i], .qend = i};
        }
    }
}

/* ---- place: one read, both strands, every reference ---------------------------------------------- */

/* best[] of every strand and reference, one after the other in the order of the tie rule. */
typedef struct landscape {
    const lw_seqs *refs;
    column *best;       /* 2 strands x (sum of reference lengths + number of references) */
    int64_t *ref_start; /* of reference r within one strand's half */
    int64_t half;
} landscape;

static bool outside(const lw_hit *hit, int reverse, int64_t ref, int64_t j, int32_t read_length)
{
    return hit->reverse != reverse || hit->target != ref || llabs(j - hit->tend) > read_length;
}

/* The first of the best end cells outside the neighbourhood of each of the n hits; target -1: none. */
static lw_hit best_outside(const landscape *l, unsigned strands, const lw_hit *hits, int n,
                           int32_t read_length)
{
    lw_hit found = {.score = MINUS_INFINITY, .target = -1};
    for (int reverse = 0; reverse < 2; reverse++) {
        if (!(strands & (reverse ? LW_REVERSE : LW_FORWARD)))
            continue;
        for (int32_t r = 0; r < l->refs->n; r++) {
            const column *best = l->best + reverse * l->half + l->ref_start[r];
            for (int32_t j = 0; j <= l->refs->len[r]; j++) {
                bool allowed = best[j].score > found.score;
                for (int k = 0; k < n && allowed; k++)
                    allowed = outside(&hits[k], reverse, r, j, read_length);
                if (allowed)
                    found = (lw_hit){.score = best[j].score,
                                     .target = r,
                                     .tend = j,
                                     .qend = best[j].qend,
                                     .reverse = (uint8_t)reverse};
            }
        }
    }
    return found;
}

static int32_t second_best(const landscape *l, unsigned strands, const lw_hit *hit, int32_t read_length,
                           lw_mode mode)
{
    lw_hit second = best_outside(l, strands, hit, 1, read_length);
    if (mode == LW_LOCAL)
        return max32(second.score, 0);
    return second.target < 0 ? LW_NO_SECOND : second.score;
}

static int list_ties(const landscape *l, unsigned strands, int32_t score, lw_hit *ties, int capacity)
{
    int n = 0;
    for (int reverse = 0; reverse < 2; reverse++) {
        if (!(strands & (reverse ? LW_REVERSE : LW_FORWARD)))
            continue;
        for (int32_t r = 0; r < l->refs->n; r++) {
            const column *best = l->best + reverse * l->half + l->ref_start[r];
            for (int32_t j = 0; j <= l->refs->len[r] && n < capacity; j++)
                if (best[j].score == score)
                    ties[n++] = (lw_hit){.score = score,
                                         .target = r,
                                         .tend = j,
                                         .qend = best[j].qend,
                                         .reverse = (uint8_t)reverse};
        }
    }
    return n;
}

static void select_hits(const landscape *l, const lw_align_setup *setup, int32_t read_length, lw_hit *hits,
                        lw_hit *ties)
{
    int n = 0;
    while (n < setup->n_hits) {
        lw_hit hit = best_outside(l, setup->strands, hits, n, read_length);
        if (hit.target < 0 || hit.score < setup->min_score || (setup->mode == LW_LOCAL && hit.score < 1))
            break;
        hits[n++] = hit;
    }
    if (n == 0)
        return;
    hits[0].second = second_best(l, setup->strands, &hits[0], read_length, setup->mode);
    if (!ties)
        return;
    int n_ties = list_ties(l, setup->strands, hits[0].score, ties, setup->n_ties);
    for (int k = 0; k < n_ties; k++)
        ties[k].second = second_best(l, setup->strands, &ties[k], read_length, setup->mode);
}

static lw_status scalar_place(void *context, const lw_seqs *reads, lw_placements *out, lw_error *err)
{
    const lw_align_setup *setup = &((scalar *)context)->setup;
    const lw_seqs *refs = setup->refs;
    lw_status status = LW_OK;
    int32_t longest = 0;
    for (int64_t i = 0; i < reads->n; i++)
        longest = max32(longest, reads->len[i]);
    landscape l = {.refs = refs, .ref_start = malloc((size_t)(refs->n + 1) * sizeof(int64_t))};
    for (int64_t r = 0; l.ref_start && r < refs->n; r++) {
        l.ref_start[r] = l.half;
        l.half += (int64_t)refs->len[r] + 1;
    }
    l.best = malloc((size_t)(2 * l.half) * sizeof(column));
    int32_t *h = malloc(((size_t)longest + 1) * sizeof *h),
            *e = malloc(2 * ((size_t)longest + 1) * sizeof *e);
    uint8_t *query = malloc((size_t)longest + 1);
    if (!l.ref_start || !l.best || !h || !e || !query) {
        status = lw_fail_memory(err, (size_t)(2 * l.half) * sizeof(column));
        goto end;
    }
    for (int64_t i = 0; i < reads->n; i++) {
        if (lw_stopped(setup->host)) {
            status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
            goto end;
        }
        lw_hit *hits = out->hits + i * setup->n_hits,
               *ties = out->ties ? out->ties + i * setup->n_ties : NULL;
        for (int k = 0; k < setup->n_hits; k++)
            hits[k] = (lw_hit){.target = -1};
        for (int k = 0; ties && k < setup->n_ties; k++)
            ties[k] = (lw_hit){.target = -1};
        int32_t m = reads->len[i];
        if (m == 0)
            continue;
        for (int reverse = 0; reverse < 2; reverse++) {
            if (!(setup->strands & (reverse ? LW_REVERSE : LW_FORWARD)))
                continue;
            take_strand(query, reads->codes + reads->start[i], m, reverse, setup->scoring);
            for (int64_t r = 0; r < refs->n; r++)
                score_columns(setup->scoring, setup->mode, query, m, refs->codes + refs->start[r],
                              refs->len[r], l.best + reverse * l.half + l.ref_start[r], h, e);
        }
        select_hits(&l, setup, m, hits, ties);
    }
end:
    free(l.ref_start);
    free(l.best);
    free(h);
    free(e);
    free(query);
    return status;
}

/* ---- pairs --------------------------------------------------------------------------------------- */

static lw_status scalar_pair_ends(void *context, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                                  lw_error *err)
{
    lw_align_setup setup = ((scalar *)context)->setup;
    setup.n_hits = 1;
    for (int64_t i = 0; i < queries->n; i++) {
        int32_t m = queries->len[i], n = targets->len[i];
        uint8_t *query = malloc((size_t)m + 1);
        int32_t *h = malloc(((size_t)m + 1) * sizeof *h), *e = malloc(2 * ((size_t)m + 1) * sizeof *e);
        column *best = malloc(2 * ((size_t)n + 1) * sizeof *best);
        if (!query || !h || !e || !best) {
            free(query), free(h), free(e), free(best);
            return lw_fail_memory(err, 2 * ((size_t)n + 1) * sizeof *best);
        }
        int64_t zero = 0, start = targets->start[i];
        lw_seqs one = {.n = 1, .codes = targets->codes, .start = &start, .len = &n};
        landscape l = {.refs = &one, .best = best, .ref_start = &zero, .half = (int64_t)n + 1};
        for (int reverse = 0; reverse < 2; reverse++) {
            if (!(setup.strands & (reverse ? LW_REVERSE : LW_FORWARD)))
                continue;
            take_strand(query, queries->codes + queries->start[i], m, reverse, setup.scoring);
            score_columns(setup.scoring, setup.mode, query, m, targets->codes + start, n,
                          best + reverse * l.half, h, e);
        }
        hits[i] = (lw_hit){.target = -1};
        select_hits(&l, &setup, m, &hits[i], NULL);
        if (hits[i].target >= 0) {
            hits[i].target = (int32_t)i;
            hits[i].second = 0;
        }
        free(query), free(h), free(e), free(best);
    }
    return LW_OK;
}

/* ---- trace --------------------------------------------------------------------------------------- */

/* What each cell remembers, so that the walk back follows the tie rule: the source of H, the first of
 * diagonal, deletion, insertion that attains it (of two pieces the first), and whether each gap state
 * extends. */
enum {
    BY_INSERTION = 0,
    BY_DIAGONAL = 1,
    BY_DELETION = 2,
    SOURCE = 3,
    BY_SECOND_PIECE = 4,
    DELETION_EXTENDS = 8,   /* of the second piece: twice that */
    INSERTION_EXTENDS = 32, /* likewise */
    AT_ZERO = 128           /* local: the path stops here */
};

static void fill_directions(const lw_scoring *sc, lw_mode mode, const uint8_t *query, int32_t m,
                            const uint8_t *target, int32_t n, uint8_t *directions, int32_t *h, int32_t *e)
{
    const penalties gaps = penalties_of(sc);
    for (int32_t j = 0; j <= n; j++) {
        int32_t diagonal = 0, f[2] = {MINUS_INFINITY, MINUS_INFINITY};
        for (int32_t i = 0; i <= m; i++) {
            int32_t left = h[i];
            uint8_t *d = &directions[(size_t)j * ((size_t)m + 1) + (size_t)i];
            *d = 0;
            if (j == 0) {
                h[i] = mode == LW_LOCAL ? 0 : gap(sc, i);
                e[2 * i] = e[2 * i + 1] = MINUS_INFINITY;
            } else if (i == 0) {
                h[i] = mode == LW_GLOBAL ? gap(sc, j) : 0;
            } else {
                int32_t best = diagonal + pair_score(sc, query[i - 1], target[j - 1]);
                uint8_t source = BY_DIAGONAL, extends = 0;
                for (int p = 0; p < gaps.pieces; p++) { /* deletions first: they win ties */
                    int32_t extended = e[2 * i + p] - gaps.extend[p];
                    e[2 * i + p] = max32(extended, left - gaps.open[p]);
                    extends |= (uint8_t)(e[2 * i + p] == extended ? DELETION_EXTENDS << p : 0);
                    if (e[2 * i + p] > best) {
                        best = e[2 * i + p];
                        source = (uint8_t)(BY_DELETION | (p ? BY_SECOND_PIECE : 0));
                    }
                }
                for (int p = 0; p < gaps.pieces; p++) {
                    int32_t extended = f[p] - gaps.extend[p];
                    f[p] = max32(extended, h[i - 1] - gaps.open[p]);
                    extends |= (uint8_t)(f[p] == extended ? INSERTION_EXTENDS << p : 0);
                    if (f[p] > best) {
                        best = f[p];
                        source = (uint8_t)(BY_INSERTION | (p ? BY_SECOND_PIECE : 0));
                    }
                }
                h[i] = mode == LW_LOCAL ? max32(best, 0) : best;
                *d = source | extends;
            }
            if (mode == LW_LOCAL && h[i] == 0)
                *d |= AT_ZERO;
            diagonal = left;
        }
    }
}

lw_status lw_cigars_reserve(lw_cigars *cigars, int64_t more, lw_error *err)
{
    if (cigars->n + more <= cigars->capacity)
        return LW_OK;
    int64_t capacity = 2 * cigars->capacity > cigars->n + more ? 2 * cigars->capacity : cigars->n + more;
    uint32_t *grown = realloc(cigars->op, (size_t)capacity * sizeof *grown);
    if (!grown)
        return lw_fail_memory(err, (size_t)capacity * sizeof *grown);
    cigars->op = grown;
    cigars->capacity = capacity;
    return LW_OK;
}

/* Appends one letter's operation to the path that begins at `first` (built from its end). */
static lw_status push(lw_cigars *cigars, int64_t first, uint32_t op, lw_error *err)
{
    if (cigars->n > first && (cigars->op[cigars->n - 1] & 15) == op) {
        cigars->op[cigars->n - 1] += 1 << 4;
        return LW_OK;
    }
    LW_TRY(lw_cigars_reserve(cigars, 1, err));
    cigars->op[cigars->n++] = 1 << 4 | op;
    return LW_OK;
}

static lw_status walk_back(lw_mode mode, const uint8_t *directions, int32_t m, int32_t n, lw_path *path,
                           lw_cigars *cigars, lw_error *err)
{
    enum { OP_MATCH = 0, OP_INSERTION = 1, OP_DELETION = 2 };
    enum { IN_H, IN_DELETION, IN_INSERTION } state = IN_H;
    int piece = 0;
    int64_t first = cigars->n;
    int32_t i = m, j = n;
    for (;;) {
        uint8_t d = directions[(size_t)j * ((size_t)m + 1) + (size_t)i];
        if (state == IN_H) {
            if ((mode == LW_LOCAL && (d & AT_ZERO)) || (i == 0 && (j == 0 || mode == LW_SEMIGLOBAL)))
                break;
            if (i == 0 || j == 0) { /* the border is one gap */
                LW_TRY(push(cigars, first, i == 0 ? OP_DELETION : OP_INSERTION, err));
                if (i == 0)
                    j--;
                else
                    i--;
            } else if ((d & SOURCE) == BY_DIAGONAL) {
                LW_TRY(push(cigars, first, OP_MATCH, err));
                i--, j--;
            } else {
                state = (d & SOURCE) == BY_DELETION ? IN_DELETION : IN_INSERTION;
                piece = d & BY_SECOND_PIECE ? 1 : 0;
            }
        } else if (state == IN_DELETION) {
            LW_TRY(push(cigars, first, OP_DELETION, err));
            state = d & DELETION_EXTENDS << piece ? IN_DELETION : IN_H;
            j--;
        } else {
            LW_TRY(push(cigars, first, OP_INSERTION, err));
            state = d & INSERTION_EXTENDS << piece ? IN_INSERTION : IN_H;
            i--;
        }
    }
    path->qstart = i;
    path->tstart = j;
    path->cigar = first;
    path->n_cigar = (int32_t)(cigars->n - first);
    for (int64_t a = first, b = cigars->n - 1; a < b; a++, b--) {
        uint32_t op = cigars->op[a];
        cigars->op[a] = cigars->op[b];
        cigars->op[b] = op;
    }
    return LW_OK;
}

static lw_status scalar_trace(void *context, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                              const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    const lw_align_setup *setup = &((scalar *)context)->setup;
    if (!targets)
        targets = setup->refs;
    for (int64_t k = 0; k < n; k++) {
        const lw_trace_task *task = &tasks[k];
        size_t rows = (size_t)queries->len[task->query],
               cells = ((size_t)task->qlen + 1) * ((size_t)task->tlen + 1);
        uint8_t *query = malloc(rows + 1), *directions = malloc(cells);
        int32_t *h = malloc(((size_t)task->qlen + 1) * sizeof *h),
                *e = malloc(2 * ((size_t)task->qlen + 1) * sizeof *e);
        lw_status status = LW_OK;
        if (query && directions && h && e) {
            take_strand(query, queries->codes + queries->start[task->query], (int32_t)rows, task->reverse,
                        setup->scoring);
            fill_directions(setup->scoring, setup->mode, query, task->qlen,
                            targets->codes + targets->start[task->target] + task->tbegin, task->tlen,
                            directions, h, e);
            if (h[task->qlen] != task->score)
                status = lw_fail(err, LW_E_INTERNAL, "a traced alignment scores %d, its search said %d",
                                 h[task->qlen], task->score);
            else
                status = walk_back(setup->mode, directions, task->qlen, task->tlen, &paths[k], cigars, err);
            paths[k].tstart += task->tbegin;
        } else {
            status = lw_fail(
                err, LW_E_NOMEM,
                "the scalar reference keeps the whole matrix: %zu bytes could not be had; use --backend cpu",
                cells);
        }
        free(query), free(directions), free(h), free(e);
        LW_TRY(status);
    }
    return LW_OK;
}

const lw_align_backend lw_align_scalar = {
    .base = {.name = "scalar",
             .what = "textbook reference, one thread, 32 bits",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_scalar},
    .lanes = 1,
    .batch_letters = 1 << 16,
    .open = scalar_open,
    .place = scalar_place,
    .pair_ends = scalar_pair_ends,
    .trace = scalar_trace,
    .close = scalar_close,
};
