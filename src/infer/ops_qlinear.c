/* ops_qlinear.c - ONNX Runtime's com.microsoft operators from 8-bit tensors to 8-bit tensors that are no
 * products: elementwise, by tables, pooling. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"
#include "infer/ops_quant.h"
#include "infer/quant.h"
#include "infer/window.h"

static const char microsoft[] = "com.microsoft";

typedef struct quantized {
    const lw_tensor *x;
    float scale;
    int32_t zero;
} quantized;

/* Inputs first, first + 1, first + 2: a tensor, its scale, its zero point. */
static lw_status quantized_in(const lw_op_call *c, int first, quantized *q, lw_error *err)
{
    q->x = lw_in(c, first);
    LW_TRY(lw_want_8_bits(q->x, "the input", err));
    LW_TRY(lw_quant_scale(lw_in(c, first + 1), "the input's scale", &q->scale, err));
    return lw_quant_zero(lw_in(c, first + 2), q->x->dtype, "the input's zero point", &q->zero, err);
}

/* The output's scale and zero point at inputs first and first + 1, and its range. */
static lw_status quantized_out(const lw_op_call *c, int first, lw_dtype dtype, quantized *q, int32_t *low,
                               int32_t *high, lw_error *err)
{
    LW_TRY(lw_quant_scale(lw_in(c, first), "the output's scale", &q->scale, err));
    LW_TRY(lw_quant_zero(lw_in(c, first + 1), dtype, "the output's zero point", &q->zero, err));
    lw_dtype_range(dtype, low, high);
    return LW_OK;
}

static lw_status qlinear_binary(const lw_op_call *c, bool is_product, lw_error *err)
{
    quantized a, b, y;
    int32_t low, high;
    int rank;
    int64_t dim[LW_MAX_RANK], sa[LW_MAX_RANK], sb[LW_MAX_RANK], index[LW_MAX_RANK] = {0};
    LW_TRY(quantized_in(c, 0, &a, err));
    LW_TRY(quantized_in(c, 3, &b, err));
    LW_TRY(quantized_out(c, 6, a.x->dtype, &y, &low, &high, err));
    LW_TRY(lw_broadcast(a.x, b.x, &rank, dim, err));
    lw_broadcast_strides(a.x, rank, sa);
    lw_broadcast_strides(b.x, rank, sb);
    LW_TRY(lw_tensor_new(&c->out[0], a.x->dtype, rank, dim, err));
    /* ONNX Runtime's order: each operand by its ratio of scales, the zero points folded into one constant */
    float ra = a.scale / y.scale, rb = b.scale / y.scale, product = a.scale * b.scale / y.scale;
    float fixed = -(ra * (float)a.zero + rb * (float)b.zero);
    int64_t at_a = 0, at_b = 0;
    for (int64_t i = 0; i < c->out[0]->count; i++) {
        int32_t va = (int32_t)lw_tensor_integer(a.x, at_a), vb = (int32_t)lw_tensor_integer(b.x, at_b);
        float value = is_product ? (float)((va - a.zero) * (vb - b.zero)) * product
                                 : fmaf((float)vb, rb, fmaf((float)va, ra, fixed));
        lw_quant_store(c->out[0], i, lw_saturate_round(value, y.zero, low, high));
        for (int k = rank - 1; k >= 0; k--) { /* the next element's offsets */
            at_a += sa[k];
            at_b += sb[k];
            if (++index[k] < dim[k])
                break;
            at_a -= sa[k] * dim[k];
            at_b -= sb[k] * dim[k];
            index[k] = 0;
        }
    }
    return LW_OK;
}

static lw_status run_qlinear_add(const lw_op_call *c, lw_error *err)
{
    return qlinear_binary(c, false, err);
}

