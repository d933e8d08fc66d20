/* infer_cuda.h - what the files of the cuda-* rows share.
 *
 * - infer_cuda.c: the rows, contexts, device memory, copies
 * - infer_cuda_graph.c: runs of a whole model that are recorded and repeated
 * - infer_cuda_nodes.c: which nodes have kernels; infer_cuda_nodes_*.c: how their inputs become the arguments
 *   below, for each kind
 * - infer_cuda_lt.c: the tensor-core product of cuBLASLt, where that library is installed
 * - infer_cuda_product.cu, infer_cuda_tensor.cu: 8-bit products (infer_cuda_product.cuh has what they share)
 * - infer_cuda_layout.cu: packing of weights and images, sums of rows, convolutions without a product
 * - infer_cuda_rows.cu: softmax, layer normalization, means of rows
 * - infer_cuda_pool.cu: pooling, functions of bytes by tables
 * - infer_cuda_elements.cu: elementwise operators, quantization, copies
 * - infer_cuda_floats.cu: products and convolutions of floats
 * - infer_cuda_recurrent.cu: RNN, GRU and LSTM
 *
 * All kernels of a context run in one stream. */
#ifndef LW_INFER_CUDA_H
#define LW_INFER_CUDA_H

#include <cuda_runtime_api.h>
#include "common/pow2.h"
#include "infer/infer_backend.h"
#include "infer/quant.h"
#include "infer/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct infer_cuda {
    int policy;
    int device, multiprocessors;
    int64_t shared_bytes;       /* most that a block may have */
    bool pooled;                /* the device hands out memory in stream order */
    cudaStream_t stream, aside; /* aside: for what shall not be recorded */
    struct lw_lt *lt;           /* opened with the first product that it might do */
    bool lt_sought, library;    /* library: no product of ours */
    const lw_host *host;
    /* runs that are kept, see infer_cuda_graph.c */
    struct lw_cuda_recording *recording, *kept; /* recording: the run that is being recorded; else NULL */
    int64_t generation;                         /* counts when memory of constants gets another place */
    lw_tensor **last;                           /* shapes of the last run */
    int n_last;
    bool hopeless; /* such a run cannot be recorded */
    int in_vain;   /* recordings in a row that failed or did not pay, and the one that is kept */
} infer_cuda;

/* ---- memory -------------------------------------------------------------------------------------- */

/* Bytes of a row of packed weights and of padded activations: a whole number of stages. */
enum { LW_CUDA_DEPTH = 64 };

/* Byte tap * channel_pitch + c of row n comes from byte
 *     n / inner * outer_step + n % inner * row_step + c * channel_step + tap * tap_step,
 * exclusive or `flip`; the rest of a row is 0. */
typedef struct lw_cuda_form {
    int64_t rows, inner, outer_step, row_step, channels, channel_step, taps, tap_step, channel_pitch, pitch;
    int64_t flip; /* no padding: forms are compared as bytes */
} lw_cuda_form;

/* Weights as the products read them: each output's bytes in a row, signed, filled up with 0. */
typedef struct lw_cuda_packed {
    lw_cuda_form form; /* rows 0: nothing here */
    uint8_t *bytes;
    int32_t *sum; /* of each row */
    bool owned;   /* bytes: else they are the tensor's own */
} lw_cuda_packed;

/* The device side of a buffer. */
typedef struct lw_cuda_copy {
    lw_device_copy base;
    infer_cuda *x;
    void *p;
    bool input; /* of a recorded run: other values come with every replay */
    lw_cuda_packed packed;
    int32_t *offset; /* of a convolution's weights: lw_cuda_patches.offset for images of these sizes */
    int64_t offset_of[8];
} lw_cuda_copy;

lw_status lw_cuda_allocate(infer_cuda *x, void **out, int64_t bytes, lw_error *err);
/* The same for what can be done without; *out is NULL where the device has not that much left. In a
 * recorded run it fails, as lw_cuda_allocate() does: the run is done without recording. */
lw_status lw_cuda_allocate_if_free(infer_cuda *x, void **out, int64_t bytes, lw_error *err);
void lw_cuda_release(infer_cuda *x, void *p);
/* Not part of a recorded run, and done when it returns; released like all others. */
lw_status lw_cuda_allocate_aside(infer_cuda *x, void **out, int64_t bytes, lw_error *err);
/* The elements of t in device memory, copied there if need be. */
lw_status lw_cuda_device(infer_cuda *x, lw_tensor *t, void **out, lw_error *err);
/* A tensor whose elements only the device has (and has not written yet). */
lw_status lw_cuda_tensor(infer_cuda *x, lw_tensor **out, lw_dtype dtype, int rank, const int64_t *dim,
                         void **p, lw_error *err);
