/* ops_quantize.c - to quantized tensors and back: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. */
#include "common/fail.h"
#include "infer/op.h"
#include "infer/ops_quant.h"
#include "infer/quant.h"

static const char microsoft[] = "com.microsoft";

/* Which scale belongs to element i: scales are one, or one per index along an axis, or one per block along
 * it. */
typedef struct grid {
    int64_t inner, axis_dim,
        block;            /* elements within one axis index; axis length; indices that share a scale */
    int64_t scales_along; /* scales along the axis */
    bool one;
} grid;

static lw_status grid_of(grid *g, const lw_node *node, const lw_tensor *x, const lw_tensor *scale,
                         const lw_tensor *zero, lw_error *err)
{
    LW_TRY(lw_quant_check_scales(scale, "the scale", err));
    if (zero && zero->count != scale->count)
        return lw_fail(err, LW_E_INPUT, "%lld zero points for %lld scales", (long long)zero->count,
                       (long long)scale->count);
    *g = (grid){.inner = 1,
                .axis_dim = 1,
                .block = 1,
                .scales_along = 1,
                .one = scale->count == 1 && scale->rank <= 1};
    if (g->one)
        return LW_OK;
    int axis;
    LW_TRY(lw_axis(lw_node_int(node, "axis", 1), x->rank, &axis, err));
    int64_t block = lw_node_int(node, "block_size", 0);
    g->inner = lw_tensor_span(x, axis + 1, x->rank);
    g->axis_dim = x->dim[axis];
    g->block = block > 0 ? block : 1;
    g->scales_along = block > 0 ? g->axis_dim / block + (g->axis_dim % block != 0) : g->axis_dim;
    int64_t expected =
        block > 0 ? x->count / (g->axis_dim > 0 ? g->axis_dim : 1) * g->scales_along : g->axis_dim;
    if (scale->count != expected)
        return lw_fail(err, LW_E_INPUT, "%lld scales where %lld belong along axis %d",
                       (long long)scale->count, (long long)expected, axis);
    return LW_OK;
}

static int64_t grid_index(const grid *g, int64_t i, bool blocked)
{
    if (g->one)
        return 0;
    int64_t inner = i % g->inner, along = i / g->inner % g->axis_dim, outer = i / g->inner / g->axis_dim;
    return blocked ? (outer * g->scales_along + along / g->block) * g->inner + inner : along;
}

static lw_status run_quantize(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *scale = lw_in(c, 1), *zero = lw_in(c, 2);
    lw_dtype dtype = zero ? zero->dtype : LW_U8;
    int bits = zero ? zero->bits : 0;
    if (!x || (x->dtype != LW_F32 && x->dtype != LW_I32))
        return lw_fail(err, LW_E_INPUT, "the input must be float32 or int32");
    if (!zero) { /* opset 21: ONNX's numbers of the types */
        switch (lw_node_int(c->node, "output_dtype", 2)) {
        case 2:
            break;
        case 3:
            dtype = LW_I8;
            break;
        case 4:
            dtype = LW_U16;
            break;
        case 5:
            dtype = LW_I16;
            break;
        case 21: /* uint4 and int4, one to a byte */
            bits = 4;
            break;
        case 22:
            dtype = LW_I8;
            bits = 4;
            break;
        default:
            return lw_fail(err, LW_E_INPUT, "output_dtype %lld is not supported",
                           (long long)lw_node_int(c->node, "output_dtype", 2));
        }
    }
    if (!lw_dtype_is_quantized(dtype))
        return lw_fail(err, LW_E_INPUT, "zero points of type %s are not supported", lw_dtype_name(dtype));
    grid g;
    LW_TRY(grid_of(&g, c->node, x, scale, zero, err));
    lw_tensor *y;
    LW_TRY(lw_tensor_new(&y, dtype, x->rank, x->dim, err));
    c->out[0] = y;
    y->bits = bits;
    int32_t low, high;
    lw_tensor_range(y, &low, &high);
    bool blocked = lw_node_int(c->node, "block_size", 0) > 0;
    const float *scales = scale->data;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = grid_index(&g, i, blocked);
        float value = x->dtype == LW_F32 ? ((const float *)x->data)[i] : (float)((const int32_t *)x->data)[i];
        lw_quant_store(
            y, i, lw_quantize(value, scales[at], zero ? (int32_t)lw_tensor_integer(zero, at) : 0, low, high));
    }
    return LW_OK;
}

static lw_status run_dequantize(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *scale = lw_in(c, 1), *zero = lw_in(c, 2);
    if (!x || (!lw_dtype_is_quantized(x->dtype) && x->dtype != LW_I32))
        return lw_fail(err, LW_E_INPUT, "the input must be int8, uint8, int16, uint16 or int32");
    if (zero && zero->dtype != x->dtype)
        return lw_fail(err, LW_E_INPUT, "the zero point is %s, the input %s", lw_dtype_name(zero->dtype),
                       lw_dtype_name(x->dtype));
    grid g;
    LW_TRY(grid_of(&g, c->node, x, scale, zero, err));
    lw_tensor *y;
    LW_TRY(lw_tensor_new(&y, LW_F32, x->rank, x->dim, err));
    c->out[0] = y;
    bool blocked = lw_node_int(c->node, "block_size", 0) > 0;
    const float *scales = scale->data;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = grid_index(&g, i, blocked);
        int64_t from = lw_tensor_integer(x, i) - (zero ? lw_tensor_integer(zero, at) : 0);
        ((float *)y->data)[i] = (float)from * scales[at];
    }
    return LW_OK;
}

static lw_status run_dynamic_quantize(const lw_op_call *c, lw_error *err)
{
    float scale;
    uint8_t zero;
    LW_TRY(lw_quant_dynamic(lw_in(c, 0), &c->out[0], &scale, &zero, err));
    if (c->n_out > 1) {
        LW_TRY(lw_tensor_new(&c->out[1], LW_F32, 0, NULL, err));
        *(float *)c->out[1]->data = scale;
    }
    if (c->n_out > 2) {
        LW_TRY(lw_tensor_new(&c->out[2], LW_U8, 0, NULL, err));
        *(uint8_t *)c->out[2]->data = zero;
    }
    return LW_OK;
}

const lw_op lw_ops_quantize[] = {
    {"", "QuantizeLinear", 10, 0, 2, 3, run_quantize, "elementwise", NULL},
    {"", "DequantizeLinear", 10, 0, 2, 3, run_dequantize, "elementwise", NULL},
    {"", "DynamicQuantizeLinear", 11, 0, 1, 1, run_dynamic_quantize, "elementwise", NULL},
    {microsoft, "QuantizeLinear", 1, 0, 2, 3, run_quantize, "elementwise", NULL},
    {microsoft, "DequantizeLinear", 1, 0, 2, 3, run_dequantize, "elementwise", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
