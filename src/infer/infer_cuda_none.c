/* infer_cuda_none.c - the cuda-* rows of a build without CUDA: there, but never usable. */
#include "infer/infer_backend.h"

static lw_status none_open(const lw_infer_backend *self, void **context, const lw_host *host, lw_error *err)
{
    (void)context, (void)host;
    return lw_backend_cuda_usable(&self->base, 0, err);
}

#define LW_ROW(name_, policy_)                                                                               \
    {                                                                                                        \
        .base = {.name = name_,                                                                              \
                 .what = "not in this build",                                                                \
                 .policy = policy_,                                                                          \
                 .usable = lw_backend_cuda_usable,                                                           \
                 .rank = lw_backend_cuda_rank},                                                              \
        .open = none_open                                                                                    \
    }
const lw_infer_backend lw_infer_cuda_tensor = LW_ROW("cuda-tensor", LW_CUDA_TENSOR);
const lw_infer_backend lw_infer_cuda_dp4a = LW_ROW("cuda-dp4a", LW_CUDA_DP4A);
const lw_infer_backend lw_infer_cuda_library = LW_ROW("cublaslt", LW_CUDA_TENSOR);
const lw_infer_backend lw_infer_cuda_int = LW_ROW("cuda-int", LW_CUDA_INT);
