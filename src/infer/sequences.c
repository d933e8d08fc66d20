/* sequences.c - a model over the windows of sequences: read, encode, run batch by batch, write one row for
 * each window. Memory holds one batch of records and one batch of windows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/npy.h"
#include "common/outfile.h"
#include "common/refs.h"
#include "common/seqio.h"
#include "infer/letters.h"
#include "infer/network.h"

enum { DEFAULT_BATCH = 64, READ_RECORDS = 1024, READ_LETTERS = 1 << 22 };

/* The rows of one output. A .npy file needs the number of rows in front of them: they wait in an unnamed
 * temporary file. */
typedef struct table {
    int output; /* of the model */
    const char *path;
    bool is_npy;
    lw_outfile *file, *names; /* names: beside a .npy, which window each row is */
    FILE *spool;
    bool begun;
    lw_dtype dtype;
    int rank;
    int64_t dim[LW_MAX_RANK]; /* of all rows; dim[0] counts them */
    int64_t values;           /* of a row */
} table;

typedef struct window {
    char *name;
    int64_t start, end;
} window;

typedef struct sequences {
    lw_network *network;
    const lw_sequence_job *job;
    lw_letters letters;
    lw_seqio *reader;
    int place;      /* the encoded input */
    int mask, kind; /* attention_mask and token_type_ids; -1: none */
    int64_t batch;  /* windows */
    bool fixed_batch;
    int64_t length, step; /* letters; length 0: each sequence whole */
    int rank;
    bool channels_first;
    int axis_token, axis_channel; /* dimensions of the encoded tensor; -1: none */
    int64_t waiting_length;       /* of the windows that wait */
    lw_tensor **in;
    window *waiting;
    int64_t n_waiting;
    table *tables;
    int n_tables;
    lw_sequence_counts counts;
} sequences;

/* ---- the input's shape --------------------------------------------------------------------------------- */

static lw_status wrong_shape(const sequences *s, const lw_value *v, const char *why, lw_error *err)
{
    return lw_fail(err, LW_E_INPUT, "%s: input %s %s", s->network->model->path, v->name, why);
}

/* Finds the dimension of letters and that of positions among those of the declared input. */
static lw_status layout_of(sequences *s, lw_error *err)
{
    const lw_value *v = &s->network->model->values[s->network->model->inputs[s->place]];
    bool hot = s->letters.encoding == LW_ONE_HOT;
    int64_t length = LW_DIM_UNKNOWN;
    if (v->declared && (!v->dtype_supported || v->dtype == LW_F16 || v->dtype == LW_BOOL))
        return wrong_shape(s, v, "has a type that sequences cannot be encoded in", err);
    s->rank = v->rank >= 0 ? v->rank : hot ? 3 : 2;
    if (v->rank < 0) {
        s->axis_channel = hot ? 1 : -1;
        s->axis_token = hot ? 2 : 1;
    } else {
        int open[LW_MAX_RANK], n = 0, wanted = hot ? 2 : 1;
        for (int k = 1; k < v->rank; k++) /* dimensions of 1 that are too many are left out */
            if (v->dim[k] != 1 || v->rank - 1 <= wanted)
                open[n++] = k;
        if (n != wanted)
            return wrong_shape(
                s, v,
                hot ? "must have the dimensions windows x letters x positions (or positions x letters)"
                    : "must have the dimensions windows x positions",
                err);
        if (hot) {
            int64_t a = v->dim[open[0]], b = v->dim[open[1]], letters = s->letters.n;
            bool first = a == letters || (a == LW_DIM_UNKNOWN && b != letters);
            if (!first && b != letters && b != LW_DIM_UNKNOWN)
                return wrong_shape(s, v, "has no dimension for that many letters", err);
            s->axis_channel = open[first ? 0 : 1];
            s->axis_token = open[first ? 1 : 0];
        } else {
            s->axis_channel = -1;
            s->axis_token = open[0];
        }
        length = v->dim[s->axis_token];
        if (v->dim[0] != LW_DIM_UNKNOWN) {
            s->batch = v->dim[0];
            s->fixed_batch = true;
        }
    }
    if (s->batch < 1)
        return wrong_shape(s, v, "has no room for windows", err);
    if (length != LW_DIM_UNKNOWN) {
        int64_t letters = length + s->letters.k - 1;
        if (s->length && s->length != letters)
            return lw_fail(err, LW_E_ARG, "%s: input %s takes windows of %lld letters, not --window %lld",
                           s->network->model->path, v->name, (long long)letters, (long long)s->length);
        s->length = letters;
    }
    if (s->length && s->length < s->letters.k)
        return lw_fail(err, LW_E_ARG, "--window %lld holds no k-mer of %d letters", (long long)s->length,
                       s->letters.k);
    s->step = s->job->step ? s->job->step : s->length;
    return LW_OK;
}

