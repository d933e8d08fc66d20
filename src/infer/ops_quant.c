/* ops_quant.c - operators on quantized tensors: ONNX's own and ONNX Runtime's com.microsoft kin. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"
#include "infer/product.h"
#include "infer/quant.h"
#include "infer/window.h"

static const char microsoft[] = "com.microsoft";

static void store(lw_tensor *t, int64_t i, int32_t v)
{
    if (t->dtype == LW_I8 || t->dtype == LW_U8)
        ((uint8_t *)t->data)[i] = (uint8_t)v;
    else
        ((uint16_t *)t->data)[i] = (uint16_t)v;
}

/* One positive, finite scale of an input that is a scalar. */
static lw_status scalar_scale(const lw_tensor *t, const char *what, float *out, lw_error *err)
{
    *out = 0;
    LW_TRY(lw_want(t, LW_F32, what, err));
    if (t->count != 1)
        return lw_fail(err, LW_E_INPUT, "%s must be one number, not %lld", what, (long long)t->count);
    *out = *(const float *)t->data;
    if (!(*out > 0) || !isfinite(*out))
        return lw_fail(err, LW_E_INPUT, "%s is %g: a scale is positive and finite", what, (double)*out);
    return LW_OK;
}

static lw_status check_scales(const lw_tensor *t, const char *what, lw_error *err)
{
    LW_TRY(lw_want(t, LW_F32, what, err));
    for (int64_t i = 0; i < t->count; i++) {
        float s = ((const float *)t->data)[i];
        if (!(s > 0) || !isfinite(s))
            return lw_fail(err, LW_E_INPUT, "%s[%lld] is %g: a scale is positive and finite", what,
                           (long long)i, (double)s);
    }
    return LW_OK;
}

/* One zero point of the dtype of the tensor that it belongs to; 0 where it is left out. */
static lw_status scalar_zero(const lw_tensor *t, lw_dtype dtype, const char *what, int32_t *out,
                             lw_error *err)
{
    *out = 0;
    if (!t)
        return LW_OK;
    LW_TRY(lw_want(t, dtype, what, err));
    if (t->count != 1)
        return lw_fail(err, LW_E_INPUT, "%s must be one number, not %lld", what, (long long)t->count);
    *out = (int32_t)lw_tensor_integer(t, 0);
    return LW_OK;
}

/* Zero points, one for all or one for each of n; widened to int32. The caller frees *out. */
static lw_status zero_list(const lw_tensor *t, lw_dtype dtype, int64_t n, const char *what, int32_t **out,
                           bool *is_scalar, lw_error *err)
{
    int64_t count = t ? t->count : 1;
    if (t)
        LW_TRY(lw_want(t, dtype, what, err));
    if (count != 1 && count != n)
        return lw_fail(err, LW_E_INPUT, "%s has %lld values where 1 or %lld belong", what, (long long)count,
                       (long long)n);
    LW_TRY(lw_room(out, count, 1, sizeof **out, err));
    for (int64_t i = 0; i < count; i++)
        (*out)[i] = t ? (int32_t)lw_tensor_integer(t, i) : 0;
    *is_scalar = count == 1;
    return LW_OK;
}

static lw_status want_8_bits(const lw_tensor *t, const char *what, lw_error *err)
{
    if (!t || (t->dtype != LW_I8 && t->dtype != LW_U8))
        return lw_fail(err, LW_E_INPUT, "%s must be int8 or uint8%s%s", what, t ? ", not " : "",
                       t ? lw_dtype_name(t->dtype) : "");
    return LW_OK;
}

/* ---- QuantizeLinear, DequantizeLinear ------------------------------------------------------------ */

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
    LW_TRY(check_scales(scale, "the scale", err));
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
        store(y, i,
              lw_quantize(value, scales[at], zero ? (int32_t)lw_tensor_integer(zero, at) : 0, low, high));
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

static void extremes(const lw_tensor *x, float *least, float *largest)
{
    *least = *largest = 0;
    for (int64_t i = 0; i < x->count; i++) {
        float v = ((const float *)x->data)[i];
        *least = v < *least ? v : *least;
        *largest = v > *largest ? v : *largest;
    }
}

static lw_status dynamic_quantize(const lw_tensor *x, lw_tensor **y, float *scale, uint8_t *zero,
                                  lw_error *err)
{
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    float least, largest;
    extremes(x, &least, &largest);
    lw_dynamic_parameters(least, largest, scale, zero);
    LW_TRY(lw_tensor_new(y, LW_U8, x->rank, x->dim, err));
    for (int64_t i = 0; i < x->count; i++)
        ((uint8_t *)(*y)->data)[i] = (uint8_t)lw_quantize(((const float *)x->data)[i], *scale, *zero, 0, 255);
    return LW_OK;
}

static lw_status run_dynamic_quantize(const lw_op_call *c, lw_error *err)
{
    float scale;
    uint8_t zero;
    LW_TRY(dynamic_quantize(lw_in(c, 0), &c->out[0], &scale, &zero, err));
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

/* ---- products ------------------------------------------------------------------------------------ */

/* Whether sums over depth products of (a - a_zero) * (b - b_zero) always fit int32, looking at the actual b
 * (depth x n, strides row and column) when the general bound does not say so. */
static lw_status check_depth(const lw_tensor *b, int64_t depth, int64_t n, int64_t row, int64_t column,
                             const int32_t *b_zero, bool one_zero, lw_dtype a_dtype, int32_t a_zero_least,
                             int32_t a_zero_most, lw_error *err)
{
    int32_t low, high;
    lw_dtype_range(a_dtype, &low, &high);
    int64_t a_most = high - a_zero_least > a_zero_most - low ? high - a_zero_least : a_zero_most - low;
    if (depth <= lw_safe_depth(255 * a_most, 0))
        return LW_OK;
    for (int64_t j = 0; j < n; j++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < depth; k++)
            sum += llabs(lw_tensor_integer(b, k * row + j * column) - b_zero[one_zero ? 0 : j]);
        if (sum * a_most > INT32_MAX)
            return lw_fail(
                err, LW_E_RANGE,
                "output column %lld sums %lld products whose magnitude can reach %lld: more than int32 holds",
                (long long)j, (long long)depth, (long long)(sum * a_most));
    }
    return LW_OK;
}

