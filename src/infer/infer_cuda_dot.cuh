/* infer_cuda_dot.cuh - products by four-byte dot products: few rows, and tiles. APART: without IDP.4A. */
#ifndef LW_INFER_CUDA_DOT_CUH
#define LW_INFER_CUDA_DOT_CUH

#include "infer/infer_cuda_product.cuh"

template <bool APART> LW_DEVICE int32_t lw_dot(uint32_t a, uint32_t b, int32_t sum)
{
    return APART ? lw_dp4a_ss_apart(a, b, sum) : lw_dp4a_ss(a, b, sum);
}

template <bool APART> LW_DEVICE int32_t lw_dot16(uint4 a, uint4 b, int32_t sum)
{
    sum = lw_dot<APART>(a.x, b.x, sum);
    sum = lw_dot<APART>(a.y, b.y, sum);
    sum = lw_dot<APART>(a.z, b.z, sum);
    return lw_dot<APART>(a.w, b.w, sum);
}

/* ---- few rows -------------------------------------------------------------------------------------- */

/* A of at most M rows lies in shared memory, in pieces of `chunk` bytes of depth; each warp takes R rows of B
 * (columns of c) at a time and streams them past it, 16 bytes a lane, U times before it computes. */
template <int M, int R, int U, bool APART>
__global__ void __launch_bounds__(LW_CUDA_FEW_THREADS) lw_few_rows(lw_cuda_product p, int chunk)
{
    LW_DYNAMIC_SHARED(uint4, a);
    lw_batch_of(&p, (int)blockIdx.y);
    int lane = lw_lane(), warps = (int)(blockDim.x / LW_WARP), warp = (int)(threadIdx.x / LW_WARP);
    int pieces = (p.pitch + chunk - 1) / chunk, step = (int)gridDim.x * warps * R;
    int32_t a_zero = lw_a_zero(&p);
    bool loaded = false;
    /* every warp of the block makes as many rounds: the block loads A together */
    for (int first = (int)blockIdx.x * warps * R; first < p.n; first += step) {
        int32_t sum[M][R] = {};
        int n0 = first + warp * R;
        const uint8_t *row[R];
#pragma unroll
        for (int r = 0; r < R; r++)
            row[r] = p.b + (int64_t)(n0 + r < p.n ? n0 + r : p.n - 1) * p.pitch;
        for (int piece = 0; piece < pieces; piece++) {
            int k0 = piece * chunk, depth = p.pitch - k0 < chunk ? p.pitch - k0 : chunk;
            if (!loaded || pieces > 1) {
                __syncthreads();
                for (int s = (int)threadIdx.x; s < M * depth / 16; s += (int)blockDim.x) {
                    int i = s / (depth / 16), k = k0 + s % (depth / 16) * 16;
                    uint4 v = make_uint4(0, 0, 0, 0); /* beyond k B is 0 */
                    if (i < p.m && k < p.k)
                        v = *(const uint4 *)(p.a + i * p.lda + k);
                    v.x ^= p.flip, v.y ^= p.flip, v.z ^= p.flip, v.w ^= p.flip;
                    a[i * (chunk / 16) + s % (depth / 16)] = v;
                }
                __syncthreads();
                loaded = true;
            }
            int k = lane * 16;
            for (; k + (U - 1) * LW_WARP * 16 < depth; k += U * LW_WARP * 16) {
                uint4 b[U][R];
#pragma unroll
                for (int u = 0; u < U; u++)
#pragma unroll
                    for (int r = 0; r < R; r++)
                        b[u][r] = lw_stream_load4(row[r] + k0 + k + u * LW_WARP * 16);
#pragma unroll
                for (int u = 0; u < U; u++)
#pragma unroll
                    for (int i = 0; i < M; i++) {
                        uint4 v = a[i * (chunk / 16) + k / 16 + u * LW_WARP];
#pragma unroll
                        for (int r = 0; r < R; r++)
                            sum[i][r] = lw_dot16<APART>(v, b[u][r], sum[i][r]);
                    }
            }
            for (; k < depth; k += LW_WARP * 16)
#pragma unroll
                for (int r = 0; r < R; r++) {
                    uint4 b = lw_stream_load4(row[r] + k0 + k);
#pragma unroll
                    for (int i = 0; i < M; i++)
                        sum[i][r] = lw_dot16<APART>(a[i * (chunk / 16) + k / 16], b, sum[i][r]);
                }
        }
        /* a butterfly leaves every sum in every lane; lane l stores result l */
        int32_t mine = 0;
#pragma unroll
        for (int i = 0; i < M; i++)
#pragma unroll
            for (int r = 0; r < R; r++) {
                int32_t all = lw_reduce_add_xor(LW_ALL_LANES, sum[i][r], LW_WARP);
                mine = lane == i * R + r ? all : mine;
            }
        int i = lane / R, j = n0 + lane % R;
        if (lane < M * R && i < p.m && j < p.n) {
            lw_column c = lw_column_of(&p, a_zero, j);
            lw_store_one(&p, mine, i, j, &c);
        }
    }
}

/* ---- tiles ----------------------------------------------------------------------------------------- */

/* DOWN x ACROSS warps, each 4 x 8 lanes, each lane RM x RN results: lane (y, x) holds rows y + 4 i and
 * columns x + 8 j of its warp's part, so that a warp's 16-byte loads meet 4 or 8 neighbouring rows. */
