/* samout.c - SAM, BAM and CRAM.
 *
 * BAM and CRAM records are written by htslib, which compresses BAM on the pool. SAM text is
 * formatted where the record is made, in parallel, and only written in order. Protein is SAM text of our own
 * making: a bam1_t packs letters into 4 bits. */
#include "align/samout.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <htslib/hts.h>

#include "align/mates.h"
#include "align/samfile.h"
#include "align/tags.h"
#include "common/fail.h"

typedef struct samout {
    lw_sink sink;
    lw_samout_options o;
    lw_outfile *file;
    sam_hdr_t *header;
    char *read_group_id; /* NULL: none */
    lw_samfile *records; /* BAM and CRAM */
    atomic_flag *said;   /* that a name looks like a header line; reached through a const self */
} samout;

/* ---- header ---------------------------------------------------------------------------------- */

lw_status lw_sam_ur(const char *path, kstring_t *out, lw_error *err)
{
    struct stat about;
    char *whole = realpath(path, NULL);
    bool plain = whole && stat(whole, &about) == 0 && S_ISREG(about.st_mode);
    for (const char *p = whole; plain && *p; p++)
        plain = *p > ' ' && *p <= '~';
    int bad = plain && ksprintf(out, "file://%s", whole) < 0;
    free(whole);
    return bad ? lw_fail_memory(err, strlen(path)) : LW_OK;
}

/* The value of a TAG:value field of one header line, as a length from *value. */
static size_t header_field(const char *line, const char *tag, const char **value)
{
    for (const char *p = strchr(line, '\t'); p && *p; p = strchr(p + 1, '\t')) {
        if (strncmp(p + 1, tag, 2) == 0 && p[3] == ':') {
            *value = p + 4;
            return strcspn(*value, "\t\n");
        }
    }
    return 0;
}

/* "@RG\tID:x" as the shell hands it over, with \t for tabs, becomes a header line. */
static lw_status read_group_line(const char *text, kstring_t *line, char **id, lw_error *err)
{
    int bad = 0;
    for (const char *p = text; *p; p++) {
        if (p[0] == '\\' && p[1] == 't') {
            bad |= kputc('\t', line) < 0;
            p++;
        } else if (*p == '\n' || *p == '\r') {
            return lw_fail(err, LW_E_ARG, "--rg: a line break inside the read group line");
        } else {
            bad |= kputc(*p, line) < 0;
        }
    }
    if (bad)
        return lw_fail_memory(err, line->l + 1);
    const char *value = NULL;
    size_t length = line->s ? header_field(line->s, "ID", &value) : 0;
    if (!line->s || strncmp(line->s, "@RG\t", 4) != 0 || length == 0)
        return lw_fail(err, LW_E_ARG,
                       "--rg: '%s' is not a read group line such as '@RG\\tID:run1\\tSM:sample'", text);
    for (const char *p = strchr(line->s, '\t'); p; p = strchr(p + 1, '\t'))
        if (!isalpha((unsigned char)p[1]) || !isalnum((unsigned char)p[2]) || p[3] != ':' || p[4] == '\t' ||
            p[4] == '\0')
            return lw_fail(err, LW_E_ARG, "--rg: '%s': a field is not TAG:value", text);
    for (const char *p = strchr(line->s, '\t'); p; p = strchr(p + 1, '\t'))
        for (const char *q = strchr(p + 1, '\t'); q; q = strchr(q + 1, '\t'))
            if (p[1] == q[1] && p[2] == q[2])
                return lw_fail(err, LW_E_ARG, "--rg: '%s': %.2s stands twice", text, p + 1);
    *id = strndup(value, length);
    return *id ? LW_OK : lw_fail_memory(err, length);
}

