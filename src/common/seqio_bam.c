/* seqio_bam.c - SAM, BAM and CRAM into batches, and record by record, by htslib. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/cram.h>

#include "common/seqio_input.h"

enum { LINE_ROOM = 1 << 12 }; /* bytes of a SAM line to make room for at least */

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
    LW_TRY(lw_batch_reserve(&b->aux, &b->aux_capacity, b->n_aux + (end - p), 1, err));
    read->aux = b->n_aux;
    while (p < end) {
        int64_t size = tag_size(p, end);
        if (size == 0)
            return lw_fail_record(r, b, err, "its optional fields are damaged");
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
    LW_TRY(lw_batch_reserve_text(b, (int64_t)name_len + 2 * (int64_t)len + 3, err));
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

static lw_status fail_cut_short(const lw_input *in, lw_error *err)
{
    return lw_fail(
        err, LW_E_INPUT,
        "%s: no end-of-file block at its end: the file was cut short (or its writer did not finish)",
        in->shown);
}

/* The end: for a pipe, only now can one see whether it was the real one. */
static lw_status check_end(const lw_seqio *r, lw_input *in, lw_error *err)
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
static lw_status check_name(const lw_input *in, int64_t number, const bam1_t *record, lw_error *err)
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
static int next_line(lw_input *in, kstring_t *line)
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
static int read_whole(lw_input *in, bam1_t *record)
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
static void explain(const lw_input *in, const bam1_t *record, char *text, size_t size)
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
        snprintf(text, size, "it has %d of the %d columns: is the file cut short or damaged?", columns,
                 COLUMNS);
        return;
    }
    if (strcspn(line, "\t") > LW_BAM_NAME_MAX) {
        snprintf(text, size, "its name has more than %d letters", LW_BAM_NAME_MAX);
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
                     shown < LW_SEQIO_NAME_SHOWN ? (int)shown : LW_SEQIO_NAME_SHOWN, value);
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

/* Whether packed text cannot be unpacked near the line that was read last. What htslib gives of damaged data
 * may look like lines for a while, until a checksum comes. */
static bool is_damaged(const lw_input *in)
{
    enum { LOOK = 64, PART = 1 << 16 };
    BGZF *packed = in->hts->format.compression != no_compression ? in->hts->fp.bgzf : NULL;
    char *part = packed ? malloc(PART) : NULL;
    ssize_t n = part ? PART : 0;
    for (int i = 0; n > 0 && packed->errcode == 0 && i < LOOK; i++)
        n = bgzf_read(packed, part, PART);
    free(part);
    return n < 0 || (packed && packed->errcode != 0);
}

static lw_status fail_line(const lw_input *in, const bam1_t *record, int64_t number, lw_error *err)
{
    char why[160];
    if (in->hts->format.compression == no_compression && herrno(in->hts->fp.hfile))
        return lw_fail(err, LW_E_IO, "%s: reading failed near line %lld: %s", in->shown,
                       (long long)in->hts->lineno, strerror(herrno(in->hts->fp.hfile)));
    if (is_damaged(in))
        return lw_fail(
            err, LW_E_INPUT,
            "%s: the compressed data are cut short or damaged near line %lld: fetch the file again",
            in->shown, (long long)in->hts->lineno);
    explain(in, record, why, sizeof why);
    return lw_fail(err, LW_E_INPUT, "%s: record %lld: line %lld is not a valid SAM record: %s", in->shown,
                   (long long)number, (long long)in->hts->lineno, why);
}

lw_status lw_bam_read(lw_seqio *r, lw_read_batch *b, lw_read *read, bool *got, lw_error *err)
{
    lw_input *in = &r->inputs[r->current];
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
            return lw_fail_record(r, b, err, "it cannot be decoded: the file is cut short or damaged%s",
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

static lw_status unknown_reference(const lw_input *in, int64_t number, const bam1_t *record,
                                   const char *column, const char *name, lw_error *err)
{
    return lw_fail(err, LW_E_INPUT,
                   "%s: record %lld (%.254s): %s %.254s is not among the header's @SQ lines: give the file "
                   "its own header (samtools reheader)",
                   in->shown, (long long)number, bam_get_qname(record), column, name);
}

/* htslib makes a record unmapped, and forgets RNAME, where the header does not have it or where POS is 0; the
 * same with the mate's; and where CIGAR is *, it sets the flag. Here the record is what its line says, or
 * refused. */
static lw_status keep_places(const lw_input *in, int64_t number, bam1_t *record, lw_error *err)
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
static bool ends_within(const lw_input *in)
{
    BGZF *stream = in->hts->fp.bgzf;
    return stream->errcode || ((!stream->is_compressed || stream->no_eof_block) && bgzf_peek(stream) == -1);
}

lw_status lw_seqio_record(lw_seqio *r, bam1_t *record, bool *got, lw_error *err)
{
    lw_input *in = &r->inputs[0];
    *got = false;
    if (r->number % LW_SEQIO_STOP_INTERVAL == 0 && lw_stopped(r->options.host))
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

/* A CRAM may name places for its references: those on the network are forgotten. */
static lw_status forget_urls(lw_input *in, lw_error *err)
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

lw_status lw_bam_open(const lw_seqio *r, lw_input *in, hFILE *stream, lw_error *err)
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
            return lw_fail_memory(err, 0);
    }
    return in->kind == LW_FILE_CRAM ? forget_urls(in, err) : LW_OK;
}
