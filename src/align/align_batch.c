/* align_batch.c - what a compute lane does with one batch: place, pair, trace, and turn paths into records.
 */
#include "align/align_run.h"

#include <stdlib.h>
#include <string.h>

#include "align/overlap.h"
#include "common/fail.h"

/* Which placements of a read become records. */
typedef struct placed {
    lw_hit primary;       /* hits[0], or the tie that makes a proper pair */
    int64_t primary_task; /* its trace; -1: none */
    int64_t first_task;   /* of its secondary placements */
    int32_t n_secondary;
} placed;

/* One input's share of a batch. */
typedef struct read_side {
    const lw_read_batch *reads;
    lw_encoded codes;
    lw_hit *hits, *ties;
    int64_t n_hits_capacity, n_ties_capacity;
    placed *read; /* one per read */
    int64_t read_capacity;
    lw_trace_task *task;
    lw_path *path;
    int64_t n_tasks, n_traced, task_capacity, path_capacity;
    lw_cigars cigars;
} read_side;

/* A tie on the forward strand that might belong to a proper pair: its start has to be known. */
typedef struct tie_candidate {
    int64_t task;
    int32_t tie;
} tie_candidate;

/* The candidates of one pair whose mates could lie in more than one place. */
typedef struct open_pair {
    int64_t pair;
    int64_t first[2]; /* candidates of each mate */
    int32_t n[2];
} open_pair;

struct lw_lane {
    lw_align_run *run;
    void *context;
    read_side side[2];
    lw_encoded padded; /* targets of pairs with free ends */
    lw_substitutions substitutions;
    tie_candidate *candidates;
    int64_t n_candidates, candidate_capacity;
    open_pair *open;
    int64_t n_open, open_capacity;
};

/* Grows *array to hold n items. */
static lw_status reserve(void *array, int64_t *capacity, int64_t n, size_t item, lw_error *err)
{
    if (n <= *capacity)
        return LW_OK;
    int64_t wanted = n > 2 * *capacity ? n : 2 * *capacity;
    void *grown = realloc(*(void **)array, (size_t)wanted * item);
    if (!grown)
        return lw_fail_memory(err, (size_t)wanted * item);
    *(void **)array = grown;
    *capacity = wanted;
    return LW_OK;
}

lw_status lw_lane_open(lw_lane **out, lw_align_run *run, int device, lw_error *err)
{
    lw_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return lw_fail_memory(err, sizeof *lane);
    lane->run = run;
    lw_align_setup setup = {.scoring = &run->scoring,
                            .mode = run->mode,
                            .strands = run->strands,
                            .refs = run->refs ? &run->ref_codes.seqs : NULL,
                            .min_score = run->min_score,
                            .n_hits = run->n_hits,
                            .n_ties = run->n_ties,
                            .pool = run->pool,
                            .device = device,
                            .device_bytes = run->device_bytes,
                            .host = run->host};
    lw_status status = run->backend->open(run->backend, &lane->context, &setup, err);
    if (status != LW_OK) {
        free(lane);
        return status;
    }
    *out = lane;
    return LW_OK;
}

void lw_lane_close(lw_lane *lane)
{
    if (!lane)
        return;
    lane->run->backend->close(lane->context);
    for (int s = 0; s < 2; s++) {
        read_side *side = &lane->side[s];
        lw_encoded_free(&side->codes);
        free(side->hits);
        free(side->ties);
        free(side->read);
        free(side->task);
        free(side->path);
        free(side->cigars.op);
    }
    lw_encoded_free(&lane->padded);
    free(lane->candidates);
    free(lane->open);
    free(lane);
}

const lw_substitutions *lw_lane_substitutions(const lw_lane *lane)
{
    return &lane->substitutions;
}

