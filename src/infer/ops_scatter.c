/* ops_scatter.c - operators that write to places that indices name, or that find such places. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"

typedef enum reduction { NONE, ADD, MULTIPLY, LEAST, LARGEST, REDUCTIONS } reduction;

static lw_status reduction_of(const lw_op_call *c, const lw_tensor *x, reduction *how, lw_error *err)
{
    static const char *const names[REDUCTIONS] = {"none", "add", "mul", "min", "max"};
    const char *name = lw_node_string(c->node, "reduction", "none");
    int i = 0;
    while (i < REDUCTIONS && strcmp(name, names[i]) != 0)
        i++;
    if (i == REDUCTIONS)
        return lw_fail(err, LW_E_INPUT, "reduction '%.20s' does not exist", name);
    *how = (reduction)i;
    if (*how != NONE && x->dtype != LW_F32 && x->dtype != LW_F64 && x->dtype != LW_I32 && x->dtype != LW_I64)
        return lw_fail(err, LW_E_INPUT, "reduction '%s' of %s is not supported", name,
                       lw_dtype_name(x->dtype));
    return LW_OK;
}

static double of_reals(reduction how, double a, double b)
{
    return how == ADD ? a + b : how == MULTIPLY ? a * b : (how == LEAST ? b < a : b > a) ? b : a;
}

static int64_t of_integers(reduction how, int64_t a, int64_t b)
{
    return how == ADD                       ? (int64_t)((uint64_t)a + (uint64_t)b)
           : how == MULTIPLY                ? (int64_t)((uint64_t)a * (uint64_t)b)
           : (how == LEAST ? b < a : b > a) ? b
                                            : a;
}

/* Elements [from, from + n) of `updates` go to those of y from `to` on. A sum or product of two floats in
 * double, rounded, is theirs in float. */
static void put(reduction how, lw_tensor *y, int64_t to, const lw_tensor *updates, int64_t from, int64_t n)
{
    int64_t size = lw_dtype_size(y->dtype);
    if (how == NONE) {
        memcpy((char *)y->data + to * size, (const char *)updates->data + from * size, (size_t)(n * size));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double real = 0;
        int64_t whole = 0;
        if (y->dtype == LW_F32 || y->dtype == LW_F64)
            real = of_reals(how, lw_tensor_number(y, to + i), lw_tensor_number(updates, from + i));
        else
            whole = of_integers(how, lw_tensor_integer(y, to + i), lw_tensor_integer(updates, from + i));
        if (y->dtype == LW_F32)
            ((float *)y->data)[to + i] = (float)real;
        else if (y->dtype == LW_F64)
            ((double *)y->data)[to + i] = real;
        else if (y->dtype == LW_I32)
            ((int32_t *)y->data)[to + i] = (int32_t)whole;
        else
            ((int64_t *)y->data)[to + i] = whole;
    }
}

/* The inputs of both, and the output, which begins as a copy of x. */
static lw_status begin(const lw_op_call *c, reduction *how, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *updates = lw_in(c, 2);
    LW_TRY(lw_want_indices(lw_in(c, 1), err));
    if (!x || !updates || updates->dtype != x->dtype || updates->bits != x->bits)
        return lw_fail(err, LW_E_INPUT, "the updates must have the input's type");
    LW_TRY(reduction_of(c, x, how, err));
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, x->dim, err));
    c->out[0]->bits = x->bits;
    memcpy(c->out[0]->data, x->data, (size_t)(x->count * lw_dtype_size(x->dtype)));
    return LW_OK;
}

static lw_status run_scatter_nd(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *indices = lw_in(c, 1), *updates = lw_in(c, 2);
    reduction how;
    LW_TRY(begin(c, &how, err));
    int64_t depth = indices->rank > 0 ? indices->dim[indices->rank - 1] : 0;
    if (depth < 1 || depth > x->rank)
        return lw_fail(err, LW_E_INPUT, "indices of %lld places for an input of %d dimensions",
                       (long long)depth, x->rank);
    int places = indices->rank - 1;
    bool agrees = updates->rank == places + x->rank - (int)depth;
    for (int k = 0; agrees && k < updates->rank; k++)
        agrees = updates->dim[k] == (k < places ? indices->dim[k] : x->dim[k - places + depth]);
    if (!agrees)
        return lw_fail(err, LW_E_INPUT, "the updates' shape does not agree with the indices'");
    int64_t slice = lw_tensor_span(x, (int)depth, x->rank);
    for (int64_t t = 0; t < indices->count / depth; t++) {
        int64_t at = 0;
        for (int64_t k = 0; k < depth; k++) {
            int64_t index;
            LW_TRY(lw_checked_index(indices, t * depth + k, x->dim[k], &index, err));
            at = at * x->dim[k] + index;
        }
        put(how, c->out[0], at * slice, updates, t * slice, slice);
    }
    return LW_OK;
}

