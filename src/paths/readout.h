/* readout.h - what the files share that read something off a distance matrix: routes.c, stats.c and sets.c.
 */
#ifndef LW_PATHS_READOUT_H
#define LW_PATHS_READOUT_H

#include <stdio.h>
#include "common/outfile.h"
#include "lanewise/paths.h"

/* d(i,j); infinity is the type's largest value. */
static inline double lw_distance(const lw_paths *p, int64_t i, int64_t j)
{
    int64_t at = i * p->n + j;
    switch (p->type) {
    case LW_PATHS_S32:
        return ((const int32_t *)p->distance)[at];
    case LW_PATHS_S64:
        return (double)((const int64_t *)p->distance)[at];
    case LW_PATHS_F32:
        return (double)((const float *)p->distance)[at];
    default:
        return ((const double *)p->distance)[at];
    }
}

/* An output stream opened, filled by `fill` and closed. */
lw_status lw_readout(const char *path, lw_temporaries *temporaries,
                     lw_status (*fill)(const void *arg, FILE *f, lw_error *err), const void *arg,
                     lw_error *err);

#endif
