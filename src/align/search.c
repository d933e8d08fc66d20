/* search.c - the driver of the database search: reads queries in batches, has a backend score them, finds
 * ends and paths of the hits that are kept, and writes them. */
#include "lanewise/search.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "align/align_backend.h"
#include "align/database.h"
#include "align/encode.h"
#include "align/search_backend.h"
#include "align/search_output.h"
#include "align/statistics.h"
#include "common/device.h"
#include "common/fail.h"
#include "common/outfile.h"
#include "common/seqio.h"

const lw_search_backend *const lw_search_backends[] = {&lw_search_scalar, &lw_search_cpu, &lw_search_cuda_dpx,
                                                       &lw_search_cuda_half2, &lw_search_cuda_int};
const int lw_search_backend_count = (int)(sizeof lw_search_backends / sizeof *lw_search_backends);

int lw_search_backend_list(int device, lw_backend_info *out, int capacity)
{
    const lw_backend *rows[sizeof lw_search_backends / sizeof *lw_search_backends];
    for (int i = 0; i < lw_search_backend_count; i++)
        rows[i] = &lw_search_backends[i]->base;
    return lw_backend_describe(rows, lw_search_backend_count, device, out, capacity);
}

/* Scores are int32 everywhere; the reference wants one bit of room for its minus infinity (align_scalar.c).
 */
static const int64_t SCORE_LIMIT = INT64_C(1) << 30;

/* Hits of one batch, and letters of one call that finds ends: bounds of memory, not of speed. */
static const int64_t BATCH_HITS = INT64_C(1) << 25;
enum { BATCH_QUERIES = 1 << 14 };