lw_status lw_cuda_upload(infer_cuda *x, void *to, const void *from, int64_t bytes, lw_error *err);
lw_status lw_cuda_fill(infer_cuda *x, void *to, int byte, int64_t bytes, lw_error *err);
lw_status lw_cuda_launched(const char *what, lw_error *err);

/* ---- runs that are kept ---------------------------------------------------------------------------- */

struct lw_network;
/* Runs the whole model and sets *done if its run can be repeated. */
lw_status lw_cuda_run(void *context, const struct lw_network *n, lw_tensor *const *inputs,
                      lw_tensor **outputs, bool *done, lw_error *err);
void lw_cuda_forget(infer_cuda *x);
void lw_cuda_forget_kept(infer_cuda *x); /* the kept run alone: its memory is needed */
/* Whether a run is being recorded, which then ends: something depends on more than shapes. */
bool lw_cuda_recording_asks(infer_cuda *x);
/* Keeps t, which the recorded run reads, if one is being recorded. */
lw_status lw_cuda_recording_keep(infer_cuda *x, lw_tensor *t, lw_error *err);
/* Where kernels of a recorded run say that an index is out of bounds; NULL when none is being recorded. */
int32_t *lw_cuda_recording_flag(infer_cuda *x);
lw_status lw_cuda_arena_take(struct lw_cuda_recording *r, void **out, int64_t bytes, lw_error *err);
/* false: p does not come from there. */
bool lw_cuda_arena_give(struct lw_cuda_recording *r, void *p);

/* The nodes. */
lw_status lw_cuda_node(void *context, const struct lw_op_call *call, bool *done, lw_error *err);
const char *lw_cuda_kernel(const lw_infer_backend *self, const struct lw_op_call *call);

/* ---- products ------------------------------------------------------------------------------------ */

typedef enum lw_cuda_result { LW_TO_INT32, LW_TO_FLOAT, LW_TO_BYTES } lw_cuda_result;

/* Rows of A that are patches of images. Images are stored by position (padding included), each with the
 * channels of its groups; offset[s] is where 16-byte segment s of a patch lies from the patch's first byte.
 */
typedef struct lw_cuda_patches {
    const int32_t *offset;         /* NULL: A is a plain matrix */
    int segments;                  /* of a patch; offsets of what fills up the last stage follow */
    lw_divider count, plane, line; /* output positions of an image, of its last two and its last dimension */
    int64_t image_bytes, step0, step1, step2; /* from one image, or position along a dimension, to the next */
} lw_cuda_patches;

/* c[i][j] = f(sum_k (a[i][k] - a_zero) * (b[j][k] - b_zero[j])), a and b in bytes. Bytes count as signed
 * after an exclusive or with `flip` (0x80 makes an unsigned byte signed, 128 less); zero points likewise. For
 * batch z the pointers go on by *_batch each. */
typedef struct lw_cuda_product {
    int m, n, k;
    int pitch;        /* of b in bytes; what lies beyond k there is 0 */
    const uint8_t *a; /* aligned to 16 bytes, like lda */
    int64_t lda;      /* at least k rounded up to 16 is readable, the last row included */
    uint32_t flip;    /* of a, in each byte */
    lw_cuda_patches patches;
    const uint8_t *b;
    const uint8_t *a_zero_at; /* NULL: a_zero */
    int32_t a_zero;
    const int32_t *a_sum, *b_sum; /* of rows; a_sum NULL: every b_zero is 0 */
    const uint8_t *b_zero;        /* NULL: 0 */
    int b_zero_step;              /* 0: one for all */
    uint8_t b_zero_flip;
    int batches;
    int64_t a_batch, b_batch, c_batch;              /* c in elements */
    int64_t a_sum_batch, b_sum_batch, column_batch; /* column: what has one value for each output */
    /* the result: + bias, then by kind: as it is; times scale (+ float_bias); requantized */
    lw_cuda_result kind;
    const int32_t *bias;
    int bias_step;
    float a_scale, y_scale, alpha; /* scale = alpha * (a_scale * b_scale / y_scale), each step rounded */
    const float *a_scale_at;       /* NULL: a_scale */
    const float *b_scale;
    int b_scale_step;
    const float *float_bias;
    int32_t zero, low, high;
    void *c;
    int64_t ldc;
    int positions; /* 0: c[i][j]; else row i is position i % positions of image i / positions, and c is
                      [image][output][position] */
    lw_divider by_positions;
    int64_t image; /* elements from one image of c to the next */
} lw_cuda_product;

