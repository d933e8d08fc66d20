/* realign_mates.c - what a moved record changes in its mate: PNEXT, MC and TLEN. */
#include "align/realign.h"

#include <stdlib.h>
#include <string.h>
#include <htslib/khash.h>

#include "align/realign_tuning.h"
#include "common/fail.h"

lw_realign_place lw_realign_place_of(const bam1_t *record, const lw_realign_item *item)
{
    const bam1_core_t *c = &record->core;
    lw_realign_place place = {.target = c->tid,
                              .old_start = item->old_pos,
                              .old_end = item->old_end,
                              .start = (int32_t)c->pos,
                              .mapped = !(c->flag & BAM_FUNMAP),
                              .reverse = c->flag & BAM_FREVERSE,
                              .changed = item->changed,
                              .cigar = bam_get_cigar(record),
                              .n_cigar = c->n_cigar};
    place.end = place.start + (int32_t)bam_cigar2rlen((int)c->n_cigar, place.cigar);
    return place;
}

int lw_mate_side(const bam1_t *record, int32_t old_pos)
{
    const bam1_core_t *c = &record->core;
    if (c->mtid != c->tid)
        return c->mtid > c->tid ? 1 : -1;
    int64_t distance = (int64_t)c->mpos - old_pos;
    return distance > LW_REALIGN_REACH ? 1 : distance < -LW_REALIGN_REACH ? -1 : 0;
}

/* ---- template length -------------------------------------------------------------------------- */

typedef struct span {
    int64_t start, end;
    bool reverse;
} span;

static int64_t five_prime(const span *s)
{
    return s->reverse ? s->end : s->start;
}

/* The customs by which programs write TLEN of a in a pair with b; they differ where the mates do not face
 * each other. */
static int64_t template_length(int custom, const span *a, const span *b, int64_t old)
{
    int64_t distance;
    switch (custom) {
    case 0: /* samtools fixmate: between the outer sides of the 5' letters */
        return five_prime(b) - five_prime(a);
    case 1: /* bwa, minimap2: letters from one 5' letter to the other */
        distance = (five_prime(b) - b->reverse) - (five_prime(a) - a->reverse);
        return distance > 0 ? distance + 1 : distance < 0 ? distance - 1 : 0;
    default: /* the leftmost letter to the rightmost; which mate has the sign is seen where both start alike
              */
        distance = (a->end > b->end ? a->end : b->end) - (a->start < b->start ? a->start : b->start);
        return a->start < b->start || (a->start == b->start && old > 0) ? distance : -distance;
    }
}

static int64_t new_template_length(int64_t old, const lw_realign_place *own, const lw_realign_place *mate)
{
    enum { CUSTOMS = 3 };
    span a_old = {own->old_start, own->old_end, own->reverse}, a_new = {own->start, own->end, own->reverse};
    if (mate) {
        span b_old = {mate->old_start, mate->old_end, mate->reverse},
             b_new = {mate->start, mate->end, mate->reverse};
        for (int custom = 0; custom < CUSTOMS; custom++)
            if (template_length(custom, &a_old, &b_old, old) == old)
                return template_length(custom, &a_new, &b_new, old);
        old += five_prime(&b_new) - five_prime(&b_old);
    }
    return old - (five_prime(&a_new) - five_prime(&a_old));
}

/* ---- fields ----------------------------------------------------------------------------------- */

static lw_status update_mc(bam1_t *record, const lw_realign_place *mate, bool *touched, lw_error *err)
{
    const uint8_t *old = bam_aux_get(record, "MC");
    if (!old || *old != 'Z')
        return LW_OK;
    kstring_t text = {0};
    lw_status status = lw_path_text(mate->cigar, mate->n_cigar, &text) ? lw_fail_memory(err, text.l) : LW_OK;
    if (status == LW_OK && strcmp(bam_aux2Z(old), text.s) != 0) {
        *touched = true;
        if (bam_aux_update_str(record, "MC", (int)text.l + 1, text.s) < 0)
            status = lw_fail_memory(err, text.l);
    }
    ks_free(&text);
    return status;
}

