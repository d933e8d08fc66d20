/* realign_files.c - a whole run of realign: checks the job and the header, chooses the backend, sends batches
 * of records through the pipeline, and writes them in order. */
#include "lanewise/align.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <htslib/khash_str2int.h>

#include "align/align_choice.h"
#include "align/realign.h"
#include "align/realign_tuning.h"
#include "align/samfile.h"
#include "align/stream.h"
#include "align/stream_tuning.h"
#include "common/fail.h"
#include "common/outfile.h"

typedef struct files {
    lw_realign_run run;
    const lw_realign_job *job;
    const char *input; /* for messages */
    lw_shared_host host;
    lw_choice choice;
    lw_outfile *output;
    lw_samfile *sink;
    lw_fasta *fasta; /* for CRAM in or out */
    lw_seqio *reader;
    lw_spool *spool; /* the rest of a stream */
    lw_seqio *spooled;
    bool is_stream, by_coordinate;
    int64_t read;      /* records */
    sam_hdr_t *header; /* of the output */
    lw_realign_order *order;
    lw_realign_batch *batches;
    int n_batches;
    int64_t batch_letters;
    lw_realign_counts counts;
    lw_realign_summary total;
} files;

void lw_realign_job_init(lw_realign_job *job)
{
    *job = (lw_realign_job){.pad = 50};
    lw_align_job_init(&job->align);
    job->align.mode = LW_SEMIGLOBAL;
}

/* ---- the header ------------------------------------------------------------------------------- */

typedef struct sums {
    const files *f;
    const int32_t *ref; /* of each row with an M5 */
    char (*md5)[33];
} sums;

static lw_status sum_one(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker;
    sums *s = arg;
    return lw_refs_md5(s->f->run.refs, s->ref[i], s->md5[i], err);
}

/* M5 of the rows that have one, against REF's. */
static lw_status check_sums(files *f, int n, lw_error *err)
{
    sam_hdr_t *header = f->run.header;
    kstring_t value = KS_INITIALIZE;
    sums s = {.f = f};
    int32_t *ref = malloc(((size_t)n + 1) * sizeof *ref);
    int *row = malloc(((size_t)n + 1) * sizeof *row);
    s.md5 = malloc(((size_t)n + 1) * sizeof *s.md5);
    lw_status status = ref && row && s.md5 ? LW_OK : lw_fail_memory(err, (size_t)n * sizeof *s.md5);
    int n_sums = 0;
    for (int i = 0; status == LW_OK && i < n; i++)
        if (sam_hdr_find_tag_pos(header, "SQ", i, "M5", &value) == 0) {
            row[n_sums] = i;
            ref[n_sums++] = f->run.ref_of[i];
        }
    s.ref = ref;
    if (status == LW_OK)
        status = lw_pool_for(f->run.pool, n_sums, sum_one, &s, err);
    for (int k = 0; k < n_sums && status == LW_OK; k++)
        if (sam_hdr_find_tag_pos(header, "SQ", row[k], "M5", &value) == 0 &&
            strcasecmp(value.s, s.md5[k]) != 0)
            status = lw_fail(err, LW_E_INPUT,
                             "%s: @SQ %s has M5 %s, in %s it is %s: give the reference that the reads were "
                             "mapped to",
                             f->input, sam_hdr_tid2name(header, row[k]), value.s, f->job->align.reference,
                             s.md5[k]);
    free(ref);
    free(row);
    free(s.md5);
    ks_free(&value);
    return status;
}

/* The header's sequences must be those of REF, by name, length and M5. */
static lw_status check_header(files *f, lw_error *err)
{
    sam_hdr_t *header = f->run.header = lw_seqio_header(f->reader, 0);
    const lw_refs *refs = f->run.refs;
    int n = sam_hdr_nref(header);
    void *by_name = khash_str2int_init();
    f->run.ref_of = malloc(((size_t)n + 1) * sizeof *f->run.ref_of);
    lw_status status = f->run.ref_of && by_name ? LW_OK : lw_fail_memory(err, (size_t)n * 4);
    for (int64_t i = 0; i < refs->n && status == LW_OK; i++)
        if (khash_str2int_set(by_name, refs->name[i], (int)i) < 0)
            status = lw_fail_memory(err, (size_t)refs->n);
    for (int i = 0; i < n && status == LW_OK; i++) {
        const char *name = sam_hdr_tid2name(header, i);
        int64_t length = sam_hdr_tid2len(header, i);
        int ref;
        if (khash_str2int_get(by_name, name, &ref) != 0)
            status = lw_fail(err, LW_E_INPUT,
                             "%s: @SQ %s (%lld letters) is not in %s: give the reference that the reads were "
                             "mapped to",
                             f->input, name, (long long)length, f->job->align.reference);
        else if (length != refs->len[ref])
            status =
                lw_fail(err, LW_E_INPUT,
                        "%s: @SQ %s has %lld letters, in %s it has %d: give the reference that the reads "
                        "were mapped to",
                        f->input, name, (long long)length, f->job->align.reference, refs->len[ref]);
        else
            f->run.ref_of[i] = ref;
    }
    khash_str2int_destroy(by_name);
    if (status == LW_OK)
        status = check_sums(f, n, err);
    kstring_t order = KS_INITIALIZE;
    f->by_coordinate = status == LW_OK && sam_hdr_find_tag_hd(header, "SO", &order) == 0 &&
                       strcmp(order.s, "coordinate") == 0;
    ks_free(&order);
    return status;
}

