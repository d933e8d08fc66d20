/* align.c - what the alignment driver and all its backends share: the table of backends and the size
 * of trace windows. */
#include "align/align_backend.h"

const lw_align_backend *const lw_align_backends[] = {&lw_align_scalar, &lw_align_cpu, &lw_align_cuda_dpx,
                                                     &lw_align_cuda_half2, &lw_align_cuda_int};
const int lw_align_backend_count = (int)(sizeof lw_align_backends / sizeof *lw_align_backends);

int lw_align_backend_list(int device, lw_backend_info *out, int capacity)
{
    const lw_backend *rows[sizeof lw_align_backends / sizeof *lw_align_backends];
    for (int i = 0; i < lw_align_backend_count; i++)
        rows[i] = &lw_align_backends[i]->base;
    return lw_backend_describe(rows, lw_align_backend_count, device, out, capacity);
}

/* Every path that ends at (qend, tend) with score S consumes at most qend query letters in its diagonal
 * steps, each worth at most max = max(max_score, 0). With D > 0 deleted target letters it pays at least
 * open + D * extend, so S <= qend * max - open - D * extend, that is
 *     D <= (qend * max - open - S) / extend,
 * and it spans at most qend + D target letters. With extend = 0 there is no such bound. Cells outside the
 * window can only lower-bound H inside it, and H on a path that attains S cannot be lower than it is in the
 * whole matrix without S being lower too; so each test of the walk back comes out the same. */
void lw_trace_window(const lw_scoring *scoring, lw_mode mode, const lw_hit *hit, lw_trace_task *task)
{
    int64_t span = hit->tend;
    if (mode != LW_GLOBAL && scoring->gap_extend > 0) {
        int64_t max_score = scoring->max_score > 0 ? scoring->max_score : 0;
        int64_t room = hit->qend * max_score - scoring->gap_open - hit->score;
        span = hit->qend + (room > 0 ? room / scoring->gap_extend : 0);
    }
    if (span > hit->tend)
        span = hit->tend;
    task->target = hit->target;
    task->qlen = hit->qend;
    task->tbegin = (int32_t)(hit->tend - span);
    task->tlen = (int32_t)span;
    task->score = hit->score;
    task->reverse = hit->reverse;
}
