/* describe.c - a model in words: what goes in and out, what each node is and which kernel runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/network.h"

static void value_text(const lw_value *v, char *text, size_t size)
{
    int n = snprintf(text, size, "%s", v->declared && v->dtype_supported ? lw_dtype_name(v->dtype) : "?");
    if (v->rank < 0)
        return;
    for (int k = 0; k < v->rank && n >= 0 && (size_t)n < size; k++) {
        const char *before = k ? "," : "[";
        if (v->dim[k] == LW_DIM_UNKNOWN)
            n += snprintf(text + n, size - (size_t)n, "%s%s", before, v->dim_name[k] ? v->dim_name[k] : "?");
        else
            n += snprintf(text + n, size - (size_t)n, "%s%lld", before, (long long)v->dim[k]);
    }
    if (n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "%s", v->rank ? "]" : "[]");
}

/* Older models list every weight as an input: those are counted. */
static void describe_defaults(const lw_model *m, void (*line)(void *user, const char *text), void *user)
{
    enum { FEW = 16 };
    char text[1024], shape[300];
    if (m->n_overridable > FEW) {
        snprintf(text, sizeof text, "input  with default: %d of the weights", m->n_overridable);
        line(user, text);
        return;
    }
    for (int i = 0; i < m->n_overridable; i++) {
        const lw_value *v = &m->values[m->overridable[i]];
        value_text(v, shape, sizeof shape);
        snprintf(text, sizeof text, "input  %s  %s, with default", v->name, shape);
        line(user, text);
    }
}

/* Whether dimension k of an input counts what comes at a time: it is the first of several, or has such a
 * one's name. */
static bool is_batch(const lw_model *m, const lw_value *v, int k)
{
    bool same = k == 0 && v->rank > 1;
    for (int i = 0; i < m->n_inputs && v->dim_name[k]; i++) {
        const lw_value *w = &m->values[m->inputs[i]];
        same = same || (w->rank > 1 && w->dim[0] == LW_DIM_UNKNOWN && w->dim_name[0] &&
                        strcmp(w->dim_name[0], v->dim_name[k]) == 0);
    }
    return same;
}

static int64_t size_of(const lw_model *m, const lw_value *v, int k, int64_t size)
{
    return v->dim[k] != LW_DIM_UNKNOWN ? v->dim[k] : is_batch(m, v, k) ? 1 : size;
}

/* Whether the inputs stay small when unknown dimensions are `size`: 512 is for signals, not for images. */
static bool is_small(const lw_model *m, int64_t size)
{
    const int64_t most = 1 << 24; /* elements of all inputs together */
    int64_t all = 0;
    bool any = false;
    for (int i = 0; i < m->n_inputs; i++) {
        const lw_value *v = &m->values[m->inputs[i]];
        int64_t count = 1;
        int unknown = 0;
        for (int k = 0; k < v->rank; k++) {
            bool open = v->dim[k] == LW_DIM_UNKNOWN && !is_batch(m, v, k);
            unknown += open;
            if (__builtin_mul_overflow(count, size_of(m, v, k, size), &count))
                return false;
        }
        if (count > most || all + count > most || (size > 64 && unknown > 1))
            return false;
        all += count;
        any = any || unknown > 0;
    }
    return any;
}

/* Runs the graph on zeros (floats: ones, which scales may be), unknown dimensions `size` (batches: 1), as far
 * as it goes: that says what each node makes. */
