/* infer_cuda_product.cuh - what the kernels of 8-bit products share: how tiles are filled, and what becomes
 * of a sum. */
#ifndef LW_INFER_CUDA_PRODUCT_CUH
#define LW_INFER_CUDA_PRODUCT_CUH

#include "common/cuda_check.h"
#include "common/dp4a.cuh"
#include "common/shared.cuh"
#include "infer/infer_cuda.h"
#include "infer/infer_tuning.h"
#include "infer/quant.h"

/* ---- sums -> results ------------------------------------------------------------------------------- */

/* What belongs to one column of c. */
typedef struct lw_column {
    float scale, bias;
    int32_t fixed; /* of the sum: everything that does not depend on the row */
    int32_t b_zero;
} lw_column;

LW_DEVICE void lw_batch_of(lw_cuda_product *p, int z)
{
    p->a += z * p->a_batch;
    p->b += z * p->b_batch;
    p->b_sum += p->b_sum ? z * p->b_sum_batch : 0;
    p->a_sum += p->a_sum ? z * p->a_sum_batch : 0;
    p->b_zero += p->b_zero ? z * p->column_batch * p->b_zero_step : 0;
    p->bias += p->bias ? z * p->column_batch * p->bias_step : 0;
    p->b_scale += p->b_scale ? z * p->column_batch * p->b_scale_step : 0;
    p->float_bias += p->float_bias ? z * p->column_batch : 0;
    int64_t c = z * p->c_batch * (p->kind == LW_TO_BYTES ? 1 : 4);
    p->c = (char *)p->c + c;
}

LW_DEVICE int32_t lw_a_zero(const lw_cuda_product *p)
{
    return p->a_zero_at ? (int8_t)(*p->a_zero_at ^ (uint8_t)p->flip) : p->a_zero;
}

/* sum (a - za)(b - zb) = sum ab - za sum b - zb sum a + k za zb; modulo 2^32 on the way, exact in the end. */
LW_DEVICE lw_column lw_column_of(const lw_cuda_product *p, int32_t a_zero, int j)
{
    lw_column c;
    j = j < p->n ? j : p->n - 1;
    c.b_zero = p->b_zero ? (int8_t)(p->b_zero[j * p->b_zero_step] ^ p->b_zero_flip) : 0;
    uint32_t fixed = (uint32_t)p->k * (uint32_t)a_zero * (uint32_t)c.b_zero -
                     (uint32_t)a_zero * (uint32_t)(p->b_sum ? p->b_sum[j] : 0);
    c.fixed = (int32_t)(fixed + (p->bias ? (uint32_t)p->bias[j * p->bias_step] : 0));
    c.scale = 1;
    c.bias = p->float_bias ? p->float_bias[j] : 0;
    if (p->kind != LW_TO_INT32) {
        float a_scale = p->a_scale_at ? *p->a_scale_at : p->a_scale;
        c.scale = p->alpha * lw_requantize_multiplier(a_scale, p->b_scale[j * p->b_scale_step], p->y_scale);
    }
    return c;
}

LW_DEVICE int32_t lw_sum_of(const lw_cuda_product *p, int32_t dot, int i, const lw_column *c)
{
    uint32_t of_a = p->a_sum ? (uint32_t)p->a_sum[i] : 0;
    return (int32_t)((uint32_t)dot + (uint32_t)c->fixed - (uint32_t)c->b_zero * of_a);
}

LW_DEVICE int64_t lw_place_of(const lw_cuda_product *p, int i, int j)
{
    if (!p->positions)
        return (int64_t)i * p->ldc + j;
    int image = (int)lw_divide((uint32_t)i, p->by_positions);
    return image * p->image + (int64_t)j * p->positions + (i - image * p->positions);
}

LW_DEVICE void lw_store_wide(const lw_cuda_product *p, int32_t sum, int i, int j, const lw_column *c)
{
    int64_t at = lw_place_of(p, i, j);
    if (p->kind == LW_TO_INT32) {
        ((int32_t *)p->c)[at] = sum;
    } else {
        float y = (float)sum * c->scale;
        ((float *)p->c)[at] = p->float_bias ? y + c->bias : y;
    }
}

LW_DEVICE uint8_t lw_byte_of(const lw_cuda_product *p, int32_t sum, const lw_column *c)
{
    return (uint8_t)lw_requantize(sum, c->scale, p->zero, p->low, p->high);
}

