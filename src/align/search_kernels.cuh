/* search_kernels.cuh - the score kernel of the database search, one source for every arithmetic.
 *
 * A group of lanes holds the columns of a query, LW_SW_COLUMNS to a lane, in registers; the letters of the
 * database stream through it, one row a step, each lane one row behind its left neighbour (a systolic array).
 * Pairs of subjects follow each other without a pause: one separator row resets the state of a lane and hands
 * its maximum to the right. With o = open + extend and everything at least 0:
 *
 *   H = max(H(diagonal) + s, E, F, 0)    E' = max(E - extend, H - o)    F' = max(F - extend, H - o)
 *
 * What is kept of H is G = H - o, which E and F need anyway; so the profile holds s + o. In the
 * half-precision arithmetics the two additions (G + (s + o), H - o) run on the FMA pipe and the maxima on the
 * ALU: 3 ALU operations a word, and half a one in every `EVERY`-th row for the running maximum.
 *
 * Bound of a maximum kept in every k-th row of a lane: below the best cell, F of the same column is H - o one
 * row later and loses one extension a row, so the value kept is at least best - o - (k - 2) * extend. Rows of
 * the slow path, which all separator rows take, are all kept, and F reaches the separator row. */
#ifndef LW_SEARCH_KERNELS_CUH
#define LW_SEARCH_KERNELS_CUH

#include "align/search_kernels.h"
#include "common/dpx.cuh"
#include "common/warp.cuh"

/* Penalties in the form that the arithmetic wants. */
typedef struct lw_sw_gap {
    uint32_t open;   /* added to H: -(open + extend) */
    uint32_t extend; /* added to E and F */
    uint32_t drop;   /* added to F in a separator row: below 0 whatever F was */
} lw_sw_gap;

/* ---- the operations of each arithmetic
 * ---------------------------------------------------------------------- */

/* F - 60000 is below every threshold of halves; F >= 0 in 16 bits, so F - 32768 does not wrap; in 32
 * bits the driver keeps scores below 2^30. */
static const uint32_t LW_SW_DROP_REAL = LW_SW_NEVER, LW_SW_DROP_S16 = 0x80008000u,
                      LW_SW_DROP_S32 = 0xc0000000u;

template <int A> LW_DEVICE lw_sw_gap lw_sw_gaps(int32_t open_extend, int32_t extend)
{
    if (A == LW_SW_S32)
        return {(uint32_t)-open_extend, (uint32_t)-extend, LW_SW_DROP_S32};
    if (A == LW_SW_S16)
        return {lw_pack2(-open_extend, -open_extend), lw_pack2(-extend, -extend), LW_SW_DROP_S16};
    uint32_t open = lw_half_from_int(-open_extend) * 0x10001u, ext = lw_half_from_int(-extend) * 0x10001u;
    return A == LW_SW_HALF ? lw_sw_gap{open, lw_pack2(-extend, -extend), LW_SW_DROP_S16}
                           : lw_sw_gap{open, ext, LW_SW_DROP_REAL};
}

/* Mask of 0xffff halves -> what keeps or clears a half in lw_sw_masked(). */
template <int A> LW_DEVICE uint32_t lw_sw_mask(uint32_t halves)
{
    return A == LW_SW_HALF || A == LW_SW_REAL ? halves & LW_HALF_ONES : halves;
}

/* value where the mask keeps, else 0; plus add, which is 0 where the mask keeps. */
template <int A> LW_DEVICE uint32_t lw_sw_masked(uint32_t value, uint32_t mask, uint32_t add)
{
    return A == LW_SW_HALF || A == LW_SW_REAL ? lw_maskaddh2(value, mask, add) : (value & mask) | add;
}

/* value * keep + add, in the slow path. */
template <int A> LW_DEVICE uint32_t lw_sw_kept_sum(uint32_t value, uint32_t mask, uint32_t add)
{
    if (A == LW_SW_HALF || A == LW_SW_REAL)
        return lw_maskaddh2(value, mask, add);
    return A == LW_SW_S16 ? lw_add2(value & mask, add) : (value & mask) + add;
}

