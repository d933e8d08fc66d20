/* infer_cuda_nodes_convolution.c - convolutions of bytes on the device. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/infer_cuda_nodes.h"
#include "infer/window.h"

typedef struct convolution {
    lw_cuda_operands o;
    lw_window w;
    int64_t images, channels, outputs, groups; /* channels: of one group */
} convolution;

/* Whether offsets within a laid out image fit int32, and numbers of results int. */
static bool sizes_fit(const convolution *v)
{
    int64_t bytes = lw_round_up(v->channels, 16) * v->groups, results;
    if (!lw_cuda_window_fits(&v->w) || __builtin_mul_overflow(v->w.out_count, v->images, &results))
        return false;
    for (int k = 0; k < 3; k++) /* as implicit_product() pads */
        bytes *= (v->w.out[k] - 1) * v->w.stride[k] + (v->w.kernel[k] - 1) * v->w.dilation[k] + 1;
    return bytes < INT_MAX / 2 && results < INT_MAX / 2 && v->outputs < 65536;
}

static bool convolution_fits(const lw_op_call *c, convolution *v)
{
    lw_cuda_operands *o = &v->o;
    if (strcmp(c->node->op, "ConvInteger") == 0) {
        *o = (lw_cuda_operands){
            .a = lw_in(c, 0), .b = lw_in(c, 1), .a_zero = lw_in(c, 2), .b_zero = lw_in(c, 3)};
    } else {
        *o = (lw_cuda_operands){.a = lw_in(c, 0),
                                .a_scale = lw_in(c, 1),
                                .a_zero = lw_in(c, 2),
                                .b = lw_in(c, 3),
                                .b_scale = lw_in(c, 4),
                                .b_zero = lw_in(c, 5),
                                .y_scale = lw_in(c, 6),
                                .y_zero = lw_in(c, 7),
                                .bias = lw_in(c, 8)};
    }
    o->alpha = 1;
    const lw_tensor *x = o->a, *w = o->b;
    int32_t zero;
    float scale;
    if (!lw_is_bytes(x) || !lw_is_bytes(w) || x->rank < 3 || w->rank != x->rank ||
        lw_window_of(&v->w, c->node, x, w->dim + 2, NULL) != LW_OK)
        return false;
    v->groups = lw_node_int(c->node, "group", 1);
    v->images = x->dim[0];
    v->outputs = w->dim[0];
    v->channels = w->dim[1];
    if (v->groups < 1 || v->groups > 65535 || x->dim[1] != v->channels * v->groups || v->outputs < 1 ||
        v->outputs % v->groups || v->channels < 1)
        return false;
    if (!lw_one_zero(o->a_zero, x->dtype, &zero) ||
        (o->b_zero && (o->b_zero->dtype != w->dtype || !o->b_zero->data ||
                       (o->b_zero->count != 1 && o->b_zero->count != v->outputs))))
        return false;
    if (o->a_scale &&
        (!lw_one_scale(o->a_scale, &scale) || !lw_good_scales(o->b_scale) ||
         (o->b_scale->count != 1 && o->b_scale->count != v->outputs) || !lw_one_scale(o->y_scale, &scale) ||
         !lw_is_bytes(o->y_zero) || !lw_one_zero(o->y_zero, o->y_zero->dtype, &zero)))
        return false;
    if (o->bias && (o->bias->dtype != LW_I32 || o->bias->count != v->outputs || !o->bias->data))
        return false;
    int64_t most = INT32_MAX - v->channels * v->w.kernel_count * 255 * 255;
    for (int64_t i = 0; o->bias && i < v->outputs; i++)
        if (llabs((long long)((const int32_t *)o->bias->data)[i]) > most)
            return false;
    return most >= 0 && v->w.in_count * x->dim[1] < INT_MAX / 32 && sizes_fit(v);
}

/* Channels from which a convolution is a product over images whose channels lie together; below, over patches
 * that are written out; below LEAST_DEPTH bytes of patch, no product. */
enum { LEAST_CHANNELS = 16, LEAST_DEPTH = 16 };

