/* align_cuda_trace.cu - the paths of alignments whose end cells are known, on the GPU, in 32 bits.
 *
 * Each cell leaves four bits: where its H comes from (0 a local start, 1 the diagonal, 2 the deletion E, 3
 * the insertion F, the first of them that attains H), and whether E of the next row and F of the next column
 * extend a gap rather than open one (extending wins a tie). Short tasks keep the bits of their whole window
 * in device memory. Long ones keep H and E of every LW_TRACE_TILE_ROWS-th row and H and F of the last column
 * of each pass, and compute the bits of one tile between these again whenever the path enters it, so memory
 * grows with the lengths and not their product. */
#include "align/score_word.cuh"

enum { OP_M = 0, OP_I = 1, OP_D = 2 };

enum { FROM_START = 0, FROM_DIAGONAL = 1, FROM_DELETION = 2, FROM_INSERTION = 3, SOURCE = 3 };
enum { NEXT_DELETION_EXTENDS = 4, NEXT_INSERTION_EXTENDS = 8 };

/* As lw_row(), 32-bit scores only, with the four bits of column c at bit 4 (c % 8) of bits[c / 8]. */
template <int LOCAL, int C>
LW_DEVICE void row_with_directions(uint32_t profile, int32_t diagonal, int32_t open, int32_t extend,
                                   uint32_t (&h)[C], uint32_t (&e)[C], uint32_t &f,
                                   uint32_t (&bits)[(C + 7) / 8])
{
#pragma unroll
    for (int w = 0; w < (C + 7) / 8; w++)
        bits[w] = 0;
#pragma unroll
    for (int chunk = 0; chunk < (C + 3) / 4; chunk++) {
        uint4 s4 = lw_shared_load4(profile + chunk * LW_WARP * (uint32_t)sizeof(uint4));
        uint32_t s[4] = {s4.x, s4.y, s4.z, s4.w};
#pragma unroll
        for (int k = 0; k < 4 && chunk * 4 + k < C; k++) {
            const int c = chunk * 4 + k;
            int32_t t = diagonal + (int32_t)s[k], above = (int32_t)h[c], deletion = (int32_t)e[c];
            int32_t best = LOCAL ? lw_max3_relu(t, deletion, (int32_t)f) : lw_max3(t, deletion, (int32_t)f);
            uint32_t d = best == t ? FROM_DIAGONAL : best == deletion ? FROM_DELETION : FROM_INSERTION;
            if (LOCAL && best == 0)
                d = FROM_START;
            int32_t opened = best + open, longer = deletion + extend, wider = (int32_t)f + extend;
            d |= longer >= opened ? NEXT_DELETION_EXTENDS : 0;
            d |= wider >= opened ? NEXT_INSERTION_EXTENDS : 0;
            bits[c / 8] |= d << (c % 8 * 4);
            h[c] = (uint32_t)best;
            e[c] = (uint32_t)(longer > opened ? longer : opened);
            f = (uint32_t)(wider > opened ? wider : opened);
            diagonal = above;
        }
    }
}

/* A path on its way from its end to its start. */
typedef struct walk {
    int32_t i, j;  /* letters of query and window not yet consumed */
    int32_t state; /* OP_M: at H(i, j); OP_D, OP_I: in a gap whose last letter has been consumed */
    int32_t n_ops;
    uint32_t run; /* the operation being lengthened, as BAM has it; 0: none yet */
} walk;

/* Adds a letter to the path; ops (NULL: only count) gets finished operations, the last one of the path first,
 * towards lower addresses when `down`. */
LW_DEVICE void consume(walk &w, uint32_t op, uint32_t *ops, int down)
{
    if (w.run != 0 && (w.run & 15) == op) {
        w.run += 16;
    } else {
        if (w.run != 0) {
            if (ops)
                ops[down ? -w.n_ops : w.n_ops] = w.run;
            w.n_ops++;
        }
        w.run = 16 | op;
    }
    w.i -= op != OP_D;
    w.j -= op != OP_I;
    w.state = (int32_t)op;
}

/* One step along the border of the matrix. Returns false at the start of the alignment. */
template <int LOCAL> LW_DEVICE bool step_border(walk &w, int mode, uint32_t *ops, int down)
{
    if (LOCAL || (w.i == 0 && (w.j == 0 || mode == LW_SEMIGLOBAL)))
        return false;
    consume(w, w.i == 0 ? OP_D : OP_I, ops, down);
    return true;
}

