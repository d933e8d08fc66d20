/* ops_resize.c - Resize and Upsample: nearest, linear and cubic, in any dimensions, as ONNX defines them;
 * bytes by way of floats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"

typedef enum mode { NEAREST, LINEAR, CUBIC, MODES } mode;
typedef enum place {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH,
    ALIGN_CORNERS,
    ASYMMETRIC,
    CROP,
    HALF_PIXEL_NN,
    PLACES
} place;
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, ROUNDINGS } rounding;

static const char *const modes[MODES] = {"nearest", "linear", "cubic"};
static const char *const places[PLACES] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
    "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
static const char *const roundings[ROUNDINGS] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

static int one_of(const char *text, const char *const *names, int n)
{
    int i = 0;
    while (i < n && strcmp(text, names[i]) != 0)
        i++;
    return i;
}

/* One dimension: its sizes, the exact scale, also as a fraction whose terms are exact (a quotient of sizes
 * would move places that lie on an element to one side of it), and the part of the input that is taken
 * (CROP).
 */
typedef struct axis_of {
    int64_t in, out;
    double scale, over, under, start, end;
} axis_of;

/* Where output element i of a dimension lies in the input. */
static double source_of(place how, int64_t i, const axis_of *d)
{
    double x = (double)i, in = (double)d->in, size = in * d->over / d->under; /* not rounded */
    switch (how) {
    case HALF_PIXEL:
        return (x + 0.5) * d->under / d->over - 0.5;
    case HALF_PIXEL_SYMMETRIC: {
        double adjustment = (double)d->out / size, center = in / 2;
        return center * (1 - adjustment) + (x + 0.5) * d->under / d->over - 0.5;
    }
    case PYTORCH:
        return d->out > 1 ? (x + 0.5) * d->under / d->over - 0.5 : 0;
    case ALIGN_CORNERS:
        return d->out > 1 ? x * (in - 1) / (size - 1) : 0;
    case CROP:
        return d->out > 1 ? d->start * (in - 1) + x * (d->end - d->start) * (in - 1) / (double)(d->out - 1)
                          : 0.5 * (d->start + d->end) * (in - 1);
    case HALF_PIXEL_NN:
        return (x + 0.5) * d->under / d->over;
    default:
        return x * d->under / d->over;
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

static int64_t clamped(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

/* What a node asks for. */
typedef struct resize {
    mode how;
    place where;
    rounding rule;
    bool antialias, exclude_outside;
    double cubic;  /* its coefficient a */
    float outside; /* value beyond the input (CROP) */
    axis_of axis[LW_MAX_RANK];
} resize;

/* The input elements that each output element of a dimension is made of: `taps` of them, the first at
 * `first`, each with a share; places outside the input are those at its ends. Without taps the value is
 * `outside`. */
typedef struct source {
    int64_t first;
    bool beyond;
} source;
typedef struct filter {
    int taps;
    source *from; /* of each output element */
    float *share; /* taps for each */
} filter;

static double cubic_share(double a, double x)
{
    x = fabs(x);
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* How far a filter reaches on each side: stretched where it shall smooth what is left out. */
static double reach_of(const resize *r, const axis_of *d)
{
    double scale = r->antialias && d->scale < 1 ? d->scale : 1;
    return (r->how == CUBIC ? 2 : 1) / scale;
}

static double part_of(const resize *r, const axis_of *d, int64_t element, double at)
{
    double x = ((double)element - at) * (r->antialias && d->scale < 1 ? d->scale : 1);
    if (r->exclude_outside && (element < 0 || element >= d->in))
        return 0;
    return r->how == CUBIC ? cubic_share(r->cubic, x) : fabs(x) < 1 ? 1 - fabs(x) : 0;
}

static void make_shares(const resize *r, const axis_of *d, double at, filter *f, int64_t i)
{
    float *share = f->share + i * f->taps;
    int64_t first = (int64_t)floor(at) - f->taps / 2 + 1;
    double sum = 0;
    f->from[i].first = first;
    if (r->how == LINEAR && f->taps == 2) { /* as ONNX Runtime: the shares are floats that sum to 1 */
        share[1] = (float)(at - floor(at));
        share[0] = 1 - share[1];
        return;
    }
    for (int t = 0; t < f->taps; t++)
        sum += part_of(r, d, first + t, at);
    for (int t = 0; t < f->taps; t++)
        share[t] = (float)(part_of(r, d, first + t, at) / (r->antialias || r->exclude_outside ? sum : 1));
}

enum { MOST_TAPS = 1 << 12 };

static lw_status make_filter(const resize *r, const axis_of *d, filter *f, lw_error *err)
{
    double reach = r->how == NEAREST ? 0.5 : ceil(reach_of(r, d));
    if (reach > MOST_TAPS / 2)
        return lw_fail(err, LW_E_INPUT, "a scale of %g with antialias is not supported", d->scale);
    f->taps = (int)(2 * reach);
    LW_TRY(lw_room(&f->from, d->out, 1, sizeof *f->from, err));
    LW_TRY(lw_room(&f->share, d->out, f->taps, sizeof *f->share, err));
    for (int64_t i = 0; i < d->out; i++) {
        double at = source_of(r->where, i, d);
        f->from[i].beyond = r->where == CROP && (at < 0 || at > (double)d->in - 1);
        at = at < -2 ? -2 : at < (double)d->in + 2 ? at : (double)d->in + 2;
        if (r->how == NEAREST)
            f->from[i].first = clamped(nearest_of(r->rule, at), d->in);
        else
            make_shares(r, d, at, f, i);
    }
    return LW_OK;
}

/* One dimension at a time, as x[outer][in][inner] to y[outer][out][inner]. */
static void resize_floats(const float *x, float *y, int64_t outer, const axis_of *d, int64_t inner,
                          const filter *f, float outside)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < d->out; i++) {
            float *to = y + (o * d->out + i) * inner;
            bool any = false;
            for (int t = 0; t < f->taps && !f->from[i].beyond; t++) {
                const float *from = x + (o * d->in + clamped(f->from[i].first + t, d->in)) * inner;
                float share = f->share[i * f->taps + t];
                if (share == 0)
                    continue;
                for (int64_t k = 0; k < inner; k++)
                    to[k] = any ? to[k] + from[k] * share : from[k] * share;
                any = true;
            }
            for (int64_t k = 0; k < inner && !any; k++)
                to[k] = f->from[i].beyond ? outside : 0;
        }
}

static void resize_elements(const char *x, char *y, int64_t outer, const axis_of *d, size_t inner,
                            const filter *f, float outside)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < d->out; i++) {
            char *to = y + (size_t)(o * d->out + i) * inner;
            if (f->from[i].beyond) /* of floats alone */
                for (size_t k = 0; k < inner; k += sizeof outside)
                    memcpy(to + k, &outside, sizeof outside);
            else
                memcpy(to, x + (size_t)(o * d->in + f->from[i].first) * inner, inner);
        }
}

