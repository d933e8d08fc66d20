/* search_plan.c - queries over lanes. A query takes ceil(len / LW_SW_COLUMNS) neighbouring lanes; one that
 * needs more than a warp's 32 continues in the next pass, at its first lane, through a border column in
 * memory. */
#include "align/search_plan.h"

#include <stdlib.h>
#include <string.h>

#include "align/search_tuning.h"
#include "common/fail.h"

static int lanes_of(int32_t len)
{
    return (int)(((int64_t)len + LW_SW_COLUMNS - 1) / LW_SW_COLUMNS);
}

static int smallest(int a, int b)
{
    return a < b ? a : b;
}

/* Cost of a pass of `group` lanes. */
static double pass_slots(int form, int group, bool reads)
{
    double row = form == LW_SW_TWO_SUBJECTS ? LW_SW_SLOTS_TWO_SUBJECTS : LW_SW_SLOTS_TWO_QUERIES;
    return (row + (reads ? LW_SW_SLOTS_BORDER : 0)) / (32 / group);
}

static lw_status add_pass(lw_sw_program *p, int group, lw_error *err)
{
    lw_sw_pass *grown = realloc(p->passes, (size_t)(p->n_passes + 1) * sizeof *grown);
    if (!grown)
        return lw_fail_memory(err, (size_t)(p->n_passes + 1) * sizeof *grown);
    p->passes = grown;
    lw_sw_pass *pass = &grown[p->n_passes++];
    memset(pass, 0, sizeof *pass);
    pass->group = group;
    for (int i = 0; i < 32; i++)
        pass->lanes[i] = (lw_sw_lane){.low = -1, .high = -1, .codes = {-1, -1}};
    return LW_OK;
}

/* Lane `at` of the group gets the columns from lane `part` of a query on, in half `half`. */
static void put(lw_sw_pass *pass, int at, int half, int32_t len, int32_t codes, int part, bool reads)
{
    lw_sw_lane *lane = &pass->lanes[at];
    int32_t from = part * LW_SW_COLUMNS;
    lane->codes[half] = codes + from;
    lane->n_codes[half] = smallest(len - from, LW_SW_COLUMNS);
    if (part > 0 && at > 0)
        lane->keep |= half ? 0xffff0000u : 0xffffu;
    if (part > 0 && at == 0 && reads) {
        pass->reads_border = true;
        pass->border_keep |= half ? 0xffff0000u : 0xffffu;
    }
}

/* All groups of the warp like the first; costs. */
static void finish(lw_sw_program *p)
{
    p->slots = 0;
    for (int i = 0; i < p->n_passes; i++) {
        lw_sw_pass *pass = &p->passes[i];
        for (int l = pass->group; l < 32; l++)
            pass->lanes[l] = pass->lanes[l % pass->group];
        if (pass->reads_border) {
            p->border = true;
            p->passes[i - 1].writes_border = true;
        }
        p->slots += pass_slots(p->form, pass->group, pass->reads_border);
    }
}

/* A word that holds one number has no halves: what is said of the low one holds for all of it. */
static void widen(lw_sw_program *p)
{
    for (int i = 0; i < p->n_passes; i++) {
        p->passes[i].border_keep = p->passes[i].border_keep ? 0xffffffffu : 0;
        for (int l = 0; l < 32; l++)
            p->passes[i].lanes[l].keep = p->passes[i].lanes[l].keep ? 0xffffffffu : 0;
    }
}

/* Sizes of the first passes and then of the rest of a query of `lanes` < 32 lanes: one pass, or two where
 * these leave fewer lanes idle. *first = lanes when one is best. */
static void split(int form, int lanes, bool reads, int *first)
{
    double best =
        pass_slots(form, reads && lanes < LW_SW_MIN_CARRY_GROUP ? LW_SW_MIN_CARRY_GROUP : lanes, reads);
    *first = lanes;
    for (int a = LW_SW_MIN_CARRY_GROUP; a < lanes; a++) {
        int b = lanes - a < LW_SW_MIN_CARRY_GROUP ? LW_SW_MIN_CARRY_GROUP : lanes - a;
        double slots = pass_slots(form, a, reads) + pass_slots(form, b, true);
        if (slots < 0.95 * best) {
            best = slots;
            *first = a;
        }
    }
}

