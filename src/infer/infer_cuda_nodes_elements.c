/* infer_cuda_nodes_elements.c - elementwise operators and quantization on the device. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/fail.h"
#include "infer/infer_cuda_nodes.h"

static const char microsoft[] = "com.microsoft";

static const struct {
    const char *op;
    lw_cuda_function f;
} functions[] = {{"Add", LW_F_ADD},         {"Sub", LW_F_SUB},
                 {"Mul", LW_F_MUL},         {"Div", LW_F_DIV},
                 {"Pow", LW_F_POW},         {"Min", LW_F_MIN},
                 {"Max", LW_F_MAX},         {"PRelu", LW_F_PRELU},
                 {"Sqrt", LW_F_SQRT},       {"Exp", LW_F_EXP},
                 {"Log", LW_F_LOG},         {"Erf", LW_F_ERF},
                 {"Tanh", LW_F_TANH},       {"Reciprocal", LW_F_RECIPROCAL},
                 {"Sigmoid", LW_F_SIGMOID}, {"Gelu", LW_F_GELU},
                 {"BiasGelu", LW_F_GELU},   {"FastGelu", LW_F_FASTGELU},
                 {"LeakyRelu", LW_F_LEAKY}, {"Relu", LW_F_RELU},
                 {"Neg", LW_F_NEG},         {"Abs", LW_F_ABS}};

static lw_cuda_function function_of(const lw_node *node)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].op, node->op) == 0) {
            if (functions[i].f == LW_F_GELU && strcmp(lw_node_string(node, "approximate", ""), "tanh") == 0)
                return LW_F_FASTGELU;
            return functions[i].f;
        }
    return LW_F_ADD;
}

bool lw_cuda_broadcast_of(lw_cuda_broadcast *b, const lw_tensor *const *t, int n)
{
    int64_t stride[3][LW_MAX_RANK] = {{0}}, size[LW_MAX_RANK] = {1};
    lw_tensor all = {.rank = 0};
    lw_cuda_walk *w = &b->walk;
    memset(w, 0, sizeof *w);
    for (int i = 0; i < n; i++) {
        if (lw_broadcast(&all, t[i], &b->rank, b->dim, NULL) != LW_OK || t[i]->count >= INT_MAX)
            return false;
        all.rank = b->rank;
        memcpy(all.dim, b->dim, sizeof all.dim);
    }
    for (int i = 0; i < n; i++)
        lw_broadcast_strides(t[i], b->rank, stride[i]);
    w->count = 1;
    for (int k = 0; k < b->rank; k++) {
        if (__builtin_mul_overflow(w->count, b->dim[k], &w->count))
            return false;
        if (b->dim[k] == 1)
            continue;
        int last = w->rank - 1;
        bool joins = last >= 0;
        for (int i = 0; i < n && joins; i++)
            joins = w->stride[i][last] == stride[i][k] * b->dim[k];
        if (joins) {
            size[last] *= b->dim[k];
        } else {
            last = w->rank++;
            size[last] = b->dim[k];
        }
        for (int i = 0; i < n; i++)
            w->stride[i][last] = (int32_t)stride[i][k];
    }
    if (w->rank == 0)
        w->rank = 1;
    for (int k = 0; k < w->rank; k++)
        w->dim[k] = lw_divider_of(size[k] > 0 ? (uint32_t)size[k] : 1);
    return w->count < INT_MAX;
}

static bool two_floats(lw_cuda_broadcast *b, const lw_tensor *first, const lw_tensor *second)
{
    const lw_tensor *t[2] = {first, second};
    return lw_is_floats(first) && lw_is_floats(second) && lw_cuda_broadcast_of(b, t, 2);
}

static lw_status binary(infer_cuda *x, lw_cuda_function f, lw_tensor *first, lw_tensor *second,
                        const lw_cuda_broadcast *b, lw_tensor **y, lw_error *err)
{
    const void *p, *q;
    void *to;
    LW_TRY(lw_cuda_bring(x, first, &p, err));
    LW_TRY(lw_cuda_bring(x, second, &q, err));
    LW_TRY(lw_cuda_tensor(x, y, LW_F32, b->rank, b->dim, &to, err));
    return lw_cuda_binary(x, f, &b->walk, p, q, to, err);
}

lw_status lw_cuda_add(infer_cuda *x, lw_tensor *first, lw_tensor *second, lw_tensor **y, lw_error *err)
{
    lw_cuda_broadcast b;
    if (!two_floats(&b, first, second))
        return lw_fail(err, LW_E_INTERNAL, "shapes that do not fit");
    return binary(x, LW_F_ADD, first, second, &b, y, err);
}

static lw_status node_binary(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_broadcast b;
    if (!lw_cuda_accept(x, c->n_in == 2 && two_floats(&b, lw_in(c, 0), lw_in(c, 1)), fits))
        return LW_OK;
    return binary(x, function_of(c->node), lw_in(c, 0), lw_in(c, 1), &b, &c->out[0], err);
}

static lw_status unary(infer_cuda *x, lw_cuda_function f, lw_tensor *t, float p, float q, lw_tensor **y,
                       lw_error *err)
{
    const void *from;
    void *to;
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, y, LW_F32, t->rank, t->dim, &to, err));
    return lw_cuda_unary(x, f, t->count, from, p, q, to, err);
}

static lw_status node_unary(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    if (!lw_cuda_accept(x, lw_is_floats(lw_in(c, 0)), fits))
        return LW_OK;
    return unary(x, function_of(c->node), lw_in(c, 0), lw_node_float(c->node, "alpha", 0.01f), 0, &c->out[0],
                 err);
}

static lw_status node_with_bias(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_broadcast b;
    lw_tensor *sum = NULL;
    if (!lw_in(c, 1))
        return node_unary(x, c, fits, err);
    if (!lw_cuda_accept(x, c->n_in == 2 && two_floats(&b, lw_in(c, 0), lw_in(c, 1)), fits))
        return LW_OK;
    lw_status status = binary(x, LW_F_ADD, lw_in(c, 0), lw_in(c, 1), &b, &sum, err);
    if (status == LW_OK)
        status = unary(x, function_of(c->node), sum, 0, 0, &c->out[0], err);
    lw_tensor_release(sum);
    return status;
}

static bool clip_of(const lw_op_call *c, float *low, float *high)
{
    const lw_tensor *least = lw_in(c, 1), *most = lw_in(c, 2);
    bool old = c->node->opset < 11;
    if (!lw_is_floats(lw_in(c, 0)) ||
        (least && (!lw_is_floats(least) || least->count != 1 || !least->data)) ||
        (most && (!lw_is_floats(most) || most->count != 1 || !most->data)))
        return false;
    *low = least ? *(const float *)least->data : old ? lw_node_float(c->node, "min", -INFINITY) : -INFINITY;
    *high = most ? *(const float *)most->data : old ? lw_node_float(c->node, "max", INFINITY) : INFINITY;
    return true;
}

static lw_status node_clip(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    float low = 0, high = 0;
    if (!lw_cuda_accept(x, clip_of(c, &low, &high), fits))
        return LW_OK;
    return unary(x, LW_F_CLIP, lw_in(c, 0), low, high, &c->out[0], err);
}

/* Sums to floats; other integers to floats or bool where the host does not have them. */
static bool cast_fits(const lw_op_call *c, bool *to_bool)
{
    enum { ONNX_FLOAT = 1, ONNX_BOOL = 9 };
    const lw_tensor *t = lw_in(c, 0);
    int64_t to = lw_node_int(c->node, "to", 0);
    *to_bool = to == ONNX_BOOL;
    if (!t || t->bits || (to != ONNX_FLOAT && to != ONNX_BOOL))
        return false;
    return (t->dtype == LW_I32 && !*to_bool) ||
           (lw_elsewhere(t) && (t->dtype == LW_I64 || t->dtype == LW_I32 || t->dtype == LW_I8 ||
                                t->dtype == LW_U8 || t->dtype == LW_BOOL));
}

