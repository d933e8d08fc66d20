/* align_cuda_fill.cu - scores of jobs, and either the direction of every cell or checkpoints (align_paths.h).
 *
 * Directions cost no comparison: scores are held as 4 v (two pieces: 8 v) and the lowest bits say where they
 * come from, so that the maximum selects the direction with the score, and of equal scores the direction that
 * the tie rule wants: start, diagonal, deletion, insertion. A gap state has further bits, which are taken off
 * before it is compared with others: a bit above the opened state's tag if it extends. E and F are opened
 * with one tag, so that they share the word H - open; taking more off F than off E puts it behind E.
 *
 *     one piece:  start 3, diagonal 2, E 1 (opened 1, extended 3), F 0 (opened 1, extended 3)
 *     two pieces: start 5, diagonal 4, E 3, E2 2, F 1, F2 0 (opened 3, 2, 3, 2, extended 7, 6, 7, 6)
 *
 * Two scores a word: both are offset so that they stay above 0, and 32-bit additions of penalties do not
 * borrow from the upper one. */
#include "align/path_cell.cuh"
#include "common/dp4a.cuh"

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

/* The profile of a warp: scores of a letter of the target for the lane's columns, bytes with two scores a
 * word
 * ([query of the word][eight lanes][letter][lane] 16 bytes), else words ([eight lanes][letter][four
 * columns][lane] 16 bytes). Eight lanes lie side by side, so that they never meet in a bank, and a letter's
 * place is its code times a weight that fits into a byte: letter_address(). */
template <int WORD> LW_DEVICE constexpr int letter_quads(void)
{
    return WORD == LW_WORD_S16 ? 8 : LW_PATH_COLUMNS / 4 * 8;
}

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
                uint4 *at = profile + letter * letter_quads<WORD>();
                int32_t s[4];
                for (int k = 0; k < 4; k++)
                    s[k] = code[k] < 0
                               ? a.by.pad
                               : a.table->score[code[k] * LW_MAX_LETTERS + letter] * a.by.scale + a.by.tag;
                if (WORD == LW_WORD_S16)
                    ((uint32_t *)(at + half * a.n_letters * LW_WARP))[chunk] =
                        (uint32_t)(s[0] & 255) | (uint32_t)(s[1] & 255) << 8 | (uint32_t)(s[2] & 255) << 16 |
                        (uint32_t)(s[3] & 255) << 24;
                else
                    at[chunk * 8] =
                        make_uint4((uint32_t)s[0], (uint32_t)s[1], (uint32_t)s[2], (uint32_t)s[3]);
            }
        }
    lw_warp_sync(LW_ALL_LANES);
}

/* The profile of one lane of each group, which goes on to other columns: `column` of the first in group
 * order, by all lanes of the group. */
template <int WORD, int HALVES>
LW_DEVICE void rebuild_profile(const lw_fill_args &a, const lw_bundle &b, uint4 *profiles, int32_t lane,
                               int32_t first_column)
{
    const int32_t group = lw_lane() / b.lanes, to = group * b.lanes + lane,
                  total = b.blocks * LW_PATH_COLUMNS;
    uint4 *profile = profiles + (to >> 3) * a.n_letters * letter_quads<WORD>() + (to & 7);
    if (to < LW_WARP)
        for (int half = 0; half < HALVES; half++) {
            const int32_t index = group * HALVES + half;
            const lw_path_job job = a.jobs[b.first + (index < b.n ? index : 0)];
            for (int32_t c = lw_lane() - group * b.lanes; c < LW_PATH_COLUMNS; c += b.lanes) {
                const int32_t i = first_column + c - (total - job.qlen);
                const int code = i >= 0 ? lw_letter_at(a.queries, job.query + i) : -1;
                for (int letter = 0; letter < a.n_letters; letter++) {
                    uint4 *at = profile + letter * letter_quads<WORD>();
                    const int32_t s =
                        code < 0 ? a.by.pad
                                 : a.table->score[code * LW_MAX_LETTERS + letter] * a.by.scale + a.by.tag;
                    if (WORD == LW_WORD_S16)
                        ((int8_t *)(at + half * a.n_letters * LW_WARP))[c] = (int8_t)s;
                    else
                        ((int32_t *)(at + c / 4 * 8))[c % 4] = s;
                }
            }
        }
    lw_warp_sync(LW_ALL_LANES);
}

