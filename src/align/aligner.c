/* aligner.c - the library's calls for sequences in memory. */
#include "lanewise/align.h"

#include <stdlib.h>
#include <string.h>

#include "align/align_choice.h"
#include "align/align_run.h"
#include "align/encode.h"
#include "align/realign.h"
#include "common/fail.h"

struct lw_aligner {
    lw_scoring scoring;
    lw_mode mode;
    unsigned strands;
    lw_shared_host host;
    lw_choice choice;
    lw_pool *pool;
    void *context;
    lw_realign_solver solver;
};

int64_t lw_scoring_encode(const lw_scoring *scoring, const char *letters, int64_t n, uint8_t *codes)
{
    return lw_encode(scoring, letters, n, codes, NULL);
}

lw_status lw_aligner_open(lw_aligner **out, const lw_scoring *scoring, const lw_aligner_options *options,
                          lw_error *err)
{
    static const lw_aligner_options usual = {0};
    const lw_aligner_options *o = options ? options : &usual;
    unsigned strands = o->strands ? o->strands : LW_FORWARD;
    if (o->mode != LW_LOCAL && o->mode != LW_GLOBAL && o->mode != LW_SEMIGLOBAL)
        return lw_fail(err, LW_E_ARG, "unknown alignment mode %d", (int)o->mode);
    if (strands > LW_BOTH_STRANDS || (scoring->type == LW_PROTEIN && strands != LW_FORWARD))
        return lw_fail(err, LW_E_ARG, "strands %u: protein has the forward one only, DNA two", strands);
    lw_aligner *a = calloc(1, sizeof *a);
    if (!a)
        return lw_fail_memory(err, sizeof *a);
    a->scoring = *scoring;
    a->mode = o->mode;
    a->strands = strands;
    lw_share_host(&a->host, o->host);
    const int *device =
        o->device >= 0 && o->backend && strncmp(o->backend, "cuda", 4) == 0 ? &o->device : NULL;
    lw_status status = lw_choice_make(&a->choice, o->backend, device, device ? 1 : 0, err);
    if (status == LW_OK)
        status = lw_pool_open(&a->pool, o->threads, err);
    lw_align_setup setup = {.scoring = &a->scoring,
                            .mode = a->mode,
                            .strands = strands,
                            .min_score = a->mode == LW_LOCAL ? 1 : INT32_MIN,
                            .n_hits = 1,
                            .pool = a->pool,
                            .device = status == LW_OK ? lw_choice_device(&a->choice, 0) : 0,
                            .device_bytes = o->device_bytes,
                            .host = &a->host.host};
    if (status == LW_OK)
        status = a->choice.backend->open(a->choice.backend, &a->context, &setup, err);
    if (status != LW_OK) {
        lw_aligner_close(a);
        return status;
    }
    *out = a;
    return LW_OK;
}

void lw_aligner_close(lw_aligner *a)
{
    if (!a)
        return;
    if (a->context)
        a->choice.backend->close(a->context);
    lw_realign_solver_free(&a->solver);
    lw_pool_close(a->pool);
    lw_shared_host_end(&a->host);
    free(a);
}

const char *lw_aligner_backend(const lw_aligner *a)
{
    return a->choice.backend->base.name;
}

/* Lengths and codes within their ranges; the longest length in *longest. */
static lw_status check_seqs(const lw_aligner *a, const lw_seqs *seqs, const char *what, int32_t *longest,
                            lw_error *err)
{
    *longest = 0;
    for (int64_t i = 0; i < seqs->n; i++) {
        if (seqs->len[i] < 0)
            return lw_fail(err, LW_E_ARG, "%s %lld: length %d", what, (long long)i, seqs->len[i]);
        const uint8_t *codes = seqs->codes + seqs->start[i];
        int highest = 0;
        for (int32_t k = 0; k < seqs->len[i]; k++)
            highest = codes[k] > highest ? codes[k] : highest;
        if (highest >= a->scoring.n_letters)
            return lw_fail(err, LW_E_ARG, "%s %lld: code %d, the scoring has %d letters", what, (long long)i,
                           highest, a->scoring.n_letters);
        *longest = seqs->len[i] > *longest ? seqs->len[i] : *longest;
    }
    return LW_OK;
}

static lw_status check_pairs(const lw_aligner *a, const lw_seqs *queries, const lw_seqs *targets,
                             lw_error *err)
{
    int32_t q, t;
    if (queries->n != targets->n)
        return lw_fail(err, LW_E_ARG, "%lld queries and %lld targets do not make pairs",
                       (long long)queries->n, (long long)targets->n);
    LW_TRY(check_seqs(a, queries, "query", &q, err));
    LW_TRY(check_seqs(a, targets, "target", &t, err));
    return lw_check_range(&a->scoring, a->mode, q, t, "the longest pair", err);
}

/* Ends, and with `path` the paths to them where the backend finds both in one go (*found). */
static lw_status find_ends(lw_aligner *a, const lw_seqs *queries, const lw_seqs *targets, lw_hit **hits,
                           lw_pair *pairs, lw_path *path, lw_cigars *cigars, bool *found, lw_error *err)
{
    LW_TRY(check_pairs(a, queries, targets, err));
    *hits = malloc(((size_t)queries->n + 1) * sizeof **hits);
    if (!*hits)
        return lw_fail_memory(err, (size_t)queries->n * sizeof **hits);
    const lw_align_backend *backend = a->choice.backend;
    *found = path && backend->pairs && a->strands == LW_FORWARD;
    if (*found)
        LW_TRY(backend->pairs(a->context, queries, targets, *hits, path, cigars, err));
    else
        LW_TRY(backend->pair_ends(a->context, queries, targets, *hits, err));
    for (int64_t i = 0; i < queries->n; i++) {
        const lw_hit *hit = &(*hits)[i];
        bool aligned = hit->target >= 0;
        pairs[i] = (lw_pair){.aligned = aligned,
                             .reverse = aligned && hit->reverse,
                             .score = aligned ? hit->score : 0,
                             .qstart = -1,
                             .tstart = -1,
                             .qend = aligned ? hit->qend : -1,
                             .tend = aligned ? hit->tend : -1};
    }
    return LW_OK;
}