lw_status lw_realign_update_mate(bam1_t *record, const lw_realign_place *own, const lw_realign_place *mate,
                                 int64_t *updated, lw_error *err)
{
    bam1_core_t *c = &record->core;
    bool touched = false, mate_changed = mate && mate->mapped && mate->changed;
    if (!own->changed && !mate_changed)
        return LW_OK;
    if (mate_changed && c->mtid == mate->target && c->mpos == mate->old_start &&
        mate->start != mate->old_start) {
        if (!own->mapped && c->tid == c->mtid && c->pos == c->mpos) {
            c->pos = mate->start;
            c->bin = (uint16_t)hts_reg2bin(c->pos, c->pos + 1, 14, 5);
        }
        c->mpos = mate->start;
        touched = true;
    }
    /* an unmapped mate stands at this record's place */
    if ((c->flag & BAM_FMUNMAP) && c->mtid == own->target && c->mpos == own->old_start &&
        own->start != own->old_start) {
        c->mpos = own->start;
        touched = true;
    }
    if (mate_changed)
        LW_TRY(update_mc(record, mate, &touched, err));
    if (c->isize != 0 && own->mapped && !(c->flag & BAM_FMUNMAP) && c->tid == c->mtid) {
        int64_t length = new_template_length(c->isize, own, mate);
        touched = touched || length != c->isize;
        c->isize = length;
    }
    *updated += touched;
    return LW_OK;
}

/* ---- mates far away --------------------------------------------------------------------------- */

typedef struct entry {
    lw_realign_place place;
    char *key;        /* '1' or '2', then the name */
    uint32_t cigar[]; /* place.n_cigar operations */
} entry;

KHASH_MAP_INIT_STR(distant, entry *)

struct lw_distant {
    khash_t(distant) * map;
    kstring_t key; /* of the look-up in hand */
};

lw_status lw_distant_open(lw_distant **out, lw_error *err)
{
    lw_distant *table = calloc(1, sizeof *table);
    if (table)
        table->map = kh_init(distant);
    if (!table || !table->map) {
        free(table);
        return lw_fail_memory(err, sizeof *table);
    }
    *out = table;
    return LW_OK;
}

static void free_entry(entry *e)
{
    free(e->key);
    free(e);
}

void lw_distant_close(lw_distant *table)
{
    if (!table)
        return;
    for (khiter_t k = kh_begin(table->map); k != kh_end(table->map); k++)
        if (kh_exist(table->map, k))
            free_entry(kh_val(table->map, k));
    kh_destroy(distant, table->map);
    ks_free(&table->key);
    free(table);
}

/* The key of a read or of its mate, in `key`. Non-zero when memory is out. */
static int make_key(kstring_t *key, const bam1_t *record, bool mate)
{
    bool second = ((record->core.flag & BAM_FREAD2) != 0) != mate;
    key->l = 0;
    return kputc(second ? '2' : '1', key) < 0 || kputs(bam_get_qname(record), key) < 0;
}

lw_status lw_distant_add(lw_distant *table, const bam1_t *record, const lw_realign_item *item, lw_error *err)
{
    lw_realign_place place = lw_realign_place_of(record, item);
    size_t size = sizeof(entry) + (size_t)place.n_cigar * sizeof(uint32_t);
    entry *e = malloc(size);
    if (!e)
        return lw_fail_memory(err, size);
    memcpy(e->cigar, place.cigar, (size_t)place.n_cigar * sizeof(uint32_t));
    place.cigar = e->cigar;
    e->place = place;
    int absent = -1;
    e->key = make_key(&table->key, record, false) ? NULL : strdup(table->key.s);
    khiter_t k = e->key ? kh_put(distant, table->map, e->key, &absent) : 0;
    if (absent < 0) {
        free_entry(e);
        return lw_fail_memory(err, size);
    }
    if (!absent) { /* two reads of one name: the later one counts */
        free_entry(kh_val(table->map, k));
        kh_key(table->map, k) = e->key;
    }
    kh_val(table->map, k) = e;
    return LW_OK;
}

static khiter_t find_mate(const lw_distant *table, const bam1_t *record)
{
    kstring_t *key = (kstring_t *)&table->key;
    return make_key(key, record, true) ? kh_end(table->map) : kh_get(distant, table->map, key->s);
}

const lw_realign_place *lw_distant_mate(const lw_distant *table, const bam1_t *record)
{
    khiter_t k = find_mate(table, record);
    if (k == kh_end(table->map))
        return NULL;
    const lw_realign_place *place = &kh_val(table->map, k)->place;
    return place->target == record->core.mtid && place->old_start == record->core.mpos ? place : NULL;
}

void lw_distant_drop_mate(lw_distant *table, const bam1_t *record)
{
    khiter_t k = find_mate(table, record);
    if (k == kh_end(table->map))
        return;
    free_entry(kh_val(table->map, k));
    kh_del(distant, table->map, k);
}
