/* device_cuda.c - device.h over the CUDA runtime. */
#include "common/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime_api.h>

#include "common/fail.h"

/* LW_CUDA_ARCHS is cmake/LwCuda.cmake's list, e.g. "80-real,90-real,121-virtual" (no suffix: both). Machine
 * code runs on the same major version with an equal or higher minor one, PTX on anything newer. */
static int has_code(int major, int minor)
{
    int cc = major * 10 + minor;
    for (const char *p = LW_CUDA_ARCHS; *p;) {
        char *end;
        int arch = (int)strtol(p, &end, 10);
        size_t length = strcspn(end, ",");
        int is_real = strncmp(end, "-virtual", 8) != 0, is_virtual = strncmp(end, "-real", 5) != 0;
        if ((is_real && arch / 10 == major && arch % 10 <= minor) || (is_virtual && arch <= cc))
            return 1;
        p = end + length + (end[length] == ',');
    }
    return 0;
}

const char *lw_device_compiled(void)
{
    return LW_CUDA_ARCHS;
}

static lw_status cannot(lw_error *err, cudaError_t code)
{
    cudaGetLastError(); /* clear it: the next query starts clean */
    int driver = 0, runtime = 0;
    lw_device_versions(&driver, &runtime);
    switch (code) {
    case cudaErrorInsufficientDriver:
        if (driver == 0)
            return lw_fail(err, LW_E_UNSUPPORTED,
                           "no NVIDIA driver on this machine (libcuda.so.1 was not found)");
        return lw_fail(err, LW_E_UNSUPPORTED,
                       "the NVIDIA driver supports CUDA %d.%d, this build needs %d.%d: update the driver",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    case cudaErrorNoDevice:
        return lw_fail(err, LW_E_UNSUPPORTED,
                       "no CUDA device is visible (none in this machine, or hidden by CUDA_VISIBLE_DEVICES)");
    default:
        return lw_fail(err, LW_E_UNSUPPORTED, "CUDA cannot be used: %s", cudaGetErrorString(code));
    }
}

void lw_device_versions(int *driver, int *runtime)
{
    *driver = *runtime = 0;
    cudaDriverGetVersion(driver);
    cudaRuntimeGetVersion(runtime);
}

int lw_device_count(lw_error *err)
{
    int n = 0;
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code == cudaSuccess && n > 0)
        return n;
    cannot(err, code == cudaSuccess ? cudaErrorNoDevice : code);
    return 0;
}

static int attribute(int ordinal, enum cudaDeviceAttr attr)
{
    int value = 0;
    cudaDeviceGetAttribute(&value, attr, ordinal);
    return value;
}

lw_status lw_device_query(int ordinal, lw_device *out, lw_error *err)
{
    memset(out, 0, sizeof *out);
    out->free_bytes = -1;
    int n = 0;
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code != cudaSuccess || n == 0)
        return cannot(err, code == cudaSuccess ? cudaErrorNoDevice : code);
    if (ordinal < 0 || ordinal >= n)
        return lw_fail(err, LW_E_UNSUPPORTED, "there is no CUDA device %d: this machine shows %d (0 to %d)",
                       ordinal, n, n - 1);
    struct cudaDeviceProp prop;
    code = cudaGetDeviceProperties(&prop, ordinal);
    if (code != cudaSuccess)
        return cannot(err, code);
    out->ordinal = ordinal;
    snprintf(out->name, sizeof out->name, "%s", prop.name);
    out->major = prop.major;
    out->minor = prop.minor;
    out->multiprocessors = prop.multiProcessorCount;
    out->clock_khz = attribute(ordinal, cudaDevAttrClockRate);
    out->memory_bytes = (int64_t)prop.totalGlobalMem;
    out->shared_bytes = (int64_t)prop.sharedMemPerBlockOptin;
    out->l2_bytes = prop.l2CacheSize;
    if (!has_code(prop.major, prop.minor))
        return lw_fail(err, LW_E_UNSUPPORTED,
                       "%s has compute capability %d.%d, this binary holds code for %s: rebuild with "
                       "-DLW_CUDA_TARGETS=%d%d or the release preset",
                       prop.name, prop.major, prop.minor, lw_device_compiled(), prop.major, prop.minor);
    return LW_OK;
}

lw_status lw_device_free_bytes(int ordinal, int64_t *out, lw_error *err)
{
    size_t free_now = 0, total = 0;
    cudaError_t code = cudaSetDevice(ordinal);
    if (code == cudaSuccess)
        code = cudaMemGetInfo(&free_now, &total);
    if (code != cudaSuccess) {
        cudaGetLastError();
        return lw_fail(err, LW_E_DEVICE, "device %d: %s", ordinal, cudaGetErrorString(code));
    }
    *out = (int64_t)free_now;
    return LW_OK;
}
