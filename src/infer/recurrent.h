/* recurrent.h - RNN, GRU and LSTM nodes: what their attributes and inputs say. */
#ifndef LW_RECURRENT_H
#define LW_RECURRENT_H

#include "infer/gates.h"
#include "infer/op.h"

typedef enum lw_cell { LW_RNN, LW_GRU, LW_LSTM } lw_cell;

/* W or R: float as gates * hidden x depth, or 8-bit as depth x gates * hidden with scales and zero points. */
typedef struct lw_recurrent_weights {
    lw_tensor *t;
    int input;        /* of the node */
    lw_tensor *scale; /* NULL: float weights; else one for each direction, or for each of its columns */
    lw_tensor *zero;  /* as many */
    int64_t depth;
} lw_recurrent_weights;

typedef struct lw_recurrent {
    lw_cell kind;
    int64_t steps, batch, inputs, hidden, directions, wide; /* wide = gates * hidden */
    bool batch_first, reverse_only, after, input_forget;
    float clip;                               /* 0: none */
    lw_tensor *x, *b, *h0, *c0, *p, *lengths; /* NULL but for x: none */
    lw_recurrent_weights w, r;
    lw_gate f[2][3];
} lw_recurrent;

/* Everything is checked but lengths; scales only where the host has them. */
lw_status lw_recurrent_of(lw_recurrent *n, const lw_op_call *c, lw_cell kind, bool bytes, lw_error *err);

/* The shapes of Y and of the states that are left. */
void lw_recurrent_shapes(const lw_recurrent *n, int64_t all[4], int64_t some[3]);

#endif
