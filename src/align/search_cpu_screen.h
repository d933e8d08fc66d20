/* search_cpu_screen.h - bounds of the scores in fewer operations than the scores themselves: enough to drop
 * almost every subject, since only those that may be among the best are scored exactly. Included by
 * search_cpu_isa.c.
 *
 * In the recurrence of search_cpu_lanes.h everything is held with extend * (i + j) added, i and j being the
 * row and the column. What passes along a gap then stays as it is, the diagonal earns 2 extend (which the
 * profile contains), and a cell takes six operations:
 *
 *     A = max(H(i-1,j-1) + s + 2 extend, F)      H = max(A, E)
 *     E = max(E, A - open)                       F = max(F, A - open)
 *
 * The floor and the best score cost one and one and a half operations a row of a block instead of two a cell:
 *
 * - Floor. E is lifted to what score 0 is in the last column of the block. In column c of n this is
 *   (n - 1 - c) extend too much; an alignment that begins there scores at most that much too high, and none
 *   scores too low: `below`.
 * - Best. E behind the block is at least A - open of each of its cells, less the (n - 1 - c) extend that it
 *   has fallen since, and at most as much as an alignment scores. So its maximum tells the score but for
 *   (n - 1) extend, and one more as it is taken from two rows together before their i is taken off: `above`.
 *   E lifted to the floor looks like score `open`, so that is the least value, and says nothing from below.
 *
 * Lanes are unsigned bytes and wrap. i counts from 0 to SCREEN_ROWS - 1 and j from 0 to SCREEN_SPAN - 1, then
 * both begin anew and what is kept is lowered (SCREEN_SPAN is a multiple of the block). Score 0 at i = j = 0
 * is
 *
 *     zero = open + extend - lowest
 *
 * H in row i is at least zero + extend * i (in the row above, less extend), so A is at least zero + lowest, E
 * and F at least zero + lowest - open, and F lowered less one more extend: nothing falls below 0. H + s + 2
 * extend cannot pass 255 while H is at most
 *
 *     top = 255 - highest - zero - extend * (SCREEN_ROWS + SCREEN_SPAN - 2)
 *
 * and a higher H shows as a value of at least top + 1 - above, before anything has wrapped: overflow. */

/* SCREEN_ROWS: 9 operations to lower what is kept; 16, 32 and 64 rows were within 1 % of each other on an
 * EPYC (Zen 3), and few rows leave room for scores. */
enum { SCREEN_ROWS = 16, SCREEN_SPAN = 16 };

static lw_search_screen screen_range(int32_t open, int32_t extend, int32_t lowest, int32_t highest)
{
    int64_t zero = (int64_t)open + extend - lowest;
    int64_t top = UINT8_MAX - (int64_t)highest - zero - (int64_t)extend * (SCREEN_ROWS + SCREEN_SPAN - 2);
    int64_t above = (int64_t)extend * SEARCH_COLUMNS;
    /* too narrow, also where scores would hardly be told from the floor */
    if (top - above <= 2 * (int64_t)open + 2 * above)
        return (lw_search_screen){0};
    return (lw_search_screen){.zero = (int32_t)zero,
                              .limit = (int32_t)(top + 1 - above),
                              .least = open,
                              .below = (int32_t)(above - extend),
                              .above = (int32_t)above};
}

/* One maximum of a row's columns by comparison, which 512-bit vectors do on the port that maxima leave idle:
 * with half of those of E the two ports are about equally busy. */
#define SCREEN_MAX(c, a, b) ((c) % 2 ? lw_v8_max_by_compare(a, b) : lw_v8_max(a, b))

/* All queries against one block of columns, whose first has j = span. With `begins`, lanes of `keep` that
 * are 0 forget what was to their left. `floors` holds score 0 for i + j = -2, -1, ... */
