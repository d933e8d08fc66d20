/* gates.h - what one unit of RNN, GRU and LSTM computes from its sums, one definition for the host and every
 * device. */
#ifndef LW_GATES_H
#define LW_GATES_H

#include <stdbool.h>
#include "common/hd.h"
#include "common/real.h"

typedef enum lw_gate_kind {
    LW_GATE_SIGMOID,
    LW_GATE_TANH,
    LW_GATE_RELU,
    LW_GATE_AFFINE,
    LW_GATE_LEAKY_RELU,
    LW_GATE_THRESHOLDED_RELU,
    LW_GATE_SCALED_TANH,
    LW_GATE_HARD_SIGMOID,
    LW_GATE_ELU,
    LW_GATE_SOFTSIGN,
    LW_GATE_SOFTPLUS /* by the C library's functions, which are not the device's */
} lw_gate_kind;

typedef struct lw_gate {
    lw_gate_kind kind;
    float alpha, beta;
} lw_gate;

LW_HD float lw_clipped(float x, float clip)
{
    if (clip > 0)
        x = x < -clip ? -clip : x > clip ? clip : x;
    return x;
}

LW_HD_CALLED float lw_gate_of(const lw_gate *g, float x)
{
    switch (g->kind) {
    case LW_GATE_SIGMOID:
        return lw_sigmoid(x);
    case LW_GATE_TANH:
        return lw_tanh(x);
    case LW_GATE_RELU:
        return x > 0 ? x : 0;
    case LW_GATE_AFFINE:
        return g->alpha * x + g->beta;
    case LW_GATE_LEAKY_RELU:
        return x < 0 ? g->alpha * x : x;
    case LW_GATE_THRESHOLDED_RELU:
        return x > g->alpha ? x : 0;
    case LW_GATE_SCALED_TANH:
        return g->alpha * lw_tanh(g->beta * x);
    case LW_GATE_HARD_SIGMOID:
        return fminf(fmaxf(g->alpha * x + g->beta, 0), 1);
    case LW_GATE_ELU:
        return x < 0 ? g->alpha * ((float)lw_exp(x) - 1) : x;
    case LW_GATE_SOFTSIGN:
        return x / (1 + fabsf(x));
    default: /* LW_GATE_SOFTPLUS */
        return logf(1 + expf(x));
    }
}

/* `sum` stands for the products with W and R and both biases. LSTM: sums of the gates i, o, f, c; peep (NULL:
 * none): weights of i, o, f, `apart` from one to the next. */
LW_HD void lw_lstm_unit(const lw_gate f[3], float clip, bool input_forget, const float sum[4],
                        const float *peep, int64_t apart, float *cell, float *h)
{
    float c = *cell;
    float in = lw_gate_of(&f[0], lw_clipped(sum[0] + (peep ? peep[0] * c : 0), clip));
    float forget = input_forget
                       ? 1 - in
                       : lw_gate_of(&f[0], lw_clipped(sum[2] + (peep ? peep[2 * apart] * c : 0), clip));
    c = forget * c + in * lw_gate_of(&f[1], lw_clipped(sum[3], clip));
    *h = lw_gate_of(&f[0], lw_clipped(sum[1] + (peep ? peep[apart] * c : 0), clip)) * lw_gate_of(&f[2], c);
    *cell = c;
}

/* GRU: update and reset gates first; then the new state from them, with what comes of the third gate. */
LW_HD float lw_gru_gate(const lw_gate f[2], float clip, float sum)
{
    return lw_gate_of(&f[0], lw_clipped(sum, clip));
}

/* x: product with W and its bias; back: product with R, of the state (`after`) or of the state times the
 * reset gate; bias: R's. */
LW_HD float lw_gru_unit(const lw_gate f[2], float clip, bool after, float update, float reset, float x,
                        float back, float bias, float h)
{
    float from_state = after ? reset * (back + bias) : back + bias;
    float next = lw_gate_of(&f[1], lw_clipped(x + from_state, clip));
    return (1 - update) * next + update * h;
}

LW_HD float lw_rnn_unit(const lw_gate f[1], float clip, float sum)
{
    return lw_gate_of(&f[0], lw_clipped(sum, clip));
}

/* x + back + (b of W + b of R), as all of them sum it. */
LW_HD float lw_gate_sum(float x, float back, const float *bias, int64_t at, int64_t wide)
{
    return x + back + (bias ? bias[at] + bias[wide + at] : 0);
}

#endif
