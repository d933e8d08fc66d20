/* infer_scalar.c - the reference kernels: plain loops, 32-bit integers, double where floats are summed. */
#include "infer/infer_backend.h"

#include "common/fail.h"
#include "infer/elements.h"
#include "infer/quant.h"

static int32_t byte_at(const void *p, int64_t i, bool is_signed)
{
    return is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
}

/* Stores the result of row i, column j at c[at]. */
static void finish(const lw_result *r, int64_t i, int64_t j, int32_t sum, void *c, int64_t at)
{
    if (r->bias)
        sum = (int32_t)((uint32_t)sum + (uint32_t)r->bias[j]);
    if (r->kind == LW_RESULT_SUMS) {
        ((int32_t *)c)[at] = sum;
        return;
    }
    float factor = r->multiplier[r->one_multiplier ? 0 : j];
    if (r->row_scale)
        factor = r->row_scale[i] * factor;
    if (r->kind == LW_RESULT_QUANTIZED) {
        ((uint8_t *)c)[at] = (uint8_t)lw_requantize(sum, factor, r->zero, r->low, r->high);
    } else {
        float y = (float)sum * factor;
        ((float *)c)[at] = r->real_bias ? y + r->real_bias[j] : y;
    }
}

static lw_status scalar_gemm(lw_pool *pool, const lw_gemm *g, lw_error *err)
{
    (void)pool, (void)err;
    int64_t b_row = g->b_transposed ? 1 : g->ldb, b_column = g->b_transposed ? g->ldb : 1;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            int32_t a_zero = g->a_zero[g->a_zero_is_scalar ? 0 : i],
                    b_zero = g->b_zero[g->b_zero_is_scalar ? 0 : j], sum = 0;
            for (int64_t k = 0; k < g->k; k++)
                sum += (byte_at(g->a, i * g->lda + k, g->a_signed) - a_zero) *
                       (byte_at(g->b, k * b_row + j * b_column, g->b_signed) - b_zero);
            finish(&g->result, i, j, sum, g->c, g->c_by_column ? j * g->ldc + i : i * g->ldc + j);
        }
    return LW_OK;
}

static int32_t convolve_at(const lw_conv *v, int64_t image, int64_t o, int64_t p0, int64_t p1, int64_t p2)
{
    int64_t plane = v->in[0] * v->in[1] * v->in[2], patch = v->kernel[0] * v->kernel[1] * v->kernel[2];
    int32_t sum = 0;
    for (int64_t c = 0; c < v->c; c++)
        for (int64_t q0 = 0; q0 < v->kernel[0]; q0++)
            for (int64_t q1 = 0; q1 < v->kernel[1]; q1++)
                for (int64_t q2 = 0; q2 < v->kernel[2]; q2++) {
                    int64_t i0 = p0 * v->stride[0] + q0 * v->dilation[0] - v->pad[0];
                    int64_t i1 = p1 * v->stride[1] + q1 * v->dilation[1] - v->pad[1];
                    int64_t i2 = p2 * v->stride[2] + q2 * v->dilation[2] - v->pad[2];
                    if (i0 < 0 || i0 >= v->in[0] || i1 < 0 || i1 >= v->in[1] || i2 < 0 || i2 >= v->in[2])
                        continue;
                    int64_t at = image * v->x_step + c * plane + (i0 * v->in[1] + i1) * v->in[2] + i2;
                    int64_t weight = (o * v->c + c) * patch + (q0 * v->kernel[1] + q1) * v->kernel[2] + q2;
                    sum += (byte_at(v->x, at, v->x_signed) - v->x_zero) *
                           (byte_at(v->w, weight, v->w_signed) - v->w_zero[o]);
                }
    return sum;
}

static lw_status scalar_conv(lw_pool *pool, const lw_conv *v, lw_error *err)
{
    (void)pool, (void)err;
    for (int64_t image = 0; image < v->images; image++)
        for (int64_t o = 0; o < v->o; o++)
            for (int64_t p0 = 0; p0 < v->out[0]; p0++)
                for (int64_t p1 = 0; p1 < v->out[1]; p1++)
                    for (int64_t p2 = 0; p2 < v->out[2]; p2++)
                        finish(&v->result, 0, o, convolve_at(v, image, o, p0, p1, p2), v->y,
                               image * v->y_step + ((o * v->out[0] + p0) * v->out[1] + p1) * v->out[2] + p2);
    return LW_OK;
}

static lw_status scalar_softmax(lw_pool *pool, int64_t rows, int64_t n, const float *x, float *y,
                                lw_error *err)
{
    (void)pool, (void)err;
    lw_elements_plain.softmax(rows, n, x, y);
    return LW_OK;
}

static lw_status scalar_layer_norm(lw_pool *pool, int64_t rows, int64_t n, const float *x, const float *scale,
                                   const float *bias, float epsilon, float *y, float *mean,
                                   float *inverse_deviation, lw_error *err)
{
    (void)pool, (void)err;
    lw_elements_plain.layer_norm(rows, n, x, scale, bias, epsilon, y, mean, inverse_deviation);
    return LW_OK;
}

const lw_infer_backend lw_infer_scalar = {
    .base = {.name = "scalar",
             .what = "plain loops, one thread",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_scalar},
    .gemm = scalar_gemm,
    .conv = scalar_conv,
    .softmax = scalar_softmax,
    .layer_norm = scalar_layer_norm,
};
