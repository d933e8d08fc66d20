/* align_cuda_select.cu - from block maxima to placements, on the GPU.
 *
 * One warp per read applies the rules of lw_placements to the landscape H(strand, reference, target column).
 * It knows the maximum of every block of columns; the few blocks whose columns it needs one by one are asked
 * for as nodes. A read that had to ask is decided again, from the beginning, once its nodes have been
 * computed. So the rules are written once, and no read is decided on a bound.
 *
 * What block b knows and where it lies. Rows count from the start of a reference: local mode's row r ends at
 * target r + 1, the others' at r. Lane l of a group runs l rows behind lane 0, so block b is the maximum over
 * some cells of rows first_row(b) = b * block_rows .. first_row(b) + block_rows + LW_BLOCK_TAIL - 1, and
 * every cell belongs to exactly one block. A node holds all cells of those rows. Hence
 *   - the maximum over blocks is the maximum over cells;
 *   - of the cells that attain the overall maximum, the smallest column lies within the rows of the first
 * block that attains it: earlier blocks hold none, and rows before that block's are in earlier blocks only;
 *   - a block none of whose rows is excluded counts with its maximum; one with some rows excluded counts
 *     with the columns of its node that are not. Cells of a neighbour which the node also holds are allowed
 * ones, too. */
#include "align/score_word.cuh"

enum { NOTHING = INT32_MIN };

/* What a warp knows of its read; the same in every lane. */
typedef struct reader {
    int32_t read, qlen;
    int32_t ref_first, ref_end; /* references it sees */
    int32_t block_first, n_blocks;
    int64_t view[2];
    int lane;
    bool waits;
} reader;

LW_DEVICE int32_t block_value(const lw_select_args &a, const reader &r, int strand, int32_t block)
{
    int64_t at = r.view[strand];
    uint32_t word = a.words[(at >> 2) + block];
    int32_t value = (at & 3) == 2 ? (int32_t)word : (at & 3) ? lw_high2(word) : lw_low2(word);
    if (a.mode == LW_LOCAL)
        return value < 1 ? (int32_t)NOTHING : value;
    return value <= ((at & 3) == 2 ? -LW_FAR_S32 : -LW_FAR_S16) ? (int32_t)NOTHING : value;
}

