/* paths.c - the driver: proves what can be proved about the numbers (paths_plan.c), chooses the backend, says
 * what the job needs, and lets it run (paths_run.c). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/pool.h"
#include "paths/bounds.h"
#include "paths/memory.h"
#include "paths/paths_run.h"

/* Below this many relaxations "auto" stays on the CPU: about what it does while a CUDA context is made (0.2
 * s). */
static const double small_job = 2e9;

/* A search from one vertex costs about this per edge and per vertex and level of its heap; for the hint only.
 */
static const double seconds_per_step = 8e-9;

/* The backend: as named, or for auto the most wanted of those that have code for the type. */
static lw_status choose_backend(lw_run *r, lw_paths_type type, lw_error *err)
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

/* Says what the job will need, and refuses what will not do. */
static lw_status announce(lw_run *r, const lw_paths *out, bool two_runs, lw_error *err)
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
                        .high = r->plan.inner <= LW_PATHS_S64 ? lw_plan_limit(&r->plan) : 0,
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
           e.seconds * (two_runs ? 3 : 1), r->backend->base.name, lw_paths_type_name(r->plan.inner));
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
static lw_status open_backend(lw_run *r, const lw_paths_setup *setup, const lw_paths *out, bool two_runs,
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

lw_status lw_paths_solve(lw_paths *out, const lw_graph *g, const lw_paths_options *o, lw_error *err)
{
    lw_status status = LW_OK;
    lw_run r = {.graph = g, .options = o, .plan = {.scale = 1}};
    lw_plan *p = &r.plan;
    bool two_runs = o->next && !g->whole;
    r.host = o->host ? *o->host : (lw_host){0};
    *out = (lw_paths){.n = g->n};
    if (o->checkpoint && (o->components || two_runs))
        return lw_fail(
            err, LW_E_ARG,
            "a checkpoint holds one matrix, so it goes neither with --components nor with next hops "
            "of weights that have fractions");
    LW_TRY(lw_plan_result(g, o->dtype, &out->type, err));
    LW_TRY_END(lw_pool_open(&r.pool, o->threads, err));
    lw_plan_facts(g, p);
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
        LW_TRY_END(lw_plan_inner(p, g, o->host, err));
    } else {
        p->inner = out->type;
        p->proved = true;
    }
    if (o->checkpoint)
        LW_TRY_END(lw_run_checkpoint(&r, out->type, err));
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
    status = o->components ? lw_run_components(&r, out, err) : lw_run_whole(&r, out, err);
    out->next = next;
    if (status == LW_OK && two_runs)
        status = lw_run_grid_hops(&r, out, err);
    if (status == LW_OK && r.potential)
        lw_run_undo_potential(&r, out);
    if (status != LW_OK)
        goto end;
    if (o->checkpoint)
        remove(o->checkpoint); /* done: nothing to resume */
    snprintf(out->backend, sizeof out->backend, "%s", r.backend->base.name);
    snprintf(out->how, sizeof out->how, "%s inside, %s", lw_paths_type_name(p->inner), r.report.how);
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
