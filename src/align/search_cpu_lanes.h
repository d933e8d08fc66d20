/* search_cpu_lanes.h - the search kernels for lanes of LANE_BITS bits; included once for each width.
 *
 *     A(i,j) = max(H(i-1,j-1) + s(i,j), F(i,j))            H(i,j) = max(A(i,j), E(i,j), 0)
 *     E(i,j+1) = max(E(i,j) - extend, A(i,j) - open - extend)         F(i+1,j) likewise
 *
 * Gaps open from A, not from H: of two gaps side by side the one in the subject then comes last. Gaps of
 * both kinds score the same in either order, so no H changes, and E no longer waits for its own H in the cell
 * before: the chain from column to column is one operation long instead of three.
 *
 * A gap below 0 may stay at 0 or lie anywhere under it: it can never lift H. Two ways to keep the floor:
 *
 * - Saturation (the rule): score 0 is LOWEST, the bottom of the lane, where additions and subtractions stop
 * by themselves. A best that is HIGHEST may have been cut there. 9 operations a cell; 8 bits hold scores up
 * to 254, 16 bits 65,534.
 * - Wrapping (SEARCH_WRAPS): score 0 is `zero`, and H is held there by one more maximum. Then A is at least
 * zero + the lowest matrix entry, E and F lie at most open + extend under that, and one more extend may be
 * taken off; `zero` is so high that none of them wraps. H + s cannot wrap upwards before H has reached
 * `limit` = HIGHEST - the highest entry + 1 and the best with it; what follows in that lane is not looked at.
 * For processors that do plain additions on more ports than saturating ones.
 *
 * 32 bits hold all that the driver lets through (below 2^30; entries and penalties are at most 2^16) with 0
 * as zero. */

#define LANE_PASTE2(a, b, c) a##b##c
#define LANE_PASTE(a, b, c) LANE_PASTE2(a, b, c)
#define LANE(op) LANE_PASTE(lw_i, LANE_BITS, _##op)
#define LANE_V(op) LANE_PASTE(lw_v, LANE_BITS, _##op)
#define NAME(name) LANE_PASTE(name, _, LANE_BITS)
#define ELEMENT LANE_PASTE(int, LANE_BITS, _t)

#if LANE_BITS == 8
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#elif LANE_BITS == 16
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#else
#define LOWEST 0
#define HIGHEST INT32_MAX
#endif

#undef ADD
#undef SUB
#undef FLOOR
#if defined(SEARCH_WRAPS)
#define ADD LANE_PASTE(lw_v, LANE_BITS, _add)
#define SUB LANE_PASTE(lw_v, LANE_BITS, _sub)
#define FLOOR(h) LANE(max)(h, zero)
#else
#define ADD LANE(adds)
#define SUB LANE(subs)
#define FLOOR(h) (h)
#endif

/* Scores of one query code against the letters of a column. */
LW_SIMD lw_vec NAME(lookup)(const int8_t table[3][LW_MAX_LETTERS], lw_vec letters)
{
#if LANE_BITS == 8
    return lw_i8_lookup32(table[0], letters);
#elif LANE_BITS == 16
    return lw_or(lw_and(lw_i8_lookup32(table[0], letters), lw_v16_set1(0x00ff)),
                 lw_and(lw_i8_lookup32(table[1], letters), lw_v16_set1(0xff00)));
#else
    return lw_or(lw_or(lw_and(lw_i8_lookup32(table[0], letters), lw_v32_set1(0x000000ff)),
                       lw_and(lw_i8_lookup32(table[1], letters), lw_v32_set1(0x0000ff00))),
                 lw_and(lw_i8_lookup32(table[2], letters), lw_v32_set1(0xffff0000)));
#endif
}

