/* clang-cuda.h - what clang's CUDA headers lack, for scripts/check-old-gpus.sh, which only compiles. */
#include <cuda_fp16.h>

template <typename T> static __device__ inline T __ldcs(const T *p)
{
    return *p;
}

template <typename T> static __device__ inline T __ldcg(const T *p)
{
    return *p;
}

template <typename T> static __device__ inline void __stcs(T *p, T value)
{
    *p = value;
}
