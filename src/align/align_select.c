/* align_select.c - placements from block maxima (the contract is in align_select.h). */
#include "align/align_select.h"

#include <string.h>

enum { PHASE_BEST, PHASE_TIES, PHASE_SECOND, PHASE_MORE, PHASE_DONE };

/* Lower than any score (|H| < 2^30). */
static const int32_t NOTHING = INT32_MIN;

void lw_block_map_make(lw_block_map *map, const lw_seqs *refs, lw_mode mode, int64_t limit,
                       int64_t *first_block)
{
    map->refs = refs;
    map->first_block = first_block;
    map->shift = 5;
    for (;; map->shift++) {
        first_block[0] = 0;
        for (int64_t r = 0; r < refs->n; r++) {
            int64_t blocks =
                mode == LW_GLOBAL ? 1 : ((int64_t)refs->len[r] + (1 << map->shift) - 1) >> map->shift;
            first_block[r + 1] = first_block[r] + blocks;
        }
        if (first_block[refs->n] <= limit + refs->n || map->shift == 30)
            return;
    }
}

static int32_t maximum(const lw_block_maxima *m, int64_t block)
{
    const uint8_t *p = m->base + block * m->stride;
    uint32_t raw;
    if (m->bytes == 1) {
        raw = *p;
    } else if (m->bytes == 2) {
        uint16_t x;
        memcpy(&x, p, sizeof x);
        raw = x;
    } else {
        memcpy(&raw, p, sizeof raw);
    }
    return (int32_t)(raw - m->zero);
}

/* The highest of the blocks [first, last) and, in *at, the first that has it. */
static int32_t highest(const lw_block_maxima *m, int64_t first, int64_t last, int64_t *at)
{
    int32_t best = NOTHING;
    *at = first;
    if (m->bytes == 1) { /* the common case, without the choice of width inside */
        int raw = -1;
        for (int64_t b = first; b < last; b++)
            if (m->base[b * m->stride] > raw) {
                raw = m->base[b * m->stride];
                *at = b;
            }
        return raw < 0 ? NOTHING : (int32_t)((uint32_t)raw - m->zero);
    }
    for (int64_t b = first; b < last; b++) {
        int32_t score = maximum(m, b);
        if (score > best) {
            best = score;
            *at = b;
        }
    }
    return best;
}

static int64_t blocks_of(const lw_select *s, int32_t target)
{
    return s->map->first_block[target + 1] - s->map->first_block[target];
}

static void ends_of(const lw_select *s, const lw_select_place *place, int32_t *first, int32_t *last)
{
    int64_t length = s->map->refs->len[place->target];
    int64_t begin = (place->block << s->map->shift) + 1, end = (place->block + 1) << s->map->shift;
    if (s->setup->mode == LW_GLOBAL)
        begin = end = length;
    else if (s->setup->mode == LW_SEMIGLOBAL && place->block == 0)
        begin = 0;
    *first = (int32_t)begin;
    *last = (int32_t)(end < length ? end : length);
}

static bool before(const lw_select_place *a, const lw_select_place *b)
{
    if (a->reverse != b->reverse)
        return a->reverse < b->reverse;
    if (a->target != b->target)
        return a->target < b->target;
    return a->block < b->block;
}

static bool near(const lw_select *s, const lw_hit *hit, int reverse, int32_t target, int64_t tend)
{
    int64_t distance = tend - hit->tend;
    return hit->reverse == reverse && hit->target == target && distance <= s->read_length &&
           -distance <= s->read_length;
}

/* How a block lies to the neighbourhoods. */
enum { CLEAR, PARTLY, COVERED };

static int coverage(const lw_select *s, const lw_select_place *place)
{
    int32_t first, last;
    ends_of(s, place, &first, &last);
    int result = CLEAR;
    for (int z = 0; z < s->n_zones; z++) {
        const lw_hit *hit = &s->zones[z];
        if (hit->reverse != place->reverse || hit->target != place->target)
            continue;
        bool a = near(s, hit, place->reverse, place->target, first),
             b = near(s, hit, place->reverse, place->target, last);
        if (a && b)
            return COVERED;
        if (a || b || (first <= hit->tend && hit->tend <= last))
            result = PARTLY;
    }
    return result;
}

static void ask_for(lw_select *s, const lw_select_place *place, int32_t score)
{
    s->ask.place = *place;
    s->ask.score = score;
    ends_of(s, place, &s->ask.first, &s->ask.last);
    s->found = (lw_hit){.score = NOTHING, .target = -1};
}

/* In global mode the only end cell of a block is known. */
static void answer_global(lw_select *s)
{
    const lw_select_place *p = &s->ask.place;
    lw_select_column(s, s->ask.last,
                     maximum(&s->maxima[p->reverse], s->map->first_block[p->target] + p->block),
                     s->read_length);
}

