/* paths.c - the driver: proves what can be proved about the numbers, chooses type and backend, cuts the graph
 * into components where asked, runs a backend's solve(), and turns its matrix into the result. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fail.h"
#include "common/pool.h"
#include "paths/bounds.h"
#include "paths/checkpoint.h"
#include "paths/graph.h"
#include "paths/memory.h"
#include "paths/paths_backend.h"

__extension__ typedef __int128 wide; /* for sums of products of 62-bit numbers */

/* Results in int32 lie within +-(2^30 - 1). */
#define LW_RESULT_S32_MAX INT64_C(1073741823)

/* Below this many relaxations "auto" stays on the CPU: about what it does while a CUDA context is made (0.2
 * s). */
static const double small_job = 2e9;

/* A search from one vertex costs about this per edge and per vertex and level of its heap; for the hint only.
 */
static const double seconds_per_step = 8e-9;

/* Checkpoints and kernels see a graph whose weights are ready to be summed: scaled for routes, those too
 * heavy for any shortest path left out. Rows as in lw_graph. */
typedef struct arcs {
    int64_t n;
    int64_t *start;
    int32_t *to;
    void *weight; /* of the inner type */
} arcs;

/* How the numbers are run. */
typedef struct plan {
    lw_paths_type inner;
    bool whole; /* weights are integers */
    bool negative;
    int64_t low, high; /* of distances before scaling, whole weights only */
    int64_t max_weight;
    bool proved;   /* high holds; else look at the result (half rule) */
    int64_t scale; /* w -> w * scale + 1 for next hops; 1: w -> w */
    int grid;      /* weights with fractions, next hops: w -> ceil(w * 2^grid) first */
} plan;

typedef struct run {
    const lw_graph *graph;
    const lw_paths_options *options;
    lw_pool *pool;
    const lw_paths_backend *backend;
    void *context;
    lw_host host; /* the caller's, with progress of its own for components */
    plan plan;
    double *potential;   /* weights with fractions, some negative: w(u,v) + h(u) - h(v) >= 0 is run in their
                          * place; NULL otherwise */
    bool device_trouble; /* the backend could not be opened or cannot hold the job */
    lw_checkpoint checkpoint;
    lw_paths_report report;
} run;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *type_name(lw_paths_type type)
{
    static const char *const names[] = {"int32", "int64", "float32", "float64"};
    return names[type];
}

static int64_t infinity_of(lw_paths_type type)
{
    return type == LW_PATHS_S32 ? LW_PATHS_INF_S32 : LW_PATHS_INF_S64;
}

/* --- planning --------------------------------------------------------------------------------------- */

/* Whether scaled distances within [low, high] fit `type` (the rule of paths_backend.h). */
static bool fits(const plan *p, int64_t high, lw_paths_type type, int64_t hops)
{
    wide infinity = infinity_of(type), top = (wide)high * p->scale + hops;
    wide bottom = (wide)p->low * p->scale;
    return top - 2 * bottom < infinity;
}

/* Inner values above it mean "no path". Where high is proved, infinity may have sunk, but not to there; where
 * it is not, no weight is negative and infinity stayed what it was. */
static int64_t limit_of(const plan *p)
{
    return p->proved ? p->high * p->scale + p->scale - 1 : infinity_of(p->inner) - 1;
}

static lw_status refuse_sums(const plan *p, lw_error *err)
{
    if (p->scale > 1)
        return lw_fail(err, LW_E_RANGE,
                       "next hops need distance * %lld + edges, and distances from %.3g to %.3g make that "
                       "exceed 62 bits; "
                       "divide the weights by a common factor",
                       (long long)p->scale, (double)p->low, (double)p->high);
    return lw_fail(err, LW_E_RANGE,
                   "distances from %.3g to %.3g may exceed 62 bits; divide the weights by a common factor",
                   (double)p->low, (double)p->high);
}

/* The inner type for whole weights, given the facts in *p. hops: most edges of a shortest path, counted only
 * with scale. */
static lw_status choose_inner(run *r, lw_error *err)
{
    plan *p = &r->plan;
    const lw_graph *g = r->graph;
    int64_t hops = p->scale > 1 ? g->n : 0;
    p->proved = true;
    if (fits(p, p->high, LW_PATHS_S32, hops)) {
        p->inner = LW_PATHS_S32;
        return LW_OK;
    }
    if (p->high < LW_PATHS_INF_S64 && !p->negative && g->n > 0) {
        LW_TRY(lw_bound_by_search(g, &p->high, r->options->host, err));
        if (fits(p, p->high, LW_PATHS_S32, hops)) {
            p->inner = LW_PATHS_S32;
            return LW_OK;
        }
    }
    /* run and look: a shortest path of I or more has a prefix in the upper half of 0 .. I - 1 if its steps
     * fit into that half, and prefixes are entries of the matrix */
    wide step = (wide)p->max_weight * p->scale + 1;
    if (!p->negative && step <= LW_PATHS_INF_S32 / 2) {
        p->inner = LW_PATHS_S32;
        p->proved = false;
        return LW_OK;
    }
    p->inner = LW_PATHS_S64;
    if (fits(p, p->high, LW_PATHS_S64, hops))
        return LW_OK;
    return refuse_sums(p, err);
}

