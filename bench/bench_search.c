/* bench_search.c - protein queries against a Swiss-Prot-like database: every backend, one query at a time and
 * all in one call; the CPU row and parasail on one thread; a whole run from files; the gapless filter and
 * what it misses. */
#include "bench.h"
#include "peer_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "align/search_backend.h"
#include "common/fail.h"
#include "lanewise/search.h"
#include "search_sets.h"

enum { TOP = 10, HOMOLOGS = 8, N_LENGTHS = 7, MAX_LEN = 35213 };
static const int32_t lengths[N_LENGTHS] = {64, 128, 256, 512, 1024, 2048, 4096};

typedef struct input {
    lw_scoring letters, scoring; /* in the codes of the matrix, of the database */
    search_set db, sample;       /* the whole database; a few hundred sequences of it for the reference */
    search_set queries;          /* of the seven lengths */
    search_set many_short;       /* 64 queries of 64 letters */
    search_set many;             /* queries of 512 letters */
    char name[32];               /* of the database's size, "200 M" */
} input;

/* Mutated copies of the queries, from nearly the same to barely related, are spread over the database. */
static void make_input(input *in, int64_t residues, int n_many, uint64_t seed)
{
    uint64_t state = seed;
    uint8_t *codes = malloc(4 * (size_t)MAX_LEN + 64);
    if (!codes)
        abort();
    for (int k = 0; k < N_LENGTHS; k++) {
        set_random_protein(&state, codes, lengths[k]);
        set_add(&in->queries, codes, lengths[k]);
    }
    int64_t planted = 0, total = residues / 400; /* about that many sequences come */
    for (int64_t i = 0; in->db.letters < residues; i++) {
        int32_t len = set_random_length(&state, MAX_LEN);
        set_random_protein(&state, codes, len);
        set_add(&in->db, codes, len);
        if (i >= total / (N_LENGTHS * HOMOLOGS) * planted && planted < N_LENGTHS * HOMOLOGS) {
            int64_t query = planted % N_LENGTHS;
            double share = (double)(planted / N_LENGTHS) / (HOMOLOGS - 1);
            len = set_mutate(&state, in->queries.codes + in->queries.start[query], in->queries.len[query],
                             0.02 + 0.70 * share, 0.002 + 0.03 * share, codes);
            set_add(&in->db, codes, len);
            set_add(&in->sample, codes, len);
            planted++;
        }
    }
    if (residues >= 50000000) {
        set_random_protein(&state, codes, MAX_LEN);
        set_add(&in->db, codes, MAX_LEN);
    }
    for (int64_t i = 0; i < in->db.n && in->sample.n < 160; i += 1 + in->db.n / 100)
        set_add(&in->sample, in->db.codes + in->db.start[i], in->db.len[i]);
    for (int k = 0; k < 64; k++) {
        set_random_protein(&state, codes, 64);
        set_add(&in->many_short, codes, 64);
    }
    for (int k = 0; k < n_many; k++) { /* every second one related to something in the database */
        set_random_protein(&state, codes, 512);
        int64_t i = (int64_t)(set_random(&state) % (uint64_t)in->db.n);
        if (k % 2)
            memcpy(codes + 100, in->db.codes + in->db.start[i],
                   (size_t)(in->db.len[i] < 400 ? in->db.len[i] : 400));
        set_add(&in->many, codes, 512);
    }
    free(codes);
    snprintf(in->name, sizeof in->name, "%.3g M", (double)in->db.letters * 1e-6);
}

static void free_input(input *in)
{
    set_free(&in->db), set_free(&in->sample), set_free(&in->queries), set_free(&in->many_short),
        set_free(&in->many);
}

/* ---- one backend --------------------------------------------------------------------------------------- */

typedef struct running {
    const lw_search_backend *row;
    void *context;
    lw_seqs queries;
    int32_t first, n; /* queries of this measurement */
    bool one_by_one;
    const int32_t *filter;
    lw_search_hit *hits; /* TOP for each query */
    int32_t *n_hits;
    lw_search_counts counts;
} running;

