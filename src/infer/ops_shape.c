/* ops_shape.c - operators that move, cut and join elements without computing on them. */
#include <math.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"

static lw_status need(const lw_tensor *t, lw_error *err)
{
    return t ? LW_OK : lw_fail(err, LW_E_INPUT, "an input is missing");
}

static lw_status integers(lw_tensor **out, int rank, int64_t n, const int64_t *values, lw_error *err)
{
    LW_TRY(lw_tensor_new(out, LW_I64, rank, &n, err));
    memcpy((*out)->data, values, (size_t)n * sizeof *values);
    return LW_OK;
}

static lw_status run_identity(const lw_op_call *c, lw_error *err)
{
    LW_TRY(need(lw_in(c, 0), err));
    c->out[0] = lw_tensor_retain(lw_in(c, 0));
    return LW_OK;
}

/* The outputs of the branch that ran; the reader has put those of both behind the condition. */
static lw_status run_if(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *condition = lw_in(c, 0);
    if (!condition || condition->dtype != LW_BOOL || condition->count != 1)
        return lw_fail(err, LW_E_INPUT, "the condition is not one bool");
    int first = lw_tensor_integer(condition, 0) ? 1 : 1 + c->n_out;
    for (int k = 0; k < c->n_out; k++) {
        LW_TRY(need(lw_in(c, first + k), err));
        c->out[k] = lw_tensor_retain(lw_in(c, first + k));
    }
    return LW_OK;
}

/* Inference keeps every element. */
static lw_status run_dropout(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *training = lw_in(c, 2);
    if (training && training->dtype == LW_BOOL && training->count == 1 && lw_tensor_integer(training, 0))
        return lw_fail(err, LW_E_INPUT, "training is not supported");
    LW_TRY(run_identity(c, err));
    if (c->n_out > 1) {
        LW_TRY(lw_tensor_new(&c->out[1], LW_BOOL, c->in[0]->rank, c->in[0]->dim, err));
        memset(c->out[1]->data, 1, (size_t)c->in[0]->count);
    }
    return LW_OK;
}

static lw_status run_constant(const lw_op_call *c, lw_error *err)
{
    const lw_attr *a = lw_node_attr(c->node, "value");
    if (a && a->kind == LW_ATTR_TENSOR) {
        c->out[0] = lw_tensor_retain(a->t);
        return LW_OK;
    }
    if ((a = lw_node_attr(c->node, "value_int")) && a->kind == LW_ATTR_INT)
        return integers(&c->out[0], 0, 1, &a->i, err);
    if ((a = lw_node_attr(c->node, "value_ints")) && a->kind == LW_ATTR_INTS)
        return integers(&c->out[0], 1, a->n, a->ints, err);
    if ((a = lw_node_attr(c->node, "value_float")) && a->kind == LW_ATTR_FLOAT) {
        LW_TRY(lw_tensor_new(&c->out[0], LW_F32, 0, NULL, err));
        *(float *)c->out[0]->data = a->f;
        return LW_OK;
    }
    if ((a = lw_node_attr(c->node, "value_floats")) && a->kind == LW_ATTR_FLOATS) {
        LW_TRY(lw_tensor_new(&c->out[0], LW_F32, 1, &a->n, err));
        memcpy(c->out[0]->data, a->floats, (size_t)a->n * sizeof(float));
        return LW_OK;
    }
    return lw_fail(err, LW_E_INPUT, "a constant of this kind is not supported");
}

static lw_status run_shape(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(need(x, err));
    int64_t start = lw_node_int(c->node, "start", 0), end = lw_node_int(c->node, "end", x->rank);
    start = start < 0 ? start + x->rank : start;
    end = end < 0 ? end + x->rank : end;
    start = start < 0 ? 0 : start > x->rank ? x->rank : start;
    end = end < start ? start : end > x->rank ? x->rank : end;
    return integers(&c->out[0], 1, end - start, x->dim + start, err);
}

static lw_status run_size(const lw_op_call *c, lw_error *err)
{
    LW_TRY(need(lw_in(c, 0), err));
    return integers(&c->out[0], 0, 1, &c->in[0]->count, err);
}