/* The operands of a product that operators hand to integer_product(): b is input at_b, its zero point input
 * at_b_zero (whatever is not there or constant is -1). */
typedef struct operands {
    const lw_tensor *a, *a_zero, *b, *b_zero;
    bool b_transposed; /* rank 2, stored n x k */
    int at_b, at_b_zero;
} operands;

/* The product of every batch as `result` says, into `out` (batches x m x n). */
static lw_status integer_product(const lw_op_call *call, const lw_product *p, const operands *o,
                                 const lw_result *result, void *out, lw_error *err)
{
    const lw_tensor *a = o->a, *a_zero = o->a_zero, *b = o->b, *b_zero = o->b_zero;
    int64_t size = result->kind == LW_RESULT_QUANTIZED ? 1 : 4, columns = b->rank > 1 ? p->n : 1;
    int64_t matrices = b->count / (p->k * columns > 0 ? p->k * columns : 1);
    lw_status status = LW_OK;
    int32_t *za = NULL, *zb = NULL;
    bool one_a, one_b;
    LW_TRY(want_8_bits(a, "A", err));
    LW_TRY(want_8_bits(b, "B", err));
    LW_TRY_END(zero_list(a_zero, a->dtype, p->m, "A's zero point", &za, &one_a, err));
    LW_TRY_END(zero_list(b_zero, b->dtype, p->n, "B's zero point", &zb, &one_b, err));
    int32_t least = 0, most = 0;
    for (int64_t i = 0; i < (one_a ? 1 : p->m); i++) {
        least = i == 0 ? za[0] : least;
        most = i == 0 ? za[0] : most;
        least = za[i] < least ? za[i] : least;
        most = za[i] > most ? za[i] : most;
    }
    /* kept only where the zero point cannot change either */
    bool keep = !b_zero || (o->at_b_zero >= 0 && (call->constant >> o->at_b_zero & 1));
    for (int64_t batch = 0; batch < p->batches; batch++) {
        int64_t at_a, at_b;
        lw_product_offsets(p, batch, &at_a, &at_b);
        lw_tensor matrix = *b;
        matrix.data = (char *)b->data + at_b * p->k * p->n;
        LW_TRY_END(check_depth(&matrix, p->k, p->n, o->b_transposed ? 1 : p->n, o->b_transposed ? p->k : 1,
                               zb, one_b, a->dtype, least, most, err));
        lw_gemm g = {.m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .a = (const char *)a->data + at_a * p->m * p->k,
                     .b = matrix.data,
                     .a_signed = a->dtype == LW_I8,
                     .b_signed = b->dtype == LW_I8,
                     .b_transposed = o->b_transposed,
                     .lda = p->k,
                     .ldb = o->b_transposed ? p->k : p->n,
                     .ldc = p->n,
                     .keep_b = keep ? lw_call_keep(call, o->at_b, (int)at_b, (int)matrices) : NULL,
                     .a_zero = za,
                     .b_zero = zb,
                     .a_zero_is_scalar = one_a,
                     .b_zero_is_scalar = one_b,
                     .result = *result,
                     .c = (char *)out + batch * p->m * p->n * size};
        LW_TRY_END(call->backend->gemm(call->pool, &g, err));
    }
end:
    free(za);
    free(zb);
    return status;
}

static lw_status run_matmul_integer(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *a = lw_in(c, 0), *b = lw_in(c, 1);
    lw_product p;
    LW_TRY(lw_product_of(&p, a, b, err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_I32, p.rank, p.dim, err));
    operands o = {.a = a, .a_zero = lw_in(c, 2), .b = b, .b_zero = lw_in(c, 3), .at_b = 1, .at_b_zero = 3};
    return integer_product(c, &p, &o, &(lw_result){.kind = LW_RESULT_SUMS}, c->out[0]->data, err);
}

/* Multipliers of a requantization, one per column (or one for all): a_scale * b_scale[j] / y_scale. */
static lw_status multipliers(const lw_tensor *a_scale, const lw_tensor *b_scale, float y_scale, int64_t n,
                             const char *what, float **out, bool *one, lw_error *err)
{
    float sa;
    LW_TRY(scalar_scale(a_scale, "the input's scale", &sa, err));
    LW_TRY(check_scales(b_scale, what, err));
    if (b_scale->count != 1 && b_scale->count != n)
        return lw_fail(err, LW_E_INPUT, "%s has %lld values where 1 or %lld belong", what,
                       (long long)b_scale->count, (long long)n);
    *out = malloc((size_t)b_scale->count * sizeof **out);
    if (!*out)
        return lw_fail_memory(err, (size_t)b_scale->count * sizeof **out);
    for (int64_t j = 0; j < b_scale->count; j++)
        (*out)[j] = lw_requantize_multiplier(sa, ((const float *)b_scale->data)[j], y_scale);
    *one = b_scale->count == 1;
    return LW_OK;
}

