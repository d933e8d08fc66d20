/* align_cuda_paths.cu - the host side of paths on the GPU: which kernel, batches, copies. The kernels are in
 * align_cuda_fill.cu and align_cuda_walk.cu.
 *
 * Jobs go through in batches, several of them on their way at once: while the GPU works on one, threads of
 * the pool pack the letters of the next into pinned memory and unpack the paths of the one before. */
#include "align/align_paths.h"

#include <string.h>

#include "align/align_cuda_memory.h"
#include "align/align_tuning.h"
#include "common/warp.cuh"

enum { STAGES = 3 };

/* A job as the caller sees it. */
typedef struct source {
    const uint8_t *query, *target; /* target NULL: in the references on the device, at `ref` */
    int64_t ref;
    int32_t qlen, tlen;
    bool reverse;
    int32_t query_len; /* of the whole query, for its reverse complement */
} source;

/* Where a batch's parts begin in its input, in bytes. */
typedef struct layout {
    int64_t jobs, bundles, strips, bundle_of, spare_at, queries, targets, bytes;
} layout;

/* A batch on its way. */
typedef struct stage {
    cudaStream_t stream;
    area input, work, output; /* on the device */
    area p_input, p_output;   /* pinned */
    bool busy;
    int64_t first, n; /* jobs order[first .. first + n) */
    int64_t n_bundles, n_strips;
    int32_t columns, rows; /* the longest */
    int32_t tile;          /* rows and columns between checkpoints; 0: directions */
    int halves, pieces;
    layout in;
    int64_t query_words, target_words, strips_at_most;
    int64_t scratch_words, border_words, spare_ops;
    int64_t ops_copied;
} stage;

struct lw_paths {
    lw_paths_setup by;
    int n_stages;
    stage stages[STAGES];
    area order, spare, key; /* host */
    bool out_of_memory;
    /* of the call */
    const lw_seqs *queries, *targets;
    const lw_trace_task *tasks; /* NULL: pairs */
    const int32_t *sorted;      /* job numbers in the order of work; NULL: as they are */
    int ends_at;
    lw_hit *hits;
    lw_path *paths;
    lw_cigars *cigars;
    double ops_per_job;
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

lw_status lw_paths_open(lw_paths **out, const lw_paths_setup *setup, lw_error *err)
{
    lw_paths *p = (lw_paths *)calloc(1, sizeof *p);
    if (!p)
        return lw_fail_memory(err, sizeof *p);
    p->by = *setup;
    for (int i = 0; i < STAGES; i++) {
        cudaError_t code = cudaStreamCreateWithFlags(&p->stages[i].stream, cudaStreamNonBlocking);
        if (code != cudaSuccess) {
            lw_paths_close(p);
            return lw_cuda_fail(err, code, "creating a stream");
        }
    }
    *out = p;
    return LW_OK;
}

static void drop(stage *s)
{
    area *device[] = {&s->input, &s->work, &s->output}, *pinned[] = {&s->p_input, &s->p_output};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) {
        cudaFree(device[i]->at);
        *device[i] = area{NULL, 0};
    }
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        cudaFreeHost(pinned[i]->at);
        *pinned[i] = area{NULL, 0};
    }
}

void lw_paths_close(lw_paths *p)
{
    if (!p)
        return;
    for (int i = 0; i < STAGES; i++) {
        if (p->stages[i].stream) {
            cudaStreamSynchronize(p->stages[i].stream);
            cudaStreamDestroy(p->stages[i].stream);
        }
        drop(&p->stages[i]);
    }
    free(p->order.at), free(p->spare.at), free(p->key.at);
    free(p);
}

/* --- shapes -----------------------------------------------------------------------------------------------
 */

