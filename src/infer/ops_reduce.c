/* ops_reduce.c - softmax, normalizations and reductions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"

/* ---- softmax ------------------------------------------------------------------------------------- */

/* Rows of n contiguous floats; where the axis is not the last one, elements are `inner` apart and are brought
 * together in a buffer. */
static lw_status softmax(const lw_op_call *c, bool logarithm, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int axis;
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    bool flattens = c->node->opset < 13; /* up to opset 12 all dimensions from the axis on are one */
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", flattens ? 1 : -1), x->rank > 0 ? x->rank : 1, &axis, err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, x->rank, x->dim, err));
    int64_t n = x->rank == 0 ? 1 : flattens ? lw_tensor_span(x, axis, x->rank) : x->dim[axis];
    int64_t inner = flattens || x->rank == 0 ? 1 : lw_tensor_span(x, axis + 1, x->rank);
    if (x->count == 0)
        return LW_OK;
    int64_t rows = x->count / n;
    const float *from = x->data;
    float *to = c->out[0]->data, *packed = NULL;
    if (inner > 1) {
        packed = malloc((size_t)x->count * sizeof *packed);
        if (!packed)
            return lw_fail_memory(err, (size_t)x->count * sizeof *packed);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < n; i++)
                packed[r * n + i] = from[(r / inner * n + i) * inner + r % inner];
        from = packed;
    }
    float *result = packed ? packed : to;
    lw_status status = LW_OK;
    if (logarithm)
        for (int64_t r = 0; r < rows; r++) {
            float largest = -INFINITY;
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                largest = from[r * n + i] > largest ? from[r * n + i] : largest;
            for (int64_t i = 0; i < n; i++)
                sum += exp((double)from[r * n + i] - largest);
            for (int64_t i = 0; i < n; i++)
                result[r * n + i] = (float)((double)from[r * n + i] - largest - log(sum));
        }
    else
        status = c->backend->softmax(c->pool, rows, n, from, result, err);
    for (int64_t r = 0; packed && r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            to[(r / inner * n + i) * inner + r % inner] = packed[r * n + i];
    free(packed);
    return status;
}

static lw_status run_softmax(const lw_op_call *c, lw_error *err)
{
    return softmax(c, false, err);
}

static lw_status run_log_softmax(const lw_op_call *c, lw_error *err)
{
    return softmax(c, true, err);
}

/* ---- normalization ------------------------------------------------------------------------------- */

static lw_status layer_norm(const lw_op_call *c, const lw_tensor *x, const lw_tensor *scale,
                            const lw_tensor *bias, int axis, float epsilon, lw_tensor **mean,
                            lw_tensor **inverse, lw_error *err)
{
    int64_t n = lw_tensor_span(x, axis, x->rank), dim[LW_MAX_RANK];
    LW_TRY(lw_want(scale, LW_F32, "the scale", err));
    if (bias)
        LW_TRY(lw_want(bias, LW_F32, "the bias", err));
    if (scale->count != n || (bias && bias->count != n))
        return lw_fail(err, LW_E_INPUT, "scale and bias must have %lld values", (long long)n);
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, x->rank, x->dim, err));
    for (int k = 0; k < x->rank; k++)
        dim[k] = k < axis ? x->dim[k] : 1;
    if (mean)
        LW_TRY(lw_tensor_new(mean, LW_F32, x->rank, dim, err));
    if (inverse)
        LW_TRY(lw_tensor_new(inverse, LW_F32, x->rank, dim, err));
    return c->backend->layer_norm(c->pool, n ? x->count / n : 0, n, x->data, scale->data,
                                  bias ? bias->data : NULL, epsilon, c->out[0]->data,
                                  mean ? (*mean)->data : NULL, inverse ? (*inverse)->data : NULL, err);
}

static lw_status run_layer_norm(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int axis;
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", -1), x->rank, &axis, err));
    return layer_norm(c, x, lw_in(c, 1), lw_in(c, 2), axis, lw_node_float(c->node, "epsilon", 1e-5f),
                      c->n_out > 1 ? &c->out[1] : NULL, c->n_out > 2 ? &c->out[2] : NULL, err);
}