/* Kernels of one kind: few rows, by dot products, by tensor cores. They want what their names say. */
lw_status lw_cuda_few_rows(infer_cuda *x, const lw_cuda_product *p, lw_error *err);
lw_status lw_cuda_few_tensor(infer_cuda *x, const lw_cuda_product *p, lw_error *err);
lw_status lw_cuda_dot_tiles(infer_cuda *x, const lw_cuda_product *p, lw_error *err);
lw_status lw_cuda_tensor_tiles(infer_cuda *x, const lw_cuda_product *p, lw_error *err);
/* The one that suits. */
lw_status lw_cuda_multiply(infer_cuda *x, const lw_cuda_product *p, lw_error *err);
const char *lw_cuda_multiply_kernel(int policy, int64_t m);
/* f() alone: c from sums (m x n). */
lw_status lw_cuda_finish(infer_cuda *x, const lw_cuda_product *p, const int32_t *sums, lw_error *err);

/* cuBLASLt: sums (m x n) of signed bytes; a is m x k with pitch lda. *done stays false where it cannot. */
bool lw_lt_usable(infer_cuda *x);
void lw_lt_close(struct lw_lt *lt);
lw_status lw_lt_product(infer_cuda *x, int64_t m, int64_t n, int64_t k, const uint8_t *a, int64_t lda,
                        const uint8_t *b, int64_t ldb, int32_t *sums, bool *done, lw_error *err);

/* ---- layout -------------------------------------------------------------------------------------- */

typedef struct lw_cuda_packing {
    lw_cuda_form form;
    const uint8_t *from;
    uint8_t *to;  /* NULL: only the sums */
    int32_t *sum; /* of each row; NULL: no sums */
} lw_cuda_packing;
lw_status lw_cuda_pack(infer_cuda *x, const lw_cuda_packing *p, lw_error *err);

/* Sums of the rows of A of a product, its true k bytes, into p->a_sum's place. */
lw_status lw_cuda_row_sums(infer_cuda *x, const lw_cuda_product *p, int32_t *sums, lw_error *err);

/* Images from [image][channel][position] to [image][padded position][group][channel_pitch], bytes exclusive
 * or `flip`; outside the image `zero` (after the flip). */
typedef struct lw_cuda_images {
    const uint8_t *from;
    uint8_t *to;
    int64_t images;
    int channels, groups, channel_pitch; /* channels: of one group */
    int in[3], padded[3], pad[3];
    uint8_t flip, zero;
} lw_cuda_images;
lw_status lw_cuda_lay_images(infer_cuda *x, const lw_cuda_images *p, lw_error *err);

/* Patches of images written out: row (image, position), byte c * taps + tap; signed, padded with the zero
 * point to `pitch`. For convolutions of few channels; position `first` on, `rows` rows. */
typedef struct lw_cuda_window {
    const uint8_t *from; /* first channel of the group */
    int64_t image_step;  /* bytes from one image to the next */
    int channels;
    int in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    uint8_t flip, zero;
} lw_cuda_window;
lw_status lw_cuda_patch_rows(infer_cuda *x, const lw_cuda_window *w, int64_t rows, int64_t pitch, uint8_t *to,
                             lw_error *err);

/* A convolution without a product, for groups of few channels: weights [output][channel][tap] of all groups.
 * p: zero points, bias, scales and result as for products. */
lw_status lw_cuda_direct_convolution(infer_cuda *x, const lw_cuda_window *w, const uint8_t *weights,
                                     uint8_t weight_flip, int64_t images, int groups, int outputs,
                                     const lw_cuda_product *p, lw_error *err);

/* ---- rows ---------------------------------------------------------------------------------------- */

lw_status lw_cuda_softmax(infer_cuda *x, int64_t rows, int64_t n, const float *from, float *to,
                          lw_error *err);
