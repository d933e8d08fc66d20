/* bounds.c - negative cycles, bounds on distances, components. */
#include "paths/bounds.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

/* --- negative cycles -------------------------------------------------------------------------------- */

typedef struct search {
    const lw_graph *graph;
    int64_t
        *whole; /* tentative distances, for whole weights; |values| < n * 2^53 may pass int64: see relax() */
    double *real;
    int64_t *edge;    /* by which v was reached last; -1: none */
    int32_t *from;    /* start of that edge */
    uint8_t *waiting; /* v improved in this pass and was not looked at since */
} search;

/* A shorter way to v over edge e of u. Whole distances go down to -(n - 1) * 2^53 at most before a negative
 * cycle closes, but far sooner the predecessors show it; those beyond -2^62 are left alone, since then the
 * walk to v has more than 2^9 edges of weight near -2^53 and the driver refuses the graph anyway. Rounding
 * alone must not make a cycle: a gain in floats counts only above the rounding of the sum. */
static bool relax(search *s, int64_t u, int64_t e)
{
    const lw_graph *g = s->graph;
    int32_t v = g->to[e];
    if (g->whole) {
        int64_t d = s->whole[u] + g->whole[e];
        if (d >= s->whole[v] || d < -(INT64_C(1) << 62))
            return false;
        s->whole[v] = d;
    } else {
        double d = s->real[u] + g->real[e];
        if (d >= s->real[v] - 4 * DBL_EPSILON * (fabs(s->real[u]) + fabs(g->real[e])))
            return false;
        s->real[v] = d;
    }
    s->edge[v] = e;
    s->from[v] = (int32_t)u;
    return true;
}

/* A vertex on a cycle of the predecessor graph, or -1. mark: scratch, n. */
static int64_t find_cycle(const search *s, int32_t *mark)
{
    int64_t n = s->graph->n;
    memset(mark, 0xFF, (size_t)n * sizeof *mark);
    for (int64_t root = 0; root < n; root++) {
        int64_t v = root;
        while (mark[v] < 0) {
            mark[v] = (int32_t)root;
            if (s->edge[v] < 0)
                break;
            v = s->from[v];
        }
        if (mark[v] == (int32_t)root && s->edge[v] >= 0)
            return v;
    }
    return -1;
}

/* "a -> b -> a", from the cycle's smallest vertex, the middle left out where the message would not hold it.
 */
static lw_status report_cycle(const search *s, int64_t on, lw_error *err)
{
    const lw_graph *g = s->graph;
    int64_t length = 0, first = on;
    int64_t whole = 0;
    double real = 0;
    for (int64_t v = on;;) {
        whole += g->whole ? g->whole[s->edge[v]] : 0;
        real += lw_graph_weight(g, s->edge[v]);
        first = v < first ? v : first;
        length++;
        v = s->from[v];
        if (v == on)
            break;
    }
    int32_t *cycle = malloc((size_t)(length + 1) * sizeof *cycle);
    if (!cycle)
        return lw_fail_memory(err, (size_t)length * sizeof *cycle);
    int64_t at = length; /* the predecessors lead backwards */
    int64_t v = first;
    do {
        cycle[at--] = (int32_t)v;
        v = s->from[v];
    } while (v != first);
    cycle[0] = (int32_t)first;
    char text[760], number[LW_VERTEX_NUMBER];
    size_t used = 0;
    for (int64_t i = 0; i <= length; i++) {
        bool tail = i >= length - 1; /* the last two are always shown */
        if (!tail && used > 500) {
            used += (size_t)snprintf(text + used, sizeof text - used, " -> ... %lld more ...",
                                     (long long)(length - 1 - i));
            i = length - 2;
            continue;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.60s", i ? " -> " : "",
                                 lw_graph_name(g, cycle[i], number));
    }
    free(cycle);
    if (g->whole)
        return lw_fail(err, LW_E_INPUT,
                       "negative cycle of %lld edges and sum %lld, so distances have no minimum: %s",
                       (long long)length, (long long)whole, text);
    return lw_fail(err, LW_E_INPUT,
                   "negative cycle of %lld edges and sum %.9g, so distances have no minimum: %s",
                   (long long)length, real, text);
}

