/* graph.c - weights, vertex names, and edges to compressed rows. */
#include "paths/graph.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "paths/memory.h"

/* --- weights ---------------------------------------------------------------------------------------- */

lw_weight lw_weight_whole(int64_t value)
{
    return (lw_weight){.is_whole = true, .whole = value, .real = (double)value};
}

lw_weight lw_weight_real(double value)
{
    if (fabs(value) <= (double)LW_WEIGHT_MAX && value == floor(value))
        return lw_weight_whole((int64_t)value);
    return (lw_weight){.real = value};
}

const char *lw_weight_parse(const char *text, lw_weight *out)
{
    /* most weights are short integers */
    const char *p = text + (*text == '-' || *text == '+');
    int64_t whole = 0;
    int digits = 0;
    for (; *p >= '0' && *p <= '9' && digits < 17; p++, digits++)
        whole = whole * 10 + (*p - '0');
    if (digits > 0 && *p == '\0') {
        if (whole > LW_WEIGHT_MAX)
            return "the weight is an integer beyond 2^53";
        *out = lw_weight_whole(*text == '-' ? -whole : whole);
        return NULL;
    }
    if (text[strspn(text, "+-.0123456789eE")] != '\0') {
        const char *word = text + strspn(text, "+-");
        if (strncasecmp(word, "nan", 3) == 0)
            return "the weight is not a number (NaN)";
        if (strncasecmp(word, "inf", 3) == 0)
            return "the weight is infinite; leave the edge out instead";
        return "the weight is not a number";
    }
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0')
        return "the weight is not a number";
    if (isinf(value))
        return "the weight exceeds float64";
    if (value == 0 && errno == ERANGE)
        return "the weight is too little for float64";
    if (strpbrk(text, ".eE") == NULL)
        return "the weight is an integer beyond 2^53";
    *out = lw_weight_real(value);
    return NULL;
}

lw_status lw_graph_no_weights(const char *name, lw_error *err)
{
    return lw_fail(err, LW_E_ARG, "%s: the edges have no weights (each counts 1): leave out --transform",
                   name);
}

const char *lw_weight_transform(lw_weight *w, lw_transform transform)
{
    switch (transform) {
    case LW_TRANSFORM_NONE:
        break;
    case LW_TRANSFORM_RECIPROCAL:
        if (w->real == 0)
            return "a weight of 0 has no reciprocal";
        *w = lw_weight_real(1 / w->real);
        if (isinf(w->real))
            return "the weight's reciprocal exceeds float64";
        break;
    case LW_TRANSFORM_MINUSLOG:
        if (w->real <= 0)
            return "a weight of 0 or less has no logarithm";
        *w = lw_weight_real(0 - log(w->real)); /* 0 - 0 is +0, where -0 would print a sign */
        break;
    case LW_TRANSFORM_1000_MINUS:
        *w = w->is_whole ? lw_weight_whole(1000 - w->whole) : lw_weight_real(1000 - w->real);
        break;
    }
    return NULL;
}

/* --- edges ------------------------------------------------------------------------------------------ */

lw_status lw_edges_add(lw_edges *e, int64_t from, int64_t to, lw_weight weight, lw_error *err)
{
    if (e->n == e->capacity) {
        int64_t capacity = e->capacity ? e->capacity * 2 : 1024;
        int32_t *f = realloc(e->from, (size_t)capacity * sizeof *f);
        e->from = f ? f : e->from;
        int32_t *t = realloc(e->to, (size_t)capacity * sizeof *t);
        e->to = t ? t : e->to;
        int64_t *w = realloc(e->weight.whole, (size_t)capacity * sizeof *w);
        e->weight.whole = w ? w : e->weight.whole;
        if (!f || !t || !w)
            return lw_fail_memory(err, (size_t)capacity * sizeof *w);
        e->capacity = capacity;
    }
    if (!weight.is_whole && !e->is_real) { /* the first fraction: all become float64, exactly */
        for (int64_t i = 0; i < e->n; i++)
            e->weight.real[i] = (double)e->weight.whole[i];
        e->is_real = true;
    }
    e->from[e->n] = (int32_t)from;
    e->to[e->n] = (int32_t)to;
    if (e->is_real)
        e->weight.real[e->n] = weight.real;
    else
        e->weight.whole[e->n] = weight.whole;
    e->n++;
    return LW_OK;
}

