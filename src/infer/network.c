/* network.c - loads a model, folds its constants, and runs its nodes in order.
 *
 * Memory: a value is released after its last use and reshapes share their input's memory, so what is live at
 * a time is what the widest cut through the graph needs. */
#include "infer/network.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fail.h"
#include "common/outfile.h"

const lw_infer_backend *const lw_infer_backends[] = {&lw_infer_scalar, &lw_infer_cpu, &lw_infer_cuda_tensor,
                                                     &lw_infer_cuda_dp4a, &lw_infer_cuda_int};
const int lw_infer_backend_count = (int)(sizeof lw_infer_backends / sizeof *lw_infer_backends);

int lw_infer_backend_list(int device, lw_backend_info *out, int capacity)
{
    const lw_backend *rows[sizeof lw_infer_backends / sizeof *lw_infer_backends];
    for (int i = 0; i < lw_infer_backend_count; i++)
        rows[i] = &lw_infer_backends[i]->base;
    return lw_backend_describe(rows, lw_infer_backend_count, device, out, capacity);
}

lw_status lw_infer_backend_choose(const lw_infer_backend **out, const char *name, const lw_host *host,
                                  lw_error *err)
{
    const lw_backend *rows[16];
    int index;
    char why[1200];
    for (int i = 0; i < lw_infer_backend_count; i++)
        rows[i] = &lw_infer_backends[i]->base;
    LW_TRY(lw_backend_choose(rows, lw_infer_backend_count, name ? name : "auto", 0, &index, why, sizeof why,
                             err));
    lw_say(host, LW_SAY_INFO, "%s", why);
    *out = lw_infer_backends[index];
    return LW_OK;
}

/* "MODEL: node NAME (OP): " before what went wrong. */
static lw_status at_node(const lw_network *n, const lw_node *node, lw_status status, const lw_error *inner,
                         lw_error *err)
{
    return lw_fail(err, status, "%s: node %s (%s): %s", n->model->path, node->name, node->op, inner->message);
}

static lw_status unsupported(const lw_model *m, const lw_node *node, lw_error *err)
{
    const char *domain = *node->domain ? node->domain : "ai.onnx";
    if (lw_op_find_any(node->domain, node->op))
        return lw_fail(err, LW_E_INPUT, "%s: node %s: operator %s of %s is not supported in opset %d",
                       m->path, node->name, node->op, domain, node->opset);
    return lw_fail(
        err, LW_E_INPUT,
        "%s: node %s: operator %s of %s (opset %d) is not supported; --describe lists all such nodes",
        m->path, node->name, node->op, domain, node->opset);
}

lw_status lw_network_attach(lw_network *n, lw_error *err)
{
    return n->backend->open ? n->backend->open(n->backend, &n->context, n->host, err) : LW_OK;
}

void lw_network_detach(lw_network *n)
{
    if (n->context)
        n->backend->close(n->context);
    n->context = NULL;
}

lw_status lw_network_fetch(const lw_network *n, lw_tensor *t, lw_error *err)
{
    return t->data ? LW_OK : n->backend->fetch(n->context, t, err);
}

lw_status lw_network_run_call(const lw_network *n, lw_op_call *call, lw_error *err)
{
    bool done = false;
    call->backend = n->backend->open ? &lw_infer_cpu : n->backend;
    call->pool = n->pool;
    if (n->context)
        LW_TRY(n->backend->node(n->context, call, &done, err));
    if (done)
        return LW_OK;
    for (int k = 0; k < call->n_in; k++) /* a view needs the shape of its first input only */
        if (call->in[k] && !(k == 0 && strcmp(call->node->impl->kernel, "view") == 0))
            LW_TRY(lw_network_fetch(n, call->in[k], err));
    return call->node->impl->run(call, err);
}

