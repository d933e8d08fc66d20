/* align_fallback.h - the CPU backend with the threads of the pool, for schemes that no kernel of a device
 * has: two-piece gaps in place(), and in pair_ends() of more than the forward strand. */
#ifndef LW_ALIGN_FALLBACK_H
#define LW_ALIGN_FALLBACK_H

#include "align/align_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of lw_align_backend. */
lw_status lw_fallback_place(const lw_align_setup *setup, const lw_seqs *reads, lw_placements *out,
                            lw_error *err);
lw_status lw_fallback_pair_ends(const lw_align_setup *setup, const lw_seqs *queries, const lw_seqs *targets,
                                lw_hit *hits, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
