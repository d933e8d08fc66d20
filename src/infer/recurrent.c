/* recurrent.c - reading RNN, GRU and LSTM nodes. */
#include "infer/recurrent.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "infer/quant.h"

static const struct {
    const char *name;
    lw_gate_kind kind;
    float alpha, beta; /* defaults */
    int parameters;    /* how many of the node's lists it takes */
} known[] = {{"Sigmoid", LW_GATE_SIGMOID, 0, 0, 0},
             {"Tanh", LW_GATE_TANH, 0, 0, 0},
             {"Relu", LW_GATE_RELU, 0, 0, 0},
             {"Affine", LW_GATE_AFFINE, 1, 0, 2},
             {"LeakyRelu", LW_GATE_LEAKY_RELU, 0.01f, 0, 1},
             {"ThresholdedRelu", LW_GATE_THRESHOLDED_RELU, 1, 0, 1},
             {"ScaledTanh", LW_GATE_SCALED_TANH, 1, 1, 2},
             {"HardSigmoid", LW_GATE_HARD_SIGMOID, 0.2f, 0.5f, 2},
             {"Elu", LW_GATE_ELU, 1, 0, 1},
             {"Softsign", LW_GATE_SOFTSIGN, 0, 0, 0},
             {"Softplus", LW_GATE_SOFTPLUS, 0, 0, 0}};

/* The kinds: gates, activations of one direction and their defaults. */
static const int gates_of[] = {1, 3, 4}, activations_of[] = {1, 2, 3};
static const char *const defaults_of[3][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};

static const char *nth_text(const lw_attr *a, int i)
{
    const char *s = a->s;
    for (int k = 0; k < i; k++)
        s += strlen(s) + 1;
    return s;
}

static lw_status activations(lw_recurrent *n, const lw_node *node, lw_error *err)
{
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
        lw_gate *a = &n->f[i / each][i % each];
        *a = (lw_gate){known[k].kind, known[k].alpha, known[k].beta};
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

static lw_status float_weights(const lw_recurrent *n, const lw_op_call *c, lw_recurrent_weights *w, int input,
                               int64_t depth, lw_error *err)
{
    *w = (lw_recurrent_weights){.t = lw_in(c, input), .input = input, .depth = depth};
    LW_TRY(lw_want(w->t, LW_F32, input == 1 ? "W" : "R", err));
    return w->t->rank == 3 && w->t->dim[0] == n->directions && w->t->dim[1] == n->wide &&
                   w->t->dim[2] == depth
               ? LW_OK
               : wrong_shapes(err);
}

static lw_status byte_weights(const lw_recurrent *n, const lw_op_call *c, lw_recurrent_weights *w, int input,
                              int at_scale, int64_t depth, lw_error *err)
{
    *w = (lw_recurrent_weights){.t = lw_in(c, input),
                                .input = input,
                                .scale = lw_in(c, at_scale),
                                .zero = lw_in(c, at_scale + 1),
                                .depth = depth};
    if (!w->t || (w->t->dtype != LW_I8 && w->t->dtype != LW_U8))
        return lw_fail(err, LW_E_INPUT, "%s must be int8 or uint8", input == 1 ? "W" : "R");
    LW_TRY(lw_want(w->scale, LW_F32, "a weight's scale", err));
    LW_TRY(lw_want(w->zero, w->t->dtype, "a weight's zero point", err));
    int64_t some = n->directions, all = n->directions * n->wide;
    if (w->t->rank != 3 || w->t->dim[0] != n->directions || w->t->dim[1] != depth ||
        w->t->dim[2] != n->wide || (w->scale->count != some && w->scale->count != all) ||
        w->zero->count != w->scale->count)
        return wrong_shapes(err);
    for (int64_t i = 0; w->scale->data && i < w->scale->count; i++) {
        float s = ((const float *)w->scale->data)[i];
        if (!(s > 0) || !isfinite(s))
            return lw_fail(err, LW_E_INPUT, "a weight's scale is %g: a scale is positive and finite",
                           (double)s);
    }
    if (depth > lw_safe_depth(255 * 255, 0))
        return lw_fail(err, LW_E_RANGE, "sums of %lld products can be more than int32 holds",
                       (long long)depth);
    return LW_OK;
}

lw_status lw_recurrent_of(lw_recurrent *n, const lw_op_call *c, lw_cell kind, bool bytes, lw_error *err)
{
    lw_tensor *x = lw_in(c, 0), *w = lw_in(c, 1), *r = lw_in(c, 2);
    const char *direction = lw_node_string(c->node, "direction", "forward");
    *n = (lw_recurrent){.kind = kind,
                        .x = x,
                        .b = lw_in(c, 3),
                        .lengths = lw_in(c, 4),
                        .h0 = lw_in(c, 5),
                        .c0 = kind == LW_LSTM ? lw_in(c, 6) : NULL,
                        .p = kind == LW_LSTM ? lw_in(c, 7) : NULL};
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
    int at_scale = kind == LW_LSTM ? 8 : 6;
    if (bytes) {
        LW_TRY(byte_weights(n, c, &n->w, 1, at_scale, n->inputs, err));
        LW_TRY(byte_weights(n, c, &n->r, 2, at_scale + 2, n->hidden, err));
    } else {
        LW_TRY(float_weights(n, c, &n->w, 1, n->inputs, err));
        LW_TRY(float_weights(n, c, &n->r, 2, n->hidden, err));
    }
    int64_t states = n->directions * n->batch * n->hidden;
    if (!has(n->b, n->directions * 2 * n->wide) || !has(n->h0, states) || !has(n->c0, states) ||
        !has(n->p, n->directions * 3 * n->hidden) ||
        (n->lengths && (n->lengths->dtype != LW_I32 || n->lengths->count != n->batch)))
        return wrong_shapes(err);
    return activations(n, c->node, err);
}

void lw_recurrent_shapes(const lw_recurrent *n, int64_t all[4], int64_t some[3])
{
    all[0] = n->batch_first ? n->batch : n->steps;
    all[1] = n->batch_first ? n->steps : n->directions;
    all[2] = n->batch_first ? n->directions : n->batch;
    all[3] = some[2] = n->hidden;
    some[0] = n->batch_first ? n->batch : n->directions;
    some[1] = n->batch_first ? n->directions : n->batch;
}
