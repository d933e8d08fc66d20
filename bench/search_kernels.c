/* search_kernels.c - the CUDA rows of the search alone: a generated database of Swiss-Prot's shape on the
 * device, queries of 64 to 4096 letters, answers compared with a plain recurrence first, then medians of
 * times.
 *
 *   search_kernels [ROW [MILLION_RESIDUES [check|time|once]]]        default: cuda-dpx 200 */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "align/search_backend.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 16);
}

static double uniform(uint64_t *state)
{
    return (draw(state) + 0.5) / 4294967296.0;
}

/* Swiss-Prot's letter frequencies in percent, in the order of the codes. */
static const double frequency[20] = {8.25, 5.53, 4.06, 5.46, 1.38, 3.93, 6.72, 7.07, 2.27, 5.91,
                                     9.65, 5.80, 2.41, 3.86, 4.74, 6.65, 5.36, 1.10, 2.92, 6.86};
static uint8_t letter_of[256];

static void residues(uint64_t *state, uint8_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = letter_of[draw(state) & 255];
}

enum { QUERY_LENGTHS = 7, LONGEST = 35213, HOMOLOGS = 8 };
static const int32_t query_length[QUERY_LENGTHS] = {64, 128, 256, 512, 1024, 2048, 4096};

typedef struct set {
    lw_database_view view;
    uint8_t *codes;
    int64_t *start;
    int32_t *len, *order;
} set;

static int longer_first(const void *x, const void *y)
{
    return *(const int32_t *)y - *(const int32_t *)x;
}

/* Lengths: log-normal around 294 and a thin power-law tail, one of LONGEST; a mutated copy of a query in
 * place of some sequences of at least its length. */
static void make_database(set *s, double letters, uint8_t *const *queries)
{
    uint64_t state = 88172645463325252u;
    int64_t capacity = (int64_t)(letters / 250) + 1000, n = 0, total = 0;
    s->len = malloc((size_t)capacity * sizeof *s->len);
    s->len[n++] = LONGEST;
    total = LONGEST;
    while ((double)total < letters && n < capacity) {
        double x =
            exp(log(294.0) + 0.605 * sqrt(-2 * log(uniform(&state))) * cos(6.283185307 * uniform(&state)));
        if (uniform(&state) < 0.0015)
            x = 2500 * pow(uniform(&state), -1 / 1.9);
        if (x < 2 || x > LONGEST)
            continue;
        s->len[n] = (int32_t)x;
        total += s->len[n++];
    }
    qsort(s->len, (size_t)n, sizeof *s->len, longer_first);
    s->start = malloc((size_t)n * sizeof *s->start);
    s->order = malloc((size_t)n * sizeof *s->order);
    s->codes = malloc((size_t)total);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        s->start[i] = at;
        s->order[i] =
            (int32_t)((i * 7919) % n); /* n and 7919 have no common factor, or the next line fails */
        at += s->len[i];
    }
    if (n % 7919 == 0)
        exit(2);
    residues(&state, s->codes, (int32_t)(total < 1000000000 ? total : 1000000000));
    for (int q = 0; q < QUERY_LENGTHS; q++)
        for (int k = 0; k < HOMOLOGS; k++) {
            int64_t i = (int64_t)(uniform(&state) * (double)n);
            while (i > 0 && s->len[i] < query_length[q])
                i /= 2;
            for (int32_t j = 0; j < query_length[q] && j < s->len[i]; j++)
                if (uniform(&state) > 0.02 + 0.1 * k)
                    s->codes[s->start[i] + j] = queries[q][j];
        }
    s->view = (lw_database_view){.n = n,
                                 .letters = total,
                                 .n_codes = 20,
                                 .codes = s->codes,
                                 .start = s->start,
                                 .len = s->len,
                                 .order = s->order,
                                 .packed = true};
}

static int32_t plain_score(const lw_scoring *sc, const uint8_t *q, int32_t m, const uint8_t *t, int32_t n)
{
    int32_t *h = calloc((size_t)m + 1, 8), *f = h + m + 1, best = 0;
    int32_t open = sc->gap_open + sc->gap_extend, extend = sc->gap_extend;
    for (int32_t i = 0; i < n; i++) {
        int32_t diagonal = 0, e = 0;
        const int16_t *column = sc->score + t[i];
        for (int32_t j = 1; j <= m; j++) {
            int32_t x = diagonal + column[q[j - 1] * LW_MAX_LETTERS];
            x = x > e ? x : e;
            x = x > f[j] ? x : f[j];
            x = x > 0 ? x : 0;
            diagonal = h[j];
            h[j] = x;
            best = x > best ? x : best;
            e = e - extend > x - open ? e - extend : x - open;
            f[j] = f[j] - extend > x - open ? f[j] - extend : x - open;
        }
    }
    free(h);
    return best;
}

