/* arrays.c - a model on arrays in memory: what other programs call. */
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/network.h"

static lw_status no_such(const lw_network *n, const char *what, int i, int count, lw_error *err)
{
    return lw_fail(err, LW_E_ARG, "%s has no %s %d: it has %d", n->model->path, what, i, count);
}

/* What a value is declared to be. */
static void describe(const lw_value *v, lw_array *out)
{
    *out = (lw_array){.dtype = v->declared && v->dtype_supported ? v->dtype : LW_F32, .rank = v->rank};
    for (int k = 0; k < v->rank; k++)
        out->dim[k] = v->dim[k] == LW_DIM_UNKNOWN ? -1 : v->dim[k];
}

lw_status lw_network_input_array(const lw_network *n, int i, lw_array *out, lw_error *err)
{
    if (i < 0 || i >= n->model->n_inputs)
        return no_such(n, "input", i, n->model->n_inputs, err);
    describe(&n->model->values[n->model->inputs[i]], out);
    return LW_OK;
}

lw_status lw_network_set_input(lw_network *n, int i, const lw_array *array, lw_error *err)
{
    lw_tensor *t = NULL;
    if (i < 0 || i >= n->model->n_inputs)
        return no_such(n, "input", i, n->model->n_inputs, err);
    if (array->rank < 0 || (int)array->dtype < LW_BOOL || array->dtype > LW_F64)
        return lw_fail(err, LW_E_ARG, "input '%s': rank %d, dtype %d", lw_network_input(n, i), array->rank,
                       (int)array->dtype);
    LW_TRY(lw_tensor_new(&t, array->dtype, array->rank, array->dim, err));
    if (t->count && !array->data) {
        lw_tensor_release(t);
        return lw_fail(err, LW_E_ARG, "input '%s' has no data", lw_network_input(n, i));
    }
    lw_status status = lw_network_check_input(n, i, t, err); /* before data of another type is read */
    if (status == LW_OK && t->count)
        memcpy(t->data, array->data, (size_t)t->count * (size_t)lw_dtype_size(t->dtype));
    if (status == LW_OK && !n->in)
        n->in = calloc((size_t)n->model->most_inputs, sizeof(lw_tensor *));
    if (status == LW_OK && !n->in)
        status = lw_fail_memory(err, (size_t)n->model->most_inputs * sizeof *n->in);
    if (status != LW_OK) {
        lw_tensor_release(t);
        return status;
    }
    lw_tensor_release(n->in[i]);
    n->in[i] = t;
    return LW_OK;
}

void lw_network_release_arrays(lw_network *n, bool inputs_too)
{
    for (int i = 0; n->out && i < n->model->n_outputs; i++) {
        lw_tensor_release(n->out[i]);
        n->out[i] = NULL;
    }
    for (int i = 0; inputs_too && n->in && i < n->model->n_inputs; i++)
        lw_tensor_release(n->in[i]);
    if (inputs_too) {
        free(n->in);
        free(n->out);
        n->in = n->out = NULL;
    }
}

lw_status lw_network_compute(lw_network *n, lw_error *err)
{
    if (!n->in)
        n->in = calloc((size_t)n->model->most_inputs + 1, sizeof(lw_tensor *));
    if (!n->in)
        return lw_fail_memory(err, (size_t)n->model->most_inputs * sizeof *n->in);
    n->settled = true;
    for (int i = 0; i < n->model->n_inputs; i++) {
        lw_tensor *initial = n->model->values[n->model->inputs[i]].initial;
        if (!n->in[i] && !initial)
            return lw_fail(err, LW_E_ARG, "input '%s' of %s is not given", lw_network_input(n, i),
                           n->model->path);
        if (!n->in[i])
            n->in[i] = lw_tensor_retain(initial);
    }
    lw_network_release_arrays(n, false);
    if (!n->out)
        n->out = calloc((size_t)n->model->n_outputs + 1, sizeof(lw_tensor *));
    if (!n->out)
        return lw_fail_memory(err, (size_t)n->model->n_outputs * sizeof *n->out);
    lw_status status = lw_network_run(n, n->in, n->out, NULL, NULL, err);
    if (status != LW_OK)
        lw_network_release_arrays(n, false);
    return status;
}

lw_status lw_network_output_array(const lw_network *n, int i, lw_array *out, lw_error *err)
{
    if (i < 0 || i >= n->model->n_outputs)
        return no_such(n, "output", i, n->model->n_outputs, err);
    if (!n->out || !n->out[i]) {
        describe(&n->model->values[n->model->outputs[i]], out);
        return LW_OK;
    }
    const lw_tensor *t = n->out[i];
    *out = (lw_array){.dtype = t->dtype, .rank = t->rank, .data = t->data};
    memcpy(out->dim, t->dim, sizeof out->dim);
    return LW_OK;
}
