/* refs.c - reference sequences, all of them in memory. */
#include "common/refs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hts.h>

#include "common/fail.h"
#include "common/seqio.h"

/* Letters and records per batch while loading: bounds what is held twice, and what is read of a file that has
 * no letters. */
enum { LOAD_LETTERS = 1 << 24, LOAD_RECORDS = 1 << 16 };

static lw_status grow(void *array, int64_t n, size_t size, lw_error *err)
{
    void *grown = realloc(*(void **)array, (size_t)n * size);
    if (!grown)
        return lw_fail_memory(err, (size_t)n * size);
    *(void **)array = grown;
    return LW_OK;
}

/* Capacities of the arrays while they grow. */
typedef struct loader {
    lw_refs *refs;
    int64_t refs_capacity, letters_capacity, n_letters;
} loader;

static lw_status append(loader *l, const lw_seqio *reader, const lw_read_batch *batch, lw_error *err)
{
    lw_refs *refs = l->refs;
    int64_t letters = l->n_letters + batch->letters + batch->n;
    if (letters > l->letters_capacity) {
        int64_t more = l->letters_capacity + l->letters_capacity / 2;
        l->letters_capacity = letters > more ? letters : more;
        LW_TRY(grow(&refs->letters, l->letters_capacity, 1, err));
    }
    if (refs->n + batch->n > l->refs_capacity) {
        l->refs_capacity = 2 * (refs->n + batch->n);
        LW_TRY(grow(&refs->name, l->refs_capacity, sizeof *refs->name, err));
        LW_TRY(grow(&refs->start, l->refs_capacity, sizeof *refs->start, err));
        LW_TRY(grow(&refs->len, l->refs_capacity, sizeof *refs->len, err));
    }
    for (int64_t i = 0; i < batch->n; i++) {
        const lw_read *read = &batch->read[i];
        char where[512];
        lw_read_where(reader, batch, i, where, sizeof where);
        if (read->name_len == 0)
            return lw_fail(err, LW_E_INPUT, "%s: a reference sequence needs a name right after the '>'",
                           where);
        if (read->len == 0)
            return lw_fail(err, LW_E_INPUT,
                           "%s: the reference sequence is empty: remove it or give its letters", where);
        char *name = strdup(lw_read_name(batch, i));
        if (!name)
            return lw_fail_memory(err, (size_t)read->name_len + 1);
        const char *from = lw_read_seq(batch, i);
        char *to = refs->letters + l->n_letters;
        for (int64_t k = 0; k < read->len; k++) {
            char c = from[k];
            to[k] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
        }
        to[read->len] = '\0';
        refs->name[refs->n] = name;
        refs->start[refs->n] = l->n_letters;
        refs->len[refs->n++] = read->len;
        refs->total += read->len;
        l->n_letters += (int64_t)read->len + 1;
    }
    return LW_OK;
}

typedef struct named {
    const char *name;
    int64_t index;
} named;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static lw_status check_names(const lw_refs *refs, const char *shown, lw_error *err)
{
    named *sorted = malloc((size_t)refs->n * sizeof *sorted);
    if (!sorted)
        return lw_fail_memory(err, (size_t)refs->n * sizeof *sorted);
    for (int64_t i = 0; i < refs->n; i++)
        sorted[i] = (named){refs->name[i], i};
    qsort(sorted, (size_t)refs->n, sizeof *sorted, by_name);
    int64_t first = -1; /* the duplicate that comes first in the file, and what it repeats */
    int64_t original = -1;
    for (int64_t i = 1; i < refs->n; i++)
        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0 && (first < 0 || sorted[i].index < first)) {
            first = sorted[i].index;
            original = sorted[i - 1].index;
        }
    free(sorted);
    for (int64_t i = 0; i < refs->n; i++) /* SAM's words for no reference, and for the read's own */
        if (strcmp(refs->name[i], "*") == 0 || strcmp(refs->name[i], "=") == 0)
            return lw_fail(err, LW_E_INPUT,
                           "%s: record %lld: '%s' cannot be a reference's name: in SAM it means %s", shown,
                           (long long)i + 1, refs->name[i], *refs->name[i] == '*' ? "none" : "the same");
    if (first >= 0)
        return lw_fail(
            err, LW_E_INPUT,
            "%s: record %lld (%.80s): record %lld has the same name; reference names must be unique", shown,
            (long long)first + 1, refs->name[first], (long long)original + 1);
    return LW_OK;
}

