/* align_options.h - the options that align and pairs share. */
#ifndef LW_ALIGN_OPTIONS_H
#define LW_ALIGN_OPTIONS_H

#include "cli/cli.h"
#include "lanewise/align.h"

typedef struct align_options {
    int mode, strand, type, format; /* indices into the choices; -1: not given */
    int match, mismatch;
    cli_list gap_open, gap_extend; /* one number, or two with two-piece gaps */
    double min_score;              /* EMBOSS's presets have halves */
    const char *matrix, *read_group;
    bool eqx, no_unmapped;
    int64_t batch, device_bytes;
} align_options;

/* Not given. */
extern const align_options align_options_unset;

/* Rows of the groups, for an options table; `o` is an align_options. */
extern const char *const align_mode_names[],
    *const align_type_names[], *const align_strand_names[], *const align_format_names[],
                                                                *const pair_format_names[],
                                                                    *const record_format_names[];

/* clang-format off */
#define ALIGN_SCORE_ROWS(o, default_open)                                                                   \
    {'A', "match", "N", "score of two equal letters of DNA (1)", CLI_INT, &(o).match, 0, LW_MAX_SCORE,      \
     NULL},                                                                                                 \
    {'B', "mismatch", "N", "penalty of two different letters of DNA (4)", CLI_INT, &(o).mismatch, 0,        \
     LW_MAX_SCORE, NULL},                                                                                   \
    {'O', "gap-open", "N[,N]", "penalty of a gap, whatever its length (" default_open ")", CLI_LIST,        \
     &(o).gap_open, 0, LW_MAX_SCORE, NULL},                                                                 \
    {'E', "gap-extend", "N[,N]", "penalty of each letter of a gap, the first one too (1): a gap of\n"       \
     "k letters costs O + k x E; of two such prices (-O 4,24 -E 2,1) the less", CLI_LIST,                   \
     &(o).gap_extend, 0, LW_MAX_SCORE, NULL}
#define ALIGN_SCORING_ROWS(o)                                                                               \
    {0, NULL, NULL, "Alignment", CLI_HEADING, NULL, 0, 0, NULL},                                            \
    {0, "mode", "MODE", "local: the best pair of pieces (default); global: both sequences from\n"           \
     "end to end; semiglobal: the whole read, free ends of the reference", CLI_CHOICE, &(o).mode, 0, 0,     \
     align_mode_names},                                                                                     \
    ALIGN_SCORE_ROWS(o, "6; protein 11"),                                                                   \
    {0, "matrix", "NAME", "scores from a matrix in place of -A and -B: BLOSUM45/50/62/80/90,\n"             \
     "PAM30/70/250, NUC.4.4, or a file in NCBI's format (protein: BLOSUM62)", CLI_TEXT, &(o).matrix, 0, 0,  \
     NULL},                                                                                                 \
    {0, "type", "TYPE", "auto (default: seen from the letters), dna or protein", CLI_CHOICE, &(o).type, 0,  \
     0, align_type_names},                                                                                  \
    {0, "min-score", "N", "alignments that score less count as none (local: 1; else no limit)", CLI_DOUBLE, \
     &(o).min_score, -2147483647.0, 2147483647.0, NULL}
#define ALIGN_MEANS_ROWS(o)                                                                                 \
    {0, "batch", "SIZE", "letters of reads taken at a time (default: what suits the backend);\n"            \
     "never changes the result", CLI_SIZE, &(o).batch, 0, 0, NULL},                                          \
    {0, "gpu-mem", "SIZE", "most memory to take of a GPU, e.g. 4G (default: what is free)", CLI_SIZE,       \
     &(o).device_bytes, 0, 0, NULL}
/* clang-format on */

/* The format that the end of a file name stands for; -1: none. */
int align_format_of_name(const char *name);

/* Fills the job from the options and what cli_begin() read. CLI_GO_ON, or CLI_USAGE when the format can be
 * told neither from --format nor from the output's name, or would put binary data on a terminal. */
int align_fill_job(cli *run, const align_options *o, lw_align_format fallback, lw_align_job *job);

/* Notes the outcome for the last lines, and says it in one line (unless -q). A score counts `unit`. */
void align_report(cli *run, const lw_align_summary *summary, const char *item, double unit);

#endif
