/* product.h - the shapes of matrix products: numpy's matmul, where leading dimensions broadcast and a 1-D
 * operand gets a dimension that the result drops. */
#ifndef LW_PRODUCT_H
#define LW_PRODUCT_H

#include "common/pool.h"
#include "infer/infer_backend.h"
#include "infer/tensor.h"

typedef struct lw_product {
    int64_t m, n, k;
    int64_t batches;
    int batch_rank;
    int64_t batch_dim[LW_MAX_RANK], a_stride[LW_MAX_RANK], b_stride[LW_MAX_RANK]; /* in matrices */
    int rank;                                                                     /* of the result */
    int64_t dim[LW_MAX_RANK];
} lw_product;

/* LW_E_INPUT when the shapes do not agree. */
lw_status lw_product_of(lw_product *p, const lw_tensor *a, const lw_tensor *b, lw_error *err);

/* Which matrix of a and of b belongs to result matrix `batch`. */
void lw_product_offsets(const lw_product *p, int64_t batch, int64_t *a, int64_t *b);

/* c = alpha * a * b (+ c when `accumulate`) in float32, summed in the order of k; columns spread over the
 * pool. Strides are in floats. */
typedef struct lw_float_gemm {
    int64_t m, n, k;
    const float *a, *b;
    int64_t a_row, a_column, b_row, b_column;
    float *c;
    int64_t ldc;
    float alpha;
    bool accumulate;
    lw_kept *keep_b; /* not NULL: b is the same at every call with this */
} lw_float_gemm;
lw_status lw_float_product(lw_pool *pool, const lw_float_gemm *g, lw_error *err);

#endif
