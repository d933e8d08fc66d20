/* test_backends.c - every row of the backend table against row 0, the scalar reference: the same placements,
 * ties, ends and paths from the same input. One body for all rows; the CPU row once per instruction set,
 * against the reference's answers of that input, which takes longer than all of them. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/align_backend.h"
#include "align/align_cpu.h"
#include "common/cpu.h"
#include "sanitized.h"

/* ---- inputs ------------------------------------------------------------------------------------------- */

/* Sequences that grow; lw_seqs is made of them when they are complete. */
typedef struct set {
    uint8_t *codes;
    int64_t letters, room;
    int64_t start[4096];
    int32_t len[4096];
    int64_t n;
} set;

static uint64_t random_state;

static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % below);
}

static uint8_t *add(set *s, int32_t n)
{
    cr_assert_lt(s->n, 4096);
    if (s->letters + n > s->room) {
        s->room = 2 * (s->letters + n) + 1024;
        s->codes = realloc(s->codes, (size_t)s->room);
        cr_assert_not_null(s->codes);
    }
    s->start[s->n] = s->letters;
    s->len[s->n++] = n;
    s->letters += n;
    return s->codes + s->letters - n;
}

static lw_seqs view(const set *s)
{
    return (lw_seqs){.n = s->n, .codes = s->codes, .start = s->start, .len = s->len};
}

static void clear(set *s)
{
    s->n = s->letters = 0;
}

static void add_random(set *s, int32_t n, uint32_t letters)
{
    uint8_t *p = add(s, n);
    for (int32_t i = 0; i < n; i++)
        p[i] = (uint8_t)next_random(letters);
}

static void add_constant(set *s, int32_t n, uint8_t code)
{
    memset(add(s, n), code, (size_t)n);
}

/* A period repeated: many equal placements. */
static void add_repeat(set *s, int32_t n, int32_t period, uint32_t letters)
{
    uint8_t *p = add(s, n);
    for (int32_t i = 0; i < n; i++)
        p[i] = i < period ? (uint8_t)next_random(letters) : p[i - period];
}

/* A piece of a reference with errors: substitutions, insertions, deletions in `per_mille` of the letters, and
 * now and then a long gap; every second one as its reverse complement. */
static void add_read(set *s, const set *refs, const lw_scoring *sc, int32_t n, uint32_t per_mille,
                     uint32_t letters)
{
    uint8_t *p = add(s, n);
    const set copy = *refs;
    int64_t r = next_random((uint32_t)copy.n), at = copy.len[r] ? next_random((uint32_t)copy.len[r]) : 0;
    for (int32_t i = 0; i < n; at++) {
        if (next_random(2000) < per_mille / 10)
            at += next_random(40);
        uint32_t error = next_random(1000) < per_mille ? 1 + next_random(3) : 0;
        uint8_t letter = at < copy.len[r] ? copy.codes[copy.start[r] + at] : (uint8_t)next_random(letters);
        if (error == 1) { /* substitution */
            p[i++] = (uint8_t)next_random(letters);
        } else if (error == 2) { /* insertion */
            p[i++] = (uint8_t)next_random(letters);
            at--;
        } else if (error == 0) {
            p[i++] = letter;
        }
    }
    if (next_random(2))
        for (int32_t i = 0; i < (n + 1) / 2; i++) {
            uint8_t a = sc->complement[p[i]], b = sc->complement[p[n - 1 - i]];
            p[i] = b;
            p[n - 1 - i] = a;
        }
}

/* ---- comparison --------------------------------------------------------------------------------------- */

typedef struct row {
    char name[16]; /* of the backend */
} row;

static lw_error err;

