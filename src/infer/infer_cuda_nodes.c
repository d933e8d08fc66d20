/* infer_cuda_nodes.c - the nodes that run on the device. Each function here either launches kernels and sets
 * *done, or leaves the node to the CPU row: whatever is unusual, and whatever is wrong, which is refused
 * there. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/infer_cuda.h"
#include "infer/op.h"
#include "infer/product.h"
#include "infer/quant.h"
#include "infer/window.h"

static const char microsoft[] = "com.microsoft";

/* ---- what inputs are ------------------------------------------------------------------------------- */

static bool is_bytes(const lw_tensor *t)
{
    return t && t->bits == 0 && (t->dtype == LW_I8 || t->dtype == LW_U8);
}

static bool is_floats(const lw_tensor *t)
{
    return t && t->dtype == LW_F32;
}

/* Exclusive or with this makes a byte signed. */
static uint8_t flip_of(const lw_tensor *t)
{
    return t->dtype == LW_U8 ? 0x80 : 0;
}

/* Positive and finite; what only the device knows is taken for that. */
static bool good_scales(const lw_tensor *t)
{
    if (!is_floats(t))
        return false;
    for (int64_t i = 0; t->data && i < t->count; i++) {
        float s = ((const float *)t->data)[i];
        if (!(s > 0) || !isfinite(s))
            return false;
    }
    return true;
}

/* One positive scale that the host knows. */
static bool scale_of(const lw_tensor *t, float *out)
{
    if (!good_scales(t) || t->count != 1 || !t->data)
        return false;
    *out = *(const float *)t->data;
    return true;
}

/* One zero point that the host knows, of the given type; 0 where it is left out. */
static bool zero_of(const lw_tensor *t, lw_dtype dtype, int32_t *out)
{
    *out = 0;
    if (!t)
        return true;
    if (t->dtype != dtype || t->count != 1 || !t->data)
        return false;
    *out = (int32_t)lw_tensor_integer(t, 0);
    return true;
}

static lw_status on_device(infer_cuda *x, lw_tensor *t, const void *pointer, lw_error *err)
{
    void *p = NULL;
    if (t)
        LW_TRY(lw_cuda_device(x, t, &p, err));
    memcpy((void *)(uintptr_t)pointer, &p, sizeof p);
    return LW_OK;
}

/* ---- products -------------------------------------------------------------------------------------- */

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Weights in the form that products read, kept with the tensor for the next time. */
static lw_status packed(infer_cuda *x, lw_tensor *t, const lw_cuda_form *form, const lw_cuda_packed **out,
                        lw_error *err)
{
    void *from;
    LW_TRY(lw_cuda_device(x, t, &from, err));
    lw_cuda_packed *p = &((lw_cuda_copy *)t->buffer->device)->packed;
    *out = p;
    if (memcmp(&p->form, form, sizeof *form) == 0)
        return LW_OK;
    lw_cuda_release(x, p->owned ? p->bytes : NULL);
    lw_cuda_release(x, p->sum);
    *p = (lw_cuda_packed){0};
    bool as_it_is = form->channel_step == 1 && form->taps == 1 && form->flip == 0 &&
                    form->channels == form->pitch && form->row_step == form->pitch &&
                    form->inner == form->rows;
    p->owned = !as_it_is;
    p->bytes = p->owned ? NULL : from;
    LW_TRY(lw_cuda_allocate(x, (void **)&p->sum, form->rows * 4, err));
    if (p->owned)
        LW_TRY(lw_cuda_allocate(x, (void **)&p->bytes, form->rows * form->pitch, err));
    lw_cuda_packing job = {.form = *form, .from = from, .to = p->owned ? p->bytes : NULL, .sum = p->sum};
    LW_TRY(lw_cuda_pack(x, &job, err));
    memcpy(&p->form, form, sizeof *form);
    return LW_OK;
}

/* Rows of `channels` bytes in whole stages. */
static lw_cuda_form form_of(int64_t rows, int64_t channels, int64_t row_step, int64_t channel_step,
                            uint8_t flip)
{
    int64_t pitch = round_up(channels, LW_CUDA_DEPTH);
    return (lw_cuda_form){.rows = rows,
                          .inner = rows,
                          .row_step = row_step,
                          .channels = channels,
                          .channel_step = channel_step,
                          .taps = 1,
                          .channel_pitch = pitch,
                          .pitch = pitch,
                          .flip = flip};
}

/* The inputs of a product, and how they are combined; what an operator leaves out is NULL. */
typedef struct operands {
    lw_tensor *a, *b, *a_zero, *b_zero;
    bool transpose_a, transpose_b;
    lw_tensor *a_scale, *b_scale, *y_scale, *y_zero; /* a_scale NULL: int32 results */
    float alpha;
    lw_tensor *bias, *float_bias;
} operands;

static operands operands_of(const lw_op_call *c)
{
    const char *op = c->node->op;
    operands o = {.alpha = 1};
    if (strcmp(op, "MatMulInteger") == 0) {
        o.a = lw_in(c, 0), o.b = lw_in(c, 1), o.a_zero = lw_in(c, 2), o.b_zero = lw_in(c, 3);
    } else if (strcmp(op, "QLinearMatMul") == 0) {
        o.a = lw_in(c, 0), o.a_scale = lw_in(c, 1), o.a_zero = lw_in(c, 2);
        o.b = lw_in(c, 3), o.b_scale = lw_in(c, 4), o.b_zero = lw_in(c, 5);
        o.y_scale = lw_in(c, 6), o.y_zero = lw_in(c, 7);
    } else if (strcmp(op, "QGemm") == 0) {
        o.a = lw_in(c, 0), o.a_scale = lw_in(c, 1), o.a_zero = lw_in(c, 2);
        o.b = lw_in(c, 3), o.b_scale = lw_in(c, 4), o.b_zero = lw_in(c, 5);
        o.bias = lw_in(c, 6), o.y_scale = lw_in(c, 7), o.y_zero = lw_in(c, 8);
        o.alpha = lw_node_float(c->node, "alpha", 1);
        o.transpose_a = lw_node_int(c->node, "transA", 0) != 0;
        o.transpose_b = lw_node_int(c->node, "transB", 0) != 0;
    } else { /* MatMulIntegerToFloat */
        o.a = lw_in(c, 0), o.b = lw_in(c, 1), o.a_scale = lw_in(c, 2), o.b_scale = lw_in(c, 3);
        o.a_zero = lw_in(c, 4), o.b_zero = lw_in(c, 5), o.float_bias = lw_in(c, 6);
    }
    return o;
}

/* What the epilogue needs to know of the weight's zero points: whether all are 0 as signed bytes. */
static bool zeros_are_zero(const lw_tensor *t, const lw_tensor *owner)
{
    uint8_t flip = flip_of(owner);
    if (!t)
        return flip == 0;
    for (int64_t i = 0; i < t->count; i++)
        if (((const uint8_t *)t->data)[i] != flip)
            return false;
    return true;
}

typedef struct product_plan {
    lw_product shape;
    bool folded; /* the batches of A are one matrix */
} product_plan;

