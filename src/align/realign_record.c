/* realign_record.c - one record: what of it is aligned, whether that is optimal already, and the new fields
 * and tags. */
#include "align/realign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/align_run.h"
#include "align/realign_tuning.h"
#include "align/tags.h"
#include "common/fail.h"

void lw_realign_prepare(lw_realign_run *run)
{
    const lw_scoring *s = &run->scoring;
    for (int byte = 0; byte < 256; byte++) {
        run->code_pair[byte][0] = s->code[(uint8_t)seq_nt16_str[byte >> 4]];
        run->code_pair[byte][1] = s->code[(uint8_t)seq_nt16_str[byte & 15]];
    }
    for (int q = 0; q < s->n_letters; q++) {
        run->best[q] = INT16_MIN;
        for (int t = 0; t < s->n_letters; t++)
            if (s->score[q * LW_MAX_LETTERS + t] > run->best[q])
                run->best[q] = s->score[q * LW_MAX_LETTERS + t];
    }
    run->least_gap = lw_gap_cost(s, 1);
}

/* ---- looking ------------------------------------------------------------------------------------ */

lw_status lw_realign_look(const lw_realign_run *run, const bam1_t *record, lw_realign_item *item,
                          const char *file, int64_t number, lw_error *err)
{
    enum { ALIGNED = 1 << BAM_CMATCH | 1 << BAM_CINS | 1 << BAM_CDEL | 1 << BAM_CEQUAL | 1 << BAM_CDIFF };
    const bam1_core_t *c = &record->core;
    const uint32_t *op = bam_get_cigar(record);
    int64_t query = 0, target = 0, clipped = 0;
    int32_t n = (int32_t)c->n_cigar, lead = 0, trail = 0;
    bool skips = false;
    *item = (lw_realign_item){.old_pos = (int32_t)c->pos, .old_end = (int32_t)c->pos, .task = -1};
    for (; lead < n && (bam_cigar_op(op[lead]) == BAM_CHARD_CLIP || bam_cigar_op(op[lead]) == BAM_CSOFT_CLIP);
         lead++)
        clipped += bam_cigar_op(op[lead]) == BAM_CSOFT_CLIP ? bam_cigar_oplen(op[lead]) : 0;
    for (; trail < n - lead && (bam_cigar_op(op[n - 1 - trail]) == BAM_CHARD_CLIP ||
                                bam_cigar_op(op[n - 1 - trail]) == BAM_CSOFT_CLIP);)
        trail++;
    for (int32_t k = lead; k < n - trail; k++) {
        int type = bam_cigar_type(bam_cigar_op(op[k]));
        query += type & 1 ? bam_cigar_oplen(op[k]) : 0;
        target += type & 2 ? bam_cigar_oplen(op[k]) : 0;
        skips = skips || !((1 << bam_cigar_op(op[k])) & ALIGNED);
    }
    if (c->flag & BAM_FUNMAP || c->tid < 0 || c->pos < 0) {
        item->kind = LW_PASS_UNMAPPED;
        return LW_OK;
    }
    int64_t length = run->refs->len[run->ref_of[c->tid]];
    if (c->pos >= length || c->pos + target > length)
        return lw_fail(err, LW_E_INPUT,
                       "%s: record %lld (%.254s): covers %s:%lld-%lld, but %s has %lld letters: was REF that "
                       "of the mapper?",
                       file, (long long)number, bam_get_qname(record), sam_hdr_tid2name(run->header, c->tid),
                       (long long)c->pos + 1, (long long)(c->pos + (target > 0 ? target : 1)),
                       sam_hdr_tid2name(run->header, c->tid), (long long)length);
    item->old_end = (int32_t)(c->pos + target);
    item->lead = lead;
    item->trail = trail;
    item->clipped = (int32_t)clipped;
    item->query_len = (int32_t)query;
    item->kind = c->flag & BAM_FSECONDARY       ? LW_PASS_SECONDARY
                 : c->flag & BAM_FSUPPLEMENTARY ? LW_PASS_SUPPLEMENTARY
                 : n == 0                       ? LW_PASS_NO_CIGAR
                 : c->l_qseq == 0               ? LW_PASS_NO_SEQUENCE
                 : skips                        ? LW_PASS_SKIP
                 : query == 0 || target == 0    ? LW_PASS_NO_LETTERS
                                                : LW_REALIGN;
    if (item->kind != LW_REALIGN)
        return LW_OK;
    int64_t widest = target + 2 * (int64_t)run->pad * LW_REALIGN_MOST_PADS;
    int32_t window = (int32_t)(widest < length ? widest : length);
    if (lw_check_range(&run->scoring, LW_SEMIGLOBAL, item->query_len, window, "", NULL) == LW_OK)
        return LW_OK;
    char where[512];
    snprintf(where, sizeof where, "%.200s: record %lld (%.254s)", file, (long long)number,
             bam_get_qname(record));
    return lw_check_range(&run->scoring, LW_SEMIGLOBAL, item->query_len, window, where, err);
}

