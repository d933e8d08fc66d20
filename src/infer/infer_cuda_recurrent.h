/* infer_cuda_recurrent.h - RNN, GRU and LSTM on the device, between the node and its kernels. */
#ifndef LW_INFER_CUDA_RECURRENT_H
#define LW_INFER_CUDA_RECURRENT_H

#include "infer/gates.h"
#include "infer/infer_cuda.h"
#include "infer/recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X in the order of a direction's steps: to[step][sequence][input], 0 beyond a sequence's length. */
typedef struct lw_cuda_steps {
    int steps, batch, inputs;
    bool batch_first, backward;
    const int32_t *lengths; /* NULL: all whole */
    const float *from;
    float *to;
} lw_cuda_steps;
lw_status lw_cuda_lay_steps(infer_cuda *x, const lw_cuda_steps *p, lw_error *err);

/* All steps of all directions by blocks that wait for each other after each step. Each has some units' rows
 * of R in its shared memory, and multiplies them by the states of all sequences, which it reads (and, with
 * 8-bit weights, quantizes) anew at each step. */
typedef struct lw_cuda_recurrent {
    lw_cell kind;
    int steps, batch, hidden, directions;
    bool batch_first, reverse_only, after, input_forget;
    float clip;
    lw_gate f[2][3];
    const int32_t *lengths;   /* NULL: all whole */
    const float *gates;       /* [direction][step][sequence][gates x hidden]: products with W */
    const float *bias, *peep; /* as the node has them; NULL: none */
    const float *h0, *c0;     /* the same */
    const float *r;           /* NULL: 8-bit weights; else [direction][gates x hidden][hidden] */
    const uint8_t *r_bytes;   /* signed, in the same order, `pitch` bytes a row */
    int pitch;
    const int32_t *r_sum;  /* of each row */
    const float *r_scale;  /* of each direction, or of each row */
    const uint8_t *r_zero; /* as many; NULL: all 0 */
    bool r_each;
    uint8_t r_flip;            /* makes a zero point signed */
    bool portable;             /* no DP4A */
    float *y;                  /* all 0 where there are lengths */
    float *last_h, *last_cell; /* NULL: not wanted */
    /* scratch */
    float *h;            /* 2 x directions x batch x hidden: before and after a step */
    float *cell, *gated; /* directions x batch x hidden each; gated: of GRU */
    float *update;       /* the same; of GRU */
    uint32_t *extremes;  /* directions x lw_recurrent_products() x 2, all 0 */
    uint32_t *arrived;   /* directions, all 0 */
    /* chosen by lw_cuda_recur() */
    int units, sequences; /* of a block; whose states are in shared memory at a time */
    bool keeps;           /* rows of R in shared memory */
} lw_cuda_recurrent;
/* GRU's third product may wait for the reset gate. */
LW_HD int lw_recurrent_phases(const lw_cuda_recurrent *p)
{
    return p->kind == LW_GRU && !p->after ? 2 : 1;
}

/* Products with R, one after the other, and one more: how often states are looked over. */
LW_HD int64_t lw_recurrent_products(const lw_cuda_recurrent *p)
{
    return (int64_t)p->steps * lw_recurrent_phases(p) + 1;
}

lw_status lw_cuda_recur(infer_cuda *x, const lw_cuda_recurrent *p, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