lw_status lw_find_negative_cycle(const lw_graph *g, int64_t *least, double *potential, const lw_host *host,
                                 lw_error *err)
{
    size_t n = (size_t)g->n;
    lw_status status = LW_OK;
    search s = {.graph = g,
                .whole = g->whole ? calloc(n + 1, sizeof *s.whole) : NULL,
                .real = g->whole ? NULL : calloc(n + 1, sizeof *s.real),
                .edge = malloc((n + 1) * sizeof *s.edge),
                .from = malloc((n + 1) * sizeof *s.from),
                .waiting = malloc(n + 1)};
    int32_t *mark = malloc((n + 1) * sizeof *mark);
    if ((!s.whole && !s.real) || !s.edge || !s.from || !s.waiting || !mark) {
        status = lw_fail_memory(err, n * 32);
        goto end;
    }
    memset(s.edge, 0xFF, n * sizeof *s.edge);
    memset(s.waiting, 1, n);
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t u = 0; u < g->n; u++) {
            if (!s.waiting[u])
                continue;
            s.waiting[u] = 0;
            for (int64_t e = g->start[u]; e < g->start[u + 1]; e++)
                if (relax(&s, u, e)) {
                    s.waiting[g->to[e]] = 1;
                    changed = true;
                }
        }
        int64_t on = changed ? find_cycle(&s, mark) : -1;
        if (on >= 0) {
            status = report_cycle(&s, on, err);
            goto end;
        }
        if (lw_stopped(host)) {
            status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
            goto end;
        }
    }
    *least = 0;
    for (size_t v = 0; g->whole && v < n; v++)
        *least = s.whole[v] < *least ? s.whole[v] : *least;
    for (size_t v = 0; !g->whole && v < n; v++)
        potential[v] = s.real[v];
end:
    free(s.whole);
    free(s.real);
    free(s.edge);
    free(s.from);
    free(s.waiting);
    free(mark);
    return status;
}

/* --- bounds ----------------------------------------------------------------------------------------- */

int64_t lw_bound_by_sum(const lw_graph *g)
{
    int64_t sum = 0;
    for (int64_t v = 0; v < g->n; v++) {
        int64_t heaviest = 0;
        for (int64_t e = g->start[v]; e < g->start[v + 1]; e++)
            heaviest = g->whole[e] > heaviest ? g->whole[e] : heaviest;
        if (__builtin_add_overflow(sum, heaviest, &sum))
            return INT64_MAX;
    }
    return sum;
}

typedef struct entry {
    int64_t distance;
    int32_t vertex;
} entry;