/* The result type, refused where weights cannot be held. */
static lw_status choose_result(const lw_graph *g, int dtype, lw_paths_type *out, lw_error *err)
{
    bool whole = g->whole != NULL;
    *out = dtype != LW_PATHS_AUTO ? (lw_paths_type)dtype : whole ? LW_PATHS_S32 : LW_PATHS_F32;
    char a[LW_VERTEX_NUMBER], b[LW_VERTEX_NUMBER];
    for (int64_t u = 0; !whole && *out != LW_PATHS_F64 && u < g->n; u++)
        for (int64_t e = g->start[u]; e < g->start[u + 1]; e++) {
            double w = g->real[e];
            if ((*out == LW_PATHS_S32 || *out == LW_PATHS_S64) && w != floor(w))
                return lw_fail(
                    err, LW_E_RANGE,
                    "edge %s -> %s weighs %.9g, which is no whole number; use --dtype float32 or float64",
                    lw_graph_name(g, u, a), lw_graph_name(g, g->to[e], b), w);
            if (*out == LW_PATHS_F32 && fabs(w) > FLT_MAX)
                return lw_fail(err, LW_E_RANGE,
                               "edge %s -> %s weighs %.9g, beyond float32; use --dtype float64",
                               lw_graph_name(g, u, a), lw_graph_name(g, g->to[e], b), w);
        }
    if (!whole && *out <= LW_PATHS_S64) /* whole, but beyond 2^53 */
        return lw_fail(err, LW_E_RANGE, "weights beyond 2^53 cannot be summed exactly; use --dtype float64");
    return LW_OK;
}

/* The backend: as named, or for auto the most wanted of those that have code for the type. */
static lw_status choose_backend(run *r, lw_paths_type type, lw_error *err)
{
    const lw_paths_options *o = r->options;
    const char *name = o->backend ? o->backend : "auto";
    const lw_backend *rows[16];
    const lw_paths_backend *row_of[16];
    int n = 0, index;
    char why[512];
    bool automatic = strcmp(name, "auto") == 0;
    double cube = (double)r->graph->n * (double)r->graph->n * (double)r->graph->n;
    for (int i = 0; i < lw_paths_backend_count; i++) {
        const lw_paths_backend *b = lw_paths_backends[i];
        bool cuda = strncmp(b->base.name, "cuda", 4) == 0;
        if ((automatic || strcmp(name, "cuda") == 0) && b->supports(b, type, NULL) != LW_OK)
            continue;
        if (automatic && cuda && cube < small_job)
            continue;
        row_of[n] = b;
        rows[n++] = &b->base;
    }
    LW_TRY(lw_backend_choose(rows, n, name, o->device, &index, why, sizeof why, err));
    LW_TRY(row_of[index]->supports(row_of[index], type, err));
    r->backend = row_of[index];
    lw_say(o->host, LW_SAY_INFO, "%s%s", why,
           automatic && cube < small_job ? " (a GPU is not looked at for so small a graph)" : "");
    return LW_OK;
}

/* The weight of edge e of u as it is run. */
static double run_weight(const run *r, int64_t u, int64_t e)
{
    const lw_graph *g = r->graph;
    double w = lw_graph_weight(g, e);
    if (r->potential) {
        w += r->potential[u] - r->potential[g->to[e]];
        w = w > 0 ? w : 0; /* less than 0 by rounding alone */
    }
    return w;
}

/* --- arcs and matrices ------------------------------------------------------------------------------ */

static void arcs_free(arcs *a)
{
    free(a->start);
    free(a->to);
    free(a->weight);
    *a = (arcs){0};
}

/* The arcs among `members` (ascending; NULL: all n), with local[] giving each vertex's number there. */
static lw_status make_arcs(const run *r, arcs *out, const int32_t *members, int64_t n, const int32_t *local,
                           lw_error *err)
{
    const lw_graph *g = r->graph;
    const plan *p = &r->plan;
    int64_t size = lw_paths_size(p->inner), m = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t u = members ? members[i] : i;
        m += g->start[u + 1] - g->start[u];
    }
    *out = (arcs){.n = n,
                  .start = malloc(((size_t)n + 1) * sizeof *out->start),
                  .to = malloc(((size_t)m + 1) * sizeof *out->to),
                  .weight = malloc(((size_t)m + 1) * (size_t)size)};
    if (!out->start || !out->to || !out->weight) {
        arcs_free(out);
        return lw_fail_memory(err, (size_t)(m * (size + 4) + n * 8));
    }
    int64_t at = 0;
    out->start[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t u = members ? members[i] : i;
        for (int64_t e = g->start[u]; e < g->start[u + 1]; e++) {
            if (p->inner == LW_PATHS_F32)
                ((float *)out->weight)[at] = (float)run_weight(r, u, e);
            else if (p->inner == LW_PATHS_F64)
                ((double *)out->weight)[at] = run_weight(r, u, e);
            else {
                int64_t w;
                if (p->whole) {
                    w = g->whole[e];
                } else { /* rounded up, so that no cycle of sum >= 0 becomes negative */
                    double d = ceil(ldexp(run_weight(r, u, e), p->grid));
                    if (d > (double)p->high)
                        continue;
                    w = (int64_t)d;
                }
                if (w > p->high) /* on no shortest path, and perhaps too large for the type */
                    continue;
                w = p->scale > 1 ? w * p->scale + 1 : w;
                if (p->inner == LW_PATHS_S32)
                    ((int32_t *)out->weight)[at] = (int32_t)w;
                else
                    ((int64_t *)out->weight)[at] = w;
            }
            out->to[at++] = local ? local[g->to[e]] : g->to[e];
        }
        out->start[i + 1] = at;
    }
    return LW_OK;
}

