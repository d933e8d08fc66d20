/* align_cpu_pairs_lanes.h - pairs of sequences: ends, directions and checkpoints, for lanes of LANE_BITS
 * bits. A part of align_cpu_lanes.h. */

/* H on the left border, just above row `row` (row 0 is the corner). */
static uint32_t K(left_border)(const lw_cpu_pairs_job *job, int64_t row)
{
    return job->mode == LW_LOCAL ? job->zero : (uint32_t)(job->zero - lw_cpu_border_cost(&job->gaps, row));
}

/* H on the upper border at matrix column j. */
static uint32_t K(upper_border)(const lw_cpu_pairs_job *job, int64_t j)
{
    return job->mode != LW_GLOBAL ? job->zero : (uint32_t)(job->zero - lw_cpu_border_cost(&job->gaps, j));
}

static void K(pairs_begin)(const lw_cpu_pairs_job *job)
{
    const size_t rows_bytes = (size_t)job->rows * LW_VEC_BYTES;
    const int pieces = job->gaps.pieces;
    uint8_t *rest = job->state + (size_t)(1 + pieces) * rows_bytes;
    for (int32_t i = 0; i < job->rows; i++) { /* H, and each D */
        lw_vec border = V(set1)(K(left_border)(job, (int64_t)i + 1));
        for (int k = 0; k <= pieces; k++)
            lw_store(job->state + (size_t)k * rows_bytes + (size_t)i * LW_VEC_BYTES, border);
    }
    for (int k = 0; k < 2 + pieces; k++)
        lw_store(rest + k * LW_VEC_BYTES, V(set1)(job->zero));
}

/* Moves every lane up by one, the last to the front, and puts `first` into `first_lane`. */
LW_SIMD lw_vec K(shift_in)(lw_vec v, int first_lane, uint32_t first)
{
    LANE_T lane[K(lanes) + 1] __attribute__((aligned(LW_CPU_ALIGN)));
    LANE_T moved[K(lanes)] __attribute__((aligned(LW_CPU_ALIGN)));
    lw_store(lane, v);
    memcpy(moved + 1, lane, LW_VEC_BYTES - sizeof(LANE_T));
    moved[0] = lane[K(lanes) - 1];
    moved[first_lane] = (LANE_T)first;
    return lw_load(moved);
}

/* Wave form, step `lane`: this lane's strip begins with the left border. */
static void K(begin_lane)(const lw_cpu_pairs_job *job, int lane)
{
    const size_t cells = (size_t)job->rows * K(lanes);
    LANE_T *h = (LANE_T *)job->state, *top = h + (size_t)(1 + job->gaps.pieces) * cells + K(lanes);
    int64_t row = (int64_t)lane * job->rows;
    for (int32_t i = 0; i < job->rows; i++) {
        const LANE_T border = (LANE_T)K(left_border)(job, row + i + 1);
        for (int k = 0; k <= job->gaps.pieces; k++) /* H, and each D */
            h[(size_t)k * cells + (size_t)i * K(lanes) + (size_t)lane] = border;
    }
    top[lane] = (LANE_T)K(left_border)(job, row);
}

/* A piece's penalties, and what it has between cells: D from the column before and I from the row above. */
typedef struct K(piece) {
    lw_vec open_extend, extend, deletion, gap;
} K(piece);

/* The direction bits of a piece: whether H comes from its deletion (or, for the first of two, from its
 * insertion), and whether its gaps extend. `from` is the first bit of the cell. */
LW_SIMD lw_vec K(piece_bits)(lw_vec cells, const K(piece) * p, lw_vec value, uint32_t from, int second,
                             int only)
{
    const uint32_t deletion = from * (second ? LW_CPU_SECOND_DELETION : LW_CPU_DELETION);
    const uint32_t extends = second ? from << LW_CPU_SECOND_PIECE : from;
    const lw_vec deletion_extended = V(sub)(p->deletion, p->extend), gap_extended = V(sub)(p->gap, p->extend);
    cells = V(or_if_equal)(cells, value, V(sub)(p->deletion, p->open_extend), V(set1)(deletion));
    if (!second && !only)
        cells =
            V(or_if_equal)(cells, value, V(sub)(p->gap, p->open_extend), V(set1)(from * LW_CPU_INSERTION));
    cells = V(or_if_equal)(cells, V(max)(deletion_extended, value), deletion_extended,
                           V(set1)(extends * LW_CPU_DELETION_EXTENDS));
    return V(or_if_equal)(cells, V(max)(gap_extended, value), gap_extended,
                          V(set1)(extends * LW_CPU_INSERTION_EXTENDS));
}

