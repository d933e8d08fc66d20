/* infer_cuda_product.cu - 8-bit products by dot products, and the choice among all products. */
#include "infer/infer_cuda_dot.cuh"

#include "common/backend.h"

/* Results from sums that another library made. */
__global__ void __launch_bounds__(256) lw_finish(lw_cuda_product p, const int32_t *sums)
{
    /* a thread's column stays the same: 256 neighbouring columns, rows in steps */
    int j = (int)(blockIdx.x * 256 + threadIdx.x) * 4;
    if (j >= p.n)
        return;
    int32_t a_zero = lw_a_zero(&p);
    lw_column c[4];
#pragma unroll
    for (int f = 0; f < 4; f++)
        c[f] = lw_column_of(&p, a_zero, j + f);
    for (int i = (int)blockIdx.y; i < p.m; i += (int)gridDim.y) {
        const int32_t *from = sums + (int64_t)i * p.n + j;
        uint8_t *to = (uint8_t *)p.c + i * p.ldc + j;
        if (p.kind == LW_TO_BYTES && j + 3 < p.n && (((uintptr_t)from & 15) | ((uintptr_t)to & 3)) == 0) {
            int4 v = __ldcs((const int4 *)from);
            uchar4 q;
            q.x = lw_byte_of(&p, lw_sum_of(&p, v.x, i, &c[0]), &c[0]);
            q.y = lw_byte_of(&p, lw_sum_of(&p, v.y, i, &c[1]), &c[1]);
            q.z = lw_byte_of(&p, lw_sum_of(&p, v.z, i, &c[2]), &c[2]);
            q.w = lw_byte_of(&p, lw_sum_of(&p, v.w, i, &c[3]), &c[3]);
            *(uchar4 *)to = q;
            continue;
        }
#pragma unroll
        for (int f = 0; f < 4; f++)
            if (j + f < p.n)
                lw_store_one(&p, from[f], i, j + f, &c[f]);
    }
}

extern "C" lw_status lw_cuda_finish(infer_cuda *x, const lw_cuda_product *p, const int32_t *sums,
                                    lw_error *err)
{
    unsigned across = (unsigned)((p->n + 1023) / 1024), most = (unsigned)x->multiprocessors * 16 / across + 1;
    unsigned down = (unsigned)p->m < most ? (unsigned)p->m : most;
    lw_finish<<<dim3(across, down), 256, 0, x->stream>>>(*p, sums);
    return lw_cuda_launched("requantizing", err);
}

/* Unsigned bytes become signed: 128 less. */
__global__ void __launch_bounds__(256) lw_flip(lw_cuda_product p, uint4 *to, int64_t count)
{
    const uint4 *from = (const uint4 *)p.a;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        uint4 v = from[i];
        v.x ^= p.flip, v.y ^= p.flip, v.z ^= p.flip, v.w ^= p.flip;
        to[i] = v;
    }
}

extern "C" lw_status lw_cuda_few_rows(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    if (x->policy == LW_CUDA_INT)
        return p->m == 1 ? lw_few_rows_launch<LW_CUDA_INT_ONE, true>(x, p, LW_CUDA_FEW_BLOCKS_4,
                                                                     LW_CUDA_INT_ONE_CHUNK, err)
                         : lw_few_rows_launch<LW_CUDA_FEW_4, true>(x, p, LW_CUDA_FEW_BLOCKS_4,
                                                                   LW_CUDA_FEW_CHUNK_4, err);
    if (p->m == 1)
        return lw_one_row_launch<LW_CUDA_ONE>(x, p, err);
    if (p->m <= 4)
        return lw_few_rows_launch<LW_CUDA_FEW_4, false>(x, p, LW_CUDA_FEW_BLOCKS_4, LW_CUDA_FEW_CHUNK_4, err);
    if (x->policy == LW_CUDA_TENSOR)
        return lw_cuda_few_tensor(x, p, err);
    return lw_few_rows_launch<LW_CUDA_FEW_8, false>(x, p, LW_CUDA_FEW_BLOCKS_8, LW_CUDA_FEW_CHUNK_8, err);
}

