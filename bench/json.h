/* json.h - a small reader of JSON (RFC 8259) for `lanewise bench compare`. */
#ifndef LW_JSON_H
#define LW_JSON_H

#include <stddef.h>
#include "lanewise/status.h"

typedef enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct json {
    json_kind kind;
    char *name;         /* as a member of an object; else NULL */
    char *text;         /* of a string */
    double number;      /* of a number; 1 or 0 of a bool */
    struct json *child; /* first of an array or object */
    struct json *next;
} json;

/* Reads one value and nothing after it. LW_E_INPUT with the line, LW_E_NOMEM. */
lw_status json_read(json **out, const char *text, size_t length, const char *path, lw_error *err);
void json_free(json *value);

/* A member by its name, NULL if there is none (or `object` is NULL or no object). */
const json *json_get(const json *object, const char *name);
/* A string or number member, or the default. */
const char *json_text(const json *object, const char *name, const char *otherwise);
double json_number(const json *object, const char *name, double otherwise);

#endif
