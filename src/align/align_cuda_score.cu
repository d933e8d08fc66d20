/* align_cuda_score.cu - scores of every query strand against every reference, on the GPU.
 *
 * A group of lanes holds one word of query letters per column (two strands or two reads in the halves of a
 * word) with H and E of that column in registers. The reference streams through: lane l works one row behind
 * lane l - 1, from which it takes H and F at the border between their columns. The profile (scores of each
 * reference letter against the lane's columns) is in shared memory. What comes out is the maximum over blocks
 * of rows; align_cuda_select.cu decides from it which blocks to look at again, and the column kernel does
 * that. */
#include "align/score_word.cuh"
#include "align/align_tuning.h"

static_assert((int)LW_MARGIN > (int)LW_WARP && (int)LW_BLOCK_TAIL == (int)LW_WARP - 1,
              "no group is wider than a warp");

template <int WORD, int LOCAL, int G, int C, int PASSES>
__global__ void __launch_bounds__(128, 4) score_blocks(const lw_score_args a)
{
    static_assert(!PASSES || G == LW_WARP, "passes hand over from the last lane of a warp to its first");
    constexpr int CHUNKS = (C + 3) / 4;
    constexpr uint32_t LEAST =
        0; /* of H and the border in local mode; H in front of the first column in others */
    const uint32_t far = LOCAL ? 0 : lw_word_of<WORD>(lw_far<WORD>(), lw_far<WORD>());
    const int lane = lw_lane(), in_group = lane % G, warp = (int)threadIdx.x / LW_WARP;
    uint4 *profile = lw_shared + warp * (a.n_letters + !LOCAL) * CHUNKS * LW_WARP + lane;
    const uint32_t lookup = lw_shared_address(profile);
    const uint32_t open = a.open, extend = a.extend;
    const int64_t slot_warps = (a.n_slots + LW_WARP / G - 1) / (LW_WARP / G);
    const int64_t n_units = slot_warps * a.n_groups, n_warps = (int64_t)gridDim.x * (blockDim.x / LW_WARP);
    const int64_t first_unit = (int64_t)blockIdx.x * (blockDim.x / LW_WARP) + warp;

    for (int64_t unit = first_unit; unit < n_units; unit += n_warps) {
        const int64_t index = unit % slot_warps * (LW_WARP / G) + lane / G;
        const bool real = index < a.n_slots;
        int32_t item[2] = {-1, -1}, qlen[2] = {0, 0};
        for (int half = 0; half < 2 && real; half++) {
            item[half] = a.slots[index].item[half];
            qlen[half] = item[half] < 0 ? 0 : a.queries.len[item[half] >> 1];
        }
        int passes = 1;
        if (PASSES) {
            int32_t longest = qlen[0] > qlen[1] ? qlen[0] : qlen[1];
            passes = (longest + !LOCAL + G * C - 1) / (G * C);
            passes = passes < 1 ? 1 : passes;
        } else {
            lw_build_profile<WORD, LOCAL, C>(profile, a.queries, a.table, a.n_letters, a.mode, item, qlen,
                                             in_group * C, G * C);
        }
        const int group = (int)(unit / slot_warps);
        const int64_t begin = a.paired ? index : a.group[group],
                      end = a.paired ? index + 1 : a.group[group + 1];
        for (int64_t at = begin; at < end; at++) {
            lw_segment segment = {LW_MARGIN, 0, 0, 0, 0};
            if (real || !a.paired)
                segment = a.segments[at];
            const int n_blocks =
                a.paired ? lw_reduce_max_xor(LW_ALL_LANES, segment.blocks, LW_WARP) : segment.blocks;
            const int least_rows =
                a.paired ? lw_reduce_min_xor(LW_ALL_LANES, real ? segment.rows : INT32_MAX, LW_WARP)
                         : segment.rows;
            uint32_t *out = a.words + (real ? index * a.words_stride + segment.out - segment.warm : 0);
            /* the rows whose cells may be ends of alignments */
            const int32_t first_row = a.mode == LW_GLOBAL ? segment.rows - 1 : 0;
            const uint32_t end_rows = (uint32_t)(segment.rows - first_row);
            const uint8_t *letters = a.refs + segment.ref - !LOCAL;
            uint2 *border = PASSES ? a.border + first_unit * a.border_stride : NULL;

            for (int pass = 0; pass < passes; pass++) {
                if (PASSES)
                    lw_build_profile<WORD, LOCAL, C>(profile, a.queries, a.table, a.n_letters, a.mode, item,
                                                     qlen, (pass * G + in_group) * C, passes * G * C);
                const bool last_pass = !PASSES || pass == passes - 1;
                uint32_t h[C], e[C], f = far, diagonal = LEAST, m = far;
#pragma unroll
                for (int c = 0; c < C; c++)
                    h[c] = LEAST, e[c] = far;
                int32_t row = -in_group;
                uint2 from_border = make_uint2(LEAST, far);
                if (PASSES && pass > 0 && lane == 0)
                    from_border = border[0];
                /* The first G - 1 steps fill the lanes one after the other; then come whole blocks. */
                for (int fill = G - 1, block = 0; block < n_blocks;) {
                    const bool plain =
                        fill == 0 && block >= !LOCAL && (block + 1) * a.block_rows + G <= least_rows;
                    if (plain) {
                        /* every lane is between its first and its last row: letters by fours, nothing to
                         * check */
                        const uintptr_t at_row = (uintptr_t)(letters + row);
                        const uint32_t *four = (const uint32_t *)(at_row & ~(uintptr_t)3);
                        const uint32_t bits = (uint32_t)(at_row & 3) * 8;
                        uint32_t low = four[0], high = four[1];
                        const uint32_t inner = in_group != 0;
#pragma unroll 1
                        for (int step = 0; step < a.block_rows; step += 4) {
                            const uint32_t letter4 = lw_four_bytes(low, high, bits);
                            low = high;
                            high = four[2];
                            four++;
#pragma unroll
                            for (int k = 0; k < 4; k++) {
                                const uint32_t letter = letter4 >> (8 * k) & 255;
                                uint32_t left = lw_from_below(LW_ALL_LANES, h[C - 1], 1, G);
                                f = lw_from_below(LW_ALL_LANES, f, 1, G);
                                if (LOCAL && !PASSES) /* a product, off the busiest pipe */
                                    left *= inner, f *= inner;
                                else if (in_group == 0)
                                    left = from_border.x, f = from_border.y;
                                if (PASSES && pass > 0 && lane == 0)
                                    from_border = border[row + k + 1];
                                m = lw_row<WORD, LOCAL, C>(lookup + letter * lw_letter_bytes<C>(), diagonal,
                                                           open, extend, h, e, f, m);
                                diagonal = left;
                                if (PASSES && !last_pass && lane == LW_WARP - 1)
                                    border[row + k] = make_uint2(h[C - 1], f);
                            }
                            row += 4;
                        }
                        if (a.mode == LW_GLOBAL)
                            m = far;
                    } else {
                        const int steps = fill > 0 ? 1 : a.block_rows;
#pragma unroll 1
                        for (int step = 0; step < steps; step++) {
                            const int letter = !LOCAL && row == 0 ? a.n_letters : letters[row];
                            uint32_t left = lw_from_below(LW_ALL_LANES, h[C - 1], 1, G);
                            f = lw_from_below(LW_ALL_LANES, f, 1, G);
                            if (in_group == 0)
                                left = from_border.x, f = from_border.y;
                            if (PASSES && pass > 0 && lane == 0)
                                from_border = border[row + 1];
                            const uint32_t maximum = lw_row<WORD, LOCAL, C>(
                                lookup + letter * lw_letter_bytes<C>(), diagonal, open, extend, h, e, f, m);
                            diagonal = left;
                            if ((uint32_t)(row - first_row) < end_rows)
                                m = maximum;
                            if (PASSES && !last_pass && lane == LW_WARP - 1 && row >= 0)
                                border[row] = make_uint2(h[C - 1], f);
                            row++;
                        }
                    }
                    if (fill > 0) { /* lanes that have not reached the first row start afresh */
                        fill--;
                        if (row <= 0) {
                            diagonal = LEAST;
#pragma unroll
                            for (int c = 0; c < C; c++)
                                h[c] = LEAST, e[c] = far;
                        }
                        continue;
                    }
                    if (LOCAL) {
                        for (int d = G / 2; d > 0; d /= 2)
                            m = WORD == LW_WORD_S32
                                    ? lw_word_max<LW_WORD_S32>(m, lw_from_across(LW_ALL_LANES, m, d, G))
                                    : lw_max2(m, lw_from_across(LW_ALL_LANES, m, d, G));
                    }
                    if (real && block >= segment.warm && block < segment.blocks && in_group == G - 1) {
                        if (LOCAL && pass > 0) /* the query's earlier columns */
                            m = WORD == LW_WORD_S32 ? lw_word_max<LW_WORD_S32>(m, out[block])
                                                    : lw_max2(m, out[block]);
                        if (LOCAL || last_pass)
                            out[block] = m;
                    }
                    m = far;
                    block++;
                }
                if (PASSES)
                    lw_warp_sync(LW_ALL_LANES); /* the border is handed over */
            }
        }
    }
}

