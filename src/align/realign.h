/* realign.h - what the parts of realign share.
 *
 *     realign_files.c   the run: opens, checks, sends batches through the pipeline, reports
 *     realign_record.c  one record: what is to be aligned, what is optimal already, the new fields and tags
 *     realign_solve.c   many reads in their windows, by any backend
 *     realign_batch.c   a batch of records on a compute lane
 *     realign_mates.c   what a moved record changes in its mate
 *     realign_order.c   the order of the output, and which records wait for their mates
 *     realign_distant.c mates that stand too far away to wait for, and streams that cannot be read twice */
#ifndef LW_REALIGN_H
#define LW_REALIGN_H

#include <htslib/sam.h>
#include "lanewise/align.h"
#include "align/align_backend.h"
#include "align/cigar.h"
#include "align/encode.h"
#include "common/pool.h"
#include "common/refs.h"
#include "common/seqio.h"

/* ---- reads in windows ------------------------------------------------------------------------- */

/* One read to align to the letters round its place. */
typedef struct lw_realign_task {
    int64_t read, target; /* indices */
    int32_t start, end;   /* its place on the target, half-open */
    int32_t present;      /* score of its alignment there; INT32_MIN: not known */
    /* filled in */
    int32_t score, new_start, new_end;
    int64_t cigar; /* index of the first operation, as in lw_path */
    int32_t n_cigar;
    bool widened; /* the window grew */
    bool at_edge; /* the alignment still touches the last window's edge */
} lw_realign_task;

/* Arrays kept from call to call; zero-initialise. */
typedef struct lw_realign_solver {
    const lw_align_backend *backend;
    void *context; /* opened for LW_SEMIGLOBAL, forward, no lowest score */
    const lw_scoring *scoring;
    int32_t pad;
    int64_t *task, *query_start, *target_start;
    int32_t *query_len, *target_len;
    lw_hit *hit;
    lw_trace_task *trace;
    lw_path *path;
    int64_t capacity;
    double cells; /* of the dynamic programming matrices so far */
} lw_realign_solver;

/* The optimum of every task: semiglobal in the window of `pad` letters round its place. Where it touches an
 * edge of the window that is no end of the target, the window is widened, up to LW_REALIGN_MOST_PADS pads.
 * Among optimal ends the present one, where the present alignment is optimal; else the tie rule. */
lw_status lw_realign_solve(lw_realign_solver *s, const lw_seqs *reads, const lw_seqs *targets, int64_t n,
                           lw_realign_task *tasks, lw_cigars *cigars, lw_error *err);
void lw_realign_solver_free(lw_realign_solver *s); /* the arrays; the context is the caller's */

/* ---- records ------------------------------------------------------------------------------------ */

/* What becomes of a record. */
typedef enum lw_realign_kind {
    LW_REALIGN,
    LW_PASS_UNMAPPED,
    LW_PASS_SECONDARY,
    LW_PASS_SUPPLEMENTARY,
    LW_PASS_NO_SEQUENCE, /* SEQ is * */
    LW_PASS_NO_CIGAR,    /* CIGAR is * */
    LW_PASS_SKIP,        /* N or P in its CIGAR */
    LW_PASS_NO_LETTERS,  /* nothing of it is aligned, or SEQ holds = */
    LW_REALIGN_KINDS
} lw_realign_kind;

typedef struct lw_realign_item {
    uint8_t kind;             /* lw_realign_kind */
    bool proved;              /* its alignment is optimal: no need to compute */
    bool changed;             /* CIGAR or POS */
    int32_t old_pos, old_end; /* as it came, half-open */
    int32_t lead, trail;      /* clipping operations at either end */
    int32_t clipped;          /* soft-clipped letters before the first aligned one */
    int32_t query_len;        /* letters between the clips */
    int32_t present, score;   /* of its alignment as it came, and now */
    int64_t letters;          /* index of SEQ's codes in the batch */
    int64_t task;             /* -1: none */
} lw_realign_item;