/* Which part of a dimension CROP takes: starts of all (named) dimensions, then ends. */
static lw_status read_parts(const lw_op_call *c, const lw_tensor *x, resize *r, lw_error *err)
{
    const lw_tensor *part = lw_in(c, 1);
    int64_t n_axes = 0;
    const int64_t *axes = lw_node_ints(c->node, "axes", &n_axes);
    int n = n_axes ? (int)n_axes : x->rank;
    LW_TRY(lw_want(part, LW_F32, "roi", err));
    if (part->count != 2 * (int64_t)n)
        return lw_fail(err, LW_E_INPUT, "roi has %lld numbers for %d dimensions", (long long)part->count, n);
    for (int i = 0; i < n; i++) {
        int k = i;
        if (n_axes)
            LW_TRY(lw_axis(axes[i], x->rank, &k, err));
        r->axis[k].start = ((const float *)part->data)[i];
        r->axis[k].end = ((const float *)part->data)[n + i];
        if (!(fabs(r->axis[k].start) < 1e9) || !(fabs(r->axis[k].end) < 1e9))
            return lw_fail(err, LW_E_INPUT, "roi of dimension %d is not a finite part", k);
    }
    return LW_OK;
}

/* Sizes and scales of every dimension of x from the inputs scales or sizes. */
static lw_status sizes_of(const lw_op_call *c, const lw_tensor *x, resize *r, lw_error *err)
{
    bool old = c->node->opset < 11; /* then scales come second, and there are no sizes */
    const lw_tensor *scales = lw_in(c, old ? 1 : 2), *sizes = old ? NULL : lw_in(c, 3);
    bool by_scale = scales && scales->count > 0;
    const lw_tensor *given = by_scale ? scales : sizes;
    int64_t n_axes = 0;
    const int64_t *axes = lw_node_ints(c->node, "axes", &n_axes);
    const char *policy = lw_node_string(c->node, "keep_aspect_ratio_policy", "stretch");
    bool smaller = strcmp(policy, "not_larger") == 0, larger = strcmp(policy, "not_smaller") == 0;
    double common = 0; /* scale of all dimensions that are named, where they keep their aspect */
    if (!given || given->dtype != (by_scale ? LW_F32 : LW_I64))
        return lw_fail(err, LW_E_INPUT, "neither float scales nor int64 sizes are given");
    if (given->count != (n_axes ? n_axes : x->rank))
        return lw_fail(err, LW_E_INPUT, "%lld scales or sizes for %lld dimensions", (long long)given->count,
                       (long long)(n_axes ? n_axes : x->rank));
    if (!smaller && !larger && strcmp(policy, "stretch") != 0)
        return lw_fail(err, LW_E_INPUT, "keep_aspect_ratio_policy %.20s is unknown", policy);
    for (int k = 0; k < x->rank; k++)
        r->axis[k] = (axis_of){
            .in = x->dim[k], .out = x->dim[k], .scale = 1, .over = 1, .under = 1, .start = 0, .end = 1};
    for (int i = 0; i < (int)given->count && !by_scale && (smaller || larger); i++) {
        int k = i;
        if (n_axes)
            LW_TRY(lw_axis(axes[i], x->rank, &k, err));
        double s = (double)((const int64_t *)given->data)[i] / (double)(x->dim[k] ? x->dim[k] : 1);
        common = i == 0 || (smaller ? s < common : s > common) ? s : common;
    }
    for (int i = 0; i < (int)given->count; i++) {
        int k = i;
        if (n_axes)
            LW_TRY(lw_axis(axes[i], x->rank, &k, err));
        axis_of *d = &r->axis[k];
        double s = by_scale ? ((const float *)given->data)[i] : 1;
        double size = by_scale            ? floor((double)d->in * s)
                      : smaller || larger ? floor((double)d->in * common + 0.5)
                                          : (double)((const int64_t *)given->data)[i];
        if (!(s > 0) || !(size >= 0 && size < 1e9) || (size > 0 && d->in == 0))
            return lw_fail(err, LW_E_INPUT, "dimension %d of %lld cannot become %g", k, (long long)d->in,
                           by_scale ? s : size);
        d->out = (int64_t)size;
        d->scale = by_scale ? s : smaller || larger ? common : d->in ? size / (double)d->in : 1;
        bool quotient = !by_scale && !smaller && !larger && d->in;
        d->over = quotient ? size : d->scale;
        d->under = quotient ? (double)d->in : 1;
    }
    return LW_OK;
}