static bool product_fits(const operands *o, product_plan *plan)
{
    if (!is_bytes(o->a) || !is_bytes(o->b))
        return false;
    lw_tensor a = *o->a, b = *o->b;
    if ((o->transpose_a || o->transpose_b) && (a.rank != 2 || b.rank != 2))
        return false;
    if (o->transpose_a)
        a.dim[0] = o->a->dim[1], a.dim[1] = o->a->dim[0];
    if (o->transpose_b)
        b.dim[0] = o->b->dim[1], b.dim[1] = o->b->dim[0];
    lw_product *p = &plan->shape;
    if (lw_product_of(p, &a, &b, NULL) != LW_OK)
        return false;
    /* one matrix of B for all of A's, or one for each */
    plan->folded = b.rank <= 2 && a.count == p->batches * p->m * p->k;
    bool paired = a.count == p->batches * p->m * p->k && b.count == p->batches * p->k * p->n;
    if (!plan->folded && !paired)
        return false;
    int64_t rows = plan->folded ? p->batches * p->m : p->m;
    if (p->k < 1 || p->k > lw_safe_depth(255 * 255, 0) || rows > INT_MAX / 2 || p->n > INT_MAX / 2 ||
        (!plan->folded && p->batches > 65535))
        return false;
    /* zero points: one of A, known or not; B's are known, one or one a column */
    if (o->a_zero && (o->a_zero->dtype != a.dtype || o->a_zero->count != 1))
        return false;
    if (o->b_zero && (o->b_zero->dtype != b.dtype || !o->b_zero->data ||
                      (o->b_zero->count != 1 && o->b_zero->count != p->n)))
        return false;
    if (!o->a_scale)
        return true;
    if (!good_scales(o->a_scale) || o->a_scale->count != 1 || !good_scales(o->b_scale) ||
        (o->b_scale->count != 1 && o->b_scale->count != p->n))
        return false;
    float scale;
    int32_t zero;
    if (o->y_scale && (!scale_of(o->y_scale, &scale) || !is_bytes(o->y_zero) ||
                       !zero_of(o->y_zero, o->y_zero->dtype, &zero)))
        return false;
    if (o->bias && (o->bias->dtype != LW_I32 || (o->bias->count != 1 && o->bias->count != p->n)))
        return false;
    return !o->float_bias || (is_floats(o->float_bias) && o->float_bias->count == p->n);
}

/* Zero points, bias, scales and the result's type into a product's arguments. columns: one value each at
 * most. */
static lw_status epilogue_of(infer_cuda *x, const operands *o, lw_cuda_product *p, lw_error *err)
{
    p->flip = flip_of(o->a) * 0x01010101u;
    if (o->a_zero && !o->a_zero->data)
        LW_TRY(on_device(x, o->a_zero, &p->a_zero_at, err));
    else
        p->a_zero = (int8_t)((o->a_zero ? *(const uint8_t *)o->a_zero->data : 0) ^ flip_of(o->a));
    p->b_zero_flip = flip_of(o->b);
    if (o->b_zero) {
        LW_TRY(on_device(x, o->b_zero, &p->b_zero, err));
        p->b_zero_step = o->b_zero->count != 1;
    }
    p->kind = !o->a_scale ? LW_TO_INT32 : o->y_scale ? LW_TO_BYTES : LW_TO_FLOAT;
    LW_TRY(on_device(x, o->bias, &p->bias, err));
    p->bias_step = o->bias && o->bias->count != 1;
    LW_TRY(on_device(x, o->float_bias, &p->float_bias, err));
    p->y_scale = 1;
    p->alpha = o->alpha;
    if (o->a_scale) {
        if (o->a_scale->data)
            p->a_scale = *(const float *)o->a_scale->data;
        else
            LW_TRY(on_device(x, o->a_scale, &p->a_scale_at, err));
        LW_TRY(on_device(x, o->b_scale, &p->b_scale, err));
        p->b_scale_step = o->b_scale->count != 1;
    }
    if (o->y_scale) {
        p->y_scale = *(const float *)o->y_scale->data;
        p->zero = (int32_t)lw_tensor_integer(o->y_zero, 0);
        lw_dtype_range(o->y_zero->dtype, &p->low, &p->high);
    }
    return LW_OK;
}

/* An unsigned weight without a zero point has the zero point 0, which is -128 as a signed byte. */
static lw_status default_zero(infer_cuda *x, const operands *o, lw_cuda_product *p, void **scratch,
                              lw_error *err)
{
    if (p->b_zero || p->b_zero_flip == 0)
        return LW_OK;
    (void)o;
    LW_TRY(lw_cuda_allocate(x, scratch, 1, err));
    p->b_zero = *scratch;
    return lw_cuda_fill(x, *scratch, 0, 1, err);
}

static lw_status run_product(infer_cuda *x, const lw_op_call *c, const operands *o, lw_error *err)
{
    product_plan plan;
    if (!product_fits(o, &plan))
        return lw_fail(err, LW_E_INTERNAL, "a product that does not fit");
    const lw_product *s = &plan.shape;
    lw_status status = LW_OK;
    void *scratch_a = NULL, *sums = NULL, *zero = NULL, *out;
    const lw_cuda_packed *w;
    int64_t rows = plan.folded ? s->batches * s->m : s->m, batches = plan.folded ? 1 : s->batches;
    lw_cuda_product p = {.m = (int)rows, .n = (int)s->n, .k = (int)s->k, .batches = (int)batches};
    LW_TRY_END(epilogue_of(x, o, &p, err));
    LW_TRY_END(default_zero(x, o, &p, &zero, err));
    lw_dtype dtype = p.kind == LW_TO_INT32 ? LW_I32 : p.kind == LW_TO_FLOAT ? LW_F32 : o->y_zero->dtype;
    LW_TRY_END(lw_cuda_tensor(x, &c->out[0], dtype, s->rank, s->dim, &out, err));
    if (c->out[0]->count == 0)
        goto end;
    lw_cuda_form form =
        form_of(batches * s->n, s->k, o->transpose_b ? s->k : 1, o->transpose_b ? 1 : s->n, flip_of(o->b));
    if (batches > 1) {
        form.inner = s->n;
        form.outer_step = s->k * s->n;
    }
    LW_TRY_END(packed(x, o->b, &form, &w, err));
    p.b = w->bytes;
    p.b_sum = w->sum;
    p.pitch = (int)form.pitch;
    LW_TRY_END(on_device(x, o->a, &p.a, err));
    p.lda = s->k;
    if (s->k % 16 || o->transpose_a) { /* products read whole, aligned segments */
        lw_cuda_form to =
            form_of(batches * rows, s->k, o->transpose_a ? 1 : s->k, o->transpose_a ? s->m : 1, 0);
        LW_TRY_END(lw_cuda_allocate(x, &scratch_a, to.rows * to.pitch, err));
        lw_cuda_packing job = {.form = to, .from = p.a, .to = scratch_a};
        LW_TRY_END(lw_cuda_pack(x, &job, err));
        p.a = scratch_a;
        p.lda = to.pitch;
    }
    p.a_batch = rows * p.lda;
    p.b_batch = s->n * form.pitch;
    p.b_sum_batch = s->n;
    p.c_batch = rows * s->n;
    p.c = out;
    p.ldc = s->n;
    if (!zeros_are_zero(o->b_zero, o->b)) {
        LW_TRY_END(lw_cuda_allocate(x, &sums, batches * rows * 4, err));
        LW_TRY_END(lw_cuda_row_sums(x, &p, sums, err));
        p.a_sum = sums;
        p.a_sum_batch = rows;
    }
    LW_TRY_END(lw_cuda_multiply(x, &p, err));
end:
    lw_cuda_release(x, scratch_a);
    lw_cuda_release(x, sums);
    lw_cuda_release(x, zero);
    return status;
}

