/* align_all.c - every sequence of one file against every one of another, scores only, as a dense matrix. */
#include "lanewise/align.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/align_choice.h"
#include "align/align_run.h"
#include "align/overlap.h"
#include "align/stream_tuning.h"
#include "common/fail.h"
#include "common/npy.h"

typedef struct all {
    const lw_align_job *job;
    lw_shared_host host;
    lw_choice choice;
    lw_scoring scoring;
    lw_mode mode;
    lw_pool *pool;
    lw_outfile *output;
    lw_seqio *reader[2];
    lw_read_batch reads[2];
    lw_encoded codes[2], padded;
    lw_substitutions substitutions;
    void *context;
    /* a block of pairs, row by row */
    int64_t *start[2];
    int32_t *len[2];
    lw_hit *hit;
    void *values;
    lw_align_summary total;
} all;

static lw_status load(all *a, int side, lw_error *err)
{
    const char *path = side ? a->job->mates : a->job->reads[0];
    lw_seqio_options options = {.pool = a->pool, .host = &a->host.host};
    LW_TRY(lw_seqio_open(&a->reader[side], &path, 1, &options, err));
    LW_TRY(lw_seqio_read(a->reader[side], &a->reads[side], 0, 0, err));
    if (a->reads[side].n == 0)
        return lw_fail(err, LW_E_INPUT, "%s: holds no sequences", lw_seqio_path(a->reader[side], 0));
    return LW_OK;
}

/* DNA or protein, by the first letters of both files. */
static lw_status guess_type(all *a, lw_alphabet_type *guess, lw_error *err)
{
    enum { LOOK_LETTERS = 1 << 20 };
    kstring_t letters = {0};
    int bad = 0;
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0, seen = 0; i < a->reads[side].n && seen < LOOK_LETTERS; i++) {
            bad |= kputsn(lw_read_seq(&a->reads[side], i), (size_t)a->reads[side].read[i].len, &letters) < 0;
            seen += a->reads[side].read[i].len;
        }
    *guess = lw_guess_type(letters.l ? letters.s : "", (int64_t)letters.l);
    ks_free(&letters);
    return bad ? lw_fail_memory(err, LOOK_LETTERS) : LW_OK;
}

static int64_t longest(const lw_seqs *seqs)
{
    int64_t most = 0;
    for (int64_t i = 0; i < seqs->n; i++)
        most = seqs->len[i] > most ? seqs->len[i] : most;
    return most;
}

static lw_status open_all(all *a, lw_error *err)
{
    const lw_align_job *job = a->job;
    lw_alphabet_type guess;
    if (!job->output || job->n_reads != 1 || !job->reads || !job->mates)
        return lw_fail(err, LW_E_ARG, "all pairs of two files take two files and an output");
    LW_TRY(lw_choice_make(&a->choice, job->backend, job->devices, job->n_devices, err));
    lw_say(&a->host.host, LW_SAY_INFO, "%s", a->choice.why);
    LW_TRY(lw_outfile_open(&a->output, job->output, job->temporaries, err));
    LW_TRY(lw_pool_open(&a->pool, job->threads, err));
    LW_TRY(load(a, 0, err));
    LW_TRY(load(a, 1, err));
    LW_TRY(guess_type(a, &guess, err));
    LW_TRY(lw_choice_scoring(&a->scoring, job, guess, err));
    if (a->scoring.type == LW_PROTEIN && (job->strands & LW_REVERSE))
        return lw_fail(err, LW_E_ARG, "protein has no reverse strand: leave out --strand");
    a->mode = lw_choice_mode(job);
    for (int side = 0; side < 2; side++)
        LW_TRY(lw_encode_batch(&a->scoring, a->reader[side], &a->reads[side], &a->codes[side],
                               &a->substitutions, err));
    int64_t q = longest(&a->codes[0].seqs), t = longest(&a->codes[1].seqs);
    if (job->preset == LW_PRESET_NEEDLE) {
        LW_TRY(lw_overlap_pad(&a->scoring, NULL, &a->codes[1].seqs, q, &a->padded, err));
        t += 2 * q;
    }
    LW_TRY(lw_check_range(&a->scoring, a->mode, (int32_t)q, (int32_t)t, lw_seqio_path(a->reader[0], 0), err));
    lw_align_setup setup = {.scoring = &a->scoring,
                            .mode = a->mode,
                            .strands = job->strands ? job->strands : LW_FORWARD,
                            .min_score = a->mode == LW_LOCAL ? 1 : INT32_MIN,
                            .n_hits = 1,
                            .pool = a->pool,
                            .device = lw_choice_device(&a->choice, 0),
                            .device_bytes = job->device_bytes,
                            .host = &a->host.host};
    return a->choice.backend->open(a->choice.backend, &a->context, &setup, err);
}

/* Scores of a block in the matrix's type, little-endian as all machines that this runs on. */
static void fill_values(all *a, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        int32_t score = a->hit[k].target < 0 ? 0 : a->hit[k].score;
        a->total.aligned += a->hit[k].target >= 0;
        a->total.score_sum += score;
        if (a->job->preset == LW_PRESET_WATER || a->job->preset == LW_PRESET_NEEDLE)
            ((double *)a->values)[k] = 0.5 * score;
        else
            ((int32_t *)a->values)[k] = a->job->preset == LW_PRESET_EDIT ? -score : score;
    }
}