static lw_status run_qlinear_matmul(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *y_zero = lw_in(c, 7);
    operands o = {.a = lw_in(c, 0),
                  .a_zero = lw_in(c, 2),
                  .b = lw_in(c, 3),
                  .b_zero = lw_in(c, 5),
                  .at_b = 3,
                  .at_b_zero = 5};
    lw_product p;
    lw_result result = {.kind = LW_RESULT_QUANTIZED};
    float y_scale, *m = NULL;
    lw_status status = LW_OK;
    LW_TRY(lw_product_of(&p, o.a, o.b, err));
    LW_TRY(scalar_scale(lw_in(c, 6), "the output's scale", &y_scale, err));
    LW_TRY(want_8_bits(y_zero, "the output's zero point", err));
    LW_TRY(scalar_zero(y_zero, y_zero->dtype, "the output's zero point", &result.zero, err));
    LW_TRY(multipliers(lw_in(c, 1), lw_in(c, 4), y_scale, p.n, "B's scale", &m, &result.one_multiplier, err));
    result.multiplier = m;
    lw_dtype_range(y_zero->dtype, &result.low, &result.high);
    LW_TRY_END(lw_tensor_new(&c->out[0], y_zero->dtype, p.rank, p.dim, err));
    LW_TRY_END(integer_product(c, &p, &o, &result, c->out[0]->data, err));
end:
    free(m);
    return status;
}

/* com.microsoft MatMulIntegerToFloat and DynamicQuantizeMatMul: float results of an integer product. */
static lw_status product_to_float(const lw_op_call *c, const operands *o, float a_scale,
                                  const lw_tensor *b_scale, const lw_tensor *bias, lw_error *err)
{
    lw_product p;
    LW_TRY(lw_product_of(&p, o->a, o->b, err));
    LW_TRY(check_scales(b_scale, "B's scale", err));
    if (b_scale->count != 1 && b_scale->count != p.n)
        return lw_fail(err, LW_E_INPUT, "B's scale has %lld values where 1 or %lld belong",
                       (long long)b_scale->count, (long long)p.n);
    if (bias)
        LW_TRY(lw_want(bias, LW_F32, "the bias", err));
    if (bias && bias->count != p.n)
        return lw_fail(err, LW_E_INPUT, "the bias has %lld values where %lld belong", (long long)bias->count,
                       (long long)p.n);
    float *m = malloc((size_t)b_scale->count * sizeof *m);
    if (!m)
        return lw_fail_memory(err, (size_t)b_scale->count * sizeof *m);
    for (int64_t j = 0; j < b_scale->count; j++)
        m[j] = a_scale * ((const float *)b_scale->data)[j];
    lw_result result = {.kind = LW_RESULT_REALS,
                        .multiplier = m,
                        .one_multiplier = b_scale->count == 1,
                        .real_bias = bias ? bias->data : NULL};
    lw_status status = lw_tensor_new(&c->out[0], LW_F32, p.rank, p.dim, err);
    if (status == LW_OK)
        status = integer_product(c, &p, o, &result, c->out[0]->data, err);
    free(m);
    return status;
}

static lw_status run_matmul_integer_to_float(const lw_op_call *c, lw_error *err)
{
    float a_scale;
    operands o = {.a = lw_in(c, 0),
                  .a_zero = lw_in(c, 4),
                  .b = lw_in(c, 1),
                  .b_zero = lw_in(c, 5),
                  .at_b = 1,
                  .at_b_zero = 5};
    LW_TRY(scalar_scale(lw_in(c, 2), "A's scale", &a_scale, err));
    return product_to_float(c, &o, a_scale, lw_in(c, 3), lw_in(c, 6), err);
}

static lw_status run_dynamic_quantize_matmul(const lw_op_call *c, lw_error *err)
{
    lw_tensor *a = NULL, *zero = NULL;
    float scale;
    uint8_t z;
    lw_status status = dynamic_quantize(lw_in(c, 0), &a, &scale, &z, err);
    if (status == LW_OK)
        status = lw_tensor_new(&zero, LW_U8, 0, NULL, err);
    if (status == LW_OK) {
        *(uint8_t *)zero->data = z;
        operands o = {
            .a = a, .a_zero = zero, .b = lw_in(c, 1), .b_zero = lw_in(c, 3), .at_b = 1, .at_b_zero = 3};
        status = product_to_float(c, &o, scale, lw_in(c, 2), lw_in(c, 4), err);
    }
    lw_tensor_release(a);
    lw_tensor_release(zero);
    return status;
}

/* lanewise DynamicRowsMatMul: x, 8-bit B (inputs x outputs), its scale and zero point, float bias. Each row
 * of x is quantized as DynamicQuantizeLinear does a tensor. */
static lw_status run_dynamic_rows_matmul(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *b = lw_in(c, 1), *b_scale = lw_in(c, 2), *b_zero = lw_in(c, 3),
                    *bias = lw_in(c, 4);
    lw_product p;
    int32_t *zb = NULL, *za = NULL;
    float *scale = NULL;
    uint8_t *bytes = NULL;
    bool one;
    lw_status status = LW_OK;
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(want_8_bits(b, "B", err));
    LW_TRY(check_scales(b_scale, "B's scale", err));
    if (x->rank < 1 || b->rank != 2)
        return lw_fail(err, LW_E_INPUT, "B must have two dimensions");
    LW_TRY(lw_product_of(&p, x, b, err));
    if (bias)
        LW_TRY(lw_want(bias, LW_F32, "the bias", err));
    if ((b_scale->count != 1 && b_scale->count != p.n) || (bias && bias->count != p.n))
        return lw_fail(err, LW_E_INPUT, "B's scale and the bias must have %lld values", (long long)p.n);
    LW_TRY(zero_list(b_zero, b->dtype, p.n, "B's zero point", &zb, &one, err));
    LW_TRY_END(check_depth(b, p.k, p.n, p.n, 1, zb, one, LW_U8, 0, 255, err));
    int64_t rows = p.batches * p.m;
    LW_TRY_END(lw_room(&za, rows, 1, sizeof *za, err));
    LW_TRY_END(lw_room(&scale, rows, 1, sizeof *scale, err));
    LW_TRY_END(lw_room(&bytes, rows, p.k, 1, err));
    for (int64_t i = 0; i < rows; i++) {
        lw_tensor row = {.count = p.k, .data = (float *)x->data + i * p.k};
        float least, largest;
        uint8_t z;
        extremes(&row, &least, &largest);
        lw_dynamic_parameters(least, largest, &scale[i], &z);
        za[i] = z;
        for (int64_t k = 0; k < p.k; k++)
            bytes[i * p.k + k] = (uint8_t)lw_quantize(((const float *)row.data)[k], scale[i], z, 0, 255);
    }
    LW_TRY_END(lw_tensor_new(&c->out[0], LW_F32, p.rank, p.dim, err));
    lw_gemm g = {.m = rows,
                 .n = p.n,
                 .k = p.k,
                 .a = bytes,
                 .b = b->data,
                 .b_signed = b->dtype == LW_I8,
                 .lda = p.k,
                 .ldb = p.n,
                 .ldc = p.n,
                 .a_zero = za,
                 .b_zero = zb,
                 .b_zero_is_scalar = one,
                 .result = {.kind = LW_RESULT_REALS,
                            .multiplier = b_scale->data,
                            .one_multiplier = b_scale->count == 1,
                            .row_scale = scale,
                            .real_bias = bias ? bias->data : NULL},
                 .c = c->out[0]->data};
    status = c->backend->gemm(c->pool, &g, err);
end:
    free(zb);
    free(za);
    free(scale);
    free(bytes);
    return status;
}