static bool fits_product(const lw_op_call *c)
{
    operands o = operands_of(c);
    product_plan plan;
    return product_fits(&o, &plan);
}

static lw_status node_product(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    operands o = operands_of(c);
    return run_product(x, c, &o, err);
}

static const char *text_product(int policy, const lw_op_call *c)
{
    operands o = operands_of(c);
    product_plan plan;
    if (!product_fits(&o, &plan))
        return NULL;
    return lw_cuda_multiply_kernel(policy, plan.folded ? plan.shape.batches * plan.shape.m : plan.shape.m);
}

/* A float tensor to uint8, its scale and zero point, all on the device. */
static lw_status quantize_dynamically(infer_cuda *x, lw_tensor *from, lw_tensor **y, lw_tensor **scale,
                                      lw_tensor **zero, lw_error *err)
{
    const void *a;
    void *to, *s, *z, *scratch = NULL;
    lw_status status = LW_OK;
    LW_TRY(on_device(x, from, &a, err));
    LW_TRY(lw_cuda_tensor(x, y, LW_U8, from->rank, from->dim, &to, err));
    LW_TRY(lw_cuda_tensor(x, scale, LW_F32, 0, NULL, &s, err));
    LW_TRY(lw_cuda_tensor(x, zero, LW_U8, 0, NULL, &z, err));
    LW_TRY_END(lw_cuda_allocate(x, &scratch, 2 * sizeof(uint32_t), err));
    status = lw_cuda_dynamic_quantize(x, from->count, a, to, s, z, scratch, err);
end:
    lw_cuda_release(x, scratch);
    return status;
}

static bool fits_floats(const lw_op_call *c)
{
    return is_floats(lw_in(c, 0));
}

static lw_status node_dynamic_quantize(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *spare[3] = {NULL, NULL, NULL}, **out[3];
    for (int i = 0; i < 3; i++)
        out[i] = i < c->n_out ? &c->out[i] : &spare[i];
    lw_status status = quantize_dynamically(x, lw_in(c, 0), out[0], out[1], out[2], err);
    for (int i = 0; i < 3; i++)
        lw_tensor_release(spare[i]);
    return status;
}

/* DynamicQuantizeMatMul, once A is quantized (or, to see whether it fits, with a stand-in of its shape). */
static operands dynamic_operands(const lw_op_call *c, lw_tensor *a, lw_tensor *scale, lw_tensor *zero)
{
    return (operands){.a = a,
                      .a_scale = scale,
                      .a_zero = zero,
                      .b = lw_in(c, 1),
                      .b_scale = lw_in(c, 2),
                      .b_zero = lw_in(c, 3),
                      .float_bias = lw_in(c, 4),
                      .alpha = 1};
}

static bool dynamic_fits(const lw_op_call *c, product_plan *plan)
{
    if (!is_floats(lw_in(c, 0)))
        return false;
    lw_tensor a = *lw_in(c, 0), scale = {.dtype = LW_F32, .count = 1}, zero = {.dtype = LW_U8, .count = 1};
    a.dtype = LW_U8;
    operands o = dynamic_operands(c, &a, &scale, &zero);
    return product_fits(&o, plan);
}

static bool fits_dynamic_product(const lw_op_call *c)
{
    product_plan plan;
    return dynamic_fits(c, &plan);
}

static lw_status node_dynamic_product(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *a = NULL, *scale = NULL, *zero = NULL;
    lw_status status = quantize_dynamically(x, lw_in(c, 0), &a, &scale, &zero, err);
    if (status == LW_OK) {
        operands o = dynamic_operands(c, a, scale, zero);
        status = run_product(x, c, &o, err);
    }
    lw_tensor_release(a);
    lw_tensor_release(scale);
    lw_tensor_release(zero);
    return status;
}

static const char *text_dynamic_product(int policy, const lw_op_call *c)
{
    product_plan plan;
    if (!dynamic_fits(c, &plan))
        return NULL;
    return lw_cuda_multiply_kernel(policy, plan.folded ? plan.shape.batches * plan.shape.m : plan.shape.m);
}

/* ---- convolution ----------------------------------------------------------------------------------- */

typedef struct convolution {
    operands o;
    lw_window w;
    int64_t images, channels, outputs, groups; /* channels: of one group */
} convolution;

