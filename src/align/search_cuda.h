/* search_cuda.h - the functions behind the cuda-* rows of the search. */
#ifndef LW_SEARCH_CUDA_H
#define LW_SEARCH_CUDA_H

#include "align/search_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

lw_status lw_search_cuda_open(const lw_search_backend *self, void **context, const lw_search_setup *setup,
                              lw_error *err);
lw_status lw_search_cuda_search(void *context, const lw_search_request *request, const lw_search_result *out,
                                lw_error *err);
void lw_search_cuda_close(void *context);

#ifdef __cplusplus
}
#endif
#endif
