/* align_cpu_score_lanes.h - many queries against one reference: the score kernel for lanes of LANE_BITS bits.
 * A part of align_cpu_lanes.h. */

static void K(profile)(const lw_cpu_profile_job *job)
{
    uint8_t *out = job->profile;
    const lw_vec base = V(set1)(job->base);
    for (int letter = 0; letter < job->n_letters; letter++) {
        const lw_vec other = V(set1)(job->other[letter]);
        for (int32_t i = 0; i < job->rows; i++, out += LW_VEC_BYTES)
            lw_store(out, V(add)(lw_v8_lookup(job->table[letter],
                                              lw_load(job->index + (size_t)i * LW_VEC_BYTES), other),
                                 base));
    }
}

/* H of a row in local mode without gaps is held as score + TOP instead of score + zero: there the floor at
 * score 0 comes with the addition (add_floor). */
#define TOP ((uint32_t)1 << (LANE_BITS - 1))

/* What a strip of columns carries from row to row. */
typedef struct K(strip_state) {
    lw_vec h[LW_CPU_COLUMNS], gap[LW_CPU_COLUMNS]; /* H and I of the row before */
    lw_vec diagonal;                               /* H of the row before, left of the first column */
    lw_vec best;
    const uint8_t *score[LW_CPU_COLUMNS]; /* profiles of the columns' letters */
    size_t left_from, left_to;            /* rows whose D this strip leaves above idle */
} K(strip_state);

/* Rows [at, end) without gaps, until one has an H above idle: returns the row after it, and *stopped. s->h
 * and s->diagonal hold score + TOP here. LOOSE: `best` need not see scores below `level`. */
LW_SIMD size_t K(free_rows)(const int COLUMNS, const int LOOSE, const lw_cpu_score_job *job,
                            K(strip_state) * s, size_t at, size_t end, int *stopped)
{
    uint8_t *left_h = job->h;
    const lw_vec level = V(set1)(TOP - job->level), idle = V(set1)(TOP + job->idle),
                 to_zero = V(set1)(job->zero - TOP);
    const uint8_t *score[LW_CPU_COLUMNS];
    lw_vec h[LW_CPU_COLUMNS], diagonal = s->diagonal, best = V(set1)(TOP);
    *stopped = 0;
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        h[c] = s->h[c];
        score[c] = s->score[c];
    }
    while (at < end) {
        lw_vec left = lw_load(left_h + at);
#pragma GCC unroll 8
        for (int c = COLUMNS - 1; c > 0; c--)
            h[c] = V(add_floor)(h[c - 1], lw_load(score[c] + at));
        h[0] = V(add_floor)(diagonal, lw_load(score[0] + at));
        diagonal = left;
        lw_store(left_h + at, h[COLUMNS - 1]);
        at += LW_VEC_BYTES;
        lw_vec all = h[0];
#pragma GCC unroll 8
        for (int c = 1; c < COLUMNS; c++)
            all = LOOSE ? lw_or(all, h[c]) : V(max)(all, h[c]);
        if (!LOOSE)
            best = V(max)(best, all);
        if (__builtin_expect(lw_any_bits(all, level), 0)) {
#pragma GCC unroll 8
            for (int c = 0; LOOSE && c < COLUMNS; c++)
                all = c ? V(max)(all, h[c]) : h[c];
            best = V(max)(best, all);
            if (V(any_above)(all, idle)) {
                *stopped = 1;
                break;
            }
        }
    }
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++)
        s->h[c] = h[c];
    s->diagonal = diagonal;
    s->best = V(max)(s->best, V(add)(best, to_zero));
    return at;
}

/* The row before `at`, just walked without gaps, has an H above idle: deletions from its high cells reach
 * cells to their right, and insertions begin. */
LW_SIMD void K(begin_gaps)(const int COLUMNS, const lw_cpu_score_job *job, K(strip_state) * s, size_t at)
{
    const lw_vec zero = V(set1)(job->zero), idle = V(set1)(job->zero + job->idle);
    const lw_vec open_extend = V(set1)(job->open_extend), extend = V(set1)(job->extend);
    const lw_vec to_zero = V(set1)(job->zero - TOP);
    lw_vec deletion = zero;
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        s->h[c] = V(max)(V(add)(s->h[c], to_zero), V(sub)(deletion, open_extend));
        deletion = V(max)(V(sub)(deletion, extend), s->h[c]);
        s->gap[c] = s->h[c];
    }
    s->diagonal = V(add)(s->diagonal, to_zero);
    lw_store(job->h + at - LW_VEC_BYTES, V(sub)(s->h[COLUMNS - 1], to_zero));
    lw_store(job->d + at - LW_VEC_BYTES, deletion);
    if (V(any_above)(deletion, idle)) {
        s->left_from = s->left_to ? s->left_from : at - LW_VEC_BYTES;
        s->left_to = at;
    }
}

