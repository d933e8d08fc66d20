/* search_select.h - the CUDA steps around the score kernel: letters to rows, scores to profiles, and which
 * pairs are scored again, and which are hits. */
#ifndef LW_SEARCH_SELECT_H
#define LW_SEARCH_SELECT_H

#include "align/search_backend.h"
#include "align/search_kernels.h"

enum { LW_SW_LEVELS = 3, LW_SW_ROUNDS = 2, LW_SW_BINS = 4096 };

/* What one query leaves behind in one chunk of the database; device pointers. Scores of a pair stand at 2 *
 * pair and 2 * pair + 1. */
typedef struct lw_sw_query {
    int32_t *scores; /* of the first run: exact, or bounds */
    int32_t *list;   /* pairs that may hold hits */
    int32_t *exact;  /* their scores: of list[k] at 2k and 2k + 1 */
    /* entries of list[] to be scored by an arithmetic of the ladder, in either round */
    int32_t *chosen[LW_SW_ROUNDS][LW_SW_LEVELS];
    uint32_t *histogram; /* LW_SW_BINS, of scores[] */
    int32_t *counts;     /* LW_SW_COUNTS */
    int32_t min_score;   /* lower scores are no hits */
    int32_t filter;      /* least gapless score; scores[] are such scores when it is above 0 */
} lw_sw_query;

/* counts[] of a query. LW_SW_N_CHOSEN is the first of LW_SW_LEVELS for each round, LW_SW_CUT of one. */
enum {
    LW_SW_N_LIST,
    LW_SW_N_CHOSEN,
    LW_SW_CUT = LW_SW_N_CHOSEN + LW_SW_ROUNDS * LW_SW_LEVELS,
    LW_SW_N_HITS = LW_SW_CUT + LW_SW_ROUNDS,
    LW_SW_FIRST_HIT,
    LW_SW_N_PASSED,  /* subjects that passed the filter */
    LW_SW_N_RESCUED, /* subjects whose score a narrow type could not hold */
    LW_SW_COUNTS
};

/* A long pair that was scored in pieces: pieces first, first + 1 .. of the scores belong to it. */
typedef struct lw_sw_fold {
    int32_t pair, first, n;
} lw_sw_fold;

/* What is common to the queries of a launch. */
typedef struct lw_sw_selection {
    const lw_sw_query *queries; /* device */
    int n_queries;
    int32_t n_pairs, n_subjects;
    int32_t exact_pairs; /* scores[] of pairs before this one are exact */
    int32_t bound;       /* the others: the score is at most this much higher */
    bool above;          /* ... and may be lower: one round sets the bar for the other */
    int round;
    int32_t limit[LW_SW_LEVELS]; /* of the ladder's arithmetics: a result this high may be wrong */
    int32_t clip;                /* a first result above this proves no more than this */
    int32_t top_n;
    bool filter;
    lw_search_hit *hits; /* of all queries, one after another; subjects within the chunk */
    int32_t *n_hits;     /* how many in all */
} lw_sw_selection;

typedef struct lw_sw_profile {
    uint4 *out;
    const lw_sw_lane *lanes;
    int32_t form, arithmetic;
    int32_t offset;  /* added to every score: open + extend, or 0 for kernels that keep H itself */
    uint32_t absent; /* in place of scores that there are not: 0, or LW_SW_NEVER */
} lw_sw_profile;

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of pairs of subjects 0 .. n-1, whose letters stand in raw[start[i] ..]; class_of[code] is the letter
 * of the kernels, `pad` the one past the shorter subject. stream[] holds pads already; first_row[] has
 * n_pairs + 1 entries. */
cudaError_t lw_sw_make_rows(uint8_t *stream, const uint8_t *raw, const uint32_t *start, const int32_t *len,
                            int32_t n, const uint32_t *first_row, const uint8_t *class_of, int pad,
                            cudaStream_t stream_id);
/* scores: [query code * 32 + class]. */
cudaError_t lw_sw_make_profiles(const lw_sw_profile *tasks, int n, const uint8_t *codes,
                                const int16_t *scores, int n_letters, cudaStream_t stream_id);
cudaError_t lw_sw_fold_pieces(const lw_sw_selection *s, const lw_sw_fold *folds, int n,
                              cudaStream_t stream_id);
/* scores[] (in the second round: and exact[]) -> list[], exact[] and chosen[round]. */
cudaError_t lw_sw_select(const lw_sw_selection *s, int multiprocessors, cudaStream_t stream_id);
/* exact[] of chosen[round][level] -> chosen[round][level + 1]. */
cudaError_t lw_sw_promote(const lw_sw_selection *s, int level, cudaStream_t stream_id);
/* exact[] -> hits[]. */
cudaError_t lw_sw_take_hits(const lw_sw_selection *s, cudaStream_t stream_id);

#ifdef __cplusplus
}
#endif
#endif
