/* samfile.c - whole records to SAM, BAM or CRAM by htslib. */
#include "align/samfile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/cram.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>

#include "align/stream_tuning.h"
#include "common/fail.h"
#include "lanewise/lanewise.h"

/* htslib 1.16 does not survive a failed write: a CRAM container is encoded once more when the file is closed,
 * which crashes, and a BGZF file is not freed. So it writes into a pipe, which never fails, and this thread
 * carries that to the file. */
typedef struct drain {
    pthread_t thread;
    int from; /* reading end of the pipe */
    int to;   /* the other end; htslib's */
    lw_outfile *file;
    atomic_bool failed; /* what comes from now on is thrown away */
    lw_error error;
} drain;

struct lw_samfile {
    lw_samfile_options o;
    lw_outfile *file;
    htsFile *hts;
    drain *drain; /* its way to the file */
};

static void *run_drain(void *arg)
{
    drain *d = arg;
    char buffer[1 << 16];
    for (;;) {
        ssize_t n = read(d->from, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return NULL;
        if (!atomic_load(&d->failed) && lw_outfile_write(d->file, buffer, (size_t)n, &d->error) != LW_OK)
            atomic_store(&d->failed, true);
    }
}

/* Makes self->hts a writer in front of a drain. */
static lw_status open_drain(lw_samfile *self, lw_error *err)
{
    static const char *const modes[] = {
        [LW_FORMAT_SAM] = "w", [LW_FORMAT_BAM] = "wb", [LW_FORMAT_CRAM] = "wc"};
    int ends[2];
    drain *d = calloc(1, sizeof *d);
    if (!d)
        return lw_fail_memory(err, sizeof *d);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(d);
        return lw_fail(err, LW_E_IO, "a pipe could not be made: %s", strerror(errno));
    }
    d->from = ends[0];
    d->to = ends[1];
    d->file = self->file;
    fcntl(ends[1], F_SETPIPE_SZ, LW_SAMOUT_PIPE_BYTES); /* a wish: a smaller pipe works too */
    if (pthread_create(&d->thread, NULL, run_drain, d) != 0) {
        close(ends[0]);
        close(ends[1]);
        free(d);
        return lw_fail(err, LW_E_NOMEM, "a writing thread could not be started");
    }
    self->drain = d;
    hFILE *stream = hdopen(ends[1], "w");
    if (!stream) {
        close(ends[1]);
        return lw_fail_memory(err, sizeof *stream);
    }
    self->hts = hts_hopen(stream, lw_outfile_name(self->file), modes[self->o.format]);
    if (!self->hts) {
        hclose_abruptly(stream);
        return lw_fail_memory(err, sizeof *self->hts);
    }
    return LW_OK;
}

/* htslib 1.16 leaves the file of a CRAM open whose last slice it refuses: the drain would wait for ever. */
static void close_left_open(const drain *d)
{
    struct stat from, to;
    if (fstat(d->from, &from) == 0 && fstat(d->to, &to) == 0 && from.st_dev == to.st_dev &&
        from.st_ino == to.st_ino)
        close(d->to);
}

/* After the writing end was closed: waits for the rest to arrive. */
static lw_status close_drain(lw_samfile *self, lw_status so_far, lw_error *err)
{
    drain *d = self->drain;
    if (!d)
        return so_far;
    pthread_join(d->thread, NULL);
    close(d->from);
    if (so_far == LW_OK && atomic_load(&d->failed))
        so_far = lw_fail(err, d->error.status, "%s", d->error.message);
    free(d);
    return so_far;
}

/* htslib refused a record: for lack of memory, as the pipe takes everything, unless the file did not. */
static lw_status failed(const lw_samfile *self, lw_error *err)
{
    if (atomic_load(&self->drain->failed))
        return lw_fail(err, self->drain->error.status, "%s", self->drain->error.message);
    return lw_fail(err, LW_E_INTERNAL, "%s: a record could not be encoded", lw_outfile_name(self->file));
}

/* Gives the CRAM writer its references. Told their file's name, it would write that name over UR, and it may
 * be a temporary one; so another CRAM loads them, and the two share. */
static lw_status lend_references(lw_samfile *self, lw_error *err)
{
    htsFile *lender = hts_open("/dev/null", "wc");
    refs_t *refs = lender && hts_set_fai_filename(lender, self->o.fasta) == 0 ? cram_get_refs(lender) : NULL;
    bool shared = refs && hts_set_opt(self->hts, CRAM_OPT_SHARED_REF, refs) == 0;
    if (lender)
        hts_close(lender);
    return !shared ? lw_fail(err, LW_E_IO, "CRAM: the references could not be loaded from %s", self->o.fasta)
                   : LW_OK;
}

