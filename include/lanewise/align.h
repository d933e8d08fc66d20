/* align.h - exact pairwise alignment: local, global, semi-global, affine gaps.
 *
 * Units: lengths in letters; positions 0-based, half-open; scores in matrix units. A gap of k >= 1
 * letters costs gap_open + k * gap_extend, or, with two-piece penalties, the less of two such prices.
 * Recurrence: Gotoh, J. Mol. Biol. 162:705 (1982); local form: Smith and Waterman, J. Mol. Biol. 147:195
 * (1981).
 *
 * Which optimum is reported is part of the contract, so that every backend returns the same one:
 * highest score, then forward strand, then the target that comes first, then the smallest target
 * end, then the smallest query end. The path is traced from that end: the diagonal if it attains
 * H, else a deletion, else an insertion (of two pieces the first); inside a gap, extend if that
 * attains the value, else open; a local path stops at the first H = 0. Gaps therefore lie as far left as they
 * can. */
#ifndef LANEWISE_ALIGN_H
#define LANEWISE_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LW_MAX_LETTERS = 32, LW_NO_CODE = 255, LW_MAX_SCORE = 32767 };

typedef enum lw_mode {
    LW_LOCAL = 0,     /* best pair of substrings; none at all when nothing scores above 0 */
    LW_GLOBAL = 1,    /* both sequences from end to end */
    LW_SEMIGLOBAL = 2 /* the whole query; the target's ends are free */
} lw_mode;

typedef enum lw_strands { LW_FORWARD = 1, LW_REVERSE = 2, LW_BOTH_STRANDS = 3 } lw_strands;

typedef enum lw_alphabet_type { LW_DNA = 0, LW_PROTEIN = 1 } lw_alphabet_type;

/* Letters, their scores and the gap penalties. A plain value: copy it freely. Filled by one of the
 * lw_scoring_* calls below. */
typedef struct lw_scoring {
    lw_alphabet_type type;
    int32_t n_letters;                  /* codes are 0 .. n_letters-1, n_letters <= LW_MAX_LETTERS */
    char letter[LW_MAX_LETTERS + 1];    /* code -> upper-case letter */
    uint8_t code[256];                  /* byte -> code, LW_NO_CODE outside the alphabet */
    uint8_t substituted[256];           /* 1 where a valid letter has no column and counts as X (protein) */
    uint8_t complement[LW_MAX_LETTERS]; /* DNA: code of the complementary letter; protein: identity */
    int16_t score[LW_MAX_LETTERS * LW_MAX_LETTERS]; /* [query code * LW_MAX_LETTERS + target code] */
    int32_t max_score, min_score;                   /* over the n_letters x n_letters entries */
    int32_t gap_open, gap_extend;                   /* penalties, 0 .. LW_MAX_SCORE */
    bool two_piece;                                 /* a gap costs the less of two prices ... */
    int32_t gap_open2, gap_extend2;                 /* ... the other of which is made of these */
} lw_scoring;

/* DNA letters ACGTN (U = T, other IUPAC codes = N) with `match` for equal, -`mismatch` for
 * different letters and -1 wherever N takes part, as bwa mem. match 0..32767, mismatch 0..32767
 * (both given as magnitudes). LW_E_ARG. */
lw_status lw_scoring_dna(lw_scoring *out, int match, int mismatch, int gap_open, int gap_extend,
                         lw_error *err);

/* A built-in matrix by name (BLOSUM45/50/62/80/90, PAM30/70/250, NUC.4.4) or a file in NCBI's format.
 * `type` says how letters without a column are treated: DNA counts them as N, protein as X.
 * LW_E_ARG (penalties), LW_E_INPUT (file), LW_E_IO. */
lw_status lw_scoring_matrix(lw_scoring *out, const char *name_or_file, lw_alphabet_type type, int gap_open,
                            int gap_extend, lw_error *err);

/* Makes a gap of k letters cost the less of what *scoring charges so far and gap_open + k * gap_extend: long
 * gaps by a flatter price, as minimap2's -O 4,24 -E 2,1. LW_E_ARG. */
lw_status lw_scoring_two_piece(lw_scoring *scoring, int gap_open, int gap_extend, lw_error *err);

