/* infer_cuda_tensor.cuh - tiles of 8-bit products on tensor cores. */
#ifndef LW_INFER_CUDA_TENSOR_CUH
#define LW_INFER_CUDA_TENSOR_CUH

#include "common/tensor_core.cuh"
#include "infer/infer_cuda_product.cuh"

/* DOWN x ACROSS warps, each (16 MT) x (8 NT) results; NT is even. */
template <int DOWN, int ACROSS, int MT, int NT, int STAGES, int RESIDENT>
__global__ void __launch_bounds__(DOWN *ACROSS *LW_WARP, RESIDENT) lw_tensor_tile(lw_cuda_product p)
{
    enum { ROWS = DOWN * 16 * MT, COLUMNS = ACROSS * 8 * NT, THREADS = DOWN * ACROSS * LW_WARP };
    enum { BYTES = (ROWS + COLUMNS) * LW_STAGE, MINE = ROWS * LW_SEGMENTS / THREADS };
    static_assert(MINE * THREADS == ROWS * LW_SEGMENTS, "every thread copies as many segments");
    LW_DYNAMIC_SHARED(uint8_t, shared);
    lw_batch_of(&p, (int)blockIdx.z);
    int row0, column0;
    lw_tile_of(&p, ROWS, COLUMNS, &row0, &column0);
    int warp = (int)(threadIdx.x / LW_WARP), lane = lw_lane();
    int y = warp / ACROSS * (16 * MT), x = warp % ACROSS * (8 * NT);
    const uint8_t *from[MINE];
#pragma unroll
    for (int i = 0; i < MINE; i++) {
        int r = row0 + (int)threadIdx.x / LW_SEGMENTS + i * (THREADS / LW_SEGMENTS);
        from[i] = lw_row_of(&p, r < p.m ? r : p.m - 1);
    }
    /* the row and segment whose address this lane gives for fragments of A and of B */
    int a_row = y + lane % 16, a_segment = lane / 16;
    int b_row = x + lane / 16 * 8 + lane % 8, b_segment = lane / 8 % 2;
    int32_t sum[MT][NT][4] = {};
    int stages = p.pitch / LW_STAGE;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < stages)
            lw_fill_stage<ROWS, COLUMNS, THREADS>(&p, shared + s * BYTES, from, column0, s);
        lw_copy_close();
    }
    for (int k = 0; k < stages; k++) {
        lw_copy_wait<STAGES - 2>();
        __syncthreads();
        int next = k + STAGES - 1;
        if (next < stages)
            lw_fill_stage<ROWS, COLUMNS, THREADS>(&p, shared + next % STAGES * BYTES, from, column0, next);
        lw_copy_close();
        uint32_t stage = lw_shared_address(shared + k % STAGES * BYTES);
#pragma unroll
        for (int half = 0; half < LW_SEGMENTS; half += 2) {
            uint32_t a[MT][4], b[NT][2];
#pragma unroll
            for (int i = 0; i < MT; i++)
                lw_load_matrices(a[i], stage + lw_swizzled(a_row + 16 * i, half + a_segment));
#pragma unroll
            for (int j = 0; j < NT; j += 2)
                lw_load_matrices(b[j],
                                 stage + ROWS * LW_STAGE + lw_swizzled(b_row + 8 * j, half + b_segment));
#pragma unroll
            for (int i = 0; i < MT; i++) {
#pragma unroll
                for (int f = 0; f < 4; f++)
                    a[i][f] ^= p.flip;
#pragma unroll
                for (int j = 0; j < NT; j++)
                    lw_mma_s8(sum[i][j], a[i], b[j]);
            }
        }
    }
    lw_copy_wait<0>();
    __syncthreads();
    int32_t a_zero = lw_a_zero(&p);
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
        for (int f = 0; f < 2; f++) {
            int column = x + 8 * j + lane % 4 * 2 + f;
            lw_column c = lw_column_of(&p, a_zero, column0 + column);
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int low = 0; low < 2; low++)
                    lw_put(&p, shared, ROWS, COLUMNS, row0, column0, sum[i][j][low * 2 + f],
                           y + 16 * i + low * 8 + lane / 4, column, &c);
        }
    if (p.kind == LW_TO_BYTES) {
        __syncthreads();
        lw_store_tile(&p, shared, ROWS, COLUMNS, row0, column0, THREADS);
    }
}

template <int DOWN, int ACROSS, int MT, int NT, int STAGES, int RESIDENT>
static lw_status lw_tensor_tile_launch(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    enum { ROWS = DOWN * 16 * MT, COLUMNS = ACROSS * 8 * NT };
    void (*kernel)(lw_cuda_product) = lw_tensor_tile<DOWN, ACROSS, MT, NT, STAGES, RESIDENT>;
    int bytes = STAGES * (ROWS + COLUMNS) * LW_STAGE;
    LW_CUDA_TRY(
        err, "loading kernels",
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    dim3 grid((unsigned)lw_tiles(p, ROWS, COLUMNS), 1, (unsigned)p->batches);
    LW_CUDA_TRY(err, "8-bit product",
                lw_launch(kernel, grid, DOWN * ACROSS * LW_WARP, (size_t)bytes, x->stream, *p));
    return LW_OK;
}

#endif