/* What is taken away of the processor's instruction sets, one after the other, for the row of the test. */
static const char *const disabled[] = {"", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon"};
/* The CPU takes bands for all pairs, of any cost, and this excess for the first of each; -1: as it would. */
static bool every_band;
static int32_t first_excess;

static const char *levels[sizeof disabled / sizeof *disabled];
static int n_levels;

static const lw_align_backend *find(const char *name)
{
    for (int i = 0; i < lw_align_backend_count; i++)
        if (strcmp(lw_align_backends[i]->base.name, name) == 0)
            return lw_align_backends[i];
    return NULL;
}

/* One level for a GPU; for the CPU those that differ on this processor: to take away what it does not have
 * leaves the same kernels. */
static void set_levels(const char *name)
{
    unsigned before = 0;
    n_levels = 0;
    for (size_t i = 0; i < sizeof disabled / sizeof *disabled; i++) {
        unsigned sets;
        setenv("LANEWISE_DISABLE", disabled[i], 1);
        cr_assert_eq(lw_isa_usable(&sets, &err), LW_OK, "%s", err.message);
        if (sets != before)
            levels[n_levels++] = disabled[i];
        before = sets;
        if (strcmp(name, "cpu") != 0)
            break;
    }
}

/* The row, or a skipped test. */
static const lw_align_backend *take(const row *r)
{
    const lw_align_backend *b = find(r->name);
    if (!b)
        cr_skip_test("backend %s is not compiled in", r->name);
    lw_error reason = {0};
    if (b->base.usable(&b->base, 0, &reason) != LW_OK)
        cr_skip_test("backend %s cannot run here: %s", r->name, reason.message);
    set_levels(r->name);
    return b;
}

/* The tested backend, with the instruction sets of a level. `name` is `what` and the level. */
static void *open_level(const lw_align_backend *tested, const lw_align_setup *setup, int level,
                        const char *what, char name[160])
{
    void *b;
    setenv("LANEWISE_DISABLE", levels[level], 1);
    snprintf(name, 160, "%s%s%s", what, levels[level][0] ? ", without " : "", levels[level]);
    cr_assert_eq(tested->open(tested, &b, setup, &err), LW_OK, "%s: %s", name, err.message);
    if (every_band && tested == &lw_align_cpu) {
        lw_cpu *c = b;
        c->first_excess = first_excess;
        c->band_cells = 0;
        c->every_band = true;
        if (first_excess == 2) /* checkpoints, of checkpoints too */
            c->trace_bytes = 1000;
    }
    return b;
}

static bool same_hit(const lw_hit *a, const lw_hit *b)
{
    if (a->target < 0 || b->target < 0)
        return a->target < 0 && b->target < 0;
    return a->score == b->score && a->target == b->target && a->tend == b->tend && a->qend == b->qend &&
           a->second == b->second && a->reverse == b->reverse;
}

static const char *show(const lw_hit *h)
{
    static char text[2][120];
    static int k;
    k = !k;
    snprintf(text[k], sizeof text[k], "score %d target %d%c tend %d qend %d second %d", h->score, h->target,
             h->reverse ? '-' : '+', h->tend, h->qend, h->second);
    return text[k];
}

static int failures;

static bool agree(const char *what, int64_t i, int k, const lw_hit *want, const lw_hit *got)
{
    if (same_hit(want, got))
        return true;
    if (failures++ < 10)
        cr_expect(0, "%s, record %ld, number %d: want %s, got %s", what, (long)i, k, show(want), show(got));
    return false;
}

/* The reference's paths of hits. */
typedef struct traces {
    lw_trace_task *tasks;
    lw_path *want;
    lw_cigars ops;
    int64_t n;
} traces;

/* Of n records, `each` a record. */
static traces trace_hits(void *a, const lw_align_setup *setup, const lw_seqs *queries, const lw_seqs *targets,
                         const lw_hit *hits, int64_t n, int each)
{
    const size_t room = (size_t)(n * each + 1);
    traces t = {.tasks = malloc(room * sizeof *t.tasks), .want = malloc(room * sizeof *t.want)};
    for (int64_t i = 0; i < n * each; i++) {
        if (hits[i].target < 0)
            continue;
        lw_trace_window(setup->scoring, setup->mode, &hits[i], &t.tasks[t.n]);
        t.tasks[t.n++].query = i / each;
    }
    cr_assert_eq(lw_align_scalar.trace(a, queries, targets, t.n, t.tasks, t.want, &t.ops, &err), LW_OK, "%s",
                 err.message);
    return t;
}

static void free_traces(traces *t)
{
    free(t->tasks), free(t->want), free(t->ops.op);
}

static void compare_traces(const char *what, const lw_align_backend *tested, void *b, const lw_seqs *queries,
                           const lw_seqs *targets, const traces *t)
{
    lw_path *got = malloc((size_t)(t->n + 1) * sizeof *got);
    lw_cigars got_ops = {0};
    /* appended to what is there */
    cr_assert_eq(lw_cigars_reserve(&got_ops, 3, &err), LW_OK);
    got_ops.n = 3;
    cr_assert_eq(tested->trace(b, queries, targets, t->n, t->tasks, got, &got_ops, &err), LW_OK, "%s: %s",
                 what, err.message);
    for (int64_t i = 0; i < t->n; i++) {
        const lw_path *want = &t->want[i];
        bool same = want->qstart == got[i].qstart && want->tstart == got[i].tstart &&
                    want->n_cigar == got[i].n_cigar && got[i].cigar >= 3;
        if (same && want->n_cigar)
            same = memcmp(t->ops.op + want->cigar, got_ops.op + got[i].cigar,
                          (size_t)want->n_cigar * sizeof *t->ops.op) == 0;
        if (!same && failures++ < 10)
            cr_expect(0, "%s, path %ld: want start %d/%d and %d operations, got %d/%d and %d", what, (long)i,
                      want->qstart, want->tstart, want->n_cigar, got[i].qstart, got[i].tstart,
                      got[i].n_cigar);
    }
    free(got), free(got_ops.op);
}

/* Places, ties, traces: all must be what the reference says. */
static void compare_place(const char *what, const lw_align_backend *tested, const lw_scoring *sc,
                          lw_mode mode, unsigned strands, const set *refs, const set *reads, int n_hits,
                          int n_ties, int32_t min_score, lw_pool *pool)
{
    lw_seqs targets = view(refs), queries = view(reads);
    lw_align_setup setup = {.scoring = sc,
                            .mode = mode,
                            .strands = strands,
                            .refs = &targets,
                            .min_score = min_score,
                            .n_hits = n_hits,
                            .n_ties = n_ties,
                            .pool = pool};
    void *a;
    cr_assert_eq(lw_align_scalar.open(&lw_align_scalar, &a, &setup, &err), LW_OK, "%s", err.message);
    size_t hits = (size_t)(queries.n * n_hits + 1), ties = (size_t)(queries.n * n_ties + 1);
    lw_hit *want_hits = malloc(hits * sizeof(lw_hit)), *want_ties = malloc(ties * sizeof(lw_hit));
    lw_placements want = {want_hits, n_ties ? want_ties : NULL};
    cr_assert_eq(lw_align_scalar.place(a, &queries, &want, &err), LW_OK, "%s", err.message);
    traces t = trace_hits(a, &setup, &queries, NULL, want_hits, queries.n, n_hits);
    for (int level = 0; level < n_levels; level++) {
        char name[160];
        void *b = open_level(tested, &setup, level, what, name);
        lw_hit *got_hits = malloc(hits * sizeof(lw_hit)), *got_ties = malloc(ties * sizeof(lw_hit));
        memset(got_hits, 0x55, hits * sizeof(lw_hit));
        memset(got_ties, 0x55, ties * sizeof(lw_hit));
        lw_placements got = {got_hits, n_ties ? got_ties : NULL};
        cr_assert_eq(tested->place(b, &queries, &got, &err), LW_OK, "%s: %s", name, err.message);
        for (int64_t i = 0; i < queries.n; i++) {
            for (int k = 0; k < n_hits; k++)
                if (!agree(name, i, k, &want_hits[i * n_hits + k], &got_hits[i * n_hits + k]))
                    break;
            for (int k = 0; k < n_ties; k++)
                if (!agree(name, i, 1000 + k, &want_ties[i * n_ties + k], &got_ties[i * n_ties + k]))
                    break;
        }
        compare_traces(name, tested, b, &queries, NULL, &t);
        free(got_hits), free(got_ties);
        tested->close(b);
    }
    free(want_hits), free(want_ties), free_traces(&t);
    lw_align_scalar.close(a);
}

/* Ends and paths in one go must be what the reference finds one after the other: hits, paths and ops. */
static void compare_ends_and_paths(const char *what, const lw_align_backend *tested, void *b,
                                   const lw_seqs *queries, const lw_seqs *targets, const lw_hit *want,
                                   const lw_path *want_paths, const lw_cigars *want_ops)
{
    const size_t n = (size_t)queries->n + 1;
    lw_hit *got = malloc(n * sizeof *got);
    lw_path *got_paths = malloc(n * sizeof *got_paths);
    lw_cigars got_ops = {0};
    memset(got, 0x55, n * sizeof *got);
    cr_assert_eq(tested->pairs(b, queries, targets, got, got_paths, &got_ops, &err), LW_OK, "%s: %s", what,
                 err.message);
    for (int64_t i = 0; i < queries->n; i++) {
        const lw_path *x = &want_paths[i], *y = &got_paths[i];
        if (!agree(what, i, 0, &want[i], &got[i]))
            continue;
        bool same = x->n_cigar == y->n_cigar;
        if (same && want[i].target >= 0)
            same = x->qstart == y->qstart && x->tstart == y->tstart &&
                   (x->n_cigar == 0 || memcmp(want_ops->op + x->cigar, got_ops.op + y->cigar,
                                              (size_t)x->n_cigar * sizeof *want_ops->op) == 0);
        if (!same && failures++ < 10)
            cr_expect(0, "%s, pair %ld with its end: another path", what, (long)i);
    }
    free(got), free(got_paths), free(got_ops.op);
}

static int64_t device_bytes; /* that a row may take; 0: what is free */

static void compare_pairs(const char *what, const lw_align_backend *tested, const lw_scoring *sc,
                          lw_mode mode, unsigned strands, const set *a_set, const set *b_set, lw_pool *pool)
{
    lw_seqs queries = view(a_set), targets = view(b_set);
    lw_align_setup setup = {
        .scoring = sc, .mode = mode, .strands = strands, .min_score = INT32_MIN, .n_hits = 1, .pool = pool};
    const bool together = tested->pairs && strands == LW_FORWARD;
    const size_t n = (size_t)queries.n + 1;
    void *a;
    cr_assert_eq(lw_align_scalar.open(&lw_align_scalar, &a, &setup, &err), LW_OK);
    setup.device_bytes = device_bytes;
    lw_hit *want = malloc(n * sizeof *want), *want_together = malloc(n * sizeof *want_together);
    lw_path *want_paths = malloc(n * sizeof *want_paths);
    lw_cigars want_ops = {0};
    cr_assert_eq(lw_align_scalar.pair_ends(a, &queries, &targets, want, &err), LW_OK, "%s", err.message);
    traces t = trace_hits(a, &setup, &queries, &targets, want, queries.n, 1);
    if (together)
        cr_assert_eq(lw_align_pairs_with(&lw_align_scalar, a, &setup, &queries, &targets, want_together,
                                         want_paths, &want_ops, &err),
                     LW_OK, "%s", err.message);
    for (int level = 0; level < n_levels; level++) {
        char name[160];
        void *b = open_level(tested, &setup, level, what, name);
        lw_hit *got = malloc(n * sizeof *got);
        cr_assert_eq(tested->pair_ends(b, &queries, &targets, got, &err), LW_OK, "%s: %s", name, err.message);
        for (int64_t i = 0; i < queries.n; i++)
            agree(name, i, 0, &want[i], &got[i]);
        compare_traces(name, tested, b, &queries, &targets, &t);
        if (together)
            compare_ends_and_paths(name, tested, b, &queries, &targets, want_together, want_paths, &want_ops);
        free(got);
        tested->close(b);
    }
    free(want), free(want_together), free(want_paths), free(want_ops.op), free_traces(&t);
    lw_align_scalar.close(a);
}

/* ---- schemes ---------------------------------------------------------------------------------------------
 */

typedef struct scheme {
    const char *name;
    int match, mismatch; /* -1: a matrix by name */
    int open, extend;
} scheme;

static const scheme dna_schemes[] = {
    {"1/4/6/1", 1, 4, 6, 1},     {"2/3/5/2", 2, 3, 5, 2},
    {"1/1/0/0", 1, 1, 0, 0},     {"1/4/0/1", 1, 4, 0, 1},
    {"5/4/10/0", 5, 4, 10, 0},   {"1/0/1/1", 1, 0, 1, 1},
    {"0/0/0/0", 0, 0, 0, 0},     {"3/200/300/7", 3, 200, 300, 7},
    {"1/29/61/3", 1, 29, 61, 3}, {"999/32767/32767/32767", 999, 32767, 32767, 32767},
};

typedef struct two_piece {
    scheme first;
    int open, extend; /* of the second piece */
} two_piece;

static const two_piece two_piece_schemes[] = {
    {{"2/4/4/2 24/1", 2, 4, 4, 2}, 24, 1},
    {{"1/1/1/3 5/1", 1, 1, 1, 3}, 5, 1},
    {{"BLOSUM62", -1, 0, 9, 3}, 30, 1},
    {{"equal pieces", 2, 4, 4, 2}, 4, 2},
    {{"the second never wins", 1, 4, 6, 1}, 9, 1},
    {{"the first never wins", 2, 4, 24, 2}, 4, 1},
    {{"equal prices at one letter", 2, 3, 2, 3}, 4, 1},
    {{"equal prices at five letters", 1, 2, 0, 2}, 5, 1},
    {{"free to extend", 3, 2, 1, 2}, 9, 0},
    {{"all free", 1, 1, 0, 0}, 0, 0},
    {{"large", 999, 32767, 900, 30}, 32767, 0},
    {{"the second is out of reach", 5, 9, 7, 2}, 32767, 32767},
    {{"both are out of reach", 9, 9, 32767, 32767}, 32767, 32766},
};

static const scheme matrix_schemes[] = {{"BLOSUM62", -1, 0, 11, 1},
                                        {"BLOSUM62", -1, 0, 0, 1},
                                        {"PAM250", -1, 0, 10, 0},
                                        {"NUC.4.4", -1, 0, 10, 1}};

static void make(lw_scoring *sc, const scheme *s)
{
    if (s->match >= 0)
        cr_assert_eq(lw_scoring_dna(sc, s->match, s->mismatch, s->open, s->extend, &err), LW_OK, "%s",
                     err.message);
    else
        cr_assert_eq(
            lw_scoring_matrix(sc, s->name, s->name[0] == 'N' ? LW_DNA : LW_PROTEIN, s->open, s->extend, &err),
            LW_OK, "%s", err.message);
}

static void make_two_piece(lw_scoring *sc, const two_piece *s)
{
    make(sc, &s->first);
    cr_assert_eq(lw_scoring_two_piece(sc, s->open, s->extend, &err), LW_OK, "%s", err.message);
}

static const char *mode_name(lw_mode mode)
{
    return mode == LW_LOCAL ? "local" : mode == LW_GLOBAL ? "global" : "semiglobal";
}

/* ---- the rows
 * ---------------------------------------------------------------------------------------------- */

static const row rows[] = {{"cpu"}, {"cuda-dpx"}, {"cuda-half2"}, {"cuda-int"}};

static struct criterion_test_params all_rows(void)
{
    const size_t n = sizeof rows / sizeof *rows;
    row *copy = cr_malloc(sizeof rows);
    memcpy(copy, rows, sizeof rows);
    return cr_make_param_array(row, copy, n, NULL);
}

#define ROWS(test)                                                                                           \
    ParameterizedTestParameters(backends, test)                                                              \
    {                                                                                                        \
        return all_rows();                                                                                   \
    }                                                                                                        \
    ParameterizedTest(row *r, backends, test)

ROWS(place_random)
{
    const lw_align_backend *b = take(r);
    static set refs, reads;
    lw_scoring sc;
    for (size_t s = 0; s < sizeof dna_schemes / sizeof *dna_schemes; s++)
        for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
            random_state = 77 + s;
            make(&sc, &dna_schemes[s]);
            clear(&refs), clear(&reads);
            add_random(&refs, 700, 4);
            add_random(&refs, 1, 4);
            add_random(&refs, 333, 5);
            add_repeat(&refs, 200, 7, 4);
            for (int i = 0; i < LW_FEWER(60, 20); i++)
                add_read(&reads, &refs, &sc, 20 + (int32_t)next_random(140), 30 * (uint32_t)(i % 4), 4);
            for (int32_t n = 0; n < 12; n++)
                add_random(&reads, n, 5);
            char what[80];
            snprintf(what, sizeof what, "%s %s", dna_schemes[s].name, mode_name(mode));
            compare_place(what, b, &sc, mode, LW_BOTH_STRANDS, &refs, &reads, 1, 4, INT32_MIN, NULL);
        }
}