/* ---- what is optimal already -------------------------------------------------------------------- */

/* An alignment without gaps is optimal when no other can score more:
 *  - Every path's score is the sum of best[] over the read's letters less its losses. A pair of letters loses
 *    best - score >= 0; an inserted letter loses its best[], which is not negative here, and a gap loses its
 *    cost. So a path with a gap loses least_gap at least.
 *  - A path without gaps lies on one diagonal of the window.
 * So if `loss` is at most least_gap, and no other diagonal of the window loses less, the present score is the
 * highest. The present end then stays (lw_realign_solve()), and the walk back from it takes the diagonal
 * wherever that attains H: it does all along an optimal path, since each of its cells then holds the score of
 * its beginning. So the path found is the present one. Its distance from the window's edges is the pad, so
 * the window does not grow either. */
static bool is_optimal(const lw_realign_run *run, const uint8_t *query, int32_t n, const uint8_t *target,
                       int32_t target_len, int32_t place, int64_t loss)
{
    const lw_scoring *s = &run->scoring;
    if (loss == 0)
        return true;
    int32_t first = place - run->pad, last = place + run->pad;
    first = first > 0 ? first : 0;
    last = last < target_len - n ? last : target_len - n;
    for (int32_t d = first; d <= last; d++) {
        if (d == place)
            continue;
        int64_t lost = 0;
        for (int32_t i = 0; i < n && lost < loss; i++)
            lost += run->best[query[i]] - s->score[query[i] * LW_MAX_LETTERS + target[d + i]];
        if (lost < loss)
            return false;
    }
    return true;
}

void lw_realign_begin(const lw_realign_run *run, const bam1_t *record, lw_realign_item *item, uint8_t *codes)
{
    if (item->kind != LW_REALIGN)
        return;
    const uint8_t *packed = bam_get_seq(record);
    int32_t n = record->core.l_qseq;
    for (int32_t i = 0; i < n / 2; i++)
        memcpy(codes + 2 * i, run->code_pair[packed[i]], 2);
    if (n % 2)
        codes[n - 1] = run->code_pair[packed[n / 2]][0];
    const uint8_t *query = codes + item->clipped;
    int32_t length = item->query_len;
    int64_t highest = 0;
    int bad = 0, lowest = 0;
    for (int32_t i = 0; i < length; i++) {
        uint8_t q = query[i];
        bad |= q & 0x80; /* LW_NO_CODE: SEQ holds '=' */
        int best = run->best[q & (LW_MAX_LETTERS - 1)];
        highest += best;
        lowest = best < lowest ? best : lowest;
    }
    if (bad) {
        item->kind = LW_PASS_NO_LETTERS;
        return;
    }
    int32_t ref = run->ref_of[record->core.tid];
    const lw_seqs *refs = &run->ref_codes.seqs;
    const uint8_t *target = refs->codes + refs->start[ref];
    const uint32_t *op = bam_get_cigar(record) + item->lead;
    int32_t n_op = (int32_t)record->core.n_cigar - item->lead - item->trail;
    item->present = (int32_t)lw_path_score(&run->scoring, query, target + item->old_pos, op, n_op);
    bool gaps = false;
    for (int32_t k = 0; k < n_op; k++)
        gaps = gaps || bam_cigar_op(op[k]) == BAM_CINS || bam_cigar_op(op[k]) == BAM_CDEL;
    int64_t loss = highest - item->present;
    item->proved = !gaps && lowest >= 0 && loss <= run->least_gap &&
                   is_optimal(run, query, length, target, refs->len[ref], item->old_pos, loss);
}

/* ---- the new fields ----------------------------------------------------------------------------- */

void lw_realign_scratch_free(lw_realign_scratch *scratch)
{
    ks_free(&scratch->letters);
    ks_free(&scratch->cigar);
    ks_free(&scratch->aux);
    ks_free(&scratch->text);
}

/* Whether two runs of operations are the same path, M = and X being one. */
static bool same_path(const uint32_t *a, int64_t n_a, const uint32_t *b, int64_t n_b)
{
    int64_t i = 0, j = 0;
    while (i < n_a || j < n_b) {
        int64_t length[2] = {0, 0};
        int op[2] = {-1, -1};
        for (int side = 0; side < 2; side++) {
            const uint32_t *p = side ? b : a;
            int64_t *k = side ? &j : &i, n = side ? n_b : n_a;
            while (*k < n) {
                int o = (int)bam_cigar_op(p[*k]);
                o = o == BAM_CEQUAL || o == BAM_CDIFF ? BAM_CMATCH : o;
                if (op[side] >= 0 && o != op[side])
                    break;
                op[side] = o;
                length[side] += bam_cigar_oplen(p[(*k)++]);
            }
        }
        if (op[0] != op[1] || length[0] != length[1])
            return false;
    }
    return true;
}