typedef struct lw_cuda_norm {
    int64_t rows, n;
    const float *x, *skip, *skip_bias; /* skip, skip_bias: added first; NULL: none */
    const float *scale, *bias;         /* bias NULL: none */
    float epsilon;
    float *y, *mean, *inverse, *sum; /* mean, inverse, sum (x + skip): NULL: not wanted */
} lw_cuda_norm;
lw_status lw_cuda_layer_norm(infer_cuda *x, const lw_cuda_norm *p, lw_error *err);
lw_status lw_cuda_row_means(infer_cuda *x, int64_t rows, int64_t n, const float *from, float *to,
                            lw_error *err);

/* ---- pooling, tables ------------------------------------------------------------------------------- */

typedef enum lw_cuda_pool_type { LW_CUDA_FLOATS, LW_CUDA_SIGNED, LW_CUDA_UNSIGNED } lw_cuda_pool_type;
/* Images are batch x channels. Means of bytes are quantized: of windows in float32, each element dequantized
 * first; of whole images as exact sums times multiplier. */
typedef struct lw_cuda_pool {
    const void *from;
    void *to;
    lw_cuda_pool_type from_type;
    bool is_max, count_pads;
    int64_t images;
    int in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    float scale, y_scale, multiplier;
    int32_t zero, y_zero, low, high;
} lw_cuda_pool;
/* whole: one result an image, from in[0] elements. */
lw_status lw_cuda_pooling(infer_cuda *x, const lw_cuda_pool *p, bool whole, lw_error *err);

/* Element i goes to place i % run of the piece i / run; pieces begin `apart` from each other. */
typedef struct lw_cuda_table {
    int64_t count, run, apart;
    const uint8_t *from;
    uint8_t *to;
    uint8_t table[256];
} lw_cuda_table;
lw_status lw_cuda_by_table(infer_cuda *x, const lw_cuda_table *p, lw_error *err);
lw_status lw_cuda_softmax_of_bytes(infer_cuda *x, const lw_qlinear_softmax *p, int64_t count,
                                   const uint8_t *from, uint8_t *to, lw_error *err);

/* ---- elements ------------------------------------------------------------------------------------ */

typedef enum lw_cuda_function {
    LW_F_ADD,
    LW_F_SUB,
    LW_F_MUL,
    LW_F_DIV,
    LW_F_POW,
    LW_F_MIN,
    LW_F_MAX,
    LW_F_PRELU,
    LW_F_SQRT,
    LW_F_EXP,
    LW_F_LOG,
    LW_F_ERF,
    LW_F_TANH,
    LW_F_RECIPROCAL,
    LW_F_SIGMOID,
    LW_F_FASTGELU,
    LW_F_GELU,
    LW_F_LEAKY,
    LW_F_RELU,
    LW_F_NEG,
    LW_F_ABS,
    LW_F_CLIP
} lw_cuda_function;

/* A broadcast: element i of the result takes a at sum index[d] * stride[0][d], b at stride[1], a third input
 * at stride[2]. Dimensions that can be joined are joined. */
typedef struct lw_cuda_walk {
    int rank;
    lw_divider dim[LW_MAX_RANK];
    int32_t stride[3][LW_MAX_RANK];
    int64_t count;
} lw_cuda_walk;

/* y = f(a, b) (two inputs), y = f(a; parameters p, q). */
lw_status lw_cuda_binary(infer_cuda *x, lw_cuda_function f, const lw_cuda_walk *w, const float *a,
                         const float *b, float *y, lw_error *err);
lw_status lw_cuda_unary(infer_cuda *x, lw_cuda_function f, int64_t count, const float *a, float p, float q,
                        float *y, lw_error *err);

/* y = condition ? a : b, elements of 4 bytes; the condition is the third input of the walk. */
lw_status lw_cuda_where(infer_cuda *x, const lw_cuda_walk *w, const uint8_t *condition, const uint32_t *a,
                        const uint32_t *b, uint32_t *y, lw_error *err);
/* y = a f b, of floats or (from LW_T_AND on) of bool. */
typedef enum lw_cuda_truth {
    LW_T_EQUAL,
    LW_T_GREATER,
    LW_T_GREATER_OR_EQUAL,
    LW_T_LESS,
    LW_T_LESS_OR_EQUAL,
    LW_T_AND,
    LW_T_OR,
    LW_T_XOR
} lw_cuda_truth;
lw_status lw_cuda_compare(infer_cuda *x, lw_cuda_truth f, const lw_cuda_walk *w, const void *a, const void *b,
                          uint8_t *y, lw_error *err);
/* Integers of 1, 4 or 8 bytes to float or bool. */
lw_status lw_cuda_cast(infer_cuda *x, int64_t count, const void *from, int size, bool is_signed, void *to,
                       bool to_bool, lw_error *err);