void lw_search_defaults(lw_search_options *options)
{
    *options = (lw_search_options){.match = -1,
                                   .mismatch = -1,
                                   .gap_open = -1,
                                   .gap_extend = -1,
                                   .strands = LW_BOTH_STRANDS,
                                   .top = 10,
                                   .evalue = 10,
                                   .min_score = 1};
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Queries that are scored in one call, and what becomes of them. */
typedef struct batch {
    lw_read_batch reads;
    uint8_t *codes;
    int64_t codes_capacity;
    int64_t *start;
    int32_t *len, *min_score, *filter, *n_hits;
    int64_t queries_capacity;
    lw_seqs queries;
    lw_search_hit *hits;
    int64_t hits_capacity;
    lw_match *matches;
    int64_t n_matches, matches_capacity;
    int64_t *first_match; /* of query i within matches; one more at the end */
    int32_t *more;        /* score of the best hit that was cut */
    lw_cigars cigars;
} batch;

/* Everything of one lw_search() call. */
typedef struct search {
    const lw_database *database;
    const lw_database_view *view;
    const lw_search_options *options;
    lw_host host;         /* the caller's, one call at a time */
    const lw_host *lent;  /* the caller's itself */
    pthread_mutex_t lock; /* of the calls to it */
    lw_scoring user;      /* the scores asked for, in their own codes */
    lw_scoring scoring;   /* the same in the codes of the database */
    uint8_t code[256];    /* byte -> code of the database */
    lw_statistics statistics;
    bool has_statistics, both_strands, traced;
    int64_t top, stride; /* hits per query and strand asked of the backend */
    lw_pool *pool;
    lw_seqio *reader;
    lw_outfile *file;
    const lw_search_backend *backend;
    void *context;
    const lw_align_backend *aligner;
    void *align_context;
    lw_search_writer writer;
    lw_substitutions substituted;
    lw_search_summary summary;
    lw_search_counts counts;
    int64_t done_queries; /* scored */
    batch batches[2];     /* one is scored while the other is finished and filled again */
} search;

/* ---- the host --------------------------------------------------------------------------------------- */

static void say(void *user, int level, const char *text)
{
    search *s = user;
    pthread_mutex_lock(&s->lock);
    s->lent->say(s->lent->user, level, text);
    pthread_mutex_unlock(&s->lock);
}

static void progress(void *user, double done, double total, double work)
{
    search *s = user;
    pthread_mutex_lock(&s->lock);
    s->lent->progress(s->lent->user, done, total, work);
    pthread_mutex_unlock(&s->lock);
}

/* Two threads work here, and a host is promised one call at a time. */
static void set_host(search *s, const lw_host *host)
{
    s->lent = host;
    if (host)
        s->host = (lw_host){.user = s,
                            .say = host->say ? say : NULL,
                            .progress = host->progress ? progress : NULL,
                            .stop = host->stop};
}

/* ---- scores ------------------------------------------------------------------------------------------ */

static lw_status make_scoring(search *s, lw_error *err)
{
    const lw_search_options *o = s->options;
    lw_alphabet_type type = lw_database_type(s->database);
    int open = o->gap_open >= 0 ? o->gap_open : type == LW_DNA ? 5 : 11;
    int extend = o->gap_extend >= 0 ? o->gap_extend : type == LW_DNA ? 2 : 1;
    if (o->matrix && (o->match >= 0 || o->mismatch >= 0))
        return lw_fail(err, LW_E_ARG, "give either a matrix or match and mismatch scores, not both");
    if (type == LW_PROTEIN && (o->match >= 0 || o->mismatch >= 0))
        return lw_fail(err, LW_E_ARG,
                       "%s holds protein: match and mismatch scores are for DNA (a matrix serves protein)",
                       lw_database_path(s->database));
    if (type == LW_DNA && !o->matrix)
        LW_TRY(lw_scoring_dna(&s->user, o->match >= 0 ? o->match : 2, o->mismatch >= 0 ? o->mismatch : 3,
                              open, extend, err));
    else
        LW_TRY(lw_scoring_matrix(&s->user, o->matrix ? o->matrix : "BLOSUM62", type, open, extend, err));
    return LW_OK;
}

/* The scores in the codes of the database. Letters that have none score 0: they are refused where they occur.
 */
void lw_search_scoring(lw_scoring *out, const lw_scoring *user)
{
    const char *letters = lw_database_alphabet(user->type);
    lw_scoring s = {.type = user->type,
                    .n_letters = (int32_t)strlen(letters),
                    .gap_open = user->gap_open,
                    .gap_extend = user->gap_extend,
                    .max_score = user->max_score,
                    .min_score = user->min_score};
    static const char from[] = "ACGTRYSWKMBDHVN", to[] = "TGCAYRSWMKVHDBN";
    strcpy(s.letter, letters);
    lw_database_codes(s.type, s.code);
    for (int q = 0; q < s.n_letters; q++) {
        uint8_t a = user->code[(unsigned char)letters[q]];
        s.complement[q] = (uint8_t)q;
        if (s.type == LW_DNA)
            s.complement[q] = s.code[(unsigned char)to[strchr(from, letters[q]) - from]];
        for (int t = 0; t < s.n_letters; t++) {
            uint8_t b = user->code[(unsigned char)letters[t]];
            if (a != LW_NO_CODE && b != LW_NO_CODE)
                s.score[q * LW_MAX_LETTERS + t] = user->score[a * LW_MAX_LETTERS + b];
        }
    }
    *out = s;
}

/* Letters of the database that the scores have no column for. */
static lw_status check_letters(search *s, lw_error *err)
{
    const int64_t *count = lw_database_code_counts(s->database);
    for (int c = 0; c < s->scoring.n_letters; c++) {
        unsigned char letter = (unsigned char)s->scoring.letter[c];
        if (count[c] == 0)
            continue;
        if (s->user.code[letter] == LW_NO_CODE)
            return lw_fail(err, LW_E_INPUT, "%s: the letter %c occurs, but the matrix has no column for it",
                           lw_database_path(s->database), letter);
        if (s->user.substituted[letter])
            s->substituted.count[letter] += count[c];
    }
    return LW_OK;
}

static lw_status check_range(const search *s, int32_t query_len, const char *where, lw_error *err)
{
    int64_t longest = s->view->n ? s->view->len[0] : 0;
    int64_t shorter = query_len < longest ? query_len : longest;
    if (shorter * (s->scoring.max_score > 0 ? s->scoring.max_score : 0) >= SCORE_LIMIT)
        return lw_fail(err, LW_E_RANGE,
                       "%s: %d letters against %lld with scores up to %d can reach %lld, beyond %lld: use "
                       "smaller scores",
                       where, query_len, (long long)longest, s->scoring.max_score,
                       (long long)(shorter * s->scoring.max_score), (long long)SCORE_LIMIT);
    return LW_OK;
}

/* ---- one batch: queries ------------------------------------------------------------------------------ */

static lw_status resize(void *array, int64_t n, size_t each, lw_error *err)
{
    void **at = array;
    void *moved = realloc(*at, (size_t)(n ? n : 1) * each);
    if (!moved)
        return lw_fail_memory(err, (size_t)n * each);
    *at = moved;
    return LW_OK;
}

static lw_status reserve_batch(search *s, batch *b, lw_error *err)
{
    int64_t n = b->reads.n * (s->both_strands ? 2 : 1),
            letters = b->reads.letters * (s->both_strands ? 2 : 1);
    if (letters > b->codes_capacity) {
        LW_TRY(resize(&b->codes, letters, 1, err));
        b->codes_capacity = letters;
    }
    if (n > b->queries_capacity) {
        LW_TRY(resize(&b->start, n, sizeof *b->start, err));
        LW_TRY(resize(&b->len, n, sizeof *b->len, err));
        LW_TRY(resize(&b->min_score, n, sizeof *b->min_score, err));
        LW_TRY(resize(&b->filter, n, sizeof *b->filter, err));
        LW_TRY(resize(&b->n_hits, n, sizeof *b->n_hits, err));
        LW_TRY(resize(&b->first_match, n + 1, sizeof *b->first_match, err));
        LW_TRY(resize(&b->more, n, sizeof *b->more, err));
        b->queries_capacity = n;
    }
    if (n * s->stride > b->hits_capacity) {
        LW_TRY(resize(&b->hits, n * s->stride, sizeof *b->hits, err));
        b->hits_capacity = n * s->stride;
    }
    return LW_OK;
}

static lw_status encode_query(search *s, batch *b, int64_t i, lw_error *err)
{
    char where[512];
    const unsigned char *text = (const unsigned char *)lw_read_seq(&b->reads, i);
    uint8_t *codes = b->codes + b->start[i];
    for (int32_t k = 0; k < b->len[i]; k++) {
        codes[k] = s->code[text[k]];
        if (codes[k] == LW_NO_CODE)
            return lw_database_letter_error(lw_read_where(s->reader, &b->reads, i, where, sizeof where),
                                            s->scoring.type, text[k], k + 1, err);
        if (s->user.code[text[k]] == LW_NO_CODE)
            return lw_fail(err, LW_E_INPUT, "%s: the letter %c at position %d has no column in the matrix",
                           lw_read_where(s->reader, &b->reads, i, where, sizeof where), text[k], k + 1);
        if (s->user.substituted[text[k]])
            s->substituted.count[(unsigned char)s->scoring.letter[codes[k]]]++;
    }
    if (s->both_strands) {
        int64_t n = b->reads.n;
        b->start[n + i] = b->start[i] + b->reads.letters;
        b->len[n + i] = b->len[i];
        for (int32_t k = 0; k < b->len[i]; k++)
            b->codes[b->start[n + i] + k] = s->scoring.complement[codes[b->len[i] - 1 - k]];
    }
    return LW_OK;
}

/* Codes, reverse complements, and the least score worth reporting of every query. */
static lw_status prepare_batch(search *s, batch *b, lw_error *err)
{
    const lw_search_options *o = s->options;
    LW_TRY(reserve_batch(s, b, err));
    int64_t at = 0, n = b->reads.n;
    char where[512];
    for (int64_t i = 0; i < n; i++) {
        b->start[i] = at;
        b->len[i] = b->reads.read[i].len;
        at += b->len[i];
        LW_TRY(check_range(s, b->len[i], lw_read_where(s->reader, &b->reads, i, where, sizeof where), err));
        LW_TRY(encode_query(s, b, i, err));
        int32_t cut = 1;
        if (s->has_statistics) {
            double space = lw_search_space(&s->statistics, b->len[i], s->view->letters, s->view->n);
            cut = lw_evalue_cutoff(&s->statistics, o->evalue, space);
        }
        b->min_score[i] = cut > o->min_score ? cut : o->min_score;
        b->filter[i] = !o->filter ? 0 : o->filter_score > 0 ? o->filter_score : (b->min_score[i] + 1) / 2;
        if (s->both_strands) {
            b->min_score[n + i] = b->min_score[i];
            b->filter[n + i] = b->filter[i];
        }
    }
    b->queries =
        (lw_seqs){.n = s->both_strands ? 2 * n : n, .codes = b->codes, .start = b->start, .len = b->len};
    return LW_OK;
}

/* ---- one batch: hits ----------------------------------------------------------------------------------- */

static void advance(void *user, double cells)
{
    search *s = user;
    s->summary.cells += cells;
    if (s->host.progress)
        s->host.progress(s->host.user, (double)s->done_queries, 0, s->summary.cells);
}

static lw_status add_match(batch *b, lw_match match, lw_error *err)
{
    if (b->n_matches == b->matches_capacity) {
        int64_t capacity = b->matches_capacity ? 2 * b->matches_capacity : 1024;
        LW_TRY(resize(&b->matches, capacity, sizeof *b->matches, err));
        b->matches_capacity = capacity;
    }
    b->matches[b->n_matches++] = match;
    return LW_OK;
}

/* Does hit a stand before hit b of the other strand? Forward (a) wins where all else is equal. */
static bool before(const search *s, const lw_search_hit *a, const lw_search_hit *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    return s->view->order[a->subject] <= s->view->order[b->subject];
}

static int compare_subjects(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* The best of both strands of query i, every subject once, on its better strand. Either list holds the best
 * `top` of its strand, so together they hold the best `top` of both. */
static lw_status merge_strands(const search *s, batch *b, int64_t i, lw_error *err)
{
    int64_t n = b->reads.n, f = 0, r = 0;
    const lw_search_hit *forward = b->hits + i * s->stride, *reverse = b->hits + (n + i) * s->stride;
    int32_t n_forward = b->n_hits[i], n_reverse = s->both_strands ? b->n_hits[n + i] : 0;
    int64_t want = s->options->top ? s->options->top : INT64_MAX, taken = 0;
    int32_t *subjects = NULL; /* of both lists, sorted, those that stand twice */
    int64_t n_twice = 0;
    if (n_forward && n_reverse) {
        int64_t all = (int64_t)n_forward + n_reverse;
        LW_TRY(resize(&subjects, all, sizeof *subjects, err));
        for (int64_t k = 0; k < n_forward; k++)
            subjects[k] = forward[k].subject;
        for (int64_t k = 0; k < n_reverse; k++)
            subjects[n_forward + k] = reverse[k].subject;
        qsort(subjects, (size_t)all, sizeof *subjects, compare_subjects);
        for (int64_t k = 1; k < all; k++)
            if (subjects[k] == subjects[k - 1])
                subjects[n_twice++] = subjects[k];
    }
    uint8_t *met = n_twice ? calloc((size_t)n_twice, 1) : NULL;
    if (n_twice && !met) {
        free(subjects);
        return lw_fail_memory(err, (size_t)n_twice);
    }
    lw_status status = LW_OK;
    b->more[i] = 0;
    while (f < n_forward || r < n_reverse) {
        bool is_reverse = f == n_forward || (r < n_reverse && !before(s, &forward[f], &reverse[r]));
        const lw_search_hit *hit = is_reverse ? &reverse[r++] : &forward[f++];
        if (n_twice) {
            const int32_t *twin =
                bsearch(&hit->subject, subjects, (size_t)n_twice, sizeof *subjects, compare_subjects);
            if (twin && met[twin - subjects])
                continue;
            if (twin)
                met[twin - subjects] = 1;
        }
        if (taken++ == want) {
            b->more[i] = hit->score;
            break;
        }
        LW_TRY_END(add_match(b,
                             (lw_match){.query = (int32_t)i,
                                        .subject = hit->subject,
                                        .score = hit->score,
                                        .reverse = is_reverse,
                                        .qstart = -1,
                                        .tstart = -1},
                             err));
    }
end:
    free(subjects), free(met);
    return status;
}

static lw_status find_hits(search *s, batch *b, lw_error *err)
{
    lw_search_request request = {.queries = &b->queries,
                                 .min_score = b->min_score,
                                 .filter = s->options->filter ? b->filter : NULL,
                                 .top_n = (int32_t)s->top,
                                 .advance = advance,
                                 .user = s,
                                 .counts = &s->counts};
    lw_search_result result = {.hits = b->hits, .stride = s->stride, .n_hits = b->n_hits};
    LW_TRY(s->backend->search(s->context, &request, &result, err));
    s->done_queries += b->reads.n;
    advance(s, 0);
    return LW_OK;
}

static lw_status keep_hits(const search *s, batch *b, lw_error *err)
{
    b->n_matches = 0;
    for (int64_t i = 0; i < b->reads.n; i++) {
        b->first_match[i] = b->n_matches;
        LW_TRY(merge_strands(s, b, i, err));
    }
    b->first_match[b->reads.n] = b->n_matches;
    return LW_OK;
}

/* ---- one batch: ends and paths ---------------------------------------------------------------------------
 */

/* The query and the subject of matches [from, to), as pairs. */
typedef struct pairs {
    int64_t *qstart, *tstart;
    int32_t *qlen, *tlen;
    lw_hit *ends;
    lw_trace_task *tasks;
    lw_path *paths;
} pairs;

static void free_pairs(pairs *p)
{
    free(p->qstart), free(p->tstart), free(p->qlen), free(p->tlen), free(p->ends), free(p->tasks),
        free(p->paths);
}

static lw_status align_piece(search *s, batch *b, lw_match *m, int64_t n, pairs *p, lw_error *err)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t query = m[k].query + (m[k].reverse ? b->reads.n : 0);
        p->qstart[k] = b->start[query];
        p->qlen[k] = b->len[query];
        p->tstart[k] = s->view->start[m[k].subject];
        p->tlen[k] = s->view->len[m[k].subject];
    }
    lw_seqs queries = {.n = n, .codes = b->codes, .start = p->qstart, .len = p->qlen};
    lw_seqs targets = {.n = n, .codes = s->view->codes, .start = p->tstart, .len = p->tlen};
    LW_TRY(s->aligner->pair_ends(s->align_context, &queries, &targets, p->ends, err));
    for (int64_t k = 0; k < n; k++) {
        if (p->ends[k].target < 0 || p->ends[k].score != m[k].score)
            return lw_fail(
                err, LW_E_INTERNAL,
                "backends disagree on query %s against %s: %s scores %d and %s %d; please report it",
                lw_read_name(&b->reads, m[k].query), lw_database_name(s->database, m[k].subject),
                s->backend->base.name, m[k].score, s->aligner->base.name, p->ends[k].score);
        m[k].qend = p->ends[k].qend;
        m[k].tend = p->ends[k].tend;
        lw_trace_window(&s->scoring, LW_LOCAL, &p->ends[k], &p->tasks[k]);
        p->tasks[k].query = p->tasks[k].target = k;
    }
    if (!s->traced)
        return LW_OK;
    LW_TRY(s->aligner->trace(s->align_context, &queries, &targets, n, p->tasks, p->paths, &b->cigars, err));
    for (int64_t k = 0; k < n; k++) {
        m[k].qstart = p->paths[k].qstart;
        m[k].tstart = p->paths[k].tstart;
        m[k].cigar = p->paths[k].cigar;
        m[k].n_cigar = p->paths[k].n_cigar;
    }
    return LW_OK;
}

