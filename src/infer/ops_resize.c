/* ops_resize.c - Resize: nearest and linear, in any dimensions, as ONNX defines both; bytes by way of floats.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"

typedef enum place { HALF_PIXEL, HALF_PIXEL_SYMMETRIC, PYTORCH, ALIGN_CORNERS, ASYMMETRIC, PLACES } place;
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, ROUNDINGS } rounding;

static const char *const places[PLACES] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                           "align_corners", "asymmetric"};
static const char *const roundings[ROUNDINGS] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

static int one_of(const char *text, const char *const *names, int n)
{
    int i = 0;
    while (i < n && strcmp(text, names[i]) != 0)
        i++;
    return i;
}

/* Where output element i of a dimension lies in the input. */
static double source_of(place how, int64_t i, int64_t in, int64_t out, double scale)
{
    double x = (double)i;
    switch (how) {
    case HALF_PIXEL:
        return (x + 0.5) / scale - 0.5;
    case HALF_PIXEL_SYMMETRIC: {
        double adjustment = (double)out / (scale * (double)in), center = (double)in / 2;
        return center * (1 - adjustment) + (x + 0.5) / scale - 0.5;
    }
    case PYTORCH:
        return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case ALIGN_CORNERS:
        return out > 1 ? x * (double)(in - 1) / (scale * (double)in - 1) : 0; /* a size that is not rounded */
    default:
        return x / scale;
    }
}

static int64_t nearest_of(rounding how, double x)
{
    switch (how) {
    case PREFER_FLOOR:
        return (int64_t)ceil(x - 0.5);
    case PREFER_CEIL:
        return (int64_t)floor(x + 0.5);
    case FLOOR:
        return (int64_t)floor(x);
    default:
        return (int64_t)ceil(x);
    }
}

/* The two input elements that output element i of a dimension lies between, and the second one's share. */
typedef struct between {
    int64_t low, high;
    float share;
} between;

static int64_t clamped(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

/* One dimension at a time, as x[outer][in][inner] to y[outer][out][inner]. */
static void resize_floats(const float *x, float *y, int64_t outer, int64_t in, int64_t out, int64_t inner,
                          const between *at)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < out; i++) {
            const float *low = x + (o * in + at[i].low) * inner, *high = x + (o * in + at[i].high) * inner;
            float *to = y + (o * out + i) * inner, share = at[i].share;
            for (int64_t k = 0; k < inner; k++)
                to[k] = share == 0 ? low[k] : low[k] * (1 - share) + high[k] * share;
        }
}

static void resize_elements(const char *x, char *y, int64_t outer, int64_t in, int64_t out, size_t inner,
                            const between *at)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < out; i++)
            memcpy(y + (size_t)(o * out + i) * inner, x + (size_t)(o * in + at[i].low) * inner, inner);
}