static lw_status search_once(running *r, int32_t first, int32_t n, lw_error *err)
{
    int32_t min_score[128];
    for (int32_t k = 0; k < n; k++)
        min_score[k] = 1;
    lw_seqs queries = {
        .n = n, .codes = r->queries.codes, .start = r->queries.start + first, .len = r->queries.len + first};
    lw_search_request request = {.queries = &queries,
                                 .min_score = min_score,
                                 .filter = r->filter ? r->filter + first : NULL,
                                 .top_n = TOP,
                                 .counts = &r->counts};
    lw_search_result result = {.hits = r->hits + first * TOP, .stride = TOP, .n_hits = r->n_hits + first};
    return r->row->search(r->context, &request, &result, err);
}

static lw_status search_all(void *arg, lw_error *err)
{
    running *r = arg;
    if (!r->one_by_one)
        return search_once(r, r->first, r->n, err);
    for (int32_t k = 0; k < r->n; k++)
        LW_TRY(search_once(r, r->first + k, 1, err));
    return LW_OK;
}

static int64_t letters_of(const lw_seqs *s, int32_t first, int32_t n)
{
    int64_t sum = 0;
    for (int32_t k = first; k < first + n; k++)
        sum += s->len[k];
    return sum;
}

/* Hits of `queries` against a set by a row. */
static lw_status hits_of(const lw_search_backend *row, const bench *b, const input *in, search_set *db,
                         const search_set *queries, const int32_t *filter, lw_search_hit *hits,
                         int32_t *n_hits, lw_error *err)
{
    lw_database_view view = set_view(db);
    lw_search_setup setup = {
        .scoring = &in->scoring, .database = &view, .pool = b->pool, .device = b->device, .host = b->host};
    running r = {.row = row,
                 .queries = set_seqs(queries),
                 .n = (int32_t)queries->n,
                 .filter = filter,
                 .hits = hits,
                 .n_hits = n_hits};
    LW_TRY(row->open(row, &r.context, &setup, err));
    lw_status status = search_all(&r, err);
    row->close(r.context);
    return status;
}

static lw_status compare_hits(const char *who, const char *whom, const lw_search_hit *got,
                              const int32_t *n_got, const lw_search_hit *want, const int32_t *n_want,
                              int64_t n, lw_error *err)
{
    for (int64_t q = 0; q < n; q++)
        for (int32_t k = 0; k < n_want[q] || k < n_got[q]; k++) {
            const lw_search_hit *g = &got[q * TOP + k], *w = &want[q * TOP + k];
            if (n_got[q] != n_want[q] || g->score != w->score || g->subject != w->subject)
                return lw_fail(
                    err, LW_E_INTERNAL,
                    "bench search: query %lld, hit %d: backend %s has subject %d with score %d, %s has "
                    "subject %d with score %d",
                    (long long)q, k, who, g->subject, g->score, whom, w->subject, w->score);
        }
    return LW_OK;
}

/* The row against the scalar reference on the sample. */
static lw_status verify(const bench *b, input *in, const lw_search_backend *row, lw_error *err)
{
    lw_search_hit got[N_LENGTHS * TOP], want[N_LENGTHS * TOP];
    int32_t n_got[N_LENGTHS], n_want[N_LENGTHS];
    search_set few = in->queries;
    few.n = b->quick ? 4 : 6; /* the longest would keep the reference busy for too long */
    LW_TRY(hits_of(row, b, in, &in->sample, &few, NULL, got, n_got, err));
    LW_TRY(hits_of(&lw_search_scalar, b, in, &in->sample, &few, NULL, want, n_want, err));
    return compare_hits(row->base.name, "the scalar reference", got, n_got, want, n_want, few.n, err);
}

/* One timed line. What a row finds in the whole database must be what `want` holds, if there is something to
 * compare. */
static lw_status measure(bench *b, running *r, const char *name, const char *label, const char *shape,
                         double letters, bool one_thread, lw_error *err)
{
    bench_result about = {.domain = "search", .verified = true, .unit = "GCUPS", .one_thread = one_thread};
    snprintf(about.name, sizeof about.name, "%s", name);
    snprintf(about.backend, sizeof about.backend, "%s", label);
    snprintf(about.shape, sizeof about.shape, "%s", shape);
    return bench_measure(b, &about, (double)letters_of(&r->queries, r->first, r->n) * letters * 1e-9,
                         search_all, r, err);
}