static void search_begin(lw_select *s, const lw_hit *zones, int n_zones)
{
    s->zones = zones;
    s->n_zones = n_zones;
    s->n_exact = 0;
    s->ask.place.target = -1;
}

/* The best end cell outside the zones. False: columns are asked for, call again. *result: target -1 if there
 * is none; its place in the block is known only if `position` was wanted. */
static bool search(lw_select *s, bool position, lw_hit *result)
{
    if (s->ask.place.target >= 0) { /* the answer to what was asked */
        if (coverage(s, &s->ask.place) == CLEAR) {
            s->ask.place.target = -1;
            *result = s->found;
            return true;
        }
        s->exact[s->n_exact++] = (lw_select_exact){.place = s->ask.place, .best = s->found};
        s->ask.place.target = -1;
    }
    int32_t best = NOTHING, open_score = NOTHING; /* open: partly covered, not scored yet */
    lw_select_place best_place = {.target = -1}, open_place = {.target = -1};
    const lw_hit *best_exact = NULL;
    for (int reverse = 0; reverse < 2; reverse++) {
        const lw_block_maxima *m = &s->maxima[reverse];
        if (!m->base)
            continue;
        for (int32_t r = 0; r < s->map->refs->n; r++) {
            int64_t base = s->map->first_block[r], n = blocks_of(s, r), b = 0;
            while (b < n) {
                /* the clear blocks from b on, or one that touches a zone */
                int64_t clear_to = n;
                bool touches = false;
                for (int z = 0; z < s->n_zones; z++) {
                    const lw_hit *hit = &s->zones[z];
                    if (hit->reverse != reverse || hit->target != r)
                        continue;
                    int64_t from = (int64_t)hit->tend - s->read_length - 1,
                            to = ((int64_t)hit->tend + s->read_length - 1) >> s->map->shift;
                    from = from < 0 ? 0 : from >> s->map->shift;
                    if (s->setup->mode == LW_GLOBAL)
                        from = to = 0;
                    if (from <= b && b <= to)
                        touches = true;
                    else if (from > b && from < clear_to)
                        clear_to = from;
                }
                lw_select_place place = {.target = r, .reverse = (uint8_t)reverse, .block = b};
                int32_t score;
                const lw_hit *exact = NULL;
                if (!touches) {
                    int64_t at;
                    score = highest(m, base + b, base + clear_to, &at);
                    place.block = at - base;
                    b = clear_to;
                } else {
                    b++;
                    int cover = coverage(s, &place);
                    if (cover == COVERED)
                        continue;
                    score = maximum(m, base + place.block);
                    for (int x = 0; cover == PARTLY && x < s->n_exact; x++)
                        if (s->exact[x].place.target == r && s->exact[x].place.reverse == reverse &&
                            s->exact[x].place.block == place.block)
                            exact = &s->exact[x].best;
                    if (cover == PARTLY && !exact) {
                        if (score > open_score) {
                            open_score = score;
                            open_place = place;
                        }
                        continue;
                    }
                    if (exact)
                        score = exact->target < 0 ? NOTHING : exact->score;
                }
                if (score > best) {
                    best = score;
                    best_place = place;
                    best_exact = exact;
                }
            }
        }
    }
    if (open_place.target >= 0 &&
        (open_score > best || (position && open_score == best && before(&open_place, &best_place)))) {
        ask_for(s, &open_place, best);
        return false;
    }
    const lw_block_maxima *any = &s->maxima[s->maxima[0].base ? 0 : 1];
    if (any->loose && best_place.target >= 0 && best <= any->vague) {
        s->vague = true;
        s->phase = PHASE_DONE;
        return true;
    }
    *result = (lw_hit){
        .score = best, .target = best_place.target, .tend = 0, .qend = 0, .reverse = best_place.reverse};
    if (best == NOTHING)
        result->target = -1;
    if (best_exact)
        *result = *best_exact;
    else if (position && best != NOTHING) {
        ask_for(s, &best_place, best);
        return false;
    }
    return true;
}

/* The next block at or after the cursor, in tie order, whose maximum is the optimum. */
static bool next_tie_block(lw_select *s)
{
    for (;;) {
        lw_select_place *c = &s->cursor;
        const lw_block_maxima *m = &s->maxima[c->reverse];
        if (m->base)
            for (; c->target < s->map->refs->n; c->target++, c->block = 0)
                for (int64_t n = blocks_of(s, c->target); c->block < n; c->block++)
                    if (maximum(m, s->map->first_block[c->target] + c->block) == s->best)
                        return true;
        if (c->reverse)
            return false;
        *c = (lw_select_place){.reverse = 1};
    }
}