static lw_status run_reshape(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int64_t dim[LW_MAX_RANK], known = 1;
    int n, free_at = -1;
    LW_TRY(need(x, err));
    LW_TRY(lw_int_list(c, 1, NULL, dim, LW_MAX_RANK, &n, err));
    bool zero_is_zero = lw_node_int(c->node, "allowzero", 0) != 0;
    for (int k = 0; k < n; k++) {
        if (dim[k] == 0 && !zero_is_zero) {
            if (k >= x->rank)
                return lw_fail(err, LW_E_INPUT, "dimension %d is to be copied from an input of %d dimensions",
                               k, x->rank);
            dim[k] = x->dim[k];
        }
        if (dim[k] == -1 && free_at < 0)
            free_at = k;
        else if (dim[k] < 0 || __builtin_mul_overflow(known, dim[k], &known))
            return lw_fail(err, LW_E_INPUT, "the wanted shape cannot be");
    }
    if (free_at >= 0)
        dim[free_at] = known ? x->count / known : 0;
    return lw_tensor_view(&c->out[0], x, n, dim, err);
}

static lw_status run_flatten(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(need(x, err));
    int64_t axis = lw_node_int(c->node, "axis", 1);
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis > x->rank)
        return lw_fail(err, LW_E_INPUT, "axis %lld does not exist in %d dimensions", (long long)axis,
                       x->rank);
    int64_t dim[2] = {lw_tensor_span(x, 0, (int)axis), lw_tensor_span(x, (int)axis, x->rank)};
    return lw_tensor_view(&c->out[0], x, 2, dim, err);
}

/* Marks the axes that a list names, in `rank` dimensions. */
static lw_status mark_axes(const lw_op_call *c, int rank, bool marked[LW_MAX_RANK], int *n, lw_error *err)
{
    int64_t axes[LW_MAX_RANK];
    LW_TRY(lw_int_list(c, 1, "axes", axes, LW_MAX_RANK, n, err));
    memset(marked, 0, LW_MAX_RANK * sizeof *marked);
    for (int i = 0; i < *n; i++) {
        int axis;
        LW_TRY(lw_axis(axes[i], rank, &axis, err));
        if (marked[axis])
            return lw_fail(err, LW_E_INPUT, "axis %d stands twice", axis);
        marked[axis] = true;
    }
    return LW_OK;
}

static lw_status run_squeeze(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    bool marked[LW_MAX_RANK];
    int64_t dim[LW_MAX_RANK];
    int n, rank = 0;
    LW_TRY(need(x, err));
    LW_TRY(mark_axes(c, x->rank, marked, &n, err));
    for (int k = 0; k < x->rank; k++) {
        if (n > 0 && marked[k] && x->dim[k] != 1)
            return lw_fail(err, LW_E_INPUT, "dimension %d has %lld elements and cannot go", k,
                           (long long)x->dim[k]);
        if (n > 0 ? !marked[k] : x->dim[k] != 1)
            dim[rank++] = x->dim[k];
    }
    return lw_tensor_view(&c->out[0], x, rank, dim, err);
}

static lw_status run_unsqueeze(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    bool marked[LW_MAX_RANK];
    int64_t dim[LW_MAX_RANK], axes[LW_MAX_RANK];
    int n;
    LW_TRY(need(x, err));
    LW_TRY(lw_int_list(c, 1, "axes", axes, LW_MAX_RANK, &n, err));
    if (x->rank + n > LW_MAX_RANK)
        return lw_fail(err, LW_E_INPUT, "more than %d dimensions", LW_MAX_RANK);
    LW_TRY(mark_axes(c, x->rank + n, marked, &n, err));
    for (int k = 0, from = 0; k < x->rank + n; k++)
        dim[k] = marked[k] ? 1 : x->dim[from++];
    return lw_tensor_view(&c->out[0], x, x->rank + n, dim, err);
}

#define COPY_RUN(type)                                                                                       \
    for (int64_t i = 0; i < n; i++)                                                                          \
        ((type *)(void *)to)[i] = ((const type *)(const void *)from)[i * stride];                            \
    break;

/* n elements that lie `stride` apart. */
static void copy_run(int64_t n, int64_t size, const char *from, int64_t stride, char *to)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 1:
        COPY_RUN(uint8_t)
    case 2:
        COPY_RUN(uint16_t)
    case 4:
        COPY_RUN(uint32_t)
    default:
        COPY_RUN(uint64_t)
    }
}

