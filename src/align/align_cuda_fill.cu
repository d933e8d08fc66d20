/* align_cuda_fill.cu - scores of jobs, and either the direction of every cell or checkpoints (align_paths.h).
 *
 * Directions cost no comparison: scores are held as 4 v (two pieces: 8 v) and the lowest bits say where they
 * come from, so that the maximum selects the direction with the score, and of equal scores the direction that
 * the tie rule wants: start, diagonal, deletion, insertion. A gap state has further bits, which are taken off
 * before it is compared with others: a bit above the opened state's tag if it extends. E and F are opened
 * with one tag, so that they share the word H - open; taking more off F than off E puts it behind E. one
 * piece:  start 3, diagonal 2, E 1 (opened 1, extended 3), F 0 (opened 1, extended 3) two pieces: start 5,
 * diagonal 4, E 3, E2 2, F 1, F2 0 (opened 3, 2, 3, 2, extended 7, 6, 7, 6) Two scores a word: both are
 * offset so that they stay above 0, and 32-bit additions of penalties do not borrow from the upper one. */
#include "align/path_cell.cuh"

template <int WORD> LW_DEVICE uint32_t add_max(uint32_t a, uint32_t b, uint32_t c)
{
    return WORD == LW_WORD_S16 ? lw_addmax2(a, b, c)
                               : (uint32_t)lw_addmax((int32_t)a, (int32_t)b, (int32_t)c);
}

template <int WORD> LW_DEVICE uint32_t max_of3(uint32_t a, uint32_t b, uint32_t c)
{
    return WORD == LW_WORD_S16 ? lw_max3_2(a, b, c) : (uint32_t)lw_max3((int32_t)a, (int32_t)b, (int32_t)c);
}

/* The same constant in each score of a word. */
template <int WORD> LW_DEVICE constexpr uint32_t each(uint32_t bits)
{
    return WORD == LW_WORD_S16 ? bits * 0x10001u : bits;
}

template <int WORD> LW_DEVICE uint32_t word_of(const lw_path_arithmetic &by, int32_t low, int32_t high)
{
    if (WORD == LW_WORD_S16)
        return lw_pack2(lw_low2(by.zero) + low * by.scale, lw_low2(by.zero) + high * by.scale);
    return (uint32_t)((int32_t)by.zero + low * by.scale);
}

/* Scores of a matrix entry for the lane's columns: [letter][lane] 16 bytes for each query of a word, or, with
 * one score a word, [letter][four columns][lane] 16 bytes. */
template <int WORD, int HALVES>
LW_DEVICE void build_profile(const lw_fill_args &a, uint4 *profile, const lw_path_job (&job)[HALVES],
                             int32_t first_column, int32_t total)
{
    for (int half = 0; half < HALVES; half++)
        for (int chunk = 0; chunk < LW_PATH_COLUMNS / 4; chunk++) {
            int code[4];
            for (int k = 0; k < 4; k++) {
                int32_t i = first_column + chunk * 4 + k - (total - job[half].qlen);
                code[k] = i >= 0 ? lw_letter_at(a.queries, job[half].query + i) : -1;
            }
            for (int letter = 0; letter < a.n_letters; letter++) {
                int32_t s[4];
                for (int k = 0; k < 4; k++)
                    s[k] = code[k] < 0
                               ? a.by.pad
                               : a.table->score[code[k] * LW_MAX_LETTERS + letter] * a.by.scale + a.by.tag;
                if (WORD == LW_WORD_S16)
                    ((uint32_t *)(profile + (half * a.n_letters + letter) * LW_WARP))[chunk] =
                        (uint32_t)(s[0] & 255) | (uint32_t)(s[1] & 255) << 8 | (uint32_t)(s[2] & 255) << 16 |
                        (uint32_t)(s[3] & 255) << 24;
                else
                    profile[(letter * (LW_PATH_COLUMNS / 4) + chunk) * LW_WARP] =
                        make_uint4((uint32_t)s[0], (uint32_t)s[1], (uint32_t)s[2], (uint32_t)s[3]);
            }
        }
    lw_warp_sync(LW_ALL_LANES);
}

template <int WORD, int PIECES> struct states {
    uint32_t h[LW_PATH_COLUMNS], e[PIECES][LW_PATH_COLUMNS], f[PIECES];
};

/* One letter of the target(s) against the lane's columns. `profile` holds the addresses of that letter's
 * scores. */
