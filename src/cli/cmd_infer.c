/* cmd_infer.c - lanewise infer: a quantized ONNX model on tensors. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lanewise/infer.h"

static const cli_spec spec = {
    .name = "infer",
    .usage =
        "MODEL.onnx [--input [NAME=]x.npy]... [--output [NAME=]y.npy]... [options]\n"
        "       lanewise infer MODEL.onnx --reads FILE --encode HOW [--window N] [--output [NAME=]FILE]...",
    .about =
        "Runs an ONNX model whose weights are 8-bit integers (or floats), on tensors from .npy files or on "
        "windows of\n"
        "sequences. Integers come out the same on every backend. --describe shows the model, node by "
        "node, and what is\n"
        "not supported.\n",
    .min_inputs = 1,
    .max_inputs = 1,
    .has_backend = true,
    .has_threads = true,
    .backend_list = lw_infer_backend_list,
    .work_unit = "windows",
    .item = "sequences",
};

/* Splits "NAME=FILE" at the first '='; without one, FILE alone. The name is copied into `name`; false: it
 * does not fit. */
static bool named(lw_named_file *out, const char *text, char *name, size_t size)
{
    const char *equals = strchr(text, '=');
    *out = (lw_named_file){equals ? name : NULL, equals ? equals + 1 : text};
    return !equals || snprintf(name, size, "%.*s", (int)(equals - text), text) < (int)size;
}

static void print_line(void *user, const char *text)
{
    (void)user;
    puts(text);
}

static const char *const end_names[] = {"pad", "drop", NULL};

