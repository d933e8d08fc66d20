/* search_cuda_context.h - what an open CUDA search consists of, and the steps of a search() call, each in a
 * file of its own:
 *
 *   search_cuda.cu           opening, closing, and the call itself
 *   search_cuda_ladder.cu    which arithmetics fit the scores
 *   search_cuda_database.cu  chunks of the database, and how they come to the device
 *   search_cuda_segments.cu  what a group of lanes works through at a time
 *   search_cuda_packs.cu     queries that run together
 *   search_cuda_unit.cu      a pack against a chunk: its programs and arrays
 *   search_cuda_enqueue.cu   the order of its steps on the device
 *
 * For .cu files. */
#ifndef LW_SEARCH_CUDA_CONTEXT_H
#define LW_SEARCH_CUDA_CONTEXT_H

#include "align/search_backend.h"
#include "align/search_cuda_memory.h"
#include "align/search_plan.h"
#include "align/search_select.h"
#include "align/search_top.h"
#include "align/search_tuning.h"

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

typedef struct packs {
    pack *pack;
    int64_t n;
    int64_t *queries; /* all members, pack after pack */
} packs;

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
    int n_jobs, n_profiles;
    unit_arrays device;
    /* first jobs: of long pairs and of the others in the first run, of each query in the rounds after it */
    int long_jobs, rest_jobs;
    int *again_jobs[LW_SW_ROUNDS][LW_SW_LEVELS];
} unit;

/* Jobs, profiles and lanes of a program are filled in order; job and profile j of the unit stand at index j.
 */
typedef struct writer {
    unit *u;
    unit_arrays host;
    int n_jobs, n_profiles;
    size_t n_vectors;
} writer;

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Letters whose scores agree, and the arithmetics of a policy. */
void lw_sw_make_classes(context *c);
void lw_sw_make_ladder(context *c, int policy);
/* How far a first run's bounds from below may lie under the score. */
int32_t lw_sw_first_run_bound(const context *c);

lw_status lw_sw_make_chunks(context *c, lw_error *err);
size_t lw_sw_place_bytes(const chunk *k);
/* Puts chunk `index` on the device, if it is not there. */
lw_status lw_sw_fetch_chunk(context *c, int64_t index, place **out, lw_error *err);

/* The segments of a chunk for groups of so many lanes. */
lw_status lw_sw_need_list(context *c, place *p, const chunk *k, int group, int overlap, segment_list **out,
                          lw_error *err);

/* The first arithmetic for queries that run together. */
int lw_sw_first_arithmetic(const context *c, const lw_search_request *r, const int64_t *queries, int n,
                           bool filter);
/* `most` queries in a pack at most. */
lw_status lw_sw_make_packs(const context *c, const lw_search_request *r, int most, packs *out, lw_error *err);
void lw_sw_free_packs(packs *p);

lw_status lw_sw_plan_unit(unit *u, lw_error *err);
void lw_sw_free_unit(unit *u);
/* Arrays from `at` on (NULL: counts only); returns their bytes. */
size_t lw_sw_cut_arrays(const unit *u, char *at, unit_arrays *a);
/* Device bytes of a query in a unit, for the choice of the packs' size. */
int64_t lw_sw_query_bytes(const chunk *k);
/* Profiles of a program's passes, and one job for each pass: all fields but those that say which segments.
 * Both return the index of the first. */
int lw_sw_write_profiles(writer *w, const lw_sw_program *p, int arithmetic, bool gapless, bool above);
int lw_sw_write_jobs(writer *w, const lw_sw_program *p, int first_profile, const lw_sw_job *common);

/* Starts a unit in its slot. */
lw_status lw_sw_enqueue(unit *u, const lw_top *tops, lw_error *err);

#endif
