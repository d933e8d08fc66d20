/* align_cuda_walk.cu - from directions or checkpoints to paths (align_paths.h).
 *
 * A warp walks a job's path back: its lanes look at the next cells of the diagonal, so that a run of letters
 * without a gap takes one step; where jobs are short and many, one thread does. Over checkpoints a block
 * first computes the directions of the tile that the path has reached, in shared memory, its first warp walks
 * through, and so on to the next tile.
 *
 * For few long jobs these tiles would follow one another while most of the card is idle. So scouts go first,
 * one for every some rows of tiles, all at the same time: each begins at the cell with the greatest H above
 * its rows, where the path probably passes, and notes where it comes into each tile. What follows depends on
 * nothing but the cell and the state. So where the job's path comes into a tile as the scout did (paths that
 * begin apart meet soon), the rest of the scout's path is its own. */
#include "align/path_cell.cuh"

/* A path on its way from its end to its start; the same in all lanes of a warp that walks it together. */
typedef struct walk {
    int32_t i, j;  /* letters of query and window not yet consumed */
    int32_t state; /* LW_PATH_M, or the gap that the path is in */
    int32_t piece; /* of that gap */
    int32_t n_ops;
    uint32_t run;  /* the operation being lengthened, as BAM has it; 0: none yet */
    uint32_t *ops; /* finished ones, last one of the path first */
    int32_t ahead; /* the lane that looks so many cells ahead; 0 writes */
    bool together; /* all lanes of the warp walk this path */
} walk;

LW_DEVICE void close_run(walk &w)
{
    if (w.run != 0 && w.ahead == 0)
        w.ops[w.n_ops] = w.run;
    w.n_ops += w.run != 0;
    w.run = 0;
}

LW_DEVICE void consume(walk &w, uint32_t op, int32_t times)
{
    if (w.run == 0 || (w.run & 15) != op) {
        close_run(w);
        w.run = op;
    }
    w.run += (uint32_t)times << 4;
    w.i -= op != LW_PATH_D ? times : 0;
    w.j -= op != LW_PATH_I ? times : 0;
}

/* Along the border of the matrix to the start of the path: one gap, or nothing. */
LW_DEVICE void walk_border(const lw_fill_args &a, walk &w)
{
    if (a.mode == LW_LOCAL)
        return;
    if (w.i > 0)
        consume(w, LW_PATH_I, w.i);
    if (w.j > 0 && a.mode == LW_GLOBAL)
        consume(w, LW_PATH_D, w.j);
}

/* What a source stands for. */
template <int PIECES> LW_DEVICE void enter(walk &w, uint32_t source)
{
    w.state = source == lw_from_diagonal<PIECES>()             ? LW_PATH_M
              : source >= lw_from_deletion<PIECES>(PIECES - 1) ? LW_PATH_D
                                                               : LW_PATH_I;
    w.piece =
        PIECES == 2 && (source == lw_from_deletion<PIECES>(1) || source == lw_from_insertion<PIECES>(1));
}

template <int PIECES> LW_DEVICE bool gap_extends(const walk &w, uint32_t d)
{
    return (w.state == LW_PATH_D && (d & lw_deletion_extends<PIECES>(w.piece))) ||
           (w.state == LW_PATH_I && (d & lw_insertion_extends<PIECES>(w.piece)));
}

/* How many of the next letters go along the diagonal: `d` is the direction of the cell that is as many cells
 * ahead. */
template <int PIECES> LW_DEVICE int32_t diagonal_run(const walk &w, uint32_t d, bool there)
{
    const bool goes_on = there && (d & (PIECES == 2 ? 7 : 3)) == lw_from_diagonal<PIECES>();
    return w.together ? lw_trailing_ones(lw_ballot(LW_ALL_LANES, goes_on)) : goes_on;
}

/* The direction of the next cell. */
LW_DEVICE uint32_t next_direction(const walk &w, uint32_t d)
{
    return w.together ? lw_from_lane(LW_ALL_LANES, d, 0, LW_WARP) : d;
}