template <int A> LW_DEVICE uint32_t lw_sw_sum(uint32_t a, uint32_t b)
{
    return A == LW_SW_S32 ? a + b : A == LW_SW_S16 ? lw_add2(a, b) : lw_addh2(a, b);
}

/* max(t, e, f, 0). REAL: its t is at least 0 already. */
template <int A> LW_DEVICE uint32_t lw_sw_cell(uint32_t t, uint32_t e, uint32_t f)
{
    if (A == LW_SW_S32)
        return (uint32_t)lw_max3_relu((int32_t)t, (int32_t)e, (int32_t)f);
    if (A == LW_SW_REAL)
        return lw_maxh2(lw_maxh2(t, e), f);
    return lw_max3_relu2(t, e, f);
}

/* max(x - extend, g), floored at 0 where integers stand for halves. */
template <int A> LW_DEVICE uint32_t lw_sw_extend(uint32_t x, uint32_t extend, uint32_t g)
{
    if (A == LW_SW_S32)
        return (uint32_t)lw_addmax((int32_t)x, (int32_t)extend, (int32_t)g);
    if (A == LW_SW_REAL)
        return lw_maxh2(lw_addh2(x, extend), g);
    return lw_addmax_relu2(x, extend, g);
}

template <int A> LW_DEVICE uint32_t lw_sw_max(uint32_t a, uint32_t b)
{
    return A == LW_SW_S32    ? (uint32_t)lw_max_host((int32_t)a, (int32_t)b)
           : A == LW_SW_REAL ? lw_maxh2(a, b)
                             : lw_max2(a, b);
}

template <int A> LW_DEVICE uint32_t lw_sw_max3(uint32_t a, uint32_t b, uint32_t c)
{
    if (A == LW_SW_S32)
        return (uint32_t)lw_max3((int32_t)a, (int32_t)b, (int32_t)c);
    return A == LW_SW_REAL ? lw_maxh2(lw_maxh2(a, b), c) : lw_max3_2(a, b, c);
}

/* Diagonal + profile. word i of a quad holds, in TWO_QUERIES, column i of both queries; in TWO_SUBJECTS
 * columns 2i and 2i + 1 of the query, against the letter of the first subject (a) and of the second (b). */
template <int A, int FORM, bool FLOOR>
LW_DEVICE uint32_t lw_sw_diagonal(uint32_t d, const uint32_t *a, const uint32_t *b, int i, uint32_t open)
{
    if (A == LW_SW_S32) { /* s alone, as s + o may pass 16 bits */
        uint32_t s = (uint32_t)(i & 1 ? lw_high2(a[i / 2]) : lw_low2(a[i / 2]));
        return FLOOR ? (uint32_t)lw_addmax((int32_t)d, (int32_t)s, 0) : d + s - open;
    }
    if (FORM == LW_SW_TWO_QUERIES) {
        return FLOOR ? lw_maskadd_reluh2(d, LW_HALF_ONES, a[i]) : lw_sw_sum<A>(d, a[i]);
    }
    if (A == LW_SW_S16)
        return lw_add2(d, i & 1 ? lw_highs2(a[i / 2], b[i / 2]) : lw_lows2(a[i / 2], b[i / 2]));
    uint32_t x = i & 1 ? lw_twice_high2(a[i / 2]) : lw_twice_low2(a[i / 2]);
    uint32_t y = i & 1 ? lw_twice_high2(b[i / 2]) : lw_twice_low2(b[i / 2]);
    uint32_t t = lw_maskaddh2(x, LW_HALF_ONE_LOW, d);
    return FLOOR ? lw_maskadd_reluh2(y, LW_HALF_ONE_HIGH, t) : lw_maskaddh2(y, LW_HALF_ONE_HIGH, t);
}

/* ---- one row of one lane
 * ------------------------------------------------------------------------------------- */

/* State of a lane between rows. */
template <int C> struct lw_sw_state {
    uint32_t g[C]; /* H - o of the row above; gapless: H */
    uint32_t f[C];
    uint32_t diagonal; /* G of the column to the left, in the row above */
    uint32_t e;        /* leaves the last column */
    uint32_t best;
};

