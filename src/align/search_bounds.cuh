/* search_bounds.cuh - bounds of the scores from above, in a third fewer instructions than the scores: enough
 * to drop almost every subject, since only those that may be among the best are scored exactly.
 *
 * Lanes hold columns as in search_kernels.cuh. What is new: two rows by two columns are a tile, and one value
 * X stands for the gaps of both kinds that enter it. With D = H(diagonal) + s of its four cells, XL and XU
 * what comes from the tile to the left and from the tile above:
 *
 *     M   = max(D11, D12, D21, D22)                       X' = max(M - (open - extend), XL, XU, 0)
 *     H11 = max(D11, XL, XU, 0)      H12, H21, H22 = max(D, X')       X to the right and down = X' - 2 extend
 *
 * (open being the cost of a gap apart from its letters). 7 maxima and 6 additions for four words of two
 * cells, where the scores take 12 and 8. Every H is at least the score's:
 *
 * - A gap that enters a tile has paid for its first letter there, at least; on the way to the next tile it
 * pays for two letters more, which is as many as it passes. It may turn from letters of the one sequence to
 *   letters of the other for nothing.
 * - A gap that opens in a tile pays open - extend + 2 extend before the next tile: for its first letter,
 * which is in this tile or in the next. Inside the tile it costs up to 2 extend less than it should.
 *
 * And the best score is a D, so no row is left out: what is kept is the highest M. Chance gains by this 1 to
 * 4 on average (BLOSUM62, 11/1, queries of 64 to 1,024).
 *
 * A lane is two rows behind its left neighbour. A separator row may be the first or the second of a tile; its
 * letter's entries are so low that D loses against everything (lw_sw_profile_word()). Then the tile's M is
 * that of one subject alone; what is to be dropped is XU before a separator in the first row, and X' after
 * one in the second. In a row above its own first one a subject may have an H above 0 by a gap from below:
 * with an entry of 11 it brings 1 more than it costs, which makes a bound looser, never too low. Across a
 * border, X in that row may be the tile's of another subject, or lost: X is worth something in the row below
 * only if an entry of the one row above exceeds the price of a gap (lw_sw_bounds is for matrices where none
 * does). */
#ifndef LW_SEARCH_BOUNDS_CUH
#define LW_SEARCH_BOUNDS_CUH

#include "align/search_kernels.cuh"

/* State of a lane between tiles. */
template <int C> struct lw_sw_tiles {
    uint32_t h[C];     /* of the row above */
    uint32_t x[C / 2]; /* what enters the tiles below */
    uint32_t diagonal; /* H of the column to the left, in the row above */
    uint32_t first_h;  /* leave the last column: H of the first row (that of the second is h[C - 1]) */
    uint32_t right;    /* and X */
    uint32_t best;
};

/* Profile of a lane for the letters of a row. */
typedef struct lw_sw_letter_rows {
    const uint4 *first, *second;
} lw_sw_letter_rows;

template <int FORM>
LW_DEVICE lw_sw_letter_rows lw_sw_rows_of(const char *mine, uint32_t letters, uint32_t each)
{
    if (FORM == LW_SW_TWO_QUERIES)
        return {(const uint4 *)(mine + letters * each), (const uint4 *)(mine + letters * each)};
    return {(const uint4 *)(mine + (letters & 0xff) * each), (const uint4 *)(mine + (letters >> 8) * each)};
}

/* Two rows of one lane; h1, h2 and x enter from the left. SLOW: `above` keeps what enters from above, `below`
 * what goes into the second row and down (as lw_sw_mask() makes them). */
