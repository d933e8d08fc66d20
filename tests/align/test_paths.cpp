/* test_paths.cpp - paths on the GPU, kernels and host side, run on the host lane by lane and compared with
 * the scalar reference to the last operation. Needs no GPU. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "align/host_cuda.h"

/* this program's own copies beside the library's */
#define lw_paths_open host_paths_open
#define lw_paths_close host_paths_close
#define lw_paths_trace host_paths_trace
#define lw_paths_pairs host_paths_pairs
#define lw_paths_ends host_paths_ends
#define lw_paths_arithmetic_of host_paths_arithmetic_of
#define lw_paths_most_roomy host_paths_most_roomy
#define lw_paths_direction_words host_paths_direction_words
#define lw_paths_checkpoint_words host_paths_checkpoint_words
#define lw_paths_height_of host_paths_height_of
#define lw_paths_geometry_of host_paths_geometry_of
#define lw_paths_work_of host_paths_work_of
#define lw_paths_computed_of host_paths_computed_of
#define lw_paths_size_of host_paths_size_of
#define lw_paths_tile_for host_paths_tile_for
#define lw_paths_worth_trying host_paths_worth_trying
#define lw_paths_learn host_paths_learn
#define lw_paths_run_all host_paths_run_all
#define lw_paths_run_list host_paths_run_list
#define lw_paths_sort host_paths_sort
#define lw_paths_cut host_paths_cut
#define lw_paths_prepare host_paths_prepare
#define lw_paths_launch host_paths_launch
#define lw_paths_finish host_paths_finish
#define lw_fill_kernels host_fill_kernels
#define lw_walk_kernels host_walk_kernels
#define lw_tiles_kernels host_tiles_kernels
#define lw_fill_shared_bytes host_fill_shared_bytes
#define lw_tiles_shared_bytes host_tiles_shared_bytes
#include "align/align_cuda_fill.cu"
#include "align/align_cuda_walk.cu"
#include "align/align_tuning.h"

static int64_t most_words;                                       /* beyond which jobs keep checkpoints */
static int32_t band_shortest = INT32_MAX, band_least, band_part; /* part -1: nothing was learnt */
static double band_saves;
static int64_t tiles_of_scout = 100;
#define LW_PATH_MOST_WORDS most_words
#define LW_PATH_SCOUT_TILES tiles_of_scout
#define LW_BAND_SHORTEST band_shortest
#define LW_BAND_LEAST band_least
#undef LW_BAND_SAVES
#define LW_BAND_SAVES band_saves
#include "align/align_cuda_paths.c"
#include "align/align_cuda_paths_bands.c"
#include "align/align_cuda_paths_batch.c"
#include "align/align_cuda_paths_launch.cu"
#include "align/align_cuda_paths_order.c"
#include "align/align_cuda_paths_results.c"
#include "align/align_cuda_paths_shape.c"

enum { MOST = 512 };

typedef struct set {
    uint8_t codes[400000];
    int64_t start[MOST], letters, n;
    int32_t len[MOST];
} set;

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % below);
}

static uint8_t *add(set *s, int32_t n)
{
    cr_assert(s->n < MOST && s->letters + n <= (int64_t)sizeof s->codes);
    s->start[s->n] = s->letters;
    s->len[s->n++] = n;
    s->letters += n;
    return s->codes + s->letters - n;
}

/* Letters at random (kind 0), one letter (1), a short period (2). */
static void add_letters(set *s, int32_t n, int kind, uint32_t letters)
{
    uint8_t *p = add(s, n);
    const int32_t period = 1 + (int32_t)draw(5);
    for (int32_t i = 0; i < n; i++)
        p[i] = (uint8_t)(kind == 0 || i < period ? draw(letters) : kind == 1 ? 1 : p[i - period]);
}

/* The last sequence of `from` with errors, some of them long gaps; at most `most` letters. */
static void add_similar(set *s, const set *from, int32_t most, uint32_t letters)
{
    const uint8_t *t = from->codes + from->start[from->n - 1];
    const int32_t n = from->len[from->n - 1];
    uint8_t *p = add(s, most);
    int32_t k = 0;
    for (int32_t at = (int32_t)draw(4); at < n && k < most; at++) {
        const uint32_t error = draw(100);
        if (error < 3)
            p[k++] = (uint8_t)draw(letters);
        else if (error == 3)
            at += (int32_t)draw(40);
        else if (error == 4)
            for (uint32_t g = draw(40); g > 0 && k < most; g--)
                p[k++] = (uint8_t)draw(letters);
        else
            p[k++] = t[at];
    }
    s->letters -= s->len[s->n - 1] - k;
    s->len[s->n - 1] = k;
}

