/* infer_cuda_tensor.cu - 8-bit products on tensor cores. */
#include "infer/infer_cuda_tensor.cuh"

extern "C" lw_status lw_cuda_few_tensor(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    return lw_few_tensor_launch<LW_CUDA_FEW_TENSOR>(x, p, err);
}

extern "C" lw_status lw_cuda_tensor_tiles(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    /* large tiles where they keep every multiprocessor busy */
    if (lw_tiles(p, 128, 128) * p->batches >= x->multiprocessors && p->m > 64)
        return lw_tensor_tile_launch<LW_CUDA_TENSOR_LARGE>(x, p, err);
    if (p->pitch % LW_CUDA_DEEP == 0 && x->shared_bytes >= LW_CUDA_DEEP_SHARED) {
        if (p->m > 32 && lw_tiles(p, 64, 64) * p->batches >= x->multiprocessors)
            return lw_tensor_tile_launch<LW_CUDA_TENSOR_DEEP_64>(x, p, err);
        return lw_tensor_tile_launch<LW_CUDA_TENSOR_DEEP_32>(x, p, err);
    }
    return lw_tensor_tile_launch<LW_CUDA_TENSOR_SMALL>(x, p, err);
}
