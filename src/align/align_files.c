/* align_files.c - a whole run of align or pairs: checks the job, loads what it names, chooses the backend,
 * and sends batches through the pipeline. */
#include "lanewise/align.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts.h>
#include <htslib/khash_str2int.h>

#include "align/align_choice.h"
#include "align/align_run.h"
#include "align/matrices.h"
#include "align/samout.h"
#include "align/stream.h"
#include "align/stream_tuning.h"
#include "align/textout.h"
#include "common/fail.h"
#include "common/outfile.h"

typedef struct files {
    lw_align_run run;
    const lw_align_job *job;
    lw_shared_host host;
    lw_outfile *output;
    lw_sink *sink;
    lw_fasta *fasta; /* for CRAM in or out */
    lw_sq *sq;
    int64_t n_sq;
    kstring_t ur;
    lw_batch *batches;
    int n_batches;
    int64_t batch_letters, batch_records;
    lw_batch first; /* `pairs`: read ahead, to see what the letters are */
    bool first_waits;
    int64_t longest_pair; /* letters of the longer sequence of a pair so far */
    lw_choice choice;
    pthread_mutex_t lock; /* guards substitutions */
    lw_substitutions substitutions;
    lw_align_summary total;
    int64_t flagged; /* reads flagged as paired that were aligned singly */
} files;

void lw_align_job_init(lw_align_job *job)
{
    *job = (lw_align_job){.insert_low = 0,
                          .insert_high = 1000,
                          .type = LW_TYPE_AUTO,
                          .match = LW_PENALTY_DEFAULT,
                          .mismatch = LW_PENALTY_DEFAULT,
                          .gap_open = LW_PENALTY_DEFAULT,
                          .gap_extend = LW_PENALTY_DEFAULT,
                          .gap_open2 = LW_PENALTY_DEFAULT,
                          .gap_extend2 = LW_PENALTY_DEFAULT,
                          .mode = LW_LOCAL,
                          .min_score = INT32_MIN,
                          .output = "-",
                          .format = LW_FORMAT_SAM};
}

/* ---- scoring --------------------------------------------------------------------------------- */

static lw_status choose_scoring(files *f, lw_alphabet_type guess, lw_error *err)
{
    const lw_align_job *job = f->job;
    LW_TRY(lw_choice_scoring(&f->run.scoring, job, guess, err));
    lw_alphabet_type type = f->run.scoring.type;
    lw_match_table_fill(&f->run.match, &f->run.scoring);
    f->run.strands = job->strands;
    if (type == LW_PROTEIN) {
        if (job->format == LW_FORMAT_BAM || job->format == LW_FORMAT_CRAM)
            return lw_fail(
                err, LW_E_ARG,
                "BAM and CRAM cannot hold protein: write --format sam, paf or tsv (or say --type dna)");
        if (job->strands & LW_REVERSE)
            return lw_fail(err, LW_E_ARG, "protein has no reverse strand: leave out --strand");
        if (f->run.kind == LW_RUN_MATES || f->run.kind == LW_RUN_INTERLEAVED)
            return lw_fail(err, LW_E_ARG, "protein has no read pairs: leave out -2 and -p");
        f->run.strands = LW_FORWARD;
    }
    if (f->run.strands == 0)
        f->run.strands = f->run.kind == LW_RUN_PAIRS ? LW_FORWARD : LW_BOTH_STRANDS;
    return LW_OK;
}

/* ---- backend --------------------------------------------------------------------------------- */

static lw_status choose_backend(files *f, const char *name, lw_error *err)
{
    const lw_align_job *job = f->job;
    LW_TRY(lw_choice_make(&f->choice, name, job->devices, job->n_devices, err));
    f->run.backend = f->choice.backend;
    snprintf(f->total.backend, sizeof f->total.backend, "%s", f->choice.backend->base.name);
    snprintf(f->total.device, sizeof f->total.device, "%s", f->choice.devices);
    snprintf(f->total.why, sizeof f->total.why, "%s", f->choice.why);
    return LW_OK;
}