typedef struct fill_job {
    const arcs *arcs;
    lw_paths_type type;
    void *matrix;
} fill_job;

#define LW_FILL_ROW(T, INFINITE)                                                                             \
    do {                                                                                                     \
        T *row = (T *)f->matrix + i * n;                                                                     \
        for (int64_t j = 0; j < n; j++)                                                                      \
            row[j] = INFINITE;                                                                               \
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)                                              \
            row[a->to[e]] = ((const T *)a->weight)[e];                                                       \
        row[i] = 0;                                                                                          \
    } while (0)

/* Rows are filled in groups, so that a task is worth its dispatch. */
enum { LW_ROW_GROUP = 16 };

static lw_status fill_rows(void *arg, int64_t group, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const fill_job *f = arg;
    const arcs *a = f->arcs;
    int64_t n = a->n;
    for (int64_t i = group * LW_ROW_GROUP; i < n && i < (group + 1) * LW_ROW_GROUP; i++)
        switch (f->type) {
        case LW_PATHS_S32:
            LW_FILL_ROW(int32_t, LW_PATHS_INF_S32);
            break;
        case LW_PATHS_S64:
            LW_FILL_ROW(int64_t, LW_PATHS_INF_S64);
            break;
        case LW_PATHS_F32:
            LW_FILL_ROW(float, INFINITY);
            break;
        case LW_PATHS_F64:
            LW_FILL_ROW(double, INFINITY);
            break;
        }
    return LW_OK;
}

/* The largest finite entry of a matrix of whole non-negative distances. */
static int64_t largest_finite(const void *matrix, lw_paths_type type, int64_t count)
{
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t d = type == LW_PATHS_S32 ? ((const int32_t *)matrix)[i] : ((const int64_t *)matrix)[i];
        most = d > most && d < infinity_of(type) ? d : most;
    }
    return most;
}

/* --- from the inner matrix to the result ------------------------------------------------------------ */

typedef struct conversion {
    const plan *plan;
    lw_paths_type to;
    int64_t limit; /* inner values above it mean "no path" */
} conversion;

static int64_t floor_divide(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

/* Converts count elements; in and out may be the same if the loop never writes ahead of what it reads:
 * forwards for a narrower or equal type, backwards for a wider one. Returns the index of an element that does
 * not fit, or -1. */
static int64_t convert(const conversion *c, void *out, const void *in, int64_t count)
{
    const plan *p = c->plan;
    if (p->inner >= LW_PATHS_F32) { /* nothing to convert */
        if (out != in)
            memcpy(out, in, (size_t)(count * lw_paths_size(p->inner)));
        return -1;
    }
    bool backwards = lw_paths_size(c->to) > lw_paths_size(p->inner);
    if (p->inner == LW_PATHS_S32 && c->to == LW_PATHS_S32 && p->scale == 1) { /* the usual case, vectorised */
        const int32_t *from = in;
        int32_t *to = out, limit = (int32_t)c->limit;
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i] > limit ? INT32_MAX : from[i];
        return -1;
    }
    for (int64_t step = 0; step < count; step++) {
        int64_t i = backwards ? count - 1 - step : step;
        int64_t d = p->inner == LW_PATHS_S32 ? ((const int32_t *)in)[i] : ((const int64_t *)in)[i];
        bool reached = d <= c->limit;
        if (p->scale > 1 && reached)
            d = floor_divide(d, p->scale);
        switch (c->to) {
        case LW_PATHS_S32:
            if (reached && (d > LW_RESULT_S32_MAX || d < -LW_RESULT_S32_MAX))
                return i;
            ((int32_t *)out)[i] = reached ? (int32_t)d : INT32_MAX;
            break;
        case LW_PATHS_S64:
            ((int64_t *)out)[i] = reached ? d : INT64_MAX;
            break;
        case LW_PATHS_F32:
            ((float *)out)[i] = reached ? (float)d : INFINITY;
            break;
        case LW_PATHS_F64:
            ((double *)out)[i] = reached ? (double)d : INFINITY;
            break;
        }
    }
    return -1;
}

