/* search_output.c - writes the hits of a search. Errors of the stream are the driver's to find when it closes
 * it. */
#include "align/search_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "align/statistics.h"
#include "lanewise/lanewise.h"

enum { OP_MATCH = 0, OP_INSERTION = 1, OP_DELETION = 2 };

/* What the columns of an alignment are. */
typedef struct composition {
    int64_t columns, identities, gap_letters, gap_runs;
} composition;

static const char *query_name(const lw_search_batch *b, int32_t query)
{
    const char *name = lw_read_name(b->reads, query);
    return *name ? name : "*";
}

static const uint8_t *query_codes(const lw_search_batch *b, const lw_match *m)
{
    int64_t strand = m->reverse ? b->reads->n : 0;
    return b->queries->codes + b->queries->start[m->query + strand];
}

static const uint8_t *subject_codes(const lw_search_writer *w, const lw_match *m)
{
    const lw_database_view *view = lw_database_get_view(w->database);
    return view->codes + view->start[m->subject];
}

static composition compose(const lw_search_writer *w, const lw_search_batch *b, const lw_match *m)
{
    composition c = {0};
    const uint8_t *q = query_codes(b, m) + m->qstart, *t = subject_codes(w, m) + m->tstart;
    for (int32_t k = 0; k < m->n_cigar; k++) {
        int32_t length = (int32_t)(b->cigar[m->cigar + k] >> 4), op = b->cigar[m->cigar + k] & 15;
        c.columns += length;
        if (op == OP_MATCH) {
            for (int32_t i = 0; i < length; i++)
                c.identities += q[i] == t[i];
        } else {
            c.gap_letters += length;
            c.gap_runs++;
        }
        q += op == OP_DELETION ? 0 : length;
        t += op == OP_INSERTION ? 0 : length;
    }
    return c;
}

/* ---- BLAST's table ------------------------------------------------------------------------------------ */

static void write_blast6(const lw_search_writer *w, const lw_search_batch *b, const lw_match *m)
{
    composition c = compose(w, b, m);
    int32_t qlen = b->queries->len[m->query];
    int32_t qfrom = m->qstart + 1, qto = m->qend, tfrom = m->tstart + 1, tto = m->tend;
    if (m->reverse) { /* the query is shown forward and the subject backward */
        qfrom = qlen - m->qend + 1, qto = qlen - m->qstart;
        tfrom = m->tend, tto = m->tstart + 1;
    }
    char evalue[LW_STATISTIC_TEXT] = "*", bits[LW_STATISTIC_TEXT] = "*";
    if (w->statistics) {
        lw_print_evalue(evalue, m->evalue);
        lw_print_bits(bits, m->bits);
    }
    fprintf(w->to, "%s\t%s\t%.3f\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%d\t%d\t%d\t%d\t%s\t%s\n",
            query_name(b, m->query), lw_database_name(w->database, m->subject),
            100.0 * (double)c.identities / (double)c.columns, c.columns,
            c.columns - c.identities - c.gap_letters, c.gap_runs, qfrom, qto, tfrom, tto, evalue, bits);
}

/* ---- TSV ------------------------------------------------------------------------------------------------
 */

static void write_tsv(const lw_search_writer *w, const lw_search_batch *b, const lw_match *m)
{
    int32_t qlen = b->queries->len[m->query], tlen = lw_database_get_view(w->database)->len[m->subject];
    int32_t qstart = m->qstart, qend = m->qend;
    if (m->reverse) { /* coordinates on the query as it was given: its start is where the alignment ends */
        qstart = qlen - m->qend;
        qend = m->qstart < 0 ? -1 : qlen - m->qstart;
    }
    char evalue[LW_STATISTIC_TEXT] = "*", bits[LW_STATISTIC_TEXT] = "*", identity[32] = "-1";
    if (w->statistics) {
        lw_print_evalue(evalue, m->evalue);
        lw_print_bits(bits, m->bits);
    }
    if (w->traced) {
        composition c = compose(w, b, m);
        snprintf(identity, sizeof identity, "%.3f", 100.0 * (double)c.identities / (double)c.columns);
    }
    fprintf(w->to, "%s\t%s\t%c\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", query_name(b, m->query),
            lw_database_name(w->database, m->subject), m->reverse ? '-' : '+', m->score, bits, evalue, qlen,
            qstart, qend, tlen, m->tstart, m->tend, identity);
}

/* ---- SAM ------------------------------------------------------------------------------------------------
 */

static void write_sam_header(const lw_search_writer *w)
{
    const lw_database_view *view = lw_database_get_view(w->database);
    fprintf(w->to, "@HD\tVN:1.6\tSO:unsorted\tGO:query\n");
    for (int64_t i = 0; i < view->n && view->len[i] > 0; i++) /* empty sequences come last */
        fprintf(w->to, "@SQ\tSN:%s\tLN:%d\n", lw_database_name(w->database, i), view->len[i]);
    fprintf(w->to, "@PG\tID:lanewise\tPN:lanewise\tVN:%s", lw_version());
    if (w->command_line)
        fprintf(w->to, "\tCL:%s", w->command_line);
    putc('\n', w->to);
}

/* Letters of the query as aligned, upper case; its text has every letter that was read. */
static void write_sequence(const lw_search_writer *w, const lw_search_batch *b, int32_t query, bool reverse)
{
    int64_t strand = reverse ? b->reads->n : 0;
    const uint8_t *codes = b->queries->codes + b->queries->start[query + strand];
    int32_t n = b->queries->len[query];
    for (int32_t i = 0; i < n; i++)
        putc(w->scoring->letter[codes[i]], w->to);
    if (n == 0)
        putc('*', w->to);
}

