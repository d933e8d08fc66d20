/* align_cuda_paths.h - what an open lw_paths consists of, and the steps of a call, each in a file of its own:
 *
 *   align_cuda_paths.c          opening, closing, the calls, batches one after the other
 *   align_cuda_paths_bands.c    which bands are tried, and the rounds of a call
 *   align_cuda_paths_shape.c    how a job lies in its matrix, and what it takes
 *   align_cuda_paths_order.c    the order of work
 *   align_cuda_paths_batch.c    the next batch: its jobs, where they lie, their letters
 *   align_cuda_paths_launch.cu  a batch on the device
 *   align_cuda_paths_results.c  what comes back of it
 *
 * Jobs go through in batches, several of them on their way at once: while the GPU works on one, threads of
 * the pool pack the letters of the next into pinned memory and unpack the paths of the one before. The
 * kernels are in align_cuda_fill.cu and align_cuda_walk.cu. */
#ifndef LW_ALIGN_CUDA_PATHS_H
#define LW_ALIGN_CUDA_PATHS_H

#include "align/align_cuda_memory.h"
#include "align/align_paths.h"
#include "align/align_tuning.h"
#include "common/warp.cuh"

#ifdef __cplusplus
extern "C" {
#endif

enum { STAGES = 3 };

/* Where a batch's parts begin in its input, in bytes. */
typedef struct layout {
    int64_t jobs, bundles, strips, bundle_of, spare_at, queries, targets, bytes;
} layout;

/* A batch on its way. */
typedef struct stage {
    cudaStream_t stream;
    area input, work, output; /* on the device */
    area p_input, p_output;   /* pinned */
    area starts;              /* host: where the bundles' letters and operations begin */
    bool busy;
    int64_t first, n; /* jobs number `first` to first + n - 1 in the order of work, job_number() */
    int64_t n_bundles, n_strips;
    int32_t columns, rows; /* the longest */
    int32_t tile;          /* rows and columns between checkpoints; 0: directions */
    int32_t narrow;        /* diagonals of the narrowest band, less one; 0: none has a band */
    int halves, pieces;
    layout in;
    int64_t query_words, target_words, strips_at_most;
    int64_t scratch_words, border_words, spare_ops;
    int64_t ops_copied;
    double cells, computed; /* of the matrices, and those that the kernels compute */
} stage;

struct lw_paths {
    lw_paths_setup by;
    int n_stages;
    stage stages[STAGES];
    area order, spare, key; /* host */
    area excess, again;     /* likewise: of each job's band, -1 for none; jobs to be done once more */
    double cells, computed; /* of the last call's batches, cells of pairs that are done once more left out */
    int64_t n_again, banded, unproved; /* of the last call: jobs done in bands, what these left (for tests) */
    int64_t needs[LW_BAND_PARTS + 1], n_needs; /* excesses that scores proved, in parts of the length */
    bool out_of_memory;
    /* of the call */
    const lw_seqs *queries, *targets;
    const lw_trace_task *tasks; /* NULL: pairs */
    const int32_t *sorted;      /* job numbers in the order of work; NULL: as they are */
    int32_t roomy; /* sequences of so many letters have scores that fit one a word, with tags, in any band */
    int32_t cut;   /* letters that are looked at to learn how alike pairs are; 0: all */
    int32_t guess; /* parts of the length that are tried as excess; -1: none */
    double fails[LW_BAND_PARTS + 1]; /* how often so many parts will prove nothing */
    int ends_at;
    bool scores; /* no paths */
    lw_hit *hits;
    lw_path *paths;
    lw_cigars *cigars;
    double ops_per_job;
};

/* How a job lies in its matrix. */
typedef struct geometry {
    int64_t blocks, strips; /* blocks of columns of the query; strips of the kernel */
    bool tiles, band;
    int32_t lanes;     /* of a group */
    int32_t low, high; /* the band, as in lw_bundle */
} geometry;

/* What a job takes, kept from one to the next: neighbours in the order of work are often alike. */
typedef struct job_size {
    int32_t qlen, tlen, excess;
    geometry g;
    int64_t bytes, query_words, target_words, ops;
} job_size;

static inline int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static inline int pieces_of(const lw_paths *p)
{
    return p->by.setup->scoring->two_piece ? 2 : 1;
}

/* Bits of a letter of packed sequences. */
static inline int letter_bits(const lw_paths *p)
{
    return p->by.setup->scoring->n_letters <= 16 ? 4 : 8;
}

static inline int32_t excess_of(const lw_paths *p, int64_t i)
{
    return p->excess.at ? ((const int32_t *)p->excess.at)[i] : -1;
}

/* The number of the k-th job in the order of work. */
static inline int64_t job_number(const lw_paths *p, int64_t k)
{
    return p->sorted ? p->sorted[k] : k;
}

/* Letters of job i, of long ones the beginnings while pairs are looked at. */
static inline void lengths_of(const lw_paths *p, int64_t i, int32_t *qlen, int32_t *tlen)
{
    *qlen = p->tasks ? p->tasks[i].qlen : p->queries->len[i];
    *tlen = p->tasks ? p->tasks[i].tlen : p->targets->len[i];
    if (p->cut > 0) {
        const int32_t longer = *tlen - *qlen;
        *qlen = (int32_t)min64(*qlen, p->cut + max64(0, -longer));
        *tlen = (int32_t)min64(*tlen, p->cut + max64(0, longer));
    }
}

/* The numbers of one score, for jobs up to such lengths in bands of at least `narrow` + 1 diagonals (0: in
 * full). False: not every one fits. */
bool lw_paths_arithmetic_of(const lw_paths *p, int halves, bool directions, int64_t qlen, int64_t tlen,
                            int32_t narrow, lw_path_arithmetic *out);
int32_t lw_paths_most_roomy(const lw_paths *p);
int64_t lw_paths_direction_words(const lw_paths *p, int halves, int64_t strips, int64_t blocks, int64_t rows);
int64_t lw_paths_checkpoint_words(const lw_paths *p, int64_t strips, int64_t height, int32_t tile);
/* The rows of a strip over checkpoints at most. */
int32_t lw_paths_height_of(const geometry *g, int64_t rows, int32_t tile);
void lw_paths_geometry_of(const lw_paths *p, int32_t qlen, int32_t tlen, int32_t excess, geometry *out);
/* Rows that a warp computes for a job, or for two with words of two scores. */
double lw_paths_work_of(const geometry *g, int64_t rows);
/* Cells that the kernels compute for a job. */
double lw_paths_computed_of(const geometry *g, int64_t qlen, int64_t tlen);
void lw_paths_size_of(const lw_paths *p, int32_t tile, int halves, int32_t qlen, int32_t tlen, int32_t excess,
                      job_size *out);
int32_t lw_paths_tile_for(const lw_paths *p, int32_t qlen, int32_t tlen, int32_t excess, int64_t bytes);

/* The excess to try with a job, or the one that is proved (fails = 0), where it saves more than it costs;
 * else -1. */
int32_t lw_paths_worth_trying(const lw_paths *p, int32_t qlen, int32_t tlen, int64_t excess, double fails);
/* Notes what bands the scores of some jobs prove. */
void lw_paths_learn(lw_paths *p, const stage *s, const lw_path_result *results);
/* Runs all n jobs of the call. */
lw_status lw_paths_run_all(lw_paths *p, int64_t n, lw_error *err);
/* Runs the jobs of `list` (NULL: all n), with bands as they are or to be chosen. */
lw_status lw_paths_run_list(lw_paths *p, const int32_t *list, int64_t n, bool choose, lw_error *err);

/* Jobs with equally many columns and rows lie together:
 * [1 tiles][1 band][14 lanes, strips or blocks, at most][32 rows]. */
enum { KEY_KIND = 46, KEY_TILES = 47 };

/* Sets p->key, and p->sorted, the jobs of `list` (NULL: all n): largest key first, equal keys in order. */
lw_status lw_paths_sort(lw_paths *p, const int32_t *list, int64_t n, bool choose, lw_error *err);

/* How many jobs from `first` on make a batch of at most so many jobs and bytes, and its shape. */
void lw_paths_cut(const lw_paths *p, stage *s, int64_t first, int64_t n, int64_t most, int64_t bytes,
                  int32_t tile);
/* Bundles and strips, one after the other; then, by all threads, the jobs in them and their letters. */
lw_status lw_paths_prepare(lw_paths *p, stage *s, lw_error *err);
/* Copies the batch to the device, computes, and copies back what its paths will probably take. */
lw_status lw_paths_launch(lw_paths *p, stage *s, lw_error *err);
/* Waits for a stage and hands out its paths. */
lw_status lw_paths_finish(lw_paths *p, stage *s, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