ROWS(place_lists)
{
    const lw_align_backend *b = take(r);
    static set refs, reads;
    lw_scoring sc;
    static const struct {
        int n_hits, n_ties;
        unsigned strands;
        int32_t min_score;
    } lists[] = {{1, 0, LW_FORWARD, INT32_MIN},
                 {5, 0, LW_REVERSE, INT32_MIN},
                 {3, 64, LW_BOTH_STRANDS, INT32_MIN},
                 {40, 1, LW_BOTH_STRANDS, 12},
                 {2, 2, LW_BOTH_STRANDS, 60}};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (size_t s = 0; s < 5; s++)
            for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
                random_state = 5 + s;
                make(&sc, &dna_schemes[s]);
                clear(&refs), clear(&reads);
                add_repeat(&refs, 640, 31, 4);
                add_random(&refs, 33, 4);
                add_constant(&refs, 97, 0);
                for (int i = 0; i < 12; i++)
                    add_read(&reads, &refs, &sc, 5 + (int32_t)next_random(60), 20, 4);
                add_constant(&reads, 40, 0);
                add_constant(&reads, 40, 3); /* its reverse complement is the one before */
                add_constant(&reads, 9, 4);
                add_constant(&reads, 1, 0);
                uint8_t *p = add(&reads, 30); /* equal to its reverse complement */
                for (int i = 0; i < 15; i++) {
                    p[i] = (uint8_t)next_random(4);
                    p[29 - i] = sc.complement[p[i]];
                }
                char what[80];
                snprintf(what, sizeof what, "list %zu %s %s", l, dna_schemes[s].name, mode_name(mode));
                compare_place(what, b, &sc, mode, lists[l].strands, &refs, &reads, lists[l].n_hits,
                              lists[l].n_ties, lists[l].min_score, NULL);
            }
}

