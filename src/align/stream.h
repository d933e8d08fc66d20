/* stream.h - a pipeline: one reader, several compute lanes, one writer, and a fixed set of batches that
 * travel between them, so that memory does not grow with the input.
 *
 *     reader thread -> waiting batches -> lane threads -> finished batches -> caller's thread
 *        read()                            work()          (input order)         write()
 *
 * The first failure in input order ends the run: every batch before it was written. */
#ifndef LW_STREAM_H
#define LW_STREAM_H

#include <stdbool.h>
#include "lanewise/status.h"

typedef struct lw_stream_ops {
    void *arg;
    /* Reader thread: fills batch; *end: there was nothing left to fill it with. */
    lw_status (*read)(void *arg, void *batch, bool *end, lw_error *err);
    /* Lane thread `lane`, before its first batch; *context is then the lane's own. */
    lw_status (*open_lane)(void *arg, int lane, void **context, lw_error *err);
    lw_status (*work)(void *arg, void *context, void *batch, lw_error *err);
    void (*close_lane)(void *arg, void *context);
    /* A lane could not be opened and all are closed again: changes `arg` so that another set of lanes can be,
     * and returns their number; 0: give up with `reason`, the failure. NULL: never. */
    int (*fall_back)(void *arg, const lw_error *reason);
    /* Caller's thread, in input order. */
    lw_status (*write)(void *arg, void *batch, lw_error *err);
} lw_stream_ops;

/* Runs until the input ends or something fails. n_batches >= 2 batches are lent for the run. */
lw_status lw_stream_run(const lw_stream_ops *ops, void *const *batches, int n_batches, int n_lanes,
                        const lw_host *host, lw_error *err);

#endif
