/* nvml.c - the five functions of libnvidia-ml.so.1 that the bench needs. */
#include "nvml.h"

#include <dlfcn.h>
#include <string.h>

/* values of NVML's enumerations, which are part of its stable interface */
enum { CLOCK_OF_MULTIPROCESSORS = 1, CLOCK_OF_MEMORY = 2, SENSOR_OF_GPU = 0 };

/* Object and function pointers have the same size wherever dlsym() exists. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        return false;
    memcpy(function, &symbol, sizeof symbol);
    return true;
}

bool nvml_open(nvml *n, const char *pci)
{
    int (*start)(void), (*by_address)(const char *, void **), (*driver)(char *, unsigned);
    memset(n, 0, sizeof *n);
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        return false;
    if (!find(n->library, "nvmlInit_v2", &start) || !find(n->library, "nvmlShutdown", &n->shutdown) ||
        !find(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_address) ||
        !find(n->library, "nvmlSystemGetDriverVersion", &driver) ||
        !find(n->library, "nvmlDeviceGetClockInfo", &n->clock) ||
        !find(n->library, "nvmlDeviceGetPowerUsage", &n->power) ||
        !find(n->library, "nvmlDeviceGetTemperature", &n->temperature) || start() != 0) {
        dlclose(n->library);
        memset(n, 0, sizeof *n);
        return false;
    }
    if (driver(n->driver, sizeof n->driver) != 0)
        n->driver[0] = '\0';
    if (by_address(pci, &n->device) != 0)
        n->device = NULL;
    return n->device != NULL;
}

nvml_reading nvml_read(const nvml *n)
{
    nvml_reading r = {0};
    unsigned value;
    if (!n->device)
        return r;
    if (n->clock(n->device, CLOCK_OF_MULTIPROCESSORS, &value) == 0)
        r.mhz = value;
    if (n->clock(n->device, CLOCK_OF_MEMORY, &value) == 0)
        r.memory_mhz = value;
    if (n->power(n->device, &value) == 0)
        r.watts = value * 1e-3;
    if (n->temperature(n->device, SENSOR_OF_GPU, &value) == 0)
        r.celsius = value;
    return r;
}

void nvml_close(nvml *n)
{
    if (n->library) {
        n->shutdown();
        dlclose(n->library);
    }
    memset(n, 0, sizeof *n);
}
