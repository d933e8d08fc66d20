/* seqio.c - opens sequence files of every format and goes from one to the next; the formats themselves are
 * read in seqio_text.c and seqio_bam.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/infile.h"
#include "common/seqio_input.h"

/* --- batches ---------------------------------------------------------------------------------- */

void lw_read_batch_free(lw_read_batch *batch)
{
    free(batch->read);
    free(batch->text);
    free(batch->aux);
    memset(batch, 0, sizeof *batch);
}

lw_status lw_batch_reserve(void *array, int64_t *capacity, int64_t need, size_t size, lw_error *err)
{
    if (need <= *capacity)
        return LW_OK;
    int64_t wanted = *capacity < 4096 ? 4096 : *capacity;
    while (wanted < need)
        wanted += wanted / 2;
    void *grown = realloc(*(void **)array, (size_t)wanted * size);
    if (!grown)
        return lw_fail_memory(err, (size_t)wanted * size);
    *(void **)array = grown;
    *capacity = wanted;
    return LW_OK;
}

lw_status lw_batch_reserve_text(lw_read_batch *b, int64_t more, lw_error *err)
{
    return lw_batch_reserve(&b->text, &b->text_capacity, b->n_text + more, 1, err);
}

/* --- messages ----------------------------------------------------------------------------------- */

const char *lw_read_where(const lw_seqio *reader, const lw_read_batch *batch, int64_t i, char *text,
                          size_t size)
{
    const lw_read *read = &batch->read[i];
    const char *path = reader->inputs[read->input].shown;
    if (read->name_len > 0)
        snprintf(text, size, "%s: record %lld (%.*s)", path, (long long)read->number, LW_SEQIO_NAME_SHOWN,
                 lw_read_name(batch, i));
    else
        snprintf(text, size, "%s: record %lld", path, (long long)read->number);
    return text;
}

lw_status lw_fail_record(const lw_seqio *r, const lw_read_batch *b, lw_error *err, const char *format, ...)
{
    char where[512], what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    lw_read_where(r, b, b->n, where, sizeof where);
    return lw_fail(err, LW_E_INPUT, "%s: %s", where, what);
}

/* --- opening -------------------------------------------------------------------------------------- */

static void close_input(lw_input *in)
{
    if (in->text)
        bgzf_close(in->text);
    if (in->hts)
        hts_close(in->hts);
    free(in->buffer);
    in->buffer = NULL;
    in->text = NULL;
    in->hts = NULL;
    in->fd = -1;
}

static lw_status open_input(const lw_seqio *r, lw_input *in, lw_error *err)
{
    lw_infile file;
    LW_TRY(lw_infile_open(&file, in->path, in->shown, err));
    hFILE *stream = file.stream;
    if (file.bytes == 0) {
        hclose_abruptly(stream);
        return lw_fail(err, LW_E_INPUT, "%s: the file is empty", in->shown);
    }
    in->fd = file.fd;
    in->regular = file.regular;
    in->bytes = file.bytes > 0 ? file.bytes : 0;
    htsFormat format;
    memset(&format, 0, sizeof format);
    errno = 0;
    if (hts_detect_format2(stream, in->path, &format) != 0) {
        int reason = errno;
        hclose_abruptly(stream);
        return lw_fail(err, LW_E_IO, "%s: reading failed: %s", in->shown, strerror(reason));
    }
    switch (format.format) {
    case bam:
        in->kind = LW_FILE_BAM;
        return lw_bam_open(r, in, stream, err);
    case cram:
        in->kind = LW_FILE_CRAM;
        return lw_bam_open(r, in, stream, err);
    case sam:
        in->kind = LW_FILE_SAM;
        return lw_bam_open(r, in, stream, err);
    default:
        break;
    }
    if (format.category == variant_data || format.category == index_file || format.category == region_list) {
        hclose_abruptly(stream);
        return lw_fail(err, LW_E_INPUT, "%s: holds no sequences: FASTA, FASTQ, SAM, BAM or CRAM are read",
                       in->shown);
    }
    return lw_text_open(r, in, stream, err);
}

