/* op.c - finding operators, and what several of them need. */
#include "infer/op.h"

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

static const lw_op *const lists[] = {
    lw_ops_quantize, lw_ops_quant_product, lw_ops_quant_conv, lw_ops_qlinear, lw_ops_elementwise,
    lw_ops_shape,    lw_ops_linear,        lw_ops_recurrent,  lw_ops_reduce,  lw_ops_attention,
    lw_ops_resize,   lw_ops_deconv,        lw_ops_einsum,     lw_ops_nbits,   lw_ops_scatter};

const lw_op *lw_op_find(const char *domain, const char *name, int opset)
{
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (const lw_op *op = lists[k]; op->name; op++)
            if (strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0 && opset >= op->since &&
                (op->until == 0 || opset <= op->until))
                return op;
    return NULL;
}

const lw_op *lw_op_find_any(const char *domain, const char *name)
{
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (const lw_op *op = lists[k]; op->name; op++)
            if (strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0)
                return op;
    return NULL;
}

struct lw_keeper {
    int n;
    lw_kept slot[];
};

void lw_keeper_free(struct lw_keeper *keeper)
{
    for (int i = 0; keeper && i < keeper->n; i++)
        if (keeper->slot[i].release)
            keeper->slot[i].release(keeper->slot[i].data);
    free(keeper);
}

lw_kept *lw_call_keep(const lw_op_call *c, int input, int slot, int n)
{
    if (input >= 64 || !(c->constant >> input & 1) || !c->keeper)
        return NULL;
    if (!*c->keeper) {
        *c->keeper = calloc(1, sizeof **c->keeper + (size_t)n * sizeof(lw_kept));
        if (!*c->keeper)
            return NULL;
        (*c->keeper)->n = n;
    }
    return slot < (*c->keeper)->n ? &(*c->keeper)->slot[slot] : NULL;
}

lw_status lw_axis(int64_t axis, int rank, int *out, lw_error *err)
{
    if (axis < -rank || axis >= rank)
        return lw_fail(err, LW_E_INPUT, "axis %lld does not exist in %d dimensions", (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return LW_OK;
}

lw_status lw_broadcast(const lw_tensor *a, const lw_tensor *b, int *rank, int64_t dim[LW_MAX_RANK],
                       lw_error *err)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (int k = 0; k < *rank; k++) {
        int ka = a->rank - *rank + k, kb = b->rank - *rank + k;
        int64_t da = ka < 0 ? 1 : a->dim[ka], db = kb < 0 ? 1 : b->dim[kb];
        if (da != db && da != 1 && db != 1) {
            char ta[160], tb[160];
            return lw_fail(err, LW_E_INPUT, "shapes do not agree: %s and %s",
                           lw_tensor_text(a, ta, sizeof ta), lw_tensor_text(b, tb, sizeof tb));
        }
        dim[k] = da == 1 ? db : da;
    }
    return LW_OK;
}

void lw_broadcast_strides(const lw_tensor *t, int rank, int64_t stride[LW_MAX_RANK])
{
    int64_t step = 1;
    for (int k = rank - 1; k >= 0; k--) {
        int kt = t->rank - rank + k;
        stride[k] = kt < 0 || t->dim[kt] == 1 ? 0 : step;
        step *= kt < 0 ? 1 : t->dim[kt];
    }
}

lw_status lw_int_list(const lw_op_call *c, int input, const char *attribute, int64_t *out, int capacity,
                      int *n, lw_error *err)
{
    const lw_tensor *t = input >= 0 ? lw_in(c, input) : NULL;
    int64_t count = 0;
    const int64_t *list = t || !attribute ? NULL : lw_node_ints(c->node, attribute, &count);
    if (t)
        count = t->count;
    if (t && t->dtype != LW_I64 && t->dtype != LW_I32)
        return lw_fail(err, LW_E_INPUT, "input %d must hold integers, not %s", input,
                       lw_dtype_name(t->dtype));
    if (count > capacity)
        return lw_fail(err, LW_E_INPUT, "%lld numbers where at most %d can be", (long long)count, capacity);
    for (int64_t i = 0; i < count; i++)
        out[i] = t ? lw_tensor_integer(t, i) : list[i];
    *n = (int)count;
    return LW_OK;
}

lw_status lw_room(void *out, int64_t rows, int64_t columns, size_t element, lw_error *err)
{
    size_t bytes;
    void *memory = NULL;
    if (__builtin_mul_overflow((size_t)rows, (size_t)columns, &bytes) ||
        __builtin_mul_overflow(bytes, element, &bytes) || bytes > PTRDIFF_MAX - 1)
        bytes = SIZE_MAX;
    else
        memory = malloc(bytes + 1);
    memcpy(out, &memory, sizeof memory);
    return memory ? LW_OK : lw_fail_memory(err, bytes);
}

lw_status lw_want(const lw_tensor *t, lw_dtype dtype, const char *what, lw_error *err)
{
    if (!t)
        return lw_fail(err, LW_E_INPUT, "%s is missing", what);
    if (t->dtype != dtype)
        return lw_fail(err, LW_E_INPUT, "%s must be %s, not %s", what, lw_dtype_name(dtype),
                       lw_dtype_name(t->dtype));
    return LW_OK;
}

lw_status lw_want_bias(const lw_tensor *bias, lw_dtype dtype, int64_t n, lw_error *err)
{
    if (!bias)
        return LW_OK;
    LW_TRY(lw_want(bias, dtype, "the bias", err));
    if (bias->count != n)
        return lw_fail(err, LW_E_INPUT, "the bias has %lld values where %lld belong", (long long)bias->count,
                       (long long)n);
    return LW_OK;
}
