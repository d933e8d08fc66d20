/* infer_cuda_nodes_moves.c - operators on the device that only move elements. */
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/infer_cuda_nodes.h"

/* Shapes and indices (int64) stay with the host, which computes with them. */
static bool moves_here(const lw_tensor *t)
{
    return t && t->bits == 0 && t->dtype != LW_I64 && t->dtype != LW_BOOL;
}

static bool transpose_fits(const lw_op_call *c)
{
    const lw_tensor *x = lw_in(c, 0);
    int64_t n;
    bool seen[LW_MAX_RANK] = {false};
    if (!moves_here(x))
        return false;
    const int64_t *perm = lw_node_ints(c->node, "perm", &n);
    for (int k = 0; perm && k < x->rank; k++) {
        if (n != x->rank || perm[k] < 0 || perm[k] >= x->rank || seen[perm[k]])
            return false;
        seen[perm[k]] = true;
    }
    return true;
}

static void steps_of(int rank, const int64_t *dim, int64_t *stride)
{
    int64_t step = 1;
    for (int k = rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= dim[k];
    }
}

static lw_status node_transpose(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    if (!lw_cuda_accept(x, transpose_fits(c), fits))
        return LW_OK;
    lw_tensor *t = lw_in(c, 0);
    int64_t n, own[LW_MAX_RANK];
    const int64_t *perm = lw_node_ints(c->node, "perm", &n);
    lw_cuda_strided s = {.rank = t->rank, .size = (int)lw_dtype_size(t->dtype)};
    steps_of(t->rank, t->dim, own);
    for (int k = 0; k < t->rank; k++) {
        int64_t from = perm ? perm[k] : t->rank - 1 - k;
        s.dim[k] = t->dim[from];
        s.stride[k] = own[from];
    }
    steps_of(s.rank, s.dim, s.to_stride);
    LW_TRY(lw_cuda_bring(x, t, &s.from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], t->dtype, t->rank, s.dim, &s.to, err));
    return lw_cuda_copy_strided(x, &s, err);
}

static bool concat_fits(const lw_op_call *c)
{
    const lw_tensor *first = lw_in(c, 0);
    int axis;
    if (!moves_here(first) || lw_axis(lw_node_int(c->node, "axis", 0), first->rank, &axis, NULL) != LW_OK)
        return false;
    for (int i = 0; i < c->n_in; i++) {
        const lw_tensor *t = lw_in(c, i);
        if (!t || t->rank != first->rank || t->dtype != first->dtype)
            return false;
        for (int k = 0; k < t->rank; k++)
            if (k != axis && t->dim[k] != first->dim[k])
                return false;
    }
    return true;
}

static lw_status node_concat(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    if (!lw_cuda_accept(x, concat_fits(c), fits))
        return LW_OK;
    lw_tensor *first = lw_in(c, 0);
    int axis = 0;
    int64_t dim[LW_MAX_RANK], size = lw_dtype_size(first->dtype), at = 0;
    void *to;
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), first->rank, &axis, err));
    memcpy(dim, first->dim, sizeof dim);
    dim[axis] = 0;
    for (int i = 0; i < c->n_in; i++)
        dim[axis] += lw_in(c, i)->dim[axis];
    LW_TRY(lw_cuda_tensor(x, &c->out[0], first->dtype, first->rank, dim, &to, err));
    for (int i = 0; i < c->n_in; i++) {
        lw_tensor *t = lw_in(c, i);
        lw_cuda_strided s = {.rank = t->rank, .size = (int)size};
        memcpy(s.dim, t->dim, sizeof s.dim);
        steps_of(t->rank, t->dim, s.stride);
        steps_of(t->rank, dim, s.to_stride);
        LW_TRY(lw_cuda_bring(x, t, &s.from, err));
        s.to = (char *)to + at * s.to_stride[axis] * size;
        LW_TRY(lw_cuda_copy_strided(x, &s, err));
        at += t->dim[axis];
    }
    return LW_OK;
}