/* A binary heap; entries that were overtaken stay and are skipped. */
static void heap_push(entry *heap, int64_t *n, entry x)
{
    int64_t i = (*n)++;
    for (; i > 0 && heap[(i - 1) / 2].distance > x.distance; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

static entry heap_pop(entry *heap, int64_t *n)
{
    entry top = heap[0], x = heap[--*n];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= *n)
            break;
        child += child + 1 < *n && heap[child + 1].distance < heap[child].distance;
        if (heap[child].distance >= x.distance)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = x;
    return top;
}

/* Dijkstra from r along compressed rows: distances of what it reaches go to d[] (INT64_MAX before), and the
 * largest is returned; *reached counts them. heap has room for m + 1 entries. */
static int64_t eccentricity(int64_t r, const int64_t *start, const int32_t *to, const int64_t *weight,
                            int64_t *d, entry *heap, int64_t *reached)
{
    int64_t size = 0, farthest = 0;
    *reached = 0;
    d[r] = 0;
    heap_push(heap, &size, (entry){0, (int32_t)r});
    while (size > 0) {
        entry x = heap_pop(heap, &size);
        if (x.distance > d[x.vertex])
            continue;
        ++*reached;
        farthest = x.distance;
        for (int64_t e = start[x.vertex]; e < start[x.vertex + 1]; e++) {
            int64_t next = x.distance + weight[e]; /* below 2^31 * 2^53: the caller has checked the sum */
            if (next < d[to[e]]) {
                d[to[e]] = next;
                heap_push(heap, &size, (entry){next, to[e]});
            }
        }
    }
    return farthest;
}

lw_status lw_bound_by_search(const lw_graph *g, int64_t *bound, const lw_host *host, lw_error *err)
{
    size_t n = (size_t)g->n, m = (size_t)g->start[g->n];
    lw_status status = LW_OK;
    int32_t *component = malloc((n + 1) * sizeof *component), *root = malloc((n + 1) * sizeof *root);
    int64_t *size = calloc(n + 1, sizeof *size), *d = malloc((n + 1) * sizeof *d);
    int64_t *start = calloc(n + 2, sizeof *start), *weight = malloc((m + 1) * sizeof *weight);
    int32_t *from = malloc((m + 1) * sizeof *from);
    entry *heap = malloc((m + n + 1) * sizeof *heap);
    int64_t count, farthest[2] = {0, 0}; /* out of the roots, into them */
    if (!component || !root || !size || !d || !start || !weight || !from || !heap) {
        status = lw_fail_memory(err, n * 32 + m * 28);
        goto end;
    }
    LW_TRY_END(lw_find_components(g, component, &count, err));
    /* the arcs turned round: start[v + 1] is where the next arc into v goes while they are filled in */
    for (size_t e = 0; e < m; e++)
        start[g->to[e] + 2]++;
    for (size_t v = 0; v < n; v++)
        start[v + 2] += start[v + 1];
    for (int64_t u = 0; u < g->n; u++)
        for (int64_t e = g->start[u]; e < g->start[u + 1]; e++) {
            int64_t at = start[g->to[e] + 1]++;
            from[at] = (int32_t)u;
            weight[at] = g->whole[e];
        }
    /* from the vertex of most arcs, which tends to lie in the middle */
    for (int64_t c = 0; c < count; c++)
        root[c] = -1;
    for (int64_t v = 0; v < g->n; v++) {
        int32_t c = component[v];
        size[c]++;
        if (root[c] < 0 || g->start[v + 1] - g->start[v] > g->start[root[c] + 1] - g->start[root[c]])
            root[c] = (int32_t)v;
    }
    for (int direction = 0; direction < 2; direction++) {
        for (size_t v = 0; v < n; v++)
            d[v] = INT64_MAX;
        for (int64_t c = 0; c < count; c++) {
            int64_t reached, far;
            if (direction == 0)
                far = eccentricity(root[c], g->start, g->to, g->whole, d, heap, &reached);
            else
                far = eccentricity(root[c], start, from, weight, d, heap, &reached);
            if (reached != size[c] || lw_stopped(host))
                goto end; /* not strongly connected: nothing is proved */
            farthest[direction] = far > farthest[direction] ? far : farthest[direction];
        }
    }
    /* the longest way out plus the longest way in over all components is never less than those of one */
    if (farthest[0] + farthest[1] < *bound)
        *bound = farthest[0] + farthest[1];
end:
    free(component);
    free(root);
    free(size);
    free(d);
    free(start);
    free(weight);
    free(from);
    free(heap);
    return status;
}

/* --- components ------------------------------------------------------------------------------------- */

static int32_t find_root(int32_t *parent, int32_t v)
{
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

lw_status lw_find_components(const lw_graph *g, int32_t *component, int64_t *count, lw_error *err)
{
    int32_t *parent = malloc(((size_t)g->n + 1) * sizeof *parent);
    if (!parent)
        return lw_fail_memory(err, (size_t)g->n * sizeof *parent);
    for (int64_t v = 0; v < g->n; v++)
        parent[v] = (int32_t)v;
    for (int64_t u = 0; u < g->n; u++)
        for (int64_t e = g->start[u]; e < g->start[u + 1]; e++) {
            int32_t a = find_root(parent, (int32_t)u), b = find_root(parent, g->to[e]);
            if (a < b) /* the smallest vertex is the root */
                parent[b] = a;
            else
                parent[a] = b;
        }
    *count = 0;
    for (int64_t v = 0; v < g->n; v++) {
        int32_t r = find_root(parent, (int32_t)v);
        component[v] = r == v ? (int32_t)(*count)++ : component[r];
    }
    free(parent);
    return LW_OK;
}
