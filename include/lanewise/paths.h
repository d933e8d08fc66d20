/* paths.h - all-pairs shortest paths. */
#ifndef LANEWISE_PATHS_H
#define LANEWISE_PATHS_H

#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types of a distance matrix. */
typedef enum lw_paths_type {
    LW_PATHS_S32 = 0, /* finite |d| <= 2^30 - 2 */
    LW_PATHS_S64 = 1, /* finite |d| <= 2^62 - 2 */
    LW_PATHS_F32 = 2,
    LW_PATHS_F64 = 3
} lw_paths_type;

#ifdef __cplusplus
}
#endif
#endif