/* Where the profile of letter k of four lies: a product on the FMA pipe. Letters come times 4 where a letter
 * takes 512 bytes. */
LW_DEVICE uint32_t letter_address(uint32_t lookup, uint32_t four, int k)
{
    return (uint32_t)lw_dp4a_uu(four, 128u << (8 * k), (int32_t)lookup);
}

/* The letters of a lane's rows, eight at a time, a byte each in two words; those of four bits are read one
 * round ahead. Behind a window's end any letter will do, but there must be one. */
typedef struct feed {
    const uint32_t *words;
    uint32_t now, then;
    int32_t last, shift;
} feed;

LW_DEVICE uint32_t feed_word(const feed &f, int32_t at)
{
    return f.words[at < f.last ? at : f.last];
}

/* Letters from number `letter` on, `most` of them there; the first to be taken are those of `eighth`. */
LW_DEVICE feed feed_of(const lw_letters &l, int64_t letter, int32_t most, int32_t eighth)
{
    const int64_t bit = letter * l.bits;
    feed f;
    f.words = l.words + (bit >> 5);
    f.shift = (int32_t)(bit & 31);
    f.last = (int32_t)(((int64_t)most * l.bits + f.shift) >> 5) + 1;
    f.now = feed_word(f, eighth);
    f.then = feed_word(f, eighth + 1);
    return f;
}

LW_DEVICE uint2 feed_eight(feed &f, int bits, int32_t eighth)
{
    uint2 eight;
    if (bits == 4) {
        const uint32_t x = lw_four_bytes(f.now, f.then, (uint32_t)f.shift);
        const uint32_t even = x & 0x0f0f0f0fu, odd = x >> 4 & 0x0f0f0f0fu;
        eight.x = lw_bytes_in_turn(even, odd, 0);
        eight.y = lw_bytes_in_turn(even, odd, 1);
        f.now = f.then;
        f.then = feed_word(f, eighth + 2);
    } else {
        const uint32_t middle = feed_word(f, 2 * eighth + 1);
        eight.x = lw_four_bytes(feed_word(f, 2 * eighth), middle, (uint32_t)f.shift);
        eight.y = lw_four_bytes(middle, feed_word(f, 2 * eighth + 2), (uint32_t)f.shift);
    }
    return eight;
}

template <int WORD, int PIECES> struct states {
    uint32_t h[LW_PATH_COLUMNS], e[PIECES][LW_PATH_COLUMNS];
};

/* Tags taken off. With one piece as a product: as differences the compiler gave a quarter of them to the ALU,
 * which cost 8 %. */
template <int PIECES> LW_DEVICE uint32_t without(const lw_path_arithmetic &by, uint32_t value, uint32_t tags)
{
    return PIECES == 1 ? tags * by.minus + value : value - tags;
}

/* One letter of the target(s) against the lane's columns. `profile` holds the addresses of that letter's
 * scores. */