/* The value of one half of a word, times its scale. */
LW_DEVICE int32_t kept(const lw_walk_args &a, uint32_t word, int half)
{
    if (a.halves == 1)
        return (int32_t)word;
    return (half ? lw_high2(word) : lw_low2(word)) - lw_low2(a.fill.by.zero);
}

/* --- over directions --------------------------------------------------------------------------------------
 */

/* Where a job's directions are. */
typedef struct place {
    const uint32_t *words;
    int64_t strip_words; /* of directions */
    int32_t pad;         /* columns in front of the query */
    int32_t lane, half;  /* the first lane of its group */
    int32_t lanes;       /* of that */
    bool strips;         /* several, of a warp each */
} place;

template <int PIECES> LW_DEVICE uint32_t direction(const place &at, int halves, int32_t i, int32_t j)
{
    const int bits = 4 * PIECES, per_word = 32 / halves / bits, words = LW_PATH_COLUMNS / per_word;
    const int32_t column = at.pad + i - 1, strip = at.strips ? column / LW_PATH_STRIP : 0;
    const int32_t block = (column - strip * LW_PATH_STRIP) / LW_PATH_COLUMNS, c = column % LW_PATH_COLUMNS;
    const int32_t in_group = block % at.lanes;
    const int64_t step = j - 1 + LW_PATH_SIDE * block;
    const uint32_t word =
        at.words[strip * at.strip_words +
                 (((step >> 2) * LW_WARP + at.lane + in_group) * 4 + (step & 3)) * words + c / per_word];
    return word >> ((per_word - 1 - c % per_word) * bits + at.half * 16) & ((1u << bits) - 1);
}

/* The whole path from (w.i, w.j). */
template <int PIECES> LW_DEVICE void walk_directions(const lw_walk_args &a, const place &at, walk &w)
{
    const bool local = a.fill.mode == LW_LOCAL;
    bool more = true;
    while (more && w.i > 0 && w.j > 0) {
        const bool there = w.i > w.ahead && w.j > w.ahead;
        const uint32_t mine = there && (w.ahead == 0 || w.state == LW_PATH_M)
                                  ? direction<PIECES>(at, a.halves, w.i - w.ahead, w.j - w.ahead)
                                  : 0;
        if (w.state == LW_PATH_M) {
            const int32_t run = diagonal_run<PIECES>(w, mine, there);
            if (run > 0) {
                consume(w, LW_PATH_M, run);
                continue;
            }
        }
        const uint32_t d = next_direction(w, mine);
        if (w.state == LW_PATH_M) {
            const uint32_t source = d & (PIECES == 2 ? 7 : 3);
            if (local && source == lw_from_start<PIECES>()) {
                more = false;
                continue;
            }
            enter<PIECES>(w, source);
        }
        const int state = w.state;
        if (state != LW_PATH_M && !gap_extends<PIECES>(w, d))
            w.state = LW_PATH_M;
        consume(w, (uint32_t)state, 1);
    }
    if (more)
        walk_border(a.fill, w);
    close_run(w);
}

/* The end of a job: its score and row, and the columns it may lie in. */
template <int PIECES>
LW_DEVICE lw_path_end job_end(const lw_walk_args &a, const lw_bundle &b, int32_t index,
                              const lw_path_job &job)
{
    lw_path_end best = {0, INT32_MAX, 0};
    if (a.fill.ends_at == LW_END_ANYWHERE) {
        for (int32_t s = 0; s < b.strips; s++) {
            lw_path_end other = a.fill.ends[(int64_t)(b.first_strip + s) * LW_PATH_ENDS + index];
            if (other.row != INT32_MAX &&
                (other.score > best.score || (other.score == best.score && other.row < best.row)))
                best = other;
        }
        return best;
    }
    best = a.fill.ends[(int64_t)(b.first_strip + b.strips - 1) * LW_PATH_ENDS + index];
    /* in front of the first row: the query as one insertion, or nothing */
    const int32_t least = lw_first_row<PIECES>(a.fill, job.qlen);
    const bool may = a.fill.ends_at == LW_END_LAST_COLUMN || job.tlen == 0;
    if (best.row == INT32_MAX || (may && least >= best.score))
        best.score = least, best.row = -1;
    return best;
}