typedef struct convert_job {
    const conversion *c;
    char *matrix;
    int64_t n;
} convert_job;

/* Rows of one matrix in place, types of one size. A value out of range is left to the caller, who looks
 * again. */
static lw_status convert_rows(void *arg, int64_t group, int worker, lw_error *err)
{
    (void)worker;
    const convert_job *j = arg;
    int64_t first = group * LW_ROW_GROUP, rows = j->n - first < LW_ROW_GROUP ? j->n - first : LW_ROW_GROUP;
    char *at = j->matrix + first * j->n * lw_paths_size(j->c->to);
    int64_t bad = convert(j->c, at, at, rows * j->n);
    if (bad >= 0)
        return lw_fail(err, LW_E_RANGE, "%lld", (long long)(first * j->n + bad));
    return LW_OK;
}

static lw_status out_of_range(const lw_graph *g, int64_t i, int64_t j, int64_t d, lw_error *err)
{
    char a[LW_VERTEX_NUMBER], b[LW_VERTEX_NUMBER];
    return lw_fail(
        err, LW_E_RANGE, "the distance from %s to %s is %lld, beyond int32's +-%lld; use --dtype int64",
        lw_graph_name(g, i, a), lw_graph_name(g, j, b), (long long)d, (long long)LW_RESULT_S32_MAX);
}

static int64_t inner_value(const plan *p, const void *matrix, int64_t i)
{
    int64_t d = p->inner == LW_PATHS_S32 ? ((const int32_t *)matrix)[i] : ((const int64_t *)matrix)[i];
    return p->scale > 1 ? floor_divide(d, p->scale) : d;
}

/* --- solving ---------------------------------------------------------------------------------------- */

/* Solves the arcs in matrix (n * n of the inner type, filled here), next hops included; matrix is then of
 * plan.inner, which may have changed from s32 to s64 if a look at the result asked for it. *matrix is made
 * larger then. */
static lw_status solve_arcs(run *r, const int32_t *members, int64_t n, const int32_t *local, void **matrix,
                            int32_t *next, lw_error *err)
{
    plan *p = &r->plan;
    const lw_paths_options *o = r->options;
    arcs a = {0};
    lw_status status = LW_OK;
    for (;;) {
        LW_TRY(make_arcs(r, &a, members, n, local, err));
        lw_paths_job job = {.type = p->inner, .n = n, .matrix = *matrix, .ld = n, .negative = p->negative};
        if (p->inner <= LW_PATHS_S64) {
            job.low = p->low * p->scale;
            job.high = limit_of(p);
            int64_t m = a.start[n];
            for (int64_t e = 0; e < m; e++) {
                int64_t w = p->inner == LW_PATHS_S32 ? ((int32_t *)a.weight)[e] : ((int64_t *)a.weight)[e];
                job.max_weight = w > job.max_weight ? w : job.max_weight;
            }
        }
        if (next) {
            job.next = next;
            job.next_ld = n;
            job.edge_start = a.start;
            job.edge_to = a.to;
            job.edge_weight = a.weight;
        }
        fill_job fill = {.arcs = &a, .type = p->inner, .matrix = *matrix};
        if (o->checkpoint) {
            lw_checkpoint *c = &r->checkpoint;
            lw_paths_type type = p->inner;
            c->last = now();
            c->type = p->inner;
            c->n = n;
            c->matrix = *matrix;
            LW_TRY_END(lw_checkpoint_peek(c->path, c->fingerprint, n, &type, &job.k_begin, err));
            if (type != p->inner) /* of the run in 32 bits that did not suffice */
                job.k_begin = 0;
            job.checkpoint_want = lw_checkpoint_want;
            job.checkpoint_save = lw_checkpoint_save;
            job.checkpoint_user = c;
        }
        if (job.k_begin > 0) {
            LW_TRY_END(lw_checkpoint_load(&r->checkpoint, *matrix, err));
            lw_say(o->host, LW_SAY_INFO, "resumed from %s: %lld of %lld pivots are done", o->checkpoint,
                   (long long)job.k_begin, (long long)n);
        } else {
            LW_TRY_END(lw_pool_for(r->pool, (n + LW_ROW_GROUP - 1) / LW_ROW_GROUP, fill_rows, &fill, err));
        }
        LW_TRY_END(r->backend->solve(r->context, &job, &r->report, err));
        if (p->proved || p->inner != LW_PATHS_S32 ||
            largest_finite(*matrix, p->inner, n * n) <= LW_PATHS_INF_S32 / 2)
            break;
        lw_say(o->host, LW_SAY_INFO, "distances pass half of int32's range: once more with 64 bits");
        p->inner = LW_PATHS_S64;
        p->proved = true;
        if (!fits(p, p->high, p->inner, p->scale > 1 ? r->graph->n : 0)) {
            status = refuse_sums(p, err);
            goto end;
        }
        LW_TRY_END(r->backend->supports(r->backend, p->inner, err));
        void *larger = realloc(*matrix, (size_t)(n * n * 8));
        if (!larger) {
            status = lw_fail_memory(err, (size_t)(n * n * 8));
            goto end;
        }
        *matrix = larger;
        arcs_free(&a);
    }
end:
    arcs_free(&a);
    return status;
}

