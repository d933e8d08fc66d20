/* seqio.c - FASTA, FASTQ, SAM, BAM and CRAM into batches.
 *
 * SAM, BAM and CRAM are htslib's. The text formats have a parser of our own over htslib's BGZF stream (which
 * takes plain, gzip and bgzip alike): kseq.h, made for the same place, passes in silence over what stands
 * before a header or between records, loops for ever when the stream fails, and writes past its buffer when
 * memory runs out. */
#include "common/seqio.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/bgzf.h>
#include <htslib/cram.h>
#include <htslib/hfile.h>
#include <htslib/sam.h>

#include "common/fail.h"
#include "common/infile.h"

enum {
    BUFFER = 1 << 18,     /* bytes of text per read; larger ones gain nothing */
    STOP_INTERVAL = 4096, /* records between two looks at the host's stop flag */
    LINE_ROOM = 1 << 12,  /* bytes of a SAM line to make room for at least */
    LONGEST_NAME = 254,   /* letters of QNAME */
    NAME_SHOWN = 80       /* characters of a name in messages */
};

/* 2^31 - 1: lengths and positions are int32 in BAM and in the kernels. */
#define MAX_LETTERS INT32_MAX

typedef struct input {
    const char *path;  /* as given */
    const char *shown; /* for messages */
    lw_file_kind kind;
    bool regular; /* may be opened again */
    int64_t bytes;
    int fd;       /* of the open file, which owns it; -1: closed */
    BGZF *text;   /* FASTA, FASTQ */
    htsFile *hts; /* SAM, BAM, CRAM */
    sam_hdr_t *header;
    bool open_end;     /* SAM: the last line has no line end */
    size_t line_bytes; /* SAM: of the line that was parsed last */
    /* of text */
    uint8_t *buffer;
    int begin, end; /* what of the buffer is unread */
    int64_t line;   /* 1-based, of the next unread character */
} input;

struct lw_seqio {
    lw_seqio_options options;
    int n;
    int current; /* input being read */
    input *inputs;
    lw_seqio_counts counts;
    int64_t number; /* records of the current input so far */
    bam1_t *record;
};

/* --- batches ---------------------------------------------------------------------------------- */

void lw_read_batch_free(lw_read_batch *batch)
{
    free(batch->read);
    free(batch->text);
    free(batch->aux);
    memset(batch, 0, sizeof *batch);
}

/* Grows *array, of elements of `size` bytes, to hold `need` of them. */
static lw_status reserve(void *array, int64_t *capacity, int64_t need, size_t size, lw_error *err)
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

static lw_status reserve_text(lw_read_batch *b, int64_t more, lw_error *err)
{
    return reserve(&b->text, &b->text_capacity, b->n_text + more, 1, err);
}

/* --- messages ----------------------------------------------------------------------------------- */

const char *lw_read_where(const lw_seqio *reader, const lw_read_batch *batch, int64_t i, char *text,
                          size_t size)
{
    const lw_read *read = &batch->read[i];
    const char *path = reader->inputs[read->input].shown;
    if (read->name_len > 0)
        snprintf(text, size, "%s: record %lld (%.*s)", path, (long long)read->number, NAME_SHOWN,
                 lw_read_name(batch, i));
    else
        snprintf(text, size, "%s: record %lld", path, (long long)read->number);
    return text;
}

/* A failure in the record being read, which is read[n] of the batch; its name may not be there yet (name_len
 * 0). */
static lw_status fail_record(const lw_seqio *r, const lw_read_batch *b, lw_error *err, const char *format,
                             ...) LW_PRINTF(4, 5);
static lw_status fail_record(const lw_seqio *r, const lw_read_batch *b, lw_error *err, const char *format,
                             ...)
{
    char where[512], what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    lw_read_where(r, b, b->n, where, sizeof where);
    return lw_fail(err, LW_E_INPUT, "%s: %s", where, what);
}

/* --- text streams --------------------------------------------------------------------------------- */

static lw_status fail_stream(const input *in, lw_error *err)
{
    if (errno && errno != EIO)
        return lw_fail(err, LW_E_IO, "%s: reading failed near line %lld: %s", in->shown, (long long)in->line,
                       strerror(errno));
    return lw_fail(err, LW_E_INPUT,
                   "%s: the compressed data are cut short or damaged near line %lld: fetch the file again",
                   in->shown, (long long)in->line);
}

/* The next bytes into the buffer; none at the end of the stream. */
static lw_status refill(input *in, lw_error *err)
{
    errno = 0;
    ssize_t got = bgzf_read(in->text, in->buffer, BUFFER);
    if (got < 0 || in->text->errcode)
        return fail_stream(in, err);
    in->begin = 0;
    in->end = (int)got;
    return LW_OK;
}