/* The line of `type` with this ID in the header text made so far; NULL: none. */
static const char *line_with_id(const kstring_t *text, const char *type, const char *id, size_t id_length)
{
    const char *line = text->s;
    while (line && *line) {
        const char *value = NULL;
        if (strncmp(line, type, 4) == 0 && header_field(line, "ID", &value) == id_length &&
            strncmp(value, id, id_length) == 0)
            return line;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return NULL;
}

static bool same_line(const char *a, const char *b)
{
    size_t length = strcspn(a, "\n");
    return length == strcspn(b, "\n") && strncmp(a, b, length) == 0;
}

/* @RG, @PG and @CO lines of one input. Equal lines of several inputs are kept once; a program whose ID
 * another input uses for something else is renamed, a read group of that kind is refused. */
static lw_status keep_lines(const samout *self, int input, kstring_t *text, lw_error *err)
{
    const char *all = sam_hdr_str(self->o.header[input]);
    kstring_t renamed = {0}; /* "\told\tnew\n" ... */
    lw_status status = LW_OK;
    int bad = 0;
    for (const char *line = all; line && *line && !bad;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        size_t length = strcspn(line, "\n");
        bool is_rg = strncmp(line, "@RG\t", 4) == 0, is_pg = strncmp(line, "@PG\t", 4) == 0;
        if (strncmp(line, "@CO\t", 4) == 0) {
            bad |= kputsn(line, length, text) < 0;
            bad |= kputc('\n', text) < 0;
        }
        if (!is_rg && !is_pg)
            continue;
        const char *id = NULL;
        size_t id_length = header_field(line, "ID", &id);
        const char *other = line_with_id(text, is_rg ? "@RG\t" : "@PG\t", id, id_length);
        if (other && same_line(line, other))
            continue;
        if (other && is_rg) {
            status =
                lw_fail(err, LW_E_INPUT,
                        "%s: read group '%.*s' means something else in an earlier input: rename one with "
                        "samtools addreplacerg, or align the files one by one",
                        self->o.header_path[input], (int)id_length, id);
            break;
        }
        if (!is_pg) {
            bad |= kputsn(line, length, text) < 0;
            bad |= kputc('\n', text) < 0;
            continue;
        }
        /* @PG: its own ID and the PP that names another one may have to be renamed */
        kstring_t new_id = {0};
        bad |= kputsn(id, id_length, &new_id) < 0;
        for (int k = 1; other && !bad; k++) {
            new_id.l = id_length;
            bad |= ksprintf(&new_id, ".%d", k) < 0;
            other = bad ? NULL : line_with_id(text, "@PG\t", new_id.s, new_id.l);
        }
        if (new_id.l != id_length)
            bad |= ksprintf(&renamed, "\t%.*s\t%s\n", (int)id_length, id, new_id.s) < 0;
        const char *field = line + 3;
        bad |= kputs("@PG", text) < 0;
        while (field < line + length && !bad) {
            size_t size = strcspn(field + 1, "\t\n");
            const char *to = NULL;
            if (strncmp(field + 1, "ID:", 3) == 0) {
                to = new_id.s;
            } else if (strncmp(field + 1, "PP:", 3) == 0 && renamed.s) {
                kstring_t key = {0};
                bad |= ksprintf(&key, "\t%.*s\t", (int)size - 3, field + 4) < 0;
                to = bad ? NULL : strstr(renamed.s, key.s);
                to = to ? to + key.l : NULL;
                ks_free(&key);
            }
            if (to)
                bad |= ksprintf(text, "\t%.3s%.*s", field + 1, (int)strcspn(to, "\n"), to) < 0;
            else
                bad |= kputsn(field, size + 1, text) < 0;
            field += size + 1;
        }
        bad |= kputc('\n', text) < 0;
        ks_free(&new_id);
    }
    ks_free(&renamed);
    return bad ? lw_fail_memory(err, text->l + 1) : status;
}

static lw_status make_header(samout *self, lw_error *err)
{
    const lw_samout_options *o = &self->o;
    kstring_t text = {0}, group = {0};
    lw_status status = LW_OK;
    int bad = 0;
    bad |= kputs(o->n_headers > 0 ? "@HD\tVN:1.6\tSO:unsorted\n" : "@HD\tVN:1.6\tSO:unsorted\tGO:query\n",
                 &text) < 0;
    for (int64_t i = 0; i < o->n_sq; i++) {
        bad |= ksprintf(&text, "@SQ\tSN:%s\tLN:%d\tM5:%s", o->sq[i].name, o->sq[i].len, o->sq[i].md5) < 0;
        if (o->ur)
            bad |= ksprintf(&text, "\tUR:%s", o->ur) < 0;
        bad |= kputc('\n', &text) < 0;
    }
    for (int i = 0; i < o->n_headers && status == LW_OK; i++)
        status = keep_lines(self, i, &text, err);
    if (status == LW_OK && o->read_group) {
        status = read_group_line(o->read_group, &group, &self->read_group_id, err);
        const char *other =
            status == LW_OK ? line_with_id(&text, "@RG\t", self->read_group_id, strlen(self->read_group_id))
                            : NULL;
        if (other && !same_line(other, group.s))
            status = lw_fail(err, LW_E_ARG, "--rg: the input has another read group with ID '%s'",
                             self->read_group_id);
        else if (status == LW_OK && !other)
            bad |= ksprintf(&text, "%s\n", group.s) < 0;
    }
    if (status == LW_OK && bad)
        status = lw_fail_memory(err, text.l + 1);
    if (status == LW_OK) {
        self->header = sam_hdr_init();
        if (!self->header || !text.s)
            status = lw_fail_memory(err, text.l);
        else if (sam_hdr_add_lines(self->header, text.s, text.l) < 0)
            status = lw_fail(err, LW_E_INPUT, "the header lines of the input could not be understood");
        else
            status = lw_samfile_add_program(self->header, o->command_line, err);
        if (status == LW_OK && !sam_hdr_str(self->header))
            status = lw_fail_memory(err, text.l);
    }
    ks_free(&text);
    ks_free(&group);
    return status;
}

/* ---- records --------------------------------------------------------------------------------- */

/* The fixed fields of a record, before anything is packed. */
typedef struct fields {
    uint16_t flag;
    int32_t target, mate_target; /* rows of @SQ; -1: none */
    int32_t position, mate_position;
    int64_t template_length;
    uint8_t mapq;
} fields;

static int32_t sq_row(const samout *self, const lw_alignment *a)
{
    return self->o.targets_by_name ? sam_hdr_name2tid(self->header, a->target_name) : a->target;
}

/* The record's place, 0-based, on row `row` of @SQ. An alignment of insertions alone covers no letter of the
 * reference and may stand behind its last one, where SAM has no place: then it is that of the last one. */
static int32_t sq_place(const samout *self, const lw_alignment *a, int32_t row)
{
    if (a->tstart < a->tend)
        return a->tstart;
    int32_t last = (int32_t)sam_hdr_tid2len(self->header, row) - 1;
    return a->tstart < last ? a->tstart : last;
}

static lw_mate_end mate_end(const lw_alignment *a)
{
    return (lw_mate_end){.target = a->target, .tstart = a->tstart, .tend = a->tend, .reverse = a->reverse};
}

/* Mate fields as samtools fixmate writes them: an unmapped mate stands at the place of the mapped one. */
static fields make_fields(const samout *self, const lw_aligned_read *read, int k)
{
    enum { KEPT_OF_SINGLE = BAM_FPAIRED | BAM_FREAD1 | BAM_FREAD2, KEPT = BAM_FQCFAIL | BAM_FDUP };
    const lw_alignment *a = &read->alignment[k];
    const lw_read *in = &read->batch->read[read->index];
    fields f = {.target = -1, .mate_target = -1, .position = -1, .mate_position = -1};
    bool mapped = a->target >= 0;
    f.flag = in->flag & KEPT;
    f.flag |= mapped ? (a->reverse ? BAM_FREVERSE : 0) : BAM_FUNMAP;
    if (k > 0)
        f.flag |= BAM_FSECONDARY;
    if (mapped) {
        f.target = sq_row(self, a);
        f.position = sq_place(self, a, f.target);
        f.mapq = k > 0 ? 0 : a->mapq;
    }
    if (!read->mate) {
        f.flag |= in->flag & KEPT_OF_SINGLE;
        return f;
    }
    const lw_alignment *mate = read->mate;
    bool mate_mapped = mate->target >= 0;
    f.flag |= BAM_FPAIRED | (read->which_mate == 1 ? BAM_FREAD1 : BAM_FREAD2);
    f.flag |= mate_mapped ? (mate->reverse ? BAM_FMREVERSE : 0) : BAM_FMUNMAP;
    const lw_alignment *at = mate_mapped ? mate : &read->alignment[0];
    if (at->target >= 0) {
        f.mate_target = sq_row(self, at);
        f.mate_position = sq_place(self, at, f.mate_target);
        if (!mapped) {
            f.target = f.mate_target;
            f.position = f.mate_position;
        }
    }
    if (k == 0) {
        if (read->proper)
            f.flag |= BAM_FPROPER_PAIR;
        lw_mate_end here = mate_end(a), there = mate_end(mate);
        f.template_length = lw_template_length(&here, &there);
    }
    return f;
}

/* The whole CIGAR with soft clips, as words in s. Returns their number, < 0: no memory. */
static int64_t clipped_cigar(kstring_t *s, const lw_alignment *a, int32_t read_len)
{
    s->l = 0;
    if (a->target < 0)
        return 0;
    if (ks_resize(s, ((size_t)a->n_cigar + 2) * sizeof(uint32_t)) < 0)
        return -1;
    uint32_t *op = (uint32_t *)(void *)s->s;
    int64_t n = 0;
    if (a->qstart > 0)
        op[n++] = bam_cigar_gen((uint32_t)a->qstart, BAM_CSOFT_CLIP);
    memcpy(op + n, a->cigar, (size_t)a->n_cigar * sizeof *op);
    n += a->n_cigar;
    if (a->qend < read_len)
        op[n++] = bam_cigar_gen((uint32_t)(read_len - a->qend), BAM_CSOFT_CLIP);
    return n;
}

/* Our own tags in BAM's encoding. */
static int put_tags(const samout *self, const lw_aligned_read *read, int k, bool has_aux, kstring_t *s,
                    kstring_t *cigar)
{
    const lw_alignment *a = &read->alignment[k];
    int bad = 0;
    if (self->read_group_id && !has_aux)
        bad |= kputs("RGZ", s) < 0 || kputsn(self->read_group_id, strlen(self->read_group_id) + 1, s) < 0;
    if (a->target >= 0) {
        const char *query = (a->reverse ? read->reversed : read->forward) + a->qstart;
        bad |= lw_tag_put_integer(s, "AS", a->score) || lw_tag_put_integer(s, "NM", a->counts.nm) ||
               kputs("MDZ", s) < 0;
        bad |= lw_path_md(self->o.match, query, a->target_letters + a->tstart, a->cigar, a->n_cigar, s);
        bad |= kputc('\0', s) < 0;
        if (k == 0)
            bad |= lw_tag_put_integer(s, "XS", a->second == LW_NO_SECOND ? 0 : a->second);
    }
    if (read->mate && (read->mate->target >= 0 || a->target >= 0)) {
        if (read->mate->target >= 0)
            bad |= lw_tag_put_integer(s, "MQ", read->mate->mapq);
        int64_t n = clipped_cigar(cigar, read->mate, read->mate_len);
        bad |= n < 0 || kputs("MCZ", s) < 0;
        bad |= !bad && (lw_path_text((const uint32_t *)(void *)cigar->s, n, s) || kputc('\0', s) < 0);
    }
    return bad;
}

static bam1_t *next_record(lw_chunk *chunk)
{
    if (chunk->n_record == chunk->record_capacity) {
        int64_t capacity = 2 * chunk->record_capacity + 64;
        bam1_t **grown = realloc(chunk->record, (size_t)capacity * sizeof *grown);
        if (!grown)
            return NULL;
        chunk->record = grown;
        while (chunk->record_capacity < capacity) {
            bam1_t *record = bam_init1();
            if (!record)
                return NULL;
            chunk->record[chunk->record_capacity++] = record;
        }
    }
    return chunk->record[chunk->n_record++];
}

/* Qualities as BAM holds them, in the order of the stored sequence; NULL: none, or no memory (*bad). */
static const char *stored_quality(const lw_aligned_read *read, bool reverse, kstring_t *s, int *bad)
{
    const char *qual = lw_read_qual(read->batch, read->index);
    int32_t len = read->batch->read[read->index].len;
    if (!qual || len == 0)
        return NULL;
    if (ks_resize(s, (size_t)len + 1) < 0) {
        *bad = 1;
        return NULL;
    }
    for (int32_t i = 0; i < len; i++)
        s->s[i] = (char)(qual[reverse ? len - 1 - i : i] - 33);
    return s->s;
}

/* The k-th alignment of a read as a bam1_t. */
static lw_status fill_record(const samout *self, lw_chunk *chunk, const lw_aligned_read *read, int k,
                             bam1_t *record, lw_error *err)
{
    const lw_alignment *a = &read->alignment[k];
    const lw_read *in = &read->batch->read[read->index];
    const uint8_t *aux = lw_read_aux(read->batch, read->index);
    kstring_t *cigar = &chunk->scratch[0], *tags = &chunk->scratch[1], *qualities = &chunk->scratch[2];
    fields f = make_fields(self, read, k);
    int bad = 0;
    tags->l = 0;
    if (aux)
        bad |= kputsn((const char *)aux, (size_t)in->aux_len, tags) < 0;
    bad |= put_tags(self, read, k, aux != NULL, tags, cigar);
    bool reverse = a->target >= 0 && a->reverse;
    const char *quality = stored_quality(read, reverse, qualities, &bad);
    int64_t n_cigar = clipped_cigar(cigar, a, in->len);
    if (bad || n_cigar < 0)
        return lw_fail_memory(err, tags->l + (size_t)in->len);
    if (bam_set1(record, (size_t)read->name_len, read->name, f.flag, f.target, f.position, f.mapq,
                 (size_t)n_cigar, (const uint32_t *)(void *)cigar->s, f.mate_target, f.mate_position,
                 f.template_length, (size_t)in->len, reverse ? read->reversed : read->forward, quality,
                 tags->l) < 0)
        return lw_fail(err, LW_E_INTERNAL, "record %lld (%s) could not be packed: %s", (long long)in->number,
                       read->name, strerror(errno));
    if (tags->l > 0) /* tags->s may be NULL */
        memcpy(record->data + record->l_data, tags->s, tags->l);
    record->l_data += (int)tags->l;
    if (aux && self->read_group_id && !bam_aux_get(record, "RG") &&
        bam_aux_append(record, "RG", 'Z', (int)strlen(self->read_group_id) + 1,
                       (const uint8_t *)self->read_group_id) < 0)
        return lw_fail_memory(err, tags->l);
    return LW_OK;
}

static lw_status format_records(const lw_sink *sink, lw_chunk *chunk, const lw_aligned_read *read,
                                lw_error *err)
{
    const samout *self = (const samout *)sink;
    for (int k = 0; k < read->n; k++) {
        if (read->alignment[k].target < 0 && !self->o.unmapped)
            continue;
        bam1_t *record = next_record(chunk);
        if (!record)
            return lw_fail_memory(err, sizeof *record);
        LW_TRY(fill_record(self, chunk, read, k, record, err));
    }
    return LW_OK;
}

/* SAM text of DNA: the same records, made into lines at once. */
static lw_status format_text(const lw_sink *sink, lw_chunk *chunk, const lw_aligned_read *read, lw_error *err)
{
    const samout *self = (const samout *)sink;
    for (int k = 0; k < read->n; k++) {
        if (read->alignment[k].target < 0 && !self->o.unmapped)
            continue;
        chunk->n_record = 0;
        bam1_t *record = next_record(chunk);
        if (!record)
            return lw_fail_memory(err, sizeof *record);
        LW_TRY(fill_record(self, chunk, read, k, record, err));
        if (read->name[0] == '@' && !atomic_flag_test_and_set(self->said))
            lw_say(self->o.host, LW_SAY_WARNING,
                   "read names begin with '@' (%s): in SAM text other programs may take such a line for a "
                   "header "
                   "line; BAM has no such trouble",
                   read->name);
        kstring_t *line = &chunk->scratch[0];
        if (sam_format1(self->header, record, line) < 0 || kputsn(line->s, line->l, &chunk->text) < 0 ||
            kputc('\n', &chunk->text) < 0)
            return lw_fail_memory(err, chunk->text.l);
    }
    chunk->n_record = 0;
    return LW_OK;
}

/* SAM text of protein. */
static lw_status format_protein(const lw_sink *sink, lw_chunk *chunk, const lw_aligned_read *read,
                                lw_error *err)
{
    const samout *self = (const samout *)sink;
    const lw_read *in = &read->batch->read[read->index];
    const char *qual = lw_read_qual(read->batch, read->index);
    kstring_t *s = &chunk->text, *cigar = &chunk->scratch[0];
    int bad = 0;
    for (int k = 0; k < read->n; k++) {
        const lw_alignment *a = &read->alignment[k];
        if (a->target < 0 && !self->o.unmapped)
            continue;
        fields f = make_fields(self, read, k);
        int64_t n_cigar = clipped_cigar(cigar, a, in->len);
        if (n_cigar < 0)
            return lw_fail_memory(err, (size_t)a->n_cigar);
        bad |= kputsn(read->name, read->name_len, s) < 0;
        bad |= ksprintf(s, "\t%d\t%s\t%d\t%d\t", f.flag, f.target < 0 ? "*" : self->o.sq[f.target].name,
                        f.position + 1, f.mapq) < 0;
        bad |= lw_path_text((const uint32_t *)(void *)cigar->s, n_cigar, s);
        bad |= kputs("\t*\t0\t0\t", s) < 0;
        for (int32_t i = 0; i < in->len; i++)
            bad |= kputc(toupper((unsigned char)read->forward[i]), s) < 0;
        bad |= in->len == 0 && kputc('*', s) < 0;
        bad |= kputc('\t', s) < 0 || (qual && in->len > 0 ? kputsn(qual, in->len, s) : kputc('*', s)) < 0;
        if (self->read_group_id)
            bad |= ksprintf(s, "\tRG:Z:%s", self->read_group_id) < 0;
        if (a->target >= 0) {
            bad |= ksprintf(s, "\tAS:i:%d\tNM:i:%lld\tMD:Z:", a->score, (long long)a->counts.nm) < 0;
            bad |= lw_path_md(self->o.match, read->forward + a->qstart, a->target_letters + a->tstart,
                              a->cigar, a->n_cigar, s);
            if (k == 0)
                bad |= ksprintf(s, "\tXS:i:%d", a->second == LW_NO_SECOND ? 0 : a->second) < 0;
        }
        bad |= kputc('\n', s) < 0;
    }
    return bad ? lw_fail_memory(err, s->l) : LW_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static lw_status write_lines(lw_sink *sink, lw_chunk *chunk, lw_error *err)
{
    samout *self = (samout *)sink;
    lw_status status =
        chunk->text.l ? lw_outfile_write(self->file, chunk->text.s, chunk->text.l, err) : LW_OK;
    chunk->text.l = 0;
    return status;
}

static lw_status write_records(lw_sink *sink, lw_chunk *chunk, lw_error *err)
{
    samout *self = (samout *)sink;
    for (int64_t i = 0; i < chunk->n_record; i++)
        LW_TRY(lw_samfile_write(self->records, chunk->record[i], err));
    chunk->n_record = 0;
    return lw_samfile_check(self->records, err);
}

static lw_status close_samout(lw_sink *sink, lw_status so_far, lw_error *err)
{
    samout *self = (samout *)sink;
    so_far = lw_samfile_close(self->records, so_far, err);
    sam_hdr_destroy(self->header);
    free(self->read_group_id);
    free(self->said);
    free(self);
    return so_far;
}

lw_status lw_samout_open(lw_sink **out, const lw_samout_options *options, lw_outfile *file, lw_error *err)
{
    samout *self = calloc(1, sizeof *self);
    if (!self)
        return lw_fail_memory(err, sizeof *self);
    self->o = *options;
    self->file = file;
    self->said = malloc(sizeof *self->said);
    if (!self->said) {
        free(self);
        return lw_fail_memory(err, sizeof *self->said);
    }
    atomic_flag_clear(self->said);
    self->sink = (lw_sink){.format = format_records, .write = write_records, .close = close_samout};
    lw_status status = make_header(self, err);
    if (status == LW_OK && options->format == LW_FORMAT_SAM) {
        self->sink.format = options->type == LW_PROTEIN ? format_protein : format_text;
        self->sink.write = write_lines;
        const char *text = sam_hdr_str(self->header);
        status = lw_outfile_write(file, text, strlen(text), err);
    } else if (status == LW_OK) {
        /* Records in the order of the reads jump between references: each slice of CRAM is to hold all. */
        lw_samfile_options records = {.format = options->format,
                                      .header = self->header,
                                      .pool = options->pool,
                                      .fasta = options->fasta,
                                      .many_references = true};
        status = lw_samfile_open(&self->records, &records, file, err);
    }
    if (status != LW_OK)
        return close_samout(&self->sink, status, err);
    *out = &self->sink;
    return LW_OK;
}