static lw_status run_qlinear_mul(const lw_op_call *c, lw_error *err)
{
    return qlinear_binary(c, true, err);
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

lw_status lw_qlinear_table(const lw_op_call *c, uint8_t table[256], lw_error *err)
{
    quantized x, y;
    int32_t low, high;
    bool is_sigmoid = strcmp(c->node->op, "QLinearSigmoid") == 0;
    float alpha = lw_node_float(c->node, "alpha", 0.01f);
    LW_TRY(quantized_in(c, 0, &x, err));
    LW_TRY(quantized_out(c, 3, x.x->dtype, &y, &low, &high, err));
    for (int32_t v = low; v <= high; v++) {
        float r = lw_dequantize(v, x.scale, x.zero);
        r = is_sigmoid ? sigmoid(r) : r < 0 ? alpha * r : r;
        table[v & 255] = (uint8_t)lw_quantize(r, y.scale, y.zero, low, high);
    }
    return LW_OK;
}

static lw_status run_by_table(const lw_op_call *c, lw_error *err)
{
    uint8_t table[256];
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(lw_qlinear_table(c, table, err));
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, x->dim, err));
    for (int64_t i = 0; i < x->count; i++)
        ((uint8_t *)c->out[0]->data)[i] = table[((const uint8_t *)x->data)[i]];
    return LW_OK;
}

static lw_status run_qlinear_global_average_pool(const lw_op_call *c, lw_error *err)
{
    quantized x, y;
    int32_t low, high;
    LW_TRY(quantized_in(c, 0, &x, err));
    LW_TRY(quantized_out(c, 3, x.x->dtype, &y, &low, &high, err));
    if (x.x->rank < 3 || lw_node_int(c->node, "channels_last", 0))
        return lw_fail(err, LW_E_INPUT, "only batch x channels x spatial dimensions are supported");
    int64_t dim[LW_MAX_RANK], size = lw_tensor_span(x.x, 2, x.x->rank);
    for (int k = 0; k < x.x->rank; k++)
        dim[k] = k < 2 ? x.x->dim[k] : 1;
    LW_TRY(lw_tensor_new(&c->out[0], x.x->dtype, x.x->rank, dim, err));
    float multiplier = x.scale / (y.scale * (float)size);
    for (int64_t i = 0; i < c->out[0]->count; i++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < size; k++)
            sum += lw_tensor_integer(x.x, i * size + k) - x.zero;
        lw_quant_store(c->out[0], i, lw_saturate_round((float)sum * multiplier, y.zero, low, high));
    }
    return LW_OK;
}

/* Windows as ONNX Runtime computes them: in float32, each element dequantized first. */
static lw_status run_qlinear_average_pool(const lw_op_call *c, lw_error *err)
{
    quantized x, y;
    int32_t low, high;
    lw_window w;
    int64_t dim[LW_MAX_RANK];
    LW_TRY(quantized_in(c, 0, &x, err));
    LW_TRY(quantized_out(c, 3, x.x->dtype, &y, &low, &high, err));
    if (lw_node_int(c->node, "channels_last", 0))
        return lw_fail(err, LW_E_INPUT, "channels_last is not supported");
    LW_TRY(lw_window_of(&w, c->node, x.x, NULL, err));
    bool count_pads = lw_node_int(c->node, "count_include_pad", 0) != 0;
    memcpy(dim, x.x->dim, 2 * sizeof *dim);
    memcpy(dim + 2, w.out, (size_t)w.dims * sizeof *dim);
    LW_TRY(lw_tensor_new(&c->out[0], x.x->dtype, x.x->rank, dim, err));
    for (int64_t i = 0; i < c->out[0]->count; i++) {
        int64_t image = i / w.out_count, q[3];
        lw_window_part part;
        lw_window_part_of(&part, &w, i % w.out_count);
        int64_t used = count_pads ? part.padded : part.inside;
        float sum = 0;
        for (q[0] = part.first[0]; q[0] < part.last[0]; q[0]++)
            for (q[1] = part.first[1]; q[1] < part.last[1]; q[1]++)
                for (q[2] = part.first[2]; q[2] < part.last[2]; q[2]++) {
                    int64_t from = image;
                    for (int k = 0; k < 3; k++)
                        from = from * w.in[k] + part.start[k] + q[k] * w.dilation[k];
                    sum += lw_dequantize((int32_t)lw_tensor_integer(x.x, from), x.scale, x.zero);
                }
        /* rounded with the zero point inside, which decides ties */
        float value = sum / (float)used / y.scale + (float)y.zero;
        lw_quant_store(c->out[0], i, lw_saturate_round(value, 0, low, high));
    }
    return LW_OK;
}

/* ONNX Runtime's integer softmax: exponentials from a table of fixed-point numbers, relative to a largest
 * value of 255. */
