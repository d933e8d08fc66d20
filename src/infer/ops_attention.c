/* ops_attention.c - attention and embedding as ONNX Runtime's quantizers write them, and attention whose
 * products are all of 8-bit integers. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"
#include "infer/product.h"
#include "infer/quant.h"

/* ---- the float part ------------------------------------------------------------------------------------ */

typedef struct attention {
    int64_t batch, length, hidden, heads; /* hidden: of q, k and v each */
    float scale, masked;                  /* masked: what is added where the mask says no */
    bool causal;
    const lw_tensor *mask; /* int32, see mask_of(); NULL: none */
} attention;

/* ONNX Runtime's masks: the length of each sequence; lengths and then starts; one number for each key; one
 * for each pair of query and key. */
static bool is_masked(const attention *a, int64_t b, int64_t query, int64_t key)
{
    const lw_tensor *m = a->mask;
    if (!m)
        return false;
    const int32_t *v = m->data;
    if (m->rank == 1)
        return key >= v[b] || (m->count == 2 * a->batch && key < v[a->batch + b]);
    if (m->rank == 2)
        return v[b * a->length + key] == 0;
    return v[(b * a->length + query) * a->length + key] == 0;
}

static lw_status check_mask(const attention *a, lw_error *err)
{
    const lw_tensor *m = a->mask;
    if (!m)
        return LW_OK;
    LW_TRY(lw_want(m, LW_I32, "the mask", err));
    bool fits = m->rank == 1   ? m->count == a->batch || m->count == 2 * a->batch
                : m->rank == 2 ? m->dim[0] == a->batch && m->dim[1] == a->length
                               : m->rank == 3 && m->dim[0] == a->batch && m->dim[1] == a->length &&
                                     m->dim[2] == a->length;
    return fits ? LW_OK : lw_fail(err, LW_E_INPUT, "a mask of this shape is not supported");
}

/* out (batch x length x hidden) from qkv (batch x length x 3 hidden). */
static lw_status attend(const lw_op_call *c, const attention *a, const float *qkv, float *out, lw_error *err)
{
    int64_t n = a->length, size = a->hidden / a->heads, row = 3 * a->hidden;
    float *scores;
    LW_TRY(lw_room(&scores, n, n, sizeof *scores, err));
    lw_status status = LW_OK;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) {
            const float *q = qkv + b * n * row + h * size;
            lw_float_gemm s = {.m = n,
                               .n = n,
                               .k = size,
                               .a = q,
                               .a_row = row,
                               .a_column = 1,
                               .b = q + a->hidden,
                               .b_row = 1,
                               .b_column = row,
                               .c = scores,
                               .ldc = n,
                               .alpha = a->scale};
            LW_TRY_END(lw_float_product(c->pool, &s, err));
            for (int64_t i = 0; i < n; i++)
                for (int64_t k = 0; k < n; k++) {
                    if (is_masked(a, b, i, k))
                        scores[i * n + k] += a->masked;
                    if (a->causal && k > i)
                        scores[i * n + k] = -FLT_MAX;
                }
            LW_TRY_END(c->backend->softmax(c->pool, n, n, scores, scores, err));
            lw_float_gemm y = {.m = n,
                               .n = size,
                               .k = n,
                               .a = scores,
                               .a_row = n,
                               .a_column = 1,
                               .b = q + 2 * a->hidden,
                               .b_row = row,
                               .b_column = 1,
                               .c = out + b * n * a->hidden + h * size,
                               .ldc = a->hidden,
                               .alpha = 1};
            LW_TRY_END(lw_float_product(c->pool, &y, err));
        }
end:
    free(scores);
    return status;
}