static lw_status align_matches(search *s, batch *b, lw_error *err)
{
    enum { PIECE = 4096 };
    lw_status status = LW_OK;
    int64_t most = b->n_matches < PIECE ? b->n_matches : PIECE;
    pairs p = {0};
    LW_TRY_END(resize(&p.qstart, most, sizeof *p.qstart, err));
    LW_TRY_END(resize(&p.tstart, most, sizeof *p.tstart, err));
    LW_TRY_END(resize(&p.qlen, most, sizeof *p.qlen, err));
    LW_TRY_END(resize(&p.tlen, most, sizeof *p.tlen, err));
    LW_TRY_END(resize(&p.ends, most, sizeof *p.ends, err));
    LW_TRY_END(resize(&p.tasks, most, sizeof *p.tasks, err));
    LW_TRY_END(resize(&p.paths, most, sizeof *p.paths, err));
    b->cigars.n = 0;
    for (int64_t from = 0; from < b->n_matches; from += PIECE) {
        int64_t n = b->n_matches - from < PIECE ? b->n_matches - from : PIECE;
        if (lw_stopped(&s->host)) {
            status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
            break;
        }
        LW_TRY_END(align_piece(s, b, b->matches + from, n, &p, err));
    }
end:
    free_pairs(&p);
    return status;
}

