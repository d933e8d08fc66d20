/* realign_order.c - the order of the output, and which records wait for their mates.
 *
 * Coordinate-sorted input. A record waits here until its mate has come, if that is within
 * LW_REALIGN_REACH letters; then each gets the other's new place. A mate further away is looked up in a
 * table: records that changed list themselves there for mates to come, and what later mates change into is
 * listed by a pass of its own over the input. No record moves to the left by more than LW_REALIGN_MOST_PADS
 * pads. So everything that lies before (the oldest waiting record's old place, or the last record's, less
 * that) is final and can be written. Records that keep their place are in order as they come; only those that
 * moved go through a heap.
 *
 * Other input: records of one name stand side by side, and are written when the next name comes. */
#include "align/realign.h"

#include <stdlib.h>
#include <string.h>
#include <htslib/khash.h>

#include "align/realign_tuning.h"
#include "common/fail.h"

typedef struct held {
    bam1_t *record; /* NULL: it went to the heap */
    lw_realign_item item;
    bool waits;
} held;

typedef struct moved {
    uint64_t key;
    int64_t number;
    bam1_t *record;
} moved;

KHASH_MAP_INIT_STR(waiting, int64_t)

struct lw_realign_order {
    lw_realign_order_options o;
    lw_realign_order_counts counts;
    /* records head .. tail - 1 by the order in which they came, record i at queue[i & (capacity - 1)] */
    held *queue;
    int64_t capacity, head, tail;
    int64_t oldest; /* none before this one waits */
    moved *heap;
    int64_t n_heap, heap_capacity;
    bam1_t **spare;
    int64_t n_spare, spare_capacity;
    khash_t(waiting) * waiting; /* name -> number of the record */
    lw_distant *distant;
    bool scanned;
    uint64_t last_key;
};

lw_status lw_realign_order_open(lw_realign_order **out, const lw_realign_order_options *options,
                                lw_error *err)
{
    lw_realign_order *s = calloc(1, sizeof *s);
    if (!s)
        return lw_fail_memory(err, sizeof *s);
    s->o = *options;
    s->waiting = kh_init(waiting);
    lw_status status = s->waiting ? lw_distant_open(&s->distant, err) : lw_fail_memory(err, sizeof *s);
    if (status != LW_OK) {
        lw_realign_order_close(s);
        return status;
    }
    *out = s;
    return LW_OK;
}

static held *at(const lw_realign_order *s, int64_t number)
{
    return &s->queue[number & (s->capacity - 1)];
}

void lw_realign_order_close(lw_realign_order *s)
{
    if (!s)
        return;
    for (int64_t i = s->head; i < s->tail; i++)
        if (at(s, i)->record)
            bam_destroy1(at(s, i)->record);
    for (int64_t i = 0; i < s->n_heap; i++)
        bam_destroy1(s->heap[i].record);
    for (int64_t i = 0; i < s->n_spare; i++)
        bam_destroy1(s->spare[i]);
    free(s->queue);
    free(s->heap);
    free(s->spare);
    if (s->waiting)
        kh_destroy(waiting, s->waiting);
    lw_distant_close(s->distant);
    free(s);
}

const lw_realign_order_counts *lw_realign_order_count(const lw_realign_order *s)
{
    return &s->counts;
}

/* ---- places ------------------------------------------------------------------------------------- */

/* Order of places; unplaced records come last. */
static uint64_t key_of(int32_t target, int64_t position)
{
    return (uint64_t)(uint32_t)target << 32 | (uint32_t)(position + 1);
}

static uint64_t key_now(const bam1_t *record)
{
    return key_of(record->core.tid, record->core.pos);
}

static uint64_t key_before(const held *h)
{
    return key_of(h->record->core.tid, h->item.old_pos);
}

static bool comes_first(const moved *a, const moved *b)
{
    return a->key != b->key ? a->key < b->key : a->number < b->number;
}

