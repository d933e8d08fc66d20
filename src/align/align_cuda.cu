/* align_cuda.cu - the CUDA rows of the alignment backends: memory, batches and launches of scores. The
 * kernels are in align_cuda_score.cu and align_cuda_select.cu; paths are align_cuda_paths.h's.
 *
 * place(): scores of all blocks (align_cuda_score.cu), then rounds of deciding and of computing single
 * columns (align_cuda_select.cu) until no read needs more; only finished hits go back to the host. */
#include "align/align_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "align/align_cuda_memory.h"
#include "align/align_fallback.h"
#include "align/align_paths.h"
#include "align/align_tuning.h"
#include "common/device.h"
#include "common/warp.cuh"

typedef struct context {
    lw_align_setup setup;
    int policy;
    lw_device device;
    cudaStream_t stream;
    int64_t budget;     /* device bytes that batches may take */
    bool out_of_memory; /* what made the last call fail */
    int block_rows;
    int64_t longest_ref;
    /* resident */
    area table, refs, ref_start, ref_len, ref_block;
    int64_t *host_ref_start; /* of letters in refs */
    int32_t *host_ref_block;
    int64_t ref_letters;
    /* of a batch */
    area codes, start, len, targets, target_start, target_len, target_block, slots, segments, groups, words,
        border;
    area view, list, again, counts, head, nodes, node_slots, node_segments, columns, hits, ties;
    /* pinned host memory */
    area p_codes, p_start, p_len, p_targets, p_target_start, p_target_len, p_target_block, p_slots,
        p_segments, p_groups;
    area p_view, p_list, p_counts, p_hits, p_ties;
    /* plain host memory */
    area order, spare;
    lw_paths *paths; /* opened when the first is asked for */
} context;

static lw_status device_room(context *c, area *a, size_t bytes, lw_error *err)
{
    return area_device(a, bytes, &c->out_of_memory, err);
}

static lw_status pinned_room(area *a, size_t bytes, lw_error *err)
{
    return area_pinned(a, bytes, err);
}

static lw_status host_room(area *a, size_t bytes, lw_error *err)
{
    return area_host(a, bytes, err);
}

