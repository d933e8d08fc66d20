/* backend.h - what the backend tables of all domains share: names, reasons, and the choice. */
#ifndef LW_BACKEND_H
#define LW_BACKEND_H

#include <stddef.h>
#include "lanewise/backends.h"
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* First member of every domain's backend row. */
typedef struct lw_backend lw_backend;
struct lw_backend {
    const char *name; /* as --backend spells it */
    const char *what; /* one line for --backend list */
    int policy;       /* which arithmetic, for rows that share functions */
    /* LW_OK if this row can run here and now, on CUDA device `device` where it needs one; else
     * LW_E_UNSUPPORTED with the reason in err. */
    lw_status (*usable)(const lw_backend *self, int device, lw_error *err);
    /* How much auto wants this row among the usable ones: the highest wins. */
    int (*rank)(const lw_backend *self, int device);
};

/* Resolves NAME against rows[0 .. n): a row's name, "auto" (highest rank among the usable) or "cuda"
 * (the same among rows named cuda-*). Fills *index and, when why is not NULL, one line on what was chosen and
 * why. LW_E_ARG: no such name. LW_E_UNSUPPORTED: it cannot run, with the reason. */
lw_status lw_backend_choose(const lw_backend *const *rows, int n, const char *name, int device, int *index,
                            char *why, size_t why_size, lw_error *err);

/* What the lw_*_backend_list() calls of the domains return about rows[0 .. n). */
int lw_backend_describe(const lw_backend *const *rows, int n, int device, lw_backend_info *out, int capacity);

/* usable() and rank() of rows that need nothing. */
lw_status lw_backend_always(const lw_backend *self, int device, lw_error *err);
int lw_backend_rank_scalar(const lw_backend *self, int device); /* 1 */
int lw_backend_rank_cpu(const lw_backend *self, int device);    /* 10 */

/* usable() of the cuda-* rows: a driver, a device, code for it in this binary, and what the policy asks for.
 */
lw_status lw_backend_cuda_usable(const lw_backend *self, int device, lw_error *err);
int lw_backend_cuda_rank(const lw_backend *self, int device); /* 20 .. 60 */

/* Policies of the cuda-* rows. */
enum { LW_CUDA_INT, LW_CUDA_HALF2, LW_CUDA_DPX, LW_CUDA_DP4A, LW_CUDA_TENSOR };

#ifdef __cplusplus
}
#endif
#endif