template <int FORM, bool SLOW, bool ON_ALU, int C>
LW_DEVICE void lw_sw_tile_rows(lw_sw_tiles<C> &s, lw_sw_letter_rows one, lw_sw_letter_rows two, uint32_t h1,
                               uint32_t h2, uint32_t x, uint32_t above, uint32_t below)
{
    constexpr int A = LW_SW_HALF, W = LW_SW_QUAD_COLUMNS(FORM, A);
    const int32_t opening = LW_SW_TILE_OPEN - 2 * LW_SW_TILE_EXTEND;
    const uint32_t opens = lw_pack2(-opening, -opening), open = lw_half_from_int(-opening) * 0x10001u,
                   leave = lw_half_from_int(-2 * LW_SW_TILE_EXTEND) * 0x10001u;
    uint32_t d = s.diagonal, previous = 0;
    s.diagonal = h2;
#pragma unroll
    for (int quad = 0; quad < C / W; quad++) {
        uint4 qa1 = one.first[quad * 32], qb1 = FORM == LW_SW_TWO_SUBJECTS ? one.second[quad * 32] : qa1;
        uint4 qa2 = two.first[quad * 32], qb2 = FORM == LW_SW_TWO_SUBJECTS ? two.second[quad * 32] : qa2;
        uint32_t a1[4] = {qa1.x, qa1.y, qa1.z, qa1.w}, b1[4] = {qb1.x, qb1.y, qb1.z, qb1.w};
        uint32_t a2[4] = {qa2.x, qa2.y, qa2.z, qa2.w}, b2[4] = {qb2.x, qb2.y, qb2.z, qb2.w};
#pragma unroll
        for (int i = 0; i < W; i += 2) {
            const int j = quad * W + i;
            uint32_t d11 = lw_sw_diagonal<A, FORM, false>(d, a1, b1, i, 0);
            uint32_t d12 = lw_sw_diagonal<A, FORM, false>(s.h[j], a1, b1, i + 1, 0);
            uint32_t d21 = lw_sw_diagonal<A, FORM, false>(h1, a2, b2, i, 0);
            uint32_t up = SLOW ? lw_sw_kept_sum<A>(s.x[j / 2], above, 0) : s.x[j / 2];
            d = s.h[j + 1];
            uint32_t h11 = lw_max3_relu2(d11, x, up);
            uint32_t d22 = lw_sw_diagonal<A, FORM, false>(h11, a2, b2, i + 1, 0);
            uint32_t m = lw_max_relu2(lw_max3_2(d11, d12, d22), d21);
            uint32_t inside =
                ON_ALU ? lw_max2(lw_addmax_relu2(m, opens, x), up) : lw_max3_relu2(lw_addh2(m, open), x, up);
            uint32_t down = SLOW ? lw_sw_kept_sum<A>(inside, below, 0) : inside;
            h1 = lw_max2(d12, inside);
            s.h[j] = lw_max2(d21, down);
            s.h[j + 1] = lw_max2(d22, down);
            x = lw_addh2(inside, leave);
            s.x[j / 2] = SLOW ? lw_addh2(down, leave) : x;
            if (j & 2)
                s.best = lw_max3_2(previous, m, s.best);
            previous = m;
        }
    }
    s.first_h = h1;
    s.right = x;
}

