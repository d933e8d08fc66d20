/* align_cpu.c - the CPU backend: vectors of pairs, threads over groups of them.
 *
 * place() scores groups of queries, one per lane and each strand a lane of its own, against every reference
 * (lw_cpu_kernels.score), and lets align_select.c turn the block maxima into placements; the few blocks it
 * asks for are scored again as pairs (lw_cpu_kernels.pairs), as are pair_ends() and trace(). A trace first
 * tries the path without gaps, which needs no matrix. */
#include "align/align_cpu.h"

#include <stdlib.h>

#include "common/cpu.h"
#include "common/fail.h"

lw_status lw_cpu_need(lw_cpu_buffer *b, size_t size, lw_error *err)
{
    if (size <= b->size)
        return LW_OK;
    size = (size + size / 4 + LW_CPU_ALIGN) & ~(size_t)(LW_CPU_ALIGN - 1);
    free(b->p);
    b->size = 0;
    b->p = aligned_alloc(LW_CPU_ALIGN, size);
    if (!b->p)
        return lw_fail_memory(err, size);
    b->size = size;
    return LW_OK;
}

static const lw_cpu_kernels *choose_kernels(unsigned usable)
{
    static const lw_cpu_kernels *const kernels[LW_ISA_COUNT] = {
#if defined(__x86_64__)
        [LW_ISA_AVX512BW] = &lw_cpu_kernels_avx512bw,
        [LW_ISA_AVX2] = &lw_cpu_kernels_avx2,
        [LW_ISA_SSE41] = &lw_cpu_kernels_sse41,
#elif defined(__aarch64__)
        [LW_ISA_NEON] = &lw_cpu_kernels_neon,
#endif
        [LW_ISA_PLAIN] = &lw_cpu_kernels_plain,
    };
    for (int isa = 0; isa < LW_ISA_PLAIN; isa++)
        if (kernels[isa] && (usable >> isa & 1))
            return kernels[isa];
    return kernels[LW_ISA_PLAIN];
}

/* Whether a table of the first four letters and one number for all that concerns the fifth say everything. */
static bool fits_table(const lw_scoring *sc)
{
    int32_t lowest = sc->min_score < 0 ? sc->min_score : 0; /* 0: what stands for no letter in a profile */
    if (sc->n_letters > 5 || (int64_t)sc->max_score - lowest > 255)
        return false;
    for (int q = 0; q < sc->n_letters; q++)
        for (int t = 0; t < sc->n_letters; t++)
            if ((q == 4 || t == 4) && sc->score[q * LW_MAX_LETTERS + t] != sc->score[4 * LW_MAX_LETTERS + 4])
                return false;
    return true;
}

static void cpu_close(void *context)
{
    lw_cpu *c = context;
    if (!c)
        return;
    for (int w = 0; c->workers && w < c->n_workers; w++) {
        lw_cpu_worker *k = &c->workers[w];
        lw_cpu_buffer *all[] = {&k->engine.profile,
                                &k->engine.query,
                                &k->engine.target,
                                &k->engine.may_end,
                                &k->engine.state,
                                &k->engine.gathered,
                                &k->engine.best,
                                &k->engine.directions,
                                &k->engine.saved,
                                &k->engine.reversed,
                                &k->profile,
                                &k->index,
                                &k->h,
                                &k->d,
                                &k->border,
                                &k->maxima,
                                &k->top,
                                &k->active,
                                &k->codes,
                                &k->items,
                                &k->selects,
                                &k->exact};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            free(all[i]->p);
    }
    free(c->workers);
    free(c->first_block);
    free(c->words.at);
    free(c);
}

static lw_status cpu_open(const lw_align_backend *self, void **context, const lw_align_setup *setup,
                          lw_error *err)
{
    (void)self;
    unsigned usable;
    LW_TRY(lw_isa_usable(&usable, err));
    lw_cpu *c = calloc(1, sizeof *c);
    if (!c)
        return lw_fail_memory(err, sizeof *c);
    c->setup = *setup;
    c->kernels = choose_kernels(usable);
    c->small_alphabet = fits_table(setup->scoring);
    c->band_cells = LW_CPU_BAND_CELLS;
    c->first_excess = -1;
    c->trace_bytes = LW_CPU_TRACE_BYTES;
    for (int q = 0; q < LW_MAX_LETTERS; q++)
        for (int t = 0; t < LW_MAX_LETTERS; t++)
            c->transposed[t * LW_MAX_LETTERS + q] = setup->scoring->score[q * LW_MAX_LETTERS + t];
    for (int q = 0; q < setup->scoring->n_letters; q++)
        for (int t = 0; t < setup->scoring->n_letters; t++)
            if (setup->scoring->score[q * LW_MAX_LETTERS + t] > c->row_best[q])
                c->row_best[q] = setup->scoring->score[q * LW_MAX_LETTERS + t];
    c->n_workers = lw_pool_threads(setup->pool);
    c->workers = calloc((size_t)c->n_workers, sizeof *c->workers);
    size_t n_refs = setup->refs ? (size_t)setup->refs->n : 0;
    c->first_block = malloc((n_refs + 1) * sizeof *c->first_block);
    if (!c->workers || !c->first_block) {
        cpu_close(c);
        return lw_fail_memory(err, (n_refs + 1) * sizeof *c->first_block);
    }
    if (setup->refs) {
        lw_block_map_make(&c->map, setup->refs, setup->mode, LW_CPU_BLOCKS, c->first_block);
        for (size_t r = 0; r < n_refs; r++)
            if (setup->refs->len[r] > c->longest_ref)
                c->longest_ref = setup->refs->len[r];
        lw_status status = lw_word_index_make(&c->words, setup->scoring, setup->refs, err);
        if (status != LW_OK) {
            cpu_close(c);
            return status;
        }
    }
    *context = c;
    return LW_OK;
}

const lw_align_backend lw_align_cpu = {
    .base = {.name = "cpu",
             .what = "vectors of pairs (AVX-512BW, AVX2, SSE4.1, NEON or plain C), all threads",
             .usable = lw_backend_always,
             .rank = lw_backend_rank_cpu},
    .lanes = 1,
    .batch_letters = 8 << 20,
    .open = cpu_open,
    .place = lw_cpu_place,
    .pair_ends = lw_cpu_pair_ends,
    .trace = lw_cpu_trace,
    .close = cpu_close,
};