static lw_seqs view(const set *s)
{
    lw_seqs v = {s->n, s->codes, s->start, s->len};
    return v;
}

static set queries, targets;
static lw_error err;
static int failures;
static int64_t banded, unproved; /* jobs that were tried in a band; of these, those it did not prove */

static bool takes_turns(const void *kernel)
{
    for (int i = 0; i < 8; i++)
        if (kernel == (const void *)lw_fill_kernels[i / 4][i / 2 % 2][i % 2])
            return true;
    return false;
}

static bool same_path(const lw_path *a, const lw_cigars *a_ops, const lw_path *b, const lw_cigars *b_ops)
{
    return a->qstart == b->qstart && a->tstart == b->tstart && a->n_cigar == b->n_cigar &&
           (a->n_cigar == 0 ||
            memcmp(a_ops->op + a->cigar, b_ops->op + b->cigar, (size_t)a->n_cigar * 4) == 0);
}

/* No group of the last batches has lanes without columns. */
static void check_bundles(const lw_paths *p)
{
    for (int i = 0; i < STAGES; i++) {
        const stage *s = &p->stages[i];
        const lw_bundle *b = (const lw_bundle *)((const char *)s->p_input.at + s->in.bundles);
        for (int64_t k = 0; s->p_input.at && k < s->n_bundles; k++)
            cr_expect(b[k].lanes <= b[k].blocks && b[k].n <= LW_WARP / b[k].lanes * s->halves,
                      "%d jobs, %d lanes, %d blocks", b[k].n, b[k].lanes, b[k].blocks);
    }
}

/* What the letters and gaps of a path are worth. */
static int32_t worth(const lw_scoring *sc, int64_t i, const lw_path *path, const lw_cigars *ops)
{
    const uint8_t *q = queries.codes + queries.start[i] + path->qstart;
    const uint8_t *t = targets.codes + targets.start[i] + path->tstart;
    int32_t score = 0;
    for (int32_t k = 0; k < path->n_cigar; k++) {
        const uint32_t op = ops->op[path->cigar + k], run = op >> 4;
        if (op & 15)
            score -= lw_gap_cost(sc, (int32_t)run);
        for (uint32_t x = 0; x < run; x++) {
            score += op & 15 ? 0 : sc->score[*q * LW_MAX_LETTERS + *t];
            q += (op & 15) != 2;
            t += (op & 15) != 1;
        }
    }
    return score;
}

/* What a context lends to the host side. */
static lw_align_setup setup;
static lw_score_table table;

static lw_paths_setup lend(const lw_scoring *sc, lw_mode mode, int policy, int64_t budget)
{
    memcpy(table.score, sc->score, sizeof table.score);
    memcpy(table.complement, sc->complement, sizeof table.complement);
    memset(&setup, 0, sizeof setup);
    setup.scoring = sc;
    setup.mode = mode;
    setup.strands = LW_FORWARD;
    setup.min_score = mode == LW_LOCAL ? 1 : INT32_MIN;
    setup.n_hits = 1;
    lw_paths_setup by;
    memset(&by, 0, sizeof by);
    by.setup = &setup;
    by.policy = policy;
    by.multiprocessors = 2;
    by.shared_bytes = sizeof host_shared;
    by.budget = budget;
    by.table = &table;
    host_takes_turns = takes_turns;
    return by;
}