static void write_batch(search *s, batch *b)
{
    lw_search_batch written = {.reads = &b->reads, .queries = &b->queries, .cigar = b->cigars.op};
    for (int64_t i = 0; i < b->reads.n; i++) {
        int64_t n = b->first_match[i + 1] - b->first_match[i];
        lw_match *m = b->matches + b->first_match[i];
        if (s->has_statistics) {
            double space = lw_search_space(&s->statistics, b->len[i], s->view->letters, s->view->n);
            for (int64_t k = 0; k < n; k++) {
                m[k].bits = lw_bit_score(&s->statistics, m[k].score);
                m[k].evalue = lw_evalue(&s->statistics, m[k].score, space);
            }
        }
        lw_search_write_query(&s->writer, &written, (int32_t)i, m, n, b->more[i]);
    }
    s->summary.hits += b->n_matches;
}

/* ---- the whole run ---------------------------------------------------------------------------------------
 */

/* Compares a mapped database with its checksums while the device works. */
typedef struct checker {
    pthread_t thread;
    bool running;
    const search *search;
    lw_status status;
    lw_error error;
} checker;

static void *check(void *arg)
{
    checker *c = arg;
    c->status = lw_database_check_blocks(c->search->database, c->search->pool, &c->search->host, &c->error);
    return NULL;
}

