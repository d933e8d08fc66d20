/* test_seqio.c - every kind of sequence file, well-formed and not, in every packing. */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>
#include <htslib/bgzf.h>
#include <htslib/sam.h>
#include <criterion/criterion.h>

#include "common/refs.h"
#include "common/seqio.h"
#include "common/files.h"

static void quiet(void)
{
    hts_set_log_level(HTS_LOG_OFF);
}

TestSuite(seqio, .init = quiet);

/* --- reading everything into one text ------------------------------------------------------------- */

typedef struct sink {
    char *text;
    size_t n, capacity;
} sink;

static void put(sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(sink *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int more = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (s->n + (size_t)more + 1 > s->capacity) {
        s->capacity = 2 * (s->n + (size_t)more + 1);
        s->text = realloc(s->text, s->capacity);
    }
    va_start(args, format);
    vsnprintf(s->text + s->n, s->capacity - s->n, format, args);
    va_end(args);
    s->n += (size_t)more;
}

static void put_warning(void *user, int level, const char *text)
{
    if (level == LW_SAY_WARNING)
        put(user, "WARNING %s\n", text);
}

/* One line a record, "name|comment|letters|qualities", and at the end "ERROR message" if there was one; the
 * paths are shown as FILE. */
static char *read_all(const char *const *paths, int n, lw_pool *pool, const char *reference,
                      int64_t max_records, int64_t max_letters)
{
    sink s = {0};
    put(&s, "%s", "");
    lw_seqio *reader = NULL;
    lw_error err = {0};
    lw_host host = {.user = &s, .say = put_warning};
    lw_seqio_options options = {.pool = pool, .reference = reference, .host = &host};
    lw_read_batch batch = {0};
    lw_status status = lw_seqio_open(&reader, paths, n, &options, &err);
    int64_t seen = 0;
    while (status == LW_OK) {
        status = lw_seqio_read(reader, &batch, max_records, max_letters, &err);
        if (status != LW_OK || batch.n == 0)
            break;
        cr_assert_eq(batch.first, seen);
        int64_t letters = 0;
        for (int64_t i = 0; i < batch.n; i++) {
            const lw_read *read = &batch.read[i];
            cr_assert_eq(strlen(lw_read_name(&batch, i)), (size_t)read->name_len);
            cr_assert_eq(strlen(lw_read_comment(&batch, i)), (size_t)read->comment_len);
            cr_assert_eq(strlen(lw_read_seq(&batch, i)), (size_t)read->len);
            const char *qual = lw_read_qual(&batch, i);
            cr_assert(!qual || strlen(qual) == (size_t)read->len);
            put(&s, "%s|%s|%s|%s\n", lw_read_name(&batch, i), lw_read_comment(&batch, i),
                lw_read_seq(&batch, i), qual ? qual : "*");
            letters += read->len;
        }
        cr_assert_eq(letters, batch.letters);
        cr_assert(max_records == 0 || batch.n <= max_records);
        seen += batch.n;
    }
    if (status != LW_OK) {
        cr_assert_eq(err.status, status);
        put(&s, "ERROR ");
        for (const char *p = err.message; *p;) {
            int at = -1;
            for (int i = 0; i < n; i++)
                if (strncmp(p, paths[i], strlen(paths[i])) == 0 && strcmp(paths[i], "-") != 0)
                    at = i;
            put(&s, at >= 0 ? "FILE" : "%c", *p);
            p += at >= 0 ? strlen(paths[at]) : 1;
        }
        put(&s, "\n");
    } else {
        cr_assert_eq(lw_seqio_count(reader)->records, seen);
    }
    lw_read_batch_free(&batch);
    lw_seqio_close(reader);
    return s.text;
}

static char *read_file(const char *path)
{
    return read_all(&path, 1, NULL, NULL, 0, 0);
}

/* --- packings ------------------------------------------------------------------------------------- */

enum packing { PLAIN, GZIP, GZIP_MEMBERS, BGZIP, BGZIP_JOINED, N_PACKINGS };

static void gz_append(const char *path, const char *data, size_t n)
{
    gzFile file = gzopen(path, "ab");
    cr_assert(gzwrite(file, data, (unsigned)n) == (int)n || n == 0);
    cr_assert_eq(gzclose(file), Z_OK);
}

static void bgzf_append(const char *path, const char *data, size_t n)
{
    BGZF *file = bgzf_open(path, "a");
    cr_assert(file);
    cr_assert(bgzf_write(file, data, n) == (ssize_t)n);
    cr_assert_eq(bgzf_close(file), 0); /* writes an end-of-file block */
}

static const char *pack(enum packing packing, const char *data, size_t n)
{
    static const char *const names[] = {"plain", "gzip", "members", "bgzip", "joined"};
    const char *path = test_path(names[packing]);
    unlink(path);
    switch (packing) {
    case PLAIN:
        return test_write(names[packing], data, n);
    case GZIP:
        gz_append(path, data, n);
        break;
    case GZIP_MEMBERS: /* cut in the middle of a record */
        gz_append(path, data, n / 2);
        gz_append(path, data + n / 2, n - n / 2);
        break;
    case BGZIP:
        bgzf_append(path, data, n);
        break;
    case BGZIP_JOINED: /* end-of-file blocks in the middle */
        bgzf_append(path, data, n / 3);
        bgzf_append(path, data, 0);
        bgzf_append(path, data + n / 3, n - n / 3);
        break;
    default:
        break;
    }
    return path;
}

/* --- texts ---------------------------------------------------------------------------------------- */

typedef struct text_case {
    const char *data;
    size_t n; /* 0: strlen */
    const char *expected;
} text_case;

static const text_case texts[] = {
    {">a\nACGT\n", 0, "a||ACGT|*\n"},
    {">a\nACGT", 0, "a||ACGT|*\n"},
    {">a one  two \nAC\nGT\n\nac\n>b\tc\nTT\n", 0, "a|one  two |ACGTac|*\nb|c|TT|*\n"},
    {">a x\r\nAC\r\nGT\r\n>b\r\n\r\nTT\r\n", 0, "a|x|ACGT|*\nb||TT|*\n"},
    {"\n\n  \n>a\nAC\n", 0, "a||AC|*\n"},
    {"\xEF\xBB\xBF>a\nAC\n", 0, "a||AC|*\n"},
    {">a\n AC GT\tN \n  \nA\v\fC\n", 0, "a||ACGTNAC|*\n"},
    {">  name\nAC\n", 0, "|name|AC|*\n"},
    {">\nAC\n>\n", 0, "||AC|*\n|||*\n"},
    {">a\n>b\nAC\n>c", 0, "a|||*\nb||AC|*\nc|||*\n"},
    {">a\n@C+T\n+\n", 0, "a||@C+T+|*\n"}, /* letters of FASTA: the alphabet will refuse them */
    {">a\nACGU-*xyz1\n", 0, "a||ACGU-*xyz1|*\n"},
    {">\xC3\xA9t\xC3\xA9 \xC3\xA0\nAC\n", 0, "\xC3\xA9t\xC3\xA9|\xC3\xA0|AC|*\n"},
    {"@r1 c d\nACGT\n+\nIIII\n", 0, "r1|c d|ACGT|IIII\n"},
    {"@r1\nACGT\n+r1\nIIII", 0, "r1||ACGT|IIII\n"},
    {"@r1\r\nACGT\r\n+\r\n@+#!\r\n@r2\r\nA\r\n+\r\n@\r\n", 0, "r1||ACGT|@+#!\nr2||A|@\n"},
    {"@r1\nAC\nGT\nA\n+\nII\n@@\n+\n@r2\nA\n+\nI\n", 0, "r1||ACGTA|II@@+\nr2||A|I\n"},
    {"@r1\nAC\n+\nII\n\n\n@r2\n\nA\n\n+\n\nI\n\n", 0, "r1||AC|II\nr2||A|I\n"},
    {"@@r1\nAC\n+\nII\n", 0, "@r1||AC|II\n"},
    {"@\nAC\n+\nII\n", 0, "||AC|II\n"},
    {"@r1\n\n+\n\n@r2\nA\n+\nI\n", 0, "r1|||\nr2||A|I\n"},
    {"@r1\n+\n@r2\nA\n+\nI\n", 0, "r1|||\nr2||A|I\n"},
    {"@r1\n\n+\n", 0, "r1|||\n"},
    {"", 0, "ERROR FILE: the file is empty\n"},
    {"\n \n", 0, "ERROR FILE: the file is empty\n"},
    {"ACGT\n>a\nAC\n", 0,
     "ERROR FILE: line 1: text before the first header: FASTA begins with '>', FASTQ with '@'\n"},
    {"\nacgt\n", 0,
     "ERROR FILE: line 2: text before the first header: FASTA begins with '>', FASTQ with '@'\n"},
    {"\x01\x02\x03", 0, "ERROR FILE: is not FASTA, FASTQ, SAM, BAM or CRAM\n"},
    {">a\nAC\0GT\n", 9,
     "ERROR FILE: record 1 (a): control character 0x00 at position 3 of its sequence; is this a text "
     "file?\n"},
    {">a\nAC\n>b\nA\nC\x7fG\n", 0,
     "ERROR FILE: record 2 (b): control character 0x7f at position 3 of its sequence; is this a text "
     "file?\n"},
    {">a\x01z\nAC\n", 0,
     "ERROR FILE: record 1: control character 0x01 at position 2 of its header (line 1)\n"},
    {">a b\0\nAC\n", 9,
     "ERROR FILE: record 1: control character 0x00 at position 4 of its header (line 1)\n"},
    {"@r1\nACGT\n", 0, "ERROR FILE: record 1 (r1): the file ends inside it (no '+' line): it is cut short\n"},
    {"@r1", 0, "ERROR FILE: record 1 (r1): the file ends inside it (no '+' line): it is cut short\n"},
    {"@r1\nACGT\n+", 0,
     "ERROR FILE: record 1 (r1): the file ends inside it (no qualities): it is cut short\n"},
    {"@r1\nACGT\n+\n", 0,
     "ERROR FILE: record 1 (r1): 0 qualities for 4 letters, then the file ends: it is cut short or "
     "damaged\n"},
    {"@r1\nACGT\n+\nIII\n", 0,
     "ERROR FILE: record 1 (r1): 3 qualities for 4 letters, then the file ends: it is cut short or "
     "damaged\n"},
    {"@r1\nACGT\n+\nII\n@r2\nACGT\n+\nIIII\n", 0,
     "ERROR FILE: record 1 (r1): 2 qualities for 4 letters (before line 6): the file is damaged\n"},
    {"@r1\nACGT\n+\nIIIII\n@r2\nA\n+\nI\n", 0,
     "ERROR FILE: record 1 (r1): 5 qualities for 4 letters (before line 5): the file is damaged\n"},
    {"@r1\nACGT\n+\nIIII\nII\n@r2\nA\n+\nI\n", 0,
     "ERROR FILE: record 2: line 5 begins with 'I' where '@' should begin a record: the qualities before it "
     "are "
     "longer than the sequence, or the file is damaged\n"},
    {"@r1\nACGT\n@r2\nA\n+\nI\n", 0,
     "ERROR FILE: record 1 (r1): line 3 begins the next record, but there was no '+' line with qualities\n"},
    {"@r1\nACGT\n+\nII I\n", 0,
     "ERROR FILE: record 1 (r1): byte 0x20 at position 3 of its qualities; they are '!' to '~'\n"},
    {"@r1\nA\n+\nI\n>r2\nA\n", 0,
     "ERROR FILE: record 2: line 5 begins with '>' where '@' should begin a record: the qualities before it "
     "are "
     "longer than the sequence, or the file is damaged\n"},
};

/* An error ends the text; what was read of the batch before it is not shown, as the batch is lost. */
static void check_text(const char *got, const char *expected, const char *what, const char *data)
{
    cr_expect_str_eq(got, expected, "%s of \"%s\"", what, data);
}

Test(seqio, text_in_every_packing)
{
    static const char *const what[] = {"plain", "gzip", "gzip members", "bgzip", "joined bgzip"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n = texts[i].n ? texts[i].n : strlen(texts[i].data);
        for (int p = PLAIN; p < N_PACKINGS; p++) {
            char *got = read_file(pack((enum packing)p, texts[i].data, n));
            check_text(got, texts[i].expected, what[p], texts[i].data);
            free(got);
        }
    }
}

/* A child writes the file into a pipe that is our standard input, a few bytes at a time. */
static char *read_pipe(const char *data, size_t n, size_t piece)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        close(ends[0]);
        for (size_t at = 0; at < n; at += piece)
            if (write(ends[1], data + at, n - at < piece ? n - at : piece) < 0)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    int saved = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    char *got = read_file("-");
    dup2(saved, STDIN_FILENO);
    close(saved);
    waitpid(child, NULL, 0);
    return got;
}

