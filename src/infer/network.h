/* network.h - a model made ready to run. */
#ifndef LW_NETWORK_H
#define LW_NETWORK_H

#include "lanewise/infer.h"
#include "infer/op.h"

struct lw_network {
    lw_model *model;
    const lw_infer_backend *backend;
    void *context; /* of a backend that runs whole nodes; else NULL */
    lw_pool *pool;
    const lw_host *host;
    lw_tensor **in, **out; /* of lw_network_set_input() and lw_network_compute(); NULL until then */
    bool settled;          /* fused, or run: what is constant stays so */
};

/* The row that NAME (NULL: auto) stands for. */
lw_status lw_infer_backend_choose(const lw_infer_backend **out, const char *name, const lw_host *host,
                                  lw_error *err);

/* Opens the backend's context, where it has one; before the first node that it shall run. */
lw_status lw_network_attach(lw_network *network, lw_error *err);
void lw_network_detach(lw_network *network);

/* Runs one operator: on the device if its backend can, else on the host, where the inputs are brought first.
 * Sets call->backend and call->pool. */
lw_status lw_network_run_call(const lw_network *network, lw_op_call *call, lw_error *err);
/* Makes t's elements readable by the host. */
lw_status lw_network_fetch(const lw_network *network, lw_tensor *t, lw_error *err);

/* Runs node `i` on values[] (model->n_values tensors, NULL where unknown) and stores what it makes there. */
lw_status lw_network_run_node(const lw_network *network, int i, lw_tensor **values, lw_error *err);

/* *allowed: whether the conditions in values[] let a node run; without a value, none does. */
lw_status lw_network_allows(const lw_network *network, const lw_node *node, lw_tensor *const *values,
                            bool *allowed, lw_error *err);

/* Runs the whole graph. inputs[i] belongs to model->inputs[i]; outputs[i] receives a tensor to release. seen
 * (may be NULL) is called with every value as it is made. */
lw_status lw_network_run(const lw_network *network, lw_tensor *const *inputs, lw_tensor **outputs,
                         lw_status (*seen)(void *user, int value, const lw_tensor *t, lw_error *err),
                         void *user, lw_error *err);
/* The same node by node; the outputs may still be on the device. */
lw_status lw_network_walk(const lw_network *n, lw_tensor *const *inputs, lw_tensor **outputs,
                          lw_status (*seen)(void *user, int value, const lw_tensor *t, lw_error *err),
                          void *user, lw_error *err);

/* The model's input or output that a file belongs to: by its name, or the first place not taken yet. */
lw_status lw_network_place(const lw_network *network, const lw_named_file *file, bool output,
                           const bool *taken, int *place, lw_error *err);

/* Overrides what the files name. */
lw_status lw_network_override_files(lw_network *network, const lw_named_file *files, int n, lw_error *err);

/* What the operators refuse with the constants alone, of every node that will run. */
lw_status lw_network_check(const lw_network *network, lw_error *err);

/* LW_E_INPUT unless t is what the model declares of input i. */
lw_status lw_network_check_input(const lw_network *network, int i, const lw_tensor *t, lw_error *err);

/* Lets go of the outputs, and of the inputs, that lw_network_compute() works on. */
void lw_network_release_arrays(lw_network *network, bool inputs_too);

/* What lw_network_fuse() does, but for the check of the new nodes' weights; also on a model with nodes that
 * are not supported. */
lw_status lw_model_fuse(lw_model *m, int *fused, lw_error *err);

#endif
