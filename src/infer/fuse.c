/* fuse.c - DequantizeLinear, a float operator and QuantizeLinear become one integer kernel, as ONNX Runtime's
 * default optimizations make them: products and convolutions, sums, pooling, functions of one 8-bit number;
 * operators that only move elements work on the bytes where nothing is requantized.
 *
 * A product's float sum and its int32 sum round differently, so that a result may move by one step: that is
 * why this is asked for (lw_network_fuse) and not done by itself. */
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/network.h"

typedef struct fuser {
    lw_model *m;
    int *maker;   /* of each value: index of its node; -1: none */
    int *readers; /* of each value: how often it is read, once more for outputs of the model */
    int *reader;  /* of each value: the last node that reads it; -1: none */
    int n;        /* values that both lists cover */
    lw_error *err;
} fuser;

/* What a DequantizeLinear or QuantizeLinear has: values, -1 where the zero point is left out. */
typedef struct parameters {
    int node;
    int bytes; /* the 8-bit side */
    int scale, zero;
    lw_dtype dtype;
} parameters;

static const lw_tensor *constant_of(const fuser *f, int value)
{
    return value < 0 ? NULL : f->m->values[value].constant;
}

static bool is_op(const lw_node *node, const char *op)
{
    return !node->fused && strcmp(node->op, op) == 0 &&
           (!*node->domain || strcmp(node->domain, "com.microsoft") == 0);
}

static bool is_bytes(lw_dtype dtype)
{
    return dtype == LW_I8 || dtype == LW_U8;
}

/* The DequantizeLinear that makes `value`, with constant scale and zero point and without blocks. */
static bool dequantized(const fuser *f, int value, parameters *p)
{
    int at = value < 0 || value >= f->n ? -1 : f->maker[value];
    if (at < 0 || !is_op(&f->m->nodes[at], "DequantizeLinear"))
        return false;
    const lw_node *node = &f->m->nodes[at];
    *p = (parameters){
        .node = at, .bytes = node->in[0], .scale = node->in[1], .zero = node->n_in > 2 ? node->in[2] : -1};
    const lw_tensor *scale = constant_of(f, p->scale), *zero = constant_of(f, p->zero),
                    *q = constant_of(f, p->bytes);
    if (!scale || scale->dtype != LW_F32 || (p->zero >= 0 && !zero) || lw_node_int(node, "block_size", 0))
        return false;
    /* without a zero point the type is that of the data where it is constant, else uint8 as by default */
    p->dtype = zero ? zero->dtype : q ? q->dtype : LW_U8;
    return zero || q;
}

/* The QuantizeLinear that alone reads `value`. */
static bool quantized(const fuser *f, int value, parameters *p)
{
    if (value < 0 || value >= f->n || f->readers[value] != 1)
        return false;
    if (f->reader[value] >= 0) {
        const lw_node *node = &f->m->nodes[f->reader[value]];
        if (!is_op(node, "QuantizeLinear") || node->in[0] != value)
            return false;
        *p = (parameters){.node = f->reader[value],
                          .bytes = node->out[0],
                          .scale = node->in[1],
                          .zero = node->n_in > 2 ? node->in[2] : -1};
        const lw_tensor *scale = constant_of(f, p->scale), *zero = constant_of(f, p->zero);
        if (!scale || scale->count != 1 || scale->dtype != LW_F32 || (p->zero >= 0 && !zero) ||
            lw_node_int(node, "output_dtype", 0))
            return false;
        p->dtype = zero ? zero->dtype : LW_U8;
        return is_bytes(p->dtype) && !(zero && zero->bits);
    }
    return false;
}

static bool one_number(const fuser *f, const parameters *p)
{
    const lw_tensor *scale = constant_of(f, p->scale);
    return is_bytes(p->dtype) && scale->count == 1;
}

/* The only reader of `value`, if it is a Relu; -1 else. */
static int relu_after(const fuser *f, int value)
{
    if (value < 0 || value >= f->n || f->readers[value] != 1)
        return -1;
    int at = f->reader[value];
    return at >= 0 && is_op(&f->m->nodes[at], "Relu") ? at : -1;
}

/* A constant zero of this type, for operators that want one. */
static lw_status zero_value(fuser *f, lw_dtype dtype, int *value)
{
    lw_model *m = f->m;
    if (m->n_values == m->values_capacity) {
        int capacity = 2 * m->values_capacity + 16;
        lw_value *grown = realloc(m->values, (size_t)capacity * sizeof *grown);
        if (!grown)
            return lw_fail_memory(f->err, (size_t)capacity * sizeof *grown);
        m->values = grown;
        m->values_capacity = capacity;
    }
    lw_value *v = &m->values[m->n_values];
    *v = (lw_value){.rank = -1, .last_use = -1};
    LW_TRY(lw_tensor_new(&v->constant, dtype, 0, NULL, f->err));
    *(int8_t *)v->constant->data = 0;
    v->name = strdup("");
    *value = m->n_values++;
    return v->name ? LW_OK : lw_fail_memory(f->err, 1);
}