lw_status lw_network_run_node(const lw_network *n, int i, lw_tensor **values, lw_error *err)
{
    const lw_node *node = &n->model->nodes[i];
    enum { FEW = 16 };
    lw_tensor *few_in[FEW], *few_out[FEW], **in = few_in, **out = few_out;
    lw_error inner = {0};
    lw_status status = LW_OK;
    if (!node->impl)
        return unsupported(n->model, node, err);
    if (node->n_in < node->impl->least_in || node->n_in > node->impl->most_in || node->n_out < 1) {
        lw_fail(&inner, LW_E_INPUT, "%d inputs and %d outputs", node->n_in, node->n_out);
        return at_node(n, node, LW_E_INPUT, &inner, err);
    }
    if (node->n_in > FEW || node->n_out > FEW) {
        in = malloc((size_t)node->n_in * sizeof(lw_tensor *) + 1);
        out = malloc((size_t)node->n_out * sizeof(lw_tensor *) + 1);
        if (!in || !out) {
            free(in), free(out);
            return lw_fail_memory(err, (size_t)node->n_in * sizeof(lw_tensor *));
        }
    }
    for (int k = 0; k < node->n_in; k++)
        in[k] = node->in[k] < 0 ? NULL : values[node->in[k]];
    for (int k = 0; k < node->n_out; k++)
        out[k] = NULL;
    lw_op_call call = {.node = node,
                       .in = in,
                       .n_in = node->n_in,
                       .out = out,
                       .n_out = node->n_out,
                       .keeper = &n->model->nodes[i].keeper};
    for (int k = 0; k < node->n_in && k < 64; k++)
        if (node->in[k] >= 0 && n->model->values[node->in[k]].constant)
            call.constant |= (uint64_t)1 << k;
    status = lw_network_run_call(n, &call, &inner);
    for (int k = 0; k < node->n_out; k++) {
        int v = node->out[k];
        if (status == LW_OK && v >= 0 && !out[k]) {
            lw_fail(&inner, LW_E_INPUT, "its output %s is not supported", n->model->values[v].name);
            status = LW_E_INPUT;
        }
    }
    for (int k = 0; k < node->n_out; k++)
        if (status == LW_OK && node->out[k] >= 0)
            values[node->out[k]] = out[k];
        else
            lw_tensor_release(out[k]);
    if (in != few_in) {
        free(in);
        free(out);
    }
    return status == LW_OK ? LW_OK : at_node(n, node, status, &inner, err);
}

/* Runs the operator's check with the constants that are known. */
static lw_status check_node(const lw_network *n, const lw_node *node, lw_error *err)
{
    lw_tensor *in[16];
    lw_error inner = {0};
    if (!node->impl->check || node->n_in > (int)(sizeof in / sizeof *in))
        return LW_OK;
    for (int k = 0; k < node->n_in; k++)
        in[k] = node->in[k] < 0 ? NULL : n->model->values[node->in[k]].constant;
    lw_op_call call = {.node = node, .in = in, .n_in = node->n_in, .backend = n->backend, .pool = n->pool};
    lw_status status = node->impl->check(&call, &inner);
    return status == LW_OK ? LW_OK : at_node(n, node, status, &inner, err);
}

lw_status lw_network_check(const lw_network *n, lw_error *err)
{
    for (int i = 0; i < n->model->n_nodes; i++)
        if (!n->model->nodes[i].folded && !n->model->nodes[i].fused)
            LW_TRY(check_node(n, &n->model->nodes[i], err));
    return LW_OK;
}

lw_status lw_network_allows(const lw_network *n, const lw_node *node, lw_tensor *const *values, bool *allowed,
                            lw_error *err)
{
    *allowed = true;
    for (int guard = node->guard; guard && *allowed; guard = n->model->guards[guard - 1].outer) {
        const lw_guard *g = &n->model->guards[guard - 1];
        lw_tensor *t = values[g->condition];
        *allowed = t != NULL;
        if (!t)
            return LW_OK;
        if (t->dtype != LW_BOOL || t->count != 1)
            return lw_fail(err, LW_E_INPUT, "%s: the condition %s is not one bool", n->model->path,
                           n->model->values[g->condition].name);
        LW_TRY(lw_network_fetch(n, t, err));
        *allowed = (*(const uint8_t *)t->data != 0) == g->wanted;
    }
    return LW_OK;
}

/* Whether a constant condition keeps the node from ever running. */
static bool is_dead(const lw_model *m, const lw_node *node)
{
    bool dead = false;
    for (int guard = node->guard; guard && !dead; guard = m->guards[guard - 1].outer) {
        const lw_guard *g = &m->guards[guard - 1];
        const lw_tensor *t = m->values[g->condition].constant;
        dead = t && t->dtype == LW_BOOL && t->count == 1 && (*(const uint8_t *)t->data != 0) != g->wanted;
    }
    return dead;
}

/* Computes what depends on constants alone, once. A node of a branch that cannot be computed is left to the
 * run, which may not come to it. */
