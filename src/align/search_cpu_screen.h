/* search_cpu_screen.h - upper bounds of the scores in half as many operations as the scores themselves:
 * enough to drop almost every subject, since only those that may be among the best are scored exactly.
 * Included by search_cpu_isa.c.
 *
 * In the recurrence of search_cpu_lanes.h everything is held with extend * (i + j) added, i and j being the
 * row and the column. What passes along a gap then stays as it is, and the diagonal earns 2 extend (which the
 * profile contains). Then the alignments are given more freedom than they have:
 *
 * - A gap may turn: from letters of the one sequence to letters of the other and back, for one `open`. So one
 *   value, X, stands for E and F.
 * - Squares of two rows and two columns share X: a gap that opens from one of the four cells may leave from
 *   any other, whatever lies before it.
 *
 * Chance gains little by either (a gap that turns costs at least open + 2 extend, for which it skips a few
 * bad pairs), so bounds are 2 higher than the scores on average beside what `above` leaves open. A square
 * takes fourteen operations, the first cell being the upper left one:
 *
 *     D = H(i-1,j-1) + s + 2 extend, of all four   X' = max(X to the left, X above)
 *     X = max(X', max(all D) - open)               H = max(D, X') of the first, max(D, X) of the others
 *
 * (H of the first needs no gap that opens from itself, and D of the last needs that H: so the way from square
 * to square stays short.) Floor and best score cost a square one and two operations for SCREEN_TILE columns:
 *
 * - Floor. X is lifted to what score 0 is in the last column and the second row: too much in the others,
 *   never too little.
 * - Best. X behind the tile is at least D - open of each of its cells, so that it tells the score but for
 *   `above` = (SCREEN_TILE - 1 + 1) extend. X lifted to the floor looks like score `open`: no value is less.
 *
 * Lanes are unsigned bytes and wrap. i counts from 0 to SCREEN_ROWS - 1 and j from 0 to SCREEN_SPAN - 1, then
 * both begin anew and what is kept is lowered (SCREEN_SPAN is a multiple of the block). Score 0 at i = j = 0
 * is
 *
 *     zero = open + 2 extend - lowest
 *
 * H in row i is at least zero + extend * (i + j) (in the row above and in the column before, two extend
 * less), so D is at least zero + lowest, D - open at least 2 extend, and X, which is at least the floor,
 * never falls below 0 when it is lowered. D cannot pass 255 while H is at most
 *
 *     top = 255 - highest - zero - extend * (SCREEN_ROWS + SCREEN_SPAN - 2)
 *
 * and a higher H shows as a value of at least top + 1 - above, in the same two rows: overflow. What wraps
 * afterwards cannot take that back, since X never falls. */

enum {
    SCREEN_ROWS = 32,   /* 7 operations to lower what is kept; 16 rows take 2 % longer on an EPYC (Zen 3), 64
                           leave little room for scores */
    SCREEN_SPAN = 32,   /* 2 operations a row, in one block of so many columns */
    SCREEN_TILE = 4,    /* 8 would make three to six times as many subjects candidates */
    SCREEN_STRIP = 256, /* rows of a query, a multiple of SCREEN_ROWS: 16 KB of columns, 32 with 512 bits */
    SCREEN_GROUP = 16   /* blocks that go through a strip */
};

static lw_search_screen screen_range(int32_t open, int32_t extend, int32_t lowest, int32_t highest)
{
    int64_t zero = (int64_t)open + 2 * (int64_t)extend - lowest;
    int64_t top = UINT8_MAX - (int64_t)highest - zero - (int64_t)extend * (SCREEN_ROWS + SCREEN_SPAN - 2);
    int64_t above = (int64_t)extend * SCREEN_TILE;
    /* too narrow, also where scores would hardly be told from the floor */
    if (top - above <= 2 * (int64_t)open + 2 * above)
        return (lw_search_screen){0};
    return (lw_search_screen){
        .zero = (int32_t)zero, .limit = (int32_t)(top + 1 - above), .above = (int32_t)above};
}

/* Where screen() keeps things. A group of blocks goes through a strip of a query before the next strip, whose
 * columns the first-level cache holds: so it needs profiles for all of them, and what the strips hand down at
 * each block: H of the row above, X, and H before the first column. */
