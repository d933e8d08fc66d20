/* ops_recurrent.c - RNN, GRU and LSTM: float weights, and 8-bit ones that multiply what is quantized on the
 * fly (com.microsoft DynamicQuantizeLSTM, and the same for GRU).
 *
 * The products of all time steps with W are one matrix product; each step then adds the product of the states
 * of the whole batch with R. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "common/real.h"
#include "infer/op.h"
#include "infer/product.h"
#include "infer/quant.h"

typedef struct activation {
    float (*f)(float x, float alpha, float beta);
    float alpha, beta;
} activation;

static float a_sigmoid(float x, float alpha, float beta)
{
    (void)alpha, (void)beta;
    return 1 / (1 + expf(-x));
}
static float a_tanh(float x, float alpha, float beta)
{
    (void)alpha, (void)beta;
    return lw_tanh(x);
}
static float a_relu(float x, float alpha, float beta)
{
    (void)alpha, (void)beta;
    return x > 0 ? x : 0;
}
static float a_affine(float x, float alpha, float beta)
{
    return alpha * x + beta;
}
static float a_leaky_relu(float x, float alpha, float beta)
{
    (void)beta;
    return x < 0 ? alpha * x : x;
}
static float a_thresholded_relu(float x, float alpha, float beta)
{
    (void)beta;
    return x > alpha ? x : 0;
}
static float a_scaled_tanh(float x, float alpha, float beta)
{
    return alpha * lw_tanh(beta * x);
}
static float a_hard_sigmoid(float x, float alpha, float beta)
{
    return fminf(fmaxf(alpha * x + beta, 0), 1);
}
static float a_elu(float x, float alpha, float beta)
{
    (void)beta;
    return x < 0 ? alpha * (expf(x) - 1) : x;
}
static float a_softsign(float x, float alpha, float beta)
{
    (void)alpha, (void)beta;
    return x / (1 + fabsf(x));
}
static float a_softplus(float x, float alpha, float beta)
{
    (void)alpha, (void)beta;
    return logf(1 + expf(x));
}

static const struct {
    const char *name;
    float (*f)(float, float, float);
    float alpha, beta; /* defaults */
    int parameters;    /* how many of the node's lists it takes */
} known[] = {{"Sigmoid", a_sigmoid, 0, 0, 0},
             {"Tanh", a_tanh, 0, 0, 0},
             {"Relu", a_relu, 0, 0, 0},
             {"Affine", a_affine, 1, 0, 2},
             {"LeakyRelu", a_leaky_relu, 0.01f, 0, 1},
             {"ThresholdedRelu", a_thresholded_relu, 1, 0, 1},
             {"ScaledTanh", a_scaled_tanh, 1, 1, 2},
             {"HardSigmoid", a_hard_sigmoid, 0.2f, 0.5f, 2},
             {"Elu", a_elu, 1, 0, 1},
             {"Softsign", a_softsign, 0, 0, 0},
             {"Softplus", a_softplus, 0, 0, 0}};

/* The kinds: gates, activations of one direction and their defaults. */
typedef enum cell_kind { RNN, GRU, LSTM } cell_kind;
static const int gates_of[] = {1, 3, 4}, activations_of[] = {1, 2, 3};
static const char *const defaults_of[3][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};

/* W or R: float as gates * hidden x depth, or 8-bit as depth x gates * hidden with scales and zero points. */
typedef struct weights {
    const lw_tensor *t;
    int input;              /* of the node */
    const lw_tensor *scale; /* NULL: float weights */
    const lw_tensor *zero;
    int64_t depth;
    int32_t *zeros;    /* of every direction, one or gates * hidden each */
    float *multiplier; /* scratch, gates * hidden */
    bool keep;
} weights;