static lw_status upload(context *c, area *to, const area *from, size_t bytes, lw_error *err)
{
    LW_TRY(device_room(c, to, bytes, err));
    LW_CUDA_TRY(err, "copying to the GPU",
                cudaMemcpyAsync(to->at, from->at, bytes, cudaMemcpyHostToDevice, c->stream));
    return LW_OK;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- which kernel -----------------------------------------------------------------------------------------
 */

/* Whether words of a kind hold every score of queries of `len` letters.
 * Local: H never exceeds len * max. Half-precision words are exact up to 2047, s16 up to 32767; penalties and
 * bad matches only end at values <= 0, which are floored. Other modes, s16: from above as in local mode; from
 * below, a cell of a query of m letters has H >= -(open + m * extend) (insert all), in global mode with as
 * much again for deleting the target; E and F lie at most open + extend below some H, and a diagonal step
 * adds at least min_score. All that must stay above -LW_FAR_S16, and -LW_FAR_S16 plus the least boundary
 * value above -32768. */
static bool word_holds(const context *c, int word, int64_t len, int64_t longest_target)
{
    const lw_scoring *s = c->setup.scoring;
    if (word == LW_WORD_S32)
        return true; /* the driver has checked |H| < 2^30 */
    int64_t most = len * (s->max_score > 0 ? s->max_score : 0);
    if (most > (word == LW_WORD_S16 ? 32767 : 2047))
        return false;
    if (c->setup.mode == LW_LOCAL)
        return s->min_score >= -32767 && s->gap_open + s->gap_extend <= 32767;
    int64_t letters = len + 4 + (c->setup.mode == LW_GLOBAL ? longest_target : 0);
    int64_t least =
        4 * (int64_t)s->gap_open + letters * s->gap_extend + (s->min_score < 0 ? -s->min_score : 0);
    return least < LW_FAR_S16 - 1;
}

static const lw_score_class *class_for(const context *c, int64_t len, int64_t longest_target)
{
    int local = c->setup.mode == LW_LOCAL;
    for (int i = 0; i < lw_score_class_count; i++) {
        const lw_score_class *k = &lw_score_classes[i];
        bool wanted = k->word == LW_WORD_S32 || (c->policy == LW_CUDA_HALF2 && k->word == LW_WORD_HALF) ||
                      (c->policy == LW_CUDA_DPX && (k->word == LW_WORD_H || k->word == LW_WORD_S16));
        if (wanted && k->local == local && (k->passes || len + !local <= k->lanes * k->columns) &&
            word_holds(c, k->word, len, longest_target))
            return k;
    }
    return NULL; /* not reached: 32-bit words hold everything, and the last class takes any length */
}

/* Gap penalties as a kernel's words want them. */
static void gap_words(const context *c, int word, uint32_t *open, uint32_t *extend)
{
    int32_t o = c->setup.scoring->gap_open + c->setup.scoring->gap_extend, e = c->setup.scoring->gap_extend;
    if (word == LW_WORD_S32) {
        *open = (uint32_t)-o, *extend = (uint32_t)-e;
    } else if (word == LW_WORD_S16) {
        *open = ((uint32_t)-o & 0xffff) * 0x10001u, *extend = ((uint32_t)-e & 0xffff) * 0x10001u;
    } else { /* more than 2047 is as good as 2047: no score survives either */
        uint32_t ho = 0x8000u | (uint32_t)(o < 2047 ? o : 2047), he = (uint32_t)(e < 2047 ? e : 2047);
        *open = (o == 0 ? 0 : ho) * 0x10001u;
        *extend = (word == LW_WORD_HALF ? (e == 0 ? 0 : 0x8000u | he) : (-he & 0xffff)) * 0x10001u;
    }
}

/* The host's most_span() (align_cuda_select.cu): letters that an optimal alignment may span. */
static int64_t most_span(const context *c, int64_t len)
{
    const lw_scoring *s = c->setup.scoring;
    if (c->setup.mode == LW_GLOBAL || s->gap_extend == 0)
        return INT32_MAX;
    int64_t most = len * (s->max_score > 0 ? s->max_score : 0);
    int64_t room = c->setup.mode == LW_LOCAL ? most - s->gap_open - 1 : most + len * s->gap_extend;
    return min64(len + (room > 0 ? room / s->gap_extend : 0), INT32_MAX);
}

/* --- opening and closing ----------------------------------------------------------------------------------
 */

static void cuda_close(void *context_)
{
    context *c = (context *)context_;
    if (!c)
        return;
    cudaSetDevice(c->setup.device);
    if (c->stream)
        cudaStreamSynchronize(c->stream);
    lw_paths_close(c->paths);
    area *device[] = {&c->table,      &c->refs,         &c->ref_start, &c->ref_len,    &c->ref_block,
                      &c->codes,      &c->start,        &c->len,       &c->targets,    &c->target_start,
                      &c->target_len, &c->target_block, &c->slots,     &c->segments,   &c->groups,
                      &c->words,      &c->border,       &c->view,      &c->list,       &c->again,
                      &c->counts,     &c->head,         &c->nodes,     &c->node_slots, &c->node_segments,
                      &c->columns,    &c->hits,         &c->ties};
    area *pinned[] = {&c->p_codes,      &c->p_start,        &c->p_len,    &c->p_targets,  &c->p_target_start,
                      &c->p_target_len, &c->p_target_block, &c->p_slots,  &c->p_segments, &c->p_groups,
                      &c->p_view,       &c->p_list,         &c->p_counts, &c->p_hits,     &c->p_ties};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        cudaFree(device[i]->at);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        cudaFreeHost(pinned[i]->at);
    if (c->stream)
        cudaStreamDestroy(c->stream);
    free(c->order.at);
    free(c->spare.at);
    free(c->host_ref_start);
    free(c->host_ref_block);
    free(c);
}

static int64_t rows_of(const context *c, int64_t len)
{
    return len + (c->setup.mode != LW_LOCAL);
}

static int64_t blocks_of(const context *c, int64_t len)
{
    return (rows_of(c, len) + c->block_rows - 1) / c->block_rows;
}

static lw_status load_refs(context *c, lw_error *err)
{
    const lw_seqs *refs = c->setup.refs;
    size_t n = (size_t)refs->n;
    int64_t total = 0;
    for (int64_t i = 0; i < refs->n; i++) {
        total += refs->len[i];
        c->longest_ref = max64(c->longest_ref, refs->len[i]);
    }
    c->ref_letters = total;
    c->block_rows = total <= LW_SMALL_ROWS ? LW_BLOCK_ROWS_SMALL : LW_BLOCK_ROWS_LARGE;
    c->host_ref_start = (int64_t *)malloc((n + 1) * sizeof(int64_t));
    c->host_ref_block = (int32_t *)malloc((n + 1) * sizeof(int32_t));
    if (!c->host_ref_start || !c->host_ref_block)
        return lw_fail_memory(err, (n + 1) * sizeof(int64_t));
    int64_t at = LW_MARGIN, block = 0;
    for (size_t i = 0; i < n; i++) {
        c->host_ref_start[i] = at;
        c->host_ref_block[i] = (int32_t)block;
        at += refs->len[i];
        block += blocks_of(c, refs->len[i]);
        if (block > INT32_MAX)
            return lw_fail(err, LW_E_RANGE, "the references are too long together for one GPU context");
    }
    c->host_ref_start[n] = at;
    c->host_ref_block[n] = (int32_t)block;
    size_t bytes = (size_t)at + LW_MARGIN + (size_t)c->block_rows;
    LW_TRY(device_room(c, &c->refs, bytes, err));
    LW_TRY(device_room(c, &c->ref_start, (n + 1) * sizeof(int64_t), err));
    LW_TRY(device_room(c, &c->ref_len, (n + 1) * sizeof(int32_t), err));
    LW_TRY(device_room(c, &c->ref_block, (n + 1) * sizeof(int32_t), err));
    LW_CUDA_TRY(err, "loading references", cudaMemsetAsync(c->refs.at, 0, bytes, c->stream));
    for (size_t i = 0, next; i < n; i = next) { /* references that lie one after the other go in one copy */
        int64_t letters = refs->len[i];
        for (next = i + 1; next < n && refs->start[next] == refs->start[i] + letters; next++)
            letters += refs->len[next];
        LW_CUDA_TRY(err, "loading references",
                    cudaMemcpyAsync((uint8_t *)c->refs.at + c->host_ref_start[i],
                                    refs->codes + refs->start[i], (size_t)letters, cudaMemcpyHostToDevice,
                                    c->stream));
    }
    LW_CUDA_TRY(err, "loading references",
                cudaMemcpyAsync(c->ref_start.at, c->host_ref_start, (n + 1) * sizeof(int64_t),
                                cudaMemcpyHostToDevice, c->stream));
    LW_CUDA_TRY(err, "loading references",
                cudaMemcpyAsync(c->ref_block.at, c->host_ref_block, (n + 1) * sizeof(int32_t),
                                cudaMemcpyHostToDevice, c->stream));
    if (n > 0)
        LW_CUDA_TRY(err, "loading references",
                    cudaMemcpyAsync(c->ref_len.at, refs->len, n * sizeof(int32_t), cudaMemcpyHostToDevice,
                                    c->stream));
    return LW_OK;
}

/* What is loaded here is there before this returns, for the other streams too. Copies without a stream would
 * not do: from pageable memory they may return earlier, and none of our streams waits for the default one. */
static lw_status open_on_device(context *c, int lanes, lw_error *err)
{
    const lw_scoring *s = c->setup.scoring;
    LW_TRY(lw_device_query(c->setup.device, &c->device, err));
    LW_CUDA_TRY(err, "choosing the device", cudaSetDevice(c->setup.device));
    LW_CUDA_TRY(err, "creating a stream", cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
    lw_score_table table;
    memcpy(table.score, s->score, sizeof table.score);
    memcpy(table.complement, s->complement, sizeof table.complement);
    LW_TRY(device_room(c, &c->table, sizeof table, err));
    LW_CUDA_TRY(err, "loading the scoring matrix",
                cudaMemcpyAsync(c->table.at, &table, sizeof table, cudaMemcpyHostToDevice, c->stream));
    c->block_rows = LW_BLOCK_ROWS_SMALL;
    if (c->setup.refs)
        LW_TRY(load_refs(c, err));
    LW_CUDA_TRY(err, "loading the scoring matrix and references", cudaStreamSynchronize(c->stream));
    int64_t free_bytes = 0;
    LW_TRY(lw_device_free_bytes(c->setup.device, &free_bytes, err));
    int64_t share = free_bytes / lanes;
    if (c->setup.device_bytes > 0) {
        const int64_t held = (int64_t)(c->table.bytes + c->refs.bytes + c->ref_start.bytes +
                                       c->ref_block.bytes + c->ref_len.bytes),
                      left = c->setup.device_bytes / lanes - held;
        if (left <= 0)
            return lw_fail(err, LW_E_DEVICE,
                           "the references take %ld MB of GPU memory, more than was allowed: raise the limit "
                           "(--gpu-mem) or use --backend cpu",
                           (long)(held * lanes >> 20) + 1);
        share = min64(share, left);
    }
    /* areas grow by an eighth more than was asked for */
    c->budget = share / 4 * 3;
    return LW_OK;
}

static lw_status cuda_open(const lw_align_backend *self, void **out, const lw_align_setup *setup,
                           lw_error *err)
{
    context *c = (context *)calloc(1, sizeof *c);
    if (!c)
        return lw_fail_memory(err, sizeof *c);
    c->setup = *setup;
    c->policy = self->base.policy;
    lw_status status = open_on_device(c, self->lanes, err);
    if (status != LW_OK) {
        cuda_close(c);
        return status;
    }
    *out = c;
    return LW_OK;
}

/* --- a batch of queries -----------------------------------------------------------------------------------
 */

typedef struct copy_job {
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
} copy_job;

static lw_status copy_piece(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const copy_job *job = (const copy_job *)arg;
    size_t at = (size_t)i * LW_COPY_PIECE, left = job->bytes - at;
    memcpy(job->to + at, job->from + at, left < LW_COPY_PIECE ? left : (size_t)LW_COPY_PIECE);
    return LW_OK;
}

/* memcpy, by several threads when it is large: one cannot fill pinned memory as fast as the GPU empties it. A
 * small copy does not wait for a place among the pool's other work. */
static lw_status copy_letters(context *c, uint8_t *to, const uint8_t *from, size_t bytes, lw_error *err)
{
    copy_job job = {to, from, bytes};
    int64_t pieces = (int64_t)((bytes + LW_COPY_PIECE - 1) / LW_COPY_PIECE);
    return lw_pool_for(pieces > LW_COPY_ALONE ? c->setup.pool : NULL, pieces, copy_piece, &job, err);
}

/* Copies sequences first .. first + n - 1, back to back behind LW_MARGIN bytes, to pinned memory and on to
 * the device; `tail` zero bytes behind. */
static lw_status upload_seqs(context *c, const lw_seqs *seqs, int64_t first, int64_t n, size_t tail,
                             area *p_codes, area *p_start, area *p_len, area *codes, area *start, area *len,
                             lw_error *err)
{
    int64_t letters = 0;
    for (int64_t i = 0; i < n; i++)
        letters += seqs->len[first + i];
    size_t bytes = LW_MARGIN + (size_t)letters + tail;
    LW_TRY(pinned_room(p_codes, bytes, err));
    LW_TRY(pinned_room(p_start, ((size_t)n + 1) * sizeof(int64_t), err));
    LW_TRY(pinned_room(p_len, ((size_t)n + 1) * sizeof(int32_t), err));
    uint8_t *to = (uint8_t *)p_codes->at;
    int64_t at = LW_MARGIN, *starts = (int64_t *)p_start->at;
    memset(to, 0, LW_MARGIN);
    for (int64_t i = 0, next; i < n; i = next) {
        int64_t run = 0;
        for (next = i; next < n && seqs->start[first + next] == seqs->start[first + i] + run; next++) {
            starts[next] = at + run;
            run += seqs->len[first + next];
        }
        LW_TRY(copy_letters(c, to + at, seqs->codes + seqs->start[first + i], (size_t)run, err));
        at += run;
    }
    memset(to + at, 0, tail);
    memcpy(p_len->at, seqs->len + first, (size_t)n * sizeof(int32_t));
    LW_TRY(upload(c, codes, p_codes, bytes, err));
    LW_TRY(upload(c, start, p_start, (size_t)n * sizeof(int64_t), err));
    return upload(c, len, p_len, (size_t)n * sizeof(int32_t), err);
}

/* order[0 .. n): the numbers 0 .. n - 1 by key, largest first, equal keys in order. */
static lw_status sort_by(context *c, const int32_t *key, int64_t n, lw_error *err)
{
    LW_TRY(host_room(&c->order, (size_t)n * sizeof(int32_t), err));
    LW_TRY(host_room(&c->spare, (size_t)n * sizeof(int32_t) + (1 << 16) * sizeof(int64_t), err));
    int32_t *order = (int32_t *)c->order.at;
    bool sorted = true;
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        order[i] = (int32_t)i;
        sorted = sorted && (i == 0 || key[i] <= key[i - 1]);
        largest = key[i] > largest ? key[i] : largest;
    }
    int64_t *count = (int64_t *)c->spare.at;
    int32_t *other = (int32_t *)(count + (1 << 16));
    for (int shift = 0; !sorted && shift < 32 && (largest >> shift) > 0; shift += 16) {
        memset(count, 0, (1 << 16) * sizeof *count);
        for (int64_t i = 0; i < n; i++)
            count[key[order[i]] >> shift & 0xffff]++;
        int64_t at = 0;
        for (int64_t k = 0xffff; k >= 0; k--) {
            int64_t here = count[k];
            count[k] = at;
            at += here;
        }
        for (int64_t i = 0; i < n; i++)
            other[count[key[order[i]] >> shift & 0xffff]++] = order[i];
        memcpy(order, other, (size_t)n * sizeof *order);
    }
    return LW_OK;
}

/* Neighbouring slots of one class. */
typedef struct run {
    const lw_score_class *kernel;
    int64_t first, n;
    int32_t longest;
} run;

enum { MAX_RUNS = 64 };

typedef struct batch {
    const lw_seqs *reads, *targets; /* targets NULL: the references */
    int64_t first, n;
    int64_t blocks; /* of all references; paired: of all targets */
    int64_t longest_target;
    int n_hits, n_ties;
    int64_t n_slots;
    int32_t longest_read;
    run runs[MAX_RUNS];
    int n_runs;
} batch;

/* Slots by length, longest first, and where each strand's block maxima will be. */
static lw_status fill_slots(context *c, batch *b, lw_error *err)
{
    LW_TRY(sort_by(c, (const int32_t *)c->p_len.at, b->n, err));
    LW_TRY(pinned_room(&c->p_slots, (size_t)(2 * b->n + 1) * sizeof(lw_slot), err));
    LW_TRY(pinned_room(&c->p_view, (size_t)(2 * b->n) * sizeof(int64_t), err));
    const int32_t *order = (const int32_t *)c->order.at, *len = (const int32_t *)c->p_len.at;
    const int32_t *first_block = (const int32_t *)c->p_target_block.at;
    lw_slot *slots = (lw_slot *)c->p_slots.at;
    int64_t *view = (int64_t *)c->p_view.at;
    for (int64_t i = 0; i < 2 * b->n; i++)
        view[i] = -1;
    run *r = NULL;
    const lw_score_class *kernel = NULL;
    for (int64_t k = 0; k < b->n; k++) {
        int32_t read = order[k];
        if (len[read] == 0 && !b->targets)
            continue; /* place() has no placement for an empty read */
        if (!kernel || len[read] != len[order[k - 1]])
            kernel = class_for(c, len[read], b->longest_target);
        if (!r || r->kernel != kernel) {
            if (b->n_runs == MAX_RUNS)
                return lw_fail(err, LW_E_INTERNAL, "a batch of reads falls into more than %d classes",
                               MAX_RUNS);
            r = &b->runs[b->n_runs++];
            r->kernel = kernel;
            r->first = b->n_slots;
            r->n = 0;
            r->longest = len[read];
        }
        b->longest_read = len[read] > b->longest_read ? len[read] : b->longest_read;
        for (int strand = 0; strand < 2; strand++) {
            if (!(c->setup.strands & (strand ? LW_REVERSE : LW_FORWARD)))
                continue;
            /* the free half of the run's last slot, if this strand may share it */
            const lw_slot *last = &slots[b->n_slots > 0 ? b->n_slots - 1 : 0];
            bool shares = kernel->word != LW_WORD_S32 && r->n > 0 && last->item[1] < 0 &&
                          (!b->targets || last->item[0] >> 1 == read);
            int half = shares ? 1 : 0;
            if (!shares) {
                slots[b->n_slots].item[0] = slots[b->n_slots].item[1] = -1;
                b->n_slots++;
                r->n++;
            }
            int64_t slot = b->n_slots - 1;
            slots[slot].item[half] = read * 2 + strand;
            int64_t word = slot * b->blocks;
            if (b->targets) /* each 32-bit strand has words of its own */
                word = first_block[read] + (kernel->word == LW_WORD_S32 && strand ? b->blocks : 0);
            view[2 * (int64_t)read + strand] = word * 4 + (kernel->word == LW_WORD_S32 ? 2 : half);
        }
    }
    LW_TRY(upload(c, &c->slots, &c->p_slots, (size_t)max64(b->n_slots, 1) * sizeof(lw_slot), err));
    return upload(c, &c->view, &c->p_view, (size_t)(2 * b->n) * sizeof(int64_t), err);
}

/* Adds rows of the reference, blocks from .. to - 1, with what has to run before them to make them exact. */
static lw_segment piece_of(const context *c, int64_t ref_start, int64_t rows, int64_t from, int64_t to,
                           int64_t span, int64_t out)
{
    int64_t warm = min64((min64(span, rows) + c->block_rows - 1) / c->block_rows, from);
    int64_t begin = (from - warm) * c->block_rows;
    lw_segment s;
    s.ref = ref_start + begin;
    s.out = out;
    s.rows = (int32_t)(rows - begin);
    s.warm = (int32_t)warm;
    s.blocks = (int32_t)(warm + to - from);
    return s;
}

/* Cuts the references for one run of slots, so that there are warps enough. */
static lw_status cut_refs(context *c, const run *r, int32_t *n_groups, int64_t *longest_rows, lw_error *err)
{
    const lw_seqs *refs = c->setup.refs;
    int64_t slot_warps = (r->n * r->kernel->lanes + LW_WARP - 1) / LW_WARP, span = most_span(c, r->longest);
    int64_t wanted = max64((int64_t)c->device.multiprocessors * LW_WARPS_WANTED / slot_warps, 1);
    int64_t all_rows = c->ref_letters + refs->n;
    int64_t piece = max64(max64(all_rows / wanted, span * LW_PIECE_SPANS), 4096);
    int64_t piece_blocks = piece / c->block_rows, n_segments = 0;
    for (int64_t i = 0; i < refs->n; i++)
        n_segments += blocks_of(c, refs->len[i]) / piece_blocks + 1;
    LW_TRY(pinned_room(&c->p_segments, (size_t)n_segments * sizeof(lw_segment), err));
    LW_TRY(pinned_room(&c->p_groups, (size_t)(n_segments + 1) * sizeof(int32_t), err));
    lw_segment *segments = (lw_segment *)c->p_segments.at;
    int32_t *groups = (int32_t *)c->p_groups.at, n = 0;
    int64_t in_group = 0;
    *n_groups = 0;
    *longest_rows = 0;
    groups[0] = 0;
    for (int64_t i = 0; i < refs->n; i++) {
        int64_t blocks = blocks_of(c, refs->len[i]), pieces = blocks / piece_blocks;
        pieces = pieces < 1 ? 1 : pieces;
        for (int64_t p = 0; p < pieces && blocks > 0; p++) {
            int64_t from = blocks * p / pieces, to = blocks * (p + 1) / pieces;
            segments[n] = piece_of(c, c->host_ref_start[i], rows_of(c, refs->len[i]), from, to, span,
                                   c->host_ref_block[i] + from);
            int64_t rows = (int64_t)segments[n].blocks * c->block_rows;
            *longest_rows = max64(*longest_rows, rows);
            n++;
            in_group += rows;
            if (in_group >= piece) {
                groups[++*n_groups] = n;
                in_group = 0;
            }
        }
    }
    if (groups[*n_groups] != n)
        groups[++*n_groups] = n;
    LW_TRY(upload(c, &c->segments, &c->p_segments, (size_t)max64(n, 1) * sizeof(lw_segment), err));
    return upload(c, &c->groups, &c->p_groups, (size_t)(*n_groups + 1) * sizeof(int32_t), err);
}

static lw_score_args common_args(context *c, const batch *b, int word)
{
    lw_score_args a;
    memset(&a, 0, sizeof a);
    a.queries.codes = (const uint8_t *)c->codes.at;
    a.queries.start = (const int64_t *)c->start.at;
    a.queries.len = (const int32_t *)c->len.at;
    a.refs = (const uint8_t *)(b->targets ? c->targets.at : c->refs.at);
    a.table = (const lw_score_table *)c->table.at;
    a.n_letters = c->setup.scoring->n_letters;
    a.mode = c->setup.mode;
    a.block_rows = c->block_rows;
    a.columns = (lw_column *)c->columns.at;
    a.words = (uint32_t *)c->words.at;
    gap_words(c, word, &a.open, &a.extend);
    return a;
}

/* Makes sure that blocks of the kernel may have so much shared memory. Asked for only where it is needed:
 * touching a kernel loads it, and a run uses few of them. A state of the device, not of the launch: the same
 * for every launch, so that threads do not disturb each other. */
static lw_status allow_shared(const context *c, const void *kernel, int64_t bytes, lw_error *err)
{
    if (bytes <= 48 << 10)
        return LW_OK;
    if (bytes <= c->device.shared_bytes) {
        LW_CUDA_TRY(err, "preparing a kernel",
                    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)c->device.shared_bytes));
        return LW_OK;
    }
    return lw_fail(
        err, LW_E_UNSUPPORTED,
        "%s gives a block %ld bytes of shared memory, an alphabet of %d letters needs %ld: use --backend cpu",
        c->device.name, (long)c->device.shared_bytes, c->setup.scoring->n_letters, (long)bytes);
}

