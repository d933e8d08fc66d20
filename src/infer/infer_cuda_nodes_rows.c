/* infer_cuda_nodes_rows.c - softmax, layer normalization and means on the device. */
#include <limits.h>

#include "infer/infer_cuda_nodes.h"
#include "common/fail.h"

static const char microsoft[] = "com.microsoft";

/* Rows of a softmax; false where the rows do not lie together. */
static bool softmax_rows(const lw_op_call *c, int64_t *rows, int64_t *n)
{
    const lw_tensor *x = lw_in(c, 0);
    int axis;
    bool flattens = c->node->opset < 13;
    if (!lw_is_floats(x) || x->rank < 1 ||
        lw_axis(lw_node_int(c->node, "axis", flattens ? 1 : -1), x->rank, &axis, NULL) != LW_OK)
        return false;
    *n = flattens ? lw_tensor_span(x, axis, x->rank) : x->dim[axis];
    *rows = *n ? x->count / *n : 0;
    return (flattens || lw_tensor_span(x, axis + 1, x->rank) == 1) && *n < INT_MAX && *rows < INT_MAX;
}

static lw_status node_softmax(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    int64_t rows = 0, n = 0;
    lw_tensor *t = lw_in(c, 0);
    const void *from;
    void *to;
    if (!lw_cuda_accept(x, softmax_rows(c, &rows, &n), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, t->rank, t->dim, &to, err));
    return lw_cuda_softmax(x, rows, n, from, to, err);
}

static bool norm_fits(const lw_tensor *x, const lw_tensor *scale, const lw_tensor *bias, int axis)
{
    int64_t n = lw_tensor_span(x, axis, x->rank);
    return lw_is_floats(scale) && scale->count == n && (!bias || (lw_is_floats(bias) && bias->count == n)) &&
           n > 0 && n < INT_MAX && x->count / n < INT_MAX;
}

static bool layer_norm_fits(const lw_op_call *c)
{
    const lw_tensor *x = lw_in(c, 0);
    int axis;
    return lw_is_floats(x) && lw_axis(lw_node_int(c->node, "axis", -1), x->rank, &axis, NULL) == LW_OK &&
           norm_fits(x, lw_in(c, 1), lw_in(c, 2), axis);
}

static lw_status node_layer_norm(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    if (!lw_cuda_accept(x, layer_norm_fits(c), fits))
        return LW_OK;
    lw_tensor *t = lw_in(c, 0);
    int axis = 0;
    int64_t dim[LW_MAX_RANK];
    void *y, *mean = NULL, *inverse = NULL;
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", -1), t->rank, &axis, err));
    lw_cuda_norm p = {.n = lw_tensor_span(t, axis, t->rank),
                      .epsilon = lw_node_float(c->node, "epsilon", 1e-5f)};
    p.rows = t->count / p.n;
    for (int k = 0; k < t->rank; k++)
        dim[k] = k < axis ? t->dim[k] : 1;
    LW_TRY(lw_cuda_bring(x, t, &p.x, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 1), &p.scale, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 2), &p.bias, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, t->rank, t->dim, &y, err));
    if (c->n_out > 1)
        LW_TRY(lw_cuda_tensor(x, &c->out[1], LW_F32, t->rank, dim, &mean, err));
    if (c->n_out > 2)
        LW_TRY(lw_cuda_tensor(x, &c->out[2], LW_F32, t->rank, dim, &inverse, err));
    p.y = y, p.mean = mean, p.inverse = inverse;
    return lw_cuda_layer_norm(x, &p, err);
}

static bool skip_layer_norm_fits(const lw_op_call *c)
{
    const lw_tensor *x = lw_in(c, 0), *skip = lw_in(c, 1), *bias = lw_in(c, 4);
    return lw_is_floats(x) && lw_is_floats(skip) && x->rank >= 1 && x->count == skip->count &&
           (!bias || (lw_is_floats(bias) && bias->count == x->dim[x->rank - 1])) &&
           norm_fits(x, lw_in(c, 2), lw_in(c, 3), x->rank - 1) && (c->n_out < 2 || c->node->out[1] < 0) &&
           (c->n_out < 3 || c->node->out[2] < 0);
}

static lw_status node_skip_layer_norm(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    if (!lw_cuda_accept(x, skip_layer_norm_fits(c), fits))
        return LW_OK;
    lw_tensor *t = lw_in(c, 0);
    void *y, *sum = NULL;
    lw_cuda_norm p = {.n = t->dim[t->rank - 1], .epsilon = lw_node_float(c->node, "epsilon", 1e-12f)};
    p.rows = t->count / p.n;
    LW_TRY(lw_cuda_bring(x, t, &p.x, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 1), &p.skip, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 2), &p.scale, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 3), &p.bias, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 4), &p.skip_bias, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, t->rank, t->dim, &y, err));
    if (c->n_out > 3)
        LW_TRY(lw_cuda_tensor(x, &c->out[3], LW_F32, t->rank, t->dim, &sum, err));
    p.y = y, p.sum = sum;
    return lw_cuda_layer_norm(x, &p, err);
}

/* The mean over the last `out` dimensions: false for others. */
static bool mean_of(const lw_op_call *c, int *out)
{
    const lw_tensor *x = lw_in(c, 0), *list = lw_in(c, 1);
    int64_t axes[LW_MAX_RANK];
    bool reduced[LW_MAX_RANK] = {false};
    int n;
    if (!lw_is_floats(x) || (list && !list->data) || x->count == 0 ||
        lw_int_list(c, 1, "axes", axes, LW_MAX_RANK, &n, NULL) != LW_OK || n == 0)
        return false;
    for (int i = 0; i < n; i++) {
        int axis;
        if (lw_axis(axes[i], x->rank, &axis, NULL) != LW_OK)
            return false;
        reduced[axis] = true;
    }
    *out = 0;
    while (*out < x->rank && reduced[x->rank - 1 - *out])
        ++*out;
    for (int k = 0; k < x->rank - *out; k++)
        if (reduced[k])
            return false;
    return *out > 0 && lw_tensor_span(x, x->rank - *out, x->rank) < INT_MAX;
}

static lw_status node_mean(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    int last = 0, rank;
    int64_t dim[LW_MAX_RANK];
    const void *from;
    void *to;
    if (!lw_cuda_accept(x, mean_of(c, &last), fits))
        return LW_OK;
    int64_t n = lw_tensor_span(t, t->rank - last, t->rank);
    for (rank = 0; rank < t->rank - last; rank++)
        dim[rank] = t->dim[rank];
    if (lw_node_int(c->node, "keepdims", 1))
        for (; rank < t->rank; rank++)
            dim[rank] = 1;
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, rank, dim, &to, err));
    return lw_cuda_row_means(x, t->count / n, n, from, to, err);
}

static const char norm[] = "layer norm";

const lw_cuda_node_row lw_cuda_nodes_rows[] = {
    {"", "Softmax", node_softmax, "softmax", NULL},
    {"", "LayerNormalization", node_layer_norm, norm, NULL},
    {microsoft, "SkipLayerNormalization", node_skip_layer_norm, norm, NULL},
    {"", "ReduceMean", node_mean, "reduction", NULL},
    {0}};
