/* tensor.h - dense row-major tensors of the inference domain. */
#ifndef LW_TENSOR_H
#define LW_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/npy.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LW_MAX_RANK = LW_NPY_DIMS };

/* What a backend with memory of its own keeps of a buffer. It goes with the buffer. */
typedef struct lw_device_copy lw_device_copy;
struct lw_device_copy {
    void (*release)(lw_device_copy *copy);
};

/* Memory that several tensors may share (a reshape shares its input's). Counted by one thread at a time.
 * Elements are written once, by who makes the tensor, so that all copies stay equal. */
typedef struct lw_buffer {
    int64_t references;
    int64_t bytes;
    void *data;             /* NULL: not in host memory yet */
    lw_device_copy *device; /* NULL: in host memory alone */
} lw_buffer;

typedef struct lw_tensor {
    lw_dtype dtype;
    int rank; /* 0: a scalar */
    int64_t dim[LW_MAX_RANK];
    int64_t count; /* product of dim */
    void *data;    /* = buffer->data, once that is there */
    lw_buffer *buffer;
    int64_t references;
    int bits; /* 4: elements of int4 or uint4, one to a byte of an 8-bit type; 0: as many as the type has */
} lw_tensor;

/* A tensor with uninitialised elements. LW_E_NOMEM; LW_E_RANGE: more elements than memory addresses. */
lw_status lw_tensor_new(lw_tensor **out, lw_dtype dtype, int rank, const int64_t *dim, lw_error *err);
/* The same without host memory, for elements that a device makes; and the host memory for them. */
lw_status lw_tensor_new_elsewhere(lw_tensor **out, lw_dtype dtype, int rank, const int64_t *dim,
                                  lw_error *err);
lw_status lw_tensor_allocate(lw_tensor *t, lw_error *err);
/* Another shape over the same memory; `count` must agree. */
lw_status lw_tensor_view(lw_tensor **out, const lw_tensor *of, int rank, const int64_t *dim, lw_error *err);
lw_tensor *lw_tensor_retain(lw_tensor *t);
void lw_tensor_release(lw_tensor *t); /* NULL is allowed */

/* From an .npy file. */
lw_status lw_tensor_read_npy(lw_tensor **out, const char *path, lw_error *err);

/* As .npy, to an open output. */
lw_status lw_tensor_write(const lw_tensor *t, lw_outfile *file, lw_error *err);
/* To an .npy file that appears whole or not at all. */
struct lw_temporaries;
lw_status lw_tensor_write_npy(const lw_tensor *t, const char *path, struct lw_temporaries *temporaries,
                              lw_error *err);

/* "int8[2,3]" */
const char *lw_tensor_text(const lw_tensor *t, char *text, size_t size);

/* Product of dim[from .. to). */
int64_t lw_tensor_span(const lw_tensor *t, int from, int to);

/* Element i as a number; any dtype. */
double lw_tensor_number(const lw_tensor *t, int64_t i);
int64_t lw_tensor_integer(const lw_tensor *t, int64_t i); /* integer dtypes and bool */
/* Toward zero; what int64 cannot hold saturates, NaN is 0. */
int64_t lw_to_integer(double v);

/* Range of an 8- or 16-bit integer dtype, and that of a tensor with its bits. */
void lw_dtype_range(lw_dtype dtype, int32_t *low, int32_t *high);
void lw_tensor_range(const lw_tensor *t, int32_t *low, int32_t *high);
bool lw_dtype_is_quantized(lw_dtype dtype); /* int8, uint8, int16, uint16 */

#ifdef __cplusplus
}
#endif
#endif