/* Warps in a launch, with the border that each needs when there are several passes. */
static lw_status launch_score(context *c, const lw_score_class *k, lw_score_args *a, int64_t units,
                              int64_t rows, bool passes, lw_error *err)
{
    int64_t shared = lw_score_shared_bytes(k, a->n_letters), warps = k->warps;
    while (shared > c->device.shared_bytes && warps > 1) { /* large alphabets: fewer warps a block */
        warps /= 2;
        shared = lw_score_shared_bytes(k, a->n_letters) / k->warps * warps;
    }
    LW_TRY(allow_shared(c, (const void *)k->kernel, shared, err));
    int64_t n_warps = units;
    if (passes) {
        a->border_stride = rows + c->block_rows + LW_WARP + 1;
        int64_t each = a->border_stride * (int64_t)sizeof(uint2);
        n_warps = min64(n_warps, (int64_t)c->device.multiprocessors * 16);
        n_warps = max64(min64(n_warps, c->budget / 4 / each), 1);
        n_warps = (n_warps + warps - 1) / warps * warps;
        const size_t before = c->border.bytes;
        LW_TRY(device_room(c, &c->border, (size_t)(n_warps * each), err));
        if (c->border.bytes != before) /* a pass reads ahead of the rows that the one before has written */
            LW_CUDA_TRY(err, "scoring", cudaMemsetAsync(c->border.at, 0, c->border.bytes, c->stream));
        a->border = (uint2 *)c->border.at;
    }
    dim3 grid((unsigned)((n_warps + warps - 1) / warps));
    LW_CUDA_TRY(err, "scoring",
                lw_launch(k->kernel, grid, (unsigned)(warps * LW_WARP), (size_t)shared, c->stream, *a));
    return LW_OK;
}