template <int FORM, bool BORDER>
__global__ void __launch_bounds__(LW_SW_THREADS, 2) lw_sw_bounds(const lw_sw_job *jobs)
{
#if LW_DPX_DEVICE || !LW_ON_DEVICE /* tests run the kernel on the host */
    constexpr int A = LW_SW_HALF, C = LW_SW_COLUMNS;
    constexpr bool two = FORM == LW_SW_TWO_SUBJECTS;
    LW_DYNAMIC_SHARED(uint4, profile);
    __shared__ lw_sw_job job;
    /* Four rows of what lies left of a lane's first column where nothing comes from the lane to the left:
     * zeros, then by warp and group what the previous pass left. And four rows of what leaves the last lane
     * of a group. */
    __shared__ uint2 lefts[1 + LW_SW_WARPS * 8][4], rights[LW_SW_WARPS * 8][4];
    /* an entry before each warp's 32, which its first lane reads and masks away */
    __shared__ lw_sw_tally tallies[LW_SW_WARPS * (1 + LW_WARP)];
    if (threadIdx.x == 0)
        job = jobs[blockIdx.y];
    __syncthreads();
    const int group = job.group, n_groups = LW_WARP / group;
    const int n_segments = *job.n_segments << (two ? 0 : 1);
    if ((int)blockIdx.x * LW_SW_WARPS * n_groups >= n_segments)
        return;
    const uint32_t letter_bytes = C * LW_WARP * 16 / LW_SW_QUAD_COLUMNS(FORM, A);
    for (uint32_t i = threadIdx.x; i < job.n_letters * letter_bytes / 16; i += LW_SW_THREADS)
        profile[i] = job.profile[i];
    if (threadIdx.x < 4)
        lefts[0][threadIdx.x] = {0, 0};
    __syncthreads();

    const int lane = lw_lane(), g_index = lane / group, g_lane = lane - g_index * group;
    const uint32_t keep = lw_sw_mask<A>(job.lanes[lane].keep);
    const char *const mine = (const char *)(profile + lane);
    const uint32_t per_letter = lw_opaque(letter_bytes >> LW_SW_LETTER_SHIFT);
    const bool reads = BORDER && job.reads_border, writes = BORDER && job.writes_border;
    const int my_group = (threadIdx.x / LW_WARP) * 8 + (g_index & 7);
    const uint2 *const left = reads && g_lane == 0 ? lefts[1 + my_group] : lefts[0];
    const bool leaves = writes && g_lane == group - 1;
    uint2 *const right = rights[my_group];
    lw_sw_tally *const tally = &tallies[1 + threadIdx.x + threadIdx.x / LW_WARP];
    if (lane == 0)
        tally[-1].best[0] = tally[-1].best[1] = 0;
    lw_sw_work work;
    while (lw_sw_take<FORM>(job, n_segments, n_groups, g_index, &work)) {
        const lw_sw_segment segment = work.segment;
        const int last_row = segment.rows + 1; /* row 0 is the separator before, this the one after */
        const int steps =
            lw_reduce_max_xor(LW_ALL_LANES, work.valid ? segment.rows + 1 + 2 * group : 0, LW_WARP);
        tally->first = segment.subject;
        tally->end = work.valid ? segment.subject + segment.n : segment.subject;
        const uint8_t *rows = job.stream + ((int64_t)segment.begin - 1 - 2 * g_lane) * 2 + work.half;
        tally->border = two ? segment.begin - 1 : 2 * (segment.begin - 1) + (uint32_t)work.half;
        lw_sw_tiles<C> s;
#pragma unroll
        for (int j = 0; j < C; j++)
            s.h[j] = s.x[j / 2] = 0;
        s.diagonal = s.first_h = s.right = s.best = 0;
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
                /* four lanes bring the border of these four rows to the group's first lane, and fetch that of
                 * the next four */
                if (g_lane < 4) {
                    lefts[1 + my_group][g_lane] = lw_sw_border(job, 0, fetched);
                    if (t + 4 + g_lane <= last_row)
                        fetched = lw_sw_fetch<FORM>(job, tally, t + 4 + g_lane);
                }
                lw_warp_sync(LW_ALL_LANES);
            }
            const bool slow = ((now[0] | now[1] | now[2] | now[3]) & LW_SW_SEPARATOR) ||
                              (unsigned)(2 * g_lane - t) < 4u || (unsigned)(last_row + 2 * g_lane - t) < 4u;
            if (!lw_any(LW_ALL_LANES, slow)) {
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
                    const uint2 l1 = BORDER ? left[r] : uint2{0, 0}, l2 = BORDER ? left[r + 1] : uint2{0, 0};
                    uint32_t h1 =
                        lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.first_h, 1, LW_WARP), keep, l1.x);
                    uint32_t h2 =
                        lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.h[C - 1], 1, LW_WARP), keep, l2.x);
                    uint32_t x =
                        lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.right, 1, LW_WARP), keep, l1.y);
                    lw_sw_tile_rows<FORM, false, two && !BORDER>(
                        s, lw_sw_rows_of<FORM>(mine, now[r], per_letter),
                        lw_sw_rows_of<FORM>(mine, now[r + 1], per_letter), h1, h2, x, 0, 0);
                    if (BORDER && leaves) {
                        right[r] = {s.first_h, s.right};
                        right[r + 1] = {s.h[C - 1], s.right};
                    }
                }
            } else {
                const uint32_t pad = (job.n_letters - 1) << LW_SW_LETTER_SHIFT,
                               pads = two ? pad * 0x101 : pad;
                uint32_t now1 = now[0], now2 = now[1];
#pragma unroll 1
                for (int r = 0; r < 4; r += 2) {
                    const int at_row = t + r - 2 * g_lane;
                    const bool ends1 = (now1 & LW_SW_SEPARATOR) || at_row == 0 || at_row == last_row;
                    const bool ends2 = (now2 & LW_SW_SEPARATOR) || at_row + 1 == last_row;
                    const uint2 l1 = BORDER ? left[r] : uint2{0, 0}, l2 = BORDER ? left[r + 1] : uint2{0, 0};
                    uint32_t h1 =
                        lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.first_h, 1, LW_WARP), keep, l1.x);
                    uint32_t h2 =
                        lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.h[C - 1], 1, LW_WARP), keep, l2.x);
                    uint32_t x =
                        lw_sw_masked<A>(lw_from_below(LW_ALL_LANES, s.right, 1, LW_WARP), keep, l1.y);
                    lw_warp_sync(LW_ALL_LANES);
                    const uint32_t kept = job.lanes[lane].keep, left1 = tally[-1].best[0] & kept,
                                   left2 = tally[-1].best[1] & kept;
                    lw_warp_sync(LW_ALL_LANES);
                    if (ends1 && at_row <= 0) {
                        tally->subject = tally->first; /* row 0; what came before was another segment's */
                        s.best = 0;
                    } else if (ends1) {
                        tally->best[0] = lw_sw_finish<A, FORM>(job, lane, g_lane, work.half, reads, writes,
                                                               tally, s.best, left1);
                        s.best = 0;
                    }
                    lw_sw_tile_rows<FORM, true, two && !BORDER>(
                        s, lw_sw_rows_of<FORM>(mine, ends1 ? pads : now1, per_letter),
                        lw_sw_rows_of<FORM>(mine, ends2 ? pads : now2, per_letter), h1, h2, x,
                        lw_sw_mask<A>(ends1 ? 0 : LW_ALL_LANES), lw_sw_mask<A>(ends2 ? 0 : LW_ALL_LANES));
                    if (BORDER && leaves) {
                        right[r] = {s.first_h, s.right};
                        right[r + 1] = {s.h[C - 1], s.right};
                    }
                    if (ends2 && at_row + 1 > 0) {
                        tally->best[1] = lw_sw_finish<A, FORM>(job, lane, g_lane, work.half, reads, writes,
                                                               tally, s.best, left2);
                        s.best = 0;
                    }
                    now1 = now[2];
                    now2 = now[3];
                }
            }
            if (writes) { /* and four lanes take the last lane's rows to memory */
                lw_warp_sync(LW_ALL_LANES);
                const int row = t + g_lane - 2 * (group - 1);
                if (g_lane < 4 && row >= 0 && row <= last_row && tally->end > tally->first)
                    job.border[tally->border + (two ? 1 : 2) * (uint32_t)row] = rights[my_group][g_lane];
            }
            if (reads || writes)
                lw_warp_sync(LW_ALL_LANES);
        }
    }
#endif
}

#endif
