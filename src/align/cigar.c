/* cigar.c - what follows from a path: score, =/X, NM, MD, MAPQ. */
#include "align/cigar.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <htslib/sam.h>

#include "common/fail.h"

void lw_match_table_fill(lw_match_table *out, const lw_scoring *scoring)
{
    memset(out, 0, sizeof *out);
    for (int byte = 1; byte < 256; byte++) {
        uint8_t code = scoring->code[byte];
        if (code == LW_NO_CODE)
            continue;
        if (scoring->type == LW_DNA) {
            uint8_t bits = seq_nt16_table[byte == 'U' || byte == 'u' ? 'T' : byte]; /* htslib: U is N */
            out->same_as[byte] = bits == 15 ? 0 : bits;
        } else {
            out->same_as[byte] = scoring->letter[code] == 'X' ? 0 : (uint8_t)(code + 1);
        }
    }
}

static inline int is_match(const lw_match_table *match, char query, char target)
{
    uint8_t a = match->same_as[(uint8_t)query], b = match->same_as[(uint8_t)target];
    return a == b && a != 0;
}

void lw_path_count(const lw_match_table *match, const char *query, const char *target, const uint32_t *cigar,
                   int64_t n_cigar, lw_path_counts *out)
{
    lw_path_counts c = {0};
    int64_t q = 0, t = 0;
    for (int64_t k = 0; k < n_cigar; k++) {
        int64_t length = bam_cigar_oplen(cigar[k]);
        switch (bam_cigar_op(cigar[k])) {
        case BAM_CINS:
            q += length;
            c.nm += length;
            break;
        case BAM_CDEL:
            t += length;
            c.nm += length;
            break;
        default:
            for (int64_t i = 0; i < length; i++)
                c.matches += is_match(match, query[q + i], target[t + i]);
            c.nm += length;
            q += length;
            t += length;
        }
        c.columns += length;
    }
    c.nm -= c.matches;
    c.query_letters = q;
    c.target_letters = t;
    *out = c;
}

static void append(lw_cigars *out, int64_t first, uint32_t length, uint32_t op)
{
    if (out->n > first && bam_cigar_op(out->op[out->n - 1]) == op)
        out->op[out->n - 1] += length << BAM_CIGAR_SHIFT;
    else
        out->op[out->n++] = bam_cigar_gen(length, op);
}

lw_status lw_path_split(const lw_match_table *match, const char *query, const char *target,
                        const uint32_t *cigar, int64_t n_cigar, lw_cigars *out, lw_error *err)
{
    int64_t first = out->n, q = 0, t = 0;
    for (int64_t k = 0; k < n_cigar; k++) {
        uint32_t length = bam_cigar_oplen(cigar[k]), op = bam_cigar_op(cigar[k]);
        bool gap = op == BAM_CINS || op == BAM_CDEL;
        /* an M of this length becomes at most that many operations */
        LW_TRY(lw_cigars_reserve(out, gap ? 1 : (int64_t)length, err));
        if (gap) {
            append(out, first, length, op);
            q += op == BAM_CINS ? length : 0;
            t += op == BAM_CDEL ? length : 0;
            continue;
        }
        for (uint32_t i = 0; i < length;) {
            int same = is_match(match, query[q + i], target[t + i]);
            uint32_t run = 1;
            while (i + run < length && is_match(match, query[q + i + run], target[t + i + run]) == same)
                run++;
            append(out, first, run, same ? BAM_CEQUAL : BAM_CDIFF);
            i += run;
        }
        q += length;
        t += length;
    }
    return LW_OK;
}