LW_SIMD void NAME(make_profile)(const lw_search_job *job, int64_t block, uint8_t *profile)
{
    const uint8_t *at = job->plan->letters + block * SEARCH_COLUMNS * LW_VEC_BYTES;
    lw_vec letters[SEARCH_COLUMNS];
    for (int c = 0; c < SEARCH_COLUMNS; c++)
        letters[c] = lw_load(at + c * LW_VEC_BYTES);
    for (int32_t u = 0; u < job->n_used; u++) {
        uint8_t code = job->used[u];
        uint8_t *row = profile + code * SEARCH_COLUMNS * LW_VEC_BYTES;
        for (int c = 0; c < SEARCH_COLUMNS; c++)
            lw_store(row + c * LW_VEC_BYTES, NAME(lookup)(job->table[code], letters[c]));
    }
}

/* All queries against one block of columns. With `begins`, lanes of `keep` at zero forget what was to their
 * left. */
LW_SIMD void NAME(score_block)(const lw_search_job *job, int64_t block, int begins, lw_vec keep)
{
    const lw_vec zero = LANE(set1)(job->zero), open_extend = LANE(set1)(job->open_extend),
                 extend = LANE(set1)(job->extend);
    const uint8_t *codes = job->codes, *profile = job->profile;
    uint8_t *column = job->columns;
    NAME(make_profile)(job, block, job->profile);
    for (int32_t q = 0; q < job->n_queries; q++) {
        lw_vec h[SEARCH_COLUMNS], f[SEARCH_COLUMNS], left = zero, s = lw_load(job->best + q * LW_VEC_BYTES);
        for (int c = 0; c < SEARCH_COLUMNS; c++)
            h[c] = f[c] = zero;
        for (const uint8_t *end = codes + job->len[q]; codes < end; codes++, column += 2 * LW_VEC_BYTES) {
            const uint8_t *row = profile + *codes * SEARCH_COLUMNS * LW_VEC_BYTES;
            lw_vec e = lw_load(column + LW_VEC_BYTES);
#pragma GCC unroll 8
            for (int c = SEARCH_COLUMNS - 1; c > 0; c--)
                h[c] = ADD(h[c - 1], lw_load(row + c * LW_VEC_BYTES));
            h[0] = ADD(left, lw_load(row));
            left = lw_load(column);
            if (begins) {
                left = LANE(min)(left, keep);
                e = LANE(min)(e, keep);
            }
#pragma GCC unroll 8
            for (int c = 0; c < SEARCH_COLUMNS; c++) {
                lw_vec a = LANE(max)(h[c], f[c]), gap = SUB(a, open_extend);
                h[c] = FLOOR(LANE(max)(a, e));
                s = LANE(max)(s, h[c]);
                e = LANE(max)(SUB(e, extend), gap);
                f[c] = LANE(max)(SUB(f[c], extend), gap);
            }
            lw_store(column, h[SEARCH_COLUMNS - 1]);
            lw_store(column + LW_VEC_BYTES, e);
        }
        lw_store(job->best + q * LW_VEC_BYTES, s);
    }
}

/* The same without gaps; only H is kept. */
LW_SIMD void NAME(gapless_block)(const lw_search_job *job, int64_t block, int begins, lw_vec keep)
{
    const lw_vec lowest = LANE(set1)(LOWEST);
    const uint8_t *codes = job->codes;
    uint8_t *column = job->columns;
    NAME(make_profile)(job, block, job->profile);
    for (int32_t q = 0; q < job->n_queries; q++) {
        lw_vec h[SEARCH_COLUMNS], left = lowest, s = lw_load(job->best + q * LW_VEC_BYTES);
        for (int c = 0; c < SEARCH_COLUMNS; c++)
            h[c] = lowest;
        for (const uint8_t *end = codes + job->len[q]; codes < end; codes++, column += LW_VEC_BYTES) {
            const uint8_t *row = job->profile + *codes * SEARCH_COLUMNS * LW_VEC_BYTES;
#pragma GCC unroll 8
            for (int c = SEARCH_COLUMNS - 1; c > 0; c--)
                h[c] = LANE(adds)(h[c - 1], lw_load(row + c * LW_VEC_BYTES));
            h[0] = LANE(adds)(left, lw_load(row));
            left = lw_load(column);
            if (begins)
                left = LANE(min)(left, keep);
#pragma GCC unroll 8
            for (int c = 0; c < SEARCH_COLUMNS; c++)
                s = LANE(max)(s, h[c]);
            lw_store(column, h[SEARCH_COLUMNS - 1]);
        }
        lw_store(job->best + q * LW_VEC_BYTES, s);
    }
}