typedef struct recurrent {
    const lw_op_call *call;
    cell_kind kind;
    int64_t steps, batch, inputs, hidden, directions, wide; /* wide = gates * hidden */
    bool batch_first, reverse_only, after, input_forget;
    float clip; /* 0: none */
    const float *x, *b, *h0, *c0, *p;
    const lw_tensor *lengths;
    weights w, r;
    activation f[2][3];
    /* scratch: of the whole batch */
    float *gates; /* steps x batch x wide: products with W */
    float *back;  /* batch x wide: products with R */
    float *h, *cell, *next, *gated;
    uint8_t *bytes; /* what is quantized on the fly */
    float *packed;  /* steps x batch x inputs, in the order of this direction */
} recurrent;

/* ---- attributes ---------------------------------------------------------------------------------------- */

static const char *nth_text(const lw_attr *a, int i)
{
    const char *s = a->s;
    for (int k = 0; k < i; k++)
        s += strlen(s) + 1;
    return s;
}

static lw_status activations(recurrent *n, lw_error *err)
{
    const lw_node *node = n->call->node;
    const lw_attr *names = lw_node_attr(node, "activations"),
                  *alphas = lw_node_attr(node, "activation_alpha"),
                  *betas = lw_node_attr(node, "activation_beta");
    int each = activations_of[n->kind], at_alpha = 0, at_beta = 0;
    if (names && (names->kind != LW_ATTR_STRINGS || names->n != each * n->directions))
        return lw_fail(err, LW_E_INPUT, "%lld activations where %lld belong", (long long)names->n,
                       (long long)(each * n->directions));
    if ((alphas && alphas->kind != LW_ATTR_FLOATS) || (betas && betas->kind != LW_ATTR_FLOATS))
        return lw_fail(err, LW_E_INPUT, "activation_alpha and activation_beta must be lists of floats");
    for (int i = 0; i < each * n->directions; i++) {
        const char *name = names ? nth_text(names, i) : defaults_of[n->kind][i % each];
        size_t k = 0;
        while (k < sizeof known / sizeof *known && strcasecmp(known[k].name, name) != 0)
            k++;
        if (k == sizeof known / sizeof *known)
            return lw_fail(err, LW_E_INPUT, "activation %s is not supported", name);
        activation *a = &n->f[i / each][i % each];
        *a = (activation){known[k].f, known[k].alpha, known[k].beta};
        if (known[k].parameters > 0 && alphas && at_alpha < alphas->n)
            a->alpha = alphas->floats[at_alpha++];
        if (known[k].parameters > 1 && betas && at_beta < betas->n)
            a->beta = betas->floats[at_beta++];
    }
    return LW_OK;
}

static lw_status wrong_shapes(lw_error *err)
{
    return lw_fail(err, LW_E_INPUT, "the shapes of X, W, R, B, P and the initial states do not agree");
}

static bool has(const lw_tensor *t, int64_t count)
{
    return !t || (t->dtype == LW_F32 && t->count == count);
}

static lw_status float_weights(recurrent *n, weights *w, int input, int64_t depth, lw_error *err)
{
    w->t = lw_in(n->call, input);
    w->input = input;
    w->depth = depth;
    LW_TRY(lw_want(w->t, LW_F32, input == 1 ? "W" : "R", err));
    return w->t->rank == 3 && w->t->dim[0] == n->directions && w->t->dim[1] == n->wide &&
                   w->t->dim[2] == depth
               ? LW_OK
               : wrong_shapes(err);
}

