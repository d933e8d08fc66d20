/* tensor_core.cuh - products of small matrices of signed bytes by a whole warp, sums in 32 bits:
 *     c[16][8] += a[16][32] * b[32][8]
 * Fragments, lane = 4 * g + t: a[0], a[1] hold rows g and g + 8, bytes 4t .. 4t + 3; a[2], a[3] the same rows
 * 16 bytes further on; b[0], b[1] column g, bytes 4t ... and 16 + 4t ...; c[0], c[1] row g, columns 2t and
 * 2t + 1; c[2], c[3] row g + 8.
 *
 * Forms: compute capability 8.0 and later has the whole product in one instruction, 7.5 a quarter of it; the
 * host form takes and gives the fragments of all 32 lanes, and defines what the others must return. Sums wrap
 * modulo 2^32. */
#ifndef LW_TENSOR_CORE_CUH
#define LW_TENSOR_CORE_CUH

#include <stdint.h>
#include "common/dp4a.cuh"
#include "common/warp.cuh"

#ifdef __CUDACC__

LW_DEVICE void lw_mma_quarter(int32_t *c, uint32_t a, uint32_t b)
{
#if __CUDA_ARCH__ >= 750
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(a), "r"(b));
#endif
}

LW_DEVICE void lw_mma_s8(int32_t *c, const uint32_t *a, const uint32_t *b)
{
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    lw_mma_quarter(c, a[0], b[0]);
    lw_mma_quarter(c, a[2], b[1]);
    lw_mma_quarter(c + 2, a[1], b[0]);
    lw_mma_quarter(c + 2, a[3], b[1]);
#endif
}

/* Four 8 x 16-byte matrices from shared memory: lane i gives the address of row i % 8 of matrix i / 8; lane
 * 4g + t receives bytes 4t .. 4t + 3 of row g of each. */
LW_DEVICE void lw_load_matrices(uint32_t *r, uint32_t address)
{
#if __CUDA_ARCH__ >= 750
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
#else
    r[0] = r[1] = r[2] = r[3] = 0; /* no such products there: lw_backend_cuda_usable() says so */
#endif
}

#endif /* __CUDACC__ */

/* c[4 * lane + i], a[4 * lane + i], b[2 * lane + i]. */
static inline void lw_mma_s8_host(int32_t *c, const uint32_t *a, const uint32_t *b)
{
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++) {
            int32_t *sum = &c[4 * (4 * (row % 8) + column / 2) + row / 8 * 2 + column % 2];
            for (int k = 0; k < 32; k += 4) {
                int t = k % 16 / 4;
                *sum = lw_dp4a_ss_portable(a[4 * (4 * (row % 8) + t) + k / 16 * 2 + row / 8],
                                           b[2 * (4 * column + t) + k / 16], *sum);
            }
        }
}

#endif