/* ---- pipeline --------------------------------------------------------------------------------- */

static lw_seqio_options reader_options(const files *f)
{
    return (lw_seqio_options){.pool = f->run.pool,
                              .reference = f->fasta ? lw_fasta_path(f->fasta) : NULL,
                              .host = &f->host.host,
                              .whole_records = true};
}

/* A stream is read on from a file once a mate is needed that comes much later. */
static lw_status spool_rest(files *f, bam1_t *record, bool *got, lw_error *err)
{
    lw_say(&f->host.host, LW_SAY_INFO,
           "mates lie more than %d letters apart: the rest of the stream is copied to a temporary file",
           LW_REALIGN_REACH);
    LW_TRY(lw_spool_open(&f->spool, f->reader, record, &f->run, f->job->align.temporaries, err));
    const char *path = lw_spool_path(f->spool);
    lw_seqio_options options = reader_options(f);
    LW_TRY(lw_seqio_open(&f->spooled, &path, 1, &options, err));
    return lw_seqio_record(f->spooled, record, got, err);
}

static lw_status read_batch(void *arg, void *item, bool *end, lw_error *err)
{
    files *f = arg;
    lw_realign_batch *b = item;
    b->n = b->letters = 0;
    while (b->n < LW_REALIGN_BATCH_RECORDS && b->letters < f->batch_letters) {
        bool got;
        bam1_t *record = lw_realign_next(b);
        if (!record)
            return lw_fail_memory(err, sizeof *record);
        LW_TRY(lw_seqio_record(f->spooled ? f->spooled : f->reader, record, &got, err));
        if (!got)
            break;
        if (f->is_stream && f->by_coordinate && !f->spooled && lw_has_placed_mate(record) &&
            lw_is_primary(record) && lw_mate_side(record, (int32_t)record->core.pos) > 0)
            LW_TRY(spool_rest(f, record, &got, err));
        LW_TRY(lw_realign_look(&f->run, record, &b->item[b->n], f->input, ++f->read, err));
        lw_realign_take(b);
    }
    *end = b->n == 0;
    return LW_OK;
}

static lw_status open_lane(void *arg, int lane, void **context, lw_error *err)
{
    files *f = arg;
    lw_realign_lane *opened = NULL;
    LW_TRY(
        lw_realign_lane_open(&opened, &f->run, f->choice.backend, lw_choice_device(&f->choice, lane), err));
    *context = opened;
    return LW_OK;
}

static void close_lane(void *arg, void *context)
{
    (void)arg;
    lw_realign_lane_close(context);
}

static lw_status work(void *arg, void *context, void *batch, lw_error *err)
{
    (void)arg;
    return lw_realign_lane_work(context, batch, err);
}

static lw_status choose_backend(files *f, const char *name, lw_error *err)
{
    const lw_align_job *job = &f->job->align;
    LW_TRY(lw_choice_make(&f->choice, name, job->devices, job->n_devices, err));
    snprintf(f->total.backend, sizeof f->total.backend, "%s", f->choice.backend->base.name);
    snprintf(f->total.device, sizeof f->total.device, "%s", f->choice.devices);
    snprintf(f->total.why, sizeof f->total.why, "%s", f->choice.why);
    return LW_OK;
}

/* Under auto a GPU that cannot be used after all is no reason to give up. */
static int fall_back(void *arg, const lw_error *reason)
{
    files *f = arg;
    const lw_align_job *job = &f->job->align;
    bool automatic = (!job->backend || strcmp(job->backend, "auto") == 0) && job->n_devices == 0;
    bool of_device =
        reason->status == LW_E_DEVICE || reason->status == LW_E_NOMEM || reason->status == LW_E_UNSUPPORTED;
    if (!f->choice.on_gpu || !automatic || !of_device || choose_backend(f, "cpu", NULL) != LW_OK)
        return 0;
    lw_say(&f->host.host, LW_SAY_WARNING, "the GPU cannot be used, going on with backend %s: %s",
           f->total.backend, reason->message);
    return lw_choice_lanes(&f->choice);
}

