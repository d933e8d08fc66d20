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

#define LW_ROW(name_, policy_)                                                                               \
    {                                                                                                        \
        .base = {.name = name_,                                                                              \
                 .what = "not in this build",                                                                \
                 .policy = policy_,                                                                          \
                 .usable = lw_backend_cuda_usable,                                                           \
                 .rank = lw_backend_cuda_rank},                                                              \
        .supports = none_supports, .open = none_open                                                         \
    }
const lw_paths_backend lw_paths_cuda_dpx = LW_ROW("cuda-dpx", LW_CUDA_DPX);
const lw_paths_backend lw_paths_cuda_half2 = LW_ROW("cuda-half2", LW_CUDA_HALF2);
const lw_paths_backend lw_paths_cuda_int = LW_ROW("cuda-int", LW_CUDA_INT);
