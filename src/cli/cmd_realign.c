/* cmd_realign.c - lanewise realign: placed reads again, optimally. */
#include <stdio.h>
#include <string.h>

#include "cli/align_options.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "lanewise/align.h"

static const cli_spec spec = {
    .name = "realign",
    .usage = "REF IN [options]",
    .about =
        "Aligns every placed read of IN (SAM, BAM or CRAM, '-' for standard input) again to the letters of\n"
        "REF round its place, and writes all records with the optimal CIGAR: gaps lie as far left as they "
        "can.\n"
        "Clips stay as they are. POS, CIGAR, NM, MD and AS are brought up to date, and PNEXT, MC and TLEN "
        "of\n"
        "the mates; OC and OP keep the old CIGAR and place. Secondary, supplementary and unmapped records,\n"
        "those without SEQ and those with N in their CIGAR pass through. Sorted input stays sorted.\n"
        "\n"
        "  lanewise realign ref.fa in.bam -o out.bam\n"
        "  minimap2 -a ref.fa reads.fq | lanewise realign ref.fa - -o out.bam\n",
    .min_inputs = 2,
    .max_inputs = 2,
    .has_output = true,
    .has_backend = true,
    .has_threads = true,
    .backend_list = lw_align_backend_list,
    .work_unit = "cells",
    .item = "reads"};

typedef struct line {
    const char *name;
    int64_t value;
} line;

/* Name and value of all counts, a line each. */
static lw_status write_stats(lw_outfile *file, const lw_realign_summary *s, lw_error *err)
{
    const line lines[] = {{"records", s->records},
                          {"realigned", s->realigned},
                          {"passed_unmapped", s->unmapped},
                          {"passed_secondary", s->secondary},
                          {"passed_supplementary", s->supplementary},
                          {"passed_no_sequence", s->no_sequence},
                          {"passed_no_cigar", s->no_cigar},
                          {"passed_skips", s->skips},
                          {"passed_no_letters", s->no_letters},
                          {"letters", s->letters},
                          {"proved_optimal", s->proved},
                          {"changed", s->changed},
                          {"moved", s->moved},
                          {"improved", s->improved},
                          {"score_gain", s->gain},
                          {"highest_gain", s->highest_gain},
                          {"window_widened", s->widened},
                          {"at_window_edge", s->at_edge},
                          {"mates_updated", s->mates_updated},
                          {"mates_missing", s->mates_missing},
                          {"most_records_held", s->most_held}};
    lw_status status = LW_OK;
    for (size_t i = 0; i < sizeof lines / sizeof *lines && status == LW_OK; i++) {
        char text[80];
        int n = snprintf(text, sizeof text, "%s\t%lld\n", lines[i].name, (long long)lines[i].value);
        status = lw_outfile_write(file, text, (size_t)n, err);
    }
    return status;
}

/* Appends ", N what" to text where there are any. */
static void add_count(char *text, size_t size, int64_t n, const char *what)
{
    size_t used = strlen(text);
    if (n > 0)
        snprintf(text + used, size - used, "%s%lld %s", used ? ", " : "", (long long)n, what);
}

static void report(cli *run, const lw_realign_summary *s)
{
    snprintf(run->used_backend, sizeof run->used_backend, "%s", s->backend);
    snprintf(run->used_device, sizeof run->used_device, "%s", s->device);
    run->work = s->cells;
    if (run->quiet)
        return;
    double seconds = progress_now() - run->started;
    char items[64], passed[400] = "";
    progress_rate(items, sizeof items, (double)s->records, seconds, "reads");
    add_count(passed, sizeof passed, s->unmapped, "unmapped");
    add_count(passed, sizeof passed, s->secondary, "secondary");
    add_count(passed, sizeof passed, s->supplementary, "supplementary");
    add_count(passed, sizeof passed, s->no_sequence, "without SEQ");
    add_count(passed, sizeof passed, s->no_cigar, "without CIGAR");
    add_count(passed, sizeof passed, s->skips, "with N or P in their CIGAR");
    add_count(passed, sizeof passed, s->no_letters, "without an alignment");
    progress_clear(&run->live);
    fprintf(
        stderr,
        "lanewise realign: %lld records, %lld realigned, %lld changed (%.1f %%): %lld score higher (%+.1f on "
        "average, %+lld at most), %lld moved\n",
        (long long)s->records, (long long)s->realigned, (long long)s->changed,
        s->realigned ? 100.0 * (double)s->changed / (double)s->realigned : 0.0, (long long)s->improved,
        s->improved ? (double)s->gain / (double)s->improved : 0.0, (long long)s->highest_gain,
        (long long)s->moved);
    if (*passed)
        fprintf(stderr, "lanewise realign: passed through: %s\n", passed);
    if (s->at_edge > 0)
        fprintf(stderr,
                "lanewise realign: %lld reads still touch the edge of their window: try a larger --pad\n",
                (long long)s->at_edge);
    fprintf(stderr, "lanewise realign: %.2f s, %s, backend %s%s%s\n", seconds, items, s->backend,
            *s->device ? " on " : "", s->device);
}

int cmd_realign(int argc, char **argv)
{
    align_options o = align_options_unset;
    lw_realign_job job;
    int pad = 50;
    bool no_oc = false;
    const char *stats = NULL;
    const cli_option rows[] = {
        {0, "pad", "N",
         "letters of REF to look at on either side of a read's place (50); the window grows\n"
         "by itself, up to eight times, where the alignment touches its edge",
         CLI_INT, &pad, 1, LW_REALIGN_MOST_PAD, NULL},
        {0, NULL, NULL, "Alignment", CLI_HEADING, NULL, 0, 0, NULL},
        ALIGN_SCORE_ROWS(o, "6"),
        {0, "matrix", "NAME",
         "scores from a matrix in place of -A and -B: NUC.4.4, or a file in NCBI's format", CLI_TEXT,
         &o.matrix, 0, 0, NULL},
        {0, NULL, NULL, "Output", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "format", "FORMAT", "sam, bam or cram (default: by the name of -o, else sam)", CLI_CHOICE,
         &o.format, 0, 0, record_format_names},
        {0, "no-oc", NULL, "leave out OC and OP, the old CIGAR and place of changed records", CLI_FLAG,
         &no_oc, 0, 0, NULL},
        {0, "stats", "FILE", "what happened, in numbers: a name and a value on each line", CLI_TEXT, &stats,
         0, 0, NULL},
        ALIGN_MEANS_ROWS(o),
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    if (stats && (code = cli_also_writes(&run, stats, NULL, 0)) != CLI_GO_ON)
        return code;
    lw_realign_job_init(&job);
    o.mode = LW_SEMIGLOBAL;
    code = align_fill_job(&run, &o, LW_FORMAT_SAM, &job.align);
    if (code != CLI_GO_ON)
        return code;
    job.align.reference = run.inputs[0];
    job.align.reads = run.inputs + 1;
    job.align.n_reads = 1;
    job.pad = pad;
    job.drop_old = no_oc;
    lw_error err = {0};
    lw_realign_summary summary = {0};
    lw_outfile *file = NULL; /* opened before the work, so that a wrong name does not waste it */
    lw_status status = stats ? lw_outfile_open(&file, stats, run.temporaries, &err) : LW_OK;
    if (status == LW_OK)
        status = lw_realign_files(&job, &run.host, &summary, &err);
    if (status == LW_OK && file)
        status = write_stats(file, &summary, &err);
    if (file)
        status = lw_outfile_close(file, status, &err);
    if (status == LW_OK)
        report(&run, &summary);
    return cli_end(&run, status, &err);
}