/* Rows [at, end) with gaps; returns the row after the last one. In local mode it looks every 8 rows, from
 * active_to on, whether all gaps are idle again. */
LW_SIMD size_t K(gapped_rows)(const int COLUMNS, const int LOCAL, const lw_cpu_score_job *job,
                              K(strip_state) * s, size_t at, size_t end, size_t active_to, int *stopped)
{
    uint8_t *left_h = job->h, *left_d = job->d;
    const lw_vec zero = V(set1)(job->zero), idle = V(set1)(job->zero + job->idle);
    const lw_vec open_extend = V(set1)(job->open_extend), extend = V(set1)(job->extend);
    const lw_vec to_zero = V(set1)(job->zero - TOP);
    const uint8_t *score[LW_CPU_COLUMNS];
    lw_vec h[LW_CPU_COLUMNS], gap[LW_CPU_COLUMNS], diagonal = s->diagonal, best = s->best;
    size_t left_from = s->left_from, left_to = s->left_to;
    *stopped = 0;
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        h[c] = s->h[c];
        gap[c] = s->gap[c];
        score[c] = s->score[c];
    }
    while (at < end) {
        lw_vec left = lw_load(left_h + at), deletion = lw_load(left_d + at);
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS; c++) {
            lw_vec matched = V(add)(diagonal, lw_load(score[c] + at));
            if (LOCAL)
                matched = V(max)(matched, zero);
            lw_vec gapped = V(sub)(V(max)(deletion, gap[c]), open_extend);
            diagonal = h[c];
            h[c] = V(max)(matched, gapped);
            deletion = V(max)(V(sub)(deletion, extend), h[c]);
            gap[c] = V(max)(V(sub)(gap[c], extend), h[c]);
            if (LOCAL)
                best = V(max)(best, h[c]);
        }
        diagonal = LOCAL ? V(add)(left, to_zero) : left;
        lw_store(left_h + at, LOCAL ? V(sub)(h[COLUMNS - 1], to_zero) : h[COLUMNS - 1]);
        lw_store(left_d + at, deletion);
        at += LW_VEC_BYTES;
        if (!LOCAL)
            continue;
        if (V(any_above)(deletion, idle)) {
            left_from = left_to ? left_from : at - LW_VEC_BYTES;
            left_to = at;
        }
        if ((at & (8 * LW_VEC_BYTES - 1)) == 0 && at > active_to) {
            lw_vec highest = gap[0];
#pragma GCC unroll 8
            for (int c = 1; c < COLUMNS; c++)
                highest = V(max)(highest, gap[c]);
            if (!V(any_above)(highest, idle)) {
                *stopped = 1;
                break;
            }
        }
    }
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        s->h[c] = h[c];
        s->gap[c] = gap[c];
    }
    s->diagonal = diagonal;
    s->best = best;
    s->left_from = left_from;
    s->left_to = left_to;
    return at;
}

/* Full strips share one copy of each loop, so that the compiler gives each the registers. */
static __attribute__((noinline)) size_t K(free_rows_exact)(const lw_cpu_score_job *job, K(strip_state) * s,
                                                           size_t at, size_t end, int *stopped)
{
    return K(free_rows)(LW_CPU_COLUMNS, 0, job, s, at, end, stopped);
}
static __attribute__((noinline)) size_t K(free_rows_loose)(const lw_cpu_score_job *job, K(strip_state) * s,
                                                           size_t at, size_t end, int *stopped)
{
    return K(free_rows)(LW_CPU_COLUMNS, 1, job, s, at, end, stopped);
}
static __attribute__((noinline)) size_t K(gapped_rows_local)(const lw_cpu_score_job *job, K(strip_state) * s,
                                                             size_t at, size_t end, size_t active_to,
                                                             int *stopped)
{
    return K(gapped_rows)(LW_CPU_COLUMNS, 1, job, s, at, end, active_to, stopped);
}

