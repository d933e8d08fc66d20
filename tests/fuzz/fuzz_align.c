/* fuzz_align.c - every CPU row of the alignment table against the scalar one: placements, pair ends and paths
 * of sequences, penalties and modes that the input chooses. */
#include "fuzz/fuzz.h"

#include "align/align_backend.h"

static lw_error err;

static void must(lw_status status)
{
    FUZZ_REQUIRE(status == LW_OK, "%s", err.message);
}

/* Sequences out of bytes: lengths first, then letters; runs of few letters make ties. */
static lw_seqs draw(fuzz_bytes *bytes, int n, int longest, int letters, int64_t *start, int32_t *len,
                    uint8_t *codes)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        start[i] = at;
        len[i] = (int32_t)fuzz_take(bytes, (uint32_t)longest);
        uint32_t period = fuzz_take(bytes, 64);
        for (int32_t k = 0; k < len[i]; k++, at++)
            codes[at] = period && k >= (int32_t)period && !bytes->size
                            ? codes[at - period]
                            : (uint8_t)fuzz_take(bytes, (uint32_t)letters);
    }
    return (lw_seqs){.n = n, .codes = codes, .start = start, .len = len};
}

static void trace(const lw_align_backend *row, void *context, const lw_align_setup *setup,
                  const lw_seqs *queries, const lw_seqs *targets, const lw_hit *hits, int64_t n,
                  lw_path *paths, lw_cigars *ops)
{
    lw_trace_task tasks[16];
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (hits[i].target >= 0) {
            lw_trace_window(setup->scoring, setup->mode, &hits[i], &tasks[count]);
            tasks[count++].query = i;
        }
    must(row->trace(context, queries, targets, count, tasks, paths, ops, &err));
    for (int64_t i = count; i < n; i++)
        paths[i] = (lw_path){0};
}

static void same(const lw_hit *a, const lw_hit *b, const char *what, bool with_second)
{
    if (a->target < 0 && b->target < 0)
        return;
    FUZZ_REQUIRE(a->score == b->score && a->target == b->target && a->tend == b->tend && a->qend == b->qend &&
                     a->reverse == b->reverse && (!with_second || a->second == b->second),
                 "%s: scalar %d at %d:%d-%d%c second %d, cpu %d at %d:%d-%d%c second %d", what, a->score,
                 a->target, a->qend, a->tend, a->reverse ? '-' : '+', a->second, b->score, b->target, b->qend,
                 b->tend, b->reverse ? '-' : '+', b->second);
}

static void same_paths(int64_t n, const lw_path *a, const lw_cigars *a_ops, const lw_path *b,
                       const lw_cigars *b_ops)
{
    for (int64_t i = 0; i < n; i++) {
        FUZZ_REQUIRE(a[i].qstart == b[i].qstart && a[i].tstart == b[i].tstart && a[i].n_cigar == b[i].n_cigar,
                     "path %d", (int)i);
        for (int32_t k = 0; k < a[i].n_cigar; k++)
            FUZZ_REQUIRE(a_ops->op[a[i].cigar + k] == b_ops->op[b[i].cigar + k], "operation %d of path %d",
                         (int)k, (int)i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const disabled[] = {"", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon"};
    fuzz_bytes bytes = {data, size};
    lw_scoring scoring;
    bool protein = fuzz_take(&bytes, 2);
    int scale =
        fuzz_take(&bytes, 4) == 3 ? 32768 : 12; /* mostly small penalties: wide ones saturate at once */
    int match = (int)fuzz_take(&bytes, (uint32_t)scale), mismatch = (int)fuzz_take(&bytes, (uint32_t)scale);
    int open = (int)fuzz_take(&bytes, (uint32_t)scale), extend = (int)fuzz_take(&bytes, (uint32_t)scale);
    err = (lw_error){0};
    must(protein ? lw_scoring_matrix(&scoring, "BLOSUM62", LW_PROTEIN, open, extend, &err)
                 : lw_scoring_dna(&scoring, match, mismatch, open, extend, &err));
    enum { MOST = 6, LONGEST = 160 };
    static uint8_t codes[2][MOST * LONGEST];
    int64_t start[2][MOST];
    int32_t len[2][MOST];
    lw_mode mode = (lw_mode)fuzz_take(&bytes, 3);
    unsigned strands = protein ? LW_FORWARD : 1 + fuzz_take(&bytes, 3);
    int n_hits = 1 + (int)fuzz_take(&bytes, 3), n_ties = (int)fuzz_take(&bytes, 5);
    const char *off = disabled[fuzz_take(&bytes, 4)];
    int n = 1 + (int)fuzz_take(&bytes, MOST);
    lw_seqs targets = draw(&bytes, n, LONGEST, scoring.n_letters, start[0], len[0], codes[0]);
    lw_seqs queries = draw(&bytes, n, LONGEST, scoring.n_letters, start[1], len[1], codes[1]);
    for (int i = 0; i < n; i++) /* references are not empty */
        if (len[0][i] == 0)
            return 0;
    lw_align_setup setup = {.scoring = &scoring,
                            .mode = mode,
                            .strands = strands,
                            .refs = &targets,
                            .min_score = mode == LW_LOCAL ? 1 : INT32_MIN,
                            .n_hits = n_hits,
                            .n_ties = n_ties};
    setenv("LANEWISE_DISABLE", off, 1);
    const lw_align_backend *rows[2] = {&lw_align_scalar, &lw_align_cpu};
    lw_hit hits[2][MOST * 3], ties[2][MOST * 4], ends[2][MOST];
    lw_path paths[2][16];
    lw_cigars ops[2] = {{0}, {0}};
    for (int r = 0; r < 2; r++) {
        void *context;
        must(rows[r]->open(rows[r], &context, &setup, &err));
        lw_placements placed = {hits[r], n_ties ? ties[r] : NULL};
        must(rows[r]->place(context, &queries, &placed, &err));
        must(rows[r]->pair_ends(context, &queries, &targets, ends[r], &err));
        trace(rows[r], context, &setup, &queries, &targets, ends[r], n, paths[r], &ops[r]);
        rows[r]->close(context);
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n_hits; k++)
            same(&hits[0][i * n_hits + k], &hits[1][i * n_hits + k], "hit", k == 0);
        for (int k = 0; k < n_ties; k++)
            same(&ties[0][i * n_ties + k], &ties[1][i * n_ties + k], "tie", true);
        same(&ends[0][i], &ends[1][i], "pair", false);
    }
    same_paths(n, paths[0], &ops[0], paths[1], &ops[1]);
    free(ops[0].op), free(ops[1].op);
    return 0;
}
