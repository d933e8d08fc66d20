/* quant.h - quantization arithmetic, one definition for the host and every device.
 *
 * quantize:   q = saturate(round_half_even(x / scale) + zero)      ONNX QuantizeLinear: a true IEEE division
 * dequantize: x = (q - zero) * scale                               ONNX DequantizeLinear
 * requantize: q = saturate(round_half_even(acc * m) + zero), m a float32 multiplier, acc converted to float32
 *             first: what ONNX Runtime's CPU provider does. The standard leaves the order of the scales open;
 * there m is (a_scale * b_scale) / y_scale, each step rounded to float32.
 *
 * Saturation happens on the rounded float, before the zero point is added, in the range [low - zero, high -
 * zero]: those bounds are small integers, so nothing overflows. NaN quantizes to the lowest value. */
#ifndef LW_QUANT_H
#define LW_QUANT_H

#include <math.h>
#include <stdint.h>
#include "common/hd.h"

/* Nearest integer, ties to even, of |x| < 2^22 after clamping (the callers clamp). */
LW_HD float lw_round_half_even(float x)
{
    return rintf(x);
}

/* saturate(round(x) + zero) into [low, high], all three small integers. */
LW_HD int32_t lw_saturate_round(float x, int32_t zero, int32_t low, int32_t high)
{
    float least = (float)(low - zero), most = (float)(high - zero);
    x = x > least ? x : least; /* NaN compares false: lowest */
    x = x < most ? x : most;
    return (int32_t)lw_round_half_even(x) + zero;
}

LW_HD int32_t lw_quantize(float x, float scale, int32_t zero, int32_t low, int32_t high)
{
    return lw_saturate_round(x / scale, zero, low, high);
}

LW_HD float lw_dequantize(int32_t q, float scale, int32_t zero)
{
    return (float)(q - zero) * scale;
}

LW_HD int32_t lw_requantize(int32_t accumulator, float multiplier, int32_t zero, int32_t low, int32_t high)
{
    return lw_saturate_round((float)accumulator * multiplier, zero, low, high);
}

LW_HD float lw_requantize_multiplier(float a_scale, float b_scale, float y_scale)
{
    return a_scale * b_scale / y_scale;
}

/* One byte of QLinearSoftmax: its exponential's share of the row's sum, in steps of 1 / parts. */
LW_HD uint8_t lw_softmax_byte(uint32_t exponential, uint32_t parts, uint32_t sum, int32_t zero, int32_t high)
{
    int64_t q = sum ? ((int64_t)exponential * parts + (sum >> 1)) / sum : 0;
    q += zero;
    return (uint8_t)(q > high ? high : q);
}

/* QLinearSoftmax over rows of n bytes, `inner` apart. table: exponentials by the distance from the largest,
 * for the byte 255; bytes are exclusive or `flip`. */
typedef struct lw_qlinear_softmax {
    int64_t n, inner;
    uint32_t table[256], parts;
    int32_t zero, high;
    uint8_t flip;
} lw_qlinear_softmax;

/* DynamicQuantizeLinear: the uint8 scale and zero point of data whose least and largest values, both
 * widened to include 0, are given. */
LW_HD void lw_dynamic_parameters(float least, float largest, float *scale, uint8_t *zero)
{
    least = least < 0 ? least : 0;
    largest = largest > 0 ? largest : 0;
    *scale = largest == least ? 1.0f : (largest - least) / 255.0f;
    float at = -least / *scale; /* the initial zero point, in [0, 255] up to rounding */
    at = at > 0 ? at : 0;
    at = at < 255 ? at : 255;
    *zero = (uint8_t)lw_round_half_even(at);
}

/* The largest K for which sum_k a_k * b_k of K products of magnitude at most `product` plus a bias of
 * magnitude at most `bias` surely fits int32. */
LW_HD int64_t lw_safe_depth(int64_t product, int64_t bias)
{
    return product <= 0 ? INT64_MAX : (INT32_MAX - bias) / product;
}

#endif