static void trace(lw_network *n, int64_t size, lw_tensor **values, lw_error *stopped_by)
{
    const lw_model *m = n->model;
    for (int v = 0; v < m->n_values; v++)
        values[v] = m->values[v].constant ? lw_tensor_retain(m->values[v].constant) : NULL;
    for (int i = 0; i < m->n_inputs; i++) {
        const lw_value *v = &m->values[m->inputs[i]];
        int64_t dim[LW_MAX_RANK];
        if (!v->declared || !v->dtype_supported || v->rank < 0)
            continue;
        for (int k = 0; k < v->rank; k++)
            dim[k] = size_of(m, v, k, size);
        if (lw_tensor_new(&values[m->inputs[i]], v->dtype, v->rank, dim, stopped_by) != LW_OK)
            continue;
        lw_tensor *t = values[m->inputs[i]];
        memset(t->data, 0, (size_t)t->count * (size_t)lw_dtype_size(v->dtype));
        for (int64_t k = 0; k < t->count && v->dtype == LW_F32; k++)
            ((float *)t->data)[k] = 1;
    }
    for (int i = 0; i < m->n_nodes; i++) {
        bool ready = m->nodes[i].impl != NULL && !m->nodes[i].fused;
        bool is_if = ready && strcmp(m->nodes[i].impl->kernel, "branch") == 0; /* one of both is enough */
        for (int k = 0; k < (is_if ? 1 : m->nodes[i].n_in); k++)
            ready = ready && (m->nodes[i].in[k] < 0 || values[m->nodes[i].in[k]]);
        for (int k = 0; k < m->nodes[i].n_out; k++)
            ready = ready && (m->nodes[i].out[k] < 0 || !values[m->nodes[i].out[k]]);
        lw_error untaken = {0};
        bool allowed = true;
        if (m->nodes[i].guard && lw_network_allows(n, &m->nodes[i], values, &allowed, &untaken) != LW_OK)
            allowed = false;
        if (ready)
            lw_network_run_node(n, i, values, allowed ? stopped_by : &untaken);
    }
}

static void forget(lw_tensor **values, int n)
{
    for (int v = 0; v < n; v++)
        lw_tensor_release(values[v]);
    free(values);
}

/* Which kernel of a row that runs whole nodes gets this one; NULL: none. */
static const char *kernel_of(const lw_infer_backend *row, const lw_node *node, lw_tensor *const *values)
{
    enum { MOST = 16 };
    lw_tensor *in[MOST] = {NULL};
    if (!row->kernel || !node->impl)
        return NULL;
    lw_op_call call = {.node = node, .in = in, .n_in = node->n_in < MOST ? node->n_in : MOST};
    for (int k = 0; k < call.n_in; k++)
        in[k] = node->in[k] < 0 ? NULL : values[node->in[k]];
    return row->kernel(row, &call);
}

/* A row that names kernels is good enough to describe, whether or not it can run here. */
static lw_status row_to_describe(const lw_infer_backend **row, const char *backend, lw_error *err)
{
    for (int i = 0; backend && i < lw_infer_backend_count; i++)
        if (lw_infer_backends[i]->kernel && strcmp(lw_infer_backends[i]->base.name, backend) == 0) {
            *row = lw_infer_backends[i];
            return LW_OK;
        }
    return lw_infer_backend_choose(row, backend, NULL, err);
}

