/* bench_align.c - reads against a reference: every backend, the CPU row once per instruction set on one
 * thread, and parasail where its library is installed; then paths of reads with gaps. */
#include "bench.h"
#include "letters.h"
#include "peer_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/align_backend.h"
#include "common/cpu.h"
#include "common/fail.h"

enum { READ_LETTERS = 150, REFERENCE_LETTERS = 30000, SCALAR_READS = 16 };

/* One reference and reads of equal length drawn from it with errors, every second one reversed. */
typedef struct input {
    uint8_t *reference, *codes;
    int64_t reference_start;
    int32_t reference_len;
    int64_t *start;
    int32_t *len;
    int64_t n;
} input;

static void input_free(input *in)
{
    free(in->reference), free(in->codes), free(in->start), free(in->len);
}

static lw_status input_make(input *in, const lw_scoring *sc, int64_t n, int32_t reference_len, lw_error *err)
{
    uint64_t state = 20260101;
    *in = (input){.n = n, .reference_len = reference_len};
    in->reference = malloc((size_t)reference_len);
    in->codes = malloc((size_t)n * READ_LETTERS);
    in->start = malloc((size_t)n * sizeof *in->start);
    in->len = malloc((size_t)n * sizeof *in->len);
    if (!in->reference || !in->codes || !in->start || !in->len) {
        input_free(in);
        return lw_fail_memory(err, (size_t)n * READ_LETTERS + (size_t)reference_len);
    }
    for (int32_t j = 0; j < reference_len; j++)
        in->reference[j] = (uint8_t)letters_below(&state, 4);
    const letters_source from = {in->reference, reference_len, 4, 20};
    for (int64_t i = 0; i < n; i++) {
        uint8_t *p = in->codes + i * READ_LETTERS;
        in->start[i] = i * READ_LETTERS;
        in->len[i] = READ_LETTERS;
        int32_t at = (int32_t)letters_below(&state, (uint32_t)(reference_len - 2 * READ_LETTERS));
        letters_draw(&state, &from, at, p, READ_LETTERS);
        for (int32_t k = 0; i % 2 && k < READ_LETTERS / 2; k++) {
            uint8_t a = p[k];
            p[k] = sc->complement[p[READ_LETTERS - 1 - k]];
            p[READ_LETTERS - 1 - k] = sc->complement[a];
        }
    }
    return LW_OK;
}

/* So many of n reads that a longer reference takes as long as the usual one. */
static int64_t at_length(int64_t n, int64_t reference_len)
{
    int64_t fewer = reference_len > REFERENCE_LETTERS ? n * REFERENCE_LETTERS / reference_len : n;
    return fewer > 0 ? fewer : 1;
}

static lw_seqs reads_of(const input *in, int64_t n)
{
    return (lw_seqs){.n = n, .codes = in->codes, .start = in->start, .len = in->len};
}

/* ---- placing ----------------------------------------------------------------------------------------- */

typedef struct placing {
    const lw_align_backend *row;
    void *context;
    lw_seqs reads;
    lw_hit *hits;
    lw_path *paths; /* tracing */
    lw_trace_task *tasks;
    lw_cigars cigars;
    int64_t n_tasks;
} placing;

static lw_status place(void *arg, lw_error *err)
{
    placing *p = arg;
    lw_placements out = {.hits = p->hits};
    return p->row->place(p->context, &p->reads, &out, err);
}

static lw_status trace(void *arg, lw_error *err)
{
    placing *p = arg;
    p->cigars.n = 0;
    return p->row->trace(p->context, &p->reads, NULL, p->n_tasks, p->tasks, p->paths, &p->cigars, err);
}

static bool same(const lw_hit *a, const lw_hit *b)
{
    return a->target == b->target &&
           (a->target < 0 || (a->score == b->score && a->tend == b->tend && a->qend == b->qend &&
                              a->second == b->second && a->reverse == b->reverse));
}