static lw_status open_hts(lw_samfile *self, lw_error *err)
{
    bool cram = self->o.format == LW_FORMAT_CRAM;
    LW_TRY(open_drain(self, err));
    htsThreadPool pool = {.pool = lw_pool_hts(self->o.pool)};
    if (cram) {
        LW_TRY(lend_references(self, err));
        if (self->o.many_references && hts_set_opt(self->hts, CRAM_OPT_MULTI_SEQ_PER_SLICE, 1) < 0)
            return lw_fail(err, LW_E_INTERNAL, "CRAM: slices of several references could not be asked for");
    }
    /* htslib chooses CRAM's codecs by what worked on the slices before, and with several threads it is chance
     * which those are: the writer's thread alone encodes CRAM, so that the same run gives the same bytes. */
    if (!cram && pool.pool && lw_pool_threads(self->o.pool) > 1 && hts_set_thread_pool(self->hts, &pool) < 0)
        return lw_fail(err, LW_E_NOMEM, "the output's compression threads could not be started");
    if (sam_hdr_write(self->hts, self->o.header) < 0)
        return failed(self, err);
    return LW_OK;
}

lw_status lw_samfile_open(lw_samfile **out, const lw_samfile_options *options, lw_outfile *file,
                          lw_error *err)
{
    lw_samfile *self = calloc(1, sizeof *self);
    if (!self)
        return lw_fail_memory(err, sizeof *self);
    self->o = *options;
    self->file = file;
    lw_status status = open_hts(self, err);
    if (status != LW_OK)
        return lw_samfile_close(self, status, err);
    *out = self;
    return LW_OK;
}

/* What CRAM cannot hold: htslib would refuse the slice when it is full, or write one that no one can read. */
static lw_status check_cram(const bam1_t *record, lw_error *err)
{
    const bam1_core_t *c = &record->core;
    const bool placed = c->tid < 0 || c->pos >= 0, covered = c->n_cigar > 0 || c->l_qseq == 0;
    if (c->flag & BAM_FUNMAP || (placed && covered))
        return LW_OK;
    return lw_fail(
        err, LW_E_INPUT,
        "read %.254s (flag %d): is mapped, but without %s: CRAM cannot hold that; write BAM or SAM",
        bam_get_qname(record), c->flag, placed ? "CIGAR" : "position");
}

lw_status lw_samfile_write(lw_samfile *self, const bam1_t *record, lw_error *err)
{
    if (self->o.format == LW_FORMAT_CRAM)
        LW_TRY(check_cram(record, err));
    if (sam_write1(self->hts, self->o.header, record) >= 0)
        return LW_OK;
    const int64_t isize = record->core.isize;
    if (self->o.format == LW_FORMAT_BAM && (isize > INT32_MAX || isize < INT32_MIN))
        return lw_fail(err, LW_E_INPUT, "read %.254s: its TLEN of %lld is more than BAM can hold; write SAM",
                       bam_get_qname(record), (long long)isize);
    return failed(self, err);
}

lw_status lw_samfile_check(const lw_samfile *self, lw_error *err)
{
    return atomic_load(&self->drain->failed) ? failed(self, err) : LW_OK;
}

lw_status lw_samfile_close(lw_samfile *self, lw_status so_far, lw_error *err)
{
    if (!self)
        return so_far;
    if (self->hts && hts_close(self->hts) < 0) {
        close_left_open(self->drain);
        if (so_far == LW_OK)
            so_far = failed(self, err);
    }
    so_far = close_drain(self, so_far, err);
    free(self);
    return so_far;
}

/* A command line may hold tabs and line breaks, a header field may not. */
static char *one_line(const char *text)
{
    char *copy = strdup(text);
    for (char *p = copy; p && *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = ' ';
    return copy;
}

lw_status lw_samfile_add_program(sam_hdr_t *header, const char *command_line, lw_error *err)
{
    char *command = one_line(command_line ? command_line : "");
    if (!command)
        return lw_fail_memory(err, 1);
    int bad = sam_hdr_add_pg(header, "lanewise", "VN", lw_version(), *command ? "CL" : NULL, command, NULL);
    free(command);
    return bad < 0 ? lw_fail(err, LW_E_INPUT, "the @PG lines of the input could not be understood") : LW_OK;
}