/* The record's tags with those of the new alignment in the place of the old ones, in scratch->aux; md is in
 * scratch->text. Non-zero when memory is out. */
static int make_tags(const lw_realign_run *run, const bam1_t *record, const lw_realign_item *item, int64_t nm,
                     lw_realign_scratch *scratch)
{
    kstring_t *s = &scratch->aux;
    const uint8_t *p = bam_get_aux(record), *end = record->data + record->l_data;
    bool has_as = false, has_nm = false, has_md = false, has_old = false;
    int bad = 0;
    s->l = 0;
    while (p < end) {
        int64_t size = lw_tag_size(p, end - p);
        if (size == 0) /* damaged: all the rest as it is */
            size = end - p;
        if (size >= 3 && p[0] == 'A' && p[1] == 'S') {
            bad |= !has_as && lw_tag_put_integer(s, "AS", item->score);
            has_as = true;
        } else if (size >= 3 && p[0] == 'N' && p[1] == 'M') {
            bad |= !has_nm && lw_tag_put_integer(s, "NM", nm);
            has_nm = true;
        } else if (size >= 3 && p[0] == 'M' && p[1] == 'D') {
            bad |=
                !has_md && (kputsn("MDZ", 3, s) < 0 || kputsn(scratch->text.s, scratch->text.l + 1, s) < 0);
            has_md = true;
        } else {
            has_old = has_old || (size >= 3 && p[0] == 'O' && (p[1] == 'C' || p[1] == 'P'));
            bad |= kputsn((const char *)p, (size_t)size, s) < 0;
        }
        p += size;
    }
    bad |= !has_as && lw_tag_put_integer(s, "AS", item->score);
    bad |= !has_nm && lw_tag_put_integer(s, "NM", nm);
    bad |= !has_md && (kputsn("MDZ", 3, s) < 0 || kputsn(scratch->text.s, scratch->text.l + 1, s) < 0);
    if (item->changed && run->keep_old && !has_old) {
        bad |= kputsn("OCZ", 3, s) < 0 || lw_path_text(bam_get_cigar(record), record->core.n_cigar, s) ||
               kputc(0, s) < 0;
        bad |= lw_tag_put_integer(s, "OP", (int64_t)item->old_pos + 1);
    }
    return bad;
}

/* Exchanges CIGAR and tags. The CIGAR in scratch->cigar counts only if the item changed. */
static lw_status replace(bam1_t *record, const lw_realign_item *item, int64_t n_cigar,
                         lw_realign_scratch *scratch, lw_error *err)
{
    const kstring_t *aux = &scratch->aux;
    int64_t aux_at = bam_get_aux(record) - record->data;
    int64_t letters_at = bam_get_seq(record) - record->data;
    int64_t change = item->changed ? (n_cigar - (int64_t)record->core.n_cigar) * 4 : 0;
    int64_t size = aux_at + change + (int64_t)aux->l;
    if (size > INT32_MAX)
        return lw_fail(err, LW_E_RANGE, "read %.254s: its record would not fit into 2^31 bytes",
                       bam_get_qname(record));
    if (size > record->m_data) {
        uint8_t *grown = realloc(record->data, (size_t)size + (size_t)size / 4);
        if (!grown)
            return lw_fail_memory(err, (size_t)size);
        record->data = grown;
        record->m_data = (uint32_t)(size + size / 4);
    }
    if (change != 0)
        memmove(record->data + letters_at + change, record->data + letters_at, (size_t)(aux_at - letters_at));
    if (item->changed) {
        memcpy(bam_get_cigar(record), scratch->cigar.s, (size_t)n_cigar * 4);
        record->core.n_cigar = (uint32_t)n_cigar;
    }
    if (aux->l > 0)
        memcpy(record->data + aux_at + change, aux->s, aux->l);
    record->l_data = (int)size;
    return LW_OK;
}

