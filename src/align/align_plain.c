/* align_plain.c - the reference's functions with the threads of the pool. */
#include "align/align_plain.h"

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

/* Reads, pairs or tasks of one piece of work. */
enum { PIECE = 16 };

typedef struct call {
    const lw_align_setup *setup;
    const lw_seqs *queries, *targets; /* targets NULL: place() */
    lw_placements *out;
    lw_hit *hits;
    int64_t n;
    const lw_trace_task *tasks; /* NULL: ends only */
    lw_path *paths;
    lw_cigars *parts;
} call;

static lw_seqs some(const lw_seqs *all, int64_t first, int64_t n)
{
    return (lw_seqs){.n = n, .codes = all->codes, .start = all->start + first, .len = all->len + first};
}

static lw_status work(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker;
    const call *c = arg;
    const int64_t first = piece * PIECE, n = c->n - first < PIECE ? c->n - first : PIECE;
    void *context;
    if (lw_stopped(c->setup->host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    LW_TRY(lw_align_scalar.open(&lw_align_scalar, &context, c->setup, err));
    lw_status status;
    if (c->tasks) {
        status = lw_align_scalar.trace(context, c->queries, c->targets, n, c->tasks + first, c->paths + first,
                                       &c->parts[piece], err);
    } else if (c->targets) {
        lw_seqs queries = some(c->queries, first, n), targets = some(c->targets, first, n);
        status = lw_align_scalar.pair_ends(context, &queries, &targets, c->hits + first, err);
        for (int64_t i = first; i < first + n && status == LW_OK; i++)
            if (c->hits[i].target >= 0)
                c->hits[i].target += (int32_t)first;
    } else {
        lw_seqs reads = some(c->queries, first, n);
        lw_placements out = {.hits = c->out->hits + first * c->setup->n_hits,
                             .ties = c->out->ties ? c->out->ties + first * c->setup->n_ties : NULL};
        status = lw_align_scalar.place(context, &reads, &out, err);
    }
    lw_align_scalar.close(context);
    return status;
}

static int64_t pieces_of(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

lw_status lw_plain_place(const lw_align_setup *setup, const lw_seqs *reads, lw_placements *out, lw_error *err)
{
    call c = {.setup = setup, .queries = reads, .out = out, .n = reads->n};
    return lw_pool_for(setup->pool, pieces_of(c.n), work, &c, err);
}

lw_status lw_plain_pair_ends(const lw_align_setup *setup, const lw_seqs *queries, const lw_seqs *targets,
                             lw_hit *hits, lw_error *err)
{
    call c = {.setup = setup, .queries = queries, .targets = targets, .hits = hits, .n = queries->n};
    return lw_pool_for(setup->pool, pieces_of(c.n), work, &c, err);
}

lw_status lw_plain_trace(const lw_align_setup *setup, const lw_seqs *queries, const lw_seqs *targets,
                         int64_t n, const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars,
                         lw_error *err)
{
    const int64_t pieces = pieces_of(n);
    call c = {.setup = setup, .queries = queries, .targets = targets, .n = n, .tasks = tasks, .paths = paths};
    if (n == 0)
        return LW_OK;
    c.parts = calloc((size_t)pieces, sizeof *c.parts);
    if (!c.parts)
        return lw_fail_memory(err, (size_t)pieces * sizeof *c.parts);
    lw_status status = lw_pool_for(setup->pool, pieces, work, &c, err);
    for (int64_t p = 0; p < pieces; p++) {
        const lw_cigars *part = &c.parts[p];
        if (status == LW_OK)
            status = lw_cigars_reserve(cigars, part->n, err);
        if (status == LW_OK) {
            if (part->n > 0)
                memcpy(cigars->op + cigars->n, part->op, (size_t)part->n * sizeof *part->op);
            for (int64_t k = p * PIECE; k < n && k < (p + 1) * PIECE; k++)
                paths[k].cigar += cigars->n;
            cigars->n += part->n;
        }
        free(part->op);
    }
    free(c.parts);
    return status;
}