static lw_status attention_of(attention *a, const lw_op_call *c, const lw_tensor *x, const lw_tensor *w,
                              int at_mask, int at_past, lw_error *err)
{
    if (!x || !w || x->rank != 3 || w->rank != 2 || w->dim[0] != x->dim[2] || w->dim[1] % 3)
        return lw_fail(err, LW_E_INPUT,
                       "the input (batch x length x n) and the weight (n x 3 m) do not agree");
    *a = (attention){.batch = x->dim[0],
                     .length = x->dim[1],
                     .hidden = w->dim[1] / 3,
                     .heads = lw_node_int(c->node, "num_heads", 0),
                     .masked = lw_node_float(c->node, "mask_filter_value", -10000),
                     .causal = lw_node_int(c->node, "unidirectional", 0) != 0,
                     .mask = lw_in(c, at_mask)};
    if (a->heads < 1 || a->hidden < 1 || a->hidden % a->heads)
        return lw_fail(err, LW_E_INPUT, "%lld heads of %lld elements", (long long)a->heads,
                       (long long)a->hidden);
    for (int i = at_past; i < c->n_in; i++)
        if (lw_in(c, i))
            return lw_fail(err, LW_E_INPUT, "input %d (past, or a bias of the attention) is not supported",
                           i);
    if (c->n_out > 1 || lw_node_attr(c->node, "qkv_hidden_sizes") || lw_node_int(c->node, "do_rotary", 0))
        return lw_fail(err, LW_E_INPUT,
                       "the present output, qkv_hidden_sizes and do_rotary are not supported");
    float scale = lw_node_float(c->node, "scale", 0);
    a->scale = scale > 0 ? scale : 1 / sqrtf((float)(a->hidden / a->heads));
    return check_mask(a, err);
}

static lw_status attend_to(const lw_op_call *c, const attention *a, const float *qkv, lw_error *err)
{
    int64_t dim[3] = {a->batch, a->length, a->hidden};
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, 3, dim, err));
    return attend(c, a, qkv, c->out[0]->data, err);
}

/* com.microsoft Attention: input, weight, bias, mask. */
static lw_status run_attention(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *w = lw_in(c, 1), *bias = lw_in(c, 2);
    attention a;
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(lw_want(w, LW_F32, "the weight", err));
    LW_TRY(attention_of(&a, c, x, w, 3, 4, err));
    int64_t rows = a.batch * a.length, wide = 3 * a.hidden;
    if (bias && (bias->dtype != LW_F32 || bias->count != wide))
        return lw_fail(err, LW_E_INPUT, "the bias must be %lld floats", (long long)wide);
    float *qkv;
    LW_TRY(lw_room(&qkv, rows, wide, sizeof *qkv, err));
    for (int64_t i = 0; i < rows * wide; i++)
        qkv[i] = bias ? ((const float *)bias->data)[i % wide] : 0;
    lw_float_gemm g = {.m = rows,
                       .n = wide,
                       .k = x->dim[2],
                       .a = x->data,
                       .a_row = x->dim[2],
                       .a_column = 1,
                       .b = w->data,
                       .b_row = wide,
                       .b_column = 1,
                       .keep_b = lw_call_keep(c, 1, 0, 1),
                       .c = qkv,
                       .ldc = wide,
                       .alpha = 1,
                       .accumulate = true};
    lw_status status = lw_float_product(c->pool, &g, err);
    if (status == LW_OK)
        status = attend_to(c, &a, qkv, err);
    free(qkv);
    return status;
}

/* One positive, finite number. */
static lw_status one_scale(const lw_tensor *t, const char *what, float *out, lw_error *err)
{
    LW_TRY(lw_want(t, LW_F32, what, err));
    *out = t->count == 1 ? *(const float *)t->data : 0;
    if (!(*out > 0) || !isfinite(*out))
        return lw_fail(err, LW_E_INPUT, "%s must be one positive, finite number", what);
    return LW_OK;
}

static lw_status one_zero(const lw_tensor *t, const lw_tensor *of, const char *what, int32_t *out,
                          lw_error *err)
{
    *out = 0;
    if (!t)
        return LW_OK;
    LW_TRY(lw_want(t, of->dtype, what, err));
    if (t->count != 1)
        return lw_fail(err, LW_E_INPUT, "%s must be one number", what);
    *out = (int32_t)lw_tensor_integer(t, 0);
    return LW_OK;
}

static lw_status want_bytes(const lw_tensor *t, const char *what, lw_error *err)
{
    if (!t || (t->dtype != LW_I8 && t->dtype != LW_U8))
        return lw_fail(err, LW_E_INPUT, "%s must be int8 or uint8", what);
    return LW_OK;
}