static bool convolution_fits(const lw_op_call *c, convolution *v)
{
    operands *o = &v->o;
    if (strcmp(c->node->op, "ConvInteger") == 0) {
        *o = (operands){.a = lw_in(c, 0), .b = lw_in(c, 1), .a_zero = lw_in(c, 2), .b_zero = lw_in(c, 3)};
    } else {
        *o = (operands){.a = lw_in(c, 0),
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
    if (!is_bytes(x) || !is_bytes(w) || x->rank < 3 || w->rank != x->rank ||
        lw_window_of(&v->w, c->node, x, w->dim + 2, NULL) != LW_OK)
        return false;
    v->groups = lw_node_int(c->node, "group", 1);
    v->images = x->dim[0];
    v->outputs = w->dim[0];
    v->channels = w->dim[1];
    if (v->groups < 1 || x->dim[1] != v->channels * v->groups || v->outputs < 1 || v->outputs % v->groups ||
        v->channels < 1)
        return false;
    if (!zero_of(o->a_zero, x->dtype, &zero) ||
        (o->b_zero && (o->b_zero->dtype != w->dtype || !o->b_zero->data ||
                       (o->b_zero->count != 1 && o->b_zero->count != v->outputs))))
        return false;
    if (o->a_scale &&
        (!scale_of(o->a_scale, &scale) || !good_scales(o->b_scale) ||
         (o->b_scale->count != 1 && o->b_scale->count != v->outputs) || !scale_of(o->y_scale, &scale) ||
         !is_bytes(o->y_zero) || !zero_of(o->y_zero, o->y_zero->dtype, &zero)))
        return false;
    if (o->bias && (o->bias->dtype != LW_I32 || o->bias->count != v->outputs || !o->bias->data))
        return false;
    int64_t most = INT32_MAX - v->channels * v->w.kernel_count * 255 * 255;
    for (int64_t i = 0; o->bias && i < v->outputs; i++)
        if (llabs((long long)((const int32_t *)o->bias->data)[i]) > most)
            return false;
    return most >= 0 && v->w.in_count * x->dim[1] < INT_MAX / 32 &&
           v->w.out_count * v->images < INT_MAX / 2 && v->outputs < 65536 && v->groups < 65536;
}

/* Channels from which a convolution is a product over images whose channels lie together; below, over patches
 * that are written out; below LEAST_DEPTH bytes of patch, no product. */
enum { LEAST_CHANNELS = 16, LEAST_DEPTH = 16 };

static lw_cuda_window window_of(const convolution *v, const uint8_t *from)
{
    lw_cuda_window w = {.from = from,
                        .image_step = v->channels * v->groups * v->w.in_count,
                        .channels = (int)v->channels,
                        .flip = flip_of(v->o.a)};
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
    int64_t pitch = round_up(v->channels, 16), taps = v->w.kernel_count;
    lw_cuda_images lay = {.from = from,
                          .images = v->images,
                          .channels = (int)v->channels,
                          .groups = (int)v->groups,
                          .channel_pitch = (int)pitch,
                          .flip = flip_of(v->o.a),
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
    lw_cuda_form form = form_of(v->outputs, v->channels, v->channels * taps, taps, flip_of(v->o.b));
    form.taps = taps;
    form.tap_step = 1;
    form.channel_pitch = pitch;
    form.pitch = round_up(taps * pitch, LW_CUDA_DEPTH);
    const lw_cuda_packed *w;
    LW_TRY_END(packed(x, v->o.b, &form, &w, err));
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
    if (!zeros_are_zero(v->o.b_zero, v->o.b)) {
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
    lw_cuda_form form = form_of(v->outputs, depth, depth, 1, flip_of(v->o.b));
    const lw_cuda_packed *w;
    LW_TRY_END(packed(x, v->o.b, &form, &w, err));
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
            if (!zeros_are_zero(v->o.b_zero, v->o.b)) {
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
    LW_TRY(on_device(x, v->o.b, &weights, err));
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
        LW_TRY(lw_cuda_direct_convolution(x, &window, weights, flip_of(v->o.b), n, (int)v->groups,
                                          (int)v->outputs, &q, err));
    }
    return LW_OK;
}

static bool fits_convolution(const lw_op_call *c)
{
    convolution v;
    return convolution_fits(c, &v);
}

static lw_status node_convolution(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    convolution v;
    if (!convolution_fits(c, &v))
        return lw_fail(err, LW_E_INTERNAL, "a convolution that does not fit");
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
    LW_TRY_END(epilogue_of(x, &v.o, &p, err));
    LW_TRY_END(default_zero(x, &v.o, &p, &zero, err));
    lw_dtype dtype = p.kind == LW_TO_INT32 ? LW_I32 : v.o.y_zero->dtype;
    LW_TRY_END(lw_cuda_tensor(x, &c->out[0], dtype, v.o.a->rank, dim, &out, err));
    if (c->out[0]->count == 0)
        goto end;
    p.c = out;
    LW_TRY_END(on_device(x, v.o.a, &from, err));
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

/* ---- rows ------------------------------------------------------------------------------------------- */

/* Rows of a softmax; false where the rows do not lie together. */
static bool softmax_rows(const lw_op_call *c, int64_t *rows, int64_t *n)
{
    const lw_tensor *x = lw_in(c, 0);
    int axis;
    bool flattens = c->node->opset < 13;
    if (!is_floats(x) || x->rank < 1 ||
        lw_axis(lw_node_int(c->node, "axis", flattens ? 1 : -1), x->rank, &axis, NULL) != LW_OK)
        return false;
    *n = flattens ? lw_tensor_span(x, axis, x->rank) : x->dim[axis];
    *rows = *n ? x->count / *n : 0;
    return (flattens || lw_tensor_span(x, axis + 1, x->rank) == 1) && *n < INT_MAX && *rows < INT_MAX;
}

static bool fits_softmax(const lw_op_call *c)
{
    int64_t rows, n;
    return softmax_rows(c, &rows, &n);
}

static lw_status node_softmax(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    int64_t rows = 0, n = 0;
    lw_tensor *t = lw_in(c, 0);
    const void *from;
    void *to;
    softmax_rows(c, &rows, &n);
    LW_TRY(on_device(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, t->rank, t->dim, &to, err));
    return lw_cuda_softmax(x, rows, n, from, to, err);
}

static bool norm_fits(const lw_tensor *x, const lw_tensor *scale, const lw_tensor *bias, int axis)
{
    int64_t n = lw_tensor_span(x, axis, x->rank);
    return is_floats(scale) && scale->count == n && (!bias || (is_floats(bias) && bias->count == n)) &&
           n > 0 && n < INT_MAX && x->count / n < INT_MAX;
}

static bool fits_layer_norm(const lw_op_call *c)
{
    const lw_tensor *x = lw_in(c, 0);
    int axis;
    return is_floats(x) && lw_axis(lw_node_int(c->node, "axis", -1), x->rank, &axis, NULL) == LW_OK &&
           norm_fits(x, lw_in(c, 1), lw_in(c, 2), axis);
}

static lw_status node_layer_norm(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    int axis = 0;
    int64_t dim[LW_MAX_RANK];
    void *y, *mean = NULL, *inverse = NULL;
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", -1), t->rank, &axis, err));
    lw_cuda_norm p = {.n = lw_tensor_span(t, axis, t->rank),
                      .epsilon = lw_node_float(c->node, "epsilon", 1e-5f)};
    p.rows = t->count / p.n;
    for (int k = 0; k < t->rank; k++)
        dim[k] = k < axis ? t->dim[k] : 1;
    LW_TRY(on_device(x, t, &p.x, err));
    LW_TRY(on_device(x, lw_in(c, 1), &p.scale, err));
    LW_TRY(on_device(x, lw_in(c, 2), &p.bias, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, t->rank, t->dim, &y, err));
    if (c->n_out > 1)
        LW_TRY(lw_cuda_tensor(x, &c->out[1], LW_F32, t->rank, dim, &mean, err));
    if (c->n_out > 2)
        LW_TRY(lw_cuda_tensor(x, &c->out[2], LW_F32, t->rank, dim, &inverse, err));
    p.y = y, p.mean = mean, p.inverse = inverse;
    return lw_cuda_layer_norm(x, &p, err);
}

static bool fits_skip_layer_norm(const lw_op_call *c)
{
    const lw_tensor *x = lw_in(c, 0), *skip = lw_in(c, 1), *bias = lw_in(c, 4);
    return is_floats(x) && is_floats(skip) && x->rank >= 1 && x->count == skip->count &&
           (!bias || (is_floats(bias) && bias->count == x->dim[x->rank - 1])) &&
           norm_fits(x, lw_in(c, 2), lw_in(c, 3), x->rank - 1) && (c->n_out < 2 || c->node->out[1] < 0) &&
           (c->n_out < 3 || c->node->out[2] < 0);
}

static lw_status node_skip_layer_norm(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    void *y, *sum = NULL;
    lw_cuda_norm p = {.n = t->dim[t->rank - 1], .epsilon = lw_node_float(c->node, "epsilon", 1e-12f)};
    p.rows = t->count / p.n;
    LW_TRY(on_device(x, t, &p.x, err));
    LW_TRY(on_device(x, lw_in(c, 1), &p.skip, err));
    LW_TRY(on_device(x, lw_in(c, 2), &p.scale, err));
    LW_TRY(on_device(x, lw_in(c, 3), &p.bias, err));
    LW_TRY(on_device(x, lw_in(c, 4), &p.skip_bias, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, t->rank, t->dim, &y, err));
    if (c->n_out > 3)
        LW_TRY(lw_cuda_tensor(x, &c->out[3], LW_F32, t->rank, t->dim, &sum, err));
    p.y = y, p.sum = sum;
    return lw_cuda_layer_norm(x, &p, err);
}

/* The mean over the last `out` dimensions: false for others. */
static bool mean_of(const lw_op_call *c, int *out)
{
    const lw_tensor *x = lw_in(c, 0), *list = lw_in(c, 1);
    int64_t axes[LW_MAX_RANK];
    bool reduced[LW_MAX_RANK] = {false};
    int n;
    if (!is_floats(x) || (list && !list->data) || x->count == 0 ||
        lw_int_list(c, 1, "axes", axes, LW_MAX_RANK, &n, NULL) != LW_OK || n == 0)
        return false;
    for (int i = 0; i < n; i++) {
        int axis;
        if (lw_axis(axes[i], x->rank, &axis, NULL) != LW_OK)
            return false;
        reduced[axis] = true;
    }
    *out = 0;
    while (*out < x->rank && reduced[x->rank - 1 - *out])
        ++*out;
    for (int k = 0; k < x->rank - *out; k++)
        if (reduced[k])
            return false;
    return *out > 0 && lw_tensor_span(x, x->rank - *out, x->rank) < INT_MAX;
}

static bool fits_mean(const lw_op_call *c)
{
    int last;
    return mean_of(c, &last);
}

static lw_status node_mean(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    int last = 0, rank;
    int64_t dim[LW_MAX_RANK];
    const void *from;
    void *to;
    mean_of(c, &last);
    int64_t n = lw_tensor_span(t, t->rank - last, t->rank);
    for (rank = 0; rank < t->rank - last; rank++)
        dim[rank] = t->dim[rank];
    if (lw_node_int(c->node, "keepdims", 1))
        for (; rank < t->rank; rank++)
            dim[rank] = 1;
    LW_TRY(on_device(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, rank, dim, &to, err));
    return lw_cuda_row_means(x, t->count / n, n, from, to, err);
}

/* ---- elements ---------------------------------------------------------------------------------------- */

static const struct {
    const char *op;
    lw_cuda_function f;
} functions[] = {{"Add", LW_F_ADD},         {"Sub", LW_F_SUB},
                 {"Mul", LW_F_MUL},         {"Div", LW_F_DIV},
                 {"Pow", LW_F_POW},         {"Min", LW_F_MIN},
                 {"Max", LW_F_MAX},         {"PRelu", LW_F_PRELU},
                 {"Sqrt", LW_F_SQRT},       {"Exp", LW_F_EXP},
                 {"Log", LW_F_LOG},         {"Erf", LW_F_ERF},
                 {"Tanh", LW_F_TANH},       {"Reciprocal", LW_F_RECIPROCAL},
                 {"Sigmoid", LW_F_SIGMOID}, {"Gelu", LW_F_GELU},
                 {"BiasGelu", LW_F_GELU},   {"FastGelu", LW_F_FASTGELU},
                 {"LeakyRelu", LW_F_LEAKY}, {"Relu", LW_F_RELU},
                 {"Neg", LW_F_NEG},         {"Abs", LW_F_ABS}};

static lw_cuda_function function_of(const lw_node *node)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].op, node->op) == 0) {
            if (functions[i].f == LW_F_GELU && strcmp(lw_node_string(node, "approximate", ""), "tanh") == 0)
                return LW_F_FASTGELU;
            return functions[i].f;
        }
    return LW_F_ADD;
}

/* The walk over the broadcast of n inputs (2 or 3), whose shape goes to rank and dim. */
static bool walk_of_all(const lw_tensor *const *t, int n, lw_cuda_walk *w, int *rank,
                        int64_t dim[LW_MAX_RANK])
{
    int64_t stride[3][LW_MAX_RANK] = {{0}}, size[LW_MAX_RANK] = {1};
    lw_tensor all = {.rank = 0};
    memset(w, 0, sizeof *w);
    for (int i = 0; i < n; i++) {
        if (lw_broadcast(&all, t[i], rank, dim, NULL) != LW_OK || t[i]->count >= INT_MAX)
            return false;
        all.rank = *rank;
        memcpy(all.dim, dim, sizeof all.dim);
    }
    for (int i = 0; i < n; i++)
        lw_broadcast_strides(t[i], *rank, stride[i]);
    w->count = 1;
    for (int k = 0; k < *rank; k++) {
        w->count *= dim[k];
        if (dim[k] == 1)
            continue;
        int last = w->rank - 1;
        bool joins = last >= 0;
        for (int i = 0; i < n && joins; i++)
            joins = w->stride[i][last] == stride[i][k] * dim[k];
        if (joins) {
            size[last] *= dim[k];
        } else {
            last = w->rank++;
            size[last] = dim[k];
        }
        for (int i = 0; i < n; i++)
            w->stride[i][last] = (int32_t)stride[i][k];
    }
    if (w->rank == 0)
        w->rank = 1;
    for (int k = 0; k < w->rank; k++)
        w->dim[k] = lw_divider_of(size[k] > 0 ? (uint32_t)size[k] : 1);
    return w->count < INT_MAX;
}

static bool walk_of(const lw_tensor *a, const lw_tensor *b, lw_cuda_walk *w, int *rank,
                    int64_t dim[LW_MAX_RANK])
{
    const lw_tensor *both[2] = {a, b};
    return walk_of_all(both, 2, w, rank, dim);
}

static bool where_of(const lw_op_call *c, lw_cuda_walk *w, int *rank, int64_t dim[LW_MAX_RANK])
{
    const lw_tensor *t[3] = {lw_in(c, 1), lw_in(c, 2), lw_in(c, 0)};
    return t[0] && t[1] && t[2] && t[2]->dtype == LW_BOOL && t[0]->dtype == t[1]->dtype &&
           (t[0]->dtype == LW_F32 || t[0]->dtype == LW_I32) && walk_of_all(t, 3, w, rank, dim);
}

static bool fits_where(const lw_op_call *c)
{
    lw_cuda_walk w;
    int rank;
    int64_t dim[LW_MAX_RANK];
    return where_of(c, &w, &rank, dim);
}

static lw_status node_where(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_cuda_walk w;
    int rank;
    int64_t dim[LW_MAX_RANK];
    const void *condition, *a, *b;
    void *to;
    if (!where_of(c, &w, &rank, dim))
        return lw_fail(err, LW_E_INTERNAL, "shapes that do not fit");
    LW_TRY(on_device(x, lw_in(c, 0), &condition, err));
    LW_TRY(on_device(x, lw_in(c, 1), &a, err));
    LW_TRY(on_device(x, lw_in(c, 2), &b, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], lw_in(c, 1)->dtype, rank, dim, &to, err));
    return lw_cuda_where(x, &w, condition, a, b, to, err);
}