template <int WORD, int PIECES, int DIRECTIONS, int HALVES, int WORDS>
LW_DEVICE void path_row(const lw_path_arithmetic &by, const uint32_t (&profile)[HALVES], uint32_t diagonal,
                        states<WORD, PIECES> &s, uint32_t (&out)[WORDS])
{
    constexpr int C = LW_PATH_COLUMNS, PER_WORD = C / WORDS;
    constexpr uint32_t SOURCE = each<WORD>(PIECES == 2 ? 7 : 3);
    constexpr uint32_t E_BITS = each<WORD>(PIECES == 2 ? 4 : 2), F_BITS = each<WORD>(PIECES == 2 ? 6 : 3);
    uint4 a4 = lw_shared_load4(profile[0]), b4 = a4;
    if (WORD == LW_WORD_S16)
        b4 = lw_shared_load4(profile[HALVES - 1]);
    uint32_t t = 0, e_bits[PIECES], e_next[PIECES];
#pragma unroll
    for (int c = -1; c < C; c++) {
        /* the diagonal step of the next column, before this one overwrites the H that it reads */
        uint32_t next = 0, bits[PIECES], clean[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            bits[p] = clean[p] = 0;
        if (c + 1 < C) {
            const int n = c + 1;
            uint32_t score;
            if (WORD == LW_WORD_S16) {
                uint32_t low = n / 4 == 0 ? a4.x : n / 4 == 1 ? a4.y : n / 4 == 2 ? a4.z : a4.w;
                uint32_t high = n / 4 == 0 ? b4.x : n / 4 == 1 ? b4.y : n / 4 == 2 ? b4.z : b4.w;
                score = lw_signed_bytes2(low, high, n % 4);
            } else {
                if (n > 0 && n % 4 == 0)
                    a4 = lw_shared_load4(profile[0] + n / 4 * LW_WARP * (uint32_t)sizeof(uint4));
                score = n % 4 == 0 ? a4.x : n % 4 == 1 ? a4.y : n % 4 == 2 ? a4.z : a4.w;
            }
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                clean[p] = s.e[p][n];
                if (DIRECTIONS) {
                    bits[p] = clean[p] & E_BITS;
                    clean[p] -= bits[p];
                }
            }
            next = add_max<WORD>(c < 0 ? diagonal : s.h[c < 0 ? 0 : c], score, clean[0]);
        }
        if (c >= 0) {
            uint32_t f_bits[PIECES], f[PIECES];
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                f[p] = s.f[p];
                f_bits[p] = 0;
                if (DIRECTIONS) {
                    f_bits[p] = f[p] & F_BITS;
                    f[p] -= f_bits[p];
                }
            }
            uint32_t best = PIECES == 2 ? max_of3<WORD>(t, e_next[PIECES - 1], f[0]) : t;
            best = max_of3<WORD>(best, f[PIECES - 1], by.floor);
            if (DIRECTIONS) {
                uint32_t source = best & SOURCE;
                best -= source;
                uint32_t &word = out[c / PER_WORD];
                word = (c % PER_WORD == 0 ? 0 : word * by.shift) + source;
#pragma unroll
                for (int p = 0; p < PIECES; p++) {
                    word = e_bits[p] * by.weight_e[p] + word;
                    word = f_bits[p] * by.weight_f[p] + word;
                }
                if (c % PER_WORD == PER_WORD - 1)
                    word += by.bias;
            }
            s.h[c] = best;
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const uint32_t opened = best * by.one + by.open[p];
                s.e[p][c] = add_max<WORD>(e_next[p], by.extend_e[p], opened);
                s.f[p] = add_max<WORD>(f[p], by.extend_f[p], opened);
            }
        }
        t = next;
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            e_bits[p] = bits[p], e_next[p] = clean[p];
    }
}

/* The greatest H of the lane's columns. */
template <int WORD, int PIECES> LW_DEVICE uint32_t greatest(const states<WORD, PIECES> &s)
{
    uint32_t m = max_of3<WORD>(s.h[0], s.h[1], s.h[2]);
#pragma unroll
    for (int c = 3; c + 1 < LW_PATH_COLUMNS; c += 2)
        m = max_of3<WORD>(m, s.h[c], s.h[c + 1]);
    return max_of3<WORD>(m, m, s.h[LW_PATH_COLUMNS - 1]);
}

/* The best end of a group of lanes, in its first one: the highest score, then the first row, then the first
 * columns. */