static lw_status push_moved(lw_realign_order *s, const moved *m, lw_error *err)
{
    if (s->n_heap == s->heap_capacity) {
        int64_t capacity = 2 * s->heap_capacity + 256;
        moved *heap = realloc(s->heap, (size_t)capacity * sizeof *heap);
        if (!heap)
            return lw_fail_memory(err, (size_t)capacity * sizeof *heap);
        s->heap = heap;
        s->heap_capacity = capacity;
    }
    int64_t i = s->n_heap++;
    for (int64_t up; i > 0 && comes_first(m, &s->heap[up = (i - 1) / 2]); i = up)
        s->heap[i] = s->heap[up];
    s->heap[i] = *m;
    return LW_OK;
}

static void pop_moved(lw_realign_order *s)
{
    moved last = s->heap[--s->n_heap];
    int64_t i = 0;
    for (;;) {
        int64_t down = 2 * i + 1;
        if (down >= s->n_heap)
            break;
        if (down + 1 < s->n_heap && comes_first(&s->heap[down + 1], &s->heap[down]))
            down++;
        if (!comes_first(&s->heap[down], &last))
            break;
        s->heap[i] = s->heap[down];
        i = down;
    }
    s->heap[i] = last;
}

/* A record whose fields are final: it keeps its turn, or goes to the heap if it moved. */
static lw_status settle(lw_realign_order *s, int64_t number, lw_error *err)
{
    held *h = at(s, number);
    h->waits = false;
    if (!s->o.by_coordinate || key_now(h->record) == key_before(h))
        return LW_OK;
    moved m = {.key = key_now(h->record), .number = number, .record = h->record};
    LW_TRY(push_moved(s, &m, err));
    h->record = NULL;
    return LW_OK;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static lw_status write_one(lw_realign_order *s, bam1_t *record, lw_error *err)
{
    if (s->n_spare == s->spare_capacity) {
        int64_t capacity = 2 * s->spare_capacity + 256;
        bam1_t **spare = realloc(s->spare, (size_t)capacity * sizeof *spare);
        if (!spare) {
            bam_destroy1(record);
            return lw_fail_memory(err, (size_t)capacity * sizeof *spare);
        }
        s->spare = spare;
        s->spare_capacity = capacity;
    }
    s->spare[s->n_spare++] = record;
    return s->o.write(s->o.arg, record, err);
}

/* Writes what lies before `bound`; all: everything. */
static lw_status write_before(lw_realign_order *s, uint64_t bound, bool all, lw_error *err)
{
    for (;;) {
        while (s->head < s->tail && !at(s, s->head)->record)
            s->head++;
        const moved *top = s->n_heap > 0 ? &s->heap[0] : NULL;
        moved next = {.key = UINT64_MAX};
        bool from_heap = false;
        if (s->head < s->tail)
            next = (moved){key_now(at(s, s->head)->record), s->head, at(s, s->head)->record};
        if (top && (!next.record || comes_first(top, &next))) {
            next = *top;
            from_heap = true;
        }
        if (!next.record || (!all && next.key >= bound))
            return LW_OK;
        if (from_heap)
            pop_moved(s);
        else
            at(s, s->head++)->record = NULL;
        LW_TRY(write_one(s, next.record, err));
    }
}

/* ---- mates -------------------------------------------------------------------------------------- */

/* Two mates that were both at hand. */
static lw_status join(lw_realign_order *s, held *a, held *b, lw_error *err)
{
    lw_realign_place of_a = lw_realign_place_of(a->record, &a->item);
    lw_realign_place of_b = lw_realign_place_of(b->record, &b->item);
    LW_TRY(lw_realign_update_mate(a->record, &of_a, &of_b, &s->counts.mates_updated, err));
    of_a.cigar = bam_get_cigar(a->record); /* a longer MC may have moved the record */
    return lw_realign_update_mate(b->record, &of_b, &of_a, &s->counts.mates_updated, err);
}

/* A record whose mate, unless it is given, did not change or is not there. */
static lw_status join_place(lw_realign_order *s, held *h, const lw_realign_place *mate, lw_error *err)
{
    lw_realign_place own = lw_realign_place_of(h->record, &h->item);
    return lw_realign_update_mate(h->record, &own, mate, &s->counts.mates_updated, err);
}

static bool are_mates(const bam1_t *a, const bam1_t *b)
{
    const uint16_t which = BAM_FREAD1 | BAM_FREAD2;
    return (a->core.flag & which) != (b->core.flag & which);
}

/* The waiting record of this name; -1: none. */
static int64_t waiting_of(const lw_realign_order *s, const bam1_t *record)
{
    khiter_t k = kh_get(waiting, s->waiting, bam_get_qname(record));
    return k == kh_end(s->waiting) ? -1 : kh_val(s->waiting, k);
}

static void stop_waiting(lw_realign_order *s, int64_t number)
{
    khiter_t k = kh_get(waiting, s->waiting, bam_get_qname(at(s, number)->record));
    if (k != kh_end(s->waiting) && kh_val(s->waiting, k) == number)
        kh_del(waiting, s->waiting, k);
}

/* The mate has come, or comes from far away, or is to be waited for. */
static lw_status find_mate(lw_realign_order *s, int64_t number, lw_error *err)
{
    held *h = at(s, number);
    int64_t other = waiting_of(s, h->record);
    if (!lw_is_primary(h->record)) { /* its mate fields name the primary record of the mate */
        if (other >= 0 && are_mates(h->record, at(s, other)->record)) {
            lw_realign_place place = lw_realign_place_of(at(s, other)->record, &at(s, other)->item);
            return join_place(s, h, &place, err);
        }
        return join_place(s, h, lw_distant_mate(s->distant, h->record), err);
    }
    if (other >= 0 && are_mates(h->record, at(s, other)->record)) {
        stop_waiting(s, other);
        LW_TRY(join(s, at(s, other), h, err));
        return settle(s, other, err);
    }
    int side = lw_mate_side(h->record, h->item.old_pos);
    if (side > 0 && !s->scanned) {
        s->scanned = true;
        LW_TRY(s->o.scan(s->o.arg, s->distant, err));
    }
    if (side != 0) {
        const bam1_core_t *c = &h->record->core;
        lw_realign_place own = lw_realign_place_of(h->record, &h->item);
        const lw_realign_place *mate = lw_distant_mate(s->distant, h->record);
        if (side > 0 && h->item.changed && c->flag & BAM_FPAIRED)
            LW_TRY(lw_distant_add(s->distant, h->record, &h->item, err));
        LW_TRY(lw_realign_update_mate(h->record, &own, mate, &s->counts.mates_updated, err));
        if (mate)
            lw_distant_drop_mate(s->distant, h->record);
        return LW_OK;
    }
    int absent = 0;
    if (h->record->core.mpos >= h->item.old_pos) {
        khiter_t k = kh_put(waiting, s->waiting, bam_get_qname(h->record), &absent);
        if (absent < 0)
            return lw_fail_memory(err, sizeof k);
        if (absent) {
            kh_val(s->waiting, k) = number;
            h->waits = true;
            return LW_OK;
        }
    }
    s->counts.mates_missing++;
    return join_place(s, h, NULL, err);
}

/* Gives up on mates that should have come before `key`; finds the oldest record that still waits. */
static lw_status expire(lw_realign_order *s, uint64_t key, bool all, lw_error *err)
{
    if (s->oldest < s->head)
        s->oldest = s->head;
    for (; s->oldest < s->tail; s->oldest++) {
        held *h = at(s, s->oldest);
        if (!h->record || !h->waits)
            continue;
        if (!all && key_of(h->record->core.mtid, h->record->core.mpos) >= key)
            return LW_OK;
        stop_waiting(s, s->oldest);
        s->counts.mates_missing++;
        LW_TRY(join_place(s, h, NULL, err));
        LW_TRY(settle(s, s->oldest, err));
    }
    return LW_OK;
}

/* Records head .. tail - 1 have one name. */
static lw_status end_group(lw_realign_order *s, lw_error *err)
{
    held *primary[2] = {NULL, NULL};
    for (int64_t i = s->head; i < s->tail; i++) {
        held *h = at(s, i);
        bool second = h->record->core.flag & BAM_FREAD2;
        if ((h->record->core.flag & BAM_FPAIRED) && lw_is_primary(h->record) && !primary[second])
            primary[second] = h;
    }
    for (int64_t i = s->head; i < s->tail; i++) {
        held *h = at(s, i), *mate = primary[!(h->record->core.flag & BAM_FREAD2)];
        if (!lw_has_placed_mate(h->record) || lw_is_primary(h->record))
            continue;
        if (!mate)
            continue;
        lw_realign_place place = lw_realign_place_of(mate->record, &mate->item);
        LW_TRY(join_place(s, h, &place, err));
    }
    if (primary[0] && primary[1]) {
        LW_TRY(join(s, primary[0], primary[1], err));
    } else if (primary[0] || primary[1]) {
        held *alone = primary[primary[0] ? 0 : 1];
        if (lw_has_placed_mate(alone->record)) {
            s->counts.mates_missing++;
            LW_TRY(join_place(s, alone, NULL, err));
        }
    }
    for (; s->head < s->tail; s->head++) {
        bam1_t *record = at(s, s->head)->record;
        at(s, s->head)->record = NULL;
        LW_TRY(write_one(s, record, err));
    }
    return LW_OK;
}

/* ---- coming in ---------------------------------------------------------------------------------- */

static lw_status grow(lw_realign_order *s, lw_error *err)
{
    int64_t capacity = s->capacity ? 2 * s->capacity : 1024;
    held *queue = malloc((size_t)capacity * sizeof *queue);
    if (!queue)
        return lw_fail_memory(err, (size_t)capacity * sizeof *queue);
    for (int64_t i = s->head; i < s->tail; i++)
        queue[i & (capacity - 1)] = *at(s, i);
    free(s->queue);
    s->queue = queue;
    s->capacity = capacity;
    return LW_OK;
}

/* Whether the record belongs to the group at hand. */
static bool same_group(const lw_realign_order *s, const bam1_t *record)
{
    if (s->head == s->tail)
        return true;
    const char *name = bam_get_qname(record);
    return strcmp(name, "*") != 0 && strcmp(name, bam_get_qname(at(s, s->tail - 1)->record)) == 0;
}

lw_status lw_realign_order_add(lw_realign_order *s, bam1_t **record, const lw_realign_item *item,
                               lw_error *err)
{
    if (!s->o.by_coordinate && !same_group(s, *record))
        LW_TRY(end_group(s, err));
    if (s->tail - s->head == s->capacity)
        LW_TRY(grow(s, err));
    int64_t number = s->tail++;
    held *h = at(s, number);
    *h = (held){.record = *record, .item = *item};
    *record = s->n_spare > 0 ? s->spare[--s->n_spare] : NULL;
    int64_t holding = s->tail - s->head + s->n_heap;
    s->counts.most_held = holding > s->counts.most_held ? holding : s->counts.most_held;
    if (!s->o.by_coordinate)
        return LW_OK;
    uint64_t key = key_before(h);
    if (key < s->last_key)
        return lw_fail(
            err, LW_E_INPUT,
            "%s: record %lld (%.254s) lies before the one that comes before it, but the header says "
            "SO:coordinate: run samtools sort first",
            s->o.file, (long long)number + 1, bam_get_qname(h->record));
    s->last_key = key;
    if (lw_has_placed_mate(h->record))
        LW_TRY(find_mate(s, number, err));
    if (!h->waits)
        LW_TRY(settle(s, number, err));
    LW_TRY(expire(s, key, false, err));
    uint64_t bound = s->oldest < s->tail && at(s, s->oldest)->record && at(s, s->oldest)->waits
                         ? key_before(at(s, s->oldest))
                         : key;
    uint64_t reach = (uint64_t)LW_REALIGN_MOST_PADS * (uint64_t)s->o.pad, place = bound & UINT32_MAX;
    bound -= place < reach ? place : reach;
    return write_before(s, bound, false, err);
}

lw_status lw_realign_order_end(lw_realign_order *s, lw_error *err)
{
    if (!s->o.by_coordinate)
        return end_group(s, err);
    LW_TRY(expire(s, 0, true, err));
    return write_before(s, 0, true, err);
}