lw_status lw_cuda_is_nan(infer_cuda *x, int64_t count, const float *a, uint8_t *y, lw_error *err);

/* com.microsoft QLinearAdd and QLinearMul. */
typedef struct lw_cuda_bytes {
    lw_cuda_walk walk;
    const uint8_t *a, *b;
    uint8_t *y;
    bool is_signed, is_product;
    int32_t a_zero, b_zero, y_zero, low, high;
    float ra, rb, product, fixed;
} lw_cuda_bytes;
lw_status lw_cuda_binary_bytes(infer_cuda *x, const lw_cuda_bytes *p, lw_error *err);

/* Element i has scale and zero point number i / inner % along (one: 0). */
typedef struct lw_cuda_scaling {
    int64_t count, inner, along;
    const void *from;
    void *to;
    const float *scale;
    const void *zero; /* in the type of the quantized side; NULL: 0 */
    lw_dtype dtype;   /* the quantized side: int8, uint8; dequantize also int32 */
} lw_cuda_scaling;
lw_status lw_cuda_quantize(infer_cuda *x, const lw_cuda_scaling *p, lw_error *err);
lw_status lw_cuda_dequantize(infer_cuda *x, const lw_cuda_scaling *p, lw_error *err);
/* DynamicQuantizeLinear; scratch: 2 uint32. */
lw_status lw_cuda_dynamic_quantize(infer_cuda *x, int64_t count, const float *from, uint8_t *to, float *scale,
                                   uint8_t *zero, uint32_t *scratch, lw_error *err);

/* Element i of the result, at to_stride, is the element of `from` at stride. size: 1, 2, 4 or 8 bytes. */
typedef struct lw_cuda_strided {
    int rank;
    int64_t dim[LW_MAX_RANK], stride[LW_MAX_RANK], to_stride[LW_MAX_RANK];
    const void *from;
    void *to;
    int size;
} lw_cuda_strided;
lw_status lw_cuda_copy_strided(infer_cuda *x, const lw_cuda_strided *s, lw_error *err);

/* to[o][i][:] = from[o][index[i]][:], inner bytes each; indices are int32 or int64, valid or, where flag is
 * given, *flag becomes 1. along > 0. */
lw_status lw_cuda_gather(infer_cuda *x, const void *from, int64_t outer, int64_t along, int64_t inner,
                         const void *indices, bool wide, int64_t count, void *to, int32_t *flag,
                         lw_error *err);

/* to[t][:] = the `slice` bytes at sum index[t][k] * step[k] of batch t / each; dim: for indices below 0. */
typedef struct lw_cuda_tuples {
    int64_t tuples, each, batch_bytes, slice, dim[LW_MAX_RANK], step[LW_MAX_RANK];
    int depth;
    bool wide;
    const void *indices;
    const uint8_t *from;
    uint8_t *to;
} lw_cuda_tuples;
lw_status lw_cuda_gather_tuples(infer_cuda *x, const lw_cuda_tuples *p, lw_error *err);

/* ---- floats, in the host's order ------------------------------------------------------------------- */

/* c[z] = alpha * a[z] * b[z] in float32; strides in elements; batch z starts at z's number times *_batch
 * (for up to two batch dimensions, outer and inner). */
typedef struct lw_cuda_float_product {
    int64_t m, n, k, outer, inner;
    const float *a, *b;
    int64_t a_row, a_column, b_row, b_column;
    int64_t a_outer, a_inner, b_outer, b_inner;
    float *c; /* contiguous */
    float alpha;
} lw_cuda_float_product;
lw_status lw_cuda_multiply_floats(infer_cuda *x, const lw_cuda_float_product *p, lw_error *err);

/* y[image][output][position] = bias + the sum over channels and elements of the kernel, in this order. */
typedef struct lw_cuda_float_convolution {
    int images, groups, outputs, channels; /* outputs, channels: of one group */
    int in[3], stride[3], dilation[3], pad[3];
    int64_t in_count;
    lw_divider count, plane, line; /* output positions of an image, of its last two and its last dimension */
    lw_divider taps, kernel_plane, kernel_line; /* the same of the kernel */
    const float *x, *w, *bias;                  /* bias NULL: 0 */
    float *y;
} lw_cuda_float_convolution;
lw_status lw_cuda_convolve_floats(infer_cuda *x, const lw_cuda_float_convolution *p, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