/* Readies the checkpoint and takes the inner type of a state saved before. */
static lw_status look_at_checkpoint(run *r, lw_paths_type result, lw_error *err)
{
    const lw_paths_options *o = r->options;
    const lw_graph *g = r->graph;
    plan *p = &r->plan;
    int64_t m = g->start[g->n], kind[2] = {p->scale, result};
    uint64_t sum = lw_checksum(0, kind, sizeof kind);
    sum = lw_checksum(sum, g->start, (g->n + 1) * 8);
    sum = lw_checksum(sum, g->to, m * 4);
    sum = lw_checksum(sum, g->whole ? (const void *)g->whole : (const void *)g->real, m * 8);
    r->checkpoint = (lw_checkpoint){
        .path = o->checkpoint, .interval = o->checkpoint_seconds, .host = o->host, .fingerprint = sum};
    lw_paths_type type = p->inner;
    int64_t k;
    LW_TRY(lw_checkpoint_peek(o->checkpoint, sum, g->n, &type, &k, err));
    LW_TRY(lw_checkpoint_try(o->checkpoint, err));
    if (type != p->inner && type == LW_PATHS_S64) { /* it had been found that 32 bits do not suffice */
        p->inner = type;
        p->proved = true;
    }
    return LW_OK;
}

/* The result of one run over the whole graph, in place. */
static lw_status solve_whole(run *r, lw_paths *out, lw_error *err)
{
    int64_t n = out->n;
    lw_paths_type to = out->type;
    LW_TRY(solve_arcs(r, NULL, n, NULL, &out->distance, out->next, err));
    if (n == 0)
        return LW_OK;
    conversion c = {.plan = &r->plan, .to = to, .limit = limit_of(&r->plan)};
    int64_t bad = -1;
    if (lw_paths_size(to) == lw_paths_size(r->plan.inner)) {
        convert_job j = {.c = &c, .matrix = out->distance, .n = n};
        lw_error where = {0};
        lw_status status =
            lw_pool_for(r->pool, (n + LW_ROW_GROUP - 1) / LW_ROW_GROUP, convert_rows, &j, &where);
        if (status == LW_E_RANGE)
            bad = strtoll(where.message, NULL, 10);
        else if (status != LW_OK)
            return lw_fail(err, status, "%s", where.message);
    } else {
        bad = convert(&c, out->distance, out->distance, n * n);
    }
    if (bad >= 0)
        return out_of_range(r->graph, bad / n, bad % n, inner_value(&r->plan, out->distance, bad), err);
    return LW_OK;
}

/* The result of one run per component. */
static lw_status solve_components(run *r, lw_paths *out, lw_error *err)
{
    int64_t n = out->n, count, size = lw_paths_size(out->type);
    lw_status status = LW_OK;
    int32_t *component = malloc(((size_t)n + 1) * sizeof *component);
    int32_t *members = malloc(((size_t)n + 1) * sizeof *members),
            *local = malloc(((size_t)n + 1) * sizeof *local);
    int64_t *first = NULL;
    void *piece = NULL, *row = NULL;
    int32_t *piece_next = NULL;
    lw_host host = r->host;
    if (!component || !members || !local) {
        status = lw_fail_memory(err, (size_t)n * 12);
        goto end;
    }
    LW_TRY_END(lw_find_components(r->graph, component, &count, err));
    first = calloc((size_t)count + 2, sizeof *first);
    row = malloc((size_t)(n * size) + 8);
    if (!first || !row) {
        status = lw_fail_memory(err, (size_t)(count * 8 + n * size));
        goto end;
    }
    for (int64_t v = 0; v < n; v++)
        first[component[v] + 2]++;
    for (int64_t c = 0; c < count; c++)
        first[c + 2] += first[c + 1];
    for (int64_t v = 0; v < n; v++) /* first[c + 1] ends where component c + 1 begins */
        members[first[component[v] + 1]++] = (int32_t)v;
    int64_t largest = 0;
    for (int64_t c = 0; c < count; c++)
        for (int64_t at = first[c]; at < first[c + 1]; at++)
            local[members[at]] = (int32_t)(at - first[c]);
    for (int64_t c = 0; c < count; c++)
        largest = first[c + 1] - first[c] > largest ? first[c + 1] - first[c] : largest;
    lw_say(host.say ? &host : NULL, LW_SAY_INFO, "%lld connected components, the largest of %lld vertices",
           (long long)count, (long long)largest);
    for (int64_t i = 0; i < n; i++) /* nothing between components */
        for (int64_t j = 0; j < n; j++)
            switch (out->type) {
            case LW_PATHS_S32:
                ((int32_t *)out->distance)[i * n + j] = INT32_MAX;
                break;
            case LW_PATHS_S64:
                ((int64_t *)out->distance)[i * n + j] = INT64_MAX;
                break;
            case LW_PATHS_F32:
                ((float *)out->distance)[i * n + j] = INFINITY;
                break;
            case LW_PATHS_F64:
                ((double *)out->distance)[i * n + j] = INFINITY;
                break;
            }
    if (out->next)
        memset(out->next, 0xFF, (size_t)(n * n) * sizeof *out->next);
    for (int64_t c = 0; c < count; c++) {
        const int32_t *m = members + first[c];
        int64_t k = first[c + 1] - first[c];
        piece = malloc((size_t)(k * k * lw_paths_size(r->plan.inner)));
        piece_next = out->next ? malloc((size_t)(k * k) * sizeof *piece_next) : NULL;
        if (!piece || (out->next && !piece_next)) {
            status = lw_fail_memory(err, (size_t)(k * k * 12));
            goto end;
        }
        LW_TRY_END(solve_arcs(r, m, k, local, &piece, piece_next, err));
        conversion conv = {.plan = &r->plan, .to = out->type, .limit = limit_of(&r->plan)};
        for (int64_t i = 0; i < k; i++) {
            const char *in = (const char *)piece + i * k * lw_paths_size(r->plan.inner);
            int64_t bad = convert(&conv, row, in, k);
            if (bad >= 0) {
                status = out_of_range(r->graph, m[i], m[bad], inner_value(&r->plan, in, bad), err);
                goto end;
            }
            for (int64_t j = 0; j < k; j++) {
                int64_t at = m[i] * n + m[j];
                memcpy((char *)out->distance + at * size, (char *)row + j * size, (size_t)size);
                if (out->next)
                    out->next[at] = piece_next[i * k + j] < 0 ? -1 : m[piece_next[i * k + j]];
            }
        }
        free(piece);
        free(piece_next);
        piece = NULL;
        piece_next = NULL;
        if (host.progress)
            host.progress(host.user, (double)first[c + 1], (double)n, r->report.relaxations);
    }
end:
    free(component);
    free(members);
    free(local);
    free(first);
    free(row);
    free(piece);
    free(piece_next);
    return status;
}

