/* graph_dense.c - the reader of dense .npy matrices of weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/npy.h"
#include "paths/graph.h"

/* One entry: false where there is no edge; *wrong for what is no weight. */
static bool dense_entry(const lw_npy *a, int64_t i, lw_weight *w, const char **wrong)
{
#define LW_CASE(TAG, T, MAX)                                                                                 \
    case TAG: {                                                                                              \
        T v = ((const T *)a->data)[i];                                                                       \
        *w = lw_weight_whole((int64_t)v);                                                                    \
        if (v == MAX)                                                                                        \
            return false;                                                                                    \
        break;                                                                                               \
    }
    switch (a->dtype) {
        LW_CASE(LW_I8, int8_t, INT8_MAX)
        LW_CASE(LW_U8, uint8_t, UINT8_MAX)
        LW_CASE(LW_I16, int16_t, INT16_MAX)
        LW_CASE(LW_U16, uint16_t, UINT16_MAX)
        LW_CASE(LW_I32, int32_t, INT32_MAX)
        LW_CASE(LW_U32, uint32_t, UINT32_MAX)
        LW_CASE(LW_I64, int64_t, INT64_MAX)
    case LW_U64: {
        uint64_t v = ((const uint64_t *)a->data)[i];
        if (v == UINT64_MAX)
            return false;
        *w = lw_weight_whole(v > INT64_MAX ? INT64_MAX : (int64_t)v);
        break;
    }
    default: {
        double v = a->dtype == LW_F64   ? ((const double *)a->data)[i]
                   : a->dtype == LW_F32 ? (double)((const float *)a->data)[i]
                                        : (double)lw_half_to_float(((const uint16_t *)a->data)[i]);
        if (isnan(v)) {
            *wrong = "not a number (NaN)";
            return false;
        }
        if (isinf(v)) {
            if (v < 0)
                *wrong = "minus infinity";
            return false;
        }
        *w = lw_weight_real(v);
        return true;
    }
    }
#undef LW_CASE
    if (w->whole > LW_WEIGHT_MAX || w->whole < -LW_WEIGHT_MAX)
        *wrong = "an integer beyond 2^53";
    return true;
}

lw_status lw_graph_read_npy(lw_graph **out, const char *path, const lw_graph_options *options, lw_error *err)
{
    lw_status status = LW_OK;
    lw_npy a = {0};
    lw_graph *g = NULL;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    LW_TRY(lw_npy_read(&a, path, err));
    if (a.ndim != 2 || a.shape[0] != a.shape[1]) {
        char shape[64] = "";
        for (int k = 0; k < a.ndim && k < 3; k++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", k ? " x " : "",
                     (long long)a.shape[k]);
        status = lw_fail(err, LW_E_INPUT, "%s: a square matrix was expected, found %s%s", name,
                         a.ndim ? shape : "a single number", a.ndim > 3 ? " x ..." : "");
        goto end;
    }
    if (a.dtype == LW_BOOL) {
        status = lw_fail(
            err, LW_E_INPUT,
            "%s: dtype bool holds no weights; save integers or floats, with the type's largest value or inf "
            "where there is no edge",
            name);
        goto end;
    }
    int64_t n = a.shape[0], arcs = 0, capacity = 1024;
    if (n > INT32_MAX) {
        status = lw_fail(err, LW_E_RANGE, "%s: more than 2^31 - 1 vertices", name);
        goto end;
    }
    /* rows are in order already, so this goes straight into compressed rows; weights begin whole and turn
     * into floats at the first fraction */
    g = calloc(1, sizeof *g);
    if (g) {
        g->n = n;
        g->start = calloc((size_t)n + 1, sizeof *g->start);
        g->to = malloc((size_t)capacity * sizeof *g->to);
        g->whole = malloc((size_t)capacity * sizeof *g->whole);
    }
    if (!g || !g->start || !g->to || !g->whole) {
        status = lw_fail_memory(err, (size_t)n * sizeof *g->start);
        goto end;
    }
    for (int64_t i = 0; i < n; i++) {
        if (arcs + n > capacity) {
            int64_t larger = 2 * capacity > arcs + n ? 2 * capacity : arcs + n;
            larger = larger < n * n ? larger : n * n;
            int32_t *to = realloc(g->to, (size_t)larger * sizeof *to);
            g->to = to ? to : g->to;
            void *weights =
                realloc(g->whole ? (void *)g->whole : (void *)g->real, (size_t)larger * sizeof *g->whole);
            if (weights && g->whole)
                g->whole = weights;
            else if (weights)
                g->real = weights;
            if (!to || !weights) {
                status = lw_fail_memory(err, (size_t)larger * sizeof *g->whole);
                goto end;
            }
            capacity = larger;
        }
        for (int64_t j = 0; j < n; j++) {
            const char *wrong = NULL;
            lw_weight w = {0}, back = {0};
            bool is_edge = dense_entry(&a, i * n + j, &w, &wrong);
            if (!wrong && is_edge)
                wrong = options->weight ? (w = lw_weight_whole(1), NULL)
                                        : lw_weight_transform(&w, options->transform);
            if (!wrong && options->undirected && dense_entry(&a, j * n + i, &back, &wrong) && !wrong) {
                wrong = options->weight ? (back = lw_weight_whole(1), NULL)
                                        : lw_weight_transform(&back, options->transform);
                if (!is_edge || back.real < w.real)
                    w = back;
                is_edge = true;
            }
            if (wrong && i != j) {
                status = lw_fail(err, LW_E_INPUT, "%s: entry (%lld, %lld): %s", name, (long long)i,
                                 (long long)j, wrong);
                goto end;
            }
            if (wrong || !is_edge || (i == j && w.real >= 0))
                continue;
            if (!w.is_whole && g->whole) {
                g->real = (double *)(void *)g->whole;
                for (int64_t e = 0; e < arcs; e++) {
                    int64_t before;
                    memcpy(&before, &g->real[e], sizeof before);
                    g->real[e] = (double)before;
                }
                g->whole = NULL;
            }
            g->to[arcs] = (int32_t)j;
            if (g->whole)
                g->whole[arcs] = w.whole;
            else
                g->real[arcs] = w.real;
            arcs++;
            g->negative = g->negative || w.real < 0;
        }
        g->start[i + 1] = arcs;
    }
    *out = g;
    g = NULL;
end:
    lw_npy_free(&a);
    lw_graph_free(g);
    return status;
}