/* One step from cell (i, j), both > 0, whose bits are d. */
template <int LOCAL> LW_DEVICE bool step_inside(walk &w, uint32_t d, uint32_t *ops, int down)
{
    if (w.state == OP_D && (d & NEXT_DELETION_EXTENDS)) {
        consume(w, OP_D, ops, down);
    } else if (w.state == OP_I && (d & NEXT_INSERTION_EXTENDS)) {
        consume(w, OP_I, ops, down);
    } else {
        uint32_t source = d & SOURCE;
        if (LOCAL && source == FROM_START)
            return false;
        consume(w, source == FROM_DIAGONAL ? OP_M : source == FROM_DELETION ? OP_D : OP_I, ops, down);
    }
    return true;
}

LW_DEVICE void finish(walk &w, uint32_t *ops, int down)
{
    if (w.run != 0) {
        if (ops)
            ops[down ? -w.n_ops : w.n_ops] = w.run;
        w.n_ops++;
    }
}

/* --- short tasks: fill, then walk -------------------------------------------------------------------------
 */

/* Passes over a query: modes other than local need a column of padding in front of it. */
template <int LOCAL, int G, int C> LW_DEVICE int32_t fill_passes(int32_t qlen)
{
    int32_t passes = (qlen + !LOCAL + G * C - 1) / (G * C);
    return passes > 0 ? passes : 1;
}

template <int LOCAL, int G, int C> __global__ void __launch_bounds__(128) trace_fill(const lw_trace_args a)
{
    constexpr int CHUNKS = (C + 3) / 4, WORDS = (C + 7) / 8;
    const uint32_t far = lw_word_of<LW_WORD_S32>(lw_far<LW_WORD_S32>(), 0);
    const int lane = lw_lane(), in_group = lane % G, warp = (int)threadIdx.x / LW_WARP;
    uint4 *profile = lw_shared + warp * (a.n_letters + !LOCAL) * CHUNKS * LW_WARP + lane;
    const uint32_t lookup = lw_shared_address(profile);
    const int64_t unit = (int64_t)blockIdx.x * (blockDim.x / LW_WARP) + warp;
    const int64_t index = unit * (LW_WARP / G) + lane / G;
    if (unit * (LW_WARP / G) >= a.n)
        return;
    lw_trace_item task = {0, 0, 0, 0, 0, 0};
    const bool real = index < a.n;
    task = a.items[real ? index : a.n - 1];
    const int32_t rows = real ? task.tlen + !LOCAL : 0;
    const int32_t item[2] = {real ? task.item : -1, -1}, qlen[2] = {task.qlen, 0};
    const int32_t n_rows = lw_reduce_max_xor(LW_ALL_LANES, rows, LW_WARP);
    const int32_t passes = G < LW_WARP ? 1 : fill_passes<LOCAL, G, C>(task.qlen);
    const uint8_t *letters = a.refs + task.ref - !LOCAL;
    uint32_t *out = a.scratch + task.scratch + lane;
    /* behind the directions of all passes: H and F of each row between two passes, updated in place as in
     * scoring */
    const int64_t pass_words = ((int64_t)n_rows + G - 1) * WORDS * LW_WARP;
    uint2 *border = (uint2 *)(a.scratch + task.scratch + passes * pass_words);
    for (int32_t pass = 0; pass < passes; pass++, out += pass_words) {
        lw_build_profile<LW_WORD_S32, LOCAL, C>(profile, a.queries, a.table, a.n_letters, a.mode, item, qlen,
                                                (pass * G + in_group) * C, passes * G * C);
        uint32_t h[C], e[C], f = far;
        int32_t diagonal = 0;
#pragma unroll
        for (int c = 0; c < C; c++)
            h[c] = 0, e[c] = far;
#pragma unroll 1
        for (int32_t step = 0; step < n_rows + G - 1; step++) {
            const int32_t row = step - in_group;
            const bool here = row >= 0 && row < rows;
            const int letter = !LOCAL && row <= 0 ? a.n_letters : here ? letters[row] : 0;
            uint32_t left = lw_from_below(LW_ALL_LANES, h[C - 1], 1, G), bits[WORDS];
            f = lw_from_below(LW_ALL_LANES, f, 1, G);
            if (in_group == 0) {
                left = 0, f = far;
                if (G == LW_WARP && pass > 0 && here)
                    left = border[row].x, f = border[row].y;
            }
            row_with_directions<LOCAL, C>(lookup + letter * lw_letter_bytes<C>(), diagonal, a.open, a.extend,
                                          h, e, f, bits);
            diagonal = (int32_t)left;
#pragma unroll
            for (int w = 0; w < WORDS; w++)
                out[((int64_t)step * WORDS + w) * LW_WARP] = bits[w];
            if (row < 0) {
                diagonal = 0;
#pragma unroll
                for (int c = 0; c < C; c++)
                    h[c] = 0, e[c] = far;
            }
            if (G == LW_WARP && pass < passes - 1 && lane == LW_WARP - 1 && here)
                border[row] = make_uint2(h[C - 1], f);
            if (in_group == G - 1 && row == rows - 1 && real && pass == passes - 1)
                a.results[index].score = (int32_t)h[C - 1];
        }
        lw_warp_sync(LW_ALL_LANES);
    }
}

