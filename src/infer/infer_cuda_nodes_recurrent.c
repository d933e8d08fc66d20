/* infer_cuda_nodes_recurrent.c - RNN, GRU and LSTM on the device. */
#include <limits.h>
#include <string.h>

#include "common/fail.h"
#include "infer/infer_cuda_nodes.h"
#include "infer/infer_cuda_recurrent.h"

static const char microsoft[] = "com.microsoft";

/* Weights of up to so many units leave room for the states of a sequence in any GPU's shared memory (48 KiB).
 */
enum { MOST_UNITS = 4096 };

static bool weights_fit(const lw_recurrent_weights *w)
{
    return w->t->bits == 0 && (!w->scale || (lw_good_scales(w->scale) && w->scale->data && w->zero->data));
}

static bool recurrent_fits(const lw_op_call *c, lw_recurrent *n)
{
    const char *op = c->node->op;
    lw_cell kind = strstr(op, "LSTM") ? LW_LSTM : strstr(op, "GRU") ? LW_GRU : LW_RNN;
    int64_t cells, inputs;
    if (lw_recurrent_of(n, c, kind, strncmp(op, "Dynamic", 7) == 0, NULL) != LW_OK || !weights_fit(&n->w) ||
        !weights_fit(&n->r))
        return false;
    for (int d = 0; d < n->directions; d++)
        for (int i = 0; i < 3; i++)
            if (n->f[d][i].kind == LW_GATE_SOFTPLUS)
                return false;
    return n->steps > 0 && n->batch > 0 && n->inputs > 0 && n->hidden > 0 && n->hidden <= MOST_UNITS &&
           !__builtin_mul_overflow(n->steps * 2, n->batch * n->wide, &cells) && cells < INT_MAX / 2 &&
           /* as float_product_of(): tiles of rows are a grid's second dimension */
           (n->w.scale || n->steps * n->batch <= (int64_t)65535 * 64) &&
           !__builtin_mul_overflow(n->steps, n->batch * n->inputs, &inputs) && inputs < INT_MAX / 2;
}

/* The weights of both directions as rows of their products. */
static lw_status pack(infer_cuda *x, const lw_recurrent *n, const lw_recurrent_weights *w, lw_cuda_form *form,
                      const lw_cuda_packed **out, lw_error *err)
{
    *form = lw_cuda_form_of(n->directions * n->wide, w->depth, 1, n->wide, lw_flip_of(w->t));
    if (n->directions > 1) {
        form->inner = n->wide;
        form->outer_step = w->depth * n->wide;
    }
    return lw_cuda_packed_weights(x, w->t, form, out, err);
}

typedef struct scratch {
    void *steps, *bytes, *pitched, *sums, *dynamic; /* dynamic: what quantization leaves */
    void *gates, *h, *cell, *gated, *update, *extremes, *arrived;
} scratch;

static void scratch_release(infer_cuda *x, scratch *s)
{
    void *all[] = {s->steps, s->bytes, s->pitched, s->sums,   s->dynamic,  s->gates,
                   s->h,     s->cell,  s->gated,   s->update, s->extremes, s->arrived};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        lw_cuda_release(x, all[i]);
}

/* Products of the steps of direction d, laid out in s->steps, with W: float weights. */
static lw_status multiply_floats(infer_cuda *x, const lw_recurrent *n, int64_t d, const scratch *s, float *to,
                                 lw_error *err)
{
    const float *w;
    LW_TRY(lw_cuda_bring(x, n->w.t, &w, err));
    lw_cuda_float_product p = {.m = n->steps * n->batch,
                               .n = n->wide,
                               .k = n->inputs,
                               .outer = 1,
                               .inner = 1,
                               .a = s->steps,
                               .b = w + d * n->wide * n->inputs,
                               .a_row = n->inputs,
                               .a_column = 1,
                               .b_row = 1,
                               .b_column = n->inputs,
                               .c = to,
                               .alpha = 1};
    return lw_cuda_multiply_floats(x, &p, err);
}

