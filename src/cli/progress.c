/* progress.c - the live line on standard error. */
#include "cli/progress.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static const double redraw_seconds = 0.1; /* on a terminal: as fast as an eye follows */
static const double line_seconds = 2.0;   /* in a log file */

double progress_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* 1234567 with scale letters: "1.23 M". */
static void scaled(char *text, size_t size, double value)
{
    static const char *const scales[] = {"", " k", " M", " G", " T", " P"};
    int scale = 0;
    while (value >= 1000 && scale < 5) {
        value /= 1000;
        scale++;
    }
    snprintf(text, size,
             value >= 100 || (scale == 0 && value == (double)(long)value) ? "%.0f%s"
             : value >= 10                                                ? "%.1f%s"
                                                                          : "%.2f%s",
             value, scales[scale]);
}

void progress_rate(char *text, size_t size, double amount, double seconds, const char *unit)
{
    double rate = seconds > 0 ? amount / seconds : 0;
    const char *acronym = !unit                             ? NULL
                          : strcmp(unit, "cells") == 0      ? "CUPS"
                          : strcmp(unit, "operations") == 0 ? "OPS"
                                                            : NULL;
    if (acronym) { /* GCUPS and TOPS are how the fields say it */
        bool tera = strcmp(acronym, "OPS") == 0 || rate >= 1e12;
        snprintf(text, size, "%.3g %c%s", rate / (tera ? 1e12 : 1e9), tera ? 'T' : 'G', acronym);
        return;
    }
    char number[32];
    scaled(number, sizeof number, rate);
    snprintf(text, size, "%s %s/s", number, unit ? unit : "items");
}

static void duration(char *text, size_t size, double seconds)
{
    long s = seconds < 0 ? 0 : seconds > 3.6e8 ? 360000000 : (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
}

void progress_begin(progress *p, FILE *stream, bool forced, bool quiet, const char *item,
                    const char *work_unit)
{
    memset(p, 0, sizeof *p);
    p->stream = stream;
    p->terminal = isatty(fileno(stream)) != 0;
    p->enabled = !quiet && (forced || p->terminal);
    p->item = item;
    p->work_unit = work_unit;
    p->started = progress_now();
    p->last = p->started;
}

static void draw(progress *p, double now)
{
    char done[32], total[40] = "", rate[64], left[48] = "";
    double seconds = now - p->started;
    scaled(done, sizeof done, p->done);
    if (p->total > 0) {
        char all[32];
        scaled(all, sizeof all, p->total);
        snprintf(total, sizeof total, " / %s", all);
        if (p->done > 0 && p->done <= p->total) {
            char time[32];
            duration(time, sizeof time, seconds * (p->total - p->done) / p->done);
            snprintf(left, sizeof left, ", %3.0f %%, %s left", 100 * p->done / p->total, time);
        }
    }
    if (p->work > 0 && p->work_unit)
        progress_rate(rate, sizeof rate, p->work, seconds, p->work_unit);
    else
        progress_rate(rate, sizeof rate, p->done, seconds, p->item);
    fprintf(p->stream, "%s%s%s %s, %s%s%s", p->terminal ? "\r\033[K" : "", done, total,
            p->item ? p->item : "items", rate, left, p->terminal ? "" : "\n");
    fflush(p->stream);
    p->shown = true;
    p->last = now;
}

void progress_update(progress *p, double done, double total, double work)
{
    p->done = done;
    p->total = total;
    p->work = work;
    if (!p->enabled)
        return;
    double now = progress_now();
    if (now - p->last >= (p->terminal ? redraw_seconds : line_seconds))
        draw(p, now);
}

void progress_clear(progress *p)
{
    if (p->shown && p->terminal) {
        fputs("\r\033[K", p->stream);
        p->shown = false;
    }
}

void progress_end(progress *p)
{
    if (p->enabled && p->done > 0 && !p->terminal)
        draw(p, progress_now()); /* a log keeps the last state */
    progress_clear(p);
    p->enabled = false;
}
