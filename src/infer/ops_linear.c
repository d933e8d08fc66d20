/* ops_linear.c - float products, convolutions, pooling and recurrent layers. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"
#include "infer/product.h"
#include "infer/window.h"

/* ---- products ------------------------------------------------------------------------------------ */

typedef struct matmul_job {
    const lw_product *p;
    lw_float_gemm g; /* the first of them */
    lw_pool *pool;   /* for each */
} matmul_job;

static lw_status matmul_task(void *arg, int64_t batch, int worker, lw_error *err)
{
    (void)worker;
    const matmul_job *job = arg;
    const lw_product *p = job->p;
    lw_float_gemm g = job->g;
    int64_t a, b;
    lw_product_offsets(p, batch, &a, &b);
    g.a += a * p->m * p->k;
    g.b += b * p->k * p->n;
    g.c += batch * p->m * p->n;
    return lw_float_product(job->pool, &g, err);
}

static lw_status matmul(const lw_op_call *c, const lw_tensor *a, bool transpose_a, const lw_tensor *b,
                        bool transpose_b, float alpha, lw_error *err)
{
    lw_tensor sa, sb; /* the shapes as they enter the product */
    lw_product p;
    LW_TRY(lw_want(a, LW_F32, "A", err));
    LW_TRY(lw_want(b, LW_F32, "B", err));
    sa = *a;
    sb = *b;
    if (transpose_a && a->rank > 1) {
        sa.dim[a->rank - 1] = a->dim[a->rank - 2];
        sa.dim[a->rank - 2] = a->dim[a->rank - 1];
    }
    if (transpose_b && b->rank > 1) {
        sb.dim[b->rank - 1] = b->dim[b->rank - 2];
        sb.dim[b->rank - 2] = b->dim[b->rank - 1];
    }
    LW_TRY(lw_product_of(&p, &sa, &sb, err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, p.rank, p.dim, err));
    bool one_b = !transpose_a; /* the matrices of A, one below the other, are one */
    for (int i = 0; i < p.batch_rank; i++)
        one_b = one_b && p.b_stride[i] == 0 && p.batch_dim[i] == sa.dim[i];
    if (one_b && p.batches > 0 && sa.rank == p.batch_rank + 2) {
        p.m *= p.batches;
        p.batches = 1;
        p.batch_rank = 0;
    }
    matmul_job job = {.p = &p,
                      .g = {.m = p.m,
                            .n = p.n,
                            .k = p.k,
                            .a = a->data,
                            .b = b->data,
                            .a_row = transpose_a ? 1 : p.k,
                            .a_column = transpose_a ? p.m : 1,
                            .b_row = transpose_b ? 1 : p.n,
                            .b_column = transpose_b ? p.k : 1,
                            .c = c->out[0]->data,
                            .ldc = p.n,
                            .alpha = alpha},
                      .pool = p.batches == 1 ? c->pool : NULL};
    if (p.batches == 1)
        job.g.keep_b = lw_call_keep(c, 1, 0, 1);
    /* small products are not worth a dispatch */
    bool small = p.batches == 1 || p.batches * p.m * p.n * p.k < 1 << 16;
    return lw_pool_for(small ? NULL : c->pool, p.batches, matmul_task, &job, err);
}

static lw_status run_matmul(const lw_op_call *c, lw_error *err)
{
    return matmul(c, lw_in(c, 0), false, lw_in(c, 1), false, 1, err);
}

static lw_status run_fused_matmul(const lw_op_call *c, lw_error *err)
{
    return matmul(c, lw_in(c, 0), lw_node_int(c->node, "transA", 0) != 0, lw_in(c, 1),
                  lw_node_int(c->node, "transB", 0) != 0, lw_node_float(c->node, "alpha", 1), err);
}

