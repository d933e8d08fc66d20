/* paths_cuda_none.c - the cuda-* rows of a build without CUDA: there, but never usable. */
#include "paths/paths_backend.h"

static lw_status none_supports(const lw_paths_backend *self, lw_paths_type type, lw_error *err)
{
    (void)type;
    return lw_backend_cuda_usable(&self->base, 0, err);
}

static lw_status none_open(const lw_paths_backend *self, void **context, const lw_paths_setup *setup,
                           lw_error *err)
{
    (void)context;
    return lw_backend_cuda_usable(&self->base, setup->device, err);
}

#define LW_ROW(name_, what_, policy_, usable_)                                                               \
    {                                                                                                        \
        .base = {.name = name_,                                                                              \
                 .what = what_,                                                                              \
                 .policy = policy_,                                                                          \
                 .usable = usable_,                                                                          \
                 .rank = lw_backend_cuda_rank},                                                              \
        .supports = none_supports, .open = none_open                                                         \
    }
const lw_paths_backend lw_paths_cuda_dpx =
    LW_ROW("cuda-dpx", "not in this build", LW_CUDA_DPX, lw_backend_cuda_usable);
const lw_paths_backend lw_paths_cuda_half2 =
    LW_ROW("cuda-half2", "not for distances", LW_CUDA_HALF2, lw_paths_half2_usable);
const lw_paths_backend lw_paths_cuda_int =
    LW_ROW("cuda-int", "not in this build", LW_CUDA_INT, lw_backend_cuda_usable);
