/* lab_warp.cu - what the lanes of a warp do together, each beside its counterpart in shared memory. */
#include "lab.h"

#include <string.h>

#define VARIANTS(list) list, (int)(sizeof list / sizeof *list)
#define ALL 0xffffffffu

enum { THREADS = 256, WARPS = THREADS / 32 };

static __device__ __forceinline__ uint32_t input(const lab_args &p)
{
    return ((const uint32_t *)p.in)[threadIdx.x];
}

static __device__ __forceinline__ void output(const lab_args &p, uint32_t value)
{
    ((uint32_t *)p.out)[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

/* --- sum over groups of lanes ----------------------------------------------------------------------- */

enum { SHARED, DOWN, XOR, INSTRUCTION };

/* Sum of a group's values, in its first lane at least. */
template <int HOW, int WIDTH>
static __device__ __forceinline__ uint32_t group_sum(uint32_t value, uint32_t *shared)
{
    if constexpr (HOW == SHARED) {
        shared[threadIdx.x] = value;
        __syncwarp();
        for (uint32_t d = WIDTH / 2; d > 0; d /= 2) {
            if (threadIdx.x % WIDTH < d)
                shared[threadIdx.x] += shared[threadIdx.x + d];
            __syncwarp();
        }
        value = shared[threadIdx.x];
        __syncwarp();
        return value;
    }
    if constexpr (HOW == INSTRUCTION) {
#if __CUDA_ARCH__ >= 800
        value = (uint32_t)__reduce_add_sync(ALL, (int)value);
#endif /* not run: minimum_cc */
    } else {
#pragma unroll
        for (int d = WIDTH / 2; d > 0; d /= 2)
            value += HOW == DOWN ? __shfl_down_sync(ALL, value, (unsigned)d, WIDTH)
                                 : __shfl_xor_sync(ALL, value, d, WIDTH);
    }
    return value;
}

template <int HOW, int WIDTH> static __global__ void sums(lab_args p)
{
    __shared__ uint32_t shared[THREADS];
    uint32_t x = input(p), sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++)
        sum = sum * 3 + group_sum<HOW, WIDTH>(x ^ r, shared);
    output(p, threadIdx.x % WIDTH == 0 ? sum : 0);
}

static void sums_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    const uint32_t *in = (const uint32_t *)args->in;
    for (uint32_t t = 0; t < THREADS; t += v->a)
        for (uint32_t r = 0; r < args->rounds; r++) {
            uint32_t sum = 0;
            for (uint32_t i = 0; i < v->a; i++)
                sum += in[t + i] ^ r;
            out[t] = out[t] * 3 + sum;
        }
}

static const lab_variant sums_variants[] = {
    {"shared memory", (const void *)sums<SHARED, 32>, THREADS, "LDS", 0, false, 32},
    {"shuffle down", (const void *)sums<DOWN, 32>, THREADS, "SHFL", 0, false, 32},
    {"shuffle xor", (const void *)sums<XOR, 32>, THREADS, "SHFL", 0, false, 32},
    {"__reduce_add_sync", (const void *)sums<INSTRUCTION, 32>, THREADS, "REDUX", 80, false, 32},
};
static const lab_variant groups_variants[] = {
    {"32 lanes", (const void *)sums<XOR, 32>, THREADS, "SHFL", 0, false, 32},
    {"16 lanes", (const void *)sums<XOR, 16>, THREADS, "SHFL", 0, false, 16},
    {"8 lanes", (const void *)sums<XOR, 8>, THREADS, "SHFL", 0, false, 8},
    {"4 lanes", (const void *)sums<XOR, 4>, THREADS, "SHFL", 0, false, 4},
};

/* --- sum over a block ------------------------------------------------------------------------------- */

enum { TREE, TWO_STAGES, ATOMIC };
template <int HOW> static __global__ void block_sums(lab_args p)
{
    __shared__ uint32_t shared[THREADS];
    uint32_t x = input(p), sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        uint32_t value = x ^ r;
        if (HOW == TREE) {
            shared[threadIdx.x] = value;
            __syncthreads();
            for (uint32_t d = THREADS / 2; d > 0; d /= 2) {
                if (threadIdx.x < d)
                    shared[threadIdx.x] += shared[threadIdx.x + d];
                __syncthreads();
            }
        } else if (HOW == TWO_STAGES) {
            value = group_sum<DOWN, 32>(value, NULL);
            if (threadIdx.x % 32 == 0)
                shared[threadIdx.x / 32] = value;
            __syncthreads();
            if (threadIdx.x < WARPS) {
                value = shared[threadIdx.x];
                for (int d = WARPS / 2; d > 0; d /= 2)
                    value += __shfl_down_sync((1u << WARPS) - 1, value, (unsigned)d, WARPS);
                if (threadIdx.x == 0)
                    shared[0] = value;
            }
            __syncthreads();
        } else {
            if (threadIdx.x == 0)
                shared[0] = 0;
            __syncthreads();
            atomicAdd(&shared[0], value);
            __syncthreads();
        }
        sum = sum * 3 + shared[0];
        __syncthreads();
    }
    output(p, sum);
}

