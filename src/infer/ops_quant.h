/* ops_quant.h - what operators on quantized tensors share: their scales and zero points, checked, and
 * quantization by the range of the data. */
#ifndef LW_OPS_QUANT_H
#define LW_OPS_QUANT_H

#include <stdbool.h>
#include <stdint.h>
#include "infer/op.h"
#include "infer/quant.h"

/* Element i of an 8-bit or 16-bit tensor, from a number in the range of its type. */
void lw_quant_store(lw_tensor *t, int64_t i, int32_t v);

/* One positive, finite scale of an input that is a scalar. */
lw_status lw_quant_scale(const lw_tensor *t, const char *what, float *out, lw_error *err);

/* LW_E_INPUT unless every element of a float32 tensor is positive and finite. */
lw_status lw_quant_check_scales(const lw_tensor *t, const char *what, lw_error *err);

/* One zero point of the dtype of the tensor that it belongs to; 0 where it is left out. */
lw_status lw_quant_zero(const lw_tensor *t, lw_dtype dtype, const char *what, int32_t *out, lw_error *err);

/* Zero points, one for all or one for each of n; widened to int32. The caller frees *out. */
lw_status lw_quant_zeros(const lw_tensor *t, lw_dtype dtype, int64_t n, const char *what, int32_t **out,
                         bool *is_scalar, lw_error *err);

/* LW_E_INPUT unless t is there and int8 or uint8. */
lw_status lw_want_8_bits(const lw_tensor *t, const char *what, lw_error *err);

/* Least and largest of a float32 tensor and 0. */
void lw_quant_extremes(const lw_tensor *x, float *least, float *largest);

/* As DynamicQuantizeLinear: a new uint8 tensor *y (the caller releases it), its scale and zero point. */
lw_status lw_quant_dynamic(const lw_tensor *x, lw_tensor **y, float *scale, uint8_t *zero, lw_error *err);

/* Multipliers of a requantization, one per column (or one for all): a_scale * b_scale[j] / y_scale. The
 * caller frees *out. */
lw_status lw_quant_multipliers(const lw_tensor *a_scale, const lw_tensor *b_scale, float y_scale, int64_t n,
                               const char *what, float **out, bool *one, lw_error *err);

/* Type of the data and range of its zero points for a check at load, which knows the constants alone. Where
 * neither is known, as little as they can be: 128 in magnitude. */
void lw_quant_data_range(const lw_tensor *zero, lw_dtype *dtype, int32_t *least, int32_t *most);

/* The 256 results of QLinearSigmoid or QLinearLeakyRelu. */
lw_status lw_qlinear_table(const lw_op_call *c, uint8_t table[256], lw_error *err);
/* QLinearConcat: its axis and the result's shape; the 256 results of the tensor at input i. */
lw_status lw_qlinear_concat_of(const lw_op_call *c, int *axis, int64_t dim[LW_MAX_RANK], lw_error *err);
lw_status lw_qlinear_concat_table(const lw_op_call *c, int i, uint8_t table[256], lw_error *err);
/* What QLinearSoftmax does to each row. */
lw_status lw_qlinear_softmax_of(const lw_op_call *c, lw_qlinear_softmax *s, lw_error *err);

/* False also for NULL. */
bool lw_is_8_bits(const lw_tensor *t);

#endif