/* Also shapes and indices that only the device has, where the host knows what is cut: inputs `first` on. */
static bool cuts_here(const lw_op_call *c, int first)
{
    const lw_tensor *t = lw_in(c, 0);
    for (int i = first; i < c->n_in; i++)
        if (lw_elsewhere(lw_in(c, i)))
            return false;
    return moves_here(t) || (lw_elsewhere(t) && t->bits == 0);
}

static lw_status node_slice(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    lw_cuda_strided s = {0};
    int64_t offset;
    const char *from;
    if (!lw_cuda_accept(x, cuts_here(c, 1) && lw_slice_of(c, s.dim, s.stride, &offset, NULL) == LW_OK, fits))
        return LW_OK;
    s.rank = t->rank;
    s.size = (int)lw_dtype_size(t->dtype);
    steps_of(s.rank, s.dim, s.to_stride);
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], t->dtype, t->rank, s.dim, &s.to, err));
    s.from = from + offset * s.size;
    return lw_cuda_copy_strided(x, &s, err);
}

static lw_status split(infer_cuda *x, const lw_op_call *c, int axis, const int64_t *parts, lw_error *err)
{
    lw_tensor *t = lw_in(c, 0);
    const char *from;
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    for (int i = 0; i < c->n_out; i++) {
        lw_cuda_strided s = {.rank = t->rank, .size = (int)lw_dtype_size(t->dtype), .from = from};
        memcpy(s.dim, t->dim, sizeof s.dim);
        s.dim[axis] = parts[i];
        steps_of(t->rank, t->dim, s.stride);
        steps_of(t->rank, s.dim, s.to_stride);
        LW_TRY(lw_cuda_tensor(x, &c->out[i], t->dtype, t->rank, s.dim, &s.to, err));
        LW_TRY(lw_cuda_copy_strided(x, &s, err));
        from += parts[i] * s.stride[axis] * s.size;
    }
    return LW_OK;
}

static lw_status node_split(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    int axis = 0;
    int64_t *parts = malloc(((size_t)c->n_out + 1) * sizeof *parts);
    if (!parts)
        return lw_fail_memory(err, (size_t)c->n_out * sizeof *parts);
    lw_status status = LW_OK;
    if (lw_cuda_accept(x, cuts_here(c, 1) && lw_split_of(c, &axis, parts, NULL) == LW_OK, fits))
        status = split(x, c, axis, parts, err);
    free(parts);
    return status;
}

/* Indices are known to the host, which checks them, or checked by the kernel of a recorded run. */
static bool gather_fits(const infer_cuda *x, const lw_op_call *c)
{
    const lw_tensor *t = lw_in(c, 0), *indices = lw_in(c, 1);
    int axis;
    if (!moves_here(t) || !indices || (indices->dtype != LW_I64 && indices->dtype != LW_I32) ||
        (!indices->data && !(x && x->recording)) ||
        lw_axis(lw_node_int(c->node, "axis", 0), t->rank, &axis, NULL) != LW_OK ||
        t->rank - 1 + indices->rank > LW_MAX_RANK || t->dim[axis] == 0)
        return false;
    for (int64_t i = 0; indices->data && i < indices->count; i++) {
        int64_t v = lw_tensor_integer(indices, i);
        if (v < -t->dim[axis] || v >= t->dim[axis])
            return false;
    }
    return true;
}