/* com.microsoft QGemm: alpha * A * B + C, transposes by copying. */
static lw_status transposed(const lw_tensor *t, bool transpose, lw_tensor **out, lw_error *err)
{
    if (t->rank != 2)
        return lw_fail(err, LW_E_INPUT, "QGemm's operands have two dimensions");
    if (!transpose) {
        *out = lw_tensor_retain((lw_tensor *)t);
        return LW_OK;
    }
    int64_t dim[2] = {t->dim[1], t->dim[0]};
    LW_TRY(lw_tensor_new(out, t->dtype, 2, dim, err));
    for (int64_t i = 0; i < dim[0]; i++)
        for (int64_t j = 0; j < dim[1]; j++)
            ((uint8_t *)(*out)->data)[i * dim[1] + j] = ((const uint8_t *)t->data)[j * dim[0] + i];
    return LW_OK;
}

static lw_status run_qgemm(const lw_op_call *c, lw_error *err)
{
    lw_tensor *a = NULL;
    const lw_tensor *b = lw_in(c, 3), *bias = lw_in(c, 6), *y_zero = lw_in(c, 8);
    lw_status status = LW_OK;
    int32_t *wide_bias = NULL;
    float *m = NULL, y_scale = 1, alpha = lw_node_float(c->node, "alpha", 1);
    bool to_float = !lw_in(c, 7), transposes = lw_node_int(c->node, "transB", 0) != 0;
    lw_result result = {.kind = to_float ? LW_RESULT_REALS : LW_RESULT_QUANTIZED};
    lw_product p;
    LW_TRY(want_8_bits(lw_in(c, 0), "A", err));
    LW_TRY(want_8_bits(b, "B", err));
    if (b->rank != 2)
        return lw_fail(err, LW_E_INPUT, "QGemm's operands have two dimensions");
    LW_TRY_END(transposed(lw_in(c, 0), lw_node_int(c->node, "transA", 0) != 0, &a, err));
    lw_tensor shape = *b; /* as it enters the product */
    if (transposes) {
        shape.dim[0] = b->dim[1];
        shape.dim[1] = b->dim[0];
    }
    LW_TRY_END(lw_product_of(&p, a, &shape, err));
    if (!to_float) {
        LW_TRY_END(scalar_scale(lw_in(c, 7), "the output's scale", &y_scale, err));
        LW_TRY_END(want_8_bits(y_zero, "the output's zero point", err));
        LW_TRY_END(scalar_zero(y_zero, y_zero->dtype, "the output's zero point", &result.zero, err));
        lw_dtype_range(y_zero->dtype, &result.low, &result.high);
    }
    LW_TRY_END(
        multipliers(lw_in(c, 1), lw_in(c, 4), y_scale, p.n, "B's scale", &m, &result.one_multiplier, err));
    for (int64_t j = 0; j < (result.one_multiplier ? 1 : p.n); j++)
        m[j] = alpha * m[j];
    result.multiplier = m;
    if (bias) {
        LW_TRY_END(lw_want(bias, LW_I32, "C", err));
        if (bias->count != 1 && bias->count != p.n && bias->count != p.m * p.n) {
            status = lw_fail(err, LW_E_INPUT, "C has %lld values", (long long)bias->count);
            goto end;
        }
        result.bias = bias->data;
        if (bias->count == 1 && p.n > 1) {
            result.bias = wide_bias = malloc((size_t)p.n * sizeof *wide_bias);
            if (!wide_bias) {
                status = lw_fail_memory(err, (size_t)p.n * sizeof *wide_bias);
                goto end;
            }
            for (int64_t j = 0; j < p.n; j++)
                wide_bias[j] = *(const int32_t *)bias->data;
        }
    }
    LW_TRY_END(lw_tensor_new(&c->out[0], to_float ? LW_F32 : y_zero->dtype, p.rank, p.dim, err));
    /* a bias of each element: row by row, each with its own */
    bool by_row = bias && bias->count == p.m * p.n && p.m > 1;
    lw_product part = p;
    part.m = by_row ? 1 : p.m;
    for (int64_t i = 0; i < p.m && c->out[0]->count > 0; i += part.m) {
        lw_tensor row = *a;
        row.data = (char *)a->data + i * p.k;
        operands o = {.a = &row,
                      .a_zero = lw_in(c, 2),
                      .b = b,
                      .b_zero = lw_in(c, 5),
                      .b_transposed = transposes,
                      .at_b = 3,
                      .at_b_zero = 5};
        result.bias = by_row ? (const int32_t *)bias->data + i * p.n : result.bias;
        LW_TRY_END(integer_product(c, &part, &o, &result,
                                   (char *)c->out[0]->data + i * p.n * (to_float ? 4 : 1), err));
    }
end:
    free(m);
    free(wide_bias);
    lw_tensor_release(a);
    return status;
}

