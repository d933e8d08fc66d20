/* align_choice.h - what every kind of run begins with: the backend, its devices, the scoring, and callbacks
 * that all threads may call. */
#ifndef LW_ALIGN_CHOICE_H
#define LW_ALIGN_CHOICE_H

#include <pthread.h>
#include <stdbool.h>
#include "align/align_backend.h"

enum { LW_MOST_DEVICES = 64 };

typedef struct lw_choice {
    const lw_align_backend *backend;
    int device[LW_MOST_DEVICES];
    int n_devices;
    bool on_gpu;
    char devices[256]; /* their names, or "" */
    char why[512];     /* one line on how the backend was chosen */
} lw_choice;

/* `name` as --backend takes it; devices NULL: device 0. LW_E_ARG, LW_E_UNSUPPORTED. */
lw_status lw_choice_make(lw_choice *out, const char *name, const int *devices, int n_devices, lw_error *err);

/* Contexts that may work at the same time, and the device of each. */
int lw_choice_lanes(const lw_choice *choice);
int lw_choice_device(const lw_choice *choice, int lane);

/* The scoring that the job asks for; `guess`: the type of its sequences, where it does not say. LW_E_ARG,
 * LW_E_INPUT, LW_E_IO. */
lw_status lw_choice_scoring(lw_scoring *out, const lw_align_job *job, lw_alphabet_type guess, lw_error *err);

/* The mode that the backends run in: that of the job or of its preset. */
lw_mode lw_choice_mode(const lw_align_job *job);

/* Whether this file is a CRAM, or could be one for all that can be seen without taking bytes out of a pipe:
 * then the reference (of so many letters) is needed in a form that CRAM reads. */
bool lw_may_be_cram(const char *path, int64_t reference_letters);

/* The host's callbacks, made safe to call from every thread of a run. */
typedef struct lw_shared_host {
    lw_host host; /* what the run's parts are given */
    const lw_host *real;
    pthread_mutex_t lock;
} lw_shared_host;

void lw_share_host(lw_shared_host *out, const lw_host *real); /* real may be NULL */
void lw_shared_host_end(lw_shared_host *host);

#endif