bool lw_path_contradicts(const lw_match_table *match, const char *query, const char *target,
                         const uint32_t *cigar, int64_t n_cigar)
{
    int64_t q = 0, t = 0;
    for (int64_t k = 0; k < n_cigar; k++) {
        int64_t length = bam_cigar_oplen(cigar[k]);
        uint32_t op = bam_cigar_op(cigar[k]);
        if (op == BAM_CEQUAL || op == BAM_CDIFF)
            for (int64_t i = 0; i < length; i++)
                if (is_match(match, query[q + i], target[t + i]) != (op == BAM_CEQUAL))
                    return true;
        q += op == BAM_CDEL ? 0 : length;
        t += op == BAM_CINS ? 0 : length;
    }
    return false;
}

int lw_path_md(const lw_match_table *match, const char *query, const char *target, const uint32_t *cigar,
               int64_t n_cigar, kstring_t *out)
{
    int64_t q = 0, t = 0, run = 0;
    int bad = 0;
    for (int64_t k = 0; k < n_cigar; k++) {
        int64_t length = bam_cigar_oplen(cigar[k]);
        switch (bam_cigar_op(cigar[k])) {
        case BAM_CINS:
            q += length;
            break;
        case BAM_CDEL:
            bad |= kputll(run, out) < 0 || kputc('^', out) < 0;
            for (int64_t i = 0; i < length; i++)
                bad |= kputc(toupper((unsigned char)target[t + i]), out) < 0;
            run = 0;
            t += length;
            break;
        default:
            for (int64_t i = 0; i < length; i++) {
                if (is_match(match, query[q + i], target[t + i])) {
                    run++;
                    continue;
                }
                bad |= kputll(run, out) < 0 || kputc(toupper((unsigned char)target[t + i]), out) < 0;
                run = 0;
            }
            q += length;
            t += length;
        }
    }
    bad |= kputll(run, out) < 0;
    return bad;
}

int64_t lw_path_score(const lw_scoring *scoring, const uint8_t *query, const uint8_t *target,
                      const uint32_t *cigar, int64_t n_cigar)
{
    int64_t score = 0, q = 0, t = 0;
    for (int64_t k = 0; k < n_cigar; k++) {
        int64_t length = bam_cigar_oplen(cigar[k]);
        uint32_t op = bam_cigar_op(cigar[k]);
        if (length == 0)
            continue;
        if (op == BAM_CINS || op == BAM_CDEL) {
            /* 1I2I is one gap, 1I0M2I too */
            for (;
                 k + 1 < n_cigar && (bam_cigar_op(cigar[k + 1]) == op || bam_cigar_oplen(cigar[k + 1]) == 0);
                 k++)
                length += bam_cigar_oplen(cigar[k + 1]);
            score -= lw_gap_cost(scoring, (int32_t)length);
            q += op == BAM_CINS ? length : 0;
            t += op == BAM_CDEL ? length : 0;
            continue;
        }
        for (int64_t i = 0; i < length; i++)
            score += scoring->score[query[q + i] * LW_MAX_LETTERS + target[t + i]];
        q += length;
        t += length;
    }
    return score;
}

int lw_path_text(const uint32_t *cigar, int64_t n_cigar, kstring_t *out)
{
    int bad = n_cigar == 0 && kputc('*', out) < 0;
    for (int64_t k = 0; k < n_cigar; k++)
        bad |= kputuw(bam_cigar_oplen(cigar[k]), out) < 0 || kputc(bam_cigar_opchr(cigar[k]), out) < 0;
    return bad;
}

uint8_t lw_mapq(const lw_scoring *scoring, lw_mode mode, int32_t score, int32_t second, int32_t query_len)
{
    enum { HIGHEST = 60 };
    if (mode == LW_GLOBAL)
        return HIGHEST;
    if (second == LW_NO_SECOND)
        second = 0;
    if (score == second)
        return 0;
    /* int64: 250 * (AS - XS) can exceed 32 bits */
    int64_t whole = mode == LW_LOCAL ? score : (int64_t)scoring->max_score * query_len;
    int64_t gap = (int64_t)score - second;
    if (whole <= 0 || gap <= 0)
        return 0;
    int64_t quality = 250 * gap / whole;
    return (uint8_t)(quality < HIGHEST ? quality : HIGHEST);
}