/* ---- convolution --------------------------------------------------------------------------------- */

typedef struct convolution {
    lw_window window;
    int64_t batch, channels, outputs, groups;
    int rank;
    int64_t dim[LW_MAX_RANK];
} convolution;

static lw_status convolution_of(convolution *v, const lw_op_call *c, const lw_tensor *x, const lw_tensor *w,
                                lw_error *err)
{
    LW_TRY(want_8_bits(x, "the input", err));
    LW_TRY(want_8_bits(w, "the weight", err));
    if (x->rank < 3 || w->rank != x->rank)
        return lw_fail(err, LW_E_INPUT, "the weight has %d dimensions, the input %d", w->rank, x->rank);
    LW_TRY(lw_window_of(&v->window, c->node, x, w->dim + 2, err));
    v->groups = lw_node_int(c->node, "group", 1);
    v->batch = x->dim[0];
    v->channels = x->dim[1];
    v->outputs = w->dim[0];
    if (v->groups < 1 || v->channels % v->groups || v->outputs % v->groups ||
        w->dim[1] != v->channels / v->groups)
        return lw_fail(err, LW_E_INPUT,
                       "%lld input channels in %lld groups and a weight of %lld x %lld channels do not agree",
                       (long long)v->channels, (long long)v->groups, (long long)v->outputs,
                       (long long)w->dim[1]);
    v->rank = x->rank;
    v->dim[0] = v->batch;
    v->dim[1] = v->outputs;
    for (int k = 0; k < v->window.dims; k++)
        v->dim[2 + k] = v->window.out[k];
    return LW_OK;
}

/* Every image and group as `result` says, whose lists are those of all groups, into y. */
static lw_status integer_convolution(const lw_op_call *c, const convolution *v, const lw_tensor *x,
                                     int32_t x_zero, int at_w, const int32_t *w_zero, bool one_zero,
                                     int at_w_zero, const lw_result *result, void *y, lw_error *err)
{
    const lw_tensor *w = lw_in(c, at_w);
    int64_t in = v->channels / v->groups, out = v->outputs / v->groups, patch = in * v->window.kernel_count;
    int64_t size = result->kind == LW_RESULT_QUANTIZED ? 1 : 4;
    bool keep = !lw_in(c, at_w_zero) || (c->constant >> at_w_zero & 1);
    int32_t *zeros = malloc((size_t)out * sizeof *zeros + 1);
    lw_status status = zeros ? LW_OK : lw_fail_memory(err, (size_t)out * sizeof *zeros);
    for (int64_t g = 0; g < v->groups && status == LW_OK; g++) {
        for (int64_t o = 0; o < out; o++)
            zeros[o] = w_zero[one_zero ? 0 : g * out + o];
        lw_conv call = {.dims = v->window.dims,
                        .c = in,
                        .o = out,
                        .images = v->batch,
                        .x_step = v->channels * v->window.in_count,
                        .y_step = v->outputs * v->window.out_count,
                        .x_signed = x->dtype == LW_I8,
                        .w_signed = w->dtype == LW_I8,
                        .x = (const char *)x->data + g * in * v->window.in_count,
                        .w = (const char *)w->data + g * out * patch,
                        .x_zero = x_zero,
                        .w_zero = zeros,
                        .keep_w = keep ? lw_call_keep(c, at_w, (int)g, (int)v->groups) : NULL,
                        .result = *result,
                        .y = (char *)y + g * out * v->window.out_count * size};
        if (result->bias)
            call.result.bias += g * out;
        if (result->multiplier && !result->one_multiplier)
            call.result.multiplier += g * out;
        for (int k = 0; k < 3; k++) { /* the window has its unused dimensions last */
            int from = (k + v->window.dims) % 3;
            call.in[k] = v->window.in[from];
            call.out[k] = v->window.out[from];
            call.kernel[k] = v->window.kernel[from];
            call.stride[k] = v->window.stride[from];
            call.dilation[k] = v->window.dilation[from];
            call.pad[k] = v->window.pad[from];
        }
        status = c->backend->conv(c->pool, &call, err);
    }
    free(zeros);
    return status;
}

/* Refuses weights whose sums could leave int32. bias NULL: none. */
static lw_status check_convolution(const convolution *v, lw_dtype x_dtype, int32_t x_zero, const lw_tensor *w,
                                   const int32_t *w_zero, bool one_zero, const lw_tensor *bias, lw_error *err)
{
    int32_t low, high;
    lw_dtype_range(x_dtype, &low, &high);
    int64_t most = high - x_zero > x_zero - low ? high - x_zero : x_zero - low,
            patch = w->count / (v->outputs ? v->outputs : 1);
    for (int64_t o = 0; o < v->outputs; o++) {
        int64_t sum = 0, start = bias ? llabs((long long)((const int32_t *)bias->data)[o]) : 0;
        if (patch > lw_safe_depth(255 * most, start))
            for (int64_t i = 0; i < patch; i++)
                sum += llabs(lw_tensor_integer(w, o * patch + i) - w_zero[one_zero ? 0 : o]);
        if (sum * most + start > INT32_MAX)
            return lw_fail(err, LW_E_RANGE,
                           "output channel %lld sums products and a bias whose magnitude can reach %lld: "
                           "more than int32 holds",
                           (long long)o, (long long)(sum * most + start));
    }
    return LW_OK;
}