template <int LOCAL, int G, int C> __global__ void __launch_bounds__(128) trace_walk(const lw_trace_args a)
{
    constexpr int WORDS = (C + 7) / 8;
    const int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= a.n)
        return;
    const lw_trace_item task = a.items[index];
    const uint32_t *directions = a.scratch + task.scratch + index % (LW_WARP / G) * G;
    const int32_t passes = G < LW_WARP ? 1 : fill_passes<LOCAL, G, C>(task.qlen);
    const int64_t pass_words =
        ((int64_t)task.tlen + !LOCAL + G - 1) * WORDS * LW_WARP; /* used with one task a warp */
    uint32_t *ops = NULL;
    walk w;
    for (int round = 0; round < 2; round++) { /* counts, then writes */
        w.i = task.qlen, w.j = task.tlen, w.state = OP_M, w.n_ops = 0, w.run = 0;
        for (bool more = true; more;) {
            if (w.i == 0 || w.j == 0) {
                more = step_border<LOCAL>(w, a.mode, ops, 1);
                continue;
            }
            int32_t column = passes * G * C - task.qlen + w.i - 1, pass = column / (G * C);
            int32_t lane = column / C % G, c = column % C;
            int64_t step = w.j - LOCAL + lane;
            uint32_t word = directions[pass * pass_words + (step * WORDS + c / 8) * LW_WARP + lane];
            more = step_inside<LOCAL>(w, word >> (c % 8 * 4) & 15, ops, 1);
        }
        finish(w, ops, 1);
        if (round == 0) {
            lw_trace_result *result = &a.results[index];
            result->n_ops = w.n_ops;
            result->qstart = w.i;
            result->tstart = w.j;
            result->ops = (int64_t)atomicAdd(a.ops_used, (unsigned long long)w.n_ops);
            if (result->ops + w.n_ops > a.ops_capacity)
                return; /* the host makes room and asks again */
            ops = a.ops + result->ops + w.n_ops - 1;
        }
    }
}

/* --- long tasks: one warp each, from the first row to the path --------------------------------------------
 */