Test(seqio, standard_input)
{
    const char *text = "@r1\nACGT\n+\nIIII\n@r2\nAC\n+\nII\n";
    for (int p = PLAIN; p < N_PACKINGS; p++) {
        size_t n;
        char *data = test_read(pack((enum packing)p, text, strlen(text)), &n);
        for (size_t piece = 1; piece < 100; piece += 33) {
            char *got = read_pipe(data, n, piece);
            cr_expect_str_eq(got, "r1||ACGT|IIII\nr2||AC|II\n", "packing %d, pieces of %zu", p, piece);
            free(got);
        }
        free(data);
    }
    char *got = read_pipe("", 0, 1);
    cr_expect_str_eq(got, "ERROR standard input: the file is empty\n");
    free(got);
    const char *twice[] = {"-", "-"};
    got = read_all(twice, 2, NULL, NULL, 0, 0);
    cr_expect_str_eq(got, "ERROR standard input ('-') is given 2 times as input; it can be read once\n");
    free(got);
}

Test(seqio, files_that_cannot_be_read)
{
    char *got = read_file(test_path("missing"));
    cr_expect_str_eq(got, "ERROR FILE: cannot be opened: No such file or directory\n");
    free(got);
    got = read_file("/tmp");
    cr_expect_str_eq(got, "ERROR FILE: is a folder: give a file\n");
    free(got);
    got = read_file("http://localhost/x.fa"); /* a file name like any other */
    cr_expect_str_eq(got, "ERROR FILE: cannot be opened: No such file or directory\n");
    free(got);
    got = read_file(test_write("vcf", "##fileformat=VCFv4.2\n#CHROM\tPOS\n", 33));
    cr_expect_str_eq(got, "ERROR FILE: holds no sequences: FASTA, FASTQ, SAM, BAM or CRAM are read\n");
    free(got);
    static const char xz[] = "\xFD"
                             "7zXZ\0\0\4\xE6\xD6\xB4\x46";
    got = read_file(test_write("xz", xz, sizeof xz));
    cr_expect_str_eq(got, "ERROR FILE: is compressed with xz: unpack it first (gzip and bgzip are read)\n");
    free(got);
    if (geteuid() != 0) {
        const char *path = test_write("secret", ">a\nA\n", 5);
        chmod(path, 0);
        got = read_file(path);
        cr_expect_str_eq(got, "ERROR FILE: cannot be opened: Permission denied\n");
        free(got);
    }
}

