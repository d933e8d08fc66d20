/* npy.h - NumPy's .npy files, format versions 1.0, 2.0 and 3.0.
 *
 * Reading accepts C and Fortran order and both byte orders and always delivers C order in the machine's byte
 * order. Writing makes version 1.0, C order, little-endian. Object, string and structured arrays are refused.
 */
#ifndef LW_NPY_H
#define LW_NPY_H

#include <stddef.h>
#include <stdint.h>
#include "lanewise/dtype.h"
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
typedef struct lw_outfile lw_outfile; /* outfile.h has C's atomics */
#else
#include "common/outfile.h"
#endif

enum { LW_NPY_DIMS = 8 };

/* Zero-initialise before first use. */
typedef struct lw_npy {
    lw_dtype dtype;
    int ndim;                   /* 0 is a scalar */
    int64_t shape[LW_NPY_DIMS]; /* >= 0 */
    int64_t count;              /* elements: the product of shape */
    void *data;                 /* malloc'ed; not NULL even when count is 0 */
} lw_npy;

/* Reads all of `path` ("-": standard input). LW_E_IO; LW_E_INPUT: not .npy, a dtype that is not listed above,
 * too many dimensions, fewer or more bytes than the header promises; LW_E_NOMEM. */
lw_status lw_npy_read(lw_npy *out, const char *path, lw_error *err);
void lw_npy_free(lw_npy *array); /* the data; NULL is allowed */

/* The header for an array of this kind. Returns its bytes (a multiple of 64, at most LW_NPY_HEADER). */
enum { LW_NPY_HEADER = 320 };
size_t lw_npy_header(char header[LW_NPY_HEADER], lw_dtype dtype, int ndim, const int64_t *shape);

/* Header and data to an open output. LW_E_IO. */
lw_status lw_npy_write(lw_outfile *file, const lw_npy *array, lw_error *err);

/* IEEE half to single; exact. */
float lw_half_to_float(uint16_t half);

#ifdef __cplusplus
}
#endif
#endif