static lw_status zero_of(fuser *f, parameters *p)
{
    return p->zero >= 0 ? LW_OK : zero_value(f, p->dtype, &p->zero);
}

/* Makes node `at` the operator `op` with these inputs, writing what `end` (a QuantizeLinear; NULL: the node
 * itself) writes. */
static lw_status become(fuser *f, int at, const char *domain, const char *op, const int *in, int n_in,
                        const parameters *end)
{
    lw_node *node = &f->m->nodes[at];
    bool same_op = strcmp(node->op, op) == 0 && strcmp(node->domain, domain) == 0;
    int opset = same_op || !*domain ? node->opset : 1;
    const lw_op *impl = lw_op_find(domain, op, opset);
    int *inputs = malloc((size_t)n_in * sizeof *inputs);
    char *name = strdup(op), *where = strdup(domain);
    if (!inputs || !name || !where || !impl) {
        free(inputs), free(name), free(where);
        return impl ? lw_fail_memory(f->err, (size_t)n_in * sizeof *inputs)
                    : lw_fail(f->err, LW_E_INTERNAL, "no operator %s to fuse into", op);
    }
    memcpy(inputs, in, (size_t)n_in * sizeof *inputs);
    free(node->in);
    free(node->op);
    free(node->domain);
    node->in = inputs;
    node->n_in = n_in;
    node->op = name;
    node->domain = where;
    node->opset = opset;
    node->impl = impl;
    node->folded = false;
    if (end) {
        node->out[0] = end->bytes;
        f->maker[end->bytes] = at;
        f->m->nodes[end->node].fused = true;
    }
    return LW_OK;
}

/* An attribute that the fused operator has besides. */
static lw_status add_int(fuser *f, int at, const char *name, int64_t value)
{
    lw_node *node = &f->m->nodes[at];
    lw_attr *grown = realloc(node->attrs, (size_t)(node->n_attrs + 1) * sizeof *grown);
    if (!grown)
        return lw_fail_memory(f->err, sizeof *grown);
    node->attrs = grown;
    grown[node->n_attrs] = (lw_attr){.name = strdup(name), .kind = LW_ATTR_INT, .i = value};
    if (!grown[node->n_attrs].name)
        return lw_fail_memory(f->err, strlen(name));
    node->n_attrs++;
    return LW_OK;
}

/* Whether a scale of int32 biases is the product of the other two, which integer kernels take for granted. */
static bool is_product_scale(const lw_tensor *bias, const lw_tensor *x, const lw_tensor *w)
{
    if (bias->count != 1 && bias->count != w->count)
        return false;
    for (int64_t i = 0; i < w->count; i++) {
        float want = *(const float *)x->data * ((const float *)w->data)[i],
              have = ((const float *)bias->data)[bias->count == 1 ? 0 : i];
        if (have < want * 0.999f || have > want * 1.001f)
            return false;
    }
    return true;
}

