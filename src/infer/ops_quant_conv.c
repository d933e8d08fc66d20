/* ops_quant_conv.c - convolutions of quantized tensors: ConvInteger and QLinearConv. */
#include <stdlib.h>

#include "common/fail.h"
#include "infer/op.h"
#include "infer/ops_quant.h"
#include "infer/quant.h"
#include "infer/window.h"

typedef struct convolution {
    lw_window window;
    int64_t batch, channels, outputs, groups;
    int rank;
    int64_t dim[LW_MAX_RANK];
} convolution;

static lw_status convolution_of(convolution *v, const lw_op_call *c, const lw_tensor *x, const lw_tensor *w,
                                lw_error *err)
{
    LW_TRY(lw_want_8_bits(x, "the input", err));
    LW_TRY(lw_want_8_bits(w, "the weight", err));
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
    LW_TRY(lw_quant_zero(lw_in(c, 2), x->dtype, "the input's zero point", &x_zero, err));
    LW_TRY(lw_quant_zeros(lw_in(c, 3), w->dtype, v.outputs, "the weight's zero point", &w_zero, &one, err));
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
    LW_TRY(lw_quant_zero(lw_in(c, 2), x->dtype, "the input's zero point", &x_zero, err));
    LW_TRY(lw_quant_scale(lw_in(c, 6), "the output's scale", &y_scale, err));
    LW_TRY(lw_want_8_bits(y_zero, "the output's zero point", err));
    LW_TRY(lw_quant_zero(y_zero, y_zero->dtype, "the output's zero point", &result.zero, err));
    LW_TRY(lw_want_bias(bias, LW_I32, v.outputs, err));
    result.bias = bias ? bias->data : NULL;
    LW_TRY(lw_quant_zeros(lw_in(c, 5), w->dtype, v.outputs, "the weight's zero point", &w_zero, &one, err));
    LW_TRY_END(check_convolution(&v, x->dtype, x_zero, w, w_zero, one, bias, err));
    LW_TRY_END(lw_quant_multipliers(lw_in(c, 1), lw_in(c, 4), y_scale, v.outputs, "the weight's scale", &m,
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

/* ---- refusals at load: what the run checks, over a constant weight alone --------------------------- */

static lw_status check_constant_convolution(const lw_op_call *c, int at_w, int at_w_zero, int at_x_zero,
                                            int at_bias, lw_error *err)
{
    const lw_tensor *w = lw_in(c, at_w), *x_zero = lw_in(c, at_x_zero), *bias = lw_in(c, at_bias);
    if (!lw_is_8_bits(w) || w->rank < 3)
        return LW_OK;
    convolution v = {.outputs = w->dim[0]};
    int32_t *zeros, least, most;
    bool one;
    lw_dtype dtype;
    lw_quant_data_range(lw_is_8_bits(x_zero) ? x_zero : NULL, &dtype, &least, &most);
    if (bias && (bias->dtype != LW_I32 || bias->count != v.outputs))
        return LW_OK; /* the run says so */
    LW_TRY(lw_quant_zeros(lw_in(c, at_w_zero), w->dtype, v.outputs, "the weight's zero point", &zeros, &one,
                          err));
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

const lw_op lw_ops_quant_conv[] = {
    {"", "ConvInteger", 10, 0, 2, 4, run_conv_integer, "int8 convolution", check_conv_integer},
    {"", "QLinearConv", 10, 0, 8, 9, run_qlinear_conv, "int8 convolution", check_qlinear_conv},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