LW_SIMD void K(steps)(const int PIECES, const int SCORES, const int BEST, const int DIRECTIONS,
                      const lw_cpu_pairs_job *job, int64_t first, int64_t last)
{
    enum { PITCH = K(lanes) < 16 ? 16 : K(lanes) };
    const int cell_bits = 4 * PIECES, cells_a_lane = LANE_BITS / cell_bits;
    const lw_vec zero = V(set1)(job->zero), one = V(set1)(1);
    const lw_vec other = V(set1)(job->other), base = V(set1)(job->base);
    const lw_vec floor = V(set1)(job->floor);
    const size_t rows_bytes = (size_t)job->rows * LW_VEC_BYTES;
    uint8_t *h = job->state, *d = h + rows_bytes, *bottom = d + PIECES * rows_bytes;
    uint8_t *directions = job->directions;
    const int query_bytes = SCORES == SCORES_TABLE ? LW_VEC_BYTES : K(lanes);
    K(piece) piece[2];
    for (int p = 0; p < PIECES; p++)
        piece[p] = (K(piece)){.open_extend = V(set1)(job->gaps.open_extend[p]),
                              .extend = V(set1)(job->gaps.extend[p])};
    for (int64_t step = first; step < last; step++) {
        const uint8_t *target = job->target + (size_t)(step - first) * (size_t)query_bytes;
        if (job->wave && !job->banded && step < K(lanes))
            K(begin_lane)(job, (int)step);
        lw_vec column = SCORES == SCORES_TABLE ? lw_load(target) : zero;
        const uint8_t *scores = job->gathered;
        if (SCORES == SCORES_PROFILE) {
            collect_scores(job, target, K(lanes), PITCH);
        } else if (SCORES == SCORES_GATHERED) {
            LANE_T *out = (LANE_T *)job->gathered;
            const uint8_t *query = job->query;
            for (size_t k = 0; k < (size_t)job->rows * K(lanes); k += K(lanes))
                for (int l = 0; l < K(lanes); l++)
                    out[k + (size_t)l] =
                        (LANE_T)job->matrix[target[l] * LW_MAX_LETTERS + query[k + (size_t)l]];
        }
        uint32_t border = job->below_border ? K(upper_border)(job, step + 1) : job->floor;
        lw_vec top = V(set1)(border), diagonal = lw_load(bottom + LW_VEC_BYTES);
        for (int p = 0; p < PIECES; p++)
            piece[p].gap =
                job->wave ? K(shift_in)(lw_load(bottom + (2 + p) * LW_VEC_BYTES), job->first_lane, border)
                          : top;
        if (job->wave)
            top = K(shift_in)(lw_load(bottom), job->first_lane, border);
        lw_store(bottom + LW_VEC_BYTES, top);
        lw_vec best = V(set1)(0), best_row = best, row = best, cells = best, above = top;
        for (size_t at = 0; at < rows_bytes;) {
#pragma GCC unroll 8
            for (int k = 0; k < cells_a_lane; k++, at += LW_VEC_BYTES) {
                lw_vec matched;
                if (SCORES == SCORES_TABLE) {
                    lw_vec s = lw_v8_lookup(job->table, lw_or(lw_load(job->query + at), column), other);
                    matched = V(add)(V(add)(diagonal, s), base);
                } else if (SCORES == SCORES_PROFILE) {
                    matched = V(add)(diagonal, S(load8)(scores));
                    scores += PITCH;
                } else {
                    matched = V(add)(diagonal, lw_load(job->gathered + at));
                }
                lw_vec value = V(max)(matched, floor);
                for (int p = 0; p < PIECES; p++) {
                    piece[p].deletion = lw_load(d + (size_t)p * rows_bytes + at);
                    value =
                        V(max)(value, V(sub)(V(max)(piece[p].deletion, piece[p].gap), piece[p].open_extend));
                }
                diagonal = lw_load(h + at);
                if (DIRECTIONS) {
                    const uint32_t from = (uint32_t)1 << cell_bits * k;
                    cells = V(or_if_equal)(cells, value, matched, V(set1)(from * LW_CPU_DIAGONAL));
                    for (int p = 0; p < PIECES; p++)
                        cells = K(piece_bits)(cells, &piece[p], value, from, p, PIECES == 1);
                }
                if (BEST) {
                    lw_vec higher = V(max)(best, lw_and(value, lw_load(job->may_end + at)));
                    best_row = V(if_equal)(higher, best, best_row, row);
                    best = higher;
                    row = V(add)(row, one);
                }
                above = value;
                lw_store(h + at, value);
                for (int p = 0; p < PIECES; p++) {
                    lw_store(d + (size_t)p * rows_bytes + at,
                             V(max)(V(sub)(piece[p].deletion, piece[p].extend), value));
                    piece[p].gap = V(max)(V(sub)(piece[p].gap, piece[p].extend), value);
                }
            }
            if (DIRECTIONS) {
                lw_store(directions, cells);
                directions += LW_VEC_BYTES;
                cells = V(set1)(0);
            }
        }
        lw_store(bottom, above);
        for (int p = 0; p < PIECES; p++)
            lw_store(bottom + (2 + p) * LW_VEC_BYTES, piece[p].gap);
        if (BEST) {
            lw_store(job->best + (step - first) * LW_VEC_BYTES, best);
            lw_store(job->best_row + (step - first) * LW_VEC_BYTES, best_row);
        }
    }
}