static lw_status node_is_nan(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    const void *from;
    void *to;
    LW_TRY(on_device(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_BOOL, t->rank, t->dim, &to, err));
    return lw_cuda_is_nan(x, t->count, from, to, err);
}

static bool fits_binary(const lw_op_call *c)
{
    lw_cuda_walk w;
    int rank;
    int64_t dim[LW_MAX_RANK];
    return c->n_in == 2 && is_floats(lw_in(c, 0)) && is_floats(lw_in(c, 1)) &&
           walk_of(lw_in(c, 0), lw_in(c, 1), &w, &rank, dim);
}

static lw_status binary(infer_cuda *x, lw_cuda_function f, lw_tensor *a, lw_tensor *b, lw_tensor **y,
                        lw_error *err)
{
    lw_cuda_walk w;
    int rank;
    int64_t dim[LW_MAX_RANK];
    const void *pa, *pb;
    void *to;
    if (!walk_of(a, b, &w, &rank, dim))
        return lw_fail(err, LW_E_INTERNAL, "shapes that do not fit");
    LW_TRY(on_device(x, a, &pa, err));
    LW_TRY(on_device(x, b, &pb, err));
    LW_TRY(lw_cuda_tensor(x, y, LW_F32, rank, dim, &to, err));
    return lw_cuda_binary(x, f, &w, pa, pb, to, err);
}