static void block_sums_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t r = 0; r < args->rounds; r++) {
        uint32_t sum = 0;
        for (uint32_t t = 0; t < THREADS; t++)
            sum += ((const uint32_t *)args->in)[t] ^ r;
        for (uint32_t t = 0; t < THREADS; t++)
            out[t] = out[t] * 3 + sum;
    }
}

static const lab_variant block_sums_variants[] = {
    {"tree in shared memory", (const void *)block_sums<TREE>, THREADS, "BAR"},
    {"shuffles in two stages", (const void *)block_sums<TWO_STAGES>, THREADS, "SHFL"},
    {"atomics in shared memory", (const void *)block_sums<ATOMIC>, THREADS, "ATOMS"},
};

/* --- votes ------------------------------------------------------------------------------------------ */

enum { BALLOT, VOTE_SHUFFLES, VOTE_ATOMIC, ANY, ANY_SHUFFLES, ALL_OF };
template <int HOW> static __global__ void votes(lab_args p)
{
    __shared__ uint32_t shared[WARPS];
    uint32_t x = input(p), sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        uint32_t yes = (x >> (r & 15) & 31) < 3, result;
        x = x * 5 + 1;
        if (HOW == BALLOT)
            result = (uint32_t)__popc(__ballot_sync(ALL, (int)yes));
        else if (HOW == ANY)
            result = (uint32_t)__any_sync(ALL, (int)yes);
        else if (HOW == ALL_OF)
            result = (uint32_t)!__all_sync(ALL, (int)!yes);
        else if (HOW == VOTE_ATOMIC) {
            if (threadIdx.x % 32 == 0)
                shared[threadIdx.x / 32] = 0;
            __syncwarp();
            if (yes)
                atomicAdd(&shared[threadIdx.x / 32], 1);
            __syncwarp();
            result = shared[threadIdx.x / 32];
            __syncwarp();
        } else {
            result = group_sum<XOR, 32>(yes, NULL);
            if (HOW == ANY_SHUFFLES)
                result = result != 0;
        }
        sum = sum * 3 + result;
    }
    output(p, sum);
}

static void votes_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    for (uint32_t warp = 0; warp < WARPS; warp++) {
        uint32_t x[32];
        memcpy(x, (const uint32_t *)args->in + warp * 32, sizeof x);
        for (uint32_t r = 0; r < args->rounds; r++) {
            uint32_t count = 0;
            for (int i = 0; i < 32; i++) {
                count += (x[i] >> (r & 15) & 31) < 3;
                x[i] = x[i] * 5 + 1;
            }
            for (int i = 0; i < 32; i++)
                out[warp * 32 + i] = out[warp * 32 + i] * 3 + (v->a ? count != 0 : count);
        }
    }
}

static const lab_variant counts_variants[] = {
    {"shared atomics", (const void *)votes<VOTE_ATOMIC>, THREADS, "ATOMS"},
    {"shuffles", (const void *)votes<VOTE_SHUFFLES>, THREADS, "SHFL"},
    {"ballot and popc", (const void *)votes<BALLOT>, THREADS, "VOTE"},
};
static const lab_variant any_variants[] = {
    {"shuffles", (const void *)votes<ANY_SHUFFLES>, THREADS, "SHFL", 0, false, 1},
    {"any", (const void *)votes<ANY>, THREADS, "VOTE", 0, false, 1},
    {"not all", (const void *)votes<ALL_OF>, THREADS, "VOTE", 0, false, 1},
};

/* --- who takes part --------------------------------------------------------------------------------- */

/* Two lanes of three have work, of one of two kinds, and both kinds need to know how many lanes there are
 * with work. The mask of those is made before the branches. */