static lw_status fold_constants(lw_network *n, lw_error *err)
{
    lw_model *m = n->model;
    lw_tensor **values = calloc((size_t)m->n_values + 1, sizeof *values);
    lw_status status = LW_OK;
    if (!values)
        return lw_fail_memory(err, (size_t)m->n_values * sizeof *values);
    for (int v = 0; v < m->n_values; v++)
        values[v] = m->values[v].constant;
    for (int i = 0; i < m->n_nodes && status == LW_OK; i++) {
        lw_node *node = &m->nodes[i];
        bool constant = true;
        node->dead = node->fused = is_dead(m, node);
        if (node->dead)
            continue;
        for (int k = 0; k < node->n_in; k++)
            constant = constant && (node->in[k] < 0 || values[node->in[k]]);
        if (!node->impl) {
            status = unsupported(m, node, err);
            continue;
        }
        if (!constant) {
            status = check_node(n, node, err);
            continue;
        }
        lw_error later = {0};
        status = lw_network_run_node(n, i, values, node->guard ? &later : err);
        if (status != LW_OK && status != LW_E_NOMEM && node->guard) {
            status = LW_OK;
            continue;
        }
        if (status != LW_OK && node->guard)
            lw_fail(err, status, "%s", later.message);
        for (int k = 0; k < node->n_out && status == LW_OK; k++)
            if (node->out[k] >= 0)
                m->values[node->out[k]].constant = values[node->out[k]];
        node->folded = status == LW_OK;
        lw_keeper_free(node->keeper); /* it does not run again */
        node->keeper = NULL;
    }
    free(values);
    return status;
}

/* Takes back what was folded from values that are no constants any longer. */
static lw_status unfold(lw_network *n, lw_error *err)
{
    lw_model *m = n->model;
    for (int i = 0; i < m->n_nodes; i++) {
        lw_node *node = &m->nodes[i];
        bool constant = true;
        for (int k = 0; k < node->n_in; k++)
            constant = constant && (node->in[k] < 0 || m->values[node->in[k]].constant);
        if (node->dead && !is_dead(m, node)) {
            node->dead = node->fused = false;
            if (!node->impl)
                return unsupported(m, node, err);
            LW_TRY(check_node(n, node, err));
        }
        if (!node->folded || constant)
            continue;
        for (int k = 0; k < node->n_out; k++)
            if (node->out[k] >= 0) {
                lw_tensor_release(m->values[node->out[k]].constant);
                m->values[node->out[k]].constant = NULL;
            }
        node->folded = false;
        LW_TRY(check_node(n, node, err));
    }
    return LW_OK;
}

/* From the file `path`, or from `size` bytes at `data` where path is NULL. */
static lw_status open_network(lw_network **out, const char *path, const void *data, size_t size,
                              const char *backend, int threads, const lw_host *host, lw_error *err)
{
    lw_network *n = calloc(1, sizeof *n);
    lw_status status = LW_OK;
    if (!n)
        return lw_fail_memory(err, sizeof *n);
    n->host = host;
    LW_TRY_END(lw_infer_backend_choose(&n->backend, backend, host, err));
    if (path)
        LW_TRY_END(lw_model_read(&n->model, path, err));
    else
        LW_TRY_END(lw_model_read_memory(&n->model, data, size, err));
    if (n->model->opset > LW_NEWEST_OPSET)
        lw_say(host, LW_SAY_WARNING,
               "%s: its opset %d is later than %d: operators that have changed since then run as they were",
               n->model->path, n->model->opset, LW_NEWEST_OPSET);
    for (int i = 0; i < n->model->n_nodes; i++)
        if (!n->model->nodes[i].impl && !n->model->nodes[i].guard) {
            status = unsupported(n->model, &n->model->nodes[i], err);
            goto end;
        }
    LW_TRY_END(lw_pool_open_team(&n->pool, threads, err));
    LW_TRY_END(fold_constants(n, err));
    LW_TRY_END(lw_network_attach(n, err));
    *out = n;
    return LW_OK;
end:
    lw_network_close(n);
    return status;
}

lw_status lw_network_open(lw_network **out, const char *path, const char *backend, int threads,
                          const lw_host *host, lw_error *err)
{
    return open_network(out, path, NULL, 0, backend, threads, host, err);
}