/* The reference that block (counted from the read's first) belongs to. */
LW_DEVICE int32_t block_ref(const lw_select_args &a, const reader &r, int32_t block)
{
    int32_t low = r.ref_first, high = r.ref_end; /* ref_block[low] <= block_first + block < ref_block[high] */
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (a.ref_block[middle] <= r.block_first + block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Target end of the first row of a block, and how many columns n blocks from there have. */
LW_DEVICE int32_t first_tend(const lw_select_args &a, const reader &r, int32_t ref, int32_t block)
{
    return (r.block_first + block - a.ref_block[ref]) * a.block_rows + (a.mode == LW_LOCAL);
}

LW_DEVICE int32_t columns_in(const lw_select_args &a, int32_t ref, int32_t tend, int32_t n_blocks)
{
    int64_t left = (int64_t)a.ref_len[ref] - tend + 1,
            whole = (int64_t)n_blocks * a.block_rows + LW_BLOCK_TAIL;
    return (int32_t)(left < whole ? left : whole);
}

/* The node that holds a block: its index, or -1. */
LW_DEVICE int32_t find_node(const lw_select_args &a, const reader &r, int strand, int32_t block)
{
    int32_t node = a.head[r.read];
    while (node >= 0) {
        const lw_node *n = &a.nodes[node];
        if (n->strand == strand && block >= n->first && block < n->first + n->n_blocks)
            break;
        node = n->next;
    }
    return node;
}

/* A block's columns in a node that is ready; NULL if there are none. */
LW_DEVICE const lw_column *ready_columns(const lw_select_args &a, const reader &r, int strand, int32_t block)
{
    int32_t node = find_node(a, r, strand, block);
    if (node < 0 || node >= a.resolved)
        return NULL;
    return a.columns + a.nodes[node].at + (int64_t)(block - a.nodes[node].first) * a.block_rows;
}

/* The most target letters that an optimal alignment of qlen letters spans, so that a stretch that begins this
 * much earlier gives exact scores; see lw_trace_window(), with the least score that counts: 1 in local mode,
 * and in semiglobal mode that of inserting the whole query, -(open + qlen * extend). INT32_MAX: no bound. */
LW_DEVICE int32_t most_span(const lw_select_args &a, int32_t qlen)
{
    if (a.mode == LW_GLOBAL || a.gap_extend == 0)
        return INT32_MAX;
    int64_t most = (int64_t)qlen * (a.max_score > 0 ? a.max_score : 0);
    int64_t room = a.mode == LW_LOCAL ? most - a.gap_open - 1 : most + (int64_t)qlen * a.gap_extend;
    int64_t span = qlen + (room > 0 ? room / a.gap_extend : 0);
    return span < INT32_MAX ? (int32_t)span : INT32_MAX;
}

/* Asks for blocks from .. to - 1, all of one reference; the read waits. */
LW_DEVICE void ask(const lw_select_args &a, reader &r, int strand, int32_t from, int32_t to)
{
    r.waits = true;
    lw_warp_sync(LW_ALL_LANES); /* every lane has looked for the node before lane 0 adds it */
    if (r.lane == 0) {
        int32_t ref = block_ref(a, r, from), tend = first_tend(a, r, ref, from);
        int32_t n = columns_in(a, ref, tend, to - from), at = atomicAdd(&a.counts[2], n);
        int32_t node = at >= 0 && at <= a.column_capacity - n ? atomicAdd(&a.counts[1], 1) : a.capacity;
        if (node < a.capacity) {
            int32_t row = tend - (a.mode == LW_LOCAL), span = most_span(a, r.qlen);
            int32_t begin = row > span ? row - span : 0;
            lw_node it = {strand, from, to - from, a.head[r.read], at};
            lw_slot slot = {{r.read * 2 + strand, -1}};
            lw_segment segment = {a.ref_start[ref] + begin, at, row - begin + n, row - begin,
                                  a.ref_len[ref] - begin};
            a.nodes[node] = it;
            a.slots[node] = slot;
            a.segments[node] = segment;
            a.head[r.read] = node;
        }
    }
    lw_warp_sync(LW_ALL_LANES);
}

/* The columns of a block if they are there; else asks for them. */
LW_DEVICE const lw_column *columns_of(const lw_select_args &a, reader &r, int strand, int32_t block)
{
    if (find_node(a, r, strand, block) < 0)
        ask(a, r, strand, block, block + 1);
    const lw_column *columns = ready_columns(a, r, strand, block);
    r.waits = r.waits || !columns;
    return columns;
}

LW_DEVICE bool excludes(const lw_hit &hit, int strand, int32_t ref, int32_t tend, int32_t qlen)
{
    int64_t distance = (int64_t)tend - hit.tend;
    return hit.reverse == strand && hit.target == ref && distance <= qlen && distance >= -(int64_t)qlen;
}

/* Blocks that have a row within a read length of the hit: [*from, *to), counted from the read's first. */
LW_DEVICE void touched(const lw_select_args &a, const reader &r, const lw_hit &hit, int32_t *from,
                       int32_t *to)
{
    int32_t local = a.mode == LW_LOCAL, first = a.ref_block[hit.target], end = a.ref_block[hit.target + 1];
    int64_t low = (int64_t)hit.tend - r.qlen - local - (a.block_rows + LW_BLOCK_TAIL - 1);
    int64_t high = (int64_t)hit.tend + r.qlen - local;
    int64_t b0 = low <= 0 ? 0 : (low + a.block_rows - 1) / a.block_rows, b1 = high / a.block_rows + 1;
    *from = (int32_t)(b0 < end - first ? b0 : end - first) + first - r.block_first;
    *to = (int32_t)(b1 < end - first ? b1 : end - first) + first - r.block_first;
}

/* Asks for a block and for those at the rims of the neighbourhood of the hit that is in it: they are needed
 * next, to find what lies outside, and one stretch is warmed up instead of three. */
LW_DEVICE void ask_around(const lw_select_args &a, reader &r, int strand, int32_t block)
{
    int32_t ref = block_ref(a, r, block), tend = first_tend(a, r, ref, block), from, to, ignored;
    lw_hit first = {0, ref, tend, 0, 0, 0}, last = {0, ref, tend + columns_in(a, ref, tend, 1) - 1, 0, 0, 0};
    touched(a, r, first, &from, &ignored);
    touched(a, r, last, &ignored, &to);
    ask(a, r, strand, from, to);
}

LW_DEVICE bool touches(const lw_select_args &a, const reader &r, const lw_hit *hits, int n, int strand,
                       int32_t block)
{
    for (int k = 0; k < n; k++) {
        if (hits[k].reverse != strand)
            continue;
        int32_t from, to;
        touched(a, r, hits[k], &from, &to);
        if (block >= from && block < to)
            return true;
    }
    return false;
}

/* Among the columns of a node that none of the n hits excludes: the best score, or, when `want` is given, the
 * first column with that score (its index; -1: none). */
LW_DEVICE int32_t scan_node(const lw_select_args &a, const reader &r, const lw_column *columns, int strand,
                            int32_t block, const lw_hit *hits, int n, bool find, int32_t want)
{
    int32_t ref = block_ref(a, r, block), tend = first_tend(a, r, ref, block),
            count = columns_in(a, ref, tend, 1);
    int32_t best = NOTHING, least = a.mode == LW_LOCAL ? 1 : -LW_FAR_S32 + 1;
    for (int32_t base = 0; base < count; base += LW_WARP) {
        int32_t i = base + r.lane, value = NOTHING;
        if (i < count && columns[i].score >= least) {
            bool allowed = true;
            for (int k = 0; k < n && allowed; k++)
                allowed = !excludes(hits[k], strand, ref, tend + i, r.qlen);
            if (allowed)
                value = columns[i].score;
        }
        if (find) {
            uint32_t found = lw_ballot(LW_ALL_LANES, value == want);
            if (found)
                return base + __ffs((int)found) - 1;
        }
        best = value > best ? value : best;
    }
    return find ? -1 : lw_reduce_max_xor(LW_ALL_LANES, best, LW_WARP);
}

/* The highest score outside the neighbourhoods of n hits; NOTHING if there is none. When r.waits is set
 * after, the answer is not final. `to_place` asks for what is needed to find where it is, too. */
LW_DEVICE int32_t best_value(const lw_select_args &a, reader &r, const lw_hit *hits, int n, bool to_place)
{
    int32_t best = NOTHING;
    for (int strand = 0; strand < 2; strand++) {
        if (r.view[strand] < 0)
            continue;
        for (int32_t block = r.lane; block < r.n_blocks; block += LW_WARP) {
            int32_t value = block_value(a, r, strand, block);
            if (value > best && !touches(a, r, hits, n, strand, block))
                best = value;
        }
    }
    best = lw_reduce_max_xor(LW_ALL_LANES, best, LW_WARP);
    for (int ready = 1; ready >= 0; ready--) /* first what is known, then what could still exceed it */
        for (int k = 0; k < n; k++) {
            int32_t from, to;
            int strand = hits[k].reverse;
            touched(a, r, hits[k], &from, &to);
            for (int32_t block = from; block < to; block++) {
                int32_t bound = block_value(a, r, strand, block);
                const lw_column *columns = ready_columns(a, r, strand, block);
                if (ready && columns) {
                    int32_t value = scan_node(a, r, columns, strand, block, hits, n, false, 0);
                    best = value > best ? value : best;
                } else if (!ready && !columns && bound != NOTHING &&
                           (bound > best || (to_place && bound == best))) {
                    /* whether any of its columns is allowed at all */
                    int32_t ref = block_ref(a, r, block), tend = first_tend(a, r, ref, block);
                    int32_t last = tend + columns_in(a, ref, tend, 1) - 1;
                    bool covered = false;
                    for (int j = 0; j < n && !covered; j++)
                        covered = excludes(hits[j], strand, ref, tend, r.qlen) &&
                                  excludes(hits[j], strand, ref, last, r.qlen);
                    if (!covered)
                        columns_of(a, r, strand, block);
                }
            }
        }
    return best;
}

/* Where the highest score outside the neighbourhoods is, by the tie rule. target -1: nowhere. */
LW_DEVICE lw_hit best_hit(const lw_select_args &a, reader &r, const lw_hit *hits, int n)
{
    lw_hit found = {0, -1, 0, 0, 0, 0};
    int32_t value = best_value(a, r, hits, n, true);
    if (r.waits || value == NOTHING)
        return found;
    for (int strand = 0; strand < 2 && found.target < 0; strand++) {
        if (r.view[strand] < 0)
            continue;
        /* the first untouched block that attains it ... */
        int32_t first = INT32_MAX;
        for (int32_t base = 0; base < r.n_blocks && first == INT32_MAX; base += LW_WARP) {
            int32_t block = base + r.lane;
            bool here = block < r.n_blocks && block_value(a, r, strand, block) == value &&
                        !touches(a, r, hits, n, strand, block);
            uint32_t votes = lw_ballot(LW_ALL_LANES, here);
            if (votes)
                first = base + __ffs((int)votes) - 1;
        }
        /* ... and any touched block that attains it outside the neighbourhoods */
        for (int k = -1; k < n; k++) {
            int32_t from = first, to = first == INT32_MAX ? first : first + 1;
            if (k >= 0) {
                if (hits[k].reverse != strand)
                    continue;
                touched(a, r, hits[k], &from, &to);
            }
            for (int32_t block = from; block < to; block++) {
                const lw_column *columns;
                if (k < 0) {
                    if (!a.paired && a.mode != LW_GLOBAL && find_node(a, r, strand, block) < 0)
                        ask_around(a, r, strand, block);
                    columns = columns_of(a, r, strand, block);
                } else {
                    columns = ready_columns(a, r, strand, block);
                }
                if (!columns)
                    continue;
                int32_t at = scan_node(a, r, columns, strand, block, hits, n, true, value);
                if (at < 0)
                    continue;
                int32_t ref = block_ref(a, r, block), tend = first_tend(a, r, ref, block) + at;
                if (found.target < 0 || ref < found.target || (ref == found.target && tend < found.tend)) {
                    lw_hit hit = {value, ref, tend, columns[at].qend, 0, (uint8_t)strand};
                    found = hit;
                }
            }
        }
    }
    return found;
}

LW_DEVICE int32_t second_best(const lw_select_args &a, reader &r, const lw_hit &hit)
{
    int32_t value = best_value(a, r, &hit, 1, false);
    if (a.mode == LW_LOCAL)
        return value < 0 ? 0 : value;
    return value == NOTHING ? (int32_t)LW_NO_SECOND : value;
}

/* Every column that attains `score`, in tie order, up to n_ties of them. */
LW_DEVICE int list_ties(const lw_select_args &a, reader &r, int32_t score, lw_hit *ties)
{
    int n = 0;
    for (int strand = 0; strand < 2; strand++) {
        if (r.view[strand] < 0)
            continue;
        int32_t last_ref = -1, last_tend = 0;
        for (int32_t base = 0; base < r.n_blocks && n < a.n_ties; base += LW_WARP) {
            int32_t mine = base + r.lane;
            uint32_t votes =
                lw_ballot(LW_ALL_LANES, mine < r.n_blocks && block_value(a, r, strand, mine) == score);
            while (votes && n < a.n_ties) {
                int32_t block = base + __ffs((int)votes) - 1;
                votes &= votes - 1;
                const lw_column *columns = columns_of(a, r, strand, block);
                if (!columns) {
                    n++; /* at least one more is there */
                    continue;
                }
                int32_t ref = block_ref(a, r, block), tend = first_tend(a, r, ref, block);
                int32_t count = columns_in(a, ref, tend, 1);
                for (int32_t i = 0; i < count && n < a.n_ties; i++) {
                    /* rows that the previous block's node held as well come once */
                    if (columns[i].score != score || (ref == last_ref && tend + i <= last_tend))
                        continue;
                    last_ref = ref, last_tend = tend + i;
                    if (!r.waits && r.lane == 0) {
                        lw_hit hit = {score, ref, tend + i, columns[i].qend, 0, (uint8_t)strand};
                        ties[n] = hit;
                    }
                    n++;
                }
            }
        }
    }
    lw_warp_sync(LW_ALL_LANES);
    return n;
}

LW_DEVICE void decide(const lw_select_args &a, reader &r)
{
    lw_hit *hits = a.hits + (int64_t)r.read * a.n_hits;
    lw_hit *ties = a.n_ties > 0 ? a.ties + (int64_t)r.read * a.n_ties : NULL;
    const lw_hit none = {0, -1, 0, 0, 0, 0};
    for (int k = r.lane; k < a.n_hits; k += LW_WARP)
        hits[k] = none;
    for (int k = r.lane; k < a.n_ties; k += LW_WARP)
        ties[k] = none;
    lw_warp_sync(LW_ALL_LANES);
    int n = 0;
    while (n < a.n_hits) {
        lw_hit hit = best_hit(a, r, hits, n);
        if (r.waits)
            return;
        if (hit.target < 0 || hit.score < a.min_score)
            break;
        if (r.lane == 0)
            hits[n] = hit;
        lw_warp_sync(LW_ALL_LANES);
        n++;
    }
    if (n == 0)
        return;
    lw_hit first = hits[0];
    int32_t second = a.paired ? 0 : second_best(a, r, first);
    int n_ties = ties ? list_ties(a, r, first.score, ties) : 0;
    if (r.waits)
        return;
    if (r.lane == 0)
        hits[0].second = second;
    for (int k = 0; k < n_ties; k++) {
        lw_hit tie = ties[k];
        tie.second = NOTHING;
        for (int j = 0; j < n_ties && tie.second == NOTHING; j++)
            if (!excludes(tie, ties[j].reverse, ties[j].target, ties[j].tend, r.qlen))
                tie.second = first.score;
        if (tie.second == NOTHING)
            tie.second = second_best(a, r, tie);
        if (r.lane == 0)
            ties[k].second = tie.second;
        lw_warp_sync(LW_ALL_LANES);
    }
}

__global__ void __launch_bounds__(LW_SELECT_WARPS *LW_WARP) lw_select_kernel(const lw_select_args a)
{
    int32_t at = (int32_t)(blockIdx.x * LW_SELECT_WARPS + threadIdx.x / LW_WARP);
    if (at >= a.n_list)
        return;
    reader r;
    r.read = a.list[at];
    r.qlen = a.len[r.read];
    r.ref_first = a.paired ? r.read : 0;
    r.ref_end = a.paired ? r.read + 1 : a.n_refs;
    r.block_first = a.ref_block[r.ref_first];
    r.n_blocks = a.ref_block[r.ref_end] - r.block_first;
    r.view[0] = a.view[(int64_t)r.read * 2];
    r.view[1] = a.view[(int64_t)r.read * 2 + 1];
    r.lane = lw_lane();
    r.waits = false;
    decide(a, r);
    if (r.waits && r.lane == 0)
        a.again[atomicAdd(&a.counts[0], 1)] = r.read;
}
