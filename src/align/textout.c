/* textout.c - PAF (as minimap2 writes it) and the TSV of align and pairs. */
#include "align/textout.h"

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

typedef struct textout {
    lw_sink sink;
    lw_outfile *file;
    bool unmapped;
    lw_preset preset;
} textout;

void lw_chunk_free(lw_chunk *chunk)
{
    ks_free(&chunk->text);
    for (int64_t i = 0; i < chunk->record_capacity; i++)
        bam_destroy1(chunk->record[i]);
    free(chunk->record);
    for (size_t i = 0; i < sizeof chunk->scratch / sizeof *chunk->scratch; i++)
        ks_free(&chunk->scratch[i]);
    memset(chunk, 0, sizeof *chunk);
}

/* Start and end on the read as it left the machine, which is what PAF counts in. */
static void on_read(const lw_aligned_read *read, const lw_alignment *a, int32_t *start, int32_t *end)
{
    int32_t len = read->batch->read[read->index].len;
    *start = a->reverse ? len - a->qend : a->qstart;
    *end = a->reverse ? len - a->qstart : a->qend;
    if (a->ends_only)
        *(a->reverse ? end : start) = -1;
}

static int put_text(kstring_t *s, const char *text)
{
    return kputs(text, s) < 0 || kputc('\t', s) < 0;
}

static int put_number(kstring_t *s, int64_t value)
{
    return kputll(value, s) < 0 || kputc('\t', s) < 0;
}

/* In the units of the preset: a distance, or halves as EMBOSS writes them. */
static int put_score(kstring_t *s, lw_preset preset, int64_t score)
{
    switch (preset) {
    case LW_PRESET_EDIT:
        return put_number(s, -score);
    case LW_PRESET_WATER:
    case LW_PRESET_NEEDLE:
        return ksprintf(s, "%s%lld.%c\t", score < 0 ? "-" : "", llabs((long long)score) / 2,
                        score % 2 ? '5' : '0') < 0;
    default:
        return put_number(s, score);
    }
}

static lw_status format_tsv(const lw_sink *sink, lw_chunk *chunk, const lw_aligned_read *read, lw_error *err)
{
    const textout *self = (const textout *)sink;
    kstring_t *s = &chunk->text;
    int bad = 0;
    for (int k = 0; k < read->n; k++) {
        const lw_alignment *a = &read->alignment[k];
        if (a->target < 0 && !self->unmapped)
            continue;
        bad |= kputsn(read->name, read->name_len, s) < 0 || kputc('\t', s) < 0;
        if (a->target < 0) {
            bad |= put_text(s, read->pair_target ? read->pair_target : "*");
            bad |= put_text(s, "*") || put_score(s, self->preset, 0);
            bad |= kputs("-1\t-1\t-1\t-1\t*\t-1\t0\n", s) < 0;
            continue;
        }
        int32_t start, end;
        on_read(read, a, &start, &end);
        bad |= put_text(s, a->target_name) || put_text(s, a->reverse ? "-" : "+");
        bad |= put_score(s, self->preset, a->score) || put_number(s, start) || put_number(s, end);
        bad |= put_number(s, a->tstart) || put_number(s, a->tend);
        bad |= lw_path_text(a->cigar, a->n_cigar, s) || kputc('\t', s) < 0;
        bad |= put_number(s, a->ends_only ? -1 : a->counts.nm) || kputw(a->mapq, s) < 0 || kputc('\n', s) < 0;
    }
    return bad ? lw_fail_memory(err, s->l) : LW_OK;
}

static lw_status format_paf(const lw_sink *sink, lw_chunk *chunk, const lw_aligned_read *read, lw_error *err)
{
    const textout *self = (const textout *)sink;
    kstring_t *s = &chunk->text;
    int32_t len = read->batch->read[read->index].len;
    int bad = 0;
    for (int k = 0; k < read->n; k++) {
        const lw_alignment *a = &read->alignment[k];
        if (a->target < 0 && !self->unmapped)
            continue;
        bad |= kputsn(read->name, read->name_len, s) < 0 || kputc('\t', s) < 0 || put_number(s, len);
        if (a->target < 0) { /* as minimap2 --paf-no-hit */
            bad |= kputs("0\t0\t*\t*\t0\t0\t0\t0\t0\t0\n", s) < 0;
            continue;
        }
        int32_t start, end;
        on_read(read, a, &start, &end);
        bad |= put_number(s, start) || put_number(s, end) || put_text(s, a->reverse ? "-" : "+");
        bad |= put_text(s, a->target_name) || put_number(s, a->target_len);
        bad |= put_number(s, a->tstart) || put_number(s, a->tend);
        bad |= put_number(s, a->counts.matches) || put_number(s, a->counts.columns) || put_number(s, a->mapq);
        bad |= ksprintf(s, "NM:i:%lld\tAS:i:%d\ttp:A:%c\tcg:Z:", (long long)a->counts.nm, a->score,
                        k == 0 ? 'P' : 'S') < 0;
        bad |= lw_path_text(a->cigar, a->n_cigar, s) || kputc('\n', s) < 0;
    }
    return bad ? lw_fail_memory(err, s->l) : LW_OK;
}

static lw_status write_text(lw_sink *sink, lw_chunk *chunk, lw_error *err)
{
    textout *self = (textout *)sink;
    lw_status status =
        chunk->text.l ? lw_outfile_write(self->file, chunk->text.s, chunk->text.l, err) : LW_OK;
    chunk->text.l = 0;
    return status;
}

static lw_status close_text(lw_sink *sink, lw_status so_far, lw_error *err)
{
    (void)err;
    free(sink);
    return so_far;
}

lw_status lw_textout_open(lw_sink **out, lw_align_format format, lw_outfile *file, bool unmapped,
                          lw_preset preset, lw_error *err)
{
    static const char header[] =
        "#query\ttarget\tstrand\tscore\tqstart\tqend\ttstart\ttend\tcigar\tnm\tmapq\n";
    if (format == LW_FORMAT_TSV)
        LW_TRY(lw_outfile_write(file, header, sizeof header - 1, err));
    textout *self = malloc(sizeof *self);
    if (!self)
        return lw_fail_memory(err, sizeof *self);
    *self = (textout){.sink = {.format = format == LW_FORMAT_TSV ? format_tsv : format_paf,
                               .write = write_text,
                               .close = close_text},
                      .file = file,
                      .unmapped = unmapped,
                      .preset = preset};
    *out = &self->sink;
    return LW_OK;
}
