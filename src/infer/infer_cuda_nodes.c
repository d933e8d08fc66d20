/* infer_cuda_nodes.c - which nodes run on the device. */
#include "infer/infer_cuda_nodes.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/fail.h"

bool lw_good_scales(const lw_tensor *t)
{
    if (!lw_is_floats(t))
        return false;
    /* a scale that is an input is looked at in every run, so none of them is recorded */
    if (!t->data && t->buffer && t->buffer->device && ((const lw_cuda_copy *)t->buffer->device)->input)
        return false;
    for (int64_t i = 0; t->data && i < t->count; i++) {
        float s = ((const float *)t->data)[i];
        if (!(s > 0) || !isfinite(s))
            return false;
    }
    return true;
}

bool lw_one_scale(const lw_tensor *t, float *out)
{
    if (!lw_good_scales(t) || t->count != 1 || !t->data)
        return false;
    *out = *(const float *)t->data;
    return true;
}

bool lw_one_zero(const lw_tensor *t, lw_dtype dtype, int32_t *out)
{
    *out = 0;
    if (!t)
        return true;
    if (t->dtype != dtype || t->count != 1 || !t->data)
        return false;
    *out = (int32_t)lw_tensor_integer(t, 0);
    return true;
}

lw_status lw_cuda_bring(infer_cuda *x, lw_tensor *t, void *pointer, lw_error *err)
{
    void *p = NULL;
    if (t)
        LW_TRY(lw_cuda_device(x, t, &p, err));
    memcpy(pointer, &p, sizeof p);
    return LW_OK;
}

bool lw_cuda_window_fits(const lw_window *w)
{
    int64_t places = 1;
    for (int k = 0; k < 3; k++) {
        int64_t reach = w->in[k] + w->pad[k] + w->pad_end[k];
        int64_t last = (w->out[k] - 1) * w->stride[k] + (w->kernel[k] - 1) * w->dilation[k] + 1;
        reach = last > reach ? last : reach; /* a last window may end beyond the padding */
        if (w->out[k] > INT_MAX || w->stride[k] > INT_MAX || w->dilation[k] > INT_MAX ||
            reach > INT_MAX / 2 || __builtin_mul_overflow(places, reach, &places))
            return false;
    }
    return places <= INT_MAX / 2;
}

/* ---- the table --------------------------------------------------------------------------------------- */

static const lw_cuda_node_row *row_of(const lw_op_call *c)
{
    static const lw_cuda_node_row *const lists[] = {
        lw_cuda_nodes_products, lw_cuda_nodes_convolution, lw_cuda_nodes_rows,   lw_cuda_nodes_elements,
        lw_cuda_nodes_moves,    lw_cuda_nodes_pool,        lw_cuda_nodes_floats, lw_cuda_nodes_recurrent};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const lw_cuda_node_row *r = lists[i]; r->op; r++)
            if (strcmp(r->op, c->node->op) == 0 && strcmp(r->domain, c->node->domain) == 0)
                return r;
    return NULL;
}

lw_status lw_cuda_node(void *context, const lw_op_call *c, bool *done, lw_error *err)
{
    const lw_cuda_node_row *r = row_of(c);
    *done = false;
    return r ? r->run(context, c, done, err) : LW_OK;
}

const char *lw_cuda_kernel(const lw_infer_backend *self, const lw_op_call *c)
{
    const lw_cuda_node_row *r = row_of(c);
    bool fits = false;
    lw_error err;
    if (!r || r->run(NULL, c, &fits, &err) != LW_OK || !fits)
        return NULL;
    return r->text_of ? r->text_of(self->base.policy, c) : r->text;
}
