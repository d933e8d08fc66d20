/* infer_cuda_tensor.cu - 8-bit products on tensor cores. */
#include "infer/infer_cuda_tensor.cuh"

extern "C" lw_status lw_cuda_tensor_tiles(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    /* the largest tile that still gives every multiprocessor one */
    if (x->shared_bytes >= 98304 && lw_tiles(p, 128, 256) * p->batches >= x->multiprocessors)
        return lw_tensor_tile_launch<LW_CUDA_TENSOR_LARGE>(x, p, err);
    if (p->m > 32 && lw_tiles(p, 64, 128) * p->batches >= x->multiprocessors)
        return lw_tensor_tile_launch<LW_CUDA_TENSOR_MIDDLE>(x, p, err);
    return lw_tensor_tile_launch<LW_CUDA_TENSOR_SMALL>(x, p, err);
}