template <int PIECES> __global__ void __launch_bounds__(128) path_walk(const lw_walk_args a)
{
    const bool together = a.job_threads == LW_WARP;
    const int32_t thread = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    const int32_t index = together ? thread / LW_WARP : thread;
    if (index >= a.n_jobs)
        return;
    const lw_path_job job = a.fill.jobs[index];
    const lw_bundle bundle = a.fill.bundles[a.bundle_of[index]];
    const int32_t in_bundle = index - bundle.first;
    const lw_path_end end = job_end<PIECES>(a, bundle, in_bundle, job);
    const bool none = end.row == INT32_MAX;
    lw_path_result result = {0, 0, 0, 0, none ? 0 : job.qlen, none ? 0 : end.row + 1, end.score};
    walk w;
    w.ops = a.spare + a.spare_at[index];
    w.state = LW_PATH_M;
    w.piece = w.n_ops = 0;
    w.run = 0;
    w.together = together;
    w.ahead = together ? lw_lane() : 0;
    place at;
    at.words = a.fill.scratch + bundle.scratch;
    at.strip_words =
        (int64_t)lw_path_slots(bundle.rows, bundle.blocks) * LW_WARP * lw_direction_words(a.halves, PIECES);
    at.pad = bundle.strips * bundle.blocks * LW_PATH_COLUMNS - job.qlen;
    at.lane = in_bundle / a.halves * bundle.lanes;
    at.lanes = bundle.lanes;
    at.half = in_bundle % a.halves;
    at.strips = bundle.strips > 1;
    w.i = job.qlen, w.j = result.tend;
    if (a.fill.ends_at == LW_END_ANYWHERE && !none) {
        /* the first of the lane's columns that has the score in this row */
        const int32_t in_line = (at.pad + end.column) / LW_PATH_COLUMNS;
        const int32_t strip = bundle.first_strip + in_line / bundle.lanes;
        const uint32_t *h = a.fill.best_rows + (((int64_t)strip * a.halves + at.half) * LW_WARP + at.lane +
                                                in_line % bundle.lanes) *
                                                   LW_PATH_COLUMNS;
        int32_t c = end.column < 0 ? -end.column : 0;
        while (c < LW_PATH_COLUMNS && kept(a, h[c], at.half) != end.score * a.fill.by.scale)
            c++;
        w.i = result.qend = end.column + c + 1;
    }
    const bool proved = end.score >= job.least;
    const bool walks = !none && proved && !a.fill.scores;
    if (walks)
        walk_directions<PIECES>(a, at, w);
    result.n_ops = proved ? w.n_ops : -1;
    if (walks) {
        result.qstart = w.i, result.tstart = w.j;
        if (w.ahead == 0)
            result.ops = (int64_t)atomicAdd(a.ops_used, (unsigned long long)w.n_ops);
        int64_t to = result.ops;
        if (together) {
            lw_warp_sync(LW_ALL_LANES); /* the operations are there */
            to = (int64_t)lw_from_first64(LW_ALL_LANES, (uint64_t)to);
        }
        for (int32_t k = w.ahead; k < w.n_ops; k += a.job_threads)
            a.ops[to + k] = w.ops[w.n_ops - 1 - k];
    }
    if (w.ahead == 0)
        a.results[index] = result;
}

/* --- over checkpoints -------------------------------------------------------------------------------------
 */

enum { TILE_COLUMNS = 4 }; /* of a thread */

/* What a block shares besides the directions. */
typedef struct tile_state {
    walk w;
    int32_t more;
    lw_path_end end;
    int32_t has_score[LW_PATH_COLUMNS]; /* of the columns that the end may lie in */
    int32_t pass[2][16][3];             /* H, F, F2 of each warp's last column, two rows */
    int32_t greatest[LW_PATH_STRIP / 4],
        column[LW_PATH_STRIP / 4]; /* H above a scout's rows, of each thread */
    int32_t n_marks, stop, proved;
    long long first_op;
} tile_state;