typedef struct lw_realign_counts {
    int64_t kind[LW_REALIGN_KINDS];
    int64_t proved, changed, moved, improved, widened, at_edge;
    int64_t gain, highest_gain; /* score, over all records */
    int64_t letters;            /* between clips, of realigned records */
} lw_realign_counts;

void lw_realign_counts_add(lw_realign_counts *sum, const lw_realign_counts *more);

/* Read-only while lanes work. */
typedef struct lw_realign_run {
    const lw_host *host;
    lw_pool *pool;
    lw_scoring scoring;
    lw_match_table match;
    lw_refs *refs;
    lw_encoded ref_codes;
    int32_t *ref_of; /* row of @SQ -> index of the reference */
    sam_hdr_t *header;
    int32_t pad;
    bool keep_old;        /* OC and OP */
    int64_t device_bytes; /* as in lw_align_setup */
    /* derived from the scoring by lw_realign_prepare() */
    uint8_t code_pair[256][2];    /* byte of packed letters -> codes */
    int16_t best[LW_MAX_LETTERS]; /* highest score of a query letter */
    int32_t least_gap;            /* cost of the cheapest gap */
} lw_realign_run;

void lw_realign_prepare(lw_realign_run *run);

/* Sorts a record into its kind and notes its place. LW_E_INPUT (`where` names it): it lies beyond the end of
 * its reference; LW_E_RANGE: it is too long for the scoring. */
lw_status lw_realign_look(const lw_realign_run *run, const bam1_t *record, lw_realign_item *item,
                          const char *file, int64_t number, lw_error *err);

/* Unpacks SEQ's codes, scores the present alignment, and sees whether it is optimal already. */
void lw_realign_begin(const lw_realign_run *run, const bam1_t *record, lw_realign_item *item, uint8_t *codes);

/* Scratch of one thread. */
typedef struct lw_realign_scratch {
    kstring_t letters, cigar, aux, text;
} lw_realign_scratch;

void lw_realign_scratch_free(lw_realign_scratch *scratch);

/* Writes the outcome into the record: task is that of the item, NULL where the alignment was proved optimal.
 * LW_E_INTERNAL: the path does not score what the backend says. */
lw_status lw_realign_finish(const lw_realign_run *run, bam1_t *record, lw_realign_item *item,
                            const lw_realign_task *task, const uint32_t *path, const uint8_t *codes,
                            lw_realign_scratch *scratch, lw_realign_counts *counts, lw_error *err);

/* ---- batches ------------------------------------------------------------------------------------ */

typedef struct lw_realign_batch {
    bam1_t **record;
    lw_realign_item *item;
    int64_t n, capacity;
    int64_t letters; /* sum of the lengths of SEQ */
    uint8_t *codes;
    int64_t codes_capacity;
    int64_t first; /* number of the first record in the file, from 1 */
    lw_realign_counts counts;
    double cells;
} lw_realign_batch;

/* The next free record of the batch, not yet counted in n; NULL: no memory. */
bam1_t *lw_realign_next(lw_realign_batch *batch);
/* Takes it in, once lw_realign_look() has filled its item. */
void lw_realign_take(lw_realign_batch *batch);
void lw_realign_batch_free(lw_realign_batch *batch);

typedef struct lw_realign_lane lw_realign_lane;
lw_status lw_realign_lane_open(lw_realign_lane **out, const lw_realign_run *run,
                               const lw_align_backend *backend, int device, lw_error *err);
void lw_realign_lane_close(lw_realign_lane *lane); /* NULL is allowed */
lw_status lw_realign_lane_work(lw_realign_lane *lane, lw_realign_batch *batch, lw_error *err);

/* ---- mates -------------------------------------------------------------------------------------- */

/* Where a record lay and lies, and its CIGAR now. */
typedef struct lw_realign_place {
    int32_t target, old_start, old_end, start, end;
    bool mapped, reverse, changed;
    const uint32_t *cigar;
    int64_t n_cigar;
} lw_realign_place;

