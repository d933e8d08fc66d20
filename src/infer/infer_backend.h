/* infer_backend.h - the kernels of inference that have more than one implementation. Row 0 is the scalar
 * reference; every row gives the same integers, and floats within the bound that tests state. */
#ifndef LW_INFER_BACKEND_H
#define LW_INFER_BACKEND_H

#include <stdbool.h>
#include <stdint.h>
#include "common/backend.h"
#include "common/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* c[i][j] = sum_k (a[i][k] - a_zero[i]) * (b[k][j] - b_zero[j]), exact in int32 (callers bound K). Row-major.
 */
typedef struct lw_gemm {
    int64_t m, n, k;
    const void *a, *b; /* 8-bit elements */
    bool a_signed, b_signed;
    int64_t lda, ldb, ldc; /* elements from one row to the next */
    const int32_t *a_zero; /* m values, or 1 when a_zero_is_scalar */
    const int32_t *b_zero; /* n values, or 1 when b_zero_is_scalar */
    bool a_zero_is_scalar, b_zero_is_scalar;
    int32_t *c;
} lw_gemm;

/* An N-dimensional convolution (1 to 3 spatial dimensions) of one image and one group:
 *   y[o][p] = sum_c sum_q (x[c][p * stride + q * dilation - pad] - x_zero) * (w[o][c][q] - w_zero[o]);
 * outside the image x is its zero point, so that its term is 0. */
typedef struct lw_conv {
    int dims;     /* spatial */
    int64_t c, o; /* input and output channels of this group */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3]; /* pad: at the beginning */
    const void *x, *w;
    bool x_signed, w_signed;
    int32_t x_zero;
    const int32_t *w_zero; /* o values */
    int32_t *y;            /* o x product of out */
} lw_conv;

typedef struct lw_infer_backend lw_infer_backend;
struct lw_infer_backend {
    lw_backend base;
    lw_status (*gemm)(lw_pool *pool, const lw_gemm *g, lw_error *err);
    lw_status (*conv)(lw_pool *pool, const lw_conv *v, lw_error *err);
    /* y = softmax(x) over each of `rows` rows of `n` contiguous floats. */
    lw_status (*softmax)(lw_pool *pool, int64_t rows, int64_t n, const float *x, float *y, lw_error *err);
    /* y = (x - mean) / sqrt(variance + epsilon) * scale + bias over each row; bias may be NULL. mean and
     * inverse_deviation, one per row, may be NULL. */
    lw_status (*layer_norm)(lw_pool *pool, int64_t rows, int64_t n, const float *x, const float *scale,
                            const float *bias, float epsilon, float *y, float *mean, float *inverse_deviation,
                            lw_error *err);
};

extern const lw_infer_backend *const lw_infer_backends[];
extern const int lw_infer_backend_count;
extern const lw_infer_backend lw_infer_scalar, lw_infer_cpu;

#ifdef __cplusplus
}
#endif
#endif