extern "C" lw_status lw_cuda_dot_tiles(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    if (x->policy == LW_CUDA_INT)
        return lw_dot_tile_launch<LW_CUDA_INT_TILE, true>(x, p, err);
    if (lw_tiles(p, LW_CUDA_DOT_ROWS, LW_CUDA_DOT_COLUMNS) * p->batches >=
            (int64_t)LW_CUDA_DOT_WAVES * x->multiprocessors &&
        x->shared_bytes >= LW_CUDA_DOT_SHARED)
        return lw_dot_tile_launch<LW_CUDA_DOT_LARGE, false>(x, p, err);
    return lw_dot_tile_launch<LW_CUDA_DOT_SMALL, false>(x, p, err);
}

/* Rows up to which a policy streams the weights past the rows. */
static int few(int policy)
{
    return policy == LW_CUDA_INT ? 4 : 8;
}

/* cuBLASLt takes signed bytes and gives sums. *done stays false where it does not apply, or where there is no
 * memory for what it needs. */
static lw_status by_library(infer_cuda *x, const lw_cuda_product *p, bool *done, lw_error *err)
{
    void *sums, *flipped = NULL;
    const uint8_t *a = p->a;
    lw_status status = LW_OK;
    if (p->batches != 1 || p->patches.offset || p->positions || !lw_lt_usable(x))
        return LW_OK;
    LW_TRY(lw_cuda_allocate_if_free(x, &sums, (int64_t)p->m * p->n * 4, err));
    if (!sums)
        return LW_OK;
    if (p->flip) {
        int64_t count = ((p->m - 1) * p->lda + p->k + 15) / 16, blocks = (count + 255) / 256;
        LW_TRY_END(lw_cuda_allocate_if_free(x, &flipped, p->m * p->lda, err));
        if (!flipped)
            goto end;
        lw_flip<<<(unsigned)(blocks < 1 << 16 ? blocks : 1 << 16), 256, 0, x->stream>>>(*p, (uint4 *)flipped,
                                                                                        count);
        LW_TRY_END(lw_cuda_launched("making bytes signed", err));
        a = (const uint8_t *)flipped;
    }
    LW_TRY_END(lw_lt_product(x, p->m, p->n, p->k, a, p->lda, p->b, p->pitch, (int32_t *)sums, done, err));
    if (*done)
        status = lw_cuda_finish(x, p, (const int32_t *)sums, err);
end:
    lw_cuda_release(x, flipped);
    lw_cuda_release(x, sums);
    return status;
}

extern "C" lw_status lw_cuda_multiply(infer_cuda *x, const lw_cuda_product *p, lw_error *err)
{
    bool done = false;
    if (p->m == 0 || p->n == 0 || p->batches == 0)
        return LW_OK;
    if (x->library) {
        LW_TRY(by_library(x, p, &done, err));
        return done ? LW_OK
                    : lw_fail(err, LW_E_UNSUPPORTED,
                              "no cuBLASLt, not for such a product, or no memory for it");
    }
    if (p->m <= few(x->policy) && !p->patches.offset && !p->positions)
        return lw_cuda_few_rows(x, p, err);
    if (x->policy != LW_CUDA_TENSOR)
        return lw_cuda_dot_tiles(x, p, err);
    if (p->m >= LW_CUDA_LT_ROWS &&
        (int64_t)p->m * p->n * p->k >= (p->flip ? LW_CUDA_LT_FLIPPED_WORK : LW_CUDA_LT_WORK))
        LW_TRY(by_library(x, p, &done, err));
    return done ? LW_OK : lw_cuda_tensor_tiles(x, p, err);
}

extern "C" const char *lw_cuda_multiply_kernel(int policy, int64_t m)
{
    if (m <= few(policy))
        return policy == LW_CUDA_INT               ? "int8 product, few rows"
               : policy == LW_CUDA_TENSOR && m > 4 ? "int8 product, few rows, tensor cores"
                                                   : "int8 product, few rows, DP4A";
    return policy == LW_CUDA_INT      ? "int8 product, tiles"
           : policy == LW_CUDA_TENSOR ? "int8 product, tensor cores"
                                      : "int8 product, tiles, DP4A";
}
