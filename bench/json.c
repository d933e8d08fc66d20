/* json.c - recursive descent; depth is limited, so that a file of brackets is an error and not a crash. */
#include "json.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

enum { MAX_DEPTH = 64 };

typedef struct reader {
    const char *start, *p, *end, *path;
    int depth;
    lw_error *err;
} reader;

static lw_status value(reader *r, json **out);

static lw_status wrong(reader *r, const char *what)
{
    int line = 1;
    for (const char *q = r->start; q < r->p; q++)
        line += *q == '\n';
    return lw_fail(r->err, LW_E_INPUT, "%s: line %d: no JSON: %s", r->path, line, what);
}

static void blanks(reader *r)
{
    while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
        r->p++;
}

static bool take(reader *r, char c)
{
    blanks(r);
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static char *put_utf8(char *to, uint32_t code)
{
    if (code < 0x80)
        *to++ = (char)code;
    else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

static lw_status string(reader *r, char **out)
{
    const char *close = r->p;
    while (close < r->end && *close != '"')
        close += *close == '\\' && close + 1 < r->end ? 2 : 1;
    if (close >= r->end)
        return wrong(r, "a string has no end");
    char *text = malloc((size_t)(close - r->p) + 1), *to = text;
    if (!text)
        return lw_fail_memory(r->err, (size_t)(close - r->p) + 1);
    *out = text;
    while (r->p < close) {
        if (*r->p != '\\') {
            *to++ = *r->p++;
            continue;
        }
        static const char codes[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
        char c = r->p[1];
        r->p += 2;
        const char *found = c ? strchr(codes, c) : NULL;
        if (found)
            *to++ = means[found - codes];
        else if (c == 'u' && close - r->p >= 4) {
            char digits[5] = {0};
            memcpy(digits, r->p, 4);
            to = put_utf8(to, (uint32_t)strtoul(digits, NULL, 16)); /* six letters became at most three */
            r->p += 4;
        } else
            return wrong(r, "an escape in a string that does not exist");
    }
    *to = '\0';
    r->p = close + 1;
    return LW_OK;
}

/* Elements of an array, or members of an object, up to `close`. */
static lw_status elements(reader *r, json *parent, char close)
{
    json **last = &parent->child;
    if (take(r, close))
        return LW_OK;
    do {
        char *name = NULL;
        if (close == '}') {
            if (!take(r, '"'))
                return wrong(r, "a member's name is missing");
            lw_status status = string(r, &name);
            if (status == LW_OK && !take(r, ':'))
                status = wrong(r, "a colon is missing");
            if (status != LW_OK) {
                free(name);
                return status;
            }
        }
        lw_status status = value(r, last);
        if (*last)
            (*last)->name = name;
        else
            free(name);
        LW_TRY(status);
        last = &(*last)->next;
    } while (take(r, ','));
    return take(r, close) ? LW_OK : wrong(r, close == '}' ? "'}' is missing" : "']' is missing");
}

static lw_status value(reader *r, json **out)
{
    static const struct {
        const char *word;
        json_kind kind;
        double number;
    } words[] = {{"true", JSON_BOOL, 1}, {"false", JSON_BOOL, 0}, {"null", JSON_NULL, 0}};
    json *v = *out = calloc(1, sizeof *v);
    if (!v)
        return lw_fail_memory(r->err, sizeof *v);
    blanks(r);
    if (r->p == r->end)
        return wrong(r, "the file ends too early");
    if (take(r, '"')) {
        v->kind = JSON_STRING;
        return string(r, &v->text);
    }
    if (*r->p == '[' || *r->p == '{') {
        v->kind = *r->p == '[' ? JSON_ARRAY : JSON_OBJECT;
        r->p++;
        if (++r->depth > MAX_DEPTH)
            return wrong(r, "nested too deep");
        LW_TRY(elements(r, v, v->kind == JSON_ARRAY ? ']' : '}'));
        r->depth--;
        return LW_OK;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(r->end - r->p) >= length && memcmp(r->p, words[i].word, length) == 0) {
            v->kind = words[i].kind;
            v->number = words[i].number;
            r->p += length;
            return LW_OK;
        }
    }
    char *after;
    v->kind = JSON_NUMBER;
    v->number = strtod(r->p, &after); /* the text ends with a NUL */
    if (after == r->p || (*r->p != '-' && !isdigit((unsigned char)*r->p)) || !isfinite(v->number))
        return wrong(r, "a value was expected");
    r->p = after;
    return LW_OK;
}

lw_status json_read(json **out, const char *text, size_t length, const char *path, lw_error *err)
{
    reader r = {.start = text, .p = text, .end = text + length, .path = path, .err = err};
    *out = NULL;
    lw_status status = value(&r, out);
    blanks(&r);
    if (status == LW_OK && r.p != r.end)
        status = wrong(&r, "something follows the value");
    if (status != LW_OK) {
        json_free(*out);
        *out = NULL;
    }
    return status;
}

void json_free(json *v)
{
    while (v) {
        json *next = v->next;
        json_free(v->child);
        free(v->name), free(v->text), free(v);
        v = next;
    }
}

const json *json_get(const json *object, const char *name)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    for (const json *m = object->child; m; m = m->next)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

const char *json_text(const json *object, const char *name, const char *otherwise)
{
    const json *m = json_get(object, name);
    return m && m->kind == JSON_STRING ? m->text : otherwise;
}

double json_number(const json *object, const char *name, double otherwise)
{
    const json *m = json_get(object, name);
    return m && m->kind == JSON_NUMBER ? m->number : otherwise;
}