static lw_status byte_weights(recurrent *n, weights *w, int input, int at_scale, int64_t depth, lw_error *err)
{
    const lw_op_call *c = n->call;
    w->t = lw_in(c, input);
    w->input = input;
    w->depth = depth;
    w->scale = lw_in(c, at_scale);
    w->zero = lw_in(c, at_scale + 1);
    w->keep = c->constant >> (at_scale + 1) & 1;
    if (!w->t || (w->t->dtype != LW_I8 && w->t->dtype != LW_U8))
        return lw_fail(err, LW_E_INPUT, "%s must be int8 or uint8", input == 1 ? "W" : "R");
    LW_TRY(lw_want(w->scale, LW_F32, "a weight's scale", err));
    LW_TRY(lw_want(w->zero, w->t->dtype, "a weight's zero point", err));
    int64_t some = n->directions, all = n->directions * n->wide;
    if (w->t->rank != 3 || w->t->dim[0] != n->directions || w->t->dim[1] != depth ||
        w->t->dim[2] != n->wide || (w->scale->count != some && w->scale->count != all) ||
        w->zero->count != w->scale->count)
        return wrong_shapes(err);
    for (int64_t i = 0; i < w->scale->count; i++) {
        float s = ((const float *)w->scale->data)[i];
        if (!(s > 0) || !isfinite(s))
            return lw_fail(err, LW_E_INPUT, "a weight's scale is %g: a scale is positive and finite",
                           (double)s);
    }
    if (depth > lw_safe_depth(255 * 255, 0))
        return lw_fail(err, LW_E_RANGE, "sums of %lld products can be more than int32 holds",
                       (long long)depth);
    LW_TRY(lw_room(&w->zeros, w->scale->count, 1, sizeof *w->zeros, err));
    LW_TRY(lw_room(&w->multiplier, n->wide, 1, sizeof *w->multiplier, err));
    for (int64_t i = 0; i < w->scale->count; i++)
        w->zeros[i] = (int32_t)lw_tensor_integer(w->zero, w->zero->count == 1 ? 0 : i);
    return LW_OK;
}

static float *floats_of(const lw_tensor *t)
{
    return t ? t->data : NULL;
}