/* Sizes and scales of every dimension of x from the inputs scales or sizes. */
static lw_status sizes_of(const lw_op_call *c, const lw_tensor *x, int64_t dim[LW_MAX_RANK],
                          double scale[LW_MAX_RANK], lw_error *err)
{
    bool old = c->node->opset < 11; /* then scales come second, and there are no sizes */
    const lw_tensor *scales = lw_in(c, old ? 1 : 2), *sizes = old ? NULL : lw_in(c, 3);
    bool by_scale = scales && scales->count > 0;
    const lw_tensor *given = by_scale ? scales : sizes;
    int64_t n_axes = 0;
    const int64_t *axes = lw_node_ints(c->node, "axes", &n_axes);
    if (!given || given->dtype != (by_scale ? LW_F32 : LW_I64))
        return lw_fail(err, LW_E_INPUT, "neither float scales nor int64 sizes are given");
    if (given->count != (n_axes ? n_axes : x->rank))
        return lw_fail(err, LW_E_INPUT, "%lld scales or sizes for %lld dimensions", (long long)given->count,
                       (long long)(n_axes ? n_axes : x->rank));
    if (strcmp(lw_node_string(c->node, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return lw_fail(err, LW_E_INPUT, "keep_aspect_ratio_policy is not supported");
    for (int k = 0; k < x->rank; k++) {
        dim[k] = x->dim[k];
        scale[k] = 1;
    }
    for (int i = 0; i < (int)given->count; i++) {
        int k = i;
        if (n_axes)
            LW_TRY(lw_axis(axes[i], x->rank, &k, err));
        double s = by_scale ? ((const float *)given->data)[i] : 1;
        double size = by_scale ? floor((double)x->dim[k] * s) : (double)((const int64_t *)given->data)[i];
        if (!(s > 0) || !(size >= 0 && size < 1e9) || (size > 0 && x->dim[k] == 0))
            return lw_fail(err, LW_E_INPUT, "dimension %d of %lld cannot become %g", k, (long long)x->dim[k],
                           by_scale ? s : size);
        dim[k] = (int64_t)size;
        scale[k] = by_scale ? s : x->dim[k] ? size / (double)x->dim[k] : 1;
    }
    return LW_OK;
}

static lw_status run_resize(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    bool linear = strcmp(lw_node_string(c->node, "mode", "nearest"), "linear") == 0;
    const char *mode = lw_node_string(c->node, "mode", "nearest");
    int how = one_of(lw_node_string(c->node, "coordinate_transformation_mode",
                                    c->node->opset < 11 ? "asymmetric" : "half_pixel"),
                     places, PLACES);
    int rule = one_of(lw_node_string(c->node, "nearest_mode", c->node->opset < 11 ? "floor" : *roundings),
                      roundings, ROUNDINGS);
    int64_t dim[LW_MAX_RANK];
    double scale[LW_MAX_RANK];
    if (!x)
        return lw_fail(err, LW_E_INPUT, "an input is missing");
    if (!linear && strcmp(mode, "nearest") != 0)
        return lw_fail(err, LW_E_INPUT, "mode %.20s is not supported", mode);
    if (how == PLACES || rule == ROUNDINGS || lw_node_int(c->node, "antialias", 0))
        return lw_fail(err, LW_E_INPUT,
                       "antialias, tf_crop_and_resize or an unknown rounding is not supported");
    bool bytes = linear && (x->dtype == LW_I8 || x->dtype == LW_U8);
    if (linear && !bytes)
        LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(sizes_of(c, x, dim, scale, err));
    lw_tensor *now = NULL;
    lw_status status = LW_OK;
    if (!bytes)
        now = lw_tensor_retain((lw_tensor *)x);
    else if ((status = lw_tensor_new(&now, LW_F32, x->rank, x->dim, err)) == LW_OK)
        for (int64_t i = 0; i < x->count; i++)
            ((float *)now->data)[i] = (float)lw_tensor_integer(x, i);
    for (int k = 0; k < x->rank && status == LW_OK; k++) {
        int64_t in = x->dim[k], out = dim[k];
        if (in == out && scale[k] == 1)
            continue;
        int64_t next_dim[LW_MAX_RANK];
        memcpy(next_dim, now->dim, (size_t)x->rank * sizeof *next_dim);
        next_dim[k] = out;
        lw_tensor *next = NULL;
        between *at = malloc((size_t)out * sizeof *at + 1);
        status = at ? lw_tensor_new(&next, now->dtype, x->rank, next_dim, err)
                    : lw_fail_memory(err, (size_t)out * sizeof *at);
        if (status == LW_OK) {
            next->bits = x->bits;
            for (int64_t i = 0; i < out; i++) {
                double from = source_of((place)how, i, in, out, scale[k]);
                from = from < -2 ? -2 : from < (double)in + 2 ? from : (double)in + 2;
                double low = floor(from);
                at[i] = linear ? (between){clamped((int64_t)low, in), clamped((int64_t)low + 1, in),
                                           (float)(from - low)}
                               : (between){clamped(nearest_of((rounding)rule, from), in), 0, 0};
            }
            int64_t outer = lw_tensor_span(now, 0, k), inner = lw_tensor_span(now, k + 1, x->rank);
            if (linear)
                resize_floats(now->data, next->data, outer, in, out, inner, at);
            else
                resize_elements(now->data, next->data, outer, in, out,
                                (size_t)inner * (size_t)lw_dtype_size(x->dtype), at);
        }
        free(at);
        lw_tensor_release(now);
        now = next;
    }
    if (status == LW_OK && bytes &&
        (status = lw_tensor_new(&c->out[0], x->dtype, x->rank, dim, err)) == LW_OK)
        for (int64_t i = 0; i < now->count; i++) /* toward zero, as ONNX Runtime does */
            ((uint8_t *)c->out[0]->data)[i] = (uint8_t)(int)((const float *)now->data)[i];
    if (status == LW_OK && !bytes)
        c->out[0] = now;
    else
        lw_tensor_release(now);
    return status;
}

const lw_op lw_ops_resize[] = {
    {"", "Resize", 10, 0, 2, 4, run_resize, "copy", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