/* The same by 8-bit weights: the steps are quantized first. */
static lw_status multiply_bytes(infer_cuda *x, const lw_recurrent *n, int64_t d, const scratch *s, float *to,
                                lw_error *err)
{
    int64_t rows = n->steps * n->batch, pitch = lw_round_up(n->inputs, LW_CUDA_DEPTH);
    const lw_cuda_packed *w;
    lw_cuda_form form;
    float *scale = s->dynamic;
    uint8_t *zero = (uint8_t *)(scale + 1);
    bool each = n->w.scale->count != n->directions;
    LW_TRY(pack(x, n, &n->w, &form, &w, err));
    LW_TRY(lw_cuda_dynamic_quantize(x, rows * n->inputs, s->steps, s->bytes, scale, zero,
                                    (uint32_t *)(scale + 2), err));
    lw_cuda_product p = {.m = (int)rows,
                         .n = (int)n->wide,
                         .k = (int)n->inputs,
                         .pitch = (int)form.pitch,
                         .a = s->bytes,
                         .lda = n->inputs,
                         .flip = 0x80808080u,
                         .b = w->bytes + d * n->wide * form.pitch,
                         .a_zero_at = zero,
                         .b_sum = w->sum + d * n->wide,
                         .b_zero_step = each,
                         .b_zero_flip = lw_flip_of(n->w.t),
                         .batches = 1,
                         .kind = LW_TO_FLOAT,
                         .y_scale = 1,
                         .alpha = 1,
                         .a_scale_at = scale,
                         .b_scale_step = each,
                         .c = to,
                         .ldc = n->wide};
    LW_TRY(lw_cuda_bring(x, n->w.scale, &p.b_scale, err));
    LW_TRY(lw_cuda_bring(x, n->w.zero, &p.b_zero, err));
    p.b_scale += each ? d * n->wide : d;
    p.b_zero += each ? d * n->wide : d;
    if (n->inputs % 16) { /* products read whole, aligned segments */
        lw_cuda_packing job = {
            .form = lw_cuda_form_of(rows, n->inputs, n->inputs, 1, 0), .from = s->bytes, .to = s->pitched};
        LW_TRY(lw_cuda_pack(x, &job, err));
        p.a = s->pitched;
        p.lda = pitch;
    }
    if (!lw_cuda_symmetric(n->w.zero, n->w.t)) {
        LW_TRY(lw_cuda_row_sums(x, &p, s->sums, err));
        p.a_sum = s->sums;
    }
    return lw_cuda_multiply(x, &p, err);
}

static lw_status take(infer_cuda *x, const lw_recurrent *n, scratch *s, lw_error *err)
{
    int64_t rows = n->steps * n->batch, states = n->directions * n->batch * n->hidden;
    LW_TRY(lw_cuda_allocate(x, &s->steps, rows * n->inputs * 4, err));
    LW_TRY(lw_cuda_allocate(x, &s->gates, n->directions * rows * n->wide * 4, err));
    LW_TRY(lw_cuda_allocate(x, &s->h, 2 * states * 4, err));
    LW_TRY(lw_cuda_allocate(x, &s->cell, states * 4, err));
    if (n->kind == LW_GRU) {
        LW_TRY(lw_cuda_allocate(x, &s->gated, states * 4, err));
        LW_TRY(lw_cuda_allocate(x, &s->update, states * 4, err));
    }
    if (n->w.scale) {
        LW_TRY(lw_cuda_allocate(x, &s->bytes, rows * n->inputs + 16, err));
        LW_TRY(lw_cuda_allocate(x, &s->dynamic, 16, err));
        if (n->inputs % 16)
            LW_TRY(lw_cuda_allocate(x, &s->pitched, rows * lw_round_up(n->inputs, LW_CUDA_DEPTH), err));
        LW_TRY(lw_cuda_allocate(x, &s->sums, rows * 4, err));
    }
    LW_TRY(lw_cuda_allocate(x, &s->arrived, n->directions * 4, err));
    return lw_cuda_fill(x, s->arrived, 0, n->directions * 4, err);
}