/* MAX: keep the maximum in this row. SLOW: keep and drop may be those of a separator row. */
template <int A, int FORM, bool GAPLESS, bool MAX, bool SLOW, int C>
LW_DEVICE void lw_sw_row(lw_sw_state<C> &s, const uint4 *first, const uint4 *second, uint32_t e,
                         lw_sw_gap gap, uint32_t keep, uint32_t drop)
{
    constexpr int W = LW_SW_QUAD_COLUMNS(FORM, A);
    uint32_t d = s.diagonal, previous = 0;
#pragma unroll
    for (int quad = 0; quad < C / W; quad++) {
        uint4 qa = first[quad * 32], qb = FORM == LW_SW_TWO_SUBJECTS ? second[quad * 32] : qa;
        uint32_t a[4] = {qa.x, qa.y, qa.z, qa.w}, b[4] = {qb.x, qb.y, qb.z, qb.w};
#pragma unroll
        for (int i = 0; i < W; i++) {
            int j = quad * W + i;
            uint32_t h = lw_sw_diagonal < A, FORM, GAPLESS || A == LW_SW_REAL > (d, a, b, i, gap.open);
            d = s.g[j];
            if (GAPLESS) {
                s.g[j] = SLOW ? lw_sw_masked<A>(h, keep, 0) : h;
            } else {
                h = lw_sw_cell<A>(h, e, s.f[j]);
                uint32_t g = SLOW ? lw_sw_kept_sum<A>(h, keep, gap.open) : lw_sw_sum<A>(h, gap.open);
                e = lw_sw_extend<A>(e, gap.extend, g);
                s.f[j] = lw_sw_extend<A>(s.f[j], SLOW ? drop : gap.extend, g);
                s.g[j] = g;
            }
            if (MAX && (j & 1))
                s.best = lw_sw_max3<A>(previous, h, s.best); /* this order: fewer register-bank conflicts */
            previous = h;
        }
    }
    s.e = e;
}

/* ---- the kernel
 * ------------------------------------------------------------------------------------------------ */

/* Two letters of a row, or one. The value is opaque, so that it stays in a register as a number. */
template <int FORM> LW_DEVICE uint32_t lw_sw_letters(const uint8_t *row)
{
    return FORM == LW_SW_TWO_SUBJECTS ? lw_opaque(*(const uint16_t *)row) : lw_opaque(*row);
}

/* What a lane needs at separators only: its subjects, and the maxima it hands to the right, one for each row
 * of a step. */
typedef struct lw_sw_tally {
    uint32_t border; /* index of row 0 */
    int subject, first, end;
    uint32_t best[2];
} lw_sw_tally;

/* What the previous pass left in row `row` of a segment. Nothing may be done with it at once: the load takes
 * as long as four rows. */
template <int FORM> LW_DEVICE uint2 lw_sw_fetch(const lw_sw_job &job, const lw_sw_tally *tally, int row)
{
    return job.border[tally->border + (FORM == LW_SW_TWO_SUBJECTS ? 1 : 2) * (uint32_t)row];
}

/* H or G, and what comes by a gap, that lie left of a row: where a query begins with this pass, `start` and
 * nothing. */
LW_DEVICE uint2 lw_sw_border(const lw_sw_job &job, uint32_t start, uint2 fetched)
{
    return {(fetched.x & job.border_keep) | (start & ~job.border_keep), fetched.y & job.border_keep};
}

/* What a group of lanes works through next. */
typedef struct lw_sw_work {
    lw_sw_segment segment;
    int half; /* TWO_QUERIES: which subject of the pairs */
    bool valid;
} lw_sw_work;

