/* numbers.h - strict parsing of numbers: the whole text must be the number, within its range. */
#ifndef LW_NUMBERS_H
#define LW_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `what` names the value in the message ("-t"). LW_E_ARG when text is not one decimal integer in
 * [low, high]; blanks, suffixes, overflow and empty text are refused. */
lw_status lw_parse_int(const char *text, const char *what, int64_t low, int64_t high, int64_t *out,
                       lw_error *err);

/* A finite decimal number in [low, high]. */
lw_status lw_parse_double(const char *text, const char *what, double low, double high, double *out,
                          lw_error *err);

/* Bytes: an integer with an optional suffix K, M, G or T (powers of 1024). */
lw_status lw_parse_size(const char *text, const char *what, int64_t *out, lw_error *err);

/* A comma-separated list of at most `capacity` integers in [low, high]. */
lw_status lw_parse_int_list(const char *text, const char *what, int64_t low, int64_t high, int64_t *out,
                            int capacity, int *n, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