void lw_edges_free(lw_edges *e)
{
    free(e->from);
    free(e->to);
    free(e->weight.whole);
    *e = (lw_edges){0};
}

/* --- names ------------------------------------------------------------------------------------------ */

static size_t hash(const char *text, size_t length) /* FNV-1a, 64 bits */
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return (size_t)(h ^ h >> 29);
}

const char *lw_names_text(const lw_names *names, int64_t vertex)
{
    return names->text + names->offset[vertex];
}

/* The slot of this text: where it is, or the free one where it belongs. */
static size_t find_slot(const lw_names *names, const char *text, size_t length)
{
    size_t mask = names->n_slots - 1, s = hash(text, length) & mask;
    for (; names->slot[s] >= 0; s = (s + 1) & mask) {
        const char *other = lw_names_text(names, names->slot[s]);
        if (strncmp(other, text, length) == 0 && other[length] == '\0')
            break;
    }
    return s;
}

int32_t lw_names_find(const lw_names *names, const char *text, size_t length)
{
    return names->n_slots ? names->slot[find_slot(names, text, length)] : -1;
}

/* Files every name anew in n_slots slots. */
static lw_status rehash(lw_names *names, size_t n_slots, lw_error *err)
{
    int32_t *slot = malloc(n_slots * sizeof *slot);
    if (!slot)
        return lw_fail_memory(err, n_slots * sizeof *slot);
    memset(slot, 0xFF, n_slots * sizeof *slot);
    free(names->slot);
    names->slot = slot;
    names->n_slots = n_slots;
    for (int64_t v = 0; v < names->n; v++) {
        const char *text = lw_names_text(names, v);
        slot[find_slot(names, text, strlen(text))] = (int32_t)v;
    }
    return LW_OK;
}

lw_status lw_names_intern(lw_names *names, const char *text, size_t length, int32_t *vertex, lw_error *err)
{
    if ((size_t)names->n * 2 >= names->n_slots)
        LW_TRY(rehash(names, names->n_slots ? names->n_slots * 2 : 1024, err));
    size_t s = find_slot(names, text, length);
    if (names->slot[s] >= 0) {
        *vertex = names->slot[s];
        return LW_OK;
    }
    if (names->n == INT32_MAX)
        return lw_fail(err, LW_E_RANGE, "more than 2^31 - 1 vertices");
    if (names->n == names->offset_capacity) {
        int64_t capacity = names->offset_capacity ? names->offset_capacity * 2 : 1024;
        size_t *offset = realloc(names->offset, (size_t)capacity * sizeof *offset);
        if (!offset)
            return lw_fail_memory(err, (size_t)capacity * sizeof *offset);
        names->offset = offset;
        names->offset_capacity = capacity;
    }
    if (names->capacity - names->used < length + 1) {
        size_t capacity = (names->capacity + length + 1) * 2;
        char *block = realloc(names->text, capacity);
        if (!block)
            return lw_fail_memory(err, capacity);
        names->text = block;
        names->capacity = capacity;
    }
    memcpy(names->text + names->used, text, length);
    names->text[names->used + length] = '\0';
    names->offset[names->n] = names->used;
    names->used += length + 1;
    *vertex = names->slot[s] = (int32_t)names->n++;
    return LW_OK;
}

void lw_names_free(lw_names *names)
{
    free(names->text);
    free(names->offset);
    free(names->slot);
    *names = (lw_names){0};
}

