/* infer_cuda_elements.cu - elementwise operators, quantization, copies that move elements. */
#include "common/cuda_check.h"
#include "common/warp.cuh"
#include "infer/infer_cuda.h"
#include "infer/quant.h"

enum { THREADS = 256 };

/* Enough blocks for `work` items, one after the other in each thread beyond that. */
static unsigned blocks_for(const infer_cuda *x, int64_t work)
{
    int64_t blocks = (work + THREADS - 1) / THREADS, most = (int64_t)x->multiprocessors * 32;
    return (unsigned)(blocks < most ? blocks : most);
}

LW_DEVICE int64_t lw_first(void)
{
    return (int64_t)blockIdx.x * THREADS + threadIdx.x;
}

LW_DEVICE int64_t lw_step(void)
{
    return (int64_t)gridDim.x * THREADS;
}

/* ---- functions --------------------------------------------------------------------------------------- */

LW_DEVICE float lw_apply(lw_cuda_function f, float x, float y)
{
    switch (f) {
    case LW_F_ADD:
        return x + y;
    case LW_F_SUB:
        return x - y;
    case LW_F_MUL:
        return x * y;
    case LW_F_DIV:
        return x / y;
    case LW_F_POW:
        return y == 2 ? x * x : powf(x, y);
    case LW_F_MIN:
        return x < y || isnan(x) ? x : y;
    case LW_F_MAX:
        return x > y || isnan(x) ? x : y;
    default: /* LW_F_PRELU */
        return x < 0 ? x * y : x;
    }
}