static __global__ void mask_before(lab_args p)
{
    uint32_t x = input(p), sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        uint32_t mask = __ballot_sync(ALL, (threadIdx.x + r) % 3 != 0);
        if ((threadIdx.x + r) % 3 != 0) {
            if (x & 1)
                sum = sum * 3 + (uint32_t)__popc(mask);
            else
                sum = (sum ^ x) * 5 + (uint32_t)__popc(mask);
        }
        __syncwarp();
    }
    output(p, sum);
}

/* The same with whoever happens to be active: lanes in the other branch are not seen. (Nothing here waits for
 * the lanes of such a mask: that can hang.) */
static __global__ void mask_activemask(lab_args p)
{
    uint32_t x = input(p), sum = 0;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        if ((threadIdx.x + r) % 3 != 0) {
            if (x & 1)
                sum = sum * 3 + (uint32_t)__popc(__activemask());
            else
                sum = (sum ^ x) * 5 + (uint32_t)__popc(__activemask());
        }
        __syncwarp();
    }
    output(p, sum);
}

static void mask_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    const uint32_t *in = (const uint32_t *)args->in;
    for (uint32_t warp = 0; warp < WARPS; warp++)
        for (uint32_t r = 0; r < args->rounds; r++) {
            uint32_t count = 0;
            for (uint32_t t = warp * 32; t < warp * 32 + 32; t++)
                count += (t + r) % 3 != 0;
            for (uint32_t t = warp * 32; t < warp * 32 + 32; t++)
                if ((t + r) % 3)
                    out[t] = in[t] & 1 ? out[t] * 3 + count : (out[t] ^ in[t]) * 5 + count;
        }
}

static const lab_variant mask_variants[] = {
    {"mask made before the branch", (const void *)mask_before, THREADS, "VOTE"},
    {"__activemask in the branch", (const void *)mask_activemask, THREADS, NULL, 0, true},
};

/* --- transposition in a warp ------------------------------------------------------------------------ */

enum { NO_PADDING, PADDING, PADDING_BLOCK, BUTTERFLY };
enum { SIDE = 32, TRANSPOSERS = 64 };

/* Each lane holds a row of 32 words and wants the column. */
template <int HOW> static __global__ void transposition(lab_args p)
{
    constexpr int stride = HOW == NO_PADDING ? SIDE : SIDE + 1;
    __shared__ uint32_t shared[HOW == BUTTERFLY ? 1 : TRANSPOSERS / 32 * SIDE * stride];
    uint32_t lane = threadIdx.x % 32, *tile = shared + threadIdx.x / 32 * (SIDE * stride), x[SIDE];
    for (int k = 0; k < SIDE; k++)
        x[k] = ((const uint32_t *)p.in)[threadIdx.x * SIDE + k];
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        if (HOW == BUTTERFLY) { /* blocks of 16, 8, ... change places across the diagonal */
#pragma unroll
            for (int d = SIDE / 2; d > 0; d /= 2)
#pragma unroll
                for (int k = 0; k < SIDE; k++)
                    if (!(k & d)) {
                        bool upper = lane & d;
                        uint32_t send = upper ? x[k] : x[k + d];
                        send = __shfl_xor_sync(ALL, send, d);
                        x[k] = upper ? send : x[k];
                        x[k + d] = upper ? x[k + d] : send;
                    }
        } else {
#pragma unroll
            for (int k = 0; k < SIDE; k++)
                tile[lane * stride + k] = x[k];
            if (HOW == PADDING_BLOCK)
                __syncthreads();
            else
                __syncwarp();
#pragma unroll
            for (int k = 0; k < SIDE; k++)
                x[k] = tile[k * stride + lane];
            if (HOW == PADDING_BLOCK)
                __syncthreads();
            else
                __syncwarp();
        }
        x[0] += r;
    }
    uint32_t sum = 0;
    for (int k = 0; k < SIDE; k++)
        sum = sum * 3 + x[k];
    output(p, sum);
}

static void transposition_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    for (uint32_t warp = 0; warp < TRANSPOSERS / 32; warp++) {
        uint32_t x[SIDE][SIDE], y[SIDE][SIDE];
        memcpy(x, (const uint32_t *)args->in + warp * SIDE * SIDE, sizeof x);
        for (uint32_t r = 0; r < args->rounds; r++) {
            for (int i = 0; i < SIDE; i++)
                for (int k = 0; k < SIDE; k++)
                    y[i][k] = x[k][i] + (k == 0 ? r : 0);
            memcpy(x, y, sizeof x);
        }
        for (int i = 0; i < SIDE; i++)
            for (int k = 0; k < SIDE; k++)
                out[warp * 32 + i] = out[warp * 32 + i] * 3 + x[i][k];
    }
}