/* Copies elements: out index o takes from offset + sum index[k] * stride[k] (elements of x). */
static void gather_strided(const lw_tensor *x, const int64_t *stride_of, int64_t offset, lw_tensor *y)
{
    int64_t index[LW_MAX_RANK] = {0}, dim[LW_MAX_RANK], stride[LW_MAX_RANK], at = offset;
    int64_t size = lw_dtype_size(x->dtype);
    int rank = 0;
    /* dimensions that are stepped through as through one become one */
    for (int k = 0; k < y->rank; k++) {
        if (y->dim[k] == 1)
            continue;
        bool joins = rank > 0 && stride[rank - 1] == stride_of[k] * y->dim[k];
        rank += !joins;
        dim[rank - 1] = joins ? dim[rank - 1] * y->dim[k] : y->dim[k];
        stride[rank - 1] = stride_of[k];
    }
    if (rank == 0) {
        dim[0] = stride[0] = 1;
        rank = 1;
    }
    int64_t run = dim[--rank], apart = stride[rank];
    const char *from = x->data;
    char *to = y->data;
    for (int64_t i = 0; i < y->count; i += run) {
        copy_run(run, size, from + at * size, apart, to + i * size);
        for (int k = rank - 1; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < dim[k])
                break;
            at -= stride[k] * dim[k];
            index[k] = 0;
        }
    }
}

static void own_strides(const lw_tensor *x, int64_t *stride)
{
    int64_t step = 1;
    for (int k = x->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= x->dim[k];
    }
}

static lw_status run_transpose(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(need(x, err));
    int64_t n, own[LW_MAX_RANK], stride[LW_MAX_RANK], dim[LW_MAX_RANK];
    const int64_t *perm = lw_node_ints(c->node, "perm", &n);
    bool seen[LW_MAX_RANK] = {false};
    if (perm && n != x->rank)
        return lw_fail(err, LW_E_INPUT, "a permutation of %lld for %d dimensions", (long long)n, x->rank);
    own_strides(x, own);
    for (int k = 0; k < x->rank; k++) {
        int64_t from = perm ? perm[k] : x->rank - 1 - k;
        if (from < 0 || from >= x->rank || seen[from])
            return lw_fail(err, LW_E_INPUT, "perm is not a permutation");
        seen[from] = true;
        dim[k] = x->dim[from];
        stride[k] = own[from];
    }
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, dim, err));
    gather_strided(x, stride, 0, c->out[0]);
    return LW_OK;
}

static lw_status run_expand(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int64_t want[LW_MAX_RANK], dim[LW_MAX_RANK], stride[LW_MAX_RANK];
    int n, rank;
    LW_TRY(need(x, err));
    LW_TRY(lw_int_list(c, 1, NULL, want, LW_MAX_RANK, &n, err));
    lw_tensor other = {.rank = n};
    memcpy(other.dim, want, sizeof want);
    LW_TRY(lw_broadcast(x, &other, &rank, dim, err));
    lw_broadcast_strides(x, rank, stride);
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, rank, dim, err));
    gather_strided(x, stride, 0, c->out[0]);
    return LW_OK;
}

static lw_status run_tile(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int64_t repeats[LW_MAX_RANK], dim[LW_MAX_RANK], own[LW_MAX_RANK], index[LW_MAX_RANK] = {0};
    int n;
    LW_TRY(need(x, err));
    LW_TRY(lw_int_list(c, 1, NULL, repeats, LW_MAX_RANK, &n, err));
    if (n != x->rank)
        return lw_fail(err, LW_E_INPUT, "%d repeats for %d dimensions", n, x->rank);
    for (int k = 0; k < n; k++)
        if (repeats[k] < 0 || __builtin_mul_overflow(x->dim[k], repeats[k], &dim[k]))
            return lw_fail(err, LW_E_INPUT, "repeats[%d] is %lld", k, (long long)repeats[k]);
    own_strides(x, own);
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, n, dim, err));
    int64_t size = lw_dtype_size(x->dtype);
    for (int64_t i = 0; i < c->out[0]->count; i++) {
        int64_t at = 0;
        for (int k = 0; k < n; k++)
            at += index[k] % x->dim[k] * own[k];
        memcpy((char *)c->out[0]->data + i * size, (const char *)x->data + at * size, (size_t)size);
        for (int k = n - 1; k >= 0 && ++index[k] == dim[k]; k--)
            index[k] = 0;
    }
    return LW_OK;
}