void lw_select_begin(lw_select *s, const lw_align_setup *setup, const lw_block_map *map, int32_t read_length,
                     const lw_block_maxima *forward, const lw_block_maxima *reverse, lw_hit *hits,
                     lw_hit *ties, lw_select_exact *exact)
{
    *s = (lw_select){.setup = setup,
                     .map = map,
                     .read_length = read_length,
                     .hits = hits,
                     .ties = ties,
                     .exact = exact,
                     .phase = PHASE_BEST};
    if (forward)
        s->maxima[0] = *forward;
    if (reverse)
        s->maxima[1] = *reverse;
    for (int k = 0; k < setup->n_hits; k++)
        hits[k] = (lw_hit){.target = -1};
    for (int k = 0; ties && k < setup->n_ties; k++)
        ties[k] = (lw_hit){.target = -1};
    bool listed = ties && setup->n_ties > 0;
    s->list = listed ? ties : hits;
    s->list_capacity = listed ? setup->n_ties : 1;
}

void lw_select_column(lw_select *s, int32_t tend, int32_t score, int32_t qend)
{
    const lw_select_place *p = &s->ask.place;
    lw_hit hit = {.score = score, .target = p->target, .tend = tend, .qend = qend, .reverse = p->reverse};
    if (score < s->ask.score)
        return;
    if (s->phase == PHASE_TIES) {
        if (score == s->best && s->n_list < s->list_capacity)
            s->list[s->n_list++] = hit;
        return;
    }
    if (score <= s->found.score)
        return;
    for (int z = 0; z < s->n_zones; z++)
        if (near(s, &s->zones[z], p->reverse, p->target, tend))
            return;
    s->found = hit;
}

/* True where another of the co-optimal placements lies outside the neighbourhood of list[k]. */
static bool has_far_tie(const lw_select *s, int k)
{
    for (int x = 0; x < s->n_list; x++)
        if (!near(s, &s->list[k], s->list[x].reverse, s->list[x].target, s->list[x].tend))
            return true;
    return false;
}

/* One step of the selection. True: columns are asked for. */
static bool advance(lw_select *s)
{
    const bool local = s->setup->mode == LW_LOCAL;
    lw_hit hit;
    switch (s->phase) {
    case PHASE_BEST:
        search_begin(s, NULL, 0);
        search(s, false, &hit);
        if (s->vague)
            return false;
        if (hit.target < 0 || hit.score < s->setup->min_score || (local && hit.score < 1) ||
            s->setup->n_hits < 1) {
            s->phase = PHASE_DONE;
            return false;
        }
        s->best = hit.score;
        s->cursor = (lw_select_place){.target = 0};
        s->phase = PHASE_TIES;
        return false;
    case PHASE_TIES:
        if (s->n_list < s->list_capacity && next_tie_block(s)) {
            ask_for(s, &s->cursor, s->best);
            s->cursor.block++;
            return true;
        }
        s->k = 0;
        s->phase = PHASE_SECOND;
        search_begin(s, &s->list[0], 1);
        return false;
    case PHASE_SECOND:
        if (has_far_tie(s, s->k)) {
            s->list[s->k].second = s->best;
        } else {
            if (!search(s, false, &hit))
                return true;
            if (s->vague)
                return false;
            if (local)
                s->list[s->k].second = hit.target >= 0 && hit.score > 0 ? hit.score : 0;
            else
                s->list[s->k].second = hit.target >= 0 ? hit.score : LW_NO_SECOND;
        }
        if (++s->k < s->n_list) {
            search_begin(s, &s->list[s->k], 1);
            return false;
        }
        s->hits[0] = s->list[0];
        s->k = 1;
        s->phase = s->setup->n_hits > 1 ? PHASE_MORE : PHASE_DONE;
        search_begin(s, s->hits, 1);
        return false;
    case PHASE_MORE:
        if (!search(s, true, &hit))
            return true;
        if (s->vague)
            return false;
        if (hit.target < 0 || hit.score < s->setup->min_score || (local && hit.score < 1)) {
            s->phase = PHASE_DONE;
            return false;
        }
        s->hits[s->k++] = hit;
        if (s->k == s->setup->n_hits)
            s->phase = PHASE_DONE;
        search_begin(s, s->hits, s->k);
        return false;
    default:
        return false;
    }
}

bool lw_select_next(lw_select *s, lw_select_ask *ask)
{
    while (s->phase != PHASE_DONE) {
        if (!advance(s))
            continue;
        if (s->setup->mode == LW_GLOBAL) {
            answer_global(s);
            continue;
        }
        *ask = s->ask;
        return true;
    }
    return false;
}