/* The column of a strip's checkpoints above `row`, which is a tile's first; -1: outside the band. */
LW_DEVICE int64_t above_at(const lw_fill_args &a, const lw_bundle &b, const lw_checkpoints &keep,
                           int32_t column, int32_t row)
{
    const int32_t strip = column / LW_PATH_STRIP;
    const lw_rows rows = lw_strip_rows(&b, strip, a.tile);
    return row <= rows.from || row >= rows.to
               ? -1
               : strip * keep.strip_above + (int64_t)((row - rows.from) / a.tile - 1) * LW_PATH_STRIP +
                     column % LW_PATH_STRIP;
}

LW_DEVICE int32_t state_of(const walk &w)
{
    return w.state + 4 * w.piece;
}

/* A scout's start: behind the column with the greatest H above `row`. By all threads. */
LW_DEVICE void start_scout(const lw_walk_args &a, const lw_bundle &b, const lw_checkpoints &keep, int half,
                           int32_t pad, int32_t row, tile_state *shared)
{
    int32_t greatest = INT32_MIN, column = pad;
    for (int32_t strip = pad / LW_PATH_STRIP; strip < b.strips; strip++) {
        const int64_t from = above_at(a.fill, b, keep, strip * LW_PATH_STRIP, row);
#pragma unroll 4
        for (int32_t c = (int32_t)threadIdx.x; c < LW_PATH_STRIP && from >= 0; c += (int32_t)blockDim.x) {
            const int32_t h = kept(a, keep.above[from + c].x, half);
            if (h > greatest && strip * LW_PATH_STRIP + c >= pad)
                greatest = h, column = strip * LW_PATH_STRIP + c;
        }
    }
    shared->greatest[threadIdx.x] = greatest;
    shared->column[threadIdx.x] = column;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int32_t k = 1; k < (int32_t)blockDim.x; k++)
            if (shared->greatest[k] > greatest)
                greatest = shared->greatest[k], column = shared->column[k];
        shared->w.i = column + 1 - pad;
        shared->w.j = row;
        shared->stop = greatest == INT32_MIN;
    }
}

/* A scout comes into a tile: notes it, or stops, at the next scout's rows, outside the band, or where there
 * is no room. One thread. */
LW_DEVICE void mark_tile(const lw_walk_args &a, const lw_bundle &b, int32_t pad, int32_t last_row,
                         lw_path_mark *marks, tile_state *shared)
{
    const int32_t T = a.fill.tile;
    walk w = shared->w;
    close_run(w);
    const lw_rows rows = lw_strip_rows(&b, (pad + w.i - 1) / LW_PATH_STRIP, T);
    const bool outside = (w.j - 1) / T * T < rows.from || w.j > rows.to;
    shared->stop =
        w.j <= last_row || outside || shared->n_marks == a.most_marks || w.n_ops + 2 * T + 4 > a.most_ops;
    if (!shared->stop) {
        const lw_path_mark here = {w.i, w.j, state_of(w), w.n_ops};
        marks[shared->n_marks++] = here;
    }
    shared->w = w;
}