lw_status lw_refs_load(lw_refs **out, const char *path, lw_pool *pool, const lw_host *host, lw_error *err)
{
    lw_status status;
    lw_seqio *reader = NULL;
    lw_read_batch batch = {0};
    loader l = {.refs = calloc(1, sizeof *l.refs)};
    lw_seqio_options options = {.pool = pool, .host = host};
    if (!l.refs || !(l.refs->path = strdup(path))) {
        status = lw_fail_memory(err, sizeof *l.refs);
        goto end;
    }
    LW_TRY_END(lw_seqio_open(&reader, &path, 1, &options, err));
    if (lw_seqio_kind(reader, 0) > LW_FILE_FASTQ) {
        status = lw_fail(err, LW_E_INPUT, "%s: holds alignments; the reference must be FASTA",
                         lw_seqio_path(reader, 0));
        goto end;
    }
    do {
        LW_TRY_END(lw_seqio_read(reader, &batch, LOAD_RECORDS, LOAD_LETTERS, err));
        LW_TRY_END(append(&l, reader, &batch, err));
    } while (batch.n > 0);
    LW_TRY_END(check_names(l.refs, lw_seqio_path(reader, 0), err));
    *out = l.refs;
    l.refs = NULL;
end:
    lw_read_batch_free(&batch);
    lw_seqio_close(reader);
    lw_refs_free(l.refs);
    return status;
}

void lw_refs_free(lw_refs *refs)
{
    if (!refs)
        return;
    for (int64_t i = 0; i < refs->n; i++)
        free(refs->name[i]);
    free(refs->name);
    free(refs->start);
    free(refs->len);
    free(refs->letters);
    free(refs->path);
    free(refs);
}

lw_status lw_refs_md5(const lw_refs *refs, int64_t i, char md5[33], lw_error *err)
{
    hts_md5_context *context = hts_md5_init();
    if (!context)
        return lw_fail_memory(err, 128);
    const char *letters = refs->letters + refs->start[i];
    unsigned long left = (unsigned long)refs->len[i];
    hts_md5_update(context, letters, left);
    unsigned char digest[16];
    hts_md5_final(digest, context);
    hts_md5_destroy(context);
    hts_md5_hex(md5, digest);
    return LW_OK;
}

/* --- an indexed file for CRAM ------------------------------------------------------------------------ */

struct lw_fasta {
    char *path, *index; /* index: of a copy of ours; NULL: the user's own files */
    bool is_copy;
    lw_temporaries *temporaries;
    int slots[2];
};

/* Whether path.fai lists just these sequences, and path can be read by position (plain, or bgzip with a
 * .gzi). */
