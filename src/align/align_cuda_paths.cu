/* align_cuda_paths.cu - the host side of paths on the GPU: which kernel, batches, copies. The kernels are in
 * align_cuda_fill.cu and align_cuda_walk.cu.
 *
 * Jobs go through in batches, several of them on their way at once: while the GPU works on one, threads of
 * the pool pack the letters of the next into pinned memory and unpack the paths of the one before.
 *
 * Global and semiglobal pairs are first computed in a band that will probably hold them; what their scores do
 * not prove (align_band.h) is computed once more, in the band that they do prove or in full. How wide the
 * first band is, is learnt from the pairs before, or from the beginnings of some pairs of the call. */
#include "align/align_paths.h"

#include <string.h>

#include "align/align_band.h"
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
    int32_t narrow;        /* diagonals of the narrowest band, less one; 0: none has a band */
    int halves, pieces;
    layout in;
    int64_t query_words, target_words, strips_at_most;
    int64_t scratch_words, border_words, spare_ops;
    int64_t ops_copied;
    double computed; /* cells */
} stage;

struct lw_paths {
    lw_paths_setup by;
    int n_stages;
    stage stages[STAGES];
    area order, spare, key; /* host */
    area excess, again;     /* likewise: of each job's band, -1 for none; jobs to be done once more */
    double computed;        /* cells of the last call's batches */
    int64_t n_again, banded, unproved;         /* of the last call: jobs done in bands, and what these left */
    int64_t needs[LW_BAND_PARTS + 1], n_needs; /* excesses that scores proved, in parts of the length */
    bool out_of_memory;
    /* of the call */
    const lw_seqs *queries, *targets;
    const lw_trace_task *tasks; /* NULL: pairs */
    const int32_t *sorted;      /* job numbers in the order of work; NULL: as they are */
    int32_t roomy; /* sequences of so many letters have scores that fit one a word, with tags, in any band */
    int32_t cut;   /* letters that are looked at to learn how alike pairs are; 0: all */
    int32_t guess; /* parts of the length that are tried as excess; -1: none */
    double fails[LW_BAND_PARTS + 1]; /* how often so many parts will prove nothing */
    int ends_at;
    bool scores; /* no paths */
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
    free(p->order.at), free(p->spare.at), free(p->key.at), free(p->excess.at), free(p->again.at);
    free(p);
}

/* --- shapes -----------------------------------------------------------------------------------------------
 */

static inline void lengths_of(const lw_paths *p, int64_t i, int32_t *qlen, int32_t *tlen)
{
    *qlen = p->tasks ? p->tasks[i].qlen : p->queries->len[i];
    *tlen = p->tasks ? p->tasks[i].tlen : p->targets->len[i];
    if (p->cut > 0) {
        const int32_t longer = *tlen - *qlen;
        *qlen = (int32_t)min64(*qlen, p->cut + max64(0, -longer));
        *tlen = (int32_t)min64(*tlen, p->cut + max64(0, longer));
    }
}

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
 * before a maximum is taken one extension or matrix entry more. In a band of at least `narrow` + 1 diagonals
 * (0: none) gaps of that length lead from one border to the other and back, so that there are
 * (qlen + tlen) / narrow of them and at most five more: two where the path begins, a rest of one and of the
 * other kind, and one through the cells that are computed outside the band. What comes from outside must be
 * less than any of these even with a matrix entry more. False: not every number fits. */