/* Hits of one query against a sample: every hit has its score, and no sampled subject is missing. */
typedef struct check {
    const set *s;
    const lw_scoring *sc;
    const uint8_t *query;
    int32_t m, n_hits, top_n;
    const lw_search_hit *hits;
    int64_t sample, next;
    int bad;
    pthread_mutex_t lock;
} check;

static void *check_worker(void *arg)
{
    check *c = arg;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        int64_t i = c->next++;
        pthread_mutex_unlock(&c->lock);
        if (i >= c->n_hits + c->sample)
            return NULL;
        int64_t subject = i < c->n_hits ? c->hits[i].subject : (i - c->n_hits) * (c->s->view.n / c->sample);
        int32_t score =
            plain_score(c->sc, c->query, c->m, c->s->codes + c->s->start[subject], c->s->len[subject]);
        bool wrong = i < c->n_hits && score != c->hits[i].score;
        if (i >= c->n_hits && c->n_hits == c->top_n) {
            lw_search_hit last = c->hits[c->n_hits - 1];
            bool belongs = score > last.score ||
                           (score == last.score && c->s->order[subject] <= c->s->order[last.subject]);
            bool there = false;
            for (int32_t k = 0; k < c->n_hits; k++)
                there = there || c->hits[k].subject == subject;
            wrong = belongs != there;
        }
        if (wrong) {
            pthread_mutex_lock(&c->lock);
            if (c->bad++ < 3)
                printf("  WRONG: query of %d, subject %lld of %d letters, score %d, said %d\n", c->m,
                       (long long)subject, c->s->len[subject], score, i < c->n_hits ? c->hits[i].score : -1);
            pthread_mutex_unlock(&c->lock);
        }
    }
}

typedef struct run {
    const lw_search_backend *row;
    void *context;
    const set *s;
    lw_search_hit *hits;
    int32_t *n_hits;
    int32_t top_n;
    double median, busy;
    lw_search_counts counts;
} run;

static int ascending(const void *x, const void *y)
{
    return *(const double *)x < *(const double *)y ? -1 : 1;
}

static void time_queries(run *r, int n, uint8_t *const *query, const int32_t *len, int32_t min_score,
                         int times)
{
    int64_t letters = 0, *start = malloc((size_t)n * sizeof *start);
    for (int i = 0; i < n; i++)
        letters += len[i];
    uint8_t *codes = malloc((size_t)letters);
    int32_t *least = malloc((size_t)n * sizeof *least);
    letters = 0;
    for (int i = 0; i < n; i++) {
        memcpy(codes + letters, query[i], (size_t)len[i]);
        start[i] = letters;
        letters += len[i];
        least[i] = min_score;
    }
    lw_seqs queries = {n, codes, start, len};
    lw_search_request request = {
        .queries = &queries, .min_score = least, .top_n = r->top_n, .counts = &r->counts};
    lw_search_result result = {r->hits, r->top_n, r->n_hits};
    double took[9], busy[9];
    for (int i = -1; i < times; i++) {
        lw_error err = {0};
        r->counts = (lw_search_counts){0};
        double from = seconds();
        if (r->row->search(r->context, &request, &result, &err) != LW_OK) {
            printf("FAILED: %s\n", err.message);
            exit(1);
        }
        if (i >= 0) {
            took[i] = seconds() - from;
            busy[i] = r->counts.busy_seconds;
        }
    }
    qsort(took, (size_t)times, sizeof *took, ascending);
    qsort(busy, (size_t)times, sizeof *busy, ascending);
    r->median = took[times / 2];
    r->busy = busy[times / 2];
    free(codes), free(start), free(least);
}

static void report(const run *r, const char *what)
{
    double cells = (double)r->counts.cells;
    printf("%-28s %9.3f ms  %6.3f TCUPS  (device %9.3f ms, %6.3f; %5.2f cells/clk/SM at 1.98 GHz, 132 SM)  "
           "rescued %lld\n",
           what, 1e3 * r->median, 1e-12 * cells / r->median, 1e3 * r->busy, 1e-12 * cells / r->busy,
           cells / r->busy / 1.98e9 / 132, (long long)r->counts.rescued);
    fflush(stdout);
}

