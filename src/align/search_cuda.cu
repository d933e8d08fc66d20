/* search_cuda.cu - the database search on a CUDA device: memory, chunks of the database, and the order of
 * steps.
 *
 * The database is cut into chunks that fit the device; chunks stay there when all fit, else two places take
 * turns and the next chunk travels while this one is searched. Queries are grouped into packs; a pack against
 * a chunk is a unit of work, of which LW_SW_SLOTS are in flight. A unit runs without waiting for the host:
 *
 *   first run    all pairs of subjects, in the first arithmetic of the policy's ladder. With DPX its scores
 * are bounds from below (see search_kernels.cuh), but exact for long subjects; select       pairs whose bound
 * reaches the top_n-th best or the least score; second runs  those again, exactly; what a narrow type cannot
 * hold, again in the next arithmetic of the ladder; hits         the best top_n of the unit, which the host
 * merges with those of the other chunks. */
#include "align/search_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "align/search_plan.h"
#include "align/search_select.h"
#include "align/search_top.h"
#include "align/search_tuning.h"
#include "common/cuda_check.h"

/* ---- memory
 * --------------------------------------------------------------------------------------------------- */

typedef struct buffer {
    char *at;
    size_t bytes;
} buffer;

/* Makes room for `bytes`, growing by copies of nothing: what was there is lost. */
static lw_status need_device(buffer *b, size_t bytes, lw_error *err)
{
    if (b->bytes >= bytes)
        return LW_OK;
    cudaFree(b->at);
    *b = {NULL, 0};
    void *p;
    LW_CUDA_TRY(err, "reserving device memory for the search", cudaMalloc(&p, bytes));
    *b = {(char *)p, bytes};
    return LW_OK;
}

static lw_status need_pinned(buffer *b, size_t bytes, lw_error *err)
{
    if (b->bytes >= bytes)
        return LW_OK;
    cudaFreeHost(b->at);
    *b = {NULL, 0};
    void *p;
    LW_CUDA_TRY(err, "reserving pinned memory", cudaMallocHost(&p, bytes));
    *b = {(char *)p, bytes};
    return LW_OK;
}

/* Cuts arrays out of a buffer, 256 bytes apart; with at = NULL it only counts. */
typedef struct cutter {
    char *at;
    size_t used;
} cutter;

template <typename T> static T *cut(cutter *c, T *, size_t n)
{
    size_t from = c->used;
    c->used += (n * sizeof(T) + 255) & ~(size_t)255;
    return c->at ? (T *)(c->at + from) : NULL;
}

/* ---- context
 * ---------------------------------------------------------------------------------------------------- */

enum { MAX_LISTS = 8, LONG_COUNT = 0, REST_COUNT = 1 };

/* Segments of a chunk, for one size of groups: long pairs first (exact at once), then the rest. */
typedef struct segment_list {
    bool made;
    int rows, overlap; /* the key: rows of a segment; overlap of the pieces of long subjects, 0: not cut */
    int32_t n_long, n_rest, n_folds, n_pieces;
    int32_t long_pairs;
    buffer memory;
    lw_sw_segment *segments; /* device; long first */
    lw_sw_fold *folds;
    int32_t *counts; /* device: LONG_COUNT, REST_COUNT */
} segment_list;

/* Where a chunk lives on the device. */
typedef struct place {
    int64_t chunk; /* -1: none */
    buffer memory;
    uint8_t *stream;
    uint32_t *first_row;
    uint32_t *host_first_row;
    int64_t host_capacity;
    segment_list lists[MAX_LISTS];
    cudaEvent_t ready;
    cudaEvent_t used[LW_SW_SLOTS]; /* last unit of each slot that reads it */
} place;

typedef struct chunk {
    int64_t first, n; /* subjects */
    int64_t letters, rows;
    int32_t n_pairs;
} chunk;

/* Queries that run together. */
typedef struct pack {
    int n;
    int64_t *queries; /* of the request */
    bool filter;
} pack;

typedef struct slot {
    cudaStream_t stream, aside;
    cudaEvent_t begin, fork, join, end;
    buffer device, border, pinned, hits;
    bool busy;
    /* of the unit in flight */
    const pack *pack;
    const chunk *chunk;
    const int32_t *host_counts; /* pinned: LW_SW_COUNTS per query, then the number of hits */
    const lw_search_hit *device_hits;
} slot;

typedef struct context {
    lw_search_setup setup;
    int multiprocessors, shared_bytes;
    int64_t budget;
    int ladder[LW_SW_LEVELS], n_levels;
    int32_t limit[LW_SW_LEVELS];
    bool tiles; /* the first run may bound scores from above */
    int32_t open_extend, extend;
    int n_classes; /* letters of the kernels; the pad comes after them */
    uint8_t class_of[256];
    int16_t class_scores[LW_MAX_LETTERS * LW_MAX_LETTERS]; /* [query code * 32 + class] */
    int32_t row_best[LW_MAX_LETTERS];                      /* highest score of a query letter */
    buffer tables;
    uint8_t *device_class_of;
    int16_t *device_scores;
    int64_t n_chunks;
    chunk *chunks;
    bool resident;
    int n_places;
    place *places;
    buffer raw, staging[2];
    cudaEvent_t staged[2];
    cudaStream_t upload;
    slot slots[LW_SW_SLOTS];
    cudaEvent_t origin; /* of the search in progress */
    cudaEvent_t turn;   /* the first run of the last unit begins its last pass */
    double busy_until;  /* milliseconds after origin: end of the busy time counted so far */
} context;

/* Letters whose scores agree against every query letter are one letter to the kernels. */
static void make_classes(context *c)
{
    const lw_scoring *sc = c->setup.scoring;
    for (int t = 0; t < sc->n_letters; t++) {
        int k = 0;
        for (; k < c->n_classes; k++) {
            bool same = true;
            for (int q = 0; q < sc->n_letters && same; q++)
                same = c->class_scores[q * 32 + k] == sc->score[q * LW_MAX_LETTERS + t];
            if (same)
                break;
        }
        if (k == c->n_classes) {
            for (int q = 0; q < sc->n_letters; q++)
                c->class_scores[q * 32 + k] = sc->score[q * LW_MAX_LETTERS + t];
            c->n_classes++;
        }
        c->class_of[t] = (uint8_t)k;
    }
    for (int q = 0; q < sc->n_letters; q++)
        for (int k = 0; k < c->n_classes; k++)
            if (c->row_best[q] < c->class_scores[q * 32 + k])
                c->row_best[q] = c->class_scores[q * 32 + k];
}

/* How much a maximum kept in every LW_SW_EVERY-th row may miss: open_extend one row below the best cell, one
 * extension for each row more. */
static int32_t first_run_bound(const context *c)
{
    return c->open_extend + (LW_SW_EVERY - 2) * c->extend;
}

/* The arithmetics of a policy that fit the scores. A type that holds 0 .. capacity - 1 is right as long as
 * all H stay below its limit: the first H to reach the limit comes from one below it, so it is at most limit
 * - 1 + max_score = capacity - 1 and is seen. Differences: |G| <= open_extend, |G + s'| <= |min_score| or
 * capacity. */
static void make_ladder(context *c, int policy)
{
    const lw_scoring *sc = c->setup.scoring;
    int32_t high = 0, low = 0;
    for (int q = 0; q < sc->n_letters; q++)
        for (int t = 0; t < sc->n_letters; t++) {
            int32_t s = sc->score[q * LW_MAX_LETTERS + t];
            high = s > high ? s : high;
            low = s < low ? s : low;
        }
    int32_t o = c->open_extend;
    /* 2048 values hold every sum if none of the terms comes near; at least 256 scores are told apart */
    bool halves = o <= 1000 && high <= 1000 && low >= -1000 && 2048 - high - first_run_bound(c) >= 256;
    bool shorts = o <= 8000 && high <= 8000 && low >= -8000;
    c->tiles = o == LW_SW_TILE_OPEN && c->extend == LW_SW_TILE_EXTEND && high <= LW_SW_TILE_HIGH;
    if (policy == LW_CUDA_DPX && halves) {
        c->limit[c->n_levels] = 2048 - high;
        c->ladder[c->n_levels++] = LW_SW_HALF;
    }
    if (policy == LW_CUDA_DPX && shorts) {
        c->limit[c->n_levels] = 32768 - high;
        c->ladder[c->n_levels++] = LW_SW_S16;
    }
    if (policy == LW_CUDA_HALF2 && halves) {
        c->limit[c->n_levels] = 2048 - high;
        c->ladder[c->n_levels++] = LW_SW_REAL;
    }
    c->limit[c->n_levels] = INT32_MAX; /* the driver of the search has checked that scores fit */
    c->ladder[c->n_levels++] = LW_SW_S32;
}