/* Places the first reads by the row and the reference and compares. */
static lw_status verify(const lw_align_backend *row, const lw_align_setup *setup, const input *in,
                        lw_error *err)
{
    lw_hit want[SCALAR_READS], got[SCALAR_READS];
    int64_t most = at_length(SCALAR_READS, in->reference_len);
    lw_seqs reads = reads_of(in, in->n < most ? in->n : most);
    lw_placements a = {.hits = want}, b = {.hits = got};
    void *context;
    LW_TRY(lw_align_scalar.open(&lw_align_scalar, &context, setup, err));
    lw_status status = lw_align_scalar.place(context, &reads, &a, err);
    lw_align_scalar.close(context);
    LW_TRY(status);
    LW_TRY(row->open(row, &context, setup, err));
    status = row->place(context, &reads, &b, err);
    row->close(context);
    LW_TRY(status);
    for (int64_t i = 0; i < reads.n; i++)
        if (!same(&want[i], &got[i]))
            return lw_fail(err, LW_E_INTERNAL,
                           "bench align: backend %s places read %lld at %d with score %d, the "
                           "scalar reference at %d with score %d",
                           row->base.name, (long long)i, got[i].tend, got[i].score, want[i].tend,
                           want[i].score);
    return LW_OK;
}

/* Verifies and times one row; the hits of all reads stay in `hits`. */
static lw_status bench_row(bench *b, const lw_align_backend *row, const char *label,
                           const lw_align_setup *setup, const input *in, int64_t n, lw_hit *hits,
                           lw_error *err)
{
    LW_TRY(verify(row, setup, in, err));
    placing p = {.row = row, .reads = reads_of(in, n), .hits = hits};
    LW_TRY(row->open(row, &p.context, setup, err));
    bench_result about = {.domain = "align", .name = "place", .verified = true, .unit = "GCUPS"};
    about.one_thread = !setup->pool;
    int strands = setup->strands == LW_BOTH_STRANDS ? 2 : 1;
    snprintf(about.backend, sizeof about.backend, "%s", label);
    snprintf(about.shape, sizeof about.shape, "%lld x %d vs %d, %d strand%s%s", (long long)n, READ_LETTERS,
             in->reference_len, strands, strands == 2 ? "s" : "", setup->pool ? "" : ", 1 thread");
    double cells = (double)n * READ_LETTERS * in->reference_len * strands;
    lw_status status = bench_measure(b, &about, cells * 1e-9, place, &p, err);
    row->close(p.context);
    return status;
}

/* Times the tracing of the hits by a row; every path must use up the letters and the score of its hit. */
static lw_status bench_trace(bench *b, const lw_align_backend *row, const char *label,
                             const lw_align_setup *setup, const input *in, int64_t n, const lw_hit *hits,
                             lw_error *err)
{
    placing p = {.row = row, .reads = reads_of(in, n)};
    bench_result about = {.domain = "align", .name = "trace", .verified = true, .unit = "Mreads/s"};
    snprintf(about.backend, sizeof about.backend, "%s", label);
    snprintf(about.shape, sizeof about.shape, "%lld x %d vs %d", (long long)n, READ_LETTERS,
             in->reference_len);
    p.tasks = calloc((size_t)n, sizeof *p.tasks);
    p.paths = calloc((size_t)n, sizeof *p.paths);
    lw_status status = LW_OK;
    if (!p.tasks || !p.paths)
        status = lw_fail_memory(err, (size_t)n * sizeof *p.tasks);
    for (int64_t i = 0; i < n && status == LW_OK; i++)
        if (hits[i].target >= 0) {
            lw_trace_window(setup->scoring, setup->mode, &hits[i], &p.tasks[p.n_tasks]);
            p.tasks[p.n_tasks++].query = i;
        }
    if (status == LW_OK)
        status = row->open(row, &p.context, setup, err);
    if (status == LW_OK) {
        status = bench_measure(b, &about, (double)n * 1e-6, trace, &p, err);
        row->close(p.context);
    }
    for (int64_t k = 0; k < p.n_tasks && status == LW_OK; k++) {
        const lw_trace_task *task = &p.tasks[k];
        int64_t i = p.paths[k].qstart, j = p.paths[k].tstart, score = 0;
        for (int32_t x = 0; x < p.paths[k].n_cigar; x++) {
            uint32_t op = p.cigars.op[p.paths[k].cigar + x] & 15,
                     run = p.cigars.op[p.paths[k].cigar + x] >> 4;
            if (op)
                score -= setup->scoring->gap_open + (int64_t)run * setup->scoring->gap_extend;
            for (; run; run--) {
                if (op == 0) {
                    const uint8_t *q = in->codes + in->start[task->query];
                    uint8_t letter =
                        task->reverse ? setup->scoring->complement[q[READ_LETTERS - 1 - i]] : q[i];
                    score += setup->scoring->score[letter * LW_MAX_LETTERS + in->reference[j]];
                }
                i += op != 2;
                j += op != 1;
            }
        }
        if (score != task->score || i != task->qlen || j != task->tbegin + task->tlen)
            status = lw_fail(err, LW_E_INTERNAL,
                             "bench align: backend %s: the path of read %lld scores %lld, not %d",
                             row->base.name, (long long)task->query, (long long)score, task->score);
    }
    free(p.tasks), free(p.paths), free(p.cigars.op);
    return status;
}