/* com.microsoft: layer normalization of input + skip (+ bias). */
static lw_status run_skip_layer_norm(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *skip = lw_in(c, 1), *bias = lw_in(c, 4);
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(lw_want(skip, LW_F32, "the skip input", err));
    if (x->rank < 1 || x->count != skip->count ||
        (bias && (bias->dtype != LW_F32 || bias->count != x->dim[x->rank - 1])))
        return lw_fail(err, LW_E_INPUT, "input, skip and bias do not agree");
    lw_tensor *sum;
    LW_TRY(lw_tensor_new(&sum, LW_F32, x->rank, x->dim, err));
    int64_t n = x->dim[x->rank - 1];
    for (int64_t i = 0; i < x->count; i++)
        ((float *)sum->data)[i] = ((const float *)x->data)[i] + ((const float *)skip->data)[i] +
                                  (bias ? ((const float *)bias->data)[i % n] : 0);
    lw_status status = layer_norm(c, sum, lw_in(c, 2), lw_in(c, 3), x->rank - 1,
                                  lw_node_float(c->node, "epsilon", 1e-12f), NULL, NULL, err);
    if (status == LW_OK && c->n_out > 3)
        c->out[3] = sum;
    else
        lw_tensor_release(sum);
    return status;
}

static lw_status want_channels(const lw_tensor *t, int64_t n, const char *what, lw_error *err)
{
    LW_TRY(lw_want(t, LW_F32, what, err));
    if (t->count != n)
        return lw_fail(err, LW_E_INPUT, "%s has %lld values where %lld belong", what, (long long)t->count,
                       (long long)n);
    return LW_OK;
}

static lw_status run_batch_norm(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    if (x->rank < 2 || lw_node_int(c->node, "training_mode", 0))
        return lw_fail(err, LW_E_INPUT,
                       "batch normalization is supported for inference, on batch x channels x ...");
    int64_t channels = x->dim[1], inner = lw_tensor_span(x, 2, x->rank);
    const float *p[4];
    static const char *const what[4] = {"the scale", "the bias", "the mean", "the variance"};
    for (int k = 0; k < 4; k++) {
        LW_TRY(want_channels(lw_in(c, 1 + k), channels, what[k], err));
        p[k] = lw_in(c, 1 + k)->data;
    }
    float epsilon = lw_node_float(c->node, "epsilon", 1e-5f);
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, x->rank, x->dim, err));
    for (int64_t i = 0; i < x->count; i++) {
        int64_t channel = i / inner % channels;
        float factor = p[0][channel] / sqrtf(p[3][channel] + epsilon);
        ((float *)c->out[0]->data)[i] =
            (((const float *)x->data)[i] - p[2][channel]) * factor + p[1][channel];
    }
    return LW_OK;
}

static lw_status run_instance_norm(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *scale = lw_in(c, 1), *bias = lw_in(c, 2);
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    if (x->rank < 3)
        return lw_fail(err, LW_E_INPUT, "the input has %d dimensions", x->rank);
    int64_t channels = x->dim[1], n = lw_tensor_span(x, 2, x->rank);
    LW_TRY(want_channels(scale, channels, "the scale", err));
    LW_TRY(want_channels(bias, channels, "the bias", err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, x->rank, x->dim, err));
    float epsilon = lw_node_float(c->node, "epsilon", 1e-5f);
    for (int64_t r = 0; r < x->dim[0] * channels; r++) {
        const float *from = (const float *)x->data + r * n;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            sum += from[i];
        double mean = sum / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += (from[i] - mean) * (from[i] - mean);
        double factor = ((const float *)scale->data)[r % channels] / sqrt(squares / (double)n + epsilon);
        for (int64_t i = 0; i < n; i++)
            ((float *)c->out[0]->data)[r * n + i] =
                (float)((from[i] - mean) * factor + ((const float *)bias->data)[r % channels]);
    }
    return LW_OK;
}

/* ---- reductions ---------------------------------------------------------------------------------- */

typedef enum reduction { R_SUM, R_MEAN, R_MAX, R_MIN, R_PRODUCT, R_SQUARES, R_L1, R_L2 } reduction;

static void reduce_real(reduction how, double v, double *s)
{
    switch (how) {
    case R_MAX:
        *s = v > *s ? v : *s;
        break;
    case R_MIN:
        *s = v < *s ? v : *s;
        break;
    case R_PRODUCT:
        *s *= v;
        break;
    case R_SQUARES:
    case R_L2:
        *s += v * v;
        break;
    case R_L1:
        *s += fabs(v);
        break;
    default:
        *s += v;
    }
}

