/* numerics.h - what a GPU build really does with float32: its compiler options, told by results. */
#ifndef LW_NUMERICS_H
#define LW_NUMERICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lw_numerics {
    bool fused;          /* x * y + z rounds once (-fmad=true) */
    bool flushes;        /* subnormal results become 0 (-ftz=true) */
    bool exact_division; /* a / b is the nearest float (-prec-div=true) */
    bool exact_root;     /* sqrtf(a) is the nearest float (-prec-sqrt=true) */
} lw_numerics;

/* Input of the probe (numerics.cuh), and what its output says. */
enum { LW_PROBES = 64, LW_PROBE_INPUTS = 3 + 2 * LW_PROBES, LW_PROBE_OUTPUTS = 2 + 2 * LW_PROBES };
void lw_numerics_input(float *in);
lw_numerics lw_numerics_judge(const float *in, const float *out);

/* "products and sums fused, subnormals kept, division exact, roots exact" */
void lw_numerics_text(const lw_numerics *n, char *text, size_t size);

/* Those of this library's device code, by running it; creates the device's context. LW_E_UNSUPPORTED,
 * LW_E_DEVICE. */
lw_status lw_device_numerics(int device, lw_numerics *out, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