lw_status lw_aligner_scores(lw_aligner *a, const lw_seqs *queries, const lw_seqs *targets, lw_pair *pairs,
                            lw_error *err)
{
    lw_hit *hits = NULL;
    bool found;
    lw_status status = find_ends(a, queries, targets, &hits, pairs, NULL, NULL, &found, err);
    free(hits);
    return status;
}

lw_status lw_aligner_paths(lw_aligner *a, const lw_seqs *queries, const lw_seqs *targets, lw_pair *pairs,
                           uint32_t **cigars, lw_error *err)
{
    lw_hit *hits = NULL;
    lw_cigars made = {0};
    size_t size = (size_t)queries->n + 1;
    lw_trace_task *task = malloc(size * sizeof *task);
    lw_path *path = malloc(size * sizeof *path);
    lw_status status = task && path ? LW_OK : lw_fail_memory(err, size * sizeof *task);
    bool found = false;
    if (status == LW_OK)
        status = find_ends(a, queries, targets, &hits, pairs, path, &made, &found, err);
    int64_t n = 0;
    for (int64_t i = 0; status == LW_OK && i < queries->n; i++) {
        if (!pairs[i].aligned)
            continue;
        if (found) {
            path[n] = path[i];
            task[n++] = (lw_trace_task){.query = i};
            continue;
        }
        task[n] = (lw_trace_task){.query = i};
        lw_trace_window(&a->scoring, a->mode, &hits[i], &task[n++]);
    }
    if (status == LW_OK)
        status = lw_cigars_reserve(&made, 1, err); /* so that there is an array even without operations */
    if (status == LW_OK && n > 0 && !found)
        status = a->choice.backend->trace(a->context, queries, targets, n, task, path, &made, err);
    for (int64_t k = 0; status == LW_OK && k < n; k++) {
        lw_pair *pair = &pairs[task[k].query];
        pair->qstart = path[k].qstart;
        pair->tstart = path[k].tstart;
        pair->cigar = path[k].cigar;
        pair->n_cigar = path[k].n_cigar;
    }
    free(hits);
    free(task);
    free(path);
    if (status != LW_OK) {
        free(made.op);
        return status;
    }
    *cigars = made.op;
    return LW_OK;
}

lw_status lw_aligner_realign(lw_aligner *a, const lw_seqs *reads, const lw_seqs *targets, int pad, int64_t n,
                             const lw_placement *places, lw_pair *pairs, uint32_t **cigars, lw_error *err)
{
    int32_t longest_read, longest_target;
    if (a->mode != LW_SEMIGLOBAL || a->strands != LW_FORWARD)
        return lw_fail(err, LW_E_ARG,
                       "realigning needs an aligner for semiglobal mode and the forward strand");
    if (pad < 1 || pad > LW_REALIGN_MOST_PAD)
        return lw_fail(err, LW_E_ARG, "pad %d is outside 1 to %d", pad, LW_REALIGN_MOST_PAD);
    LW_TRY(check_seqs(a, reads, "read", &longest_read, err));
    LW_TRY(check_seqs(a, targets, "target", &longest_target, err));
    LW_TRY(lw_check_range(&a->scoring, a->mode, longest_read, longest_target, "the longest pair", err));
    lw_realign_task *task = calloc((size_t)n + 1, sizeof *task);
    lw_cigars made = {0};
    lw_status status =
        task ? lw_cigars_reserve(&made, 1, err) : lw_fail_memory(err, (size_t)n * sizeof *task);
    for (int64_t i = 0; status == LW_OK && i < n; i++) {
        const lw_placement *p = &places[i];
        if (p->read < 0 || p->read >= reads->n || p->target < 0 || p->target >= targets->n || p->start < 0 ||
            p->end < p->start || p->end > targets->len[p->target])
            status = lw_fail(err, LW_E_ARG, "place %lld: read %lld at %d-%d of target %lld is not there",
                             (long long)i, (long long)p->read, p->start, p->end, (long long)p->target);
        task[i] = (lw_realign_task){
            .read = p->read, .target = p->target, .start = p->start, .end = p->end, .present = p->score};
    }
    a->solver.backend = a->choice.backend;
    a->solver.context = a->context;
    a->solver.scoring = &a->scoring;
    a->solver.pad = pad;
    if (status == LW_OK && n > 0)
        status = lw_realign_solve(&a->solver, reads, targets, n, task, &made, err);
    for (int64_t i = 0; status == LW_OK && i < n; i++)
        pairs[i] = (lw_pair){.aligned = true,
                             .score = task[i].score,
                             .qend = reads->len[task[i].read],
                             .tstart = task[i].new_start,
                             .tend = task[i].new_end,
                             .cigar = task[i].cigar,
                             .n_cigar = task[i].n_cigar};
    free(task);
    if (status != LW_OK) {
        free(made.op);
        return status;
    }
    *cigars = made.op;
    return LW_OK;
}