/* Next hops of a graph whose weights have fractions: its distances are there already; one more run, on the
 * weights rounded up to a grid of 2^-grid, finds the hops. */
static lw_status solve_grid_hops(run *r, lw_paths *out, lw_error *err)
{
    int64_t n = out->n;
    plan *p = &r->plan;
    /* what is run has no negative weights; the largest distance, doubled for the rounding of its computation
     * and of the grid */
    double reach = 0;
    for (int64_t i = 0; i < n * n; i++) {
        double d =
            out->type == LW_PATHS_F32 ? (double)((float *)out->distance)[i] : ((double *)out->distance)[i];
        reach = !isinf(d) && d > reach ? d : reach;
    }
    reach *= 2;
    *p = (plan){.inner = LW_PATHS_S64, .proved = true, .scale = n + 1};
    /* (high - 2 low) * scale + hops < 2^62 - 1: with high = -low = 2^limit, 3 * 2^limit * 2^bits(scale) <=
     * 2^61 */
    int bits = 0;
    while ((INT64_C(1) << bits) <= n + 1)
        bits++;
    int exponent = 0;
    frexp(reach, &exponent); /* reach < 2^exponent */
    p->grid = reach > 0 ? 60 - bits - exponent : 0;
    p->high = INT64_C(1) << (60 - bits);
    lw_paths hops = {.n = n, .type = LW_PATHS_S64, .next = out->next};
    hops.distance = malloc((size_t)(n * n * 8) + 8);
    if (!hops.distance)
        return lw_fail_memory(err, (size_t)(n * n * 8));
    lw_status status = r->options->components ? solve_components(r, &hops, err) : solve_whole(r, &hops, err);
    free(hops.distance);
    return status;
}

/* d'(i,j) = d(i,j) + h(i) - h(j) back to d(i,j). */
static void undo_potential(const run *r, lw_paths *out)
{
    const double *h = r->potential;
    for (int64_t i = 0; i < out->n; i++)
        for (int64_t j = 0; j < out->n; j++) {
            int64_t at = i * out->n + j;
            if (i == j)
                continue;
            if (out->type == LW_PATHS_F32)
                ((float *)out->distance)[at] = (float)((double)((float *)out->distance)[at] - h[i] + h[j]);
            else
                ((double *)out->distance)[at] += h[j] - h[i];
        }
}

