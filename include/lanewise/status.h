/* status.h - how every call of liblanewise reports what happened.
 *
 * A function that can fail returns an lw_status and takes an lw_error to hold one line for the
 * user: what is wrong, where (file, record, position) and what to do. The library never prints,
 * never exits and keeps no global mutable state. */
#ifndef LANEWISE_STATUS_H
#define LANEWISE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lw_status {
    LW_OK = 0,
    LW_E_ARG = -1,         /* an argument or option is out of its documented range */
    LW_E_INPUT = -2,       /* a file's content is not what its format promises */
    LW_E_IO = -3,          /* reading, writing or renaming failed */
    LW_E_NOMEM = -4,       /* host memory could not be had */
    LW_E_UNSUPPORTED = -5, /* not compiled in, or not possible on this machine */
    LW_E_DEVICE = -6,      /* a CUDA call failed; the device context is lost */
    LW_E_RANGE = -7,       /* the job's numbers exceed what the result type holds */
    LW_E_INTERRUPTED = -8, /* lw_host.stop became non-zero */
    LW_E_INTERNAL = -9     /* a check of our own failed: please report it */
} lw_status;

/* Owned by the caller; zero-initialise it before first use. A failing call fills both fields; a
 * second failure does not overwrite the first message. Every `lw_error *` may be NULL. */
typedef struct lw_error {
    lw_status status;
    char message[1024]; /* one line of UTF-8, no newline at the end */
} lw_error;

/* Message levels, as lw_host.say receives them. */
enum { LW_SAY_ERROR = 0, LW_SAY_WARNING = 1, LW_SAY_INFO = 2, LW_SAY_DETAIL = 3 };

/* What the calling program lends to a long-running call. All members may be zero; borrowed for
 * the duration of the call. `say` and `progress` may be called from any thread, one at a time. */
typedef struct lw_host {
    void *user;                                           /* handed back to the callbacks */
    void (*say)(void *user, int level, const char *text); /* one line, without newline */
    /* done and total in items (total 0: unknown); work in the domain's unit (cells, relaxations) */
    void (*progress)(void *user, double done, double total, double work);
    /* non-zero: give up at the next batch with LW_E_INTERRUPTED. Any thread of the call loads it, atomically;
     * so should it be stored from another thread or a signal handler (__atomic_store_n) */
    const volatile int *stop;
} lw_host;

/* A constant English name of a status ("bad input"). */
const char *lw_status_name(lw_status status);

#ifdef __cplusplus
}
#endif
#endif