lw_status lw_network_describe(const char *path, const char *backend, bool fuse,
                              void (*line)(void *user, const char *text), void *user, lw_error *err)
{
    lw_network n = {.backend = &lw_infer_scalar};
    const lw_infer_backend *row;
    char text[1024], shape[300], kernel[64];
    LW_TRY(row_to_describe(&row, backend, err));
    LW_TRY(lw_model_read(&n.model, path, err));
    int fused = 0;
    lw_status status = fuse ? lw_model_fuse(n.model, &fused, err) : LW_OK;
    if (status != LW_OK) {
        lw_model_free(n.model);
        return status;
    }
    const lw_model *m = n.model;
    lw_tensor **values = calloc((size_t)m->n_values + 1, sizeof *values);
    if (!values) {
        lw_model_free(n.model);
        return lw_fail_memory(err, (size_t)m->n_values * sizeof *values);
    }
    /* that 1 is too small for: images and texts, and signals */
    static const int64_t sizes[] = {64, 512};
    lw_error trouble = {0};
    int64_t size = 1;
    trace(&n, size, values, &trouble);
    for (int i = 0; i < 2 && trouble.status == LW_E_INPUT; i++) {
        lw_error inner = {0};
        lw_tensor **larger = is_small(m, sizes[i]) ? calloc((size_t)m->n_values + 1, sizeof *values) : NULL;
        if (!larger)
            continue;
        trace(&n, sizes[i], larger, &inner);
        bool better = inner.status == LW_OK;
        if (better) {
            size = sizes[i];
            trouble = inner;
        }
        forget(better ? values : larger, m->n_values);
        values = better ? larger : values;
    }
    int64_t weights = 0;
    int unsupported = 0;
    for (int v = 0; v < m->n_values; v++)
        weights += m->values[v].constant
                       ? m->values[v].constant->count * lw_dtype_size(m->values[v].constant->dtype)
                       : 0;
    for (int i = 0; i < m->n_nodes; i++) /* many writers keep them in nodes */
        for (int k = 0; k < m->nodes[i].n_attrs; k++) {
            const lw_tensor *t = m->nodes[i].attrs[k].t;
            weights += t ? t->count * lw_dtype_size(t->dtype) : 0;
        }
    snprintf(text, sizeof text, "%s: ONNX IR %d, opset %d, made by %s; %d nodes, %.3f MB of weights", path,
             m->ir_version, m->opset, *m->producer ? m->producer : "an unnamed program", m->n_nodes,
             (double)weights / 1e6);
    line(user, text);
    if (m->opset > LW_NEWEST_OPSET) {
        snprintf(text, sizeof text,
                 "opset %d is later than %d: operators that have changed since then run as they were",
                 m->opset, LW_NEWEST_OPSET);
        line(user, text);
    }
    if (fuse) {
        snprintf(text, sizeof text, "%d operators fused into integer kernels", fused);
        line(user, text);
    }
    for (int i = 0; i < m->n_inputs + m->n_outputs; i++) {
        const lw_value *v = &m->values[i < m->n_inputs ? m->inputs[i] : m->outputs[i - m->n_inputs]];
        value_text(v, shape, sizeof shape);
        snprintf(text, sizeof text, "%-6s %s  %s", i < m->n_inputs ? "input" : "output", v->name, shape);
        line(user, text);
    }
    describe_defaults(m, line, user);
    if (size > 1) {
        snprintf(text, sizeof text, "sizes below are for unknown dimensions of %lld, batches of 1",
                 (long long)size);
        line(user, text);
    }
    for (int i = 0; i < m->n_nodes; i++) {
        const lw_node *node = &m->nodes[i];
        if (node->fused)
            continue;
        int first = node->n_out > 0 ? node->out[0] : -1;
        const lw_tensor *made = first >= 0 ? values[first] : NULL;
        const char *own = kernel_of(row, node, values);
        if (!node->impl || own || !row->kernel)
            snprintf(kernel, sizeof kernel, "%s",
                     own          ? own
                     : node->impl ? node->impl->kernel
                                  : "NOT SUPPORTED");
        else
            snprintf(kernel, sizeof kernel, "%s (cpu)", node->impl->kernel);
        snprintf(text, sizeof text, "%5d  %s%s%s  %s  %s  -> %s", i, node->domain, *node->domain ? "." : "",
                 node->op, node->name, kernel, made ? lw_tensor_text(made, shape, sizeof shape) : "?");
        if (node->guard) {
            const lw_guard *g = &m->guards[node->guard - 1];
            size_t at = strlen(text);
            snprintf(text + at, sizeof text - at, ", if %s%s", g->wanted ? "" : "not ",
                     m->values[g->condition].name);
        }
        line(user, text);
        unsupported += !node->impl;
    }
    for (int i = 0; i < m->n_nodes && unsupported; i++)
        if (!m->nodes[i].impl && !m->nodes[i].fused) {
            snprintf(text, sizeof text, "not supported: node %s: %s of %s, opset %d", m->nodes[i].name,
                     m->nodes[i].op, *m->nodes[i].domain ? m->nodes[i].domain : "ai.onnx", m->nodes[i].opset);
            line(user, text);
        }
    if (!unsupported && trouble.status != LW_OK) {
        snprintf(text, sizeof text, "with unknown dimensions set to 1 it stops: %.900s", trouble.message);
        line(user, text);
    }
    /* then the lines above say less than the model would */
    status = trouble.status == LW_E_NOMEM ? lw_fail(err, LW_E_NOMEM, "%s", trouble.message) : LW_OK;
    forget(values, m->n_values);
    lw_model_free(n.model);
    return status;
}
