/* search_select.cu - the CUDA steps around the score kernel. */
#include "align/search_select.h"

#include "align/search_profile.h"
#include "align/search_tuning.h"
#include "common/dpx.cuh"
#include "common/warp.cuh"

enum { THREADS = 256, FINAL_THREADS = 1024 };

/* ---- rows and profiles
 * -------------------------------------------------------------------------------------- */

__global__ void make_rows(uint8_t *stream, const uint8_t *raw, const uint32_t *start, const int32_t *len,
                          int32_t n, const uint32_t *first_row, const uint8_t *class_of, int pad)
{
    __shared__ uint8_t classes[256];
    for (int i = threadIdx.x; i < 256; i += THREADS)
        classes[i] = class_of[i];
    __syncthreads();
    int lane = lw_lane(), n_pairs = (n + 1) / 2;
    uint16_t *rows = (uint16_t *)stream;
    const uint16_t separator = (uint16_t)((pad << LW_SW_LETTER_SHIFT | LW_SW_SEPARATOR) * 0x101);
    for (int pair = (blockIdx.x * THREADS + threadIdx.x) / LW_WARP; pair < n_pairs;
         pair += gridDim.x * THREADS / LW_WARP) {
        const uint8_t *a = raw + start[2 * pair], *b = a;
        int n_a = len[2 * pair], n_b = 0;
        if (2 * pair + 1 < n) {
            b = raw + start[2 * pair + 1];
            n_b = len[2 * pair + 1];
        }
        uint16_t *out = rows + first_row[pair];
        for (int i = lane; i < n_a; i += LW_WARP)
            out[i] = (uint16_t)((classes[a[i]] | (i < n_b ? classes[b[i]] : pad) << 8) << LW_SW_LETTER_SHIFT);
        if (lane == 0) {
            out[-1] = separator;
            if (pair == n_pairs - 1)
                out[n_a] = separator;
        }
    }
}

extern "C" cudaError_t lw_sw_make_rows(uint8_t *stream, const uint8_t *raw, const uint32_t *start,
                                       const int32_t *len, int32_t n, const uint32_t *first_row,
                                       const uint8_t *class_of, int pad, cudaStream_t stream_id)
{
    int blocks = (n + 1) / 2 / (THREADS / LW_WARP) + 1;
    blocks = blocks < 4096 ? blocks : 4096;
    make_rows<<<blocks, THREADS, 0, stream_id>>>(stream, raw, start, len, n, first_row, class_of, pad);
    return cudaGetLastError();
}

__global__ void make_profiles(const lw_sw_profile *tasks, const uint8_t *codes, const int16_t *scores,
                              int n_letters)
{
    lw_sw_profile task = tasks[blockIdx.y];
    uint32_t *out = (uint32_t *)task.out;
    int n = n_letters * LW_SW_COLUMNS * LW_WARP * 4 / LW_SW_QUAD_COLUMNS(task.form, task.arithmetic);
    for (int at = blockIdx.x * THREADS + threadIdx.x; at < n; at += gridDim.x * THREADS)
        out[at] = lw_sw_profile_word(&task, codes, scores, n_letters, at);
}

extern "C" cudaError_t lw_sw_make_profiles(const lw_sw_profile *tasks, int n, const uint8_t *codes,
                                           const int16_t *scores, int n_letters, cudaStream_t stream_id)
{
    for (int from = 0; from < n; from += 32768) {
        int some = n - from < 32768 ? n - from : 32768;
        make_profiles<<<dim3(16, (unsigned)some), THREADS, 0, stream_id>>>(tasks + from, codes, scores,
                                                                           n_letters);
    }
    return cudaGetLastError();
}

/* ---- which pairs are looked at again
 * --------------------------------------------------------------------------- */

__global__ void fold_pieces(lw_sw_selection s, const lw_sw_fold *folds, int n)
{
    int32_t *scores = s.queries[blockIdx.y].scores;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < 2 * n; i += gridDim.x * THREADS) {
        lw_sw_fold f = folds[i / 2];
        int32_t best = 0;
        for (int k = 0; k < f.n; k++)
            best = lw_max_host(best, scores[2 * (f.first + k) + (i & 1)]);
        scores[2 * f.pair + (i & 1)] = best;
    }
}

extern "C" cudaError_t lw_sw_fold_pieces(const lw_sw_selection *s, const lw_sw_fold *folds, int n,
                                         cudaStream_t stream_id)
{
    fold_pieces<<<dim3((unsigned)(2 * n / THREADS + 1), (unsigned)s->n_queries), THREADS, 0, stream_id>>>(
        *s, folds, n);
    return cudaGetLastError();
}

__global__ void count_scores(lw_sw_selection s)
{
    __shared__ uint32_t bins[LW_SW_BINS];
    for (int i = threadIdx.x; i < LW_SW_BINS; i += THREADS)
        bins[i] = 0;
    __syncthreads();
    lw_sw_query q = s.queries[blockIdx.y];
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < s.n_subjects; i += gridDim.x * THREADS) {
        int32_t v = q.scores[i];
        if (v >= q.min_score - s.bound)
            atomicAdd(&bins[v < s.clip ? v : s.clip], 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < LW_SW_BINS; i += THREADS)
        if (bins[i])
            atomicAdd(&q.histogram[i], bins[i]);
}

