/* cmd_pairs.c - lanewise pairs: the n-th sequence of one file against the n-th of another. */
#include "cli/align_options.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "lanewise/align.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static const cli_spec spec = {
    .name = "pairs",
    .usage = "A B [options]",
    .about =
        "Aligns the n-th sequence of A (the query) with the n-th of B (the target), DNA or protein, and "
        "writes\n"
        "one line for each pair, in their order, also where nothing aligns. Both files hold the same number "
        "of\n"
        "records: FASTA, FASTQ, SAM, BAM or CRAM, plain or compressed, '-' for standard input.\n"
        "\n"
        "  lanewise pairs a.fa b.fa --mode global -o scores.tsv\n"
        "  lanewise pairs a.fa b.fa --preset edit --all -o distances.npy\n"
        "\n"
        "Columns of the TSV: query, target, strand, score, start and end on the query, start and end on the\n"
        "target (0-based, end exclusive; -1 where there is no alignment), CIGAR, edit distance, MAPQ.\n",
    .min_inputs = 2,
    .max_inputs = 2,
    .has_output = true,
    .has_backend = true,
    .has_threads = true,
    .backend_list = lw_align_backend_list,
    .work_unit = "cells",
    .item = "pairs"};

int cmd_pairs(int argc, char **argv)
{
    static const int formats[] = {LW_FORMAT_SAM, LW_FORMAT_PAF, LW_FORMAT_TSV};
    align_options o = align_options_unset;
    static const char *const preset_names[] = {"none", "edit", "water", "needle", NULL}; /* as lw_preset */
    static const double units[] = {1, -1, 0.5, 0.5}; /* what a score of each counts in its output */
    int format = -1, preset = LW_PRESET_NONE;
    bool scores_only = false, every = false;
    const cli_option rows[] = {
        {0, "preset", "NAME",
         "edit: global edit distance; water, needle: EMBOSS's scores, gaps of 10 and 0.5, in its\n"
         "units (--matrix in place of NUC.4.4 or BLOSUM62); each gives mode and scores",
         CLI_CHOICE, &preset, 0, 0, preset_names},
        {0, "all", NULL, "every sequence of A with every one of B: scores as a matrix, -o FILE.npy", CLI_FLAG,
         &every, 0, 0, NULL},
        {0, "scores-only", NULL, "no CIGARs and starts: faster (tsv)", CLI_FLAG, &scores_only, 0, 0, NULL},
        ALIGN_SCORING_ROWS(o),
        {0, "strand", "WHICH", "forward (default), reverse or both", CLI_CHOICE, &o.strand, 0, 0,
         align_strand_names},
        {0, NULL, NULL, "Output", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "format", "FORMAT", "tsv, paf or sam (default: by the name of -o, else tsv)", CLI_CHOICE, &format,
         0, 0, pair_format_names},
        {0, "rg", "LINE", "read group header line of SAM, '@RG\\tID:...'", CLI_TEXT, &o.read_group, 0, 0,
         NULL},
        {0, "eqx", NULL, "CIGARs with = and X in place of M", CLI_FLAG, &o.eqx, 0, 0, NULL},
        {0, "no-unmapped", NULL, "leave out pairs without an alignment", CLI_FLAG, &o.no_unmapped, 0, 0,
         NULL},
        ALIGN_MEANS_ROWS(o),
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    if (format >= 0)
        o.format = formats[format];
    if (every && format >= 0)
        return cli_usage_error(&run, "--all writes .npy: leave out --format");
    if (every && align_format_of_name(run.output) >= 0)
        return cli_usage_error(&run, "--all writes .npy: -o %s names another format", run.output);
    const char *dot = strrchr(run.output, '.');
    if (!every && format < 0 && dot && strcasecmp(dot, ".npy") == 0)
        return cli_usage_error(
            &run, "-o %s: a matrix is written with --all; pairs one by one as tsv, paf or sam", run.output);
    if (every && (o.min_score != INT32_MIN || o.eqx || o.no_unmapped || o.read_group || scores_only))
        return cli_usage_error(&run,
                               "--all writes all scores, and nothing else: leave out --min-score, --eqx, "
                               "--no-unmapped, --rg and --scores-only");
    if (scores_only && o.eqx)
        return cli_usage_error(&run, "--scores-only writes no CIGARs: leave out --eqx");
    if (preset == LW_PRESET_EDIT && o.min_score != INT32_MIN)
        return cli_usage_error(&run, "--preset edit gives distances, not scores: leave out --min-score");
    if (units[preset] == 0.5 && o.min_score != INT32_MIN) {
        const int most = INT32_MAX / 2;
        if (fabs(o.min_score) > most)
            return cli_usage_error(&run, "--min-score: %.10g is outside %d to %d", o.min_score, -most, most);
        if (2 * o.min_score != floor(2 * o.min_score))
            return cli_usage_error(&run, "--min-score: %.10g: EMBOSS's scores are multiples of 0.5",
                                   o.min_score);
        o.min_score *= 2; /* it is given in EMBOSS's units, and the scores of these presets count halves */
    }
    if (preset != LW_PRESET_NONE && o.mode >= 0)
        return cli_usage_error(&run, "--preset gives the mode: leave out --mode");
    if (every && (code = cli_writes_binary(&run, "npy")) != CLI_GO_ON)
        return code;
    lw_align_job job;
    code = align_fill_job(&run, &o, LW_FORMAT_TSV, &job);
    if (code != CLI_GO_ON)
        return code;
    job.reads = run.inputs;
    job.n_reads = 1;
    job.mates = run.inputs[1];
    job.preset = (lw_preset)preset;
    job.scores_only = scores_only;
    lw_error err = {0};
    lw_align_summary summary = {0};
    lw_status status = every ? lw_align_all_files(&job, &run.host, &summary, &err)
                             : lw_align_pair_files(&job, &run.host, &summary, &err);
    if (status == LW_OK)
        align_report(&run, &summary, "pairs", units[preset]);
    return cli_end(&run, status, &err);
}