static source source_of(const lw_paths *p, int64_t i)
{
    source s;
    memset(&s, 0, sizeof s);
    if (!p->tasks) {
        s.query = p->queries->codes + p->queries->start[i];
        s.target = p->targets->codes + p->targets->start[i];
        s.qlen = s.query_len = p->queries->len[i];
        s.tlen = p->targets->len[i];
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

static inline void lengths_of(const lw_paths *p, int64_t i, int32_t *qlen, int32_t *tlen)
{
    *qlen = p->tasks ? p->tasks[i].qlen : p->queries->len[i];
    *tlen = p->tasks ? p->tasks[i].tlen : p->targets->len[i];
}

static int pieces_of(const lw_paths *p)
{
    return p->by.setup->scoring->two_piece ? 2 : 1;
}

/* Columns of a query: global alignments need one in front of it, down which the cost of a leading deletion
 * comes. */
static int64_t columns_of(const lw_paths *p, int64_t qlen)
{
    return max64(qlen + (p->by.setup->mode == LW_GLOBAL), 1);
}

static int64_t lanes_of(const lw_paths *p, int64_t qlen)
{
    return (columns_of(p, qlen) + LW_PATH_COLUMNS - 1) / LW_PATH_COLUMNS;
}

/* Letters to a lane of the sequence's packed form. */
static int letter_bits(const lw_paths *p)
{
    return p->by.setup->scoring->n_letters <= 16 ? 4 : 8;
}

static int64_t packed_words(const lw_paths *p, int64_t letters)
{
    return (letters * letter_bits(p) + 31) / 32;
}

/* Operations of a path at most: each run but deletions takes a query letter and between two others lies one
 * deletion at most; likewise for the target. */
static int64_t most_ops(int64_t qlen, int64_t tlen)
{
    return 2 * min64(qlen, tlen) + 3;
}

/* Numbers of one score: see align_cuda_fill.cu. Every H lies between -low and high: an insertion of the query
 * and, in global mode, a deletion of the target lead to any cell; E and F lie one opened gap below, and
 * before a maximum is taken one extension or matrix entry more. False: not every number fits. */
static bool arithmetic_of(const lw_paths *p, int halves, bool directions, int64_t qlen, int64_t tlen,
                          lw_path_arithmetic *out)
{
    const lw_scoring *s = p->by.setup->scoring;
    const lw_mode mode = p->by.setup->mode;
    const int pieces = pieces_of(p);
    const int64_t scale = directions ? 4 * pieces : 1, open1 = (int64_t)s->gap_open + s->gap_extend,
                  open2 = pieces == 2 ? (int64_t)s->gap_open2 + s->gap_extend2 : 0;
    const int64_t high = (s->max_score > 0 ? s->max_score : 0) * min64(qlen, tlen);
    int64_t low = 0;
    if (mode != LW_LOCAL)
        low = s->gap_open + qlen * s->gap_extend;
    if (mode == LW_GLOBAL)
        low += s->gap_open + tlen * s->gap_extend;
    const int64_t opened = max64(open1, open2),
                  extended = max64(s->gap_extend, pieces == 2 ? s->gap_extend2 : 0);
    const int64_t worst = s->min_score < 0 ? -(int64_t)s->min_score : 0;
    const int64_t below = low + opened + max64(extended, worst) + 2;
    const int64_t first_gap = lw_gap_cost(s, 1);
    memset(out, 0, sizeof *out);
    int64_t zero = 0, edge = -(INT64_C(1) << 30);
    if (halves == 2) {
        /* entries are signed bytes, and so is what keeps columns in front of the query below their E */
        if (s->max_score * scale + 7 > 127 || s->min_score * scale < -128)
            return false;
        if (mode == LW_GLOBAL && first_gap * scale > 128)
            return false;
        zero = (below - worst + (directions ? 0 : opened)) * scale;
        if (zero + (high + (s->max_score > 0 ? s->max_score : 0) + 2) * scale > 32767 ||
            below * scale > 32767)
            return false;
        edge = 0;
    } else if (directions && (below + high + LW_MAX_SCORE) * scale >= INT64_C(1) << 30) {
        return false;
    }
    const uint32_t twice = halves == 2 ? 0x10001u : 1;
    const int64_t tag_start = pieces == 2 ? 5 : 3, tag_diagonal = pieces == 2 ? 4 : 2;
    const int64_t open_tag[2] = {pieces == 2 ? 3 : 1, 2}, e_tag[2] = {pieces == 2 ? 3 : 1, 2},
                  f_tag[2] = {pieces == 2 ? 1 : 0, 0}, extends = pieces == 2 ? 4 : 2;
    const int64_t opens[2] = {open1, open2}, extend[2] = {s->gap_extend, pieces == 2 ? s->gap_extend2 : 0};
    const uint32_t tags = directions ? 1 : 0;
    out->scale = (int32_t)scale;
    out->zero = (uint32_t)zero * twice;
    out->tag = directions ? (int32_t)tag_diagonal : 0;
    out->pad = mode == LW_GLOBAL ? (int32_t)(-first_gap * scale) : 0;
    out->floor = mode == LW_LOCAL ? out->zero + (uint32_t)(tags * tag_start) * twice
                 : halves == 2    ? 0
                                  : (uint32_t)INT32_MIN;
    out->edge_h = mode == LW_GLOBAL ? (uint32_t)edge * twice : out->zero;
    for (int k = 0; k < pieces; k++) {
        /* in two halves the penalties are subtracted from both at once, as 32 bits */
        out->open[k] = (uint32_t)(-(opens[k] * scale) + tags * open_tag[k]) * twice;
        int64_t e = -extend[k] * scale + tags * (open_tag[k] + extends - e_tag[k]);
        int64_t f = -extend[k] * scale + tags * (open_tag[k] + extends - f_tag[k]);
        out->extend_e[k] = halves == 2 ? ((uint32_t)e & 0xffff) * twice : (uint32_t)e;
        out->extend_f[k] = halves == 2 ? ((uint32_t)f & 0xffff) * twice : (uint32_t)f;
        out->edge_f[k] = mode == LW_GLOBAL ? out->edge_h + (uint32_t)(tags * open_tag[k]) * twice
                                           : out->zero + out->open[k];
    }
    /* one piece: E's bit 2 becomes 4, F's 1 + 2 become 4 + 8; two: E's 4 becomes 8 and 16, F's 2 + 4 become
     * 16 + 32 and 32 + 64. The lower one of F's is always there. */
    out->one = 1;
    out->shift = pieces == 2 ? 256 : 16;
    out->weight_e[0] = 2;
    out->weight_e[1] = 4;
    out->weight_f[0] = pieces == 2 ? 8 : 4;
    out->weight_f[1] = 16;
    out->bias = -(pieces == 2 ? 0x30303030u : 0x44444444u);
    return true;
}

static int64_t direction_words(const lw_paths *p, int halves, int64_t strips, int64_t lanes, int64_t rows)
{
    return strips * lw_path_slots((int32_t)rows, (int32_t)lanes) * LW_WARP *
           lw_direction_words(halves, pieces_of(p));
}

static int64_t checkpoint_words(const lw_paths *p, int64_t strips, int64_t rows, int32_t tile)
{
    const int64_t total = strips * LW_PATH_STRIP;
    const int64_t pairs = (total / tile * rows + 3) / 4 * 4 + (rows - 1) / tile * total;
    return pairs * (1 + pieces_of(p)) + 2;
}

/* Whether a job keeps the directions of all its cells. */
static bool keeps_directions(const lw_paths *p, int64_t qlen, int64_t tlen)
{
    const int64_t lanes = lanes_of(p, qlen), strips = (lanes + LW_WARP - 1) / LW_WARP;
    lw_path_arithmetic unused;
    return direction_words(p, 2, strips, min64(lanes, LW_WARP), tlen) <= LW_PATH_MOST_WORDS &&
           arithmetic_of(p, 1, true, qlen, tlen, &unused);
}

/* --- the order of work ------------------------------------------------------------------------------------
 */

/* Jobs with equally many lanes and rows lie together: [1 tiles][15 lanes, at most][32 rows]. */
static uint64_t key_of(const lw_paths *p, int32_t qlen, int32_t tlen)
{
    const int64_t lanes = lanes_of(p, qlen);
    const bool tiles = !keeps_directions(p, qlen, tlen);
    const int64_t strips = (lanes + LW_WARP - 1) / LW_WARP;
    const int64_t wide = strips > 1 || tiles ? LW_WARP + min64(strips, INT16_MAX - LW_WARP) : lanes;
    return (uint64_t)tiles << 47 | (uint64_t)wide << 32 | (uint32_t)tlen;
}

typedef struct key_call {
    const lw_paths *p;
    uint64_t *key;
    int64_t n;
    bool unsorted[256];
} key_call;

enum { KEY_PIECE = 1 << 14 };

static lw_status make_keys(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker, (void)err;
    key_call *k = (key_call *)arg;
    const int64_t from = piece * KEY_PIECE, to = min64(from + KEY_PIECE, k->n);
    int32_t qlen = -1, tlen = -1;
    for (int64_t i = from; i < to; i++) {
        int32_t m, n;
        lengths_of(k->p, i, &m, &n);
        k->key[i] = i > from && m == qlen && n == tlen ? k->key[i - 1] : key_of(k->p, m, n);
        qlen = m, tlen = n;
    }
    return LW_OK;
}

/* Sets p->sorted: largest key first, equal keys in order. */
static lw_status sort_jobs(lw_paths *p, int64_t n, lw_error *err)
{
    LW_TRY(area_host(&p->key, (size_t)n * sizeof(uint64_t), err));
    key_call call;
    memset(&call, 0, sizeof call);
    call.p = p;
    call.key = (uint64_t *)p->key.at;
    call.n = n;
    const int64_t pieces = (n + KEY_PIECE - 1) / KEY_PIECE;
    LW_TRY(lw_pool_for(pieces > 1 ? p->by.setup->pool : NULL, pieces, make_keys, &call, err));
    const uint64_t *key = call.key;
    uint64_t differ = 0;
    bool sorted = true;
    for (int64_t i = 1; i < n; i++) {
        differ |= key[i] ^ key[0];
        sorted &= key[i] <= key[i - 1];
    }
    p->sorted = NULL;
    if (sorted)
        return LW_OK;
    LW_TRY(area_host(&p->order, (size_t)n * sizeof(int32_t), err));
    LW_TRY(area_host(&p->spare, (size_t)n * sizeof(int32_t) + (1 << 16) * sizeof(int64_t), err));
    int64_t *count = (int64_t *)p->spare.at;
    int32_t *order = (int32_t *)p->order.at, *other = (int32_t *)(count + (1 << 16));
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (int shift = 0; shift < 48; shift += 16) {
        if ((differ >> shift & 0xffff) == 0)
            continue;
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
    p->sorted = order;
    return LW_OK;
}

static int64_t job_number(const lw_paths *p, int64_t k)
{
    return p->sorted ? p->sorted[k] : k;
}

/* --- a batch ----------------------------------------------------------------------------------------------
 */

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* What a job takes, kept from one to the next: neighbours in the order of work are often alike. */
typedef struct job_size {
    int32_t qlen, tlen;
    int64_t lanes, strips, bytes, query_words, target_words, ops;
} job_size;

static void size_of(const lw_paths *p, int32_t tile, int halves, int32_t qlen, int32_t tlen, job_size *out)
{
    out->qlen = qlen, out->tlen = tlen;
    out->lanes = lanes_of(p, qlen);
    out->strips = (out->lanes + LW_WARP - 1) / LW_WARP;
    out->query_words = packed_words(p, qlen);
    out->target_words = p->tasks && !p->targets ? 0 : packed_words(p, tlen);
    out->ops = most_ops(qlen, tlen);
    const int64_t words = tile > 0
                              ? checkpoint_words(p, out->strips, tlen, tile)
                              : direction_words(p, halves, out->strips, min64(out->lanes, LW_WARP), tlen) /
                                    (out->strips > 1 ? 1 : LW_WARP / out->lanes);
    /* a strip's ends and best rows, shared among the jobs of a warp */
    const int64_t ends = out->strips * (LW_PATH_ENDS * (int64_t)sizeof(lw_path_end) + 2 * LW_PATH_STRIP * 4) /
                         (out->strips > 1 || tile > 0 ? 1 : LW_WARP / out->lanes);
    out->bytes =
        (4 * words + ends) / halves + 8 * out->ops + 256 + 4 * (out->query_words + out->target_words);
}

/* The smallest tiles with which a job's checkpoints fit into so many bytes; 0: none. The directions of a tile
 * must fit into the shared memory of a block. */
static int32_t tile_for(const lw_paths *p, int32_t qlen, int32_t tlen, int64_t bytes)
{
    job_size size;
    for (int32_t tile = LW_PATH_TILE; tile <= LW_PATH_STRIP; tile *= 2) {
        if (lw_tiles_shared_bytes(pieces_of(p), tile, p->by.setup->scoring->n_letters) > p->by.shared_bytes)
            break;
        size_of(p, tile, 1, qlen, tlen, &size);
        if (size.bytes <= bytes)
            return tile;
    }
    return 0;
}

/* How many jobs from `first` on make a batch, and its shape. All are of one kind; the kernels' words follow
 * from the longest. */
static void cut_batch(const lw_paths *p, stage *s, int64_t first, int64_t n, int64_t most, int64_t bytes,
                      int32_t tile)
{
    const uint64_t *key = (const uint64_t *)p->key.at;
    const bool tiles = tile > 0;
    const double most_cells = tiles ? LW_PATH_TILES_CELLS : LW_PATH_BATCH_CELLS;
    double cells = 0;
    int64_t need = 0;
    lw_path_arithmetic unused;
    job_size size;
    memset(&size, 0, sizeof size);
    size.qlen = -1;
    s->first = first;
    s->tile = tile;
    s->pieces = pieces_of(p);
    s->columns = s->rows = 0;
    s->halves = p->by.policy == LW_CUDA_DPX ? 2 : 1;
    s->query_words = s->target_words = s->strips_at_most = 0;
    for (s->n = 0; first + s->n < n && s->n < most; s->n++) {
        const int64_t i = job_number(p, first + s->n);
        int32_t qlen, tlen;
        lengths_of(p, i, &qlen, &tlen);
        if (qlen != size.qlen || tlen != size.tlen) {
            if ((bool)(key[i] >> 47) != tiles)
                break;
            const int32_t columns = qlen > s->columns ? qlen : s->columns,
                          rows = tlen > s->rows ? tlen : s->rows;
            if (s->halves == 2 && !arithmetic_of(p, 2, !tiles, columns, rows, &unused)) {
                if (s->n > 0)
                    break; /* those before have two scores a word, this one will not */
                s->halves = 1;
            }
            s->columns = columns, s->rows = rows;
            size_of(p, tile, s->halves, qlen, tlen, &size);
        }
        if (s->n > 0 && (need + size.bytes > bytes || cells > most_cells))
            break;
        need += size.bytes;
        cells += (double)qlen * tlen;
        s->query_words += size.query_words;
        s->target_words += size.target_words;
        s->strips_at_most += size.strips;
    }
}

typedef struct pack_call {
    const lw_paths *p;
    const stage *s;
} pack_call;

enum { PACK_BUNDLES = 64, UNPACK_JOBS = 1 << 11 };

/* Eight codes below 16 in 32 bits. */
static inline uint32_t pack8(uint64_t x)
{
    x = (x | x >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(x | x >> 16);
}

static void pack(uint32_t *to, const uint8_t *from, int64_t n, int bits)
{
    if (bits == 8) {
        if (n > 0)
            to[(n - 1) / 4] = 0;
        memcpy(to, from, (size_t)n);
        return;
    }
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t x;
        memcpy(&x, from + i, 8);
        *to++ = pack8(x);
    }
    if (i < n) {
        uint64_t x = 0;
        memcpy(&x, from + i, (size_t)(n - i));
        *to = pack8(x);
    }
}

/* The letters of some bundles' jobs. */
static lw_status pack_letters(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker;
    const pack_call *call = (const pack_call *)arg;
    const lw_paths *p = call->p;
    const stage *s = call->s;
    char *in = (char *)s->p_input.at;
    const lw_path_job *jobs = (const lw_path_job *)(in + s->in.jobs);
    const lw_bundle *bundles = (const lw_bundle *)(in + s->in.bundles);
    uint32_t *queries = (uint32_t *)(in + s->in.queries), *targets = (uint32_t *)(in + s->in.targets);
    const int bits = letter_bits(p);
    const uint8_t *complement = p->by.setup->scoring->complement;
    uint8_t *turned = NULL;
    int64_t room = 0;
    lw_status status = LW_OK;
    const int64_t to = min64((piece + 1) * PACK_BUNDLES, s->n_bundles);
    for (int64_t b = piece * PACK_BUNDLES; b < to; b++)
        for (int32_t k = bundles[b].first; k < bundles[b].first + bundles[b].n; k++) {
            const source job = source_of(p, job_number(p, s->first + k));
            const uint8_t *query = job.query;
            if (job.reverse) {
                if (job.qlen > room) {
                    free(turned);
                    room = 2 * (int64_t)job.qlen + 64;
                    turned = (uint8_t *)malloc((size_t)room);
                    if (!turned)
                        return lw_fail_memory(err, (size_t)room);
                }
                for (int32_t i = 0; i < job.qlen; i++)
                    turned[i] = complement[query[job.query_len - 1 - i]];
                query = turned;
            }
            pack(queries + jobs[k].query * bits / 32, query, job.qlen, bits);
            if (job.target)
                pack(targets + jobs[k].target * bits / 32, job.target, job.tlen, bits);
        }
    free(turned);
    return status;
}

/* Bundles, strips, places; then the letters. */
static lw_status prepare(lw_paths *p, stage *s, lw_error *err)
{
    const int bits = letter_bits(p), per_word = 32 / bits, halves = s->halves, pieces = s->pieces;
    const bool local_targets = !p->tasks || p->targets;
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
    char *at = (char *)s->p_input.at;
    lw_path_job *jobs = (lw_path_job *)(at + in->jobs);
    lw_bundle *bundles = (lw_bundle *)(at + in->bundles);
    lw_strip *strips = (lw_strip *)(at + in->strips);
    int32_t *bundle_of = (int32_t *)(at + in->bundle_of);
    int64_t *spare_at = (int64_t *)(at + in->spare_at);
    int64_t query_at = LW_MARGIN / 2, target_at = LW_MARGIN;
    s->n_bundles = s->n_strips = s->scratch_words = s->border_words = s->spare_ops = 0;
    job_size size;
    memset(&size, 0, sizeof size);
    size.qlen = -1;
    for (int64_t k = 0; k < s->n;) {
        lw_bundle *b = &bundles[s->n_bundles];
        memset(b, 0, sizeof *b);
        int32_t qlen, tlen;
        lengths_of(p, job_number(p, s->first + k), &qlen, &tlen);
        if (qlen != size.qlen || tlen != size.tlen)
            size_of(p, s->tile, halves, qlen, tlen, &size);
        const int64_t lanes = size.lanes, strips_here = size.strips;
        b->strips = (int32_t)strips_here;
        b->lanes = strips_here > 1 || s->tile > 0 ? LW_WARP : (int32_t)lanes;
        b->first = (int32_t)k;
        b->first_strip = (int32_t)s->n_strips;
        const int32_t room = LW_WARP / b->lanes * halves;
        for (; k < s->n && b->n < room; k++) {
            const int64_t i = job_number(p, s->first + k);
            lengths_of(p, i, &qlen, &tlen);
            if (qlen != size.qlen || tlen != size.tlen)
                size_of(p, s->tile, halves, qlen, tlen, &size);
            if (size.strips != strips_here || (strips_here == 1 && s->tile == 0 && size.lanes != lanes))
                break;
            jobs[k].query = query_at * per_word;
            jobs[k].target = local_targets ? target_at * per_word : source_of(p, i).ref;
            jobs[k].qlen = qlen;
            jobs[k].tlen = tlen;
            query_at += size.query_words;
            target_at += size.target_words;
            bundle_of[k] = (int32_t)s->n_bundles;
            spare_at[k] = s->spare_ops;
            s->spare_ops += size.ops;
            b->rows = tlen > b->rows ? tlen : b->rows;
            b->n++;
        }
        b->scratch = s->scratch_words;
        b->border = s->border_words;
        if (s->tile > 0) {
            s->scratch_words += round_up(checkpoint_words(p, b->strips, b->rows, s->tile), 4);
        } else {
            s->scratch_words += direction_words(p, halves, b->strips, b->lanes, b->rows);
            s->border_words += round_up((int64_t)(b->strips - 1) * b->rows * (1 + pieces), 2);
        }
        for (int32_t i = 0; i < b->strips; i++) {
            strips[s->n_strips].bundle = (int32_t)s->n_bundles;
            strips[s->n_strips++].strip = i;
        }
        s->n_bundles++;
    }
    spare_at[s->n] = s->spare_ops;
    /* kernels run past the ends of windows, where any letter will do */
    memset(at + in->targets, 0, LW_MARGIN * 4);
    memset(at + in->targets + target_at * 4, 0, LW_MARGIN * 4);
    pack_call call = {p, s};
    const int64_t tasks = (s->n_bundles + PACK_BUNDLES - 1) / PACK_BUNDLES;
    return lw_pool_for(tasks > 1 ? p->by.setup->pool : NULL, tasks, pack_letters, &call, err);
}

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
                    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return LW_OK;
}

/* Copies the batch to the device, computes, and copies back what its paths will probably take. */
static lw_status launch(lw_paths *p, stage *s, lw_error *err)
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
                  border = round_up(scratch + s->scratch_words * 4, 256), work = border + s->border_words * 4;
    const int64_t results = 256, ops = round_up(results + s->n * (int64_t)sizeof(lw_path_result), 256);
    LW_TRY(area_device(&s->input, (size_t)s->in.bytes, &p->out_of_memory, err));
    LW_TRY(area_device(&s->work, (size_t)work, &p->out_of_memory, err));
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
    while (1 << a.fill.tile_bits < s->tile)
        a.fill.tile_bits++;
    if (!arithmetic_of(p, s->halves, s->tile == 0, s->columns, s->rows, &a.fill.by))
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
    if (s->tile > 0) {
        const int64_t bytes = lw_tiles_shared_bytes(s->pieces, s->tile, scoring->n_letters);
        LW_TRY(allow_shared(p, (const void *)lw_tiles_kernels[s->pieces - 1], bytes, err));
        LW_CUDA_TRY(err, "tracing",
                    lw_launch(lw_tiles_kernels[s->pieces - 1], dim3((unsigned)s->n), (unsigned)s->tile / 4,
                              (size_t)bytes, s->stream, a));
    } else {
        a.job_threads = s->rows >= LW_PATH_WALK_ROWS ? LW_WARP : 1;
        const int64_t threads = s->n * a.job_threads;
        LW_CUDA_TRY(err, "tracing",
                    lw_launch(lw_walk_kernels[s->pieces - 1], dim3((unsigned)((threads + 127) / 128)), 128, 0,
                              s->stream, a));
    }
    LW_CUDA_TRY(err, "copying paths",
                cudaMemcpyAsync(s->p_output.at, s->output.at, (size_t)(ops + s->ops_copied * 4),
                                cudaMemcpyDeviceToHost, s->stream));
    s->busy = true;
    return LW_OK;
}

typedef struct unpack_call {
    lw_paths *p;
    const stage *s;
    const lw_path_result *results;
    const uint32_t *ops;
    int64_t base, n_ops;
    int64_t pieces;
} unpack_call;

static lw_status unpack(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker;
    const unpack_call *call = (const unpack_call *)arg;
    lw_paths *p = call->p;
    const stage *s = call->s;
    const int64_t from = call->n_ops * piece / call->pieces, until = call->n_ops * (piece + 1) / call->pieces;
    memcpy(p->cigars->op + call->base + from, call->ops + from, (size_t)(until - from) * 4);
    const int64_t to = min64((piece + 1) * UNPACK_JOBS, s->n);
    const int32_t least = p->by.setup->min_score;
    for (int64_t k = piece * UNPACK_JOBS; k < to; k++) {
        const int64_t i = job_number(p, s->first + k);
        const lw_path_result *r = &call->results[k];
        lw_path path = {r->qstart, r->tstart, call->base + r->ops, r->n_ops};
        if (p->tasks) {
            if (r->score != p->tasks[i].score)
                return lw_fail(err, LW_E_INTERNAL, "a traced alignment scores %d, its search said %d",
                               r->score, p->tasks[i].score);
            path.tstart += p->tasks[i].tbegin;
        } else {
            lw_hit hit;
            memset(&hit, 0, sizeof hit);
            const bool none = p->by.setup->mode == LW_LOCAL && r->score == 0;
            hit.target = none || r->score < least ? -1 : (int32_t)i;
            if (hit.target >= 0) {
                hit.score = r->score;
                hit.tend = r->tend;
                hit.qend = r->qend;
            } else {
                path.qstart = path.tstart = path.n_cigar = 0;
            }
            p->hits[i] = hit;
        }
        p->paths[i] = path;
    }
    return LW_OK;
}

/* Waits for a stage and hands out its paths. */
static lw_status finish(lw_paths *p, stage *s, lw_error *err)
{
    if (!s->busy)
        return LW_OK;
    s->busy = false;
    LW_CUDA_TRY(err, "tracing", cudaStreamSynchronize(s->stream));
    const int64_t results = 256, ops = round_up(results + s->n * (int64_t)sizeof(lw_path_result), 256);
    const int64_t used = (int64_t) * (unsigned long long *)s->p_output.at;
    if (used > s->ops_copied) { /* the rest, and its start again if the memory moves */
        s->ops_copied = used;
        LW_TRY(area_pinned(&s->p_output, (size_t)(ops + used * 4), err));
        LW_CUDA_TRY(err, "copying paths",
                    cudaMemcpyAsync(s->p_output.at, s->output.at, (size_t)(ops + used * 4),
                                    cudaMemcpyDeviceToHost, s->stream));
        LW_CUDA_TRY(err, "copying paths", cudaStreamSynchronize(s->stream));
    }
    p->ops_per_job = (double)used / (double)s->n;
    LW_TRY(lw_cigars_reserve(p->cigars, used, err));
    unpack_call call = {p,
                        s,
                        (const lw_path_result *)((const char *)s->p_output.at + results),
                        (const uint32_t *)((const char *)s->p_output.at + ops),
                        p->cigars->n,
                        used,
                        (s->n + UNPACK_JOBS - 1) / UNPACK_JOBS};
    LW_TRY(lw_pool_for(call.pieces > 1 ? p->by.setup->pool : NULL, call.pieces, unpack, &call, err));
    p->cigars->n += used;
    return LW_OK;
}

/* Runs all jobs of the call. */
static lw_status run_jobs(lw_paths *p, int64_t n, lw_error *err)
{
    lw_status status = LW_OK;
    LW_TRY(sort_jobs(p, n, err));
    p->ops_per_job = 8;
    int64_t most = LW_PATH_BATCH_JOBS;
    int n_stages = STAGES, turn = 0;
    for (int64_t first = 0; first < n && status == LW_OK;) {
        if (lw_stopped(p->by.setup->host)) {
            status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
            break;
        }
        stage *s = &p->stages[turn % n_stages];
        status = finish(p, s, err);
        if (status != LW_OK)
            break;
        lw_error local;
        memset(&local, 0, sizeof local);
        p->out_of_memory = false;
        const int64_t share = p->by.budget / n_stages / 8 * 7, head = job_number(p, first);
        const bool tiles = ((const uint64_t *)p->key.at)[head] >> 47;
        int32_t qlen, tlen, tile = 0;
        lengths_of(p, head, &qlen, &tlen);
        if (tiles)
            tile = tile_for(p, qlen, tlen, share);
        if (tiles && tile == 0) {
            if (n_stages == 1) {
                status = lw_fail(
                    err, LW_E_DEVICE,
                    "the path of %d letters against %d takes more than %ld MB of GPU memory: raise its "
                    "limit or use --backend cpu",
                    qlen, tlen, (long)(share >> 20));
                break;
            }
            /* one batch at a time, with all the memory */
            for (int i = 0; i < STAGES && status == LW_OK; i++) {
                status = finish(p, &p->stages[i], err);
                drop(&p->stages[i]);
            }
            n_stages = 1, turn = 0;
            continue;
        }
        cut_batch(p, s, first, n, most, share, tile);
        status = prepare(p, s, &local);
        if (status == LW_OK)
            status = launch(p, s, &local);
        if (status == LW_E_DEVICE && p->out_of_memory && (s->n > 1 || n_stages > 1)) {
            /* fewer jobs at a time; in the end one stage alone */
            status = LW_OK;
            cudaStreamSynchronize(s->stream);
            for (int i = 0; i < STAGES && status == LW_OK; i++) {
                status = finish(p, &p->stages[i], err);
                drop(&p->stages[i]);
            }
            if (s->n > 1)
                most = s->n / 2;
            else
                n_stages = 1, turn = 0;
            continue;
        }
        if (status != LW_OK) {
            lw_fail(err, status, "%s", local.message);
            break;
        }
        first += s->n;
        turn++;
    }
    for (int i = 0; i < STAGES; i++) {
        stage *s = &p->stages[(turn + i) % STAGES];
        if (status == LW_OK) {
            status = finish(p, s, err);
        } else if (s->busy) {
            cudaStreamSynchronize(s->stream);
            s->busy = false;
        }
    }
    return status;
}

lw_status lw_paths_trace(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                         const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    p->queries = queries;
    p->targets = targets;
    p->tasks = tasks;
    p->ends_at = LW_END_CORNER;
    p->hits = NULL;
    p->paths = paths;
    p->cigars = cigars;
    return n > 0 ? run_jobs(p, n, err) : LW_OK;
}

lw_status lw_paths_pairs(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                         lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    const lw_mode mode = p->by.setup->mode;
    p->queries = queries;
    p->targets = targets;
    p->tasks = NULL;
    p->ends_at = mode == LW_LOCAL ? LW_END_ANYWHERE : mode == LW_GLOBAL ? LW_END_CORNER : LW_END_LAST_COLUMN;
    p->hits = hits;
    p->paths = paths;
    p->cigars = cigars;
    return queries->n > 0 ? run_jobs(p, queries->n, err) : LW_OK;
}
