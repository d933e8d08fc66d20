/* search_plan.h - how queries are laid over the lanes of the score kernel, pass by pass. Plain C, no device.
 */
#ifndef LW_SEARCH_PLAN_H
#define LW_SEARCH_PLAN_H

#include "align/search_kernels.h"
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lw_sw_pass {
    int group; /* lanes used, 1 .. 32; 32 / group groups work side by side */
    bool reads_border, writes_border;
    uint32_t border_keep;
    lw_sw_lane lanes[32];
} lw_sw_pass;

/* Zero-initialise; free with free(passes). */
typedef struct lw_sw_program {
    int form;
    bool border; /* some pass reads one */
    int n_passes;
    lw_sw_pass *passes;
    double slots; /* relative cost */
} lw_sw_program;

/* One query of `len` >= 1 letters at query code `codes`: TWO_SUBJECTS (scores at 2k and 2k + 1), or
 * TWO_QUERIES with the low half alone, as S32 wants it (scores at 2k and 2k + 1 as well, by the subject).
 * LW_E_NOMEM. */
lw_status lw_sw_plan_query(lw_sw_program *out, int form, int32_t len, int32_t codes, lw_error *err);

/* n >= 1 queries of at least one letter each, spread over both halves of a word (halves = 2) or over the one
 * number of a word (halves = 1); query i's scores begin at index base[i]. LW_E_NOMEM. */
lw_status lw_sw_plan_pack(lw_sw_program *out, int halves, int n, const int32_t *len, const int32_t *codes,
                          const int32_t *base, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