lw_status lw_seqio_open(lw_seqio **out, const char *const *paths, int n_paths,
                        const lw_seqio_options *options, lw_error *err)
{
    if (n_paths < 1)
        return lw_fail(err, LW_E_ARG, "no input files");
    lw_status status = LW_OK;
    lw_seqio *r = calloc(1, sizeof *r);
    if (!r)
        return lw_fail_memory(err, sizeof *r);
    if (options)
        r->options = *options;
    if (r->options.group < 1)
        r->options.group = 1;
    r->n = n_paths;
    r->inputs = calloc((size_t)n_paths, sizeof *r->inputs);
    r->record = bam_init1();
    if (!r->inputs || !r->record) {
        r->n = r->inputs ? r->n : 0;
        status = lw_fail_memory(err, (size_t)n_paths * sizeof *r->inputs);
        goto end;
    }
    int n_stdin = 0;
    for (int i = 0; i < n_paths; i++) {
        lw_input *in = &r->inputs[i];
        in->path = paths[i];
        in->shown = strcmp(paths[i], "-") == 0 ? "standard input" : paths[i];
        in->fd = -1;
        n_stdin += strcmp(paths[i], "-") == 0;
    }
    if (n_stdin > 1) {
        status = lw_fail(err, LW_E_ARG,
                         "standard input ('-') is given %d times as input; it can be read once", n_stdin);
        goto end;
    }
    for (int i = 0; i < n_paths; i++) {
        LW_TRY_END(open_input(r, &r->inputs[i], err));
        if (i > 0 &&
            r->inputs[i]
                .regular) /* to be opened again in its turn, so that any number of files may be given */
            close_input(&r->inputs[i]);
    }
end:
    if (status != LW_OK) {
        lw_seqio_close(r);
        return status;
    }
    *out = r;
    return LW_OK;
}

void lw_seqio_close(lw_seqio *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n; i++) {
        close_input(&r->inputs[i]);
        if (r->inputs[i].header)
            sam_hdr_destroy(r->inputs[i].header);
    }
    bam_destroy1(r->record);
    free(r->inputs);
    free(r);
}

/* --- reading ---------------------------------------------------------------------------------------- */

lw_status lw_seqio_read(lw_seqio *r, lw_read_batch *b, int64_t max_records, int64_t max_letters,
                        lw_error *err)
{
    b->n = b->letters = b->n_text = b->n_aux = 0;
    b->first = r->counts.records;
    while (r->current < r->n) {
        lw_input *in = &r->inputs[r->current];
        if (b->n % r->options.group == 0 &&
            ((max_records > 0 && b->n >= max_records) || (max_letters > 0 && b->letters >= max_letters)))
            break;
        if (b->n % LW_SEQIO_STOP_INTERVAL == 0 && lw_stopped(r->options.host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
        LW_TRY(lw_batch_reserve(&b->read, &b->read_capacity, b->n + 1, sizeof *b->read, err));
        lw_read *read = &b->read[b->n];
        *read = (lw_read){.qual = -1, .aux = -1, .input = r->current};
        bool got;
        LW_TRY(in->text ? lw_text_read(r, b, read, &got, err) : lw_bam_read(r, b, read, &got, err));
        if (got) {
            b->n++;
            b->letters += read->len;
            r->counts.records++;
            r->counts.letters += read->len;
            r->counts.unnamed += read->name_len == 0;
            r->counts.empty += read->len == 0;
            continue;
        }
        close_input(in);
        r->number = 0;
        r->current++;
        if (r->current < r->n && r->inputs[r->current].fd < 0)
            LW_TRY(open_input(r, &r->inputs[r->current], err));
    }
    return LW_OK;
}

/* --- what is known of the inputs ---------------------------------------------------------------------- */

int lw_seqio_inputs(const lw_seqio *r)
{
    return r->n;
}

const char *lw_seqio_path(const lw_seqio *r, int index)
{
    return r->inputs[index].shown;
}

lw_file_kind lw_seqio_kind(const lw_seqio *r, int index)
{
    return r->inputs[index].kind;
}

struct sam_hdr_t *lw_seqio_header(const lw_seqio *r, int index)
{
    return r->inputs[index].header;
}

const lw_seqio_counts *lw_seqio_count(const lw_seqio *r)
{
    return &r->counts;
}

double lw_seqio_fraction(const lw_seqio *r)
{
    double all = 0, done = 0;
    for (int i = 0; i < r->n; i++) {
        const lw_input *in = &r->inputs[i];
        if (in->bytes == 0)
            return -1; /* a pipe: no one knows */
        all += (double)in->bytes;
        off_t at = in->fd < 0 ? 0 : lseek(in->fd, 0, SEEK_CUR);
        if (i < r->current)
            done += (double)in->bytes;
        else if (i == r->current && at > 0)
            done += (double)at;
    }
    return done / all;
}