/* The next character without taking it; -1 at the end. */
static lw_status peek(input *in, int *c, lw_error *err)
{
    if (in->begin >= in->end)
        LW_TRY(refill(in, err));
    *c = in->begin < in->end ? in->buffer[in->begin] : -1;
    return LW_OK;
}

/* Appends the rest of the line to the batch's text, without its end (LF or CR LF), and room for one more
 * byte. *ended: there was an LF, not the end of the stream. */
static lw_status append_line(input *in, lw_read_batch *b, bool *ended, lw_error *err)
{
    int64_t begin = b->n_text;
    *ended = false;
    while (!*ended) {
        if (in->begin >= in->end)
            LW_TRY(refill(in, err));
        if (in->begin >= in->end)
            break;
        const uint8_t *from = in->buffer + in->begin;
        const uint8_t *stop = memchr(from, '\n', (size_t)(in->end - in->begin));
        int n = stop ? (int)(stop - from) : in->end - in->begin;
        LW_TRY(reserve_text(b, n + 1, err));
        memcpy(b->text + b->n_text, from, (size_t)n);
        b->n_text += n;
        in->begin += n;
        if (stop) {
            in->begin++;
            in->line++;
            *ended = true;
        }
    }
    LW_TRY(reserve_text(b, 1, err));
    if (b->n_text > begin && b->text[b->n_text - 1] == '\r')
        b->n_text--;
    return LW_OK;
}

/* Takes line ends, and the white space of lines that hold nothing else, up to the next record. */
static lw_status skip_blank(input *in, int *c, lw_error *err)
{
    for (;;) {
        LW_TRY(peek(in, c, err));
        if (*c < 0 || !isspace(*c))
            return LW_OK;
        in->line += *c == '\n';
        in->begin++;
    }
}

/* --- FASTA and FASTQ ---------------------------------------------------------------------------- */

static const char *describe(int c, char text[16])
{
    if (c > ' ' && c < 127)
        snprintf(text, 16, "'%c'", c);
    else
        snprintf(text, 16, "byte 0x%02x", c);
    return text;
}

/* The header line after its '>' or '@': name, comment. */
static lw_status read_header(lw_seqio *r, lw_read_batch *b, lw_read *read, bool *ended, lw_error *err)
{
    input *in = &r->inputs[r->current];
    int64_t begin = b->n_text, line = in->line;
    LW_TRY(append_line(in, b, ended, err));
    int64_t n = b->n_text - begin;
    if (n > INT32_MAX)
        return fail_record(r, b, err, "its header line is longer than 2^31 - 1 characters");
    char *text = b->text + begin;
    int bad = 0;
    for (int64_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        bad |= (c < ' ' && c != '\t') | (c == 127);
    }
    for (int64_t i = 0; bad && i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t') || c == 127)
            return fail_record(r, b, err,
                               "control character 0x%02x at position %lld of its header (line %lld)", c,
                               (long long)i + 1, (long long)line);
    }
    int64_t name = 0;
    while (name < n && text[name] != ' ' && text[name] != '\t')
        name++;
    int64_t comment = name;
    while (comment < n && (text[comment] == ' ' || text[comment] == '\t'))
        comment++;
    text[n] = '\0';
    text[name] = '\0';
    read->name = begin;
    read->name_len = (int32_t)name;
    read->comment = begin + comment;
    read->comment_len = (int32_t)(n - comment);
    b->n_text++;
    return LW_OK;
}

/* Checks the letters [begin, n_text) that a line added, and drops white space among them. */
static lw_status clean_letters(lw_seqio *r, lw_read_batch *b, int64_t sequence, int64_t begin, lw_error *err)
{
    char *text = b->text;
    int64_t end = b->n_text;
    int bad = 0;
    for (int64_t i = begin; i < end; i++) {
        unsigned char c = (unsigned char)text[i];
        bad |= (c <= ' ') | (c == 127);
    }
    if (end - sequence > MAX_LETTERS)
        return fail_record(r, b, err, "its sequence is longer than 2^31 - 1 letters");
    if (!bad)
        return LW_OK;
    int64_t kept = begin;
    for (int64_t i = begin; i < end; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'))
            continue;
        if (c < ' ' || c == 127)
            return fail_record(
                r, b, err, "control character 0x%02x at position %lld of its sequence; is this a text file?",
                c, (long long)(kept - sequence + 1));
        text[kept++] = (char)c;
    }
    b->n_text = kept;
    return LW_OK;
}

