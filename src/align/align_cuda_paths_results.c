/* align_cuda_paths_results.c - what comes back of a batch: hits and paths for the caller, and the jobs whose
 * bands proved nothing. */
#include <string.h>

#include "align/align_band.h"
#include "align/align_cuda_paths.h"

enum { UNPACK_JOBS = 1 << 11 };

typedef struct unpack_call {
    lw_paths *p;
    const stage *s;
    const lw_path_result *results;
    const uint32_t *ops;
    int64_t base, n_ops;
    int64_t pieces;
} unpack_call;

static lw_status unpack(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker;
    const unpack_call *call = (const unpack_call *)arg;
    lw_paths *p = call->p;
    const stage *s = call->s;
    const int64_t from = call->n_ops * piece / call->pieces, until = call->n_ops * (piece + 1) / call->pieces;
    if (until > from)
        memcpy(p->cigars->op + call->base + from, call->ops + from, (size_t)(until - from) * 4);
    const int64_t to = min64((piece + 1) * UNPACK_JOBS, s->n);
    const int32_t least = p->by.setup->min_score;
    for (int64_t k = piece * UNPACK_JOBS; k < to; k++) {
        const int64_t i = job_number(p, s->first + k);
        const lw_path_result *r = &call->results[k];
        lw_path path = {r->qstart, r->tstart, call->base + r->ops, r->n_ops};
        if (r->n_ops < 0) { /* once more, in the band that this score proves */
            int32_t qlen, tlen;
            lengths_of(p, i, &qlen, &tlen);
            ((int32_t *)p->excess.at)[i] = lw_paths_worth_trying(
                p, qlen, tlen, lw_band_excess(p->by.setup->scoring, p->by.setup->mode, qlen, tlen, r->score),
                0);
            continue;
        }
        if (p->tasks) {
            if (r->score != p->tasks[i].score)
                return lw_fail(err, LW_E_INTERNAL, "a traced alignment scores %d, its search said %d",
                               r->score, p->tasks[i].score);
            path.tstart += p->tasks[i].tbegin;
        } else {
            lw_hit hit;
            memset(&hit, 0, sizeof hit);
            const bool none = p->by.setup->mode == LW_LOCAL && r->score == 0;
            hit.target = none || r->score < least ? -1 : (int32_t)i;
            if (hit.target >= 0) {
                hit.score = r->score;
                hit.tend = r->tend;
                hit.qend = r->qend;
            } else {
                path.qstart = path.tstart = path.n_cigar = 0;
            }
            p->hits[i] = hit;
        }
        if (!p->scores)
            p->paths[i] = path;
    }
    return LW_OK;
}

/* Waits for a stage and hands out its paths. */
lw_status lw_paths_finish(lw_paths *p, stage *s, lw_error *err)
{
    if (!s->busy)
        return LW_OK;
    s->busy = false;
    LW_CUDA_TRY(err, "tracing", cudaStreamSynchronize(s->stream));
    const int64_t results = 256, ops = round_up(results + s->n * (int64_t)sizeof(lw_path_result), 256);
    const int64_t used = (int64_t) * (unsigned long long *)s->p_output.at;
    if (used > s->ops_copied) { /* the rest, and its start again if the memory moves */
        s->ops_copied = used;
        LW_TRY(area_pinned(&s->p_output, (size_t)(ops + used * 4), err));
        LW_CUDA_TRY(err, "copying paths",
                    cudaMemcpyAsync(s->p_output.at, s->output.at, (size_t)(ops + used * 4),
                                    cudaMemcpyDeviceToHost, s->stream));
        LW_CUDA_TRY(err, "copying paths", cudaStreamSynchronize(s->stream));
    }
    p->ops_per_job = (double)used / (double)s->n;
    LW_TRY(lw_cigars_reserve(p->cigars, used, err));
    unpack_call call = {p,
                        s,
                        (const lw_path_result *)((const char *)s->p_output.at + results),
                        (const uint32_t *)((const char *)s->p_output.at + ops),
                        p->cigars->n,
                        used,
                        (s->n + UNPACK_JOBS - 1) / UNPACK_JOBS};
    LW_TRY(lw_pool_for(call.pieces > 1 ? p->by.setup->pool : NULL, call.pieces, unpack, &call, err));
    p->cigars->n += used;
    if (p->excess.at)
        lw_paths_learn(p, s, call.results);
    p->banded += s->narrow > 0 ? s->n : 0;
    for (int64_t k = 0; k < s->n && s->narrow > 0; k++)
        if (call.results[k].n_ops < 0)
            ((int32_t *)p->again.at)[p->n_again++] = (int32_t)job_number(p, s->first + k);
    return LW_OK;
}