/* com.microsoft QAttention: input, weight, bias, input scale, weight scale, mask, input zero, weight zero.
 * The projection is an int8 product, the rest float32. */
static lw_status run_qattention(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *w = lw_in(c, 1), *bias = lw_in(c, 2), *w_scale = lw_in(c, 4),
                    *w_zero = lw_in(c, 7);
    attention a;
    float x_scale, *m = NULL, *qkv = NULL;
    int32_t x_zero, *zeros = NULL;
    lw_status status = LW_OK;
    LW_TRY(want_bytes(x, "the input", err));
    LW_TRY(want_bytes(w, "the weight", err));
    LW_TRY(attention_of(&a, c, x, w, 5, 8, err));
    LW_TRY(one_scale(lw_in(c, 3), "the input's scale", &x_scale, err));
    LW_TRY(one_zero(lw_in(c, 6), x, "the input's zero point", &x_zero, err));
    LW_TRY(lw_want(w_scale, LW_F32, "the weight's scale", err));
    LW_TRY(lw_want(bias, LW_F32, "the bias", err));
    int64_t rows = a.batch * a.length, wide = 3 * a.hidden, n_zeros = w_zero ? w_zero->count : 1;
    if (w_zero)
        LW_TRY(lw_want(w_zero, w->dtype, "the weight's zero point", err));
    if (bias->count != wide || (w_scale->count != 1 && w_scale->count != wide) ||
        (n_zeros != 1 && n_zeros != wide))
        return lw_fail(err, LW_E_INPUT, "bias, scales and zero points do not agree with the weight");
    if (x->dim[2] > lw_safe_depth(255 * 255, 0))
        return lw_fail(err, LW_E_RANGE, "sums of %lld products can be more than int32 holds",
                       (long long)x->dim[2]);
    LW_TRY_END(lw_room(&m, w_scale->count, 1, sizeof *m, err));
    LW_TRY_END(lw_room(&zeros, n_zeros, 1, sizeof *zeros, err));
    LW_TRY_END(lw_room(&qkv, rows, wide, sizeof *qkv, err));
    for (int64_t j = 0; j < w_scale->count; j++)
        m[j] = x_scale * ((const float *)w_scale->data)[j];
    for (int64_t j = 0; j < n_zeros; j++)
        zeros[j] = w_zero ? (int32_t)lw_tensor_integer(w_zero, j) : 0;
    lw_gemm g = {.m = rows,
                 .n = wide,
                 .k = x->dim[2],
                 .a = x->data,
                 .b = w->data,
                 .a_signed = x->dtype == LW_I8,
                 .b_signed = w->dtype == LW_I8,
                 .lda = x->dim[2],
                 .ldb = wide,
                 .ldc = wide,
                 .keep_b = !w_zero || (c->constant >> 7 & 1) ? lw_call_keep(c, 1, 0, 1) : NULL,
                 .a_zero = &x_zero,
                 .b_zero = zeros,
                 .a_zero_is_scalar = true,
                 .b_zero_is_scalar = n_zeros == 1,
                 .result = {.kind = LW_RESULT_REALS,
                            .multiplier = m,
                            .one_multiplier = w_scale->count == 1,
                            .real_bias = bias->data},
                 .c = qkv};
    LW_TRY_END(c->backend->gemm(c->pool, &g, err));
    LW_TRY_END(attend_to(c, &a, qkv, err));
end:
    free(m);
    free(zeros);
    free(qkv);
    return status;
}

/* ---- attention in integers -------------------------------------------------------------------------------
 */

/* lanewise QLinearAttention: q, k, v, each with scale and zero point (inputs 0 .. 8), then the output's scale
 * and zero point (without them the output is float32) and a float mask that is added to the scores (queries x
 * keys). q: ... x queries x size; k: ... x keys x size; v: ... x keys x width. scores = q . k in int32, times
 * q_scale * k_scale * scale, plus the mask; softmax in float32; the weights quantized to uint8 with scale
 * 1/255 and zero point 0; their product with v in int32, requantized. */