static int lanes_of(const files *f)
{
    return lw_choice_lanes(&f->choice);
}

/* ---- pipeline -------------------------------------------------------------------------------- */

static lw_status read_mates(files *f, lw_batch *batch, lw_error *err)
{
    lw_seqio **reader = f->run.reader;
    LW_TRY(lw_seqio_read(reader[0], &batch->reads[0], f->batch_records / 2, f->batch_letters / 2, err));
    int64_t n = batch->reads[0].n;
    LW_TRY(lw_seqio_read(reader[1], &batch->reads[1], n ? n : 1, 0, err));
    if (batch->reads[1].n == n)
        return LW_OK;
    bool first_longer = batch->reads[1].n < n;
    return lw_fail(
        err, LW_E_INPUT,
        "%s has more records than %s, which ends after record %lld: the n-th records belong together",
        lw_seqio_path(reader[first_longer ? 0 : 1], 0), lw_seqio_path(reader[first_longer ? 1 : 0], 0),
        (long long)lw_seqio_count(reader[first_longer ? 1 : 0])->records);
}

/* Targets of `pairs` may be of any length, so the number of records a batch takes follows the longest so
 * far. */
static lw_status read_pairs(files *f, lw_batch *batch, lw_error *err)
{
    int64_t n = f->batch_letters / (f->longest_pair + 1);
    n = n < 1 ? 1 : n < f->batch_records ? n : f->batch_records;
    if (f->longest_pair == 0)
        n = 16;
    int64_t records = f->batch_records;
    f->batch_records = 2 * n;
    lw_status status = read_mates(f, batch, err);
    f->batch_records = records;
    LW_TRY(status);
    for (int s = 0; s < 2; s++)
        for (int64_t i = 0; i < batch->reads[s].n; i++)
            if (batch->reads[s].read[i].len > f->longest_pair)
                f->longest_pair = batch->reads[s].read[i].len;
    return LW_OK;
}