/* Conv, MatMul and Gemm: x, w and the bias dequantized. */
static lw_status fuse_product(fuser *f, int at, int *count)
{
    lw_node *node = &f->m->nodes[at];
    parameters x, w, b, y;
    bool is_conv = is_op(node, "Conv"), is_gemm = is_op(node, "Gemm"),
         has_bias = node->n_in > 2 && node->in[2] >= 0;
    if (!dequantized(f, node->in[0], &x) || !one_number(f, &x) || !dequantized(f, node->in[1], &w) ||
        !is_bytes(w.dtype) || (has_bias && (!dequantized(f, node->in[2], &b) || b.dtype != LW_I32)))
        return LW_OK;
    const lw_tensor *weight = constant_of(f, w.bytes), *scale = constant_of(f, w.scale),
                    *x_scale = constant_of(f, x.scale);
    if (weight && weight->bits)
        return LW_OK;       /* 4 bits: as it is written */
    if (scale->count > 1) { /* one for each output */
        bool transposed = is_gemm && lw_node_int(node, "transB", 0);
        int rank = weight ? weight->rank : 0, outputs = is_conv || transposed ? 0 : rank - 1;
        int64_t axis = lw_node_int(&f->m->nodes[w.node], "axis", 1);
        if (!weight || rank < 2 || (axis < 0 ? axis + rank : axis) != outputs ||
            scale->count != weight->dim[outputs])
            return LW_OK;
    }
    if (has_bias && !is_product_scale(constant_of(f, b.scale), x_scale, scale))
        return LW_OK;
    if (is_gemm &&
        ((has_bias && lw_node_float(node, "beta", 1) != 1) || lw_node_float(node, "alpha", 1) != 1))
        return LW_OK;
    int relu = relu_after(f, node->out[0]);
    bool ends = quantized(f, relu >= 0 ? f->m->nodes[relu].out[0] : node->out[0], &y) && y.dtype == x.dtype;
    if (relu >= 0) { /* goes with saturation where 0 is the least that the output holds */
        int32_t low, high;
        const lw_tensor *zero = ends ? constant_of(f, y.zero) : NULL;
        lw_dtype_range(ends ? y.dtype : LW_U8, &low, &high);
        ends = ends && (zero ? (int32_t)lw_tensor_integer(zero, 0) : 0) == low;
        if (!ends)
            return LW_OK;
    }
    LW_TRY(zero_of(f, &x));
    LW_TRY(zero_of(f, &w));
    if (ends)
        LW_TRY(zero_of(f, &y));
    int bias = has_bias ? b.bytes : -1;
    ++*count;
    if (ends && relu >= 0)
        f->m->nodes[relu].fused = true;
    if (is_conv || (is_op(node, "MatMul") && ends)) {
        if (!ends) {
            --*count;
            return LW_OK;
        }
        int in[] = {x.bytes, x.scale, x.zero, w.bytes, w.scale, w.zero, y.scale, y.zero, bias};
        return become(f, at, "", is_conv ? "QLinearConv" : "QLinearMatMul", in, bias >= 0 ? 9 : 8, &y);
    }
    if (is_gemm) {
        int in[] = {x.bytes,           x.scale, x.zero, w.bytes, w.scale, w.zero, bias, ends ? y.scale : -1,
                    ends ? y.zero : -1};
        return become(f, at, "com.microsoft", "QGemm", in, ends ? 9 : 7, ends ? &y : NULL);
    }
    int in[] = {x.bytes, w.bytes, x.scale, w.scale, x.zero, w.zero};
    return become(f, at, "com.microsoft", "MatMulIntegerToFloat", in, 6, NULL);
}

/* Operators with 8-bit kin of one or two inputs. */
static lw_status fuse_kin(fuser *f, int at, int *count)
{
    static const struct {
        const char *op, *kin;
        int inputs;
    } kin[] = {{"Add", "QLinearAdd", 2},
               {"Mul", "QLinearMul", 2},
               {"Sigmoid", "QLinearSigmoid", 1},
               {"LeakyRelu", "QLinearLeakyRelu", 1},
               {"AveragePool", "QLinearAveragePool", 1},
               {"GlobalAveragePool", "QLinearGlobalAveragePool", 1},
               {"Softmax", "QLinearSoftmax", 1}};
    lw_node *node = &f->m->nodes[at];
    parameters x[2], y;
    size_t k = 0;
    while (k < sizeof kin / sizeof *kin && !is_op(node, kin[k].op))
        k++;
    if (k == sizeof kin / sizeof *kin || node->n_in != kin[k].inputs || !quantized(f, node->out[0], &y))
        return LW_OK;
    for (int i = 0; i < kin[k].inputs; i++)
        if (!dequantized(f, node->in[i], &x[i]) || !one_number(f, &x[i]) || x[i].dtype != y.dtype)
            return LW_OK;
    int in[8], n = 0, opset = node->opset;
    for (int i = 0; i < kin[k].inputs; i++) {
        LW_TRY(zero_of(f, &x[i]));
        in[n++] = x[i].bytes;
        in[n++] = x[i].scale;
        in[n++] = x[i].zero;
    }
    LW_TRY(zero_of(f, &y));
    in[n++] = y.scale;
    in[n++] = y.zero;
    if (strcmp(kin[k].op, "Softmax") == 0)
        LW_TRY(add_int(f, at, "opset", opset));
    ++*count;
    return become(f, at, "com.microsoft", kin[k].kin, in, n, &y);
}

static bool same_number(const lw_tensor *a, const lw_tensor *b)
{
    return a && b && a->count == 1 && b->count == 1 && a->dtype == b->dtype &&
           memcmp(a->data, b->data, (size_t)lw_dtype_size(a->dtype)) == 0;
}