/* Reference lengths and read lengths around strips, blocks, chunks and lanes. */
ROWS(place_boundaries)
{
    const lw_align_backend *b = take(r);
    static set refs, reads;
    lw_scoring sc;
    make(&sc, &dna_schemes[0]);
    static const int32_t lengths[] = {1,  2,  7,  8,  9,   15,  16,  17,  31,  32,  33,   63,
                                      64, 65, 95, 96, 127, 128, 129, 511, 512, 513, 1024, 1030};
    for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
        random_state = 99;
        clear(&refs), clear(&reads);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            add_random(&refs, lengths[i], 4);
        for (int32_t n = 1; n < 200; n += n < 20 ? 1 : 13)
            add_read(&reads, &refs, &sc, n, 20, 4);
        for (int32_t n = 245; n < 252; n++)
            add_read(&reads, &refs, &sc, n, 0, 4);
        compare_place(mode_name(mode), b, &sc, mode, LW_BOTH_STRANDS, &refs, &reads, 2, 3, INT32_MIN, NULL);
    }
}

/* Scores on both sides of what 8 and 16 bits hold; lanes of very different lengths. */
ROWS(place_limits)
{
    const lw_align_backend *b = take(r);
    static set refs, reads;
    lw_scoring sc;
    static const scheme schemes[] = {{"1/4/6/1", 1, 4, 6, 1},
                                     {"40/50/60/10", 40, 50, 60, 10},
                                     {"400/500/600/100", 400, 500, 600, 100},
                                     {"30000/32767/0/32767", 30000, 32767, 0, 32767}};
    for (size_t s = 0; s < 4; s++)
        for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
            random_state = 3 + s;
            make(&sc, &schemes[s]);
            clear(&refs), clear(&reads);
            add_random(&refs, 700, 4);
            for (int32_t n = 1; n <= 650; n += 1 + n / 2)
                add_read(&reads, &refs, &sc, n, 0, 4);
            for (int32_t n = 150; n <= 175; n += 3)
                add_read(&reads, &refs, &sc, n, 10, 4);
            for (int32_t n = 230; n < 260; n += 5)
                add_read(&reads, &refs, &sc, n, 0, 4);
            char what[80];
            snprintf(what, sizeof what, "%s %s", schemes[s].name, mode_name(mode));
            compare_place(what, b, &sc, mode, LW_BOTH_STRANDS, &refs, &reads, 1, 2, INT32_MIN, NULL);
        }
}

