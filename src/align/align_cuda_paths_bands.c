/* align_cuda_paths_bands.c - which bands are tried (align_band.h), and the rounds of a call.
 *
 * Global and semiglobal pairs are first computed in a band that will probably hold them; what their scores do
 * not prove is computed once more, in the band that they do prove or in full. How wide the first band is, is
 * learnt from the pairs before, or from the beginnings of some pairs of the call. */
#include <string.h>

#include "align/align_band.h"
#include "align/align_cuda_paths.h"
#include "align/align_tuning.h"

/* The excess to try with a job, or the one that is proved (fails = 0), where it saves more than it costs. */
int32_t lw_paths_worth_trying(const lw_paths *p, int32_t qlen, int32_t tlen, int64_t excess, double fails)
{
    const int64_t shorter = min64(qlen, tlen);
    geometry all, band;
    if (excess < LW_BAND_LEAST)
        excess = LW_BAND_LEAST;
    if (shorter < LW_BAND_SHORTEST || excess > shorter / 2)
        return -1;
    lw_paths_geometry_of(p, qlen, tlen, -1, &all);
    lw_paths_geometry_of(p, qlen, tlen, (int32_t)excess, &band);
    const double whole = lw_paths_work_of(&all, tlen);
    return band.band && lw_paths_work_of(&band, tlen) + fails * whole < LW_BAND_SAVES * whole
               ? (int32_t)excess
               : -1;
}

/* Notes what bands the scores of some jobs prove. */
void lw_paths_learn(lw_paths *p, const stage *s, const lw_path_result *results)
{
    const int64_t step = max64(s->n / LW_BAND_SAMPLE, 1);
    for (int64_t k = 0; k < s->n; k += step) {
        int32_t qlen, tlen;
        lengths_of(p, job_number(p, s->first + k), &qlen, &tlen);
        const int64_t shorter = min64(qlen, tlen);
        if (shorter < LW_BAND_SHORTEST)
            continue;
        const int64_t need =
            lw_band_excess(p->by.setup->scoring, p->by.setup->mode, qlen, tlen, results[k].score);
        p->needs[need * LW_BAND_PARTS / shorter]++;
        p->n_needs++;
    }
}

/* The excess to be tried, in parts of the length: that which is proved often enough by what was learnt. Else
 * one that 5 % of errors take with usual penalties. */
static void make_guess(lw_paths *p)
{
    p->guess = LW_BAND_PARTS / 8;
    for (int32_t part = 0; part <= LW_BAND_PARTS; part++)
        p->fails[part] = part < p->guess ? 1 : 0.5;
    if (p->n_needs == 0)
        return;
    double least = 1;
    int64_t fewer = 0;
    p->guess = -1;
    for (int32_t part = 0; part < LW_BAND_PARTS / 2; part++) {
        fewer += p->needs[part];
        const double fails = ((double)(p->n_needs - fewer) + 0.5) / ((double)p->n_needs + 1);
        const double cost = 2.0 * (part + 1) / LW_BAND_PARTS + fails;
        p->fails[part + 1] = fails;
        if (cost < least)
            least = cost, p->guess = part + 1;
    }
}

/* How alike pairs are: some of them are computed, of long ones the beginnings. */
static lw_status look_at_some(lw_paths *p, int64_t n, lw_error *err)
{
    int32_t *list = (int32_t *)p->again.at;
    const int64_t step = max64(n / LW_BAND_SAMPLE, 1), ops = p->cigars->n;
    int64_t found = 0;
    for (int64_t i = 0; i < n && found < LW_BAND_SAMPLE; i += step) {
        int32_t qlen, tlen;
        lengths_of(p, i, &qlen, &tlen);
        if (min64(qlen, tlen) >= LW_BAND_SHORTEST && max64(tlen - qlen, qlen - tlen) <= LW_BAND_CUT)
            list[found++] = (int32_t)i;
    }
    if (found == 0)
        return LW_OK;
    p->cut = LW_BAND_CUT;
    const lw_status status = lw_paths_run_list(p, list, found, false, err);
    p->cut = 0;
    p->cigars->n = ops;
    return status;
}

/* Runs all jobs of the call: at most twice, as what a band did not prove has a score that proves another. */
lw_status lw_paths_run_all(lw_paths *p, int64_t n, lw_error *err)
{
    const lw_mode mode = p->by.setup->mode;
    p->roomy = lw_paths_most_roomy(p);
    p->ops_per_job = 0;
    p->banded = p->unproved = 0;
    p->cells = p->computed = 0;
    p->guess = -1;
    if (p->tasks || mode == LW_LOCAL) {
        free(p->excess.at);
        p->excess.at = NULL, p->excess.bytes = 0;
        return lw_paths_run_list(p, NULL, n, false, err);
    }
    LW_TRY(area_host(&p->excess, (size_t)n * sizeof(int32_t), err));
    LW_TRY(area_host(&p->again, (size_t)n * sizeof(int32_t), err));
    memset(p->excess.at, 0xff, (size_t)n * sizeof(int32_t));
    if (p->n_needs < LW_BAND_SAMPLE / 2) {
        double cells = 0;
        for (int64_t i = 0; i < n && cells < LW_BAND_LOOK_CELLS; i++)
            cells += (double)p->queries->len[i] * p->targets->len[i];
        if (cells >= LW_BAND_LOOK_CELLS)
            LW_TRY(look_at_some(p, n, err));
    }
    p->cells = p->computed = 0; /* what was looked at is computed once more */
    make_guess(p);
    for (int part = 0; part <= LW_BAND_PARTS && p->n_needs > LW_BAND_MEMORY; part++)
        p->needs[part] /= 2;
    p->n_needs = 0;
    for (int part = 0; part <= LW_BAND_PARTS; part++)
        p->n_needs += p->needs[part];
    p->n_again = 0;
    LW_TRY(lw_paths_run_list(p, NULL, n, p->guess >= 0, err));
    if (p->n_again == 0)
        return LW_OK;
    /* p->again may be both what is run and where jobs would be noted: no job comes a third time */
    const int64_t again = p->unproved = p->n_again;
    const double cells = p->cells;
    p->n_again = 0;
    p->guess = -1;
    LW_TRY(lw_paths_run_list(p, (const int32_t *)p->again.at, again, false, err));
    p->cells = cells;
    if (p->n_again > 0)
        return lw_fail(err, LW_E_INTERNAL, "%ld pairs score less in the band that their scores had proved",
                       (long)p->n_again);
    return LW_OK;
}