/* What a gap of k >= 1 letters costs; the dearer piece of two may exceed 32 bits. */
static inline int32_t lw_gap_cost(const lw_scoring *scoring, int32_t k)
{
    const int64_t first = scoring->gap_open + (int64_t)k * scoring->gap_extend;
    const int64_t second = scoring->gap_open2 + (int64_t)k * scoring->gap_extend2;
    return (int32_t)(scoring->two_piece && second < first ? second : first);
}

/* n sequences of codes, back to back in any order. Borrowed. Every len[i] >= 0; codes < n_letters. */
typedef struct lw_seqs {
    int64_t n;
    const uint8_t *codes;
    const int64_t *start; /* of sequence i within codes */
    const int32_t *len;   /* letters */
} lw_seqs;

/* ---- sequences in memory ------------------------------------------------------------------------ */

/* Letters to codes: codes[i] for letters[i], n of them. Returns -1, or the position of the first letter
 * outside the alphabet. */
int64_t lw_scoring_encode(const lw_scoring *scoring, const char *letters, int64_t n, uint8_t *codes);

/* How to align. All zero: local, forward strand, the fastest backend, all CPU threads. */
typedef struct lw_aligner_options {
    lw_mode mode;
    unsigned strands;     /* lw_strands; 0: LW_FORWARD. Protein: LW_FORWARD only */
    const char *backend;  /* as --backend; NULL: "auto" */
    int device;           /* CUDA ordinal, where `backend` names a CUDA one */
    int threads;          /* CPU threads, 0: all */
    int64_t device_bytes; /* most device memory to take, 0: what is free */
    const lw_host *host;  /* borrowed while the aligner lives; may be NULL */
} lw_aligner_options;

/* A backend at work; one thread at a time. */
typedef struct lw_aligner lw_aligner;

/* Copies *scoring. options NULL: all zero. Sets *out on LW_OK only; end it with lw_aligner_close(). LW_E_ARG;
 * LW_E_UNSUPPORTED: the backend cannot run here; LW_E_DEVICE; LW_E_NOMEM. */
lw_status lw_aligner_open(lw_aligner **out, const lw_scoring *scoring, const lw_aligner_options *options,
                          lw_error *err);
void lw_aligner_close(lw_aligner *aligner); /* NULL is allowed */
/* The name of the backend that works; it lives as long as the program. */
const char *lw_aligner_backend(const lw_aligner *aligner);

/* One pair's outcome. Coordinates are 0-based and half-open, on the sequences as aligned: with `reverse` on
 * the query's reverse complement. */
typedef struct lw_pair {
    int32_t score;                      /* 0 unless aligned */
    int32_t qstart, qend, tstart, tend; /* -1: not known, or not aligned */
    bool aligned;                       /* false: local mode found no score above 0 */
    bool reverse;
    int64_t cigar;   /* index of the first operation in the array of all paths */
    int32_t n_cigar; /* operations as in BAM: length << 4 | 0 for M, 1 for I (query letters), 2 for D */
} lw_pair;

/* Aligns query i with target i; queries->n == targets->n results go to pairs[], which is the caller's. Scores
 * and ends only: starts are -1. Results do not depend on the backend or on the other pairs. On failure
 * pairs[] is unspecified. LW_E_ARG: unequal numbers, a code or length out of range; LW_E_RANGE: the longest
 * pair's score could leave 32 bits; LW_E_NOMEM, LW_E_DEVICE, LW_E_INTERRUPTED. */
lw_status lw_aligner_scores(lw_aligner *aligner, const lw_seqs *queries, const lw_seqs *targets,
                            lw_pair *pairs, lw_error *err);

/* The same with paths. *cigars, set on LW_OK only, holds all of them and is the caller's: release it with
 * free(). */
lw_status lw_aligner_paths(lw_aligner *aligner, const lw_seqs *queries, const lw_seqs *targets,
                           lw_pair *pairs, uint32_t **cigars, lw_error *err);

/* Where a read lies: letters start .. end - 1 of a target. */
typedef struct lw_placement {
    int64_t read, target; /* indices, 0-based */
    int32_t start, end;
    int32_t
        score; /* of its alignment there: where that is the highest, its end stays; INT32_MIN: not known */
} lw_placement;

/* Aligns n placed reads again, each to its target from `pad` letters before its place to `pad` letters behind
 * it (1 .. LW_REALIGN_MOST_PAD), more where the alignment touches the edge (docs/semantics.md). The aligner's
 * mode is LW_SEMIGLOBAL and its strand LW_FORWARD. pairs[] and *cigars as above. */
