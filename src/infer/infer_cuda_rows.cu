/* infer_cuda_rows.cu - softmax, layer normalization and means: one row after the other, held in registers
 * between its only reading and its only writing. */
#include "common/cuda_check.h"
#include "common/warp.cuh"
#include "infer/infer_cuda.h"
#include "infer/infer_tuning.h"

/* Sums over a block of WARPS warps; every thread gets the result. `shared` is free again afterwards. */
template <int WARPS> LW_DEVICE float lw_block_sum(float value, float *shared)
{
    value = lw_reduce_fadd_xor(LW_ALL_LANES, value, LW_WARP);
    if (WARPS == 1)
        return value;
    if (lw_lane() == 0)
        shared[threadIdx.x / LW_WARP] = value;
    __syncthreads();
    value = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        value += shared[w];
    __syncthreads();
    return value;
}

template <int WARPS> LW_DEVICE float lw_block_max(float value, float *shared)
{
    value = lw_reduce_fmax_xor(LW_ALL_LANES, value, LW_WARP);
    if (WARPS == 1)
        return value;
    if (lw_lane() == 0)
        shared[threadIdx.x / LW_WARP] = value;
    __syncthreads();
    value = shared[0];
#pragma unroll
    for (int w = 1; w < WARPS; w++)
        value = fmaxf(value, shared[w]);
    __syncthreads();
    return value;
}

/* A block has `groups` rows under way, each with WARPS warps of its own (WARPS 1: several; else one). A
 * thread holds V * W floats of its row: V times W neighbours, W = 4 where rows are aligned to 16 bytes. */
template <int V, int W>
LW_DEVICE void lw_load_row(float v[V * W], const float *from, int n, int t, int threads, float beyond)
{
#pragma unroll
    for (int i = 0; i < V; i++) {
        int at = (i * threads + t) * W;
        if (W == 4) {
            float4 four = make_float4(beyond, beyond, beyond, beyond);
            if (at < n)
                four = __ldcs((const float4 *)(from + at));
            v[4 * i] = four.x, v[4 * i + 1] = four.y, v[4 * i + 2] = four.z, v[4 * i + 3] = four.w;
        } else {
            v[i] = at < n ? from[at] : beyond;
        }
    }
}

template <int V, int W>
LW_DEVICE void lw_store_row(const float v[V * W], float *to, int n, int t, int threads)
{
#pragma unroll
    for (int i = 0; i < V; i++) {
        int at = (i * threads + t) * W;
        if (at >= n)
            continue;
        if (W == 4)
            __stcs((float4 *)(to + at), make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]));
        else
            to[at] = v[i];
    }
}

typedef struct softmax {
    int64_t rows;
    int n;
    const float *from;
    float *to;
} softmax;

/* y = exp(x - max) / sum: __expf of numbers <= 0, one reciprocal a row. */
template <int WARPS, int V, int W>
__global__ void __launch_bounds__(LW_CUDA_ROW_THREADS) lw_softmax_rows(softmax p)
{
    __shared__ float shared[WARPS];
    enum { MINE = V * W, THREADS = WARPS * LW_WARP };
    int t = (int)threadIdx.x % THREADS;
    int64_t row = WARPS == 1 ? (int64_t)blockIdx.x * (blockDim.x / LW_WARP) + threadIdx.x / LW_WARP
                             : (int64_t)blockIdx.x;
    if (row >= p.rows)
        return;
    float v[MINE];
    lw_load_row<V, W>(v, p.from + row * p.n, p.n, t, THREADS, -INFINITY);
    float largest = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < MINE; i++)
        largest = fmaxf(largest, v[i]);
    largest = lw_block_max<WARPS>(largest, shared);
#pragma unroll
    for (int i = 0; i < MINE; i++) {
        v[i] = __expf(v[i] - largest);
        sum += v[i];
    }
    float scale = 1.0f / lw_block_sum<WARPS>(sum, shared);
#pragma unroll
    for (int i = 0; i < MINE; i++)
        v[i] *= scale;
    lw_store_row<V, W>(v, p.to + row * p.n, p.n, t, THREADS);
}