/* Queries longer than a row tile, references longer than a chunk, long deletions, threads. */
ROWS(place_long)
{
    const lw_align_backend *b = take(r);
    static set refs, reads;
    lw_scoring sc;
    lw_pool *pool;
    cr_assert_eq(lw_pool_open(&pool, 2, &err), LW_OK);
    for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
        random_state = 11;
        make(&sc, &dna_schemes[0]);
        clear(&refs), clear(&reads);
        add_random(&refs, 1500, 4);
        add_random(&refs, 600, 4);
        for (int i = 0; i < 4; i++)
            add_read(&reads, &refs, &sc, 480 + 200 * i, 20, 4);
        for (int32_t n = 510; n < 515; n++)
            add_read(&reads, &refs, &sc, n, 100, 4);
        uint8_t *p = add(&reads, 900); /* 450 letters deleted in the middle */
        memcpy(p, refs.codes, 450);
        memcpy(p + 450, refs.codes + 900, 450);
        compare_place(mode_name(mode), b, &sc, mode, LW_BOTH_STRANDS, &refs, &reads, 2, 2, INT32_MIN, pool);
    }
    lw_pool_close(pool);
}

ROWS(place_matrices)
{
    const lw_align_backend *b = take(r);
    static set refs, reads;
    lw_scoring sc;
    for (size_t s = 0; s < sizeof matrix_schemes / sizeof *matrix_schemes; s++)
        for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
            random_state = 21 + s;
            make(&sc, &matrix_schemes[s]);
            uint32_t letters = (uint32_t)sc.n_letters;
            clear(&refs), clear(&reads);
            add_random(&refs, 900, letters);
            add_random(&refs, 70, letters);
            for (int i = 0; i < 40; i++)
                add_read(&reads, &refs, &sc, 1 + (int32_t)next_random(120), 100, letters);
            char what[80];
            snprintf(what, sizeof what, "%s %s", matrix_schemes[s].name, mode_name(mode));
            compare_place(what, b, &sc, mode, sc.type == LW_PROTEIN ? LW_FORWARD : LW_BOTH_STRANDS, &refs,
                          &reads, 3, 2, INT32_MIN, NULL);
        }
}

