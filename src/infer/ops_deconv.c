/* ops_deconv.c - ConvTranspose of floats, 1 to 3 spatial dimensions. */
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"
#include "infer/window.h"

/* Input element i lies under kernel element q at output element i * stride + q * dilation - pad. Unused
 * dimensions come last and have size 1. */
typedef struct spread {
    int dims;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t in_count, out_count, kernel_count;
} spread;

static lw_status spread_of(spread *s, const lw_node *node, const lw_tensor *x, const lw_tensor *weight,
                           lw_error *err)
{
    int64_t pads[6] = {0}, more[3] = {0}, shape[3] = {0}, kernel[3];
    *s = (spread){.dims = x->rank - 2, .in_count = 1, .out_count = 1, .kernel_count = 1};
    for (int k = 0; k < 3; k++)
        s->in[k] = s->out[k] = s->kernel[k] = s->stride[k] = s->dilation[k] = 1;
    for (int k = 0; k < s->dims; k++) {
        s->in[k] = x->dim[2 + k];
        s->kernel[k] = kernel[k] = weight->dim[2 + k];
    }
    LW_TRY(lw_window_list(node, "kernel_shape", s->dims, 1, kernel, err));
    LW_TRY(lw_window_list(node, "strides", s->dims, 1, s->stride, err));
    LW_TRY(lw_window_list(node, "dilations", s->dims, 1, s->dilation, err));
    LW_TRY(lw_window_list(node, "pads", 2 * s->dims, 0, pads, err));
    LW_TRY(lw_window_list(node, "output_padding", s->dims, 0, more, err));
    LW_TRY(lw_window_list(node, "output_shape", s->dims, 1, shape, err));
    bool shaped = shape[0] > 0; /* what is given is at least 1 */
    const char *automatic = lw_node_string(node, "auto_pad", "NOTSET");
    bool upper = strcmp(automatic, "SAME_UPPER") == 0, lower = strcmp(automatic, "SAME_LOWER") == 0;
    if (!upper && !lower && strcmp(automatic, "VALID") != 0 && strcmp(automatic, "NOTSET") != 0)
        return lw_fail(err, LW_E_INPUT, "auto_pad '%s' does not exist", automatic);
    for (int k = 0; k < s->dims; k++) {
        if (kernel[k] != s->kernel[k] || s->kernel[k] < 1)
            return lw_fail(err, LW_E_INPUT, "kernel_shape says %lld, the weight has %lld",
                           (long long)kernel[k], (long long)s->kernel[k]);
        int64_t whole, span;
        if (s->in[k] < 1 || __builtin_mul_overflow(s->stride[k], s->in[k] - 1, &whole) ||
            __builtin_mul_overflow(s->kernel[k] - 1, s->dilation[k], &span) ||
            __builtin_add_overflow(whole, span + 1 + more[k], &whole) || whole > INT32_MAX)
            return lw_fail(err, LW_E_RANGE, "%lld elements of dimension %d spread too far",
                           (long long)s->in[k], 2 + k);
        if (upper || lower || shaped) {
            int64_t out = shaped ? shape[k] : s->in[k] * s->stride[k], all = whole - out;
            all = all < 0 ? 0 : all; /* zeros at the end make up for it */
            s->pad[k] = lower || (shaped && !upper) ? all - all / 2 : all / 2;
            s->out[k] = out;
        } else {
            s->pad[k] = pads[k];
            s->out[k] = whole - pads[k] - pads[s->dims + k];
        }
        if (s->out[k] < 1 || s->out[k] > INT32_MAX)
            return lw_fail(err, LW_E_INPUT, "nothing is left of dimension %d", 2 + k);
    }
    for (int k = 0; k < 3; k++) {
        s->in_count *= s->in[k];
        s->kernel_count *= s->kernel[k];
        if (__builtin_mul_overflow(s->out_count, s->out[k], &s->out_count))
            return lw_fail(err, LW_E_RANGE, "the output has more elements than can be counted");
    }
    return LW_OK;
}

/* One output channel: the input's channels one after the other, each element over its kernel. */
typedef struct deconv_job {
    const spread *s;
    const float *x, *weight, *bias;
    float *y;
    int64_t channels, outputs, groups;
} deconv_job;

static void add_channel(const spread *s, const float *x, const float *w, float *y)
{
    for (int64_t i = 0; i < s->in_count; i++) {
        int64_t at[3] = {i / s->in[2] / s->in[1], i / s->in[2] % s->in[1], i % s->in[2]};
        for (int64_t q = 0; q < s->kernel_count; q++) {
            int64_t of[3] = {q / s->kernel[2] / s->kernel[1], q / s->kernel[2] % s->kernel[1],
                             q % s->kernel[2]};
            int64_t to = 0;
            bool inside = true;
            for (int k = 0; k < 3; k++) {
                int64_t p = at[k] * s->stride[k] + of[k] * s->dilation[k] - s->pad[k];
                inside = inside && p >= 0 && p < s->out[k];
                to = to * s->out[k] + p;
            }
            if (inside)
                y[to] += x[i] * w[q];
        }
    }
}

static lw_status deconv_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const deconv_job *job = arg;
    const spread *s = job->s;
    int64_t image = task / job->outputs, o = task % job->outputs, in = job->channels / job->groups,
            out = job->outputs / job->groups, group = o / out;
    float *y = job->y + task * s->out_count;
    for (int64_t p = 0; p < s->out_count; p++)
        y[p] = job->bias ? job->bias[o] : 0;
    for (int64_t c = group * in; c < (group + 1) * in; c++)
        add_channel(s, job->x + (image * job->channels + c) * s->in_count,
                    job->weight + (c * out + o % out) * s->kernel_count, y);
    return LW_OK;
}

static lw_status run_deconv(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *weight = lw_in(c, 1), *bias = lw_in(c, 2);
    int64_t dim[LW_MAX_RANK], groups = lw_node_int(c->node, "group", 1);
    spread s;
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(lw_want(weight, LW_F32, "the weight", err));
    if (x->rank < 3 || x->rank > 5 || weight->rank != x->rank)
        return lw_fail(err, LW_E_INPUT, "the input has %d dimensions, the weight %d: 3 to 5 are supported",
                       x->rank, weight->rank);
    if (groups < 1 || groups > INT32_MAX || weight->dim[0] != x->dim[1] || x->dim[1] % groups)
        return lw_fail(err, LW_E_INPUT,
                       "%lld input channels in %lld groups and a weight of %lld do not agree",
                       (long long)x->dim[1], (long long)groups, (long long)weight->dim[0]);
    LW_TRY(spread_of(&s, c->node, x, weight, err));
    int64_t outputs;
    if (__builtin_mul_overflow(weight->dim[1], groups, &outputs))
        return lw_fail(err, LW_E_RANGE, "%lld groups of %lld channels", (long long)groups,
                       (long long)weight->dim[1]);
    LW_TRY(lw_want_bias(bias, LW_F32, outputs, err));
    dim[0] = x->dim[0];
    dim[1] = outputs;
    memcpy(dim + 2, s.out, (size_t)s.dims * sizeof *dim);
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, x->rank, dim, err));
    deconv_job job = {&s,        x->data, weight->data, bias ? bias->data : NULL, c->out[0]->data,
                      x->dim[1], outputs, groups};
    return lw_pool_for(c->pool, x->dim[0] * outputs, deconv_task, &job, err);
}

const lw_op lw_ops_deconv[] = {
    {"", "ConvTranspose", 1, 0, 2, 3, run_deconv, "float convolution", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