/* CPU backends index tables with the codes, so for them the check comes first; it costs less than one short
 * query. */
static lw_status begin_check(search *s, checker *c, lw_error *err)
{
    c->search = s;
    if (!lw_database_mapped(s->database))
        return LW_OK;
    if (strncmp(s->backend->base.name, "cuda", 4) == 0 && pthread_create(&c->thread, NULL, check, c) == 0) {
        c->running = true;
        return LW_OK;
    }
    return lw_database_check_blocks(s->database, s->pool, &s->host, err);
}

/* Waits for the check. A damaged database explains whatever else failed. */
static lw_status end_check(checker *c, lw_status so_far, lw_error *err)
{
    if (!c->running)
        return so_far;
    pthread_join(c->thread, NULL);
    c->running = false;
    if (c->status == LW_OK)
        return so_far;
    if (err)
        *err = (lw_error){0};
    return lw_fail(err, c->status, "%s", c->error.message);
}

static lw_status choose(search *s, lw_error *err)
{
    const char *name = s->options->backend ? s->options->backend : "auto";
    const lw_backend *rows[sizeof lw_search_backends / sizeof *lw_search_backends];
    int index;
    char why[256];
    for (int i = 0; i < lw_search_backend_count; i++)
        rows[i] = &lw_search_backends[i]->base;
    LW_TRY(lw_backend_choose(rows, lw_search_backend_count, name, s->options->device, &index, why, sizeof why,
                             err));
    lw_say(&s->host, LW_SAY_INFO, "%s", why);
    s->backend = lw_search_backends[index];
    snprintf(s->summary.backend, sizeof s->summary.backend, "%s", s->backend->base.name);
    lw_device device;
    if (strncmp(s->backend->base.name, "cuda", 4) == 0 &&
        lw_device_query(s->options->device, &device, NULL) == LW_OK)
        snprintf(s->summary.device, sizeof s->summary.device, "%s", device.name);
    /* The few hits that are kept get their ends and paths from the alignment row of the same name, or from
     * the last CPU row where there is none. */
    s->aligner = &lw_align_scalar;
    for (int i = 0; i < lw_align_backend_count; i++) {
        const lw_backend *row = &lw_align_backends[i]->base;
        if (strcmp(row->name, s->backend->base.name) == 0 &&
            row->usable(row, s->options->device, NULL) == LW_OK) {
            s->aligner = lw_align_backends[i];
            break;
        }
        if (strcmp(row->name, "cpu") == 0)
            s->aligner = lw_align_backends[i];
    }
    return LW_OK;
}