ROWS(pairs)
{
    const lw_align_backend *b = take(r);
    static set queries, targets;
    lw_scoring sc;
    for (size_t s = 0;
         s < sizeof dna_schemes / sizeof *dna_schemes + sizeof matrix_schemes / sizeof *matrix_schemes; s++)
        for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
            const size_t dna = sizeof dna_schemes / sizeof *dna_schemes;
            const scheme *chosen = s < dna ? &dna_schemes[s] : &matrix_schemes[s - dna];
            random_state = 31 + s;
            make(&sc, chosen);
            uint32_t letters = (uint32_t)sc.n_letters;
            clear(&queries), clear(&targets);
            static set one;
            for (int i = 0; i < 150; i += LW_FEWER(1, 3)) {
                clear(&one);
                add_random(&one, (int32_t)next_random(i < 100 ? 40 : 200), letters);
                memcpy(add(&targets, one.len[0]), one.codes, (size_t)one.len[0]);
                add_read(&queries, &one, &sc, (int32_t)next_random(i < 100 ? 40 : 200), 150, letters);
            }
            add_constant(&queries, 50, 0), add_constant(&targets, 70, 0);
            add_constant(&queries, 3, 0), add_constant(&targets, 700, 0);
            add_repeat(&queries, 90, 3, 4), add_repeat(&targets, 120, 3, 4);
            add_random(&queries, 0, 4), add_random(&targets, 0, 4);
            add_random(&queries, 0, 4), add_random(&targets, 5, 4);
            add_random(&queries, 5, 4), add_random(&targets, 0, 4);
            char what[80];
            snprintf(what, sizeof what, "pairs %s %s", chosen->name, mode_name(mode));
            compare_pairs(what, b, &sc, mode, s % 2 ? LW_BOTH_STRANDS : LW_FORWARD, &queries, &targets, NULL);
        }
}

/* Pairs that get all lanes for themselves, of shapes around the bands, and one whose directions need
 * checkpoints. */
ROWS(pairs_long)
{
    const lw_align_backend *b = take(r);
    static set queries, targets, one;
    lw_scoring sc;
    for (int s = 0; s < 3; s += LW_FEWER(1, 2))
        for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
            random_state = 41;
            make(&sc, s == 2 ? &matrix_schemes[0] : &dna_schemes[s]);
            clear(&queries), clear(&targets);
            static const int32_t shape[][2] = {{1030, 1100}, {1025, 1024}, {100, 11000},
                                               {3, 400000},  {9000, 120},  {4500, 4700}};
            /* the last one once */
            const bool last = s == 0 && (mode == LW_LOCAL || !LW_SANITIZED);
            const size_t shapes = sizeof shape / sizeof *shape - !last;
            for (size_t i = 0; i < shapes; i++) {
                if (LW_SANITIZED && i == 3 && mode != (s == 0 ? LW_GLOBAL : LW_SEMIGLOBAL))
                    continue;
                clear(&one);
                add_random(&one, shape[i][1], 4);
                memcpy(add(&targets, shape[i][1]), one.codes, (size_t)shape[i][1]);
                add_read(&queries, &one, &sc, shape[i][0], i % 2 ? 100 : 5, 4);
            }
            char what[80];
            snprintf(what, sizeof what, "long pairs %d %s", s, mode_name(mode));
            compare_pairs(what, b, &sc, mode, LW_FORWARD, &queries, &targets, NULL);
        }
}

/* Pairs in bands, of which the first are too narrow and the last the whole matrix or more. */
static void compare_bands(const char *what, const lw_align_backend *tested, const lw_scoring *sc, int rounds)
{
    static set queries, targets, one, refs, reads;
    for (lw_mode mode = LW_GLOBAL; mode <= LW_SEMIGLOBAL; mode++)
        for (int32_t excess = -1; excess < 12; excess = 2 * excess + 2) {
            const uint32_t letters = (uint32_t)sc->n_letters;
            clear(&queries), clear(&targets);
            for (int i = 0; i < rounds; i++) {
                /* unlike, and much longer than each other */
                const int32_t m = 1 + (int32_t)next_random(i % 8 ? 90 : 900),
                              n = 1 + (int32_t)next_random(i % 8 == 1 ? 900 : 90);
                add_random(&queries, m, i % 2 ? 2 : letters), add_random(&targets, n, i % 2 ? 2 : letters);
                /* alike, the target a part of the query or the reverse, of several lengths around strips */
                clear(&one);
                add_random(&one, 1 + (int32_t)next_random(i % 8 ? 150 : 700), i % 3 ? letters : 2);
                memcpy(add(&targets, one.len[0]), one.codes, (size_t)one.len[0]);
                add_read(&queries, &one, sc, 1 + (int32_t)next_random((uint32_t)one.len[0] + 30),
                         20 * (uint32_t)(i % 4), letters);
                clear(&one);
                add_random(&one, 1 + (int32_t)next_random(150), i % 3 ? letters : 2);
                memcpy(add(&queries, one.len[0]), one.codes, (size_t)one.len[0]);
                add_read(&targets, &one, sc, 1 + (int32_t)next_random((uint32_t)one.len[0] + 30),
                         20 * (uint32_t)(i % 4), letters);
            }
            /* gaps at both ends, ties everywhere, hardly any letters */
            uint8_t *p = add(&queries, 300);
            for (int k = 0; k < 300; k++)
                p[k] = (uint8_t)next_random(4);
            memcpy(add(&targets, 220), p + 40, 220);
            memcpy(add(&targets, 300), p, 300);
            memcpy(add(&queries, 220), p + 40, 220);
            for (int32_t n = 0; n < 40; n += 13) {
                add_constant(&queries, 17, 0), add_constant(&targets, n, 0);
                add_constant(&queries, n, 1), add_constant(&targets, 300, 1);
                add_constant(&queries, 300, 0), add_constant(&targets, n, 1);
                add_repeat(&queries, 200 + n, 3, 4), add_repeat(&targets, 260 - n, 3, 4);
            }
            char name[80];
            snprintf(name, sizeof name, "bands from %d, %s %s", excess, what, mode_name(mode));
            every_band = true, first_excess = excess;
            if (excess == 0) { /* paths that are not the best of their pairs */
                clear(&refs), clear(&reads);
                add_random(&refs, 300, letters);
                add_repeat(&refs, 150, 7, letters);
                for (int i = 0; i < 8; i++)
                    add_read(&reads, &refs, sc, 20 + (int32_t)next_random(100), 30 * (uint32_t)(i % 4),
                             letters);
                compare_place(name, tested, sc, mode, LW_FORWARD, &refs, &reads, 3, 4, INT32_MIN, NULL);
            }
            compare_pairs(name, tested, sc, mode, excess ? LW_FORWARD : LW_BOTH_STRANDS, &queries, &targets,
                          NULL);
            every_band = false;
        }
}