lw_status lw_network_open_memory(lw_network **out, const void *data, size_t size, const char *backend,
                                 int threads, const lw_host *host, lw_error *err)
{
    return open_network(out, NULL, data, size, backend, threads, host, err);
}

void lw_network_close(lw_network *network)
{
    if (!network)
        return;
    if (network->model)
        lw_network_release_arrays(network, true);
    lw_model_free(network->model);
    lw_network_detach(network);
    lw_pool_close(network->pool);
    free(network);
}

const char *lw_network_backend(const lw_network *network)
{
    return network->backend->base.name;
}

int lw_network_n_inputs(const lw_network *network)
{
    return network->model->n_inputs;
}

const char *lw_network_input(const lw_network *network, int i)
{
    return network->model->values[network->model->inputs[i]].name;
}

int lw_network_n_outputs(const lw_network *network)
{
    return network->model->n_outputs;
}

const char *lw_network_output(const lw_network *network, int i)
{
    return network->model->values[network->model->outputs[i]].name;
}

int lw_network_n_overridable(const lw_network *network)
{
    return network->model->n_overridable;
}

const char *lw_network_overridable(const lw_network *network, int i)
{
    return network->model->values[network->model->overridable[i]].name;
}

static int index_of(const char *name, int n, const char *(*name_of)(const lw_network *, int),
                    const lw_network *network)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name_of(network, i), name) == 0)
            return i;
    return -1;
}

static lw_status no_such_name(const lw_network *network, const char *name, bool output, lw_error *err)
{
    const lw_model *m = network->model;
    for (int v = 0; v < m->n_values && !output; v++)
        if (m->values[v].constant && strcmp(m->values[v].name, name) == 0)
            return lw_fail(err, LW_E_ARG, "%s: '%s' has its value in the model and cannot be given", m->path,
                           name);
    char known[600] = "";
    for (int i = 0; i < (output ? m->n_outputs : m->n_inputs); i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 m->values[output ? m->outputs[i] : m->inputs[i]].name);
    return lw_fail(err, LW_E_ARG, "%s has no %s '%s'; it has: %s", m->path, output ? "output" : "input", name,
                   known);
}

lw_status lw_network_override(lw_network *network, const char *name, int *input, lw_error *err)
{
    lw_model *m = network->model;
    int i = index_of(name, m->n_inputs, lw_network_input, network),
        at = index_of(name, m->n_overridable, lw_network_overridable, network);
    if (i < 0 && at < 0)
        return no_such_name(network, name, false, err);
    if (i < 0 && network->settled)
        return lw_fail(
            err, LW_E_ARG,
            "%s: '%s' has been used as a constant: it is to be overridden before the model is fused or "
            "run",
            m->path, name);
    if (i < 0) {
        lw_value *v = &m->values[m->overridable[at]];
        if (network->in) {
            lw_tensor **in = realloc(network->in, (size_t)m->most_inputs * sizeof(lw_tensor *));
            if (!in)
                return lw_fail_memory(err, (size_t)m->most_inputs * sizeof(lw_tensor *));
            network->in = in;
            in[m->n_inputs] = NULL;
        }
        v->initial = v->constant;
        v->constant = NULL;
        i = m->n_inputs++;
        m->inputs[i] = m->overridable[at];
        LW_TRY(unfold(network, err));
    }
    if (input)
        *input = i;
    return LW_OK;
}

lw_status lw_network_override_files(lw_network *network, const lw_named_file *files, int n, lw_error *err)
{
    for (int i = 0; i < n; i++)
        if (files[i].name)
            LW_TRY(lw_network_override(network, files[i].name, NULL, err));
    return LW_OK;
}

lw_status lw_network_check_input(const lw_network *n, int i, const lw_tensor *t, lw_error *err)
{
    const lw_value *v = &n->model->values[n->model->inputs[i]];
    char text[200];
    if (v->declared && (!v->dtype_supported || v->dtype != t->dtype))
        return lw_fail(err, LW_E_INPUT, "%s: input %s must be %s, not %s", n->model->path, v->name,
                       v->dtype_supported ? lw_dtype_name(v->dtype) : "of a type that is not supported",
                       lw_tensor_text(t, text, sizeof text));
    if (v->rank < 0)
        return LW_OK;
    bool same = v->rank == t->rank;
    for (int k = 0; same && k < v->rank; k++)
        same = v->dim[k] == LW_DIM_UNKNOWN || v->dim[k] == t->dim[k];
    if (same)
        return LW_OK;
    char want[200] = "";
    for (int k = 0; k < v->rank; k++) {
        size_t at = strlen(want);
        if (v->dim[k] == LW_DIM_UNKNOWN)
            snprintf(want + at, sizeof want - at, "%s%s", k ? "," : "",
                     v->dim_name[k] ? v->dim_name[k] : "?");
        else
            snprintf(want + at, sizeof want - at, "%s%lld", k ? "," : "", (long long)v->dim[k]);
    }
    return lw_fail(err, LW_E_INPUT, "%s: input %s must have the shape [%s], not %s", n->model->path, v->name,
                   want, lw_tensor_text(t, text, sizeof text));
}

