/* model.c - the life of a model and its attributes. */
#include "infer/model.h"

#include <stdlib.h>
#include <string.h>

void lw_attr_free(lw_attr *a)
{
    free(a->name);
    free(a->s);
    free(a->ints);
    free(a->floats);
    lw_tensor_release(a->t);
}

void lw_model_free(lw_model *model)
{
    if (!model)
        return;
    for (int i = 0; i < model->n_values; i++) {
        free(model->values[i].name);
        lw_tensor_release(model->values[i].constant);
        lw_tensor_release(model->values[i].initial);
        for (int k = 0; k < LW_MAX_RANK; k++)
            free(model->values[i].dim_name[k]);
    }
    for (int i = 0; i < model->n_nodes; i++) {
        lw_node *node = &model->nodes[i];
        for (int k = 0; k < node->n_attrs; k++)
            lw_attr_free(&node->attrs[k]);
        free(node->attrs);
        free(node->name);
        free(node->op);
        free(node->domain);
        free(node->in);
        free(node->out);
        lw_keeper_free(node->keeper);
    }
    free(model->values);
    free(model->nodes);
    free(model->inputs);
    free(model->outputs);
    free(model->overridable);
    free(model->guards);
    free(model->producer);
    free(model->path);
    free(model);
}

int lw_node_reads(const lw_model *model, const lw_node *node, int k)
{
    if (k < node->n_in)
        return node->in[k];
    int guard = node->guard;
    for (k -= node->n_in; guard && k > 0; k--)
        guard = model->guards[guard - 1].outer;
    return guard ? model->guards[guard - 1].condition : LW_NO_MORE;
}

const lw_attr *lw_node_attr(const lw_node *node, const char *name)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attrs[i].name, name) == 0)
            return &node->attrs[i];
    return NULL;
}

int64_t lw_node_int(const lw_node *node, const char *name, int64_t otherwise)
{
    const lw_attr *a = lw_node_attr(node, name);
    return a && a->kind == LW_ATTR_INT ? a->i : otherwise;
}

float lw_node_float(const lw_node *node, const char *name, float otherwise)
{
    const lw_attr *a = lw_node_attr(node, name);
    return a && a->kind == LW_ATTR_FLOAT ? a->f : otherwise;
}

const char *lw_node_string(const lw_node *node, const char *name, const char *otherwise)
{
    const lw_attr *a = lw_node_attr(node, name);
    return a && a->kind == LW_ATTR_STRING ? a->s : otherwise;
}

const int64_t *lw_node_ints(const lw_node *node, const char *name, int64_t *n)
{
    const lw_attr *a = lw_node_attr(node, name);
    *n = a && a->kind == LW_ATTR_INTS ? a->n : 0;
    return *n ? a->ints : NULL;
}
