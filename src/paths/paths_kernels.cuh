/* paths_kernels.cuh - the kernels that paths_kernels.h describes, for every word and step. */
#ifndef LW_PATHS_KERNELS_CUH
#define LW_PATHS_KERNELS_CUH

#include "common/minplus.cuh"
#include "paths/paths_kernels.h"

template <typename word> struct lw_vec16 {
    alignas(16) word w[16 / sizeof(word)];
};

template <typename word> static __device__ __forceinline__ void lw_move16(word *to, const word *from)
{
    *(lw_vec16<word> *)to = *(const lw_vec16<word> *)from;
}

/* The block row and the column tile that this thread block computes; Q column tiles make a block column. */
template <int Q>
static __device__ __forceinline__ void lw_paths_place(const lw_paths_product &p, int *row, int *col)
{
    int t = (int)blockIdx.x;
    if (p.cross) {
        int in_row = (p.cols - 1) * Q;
        if (t < in_row) {
            *row = p.at;
            *col = t + (t >= p.skip * Q ? Q : 0);
        } else {
            t -= in_row;
            int low = min(p.skip, p.at), high = max(p.skip, p.at), i = t / Q;
            i += i >= low;
            i += low != high && i >= high;
            *row = i;
            *col = p.at * Q + t % Q;
        }
        return;
    }
    /* Bands of column tiles: what a band reads of b and the C tiles in flight stay in the L2 cache. */
    constexpr int BAND = 16;
    int rows = p.rows - p.n_skip, cols = (p.cols - p.n_skip) * Q;
    int per = rows * BAND, band = t / per, in = t - band * per, width = min(BAND, cols - band * BAND);
    int i = in / width, j = band * BAND + in - i * width;
    *row = i + (i >= p.skip ? p.n_skip : 0);
    *col = j + (j >= p.skip * Q ? p.n_skip * Q : 0);
}

/* The order in which a thread goes through its TM x TN accumulators: neighbours share an operand, which
 * then comes from the reuse cache instead of the register file. */
enum { LW_ORDER_ROWS, LW_ORDER_SNAKE };

/* Tile of WR x WC warps, a warp of 4 x 8 threads, a thread of TM x TN words. STAGES shared-memory stages of
 * DEPTH pivots; SPLIT of every 8 steps use two pipes (lw_minplus2). RESIDENT thread blocks fit on a
 * multiprocessor. */
template <typename word, int LANES, int STEP, int TM, int TN, int WR, int WC, int DEPTH, int STAGES,
          int RESIDENT, int SPLIT, int ORDER>
