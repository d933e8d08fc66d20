/* infer_cuda_nodes.h - what the nodes of the device share. Each either launches kernels, or leaves the node
 * to the CPU row: whatever is unusual, and whatever is wrong, which is refused there. */
#ifndef LW_INFER_CUDA_NODES_H
#define LW_INFER_CUDA_NODES_H

#include "infer/infer_cuda.h"
#include "infer/op.h"
#include "infer/window.h"

/* Runs a node, or leaves it alone (*fits = false). x NULL: only says whether it fits. */
typedef lw_status lw_cuda_node_run(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err);

typedef struct lw_cuda_node_row {
    const char *domain, *op;
    lw_cuda_node_run *run;
    const char *text;                                        /* for --describe */
    const char *(*text_of)(int policy, const lw_op_call *c); /* where it depends on the shapes; else NULL */
} lw_cuda_node_row;

/* The nodes of each infer_cuda_nodes_*.c; op NULL ends a list. */
extern const lw_cuda_node_row lw_cuda_nodes_products[], lw_cuda_nodes_convolution[], lw_cuda_nodes_rows[],
    lw_cuda_nodes_elements[], lw_cuda_nodes_moves[], lw_cuda_nodes_pool[], lw_cuda_nodes_floats[],
    lw_cuda_nodes_recurrent[];

/* Notes whether the node fits; true: it is to run now. */
static inline bool lw_cuda_accept(const infer_cuda *x, bool does, bool *fits)
{
    *fits = does;
    return does && x;
}

/* ---- what inputs are ------------------------------------------------------------------------------- */

static inline bool lw_is_bytes(const lw_tensor *t)
{
    return t && t->bits == 0 && (t->dtype == LW_I8 || t->dtype == LW_U8);
}

static inline bool lw_is_floats(const lw_tensor *t)
{
    return t && t->dtype == LW_F32;
}

/* Exclusive or with this makes a byte signed. */
static inline uint8_t lw_flip_of(const lw_tensor *t)
{
    return t->dtype == LW_U8 ? 0x80 : 0;
}

static inline int64_t lw_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Positive and finite; what only the device knows is taken for that. */
bool lw_good_scales(const lw_tensor *t);
/* One positive scale that the host knows. */
bool lw_one_scale(const lw_tensor *t, float *out);
/* One zero point that the host knows, of the given type; 0 where it is left out. */
bool lw_one_zero(const lw_tensor *t, lw_dtype dtype, int32_t *out);

/* What the host has of shapes and masks it computes with itself. */
static inline bool lw_elsewhere(const lw_tensor *t)
{
    return t && !t->data;
}

/* Stores the device address of t's elements (NULL for no t) in the pointer at `pointer`. */
lw_status lw_cuda_bring(infer_cuda *x, lw_tensor *t, void *pointer, lw_error *err);

/* ---- products and convolutions ------------------------------------------------------------------------ */

/* The inputs of a product, and how they are combined; what an operator leaves out is NULL. */
typedef struct lw_cuda_operands {
    lw_tensor *a, *b, *a_zero, *b_zero;
    bool transpose_a, transpose_b;
    lw_tensor *a_scale, *b_scale, *y_scale, *y_zero; /* a_scale NULL: int32 results */
    float alpha;
    lw_tensor *bias, *float_bias;
} lw_cuda_operands;

/* Rows of `channels` bytes in whole stages. */
lw_cuda_form lw_cuda_form_of(int64_t rows, int64_t channels, int64_t row_step, int64_t channel_step,
                             uint8_t flip);
/* Weights in the form that products read, kept with the tensor for the next time. */
lw_status lw_cuda_packed_weights(infer_cuda *x, lw_tensor *t, const lw_cuda_form *form,
                                 const lw_cuda_packed **out, lw_error *err);
/* Whether all zero points of `owner` are 0 as signed bytes. */
bool lw_cuda_symmetric(const lw_tensor *zero, const lw_tensor *owner);
/* Zero points, bias, scales and the result's type into a product's arguments. */
lw_status lw_cuda_epilogue(infer_cuda *x, const lw_cuda_operands *o, lw_cuda_product *p, lw_error *err);
/* An unsigned weight without a zero point has the zero point 0, which is -128 as a signed byte; in *scratch.
 */
lw_status lw_cuda_default_zero(infer_cuda *x, lw_cuda_product *p, void **scratch, lw_error *err);

/* A float tensor to uint8, its scale and zero point, as DynamicQuantizeLinear, all on the device. */
lw_status lw_cuda_quantized(infer_cuda *x, lw_tensor *from, lw_tensor **y, lw_tensor **scale,
                            lw_tensor **zero, lw_error *err);

/* Whether places inside and around the windows can be counted in int32. */
bool lw_cuda_window_fits(const lw_window *w);

/* ---- elements ---------------------------------------------------------------------------------------- */

/* How the elements of operands meet in a result of the shape dim[0 .. rank). */
typedef struct lw_cuda_broadcast {
    lw_cuda_walk walk;
    int rank;
    int64_t dim[LW_MAX_RANK];
} lw_cuda_broadcast;

/* Of n tensors, 2 or 3; false where they do not agree or are too large for the kernels. */
bool lw_cuda_broadcast_of(lw_cuda_broadcast *b, const lw_tensor *const *t, int n);
/* y = a + b. */
lw_status lw_cuda_add(infer_cuda *x, lw_tensor *a, lw_tensor *b, lw_tensor **y, lw_error *err);

#endif
