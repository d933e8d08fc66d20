/* lines.c - reading lines through htslib's BGZF, which unlike zlib's gzread() takes no bytes behind the last
 * gzip member for the end of the file. */
#include "paths/lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>

#include "common/fail.h"
#include "common/infile.h"

enum { LW_LINES_CHUNK = 1 << 20 };

lw_status lw_lines_open(lw_lines *l, const char *path, lw_error *err)
{
    *l = (lw_lines){.name = strcmp(path, "-") == 0 ? "standard input" : path};
    lw_infile file;
    LW_TRY(lw_infile_open(&file, path, l->name, err));
    errno = 0;
    l->file = bgzf_hopen(file.stream, "r");
    if (!l->file) {
        hclose_abruptly(file.stream);
        return lw_fail(err, LW_E_INPUT, "%s: cannot be read: the file is cut short or damaged", l->name);
    }
    l->no_end = file.regular && bgzf_compression(l->file) == bgzf && bgzf_check_EOF(l->file) == 0;
    l->capacity = 2 * LW_LINES_CHUNK;
    l->buffer = malloc(l->capacity + 1);
    if (!l->buffer) {
        bgzf_close(l->file);
        return lw_fail_memory(err, l->capacity);
    }
    return LW_OK;
}

/* Adds a chunk behind buffer[end]. */
static lw_status fill(lw_lines *l, lw_error *err)
{
    if (l->begin > 0) {
        memmove(l->buffer, l->buffer + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->capacity - l->end < LW_LINES_CHUNK) {
        char *larger = realloc(l->buffer, 2 * l->capacity + 1);
        if (!larger)
            return lw_fail_memory(err, 2 * l->capacity);
        l->buffer = larger;
        l->capacity *= 2;
    }
    errno = 0;
    ssize_t got = bgzf_read(l->file, l->buffer + l->end, LW_LINES_CHUNK);
    if (got < 0 || l->file->errcode) {
        if (errno && errno != EIO)
            return lw_fail(err, LW_E_IO, "%s: reading failed: %s", l->name, strerror(errno));
        return lw_fail(
            err, LW_E_INPUT,
            "%s: the compressed data are cut short or damaged near line %lld: fetch the file again", l->name,
            (long long)l->number + 1);
    }
    if (l->end == 0 && l->number == 0 && got >= 3 && memcmp(l->buffer, "\xEF\xBB\xBF", 3) == 0)
        l->begin = 3; /* the byte-order mark of some editors */
    l->at_end = got == 0;
    l->end += (size_t)got;
    return LW_OK;
}

lw_status lw_lines_peek(lw_lines *l, char *bytes, size_t n, size_t *got, lw_error *err)
{
    if (l->end == 0)
        LW_TRY(fill(l, err));
    size_t have = l->end - l->begin;
    *got = n < have ? n : have;
    memcpy(bytes, l->buffer + l->begin, *got);
    return LW_OK;
}

static lw_status fail_zero(const lw_lines *l, int64_t number, lw_error *err)
{
    return lw_fail(err, LW_E_INPUT, "%s: line %lld: a zero byte; this is not a text file", l->name,
                   (long long)number);
}

lw_status lw_lines_next(lw_lines *l, char **line, lw_error *err)
{
    size_t searched = l->begin;
    char *end;
    while ((end = memchr(l->buffer + searched, '\n', l->end - searched)) == NULL && !l->at_end) {
        size_t have = l->end - l->begin;
        if (memchr(l->buffer + searched, '\0', l->end - searched)) /* such a line may never end */
            return fail_zero(l, l->number + 1, err);
        LW_TRY(fill(l, err));
        searched = l->begin + have;
    }
    if (!end) {
        if (l->begin == l->end) {
            *line = NULL;
            return LW_OK;
        }
        end = l->buffer + l->end; /* no newline after the last line; the buffer has a byte to spare */
    }
    char *start = l->buffer + l->begin;
    size_t next = (size_t)(end - l->buffer) + 1;
    l->begin = next < l->end ? next : l->end;
    l->number++;
    if (memchr(start, '\0', (size_t)(end - start)))
        return fail_zero(l, l->number, err);
    if (end > start && end[-1] == '\r')
        end--;
    *end = '\0';
    *line = start;
    return LW_OK;
}

void lw_lines_close(lw_lines *l)
{
    if (l->file)
        bgzf_close(l->file);
    free(l->buffer);
    l->file = NULL;
    l->buffer = NULL;
}

lw_status lw_lines_bad(const lw_lines *l, const char *text, lw_error *err, const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!text)
        return lw_fail(err, LW_E_INPUT, "%s: line %lld: %s", l->name, (long long)l->number, what);
    return lw_fail(err, LW_E_INPUT, "%s: line %lld: %s, found '%.100s%s'", l->name, (long long)l->number,
                   what, text, strlen(text) > 100 ? "..." : "");
}

char lw_lines_delimiter(const char *line)
{
    return strchr(line, '\t') ? '\t' : strchr(line, ',') ? ',' : ' ';
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        text[--n] = '\0';
    return text;
}

lw_status lw_lines_field(const lw_lines *lines, char **rest, char delimiter, char **field, lw_error *err)
{
    char *p = *rest;
    *field = NULL;
    if (p && delimiter == ' ')
        p += strspn(p, " \t");
    if (!p || (delimiter == ' ' && *p == '\0'))
        return LW_OK;
    if (delimiter == ',' && *p == '"') {
        char *to = p++;
        *field = to;
        for (; *p != '\0' && !(p[0] == '"' && p[1] != '"'); p++) {
            p += *p == '"';
            *to++ = *p;
        }
        if (*p == '\0')
            return lw_lines_bad(lines, NULL, err, "a quote is not closed");
        p++;
        *to = '\0';
        if (*p != '\0' && *p != ',')
            return lw_lines_bad(lines, NULL, err, "text behind a closing quote");
        *rest = *p ? p + 1 : NULL;
        return LW_OK;
    }
    char *end = delimiter == ' ' ? p + strcspn(p, " \t") : strchr(p, delimiter);
    bool last = end == NULL || *end == '\0';
    if (!last)
        *end = '\0';
    *field = delimiter == ' ' ? p : trim(p);
    *rest = last ? NULL : end + 1;
    return LW_OK;
}

bool lw_lines_count(const char *text, int64_t low, int64_t high, int64_t *out)
{
    size_t n = strlen(text);
    if (n == 0 || n > 18 || text[strspn(text, "0123456789")] != '\0')
        return false;
    *out = strtoll(text, NULL, 10);
    return *out >= low && *out <= high;
}
