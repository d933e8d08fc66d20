/* numerics_none.c - without CUDA there is no device code to ask. */
#include "common/fail.h"
#include "common/numerics.h"

lw_status lw_device_numerics(int device, lw_numerics *out, lw_error *err)
{
    (void)device, (void)out;
    return lw_fail(err, LW_E_UNSUPPORTED, "this build has no CUDA code");
}
