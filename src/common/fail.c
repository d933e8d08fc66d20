/* fail.c - recording a failure, and one line to the host. */
#include "common/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *lw_status_name(lw_status status)
{
    switch (status) {
    case LW_OK:
        return "done";
    case LW_E_ARG:
        return "argument out of range";
    case LW_E_INPUT:
        return "bad input";
    case LW_E_IO:
        return "input/output failed";
    case LW_E_NOMEM:
        return "out of memory";
    case LW_E_UNSUPPORTED:
        return "not supported here";
    case LW_E_DEVICE:
        return "device failed";
    case LW_E_RANGE:
        return "out of numeric range";
    case LW_E_INTERRUPTED:
        return "interrupted";
    case LW_E_INTERNAL:
        return "internal error";
    }
    return "unknown status";
}

/* Messages quote names and lines of files. What would move a terminal's cursor, colour it or break the line
 * is shown as \xNN; what no longer fits is cut. */
static void make_printable(char *text, size_t size)
{
    char plain[1024];
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p && n + 5 < sizeof plain && n + 5 < size;
         p++)
        if (*p < 32 || *p == 127)
            n += (size_t)snprintf(plain + n, sizeof plain - n, *p == '\t' ? "\\t" : "\\x%02x", *p);
        else
            plain[n++] = (char)*p;
    plain[n] = 0;
    memcpy(text, plain, n + 1);
}

lw_status lw_fail(lw_error *err, lw_status status, const char *format, ...)
{
    if (err && err->status == LW_OK) {
        err->status = status;
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        make_printable(err->message, sizeof err->message);
    }
    return status;
}

lw_status lw_fail_memory(lw_error *err, size_t bytes)
{
    if (bytes == 0)
        return lw_fail(err, LW_E_NOMEM, "out of memory");
    return lw_fail(err, LW_E_NOMEM, "out of memory: %zu bytes could not be allocated", bytes);
}

void lw_say(const lw_host *host, int level, const char *format, ...)
{
    if (!host || !host->say)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_printable(text, sizeof text);
    host->say(host->user, level, text);
}

int lw_stopped(const lw_host *host)
{
    return host && host->stop && __atomic_load_n(host->stop, __ATOMIC_RELAXED);
}