static lw_status score_runs(context *c, batch *b, lw_error *err)
{
    if (b->targets) {
        /* one segment per slot */
        LW_TRY(pinned_room(&c->p_segments, (size_t)(b->n_slots + 1) * sizeof(lw_segment), err));
        lw_segment *segments = (lw_segment *)c->p_segments.at;
        const lw_slot *slots = (const lw_slot *)c->p_slots.at;
        const int64_t *start = (const int64_t *)c->p_target_start.at, *view = (const int64_t *)c->p_view.at;
        const int32_t *len = (const int32_t *)c->p_target_len.at;
        for (int64_t i = 0; i < b->n_slots; i++) {
            int32_t item = slots[i].item[0], read = item >> 1;
            segments[i] = piece_of(c, start[read], rows_of(c, len[read]), 0, blocks_of(c, len[read]), 0,
                                   view[item] >> 2);
        }
        LW_TRY(upload(c, &c->segments, &c->p_segments, (size_t)(b->n_slots + 1) * sizeof(lw_segment), err));
    }
    LW_TRY(device_room(c, &c->words, (size_t)((b->targets ? 2 * b->blocks : b->n_slots * b->blocks) + 1) * 4,
                       err));
    for (int i = 0; i < b->n_runs; i++) {
        run *r = &b->runs[i];
        lw_score_args a = common_args(c, b, r->kernel->word);
        int64_t longest_rows = 0;
        a.paired = b->targets != NULL;
        a.n_groups = 1;
        if (!b->targets) {
            LW_TRY(cut_refs(c, r, &a.n_groups, &longest_rows, err));
            a.words_stride = b->blocks;
            a.words += r->first * b->blocks;
        } else {
            longest_rows = blocks_of(c, b->longest_target) * c->block_rows;
        }
        a.slots = (const lw_slot *)c->slots.at + r->first;
        a.n_slots = r->n;
        a.segments = (const lw_segment *)c->segments.at + (b->targets ? r->first : 0);
        a.group = (const int32_t *)c->groups.at;
        int64_t slot_warps = (r->n * r->kernel->lanes + LW_WARP - 1) / LW_WARP;
        LW_TRY(launch_score(c, r->kernel, &a, slot_warps * a.n_groups, longest_rows, r->kernel->passes, err));
        if (!b->targets) /* the next run's pieces replace these in pinned memory */
            LW_CUDA_TRY(err, "scoring", cudaStreamSynchronize(c->stream));
    }
    return LW_OK;
}

