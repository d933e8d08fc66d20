/* infer_cuda_pool.cu - pooling, and functions of bytes that are tables. */
#include "common/cuda_check.h"
#include "common/warp.cuh"
#include "infer/infer_cuda.h"
#include "infer/quant.h"

enum { THREADS = 256 };

/* The pooled values of one result, one after the other. */
typedef struct pooled {
    float best, reals;
    double sum;
    int64_t bytes;
} pooled;

LW_DEVICE pooled lw_pooled_none(const lw_cuda_pool *p)
{
    pooled v = {p->from_type == LW_CUDA_FLOATS     ? -INFINITY
                : p->from_type == LW_CUDA_UNSIGNED ? 0.0f
                                                   : -128.0f,
                0, 0, 0};
    return v;
}

LW_DEVICE void lw_pool_one(const lw_cuda_pool *p, int64_t at, pooled *v)
{
    if (p->from_type == LW_CUDA_FLOATS) {
        float x = ((const float *)p->from)[at];
        v->best = x > v->best ? x : v->best;
        v->sum += x;
        return;
    }
    int32_t q =
        p->from_type == LW_CUDA_SIGNED ? ((const int8_t *)p->from)[at] : ((const uint8_t *)p->from)[at];
    v->best = (float)q > v->best ? (float)q : v->best;
    v->bytes += q - p->zero;
    v->reals += lw_dequantize(q, p->scale, p->zero);
}

/* used: elements that the mean counts. */
LW_DEVICE void lw_pool_store(const lw_cuda_pool *p, int64_t i, const pooled *v, int64_t used, bool whole)
{
    if (p->from_type == LW_CUDA_FLOATS)
        ((float *)p->to)[i] = p->is_max ? v->best : (float)(v->sum / (double)used);
    else if (p->is_max)
        ((uint8_t *)p->to)[i] = (uint8_t)(int32_t)v->best;
    else if (whole)
        ((uint8_t *)p->to)[i] =
            (uint8_t)lw_saturate_round((float)v->bytes * p->multiplier, p->y_zero, p->low, p->high);
    else
        ((uint8_t *)p->to)[i] = (uint8_t)lw_saturate_round(
            v->reals / (float)used / p->y_scale + (float)p->y_zero, 0, p->low, p->high);
}

/* A thread a result, in the order of the elements. */
__global__ void __launch_bounds__(THREADS) lw_pool_windows(lw_cuda_pool p)
{
    int64_t positions = (int64_t)p.out[0] * p.out[1] * p.out[2];
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < p.images * positions;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t image = i / positions, rest = i % positions;
        int start[3], padded = 1, inside = 1;
        for (int k = 2; k >= 0; k--) {
            start[k] = (int)(rest % p.out[k]) * p.stride[k] - p.pad[k];
            rest /= p.out[k];
            int in = 0, with_pads = 0;
            for (int q = 0; q < p.kernel[k]; q++) {
                int at = start[k] + q * p.dilation[k];
                in += at >= 0 && at < p.in[k];
                with_pads += at < p.in[k] + p.pad_end[k];
            }
            inside *= in;
            padded *= with_pads;
        }
        pooled v = lw_pooled_none(&p);
        for (int q0 = 0; q0 < p.kernel[0]; q0++)
            for (int q1 = 0; q1 < p.kernel[1]; q1++)
                for (int q2 = 0; q2 < p.kernel[2]; q2++) {
                    int i0 = start[0] + q0 * p.dilation[0], i1 = start[1] + q1 * p.dilation[1],
                        i2 = start[2] + q2 * p.dilation[2];
                    if (i0 >= 0 && i0 < p.in[0] && i1 >= 0 && i1 < p.in[1] && i2 >= 0 && i2 < p.in[2])
                        lw_pool_one(&p, ((image * p.in[0] + i0) * p.in[1] + i1) * p.in[2] + i2, &v);
                }
        lw_pool_store(&p, i, &v, p.count_pads ? padded : inside, false);
    }
}

LW_DEVICE long long across(long long value, int bits)
{
    uint64_t v = (uint64_t)value;
    return (long long)(lw_from_across(LW_ALL_LANES, (uint32_t)v, bits, LW_WARP) |
                       (uint64_t)lw_from_across(LW_ALL_LANES, (uint32_t)(v >> 32), bits, LW_WARP) << 32);
}