template <int LOCAL> __global__ void __launch_bounds__(32) trace_long(const lw_trace_args a)
{
    constexpr int C = LW_TRACE_WIDE_COLUMNS, G = LW_WARP, WORDS = (C + 7) / 8;
    constexpr int32_t TILE = LW_TRACE_TILE_ROWS, WIDTH = G * C;
    const uint32_t far = lw_word_of<LW_WORD_S32>(lw_far<LW_WORD_S32>(), 0);
    const int lane = lw_lane();
    uint4 *profile = lw_shared + lane;
    const uint32_t lookup = lw_shared_address(profile);
    const lw_trace_item task = a.items[blockIdx.x];
    const int32_t item[2] = {task.item, -1}, qlen[2] = {task.qlen, 0};
    const int32_t rows = task.tlen + !LOCAL, passes = (task.qlen + !LOCAL + WIDTH - 1) / WIDTH;
    const int32_t tiles = (rows + TILE - 1) / TILE;
    const int64_t total = (int64_t)passes * WIDTH;
    const uint8_t *letters = a.refs + task.ref - !LOCAL;
    /* [tile][column]: H and E in front of the tile's first row; [pass][row]: H and F behind the pass */
    uint2 *above = (uint2 *)(a.scratch + task.scratch);
    uint2 *behind = above + (int64_t)tiles * total;
    uint32_t *directions = (uint32_t *)(behind + (int64_t)(passes - 1) * rows) + lane;
    uint32_t h[C], e[C], f = far, bits[WORDS];
    int32_t diagonal = 0;

    for (int32_t pass = 0; pass < passes; pass++) {
        const int32_t first_column = pass * WIDTH + lane * C;
        lw_build_profile<LW_WORD_S32, LOCAL, C>(profile, a.queries, a.table, a.n_letters, a.mode, item, qlen,
                                                first_column, (int32_t)total);
        f = far;
#pragma unroll 1
        for (int32_t step = 0; step < rows + G - 1; step++) {
            const int32_t row = step - lane;
            const bool here = row >= 0 && row < rows;
            const int letter = !LOCAL && row <= 0 ? a.n_letters : here ? letters[row] : 0;
            uint32_t left = lw_from_below(LW_ALL_LANES, h[C - 1], 1, G);
            f = lw_from_below(LW_ALL_LANES, f, 1, G);
            if (row <= 0) {
                diagonal = 0;
#pragma unroll
                for (int c = 0; c < C; c++)
                    h[c] = 0, e[c] = far;
            } else if (here && row % TILE == 0) {
#pragma unroll
                for (int c = 0; c < C; c++)
                    above[(int64_t)(row / TILE) * total + first_column + c] = make_uint2(h[c], e[c]);
            }
            if (lane == 0) {
                left = 0, f = far;
                if (pass > 0 && here)
                    left = behind[(int64_t)(pass - 1) * rows + row].x,
                    f = behind[(int64_t)(pass - 1) * rows + row].y;
            }
            lw_row<LW_WORD_S32, LOCAL, C>(lookup + letter * lw_letter_bytes<C>(), (uint32_t)diagonal,
                                          (uint32_t)a.open, (uint32_t)a.extend, h, e, f, 0);
            diagonal = (int32_t)left;
            if (lane == G - 1 && here && pass < passes - 1)
                behind[(int64_t)pass * rows + row] = make_uint2(h[C - 1], f);
            if (lane == G - 1 && row == rows - 1 && pass == passes - 1)
                a.results[blockIdx.x].score = (int32_t)h[C - 1];
        }
        lw_warp_sync(LW_ALL_LANES);
    }

    uint32_t *ops = a.ops + task.ops;
    walk w;
    w.i = task.qlen, w.j = task.tlen, w.state = OP_M, w.n_ops = 0, w.run = 0;
    for (int more = 1; more;) {
        const int32_t at = (int32_t)total - task.qlen + w.i - 1;
        const int32_t pass = w.i > 0 ? at / WIDTH : 0, tile = w.j > 0 ? (w.j - LOCAL) / TILE : 0;
        const int32_t first_row = tile * TILE, n_rows = rows - first_row < TILE ? rows - first_row : TILE;
        const int32_t first_column = pass * WIDTH + lane * C;
        if (w.i > 0 && w.j > 0) { /* the tile's bits */
            lw_build_profile<LW_WORD_S32, LOCAL, C>(profile, a.queries, a.table, a.n_letters, a.mode, item,
                                                    qlen, first_column, (int32_t)total);
            f = far;
#pragma unroll 1
            for (int32_t step = 0; step < n_rows + G - 1; step++) {
                const int32_t in_tile = step - lane, row = first_row + in_tile;
                const bool here = in_tile >= 0 && row < rows;
                const int letter = !LOCAL && row <= 0 ? a.n_letters : here ? letters[row] : 0;
                uint32_t left = lw_from_below(LW_ALL_LANES, h[C - 1], 1, G);
                f = lw_from_below(LW_ALL_LANES, f, 1, G);
                if (in_tile == 0) {
                    const uint2 *state = above + (int64_t)tile * total + first_column;
                    diagonal = tile > 0 && first_column > 0 ? (int32_t)state[-1].x : 0;
#pragma unroll
                    for (int c = 0; c < C; c++) {
                        h[c] = tile > 0 ? state[c].x : 0;
                        e[c] = tile > 0 ? state[c].y : far;
                    }
                }
                if (lane == 0) {
                    left = 0, f = far;
                    if (pass > 0 && here) {
                        left = behind[(int64_t)(pass - 1) * rows + row].x;
                        f = behind[(int64_t)(pass - 1) * rows + row].y;
                    }
                }
                row_with_directions<LOCAL, C>(lookup + letter * lw_letter_bytes<C>(), diagonal, a.open,
                                              a.extend, h, e, f, bits);
                diagonal = (int32_t)left;
#pragma unroll
                for (int k = 0; k < WORDS; k++)
                    directions[(step * WORDS + k) * LW_WARP] = bits[k];
            }
        }
        lw_warp_sync(LW_ALL_LANES);
        if (lane == 0) { /* the path's stretch through this tile, and the border cells that follow */
            for (more = 1; more;) {
                if (w.i == 0 || w.j == 0) {
                    more = step_border<LOCAL>(w, a.mode, ops, 0);
                    continue;
                }
                int32_t column = (int32_t)total - task.qlen + w.i - 1, row = w.j - LOCAL;
                if (column / WIDTH != pass || row / TILE != tile)
                    break;
                int32_t in_pass = column % WIDTH, c = in_pass % C, owner = in_pass / C;
                int32_t step = row % TILE + owner;
                uint32_t word = directions[(step * WORDS + c / 8) * LW_WARP + owner];
                more = step_inside<LOCAL>(w, word >> (c % 8 * 4) & 15, ops, 0);
            }
        }
        w.i = (int32_t)lw_from_lane(LW_ALL_LANES, (uint32_t)w.i, 0, LW_WARP);
        w.j = (int32_t)lw_from_lane(LW_ALL_LANES, (uint32_t)w.j, 0, LW_WARP);
        more = (int)lw_from_lane(LW_ALL_LANES, (uint32_t)more, 0, LW_WARP);
    }
    if (lane == 0) {
        finish(w, ops, 0);
        for (int32_t low = 0, high = w.n_ops - 1; low < high; low++, high--) {
            uint32_t op = ops[low];
            ops[low] = ops[high];
            ops[high] = op;
        }
        lw_trace_result *result = &a.results[blockIdx.x];
        result->ops = task.ops;
        result->n_ops = w.n_ops;
        result->qstart = w.i;
        result->tstart = w.j;
    }
}

