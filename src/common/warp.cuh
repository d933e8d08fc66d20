/* warp.cuh - what the lanes of a warp do together: shuffles, votes, reductions, over the whole warp or over
 * groups of 2, 4, 8, 16 or 32 neighbouring lanes.
 *
 * Every call names the lanes that take part (a mask made by lw_ballot() or lw_group_mask() where all of
 * them are known to be present); which lanes happen to be active is never asked.
 * Forms: sm_80 and later reduce whole warps of s32 in one instruction; older GPUs by shuffles; the host forms
 * work on an array that holds one value per lane, and define what the others must return. */
#ifndef LW_WARP_CUH
#define LW_WARP_CUH

#include <stdint.h>

enum { LW_WARP = 32 };
#define LW_ALL_LANES 0xffffffffu

#ifdef __CUDACC__

#define LW_DEVICE static __device__ __forceinline__

/* The shared memory that a launch asks for, as an array. */
#define LW_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

LW_DEVICE int lw_lane(void)
{
    return (int)(threadIdx.x & (LW_WARP - 1));
}

/* The value itself, as a whole register: keeps the compiler from narrowing a loaded byte and widening it
 * again. */
LW_DEVICE uint32_t lw_opaque(uint32_t value)
{
    asm("" : "+r"(value));
    return value;
}

/* 16 bytes, aligned, read once: past the first-level cache, first to leave the second. */
LW_DEVICE uint4 lw_stream_load4(const void *global)
{
    return __ldcs((const uint4 *)global);
}

/* Participation mask of the `width` neighbouring lanes that hold `lane`. */
LW_DEVICE uint32_t lw_group_mask(int width, int lane)
{
    return (width == LW_WARP ? LW_ALL_LANES : ((1u << width) - 1u) << (lane & ~(width - 1)));
}

/* One bit for each lane of `mask` whose `predicate` is not 0. */
LW_DEVICE uint32_t lw_ballot(uint32_t mask, int predicate)
{
    return __ballot_sync(mask, predicate);
}

LW_DEVICE int lw_any(uint32_t mask, int predicate)
{
    return __any_sync(mask, predicate);
}

/* Memory written by any lane of `mask` before is seen by all of them after. */
LW_DEVICE void lw_warp_sync(uint32_t mask)
{
    __syncwarp(mask);
}

/* Value of the lane `delta` below / above / across in the same group; lanes without one get their own value.
 */
LW_DEVICE uint32_t lw_from_below(uint32_t mask, uint32_t value, int delta, int width)
{
    return __shfl_up_sync(mask, value, (unsigned)delta, width);
}

LW_DEVICE uint32_t lw_from_above(uint32_t mask, uint32_t value, int delta, int width)
{
    return __shfl_down_sync(mask, value, (unsigned)delta, width);
}

LW_DEVICE uint32_t lw_from_across(uint32_t mask, uint32_t value, int bits, int width)
{
    return __shfl_xor_sync(mask, value, bits, width);
}

/* Value of lane `source` of the group. */
LW_DEVICE uint32_t lw_from_lane(uint32_t mask, uint32_t value, int source, int width)
{
    return __shfl_sync(mask, value, source, width);
}

/* The first lane's value, 64 bits. */
LW_DEVICE uint64_t lw_from_first64(uint32_t mask, uint64_t value)
{
    return __shfl_sync(mask, (unsigned long long)value, 0, LW_WARP);
}

/* How many of the lowest bits are ones before the first that is not. */
LW_DEVICE int lw_trailing_ones(uint32_t bits)
{
    return bits == LW_ALL_LANES ? 32 : __ffs((int)~bits) - 1;
}

/* Reductions over groups of `width` lanes. "down": the result is in the group's first lane; "xor": in every
 * lane. */
LW_DEVICE int32_t lw_reduce_add_down(uint32_t mask, int32_t value, int width)
{
    for (int d = width / 2; d > 0; d /= 2)
        value += (int32_t)__shfl_down_sync(mask, value, (unsigned)d, width);
    return value;
}