static lw_status run(infer_cuda *x, const lw_op_call *c, const lw_recurrent *n, scratch *s, lw_error *err)
{
    int64_t all[4], some[3], rows = n->steps * n->batch;
    void *y, *last[2] = {NULL, NULL};
    lw_cuda_recurrent p = {.kind = n->kind,
                           .steps = (int)n->steps,
                           .batch = (int)n->batch,
                           .hidden = (int)n->hidden,
                           .directions = (int)n->directions,
                           .batch_first = n->batch_first,
                           .reverse_only = n->reverse_only,
                           .after = n->after,
                           .input_forget = n->input_forget,
                           .clip = n->clip,
                           .portable = x->policy == LW_CUDA_INT};
    lw_cuda_steps lay = {
        .steps = p.steps, .batch = p.batch, .inputs = (int)n->inputs, .batch_first = p.batch_first};
    memcpy(p.f, n->f, sizeof p.f);
    lw_recurrent_shapes(n, all, some);
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, 4, all, &y, err));
    for (int k = 1; k < c->n_out && k < (n->kind == LW_LSTM ? 3 : 2); k++)
        LW_TRY(lw_cuda_tensor(x, &c->out[k], LW_F32, 3, some, &last[k - 1], err));
    if (n->lengths)
        LW_TRY(lw_cuda_fill(x, y, 0, c->out[0]->count * 4, err));
    LW_TRY(take(x, n, s, err));
    LW_TRY(lw_cuda_bring(x, n->x, &lay.from, err));
    LW_TRY(lw_cuda_bring(x, n->lengths, &lay.lengths, err));
    lay.to = s->steps;
    for (int64_t d = 0; d < n->directions; d++) {
        float *to = (float *)s->gates + d * rows * n->wide;
        lay.backward = d == 1 || n->reverse_only;
        LW_TRY(lw_cuda_lay_steps(x, &lay, err));
        LW_TRY(n->w.scale ? multiply_bytes(x, n, d, s, to, err) : multiply_floats(x, n, d, s, to, err));
    }
    if (n->r.scale) {
        const lw_cuda_packed *r;
        lw_cuda_form form;
        int64_t bytes = n->directions * lw_recurrent_products(&p) * 8;
        LW_TRY(lw_cuda_allocate(x, &s->extremes, bytes, err));
        LW_TRY(lw_cuda_fill(x, s->extremes, 0, bytes, err));
        LW_TRY(pack(x, n, &n->r, &form, &r, err));
        p.r_bytes = r->bytes;
        p.r_sum = r->sum;
        p.pitch = (int)form.pitch;
        p.r_each = n->r.scale->count != n->directions;
        p.r_flip = lw_flip_of(n->r.t);
        LW_TRY(lw_cuda_bring(x, n->r.scale, &p.r_scale, err));
        LW_TRY(lw_cuda_bring(x, lw_cuda_symmetric(n->r.zero, n->r.t) ? NULL : n->r.zero, &p.r_zero, err));
    } else {
        LW_TRY(lw_cuda_bring(x, n->r.t, &p.r, err));
    }
    LW_TRY(lw_cuda_bring(x, n->b, &p.bias, err));
    LW_TRY(lw_cuda_bring(x, n->p, &p.peep, err));
    LW_TRY(lw_cuda_bring(x, n->h0, &p.h0, err));
    LW_TRY(lw_cuda_bring(x, n->c0, &p.c0, err));
    p.lengths = lay.lengths;
    p.gates = s->gates;
    p.y = y;
    p.last_h = last[0];
    p.last_cell = last[1];
    p.h = s->h;
    p.cell = s->cell;
    p.gated = s->gated;
    p.update = s->update;
    p.extremes = s->extremes;
    p.arrived = s->arrived;
    return lw_cuda_recur(x, &p, err);
}

static lw_status node_recurrent(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_recurrent n;
    scratch s = {0};
    if (!lw_cuda_accept(x, recurrent_fits(c, &n), fits))
        return LW_OK;
    lw_status status = run(x, c, &n, &s, err);
    scratch_release(x, &s);
    return status;
}

static const char *text_recurrent(int policy, const lw_op_call *c)
{
    (void)c;
    return policy == LW_CUDA_INT ? "int8 recurrent" : "int8 recurrent, DP4A";
}

const lw_cuda_node_row lw_cuda_nodes_recurrent[] = {
    {"", "RNN", node_recurrent, "recurrent", NULL},
    {"", "GRU", node_recurrent, "recurrent", NULL},
    {"", "LSTM", node_recurrent, "recurrent", NULL},
    {microsoft, "DynamicQuantizeLSTM", node_recurrent, NULL, text_recurrent},
    {"lanewise", "DynamicQuantizeGRU", node_recurrent, NULL, text_recurrent},
    {0}};