enum { LW_REALIGN_MOST_PAD = 1000000 };
lw_status lw_aligner_realign(lw_aligner *aligner, const lw_seqs *reads, const lw_seqs *targets, int pad,
                             int64_t n, const lw_placement *places, lw_pair *pairs, uint32_t **cigars,
                             lw_error *err);

/* ---- whole files -------------------------------------------------------------------------------- */

typedef enum lw_align_format {
    LW_FORMAT_SAM = 0,
    LW_FORMAT_BAM = 1, /* DNA only, as CRAM */
    LW_FORMAT_CRAM = 2,
    LW_FORMAT_PAF = 3,
    LW_FORMAT_TSV = 4
} lw_align_format;

/* Ready-made scorings of pairs. */
typedef enum lw_preset {
    LW_PRESET_NONE = 0,
    /* global; 0 for equal letters, -1 for a pair of others and for each letter in a gap: less the edit
     * distance. N (protein: X) equals nothing, not even itself. TSV shows the distance. */
    LW_PRESET_EDIT,
    /* EMBOSS water: local, NUC.4.4 or BLOSUM62, gaps of 10 and 0.5. Computed in halves, so that it is exact:
     * scores and matrix are doubled. TSV shows EMBOSS's units. */
    LW_PRESET_WATER,
    /* EMBOSS needle: the same, from end to end, where gaps at the ends of either sequence are free */
    LW_PRESET_NEEDLE
} lw_preset;

/* Values of lw_align_job that mean "decide from the sequences" and "the default of their type". */
enum { LW_TYPE_AUTO = -1, LW_PENALTY_DEFAULT = -1 };

/* What to align, how, and where the result goes. Start from lw_align_job_init(). All pointers are borrowed;
 * "-" is standard input or output. */
typedef struct lw_align_job {
    /* input; FASTA, FASTQ (plain, gzip, bgzip), SAM, BAM or CRAM */
    const char *reference; /* align: FASTA of the references. pairs: NULL */
    const char *const *reads;
    int n_reads;                 /* files; pairs: 1 */
    const char *mates;           /* align: second reads of pairs; pairs: the targets; else NULL */
    bool interleaved;            /* align: reads hold both mates, one after the other */
    int insert_low, insert_high; /* accepted length of a proper pair's template */
    /* scoring */
    int type; /* lw_alphabet_type, or LW_TYPE_AUTO: by the reference (pairs: by the first targets) */
    const char *matrix;         /* name or file; NULL: match and mismatch for DNA, BLOSUM62 for protein */
    int match, mismatch;        /* magnitudes; LW_PENALTY_DEFAULT: 1 and 4; DNA without a matrix only */
    int gap_open, gap_extend;   /* magnitudes; LW_PENALTY_DEFAULT: 6 and 1 for DNA, 11 and 1 for protein */
    int gap_open2, gap_extend2; /* of a second price, the less of which counts; LW_PENALTY_DEFAULT: none */
    lw_mode mode;
    lw_preset preset;  /* pairs: gives mode and penalties, and the scores unless `matrix` does */
    unsigned strands;  /* lw_strands; 0: both for reads of DNA, else forward */
    int32_t min_score; /* alignments below count as none; INT32_MIN: 1 for local mode, else no limit */
    int secondary;     /* further placements to report of each read, >= 0 */
    /* output */
    const char *output;
    lw_align_format format;
    bool split_matches;                 /* = and X in place of M */
    bool drop_unmapped;                 /* leave out reads without an alignment */
    bool scores_only;                   /* pairs, TSV: scores and ends, no paths: faster */
    const char *read_group;             /* "@RG\tID:..." or NULL */
    const char *command_line;           /* for @PG, or NULL */
    struct lw_temporaries *temporaries; /* files for a signal handler to remove; NULL: none */
    /* means */
    const char *backend; /* as --backend; NULL: "auto" */
    const int *devices;  /* CUDA ordinals; NULL: device 0 */
    int n_devices;
    int threads;           /* CPU threads, 0: all */
    int64_t device_bytes;  /* most memory to take of each device, 0: what is free; never changes results */
    int64_t batch_letters; /* letters of reads per batch, 0: what suits the backend; never changes results */
} lw_align_job;

/* Defaults of the command line: local, 1 -4 6 1 for DNA, SAM to standard output. */
void lw_align_job_init(lw_align_job *job);

