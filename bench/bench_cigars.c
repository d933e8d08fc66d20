/* bench_cigars.c - local alignments of pairs with their CIGARs on one thread: the CPU row, and parasail where
 * its library is installed. */
#include "bench.h"
#include "letters.h"
#include "peer_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/align_backend.h"
#include "common/fail.h"

enum { MAX_PAIRS = 2000, CHECKED = 24 };

/* Pairs of equal lengths: each query a piece of its target with 5 % errors. */
typedef struct input {
    const lw_scoring *sc;
    const char *kind;
    int32_t m, n, n_pairs;
    uint8_t *query, *target; /* codes, back to back */
    int64_t query_start[MAX_PAIRS], target_start[MAX_PAIRS];
    int32_t query_len[MAX_PAIRS], target_len[MAX_PAIRS];
} input;

static lw_status make_input(input *in, lw_error *err)
{
    uint64_t state = 5;
    const uint32_t letters = in->sc->type == LW_DNA ? 4 : 20;
    size_t m = (size_t)in->m, n = (size_t)in->n, pairs = (size_t)in->n_pairs;
    in->query = malloc(m * pairs);
    in->target = malloc(n * pairs);
    if (!in->query || !in->target)
        return lw_fail_memory(err, (m + n) * pairs);
    for (size_t p = 0; p < pairs; p++) {
        uint8_t *query = in->query + p * m, *target = in->target + p * n;
        in->query_start[p] = (int64_t)(p * m), in->target_start[p] = (int64_t)(p * n);
        in->query_len[p] = in->m, in->target_len[p] = in->n;
        for (int32_t j = 0; j < in->n; j++)
            target[j] = (uint8_t)letters_below(&state, letters);
        int32_t at = in->n > in->m ? (int32_t)letters_below(&state, (uint32_t)(in->n - in->m)) : 0;
        const letters_source from = {target, in->n, letters, 50};
        letters_draw(&state, &from, at, query, in->m);
    }
    return LW_OK;
}

/* ---- ours ---------------------------------------------------------------------------------------------- */

typedef struct cigars {
    const lw_align_backend *row;
    const lw_align_setup *setup;
    void *context;
    lw_seqs queries, targets;
    lw_hit hits[MAX_PAIRS];
    lw_trace_task tasks[MAX_PAIRS];
    lw_path paths[MAX_PAIRS]; /* of the tasks */
    int64_t n_tasks;
    lw_cigars cigars;
} cigars;

static lw_status align_pairs(void *arg, lw_error *err)
{
    cigars *c = arg;
    LW_TRY(c->row->pair_ends(c->context, &c->queries, &c->targets, c->hits, err));
    c->n_tasks = 0;
    for (int64_t i = 0; i < c->queries.n; i++)
        if (c->hits[i].target >= 0) {
            lw_trace_task *task = &c->tasks[c->n_tasks++];
            lw_trace_window(c->setup->scoring, c->setup->mode, &c->hits[i], task);
            task->query = task->target = i;
        }
    c->cigars.n = 0;
    return c->row->trace(c->context, &c->queries, &c->targets, c->n_tasks, c->tasks, c->paths, &c->cigars,
                         err);
}

static lw_status open_row(cigars *c, const input *in, const lw_align_backend *row,
                          const lw_align_setup *setup, int64_t n, lw_error *err)
{
    c->row = row;
    c->setup = setup;
    c->queries = (lw_seqs){.n = n, .codes = in->query, .start = in->query_start, .len = in->query_len};
    c->targets = (lw_seqs){.n = n, .codes = in->target, .start = in->target_start, .len = in->target_len};
    return row->open(row, &c->context, setup, err);
}

static void close_row(cigars *c)
{
    if (c) {
        if (c->row)
            c->row->close(c->context);
        free(c->cigars.op);
    }
    free(c);
}