static lw_status node_gather(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    if (!lw_cuda_accept(x, gather_fits(x, c), fits))
        return LW_OK;
    lw_tensor *t = lw_in(c, 0), *indices = lw_in(c, 1);
    int axis = 0, rank = t->rank - 1 + indices->rank;
    int64_t dim[LW_MAX_RANK];
    const void *from, *at;
    void *to;
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), t->rank, &axis, err));
    for (int k = 0; k < rank; k++)
        dim[k] = k < axis                   ? t->dim[k]
                 : k < axis + indices->rank ? indices->dim[k - axis]
                                            : t->dim[k - indices->rank + 1];
    LW_TRY(lw_cuda_bring(x, t, &from, err));
    LW_TRY(lw_cuda_bring(x, indices, &at, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], t->dtype, rank, dim, &to, err));
    return lw_cuda_gather(x, from, lw_tensor_span(t, 0, axis), t->dim[axis],
                          lw_tensor_span(t, axis + 1, t->rank) * lw_dtype_size(t->dtype), at,
                          indices->dtype == LW_I64, indices->count, to,
                          indices->data ? NULL : lw_cuda_recording_flag(x), err);
}

/* GatherND of what only the device has, by indices that the host has. */
static bool tuples_of(const lw_op_call *c, lw_cuda_tuples *p, int *rank, int64_t dim[LW_MAX_RANK])
{
    const lw_tensor *t = lw_in(c, 0), *indices = lw_in(c, 1);
    int64_t batch = lw_node_int(c->node, "batch_dims", 0), own[LW_MAX_RANK];
    if (!lw_elsewhere(t) || t->bits || !indices || !indices->data || indices->rank < 1 ||
        (indices->dtype != LW_I64 && indices->dtype != LW_I32) || batch < 0 || batch >= indices->rank)
        return false;
    int64_t depth = indices->dim[indices->rank - 1], size = lw_dtype_size(t->dtype);
    if (depth < 1 || batch + depth > t->rank || indices->rank - 1 + t->rank - (batch + depth) > LW_MAX_RANK)
        return false;
    for (int k = 0; k < batch; k++)
        if (indices->dim[k] != t->dim[k])
            return false;
    int from = (int)(batch + depth);
    *rank = 0;
    for (int k = 0; k < indices->rank - 1; k++)
        dim[(*rank)++] = indices->dim[k];
    for (int k = from; k < t->rank; k++)
        dim[(*rank)++] = t->dim[k];
    steps_of(t->rank, t->dim, own);
    int64_t batches = lw_tensor_span(t, 0, (int)batch);
    *p = (lw_cuda_tuples){.tuples = indices->count / depth,
                          .batch_bytes = lw_tensor_span(t, (int)batch, t->rank) * size,
                          .slice = lw_tensor_span(t, from, t->rank) * size,
                          .depth = (int)depth,
                          .wide = indices->dtype == LW_I64};
    p->each = batches ? p->tuples / batches : 1;
    for (int k = 0; k < depth; k++) {
        p->dim[k] = t->dim[batch + k];
        p->step[k] = own[batch + k] * size;
    }
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t v = lw_tensor_integer(indices, i), most = p->dim[i % depth];
        if (v < -most || v >= most)
            return false;
    }
    return true;
}

static lw_status node_gather_tuples(infer_cuda *x, const lw_op_call *c, bool *fits, lw_error *err)
{
    lw_cuda_tuples p;
    int rank;
    int64_t dim[LW_MAX_RANK];
    void *to;
    if (!lw_cuda_accept(x, tuples_of(c, &p, &rank, dim), fits))
        return LW_OK;
    LW_TRY(lw_cuda_bring(x, lw_in(c, 0), &p.from, err));
    LW_TRY(lw_cuda_bring(x, lw_in(c, 1), &p.indices, err));
    LW_TRY(lw_cuda_tensor(x, &c->out[0], lw_in(c, 0)->dtype, rank, dim, &to, err));
    p.to = to;
    return lw_cuda_gather_tuples(x, &p, err);
}

static const char moves[] = "copy";

const lw_cuda_node_row lw_cuda_nodes_moves[] = {{"", "Transpose", node_transpose, moves, NULL},
                                                {"", "Concat", node_concat, moves, NULL},
                                                {"", "Gather", node_gather, moves, NULL},
                                                {"", "GatherND", node_gather_tuples, moves, NULL},
                                                {"", "Slice", node_slice, moves, NULL},
                                                {"", "Split", node_split, moves, NULL},
                                                {0}};