static bool is_indexed(const lw_refs *refs)
{
    size_t size = strlen(refs->path) + 8;
    char *name = malloc(size);
    if (!name)
        return false;
    struct stat info;
    unsigned char magic[2] = {0};
    FILE *file = stat(refs->path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(refs->path, "rb") : NULL;
    bool ok = file && fread(magic, 1, 2, file) == 2;
    if (file)
        fclose(file);
    if (ok && magic[0] == 0x1f && magic[1] == 0x8b) {
        snprintf(name, size, "%s.gzi", refs->path);
        ok = access(name, R_OK) == 0;
    }
    snprintf(name, size, "%s.fai", refs->path);
    file = ok ? fopen(name, "r") : NULL;
    ok = file != NULL;
    char *line = NULL;
    size_t capacity = 0;
    int64_t n = 0;
    for (; ok && getline(&line, &capacity, file) > 0; n++) {
        char *save = NULL;
        const char *word = strtok_r(line, "\t", &save), *length = strtok_r(NULL, "\t", &save);
        ok = n < refs->n && word && length && strcmp(word, refs->name[n]) == 0 &&
             atoll(length) == refs->len[n];
    }
    if (file)
        fclose(file);
    free(line);
    free(name);
    return ok && n == refs->n;
}

/* The sequences, a line each, and their index. */
static lw_status write_copy(const lw_refs *refs, FILE *fasta, FILE *index, const char *path, lw_error *err)
{
    int64_t offset = 0;
    bool ok = true;
    for (int64_t i = 0; ok && i < refs->n; i++) {
        size_t name = strlen(refs->name[i]), letters = (size_t)refs->len[i];
        offset += (int64_t)name + 2;
        char numbers[96];
        int n = snprintf(numbers, sizeof numbers, "\t%zu\t%lld\t%zu\t%zu\n", letters, (long long)offset,
                         letters, letters + 1);
        ok = fputc('>', fasta) != EOF && fwrite(refs->name[i], 1, name, fasta) == name &&
             fputc('\n', fasta) != EOF &&
             fwrite(refs->letters + refs->start[i], 1, letters, fasta) == letters &&
             fputc('\n', fasta) != EOF && fwrite(refs->name[i], 1, name, index) == name &&
             fwrite(numbers, 1, (size_t)n, index) == (size_t)n;
        offset += (int64_t)letters + 1;
    }
    if (!ok || fflush(fasta) != 0 || fflush(index) != 0)
        return lw_fail(err, LW_E_IO, "%s: the temporary copy of the reference cannot be written: %s", path,
                       strerror(errno));
    return LW_OK;
}

static lw_status make_copy(lw_fasta *f, const lw_refs *refs, lw_error *err)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder)
        folder = "/tmp";
    size_t size = strlen(folder) + 64;
    f->path = malloc(size);
    if (!f->path)
        return lw_fail_memory(err, size);
    snprintf(f->path, size, "%s/lanewise-XXXXXX.fa", folder);
    int fd = mkstemps(f->path, 3);
    if (fd < 0) {
        int reason = errno;
        lw_status status = lw_fail(err, LW_E_IO, "%s: the temporary copy of the reference cannot be made: %s",
                                   folder, strerror(reason));
        free(f->path);
        f->path = NULL;
        return status;
    }
    f->is_copy = true;
    f->slots[0] = lw_temporaries_add(f->temporaries, f->path);
    f->index = malloc(size);
    if (f->index) {
        snprintf(f->index, size, "%s.fai", f->path);
        f->slots[1] = lw_temporaries_add(f->temporaries, f->index);
    }
    FILE *fasta = fdopen(fd, "w"), *index = f->index ? fopen(f->index, "w") : NULL;
    lw_status status = fasta && index
                           ? write_copy(refs, fasta, index, f->path, err)
                           : lw_fail(err, LW_E_IO, "%s: cannot be written: %s", f->path, strerror(errno));
    if (fasta)
        fclose(fasta);
    else
        close(fd);
    if (index)
        fclose(index);
    return status;
}

lw_status lw_refs_indexed_fasta(lw_fasta **out, const lw_refs *refs, lw_temporaries *temporaries,
                                lw_error *err)
{
    lw_fasta *f = calloc(1, sizeof *f);
    if (!f)
        return lw_fail_memory(err, sizeof *f);
    f->temporaries = temporaries;
    f->slots[0] = f->slots[1] = -1;
    lw_status status = LW_OK;
    if (!is_indexed(refs))
        status = make_copy(f, refs, err);
    else if (!(f->path = strdup(refs->path)))
        status = lw_fail_memory(err, strlen(refs->path) + 1);
    if (status != LW_OK) {
        lw_fasta_close(f);
        return status;
    }
    *out = f;
    return LW_OK;
}

const char *lw_fasta_path(const lw_fasta *fasta)
{
    return fasta->path;
}

void lw_fasta_close(lw_fasta *fasta)
{
    if (!fasta)
        return;
    if (fasta->is_copy && fasta->path)
        unlink(fasta->path);
    if (fasta->is_copy && fasta->index)
        unlink(fasta->index);
    lw_temporaries_drop(fasta->temporaries, fasta->slots[0]);
    lw_temporaries_drop(fasta->temporaries, fasta->slots[1]);
    free(fasta->index);
    free(fasta->path);
    free(fasta);
}
