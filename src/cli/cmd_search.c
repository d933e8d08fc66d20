/* cmd_search.c - lanewise search: every query against every sequence of a database. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "lanewise/search.h"

static const cli_spec spec = {
    .name = "search",
    .usage = "QUERIES... DB [options]",
    .about =
        "Aligns every query with every sequence of a database, exactly, and reports the best of each.\n"
        "QUERIES: FASTA or FASTQ, plain or gzip, '-' for standard input. DB: the same, or a file made by\n"
        "'lanewise makedb'. Protein or DNA (both strands). The answer is the same on every backend.\n",
    .min_inputs = 2,
    .max_inputs = -1,
    .has_output = true,
    .has_backend = true,
    .has_threads = true,
    .backend_list = lw_search_backend_list,
    .work_unit = "cells",
    .item = "queries",
};

static const char *const types[] = {"auto", "dna", "protein", NULL};
static const char *const strands[] = {"both", "forward", NULL};
static const char *const formats[] = {"6", "tsv", "sam", NULL};

/* Without --outfmt: SAM where the output is named so, else BLAST's table. Names of what is not written are
 * refused. */
static int format_by_name(cli *run, int *format)
{
    static const char *const others[] = {".bam", ".cram", ".paf"};
    const char *dot = strrchr(run->output, '.');
    for (size_t i = 0; dot && i < sizeof others / sizeof *others; i++)
        if (strcasecmp(dot, others[i]) == 0)
            return cli_usage_error(run, "search writes 6, tsv or sam (--outfmt): -o %s names another format",
                                   run->output);
    *format = dot && strcasecmp(dot, ".sam") == 0 ? LW_SEARCH_SAM : LW_SEARCH_BLAST6;
    return CLI_GO_ON;
}

static void say_summary(const cli *run, const lw_search_summary *s, const lw_database *db,
                        double open_seconds)
{
    if (run->verbose < 1)
        return;
    char text[512];
    snprintf(text, sizeof text,
             "%lld sequences, %lld letters opened in %.3f s; %lld queries, %lld hits in %.3f s",
             (long long)lw_database_sequences(db), (long long)lw_database_letters(db), open_seconds,
             (long long)s->queries, (long long)s->hits, s->search_seconds);
    run->host.say(run->host.user, LW_SAY_INFO, text);
    snprintf(text, sizeof text,
             "pairs scored again in a wider type: %lld; dropped by the gapless filter: %lld",
             (long long)s->rescued, (long long)s->filtered);
    run->host.say(run->host.user, LW_SAY_INFO, text);
    if (s->busy_seconds > 0) {
        snprintf(text, sizeof text, "scoring took %.3f s, %.0f %% of the search", s->busy_seconds,
                 100 * s->busy_seconds / s->search_seconds);
        run->host.say(run->host.user, LW_SAY_INFO, text);
    }
}

