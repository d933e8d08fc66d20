/* infer_cuda_nodes_pool.c - pooling, and functions of bytes that are tables, on the device. */
#include <limits.h>
#include <string.h>

#include "common/fail.h"
#include "infer/infer_cuda_nodes.h"
#include "infer/ops_quant.h"

static const char microsoft[] = "com.microsoft";

/* A thread walks all places of a window, those in the padding too. The host, which leaves those out, takes
 * windows that would keep it long. */
enum { MOST_PLACES = 1 << 16 };

typedef struct pooling {
    lw_cuda_pool p;
    bool whole; /* images, not windows */
    int64_t dim[LW_MAX_RANK];
} pooling;

/* Scale and zero point of the input and of the output, at inputs 1 to 4. */
static bool quantization_of(const lw_op_call *c, lw_cuda_pool *p)
{
    const lw_tensor *t = lw_in(c, 0);
    float x_scale, y_scale;
    if (!lw_is_bytes(t) || !lw_one_scale(lw_in(c, 1), &x_scale) || !lw_one_scale(lw_in(c, 3), &y_scale) ||
        !lw_one_zero(lw_in(c, 2), t->dtype, &p->zero) || !lw_one_zero(lw_in(c, 4), t->dtype, &p->y_zero))
        return false;
    p->scale = x_scale;
    p->y_scale = y_scale;
    lw_dtype_range(t->dtype, &p->low, &p->high);
    return true;
}

static bool pooling_of(const lw_op_call *c, pooling *v)
{
    const lw_tensor *t = lw_in(c, 0);
    const char *op = c->node->op;
    lw_cuda_pool *p = &v->p;
    lw_window w;
    bool quantized = strncmp(op, "QLinear", 7) == 0;
    memset(v, 0, sizeof *v);
    p->is_max = strstr(op, "MaxPool") != NULL;
    v->whole = strstr(op, "Global") != NULL;
    if (c->n_out > 1 || !(lw_is_floats(t) || lw_is_bytes(t)) || t->rank < 3 || t->rank > 5 ||
        lw_node_int(c->node, "channels_last", 0) || (quantized ? !quantization_of(c, p) : false) ||
        (lw_is_bytes(t) && !quantized && !p->is_max))
        return false;
    p->from_type = t->dtype == LW_F32  ? LW_CUDA_FLOATS
                   : t->dtype == LW_I8 ? LW_CUDA_SIGNED
                                       : LW_CUDA_UNSIGNED;
    p->images = t->dim[0] * t->dim[1];
    memcpy(v->dim, t->dim, sizeof v->dim);
    for (int k = 0; k < 3; k++)
        p->in[k] = p->out[k] = 1;
    if (v->whole) {
        int64_t size = lw_tensor_span(t, 2, t->rank);
        if (size >= INT_MAX)
            return false;
        p->in[0] = (int)size;
        p->multiplier = p->scale / (p->y_scale * (float)size);
        for (int k = 2; k < t->rank; k++)
            v->dim[k] = 1;
        return true;
    }
    if (lw_window_of(&w, c->node, t, NULL, NULL) != LW_OK || !lw_cuda_window_fits(&w) ||
        w.kernel_count > MOST_PLACES)
        return false;
    p->count_pads = lw_node_int(c->node, "count_include_pad", 0) != 0;
    for (int k = 0; k < 3; k++) {
        p->in[k] = (int)w.in[k], p->out[k] = (int)w.out[k], p->kernel[k] = (int)w.kernel[k];
        p->stride[k] = (int)w.stride[k], p->dilation[k] = (int)w.dilation[k];
        p->pad[k] = (int)w.pad[k], p->pad_end[k] = (int)w.pad_end[k];
    }
    memcpy(v->dim + 2, w.out, (size_t)w.dims * sizeof *v->dim);
    return true;
}

static lw_status node_pooling(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    pooling v;
    lw_tensor *t = lw_in(c, 0);
    if (!lw_cuda_accept(x, pooling_of(c, &v), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, t, &v.p.from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], t->dtype, t->rank, v.dim, &v.p.to, err));
    return lw_cuda_pooling(x, &v.p, v.whole, err);
}