/* Takes the scores of a finished subject out of its lane and empties it. */
static void NAME(take)(const lw_search_job *job, const lw_search_event *event)
{
    ELEMENT *best = (ELEMENT *)(void *)job->best + event->lane;
    for (int32_t q = 0; q < job->n_queries; q++, best += LW_VEC_BYTES / sizeof(ELEMENT)) {
        if (event->done >= 0)
            job->scores[(int64_t)event->done * job->n_queries + q] =
                *best >= job->limit ? LW_SEARCH_OVERFLOW : (int32_t)*best - job->zero;
        *best = (ELEMENT)job->zero;
    }
}

static void NAME(clear)(const lw_search_job *job, int vectors_a_letter)
{
    const lw_vec zero = LANE(set1)(job->zero);
    int64_t letters = 0;
    for (int32_t q = 0; q < job->n_queries; q++) {
        letters += job->len[q];
        lw_store(job->best + q * LW_VEC_BYTES, zero);
    }
    for (int64_t k = 0; k < letters * vectors_a_letter; k++)
        lw_store(job->columns + k * LW_VEC_BYTES, zero);
}

/* The events of a block, and which lanes go on: `keep` is zero in the others. */
static const lw_search_event *NAME(events)(const lw_search_job *job, const lw_search_event *event,
                                           int64_t block, ELEMENT *keep)
{
    const lw_search_event *end = job->plan->events + job->plan->n_events;
    for (size_t k = 0; k < LW_VEC_BYTES / sizeof(ELEMENT); k++)
        keep[k] = HIGHEST;
    for (; event < end && event->block == block; event++) {
        NAME(take)(job, event);
        keep[event->lane] = (ELEMENT)job->zero;
    }
    return event;
}