static lw_status check_type(const sequences *s, lw_dtype dtype, lw_error *err)
{
    int64_t most = lw_letters_most(&s->letters);
    int64_t holds = dtype == LW_I8    ? INT8_MAX
                    : dtype == LW_U8  ? UINT8_MAX
                    : dtype == LW_I16 ? INT16_MAX
                    : dtype == LW_U16 ? UINT16_MAX
                    : dtype == LW_F32 ? 1 << 24
                                      : INT64_MAX;
    if (most > holds)
        return lw_fail(err, LW_E_ARG,
                       "--encode %s makes numbers up to %lld, which the input's type %s cannot hold",
                       s->job->encoding, (long long)most, lw_dtype_name(dtype));
    return LW_OK;
}

/* ---- output -------------------------------------------------------------------------------------------- */

static lw_status open_tables(sequences *s, struct lw_temporaries *temporaries, lw_error *err)
{
    const lw_sequence_job *job = s->job;
    static const lw_named_file by_default = {NULL, "-"};
    const lw_named_file *files = job->n_outputs ? job->outputs : &by_default;
    int n = job->n_outputs ? job->n_outputs : 1;
    s->tables = calloc((size_t)n, sizeof *s->tables);
    bool *taken = calloc((size_t)s->network->model->n_outputs + 1, sizeof *taken);
    if (!s->tables || !taken) {
        free(taken);
        return lw_fail_memory(err, (size_t)n * sizeof *s->tables);
    }
    lw_status status = LW_OK;
    for (int k = 0; k < n; k++) {
        table *t = &s->tables[k];
        LW_TRY_END(lw_network_place(s->network, &files[k], true, taken, &t->output, err));
        taken[t->output] = true;
        t->path = files[k].path;
        size_t length = strlen(t->path);
        t->is_npy = length >= 4 && strcmp(t->path + length - 4, ".npy") == 0;
        s->n_tables = k + 1;
        LW_TRY_END(lw_outfile_open(&t->file, t->path, temporaries, err));
        if (!t->is_npy)
            continue;
        char name[4096];
        if (snprintf(name, sizeof name, "%s.tsv", t->path) >= (int)sizeof name) {
            status = lw_fail(err, LW_E_ARG, "%s: the path is too long", t->path);
            goto end;
        }
        LW_TRY_END(lw_outfile_open(&t->names, name, temporaries, err));
        t->spool = tmpfile();
        if (!t->spool) {
            status = lw_fail(err, LW_E_IO, "a temporary file cannot be made: %s", strerror(errno));
            goto end;
        }
    }
end:
    free(taken);
    return status;
}

static void write_value(FILE *f, const lw_tensor *t, int64_t i)
{
    if (t->dtype == LW_F32 || t->dtype == LW_F16)
        fprintf(f, "\t%.9g", lw_tensor_number(t, i));
    else if (t->dtype == LW_F64)
        fprintf(f, "\t%.17g", lw_tensor_number(t, i));
    else
        fprintf(f, "\t%lld", (long long)lw_tensor_integer(t, i));
}

/* The first rows of an output say how wide they are. */
static lw_status begin_table(const sequences *s, table *t, const lw_tensor *y, lw_error *err)
{
    t->begun = true;
    t->dtype = y->dtype;
    t->rank = y->rank;
    memcpy(t->dim, y->dim, sizeof t->dim);
    t->dim[0] = 0;
    t->values = lw_tensor_span(y, 1, y->rank);
    lw_outfile *text = t->is_npy ? t->names : t->file;
    FILE *f = lw_outfile_stream(text);
    if (!f)
        return lw_fail_memory(err, BUFSIZ);
    fputs("#name\tstart\tend", f);
    const char *name = lw_network_output(s->network, t->output);
    for (int64_t k = 0; k < t->values && !t->is_npy; k++)
        if (t->values == 1)
            fprintf(f, "\t%s", name);
        else
            fprintf(f, "\t%s_%lld", name, (long long)k);
    fputc('\n', f);
    return LW_OK;
}

