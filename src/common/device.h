/* device.h - the CUDA devices of this machine, found without ever failing hard: no driver, an old
 * driver, no GPU and a hidden GPU are all answers, not crashes. */
#ifndef LW_DEVICE_H
#define LW_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lw_device {
    int ordinal;
    char name[256];
    int major, minor; /* compute capability */
    int multiprocessors;
    int clock_khz;        /* boost clock; 0 if not told */
    int64_t memory_bytes; /* total */
    int64_t free_bytes;   /* only after lw_device_free_bytes(); else -1 */
    int64_t shared_bytes; /* most shared memory a block may opt in to */
    int64_t l2_bytes;
} lw_device;

/* Number of devices that CUDA shows. 0 with a reason in err (when not NULL) if there is none; never
 * creates a context. */
int lw_device_count(lw_error *err);

/* Properties of device `ordinal`, without creating a context. LW_E_UNSUPPORTED with the reason: no such
 * device, no driver, a driver older than this build needs, or no machine code for it in this binary. */
lw_status lw_device_query(int ordinal, lw_device *out, lw_error *err);

/* Free memory of the device; creates its context. LW_E_DEVICE. */
lw_status lw_device_free_bytes(int ordinal, int64_t *out, lw_error *err);

/* Architectures in this binary, as CMake lists them ("80-real,90-real"), or "none". */
const char *lw_device_compiled(void);

/* Driver and runtime versions as MAJOR * 1000 + MINOR * 10, 0 where there is none. */
void lw_device_versions(int *driver, int *runtime);

#ifdef __cplusplus
}
#endif
#endif