LW_SIMD void screen_block(const int BEGINS, const int LOWERS, const lw_search_job *job, int64_t block,
                          int span, const uint8_t *floors, lw_vec keep)
{
    const lw_vec open = lw_v8_set1((uint32_t)(job->open_extend - job->extend)),
                 rows = lw_v8_set1((uint32_t)(SCREEN_ROWS * job->extend)),
                 columns = lw_v8_set1((uint32_t)(SCREEN_SPAN * job->extend));
    const uint8_t *const *row = job->rows;
    uint8_t *column = job->columns;
    floors += (2 + span) * LW_VEC_BYTES;
    make_profile_8(job, block);
    for (int32_t q = 0; q < job->n_queries; q++) {
        lw_vec h[SEARCH_COLUMNS], f[SEARCH_COLUMNS], left = lw_load(floors - 2 * LW_VEC_BYTES),
                                                     best = lw_load(job->best + q * LW_VEC_BYTES);
        for (int c = 0; c < SEARCH_COLUMNS; c++) {
            h[c] = lw_load(floors + (c - 1) * LW_VEC_BYTES);
            f[c] = lw_load(floors - 2 * LW_VEC_BYTES);
        }
        const uint8_t *const *end = row + job->len[q];
        while (row < end) {
            const uint8_t *const *stop = end - row < SCREEN_ROWS ? end : row + SCREEN_ROWS;
            for (const uint8_t *floor = floors; row < stop; floor += 2 * LW_VEC_BYTES) {
                lw_vec two = open; /* E behind two rows */
#pragma GCC unroll 2
                for (int y = 0; y < 2; y++, row++, column += 2 * LW_VEC_BYTES) {
                    const uint8_t *score = *row, *here = floor + y * LW_VEC_BYTES;
                    lw_vec e = lw_load(column + LW_VEC_BYTES);
#pragma GCC unroll 8
                    for (int c = SEARCH_COLUMNS - 1; c > 0; c--)
                        h[c] = lw_v8_add(h[c - 1], lw_load(score + c * LW_VEC_BYTES));
                    h[0] = lw_v8_add(left, lw_load(score));
                    left = lw_load(column);
                    if (BEGINS) {
                        lw_vec border = lw_load(here - LW_VEC_BYTES);
                        left = lw_v8_if_equal(keep, lw_v8_set1(0), border, left);
                        e = lw_v8_if_equal(keep, lw_v8_set1(0), border, e);
                    }
                    e = lw_v8_max(e, lw_load(here + (SEARCH_COLUMNS - 1) * LW_VEC_BYTES));
#pragma GCC unroll 8
                    for (int c = 0; c < SEARCH_COLUMNS; c++) {
                        lw_vec a = lw_v8_max(h[c], f[c]), gap = lw_v8_sub(a, open);
                        h[c] = lw_v8_max(a, e);
                        e = SCREEN_MAX(c, e, gap);
                        f[c] = lw_v8_max(f[c], gap);
                    }
                    lw_store(column,
                             LOWERS ? lw_v8_sub(h[SEARCH_COLUMNS - 1], columns) : h[SEARCH_COLUMNS - 1]);
                    lw_store(column + LW_VEC_BYTES, LOWERS ? lw_v8_sub(e, columns) : e);
                    two = y ? lw_v8_max_by_compare(two, e) : e;
                }
                /* E is at least the floor of the second row */
                two = lw_v8_sub(two, lw_load(floor + SEARCH_COLUMNS * LW_VEC_BYTES));
                best = lw_v8_max_by_compare(best, two);
            }
            left = lw_v8_sub(left, rows);
            for (int c = 0; c < SEARCH_COLUMNS; c++) {
                h[c] = lw_v8_sub(h[c], rows);
                f[c] = lw_v8_sub(f[c], rows);
            }
        }
        lw_store(job->best + q * LW_VEC_BYTES, best);
    }
}

/* The events of a block, as in search_cpu_lanes.h. */
static const lw_search_event *screen_events(const lw_search_job *job, const lw_search_event *event,
                                            int64_t block, uint8_t *keep)
{
    const lw_search_event *end = job->plan->events + job->plan->n_events;
    const int32_t open = job->open_extend - job->extend;
    for (int k = 0; k < LW_VEC_BYTES; k++)
        keep[k] = UINT8_MAX;
    for (; event < end && event->block == block; event++) {
        uint8_t *best = job->best + event->lane;
        for (int32_t q = 0; q < job->n_queries; q++, best += LW_VEC_BYTES) {
            int32_t value = *best + open;
            if (event->done >= 0)
                job->scores[(int64_t)event->done * job->n_queries + q] =
                    value >= job->limit ? LW_SEARCH_OVERFLOW : value;
            *best = 0;
        }
        keep[event->lane] = 0;
    }
    return event;
}

static void screen(const lw_search_job *job)
{
    enum { FLOORS = 2 + SCREEN_ROWS + SCREEN_SPAN };
    _Alignas(LW_SEARCH_VEC_MAX) uint8_t floors[FLOORS * LW_VEC_BYTES], keep[LW_VEC_BYTES];
    const lw_search_plan *plan = job->plan;
    for (int k = 0; k < FLOORS; k++)
        lw_store(floors + k * LW_VEC_BYTES, lw_v8_set1((uint32_t)(job->zero + (k - 2) * job->extend)));
    int64_t letters = 0;
    for (int32_t q = 0; q < job->n_queries; q++) {
        lw_store(job->best + q * LW_VEC_BYTES, lw_v8_set1(0));
        for (int32_t i = 0; i < job->len[q]; i++, letters++) {
            job->rows[letters] = job->profile + job->codes[letters] * SEARCH_COLUMNS * LW_VEC_BYTES;
            lw_vec floor = lw_load(floors + (1 + i % SCREEN_ROWS) * LW_VEC_BYTES);
            lw_store(job->columns + 2 * letters * LW_VEC_BYTES, floor);
            lw_store(job->columns + (2 * letters + 1) * LW_VEC_BYTES, floor);
        }
    }
    const lw_search_event *event = plan->events, *last = event + plan->n_events;
    for (int64_t block = 0; block < plan->n_blocks; block++) {
        int span = (int)(block % (SCREEN_SPAN / SEARCH_COLUMNS)) * SEARCH_COLUMNS;
        bool begins = event < last && event->block == block, lowers = span + SEARCH_COLUMNS == SCREEN_SPAN;
        if (begins)
            event = screen_events(job, event, block, keep);
        lw_vec kept = lw_load(keep);
        if (begins && lowers)
            screen_block(1, 1, job, block, span, floors, kept);
        else if (begins)
            screen_block(1, 0, job, block, span, floors, kept);
        else if (lowers)
            screen_block(0, 1, job, block, span, floors, kept);
        else
            screen_block(0, 0, job, block, span, floors, kept);
    }
    screen_events(job, event, plan->n_blocks, keep);
}
