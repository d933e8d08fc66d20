/* backend.c - choosing a row of a backend table. */
#include "common/backend.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/device.h"
#include "common/fail.h"

lw_status lw_backend_always(const lw_backend *self, int device, lw_error *err)
{
    (void)self, (void)device, (void)err;
    return LW_OK;
}

int lw_backend_rank_scalar(const lw_backend *self, int device)
{
    (void)self, (void)device;
    return 1;
}

int lw_backend_rank_cpu(const lw_backend *self, int device)
{
    (void)self, (void)device;
    return 10;
}

lw_status lw_backend_cuda_usable(const lw_backend *self, int device, lw_error *err)
{
    lw_device d;
    LW_TRY(lw_device_query(device, &d, err));
    int cc = d.major * 10 + d.minor;
    if (self->policy == LW_CUDA_DPX && cc < 90)
        return lw_fail(err, LW_E_UNSUPPORTED,
                       "%s needs compute capability 9.0 (DPX instructions); %s has %d.%d", self->name, d.name,
                       d.major, d.minor);
    if (self->policy == LW_CUDA_HALF2 && cc < 80)
        return lw_fail(err, LW_E_UNSUPPORTED,
                       "%s needs compute capability 8.0 (paired half minimum and maximum); %s has %d.%d",
                       self->name, d.name, d.major, d.minor);
    if (self->policy == LW_CUDA_TENSOR && cc < 75)
        return lw_fail(err, LW_E_UNSUPPORTED,
                       "%s needs compute capability 7.5 (8-bit tensor cores); %s has %d.%d", self->name,
                       d.name, d.major, d.minor);
    if (self->policy == LW_CUDA_DP4A && cc < 61)
        return lw_fail(err, LW_E_UNSUPPORTED,
                       "%s needs compute capability 6.1 (four-byte dot products); %s has %d.%d", self->name,
                       d.name, d.major, d.minor);
    return LW_OK;
}

int lw_backend_cuda_rank(const lw_backend *self, int device)
{
    lw_device d;
    if (lw_device_query(device, &d, NULL) != LW_OK)
        return 0;
    int cc = d.major * 10 + d.minor;
    switch (self->policy) {
    case LW_CUDA_TENSOR:
        return 60;
    case LW_CUDA_DPX: /* one instruction on 9.0, 10.0 and 10.3; emulated in two on 11.x and 12.x */
        return cc >= 90 && cc < 110 ? 50 : 25;
    case LW_CUDA_DP4A:
        return 50;
    case LW_CUDA_HALF2:
        return 40;
    default:
        return 20;
    }
}

lw_status lw_backend_choose(const lw_backend *const *rows, int n, const char *name, int device, int *index,
                            char *why, size_t why_size, lw_error *err)
{
    bool is_auto = strcmp(name, "auto") == 0, is_cuda = strcmp(name, "cuda") == 0;
    if (!is_auto && !is_cuda) {
        for (int i = 0; i < n; i++) {
            if (strcmp(rows[i]->name, name) != 0)
                continue;
            LW_TRY(rows[i]->usable(rows[i], device, err));
            *index = i;
            if (why)
                snprintf(why, why_size, "backend %s, as asked for", name);
            return LW_OK;
        }
        char names[256] = "";
        for (int i = 0; i < n; i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), ", %s", rows[i]->name);
        return lw_fail(err, LW_E_ARG, "unknown backend '%s': one of auto, cuda%s", name, names);
    }
    int best = -1, best_rank = 0;
    lw_error refusal = {0}; /* why the most wanted of the others cannot run */
    for (int i = 0; i < n; i++) {
        bool row_is_cuda = strncmp(rows[i]->name, "cuda", 4) == 0;
        if (is_cuda && !row_is_cuda)
            continue;
        lw_error reason = {0};
        if (rows[i]->usable(rows[i], device, &reason) != LW_OK) {
            if (row_is_cuda && refusal.status == LW_OK)
                refusal = reason;
            continue;
        }
        int rank = rows[i]->rank(rows[i], device);
        if (rank > best_rank) {
            best_rank = rank;
            best = i;
        }
    }
    if (best < 0)
        return lw_fail(err, LW_E_UNSUPPORTED, "backend %s cannot run: %s", name,
                       refusal.status ? refusal.message : "no row of that kind is compiled in");
    *index = best;
    if (why) {
        if (strncmp(rows[best]->name, "cuda", 4) == 0 || refusal.status == LW_OK)
            snprintf(why, why_size, "%s chose backend %s, the fastest that can run here", name,
                     rows[best]->name);
        else
            snprintf(why, why_size, "%s chose backend %s; no GPU: %s", name, rows[best]->name,
                     refusal.message);
    }
    return LW_OK;
}

int lw_backend_describe(const lw_backend *const *rows, int n, int device, lw_backend_info *out, int capacity)
{
    int automatic = -1;
    lw_backend_choose(rows, n, "auto", device, &automatic, NULL, 0, NULL);
    for (int i = 0; i < n && i < capacity; i++) {
        lw_error reason = {0};
        lw_backend_info *info = &out[i];
        memset(info, 0, sizeof *info);
        snprintf(info->name, sizeof info->name, "%s", rows[i]->name);
        snprintf(info->what, sizeof info->what, "%s", rows[i]->what);
        info->usable = rows[i]->usable(rows[i], device, &reason) == LW_OK;
        info->automatic = i == automatic;
        if (!info->usable)
            snprintf(info->reason, sizeof info->reason, "%.500s", reason.message);
    }
    return n;
}