static lw_status node_cast(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    bool to_bool;
    lw_tensor *t = lw_in(c, 0);
    const void *from;
    void *to;
    if (!lw_cuda_accept(x, cast_fits(c, &to_bool), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], to_bool ? LW_BOOL : LW_F32, t->rank, t->dim, &to, err));
    return lw_cuda_cast(x, t->count, from, (int)lw_dtype_size(t->dtype),
                        t->dtype != LW_U8 && t->dtype != LW_BOOL, to, to_bool, err);
}

static const struct {
    const char *op;
    lw_cuda_truth f;
} truths[] = {{"Equal", LW_T_EQUAL},
              {"Greater", LW_T_GREATER},
              {"GreaterOrEqual", LW_T_GREATER_OR_EQUAL},
              {"Less", LW_T_LESS},
              {"LessOrEqual", LW_T_LESS_OR_EQUAL},
              {"And", LW_T_AND},
              {"Or", LW_T_OR},
              {"Xor", LW_T_XOR}};

static bool compare_fits(const lw_op_call *c, lw_cuda_truth *f, lw_cuda_broadcast *b)
{
    const lw_tensor *both[2] = {lw_in(c, 0), lw_in(c, 1)};
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
        if (strcmp(truths[i].op, c->node->op) == 0)
            *f = truths[i].f;
    lw_dtype dtype = *f >= LW_T_AND ? LW_BOOL : LW_F32;
    return both[0] && both[1] && both[0]->dtype == dtype && both[1]->dtype == dtype &&
           (lw_elsewhere(both[0]) || lw_elsewhere(both[1])) && lw_cuda_broadcast_of(b, both, 2);
}

