/* nvml.h - clocks and power of a GPU by NVML, which is loaded at run time where the driver brings it. */
#ifndef LW_NVML_H
#define LW_NVML_H

#include <stdbool.h>

/* 0 where not known. */
typedef struct nvml_reading {
    double mhz, memory_mhz; /* of the multiprocessors, of the memory */
    double watts, celsius;
} nvml_reading;

typedef struct nvml {
    void *library, *device;
    int (*shutdown)(void);
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    char driver[80];
} nvml;

/* Opens the device with this PCI address ("0000:1B:00.0"). False: no NVML here; readings are then all 0. */
bool nvml_open(nvml *n, const char *pci);
nvml_reading nvml_read(const nvml *n);
void nvml_close(nvml *n);

#endif
