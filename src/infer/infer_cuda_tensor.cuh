/* infer_cuda_tensor.cuh - tiles of 8-bit products on tensor cores. */
#ifndef LW_INFER_CUDA_TENSOR_CUH
#define LW_INFER_CUDA_TENSOR_CUH

#include "common/tensor_core.cuh"
#include "infer/infer_cuda_product.cuh"

/* DOWN x ACROSS warps, each (16 MT) x (8 NT) results; NT is even. A stage is DEPTH bytes deep. */
template <int DOWN, int ACROSS, int MT, int NT, int DEPTH, int STAGES, int RESIDENT>
__global__ void __launch_bounds__(DOWN *ACROSS *LW_WARP, RESIDENT) lw_tensor_tile(lw_cuda_product p)
{
    enum { ROWS = DOWN * 16 * MT, COLUMNS = ACROSS * 8 * NT, THREADS = DOWN * ACROSS * LW_WARP };
    enum { SEGMENTS = DEPTH / 16 };
    enum { BYTES = (ROWS + COLUMNS) * DEPTH };
    LW_DYNAMIC_SHARED(uint8_t, shared);
    lw_batch_of(&p, (int)blockIdx.z);
    int row0, column0;
    lw_tile_of(&p, ROWS, COLUMNS, &row0, &column0);
    int warp = (int)(threadIdx.x / LW_WARP), lane = lw_lane();
    int y = warp / ACROSS * (16 * MT), x = warp % ACROSS * (8 * NT);
    lw_filler<ROWS, COLUMNS, THREADS, DEPTH> filler;
    lw_fill_begin(&filler, &p, lw_shared_address(shared), row0, column0);
    /* the row and segment whose address this lane gives for fragments of A and of B */
    int a_row = y + lane % 16, a_segment = lane / 16;
    int b_row = x + lane / 16 * 8 + lane % 8, b_segment = lane / 8 % 2;
    int32_t sum[MT][NT][4] = {};
    int stages = p.pitch / DEPTH;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < stages)
            lw_fill_stage(&filler, &p, s * BYTES, s);
        lw_copy_close();
    }
    for (int k = 0; k < stages; k++) {
        lw_copy_wait<STAGES - 2>();
        __syncthreads();
        int next = k + STAGES - 1;
        if (next < stages)
            lw_fill_stage(&filler, &p, next % STAGES * BYTES, next);
        lw_copy_close();
        uint32_t stage = lw_shared_address(shared + k % STAGES * BYTES);
#pragma unroll
        for (int half = 0; half < SEGMENTS; half += 2) {
            uint32_t a[MT][4], b[NT][2];
#pragma unroll
            for (int i = 0; i < MT; i++)
                lw_load_matrices(a[i], stage + lw_swizzled<DEPTH>(a_row + 16 * i, half + a_segment));
#pragma unroll
            for (int j = 0; j < NT; j += 2)
                lw_load_matrices(b[j],
                                 stage + ROWS * DEPTH + lw_swizzled<DEPTH>(b_row + 8 * j, half + b_segment));
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

template <int DOWN, int ACROSS, int MT, int NT, int DEPTH, int STAGES, int RESIDENT>
static lw_status lw_tensor_tile_launch(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    enum { ROWS = DOWN * 16 * MT, COLUMNS = ACROSS * 8 * NT };
    return lw_launch_tiles(x, p, lw_tensor_tile<DOWN, ACROSS, MT, NT, DEPTH, STAGES, RESIDENT>, ROWS, COLUMNS,
                           DOWN * ACROSS * LW_WARP, STAGES * (ROWS + COLUMNS) * DEPTH, err);
}

/* Few rows: at most 8 NT. The weights take the place of the 16-row operand and go from memory into registers,
 * without shared memory: the order of the bytes along the depth is free as long as both operands have the
 * same, so a lane's 16 bytes are its fragments of two products. The warps of a block share 16 MT columns and
 * divide the depth, U times 64 bytes at a time; rows of A stay in the first-level cache. */
template <int MT, int NT, int U> __global__ void __launch_bounds__(256) lw_few_tensor(lw_cuda_product p)
{
    enum { WARPS = 8, COLUMNS = 16 * MT, ROWS = 8 * NT };
    __shared__ int32_t part[WARPS][ROWS][COLUMNS + 1];
    lw_batch_of(&p, (int)blockIdx.y);
    int lane = lw_lane(), warp = (int)(threadIdx.x / LW_WARP), g = lane / 4, t = lane % 4;
    int column0 = (int)blockIdx.x * COLUMNS;
    const uint8_t *b[MT][2], *a[NT];
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int j = column0 + i * 16 + h * 8 + g;
            b[i][h] = p.b + (int64_t)(j < p.n ? j : p.n - 1) * p.pitch + t * 16;
        }
#pragma unroll
    for (int i = 0; i < NT; i++)
        a[i] = p.a + (i * 8 + g < p.m ? i * 8 + g : p.m - 1) * p.lda;
    int32_t sum[MT][NT][4] = {};
    for (int k0 = warp * U * 64; k0 < p.pitch; k0 += WARPS * U * 64) {
        uint4 w[U][MT][2];
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    w[u][i][h] = make_uint4(0, 0, 0, 0);
                    if (k0 + u * 64 < p.pitch)
                        w[u][i][h] = lw_stream_load4(b[i][h] + k0 + u * 64);
                }
#pragma unroll
        for (int u = 0; u < U; u++) {
            int at = k0 + u * 64 + t * 16;
            at = at < p.k ? at : 0; /* the weights there are 0 */
#pragma unroll
            for (int j = 0; j < NT; j++) {
                uint4 v = *(const uint4 *)(a[j] + at);
                uint32_t low[2] = {v.x ^ p.flip, v.y ^ p.flip}, high[2] = {v.z ^ p.flip, v.w ^ p.flip};
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    uint4 w0 = w[u][i][0], w1 = w[u][i][1];
                    uint32_t first[4] = {w0.x, w1.x, w0.y, w1.y}, second[4] = {w0.z, w1.z, w0.w, w1.w};
                    lw_mma_s8(sum[i][j], first, low);
                    lw_mma_s8(sum[i][j], second, high);
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int f = 0; f < 4; f++)
                part[warp][j * 8 + t * 2 + f % 2][i * 16 + f / 2 * 8 + g] = sum[i][j][f];
    __syncthreads();
    int32_t a_zero = lw_a_zero(&p);
    for (int s = (int)threadIdx.x; s < ROWS * COLUMNS; s += 256) {
        int i = s / COLUMNS, j = s % COLUMNS;
        if (i >= p.m || column0 + j >= p.n)
            continue;
        int32_t all = 0;
#pragma unroll
        for (int k = 0; k < WARPS; k++)
            all += part[k][i][j];
        lw_column c = lw_column_of(&p, a_zero, column0 + j);
        lw_store_one(&p, all, i, column0 + j, &c);
    }
}

template <int MT, int NT, int U>
static lw_status lw_few_tensor_launch(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    dim3 grid((unsigned)((p->n + 16 * MT - 1) / (16 * MT)), (unsigned)p->batches);
    LW_CUDA_TRY(err, "8-bit product", lw_launch(lw_few_tensor<MT, NT, U>, grid, 256, 0, x->stream, *p));
    return LW_OK;
}

#endif