const lw_trace_kernel lw_trace_fill[2][2] = {{trace_fill<0, LW_TRACE_LANES, LW_TRACE_COLUMNS>,
                                              trace_fill<0, LW_TRACE_WIDE_LANES, LW_TRACE_WIDE_COLUMNS>},
                                             {trace_fill<1, LW_TRACE_LANES, LW_TRACE_COLUMNS>,
                                              trace_fill<1, LW_TRACE_WIDE_LANES, LW_TRACE_WIDE_COLUMNS>}};
const lw_trace_kernel lw_trace_walk[2][2] = {{trace_walk<0, LW_TRACE_LANES, LW_TRACE_COLUMNS>,
                                              trace_walk<0, LW_TRACE_WIDE_LANES, LW_TRACE_WIDE_COLUMNS>},
                                             {trace_walk<1, LW_TRACE_LANES, LW_TRACE_COLUMNS>,
                                              trace_walk<1, LW_TRACE_WIDE_LANES, LW_TRACE_WIDE_COLUMNS>}};
const lw_trace_kernel lw_trace_long[2] = {trace_long<0>, trace_long<1>};

int64_t lw_trace_shared_bytes(int wide, int local, int n_letters)
{
    int columns = wide ? LW_TRACE_WIDE_COLUMNS : LW_TRACE_COLUMNS;
    return (int64_t)(n_letters + !local) * ((columns + 3) / 4) * LW_WARP * (int64_t)sizeof(uint4);
}

int64_t lw_trace_fill_words(int wide, int local, int32_t qlen, int32_t tlen)
{
    int lanes = wide ? LW_TRACE_WIDE_LANES : LW_TRACE_LANES,
        columns = wide ? LW_TRACE_WIDE_COLUMNS : LW_TRACE_COLUMNS;
    int64_t rows = (int64_t)tlen + !local,
            passes = wide ? (qlen + !local + lanes * columns - 1) / (lanes * columns) : 1;
    passes = passes > 0 ? passes : 1;
    return passes * (rows + lanes - 1) * ((columns + 7) / 8) * LW_WARP + (passes > 1 ? 2 * rows : 0);
}

int64_t lw_trace_long_words(int local, int32_t qlen, int32_t tlen)
{
    const int64_t width = LW_WARP * LW_TRACE_WIDE_COLUMNS, rows = (int64_t)tlen + !local;
    int64_t passes = (qlen + !local + width - 1) / width,
            tiles = (rows + LW_TRACE_TILE_ROWS - 1) / LW_TRACE_TILE_ROWS;
    return 2 * tiles * passes * width + 2 * (passes - 1) * rows +
           (LW_TRACE_TILE_ROWS + LW_WARP - 1) * ((LW_TRACE_WIDE_COLUMNS + 7) / 8) * LW_WARP;
}