/* Rows longer than registers hold: read three times. */
template <int WARPS> __global__ void __launch_bounds__(WARPS *LW_WARP) lw_softmax_long(softmax p)
{
    __shared__ float shared[WARPS];
    const float *from = p.from + (int64_t)blockIdx.x * p.n;
    float *to = p.to + (int64_t)blockIdx.x * p.n, largest = -INFINITY, sum = 0;
    for (int i = (int)threadIdx.x; i < p.n; i += WARPS * LW_WARP)
        largest = fmaxf(largest, from[i]);
    largest = lw_block_max<WARPS>(largest, shared);
    for (int i = (int)threadIdx.x; i < p.n; i += WARPS * LW_WARP)
        sum += __expf(from[i] - largest);
    float scale = 1.0f / lw_block_sum<WARPS>(sum, shared);
    for (int i = (int)threadIdx.x; i < p.n; i += WARPS * LW_WARP)
        to[i] = __expf(from[i] - largest) * scale;
}

/* Rows for one warp: how many a block takes. */
enum { ROWS_A_BLOCK = LW_CUDA_ROW_THREADS / LW_WARP };

static bool aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}

extern "C" lw_status lw_cuda_softmax(infer_cuda *x, int64_t rows, int64_t n, const float *from, float *to,
                                     lw_error *err)
{
    if (rows == 0 || n == 0)
        return LW_OK;
    softmax p = {rows, (int)n, from, to};
    bool four = n % 4 == 0 && aligned(from) && aligned(to);
    if (n <= LW_CUDA_SHORT_ROW) {
        dim3 grid((unsigned)((rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK));
        LW_CUDA_TRY(err, "softmax",
                    lw_launch(lw_softmax_rows<1, LW_CUDA_SHORT_ROW / LW_WARP, 1>, grid, LW_CUDA_ROW_THREADS,
                              0, x->stream, p));
    } else if (four && n <= LW_CUDA_ROW_THREADS * LW_CUDA_ROW_FOURS * 4) {
        LW_CUDA_TRY(err, "softmax",
                    lw_launch(lw_softmax_rows<ROWS_A_BLOCK, LW_CUDA_ROW_FOURS, 4>, dim3((unsigned)rows),
                              LW_CUDA_ROW_THREADS, 0, x->stream, p));
    } else {
        LW_CUDA_TRY(err, "softmax",
                    lw_launch(lw_softmax_long<16>, dim3((unsigned)rows), 512, 0, x->stream, p));
    }
    return LW_OK;
}

/* ---- layer normalization ---------------------------------------------------------------------------- */

/* Mean, then the variance of the differences: two passes over registers, no cancellation. */
template <int WARPS, int V, int W>
__global__ void __launch_bounds__(LW_CUDA_ROW_THREADS) lw_norm_rows(lw_cuda_norm p)
{
    __shared__ float shared[WARPS];
    enum { MINE = V * W, THREADS = WARPS * LW_WARP };
    int t = (int)threadIdx.x % THREADS, n = (int)p.n;
    int64_t row = WARPS == 1 ? (int64_t)blockIdx.x * (blockDim.x / LW_WARP) + threadIdx.x / LW_WARP
                             : (int64_t)blockIdx.x;
    if (row >= p.rows)
        return;
    float v[MINE];
    lw_load_row<V, W>(v, p.x + row * p.n, n, t, THREADS, 0);
    if (p.skip) {
#pragma unroll
        for (int i = 0; i < MINE; i++) {
            int at = (i / W * THREADS + t) * W + i % W;
            if (at < n) {
                v[i] += p.skip[row * p.n + at];
                if (p.skip_bias)
                    v[i] += p.skip_bias[at];
                if (p.sum)
                    p.sum[row * p.n + at] = v[i];
            }
        }
    }
    float sum = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < MINE; i++)
        sum += v[i];
    float mean = lw_block_sum<WARPS>(sum, shared) / (float)n;
#pragma unroll
    for (int i = 0; i < MINE; i++) {
        v[i] -= mean;
        squares += (i / W * THREADS + t) * W + i % W < n ? v[i] * v[i] : 0;
    }
    float inverse = 1.0f / sqrtf(lw_block_sum<WARPS>(squares, shared) / (float)n + p.epsilon);
#pragma unroll
    for (int i = 0; i < V; i++) {
        int at = (i * THREADS + t) * W;
        if (at < n) {
#pragma unroll
            for (int f = 0; f < W; f++)
                v[W * i + f] = v[W * i + f] * inverse * p.scale[at + f] + (p.bias ? p.bias[at + f] : 0);
        }
    }
    lw_store_row<V, W>(v, p.y + row * p.n, n, t, THREADS);
    if (t == 0 && p.mean)
        p.mean[row] = mean;
    if (t == 0 && p.inverse)
        p.inverse[row] = inverse;
}