lw_status lw_qlinear_softmax_of(const lw_op_call *c, lw_qlinear_softmax *s, lw_error *err)
{
    quantized x, y;
    int32_t low;
    int axis;
    LW_TRY(quantized_in(c, 0, &x, err));
    LW_TRY(quantized_out(c, 3, x.x->dtype, &y, &low, &s->high, err));
    bool flattens = lw_node_int(c->node, "opset", 13) < 13;
    LW_TRY(
        lw_axis(lw_node_int(c->node, "axis", flattens ? 1 : -1), x.x->rank > 0 ? x.x->rank : 1, &axis, err));
    s->n = x.x->rank == 0 ? 1 : flattens ? lw_tensor_span(x.x, axis, x.x->rank) : x.x->dim[axis];
    s->inner = flattens || x.x->rank == 0 ? 1 : lw_tensor_span(x.x, axis + 1, x.x->rank);
    s->zero = y.zero;
    s->flip = x.x->dtype == LW_I8 ? 0x80 : 0;
    s->parts = (uint32_t)fminf(floorf(1 / y.scale), 0xffffff00p0f); /* the largest float below 2^32 */
    double unit = s->n ? fmin((double)UINT32_MAX / (double)s->n, 0x7fffff) : 0;
    for (int i = 0; i < 256; i++)
        s->table[i] = (uint32_t)lrint(unit * exp((i - 255) * (double)x.scale));
    return LW_OK;
}

static lw_status run_qlinear_softmax(const lw_op_call *c, lw_error *err)
{
    lw_qlinear_softmax s;
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(lw_qlinear_softmax_of(c, &s, err));
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, x->dim, err));
    const uint8_t *from = x->data;
    uint8_t *to = c->out[0]->data, flip = s.flip;
    int64_t n = s.n, inner = s.inner;
    for (int64_t r = 0; x->count && r < x->count / n; r++) {
        const uint8_t *row = from + (r / inner * n) * inner + r % inner;
        uint8_t *out = to + (r / inner * n) * inner + r % inner;
        int most = 0;
        for (int64_t i = 0; i < n; i++) {
            int v = row[i * inner] ^ flip;
            most = v > most ? v : most;
        }
        const uint32_t *shifted = s.table + 255 - most;
        uint32_t sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += shifted[row[i * inner] ^ flip];
        for (int64_t i = 0; i < n; i++)
            out[i * inner] = lw_softmax_byte(shifted[row[i * inner] ^ flip], s.parts, sum, s.zero, s.high);
    }
    return LW_OK;
}

/* condition ? x : y, each requantized to the output's scale. */
static lw_status run_qlinear_where(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *condition = lw_in(c, 0);
    quantized in[2], out;
    int32_t low, high;
    uint8_t table[2][256];
    int rank;
    int64_t dim[LW_MAX_RANK], stride[3][LW_MAX_RANK], index[LW_MAX_RANK] = {0}, at[3] = {0};
    LW_TRY(lw_want(condition, LW_BOOL, "the condition", err));
    LW_TRY(quantized_in(c, 1, &in[0], err));
    LW_TRY(quantized_in(c, 4, &in[1], err));
    if (in[0].x->dtype != in[1].x->dtype)
        return lw_fail(err, LW_E_INPUT, "both choices must have one type");
    LW_TRY(quantized_out(c, 7, in[0].x->dtype, &out, &low, &high, err));
    lw_tensor both = *condition;
    LW_TRY(lw_broadcast(in[0].x, in[1].x, &both.rank, both.dim, err));
    LW_TRY(lw_broadcast(condition, &both, &rank, dim, err));
    lw_broadcast_strides(condition, rank, stride[0]);
    for (int k = 0; k < 2; k++) {
        lw_broadcast_strides(in[k].x, rank, stride[1 + k]);
        for (int32_t v = low; v <= high; v++)
            table[k][v & 255] = (uint8_t)lw_quantize(lw_dequantize(v, in[k].scale, in[k].zero), out.scale,
                                                     out.zero, low, high);
    }
    LW_TRY(lw_tensor_new(&c->out[0], in[0].x->dtype, rank, dim, err));
    for (int64_t i = 0; i < c->out[0]->count; i++) {
        int k = ((const uint8_t *)condition->data)[at[0]] ? 0 : 1;
        ((uint8_t *)c->out[0]->data)[i] = table[k][((const uint8_t *)in[k].x->data)[at[1 + k]]];
        for (int d = rank - 1; d >= 0; d--) {
            for (int j = 0; j < 3; j++)
                at[j] += stride[j][d];
            if (++index[d] < dim[d])
                break;
            for (int j = 0; j < 3; j++)
                at[j] -= stride[j][d] * dim[d];
            index[d] = 0;
        }
    }
    return LW_OK;
}