static lw_status write_rows(sequences *s, table *t, const lw_tensor *y, lw_error *err)
{
    char shape[200];
    const char *path = s->network->model->path, *name = lw_network_output(s->network, t->output);
    if (y->rank < 1 || y->dim[0] != (s->fixed_batch ? s->batch : s->n_waiting))
        return lw_fail(err, LW_E_INPUT,
                       "%s: output %s is %s for %lld windows: its first dimension must count them", path,
                       name, lw_tensor_text(y, shape, sizeof shape),
                       (long long)(s->fixed_batch ? s->batch : s->n_waiting));
    if (!t->begun)
        LW_TRY(begin_table(s, t, y, err));
    if (y->rank != t->rank || memcmp(y->dim + 1, t->dim + 1, (size_t)(y->rank - 1) * sizeof *y->dim))
        return lw_fail(
            err, LW_E_INPUT,
            "%s: output %s is %s here, another shape than before: give --window, so that all windows "
            "are alike",
            path, name, lw_tensor_text(y, shape, sizeof shape));
    lw_outfile *text = t->is_npy ? t->names : t->file;
    FILE *f = lw_outfile_stream(text);
    for (int64_t i = 0; i < s->n_waiting; i++) {
        fprintf(f, "%s\t%lld\t%lld", *s->waiting[i].name ? s->waiting[i].name : "*",
                (long long)s->waiting[i].start, (long long)s->waiting[i].end);
        for (int64_t k = 0; k < t->values && !t->is_npy; k++)
            write_value(f, y, i * t->values + k);
        fputc('\n', f);
    }
    if (ferror(f))
        return lw_outfile_failed(text, errno, err);
    t->dim[0] += s->n_waiting;
    size_t bytes = (size_t)(s->n_waiting * t->values * lw_dtype_size(y->dtype));
    if (t->is_npy && fwrite(y->data, 1, bytes, t->spool) != bytes)
        return lw_fail(err, LW_E_IO, "writing to a temporary file failed: %s", strerror(errno));
    return LW_OK;
}

/* A table without windows still gets its header, from what the model declares. */
static void begin_empty(const sequences *s, table *t)
{
    const lw_value *v = &s->network->model->values[s->network->model->outputs[t->output]];
    lw_tensor y = {.dtype = v->declared && v->dtype_supported ? v->dtype : LW_F32, .rank = 1};
    for (int k = 1; k < v->rank; k++) {
        y.rank = v->rank;
        y.dim[k] = v->dim[k] > 0 ? v->dim[k] : 0;
    }
    begin_table(s, t, &y, NULL);
}

static lw_status finish_npy(table *t, lw_error *err)
{
    char header[LW_NPY_HEADER];
    static const size_t size = 1 << 20;
    size_t n = lw_npy_header(header, t->dtype, t->rank, t->dim);
    LW_TRY(lw_outfile_write(t->file, header, n, err));
    char *data = malloc(size);
    if (!data)
        return lw_fail_memory(err, size);
    rewind(t->spool);
    lw_status status = LW_OK;
    while (status == LW_OK && (n = fread(data, 1, size, t->spool)) > 0)
        status = lw_outfile_write(t->file, data, n, err);
    if (status == LW_OK && ferror(t->spool))
        status = lw_fail(err, LW_E_IO, "reading a temporary file failed: %s", strerror(errno));
    free(data);
    return status;
}

static lw_status close_tables(sequences *s, lw_status status, lw_error *err)
{
    for (int k = 0; k < s->n_tables && status == LW_OK; k++) {
        if (!s->tables[k].begun)
            begin_empty(s, &s->tables[k]);
        if (s->tables[k].is_npy)
            status = finish_npy(&s->tables[k], err);
    }
    lw_outfile **files = malloc((size_t)s->n_tables * 2 * sizeof *files + 1);
    if (!files && status == LW_OK)
        status = lw_fail_memory(err, (size_t)s->n_tables * 2 * sizeof *files);
    for (int k = 0; k < s->n_tables; k++) {
        table *t = &s->tables[k];
        if (files) {
            files[2 * k] = t->names;
            files[2 * k + 1] = t->file;
        } else {
            lw_outfile_close(t->file, status, NULL);
            lw_outfile_close(t->names, status, NULL);
        }
        if (t->spool)
            fclose(t->spool);
    }
    if (files)
        status = lw_outfile_close_all(files, 2 * s->n_tables, status, err);
    free(files);
    free(s->tables);
    return status;
}

