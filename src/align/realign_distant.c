/* realign_distant.c - a pass for mates that stand too far away to wait for, and a second reading of streams
 * for it. */
#include "align/realign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts.h>

#include "align/realign_tuning.h"
#include "common/fail.h"

/* Whether the mate of this record came long before it. */
static bool is_late(const bam1_t *record)
{
    return lw_has_placed_mate(record) && lw_is_primary(record) &&
           lw_mate_side(record, (int32_t)record->core.pos) < 0;
}

static lw_status list_changed(lw_realign_lane *lane, lw_realign_batch *batch, lw_distant *table,
                              lw_error *err)
{
    LW_TRY(lw_realign_lane_work(lane, batch, err));
    for (int64_t i = 0; i < batch->n; i++)
        if (batch->item[i].changed)
            LW_TRY(lw_distant_add(table, batch->record[i], &batch->item[i], err));
    batch->n = batch->letters = 0;
    return LW_OK;
}

lw_status lw_realign_scan(const lw_realign_run *run, const char *path, const lw_seqio_options *options,
                          lw_distant *table, lw_error *err)
{
    lw_seqio *reader = NULL;
    lw_realign_lane *lane = NULL;
    lw_realign_batch batch = {0};
    lw_status status;
    bool got = true;
    lw_host quiet = {.stop = options->host ? options->host->stop : NULL};
    lw_seqio_options once = *options; /* the other pass warns */
    once.host = &quiet;
    LW_TRY_END(lw_seqio_open(&reader, &path, 1, &once, err));
    LW_TRY_END(lw_realign_lane_open(&lane, run, &lw_align_cpu, 0, err));
    for (int64_t number = 1; got; number++) {
        bam1_t *record = lw_realign_next(&batch);
        if (!record) {
            status = lw_fail_memory(err, sizeof *record);
            goto end;
        }
        LW_TRY_END(lw_seqio_record(reader, record, &got, err));
        if (!got || !is_late(record))
            continue;
        LW_TRY_END(lw_realign_look(run, record, &batch.item[batch.n], path, number, err));
        lw_realign_take(&batch);
        if (batch.n >= LW_REALIGN_BATCH_RECORDS || batch.letters >= LW_REALIGN_BATCH_LETTERS)
            LW_TRY_END(list_changed(lane, &batch, table, err));
    }
    status = list_changed(lane, &batch, table, err);
end:
    lw_realign_batch_free(&batch);
    lw_realign_lane_close(lane);
    lw_seqio_close(reader);
    return status;
}

/* ---- streams ---------------------------------------------------------------------------------- */

struct lw_spool {
    char *path;
    lw_temporaries *temporaries;
    int slot;
};

const char *lw_spool_path(const lw_spool *spool)
{
    return spool->path;
}

void lw_spool_close(lw_spool *spool)
{
    if (!spool)
        return;
    if (spool->path) {
        unlink(spool->path);
        lw_temporaries_drop(spool->temporaries, spool->slot);
    }
    free(spool->path);
    free(spool);
}

static lw_status make_file(lw_spool *spool, lw_error *err)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder)
        folder = "/tmp";
    size_t size = strlen(folder) + 64;
    char *path = malloc(size);
    if (!path)
        return lw_fail_memory(err, size);
    snprintf(path, size, "%s/lanewise-XXXXXX.bam", folder);
    int fd = mkstemps(path, 4);
    if (fd < 0) {
        lw_status status = lw_fail(err, LW_E_IO, "%s: a temporary copy of the input cannot be made: %s",
                                   folder, strerror(errno));
        free(path);
        return status;
    }
    close(fd);
    spool->path = path;
    spool->slot = lw_temporaries_add(spool->temporaries, path);
    return LW_OK;
}

static lw_status copy_rest(lw_spool *spool, lw_seqio *reader, bam1_t *record, const lw_realign_run *run,
                           lw_error *err)
{
    htsFile *file = hts_open(spool->path, "wb1");
    htsThreadPool pool = {.pool = lw_pool_hts(run->pool)};
    bool good = file && (lw_pool_threads(run->pool) < 2 || hts_set_thread_pool(file, &pool) == 0) &&
                sam_hdr_write(file, run->header) == 0;
    lw_status status = LW_OK;
    for (bool got = true; good && got && status == LW_OK;) {
        good = sam_write1(file, run->header, record) >= 0;
        if (good)
            status = lw_seqio_record(reader, record, &got, err);
    }
    if (file && hts_close(file) < 0)
        good = false;
    if (!good && status == LW_OK)
        status = lw_fail(err, LW_E_IO, "%s: the temporary copy of the input cannot be written: %s",
                         spool->path, errno ? strerror(errno) : "the disk may be full");
    return status;
}

lw_status lw_spool_open(lw_spool **out, lw_seqio *reader, bam1_t *record, const lw_realign_run *run,
                        lw_temporaries *temporaries, lw_error *err)
{
    lw_spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return lw_fail_memory(err, sizeof *spool);
    spool->temporaries = temporaries;
    spool->slot = -1;
    lw_status status = make_file(spool, err);
    if (status == LW_OK)
        status = copy_rest(spool, reader, record, run, err);
    if (status != LW_OK) {
        lw_spool_close(spool);
        return status;
    }
    *out = spool;
    return LW_OK;
}