/* The path comes into a tile: if a scout did so, takes its path from there. By a warp. */
LW_DEVICE void join_scout(const lw_walk_args &a, int32_t index, tile_state *shared)
{
    const int lane = lw_lane();
    walk w = shared->w;
    const int32_t number = (w.j - 1) / a.fill.tile / a.scout_tiles;
    if (number >= a.scouts)
        return;
    const int64_t at = (int64_t)index * a.scouts + number;
    const lw_path_scout scout = a.scout[at];
    const lw_path_mark *marks = a.marks + at * a.most_marks;
    const uint32_t *ops = a.scout_ops + at * a.most_ops;
    for (int32_t first = 0; first < scout.n_marks; first += LW_WARP) {
        lw_path_mark mine = {-1, -1, 0, 0};
        if (first + lane < scout.n_marks)
            mine = marks[first + lane];
        const uint32_t same =
            lw_ballot(LW_ALL_LANES, mine.i == w.i && mine.j == w.j && mine.state == state_of(w));
        if (same == 0)
            continue;
        const int32_t from = (int32_t)lw_from_lane(LW_ALL_LANES, (uint32_t)mine.n_ops,
                                                   lw_trailing_ones((same - 1) & ~same), LW_WARP);
        w.ahead = lane;
        for (int32_t k = from; k < scout.end.n_ops; k++)
            consume(w, ops[k] & 15, (int32_t)(ops[k] >> 4));
        w.state = scout.end.state & 3;
        w.piece = scout.end.state >> 2;
        lw_warp_sync(LW_ALL_LANES); /* all have read it */
        if (lane == 0) {
            w.ahead = 0;
            shared->w = w;
            shared->more = scout.more;
        }
        return;
    }
}

