/* ops_recurrent.c - RNN, GRU and LSTM: float weights, and 8-bit ones that multiply what is quantized on the
 * fly (com.microsoft DynamicQuantizeLSTM, and the same for GRU).
 *
 * The products of all time steps with W are one matrix product; each step then adds the product of the states
 * of the whole batch with R. */
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/product.h"
#include "infer/quant.h"
#include "infer/recurrent.h"

/* 8-bit weights as the product takes them. */
typedef struct scaling {
    int32_t *zeros;    /* of every direction, one or gates * hidden each */
    float *multiplier; /* scratch, gates * hidden */
    bool keep;
} scaling;

typedef struct recurrent {
    const lw_op_call *call;
    lw_recurrent s;
    const float *x, *b, *h0, *c0, *p;
    scaling w, r;
    /* scratch: of the whole batch */
    float *gates; /* steps x batch x wide: products with W */
    float *back;  /* batch x wide: products with R */
    float *h, *cell, *next, *gated;
    uint8_t *bytes; /* what is quantized on the fly */
    float *packed;  /* steps x batch x inputs, in the order of this direction */
} recurrent;

static lw_status scaling_of(scaling *s, const recurrent *n, const lw_recurrent_weights *w, int at_scale,
                            lw_error *err)
{
    s->keep = n->call->constant >> (at_scale + 1) & 1;
    LW_TRY(lw_room(&s->zeros, w->scale->count, 1, sizeof *s->zeros, err));
    LW_TRY(lw_room(&s->multiplier, n->s.wide, 1, sizeof *s->multiplier, err));
    for (int64_t i = 0; i < w->scale->count; i++)
        s->zeros[i] = (int32_t)lw_tensor_integer(w->zero, w->zero->count == 1 ? 0 : i);
    return LW_OK;
}

static float *floats_of(const lw_tensor *t)
{
    return t ? t->data : NULL;
}

static lw_status prepare(recurrent *n, const lw_op_call *c, lw_cell kind, bool bytes, lw_error *err)
{
    *n = (recurrent){.call = c};
    LW_TRY(lw_recurrent_of(&n->s, c, kind, bytes, err));
    int at_scale = kind == LW_LSTM ? 8 : 6;
    if (bytes) {
        LW_TRY(scaling_of(&n->w, n, &n->s.w, at_scale, err));
        LW_TRY(scaling_of(&n->r, n, &n->s.r, at_scale + 2, err));
    }
    n->x = n->s.x->data;
    n->b = floats_of(n->s.b);
    n->h0 = floats_of(n->s.h0);
    n->c0 = floats_of(n->s.c0);
    n->p = floats_of(n->s.p);
    int64_t rows = n->s.steps * n->s.batch, most = rows * n->s.inputs, state = n->s.batch * n->s.hidden;
    most = most > state ? most : state;
    LW_TRY(lw_room(&n->gates, rows, n->s.wide, sizeof(float), err));
    LW_TRY(lw_room(&n->back, n->s.batch, n->s.wide, sizeof(float), err));
    LW_TRY(lw_room(&n->h, 4, state, sizeof(float), err));
    LW_TRY(lw_room(&n->packed, rows, n->s.inputs, sizeof(float), err));
    if (bytes)
        LW_TRY(lw_room(&n->bytes, most, 1, 1, err));
    n->cell = n->h + state;
    n->next = n->cell + state;
    n->gated = n->next + state;
    return LW_OK;
}

static void release(recurrent *n)
{
    free(n->gates);
    free(n->back);
    free(n->h);
    free(n->packed);
    free(n->bytes);
    free(n->w.zeros);
    free(n->w.multiplier);
    free(n->r.zeros);
    free(n->r.multiplier);
}

/* ---- products ------------------------------------------------------------------------------------------ */

/* out (rows x columns) = in (rows x depth) times columns [first, first + columns) of the weights of direction
 * d. */
