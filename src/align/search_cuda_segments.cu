/* search_cuda_segments.cu - segments of a chunk: what a group of lanes works through at a time. */
#include "align/search_cuda_context.h"

#include <stdlib.h>
#include <string.h>

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

lw_status lw_sw_need_list(context *c, place *p, const chunk *k, int group, int overlap, segment_list **out,
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