/* A warp a result: all elements of an image. */
__global__ void __launch_bounds__(THREADS) lw_pool_images(lw_cuda_pool p)
{
    int64_t size = (int64_t)p.in[0] * p.in[1] * p.in[2];
    for (int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LW_WARP; i < p.images;
         i += (int64_t)gridDim.x * (THREADS / LW_WARP)) {
        pooled v = lw_pooled_none(&p);
        for (int64_t k = lw_lane(); k < size; k += LW_WARP)
            lw_pool_one(&p, i * size + k, &v);
        for (int bits = LW_WARP / 2; bits > 0; bits /= 2) {
            v.sum += __longlong_as_double(across(__double_as_longlong(v.sum), bits));
            v.bytes += across(v.bytes, bits);
            float other =
                __uint_as_float(lw_from_across(LW_ALL_LANES, __float_as_uint(v.best), bits, LW_WARP));
            v.best = other > v.best ? other : v.best;
        }
        if (lw_lane() == 0)
            lw_pool_store(&p, i, &v, size, true);
    }
}

extern "C" lw_status lw_cuda_pooling(infer_cuda *x, const lw_cuda_pool *p, bool whole, lw_error *err)
{
    int64_t threads = whole ? p->images * LW_WARP : p->images * p->out[0] * p->out[1] * p->out[2];
    int64_t blocks = (threads + THREADS - 1) / THREADS, most = (int64_t)x->multiprocessors * 32;
    if (threads == 0)
        return LW_OK;
    LW_CUDA_TRY(err, "pooling",
                lw_launch(whole ? lw_pool_images : lw_pool_windows,
                          dim3((unsigned)(blocks < most ? blocks : most)), THREADS, 0, x->stream, *p));
    return LW_OK;
}

/* ---- tables ------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) lw_by_table(lw_cuda_table p)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * THREADS)
        p.to[p.run == p.count ? i : i / p.run * p.apart + i % p.run] = p.table[p.from[i]];
}

extern "C" lw_status lw_cuda_by_table(infer_cuda *x, const lw_cuda_table *p, lw_error *err)
{
    int64_t blocks = (p->count + THREADS - 1) / THREADS, most = (int64_t)x->multiprocessors * 32;
    if (p->count == 0)
        return LW_OK;
    LW_CUDA_TRY(
        err, "an elementwise operator",
        lw_launch(lw_by_table, dim3((unsigned)(blocks < most ? blocks : most)), THREADS, 0, x->stream, *p));
    return LW_OK;
}

/* A warp a row. */
__global__ void __launch_bounds__(THREADS)
    lw_softmax_of_bytes(lw_qlinear_softmax p, int64_t rows, const uint8_t *from, uint8_t *to)
{
    for (int64_t r = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LW_WARP; r < rows;
         r += (int64_t)gridDim.x * (THREADS / LW_WARP)) {
        int64_t first = r / p.inner * p.n * p.inner + r % p.inner;
        uint32_t most = 0, sum = 0;
        for (int64_t i = lw_lane(); i < p.n; i += LW_WARP) {
            uint32_t v = (uint32_t)from[first + i * p.inner] ^ p.flip;
            most = v > most ? v : most;
        }
        for (int bits = LW_WARP / 2; bits > 0; bits /= 2) {
            uint32_t other = lw_from_across(LW_ALL_LANES, most, bits, LW_WARP);
            most = other > most ? other : most;
        }
        const uint32_t *shifted = p.table + 255 - most;
        for (int64_t i = lw_lane(); i < p.n; i += LW_WARP)
            sum += shifted[(uint32_t)from[first + i * p.inner] ^ p.flip];
        for (int bits = LW_WARP / 2; bits > 0; bits /= 2)
            sum += lw_from_across(LW_ALL_LANES, sum, bits, LW_WARP);
        for (int64_t i = lw_lane(); i < p.n; i += LW_WARP)
            to[first + i * p.inner] = lw_softmax_byte(shifted[(uint32_t)from[first + i * p.inner] ^ p.flip],
                                                      p.parts, sum, p.zero, p.high);
    }
}

extern "C" lw_status lw_cuda_softmax_of_bytes(infer_cuda *x, const lw_qlinear_softmax *p, int64_t count,
                                              const uint8_t *from, uint8_t *to, lw_error *err)
{
    int64_t rows = p->n ? count / p->n : 0, blocks = (rows * LW_WARP + THREADS - 1) / THREADS,
            most = (int64_t)x->multiprocessors * 32;
    if (rows == 0)
        return LW_OK;
    lw_softmax_of_bytes<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, x->stream>>>(*p, rows, from,
                                                                                              to);
    return lw_cuda_launched("softmax", err);
}