/* Every path of the first pairs must be the scalar reference's. */
static lw_status verify(const cigars *c, const input *in, lw_error *err)
{
    cigars *want = calloc(1, sizeof *want);
    if (!want)
        return lw_fail_memory(err, sizeof *want);
    int64_t n = in->n_pairs < CHECKED ? in->n_pairs : CHECKED;
    lw_status status = open_row(want, in, &lw_align_scalar, c->setup, n, err);
    if (status == LW_OK)
        status = align_pairs(want, err);
    for (int64_t k = 0; k < want->n_tasks && status == LW_OK; k++) {
        const lw_path *p = &want->paths[k], *q = &c->paths[k];
        if (c->tasks[k].query != want->tasks[k].query || p->qstart != q->qstart || p->tstart != q->tstart ||
            p->n_cigar != q->n_cigar ||
            memcmp(want->cigars.op + p->cigar, c->cigars.op + q->cigar,
                   (size_t)p->n_cigar * sizeof *c->cigars.op) != 0)
            status = lw_fail(err, LW_E_INTERNAL,
                             "bench align: %s aligns pair %lld of %s otherwise than the scalar reference",
                             c->row->base.name, (long long)want->tasks[k].query, in->kind);
    }
    close_row(want);
    return status;
}

/* ---- parasail ------------------------------------------------------------------------------------------ */

static const char parasail_name[] = "parasail trace_striped_avx2_16";

/* The few names of its library that are needed. Its "open" is the cost of a gap's first letter. */
typedef struct parasail {
    void *library;
    void *(*matrix_create)(const char *letters, int match, int mismatch);
    const void *(*matrix_lookup)(const char *name);
    void (*matrix_free)(void *matrix);
    void *(*align)(const char *s1, int n1, const char *s2, int n2, int open, int extend, const void *matrix);
    void *(*get_cigar)(void *result, const char *s1, int n1, const char *s2, int n2, const void *matrix);
    void (*cigar_free)(void *cigar);
    int (*get_score)(const void *result);
    void (*result_free)(void *result);
    const input *in;
    char *query, *target; /* as letters */
    const void *matrix;
    int score[MAX_PAIRS];
} parasail;

static bool parasail_open(parasail *p)
{
    const peer_symbol symbols[] = {
        {"parasail_matrix_create", &p->matrix_create}, {"parasail_matrix_lookup", &p->matrix_lookup},
        {"parasail_matrix_free", &p->matrix_free},     {"parasail_sw_trace_striped_avx2_256_16", &p->align},
        {"parasail_result_get_cigar", &p->get_cigar},  {"parasail_cigar_free", &p->cigar_free},
        {"parasail_result_get_score", &p->get_score},  {"parasail_result_free", &p->result_free}};
    return peer_library_open(&p->library, "libparasail.so.8", symbols, sizeof symbols / sizeof *symbols);
}

static lw_status parasail_run(void *arg, lw_error *err)
{
    parasail *p = arg;
    const lw_scoring *sc = p->in->sc;
    for (int32_t i = 0; i < p->in->n_pairs; i++) {
        const char *query = p->query + (size_t)i * (size_t)p->in->m,
                   *target = p->target + (size_t)i * (size_t)p->in->n;
        void *result = p->align(query, p->in->m, target, p->in->n, sc->gap_open + sc->gap_extend,
                                sc->gap_extend, p->matrix);
        void *cigar = result ? p->get_cigar(result, query, p->in->m, target, p->in->n, p->matrix) : NULL;
        if (!cigar)
            return lw_fail(err, LW_E_NOMEM, "parasail gave no result");
        p->score[i] = p->get_score(result);
        p->cigar_free(cigar);
        p->result_free(result);
    }
    return LW_OK;
}

