/* seqio_text.c - FASTA and FASTQ into batches.
 *
 * A parser of our own over htslib's BGZF stream (which takes plain, gzip and bgzip alike): kseq.h, made for
 * the same place, passes in silence over what stands before a header or between records, loops for ever when
 * the stream fails, and writes past its buffer when memory runs out. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/seqio_input.h"

enum { BUFFER = 1 << 18 }; /* bytes of text per read; larger ones gain nothing */

/* 2^31 - 1: lengths and positions are int32 in BAM and in the kernels. */
#define MAX_LETTERS INT32_MAX

/* --- text streams --------------------------------------------------------------------------------- */

static lw_status fail_stream(const lw_input *in, lw_error *err)
{
    if (errno && errno != EIO)
        return lw_fail(err, LW_E_IO, "%s: reading failed near line %lld: %s", in->shown, (long long)in->line,
                       strerror(errno));
    return lw_fail(err, LW_E_INPUT,
                   "%s: the compressed data are cut short or damaged near line %lld: fetch the file again",
                   in->shown, (long long)in->line);
}

/* The next bytes into the buffer; none at the end of the stream. */
static lw_status refill(lw_input *in, lw_error *err)
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
static lw_status peek(lw_input *in, int *c, lw_error *err)
{
    if (in->begin >= in->end)
        LW_TRY(refill(in, err));
    *c = in->begin < in->end ? in->buffer[in->begin] : -1;
    return LW_OK;
}

/* Appends the rest of the line to the batch's text, without its end (LF or CR LF), and room for one more
 * byte. *ended: there was an LF, not the end of the stream. */
static lw_status append_line(lw_input *in, lw_read_batch *b, bool *ended, lw_error *err)
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
        LW_TRY(lw_batch_reserve_text(b, n + 1, err));
        memcpy(b->text + b->n_text, from, (size_t)n);
        b->n_text += n;
        in->begin += n;
        if (stop) {
            in->begin++;
            in->line++;
            *ended = true;
        }
    }
    LW_TRY(lw_batch_reserve_text(b, 1, err));
    if (b->n_text > begin && b->text[b->n_text - 1] == '\r')
        b->n_text--;
    return LW_OK;
}

/* Takes line ends, and the white space of lines that hold nothing else, up to the next record. */
static lw_status skip_blank(lw_input *in, int *c, lw_error *err)
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
    lw_input *in = &r->inputs[r->current];
    int64_t begin = b->n_text, line = in->line;
    LW_TRY(append_line(in, b, ended, err));
    int64_t n = b->n_text - begin;
    if (n > INT32_MAX)
        return lw_fail_record(r, b, err, "its header line is longer than 2^31 - 1 characters");
    char *text = b->text + begin;
    int bad = 0;
    for (int64_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        bad |= (c < ' ' && c != '\t') | (c == 127);
    }
    for (int64_t i = 0; bad && i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t') || c == 127)
            return lw_fail_record(r, b, err,
                                  "control character 0x%02x at position %lld of its header (line %lld)%s", c,
                                  (long long)i + 1, (long long)line,
                                  c == '\r' ? ": do its lines end with \\r alone? Turn them into \\n" : "");
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
        return lw_fail_record(r, b, err, "its sequence is longer than 2^31 - 1 letters");
    if (!bad)
        return LW_OK;
    int64_t kept = begin;
    for (int64_t i = begin; i < end; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'))
            continue;
        if (c < ' ' || c == 127)
            return lw_fail_record(
                r, b, err, "control character 0x%02x at position %lld of its sequence; is this a text file?",
                c, (long long)(kept - sequence + 1));
        text[kept++] = (char)c;
    }
    b->n_text = kept;
    return LW_OK;
}

static lw_status read_fasta(lw_seqio *r, lw_read_batch *b, lw_read *read, lw_error *err)
{
    lw_input *in = &r->inputs[r->current];
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
    LW_TRY(lw_batch_reserve_text(b, 1, err));
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
            return lw_fail_record(r, b, err,
                                  "byte 0x%02x at position %lld of its qualities; they are '!' to '~'", c,
                                  (long long)(i - qual + 1));
    }
    return LW_OK;
}

static lw_status read_fastq(lw_seqio *r, lw_read_batch *b, lw_read *read, lw_error *err)
{
    lw_input *in = &r->inputs[r->current];
    bool ended;
    int c;
    LW_TRY(read_header(r, b, read, &ended, err));
    read->seq = b->n_text;
    for (;;) { /* sequence lines, up to the '+' */
        LW_TRY(peek(in, &c, err));
        if (c < 0)
            return lw_fail_record(r, b, err, "the file ends inside it (no '+' line): it is cut short");
        if (c == '+')
            break;
        if (c == '@')
            return lw_fail_record(
                r, b, err, "line %lld begins the next record, but there was no '+' line with qualities",
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
        return lw_fail_record(r, b, err, "the file ends inside it (no qualities): it is cut short");
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
        return lw_fail_record(r, b, err,
                              "%lld qualities for %d letters, then the file ends: it is cut short or damaged",
                              (long long)n, read->len);
    if (n != read->len)
        return lw_fail_record(
            r, b, err, "%lld qualities for %d letters (before line %lld): the file is damaged",
            (long long)(first_line < read->len ? first_line : n), read->len, (long long)in->line);
    LW_TRY(lw_batch_reserve_text(b, 1, err));
    b->text[b->n_text++] = '\0';
    return LW_OK;
}

lw_status lw_text_read(lw_seqio *r, lw_read_batch *b, lw_read *read, bool *got, lw_error *err)
{
    lw_input *in = &r->inputs[r->current];
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
        return lw_fail_record(
            r, b, err, "line %lld begins with %s where '%c' should begin a record%s", (long long)in->line,
            describe(c, text), mark,
            mark == '@' ? ": the qualities before it are longer than the sequence, or the file is damaged"
                        : "");
    }
    in->begin++;
    return mark == '>' ? read_fasta(r, b, read, err) : read_fastq(r, b, read, err);
}

/* --- opening -------------------------------------------------------------------------------------- */

lw_status lw_text_open(const lw_seqio *r, lw_input *in, hFILE *stream, lw_error *err)
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