static lw_status bench_row(bench *b, input *in, const lw_search_backend *row, const lw_search_hit *want,
                           const int32_t *n_want, lw_search_hit *found, int32_t *n_found, lw_error *err)
{
    LW_TRY(verify(b, in, row, err));
    lw_database_view view = set_view(&in->db);
    lw_search_setup setup = {
        .scoring = &in->scoring, .database = &view, .pool = b->pool, .device = b->device, .host = b->host};
    running r = {.row = row, .queries = set_seqs(&in->queries), .hits = found, .n_hits = n_found};
    lw_search_hit short_hits[64 * TOP];
    int32_t n_short[64];
    char shape[96];
    LW_TRY(row->open(row, &r.context, &setup, err));
    lw_status status = LW_OK;
    for (int k = 0; k < N_LENGTHS; k++) {
        r.first = k;
        r.n = 1;
        snprintf(shape, sizeof shape, "query of %d vs %s", lengths[k], in->name);
        LW_TRY_END(measure(b, &r, "score", row->base.name, shape, (double)view.letters, false, err));
    }
    r.first = 0;
    r.n = N_LENGTHS;
    r.one_by_one = true;
    snprintf(shape, sizeof shape, "7 queries, 64 to 4096, vs %s", in->name);
    LW_TRY_END(measure(b, &r, "score, one by one", row->base.name, shape, (double)view.letters, false, err));
    if (want)
        LW_TRY_END(compare_hits(row->base.name, "the cpu row", found, n_found, want, n_want, N_LENGTHS, err));
    r.one_by_one = false;
    LW_TRY_END(measure(b, &r, "score, in one call", row->base.name, shape, (double)view.letters, false, err));
    if (want)
        LW_TRY_END(compare_hits(row->base.name, "the cpu row", found, n_found, want, n_want, N_LENGTHS, err));
    r = (running){.row = row,
                  .context = r.context,
                  .queries = set_seqs(&in->many_short),
                  .n = 64,
                  .hits = short_hits,
                  .n_hits = n_short};
    snprintf(shape, sizeof shape, "64 queries of 64 vs %s", in->name);
    LW_TRY_END(measure(b, &r, "score, in one call", row->base.name, shape, (double)view.letters, false, err));
end:
    row->close(r.context);
    return status;
}

/* ---- the gapless filter -------------------------------------------------------------------------------- */

static lw_status bench_filter(bench *b, input *in, const lw_search_backend *row, const lw_search_hit *all,
                              const int32_t *n_all, lw_error *err)
{
    enum { THRESHOLD = 32 }; /* about half the score that an E-value of 10 asks for */
    lw_search_hit hits[N_LENGTHS * TOP];
    int32_t n_hits[N_LENGTHS], filter[N_LENGTHS];
    for (int k = 0; k < N_LENGTHS; k++)
        filter[k] = THRESHOLD;
    lw_database_view view = set_view(&in->db);
    lw_search_setup setup = {
        .scoring = &in->scoring, .database = &view, .pool = b->pool, .device = b->device, .host = b->host};
    running r = {.row = row,
                 .queries = set_seqs(&in->queries),
                 .n = N_LENGTHS,
                 .filter = filter,
                 .hits = hits,
                 .n_hits = n_hits};
    LW_TRY(row->open(row, &r.context, &setup, err));
    char shape[96];
    snprintf(shape, sizeof shape, "7 queries, 64 to 4096, vs %s, gapless >= %d", in->name, THRESHOLD);
    lw_status status = measure(b, &r, "score, with the gapless filter", row->base.name, shape,
                               (double)view.letters, false, err);
    row->close(r.context);
    LW_TRY(status);
    int found = 0, wanted = 0;
    for (int q = 0; q < N_LENGTHS; q++)
        for (int32_t k = 0; k < n_all[q]; k++) {
            wanted++;
            for (int32_t l = 0; l < n_hits[q]; l++)
                found += hits[q * TOP + l].subject == all[q * TOP + k].subject;
        }
    double calls = b->repeats + 1, pairs = (double)r.counts.pairs / calls;
    char name[64];
    snprintf(name, sizeof name, "gapless filter on %s", row->base.name);
    return bench_find(b, name, "", err,
                      "%d of the %d best hits kept (recall %.3f), %.4f of the pairs scored with gaps", found,
                      wanted, (double)found / wanted, 1 - (double)r.counts.filtered / calls / pairs);
}