__global__ void __launch_bounds__(32 * WR * WC, RESIDENT) lw_paths_product_kernel(lw_paths_product p)
{
    constexpr int V = 16 / sizeof(word), BM = WR * 4 * TM, BN = WC * 8 * TN, THREADS = 32 * WR * WC;
    constexpr int STAGE = DEPTH * (BM + BN);
    static_assert(DEPTH * BM % (THREADS * V) == 0 && DEPTH * BN % (THREADS * V) == 0, "whole copies");
    static_assert(BM % (BN * LANES) == 0 && BM % DEPTH == 0, "whole blocks");
    extern __shared__ __align__(16) unsigned char lw_shared[];
    word *shared = (word *)lw_shared;

    int ti, tj;
    lw_paths_place<BM / (BN * LANES)>(p, &ti, &tj);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = warp / WC * (4 * TM) + lane / 8 * V, col = warp % WC * (8 * TN) + lane % 8 * V;
    const word *a = (const word *)p.a + ti * p.pitch * BM + threadIdx.x * V;
    const word *b = (const word *)p.b + tj * p.pitch * BN + threadIdx.x * V;
    word *c = (word *)p.c + ((int64_t)ti * BM + row) * p.ldc + (int64_t)tj * BN + col;
    word *into = shared + threadIdx.x * V;

#define LW_FILL(stage)                                                                                       \
    do {                                                                                                     \
        _Pragma("unroll") for (int x = 0; x < DEPTH * BM; x += THREADS * V)                                  \
            lw_copy16(into + (stage)*STAGE + x, a + x);                                                      \
        _Pragma("unroll") for (int x = 0; x < DEPTH * BN; x += THREADS * V)                                  \
            lw_copy16(into + (stage)*STAGE + DEPTH * BM + x, b + x);                                         \
        a += DEPTH * BM, b += DEPTH * BN;                                                                    \
    } while (0)

    int left = p.depth / DEPTH;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < left)
            LW_FILL(s);
        lw_copy_close();
    }
    int64_t ldc = p.ldc;
    word acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += V)
            lw_move16(&acc[i][j], c + (i / V * 4 * V + i % V) * ldc + j / V * 8 * V);

    for (int stage = 0, next = STAGES - 1; left > 0; left--) {
        lw_copy_wait<STAGES - 2>();
        __syncthreads(); /* the stage is there for all, and all have done with the one before */
        if (left >= STAGES)
            LW_FILL(next);
        lw_copy_close();
        const word *sa = shared + stage * STAGE + row, *sb = shared + stage * STAGE + DEPTH * BM + col;
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        next = next == STAGES - 1 ? 0 : next + 1;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 2) {
            word fa[2][TM], fb[2][TN];
#pragma unroll
            for (int h = 0; h < 2; h++) {
#pragma unroll
                for (int i = 0; i < TM; i += V)
                    lw_move16(&fa[h][i], sa + (k + h) * BM + i / V * 4 * V);
#pragma unroll
                for (int j = 0; j < TN; j += V)
                    lw_move16(&fb[h][j], sb + (k + h) * BN + j / V * 8 * V);
            }
#pragma unroll
            for (int x = 0; x < TM * TN; x++) {
                int i = x / TN, j = x % TN;
                if (ORDER == LW_ORDER_SNAKE) { /* down two columns, up the next two */
                    int pair = x / (2 * TM), y = x % (2 * TM), r = y / 2;
                    i = pair % 2 ? TM - 1 - r : r;
                    j = pair * 2 + (y % 2 ^ r % 2);
                }
                acc[i][j] =
                    x % 8 < SPLIT
                        ? lw_minplus2<STEP, true>(acc[i][j], fa[0][i], fb[0][j], fa[1][i], fb[1][j], p.one)
                        : lw_minplus2<STEP, false>(acc[i][j], fa[0][i], fb[0][j], fa[1][i], fb[1][j], p.one);
            }
        }
    }
#undef LW_FILL
    ldc = lw_forget(ldc);
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += V)
            lw_move16(c + (i / V * 4 * V + i % V) * ldc + j / V * 8 * V, &acc[i][j]);
}

/* grid: block rows (or columns), words of depth / LW_PACK_WORDS, 2: a and b. */
template <typename word, int LANES, int BM, int BN>
__global__ void __launch_bounds__(LW_PACK_THREADS) lw_paths_pack_kernel(lw_paths_pack p)
{
    constexpr int V = 16 / sizeof(word), DEPTH = LW_PACK_WORDS * LANES, Q = BM / (BN * LANES);
    __shared__ word t[LW_PACK_WORDS][BM + 1];
    int64_t block = blockIdx.x, k = (int64_t)blockIdx.y * DEPTH;
    if (blockIdx.z == 0 && p.a) {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const word *from = (const word *)p.c + block * BM * p.ldc + (p.k0 + k) / LANES + lane;
        for (int r = warp; r < BM; r += LW_PACK_THREADS / 32)
            t[lane][r] = from[r * p.ldc];
        __syncthreads();
        word *to = (word *)p.a + (block * p.pitch + p.offset + k) * BM;
        for (int x = threadIdx.x; x < DEPTH * BM; x += LW_PACK_THREADS) {
            word v = t[x / BM / LANES][x % BM];
            if (LANES == 2) {
                uint32_t half = (uint32_t)v >> (x / BM % 2 * 16) & 0xffff;
                v = (word)(half | half << 16);
            }
            to[x] = v;
        }
    } else if (blockIdx.z == 1 && p.b) {
        for (int x = threadIdx.x * V; x < DEPTH * BN * Q; x += LW_PACK_THREADS * V) {
            int y = x % (BN * Q), r = x / (BN * Q);
            const word *from = (const word *)p.c + (p.k0 + k + r) * p.ldc + block * BN * Q + y;
            word *to = (word *)p.b + ((block * Q + y / BN) * p.pitch + p.offset + k + r) * BN + y % BN;
            lw_move16(to, from);
        }
    }
}