template <int WORD, int PIECES, int DIRECTIONS, int HALVES, int WORDS>
LW_DEVICE void path_row(const lw_path_arithmetic &by, const uint32_t (&profile)[HALVES], uint32_t diagonal,
                        states<WORD, PIECES> &s, uint32_t (&f)[PIECES], uint32_t (&out)[WORDS])
{
    constexpr int C = LW_PATH_COLUMNS, PER_WORD = C / WORDS;
    constexpr uint32_t SOURCE = each<WORD>(PIECES == 2 ? 7 : 3);
    constexpr uint32_t E_BITS = each<WORD>(PIECES == 2 ? 4 : 2), F_BITS = each<WORD>(PIECES == 2 ? 6 : 3);
    uint4 a4 = lw_shared_load4(profile[0]), b4 = a4;
    if (WORD == LW_WORD_S16)
        b4 = lw_shared_load4(profile[HALVES - 1]);
    uint32_t t = 0, e_bits[PIECES] = {}, e_next[PIECES] = {};
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
                    a4 = lw_shared_load4(profile[0] + n / 4 * 8 * (uint32_t)sizeof(uint4));
                score = n % 4 == 0 ? a4.x : n % 4 == 1 ? a4.y : n % 4 == 2 ? a4.z : a4.w;
            }
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                clean[p] = s.e[p][n];
                if (DIRECTIONS) {
                    bits[p] = clean[p] & E_BITS;
                    clean[p] = without<PIECES>(by, clean[p], bits[p]);
                }
            }
            next = add_max<WORD>(c < 0 ? diagonal : s.h[c < 0 ? 0 : c], score, clean[0]);
        }
        if (c >= 0) {
            uint32_t f_bits[PIECES];
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                f_bits[p] = 0;
                if (DIRECTIONS) {
                    f_bits[p] = f[p] & F_BITS;
                    f[p] = without<PIECES>(by, f[p], f_bits[p]);
                }
            }
            uint32_t best = PIECES == 2 ? max_of3<WORD>(t, e_next[PIECES - 1], f[0]) : t;
            best = max_of3<WORD>(best, f[PIECES - 1], by.floor);
            if (DIRECTIONS) {
                uint32_t source = best & SOURCE;
                best = without<PIECES>(by, best, source);
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
                /* a gap opened behind F itself is never better than F extended */
                f[p] = add_max<WORD>(f[p], by.extend_f[p],
                                     !DIRECTIONS && PIECES == 1 ? t * by.one + by.open[p] : opened);
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

/* A lane on its way down a strip. It takes LW_PATH_SIDE rows side by side: what one waits for the other
 * computes. */
template <int WORD, int PIECES, int HALVES> struct lane_state {
    states<WORD, PIECES> s;
    uint32_t diagonal;
    uint32_t last_h[LW_PATH_SIDE], last_f[LW_PATH_SIDE][PIECES]; /* behind the last column */
    uint32_t best;                                               /* what H must exceed to be an end */
    int32_t end_row[HALVES], limit[HALVES]; /* where it was; rows that may be ends lie in front of that */
    uint32_t lookup[HALVES];                /* the lane's part of the profile */
    uint32_t *directions;
    uint2 *given, *above;
    uint32_t *given2, *above2;
    int32_t from, rows, at; /* the strip's first row, and behind its last */
    int32_t below;          /* the lane that has the columns on the left */
    bool leads, watches;    /* nobody has those; looks for ends in every row */
};

/* H exceeds what the lane has seen: notes the first row of its best, and with directions its values there, as
 * which of these columns it was is looked up in the end. */
template <int WORD, int PIECES, int DIRECTIONS, int HALVES>
LW_DEVICE void note_end(const lw_fill_args &a, lane_state<WORD, PIECES, HALVES> &l, uint32_t v, int32_t row)
{
    constexpr int C = LW_PATH_COLUMNS;
#pragma unroll
    for (int half = 0; half < HALVES; half++) {
        const int32_t value = WORD == LW_WORD_S32 ? (int32_t)v : half ? lw_high2(v) : lw_low2(v);
        const int32_t most = WORD == LW_WORD_S32 ? (int32_t)l.best
                             : half              ? lw_high2(l.best)
                                                 : lw_low2(l.best);
        if (value > most && row < l.limit[half] && (a.ends_at != LW_END_CORNER || row == l.limit[half] - 1)) {
            l.end_row[half] = row;
            l.best = WORD == LW_WORD_S32 ? v
                     : half              ? lw_pack2(lw_low2(l.best), value)
                                         : lw_pack2(value, lw_high2(l.best));
            if (DIRECTIONS && a.ends_at == LW_END_ANYWHERE) {
                uint4 *keep =
                    (uint4 *)a.best_rows + (((int64_t)l.at * HALVES + half) * LW_WARP + lw_lane()) * (C / 4);
#pragma unroll
                for (int c = 0; c < C; c += 4)
                    keep[c / 4] = make_uint4(l.s.h[c], l.s.h[c + 1], l.s.h[c + 2], l.s.h[c + 3]);
            }
        }
    }
}

/* H and E in front of `row`, which is a tile's first. The products keep the values' registers free of the
 * order that these stores need. */
template <int WORD, int PIECES, int HALVES>
LW_DEVICE void keep_above(const lw_fill_args &a, const lw_path_arithmetic &by,
                          const lane_state<WORD, PIECES, HALVES> &l, int32_t row)
{
    constexpr int C = LW_PATH_COLUMNS;
    static_assert(4 % LW_PATH_SIDE == 0, "a tile's first row is the first of those side by side");
    const int64_t from = (int64_t)(((row - l.from) >> a.tile_bits) - 1) * LW_PATH_STRIP;
#pragma unroll
    for (int c = 0; c < C; c += 2)
        *(uint4 *)(l.above + from + c) = make_uint4(l.s.h[c] * by.one, l.s.e[0][c] * by.one,
                                                    l.s.h[c + 1] * by.one, l.s.e[0][c + 1] * by.one);
    if (PIECES == 2)
#pragma unroll
        for (int c = 0; c < C; c += 4)
            *(uint4 *)(l.above2 + from + c) =
                make_uint4(l.s.e[PIECES - 1][c] * by.one, l.s.e[PIECES - 1][c + 1] * by.one,
                           l.s.e[PIECES - 1][c + 2] * by.one, l.s.e[PIECES - 1][c + 3] * by.one);
}

/* What the lane with the columns on the left has; with directions that may be any lane of the group. */
template <int DIRECTIONS> LW_DEVICE uint32_t from_left(uint32_t value, int32_t below)
{
    return DIRECTIONS ? lw_from_lane(LW_ALL_LANES, value, below, LW_WARP)
                      : lw_from_below(LW_ALL_LANES, value, 1, LW_WARP);
}

/* The lane's next rows: letters `k` and following of `four`. PLAIN: every lane is within its rows, and none
 * at the last one if alignments end there; 1: they do not end anywhere but in the last column. */
template <int WORD, int PIECES, int DIRECTIONS, int HALVES, int PLAIN>
LW_DEVICE void next_rows(const lw_fill_args &a, const lw_path_arithmetic &by,
                         lane_state<WORD, PIECES, HALVES> &l, const uint32_t (&four)[HALVES], int k,
                         uint32_t staged, int32_t row, bool checkpoint)
{
    constexpr int C = LW_PATH_COLUMNS, WORDS = C * 4 * PIECES * HALVES / 32, SIDE = LW_PATH_SIDE;
    uint32_t left[SIDE], v[SIDE];
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
        left[r] = from_left<DIRECTIONS>(l.last_h[r], l.below);
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            l.last_f[r][p] = from_left<DIRECTIONS>(l.last_f[r][p], l.below);
        lw_shared_take<PIECES>(staged + (uint32_t)((k + r) * sizeof(uint4)), l.leads, left[r], l.last_f[r]);
    }
    if (PLAIN || row >= (DIRECTIONS ? 0 : l.from)) {
        if (!DIRECTIONS && checkpoint && (row & a.keep_mask) == 0 &&
            (PLAIN || (row > l.from && row < l.rows)))
            keep_above<WORD, PIECES, HALVES>(a, by, l, row);
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            uint32_t out[WORDS], scores[HALVES];
#pragma unroll
            for (int half = 0; half < HALVES; half++)
                scores[half] = letter_address(l.lookup[half], four[half], k + r);
            path_row<WORD, PIECES, DIRECTIONS, HALVES, WORDS>(
                by, scores, r > 0 ? left[r > 0 ? r - 1 : 0] : l.diagonal, l.s, l.last_f[r], out);
            l.last_h[r] = l.s.h[C - 1];
            if (DIRECTIONS) { /* rows behind the last one go into the slack of a strip */
                uint32_t *directions = l.directions + (k + r) * WORDS;
                if (WORDS == 2)
                    *(uint2 *)directions = make_uint2(out[0], out[WORDS - 1]);
                else
#pragma unroll
                    for (int w = 0; w + 3 < WORDS; w += 4)
                        *(uint4 *)(directions + w) = make_uint4(out[w], out[w + 1], out[w + 2], out[w + 3]);
            }
            if (l.given && (PLAIN || row + r < l.rows)) {
                l.given[row + r] = make_uint2(l.s.h[C - 1], l.last_f[r][0]);
                if (PIECES == 2)
                    l.given2[row + r] = l.last_f[r][PIECES - 1];
            }
            v[r] = PLAIN != 1 && a.ends_at == LW_END_ANYWHERE ? greatest<WORD, PIECES>(l.s) : l.s.h[C - 1];
            if (!PLAIN && max_of3<WORD>(v[r], v[r], l.best) != l.best)
                note_end<WORD, PIECES, DIRECTIONS, HALVES>(a, l, v[r], row + r);
        }
        if (PLAIN && l.watches) {
            uint32_t most = l.best;
#pragma unroll
            for (int r = 0; r < SIDE; r++)
                most = max_of3<WORD>(most, most, v[r]);
            if (most != l.best)
#pragma unroll
                for (int r = 0; r < SIDE; r++)
                    note_end<WORD, PIECES, DIRECTIONS, HALVES>(a, l, v[r], row + r);
        }
    }
    l.diagonal = left[SIDE - 1];
}

