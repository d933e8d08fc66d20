/* model.h - a loaded model: values, nodes in an order that can be run, and the operators that run them. */
#ifndef LW_MODEL_H
#define LW_MODEL_H

#include "infer/tensor.h"

typedef enum lw_attr_kind {
    LW_ATTR_INT,
    LW_ATTR_FLOAT,
    LW_ATTR_STRING,
    LW_ATTR_TENSOR,
    LW_ATTR_INTS,
    LW_ATTR_FLOATS,
    LW_ATTR_STRINGS, /* s: n texts, one behind the other */
    LW_ATTR_OTHER
} lw_attr_kind;

typedef struct lw_attr {
    char *name;
    lw_attr_kind kind;
    int64_t i;
    float f;
    char *s;
    lw_tensor *t;
    int64_t *ints;
    float *floats;
    int64_t n; /* of ints, floats or strings */
} lw_attr;

/* A dimension that is known only when the model runs. */
enum { LW_DIM_UNKNOWN = -1 };

typedef struct lw_value {
    char *name;
    lw_tensor *constant; /* initializers and folded results; else NULL */
    lw_tensor *initial;  /* of an input: what it holds where the caller gives nothing; else NULL */
    bool is_input, is_output;
    bool inner;    /* of a branch of an If: its name does not lead to it */
    bool declared; /* dtype, rank and dim come from the file */
    bool dtype_supported;
    lw_dtype dtype;
    int rank; /* -1: not declared */
    int64_t dim[LW_MAX_RANK];
    char *dim_name[LW_MAX_RANK]; /* symbolic dimensions; else NULL */
    int last_use;                /* index of the last node that reads it; -1: none */
} lw_value;

struct lw_op;

typedef struct lw_node {
    char *name;        /* the file's, or "OP #index" */
    char *op, *domain; /* domain "" is ai.onnx */
    int opset;         /* imported version of its domain */
    lw_attr *attrs;
    int n_attrs;
    int *in, *out; /* value indices; -1: an optional one that is left out */
    int n_in, n_out;
    const struct lw_op *impl; /* NULL: not supported */
    int guard;                /* 0: it runs always; else guards[guard - 1] says when */
    bool dead;                /* of a branch that is never taken; fused, too */
    bool folded;              /* all outputs are constants */
    bool fused;               /* another node's kernel does it, or nobody reads what it makes */
    struct lw_keeper *keeper; /* what backends keep for this node; see lw_call_keep() */
} lw_node;

/* A branch of an If. Its nodes stand among all others and run where the value `condition` is `wanted` and the
 * guard `outer` (0: none) allows it. The If itself comes after them; its inputs are the condition, the
 * outputs of the one branch and those of the other. */
typedef struct lw_guard {
    int condition;
    bool wanted;
    int outer;
} lw_guard;

/* Of ai.onnx: operators of later ones may have changed since they were written here. */
enum { LW_NEWEST_OPSET = 26 };

typedef struct lw_model {
    char *path; /* "memory" where it came from there */
    bool from_memory;
    char *producer;
    int ir_version, opset;
    lw_value *values;
    int n_values, values_capacity;
    lw_node *nodes; /* sorted: producers before consumers */
    int n_nodes, nodes_capacity;
    lw_guard *guards;
    int n_guards;
    int *inputs, *outputs; /* value indices, in the file's order; inputs without initializers */
    int n_inputs, n_outputs;
    int most_inputs;  /* that `inputs` has room for */
    int *overridable; /* initializers that the file lists as inputs too: constants, unless they are made
                         inputs by lw_network_override() */
    int n_overridable;
} lw_model;

/* Reads an .onnx file, with external data from files in its own folder only. Nodes get their operators; those
 * that are not supported keep impl NULL, for the caller to list. LW_E_IO; LW_E_INPUT: not ONNX, truncated,
 * cyclic, names that lead nowhere, shapes that disagree, external data that is missing or lies elsewhere. */
lw_status lw_model_read(lw_model **out, const char *path, lw_error *err);
/* The same from memory, without external data; its path is "memory" in messages. */
lw_status lw_model_read_memory(lw_model **out, const void *data, size_t size, lw_error *err);
void lw_model_free(lw_model *model); /* NULL is allowed */

/* The k-th value that a node reads, -1 where it is left out: its inputs, then the conditions of the branches
 * that it belongs to; LW_NO_MORE behind them. */
enum { LW_NO_MORE = -2 };
int lw_node_reads(const lw_model *model, const lw_node *node, int k);

void lw_attr_free(lw_attr *attr);              /* what it holds */
void lw_keeper_free(struct lw_keeper *keeper); /* and what is kept in it; NULL is allowed */

const lw_attr *lw_node_attr(const lw_node *node, const char *name);
int64_t lw_node_int(const lw_node *node, const char *name, int64_t otherwise);
float lw_node_float(const lw_node *node, const char *name, float otherwise);
const char *lw_node_string(const lw_node *node, const char *name, const char *otherwise);
/* The list `name`: NULL and *n = 0 where there is none. */
const int64_t *lw_node_ints(const lw_node *node, const char *name, int64_t *n);

#endif