static lw_status node_compare(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_truth f = LW_T_EQUAL;
    lw_cuda_broadcast b;
    const void *p, *q;
    void *to;
    if (!lw_cuda_accept(x, compare_fits(c, &f, &b), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, lw_in(c, 0), &p, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 1), &q, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_BOOL, b.rank, b.dim, &to, err));
    return lw_cuda_compare(x, f, &b.walk, p, q, to, err);
}

static lw_status node_is_nan(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    const void *from;
    void *to;
    if (!lw_cuda_accept(x, lw_is_floats(t), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_BOOL, t->rank, t->dim, &to, err));
    return lw_cuda_is_nan(x, t->count, from, to, err);
}

static bool where_of(const lw_op_call *c, lw_cuda_broadcast *b)
{
    const lw_tensor *t[3] = {lw_in(c, 1), lw_in(c, 2), lw_in(c, 0)};
    return t[0] && t[1] && t[2] && t[2]->dtype == LW_BOOL && t[0]->dtype == t[1]->dtype &&
           (t[0]->dtype == LW_F32 || t[0]->dtype == LW_I32) && lw_cuda_broadcast_of(b, t, 3);
}

static lw_status node_where(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_broadcast b;
    const void *condition, *yes, *no;
    void *to;
    if (!lw_cuda_accept(x, where_of(c, &b), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, lw_in(c, 0), &condition, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 1), &yes, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 2), &no, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], lw_in(c, 1)->dtype, b.rank, b.dim, &to, err));
    return lw_cuda_where(x, &b.walk, condition, yes, no, to, err);
}

static bool bytes_of(const lw_op_call *c, lw_cuda_bytes *p, lw_cuda_broadcast *broadcast)
{
    const lw_tensor *a = lw_in(c, 0), *b = lw_in(c, 3), *both[2] = {a, b};
    float sa, sb, sy;
    if (!lw_is_bytes(a) || !lw_is_bytes(b) || b->dtype != a->dtype || !lw_one_scale(lw_in(c, 1), &sa) ||
        !lw_one_scale(lw_in(c, 4), &sb) || !lw_one_scale(lw_in(c, 6), &sy) ||
        !lw_one_zero(lw_in(c, 2), a->dtype, &p->a_zero) || !lw_one_zero(lw_in(c, 5), b->dtype, &p->b_zero) ||
        !lw_one_zero(lw_in(c, 7), a->dtype, &p->y_zero) || !lw_cuda_broadcast_of(broadcast, both, 2))
        return false;
    p->walk = broadcast->walk;
    p->is_signed = a->dtype == LW_I8;
    p->is_product = strcmp(c->node->op, "QLinearMul") == 0;
    p->ra = sa / sy, p->rb = sb / sy, p->product = sa * sb / sy;
    p->fixed = -(p->ra * (float)p->a_zero + p->rb * (float)p->b_zero);
    lw_dtype_range(a->dtype, &p->low, &p->high);
    return true;
}

static lw_status node_bytes(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_bytes p;
    lw_cuda_broadcast b;
    void *to;
    if (!lw_cuda_accept(x, bytes_of(c, &p, &b), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, lw_in(c, 0), &p.a, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 3), &p.b, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], lw_in(c, 0)->dtype, b.rank, b.dim, &to, err));
    p.y = to;
    return lw_cuda_binary_bytes(x, &p, err);
}

/* ---- quantization ------------------------------------------------------------------------------------ */

