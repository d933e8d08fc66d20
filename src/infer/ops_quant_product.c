/* ops_quant_product.c - products of quantized matrices: ONNX's MatMulInteger and QLinearMatMul, ONNX
 * Runtime's forms with float results and QGemm. */
#include <stdlib.h>

#include "common/fail.h"
#include "infer/op.h"
#include "infer/ops_quant.h"
#include "infer/product.h"
#include "infer/quant.h"

static const char microsoft[] = "com.microsoft";

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
    LW_TRY(lw_want_8_bits(a, "A", err));
    LW_TRY(lw_want_8_bits(b, "B", err));
    LW_TRY_END(lw_quant_zeros(a_zero, a->dtype, p->m, "A's zero point", &za, &one_a, err));
    LW_TRY_END(lw_quant_zeros(b_zero, b->dtype, p->n, "B's zero point", &zb, &one_b, err));
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
    LW_TRY(lw_quant_scale(lw_in(c, 6), "the output's scale", &y_scale, err));
    LW_TRY(lw_want_8_bits(y_zero, "the output's zero point", err));
    LW_TRY(lw_quant_zero(y_zero, y_zero->dtype, "the output's zero point", &result.zero, err));
    LW_TRY(lw_quant_multipliers(lw_in(c, 1), lw_in(c, 4), y_scale, p.n, "B's scale", &m,
                                &result.one_multiplier, err));
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
    LW_TRY(lw_quant_check_scales(b_scale, "B's scale", err));
    if (b_scale->count != 1 && b_scale->count != p.n)
        return lw_fail(err, LW_E_INPUT, "B's scale has %lld values where 1 or %lld belong",
                       (long long)b_scale->count, (long long)p.n);
    LW_TRY(lw_want_bias(bias, LW_F32, p.n, err));
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
    LW_TRY(lw_quant_scale(lw_in(c, 2), "A's scale", &a_scale, err));
    return product_to_float(c, &o, a_scale, lw_in(c, 3), lw_in(c, 6), err);
}

static lw_status run_dynamic_quantize_matmul(const lw_op_call *c, lw_error *err)
{
    lw_tensor *a = NULL, *zero = NULL;
    float scale;
    uint8_t z;
    lw_status status = lw_quant_dynamic(lw_in(c, 0), &a, &scale, &z, err);
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
    LW_TRY(lw_want_8_bits(b, "B", err));
    LW_TRY(lw_quant_check_scales(b_scale, "B's scale", err));
    if (x->rank < 1 || b->rank != 2)
        return lw_fail(err, LW_E_INPUT, "B must have two dimensions");
    LW_TRY(lw_product_of(&p, x, b, err));
    if (bias)
        LW_TRY(lw_want(bias, LW_F32, "the bias", err));
    if ((b_scale->count != 1 && b_scale->count != p.n) || (bias && bias->count != p.n))
        return lw_fail(err, LW_E_INPUT, "B's scale and the bias must have %lld values", (long long)p.n);
    LW_TRY(lw_quant_zeros(b_zero, b->dtype, p.n, "B's zero point", &zb, &one, err));
    LW_TRY_END(check_depth(b, p.k, p.n, p.n, 1, zb, one, LW_U8, 0, 255, err));
    int64_t rows = p.batches * p.m;
    LW_TRY_END(lw_room(&za, rows, 1, sizeof *za, err));
    LW_TRY_END(lw_room(&scale, rows, 1, sizeof *scale, err));
    LW_TRY_END(lw_room(&bytes, rows, p.k, 1, err));
    for (int64_t i = 0; i < rows; i++) {
        lw_tensor row = {.count = p.k, .data = (float *)x->data + i * p.k};
        float least, largest;
        uint8_t z;
        lw_quant_extremes(&row, &least, &largest);
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
        return lw_fail(err, LW_E_INPUT, "A has %d dimensions: there must be two", t->rank);
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
    LW_TRY(lw_want_8_bits(lw_in(c, 0), "A", err));
    LW_TRY(lw_want_8_bits(b, "B", err));
    if (b->rank != 2)
        return lw_fail(err, LW_E_INPUT, "B has %d dimensions: there must be two", b->rank);
    LW_TRY_END(transposed(lw_in(c, 0), lw_node_int(c->node, "transA", 0) != 0, &a, err));
    lw_tensor shape = *b; /* as it enters the product */
    if (transposes) {
        shape.dim[0] = b->dim[1];
        shape.dim[1] = b->dim[0];
    }
    LW_TRY_END(lw_product_of(&p, a, &shape, err));
    if (!to_float) {
        LW_TRY_END(lw_quant_scale(lw_in(c, 7), "the output's scale", &y_scale, err));
        LW_TRY_END(lw_want_8_bits(y_zero, "the output's zero point", err));
        LW_TRY_END(lw_quant_zero(y_zero, y_zero->dtype, "the output's zero point", &result.zero, err));
        lw_dtype_range(y_zero->dtype, &result.low, &result.high);
    }
    LW_TRY_END(lw_quant_multipliers(lw_in(c, 1), lw_in(c, 4), y_scale, p.n, "B's scale", &m,
                                    &result.one_multiplier, err));
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

/* ---- refusals at load: what the run checks, over a constant weight alone --------------------------- */

/* Weight, its zero point and the data's zero point at these inputs (-1: the data is uint8 of any zero point).
 */
static lw_status check_product(const lw_op_call *c, int at_b, int at_b_zero, int at_a_zero, bool transposes,
                               lw_error *err)
{
    const lw_tensor *b = lw_in(c, at_b), *b_zero = lw_in(c, at_b_zero), *a_zero = lw_in(c, at_a_zero);
    if (!lw_is_8_bits(b) || b->rank != 2)
        return LW_OK;
    int64_t depth = b->dim[transposes ? 1 : 0], n = b->dim[transposes ? 0 : 1];
    int32_t *zeros, least, most;
    bool one;
    lw_dtype dtype;
    lw_quant_data_range(a_zero && lw_is_8_bits(a_zero) ? a_zero : NULL, &dtype, &least, &most);
    LW_TRY(lw_quant_zeros(b_zero, b->dtype, n, "B's zero point", &zeros, &one, err));
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

const lw_op lw_ops_quant_product[] = {
    {"", "MatMulInteger", 10, 0, 2, 4, run_matmul_integer, "int8 product", check_matmul_integer},
    {"", "QLinearMatMul", 10, 0, 8, 8, run_qlinear_matmul, "int8 product", check_qlinear_matmul},
    {microsoft, "MatMulIntegerToFloat", 1, 0, 4, 7, run_matmul_integer_to_float, "int8 product",
     check_matmul_integer_to_float},
    {microsoft, "DynamicQuantizeMatMul", 1, 0, 3, 5, run_dynamic_quantize_matmul, "int8 product",
     check_dynamic_quantize_matmul},
    {"lanewise", "DynamicRowsMatMul", 1, 0, 3, 5, run_dynamic_rows_matmul, "int8 product", NULL},
    {microsoft, "QGemm", 1, 0, 6, 9, run_qgemm, "int8 product", check_qgemm},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