template <int DOWN, int ACROSS, int RM, int RN, int STAGES, int RESIDENT, bool APART>
__global__ void __launch_bounds__(DOWN *ACROSS *LW_WARP, RESIDENT) lw_dot_tile(lw_cuda_product p)
{
    enum { ROWS = DOWN * 4 * RM, COLUMNS = ACROSS * 8 * RN, THREADS = DOWN * ACROSS * LW_WARP };
    enum { DEPTH = LW_CUDA_DEPTH, SEGMENTS = DEPTH / 16 };
    enum { BYTES = (ROWS + COLUMNS) * DEPTH, MINE = ROWS * SEGMENTS / THREADS };
    LW_DYNAMIC_SHARED(uint8_t, shared);
    lw_batch_of(&p, (int)blockIdx.z);
    int row0, column0;
    lw_tile_of(&p, ROWS, COLUMNS, &row0, &column0);
    int warp = (int)(threadIdx.x / LW_WARP), lane = lw_lane();
    int y = warp / ACROSS * (4 * RM) + lane / 8, x = warp % ACROSS * (8 * RN) + lane % 8;
    const uint8_t *from[MINE];
#pragma unroll
    for (int i = 0; i < MINE; i++) {
        int r = row0 + (int)threadIdx.x / SEGMENTS + i * (THREADS / SEGMENTS);
        from[i] = lw_row_of(&p, r < p.m ? r : p.m - 1);
    }
    int32_t sum[RM][RN] = {};
    int stages = p.pitch / DEPTH;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < stages)
            lw_fill_stage<ROWS, COLUMNS, THREADS, DEPTH>(&p, shared + s * BYTES, from, column0, s);
        lw_copy_close();
    }
    for (int k = 0; k < stages; k++) {
        lw_copy_wait<STAGES - 2>();
        __syncthreads();
        int next = k + STAGES - 1;
        if (next < stages)
            lw_fill_stage<ROWS, COLUMNS, THREADS, DEPTH>(&p, shared + next % STAGES * BYTES, from, column0,
                                                         next);
        lw_copy_close();
        uint32_t stage = lw_shared_address(shared + k % STAGES * BYTES);
#pragma unroll(APART ? 1 : SEGMENTS)
        for (int segment = 0; segment < SEGMENTS; segment++) {
            uint4 b[RN];
#pragma unroll
            for (int j = 0; j < RN; j++)
                b[j] = lw_shared_load4(stage + ROWS * DEPTH + lw_swizzled<DEPTH>(x + 8 * j, segment));
#pragma unroll
            for (int i = 0; i < RM; i++) {
                uint4 a = lw_shared_load4(stage + lw_swizzled<DEPTH>(y + 4 * i, segment));
                a.x ^= p.flip, a.y ^= p.flip, a.z ^= p.flip, a.w ^= p.flip;
#pragma unroll
                for (int j = 0; j < RN; j++)
                    sum[i][j] = lw_dot16<APART>(a, b[j], sum[i][j]);
            }
        }
    }
    lw_copy_wait<0>();
    __syncthreads();
    int32_t a_zero = lw_a_zero(&p);
#pragma unroll
    for (int j = 0; j < RN; j++) {
        lw_column c = lw_column_of(&p, a_zero, column0 + x + 8 * j);
#pragma unroll
        for (int i = 0; i < RM; i++)
            lw_put(&p, shared, ROWS, COLUMNS, row0, column0, sum[i][j], y + 4 * i, x + 8 * j, &c);
    }
    if (p.kind == LW_TO_BYTES) {
        __syncthreads();
        lw_store_tile(&p, shared, ROWS, COLUMNS, row0, column0, THREADS);
    }
}

template <int DOWN, int ACROSS, int RM, int RN, int STAGES, int RESIDENT, bool APART>
static lw_status lw_dot_tile_launch(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    enum { ROWS = DOWN * 4 * RM, COLUMNS = ACROSS * 8 * RN };
    void (*kernel)(lw_cuda_product) = lw_dot_tile<DOWN, ACROSS, RM, RN, STAGES, RESIDENT, APART>;
    int bytes = STAGES * (ROWS + COLUMNS) * LW_CUDA_DEPTH;
    LW_CUDA_TRY(
        err, "loading kernels",
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    dim3 grid((unsigned)lw_tiles(p, ROWS, COLUMNS), 1, (unsigned)p->batches);
    LW_CUDA_TRY(err, "8-bit product",
                lw_launch(kernel, grid, DOWN * ACROSS * LW_WARP, (size_t)bytes, x->stream, *p));
    return LW_OK;
}

template <int M, int R, int U, bool APART>
static lw_status lw_few_rows_launch(infer_cuda *x, const lw_cuda_product *p, int blocks_per_sm,
                                    int most_chunk, lw_error *err)
{
    int chunk = p->pitch < most_chunk ? p->pitch : most_chunk, bytes = M * chunk;
    int columns = LW_CUDA_FEW_THREADS / LW_WARP * R, most = x->multiprocessors * blocks_per_sm;
    int blocks = (p->n + columns - 1) / columns;
    LW_CUDA_TRY(err, "loading kernels",
                cudaFuncSetAttribute((const void *)lw_few_rows<M, R, U, APART>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    lw_few_rows<M, R, U, APART><<<dim3((unsigned)(blocks < most ? blocks : most), (unsigned)p->batches),
                                  LW_CUDA_FEW_THREADS, (size_t)bytes, x->stream>>>(*p, chunk);
    return lw_cuda_launched("8-bit product", err);
}

#endif