enum {
    SCREEN_PAIRS = SEARCH_COLUMNS / 2,
    SCREEN_BORDER = SEARCH_COLUMNS + SCREEN_PAIRS + 1,
    SCREEN_COLUMN = 3 /* vectors of a column for two rows: H of both, X */
};

typedef struct screen_memory {
    int group;
    uint8_t *columns, *profile, *border, *best, *keep, *floors;
    uint32_t *rows; /* of the profile, for each letter of the queries */
} screen_memory;

/* Memory from `at` on; returns the bytes. */
static size_t screen_carve(const lw_search_job *job, uint8_t *at, screen_memory *to)
{
    size_t letters = 0, strips = 0;
    for (int32_t q = 0; q < job->n_queries; q++) {
        letters += (size_t)job->len[q];
        strips += ((size_t)job->len[q] - 1) / SCREEN_STRIP + 1;
    }
    to->group = strips == 1 ? 1 : SCREEN_GROUP;
    const size_t group = (size_t)to->group;
    uint8_t **const part[] = {&to->columns, &to->profile, &to->border, &to->best, &to->keep, &to->floors};
    const size_t vectors[] = {letters / 2 * SCREEN_COLUMN,
                              group * LW_MAX_LETTERS * SEARCH_COLUMNS,
                              group * SCREEN_BORDER,
                              strips,
                              group,
                              2 + SCREEN_ROWS + SCREEN_SPAN};
    size_t bytes = 0;
    for (int k = 0; k < 6; k++) {
        *part[k] = at ? at + bytes : NULL;
        bytes += vectors[k] * LW_VEC_BYTES;
    }
    to->rows = at ? (uint32_t *)(void *)(at + bytes) : NULL;
    return bytes + letters * sizeof *to->rows;
}

static size_t screen_scratch(const lw_search_job *job)
{
    screen_memory ignored;
    return screen_carve(job, NULL, &ignored);
}

/* One maximum of every fourth column, and that of the best score, by comparison, which 512-bit vectors do on
 * the port that maxima leave idle: of 37 operations for 8 cells maxima are 23, all on one port of two. None
 * of these is on the way from row to row. */
#define SCREEN_MAX(p, a, b) ((p) % 2 ? lw_v8_max_by_compare(a, b) : lw_v8_max(a, b))

/* A strip of n rows against one block of columns, whose first has j = 0 at `floors`; they hold score 0 for
 * i + j = -2, -1, ... from two vectors before that on. With `begins`, lanes of `keep` that are 0 forget what
 * was to their left. */
