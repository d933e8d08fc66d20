/* fail.h - how our own code reports failures upwards. */
#ifndef LW_FAIL_H
#define LW_FAIL_H

#include <stddef.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LW_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define LW_PRINTF(fmt, first)
#endif

/* Records the first failure in err (NULL: nowhere) and returns `status`, so that one writes
 * `return lw_fail(err, LW_E_INPUT, "%s: record %ld: ...", ...)`. */
lw_status lw_fail(lw_error *err, lw_status status, const char *format, ...) LW_PRINTF(3, 4);

/* "out of memory" with the size that was wanted; 0: a library wanted it and does not say how much. */
lw_status lw_fail_memory(lw_error *err, size_t bytes);

/* One line to the host at a LW_SAY_* level; host and host->say may be NULL. */
void lw_say(const lw_host *host, int level, const char *format, ...) LW_PRINTF(3, 4);

/* Non-zero once the host asked to stop. */
int lw_stopped(const lw_host *host);

/* Passes a failure on: `LW_TRY(call(..., err));` */
#define LW_TRY(call)                                                                                         \
    do {                                                                                                     \
        lw_status lw_try_status_ = (call);                                                                   \
        if (lw_try_status_ != LW_OK)                                                                         \
            return lw_try_status_;                                                                           \
    } while (0)

/* The same where there is something to clean up; the function has `lw_status status` and a label `end`. */
#define LW_TRY_END(call)                                                                                     \
    do {                                                                                                     \
        status = (call);                                                                                     \
        if (status != LW_OK)                                                                                 \
            goto end;                                                                                        \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