/* What happened. */
typedef struct lw_align_summary {
    int64_t reads, aligned; /* records; pairs: pairs */
    int64_t letters;        /* of reads */
    int64_t score_sum;      /* of the primary alignments */
    int64_t proper;         /* reads in proper pairs */
    int64_t secondary;      /* secondary records written */
    double cells;           /* of the dynamic programming matrices: reads x references x strands */
    char backend[32];       /* that did the work */
    char device[256];       /* its GPUs, or "" */
    char why[512];          /* one line on how the backend was chosen */
} lw_align_summary;

/* Aligns every read with every reference and writes the records in input order. The output is the same, byte
 * for byte after @PG, for every backend, thread count and batch size. summary may be NULL. On failure no
 * output file is left. LW_E_ARG, LW_E_INPUT, LW_E_IO, LW_E_NOMEM, LW_E_UNSUPPORTED, LW_E_DEVICE, LW_E_RANGE,
 * LW_E_INTERRUPTED. */
lw_status lw_align_files(const lw_align_job *job, const lw_host *host, lw_align_summary *summary,
                         lw_error *err);

/* Aligns the n-th record of reads[0] with the n-th of mates. Formats: TSV, PAF, SAM. As above; unequal
 * numbers of records are LW_E_INPUT. */
lw_status lw_align_pair_files(const lw_align_job *job, const lw_host *host, lw_align_summary *summary,
                              lw_error *err);

/* Scores every record of reads[0] against every record of mates. Writes a dense .npy matrix, a row for each
 * of reads[0]: int32; with LW_PRESET_EDIT distances; with LW_PRESET_WATER and LW_PRESET_NEEDLE float64 in
 * EMBOSS's units. Local mode: 0 where nothing aligns. Both files are held in memory. format, min_score and
 * what concerns records are ignored. */
lw_status lw_align_all_files(const lw_align_job *job, const lw_host *host, lw_align_summary *summary,
                             lw_error *err);

/* ---- placed reads again --------------------------------------------------------------------------- */

/* What to realign. Start from lw_realign_job_init(). */
typedef struct lw_realign_job {
    /* Used of it: reference, reads[0] (SAM, BAM or CRAM, "-"), the scoring (DNA), output, format (SAM, BAM or
     * CRAM), command_line, temporaries, and the means. The rest is ignored. */
    lw_align_job align;
    int pad;       /* letters of the reference on either side of the place, 1 .. LW_REALIGN_MOST_PAD */
    bool drop_old; /* leave out OC and OP */
} lw_realign_job;

/* The defaults of lw_align_job_init(), pad 50. */
void lw_realign_job_init(lw_realign_job *job);

/* What happened to the records. */
typedef struct lw_realign_summary {
    int64_t records;
    int64_t realigned; /* aligned again; the following passed through as they were */
    int64_t unmapped, secondary, supplementary;
    int64_t no_sequence, no_cigar; /* SEQ or CIGAR is * */
    int64_t skips;                 /* N or P in the CIGAR */
    int64_t no_letters;            /* nothing that could be aligned */
    int64_t letters;               /* between the clips, of realigned records */
    int64_t proved;                /* realigned records that were seen to be optimal without computing */
    int64_t changed;               /* in CIGAR or POS */
    int64_t moved;                 /* in POS */
    int64_t improved;              /* in score; the other changed ones had their gaps moved left */
    int64_t gain, highest_gain;    /* sum and maximum of the new score less the old one */
    int64_t widened;               /* the window had to grow */
    int64_t at_edge;               /* the alignment touches the edge of the largest window */
    int64_t mates_updated;         /* records with a new PNEXT, MC or TLEN */
    int64_t mates_missing;         /* paired records without their mate */
    int64_t most_held;             /* records held back at a time, for order and mates */
    double cells;                  /* of the dynamic programming matrices */
    char backend[32], device[256], why[512]; /* as in lw_align_summary */
} lw_realign_summary;

/* Aligns every placed read again, semiglobally between its clips, to the letters round its place, and writes
 * all records with CIGAR, POS, NM, MD, AS and mate fields brought up to date. Coordinate-sorted input gives
 * coordinate-sorted output. The output is the same for every backend, thread count and batch size. summary
 * may be NULL. On failure no output file is left. Statuses as lw_align_files(). */
lw_status lw_realign_files(const lw_realign_job *job, const lw_host *host, lw_realign_summary *summary,
                           lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