/* Exact, and wrapping where the sum leaves int64 (two's complement). */
static void reduce_integer(reduction how, int64_t v, int64_t *s)
{
    uint64_t sum = (uint64_t)*s, u = (uint64_t)v;
    switch (how) {
    case R_MAX:
        *s = v > *s ? v : *s;
        break;
    case R_MIN:
        *s = v < *s ? v : *s;
        break;
    case R_PRODUCT:
        *s = (int64_t)(sum * u);
        break;
    case R_SQUARES:
        *s = (int64_t)(sum + u * u);
        break;
    case R_L1:
        *s = (int64_t)(sum + (v < 0 ? 0 - u : u));
        break;
    default:
        *s = (int64_t)(sum + u);
    }
}

/* What an extreme of nothing is: the other end of the type. */
static int64_t end_of(lw_dtype dtype, bool most)
{
    switch (dtype) {
    case LW_I64:
        return most ? INT64_MAX : INT64_MIN;
    case LW_I32:
        return most ? INT32_MAX : INT32_MIN;
    case LW_I8:
        return most ? INT8_MAX : INT8_MIN;
    default:
        return !most ? 0 : dtype == LW_BOOL ? 1 : UINT8_MAX;
    }
}

static lw_status reduce(const lw_op_call *c, reduction how, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int64_t axes[LW_MAX_RANK], dim[LW_MAX_RANK], kept[LW_MAX_RANK], own[LW_MAX_RANK];
    bool reduced[LW_MAX_RANK] = {false}, keep = lw_node_int(c->node, "keepdims", 1) != 0;
    int n, rank = 0;
    if (!x || (x->dtype != LW_F32 && x->dtype != LW_I64 && x->dtype != LW_I32 && x->dtype != LW_F64 &&
               !((how == R_MAX || how == R_MIN) &&
                 (x->dtype == LW_I8 || x->dtype == LW_U8 || x->dtype == LW_BOOL))))
        return lw_fail(err, LW_E_INPUT, "inputs of this type are not supported");
    LW_TRY(lw_int_list(c, 1, "axes", axes, LW_MAX_RANK, &n, err));
    if (n == 0 && lw_node_int(c->node, "noop_with_empty_axes", 0)) {
        c->out[0] = lw_tensor_retain((lw_tensor *)x);
        return LW_OK;
    }
    for (int k = 0; k < x->rank; k++)
        reduced[k] = n == 0;
    for (int i = 0; i < n; i++) {
        int axis;
        LW_TRY(lw_axis(axes[i], x->rank, &axis, err));
        reduced[axis] = true;
    }
    int64_t number = 1, out_step = 1;
    for (int k = 0; k < x->rank; k++) {
        kept[k] = reduced[k] ? 1 : x->dim[k];
        number *= reduced[k] ? x->dim[k] : 1;
        if (keep || !reduced[k])
            dim[rank++] = kept[k];
    }
    for (int k = x->rank - 1; k >= 0; k--) { /* where an element of x goes */
        own[k] = reduced[k] ? 0 : out_step;
        out_step *= kept[k];
    }
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, rank, dim, err));
    int64_t count = c->out[0]->count;
    /* lengths of integers are real on the way */
    bool whole = x->dtype != LW_F32 && x->dtype != LW_F64 && how != R_L2;
    union {
        double real;
        int64_t integer;
    } * sum;
    LW_TRY(lw_room(&sum, count, 1, sizeof *sum, err));
    for (int64_t i = 0; i < count; i++)
        if (whole)
            sum[i].integer = how == R_MAX || how == R_MIN ? end_of(x->dtype, how == R_MIN) : how == R_PRODUCT;
        else
            sum[i].real = how == R_MAX ? -INFINITY : how == R_MIN ? INFINITY : how == R_PRODUCT;
    int64_t index[LW_MAX_RANK] = {0}, at = 0;
    for (int64_t i = 0; i < x->count; i++) {
        if (whole)
            reduce_integer(how, lw_tensor_integer(x, i), &sum[at].integer);
        else
            reduce_real(how, lw_tensor_number(x, i), &sum[at].real);
        for (int k = x->rank - 1; k >= 0; k--) {
            at += own[k];
            if (++index[k] < x->dim[k])
                break;
            at -= own[k] * x->dim[k];
            index[k] = 0;
        }
    }
    for (int64_t i = 0; i < count; i++) {
        double real = whole           ? 0
                      : how == R_MEAN ? sum[i].real / (double)number
                      : how == R_L2   ? sqrt(sum[i].real)
                                      : sum[i].real;
        int64_t integer = !whole                        ? lw_to_integer(real)
                          : how == R_MEAN && number > 0 ? sum[i].integer / number
                                                        : sum[i].integer;
        switch (x->dtype) {
        case LW_F32:
            ((float *)c->out[0]->data)[i] = (float)real;
            break;
        case LW_F64:
            ((double *)c->out[0]->data)[i] = real;
            break;
        case LW_I64:
            ((int64_t *)c->out[0]->data)[i] = integer;
            break;
        case LW_I32: /* wraps, as the wider sum does */
            ((uint32_t *)c->out[0]->data)[i] = (uint32_t)integer;
            break;
        default:
            ((uint8_t *)c->out[0]->data)[i] = (uint8_t)integer;
        }
    }
    free(sum);
    return LW_OK;
}