static lw_status prepare(recurrent *n, const lw_op_call *c, cell_kind kind, bool bytes, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *w = lw_in(c, 1), *r = lw_in(c, 2), *b = lw_in(c, 3), *h0 = lw_in(c, 5),
                    *c0 = kind == LSTM ? lw_in(c, 6) : NULL, *p = kind == LSTM ? lw_in(c, 7) : NULL;
    const char *direction = lw_node_string(c->node, "direction", "forward");
    *n = (recurrent){.call = c, .kind = kind, .lengths = lw_in(c, 4)};
    LW_TRY(lw_want(x, LW_F32, "X", err));
    if (!w || !r || x->rank != 3 || w->rank != 3 || r->rank != 3)
        return lw_fail(err, LW_E_INPUT, "X, W and R have three dimensions");
    bool both = strcasecmp(direction, "bidirectional") == 0;
    n->reverse_only = strcasecmp(direction, "reverse") == 0;
    if (!both && !n->reverse_only && strcasecmp(direction, "forward") != 0)
        return lw_fail(err, LW_E_INPUT, "direction %s is not supported", direction);
    n->directions = both ? 2 : 1;
    n->batch_first = lw_node_int(c->node, "layout", 0) != 0;
    n->after = lw_node_int(c->node, "linear_before_reset", 0) != 0;
    n->input_forget = lw_node_int(c->node, "input_forget", 0) != 0;
    n->clip = lw_node_float(c->node, "clip", 0);
    n->steps = x->dim[n->batch_first ? 1 : 0];
    n->batch = x->dim[n->batch_first ? 0 : 1];
    n->inputs = x->dim[2];
    n->hidden = bytes ? r->dim[1] : r->dim[2];
    n->wide = gates_of[kind] * n->hidden;
    int at_scale = kind == LSTM ? 8 : 6;
    if (bytes) {
        LW_TRY(byte_weights(n, &n->w, 1, at_scale, n->inputs, err));
        LW_TRY(byte_weights(n, &n->r, 2, at_scale + 2, n->hidden, err));
    } else {
        LW_TRY(float_weights(n, &n->w, 1, n->inputs, err));
        LW_TRY(float_weights(n, &n->r, 2, n->hidden, err));
    }
    int64_t states = n->directions * n->batch * n->hidden;
    if (!has(b, n->directions * 2 * n->wide) || !has(h0, states) || !has(c0, states) ||
        !has(p, n->directions * 3 * n->hidden) ||
        (n->lengths && (n->lengths->dtype != LW_I32 || n->lengths->count != n->batch)))
        return wrong_shapes(err);
    LW_TRY(activations(n, err));
    n->x = x->data;
    n->b = floats_of(b);
    n->h0 = floats_of(h0);
    n->c0 = floats_of(c0);
    n->p = floats_of(p);
    int64_t rows = n->steps * n->batch, most = rows * n->inputs, state = n->batch * n->hidden;
    most = most > state ? most : state;
    LW_TRY(lw_room(&n->gates, rows, n->wide, sizeof(float), err));
    LW_TRY(lw_room(&n->back, n->batch, n->wide, sizeof(float), err));
    LW_TRY(lw_room(&n->h, 4, state, sizeof(float), err));
    LW_TRY(lw_room(&n->packed, rows, n->inputs, sizeof(float), err));
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
static lw_status multiply(const recurrent *n, weights *w, int64_t d, int64_t rows, const float *in,
                          int64_t first, int64_t columns, float *out, lw_error *err)
{
    const lw_op_call *c = n->call;
    if (!w->scale) {
        lw_float_gemm g = {.m = rows,
                           .n = columns,
                           .k = w->depth,
                           .a = in,
                           .a_row = w->depth,
                           .a_column = 1,
                           .b = (const float *)w->t->data + (d * n->wide + first) * w->depth,
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
    bool one = w->scale->count == n->directions;
    const float *scales = (const float *)w->scale->data + (one ? d : d * n->wide + first);
    for (int64_t j = 0; j < (one ? 1 : columns); j++)
        w->multiplier[j] = scale * scales[j];
    int32_t a_zero = zero;
    bool whole = first == 0 && columns == n->wide;
    lw_gemm g = {.m = rows,
                 .n = columns,
                 .k = w->depth,
                 .a = n->bytes,
                 .b = (const char *)w->t->data + d * w->depth * n->wide + first,
                 .b_signed = w->t->dtype == LW_I8,
                 .lda = w->depth,
                 .ldb = n->wide,
                 .ldc = columns,
                 .keep_b =
                     whole && w->keep ? lw_call_keep(c, w->input, (int)(2 * d + w->input - 1), 4) : NULL,
                 .a_zero = &a_zero,
                 .b_zero = w->zeros + (one ? d : d * n->wide + first),
                 .a_zero_is_scalar = true,
                 .b_zero_is_scalar = one,
                 .result = {.kind = LW_RESULT_REALS, .multiplier = w->multiplier, .one_multiplier = one},
                 .c = out};
    return c->backend->gemm(c->pool, &g, err);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static float act(const activation *a, float x, float clip)
{
    if (clip > 0)
        x = x < -clip ? -clip : x > clip ? clip : x;
    return a->f(x, a->alpha, a->beta);
}

/* New state of sequence b from its products with W (x) and R (back), biases wb and rb (NULL: none). */
static void step_rnn(const recurrent *n, int64_t d, int64_t b, const float *x, const float *back,
                     const float *bias)
{
    for (int64_t i = 0; i < n->hidden; i++)
        n->h[b * n->hidden + i] =
            act(&n->f[d][0], x[i] + back[i] + (bias ? bias[i] + bias[n->hidden + i] : 0), n->clip);
}

static void step_lstm(const recurrent *n, int64_t d, int64_t b, const float *x, const float *back,
                      const float *bias)
{
    int64_t hd = n->hidden;
    const activation *f = n->f[d];
    const float *p = n->p ? n->p + d * 3 * hd : NULL; /* peepholes of i, o, f */
    float *h = n->h + b * hd, *cell = n->cell + b * hd;
    for (int64_t i = 0; i < hd; i++) {
        float gate[4]; /* i, o, f, c */
        for (int g = 0; g < 4; g++)
            gate[g] =
                x[g * hd + i] + back[g * hd + i] + (bias ? bias[g * hd + i] + bias[(4 + g) * hd + i] : 0);
        float in = act(&f[0], gate[0] + (p ? p[i] * cell[i] : 0), n->clip);
        float forget =
            n->input_forget ? 1 - in : act(&f[0], gate[2] + (p ? p[2 * hd + i] * cell[i] : 0), n->clip);
        cell[i] = forget * cell[i] + in * act(&f[1], gate[3], n->clip);
        h[i] = act(&f[0], gate[1] + (p ? p[hd + i] * cell[i] : 0), n->clip) * act(&f[2], cell[i], 0);
    }
}

/* The first half of a GRU step: update and reset gates (into x), and what the last product takes. */
static void gates_gru(const recurrent *n, int64_t d, int64_t b, float *x, const float *back,
                      const float *bias)
{
    int64_t hd = n->hidden;
    for (int64_t i = 0; i < 2 * hd; i++)
        x[i] = act(&n->f[d][0], x[i] + back[i] + (bias ? bias[i] + bias[3 * hd + i] : 0), n->clip);
    for (int64_t i = 0; i < hd; i++)
        n->gated[b * hd + i] = x[hd + i] * n->h[b * hd + i];
}

/* The second half; back: the product of the third gate. */
static void step_gru(const recurrent *n, int64_t d, int64_t b, const float *x, const float *back,
                     const float *bias)
{
    int64_t hd = n->hidden;
    float *h = n->h + b * hd;
    for (int64_t i = 0; i < hd; i++) {
        float recurrent_bias = bias ? bias[5 * hd + i] : 0,
              from_state = n->after ? x[hd + i] * (back[i] + recurrent_bias) : back[i] + recurrent_bias;
        float next = act(&n->f[d][1], x[2 * hd + i] + (bias ? bias[2 * hd + i] : 0) + from_state, n->clip);
        h[i] = (1 - x[i]) * next + x[i] * h[i];
    }
}

static int64_t length_of(const recurrent *n, int64_t b)
{
    int64_t length = n->lengths ? ((const int32_t *)n->lengths->data)[b] : n->steps;
    return length < 0 ? 0 : length > n->steps ? n->steps : length;
}

/* Where step s of sequence b is in X and Y, for direction d. */
static int64_t time_of(const recurrent *n, int64_t d, int64_t b, int64_t s)
{
    return d == 1 || n->reverse_only ? length_of(n, b) - 1 - s : s;
}

static lw_status run_direction(recurrent *n, int64_t d, float *y, lw_error *err)
{
    int64_t hd = n->hidden, wide = n->wide, state = n->batch * hd;
    const float *bias = n->b ? n->b + d * 2 * wide : NULL;
    memset(n->packed, 0, (size_t)(n->steps * n->batch * n->inputs) * sizeof(float));
    for (int64_t b = 0; b < n->batch; b++)
        for (int64_t s = 0; s < length_of(n, b); s++) {
            int64_t t = time_of(n, d, b, s), at = n->batch_first ? b * n->steps + t : t * n->batch + b;
            memcpy(n->packed + (s * n->batch + b) * n->inputs, n->x + at * n->inputs,
                   (size_t)n->inputs * sizeof(float));
        }
    for (int64_t b = 0; b < n->batch; b++)
        for (int64_t i = 0; i < hd; i++) { /* states are batch x directions x hidden in layout 1 */
            int64_t at = (n->batch_first ? b * n->directions + d : d * n->batch + b) * hd + i;
            n->h[b * hd + i] = n->h0 ? n->h0[at] : 0;
            n->cell[b * hd + i] = n->c0 ? n->c0[at] : 0;
        }
    LW_TRY(multiply(n, &n->w, d, n->steps * n->batch, n->packed, 0, wide, n->gates, err));
    for (int64_t s = 0; s < n->steps; s++) {
        float *x = n->gates + s * n->batch * wide;
        bool split = n->kind == GRU && !n->after; /* the third gate's product waits for the reset gate */
        int64_t ld = split ? 2 * hd : wide;
        LW_TRY(multiply(n, &n->r, d, n->batch, n->h, 0, ld, n->back, err));
        memcpy(n->next, n->h, (size_t)state * sizeof(float));
        if (n->kind == GRU)
            for (int64_t b = 0; b < n->batch; b++)
                gates_gru(n, d, b, x + b * wide, n->back + b * ld, bias);
        if (split) {
            LW_TRY(multiply(n, &n->r, d, n->batch, n->gated, 2 * hd, hd, n->back, err));
            ld = hd;
        }
        for (int64_t b = 0; b < n->batch; b++) {
            if (s >= length_of(n, b))
                continue;
            const float *back = n->back + b * ld, *gate = x + b * wide;
            if (n->kind == RNN)
                step_rnn(n, d, b, gate, back, bias);
            else if (n->kind == LSTM)
                step_lstm(n, d, b, gate, back, bias);
            else
                step_gru(n, d, b, gate, split ? back : back + 2 * hd, bias);
            int64_t t = time_of(n, d, b, s), at = n->batch_first ? (b * n->steps + t) * n->directions + d
                                                                 : (t * n->directions + d) * n->batch + b;
            memcpy(y + at * hd, n->h + b * hd, (size_t)hd * sizeof(float));
        }
    }
    return LW_OK;
}

static lw_status run(const lw_op_call *c, cell_kind kind, bool bytes, lw_error *err)
{
    recurrent n;
    lw_status status = prepare(&n, c, kind, bytes, err);
    if (status != LW_OK) {
        release(&n);
        return status;
    }
    int states = kind == LSTM ? 2 : 1;
    int64_t all[4] = {n.steps, n.directions, n.batch, n.hidden}, some[3] = {n.directions, n.batch, n.hidden};
    if (n.batch_first) {
        all[0] = n.batch, all[1] = n.steps, all[2] = n.directions;
        some[0] = n.batch, some[1] = n.directions;
    }
    LW_TRY_END(lw_tensor_new(&c->out[0], LW_F32, 4, all, err));
    memset(c->out[0]->data, 0, (size_t)c->out[0]->count * sizeof(float));
    for (int k = 1; k <= states && k < c->n_out; k++)
        LW_TRY_END(lw_tensor_new(&c->out[k], LW_F32, 3, some, err));
    for (int64_t d = 0; d < n.directions; d++) {
        LW_TRY_END(run_direction(&n, d, c->out[0]->data, err));
        for (int64_t b = 0; b < n.batch; b++) {
            int64_t at = (n.batch_first ? b * n.directions + d : d * n.batch + b) * n.hidden;
            for (int k = 1; k <= states && k < c->n_out; k++)
                memcpy((float *)c->out[k]->data + at, (k == 1 ? n.h : n.cell) + b * n.hidden,
                       (size_t)n.hidden * sizeof(float));
        }
    }
end:
    release(&n);
    return status;
}

static lw_status run_rnn(const lw_op_call *c, lw_error *err)
{
    return run(c, RNN, false, err);
}

static lw_status run_gru(const lw_op_call *c, lw_error *err)
{
    return run(c, GRU, false, err);
}

static lw_status run_lstm(const lw_op_call *c, lw_error *err)
{
    return run(c, LSTM, false, err);
}

static lw_status run_dynamic_lstm(const lw_op_call *c, lw_error *err)
{
    return run(c, LSTM, true, err);
}

static lw_status run_dynamic_gru(const lw_op_call *c, lw_error *err)
{
    return run(c, GRU, true, err);
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
