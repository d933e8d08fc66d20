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

/* One row. `share` warps (a power of 2) divide the depth, SLICE bytes each, so that their part of A stays in
 * registers while the rows of B (columns of c) stream past, I at a time, and a block reads these whole. With
 * every such group of warps a block makes `each` columns, a multiple of I: blocks are small and many, because
 * not all multiprocessors read equally fast. WHOLE: slices and blocks are full. */
template <int I, int U, int RESIDENT, bool WHOLE>
__global__ void __launch_bounds__(LW_CUDA_FEW_THREADS, RESIDENT)
    lw_one_row(lw_cuda_product p, int share, int each)
{
    enum { WARPS = LW_CUDA_FEW_THREADS / LW_WARP, STEP = LW_WARP * 16, SLICE = U * STEP };
    __shared__ int32_t part[WARPS][LW_CUDA_ONE_EACH];
    const uint8_t *of_b = p.b + blockIdx.y * p.b_batch;
    int lane = lw_lane(), warp = (int)(threadIdx.x / LW_WARP), columns = each * (WARPS / share);
    int first = (int)blockIdx.x * columns, n0 = first + warp / share * each;
#pragma unroll 1
    for (int k0 = 0; k0 < (WHOLE ? 1 : p.pitch); k0 += share * SLICE) {
        int k = k0 + warp % share * SLICE + lane * 16;
        int rest = WHOLE ? SLICE : p.pitch - k; /* beyond it any bytes do: those of A are 0 there */
        int depth = WHOLE ? SLICE : p.k - k;
        k = rest > 0 ? k : 0;
        const uint8_t *a_at = p.a + blockIdx.y * p.a_batch + k;
        uint4 a[U], b[I][U];
#pragma unroll
        for (int r = 0; r < I; r++) {
            const uint8_t *row = of_b + (int64_t)(WHOLE || n0 + r < p.n ? n0 + r : p.n - 1) * p.pitch + k;
#pragma unroll
            for (int u = 0; u < U; u++)
                b[r][u] = lw_stream_load4(row + (u * STEP < rest ? u * STEP : 0));
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            a[u] = make_uint4(0, 0, 0, 0);
            if (u * STEP < depth) {
                a[u] = *(const uint4 *)(a_at + u * STEP);
                a[u].x ^= p.flip, a[u].y ^= p.flip, a[u].z ^= p.flip, a[u].w ^= p.flip;
            }
        }
#pragma unroll 1
        for (int j = 0;;) {
#pragma unroll
            for (int r = 0; r < I; r++) {
                int32_t sum = 0;
#pragma unroll
                for (int u = 0; u < U; u++)
                    sum = lw_dot16<false>(a[u], b[r][u], sum);
                sum = lw_reduce_add_xor(LW_ALL_LANES, sum, LW_WARP);
                if (lane == 0)
                    part[warp][j + r] = sum + (k0 ? part[warp][j + r] : 0);
            }
            j += I;
            if (j >= each)
                break;
#pragma unroll
            for (int r = 0; r < I; r++) {
                int n = WHOLE || n0 + j + r < p.n ? n0 + j + r : p.n - 1;
                const uint8_t *row = of_b + (int64_t)n * p.pitch + k;
#pragma unroll
                for (int u = 0; u < U; u++)
                    b[r][u] = lw_stream_load4(row + (u * STEP < rest ? u * STEP : 0));
            }
        }
    }
    lw_batch_of(&p, (int)blockIdx.y); /* not above: its pointers would take registers all the while */
    int of = (int)threadIdx.x, column = first + of;
    bool mine = of < columns && column < p.n;
    lw_column c;
    if (mine)
        c = lw_column_of(&p, lw_a_zero(&p), column);
    __syncthreads();
    if (mine) {
        int32_t sum = 0;
        for (int w = 0; w < share; w++)
            sum += part[of / each * share + w][of % each];
        lw_store_one(&p, sum, 0, column, &c);
    }
}

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

/* DOWN x ACROSS warps, each 4 x 8 lanes, each lane RM x RN results. Lane (y, x) of its warp holds rows
 * y + 8 i (those between are the next warp's below) and columns x + 8 j, so that every row's segments change
 * places alike and an address is a register and a constant. Lanes that differ in bit 0 alone have one y, in
 * bit 1 alone one x: then shared memory serves 16 of them at a time. */
template <int DOWN, int ACROSS, int RM, int RN, int DEPTH, int STAGES, int RESIDENT, int UNROLL, bool APART>
__global__ void __launch_bounds__(DOWN *ACROSS *LW_WARP, RESIDENT) lw_dot_tile(lw_cuda_product p)
{
    enum { ROWS = DOWN * 4 * RM, COLUMNS = ACROSS * 8 * RN, THREADS = DOWN * ACROSS * LW_WARP };
    enum { SEGMENTS = DEPTH / 16, BYTES = (ROWS + COLUMNS) * DEPTH, LAST = (STAGES - 1) * BYTES };
    static_assert(DOWN % 2 == 0, "two warps share 8 RM rows");
    LW_DYNAMIC_SHARED(uint8_t, shared);
    lw_batch_of(&p, (int)blockIdx.z);
    int row0, column0;
    lw_tile_of(&p, ROWS, COLUMNS, &row0, &column0);
    int lane = lw_lane(), across = (int)(threadIdx.x / LW_WARP) % ACROSS,
        down = (int)(threadIdx.x / LW_WARP) / ACROSS;
    int y = down / 2 * (8 * RM) + down % 2 * 4 + (lane >> 1 & 1) + (lane >> 2 & 2);
    int x = across * (8 * RN) + (lane & 1) + (lane >> 1 & 2) + (lane >> 2 & 4);
    lw_filler<ROWS, COLUMNS, THREADS, DEPTH> filler;
    uint32_t base = lw_shared_address(shared);
    lw_fill_begin(&filler, &p, base, row0, column0);
    int32_t sum[RM][RN] = {};
    int stages = (p.pitch + DEPTH - 1) / DEPTH;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < stages)
            lw_fill_stage(&filler, &p, s * BYTES, s);
        lw_copy_close();
    }
    uint32_t of_a = base + lw_swizzled<DEPTH>(y, 0), of_b = base + ROWS * DEPTH + lw_swizzled<DEPTH>(x, 0);
    int at = 0, next_at = LAST;
