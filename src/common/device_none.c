/* device_none.c - device.h for a build without CUDA. */
#include "common/device.h"

#include "common/fail.h"

static lw_status none(lw_error *err)
{
    return lw_fail(err, LW_E_UNSUPPORTED,
                   "this build has no CUDA code (it was configured without nvcc); use --backend cpu, or "
                   "build with a CUDA toolkit");
}

int lw_device_count(lw_error *err)
{
    none(err);
    return 0;
}

lw_status lw_device_query(int ordinal, lw_device *out, lw_error *err)
{
    (void)ordinal, (void)out;
    return none(err);
}

lw_status lw_device_free_bytes(int ordinal, int64_t *out, lw_error *err)
{
    (void)ordinal, (void)out;
    return none(err);
}

const char *lw_device_compiled(void)
{
    return "none";
}

void lw_device_versions(int *driver, int *runtime)
{
    *driver = *runtime = 0;
}