/* Pairs of a chunk begin at an even subject of the view. */
static lw_status make_chunks(context *c, lw_error *err)
{
    const lw_database_view *db = c->setup.database;
    int64_t letters = c->budget / LW_SW_CHUNK_SHARE;
    if (letters > LW_SW_CHUNK_LETTERS)
        letters = LW_SW_CHUNK_LETTERS;
    /* two chunks at least, so that the few long runs at the end of one go beside the many of the other */
    if (letters > db->letters * 2 / 3 && db->letters > LW_SW_SPLIT_LETTERS)
        letters = db->letters * 2 / 3;
    int64_t capacity = 0;
    for (int64_t i = 0; i < db->n;) {
        chunk k = {i, 0, 0, 2 * LW_SW_PAD_ROWS + 1, 0};
        while (i < db->n && (k.n == 0 || k.letters + 2 * (int64_t)db->len[i] <= letters)) {
            int64_t m = db->n - i < 2 ? 1 : 2;
            k.letters += db->len[i] + (m == 2 ? db->len[i + 1] : 0);
            k.rows += db->len[i] + 1;
            k.n += m;
            k.n_pairs++;
            i += m;
        }
        /* lanes that are through read on while others of their warp are at work */
        k.rows += db->len[k.first] + LW_SW_ROWS_LARGE_GROUP;
        if (k.rows >= INT32_MAX || k.letters >= UINT32_MAX)
            return lw_fail(err, LW_E_RANGE,
                           "a sequence of %d letters is too long for the GPU search: use --backend cpu",
                           db->len[k.first]);
        if (c->n_chunks == capacity) {
            capacity = 2 * capacity + 4;
            chunk *grown = (chunk *)realloc(c->chunks, (size_t)capacity * sizeof *grown);
            if (!grown)
                return lw_fail_memory(err, (size_t)capacity * sizeof *grown);
            c->chunks = grown;
        }
        c->chunks[c->n_chunks++] = k;
    }
    return LW_OK;
}

static size_t place_bytes(const chunk *k)
{
    cutter count = {};
    cut(&count, (uint8_t *)0, 2 * (size_t)k->rows);
    cut(&count, (uint32_t *)0, (size_t)k->n_pairs + 1);
    return count.used;
}

extern "C" void lw_search_cuda_close(void *opened)
{
    context *c = (context *)opened;
    if (!c)
        return;
    cudaSetDevice(c->setup.device);
    cudaDeviceSynchronize();
    for (int i = 0; c->places && i < c->n_places; i++) {
        place *p = &c->places[i];
        for (int l = 0; l < MAX_LISTS; l++)
            cudaFree(p->lists[l].memory.at);
        cudaFree(p->memory.at);
        free(p->host_first_row);
        if (p->ready)
            cudaEventDestroy(p->ready);
        for (int s = 0; s < LW_SW_SLOTS; s++)
            if (p->used[s])
                cudaEventDestroy(p->used[s]);
    }
    for (int i = 0; i < LW_SW_SLOTS; i++) {
        slot *s = &c->slots[i];
        cudaFree(s->device.at), cudaFree(s->border.at);
        cudaFreeHost(s->pinned.at), cudaFreeHost(s->hits.at);
        cudaEvent_t events[] = {s->begin, s->fork, s->join, s->end};
        for (cudaEvent_t e : events)
            if (e)
                cudaEventDestroy(e);
        if (s->stream)
            cudaStreamDestroy(s->stream);
        if (s->aside)
            cudaStreamDestroy(s->aside);
    }
    for (int i = 0; i < 2; i++) {
        cudaFreeHost(c->staging[i].at);
        if (c->staged[i])
            cudaEventDestroy(c->staged[i]);
    }
    if (c->origin)
        cudaEventDestroy(c->origin);
    if (c->turn)
        cudaEventDestroy(c->turn);
    if (c->upload)
        cudaStreamDestroy(c->upload);
    cudaFree(c->raw.at), cudaFree(c->tables.at);
    free(c->places), free(c->chunks);
    free(c);
}

static lw_status open_streams(context *c, lw_error *err)
{
    const char *what = "preparing streams";
    LW_CUDA_TRY(err, what, cudaStreamCreateWithFlags(&c->upload, cudaStreamNonBlocking));
    LW_CUDA_TRY(err, what, cudaEventCreate(&c->origin));
    LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&c->turn, cudaEventDisableTiming));
    int least, greatest;
    LW_CUDA_TRY(err, what, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int i = 0; i < 2; i++)
        LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&c->staged[i], cudaEventDisableTiming));
    for (int i = 0; i < LW_SW_SLOTS; i++) {
        slot *s = &c->slots[i];
        LW_CUDA_TRY(err, what, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
        LW_CUDA_TRY(err, what, cudaStreamCreateWithPriority(&s->aside, cudaStreamNonBlocking, greatest));
        LW_CUDA_TRY(err, what, cudaEventCreate(&s->begin));
        LW_CUDA_TRY(err, what, cudaEventCreate(&s->end));
        LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&s->fork, cudaEventDisableTiming));
        LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&s->join, cudaEventDisableTiming));
    }
    for (int i = 0; i < c->n_places; i++) {
        place *p = &c->places[i];
        p->chunk = -1;
        LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&p->ready, cudaEventDisableTiming));
        for (int s = 0; s < LW_SW_SLOTS; s++)
            LW_CUDA_TRY(err, what, cudaEventCreateWithFlags(&p->used[s], cudaEventDisableTiming));
    }
    return LW_OK;
}