/* Takes the next item, a segment for each group of the warp. false: none is left. */
template <int FORM>
LW_DEVICE bool lw_sw_take(const lw_sw_job &job, int n_segments, int n_groups, int g_index, lw_sw_work *w)
{
    int item = 0;
    if (lw_lane() == 0)
        item = atomicAdd(job.counter, 1);
    item = (int)lw_from_lane(LW_ALL_LANES, (uint32_t)item, 0, LW_WARP);
    if (item >= (n_segments + n_groups - 1) / n_groups)
        return false;
    int index = item * n_groups + g_index;
    w->valid = g_index < n_groups && index < n_segments;
    if (!w->valid)
        index = 0;
    w->half = 0;
    if (FORM == LW_SW_TWO_QUERIES) {
        w->half = index & 1;
        index >>= 1;
    }
    if (job.segments) {
        w->segment = job.segments[index];
    } else {
        int k = job.chosen ? job.chosen[index] : index, pair = job.list[k];
        w->segment.begin = job.first_row[pair];
        w->segment.rows = (int)(job.first_row[pair + 1] - w->segment.begin) - 1;
        w->segment.subject = k;
        w->segment.n = 1;
    }
    return true;
}

/* A subject ends: `best` in this lane, `best_left` in those to the left. Whoever has the query's last column
 * writes the maximum; returns it for the lane to the right. */
template <int A, int FORM>
LW_DEVICE uint32_t lw_sw_finish(const lw_sw_job &job, int lane, int g_lane, int half, bool reads, bool writes,
                                lw_sw_tally *tally, uint32_t best, uint32_t best_left)
{
    constexpr bool two = FORM == LW_SW_TWO_SUBJECTS;
    const int subject = tally->subject++;
    const bool counts = subject < tally->end;
    const int at = two ? subject : 2 * subject + half;
    if (counts && g_lane == 0 && reads)
        best_left |= job.carry[at] & job.border_keep;
    best = lw_sw_max<A>(best, best_left);
    if (counts) {
        const lw_sw_lane *me = &job.lanes[lane];
        const int score = two ? 2 * subject : at;
        if (me->low >= 0)
            job.scores[me->low + score] = A == LW_SW_S32 ? (int32_t)best : lw_low2(best);
        if (A != LW_SW_S32 && me->high >= 0)
            job.scores[me->high + score] = lw_high2(best);
        if (writes && g_lane == job.group - 1)
            job.carry[at] = best;
    }
    return best;
}