static const lab_variant transposition_variants[] = {
    {"shared, bank conflicts", (const void *)transposition<NO_PADDING>, TRANSPOSERS, "LDS"},
    {"shared, padded, __syncthreads", (const void *)transposition<PADDING_BLOCK>, TRANSPOSERS, "BAR"},
    {"shared, padded, __syncwarp", (const void *)transposition<PADDING>, TRANSPOSERS, "LDS"},
    {"shuffles", (const void *)transposition<BUTTERFLY>, TRANSPOSERS, "SHFL"},
};

/* --- broadcast and running sums --------------------------------------------------------------------- */

enum { CAST_SHARED, CAST_SHUFFLE };
template <int HOW> static __global__ void broadcast(lab_args p)
{
    __shared__ uint32_t shared[THREADS];
    uint32_t x = input(p);
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        uint32_t from = r & 31, value;
        if (HOW == CAST_SHUFFLE)
            value = __shfl_sync(ALL, x, (int)from);
        else {
            shared[threadIdx.x] = x;
            __syncwarp();
            value = shared[threadIdx.x / 32 * 32 + from];
            __syncwarp();
        }
        x = x * 5 + value;
    }
    output(p, x);
}

static void broadcast_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    memcpy(out, args->in, THREADS * 4);
    for (uint32_t r = 0; r < args->rounds; r++)
        for (uint32_t warp = 0; warp < WARPS; warp++) {
            uint32_t value = out[warp * 32 + (r & 31)];
            for (uint32_t i = 0; i < 32; i++)
                out[warp * 32 + i] = out[warp * 32 + i] * 5 + value;
        }
}

static const lab_variant broadcast_variants[] = {
    {"shared memory", (const void *)broadcast<CAST_SHARED>, THREADS, "LDS"},
    {"__shfl_sync", (const void *)broadcast<CAST_SHUFFLE>, THREADS, "SHFL"},
};

template <int HOW, int WIDTH> static __global__ void running_sums(lab_args p)
{
    __shared__ uint32_t shared[THREADS];
    uint32_t x = input(p), lane = threadIdx.x % WIDTH;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        uint32_t value = x ^ r;
#pragma unroll
        for (uint32_t d = 1; d < WIDTH; d *= 2) {
            uint32_t below;
            if (HOW == CAST_SHUFFLE)
                below = __shfl_up_sync(ALL, value, d, WIDTH);
            else {
                shared[threadIdx.x] = value;
                __syncwarp();
                below = lane >= d ? shared[threadIdx.x - d] : 0;
                __syncwarp();
            }
            value += lane >= d ? below : 0;
        }
        x = x * 5 + value;
    }
    output(p, x);
}

static void running_sums_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    memcpy(out, args->in, THREADS * 4);
    for (uint32_t r = 0; r < args->rounds; r++)
        for (uint32_t t = 0, sum = 0; t < THREADS; t++) {
            sum = (t % v->a ? sum : 0) + (out[t] ^ r);
            out[t] = out[t] * 5 + sum;
        }
}

static const lab_variant running_sums_variants[] = {
    {"shared memory", (const void *)running_sums<CAST_SHARED, 32>, THREADS, "LDS", 0, false, 32},
    {"__shfl_up_sync", (const void *)running_sums<CAST_SHUFFLE, 32>, THREADS, "SHFL", 0, false, 32},
    {"__shfl_up_sync, groups of 8", (const void *)running_sums<CAST_SHUFFLE, 8>, THREADS, "SHFL", 0, false,
     8},
};

/* --- keeping some elements -------------------------------------------------------------------------- */

enum { KEEP_SCAN, KEEP_BALLOT, KEEP_FNS };
/* Values that are no multiple of 4 move to the front of their warp's piece, in order; the rest becomes 0. */
template <int HOW> static __global__ void compaction(lab_args p)
{
    __shared__ uint32_t shared[THREADS];
    uint32_t x = input(p), lane = threadIdx.x % 32, *piece = shared + threadIdx.x / 32 * 32;
#pragma unroll 1
    for (uint32_t r = 0; r < p.rounds; r++) {
        uint32_t value = x ^ r;
        bool kept = value % 4 != 0;
        if (HOW == KEEP_FNS) { /* each lane looks for the one whose value it gets */
            uint32_t mask = __ballot_sync(ALL, kept);
            unsigned from = __fns(mask, 0, (int)lane + 1);
            value = __shfl_sync(ALL, value, (int)(from & 31));
            value = from < 32 ? value : 0;
        } else {
            uint32_t place;
            if (HOW == KEEP_BALLOT)
                place = (uint32_t)__popc(__ballot_sync(ALL, kept) & ((1u << lane) - 1));
            else {
                uint32_t count = kept;
                for (uint32_t d = 1; d < 32; d *= 2) {
                    uint32_t below = __shfl_up_sync(ALL, count, d);
                    count += lane >= d ? below : 0;
                }
                place = count - kept;
            }
            piece[lane] = 0;
            __syncwarp();
            if (kept)
                piece[place] = value;
            __syncwarp();
            value = piece[lane];
            __syncwarp();
        }
        x = x * 5 + value;
    }
    output(p, x);
}