/* The highest value that top_n entries of bins[] reach, 0 if there are fewer; by all threads of a block of
 * `threads`, with an entry of part[] each. */
LW_DEVICE int32_t reached_by(const uint32_t *bins, int64_t top_n, int64_t *part, int threads)
{
    __shared__ int32_t cut;
    int each = LW_SW_BINS / threads, mine = threadIdx.x;
    int64_t sum = 0;
    for (int i = 0; i < each; i++)
        sum += bins[mine * each + i];
    part[mine] = sum;
    if (mine == 0)
        cut = 0;
    __syncthreads();
    int64_t above = 0;
    for (int t = mine + 1; t < threads; t++)
        above += part[t];
    if (above < top_n && above + sum >= top_n) {
        int i = each - 1;
        for (; i > 0; i--) {
            above += bins[mine * each + i];
            if (above >= top_n)
                break;
        }
        cut = mine * each + i;
    }
    __syncthreads();
    return cut;
}

__global__ void find_cuts(lw_sw_selection s)
{
    __shared__ int64_t part[THREADS];
    lw_sw_query q = s.queries[blockIdx.x];
    int32_t reached =
        reached_by(q.histogram, (s.above ? LW_SW_PROMISING : 1) * (int64_t)s.top_n, part, THREADS);
    if (threadIdx.x == 0)
        q.counts[LW_SW_CUT] = reached > q.min_score ? reached : q.min_score;
}

/* Entry i of the list as a subject and its score; false: no hit of this query whatever the cut. */
LW_DEVICE bool candidate(const lw_sw_selection &s, const lw_sw_query &q, int i, lw_search_hit *hit)
{
    int pair = q.list[i / 2], subject = 2 * pair + (i & 1);
    if (subject >= s.n_subjects || (s.filter && q.scores[subject] < q.filter))
        return false;
    hit->score = q.exact[i];
    hit->subject = subject;
    return hit->score >= q.min_score;
}

/* What the top_n best of exact[] reach, 0 if there are fewer; by a block of FINAL_THREADS. */
LW_DEVICE int32_t exact_cut(const lw_sw_selection &s, const lw_sw_query &q)
{
    __shared__ uint32_t bins[LW_SW_BINS];
    __shared__ int64_t part[FINAL_THREADS];
    const int n = 2 * q.counts[LW_SW_N_LIST];
    lw_search_hit hit;
    for (int i = threadIdx.x; i < LW_SW_BINS; i += FINAL_THREADS)
        bins[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += FINAL_THREADS)
        if (candidate(s, q, i, &hit))
            atomicAdd(&bins[hit.score < LW_SW_BINS ? hit.score : LW_SW_BINS - 1], 1);
    __syncthreads();
    return reached_by(bins, s.top_n, part, FINAL_THREADS);
}

/* The cut of the second round: what the first one's best have. */
__global__ void __launch_bounds__(FINAL_THREADS) find_second_cuts(lw_sw_selection s)
{
    lw_sw_query q = s.queries[blockIdx.x];
    int32_t reached = exact_cut(s, q);
    if (threadIdx.x == 0)
        q.counts[LW_SW_CUT + 1] = reached > q.min_score ? reached : q.min_score;
}

/* Place in an array that grows by one for each lane with `wanted`; all lanes of the warp call. */
LW_DEVICE int append(int32_t *n, bool wanted)
{
    uint32_t lanes = lw_ballot(LW_ALL_LANES, wanted);
    int lane = lw_lane(), base = 0;
    if (lane == 0 && lanes)
        base = atomicAdd(n, __popc(lanes));
    base = (int)lw_from_lane(LW_ALL_LANES, (uint32_t)base, 0, LW_WARP);
    return base + __popc(lanes & ((1u << lane) - 1));
}