#define REDUCTION(function, how)                                                                             \
    static lw_status function(const lw_op_call *c, lw_error *err)                                            \
    {                                                                                                        \
        return reduce(c, how, err);                                                                          \
    }
REDUCTION(run_reduce_sum, R_SUM)
REDUCTION(run_reduce_mean, R_MEAN)
REDUCTION(run_reduce_max, R_MAX)
REDUCTION(run_reduce_min, R_MIN)
REDUCTION(run_reduce_product, R_PRODUCT)
REDUCTION(run_reduce_squares, R_SQUARES)
REDUCTION(run_reduce_l1, R_L1)
REDUCTION(run_reduce_l2, R_L2)

static lw_status arg_extreme(const lw_op_call *c, bool is_max, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int axis, rank = 0;
    int64_t dim[LW_MAX_RANK];
    bool keep = lw_node_int(c->node, "keepdims", 1) != 0,
         last = lw_node_int(c->node, "select_last_index", 0) != 0;
    if (!x)
        return lw_fail(err, LW_E_INPUT, "the input is missing");
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), x->rank, &axis, err));
    if (x->dim[axis] == 0)
        return lw_fail(err, LW_E_INPUT, "axis %d is empty", axis);
    for (int k = 0; k < x->rank; k++)
        if (k != axis || keep)
            dim[rank++] = k == axis ? 1 : x->dim[k];
    LW_TRY(lw_tensor_new(&c->out[0], LW_I64, rank, dim, err));
    int64_t n = x->dim[axis], inner = lw_tensor_span(x, axis + 1, x->rank);
    for (int64_t i = 0; i < c->out[0]->count; i++) {
        int64_t base = i / inner * n * inner + i % inner, best = 0;
        for (int64_t k = 1; k < n; k++) {
            double v = lw_tensor_number(x, base + k * inner), w = lw_tensor_number(x, base + best * inner);
            if ((is_max ? v > w : v < w) || (last && v == w))
                best = k;
        }
        ((int64_t *)c->out[0]->data)[i] = best;
    }
    return LW_OK;
}

static lw_status run_arg_max(const lw_op_call *c, lw_error *err)
{
    return arg_extreme(c, true, err);
}

static lw_status run_arg_min(const lw_op_call *c, lw_error *err)
{
    return arg_extreme(c, false, err);
}

const lw_op lw_ops_reduce[] = {
    {"", "Softmax", 1, 0, 1, 1, run_softmax, "softmax", NULL},
    {"", "LogSoftmax", 1, 0, 1, 1, run_log_softmax, "softmax", NULL},
    {"", "LayerNormalization", 17, 0, 2, 3, run_layer_norm, "layer norm", NULL},
    {"com.microsoft", "SkipLayerNormalization", 1, 0, 3, 5, run_skip_layer_norm, "layer norm", NULL},
    {"", "BatchNormalization", 9, 0, 5, 5, run_batch_norm, "elementwise", NULL},
    {"", "InstanceNormalization", 6, 0, 3, 3, run_instance_norm, "layer norm", NULL},
    {"", "ReduceSum", 1, 0, 1, 2, run_reduce_sum, "reduction", NULL},
    {"", "ReduceMean", 1, 0, 1, 2, run_reduce_mean, "reduction", NULL},
    {"", "ReduceMax", 1, 0, 1, 2, run_reduce_max, "reduction", NULL},
    {"", "ReduceMin", 1, 0, 1, 2, run_reduce_min, "reduction", NULL},
    {"", "ReduceProd", 1, 0, 1, 2, run_reduce_product, "reduction", NULL},
    {"", "ReduceSumSquare", 1, 0, 1, 2, run_reduce_squares, "reduction", NULL},
    {"", "ReduceL1", 1, 0, 1, 2, run_reduce_l1, "reduction", NULL},
    {"", "ReduceL2", 1, 0, 1, 2, run_reduce_l2, "reduction", NULL},
    {"", "ArgMax", 1, 0, 1, 1, run_arg_max, "reduction", NULL},
    {"", "ArgMin", 1, 0, 1, 1, run_arg_min, "reduction", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