/* One thread block. Each pivot's row and column go through shared memory, in turn through two buffers, so
 * that one barrier a pivot is enough. */
template <typename word, typename number, int LANES, int BM>
__global__ void __launch_bounds__(BM *BM / (LW_DIAGONAL_ROWS * LW_DIAGONAL_ROWS))
    lw_paths_diagonal_kernel(lw_paths_diagonal p)
{
    constexpr int R = LW_DIAGONAL_ROWS, N = BM / R;
    __shared__ number pivot_row[2][BM], pivot_col[2][BM];
    int tx = threadIdx.x % N, ty = threadIdx.x / N;
    word *c = (word *)p.c + (p.k0 + ty * R) * p.ldc + (p.k0 + tx * R) / LANES;
    number d[R][R];
    bool negative = false;
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int j = 0; j < R; j++)
            d[i][j] = LANES == 1 ? (number)c[i * p.ldc + j]
                                 : (number)((uint32_t)c[i * p.ldc + j / 2] >> (j % 2 * 16) & 0xffff);
    for (int owner = 0; owner < N; owner++)
#pragma unroll
        for (int k = 0; k < R; k++) {
            number *rows = pivot_row[k % 2], *cols = pivot_col[k % 2];
#pragma unroll
            for (int x = 0; x < R; x++) {
                if (ty == owner)
                    rows[tx * R + x] = d[k][x];
                if (tx == owner)
                    cols[ty * R + x] = d[x][k];
            }
            negative |= ty == owner && tx == owner && d[k][k] < 0;
            __syncthreads();
#pragma unroll
            for (int i = 0; i < R; i++)
#pragma unroll
                for (int j = 0; j < R; j++) {
                    number sum = cols[ty * R + i] + rows[tx * R + j];
                    d[i][j] = sum < d[i][j] ? sum : d[i][j];
                }
        }
    if (negative)
        *p.negative = 1;
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int j = 0; j < R; j += LANES)
            c[i * p.ldc + j / LANES] =
                LANES == 1 ? (word)d[i][j] : (word)((uint32_t)d[i][j] | (uint32_t)d[i][j + LANES - 1] << 16);
}

/* A row of the table and its instances; the numbers from TM on are a line of paths_tuning.h. */
template <typename word, typename raw, int LANES, int STEP, int TM, int TN, int WR, int WC, int DEPTH,
          int STAGES, int RESIDENT, int SPLIT, int ORDER>
constexpr lw_paths_kernels lw_paths_make(const char *name, double rate, void (*diagonal)(lw_paths_diagonal))
{
    return {name,
            (int)sizeof(word),
            LANES,
            WR * 4 * TM,
            WC * 8 * TN,
            32 * WR * WC,
            STAGES * DEPTH * (WR * 4 * TM + WC * 8 * TN) * (int)sizeof(word),
            rate,
            lw_paths_product_kernel<word, LANES, STEP, TM, TN, WR, WC, DEPTH, STAGES, RESIDENT, SPLIT, ORDER>,
            lw_paths_pack_kernel<raw, LANES, WR * 4 * TM, WC * 8 * TN>,
            diagonal};
}

#endif
