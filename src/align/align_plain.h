/* align_plain.h - the reference's functions with the threads of the pool: for schemes that no vector kernel
 * has. */
#ifndef LW_ALIGN_PLAIN_H
#define LW_ALIGN_PLAIN_H

#include "align/align_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the functions of lw_align_backend. */
lw_status lw_plain_place(const lw_align_setup *setup, const lw_seqs *reads, lw_placements *out,
                         lw_error *err);
lw_status lw_plain_pair_ends(const lw_align_setup *setup, const lw_seqs *queries, const lw_seqs *targets,
                             lw_hit *hits, lw_error *err);
lw_status lw_plain_trace(const lw_align_setup *setup, const lw_seqs *queries, const lw_seqs *targets,
                         int64_t n, const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars,
                         lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