/* Pairs, then traces of the ends on both strands, by both sides. */
static void compare(const char *what, const lw_scoring *sc, lw_mode mode, int policy, int64_t budget)
{
    static lw_hit want[MOST], got[MOST];
    static lw_path want_paths[MOST], got_paths[MOST];
    static lw_trace_task tasks[MOST];
    const lw_paths_setup by = lend(sc, mode, policy, budget);
    lw_seqs q = view(&queries), t = view(&targets);
    static int calls;
    host_order = calls++ % 3; /* results depend on no order of lanes and warps */
    host_warps = 1 + (unsigned)calls % 4;
    for (int strands = LW_FORWARD; strands <= (band_shortest < INT32_MAX ? LW_FORWARD : LW_REVERSE);
         strands++) {
        setup.strands = (unsigned)strands;
        void *context;
        lw_cigars want_ops, got_ops;
        memset(&want_ops, 0, sizeof want_ops), memset(&got_ops, 0, sizeof got_ops);
        memset(got, 0x55, sizeof got), memset(got_paths, 0x55, sizeof got_paths);
        cr_assert_eq(lw_align_scalar.open(&lw_align_scalar, &context, &setup, &err), LW_OK);
        cr_assert_eq(
            lw_align_pairs_with(&lw_align_scalar, context, &setup, &q, &t, want, want_paths, &want_ops, &err),
            LW_OK, "%s", err.message);
        lw_align_scalar.close(context);
        lw_paths *paths = NULL;
        cr_assert_eq(lw_paths_open(&paths, &by, &err), LW_OK);
        if (band_shortest < INT32_MAX && band_part >= 0) /* as if that was learnt */
            paths->needs[band_part] = paths->n_needs = 1000;
        for (int64_t i = 0; i < q.n && strands == LW_FORWARD; i++)
            if (want[i].target >= 0)
                cr_assert_eq(worth(sc, i, &want_paths[i], &want_ops), want[i].score);
        int64_t n = 0;
        if (strands == LW_FORWARD) {
            cr_assert_eq(lw_paths_pairs(paths, &q, &t, got, got_paths, &got_ops, &err), LW_OK, "%s: %s", what,
                         err.message);
            n = q.n;
            if (mode != LW_LOCAL) {
                static lw_hit ends[MOST];
                memset(ends, 0x55, sizeof ends);
                cr_assert_eq(lw_paths_ends(paths, &q, &t, ends, &err), LW_OK, "%s: %s", what, err.message);
                for (int64_t i = 0; i < n; i++)
                    if (ends[i].target != want[i].target || ends[i].score != want[i].score ||
                        ends[i].qend != want[i].qend || ends[i].tend != want[i].tend)
                        cr_expect(failures++ >= 10,
                                  "%s, pair %ld of %d x %d: want %d at %d/%d, ends have %d at %d/%d", what,
                                  (long)i, queries.len[i], targets.len[i], want[i].score, want[i].qend,
                                  want[i].tend, ends[i].score, ends[i].qend, ends[i].tend);
            }
        } else {
            for (int64_t i = 0; i < q.n; i++) {
                if (want[i].target < 0)
                    continue;
                memset(&tasks[n], 0, sizeof tasks[n]);
                lw_trace_window(sc, mode, &want[i], &tasks[n]);
                tasks[n].query = i;
                want[n] = want[i];
                want_paths[n++] = want_paths[i];
            }
            cr_assert_eq(lw_paths_trace(paths, &q, &t, n, tasks, got_paths, &got_ops, &err), LW_OK, "%s: %s",
                         what, err.message);
        }
        for (int64_t i = 0; i < n; i++) {
            bool same = same_path(&want_paths[i], &want_ops, &got_paths[i], &got_ops);
            if (strands == LW_FORWARD)
                same = want[i].target < 0
                           ? got[i].target < 0 && got_paths[i].n_cigar == 0
                           : same && got[i].target == want[i].target && got[i].score == want[i].score &&
                                 got[i].qend == want[i].qend && got[i].tend == want[i].tend;
            if (!same && failures++ < 10) {
                char text[2][400];
                for (int k = 0; k < 2; k++) {
                    const lw_path *path = k ? &got_paths[i] : &want_paths[i];
                    const uint32_t *op = (k ? got_ops.op : want_ops.op) + path->cigar;
                    int at = snprintf(text[k], sizeof text[k], "from %d/%d ", path->qstart, path->tstart);
                    for (int32_t x = 0; x < path->n_cigar && at < 380; x++)
                        at += snprintf(text[k] + at, sizeof text[k] - (size_t)at, "%u%c", op[x] >> 4,
                                       "MID"[op[x] & 15]);
                }
                cr_expect(0,
                          "%s, strand %d, pair %ld of %d x %d: want %d at %d/%d by %s, got %d at %d/%d by %s",
                          what, strands, (long)i, queries.len[i], targets.len[i], want[i].score, want[i].qend,
                          want[i].tend, text[0], got[i].score, got[i].qend, got[i].tend, text[1]);
            }
        }
        check_bundles(paths);
        int64_t owned = 0;
        for (int64_t i = 0; i < n; i++)
            owned += got_paths[i].n_cigar;
        cr_expect(owned == got_ops.n, "%s: %ld of %ld operations", what, (long)owned, (long)got_ops.n);
        banded += paths->banded, unproved += paths->unproved;
        lw_paths_close(paths);
        free(want_ops.op), free(got_ops.op);
    }
}