/* ---- batches ------------------------------------------------------------------------------------------- */

/* The tensors for windows of `length` letters: the encoded one, and the two that encoders of text want too.
 */
static lw_status make_inputs(sequences *s, int64_t length, int64_t windows, lw_error *err)
{
    const lw_model *m = s->network->model;
    int64_t dim[LW_MAX_RANK], tokens = lw_letters_tokens(&s->letters, length);
    const int extra[] = {s->place, s->mask, s->kind};
    for (size_t k = 0; k < sizeof extra / sizeof *extra; k++) {
        if (extra[k] < 0)
            continue;
        const lw_value *v = &m->values[m->inputs[extra[k]]];
        lw_dtype other = s->letters.encoding == LW_ONE_HOT ? LW_F32 : LW_I64;
        lw_dtype dtype = v->declared ? v->dtype : other;
        int rank = k == 0 ? s->rank : 2;
        for (int d = 0; d < rank; d++)
            dim[d] = d == 0                              ? windows
                     : d == (k == 0 ? s->axis_token : 1) ? tokens
                     : k == 0 && d == s->axis_channel    ? s->letters.n
                                                         : 1;
        if (k == 0)
            LW_TRY(check_type(s, dtype, err));
        lw_tensor_release(s->in[extra[k]]);
        s->in[extra[k]] = NULL;
        LW_TRY(lw_tensor_new(&s->in[extra[k]], dtype, rank, dim, err));
        lw_tensor *t = s->in[extra[k]];
        memset(t->data, 0, (size_t)t->count * (size_t)lw_dtype_size(dtype));
    }
    s->waiting_length = length;
    return LW_OK;
}

static lw_status run_batch(sequences *s, lw_error *err)
{
    const lw_model *m = s->network->model;
    if (s->n_waiting == 0)
        return LW_OK;
    lw_tensor **out = calloc((size_t)m->n_outputs + 1, sizeof *out);
    lw_status status = LW_OK;
    if (!out)
        return lw_fail_memory(err, (size_t)m->n_outputs * sizeof *out);
    const int extra[] = {s->place, s->mask, s->kind};
    lw_tensor *whole[3] = {NULL};
    /* a last batch that is not full: the same memory with fewer windows */
    for (int k = 0; k < 3 && !s->fixed_batch && s->n_waiting < s->batch; k++) {
        if (extra[k] < 0)
            continue;
        whole[k] = s->in[extra[k]];
        int64_t dim[LW_MAX_RANK];
        memcpy(dim, whole[k]->dim, sizeof dim);
        dim[0] = s->n_waiting;
        s->in[extra[k]] = NULL;
        LW_TRY_END(lw_tensor_new(&s->in[extra[k]], whole[k]->dtype, whole[k]->rank, dim, err));
        lw_tensor *t = s->in[extra[k]];
        memcpy(t->data, whole[k]->data, (size_t)t->count * (size_t)lw_dtype_size(t->dtype));
    }
    LW_TRY_END(lw_network_run(s->network, s->in, out, NULL, NULL, err));
    for (int k = 0; k < s->n_tables; k++)
        LW_TRY_END(write_rows(s, &s->tables[k], out[s->tables[k].output], err));
end:
    for (int i = 0; i < m->n_outputs; i++)
        lw_tensor_release(out[i]);
    free(out);
    for (int k = 0; k < 3; k++)
        lw_tensor_release(whole[k]);
    for (int64_t i = 0; i < s->n_waiting; i++)
        free(s->waiting[i].name);
    s->counts.windows += s->n_waiting;
    s->n_waiting = 0;
    /* a backend may keep what it made of a tensor: the next batch gets tensors of its own */
    for (int k = 0; k < 3 && status == LW_OK; k++)
        if (extra[k] >= 0) {
            lw_tensor_release(s->in[extra[k]]);
            s->in[extra[k]] = NULL;
        }
    s->waiting_length = 0;
    return status;
}