/* A label that is a whole number within int64. */
static bool whole_label(const char *text, int64_t *value)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0;
}

typedef struct label {
    const char *text;
    int64_t number;
    int32_t vertex;
} label;

static int by_number(const void *a, const void *b)
{
    const label *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp(x->text, y->text); /* 7 and 007 are two vertices */
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(((const label *)a)->text, ((const label *)b)->text);
}

/* Puts the names in order and renumbers the edges. */
static lw_status sort_names(lw_names *names, lw_edges *edges, lw_error *err)
{
    size_t n = (size_t)names->n;
    label *labels = malloc((n + 1) * sizeof *labels);
    int32_t *rank = malloc((n + 1) * sizeof *rank);
    size_t *offset = malloc((n + 1) * sizeof *offset);
    lw_status status = LW_OK;
    if (!labels || !rank || !offset) {
        status = lw_fail_memory(err, (n + 1) * (sizeof *labels + sizeof *rank + sizeof *offset));
        goto end;
    }
    bool numbers = true;
    for (size_t v = 0; v < n; v++) {
        labels[v] = (label){.text = lw_names_text(names, (int64_t)v), .vertex = (int32_t)v};
        numbers = numbers && whole_label(labels[v].text, &labels[v].number);
    }
    qsort(labels, n, sizeof *labels, numbers ? by_number : by_bytes);
    for (size_t v = 0; v < n; v++) {
        rank[labels[v].vertex] = (int32_t)v;
        offset[v] = names->offset[labels[v].vertex];
    }
    memcpy(names->offset, offset, n * sizeof *offset);
    LW_TRY_END(rehash(names, names->n_slots, err));
    for (int64_t e = 0; e < edges->n; e++) {
        edges->from[e] = rank[edges->from[e]];
        edges->to[e] = rank[edges->to[e]];
    }
end:
    free(labels);
    free(rank);
    free(offset);
    return status;
}

/* --- compressed rows -------------------------------------------------------------------------------- */

/* Counting sort of the arcs by their end first, then, stably, by their start: every row ascends. An
 * undirected edge is two arcs: arc a of edge a / 2, turned round if a is odd. */