/* Walks the rows [row0, row1) of COLUMNS columns that begin with top_h[1]. On entry top_h[c + 1] and
 * top_i[c + 1] hold H and I above column c and *corner holds H above the column before; on exit they hold
 * H and I below, for the next tile, and *corner what was above the last column.
 *
 * In local mode most rows need no gaps: while D and I are at most zero + idle, idle <= open + extend, a gap
 * scores at most zero and H = max(diagonal + score, zero). Nor is it needed to keep D and I up while no
 * H exceeds idle: extended they only fall. So rows are walked without gaps until an H above idle appears or
 * a row comes whose D was left above idle by the strip before (active[0] <= row < active[1]); from
 * there with gaps, until every I is idle again. Values of D at or below idle may be stale (too high, from an
 * older strip, or too low): they have no effect, now or later. The row after an active one is walked with
 * gaps too, since its diagonal may be high: so every row without gaps has idle values before it, and its own
 * are at most idle + max_score, which the lane holds above TOP (the driver chose idle so). */
LW_SIMD void K(strip)(const int COLUMNS, const int LOCAL, const lw_cpu_score_job *job, int32_t row0,
                      int32_t row1, const uint8_t *codes, uint8_t *top_h, uint8_t *top_i, lw_vec *corner,
                      uint8_t *maximum, int32_t active[2])
{
    const lw_vec zero = V(set1)(job->zero), idle = V(set1)(job->zero + job->idle);
    const lw_vec to_zero = V(set1)(job->zero - TOP);
    K(strip_state) s;
    s.diagonal = *corner;
    lw_vec highest = s.diagonal;
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        s.h[c] = lw_load(top_h + (c + 1) * LW_VEC_BYTES);
        s.gap[c] = lw_load(top_i + (c + 1) * LW_VEC_BYTES);
        s.score[c] = job->profile + (size_t)codes[c] * (size_t)job->rows * LW_VEC_BYTES;
        if (LOCAL)
            highest = V(max)(highest, s.gap[c]);
    }
    *corner = s.h[COLUMNS - 1];
    s.left_from = s.left_to = 0;
    size_t at = (size_t)row0 * LW_VEC_BYTES;
    const size_t end = (size_t)row1 * LW_VEC_BYTES;
    int stopped;
    if (!LOCAL) {
        s.best = zero;
        K(gapped_rows)(COLUMNS, 0, job, &s, at, end, 0, &stopped);
    } else {
        s.best = lw_load(maximum);
        const size_t active_from = (size_t)active[0] * LW_VEC_BYTES,
                     active_to = (size_t)active[1] * LW_VEC_BYTES;
        int gaps = V(any_above)(highest, idle);
        while (at < end) {
            if (!gaps) {
                const size_t stop = at > active_to || active_to == 0 ? end
                                    : active_from > at               ? active_from
                                                                     : at;
#pragma GCC unroll 8
                for (int c = 0; c < COLUMNS; c++)
                    s.h[c] = V(sub)(s.h[c], to_zero);
                s.diagonal = V(sub)(s.diagonal, to_zero);
                if (COLUMNS == 1)
                    at = K(free_rows)(1, 0, job, &s, at, stop, &stopped);
                else if (job->loose)
                    at = K(free_rows_loose)(job, &s, at, stop, &stopped);
                else
                    at = K(free_rows_exact)(job, &s, at, stop, &stopped);
                if (stopped) {
                    K(begin_gaps)(COLUMNS, job, &s, at);
                } else {
#pragma GCC unroll 8
                    for (int c = 0; c < COLUMNS; c++) {
                        s.h[c] = V(add)(s.h[c], to_zero);
                        s.gap[c] = zero;
                    }
                    s.diagonal = V(add)(s.diagonal, to_zero);
                }
            }
            if (COLUMNS == 1)
                at = K(gapped_rows)(1, 1, job, &s, at, end, active_to, &stopped);
            else
                at = K(gapped_rows_local)(job, &s, at, end, active_to, &stopped);
            gaps = !stopped;
        }
        lw_store(maximum, s.best);
        active[0] = (int32_t)(s.left_from / LW_VEC_BYTES);
        active[1] = (int32_t)(s.left_to / LW_VEC_BYTES);
    }
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        lw_store(top_h + (c + 1) * LW_VEC_BYTES, s.h[c]);
        lw_store(top_i + (c + 1) * LW_VEC_BYTES, s.gap[c]);
    }
}