LW_DEVICE lw_path_end best_of_group(lw_path_end mine, int in_group, int lanes)
{
    for (int d = 1; d < lanes; d *= 2) {
        lw_path_end other;
        other.score = (int32_t)lw_from_above(LW_ALL_LANES, (uint32_t)mine.score, d, LW_WARP);
        other.row = (int32_t)lw_from_above(LW_ALL_LANES, (uint32_t)mine.row, d, LW_WARP);
        other.column = (int32_t)lw_from_above(LW_ALL_LANES, (uint32_t)mine.column, d, LW_WARP);
        bool better = other.score > mine.score || (other.score == mine.score && other.row < mine.row);
        if (in_group + d < lanes && better)
            mine = other;
    }
    return mine;
}

template <int WORD, int PIECES, int DIRECTIONS>
__global__ void __launch_bounds__(128, PIECES == 2 ? 3 : 4) path_fill(const lw_fill_args a)
{
    constexpr int C = LW_PATH_COLUMNS, HALVES = WORD == LW_WORD_S16 ? 2 : 1;
    constexpr int WORDS = C * 4 * PIECES * HALVES / 32, BLOCK = 64;
    const int lane = lw_lane(), warp = (int)threadIdx.x / LW_WARP;
    const int profile_size = WORD == LW_WORD_S16 ? 2 : C / 4; /* 16 bytes of one letter and lane */
    uint4 *profile = lw_path_shared + (warp * a.n_letters * profile_size) * LW_WARP + lane;
    const uint32_t lookup = lw_shared_address(profile);
    const uint32_t letter_bytes = (WORD == LW_WORD_S16 ? 1 : C / 4) * LW_WARP * (uint32_t)sizeof(uint4);
    const uint32_t half_bytes = (uint32_t)a.n_letters * letter_bytes;
    const lw_path_arithmetic by = a.by;

    for (;;) {
        int32_t at = 0;
        if (lane == 0)
            at = atomicAdd(a.next, 1);
        at = (int32_t)lw_from_lane(LW_ALL_LANES, (uint32_t)at, 0, LW_WARP);
        if (at >= a.n_strips)
            return;
        const int32_t strip = a.strips[at].strip;
        const lw_bundle bundle = a.bundles[a.strips[at].bundle];
        const int lanes = bundle.lanes, group = lane / lanes, in_group = lane - group * lanes;
        const int32_t total = bundle.strips * lanes * C, first_column = (strip * lanes + in_group) * C;
        const bool last_strip = strip == bundle.strips - 1;

        lw_path_job job[HALVES];
        int32_t first_end[HALVES], n_ends[HALVES];
        lw_path_end end[HALVES];
        for (int half = 0; half < HALVES; half++) {
            const int32_t index = group * HALVES + half;
            const bool real = index < bundle.n;
            job[half] = a.jobs[bundle.first + (real ? index : 0)];
            first_end[half] = a.ends_at == LW_END_CORNER ? job[half].tlen - 1 : 0;
            n_ends[half] = real ? job[half].tlen - first_end[half] : 0;
            if (a.ends_at != LW_END_ANYWHERE && !(last_strip && in_group == lanes - 1))
                n_ends[half] = 0;
            end[half].score = a.ends_at == LW_END_ANYWHERE ? lw_low2(by.zero) : INT32_MIN;
            end[half].row = INT32_MAX;
            end[half].column = first_column - (total - job[half].qlen);
        }
        build_profile<WORD, HALVES>(a, profile, job, first_column, total);

        states<WORD, PIECES> s;
        uint32_t diagonal = by.edge_h;
#pragma unroll
        for (int c = -1; c < C; c++) {
            const int32_t i = first_column + c + 1 - total;
            uint32_t h = word_of<WORD>(by, lw_first_row<PIECES>(a, i + job[0].qlen),
                                       lw_first_row<PIECES>(a, i + job[HALVES - 1].qlen));
            if (c < 0) {
                diagonal = first_column > 0 ? h : diagonal;
                continue;
            }
            s.h[c < 0 ? 0 : c] = h;
#pragma unroll
            for (int p = 0; p < PIECES; p++)
                s.e[p][c < 0 ? 0 : c] = h + by.open[p];
        }
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            s.f[p] = by.edge_f[p];

        const int32_t steps = bundle.rows + lanes - 1, slots = lw_path_slots(bundle.rows, lanes);
        uint32_t *directions = NULL;
        const uint2 *taken = NULL;
        const uint32_t *taken2 = NULL;
        uint2 *given = NULL, *above = NULL;
        uint32_t *given2 = NULL, *above2 = NULL;
        if (DIRECTIONS) {
            directions = a.scratch + bundle.scratch + ((int64_t)strip * slots * LW_WARP + lane * 4) * WORDS;
            uint2 *border = (uint2 *)(a.border + bundle.border);
            uint32_t *border2 = (uint32_t *)(border + (int64_t)(bundle.strips - 1) * bundle.rows);
            taken = border + (int64_t)(strip - 1) * bundle.rows;
            taken2 = border2 + (int64_t)(strip - 1) * bundle.rows;
            if (lane == LW_WARP - 1 && !last_strip) {
                given = border + (int64_t)strip * bundle.rows;
                given2 = border2 + (int64_t)strip * bundle.rows;
            }
        } else {
            const lw_checkpoints keep = lw_checkpoints_of(a, bundle);
            const int32_t tile = (first_column + C) / a.tile;
            taken = keep.behind + ((int64_t)strip * (LW_PATH_STRIP / a.tile) - 1) * bundle.rows;
            taken2 = keep.behind2 + ((int64_t)strip * (LW_PATH_STRIP / a.tile) - 1) * bundle.rows;
            if ((first_column + C) % a.tile == 0) {
                given = keep.behind + (int64_t)(tile - 1) * bundle.rows;
                given2 = keep.behind2 + (int64_t)(tile - 1) * bundle.rows;
            }
            above = keep.above + first_column;
            above2 = keep.above2 + first_column;
        }

        /* the lane's letters: bit 0 of `letters` is that of step 0 after `shift` bits; behind a window's end
         * any letter will do, but there must be one */
        const int bits = a.targets.bits;
        const uint32_t letter_mask = (1u << bits) - 1;
        const uint32_t *letters[HALVES];
        int32_t shift[HALVES], most[HALVES];
        for (int half = 0; half < HALVES; half++) {
            const int64_t bit = (job[half].target - in_group) * bits;
            letters[half] = a.targets.words + (bit >> 5);
            shift[half] = (int32_t)(bit & 31);
            most[half] = job[half].tlen + in_group;
        }
        uint2 next = make_uint2(by.edge_h, by.edge_f[0]);
        uint32_t next2 = by.edge_f[PIECES - 1];
        for (int32_t block = 0; block < steps; block += BLOCK) {
            if (strip > 0) {
                if (lane == 0) {
                    lw_await(a.progress + at - 1,
                             block + BLOCK + 1 < bundle.rows ? block + BLOCK + 1 : bundle.rows);
                    if (block == 0) {
                        next = lw_taken2(taken);
                        next2 = PIECES == 2 ? lw_taken(taken2) : 0;
                    }
                }
                lw_warp_sync(LW_ALL_LANES);
            }
            const int32_t to = block + BLOCK < steps ? block + BLOCK : steps;
#pragma unroll 1
            for (int32_t four = block; four < to; four += 4) {
                uint32_t coming[HALVES];
#pragma unroll
                for (int half = 0; half < HALVES; half++) {
                    const int32_t bit = (four < most[half] ? four : most[half]) * bits + shift[half];
                    const uint32_t *word = letters[half] + (bit >> 5);
                    coming[half] = lw_four_bytes(word[0], word[1], (uint32_t)(bit & 31));
                }
                int32_t row = four - in_group;
#pragma unroll 1
                for (const int32_t end_row = row + 4; row < end_row; row++) {
                    uint32_t scores[HALVES], left = lw_from_below(LW_ALL_LANES, s.h[C - 1], 1, LW_WARP);
#pragma unroll
                    for (int p = 0; p < PIECES; p++)
                        s.f[p] = lw_from_below(LW_ALL_LANES, s.f[p], 1, LW_WARP);
                    if (in_group == 0) {
                        left = next.x;
                        s.f[0] = next.y;
                        if (PIECES == 2)
                            s.f[PIECES - 1] = next2;
                        if (strip > 0 && row + 1 < bundle.rows) {
                            next = lw_taken2(taken + row + 1);
                            if (PIECES == 2)
                                next2 = lw_taken(taken2 + row + 1);
                        }
                    }
#pragma unroll
                    for (int half = 0; half < HALVES; half++) {
                        scores[half] =
                            lookup + half * half_bytes + (coming[half] & letter_mask) * letter_bytes;
                        coming[half] >>= bits;
                    }
                    if (row >= 0) {
                        if (!DIRECTIONS && (row & (a.tile - 1)) == 0 && row > 0 && row < bundle.rows) {
                            const int64_t from = (int64_t)(row / a.tile - 1) * total;
#pragma unroll
                            for (int c = 0; c < C; c += 2)
                                *(uint4 *)(above + from + c) =
                                    make_uint4(s.h[c], s.e[0][c], s.h[c + 1], s.e[0][c + 1]);
                            if (PIECES == 2)
#pragma unroll
                                for (int c = 0; c < C; c += 4)
                                    *(uint4 *)(above2 + from + c) =
                                        make_uint4(s.e[PIECES - 1][c], s.e[PIECES - 1][c + 1],
                                                   s.e[PIECES - 1][c + 2], s.e[PIECES - 1][c + 3]);
                        }
                        uint32_t out[WORDS];
                        path_row<WORD, PIECES, DIRECTIONS, HALVES, WORDS>(by, scores, diagonal, s, out);
                        if (DIRECTIONS) { /* rows behind the last one go into the slack of a strip */
                            if (WORDS == 2)
                                *(uint2 *)directions = make_uint2(out[0], out[WORDS - 1]);
                            else
#pragma unroll
                                for (int w = 0; w + 3 < WORDS; w += 4)
                                    *(uint4 *)(directions + w) =
                                        make_uint4(out[w], out[w + 1], out[w + 2], out[w + 3]);
                        }
                        if (given && row < bundle.rows) {
                            given[row] = make_uint2(s.h[C - 1], s.f[0]);
                            if (PIECES == 2)
                                given2[row] = s.f[PIECES - 1];
                        }
                        const uint32_t v =
                            a.ends_at == LW_END_ANYWHERE ? greatest<WORD, PIECES>(s) : s.h[C - 1];
#pragma unroll
                        for (int half = 0; half < HALVES; half++) {
                            const int32_t value = WORD == LW_WORD_S32 ? (int32_t)v
                                                  : half              ? lw_high2(v)
                                                                      : lw_low2(v);
                            if (value > end[half].score &&
                                (uint32_t)(row - first_end[half]) < (uint32_t)n_ends[half]) {
                                end[half].score = value, end[half].row = row;
                                if (DIRECTIONS && a.ends_at == LW_END_ANYWHERE) {
                                    /* which of these columns it was is looked up in the end */
                                    uint4 *keep = (uint4 *)a.best_rows +
                                                  (((int64_t)at * HALVES + half) * LW_WARP + lane) * (C / 4);
#pragma unroll
                                    for (int c = 0; c < C; c += 4)
                                        keep[c / 4] = make_uint4(s.h[c], s.h[c + 1], s.h[c + 2], s.h[c + 3]);
                                }
                            }
                        }
                    }
                    if (DIRECTIONS) /* four steps of a lane lie together */
                        directions += WORDS;
                    diagonal = left;
                }
                if (DIRECTIONS)
                    directions += (LW_WARP - 1) * 4 * WORDS;
            }
            if (lane == LW_WARP - 1 && !last_strip && to >= LW_WARP)
                lw_publish(a.progress + at, to - (LW_WARP - 1));
        }
        for (int half = 0; half < HALVES; half++) {
            const int32_t index = group * HALVES + half;
            lw_path_end best = best_of_group(end[half], in_group, lanes);
            if (in_group == 0 && index < bundle.n) {
                if (best.row != INT32_MAX)
                    best.score =
                        (best.score - (WORD == LW_WORD_S16 ? lw_low2(by.zero) : (int32_t)by.zero)) / by.scale;
                a.ends[(int64_t)at * LW_PATH_ENDS + index] = best;
            }
        }
        lw_warp_sync(LW_ALL_LANES); /* the profile is free */
    }
}

const lw_fill_kernel lw_fill_kernels[2][2][2] = {
    {{path_fill<LW_WORD_S16, 1, 0>, path_fill<LW_WORD_S16, 1, 1>},
     {path_fill<LW_WORD_S16, 2, 0>, path_fill<LW_WORD_S16, 2, 1>}},
    {{path_fill<LW_WORD_S32, 1, 0>, path_fill<LW_WORD_S32, 1, 1>},
     {path_fill<LW_WORD_S32, 2, 0>, path_fill<LW_WORD_S32, 2, 1>}}};

int64_t lw_fill_shared_bytes(int halves, int n_letters)
{
    return (int64_t)n_letters * (halves == 2 ? 2 : LW_PATH_COLUMNS / 4) * LW_WARP * (int64_t)sizeof(uint4);
}