void lw_batch_free(lw_batch *batch)
{
    lw_read_batch_free(&batch->reads[0]);
    lw_read_batch_free(&batch->reads[1]);
    for (int64_t i = 0; i < batch->chunk_capacity; i++)
        lw_chunk_free(&batch->chunk[i]);
    free(batch->chunk);
    free(batch->part);
    memset(batch, 0, sizeof *batch);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Backends compute with 32 bits and take INT32_MIN / 2 for minus infinity, so |H| must stay below 2^30. From
 * above, H gains at most max_score for each letter of the shorter sequence. From below, every cell can be
 * reached by one insertion and one deletion, so H(i,j) >= -(2 open + (i + j) extend) where borders cost (in
 * semiglobal mode only the insertion does), E and F lie at most one gap lower, and one matrix entry or one
 * step of a gap more is added before a maximum is taken: 4 * LW_MAX_SCORE covers both. */
enum { LW_ROWS_BEYOND = 1024 }; /* kernels count rows beyond the last, of several blocks and strips */

lw_status lw_check_range(const lw_scoring *scoring, lw_mode mode, int32_t query_len, int32_t target_len,
                         const char *where, lw_error *err)
{
    const int64_t limit = (INT64_C(1) << 30) - 1;
    /* a BAM CIGAR operation holds a length of 28 bits */
    const int32_t longest_operation = (1 << 28) - 1;
    if (query_len > longest_operation || (mode == LW_GLOBAL && target_len > longest_operation))
        return lw_fail(err, LW_E_RANGE, "%s: %d letters: an alignment holds at most %d in one piece", where,
                       query_len > longest_operation ? query_len : target_len, longest_operation);
    if (target_len > INT32_MAX - LW_ROWS_BEYOND)
        return lw_fail(err, LW_E_RANGE, "%s: %d letters are more than the limit of %d", where, target_len,
                       INT32_MAX - LW_ROWS_BEYOND);
    int64_t shorter = query_len < target_len ? query_len : target_len;
    int64_t highest = scoring->max_score > 0 ? scoring->max_score * shorter : 0;
    if (highest > limit)
        return lw_fail(
            err, LW_E_RANGE,
            "%s: %d letters against %d at %d a match could score %lld, more than the limit of %lld: "
            "lower the match score",
            where, query_len, target_len, scoring->max_score, (long long)highest, (long long)limit);
    /* a deletion within the target costs no more than matches make good */
    const int64_t inner = lw_gap_letters(scoring, highest);
    if (target_len > longest_operation && (inner < 0 || inner > longest_operation))
        return lw_fail(err, LW_E_RANGE,
                       "%s: %d letters against %d with gaps at %d + %d a letter could leave out more than %d "
                       "in one piece: raise the gap penalties",
                       where, query_len, target_len, scoring->gap_open, scoring->gap_extend,
                       longest_operation);
    int64_t gap_letters = mode == LW_LOCAL    ? 0
                          : mode == LW_GLOBAL ? (int64_t)query_len + target_len
                                              : query_len;
    int64_t lowest =
        3 * (int64_t)scoring->gap_open + (gap_letters + 1) * scoring->gap_extend + 4 * (int64_t)LW_MAX_SCORE;
    if (scoring->two_piece) /* H as with the first piece alone, E and F of the second below it */
        lowest += (int64_t)scoring->gap_open2 + scoring->gap_extend2;
    if (lowest > limit)
        return lw_fail(
            err, LW_E_RANGE,
            "%s: %d letters against %d with gaps at %d + %d a letter could score -%lld, beyond the "
            "limit of -%lld: lower the gap penalties",
            where, query_len, target_len, scoring->gap_open, scoring->gap_extend, (long long)lowest,
            (long long)limit);
    return LW_OK;
}

/* Mates carry one name, but for a final /1 and /2. */
static lw_status check_mates(const lw_align_run *run, const lw_batch *batch, lw_error *err)
{
    bool interleaved = run->kind == LW_RUN_INTERLEAVED;
    const lw_read_batch *first = &batch->reads[0], *second = &batch->reads[interleaved ? 0 : 1];
    int64_t step = interleaved ? 2 : 1;
    for (int64_t i = 0; i < first->n; i += step) {
        int64_t j = interleaved ? i + 1 : i;
        const char *a = lw_read_name(first, i), *b = lw_read_name(second, j);
        int32_t length = lw_mate_name_length(a, first->read[i].name_len);
        if (length == lw_mate_name_length(b, second->read[j].name_len) && memcmp(a, b, (size_t)length) == 0)
            continue;
        char where[512];
        return lw_fail(
            err, LW_E_INPUT,
            "%s: the read in its mate's place is '%s' (%s, record %lld): the mates are not in one order",
            lw_read_where(run->reader[0], first, i, where, sizeof where), b,
            lw_seqio_path(run->reader[interleaved ? 0 : 1], second->read[j].input),
            (long long)second->read[j].number);
    }
    return LW_OK;
}

static lw_status check_reads(const lw_align_run *run, lw_batch *batch, lw_error *err)
{
    batch->flagged = 0;
    for (int s = 0; s < 2; s++) {
        const lw_read_batch *reads = &batch->reads[s];
        for (int64_t i = 0; i < reads->n; i++) {
            batch->flagged += run->kind == LW_RUN_READS && (reads->read[i].flag & BAM_FPAIRED);
            int32_t target_len = run->longest_ref;
            if (run->kind == LW_RUN_PAIRS)
                target_len = batch->reads[1 - s].read[i].len;
            char where[512];
            if (lw_check_range(&run->scoring, run->mode, reads->read[i].len, target_len, "", NULL) != LW_OK)
                return lw_check_range(&run->scoring, run->mode, reads->read[i].len, target_len,
                                      lw_read_where(run->reader[s], reads, i, where, sizeof where), err);
            bool is_target = run->kind == LW_RUN_PAIRS && s == 1;
            if (run->sam_records && !is_target && reads->read[i].name_len > LW_BAM_NAME_MAX)
                return lw_fail(
                    err, LW_E_INPUT,
                    "%s: the read's name has %d letters, SAM and BAM hold at most %d: shorten it, or "
                    "write --format paf or tsv",
                    lw_read_where(run->reader[s], reads, i, where, sizeof where), reads->read[i].name_len,
                    LW_BAM_NAME_MAX);
        }
    }
    return LW_OK;
}

/* ---- placing --------------------------------------------------------------------------------- */

/* Makes room for the reads of a new batch and forgets the last one. */
static lw_status begin_side(const lw_align_run *run, read_side *side, lw_error *err)
{
    int64_t n = side->reads->n;
    LW_TRY(reserve(&side->hits, &side->n_hits_capacity, n * run->n_hits, sizeof *side->hits, err));
    if (run->n_ties > 0)
        LW_TRY(reserve(&side->ties, &side->n_ties_capacity, n * run->n_ties, sizeof *side->ties, err));
    LW_TRY(reserve(&side->read, &side->read_capacity, n, sizeof *side->read, err));
    side->n_tasks = side->n_traced = 0;
    side->cigars.n = 0;
    return LW_OK;
}

static lw_status place_side(lw_lane *lane, read_side *side, lw_error *err)
{
    lw_align_run *run = lane->run;
    int64_t n = side->reads->n;
    LW_TRY(begin_side(run, side, err));
    if (n == 0)
        return LW_OK;
    lw_placements out = {.hits = side->hits, .ties = run->n_ties > 0 ? side->ties : NULL};
    LW_TRY(run->backend->place(lane->context, &side->codes.seqs, &out, err));
    for (int64_t i = 0; i < n; i++) {
        side->read[i] = (placed){.primary = side->hits[i * run->n_hits], .primary_task = -1};
    }
    return LW_OK;
}

static lw_status add_task(const lw_align_run *run, read_side *side, int64_t read, const lw_hit *hit,
                          lw_error *err)
{
    LW_TRY(reserve(&side->task, &side->task_capacity, side->n_tasks + 1, sizeof *side->task, err));
    lw_trace_task *task = &side->task[side->n_tasks++];
    *task = (lw_trace_task){.query = read};
    lw_trace_window(&run->scoring, run->mode, hit, task);
    return LW_OK;
}

/* Secondary placements: those of place() that lie away from the primary one. */
static lw_status add_secondary(const lw_align_run *run, read_side *side, int64_t read, lw_error *err)
{
    const lw_hit *primary = &side->read[read].primary, *hits = side->hits + read * run->n_hits;
    side->read[read].first_task = side->n_tasks;
    for (int k = 0; k < run->n_hits && side->read[read].n_secondary < run->n_hits - 1; k++) {
        if (hits[k].target < 0)
            break;
        bool near = hits[k].target == primary->target && hits[k].reverse == primary->reverse &&
                    llabs((long long)hits[k].tend - primary->tend) <= side->reads->read[read].len;
        if (near)
            continue;
        LW_TRY(add_task(run, side, read, &hits[k], err));
        side->read[read].n_secondary++;
    }
    return LW_OK;
}

static lw_status add_primary(const lw_align_run *run, read_side *side, int64_t read, lw_error *err)
{
    if (side->read[read].primary.target < 0)
        return LW_OK;
    if (side->read[read].primary_task < 0) {
        side->read[read].primary_task = side->n_tasks;
        LW_TRY(add_task(run, side, read, &side->read[read].primary, err));
    }
    return add_secondary(run, side, read, err);
}

static lw_status trace_side(lw_lane *lane, read_side *side, lw_error *err)
{
    lw_align_run *run = lane->run;
    int64_t n = side->n_tasks - side->n_traced;
    if (n == 0)
        return LW_OK;
    LW_TRY(reserve(&side->path, &side->path_capacity, side->n_tasks, sizeof *side->path, err));
    LW_TRY(run->backend->trace(lane->context, &side->codes.seqs, NULL, n, side->task + side->n_traced,
                               side->path + side->n_traced, &side->cigars, err));
    side->n_traced = side->n_tasks;
    return LW_OK;
}

/* ---- mates ----------------------------------------------------------------------------------- */

/* Mate m of pair p: its side, and its index there in *i. */
static read_side *mate_of(lw_lane *lane, int64_t p, int m, int64_t *i)
{
    bool interleaved = lane->run->kind == LW_RUN_INTERLEAVED;
    *i = interleaved ? 2 * p + m : p;
    return &lane->side[interleaved ? 0 : m];
}

static int count_ties(const lw_align_run *run, const lw_hit *ties)
{
    int n = 0;
    while (n < run->n_ties && ties[n].target >= 0)
        n++;
    return n;
}

/* Lists the forward ties of mate m that could make a proper pair with a reverse tie of the other. */
static lw_status list_candidates(lw_lane *lane, open_pair *open, int m, lw_error *err)
{
    const lw_align_run *run = lane->run;
    int64_t i, j;
    read_side *here = mate_of(lane, open->pair, m, &i), *there = mate_of(lane, open->pair, 1 - m, &j);
    const lw_hit *a = here->ties + i * run->n_ties, *b = there->ties + j * run->n_ties;
    int n_a = count_ties(run, a), n_b = count_ties(run, b);
    open->first[m] = lane->n_candidates;
    open->n[m] = 0;
    for (int k = 0; k < n_a; k++) {
        if (a[k].reverse)
            continue;
        lw_trace_task window;
        lw_trace_window(&run->scoring, run->mode, &a[k], &window);
        bool possible = false;
        for (int l = 0; l < n_b && !possible; l++)
            possible = lw_may_be_proper(&a[k], window.tbegin, &b[l], run->insert);
        if (!possible)
            continue;
        LW_TRY(reserve(&lane->candidates, &lane->candidate_capacity, lane->n_candidates + 1,
                       sizeof *lane->candidates, err));
        lane->candidates[lane->n_candidates++] = (tie_candidate){.task = here->n_tasks, .tie = k};
        open->n[m]++;
        LW_TRY(add_task(run, here, i, &a[k], err));
    }
    return LW_OK;
}

/* The placement of tie k of a mate. Forward ones have a start only if they are candidates. */
static bool tie_end(const lw_lane *lane, const read_side *side, const open_pair *open, int m,
                    const lw_hit *ties, int k, lw_mate_end *end, int64_t *task)
{
    *end = (lw_mate_end){
        .target = ties[k].target, .tstart = ties[k].tend, .tend = ties[k].tend, .reverse = ties[k].reverse};
    *task = -1;
    if (ties[k].reverse)
        return true;
    for (int32_t c = 0; c < open->n[m]; c++) {
        const tie_candidate *candidate = &lane->candidates[open->first[m] + c];
        if (candidate->tie != k)
            continue;
        *task = candidate->task;
        end->tstart = side->path[candidate->task].tstart;
        return true;
    }
    return false;
}

/* Among the ties of both mates the first proper pair, in the order of the first mate's ties, then of the
 * second's; else both keep their optimum by the tie rule. */
static void settle_pair(lw_lane *lane, const open_pair *open)
{
    const lw_align_run *run = lane->run;
    int64_t i, j;
    read_side *first = mate_of(lane, open->pair, 0, &i), *second = mate_of(lane, open->pair, 1, &j);
    const lw_hit *a = first->ties + i * run->n_ties, *b = second->ties + j * run->n_ties;
    int n_a = count_ties(run, a), n_b = count_ties(run, b);
    for (int k = 0; k < n_a; k++) {
        lw_mate_end end_a, end_b;
        int64_t task_a, task_b;
        if (!tie_end(lane, first, open, 0, a, k, &end_a, &task_a))
            continue;
        for (int l = 0; l < n_b; l++) {
            if (!tie_end(lane, second, open, 1, b, l, &end_b, &task_b) ||
                !lw_proper_pair(&end_a, &end_b, run->insert))
                continue;
            first->read[i].primary = a[k];
            second->read[j].primary = b[l];
            first->read[i].primary_task = task_a;
            second->read[j].primary_task = task_b;
            return;
        }
    }
}

static lw_status pair_mates(lw_lane *lane, int64_t n_pairs, lw_error *err)
{
    const lw_align_run *run = lane->run;
    lane->n_open = lane->n_candidates = 0;
    for (int64_t p = 0; p < n_pairs; p++) {
        int64_t i, j;
        read_side *first = mate_of(lane, p, 0, &i), *second = mate_of(lane, p, 1, &j);
        int n_a = count_ties(run, first->ties + i * run->n_ties),
            n_b = count_ties(run, second->ties + j * run->n_ties);
        if (n_a == 0 || n_b == 0 || n_a * n_b == 1) { /* nothing to choose */
            LW_TRY(add_primary(run, first, i, err));
            LW_TRY(add_primary(run, second, j, err));
            continue;
        }
        LW_TRY(reserve(&lane->open, &lane->open_capacity, lane->n_open + 1, sizeof *lane->open, err));
        open_pair *open = &lane->open[lane->n_open++];
        open->pair = p;
        LW_TRY(list_candidates(lane, open, 0, err));
        LW_TRY(list_candidates(lane, open, 1, err));
    }
    LW_TRY(trace_side(lane, &lane->side[0], err));
    LW_TRY(trace_side(lane, &lane->side[1], err));
    for (int64_t k = 0; k < lane->n_open; k++) {
        int64_t i, j;
        read_side *first = mate_of(lane, lane->open[k].pair, 0, &i),
                  *second = mate_of(lane, lane->open[k].pair, 1, &j);
        settle_pair(lane, &lane->open[k]);
        LW_TRY(add_primary(run, first, i, err));
        LW_TRY(add_primary(run, second, j, err));
    }
    return LW_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Scratch of one formatting task. */
typedef struct scratch {
    char *reversed[2]; /* reverse complements as text, one per mate */
    char *without_u[2];
    int64_t reversed_capacity[2], without_u_capacity[2];
    uint8_t *codes;
    int64_t codes_capacity;
    lw_alignment *alignment[2];
    int64_t alignment_capacity[2];
    int64_t *split[2]; /* index into cigars of each alignment's = X path */
    int64_t split_capacity[2];
    lw_cigars cigars;
} scratch;

static void free_scratch(scratch *s)
{
    for (int m = 0; m < 2; m++) {
        free(s->reversed[m]);
        free(s->without_u[m]);
        free(s->alignment[m]);
        free(s->split[m]);
    }
    free(s->codes);
    free(s->cigars.op);
}

/* IUPAC complements of letters of either case, upper case; U's is A. */
static const char complement[256] = {
    ['A'] = 'T', ['C'] = 'G', ['G'] = 'C', ['T'] = 'A', ['U'] = 'A', ['R'] = 'Y', ['Y'] = 'R', ['S'] = 'S',
    ['W'] = 'W', ['K'] = 'M', ['M'] = 'K', ['B'] = 'V', ['D'] = 'H', ['H'] = 'D', ['V'] = 'B', ['N'] = 'N',
    ['a'] = 'T', ['c'] = 'G', ['g'] = 'C', ['t'] = 'A', ['u'] = 'A', ['r'] = 'Y', ['y'] = 'R', ['s'] = 'S',
    ['w'] = 'W', ['k'] = 'M', ['m'] = 'K', ['b'] = 'V', ['d'] = 'H', ['h'] = 'D', ['v'] = 'B', ['n'] = 'N',
};

static void reverse_complement_text(const char *text, int32_t n, char *out)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = complement[(uint8_t)text[n - 1 - i]];
    out[n] = '\0';
}

/* One alignment from its hit and its traced path, with its score checked letter by letter. */
static lw_status fill_alignment(const lw_align_run *run, const lw_batch *batch, const read_side *side,
                                const struct lw_lane *lane, int64_t read, const lw_hit *hit, int64_t task,
                                scratch *s, int m, lw_alignment *out, int64_t *split, lw_error *err)
{
    const lw_path *path = &side->path[task];
    const lw_trace_task *traced = &side->task[task];
    const lw_read *in = &side->reads->read[read];
    *out = (lw_alignment){.target = traced->target >= 0 ? (int32_t)traced->target : -1,
                          .score = traced->score,
                          .second = hit ? hit->second : 0,
                          .qstart = path->qstart,
                          .qend = traced->qlen,
                          .tstart = path->tstart,
                          .tend = traced->tbegin + traced->tlen,
                          .reverse = traced->reverse,
                          .cigar = side->cigars.op + path->cigar,
                          .n_cigar = path->n_cigar};
    const uint8_t *target_codes;
    if (run->kind == LW_RUN_PAIRS) {
        const lw_read_batch *targets = &batch->reads[1];
        out->target_name = lw_read_name(targets, out->target);
        if (!*out->target_name)
            out->target_name = "*";
        out->target_letters = lw_read_seq(targets, out->target);
        out->target_len = targets->read[out->target].len;
        const lw_seqs *codes = &lane->side[1].codes.seqs;
        target_codes = codes->codes + codes->start[out->target];
    } else {
        out->target_name = run->refs->name[out->target];
        out->target_letters = run->refs->letters + run->refs->start[out->target];
        out->target_len = run->refs->len[out->target];
        target_codes = run->ref_codes.seqs.codes + run->ref_codes.seqs.start[out->target];
    }
    if (hit)
        out->mapq = run->kind == LW_RUN_PAIRS
                        ? lw_mapq(&run->scoring, LW_GLOBAL, hit->score, 0, in->len)
                        : lw_mapq(&run->scoring, run->mode, hit->score, hit->second, in->len);
    const char *letters = lw_read_seq(side->reads, read);
    const uint8_t *codes = side->codes.seqs.codes + side->codes.seqs.start[read];
    if (out->reverse) {
        LW_TRY(reserve(&s->reversed[m], &s->reversed_capacity[m], (int64_t)in->len + 1, 1, err));
        LW_TRY(reserve(&s->codes, &s->codes_capacity, (int64_t)in->len + 1, 1, err));
        reverse_complement_text(letters, in->len, s->reversed[m]);
        for (int32_t i = 0; i < in->len; i++)
            s->codes[i] = run->scoring.complement[codes[in->len - 1 - i]];
        letters = s->reversed[m];
        codes = s->codes;
    }
    lw_path_count(&run->match, letters + out->qstart, out->target_letters + out->tstart, out->cigar,
                  out->n_cigar, &out->counts);
    int64_t score = lw_path_score(&run->scoring, codes + out->qstart, target_codes + out->tstart, out->cigar,
                                  out->n_cigar);
    if (score != out->score || out->counts.query_letters != out->qend - out->qstart ||
        out->counts.target_letters != out->tend - out->tstart)
        return lw_fail(
            err, LW_E_INTERNAL, "%s: backend %s: the path scores %lld instead of %d; please report this",
            lw_read_name(side->reads, read), run->backend->base.name, (long long)score, out->score);
    *split = -1;
    if (run->split_matches) {
        *split = s->cigars.n;
        LW_TRY(lw_path_split(&run->match, letters + out->qstart, out->target_letters + out->tstart,
                             out->cigar, out->n_cigar, &s->cigars, err));
        out->n_cigar = (int32_t)(s->cigars.n - *split);
    }
    return LW_OK;
}

/* What is known of a pair without its path. */
static void fill_ends(const lw_align_run *run, const lw_batch *batch, const lw_hit *hit, lw_alignment *out)
{
    const lw_read_batch *targets = &batch->reads[1];
    *out = (lw_alignment){.target = hit->target,
                          .target_name = lw_read_name(targets, hit->target),
                          .score = hit->score,
                          .qstart = -1,
                          .qend = hit->qend,
                          .tstart = -1,
                          .tend = hit->tend,
                          .reverse = hit->reverse,
                          .mapq = lw_mapq(&run->scoring, LW_GLOBAL, hit->score, 0, 0),
                          .ends_only = true};
    if (!*out->target_name)
        out->target_name = "*";
}

/* BAM has no U and htslib would store an N. */
static lw_status replace_u(const char *letters, int32_t n, char **buffer, int64_t *capacity, const char **out,
                           lw_error *err)
{
    *out = letters;
    if (!memchr(letters, 'U', (size_t)n) && !memchr(letters, 'u', (size_t)n))
        return LW_OK;
    LW_TRY(reserve(buffer, capacity, (int64_t)n + 1, 1, err));
    for (int32_t i = 0; i < n; i++)
        (*buffer)[i] = (letters[i] | 0x20) == 'u' ? 'T' : letters[i];
    (*buffer)[n] = '\0';
    *out = *buffer;
    return LW_OK;
}

/* All alignments of one read; mate number m of its pair, 0 outside pairs. */
static lw_status fill_read(const lw_lane *lane, const lw_batch *batch, const read_side *side, int64_t read,
                           scratch *s, int m, lw_aligned_read *out, lw_error *err)
{
    const lw_align_run *run = lane->run;
    const lw_read *in = &side->reads->read[read];
    bool aligned = side->read[read].primary.target >= 0;
    int n = 1 + (aligned ? side->read[read].n_secondary : 0);
    LW_TRY(reserve(&s->alignment[m], &s->alignment_capacity[m], n, sizeof **s->alignment, err));
    LW_TRY(reserve(&s->split[m], &s->split_capacity[m], n, sizeof **s->split, err));
    lw_alignment *alignment = s->alignment[m];
    alignment[0] = (lw_alignment){.target = -1};
    s->split[m][0] = -1;
    if (aligned && run->scores_only) {
        fill_ends(run, batch, &side->read[read].primary, &alignment[0]);
    } else if (aligned) {
        LW_TRY(fill_alignment(run, batch, side, lane, read, &side->read[read].primary,
                              side->read[read].primary_task, s, m, &alignment[0], &s->split[m][0], err));
        for (int k = 1; k < n; k++)
            LW_TRY(fill_alignment(run, batch, side, lane, read, NULL, side->read[read].first_task + k - 1, s,
                                  m, &alignment[k], &s->split[m][k], err));
    }
    *out = (lw_aligned_read){.batch = side->reads,
                             .index = read,
                             .name = in->name_len > 0 ? lw_read_name(side->reads, read) : "*",
                             .name_len = in->name_len > 0 ? in->name_len : 1,
                             .forward = lw_read_seq(side->reads, read),
                             .reversed = s->reversed[m],
                             .n = n,
                             .alignment = alignment};
    if (run->sam_records && run->scoring.type == LW_DNA)
        LW_TRY(replace_u(out->forward, in->len, &s->without_u[m], &s->without_u_capacity[m], &out->forward,
                         err));
    return LW_OK;
}

/* Split paths lie in an array that grew while they were made; now it stands still. */
static void point_at_split(const scratch *s, int m, int n)
{
    for (int k = 0; k < n; k++)
        if (s->split[m][k] >= 0)
            s->alignment[m][k].cigar = s->cigars.op + s->split[m][k];
}

static void count(lw_align_summary *part, const lw_aligned_read *read)
{
    part->reads++;
    part->letters += read->batch->read[read->index].len;
    if (read->alignment[0].target >= 0) {
        part->aligned++;
        part->score_sum += read->alignment[0].score;
        part->secondary += read->n - 1;
        part->proper += read->proper;
    }
}

typedef struct format_job {
    lw_lane *lane;
    lw_batch *batch;
    int64_t units, per_chunk; /* a unit: a read, or a pair of mates */
} format_job;

static lw_status format_single(format_job *job, int64_t i, scratch *s, lw_chunk *chunk,
                               lw_align_summary *part, lw_error *err)
{
    const lw_align_run *run = job->lane->run;
    lw_aligned_read read;
    LW_TRY(fill_read(job->lane, job->batch, &job->lane->side[0], i, s, 0, &read, err));
    point_at_split(s, 0, read.n);
    if (run->kind == LW_RUN_PAIRS) {
        read.pair_target = lw_read_name(&job->batch->reads[1], i);
        if (!*read.pair_target)
            read.pair_target = "*";
    }
    count(part, &read);
    return run->sink->format(run->sink, chunk, &read, err);
}

static lw_status format_pair(format_job *job, int64_t p, scratch *s, lw_chunk *chunk, lw_align_summary *part,
                             lw_error *err)
{
    const lw_align_run *run = job->lane->run;
    lw_aligned_read mate[2];
    for (int m = 0; m < 2; m++) {
        int64_t i;
        read_side *side = mate_of(job->lane, p, m, &i);
        LW_TRY(fill_read(job->lane, job->batch, side, i, s, m, &mate[m], err));
    }
    lw_mate_end end[2];
    for (int m = 0; m < 2; m++) {
        const lw_alignment *a = &mate[m].alignment[0];
        point_at_split(s, m, mate[m].n);
        end[m] =
            (lw_mate_end){.target = a->target, .tstart = a->tstart, .tend = a->tend, .reverse = a->reverse};
    }
    bool proper = lw_proper_pair(&end[0], &end[1], run->insert);
    /* a BAM file may hold the second mate first, and says so */
    const uint16_t which = BAM_FREAD1 | BAM_FREAD2;
    bool turned = (mate[0].batch->read[mate[0].index].flag & which) == BAM_FREAD2 &&
                  (mate[1].batch->read[mate[1].index].flag & which) == BAM_FREAD1;
    for (int m = 0; m < 2; m++) {
        mate[m].which_mate = turned ? 2 - m : m + 1;
        mate[m].mate = mate[1 - m].alignment;
        mate[m].mate_len = mate[1 - m].batch->read[mate[1 - m].index].len;
        mate[m].proper = proper;
        if (run->sam_records) /* SAM gives both mates one name */
            mate[m].name_len = lw_mate_name_length(mate[m].name, mate[m].name_len);
    }
    for (int m = 0; m < 2; m++) {
        count(part, &mate[m]);
        LW_TRY(run->sink->format(run->sink, chunk, &mate[m], err));
    }
    return LW_OK;
}

static lw_status format_chunk(void *arg, int64_t c, int worker, lw_error *err)
{
    (void)worker;
    format_job *job = arg;
    lw_run_kind kind = job->lane->run->kind;
    bool mates = kind == LW_RUN_INTERLEAVED || kind == LW_RUN_MATES;
    lw_chunk *chunk = &job->batch->chunk[c];
    lw_align_summary *part = &job->batch->part[c];
    scratch s = {0};
    lw_status status = LW_OK;
    int64_t end = (c + 1) * job->per_chunk < job->units ? (c + 1) * job->per_chunk : job->units;
    *part = (lw_align_summary){0};
    for (int64_t u = c * job->per_chunk; u < end && status == LW_OK; u++) {
        s.cigars.n = 0;
        status =
            mates ? format_pair(job, u, &s, chunk, part, err) : format_single(job, u, &s, chunk, part, err);
    }
    free_scratch(&s);
    return status;
}

static lw_status format_batch(lw_lane *lane, lw_batch *batch, int64_t units, lw_error *err)
{
    /* Small chunks keep all threads busy to the end, large ones cost less to hand out. */
    enum { CHUNKS_PER_THREAD = 8, MOST_UNITS = 512 };
    int64_t per_chunk = units / ((int64_t)lw_pool_threads(lane->run->pool) * CHUNKS_PER_THREAD) + 1;
    if (per_chunk > MOST_UNITS)
        per_chunk = MOST_UNITS;
    format_job job = {.lane = lane, .batch = batch, .units = units, .per_chunk = per_chunk};
    batch->n_chunks = (units + per_chunk - 1) / per_chunk;
    if (batch->n_chunks > batch->chunk_capacity) {
        int64_t capacity = batch->chunk_capacity;
        LW_TRY(reserve(&batch->chunk, &capacity, batch->n_chunks, sizeof *batch->chunk, err));
        memset(batch->chunk + batch->chunk_capacity, 0,
               (size_t)(capacity - batch->chunk_capacity) * sizeof *batch->chunk);
        batch->chunk_capacity = capacity;
        free(batch->part);
        batch->part = calloc((size_t)capacity, sizeof *batch->part);
        if (!batch->part)
            return lw_fail_memory(err, (size_t)capacity * sizeof *batch->part);
    }
    LW_TRY(lw_pool_for(lane->run->pool, batch->n_chunks, format_chunk, &job, err));
    batch->total = (lw_align_summary){0};
    for (int64_t c = 0; c < batch->n_chunks; c++) {
        batch->total.reads += batch->part[c].reads;
        batch->total.aligned += batch->part[c].aligned;
        batch->total.letters += batch->part[c].letters;
        batch->total.score_sum += batch->part[c].score_sum;
        batch->total.proper += batch->part[c].proper;
        batch->total.secondary += batch->part[c].secondary;
    }
    return LW_OK;
}

/* ---- the whole of it ------------------------------------------------------------------------- */

static int strand_count(unsigned strands)
{
    return strands == LW_BOTH_STRANDS ? 2 : 1;
}

/* The traced paths of padded targets, on the targets themselves. */
static void trim_all(const lw_lane *lane, read_side *side)
{
    for (int64_t k = 0; k < side->n_tasks; k++) {
        int64_t i = side->task[k].query;
        if (!lw_overlap_trim(&side->task[k], &side->path[k], side->cigars.op, side->codes.seqs.len[i],
                             lane->side[1].codes.seqs.len[i]))
            side->read[i].primary.target = -1;
    }
}

static lw_status work_pairs(lw_lane *lane, lw_batch *batch, lw_error *err)
{
    lw_align_run *run = lane->run;
    read_side *side = &lane->side[0];
    int64_t n = side->reads->n;
    const lw_seqs *queries = &side->codes.seqs, *targets = &lane->side[1].codes.seqs;
    LW_TRY(begin_side(run, side, err));
    if (run->free_ends) {
        LW_TRY(lw_overlap_pad(&run->scoring, queries, targets, -1, &lane->padded, err));
        targets = &lane->padded.seqs;
    }
    if (run->scores_only) {
        LW_TRY(run->backend->pair_ends(lane->context, queries, targets, side->hits, err));
    } else {
        lw_align_setup setup = {.scoring = &run->scoring, .mode = run->mode, .strands = run->strands};
        LW_TRY(reserve(&side->path, &side->path_capacity, n, sizeof *side->path, err));
        LW_TRY(lw_align_pairs_with(run->backend, lane->context, &setup, queries, targets, side->hits,
                                   side->path, &side->cigars, err));
    }
    for (int64_t i = 0; i < n; i++) {
        lw_hit *hit = &side->read[i].primary;
        side->read[i] = (placed){.primary = side->hits[i], .primary_task = -1};
        if (hit->target < 0)
            continue;
        if (run->scores_only) {
            if (run->free_ends && hit->score == 0) /* the smallest end: wholly beside the target */
                hit->target = -1;
            else if (run->free_ends)
                lw_overlap_ends(hit, queries->len[i], lane->side[1].codes.seqs.len[i]);
            continue;
        }
        side->path[side->n_tasks] = side->path[i]; /* the k-th path is that of the k-th task */
        side->read[i].primary_task = side->n_tasks;
        LW_TRY(add_task(run, side, i, hit, err));
    }
    if (run->free_ends)
        trim_all(lane, side);
    return format_batch(lane, batch, n, err);
}

static lw_status work_reads(lw_lane *lane, lw_batch *batch, lw_error *err)
{
    lw_align_run *run = lane->run;
    int64_t units = batch->reads[0].n;
    for (int s = 0; s < (run->kind == LW_RUN_MATES ? 2 : 1); s++)
        LW_TRY(place_side(lane, &lane->side[s], err));
    if (run->kind == LW_RUN_READS) {
        for (int64_t i = 0; i < units; i++)
            LW_TRY(add_primary(run, &lane->side[0], i, err));
    } else {
        units = run->kind == LW_RUN_INTERLEAVED ? units / 2 : units;
        LW_TRY(pair_mates(lane, units, err));
    }
    LW_TRY(trace_side(lane, &lane->side[0], err));
    LW_TRY(trace_side(lane, &lane->side[1], err));
    return format_batch(lane, batch, units, err);
}

lw_status lw_lane_work(lw_lane *lane, lw_batch *batch, lw_error *err)
{
    lw_align_run *run = lane->run;
    LW_TRY(check_reads(run, batch, err));
    if (run->kind == LW_RUN_INTERLEAVED || run->kind == LW_RUN_MATES)
        LW_TRY(check_mates(run, batch, err));
    double cells = 0;
    for (int s = 0; s < (run->reader[1] ? 2 : 1); s++) {
        lane->side[s].reads = &batch->reads[s];
        LW_TRY(lw_encode_batch(&run->scoring, run->reader[s], &batch->reads[s], &lane->side[s].codes,
                               &lane->substitutions, err));
        if (run->kind != LW_RUN_PAIRS)
            cells += (double)batch->reads[s].letters * (double)run->refs->total;
    }
    LW_TRY(run->kind == LW_RUN_PAIRS ? work_pairs(lane, batch, err) : work_reads(lane, batch, err));
    if (run->kind == LW_RUN_PAIRS)
        for (int64_t i = 0; i < batch->reads[0].n; i++)
            cells += (double)batch->reads[0].read[i].len * (double)batch->reads[1].read[i].len;
    batch->total.cells = cells * strand_count(run->strands);
    return LW_OK;
}