static lw_status read_fasta(lw_seqio *r, lw_read_batch *b, lw_read *read, lw_error *err)
{
    input *in = &r->inputs[r->current];
    bool ended;
    int c;
    LW_TRY(read_header(r, b, read, &ended, err));
    read->seq = b->n_text;
    for (;;) {
        LW_TRY(peek(in, &c, err));
        if (c < 0 || c == '>')
            break;
        int64_t begin = b->n_text;
        LW_TRY(append_line(in, b, &ended, err));
        LW_TRY(clean_letters(r, b, read->seq, begin, err));
    }
    LW_TRY(reserve_text(b, 1, err));
    read->len = (int32_t)(b->n_text - read->seq);
    b->text[b->n_text++] = '\0';
    return LW_OK;
}

static lw_status check_qualities(const lw_seqio *r, const lw_read_batch *b, int64_t qual, int64_t begin,
                                 lw_error *err)
{
    int bad = 0;
    for (int64_t i = begin; i < b->n_text; i++) {
        unsigned char c = (unsigned char)b->text[i];
        bad |= (c < '!') | (c > '~');
    }
    for (int64_t i = begin; bad && i < b->n_text; i++) {
        unsigned char c = (unsigned char)b->text[i];
        if (c < '!' || c > '~')
            return fail_record(r, b, err,
                               "byte 0x%02x at position %lld of its qualities; they are '!' to '~'", c,
                               (long long)(i - qual + 1));
    }
    return LW_OK;
}

static lw_status read_fastq(lw_seqio *r, lw_read_batch *b, lw_read *read, lw_error *err)
{
    input *in = &r->inputs[r->current];
    bool ended;
    int c;
    LW_TRY(read_header(r, b, read, &ended, err));
    read->seq = b->n_text;
    for (;;) { /* sequence lines, up to the '+' */
        LW_TRY(peek(in, &c, err));
        if (c < 0)
            return fail_record(r, b, err, "the file ends inside it (no '+' line): it is cut short");
        if (c == '+')
            break;
        if (c == '@')
            return fail_record(r, b, err,
                               "line %lld begins the next record, but there was no '+' line with qualities",
                               (long long)in->line);
        int64_t begin = b->n_text;
        LW_TRY(append_line(in, b, &ended, err));
        LW_TRY(clean_letters(r, b, read->seq, begin, err));
    }
    read->len = (int32_t)(b->n_text - read->seq);
    b->text[b->n_text++] = '\0';
    int64_t qual = b->n_text;
    LW_TRY(append_line(in, b, &ended, err)); /* the '+' line: whatever it repeats is not kept */
    b->n_text = qual;
    if (!ended)
        return fail_record(r, b, err, "the file ends inside it (no qualities): it is cut short");
    read->qual = qual;
    int64_t first_line = -1;
    for (;;) { /* quality lines, up to the length of the sequence: they too may begin with '@' or '+' */
        LW_TRY(peek(in, &c, err));
        if (c < 0 || (read->len == 0 && c == '@'))
            break;
        int64_t begin = b->n_text;
        LW_TRY(append_line(in, b, &ended, err));
        LW_TRY(check_qualities(r, b, qual, begin, err));
        if (first_line < 0)
            first_line = b->n_text - begin;
        if (b->n_text - qual >= read->len)
            break;
    }
    int64_t n = b->n_text - qual;
    if (n != read->len && c < 0)
        return fail_record(r, b, err,
                           "%lld qualities for %d letters, then the file ends: it is cut short or damaged",
                           (long long)n, read->len);
    if (n != read->len)
        return fail_record(r, b, err, "%lld qualities for %d letters (before line %lld): the file is damaged",
                           (long long)(first_line < read->len ? first_line : n), read->len,
                           (long long)in->line);
    LW_TRY(reserve_text(b, 1, err));
    b->text[b->n_text++] = '\0';
    return LW_OK;
}

/* *got: there was a record, now read[n]. */
static lw_status read_text(lw_seqio *r, lw_read_batch *b, lw_read *read, bool *got, lw_error *err)
{
    input *in = &r->inputs[r->current];
    int c;
    LW_TRY(skip_blank(in, &c, err));
    *got = c >= 0;
    if (c < 0) {
        if (in->text->is_compressed && !in->text->is_gzip && in->text->no_eof_block)
            lw_say(r->options.host, LW_SAY_WARNING,
                   "%s: no end-of-file block at the end of this bgzip file: it may have been cut short",
                   in->shown);
        return LW_OK;
    }
    r->number++;
    read->number = r->number;
    int mark = in->kind == LW_FILE_FASTA ? '>' : '@';
    if (c != mark) {
        char text[16];
        return fail_record(
            r, b, err, "line %lld begins with %s where '%c' should begin a record%s", (long long)in->line,
            describe(c, text), mark,
            mark == '@' ? ": the qualities before it are longer than the sequence, or the file is damaged"
                        : "");
    }
    in->begin++;
    return mark == '>' ? read_fasta(r, b, read, err) : read_fastq(r, b, read, err);
}