/* Columns of nodes from .. to - 1. */
static lw_status compute_nodes(context *c, batch *b, int64_t from, int64_t to, lw_error *err)
{
    int local = c->setup.mode == LW_LOCAL;
    for (int wide = 0; wide < 2; wide++) {
        const lw_score_class *k = &lw_column_classes[(local ? 0 : 2) + wide];
        const lw_score_class *narrow = &lw_column_classes[local ? 0 : 2];
        lw_score_args a = common_args(c, b, LW_WORD_S32);
        int32_t narrow_max = narrow->lanes * narrow->columns - !local;
        a.len_min = wide ? narrow_max + 1 : 0;
        a.len_max = wide ? INT32_MAX : narrow_max;
        if (wide && b->longest_read <= narrow_max)
            break;
        a.slots = (const lw_slot *)c->node_slots.at + from;
        a.segments = (const lw_segment *)c->node_segments.at + from;
        a.n_slots = to - from;
        a.keyed = (int64_t)b->longest_read * c->setup.scoring->max_score < INT32_MAX / LW_KEY_COLUMNS - 1;
        int64_t units = (a.n_slots * k->lanes + LW_WARP - 1) / LW_WARP;
        int64_t rows = most_span(c, b->longest_read) + 2 * (int64_t)b->longest_read +
                       4 * (c->block_rows + LW_BLOCK_TAIL);
        rows = min64(rows, rows_of(c, b->longest_target));
        LW_TRY(launch_score(c, k, &a, units, rows, wide, err));
    }
    return LW_OK;
}