static lw_status run_concat(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *first = lw_in(c, 0);
    int axis;
    LW_TRY(need(first, err));
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), first->rank, &axis, err));
    int64_t dim[LW_MAX_RANK], size = lw_dtype_size(first->dtype), at = 0;
    memcpy(dim, first->dim, sizeof dim);
    dim[axis] = 0;
    for (int i = 0; i < c->n_in; i++) {
        const lw_tensor *x = lw_in(c, i);
        LW_TRY(need(x, err));
        bool same = x->rank == first->rank && x->dtype == first->dtype;
        for (int k = 0; same && k < first->rank; k++)
            same = k == axis || x->dim[k] == dim[k];
        if (!same)
            return lw_fail(err, LW_E_INPUT, "input %d has another type or shape than the first", i);
        dim[axis] += x->dim[axis];
    }
    LW_TRY(lw_tensor_new(&c->out[0], first->dtype, first->rank, dim, err));
    int64_t outer = lw_tensor_span(first, 0, axis),
            inner = lw_tensor_span(first, axis + 1, first->rank) * size;
    for (int i = 0; i < c->n_in && c->out[0]->count > 0; i++) {
        const lw_tensor *x = lw_in(c, i);
        int64_t span = x->dim[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            memcpy((char *)c->out[0]->data + o * dim[axis] * inner + at, (const char *)x->data + o * span,
                   (size_t)span);
        at += span;
    }
    return LW_OK;
}

lw_status lw_split_of(const lw_op_call *c, int *axis, int64_t *parts, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int n;
    int64_t sum = 0;
    LW_TRY(need(x, err));
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), x->rank, axis, err));
    LW_TRY(lw_int_list(c, 1, "split", parts, c->n_out, &n, err));
    if (n == 0) { /* equal parts, the last one may be smaller (opset 18) */
        int64_t each = (x->dim[*axis] + c->n_out - 1) / c->n_out;
        for (int i = 0; i < c->n_out; i++, sum += each)
            parts[i] = sum + each > x->dim[*axis] ? x->dim[*axis] - sum : each;
        n = c->n_out;
        sum = 0;
    }
    for (int i = 0; i < n; i++)
        if (parts[i] < 0 || __builtin_add_overflow(sum, parts[i], &sum))
            return lw_fail(err, LW_E_INPUT, "part %d has %lld elements", i, (long long)parts[i]);
    if (n != c->n_out || sum != x->dim[*axis])
        return lw_fail(err, LW_E_INPUT, "%d parts of %lld together for %d outputs and %lld elements", n,
                       (long long)sum, c->n_out, (long long)x->dim[*axis]);
    return LW_OK;
}

static lw_status run_split(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int axis = 0;
    int64_t *parts = malloc(((size_t)c->n_out + 1) * sizeof *parts), at = 0;
    if (!parts)
        return lw_fail_memory(err, (size_t)c->n_out * sizeof *parts);
    lw_status status = lw_split_of(c, &axis, parts, err);
    for (int i = 0; status == LW_OK && i < c->n_out; i++) {
        int64_t dim[LW_MAX_RANK], outer = lw_tensor_span(x, 0, axis),
                                  inner = lw_tensor_span(x, axis + 1, x->rank) * lw_dtype_size(x->dtype);
        memcpy(dim, x->dim, sizeof dim);
        dim[axis] = parts[i];
        status = lw_tensor_new(&c->out[i], x->dtype, x->rank, dim, err);
        for (int64_t o = 0; status == LW_OK && parts[i] * inner > 0 && o < outer; o++)
            memcpy((char *)c->out[i]->data + o * parts[i] * inner,
                   (const char *)x->data + (o * x->dim[axis] + at) * inner, (size_t)(parts[i] * inner));
        at += parts[i];
    }
    free(parts);
    return status;
}