typedef struct scheme {
    int match, mismatch;              /* match 0 and mismatch 0: BLOSUM62 */
    int open, extend, open2, extend2; /* open2 -1: one piece */
} scheme;

static const scheme schemes[] = {
    {1, 4, 6, 1, -1, 0},  {2, 4, 4, 2, 24, 1},     {1, 1, 0, 0, -1, 0},
    {5, 4, 10, 0, -1, 0}, {3, 200, 300, 7, -1, 0}, {0, 0, 11, 1, -1, 0},
    {1, 3, 2, 3, 5, 1},   {2, 1, 0, 1, 3, 0},      {999, 32767, 32767, 32767, 9, 40}};

static void make(lw_scoring *sc, const scheme *s)
{
    if (s->match == 0)
        cr_assert_eq(lw_scoring_matrix(sc, "BLOSUM62", LW_PROTEIN, s->open, s->extend, &err), LW_OK);
    else
        cr_assert_eq(lw_scoring_dna(sc, s->match, s->mismatch, s->open, s->extend, &err), LW_OK);
    if (s->open2 >= 0)
        cr_assert_eq(lw_scoring_two_piece(sc, s->open2, s->extend2, &err), LW_OK);
}

static const int policies[] = {LW_CUDA_DPX, LW_CUDA_INT};

static void every_scheme(int64_t words, int64_t budget, size_t n_schemes)
{
    most_words = words;
    for (size_t k = 0; k < n_schemes; k++)
        for (int mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++)
            for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
                lw_scoring sc;
                char what[80];
                make(&sc, &schemes[k]);
                snprintf(what, sizeof what, "scheme %zu mode %d policy %d", k, mode, policies[p]);
                compare(what, &sc, (lw_mode)mode, policies[p], budget);
            }
}

static void some_pairs(int n, int32_t most, uint32_t letters)
{
    queries.n = queries.letters = targets.n = targets.letters = 0;
    for (int i = 0; i < n; i++) {
        const int32_t m = (int32_t)draw((uint32_t)most + 1);
        add_letters(&targets, (int32_t)draw((uint32_t)most + 1), i % 3, letters);
        if (i % 2)
            add_similar(&queries, &targets, most, letters);
        else
            add_letters(&queries, m, i % 3, letters);
    }
}

Test(paths, directions)
{
    random_state = 1;
    some_pairs(40, 45, 5);
    every_scheme(INT64_MAX, 1 << 30, sizeof schemes / sizeof *schemes);
}

Test(paths, several_strips)
{
    random_state = 2;
    some_pairs(3, 1100, 4);
    some_pairs(3, 700, 4);
    every_scheme(INT64_MAX, 1 << 30, 2);
}

Test(paths, checkpoints)
{
    random_state = 3;
    some_pairs(6, 300, 4);
    every_scheme(0, 1 << 30, 3);
}

/* Memory for tiles of 256, then of 512 columns, one batch at a time. */
Test(paths, larger_tiles)
{
    random_state = 5;
    some_pairs(3, 300, 4);
    every_scheme(0, 30000, 2);
    every_scheme(0, 20000, 1);
}

Test(paths, small_memory)
{
    random_state = 4;
    some_pairs(20, 160, 4);
    every_scheme(3000, 100000, 2);
}

/* Bands of all widths, of which some prove nothing, however little they save. */
static void in_bands(const char *what, int64_t words, size_t n_schemes, const int32_t *parts, size_t n_parts)
{
    band_shortest = 1;
    band_saves = 1e9;
    most_words = words;
    banded = unproved = 0;
    for (size_t i = 0; i < n_parts; i++)
        for (size_t k = 0; k < n_schemes; k++)
            for (int mode = LW_GLOBAL; mode <= LW_SEMIGLOBAL; mode++) {
                lw_scoring sc;
                char about[80];
                band_part = parts[i];
                band_least = 1 + (int32_t)i % 2;
                make(&sc, &schemes[k]);
                snprintf(about, sizeof about, "%s, part %d scheme %zu mode %d", what, parts[i], k, mode);
                compare(about, &sc, (lw_mode)mode, policies[(i + k + (size_t)mode) % 2], 1 << 30);
            }
    cr_log_info("%s: %ld in bands, %ld of these unproved", what, (long)banded, (long)unproved);
    cr_expect(banded > 0 && unproved > 0 && unproved < banded);
}