/* ---- from files ---------------------------------------------------------------------------------------- */

static bool write_fasta(const char *path, const search_set *s, const char *prefix)
{
    FILE *to = fopen(path, "w");
    if (!to)
        return false;
    for (int64_t i = 0; i < s->n; i++) {
        fprintf(to, ">%s%lld\n", prefix, (long long)i + 1);
        for (int32_t k = 0; k < s->len[i]; k++)
            putc(LW_DATABASE_PROTEIN[s->codes[s->start[i] + k]], to);
        putc('\n', to);
    }
    return fclose(to) == 0;
}

typedef struct file_run {
    const char *database, *queries;
    const lw_search_options *options;
    const lw_host *host;
    double open_seconds;
    lw_search_summary summary;
} file_run;

static lw_status run_files(void *arg, lw_error *err)
{
    file_run *f = arg;
    lw_database *db;
    double started = bench_now(false);
    LW_TRY(lw_database_open(&db, f->database, LW_LETTERS_PROTEIN, f->options->threads, f->host, err));
    f->open_seconds = bench_now(false) - started;
    lw_status status =
        lw_search(db, &f->queries, 1, "/dev/null", f->options, NULL, &f->summary, f->host, err);
    lw_database_close(db);
    return status;
}

/* The many queries, from a database file and from FASTA, to the last line written. */
static lw_status bench_files(bench *b, input *in, const lw_search_backend *row, lw_error *err)
{
    char folder[1024], fasta[1100], packed[1100], queries[1100];
    LW_TRY(bench_folder(folder, sizeof folder, err));
    snprintf(fasta, sizeof fasta, "%s/db.fa", folder);
    snprintf(packed, sizeof packed, "%s/db.lwdb", folder);
    snprintf(queries, sizeof queries, "%s/q.fa", folder);
    lw_status status = LW_OK;
    lw_database *db = NULL;
    lw_search_options options;
    lw_search_defaults(&options);
    options.backend = row->base.name;
    options.device = b->device;
    options.threads = lw_pool_threads(b->pool);
    file_run f = {.queries = queries, .options = &options, .host = b->host};
    char shape[96];
    if (!write_fasta(fasta, &in->db, "s") || !write_fasta(queries, &in->many, "q")) {
        status = lw_fail(err, LW_E_IO, "%s: writing failed", folder);
        goto end;
    }
    LW_TRY_END(lw_database_open(&db, fasta, LW_LETTERS_PROTEIN, options.threads, b->host, err));
    LW_TRY_END(lw_database_write(db, packed, NULL, b->host, err));
    snprintf(shape, sizeof shape, "%lld queries of 512 vs %s, top 10 with paths", (long long)in->many.n,
             in->name);
    for (int from_fasta = 0; from_fasta < 2; from_fasta++) {
        f.database = from_fasta ? fasta : packed;
        bench_result about = {.domain = "search", .verified = true, .unit = "GCUPS"};
        snprintf(about.name, sizeof about.name, "search %s", from_fasta ? "FASTA" : ".lwdb");
        snprintf(about.backend, sizeof about.backend, "%s", row->base.name);
        snprintf(about.shape, sizeof about.shape, "%s", shape);
        LW_TRY_END(bench_measure(b, &about, 512.0 * (double)in->many.n * (double)in->db.letters * 1e-9,
                                 run_files, &f, err));
        char name[64];
        snprintf(name, sizeof name, "%.40s, %.20s", about.name, row->base.name);
        LW_TRY_END(
            bench_find(b, name, "", err,
                       "database opened in %.3f s; from there to the last hit %.3f s, scoring %.1f %% of "
                       "it; %lld hits",
                       f.open_seconds, f.summary.search_seconds,
                       100 * f.summary.busy_seconds / f.summary.search_seconds, (long long)f.summary.hits));
    }
end:
    lw_database_close(db);
    unlink(fasta), unlink(packed), unlink(queries), rmdir(folder);
    return status;
}

