/* numbers.c - strict parsing of numbers. */
#include "common/numbers.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

/* strtoll and strtod skip leading blanks; we do not. */
static int starts_like_a_number(const char *text)
{
    return *text && !isspace((unsigned char)*text);
}

lw_status lw_parse_int(const char *text, const char *what, int64_t low, int64_t high, int64_t *out,
                       lw_error *err)
{
    char *end = NULL;
    errno = 0;
    long long value = starts_like_a_number(text) ? strtoll(text, &end, 10) : 0;
    if (!end || end == text || *end)
        return lw_fail(err, LW_E_ARG, "%s: '%s' is not a whole number", what, text);
    if (errno == ERANGE || value < low || value > high)
        return lw_fail(err, LW_E_ARG, "%s: %s is outside %lld to %lld", what, text, (long long)low,
                       (long long)high);
    *out = value;
    return LW_OK;
}

lw_status lw_parse_double(const char *text, const char *what, double low, double high, double *out,
                          lw_error *err)
{
    char *end = NULL;
    double value = starts_like_a_number(text) ? strtod(text, &end) : 0;
    if (!end || end == text || *end || !isfinite(value))
        return lw_fail(err, LW_E_ARG, "%s: '%s' is not a finite number", what, text);
    if (value < low || value > high)
        return lw_fail(err, LW_E_ARG, "%s: %s is outside %.10g to %.10g", what, text, low, high);
    *out = value;
    return LW_OK;
}

lw_status lw_parse_size(const char *text, const char *what, int64_t *out, lw_error *err)
{
    static const char suffixes[] = "KMGT";
    size_t length = strlen(text);
    int shift = 0;
    char digits[32];
    const char *suffix = length > 0 ? strchr(suffixes, toupper((unsigned char)text[length - 1])) : NULL;
    if (suffix && *suffix) {
        shift = 10 * (int)(suffix - suffixes + 1);
        length--;
    }
    if (length >= sizeof digits)
        return lw_fail(err, LW_E_ARG, "%s: '%s' is not a size (a number with K, M, G or T)", what, text);
    memcpy(digits, text, length);
    digits[length] = '\0';
    int64_t value;
    if (lw_parse_int(digits, what, 0, INT64_MAX >> shift, &value, NULL) != LW_OK)
        return lw_fail(err, LW_E_ARG, "%s: '%s' is not a size (a number with K, M, G or T)", what, text);
    *out = value << shift;
    return LW_OK;
}

lw_status lw_parse_int_list(const char *text, const char *what, int64_t low, int64_t high, int64_t *out,
                            int capacity, int *n, lw_error *err)
{
    *n = 0;
    for (const char *p = text;;) {
        size_t length = strcspn(p, ",");
        char item[32];
        if (length == 0 || length >= sizeof item)
            return lw_fail(err, LW_E_ARG, "%s: '%s' is not a list of whole numbers", what, text);
        if (*n == capacity)
            return lw_fail(err, LW_E_ARG, "%s: more than %d numbers in '%s'", what, capacity, text);
        memcpy(item, p, length);
        item[length] = '\0';
        LW_TRY(lw_parse_int(item, what, low, high, &out[*n], err));
        ++*n;
        if (!p[length])
            return LW_OK;
        p += length + 1;
    }
}
