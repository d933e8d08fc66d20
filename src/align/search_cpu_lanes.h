/* search_cpu_lanes.h - the search kernels for lanes of LANE_BITS bits; included once for each width.
 *
 * Scores sit at the bottom of the lane: score 0 is LOWEST, so that saturation is the floor of the local
 * recurrence
 *
 *     H(i,j) = max(H(i-1,j-1) + s(i,j), E(i,j), F(i,j), 0)
 *     E(i,j+1) = max(E(i,j) - extend, H(i,j) - open - extend)         F(i+1,j) likewise
 *
 * and a gap below 0 may stay at 0: it can never lift H. A score that reaches HIGHEST may have been cut there,
 * so it is reported as overflow: 8 bits hold scores up to 254, 16 bits up to 65,534, and 32 bits all that the
 * driver lets through (below 2^30; no value in between leaves int32, since matrix entries and penalties are
 * at most 2^16). */

#define LANE_PASTE2(a, b, c) a##b##c
#define LANE_PASTE(a, b, c) LANE_PASTE2(a, b, c)
#define LANE(op) LANE_PASTE(lw_i, LANE_BITS, _##op)
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

LW_SIMD void NAME(make_profile)(const lw_search_job *job, int64_t block)
{
    const uint8_t *at = job->plan->letters + block * LW_SEARCH_COLUMNS * LW_VEC_BYTES;
    lw_vec letters[LW_SEARCH_COLUMNS];
    for (int c = 0; c < LW_SEARCH_COLUMNS; c++)
        letters[c] = lw_load(at + c * LW_VEC_BYTES);
    for (int32_t u = 0; u < job->n_used; u++) {
        uint8_t code = job->used[u];
        uint8_t *row = job->profile + code * LW_SEARCH_COLUMNS * LW_VEC_BYTES;
        for (int c = 0; c < LW_SEARCH_COLUMNS; c++)
            lw_store(row + c * LW_VEC_BYTES, NAME(lookup)(job->table[code], letters[c]));
    }
}

/* One cell of a column: H from the diagonal d, which the next row's then is; left and upper gap e and f; best
 * s. */
#define CELL(c, f)                                                                                           \
    h = LANE(adds)(d##c, lw_load(row + c * LW_VEC_BYTES));                                                   \
    h = LANE(max)(LANE(max)(h, f), e);                                                                       \
    s = LANE(max)(s, h);                                                                                     \
    t = LANE(subs)(h, open_extend);                                                                          \
    e = LANE(max)(LANE(subs)(e, extend), t);                                                                 \
    f = LANE(max)(LANE(subs)(f, extend), t);

/* All queries against one block of columns. With `begins`, lanes of `keep` at LOWEST forget what was to their
 * left. */
LW_SIMD void NAME(score_block)(const lw_search_job *job, int64_t block, int begins, lw_vec keep)
{
    const lw_vec lowest = LANE(set1)(LOWEST), open_extend = LANE(set1)(job->open_extend),
                 extend = LANE(set1)(job->extend);
    const uint8_t *codes = job->codes, *profile = job->profile;
    uint8_t *column = job->columns;
    NAME(make_profile)(job, block);
    for (int32_t q = 0; q < job->n_queries; q++) {
        lw_vec d0 = lowest, d1 = lowest, d2 = lowest, d3 = lowest;
        lw_vec f0 = lowest, f1 = lowest, f2 = lowest, f3 = lowest;
        lw_vec s = lw_load(job->best + q * LW_VEC_BYTES);
#pragma GCC unroll 2
        for (const uint8_t *end = codes + job->len[q]; codes < end; codes++, column += 2 * LW_VEC_BYTES) {
            const uint8_t *row = profile + *codes * LW_SEARCH_COLUMNS * LW_VEC_BYTES;
            lw_vec left = lw_load(column), e = lw_load(column + LW_VEC_BYTES), h, t;
            if (begins) {
                left = LANE(min)(left, keep);
                e = LANE(min)(e, keep);
            }
            CELL(0, f0)
            d0 = left;
            left = h;
            CELL(1, f1)
            d1 = left;
            left = h;
            CELL(2, f2)
            d2 = left;
            left = h;
            CELL(3, f3)
            d3 = left;
            lw_store(column, h);
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
    NAME(make_profile)(job, block);
    for (int32_t q = 0; q < job->n_queries; q++) {
        lw_vec d0 = lowest, d1 = lowest, d2 = lowest, d3 = lowest;
        lw_vec s = lw_load(job->best + q * LW_VEC_BYTES);
        for (const uint8_t *end = codes + job->len[q]; codes < end; codes++, column += LW_VEC_BYTES) {
            const uint8_t *row = job->profile + *codes * LW_SEARCH_COLUMNS * LW_VEC_BYTES;
            lw_vec left = lw_load(column);
            if (begins)
                left = LANE(min)(left, keep);
            lw_vec h0 = LANE(adds)(d0, lw_load(row)), h1 = LANE(adds)(d1, lw_load(row + LW_VEC_BYTES));
            lw_vec h2 = LANE(adds)(d2, lw_load(row + 2 * LW_VEC_BYTES)),
                   h3 = LANE(adds)(d3, lw_load(row + 3 * LW_VEC_BYTES));
            s = LANE(max)(LANE(max)(s, LANE(max)(h0, h1)), LANE(max)(h2, h3));
            d0 = left, d1 = h0, d2 = h1, d3 = h2;
            lw_store(column, h3);
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
                *best == HIGHEST ? LW_SEARCH_OVERFLOW : (int32_t)*best - LOWEST;
        *best = LOWEST;
    }
}

static void NAME(clear)(const lw_search_job *job, int vectors_a_letter)
{
    const lw_vec lowest = LANE(set1)(LOWEST);
    int64_t letters = 0;
    for (int32_t q = 0; q < job->n_queries; q++) {
        letters += job->len[q];
        lw_store(job->best + q * LW_VEC_BYTES, lowest);
    }
    for (int64_t k = 0; k < letters * vectors_a_letter; k++)
        lw_store(job->columns + k * LW_VEC_BYTES, lowest);
}

/* The events of a block, and which lanes go on: `keep` is LOWEST in the others. */
static const lw_search_event *NAME(events)(const lw_search_job *job, const lw_search_event *event,
                                           int64_t block, ELEMENT *keep)
{
    const lw_search_event *end = job->plan->events + job->plan->n_events;
    for (size_t k = 0; k < LW_VEC_BYTES / sizeof(ELEMENT); k++)
        keep[k] = HIGHEST;
    for (; event < end && event->block == block; event++) {
        NAME(take)(job, event);
        keep[event->lane] = LOWEST;
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

#undef RUN
#undef CELL
#undef LOWEST
#undef HIGHEST
#undef ELEMENT
#undef NAME
#undef LANE
#undef LANE_PASTE
#undef LANE_PASTE2
#undef LANE_BITS