lw_status lw_sw_plan_query(lw_sw_program *p, int form, int32_t len, int32_t codes, lw_error *err)
{
    p->form = form;
    int lanes = lanes_of(len);
    for (int done = 0; done < lanes;) {
        int left = lanes - done, take = 32;
        if (left < 32)
            split(form, left, done > 0, &take);
        int group = done > 0 && take < LW_SW_MIN_CARRY_GROUP ? LW_SW_MIN_CARRY_GROUP : take;
        LW_TRY(add_pass(p, group, err));
        lw_sw_pass *pass = &p->passes[p->n_passes - 1];
        take = smallest(take, left);
        for (int l = 0; l < take; l++) {
            put(pass, l, 0, len, codes, done + l, true);
            if (form == LW_SW_TWO_SUBJECTS)
                put(pass, l, 1, len, codes, done + l, true);
        }
        for (int l = take; l < group; l++) /* idle columns hand the maximum on */
            pass->lanes[l].keep = 0xffffffffu;
        done += take;
        if (done == lanes) {
            pass->lanes[group - 1].low = 0;
            pass->lanes[group - 1].high = form == LW_SW_TWO_SUBJECTS ? 1 : -1;
        }
    }
    finish(p);
    if (form == LW_SW_TWO_QUERIES)
        widen(p);
    return LW_OK;
}

typedef struct item {
    int lanes, query;
} item;

static int longer_first(const void *x, const void *y)
{
    const item *a = x, *b = y;
    return a->lanes != b->lanes ? (a->lanes > b->lanes ? -1 : 1) : a->query - b->query;
}

/* Where a query ends: lane `at` of pass `pass` in half `half`. */
static void put_end(lw_sw_pass *pass, int at, int half, int32_t base)
{
    if (half)
        pass->lanes[at].high = base;
    else
        pass->lanes[at].low = base;
}

lw_status lw_sw_plan_pack(lw_sw_program *p, int halves, int n, const int32_t *len, const int32_t *codes,
                          const int32_t *base, lw_error *err)
{
    lw_status status = LW_OK;
    p->form = LW_SW_TWO_QUERIES;
    item *items = malloc((size_t)n * sizeof *items);
    int *used = NULL; /* lanes taken of half h in pass i: used[2 * i + h] */
    int n_passes = 0, whole[2] = {0, 0}, capacity = 1;
    if (!items)
        return lw_fail_memory(err, (size_t)n * sizeof *items);
    for (int i = 0; i < n; i++) {
        items[i] = (item){lanes_of(len[i]), i};
        capacity += items[i].lanes / 32 + 1;
    }
    qsort(items, (size_t)n, sizeof *items, longer_first);
    used = calloc(2 * (size_t)capacity, sizeof *used);
    if (!used) {
        status = lw_fail_memory(err, 2 * (size_t)capacity * sizeof *used);
        goto end;
    }
    for (int i = 0; i < capacity; i++)
        LW_TRY_END(add_pass(p, 32, err));
    /* queries of more than a warp, each from the first lane of a pass on */
    int k = 0;
    for (; k < n && items[k].lanes > 32; k++) {
        int half = halves == 2 && whole[1] < whole[0], q = items[k].query;
        for (int done = 0; done < items[k].lanes; done += 32, whole[half]++) {
            int take = smallest(32, items[k].lanes - done);
            for (int l = 0; l < take; l++)
                put(&p->passes[whole[half]], l, half, len[q], codes[q], done + l, true);
            used[2 * whole[half] + half] = take;
            if (done + take == items[k].lanes)
                put_end(&p->passes[whole[half]], take - 1, half, base[q]);
        }
    }
    n_passes = whole[0] > whole[1] ? whole[0] : whole[1];
    /* the others, longest first, into the first pass with room, there into the emptier half */
    for (; k < n; k++) {
        int best = -1, q = items[k].query, lanes = items[k].lanes;
        for (int i = 0; best < 0; i++) {
            for (int h = 0; h < halves; h++)
                if (used[2 * i + h] + lanes <= 32 && (best < 0 || used[2 * i + h] < used[best]))
                    best = 2 * i + h;
            n_passes = best >= 0 && i >= n_passes ? i + 1 : n_passes;
        }
        for (int l = 0; l < lanes; l++)
            put(&p->passes[best / 2], used[best] + l, best & 1, len[q], codes[q], l, false);
        used[best] += lanes;
        put_end(&p->passes[best / 2], used[best] - 1, best & 1, base[q]);
    }
    p->n_passes = n_passes;
    for (int i = 0; i < n_passes; i++) {
        lw_sw_pass *pass = &p->passes[i];
        int a = used[2 * i], b = used[2 * i + 1];
        bool goes_on = i + 1 < n_passes && p->passes[i + 1].reads_border;
        pass->group = goes_on ? 32 : a > b ? a : b;
        if (pass->reads_border && pass->group < LW_SW_MIN_CARRY_GROUP)
            pass->group = LW_SW_MIN_CARRY_GROUP;
    }
    finish(p);
    if (halves == 1)
        widen(p);
end:
    free(items);
    free(used);
    return status;
}