/* ---- parasail ------------------------------------------------------------------------------------------ */

/* The few names of its library that are needed. Its "open" is the cost of a gap's first letter. */
typedef struct parasail {
    void *library;
    const void *(*matrix_lookup)(const char *name);
    void *(*profile_create)(const char *letters, int n, const void *matrix);
    void (*profile_free)(void *profile);
    void *(*align)(const void *profile, const char *letters, int n, int open, int extend);
    int (*get_score)(const void *result);
    void (*result_free)(void *result);
    void *profile;
    const char *letters; /* of the subjects */
    const search_set *db;
    int32_t *score;
} parasail;

static bool parasail_open(parasail *p)
{
    const peer_symbol symbols[] = {
        {"parasail_matrix_lookup", &p->matrix_lookup}, {"parasail_profile_create_sat", &p->profile_create},
        {"parasail_profile_free", &p->profile_free},   {"parasail_sw_striped_profile_sat", &p->align},
        {"parasail_result_get_score", &p->get_score},  {"parasail_result_free", &p->result_free}};
    return peer_library_open(&p->library, "libparasail.so.8", symbols, sizeof symbols / sizeof *symbols);
}

static lw_status parasail_run(void *arg, lw_error *err)
{
    parasail *p = arg;
    for (int64_t i = 0; i < p->db->n; i++) {
        void *result = p->align(p->profile, p->letters + p->db->start[i], p->db->len[i], 12, 1);
        if (!result)
            return lw_fail(err, LW_E_NOMEM, "parasail gave no result");
        p->score[i] = p->get_score(result);
        p->result_free(result);
    }
    return LW_OK;
}

/* The CPU row and parasail's best on the first sequences of the database, on one thread; all scores must
 * agree. */
static lw_status bench_one_thread(bench *b, input *in, lw_error *err)
{
    lw_status status = LW_OK;
    search_set part = {0};
    for (int64_t i = 0; i < in->db.n && part.letters < (b->quick ? 40000 : 2000000); i++)
        set_add(&part, in->db.codes + in->db.start[i], in->db.len[i]);
    lw_database_view view = set_view(&part);
    lw_search_setup setup = {
        .scoring = &in->scoring, .database = &view, .device = b->device, .host = b->host};
    parasail p = {.db = &part};
    bool peer = parasail_open(&p);
    if (!peer)
        lw_say(b->host, LW_SAY_INFO, "libparasail.so.8 is not installed: no comparison with it");
    char *letters = malloc((size_t)part.letters + 1), query[4096];
    lw_search_hit *hits = malloc((size_t)part.n * sizeof *hits);
    p.score = malloc((size_t)part.n * sizeof *p.score);
    p.letters = letters;
    void *context = NULL;
    if (!letters || !hits || !p.score) {
        status = lw_fail_memory(err, (size_t)part.letters);
        goto end;
    }
    for (int64_t k = 0; k < part.letters; k++)
        letters[k] = LW_DATABASE_PROTEIN[part.codes[k]];
    LW_TRY_END(lw_search_cpu.open(&lw_search_cpu, &context, &setup, err));
    for (int k = 0; k < N_LENGTHS; k++) {
        char shape[96];
        lw_search_hit top[N_LENGTHS * TOP];
        int32_t n_top[N_LENGTHS], n_hits = 0, least = 1;
        running r = {.row = &lw_search_cpu,
                     .context = context,
                     .queries = set_seqs(&in->queries),
                     .first = k,
                     .n = 1,
                     .hits = top,
                     .n_hits = n_top};
        snprintf(shape, sizeof shape, "query of %d vs %.3g M, 1 thread", lengths[k],
                 (double)part.letters * 1e-6);
        LW_TRY_END(measure(b, &r, "score", "cpu", shape, (double)part.letters, true, err));
        if (!peer)
            continue;
        for (int i = 0; i < lengths[k]; i++)
            query[i] = LW_DATABASE_PROTEIN[in->queries.codes[in->queries.start[k] + i]];
        p.profile = p.profile_create(query, lengths[k], p.matrix_lookup("blosum62"));
        bench_result about = {.domain = "search",
                              .name = "parasail sw_striped_profile_sat",
                              .backend = "peer",
                              .verified = true,
                              .unit = "GCUPS",
                              .one_thread = true};
        snprintf(about.shape, sizeof about.shape, "%s", shape);
        status =
            bench_measure(b, &about, (double)lengths[k] * (double)part.letters * 1e-9, parasail_run, &p, err);
        p.profile_free(p.profile);
        LW_TRY_END(status);
        lw_seqs one = {
            .n = 1, .codes = in->queries.codes, .start = in->queries.start + k, .len = in->queries.len + k};
        lw_search_request all = {.queries = &one, .min_score = &least, .top_n = INT32_MAX};
        lw_search_result result = {.hits = hits, .stride = part.n, .n_hits = &n_hits};
        LW_TRY_END(lw_search_cpu.search(context, &all, &result, err));
        for (int32_t i = 0; i < n_hits; i++)
            if (hits[i].score != p.score[view.order[hits[i].subject]]) {
                status = lw_fail(
                    err, LW_E_INTERNAL, "bench search: parasail scores subject %d with %d, we with %d",
                    view.order[hits[i].subject], p.score[view.order[hits[i].subject]], hits[i].score);
                goto end;
            }
    }
end:
    lw_search_cpu.close(context);
    free(letters), free(hits), free(p.score);
    if (peer)
        dlclose(p.library);
    set_free(&part);
    return status;
}