int cmd_infer(int argc, char **argv)
{
    cli_texts in = {0}, out = {0}, reads = {0};
    lw_sequence_job job = {0};
    int ends = 0;
    const char *dump = NULL;
    bool describe = false, fuse = false;
    const cli_option rows[] = {
        {0, "input", "[NAME=]FILE", "a tensor for the input NAME (default: the next one); may be repeated",
         CLI_TEXTS, &in, 0, 0, NULL},
        {0, "output", "[NAME=]FILE", "where the output NAME (default: the next one) goes; may be repeated",
         CLI_TEXTS, &out, 0, 0, NULL},
        {0, "describe", NULL, "print the model's inputs, outputs, nodes, kernels and sizes; run nothing",
         CLI_FLAG, &describe, 0, 0, NULL},
        {0, "dump-nodes", "DIR", "also write every intermediate value to DIR as INDEX_NAME.npy", CLI_TEXT,
         &dump, 0, 0, NULL},
        {0, "fuse", NULL,
         "make integer kernels of DequantizeLinear, operator, QuantizeLinear, as ONNX Runtime does by\n"
         "default: faster; results may move by one step of their scale",
         CLI_FLAG, &fuse, 0, 0, NULL},
        {0, NULL, NULL, "Sequences", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "reads", "FILE", "FASTA, FASTQ, SAM, BAM or CRAM, plain or compressed; may be repeated",
         CLI_TEXTS, &reads, 0, 0, NULL},
        {0, "fasta", "FILE", "the same as --reads", CLI_TEXTS, &reads, 0, 0, NULL},
        {0, "encode", "HOW",
         "onehot:ACGT (any letters), kmer:6 or kmer:6+5 (numbers of overlapping k-mers, from 5\n"
         "on), index or index:LETTERS (each letter's place)",
         CLI_TEXT, &job.encoding, 0, 0, NULL},
        {0, "window", "N", "letters of a window (default: what the model takes, else each sequence whole)",
         CLI_INT64, &job.window, 1, INT32_MAX, NULL},
        {0, "step", "N", "letters from one window's start to the next (default: the window)", CLI_INT64,
         &job.step, 1, INT32_MAX, NULL},
        {0, "ends", "HOW", "pad (default): fill the last window up with unknown letters; drop: leave it out",
         CLI_CHOICE, &ends, 0, 0, end_names},
        {0, "batch", "N", "windows at a time (default 64, or what the model takes)", CLI_INT64, &job.batch, 1,
         1 << 20, NULL},
        {0, "reference", "FASTA", "what CRAM files were made with", CLI_TEXT, &job.reference, 0, 0, NULL},
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    lw_error err = {0};
    if (strcmp(run.inputs[0], "-") == 0)
        return cli_usage_error(&run,
                               "a model is read from a file, not from standard input: its external data "
                               "lie beside it");
    if (describe && (in.n || out.n || dump || reads.n || job.encoding || job.window || job.step ||
                     job.batch || job.reference || ends))
        return cli_usage_error(&run, "--describe runs nothing: it takes no tensors and no sequences");
    if (describe)
        return cli_end(&run, lw_network_describe(run.inputs[0], run.backend, fuse, print_line, NULL, &err),
                       &err);
    if (reads.n && (!job.encoding || dump))
        return cli_usage_error(&run, !job.encoding ? "--reads needs --encode, such as --encode onehot:ACGT"
                                                   : "--dump-nodes goes with tensors, not with --reads");
    if (!reads.n && (job.encoding || job.window || job.step || job.batch || job.reference || ends))
        return cli_usage_error(&run,
                               "--encode, --window, --step, --ends, --batch and --reference go with --reads");
    for (int i = 0; i < reads.n; i++)
        if ((code = cli_also_reads(&run, reads.value[i])) != CLI_GO_ON)
            return code;
    if (out.n == 0 && !dump && !reads.n)
        return cli_usage_error(&run, "no --output: nothing would come of it");
    lw_named_file inputs[CLI_MAX_TEXTS], outputs[CLI_MAX_TEXTS];
    static char names[2 * CLI_MAX_TEXTS][512];
    for (int i = 0; i < in.n + out.n; i++) {
        bool is_in = i < in.n;
        const char *text = is_in ? in.value[i] : out.value[i - in.n];
        if (!named(is_in ? &inputs[i] : &outputs[i - in.n], text, names[i], sizeof names[i]))
            return cli_usage_error(&run, "--%s %.40s...: a name has at most %zu letters",
                                   is_in ? "input" : "output", text, sizeof names[i] - 1);
    }
    const char *files[2 * CLI_MAX_TEXTS];
    int n_files = 0;
    for (int i = 0; i < in.n; i++) {
        if ((code = cli_also_reads(&run, inputs[i].path)) != CLI_GO_ON)
            return code;
        files[n_files++] = inputs[i].path;
    }
    for (int i = 0; i < reads.n; i++)
        files[n_files++] = reads.value[i];
    const char *written[2 * CLI_MAX_TEXTS];
    static char tables[CLI_MAX_TEXTS][PATH_MAX];
    int n_written = 0;
    for (int i = 0; i < out.n; i++) {
        const char *path = outputs[i].path;
        size_t length = strlen(path);
        written[n_written++] = path;
        if (!reads.n && (code = cli_names_tensor(&run, path)) != CLI_GO_ON)
            return code;
        if (reads.n && length >= 4 && strcmp(path + length - 4, ".npy") == 0) { /* its windows */
            if (snprintf(tables[i], sizeof tables[i], "%s.tsv", path) >= (int)sizeof tables[i])
                return cli_usage_error(&run, "--output %.40s...: the path is too long", path);
            written[n_written++] = tables[i];
        }
    }
    for (int i = 0; i < n_written; i++) {
        if (strcmp(written[i], "-") != 0 &&
            (code = cli_also_writes(&run, written[i], files, n_files)) != CLI_GO_ON)
            return code;
        for (int k = 0; k < i; k++)
            if (cli_same_file(written[i], written[k]))
                return cli_usage_error(&run, "%s cannot be two outputs", written[i]);
    }
    lw_network *network = NULL;
    lw_status status = lw_network_open(&network, run.inputs[0], run.backend, run.threads, &run.host, &err);
    for (int i = 0; i < in.n && status == LW_OK; i++) /* before anything is fused from it */
        if (inputs[i].name)
            status = lw_network_override(network, inputs[i].name, NULL, &err);
    int fused = 0;
    if (status == LW_OK && fuse)
        status = lw_network_fuse(network, &fused, &err);
    if (status == LW_OK && fuse && run.verbose) {
        char text[80];
        snprintf(text, sizeof text, "%d operators fused into integer kernels", fused);
        run.host.say(run.host.user, LW_SAY_INFO, text);
    }
    if (status == LW_OK) {
        snprintf(run.used_backend, sizeof run.used_backend, "%s", lw_network_backend(network));
        if (reads.n) {
            lw_sequence_counts counts;
            job.files = reads.value;
            job.n_files = reads.n;
            job.whole_windows_only = ends == 1;
            job.inputs = inputs;
            job.n_inputs = in.n;
            job.outputs = outputs;
            job.n_outputs = out.n;
            status = lw_network_run_sequences(network, &job, run.temporaries, &counts, &err);
            run.work = (double)counts.windows;
        } else {
            status = lw_network_run_files(network, inputs, in.n, outputs, out.n, dump, run.temporaries, &err);
        }
    }
    lw_network_close(network);
    return cli_end(&run, status, &err);
}