static lw_status open_backends(search *s, lw_error *err)
{
    lw_search_setup setup = {.scoring = &s->scoring,
                             .database = s->view,
                             .pool = s->pool,
                             .device = s->options->device,
                             .device_bytes = s->options->device_bytes,
                             .host = &s->host};
    LW_TRY(s->backend->open(s->backend, &s->context, &setup, err));
    lw_align_setup align = {.scoring = &s->scoring,
                            .mode = LW_LOCAL,
                            .strands = LW_FORWARD,
                            .min_score = 1,
                            .n_hits = 1,
                            .pool = s->pool,
                            .device = s->options->device,
                            .host = &s->host};
    return s->aligner->open(s->aligner, &s->align_context, &align, err);
}

static lw_status check_options(search *s, lw_error *err)
{
    const lw_search_options *o = s->options;
    lw_alphabet_type type = lw_database_type(s->database);
    if (o->letters != LW_LETTERS_AUTO && (o->letters == LW_LETTERS_DNA) != (type == LW_DNA))
        return lw_fail(err, LW_E_ARG, "%s holds %s, so the queries cannot be %s",
                       lw_database_path(s->database), type == LW_DNA ? "DNA" : "protein",
                       type == LW_DNA ? "protein" : "DNA");
    if (o->top < 0 || o->min_score < 1 || !(o->evalue > 0) || o->filter_score < 0)
        return lw_fail(err, LW_E_ARG, "top, the E-value and the least score must be positive");
    if (!(o->strands & LW_BOTH_STRANDS) || (type == LW_DNA && o->strands == LW_REVERSE))
        return lw_fail(err, LW_E_ARG, "strands are both or forward");
    if (o->filter && o->filter_score == 0 && o->no_evalue)
        return lw_fail(err, LW_E_ARG,
                       "the gapless filter needs a score of its own where there are no E-values");
    if (o->format == LW_SEARCH_SAM && lw_database_duplicate_names(s->database))
        return lw_fail(err, LW_E_INPUT, "%s: two sequences have the same name, which SAM does not allow",
                       lw_database_path(s->database));
    return LW_OK;
}

