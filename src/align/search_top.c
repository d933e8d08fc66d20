/* search_top.c - the best hits of a query. */
#include "align/search_top.h"

#include <stdlib.h>

#include "common/fail.h"

/* The order as one number, smaller is better: score, then place in the user's file. */
static uint64_t key(lw_search_hit hit, const int32_t *order)
{
    return (uint64_t)(INT32_MAX - hit.score) << 32 | (uint32_t)order[hit.subject];
}

static void swap(lw_search_hit *a, lw_search_hit *b)
{
    lw_search_hit t = *a;
    *a = *b;
    *b = t;
}

static void sift_down(lw_search_hit *heap, int64_t n, int64_t i, const int32_t *order)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child) { /* the worst of all is on top */
        if (child + 1 < n && key(heap[child + 1], order) > key(heap[child], order))
            child++;
        if (key(heap[child], order) <= key(heap[i], order))
            return;
        swap(&heap[i], &heap[child]);
    }
}

int32_t lw_top_sort(lw_search_hit *hits, int64_t n, int32_t top_n, const int32_t *order)
{
    int64_t kept = n < top_n ? n : top_n;
    for (int64_t i = kept / 2 - 1; i >= 0; i--)
        sift_down(hits, kept, i, order);
    for (int64_t i = kept; i < n; i++) {
        if (key(hits[i], order) < key(hits[0], order)) {
            swap(&hits[i], &hits[0]);
            sift_down(hits, kept, 0, order);
        }
    }
    for (int64_t i = kept - 1; i > 0; i--) { /* heap sort: the worst goes to the end */
        swap(&hits[0], &hits[i]);
        sift_down(hits, i, 0, order);
    }
    return (int32_t)kept;
}

lw_status lw_top_add(lw_top *top, lw_search_hit hit, int32_t top_n, const int32_t *order, lw_error *err)
{
    if (hit.score < top->min_score)
        return LW_OK;
    if (top->n == top->capacity && top->n / 2 >= top_n) { /* twice as many as wanted: cut, cheap on average */
        top->n = lw_top_sort(top->hits, top->n, top_n, order);
        top->min_score = top->hits[top->n - 1].score;
        if (hit.score < top->min_score)
            return LW_OK;
    }
    if (top->n == top->capacity) {
        int64_t capacity = top->capacity ? 2 * top->capacity : 64;
        lw_search_hit *hits = realloc(top->hits, (size_t)capacity * sizeof *hits);
        if (!hits)
            return lw_fail_memory(err, (size_t)capacity * sizeof *hits);
        top->hits = hits;
        top->capacity = capacity;
    }
    top->hits[top->n++] = hit;
    return LW_OK;
}