/* Every text format cut at every byte gives an error or whole records that are a prefix, never anything else.
 */
Test(seqio, cut_at_every_byte)
{
    char text[4096] = "";
    for (int i = 0; i < 20; i++)
        sprintf(text + strlen(text), "@r%d\n%.*s\n+\n%.*s\n", i, i + 1, "ACGTACGTACGTACGTACGTACGT", i + 1,
                "IIIIHHHHGGGG@@@@++++IIII");
    for (int p = PLAIN; p < N_PACKINGS; p++) {
        size_t n;
        const char *path = pack((enum packing)p, text, strlen(text));
        char *data = test_read(path, &n), *whole = read_file(path);
        int n_accepted = 0;
        for (size_t cut = 0; cut < n; cut++) {
            const char *part = test_write("cut", data, cut);
            char *got = read_all(&part, 1, NULL, NULL, 1, 0);
            char *error = strstr(got, "ERROR"), *warning = strstr(got, "WARNING");
            size_t compared = error ? (size_t)(error - got) : warning ? (size_t)(warning - got) : strlen(got);
            cr_expect(strncmp(got, whole, compared) == 0 && (compared == 0 || got[compared - 1] == '\n'));
            n_accepted += !error;
            /* plain text can end after any record. gzip has a length and a sum at its end, for each member.
             * Of bgzip, whole blocks can be missing; that leaves a warning */
            if (!error && p == GZIP)
                cr_expect(false, "gzip cut at %zu of %zu was accepted", cut, n);
            if (!error && (p == BGZIP || p == BGZIP_JOINED) && !warning)
                cr_expect(cut == n, "bgzip cut at %zu of %zu was accepted in silence", cut, n);
            free(got);
        }
        cr_expect(n_accepted <= (p == PLAIN ? 45 : 3), "packing %d: %d accepted", p, n_accepted);
        free(data);
        free(whole);
    }
}

