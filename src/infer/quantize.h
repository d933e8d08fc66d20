/* quantize.h - 8-bit weights, scales and zero points from float weights. */
#ifndef LW_QUANTIZE_H
#define LW_QUANTIZE_H

#include "infer/tensor.h"

/* One scale for each index along the dimensions in `axes` (bit d: dimension d), as a list or, for two, a
 * table; with axes 0 one for all. symmetric:  int8 within +-127, scale = largest magnitude / 127, zero point
 * 0 else:       int8, scale = (largest - least) / 255, both widened to include 0, zero point
 *               round_half_even(-128 - least / scale)
 * in the order of ONNX Runtime's quantizer; where all is 0 the scale is 1. LW_E_INPUT: not float32, or a
 * weight that is not finite. */
lw_status lw_quantize_weights(const lw_tensor *w, unsigned axes, bool symmetric, lw_tensor **q,
                              lw_tensor **scale, lw_tensor **zero, lw_error *err);

#endif
