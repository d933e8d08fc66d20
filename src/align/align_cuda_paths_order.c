/* align_cuda_paths_order.c - the order of work: jobs of one kind and shape follow one another. */
#include <string.h>

#include "align/align_cuda_paths.h"

static uint64_t key_of(const lw_paths *p, int32_t qlen, int32_t tlen, int32_t excess)
{
    geometry g;
    lw_paths_geometry_of(p, qlen, tlen, excess, &g);
    const int64_t most = (1 << 14) - 1;
    const int64_t wide = g.strips > 1 || g.tiles ? LW_WARP + min64(g.strips, most - LW_WARP)
                         : g.band                ? min64(g.blocks, most)
                                                 : g.lanes;
    return (uint64_t)g.tiles << KEY_TILES | (uint64_t)g.band << KEY_KIND | (uint64_t)wide << 32 |
           (uint32_t)tlen;
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
                e = lw_paths_worth_trying(k->p, m, n, shorter * part / LW_BAND_PARTS, k->p->fails[part]);
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
lw_status lw_paths_sort(lw_paths *p, const int32_t *list, int64_t n, bool choose, lw_error *err)
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