static lw_cuda_window window_of(const convolution *v, const uint8_t *from)
{
    lw_cuda_window w = {.from = from,
                        .image_step = v->channels * v->groups * v->w.in_count,
                        .channels = (int)v->channels,
                        .flip = lw_flip_of(v->o.a)};
    for (int k = 0; k < 3; k++) {
        w.in[k] = (int)v->w.in[k], w.out[k] = (int)v->w.out[k], w.kernel[k] = (int)v->w.kernel[k];
        w.stride[k] = (int)v->w.stride[k], w.dilation[k] = (int)v->w.dilation[k], w.pad[k] = (int)v->w.pad[k];
    }
    return w;
}

/* Images [first, first + n) are written out by position and channel and multiplied in one product. */
static lw_status implicit_product(infer_cuda *x, const convolution *v, lw_cuda_product *p,
                                  const uint8_t *from, lw_error *err)
{
    lw_status status = LW_OK;
    void *images = NULL, *sums = NULL;
    int64_t pitch = lw_round_up(v->channels, 16), taps = v->w.kernel_count;
    lw_cuda_images lay = {.from = from,
                          .images = v->images,
                          .channels = (int)v->channels,
                          .groups = (int)v->groups,
                          .channel_pitch = (int)pitch,
                          .flip = lw_flip_of(v->o.a),
                          .zero = (uint8_t)p->a_zero};
    int64_t padded = 1;
    for (int k = 0; k < 3; k++) { /* as far as the last window reaches */
        lay.in[k] = (int)v->w.in[k];
        lay.pad[k] = (int)v->w.pad[k];
        lay.padded[k] =
            (int)((v->w.out[k] - 1) * v->w.stride[k] + (v->w.kernel[k] - 1) * v->w.dilation[k] + 1);
        padded *= lay.padded[k];
    }
    int64_t position = pitch * v->groups, line = position * lay.padded[2], plane = line * lay.padded[1];
    lw_cuda_form form =
        lw_cuda_form_of(v->outputs, v->channels, v->channels * taps, taps, lw_flip_of(v->o.b));
    form.taps = taps;
    form.tap_step = 1;
    form.channel_pitch = pitch;
    form.pitch = lw_round_up(taps * pitch, LW_CUDA_DEPTH);
    const lw_cuda_packed *w;
    LW_TRY_END(lw_cuda_packed_weights(x, v->o.b, &form, &w, err));
    lw_cuda_copy *copy = (lw_cuda_copy *)v->o.b->buffer->device;
    int64_t key[8] = {line,  plane, position, v->w.dilation[0], v->w.dilation[1], v->w.dilation[2],
                      pitch, taps};
    if (!copy->offset || memcmp(copy->offset_of, key, sizeof key) != 0) {
        int64_t n = form.pitch / 16, per_tap = pitch / 16;
        int32_t *offset = calloc((size_t)n, sizeof *offset);
        if (!offset) {
            status = lw_fail_memory(err, (size_t)n * sizeof *offset);
            goto end;
        }
        for (int64_t s = 0; s < taps * per_tap; s++) {
            int64_t tap = s / per_tap, q2 = tap % v->w.kernel[2], q1 = tap / v->w.kernel[2] % v->w.kernel[1],
                    q0 = tap / v->w.kernel[2] / v->w.kernel[1];
            offset[s] = (int32_t)(q0 * v->w.dilation[0] * plane + q1 * v->w.dilation[1] * line +
                                  q2 * v->w.dilation[2] * position + s % per_tap * 16);
        }
        if (lw_cuda_recording_asks(x)) {
            status = lw_fail(err, LW_E_UNSUPPORTED, "an upload cannot be recorded");
            free(offset);
            goto end;
        }
        x->generation += copy->offset != NULL;
        lw_cuda_release(x, copy->offset);
        copy->offset = NULL;
        status = lw_cuda_allocate(x, (void **)&copy->offset, n * 4, err);
        if (status == LW_OK)
            status = lw_cuda_upload(x, copy->offset, offset, n * 4, err);
        free(offset);
        if (status != LW_OK)
            goto end;
        memcpy(copy->offset_of, key, sizeof key);
    }
    LW_TRY_END(lw_cuda_allocate(x, &images, v->images * padded * position, err));
    lay.to = images;
    LW_TRY_END(lw_cuda_lay_images(x, &lay, err));
    p->a = images;
    p->flip = 0;
    p->patches = (lw_cuda_patches){.offset = copy->offset,
                                   .segments = (int)(taps * pitch / 16),
                                   .count = lw_divider_of((uint32_t)v->w.out_count),
                                   .plane = lw_divider_of((uint32_t)(v->w.out[1] * v->w.out[2])),
                                   .line = lw_divider_of((uint32_t)v->w.out[2]),
                                   .image_bytes = padded * position,
                                   .step0 = v->w.stride[0] * plane,
                                   .step1 = v->w.stride[1] * line,
                                   .step2 = v->w.stride[2] * position};
    p->b = w->bytes;
    p->b_sum = w->sum;
    p->pitch = (int)form.pitch;
    p->batches = (int)v->groups;
    p->a_batch = pitch;
    p->b_batch = p->n * form.pitch;
    p->b_sum_batch = p->column_batch = p->n;
    p->c_batch = p->n * v->w.out_count;
    if (!lw_cuda_symmetric(v->o.b_zero, v->o.b)) {
        LW_TRY_END(lw_cuda_allocate(x, &sums, v->groups * p->m * 4, err));
        LW_TRY_END(lw_cuda_row_sums(x, p, sums, err));
        p->a_sum = sums;
        p->a_sum_batch = p->m;
    }
    LW_TRY_END(lw_cuda_multiply(x, p, err));
end:
    lw_cuda_release(x, images);
    lw_cuda_release(x, sums);
    return status;
}