static lw_status write_record(void *arg, const bam1_t *record, lw_error *err)
{
    files *f = arg;
    return lw_samfile_write(f->sink, record, err);
}

static lw_status scan(void *arg, lw_distant *table, lw_error *err)
{
    files *f = arg;
    lw_seqio_options options = reader_options(f);
    return lw_realign_scan(&f->run, f->spool ? lw_spool_path(f->spool) : f->job->align.reads[0], &options,
                           table, err);
}

static lw_status write_batch(void *arg, void *item, lw_error *err)
{
    files *f = arg;
    lw_realign_batch *b = item;
    for (int64_t i = 0; i < b->n; i++)
        LW_TRY(lw_realign_order_add(f->order, &b->record[i], &b->item[i], err));
    lw_realign_counts_add(&f->counts, &b->counts);
    f->total.records += b->n;
    f->total.cells += b->cells;
    if (f->host.host.progress)
        f->host.host.progress(f->host.host.user, (double)f->total.records, 0, f->total.cells);
    return lw_samfile_check(f->sink, err);
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
    int lanes = lw_choice_lanes(&f->choice);
    f->n_batches = 2 * lanes + LW_STREAM_SPARE_BATCHES;
    f->batches = calloc((size_t)f->n_batches, sizeof *f->batches);
    void **items = malloc((size_t)f->n_batches * sizeof *items);
    if (!f->batches || !items) {
        free(items);
        return lw_fail_memory(err, (size_t)f->n_batches * sizeof *f->batches);
    }
    for (int i = 0; i < f->n_batches; i++)
        items[i] = &f->batches[i];
    f->batch_letters =
        f->job->align.batch_letters > 0 ? f->job->align.batch_letters : LW_REALIGN_BATCH_LETTERS;
    lw_status status = lw_stream_run(&ops, items, f->n_batches, lanes, &f->host.host, err);
    if (status == LW_OK)
        status = lw_realign_order_end(f->order, err);
    free(items);
    return status;
}

/* ---- the whole run ---------------------------------------------------------------------------- */

static lw_status check_job(const lw_realign_job *job, lw_error *err)
{
    const lw_align_job *a = &job->align;
    if (!a->reference || !a->output || a->n_reads != 1 || !a->reads)
        return lw_fail(err, LW_E_ARG, "realign takes a reference, one file of placed reads and an output");
    if (a->format != LW_FORMAT_SAM && a->format != LW_FORMAT_BAM && a->format != LW_FORMAT_CRAM)
        return lw_fail(err, LW_E_ARG, "realign writes sam, bam or cram");
    if (job->pad < 1 || job->pad > LW_REALIGN_MOST_PAD)
        return lw_fail(err, LW_E_ARG, "--pad: %d is outside 1 to %d", job->pad, LW_REALIGN_MOST_PAD);
    if (strcmp(a->reference, "-") == 0 && strcmp(a->reads[0], "-") == 0)
        return lw_fail(err, LW_E_ARG, "standard input ('-') is given twice as input; it can be read once");
    return LW_OK;
}