/* Pairs first .. first + n - 1 of the matrix, row by row. */
static lw_status solve_block(all *a, int64_t first, int64_t n, size_t item, lw_error *err)
{
    const lw_seqs *queries = &a->codes[0].seqs,
                  *targets = a->padded.codes ? &a->padded.seqs : &a->codes[1].seqs;
    for (int64_t k = 0; k < n; k++) {
        int64_t q = (first + k) / targets->n, t = (first + k) % targets->n;
        a->start[0][k] = queries->start[q];
        a->len[0][k] = queries->len[q];
        a->start[1][k] = targets->start[t];
        a->len[1][k] = targets->len[t];
        a->total.cells += (double)queries->len[q] * (double)a->codes[1].seqs.len[t];
    }
    lw_seqs q = {.n = n, .codes = queries->codes, .start = a->start[0], .len = a->len[0]};
    lw_seqs t = {.n = n, .codes = targets->codes, .start = a->start[1], .len = a->len[1]};
    LW_TRY(a->choice.backend->pair_ends(a->context, &q, &t, a->hit, err));
    fill_values(a, n);
    return lw_outfile_write(a->output, a->values, (size_t)n * item, err);
}

static lw_status solve(all *a, lw_error *err)
{
    bool halves = a->job->preset == LW_PRESET_WATER || a->job->preset == LW_PRESET_NEEDLE;
    lw_dtype type = halves ? LW_F64 : LW_I32;
    size_t item = (size_t)lw_dtype_size(type);
    int64_t shape[2] = {a->codes[0].seqs.n, a->codes[1].seqs.n}, pairs = shape[0] * shape[1];
    if (shape[0] > INT64_MAX / 8 / shape[1])
        return lw_fail(err, LW_E_RANGE, "%lld times %lld scores are more than a file holds",
                       (long long)shape[0], (long long)shape[1]);
    int64_t block = pairs < LW_ALL_BLOCK_PAIRS ? pairs : LW_ALL_BLOCK_PAIRS;
    int64_t each =
        longest(&a->codes[0].seqs) + longest(a->padded.codes ? &a->padded.seqs : &a->codes[1].seqs) + 1;
    if (block > LW_ALL_BLOCK_LETTERS / each + 1)
        block = LW_ALL_BLOCK_LETTERS / each + 1;
    for (int side = 0; side < 2; side++) {
        a->start[side] = malloc((size_t)block * sizeof **a->start);
        a->len[side] = malloc((size_t)block * sizeof **a->len);
    }
    a->hit = malloc((size_t)block * sizeof *a->hit);
    a->values = malloc((size_t)block * item);
    if (!a->start[0] || !a->start[1] || !a->len[0] || !a->len[1] || !a->hit || !a->values)
        return lw_fail_memory(err, (size_t)block * sizeof *a->hit);
    char header[LW_NPY_HEADER];
    LW_TRY(lw_outfile_write(a->output, header, lw_npy_header(header, type, 2, shape), err));
    for (int64_t first = 0; first < pairs; first += block) {
        if (lw_stopped(&a->host.host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
        LW_TRY(solve_block(a, first, pairs - first < block ? pairs - first : block, item, err));
        if (a->host.host.progress)
            a->host.host.progress(a->host.host.user, (double)(first + block < pairs ? first + block : pairs),
                                  (double)pairs, a->total.cells);
    }
    a->total.reads = pairs;
    a->total.letters = a->reads[0].letters;
    return LW_OK;
}

lw_status lw_align_all_files(const lw_align_job *job, const lw_host *host, lw_align_summary *summary,
                             lw_error *err)
{
    all a;
    memset(&a, 0, sizeof a);
    a.job = job;
    lw_share_host(&a.host, host);
    lw_status status = open_all(&a, err);
    if (status == LW_OK)
        status = solve(&a, err);
    status = lw_outfile_close(a.output, status, err);
    if (status == LW_OK)
        lw_warn_substitutions(&a.host.host, &a.substitutions);
    if (a.choice.backend) {
        snprintf(a.total.backend, sizeof a.total.backend, "%s", a.choice.backend->base.name);
        snprintf(a.total.device, sizeof a.total.device, "%s", a.choice.devices);
        snprintf(a.total.why, sizeof a.total.why, "%s", a.choice.why);
    }
    if (summary)
        *summary = a.total;
    if (a.context)
        a.choice.backend->close(a.context);
    for (int side = 0; side < 2; side++) {
        lw_seqio_close(a.reader[side]);
        lw_read_batch_free(&a.reads[side]);
        lw_encoded_free(&a.codes[side]);
        free(a.start[side]);
        free(a.len[side]);
    }
    lw_encoded_free(&a.padded);
    free(a.hit);
    free(a.values);
    lw_pool_close(a.pool);
    lw_shared_host_end(&a.host);
    return status;
}