static void compaction_reference(const lab_args *args, const lab_variant *v, uint32_t *out)
{
    (void)v;
    memcpy(out, args->in, THREADS * 4);
    for (uint32_t r = 0; r < args->rounds; r++)
        for (uint32_t warp = 0; warp < WARPS; warp++) {
            uint32_t kept[32] = {0}, n = 0, *x = out + warp * 32;
            for (int i = 0; i < 32; i++)
                if ((x[i] ^ r) % 4)
                    kept[n++] = x[i] ^ r;
            for (int i = 0; i < 32; i++)
                x[i] = x[i] * 5 + kept[i];
        }
}

static const lab_variant compaction_variants[] = {
    {"running sums by shuffles", (const void *)compaction<KEEP_SCAN>, THREADS, "SHFL"},
    {"ballot and popc", (const void *)compaction<KEEP_BALLOT>, THREADS, "VOTE"},
    {"ballot and fns", (const void *)compaction<KEEP_FNS>, THREADS, "VOTE"},
};

/* --- the table -------------------------------------------------------------------------------------- */

#define ROW(title, shape, unit, where, words, checked, rounds, per_sm, work, reference, variants)            \
    {                                                                                                        \
        title, shape, unit, where, (words)*4, 0, 1 << 22, 0, rounds, 5, 0, per_sm, work, false, checked, 0,  \
            NULL, reference, VARIANTS(variants)                                                              \
    }
#define FULL "256 threads, 8 blocks a multiprocessor"

static const lab_technique techniques[] = {
    ROW("sum over a warp", FULL, "values", "src/common/warp.cuh: lw_reduce_add_xor", THREADS, THREADS, 500, 8,
        1, sums_reference, sums_variants),
    ROW("sum over groups of lanes", FULL, "values", "src/common/warp.cuh; src/align: groups of 1 to 32 lanes",
        THREADS, THREADS, 500, 8, 1, sums_reference, groups_variants),
    ROW("sum over a block", FULL, "values", "src/infer/infer_cuda_rows.cu: lw_block_sum", THREADS, THREADS,
        300, 8, 1, block_sums_reference, block_sums_variants),
    ROW("counting votes", FULL, "votes", "src/common/warp.cuh: lw_ballot", THREADS, THREADS, 500, 8, 1,
        votes_reference, counts_variants),
    ROW("any lane", FULL, "votes", "src/common/warp.cuh: lw_any; src/align/search_kernels.cuh", THREADS,
        THREADS, 500, 8, 1, votes_reference, any_variants),
    ROW("who takes part", FULL, "values", "src/common/warp.cuh: every call names its lanes", THREADS, THREADS,
        200, 8, 1, mask_reference, mask_variants),
    ROW("transposition in a warp", "64 threads, 8 blocks a multiprocessor, 32 x 32 words", "words",
        "src/paths/paths_kernels.cuh, src/infer/infer_cuda_layout.cu: padded tiles", TRANSPOSERS *SIDE,
        TRANSPOSERS, 200, 8, SIDE, transposition_reference, transposition_variants),
    ROW("broadcast", FULL, "words", "src/common/warp.cuh: lw_from_lane", THREADS, THREADS, 500, 8, 1,
        broadcast_reference, broadcast_variants),
    ROW("running sums", FULL, "values", "src/common/warp.cuh: lw_from_below", THREADS, THREADS, 500, 8, 1,
        running_sums_reference, running_sums_variants),
    ROW("keeping some elements", FULL, "values", "src/align/search_select.cu", THREADS, THREADS, 300, 8, 1,
        compaction_reference, compaction_variants),
};
extern const lab_list lab_warp = {techniques, (int)(sizeof techniques / sizeof *techniques)};