static lw_status bench_parasail(bench *b, const bench_result *ours, const input *in, const lw_hit *hits,
                                lw_error *err)
{
    parasail *p = calloc(1, sizeof *p);
    if (!p)
        return lw_fail_memory(err, sizeof *p);
    if (!parasail_open(p)) {
        lw_say(b->host, LW_SAY_INFO, "libparasail.so.8 is not installed: no comparison with it");
        free(p);
        return LW_OK;
    }
    const size_t m = (size_t)in->m * (size_t)in->n_pairs, n = (size_t)in->n * (size_t)in->n_pairs;
    lw_status status = LW_OK;
    void *made = NULL;
    p->in = in;
    p->query = malloc(m);
    p->target = malloc(n);
    if (in->sc->type == LW_DNA)
        p->matrix = made = p->matrix_create("ACGT", in->sc->score[0], in->sc->score[1]);
    else
        p->matrix = p->matrix_lookup("blosum62");
    if (!p->query || !p->target || !p->matrix) {
        status = lw_fail_memory(err, m + n);
        goto end;
    }
    for (size_t k = 0; k < m; k++)
        p->query[k] = in->sc->letter[in->query[k]];
    for (size_t k = 0; k < n; k++)
        p->target[k] = in->sc->letter[in->target[k]];
    bench_result about = *ours;
    snprintf(about.name, sizeof about.name, "%s", parasail_name);
    snprintf(about.backend, sizeof about.backend, "peer");
    LW_TRY_END(bench_measure(b, &about, in->n_pairs * 1e-3, parasail_run, p, err));
    for (int32_t i = 0; i < in->n_pairs; i++)
        if (p->score[i] != (hits[i].target < 0 ? 0 : hits[i].score)) {
            status =
                lw_fail(err, LW_E_INTERNAL, "bench align: parasail scores pair %d of %s with %d, we with %d",
                        i, in->kind, p->score[i], hits[i].score);
            goto end;
        }
end:
    if (made)
        p->matrix_free(made);
    free(p->query), free(p->target);
    dlclose(p->library);
    free(p);
    return status;
}

/* ---- the two of them ----------------------------------------------------------------------------------- */

static lw_status bench_input(bench *b, input *in, lw_error *err)
{
    LW_TRY(make_input(in, err));
    lw_align_setup setup = {.scoring = in->sc,
                            .mode = LW_LOCAL,
                            .strands = LW_FORWARD,
                            .min_score = 1,
                            .n_hits = 1,
                            .device = b->device,
                            .host = b->host};
    cigars *ours = calloc(1, sizeof *ours);
    if (!ours)
        return lw_fail_memory(err, sizeof *ours);
    bench_result about = {.domain = "align",
                          .name = "pairs with CIGAR",
                          .verified = true,
                          .unit = "kpairs/s",
                          .one_thread = true};
    snprintf(about.backend, sizeof about.backend, "%s", lw_align_cpu.base.name);
    snprintf(about.shape, sizeof about.shape, "%d x (%d x %d) %s, local, 1 thread", in->n_pairs, in->m, in->n,
             in->kind);
    lw_status status = open_row(ours, in, &lw_align_cpu, &setup, in->n_pairs, err);
    if (status == LW_OK)
        status = align_pairs(ours, err);
    if (status == LW_OK)
        status = verify(ours, in, err);
    if (status == LW_OK)
        status = bench_measure(b, &about, in->n_pairs * 1e-3, align_pairs, ours, err);
    if (status == LW_OK)
        status = bench_parasail(b, &about, in, ours->hits, err);
    close_row(ours);
    return status;
}

lw_status bench_cigars(bench *b, lw_error *err)
{
    static const struct {
        int32_t m, n, n_pairs;
    } shapes[] = {{150, 200, 2000}, {1000, 1000, 128}};
    lw_scoring dna, protein;
    LW_TRY(lw_scoring_dna(&dna, 1, 4, 6, 1, err));
    LW_TRY(lw_scoring_matrix(&protein, "BLOSUM62", LW_PROTEIN, 11, 1, err));
    input *in = calloc(1, sizeof *in);
    lw_status status = in ? LW_OK : lw_fail_memory(err, sizeof *in);
    for (int k = 0; k < 4 && status == LW_OK; k++) {
        in->sc = k < 2 ? &dna : &protein;
        in->kind = k < 2 ? "DNA" : "protein";
        in->m = shapes[k % 2].m;
        in->n = shapes[k % 2].n;
        in->n_pairs = b->quick ? 16 : shapes[k % 2].n_pairs;
        status = bench_input(b, in, err);
        free(in->query), free(in->target);
    }
    free(in);
    return status;
}