/* Rounds of deciding and computing single blocks, for the reads in list[0 .. n); *left of them are put back
 * at the front of the list when the nodes did not suffice. */
static lw_status decide_some(context *c, batch *b, lw_select_args a, int32_t n, int32_t *left, lw_error *err)
{
    int32_t *counts = (int32_t *)c->p_counts.at;
    LW_CUDA_TRY(err, "selecting",
                cudaMemsetAsync(c->head.at, 0xff, (size_t)b->n * sizeof(int32_t), c->stream));
    LW_CUDA_TRY(err, "selecting", cudaMemsetAsync(c->counts.at, 0, 3 * sizeof(int32_t), c->stream));
    int32_t *list = (int32_t *)c->list.at, *again = (int32_t *)c->again.at;
    a.resolved = 0;
    for (*left = n; *left > 0;) {
        a.list = list;
        a.n_list = *left;
        a.again = again;
        LW_CUDA_TRY(err, "selecting", cudaMemsetAsync(c->counts.at, 0, sizeof(int32_t), c->stream));
        LW_CUDA_TRY(err, "selecting",
                    lw_launch(lw_select_kernel,
                              dim3((unsigned)((*left + LW_SELECT_WARPS - 1) / LW_SELECT_WARPS)),
                              LW_SELECT_WARPS * LW_WARP, 0, c->stream, a));
        LW_CUDA_TRY(
            err, "selecting",
            cudaMemcpyAsync(counts, c->counts.at, 3 * sizeof(int32_t), cudaMemcpyDeviceToHost, c->stream));
        LW_CUDA_TRY(err, "placing reads", cudaStreamSynchronize(c->stream));
        *left = counts[0];
        int32_t *swap = list;
        list = again;
        again = swap;
        int32_t asked = counts[1] < a.capacity ? counts[1] : a.capacity;
        if (*left > 0 && asked == a.resolved)
            break; /* no room for the nodes that the rest needs */
        if (asked > a.resolved)
            LW_TRY(compute_nodes(c, b, a.resolved, asked, err));
        a.resolved = asked;
    }
    if (*left > 0 && list != (int32_t *)c->list.at)
        LW_CUDA_TRY(err, "selecting",
                    cudaMemcpyAsync(c->list.at, list, (size_t)*left * sizeof(int32_t),
                                    cudaMemcpyDeviceToDevice, c->stream));
    return LW_OK;
}

static lw_status node_room(context *c, int64_t nodes, int64_t columns, lw_error *err)
{
    LW_TRY(device_room(c, &c->nodes, (size_t)nodes * sizeof(lw_node), err));
    LW_TRY(device_room(c, &c->node_slots, (size_t)nodes * sizeof(lw_slot), err));
    LW_TRY(device_room(c, &c->node_segments, (size_t)nodes * sizeof(lw_segment), err));
    return device_room(c, &c->columns, (size_t)columns * sizeof(lw_column), err);
}

