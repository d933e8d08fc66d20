/* align_cuda_paths_launch.cu - a batch on the device: its memory, its arguments, its kernels in turn. */
#include <string.h>

#include "align/align_cuda_paths.h"
#include "align/align_tuning.h"

/* The same for every launch of a kernel: a state of the device that threads share. */
static lw_status allow_shared(const lw_paths *p, const void *kernel, int64_t bytes, lw_error *err)
{
    if (bytes > p->by.shared_bytes)
        return lw_fail(
            err, LW_E_UNSUPPORTED,
            "this GPU gives a block %ld bytes of shared memory, an alphabet of %d letters needs %ld: "
            "use --backend cpu",
            (long)p->by.shared_bytes, p->by.setup->scoring->n_letters, (long)bytes);
    if (bytes > 48 << 10)
        LW_CUDA_TRY(err, "preparing a kernel",
                    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)p->by.shared_bytes));
    return LW_OK;
}

/* Copies the batch to the device, computes, and copies back what its paths will probably take. */
lw_status lw_paths_launch(lw_paths *p, stage *s, lw_error *err)
{
    const lw_scoring *scoring = p->by.setup->scoring;
    /* work: counters, progress, ends, spare, scratch, border; output: operations used, results, operations */
    const int64_t progress = 256, ends = round_up(progress + s->n_strips * 4, 256),
                  best = round_up(ends + s->n_strips * LW_PATH_ENDS * (int64_t)sizeof(lw_path_end), 256),
                  spare = round_up(best + (p->ends_at == LW_END_ANYWHERE && s->tile == 0
                                               ? s->n_strips * s->halves * LW_PATH_STRIP * 4
                                               : 0),
                                   256),
                  scratch = round_up(spare + s->spare_ops * 4, 256),
                  border = round_up(scratch + s->scratch_words * 4, 256),
                  scout = round_up(border + s->border_words * 4, 256);
    /* few long paths are walked from many places at once */
    int64_t scouts = 0;
    const int64_t scout_tiles = LW_PATH_SCOUT_TILES, most_marks = 4 * scout_tiles + 8,
                  most_ops = 2 * (scout_tiles + 2) * s->tile + most_marks;
    if (s->tile > 0 && !p->scores && s->n <= LW_PATH_SCOUTED_JOBS)
        scouts = (s->rows - 1) / s->tile / scout_tiles;
    const int64_t marks = round_up(scout + s->n * scouts * (int64_t)sizeof(lw_path_scout), 256),
                  scout_ops =
                      round_up(marks + s->n * scouts * most_marks * (int64_t)sizeof(lw_path_mark), 256),
                  work = scout_ops + s->n * scouts * most_ops * 4;
    const int64_t results = 256, ops = round_up(results + s->n * (int64_t)sizeof(lw_path_result), 256);
    LW_TRY(area_device(&s->input, (size_t)s->in.bytes, &p->out_of_memory, err));
    lw_status status = area_device(&s->work, (size_t)work, &p->out_of_memory, err);
    if (status == LW_E_DEVICE && p->out_of_memory && scouts > 0) { /* can be done without */
        p->out_of_memory = false, scouts = 0;
        status = area_device(&s->work, (size_t)scout, &p->out_of_memory, err);
    }
    LW_TRY(status);
    LW_TRY(area_device(&s->output, (size_t)(ops + s->spare_ops * 4), &p->out_of_memory, err));
    s->ops_copied = min64((int64_t)((double)s->n * p->ops_per_job * 1.25) + 1024, s->spare_ops);
    LW_TRY(area_pinned(&s->p_output, (size_t)(ops + s->ops_copied * 4), err));
    LW_CUDA_TRY(
        err, "copying to the GPU",
        cudaMemcpyAsync(s->input.at, s->p_input.at, (size_t)s->in.bytes, cudaMemcpyHostToDevice, s->stream));
    LW_CUDA_TRY(err, "tracing", cudaMemsetAsync(s->work.at, 0, (size_t)ends, s->stream));
    /* more operations are copied back than there will be */
    LW_CUDA_TRY(err, "tracing",
                cudaMemsetAsync(s->output.at, 0, (size_t)(ops + s->ops_copied * 4), s->stream));
    const char *in = (const char *)s->input.at;
    char *w = (char *)s->work.at, *o = (char *)s->output.at;
    lw_walk_args a;
    memset(&a, 0, sizeof a);
    a.fill.queries.words = (const uint32_t *)(in + s->in.queries);
    a.fill.queries.bits = a.fill.targets.bits = letter_bits(p);
    a.fill.targets.words = (const uint32_t *)(in + s->in.targets);
    if (p->tasks && !p->targets) {
        a.fill.targets.words = (const uint32_t *)p->by.refs;
        a.fill.targets.bits = 8;
    }
    a.fill.jobs = (const lw_path_job *)(in + s->in.jobs);
    a.fill.bundles = (const lw_bundle *)(in + s->in.bundles);
    a.fill.strips = (const lw_strip *)(in + s->in.strips);
    a.fill.n_strips = (int32_t)s->n_strips;
    a.fill.next = (int32_t *)w;
    a.fill.progress = (int32_t *)(w + progress);
    a.fill.ends = (lw_path_end *)(w + ends);
    a.fill.best_rows = (uint32_t *)(w + best);
    a.fill.scratch = (uint32_t *)(w + scratch);
    a.fill.border = (uint32_t *)(w + border);
    a.fill.table = p->by.table;
    a.fill.n_letters = scoring->n_letters;
    a.fill.mode = p->by.setup->mode;
    a.fill.ends_at = p->ends_at;
    a.fill.gap_open[0] = scoring->gap_open, a.fill.gap_extend[0] = scoring->gap_extend;
    a.fill.gap_open[1] = scoring->gap_open2, a.fill.gap_extend[1] = scoring->gap_extend2;
    a.fill.tile = s->tile;
    a.fill.scores = p->scores;
    a.fill.keep_mask = p->scores ? INT32_MAX : s->tile - 1;
    while (1 << a.fill.tile_bits < s->tile)
        a.fill.tile_bits++;
    if (!lw_paths_arithmetic_of(p, s->halves, s->tile == 0, s->columns, s->rows, s->narrow, &a.fill.by))
        return lw_fail(err, LW_E_INTERNAL, "scores of %d letters against %d do not fit their words",
                       s->columns, s->rows);
    a.n_jobs = (int32_t)s->n;
    a.bundle_of = (const int32_t *)(in + s->in.bundle_of);
    a.spare = (uint32_t *)(w + spare);
    a.spare_at = (const int64_t *)(in + s->in.spare_at);
    a.ops_used = (unsigned long long *)o;
    a.results = (lw_path_result *)(o + results);
    a.ops = (uint32_t *)(o + ops);
    a.halves = s->halves;

    int64_t shared = lw_fill_shared_bytes(s->halves, scoring->n_letters), warps = LW_PATH_WARPS;
    while (shared * warps > p->by.shared_bytes && warps > 1)
        warps /= 2;
    lw_fill_kernel fill = lw_fill_kernels[s->halves == 1][s->pieces - 1][s->tile == 0];
    LW_TRY(allow_shared(p, (const void *)fill, shared * warps, err));
    const int64_t blocks =
        min64((s->n_strips + warps - 1) / warps, (int64_t)p->by.multiprocessors * LW_PATH_RESIDENT / warps);
    LW_CUDA_TRY(err, "tracing",
                lw_launch(fill, dim3((unsigned)blocks), (unsigned)(warps * LW_WARP), (size_t)(shared * warps),
                          s->stream, a.fill));
    if (s->tile > 0 && !p->scores) {
        const int64_t bytes = lw_tiles_shared_bytes(s->pieces, s->tile, scoring->n_letters);
        LW_TRY(allow_shared(p, (const void *)lw_tiles_kernels[s->pieces - 1], bytes, err));
        a.scouts = (int32_t)scouts;
        a.scout_tiles = (int32_t)scout_tiles;
        a.most_marks = (int32_t)most_marks, a.most_ops = (int32_t)most_ops;
        a.scout = (lw_path_scout *)(w + scout);
        a.marks = (lw_path_mark *)(w + marks);
        a.scout_ops = (uint32_t *)(w + scout_ops);
        for (a.scouting = scouts > 0; a.scouting >= 0; a.scouting--)
            LW_CUDA_TRY(err, "tracing",
                        lw_launch(lw_tiles_kernels[s->pieces - 1],
                                  dim3((unsigned)(a.scouting ? s->n * scouts : s->n)), (unsigned)s->tile / 4,
                                  (size_t)bytes, s->stream, a));
    } else {
        a.job_threads = s->rows >= LW_PATH_WALK_ROWS && !p->scores ? LW_WARP : 1;
        const int64_t threads = s->n * a.job_threads;
        LW_CUDA_TRY(err, "tracing",
                    lw_launch(lw_walk_kernels[s->pieces - 1], dim3((unsigned)((threads + 127) / 128)), 128, 0,
                              s->stream, a));
    }
    LW_CUDA_TRY(err, "copying paths",
                cudaMemcpyAsync(s->p_output.at, s->output.at, (size_t)(ops + s->ops_copied * 4),
                                cudaMemcpyDeviceToHost, s->stream));
    p->cells += s->cells;
    p->computed += s->computed;
    s->busy = true;
    return LW_OK;
}