static lw_status run_qlinear_attention(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *t[3], *y_zero = lw_in(c, 10), *mask = lw_in(c, 11);
    static const char *const what[3] = {"q", "k", "v"};
    float scale[3], y_scale = 1;
    int32_t zero[3];
    bool to_float = !lw_in(c, 9), causal = lw_node_int(c->node, "causal", 0) != 0;
    lw_status status = LW_OK;
    for (int i = 0; i < 3; i++) {
        t[i] = lw_in(c, 3 * i);
        LW_TRY(want_bytes(t[i], what[i], err));
        LW_TRY(one_scale(lw_in(c, 3 * i + 1), "a scale", &scale[i], err));
        LW_TRY(one_zero(lw_in(c, 3 * i + 2), t[i], "a zero point", &zero[i], err));
        if (t[i]->rank < 2 || t[i]->rank != t[0]->rank ||
            memcmp(t[i]->dim, t[0]->dim, (size_t)(t[i]->rank - 2) * sizeof *t[i]->dim))
            return lw_fail(err, LW_E_INPUT, "q, k and v must agree in all but their last two dimensions");
    }
    int r = t[0]->rank;
    int64_t queries = t[0]->dim[r - 2], size = t[0]->dim[r - 1], keys = t[1]->dim[r - 2],
            width = t[2]->dim[r - 1];
    if (t[1]->dim[r - 1] != size || t[2]->dim[r - 2] != keys)
        return lw_fail(err, LW_E_INPUT,
                       "q (queries x size), k (keys x size) and v (keys x width) do not agree");
    if (mask)
        LW_TRY(lw_want(mask, LW_F32, "the mask", err));
    if (mask && mask->count != queries * keys)
        return lw_fail(err, LW_E_INPUT, "the mask must be queries x keys");
    lw_result result = {.kind = to_float ? LW_RESULT_REALS : LW_RESULT_QUANTIZED, .one_multiplier = true};
    if (!to_float) {
        LW_TRY(one_scale(lw_in(c, 9), "the output's scale", &y_scale, err));
        LW_TRY(want_bytes(y_zero, "the output's zero point", err));
        LW_TRY(one_zero(y_zero, y_zero, "the output's zero point", &result.zero, err));
        lw_dtype_range(y_zero->dtype, &result.low, &result.high);
    }
    if (size > lw_safe_depth(255 * 255, 0) || keys > lw_safe_depth(255 * 255, 0))
        return lw_fail(err, LW_E_RANGE, "sums of %lld products can be more than int32 holds",
                       (long long)(size > keys ? size : keys));
    static const float part = 1.0f / 255;
    float factor = lw_node_float(c->node, "scale", 0),
          to_scores = scale[0] * scale[1] * (factor > 0 ? factor : 1 / sqrtf((float)size)),
          multiplier = to_float ? part * scale[2] : lw_requantize_multiplier(part, scale[2], y_scale);
    result.multiplier = &multiplier;
    int64_t dim[LW_MAX_RANK];
    memcpy(dim, t[0]->dim, sizeof dim);
    dim[r - 1] = width;
    LW_TRY(lw_tensor_new(&c->out[0], to_float ? LW_F32 : y_zero->dtype, r, dim, err));
    float *scores = NULL;
    uint8_t *parts = NULL;
    LW_TRY_END(lw_room(&scores, queries, keys, sizeof *scores, err));
    LW_TRY_END(lw_room(&parts, queries, keys, 1, err));
    int32_t none = 0;
    for (int64_t b = 0; c->out[0]->count > 0 && b < lw_tensor_span(t[0], 0, r - 2); b++) {
        lw_gemm s = {.m = queries,
                     .n = keys,
                     .k = size,
                     .a = (const char *)t[0]->data + b * queries * size,
                     .b = (const char *)t[1]->data + b * keys * size,
                     .a_signed = t[0]->dtype == LW_I8,
                     .b_signed = t[1]->dtype == LW_I8,
                     .b_transposed = true,
                     .lda = size,
                     .ldb = size,
                     .ldc = keys,
                     .a_zero = &zero[0],
                     .b_zero = &zero[1],
                     .a_zero_is_scalar = true,
                     .b_zero_is_scalar = true,
                     .result = {.kind = LW_RESULT_REALS, .multiplier = &to_scores, .one_multiplier = true},
                     .c = scores};
        LW_TRY_END(c->backend->gemm(c->pool, &s, err));
        for (int64_t i = 0; i < queries; i++)
            for (int64_t k = 0; k < keys && (mask || causal); k++) {
                float *at = &scores[i * keys + k];
                *at += mask ? ((const float *)mask->data)[i * keys + k] : 0;
                if (causal && k > i + keys - queries)
                    *at = -FLT_MAX;
            }
        LW_TRY_END(c->backend->softmax(c->pool, queries, keys, scores, scores, err));
        for (int64_t i = 0; i < queries * keys; i++)
            parts[i] = (uint8_t)lw_quantize(scores[i], part, 0, 0, 255);
        lw_gemm y = {.m = queries,
                     .n = width,
                     .k = keys,
                     .a = parts,
                     .b = (const char *)t[2]->data + b * keys * width,
                     .b_signed = t[2]->dtype == LW_I8,
                     .lda = keys,
                     .ldb = width,
                     .ldc = width,
                     .a_zero = &none,
                     .b_zero = &zero[2],
                     .a_zero_is_scalar = true,
                     .b_zero_is_scalar = true,
                     .result = result,
                     .c = (char *)c->out[0]->data + b * queries * width * (to_float ? 4 : 1)};
        LW_TRY_END(c->backend->gemm(c->pool, &y, err));
    }
end:
    free(scores);
    free(parts);
    return status;
}