lw_status lw_qlinear_concat_of(const lw_op_call *c, int *axis, int64_t dim[LW_MAX_RANK], lw_error *err)
{
    const lw_tensor *first = lw_in(c, 2);
    LW_TRY(lw_want_8_bits(lw_in(c, 1), "the output's zero point", err));
    if (c->n_in < 5 || c->n_in % 3 != 2)
        return lw_fail(err, LW_E_INPUT, "inputs come in threes: tensor, scale, zero point");
    LW_TRY(lw_want_8_bits(first, "the input", err));
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), first->rank, axis, err));
    memcpy(dim, first->dim, sizeof first->dim);
    dim[*axis] = 0;
    for (int i = 2; i < c->n_in; i += 3) {
        const lw_tensor *x = lw_in(c, i);
        LW_TRY(lw_want_8_bits(x, "the input", err));
        for (int k = 0; k < first->rank; k++)
            if (x->rank != first->rank || (k != *axis && x->dim[k] != dim[k]))
                return lw_fail(err, LW_E_INPUT, "input %d has another shape than the first", i / 3);
        dim[*axis] += x->dim[*axis];
    }
    return LW_OK;
}

lw_status lw_qlinear_concat_table(const lw_op_call *c, int i, uint8_t table[256], lw_error *err)
{
    quantized x, y;
    int32_t low, high, x_low, x_high;
    lw_dtype dtype = lw_in(c, 1)->dtype;
    LW_TRY(quantized_out(c, 0, dtype, &y, &low, &high, err));
    LW_TRY(quantized_in(c, i, &x, err));
    lw_dtype_range(x.x->dtype, &x_low, &x_high);
    bool same = x.scale == y.scale && x.zero == y.zero && x.x->dtype == dtype;
    for (int32_t v = x_low; v <= x_high; v++)
        table[v & 255] =
            same ? (uint8_t)v
                 : (uint8_t)lw_quantize(lw_dequantize(v, x.scale, x.zero), y.scale, y.zero, low, high);
    return LW_OK;
}

static lw_status run_qlinear_concat(const lw_op_call *c, lw_error *err)
{
    int axis;
    int64_t dim[LW_MAX_RANK];
    LW_TRY(lw_qlinear_concat_of(c, &axis, dim, err));
    const lw_tensor *first = lw_in(c, 2);
    LW_TRY(lw_tensor_new(&c->out[0], lw_in(c, 1)->dtype, first->rank, dim, err));
    int64_t outer = lw_tensor_span(first, 0, axis), inner = lw_tensor_span(first, axis + 1, first->rank),
            at = 0;
    for (int i = 2; i < c->n_in; i += 3) {
        const lw_tensor *x = lw_in(c, i);
        uint8_t table[256];
        LW_TRY(lw_qlinear_concat_table(c, i, table, err));
        int64_t span = x->dim[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t k = 0; k < span; k++)
                ((uint8_t *)c->out[0]->data)[o * dim[axis] * inner + at + k] =
                    table[((const uint8_t *)x->data)[o * span + k]];
        at += span;
    }
    return LW_OK;
}

const lw_op lw_ops_qlinear[] = {
    {microsoft, "QLinearAdd", 1, 0, 7, 8, run_qlinear_add, "elementwise", NULL},
    {microsoft, "QLinearMul", 1, 0, 7, 8, run_qlinear_mul, "elementwise", NULL},
    {microsoft, "QLinearSigmoid", 1, 0, 4, 5, run_by_table, "table", NULL},
    {microsoft, "QLinearLeakyRelu", 1, 0, 4, 5, run_by_table, "table", NULL},
    {microsoft, "QLinearGlobalAveragePool", 1, 0, 4, 5, run_qlinear_global_average_pool, "pooling", NULL},
    {microsoft, "QLinearAveragePool", 1, 0, 4, 5, run_qlinear_average_pool, "pooling", NULL},
    {microsoft, "QLinearSoftmax", 1, 0, 5, 5, run_qlinear_softmax, "table", NULL},
    {microsoft, "QLinearWhere", 1, 0, 9, 9, run_qlinear_where, "table", NULL},
    {microsoft, "QLinearConcat", 1, 0, 5, 1 << 20, run_qlinear_concat, "table", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