LW_DEVICE int32_t lw_reduce_max_down(uint32_t mask, int32_t value, int width)
{
    for (int d = width / 2; d > 0; d /= 2) {
        int32_t other = __shfl_down_sync(mask, value, (unsigned)d, width);
        value = other > value ? other : value;
    }
    return value;
}

LW_DEVICE int32_t lw_reduce_add_xor_any(uint32_t mask, int32_t value, int width)
{
    for (int d = width / 2; d > 0; d /= 2)
        value += __shfl_xor_sync(mask, value, d, width);
    return value;
}

LW_DEVICE int32_t lw_reduce_add_xor(uint32_t mask, int32_t value, int width)
{
#if __CUDA_ARCH__ >= 800
    if (width == LW_WARP && mask == LW_ALL_LANES)
        return __reduce_add_sync(mask, value);
#endif
    return lw_reduce_add_xor_any(mask, value, width);
}

LW_DEVICE int32_t lw_reduce_max_xor_any(uint32_t mask, int32_t value, int width)
{
    for (int d = width / 2; d > 0; d /= 2) {
        int32_t other = __shfl_xor_sync(mask, value, d, width);
        value = other > value ? other : value;
    }
    return value;
}

LW_DEVICE int32_t lw_reduce_max_xor(uint32_t mask, int32_t value, int width)
{
#if __CUDA_ARCH__ >= 800
    if (width == LW_WARP && mask == LW_ALL_LANES)
        return __reduce_max_sync(mask, value);
#endif
    return lw_reduce_max_xor_any(mask, value, width);
}

LW_DEVICE int32_t lw_reduce_min_xor_any(uint32_t mask, int32_t value, int width)
{
    for (int d = width / 2; d > 0; d /= 2) {
        int32_t other = __shfl_xor_sync(mask, value, d, width);
        value = other < value ? other : value;
    }
    return value;
}

LW_DEVICE int32_t lw_reduce_min_xor(uint32_t mask, int32_t value, int width)
{
#if __CUDA_ARCH__ >= 800
    if (width == LW_WARP && mask == LW_ALL_LANES)
        return __reduce_min_sync(mask, value);
#endif
    return lw_reduce_min_xor_any(mask, value, width);
}

LW_DEVICE float lw_reduce_fadd_xor(uint32_t mask, float value, int width)
{
    for (int d = width / 2; d > 0; d /= 2)
        value += __shfl_xor_sync(mask, value, d, width);
    return value;
}

LW_DEVICE float lw_reduce_fmax_xor(uint32_t mask, float value, int width)
{
    for (int d = width / 2; d > 0; d /= 2)
        value = fmaxf(value, __shfl_xor_sync(mask, value, d, width));
    return value;
}

#endif /* __CUDACC__ */

/* Host forms: lane[i] is the value of lane i of one group. */
static inline int32_t lw_reduce_add_host(const int32_t *lane, int width)
{
    uint32_t sum = 0;
    for (int i = 0; i < width; i++)
        sum += (uint32_t)lane[i];
    return (int32_t)sum;
}

static inline int32_t lw_reduce_max_host(const int32_t *lane, int width)
{
    int32_t best = lane[0];
    for (int i = 1; i < width; i++)
        best = lane[i] > best ? lane[i] : best;
    return best;
}

static inline int32_t lw_reduce_min_host(const int32_t *lane, int width)
{
    int32_t best = lane[0];
    for (int i = 1; i < width; i++)
        best = lane[i] < best ? lane[i] : best;
    return best;
}

static inline uint32_t lw_ballot_host(const int32_t *predicate, int width)
{
    uint32_t bits = 0;
    for (int i = 0; i < width; i++)
        bits |= (uint32_t)(predicate[i] != 0) << i;
    return bits;
}

#endif
