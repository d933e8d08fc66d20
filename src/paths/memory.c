/* memory.c - the memory that the system would give, from /proc and the control group. */
#include "paths/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t read_number(const char *path)
{
    int64_t value = -1;
    FILE *f = fopen(path, "r");
    if (!f)
        return -1;
    if (fscanf(f, "%" SCNd64, &value) != 1)
        value = -1; /* "max" */
    fclose(f);
    return value;
}

int64_t lw_memory_available(void)
{
    int64_t available = -1;
    FILE *f = fopen("/proc/meminfo", "r");
    char line[128];
    while (f && fgets(line, sizeof line, f)) {
        int64_t kilobytes;
        if (sscanf(line, "MemAvailable: %" SCNd64, &kilobytes) == 1)
            available = kilobytes * 1024;
    }
    if (f)
        fclose(f);
    int64_t limit = read_number("/sys/fs/cgroup/memory.max"),
            used = read_number("/sys/fs/cgroup/memory.current");
    if (limit >= 0 && used >= 0 && (available < 0 || limit - used < available))
        available = limit > used ? limit - used : 0;
    return available;
}