static bool scaling_of(const lw_op_call *c, lw_cuda_scaling *p)
{
    const lw_tensor *x = lw_in(c, 0), *scale = lw_in(c, 1), *zero = lw_in(c, 2);
    bool quantizes = strcmp(c->node->op, "QuantizeLinear") == 0;
    if (!x || !lw_good_scales(scale) || (zero && zero->count != scale->count) ||
        lw_node_int(c->node, "block_size", 0) > 0)
        return false;
    if (quantizes) {
        if (x->dtype != LW_F32 || (zero && !lw_is_bytes(zero)) ||
            (!zero && lw_node_int(c->node, "output_dtype", 2) != 2))
            return false;
        p->dtype = zero ? zero->dtype : LW_U8;
    } else {
        if ((!lw_is_bytes(x) && x->dtype != LW_I32) || (zero && zero->dtype != x->dtype))
            return false;
        p->dtype = x->dtype;
    }
    p->count = x->count;
    p->inner = p->along = 1;
    if (scale->count == 1 && scale->rank <= 1)
        return true;
    int axis;
    if (lw_axis(lw_node_int(c->node, "axis", 1), x->rank, &axis, NULL) != LW_OK ||
        scale->count != x->dim[axis])
        return false;
    p->inner = lw_tensor_span(x, axis + 1, x->rank);
    p->along = x->dim[axis];
    return p->along > 0;
}

static lw_status node_scaling(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_scaling p = {0};
    bool quantizes = strcmp(c->node->op, "QuantizeLinear") == 0;
    lw_tensor *t = lw_in(c, 0);
    if (!lw_cuda_accept(x, scaling_of(c, &p), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, t, &p.from, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 1), &p.scale, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 2), &p.zero, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], quantizes ? p.dtype : LW_F32, t->rank, t->dim, &p.to, err));
    return quantizes ? lw_cuda_quantize(x, &p, err) : lw_cuda_dequantize(x, &p, err);
}

static const char elements[] = "elementwise";

const lw_cuda_node_row lw_cuda_nodes_elements[] = {
    {"", "QuantizeLinear", node_scaling, elements, NULL},
    {"", "DequantizeLinear", node_scaling, elements, NULL},
    {microsoft, "QuantizeLinear", node_scaling, elements, NULL},
    {microsoft, "DequantizeLinear", node_scaling, elements, NULL},
    {microsoft, "QLinearAdd", node_bytes, elements, NULL},
    {microsoft, "QLinearMul", node_bytes, elements, NULL},
    {"", "Add", node_binary, elements, NULL},
    {"", "Sub", node_binary, elements, NULL},
    {"", "Mul", node_binary, elements, NULL},
    {"", "Div", node_binary, elements, NULL},
    {"", "Pow", node_binary, elements, NULL},
    {"", "Min", node_binary, elements, NULL},
    {"", "Max", node_binary, elements, NULL},
    {"", "PRelu", node_binary, elements, NULL},
    {"", "Where", node_where, elements, NULL},
    {"", "IsNaN", node_is_nan, elements, NULL},
    {"", "Sqrt", node_unary, elements, NULL},
    {"", "Exp", node_unary, elements, NULL},
    {"", "Log", node_unary, elements, NULL},
    {"", "Erf", node_unary, elements, NULL},
    {"", "Tanh", node_unary, elements, NULL},
    {"", "Reciprocal", node_unary, elements, NULL},
    {"", "Sigmoid", node_unary, elements, NULL},
    {"", "Gelu", node_unary, elements, NULL},
    {microsoft, "Gelu", node_unary, elements, NULL},
    {microsoft, "BiasGelu", node_with_bias, elements, NULL},
    {microsoft, "FastGelu", node_with_bias, elements, NULL},
    {"", "LeakyRelu", node_unary, elements, NULL},
    {"", "Relu", node_unary, elements, NULL},
    {"", "Neg", node_unary, elements, NULL},
    {"", "Abs", node_unary, elements, NULL},
    {"", "Clip", node_clip, elements, NULL},
    {"", "Cast", node_cast, elements, NULL},
    {"", "Equal", node_compare, elements, NULL},
    {"", "Greater", node_compare, elements, NULL},
    {"", "GreaterOrEqual", node_compare, elements, NULL},
    {"", "Less", node_compare, elements, NULL},
    {"", "LessOrEqual", node_compare, elements, NULL},
    {"", "And", node_compare, elements, NULL},
    {"", "Or", node_compare, elements, NULL},
    {"", "Xor", node_compare, elements, NULL},
    {0}};
