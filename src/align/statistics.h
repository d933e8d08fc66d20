/* statistics.h - bit scores and E-values of gapped local alignments.
 *
 * Karlin and Altschul, PNAS 87:2264 (1990); for gapped scores the parameters are estimates: Altschul and
 * Gish, Methods Enzymol. 266:460 (1996), whose length adjustment is used too. No finite-size correction. */
#ifndef LW_STATISTICS_H
#define LW_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/align.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lw_statistics {
    double lambda, k, h;
    double alpha, beta;
    bool even; /* the parameters hold for even scores only: the E-value of an odd score is that of the one
                  below */
} lw_statistics;

/* Published parameters of the matrix (known by its values, not its name) and gap penalties.
 * LW_E_ARG: none are published; the message lists the gap penalties or matrices that have them. */
lw_status lw_statistics_find(lw_statistics *out, const lw_scoring *scoring, lw_error *err);

/* Effective search space of a query against a database of so many letters in so many sequences. */
double lw_search_space(const lw_statistics *statistics, int32_t query_len, int64_t letters,
                       int64_t sequences);

double lw_bit_score(const lw_statistics *statistics, int32_t score);
double lw_evalue(const lw_statistics *statistics, int32_t score, double search_space);

/* Smallest score >= 1 whose E-value is at most `evalue`; INT32_MAX when there is none. */
int32_t lw_evalue_cutoff(const lw_statistics *statistics, double evalue, double search_space);

/* As BLAST prints them in tables. */
enum { LW_STATISTIC_TEXT = 32 };
void lw_print_evalue(char text[LW_STATISTIC_TEXT], double evalue);
void lw_print_bits(char text[LW_STATISTIC_TEXT], double bits);

#ifdef __cplusplus
}
#endif
#endif