static int check_hits(const run *r, const lw_scoring *sc, int n, uint8_t *const *query, const int32_t *len)
{
    int bad = 0;
    for (int q = 0; q < n; q++) {
        check c = {.s = r->s,
                   .sc = sc,
                   .query = query[q],
                   .m = len[q],
                   .n_hits = r->n_hits[q],
                   .top_n = r->top_n,
                   .hits = r->hits + (int64_t)q * r->top_n,
                   .sample = 2000000 / len[q] + 100};
        pthread_mutex_init(&c.lock, NULL);
        pthread_t threads[64];
        int n_threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
        n_threads = n_threads > 64 ? 64 : n_threads;
        for (int i = 0; i < n_threads; i++)
            pthread_create(&threads[i], NULL, check_worker, &c);
        for (int i = 0; i < n_threads; i++)
            pthread_join(threads[i], NULL);
        bad += c.bad;
    }
    return bad;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cuda-dpx";
    double letters = 1e6 * (argc > 2 ? atof(argv[2]) : 200);
    const char *what = argc > 3 ? argv[3] : "both";
    double sum = 0, from = 0;
    for (int i = 0, k = 0; i < 20; i++)
        for (sum += frequency[i]; k < 256 && k < sum / 99.93 * 256 + 0.5; k++)
            letter_of[k] = (uint8_t)i;
    uint64_t state = 1234567;
    uint8_t *queries[QUERY_LENGTHS], *same[100];
    int32_t same_len[100];
    for (int q = 0; q < QUERY_LENGTHS; q++) {
        queries[q] = malloc((size_t)query_length[q]);
        residues(&state, queries[q], query_length[q]);
    }
    for (int q = 0; q < 100; q++) {
        same[q] = malloc(512);
        residues(&state, same[q], 512);
    }
    set s;
    from = seconds();
    make_database(&s, letters, queries);
    printf("%lld sequences, %lld residues, made in %.1f s\n", (long long)s.view.n, (long long)s.view.letters,
           seconds() - from);
    lw_scoring letters_scoring, scoring;
    lw_error err = {0};
    if (lw_scoring_matrix(&letters_scoring, "BLOSUM62", LW_PROTEIN, 11, 1, &err) != LW_OK)
        return 1;
    scoring = letters_scoring; /* database codes begin with the matrix's letters */
    run r = {.s = &s, .top_n = 10};
    for (int i = 0; i < lw_search_backend_count; i++)
        if (strcmp(lw_search_backends[i]->base.name, name) == 0)
            r.row = lw_search_backends[i];
    if (!r.row || r.row->base.usable(&r.row->base, 0, &err) != LW_OK) {
        printf("%s: %s\n", name, err.message);
        return 1;
    }
    lw_pool *pool;
    if (lw_pool_open(&pool, 0, &err) != LW_OK)
        return 1;
    lw_search_setup setup = {.scoring = &scoring, .database = &s.view, .pool = pool};
    from = seconds();
    if (r.row->open(r.row, &r.context, &setup, &err) != LW_OK) {
        printf("%s\n", err.message);
        return 1;
    }
    printf("%s: opened in %.3f s\n", name, seconds() - from);
    r.hits = malloc(100 * (size_t)r.top_n * sizeof *r.hits);
    r.n_hits = calloc(100, sizeof *r.n_hits);
    int bad = 0, times = 5;
    if (strcmp(what, "once") == 0) { /* for a profiler */
        time_queries(&r, 1, &queries[4], &query_length[4], 1, 1);
        time_queries(&r, QUERY_LENGTHS, queries, query_length, 1, 1);
    }
    if (strcmp(what, "both") == 0 || strcmp(what, "check") == 0) {
        from = seconds();
        time_queries(&r, QUERY_LENGTHS, queries, query_length, 1, 1);
        bad += check_hits(&r, &scoring, QUERY_LENGTHS, queries, query_length);
        for (int q = 0; q < QUERY_LENGTHS; q++) {
            time_queries(&r, 1, &queries[q], &query_length[q], 1, 1);
            bad += check_hits(&r, &scoring, 1, &queries[q], &query_length[q]);
        }
        printf("checked in %.1f s: %d wrong\n", seconds() - from, bad);
        fflush(stdout);
    }
    if (strcmp(what, "both") == 0 || strcmp(what, "time") == 0) {
        double total = 0, cells = 0;
        char line[64];
        for (int q = 0; q < QUERY_LENGTHS; q++) {
            time_queries(&r, 1, &queries[q], &query_length[q], 1, times);
            snprintf(line, sizeof line, "query of %d", query_length[q]);
            report(&r, line);
            total += r.median;
            cells += (double)r.counts.cells;
        }
        printf("%-28s %9.3f ms  %6.3f TCUPS\n", "one at a time, all", 1e3 * total, 1e-12 * cells / total);
        time_queries(&r, QUERY_LENGTHS, queries, query_length, 1, times);
        report(&r, "all seven in one call");
        for (int q = 0; q < 64; q++)
            same_len[q] = 64;
        time_queries(&r, 64, same, same_len, 1, times);
        report(&r, "64 of 64 in one call");
        for (int q = 0; q < 100; q++)
            same_len[q] = 512;
        time_queries(&r, 100, same, same_len, 1, 3);
        report(&r, "100 of 512 in one call");
    }
    r.row->close(r.context);
    lw_pool_close(pool);
    return bad != 0;
}
