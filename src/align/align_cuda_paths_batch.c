/* align_cuda_paths_batch.c - the next batch: how many jobs it has, how they lie in bundles and strips, and
 * their letters in pinned memory. */
#include <string.h>

#include "align/align_band.h"
#include "align/align_cuda_paths.h"
#include "align/align_tuning.h"

/* A job as the caller sees it. */
typedef struct source {
    const uint8_t *query, *target; /* target NULL: in the references on the device, at `ref` */
    int64_t ref;
    int32_t qlen, tlen;
    bool reverse;
    int32_t query_len; /* of the whole query, for its reverse complement */
} source;

static source source_of(const lw_paths *p, int64_t i)
{
    source s;
    memset(&s, 0, sizeof s);
    if (!p->tasks) {
        s.query = p->queries->codes + p->queries->start[i];
        s.target = p->targets->codes + p->targets->start[i];
        lengths_of(p, i, &s.qlen, &s.tlen);
        s.query_len = s.qlen;
        return s;
    }
    const lw_trace_task *t = &p->tasks[i];
    s.query = p->queries->codes + p->queries->start[t->query];
    s.query_len = p->queries->len[t->query];
    s.qlen = t->qlen;
    s.tlen = t->tlen;
    s.reverse = t->reverse;
    if (p->targets)
        s.target = p->targets->codes + p->targets->start[t->target] + t->tbegin;
    else
        s.ref = p->by.ref_start[t->target] + t->tbegin;
    return s;
}

/* How many jobs from `first` on make a batch, and its shape. All are of one kind; the kernels' words follow
 * from the longest. */
void lw_paths_cut(const lw_paths *p, stage *s, int64_t first, int64_t n, int64_t most, int64_t bytes,
                  int32_t tile)
{
    const uint64_t *key = (const uint64_t *)p->key.at;
    const bool tiles = tile > 0;
    const uint64_t kind = key[job_number(p, first)] >> KEY_KIND;
    const double most_cells = tiles ? LW_PATH_TILES_CELLS : LW_PATH_BATCH_CELLS;
    /* sums in variables of their own: what is stored by every job's turn has to be read again by the next */
    double cells = 0;
    int64_t need = 0, jobs = 0, query_words = 0, target_words = 0, strips = 0;
    lw_path_arithmetic unused;
    job_size size;
    memset(&size, 0, sizeof size);
    size.qlen = -1;
    s->first = first;
    s->tile = tile;
    s->pieces = pieces_of(p);
    s->columns = s->rows = s->narrow = 0;
    s->halves = p->by.policy == LW_CUDA_DPX ? 2 : 1;
    for (; first + jobs < n && jobs < most; jobs++) {
        const int64_t i = job_number(p, first + jobs);
        int32_t qlen, tlen;
        lengths_of(p, i, &qlen, &tlen);
        const int32_t excess = excess_of(p, i);
        if (qlen != size.qlen || tlen != size.tlen || excess != size.excess) {
            if (key[i] >> KEY_KIND != kind)
                break;
            const int32_t columns = qlen > s->columns ? qlen : s->columns,
                          rows = tlen > s->rows ? tlen : s->rows;
            int32_t narrow = s->narrow;
            if (kind & 1) {
                const int64_t wide = 2 * (int64_t)excess + max64(tlen - qlen, qlen - tlen);
                narrow = (int32_t)(jobs > 0 ? min64(narrow, wide) : wide);
            }
            const bool fits = lw_paths_arithmetic_of(p, s->halves, !tiles, columns, rows, narrow, &unused);
            if (!fits && jobs > 0)
                break; /* those before have two scores a word, or penalties that fit, this one will not */
            if (!fits)
                s->halves = 1;
            s->columns = columns, s->rows = rows, s->narrow = narrow;
            lw_paths_size_of(p, tile, s->halves, qlen, tlen, excess, &size);
        }
        if (jobs > 0 && (need + size.bytes > bytes || cells > most_cells))
            break;
        need += size.bytes;
        cells += (double)qlen * tlen;
        query_words += size.query_words;
        target_words += size.target_words;
        strips += size.g.strips;
    }
    s->n = jobs;
    s->cells = cells;
    s->query_words = query_words;
    s->target_words = target_words;
    s->strips_at_most = strips;
}

/* Words of letters, and operations, before a bundle. */
typedef struct bundle_start {
    int64_t query, target, ops;
} bundle_start;

typedef struct pack_call {
    const lw_paths *p;
    const stage *s;
} pack_call;

enum { PACK_BUNDLES = 64 };

static void pack(uint32_t *__restrict__ to, const uint8_t *__restrict__ from, int64_t n, int bits)
{
    if (n <= 0)
        return;
    if (bits == 8) {
        to[(n - 1) / 4] = 0;
        memcpy(to, from, (size_t)n);
        return;
    }
    to[(n - 1) / 8] = 0;
    uint8_t *bytes = (uint8_t *)to;
    for (int64_t i = 0; i < n / 2; i++) { /* a loop that compilers turn into vectors */
        uint16_t two;
        memcpy(&two, from + 2 * i, 2);
        bytes[i] = (uint8_t)(two | two >> 4);
    }
    if (n % 2)
        bytes[n / 2] = from[n - 1];
}