/* ---- the domain ---------------------------------------------------------------------------------------- */

lw_status bench_search(bench *b, lw_error *err)
{
    bool all = strcmp(b->backend, "auto") == 0, device = false;
    for (int i = 2; i < lw_search_backend_count; i++)
        device = device ||
                 lw_search_backends[i]->base.usable(&lw_search_backends[i]->base, b->device, NULL) == LW_OK;
    device = device && strcmp(b->backend, "cpu") != 0;
    input in = {0};
    LW_TRY(lw_scoring_matrix(&in.letters, "BLOSUM62", LW_PROTEIN, 11, 1, err));
    lw_search_scoring(&in.scoring, &in.letters);
    make_input(&in,
               b->size      ? b->size
               : b->letters ? b->letters
               : b->quick   ? 400000
               : device     ? 200000000
                            : 4000000,
               b->quick ? 4 : 100, 1);
    lw_status status = LW_OK;
    if (bench_wants(b, lw_search_cpu.base.name))
        LW_TRY_END(bench_one_thread(b, &in, err));
    lw_search_hit want[N_LENGTHS * TOP], found[N_LENGTHS * TOP];
    int32_t n_want[N_LENGTHS], n_found[N_LENGTHS];
    LW_TRY_END(verify(b, &in, &lw_search_cpu, err));
    LW_TRY_END(hits_of(&lw_search_cpu, b, &in, &in.db, &in.queries, NULL, want, n_want, err));
    for (int i = 1; i < lw_search_backend_count; i++) {
        const lw_search_backend *row = lw_search_backends[i];
        lw_error reason = {0};
        if (!bench_wants(b, row->base.name) || (row == &lw_search_cpu && device && all))
            continue; /* the CPU row would spend minutes on a device's database */
        if (row->base.usable(&row->base, b->device, &reason) != LW_OK) {
            lw_say(b->host, LW_SAY_INFO, "%s: %s", row->base.name, reason.message);
            continue;
        }
        LW_TRY_END(bench_row(b, &in, row, want, n_want, found, n_found, err));
        LW_TRY_END(bench_filter(b, &in, row, found, n_found, err));
        LW_TRY_END(bench_files(b, &in, row, err));
    }
end:
    free_input(&in);
    return status;
}