/* One result on its own. */
LW_DEVICE void lw_store_one(const lw_cuda_product *p, int32_t dot, int i, int j, const lw_column *c)
{
    int32_t sum = lw_sum_of(p, dot, i, c);
    if (p->kind == LW_TO_BYTES)
        ((uint8_t *)p->c)[lw_place_of(p, i, j)] = lw_byte_of(p, sum, c);
    else
        lw_store_wide(p, sum, i, j, c);
}

/* One result of a tile: bytes are collected in shared memory (by rows, or by columns where positions are
 * neighbours in c) for lw_store_tile(). */
LW_DEVICE void lw_put(const lw_cuda_product *p, uint8_t *bytes, int rows, int columns, int row0, int column0,
                      int32_t dot, int i, int j, const lw_column *c)
{
    if (row0 + i >= p->m || column0 + j >= p->n)
        return;
    int32_t sum = lw_sum_of(p, dot, row0 + i, c);
    if (p->kind == LW_TO_BYTES)
        bytes[p->positions ? j * (rows + 16) + i : i * (columns + 16) + j] = lw_byte_of(p, sum, c);
    else
        lw_store_wide(p, sum, row0 + i, column0 + j, c);
}

/* Stores the bytes of a tile, 16 at a time where they lie together and aligned. */
LW_DEVICE void lw_store_tile(const lw_cuda_product *p, const uint8_t *bytes, int rows, int columns, int row0,
                             int column0, int threads)
{
    int across = p->positions ? rows : columns, lines = p->positions ? columns : rows;
    for (int s = (int)threadIdx.x; s < lines * (across / 16); s += threads) {
        int line = s / (across / 16), at = s % (across / 16) * 16;
        const uint8_t *from = bytes + line * (across + 16) + at;
        int i = row0 + (p->positions ? at : line), j = column0 + (p->positions ? line : at);
        if (i >= p->m || j >= p->n)
            continue;
        int most = p->positions ? p->m - i : p->n - j;
        uint8_t *to = (uint8_t *)p->c + lw_place_of(p, i, j);
        bool whole = most >= 16 && ((uintptr_t)to & 15) == 0;
        if (p->positions)
            whole = whole &&
                    lw_divide((uint32_t)i, p->by_positions) == lw_divide((uint32_t)i + 15, p->by_positions);
        if (whole) {
            *(uint4 *)to = *(const uint4 *)from;
            continue;
        }
        for (int k = 0; k < 16 && k < most; k++)
            ((uint8_t *)p->c)[p->positions ? lw_place_of(p, i + k, j) : lw_place_of(p, i, j + k)] = from[k];
    }
}

/* ---- tiles ----------------------------------------------------------------------------------------- */

/* First byte of row i of A. */
LW_DEVICE const uint8_t *lw_row_of(const lw_cuda_product *p, int i)
{
    if (!p->patches.offset)
        return p->a + i * p->lda;
    const lw_cuda_patches *v = &p->patches;
    uint32_t image = lw_divide((uint32_t)i, v->count), in_image = (uint32_t)i - image * v->count.divisor;
    uint32_t i0 = lw_divide(in_image, v->plane), in_plane = in_image - i0 * v->plane.divisor;
    uint32_t i1 = lw_divide(in_plane, v->line), i2 = in_plane - i1 * v->line.divisor;
    return p->a + (int64_t)image * v->image_bytes + (int64_t)i0 * v->step0 + (int64_t)i1 * v->step1 +
           (int64_t)i2 * v->step2;
}

/* Where segment s of a row of A lies from the row's start; behind the last one any readable place will do,
 * since B is 0 there. */
LW_DEVICE int32_t lw_segment_of(const lw_cuda_product *p, int s)
{
    if (p->patches.offset)
        return p->patches.offset[s];
    return s * 16 < p->k ? s * 16 : 0;
}

/* Rows of DEPTH bytes in shared memory; the 16-byte segments of a row change places so that one segment of 8
 * neighbouring rows lies in 8 different groups of banks. */
template <int DEPTH> LW_DEVICE int lw_swizzled(int row, int segment)
{
    return row * DEPTH + ((segment ^ (DEPTH == 64 ? row >> 1 & 3 : row & 7)) << 4);
}