static void store_one(lw_tensor *t, int64_t at)
{
    switch (lw_dtype_size(t->dtype)) {
    case 8:
        if (t->dtype == LW_F64)
            ((double *)t->data)[at] = 1;
        else
            ((int64_t *)t->data)[at] = 1;
        break;
    case 4:
        if (t->dtype == LW_F32)
            ((float *)t->data)[at] = 1;
        else
            ((int32_t *)t->data)[at] = 1;
        break;
    case 2:
        ((int16_t *)t->data)[at] = 1;
        break;
    default:
        ((int8_t *)t->data)[at] = 1;
    }
}

/* Adds the window [start, end) of a record, `length` letters with what is missing at the end. */
static lw_status add_window(sequences *s, const lw_read_batch *batch, int64_t record, int64_t start,
                            int64_t end, int64_t length, lw_error *err)
{
    if (s->n_waiting == s->batch || (s->n_waiting && s->waiting_length != length))
        LW_TRY(run_batch(s, err));
    if (s->waiting_length != length)
        LW_TRY(make_inputs(s, length, s->batch, err));
    window *w = &s->waiting[s->n_waiting];
    int64_t i = s->n_waiting, tokens = lw_letters_tokens(&s->letters, length), pitch = 1;
    const lw_tensor *t = s->in[s->place];
    lw_letters_layout layout = {.window = lw_tensor_span(t, 1, t->rank)};
    for (int d = t->rank - 1; d > 0; pitch *= t->dim[d--]) {
        layout.token = d == s->axis_token ? pitch : layout.token;
        layout.channel = d == s->axis_channel ? pitch : layout.channel;
    }
    int64_t wrong = lw_letters_encode(&s->letters, lw_read_seq(batch, record) + start, end - start, length,
                                      s->in[s->place], i, &layout);
    if (wrong >= 0) {
        char where[400];
        unsigned char byte = (unsigned char)lw_read_seq(batch, record)[start + wrong];
        return lw_fail(err, LW_E_INPUT,
                       byte > 32 && byte < 127 ? "%s: position %lld: '%c' is no letter"
                                               : "%s: position %lld: byte %d is no letter",
                       lw_read_where(s->reader, batch, record, where, sizeof where),
                       (long long)(start + wrong + 1), byte);
    }
    for (int64_t k = 0; s->mask >= 0 && k < tokens; k++)
        if (start + k < end)
            store_one(s->in[s->mask], i * tokens + k);
    w->name = strdup(lw_read_name(batch, record));
    if (!w->name)
        return lw_fail_memory(err, (size_t)batch->read[record].name_len + 1);
    w->start = start;
    w->end = end;
    s->n_waiting++;
    return LW_OK;
}

static lw_status add_record(sequences *s, const lw_read_batch *batch, int64_t record, lw_error *err)
{
    int64_t n = batch->read[record].len;
    s->counts.sequences++;
    if (n == 0 || (s->job->whole_windows_only && s->length > n)) {
        s->counts.without++;
        return LW_OK;
    }
    if (!s->length)
        return add_window(s, batch, record, 0, n, n < s->letters.k ? s->letters.k : n, err);
    for (int64_t start = 0;; start += s->step) {
        int64_t end = start + s->length;
        if (end > n && s->job->whole_windows_only)
            return LW_OK;
        LW_TRY(add_window(s, batch, record, start, end < n ? end : n, s->length, err));
        if (end >= n || start + s->step >= n)
            return LW_OK;
    }
}

/* ---- the whole run ------------------------------------------------------------------------------------- */

static int input_named(const lw_network *n, const char *name)
{
    for (int i = 0; i < n->model->n_inputs; i++)
        if (strcmp(lw_network_input(n, i), name) == 0)
            return i;
    return -1;
}