ROWS(pairs_in_bands)
{
    const lw_align_backend *b = take(r);
    lw_scoring sc;
    for (size_t s = 0; s < sizeof dna_schemes / sizeof *dna_schemes; s++) {
        random_state = 61 + s;
        make(&sc, &dna_schemes[s]);
        compare_bands(dna_schemes[s].name, b, &sc, LW_FEWER(10, 4));
    }
    for (size_t s = 0; s < sizeof matrix_schemes / sizeof *matrix_schemes; s++) {
        random_state = 71 + s;
        make(&sc, &matrix_schemes[s]);
        compare_bands(matrix_schemes[s].name, b, &sc, LW_FEWER(4, 2));
    }
}

ROWS(two_pieces_in_bands)
{
    const lw_align_backend *b = take(r);
    lw_scoring sc;
    for (size_t s = 0; s < sizeof two_piece_schemes / sizeof *two_piece_schemes; s++) {
        random_state = 81 + s;
        make_two_piece(&sc, &two_piece_schemes[s]);
        compare_bands(two_piece_schemes[s].first.name, b, &sc, LW_FEWER(4, 2));
    }
}

static bool is_cuda(const lw_align_backend *b)
{
    return strncmp(b->base.name, "cuda", 4) == 0;
}

/* A target and a query that go `apart` letters from the diagonal and come back: what the one lacks at a third
 * of its length, the other lacks at two thirds. */
static void add_excursion(set *queries, set *targets, int32_t n, int32_t apart)
{
    const int32_t g = abs(apart), third = n / 3;
    set *lacks_first = apart > 0 ? queries : targets, *other = apart > 0 ? targets : queries;
    static uint8_t all[1 << 14];
    cr_assert(n + g <= (int32_t)sizeof all && third + g <= n);
    for (int32_t i = 0; i < n + g; i++)
        all[i] = (uint8_t)next_random(4);
    uint8_t *p = add(lacks_first, n), *q = add(other, n);
    memcpy(p, all, (size_t)third);
    memcpy(p + third, all + third + g, (size_t)(n - third));
    memcpy(q, all, (size_t)(2 * third));
    memcpy(q + 2 * third, all + 2 * third + g, (size_t)(n - 2 * third));
}

/* Pairs that may be computed in a band: paths that go as far as its border and further, ties along it, unlike
 * lengths, hardly any likeness at all; then few long ones, whose bands are rows of strips. */
ROWS(pairs_in_bands_of_lanes)
{
    const lw_align_backend *b = take(r);
    if (!is_cuda(b))
        cr_skip_test("%s computes all cells", b->base.name);
    static set queries, targets, one;
    static const int chosen[] = {0, 1, 2, 4, 5, 7};
    lw_scoring sc;
    for (size_t s = 0; s < sizeof chosen / sizeof *chosen; s++)
        for (lw_mode mode = LW_GLOBAL; mode <= LW_SEMIGLOBAL; mode++) {
            char what[80];
            random_state = 51 + s;
            make(&sc, s == 5 ? &matrix_schemes[0] : &dna_schemes[chosen[s]]);
            clear(&queries), clear(&targets);
            for (int32_t apart = 66; apart <= 114; apart += 3) /* a first band of 800 letters: 100 or 108 */
                add_excursion(&queries, &targets, 800, s % 2 ? apart : -apart);
            for (int32_t i = 0; i < 40; i++) {
                const int32_t n = 256 + (int32_t)next_random(900);
                clear(&one);
                if (i % 4 == 3)
                    add_repeat(&one, n, 1 + (int32_t)next_random(9), 4);
                else
                    add_random(&one, n, 4);
                memcpy(add(&targets, n), one.codes, (size_t)n);
                add_read(&queries, &one, &sc, n - (int32_t)next_random(i % 5 ? 20 : 200),
                         (uint32_t[]){10, 50, 150, 30}[i % 4], 4);
            }
            for (int32_t n = 256; n < 1400; n += 190) {
                add_constant(&queries, n, 1), add_constant(&targets, n + n % 7, 1);
                add_random(&queries, n, 4), add_random(&targets, n - n % 11, 4);
            }
            snprintf(what, sizeof what, "in bands, scheme %zu %s", s, mode_name(mode));
            compare_pairs(what, b, &sc, mode, LW_FORWARD, &queries, &targets, NULL);
            if (s != 0 && s != 3)
                continue;
            clear(&queries), clear(&targets);
            add_excursion(&queries, &targets, 5990, 250);
            add_excursion(&queries, &targets, 6666, -700);
            clear(&one);
            add_random(&one, 6200, 4);
            memcpy(add(&targets, 6200), one.codes, 6200);
            add_read(&queries, &one, &sc, 6143, 20, 4);
            snprintf(what, sizeof what, "in wide bands, scheme %zu %s", s, mode_name(mode));
            compare_pairs(what, b, &sc, mode, LW_FORWARD, &queries, &targets, NULL);
        }
}