static lw_status run_gemm(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *a = lw_in(c, 0), *b = lw_in(c, 1), *bias = lw_in(c, 2);
    if (!a || !b || a->rank != 2 || b->rank != 2)
        return lw_fail(err, LW_E_INPUT, "Gemm's operands have two dimensions");
    LW_TRY(matmul(c, a, lw_node_int(c->node, "transA", 0) != 0, b, lw_node_int(c->node, "transB", 0) != 0,
                  lw_node_float(c->node, "alpha", 1), err));
    if (!bias)
        return LW_OK;
    lw_tensor *y = c->out[0];
    int rank;
    int64_t dim[LW_MAX_RANK], stride[LW_MAX_RANK];
    LW_TRY(lw_want(bias, LW_F32, "C", err));
    LW_TRY(lw_broadcast(y, bias, &rank, dim, err));
    if (rank != 2 || dim[0] != y->dim[0] || dim[1] != y->dim[1])
        return lw_fail(err, LW_E_INPUT, "C does not fit the product's shape");
    lw_broadcast_strides(bias, 2, stride);
    float beta = lw_node_float(c->node, "beta", 1);
    for (int64_t i = 0; i < dim[0]; i++)
        for (int64_t j = 0; j < dim[1]; j++)
            ((float *)y->data)[i * dim[1] + j] +=
                beta * ((const float *)bias->data)[i * stride[0] + j * stride[1]];
    return LW_OK;
}

/* ---- convolution and pooling --------------------------------------------------------------------- */

/* Copies the patch of every output position into columns (channels * kernel) x positions. */
static void columns_of(const lw_window *w, const float *x, int64_t channels, float *columns)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t q = 0; q < w->kernel_count; q++) {
            int64_t q2 = q % w->kernel[2], q1 = q / w->kernel[2] % w->kernel[1],
                    q0 = q / w->kernel[2] / w->kernel[1];
            for (int64_t p = 0; p < w->out_count; p++) {
                int64_t p2 = p % w->out[2], p1 = p / w->out[2] % w->out[1], p0 = p / w->out[2] / w->out[1];
                int64_t i0 = p0 * w->stride[0] + q0 * w->dilation[0] - w->pad[0];
                int64_t i1 = p1 * w->stride[1] + q1 * w->dilation[1] - w->pad[1];
                int64_t i2 = p2 * w->stride[2] + q2 * w->dilation[2] - w->pad[2];
                bool inside =
                    i0 >= 0 && i0 < w->in[0] && i1 >= 0 && i1 < w->in[1] && i2 >= 0 && i2 < w->in[2];
                *columns++ = inside ? x[c * w->in_count + (i0 * w->in[1] + i1) * w->in[2] + i2] : 0;
            }
        }
}

static lw_status run_conv(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *weight = lw_in(c, 1), *bias = lw_in(c, 2);
    lw_window w;
    int64_t dim[LW_MAX_RANK], groups = lw_node_int(c->node, "group", 1);
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(lw_want(weight, LW_F32, "the weight", err));
    if (weight->rank != x->rank || x->rank < 3)
        return lw_fail(err, LW_E_INPUT, "the weight has %d dimensions, the input %d", weight->rank, x->rank);
    LW_TRY(lw_window_of(&w, c->node, x, weight->dim + 2, err));
    int64_t outputs = weight->dim[0], channels = x->dim[1];
    if (groups < 1 || channels % groups || outputs % groups || weight->dim[1] != channels / groups)
        return lw_fail(err, LW_E_INPUT,
                       "%lld input channels in %lld groups and a weight of %lld x %lld channels do not agree",
                       (long long)channels, (long long)groups, (long long)outputs, (long long)weight->dim[1]);
    LW_TRY(lw_want_bias(bias, LW_F32, outputs, err));
    dim[0] = x->dim[0];
    dim[1] = outputs;
    memcpy(dim + 2, w.out, (size_t)w.dims * sizeof *dim);
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, x->rank, dim, err));
    int64_t in = channels / groups, out = outputs / groups, patch = in * w.kernel_count;
    float *columns;
    LW_TRY(lw_room(&columns, patch, w.out_count, sizeof *columns, err));
    lw_status status = LW_OK;
    for (int64_t n = 0; n < x->dim[0] && status == LW_OK; n++)
        for (int64_t g = 0; g < groups && status == LW_OK; g++) {
            float *y = (float *)c->out[0]->data + (n * outputs + g * out) * w.out_count;
            columns_of(&w, (const float *)x->data + (n * channels + g * in) * w.in_count, in, columns);
            for (int64_t o = 0; o < out; o++)
                for (int64_t i = 0; i < w.out_count; i++)
                    y[o * w.out_count + i] = bias ? ((const float *)bias->data)[g * out + o] : 0;
            lw_float_gemm product = {.m = out,
                                     .n = w.out_count,
                                     .k = patch,
                                     .a = (const float *)weight->data + g * out * patch,
                                     .a_row = patch,
                                     .a_column = 1,
                                     .b = columns,
                                     .b_row = w.out_count,
                                     .b_column = 1,
                                     .c = y,
                                     .ldc = w.out_count,
                                     .alpha = 1,
                                     .accumulate = true};
            status = lw_float_product(c->pool, &product, err);
        }
    free(columns);
    return status;
}