/* --- SAM, BAM and CRAM ---------------------------------------------------------------------------- */

/* Bytes of the BAM tag at p (two letters, type, value), or 0 if it does not end before `end`. */
static int64_t tag_size(const uint8_t *p, const uint8_t *end)
{
    static const uint8_t size_of[256] = {
        ['A'] = 1, ['c'] = 1, ['C'] = 1, ['s'] = 2, ['S'] = 2, ['i'] = 4, ['I'] = 4, ['f'] = 4, ['d'] = 8};
    if (end - p < 4)
        return 0;
    int64_t size = 0;
    if (p[2] == 'Z' || p[2] == 'H') {
        const uint8_t *nul = memchr(p + 3, 0, (size_t)(end - p - 3));
        size = nul ? nul - p + 1 : 0;
    } else if (p[2] == 'B' && end - p >= 8) {
        uint32_t n = (uint32_t)p[4] | (uint32_t)p[5] << 8 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 24;
        size = size_of[p[3]] ? 8 + (int64_t)n * size_of[p[3]] : 0;
    } else if (size_of[p[2]]) {
        size = 3 + size_of[p[2]];
    }
    return size <= end - p ? size : 0;
}

/* What an aligner computes anew. */
static bool is_replaced(const uint8_t *tag)
{
    static const char replaced[] = "NMMDASXSSAMCMQ";
    for (const char *p = replaced; *p; p += 2)
        if (tag[0] == p[0] && tag[1] == p[1])
            return true;
    return false;
}

static lw_status copy_tags(const lw_seqio *r, lw_read_batch *b, lw_read *read, const bam1_t *record,
                           lw_error *err)
{
    const uint8_t *p = bam_get_aux(record), *end = p + bam_get_l_aux(record);
    if (p == end)
        return LW_OK;
    LW_TRY(reserve(&b->aux, &b->aux_capacity, b->n_aux + (end - p), 1, err));
    read->aux = b->n_aux;
    while (p < end) {
        int64_t size = tag_size(p, end);
        if (size == 0)
            return fail_record(r, b, err, "its optional fields are damaged");
        if (!is_replaced(p)) {
            memcpy(b->aux + b->n_aux, p, (size_t)size);
            b->n_aux += size;
        }
        p += size;
    }
    read->aux_len = (int32_t)(b->n_aux - read->aux);
    return LW_OK;
}

/* 4-bit letters to text, turned back to the machine's orientation where `reverse`. */
static void copy_letters(char *to, const uint8_t *seq, int32_t n, bool reverse)
{
    static const char complement[] = "=TGKCYSBAWRDMHVN";
    if (reverse)
        for (int32_t i = 0; i < n; i++)
            to[n - 1 - i] = complement[bam_seqi(seq, i)];
    else
        for (int32_t i = 0; i < n; i++)
            to[i] = seq_nt16_str[bam_seqi(seq, i)];
}

static void copy_qualities(char *to, const uint8_t *qual, int32_t n, bool reverse)
{
    enum { LARGEST = '~' - '!' }; /* what text can show */
    for (int32_t i = 0; i < n; i++) {
        int q = qual[reverse ? n - 1 - i : i];
        to[i] = (char)('!' + (q < LARGEST ? q : LARGEST));
    }
}

static lw_status copy_record(const lw_seqio *r, lw_read_batch *b, lw_read *read, const bam1_t *record,
                             lw_error *err)
{
    const bam1_core_t *core = &record->core;
    const char *name = bam_get_qname(record);
    int32_t name_len = core->l_qname - 1 - core->l_extranul, len = core->l_qseq;
    bool reverse = (core->flag & BAM_FREVERSE) != 0;
    if (name_len == 1 && *name == '*')
        name_len = 0;
    LW_TRY(reserve_text(b, (int64_t)name_len + 2 * (int64_t)len + 3, err));
    read->from_bam = 1;
    read->flag = core->flag & (BAM_FPAIRED | BAM_FREAD1 | BAM_FREAD2 | BAM_FQCFAIL | BAM_FDUP);
    read->name = b->n_text;
    read->name_len = name_len;
    memcpy(b->text + b->n_text, name, (size_t)name_len);
    b->n_text += name_len;
    read->comment = b->n_text;
    b->text[b->n_text++] = '\0';
    read->seq = b->n_text;
    read->len = len;
    copy_letters(b->text + b->n_text, bam_get_seq(record), len, reverse);
    b->n_text += len;
    b->text[b->n_text++] = '\0';
    const uint8_t *qual = bam_get_qual(record);
    if (len > 0 && qual[0] != 0xff) {
        read->qual = b->n_text;
        copy_qualities(b->text + b->n_text, qual, len, reverse);
        b->n_text += len;
        b->text[b->n_text++] = '\0';
    }
    return copy_tags(r, b, read, record, err);
}