static lw_status open_all(files *f, lw_error *err)
{
    const lw_realign_job *job = f->job;
    const lw_align_job *a = &job->align;
    LW_TRY(check_job(job, err));
    LW_TRY(choose_backend(f, a->backend ? a->backend : "auto", err));
    lw_say(&f->host.host, LW_SAY_INFO, "%s", f->total.why);
    LW_TRY(lw_outfile_open(&f->output, a->output, a->temporaries, err));
    LW_TRY(lw_pool_open(&f->run.pool, a->threads, err));
    LW_TRY(lw_refs_load(&f->run.refs, a->reference, f->run.pool, &f->host.host, err));
    LW_TRY(lw_choice_scoring(&f->run.scoring, a, LW_DNA, err));
    if (f->run.scoring.type != LW_DNA)
        return lw_fail(err, LW_E_ARG, "realign is for DNA: SAM, BAM and CRAM hold nothing else");
    lw_match_table_fill(&f->run.match, &f->run.scoring);
    LW_TRY(lw_encode_refs(&f->run.scoring, f->run.refs, &f->run.ref_codes, NULL, err));
    lw_realign_prepare(&f->run);
    f->run.pad = job->pad;
    f->run.keep_old = !job->drop_old;
    f->run.device_bytes = job->align.device_bytes;
    struct stat about;
    f->is_stream = strcmp(a->reads[0], "-") == 0 || stat(a->reads[0], &about) != 0 || !S_ISREG(about.st_mode);
    if (a->format == LW_FORMAT_CRAM || lw_may_be_cram(a->reads[0], f->run.refs->total))
        LW_TRY(lw_refs_indexed_fasta(&f->fasta, f->run.refs, a->temporaries, err));
    lw_seqio_options options = reader_options(f);
    LW_TRY(lw_seqio_open(&f->reader, a->reads, 1, &options, err));
    f->input = lw_seqio_path(f->reader, 0);
    if (!lw_seqio_header(f->reader, 0))
        return lw_fail(err, LW_E_INPUT,
                       "%s: holds reads without places: map them first (lanewise align, minimap2, bwa)",
                       f->input);
    LW_TRY(check_header(f, err));
    f->header = sam_hdr_dup(f->run.header);
    if (!f->header)
        return lw_fail_memory(err, sizeof f->header);
    LW_TRY(lw_samfile_add_program(f->header, a->command_line, err));
    lw_samfile_options out = {.format = a->format,
                              .header = f->header,
                              .pool = f->run.pool,
                              .fasta = f->fasta ? lw_fasta_path(f->fasta) : NULL,
                              .many_references = !f->by_coordinate};
    LW_TRY(lw_samfile_open(&f->sink, &out, f->output, err));
    lw_realign_order_options order = {.by_coordinate = f->by_coordinate,
                                      .pad = job->pad,
                                      .file = f->input,
                                      .write = write_record,
                                      .scan = scan,
                                      .arg = f};
    return lw_realign_order_open(&f->order, &order, err);
}

static void fill_summary(files *f)
{
    lw_realign_summary *s = &f->total;
    const lw_realign_counts *c = &f->counts;
    s->realigned = c->kind[LW_REALIGN];
    s->unmapped = c->kind[LW_PASS_UNMAPPED];
    s->secondary = c->kind[LW_PASS_SECONDARY];
    s->supplementary = c->kind[LW_PASS_SUPPLEMENTARY];
    s->no_sequence = c->kind[LW_PASS_NO_SEQUENCE];
    s->no_cigar = c->kind[LW_PASS_NO_CIGAR];
    s->skips = c->kind[LW_PASS_SKIP];
    s->no_letters = c->kind[LW_PASS_NO_LETTERS];
    s->letters = c->letters;
    s->proved = c->proved;
    s->changed = c->changed;
    s->moved = c->moved;
    s->improved = c->improved;
    s->gain = c->gain;
    s->highest_gain = c->highest_gain;
    s->widened = c->widened;
    s->at_edge = c->at_edge;
    if (f->order) {
        s->mates_updated = lw_realign_order_count(f->order)->mates_updated;
        s->mates_missing = lw_realign_order_count(f->order)->mates_missing;
        s->most_held = lw_realign_order_count(f->order)->most_held;
    }
}

lw_status lw_realign_files(const lw_realign_job *job, const lw_host *host, lw_realign_summary *summary,
                           lw_error *err)
{
    files f;
    memset(&f, 0, sizeof f);
    f.job = job;
    lw_share_host(&f.host, host);
    f.run.host = &f.host.host;
    lw_status status = open_all(&f, err);
    if (status == LW_OK)
        status = run_pipeline(&f, err);
    status = lw_samfile_close(f.sink, status, err);
    status = lw_outfile_close(f.output, status, err);
    fill_summary(&f);
    if (status == LW_OK && f.total.mates_missing > 0)
        lw_say(&f.host.host, LW_SAY_WARNING,
               "%lld paired record%s whose mate is not %s: the mate fields name the place it had",
               (long long)f.total.mates_missing, f.total.mates_missing == 1 ? "" : "s",
               f.by_coordinate ? "where they say" : "beside them (sort by name or by coordinate)");
    if (summary)
        *summary = f.total;
    for (int i = 0; f.batches && i < f.n_batches; i++)
        lw_realign_batch_free(&f.batches[i]);
    free(f.batches);
    lw_realign_order_close(f.order);
    sam_hdr_destroy(f.header);
    lw_seqio_close(f.spooled);
    lw_spool_close(f.spool);
    lw_seqio_close(f.reader);
    lw_fasta_close(f.fasta);
    free(f.run.ref_of);
    lw_encoded_free(&f.run.ref_codes);
    lw_refs_free(f.run.refs);
    lw_pool_close(f.run.pool);
    lw_shared_host_end(&f.host);
    return status;
}