/* Bytes of patches that are written out at a time. */
#define PATCH_BYTES (INT64_C(256) << 20)

static lw_status explicit_product(infer_cuda *x, const convolution *v, lw_cuda_product *p,
                                  const uint8_t *from, int64_t element, lw_error *err)
{
    lw_status status = LW_OK;
    void *patches = NULL, *sums = NULL;
    int64_t depth = v->channels * v->w.kernel_count;
    lw_cuda_form form = lw_cuda_form_of(v->outputs, depth, depth, 1, lw_flip_of(v->o.b));
    const lw_cuda_packed *w;
    LW_TRY_END(lw_cuda_packed_weights(x, v->o.b, &form, &w, err));
    int64_t image = v->w.out_count * form.pitch, at_a_time = PATCH_BYTES / image;
    at_a_time = at_a_time < 1 ? 1 : at_a_time < v->images ? at_a_time : v->images;
    LW_TRY_END(lw_cuda_allocate(x, &patches, at_a_time * image, err));
    LW_TRY_END(lw_cuda_allocate(x, &sums, at_a_time * v->w.out_count * 4, err));
    lw_cuda_product base = *p;
    for (int64_t first = 0; first < v->images; first += at_a_time) {
        int64_t n = v->images - first < at_a_time ? v->images - first : at_a_time;
        for (int64_t g = 0; g < v->groups; g++) {
            lw_cuda_product q = base;
            lw_cuda_window window =
                window_of(v, from + (first * v->groups + g) * v->channels * v->w.in_count);
            window.zero = (uint8_t)p->a_zero;
            q.m = (int)(n * v->w.out_count);
            q.a = patches;
            q.lda = form.pitch;
            q.flip = 0;
            q.batches = 1;
            q.pitch = (int)form.pitch;
            q.b = w->bytes + g * q.n * form.pitch;
            q.b_sum = w->sum + g * q.n;
            q.b_zero += q.b_zero ? g * q.n * q.b_zero_step : 0;
            q.bias += q.bias ? g * q.n * q.bias_step : 0;
            q.b_scale += q.b_scale ? g * q.n * q.b_scale_step : 0;
            q.c = (char *)q.c + (first * v->outputs + g * q.n) * v->w.out_count * element;
            LW_TRY_END(lw_cuda_patch_rows(x, &window, q.m, form.pitch, patches, err));
            if (!lw_cuda_symmetric(v->o.b_zero, v->o.b)) {
                LW_TRY_END(lw_cuda_row_sums(x, &q, sums, err));
                q.a_sum = sums;
            }
            LW_TRY_END(lw_cuda_multiply(x, &q, err));
        }
    }
end:
    lw_cuda_release(x, patches);
    lw_cuda_release(x, sums);
    return status;
}

