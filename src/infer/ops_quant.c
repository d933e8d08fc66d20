/* ops_quant.c - scales and zero points of operators on quantized tensors. */
#include "infer/ops_quant.h"

#include <math.h>
#include <stdlib.h>

#include "common/fail.h"
#include "infer/quant.h"

void lw_quant_store(lw_tensor *t, int64_t i, int32_t v)
{
    if (t->dtype == LW_I8 || t->dtype == LW_U8)
        ((uint8_t *)t->data)[i] = (uint8_t)v;
    else
        ((uint16_t *)t->data)[i] = (uint16_t)v;
}

lw_status lw_quant_scale(const lw_tensor *t, const char *what, float *out, lw_error *err)
{
    *out = 0;
    LW_TRY(lw_want(t, LW_F32, what, err));
    if (t->count != 1)
        return lw_fail(err, LW_E_INPUT, "%s must be one number, not %lld", what, (long long)t->count);
    *out = *(const float *)t->data;
    if (!(*out > 0) || !isfinite(*out))
        return lw_fail(err, LW_E_INPUT, "%s is %g: a scale is positive and finite", what, (double)*out);
    return LW_OK;
}

lw_status lw_quant_check_scales(const lw_tensor *t, const char *what, lw_error *err)
{
    LW_TRY(lw_want(t, LW_F32, what, err));
    for (int64_t i = 0; i < t->count; i++) {
        float s = ((const float *)t->data)[i];
        if (!(s > 0) || !isfinite(s))
            return lw_fail(err, LW_E_INPUT, "%s[%lld] is %g: a scale is positive and finite", what,
                           (long long)i, (double)s);
    }
    return LW_OK;
}

lw_status lw_quant_zero(const lw_tensor *t, lw_dtype dtype, const char *what, int32_t *out, lw_error *err)
{
    *out = 0;
    if (!t)
        return LW_OK;
    LW_TRY(lw_want(t, dtype, what, err));
    if (t->count != 1)
        return lw_fail(err, LW_E_INPUT, "%s must be one number, not %lld", what, (long long)t->count);
    *out = (int32_t)lw_tensor_integer(t, 0);
    return LW_OK;
}

lw_status lw_quant_zeros(const lw_tensor *t, lw_dtype dtype, int64_t n, const char *what, int32_t **out,
                         bool *is_scalar, lw_error *err)
{
    int64_t count = t ? t->count : 1;
    if (t)
        LW_TRY(lw_want(t, dtype, what, err));
    if (count != 1 && count != n)
        return lw_fail(err, LW_E_INPUT, "%s has %lld values where 1 or %lld belong", what, (long long)count,
                       (long long)n);
    LW_TRY(lw_room(out, count, 1, sizeof **out, err));
    for (int64_t i = 0; i < count; i++)
        (*out)[i] = t ? (int32_t)lw_tensor_integer(t, i) : 0;
    *is_scalar = count == 1;
    return LW_OK;
}

lw_status lw_want_8_bits(const lw_tensor *t, const char *what, lw_error *err)
{
    if (!t || (t->dtype != LW_I8 && t->dtype != LW_U8))
        return lw_fail(err, LW_E_INPUT, "%s must be int8 or uint8%s%s", what, t ? ", not " : "",
                       t ? lw_dtype_name(t->dtype) : "");
    return LW_OK;
}

void lw_quant_extremes(const lw_tensor *x, float *least, float *largest)
{
    *least = *largest = 0;
    for (int64_t i = 0; i < x->count; i++) {
        float v = ((const float *)x->data)[i];
        *least = v < *least ? v : *least;
        *largest = v > *largest ? v : *largest;
    }
}

lw_status lw_quant_dynamic(const lw_tensor *x, lw_tensor **y, float *scale, uint8_t *zero, lw_error *err)
{
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    float least, largest;
    lw_quant_extremes(x, &least, &largest);
    lw_dynamic_parameters(least, largest, scale, zero);
    LW_TRY(lw_tensor_new(y, LW_U8, x->rank, x->dim, err));
    for (int64_t i = 0; i < x->count; i++)
        ((uint8_t *)(*y)->data)[i] = (uint8_t)lw_quantize(((const float *)x->data)[i], *scale, *zero, 0, 255);
    return LW_OK;
}

lw_status lw_quant_multipliers(const lw_tensor *a_scale, const lw_tensor *b_scale, float y_scale, int64_t n,
                               const char *what, float **out, bool *one, lw_error *err)
{
    float sa;
    LW_TRY(lw_quant_scale(a_scale, "the input's scale", &sa, err));
    LW_TRY(lw_quant_check_scales(b_scale, what, err));
    if (b_scale->count != 1 && b_scale->count != n)
        return lw_fail(err, LW_E_INPUT, "%s has %lld values where 1 or %lld belong", what,
                       (long long)b_scale->count, (long long)n);
    *out = malloc((size_t)b_scale->count * sizeof **out);
    if (!*out)
        return lw_fail_memory(err, (size_t)b_scale->count * sizeof **out);
    for (int64_t j = 0; j < b_scale->count; j++)
        (*out)[j] = lw_requantize_multiplier(sa, ((const float *)b_scale->data)[j], y_scale);
    *one = b_scale->count == 1;
    return LW_OK;
}

void lw_quant_data_range(const lw_tensor *zero, lw_dtype *dtype, int32_t *least, int32_t *most)
{
    *dtype = zero ? zero->dtype : LW_I8;
    *least = *most = 0;
    for (int64_t i = 0; zero && i < zero->count; i++) {
        int32_t z = (int32_t)lw_tensor_integer(zero, i);
        *least = i == 0 || z < *least ? z : *least;
        *most = i == 0 || z > *most ? z : *most;
    }
}

bool lw_is_8_bits(const lw_tensor *t)
{
    return t && (t->dtype == LW_I8 || t->dtype == LW_U8);
}