/* The lane's columns come from outside the band into it. */
template <int WORD, int PIECES, int HALVES>
LW_DEVICE void start_outside(const lw_path_arithmetic &by, lane_state<WORD, PIECES, HALVES> &l)
{
    l.diagonal = by.outside_h;
#pragma unroll
    for (int c = 0; c < LW_PATH_COLUMNS; c++) {
        l.s.h[c] = by.outside_h;
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            l.s.e[p][c] = by.outside_f[p];
    }
}

/* A strip's bundle, read again so that it need not stay in registers while rows are computed. */
LW_DEVICE const lw_bundle &bundle_again(const lw_fill_args &a, int32_t take)
{
    return a.bundles[a.strips[lw_opaque((uint32_t)take)].bundle];
}

template <int WORD, int PIECES, int DIRECTIONS>
__global__ void __launch_bounds__(128, PIECES == 2 ? 3 : 4) path_fill(const lw_fill_args a)
{
    constexpr int C = LW_PATH_COLUMNS, HALVES = WORD == LW_WORD_S16 ? 2 : 1, SIDE = LW_PATH_SIDE;
    constexpr int WORDS = C * 4 * PIECES * HALVES / 32, BLOCK = LW_PATH_HANDED;
    const int lane = lw_lane(), warp = (int)threadIdx.x / LW_WARP;
    const int32_t warp_quads = HALVES * a.n_letters * letter_quads<WORD>() * 4;
    uint4 *staged = lw_path_shared + warp * (warp_quads + BLOCK);
    uint4 *profiles = staged + BLOCK;
    uint4 *profile = profiles + (lane >> 3) * a.n_letters * letter_quads<WORD>() + (lane & 7);
    const lw_path_arithmetic by = a.by;

    for (;;) {
        int32_t take = 0;
        if (lane == 0)
            take = atomicAdd(a.next, 1);
        take = (int32_t)lw_from_lane(LW_ALL_LANES, (uint32_t)take, 0, LW_WARP);
        if (take >= a.n_strips)
            return;
        const int32_t strip = a.strips[take].strip;
        const lw_bundle bundle = a.bundles[a.strips[take].bundle];
        const int32_t at = bundle.first_strip + strip;
        const int lanes = bundle.lanes, group = lane / lanes, in_group = lane - group * lanes;
        const int32_t total = bundle.strips * bundle.blocks * C;
        const bool last_strip = strip == bundle.strips - 1, corner = a.ends_at == LW_END_CORNER;
        const lw_rows rows = DIRECTIONS ? lw_rows{0, bundle.rows} : lw_strip_rows(&bundle, strip, a.tile);
        const int32_t first_column = (strip * lanes + in_group) * C;

        lane_state<WORD, PIECES, HALVES> l;
        lw_path_job job[HALVES];
        feed letters[HALVES];
        int32_t plain_rows = rows.to, least[HALVES];
        for (int half = 0; half < HALVES; half++) {
            const int32_t index = group * HALVES + half;
            const bool real = index < bundle.n;
            job[half] = a.jobs[bundle.first + (real ? index : 0)];
            const bool last = last_strip && in_group == bundle.blocks - 1;
            const bool ends = real && (a.ends_at == LW_END_ANYWHERE || last);
            l.limit[half] = ends ? job[half].tlen : 0;
            l.end_row[half] = INT32_MAX;
            least[half] = !ends                          ? (WORD == LW_WORD_S32 ? INT32_MAX : INT16_MAX)
                          : a.ends_at == LW_END_ANYWHERE ? lw_low2(by.zero)
                                                         : (WORD == LW_WORD_S32 ? INT32_MIN : INT16_MIN);
            letters[half] = feed_of(a.targets, job[half].target - SIDE * in_group,
                                    job[half].tlen + SIDE * in_group, rows.from >> 3);
            l.lookup[half] =
                lw_shared_address(profile) + half * (uint32_t)(a.n_letters * LW_WARP * sizeof(uint4));
            if (corner && real && last_strip && job[half].tlen - 1 < plain_rows)
                plain_rows = job[half].tlen - 1;
        }
        l.best = WORD == LW_WORD_S32 ? (uint32_t)least[0] : lw_pack2(least[0], least[HALVES - 1]);
        plain_rows = lw_reduce_min_xor(LW_ALL_LANES, plain_rows, LW_WARP);
        build_profile<WORD, HALVES>(a, profile, job, first_column, total);

        l.diagonal = by.edge_h;
#pragma unroll
        for (int c = -1; c < C; c++) {
            const int32_t i = first_column + c + 1 - total;
            uint32_t h = word_of<WORD>(by, lw_first_row<PIECES>(a, i + job[0].qlen),
                                       lw_first_row<PIECES>(a, i + job[HALVES - 1].qlen));
            if (c < 0) {
                l.diagonal = first_column > 0 ? h : l.diagonal;
                continue;
            }
            l.s.h[c < 0 ? 0 : c] = h;
#pragma unroll
            for (int p = 0; p < PIECES; p++)
                l.s.e[p][c < 0 ? 0 : c] = h + by.open[p];
        }
        if (rows.from > 0)
            start_outside<WORD, PIECES, HALVES>(by, l);
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            l.last_h[r] = l.s.h[C - 1];
#pragma unroll
            for (int p = 0; p < PIECES; p++)
                l.last_f[r][p] = by.edge_f[p];
        }

        /* the lane's row at a time, which goes by the rows of block 0 */
        int32_t behind = SIDE * in_group;
        const int32_t times = rows.to + SIDE * (bundle.blocks - 1);
        const int32_t slots = lw_path_slots(bundle.rows, bundle.blocks);
        int32_t turns = 0, turn = bundle.blocks > lanes ? lw_band_turn(bundle.high, lanes, 0) : INT32_MAX;
        lw_rows left_rows = {0, bundle.rows};
        const uint2 *taken = NULL;
        const uint32_t *taken2 = NULL;
        l.from = DIRECTIONS ? 0 : rows.from;
        l.rows = rows.to;
        l.at = at;
        l.below = group * lanes + (in_group > 0 ? in_group : lanes) - 1;
        l.below = l.below < LW_WARP ? l.below : lane; /* of a group cut short */
        l.leads = in_group == 0;
        l.watches = a.ends_at == LW_END_ANYWHERE || (a.ends_at == LW_END_LAST_COLUMN && last_strip);
        l.given = l.above = NULL;
        l.given2 = l.above2 = l.directions = NULL;
        if (DIRECTIONS) {
            l.directions = a.scratch + bundle.scratch + ((int64_t)strip * slots * LW_WARP + lane * 4) * WORDS;
            uint2 *border = (uint2 *)(a.border + bundle.border);
            uint32_t *border2 = (uint32_t *)(border + (int64_t)(bundle.strips - 1) * bundle.rows);
            taken = border + (int64_t)(strip - 1) * bundle.rows;
            taken2 = border2 + (int64_t)(strip - 1) * bundle.rows;
            if (lane == LW_WARP - 1 && !last_strip) {
                l.given = border + (int64_t)strip * bundle.rows;
                l.given2 = border2 + (int64_t)strip * bundle.rows;
            }
        } else {
            const lw_checkpoints keep = lw_checkpoints_of(a, bundle);
            const int32_t tile = a.scores ? strip % LW_PATH_TURNS : (first_column + C) / a.tile - 1;
            const int32_t left_tile =
                a.scores ? (strip + 1) % LW_PATH_TURNS : strip * (LW_PATH_STRIP / a.tile) - 1;
            if (strip > 0)
                left_rows = lw_strip_rows(&bundle, strip - 1, a.tile);
            taken = keep.behind + (int64_t)left_tile * bundle.height - left_rows.from;
            taken2 = keep.behind2 + (int64_t)left_tile * bundle.height - left_rows.from;
            if ((first_column + C) % a.tile == 0) {
                l.given = keep.behind + (int64_t)tile * bundle.height - rows.from;
                l.given2 = keep.behind2 + (int64_t)tile * bundle.height - rows.from;
            }
            l.above = keep.above + strip * keep.strip_above + in_group * C;
            l.above2 = keep.above2 + strip * keep.strip_above + in_group * C;
        }
        /* In plain rows every lane is behind the strip's first, above which there are no checkpoints. With
         * directions the values of the row that holds the best end are needed before the next row. */
        const int32_t plain_from =
            DIRECTIONS && a.ends_at == LW_END_ANYWHERE ? INT32_MAX : rows.from + SIDE * (lanes - 1) + 1;
        /* down a band nothing but the end in the last block needs a check */
        if (bundle.blocks > lanes)
            plain_rows += SIDE * (bundle.blocks - 1);
        if (strip == 0)
            for (int32_t k = lane; k < BLOCK; k += LW_WARP)
                staged[k] = make_uint4(by.edge_h, by.edge_f[0], by.edge_f[PIECES - 1], 0);
        lw_warp_sync(LW_ALL_LANES);

        for (int32_t block = rows.from; block < times; block += BLOCK) {
            if (strip > 0) {
                if (lane == 0)
                    lw_await(a.progress + at - 1,
                             block + BLOCK < left_rows.to ? block + BLOCK : left_rows.to);
                lw_warp_sync(LW_ALL_LANES);
                for (int32_t k = lane; k < BLOCK; k += LW_WARP) {
                    uint4 border = make_uint4(by.outside_h, by.outside_f[0], by.outside_f[PIECES - 1], 0);
                    if (block + k < left_rows.to) {
                        const uint2 w = lw_taken2(taken + block + k);
                        border = make_uint4(w.x, w.y, PIECES == 2 ? lw_taken(taken2 + block + k) : 0, 0);
                    }
                    staged[k] = border;
                }
                lw_warp_sync(LW_ALL_LANES);
            }
            const int32_t to = block + BLOCK < times ? block + BLOCK : times;
            uint32_t border_at = lw_shared_address(staged);
#pragma unroll 1
            for (int32_t eight = block; eight < to; eight += 8) {
                /* lanes whose columns have left the band go on */
                while (DIRECTIONS && eight >= turn) {
                    const lw_bundle &b = bundle_again(a, take);
                    const int32_t from = turns % b.lanes, next = turns + b.lanes;
                    const int32_t my_group = lane / b.lanes, me = lane - my_group * b.lanes;
                    lw_warp_sync(LW_ALL_LANES);
                    if (turns == 0)
                        for (int32_t k = lane; k < BLOCK; k += LW_WARP)
                            staged[k] =
                                make_uint4(by.outside_h, by.outside_f[0], by.outside_f[PIECES - 1], 0);
                    if (next < b.blocks)
                        rebuild_profile<WORD, HALVES>(a, b, profiles, from, next * C);
                    l.leads = me == (turns + 1) % b.lanes;
                    if (me == from && next < b.blocks) {
                        start_outside<WORD, PIECES, HALVES>(by, l);
                        behind = SIDE * next;
                        for (int half = 0; half < HALVES; half++) {
                            const int32_t index = my_group * HALVES + half;
                            const lw_path_job j = a.jobs[b.first + (index < b.n ? index : 0)];
                            letters[half] =
                                feed_of(a.targets, j.target - behind, j.tlen + behind, eight >> 3);
                            l.limit[half] = next == b.blocks - 1 && index < b.n ? j.tlen : 0;
                        }
                        if (next == b.blocks - 1)
                            l.best = each<WORD>(WORD == LW_WORD_S32 ? (uint32_t)INT32_MIN : 0x8000u);
                    }
                    lw_warp_sync(LW_ALL_LANES);
                    turn = lw_band_turn(b.high, b.lanes, ++turns);
                }
                uint32_t four[HALVES], then[HALVES];
#pragma unroll
                for (int half = 0; half < HALVES; half++) {
                    const uint2 w = feed_eight(letters[half], a.targets.bits, eight >> 3);
                    four[half] = WORD == LW_WORD_S16 ? w.x : w.x << 2;
                    then[half] = WORD == LW_WORD_S16 ? w.y : w.y << 2;
                }
#pragma unroll 1
                for (int32_t time = eight; time < eight + 8 && time < to; time += 4) {
                    const int32_t row = time - behind;
                    const bool checkpoint = (time & a.keep_mask) < SIDE * LW_WARP;
                    const bool plain = time >= plain_from && time + 3 < plain_rows;
                    if (!DIRECTIONS && plain && a.ends_at == LW_END_ANYWHERE) {
#pragma unroll 1
                        for (int k = 0; k < 4; k += SIDE)
                            next_rows<WORD, PIECES, DIRECTIONS, HALVES, 2>(a, by, l, four, k, border_at,
                                                                           row + k, checkpoint);
                    } else if (plain) {
#pragma unroll
                        for (int k = 0; k < 4; k += SIDE)
                            next_rows<WORD, PIECES, DIRECTIONS, HALVES, 1>(a, by, l, four, k, border_at,
                                                                           row + k, checkpoint);
                    } else {
#pragma unroll 1
                        for (int k = 0; k < 4 && time + k < to; k += SIDE)
                            next_rows<WORD, PIECES, DIRECTIONS, HALVES, 0>(a, by, l, four, k, border_at,
                                                                           row + k, checkpoint);
                    }
                    border_at += 4 * (uint32_t)sizeof(uint4);
                    if (DIRECTIONS) /* four rows of a lane lie together */
                        l.directions += LW_WARP * 4 * WORDS;
#pragma unroll
                    for (int half = 0; half < HALVES; half++)
                        four[half] = then[half];
                }
            }
            lw_warp_sync(LW_ALL_LANES); /* the border has been read */
            if (lane == LW_WARP - 1 && !last_strip && to > SIDE * (LW_WARP - 1))
                lw_publish(a.progress + at, to - SIDE * (LW_WARP - 1));
        }
        const lw_bundle &b = bundle_again(a, take);
        const int32_t number = a.strips[take].strip;
        const int my_group = lane / b.lanes, me = lane - my_group * b.lanes;
        for (int half = 0; half < HALVES; half++) {
            const int32_t index = my_group * HALVES + half;
            lw_path_end end;
            end.score = WORD == LW_WORD_S32 ? (int32_t)l.best : half ? lw_high2(l.best) : lw_low2(l.best);
            end.row = l.end_row[half];
            end.column = (number * b.lanes + me - b.strips * b.blocks) * C +
                         a.jobs[b.first + (index < b.n ? index : 0)].qlen;
            if (end.row == INT32_MAX)
                end.score = INT32_MIN;
            end = best_of_group(end, me, b.lanes);
            if (me == 0 && index < b.n) {
                if (end.row != INT32_MAX)
                    end.score =
                        (end.score - (WORD == LW_WORD_S16 ? lw_low2(by.zero) : (int32_t)by.zero)) / by.scale;
                a.ends[(int64_t)(b.first_strip + number) * LW_PATH_ENDS + index] = end;
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
    return ((int64_t)n_letters * (halves == 2 ? 2 : LW_PATH_COLUMNS / 4) * LW_WARP + LW_PATH_HANDED) *
           (int64_t)sizeof(uint4);
}