/* --- SAM, BAM, CRAM ------------------------------------------------------------------------------- */

static const char sam_text[] = "@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:ref\tLN:40\n@RG\tID:g\tSM:s\n"
                               "fwd\t1024\tref\t3\t60\t4M2S\t*\t0\t0\tACGTNN\tABCDEF\tRG:Z:g\tNM:i:0\tMD:Z:"
                               "4\tAS:i:4\tXS:i:0\tMQ:i:3\tXX:B:s,1,-2\n"
                               "rev\t16\tref\t3\t60\t4M2S\t*\t0\t0\tACGTRM\tABCDEF\tMC:Z:4M\tSA:Z:x\tZA:A:c\n"
                               "sec\t256\tref\t3\t0\t2M\t*\t0\t0\tAC\tII\n"
                               "sup\t2064\tref\t3\t0\t2M\t*\t0\t0\tAC\tII\n"
                               "both\t2304\tref\t3\t0\t2M\t*\t0\t0\tAC\tII\n"
                               "*\t4\t*\t0\t0\t*\t*\t0\t0\tAC\t*\n"
                               "first\t589\t*\t0\t0\t*\t*\t0\t0\tA\tI\n"
                               "first\t141\t*\t0\t0\t*\t*\t0\t0\t*\t*\tZB:f:1.5\n";
static const char sam_expected[] = "fwd||ACGTNN|ABCDEF\nrev||KYACGT|FEDCBA\n||AC|*\nfirst||A|I\nfirst|||*\n";

/* Converts a SAM text; mode as hts_open() takes it. */
static const char *convert(const char *name, const char *text, const char *mode, const char *reference)
{
    const char *from = test_write("text.sam", text, strlen(text)), *path = test_path(name);
    samFile *in = sam_open(from, "r"), *out = sam_open(path, mode);
    sam_hdr_t *header = sam_hdr_read(in);
    bam1_t *record = bam_init1();
    if (reference)
        cr_assert_eq(hts_set_fai_filename(out, reference), 0);
    cr_assert(header && sam_hdr_write(out, header) == 0);
    int ret;
    while ((ret = sam_read1(in, header, record)) >= 0)
        cr_assert(sam_write1(out, header, record) >= 0);
    cr_assert_eq(ret, -1);
    bam_destroy1(record);
    sam_hdr_destroy(header);
    cr_assert_eq(sam_close(in), 0);
    cr_assert_eq(sam_close(out), 0);
    return path;
}

static const char *make_reference(void)
{
    static const char fasta[] = ">ref\nTTACGTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT\n";
    static char path[400];
    snprintf(path, sizeof path, "%s", test_write("ref.fa", fasta, sizeof fasta - 1));
    return path;
}

