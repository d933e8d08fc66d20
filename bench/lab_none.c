/* lab_none.c - the laboratory of a build without CUDA. */
#include "bench.h"
#include "common/device.h"
#include "common/fail.h"
#include "lab.h"

bool lab_pci_address(int device, char *text, int size)
{
    (void)device, (void)text, (void)size;
    return false;
}

lw_status lab_numerics(int device, char *text, size_t size, lw_error *err)
{
    (void)device, (void)text, (void)size;
    return lw_fail(err, LW_E_UNSUPPORTED, "this build has no CUDA code");
}

lw_status lab_ceilings(bench *b, bool show, lw_error *err)
{
    (void)b, (void)show, (void)err;
    return LW_OK;
}

lw_status lab_techniques(bench *b, lw_error *err)
{
    (void)b, (void)err;
    return LW_OK;
}

void lab_free(bench *b)
{
    (void)b;
}