static lw_status node_binary(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    return binary(x, function_of(c->node), lw_in(c, 0), lw_in(c, 1), &c->out[0], err);
}

static lw_status unary(infer_cuda *x, lw_cuda_function f, lw_tensor *t, float p, float q, lw_tensor **y,
                       lw_error *err)
{
    const void *from;
    void *to;
    LW_TRY(on_device(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, y, LW_F32, t->rank, t->dim, &to, err));
    return lw_cuda_unary(x, f, t->count, from, p, q, to, err);
}

static lw_status node_unary(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    return unary(x, function_of(c->node), lw_in(c, 0), lw_node_float(c->node, "alpha", 0.01f), 0, &c->out[0],
                 err);
}

static bool fits_with_bias(const lw_op_call *c)
{
    return lw_in(c, 1) ? fits_binary(c) : fits_floats(c);
}

static lw_status node_with_bias(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    if (!lw_in(c, 1))
        return node_unary(x, c, err);
    lw_tensor *sum = NULL;
    lw_status status = binary(x, LW_F_ADD, lw_in(c, 0), lw_in(c, 1), &sum, err);
    if (status == LW_OK)
        status = unary(x, function_of(c->node), sum, 0, 0, &c->out[0], err);
    lw_tensor_release(sum);
    return status;
}

static bool clip_of(const lw_op_call *c, float *low, float *high)
{
    const lw_tensor *least = lw_in(c, 1), *most = lw_in(c, 2);
    bool old = c->node->opset < 11;
    if (!is_floats(lw_in(c, 0)) || (least && (!is_floats(least) || least->count != 1 || !least->data)) ||
        (most && (!is_floats(most) || most->count != 1 || !most->data)))
        return false;
    *low = least ? *(const float *)least->data : old ? lw_node_float(c->node, "min", -INFINITY) : -INFINITY;
    *high = most ? *(const float *)most->data : old ? lw_node_float(c->node, "max", INFINITY) : INFINITY;
    return true;
}

static bool fits_clip(const lw_op_call *c)
{
    float low, high;
    return clip_of(c, &low, &high);
}

static lw_status node_clip(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    float low = 0, high = 0;
    clip_of(c, &low, &high);
    return unary(x, LW_F_CLIP, lw_in(c, 0), low, high, &c->out[0], err);
}

static bool fits_cast(const lw_op_call *c)
{
    enum { ONNX_FLOAT = 1 };
    return lw_in(c, 0) && lw_in(c, 0)->dtype == LW_I32 && lw_node_int(c->node, "to", 0) == ONNX_FLOAT;
}

static lw_status node_cast(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    return unary(x, LW_F_FROM_INT32, lw_in(c, 0), 0, 0, &c->out[0], err);
}

static bool bytes_of(const lw_op_call *c, lw_cuda_bytes *p, int *rank, int64_t dim[LW_MAX_RANK])
{
    const lw_tensor *a = lw_in(c, 0), *b = lw_in(c, 3);
    float sa, sb, sy;
    if (!is_bytes(a) || !is_bytes(b) || b->dtype != a->dtype || !scale_of(lw_in(c, 1), &sa) ||
        !scale_of(lw_in(c, 4), &sb) || !scale_of(lw_in(c, 6), &sy) ||
        !zero_of(lw_in(c, 2), a->dtype, &p->a_zero) || !zero_of(lw_in(c, 5), b->dtype, &p->b_zero) ||
        !zero_of(lw_in(c, 7), a->dtype, &p->y_zero))
        return false;
    p->is_signed = a->dtype == LW_I8;
    p->is_product = strcmp(c->node->op, "QLinearMul") == 0;
    p->ra = sa / sy, p->rb = sb / sy, p->product = sa * sb / sy;
    p->fixed = -(p->ra * (float)p->a_zero + p->rb * (float)p->b_zero);
    lw_dtype_range(a->dtype, &p->low, &p->high);
    return walk_of(a, b, &p->walk, rank, dim);
}

static bool fits_bytes(const lw_op_call *c)
{
    lw_cuda_bytes p;
    int rank;
    int64_t dim[LW_MAX_RANK];
    return bytes_of(c, &p, &rank, dim);
}

static lw_status node_bytes(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_cuda_bytes p;
    int rank;
    int64_t dim[LW_MAX_RANK];
    void *to;
    if (!bytes_of(c, &p, &rank, dim))
        return lw_fail(err, LW_E_INTERNAL, "operands that do not fit");
    LW_TRY(on_device(x, lw_in(c, 0), &p.a, err));
    LW_TRY(on_device(x, lw_in(c, 3), &p.b, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], lw_in(c, 0)->dtype, rank, dim, &to, err));
    p.y = to;
    return lw_cuda_binary_bytes(x, &p, err);
}

/* ---- quantization ------------------------------------------------------------------------------------ */

static bool scaling_of(const lw_op_call *c, lw_cuda_scaling *p)
{
    const lw_tensor *x = lw_in(c, 0), *scale = lw_in(c, 1), *zero = lw_in(c, 2);
    bool quantizes = strcmp(c->node->op, "QuantizeLinear") == 0;
    if (!x || !good_scales(scale) || (zero && zero->count != scale->count) ||
        lw_node_int(c->node, "block_size", 0) > 0)
        return false;
    if (quantizes) {
        if (x->dtype != LW_F32 || (zero && !is_bytes(zero)) ||
            (!zero && lw_node_int(c->node, "output_dtype", 2) != 2))
            return false;
        p->dtype = zero ? zero->dtype : LW_U8;
    } else {
        if ((!is_bytes(x) && x->dtype != LW_I32) || (zero && zero->dtype != x->dtype))
            return false;
        p->dtype = x->dtype;
    }
    p->count = x->count;
    p->inner = p->along = 1;
    if (scale->count == 1 && scale->rank <= 1)
        return true;
    int axis;
    if (lw_axis(lw_node_int(c->node, "axis", 1), x->rank, &axis, NULL) != LW_OK ||
        scale->count != x->dim[axis])
        return false;
    p->inner = lw_tensor_span(x, axis + 1, x->rank);
    p->along = x->dim[axis];
    return p->along > 0;
}

static bool fits_scaling(const lw_op_call *c)
{
    lw_cuda_scaling p;
    return scaling_of(c, &p);
}

static lw_status node_scaling(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_cuda_scaling p = {0};
    bool quantizes = strcmp(c->node->op, "QuantizeLinear") == 0;
    lw_tensor *t = lw_in(c, 0);
    if (!scaling_of(c, &p))
        return lw_fail(err, LW_E_INTERNAL, "scales that do not fit");
    LW_TRY(on_device(x, t, &p.from, err));
    LW_TRY(on_device(x, lw_in(c, 1), &p.scale, err));
    LW_TRY(on_device(x, lw_in(c, 2), &p.zero, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], quantizes ? p.dtype : LW_F32, t->rank, t->dim, &p.to, err));
    return quantizes ? lw_cuda_quantize(x, &p, err) : lw_cuda_dequantize(x, &p, err);
}