/* Says what the job will need, and refuses what will not do. */
static lw_status announce(run *r, const lw_paths *out, bool two_runs, lw_error *err)
{
    const lw_paths_options *o = r->options;
    const lw_graph *g = r->graph;
    double n = (double)out->n, m = (double)g->start[out->n];
    int64_t size = lw_paths_size(r->plan.inner) > lw_paths_size(out->type) ? lw_paths_size(r->plan.inner)
                                                                           : lw_paths_size(out->type);
    double bytes = n * n * (double)size + m * (4 + (double)lw_paths_size(r->plan.inner));
    if (o->next)
        bytes += n * n * 4;
    if (two_runs)
        bytes += n * n * 8;
    int32_t wanted;
    lw_paths_job job = {.type = r->plan.inner,
                        .n = out->n,
                        .ld = out->n,
                        .negative = r->plan.negative,
                        .high = r->plan.inner <= LW_PATHS_S64 ? limit_of(&r->plan) : 0,
                        .max_weight = r->plan.max_weight,
                        .next = o->next ? &wanted : NULL};
    lw_paths_estimate e = {0};
    r->device_trouble = true; /* until the backend has agreed */
    LW_TRY(r->backend->estimate(r->context, &job, &e, err));
    r->device_trouble = false;
    bytes += (double)e.host_bytes;
    double available = (double)lw_memory_available(), gib = 1073741824.0;
    char device[64] = "";
    if (e.device_bytes > 0)
        snprintf(device, sizeof device, " and %.2f GiB of device memory", (double)e.device_bytes / gib);
    if (available >= 0 && bytes > available && !o->force)
        return lw_fail(err, LW_E_NOMEM,
                       "%lld vertices need %.2f GiB of memory and %.2f GiB are free; use a machine with "
                       "more, --components, a "
                       "narrower --dtype, or --force to try all the same",
                       (long long)out->n, bytes / gib, available / gib);
    /* a long or large job says so unasked */
    int level = e.seconds > 60 || (available >= 0 && bytes > available / 2) ? LW_SAY_WARNING : LW_SAY_INFO;
    lw_say(o->host, level,
           "%lld vertices, %lld edges: needs %.2f GiB of memory%s and about %.3g s on %s in %s",
           (long long)out->n, (long long)g->start[out->n], bytes / gib, device,
           e.seconds * (two_runs ? 3 : 1), r->backend->base.name, type_name(r->plan.inner));
    double searches = n * (m + n * log2(n + 2)) * seconds_per_step / lw_pool_threads(r->pool);
    if (e.seconds > 1 && searches < e.seconds / 2 && !r->plan.negative)
        lw_say(o->host, LW_SAY_INFO,
               "the graph is sparse: a search from every vertex would take about %.3g s on %d threads "
               "instead of %.3g s",
               searches, lw_pool_threads(r->pool), e.seconds);
    return LW_OK;
}

/* Opens the backend and announces the job. Where auto's GPU turns out not to do, it is the CPU, with a
 * warning. */
static lw_status open_backend(run *r, const lw_paths_setup *setup, const lw_paths *out, bool two_runs,
                              lw_error *err)
{
    const char *name = r->options->backend;
    bool may_fall_back =
        (!name || strcmp(name, "auto") == 0) && strncmp(r->backend->base.name, "cuda", 4) == 0;
    lw_error reason = {0};
    r->device_trouble = true;
    lw_status status = r->backend->open(r->backend, &r->context, setup, &reason);
    if (status == LW_OK)
        status = announce(r, out, two_runs, &reason);
    if (status == LW_OK || !may_fall_back || !r->device_trouble)
        return status == LW_OK ? LW_OK : lw_fail(err, status, "%s", reason.message);
    lw_say(r->options->host, LW_SAY_WARNING, "%s cannot run this (%s); the CPU does it instead",
           r->backend->base.name, reason.message);
    r->backend->close(r->context);
    r->context = NULL;
    r->backend = &lw_paths_cpu;
    LW_TRY(r->backend->open(r->backend, &r->context, setup, err));
    return announce(r, out, two_runs, err);
}

static void find_facts(const lw_graph *g, plan *p)
{
    p->whole = g->whole != NULL;
    p->negative = g->negative;
    for (int64_t e = 0; g->whole && e < g->start[g->n]; e++)
        p->max_weight = g->whole[e] > p->max_weight ? g->whole[e] : p->max_weight;
}