/* Releases a value that nobody reads after node i. */
static void let_go(const lw_model *m, lw_tensor **values, int v, int i)
{
    if (v < 0 || !values[v] || m->values[v].is_output || m->values[v].last_use > i)
        return;
    lw_tensor_release(values[v]);
    values[v] = NULL;
}

lw_status lw_network_walk(const lw_network *n, lw_tensor *const *inputs, lw_tensor **outputs,
                          lw_status (*seen)(void *user, int value, const lw_tensor *t, lw_error *err),
                          void *user, lw_error *err)
{
    const lw_model *m = n->model;
    lw_status status = LW_OK;
    lw_tensor **values = calloc((size_t)m->n_values + 1, sizeof *values);
    if (!values)
        return lw_fail_memory(err, (size_t)m->n_values * sizeof *values);
    for (int v = 0; v < m->n_values; v++)
        values[v] = m->values[v].constant ? lw_tensor_retain(m->values[v].constant) : NULL;
    for (int i = 0; i < m->n_inputs; i++)
        values[m->inputs[i]] = lw_tensor_retain(inputs[i]);
    for (int i = 0; i < m->n_nodes; i++) {
        const lw_node *node = &m->nodes[i];
        if (node->folded || node->fused)
            continue;
        if (lw_stopped(n->host)) {
            status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
            goto end;
        }
        bool allowed;
        LW_TRY_END(lw_network_allows(n, node, values, &allowed, err));
        if (allowed)
            LW_TRY_END(lw_network_run_node(n, i, values, err));
        for (int k = 0; k < node->n_out && seen && allowed; k++)
            if (node->out[k] >= 0) {
                LW_TRY_END(lw_network_fetch(n, values[node->out[k]], err));
                LW_TRY_END(seen(user, node->out[k], values[node->out[k]], err));
            }
        for (int k = 0, v; (v = lw_node_reads(m, node, k)) != LW_NO_MORE; k++)
            let_go(m, values, v, i);
        for (int k = 0; k < node->n_out; k++)
            let_go(m, values, node->out[k], i);
    }
    for (int i = 0; i < m->n_outputs; i++)
        outputs[i] = lw_tensor_retain(values[m->outputs[i]]);
end:
    for (int v = 0; v < m->n_values; v++)
        lw_tensor_release(values[v]);
    free(values);
    return status;
}