/* ---- copies ------------------------------------------------------------------------------------------ */

/* Shapes and indices (int64) stay with the host, which computes with them. */
static bool moves_here(const lw_tensor *t)
{
    return t && t->bits == 0 && t->dtype != LW_I64 && t->dtype != LW_BOOL;
}

static bool fits_transpose(const lw_op_call *c)
{
    const lw_tensor *x = lw_in(c, 0);
    int64_t n;
    bool seen[LW_MAX_RANK] = {false};
    if (!moves_here(x))
        return false;
    const int64_t *perm = lw_node_ints(c->node, "perm", &n);
    for (int k = 0; perm && k < x->rank; k++) {
        if (n != x->rank || perm[k] < 0 || perm[k] >= x->rank || seen[perm[k]])
            return false;
        seen[perm[k]] = true;
    }
    return true;
}

static void steps_of(int rank, const int64_t *dim, int64_t *stride)
{
    int64_t step = 1;
    for (int k = rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= dim[k];
    }
}

static lw_status node_transpose(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    int64_t n, own[LW_MAX_RANK];
    const int64_t *perm = lw_node_ints(c->node, "perm", &n);
    lw_cuda_strided s = {.rank = t->rank, .size = (int)lw_dtype_size(t->dtype)};
    steps_of(t->rank, t->dim, own);
    for (int k = 0; k < t->rank; k++) {
        int64_t from = perm ? perm[k] : t->rank - 1 - k;
        s.dim[k] = t->dim[from];
        s.stride[k] = own[from];
    }
    steps_of(s.rank, s.dim, s.to_stride);
    LW_TRY(on_device(x, t, &s.from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], t->dtype, t->rank, s.dim, &s.to, err));
    return lw_cuda_copy_strided(x, &s, err);
}

static bool fits_concat(const lw_op_call *c)
{
    const lw_tensor *first = lw_in(c, 0);
    int axis;
    if (!moves_here(first) || lw_axis(lw_node_int(c->node, "axis", 0), first->rank, &axis, NULL) != LW_OK)
        return false;
    for (int i = 0; i < c->n_in; i++) {
        const lw_tensor *t = lw_in(c, i);
        if (!t || t->rank != first->rank || t->dtype != first->dtype)
            return false;
        for (int k = 0; k < t->rank; k++)
            if (k != axis && t->dim[k] != first->dim[k])
                return false;
    }
    return true;
}

static lw_status node_concat(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *first = lw_in(c, 0);
    int axis = 0;
    int64_t dim[LW_MAX_RANK], size = lw_dtype_size(first->dtype), at = 0;
    void *to;
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), first->rank, &axis, err));
    memcpy(dim, first->dim, sizeof dim);
    dim[axis] = 0;
    for (int i = 0; i < c->n_in; i++)
        dim[axis] += lw_in(c, i)->dim[axis];
    LW_TRY(lw_cuda_tensor(x, &c->out[0], first->dtype, first->rank, dim, &to, err));
    for (int i = 0; i < c->n_in; i++) {
        lw_tensor *t = lw_in(c, i);
        lw_cuda_strided s = {.rank = t->rank, .size = (int)size};
        memcpy(s.dim, t->dim, sizeof s.dim);
        steps_of(t->rank, t->dim, s.stride);
        steps_of(t->rank, dim, s.to_stride);
        LW_TRY(on_device(x, t, &s.from, err));
        s.to = (char *)to + at * s.to_stride[axis] * size;
        LW_TRY(lw_cuda_copy_strided(x, &s, err));
        at += t->dim[axis];
    }
    return LW_OK;
}

/* Indices must be known to the host, which checks them. */
static bool fits_gather(const lw_op_call *c)
{
    const lw_tensor *x = lw_in(c, 0), *indices = lw_in(c, 1);
    int axis;
    if (!moves_here(x) || !indices || (indices->dtype != LW_I64 && indices->dtype != LW_I32) ||
        !indices->data || lw_axis(lw_node_int(c->node, "axis", 0), x->rank, &axis, NULL) != LW_OK ||
        x->rank - 1 + indices->rank > LW_MAX_RANK)
        return false;
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t v = lw_tensor_integer(indices, i);
        if (v < -x->dim[axis] || v >= x->dim[axis])
            return false;
    }
    return true;
}

static lw_status node_gather(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0), *indices = lw_in(c, 1);
    int axis = 0, rank = t->rank - 1 + indices->rank;
    int64_t dim[LW_MAX_RANK];
    const void *from, *at;
    void *to;
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), t->rank, &axis, err));
    for (int k = 0; k < rank; k++)
        dim[k] = k < axis                   ? t->dim[k]
                 : k < axis + indices->rank ? indices->dim[k - axis]
                                            : t->dim[k - indices->rank + 1];
    LW_TRY(on_device(x, t, &from, err));
    LW_TRY(on_device(x, indices, &at, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], t->dtype, rank, dim, &to, err));
    return lw_cuda_gather(x, from, lw_tensor_span(t, 0, axis), t->dim[axis],
                          lw_tensor_span(t, axis + 1, t->rank) * lw_dtype_size(t->dtype), at,
                          indices->dtype == LW_I64, indices->count, to, err);
}

/* ---- float products ---------------------------------------------------------------------------------- */

static bool float_product_of(const lw_op_call *c, lw_product *shape, lw_cuda_float_product *p)
{
    const lw_tensor *ta = lw_in(c, 0), *tb = lw_in(c, 1);
    bool gemm = strcmp(c->node->op, "Gemm") == 0;
    if (!is_floats(ta) || !is_floats(tb) || (gemm && (ta->rank != 2 || tb->rank != 2)))
        return false;
    bool transpose_a = lw_node_int(c->node, "transA", 0) != 0 && ta->rank > 1,
         transpose_b = lw_node_int(c->node, "transB", 0) != 0 && tb->rank > 1;
    lw_tensor a = *ta, b = *tb;
    if (transpose_a)
        a.dim[a.rank - 1] = ta->dim[a.rank - 2], a.dim[a.rank - 2] = ta->dim[a.rank - 1];
    if (transpose_b)
        b.dim[b.rank - 1] = tb->dim[b.rank - 2], b.dim[b.rank - 2] = tb->dim[b.rank - 1];
    if (lw_product_of(shape, &a, &b, NULL) != LW_OK)
        return false;
    bool all_a = a.count == shape->batches * shape->m * shape->k,
         all_b = b.count == shape->batches * shape->k * shape->n, one_b = b.count == shape->k * shape->n;
    if (!all_a || (!all_b && !one_b) || shape->batches > 65535 || shape->m > 65535 * 64)
        return false;
    *p = (lw_cuda_float_product){.m = shape->m,
                                 .n = shape->n,
                                 .k = shape->k,
                                 .outer = 1,
                                 .inner = shape->batches,
                                 .a_row = transpose_a ? 1 : shape->k,
                                 .a_column = transpose_a ? shape->m : 1,
                                 .b_row = transpose_b ? 1 : shape->n,
                                 .b_column = transpose_b ? shape->k : 1,
                                 .a_inner = shape->m * shape->k,
                                 .b_inner = one_b ? 0 : shape->k * shape->n,
                                 .alpha = lw_node_float(c->node, "alpha", 1)};
    if (one_b && !transpose_a && shape->batches > 1 && shape->m * shape->batches <= 65535 * 64) {
        p->m *= shape->batches; /* one matrix */
        p->inner = 1;
    }
    return true;
}