static lw_status run_conv_integer(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *w = lw_in(c, 1);
    convolution v;
    int32_t x_zero, *w_zero = NULL;
    bool one;
    lw_status status = LW_OK;
    LW_TRY(convolution_of(&v, c, x, w, err));
    LW_TRY(scalar_zero(lw_in(c, 2), x->dtype, "the input's zero point", &x_zero, err));
    LW_TRY(zero_list(lw_in(c, 3), w->dtype, v.outputs, "the weight's zero point", &w_zero, &one, err));
    LW_TRY_END(check_convolution(&v, x->dtype, x_zero, w, w_zero, one, NULL, err));
    LW_TRY_END(lw_tensor_new(&c->out[0], LW_I32, v.rank, v.dim, err));
    LW_TRY_END(integer_convolution(c, &v, x, x_zero, 1, w_zero, one, 3, &(lw_result){.kind = LW_RESULT_SUMS},
                                   c->out[0]->data, err));
end:
    free(w_zero);
    return status;
}

static lw_status run_qlinear_conv(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *w = lw_in(c, 3), *y_zero = lw_in(c, 7), *bias = lw_in(c, 8);
    convolution v;
    int32_t x_zero, *w_zero = NULL;
    float y_scale, *m = NULL;
    bool one;
    lw_result result = {.kind = LW_RESULT_QUANTIZED};
    lw_status status = LW_OK;
    LW_TRY(convolution_of(&v, c, x, w, err));
    LW_TRY(scalar_zero(lw_in(c, 2), x->dtype, "the input's zero point", &x_zero, err));
    LW_TRY(scalar_scale(lw_in(c, 6), "the output's scale", &y_scale, err));
    LW_TRY(want_8_bits(y_zero, "the output's zero point", err));
    LW_TRY(scalar_zero(y_zero, y_zero->dtype, "the output's zero point", &result.zero, err));
    if (bias)
        LW_TRY(lw_want(bias, LW_I32, "the bias", err));
    if (bias && bias->count != v.outputs)
        return lw_fail(err, LW_E_INPUT, "the bias has %lld values where %lld belong", (long long)bias->count,
                       (long long)v.outputs);
    result.bias = bias ? bias->data : NULL;
    LW_TRY(zero_list(lw_in(c, 5), w->dtype, v.outputs, "the weight's zero point", &w_zero, &one, err));
    LW_TRY_END(check_convolution(&v, x->dtype, x_zero, w, w_zero, one, bias, err));
    LW_TRY_END(multipliers(lw_in(c, 1), lw_in(c, 4), y_scale, v.outputs, "the weight's scale", &m,
                           &result.one_multiplier, err));
    result.multiplier = m;
    lw_dtype_range(y_zero->dtype, &result.low, &result.high);
    LW_TRY_END(lw_tensor_new(&c->out[0], y_zero->dtype, v.rank, v.dim, err));
    LW_TRY_END(integer_convolution(c, &v, x, x_zero, 3, w_zero, one, 5, &result, c->out[0]->data, err));
end:
    free(w_zero);
    free(m);
    return status;
}

/* ---- com.microsoft: elementwise and pooling -------------------------------------------------------- */

typedef struct quantized {
    const lw_tensor *x;
    float scale;
    int32_t zero;
} quantized;

/* Inputs first, first + 1, first + 2: a tensor, its scale, its zero point. */
static lw_status quantized_in(const lw_op_call *c, int first, quantized *q, lw_error *err)
{
    q->x = lw_in(c, first);
    LW_TRY(want_8_bits(q->x, "the input", err));
    LW_TRY(scalar_scale(lw_in(c, first + 1), "the input's scale", &q->scale, err));
    return scalar_zero(lw_in(c, first + 2), q->x->dtype, "the input's zero point", &q->zero, err);
}

/* The output's scale and zero point at inputs first and first + 1, and its range. */
static lw_status quantized_out(const lw_op_call *c, int first, lw_dtype dtype, quantized *q, int32_t *low,
                               int32_t *high, lw_error *err)
{
    LW_TRY(scalar_scale(lw_in(c, first), "the output's scale", &q->scale, err));
    LW_TRY(scalar_zero(lw_in(c, first + 1), dtype, "the output's zero point", &q->zero, err));
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
        store(c->out[0], i, lw_saturate_round(value, y.zero, low, high));
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

/* An 8-bit function is a table of 256. */
static lw_status by_table(const lw_op_call *c, float (*f)(float x, float parameter), float parameter,
                          lw_error *err)
{
    quantized x, y;
    int32_t low, high;
    uint8_t table[256];
    LW_TRY(quantized_in(c, 0, &x, err));
    LW_TRY(quantized_out(c, 3, x.x->dtype, &y, &low, &high, err));
    for (int32_t v = low; v <= high; v++)
        table[v & 255] =
            (uint8_t)lw_quantize(f(lw_dequantize(v, x.scale, x.zero), parameter), y.scale, y.zero, low, high);
    LW_TRY(lw_tensor_new(&c->out[0], x.x->dtype, x.x->rank, x.x->dim, err));
    for (int64_t i = 0; i < x.x->count; i++)
        ((uint8_t *)c->out[0]->data)[i] = table[((const uint8_t *)x.x->data)[i]];
    return LW_OK;
}

static float sigmoid(float x, float unused)
{
    (void)unused;
    return 1 / (1 + expf(-x));
}

static float leaky_relu(float x, float alpha)
{
    return x < 0 ? alpha * x : x;
}

static lw_status run_qlinear_sigmoid(const lw_op_call *c, lw_error *err)
{
    return by_table(c, sigmoid, 0, err);
}

static lw_status run_qlinear_leaky_relu(const lw_op_call *c, lw_error *err)
{
    return by_table(c, leaky_relu, lw_node_float(c->node, "alpha", 0.01f), err);
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
        store(c->out[0], i, lw_saturate_round((float)sum * multiplier, y.zero, low, high));
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
        store(c->out[0], i, lw_saturate_round(value, 0, low, high));
    }
    return LW_OK;
}

/* ONNX Runtime's integer softmax: exponentials from a table of fixed-point numbers, relative to a largest
 * value of 255. */