#pragma unroll 1
    for (int k = 0; k < stages; k++) {
        lw_copy_wait<STAGES - 2>();
        if (p.flip) { /* of the segments that this thread has copied; the others see them after the barrier */
#pragma unroll
            for (int i = 0; i < lw_filler<ROWS, COLUMNS, THREADS, DEPTH>::OF_A; i++) {
                uint32_t mine = filler.to + at + i * lw_filler<ROWS, COLUMNS, THREADS, DEPTH>::APART * DEPTH;
                uint4 v = lw_shared_load4(mine);
                v.x ^= p.flip, v.y ^= p.flip, v.z ^= p.flip, v.w ^= p.flip;
                lw_shared_store4(mine, v);
            }
        }
        __syncthreads();
        int next = k + STAGES - 1;
        if (next < stages)
            lw_fill_stage(&filler, &p, next_at, next);
        lw_copy_close();
        uint32_t row = of_a + at, column = of_b + at;
#pragma unroll UNROLL
        for (int segment = 0; segment < SEGMENTS; segment++) {
            uint4 b[RN];
#pragma unroll
            for (int j = 0; j < RN; j++)
                b[j] = lw_shared_load4((column ^ (segment << 4)) + j * 8 * DEPTH);
#pragma unroll
            for (int i = 0; i < RM; i++) {
                uint4 a = lw_shared_load4((row ^ (segment << 4)) + i * 8 * DEPTH);
#pragma unroll
                for (int j = 0; j < RN; j++)
                    sum[i][j] = lw_dot16<APART>(a, b[j], sum[i][j]);
            }
        }
        at = at == LAST ? 0 : at + BYTES;
        next_at = next_at == LAST ? 0 : next_at + BYTES;
    }
    lw_copy_wait<0>();
    __syncthreads();
    int32_t a_zero = lw_a_zero(&p);
#pragma unroll
    for (int j = 0; j < RN; j++) {
        lw_column c = lw_column_of(&p, a_zero, column0 + x + 8 * j);
#pragma unroll
        for (int i = 0; i < RM; i++)
            lw_put(&p, shared, ROWS, COLUMNS, row0, column0, sum[i][j], y + 8 * i, x + 8 * j, &c);
    }
    if (p.kind == LW_TO_BYTES) {
        __syncthreads();
        lw_store_tile(&p, shared, ROWS, COLUMNS, row0, column0, THREADS);
    }
}

template <int DOWN, int ACROSS, int RM, int RN, int DEPTH, int STAGES, int RESIDENT, int UNROLL, bool APART>
static lw_status lw_dot_tile_launch(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    enum { ROWS = DOWN * 4 * RM, COLUMNS = ACROSS * 8 * RN };
    return lw_launch_tiles(x, p, lw_dot_tile<DOWN, ACROSS, RM, RN, DEPTH, STAGES, RESIDENT, UNROLL, APART>,
                           ROWS, COLUMNS, DOWN * ACROSS * LW_WARP, STAGES * (ROWS + COLUMNS) * DEPTH, err);
}

template <int I, int U, int RESIDENT_WHOLE, int RESIDENT>
static lw_status lw_one_row_launch(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    enum { WARPS = LW_CUDA_FEW_THREADS / LW_WARP, SLICE = U * LW_WARP * 16 };
    int share = 1, each = LW_CUDA_ONE_EACH;
    while (share < WARPS && share * SLICE < p->pitch)
        share *= 2;
    int groups = WARPS / share;
    /* fewer columns a block where blocks would not fill the device */
    while (each > I && (int64_t)p->n * p->batches < (int64_t)each * groups * RESIDENT * x->multiprocessors)
        each /= 2;
    int columns = each * groups;
    dim3 grid((unsigned)((p->n + columns - 1) / columns), (unsigned)p->batches);
    if (p->k == share * SLICE && p->pitch == p->k && p->n % columns == 0)
        lw_one_row<I, U, RESIDENT_WHOLE, true><<<grid, LW_CUDA_FEW_THREADS, 0, x->stream>>>(*p, share, each);
    else
        lw_one_row<I, U, RESIDENT, false><<<grid, LW_CUDA_FEW_THREADS, 0, x->stream>>>(*p, share, each);
    return lw_cuda_launched("8-bit product", err);
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
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, M * most_chunk));
    lw_few_rows<M, R, U, APART><<<dim3((unsigned)(blocks < most ? blocks : most), (unsigned)p->batches),
                                  LW_CUDA_FEW_THREADS, (size_t)bytes, x->stream>>>(*p, chunk);
    return lw_cuda_launched("8-bit product", err);
}

#endif
