/* paths_cuda.h - what the files of the cuda-* rows share.
 *
 * - paths_cuda.cu: the rows, and the plan of a solve: which kernels, in or out of core, how much memory
 * - paths_cuda_solve.cu: the k-blocks, in device memory and out of host memory
 * - paths_cuda_move.cu: copies between host and device, narrowing and widening, padding; next hops
 * - paths_kernels.h: the kernels of the k-blocks, instantiated in paths_cuda_dpx.cu and paths_cuda_plain.cu
 */
#ifndef LW_PATHS_CUDA_H
#define LW_PATHS_CUDA_H

#include "common/cuda_check.h"
#include "paths/paths_backend.h"
#include "paths/paths_kernels.h"
#include "paths/paths_tuning.h"

typedef struct buffer {
    void *p;
    int64_t bytes;
} buffer;

enum { SLOTS = 3 };
enum {
    MATRIX,
    PANEL_A0,
    PANEL_A1,
    PANEL_B0,
    PANEL_B1,
    CHUNK0, /* 16-bit runs: rows on their way in or out */
    CHUNK1,
    SLOT0,
    BIG_A = SLOT0 + SLOTS,
    BIG_B,
    STRIP,
    NEXT0,
    NEXT1,
    EDGE_START,
    EDGE_TO,
    EDGE_WEIGHT,
    N_BUFFERS
};

typedef struct paths_cuda {
    int policy;
    int device, multiprocessors;
    double clock_hz;
    int64_t limit; /* 0: what is free */
    lw_pool *pool;
    const lw_host *host;
    cudaStream_t chain, rest, in, out;
    cudaEvent_t chain_done[4], rest_done[4]; /* by k-block, modulo 4 */
    cudaEvent_t loaded[SLOTS], computed[SLOTS], stored[SLOTS], turn;
    cudaEvent_t moved[2], computed_next[2];
    cudaEvent_t begin, end; /* timing */
    int *flag;              /* pinned; written by kernels */
    void *pinned[2];        /* staging of LW_PATHS_CHUNK bytes each */
    buffer buffers[N_BUFFERS];
} paths_cuda;

/* One solve on its way. */
typedef struct run {
    paths_cuda *x;
    const lw_paths_job *job;
    const lw_paths_kernels *k;
    lw_paths_report *report;
    int64_t done;  /* pivots; host memory may be older */
    int64_t saved; /* pivots done in the host matrix */
    bool verify;   /* 16 bits without a proof */
    bool overflow; /* 16 bits were too few */
} run;

/* A matrix in host memory, or columns of one, and where it lies on the device. In bytes. */
typedef struct place {
    char *host;
    int64_t host_pitch, width, rows;
    char *device;
    int64_t device_pitch;
    bool halves; /* s32 on the host, u16 in words on the device */
} place;

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Device memory of at least `bytes` in buffer `which`; its contents are lost if it has to grow. */
lw_status lw_paths_need(paths_cuda *x, int which, int64_t bytes, lw_error *err);
void lw_paths_drop(paths_cuda *x, int first, int last);

/* The k-blocks of a solve. in_core() sets r->overflow instead of a result when 16 bits were too few; `limit`
 * is the device memory that may be taken. */
lw_status lw_paths_in_core(run *r, int64_t limit, lw_error *err);
lw_status lw_paths_out_of_core(run *r, int64_t block, int64_t limit, lw_error *err);

/* upload() returns when all is on the device, download() when all is in host memory; what it takes from the
 * device must be complete, or awaited by x->out. */
lw_status lw_paths_upload(paths_cuda *x, const place *m, lw_error *err);
lw_status lw_paths_download(paths_cuda *x, const place *m, lw_error *err);

/* Infinity in rows [rows, to_rows) and, in the rows above, columns [cols, to_cols), in words. */
lw_status lw_paths_pad(const run *r, void *c, int64_t ldc, int64_t rows, int64_t cols, int64_t to_rows,
                       int64_t to_cols, lw_error *err);

/* With negative weights infinity drifts; this brings it back, on x->rest. */
lw_status lw_paths_settle(run *r, void *c, int64_t ldc, int64_t rows, int64_t cols, lw_error *err);

/* Sets r->overflow if `words` words on the device hold a finite value that 16 bits do not prove right. */
lw_status lw_paths_verify(run *r, const void *c, int64_t words, lw_error *err);

/* Next hops from a matrix on the device, or (device.device NULL) in host memory; and the device memory that
 * this takes. `strip`: columns have to be copied or widened into a buffer of their own. */
lw_status lw_paths_next_hops(run *r, const place *device, int64_t limit, lw_error *err);
int64_t lw_paths_next_bytes(const lw_paths_job *job, bool strip, int64_t limit);

#endif