static lw_status run_qlinear_softmax(const lw_op_call *c, lw_error *err)
{
    quantized x, y;
    int32_t low, high;
    int axis;
    uint32_t table[256];
    LW_TRY(quantized_in(c, 0, &x, err));
    LW_TRY(quantized_out(c, 3, x.x->dtype, &y, &low, &high, err));
    bool flattens = lw_node_int(c->node, "opset", 13) < 13;
    LW_TRY(
        lw_axis(lw_node_int(c->node, "axis", flattens ? 1 : -1), x.x->rank > 0 ? x.x->rank : 1, &axis, err));
    LW_TRY(lw_tensor_new(&c->out[0], x.x->dtype, x.x->rank, x.x->dim, err));
    if (x.x->count == 0)
        return LW_OK;
    int64_t n = x.x->rank == 0 ? 1 : flattens ? lw_tensor_span(x.x, axis, x.x->rank) : x.x->dim[axis];
    int64_t inner = flattens || x.x->rank == 0 ? 1 : lw_tensor_span(x.x, axis + 1, x.x->rank);
    double unit = fmin((double)UINT32_MAX / (double)n, 0x7fffff);
    for (int i = 0; i < 256; i++)
        table[i] = (uint32_t)lrint(unit * exp((i - 255) * (double)x.scale));
    const uint8_t *from = x.x->data;
    uint8_t *to = c->out[0]->data, flip = x.x->dtype == LW_I8 ? 0x80 : 0;
    uint32_t parts = (uint32_t)fminf(floorf(1 / y.scale), 0xffffff00p0f); /* the largest float below 2^32 */
    for (int64_t r = 0; r < x.x->count / n; r++) {
        const uint8_t *row = from + (r / inner * n) * inner + r % inner;
        uint8_t *out = to + (r / inner * n) * inner + r % inner;
        int most = 0;
        for (int64_t i = 0; i < n; i++) {
            int v = row[i * inner] ^ flip;
            most = v > most ? v : most;
        }
        const uint32_t *shifted = table + 255 - most;
        uint32_t sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += shifted[row[i * inner] ^ flip];
        for (int64_t i = 0; i < n; i++) {
            int64_t q = sum ? ((int64_t)shifted[row[i * inner] ^ flip] * parts + (sum >> 1)) / sum : 0;
            q += y.zero;
            out[i * inner] = (uint8_t)(q > high ? high : q);
        }
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

static lw_status run_qlinear_concat(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *y_zero = lw_in(c, 1);
    quantized y, first;
    int32_t low, high;
    int axis, n = (c->n_in - 2) / 3;
    int64_t dim[LW_MAX_RANK];
    LW_TRY(want_8_bits(y_zero, "the output's zero point", err));
    LW_TRY(quantized_out(c, 0, y_zero->dtype, &y, &low, &high, err));
    if (n < 1 || c->n_in != 2 + 3 * n)
        return lw_fail(err, LW_E_INPUT, "inputs come in threes: tensor, scale, zero point");
    LW_TRY(quantized_in(c, 2, &first, err));
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), first.x->rank, &axis, err));
    memcpy(dim, first.x->dim, sizeof dim);
    dim[axis] = 0;
    for (int i = 0; i < n; i++) {
        const lw_tensor *x = lw_in(c, 2 + 3 * i);
        for (int k = 0; x && k < first.x->rank; k++)
            if (x->rank != first.x->rank || (k != axis && x->dim[k] != dim[k]))
                return lw_fail(err, LW_E_INPUT, "input %d has another shape than the first", i);
        dim[axis] += x ? x->dim[axis] : 0;
    }
    LW_TRY(lw_tensor_new(&c->out[0], y_zero->dtype, first.x->rank, dim, err));
    int64_t outer = lw_tensor_span(first.x, 0, axis),
            inner = lw_tensor_span(first.x, axis + 1, first.x->rank), at = 0;
    for (int i = 0; i < n; i++) {
        quantized x;
        LW_TRY(quantized_in(c, 2 + 3 * i, &x, err));
        uint8_t table[256];
        int32_t x_low, x_high;
        lw_dtype_range(x.x->dtype, &x_low, &x_high);
        bool same = x.scale == y.scale && x.zero == y.zero && x.x->dtype == y_zero->dtype;
        for (int32_t v = x_low; v <= x_high; v++)
            table[v & 255] =
                same ? (uint8_t)v
                     : (uint8_t)lw_quantize(lw_dequantize(v, x.scale, x.zero), y.scale, y.zero, low, high);
        int64_t span = x.x->dim[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t k = 0; k < span; k++)
                ((uint8_t *)c->out[0]->data)[o * dim[axis] * inner + at + k] =
                    table[((const uint8_t *)x.x->data)[o * span + k]];
        at += span;
    }
    return LW_OK;
}

/* ---- refusals at load ---------------------------------------------------------------------------- */

/* What the run checks with the operands that it has, over a constant weight alone. Where neither the type of
 * the data nor its zero point is known, as little as they can be: 128 in magnitude. */
static void data_range(const lw_tensor *zero, lw_dtype *dtype, int32_t *least, int32_t *most)
{
    *dtype = zero ? zero->dtype : LW_I8;
    *least = *most = 0;
    for (int64_t i = 0; zero && i < zero->count; i++) {
        int32_t z = (int32_t)lw_tensor_integer(zero, i);
        *least = i == 0 || z < *least ? z : *least;
        *most = i == 0 || z > *most ? z : *most;
    }
}

static bool is_bytes(const lw_tensor *t)
{
    return t && (t->dtype == LW_I8 || t->dtype == LW_U8);
}

/* Weight, its zero point and the data's zero point at these inputs (-1: the data is uint8 of any zero point).
 */
