/* search_cpu_layout.c - subjects laid out over the lanes of vectors. */
#include <stdlib.h>
#include <string.h>

#include "align/search_cpu.h"
#include "common/fail.h"

lw_status lw_scan_reserve(void *array, int64_t *capacity, int64_t wanted, size_t each, lw_error *err)
{
    void **at = array;
    if (wanted <= *capacity && *at)
        return LW_OK;
    size_t bytes = ((size_t)wanted * each / LW_SEARCH_VEC_MAX + 1) * LW_SEARCH_VEC_MAX;
    free(*at);
    *at = aligned_alloc(LW_SEARCH_VEC_MAX, bytes);
    if (!*at) {
        *capacity = 0;
        return lw_fail_memory(err, bytes);
    }
    *capacity = wanted;
    return LW_OK;
}

static int32_t blocks_of(const lw_scan *c, int32_t len)
{
    return (len - 1) / c->kernels->columns + 1;
}

enum { FOUR = 4 };

/* Four letters as a number, the first one lowest. */
static uint32_t four_letters(const uint8_t codes[FOUR])
{
    return ((uint32_t)codes[0] | (uint32_t)codes[1] << 8 | (uint32_t)codes[2] << 16 |
            (uint32_t)codes[3] << 24) &
           0x1f1f1f1f;
}

/* The last letters of a subject, fewer than four or none, and pads. */
static uint32_t last_letters(const uint8_t *codes, int32_t left)
{
    uint8_t four[FOUR] = {LW_DATABASE_PAD, LW_DATABASE_PAD, LW_DATABASE_PAD, LW_DATABASE_PAD};
    for (int32_t k = 0; k < left; k++)
        four[k] = codes[k];
    return four_letters(four);
}

/* Four lanes of bytes: row l of x is a lane and becomes column l of four, as a transpose of 4 x 4 bytes. */
static void put_bytes(uint8_t *to, int vector, const uint32_t x[4])
{
    const uint32_t even = 0x00ff00ff;
    uint32_t a02 = (x[0] & even) | (x[1] & even) << 8, a13 = (x[0] >> 8 & even) | (x[1] & ~even);
    uint32_t b02 = (x[2] & even) | (x[3] & even) << 8, b13 = (x[2] >> 8 & even) | (x[3] & ~even);
    uint32_t column[FOUR] = {(a02 & 0xffff) | b02 << 16, (a13 & 0xffff) | b13 << 16,
                             a02 >> 16 | (b02 & 0xffff0000), a13 >> 16 | (b13 & 0xffff0000)};
    for (int k = 0; k < FOUR; k++)
        for (int l = 0; l < 4; l++)
            to[k * vector + l] = (uint8_t)(column[k] >> 8 * l);
}

/* Wider lanes: each of their bytes is the letter. */
static void put_wide(uint8_t *to, int vector, int width, const uint32_t x[4])
{
    for (int l = 0; l < 4; l++)
        for (int k = 0; k < FOUR; k++)
            memset(to + k * vector + (l << width), (int)(x[l] >> 8 * k & 0xff), (size_t)1 << width);
}

/* The letters of the plan, whose events tell which subject each lane has at which block. */
static void write_letters(const lw_scan *c, const lw_search_plan *plan, int width, const int32_t *subjects)
{
    /* Short pieces from all over the database: fetched a few subjects ahead, or every one begins with a miss.
     */
    enum { AHEAD = 12, PREFETCH_LETTERS = 1024, CACHE_LINE = 64 };
    const lw_database_view *db = c->setup.database;
    int vector = c->kernels->vector_bytes, lanes = vector >> width;
    const uint8_t *codes[LW_SEARCH_VEC_MAX] = {NULL};
    int32_t left[LW_SEARCH_VEC_MAX] = {0};
    uint8_t *to = plan->letters;
    int64_t event = 0;
    const int columns = c->kernels->columns;
    for (int64_t four = 0; four < plan->n_blocks * columns / FOUR; four++, to += FOUR * vector) {
        int64_t block = four * FOUR / columns;
        for (; event < plan->n_events && plan->events[event].block == block; event++) {
            int32_t subject = subjects[plan->events[event].next], lane = plan->events[event].lane;
            codes[lane] = db->codes + db->start[subject];
            left[lane] = db->len[subject];
            if (event + AHEAD < plan->n_events) {
                int32_t coming = subjects[plan->events[event + AHEAD].next];
                for (int32_t k = 0; k < db->len[coming] && k < PREFETCH_LETTERS; k += CACHE_LINE)
                    __builtin_prefetch(db->codes + db->start[coming] + k);
            }
        }
        for (int lane = 0; lane < lanes; lane += 4) {
            uint32_t x[4];
            for (int l = 0; l < 4; l++) {
                if (left[lane + l] >= FOUR) {
                    x[l] = four_letters(codes[lane + l]);
                    codes[lane + l] += FOUR;
                    left[lane + l] -= FOUR;
                } else {
                    x[l] = last_letters(codes[lane + l], left[lane + l]);
                    left[lane + l] = 0;
                }
            }
            if (width == LW_SCAN_8)
                put_bytes(to + lane, vector, x);
            else
                put_wide(to + (lane << width), vector, width, x);
        }
    }
}

lw_status lw_scan_lay_out(const lw_scan *c, lw_scan_worker *w, int width, const int32_t *subjects, int64_t n,
                          lw_error *err)
{
    const lw_database_view *db = c->setup.database;
    int vector = c->kernels->vector_bytes, lanes = vector >> width;
    lw_search_plan *plan = &w->plan;
    int32_t free_at[LW_SEARCH_VEC_MAX] = {0}, last[LW_SEARCH_VEC_MAX];
    LW_TRY(lw_scan_reserve(&plan->events, &w->events_capacity, n + lanes, sizeof *plan->events, err));
    plan->n_events = 0;
    for (int lane = 0; lane < lanes; lane++)
        last[lane] = -1;
    for (int64_t i = 0; i < n; i++) {
        int lane = 0;
        for (int l = 1; l < lanes; l++)
            lane = free_at[l] < free_at[lane] ? l : lane;
        plan->events[plan->n_events++] =
            (lw_search_event){.block = free_at[lane], .lane = lane, .done = last[lane], .next = (int32_t)i};
        last[lane] = (int32_t)i;
        free_at[lane] += blocks_of(c, db->len[subjects[i]]);
    }
    plan->n_blocks = 0;
    for (int lane = 0; lane < lanes; lane++)
        plan->n_blocks = free_at[lane] > plan->n_blocks ? free_at[lane] : plan->n_blocks;
    int64_t bytes = plan->n_blocks * c->kernels->columns * vector;
    LW_TRY(lw_scan_reserve(&plan->letters, &w->letters_capacity, bytes, 1, err));
    write_letters(c, plan, width, subjects);
    for (int lane = 0; lane < lanes; lane++)
        plan->events[plan->n_events++] =
            (lw_search_event){.block = (int32_t)plan->n_blocks, .lane = lane, .done = last[lane], .next = -1};
    return LW_OK;
}
