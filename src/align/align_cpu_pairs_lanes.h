/* align_cpu_pairs_lanes.h - pairs of sequences: ends, directions and checkpoints, for lanes of LANE_BITS bits.
 * A part of align_cpu_lanes.h. */

/* H on the left border, just above row `row` (row 0 is the corner). */
static uint32_t K(left_border)(const lw_cpu_pairs_job *job, int64_t row)
{
    if (job->mode == LW_LOCAL || row == 0)
        return job->zero;
    return (uint32_t)(job->zero - (job->border_open + row * job->border_extend));
}

/* H on the upper border at matrix column j. */
static uint32_t K(upper_border)(const lw_cpu_pairs_job *job, int64_t j)
{
    if (job->mode != LW_GLOBAL || j == 0)
        return job->zero;
    return (uint32_t)(job->zero - (job->border_open + j * job->border_extend));
}

static void K(pairs_begin)(const lw_cpu_pairs_job *job)
{
    uint8_t *h = job->state, *d = h + (size_t)job->rows * LW_VEC_BYTES,
            *rest = d + (size_t)job->rows * LW_VEC_BYTES;
    for (int32_t i = 0; i < job->rows; i++) {
        lw_vec border = V(set1)(K(left_border)(job, (int64_t)i + 1));
        lw_store(h + (size_t)i * LW_VEC_BYTES, border);
        lw_store(d + (size_t)i * LW_VEC_BYTES, border);
    }
    for (int k = 0; k < 3; k++)
        lw_store(rest + k * LW_VEC_BYTES, V(set1)(job->zero));
}

/* Moves every lane up by one and puts `first` into lane 0. */
LW_SIMD lw_vec K(shift_in)(lw_vec v, uint32_t first)
{
    LANE_T lane[K(lanes) + 1] __attribute__((aligned(LW_CPU_ALIGN)));
    LANE_T moved[K(lanes)] __attribute__((aligned(LW_CPU_ALIGN)));
    lw_store(lane, v);
    memcpy(moved + 1, lane, LW_VEC_BYTES - sizeof(LANE_T));
    moved[0] = (LANE_T)first;
    return lw_load(moved);
}

/* Wave form, step `lane`: this lane's band begins with the left border. */
static void K(begin_lane)(const lw_cpu_pairs_job *job, int lane)
{
    LANE_T *h = (LANE_T *)job->state, *d = h + (size_t)job->rows * K(lanes),
           *top = d + (size_t)job->rows * K(lanes) + 2 * K(lanes);
    int64_t row = (int64_t)lane * job->rows;
    for (int32_t i = 0; i < job->rows; i++)
        h[(size_t)i * K(lanes) + lane] = d[(size_t)i * K(lanes) + lane] =
            (LANE_T)K(left_border)(job, row + i + 1);
    top[lane] = (LANE_T)K(left_border)(job, row);
}

