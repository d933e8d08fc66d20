/* overlap.c - free ends on both sequences, by semiglobal alignment to padded targets. */
#include "align/overlap.h"

#include <stdlib.h>
#include <string.h>
#include <htslib/sam.h>

#include "common/fail.h"

lw_status lw_overlap_scoring(lw_scoring *s, lw_error *err)
{
    if (s->n_letters >= LW_MAX_LETTERS)
        return lw_fail(err, LW_E_ARG, "free ends need a matrix of fewer than %d letters", LW_MAX_LETTERS);
    int pad = s->n_letters++;
    s->letter[pad] = '-';
    s->letter[pad + 1] = '\0';
    s->complement[pad] = (uint8_t)pad;
    for (int k = 0; k <= pad; k++)
        s->score[pad * LW_MAX_LETTERS + k] = s->score[k * LW_MAX_LETTERS + pad] = 0;
    s->max_score = s->max_score > 0 ? s->max_score : 0;
    s->min_score = s->min_score < 0 ? s->min_score : 0;
    return LW_OK;
}

lw_status lw_overlap_pad(const lw_scoring *s, const lw_seqs *queries, const lw_seqs *targets, int64_t pad,
                         lw_encoded *out, lw_error *err)
{
    int64_t letters = 0;
    for (int64_t i = 0; i < targets->n; i++)
        letters += targets->len[i] + 2 * (pad >= 0 ? pad : queries->len[i]);
    LW_TRY(lw_encoded_reserve(out, targets->n, letters, err));
    int64_t at = 0;
    for (int64_t i = 0; i < targets->n; i++) {
        int64_t side = pad >= 0 ? pad : queries->len[i], n = targets->len[i];
        if (n + 2 * side > INT32_MAX)
            return lw_fail(err, LW_E_RANGE, "free ends: a pair of more than 2^31 letters in all");
        memset(out->codes + at, s->n_letters - 1, (size_t)(n + 2 * side));
        memcpy(out->codes + at + side, targets->codes + targets->start[i], (size_t)n);
        out->start[i] = at;
        out->len[i] = (int32_t)(n + 2 * side);
        at += n + 2 * side;
    }
    return LW_OK;
}

void lw_overlap_ends(lw_hit *hit, int32_t query_len, int32_t target_len)
{
    int32_t end = hit->tend - query_len;
    hit->tend = end < 0 ? 0 : end > target_len ? target_len : end;
    hit->qend = end < 0 ? query_len : end > target_len ? query_len - (end - target_len) : query_len;
}

bool lw_overlap_trim(lw_trace_task *task, lw_path *path, uint32_t *cigar, int32_t query_len,
                     int32_t target_len)
{
    int32_t q = path->qstart, t = path->tstart - query_len;
    int32_t first = 0, last = path->n_cigar;
    uint32_t *op = cigar + path->cigar;
    /* from the left: whatever stands before the target's first letter */
    while (first < last && t < 0) {
        int type = bam_cigar_type(bam_cigar_op(op[first]));
        int32_t n = (int32_t)bam_cigar_oplen(op[first]), cut = type & 2 && n > -t ? -t : n;
        q += type & 1 ? cut : 0;
        t += type & 2 ? cut : 0;
        if (cut < n)
            op[first] -= (uint32_t)cut << BAM_CIGAR_SHIFT;
        else
            first++;
    }
    int32_t q_end = q, t_end = t;
    for (int32_t k = first; k < last; k++) {
        int type = bam_cigar_type(bam_cigar_op(op[k]));
        q_end += type & 1 ? (int32_t)bam_cigar_oplen(op[k]) : 0;
        t_end += type & 2 ? (int32_t)bam_cigar_oplen(op[k]) : 0;
    }
    while (first < last && t_end > target_len) {
        int type = bam_cigar_type(bam_cigar_op(op[last - 1]));
        int32_t n = (int32_t)bam_cigar_oplen(op[last - 1]),
                cut = type & 2 && n > t_end - target_len ? t_end - target_len : n;
        q_end -= type & 1 ? cut : 0;
        t_end -= type & 2 ? cut : 0;
        if (cut < n)
            op[last - 1] -= (uint32_t)cut << BAM_CIGAR_SHIFT;
        else
            last--;
    }
    path->qstart = q;
    path->tstart = t;
    path->cigar += first;
    path->n_cigar = last - first;
    task->qlen = q_end;
    task->tbegin = t;
    task->tlen = t_end - t;
    return first < last;
}
