/* fingerprint.h - one number for how this build rounds on this machine. */
#ifndef LW_FINGERPRINT_H
#define LW_FINGERPRINT_H

#include <stdint.h>

/* A hash of the bits of a fixed series of float32 and float64 results: sums of products as the compiler made
 * them (fused or not), divisions, roots, subnormals, halfway cases of rounding, and the C library's exp() and
 * log1p(). Two builds with the same value can be expected to give the same float results on the CPU. */
uint64_t lw_numeric_fingerprint(void);

#endif
