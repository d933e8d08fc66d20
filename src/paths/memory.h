/* memory.h - how much memory a job may take. */
#ifndef LW_PATHS_MEMORY_H
#define LW_PATHS_MEMORY_H

#include <stdint.h>

/* Bytes that this process could allocate now without swapping, its control group's limit included; -1:
 * unknown. */
int64_t lw_memory_available(void);

#endif
