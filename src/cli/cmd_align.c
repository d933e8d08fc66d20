/* cmd_align.c - lanewise align: every read against every reference. */
#include "cli/align_options.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "lanewise/align.h"

#include <string.h>

static const cli_spec spec = {
    .name = "align",
    .usage = "REF READS... [options]",
    .about =
        "Finds, for every read, its best alignment with any of the reference sequences, on both strands, by\n"
        "comparing every letter with every letter: no seeds, no heuristics, so nothing can be missed. REF "
        "is\n"
        "FASTA; READS are FASTA, FASTQ, SAM, BAM or CRAM, plain or compressed, '-' for standard input. The\n"
        "records are written in the order of the reads; a read without an alignment stays in as unmapped.\n"
        "\n"
        "  lanewise align virus.fa reads.fq.gz -o reads.bam\n"
        "  lanewise align plasmids.fa R1.fq -2 R2.fq --rg '@RG\\tID:lane1\\tSM:sample' -o pairs.bam\n"
        "  lanewise align proteins.fa peptides.fa --format tsv\n",
    .min_inputs = 2,
    .max_inputs = -1,
    .has_output = true,
    .has_backend = true,
    .has_threads = true,
    .backend_list = lw_align_backend_list,
    .work_unit = "cells",
    .item = "reads"};

int cmd_align(int argc, char **argv)
{
    align_options o = align_options_unset;
    const char *mates = NULL;
    bool interleaved = false;
    cli_list insert = {.n = 0};
    int secondary = 0;
    const cli_option rows[] = {
        {0, NULL, NULL, "Reads in pairs", CLI_HEADING, NULL, 0, 0, NULL},
        {'2', "mates", "FILE", "the second reads of the pairs whose first ones are in READS", CLI_TEXT,
         &mates, 0, 0, NULL},
        {'p', "interleaved", NULL, "READS hold both reads of each pair, one after the other", CLI_FLAG,
         &interleaved, 0, 0, NULL},
        {0, "insert", "LOW,HIGH", "lengths that a proper pair may span (0,1000)", CLI_LIST, &insert, 0,
         2147483647.0, NULL},
        ALIGN_SCORING_ROWS(o),
        {0, "strand", "WHICH", "both (default for DNA), forward or reverse", CLI_CHOICE, &o.strand, 0, 0,
         align_strand_names},
        {'N', "secondary", "K", "also report up to K further places of each read (0)", CLI_INT, &secondary, 0,
         1000, NULL},
        {0, NULL, NULL, "Output", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "format", "FORMAT", "sam, bam, cram, paf or tsv (default: by the name of -o, else sam)",
         CLI_CHOICE, &o.format, 0, 0, align_format_names},
        {0, "rg", "LINE", "read group header line, '@RG\\tID:...'; every read gets its ID", CLI_TEXT,
         &o.read_group, 0, 0, NULL},
        {0, "eqx", NULL, "CIGARs with = and X in place of M", CLI_FLAG, &o.eqx, 0, 0, NULL},
        {0, "no-unmapped", NULL, "leave out reads without an alignment", CLI_FLAG, &o.no_unmapped, 0, 0,
         NULL},
        ALIGN_MEANS_ROWS(o),
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    if (mates && (code = cli_also_reads(&run, mates)) != CLI_GO_ON)
        return code;
    if (mates && !interleaved && run.n_inputs == 2 && strcmp(mates, "-") != 0 &&
        cli_same_file(mates, run.inputs[1]))
        return cli_usage_error(&run, "-2 %s is the file of the first reads too", mates);
    if (insert.n > 0 && insert.n != 2)
        return cli_usage_error(&run, "--insert takes two numbers, LOW,HIGH");
    if (insert.n > 0 && !mates && !interleaved)
        return cli_usage_error(&run, "--insert is for pairs: -2 or -p says where they are");
    lw_align_job job;
    code = align_fill_job(&run, &o, LW_FORMAT_SAM, &job);
    if (code != CLI_GO_ON)
        return code;
    job.reference = run.inputs[0];
    job.reads = run.inputs + 1;
    job.n_reads = run.n_inputs - 1;
    job.mates = mates;
    job.interleaved = interleaved;
    if (insert.n > 0) {
        job.insert_low = (int)insert.value[0];
        job.insert_high = (int)insert.value[1];
    }
    job.secondary = secondary;
    lw_error err = {0};
    lw_align_summary summary = {0};
    lw_status status = lw_align_files(&job, &run.host, &summary, &err);
    if (status == LW_OK) {
        align_report(&run, &summary, "reads", 1);
    }
    return cli_end(&run, status, &err);
}
