/* tensor.c - dense row-major tensors. */
#include "infer/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

/* The most elements that a tensor without elements would have if its dimensions of 0 were 1: the products of
 * any of its dimensions, and of those with another such tensor's, then fit int64. Tensors with elements are
 * limited by the memory that they take. */
#define LW_EMPTY_MOST INT64_C(0x7fffffff)

static lw_status shape_count(int rank, const int64_t *dim, int64_t element, int64_t *count, lw_error *err)
{
    int64_t n = 1, bytes;
    bool empty = false;
    *count = 0;
    if (rank < 0 || rank > LW_MAX_RANK)
        return lw_fail(err, LW_E_RANGE, "a tensor of %d dimensions: at most %d are supported", rank,
                       LW_MAX_RANK);
    for (int k = 0; k < rank; k++) {
        empty = empty || dim[k] == 0;
        if (dim[k] < 0 || (dim[k] > 0 && __builtin_mul_overflow(n, dim[k], &n)))
            return lw_fail(err, LW_E_RANGE, "a tensor dimension of %lld cannot be", (long long)dim[k]);
    }
    if (__builtin_mul_overflow(n, element, &bytes) || (empty && n > LW_EMPTY_MOST))
        return lw_fail(err, LW_E_RANGE, "a tensor of %lld elements does not fit in memory", (long long)n);
    *count = empty ? 0 : n;
    return LW_OK;
}

static lw_tensor *make(lw_buffer *buffer, lw_dtype dtype, int rank, const int64_t *dim, int64_t count)
{
    lw_tensor *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->dtype = dtype;
    t->rank = rank;
    if (rank > 0)
        memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
    t->count = count;
    t->buffer = buffer;
    t->data = buffer->data;
    t->references = 1;
    return t;
}

lw_status lw_tensor_new_elsewhere(lw_tensor **out, lw_dtype dtype, int rank, const int64_t *dim,
                                  lw_error *err)
{
    int64_t count;
    LW_TRY(shape_count(rank, dim, lw_dtype_size(dtype), &count, err));
    int64_t bytes = count * lw_dtype_size(dtype);
    lw_buffer *buffer = malloc(sizeof *buffer);
    lw_tensor *t = NULL;
    if (buffer) {
        *buffer = (lw_buffer){.references = 1, .bytes = bytes};
        t = make(buffer, dtype, rank, dim, count);
    }
    if (!t) {
        free(buffer);
        return lw_fail_memory(err, sizeof *t);
    }
    *out = t;
    return LW_OK;
}

/* No model's tensor is that large; where memory is promised without being there, asking would even succeed.
 */
#define LW_TENSOR_MOST ((INT64_C(1) << 40) - (INT64_C(1) << 16))

lw_status lw_tensor_allocate(lw_tensor *t, lw_error *err)
{
    if (t->buffer->bytes > LW_TENSOR_MOST)
        return lw_fail_memory(err, (size_t)t->buffer->bytes);
    /* 64-byte alignment for vector loads; a round size, as aligned_alloc asks */
    if (!t->buffer->data)
        t->buffer->data = aligned_alloc(64, ((size_t)t->buffer->bytes + 127) & ~(size_t)63);
    t->data = t->buffer->data;
    return t->data ? LW_OK : lw_fail_memory(err, (size_t)t->buffer->bytes);
}

lw_status lw_tensor_new(lw_tensor **out, lw_dtype dtype, int rank, const int64_t *dim, lw_error *err)
{
    LW_TRY(lw_tensor_new_elsewhere(out, dtype, rank, dim, err));
    lw_status status = lw_tensor_allocate(*out, err);
    if (status != LW_OK) {
        lw_tensor_release(*out);
        *out = NULL;
    }
    return status;
}

lw_status lw_tensor_view(lw_tensor **out, const lw_tensor *of, int rank, const int64_t *dim, lw_error *err)
{
    int64_t count;
    LW_TRY(shape_count(rank, dim, lw_dtype_size(of->dtype), &count, err));
    if (count != of->count)
        return lw_fail(err, LW_E_INPUT, "a tensor of %lld elements cannot be seen as one of %lld",
                       (long long)of->count, (long long)count);
    lw_tensor *t = make(of->buffer, of->dtype, rank, dim, count);
    if (!t)
        return lw_fail_memory(err, sizeof *t);
    t->bits = of->bits;
    of->buffer->references++;
    *out = t;
    return LW_OK;
}