static lw_status fail_cut_short(const input *in, lw_error *err)
{
    return lw_fail(
        err, LW_E_INPUT,
        "%s: no end-of-file block at its end: the file was cut short (or its writer did not finish)",
        in->shown);
}

/* The end: for a pipe, only now can one see whether it was the real one. */
static lw_status check_end(const lw_seqio *r, input *in, lw_error *err)
{
    if (in->open_end)
        lw_say(r->options.host, LW_SAY_WARNING, "%s: its last line has no end: it may have been cut short",
               in->shown);
    in->open_end = false;
    if (in->kind == LW_FILE_CRAM
            ? cram_eof(in->hts->fp.cram) == 2
            : in->kind == LW_FILE_BAM && in->hts->fp.bgzf->is_compressed && in->hts->fp.bgzf->no_eof_block)
        return fail_cut_short(in, err);
    return LW_OK;
}

/* A name with control characters could not be written again as SAM, and shows that the file is damaged. */
static lw_status check_name(const input *in, int64_t number, const bam1_t *record, lw_error *err)
{
    const char *name = bam_get_qname(record);
    int n = record->core.l_qname - 1 - record->core.l_extranul;
    for (int i = 0; i < n; i++)
        if ((unsigned char)name[i] < 32 || name[i] == 127)
            return lw_fail(err, LW_E_INPUT,
                           "%s: record %lld: byte 0x%02x in its name: the file is damaged; fetch it again",
                           in->shown, (long long)number, (unsigned char)name[i]);
    return LW_OK;
}

/* --- SAM text ------------------------------------------------------------------------------------- */

enum { QNAME, FLAG, RNAME, POS, MAPQ, CIGAR, RNEXT, PNEXT, TLEN, SEQ, QUAL, COLUMNS };

/* The text of column k (from 0) of a SAM line that htslib has parsed: it ends some columns with NUL. */
static const char *sam_column(const char *line, int k)
{
    for (; k > 0; line++)
        k -= *line == '\t' || *line == '\0';
    return line;
}