static lw_status decide_all(context *c, batch *b, lw_error *err)
{
    const lw_scoring *s = c->setup.scoring;
    /* most reads ask once, for the neighbourhood of their best placement; pairs for a block */
    int64_t n = b->n, around = (b->targets ? 1 : 3) * (int64_t)(c->block_rows + LW_BLOCK_TAIL);
    around += b->targets ? 0 : 2 * (int64_t)b->longest_read;
    int64_t capacity = 4 * n + 1024, most_columns = c->budget / 4 / (int64_t)sizeof(lw_column);
    int64_t columns =
        min64(n * around, min64(most_columns, INT32_MAX / 2)) + 64 * (c->block_rows + LW_BLOCK_TAIL);
    LW_TRY(pinned_room(&c->p_list, (size_t)n * sizeof(int32_t), err));
    LW_TRY(pinned_room(&c->p_counts, 4 * sizeof(int32_t), err));
    LW_TRY(device_room(c, &c->again, (size_t)n * sizeof(int32_t), err));
    LW_TRY(device_room(c, &c->counts, 4 * sizeof(int32_t), err));
    LW_TRY(device_room(c, &c->head, (size_t)n * sizeof(int32_t), err));
    LW_TRY(device_room(c, &c->hits, (size_t)(n * b->n_hits) * sizeof(lw_hit), err));
    LW_TRY(device_room(c, &c->ties, (size_t)(n * b->n_ties + 1) * sizeof(lw_hit), err));
    int32_t *list = (int32_t *)c->p_list.at;
    for (int64_t i = 0; i < n; i++)
        list[i] = (int32_t)i;
    LW_TRY(upload(c, &c->list, &c->p_list, (size_t)n * sizeof(int32_t), err));

    lw_select_args a;
    memset(&a, 0, sizeof a);
    a.words = (const uint32_t *)c->words.at;
    a.view = (const int64_t *)c->view.at;
    a.len = (const int32_t *)c->len.at;
    a.ref_block = (const int32_t *)(b->targets ? c->target_block.at : c->ref_block.at);
    a.ref_len = (const int32_t *)(b->targets ? c->target_len.at : c->ref_len.at);
    a.ref_start = (const int64_t *)(b->targets ? c->target_start.at : c->ref_start.at);
    a.n_refs = b->targets ? (int32_t)n : (int32_t)c->setup.refs->n;
    a.paired = b->targets != NULL;
    a.counts = (int32_t *)c->counts.at;
    a.head = (int32_t *)c->head.at;
    a.mode = c->setup.mode;
    a.block_rows = c->block_rows;
    a.min_score = c->setup.min_score;
    a.n_hits = b->n_hits;
    a.n_ties = b->n_ties;
    a.max_score = s->max_score;
    a.gap_open = s->gap_open;
    a.gap_extend = s->gap_extend;
    a.hits = (lw_hit *)c->hits.at;
    a.ties = (lw_hit *)c->ties.at;

    /* A read needs few nodes, but nothing bounds how many: reads of a repeat may ask for thousands. When
     * nodes run out, fewer reads are decided at a time, and in the end one read has as many as the memory
     * holds. */
    int32_t active = (int32_t)n;
    for (int64_t undecided = n; undecided > 0;) {
        LW_TRY(node_room(c, capacity, columns, err));
        a.nodes = (lw_node *)c->nodes.at;
        a.slots = (lw_slot *)c->node_slots.at;
        a.segments = (lw_segment *)c->node_segments.at;
        a.columns = (const lw_column *)c->columns.at;
        a.capacity = (int32_t)capacity;
        a.column_capacity = (int32_t)columns;
        int32_t now = (int32_t)min64(active, undecided), left = 0;
        /* the last `now` of the list, moved to the front, so that what is left over stays behind the others
         */
        int32_t *all = (int32_t *)c->list.at;
        area whole = c->list;
        c->list.at = all + (undecided - now);
        lw_status status = decide_some(c, b, a, now, &left, err);
        c->list = whole;
        LW_TRY(status);
        undecided -= now - left;
        if (left == 0)
            continue;
        if (left == 1 && now == 1) {
            if (columns > most_columns || columns > INT32_MAX / 2)
                return lw_fail(
                    err, LW_E_DEVICE,
                    "a read has so many equal placements that %ld MB of GPU memory do not hold them",
                    (long)(c->budget >> 20));
            columns *= 2;
            capacity *= 2;
        }
        active = left > 1 ? left / 2 : 1;
    }
    return LW_OK;
}

static lw_status run_batch(context *c, batch *b, lw_hit *hits, lw_hit *ties, lw_error *err)
{
    if (b->targets) {
        LW_TRY(pinned_room(&c->p_target_block, (size_t)(b->n + 1) * sizeof(int32_t), err));
        int32_t *first_block = (int32_t *)c->p_target_block.at;
        b->blocks = 0;
        for (int64_t i = 0; i < b->n; i++) {
            first_block[i] = (int32_t)b->blocks;
            b->blocks += blocks_of(c, b->targets->len[b->first + i]);
            b->longest_target = max64(b->longest_target, b->targets->len[b->first + i]);
        }
        first_block[b->n] = (int32_t)b->blocks;
        LW_TRY(upload(c, &c->target_block, &c->p_target_block, (size_t)(b->n + 1) * sizeof(int32_t), err));
        /* a warp runs as far as the longest of its targets */
        size_t tail = LW_MARGIN + (size_t)(b->longest_target + 2 * c->block_rows);
        LW_TRY(upload_seqs(c, b->targets, b->first, b->n, tail, &c->p_targets, &c->p_target_start,
                           &c->p_target_len, &c->targets, &c->target_start, &c->target_len, err));
    } else {
        b->blocks = c->host_ref_block[c->setup.refs->n];
        b->longest_target = c->longest_ref;
    }
    LW_TRY(upload_seqs(c, b->reads, b->first, b->n, LW_MARGIN, &c->p_codes, &c->p_start, &c->p_len, &c->codes,
                       &c->start, &c->len, err));
    LW_TRY(fill_slots(c, b, err));
    LW_TRY(score_runs(c, b, err));
    LW_TRY(decide_all(c, b, err));
    size_t hit_bytes = (size_t)(b->n * b->n_hits) * sizeof(lw_hit),
           tie_bytes = (size_t)(b->n * b->n_ties) * sizeof(lw_hit);
    LW_TRY(pinned_room(&c->p_hits, hit_bytes, err));
    LW_TRY(pinned_room(&c->p_ties, tie_bytes, err));
    LW_CUDA_TRY(err, "copying placements",
                cudaMemcpyAsync(c->p_hits.at, c->hits.at, hit_bytes, cudaMemcpyDeviceToHost, c->stream));
    if (tie_bytes > 0)
        LW_CUDA_TRY(err, "copying placements",
                    cudaMemcpyAsync(c->p_ties.at, c->ties.at, tie_bytes, cudaMemcpyDeviceToHost, c->stream));
    LW_CUDA_TRY(err, "placing reads", cudaStreamSynchronize(c->stream));
    memcpy(hits, c->p_hits.at, hit_bytes);
    for (int64_t i = 0; b->targets && i < b->n; i++) /* pairs are counted from the first of the call */
        if (hits[i].target >= 0)
            hits[i].target += (int32_t)b->first;
    if (tie_bytes > 0)
        memcpy(ties, c->p_ties.at, tie_bytes);
    return LW_OK;
}