static lw_status run_scatter_elements(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *indices = lw_in(c, 1), *updates = lw_in(c, 2);
    reduction how;
    int axis;
    LW_TRY(begin(c, &how, err));
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", 0), x->rank, &axis, err));
    bool agrees = indices->rank == x->rank && updates->rank == x->rank;
    for (int k = 0; agrees && k < x->rank; k++)
        agrees = indices->dim[k] == updates->dim[k] && (k == axis || indices->dim[k] <= x->dim[k]);
    if (!agrees)
        return lw_fail(err, LW_E_INPUT, "the shapes of input, indices and updates do not agree");
    int64_t place[LW_MAX_RANK] = {0};
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t index, at = 0;
        LW_TRY(lw_checked_index(indices, i, x->dim[axis], &index, err));
        for (int k = 0; k < x->rank; k++)
            at = at * x->dim[k] + (k == axis ? index : place[k]);
        put(how, c->out[0], at, updates, i, 1);
        for (int k = x->rank - 1; k >= 0 && ++place[k] == indices->dim[k]; k--)
            place[k] = 0;
    }
    return LW_OK;
}

static lw_status run_cumulative_sum(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *given = lw_in(c, 1);
    int axis;
    LW_TRY(lw_want_indices(given, err));
    if (!x || given->count != 1)
        return lw_fail(err, LW_E_INPUT, "one axis is expected");
    if (x->dtype != LW_F32 && x->dtype != LW_F64 && x->dtype != LW_I32 && x->dtype != LW_I64)
        return lw_fail(err, LW_E_INPUT, "inputs of this type are not supported");
    LW_TRY(lw_axis(lw_tensor_integer(given, 0), x->rank, &axis, err));
    bool exclusive = lw_node_int(c->node, "exclusive", 0) != 0, reverse = lw_node_int(c->node, "reverse", 0);
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, x->dim, err));
    lw_tensor *y = c->out[0];
    memset(y->data, 0, (size_t)(y->count * lw_dtype_size(y->dtype)));
    int64_t inner = lw_tensor_span(x, axis + 1, x->rank), n = x->dim[axis];
    for (int64_t i = 0; i < x->count; i++) { /* in the order of the sums, each from the one before */
        int64_t along = i / inner % n, line = i / inner / n * n * inner + i % inner;
        int64_t at = line + (reverse ? n - 1 - along : along) * inner;
        int64_t before = reverse ? at + inner : at - inner;
        if (along)
            put(NONE, y, at, y, before, 1);
        if (!exclusive)
            put(ADD, y, at, x, at, 1);
        else if (along)
            put(ADD, y, at, x, before, 1);
    }
    return LW_OK;
}

typedef struct item {
    double real; /* NaN counts as the largest of all */
    int64_t whole, index;
} item;

static int compare(const item *a, const item *b)
{
    if (isnan(a->real) || isnan(b->real))
        return (isnan(a->real) != 0) - (isnan(b->real) != 0);
    if (a->real != b->real)
        return a->real < b->real ? -1 : 1;
    return (a->whole > b->whole) - (a->whole < b->whole);
}

static int by_index(const item *a, const item *b)
{
    return (a->index > b->index) - (a->index < b->index);
}

static int rising(const void *a, const void *b)
{
    int order = compare(a, b);
    return order ? order : by_index(a, b);
}

static int falling(const void *a, const void *b)
{
    int order = compare(b, a);
    return order ? order : by_index(a, b);
}