LW_SIMD void screen_block(const int BEGINS, const int LOWERS, const lw_search_job *job, const uint32_t *row,
                          int32_t n, uint8_t *column, const uint8_t *profile, uint8_t *border, uint8_t *bests,
                          const uint8_t *floors, lw_vec keep)
{
    const lw_vec open = lw_v8_set1((uint32_t)(job->open_extend - job->extend)),
                 rows = lw_v8_set1((uint32_t)(SCREEN_ROWS * job->extend)),
                 columns = lw_v8_set1((uint32_t)(SCREEN_SPAN * job->extend));
    lw_vec h[SEARCH_COLUMNS], x[SCREEN_PAIRS], left, best = lw_load(bests);
    for (int c = 0; c < SEARCH_COLUMNS; c++)
        h[c] = lw_load(border + c * LW_VEC_BYTES);
    for (int p = 0; p < SCREEN_PAIRS; p++)
        x[p] = lw_load(border + (SEARCH_COLUMNS + p) * LW_VEC_BYTES);
    left = lw_load(border + (SCREEN_BORDER - 1) * LW_VEC_BYTES);
    const uint32_t *const end = row + n;
    while (row < end) {
        const uint32_t *stop = end - row < SCREEN_ROWS ? end : row + SCREEN_ROWS;
        for (const uint8_t *floor = floors; row < stop;
             row += 2, column += SCREEN_COLUMN * LW_VEC_BYTES, floor += 2 * LW_VEC_BYTES) {
            const uint8_t *score = profile + row[0], *below = profile + row[1];
            lw_vec beside = lw_load(column), after = left, gap = lw_load(column + 2 * LW_VEC_BYTES);
            left = lw_load(column + LW_VEC_BYTES);
            if (BEGINS) { /* nothing is less than what is outside */
                beside = lw_v8_max(lw_and(beside, keep), lw_load(floor - LW_VEC_BYTES));
                left = lw_v8_max(lw_and(left, keep), lw_load(floor));
                gap = lw_and(gap, keep);
            }
#pragma GCC unroll 8
            for (int c = SEARCH_COLUMNS - 1; c > 0; c--)
                h[c] = lw_v8_add(h[c - 1], lw_load(score + c * LW_VEC_BYTES));
            h[0] = lw_v8_add(after, lw_load(score));
#pragma GCC unroll 4
            for (int c = 0; c < SEARCH_COLUMNS; c += 2) {
                if (c % SCREEN_TILE == 0)
                    gap = lw_v8_max(gap, lw_load(floor + (c + SCREEN_TILE) * LW_VEC_BYTES));
                gap = lw_v8_max(gap, x[c / 2]);
                lw_vec first = lw_v8_max(h[c], gap),
                       lower = lw_v8_add(beside, lw_load(below + c * LW_VEC_BYTES)),
                       last = lw_v8_add(first, lw_load(below + (c + 1) * LW_VEC_BYTES));
                lw_vec highest = lw_v8_max(lw_v8_max(lw_v8_max(h[c], h[c + 1]), lower), last);
                x[c / 2] = gap = lw_v8_max(gap, lw_v8_sub(highest, open));
                beside = SCREEN_MAX(c / 2, h[c + 1], gap);
                h[c] = lw_v8_max(lower, gap);
                h[c + 1] = SCREEN_MAX(c / 2, last, gap);
                if ((c + 2) % SCREEN_TILE == 0)
                    best = SCREEN_MAX(1, best, lw_v8_sub(gap, lw_load(floor + (c + 2) * LW_VEC_BYTES)));
            }
            lw_vec last = h[SEARCH_COLUMNS - 1];
            lw_store(column, LOWERS ? lw_v8_sub(beside, columns) : beside);
            lw_store(column + LW_VEC_BYTES, LOWERS ? lw_v8_sub(last, columns) : last);
            lw_store(column + 2 * LW_VEC_BYTES, LOWERS ? lw_v8_sub(gap, columns) : gap);
        }
        left = lw_v8_sub(left, rows);
        for (int c = 0; c < SEARCH_COLUMNS; c++)
            h[c] = lw_v8_sub(h[c], rows);
        for (int p = 0; p < SCREEN_PAIRS; p++)
            x[p] = lw_v8_sub(x[p], rows);
    }
    for (int c = 0; c < SEARCH_COLUMNS; c++)
        lw_store(border + c * LW_VEC_BYTES, h[c]);
    for (int p = 0; p < SCREEN_PAIRS; p++)
        lw_store(border + (SEARCH_COLUMNS + p) * LW_VEC_BYTES, x[p]);
    lw_store(border + (SCREEN_BORDER - 1) * LW_VEC_BYTES, left);
    lw_store(bests, best);
}

/* What a query has above its first row. */
static void screen_begin(uint8_t *border, const uint8_t *floors)
{
    for (int k = 0; k < SCREEN_BORDER; k++)
        lw_store(border + k * LW_VEC_BYTES,
                 lw_load(floors + (k < SEARCH_COLUMNS ? k - 1 : -2) * LW_VEC_BYTES));
}

/* Takes the values of a strip at the events of a block: a subject's is the highest of its strips'. */
static void screen_take(const lw_search_job *job, const lw_search_event *from, const lw_search_event *to,
                        int32_t q, uint8_t *best)
{
    const int32_t open = job->open_extend - job->extend;
    for (; from < to; from++) {
        int32_t value = best[from->lane] + open;
        if (from->done >= 0) {
            int32_t *score = &job->scores[(int64_t)from->done * job->n_queries + q];
            if (value >= job->limit)
                *score = LW_SEARCH_OVERFLOW;
            else if (*score != LW_SEARCH_OVERFLOW && value > *score)
                *score = value;
        }
        best[from->lane] = 0;
    }
}

/* The events of a group of blocks, by block, and which lanes go on there. */
static const lw_search_event *screen_events(const lw_search_plan *plan, const lw_search_event *event,
                                            int64_t block, int n, const lw_search_event **first,
                                            uint8_t *keep)
{
    const lw_search_event *end = plan->events + plan->n_events;
    for (int k = 0; k < n; k++, keep += LW_VEC_BYTES) {
        lw_store(keep, lw_v8_set1(UINT8_MAX));
        for (first[k] = event; event < end && event->block == block + k; event++)
            keep[event->lane] = 0;
    }
    first[n] = event;
    return event;
}