lw_status lw_paths_solve(lw_paths *out, const lw_graph *g, const lw_paths_options *o, lw_error *err)
{
    lw_status status = LW_OK;
    run r = {.graph = g, .options = o, .plan = {.scale = 1}};
    plan *p = &r.plan;
    bool two_runs = o->next && !g->whole;
    r.host = o->host ? *o->host : (lw_host){0};
    *out = (lw_paths){.n = g->n};
    if (o->checkpoint && (o->components || two_runs))
        return lw_fail(
            err, LW_E_ARG,
            "a checkpoint holds one matrix, so it goes neither with --components nor with next hops "
            "of weights that have fractions");
    LW_TRY(choose_result(g, o->dtype, &out->type, err));
    LW_TRY_END(lw_pool_open(&r.pool, o->threads, err));
    find_facts(g, p);
    if (p->negative) {
        r.potential = p->whole ? NULL : malloc((size_t)g->n * sizeof *r.potential);
        if (!p->whole && !r.potential) {
            status = lw_fail_memory(err, (size_t)g->n * sizeof *r.potential);
            goto end;
        }
        LW_TRY_END(lw_find_negative_cycle(g, &p->low, r.potential, o->host, err));
        p->negative = p->whole;
    }
    if (p->whole) {
        p->high = lw_bound_by_sum(g);
        p->scale = o->next ? g->n + 1 : 1;
        LW_TRY_END(choose_inner(&r, err));
    } else {
        p->inner = out->type;
        p->proved = true;
    }
    if (o->checkpoint)
        LW_TRY_END(look_at_checkpoint(&r, out->type, err));
    LW_TRY_END(choose_backend(&r, p->inner, err));
    if (two_runs)
        LW_TRY_END(r.backend->supports(r.backend, LW_PATHS_S64, err));
    lw_host quiet = r.host; /* components: progress is counted over all of them */
    quiet.progress = NULL;
    lw_paths_setup setup = {.pool = r.pool,
                            .device = o->device,
                            .device_bytes = o->device_bytes,
                            .host = o->components ? &quiet : o->host};
    LW_TRY_END(open_backend(&r, &setup, out, two_runs, err));
    int64_t size = lw_paths_size(p->inner) > lw_paths_size(out->type) ? lw_paths_size(p->inner)
                                                                      : lw_paths_size(out->type);
    out->distance = malloc((size_t)(g->n * g->n * size) + 8);
    out->next = o->next ? malloc((size_t)(g->n * g->n) * sizeof *out->next + 8) : NULL;
    if (!out->distance || (o->next && !out->next)) {
        status = lw_fail_memory(err, (size_t)(g->n * g->n * size));
        goto end;
    }
    int32_t *next = out->next;
    if (two_runs)
        out->next = NULL;
    status = o->components ? solve_components(&r, out, err) : solve_whole(&r, out, err);
    out->next = next;
    if (status == LW_OK && two_runs)
        status = solve_grid_hops(&r, out, err);
    if (status == LW_OK && r.potential)
        undo_potential(&r, out);
    if (status != LW_OK)
        goto end;
    if (o->checkpoint)
        remove(o->checkpoint); /* done: nothing to resume */
    snprintf(out->backend, sizeof out->backend, "%s", r.backend->base.name);
    snprintf(out->how, sizeof out->how, "%s inside, %s", type_name(p->inner), r.report.how);
    lw_say(o->host, LW_SAY_INFO, "%s: %.3f s in the kernel, %.4g relaxations/s", out->how,
           r.report.kernel_seconds,
           r.report.kernel_seconds > 0 ? r.report.relaxations / r.report.kernel_seconds : 0.0);
    out->kernel_seconds = r.report.kernel_seconds;
    out->relaxations = r.report.relaxations;
end:
    if (r.backend)
        r.backend->close(r.context);
    lw_pool_close(r.pool);
    free(r.potential);
    if (status != LW_OK)
        lw_paths_free(out);
    return status;
}

/* --- results ---------------------------------------------------------------------------------------- */

void lw_paths_free(lw_paths *paths)
{
    if (!paths)
        return;
    free(paths->distance);
    free(paths->next);
    paths->distance = NULL;
    paths->next = NULL;
}

bool lw_paths_reached(const lw_paths *p, int64_t i, int64_t j)
{
    int64_t at = i * p->n + j;
    switch (p->type) {
    case LW_PATHS_S32:
        return ((const int32_t *)p->distance)[at] != INT32_MAX;
    case LW_PATHS_S64:
        return ((const int64_t *)p->distance)[at] != INT64_MAX;
    case LW_PATHS_F32:
        return !isinf(((const float *)p->distance)[at]);
    default:
        return !isinf(((const double *)p->distance)[at]);
    }
}

/* The shortest of the two usual precisions that reads back the same. */
static int float_text(double value, bool single, char text[LW_DISTANCE_TEXT])
{
    int low = single ? 6 : 15, high = single ? 9 : 17, length = 0;
    for (int digits = low; digits <= high; digits++) {
        length = snprintf(text, LW_DISTANCE_TEXT, "%.*g", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            break;
    }
    return length;
}

int lw_paths_text(const lw_paths *p, int64_t i, int64_t j, char text[LW_DISTANCE_TEXT])
{
    int64_t at = i * p->n + j;
    if (!lw_paths_reached(p, i, j))
        return snprintf(text, LW_DISTANCE_TEXT, "inf");
    if (p->type == LW_PATHS_F32)
        return float_text((double)((const float *)p->distance)[at], true, text);
    if (p->type == LW_PATHS_F64)
        return float_text(((const double *)p->distance)[at], false, text);
    int64_t d =
        p->type == LW_PATHS_S32 ? ((const int32_t *)p->distance)[at] : ((const int64_t *)p->distance)[at];
    char digits[24];
    int n = 0, length = 0;
    uint64_t rest = d < 0 ? -(uint64_t)d : (uint64_t)d;
    do
        digits[n++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (d < 0)
        text[length++] = '-';
    while (n > 0)
        text[length++] = digits[--n];
    text[length] = '\0';
    return length;
}