/* Reads and prepares the next batch; no reads: there is none. */
static lw_status next_batch(search *s, batch *b, lw_error *err)
{
    int64_t most = BATCH_HITS / (s->stride * (s->both_strands ? 2 : 1));
    most = most < 1 ? 1 : most > BATCH_QUERIES ? BATCH_QUERIES : most;
    LW_TRY(lw_seqio_read(s->reader, &b->reads, most, s->backend->batch_letters, err));
    return b->reads.n ? prepare_batch(s, b, err) : LW_OK;
}

/* What is left to do with a batch that was scored. */
static lw_status finish_batch(search *s, batch *b, checker *c, lw_error *err)
{
    LW_TRY(keep_hits(s, b, err));
    LW_TRY(align_matches(s, b, err));
    LW_TRY(end_check(c, LW_OK, err));
    write_batch(s, b);
    return LW_OK;
}

/* The scoring of one batch, in a thread of its own where there is one. */
typedef struct scoring {
    search *search;
    batch *batch;
    pthread_t thread;
    bool running;
    lw_status status;
    lw_error error;
} scoring;

static void *score_batch(void *arg)
{
    scoring *x = arg;
    x->status = find_hits(x->search, x->batch, &x->error);
    return NULL;
}

static void begin_scoring(scoring *x, search *s, batch *b)
{
    *x = (scoring){.search = s, .batch = b};
    x->running = pthread_create(&x->thread, NULL, score_batch, x) == 0;
    if (!x->running)
        score_batch(x);
}

static lw_status end_scoring(scoring *x, lw_status so_far, lw_error *err)
{
    if (x->running)
        pthread_join(x->thread, NULL);
    if (so_far != LW_OK || x->status == LW_OK)
        return so_far;
    return lw_fail(err, x->status, "%s", x->error.message);
}