/* Every column of short stretches, with query ends: one query strand and one stretch per group, 32-bit
 * scores. */
template <int LOCAL, int G, int C> __global__ void __launch_bounds__(128) score_columns(const lw_score_args a)
{
    constexpr int CHUNKS = (C + 3) / 4, WORD = LW_WORD_S32, KEY = LW_KEY_COLUMNS;
    static_assert(C <= KEY, "a column fits its part of a key");
    const uint32_t far = LOCAL ? 0 : lw_word_of<WORD>(lw_far<WORD>(), 0);
    const int lane = lw_lane(), in_group = lane % G, warp = (int)threadIdx.x / LW_WARP;
    uint4 *profile = lw_shared + warp * (a.n_letters + !LOCAL) * CHUNKS * LW_WARP + lane;
    const uint32_t lookup = lw_shared_address(profile);
    const int64_t n_units = (a.n_slots + LW_WARP / G - 1) / (LW_WARP / G);
    const int64_t n_warps = (int64_t)gridDim.x * (blockDim.x / LW_WARP);
    const int64_t first_unit = (int64_t)blockIdx.x * (blockDim.x / LW_WARP) + warp;

    for (int64_t unit = first_unit; unit < n_units; unit += n_warps) {
        const int64_t index = unit * (LW_WARP / G) + lane / G;
        int32_t item[2] = {-1, -1}, qlen[2] = {0, 0};
        lw_segment segment = {0, 0, 0, 0, 0};
        if (index < a.n_slots && a.slots[index].item[0] >= 0) {
            int32_t n = a.queries.len[a.slots[index].item[0] >> 1];
            if (n >= a.len_min && n <= a.len_max) {
                item[0] = a.slots[index].item[0];
                qlen[0] = n;
                segment = a.segments[index];
            }
        }
        const int32_t n_rows = lw_reduce_max_xor(LW_ALL_LANES, segment.rows, LW_WARP);
        if (n_rows == 0)
            continue;
        int passes = (qlen[0] + !LOCAL + G * C - 1) / (G * C);
        passes = G < LW_WARP || passes < 1 ? 1 : passes;
        const int32_t total = passes * G * C;
        const uint8_t *letters = a.refs + segment.ref - !LOCAL;
        lw_column *out = a.columns + segment.out - segment.warm;
        uint2 *border = G == LW_WARP ? a.border + first_unit * a.border_stride : NULL;
        for (int pass = 0; pass < passes; pass++) {
            const int32_t first_column = (pass * G + in_group) * C;
            lw_build_profile<WORD, LOCAL, C>(profile, a.queries, a.table, a.n_letters, a.mode, item, qlen,
                                             first_column, total);
            const int32_t first_end =
                first_column + 1 - (total - qlen[0]); /* query end of the lane's first column */
            uint32_t h[C], e[C], f = far, diagonal = 0;
#pragma unroll
            for (int c = 0; c < C; c++)
                h[c] = 0, e[c] = far;
            lw_column best = {LOCAL ? 0 : -LW_FAR_S32, 0};
#pragma unroll 1
            for (int32_t step = 0; step < n_rows + G - 1; step++) {
                const int32_t row = step - in_group;
                const bool here = row >= 0 && row < segment.rows;
                const int letter = !LOCAL && row <= 0 ? a.n_letters : here ? letters[row] : 0;
                uint32_t left = lw_from_below(LW_ALL_LANES, h[C - 1], 1, G);
                f = lw_from_below(LW_ALL_LANES, f, 1, G);
                best.score = (int32_t)lw_from_below(LW_ALL_LANES, (uint32_t)best.score, 1, G);
                best.qend = (int32_t)lw_from_below(LW_ALL_LANES, (uint32_t)best.qend, 1, G);
                if (in_group == 0) {
                    left = 0, f = far;
                    best.score = LOCAL ? 0 : -LW_FAR_S32, best.qend = 0;
                    if (pass > 0 && here) {
                        left = border[row].x, f = border[row].y;
                        if (row >= segment.warm)
                            best = out[row];
                    }
                }
                lw_row<WORD, LOCAL, C>(lookup + letter * lw_letter_bytes<C>(), diagonal, a.open, a.extend, h,
                                       e, f, 0);
                diagonal = left;
                if (LOCAL && a.keyed) { /* score and column in one number: fewer comparisons */
                    int32_t key = 0;
#pragma unroll
                    for (int c = 0; c < C; c += 2) {
                        int32_t even = (int32_t)h[c] * KEY + (KEY - 1 - c);
                        int32_t odd = c + 1 < C ? (int32_t)h[c + 1] * KEY + (KEY - 2 - c) : 0;
                        key = lw_max3(key, even, odd);
                    }
                    const int32_t score = (int32_t)((uint32_t)key / KEY);
                    if (score > best.score)
                        best.score = score,
                        best.qend = first_end + (KEY - 1 - (int32_t)((uint32_t)key % KEY));
                } else if (LOCAL) {
#pragma unroll
                    for (int c = 0; c < C; c++)
                        if ((int32_t)h[c] > best.score)
                            best.score = (int32_t)h[c], best.qend = first_end + c;
                } else {
                    best.score =
                        a.mode == LW_GLOBAL && row != segment.blocks ? -LW_FAR_S32 : (int32_t)h[C - 1];
                    best.qend = qlen[0];
                }
                if (in_group == G - 1 && here && (LOCAL || pass == passes - 1) && row >= segment.warm)
                    out[row] = best;
                if (G == LW_WARP && in_group == G - 1 && here && pass < passes - 1)
                    border[row] = make_uint2(h[C - 1], f);
                if (row < 0) {
                    diagonal = 0;
#pragma unroll
                    for (int c = 0; c < C; c++)
                        h[c] = 0, e[c] = far;
                }
            }
            lw_warp_sync(LW_ALL_LANES);
        }
    }
}

/* In each lane's first pass over the border of another pass, lane 0 reads row r before lane 31 has written
 * it: it is 31 rows ahead. So the border is updated in place. */

#define LW_SCORE_ROW(word, local, lanes, columns, passes, warps)                                             \
    {word, local, lanes, columns, passes, warps, score_blocks<word, local, lanes, columns, passes>},
const lw_score_class lw_score_classes[] = {LW_SCORE_CLASSES(LW_SCORE_ROW)};
const int lw_score_class_count = (int)(sizeof lw_score_classes / sizeof *lw_score_classes);

#define LW_COLUMN_ROW(local, lanes, columns, warps)                                                          \
    {LW_WORD_S32, local, lanes, columns, lanes == LW_WARP, warps, score_columns<local, lanes, columns>},
const lw_score_class lw_column_classes[] = {LW_COLUMN_CLASSES(LW_COLUMN_ROW)};

int64_t lw_score_shared_bytes(const lw_score_class *c, int n_letters)
{
    return (int64_t)c->warps * (n_letters + !c->local) * ((c->columns + 3) / 4) * LW_WARP *
           (int64_t)sizeof(uint4);
}
