/* dtype.h - element types of arrays. */
#ifndef LANEWISE_DTYPE_H
#define LANEWISE_DTYPE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lw_dtype {
    LW_BOOL, /* one byte, 0 or 1 */
    LW_I8,
    LW_U8,
    LW_I16,
    LW_U16,
    LW_I32,
    LW_U32,
    LW_I64,
    LW_U64,
    LW_F16,
    LW_F32,
    LW_F64
} lw_dtype;

int64_t lw_dtype_size(lw_dtype dtype);     /* bytes of one element */
const char *lw_dtype_name(lw_dtype dtype); /* NumPy's name: "int32" */

#ifdef __cplusplus
}
#endif
#endif
