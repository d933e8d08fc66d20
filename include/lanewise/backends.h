/* backends.h - which implementations of each domain this build holds and this machine can run. */
#ifndef LANEWISE_BACKENDS_H
#define LANEWISE_BACKENDS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lw_backend_info {
    char name[32];    /* as --backend takes it */
    char what[128];   /* one line */
    bool usable;      /* it can run here and now, on the device asked about */
    bool automatic;   /* it is the one that "auto" chooses */
    char reason[512]; /* why it cannot run; empty if it can */
} lw_backend_info;

/* Describe the rows of a domain for CUDA device `device` (an ordinal; rows that need none do not look at it).
 * Fill at most `capacity` entries and return the number of rows. */
int lw_align_backend_list(int device, lw_backend_info *out, int capacity);
int lw_search_backend_list(int device, lw_backend_info *out, int capacity);
int lw_paths_backend_list(int device, lw_backend_info *out, int capacity);
int lw_infer_backend_list(int device, lw_backend_info *out, int capacity);

#ifdef __cplusplus
}
#endif
#endif