/* Fills the stages of a tile: ROWS rows of A, then COLUMNS rows of B, DEPTH bytes of each. Each thread always
 * copies the same segment, of rows as far apart as all threads reach: a[], b[] are where its rows start. */
template <int ROWS, int COLUMNS, int THREADS, int DEPTH> struct lw_filler {
    enum { SEGMENTS = DEPTH / 16, APART = THREADS / SEGMENTS, OF_A = ROWS / APART, OF_B = COLUMNS / APART };
    static_assert(APART % 8 == 0 && OF_A * APART == ROWS && OF_B * APART == COLUMNS, "rows come out even");
    const uint8_t *a[OF_A], *b[OF_B];
    uint32_t to; /* its first segment of the first stage */
};

template <int ROWS, int COLUMNS, int THREADS, int DEPTH>
LW_DEVICE void lw_fill_begin(lw_filler<ROWS, COLUMNS, THREADS, DEPTH> *f, const lw_cuda_product *p,
                             uint32_t shared, int row0, int column0)
{
    enum { SEGMENTS = DEPTH / 16, APART = THREADS / SEGMENTS };
    int segment = (int)threadIdx.x % SEGMENTS, row = (int)threadIdx.x / SEGMENTS;
    f->to = shared + lw_swizzled<DEPTH>(row, segment);
#pragma unroll
    for (int i = 0; i < ROWS / APART; i++) {
        int r = row0 + row + i * APART;
        f->a[i] = lw_row_of(p, r < p->m ? r : p->m - 1);
    }
#pragma unroll
    for (int i = 0; i < COLUMNS / APART; i++) {
        int r = column0 + row + i * APART;
        f->b[i] = p->b + (int64_t)(r < p->n ? r : p->n - 1) * p->pitch + segment * 16;
    }
}

/* Copies stage k to the place that lies `at` bytes behind the first. A stage may be deeper than what rows are
 * filled up to, and then end beyond them. */
template <int ROWS, int COLUMNS, int THREADS, int DEPTH>
LW_DEVICE void lw_fill_stage(const lw_filler<ROWS, COLUMNS, THREADS, DEPTH> *f, const lw_cuda_product *p,
                             int at, int k)
{
    enum { SEGMENTS = DEPTH / 16, APART = THREADS / SEGMENTS };
    int s = k * SEGMENTS + (int)threadIdx.x % SEGMENTS;
    bool there = DEPTH <= LW_CUDA_DEPTH || s * 16 < p->pitch;
    int32_t offset = there ? lw_segment_of(p, s) : 0;
#pragma unroll
    for (int i = 0; i < ROWS / APART; i++)
        lw_copy16_at(f->to + at + i * APART * DEPTH, f->a[i] + offset, true);
#pragma unroll
    for (int i = 0; i < COLUMNS / APART; i++)
        lw_copy16_at(f->to + at + (ROWS + i * APART) * DEPTH, f->b[i] + (int64_t)k * DEPTH, there);
}

/* Tiles in an order in which thread blocks that run together share rows of A and of B: groups of 8 rows of
 * tiles, column by column. */
LW_DEVICE void lw_tile_of(const lw_cuda_product *p, int rows, int columns, int *row0, int *column0)
{
    int down = (p->m + rows - 1) / rows, across = (p->n + columns - 1) / columns, tile = (int)blockIdx.x;
    int group = tile / (8 * across), first = group * 8, high = down - first < 8 ? down - first : 8;
    int within = tile - group * 8 * across;
    *row0 = (first + within % high) * rows;
    *column0 = within / high * columns;
}

static inline int64_t lw_tiles(const lw_cuda_product *p, int rows, int columns)
{
    return ((int64_t)(p->m + rows - 1) / rows) * ((p->n + columns - 1) / columns);
}

/* Launches a kernel that makes a tile of c in each block. */
static inline lw_status lw_launch_tiles(infer_cuda *x, const lw_cuda_product *p,
                                        void (*kernel)(lw_cuda_product), int rows, int columns, int threads,
                                        int shared_bytes, lw_error *err)
{
    LW_CUDA_TRY(err, "loading kernels",
                cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     shared_bytes));
    dim3 grid((unsigned)lw_tiles(p, rows, columns), 1, (unsigned)p->batches);
    LW_CUDA_TRY(err, "8-bit product",
                lw_launch(kernel, grid, (unsigned)threads, (size_t)shared_bytes, x->stream, *p));
    return LW_OK;
}

#endif
