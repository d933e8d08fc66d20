/* align_cuda_paths_shape.c - how a job lies in its matrix and what it takes: columns, strips and bands, the
 * numbers that its scores need, the words of its directions or checkpoints. */
#include <string.h>

#include "align/align_cuda_paths.h"
#include "align/align_tuning.h"

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
bool lw_paths_arithmetic_of(const lw_paths *p, int halves, bool directions, int64_t qlen, int64_t tlen,
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

int64_t lw_paths_direction_words(const lw_paths *p, int halves, int64_t strips, int64_t blocks, int64_t rows)
{
    return strips * lw_path_slots((int32_t)rows, (int32_t)blocks) * LW_WARP *
           lw_direction_words(halves, pieces_of(p));
}

int64_t lw_paths_checkpoint_words(const lw_paths *p, int64_t strips, int64_t height, int32_t tile)
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
    return lw_paths_direction_words(p, 2, strips, min64(lanes, LW_WARP), tlen) <= LW_PATH_MOST_WORDS &&
           (max64(qlen, tlen) <= p->roomy || lw_paths_arithmetic_of(p, 1, true, qlen, tlen, 0, &unused));
}

int32_t lw_paths_most_roomy(const lw_paths *p)
{
    lw_path_arithmetic unused;
    int32_t low = 0, high = 1 << 26;
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (lw_paths_arithmetic_of(p, 1, true, middle, middle, LW_BAND_LEAST, &unused))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The rows of a strip over checkpoints at most. */
int32_t lw_paths_height_of(const geometry *g, int64_t rows, int32_t tile)
{
    return (int32_t)(g->band ? min64(rows, LW_PATH_STRIP + (int64_t)g->high - g->low + 1 + tile) : rows);
}

/* The band of some excess, if the kernels can do it: by lanes that go on where it is narrow, by the rows of
 * strips over checkpoints. Else, and for excess -1, all cells. */
void lw_paths_geometry_of(const lw_paths *p, int32_t qlen, int32_t tlen, int32_t excess, geometry *out)
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
        lw_paths_direction_words(p, 2, 1, g.blocks, tlen) <= LW_PATH_MOST_WORDS &&
        (roomy || lw_paths_arithmetic_of(p, 1, true, qlen, tlen, (int32_t)narrow, &unused))) {
        g.strips = 1;
        g.tiles = false;
        *out = g;
    } else if (g.tiles &&
               (roomy || lw_paths_arithmetic_of(p, 1, false, qlen, tlen, (int32_t)narrow, &unused))) {
        const int64_t front = g.strips * LW_PATH_STRIP - qlen;
        g.low = (int32_t)(low - front), g.high = (int32_t)(high - front);
        g.lanes = LW_WARP;
        *out = g;
    }
}

/* Rows that a warp computes for a job, or for two with words of two scores. */
double lw_paths_work_of(const geometry *g, int64_t rows)
{
    if (g->tiles || g->strips > 1)
        return (double)g->strips * (lw_paths_height_of(g, rows, LW_PATH_TILE) + LW_PATH_SIDE * LW_WARP);
    return (double)(rows + LW_PATH_SIDE * g->blocks) / (LW_WARP / g->lanes);
}

/* Cells that the kernels compute for a job. */
double lw_paths_computed_of(const geometry *g, int64_t qlen, int64_t tlen)
{
    const double all = (double)qlen * (double)tlen;
    const double some = g->tiles
                            ? (double)g->strips * LW_PATH_STRIP * lw_paths_height_of(g, tlen, LW_PATH_TILE)
                            : (double)g->lanes * LW_PATH_COLUMNS * (double)(tlen + LW_PATH_SIDE * g->blocks);
    return g->band && some < all ? some : all;
}

void lw_paths_size_of(const lw_paths *p, int32_t tile, int halves, int32_t qlen, int32_t tlen, int32_t excess,
                      job_size *out)
{
    geometry *g = &out->g;
    out->qlen = qlen, out->tlen = tlen, out->excess = excess;
    lw_paths_geometry_of(p, qlen, tlen, excess, g);
    out->query_words = packed_words(p, qlen);
    out->target_words = p->tasks && !p->targets ? 0 : packed_words(p, tlen);
    out->ops = p->scores ? 0 : most_ops(qlen, tlen);
    const int64_t blocks = g->strips > 1 ? (int64_t)LW_WARP : g->blocks, groups = LW_WARP / g->lanes;
    const int64_t words =
        tile > 0 ? lw_paths_checkpoint_words(p, g->strips, lw_paths_height_of(g, tlen, tile), tile)
                 : lw_paths_direction_words(p, halves, g->strips, blocks, tlen) / groups;
    /* a strip's ends and best rows, shared among the jobs of a warp */
    const int64_t ends =
        g->strips * (LW_PATH_ENDS * (int64_t)sizeof(lw_path_end) + 2 * LW_PATH_STRIP * 4) / groups;
    out->bytes =
        (4 * words + ends) / halves + 8 * out->ops + 256 + 4 * (out->query_words + out->target_words);
}

/* The smallest tiles with which a job's checkpoints fit into so many bytes; 0: none. The directions of a tile
 * must fit into the shared memory of a block. */
int32_t lw_paths_tile_for(const lw_paths *p, int32_t qlen, int32_t tlen, int32_t excess, int64_t bytes)
{
    job_size size;
    for (int32_t tile = p->scores ? (int32_t)LW_PATH_STRIP : (int32_t)LW_PATH_TILE; tile <= LW_PATH_STRIP;
         tile *= 2) {
        if (!p->scores &&
            lw_tiles_shared_bytes(pieces_of(p), tile, p->by.setup->scoring->n_letters) > p->by.shared_bytes)
            break;
        lw_paths_size_of(p, tile, 1, qlen, tlen, excess, &size);
        if (size.bytes <= bytes)
            return tile;
    }
    return 0;
}
