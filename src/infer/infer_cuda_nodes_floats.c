/* infer_cuda_nodes_floats.c - products and convolutions of floats on the device. */
#include <limits.h>
#include <string.h>

#include "common/fail.h"
#include "infer/infer_cuda_nodes.h"
#include "infer/product.h"

static const char microsoft[] = "com.microsoft";

/* ---- products ---------------------------------------------------------------------------------------- */

static bool float_product_of(const lw_op_call *c, lw_product *shape, lw_cuda_float_product *p)
{
    const lw_tensor *ta = lw_in(c, 0), *tb = lw_in(c, 1);
    bool gemm = strcmp(c->node->op, "Gemm") == 0;
    if (!lw_is_floats(ta) || !lw_is_floats(tb) || (gemm && (ta->rank != 2 || tb->rank != 2)))
        return false;
    bool transpose_a = lw_node_int(c->node, "transA", 0) != 0 && ta->rank > 1,
         transpose_b = lw_node_int(c->node, "transB", 0) != 0 && tb->rank > 1;
    lw_tensor a = *ta, b = *tb;
    if (transpose_a)
        a.dim[a.rank - 1] = ta->dim[a.rank - 2], a.dim[a.rank - 2] = ta->dim[a.rank - 1];
    if (transpose_b)
        b.dim[b.rank - 1] = tb->dim[b.rank - 2], b.dim[b.rank - 2] = tb->dim[b.rank - 1];
    if (lw_product_of(shape, &a, &b, NULL) != LW_OK)
        return false;
    bool all_a = a.count == shape->batches * shape->m * shape->k,
         all_b = b.count == shape->batches * shape->k * shape->n, one_b = b.count == shape->k * shape->n;
    if (!all_a || (!all_b && !one_b) || shape->batches > 65535 || shape->m > 65535 * 64)
        return false;
    *p = (lw_cuda_float_product){.m = shape->m,
                                 .n = shape->n,
                                 .k = shape->k,
                                 .outer = 1,
                                 .inner = shape->batches,
                                 .a_row = transpose_a ? 1 : shape->k,
                                 .a_column = transpose_a ? shape->m : 1,
                                 .b_row = transpose_b ? 1 : shape->n,
                                 .b_column = transpose_b ? shape->k : 1,
                                 .a_inner = shape->m * shape->k,
                                 .b_inner = one_b ? 0 : shape->k * shape->n,
                                 .alpha = lw_node_float(c->node, "alpha", 1)};
    if (one_b && !transpose_a && shape->batches > 1 && shape->m * shape->batches <= 65535 * 64) {
        p->m *= shape->batches; /* one matrix */
        p->inner = 1;
    }
    return true;
}

static bool float_product_fits(const lw_op_call *c, lw_product *shape, lw_cuda_float_product *p)
{
    lw_cuda_broadcast b;
    if (!float_product_of(c, shape, p))
        return false;
    const lw_tensor *bias = lw_in(c, 2);
    if (!bias || strcmp(c->node->op, "Gemm") != 0)
        return !bias;
    lw_tensor y = {.rank = 2, .dim = {shape->m, shape->n}, .count = shape->m * shape->n};
    const lw_tensor *both[2] = {&y, bias};
    return lw_is_floats(bias) && lw_node_float(c->node, "beta", 1) == 1 &&
           lw_cuda_broadcast_of(&b, both, 2) && b.rank == 2 && b.dim[0] == y.dim[0] && b.dim[1] == y.dim[1];
}

static lw_status node_float_product(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_product shape;
    lw_cuda_float_product p;
    lw_tensor *product = NULL;
    void *to;
    if (!lw_cuda_accept(x, float_product_fits(c, &shape, &p), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, lw_in(c, 0), &p.a, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 1), &p.b, err));
    lw_tensor **y = lw_in(c, 2) ? &product : &c->out[0];
    lw_status status = lw_cuda_tensor(x, y, LW_F32, shape.rank, shape.dim, &to, err);
    p.c = status == LW_OK ? to : NULL;
    if (status == LW_OK)
        status = lw_cuda_multiply_floats(x, &p, err);
    if (status == LW_OK && product)
        status = lw_cuda_add(x, product, lw_in(c, 2), &c->out[0], err);
    lw_tensor_release(product);
    return status;
}

/* ---- convolutions ------------------------------------------------------------------------------------ */

static lw_divider divider_of(int64_t n)
{
    return lw_divider_of(n > 0 ? (uint32_t)n : 1);
}

static bool convolution_fits(const lw_op_call *c, lw_window *w, lw_cuda_float_convolution *p)
{
    const lw_tensor *x = lw_in(c, 0), *weight = lw_in(c, 1), *bias = lw_in(c, 2);
    int64_t groups = lw_node_int(c->node, "group", 1);
    if (!lw_is_floats(x) || !lw_is_floats(weight) || x->rank < 3 || weight->rank != x->rank ||
        lw_window_of(w, c->node, x, weight->dim + 2, NULL) != LW_OK || !lw_cuda_window_fits(w))
        return false;
    int64_t images = x->dim[0], outputs = weight->dim[0], channels = weight->dim[1], results, weights;
    if (groups < 1 || groups > 65535 || channels < 1 || outputs < 1 || outputs % groups ||
        x->dim[1] != channels * groups || (bias && (!lw_is_floats(bias) || bias->count != outputs)))
        return false;
    if (__builtin_mul_overflow(images, w->out_count, &results) || results > INT_MAX / 2 ||
        __builtin_mul_overflow(channels, w->kernel_count, &weights) || weights > INT_MAX / 2 ||
        channels > INT_MAX || w->in_count > INT_MAX || outputs > 65535 * 64)
        return false;
    *p = (lw_cuda_float_convolution){.images = (int)images,
                                     .groups = (int)groups,
                                     .outputs = (int)(outputs / groups),
                                     .channels = (int)channels,
                                     .in_count = w->in_count,
                                     .count = divider_of(w->out_count),
                                     .plane = divider_of(w->out[1] * w->out[2]),
                                     .line = divider_of(w->out[2]),
                                     .taps = divider_of(w->kernel_count),
                                     .kernel_plane = divider_of(w->kernel[1] * w->kernel[2]),
                                     .kernel_line = divider_of(w->kernel[2])};
    for (int k = 0; k < 3; k++) {
        p->in[k] = (int)w->in[k], p->stride[k] = (int)w->stride[k];
        p->dilation[k] = (int)w->dilation[k], p->pad[k] = (int)w->pad[k];
    }
    return true;
}

static lw_status node_convolution(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_window w;
    lw_cuda_float_convolution p;
    if (!lw_cuda_accept(x, convolution_fits(c, &w, &p), fits))
        return LW_OK;
    lw_tensor *t = lw_in(c, 0);
    int64_t dim[LW_MAX_RANK] = {p.images, (int64_t)p.outputs * p.groups};
    void *to;
    memcpy(dim + 2, w.out, (size_t)w.dims * sizeof *dim);
    LW_TRY(lw_cuda_bring(x, t, &p.x, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 1), &p.w, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 2), &p.bias, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], LW_F32, t->rank, dim, &to, err));
    p.y = to;
    return c->out[0]->count ? lw_cuda_convolve_floats(x, &p, err) : LW_OK;
}

const lw_cuda_node_row lw_cuda_nodes_floats[] = {
    {"", "MatMul", node_float_product, "float product", NULL},
    {microsoft, "FusedMatMul", node_float_product, "float product", NULL},
    {"", "Gemm", node_float_product, "float product", NULL},
    {"", "Conv", node_convolution, "float convolution", NULL},
    {0}};