int cmd_search(int argc, char **argv)
{
    lw_search_options defaults, o;
    lw_search_defaults(&defaults);
    o = defaults;
    int type = 0, strand = -1, format = -1;
    o.evalue = -1; /* not given */
    const cli_option rows[] = {
        {0, NULL, NULL, "Scores", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "type", "TYPE", "auto (default), dna or protein", CLI_CHOICE, &type, 0, 0, types},
        {0, "matrix", "NAME",
         "BLOSUM45/50/62/80/90, PAM30/70/250, NUC.4.4, or a file in NCBI's format\n"
         "(protein default BLOSUM62)",
         CLI_TEXT, &o.matrix, 0, 0, NULL},
        {'A', "match", "N", "DNA: score of equal letters (default 2)", CLI_INT, &o.match, 0, LW_MAX_SCORE,
         NULL},
        {'B', "mismatch", "N", "DNA: penalty of different letters (default 3)", CLI_INT, &o.mismatch, 0,
         LW_MAX_SCORE, NULL},
        {'O', "gap-open", "N", "a gap of k letters costs N + k * extension (default 11, DNA 5)", CLI_INT,
         &o.gap_open, 0, LW_MAX_SCORE, NULL},
        {'E', "gap-extend", "N", "(default 1, DNA 2)", CLI_INT, &o.gap_extend, 0, LW_MAX_SCORE, NULL},
        {0, "strand", "S", "DNA: both (default) or forward", CLI_CHOICE, &strand, 0, 0, strands},
        {0, NULL, NULL, "What is reported", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "top", "N", "at most N sequences for each query (default 10; 0: all)", CLI_INT, &o.top, 0,
         INT32_MAX, NULL},
        {0, "evalue", "E", "up to this E-value (default 10)", CLI_DOUBLE, &o.evalue, 1e-300, 1e300, NULL},
        {0, "no-evalue", NULL, "no E-values or bit scores: any matrix and gap penalties will do", CLI_FLAG,
         &o.no_evalue, 0, 0, NULL},
        {0, "min-score", "S", "from this score on (default 1)", CLI_INT, &o.min_score, 1, INT32_MAX, NULL},
        {0, "outfmt", "F",
         "6 (BLAST's 12 columns; default), tsv (with header) or sam (default where\n"
         "-o is named so)",
         CLI_CHOICE, &format, 0, 0, formats},
        {0, "align", NULL, "tsv: trace the alignments too (6 and sam always do)", CLI_FLAG, &o.align, 0, 0,
         NULL},
        {0, NULL, NULL, "How", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "gapless-filter", NULL,
         "look only at sequences with a good alignment without gaps: faster, may\n"
         "miss hits",
         CLI_FLAG, &o.filter, 0, 0, NULL},
        {0, "filter-score", "S", "what good is (default: half the score that --evalue asks for)", CLI_INT,
         &o.filter_score, 1, INT32_MAX, NULL},
        {0, "gpu-mem", "SIZE", "device memory to use at most, such as 2G", CLI_SIZE, &o.device_bytes, 0, 0,
         NULL},
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    if (run.n_devices > 1)
        return cli_usage_error(&run, "search works on one device; --device names %d", run.n_devices);
    if (o.filter_score > 0 && !o.filter)
        return cli_usage_error(&run, "--filter-score goes with --gapless-filter");
    if (o.no_evalue && o.evalue > 0)
        return cli_usage_error(&run, "--evalue and --no-evalue exclude each other");
    if ((code = cli_writes_text(&run, "")) != CLI_GO_ON)
        return code;
    if (format < 0 && (code = format_by_name(&run, &format)) != CLI_GO_ON)
        return code;
    if (o.device_bytes > 0 && (code = cli_about_gpus(&run, "--gpu-mem")) != CLI_GO_ON)
        return code;
    if (o.evalue < 0)
        o.evalue = defaults.evalue;
    o.letters = (lw_letters)type;
    o.strands = strand <= 0 ? LW_BOTH_STRANDS : LW_FORWARD;
    o.format = (lw_search_format)format;
    o.backend = run.backend;
    o.device = run.n_devices ? run.devices[0] : 0;
    o.threads = run.threads;
    o.command_line = run.command_line;

    lw_error err = {0};
    lw_database *db = NULL;
    double started = progress_now();
    lw_search_summary summary = {0};
    lw_status status =
        lw_database_open(&db, run.inputs[run.n_inputs - 1], o.letters, o.threads, &run.host, &err);
    double open_seconds = progress_now() - started;
    if (status == LW_OK && strand >= 0 && lw_database_type(db) == LW_PROTEIN)
        status = lw_fail(&err, LW_E_ARG, "protein has no reverse strand: leave out --strand");
    if (status == LW_OK)
        status = lw_search(db, run.inputs, run.n_inputs - 1, run.output, &o, run.temporaries, &summary,
                           &run.host, &err);
    if (status == LW_OK) {
        say_summary(&run, &summary, db, open_seconds);
        snprintf(run.used_backend, sizeof run.used_backend, "%s", summary.backend);
        snprintf(run.used_device, sizeof run.used_device, "%s", summary.device);
        run.work = summary.cells;
    }
    lw_database_close(db);
    return cli_end(&run, status, &err);
}