Test(seqio, alignment_files)
{
    const char *reference = make_reference();
    static const char *const modes[] = {"w", "wz", "wb", "wb0", "wc"};
    lw_pool *pool = NULL;
    cr_assert_eq(lw_pool_open(&pool, 2, NULL), LW_OK);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        const char *path = convert("aligned", sam_text, modes[m], reference);
        for (int threads = 1; threads <= 2; threads++) {
            char *got = read_all(&path, 1, threads == 1 ? NULL : pool, reference, threads == 1 ? 0 : 1, 0);
            cr_expect_str_eq(got, sam_expected, "mode %s, %d threads", modes[m], threads);
            free(got);
        }
        size_t n;
        char *data = test_read(path, &n), *got = read_pipe(data, n, 100);
        if (strcmp(modes[m], "wc") != 0)
            cr_expect_str_eq(got, sam_expected, "mode %s from a pipe", modes[m]);
        free(got);
        free(data);
    }
    lw_pool_close(pool);
}

Test(seqio, what_alignment_records_keep)
{
    const char *path = convert("kept.bam", sam_text, "wb", NULL);
    lw_seqio *reader = NULL;
    lw_read_batch batch = {0};
    lw_error err = {0};
    cr_assert_eq(lw_seqio_open(&reader, &path, 1, NULL, &err), LW_OK, "%s", err.message);
    cr_expect_eq(lw_seqio_kind(reader, 0), LW_FILE_BAM);
    cr_expect_str_eq(lw_seqio_path(reader, 0), path);
    cr_expect_eq(sam_hdr_count_lines(lw_seqio_header(reader, 0), "RG"), 1);
    cr_assert_eq(lw_seqio_read(reader, &batch, 0, 0, &err), LW_OK);
    cr_assert_eq(batch.n, 5);
    static const int numbers[] = {1, 2, 6, 7, 8}, flags[] = {1024, 0, 0, 1 | 64 | 512, 1 | 128};
    static const char *const tags[] = {"RGZg", "ZAAc", "", "", "ZBf"};
    static const int sizes[] = {5 + 3 + 5 + 4, 4, 0, 0, 7};
    for (int i = 0; i < 5; i++) {
        const lw_read *read = &batch.read[i];
        cr_expect_eq(read->number, numbers[i]);
        cr_expect_eq(read->flag, flags[i], "record %d has flag %d", i, read->flag);
        cr_expect_eq(read->aux_len, sizes[i], "record %d has %d bytes of tags", i, read->aux_len);
        cr_expect(read->from_bam);
        if (sizes[i])
            cr_expect_eq(memcmp(lw_read_aux(&batch, i), tags[i], strlen(tags[i])), 0, "tags of record %d", i);
    }
    const lw_seqio_counts *counts = lw_seqio_count(reader);
    cr_expect_eq(counts->secondary, 2);
    cr_expect_eq(counts->supplementary, 1);
    cr_expect_eq(counts->unnamed, 1);
    cr_expect_eq(counts->empty, 1);
    cr_expect_eq(counts->letters, 15);
    char where[64];
    cr_expect(strstr(lw_read_where(reader, &batch, 0, where, sizeof where), "/lw-test"));
    lw_read_batch_free(&batch);
    lw_seqio_close(reader);
}

/* BAM and CRAM cut at any byte are errors, from a file and from a pipe. */
Test(seqio, alignment_files_cut_at_every_byte, .timeout = 120)
{
    const char *reference = make_reference();
    static const char *const modes[] = {"wb", "wc"};
    for (int m = 0; m < 2; m++) {
        size_t n;
        char *data = test_read(convert("whole", sam_text, modes[m], reference), &n);
        for (size_t cut = 0; cut < n; cut++) {
            const char *path = test_write("cut", data, cut);
            char *got = read_all(&path, 1, NULL, reference, 0, 0);
            cr_expect(strstr(got, "ERROR"), "%s cut at %zu of %zu was accepted", modes[m], cut, n);
            free(got);
        }
        for (size_t cut = 0; cut < n; cut += m == 0 ? 5 : 37) {
            char *got = read_pipe(data, cut, n);
            cr_expect(strstr(got, "ERROR"), "%s cut at %zu of %zu was accepted from a pipe", modes[m], cut,
                      n);
            free(got);
        }
        free(data);
    }
}

/* Any byte of a BAM or gzip file damaged: an error or the same records, but no crash. */
Test(seqio, damaged_bytes, .timeout = 120)
{
    size_t n;
    char *data = test_read(convert("whole", sam_text, "wb", NULL), &n);
    for (size_t i = 0; i < n; i++) {
        data[i] ^= 0x5a;
        char *got = read_file(test_write("damaged", data, n));
        cr_expect(strstr(got, "ERROR") || strcmp(got, sam_expected) == 0, "byte %zu: %s", i, got);
        free(got);
        data[i] ^= 0x5a;
    }
    free(data);
}