/* Some bundles' jobs and their letters. */
static lw_status pack_bundles(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker;
    const pack_call *call = (const pack_call *)arg;
    const lw_paths *p = call->p;
    const stage *s = call->s;
    char *in = (char *)s->p_input.at;
    lw_path_job *jobs = (lw_path_job *)(in + s->in.jobs);
    int32_t *bundle_of = (int32_t *)(in + s->in.bundle_of);
    int64_t *spare_at = (int64_t *)(in + s->in.spare_at);
    const bundle_start *starts = (const bundle_start *)s->starts.at;
    const lw_bundle *bundles = (const lw_bundle *)(in + s->in.bundles);
    uint32_t *queries = (uint32_t *)(in + s->in.queries), *targets = (uint32_t *)(in + s->in.targets);
    const int bits = letter_bits(p), per_word = 32 / bits;
    const bool local_targets = !p->tasks || p->targets;
    const uint8_t *complement = p->by.setup->scoring->complement;
    uint8_t *turned = NULL;
    int64_t room = 0;
    int32_t least = INT32_MIN;
    job_size size;
    memset(&size, 0, sizeof size);
    size.qlen = -1;
    const int64_t to = min64((piece + 1) * PACK_BUNDLES, s->n_bundles);
    for (int64_t b = piece * PACK_BUNDLES; b < to; b++) {
        bundle_start at = starts[b];
        for (int32_t k = bundles[b].first; k < bundles[b].first + bundles[b].n; k++) {
            const int64_t i = job_number(p, s->first + k);
            const source job = source_of(p, i);
            const int32_t excess = excess_of(p, i);
            const uint8_t *query = job.query;
            if (job.qlen != size.qlen || job.tlen != size.tlen || excess != size.excess) {
                lw_paths_size_of(p, s->tile, s->halves, job.qlen, job.tlen, excess, &size);
                const int64_t beyond = size.g.band ? lw_band_beyond(p->by.setup->scoring, p->by.setup->mode,
                                                                    job.qlen, job.tlen, (int64_t)excess + 1)
                                                   : INT64_MIN;
                least = beyond < INT32_MIN ? INT32_MIN : (int32_t)beyond + 1;
            }
            jobs[k].query = at.query * per_word;
            jobs[k].target = local_targets ? at.target * per_word : job.ref;
            jobs[k].qlen = job.qlen;
            jobs[k].tlen = job.tlen;
            jobs[k].least = least;
            bundle_of[k] = (int32_t)b;
            spare_at[k] = at.ops;
            if (job.reverse) {
                if (job.qlen > room) {
                    free(turned);
                    room = 2 * (int64_t)job.qlen + 64;
                    turned = (uint8_t *)malloc((size_t)room);
                    if (!turned)
                        return lw_fail_memory(err, (size_t)room);
                }
                for (int32_t x = 0; x < job.qlen; x++)
                    turned[x] = complement[query[job.query_len - 1 - x]];
                query = turned;
            }
            pack(queries + at.query, query, job.qlen, bits);
            if (local_targets)
                pack(targets + at.target, job.target, job.tlen, bits);
            at.query += size.query_words;
            at.target += size.target_words;
            at.ops += size.ops;
        }
        if (memcmp(&at, &starts[b + 1], sizeof at) != 0) { /* what lay_out_bundles() counted */
            free(turned);
            return lw_fail(err, LW_E_INTERNAL, "letters of pairs lie elsewhere than was laid out");
        }
    }
    free(turned);
    return LW_OK;
}

/* The bundles, and the order of their strips, one after the other; where their parts of the scratch memory
 * and of the border lie, and in starts[] where their letters and operations begin, with one more behind the
 * last. */