/* Pairs with few errors, and some that differ in length by up to `apart` letters. */
static void close_pairs(int n, int32_t length, int32_t apart)
{
    queries.n = queries.letters = targets.n = targets.letters = 0;
    for (int i = 0; i < n; i++) {
        add_letters(&targets, length - (int32_t)draw(20), i % 5 == 4 ? 2 : 0, 4);
        uint8_t *q = add(&queries, targets.len[i]);
        memcpy(q, targets.codes + targets.start[i], (size_t)targets.len[i]);
        for (int e = i % 4; e > 0; e--)
            q[draw((uint32_t)targets.len[i])] = (uint8_t)draw(4);
        /* a gap somewhere, in one of them */
        set *s = i % 2 ? &queries : &targets;
        const int32_t gap = (int32_t)draw((uint32_t)apart + 1), n_left = s->len[i] - gap;
        const int32_t at = (int32_t)draw((uint32_t)n_left + 1);
        uint8_t *p = s->codes + s->start[i];
        memmove(p + at, p + at + gap, (size_t)(n_left - at));
        s->letters -= gap;
        s->len[i] = n_left;
    }
}

Test(paths, bands)
{
    random_state = 6;
    const int32_t parts[] = {0, 1, 3, 7, 20};
    close_pairs(16, 180, 20);
    in_bands("close", INT64_MAX, sizeof schemes / sizeof *schemes, parts, 5);
    some_pairs(10, 150, 4);
    in_bands("any", INT64_MAX, sizeof schemes / sizeof *schemes, parts, 4);
}

Test(paths, scouts)
{
    random_state = 8;
    some_pairs(6, 500, 4);
    for (tiles_of_scout = 1; tiles_of_scout < 3; tiles_of_scout++)
        every_scheme(0, 1 << 30, 2);
}

Test(paths, bands_over_checkpoints)
{
    random_state = 7;
    tiles_of_scout = 2;
    const int32_t parts[] = {0, 5};
    close_pairs(2, 1100, 40);
    add_letters(&targets, 300, 0, 4);
    add_similar(&queries, &targets, 300, 4);
    in_bands("close", 0, 2, parts, 2);
}

/* Lanes that go down a band: each block begins within its matrix and not below the band's first row, no block
 * goes on before its last, and no two at the same time. */
Test(paths, blocks_follow_one_another)
{
    for (int32_t low = -620; low < 40; low++)
        for (int32_t high = low; high < 620; high++) {
            const int32_t lanes = lw_band_lanes(low, high);
            if (lanes > LW_WARP)
                break;
            for (int32_t k = 0; k < 80; k++) {
                const int32_t turn = lw_band_turn(high, lanes, k), next = k + lanes,
                              row = turn - LW_PATH_SIDE * next;
                if (row < 0 || row > LW_PATH_COLUMNS * next + low - 1 || turn % 8 != 0 ||
                    turn < (LW_PATH_COLUMNS + LW_PATH_SIDE) * (k + 1) + high ||
                    lw_band_turn(high, lanes, k + 1) < turn + 8)
                    cr_assert_fail("band %d to %d, %d lanes, block %d goes on at %d to row %d", low, high,
                                   lanes, k, turn, row);
            }
        }
}

/* Pairs of which one has a block of letters more, so that the band begins far above and each lane goes on as
 * soon as it may. */
static void long_gaps(int32_t shorter, int32_t more, bool query_is_longer)
{
    queries.n = queries.letters = targets.n = targets.letters = 0;
    set *longer = query_is_longer ? &queries : &targets, *other = query_is_longer ? &targets : &queries;
    for (int i = 0; i < 3; i++) {
        add_letters(other, shorter, 0, 4);
        const uint8_t *t = other->codes + other->start[i];
        uint8_t *q = add(longer, shorter + more);
        const int32_t at = i == 0 ? (int32_t)draw((uint32_t)shorter) : i == 1 ? 0 : shorter;
        memcpy(q, t, (size_t)at);
        for (int32_t k = 0; k < more; k++)
            q[at + k] = (uint8_t)draw(4);
        memcpy(q + at + more, t + at, (size_t)(shorter - at));
        for (int e = i; e > 0; e--)
            q[draw((uint32_t)(shorter + more))] = (uint8_t)draw(4);
    }
}