static lw_status read_node(const lw_op_call *c, const lw_tensor *x, resize *r, lw_error *err)
{
    bool old = c->node->opset < 11;
    const char *where =
        lw_node_string(c->node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
    int how = one_of(lw_node_string(c->node, "mode", "nearest"), modes, MODES),
        place_at = one_of(where, places, PLACES),
        rule =
            one_of(lw_node_string(c->node, "nearest_mode", old ? "floor" : *roundings), roundings, ROUNDINGS);
    if (how == MODES || place_at == PLACES || rule == ROUNDINGS)
        return lw_fail(err, LW_E_INPUT, "an unknown mode, coordinate transformation or rounding");
    *r = (resize){.how = (mode)how,
                  .where = (place)place_at,
                  .rule = (rounding)rule,
                  .antialias = lw_node_int(c->node, "antialias", 0) != 0,
                  .exclude_outside = lw_node_int(c->node, "exclude_outside", 0) != 0,
                  .cubic = lw_node_float(c->node, "cubic_coeff_a", -0.75f),
                  .outside = lw_node_float(c->node, "extrapolation_value", 0)};
    if (r->exclude_outside && r->how != CUBIC && !r->antialias)
        return lw_fail(err, LW_E_INPUT, "exclude_outside goes with mode cubic or antialias");
    LW_TRY(sizes_of(c, x, r, err));
    return r->where == CROP ? read_parts(c, x, r, err) : LW_OK;
}

/* *now, resized along dimension k. */
static lw_status resize_dimension(const resize *r, int k, lw_tensor **now, lw_error *err)
{
    const axis_of *d = &r->axis[k];
    int64_t dim[LW_MAX_RANK];
    lw_tensor *next = NULL;
    filter f = {0};
    lw_status status = LW_OK;
    if (d->in == d->out && d->scale == 1 && (r->where != CROP || (d->start == 0 && d->end == 1)))
        return LW_OK;
    memcpy(dim, (*now)->dim, sizeof dim);
    dim[k] = d->out;
    LW_TRY_END(lw_tensor_new(&next, (*now)->dtype, (*now)->rank, dim, err));
    next->bits = (*now)->bits;
    LW_TRY_END(make_filter(r, d, &f, err));
    int64_t outer = lw_tensor_span(*now, 0, k), inner = lw_tensor_span(*now, k + 1, (*now)->rank);
    if (r->how != NEAREST)
        resize_floats((*now)->data, next->data, outer, d, inner, &f, r->outside);
    else
        resize_elements((*now)->data, next->data, outer, d,
                        (size_t)inner * (size_t)lw_dtype_size(next->dtype), &f, r->outside);
    lw_tensor_release(*now);
    *now = next;
    next = NULL;
end:
    free(f.from);
    free(f.share);
    lw_tensor_release(next);
    return status;
}

static lw_status run_resize(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    resize r = {0};
    if (!x)
        return lw_fail(err, LW_E_INPUT, "an input is missing");
    LW_TRY(read_node(c, x, &r, err));
    bool bytes = r.how == LINEAR && !r.antialias && (x->dtype == LW_I8 || x->dtype == LW_U8);
    if (!bytes && (r.how != NEAREST || r.where == CROP))
        LW_TRY(lw_want(x, LW_F32, "the input", err));
    lw_tensor *now = NULL;
    lw_status status = LW_OK;
    if (!bytes)
        now = lw_tensor_retain((lw_tensor *)x);
    else if ((status = lw_tensor_new(&now, LW_F32, x->rank, x->dim, err)) == LW_OK)
        for (int64_t i = 0; i < x->count; i++)
            ((float *)now->data)[i] = (float)lw_tensor_integer(x, i);
    for (int k = 0; k < x->rank && status == LW_OK; k++)
        status = resize_dimension(&r, k, &now, err);
    if (status == LW_OK && bytes &&
        (status = lw_tensor_new(&c->out[0], x->dtype, x->rank, now->dim, err)) == LW_OK)
        for (int64_t i = 0; i < now->count; i++) /* toward zero, as ONNX Runtime does */
            ((uint8_t *)c->out[0]->data)[i] = (uint8_t)(int)((const float *)now->data)[i];
    if (status == LW_OK && !bytes)
        c->out[0] = now;
    else
        lw_tensor_release(now);
    return status;
}

const lw_op lw_ops_resize[] = {
    {"", "Resize", 10, 0, 2, 4, run_resize, "resize", NULL},
    {"", "Upsample", 9, 9, 2, 2, run_resize, "resize", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
