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
    lw_vec h[LW_CPU_COLUMNS], gap[2][LW_CPU_COLUMNS]; /* H and I, by piece, of the row before */
    lw_vec diagonal;                                  /* H of the row before, left of the first column */
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
LW_SIMD void K(begin_gaps)(const int PIECES, const int COLUMNS, const lw_cpu_score_job *job,
                           K(strip_state) * s, size_t at)
{
    const lw_vec zero = V(set1)(job->zero), idle = V(set1)(job->zero + job->idle);
    const lw_vec to_zero = V(set1)(job->zero - TOP);
    const size_t rows_bytes = (size_t)job->rows * LW_VEC_BYTES;
    lw_vec deletion[2] = {zero, zero};
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        s->h[c] = V(add)(s->h[c], to_zero);
        for (int p = 0; p < PIECES; p++)
            s->h[c] = V(max)(s->h[c], V(sub)(deletion[p], V(set1)(job->gaps.open_extend[p])));
        for (int p = 0; p < PIECES; p++) {
            deletion[p] = V(max)(V(sub)(deletion[p], V(set1)(job->gaps.extend[p])), s->h[c]);
            s->gap[p][c] = s->h[c];
        }
    }
    s->diagonal = V(add)(s->diagonal, to_zero);
    lw_store(job->h + at - LW_VEC_BYTES, V(sub)(s->h[COLUMNS - 1], to_zero));
    for (int p = 0; p < PIECES; p++)
        lw_store(job->d + (size_t)p * rows_bytes + at - LW_VEC_BYTES, deletion[p]);
    if (V(any_above)(PIECES == 2 ? V(max)(deletion[0], deletion[1]) : deletion[0], idle)) {
        s->left_from = s->left_to ? s->left_from : at - LW_VEC_BYTES;
        s->left_to = at;
    }
}

/* Rows [at, end) with gaps; returns the row after the last one. In local mode it looks every 8 rows, from
 * active_to on, whether all gaps are idle again. */