static void write_qualities(const lw_search_writer *w, const lw_search_batch *b, int32_t query, bool reverse)
{
    const char *qual = lw_read_qual(b->reads, query);
    int32_t n = b->queries->len[query];
    if (!qual || n == 0) {
        putc('*', w->to);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        putc(qual[reverse ? n - 1 - i : i], w->to);
}

/* Whether the letters count as a match in NM and MD: N, and X of protein, do not even match themselves. */
static bool matches(const lw_scoring *s, uint8_t query, uint8_t target)
{
    return query == target && s->letter[query] != (s->type == LW_DNA ? 'N' : 'X');
}

/* NM and MD as samtools calmd has them. */
static int64_t write_md(const lw_search_writer *w, const lw_search_batch *b, const lw_match *m)
{
    const uint8_t *q = query_codes(b, m) + m->qstart, *t = subject_codes(w, m) + m->tstart;
    const char *letter = w->scoring->letter;
    int64_t same = 0, differences = 0;
    fputs("\tMD:Z:", w->to);
    for (int32_t k = 0; k < m->n_cigar; k++) {
        int32_t length = (int32_t)(b->cigar[m->cigar + k] >> 4), op = b->cigar[m->cigar + k] & 15;
        if (op == OP_INSERTION) {
            differences += length;
            q += length;
        } else if (op == OP_DELETION) {
            fprintf(w->to, "%" PRId64 "^", same);
            same = 0;
            differences += length;
            for (int32_t i = 0; i < length; i++)
                putc(letter[t[i]], w->to);
            t += length;
        } else {
            for (int32_t i = 0; i < length; i++) {
                if (matches(w->scoring, q[i], t[i])) {
                    same++;
                    continue;
                }
                fprintf(w->to, "%" PRId64 "%c", same, letter[t[i]]);
                same = 0;
                differences++;
            }
            q += length;
            t += length;
        }
    }
    fprintf(w->to, "%" PRId64, same);
    return differences;
}

static void write_sam(const lw_search_writer *w, const lw_search_batch *b, const lw_match *m, bool first,
                      int32_t second)
{
    int32_t qlen = b->queries->len[m->query], mapq = 0;
    if (first && second < m->score)
        mapq = (int32_t)floor(250.0 * (m->score - second) / m->score);
    mapq = mapq > 60 ? 60 : mapq;
    fprintf(w->to, "%s\t%d\t%s\t%d\t%d\t", query_name(b, m->query), (m->reverse ? 16 : 0) | (first ? 0 : 256),
            lw_database_name(w->database, m->subject), m->tstart + 1, mapq);
    if (m->qstart > 0)
        fprintf(w->to, "%dS", m->qstart);
    for (int32_t k = 0; k < m->n_cigar; k++)
        fprintf(w->to, "%u%c", b->cigar[m->cigar + k] >> 4, "MID"[b->cigar[m->cigar + k] & 15]);
    if (m->qend < qlen)
        fprintf(w->to, "%dS", qlen - m->qend);
    fputs("\t*\t0\t0\t", w->to);
    if (first) {
        write_sequence(w, b, m->query, m->reverse);
        putc('\t', w->to);
        write_qualities(w, b, m->query, m->reverse);
    } else {
        fputs("*\t*", w->to); /* the primary record has them */
    }
    fprintf(w->to, "\tAS:i:%d", m->score);
    int64_t differences = write_md(w, b, m);
    fprintf(w->to, "\tNM:i:%" PRId64, differences);
    if (first)
        fprintf(w->to, "\tXS:i:%d", second);
    if (w->statistics) {
        char evalue[LW_STATISTIC_TEXT], bits[LW_STATISTIC_TEXT];
        lw_print_evalue(evalue, m->evalue);
        lw_print_bits(bits, m->bits);
        fprintf(w->to, "\tEV:f:%s\tBS:f:%s", evalue, bits);
    }
    putc('\n', w->to);
}

static void write_unmapped(const lw_search_writer *w, const lw_search_batch *b, int32_t query)
{
    fprintf(w->to, "%s\t4\t*\t0\t0\t*\t*\t0\t0\t", query_name(b, query));
    write_sequence(w, b, query, false);
    putc('\t', w->to);
    write_qualities(w, b, query, false);
    putc('\n', w->to);
}

/* ---- all ------------------------------------------------------------------------------------------------
 */

void lw_search_write_begin(const lw_search_writer *w)
{
    if (w->format == LW_SEARCH_TSV)
        fputs(
            "#query\ttarget\tstrand\tscore\tbits\tevalue\tqlen\tqstart\tqend\ttlen\ttstart\ttend\tidentity\n",
            w->to);
    if (w->format == LW_SEARCH_SAM)
        write_sam_header(w);
}

void lw_search_write_query(const lw_search_writer *w, const lw_search_batch *b, int32_t query,
                           const lw_match *matches, int64_t n, int32_t more)
{
    if (n == 0 && w->format == LW_SEARCH_SAM)
        write_unmapped(w, b, query);
    for (int64_t k = 0; k < n; k++) {
        const lw_match *m = &matches[k];
        if (w->format == LW_SEARCH_BLAST6)
            write_blast6(w, b, m);
        else if (w->format == LW_SEARCH_TSV)
            write_tsv(w, b, m);
        else
            write_sam(w, b, m, k == 0, n > 1 ? matches[1].score : more);
    }
}