__global__ void select_pairs(lw_sw_selection s)
{
    lw_sw_query q = s.queries[blockIdx.y];
    const int32_t first_cut = q.counts[LW_SW_CUT], cut = q.counts[LW_SW_CUT + s.round];
    const int32_t limit = s.limit[0];
    /* warps walk together, so that all lanes reach every append() */
    for (int from = (blockIdx.x * THREADS + threadIdx.x) & ~(LW_WARP - 1); from < s.n_pairs;
         from += gridDim.x * THREADS) {
        int pair = from + lw_lane();
        bool listed = false, high = false, exact = pair < s.exact_pairs;
        int2 v = {0, 0};
        int passed = 0, flagged = 0;
        if (pair < s.n_pairs) {
            v = ((const int2 *)q.scores)[pair];
            bool second = 2 * pair + 1 < s.n_subjects;
            if (!second)
                v.y = 0;
            if (s.filter) {
                passed = (v.x >= q.filter) + (second && v.y >= q.filter);
                listed = passed > 0;
                exact = false;
            } else {
                int32_t bound = exact ? 0 : s.bound;
                const int32_t best = second && v.y > v.x ? v.y : v.x;
                flagged = (v.x >= limit - bound) + (v.y >= limit - bound);
                high = flagged > 0;
                listed = s.round == 0 ? high || best >= cut - bound
                                      : !high && best < first_cut - bound && best >= cut - bound;
            }
        }
        int k = append(&q.counts[LW_SW_N_LIST], listed);
        if (listed) {
            q.list[k] = pair;
            if (exact) {
                q.exact[2 * k] = v.x;
                q.exact[2 * k + 1] = v.y;
            }
        }
        /* what is known not to fit goes on at once; a bound from above below the limit says that it will fit
         */
        bool next = listed && high && (exact || s.above);
        bool first = listed && !exact && !next;
        int32_t *n_chosen = q.counts + LW_SW_N_CHOSEN + s.round * LW_SW_LEVELS;
        int at = append(&n_chosen[0], first);
        if (first)
            q.chosen[s.round][0][at] = k;
        at = append(&n_chosen[1], next);
        if (next) {
            q.chosen[s.round][1][at] = k;
            atomicAdd(&q.counts[LW_SW_N_RESCUED], flagged);
        }
        passed = lw_reduce_add_xor(LW_ALL_LANES, passed, LW_WARP);
        if (passed && lw_lane() == 0)
            atomicAdd(&q.counts[LW_SW_N_PASSED], passed);
    }
}

static unsigned blocks_for(int32_t n, int most)
{
    int blocks = n / THREADS + 1;
    return (unsigned)(blocks < most ? blocks : most);
}

extern "C" cudaError_t lw_sw_select(const lw_sw_selection *s, int multiprocessors, cudaStream_t stream_id)
{
    unsigned n = (unsigned)s->n_queries;
    if (s->round == 1) {
        find_second_cuts<<<n, FINAL_THREADS, 0, stream_id>>>(*s);
    } else if (!s->filter) {
        count_scores<<<dim3(blocks_for(s->n_subjects / 8, multiprocessors), n), THREADS, 0, stream_id>>>(*s);
        find_cuts<<<n, THREADS, 0, stream_id>>>(*s);
    }
    select_pairs<<<dim3(blocks_for(s->n_pairs, 4 * multiprocessors), n), THREADS, 0, stream_id>>>(*s);
    return cudaGetLastError();
}

__global__ void promote(lw_sw_selection s, int level)
{
    lw_sw_query q = s.queries[blockIdx.y];
    int32_t *n_chosen = q.counts + LW_SW_N_CHOSEN + s.round * LW_SW_LEVELS;
    int n = n_chosen[level];
    for (int from = (blockIdx.x * THREADS + threadIdx.x) & ~(LW_WARP - 1); from < n;
         from += gridDim.x * THREADS) {
        int i = from + lw_lane(), k = 0, flagged = 0;
        if (i < n) {
            k = q.chosen[s.round][level][i];
            flagged = (q.exact[2 * k] >= s.limit[level]) +
                      (q.exact[2 * k + 1] >= s.limit[level] && 2 * q.list[k] + 1 < s.n_subjects);
        }
        int at = append(&n_chosen[level + 1], flagged > 0);
        if (flagged > 0) {
            q.chosen[s.round][level + 1][at] = k;
            if (level == 0)
                atomicAdd(&q.counts[LW_SW_N_RESCUED], flagged);
        }
    }
}

extern "C" cudaError_t lw_sw_promote(const lw_sw_selection *s, int level, cudaStream_t stream_id)
{
    promote<<<dim3(4, (unsigned)s->n_queries), THREADS, 0, stream_id>>>(*s, level);
    return cudaGetLastError();
}

/* ---- hits
 * ------------------------------------------------------------------------------------------------------ */

__global__ void __launch_bounds__(FINAL_THREADS) take_hits(lw_sw_selection s)
{
    __shared__ int32_t n_mine, first;
    lw_sw_query q = s.queries[blockIdx.x];
    const int n = 2 * q.counts[LW_SW_N_LIST], rounded = (n + LW_WARP - 1) & ~(LW_WARP - 1);
    if (threadIdx.x == 0)
        n_mine = 0;
    const int32_t cut = exact_cut(s, q);
    lw_search_hit hit;
    for (int i = threadIdx.x; i < n; i += FINAL_THREADS)
        if (candidate(s, q, i, &hit) && hit.score >= cut)
            atomicAdd(&n_mine, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        first = atomicAdd(s.n_hits, n_mine);
        q.counts[LW_SW_N_HITS] = n_mine;
        q.counts[LW_SW_FIRST_HIT] = first;
        n_mine = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rounded; i += FINAL_THREADS) {
        bool wanted = i < n && candidate(s, q, i, &hit) && hit.score >= cut;
        int at = append(&n_mine, wanted);
        if (wanted)
            s.hits[first + at] = hit;
    }
}

extern "C" cudaError_t lw_sw_take_hits(const lw_sw_selection *s, cudaStream_t stream_id)
{
    take_hits<<<(unsigned)s->n_queries, FINAL_THREADS, 0, stream_id>>>(*s);
    return cudaGetLastError();
}