/* Little memory, so that checkpoints lie 512 rows and columns apart: an odd number of strips and of rows. */
ROWS(pairs_in_little_memory)
{
    const lw_align_backend *b = take(r);
    if (!is_cuda(b))
        cr_skip_test("%s keeps no checkpoints in device memory", b->base.name);
    static set queries, targets;
    lw_scoring sc;
    make(&sc, &dna_schemes[0]);
    random_state = 61;
    add_random(&queries, 10300, 4), add_random(&targets, 10001, 4);
    add_excursion(&queries, &targets, 10299, 30);
    for (device_bytes = 12 << 20; device_bytes <= 24 << 20; device_bytes *= 2)
        compare_pairs("in little memory", b, &sc, LW_GLOBAL, LW_FORWARD, &queries, &targets, NULL);
    device_bytes = 0;
}

/* A target, and a query that is a part of it without a piece of `gap` letters (negative: with as many more).
 */
static void add_gap_pair(set *queries, set *targets, int32_t flank, int32_t gap)
{
    const int32_t n = 2 * flank + (gap > 0 ? gap : 0), m = n - gap;
    uint8_t *t = add(targets, n);
    for (int32_t i = 0; i < n; i++)
        t[i] = (uint8_t)(next_random(8) ? next_random(4) : i ? t[i - 1] : 0);
    uint8_t *q = add(queries, m);
    memcpy(q, t, (size_t)flank);
    for (int32_t i = flank; i < m - flank; i++)
        q[i] = (uint8_t)next_random(4);
    memcpy(q + m - flank, t + n - flank, (size_t)flank);
}

ROWS(two_pieces)
{
    const lw_align_backend *b = take(r);
    static set refs, reads, a, t;
    lw_scoring sc;
    for (size_t s = 0; s < sizeof two_piece_schemes / sizeof *two_piece_schemes; s++)
        for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
            random_state = 90 + s;
            make_two_piece(&sc, &two_piece_schemes[s]);
            clear(&refs), clear(&reads), clear(&a), clear(&t);
            add_random(&refs, 400, 4);
            add_repeat(&refs, 150, 7, 4);
            for (int i = 0; i < 24; i++)
                add_read(&reads, &refs, &sc, 20 + (int32_t)next_random(100), 30 * (uint32_t)(i % 4), 4);
            uint8_t *p = add(&reads, 200); /* 60 letters deleted in the middle */
            memcpy(p, refs.codes + 10, 100);
            memcpy(p + 100, refs.codes + 170, 100);
            char what[80];
            snprintf(what, sizeof what, "two pieces %s %s", two_piece_schemes[s].first.name, mode_name(mode));
            compare_place(what, b, &sc, mode, LW_BOTH_STRANDS, &refs, &reads, 2, 4, INT32_MIN, NULL);
            for (int i = 0; i < 24; i++) {
                static set one;
                clear(&one);
                add_random(&one, (int32_t)next_random(200), 4);
                memcpy(add(&t, one.len[0]), one.codes, (size_t)one.len[0]);
                add_read(&a, &one, &sc, (int32_t)next_random(200), 60, 4);
            }
            for (int32_t gap = -40; gap <= 40; gap += gap > -8 && gap < 8 ? 1 : 4)
                add_gap_pair(&a, &t, 12 + (int32_t)next_random(60), gap);
            add_constant(&a, 50, 0), add_constant(&t, 70, 0);
            add_constant(&a, 3, 0), add_constant(&t, 700, 0);
            add_repeat(&a, 90, 3, 4), add_repeat(&t, 120, 3, 4);
            add_random(&a, 0, 4), add_random(&t, 5, 4);
            add_random(&a, 5, 4), add_random(&t, 0, 4);
            compare_pairs(what, b, &sc, mode, s % 2 ? LW_BOTH_STRANDS : LW_FORWARD, &a, &t, NULL);
        }
}

/* The same for pairs that get all lanes for themselves, with directions at once and from checkpoints, and on
 * both sides of what 16 bits hold; and for reads longer than a row tile against more than a chunk. */
ROWS(two_pieces_long)
{
    const lw_align_backend *b = take(r);
    static set refs, reads, a, t, one;
    lw_scoring sc;
    static const two_piece schemes[] = {{{"2/4/4/2 24/1", 2, 4, 4, 2}, 24, 1},
                                        {{"wide", 40, 90, 60, 20}, 700, 3},
                                        {{"BLOSUM62", -1, 0, 9, 3}, 30, 1}};
    for (size_t s = 0; s < sizeof schemes / sizeof *schemes; s++)
        for (lw_mode mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
            random_state = 51 + s;
            make_two_piece(&sc, &schemes[s]);
            clear(&refs), clear(&reads), clear(&a), clear(&t);
            static const int32_t shape[][2] = {{1030, 1100}, {3, 400000}};
            for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
                if (LW_SANITIZED && i == 1 && (size_t)mode != s) /* takes longest */
                    continue;
                clear(&one);
                add_random(&one, shape[i][1], 4);
                memcpy(add(&t, shape[i][1]), one.codes, (size_t)shape[i][1]);
                add_read(&a, &one, &sc, shape[i][0], i % 2 ? 100 : 5, 4);
            }
            add_gap_pair(&a, &t, 500, 300);
            add_gap_pair(&a, &t, 500, -200);
            char what[80];
            snprintf(what, sizeof what, "long, two pieces %s %s", schemes[s].first.name, mode_name(mode));
            compare_pairs(what, b, &sc, mode, LW_FORWARD, &a, &t, NULL);
            add_random(&refs, 1500, 4);
            uint8_t *p = add(&reads, 900); /* 450 letters deleted in the middle */
            memcpy(p, refs.codes, 450);
            memcpy(p + 450, refs.codes + 900, 450);
            add_read(&reads, &refs, &sc, 400, 20, 4);
            add_read(&reads, &refs, &sc, 700, 5, 4);
            compare_place(what, b, &sc, mode, LW_FORWARD, &refs, &reads, 2, 2, INT32_MIN, NULL);
        }
}