#define RUN(name, vectors)                                                                                   \
    static void NAME(name)(const lw_search_job *job)                                                         \
    {                                                                                                        \
        _Alignas(LW_SEARCH_VEC_MAX) ELEMENT keep[LW_VEC_BYTES / sizeof(ELEMENT)];                            \
        const lw_search_plan *plan = job->plan;                                                              \
        const lw_search_event *event = plan->events, *end = plan->events + plan->n_events;                   \
        NAME(clear)(job, vectors);                                                                           \
        for (int64_t block = 0; block < plan->n_blocks;) {                                                   \
            event = NAME(events)(job, event, block, keep);                                                   \
            int64_t next = event < end ? event->block : plan->n_blocks;                                      \
            NAME(name##_block)(job, block++, 1, lw_load(keep));                                              \
            for (; block < next; block++)                                                                    \
                NAME(name##_block)(job, block, 0, lw_load(keep));                                            \
        }                                                                                                    \
        NAME(events)(job, event, plan->n_blocks, keep);                                                      \
    }
RUN(score, 2)
RUN(gapless, 1)

/* Moves every lane up by n and puts the lowest value into those below. */
LW_SIMD lw_vec NAME(move_up)(lw_vec v, int n)
{
    _Alignas(LW_SEARCH_VEC_MAX) uint8_t bytes[2 * LW_VEC_BYTES];
    lw_store(bytes, LANE(set1)(LOWEST));
    lw_store(bytes + LW_VEC_BYTES, v);
    return lw_load_unaligned(bytes + LW_VEC_BYTES - (size_t)n * sizeof(ELEMENT));
}

/* What F enters each lane with, from those that leave the lanes: lane after lane, in doubling steps. */
LW_SIMD lw_vec NAME(hand_on)(const lw_search_striped_job *job, lw_vec f)
{
    const int64_t range = (int64_t)HIGHEST - LOWEST;
    f = NAME(move_up)(f, 1);
    for (int n = 1; n < (int)(LW_VEC_BYTES / sizeof(ELEMENT)); n *= 2) {
        int64_t fall = (int64_t)job->rows * job->extend * n;
        if (fall >= range)
            break;
        int32_t first = fall < HIGHEST ? (int32_t)fall : HIGHEST;
        lw_vec far = LANE(subs)(NAME(move_up)(f, n), LANE(set1)(first));
        f = LANE(max)(f, LANE(subs)(far, LANE(set1)((int32_t)fall - first)));
    }
    return f;
}

/* Farrar's layout. F begins anew in every lane and is handed on to the next afterwards, as long as it exceeds
 * what gaps that open there have anyway and score 0 (every STRIPED_LATE-th row tells). Here E, which then
 * never opens from F, stands for the gap in A: so a late F changes H alone. */
static int32_t NAME(striped)(const lw_search_striped_job *job)
{
    const lw_vec lowest = LANE(set1)(LOWEST), open_extend = LANE(set1)(job->open_extend),
                 extend = LANE(set1)(job->extend), top = LANE_V(set1)((uint32_t)1 << (LANE_BITS - 1));
    const size_t bytes = (size_t)job->rows * LW_VEC_BYTES;
    uint8_t *before = job->columns, *now = before + bytes, *gaps = now + bytes;
    for (size_t at = 0; at < bytes; at += LW_VEC_BYTES) {
        lw_store(now + at, lowest);
        lw_store(gaps + at, lowest);
    }
    lw_vec best = lowest;
    for (int32_t j = 0; j < job->n; j++) {
        const uint8_t *profile = job->profile + job->subject[j] * bytes, *other = now;
        now = before;
        before = (uint8_t *)(uintptr_t)other;
        lw_vec h = NAME(move_up)(lw_load(before + bytes - LW_VEC_BYTES), 1), f = lowest;
        for (size_t at = 0; at < bytes; at += LW_VEC_BYTES) {
            lw_vec e = lw_load(gaps + at), a = LANE(max)(LANE(adds)(h, lw_load(profile + at)), e);
            lw_vec gap = LANE(subs)(a, open_extend);
            h = lw_load(before + at);
            best = LANE(max)(best, a);
            lw_store(now + at, LANE(max)(a, f));
            lw_store(gaps + at, LANE(max)(LANE(subs)(e, extend), gap));
            f = LANE(max)(LANE(subs)(f, extend), gap);
        }
        f = NAME(hand_on)(job, f);
        for (size_t at = 0; at < bytes;) {
            lw_vec opened = LANE(max)(LANE(subs)(lw_load(now + at), open_extend), lowest);
            if (!LANE_V(any_above)(LANE_V(add)(f, top), LANE_V(add)(opened, top)))
                break;
            for (int k = 0; k < STRIPED_LATE && at < bytes; k++, at += LW_VEC_BYTES) {
                lw_store(now + at, LANE(max)(lw_load(now + at), f));
                f = LANE(subs)(f, extend);
            }
        }
    }
    ELEMENT lanes[LW_VEC_BYTES / sizeof(ELEMENT)], score = LOWEST;
    memcpy(lanes, &best, sizeof lanes);
    for (size_t l = 0; l < LW_VEC_BYTES / sizeof(ELEMENT); l++)
        score = lanes[l] > score ? lanes[l] : score;
    return score == HIGHEST ? LW_SEARCH_OVERFLOW : (int32_t)score - LOWEST;
}

#undef RUN
#undef LANE_V
#undef LOWEST
#undef HIGHEST
#undef ELEMENT
#undef NAME
#undef LANE
#undef LANE_PASTE
#undef LANE_PASTE2
#undef LANE_BITS
