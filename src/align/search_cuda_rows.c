/* search_cuda_rows.c - the cuda-* rows of the search; without CUDA in this build they refuse and say why. */
#include "align/search_cuda.h"

#if LW_HAVE_CUDA
#define OPEN lw_search_cuda_open
#define SEARCH lw_search_cuda_search
#define CLOSE lw_search_cuda_close
#else /* usable() never says yes */
#define OPEN NULL
#define SEARCH NULL
#define CLOSE NULL
#endif

enum { BATCH_LETTERS = 1 << 16 };

#define ROW(symbol, its_name, its_what, its_policy)                                                          \
    const lw_search_backend symbol = {.base = {.name = its_name,                                             \
                                               .what = its_what,                                             \
                                               .policy = its_policy,                                         \
                                               .usable = lw_backend_cuda_usable,                             \
                                               .rank = lw_backend_cuda_rank},                                \
                                      .batch_letters = BATCH_LETTERS,                                        \
                                      .open = OPEN,                                                          \
                                      .search = SEARCH,                                                      \
                                      .close = CLOSE}

ROW(lw_search_cuda_dpx, "cuda-dpx", "CUDA, DPX maxima on half-precision integers, s16 and s32", LW_CUDA_DPX);
ROW(lw_search_cuda_half2, "cuda-half2", "CUDA, half-precision maxima, s32", LW_CUDA_HALF2);
ROW(lw_search_cuda_int, "cuda-int", "CUDA, s32, any GPU", LW_CUDA_INT);