/* ---- embeddings ------------------------------------------------------------------------------------------
 */

/* A table of rows, float or 8-bit with scale and zero point. */
typedef struct rows_table {
    const lw_tensor *t;
    float scale;
    int32_t zero;
} rows_table;

static float element(const rows_table *table, int64_t i)
{
    return table->t->dtype == LW_F32
               ? ((const float *)table->t->data)[i]
               : lw_dequantize((int32_t)lw_tensor_integer(table->t, i), table->scale, table->zero);
}

/* Input `at`; scale and zero point at inputs at_scale and at_zero (-1: float). */
static lw_status table_of(rows_table *table, const lw_op_call *c, int at, int at_scale, int at_zero,
                          int64_t columns, lw_error *err)
{
    table->t = lw_in(c, at);
    if (at_scale < 0) {
        LW_TRY(lw_want(table->t, LW_F32, "an embedding", err));
    } else {
        LW_TRY(want_bytes(table->t, "an embedding", err));
        LW_TRY(one_scale(lw_in(c, at_scale), "an embedding's scale", &table->scale, err));
        LW_TRY(one_zero(lw_in(c, at_zero), table->t, "an embedding's zero point", &table->zero, err));
    }
    if (columns && (table->t->rank < 1 || table->t->dim[table->t->rank - 1] != columns))
        return lw_fail(err, LW_E_INPUT, "the embeddings have different widths");
    return LW_OK;
}

static lw_status row_of(const rows_table *table, int64_t row, int64_t *out, lw_error *err)
{
    if (table->t->rank != 2 || row < 0 || row >= table->t->dim[0])
        return lw_fail(err, LW_E_INPUT, "row %lld of an embedding of %lld rows", (long long)row,
                       (long long)(table->t->rank == 2 ? table->t->dim[0] : 0));
    *out = row * table->t->dim[1];
    return LW_OK;
}