/* The whole CIGAR, clips included, in scratch->cigar: = and X where the record had them. */
static lw_status make_cigar(const lw_realign_run *run, const bam1_t *record, const lw_realign_item *item,
                            const char *query, const char *target, const uint32_t *path, int32_t n_path,
                            lw_realign_scratch *scratch, int64_t *n_cigar, lw_error *err)
{
    const uint32_t *old = bam_get_cigar(record);
    int64_t n_old = record->core.n_cigar;
    bool split = false;
    for (int64_t k = 0; k < n_old; k++)
        split = split || bam_cigar_op(old[k]) == BAM_CEQUAL || bam_cigar_op(old[k]) == BAM_CDIFF;
    lw_cigars parts = {0};
    lw_status status = LW_OK;
    if (split) {
        status = lw_path_split(&run->match, query, target, path, n_path, &parts, err);
        path = parts.op;
        n_path = (int32_t)parts.n;
    }
    int64_t n = (int64_t)item->lead + n_path + item->trail;
    if (status == LW_OK && ks_resize(&scratch->cigar, (size_t)n * 4) < 0)
        status = lw_fail_memory(err, (size_t)n * 4);
    if (status == LW_OK) {
        uint32_t *op = (uint32_t *)(void *)scratch->cigar.s;
        memcpy(op, old, (size_t)item->lead * 4);
        memcpy(op + item->lead, path, (size_t)n_path * 4);
        memcpy(op + item->lead + n_path, old + n_old - item->trail, (size_t)item->trail * 4);
        *n_cigar = n;
    }
    free(parts.op);
    return status;
}

lw_status lw_realign_finish(const lw_realign_run *run, bam1_t *record, lw_realign_item *item,
                            const lw_realign_task *task, const uint32_t *path, const uint8_t *codes,
                            lw_realign_scratch *scratch, lw_realign_counts *counts, lw_error *err)
{
    if (item->kind != LW_REALIGN) {
        counts->kind[item->kind]++;
        return LW_OK;
    }
    const bam1_core_t *c = &record->core;
    int32_t ref = run->ref_of[c->tid], start = item->old_pos;
    const uint32_t *old = bam_get_cigar(record) + item->lead;
    int64_t n_old = (int64_t)c->n_cigar - item->lead - item->trail, n_cigar = 0;
    item->score = item->present;
    int32_t n_path = 0;
    if (task) {
        bool letters = false;
        for (int32_t k = 0; k < task->n_cigar; k++)
            letters = letters || bam_cigar_op(path[k]) == BAM_CMATCH;
        if (!letters) { /* the read resembles nothing here: an insertion of all of it is no place to be */
            item->kind = LW_PASS_NO_LETTERS;
            counts->kind[item->kind]++;
            return LW_OK;
        }
        item->score = task->score;
        start = task->new_start;
        n_path = task->n_cigar;
        item->changed = start != item->old_pos || !same_path(old, n_old, path, n_path);
    }
    const uint32_t *now = item->changed ? path : old;
    int64_t n_now = item->changed ? n_path : n_old;
    const lw_seqs *refs = &run->ref_codes.seqs;
    int64_t scored = item->changed ? lw_path_score(&run->scoring, codes + item->clipped,
                                                   refs->codes + refs->start[ref] + start, now, n_now)
                                   : item->present;
    if (scored != item->score || item->score < item->present)
        return lw_fail(err, LW_E_INTERNAL,
                       "read %.254s: its path scores %lld and not %d, before it was %d; please report this",
                       bam_get_qname(record), (long long)scored, item->score, item->present);
    int32_t n = c->l_qseq;
    scratch->text.l = 0;
    if (ks_resize(&scratch->letters, (size_t)n + 1) < 0)
        return lw_fail_memory(err, (size_t)n);
    const uint8_t *packed = bam_get_seq(record);
    char *letters = scratch->letters.s;
    for (int32_t i = 0; i < n; i++)
        letters[i] = seq_nt16_str[bam_seqi(packed, i)];
    const char *query = letters + item->clipped, *target = run->refs->letters + run->refs->start[ref] + start;
    if (!item->changed && lw_path_contradicts(&run->match, query, target, old, n_old)) {
        item->changed = true; /* the same path with other = and X */
        path = old;
        n_path = (int32_t)n_old;
    }
    lw_path_counts about;
    lw_path_count(&run->match, query, target, now, n_now, &about);
    if (lw_path_md(&run->match, query, target, now, n_now, &scratch->text))
        return lw_fail_memory(err, (size_t)n);
    if (make_tags(run, record, item, about.nm, scratch))
        return lw_fail_memory(err, scratch->aux.l);
    if (item->changed)
        LW_TRY(make_cigar(run, record, item, query, target, path, n_path, scratch, &n_cigar, err));
    LW_TRY(replace(record, item, n_cigar, scratch, err));
    record->core.pos = start;
    record->core.bin = (uint16_t)hts_reg2bin(start, start + about.target_letters, 14, 5);

    int64_t gain = (int64_t)item->score - item->present;
    counts->kind[LW_REALIGN]++;
    counts->letters += item->query_len;
    counts->proved += item->proved;
    counts->changed += item->changed;
    counts->moved += start != item->old_pos;
    counts->improved += gain > 0;
    counts->gain += gain;
    counts->highest_gain = gain > counts->highest_gain ? gain : counts->highest_gain;
    counts->widened += task && task->widened;
    counts->at_edge += task && task->at_edge;
    return LW_OK;
}