/* ---- parasail ------------------------------------------------------------------------------------------ */

/* The few names of its library that are needed. Its "open" is the cost of a gap's first letter. */
typedef struct parasail {
    void *library, *matrix;
    void *(*matrix_create)(const char *letters, int match, int mismatch);
    void (*matrix_free)(void *matrix);
    void *(*align)(const char *s1, int n1, const char *s2, int n2, int open, int extend, const void *matrix);
    int (*get_score)(const void *result);
    void (*result_free)(void *result);
    int open, extend;
    const char *query, *reference; /* as letters */
    int64_t n;
    int32_t reference_len;
    int *score;
} parasail;

static const char parasail_name[] = "parasail sw_striped_avx2_256_sat";

static bool parasail_open(parasail *p)
{
    const peer_symbol symbols[] = {{"parasail_matrix_create", &p->matrix_create},
                                   {"parasail_matrix_free", &p->matrix_free},
                                   {"parasail_sw_striped_avx2_256_sat", &p->align},
                                   {"parasail_result_get_score", &p->get_score},
                                   {"parasail_result_free", &p->result_free}};
    return peer_library_open(&p->library, "libparasail.so.8", symbols, sizeof symbols / sizeof *symbols);
}

static lw_status parasail_run(void *arg, lw_error *err)
{
    parasail *p = arg;
    for (int64_t i = 0; i < p->n; i++) {
        void *result = p->align(p->query + i * READ_LETTERS, READ_LETTERS, p->reference, p->reference_len,
                                p->open, p->extend, p->matrix);
        if (!result)
            return lw_fail(err, LW_E_NOMEM, "parasail gave no result");
        p->score[i] = p->get_score(result);
        p->result_free(result);
    }
    return LW_OK;
}

/* Times parasail on the forward strands of the reads and compares the scores with `hits`. */
static lw_status bench_parasail(bench *b, const lw_scoring *sc, const input *in, int64_t n,
                                const lw_hit *hits, lw_error *err)
{
    parasail p = {.open = sc->gap_open + sc->gap_extend,
                  .extend = sc->gap_extend,
                  .n = n,
                  .reference_len = in->reference_len};
    if (!parasail_open(&p)) {
        lw_say(b->host, LW_SAY_INFO, "libparasail.so.8 is not installed: no comparison with it");
        return LW_OK;
    }
    size_t letters = (size_t)n * READ_LETTERS;
    char *query = malloc(letters), *reference = malloc((size_t)in->reference_len);
    p.score = malloc((size_t)n * sizeof *p.score);
    p.matrix = p.matrix_create("ACGT", sc->score[0], sc->score[1]);
    lw_status status = LW_OK;
    if (!query || !reference || !p.score || !p.matrix) {
        status = lw_fail_memory(err, letters);
        goto end;
    }
    for (size_t k = 0; k < letters; k++)
        query[k] = sc->letter[in->codes[k]];
    for (int32_t k = 0; k < in->reference_len; k++)
        reference[k] = sc->letter[in->reference[k]];
    p.query = query;
    p.reference = reference;
    bench_result about = {
        .domain = "align", .backend = "peer", .verified = true, .unit = "GCUPS", .one_thread = true};
    snprintf(about.name, sizeof about.name, "%s", parasail_name);
    snprintf(about.shape, sizeof about.shape, "%lld x %d vs %d, 1 strand, 1 thread", (long long)n,
             READ_LETTERS, in->reference_len);
    LW_TRY_END(bench_measure(b, &about, (double)letters * in->reference_len * 1e-9, parasail_run, &p, err));
    for (int64_t i = 0; i < n; i++)
        if (p.score[i] != (hits[i].target < 0 ? 0 : hits[i].score)) {
            status = lw_fail(err, LW_E_INTERNAL, "bench align: parasail scores read %lld with %d, we with %d",
                             (long long)i, p.score[i], hits[i].score);
            goto end;
        }
end:
    if (p.matrix)
        p.matrix_free(p.matrix);
    free(query), free(reference), free(p.score);
    dlclose(p.library);
    return status;
}