static lw_status check_product(const lw_op_call *c, int at_b, int at_b_zero, int at_a_zero, bool transposes,
                               lw_error *err)
{
    const lw_tensor *b = lw_in(c, at_b), *b_zero = lw_in(c, at_b_zero), *a_zero = lw_in(c, at_a_zero);
    if (!is_bytes(b) || b->rank != 2)
        return LW_OK;
    int64_t depth = b->dim[transposes ? 1 : 0], n = b->dim[transposes ? 0 : 1];
    int32_t *zeros, least, most;
    bool one;
    lw_dtype dtype;
    data_range(a_zero && is_bytes(a_zero) ? a_zero : NULL, &dtype, &least, &most);
    LW_TRY(zero_list(b_zero, b->dtype, n, "B's zero point", &zeros, &one, err));
    lw_status status = check_depth(b, depth, n, transposes ? 1 : n, transposes ? depth : 1, zeros, one, dtype,
                                   least, most, err);
    free(zeros);
    return status;
}

static lw_status check_matmul_integer(const lw_op_call *c, lw_error *err)
{
    return check_product(c, 1, 3, 2, false, err);
}

static lw_status check_qlinear_matmul(const lw_op_call *c, lw_error *err)
{
    return check_product(c, 3, 5, 2, false, err);
}

static lw_status check_matmul_integer_to_float(const lw_op_call *c, lw_error *err)
{
    return check_product(c, 1, 5, 4, false, err);
}

static lw_status check_dynamic_quantize_matmul(const lw_op_call *c, lw_error *err)
{
    return check_product(c, 1, 3, 15, false, err);
}

static lw_status check_qgemm(const lw_op_call *c, lw_error *err)
{
    return check_product(c, 3, 5, 2, lw_node_int(c->node, "transB", 0) != 0, err);
}

static lw_status check_constant_convolution(const lw_op_call *c, int at_w, int at_w_zero, int at_x_zero,
                                            int at_bias, lw_error *err)
{
    const lw_tensor *w = lw_in(c, at_w), *x_zero = lw_in(c, at_x_zero), *bias = lw_in(c, at_bias);
    if (!is_bytes(w) || w->rank < 3)
        return LW_OK;
    convolution v = {.outputs = w->dim[0]};
    int32_t *zeros, least, most;
    bool one;
    lw_dtype dtype;
    data_range(is_bytes(x_zero) ? x_zero : NULL, &dtype, &least, &most);
    if (bias && (bias->dtype != LW_I32 || bias->count != v.outputs))
        return LW_OK; /* the run says so */
    LW_TRY(zero_list(lw_in(c, at_w_zero), w->dtype, v.outputs, "the weight's zero point", &zeros, &one, err));
    lw_status status = check_convolution(&v, dtype, least, w, zeros, one, bias, err);
    free(zeros);
    return status;
}

static lw_status check_conv_integer(const lw_op_call *c, lw_error *err)
{
    return check_constant_convolution(c, 1, 3, 2, 15, err);
}

static lw_status check_qlinear_conv(const lw_op_call *c, lw_error *err)
{
    return check_constant_convolution(c, 3, 5, 2, 8, err);
}

const lw_op lw_ops_quant[] = {
    {"", "QuantizeLinear", 10, 0, 2, 3, run_quantize, "elementwise", NULL},
    {"", "DequantizeLinear", 10, 0, 2, 3, run_dequantize, "elementwise", NULL},
    {"", "DynamicQuantizeLinear", 11, 0, 1, 1, run_dynamic_quantize, "elementwise", NULL},
    {"", "MatMulInteger", 10, 0, 2, 4, run_matmul_integer, "int8 product", check_matmul_integer},
    {"", "ConvInteger", 10, 0, 2, 4, run_conv_integer, "int8 convolution", check_conv_integer},
    {"", "QLinearMatMul", 10, 0, 8, 8, run_qlinear_matmul, "int8 product", check_qlinear_matmul},
    {"", "QLinearConv", 10, 0, 8, 9, run_qlinear_conv, "int8 convolution", check_qlinear_conv},
    {microsoft, "QuantizeLinear", 1, 0, 2, 3, run_quantize, "elementwise", NULL},
    {microsoft, "DequantizeLinear", 1, 0, 2, 3, run_dequantize, "elementwise", NULL},
    {microsoft, "MatMulIntegerToFloat", 1, 0, 4, 7, run_matmul_integer_to_float, "int8 product",
     check_matmul_integer_to_float},
    {microsoft, "DynamicQuantizeMatMul", 1, 0, 3, 5, run_dynamic_quantize_matmul, "int8 product",
     check_dynamic_quantize_matmul},
    {"lanewise", "DynamicRowsMatMul", 1, 0, 3, 5, run_dynamic_rows_matmul, "int8 product", NULL},
    {microsoft, "QGemm", 1, 0, 6, 9, run_qgemm, "int8 product", check_qgemm},
    {microsoft, "QLinearAdd", 1, 0, 7, 8, run_qlinear_add, "elementwise", NULL},
    {microsoft, "QLinearMul", 1, 0, 7, 8, run_qlinear_mul, "elementwise", NULL},
    {microsoft, "QLinearSigmoid", 1, 0, 4, 5, run_qlinear_sigmoid, "table", NULL},
    {microsoft, "QLinearLeakyRelu", 1, 0, 4, 5, run_qlinear_leaky_relu, "table", NULL},
    {microsoft, "QLinearGlobalAveragePool", 1, 0, 4, 5, run_qlinear_global_average_pool, "pooling", NULL},
    {microsoft, "QLinearAveragePool", 1, 0, 4, 5, run_qlinear_average_pool, "pooling", NULL},
    {microsoft, "QLinearSoftmax", 1, 0, 5, 5, run_qlinear_softmax, "table", NULL},
    {microsoft, "QLinearWhere", 1, 0, 9, 9, run_qlinear_where, "table", NULL},
    {microsoft, "QLinearConcat", 1, 0, 5, 1 << 20, run_qlinear_concat, "table", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