static bool fits_float_product(const lw_op_call *c)
{
    lw_product shape;
    lw_cuda_float_product p;
    lw_cuda_walk w;
    int rank;
    int64_t dim[LW_MAX_RANK];
    if (!float_product_of(c, &shape, &p))
        return false;
    const lw_tensor *bias = lw_in(c, 2);
    if (!bias || strcmp(c->node->op, "Gemm") != 0)
        return !bias;
    lw_tensor y = {.rank = 2, .dim = {shape.m, shape.n}, .count = shape.m * shape.n};
    return is_floats(bias) && lw_node_float(c->node, "beta", 1) == 1 && walk_of(&y, bias, &w, &rank, dim) &&
           rank == 2 && dim[0] == y.dim[0] && dim[1] == y.dim[1];
}

static lw_status node_float_product(infer_cuda *x, const lw_op_call *c, lw_error *err)
{
    lw_product shape;
    lw_cuda_float_product p;
    lw_tensor *product = NULL;
    void *to;
    if (!float_product_of(c, &shape, &p))
        return lw_fail(err, LW_E_INTERNAL, "a product that does not fit");
    LW_TRY(on_device(x, lw_in(c, 0), &p.a, err));
    LW_TRY(on_device(x, lw_in(c, 1), &p.b, err));
    lw_tensor **y = lw_in(c, 2) ? &product : &c->out[0];
    lw_status status = lw_cuda_tensor(x, y, LW_F32, shape.rank, shape.dim, &to, err);
    p.c = status == LW_OK ? to : NULL;
    if (status == LW_OK)
        status = lw_cuda_multiply_floats(x, &p, err);
    if (status == LW_OK && product)
        status = binary(x, LW_F_ADD, product, lw_in(c, 2), &c->out[0], err);
    lw_tensor_release(product);
    return status;
}

/* ---- the table --------------------------------------------------------------------------------------- */

typedef struct row {
    const char *domain, *op;
    bool (*fits)(const lw_op_call *c);
    lw_status (*run)(infer_cuda *x, const lw_op_call *c, lw_error *err);
    const char *text;                                        /* for --describe */
    const char *(*text_of)(int policy, const lw_op_call *c); /* where it depends on the shapes; else NULL */
} row;

static const char elements[] = "elementwise", moves[] = "copy", floats[] = "float product",
                  norm[] = "layer norm";
static const row rows[] = {
    {"", "MatMulInteger", fits_product, node_product, NULL, text_product},
    {"", "QLinearMatMul", fits_product, node_product, NULL, text_product},
    {microsoft, "QGemm", fits_product, node_product, NULL, text_product},
    {microsoft, "MatMulIntegerToFloat", fits_product, node_product, NULL, text_product},
    {microsoft, "DynamicQuantizeMatMul", fits_dynamic_product, node_dynamic_product, NULL,
     text_dynamic_product},
    {"", "ConvInteger", fits_convolution, node_convolution, NULL, text_convolution},
    {"", "QLinearConv", fits_convolution, node_convolution, NULL, text_convolution},
    {"", "Softmax", fits_softmax, node_softmax, "softmax", NULL},
    {"", "LayerNormalization", fits_layer_norm, node_layer_norm, norm, NULL},
    {microsoft, "SkipLayerNormalization", fits_skip_layer_norm, node_skip_layer_norm, norm, NULL},
    {"", "ReduceMean", fits_mean, node_mean, "reduction", NULL},
    {"", "QuantizeLinear", fits_scaling, node_scaling, elements, NULL},
    {"", "DequantizeLinear", fits_scaling, node_scaling, elements, NULL},
    {microsoft, "QuantizeLinear", fits_scaling, node_scaling, elements, NULL},
    {microsoft, "DequantizeLinear", fits_scaling, node_scaling, elements, NULL},
    {"", "DynamicQuantizeLinear", fits_floats, node_dynamic_quantize, elements, NULL},
    {microsoft, "QLinearAdd", fits_bytes, node_bytes, elements, NULL},
    {microsoft, "QLinearMul", fits_bytes, node_bytes, elements, NULL},
    {"", "Add", fits_binary, node_binary, elements, NULL},
    {"", "Sub", fits_binary, node_binary, elements, NULL},
    {"", "Mul", fits_binary, node_binary, elements, NULL},
    {"", "Div", fits_binary, node_binary, elements, NULL},
    {"", "Pow", fits_binary, node_binary, elements, NULL},
    {"", "Min", fits_binary, node_binary, elements, NULL},
    {"", "Max", fits_binary, node_binary, elements, NULL},
    {"", "PRelu", fits_binary, node_binary, elements, NULL},
    {"", "Where", fits_where, node_where, elements, NULL},
    {"", "IsNaN", fits_floats, node_is_nan, elements, NULL},
    {"", "Sqrt", fits_floats, node_unary, elements, NULL},
    {"", "Exp", fits_floats, node_unary, elements, NULL},
    {"", "Log", fits_floats, node_unary, elements, NULL},
    {"", "Erf", fits_floats, node_unary, elements, NULL},
    {"", "Tanh", fits_floats, node_unary, elements, NULL},
    {"", "Reciprocal", fits_floats, node_unary, elements, NULL},
    {"", "Sigmoid", fits_floats, node_unary, elements, NULL},
    {"", "Gelu", fits_floats, node_unary, elements, NULL},
    {microsoft, "Gelu", fits_floats, node_unary, elements, NULL},
    {microsoft, "BiasGelu", fits_with_bias, node_with_bias, elements, NULL},
    {microsoft, "FastGelu", fits_with_bias, node_with_bias, elements, NULL},
    {"", "LeakyRelu", fits_floats, node_unary, elements, NULL},
    {"", "Relu", fits_floats, node_unary, elements, NULL},
    {"", "Neg", fits_floats, node_unary, elements, NULL},
    {"", "Abs", fits_floats, node_unary, elements, NULL},
    {"", "Clip", fits_clip, node_clip, elements, NULL},
    {"", "Cast", fits_cast, node_cast, elements, NULL},
    {"", "Transpose", fits_transpose, node_transpose, moves, NULL},
    {"", "Concat", fits_concat, node_concat, moves, NULL},
    {"", "Gather", fits_gather, node_gather, moves, NULL},
    {"", "MatMul", fits_float_product, node_float_product, floats, NULL},
    {microsoft, "FusedMatMul", fits_float_product, node_float_product, floats, NULL},
    {"", "Gemm", fits_float_product, node_float_product, floats, NULL},
};

/* NULL: the node is the CPU row's. */
static const row *row_of(const lw_op_call *c)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op, c->node->op) == 0 && strcmp(rows[i].domain, c->node->domain) == 0)
            return rows[i].fits(c) ? &rows[i] : NULL;
    return NULL;
}

lw_status lw_cuda_node(void *context, const lw_op_call *c, bool *done, lw_error *err)
{
    const row *r = row_of(c);
    *done = r != NULL;
    return r ? r->run(context, c, err) : LW_OK;
}

const char *lw_cuda_kernel(const lw_infer_backend *self, const lw_op_call *c)
{
    const row *r = row_of(c);
    return !r ? NULL : r->text_of ? r->text_of(self->base.policy, c) : r->text;
}