/* As hts_getline(), but in->open_end tells of a last line without its end; packed text has a checksum. */
static int next_line(input *in, kstring_t *line)
{
    if (in->hts->is_bgzf || in->hts->format.compression != no_compression)
        return hts_getline(in->hts, '\n', line);
    ssize_t n = 1;
    line->l = 0;
    while (n > 0 && (line->l == 0 || line->s[line->l - 1] != '\n')) {
        if (ks_resize(line, line->l + LINE_ROOM) < 0)
            return -2;
        n = hgetln(line->s + line->l, line->m - line->l, in->hts->fp.hfile);
        line->l += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        return -2;
    if (line->l == 0)
        return -1;
    in->hts->lineno++;
    in->open_end = line->s[line->l - 1] != '\n';
    line->l -= !in->open_end;
    line->l -= line->l > 0 && line->s[line->l - 1] == '\r';
    line->s[line->l] = '\0';
    return 0;
}

/* As sam_read1(); the text of a SAM line stays until the next. */
static int read_whole(input *in, bam1_t *record)
{
    if (in->kind != LW_FILE_SAM)
        return sam_read1(in->hts, in->header, record);
    kstring_t *line = &in->hts->line;
    if (line->l == 0) {
        int ret = next_line(in, line);
        if (ret < 0)
            return ret;
    }
    in->line_bytes = line->l;
    int ret = sam_parse1(line, in->header, record);
    line->l = 0;
    return ret;
}

static bool is_number(const char *text)
{
    text += *text == '-';
    if (!isdigit((unsigned char)*text))
        return false;
    while (isdigit((unsigned char)*text))
        text++;
    return *text == '\t' || *text == '\0';
}

/* Of SEQ by CIGAR, in a record of which htslib may have read a part; all where one of the two is missing. */
static int64_t covered_letters(const bam1_t *record)
{
    const bam1_core_t *c = &record->core;
    const int64_t needed = c->l_qname + 4 * (int64_t)c->n_cigar;
    return c->n_cigar > 0 && c->l_qseq > 0 && needed <= record->l_data
               ? bam_cigar2qlen((int)c->n_cigar, bam_get_cigar(record))
               : c->l_qseq;
}

/* Before htslib fills it: what of a record that it refuses was read can then be told. */
static void forget_record(bam1_t *record)
{
    record->core.n_cigar = 0;
    record->core.l_qseq = 0;
    record->l_data = 0;
}

/* What is wrong with a line that htslib refuses without a reason. */
static void explain(const input *in, const bam1_t *record, char *text, size_t size)
{
    static const struct {
        int column;
        const char *name;
    } numbers[] = {{FLAG, "FLAG"}, {POS, "POS"}, {MAPQ, "MAPQ"}, {PNEXT, "PNEXT"}, {TLEN, "TLEN"}};
    const char *line = in->hts->line.s, *end = line + in->line_bytes;
    int columns = 1;
    for (const char *p = line; p < end; p++)
        columns += *p == '\t' || *p == '\0';
    if (columns < COLUMNS) {
        snprintf(text, size, "it has %d of the %d columns: is the file cut short?", columns, COLUMNS);
        return;
    }
    if (strcspn(line, "\t") > LONGEST_NAME) {
        snprintf(text, size, "its name has more than %d letters", LONGEST_NAME);
        return;
    }
    if (sam_hdr_nref(in->header) == 0 && *sam_column(line, RNAME) != '*') {
        snprintf(text, size, "the header has no @SQ lines");
        return;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *value = sam_column(line, numbers[i].column);
        if (!is_number(value)) {
            size_t shown = strcspn(value, "\t");
            snprintf(text, size, "its %s is '%.*s'", numbers[i].name,
                     shown < NAME_SHOWN ? (int)shown : NAME_SHOWN, value);
            return;
        }
    }
    const char *quality = sam_column(line, QUAL);
    size_t letters = strcspn(sam_column(line, SEQ), "\t"), qualities = strcspn(quality, "\t");
    if (letters != qualities && !(qualities == 1 && *quality == '*'))
        snprintf(text, size, "%zu qualities for %zu letters", qualities, letters);
    else if (covered_letters(record) != record->core.l_qseq)
        snprintf(text, size, "its CIGAR covers %lld letters, SEQ has %d", (long long)covered_letters(record),
                 record->core.l_qseq);
    else
        snprintf(text, size, "its CIGAR, a number out of range or an optional field is not valid SAM");
}

static lw_status fail_line(const input *in, const bam1_t *record, int64_t number, lw_error *err)
{
    char why[160];
    if (in->hts->format.compression == no_compression && herrno(in->hts->fp.hfile))
        return lw_fail(err, LW_E_IO, "%s: reading failed near line %lld: %s", in->shown,
                       (long long)in->hts->lineno, strerror(herrno(in->hts->fp.hfile)));
    explain(in, record, why, sizeof why);
    return lw_fail(err, LW_E_INPUT, "%s: record %lld: line %lld is not a valid SAM record: %s", in->shown,
                   (long long)number, (long long)in->hts->lineno, why);
}

static lw_status read_bam(lw_seqio *r, lw_read_batch *b, lw_read *read, bool *got, lw_error *err)
{
    input *in = &r->inputs[r->current];
    *got = false;
    for (;;) {
        errno = 0;
        forget_record(r->record);
        int ret = read_whole(in, r->record);
        if (ret < -1) {
            r->number++;
            read->number = r->number;
            if (in->kind == LW_FILE_SAM)
                return fail_line(in, r->record, r->number, err);
            return fail_record(r, b, err, "it cannot be decoded: the file is cut short or damaged%s",
                               in->kind == LW_FILE_CRAM
                                   ? ", or it was written with another reference: convert it to "
                                     "BAM first, or name that reference in REF_PATH"
                                   : "");
        }
        if (ret < 0)
            break;
        r->number++;
        uint16_t flag = r->record->core.flag;
        if (flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY)) {
            r->counts.secondary += (flag & BAM_FSECONDARY) != 0;
            r->counts.supplementary += (flag & BAM_FSECONDARY) == 0;
            continue;
        }
        read->number = r->number;
        LW_TRY(check_name(in, r->number, r->record, err));
        *got = true;
        return copy_record(r, b, read, r->record, err);
    }
    return check_end(r, in, err);
}

static lw_status unknown_reference(const input *in, int64_t number, const bam1_t *record, const char *column,
                                   const char *name, lw_error *err)
{
    return lw_fail(err, LW_E_INPUT,
                   "%s: record %lld (%.254s): %s %.254s is not among the header's @SQ lines: give the file "
                   "its own header (samtools reheader)",
                   in->shown, (long long)number, bam_get_qname(record), column, name);
}

/* htslib makes a record unmapped, and forgets RNAME, where the header does not have it or where POS is 0; the
 * same with the mate's; and where CIGAR is *, it sets the flag. Here the record is what its line says, or
 * refused. */