LW_SIMD size_t K(gapped_rows)(const int PIECES, const int COLUMNS, const int LOCAL,
                              const lw_cpu_score_job *job, K(strip_state) * s, size_t at, size_t end,
                              size_t active_to, int *stopped)
{
    uint8_t *left_h = job->h, *left_d = job->d;
    const size_t rows_bytes = (size_t)job->rows * LW_VEC_BYTES;
    const lw_vec zero = V(set1)(job->zero), idle = V(set1)(job->zero + job->idle);
    const lw_vec to_zero = V(set1)(job->zero - TOP);
    const uint8_t *score[LW_CPU_COLUMNS];
    lw_vec open_extend[2], extend[2];
    lw_vec h[LW_CPU_COLUMNS], gap[2][LW_CPU_COLUMNS], diagonal = s->diagonal, best = s->best;
    size_t left_from = s->left_from, left_to = s->left_to;
    *stopped = 0;
    for (int p = 0; p < PIECES; p++) {
        open_extend[p] = V(set1)(job->gaps.open_extend[p]);
        extend[p] = V(set1)(job->gaps.extend[p]);
    }
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        h[c] = s->h[c];
        score[c] = s->score[c];
        for (int p = 0; p < PIECES; p++)
            gap[p][c] = s->gap[p][c];
    }
    while (at < end) {
        lw_vec left = lw_load(left_h + at), deletion[2];
        for (int p = 0; p < PIECES; p++)
            deletion[p] = lw_load(left_d + (size_t)p * rows_bytes + at);
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS; c++) {
            lw_vec value = V(add)(diagonal, lw_load(score[c] + at));
            if (LOCAL)
                value = V(max)(value, zero);
            for (int p = 0; p < PIECES; p++)
                value = V(max)(value, V(sub)(V(max)(deletion[p], gap[p][c]), open_extend[p]));
            diagonal = h[c];
            h[c] = value;
            for (int p = 0; p < PIECES; p++) {
                deletion[p] = V(max)(V(sub)(deletion[p], extend[p]), value);
                gap[p][c] = V(max)(V(sub)(gap[p][c], extend[p]), value);
            }
            if (LOCAL)
                best = V(max)(best, value);
        }
        diagonal = LOCAL ? V(add)(left, to_zero) : left;
        lw_store(left_h + at, LOCAL ? V(sub)(h[COLUMNS - 1], to_zero) : h[COLUMNS - 1]);
        for (int p = 0; p < PIECES; p++)
            lw_store(left_d + (size_t)p * rows_bytes + at, deletion[p]);
        at += LW_VEC_BYTES;
        if (!LOCAL)
            continue;
        if (V(any_above)(PIECES == 2 ? V(max)(deletion[0], deletion[1]) : deletion[0], idle)) {
            left_from = left_to ? left_from : at - LW_VEC_BYTES;
            left_to = at;
        }
        if ((at & (8 * LW_VEC_BYTES - 1)) == 0 && at > active_to) {
            lw_vec highest = gap[0][0];
#pragma GCC unroll 8
            for (int c = 0; c < COLUMNS; c++)
                for (int p = 0; p < PIECES; p++)
                    highest = V(max)(highest, gap[p][c]);
            if (!V(any_above)(highest, idle)) {
                *stopped = 1;
                break;
            }
        }
    }
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        s->h[c] = h[c];
        for (int p = 0; p < PIECES; p++)
            s->gap[p][c] = gap[p][c];
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
    return K(gapped_rows)(1, LW_CPU_COLUMNS, 1, job, s, at, end, active_to, stopped);
}
static __attribute__((noinline)) size_t K(gapped_rows_local_2)(const lw_cpu_score_job *job,
                                                               K(strip_state) * s, size_t at, size_t end,
                                                               size_t active_to, int *stopped)
{
    return K(gapped_rows)(2, LW_CPU_COLUMNS, 1, job, s, at, end, active_to, stopped);
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
LW_SIMD void K(strip)(const int PIECES, const int COLUMNS, const int LOCAL, const lw_cpu_score_job *job,
                      int32_t row0, int32_t row1, const uint8_t *codes, uint8_t *top_h, uint8_t *top_i,
                      lw_vec *corner, uint8_t *maximum, int32_t active[2])
{
    const lw_vec zero = V(set1)(job->zero), idle = V(set1)(job->zero + job->idle);
    const lw_vec to_zero = V(set1)(job->zero - TOP);
    K(strip_state) s;
    s.diagonal = *corner;
    lw_vec highest = s.diagonal;
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        s.h[c] = lw_load(top_h + (c + 1) * LW_VEC_BYTES);
        s.score[c] = job->profile + (size_t)codes[c] * (size_t)job->rows * LW_VEC_BYTES;
        for (int p = 0; p < PIECES; p++) {
            s.gap[p][c] = lw_load(top_i + ((size_t)p * (LW_CPU_CHUNK + 1) + (size_t)c + 1) * LW_VEC_BYTES);
            if (LOCAL)
                highest = V(max)(highest, s.gap[p][c]);
        }
    }
    *corner = s.h[COLUMNS - 1];
    s.left_from = s.left_to = 0;
    size_t at = (size_t)row0 * LW_VEC_BYTES;
    const size_t end = (size_t)row1 * LW_VEC_BYTES;
    int stopped;
    if (!LOCAL) {
        s.best = zero;
        K(gapped_rows)(PIECES, COLUMNS, 0, job, &s, at, end, 0, &stopped);
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
                    K(begin_gaps)(PIECES, COLUMNS, job, &s, at);
                } else {
#pragma GCC unroll 8
                    for (int c = 0; c < COLUMNS; c++) {
                        s.h[c] = V(add)(s.h[c], to_zero);
                        s.gap[0][c] = s.gap[1][c] = zero;
                    }
                    s.diagonal = V(add)(s.diagonal, to_zero);
                }
            }
            if (COLUMNS == 1)
                at = K(gapped_rows)(PIECES, 1, 1, job, &s, at, end, active_to, &stopped);
            else if (PIECES == 1)
                at = K(gapped_rows_local)(job, &s, at, end, active_to, &stopped);
            else
                at = K(gapped_rows_local_2)(job, &s, at, end, active_to, &stopped);
            gaps = !stopped;
        }
        lw_store(maximum, s.best);
        active[0] = (int32_t)(s.left_from / LW_VEC_BYTES);
        active[1] = (int32_t)(s.left_to / LW_VEC_BYTES);
    }