/* The same in a BAM that is not packed, where no checksum protects the records, and for whole records. */
Test(seqio, damaged_records, .timeout = 120)
{
    static const unsigned char patterns[] = {0x80, 0xff, 0x5a, 0x01};
    char data[4096];
    gzFile packed = gzopen(convert("whole", sam_text, "wb", NULL), "rb");
    const int unpacked = gzread(packed, data, sizeof data);
    gzclose(packed);
    cr_assert(unpacked > 0 && unpacked < (int)sizeof data);
    const size_t n = (size_t)unpacked;
    bam1_t *record = bam_init1();
    for (size_t i = 0; i < n * sizeof patterns; i++) {
        char *byte = &data[i / sizeof patterns], whole = *byte;
        *byte = (char)(*byte ^ patterns[i % sizeof patterns]);
        const char *path = test_write("damaged", data, n);
        free(read_file(path));
        lw_seqio *reader;
        lw_error err = {0};
        bool got =
            lw_seqio_open(&reader, &path, 1, &(lw_seqio_options){.whole_records = true}, &err) == LW_OK;
        if (got) {
            if (lw_seqio_header(reader, 0))
                while (lw_seqio_record(reader, record, &got, &err) == LW_OK && got)
                    ;
            lw_seqio_close(reader);
        }
        *byte = whole;
    }
    bam_destroy1(record);
}

Test(seqio, bad_sam_lines)
{
    enum { LONG = 255 };
    static const char header[] = "@HD\tVN:1.6\n@SQ\tSN:ref\tLN:40\n";
    static const char *const lines[] = {"a\t0\tref\t3\t60\t4M\t*\t0\t0\tACGT\tIII\n",
                                        "a\t0\tref\t3\t60\t4M\t*\t0\t0\tACG\tIII\n", "a\t0\tref\n",
                                        "a\t0\tref\t3\t60\t4Q\t*\t0\t0\tACGT\tIIII\n",
                                        "a\t0\tref\t3rd\t60\t4M\t*\t0\t0\tACGT\t*\n"};
    static const char *const reasons[] = {
        "3 qualities for 4 letters", "its CIGAR covers 4 letters, SEQ has 3",
        "it has 3 of the 11 columns: is the file cut short or damaged?",
        "its CIGAR, a number out of range or an optional field is not valid SAM", "its POS is '3rd'"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[512];
        snprintf(text, sizeof text, "%sok\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\n%s", header, lines[i]);
        char *got = read_file(test_write("bad.sam", text, strlen(text)));
        const char *found = strstr(got, "ERROR FILE: record 2: line 4 is not a valid SAM record: ");
        cr_expect(found && strstr(found, reasons[i]), "case %zu: %s", i, got);
        free(got);
    }
    char text[512], *name = malloc(LONG + 1);
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    snprintf(text, sizeof text, "%s%s\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\n", header, name);
    char *long_name = read_file(test_write("long.sam", text, strlen(text)));
    cr_expect(strstr(long_name, "record 1: line 3 is not a valid SAM record: its name has more than 254"),
              "%s", long_name);
    free(long_name);
    free(name);
    /* no header at all: fine for unplaced reads; htslib reads no placed ones then */
    const char *bare = "a\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tIIII\nb\t16\tref\t3\t60\t4M\t*\t0\t0\tAAGT\tABCD\n";
    char *got = read_all(&(const char *){test_write("bare.sam", bare, strlen(bare))}, 1, NULL, NULL, 1, 0);
    cr_expect_str_eq(
        got, "a||ACGT|IIII\nERROR FILE: record 2: line 2 is not a valid SAM record: the header has no "
             "@SQ lines\n");
    free(got);
}

/* --- several inputs, batches ------------------------------------------------------------------------ */

Test(seqio, several_inputs)
{
    static const char unmapped[] = "@HD\tVN:1.6\nc\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\n";
    const char *fasta = test_write("a.fa", ">a\nAC\n", 6), *fastq = test_write("b.fq", "@b\nAC\n+\nII\n", 11),
               *sam = test_write("c.sam", unmapped, strlen(unmapped));
    const char *paths[] = {fasta, sam, fastq, fasta};
    char *got = read_all(paths, 4, NULL, NULL, 0, 0);
    cr_expect_str_eq(got, "a||AC|*\nc||A|I\nb||AC|II\na||AC|*\n");
    free(got);
    got = read_all(paths, 4, NULL, NULL, 1, 0);
    cr_expect_str_eq(got, "a||AC|*\nc||A|I\nb||AC|II\na||AC|*\n");
    free(got);
    /* what is wrong with the last is said before the first is read */
    paths[3] = "/missing";
    got = read_all(paths, 4, NULL, NULL, 0, 0);
    cr_expect_str_eq(got, "ERROR FILE: cannot be opened: No such file or directory\n");
    free(got);
    /* more files than a process may have open at once */
    enum { MANY = 3000 };
    const char **many = malloc(MANY * sizeof *many);
    for (int i = 0; i < MANY; i++)
        many[i] = i % 2 ? fasta : fastq;
    got = read_all(many, MANY, NULL, NULL, 0, 0);
    cr_expect_eq(strlen(got), MANY / 2 * strlen("b||AC|II\na||AC|*\n"));
    free(got);
    free(many);
}