static bool arithmetic_of(const lw_paths *p, int halves, bool directions, int64_t qlen, int64_t tlen,
                          int32_t narrow, lw_path_arithmetic *out)
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
    if (narrow > 0)
        low = (qlen + tlen) * s->gap_extend + ((qlen + tlen) / narrow + 5) * s->gap_open +
              max64(s->max_score, 0) + 1;
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
    } else if ((directions || narrow > 0) && (below + high + LW_MAX_SCORE) * scale >= INT64_C(1) << 30) {
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
    out->outside_h = (uint32_t)edge * twice;
    for (int k = 0; k < pieces; k++) {
        /* in two halves the penalties are subtracted from both at once, as 32 bits */
        out->open[k] = (uint32_t)(-(opens[k] * scale) + tags * open_tag[k]) * twice;
        int64_t e = -extend[k] * scale + tags * (open_tag[k] + extends - e_tag[k]);
        int64_t f = -extend[k] * scale + tags * (open_tag[k] + extends - f_tag[k]);
        out->extend_e[k] = halves == 2 ? ((uint32_t)e & 0xffff) * twice : (uint32_t)e;
        out->extend_f[k] = halves == 2 ? ((uint32_t)f & 0xffff) * twice : (uint32_t)f;
        out->edge_f[k] = mode == LW_GLOBAL ? out->edge_h + (uint32_t)(tags * open_tag[k]) * twice
                                           : out->zero + out->open[k];
        out->outside_f[k] = out->outside_h + (uint32_t)(tags * open_tag[k]) * twice;
    }
    /* one piece: E's bit 2 becomes 4, F's 1 + 2 become 4 + 8; two: E's 4 becomes 8 and 16, F's 2 + 4 become
     * 16 + 32 and 32 + 64. The lower one of F's is always there. */
    out->one = 1;
    out->minus = UINT32_MAX;
    out->shift = pieces == 2 ? 256 : 16;
    out->weight_e[0] = 2;
    out->weight_e[1] = 4;
    out->weight_f[0] = pieces == 2 ? 8 : 4;
    out->weight_f[1] = 16;
    out->bias = -(pieces == 2 ? 0x30303030u : 0x44444444u);
    return true;
}

static int64_t direction_words(const lw_paths *p, int halves, int64_t strips, int64_t blocks, int64_t rows)
{
    return strips * lw_path_slots((int32_t)rows, (int32_t)blocks) * LW_WARP *
           lw_direction_words(halves, pieces_of(p));
}

static int64_t checkpoint_words(const lw_paths *p, int64_t strips, int64_t height, int32_t tile)
{
    const int64_t total = strips * LW_PATH_STRIP, columns = p->scores ? (int64_t)LW_PATH_TURNS : total / tile;
    const int64_t pairs = (columns * height + 3) / 4 * 4 + (p->scores ? 0 : (height - 1) / tile * total);
    return pairs * (1 + pieces_of(p)) + 2;
}

/* Whether a job keeps the directions of all its cells. Without paths long ones run as over checkpoints, which
 * takes fewer instructions. */
static bool keeps_directions(const lw_paths *p, int64_t qlen, int64_t tlen)
{
    const int64_t lanes = lanes_of(p, qlen), strips = (lanes + LW_WARP - 1) / LW_WARP;
    lw_path_arithmetic unused;
    if (p->scores && strips > 1)
        return false;
    return direction_words(p, 2, strips, min64(lanes, LW_WARP), tlen) <= LW_PATH_MOST_WORDS &&
           (max64(qlen, tlen) <= p->roomy || arithmetic_of(p, 1, true, qlen, tlen, 0, &unused));
}

