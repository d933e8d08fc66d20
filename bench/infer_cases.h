/* infer_cases.h - single operators on made-up tensors, for benches and tests alike. */
#ifndef LW_INFER_CASES_H
#define LW_INFER_CASES_H

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/network.h"

enum { INFER_CASE_INPUTS = 9, INFER_CASE_ATTRS = 6 };

/* The operator, its attributes and inputs (NULL: left out). */
typedef struct infer_case {
    const char *domain, *op;
    int opset;
    lw_attr attrs[INFER_CASE_ATTRS];
    int n_attrs;
    lw_tensor *in[INFER_CASE_INPUTS];
    int n_in;
} infer_case;

static inline uint32_t infer_case_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Bytes of all values; floats in [-4, 4). Large tensors repeat themselves, at distances that no dimension
 * has. */
static inline lw_status infer_case_tensor(lw_tensor **out, lw_dtype dtype, int rank, const int64_t *dim,
                                          uint64_t seed, lw_error *err)
{
    LW_TRY(lw_tensor_new(out, dtype, rank, dim, err));
    enum { PERIOD = 1000003 };
    uint64_t state = seed * 2 + 1;
    int64_t own = (*out)->count < PERIOD ? (*out)->count : PERIOD, size = lw_dtype_size(dtype);
    for (int64_t i = 0; i < own; i++) {
        uint32_t r = infer_case_random(&state);
        if (dtype == LW_F32)
            ((float *)(*out)->data)[i] = (float)((int32_t)(r % 8192) - 4096) / 1024;
        else if (lw_dtype_size(dtype) == 1)
            ((uint8_t *)(*out)->data)[i] = (uint8_t)(r >> 8);
        else
            ((int32_t *)(*out)->data)[i] = (int32_t)(r % 20001) - 10000;
    }
    for (int64_t at = own; at < (*out)->count; at += own) {
        int64_t n = (*out)->count - at < own ? (*out)->count - at : own;
        memcpy((char *)(*out)->data + at * size, (*out)->data, (size_t)(n * size));
    }
    return LW_OK;
}

static inline lw_status infer_case_float(lw_tensor **out, float value, lw_error *err)
{
    LW_TRY(lw_tensor_new(out, LW_F32, 0, NULL, err));
    *(float *)(*out)->data = value;
    return LW_OK;
}

static inline lw_status infer_case_zero(lw_tensor **out, lw_dtype dtype, int32_t value, lw_error *err)
{
    LW_TRY(lw_tensor_new(out, dtype, 0, NULL, err));
    *(uint8_t *)(*out)->data = (uint8_t)value;
    return LW_OK;
}

static inline void infer_case_int(infer_case *c, const char *name, int64_t value)
{
    c->attrs[c->n_attrs++] = (lw_attr){.name = (char *)(uintptr_t)name, .kind = LW_ATTR_INT, .i = value};
}

static inline void infer_case_ints(infer_case *c, const char *name, const int64_t *values, int n)
{
    c->attrs[c->n_attrs++] = (lw_attr){
        .name = (char *)(uintptr_t)name, .kind = LW_ATTR_INTS, .ints = (int64_t *)(uintptr_t)values, .n = n};
}

static inline void infer_case_free(infer_case *c)
{
    for (int i = 0; i < c->n_in; i++)
        lw_tensor_release(c->in[i]);
    c->n_in = 0;
}

/* Runs it; the first output is the caller's, and may still be in the making on a device. */
static inline lw_status infer_case_run(const lw_network *n, const infer_case *c, lw_tensor **out,
                                       lw_error *err)
{
    int of_out = 0;
    lw_node node = {.name = (char *)(uintptr_t)c->op,
                    .op = (char *)(uintptr_t)c->op,
                    .domain = (char *)(uintptr_t)c->domain,
                    .opset = c->opset,
                    .attrs = (lw_attr *)(uintptr_t)c->attrs,
                    .n_attrs = c->n_attrs,
                    .n_in = c->n_in,
                    .n_out = 1,
                    .out = &of_out,
                    .impl = lw_op_find(c->domain, c->op, c->opset)};
    lw_op_call call = {.node = &node, .in = c->in, .n_in = c->n_in, .out = out, .n_out = 1};
    *out = NULL;
    return lw_network_run_call(n, &call, err);
}

/* Rows (or channels, images: parts along the first dimension) at[0 .. n) of t. */
static inline lw_status infer_case_parts(const lw_tensor *t, const int64_t *at, int n, lw_tensor **out,
                                         lw_error *err)
{
    int64_t dim[LW_MAX_RANK], bytes = lw_tensor_span(t, 1, t->rank) * lw_dtype_size(t->dtype);
    memcpy(dim, t->dim, sizeof dim);
    dim[0] = n;
    LW_TRY(lw_tensor_new(out, t->dtype, t->rank, dim, err));
    for (int i = 0; i < n; i++)
        memcpy((char *)(*out)->data + i * bytes, (const char *)t->data + at[i] * bytes, (size_t)bytes);
    return LW_OK;
}

#endif