Test(seqio, batches_keep_their_limits)
{
    sink text = {0};
    for (int i = 0; i < 1000; i++)
        put(&text, "@r%d\n%.*s\n+\n%.*s\n", i, i % 20, "ACGTACGTACGTACGTACGT", i % 20,
            "IIIIIIIIIIIIIIIIIIII");
    const char *path = test_write("many.fq", text.text, text.n);
    for (int group = 1; group <= 2; group++)
        for (int64_t max_records = 0; max_records <= 64; max_records += 16)
            for (int64_t max_letters = 0; max_letters <= 300; max_letters += 100) {
                lw_seqio *reader = NULL;
                lw_read_batch batch = {0};
                lw_seqio_options options = {.group = group};
                cr_assert_eq(lw_seqio_open(&reader, &path, 1, &options, NULL), LW_OK);
                int64_t n = 0;
                double fraction = 0;
                do {
                    cr_assert_eq(lw_seqio_read(reader, &batch, max_records, max_letters, NULL), LW_OK);
                    cr_expect(max_records == 0 || batch.n <= max_records);
                    cr_expect(max_letters == 0 || batch.letters < max_letters + 20 * group);
                    cr_expect_eq(batch.n % group, 0);
                    for (int64_t i = 0; i < batch.n; i++)
                        cr_expect_eq(atoi(lw_read_name(&batch, i) + 1), n + i);
                    cr_expect(lw_seqio_fraction(reader) >= fraction);
                    fraction = lw_seqio_fraction(reader);
                    n += batch.n;
                } while (batch.n > 0);
                cr_expect_eq(n, 1000);
                cr_expect_float_eq(fraction, 1, 1e-9);
                lw_read_batch_free(&batch);
                lw_seqio_close(reader);
            }
    free(text.text);
}

/* One record larger than any buffer; names longer than BAM holds are delivered, for the writer to judge. */
Test(seqio, long_records)
{
    enum { LETTERS = 3000000, NAME = 1000 };
    sink text = {0};
    put(&text, "@%0*d\n", NAME, 7);
    for (int i = 0; i < LETTERS / 10; i++)
        put(&text, "ACGTACGTNN%s", i % 6 == 5 ? "\n" : "");
    put(&text, "\n+\n");
    for (int i = 0; i < LETTERS / 10; i++)
        put(&text, "@+IIIIIIII");
    const char *path = test_write("long.fq", text.text, text.n);
    lw_seqio *reader = NULL;
    lw_read_batch batch = {0};
    lw_error err = {0};
    cr_assert_eq(lw_seqio_open(&reader, &path, 1, NULL, &err), LW_OK);
    cr_assert_eq(lw_seqio_read(reader, &batch, 0, 0, &err), LW_OK, "%s", err.message);
    cr_assert_eq(batch.n, 1);
    cr_expect_eq(batch.read[0].len, LETTERS);
    cr_expect_eq(batch.read[0].name_len, NAME);
    cr_expect_eq(strlen(lw_read_qual(&batch, 0)), LETTERS);
    cr_expect_eq(strspn(lw_read_seq(&batch, 0), "ACGTN"), LETTERS);
    lw_read_batch_free(&batch);
    lw_seqio_close(reader);
    free(text.text);
}

Test(seqio, stops_when_asked)
{
    const char *path = test_write("a.fa", ">a\nAC\n", 6);
    int stop = 1;
    lw_host host = {.stop = &stop};
    lw_seqio_options options = {.host = &host};
    lw_seqio *reader = NULL;
    lw_read_batch batch = {0};
    cr_assert_eq(lw_seqio_open(&reader, &path, 1, &options, NULL), LW_OK);
    cr_expect_eq(lw_seqio_read(reader, &batch, 0, 0, NULL), LW_E_INTERRUPTED);
    lw_read_batch_free(&batch);
    lw_seqio_close(reader);
}

/* --- the files beside the checkout ------------------------------------------------------------------- */

typedef struct shared_case {
    const char *path;
    int64_t records, letters, secondary, supplementary; /* records -1: an error that holds `error` */
    const char *error;
} shared_case;