lw_status lw_slice_of(const lw_op_call *c, int64_t dim[LW_MAX_RANK], int64_t stride[LW_MAX_RANK],
                      int64_t *offset, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int64_t start[LW_MAX_RANK], end[LW_MAX_RANK], axes[LW_MAX_RANK], steps[LW_MAX_RANK];
    int n_start, n_end, n_axes, n_steps;
    bool old = c->node->opset < 10;
    LW_TRY(need(x, err));
    LW_TRY(lw_int_list(c, old ? -1 : 1, "starts", start, LW_MAX_RANK, &n_start, err));
    LW_TRY(lw_int_list(c, old ? -1 : 2, "ends", end, LW_MAX_RANK, &n_end, err));
    LW_TRY(lw_int_list(c, old ? -1 : 3, "axes", axes, LW_MAX_RANK, &n_axes, err));
    LW_TRY(lw_int_list(c, old ? -1 : 4, NULL, steps, LW_MAX_RANK, &n_steps, err));
    if (n_start != n_end || (n_axes && n_axes != n_start) || (n_steps && n_steps != n_start))
        return lw_fail(err, LW_E_INPUT, "starts, ends, axes and steps have different lengths");
    bool cut[LW_MAX_RANK] = {false};
    *offset = 0;
    own_strides(x, stride);
    memcpy(dim, x->dim, sizeof x->dim);
    for (int i = 0; i < n_start; i++) {
        int axis;
        int64_t by = n_steps ? steps[i] : 1, s = start[i], e = end[i];
        LW_TRY(lw_axis(n_axes ? axes[i] : i, x->rank, &axis, err));
        int64_t d = x->dim[axis];
        if (by == 0)
            return lw_fail(err, LW_E_INPUT, "a step of 0");
        if (cut[axis])
            return lw_fail(err, LW_E_INPUT, "axis %d stands twice", axis);
        cut[axis] = true;
        by = by > d ? d + 1 : by < -d ? -d - 1 : by; /* further than that leads nowhere else */
        s = s < 0 ? s + d : s;
        e = e < 0 ? (e < -d ? -1 : e + d) : e;
        if (by > 0) {
            s = s < 0 ? 0 : s > d ? d : s;
            e = e < 0 ? 0 : e > d ? d : e;
            dim[axis] = e > s ? (e - s + by - 1) / by : 0;
        } else {
            s = s < 0 ? 0 : s; /* unlike Python's, a start before the first element stands for that */
            s = s >= d ? d - 1 : s;
            e = e > d ? d : e;
            dim[axis] = s > e ? (s - e - by - 1) / -by : 0;
        }
        *offset += (s < 0 ? 0 : s) * stride[axis];
        if (__builtin_mul_overflow(stride[axis], by, &stride[axis]))
            return lw_fail(err, LW_E_RANGE, "a step of %lld is too long", (long long)by);
    }
    return LW_OK;
}

static lw_status run_slice(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    int64_t dim[LW_MAX_RANK], stride[LW_MAX_RANK], offset;
    LW_TRY(lw_slice_of(c, dim, stride, &offset, err));
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, dim, err));
    gather_strided(x, stride, offset, c->out[0]);
    return LW_OK;
}

lw_status lw_checked_index(const lw_tensor *indices, int64_t i, int64_t limit, int64_t *out, lw_error *err)
{
    int64_t v = lw_tensor_integer(indices, i);
    *out = v < 0 ? v + limit : v;
    if (*out < 0 || *out >= limit)
        return lw_fail(err, LW_E_INPUT, "index %lld lies outside %lld elements", (long long)v,
                       (long long)limit);
    return LW_OK;
}

lw_status lw_want_indices(const lw_tensor *t, lw_error *err)
{
    if (!t || (t->dtype != LW_I64 && t->dtype != LW_I32))
        return lw_fail(err, LW_E_INPUT, "indices must be int32 or int64");
    return LW_OK;
}