lw_status lw_network_run(const lw_network *n, lw_tensor *const *inputs, lw_tensor **outputs,
                         lw_status (*seen)(void *user, int value, const lw_tensor *t, lw_error *err),
                         void *user, lw_error *err)
{
    bool done = false;
    for (int i = 0; i < n->model->n_inputs; i++)
        LW_TRY(lw_network_check_input(n, i, inputs[i], err));
    if (lw_stopped(n->host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    if (n->context && n->backend->run && !seen)
        LW_TRY(n->backend->run(n->context, n, inputs, outputs, &done, err));
    if (done)
        return LW_OK;
    LW_TRY(lw_network_walk(n, inputs, outputs, seen, user, err));
    for (int i = 0; i < n->model->n_outputs; i++)
        LW_TRY(lw_network_fetch(n, outputs[i], err));
    return LW_OK;
}

/* ---- files --------------------------------------------------------------------------------------- */

typedef struct dumper {
    const lw_network *network;
    const char *folder;
    struct lw_temporaries *temporaries;
} dumper;

static lw_status dump_value(void *user, int value, const lw_tensor *t, lw_error *err)
{
    const dumper *d = user;
    char path[4096], name[200];
    size_t n = 0;
    for (const char *p = d->network->model->values[value].name; *p && n < sizeof name - 1; p++)
        name[n++] = isalnum((unsigned char)*p) || *p == '.' || *p == '-' ? *p : '_';
    name[n] = '\0';
    if (snprintf(path, sizeof path, "%s/%05d_%s.npy", d->folder, value, name) >= (int)sizeof path)
        return lw_fail(err, LW_E_ARG, "%s: the path is too long", d->folder);
    return lw_tensor_write_npy(t, path, d->temporaries, err);
}

/* Makes the folder for --dump-nodes where it is not there yet; the first file tells of other trouble. */
static void make_folder(const char *path)
{
    enum { EVERYONE = 0777 }; /* less what the umask takes away */
    mkdir(path, EVERYONE);
}

lw_status lw_network_place(const lw_network *network, const lw_named_file *file, bool output,
                           const bool *taken, int *place, lw_error *err)
{
    int n = output ? network->model->n_outputs : network->model->n_inputs;
    const char *(*name_of)(const lw_network *, int) = output ? lw_network_output : lw_network_input;
    const char *what = output ? "output" : "input";
    if (file->name) {
        *place = index_of(file->name, n, name_of, network);
        if (*place < 0)
            return no_such_name(network, file->name, output, err);
        if (taken[*place])
            return lw_fail(err, LW_E_ARG, "%s '%s' is given twice", what, file->name);
        return LW_OK;
    }
    for (*place = 0; *place < n && taken[*place]; ++*place)
        ;
    return *place < n ? LW_OK : lw_fail(err, LW_E_ARG, "%s has only %d %ss", network->model->path, n, what);
}

lw_status lw_network_run_files(lw_network *network, const lw_named_file *inputs, int n_inputs,
                               const lw_named_file *outputs, int n_outputs, const char *dump,
                               struct lw_temporaries *temporaries, lw_error *err)
{
    LW_TRY(lw_network_override_files(network, inputs, n_inputs, err));
    network->settled = true;
    const lw_model *m = network->model;
    lw_status status = LW_OK;
    lw_tensor **in = calloc((size_t)m->n_inputs + 1, sizeof *in),
              **out = calloc((size_t)m->n_outputs + 1, sizeof *out);
    bool *taken = calloc((size_t)(m->n_inputs + m->n_outputs) + 1, sizeof *taken);
    int *places = calloc((size_t)n_outputs + 1, sizeof *places);
    lw_outfile **files = calloc((size_t)n_outputs + 1, sizeof *files);
    if (!in || !out || !taken || !places || !files) {
        status = lw_fail_memory(err, (size_t)(m->n_inputs + m->n_outputs) * sizeof *in);
        goto end;
    }
    for (int k = 0; k < n_inputs; k++) {
        int place;
        LW_TRY_END(lw_network_place(network, &inputs[k], false, taken, &place, err));
        taken[place] = true;
        LW_TRY_END(lw_tensor_read_npy(&in[place], inputs[k].path, err));
    }
    for (int i = 0; i < m->n_inputs; i++) {
        if (!in[i] && m->values[m->inputs[i]].initial)
            in[i] = lw_tensor_retain(m->values[m->inputs[i]].initial);
        if (!in[i]) {
            status = lw_fail(err, LW_E_ARG, "input '%s' of %s is not given", lw_network_input(network, i),
                             m->path);
            goto end;
        }
    }
    for (int k = 0; k < n_outputs; k++) {
        LW_TRY_END(lw_network_place(network, &outputs[k], true, taken + m->n_inputs, &places[k], err));
        taken[m->n_inputs + places[k]] = true;
    }
    for (int k = 0; k < n_outputs; k++)
        LW_TRY_END(lw_outfile_open(&files[k], outputs[k].path, temporaries, err));
    dumper d = {network, dump, temporaries};
    if (dump)
        make_folder(dump);
    LW_TRY_END(lw_network_run(network, in, out, dump ? dump_value : NULL, &d, err));
    for (int k = 0; k < n_outputs; k++)
        LW_TRY_END(lw_tensor_write(out[places[k]], files[k], err));
end:
    if (files)
        status = lw_outfile_close_all(files, n_outputs, status, err);
    free(files);
    for (int i = 0; in && i < m->n_inputs; i++)
        lw_tensor_release(in[i]);
    for (int i = 0; out && i < m->n_outputs; i++)
        lw_tensor_release(out[i]);
    free(in);
    free(out);
    free(taken);
    free(places);
    return status;
}