static lw_status node_by_table(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_pool q;
    lw_cuda_table p;
    lw_tensor *t = lw_in(c, 0);
    void *to;
    if (!lw_cuda_accept(x, quantization_of(c, &q), fits))
        return LW_OK;
    LW_TRY(lw_qlinear_table(c, p.table, err));
    LW_TRY(lw_cuda_bring(x, t, &p.from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], t->dtype, t->rank, t->dim, &to, err));
    p.to = to;
    p.count = p.run = p.apart = t->count;
    return lw_cuda_by_table(x, &p, err);
}

static bool concat_fits(const lw_op_call *c, int *axis, int64_t dim[LW_MAX_RANK])
{
    float scale;
    int32_t zero;
    if (!lw_is_bytes(lw_in(c, 1)) || !lw_one_scale(lw_in(c, 0), &scale) ||
        !lw_one_zero(lw_in(c, 1), lw_in(c, 1)->dtype, &zero) ||
        lw_qlinear_concat_of(c, axis, dim, NULL) != LW_OK)
        return false;
    for (int i = 2; i < c->n_in; i += 3)
        if (lw_in(c, i)->bits || !lw_one_scale(lw_in(c, i + 1), &scale) ||
            !lw_one_zero(lw_in(c, i + 2), lw_in(c, i)->dtype, &zero))
            return false;
    return true;
}

static lw_status node_concat(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    int axis = 0;
    int64_t dim[LW_MAX_RANK];
    void *to;
    if (!lw_cuda_accept(x, concat_fits(c, &axis, dim), fits))
        return LW_OK;
    const lw_tensor *first = lw_in(c, 2);
    int64_t inner = lw_tensor_span(first, axis + 1, first->rank);
    LW_TRY(lw_cuda_tensor(x, &c->out[0], lw_in(c, 1)->dtype, first->rank, dim, &to, err));
    for (int i = 2; i < c->n_in; i += 3) {
        lw_tensor *t = lw_in(c, i);
        lw_cuda_table p = {
            .count = t->count, .run = t->dim[axis] * inner, .apart = dim[axis] * inner, .to = to};
        LW_TRY(lw_qlinear_concat_table(c, i, p.table, err));
        LW_TRY(lw_cuda_bring(x, t, &p.from, err));
        LW_TRY(lw_cuda_by_table(x, &p, err));
        to = (uint8_t *)to + p.run;
    }
    return LW_OK;
}

static bool softmax_fits(const lw_op_call *c)
{
    lw_cuda_pool q;
    int axis;
    const lw_tensor *t = lw_in(c, 0);
    bool flattens = lw_node_int(c->node, "opset", 13) < 13;
    return quantization_of(c, &q) && t->rank > 0 && t->count > 0 &&
           lw_axis(lw_node_int(c->node, "axis", flattens ? 1 : -1), t->rank, &axis, NULL) == LW_OK;
}

static lw_status node_softmax(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_qlinear_softmax p;
    lw_tensor *t = lw_in(c, 0);
    const void *from;
    void *to;
    if (!lw_cuda_accept(x, softmax_fits(c), fits))
        return LW_OK;
    LW_TRY(lw_qlinear_softmax_of(c, &p, err));
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], t->dtype, t->rank, t->dim, &to, err));
    return lw_cuda_softmax_of_bytes(x, &p, t->count, from, to, err);
}

static const char pools[] = "pooling", tables[] = "table";

const lw_cuda_node_row lw_cuda_nodes_pool[] = {
    {"", "MaxPool", node_pooling, pools, NULL},
    {"", "AveragePool", node_pooling, pools, NULL},
    {"", "GlobalMaxPool", node_pooling, pools, NULL},
    {"", "GlobalAveragePool", node_pooling, pools, NULL},
    {microsoft, "QLinearAveragePool", node_pooling, pools, NULL},
    {microsoft, "QLinearGlobalAveragePool", node_pooling, pools, NULL},
    {microsoft, "QLinearSigmoid", node_by_table, tables, NULL},
    {microsoft, "QLinearLeakyRelu", node_by_table, tables, NULL},
    {microsoft, "QLinearSoftmax", node_softmax, tables, NULL},
    {microsoft, "QLinearConcat", node_concat, tables, NULL},
    {0}};