/* While a batch is scored, the one before it is finished and the next one read. */
static lw_status run(search *s, checker *c, lw_error *err)
{
    batch *now_scored = &s->batches[0], *other = &s->batches[1];
    LW_TRY(next_batch(s, now_scored, err));
    while (now_scored->reads.n > 0) {
        scoring x;
        begin_scoring(&x, s, now_scored);
        lw_status status = other->reads.n > 0 ? finish_batch(s, other, c, err) : LW_OK;
        if (status == LW_OK)
            status = next_batch(s, other, err);
        LW_TRY(end_scoring(&x, status, err));
        batch *scored = now_scored;
        now_scored = other;
        other = scored;
    }
    return other->reads.n > 0 ? finish_batch(s, other, c, err) : LW_OK;
}

static void free_batch(batch *b)
{
    lw_read_batch_free(&b->reads);
    free(b->codes), free(b->start), free(b->len), free(b->min_score), free(b->filter), free(b->n_hits);
    free(b->hits), free(b->matches), free(b->first_match), free(b->more), free(b->cigars.op);
}

static void free_search(search *s)
{
    if (s->context)
        s->backend->close(s->context);
    if (s->align_context)
        s->aligner->close(s->align_context);
    lw_seqio_close(s->reader);
    lw_pool_close(s->pool);
    free_batch(&s->batches[0]);
    free_batch(&s->batches[1]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

lw_status lw_search(const lw_database *database, const char *const *queries, int n_queries,
                    const char *output, const lw_search_options *options, lw_temporaries *temporaries,
                    lw_search_summary *summary, const lw_host *host, lw_error *err)
{
    lw_status status = LW_OK;
    checker c = {0};
    search *s = calloc(1, sizeof *s);
    if (!s)
        return lw_fail_memory(err, sizeof *s);
    s->database = database;
    s->view = lw_database_get_view(database);
    s->options = options;
    pthread_mutex_init(&s->lock, NULL);
    set_host(s, host);
    LW_TRY_END(check_options(s, err));
    LW_TRY_END(make_scoring(s, err));
    lw_search_scoring(&s->scoring, &s->user);
    LW_TRY_END(check_letters(s, err));
    if (!options->no_evalue)
        LW_TRY_END(lw_statistics_find(&s->statistics, &s->user, err));
    s->has_statistics = !options->no_evalue;
    s->both_strands = s->scoring.type == LW_DNA && options->strands == LW_BOTH_STRANDS;
    s->traced = options->align || options->format != LW_SEARCH_TSV;
    lw_database_codes(s->scoring.type, s->code);
    /* one hit more than is reported tells SAM's XS */
    s->top = options->top && options->top < s->view->n ? (int64_t)options->top + 1 : INT32_MAX;
    s->stride = s->top < s->view->n ? s->top : s->view->n ? s->view->n : 1;
    LW_TRY_END(choose(s, err));
    LW_TRY_END(lw_pool_open(&s->pool, options->threads, err));
    lw_seqio_options reading = {.pool = s->pool, .host = &s->host};
    LW_TRY_END(lw_seqio_open(&s->reader, queries, n_queries, &reading, err));
    LW_TRY_END(lw_outfile_open(&s->file, output, temporaries, err));
    FILE *stream = lw_outfile_stream(s->file);
    if (!stream) {
        status = lw_fail_memory(err, BUFSIZ);
        goto end;
    }
    s->writer = (lw_search_writer){.to = stream,
                                   .database = database,
                                   .scoring = &s->scoring,
                                   .format = options->format,
                                   .statistics = s->has_statistics,
                                   .traced = s->traced,
                                   .command_line = options->command_line};
    double started = now();
    LW_TRY_END(begin_check(s, &c, err));
    LW_TRY_END(open_backends(s, err));
    lw_search_write_begin(&s->writer);
    LW_TRY_END(run(s, &c, err));
    s->summary.search_seconds = now() - started;
    lw_warn_substitutions(host, &s->substituted);
    const lw_seqio_counts *read = lw_seqio_count(s->reader);
    if (read->empty)
        lw_say(host, LW_SAY_WARNING, "%lld of %lld queries are empty and have no hits",
               (long long)read->empty, (long long)read->records);
end:
    status = end_check(&c, status, err);
    status = lw_outfile_close(s->file, status, err);
    s->summary.queries = s->done_queries;
    s->summary.filtered = s->counts.filtered;
    s->summary.rescued = s->counts.rescued;
    s->summary.busy_seconds = s->counts.busy_seconds;
    if (summary)
        *summary = s->summary;
    free_search(s);
    return status;
}