lw_realign_place lw_realign_place_of(const bam1_t *record, const lw_realign_item *item);

/* Brings PNEXT, MC and TLEN of a record up to its mate's place, and the place of an unmapped record that
 * stood with its mate. mate NULL: it is unchanged. *updated counts records that had to change. LW_E_NOMEM. */
lw_status lw_realign_update_mate(bam1_t *record, const lw_realign_place *own, const lw_realign_place *mate,
                                 int64_t *updated, lw_error *err);

/* Changed records whose mates are far away, by name and number of the mate. */
typedef struct lw_distant lw_distant;
lw_status lw_distant_open(lw_distant **out, lw_error *err);
void lw_distant_close(lw_distant *table); /* NULL is allowed */
lw_status lw_distant_add(lw_distant *table, const bam1_t *record, const lw_realign_item *item, lw_error *err);
/* The mate of `record`, valid until it is dropped; NULL: it did not change. */
const lw_realign_place *lw_distant_mate(const lw_distant *table, const bam1_t *record);
void lw_distant_drop_mate(lw_distant *table, const bam1_t *record);

/* Whether `record` is one mate of two that are both placed. */
static inline bool lw_has_placed_mate(const bam1_t *record)
{
    const bam1_core_t *c = &record->core;
    return (c->flag & BAM_FPAIRED) && c->tid >= 0 && c->mtid >= 0 && c->mpos >= 0;
}

static inline bool lw_is_primary(const bam1_t *record)
{
    return !(record->core.flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY));
}

/* In coordinate-sorted input, for a record that came from old_pos: 1 where its mate comes so much later that
 * it is not waited for, -1 where the mate came so much earlier that it did not wait, else 0. */
int lw_mate_side(const bam1_t *record, int32_t old_pos);

/* Realigns the records whose mates came long before them, in a pass of its own, and lists those that change.
 * Any backend finds the same: this is done on the CPU, beside the run's own lanes. */
lw_status lw_realign_scan(const lw_realign_run *run, const char *path, const lw_seqio_options *options,
                          lw_distant *table, lw_error *err);

/* A stream cannot be read twice: `record` and all that follows it in `reader` go to a temporary file. */
typedef struct lw_spool lw_spool;
lw_status lw_spool_open(lw_spool **out, lw_seqio *reader, bam1_t *record, const lw_realign_run *run,
                        lw_temporaries *temporaries, lw_error *err);
const char *lw_spool_path(const lw_spool *spool);
void lw_spool_close(lw_spool *spool); /* removes the file; NULL is allowed */

/* ---- order -------------------------------------------------------------------------------------- */

typedef struct lw_realign_order lw_realign_order;

typedef struct lw_realign_order_options {
    bool by_coordinate; /* else mates stand side by side, if at all */
    int32_t pad;
    const char *file; /* for messages */
    lw_status (*write)(void *arg, const bam1_t *record, lw_error *err);
    /* Lists in `table` the late mates of records that cannot wait; called once, when there is one. */
    lw_status (*scan)(void *arg, lw_distant *table, lw_error *err);
    void *arg;
} lw_realign_order_options;

typedef struct lw_realign_order_counts {
    int64_t mates_updated; /* records with new mate fields */
    int64_t mates_missing; /* paired records whose mate was not where they say */
    int64_t most_held;     /* records held at a time */
} lw_realign_order_counts;

lw_status lw_realign_order_open(lw_realign_order **out, const lw_realign_order_options *options,
                                lw_error *err);
/* Takes a record (exchanged for a used one, so that memory goes round) and writes those whose turn it is. */
lw_status lw_realign_order_add(lw_realign_order *order, bam1_t **record, const lw_realign_item *item,
                               lw_error *err);
lw_status lw_realign_order_end(lw_realign_order *order, lw_error *err); /* the rest */
const lw_realign_order_counts *lw_realign_order_count(const lw_realign_order *order);
void lw_realign_order_close(lw_realign_order *order); /* NULL is allowed */

#endif