template <int WARPS> __global__ void __launch_bounds__(WARPS *LW_WARP) lw_norm_long(lw_cuda_norm p)
{
    __shared__ float shared[WARPS];
    int n = (int)p.n;
    const float *skip = p.skip ? p.skip + blockIdx.x * p.n : NULL, *from = p.x + blockIdx.x * p.n;
    float *to = p.y + blockIdx.x * p.n, sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; i < n; i += WARPS * LW_WARP) { /* y holds x + skip until the last pass */
        float v = from[i] + (skip ? skip[i] : 0) + (p.skip_bias ? p.skip_bias[i] : 0);
        to[i] = v;
        sum += v;
        if (p.sum)
            p.sum[blockIdx.x * p.n + i] = v;
    }
    float mean = lw_block_sum<WARPS>(sum, shared) / (float)n;
    for (int i = (int)threadIdx.x; i < n; i += WARPS * LW_WARP)
        squares += (to[i] - mean) * (to[i] - mean);
    float inverse = 1.0f / sqrtf(lw_block_sum<WARPS>(squares, shared) / (float)n + p.epsilon);
    for (int i = (int)threadIdx.x; i < n; i += WARPS * LW_WARP)
        to[i] = (to[i] - mean) * inverse * p.scale[i] + (p.bias ? p.bias[i] : 0);
    if (threadIdx.x == 0 && p.mean)
        p.mean[blockIdx.x] = mean;
    if (threadIdx.x == 0 && p.inverse)
        p.inverse[blockIdx.x] = inverse;
}

extern "C" lw_status lw_cuda_layer_norm(infer_cuda *x, const lw_cuda_norm *p, lw_error *err)
{
    if (p->rows == 0 || p->n == 0)
        return LW_OK;
    bool four = p->n % 4 == 0 && aligned(p->x) && aligned(p->y);
    if (p->n <= LW_CUDA_SHORT_ROW) {
        dim3 grid((unsigned)((p->rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK));
        LW_CUDA_TRY(err, "layer normalization",
                    lw_launch(lw_norm_rows<1, LW_CUDA_SHORT_ROW / LW_WARP, 1>, grid, LW_CUDA_ROW_THREADS, 0,
                              x->stream, *p));
    } else if (four && p->n <= LW_CUDA_ROW_THREADS * LW_CUDA_ROW_FOURS * 4) {
        LW_CUDA_TRY(err, "layer normalization",
                    lw_launch(lw_norm_rows<ROWS_A_BLOCK, LW_CUDA_ROW_FOURS, 4>, dim3((unsigned)p->rows),
                              LW_CUDA_ROW_THREADS, 0, x->stream, *p));
    } else {
        LW_CUDA_TRY(err, "layer normalization",
                    lw_launch(lw_norm_long<16>, dim3((unsigned)p->rows), 512, 0, x->stream, *p));
    }
    return LW_OK;
}

/* ---- means ------------------------------------------------------------------------------------------ */

__global__ void __launch_bounds__(256) lw_mean_rows(softmax p)
{
    int64_t row = (int64_t)blockIdx.x * 8 + threadIdx.x / LW_WARP;
    if (row >= p.rows)
        return;
    float sum = 0;
    for (int i = lw_lane(); i < p.n; i += LW_WARP)
        sum += p.from[row * p.n + i];
    sum = lw_reduce_fadd_xor(LW_ALL_LANES, sum, LW_WARP);
    if (lw_lane() == 0)
        p.to[row] = sum / (float)p.n;
}

extern "C" lw_status lw_cuda_row_means(infer_cuda *x, int64_t rows, int64_t n, const float *from, float *to,
                                       lw_error *err)
{
    softmax p = {rows, (int)n, from, to};
    if (rows > 0)
        LW_CUDA_TRY(err, "means",
                    lw_launch(lw_mean_rows, dim3((unsigned)((rows + 7) / 8)), 256, 0, x->stream, p));
    return LW_OK;
}
