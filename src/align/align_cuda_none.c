/* align_cuda_none.c - the CUDA rows of a build without CUDA: usable() says why they cannot run. */
#include "align/align_backend.h"
#include "common/fail.h"

static lw_status none_open(const lw_align_backend *self, void **context, const lw_align_setup *setup,
                           lw_error *err)
{
    (void)context;
    LW_TRY(lw_backend_cuda_usable(&self->base, setup->device, err));
    return lw_fail(err, LW_E_UNSUPPORTED, "%s is not part of this build", self->base.name);
}

#define NONE_ROW(variable, row_name, text, row_policy)                                                       \
    const lw_align_backend variable = {                                                                      \
        .base = {row_name, text, row_policy, lw_backend_cuda_usable, lw_backend_cuda_rank},                  \
        .lanes = 1,                                                                                          \
        .open = none_open}

NONE_ROW(lw_align_cuda_dpx, "cuda-dpx", "NVIDIA GPU, Hopper's add-and-select instructions, two scores a word",
         LW_CUDA_DPX);
NONE_ROW(lw_align_cuda_half2, "cuda-half2", "NVIDIA GPU, half-precision arithmetic, two scores a word",
         LW_CUDA_HALF2);
NONE_ROW(lw_align_cuda_int, "cuda-int", "NVIDIA GPU, 32-bit arithmetic, one score a word", LW_CUDA_INT);
