/* progress.h - the live line on standard error: done/total, rate in the domain's unit, time left. */
#ifndef LW_PROGRESS_H
#define LW_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct progress {
    FILE *stream;
    bool enabled, terminal, shown;
    const char *item;      /* "reads" */
    const char *work_unit; /* "cells", "relaxations", "operations" or NULL */
    double started, last;  /* seconds, monotonic */
    double done, total, work;
} progress;

/* Shows lines on `stream` if it is a terminal or `forced`, unless `quiet`. On a terminal the line is redrawn
 * at most ten times a second; elsewhere a new line is written at most every two seconds. */
void progress_begin(progress *p, FILE *stream, bool forced, bool quiet, const char *item,
                    const char *work_unit);
void progress_update(progress *p, double done, double total, double work);
void progress_clear(progress *p); /* takes the line off the terminal, so that a message can be written */
void progress_end(progress *p);

/* "12.3 GCUPS", "4.56 M reads/s", ... */
void progress_rate(char *text, size_t size, double amount, double seconds, const char *unit);

double progress_now(void); /* seconds, monotonic */

#endif