static lw_status open_context(context *c, int policy, lw_error *err)
{
    int device = c->setup.device;
    LW_CUDA_TRY(err, "choosing the device", cudaSetDevice(device));
    LW_CUDA_TRY(err, "asking the device",
                cudaDeviceGetAttribute(&c->multiprocessors, cudaDevAttrMultiProcessorCount, device));
    LW_CUDA_TRY(err, "asking the device",
                cudaDeviceGetAttribute(&c->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    size_t free_bytes, total_bytes;
    LW_CUDA_TRY(err, "asking for free memory", cudaMemGetInfo(&free_bytes, &total_bytes));
    c->budget = (int64_t)free_bytes - LW_SW_RESERVE;
    if (c->setup.device_bytes > 0 && c->setup.device_bytes < c->budget)
        c->budget = c->setup.device_bytes;
    const lw_scoring *sc = c->setup.scoring;
    c->extend = sc->gap_extend;
    c->open_extend = sc->gap_open + sc->gap_extend;
    make_classes(c);
    make_ladder(c, policy);
    LW_TRY(make_chunks(c, err));
    int64_t bytes = 0;
    for (int64_t i = 0; i < c->n_chunks; i++)
        bytes += (int64_t)place_bytes(&c->chunks[i]);
    c->resident = bytes <= c->budget / 3;
    c->n_places = c->resident || c->n_chunks < 2 ? (int)c->n_chunks : 2;
    c->places = (place *)calloc((size_t)c->n_places + 1, sizeof *c->places);
    if (!c->places)
        return lw_fail_memory(err, (size_t)c->n_places * sizeof *c->places);
    LW_TRY(open_streams(c, err));
    cutter count = {};
    cut(&count, (uint8_t *)0, 256);
    cut(&count, (int16_t *)0, sizeof c->class_scores / 2);
    LW_TRY(need_device(&c->tables, count.used, err));
    cutter tables = {c->tables.at, 0};
    c->device_class_of = cut(&tables, (uint8_t *)0, 256);
    c->device_scores = cut(&tables, (int16_t *)0, sizeof c->class_scores / 2);
    LW_CUDA_TRY(err, "copying scores",
                cudaMemcpy(c->device_class_of, c->class_of, 256, cudaMemcpyHostToDevice));
    LW_CUDA_TRY(
        err, "copying scores",
        cudaMemcpy(c->device_scores, c->class_scores, sizeof c->class_scores, cudaMemcpyHostToDevice));
    return LW_OK;
}

extern "C" lw_status lw_search_cuda_open(const lw_search_backend *self, void **out,
                                         const lw_search_setup *setup, lw_error *err)
{
    context *c = (context *)calloc(1, sizeof *c);
    if (!c)
        return lw_fail_memory(err, sizeof *c);
    c->setup = *setup;
    lw_status status = open_context(c, self->base.policy, err);
    if (status != LW_OK) {
        lw_search_cuda_close(c);
        return status;
    }
    *out = c;
    return LW_OK;
}

/* ---- the database on the device
 * ----------------------------------------------------------------------------- */

typedef struct copy_task {
    char *to;
    const char *from;
    size_t bytes;
} copy_task;

static const size_t COPY_PIECE = 1 << 20;

static lw_status copy_piece(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const copy_task *t = (const copy_task *)arg;
    size_t at = (size_t)i * COPY_PIECE, n = t->bytes - at < COPY_PIECE ? t->bytes - at : COPY_PIECE;
    memcpy(t->to + at, t->from + at, n);
    return LW_OK;
}

/* Letters of a chunk, one subject after another, into c->raw. */
static lw_status upload_letters(context *c, const chunk *k, lw_error *err)
{
    const lw_database_view *db = c->setup.database;
    LW_TRY(need_device(&c->raw, (size_t)k->letters + 256, err));
    int64_t subject = k->first, within = 0, sent = 0;
    for (int b = 0; sent < k->letters; b ^= 1) {
        LW_TRY(need_pinned(&c->staging[b], LW_SW_STAGING, err));
        LW_CUDA_TRY(err, "copying the database", cudaEventSynchronize(c->staged[b]));
        int64_t filled = 0;
        if (db->packed) {
            filled = k->letters - sent < LW_SW_STAGING ? k->letters - sent : LW_SW_STAGING;
            copy_task task = {c->staging[b].at, (const char *)db->codes + db->start[k->first] + sent,
                              (size_t)filled};
            LW_TRY(lw_pool_for(c->setup.pool, (filled + (int64_t)COPY_PIECE - 1) / (int64_t)COPY_PIECE,
                               copy_piece, &task, err));
        } else {
            while (filled < LW_SW_STAGING && subject < k->first + k->n) {
                int64_t left = db->len[subject] - within, room = LW_SW_STAGING - filled;
                int64_t n = left < room ? left : room;
                memcpy(c->staging[b].at + filled, db->codes + db->start[subject] + within, (size_t)n);
                filled += n;
                within += n;
                if (within == db->len[subject]) {
                    subject++;
                    within = 0;
                }
            }
        }
        LW_CUDA_TRY(err, "copying the database",
                    cudaMemcpyAsync(c->raw.at + sent, c->staging[b].at, (size_t)filled,
                                    cudaMemcpyHostToDevice, c->upload));
        LW_CUDA_TRY(err, "copying the database", cudaEventRecord(c->staged[b], c->upload));
        sent += filled;
    }
    return LW_OK;
}

/* Puts chunk k on the device, if it is not there. */
static lw_status fetch_chunk(context *c, int64_t index, place **out, lw_error *err)
{
    place *p = *out = &c->places[index % c->n_places];
    if (p->chunk == index)
        return LW_OK;
    const chunk *k = &c->chunks[index];
    const lw_database_view *db = c->setup.database;
    lw_status status = LW_OK;
    uint32_t *start = NULL;
    if (p->memory.bytes < place_bytes(k)) /* growing frees: nothing may be reading */
        LW_CUDA_TRY(err, "waiting for the device", cudaDeviceSynchronize());
    LW_TRY(need_device(&p->memory, place_bytes(k), err));
    cutter memory = {p->memory.at, 0};
    p->chunk = -1;
    p->stream = cut(&memory, (uint8_t *)0, 2 * (size_t)k->rows);
    p->first_row = cut(&memory, (uint32_t *)0, (size_t)k->n_pairs + 1);
    for (int l = 0; l < MAX_LISTS; l++)
        p->lists[l].made = false;
    if (p->host_capacity < k->n_pairs + 1) {
        uint32_t *grown = (uint32_t *)realloc(p->host_first_row, ((size_t)k->n_pairs + 1) * sizeof *grown);
        if (!grown)
            return lw_fail_memory(err, ((size_t)k->n_pairs + 1) * sizeof *grown);
        p->host_first_row = grown;
        p->host_capacity = k->n_pairs + 1;
    }
    uint32_t row = LW_SW_PAD_ROWS;
    for (int32_t i = 0; i < k->n_pairs; i++) {
        p->host_first_row[i] = row;
        row += (uint32_t)db->len[k->first + 2 * i] + 1;
    }
    p->host_first_row[k->n_pairs] = row;
    start = (uint32_t *)malloc((size_t)k->n * sizeof *start);
    if (!start)
        return lw_fail_memory(err, (size_t)k->n * sizeof *start);
    uint32_t at = 0;
    for (int64_t i = 0; i < k->n; i++) {
        start[i] = at;
        at += (uint32_t)db->len[k->first + i];
    }
    /* units that still read this place */
    for (int s = 0; s < LW_SW_SLOTS; s++)
        LW_CUDA_TRY_END(err, "copying the database", cudaStreamWaitEvent(c->upload, p->used[s], 0));
    {
        /* starts and lengths share the raw buffer's neighbour: they are needed only until the rows are made
         */
        size_t raw = ((size_t)k->letters + 256) & ~(size_t)255;
        if (c->raw.bytes < raw + 8 * (size_t)k->n + 512)
            LW_CUDA_TRY_END(err, "waiting for the device", cudaStreamSynchronize(c->upload));
        LW_TRY_END(need_device(&c->raw, raw + 8 * (size_t)k->n + 512, err));
        uint32_t *device_start = (uint32_t *)(c->raw.at + raw);
        int32_t *device_len = (int32_t *)(device_start + k->n);
        const char *what = "copying the database";
        LW_TRY_END(upload_letters(c, k, err));
        LW_CUDA_TRY_END(
            err, what,
            cudaMemcpyAsync(device_start, start, (size_t)k->n * 4, cudaMemcpyHostToDevice, c->upload));
        LW_CUDA_TRY_END(err, what,
                        cudaMemcpyAsync(device_len, db->len + k->first, (size_t)k->n * 4,
                                        cudaMemcpyHostToDevice, c->upload));
        LW_CUDA_TRY_END(err, what,
                        cudaMemcpyAsync(p->first_row, p->host_first_row, ((size_t)k->n_pairs + 1) * 4,
                                        cudaMemcpyHostToDevice, c->upload));
        LW_CUDA_TRY_END(
            err, what,
            cudaMemsetAsync(p->stream, c->n_classes << LW_SW_LETTER_SHIFT, 2 * (size_t)k->rows, c->upload));
        LW_CUDA_TRY_END(err, what,
                        lw_sw_make_rows(p->stream, (const uint8_t *)c->raw.at, device_start, device_len,
                                        (int32_t)k->n, p->first_row, c->device_class_of, c->n_classes,
                                        c->upload));
        LW_CUDA_TRY_END(err, what, cudaEventRecord(p->ready, c->upload));
    }
    p->chunk = index;
end:
    free(start);
    return status;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Fills list->segments. Long subjects are cut into pieces that overlap by `overlap` rows, enough to hold
 * every alignment that ends in the new part of a piece. */
static lw_status fill_list(context *c, const place *p, const chunk *k, segment_list *list, lw_error *err)
{
    const int32_t *len = c->setup.database->len + k->first;
    int64_t overlap = list->overlap, fresh = overlap > LW_SW_PIECE_ROWS ? overlap : LW_SW_PIECE_ROWS;
    int64_t capacity = 16, n_folds_capacity = 0, n = 0, n_pieces = 0;
    for (int32_t i = 0; i < k->n_pairs; i++) {
        capacity++;
        if (overlap > 0 && len[2 * i] > 2 * fresh) {
            capacity += len[2 * i] / fresh + 1;
            n_folds_capacity++;
        }
    }
    lw_status status = LW_OK;
    lw_sw_segment *segments = (lw_sw_segment *)malloc((size_t)capacity * sizeof *segments);
    lw_sw_fold *folds = (lw_sw_fold *)malloc((size_t)(n_folds_capacity + 1) * sizeof *folds);
    int32_t counts[2] = {0, 0};
    cutter memory = {};
    list->n_folds = list->long_pairs = 0;
    if (!segments || !folds) {
        status = lw_fail_memory(err, (size_t)capacity * sizeof *segments);
        goto end;
    }
    for (int32_t i = 0; i < k->n_pairs && len[2 * i] > LW_SW_LONG_ROWS; i++) {
        uint32_t begin = p->host_first_row[i];
        if (overlap > 0 && len[2 * i] > 2 * fresh) {
            lw_sw_fold *fold = &folds[list->n_folds++];
            *fold = {i, (int32_t)(k->n_pairs + n_pieces), 0};
            for (int64_t a = 0; a < len[2 * i]; a += fresh, n_pieces++, fold->n++) {
                int64_t from = a < overlap ? 0 : a - overlap, to = smaller(a + fresh, len[2 * i]);
                segments[n++] = {(uint32_t)(begin + from), (int32_t)(to - from),
                                 (int32_t)(k->n_pairs + n_pieces), 1};
            }
        } else {
            segments[n++] = {begin, len[2 * i], i, 1};
        }
        list->long_pairs = i + 1;
    }
    list->n_long = (int32_t)n;
    {
        double total = (double)k->rows, done = 0;
        for (int32_t i = list->long_pairs; i < k->n_pairs;) {
            double left = 1 - done / total;
            int64_t rows = list->rows / (left < 0.05  ? LW_SW_ROWS_DIVISOR_LAST
                                         : left < 0.2 ? LW_SW_ROWS_DIVISOR_LATE
                                                      : 1);
            int32_t many = (int32_t)(rows / (len[2 * i] + 1));
            many = many < 1 ? 1 : many;
            if (many > k->n_pairs - i)
                many = k->n_pairs - i;
            segments[n] = {p->host_first_row[i],
                           (int32_t)(p->host_first_row[i + many] - p->host_first_row[i]) - 1, i, many};
            done += segments[n].rows + 1;
            n++;
            i += many;
        }
    }
    list->n_rest = (int32_t)n - list->n_long;
    list->n_pieces = (int32_t)n_pieces;
    counts[LONG_COUNT] = list->n_long;
    counts[REST_COUNT] = list->n_rest;
    cut(&memory, segments, (size_t)n);
    cut(&memory, folds, (size_t)list->n_folds);
    cut(&memory, counts, 2);
    LW_TRY_END(need_device(&list->memory, memory.used, err));
    memory = {list->memory.at, 0};
    list->segments = cut(&memory, segments, (size_t)n);
    list->folds = cut(&memory, folds, (size_t)list->n_folds);
    list->counts = cut(&memory, counts, 2);
    {
        const char *what = "copying segments";
        LW_CUDA_TRY_END(err, what,
                        cudaMemcpyAsync(list->segments, segments, (size_t)n * sizeof *segments,
                                        cudaMemcpyHostToDevice, c->upload));
        LW_CUDA_TRY_END(err, what,
                        cudaMemcpyAsync(list->folds, folds, (size_t)list->n_folds * sizeof *folds,
                                        cudaMemcpyHostToDevice, c->upload));
        LW_CUDA_TRY_END(
            err, what,
            cudaMemcpyAsync(list->counts, counts, sizeof counts, cudaMemcpyHostToDevice, c->upload));
        LW_CUDA_TRY_END(err, what, cudaStreamSynchronize(c->upload));
    }
    list->made = true;
end:
    free(segments);
    free(folds);
    return status;
}

static lw_status need_list(context *c, place *p, const chunk *k, int group, int overlap, segment_list **out,
                           lw_error *err)
{
    int rows = group <= 4    ? LW_SW_ROWS_SMALL_GROUP
               : group <= 16 ? LW_SW_ROWS_MIDDLE_GROUP
                             : LW_SW_ROWS_LARGE_GROUP;
    segment_list *list = NULL;
    for (int i = 0; i < MAX_LISTS; i++) {
        segment_list *l = &p->lists[i];
        if (l->made && l->rows == rows && l->overlap == overlap) {
            *out = l;
            return LW_OK;
        }
        if (!l->made && !list)
            list = l;
    }
    if (!list) { /* the oldest gives way; units that read it must have ended */
        LW_CUDA_TRY(err, "waiting for the device", cudaDeviceSynchronize());
        list = &p->lists[0];
        list->made = false;
    }
    list->rows = rows;
    list->overlap = overlap;
    LW_TRY(fill_list(c, p, k, list, err));
    *out = list;
    return LW_OK;
}

/* ---- packs
 * ------------------------------------------------------------------------------------------------------ */

typedef struct packs {
    pack *pack;
    int64_t n;
    int64_t *queries; /* all members, pack after pack */
} packs;

static void free_packs(packs *p)
{
    free(p->pack);
    free(p->queries);
    *p = {};
}

typedef struct ranked {
    int64_t query;
    int32_t len;
    int filter;
} ranked;

static int compare_ranked(const void *x, const void *y)
{
    const ranked *a = (const ranked *)x, *b = (const ranked *)y;
    if (a->filter != b->filter)
        return a->filter - b->filter;
    if (a->len != b->len)
        return a->len > b->len ? -1 : 1;
    return a->query < b->query ? -1 : 1;
}

/* The first arithmetic for a pack: gapless scores above the limit of a narrow type are of no use as a filter.
 */
static int first_arithmetic(const context *c, const lw_search_request *r, const int64_t *queries, int n,
                            bool filter)
{
    int a = c->ladder[0];
    if (filter && a == LW_SW_S16)
        return LW_SW_S32;
    for (int i = 0; i < n && filter; i++)
        if (r->filter[queries[i]] > c->limit[0])
            return LW_SW_S32;
    return a;
}

/* Relative cost of the longest `alone` of n queries one by one and of the others together. */
static lw_status pack_slots(const ranked *q, int n, int alone, double *slots, lw_error *err)
{
    *slots = 0;
    for (int i = 0; i < alone; i++) {
        lw_sw_program p = {};
        lw_status status = lw_sw_plan_query(&p, LW_SW_TWO_SUBJECTS, q[i].len, 0, err);
        *slots += p.slots;
        free(p.passes);
        if (status != LW_OK)
            return status;
    }
    if (alone < n) {
        int32_t len[LW_SW_PACK_QUERIES], zero[LW_SW_PACK_QUERIES] = {};
        for (int i = alone; i < n; i++)
            len[i - alone] = q[i].len;
        lw_sw_program p = {};
        lw_status status = lw_sw_plan_pack(&p, 2, n - alone, len, zero, zero, err);
        *slots += p.slots;
        free(p.passes);
        if (status != LW_OK)
            return status;
    }
    return LW_OK;
}

static lw_status make_packs(const context *c, const lw_search_request *r, int most, packs *out, lw_error *err)
{
    const lw_seqs *queries = r->queries;
    size_t room = (size_t)queries->n + 1;
    ranked *rank = (ranked *)malloc(room * sizeof *rank);
    out->pack = (pack *)calloc(room, sizeof *out->pack);
    out->queries = (int64_t *)malloc(room * sizeof *out->queries);
    lw_status status = LW_OK;
    int64_t n = 0, at = 0;
    if (!rank || !out->pack || !out->queries) {
        status = lw_fail_memory(err, room * sizeof *rank);
        goto end;
    }
    for (int64_t i = 0; i < queries->n; i++)
        if (queries->len[i] > 0)
            rank[n++] = {i, queries->len[i], r->filter && r->filter[i] > 0};
    qsort(rank, (size_t)n, sizeof *rank, compare_ranked);
    for (int64_t i = 0; i < n; i++)
        out->queries[i] = rank[i].query;
    while (at < n) {
        int some = 0, alone = 0;
        while (at + some < n && some < most && rank[at + some].filter == rank[at].filter)
            some++;
        int arithmetic = first_arithmetic(c, r, out->queries + at, some, rank[at].filter);
        /* the profile of two queries a word is too large for some GPUs */
        bool fits =
            lw_sw_profile_bytes(LW_SW_TWO_QUERIES, arithmetic, c->n_classes + 1) + LW_SW_STATIC_BYTES <=
            (size_t)c->shared_bytes;
        if (arithmetic == LW_SW_S16 || some == 1 || !fits) {
            alone = some;
        } else if (arithmetic != LW_SW_S32) {
            double best = 0;
            for (int k = 0; k <= some; k++) {
                double slots;
                LW_TRY_END(pack_slots(rank + at, some, k, &slots, err));
                if (k == 0 || slots < best) {
                    best = slots;
                    alone = k;
                }
            }
        }
        for (int k = 0; k < alone; k++)
            out->pack[out->n++] = {1, out->queries + at + k, rank[at].filter != 0};
        if (alone < some)
            out->pack[out->n++] = {some - alone, out->queries + at + alone, rank[at].filter != 0};
        at += some;
    }
end:
    free(rank);
    return status;
}

/* ---- one unit
 * ----------------------------------------------------------------------------------------------------- */

/* What a unit needs on the host while it is put together. */
typedef struct unit {
    context *c;
    slot *s;
    place *p;
    const chunk *k;
    const pack *pack;
    const lw_search_request *request;
    int arithmetic, keeps; /* of the first run */
    lw_sw_program first;
    lw_sw_program (*again)[LW_SW_LEVELS]; /* [query][level] */
    segment_list *list;
    int32_t *len, *codes_at, *base;
    int n_rounds; /* of exact scores after the first run */
    int n_jobs, n_profiles, n_counters;
} unit;

static void free_unit(unit *u)
{
    free(u->first.passes);
    for (int i = 0; u->again && i < u->pack->n; i++)
        for (int l = 0; l < LW_SW_LEVELS; l++)
            free(u->again[i][l].passes);
    free(u->again);
    free(u->len);
    free(u->codes_at);
    free(u->base);
}

/* Letters of the subject that an alignment of a query may span: a positive score pays for so many gaps. 0: no
 * bound. */
static int64_t span(const context *c, const uint8_t *query, int32_t len)
{
    if (c->extend == 0)
        return 0;
    int64_t best = 0;
    for (int32_t i = 0; i < len; i++)
        best += c->row_best[query[i]];
    int64_t gaps = (best - (c->open_extend - c->extend)) / c->extend;
    return len + (gaps > 0 ? gaps : 0);
}

/* Overlap of the pieces that long subjects are cut into; 0: not cut. Cutting pays where one lane group would
 * work on the longest subject for longer than all groups on everything else. */
static int choose_overlap(const unit *u)
{
    const context *c = u->c;
    if (u->first.border || u->k->n_pairs == 0)
        return 0;
    int group = 1;
    for (int i = 0; i < u->first.n_passes; i++)
        if (u->first.passes[i].group > group)
            group = u->first.passes[i].group;
    double groups = (double)c->multiprocessors * 2 * LW_SW_WARPS * (32 / group);
    double rows = (double)u->k->rows * (u->first.form == LW_SW_TWO_QUERIES ? 2 : 1) / groups;
    int32_t longest = c->setup.database->len[u->k->first];
    if (longest < rows / 2)
        return 0;
    int64_t most = 0;
    for (int i = 0; i < u->pack->n; i++) {
        const lw_seqs *q = u->request->queries;
        int64_t one = span(c, q->codes + q->start[u->pack->queries[i]], u->len[i]);
        if (one == 0)
            return 0;
        most = one > most ? one : most;
    }
    int64_t overlap = LW_SW_PIECE_ROWS / 2;
    while (overlap < most)
        overlap *= 2;
    return overlap <= 16384 ? (int)overlap : 0;
}

static lw_status plan_unit(unit *u, lw_error *err)
{
    context *c = u->c;
    const lw_seqs *queries = u->request->queries;
    int n = u->pack->n;
    u->len = (int32_t *)malloc((size_t)n * sizeof *u->len);
    u->codes_at = (int32_t *)malloc((size_t)n * sizeof *u->codes_at);
    u->base = (int32_t *)malloc((size_t)n * sizeof *u->base);
    u->again = (lw_sw_program(*)[LW_SW_LEVELS])calloc((size_t)n, sizeof *u->again);
    if (!u->len || !u->codes_at || !u->base || !u->again)
        return lw_fail_memory(err, (size_t)n * sizeof *u->again);
    int32_t at = 0;
    for (int i = 0; i < n; i++) {
        u->len[i] = queries->len[u->pack->queries[i]];
        u->codes_at[i] = at;
        if (INT32_MAX - at < u->len[i])
            return lw_fail(err, LW_E_RANGE,
                           "queries of more than %d letters together are too long for the GPU search",
                           INT32_MAX);
        at += u->len[i];
    }
    u->arithmetic = first_arithmetic(c, u->request, u->pack->queries, n, u->pack->filter);
    /* exact at once where the bounds would keep most pairs anyway */
    bool most_wanted = u->request->top_n > u->k->n / (c->tiles ? 16 * LW_SW_PROMISING : 16);
    u->keeps = u->arithmetic != LW_SW_HALF || u->pack->filter || most_wanted ? LW_SW_EXACT
               : c->tiles                                                    ? LW_SW_FROM_ABOVE
                                                                             : LW_SW_FROM_BELOW;
    u->n_rounds = u->keeps == LW_SW_FROM_ABOVE ? 2 : 1;
    /* scores[] of query i start at i * stride; the number of pieces is known once the list is */
    int halves = u->arithmetic == LW_SW_S32 ? 1 : 2;
    lw_sw_program shape = {}; /* for the choice of the list: bases do not matter */
    for (int i = 0; i < n; i++)
        u->base[i] = 0;
    bool alone = n == 1 && halves == 2;
    LW_TRY(alone ? lw_sw_plan_query(&u->first, LW_SW_TWO_SUBJECTS, u->len[0], 0, err)
                 : lw_sw_plan_pack(&u->first, halves, n, u->len, u->codes_at, u->base, err));
    int group = 1;
    for (int i = 0; i < u->first.n_passes; i++)
        if (u->first.passes[i].group > group)
            group = u->first.passes[i].group;
    LW_TRY(need_list(c, u->p, u->k, group, choose_overlap(u), &u->list, err));
    if (!alone) {
        int32_t stride = 2 * (u->k->n_pairs + u->list->n_pieces);
        for (int i = 0; i < n; i++)
            u->base[i] = i * stride;
        shape = u->first;
        u->first = {};
        free(shape.passes);
        LW_TRY(lw_sw_plan_pack(&u->first, halves, n, u->len, u->codes_at, u->base, err));
    }
    u->n_jobs = 2 * u->first.n_passes;
    u->n_profiles = (u->keeps == LW_SW_FROM_ABOVE ? 2 : 1) * u->first.n_passes;
    for (int i = 0; i < n; i++)
        for (int l = 0; l < c->n_levels; l++) {
            int form = c->ladder[l] == LW_SW_S32 ? LW_SW_TWO_QUERIES : LW_SW_TWO_SUBJECTS;
            LW_TRY(lw_sw_plan_query(&u->again[i][l], form, u->len[i], u->codes_at[i], err));
            u->n_jobs += u->n_rounds * u->again[i][l].n_passes;
            u->n_profiles += u->again[i][l].n_passes;
        }
    u->n_counters = u->n_jobs;
    return LW_OK;
}

/* Arrays of a unit, on the device or (mirrored, the first part) in pinned memory. */
typedef struct unit_arrays {
    /* travel to the device */
    uint8_t *codes;
    lw_sw_lane *lanes; /* 32 a profile */
    lw_sw_job *jobs;
    lw_sw_profile *profiles;
    lw_sw_query *queries;
    size_t travelling;
    /* zeroed */
    int32_t *counters, *counts, *n_hits;
    uint32_t *histograms;
    size_t zeroed_from, zeroed_to;
    /* filled by kernels */
    uint4 *profile;
    int32_t *scores, *lists, *exact, *chosen;
    uint32_t *carry;
    lw_search_hit *hits;
} unit_arrays;

static size_t profile_vectors(const context *c, int form, int arithmetic)
{
    return lw_sw_profile_bytes(form, arithmetic, c->n_classes + 1) / sizeof(uint4);
}

static size_t cut_arrays(const unit *u, char *at, unit_arrays *a)
{
    cutter m = {at, 0};
    size_t n = (size_t)u->pack->n, pairs = (size_t)u->k->n_pairs, letters = 0, vectors = 0;
    for (size_t i = 0; i < n; i++)
        letters += (size_t)u->len[i];
    vectors += profile_vectors(u->c, u->first.form, u->arithmetic) * (size_t)u->first.n_passes *
               (u->keeps == LW_SW_FROM_ABOVE ? 2 : 1);
    for (size_t i = 0; i < n; i++)
        for (int l = 0; l < u->c->n_levels; l++)
            vectors +=
                profile_vectors(u->c, u->again[i][l].form, u->c->ladder[l]) * (size_t)u->again[i][l].n_passes;
    a->codes = cut(&m, a->codes, letters);
    a->lanes = cut(&m, a->lanes, 32 * (size_t)u->n_profiles);
    a->jobs = cut(&m, a->jobs, (size_t)u->n_jobs);
    a->profiles = cut(&m, a->profiles, (size_t)u->n_profiles);
    a->queries = cut(&m, a->queries, n);
    a->travelling = m.used;
    a->zeroed_from = m.used;
    a->counters = cut(&m, a->counters, (size_t)u->n_counters);
    a->counts = cut(&m, a->counts, LW_SW_COUNTS * n + 1);
    a->n_hits = a->counts ? a->counts + LW_SW_COUNTS * n : NULL;
    a->histograms = cut(&m, a->histograms, LW_SW_BINS * n);
    a->zeroed_to = m.used;
    a->profile = cut(&m, a->profile, vectors);
    a->scores = cut(&m, a->scores, 2 * (pairs + (size_t)u->list->n_pieces) * n);
    a->lists = cut(&m, a->lists, pairs * n);
    a->exact = cut(&m, a->exact, 2 * pairs * n);
    a->chosen = cut(&m, a->chosen, (size_t)u->n_rounds * LW_SW_LEVELS * pairs * n);
    a->carry = cut(&m, a->carry, 2 * (pairs + (size_t)u->list->n_pieces));
    a->hits = cut(&m, a->hits, 2 * pairs * n);
    return m.used;
}

/* Device bytes of a query in a unit, for the choice of the packs' size. */
static int64_t query_bytes(const chunk *k)
{
    return (int64_t)k->n_pairs * (8 + 4 + 8 + 4 * LW_SW_ROUNDS * LW_SW_LEVELS + 16) + 4 * LW_SW_BINS +
           (1 << 20);
}

/* Jobs, profiles and lanes of a program are filled in order; job and profile j of the unit stand at index j.
 */
typedef struct writer {
    unit *u;
    const unit_arrays *device;
    unit_arrays host;
    int n_jobs, n_profiles;
    size_t n_vectors;
} writer;

/* Profiles of a program's passes, for G or for H; returns the index of the first. */
static int write_profiles(writer *w, const lw_sw_program *p, int arithmetic, bool gapless, bool above)
{
    int first = w->n_profiles;
    const bool plain = gapless || above || arithmetic == LW_SW_S32;
    for (int i = 0; i < p->n_passes; i++, w->n_profiles++) {
        memcpy(w->host.lanes + 32 * w->n_profiles, p->passes[i].lanes, sizeof p->passes[i].lanes);
        w->host.profiles[w->n_profiles] = {w->device->profile + w->n_vectors,
                                           w->device->lanes + 32 * w->n_profiles,
                                           p->form,
                                           arithmetic,
                                           plain ? 0 : w->u->c->open_extend,
                                           above ? LW_SW_NEVER : 0};
        w->n_vectors += profile_vectors(w->u->c, p->form, arithmetic);
    }
    return first;
}

/* One job for each pass, all fields but those that say which segments. Returns the index of the first. */
static int write_jobs(writer *w, const lw_sw_program *p, int first_profile, const lw_sw_job *common)
{
    int first = w->n_jobs;
    for (int i = 0; i < p->n_passes; i++, w->n_jobs++) {
        const lw_sw_pass *pass = &p->passes[i];
        lw_sw_job *j = &w->host.jobs[w->n_jobs];
        *j = *common;
        j->stream = w->u->p->stream;
        j->first_row = w->u->p->first_row;
        j->counter = w->device->counters + w->n_jobs;
        j->profile = w->host.profiles[first_profile + i].out;
        j->lanes = w->host.profiles[first_profile + i].lanes;
        j->border = (uint2 *)w->u->s->border.at;
        j->carry = w->device->carry;
        j->n_letters = w->u->c->n_classes + 1;
        j->group = pass->group;
        j->reads_border = pass->reads_border;
        j->writes_border = pass->writes_border;
        j->border_keep = pass->border_keep;
        j->open_extend = w->u->c->open_extend;
        j->extend = w->u->c->extend;
    }
    return first;
}

static cudaError_t launch(const unit *u, const unit_arrays *device, cudaStream_t stream, int arithmetic,
                          int form, int keeps, bool gapless, bool border, int first_job, int n_jobs,
                          int64_t items)
{
    const context *c = u->c;
    int64_t blocks = (items + LW_SW_WARPS - 1) / LW_SW_WARPS,
            most = 2 * c->multiprocessors - LW_SW_SPARE_BLOCKS;
    lw_sw_launch l = {arithmetic,
                      form,
                      keeps,
                      gapless,
                      border,
                      device->jobs + first_job,
                      n_jobs,
                      (int)(blocks < 1      ? 1
                            : blocks < most ? blocks
                                            : most),
                      c->n_classes + 1,
                      stream};
    if (keeps == LW_SW_FROM_ABOVE)
        return lw_sw_launch_bounds(&l);
    return arithmetic == LW_SW_HALF || arithmetic == LW_SW_S16 ? lw_sw_launch_narrow(&l)
                                                               : lw_sw_launch_wide(&l);
}

/* The first run: long subjects exactly on the second stream, the others on the first. Its last pass is the
 * earliest that lets the next unit's first run in: were the passes of two units mixed, both would end
 * together and leave nothing to run beside their second runs, which fill but a few multiprocessors. */
static lw_status first_run(const unit *u, const unit_arrays *device, int long_jobs, int rest_jobs,
                           lw_error *err)
{
    slot *s = u->s;
    const lw_sw_program *p = &u->first;
    const char *what = "scoring";
    int spread = p->form == LW_SW_TWO_QUERIES ? 2 : 1;
    if (u->list->n_long) {
        LW_CUDA_TRY(err, what, cudaEventRecord(s->fork, s->stream));
        LW_CUDA_TRY(err, what, cudaStreamWaitEvent(s->aside, s->fork, 0));
        for (int i = 0; i < p->n_passes; i++)
            LW_CUDA_TRY(err, what,
                        launch(u, device, s->aside, u->arithmetic, p->form, LW_SW_EXACT, u->pack->filter,
                               p->border, long_jobs + i, 1,
                               (int64_t)u->list->n_long * spread / (32 / p->passes[i].group) + 1));
    }
    if (u->list->n_rest) {
        LW_CUDA_TRY(err, what, cudaStreamWaitEvent(s->stream, u->c->turn, 0));
        for (int i = 0; i < p->n_passes; i++) {
            if (i == p->n_passes - 1)
                LW_CUDA_TRY(err, what, cudaEventRecord(u->c->turn, s->stream));
            LW_CUDA_TRY(err, what,
                        launch(u, device, s->stream, u->arithmetic, p->form, u->keeps, u->pack->filter,
                               p->border, rest_jobs + i, 1,
                               (int64_t)u->list->n_rest * spread / (32 / p->passes[i].group) + 1));
        }
    }
    if (u->list->n_long) {
        LW_CUDA_TRY(err, what, cudaEventRecord(s->join, s->aside));
        LW_CUDA_TRY(err, what, cudaStreamWaitEvent(s->stream, s->join, 0));
    }
    return LW_OK;
}

/* Chosen pairs of every query in one arithmetic: queries of one pass together, the others one after another,
 * since they share the border. */
static lw_status run_again(const unit *u, const unit_arrays *device, int level, const int *first_job,
                           lw_error *err)
{
    const context *c = u->c;
    int n = u->pack->n, form = c->ladder[level] == LW_SW_S32 ? LW_SW_TWO_QUERIES : LW_SW_TWO_SUBJECTS;
    /* a filter lets many pairs through; bounds are met by few, and blocks without work cost time as well */
    int64_t items =
        u->pack->filter || u->keeps == LW_SW_EXACT ? 2 * (int64_t)u->k->n_pairs : LW_SW_AGAIN_ITEMS;
    int n_single = 0, first_single = 0;
    for (int i = n - 1; i >= 0; i--)
        if (u->again[i][level].n_passes == 1) {
            n_single++;
            first_single = first_job[i];
        }
    if (n_single) {
        int64_t share = (int64_t)4 * c->multiprocessors * LW_SW_WARPS / n_single + 1;
        LW_CUDA_TRY(err, "scoring again",
                    launch(u, device, u->s->stream, c->ladder[level], form, LW_SW_EXACT, false, false,
                           first_single, n_single, smaller(items, share)));
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; u->again[i][level].n_passes > 1 && k < u->again[i][level].n_passes; k++)
            LW_CUDA_TRY(err, "scoring again",
                        launch(u, device, u->s->stream, c->ladder[level], form, LW_SW_EXACT, false, true,
                               first_job[i] + k, 1, items));
    return LW_OK;
}

static lw_status enqueue(unit *u, const lw_top *tops, lw_error *err)
{
    context *c = u->c;
    slot *s = u->s;
    const lw_seqs *queries = u->request->queries;
    const int n = u->pack->n;
    lw_status status = LW_OK;
    LW_TRY(plan_unit(u, err));
    bool border = u->first.border;
    for (int i = 0; i < n; i++)
        for (int l = 0; l < c->n_levels; l++)
            border = border || u->again[i][l].border;
    if (border)
        LW_TRY(need_device(&s->border, 2 * sizeof(uint2) * (size_t)u->k->rows, err));
    unit_arrays device = {}, counting = {};
    writer w = {u, &device, {}, 0, 0, 0};
    size_t bytes = cut_arrays(u, NULL, &counting);
    LW_TRY(need_device(&s->device, bytes, err));
    cut_arrays(u, s->device.at, &device);
    size_t results = (LW_SW_COUNTS * (size_t)n + 1) * sizeof(int32_t);
    LW_TRY(need_pinned(&s->pinned, counting.travelling + results, err));
    /* the travelling arrays lie in pinned memory as they will on the device */
    ptrdiff_t shift = s->pinned.at - s->device.at;
    w.host.codes = (uint8_t *)((char *)device.codes + shift);
    w.host.lanes = (lw_sw_lane *)((char *)device.lanes + shift);
    w.host.jobs = (lw_sw_job *)((char *)device.jobs + shift);
    w.host.profiles = (lw_sw_profile *)((char *)device.profiles + shift);
    w.host.queries = (lw_sw_query *)((char *)device.queries + shift);

    const size_t pairs = (size_t)u->k->n_pairs, stride = 2 * (pairs + (size_t)u->list->n_pieces);
    int *again_jobs[LW_SW_ROUNDS][LW_SW_LEVELS] = {};
    int *all_jobs = (int *)malloc(LW_SW_ROUNDS * LW_SW_LEVELS * (size_t)n * sizeof *all_jobs);
    int long_jobs, rest_jobs, first_profiles;
    lw_sw_job job = {};
    lw_sw_selection selection = {};
    const char *what = "starting a search";
    if (!all_jobs)
        return lw_fail_memory(err, LW_SW_ROUNDS * LW_SW_LEVELS * (size_t)n * sizeof *all_jobs);
    for (int i = 0; i < n; i++) {
        int64_t query = u->pack->queries[i];
        memcpy(w.host.codes + u->codes_at[i], queries->codes + queries->start[query], (size_t)u->len[i]);
        lw_sw_query *q = &w.host.queries[i];
        q->scores = device.scores + stride * i;
        q->list = device.lists + pairs * i;
        q->exact = device.exact + 2 * pairs * i;
        for (int r = 0; r < u->n_rounds; r++)
            for (int l = 0; l < LW_SW_LEVELS; l++)
                q->chosen[r][l] = device.chosen + pairs * (size_t)((u->n_rounds * i + r) * LW_SW_LEVELS + l);
        q->histogram = device.histograms + LW_SW_BINS * i;
        q->counts = device.counts + LW_SW_COUNTS * i;
        q->min_score = tops[query].min_score;
        q->filter = u->pack->filter ? u->request->filter[query] : 0;
    }
    first_profiles = write_profiles(&w, &u->first, u->arithmetic, u->pack->filter, false);
    job.scores = device.scores;
    job.segments = u->list->segments;
    job.n_segments = u->list->counts + LONG_COUNT;
    long_jobs = write_jobs(&w, &u->first, first_profiles, &job);
    if (u->keeps == LW_SW_FROM_ABOVE)
        first_profiles = write_profiles(&w, &u->first, u->arithmetic, false, true);
    job.segments += u->list->n_long;
    job.n_segments = u->list->counts + REST_COUNT;
    rest_jobs = write_jobs(&w, &u->first, first_profiles, &job);
    /* jobs of a level stand together, queries of one pass first */
    for (int l = 0; l < c->n_levels; l++) {
        for (int r = 0; r < u->n_rounds; r++)
            again_jobs[r][l] = all_jobs + n * (LW_SW_LEVELS * r + l);
        for (int i = 0; i < n; i++)
            again_jobs[0][l][i] = write_profiles(&w, &u->again[i][l], c->ladder[l], false, false);
        for (int r = u->n_rounds - 1; r >= 0; r--)
            for (int single = 1; single >= 0; single--)
                for (int i = 0; i < n; i++) {
                    if ((u->again[i][l].n_passes == 1) != (single == 1))
                        continue;
                    const lw_sw_query *q = &w.host.queries[i];
                    job = {};
                    job.scores = q->exact;
                    job.list = q->list;
                    job.chosen = q->chosen[r][l];
                    job.n_segments = q->counts + LW_SW_N_CHOSEN + r * LW_SW_LEVELS + l;
                    /* the places of round 0 hold the profiles' until its own turn */
                    again_jobs[r][l][i] = write_jobs(&w, &u->again[i][l], again_jobs[0][l][i], &job);
                }
    }
    LW_CUDA_TRY_END(err, what, cudaStreamWaitEvent(s->stream, u->p->ready, 0));
    LW_CUDA_TRY_END(err, what, cudaEventRecord(s->begin, s->stream));
    LW_CUDA_TRY_END(
        err, what,
        cudaMemcpyAsync(s->device.at, s->pinned.at, counting.travelling, cudaMemcpyHostToDevice, s->stream));
    LW_CUDA_TRY_END(err, what,
                    cudaMemsetAsync(s->device.at + counting.zeroed_from, 0,
                                    counting.zeroed_to - counting.zeroed_from, s->stream));
    LW_CUDA_TRY_END(err, what,
                    lw_sw_make_profiles(device.profiles, w.n_profiles, device.codes, c->device_scores,
                                        c->n_classes + 1, s->stream));
    LW_TRY_END(first_run(u, &device, long_jobs, rest_jobs, err));
    selection.queries = device.queries;
    selection.n_queries = n;
    selection.n_pairs = u->k->n_pairs;
    selection.n_subjects = (int32_t)u->k->n;
    selection.bound = u->keeps == LW_SW_FROM_BELOW ? first_run_bound(c) : 0;
    selection.above = u->keeps == LW_SW_FROM_ABOVE;
    selection.exact_pairs = u->keeps == LW_SW_EXACT ? u->k->n_pairs : u->list->long_pairs;
    memcpy(selection.limit, c->limit, sizeof c->limit);
    selection.clip = (int32_t)smaller(
        LW_SW_BINS - 1, c->ladder[0] == LW_SW_HALF || c->ladder[0] == LW_SW_REAL ? 2047 : INT32_MAX);
    selection.top_n = u->request->top_n;
    selection.filter = u->pack->filter;
    selection.hits = device.hits;
    selection.n_hits = device.n_hits;
    if (u->list->n_folds)
        LW_CUDA_TRY_END(err, what,
                        lw_sw_fold_pieces(&selection, u->list->folds, u->list->n_folds, s->stream));
    for (int r = 0; r < u->n_rounds; r++) {
        selection.round = r;
        LW_CUDA_TRY_END(err, what, lw_sw_select(&selection, c->multiprocessors, s->stream));
        for (int l = 0; l < c->n_levels; l++) {
            if (l > 0)
                LW_CUDA_TRY_END(err, what, lw_sw_promote(&selection, l - 1, s->stream));
            LW_TRY_END(run_again(u, &device, l, again_jobs[r][l], err));
        }
    }
    LW_CUDA_TRY_END(err, what, lw_sw_take_hits(&selection, s->stream));
    LW_CUDA_TRY_END(err, what,
                    cudaMemcpyAsync(s->pinned.at + counting.travelling, device.counts, results,
                                    cudaMemcpyDeviceToHost, s->stream));
    LW_CUDA_TRY_END(err, what, cudaEventRecord(s->end, s->stream));
    LW_CUDA_TRY_END(err, what, cudaEventRecord(u->p->used[s - c->slots], s->stream));
    s->host_counts = (const int32_t *)(s->pinned.at + counting.travelling);
    s->device_hits = device.hits;
    s->pack = u->pack;
    s->chunk = u->k;
    s->busy = true;
end:
    free(all_jobs);
    return status;
}

/* Waits for the unit of a slot and merges its hits. */
static lw_status collect(context *c, slot *s, const lw_search_request *request, lw_top *tops, lw_error *err)
{
    if (!s->busy)
        return LW_OK;
    s->busy = false;
    const char *what = "searching";
    LW_CUDA_TRY(err, what, cudaEventSynchronize(s->end));
    int n = s->pack->n;
    int32_t n_hits = s->host_counts[LW_SW_COUNTS * n];
    if (n_hits > 0) {
        LW_TRY(need_pinned(&s->hits, (size_t)n_hits * sizeof(lw_search_hit), err));
        LW_CUDA_TRY(err, what,
                    cudaMemcpyAsync(s->hits.at, s->device_hits, (size_t)n_hits * sizeof(lw_search_hit),
                                    cudaMemcpyDeviceToHost, s->stream));
        LW_CUDA_TRY(err, what, cudaStreamSynchronize(s->stream));
    }
    double cells = 0;
    for (int i = 0; i < n; i++) {
        int64_t query = s->pack->queries[i];
        const int32_t *counts = s->host_counts + LW_SW_COUNTS * i;
        const lw_search_hit *hits = (const lw_search_hit *)s->hits.at + counts[LW_SW_FIRST_HIT];
        for (int32_t k = 0; k < counts[LW_SW_N_HITS]; k++) {
            lw_search_hit hit = hits[k];
            hit.subject += (int32_t)s->chunk->first;
            LW_TRY(lw_top_add(&tops[query], hit, request->top_n, c->setup.database->order, err));
        }
        cells += (double)request->queries->len[query] * (double)s->chunk->letters;
        if (request->counts) {
            if (s->pack->filter)
                request->counts->filtered += s->chunk->n - counts[LW_SW_N_PASSED];
            request->counts->rescued += counts[LW_SW_N_RESCUED];
        }
    }
    if (request->counts) {
        float begin, end;
        LW_CUDA_TRY(err, what, cudaEventElapsedTime(&begin, c->origin, s->begin));
        LW_CUDA_TRY(err, what, cudaEventElapsedTime(&end, c->origin, s->end));
        double from = begin > c->busy_until ? begin : c->busy_until;
        if (end > from) {
            request->counts->busy_seconds += 1e-3 * (end - from);
            c->busy_until = end;
        }
    }
    if (request->advance)
        request->advance(request->user, cells);
    return LW_OK;
}

extern "C" lw_status lw_search_cuda_search(void *opened, const lw_search_request *request,
                                           const lw_search_result *out, lw_error *err)
{
    context *c = (context *)opened;
    const lw_database_view *db = c->setup.database;
    const lw_seqs *queries = request->queries;
    lw_status status = LW_OK;
    lw_top *tops = (lw_top *)calloc((size_t)queries->n + 1, sizeof *tops);
    packs p = {};
    int turn = 0;
    int64_t most = LW_SW_PACK_QUERIES;
    if (!tops)
        return lw_fail_memory(err, (size_t)queries->n * sizeof *tops);
    for (int64_t i = 0; i < queries->n; i++) {
        tops[i].min_score = request->min_score[i];
        if (request->counts) {
            request->counts->pairs += db->n;
            request->counts->cells += (int64_t)queries->len[i] * db->letters;
            if (queries->len[i] == 0 && request->filter && request->filter[i] > 0)
                request->counts->filtered += db->n;
        }
    }
    LW_CUDA_TRY_END(err, "choosing the device", cudaSetDevice(c->setup.device));
    LW_CUDA_TRY_END(err, "starting the clock", cudaEventRecord(c->origin, c->slots[0].stream));
    c->busy_until = 0;
    for (int64_t i = 0; i < c->n_chunks; i++)
        most = smaller(most, c->budget / 3 / LW_SW_SLOTS / query_bytes(&c->chunks[i]));
    LW_TRY_END(make_packs(c, request, most > 0 ? (int)most : 1, &p, err));
    for (int64_t k = 0; k < c->n_chunks && p.n; k++) {
        place *at;
        LW_TRY_END(fetch_chunk(c, k, &at, err));
        for (int64_t i = 0; i < p.n; i++) {
            slot *s = &c->slots[turn];
            turn = (turn + 1) % LW_SW_SLOTS;
            LW_TRY_END(collect(c, s, request, tops, err));
            if (lw_stopped(c->setup.host)) {
                status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
                goto end;
            }
            unit u = {};
            u.c = c, u.s = s, u.p = at, u.k = &c->chunks[k], u.pack = &p.pack[i], u.request = request;
            status = enqueue(&u, tops, err);
            free_unit(&u);
            if (status != LW_OK)
                goto end;
        }
    }
    for (int i = 0; i < LW_SW_SLOTS; i++, turn = (turn + 1) % LW_SW_SLOTS)
        LW_TRY_END(collect(c, &c->slots[turn], request, tops, err));
    for (int64_t i = 0; i < queries->n; i++) {
        int32_t kept = lw_top_sort(tops[i].hits, tops[i].n, request->top_n, db->order);
        if (kept > 0)
            memcpy(out->hits + i * out->stride, tops[i].hits, (size_t)kept * sizeof *out->hits);
        out->n_hits[i] = kept;
    }
end:
    if (status != LW_OK) { /* leave nothing in flight that borrows from the caller */
        cudaDeviceSynchronize();
        for (int i = 0; i < LW_SW_SLOTS; i++)
            c->slots[i].busy = false;
    }
    for (int64_t i = 0; i < queries->n; i++)
        free(tops[i].hits);
    free(tops);
    free_packs(&p);
    return status;
}