static lw_status run_gather(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *indices = lw_in(c, 1);
    int axis;
    LW_TRY(need(x, err));
    LW_TRY(lw_want_indices(indices, err));
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), x->rank, &axis, err));
    int rank = x->rank - 1 + indices->rank;
    if (rank > LW_MAX_RANK)
        return lw_fail(err, LW_E_INPUT, "more than %d dimensions", LW_MAX_RANK);
    int64_t dim[LW_MAX_RANK], size = lw_dtype_size(x->dtype);
    for (int k = 0; k < rank; k++)
        dim[k] = k < axis                   ? x->dim[k]
                 : k < axis + indices->rank ? indices->dim[k - axis]
                                            : x->dim[k - indices->rank + 1];
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, rank, dim, err));
    int64_t outer = lw_tensor_span(x, 0, axis), inner = lw_tensor_span(x, axis + 1, x->rank) * size;
    for (int64_t o = 0; o < outer && c->out[0]->count > 0; o++)
        for (int64_t i = 0; i < indices->count; i++) {
            int64_t at;
            LW_TRY(lw_checked_index(indices, i, x->dim[axis], &at, err));
            memcpy((char *)c->out[0]->data + (o * indices->count + i) * inner,
                   (const char *)x->data + (o * x->dim[axis] + at) * inner, (size_t)inner);
        }
    return LW_OK;
}

static lw_status run_gather_elements(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *indices = lw_in(c, 1);
    int axis;
    LW_TRY(need(x, err));
    LW_TRY(lw_want_indices(indices, err));
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), x->rank, &axis, err));
    if (indices->rank != x->rank)
        return lw_fail(err, LW_E_INPUT, "indices of %d dimensions for an input of %d", indices->rank,
                       x->rank);
    for (int k = 0; k < x->rank; k++)
        if (k != axis && indices->dim[k] > x->dim[k])
            return lw_fail(err, LW_E_INPUT, "indices exceed the input along dimension %d", k);
    int64_t own[LW_MAX_RANK], index[LW_MAX_RANK] = {0}, size = lw_dtype_size(x->dtype);
    own_strides(x, own);
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, indices->dim, err));
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t at;
        LW_TRY(lw_checked_index(indices, i, x->dim[axis], &at, err));
        at *= own[axis];
        for (int k = 0; k < x->rank; k++)
            at += k == axis ? 0 : index[k] * own[k];
        memcpy((char *)c->out[0]->data + i * size, (const char *)x->data + at * size, (size_t)size);
        for (int k = x->rank - 1; k >= 0 && ++index[k] == indices->dim[k]; k--)
            index[k] = 0;
    }
    return LW_OK;
}

static lw_status run_gather_nd(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *indices = lw_in(c, 1);
    LW_TRY(need(x, err));
    LW_TRY(lw_want_indices(indices, err));
    int64_t batch = lw_node_int(c->node, "batch_dims", 0), dim[LW_MAX_RANK], own[LW_MAX_RANK];
    int64_t depth = indices->rank > 0 ? indices->dim[indices->rank - 1] : 0;
    if (indices->rank < 1 || batch < 0 || batch >= indices->rank || batch + depth > x->rank || depth < 1)
        return lw_fail(err, LW_E_INPUT,
                       "indices of %lld places and %lld batch dimensions for an input of %d dimensions",
                       (long long)depth, (long long)batch, x->rank);
    for (int k = 0; k < batch; k++)
        if (indices->dim[k] != x->dim[k])
            return lw_fail(err, LW_E_INPUT, "batch dimension %d differs", k);
    int rank = 0, from = (int)(batch + depth);
    if (indices->rank - 1 + x->rank - from > LW_MAX_RANK)
        return lw_fail(err, LW_E_INPUT, "more than %d dimensions", LW_MAX_RANK);
    for (int k = 0; k < indices->rank - 1; k++)
        dim[rank++] = indices->dim[k];
    for (int k = from; k < x->rank; k++)
        dim[rank++] = x->dim[k];
    own_strides(x, own);
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, rank, dim, err));
    int64_t size = lw_dtype_size(x->dtype), slice = lw_tensor_span(x, from, x->rank) * size;
    int64_t tuples = indices->count / depth, batches = lw_tensor_span(x, 0, (int)batch),
            each = batches ? tuples / batches : 0;
    int64_t batch_size = lw_tensor_span(x, (int)batch, x->rank);
    for (int64_t t = 0; t < tuples; t++) {
        int64_t at = t / each * batch_size;
        for (int64_t k = 0; k < depth; k++) {
            int64_t index;
            LW_TRY(lw_checked_index(indices, t * depth + k, x->dim[batch + k], &index, err));
            at += index * own[batch + k];
        }
        memcpy((char *)c->out[0]->data + t * slice, (const char *)x->data + at * size, (size_t)slice);
    }
    return LW_OK;
}

