/* op.h - the table of operators: what ONNX calls a node's type, with the versions of its definition. */
#ifndef LW_OP_H
#define LW_OP_H

#include "infer/infer_backend.h"
#include "infer/model.h"

/* One node about to run. in[i] is NULL for an optional input that is left out; out[i] is to be set to a new
 * tensor (or left NULL for an output that nothing names). */
typedef struct lw_op_call {
    const lw_node *node;
    lw_tensor *const *in;
    int n_in;
    lw_tensor **out;
    int n_out;
    const lw_infer_backend *backend;
    lw_pool *pool;
    struct lw_keeper **keeper; /* the node's; NULL: nothing is kept */
    uint64_t constant; /* bit i: in[i] is the same tensor at every run of this node; of the first 64 */
} lw_op_call;

typedef struct lw_op {
    const char *domain, *name;
    int since, until; /* versions of the domain's operator set whose definition this is; until 0: open */
    int least_in, most_in;
    lw_status (*run)(const lw_op_call *c, lw_error *err);
    const char *kernel; /* for --describe: what does the work */
    /* At load, where in[i] is set only for constants: refuses what could go wrong with the actual weights.
     * May be NULL. */
    lw_status (*check)(const lw_op_call *c, lw_error *err);
} lw_op;

/* NULL: no such operator here, or not in this version. */
const lw_op *lw_op_find(const char *domain, const char *name, int opset);
/* Any version of it (to tell an unknown operator from an unsupported version); NULL: none. */
const lw_op *lw_op_find_any(const char *domain, const char *name);

/* The operators of each ops_*.c; a row with name NULL ends a list. */
extern const lw_op lw_ops_quantize[], lw_ops_quant_product[], lw_ops_quant_conv[], lw_ops_qlinear[],
    lw_ops_elementwise[], lw_ops_shape[], lw_ops_linear[], lw_ops_recurrent[], lw_ops_reduce[],
    lw_ops_attention[], lw_ops_resize[], lw_ops_deconv[], lw_ops_einsum[], lw_ops_nbits[], lw_ops_scatter[];

/* ---- for the operators ---- */

/* Input i, or NULL. */
static inline lw_tensor *lw_in(const lw_op_call *c, int i)
{
    return i < c->n_in ? c->in[i] : NULL;
}

/* Where a backend may keep what it makes of the constant input `input`: slot `slot` of `n` (the same n at
 * every run); NULL where the input may change or memory is short. */
lw_kept *lw_call_keep(const lw_op_call *c, int input, int slot, int n);

/* A negative axis counts from the end. LW_E_INPUT when it lies outside [0, rank) (or rank, where one more is
 * allowed). */
lw_status lw_axis(int64_t axis, int rank, int *out, lw_error *err);

/* The numpy broadcast of two shapes. LW_E_INPUT when they do not agree. */
lw_status lw_broadcast(const lw_tensor *a, const lw_tensor *b, int *rank, int64_t dim[LW_MAX_RANK],
                       lw_error *err);
/* Element strides of `t` seen in a broadcast shape (0 along repeated dimensions). */
void lw_broadcast_strides(const lw_tensor *t, int rank, int64_t stride[LW_MAX_RANK]);

/* Integers from an input tensor, or from an attribute where older versions keep them. At most capacity. */
lw_status lw_int_list(const lw_op_call *c, int input, const char *attribute, int64_t *out, int capacity,
                      int *n, lw_error *err);

/* What Slice takes of its input: element sum index[k] * stride[k] + *offset for each index below dim. */
lw_status lw_slice_of(const lw_op_call *c, int64_t dim[LW_MAX_RANK], int64_t stride[LW_MAX_RANK],
                      int64_t *offset, lw_error *err);
/* How many elements along the axis each of Split's n_out outputs takes. */
lw_status lw_split_of(const lw_op_call *c, int *axis, int64_t *parts, lw_error *err);

/* LW_E_INPUT unless t holds int32 or int64; element i of it, a place among `limit` (negative ones count from
 * the end), or LW_E_INPUT. */
lw_status lw_want_indices(const lw_tensor *t, lw_error *err);
lw_status lw_checked_index(const lw_tensor *indices, int64_t i, int64_t limit, int64_t *out, lw_error *err);

/* Memory for rows x columns elements, uninitialised. LW_E_NOMEM also where their number overflows. */
lw_status lw_room(void *out, int64_t rows, int64_t columns, size_t element, lw_error *err);

/* LW_E_INPUT unless t is there and has this dtype. */
lw_status lw_want(const lw_tensor *t, lw_dtype dtype, const char *what, lw_error *err);
/* LW_E_INPUT unless the bias is left out (NULL) or has this dtype and n elements. */
lw_status lw_want_bias(const lw_tensor *bias, lw_dtype dtype, int64_t n, lw_error *err);

lw_status lw_tensor_read_pb(lw_tensor **out, const char *path, lw_error *err); /* an ONNX TensorProto file */

#endif
