/* lines.h - text files line by line, plain or gzip (bgzip too), with the position for messages. */
#ifndef LW_LINES_H
#define LW_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"

typedef struct lw_lines lw_lines;
struct lw_lines {
    const char *name; /* for messages */
    struct BGZF *file;
    bool no_end; /* bgzip data without their end-of-file block: they may be cut short */
    char *buffer;
    size_t capacity, begin, end; /* bytes not delivered yet: begin .. end - 1 */
    bool at_end;
    int64_t number; /* of the line delivered last, 1-based */
};

/* "-": standard input. LW_E_IO, LW_E_INPUT, LW_E_NOMEM. */
lw_status lw_lines_open(lw_lines *lines, const char *path, lw_error *err);
/* *line := the next line without its end (LF or CR LF), NUL-terminated, the caller's until the next call, who
 * may write to it; NULL at the end of the file. LW_E_IO; LW_E_INPUT: damaged or truncated gzip, bytes behind
 * it, or a NUL byte. */
lw_status lw_lines_next(lw_lines *lines, char **line, lw_error *err);
/* The first bytes of the file, before any line was taken: up to n. */
lw_status lw_lines_peek(lw_lines *lines, char *bytes, size_t n, size_t *got, lw_error *err);
void lw_lines_close(lw_lines *lines);

/* LW_E_INPUT "FILE: line N: ..., found 'TEXT'"; text may be NULL. */
lw_status lw_lines_bad(const lw_lines *lines, const char *text, lw_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* How a table's line is cut: '\t' where it holds one, else ',', else ' ' for runs of blanks. */
char lw_lines_delimiter(const char *line);
/* *field := the next field of the line at *rest, cut off in place, blanks around it gone; NULL at the end.
 * Between commas a field may be quoted as in RFC 4180 ("" stands for one quote). LW_E_INPUT: an open quote.
 */
lw_status lw_lines_field(const lw_lines *lines, char **rest, char delimiter, char **field, lw_error *err);

/* A count or a vertex number in [low, high], the whole text. */
bool lw_lines_count(const char *text, int64_t low, int64_t high, int64_t *out);

#endif