static lw_status direct(infer_cuda *x, const convolution *v, lw_cuda_product *p, const uint8_t *from,
                        int64_t element, lw_error *err)
{
    const void *weights;
    LW_TRY(lw_cuda_bring(x, v->o.b, &weights, err));
    p->b_sum = NULL;
    int64_t at_a_time = 65535 / v->outputs;
    for (int64_t first = 0; first < v->images; first += at_a_time) {
        int64_t n = v->images - first < at_a_time ? v->images - first : at_a_time;
        lw_cuda_window window = window_of(v, from + first * v->groups * v->channels * v->w.in_count);
        window.zero = (uint8_t)p->a_zero;
        lw_cuda_product q = *p;
        q.n = (int)v->outputs;
        q.m = (int)(n * v->w.out_count);
        q.c = (char *)q.c + first * v->outputs * v->w.out_count * element;
        LW_TRY(lw_cuda_direct_convolution(x, &window, weights, lw_flip_of(v->o.b), n, (int)v->groups,
                                          (int)v->outputs, &q, err));
    }
    return LW_OK;
}

static lw_status node_convolution(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    convolution v;
    if (!lw_cuda_accept(x, convolution_fits(c, &v), fits))
        return LW_OK;
    lw_status status = LW_OK;
    void *zero = NULL, *out;
    const void *from;
    int64_t dim[LW_MAX_RANK] = {v.images, v.outputs}, of_group = v.outputs / v.groups,
            depth = v.channels * v.w.kernel_count;
    for (int k = 0; k < v.w.dims; k++)
        dim[2 + k] = v.w.out[k];
    lw_cuda_product p = {.m = (int)(v.images * v.w.out_count),
                         .n = (int)of_group,
                         .k = (int)depth,
                         .batches = 1,
                         .positions = (int)v.w.out_count,
                         .by_positions = lw_divider_of(v.w.out_count > 0 ? (uint32_t)v.w.out_count : 1),
                         .image = v.outputs * v.w.out_count};
    LW_TRY_END(lw_cuda_epilogue(x, &v.o, &p, err));
    LW_TRY_END(lw_cuda_default_zero(x, &p, &zero, err));
    lw_dtype dtype = p.kind == LW_TO_INT32 ? LW_I32 : v.o.y_zero->dtype;
    LW_TRY_END(lw_cuda_tensor(x, &c->out[0], dtype, v.o.a->rank, dim, &out, err));
    if (c->out[0]->count == 0)
        goto end;
    p.c = out;
    LW_TRY_END(lw_cuda_bring(x, v.o.a, &from, err));
    int64_t element = lw_dtype_size(dtype);
    if (v.channels == 1 || depth < LEAST_DEPTH)
        LW_TRY_END(direct(x, &v, &p, from, element, err));
    else if (v.channels < LEAST_CHANNELS)
        LW_TRY_END(explicit_product(x, &v, &p, from, element, err));
    else
        LW_TRY_END(implicit_product(x, &v, &p, from, err));
end:
    lw_cuda_release(x, zero);
    return status;
}

static const char *text_convolution(int policy, const lw_op_call *c)
{
    convolution v;
    if (!convolution_fits(c, &v))
        return NULL;
    if (v.channels == 1 || v.channels * v.w.kernel_count < LEAST_DEPTH)
        return "int8 convolution";
    return policy == LW_CUDA_TENSOR ? "int8 convolution, tensor cores"
           : policy == LW_CUDA_DP4A ? "int8 convolution, tiles, DP4A"
                                    : "int8 convolution, tiles";
}

const lw_cuda_node_row lw_cuda_nodes_convolution[] = {
    {"", "ConvInteger", node_convolution, NULL, text_convolution},
    {"", "QLinearConv", node_convolution, NULL, text_convolution},
    {0}};
