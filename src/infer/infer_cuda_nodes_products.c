/* infer_cuda_nodes_products.c - products of bytes on the device, and DynamicQuantizeLinear. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/fail.h"
#include "infer/infer_cuda_nodes.h"
#include "infer/product.h"
#include "infer/quant.h"

static const char microsoft[] = "com.microsoft";

/* ---- bytes ------------------------------------------------------------------------------------------ */

lw_status lw_cuda_packed_weights(infer_cuda *x, lw_tensor *t, const lw_cuda_form *form,
                                 const lw_cuda_packed **out, lw_error *err)
{
    void *from;
    LW_TRY(lw_cuda_device(x, t, &from, err));
    lw_cuda_packed *p = &((lw_cuda_copy *)t->buffer->device)->packed;
    *out = p;
    if (memcmp(&p->form, form, sizeof *form) == 0)
        return LW_OK;
    if (t->data && lw_cuda_recording_asks(x)) /* packed once, or again each time */
        return lw_fail(err, LW_E_UNSUPPORTED, "packing cannot be recorded");
    x->generation += t->data && p->form.rows;
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

lw_cuda_form lw_cuda_form_of(int64_t rows, int64_t channels, int64_t row_step, int64_t channel_step,
                             uint8_t flip)
{
    int64_t pitch = lw_round_up(channels, LW_CUDA_DEPTH);
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

static lw_cuda_operands operands_of(const lw_op_call *c)
{
    const char *op = c->node->op;
    lw_cuda_operands o = {.alpha = 1};
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

bool lw_cuda_symmetric(const lw_tensor *t, const lw_tensor *owner)
{
    uint8_t flip = lw_flip_of(owner);
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

static bool product_fits(const lw_cuda_operands *o, product_plan *plan)
{
    if (!lw_is_bytes(o->a) || !lw_is_bytes(o->b))
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
    if (!lw_good_scales(o->a_scale) || o->a_scale->count != 1 || !lw_good_scales(o->b_scale) ||
        (o->b_scale->count != 1 && o->b_scale->count != p->n))
        return false;
    float scale;
    int32_t zero;
    if (o->y_scale && (!lw_one_scale(o->y_scale, &scale) || !lw_is_bytes(o->y_zero) ||
                       !lw_one_zero(o->y_zero, o->y_zero->dtype, &zero)))
        return false;
    if (o->bias && (o->bias->dtype != LW_I32 || (o->bias->count != 1 && o->bias->count != p->n)))
        return false;
    return !o->float_bias || (lw_is_floats(o->float_bias) && o->float_bias->count == p->n);
}

lw_status lw_cuda_epilogue(infer_cuda *x, const lw_cuda_operands *o, lw_cuda_product *p, lw_error *err)
{
    p->flip = lw_flip_of(o->a) * 0x01010101u;
    if (o->a_zero && !o->a_zero->data)
        LW_TRY(lw_cuda_bring(x, o->a_zero, &p->a_zero_at, err));
    else
        p->a_zero = (int8_t)((o->a_zero ? *(const uint8_t *)o->a_zero->data : 0) ^ lw_flip_of(o->a));
    p->b_zero_flip = lw_flip_of(o->b);
    if (o->b_zero) {
        LW_TRY(lw_cuda_bring(x, o->b_zero, &p->b_zero, err));
        p->b_zero_step = o->b_zero->count != 1;
    }
    p->kind = !o->a_scale ? LW_TO_INT32 : o->y_scale ? LW_TO_BYTES : LW_TO_FLOAT;
    LW_TRY(lw_cuda_bring(x, o->bias, &p->bias, err));
    p->bias_step = o->bias && o->bias->count != 1;
    LW_TRY(lw_cuda_bring(x, o->float_bias, &p->float_bias, err));
    p->y_scale = 1;
    p->alpha = o->alpha;
    if (o->a_scale) {
        if (o->a_scale->data)
            p->a_scale = *(const float *)o->a_scale->data;
        else
            LW_TRY(lw_cuda_bring(x, o->a_scale, &p->a_scale_at, err));
        LW_TRY(lw_cuda_bring(x, o->b_scale, &p->b_scale, err));
        p->b_scale_step = o->b_scale->count != 1;
    }
    if (o->y_scale) {
        p->y_scale = *(const float *)o->y_scale->data;
        p->zero = (int32_t)lw_tensor_integer(o->y_zero, 0);
        lw_dtype_range(o->y_zero->dtype, &p->low, &p->high);
    }
    return LW_OK;
}

lw_status lw_cuda_default_zero(infer_cuda *x, lw_cuda_product *p, void **scratch, lw_error *err)
{
    if (p->b_zero || p->b_zero_flip == 0)
        return LW_OK;
    LW_TRY(lw_cuda_allocate(x, scratch, 1, err));
    p->b_zero = *scratch;
    return lw_cuda_fill(x, *scratch, 0, 1, err);
}

static lw_status run_product(infer_cuda *x, const lw_op_call *c, const lw_cuda_operands *o,
                             const product_plan *plan, lw_error *err)
{
    const lw_product *s = &plan->shape;
    lw_status status = LW_OK;
    void *scratch_a = NULL, *sums = NULL, *zero = NULL, *out;
    const lw_cuda_packed *w;
    int64_t rows = plan->folded ? s->batches * s->m : s->m, batches = plan->folded ? 1 : s->batches;
    lw_cuda_product p = {.m = (int)rows, .n = (int)s->n, .k = (int)s->k, .batches = (int)batches};
    LW_TRY_END(lw_cuda_epilogue(x, o, &p, err));
    LW_TRY_END(lw_cuda_default_zero(x, &p, &zero, err));
    lw_dtype dtype = p.kind == LW_TO_INT32 ? LW_I32 : p.kind == LW_TO_FLOAT ? LW_F32 : o->y_zero->dtype;
    LW_TRY_END(lw_cuda_tensor(x, &c->out[0], dtype, s->rank, s->dim, &out, err));
    if (c->out[0]->count == 0)
        goto end;
    lw_cuda_form form = lw_cuda_form_of(batches * s->n, s->k, o->transpose_b ? s->k : 1,
                                        o->transpose_b ? 1 : s->n, lw_flip_of(o->b));
    if (batches > 1) {
        form.inner = s->n;
        form.outer_step = s->k * s->n;
    }
    LW_TRY_END(lw_cuda_packed_weights(x, o->b, &form, &w, err));
    p.b = w->bytes;
    p.b_sum = w->sum;
    p.pitch = (int)form.pitch;
    LW_TRY_END(lw_cuda_bring(x, o->a, &p.a, err));
    p.lda = s->k;
    if (s->k % 16 || o->transpose_a) { /* products read whole, aligned segments */
        lw_cuda_form to =
            lw_cuda_form_of(batches * rows, s->k, o->transpose_a ? 1 : s->k, o->transpose_a ? s->m : 1, 0);
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
    if (!lw_cuda_symmetric(o->b_zero, o->b)) {
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

static lw_status node_product(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_operands o = operands_of(c);
    product_plan plan;
    if (!lw_cuda_accept(x, product_fits(&o, &plan), fits))
        return LW_OK;
    return run_product(x, c, &o, &plan, err);
}

static const char *text_product(int policy, const lw_op_call *c)
{
    lw_cuda_operands o = operands_of(c);
    product_plan plan;
    if (!product_fits(&o, &plan))
        return NULL;
    return lw_cuda_multiply_kernel(policy, plan.folded ? plan.shape.batches * plan.shape.m : plan.shape.m);
}

lw_status lw_cuda_quantized(infer_cuda *x, lw_tensor *from, lw_tensor **y, lw_tensor **scale,
                            lw_tensor **zero, lw_error *err)
{
    const void *a;
    void *to, *s, *z, *scratch = NULL;
    lw_status status = LW_OK;
    LW_TRY(lw_cuda_bring(x, from, &a, err));
    LW_TRY(lw_cuda_tensor(x, y, LW_U8, from->rank, from->dim, &to, err));
    LW_TRY(lw_cuda_tensor(x, scale, LW_F32, 0, NULL, &s, err));
    LW_TRY(lw_cuda_tensor(x, zero, LW_U8, 0, NULL, &z, err));
    LW_TRY_END(lw_cuda_allocate(x, &scratch, 2 * sizeof(uint32_t), err));
    status = lw_cuda_dynamic_quantize(x, from->count, a, to, s, z, scratch, err);
end:
    lw_cuda_release(x, scratch);
    return status;
}

static lw_status node_dynamic_quantize(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    if (!lw_cuda_accept(x, lw_is_floats(lw_in(c, 0)), fits))
        return LW_OK;
    lw_tensor *spare[3] = {NULL, NULL, NULL}, **out[3];
    for (int i = 0; i < 3; i++)
        out[i] = i < c->n_out ? &c->out[i] : &spare[i];
    lw_status status = lw_cuda_quantized(x, lw_in(c, 0), out[0], out[1], out[2], err);
    for (int i = 0; i < 3; i++)
        lw_tensor_release(spare[i]);
    return status;
}

/* DynamicQuantizeMatMul, once A is quantized (or, to see whether it fits, with a stand-in of its shape). */
static lw_cuda_operands dynamic_operands(const lw_op_call *c, lw_tensor *a, lw_tensor *scale, lw_tensor *zero)
{
    return (lw_cuda_operands){.a = a,
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
    if (!lw_is_floats(lw_in(c, 0)))
        return false;
    lw_tensor a = *lw_in(c, 0), scale = {.dtype = LW_F32, .count = 1}, zero = {.dtype = LW_U8, .count = 1};
    a.dtype = LW_U8;
    lw_cuda_operands o = dynamic_operands(c, &a, &scale, &zero);
    return product_fits(&o, plan);
}

static lw_status node_dynamic_product(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    product_plan plan;
    if (!lw_cuda_accept(x, dynamic_fits(c, &plan), fits))
        return LW_OK;
    lw_tensor *a = NULL, *scale = NULL, *zero = NULL;
    lw_status status = lw_cuda_quantized(x, lw_in(c, 0), &a, &scale, &zero, err);
    if (status == LW_OK) {
        lw_cuda_operands o = dynamic_operands(c, a, scale, zero);
        status = run_product(x, c, &o, &plan, err);
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

const lw_cuda_node_row lw_cuda_nodes_products[] = {
    {"", "MatMulInteger", node_product, NULL, text_product},
    {"", "QLinearMatMul", node_product, NULL, text_product},
    {microsoft, "QGemm", node_product, NULL, text_product},
    {microsoft, "MatMulIntegerToFloat", node_product, NULL, text_product},
    {microsoft, "DynamicQuantizeMatMul", node_dynamic_product, NULL, text_dynamic_product},
    {"", "DynamicQuantizeLinear", node_dynamic_quantize, "elementwise", NULL},
    {0}};