template <int A, int FORM, int EVERY, bool GAPLESS>
__global__ void __launch_bounds__(LW_SW_THREADS, 2) lw_sw_scores(const lw_sw_job *jobs)
{
#if LW_DPX_DEVICE || !LW_ON_DEVICE /* tests run the kernel on the host */
    constexpr bool here = true;
#else
    constexpr bool here = A == LW_SW_S32 || (A == LW_SW_REAL && LW_HALF2_DEVICE);
#endif
    if constexpr (here) {
        constexpr int C = LW_SW_COLUMNS;
        constexpr bool two = FORM == LW_SW_TWO_SUBJECTS;
        LW_DYNAMIC_SHARED(uint4, profile);
        __shared__ lw_sw_job job;
        /* Four rows of what lies left of a lane's first column where nothing comes from the lane to the left:
         * by the halves in which the lane is a query's first, then by warp and group what the previous pass
         * left. And four rows of what leaves the last lane of a group. */
        __shared__ uint2 lefts[4 + LW_SW_WARPS * 8][4], rights[LW_SW_WARPS * 8][4];
        /* an entry before each warp's 32, which its first lane reads and masks away */
        __shared__ lw_sw_tally tallies[LW_SW_WARPS * (1 + LW_WARP)];
        if (threadIdx.x == 0)
            job = jobs[blockIdx.y];
        __syncthreads();
        const int group = job.group, n_groups = LW_WARP / group;
        const int n_segments = *job.n_segments << (two ? 0 : 1);
        const int n_items = (n_segments + n_groups - 1) / n_groups;
        if ((int)blockIdx.x * LW_SW_WARPS >= n_items)
            return;
        const uint32_t letter_bytes = C * LW_WARP * 16 / LW_SW_QUAD_COLUMNS(FORM, A);
        for (uint32_t i = threadIdx.x; i < job.n_letters * letter_bytes / 16; i += LW_SW_THREADS)
            profile[i] = job.profile[i];
        __syncthreads();

        const int lane = lw_lane(), g_index = lane / group, g_lane = lane - g_index * group;
        const lw_sw_gap gap = lw_sw_gaps<A>(job.open_extend, job.extend);
        const uint32_t keep = lw_sw_mask<A>(job.lanes[lane].keep);
        const char *const mine = (const char *)(profile + lane);
        const uint32_t per_letter = lw_opaque(letter_bytes >> LW_SW_LETTER_SHIFT);
        const uint32_t start_g = GAPLESS ? 0 : gap.open;
        const bool reads = job.reads_border, writes = job.writes_border;
        const int my_group = (threadIdx.x / LW_WARP) * 8 + (g_index & 7);
        if (threadIdx.x < 16)
            lefts[threadIdx.x / 4][threadIdx.x & 3] = {
                start_g & ((threadIdx.x & 4 ? 0xffffu : 0) | (threadIdx.x & 8 ? 0xffff0000u : 0)), 0};
        __syncthreads();
        const uint32_t starts = ~job.lanes[lane].keep;
        const uint2 *const left =
            reads && g_lane == 0 ? lefts[4 + my_group] : lefts[(starts & 1) | (starts >> 30 & 2)];
        const bool leaves = writes && g_lane == group - 1;
        uint2 *const right = rights[my_group];
        lw_sw_tally *const tally = &tallies[1 + threadIdx.x + threadIdx.x / LW_WARP];
        if (lane == 0)
            tally[-1].best[0] = 0;
        for (;;) {
            lw_sw_work work;
            if (!lw_sw_take<FORM>(job, n_segments, n_groups, g_index, &work))
                break;
            const lw_sw_segment segment = work.segment;
            const bool valid = work.valid;
            const int half = work.half;
            const int last_row = segment.rows + 1; /* row 0 is the separator before, this the one after */
            const int steps = lw_reduce_max_xor(LW_ALL_LANES, valid ? segment.rows + 1 + group : 0, LW_WARP);
            tally->first = segment.subject;
            tally->end = valid ? segment.subject + segment.n : segment.subject;
            const uint8_t *rows = job.stream + ((int64_t)segment.begin - 1 - g_lane) * 2 + half;
            tally->border = two ? segment.begin - 1 : 2 * (segment.begin - 1) + (uint32_t)half;
            lw_sw_state<C> s;
#pragma unroll
            for (int j = 0; j < C; j++) {
                s.g[j] = start_g;
                s.f[j] = 0;
            }
            s.diagonal = start_g;
            s.e = s.best = 0;
            uint32_t next[4];
            uint2 fetched = {0, 0};
            if (reads && g_lane < 4 && g_lane <= last_row)
                fetched = lw_sw_fetch<FORM>(job, tally, g_lane);
#pragma unroll
            for (int r = 0; r < 4; r++)
                next[r] = lw_sw_letters<FORM>(rows + 2 * r);
            for (int t = 0; t < steps; t += 4) {
                uint32_t now[4];
                rows += 8;
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    now[r] = next[r];
                    next[r] = lw_sw_letters<FORM>(rows + 2 * r);
                }
                if (reads) {
                    /* four lanes bring the border of these four rows to the group's first lane, and fetch
                     * that of the next four */
                    if (g_lane < 4) {
                        lefts[4 + my_group][g_lane] = lw_sw_border(job, start_g, fetched);
                        if (t + 4 + g_lane <= last_row)
                            fetched = lw_sw_fetch<FORM>(job, tally, t + 4 + g_lane);
                    }
                    lw_warp_sync(LW_ALL_LANES);
                }
                const bool slow = ((now[0] | now[1] | now[2] | now[3]) & LW_SW_SEPARATOR) ||
                                  (unsigned)(g_lane - t) < 4u || (unsigned)(last_row + g_lane - t) < 4u;
                if (!lw_any(LW_ALL_LANES, slow)) {
#pragma unroll
                    for (int r = 0; r < 4; r++) {
                        const uint4 *a = (const uint4 *)(mine + (two ? now[r] & 0xff : now[r]) * per_letter);
                        const uint4 *b = two ? (const uint4 *)(mine + (now[r] >> 8) * per_letter) : a;
                        const uint2 l = left[r];
                        uint32_t g =
                            lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.g[C - 1], 1, LW_WARP), keep, l.x);
                        uint32_t e = GAPLESS ? 0
                                             : lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.e, 1, LW_WARP),
                                                               keep, l.y);
                        if (r % EVERY == (two ? 3 : 2) % EVERY)
                            lw_sw_row<A, FORM, GAPLESS, true, false>(s, a, b, e, gap, 0, 0);
                        else
                            lw_sw_row<A, FORM, GAPLESS, false, false>(s, a, b, e, gap, 0, 0);
                        s.diagonal = g;
                        if (leaves)
                            right[r] = {s.g[C - 1], s.e};
                    }
                } else {
                    uint32_t packed0 = now[0] | now[1] << 16, packed1 = now[2] | now[3] << 16;
#pragma unroll 1
                    for (int r = 0; r < 4; r++) {
                        uint32_t c = packed0 & 0xffffu;
                        packed0 = packed0 >> 16 | packed1 << 16;
                        packed1 >>= 16;
                        const bool separator =
                            (c & LW_SW_SEPARATOR) || t + r == g_lane || t + r == last_row + g_lane;
                        c &= 0xf8f8u;
                        const uint4 *a = (const uint4 *)(mine + (c & 0xff) * per_letter);
                        const uint4 *b = two ? (const uint4 *)(mine + (c >> 8) * per_letter) : a;
                        const uint2 l = left[r];
                        uint32_t g =
                            lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.g[C - 1], 1, LW_WARP), keep, l.x);
                        uint32_t e = GAPLESS ? 0
                                             : lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.e, 1, LW_WARP),
                                                               keep, l.y);
                        lw_warp_sync(LW_ALL_LANES);
                        uint32_t best_left = tally[-1].best[0] & job.lanes[lane].keep;
                        lw_warp_sync(LW_ALL_LANES);
                        lw_sw_row<A, FORM, GAPLESS, true, true>(s, a, b, e, gap,
                                                                separator ? 0 : lw_sw_mask<A>(LW_ALL_LANES),
                                                                separator ? gap.drop : gap.extend);
                        s.diagonal = g;
                        const int at_row = t + r - g_lane;
                        if (leaves)
                            right[r] = {s.g[C - 1], s.e};
                        if (separator && at_row <= 0) {
                            tally->subject = tally->first; /* row 0; what came before was another segment's */
                            s.best = 0;
                        } else if (separator) {
                            tally->best[0] = lw_sw_finish<A, FORM>(job, lane, g_lane, half, reads, writes,
                                                                   tally, s.best, best_left);
                            s.best = 0;
                        }
                    }
                }
                if (writes) { /* and four lanes take the last lane's rows to memory */
                    lw_warp_sync(LW_ALL_LANES);
                    const int row = t + g_lane - (group - 1);
                    if (g_lane < 4 && row >= 0 && row <= last_row && tally->end > tally->first)
                        job.border[tally->border + (two ? 1 : 2) * (uint32_t)row] = rights[my_group][g_lane];
                }
                if (reads | writes)
                    lw_warp_sync(LW_ALL_LANES);
            }
        }
    }
}

#ifdef __CUDACC__
/* Raises the kernel's shared memory and launches it. */
static cudaError_t lw_sw_start(void (*kernel)(const lw_sw_job *), int form, int arithmetic,
                               const lw_sw_launch *l)
{
    size_t bytes = lw_sw_profile_bytes(form, arithmetic, l->n_letters);
    cudaError_t code =
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (code != cudaSuccess)
        return code;
    kernel<<<dim3((unsigned)l->blocks, (unsigned)l->n_jobs), LW_SW_THREADS, bytes, l->stream>>>(l->jobs);
    return cudaGetLastError();
}

template <int A, int FORM, int EVERY, bool GAPLESS> static cudaError_t lw_sw_go(const lw_sw_launch *l)
{
    return lw_sw_start(lw_sw_scores<A, FORM, EVERY, GAPLESS>, FORM, A, l);
}
#endif

#endif
