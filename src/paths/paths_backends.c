/* paths_backends.c - the table of rows. */
#include "common/fail.h"
#include "paths/paths_backend.h"

lw_status lw_paths_half2_usable(const lw_backend *self, int device, lw_error *err)
{
    (void)self, (void)device;
    return lw_fail(err, LW_E_UNSUPPORTED,
                   "paired halves hold whole numbers up to 2048 only, too few for distances; use cuda-int");
}

const lw_paths_backend *const lw_paths_backends[] = {&lw_paths_scalar, &lw_paths_cpu, &lw_paths_cuda_dpx,
                                                     &lw_paths_cuda_half2, &lw_paths_cuda_int};
const int lw_paths_backend_count = sizeof lw_paths_backends / sizeof lw_paths_backends[0];

int lw_paths_backend_list(int device, lw_backend_info *out, int capacity)
{
    const lw_backend *rows[sizeof lw_paths_backends / sizeof *lw_paths_backends];
    for (int i = 0; i < lw_paths_backend_count; i++)
        rows[i] = &lw_paths_backends[i]->base;
    return lw_backend_describe(rows, lw_paths_backend_count, device, out, capacity);
}