static lw_status fill_rows(lw_graph *g, const lw_edges *edges, bool undirected, lw_error *err)
{
    int64_t fold = undirected ? 2 : 1, arcs = edges->n * fold;
    size_t n = (size_t)g->n;
    /* one line of a file can promise any number of vertices */
    double bytes = 16.0 * ((double)n + 1) + 28.0 * (double)arcs;
    int64_t available = lw_memory_available();
    if (available >= 0 && bytes > (double)available)
        return lw_fail(err, LW_E_RANGE,
                       "%lld vertices and %lld arcs need %.2f GiB of memory to be read and %.2f GiB are free",
                       (long long)n, (long long)arcs, bytes / 0x1p30, (double)available / 0x1p30);
    int64_t *count = calloc(n + 1, sizeof *count);
    int64_t *order = malloc(((size_t)arcs + 1) * sizeof *order); /* arcs by end */
    g->start = calloc(n + 1, sizeof *g->start);
    g->to = malloc(((size_t)arcs + 1) * sizeof *g->to);
    g->whole = edges->is_real ? NULL : malloc(((size_t)arcs + 1) * sizeof *g->whole);
    g->real = edges->is_real ? malloc(((size_t)arcs + 1) * sizeof *g->real) : NULL;
    lw_status status = LW_OK;
    if (!count || !order || !g->start || !g->to || (!g->whole && !g->real)) {
        status = lw_fail_memory(err, (size_t)arcs * 20 + n * 16);
        goto end;
    }
#define LW_ARC_FROM(a) ((undirected && ((a)&1)) ? edges->to[(a) / fold] : edges->from[(a) / fold])
#define LW_ARC_TO(a) ((undirected && ((a)&1)) ? edges->from[(a) / fold] : edges->to[(a) / fold])
    for (int64_t a = 0; a < arcs; a++) {
        count[LW_ARC_TO(a) + 1]++;
        g->start[LW_ARC_FROM(a) + 1]++;
    }
    for (size_t v = 0; v < n; v++) {
        count[v + 1] += count[v];
        g->start[v + 1] += g->start[v];
    }
    for (int64_t a = 0; a < arcs; a++)
        order[count[LW_ARC_TO(a)]++] = a;
    memcpy(count, g->start, (n + 1) * sizeof *count); /* where the next arc of each row goes */
    for (int64_t i = 0; i < arcs; i++) {
        int64_t a = order[i], at = count[LW_ARC_FROM(a)]++;
        g->to[at] = LW_ARC_TO(a);
        if (g->whole)
            g->whole[at] = edges->weight.whole[a / fold];
        else
            g->real[at] = edges->weight.real[a / fold];
    }
#undef LW_ARC_FROM
#undef LW_ARC_TO
    /* parallel edges: the least; self-loops of weight >= 0: nothing */
    int64_t kept = 0, begin = 0;
    for (int64_t v = 0; v < g->n; v++) {
        int64_t row = kept, stop = g->start[v + 1];
        for (int64_t e = begin; e < stop; e++) {
            double w = lw_graph_weight(g, e);
            if (g->to[e] == v && w >= 0)
                continue;
            bool parallel = kept > row && g->to[kept - 1] == g->to[e];
            if (parallel && lw_graph_weight(g, kept - 1) <= w)
                continue;
            int64_t at = parallel ? kept - 1 : kept++;
            g->to[at] = g->to[e];
            if (g->whole)
                g->whole[at] = g->whole[e];
            else
                g->real[at] = g->real[e];
            g->negative = g->negative || w < 0;
        }
        begin = stop;
        g->start[v + 1] = kept;
    }
end:
    free(count);
    free(order);
    return status;
}

lw_status lw_graph_build(lw_graph **out, int64_t n, lw_edges *edges, lw_names *names, bool sorted,
                         bool undirected, int64_t base, lw_error *err)
{
    lw_status status = LW_OK;
    lw_graph *g = calloc(1, sizeof *g);
    if (!g) {
        status = lw_fail_memory(err, sizeof *g);
        goto end;
    }
    g->n = n;
    g->base = base;
    if (names) {
        g->names = *names;
        *names = (lw_names){0};
        if (sorted)
            LW_TRY_END(sort_names(&g->names, edges, err));
    }
    LW_TRY_END(fill_rows(g, edges, undirected, err));
    *out = g;
    g = NULL;
end:
    lw_edges_free(edges);
    lw_graph_free(g);
    return status;
}

void lw_graph_free(lw_graph *g)
{
    if (!g)
        return;
    free(g->start);
    free(g->to);
    free(g->whole);
    free(g->real);
    lw_names_free(&g->names);
    free(g);
}

int64_t lw_graph_vertices(const lw_graph *g)
{
    return g->n;
}

int64_t lw_graph_edges(const lw_graph *g)
{
    return g->start[g->n];
}

bool lw_graph_whole(const lw_graph *g)
{
    return g->whole != NULL;
}

bool lw_graph_named(const lw_graph *g)
{
    return g->names.n > 0;
}

const char *lw_graph_name(const lw_graph *g, int64_t vertex, char number[LW_VERTEX_NUMBER])
{
    if (g->names.n > 0)
        return lw_names_text(&g->names, vertex);
    snprintf(number, LW_VERTEX_NUMBER, "%lld", (long long)(g->base + vertex));
    return number;
}

int64_t lw_graph_find(const lw_graph *g, const char *name)
{
    if (g->names.n > 0)
        return lw_names_find(&g->names, name, strlen(name));
    int64_t value;
    if (!whole_label(name, &value) || value < g->base || value - g->base >= g->n)
        return -1;
    return value - g->base;
}