#pragma GCC unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        lw_store(top_h + (c + 1) * LW_VEC_BYTES, s.h[c]);
        for (int p = 0; p < PIECES; p++)
            lw_store(top_i + ((size_t)p * (LW_CPU_CHUNK + 1) + (size_t)c + 1) * LW_VEC_BYTES, s.gap[p][c]);
    }
}

/* The strips of a row tile in n columns from `column` on. */
LW_SIMD void K(strips)(const int PIECES, const int LOCAL, const lw_cpu_score_job *job, int32_t row0,
                       int32_t row1, int64_t column, int32_t n, lw_vec *corner, int32_t active[2])
{
    int32_t c = 0;
    for (; c + LW_CPU_COLUMNS <= n; c += LW_CPU_COLUMNS)
        K(strip)
    (PIECES, LW_CPU_COLUMNS, LOCAL, job, row0, row1, job->codes + column + c, job->top_h + c * LW_VEC_BYTES,
     job->top_i + c * LW_VEC_BYTES, corner,
     LOCAL ? job->maxima + ((column + c) >> job->block_shift) * LW_VEC_BYTES : NULL, active);
    for (; c < n; c++)
        K(strip)
    (PIECES, 1, LOCAL, job, row0, row1, job->codes + column + c, job->top_h + c * LW_VEC_BYTES,
     job->top_i + c * LW_VEC_BYTES, corner,
     LOCAL ? job->maxima + ((column + c) >> job->block_shift) * LW_VEC_BYTES : NULL, active);
}

#define STRIPS(name, PIECES, LOCAL)                                                                          \
    static __attribute__((noinline)) void name(const lw_cpu_score_job *job, int32_t row0, int32_t row1,      \
                                               int64_t column, int32_t n, lw_vec *corner, int32_t *active)   \
    {                                                                                                        \
        K(strips)(PIECES, LOCAL, job, row0, row1, column, n, corner, active);                                \
    }
STRIPS(K(strips_local), 1, 1)
STRIPS(K(strips_local_2), 2, 1)
STRIPS(K(strips_ends), 1, 0)
STRIPS(K(strips_ends_2), 2, 0)
#undef STRIPS

static void K(score)(const lw_cpu_score_job *job)
{
    int32_t tiles = (job->rows + job->tile_rows - 1) / job->tile_rows;
    const bool two = job->gaps.pieces == 2;
    void (*strips)(const lw_cpu_score_job *, int32_t, int32_t, int64_t, int32_t, lw_vec *, int32_t *) =
        job->mode == LW_LOCAL ? two ? K(strips_local_2) : K(strips_local)
        : two ? K(strips_ends_2)
                              : K(strips_ends);
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
            int64_t border = job->zero;
            if (job->mode == LW_GLOBAL)
                border -= lw_cpu_border_cost(&job->gaps, column + c);
            lw_store(job->top_h + c * LW_VEC_BYTES, V(set1)((uint32_t)border));
            for (int p = 0; p < job->gaps.pieces; p++)
                lw_store(job->top_i + ((size_t)p * (LW_CPU_CHUNK + 1) + (size_t)c) * LW_VEC_BYTES,
                         V(set1)((uint32_t)border));
        }
        for (int32_t t = 0; t < tiles; t++) {
            int32_t row0 = t * job->tile_rows,
                    row1 = job->rows - row0 < job->tile_rows ? job->rows : row0 + job->tile_rows;
            lw_vec corner = lw_load(job->top_h);
            /* the next tile's corner: this tile's last row at the column before the chunk */
            lw_vec left = lw_load(job->h + (size_t)(row1 - 1) * LW_VEC_BYTES);
            lw_store(job->top_h, job->mode == LW_LOCAL ? V(add)(left, V(set1)(job->zero - TOP)) : left);
            strips(job, row0, row1, column, n, &corner, &job->active[2 * t]);
        }
        if (job->mode == LW_SEMIGLOBAL)
            for (int32_t c = 0; c < n; c++) {
                uint8_t *maximum = job->maxima + ((column + c) >> job->block_shift) * LW_VEC_BYTES;
                lw_store(maximum, V(max)(lw_load(maximum), lw_load(job->top_h + (c + 1) * LW_VEC_BYTES)));
            }
    }
}

#undef TOP