/* ---- the domain ---------------------------------------------------------------------------------------- */

/* The CPU row on one thread, once for each instruction set of this machine: the better ones are switched off
 * in turn. */
static lw_status bench_instruction_sets(bench *b, const lw_align_setup *setup, const input *in, int64_t n,
                                        lw_hit *hits, lw_error *err)
{
    const char *given = getenv("LANEWISE_DISABLE");
    char saved[128], off[128];
    snprintf(saved, sizeof saved, "%s", given ? given : "");
    snprintf(off, sizeof off, "%s", saved);
    unsigned usable;
    lw_status status = lw_isa_usable(&usable, err);
    for (int isa = 0; isa < LW_ISA_COUNT && status == LW_OK; isa++) {
        if (!(usable >> isa & 1))
            continue;
        char label[32];
        snprintf(label, sizeof label, "cpu (%s)", lw_isa_name(isa));
        setenv("LANEWISE_DISABLE", off, 1);
        status = bench_row(b, &lw_align_cpu, label, setup, in, n, hits, err);
        snprintf(off + strlen(off), sizeof off - strlen(off), "%s%s", *off ? "," : "", lw_isa_name(isa));
    }
    if (given)
        setenv("LANEWISE_DISABLE", saved, 1);
    else
        unsetenv("LANEWISE_DISABLE");
    return status;
}

lw_status bench_align(bench *b, lw_error *err)
{
    lw_scoring sc;
    if (b->pairs)
        return bench_pairs(b, err);
    LW_TRY(lw_scoring_dna(&sc, 1, 4, 6, 1, err));
    const int64_t length = b->size ? b->size : REFERENCE_LETTERS,
                  few = at_length(b->quick ? 64 : 1000, length),
                  many = at_length(b->quick ? 256 : 20000, length),
                  most = at_length(b->quick ? 2000 : 1000000, length);
    input in;
    LW_TRY(input_make(&in, &sc, most, (int32_t)length, err));
    lw_seqs refs = {.n = 1, .codes = in.reference, .start = &in.reference_start, .len = &in.reference_len};
    lw_align_setup setup = {.scoring = &sc,
                            .mode = LW_LOCAL,
                            .strands = LW_FORWARD,
                            .refs = &refs,
                            .min_score = 1,
                            .n_hits = 1,
                            .device = b->device,
                            .host = b->host};
    lw_hit *hits = malloc((size_t)most * sizeof *hits);
    lw_status status = hits ? LW_OK : lw_fail_memory(err, (size_t)most * sizeof *hits);
    if (status == LW_OK && bench_wants(b, lw_align_cpu.base.name)) {
        LW_TRY_END(bench_instruction_sets(b, &setup, &in, few, hits, err));
        LW_TRY_END(bench_parasail(b, &sc, &in, few, hits, err));
        if (!b->size)
            LW_TRY_END(bench_cigars(b, err));
    }
    for (int i = 1; i < lw_align_backend_count && status == LW_OK; i++) {
        const lw_align_backend *row = lw_align_backends[i];
        lw_error reason = {0};
        if (!bench_wants(b, row->base.name))
            continue;
        if (row->base.usable(&row->base, b->device, &reason) != LW_OK) {
            lw_say(b->host, LW_SAY_INFO, "%s: %s", row->base.name, reason.message);
            continue;
        }
        int64_t n = row == &lw_align_cpu ? many : most;
        lw_align_setup both = setup;
        both.strands = LW_BOTH_STRANDS;
        both.pool = b->pool;
        LW_TRY_END(bench_row(b, row, row->base.name, &both, &in, n, hits, err));
        LW_TRY_END(bench_trace(b, row, row->base.name, &both, &in, n, hits, err));
    }
end:
    free(hits);
    input_free(&in);
    return status == LW_OK && !b->size ? bench_pairs(b, err) : status;
}