static lw_status run_constant_of_shape(const lw_op_call *c, lw_error *err)
{
    int64_t dim[LW_MAX_RANK];
    int n;
    LW_TRY(lw_int_list(c, 0, NULL, dim, LW_MAX_RANK, &n, err));
    const lw_attr *value = lw_node_attr(c->node, "value");
    bool given = value && value->kind == LW_ATTR_TENSOR && value->t->count == 1;
    LW_TRY(lw_tensor_new(&c->out[0], given ? value->t->dtype : LW_F32, n, dim, err));
    size_t size = (size_t)lw_dtype_size(c->out[0]->dtype);
    for (int64_t i = 0; i < c->out[0]->count; i++)
        if (given)
            memcpy((char *)c->out[0]->data + (size_t)i * size, value->t->data, size);
        else
            ((float *)c->out[0]->data)[i] = 0;
    return LW_OK;
}

static lw_status run_range(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *start = lw_in(c, 0), *limit = lw_in(c, 1), *delta = lw_in(c, 2);
    if (!start || !limit || !delta || start->count != 1 || limit->count != 1 || delta->count != 1 ||
        start->dtype != limit->dtype || start->dtype != delta->dtype)
        return lw_fail(err, LW_E_INPUT, "start, limit and delta must be single numbers of one type");
    double s = lw_tensor_number(start, 0), d = lw_tensor_number(delta, 0),
           count = ceil((lw_tensor_number(limit, 0) - s) / d);
    if (d == 0 || !(count < 0x1p40))
        return lw_fail(err, LW_E_INPUT, "a range that does not end");
    int64_t n = count > 0 ? (int64_t)count : 0;
    LW_TRY(lw_tensor_new(&c->out[0], start->dtype, 1, &n, err));
    for (int64_t i = 0; i < n; i++)
        switch (start->dtype) {
        case LW_F32:
            ((float *)c->out[0]->data)[i] = (float)(s + (double)i * d);
            break;
        case LW_F64:
            ((double *)c->out[0]->data)[i] = s + (double)i * d;
            break;
        case LW_I32:
            ((int32_t *)c->out[0]->data)[i] = (int32_t)(s + (double)i * d);
            break;
        case LW_I64:
            ((uint64_t *)c->out[0]->data)[i] = /* its products may leave int64 on the way */
                (uint64_t)lw_tensor_integer(start, 0) + (uint64_t)i * (uint64_t)lw_tensor_integer(delta, 0);
            break;
        default:
            return lw_fail(err, LW_E_INPUT, "a range of %s is not supported", lw_dtype_name(start->dtype));
        }
    return LW_OK;
}

/* No padding is that wide, and no sum below it overflows. */
#define LW_PAD_MOST (INT64_C(1) << 48)