static lw_status keep_places(const input *in, int64_t number, bam1_t *record, lw_error *err)
{
    const char *line = in->hts->line.s;
    bam1_core_t *c = &record->core;
    if (!(c->flag & BAM_FUNMAP) && c->tid >= 0 && c->mtid >= 0)
        return LW_OK;
    const char *name = sam_column(line, RNAME);
    if (c->tid < 0 && strcmp(name, "*") != 0) {
        c->tid = sam_hdr_name2tid(in->header, name);
        if (c->tid < 0)
            return unknown_reference(in, number, record, "RNAME", name, err);
    }
    const char *flag = sam_column(line, FLAG);
    if (isdigit((unsigned char)*flag))
        c->flag = (uint16_t)strtoul(flag, NULL, 0);
    name = sam_column(line, RNEXT);
    if (c->mtid < 0 && strcmp(name, "=") == 0) {
        c->mtid = c->tid;
    } else if (c->mtid < 0 && strcmp(name, "*") != 0) {
        c->mtid = sam_hdr_name2tid(in->header, name);
        if (c->mtid < 0)
            return unknown_reference(in, number, record, "RNEXT", name, err);
    }
    return LW_OK;
}

/* Whether a BAM that cannot be read on ends within a record, so that the rest of that is not known. */
static bool ends_within(const input *in)
{
    BGZF *stream = in->hts->fp.bgzf;
    return stream->errcode || ((!stream->is_compressed || stream->no_eof_block) && bgzf_peek(stream) == -1);
}