/* With the numbers of the tuning table, by what was learnt and by the first guess of a fresh context. */
Test(paths, bands_around_long_gaps)
{
    const int32_t shapes[][2] = {{256, 336}, {355, 345}, {461, 261}, {391, 351}};
    band_shortest = 256;
    band_saves = 0.9;
    band_least = 8;
    most_words = 1 << 20;
    random_state = 11;
    banded = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int mode = LW_GLOBAL; mode <= LW_SEMIGLOBAL; mode++)
            for (int longer = 0; longer < 2; longer++) {
                lw_scoring sc;
                char about[80];
                const size_t k = (s + (size_t)mode) % 2;
                band_part = (int)(s + (size_t)longer) % 2 - 1; /* -1: nothing was learnt */
                make(&sc, &schemes[k]);
                long_gaps(shapes[s][0], shapes[s][1], longer);
                snprintf(about, sizeof about, "%d and %d letters, scheme %zu mode %d", shapes[s][0],
                         shapes[s][0] + shapes[s][1], k, mode);
                compare(about, &sc, (lw_mode)mode, policies[(s / 2 + (size_t)longer) % 2], 1 << 30);
            }
    cr_expect(banded > 0);
}

/* Shapes around the smallest bands: three to seven blocks of columns, targets up to 48 letters longer and
 * shorter, bands of a few diagonals, in batches that mix them. */
Test(paths, smallest_bands)
{
    band_shortest = 1;
    band_saves = 1e9;
    most_words = 1 << 20;
    random_state = 12;
    banded = unproved = 0;
    for (int32_t round = 0; round < 24; round++) {
        const int32_t m = 33 + 3 * round;
        queries.n = queries.letters = targets.n = targets.letters = 0;
        for (int32_t apart = m > 48 ? -48 : 1 - m; apart <= 48; apart += 1 + (int32_t)draw(5)) {
            const int32_t n = m + apart, more = apart < 0 ? -apart : 0;
            add_letters(&targets, n, draw(3) ? 0 : 2, 1 + draw(3));
            const uint8_t *t = targets.codes + targets.start[targets.n - 1];
            uint8_t *q = add(&queries, m);
            const int32_t at = (int32_t)draw((uint32_t)(n < m ? n : m) + 1); /* of the gap between them */
            for (int32_t x = 0; x < m; x++) {
                const int32_t y = x < at ? x : x < at + more ? -1 : x + apart;
                q[x] = y >= 0 ? t[y] : (uint8_t)draw(3);
            }
            for (uint32_t errors = draw(4); errors > 0; errors--)
                q[draw((uint32_t)m)] = (uint8_t)draw(3);
        }
        lw_scoring sc;
        char about[80];
        band_least = 1 + round % 5;
        band_part = 0;
        make(&sc, &schemes[round % 8]);
        snprintf(about, sizeof about, "%d letters, bands of excess %d", m, band_least);
        compare(about, &sc, round % 2 ? LW_GLOBAL : LW_SEMIGLOBAL, policies[round / 2 % 2], 1 << 30);
    }
    cr_expect(banded > 0 && unproved > 0 && unproved < banded);
}

/* Two bands that share a bundle take more lanes together than either: as many as there are columns for. */
Test(paths, bands_of_unlike_pairs)
{
    band_shortest = 256;
    band_saves = 0.9;
    band_least = 8;
    most_words = 1 << 20;
    random_state = 5;
    queries.n = queries.letters = targets.n = targets.letters = 0;
    for (int i = 0; i < 4; i++) {
        const int32_t n = i ? 256 : 486;
        add_letters(&targets, n, 0, 4);
        const uint8_t *t = targets.codes + targets.start[i];
        uint8_t *q = add(&queries, 256);
        memcpy(q, t, 100);
        memcpy(q + 100, t + 100 + n - 256, 156);
        for (int e = 0; e < (i ? 60 : 9); e++) {
            const int at = e * 4 % 256 + i;
            q[at] = (q[at] + 1) & 3;
        }
    }
    lw_scoring sc;
    make(&sc, &schemes[3]);
    compare("unlike pairs", &sc, LW_GLOBAL, LW_CUDA_DPX, 1 << 30);
    cr_expect(unproved > 0);
}

