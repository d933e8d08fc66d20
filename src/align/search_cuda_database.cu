/* search_cuda_database.cu - the database in chunks, and how a chunk comes to the device. */
#include "align/search_cuda_context.h"

#include <stdlib.h>
#include <string.h>

/* Pairs of a chunk begin at an even subject of the view. */
lw_status lw_sw_make_chunks(context *c, lw_error *err)
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
        while (i < db->n &&
               (k.n == 0 || (k.letters + 2 * (int64_t)db->len[i] <= letters && k.rows < letters))) {
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

size_t lw_sw_place_bytes(const chunk *k)
{
    cutter count = {};
    cut(&count, (uint8_t *)0, 2 * (size_t)k->rows);
    cut(&count, (uint32_t *)0, (size_t)k->n_pairs + 1);
    return count.used;
}

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
lw_status lw_sw_fetch_chunk(context *c, int64_t index, place **out, lw_error *err)
{
    place *p = *out = &c->places[index % c->n_places];
    if (p->chunk == index)
        return LW_OK;
    const chunk *k = &c->chunks[index];
    const lw_database_view *db = c->setup.database;
    lw_status status = LW_OK;
    uint32_t *start = NULL;
    if (p->memory.bytes < lw_sw_place_bytes(k)) /* growing frees: nothing may be reading */
        LW_CUDA_TRY(err, "waiting for the device", cudaDeviceSynchronize());
    LW_TRY(need_device(&p->memory, lw_sw_place_bytes(k), err));
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