LW_SIMD void K(steps)(const int SCORES, const int BEST, const int DIRECTIONS, const lw_cpu_pairs_job *job,
                      int64_t first, int64_t last)
{
    enum { CELLS = LANE_BITS / 4 }; /* cells whose directions share a lane */
    enum { PITCH = K(lanes) < 16 ? 16 : K(lanes) };
    const lw_vec zero = V(set1)(job->zero), open_extend = V(set1)(job->open_extend),
                 extend = V(set1)(job->extend), one = V(set1)(1);
    const lw_vec other = V(set1)(job->other), base = V(set1)(job->base);
    const lw_vec floor = job->mode == LW_LOCAL ? zero : V(set1)(0);
    const size_t rows_bytes = (size_t)job->rows * LW_VEC_BYTES;
    uint8_t *h = job->state, *d = h + rows_bytes, *bottom = d + rows_bytes;
    uint8_t *directions = job->directions;
    const int query_bytes = SCORES == SCORES_TABLE ? LW_VEC_BYTES : K(lanes);
    for (int64_t step = first; step < last; step++) {
        const uint8_t *target = job->target + (size_t)(step - first) * (size_t)query_bytes;
        if (job->wave && step < K(lanes))
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
        uint32_t border = K(upper_border)(job, step + 1);
        lw_vec top = V(set1)(border), gap = top, diagonal = lw_load(bottom + 2 * LW_VEC_BYTES);
        if (job->wave) {
            top = K(shift_in)(lw_load(bottom), border);
            gap = K(shift_in)(lw_load(bottom + LW_VEC_BYTES), border);
        }
        lw_store(bottom + 2 * LW_VEC_BYTES, top);
        lw_vec best = V(set1)(0), best_row = best, row = best, cells = best, above = top;
        for (size_t at = 0; at < rows_bytes;) {
#pragma GCC unroll 8
            for (int k = 0; k < CELLS; k++, at += LW_VEC_BYTES) {
                lw_vec deletion = lw_load(d + at), matched;
                if (SCORES == SCORES_TABLE) {
                    lw_vec s = lw_v8_lookup(job->table, lw_or(lw_load(job->query + at), column), other);
                    matched = V(add)(V(add)(diagonal, s), base);
                } else if (SCORES == SCORES_PROFILE) {
                    matched = V(add)(diagonal, S(load8)(scores));
                    scores += PITCH;
                } else {
                    matched = V(add)(diagonal, lw_load(job->gathered + at));
                }
                lw_vec gapped = V(sub)(V(max)(deletion, gap), open_extend);
                lw_vec value = V(max)(V(max)(matched, floor), gapped);
                diagonal = lw_load(h + at);
                lw_vec deletion_extended = V(sub)(deletion, extend), gap_extended = V(sub)(gap, extend);
                lw_vec next_deletion = V(max)(deletion_extended, value),
                       next_gap = V(max)(gap_extended, value);
                if (DIRECTIONS) {
                    cells =
                        V(or_if_equal)(cells, value, matched, V(set1)((uint32_t)LW_CPU_DIAGONAL << 4 * k));
                    cells = V(or_if_equal)(cells, value, V(sub)(deletion, open_extend),
                                           V(set1)((uint32_t)LW_CPU_DELETION << 4 * k));
                    cells = V(or_if_equal)(cells, next_deletion, deletion_extended,
                                           V(set1)((uint32_t)LW_CPU_DELETION_EXTENDS << 4 * k));
                    cells = V(or_if_equal)(cells, next_gap, gap_extended,
                                           V(set1)((uint32_t)LW_CPU_INSERTION_EXTENDS << 4 * k));
                }
                if (BEST) {
                    lw_vec higher = V(max)(best, lw_and(value, lw_load(job->may_end + at)));
                    best_row = V(if_equal)(higher, best, best_row, row);
                    best = higher;
                    row = V(add)(row, one);
                }
                gap = next_gap;
                above = value;
                lw_store(h + at, value);
                lw_store(d + at, next_deletion);
            }
            if (DIRECTIONS) {
                lw_store(directions, cells);
                directions += LW_VEC_BYTES;
                cells = V(set1)(0);
            }
        }
        lw_store(bottom, above);
        lw_store(bottom + LW_VEC_BYTES, gap);
        if (BEST) {
            lw_store(job->best + (step - first) * LW_VEC_BYTES, best);
            lw_store(job->best_row + (step - first) * LW_VEC_BYTES, best_row);
        }
    }
}

LW_SIMD void K(pairs_by)(const int SCORES, const lw_cpu_pairs_job *job, int64_t first, int64_t last)
{
    if (job->directions)
        K(steps)(SCORES, 0, 1, job, first, last);
    else if (job->best)
        K(steps)(SCORES, 1, 0, job, first, last);
    else /* only the state: on the way to a checkpoint */
        K(steps)(SCORES, 0, 0, job, first, last);
}

static void K(pairs)(const lw_cpu_pairs_job *job, int64_t first, int64_t last)
{
    if (job->profile)
        K(pairs_by)(SCORES_PROFILE, job, first, last);
    else if (job->matrix)
        K(pairs_by)(SCORES_GATHERED, job, first, last);
    else
        K(pairs_by)(SCORES_TABLE, job, first, last);
}