#ifdef LW_ONE_COPY
LW_SIMD void K(pairs_by)(const int PIECES, const lw_cpu_pairs_job *job, int64_t first, int64_t last)
{
    const int scores = job->profile ? SCORES_PROFILE : job->matrix ? SCORES_GATHERED : SCORES_TABLE;
    K(steps)(PIECES, scores, !job->directions && job->best, job->directions != NULL, job, first, last);
}
#else
LW_SIMD void K(pairs_by)(const int PIECES, const int SCORES, const lw_cpu_pairs_job *job, int64_t first,
                         int64_t last)
{
    if (job->directions)
        K(steps)(PIECES, SCORES, 0, 1, job, first, last);
    else if (job->best)
        K(steps)(PIECES, SCORES, 1, 0, job, first, last);
    else /* only the state: on the way to a checkpoint */
        K(steps)(PIECES, SCORES, 0, 0, job, first, last);
}
#endif

/* One piece and two apart, so that the compiler gives each the registers. */
static __attribute__((noinline)) void K(pairs_one_piece)(const lw_cpu_pairs_job *job, int64_t first,
                                                         int64_t last)
{
#ifdef LW_ONE_COPY
    K(pairs_by)(1, job, first, last);
#else
    if (job->profile)
        K(pairs_by)(1, SCORES_PROFILE, job, first, last);
    else if (job->matrix)
        K(pairs_by)(1, SCORES_GATHERED, job, first, last);
    else
        K(pairs_by)(1, SCORES_TABLE, job, first, last);
#endif
}

static __attribute__((noinline)) void K(pairs_two_pieces)(const lw_cpu_pairs_job *job, int64_t first,
                                                          int64_t last)
{
#ifdef LW_ONE_COPY
    K(pairs_by)(2, job, first, last);
#else
    if (job->profile)
        K(pairs_by)(2, SCORES_PROFILE, job, first, last);
    else if (job->matrix)
        K(pairs_by)(2, SCORES_GATHERED, job, first, last);
    else
        K(pairs_by)(2, SCORES_TABLE, job, first, last);
#endif
}

static void K(pairs)(const lw_cpu_pairs_job *job, int64_t first, int64_t last)
{
    if (job->gaps.pieces == 2)
        K(pairs_two_pieces)(job, first, last);
    else
        K(pairs_one_piece)(job, first, last);
}