static void lay_out_bundles(const lw_paths *p, stage *s, bundle_start *starts, lw_bundle *bundles,
                            lw_strip *strips)
{
    const int halves = s->halves, pieces = s->pieces;
    bundle_start next = {LW_MARGIN / 2, LW_MARGIN, 0};
    int32_t most_strips = 0;
    double cells = 0, computed = 0;
    s->n_bundles = s->n_strips = s->scratch_words = s->border_words = 0;
    job_size size;
    memset(&size, 0, sizeof size);
    size.qlen = -1;
    for (int64_t k = 0; k < s->n;) {
        lw_bundle *b = &bundles[s->n_bundles];
        memset(b, 0, sizeof *b);
        b->first = (int32_t)k;
        b->first_strip = (int32_t)s->n_strips;
        b->low = INT32_MAX, b->high = INT32_MIN;
        starts[s->n_bundles] = next;
        geometry shape;
        memset(&shape, 0, sizeof shape);
        int32_t here = 0, room = 1, rows = 0;
        for (; k < s->n && here < room; k++) {
            const int64_t i = job_number(p, s->first + k);
            const int32_t excess = excess_of(p, i);
            int32_t qlen, tlen;
            lengths_of(p, i, &qlen, &tlen);
            const bool other = qlen != size.qlen || tlen != size.tlen || excess != size.excess;
            if (other) {
                lw_paths_size_of(p, s->tile, halves, qlen, tlen, excess, &size);
                cells = lw_paths_computed_of(&size.g, qlen, tlen);
            }
            if (other || here == 0) {
                const geometry *g = &size.g;
                if (here == 0)
                    shape = *g;
                if (g->strips != shape.strips || (g->strips == 1 && !g->tiles && g->blocks != shape.blocks))
                    break;
                /* one band for all, which may take more lanes: all of the blocks' at most */
                int32_t lanes = g->lanes, low = b->low, high = b->high;
                if (g->band) {
                    low = g->low < low ? g->low : low;
                    high = g->high > high ? g->high : high;
                    lanes = g->tiles ? LW_WARP : (int32_t)min64(lw_band_lanes(low, high), g->blocks);
                }
                if (here > 0 && (lanes > LW_WARP || here >= LW_WARP / lanes * halves))
                    break;
                room = LW_WARP / lanes * halves;
                b->lanes = lanes, b->low = low, b->high = high;
            }
            computed += cells;
            next.query += size.query_words;
            next.target += size.target_words;
            next.ops += size.ops;
            rows = tlen > rows ? tlen : rows;
            here++;
        }
        b->n = here, b->rows = rows;
        shape.low = b->low, shape.high = b->high;
        b->band = shape.band;
        b->strips = (int32_t)shape.strips;
        b->blocks = (int32_t)(shape.strips > 1 || shape.tiles ? (int32_t)LW_WARP : shape.blocks);
        b->height = lw_paths_height_of(&shape, b->rows, s->tile);
        b->scratch = s->scratch_words;
        b->border = s->border_words;
        if (s->tile > 0) {
            s->scratch_words += round_up(lw_paths_checkpoint_words(p, b->strips, b->height, s->tile), 4);
        } else {
            s->scratch_words += lw_paths_direction_words(p, halves, b->strips, b->blocks, b->rows);
            s->border_words += round_up((int64_t)(b->strips - 1) * b->rows * (1 + pieces), 2);
        }
        most_strips = b->strips > most_strips ? b->strips : most_strips;
        for (int32_t i = 0; i < b->strips; i++) {
            strips[s->n_strips].bundle = (int32_t)s->n_bundles;
            strips[s->n_strips++].strip = i;
        }
        s->n_bundles++;
    }
    if (s->tile > 0 && s->narrow > 0) {
        /* a strip begins when its left neighbour has come 512 rows further: so few at a time of each job */
        int64_t place = 0;
        for (int32_t i = 0; i < most_strips; i++)
            for (int32_t k = 0; k < s->n_bundles; k++)
                if (i < bundles[k].strips)
                    strips[place].bundle = k, strips[place++].strip = i;
    }
    starts[s->n_bundles] = next;
    s->computed = computed;
    s->spare_ops = next.ops;
}

/* Bundles and strips; then, by all threads, the jobs in them and their letters. */
lw_status lw_paths_prepare(lw_paths *p, stage *s, lw_error *err)
{
    const int64_t query_words = s->query_words + LW_MARGIN, target_words = s->target_words + 2 * LW_MARGIN,
                  n_strips = s->strips_at_most;
    layout *in = &s->in;
    in->jobs = 0;
    in->bundles = round_up(in->jobs + s->n * (int64_t)sizeof(lw_path_job), 256);
    in->strips = round_up(in->bundles + s->n * (int64_t)sizeof(lw_bundle), 256);
    in->bundle_of = round_up(in->strips + n_strips * (int64_t)sizeof(lw_strip), 256);
    in->spare_at = round_up(in->bundle_of + s->n * (int64_t)sizeof(int32_t), 256);
    in->queries = round_up(in->spare_at + (s->n + 1) * (int64_t)sizeof(int64_t), 256);
    in->targets = round_up(in->queries + query_words * 4, 256);
    in->bytes = in->targets + target_words * 4;
    LW_TRY(area_pinned(&s->p_input, (size_t)in->bytes, err));
    LW_TRY(area_host(&s->starts, ((size_t)s->n + 1) * sizeof(bundle_start), err));
    char *at = (char *)s->p_input.at;
    bundle_start *starts = (bundle_start *)s->starts.at;
    lay_out_bundles(p, s, starts, (lw_bundle *)(at + in->bundles), (lw_strip *)(at + in->strips));
    const bundle_start end = starts[s->n_bundles];
    ((int64_t *)(at + in->spare_at))[s->n] = end.ops;
    /* kernels run past the ends of windows, where any letter will do */
    memset(at + in->targets, 0, LW_MARGIN * 4);
    memset(at + in->targets + end.target * 4, 0, LW_MARGIN * 4);
    pack_call call = {p, s};
    const int64_t tasks = (s->n_bundles + PACK_BUNDLES - 1) / PACK_BUNDLES;
    return lw_pool_for(tasks > 1 ? p->by.setup->pool : NULL, tasks, pack_bundles, &call, err);
}