static lw_status embed(const lw_op_call *c, bool quantized, lw_error *err)
{
    const lw_tensor *ids = lw_in(c, 0), *segments = lw_in(c, 1), *mask = lw_in(c, 7),
                    *positions = quantized ? NULL : lw_in(c, 8);
    rows_table word, place, segment = {0}, gamma, beta;
    bool has_segments = segments && lw_in(c, 4);
    LW_TRY(lw_want(ids, LW_I32, "the ids", err));
    if (ids->rank != 2)
        return lw_fail(err, LW_E_INPUT, "the ids have two dimensions");
    LW_TRY(table_of(&word, c, 2, quantized ? 8 : -1, 13, 0, err));
    if (word.t->rank != 2)
        return lw_fail(err, LW_E_INPUT, "an embedding has two dimensions");
    int64_t n = word.t->dim[1], batch = ids->dim[0], length = ids->dim[1];
    LW_TRY(table_of(&place, c, 3, quantized ? 9 : -1, 14, n, err));
    if (has_segments)
        LW_TRY(table_of(&segment, c, 4, quantized ? 10 : -1, 15, n, err));
    LW_TRY(table_of(&gamma, c, 5, quantized ? 11 : -1, 16, n, err));
    LW_TRY(table_of(&beta, c, 6, quantized ? 12 : -1, 17, n, err));
    if (gamma.t->count != n || beta.t->count != n)
        return lw_fail(err, LW_E_INPUT, "gamma and beta must have %lld values", (long long)n);
    const lw_tensor *alike[3] = {segments, mask, positions};
    for (int i = 0; i < 3; i++)
        if (alike[i] && (alike[i]->dtype != LW_I32 ||
                         (alike[i]->count != ids->count && !(i == 2 && alike[i]->count == length))))
            return lw_fail(err, LW_E_INPUT,
                           "segment ids, mask and positions must be int32, shaped as the ids");
    int64_t dim[3] = {batch, length, n};
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, 3, dim, err));
    lw_tensor *sum;
    LW_TRY(lw_tensor_new(&sum, LW_F32, 3, dim, err));
    lw_status status = LW_OK;
    float *scale = malloc((size_t)(2 * n) * sizeof *scale + 1);
    if (!scale) {
        status = lw_fail_memory(err, (size_t)(2 * n) * sizeof *scale);
        goto end;
    }
    for (int64_t j = 0; j < n; j++) {
        scale[j] = element(&gamma, j);
        scale[n + j] = element(&beta, j);
    }
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t at_word = 0, at_place = 0, at_segment = 0;
        const int32_t *p = positions ? positions->data : NULL;
        LW_TRY_END(row_of(&word, ((const int32_t *)ids->data)[i], &at_word, err));
        LW_TRY_END(
            row_of(&place, !p ? i % length : p[positions->count == length ? i % length : i], &at_place, err));
        if (has_segments)
            LW_TRY_END(row_of(&segment, ((const int32_t *)segments->data)[i], &at_segment, err));
        for (int64_t j = 0; j < n; j++)
            ((float *)sum->data)[i * n + j] = element(&word, at_word + j) + element(&place, at_place + j) +
                                              (has_segments ? element(&segment, at_segment + j) : 0);
    }
    LW_TRY_END(c->backend->layer_norm(c->pool, ids->count, n, sum->data, scale, scale + n,
                                      lw_node_float(c->node, "epsilon", 1e-12f), c->out[0]->data, NULL, NULL,
                                      err));
    if (c->n_out > 1) { /* how many of each sequence's places count */
        LW_TRY_END(lw_tensor_new(&c->out[1], LW_I32, 1, &batch, err));
        for (int64_t b = 0; b < batch; b++) {
            int32_t count = 0;
            for (int64_t i = 0; mask && i < length; i++)
                count += ((const int32_t *)mask->data)[b * length + i] != 0;
            ((int32_t *)c->out[1]->data)[b] = count;
        }
    }
    if (c->n_out > 2)
        c->out[2] = lw_tensor_retain(sum);
end:
    free(scale);
    lw_tensor_release(sum);
    return status;
}

static lw_status run_embed(const lw_op_call *c, lw_error *err)
{
    return embed(c, false, err);
}

static lw_status run_qembed(const lw_op_call *c, lw_error *err)
{
    return embed(c, true, err);
}

static const char microsoft[] = "com.microsoft";
const lw_op lw_ops_attention[] = {
    {microsoft, "Attention", 1, 0, 2, 6, run_attention, "float product, softmax", NULL},
    {microsoft, "QAttention", 1, 0, 5, 9, run_qattention, "int8 product, softmax", NULL},
    {"lanewise", "QLinearAttention", 1, 0, 9, 12, run_qlinear_attention, "int8 product, softmax", NULL},
    {microsoft, "EmbedLayerNormalization", 1, 0, 7, 9, run_embed, "gather, layer norm", NULL},
    {microsoft, "QEmbedLayerNormalization", 1, 0, 13, 18, run_qembed, "gather, layer norm", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