static lw_status read_batch(void *arg, void *item, bool *end, lw_error *err)
{
    files *f = arg;
    lw_batch *batch = item;
    if (lw_stopped(&f->host.host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    if (f->first_waits) {
        for (int s = 0; s < 2; s++) {
            lw_read_batch swap = batch->reads[s];
            batch->reads[s] = f->first.reads[s];
            f->first.reads[s] = swap;
        }
        f->first_waits = false;
    } else if (f->run.kind == LW_RUN_PAIRS) {
        LW_TRY(read_pairs(f, batch, err));
    } else if (f->run.kind == LW_RUN_MATES) {
        LW_TRY(read_mates(f, batch, err));
    } else {
        LW_TRY(lw_seqio_read(f->run.reader[0], &batch->reads[0], f->batch_records, f->batch_letters, err));
        if (f->run.kind == LW_RUN_INTERLEAVED && batch->reads[0].n % 2 != 0)
            return lw_fail(
                err, LW_E_INPUT,
                "%s: the last read has no mate: with -p the reads of a pair stand one after the other",
                lw_seqio_path(f->run.reader[0], lw_seqio_inputs(f->run.reader[0]) - 1));
    }
    *end = batch->reads[0].n == 0;
    return LW_OK;
}

static lw_status open_lane(void *arg, int lane, void **context, lw_error *err)
{
    files *f = arg;
    lw_lane *opened = NULL;
    LW_TRY(lw_lane_open(&opened, &f->run, lw_choice_device(&f->choice, lane), err));
    *context = opened;
    return LW_OK;
}

static void close_lane(void *arg, void *context)
{
    files *f = arg;
    const lw_substitutions *seen = lw_lane_substitutions(context);
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < 256; i++)
        f->substitutions.count[i] += seen->count[i];
    pthread_mutex_unlock(&f->lock);
    lw_lane_close(context);
}

static lw_status work(void *arg, void *context, void *item, lw_error *err)
{
    (void)arg;
    return lw_lane_work(context, item, err);
}

/* Under auto a GPU that cannot be used after all is no reason to give up. */
static int fall_back(void *arg, const lw_error *reason)
{
    files *f = arg;
    bool automatic = (!f->job->backend || strcmp(f->job->backend, "auto") == 0) && f->job->n_devices == 0;
    bool of_device =
        reason->status == LW_E_DEVICE || reason->status == LW_E_NOMEM || reason->status == LW_E_UNSUPPORTED;
    if (!f->choice.on_gpu || !automatic || !of_device || choose_backend(f, "cpu", NULL) != LW_OK)
        return 0;
    snprintf(f->total.why, sizeof f->total.why, "auto chose backend %.32s; the GPU: %.400s",
             f->run.backend->base.name, reason->message);
    lw_say(&f->host.host, LW_SAY_WARNING, "the GPU cannot be used, going on with backend %s: %s",
           f->run.backend->base.name, reason->message);
    return lanes_of(f);
}

static lw_status write_batch(void *arg, void *item, lw_error *err)
{
    files *f = arg;
    lw_batch *batch = item;
    for (int64_t c = 0; c < batch->n_chunks; c++)
        LW_TRY(f->sink->write(f->sink, &batch->chunk[c], err));
    f->flagged += batch->flagged;
    f->total.reads += batch->total.reads;
    f->total.aligned += batch->total.aligned;
    f->total.letters += batch->total.letters;
    f->total.score_sum += batch->total.score_sum;
    f->total.proper += batch->total.proper;
    f->total.secondary += batch->total.secondary;
    f->total.cells += batch->total.cells;
    if (f->host.host.progress)
        f->host.host.progress(f->host.host.user, (double)f->total.reads, 0, f->total.cells);
    return LW_OK;
}

/* As many batches as keep reader, lanes and writer busy, each small enough for all of them to fit. */
static lw_status make_batches(files *f, lw_error *err)
{
    int lanes = lanes_of(f);
    int64_t records = 1 + f->job->secondary;
    f->n_batches = 2 * lanes + LW_STREAM_SPARE_BATCHES;
    f->batches = calloc((size_t)f->n_batches, sizeof *f->batches);
    if (!f->batches) {
        size_t bytes = (size_t)f->n_batches * sizeof *f->batches;
        f->n_batches = 0;
        return lw_fail_memory(err, bytes);
    }
    int64_t share = LW_STREAM_BYTES / f->n_batches;
    int64_t most_letters = share / (LW_STREAM_LETTER_BYTES + records * LW_STREAM_RECORD_LETTER_BYTES);
    int64_t per_read = records * LW_STREAM_RECORD_BYTES + (int64_t)sizeof(lw_hit) * f->run.n_ties;
    f->batch_letters = f->job->batch_letters > 0 ? f->job->batch_letters : f->run.backend->batch_letters;
    if (f->batch_letters > most_letters)
        f->batch_letters = most_letters;
    f->batch_records = share / per_read;
    if (f->run.kind == LW_RUN_INTERLEAVED || f->run.kind == LW_RUN_MATES) {
        f->batch_letters = f->batch_letters < 2 ? 2 : f->batch_letters;
        f->batch_records = f->batch_records < 2 ? 2 : f->batch_records & ~INT64_C(1);
    }
    return LW_OK;
}

static lw_status run_pipeline(files *f, lw_error *err)
{
    lw_stream_ops ops = {.arg = f,
                         .read = read_batch,
                         .open_lane = open_lane,
                         .work = work,
                         .close_lane = close_lane,
                         .fall_back = fall_back,
                         .write = write_batch};
    void **items = malloc((size_t)f->n_batches * sizeof *items);
    if (!items)
        return lw_fail_memory(err, (size_t)f->n_batches * sizeof *items);
    for (int i = 0; i < f->n_batches; i++)
        items[i] = &f->batches[i];
    lw_status status = lw_stream_run(&ops, items, f->n_batches, lanes_of(f), &f->host.host, err);
    free(items);
    return status;
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

static lw_status open_readers(files *f, lw_error *err)
{
    const lw_align_job *job = f->job;
    bool cram = job->format == LW_FORMAT_CRAM;
    for (int i = 0; f->run.refs && i < job->n_reads; i++)
        cram = cram || lw_may_be_cram(job->reads[i], f->run.refs->total);
    cram = cram || (f->run.refs && job->mates && lw_may_be_cram(job->mates, f->run.refs->total));
    if (cram)
        LW_TRY(lw_refs_indexed_fasta(&f->fasta, f->run.refs, job->temporaries, err));
    lw_seqio_options options = {.pool = f->run.pool,
                                .reference = f->fasta ? lw_fasta_path(f->fasta) : NULL,
                                .host = &f->host.host,
                                .group = f->run.kind == LW_RUN_INTERLEAVED ? 2 : 1};
    LW_TRY(lw_seqio_open(&f->run.reader[0], job->reads, job->n_reads, &options, err));
    if (job->mates)
        LW_TRY(lw_seqio_open(&f->run.reader[1], &job->mates, 1, &options, err));
    return LW_OK;
}

static lw_status list_references(files *f, lw_error *err)
{
    lw_refs *refs = f->run.refs;
    f->sq = calloc((size_t)refs->n, sizeof *f->sq);
    if (!f->sq)
        return lw_fail_memory(err, (size_t)refs->n * sizeof *f->sq);
    f->n_sq = refs->n;
    for (int64_t i = 0; i < refs->n; i++) {
        f->sq[i] = (lw_sq){.name = refs->name[i], .len = refs->len[i]};
        LW_TRY(lw_refs_md5(refs, i, f->sq[i].md5, err));
    }
    LW_TRY(lw_sam_ur(refs->path, &f->ur, err));
    return LW_OK;
}

static lw_status open_output(files *f, lw_error *err)
{
    const lw_align_job *job = f->job;
    if (job->format == LW_FORMAT_PAF || job->format == LW_FORMAT_TSV)
        return lw_textout_open(&f->sink, job->format, f->output, !job->drop_unmapped, job->preset, err);
    struct sam_hdr_t **header = NULL;
    const char **path = NULL;
    lw_samout_options o = {.format = job->format,
                           .type = f->run.scoring.type,
                           .pool = f->run.pool,
                           .host = &f->host.host,
                           .match = &f->run.match,
                           .sq = f->sq,
                           .n_sq = f->n_sq,
                           .targets_by_name = f->run.kind == LW_RUN_PAIRS,
                           .ur = f->ur.l ? f->ur.s : NULL,
                           .read_group = job->read_group,
                           .command_line = job->command_line,
                           .fasta = f->fasta ? lw_fasta_path(f->fasta) : NULL,
                           .unmapped = !job->drop_unmapped};
    int n_inputs = job->n_reads + 1;
    header = malloc((size_t)n_inputs * sizeof *header);
    path = malloc((size_t)n_inputs * sizeof *path);
    lw_status status = header && path ? LW_OK : lw_fail_memory(err, (size_t)n_inputs * sizeof *header);
    for (int r = 0; r < (f->run.kind == LW_RUN_PAIRS ? 1 : 2) && status == LW_OK; r++)
        for (int i = 0; f->run.reader[r] && i < lw_seqio_inputs(f->run.reader[r]); i++) {
            struct sam_hdr_t *h = lw_seqio_header(f->run.reader[r], i);
            if (!h)
                continue;
            header[o.n_headers] = h;
            path[o.n_headers++] = lw_seqio_path(f->run.reader[r], i);
        }
    o.header = header;
    o.header_path = path;
    if (status == LW_OK)
        status = lw_samout_open(&f->sink, &o, f->output, err);
    free(header);
    free(path);
    return status;
}

/* Tells what was read differently from what the files say. */
static void report(files *f)
{
    const lw_host *host = &f->host.host;
    lw_seqio_counts sum = {0};
    for (int r = 0; r < 2; r++) {
        if (!f->run.reader[r])
            continue;
        const lw_seqio_counts *c = lw_seqio_count(f->run.reader[r]);
        sum.secondary += c->secondary;
        sum.supplementary += c->supplementary;
        sum.empty += c->empty;
        sum.unnamed += c->unnamed;
    }
    if (sum.secondary + sum.supplementary > 0)
        lw_say(host, LW_SAY_INFO,
               "left out %lld secondary and %lld supplementary records of the input: their reads are aligned "
               "once",
               (long long)sum.secondary, (long long)sum.supplementary);
    const bool pairs = f->run.kind == LW_RUN_PAIRS; /* where letters are missing, gaps may still be aligned */
    const char *what = pairs ? "sequence" : "read";
    if (sum.empty > 0)
        lw_say(host, LW_SAY_WARNING, "%lld %s%s without letters%s", (long long)sum.empty, what,
               sum.empty == 1 ? "" : "s", pairs ? "" : ": written as unmapped");
    if (sum.unnamed > 0)
        lw_say(host, LW_SAY_WARNING, "%lld %s%s without a name: written as '*'", (long long)sum.unnamed, what,
               sum.unnamed == 1 ? "" : "s");
    if (f->flagged > 0)
        lw_say(
            host, LW_SAY_WARNING,
            "%lld reads are flagged as paired and were aligned each by itself, without mate fields: use -p "
            "where mates stand side by side",
            (long long)f->flagged);
    lw_warn_substitutions(host, &f->substitutions);
}

static lw_status check_job(const lw_align_job *job, lw_error *err)
{
    if (!job->output || job->n_reads < 1 || !job->reads)
        return lw_fail(err, LW_E_ARG, "no reads or no output named");
    if (job->mode != LW_LOCAL && job->mode != LW_GLOBAL && job->mode != LW_SEMIGLOBAL)
        return lw_fail(err, LW_E_ARG, "unknown alignment mode %d", (int)job->mode);
    if ((int)job->format < LW_FORMAT_SAM || job->format > LW_FORMAT_TSV)
        return lw_fail(err, LW_E_ARG, "unknown output format %d", (int)job->format);
    if (job->insert_low < 0 || job->insert_high < job->insert_low)
        return lw_fail(err, LW_E_ARG, "--insert: %d,%d is not a range from low to high", job->insert_low,
                       job->insert_high);
    if (job->secondary < 0 || job->secondary > LW_MAX_SECONDARY)
        return lw_fail(err, LW_E_ARG, "-N: %d is outside 0 to %d", job->secondary, LW_MAX_SECONDARY);
    if ((unsigned)job->preset > LW_PRESET_NEEDLE)
        return lw_fail(err, LW_E_ARG, "unknown preset %d", (int)job->preset);
    if (lw_choice_mode(job) == LW_LOCAL && job->min_score != INT32_MIN && job->min_score < 1)
        return lw_fail(err, LW_E_ARG, "--min-score: %d: a local alignment scores at least 1", job->min_score);
    if (job->strands > LW_BOTH_STRANDS)
        return lw_fail(err, LW_E_ARG, "unknown strands %u", job->strands);
    const int penalty[] = {job->match,      job->mismatch,  job->gap_open,
                           job->gap_extend, job->gap_open2, job->gap_extend2};
    static const char *const name[] = {"-A", "-B", "-O", "-E", "-O", "-E"};
    if ((job->gap_open2 == LW_PENALTY_DEFAULT) != (job->gap_extend2 == LW_PENALTY_DEFAULT))
        return lw_fail(err, LW_E_ARG, "-O and -E: a second price of gaps has both");
    for (size_t i = 0; i < sizeof penalty / sizeof *penalty; i++)
        if (penalty[i] != LW_PENALTY_DEFAULT && (penalty[i] < 0 || penalty[i] > LW_MAX_SCORE))
            return lw_fail(err, LW_E_ARG, "%s: %d is outside 0 to %d", name[i], penalty[i], LW_MAX_SCORE);
    return LW_OK;
}

static void begin(files *f, const lw_align_job *job, const lw_host *host, lw_run_kind kind)
{
    memset(f, 0, sizeof *f);
    f->job = job;
    lw_share_host(&f->host, host);
    pthread_mutex_init(&f->lock, NULL);
    f->run.kind = kind;
    f->run.host = &f->host.host;
    f->run.device_bytes = job->device_bytes;
    f->run.mode = lw_choice_mode(job);
    f->run.free_ends = job->preset == LW_PRESET_NEEDLE;
    f->run.scores_only = job->scores_only;
    f->run.min_score = f->run.mode == LW_LOCAL && job->min_score < 1 ? 1 : job->min_score;
    f->run.n_hits = 1 + job->secondary;
    f->run.n_ties = kind == LW_RUN_MATES || kind == LW_RUN_INTERLEAVED ? LW_MAX_TIES : 0;
    f->run.insert = (lw_insert_range){job->insert_low, job->insert_high};
    f->run.split_matches = job->split_matches;
    f->run.drop_unmapped = job->drop_unmapped;
    f->run.sam_records = job->format <= LW_FORMAT_CRAM;
}

/* Ends the output and frees everything. */
static lw_status end(files *f, lw_status status, lw_align_summary *summary, lw_error *err)
{
    if (f->sink)
        status = f->sink->close(f->sink, status, err);
    status = lw_outfile_close(f->output, status, err);
    if (status == LW_OK)
        report(f);
    if (summary)
        *summary = f->total;
    for (int i = 0; i < f->n_batches; i++)
        lw_batch_free(&f->batches[i]);
    free(f->batches);
    lw_batch_free(&f->first);
    lw_seqio_close(f->run.reader[0]);
    lw_seqio_close(f->run.reader[1]);
    lw_fasta_close(f->fasta);
    lw_encoded_free(&f->run.ref_codes);
    lw_refs_free(f->run.refs);
    lw_pool_close(f->run.pool);
    for (int64_t i = 0; f->run.kind == LW_RUN_PAIRS && i < f->n_sq; i++)
        free((char *)f->sq[i].name); /* `pairs` has copied them */
    free(f->sq);
    ks_free(&f->ur);
    pthread_mutex_destroy(&f->lock);
    lw_shared_host_end(&f->host);
    return status;
}

lw_status lw_align_files(const lw_align_job *job, const lw_host *host, lw_align_summary *summary,
                         lw_error *err)
{
    files f;
    lw_status status;
    begin(&f, job, host, job->mates ? LW_RUN_MATES : job->interleaved ? LW_RUN_INTERLEAVED : LW_RUN_READS);
    LW_TRY_END(check_job(job, err));
    if (job->preset != LW_PRESET_NONE || job->scores_only) {
        status = lw_fail(err, LW_E_ARG, "presets and scores alone are for pairs");
        goto end;
    }
    if (job->mates && (job->interleaved || job->n_reads != 1)) {
        status = lw_fail(err, LW_E_ARG, "-2 goes with exactly one file of first reads, and not with -p");
        goto end;
    }
    LW_TRY_END(choose_backend(&f, job->backend ? job->backend : "auto", err));
    lw_say(&f.host.host, LW_SAY_INFO, "%s", f.total.why);
    LW_TRY_END(lw_outfile_open(&f.output, job->output, job->temporaries, err));
    LW_TRY_END(lw_pool_open(&f.run.pool, job->threads, err));
    LW_TRY_END(lw_refs_load(&f.run.refs, job->reference, f.run.pool, &f.host.host, err));
    LW_TRY_END(choose_scoring(&f, lw_guess_refs_type(f.run.refs), err));
    LW_TRY_END(lw_encode_refs(&f.run.scoring, f.run.refs, &f.run.ref_codes, &f.substitutions, err));
    for (int64_t i = 0; i < f.run.refs->n; i++)
        if (f.run.refs->len[i] > f.run.longest_ref)
            f.run.longest_ref = f.run.refs->len[i];
    LW_TRY_END(open_readers(&f, err));
    if (f.run.sam_records)
        LW_TRY_END(list_references(&f, err));
    LW_TRY_END(open_output(&f, err));
    f.run.sink = f.sink;
    LW_TRY_END(make_batches(&f, err));
    status = run_pipeline(&f, err);
end:
    return end(&f, status, summary, err);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static void md5_of(hts_md5_context *md5, const char *letters, int32_t len, char hex[33])
{
    unsigned char digest[16];
    char upper[4096];
    hts_md5_reset(md5);
    for (int32_t i = 0; i < len;) {
        int32_t n = 0;
        for (; n < (int32_t)sizeof upper && i < len; n++, i++)
            upper[n] = (char)toupper((unsigned char)letters[i]);
        hts_md5_update(md5, upper, (unsigned long)n);
    }
    hts_md5_final(digest, md5);
    hts_md5_hex(hex, digest);
}

/* The @SQ row of one more target. `rows` finds rows by name. */
static lw_status list_target(files *f, const lw_seqio *reader, const lw_read_batch *batch, int64_t i,
                             hts_md5_context *md5, void *rows, int64_t *capacity, lw_error *err)
{
    char where[512], hex[33];
    const char *name = lw_read_name(batch, i);
    int32_t len = batch->read[i].len;
    lw_read_where(reader, batch, i, where, sizeof where);
    if (!*name || len == 0)
        return lw_fail(err, LW_E_INPUT,
                       "%s: SAM needs a name and letters for every target: write --format paf or tsv", where);
    md5_of(md5, lw_read_seq(batch, i), len, hex);
    int row;
    if (khash_str2int_get(rows, name, &row) == 0) {
        if (strcmp(f->sq[row].md5, hex) != 0)
            return lw_fail(err, LW_E_INPUT,
                           "%s: an earlier target of this name has other letters: SAM needs different names",
                           where);
    } else {
        if (f->n_sq == *capacity) {
            int64_t wanted = 2 * *capacity + 1024;
            lw_sq *grown = realloc(f->sq, (size_t)wanted * sizeof *grown);
            if (!grown)
                return lw_fail_memory(err, (size_t)wanted * sizeof *grown);
            f->sq = grown;
            *capacity = wanted;
        }
        row = (int)f->n_sq;
        lw_sq *sq = &f->sq[f->n_sq];
        *sq = (lw_sq){.name = strdup(name), .len = len};
        memcpy(sq->md5, hex, sizeof hex);
        if (!sq->name)
            return lw_fail_memory(err, strlen(name));
        f->n_sq++; /* the name is now freed with the others */
        if (khash_str2int_set(rows, sq->name, row) < 0)
            return lw_fail_memory(err, sizeof *sq);
    }
    return LW_OK;
}

/* The @SQ lines of all targets, by a pass over their file: SAM wants them first. Targets of one name must be
 * one sequence. */
static lw_status list_targets(files *f, lw_error *err)
{
    if (strcmp(f->job->mates, "-") == 0)
        return lw_fail(
            err, LW_E_ARG,
            "SAM names all targets first, so they cannot come from standard input: name a file, or "
            "write --format paf or tsv");
    lw_seqio *reader = NULL;
    lw_read_batch batch = {0};
    hts_md5_context *md5 = hts_md5_init();
    void *rows = khash_str2int_init();
    int64_t capacity = 0;
    lw_status status = md5 && rows ? LW_OK : lw_fail_memory(err, sizeof batch);
    if (status != LW_OK)
        goto end;
    LW_TRY_END(lw_seqio_open(&reader, &f->job->mates, 1, &(lw_seqio_options){.pool = f->run.pool}, err));
    for (;;) {
        LW_TRY_END(lw_seqio_read(reader, &batch, 0, f->batch_letters, err));
        if (batch.n == 0)
            break;
        for (int64_t i = 0; i < batch.n; i++)
            LW_TRY_END(list_target(f, reader, &batch, i, md5, rows, &capacity, err));
    }
end:
    lw_seqio_close(reader);
    lw_read_batch_free(&batch);
    hts_md5_destroy(md5);
    if (rows)
        khash_str2int_destroy(rows);
    return status;
}

/* Letters of either file that decide between DNA and protein: they must not depend on the size of a batch. */
enum { LOOK_LETTERS = 1 << 20 };

/* Reads ahead for a look at the letters of the first pairs. */
static lw_status first_pairs(files *f, lw_alphabet_type *guess, lw_error *err)
{
    int64_t letters = f->batch_letters;
    f->batch_letters = 2 * LOOK_LETTERS;
    lw_status status = read_pairs(f, &f->first, err);
    f->batch_letters = letters;
    LW_TRY(status);
    f->first_waits = true;
    kstring_t all = {0};
    int bad = 0;
    for (int s = 0; s < 2; s++)
        for (int64_t i = 0; i < f->first.reads[s].n; i++)
            bad |= kputsn(lw_read_seq(&f->first.reads[s], i), f->first.reads[s].read[i].len, &all) < 0;
    *guess = lw_guess_type(all.l ? all.s : "", (int64_t)all.l);
    ks_free(&all);
    return bad ? lw_fail_memory(err, 2 * LOOK_LETTERS) : LW_OK;
}

lw_status lw_align_pair_files(const lw_align_job *job, const lw_host *host, lw_align_summary *summary,
                              lw_error *err)
{
    files f;
    lw_status status;
    lw_alphabet_type guess;
    begin(&f, job, host, LW_RUN_PAIRS);
    LW_TRY_END(check_job(job, err));
    if (job->n_reads != 1 || !job->mates || job->secondary > 0 || job->interleaved) {
        status = lw_fail(err, LW_E_ARG, "pairs takes two files and no secondary alignments");
        goto end;
    }
    if (job->format == LW_FORMAT_BAM || job->format == LW_FORMAT_CRAM) {
        status = lw_fail(err, LW_E_ARG, "pairs writes tsv, paf or sam");
        goto end;
    }
    if (job->scores_only && job->format != LW_FORMAT_TSV) {
        status = lw_fail(err, LW_E_ARG, "--scores-only writes tsv: the other formats hold paths");
        goto end;
    }
    LW_TRY_END(choose_backend(&f, job->backend ? job->backend : "auto", err));
    lw_say(&f.host.host, LW_SAY_INFO, "%s", f.total.why);
    LW_TRY_END(lw_outfile_open(&f.output, job->output, job->temporaries, err));
    LW_TRY_END(lw_pool_open(&f.run.pool, job->threads, err));
    LW_TRY_END(make_batches(&f, err));
    LW_TRY_END(open_readers(&f, err));
    LW_TRY_END(first_pairs(&f, &guess, err));
    LW_TRY_END(choose_scoring(&f, guess, err));
    if (job->format == LW_FORMAT_SAM)
        LW_TRY_END(list_targets(&f, err));
    LW_TRY_END(open_output(&f, err));
    f.run.sink = f.sink;
    status = run_pipeline(&f, err);
end:
    return end(&f, status, summary, err);
}
