/* align_run.h - one run of align or pairs: what all its threads share, a batch, and what a compute lane does
 * with a batch. */
#ifndef LW_ALIGN_RUN_H
#define LW_ALIGN_RUN_H

#include "lanewise/align.h"
#include "align/align_backend.h"
#include "align/aligned.h"
#include "align/encode.h"
#include "align/mates.h"
#include "common/pool.h"
#include "common/refs.h"
#include "common/seqio.h"

/* Where the second sequence of each unit of work comes from. */
typedef enum lw_run_kind {
    LW_RUN_READS,       /* single reads against the references */
    LW_RUN_INTERLEAVED, /* mates one after the other in input 0 */
    LW_RUN_MATES,       /* mates in inputs 0 and 1 */
    LW_RUN_PAIRS        /* queries in input 0, each with its own target in input 1 */
} lw_run_kind;

/* Read-only while lanes work. */
typedef struct lw_align_run {
    lw_run_kind kind;
    const lw_host *host;
    lw_pool *pool;
    lw_scoring scoring;
    lw_match_table match;
    lw_mode mode;
    unsigned strands;
    int32_t min_score;
    int n_hits, n_ties; /* as lw_align_setup */
    lw_insert_range insert;
    bool free_ends;   /* of both sequences, by overlap.h */
    bool scores_only; /* no paths */
    bool split_matches;
    bool drop_unmapped;
    bool sam_records; /* SAM, BAM or CRAM: names of at most LW_BAM_NAME_MAX letters, one for both mates */
    lw_refs *refs;    /* NULL for LW_RUN_PAIRS */
    lw_encoded ref_codes;
    int32_t longest_ref;
    lw_seqio *reader[2];
    const lw_sink *sink;
    const lw_align_backend *backend;
    int64_t device_bytes; /* as in lw_align_setup */
} lw_align_run;

/* A batch as it travels from the reader to the writer. */
typedef struct lw_batch {
    lw_read_batch reads[2];
    lw_chunk *chunk;        /* formatted records, in order */
    lw_align_summary *part; /* one per chunk */
    int64_t n_chunks, chunk_capacity;
    lw_align_summary total; /* of this batch */
    int64_t flagged;        /* reads flagged as paired that were aligned singly */
} lw_batch;

void lw_batch_free(lw_batch *batch);

/* What a lane needs besides its backend's context; kept from batch to batch. */
typedef struct lw_lane lw_lane;
lw_status lw_lane_open(lw_lane **out, lw_align_run *run, int device, lw_error *err);
void lw_lane_close(lw_lane *lane); /* NULL is allowed */

/* Letters that counted as X, so far on this lane. */
const lw_substitutions *lw_lane_substitutions(const lw_lane *lane);

/* Places and traces every read of the batch, pairs mates, formats the records. */
lw_status lw_lane_work(lw_lane *lane, lw_batch *batch, lw_error *err);

/* LW_E_RANGE, naming the read, when an alignment of these lengths could leave the range of scores. */
lw_status lw_check_range(const lw_scoring *scoring, lw_mode mode, int32_t query_len, int32_t target_len,
                         const char *where, lw_error *err);

#endif
