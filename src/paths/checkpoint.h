/* checkpoint.h - the state of a solve on disk: written atomically, checked when it is read back. */
#ifndef LW_CHECKPOINT_H
#define LW_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/paths.h"

typedef struct lw_checkpoint {
    const char *path;
    double interval;      /* seconds between two saves */
    double last;          /* when the last one ended; monotonic seconds */
    const lw_host *host;  /* a stop asks for a save */
    uint64_t fingerprint; /* of graph and scale: what the matrix was made from */
    lw_paths_type type;
    int64_t n;
    const void *matrix; /* n * n elements */
} lw_checkpoint;

/* Fails where no file can be made at `path`, so that this is known before the work. LW_E_IO. */
lw_status lw_checkpoint_try(const char *path, lw_error *err);
/* What the file at `path` holds: *k pivots done in a matrix of *type. *k = 0 where there is no such file.
 * LW_E_INPUT: it is none of ours, damaged in its header, or belongs to another graph; LW_E_IO. */
lw_status lw_checkpoint_peek(const char *path, uint64_t fingerprint, int64_t n, lw_paths_type *type,
                             int64_t *k, lw_error *err);
/* Reads the matrix back. LW_E_INPUT: cut short or its checksum is wrong. */
lw_status lw_checkpoint_load(const lw_checkpoint *checkpoint, void *matrix, lw_error *err);
/* The two hooks of lw_paths_job; user is an lw_checkpoint. */
bool lw_checkpoint_want(void *user, int64_t k);
lw_status lw_checkpoint_save(void *user, int64_t k, lw_error *err);

/* A running 64-bit checksum of `bytes` (begin with 0). Not cryptographic. */
uint64_t lw_checksum(uint64_t so_far, const void *data, int64_t bytes);

#endif