lw_status lw_seqio_record(lw_seqio *r, bam1_t *record, bool *got, lw_error *err)
{
    input *in = &r->inputs[0];
    *got = false;
    if (r->number % STOP_INTERVAL == 0 && lw_stopped(r->options.host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    errno = 0;
    forget_record(record);
    int ret = read_whole(in, record);
    if (ret == -1)
        return check_end(r, in, err);
    r->number++;
    if (ret >= 0) {
        *got = true;
        if (in->kind == LW_FILE_SAM)
            LW_TRY(keep_places(in, r->number, record, err));
        return check_name(in, r->number, record, err);
    }
    /* htslib says only that it refuses the record; what it has read so far says why */
    const bool whole = in->kind == LW_FILE_SAM || (in->kind == LW_FILE_BAM && !ends_within(in));
    const int64_t covered = whole ? covered_letters(record) : record->core.l_qseq;
    if (covered != record->core.l_qseq)
        return lw_fail(err, LW_E_INPUT, "%s: record %lld (%.254s): its CIGAR covers %lld letters, SEQ has %d",
                       in->shown, (long long)r->number, bam_get_qname(record), (long long)covered,
                       record->core.l_qseq);
    if (in->kind == LW_FILE_SAM)
        return fail_line(in, record, r->number, err);
    return lw_fail(err, LW_E_INPUT,
                   "%s: record %lld: it cannot be decoded: the file is cut short or damaged%s", in->shown,
                   (long long)r->number,
                   in->kind == LW_FILE_CRAM ? ", or it was written with another reference" : "");
}

/* --- opening -------------------------------------------------------------------------------------- */

static void close_input(input *in)
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

/* A CRAM may name places for its references: those on the network are forgotten. */
static lw_status forget_urls(input *in, lw_error *err)
{
    sam_hdr_t *header = cram_fd_get_header(in->hts->fp.cram);
    kstring_t place = KS_INITIALIZE;
    int n = header ? sam_hdr_nref(header) : 0;
    lw_status status = LW_OK;
    for (int i = 0; i < n; i++) {
        const char *name = sam_hdr_tid2name(header, i);
        if (sam_hdr_find_tag_id(header, "SQ", "SN", name, "UR", &place) == 0 && strstr(place.s, "://") &&
            strncmp(place.s, "file:", 5) != 0 && sam_hdr_remove_tag_id(header, "SQ", "SN", name, "UR") < 0) {
            status = lw_fail_memory(err, 0);
            break;
        }
    }
    free(place.s);
    return status;
}

static lw_status open_bam(const lw_seqio *r, input *in, hFILE *stream, lw_error *err)
{
    errno = 0;
    in->hts = hts_hopen(stream, in->shown, "r");
    if (!in->hts) {
        hclose_abruptly(stream);
        return lw_fail(err, LW_E_INPUT, "%s: cannot be read: the file is cut short or damaged", in->shown);
    }
    int complete = in->regular ? hts_check_EOF(in->hts) : 2;
    if (complete == 0 && in->kind != LW_FILE_SAM)
        return fail_cut_short(in, err);
    if (in->kind == LW_FILE_CRAM) {
        if (!r->options.whole_records)
            hts_set_opt(in->hts, CRAM_OPT_DECODE_MD, 0); /* NM and MD are computed anew */
        if (r->options.reference && hts_set_fai_filename(in->hts, r->options.reference) != 0)
            return lw_fail(err, LW_E_IO, "%s: the reference %s cannot be used to decode it", in->shown,
                           r->options.reference);
    }
    sam_hdr_t *header = sam_hdr_read(in->hts);
    if (!header)
        return lw_fail(err, LW_E_INPUT, "%s: its header cannot be read: the file is cut short or damaged",
                       in->shown);
    if (in->header)
        sam_hdr_destroy(header); /* opened again: the first one is known to others */
    else
        in->header = header;
    if (sam_hdr_count_lines(in->header, "SQ") < 0)
        return lw_fail(
            err, LW_E_INPUT,
            "%s: its header is not valid: each @SQ needs SN and LN, each @RG and @PG an ID, and no "
            "sequence's name stands twice",
            in->shown);
    /* Not for SAM: htslib's parallel parser loses count of lines. Not before the header: its reading asks for
     * the end-of-file block, and waits for ever where the parallel reader has met a damaged block already. */
    if (r->options.pool && lw_pool_threads(r->options.pool) > 1 && in->kind != LW_FILE_SAM) {
        htsThreadPool pool = {.pool = lw_pool_hts(r->options.pool)};
        if (!pool.pool || hts_set_thread_pool(in->hts, &pool) != 0)
            return lw_fail_memory(err, BUFFER);
    }
    return in->kind == LW_FILE_CRAM ? forget_urls(in, err) : LW_OK;
}

/* Puts the text stream before the first record and tells FASTA from FASTQ. */
static lw_status open_text(const lw_seqio *r, input *in, hFILE *stream, lw_error *err)
{
    errno = 0;
    in->text = bgzf_hopen(stream, "r");
    if (!in->text) {
        hclose_abruptly(stream);
        return lw_fail(err, LW_E_INPUT, "%s: cannot be read: the file is cut short or damaged", in->shown);
    }
    if (r->options.pool && lw_pool_threads(r->options.pool) > 1 && in->text->is_compressed &&
        !in->text->is_gzip) {
        struct hts_tpool *hts = lw_pool_hts(r->options.pool);
        if (!hts || bgzf_thread_pool(in->text, hts, 0) != 0)
            return lw_fail_memory(err, BUFFER);
    }
    if (!in->buffer && !(in->buffer = malloc(BUFFER)))
        return lw_fail_memory(err, BUFFER);
    in->line = 1;
    LW_TRY(refill(in, err));
    if (in->end >= 3 && memcmp(in->buffer, "\xEF\xBB\xBF", 3) == 0)
        in->begin = 3; /* the byte-order mark of some editors */
    int c;
    LW_TRY(skip_blank(in, &c, err));
    switch (c) {
    case '>':
        in->kind = LW_FILE_FASTA;
        return LW_OK;
    case '@':
        in->kind = LW_FILE_FASTQ;
        return LW_OK;
    case -1:
        return lw_fail(err, LW_E_INPUT, "%s: the file is empty", in->shown);
    default:
        if (in->end >= 6 && memcmp(in->buffer, "LWDB\r\n", 6) == 0)
            return lw_fail(
                err, LW_E_INPUT,
                "%s: a lanewise database, not sequences: search reads it as DB, by its name, not from a pipe",
                in->shown);
        if (isalpha(c) || c == '*' || c == '-')
            return lw_fail(
                err, LW_E_INPUT,
                "%s: line %lld: text before the first header: FASTA begins with '>', FASTQ with '@'",
                in->shown, (long long)in->line);
        return lw_fail(err, LW_E_INPUT, "%s: is not FASTA, FASTQ, SAM, BAM or CRAM", in->shown);
    }
}

static lw_status open_input(const lw_seqio *r, input *in, lw_error *err)
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
        return open_bam(r, in, stream, err);
    case cram:
        in->kind = LW_FILE_CRAM;
        return open_bam(r, in, stream, err);
    case sam:
        in->kind = LW_FILE_SAM;
        return open_bam(r, in, stream, err);
    default:
        break;
    }
    if (format.category == variant_data || format.category == index_file || format.category == region_list) {
        hclose_abruptly(stream);
        return lw_fail(err, LW_E_INPUT, "%s: holds no sequences: FASTA, FASTQ, SAM, BAM or CRAM are read",
                       in->shown);
    }
    return open_text(r, in, stream, err);
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
        input *in = &r->inputs[i];
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
        input *in = &r->inputs[r->current];
        if (b->n % r->options.group == 0 &&
            ((max_records > 0 && b->n >= max_records) || (max_letters > 0 && b->letters >= max_letters)))
            break;
        if (b->n % STOP_INTERVAL == 0 && lw_stopped(r->options.host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
        LW_TRY(reserve(&b->read, &b->read_capacity, b->n + 1, sizeof *b->read, err));
        lw_read *read = &b->read[b->n];
        *read = (lw_read){.qual = -1, .aux = -1, .input = r->current};
        bool got;
        LW_TRY(in->text ? read_text(r, b, read, &got, err) : read_bam(r, b, read, &got, err));
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
        const input *in = &r->inputs[i];
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
