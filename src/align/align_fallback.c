/* align_fallback.c - the CPU backend, opened for one call. */
#include "align/align_fallback.h"

#include "common/fail.h"

lw_status lw_fallback_place(const lw_align_setup *setup, const lw_seqs *reads, lw_placements *out,
                            lw_error *err)
{
    void *context;
    LW_TRY(lw_align_cpu.open(&lw_align_cpu, &context, setup, err));
    lw_status status = lw_align_cpu.place(context, reads, out, err);
    lw_align_cpu.close(context);
    return status;
}

lw_status lw_fallback_pair_ends(const lw_align_setup *setup, const lw_seqs *queries, const lw_seqs *targets,
                                lw_hit *hits, lw_error *err)
{
    void *context;
    LW_TRY(lw_align_cpu.open(&lw_align_cpu, &context, setup, err));
    lw_status status = lw_align_cpu.pair_ends(context, queries, targets, hits, err);
    lw_align_cpu.close(context);
    return status;
}
