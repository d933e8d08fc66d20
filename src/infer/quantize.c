/* quantize.c - 8-bit weights from float ones. */
#include "infer/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "infer/quant.h"

/* The scale that element i belongs to. */
static int64_t scale_of(const lw_tensor *w, unsigned axes, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = w->rank - 1; d >= 0; d--) {
        int64_t k = i % w->dim[d];
        i /= w->dim[d];
        if (axes >> d & 1) {
            at += k * step;
            step *= w->dim[d];
        }
    }
    return at;
}

lw_status lw_quantize_weights(const lw_tensor *w, unsigned axes, bool symmetric, lw_tensor **q,
                              lw_tensor **scale, lw_tensor **zero, lw_error *err)
{
    int64_t dim[LW_MAX_RANK];
    int rank = 0;
    if (!w || w->dtype != LW_F32)
        return lw_fail(err, LW_E_INPUT, "weights to quantize must be float32%s%s", w ? ", not " : "",
                       w ? lw_dtype_name(w->dtype) : "");
    for (int d = 0; d < w->rank; d++)
        if (axes >> d & 1)
            dim[rank++] = w->dim[d];
    LW_TRY(lw_tensor_new(q, LW_I8, w->rank, w->dim, err));
    LW_TRY(lw_tensor_new(scale, LW_F32, rank, dim, err));
    LW_TRY(lw_tensor_new(zero, LW_I8, rank, dim, err));
    int64_t n = (*scale)->count;
    float *least = calloc((size_t)(2 * n) + 1, sizeof *least), *largest = least + n, *s = (*scale)->data;
    int8_t *z = (*zero)->data;
    if (!least)
        return lw_fail_memory(err, (size_t)(2 * n) * sizeof *least);
    const float *v = w->data;
    for (int64_t i = 0; i < w->count; i++) {
        int64_t at = scale_of(w, axes, i);
        if (!isfinite(v[i])) {
            free(least);
            return lw_fail(err, LW_E_INPUT, "weight %lld is %g: weights are finite", (long long)i,
                           (double)v[i]);
        }
        least[at] = v[i] < least[at] ? v[i] : least[at];
        largest[at] = v[i] > largest[at] ? v[i] : largest[at];
    }
    for (int64_t k = 0; k < n; k++) {
        if (symmetric) {
            largest[k] = largest[k] > -least[k] ? largest[k] : -least[k];
            least[k] = -largest[k];
        }
        /* in double, as ONNX Runtime's quantizer; a range below float32's smallest normal number is no range
         */
        float step = (float)(((double)largest[k] - (double)least[k]) / (symmetric ? 254 : 255));
        bool flat = step < 0x1p-126f;
        s[k] = flat ? 1 : step;
        z[k] = symmetric || flat ? 0 : (int8_t)lw_saturate_round(-128 - least[k] / step, 0, -128, 127);
    }
    for (int64_t i = 0; i < w->count; i++) {
        int64_t at = scale_of(w, axes, i);
        ((int8_t *)(*q)->data)[i] = (int8_t)lw_quantize(v[i], s[at], z[at], symmetric ? -127 : -128, 127);
    }
    free(least);
    return LW_OK;
}