/* Which input is the encoded one; the others come from files or are made. */
static lw_status share_inputs(sequences *s, lw_error *err)
{
    const lw_model *m = s->network->model;
    bool *taken = calloc((size_t)m->n_inputs + 1, sizeof *taken);
    lw_status status = LW_OK;
    if (!taken)
        return lw_fail_memory(err, (size_t)m->n_inputs);
    for (int k = 0; k < s->job->n_inputs; k++) {
        int place;
        if (!s->job->inputs[k].name) {
            status = lw_fail(err, LW_E_ARG, "beside sequences, --input needs NAME=FILE");
            goto end;
        }
        LW_TRY_END(lw_network_place(s->network, &s->job->inputs[k], false, taken, &place, err));
        taken[place] = true;
        LW_TRY_END(lw_tensor_read_npy(&s->in[place], s->job->inputs[k].path, err));
    }
    for (int i = 0; i < m->n_inputs; i++)
        if (!taken[i] && m->values[m->inputs[i]].initial) {
            taken[i] = true;
            s->in[i] = lw_tensor_retain(m->values[m->inputs[i]].initial);
        }
    s->mask = input_named(s->network, "attention_mask");
    s->kind = input_named(s->network, "token_type_ids");
    s->mask = s->mask >= 0 && taken[s->mask] ? -1 : s->mask;
    s->kind = s->kind >= 0 && taken[s->kind] ? -1 : s->kind;
    s->place = -1;
    for (int i = 0; i < m->n_inputs; i++) {
        if (taken[i] || i == s->mask || i == s->kind)
            continue;
        if (s->place >= 0) {
            status =
                lw_fail(err, LW_E_ARG, "%s has more inputs than the sequences: give '%s' or '%s' by --input",
                        m->path, lw_network_input(s->network, s->place), lw_network_input(s->network, i));
            goto end;
        }
        s->place = i;
    }
    if (s->place < 0)
        status = lw_fail(err, LW_E_ARG, "%s has no input left for the sequences", m->path);
end:
    free(taken);
    return status;
}

lw_status lw_network_run_sequences(lw_network *network, const lw_sequence_job *job,
                                   struct lw_temporaries *temporaries, lw_sequence_counts *counts,
                                   lw_error *err)
{
    sequences s = {.network = network,
                   .job = job,
                   .mask = -1,
                   .kind = -1,
                   .batch = job->batch ? job->batch : DEFAULT_BATCH,
                   .length = job->window};
    lw_read_batch batch = {0};
    lw_refs *refs = NULL;
    lw_fasta *fasta = NULL;
    lw_status status = LW_OK;
    const lw_host *host = network->host;
    if (job->step && !job->window && !s.length)
        lw_say(host, LW_SAY_DETAIL, "--step without --window: windows as long as the model takes");
    LW_TRY(lw_network_override_files(network, job->inputs, job->n_inputs, err));
    network->settled = true;
    s.in = calloc((size_t)network->model->n_inputs + 1, sizeof *s.in);
    if (!s.in)
        return lw_fail_memory(err, (size_t)network->model->n_inputs * sizeof *s.in);
    LW_TRY_END(lw_letters_parse(&s.letters, job->encoding, err));
    LW_TRY_END(share_inputs(&s, err));
    LW_TRY_END(layout_of(&s, err));
    s.waiting = calloc((size_t)s.batch, sizeof *s.waiting);
    if (!s.waiting) {
        status = lw_fail_memory(err, (size_t)s.batch * sizeof *s.waiting);
        goto end;
    }
    if (job->reference) {
        LW_TRY_END(lw_refs_load(&refs, job->reference, network->pool, host, err));
        LW_TRY_END(lw_refs_indexed_fasta(&fasta, refs, temporaries, err));
    }
    lw_seqio_options options = {
        .pool = network->pool, .reference = fasta ? lw_fasta_path(fasta) : NULL, .host = host};
    LW_TRY_END(lw_seqio_open(&s.reader, job->files, job->n_files, &options, err));
    LW_TRY_END(open_tables(&s, temporaries, err));
    do {
        LW_TRY_END(lw_seqio_read(s.reader, &batch, READ_RECORDS, READ_LETTERS, err));
        for (int64_t i = 0; i < batch.n; i++)
            LW_TRY_END(add_record(&s, &batch, i, err));
        if (host && host->progress)
            host->progress(host->user, (double)s.counts.sequences, 0, (double)s.counts.windows);
    } while (batch.n > 0);
    LW_TRY_END(run_batch(&s, err));
    if (s.counts.without)
        lw_say(host, LW_SAY_WARNING, "%lld of %lld sequences are %s and got no window",
               (long long)s.counts.without, (long long)s.counts.sequences,
               job->whole_windows_only ? "empty or shorter than a window" : "empty");
end:
    status = close_tables(&s, status, err);
    for (int64_t i = 0; i < s.n_waiting; i++)
        free(s.waiting[i].name);
    free(s.waiting);
    for (int i = 0; i < network->model->n_inputs; i++)
        lw_tensor_release(s.in[i]);
    free(s.in);
    lw_read_batch_free(&batch);
    lw_seqio_close(s.reader);
    lw_fasta_close(fasta);
    lw_refs_free(refs);
    if (counts)
        *counts = s.counts;
    return status;
}