static lw_status pool(const lw_op_call *c, bool is_max, bool global, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    lw_window w;
    int64_t dim[LW_MAX_RANK];
    bool bytes = is_max && x && (x->dtype == LW_I8 || x->dtype == LW_U8);
    if (!bytes)
        LW_TRY(lw_want(x, LW_F32, "the input", err));
    if (c->n_out > 1 && c->node->out[1] >= 0)
        return lw_fail(err, LW_E_INPUT, "the indices output is not supported");
    if (global) {
        if (x->rank < 3 || x->rank > 5)
            return lw_fail(err, LW_E_INPUT, "the input has %d dimensions: 3 to 5 are supported", x->rank);
        w = (lw_window){.dims = x->rank - 2,
                        .in = {1, 1, 1},
                        .out = {1, 1, 1},
                        .stride = {1, 1, 1},
                        .dilation = {1, 1, 1},
                        .kernel = {1, 1, 1},
                        .out_count = 1};
        for (int k = 0; k < w.dims; k++)
            w.in[k] = w.kernel[k] = x->dim[2 + k];
        w.in_count = w.kernel_count = lw_tensor_span(x, 2, x->rank);
    } else {
        LW_TRY(lw_window_of(&w, c->node, x, NULL, err));
    }
    bool count_pads = lw_node_int(c->node, "count_include_pad", 0) != 0;
    memcpy(dim, x->dim, 2 * sizeof *dim);
    memcpy(dim + 2, w.out, (size_t)w.dims * sizeof *dim);
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, dim, err));
    for (int64_t image = 0; image < x->dim[0] * x->dim[1]; image++)
        for (int64_t p = 0; p < w.out_count; p++) {
            lw_window_part part;
            lw_window_part_of(&part, &w, p);
            /* a window of nothing but padding gives the type's lowest value */
            float best = !bytes ? -INFINITY : x->dtype == LW_I8 ? INT8_MIN : 0;
            double sum = 0;
            int64_t used = count_pads ? part.padded : part.inside, q[3];
            for (q[0] = part.first[0]; q[0] < part.last[0]; q[0]++)
                for (q[1] = part.first[1]; q[1] < part.last[1]; q[1]++)
                    for (q[2] = part.first[2]; q[2] < part.last[2]; q[2]++) {
                        int64_t from = image;
                        for (int k = 0; k < 3; k++)
                            from = from * w.in[k] + part.start[k] + q[k] * w.dilation[k];
                        float v = bytes ? (float)lw_tensor_integer(x, from) : ((const float *)x->data)[from];
                        best = v > best ? v : best;
                        sum += v;
                    }
            if (bytes)
                ((uint8_t *)c->out[0]->data)[image * w.out_count + p] = (uint8_t)(int)best;
            else
                ((float *)c->out[0]->data)[image * w.out_count + p] =
                    is_max ? best : (float)(sum / (double)used);
        }
    return LW_OK;
}

static lw_status run_max_pool(const lw_op_call *c, lw_error *err)
{
    return pool(c, true, false, err);
}

static lw_status run_average_pool(const lw_op_call *c, lw_error *err)
{
    return pool(c, false, false, err);
}

static lw_status run_global_max_pool(const lw_op_call *c, lw_error *err)
{
    return pool(c, true, true, err);
}

static lw_status run_global_average_pool(const lw_op_call *c, lw_error *err)
{
    return pool(c, false, true, err);
}

const lw_op lw_ops_linear[] = {
    {"", "MatMul", 1, 0, 2, 2, run_matmul, "float product", NULL},
    {"com.microsoft", "FusedMatMul", 1, 0, 2, 2, run_fused_matmul, "float product", NULL},
    {"", "Gemm", 7, 0, 2, 3, run_gemm, "float product", NULL},
    {"", "Conv", 1, 0, 2, 3, run_conv, "float convolution", NULL},
    {"", "MaxPool", 1, 0, 1, 1, run_max_pool, "pooling", NULL},
    {"", "AveragePool", 7, 0, 1, 1, run_average_pool, "pooling", NULL},
    {"", "GlobalMaxPool", 1, 0, 1, 1, run_global_max_pool, "pooling", NULL},
    {"", "GlobalAveragePool", 1, 0, 1, 1, run_global_average_pool, "pooling", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