lw_tensor *lw_tensor_retain(lw_tensor *t)
{
    t->references++;
    return t;
}

void lw_tensor_release(lw_tensor *t)
{
    if (!t || --t->references > 0)
        return;
    if (--t->buffer->references == 0) {
        if (t->buffer->device)
            t->buffer->device->release(t->buffer->device);
        free(t->buffer->data);
        free(t->buffer);
    }
    free(t);
}

lw_status lw_tensor_read_npy(lw_tensor **out, const char *path, lw_error *err)
{
    lw_npy array = {0};
    LW_TRY(lw_npy_read(&array, path, err));
    lw_error inner = {0};
    lw_status status = lw_tensor_new(out, array.dtype, array.ndim, array.shape, &inner);
    if (status != LW_OK)
        lw_fail(err, status, "%s: %s", path, inner.message);
    else
        memcpy((*out)->data, array.data, (size_t)array.count * (size_t)lw_dtype_size(array.dtype));
    lw_npy_free(&array);
    return status;
}

lw_status lw_tensor_write(const lw_tensor *t, lw_outfile *file, lw_error *err)
{
    lw_npy array = {.dtype = t->dtype, .ndim = t->rank, .count = t->count, .data = t->data};
    memcpy(array.shape, t->dim, sizeof array.shape);
    return lw_npy_write(file, &array, err);
}

lw_status lw_tensor_write_npy(const lw_tensor *t, const char *path, struct lw_temporaries *temporaries,
                              lw_error *err)
{
    lw_outfile *file;
    LW_TRY(lw_outfile_open(&file, path, temporaries, err));
    return lw_outfile_close(file, lw_tensor_write(t, file, err), err);
}

const char *lw_tensor_text(const lw_tensor *t, char *text, size_t size)
{
    int n = snprintf(text, size, "%s[", lw_dtype_name(t->dtype));
    for (int k = 0; k < t->rank && n >= 0 && (size_t)n < size; k++)
        n += snprintf(text + n, size - (size_t)n, "%s%lld", k ? "," : "", (long long)t->dim[k]);
    if (n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "]");
    return text;
}

int64_t lw_tensor_span(const lw_tensor *t, int from, int to)
{
    int64_t n = 1;
    for (int k = from; k < to; k++)
        n *= t->dim[k];
    return n;
}

int64_t lw_tensor_integer(const lw_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case LW_BOOL:
    case LW_U8:
        return ((const uint8_t *)t->data)[i];
    case LW_I8:
        return ((const int8_t *)t->data)[i];
    case LW_I16:
        return ((const int16_t *)t->data)[i];
    case LW_U16:
        return ((const uint16_t *)t->data)[i];
    case LW_I32:
        return ((const int32_t *)t->data)[i];
    case LW_U32:
        return ((const uint32_t *)t->data)[i];
    case LW_I64:
        return ((const int64_t *)t->data)[i];
    case LW_U64:
        return (int64_t)((const uint64_t *)t->data)[i];
    default:
        return lw_to_integer(lw_tensor_number(t, i));
    }
}

int64_t lw_to_integer(double v)
{
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : v != v ? 0 : (int64_t)v;
}

double lw_tensor_number(const lw_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case LW_F16:
        return lw_half_to_float(((const uint16_t *)t->data)[i]);
    case LW_F32:
        return ((const float *)t->data)[i];
    case LW_F64:
        return ((const double *)t->data)[i];
    default:
        return (double)lw_tensor_integer(t, i);
    }
}

void lw_dtype_range(lw_dtype dtype, int32_t *low, int32_t *high)
{
    bool is_signed = dtype == LW_I8 || dtype == LW_I16;
    int bits = 8 * (int)lw_dtype_size(dtype);
    *low = is_signed ? -(1 << (bits - 1)) : 0;
    *high = (1 << (is_signed ? bits - 1 : bits)) - 1;
}

void lw_tensor_range(const lw_tensor *t, int32_t *low, int32_t *high)
{
    lw_dtype_range(t->dtype, low, high);
    if (t->bits) {
        *low = *low < 0 ? -(1 << (t->bits - 1)) : 0;
        *high = (1 << (*low < 0 ? t->bits - 1 : t->bits)) - 1;
    }
}

bool lw_dtype_is_quantized(lw_dtype dtype)
{
    return dtype == LW_I8 || dtype == LW_U8 || dtype == LW_I16 || dtype == LW_U16;
}