/* Operators that move elements, or choose the largest: on the bytes, where they go back as they came. */
static lw_status fuse_move(fuser *f, int at, int *count)
{
    static const char *const moves[] = {"Reshape",   "Transpose", "Flatten", "Squeeze",
                                        "Unsqueeze", "Slice",     "Gather",  "Identity",
                                        "Expand",    "Tile",      "MaxPool", "GlobalMaxPool"};
    lw_node *node = &f->m->nodes[at];
    parameters x, y;
    size_t k = 0;
    while (k < sizeof moves / sizeof *moves && !is_op(node, moves[k]))
        k++;
    if (k == sizeof moves / sizeof *moves || node->n_in < 1 || node->n_out != 1 ||
        !quantized(f, node->out[0], &y) || !dequantized(f, node->in[0], &x) || !one_number(f, &x) ||
        x.dtype != y.dtype)
        return LW_OK;
    const lw_tensor *from = constant_of(f, x.zero), *to = constant_of(f, y.zero);
    int64_t z = from ? lw_tensor_integer(from, 0) : 0;
    if (!same_number(constant_of(f, x.scale), constant_of(f, y.scale)) ||
        z != (to ? lw_tensor_integer(to, 0) : 0))
        return LW_OK;
    node->in[0] = x.bytes;
    node->out[0] = y.bytes;
    f->maker[y.bytes] = at;
    f->m->nodes[y.node].fused = true;
    ++*count;
    return LW_OK;
}

/* Which values are read, after what was fused; nodes that nobody reads are done with. */
static void sweep(lw_model *m, int *readers)
{
    for (int i = m->n_nodes - 1; i >= 0; i--) {
        lw_node *node = &m->nodes[i];
        bool wanted = false;
        for (int k = 0; k < node->n_out; k++)
            wanted = wanted || (node->out[k] >= 0 && readers[node->out[k]] > 0);
        node->fused = node->fused || !wanted;
        for (int k = 0, v; !node->fused && (v = lw_node_reads(m, node, k)) != LW_NO_MORE; k++)
            if (v >= 0)
                readers[v]++;
    }
}

lw_status lw_network_fuse(lw_network *network, int *fused, lw_error *err)
{
    network->settled = true;
    LW_TRY(lw_model_fuse(network->model, fused, err));
    return lw_network_check(network, err);
}

lw_status lw_model_fuse(lw_model *m, int *fused, lw_error *err)
{
    fuser f = {.m = m, .n = m->n_values, .err = err};
    size_t size = (size_t)m->n_values + (size_t)m->n_nodes + 1; /* and room for the zeros that are added */
    int count = 0;
    f.maker = malloc(3 * size * sizeof *f.maker);
    f.readers = calloc(3 * size, sizeof *f.readers);
    f.reader = malloc(3 * size * sizeof *f.reader);
    lw_status status =
        f.maker && f.readers && f.reader ? LW_OK : lw_fail_memory(err, 3 * size * sizeof *f.maker);
    if (status == LW_OK) {
        memset(f.maker, -1, 3 * size * sizeof *f.maker);
        memset(f.reader, -1, 3 * size * sizeof *f.reader);
        for (int i = 0; i < m->n_nodes; i++) {
            for (int k = 0, v; (v = lw_node_reads(m, &m->nodes[i], k)) != LW_NO_MORE; k++)
                if (v >= 0) {
                    f.readers[v]++;
                    f.reader[v] = i;
                }
            for (int k = 0; k < m->nodes[i].n_out; k++)
                if (m->nodes[i].out[k] >= 0)
                    f.maker[m->nodes[i].out[k]] = i;
        }
        for (int i = 0; i < m->n_outputs; i++)
            f.readers[m->outputs[i]]++;
    }
    for (int i = 0; i < m->n_nodes && status == LW_OK; i++) {
        const lw_node *node = &m->nodes[i];
        if (node->fused || node->folded || node->n_in < 1 || node->n_out < 1)
            continue;
        if (is_op(node, "Conv") || is_op(node, "MatMul") || is_op(node, "Gemm"))
            status = fuse_product(&f, i, &count);
        else
            status = fuse_move(&f, i, &count);
        if (status == LW_OK && !m->nodes[i].fused)
            status = fuse_kin(&f, i, &count);
    }
    if (status == LW_OK) {
        memset(f.readers, 0, 3 * size * sizeof *f.readers);
        for (int i = 0; i < m->n_outputs; i++)
            f.readers[m->outputs[i]]++;
        sweep(m, f.readers);
        for (int v = 0; v < m->n_values; v++)
            m->values[v].last_use = -1;
        for (int i = 0; i < m->n_nodes; i++)
            for (int k = 0, v; !m->nodes[i].fused && (v = lw_node_reads(m, &m->nodes[i], k)) != LW_NO_MORE;
                 k++)
                if (v >= 0)
                    m->values[v].last_use = i;
    }
    free(f.maker);
    free(f.readers);
    free(f.reader);
    if (fused)
        *fused = count;
    return status;
}
