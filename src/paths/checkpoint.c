/* checkpoint.c - saving and resuming. */
#include "paths/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/fail.h"
#include "common/outfile.h"
#include "paths/paths_backend.h"

/* The head of the file; the matrix follows. Little-endian. */
typedef struct head {
    char magic[8];
    uint32_t version, type;
    int64_t n, k;
    uint64_t fingerprint;
    uint64_t checksum;      /* of the matrix */
    uint64_t head_checksum; /* of the fields above */
} head;

static const char magic[8] = "LWAPSP\r\n";
enum { LW_CHECKPOINT_VERSION = 1 };

uint64_t lw_checksum(uint64_t so_far, const void *data, int64_t bytes)
{
    const uint64_t prime = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t lane[4] = {so_far, so_far + 1, so_far + 2,
                        so_far + 3}; /* four chains hide the multiplier's latency */
    const unsigned char *p = data;
    for (; bytes >= 32; bytes -= 32, p += 32) {
        uint64_t word[4];
        memcpy(word, p, sizeof word);
        for (int i = 0; i < 4; i++)
            lane[i] = ((lane[i] ^ word[i]) * prime) ^ lane[i] >> 32;
    }
    for (; bytes > 0; bytes--, p++)
        lane[0] = (lane[0] ^ *p) * prime;
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum = (sum ^ lane[i]) * prime + (lane[i] >> 29);
    return sum;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

lw_status lw_checkpoint_try(const char *path, lw_error *err)
{
    lw_outfile *file;
    LW_TRY(lw_outfile_open(&file, path, NULL, err));
    lw_outfile_close(file, LW_E_INTERRUPTED, NULL); /* takes the temporary away again */
    return LW_OK;
}

static lw_status read_head(FILE *f, const char *path, head *h, lw_error *err)
{
    if (fread(h, sizeof *h, 1, f) != 1 || memcmp(h->magic, magic, sizeof magic) != 0)
        return lw_fail(err, LW_E_INPUT,
                       "%s: not a checkpoint of lanewise apsp; name another file or delete it", path);
    if (h->version != LW_CHECKPOINT_VERSION || h->type > LW_PATHS_F64 ||
        h->head_checksum != lw_checksum(0, h, offsetof(head, head_checksum)))
        return lw_fail(err, LW_E_INPUT,
                       "%s: the checkpoint is damaged or of another version; delete it to start afresh",
                       path);
    return LW_OK;
}

lw_status lw_checkpoint_peek(const char *path, uint64_t fingerprint, int64_t n, lw_paths_type *type,
                             int64_t *k, lw_error *err)
{
    *k = 0;
    FILE *f = fopen(path, "rb");
    if (!f && errno == ENOENT)
        return LW_OK;
    if (!f)
        return lw_fail(err, LW_E_IO, "%s: %s", path, strerror(errno));
    head h;
    lw_status status = read_head(f, path, &h, err);
    fclose(f);
    LW_TRY(status);
    if (h.fingerprint != fingerprint || h.n != n || h.k < 0 || h.k > n)
        return lw_fail(
            err, LW_E_INPUT,
            "%s: the checkpoint belongs to another graph or other options; delete it to start afresh", path);
    *type = (lw_paths_type)h.type;
    *k = h.k;
    return LW_OK;
}

lw_status lw_checkpoint_load(const lw_checkpoint *c, void *matrix, lw_error *err)
{
    FILE *f = fopen(c->path, "rb");
    if (!f)
        return lw_fail(err, LW_E_IO, "%s: %s", c->path, strerror(errno));
    head h;
    lw_status status = read_head(f, c->path, &h, err);
    int64_t row = c->n * lw_paths_size(c->type);
    uint64_t sum = 0;
    for (int64_t i = 0; status == LW_OK && i < c->n; i++) {
        if (fread((char *)matrix + i * row, (size_t)row, 1, f) != 1)
            status = lw_fail(err, LW_E_INPUT, "%s: the checkpoint is cut short; delete it to start afresh",
                             c->path);
        else
            sum = lw_checksum(sum, (char *)matrix + i * row, row);
    }
    fclose(f);
    if (status == LW_OK && sum != h.checksum)
        status = lw_fail(err, LW_E_INPUT,
                         "%s: the checkpoint is damaged (checksum); delete it to start afresh", c->path);
    return status;
}

bool lw_checkpoint_want(void *user, int64_t k)
{
    const lw_checkpoint *c = user;
    return k < c->n && (lw_stopped(c->host) || now() - c->last >= c->interval);
}

lw_status lw_checkpoint_save(void *user, int64_t k, lw_error *err)
{
    lw_checkpoint *c = user;
    double begun = now();
    int64_t row = c->n * lw_paths_size(c->type);
    head h = {.version = LW_CHECKPOINT_VERSION,
              .type = (uint32_t)c->type,
              .n = c->n,
              .k = k,
              .fingerprint = c->fingerprint};
    memcpy(h.magic, magic, sizeof magic);
    for (int64_t i = 0; i < c->n; i++)
        h.checksum = lw_checksum(h.checksum, (const char *)c->matrix + i * row, row);
    h.head_checksum = lw_checksum(0, &h, offsetof(head, head_checksum));
    lw_outfile *file;
    LW_TRY(lw_outfile_open(&file, c->path, NULL, err));
    lw_status status = lw_outfile_write(file, &h, sizeof h, err);
    if (status == LW_OK)
        status = lw_outfile_write(file, c->matrix, (size_t)(c->n * row), err);
    LW_TRY(lw_outfile_close(file, status, err));
    c->last = now();
    /* saving must not take more than a tenth of the time, however short the wish */
    if (c->interval > 0 && c->interval < 9 * (c->last - begun))
        c->interval = 9 * (c->last - begun);
    return LW_OK;
}