/* A strip of query q against a group of n blocks. */
static void screen_strip(const lw_search_job *job, const screen_memory *m, int64_t block, int n,
                         const lw_search_event *const *first, int32_t q, int32_t from, int64_t letter,
                         uint8_t *best)
{
    const int32_t left = job->len[q] - from, rows = left < SCREEN_STRIP ? left : SCREEN_STRIP;
    const uint32_t *row = m->rows + letter;
    uint8_t *column = m->columns + letter / 2 * SCREEN_COLUMN * LW_VEC_BYTES;
    for (int k = 0; k < n; k++) {
        const int span = (int)((block + k) % (SCREEN_SPAN / SEARCH_COLUMNS)) * SEARCH_COLUMNS;
        const bool begins = first[k] < first[k + 1], lowers = span + SEARCH_COLUMNS == SCREEN_SPAN;
        const uint8_t *floors = m->floors + (2 + span) * LW_VEC_BYTES,
                      *profile = m->profile + (size_t)k * LW_MAX_LETTERS * SEARCH_COLUMNS * LW_VEC_BYTES;
        uint8_t *border = m->border + k * SCREEN_BORDER * LW_VEC_BYTES;
        lw_vec keep = lw_load(m->keep + k * LW_VEC_BYTES);
        screen_take(job, first[k], first[k + 1], q, best);
        if (from == 0)
            screen_begin(border, floors);
        if (begins && lowers)
            screen_block(1, 1, job, row, rows, column, profile, border, best, floors, keep);
        else if (begins)
            screen_block(1, 0, job, row, rows, column, profile, border, best, floors, keep);
        else if (lowers)
            screen_block(0, 1, job, row, rows, column, profile, border, best, floors, keep);
        else
            screen_block(0, 0, job, row, rows, column, profile, border, best, floors, keep);
    }
}

static void screen(const lw_search_job *job)
{
    const lw_search_plan *plan = job->plan;
    screen_memory m;
    screen_carve(job, job->scratch, &m);
    for (int k = 0; k < 2 + SCREEN_ROWS + SCREEN_SPAN; k++)
        lw_store(m.floors + k * LW_VEC_BYTES, lw_v8_set1((uint32_t)(job->zero + (k - 2) * job->extend)));
    int64_t letter = 0;
    uint8_t *best = m.best;
    for (int32_t q = 0; q < job->n_queries; q++)
        for (int32_t i = 0; i < job->len[q]; i++, letter++) {
            m.rows[letter] = (uint32_t)(job->codes[letter] * SEARCH_COLUMNS * LW_VEC_BYTES);
            lw_vec floor = lw_load(m.floors + (1 + i % SCREEN_ROWS) * LW_VEC_BYTES);
            uint8_t *column = m.columns + letter / 2 * SCREEN_COLUMN * LW_VEC_BYTES;
            lw_store(column + letter % 2 * LW_VEC_BYTES, floor);
            lw_store(column + 2 * LW_VEC_BYTES, floor);
            if (i % SCREEN_STRIP == 0) {
                lw_store(best, lw_v8_set1(0));
                best += LW_VEC_BYTES;
            }
        }
    const lw_search_event *event = plan->events, *first[SCREEN_GROUP + 1];
    for (int64_t k = 0; k < plan->n_events; k++)
        for (int32_t q = 0; q < job->n_queries && event[k].done >= 0; q++)
            job->scores[(int64_t)event[k].done * job->n_queries + q] = 0;
    for (int64_t block = 0; block < plan->n_blocks; block += m.group) {
        const int n = plan->n_blocks - block < m.group ? (int)(plan->n_blocks - block) : m.group;
        event = screen_events(plan, event, block, n, first, m.keep);
        for (int k = 0; k < n; k++)
            make_profile_8(job, block + k,
                           m.profile + (size_t)k * LW_MAX_LETTERS * SEARCH_COLUMNS * LW_VEC_BYTES);
        letter = 0;
        best = m.best;
        for (int32_t q = 0; q < job->n_queries; letter += job->len[q++])
            for (int32_t from = 0; from < job->len[q]; from += SCREEN_STRIP, best += LW_VEC_BYTES) {
                screen_strip(job, &m, block, n, first, q, from, letter + from, best);
                if (block + n == plan->n_blocks)
                    screen_take(job, event, plan->events + plan->n_events, q, best);
            }
    }
}