static void K(strips_local)(const lw_cpu_score_job *job, int32_t row0, int32_t row1, int64_t column,
                            int32_t n, lw_vec *corner, int32_t active[2])
{
    int32_t c = 0;
    for (; c + LW_CPU_COLUMNS <= n; c += LW_CPU_COLUMNS)
        K(strip)
    (LW_CPU_COLUMNS, 1, job, row0, row1, job->codes + column + c, job->top_h + c * LW_VEC_BYTES,
     job->top_i + c * LW_VEC_BYTES, corner, job->maxima + ((column + c) >> job->block_shift) * LW_VEC_BYTES,
     active);
    for (; c < n; c++)
        K(strip)
    (1, 1, job, row0, row1, job->codes + column + c, job->top_h + c * LW_VEC_BYTES,
     job->top_i + c * LW_VEC_BYTES, corner, job->maxima + ((column + c) >> job->block_shift) * LW_VEC_BYTES,
     active);
}

static void K(strips_ends)(const lw_cpu_score_job *job, int32_t row0, int32_t row1, int64_t column, int32_t n,
                           lw_vec *corner)
{
    int32_t c = 0;
    for (; c + LW_CPU_COLUMNS <= n; c += LW_CPU_COLUMNS)
        K(strip)
    (LW_CPU_COLUMNS, 0, job, row0, row1, job->codes + column + c, job->top_h + c * LW_VEC_BYTES,
     job->top_i + c * LW_VEC_BYTES, corner, NULL, NULL);
    for (; c < n; c++)
        K(strip)
    (1, 0, job, row0, row1, job->codes + column + c, job->top_h + c * LW_VEC_BYTES,
     job->top_i + c * LW_VEC_BYTES, corner, NULL, NULL);
}

static void K(score)(const lw_cpu_score_job *job)
{
    int32_t tiles = (job->rows + job->tile_rows - 1) / job->tile_rows;
    for (int32_t t = 0; t < tiles; t++)
        job->active[2 * t] = job->active[2 * t + 1] = 0;
    if (job->mode != LW_GLOBAL) {
        lw_vec lowest = V(set1)(job->mode == LW_LOCAL ? job->zero + (job->loose ? job->level - 1 : 0) : 0);
        for (int64_t b = 0; b <= (job->columns - 1) >> job->block_shift; b++)
            lw_store(job->maxima + b * LW_VEC_BYTES, lowest);
    }
    if (job->mode == LW_LOCAL)
        for (int32_t i = 0; i < job->rows; i++)
            lw_store(job->h + (size_t)i * LW_VEC_BYTES, V(set1)(TOP));
    for (int64_t column = 0; column < job->columns; column += LW_CPU_CHUNK) {
        int32_t n = job->columns - column < LW_CPU_CHUNK ? (int32_t)(job->columns - column) : LW_CPU_CHUNK;
        /* row 0 of the matrix; entry c belongs to matrix column column + c, the first to the corner */
        for (int32_t c = 0; c <= n; c++) {
            int64_t j = column + c, border = job->zero;
            if (job->mode == LW_GLOBAL && j > 0)
                border -= job->border_open + j * job->border_extend;
            lw_store(job->top_h + c * LW_VEC_BYTES, V(set1)((uint32_t)border));
            lw_store(job->top_i + c * LW_VEC_BYTES, V(set1)((uint32_t)border));
        }
        for (int32_t t = 0; t < tiles; t++) {
            int32_t row0 = t * job->tile_rows,
                    row1 = job->rows - row0 < job->tile_rows ? job->rows : row0 + job->tile_rows;
            lw_vec corner = lw_load(job->top_h);
            /* the next tile's corner: this tile's last row at the column before the chunk */
            lw_vec left = lw_load(job->h + (size_t)(row1 - 1) * LW_VEC_BYTES);
            lw_store(job->top_h, job->mode == LW_LOCAL ? V(add)(left, V(set1)(job->zero - TOP)) : left);
            if (job->mode == LW_LOCAL)
                K(strips_local)(job, row0, row1, column, n, &corner, &job->active[2 * t]);
            else
                K(strips_ends)(job, row0, row1, column, n, &corner);
        }
        if (job->mode == LW_SEMIGLOBAL)
            for (int32_t c = 0; c < n; c++) {
                uint8_t *maximum = job->maxima + ((column + c) >> job->block_shift) * LW_VEC_BYTES;
                lw_store(maximum, V(max)(lw_load(maximum), lw_load(job->top_h + (c + 1) * LW_VEC_BYTES)));
            }
    }
}

#undef TOP