static lw_status run_pad(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *fill = lw_in(c, 2);
    const char *mode = lw_node_string(c->node, "mode", "constant");
    int64_t pads[2 * LW_MAX_RANK], axes[LW_MAX_RANK], before[LW_MAX_RANK] = {0}, after[LW_MAX_RANK] = {0},
                                                      dim[LW_MAX_RANK];
    int64_t own[LW_MAX_RANK], index[LW_MAX_RANK] = {0};
    int n, n_axes = 0;
    LW_TRY(need(x, err));
    LW_TRY(lw_int_list(c, c->node->opset < 11 ? -1 : 1, "pads", pads, 2 * LW_MAX_RANK, &n, err));
    if (c->n_in > 3)
        LW_TRY(lw_int_list(c, 3, NULL, axes, LW_MAX_RANK, &n_axes, err));
    int count = n_axes ? n_axes : x->rank;
    bool constant = strcmp(mode, "constant") == 0, edge = strcmp(mode, "edge") == 0,
         reflect = strcmp(mode, "reflect") == 0, wrap = strcmp(mode, "wrap") == 0;
    if (n != 2 * count)
        return lw_fail(err, LW_E_INPUT, "%d pads for %d dimensions", n, count);
    if (!constant && !edge && !reflect && !wrap)
        return lw_fail(err, LW_E_INPUT, "mode %s is not supported", mode);
    if (fill && (fill->dtype != x->dtype || fill->count != 1))
        return lw_fail(err, LW_E_INPUT, "the padding value must be one number of the input's type");
    for (int i = 0; i < count; i++) {
        int axis;
        LW_TRY(lw_axis(n_axes ? axes[i] : i, x->rank, &axis, err));
        before[axis] = pads[i];
        after[axis] = pads[count + i];
    }
    for (int k = 0; k < x->rank; k++) {
        if (before[k] > LW_PAD_MOST || before[k] < -LW_PAD_MOST || after[k] > LW_PAD_MOST ||
            after[k] < -LW_PAD_MOST)
            return lw_fail(err, LW_E_INPUT, "dimension %d cannot be padded by %lld and %lld", k,
                           (long long)before[k], (long long)after[k]);
        dim[k] = x->dim[k] + before[k] + after[k];
        if (dim[k] < 0 || (!constant && x->dim[k] == 0 && dim[k] > 0))
            return lw_fail(err, LW_E_INPUT, "dimension %d cannot be padded so", k);
    }
    own_strides(x, own);
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, dim, err));
    size_t size = (size_t)lw_dtype_size(x->dtype);
    float old_value = lw_node_float(c->node, "value", 0);
    char zero[8] = {0};
    if (!fill && c->node->opset < 11 && x->dtype == LW_F32)
        memcpy(zero, &old_value, sizeof old_value);
    for (int64_t i = 0; i < c->out[0]->count; i++) {
        int64_t at = 0;
        bool inside = true;
        for (int k = 0; k < x->rank; k++) {
            int64_t from = index[k] - before[k], d = x->dim[k];
            if (from < 0 || from >= d) {
                inside = !constant;
                if (edge)
                    from = from < 0 ? 0 : d - 1;
                else if (wrap)
                    from = ((from % d) + d) % d;
                else if (reflect && d > 1) {
                    int64_t period = 2 * (d - 1);
                    from = ((from % period) + period) % period;
                    from = from < d ? from : period - from;
                } else
                    from = 0;
            }
            if (!inside)
                break;
            at += from * own[k];
        }
        memcpy((char *)c->out[0]->data + (size_t)i * size,
               inside ? (const char *)x->data + (size_t)at * size
               : fill ? fill->data
                      : zero,
               size);
        for (int k = x->rank - 1; k >= 0 && ++index[k] == dim[k]; k--)
            index[k] = 0;
    }
    return LW_OK;
}

static const char moves[] = "copy", renames[] = "view";
const lw_op lw_ops_shape[] = {
    {"", "Identity", 1, 0, 1, 1, run_identity, renames, NULL},
    {"", "If", 1, 0, 1, INT_MAX, run_if, "branch", NULL},
    {"", "Dropout", 7, 0, 1, 3, run_dropout, renames, NULL},
    {"", "Constant", 1, 0, 0, 0, run_constant, renames, NULL},
    {"", "Shape", 1, 0, 1, 1, run_shape, renames, NULL},
    {"", "Size", 1, 0, 1, 1, run_size, renames, NULL},
    {"", "Reshape", 5, 0, 2, 2, run_reshape, renames, NULL},
    {"", "Flatten", 1, 0, 1, 1, run_flatten, renames, NULL},
    {"", "Squeeze", 1, 0, 1, 2, run_squeeze, renames, NULL},
    {"", "Unsqueeze", 1, 0, 1, 2, run_unsqueeze, renames, NULL},
    {"", "Transpose", 1, 0, 1, 1, run_transpose, moves, NULL},
    {"", "Expand", 8, 0, 2, 2, run_expand, moves, NULL},
    {"", "Tile", 6, 0, 2, 2, run_tile, moves, NULL},
    {"", "Concat", 4, 0, 1, 1 << 20, run_concat, moves, NULL},
    {"", "Split", 2, 0, 1, 2, run_split, moves, NULL},
    {"", "Slice", 1, 0, 1, 5, run_slice, moves, NULL},
    {"", "Gather", 1, 0, 2, 2, run_gather, moves, NULL},
    {"", "GatherElements", 11, 0, 2, 2, run_gather_elements, moves, NULL},
    {"", "GatherND", 11, 0, 2, 2, run_gather_nd, moves, NULL},
    {"", "ConstantOfShape", 9, 0, 1, 1, run_constant_of_shape, moves, NULL},
    {"", "Range", 11, 0, 3, 3, run_range, moves, NULL},
    {"", "Pad", 2, 0, 1, 4, run_pad, moves, NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