/* Runs all queries in batches that fit; after a failed allocation in half as large ones. */
static lw_status run_all(context *c, const lw_seqs *reads, const lw_seqs *targets, int n_hits, int n_ties,
                         lw_hit *hits, lw_hit *ties, lw_error *err)
{
    LW_CUDA_TRY(err, "choosing the device", cudaSetDevice(c->setup.device));
    int64_t most = LW_SUBBATCH_READS;
    for (int64_t first = 0; first < reads->n;) {
        if (lw_stopped(c->setup.host))
            return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
        /* device bytes: letters, words (both strands in words of their own at worst), nodes; cells: to be
         * able to stop */
        int64_t n = 0, bytes = 0;
        double cells = 0;
        while (n < most && first + n < reads->n) {
            int64_t m = reads->len[first + n], t = targets ? targets->len[first + n] : c->ref_letters;
            int64_t blocks = targets ? blocks_of(c, t) : c->host_ref_block[c->setup.refs->n];
            bytes += m + (targets ? t : 0) + 8 * blocks + 2048 + (int64_t)sizeof(lw_hit) * (n_hits + n_ties);
            cells += 2.0 * (double)m * (double)t;
            if (n > 0 && (bytes > c->budget / 2 || cells > LW_SUBBATCH_CELLS))
                break;
            n++;
        }
        batch b;
        memset(&b, 0, sizeof b);
        b.reads = reads;
        b.targets = targets;
        b.first = first;
        b.n = n;
        b.n_hits = n_hits;
        b.n_ties = n_ties;
        lw_error local;
        memset(&local, 0, sizeof local);
        c->out_of_memory = false;
        lw_status status =
            run_batch(c, &b, hits + first * n_hits, ties ? ties + first * n_ties : NULL, &local);
        if (status == LW_E_DEVICE && c->out_of_memory && n > 1) {
            cudaStreamSynchronize(c->stream);
            most = n / 2;
            continue;
        }
        if (status != LW_OK)
            return lw_fail(err, status, "%s", local.message);
        first += n;
    }
    return LW_OK;
}

static lw_status cuda_place(void *context_, const lw_seqs *reads, lw_placements *out, lw_error *err)
{
    context *c = (context *)context_;
    if (c->setup.scoring->two_piece)
        return lw_fallback_place(&c->setup, reads, out, err);
    return run_all(c, reads, NULL, c->setup.n_hits, out->ties ? c->setup.n_ties : 0, out->hits, out->ties,
                   err);
}

/* --- paths ------------------------------------------------------------------------------------------------
 */

static lw_status open_paths(context *c, lw_error *err)
{
    LW_CUDA_TRY(err, "choosing the device", cudaSetDevice(c->setup.device));
    if (c->paths)
        return LW_OK;
    lw_paths_setup setup;
    memset(&setup, 0, sizeof setup);
    setup.setup = &c->setup;
    setup.policy = c->policy;
    setup.multiprocessors = c->device.multiprocessors;
    setup.shared_bytes = c->device.shared_bytes;
    setup.budget = c->setup.refs ? c->budget / 2 : c->budget;
    setup.table = (const lw_score_table *)c->table.at;
    setup.refs = (const uint8_t *)c->refs.at;
    setup.ref_start = c->host_ref_start;
    return lw_paths_open(&c->paths, &setup, err);
}

/* Ends from the kernels of paths: with two-piece gaps, and of forward strands that end in the last column,
 * which these kernels find by fewer instructions and within bands. Local ones need the path for the query's
 * end. */
static lw_status ends_of_paths(context *c, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                               lw_error *err)
{
    if (c->setup.strands != LW_FORWARD)
        return lw_fallback_pair_ends(&c->setup, queries, targets, hits, err);
    if (c->setup.mode != LW_LOCAL) {
        LW_TRY(open_paths(c, err));
        return lw_paths_ends(c->paths, queries, targets, hits, err);
    }
    lw_path *paths = (lw_path *)malloc((size_t)(queries->n + 1) * sizeof *paths);
    if (!paths)
        return lw_fail_memory(err, (size_t)queries->n * sizeof *paths);
    lw_cigars unused = {NULL, 0, 0};
    lw_status status = open_paths(c, err);
    if (status == LW_OK)
        status = lw_paths_pairs(c->paths, queries, targets, hits, paths, &unused, err);
    free(paths);
    free(unused.op);
    return status;
}

static lw_status cuda_pair_ends(void *context_, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                                lw_error *err)
{
    context *c = (context *)context_;
    if (c->setup.scoring->two_piece || (c->setup.strands == LW_FORWARD && c->setup.mode != LW_LOCAL))
        return ends_of_paths(c, queries, targets, hits, err);
    LW_TRY(run_all(c, queries, targets, 1, 0, hits, NULL, err));
    return LW_OK;
}

static lw_status cuda_trace(void *context_, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                            const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    context *c = (context *)context_;
    LW_TRY(open_paths(c, err));
    return lw_paths_trace(c->paths, queries, targets, n, tasks, paths, cigars, err);
}

static lw_status cuda_pairs(void *context_, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                            lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    context *c = (context *)context_;
    LW_TRY(open_paths(c, err));
    return lw_paths_pairs(c->paths, queries, targets, hits, paths, cigars, err);
}

/* --- the rows ---------------------------------------------------------------------------------------------
 */

#define CUDA_ROW(variable, row_name, text, row_policy)                                                       \
    extern "C" const lw_align_backend variable = {                                                           \
        {row_name, text, row_policy, lw_backend_cuda_usable, lw_backend_cuda_rank},                          \
        LW_CUDA_LANES,                                                                                       \
        LW_CUDA_BATCH_LETTERS,                                                                               \
        cuda_open,                                                                                           \
        cuda_place,                                                                                          \
        cuda_pair_ends,                                                                                      \
        cuda_trace,                                                                                          \
        cuda_pairs,                                                                                          \
        cuda_close}

CUDA_ROW(lw_align_cuda_dpx, "cuda-dpx", "NVIDIA GPU, Hopper's add-and-select instructions, two scores a word",
         LW_CUDA_DPX);
CUDA_ROW(lw_align_cuda_half2, "cuda-half2", "NVIDIA GPU, half-precision arithmetic, two scores a word",
         LW_CUDA_HALF2);
CUDA_ROW(lw_align_cuda_int, "cuda-int", "NVIDIA GPU, 32-bit arithmetic, one score a word", LW_CUDA_INT);