/* The best of a semiglobal pair that a band does not prove may lie above the first row. */
Test(paths, bands_without_a_match)
{
    band_shortest = 1;
    band_saves = 1e9;
    band_least = 8;
    random_state = 9;
    queries.n = queries.letters = targets.n = targets.letters = 0;
    memset(add(&queries, 600), 0, 600);
    memset(add(&targets, 600), 1, 600);
    add_letters(&targets, 600, 0, 4);
    memcpy(add(&queries, 600), targets.codes + targets.start[1], 600);
    for (most_words = 0; most_words <= 1 << 20; most_words += 1 << 20) {
        lw_scoring sc;
        make(&sc, &schemes[0]);
        compare("without a match", &sc, LW_SEMIGLOBAL, LW_CUDA_DPX, 1 << 30);
    }
    cr_expect(banded > unproved && unproved > 0);
}

/* Scores alone keep no checkpoints: two columns of 1,300 rows, where checkpoints take twice the budget. */
Test(paths, scores_in_little_memory)
{
    random_state = 10;
    queries.n = queries.letters = targets.n = targets.letters = 0;
    add_letters(&targets, 2600, 0, 4);
    add_similar(&queries, &targets, 2600, 4);
    targets.len[0] = 1300;
    lw_seqs q = view(&queries), t = view(&targets);
    /* six strips of four warps that wait for each other, and overwrite what others have read */
    host_warps = 4;
    host_order = HOST_RANDOM;
    for (size_t k = 0; k < 4; k++) {
        const lw_mode mode = k % 2 ? LW_SEMIGLOBAL : LW_GLOBAL;
        lw_scoring sc;
        make(&sc, &schemes[k / 2]);
        const lw_paths_setup by = lend(&sc, mode, policies[k % 2], 80 << 10);
        lw_hit want, got;
        void *context;
        lw_paths *paths = NULL;
        cr_assert_eq(lw_align_scalar.open(&lw_align_scalar, &context, &setup, &err), LW_OK);
        cr_assert_eq(lw_align_scalar.pair_ends(context, &q, &t, &want, &err), LW_OK, "%s", err.message);
        lw_align_scalar.close(context);
        cr_assert_eq(lw_paths_open(&paths, &by, &err), LW_OK);
        cr_assert_eq(lw_paths_ends(paths, &q, &t, &got, &err), LW_OK, "%s", err.message);
        cr_expect(got.score == want.score && got.qend == want.qend && got.tend == want.tend,
                  "scheme %zu: want %d at %d/%d, got %d at %d/%d", k / 2, want.score, want.qend, want.tend,
                  got.score, got.qend, got.tend);
        lw_paths_close(paths);
    }
}

/* A second price that is dear for long gaps passes 2^31 where the first one counts. */
Test(paths, dear_second_piece)
{
    static const scheme dear = {1, 4, 30000, 1, 0, 20000};
    random_state = 11;
    host_warps = 1;
    for (most_words = 1 << 20; most_words >= 0; most_words -= 1 << 20)
        for (int mode = LW_GLOBAL; mode <= LW_SEMIGLOBAL; mode++) {
            lw_scoring sc;
            make(&sc, &dear);
            queries.n = queries.letters = targets.n = targets.letters = 0;
            add_letters(&targets, 120000, 0, 4);
            add_letters(&queries, 7, 0, 4);
            char what[80];
            snprintf(what, sizeof what, "dear second piece, mode %d, %d words", mode, (int)most_words);
            compare(what, &sc, (lw_mode)mode, policies[mode % 2], 1 << 30);
        }
}

/* Checkpoints are stored by 16 bytes, wherever an odd number of rows or strips ends. */
Test(paths, aligned_checkpoints)
{
    alignas(16) static uint32_t memory[4];
    const int64_t tiles[] = {128, 256, 512};
    for (int64_t tile : tiles)
        for (int32_t strips = 1; strips <= 5; strips++)
            for (int32_t rows = 1; rows <= 1026; rows += rows < 8 ? 1 : 509) {
                lw_fill_args a = {};
                a.scratch = (decltype(a.scratch))memory;
                a.tile = (int32_t)tile;
                lw_bundle b = {};
                b.strips = strips;
                b.rows = b.height = rows;
                lw_checkpoints c = lw_checkpoints_of(a, b);
                cr_assert((uintptr_t)c.above % 16 == 0 && (uintptr_t)c.behind2 % 16 == 0 &&
                              (uintptr_t)c.above2 % 16 == 0,
                          "tiles of %d, %d strips, %d rows", (int)tile, strips, rows);
            }
}