static lw_status multiply(const recurrent *n, const lw_recurrent_weights *w, const scaling *s, int64_t d,
                          int64_t rows, const float *in, int64_t first, int64_t columns, float *out,
                          lw_error *err)
{
    const lw_op_call *c = n->call;
    if (!w->scale) {
        lw_float_gemm g = {.m = rows,
                           .n = columns,
                           .k = w->depth,
                           .a = in,
                           .a_row = w->depth,
                           .a_column = 1,
                           .b = (const float *)w->t->data + (d * n->s.wide + first) * w->depth,
                           .b_row = 1,
                           .b_column = w->depth,
                           .c = out,
                           .ldc = columns,
                           .alpha = 1};
        return lw_float_product(c->pool, &g, err);
    }
    /* as DynamicQuantizeLinear, over all rows */
    float least = 0, largest = 0, scale;
    uint8_t zero;
    for (int64_t i = 0; i < rows * w->depth; i++) {
        least = in[i] < least ? in[i] : least;
        largest = in[i] > largest ? in[i] : largest;
    }
    lw_dynamic_parameters(least, largest, &scale, &zero);
    for (int64_t i = 0; i < rows * w->depth; i++)
        n->bytes[i] = (uint8_t)lw_quantize(in[i], scale, zero, 0, 255);
    bool one = w->scale->count == n->s.directions;
    const float *scales = (const float *)w->scale->data + (one ? d : d * n->s.wide + first);
    for (int64_t j = 0; j < (one ? 1 : columns); j++)
        s->multiplier[j] = scale * scales[j];
    int32_t a_zero = zero;
    bool whole = first == 0 && columns == n->s.wide;
    lw_gemm g = {.m = rows,
                 .n = columns,
                 .k = w->depth,
                 .a = n->bytes,
                 .b = (const char *)w->t->data + d * w->depth * n->s.wide + first,
                 .b_signed = w->t->dtype == LW_I8,
                 .lda = w->depth,
                 .ldb = n->s.wide,
                 .ldc = columns,
                 .keep_b =
                     whole && s->keep ? lw_call_keep(c, w->input, (int)(2 * d + w->input - 1), 4) : NULL,
                 .a_zero = &a_zero,
                 .b_zero = s->zeros + (one ? d : d * n->s.wide + first),
                 .a_zero_is_scalar = true,
                 .b_zero_is_scalar = one,
                 .result = {.kind = LW_RESULT_REALS, .multiplier = s->multiplier, .one_multiplier = one},
                 .c = out};
    return c->backend->gemm(c->pool, &g, err);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* New state of sequence b from its products with W (x) and R (back) and the biases (NULL: none). */
static void step_rnn(const recurrent *n, int64_t d, int64_t b, const float *x, const float *back,
                     const float *bias)
{
    for (int64_t i = 0; i < n->s.hidden; i++)
        n->h[b * n->s.hidden + i] =
            lw_rnn_unit(n->s.f[d], n->s.clip, lw_gate_sum(x[i], back[i], bias, i, n->s.wide));
}

static void step_lstm(const recurrent *n, int64_t d, int64_t b, const float *x, const float *back,
                      const float *bias)
{
    int64_t hd = n->s.hidden;
    const float *p = n->p ? n->p + d * 3 * hd : NULL; /* peepholes of i, o, f */
    for (int64_t i = 0; i < hd; i++) {
        float sum[4]; /* i, o, f, c */
        for (int64_t g = 0; g < 4; g++)
            sum[g] = lw_gate_sum(x[g * hd + i], back[g * hd + i], bias, g * hd + i, n->s.wide);
        lw_lstm_unit(n->s.f[d], n->s.clip, n->s.input_forget, sum, p ? p + i : NULL, hd, &n->cell[b * hd + i],
                     &n->h[b * hd + i]);
    }
}

/* The first half of a GRU step: update and reset gates (into x), and what the last product takes. */
static void gates_gru(const recurrent *n, int64_t d, int64_t b, float *x, const float *back,
                      const float *bias)
{
    int64_t hd = n->s.hidden;
    for (int64_t i = 0; i < 2 * hd; i++)
        x[i] = lw_gru_gate(n->s.f[d], n->s.clip, lw_gate_sum(x[i], back[i], bias, i, n->s.wide));
    for (int64_t i = 0; i < hd; i++)
        n->gated[b * hd + i] = x[hd + i] * n->h[b * hd + i];
}

/* The second half; back: the product of the third gate. */
static void step_gru(const recurrent *n, int64_t d, int64_t b, const float *x, const float *back,
                     const float *bias)
{
    int64_t hd = n->s.hidden;
    float *h = n->h + b * hd;
    for (int64_t i = 0; i < hd; i++)
        h[i] = lw_gru_unit(n->s.f[d], n->s.clip, n->s.after, x[i], x[hd + i],
                           x[2 * hd + i] + (bias ? bias[2 * hd + i] : 0), back[i],
                           bias ? bias[5 * hd + i] : 0, h[i]);
}

static int64_t length_of(const recurrent *n, int64_t b)
{
    int64_t length = n->s.lengths ? ((const int32_t *)n->s.lengths->data)[b] : n->s.steps;
    return length < 0 ? 0 : length > n->s.steps ? n->s.steps : length;
}

/* Where step s of sequence b is in X and Y, for direction d. */
static int64_t time_of(const recurrent *n, int64_t d, int64_t b, int64_t s)
{
    return d == 1 || n->s.reverse_only ? length_of(n, b) - 1 - s : s;
}

static lw_status run_direction(recurrent *n, int64_t d, float *y, lw_error *err)
{
    int64_t hd = n->s.hidden, wide = n->s.wide, state = n->s.batch * hd;
    const float *bias = n->b ? n->b + d * 2 * wide : NULL;
    memset(n->packed, 0, (size_t)(n->s.steps * n->s.batch * n->s.inputs) * sizeof(float));
    for (int64_t b = 0; b < n->s.batch; b++)
        for (int64_t s = 0; s < length_of(n, b); s++) {
            int64_t t = time_of(n, d, b, s), at = n->s.batch_first ? b * n->s.steps + t : t * n->s.batch + b;
            memcpy(n->packed + (s * n->s.batch + b) * n->s.inputs, n->x + at * n->s.inputs,
                   (size_t)n->s.inputs * sizeof(float));
        }
    for (int64_t b = 0; b < n->s.batch; b++)
        for (int64_t i = 0; i < hd; i++) { /* states are batch x directions x hidden in layout 1 */
            int64_t at = (n->s.batch_first ? b * n->s.directions + d : d * n->s.batch + b) * hd + i;
            n->h[b * hd + i] = n->h0 ? n->h0[at] : 0;
            n->cell[b * hd + i] = n->c0 ? n->c0[at] : 0;
        }
    LW_TRY(multiply(n, &n->s.w, &n->w, d, n->s.steps * n->s.batch, n->packed, 0, wide, n->gates, err));
    for (int64_t s = 0; s < n->s.steps; s++) {
        float *x = n->gates + s * n->s.batch * wide;
        bool split =
            n->s.kind == LW_GRU && !n->s.after; /* the third gate's product waits for the reset gate */
        int64_t ld = split ? 2 * hd : wide;
        LW_TRY(multiply(n, &n->s.r, &n->r, d, n->s.batch, n->h, 0, ld, n->back, err));
        memcpy(n->next, n->h, (size_t)state * sizeof(float));
        if (n->s.kind == LW_GRU)
            for (int64_t b = 0; b < n->s.batch; b++)
                gates_gru(n, d, b, x + b * wide, n->back + b * ld, bias);
        if (split) {
            LW_TRY(multiply(n, &n->s.r, &n->r, d, n->s.batch, n->gated, 2 * hd, hd, n->back, err));
            ld = hd;
        }
        for (int64_t b = 0; b < n->s.batch; b++) {
            if (s >= length_of(n, b))
                continue;
            const float *back = n->back + b * ld, *gate = x + b * wide;
            if (n->s.kind == LW_RNN)
                step_rnn(n, d, b, gate, back, bias);
            else if (n->s.kind == LW_LSTM)
                step_lstm(n, d, b, gate, back, bias);
            else
                step_gru(n, d, b, gate, split ? back : back + 2 * hd, bias);
            int64_t t = time_of(n, d, b, s), at = n->s.batch_first
                                                      ? (b * n->s.steps + t) * n->s.directions + d
                                                      : (t * n->s.directions + d) * n->s.batch + b;
            memcpy(y + at * hd, n->h + b * hd, (size_t)hd * sizeof(float));
        }
    }
    return LW_OK;
}

static lw_status run(const lw_op_call *c, lw_cell kind, bool bytes, lw_error *err)
{
    recurrent n;
    lw_status status = prepare(&n, c, kind, bytes, err);
    if (status != LW_OK) {
        release(&n);
        return status;
    }
    int states = kind == LW_LSTM ? 2 : 1;
    int64_t all[4], some[3];
    lw_recurrent_shapes(&n.s, all, some);
    LW_TRY_END(lw_tensor_new(&c->out[0], LW_F32, 4, all, err));
    memset(c->out[0]->data, 0, (size_t)c->out[0]->count * sizeof(float));
    for (int k = 1; k <= states && k < c->n_out; k++)
        LW_TRY_END(lw_tensor_new(&c->out[k], LW_F32, 3, some, err));
    for (int64_t d = 0; d < n.s.directions; d++) {
        LW_TRY_END(run_direction(&n, d, c->out[0]->data, err));
        for (int64_t b = 0; b < n.s.batch; b++) {
            int64_t at = (n.s.batch_first ? b * n.s.directions + d : d * n.s.batch + b) * n.s.hidden;
            for (int k = 1; k <= states && k < c->n_out; k++)
                memcpy((float *)c->out[k]->data + at, (k == 1 ? n.h : n.cell) + b * n.s.hidden,
                       (size_t)n.s.hidden * sizeof(float));
        }
    }
end:
    release(&n);
    return status;
}

static lw_status run_rnn(const lw_op_call *c, lw_error *err)
{
    return run(c, LW_RNN, false, err);
}

static lw_status run_gru(const lw_op_call *c, lw_error *err)
{
    return run(c, LW_GRU, false, err);
}

static lw_status run_lstm(const lw_op_call *c, lw_error *err)
{
    return run(c, LW_LSTM, false, err);
}

static lw_status run_dynamic_lstm(const lw_op_call *c, lw_error *err)
{
    return run(c, LW_LSTM, true, err);
}

static lw_status run_dynamic_gru(const lw_op_call *c, lw_error *err)
{
    return run(c, LW_GRU, true, err);
}

/* The domain "lanewise" holds layers of `lanewise layer` that no standard names. */
const lw_op lw_ops_recurrent[] = {
    {"", "RNN", 7, 0, 3, 6, run_rnn, "recurrent", NULL},
    {"", "GRU", 7, 0, 3, 6, run_gru, "recurrent", NULL},
    {"", "LSTM", 7, 0, 3, 8, run_lstm, "recurrent", NULL},
    {"com.microsoft", "DynamicQuantizeLSTM", 1, 0, 12, 12, run_dynamic_lstm, "int8 recurrent", NULL},
    {"lanewise", "DynamicQuantizeGRU", 1, 0, 10, 10, run_dynamic_gru, "int8 recurrent", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