static int32_t most_roomy(const lw_paths *p)
{
    lw_path_arithmetic unused;
    int32_t low = 0, high = 1 << 26;
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (arithmetic_of(p, 1, true, middle, middle, LW_BAND_LEAST, &unused))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* How a job lies in its matrix. */
typedef struct geometry {
    int64_t blocks, strips; /* blocks of columns of the query; strips of the kernel */
    bool tiles, band;
    int32_t lanes;     /* of a group */
    int32_t low, high; /* the band, as in lw_bundle */
} geometry;

/* The rows of a strip over checkpoints at most. */
static int32_t height_of(const geometry *g, int64_t rows, int32_t tile)
{
    return (int32_t)(g->band ? min64(rows, LW_PATH_STRIP + (int64_t)g->high - g->low + 1 + tile) : rows);
}

/* The band of some excess, if the kernels can do it: by lanes that go on where it is narrow, by the rows of
 * strips over checkpoints. Else, and for excess -1, all cells. */
static void geometry_of(const lw_paths *p, int32_t qlen, int32_t tlen, int32_t excess, geometry *out)
{
    geometry g;
    memset(&g, 0, sizeof g);
    g.blocks = lanes_of(p, qlen);
    g.strips = (g.blocks + LW_WARP - 1) / LW_WARP;
    g.tiles = !keeps_directions(p, qlen, tlen);
    g.lanes = (int32_t)(g.strips > 1 || g.tiles ? (int32_t)LW_WARP : g.blocks);
    *out = g;
    if (excess < 0)
        return;
    const int64_t longer = (int64_t)tlen - qlen, narrow = 2 * (int64_t)excess + max64(longer, -longer);
    const int64_t pad = g.blocks * LW_PATH_COLUMNS - qlen;
    const int64_t low = min64(longer, 0) - excess, high = max64(longer, 0) + excess;
    const bool roomy = qlen <= p->roomy && tlen <= p->roomy;
    lw_path_arithmetic unused;
    g.band = true;
    g.low = (int32_t)(low - pad), g.high = (int32_t)(high - pad);
    g.lanes = lw_band_lanes(g.low, g.high);
    if (g.lanes <= LW_WARP && g.lanes < g.blocks &&
        direction_words(p, 2, 1, g.blocks, tlen) <= LW_PATH_MOST_WORDS &&
        (roomy || arithmetic_of(p, 1, true, qlen, tlen, (int32_t)narrow, &unused))) {
        g.strips = 1;
        g.tiles = false;
        *out = g;
    } else if (g.tiles && (roomy || arithmetic_of(p, 1, false, qlen, tlen, (int32_t)narrow, &unused))) {
        const int64_t front = g.strips * LW_PATH_STRIP - qlen;
        g.low = (int32_t)(low - front), g.high = (int32_t)(high - front);
        g.lanes = LW_WARP;
        *out = g;
    }
}

/* Rows that a warp computes for a job, or for two with words of two scores. */
static double work_of(const geometry *g, int64_t rows)
{
    if (g->tiles || g->strips > 1)
        return (double)g->strips * (height_of(g, rows, LW_PATH_TILE) + LW_PATH_SIDE * LW_WARP);
    return (double)(rows + LW_PATH_SIDE * g->blocks) / (LW_WARP / g->lanes);
}

/* Cells that the kernels compute for a job. */
static double computed_of(const geometry *g, int64_t qlen, int64_t tlen)
{
    const double all = (double)qlen * (double)tlen;
    const double some = g->tiles
                            ? (double)g->strips * LW_PATH_STRIP * height_of(g, tlen, LW_PATH_TILE)
                            : (double)g->lanes * LW_PATH_COLUMNS * (double)(tlen + LW_PATH_SIDE * g->blocks);
    return g->band && some < all ? some : all;
}

/* The excess to try with a job, or the one that is proved (fails = 0), where it saves more than it costs. */
static int32_t worth_trying(const lw_paths *p, int32_t qlen, int32_t tlen, int64_t excess, double fails)
{
    const int64_t shorter = min64(qlen, tlen);
    geometry all, band;
    if (excess < LW_BAND_LEAST)
        excess = LW_BAND_LEAST;
    if (shorter < LW_BAND_SHORTEST || excess > shorter / 2)
        return -1;
    geometry_of(p, qlen, tlen, -1, &all);
    geometry_of(p, qlen, tlen, (int32_t)excess, &band);
    const double whole = work_of(&all, tlen);
    return band.band && work_of(&band, tlen) + fails * whole < LW_BAND_SAVES * whole ? (int32_t)excess : -1;
}

static int32_t excess_of(const lw_paths *p, int64_t i)
{
    return p->excess.at ? ((const int32_t *)p->excess.at)[i] : -1;
}

/* --- the order of work ------------------------------------------------------------------------------------
 */

/* Jobs with equally many columns and rows lie together:
 * [1 tiles][1 band][14 lanes, strips or blocks, at most][32 rows]. */
enum { KEY_KIND = 46 };

static uint64_t key_of(const lw_paths *p, int32_t qlen, int32_t tlen, int32_t excess)
{
    geometry g;
    geometry_of(p, qlen, tlen, excess, &g);
    const int64_t most = (1 << 14) - 1;
    const int64_t wide = g.strips > 1 || g.tiles ? LW_WARP + min64(g.strips, most - LW_WARP)
                         : g.band                ? min64(g.blocks, most)
                                                 : g.lanes;
    return (uint64_t)g.tiles << 47 | (uint64_t)g.band << KEY_KIND | (uint64_t)wide << 32 | (uint32_t)tlen;
}

typedef struct key_call {
    const lw_paths *p;
    const int32_t *list;
    uint64_t *key;
    int32_t *excess; /* to be chosen; NULL: as they are */
    int64_t n;
} key_call;

enum { KEY_PIECE = 1 << 14 };

static lw_status make_keys(void *arg, int64_t piece, int worker, lw_error *err)
{
    (void)worker, (void)err;
    key_call *k = (key_call *)arg;
    const int64_t from = piece * KEY_PIECE, to = min64(from + KEY_PIECE, k->n);
    int32_t qlen = -1, tlen = -1, excess = -1;
    uint64_t key = 0;
    for (int64_t x = from; x < to; x++) {
        const int64_t i = k->list ? k->list[x] : x;
        int32_t m, n, e = excess_of(k->p, i);
        lengths_of(k->p, i, &m, &n);
        const bool same = x > from && m == qlen && n == tlen;
        if (k->excess) {
            const int64_t shorter = min64(m, n);
            e = same ? excess : -1;
            /* somewhat less where that is the widest that the lanes of a warp hold */
            for (int32_t part = k->p->guess; !same && e < 0 && part > 0 && part + 3 > k->p->guess; part--)
                e = worth_trying(k->p, m, n, shorter * part / LW_BAND_PARTS, k->p->fails[part]);
            k->excess[i] = e;
        }
        if (!same || e != excess)
            key = key_of(k->p, m, n, e);
        k->key[i] = key;
        qlen = m, tlen = n, excess = e;
    }
    return LW_OK;
}

/* Sets p->sorted, the jobs of `list` (NULL: all n): largest key first, equal keys in order. */
static lw_status sort_jobs(lw_paths *p, const int32_t *list, int64_t n, bool choose, lw_error *err)
{
    const int64_t all = p->tasks ? n : p->queries->n;
    LW_TRY(area_host(&p->key, (size_t)all * sizeof(uint64_t), err));
    key_call call;
    memset(&call, 0, sizeof call);
    call.p = p;
    call.list = list;
    call.key = (uint64_t *)p->key.at;
    call.excess = choose ? (int32_t *)p->excess.at : NULL;
    call.n = n;
    const int64_t pieces = (n + KEY_PIECE - 1) / KEY_PIECE;
    LW_TRY(lw_pool_for(pieces > 1 ? p->by.setup->pool : NULL, pieces, make_keys, &call, err));
    const uint64_t *key = call.key;
    uint64_t differ = 0;
    bool sorted = true;
    uint64_t before = n > 0 ? key[list ? list[0] : 0] : 0;
    for (int64_t x = 1; x < n; x++) {
        const uint64_t here = key[list ? list[x] : x];
        differ |= here ^ before;
        sorted &= here <= before;
        before = here;
    }
    p->sorted = list;
    if (sorted)
        return LW_OK;
    LW_TRY(area_host(&p->order, (size_t)n * sizeof(int32_t), err));
    LW_TRY(area_host(&p->spare, (size_t)n * sizeof(int32_t) + (1 << 16) * sizeof(int64_t), err));
    int64_t *count = (int64_t *)p->spare.at;
    int32_t *order = (int32_t *)p->order.at, *other = (int32_t *)(count + (1 << 16));
    for (int64_t i = 0; i < n; i++)
        order[i] = list ? list[i] : (int32_t)i;
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
    int32_t qlen, tlen, excess;
    geometry g;
    int64_t bytes, query_words, target_words, ops;
} job_size;

static void size_of(const lw_paths *p, int32_t tile, int halves, int32_t qlen, int32_t tlen, int32_t excess,
                    job_size *out)
{
    geometry *g = &out->g;
    out->qlen = qlen, out->tlen = tlen, out->excess = excess;
    geometry_of(p, qlen, tlen, excess, g);
    out->query_words = packed_words(p, qlen);
    out->target_words = p->tasks && !p->targets ? 0 : packed_words(p, tlen);
    out->ops = p->scores ? 0 : most_ops(qlen, tlen);
    const int64_t blocks = g->strips > 1 ? (int64_t)LW_WARP : g->blocks, groups = LW_WARP / g->lanes;
    const int64_t words = tile > 0 ? checkpoint_words(p, g->strips, height_of(g, tlen, tile), tile)
                                   : direction_words(p, halves, g->strips, blocks, tlen) / groups;
    /* a strip's ends and best rows, shared among the jobs of a warp */
    const int64_t ends =
        g->strips * (LW_PATH_ENDS * (int64_t)sizeof(lw_path_end) + 2 * LW_PATH_STRIP * 4) / groups;
    out->bytes =
        (4 * words + ends) / halves + 8 * out->ops + 256 + 4 * (out->query_words + out->target_words);
}

/* The smallest tiles with which a job's checkpoints fit into so many bytes; 0: none. The directions of a tile
 * must fit into the shared memory of a block. */
static int32_t tile_for(const lw_paths *p, int32_t qlen, int32_t tlen, int32_t excess, int64_t bytes)
{
    job_size size;
    for (int32_t tile = p->scores ? (int32_t)LW_PATH_STRIP : (int32_t)LW_PATH_TILE; tile <= LW_PATH_STRIP;
         tile *= 2) {
        if (!p->scores &&
            lw_tiles_shared_bytes(pieces_of(p), tile, p->by.setup->scoring->n_letters) > p->by.shared_bytes)
            break;
        size_of(p, tile, 1, qlen, tlen, excess, &size);
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
    const uint64_t kind = key[job_number(p, first)] >> KEY_KIND;
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
    s->columns = s->rows = s->narrow = 0;
    s->halves = p->by.policy == LW_CUDA_DPX ? 2 : 1;
    s->query_words = s->target_words = s->strips_at_most = 0;
    for (s->n = 0; first + s->n < n && s->n < most; s->n++) {
        const int64_t i = job_number(p, first + s->n);
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
                narrow = (int32_t)(s->n > 0 ? min64(narrow, wide) : wide);
            }
            const bool fits = arithmetic_of(p, s->halves, !tiles, columns, rows, narrow, &unused);
            if (!fits && s->n > 0)
                break; /* those before have two scores a word, or penalties that fit, this one will not */
            if (!fits)
                s->halves = 1;
            s->columns = columns, s->rows = rows, s->narrow = narrow;
            size_of(p, tile, s->halves, qlen, tlen, excess, &size);
        }
        if (s->n > 0 && (need + size.bytes > bytes || cells > most_cells))
            break;
        need += size.bytes;
        cells += (double)qlen * tlen;
        s->query_words += size.query_words;
        s->target_words += size.target_words;
        s->strips_at_most += size.g.strips;
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
    int32_t most_strips = 0, least = INT32_MIN;
    double cells = 0;
    s->computed = 0;
    s->n_bundles = s->n_strips = s->scratch_words = s->border_words = s->spare_ops = 0;
    job_size size;
    memset(&size, 0, sizeof size);
    size.qlen = -1;
    for (int64_t k = 0; k < s->n;) {
        lw_bundle *b = &bundles[s->n_bundles];
        memset(b, 0, sizeof *b);
        b->first = (int32_t)k;
        b->first_strip = (int32_t)s->n_strips;
        b->low = INT32_MAX, b->high = INT32_MIN;
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
                size_of(p, s->tile, halves, qlen, tlen, excess, &size);
                const int64_t beyond = size.g.band ? lw_band_beyond(p->by.setup->scoring, p->by.setup->mode,
                                                                    qlen, tlen, (int64_t)excess + 1)
                                                   : INT64_MIN;
                least = beyond < INT32_MIN ? INT32_MIN : (int32_t)beyond + 1;
                cells = computed_of(&size.g, qlen, tlen);
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
            jobs[k].query = query_at * per_word;
            jobs[k].target = local_targets ? target_at * per_word : source_of(p, i).ref;
            jobs[k].qlen = qlen;
            jobs[k].tlen = tlen;
            jobs[k].least = least;
            s->computed += cells;
            query_at += size.query_words;
            target_at += size.target_words;
            bundle_of[k] = (int32_t)s->n_bundles;
            spare_at[k] = s->spare_ops;
            s->spare_ops += size.ops;
            rows = tlen > rows ? tlen : rows;
            here++;
        }
        b->n = here, b->rows = rows;
        shape.low = b->low, shape.high = b->high;
        b->band = shape.band;
        b->strips = (int32_t)shape.strips;
        b->blocks = (int32_t)(shape.strips > 1 || shape.tiles ? (int32_t)LW_WARP : shape.blocks);
        b->height = height_of(&shape, b->rows, s->tile);
        b->scratch = s->scratch_words;
        b->border = s->border_words;
        if (s->tile > 0) {
            s->scratch_words += round_up(checkpoint_words(p, b->strips, b->height, s->tile), 4);
        } else {
            s->scratch_words += direction_words(p, halves, b->strips, b->blocks, b->rows);
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
        int64_t at = 0;
        for (int32_t i = 0; i < most_strips; i++)
            for (int32_t k = 0; k < s->n_bundles; k++)
                if (i < bundles[k].strips)
                    strips[at].bundle = k, strips[at++].strip = i;
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
    a.fill.scores = p->scores;
    a.fill.keep_mask = p->scores ? INT32_MAX : s->tile - 1;
    while (1 << a.fill.tile_bits < s->tile)
        a.fill.tile_bits++;
    if (!arithmetic_of(p, s->halves, s->tile == 0, s->columns, s->rows, s->narrow, &a.fill.by))
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
    p->computed += s->computed;
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
    if (until > from)
        memcpy(p->cigars->op + call->base + from, call->ops + from, (size_t)(until - from) * 4);
    const int64_t to = min64((piece + 1) * UNPACK_JOBS, s->n);
    const int32_t least = p->by.setup->min_score;
    for (int64_t k = piece * UNPACK_JOBS; k < to; k++) {
        const int64_t i = job_number(p, s->first + k);
        const lw_path_result *r = &call->results[k];
        lw_path path = {r->qstart, r->tstart, call->base + r->ops, r->n_ops};
        if (r->n_ops < 0) { /* once more, in the band that this score proves */
            int32_t qlen, tlen;
            lengths_of(p, i, &qlen, &tlen);
            ((int32_t *)p->excess.at)[i] = worth_trying(
                p, qlen, tlen, lw_band_excess(p->by.setup->scoring, p->by.setup->mode, qlen, tlen, r->score),
                0);
            continue;
        }
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
        if (!p->scores)
            p->paths[i] = path;
    }
    return LW_OK;
}

/* Notes what bands the scores of some jobs prove. */
static void learn(lw_paths *p, const stage *s, const lw_path_result *results)
{
    const int64_t step = max64(s->n / LW_BAND_SAMPLE, 1);
    for (int64_t k = 0; k < s->n; k += step) {
        int32_t qlen, tlen;
        lengths_of(p, job_number(p, s->first + k), &qlen, &tlen);
        const int64_t shorter = min64(qlen, tlen);
        if (shorter < LW_BAND_SHORTEST)
            continue;
        const int64_t need =
            lw_band_excess(p->by.setup->scoring, p->by.setup->mode, qlen, tlen, results[k].score);
        p->needs[need * LW_BAND_PARTS / shorter]++;
        p->n_needs++;
    }
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
    if (p->excess.at)
        learn(p, s, call.results);
    p->banded += s->narrow > 0 ? s->n : 0;
    for (int64_t k = 0; k < s->n && s->narrow > 0; k++)
        if (call.results[k].n_ops < 0)
            ((int32_t *)p->again.at)[p->n_again++] = (int32_t)job_number(p, s->first + k);
    return LW_OK;
}

/* Runs the jobs of `list` (NULL: all n), with bands as they are or to be chosen. */
static lw_status run_list(lw_paths *p, const int32_t *list, int64_t n, bool choose, lw_error *err)
{
    lw_status status = LW_OK;
    LW_TRY(sort_jobs(p, list, n, choose, err));
    if (p->ops_per_job == 0)
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
            tile = tile_for(p, qlen, tlen, excess_of(p, head), share);
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

/* The excess to be tried, in parts of the length: that which is proved often enough by what was learnt. Else
 * one that 5 % of errors take with usual penalties. */
static void make_guess(lw_paths *p)
{
    p->guess = LW_BAND_PARTS / 8;
    for (int32_t part = 0; part <= LW_BAND_PARTS; part++)
        p->fails[part] = part < p->guess ? 1 : 0.5;
    if (p->n_needs == 0)
        return;
    double least = 1;
    int64_t fewer = 0;
    p->guess = -1;
    for (int32_t part = 0; part < LW_BAND_PARTS / 2; part++) {
        fewer += p->needs[part];
        const double fails = ((double)(p->n_needs - fewer) + 0.5) / ((double)p->n_needs + 1);
        const double cost = 2.0 * (part + 1) / LW_BAND_PARTS + fails;
        p->fails[part + 1] = fails;
        if (cost < least)
            least = cost, p->guess = part + 1;
    }
}

/* How alike pairs are: some of them are computed, of long ones the beginnings. */
static lw_status look_at_some(lw_paths *p, int64_t n, lw_error *err)
{
    int32_t *list = (int32_t *)p->again.at;
    const int64_t step = max64(n / LW_BAND_SAMPLE, 1), ops = p->cigars->n;
    int64_t found = 0;
    for (int64_t i = 0; i < n && found < LW_BAND_SAMPLE; i += step) {
        int32_t qlen, tlen;
        lengths_of(p, i, &qlen, &tlen);
        if (min64(qlen, tlen) >= LW_BAND_SHORTEST && max64(tlen - qlen, qlen - tlen) <= LW_BAND_CUT)
            list[found++] = (int32_t)i;
    }
    if (found == 0)
        return LW_OK;
    p->cut = LW_BAND_CUT;
    const lw_status status = run_list(p, list, found, false, err);
    p->cut = 0;
    p->cigars->n = ops;
    return status;
}

/* Runs all jobs of the call: at most twice, as what a band did not prove has a score that proves another. */
static lw_status run_all_jobs(lw_paths *p, int64_t n, lw_error *err)
{
    const lw_mode mode = p->by.setup->mode;
    p->roomy = most_roomy(p);
    p->ops_per_job = 0;
    p->banded = p->unproved = 0;
    p->computed = 0;
    p->guess = -1;
    if (p->tasks || mode == LW_LOCAL) {
        free(p->excess.at);
        p->excess = area{NULL, 0};
        return run_list(p, NULL, n, false, err);
    }
    LW_TRY(area_host(&p->excess, (size_t)n * sizeof(int32_t), err));
    LW_TRY(area_host(&p->again, (size_t)n * sizeof(int32_t), err));
    memset(p->excess.at, 0xff, (size_t)n * sizeof(int32_t));
    if (p->n_needs < LW_BAND_SAMPLE / 2) {
        double cells = 0;
        for (int64_t i = 0; i < n && cells < LW_BAND_LOOK_CELLS; i++)
            cells += (double)p->queries->len[i] * p->targets->len[i];
        if (cells >= LW_BAND_LOOK_CELLS)
            LW_TRY(look_at_some(p, n, err));
    }
    p->computed = 0; /* what was looked at is computed once more */
    make_guess(p);
    for (int part = 0; part <= LW_BAND_PARTS && p->n_needs > LW_BAND_MEMORY; part++)
        p->needs[part] /= 2;
    p->n_needs = 0;
    for (int part = 0; part <= LW_BAND_PARTS; part++)
        p->n_needs += p->needs[part];
    p->n_again = 0;
    LW_TRY(run_list(p, NULL, n, p->guess >= 0, err));
    if (p->n_again == 0)
        return LW_OK;
    /* the list is sorted before the jobs in it are run, and no job comes a third time */
    const int64_t again = p->unproved = p->n_again;
    p->n_again = 0;
    p->guess = -1;
    LW_TRY(run_list(p, (const int32_t *)p->again.at, again, false, err));
    if (p->n_again > 0)
        return lw_fail(err, LW_E_INTERNAL, "%ld pairs score less in the band that their scores had proved",
                       (long)p->n_again);
    return LW_OK;
}

static lw_status run_jobs(lw_paths *p, int64_t n, lw_error *err)
{
    LW_TRY(run_all_jobs(p, n, err));
    if (!p->by.setup->computed)
        return LW_OK;
    double cells = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t qlen, tlen;
        lengths_of(p, i, &qlen, &tlen);
        cells += (double)qlen * tlen;
    }
    *p->by.setup->computed = cells > 0 ? p->computed / cells : 1;
    return LW_OK;
}

lw_status lw_paths_trace(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, int64_t n,
                         const lw_trace_task *tasks, lw_path *paths, lw_cigars *cigars, lw_error *err)
{
    p->queries = queries;
    p->targets = targets;
    p->tasks = tasks;
    p->ends_at = LW_END_CORNER;
    p->scores = false;
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
    p->scores = paths == NULL;
    p->hits = hits;
    p->paths = paths;
    p->cigars = cigars;
    return queries->n > 0 ? run_jobs(p, queries->n, err) : LW_OK;
}

lw_status lw_paths_ends(lw_paths *p, const lw_seqs *queries, const lw_seqs *targets, lw_hit *hits,
                        lw_error *err)
{
    lw_cigars none = {NULL, 0, 0};
    const lw_status status = lw_paths_pairs(p, queries, targets, hits, NULL, &none, err);
    free(none.op);
    return status;
}
