/* align_options.c - from the options of align and pairs to a job, and the summary at the end. */
#include "cli/align_options.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/progress.h"

const char *const align_mode_names[] = {"local", "global", "semiglobal", NULL};
const char *const align_type_names[] = {"auto", "dna", "protein", NULL};
const char *const align_strand_names[] = {"both", "forward", "reverse", NULL};
/* in the order of lw_align_format */
const char *const align_format_names[] = {"sam", "bam", "cram", "paf", "tsv", NULL};
/* their first ones, too */
const char *const record_format_names[] = {"sam", "bam", "cram", NULL};
const char *const pair_format_names[] = {"sam", "paf", "tsv", NULL};

const align_options align_options_unset = {.mode = -1,
                                           .strand = -1,
                                           .format = -1,
                                           .match = LW_PENALTY_DEFAULT,
                                           .mismatch = LW_PENALTY_DEFAULT,
                                           .min_score = INT32_MIN};

int align_format_of_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && align_format_names[i]; i++)
        if (strcasecmp(dot + 1, align_format_names[i]) == 0)
            return i;
    return -1;
}

int align_fill_job(cli *run, const align_options *o, lw_align_format fallback, lw_align_job *job)
{
    static const unsigned strands[] = {LW_BOTH_STRANDS, LW_FORWARD, LW_REVERSE};
    static const int types[] = {LW_TYPE_AUTO, LW_DNA, LW_PROTEIN};
    lw_align_job_init(job);
    int format = o->format >= 0 ? o->format : align_format_of_name(run->output);
    if (format < 0)
        format = fallback;
    job->format = (lw_align_format)format;
    if (o->read_group && (format == LW_FORMAT_PAF || format == LW_FORMAT_TSV))
        return cli_usage_error(run, "--rg is for SAM, BAM and CRAM; %s has no read groups",
                               align_format_names[format]);
    int code = format == LW_FORMAT_BAM || format == LW_FORMAT_CRAM
                   ? cli_writes_binary(run, align_format_names[format])
                   : cli_writes_text(run, fallback == LW_FORMAT_SAM ? "write .bam, or " : "");
    if (code != CLI_GO_ON)
        return code;
    job->mode = o->mode < 0 ? LW_LOCAL : (lw_mode)o->mode;
    job->strands = o->strand < 0 ? 0 : strands[o->strand];
    job->type = types[o->type];
    job->matrix = o->matrix;
    job->match = o->match;
    job->mismatch = o->mismatch;
    const cli_list *open = &o->gap_open, *extend = &o->gap_extend;
    if (open->n > 2 || extend->n > 2 || ((open->n == 2 || extend->n == 2) && open->n != extend->n))
        return cli_usage_error(run, "-O and -E: one number each, or two each for gaps of two prices, as in "
                                    "-O 4,24 -E 2,1");
    if (open->n > 0)
        job->gap_open = (int)open->value[0];
    if (extend->n > 0)
        job->gap_extend = (int)extend->value[0];
    if (open->n == 2) {
        job->gap_open2 = (int)open->value[1];
        job->gap_extend2 = (int)extend->value[1];
        /* of two lines the one that starts no higher and is no steeper is the lower one everywhere */
        for (int more = 0; more < 2; more++) {
            const int less = 1 - more;
            if (open->value[more] + extend->value[more] >= open->value[less] + extend->value[less] &&
                extend->value[more] >= extend->value[less])
                return cli_usage_error(run,
                                       "-O and -E: gaps at %lld + %lld a letter never cost less than at "
                                       "%lld + %lld: leave the former out",
                                       (long long)open->value[more], (long long)extend->value[more],
                                       (long long)open->value[less], (long long)extend->value[less]);
        }
    }
    job->min_score = (int)o->min_score;
    if (job->min_score != o->min_score)
        return cli_usage_error(run, "--min-score: %.10g is not a whole number", o->min_score);
    job->split_matches = o->eqx;
    job->drop_unmapped = o->no_unmapped;
    job->read_group = o->read_group;
    job->batch_letters = o->batch;
    if (o->device_bytes > 0 && (code = cli_about_gpus(run, "--gpu-mem")) != CLI_GO_ON)
        return code;
    job->device_bytes = o->device_bytes;
    job->output = run->output;
    job->command_line = run->command_line;
    job->temporaries = run->temporaries;
    job->backend = run->backend;
    job->devices = run->n_devices > 0 ? run->devices : NULL;
    job->n_devices = run->n_devices;
    job->threads = run->threads;
    return CLI_GO_ON;
}

void align_report(cli *run, const lw_align_summary *summary, const char *item, double unit)
{
    snprintf(run->used_backend, sizeof run->used_backend, "%s", summary->backend);
    snprintf(run->used_device, sizeof run->used_device, "%s", summary->device);
    run->work = summary->cells;
    if (run->quiet)
        return;
    double seconds = progress_now() - run->started;
    char cells[64], items[64];
    progress_rate(cells, sizeof cells, summary->cells, seconds, "cells");
    progress_rate(items, sizeof items, (double)summary->reads, seconds, item);
    progress_clear(&run->live);
    fprintf(stderr,
            "lanewise %s: %lld %s, %lld aligned (%.1f %%), mean score %.1f; %.2f s, %s, %s, backend %s%s%s\n",
            run->spec->name, (long long)summary->reads, item, (long long)summary->aligned,
            summary->reads ? 100.0 * (double)summary->aligned / (double)summary->reads : 0.0,
            summary->aligned ? 0.0 + unit * (double)summary->score_sum / (double)summary->aligned : 0.0,
            seconds, items, cells, summary->backend, *summary->device ? " on " : "", summary->device);
}
