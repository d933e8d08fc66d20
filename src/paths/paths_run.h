/* paths_run.h - one call of lw_paths_solve() on its way: what paths.c chose, and the runs of paths_run.c. */
#ifndef LW_PATHS_RUN_H
#define LW_PATHS_RUN_H

#include "common/pool.h"
#include "paths/checkpoint.h"
#include "paths/paths_plan.h"

typedef struct lw_run {
    const lw_graph *graph;
    const lw_paths_options *options;
    lw_pool *pool;
    const lw_paths_backend *backend;
    void *context;
    lw_host host; /* the caller's, with progress of its own for components */
    lw_plan plan;
    double *potential;   /* weights with fractions, some negative: w(u,v) + h(u) - h(v) >= 0 is run in their
                          * place; NULL otherwise */
    bool device_trouble; /* the backend could not be opened or cannot hold the job */
    lw_checkpoint checkpoint;
    lw_paths_report report;
} lw_run;

/* Readies the checkpoint and takes the inner type of a state saved before. LW_E_IO where it cannot be
 * written. */
lw_status lw_run_checkpoint(lw_run *run, lw_paths_type result, lw_error *err);
/* The result of one run over the whole graph, or of one run per component, next hops included where out->next
 * is set. */
lw_status lw_run_whole(lw_run *run, lw_paths *out, lw_error *err);
lw_status lw_run_components(lw_run *run, lw_paths *out, lw_error *err);
/* Next hops of a graph whose weights have fractions, after its distances: one more run, on the weights
 * rounded up to a grid of 2^-grid. */
lw_status lw_run_grid_hops(lw_run *run, lw_paths *out, lw_error *err);
/* d'(i,j) = d(i,j) + h(i) - h(j) back to d(i,j). */
void lw_run_undo_potential(const lw_run *run, lw_paths *out);

#endif