Test(seqio, shared_files)
{
    static const shared_case cases[] = {
        {"malformed/bad_char.fa", 1, 9, 0, 0, NULL},
        {"malformed/crlf.fa", 2, 12, 0, 0, NULL},
        {"malformed/dup_ids.fa", 2, 8, 0, 0, NULL},
        {"malformed/empty.fa", -1, 0, 0, 0, ": the file is empty"},
        {"malformed/header_only.fa", 1, 0, 0, 0, NULL},
        {"malformed/lower_n_iupac.fa", 1, 24, 0, 0, NULL},
        {"malformed/no_eof.bam", -1, 0, 0, 0, ": no end-of-file block at its end"},
        {"malformed/no_final_newline.fa", 1, 8, 0, 0, NULL},
        {"malformed/no_header.fa", -1, 0, 0, 0, ": line 1: text before the first header"},
        {"malformed/protein_special.fa", 2, 20, 0, 0, NULL},
        {"malformed/short_qual.fq", -1, 0, 0, 0, ": record 1 (r1): 4 qualities for 8 letters"},
        {"malformed/trunc_gzip.fa.gz", -1, 0, 0, 0, ": the compressed data are cut short or damaged"},
        {"malformed/truncated.fq", -1, 0, 0, 0, ": record 2 (r2): the file ends inside it"},
        {"malformed/two_members.fa.gz", 2, 9, 0, 0, NULL},
        {"reads/htslib_UMI.fq", 7, 350, 0, 0, NULL},
        {"reads/htslib_fastqs.fq", 105, 18914, 0, 0, NULL},
        {"reads/htslib_interleaved.fq", 10, 1000, 0, 0, NULL},
        {"reads/htslib_longline.fq", 1, 4, 0, 0, NULL},
        {"reads/illumina_16S_R1.fastq.gz", 2500, 567516, 0, 0, NULL},
        {"reads/illumina_ce1000.fastq.gz", 1000, 100000, 0, 0, NULL},
        {"reads/lambda_long_racon.fastq.gz", 236, 1674628, 0, 0, NULL},
        {"reads/nanopore_first500.fastq.gz", 500, 219924, 0, 0, NULL},
        {"protein/query500.fasta.gz", 500, -1, 0, 0, NULL},
        {"protein/db4000.fasta.gz", 3993, -1, 0, 0, NULL},
        {"bam/bgzf_boundaries1.bam", 1, 100, 0, 0, NULL},
        {"bam/bgzf_boundaries2.bam", 1, 100, 0, 0, NULL},
        {"bam/bgzf_boundaries3.bam", 1, 100, 0, 0, NULL},
        {"bam/ce1000.bam", 1000, 100000, 0, 0, NULL},
        {"bam/ce1000.cram", 1000, 100000, 0, 0, NULL},
        {"bam/ce_1Mbp_read.bam", 2, 1000747, 0, 0, NULL},
        {"bam/ce_5b.bam", 6, 600, 1, 0, NULL},
        {"bam/ce_unmapped_mix.bam", 19, 1900, 0, 0, NULL},
        {"bam/large_aux.bam", 3, 30, 0, 0, NULL},
        {"bam/no_hdr_sq_1.bam", 5, 500, 0, 1, NULL},
        {"bam/sarscov2_ont.bam", 200, 97591, 0, 3, NULL},
        {"ref/ce.fa.gz", 7, 1039800, 0, 0, NULL},
        {"ref/ecoli_NC_008253.fna.gz", 1, 4938920, 0, 0, NULL},
        {"ref/phix174_consensus.fa", 1, 5386, 0, 0, NULL},
    };
    const char *reference = test_shared("data/ref/ce.fa.gz");
    lw_pool *pool = NULL;
    cr_assert_eq(lw_pool_open(&pool, 2, NULL), LW_OK);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const shared_case *c = &cases[i / 2];
        char path[600];
        const char *p = path;
        snprintf(path, sizeof path, "%s/data/%s", LW_SHARED_DIR, c->path);
        lw_seqio *reader = NULL;
        lw_read_batch batch = {0};
        lw_error err = {0};
        lw_seqio_options options = {.pool = i % 2 ? pool : NULL, .reference = reference};
        lw_status status = lw_seqio_open(&reader, &p, 1, &options, &err);
        do {
            if (status == LW_OK)
                status = lw_seqio_read(reader, &batch, 100, 0, &err);
        } while (status == LW_OK && batch.n > 0);
        if (c->records < 0) {
            cr_expect(status == LW_E_INPUT && strstr(err.message, c->error), "%s: %s", c->path, err.message);
        } else {
            cr_assert_eq(status, LW_OK, "%s: %s", c->path, err.message);
            const lw_seqio_counts *counts = lw_seqio_count(reader);
            cr_expect_eq(counts->records, c->records, "%s: %lld records", c->path,
                         (long long)counts->records);
            cr_expect(c->letters < 0 || counts->letters == c->letters, "%s", c->path);
            cr_expect_eq(counts->secondary, c->secondary, "%s", c->path);
            cr_expect_eq(counts->supplementary, c->supplementary, "%s", c->path);
        }
        lw_read_batch_free(&batch);
        lw_seqio_close(reader);
    }
    lw_pool_close(pool);
}

/* The reads of a CRAM, a BAM and the FASTQ that they came from are the same. */
Test(seqio, same_reads_from_bam_cram_and_fastq)
{
    const char *reference = test_shared("data/ref/ce.fa.gz");
    const char *paths[] = {test_shared("data/reads/illumina_ce1000.fastq.gz"),
                           test_shared("data/bam/ce1000.bam"), test_shared("data/bam/ce1000.cram")};
    char *text[3];
    for (int i = 0; i < 3; i++)
        text[i] = read_all(&paths[i], 1, NULL, reference, 0, 0);
    cr_expect_str_eq(text[1], text[0]);
    cr_expect_str_eq(text[2], text[1]);
    for (int i = 0; i < 3; i++)
        free(text[i]);
}