static lw_status run_top_k(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *given = lw_in(c, 1);
    bool old = c->node->opset < 10, largest = lw_node_int(c->node, "largest", 1) != 0;
    int axis;
    if (!x || (!old && (!given || given->dtype != LW_I64 || given->count != 1)))
        return lw_fail(err, LW_E_INPUT, "k must be one int64");
    int64_t k = old ? lw_node_int(c->node, "k", -1) : lw_tensor_integer(given, 0), dim[LW_MAX_RANK];
    LW_TRY(lw_axis(lw_node_int(c->node, "axis", -1), x->rank, &axis, err));
    if (k < 0 || k > x->dim[axis])
        return lw_fail(err, LW_E_INPUT, "k is %lld, the axis has %lld elements", (long long)k,
                       (long long)x->dim[axis]);
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = k;
    lw_tensor *values, *indices;
    LW_TRY(lw_tensor_new(&values, x->dtype, x->rank, dim, err));
    c->out[0] = values;
    LW_TRY(lw_tensor_new(&indices, LW_I64, x->rank, dim, err));
    if (c->n_out > 1)
        c->out[1] = indices;
    item *line = NULL;
    int64_t inner = lw_tensor_span(x, axis + 1, x->rank), n = x->dim[axis], size = lw_dtype_size(x->dtype);
    bool reals = x->dtype == LW_F32 || x->dtype == LW_F64 || x->dtype == LW_F16;
    lw_status status = lw_room(&line, n, 1, sizeof *line, err);
    for (int64_t l = 0; status == LW_OK && k > 0 && l < x->count / n; l++) {
        int64_t from = l / inner * n * inner + l % inner, to = l / inner * k * inner + l % inner;
        for (int64_t i = 0; i < n; i++)
            line[i] = (item){.real = reals ? lw_tensor_number(x, from + i * inner) : 0,
                             .whole = reals ? 0 : lw_tensor_integer(x, from + i * inner),
                             .index = i};
        qsort(line, (size_t)n, sizeof *line, largest ? falling : rising);
        for (int64_t i = 0; i < k; i++) {
            memcpy((char *)values->data + (to + i * inner) * size,
                   (const char *)x->data + (from + line[i].index * inner) * size, (size_t)size);
            ((int64_t *)indices->data)[to + i * inner] = line[i].index;
        }
    }
    free(line);
    if (c->n_out < 2)
        lw_tensor_release(indices);
    return status;
}

static lw_status run_non_zero(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    if (!x)
        return lw_fail(err, LW_E_INPUT, "an input is missing");
    int rank = x->rank ? x->rank : 1; /* a scalar has one place */
    int64_t dim[2] = {rank, 0}, found = 0;
    for (int64_t i = 0; i < x->count; i++)
        dim[1] += lw_tensor_number(x, i) != 0;
    LW_TRY(lw_tensor_new(&c->out[0], LW_I64, 2, dim, err));
    int64_t *to = c->out[0]->data;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t rest = i;
        if (lw_tensor_number(x, i) == 0)
            continue;
        for (int k = rank - 1; k >= 0; k--) {
            int64_t d = x->rank ? x->dim[k] : 1;
            to[k * dim[1] + found] = rest % d;
            rest /= d;
        }
        found++;
    }
    return LW_OK;
}

static lw_status run_reverse_sequence(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *lengths = lw_in(c, 1);
    int64_t batch = lw_node_int(c->node, "batch_axis", 1), time = lw_node_int(c->node, "time_axis", 0);
    LW_TRY(lw_want_indices(lengths, err));
    if (!x || x->rank < 2 || (batch != 0 && batch != 1) || time != 1 - batch)
        return lw_fail(err, LW_E_INPUT, "batch_axis and time_axis must be 0 and 1, or 1 and 0");
    if (lengths->rank != 1 || lengths->dim[0] != x->dim[batch])
        return lw_fail(err, LW_E_INPUT, "a batch of %lld needs as many lengths", (long long)x->dim[batch]);
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t length = lw_tensor_integer(lengths, i);
        if (length < 0 || length > x->dim[time])
            return lw_fail(err, LW_E_INPUT, "length %lld lies outside %lld steps", (long long)length,
                           (long long)x->dim[time]);
    }
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, x->dim, err));
    c->out[0]->bits = x->bits;
    int64_t slice = lw_tensor_span(x, 2, x->rank);
    for (int64_t i = 0; i < x->dim[0] * x->dim[1]; i++) {
        int64_t place[2] = {i / x->dim[1], i % x->dim[1]};
        int64_t length = lw_tensor_integer(lengths, place[batch]);
        if (place[time] < length)
            place[time] = length - 1 - place[time];
        put(NONE, c->out[0], i * slice, x, (place[0] * x->dim[1] + place[1]) * slice, slice);
    }
    return LW_OK;
}

static const char moves[] = "copy";
const lw_op lw_ops_scatter[] = {
    {"", "Scatter", 9, 10, 3, 3, run_scatter_elements, moves, NULL},
    {"", "ScatterElements", 11, 0, 3, 3, run_scatter_elements, moves, NULL},
    {"", "ScatterND", 11, 0, 3, 3, run_scatter_nd, moves, NULL},
    {"", "CumSum", 11, 0, 2, 2, run_cumulative_sum, "reduction", NULL},
    {"", "TopK", 1, 0, 1, 2, run_top_k, moves, NULL},
    {"", "NonZero", 9, 0, 1, 1, run_non_zero, moves, NULL},
    {"", "ReverseSequence", 10, 0, 2, 2, run_reverse_sequence, moves, NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