LW_DEVICE float lw_apply_one(lw_cuda_function f, float x, float p, float q)
{
    switch (f) {
    case LW_F_SQRT:
        return sqrtf(x);
    case LW_F_EXP:
        return expf(x);
    case LW_F_LOG:
        return logf(x);
    case LW_F_ERF:
        return erff(x);
    case LW_F_TANH:
        return tanhf(x);
    case LW_F_RECIPROCAL:
        return 1 / x;
    case LW_F_SIGMOID:
        return 1 / (1 + expf(-x));
    case LW_F_FASTGELU:
        return 0.5f * x * (1 + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    case LW_F_GELU:
        return 0.5f * x * (1 + erff(x * 0.7071067811865476f));
    case LW_F_LEAKY:
        return x < 0 ? p * x : x;
    case LW_F_RELU:
        return x < 0 ? 0 : x;
    case LW_F_NEG:
        return -x;
    case LW_F_ABS:
        return fabsf(x);
    default: /* LW_F_CLIP */
        x = x < p ? p : x;
        return x > q ? q : x;
    }
}

/* Where the inputs of element i lie. */
LW_DEVICE void lw_walk(const lw_cuda_walk *w, uint32_t i, int32_t *a, int32_t *b)
{
    *a = *b = 0;
    for (int d = w->rank - 1; d > 0; d--) {
        uint32_t rest = lw_divide(i, w->dim[d]);
        int32_t index = (int32_t)(i - rest * w->dim[d].divisor);
        *a += index * w->stride[0][d];
        *b += index * w->stride[1][d];
        i = rest;
    }
    *a += (int32_t)i * w->stride[0][0];
    *b += (int32_t)i * w->stride[1][0];
}

__global__ void __launch_bounds__(THREADS)
    lw_binary(lw_cuda_function f, lw_cuda_walk w, const float *a, const float *b, float *y)
{
    for (int64_t i = lw_first(); i < w.count; i += lw_step()) {
        int32_t at_a, at_b;
        lw_walk(&w, (uint32_t)i, &at_a, &at_b);
        y[i] = lw_apply(f, a[at_a], b[at_b]);
    }
}

extern "C" lw_status lw_cuda_binary(infer_cuda *x, lw_cuda_function f, const lw_cuda_walk *w, const float *a,
                                    const float *b, float *y, lw_error *err)
{
    if (w->count == 0)
        return LW_OK;
    lw_binary<<<blocks_for(x, w->count), THREADS, 0, x->stream>>>(f, *w, a, b, y);
    return lw_cuda_launched("an elementwise operator", err);
}

__global__ void __launch_bounds__(THREADS)
    lw_unary(lw_cuda_function f, int64_t count, const float *a, float p, float q, float *y)
{
    for (int64_t i = lw_first(); i < count; i += lw_step())
        y[i] = lw_apply_one(f, a[i], p, q);
}

__global__ void __launch_bounds__(THREADS)
    lw_where(lw_cuda_walk w, const uint8_t *condition, const uint32_t *a, const uint32_t *b, uint32_t *y)
{
    for (int64_t i = lw_first(); i < w.count; i += lw_step()) {
        uint32_t rest = (uint32_t)i;
        int32_t at[3] = {0, 0, 0};
        for (int d = w.rank - 1; d >= 0; d--) {
            uint32_t next = d > 0 ? lw_divide(rest, w.dim[d]) : 0;
            int32_t index = (int32_t)(rest - next * w.dim[d].divisor);
            for (int k = 0; k < 3; k++)
                at[k] += index * w.stride[k][d];
            rest = next;
        }
        y[i] = condition[at[2]] ? a[at[0]] : b[at[1]];
    }
}

extern "C" lw_status lw_cuda_where(infer_cuda *x, const lw_cuda_walk *w, const uint8_t *condition,
                                   const uint32_t *a, const uint32_t *b, uint32_t *y, lw_error *err)
{
    if (w->count == 0)
        return LW_OK;
    lw_where<<<blocks_for(x, w->count), THREADS, 0, x->stream>>>(*w, condition, a, b, y);
    return lw_cuda_launched("an elementwise operator", err);
}

__global__ void __launch_bounds__(THREADS) lw_is_nan(int64_t count, const float *a, uint8_t *y)
{
    for (int64_t i = lw_first(); i < count; i += lw_step())
        y[i] = isnan(a[i]) ? 1 : 0;
}

extern "C" lw_status lw_cuda_is_nan(infer_cuda *x, int64_t count, const float *a, uint8_t *y, lw_error *err)
{
    if (count == 0)
        return LW_OK;
    lw_is_nan<<<blocks_for(x, count), THREADS, 0, x->stream>>>(count, a, y);
    return lw_cuda_launched("an elementwise operator", err);
}

extern "C" lw_status lw_cuda_unary(infer_cuda *x, lw_cuda_function f, int64_t count, const float *a, float p,
                                   float q, float *y, lw_error *err)
{
    if (count == 0)
        return LW_OK;
    lw_unary<<<blocks_for(x, count), THREADS, 0, x->stream>>>(f, count, a, p, q, y);
    return lw_cuda_launched("an elementwise operator", err);
}

__global__ void __launch_bounds__(THREADS)
    lw_truth(lw_cuda_truth f, lw_cuda_walk w, const void *a, const void *b, uint8_t *y)
{
    for (int64_t i = lw_first(); i < w.count; i += lw_step()) {
        int32_t at_a, at_b;
        lw_walk(&w, (uint32_t)i, &at_a, &at_b);
        bool both = f >= LW_T_AND;
        float p = both ? ((const uint8_t *)a)[at_a] : ((const float *)a)[at_a];
        float q = both ? ((const uint8_t *)b)[at_b] : ((const float *)b)[at_b];
        y[i] = f == LW_T_EQUAL              ? p == q
               : f == LW_T_GREATER          ? p > q
               : f == LW_T_GREATER_OR_EQUAL ? p >= q
               : f == LW_T_LESS             ? p < q
               : f == LW_T_LESS_OR_EQUAL    ? p <= q
               : f == LW_T_AND              ? p != 0 && q != 0
               : f == LW_T_OR               ? p != 0 || q != 0
                                            : (p != 0) != (q != 0);
    }
}

extern "C" lw_status lw_cuda_compare(infer_cuda *x, lw_cuda_truth f, const lw_cuda_walk *w, const void *a,
                                     const void *b, uint8_t *y, lw_error *err)
{
    if (w->count == 0)
        return LW_OK;
    lw_truth<<<blocks_for(x, w->count), THREADS, 0, x->stream>>>(f, *w, a, b, y);
    return lw_cuda_launched("an elementwise operator", err);
}

__global__ void __launch_bounds__(THREADS)
    lw_cast(int64_t count, const void *from, int size, bool is_signed, void *to, bool to_bool)
{
    for (int64_t i = lw_first(); i < count; i += lw_step()) {
        int64_t v = size == 8   ? ((const int64_t *)from)[i]
                    : size == 4 ? ((const int32_t *)from)[i]
                                : (is_signed ? ((const int8_t *)from)[i] : ((const uint8_t *)from)[i]);
        if (to_bool)
            ((uint8_t *)to)[i] = v != 0;
        else
            ((float *)to)[i] = (float)v;
    }
}

extern "C" lw_status lw_cuda_cast(infer_cuda *x, int64_t count, const void *from, int size, bool is_signed,
                                  void *to, bool to_bool, lw_error *err)
{
    if (count == 0)
        return LW_OK;
    lw_cast<<<blocks_for(x, count), THREADS, 0, x->stream>>>(count, from, size, is_signed, to, to_bool);
    return lw_cuda_launched("an elementwise operator", err);
}

LW_DEVICE int32_t lw_byte_at(const uint8_t *p, int64_t i, bool is_signed)
{
    return is_signed ? ((const int8_t *)p)[i] : p[i];
}

__global__ void __launch_bounds__(THREADS) lw_binary_of_bytes(lw_cuda_bytes p)
{
    for (int64_t i = lw_first(); i < p.walk.count; i += lw_step()) {
        int32_t at_a, at_b;
        lw_walk(&p.walk, (uint32_t)i, &at_a, &at_b);
        int32_t a = lw_byte_at(p.a, at_a, p.is_signed), b = lw_byte_at(p.b, at_b, p.is_signed);
        float v = p.is_product ? (float)((a - p.a_zero) * (b - p.b_zero)) * p.product
                               : fmaf((float)b, p.rb, fmaf((float)a, p.ra, p.fixed));
        p.y[i] = (uint8_t)lw_saturate_round(v, p.y_zero, p.low, p.high);
    }
}

extern "C" lw_status lw_cuda_binary_bytes(infer_cuda *x, const lw_cuda_bytes *p, lw_error *err)
{
    if (p->walk.count > 0)
        LW_CUDA_TRY(
            err, "an elementwise operator",
            lw_launch(lw_binary_of_bytes, dim3(blocks_for(x, p->walk.count)), THREADS, 0, x->stream, *p));
    return LW_OK;
}

/* ---- quantization ------------------------------------------------------------------------------------ */

LW_DEVICE int32_t lw_zero_of(const lw_cuda_scaling *p, int64_t at)
{
    if (!p->zero)
        return 0;
    return p->dtype == LW_I32 ? ((const int32_t *)p->zero)[at]
                              : lw_byte_at((const uint8_t *)p->zero, at, p->dtype == LW_I8);
}

__global__ void __launch_bounds__(THREADS) lw_quantize_floats(lw_cuda_scaling p)
{
    int32_t low = p.dtype == LW_I8 ? -128 : 0, high = low + 255;
    bool one = p.along == 1;
    float scale = p.scale[0];
    int32_t zero = lw_zero_of(&p, 0);
    for (int64_t i = lw_first(); i < p.count; i += lw_step()) {
        int64_t at = one ? 0 : i / p.inner % p.along;
        if (!one) {
            scale = p.scale[at];
            zero = lw_zero_of(&p, at);
        }
        ((uint8_t *)p.to)[i] = (uint8_t)lw_quantize(((const float *)p.from)[i], scale, zero, low, high);
    }
}

__global__ void __launch_bounds__(THREADS) lw_dequantize_to_floats(lw_cuda_scaling p)
{
    bool one = p.along == 1;
    for (int64_t i = lw_first(); i < p.count; i += lw_step()) {
        int64_t at = one ? 0 : i / p.inner % p.along;
        /* an int32 less an int32 zero point may need more than 32 bits */
        int64_t q = p.dtype == LW_I32 ? ((const int32_t *)p.from)[i]
                                      : lw_byte_at((const uint8_t *)p.from, i, p.dtype == LW_I8);
        ((float *)p.to)[i] = (float)(q - lw_zero_of(&p, at)) * p.scale[at];
    }
}

extern "C" lw_status lw_cuda_quantize(infer_cuda *x, const lw_cuda_scaling *p, lw_error *err)
{
    if (p->count > 0)
        LW_CUDA_TRY(err, "quantization",
                    lw_launch(lw_quantize_floats, dim3(blocks_for(x, p->count)), THREADS, 0, x->stream, *p));
    return LW_OK;
}

extern "C" lw_status lw_cuda_dequantize(infer_cuda *x, const lw_cuda_scaling *p, lw_error *err)
{
    if (p->count > 0)
        LW_CUDA_TRY(
            err, "dequantization",
            lw_launch(lw_dequantize_to_floats, dim3(blocks_for(x, p->count)), THREADS, 0, x->stream, *p));
    return LW_OK;
}

/* Both extremes are on their side of 0 (0 belongs to the range), so that the bits of the largest and those of
 * the least, sign dropped, order as unsigned numbers. NaN counts as neither. */
__global__ void __launch_bounds__(THREADS) lw_extremes(int64_t count, const float *from, uint32_t *extremes)
{
    float least = 0, largest = 0;
    for (int64_t i = lw_first(); i < count; i += lw_step()) {
        float v = from[i];
        least = v < least ? v : least;
        largest = v > largest ? v : largest;
    }
    largest = lw_reduce_fmax_xor(LW_ALL_LANES, largest, LW_WARP);
    least = lw_reduce_fmax_xor(LW_ALL_LANES, -least, LW_WARP);
    if (lw_lane() == 0) {
        atomicMax(&extremes[0], __float_as_uint(fabsf(largest)));
        atomicMax(&extremes[1], __float_as_uint(fabsf(least)));
    }
}

__global__ void __launch_bounds__(THREADS)
    lw_quantize_dynamically(int64_t count, const float *from, uint8_t *to, float *scale, uint8_t *zero,
                            const uint32_t *extremes)
{
    float s;
    uint8_t z;
    lw_dynamic_parameters(-__uint_as_float(extremes[1]), __uint_as_float(extremes[0]), &s, &z);
    if (lw_first() == 0) {
        *scale = s;
        *zero = z;
    }
    for (int64_t i = lw_first(); i < count; i += lw_step())
        to[i] = (uint8_t)lw_quantize(from[i], s, z, 0, 255);
}

extern "C" lw_status lw_cuda_dynamic_quantize(infer_cuda *x, int64_t count, const float *from, uint8_t *to,
                                              float *scale, uint8_t *zero, uint32_t *scratch, lw_error *err)
{
    LW_CUDA_TRY(err, "quantization", cudaMemsetAsync(scratch, 0, 2 * sizeof *scratch, x->stream));
    unsigned blocks = blocks_for(x, count > 0 ? count : 1);
    lw_extremes<<<blocks, THREADS, 0, x->stream>>>(count, from, scratch);
    lw_quantize_dynamically<<<blocks, THREADS, 0, x->stream>>>(count, from, to, scale, zero, scratch);
    return lw_cuda_launched("quantization", err);
}

/* ---- copies ------------------------------------------------------------------------------------------ */

typedef struct strided {
    int rank, size;
    int64_t count;
    int64_t dim[LW_MAX_RANK], stride[LW_MAX_RANK], to_stride[LW_MAX_RANK];
    const char *from;
    char *to;
} strided;

template <typename T> LW_DEVICE void lw_copy_elements(const strided *s)
{
    for (int64_t i = lw_first(); i < s->count; i += lw_step()) {
        int64_t rest = i, from = 0, to = 0;
        for (int d = s->rank - 1; d >= 0; d--) {
            int64_t index = rest % s->dim[d];
            rest /= s->dim[d];
            from += index * s->stride[d];
            to += index * s->to_stride[d];
        }
        ((T *)s->to)[to] = ((const T *)s->from)[from];
    }
}

__global__ void __launch_bounds__(THREADS) lw_copy_strided(strided s)
{
    if (s.size == 4)
        lw_copy_elements<uint32_t>(&s);
    else if (s.size == 1)
        lw_copy_elements<uint8_t>(&s);
    else if (s.size == 2)
        lw_copy_elements<uint16_t>(&s);
    else
        lw_copy_elements<uint64_t>(&s);
}

extern "C" lw_status lw_cuda_copy_strided(infer_cuda *x, const lw_cuda_strided *c, lw_error *err)
{
    strided s = {0, c->size, 1, {0}, {0}, {0}, (const char *)c->from, (char *)c->to};
    for (int d = 0; d < c->rank; d++) { /* a dimension that continues the one before joins it */
        s.count *= c->dim[d];
        if (c->dim[d] == 1)
            continue;
        int last = s.rank - 1;
        if (last >= 0 && s.stride[last] == c->stride[d] * c->dim[d] &&
            s.to_stride[last] == c->to_stride[d] * c->dim[d]) {
            s.dim[last] *= c->dim[d];
        } else {
            last++;
            s.rank++;
            s.dim[last] = c->dim[d];
        }
        s.stride[last] = c->stride[d];
        s.to_stride[last] = c->to_stride[d];
    }
    if (s.count == 0)
        return LW_OK;
    if (s.rank == 0 || (s.rank == 1 && s.stride[0] == 1 && s.to_stride[0] == 1))
        LW_CUDA_TRY(
            err, "moving elements",
            cudaMemcpyAsync(s.to, s.from, (size_t)(s.count * s.size), cudaMemcpyDeviceToDevice, x->stream));
    else
        LW_CUDA_TRY(err, "moving elements",
                    lw_launch(lw_copy_strided, dim3(blocks_for(x, s.count)), THREADS, 0, x->stream, s));
    return LW_OK;
}

__global__ void __launch_bounds__(THREADS)
    lw_gather(const uint8_t *from, int64_t outer, int64_t along, int64_t inner, const void *indices,
              bool wide, int64_t count, uint8_t *to, int word, int32_t *flag)
{
    int64_t words = inner / word;
    for (int64_t i = lw_first(); i < outer * count * words; i += lw_step()) {
        int64_t row = i / words, o = row / count, k = row % count;
        int64_t index = wide ? ((const int64_t *)indices)[k] : ((const int32_t *)indices)[k];
        index = index < 0 ? index + along : index;
        if (index < 0 || index >= along) { /* only where nobody could look before */
            *flag = 1;
            index = 0;
        }
        const uint8_t *source = from + (o * along + index) * inner + i % words * word;
        uint8_t *target = to + row * inner + i % words * word;
        if (word == 4)
            *(uint32_t *)target = *(const uint32_t *)source;
        else
            *target = *source;
    }
}

extern "C" lw_status lw_cuda_gather(infer_cuda *x, const void *from, int64_t outer, int64_t along,
                                    int64_t inner, const void *indices, bool wide, int64_t count, void *to,
                                    int32_t *flag, lw_error *err)
{
    int word = inner % 4 == 0 ? 4 : 1;
    if (outer * count * inner == 0)
        return LW_OK;
    lw_gather<<<blocks_for(x, outer * count * inner / word), THREADS, 0, x->stream>>>(
        (const uint8_t *)from, outer, along, inner, indices, wide, count, (uint8_t *)to, word, flag);
    return lw_cuda_launched("gathering rows", err);
}

/* Tuples of indices instead of one. */
__global__ void __launch_bounds__(THREADS) lw_gather_tuples(lw_cuda_tuples p)
{
    for (int64_t i = lw_first(); i < p.tuples * p.slice; i += lw_step()) {
        int64_t t = i / p.slice, at = t / p.each * p.batch_bytes;
        for (int k = 0; k < p.depth; k++) {
            int64_t index = p.wide ? ((const int64_t *)p.indices)[t * p.depth + k]
                                   : ((const int32_t *)p.indices)[t * p.depth + k];
            at += (index < 0 ? index + p.dim[k] : index) * p.step[k];
        }
        p.to[i] = p.from[at + i % p.slice];
    }
}

extern "C" lw_status lw_cuda_gather_tuples(infer_cuda *x, const lw_cuda_tuples *p, lw_error *err)
{
    if (p->tuples * p->slice > 0)
        LW_CUDA_TRY(err, "gathering rows",
                    lw_launch(lw_gather_tuples, dim3(blocks_for(x, p->tuples * p->slice)), THREADS, 0,
                              x->stream, *p));
    return LW_OK;
}
