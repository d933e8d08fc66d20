/* shared.cuh - shared memory addressed by 32-bit numbers. A pointer into shared memory is made of the
 * window's address again and again in loops; a number of its own is one register and one instruction a load.
 */
#ifndef LW_SHARED_CUH
#define LW_SHARED_CUH

#include <stdint.h>
#include "common/warp.cuh"

#ifdef __CUDACC__
#include <cuda_pipeline_primitives.h>

LW_DEVICE uint32_t lw_shared_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

/* 16 bytes, aligned. What was stored before the last warp or block barrier is seen. */
LW_DEVICE uint4 lw_shared_load4(uint32_t address)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(address));
    return v;
}

LW_DEVICE void lw_shared_store4(uint32_t address, uint4 v)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

/* 8 bytes, or 12 of 16, in place of the values there are, where `take`: no branch, and no value in between.
 */
template <int N>
LW_DEVICE void lw_shared_take(uint32_t address, bool take, uint32_t &first, uint32_t (&rest)[N])
{
    static_assert(N == 1 || N == 2, "two or three words");
    if (N == 1)
        asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p ld.shared.v2.u32 {%0, %1}, [%2];}"
                     : "+r"(first), "+r"(rest[0])
                     : "r"(address), "r"((uint32_t)take));
    else
        asm volatile(
            "{.reg .pred p; .reg .u32 w; setp.ne.u32 p, %4, 0; @p ld.shared.v4.u32 {%0, %1, %2, w}, [%3];}"
            : "+r"(first), "+r"(rest[0]), "+r"(rest[N - 1])
            : "r"(address), "r"((uint32_t)take));
}

/* 16 bytes from global to shared memory, behind the thread's back where the chip can (8.0 and later). Copies
 * are counted in groups: lw_copy_close() ends one, lw_copy_wait<N>() waits until at most the last N
 * groups of this thread are under way. */
LW_DEVICE void lw_copy16(void *shared, const void *global)
{
    __pipeline_memcpy_async(shared, global, 16);
}

/* The same to an address in shared memory; zeros where there is nothing to copy (there = false). */
LW_DEVICE void lw_copy16_at(uint32_t address, const void *global, bool there)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
                 "r"(there ? 16 : 0)
                 : "memory");
#else
    lw_shared_store4(address, there ? *(const uint4 *)global : make_uint4(0, 0, 0, 0));
#endif
}

LW_DEVICE void lw_copy_close(void)
{
    __pipeline_commit();
}

template <int N> LW_DEVICE void lw_copy_wait(void)
{
    __pipeline_wait_prior(N);
}

#endif
#endif
