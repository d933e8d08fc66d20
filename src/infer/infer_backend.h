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

/* What a backend made of an operand that never changes (packed weights, a copy on a device), kept with the
 * node from one run to the next. Zero at first; the owner calls release(data) when the node goes. */
typedef struct lw_kept {
    void *data;
    void (*release)(void *data);
} lw_kept;

/* What becomes of the exact int32 sums of a product:
 *   LW_RESULT_SUMS       they are the result, int32
 *   LW_RESULT_QUANTIZED  saturate(round_half_even((float)(sum + bias[j]) * factor) + zero), 8 bits
 *   LW_RESULT_REALS      (float)(sum + bias[j]) * factor + real_bias[j], float32
 * with factor = multiplier[j] or, where row_scale is given, row_scale[i] * multiplier[j] (rounded to float32
 * first). Each operation rounds to float32; none is fused. */
typedef enum lw_result_kind { LW_RESULT_SUMS, LW_RESULT_QUANTIZED, LW_RESULT_REALS } lw_result_kind;
typedef struct lw_result {
    lw_result_kind kind;
    const int32_t *bias;     /* n values; NULL: none */
    const float *multiplier; /* n values, or 1 when one_multiplier */
    bool one_multiplier;
    const float *row_scale;  /* m values; NULL: none */
    const float *real_bias;  /* n values; NULL: none */
    int32_t zero, low, high; /* of the quantized result */
} lw_result;

/* c[i][j] = sum_k (a[i][k] - a_zero[i]) * (b[k][j] - b_zero[j]), exact in int32 (callers bound K), then as
 * `result` says. Row-major. */
typedef struct lw_gemm {
    int64_t m, n, k;
    const void *a, *b; /* 8-bit elements */
    bool a_signed, b_signed;
    bool b_transposed;     /* b is stored as n x k */
    int64_t lda, ldb, ldc; /* elements from one row to the next, as stored */
    lw_kept *keep_b;       /* not NULL: b and b_zero are the same at every call with this */
    const int32_t *a_zero; /* m values, or 1 when a_zero_is_scalar */
    const int32_t *b_zero; /* n values, or 1 when b_zero_is_scalar */
    bool a_zero_is_scalar, b_zero_is_scalar;
    lw_result result;
    void *c;          /* int32, 8 bits or float32 */
    bool c_by_column; /* element (i, j) lies at j * ldc + i */
} lw_gemm;

/* An N-dimensional convolution (1 to 3 spatial dimensions) of one group of every image:
 *   y[o][p] = sum_c sum_q (x[c][p * stride + q * dilation - pad] - x_zero) * (w[o][c][q] - w_zero[o]);
 * outside the image x is its zero point, so that its term is 0. Then as `result` says, where output channels
 * take the place of columns (row_scale is not used). Unused spatial dimensions come first and have size 1. */
typedef struct lw_conv {
    int dims;     /* spatial */
    int64_t c, o; /* input and output channels of this group */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3]; /* pad: at the beginning */
    int64_t images, x_step, y_step; /* elements from one image to the next */
    const void *x, *w;
    bool x_signed, w_signed;
    int32_t x_zero;
    const int32_t *w_zero; /* o values */
    lw_kept *keep_w;       /* not NULL: w and w_zero are the same at every call with this */
    lw_result result;
    void *y; /* for each image o x product of out */
} lw_conv;

struct lw_node;
struct lw_network;
struct lw_op_call;
struct lw_tensor;

typedef struct lw_infer_backend lw_infer_backend;
struct lw_infer_backend {
    lw_backend base;
    /* --- rows that work in host memory --- */
    lw_status (*gemm)(lw_pool *pool, const lw_gemm *g, lw_error *err);
    lw_status (*conv)(lw_pool *pool, const lw_conv *v, lw_error *err);
    /* y = softmax(x) over each of `rows` rows of `n` contiguous floats. */
    lw_status (*softmax)(lw_pool *pool, int64_t rows, int64_t n, const float *x, float *y, lw_error *err);
    /* y = (x - mean) / sqrt(variance + epsilon) * scale + bias over each row; bias may be NULL. mean and
     * inverse_deviation, one per row, may be NULL. */
    lw_status (*layer_norm)(lw_pool *pool, int64_t rows, int64_t n, const float *x, const float *scale,
                            const float *bias, float epsilon, float *y, float *mean, float *inverse_deviation,
                            lw_error *err);
    /* --- rows that run whole nodes in memory of their own; a context is one queue of work --- */
    lw_status (*open)(const lw_infer_backend *self, void **context, const lw_host *host, lw_error *err);
    void (*close)(void *context); /* after all its tensors are released */
    /* Runs the node and sets *done, or leaves it to the CPU row. It may go on running after the return. */
    lw_status (*node)(void *context, const struct lw_op_call *call, bool *done, lw_error *err);
    /* Runs the whole model and sets *done, outputs in host memory, where it keeps runs for repetition. */
    lw_status (*run)(void *context, const struct lw_network *n, struct lw_tensor *const *inputs,
                     struct lw_tensor **outputs, bool *done, lw_error *err);
    /* Brings a tensor's elements to the host. */
    lw_status (*fetch)(void *context, struct lw_tensor *t, lw_error *err);
    lw_status (*wait)(void *context, lw_error *err); /* for all work */
    /* Which kernel such a node gets, for --describe; NULL: it is left to the CPU row. in: its inputs as far
     * as they are known (NULL where not). */
    const char *(*kernel)(const lw_infer_backend *self, const struct lw_op_call *call);
};

extern const lw_infer_backend *const lw_infer_backends[];
extern const int lw_infer_backend_count;
extern const lw_infer_backend lw_infer_scalar, lw_infer_cpu, lw_infer_cuda_tensor, lw_infer_cuda_dp4a,
    lw_infer_cuda_int;
/* Not in the table: every product by cuBLASLt and a requantization after it, or LW_E_UNSUPPORTED. What
 * benches compare with. */
extern const lw_infer_backend lw_infer_cuda_library;

#ifdef __cplusplus
}
#endif
#endif