template <int PIECES> __global__ void __launch_bounds__(128) path_tiles(const lw_walk_args a)
{
    constexpr int C = TILE_COLUMNS, BITS = 4 * PIECES;
    const int32_t T = a.fill.tile, x = (int32_t)threadIdx.x, n_threads = (int32_t)blockDim.x;
    const int lane = lw_lane(), warp = x / LW_WARP;
    tile_state *shared = (tile_state *)lw_path_shared;
    uint2 *profile =
        (uint2 *)(lw_path_shared + (sizeof(tile_state) + 15) / 16) + x; /* [letter][thread] four s16 */
    /* what comes from the left of each row: H, F, F2; the row's letter; [row][thread] the directions of its
     * columns, 16 or 32 bits */
    int32_t *border = (int32_t *)(profile - x + (int64_t)a.fill.n_letters * n_threads);
    uint8_t *letters = (uint8_t *)(border + T * (1 + PIECES));
    uint16_t *directions = (uint16_t *)(letters + T);
    const int32_t index = (int32_t)blockIdx.x / (a.scouting ? a.scouts : 1);
    const lw_path_job job = a.fill.jobs[index];
    const lw_bundle bundle = a.fill.bundles[a.bundle_of[index]];
    const int half = (index - bundle.first) % a.halves;
    const lw_checkpoints keep = lw_checkpoints_of(a.fill, bundle);
    const int32_t pad = (int32_t)keep.total - job.qlen; /* columns in front of the query */
    const bool local = a.fill.mode == LW_LOCAL, anywhere = a.fill.ends_at == LW_END_ANYWHERE;
    const int32_t least = local ? 0 : INT32_MIN; /* of H; what has no more begins here */
    const int32_t outside = INT32_MIN / 2;       /* the band; far below what a tile's penalties can reach */
    int32_t open[PIECES], extend[PIECES];
    for (int p = 0; p < PIECES; p++)
        open[p] = -a.fill.gap_open[p] - a.fill.gap_extend[p], extend[p] = -a.fill.gap_extend[p];
    if (x == 0) {
        shared->end = job_end<PIECES>(a, bundle, index - bundle.first, job);
        walk w;
        w.i = anywhere ? shared->end.column + LW_PATH_COLUMNS : job.qlen;
        w.j = shared->end.row == INT32_MAX ? 0 : shared->end.row + 1;
        w.state = LW_PATH_M;
        w.piece = w.n_ops = 0;
        w.run = 0;
        w.ops = a.spare + a.spare_at[index];
        w.together = true;
        w.ahead = 0;
        shared->proved = shared->end.score >= job.least;
        if (!shared->proved) /* no operations */
            w.i = w.j = 0;
        shared->w = w;
        shared->more = w.j > 0;
        shared->n_marks = shared->stop = 0;
        for (int c = 0; c < LW_PATH_COLUMNS; c++)
            shared->has_score[c] = 0;
    }
    __syncthreads();
    const lw_path_end end = shared->end;
    int32_t qend = job.qlen;
    bool first_tile = true;
    if (a.scouting) {
        const int32_t row = ((int32_t)blockIdx.x % a.scouts + 1) * a.scout_tiles * T;
        if (x == 0)
            shared->w.ops = a.scout_ops + (int64_t)blockIdx.x * a.most_ops;
        if (row < job.tlen)
            start_scout(a, bundle, keep, half, pad, row, shared);
        else if (x == 0)
            shared->stop = 1;
        first_tile = false;
        __syncthreads();
    }
    while (shared->more && shared->w.i > 0 && shared->w.j > 0 && !shared->stop) {
        if (a.scouts > 0 && !(anywhere && first_tile)) {
            __syncthreads(); /* all have seen that there is a tile */
            if (a.scouting && x == 0)
                mark_tile(a, bundle, pad, (int32_t)blockIdx.x % a.scouts * a.scout_tiles * T,
                          a.marks + (int64_t)blockIdx.x * a.most_marks, shared);
            else if (!a.scouting && warp == 0)
                join_scout(a, index, shared);
            __syncthreads();
            if (!shared->more || shared->w.i <= 0 || shared->w.j <= 0 || shared->stop)
                break;
        }
        const int32_t entry = pad + shared->w.i - 1, entry_row = shared->w.j - 1;
        const int32_t tile_column = entry / T, tile_row = entry_row / T;
        const int32_t first = tile_column * T + x * C, row0 = tile_row * T;
        const int32_t steps = entry_row - row0 + 1 + (entry - tile_column * T) / C;
        /* the tile's state in front of its first row and column */
        int32_t h[C], e[PIECES][C], f[PIECES], diagonal = 0;
        for (int c = -1; c < C; c++) {
            const int32_t i = first + c - pad + 1;
            int32_t value = lw_first_row<PIECES>(a.fill, i);
            int64_t above = -1;
            if (tile_row > 0) {
                above = first + c < 0 ? -1 : above_at(a.fill, bundle, keep, first + c, row0);
                value = i <= 0      ? lw_first_column<PIECES>(a.fill, row0)
                        : above < 0 ? outside
                                    : kept(a, keep.above[above].x, half);
            }
            if (c < 0) {
                diagonal = value;
                continue;
            }
            h[c] = value;
            e[0][c] = above >= 0 ? kept(a, keep.above[above].y, half) : value + open[0];
            if (PIECES == 2)
                e[PIECES - 1][c] = above >= 0 ? kept(a, keep.above2[above], half) : value + open[PIECES - 1];
        }
        for (int p = 0; p < PIECES; p++)
            f[p] = 0;
        int code[C];
        for (int c = 0; c < C; c++)
            code[c] = first + c >= pad ? lw_letter_at(a.fill.queries, job.query + first + c - pad) : 0;
        for (int letter = 0; letter < a.fill.n_letters; letter++) {
            const int16_t *s = a.fill.table->score + letter;
            profile[letter * n_threads] =
                make_uint2(lw_pack2(s[code[0] * LW_MAX_LETTERS], s[code[1] * LW_MAX_LETTERS]),
                           lw_pack2(s[code[2] * LW_MAX_LETTERS], s[code[3] * LW_MAX_LETTERS]));
        }
        const lw_rows left_rows = lw_strip_rows(&bundle, (tile_column * T - 1) / LW_PATH_STRIP, T);
        const int64_t behind = (int64_t)(tile_column - 1) * bundle.height - left_rows.from;
        for (int32_t k = x; k <= entry_row - row0; k += n_threads) {
            int32_t *from_left = border + k * (1 + PIECES);
            letters[k] = (uint8_t)lw_letter_at(a.fill.targets, job.target + row0 + k);
            if (tile_column > 0 && row0 + k >= left_rows.to) {
                for (int p = 0; p <= PIECES; p++)
                    from_left[p] = outside;
            } else if (tile_column > 0) {
                const uint2 word = keep.behind[behind + row0 + k];
                from_left[0] = kept(a, word.x, half);
                from_left[1] = kept(a, word.y, half);
                if (PIECES == 2)
                    from_left[PIECES] = kept(a, keep.behind2[behind + row0 + k], half);
            } else {
                from_left[0] = lw_first_column<PIECES>(a.fill, row0 + k + 1);
                for (int p = 0; p < PIECES; p++)
                    from_left[1 + p] = from_left[0] + open[p];
            }
        }
        __syncthreads();
        const int32_t end_row = anywhere && first_tile ? end.row : -1; /* the row to look for the end in */
        for (int32_t step = 0; step < steps; step++) {
            const int32_t in_tile = step - x, row = row0 + in_tile;
            int32_t left = (int32_t)lw_from_below(LW_ALL_LANES, (uint32_t)h[C - 1], 1, LW_WARP);
            for (int p = 0; p < PIECES; p++)
                f[p] = (int32_t)lw_from_below(LW_ALL_LANES, (uint32_t)f[p], 1, LW_WARP);
            const bool here = in_tile >= 0 && row <= entry_row;
            if (here && lane == 0 && warp > 0) {
                const int32_t *given = shared->pass[(step + 1) & 1][warp - 1];
                left = given[0];
                for (int p = 0; p < PIECES; p++)
                    f[p] = given[1 + p];
            } else if (here && x == 0) {
                const int32_t *from_left = border + in_tile * (1 + PIECES);
                left = from_left[0];
                for (int p = 0; p < PIECES; p++)
                    f[p] = from_left[1 + p];
            }
            if (here) {
                const uint2 s4 = profile[letters[in_tile] * n_threads];
                const int32_t first_h = first < pad ? lw_first_column<PIECES>(a.fill, row + 1) : 0;
                uint32_t codes = 0;
#pragma unroll
                for (int c = 0; c < C; c++) {
                    const bool outside = first + c < pad; /* in front of the query */
                    const int32_t above = h[c];
                    const uint32_t pair = c < 2 ? s4.x : s4.y;
                    const int32_t t = diagonal + (c % 2 ? lw_high2(pair) : lw_low2(pair));
                    int32_t best = t;
                    uint32_t d = lw_from_diagonal<PIECES>();
#pragma unroll
                    for (int p = 0; p < PIECES; p++) {
                        d = e[p][c] > best ? lw_from_deletion<PIECES>(p) : d;
                        best = e[p][c] > best ? e[p][c] : best;
                    }
#pragma unroll
                    for (int p = 0; p < PIECES; p++) {
                        d = f[p] > best ? lw_from_insertion<PIECES>(p) : d;
                        best = f[p] > best ? f[p] : best;
                    }
                    d = best <= least ? lw_from_start<PIECES>() : d;
                    best = best <= least ? least : best;
                    best = outside ? first_h : best;
#pragma unroll
                    for (int p = 0; p < PIECES; p++) {
                        const int32_t opened = best + open[p];
                        const int32_t longer = e[p][c] + extend[p], wider = f[p] + extend[p];
                        d |= longer >= opened ? lw_deletion_extends<PIECES>(p) : 0;
                        d |= wider >= opened ? lw_insertion_extends<PIECES>(p) : 0;
                        e[p][c] = longer > opened ? longer : opened;
                        f[p] = wider > opened && !outside ? wider : opened;
                    }
                    h[c] = best;
                    diagonal = above;
                    codes |= d << (c * BITS);
                }
                if (row == end_row)
                    for (int c = 0; c < C; c++) {
                        const int32_t k = first + c - pad - end.column;
                        if (first + c >= pad && h[c] == end.score && k >= 0 && k < LW_PATH_COLUMNS)
                            shared->has_score[k] = 1;
                    }
                if (PIECES == 2)
                    ((uint32_t *)directions)[in_tile * n_threads + x] = codes;
                else
                    directions[in_tile * n_threads + x] = (uint16_t)codes;
            }
            if (here)
                diagonal = left;
            if (n_threads > LW_WARP) {
                if (lane == LW_WARP - 1) {
                    int32_t *give = shared->pass[step & 1][warp];
                    give[0] = h[C - 1];
                    for (int p = 0; p < PIECES; p++)
                        give[1 + p] = f[p];
                }
                __syncthreads();
            }
        }
        __syncthreads();
        if (warp == 0) { /* the path's stretch through this tile */
            walk w = shared->w;
            w.ahead = lane;
            bool more = true;
            if (first_tile && anywhere) {
                int32_t k = 0;
                while (k < LW_PATH_COLUMNS && !shared->has_score[k])
                    k++;
                w.i = end.column + k + 1;
                more = k < LW_PATH_COLUMNS;
                if (lane == 0) {
                    shared->end.score = more ? end.score : -1;
                    shared->end.column = w.i;
                }
            }
            const int32_t left_of = tile_column * T - pad; /* query letters in front of the tile */
            while (more && w.i > 0 && w.j > 0 && w.i > left_of && w.j > row0) {
                const int32_t column = w.i - 1 - left_of - lane, row = w.j - 1 - row0 - lane;
                const bool there = column >= 0 && row >= 0 && w.i > lane;
                uint32_t mine = 0;
                if (there) {
                    const int32_t at = row * n_threads + column / C;
                    mine = PIECES == 2 ? ((const uint32_t *)directions)[at] : directions[at];
                    mine = mine >> (column % C * BITS) & ((1u << BITS) - 1);
                }
                if (w.state == LW_PATH_M) {
                    const int32_t run = diagonal_run<PIECES>(w, mine, there);
                    if (run > 0) {
                        consume(w, LW_PATH_M, run);
                        continue;
                    }
                }
                const uint32_t d = next_direction(w, mine);
                if (!gap_extends<PIECES>(w, d)) {
                    const uint32_t source = d & (PIECES == 2 ? 7 : 3);
                    if (local && source == lw_from_start<PIECES>()) {
                        more = false;
                        continue;
                    }
                    enter<PIECES>(w, source);
                }
                consume(w, (uint32_t)w.state, 1);
            }
            lw_warp_sync(LW_ALL_LANES); /* all have read it */
            if (lane == 0) {
                shared->w = w;
                shared->more = more;
            }
        }
        first_tile = false;
        __syncthreads();
    }
    __syncthreads(); /* all have seen that this was the last tile */
    if (a.scouting) {
        if (x == 0) {
            walk w = shared->w;
            close_run(w);
            const lw_path_scout scout = {{w.i, w.j, state_of(w), w.n_ops}, shared->n_marks, shared->more};
            a.scout[blockIdx.x] = scout;
        }
        return;
    }
    if (warp == 0) {
        walk w = shared->w;
        w.ahead = lane;
        lw_warp_sync(LW_ALL_LANES);
        if (anywhere && end.row != INT32_MAX)
            qend = shared->end.column;
        if (shared->more || w.j == 0)
            walk_border(a.fill, w);
        close_run(w);
        if (lane == 0) {
            shared->w = w;
            shared->first_op = (long long)atomicAdd(a.ops_used, (unsigned long long)w.n_ops);
            lw_path_result result = {shared->first_op, w.n_ops,          w.i, w.j, qend,
                                     end.row + 1,      shared->end.score};
            if (end.row == INT32_MAX)
                result.qstart = result.tstart = result.tend = 0;
            if (!shared->proved)
                result.n_ops = -1;
            a.results[index] = result;
        }
    }
    __syncthreads();
    const walk w = shared->w;
    for (int32_t k = x; k < w.n_ops; k += n_threads)
        a.ops[shared->first_op + k] = w.ops[w.n_ops - 1 - k];
}

const lw_walk_kernel lw_walk_kernels[2] = {path_walk<1>, path_walk<2>};
const lw_walk_kernel lw_tiles_kernels[2] = {path_tiles<1>, path_tiles<2>};

int64_t lw_tiles_shared_bytes(int pieces, int32_t tile, int n_letters)
{
    const int64_t threads = tile / TILE_COLUMNS;
    return (int64_t)(sizeof(tile_state) + 15) / 16 * 16 + threads * n_letters * (int64_t)sizeof(uint2) +
           (int64_t)tile * (4 * (1 + pieces) + 1) + (int64_t)tile * threads * 2 * pieces;
}
