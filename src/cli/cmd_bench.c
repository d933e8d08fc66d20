/* cmd_bench.c - lanewise bench: verifies, then times the kernels of this machine. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common/fail.h"
#include "common/outfile.h"

static const cli_spec spec = {
    .name = "bench",
    .usage = "[DOMAIN...] [options]  |  compare [-o BASE] RUN.json...",
    .about =
        "Checks the kernels of this machine against the scalar reference and times them; where a peer's "
        "library\n"
        "is installed, it runs on the same input and must give the same answers. DOMAIN: align, search, "
        "apsp, infer,\n"
        "techniques (kernels that differ in one thing, with what this card says about it), ceilings (rates "
        "of\n"
        "single instructions, bandwidths), or all (default).\n"
        "\n"
        "  lanewise bench all --quick --json here.json\n"
        "  lanewise bench align --backend cpu --repeat 9\n"
        "  lanewise bench compare -o report here.json there.json\n"
        "\n"
        "compare writes Markdown to standard output, and with -o the files BASE.md, BASE.svg and BASE.html.\n"
        "docs/formats.md describes the JSON (\"schema\": \"lanewise-bench-1\").\n",
    .min_inputs = 0,
    .max_inputs = 64,
    .has_output = true,
    .has_threads = true,
    .item = "results"};

static lw_status write_json(const bench *b, lw_outfile *file, lw_error *err)
{
    FILE *to = lw_outfile_stream(file);
    if (!to)
        return lw_outfile_close(file, lw_fail_memory(err, BUFSIZ), err);
    bench_write_json(b, to);
    return lw_outfile_close(file, LW_OK, err);
}

/* bench compare, whose files beside BASE must not replace what it reads. */
static int compare_runs(cli *run)
{
    static const char *const suffixes[] = {".md", ".svg", ".html"};
    const char *base = strcmp(run->output, "-") == 0 ? NULL : run->output;
    if (base && !*base)
        return cli_usage_error(run, "-o: the name is empty");
    for (size_t i = 0; base && i < sizeof suffixes / sizeof *suffixes; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s%s", base, suffixes[i]);
        int code = cli_also_writes(run, path, NULL, 0);
        if (code != CLI_GO_ON)
            return code;
    }
    lw_error err = {0};
    return cli_end(
        run,
        bench_compare(run->inputs + 1, run->n_inputs - 1, base, stdout, run->temporaries, &run->host, &err),
        &err);
}

/* The domains that are named, as a set of bits; all of them where none is. 0: a usage error was said. */
static unsigned domains_of(cli *run)
{
    const unsigned all = (1u << bench_domain_count) - 1;
    unsigned set = 0;
    for (int i = 0; i < run->n_inputs; i++) {
        unsigned named = strcmp(run->inputs[i], "all") == 0 ? all : 0;
        for (int d = 0; d < bench_domain_count; d++)
            if (strcmp(run->inputs[i], bench_domains[d].name) == 0)
                named = 1u << d;
        if (!named) {
            cli_usage_error(run, "there is no bench '%s'", run->inputs[i]);
            return 0;
        }
        set |= named;
    }
    return set ? set : all;
}

/* An option, and the domain that it is for. */
typedef struct bench_option {
    const char *name;
    bool given;
    const char *domain; /* NULL: all */
} bench_option;

/* CLI_GO_ON, or the exit code where an option would be ignored. domains: 0 for compare. */
static int check_options(cli *run, const bench_option *options, int n, unsigned domains)
{
    for (int i = 0; i < n; i++) {
        const bench_option *o = &options[i];
        if (!o->given)
            continue;
        if (!domains)
            return cli_usage_error(run, "%s is for measuring; compare takes files and -o", o->name);
        bool meant = !o->domain;
        for (int d = 0; d < bench_domain_count; d++)
            meant = meant || ((domains >> d & 1) && strcmp(o->domain, bench_domains[d].name) == 0);
        if (!meant)
            return cli_usage_error(run, "%s is for the bench '%s', which is not among those named", o->name,
                                   o->domain);
    }
    return CLI_GO_ON;
}

/* CLI_GO_ON, or the exit code where --sizes does not fit what is run. */
static int check_sizes(cli *run, const cli_list *sizes, unsigned domains)
{
    const bench_domain *only = NULL;
    int n = 0;
    for (int d = 0; d < bench_domain_count; d++)
        if (domains >> d & 1) {
            only = &bench_domains[d];
            n++;
        }
    if (n != 1)
        return cli_usage_error(run, "--sizes means something else in each bench: name one of align, apsp, "
                                    "infer, search with it");
    if (!only->size)
        return cli_usage_error(run, "--sizes: the bench '%s' has no sizes to choose", only->name);
    for (int i = 0; i < sizes->n; i++)
        if (sizes->value[i] < only->least || sizes->value[i] > only->most)
            return cli_usage_error(run, "--sizes: %lld is not within %lld to %lld, %s",
                                   (long long)sizes->value[i], (long long)only->least, (long long)only->most,
                                   only->size);
    return CLI_GO_ON;
}

int cmd_bench(int argc, char **argv)
{
    static const char *const modes[] = {"all", "local", "global", "semiglobal", NULL};
    const char *json = NULL, *backend = NULL, *pairs = NULL;
    int repeats = 0, device = -1, mode = -1;
    bool quick = false, scores = false, two_piece = false;
    cli_list sizes = {0};
    int64_t letters = 0, vertices = 0;
    const cli_option rows[] = {
        {0, "repeat", "N", "timed runs of each kernel; the median is shown (5)", CLI_INT, &repeats, 1, 1000,
         NULL},
        {0, "quick", NULL, "small inputs: checks more than it measures", CLI_FLAG, &quick, 0, 0, NULL},
        {0, "backend", "NAME", "only this backend (cuda: all of its policies)", CLI_TEXT, &backend, 0, 0,
         NULL},
        {0, "sizes", "N,N...",
         "inputs of these sizes and no others; with one DOMAIN. align: letters of the reference\n"
         "(1000 to 1e8), apsp: vertices, infer: inputs and outputs of a layer, search: letters of\n"
         "the database",
         CLI_LIST, &sizes, 1, 1e11, NULL},
        {0, "letters", "N", "letters of the database of `search` (200000000 on a GPU, else 4000000)",
         CLI_INT64, &letters, 1000, 1e11, NULL},
        {0, "vertices", "N", "largest graph of `apsp` (65536 on a GPU, else 4096)", CLI_INT64, &vertices, 256,
         1e6, NULL},
        {0, "pairs", "LIST",
         "of `align` only pairs with their paths, in shapes like 150x200:1000000,1000x1000:100000", CLI_TEXT,
         &pairs, 0, 0, NULL},
        {0, "mode", "MODE", "of pairs: all, local, global or semiglobal (all)", CLI_CHOICE, &mode, 0, 0,
         modes},
        {0, "scores", NULL, "pairs also without their paths", CLI_FLAG, &scores, 0, 0, NULL},
        {0, "two-piece", NULL, "pairs also with two-piece gaps (-O 4,24 -E 2,1)", CLI_FLAG, &two_piece, 0, 0,
         NULL},
        {0, "device", "N", "the CUDA device whose rows run (0); CPU rows run beside them", CLI_INT, &device,
         0, CLI_MAX_DEVICES - 1, NULL},
        {0, "json", "FILE", "also write the results to FILE ('-': standard output)", CLI_TEXT, &json, 0, 0,
         NULL},
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    lw_error err = {0};
    bool compare = run.n_inputs > 0 && strcmp(run.inputs[0], "compare") == 0;
    unsigned domains = compare ? 0 : domains_of(&run);
    if (!compare && !domains)
        return CLI_USAGE;
    const bench_option options[] = {{"--repeat", repeats != 0, NULL},
                                    {"--quick", quick, NULL},
                                    {"--backend", backend != NULL, NULL},
                                    {"--sizes", sizes.n != 0, NULL},
                                    {"--letters", letters != 0, "search"},
                                    {"--vertices", vertices != 0, "apsp"},
                                    {"--pairs", pairs != NULL, "align"},
                                    {"--mode", mode >= 0, "align"},
                                    {"--scores", scores, "align"},
                                    {"--two-piece", two_piece, "align"},
                                    {"--device", device >= 0, NULL},
                                    {"--json", json != NULL, NULL},
                                    {"-t (--threads)", run.threads != 0, NULL}};
    code = check_options(&run, options, (int)(sizeof options / sizeof *options), domains);
    if (code != CLI_GO_ON)
        return code;
    if (compare && run.n_inputs == 1)
        return cli_usage_error(&run, "compare needs the JSON files of runs");
    if (compare)
        return compare_runs(&run);
    if (strcmp(run.output, "-") != 0)
        return cli_usage_error(&run, "-o is for 'bench compare'; the results of a run go to --json FILE");
    if (sizes.n && (letters || vertices || pairs || mode >= 0 || scores || two_piece))
        return cli_usage_error(&run, "--sizes chooses the input alone: leave out --letters, --vertices, "
                                     "--pairs and what is for pairs");
    if (sizes.n && (code = check_sizes(&run, &sizes, domains)) != CLI_GO_ON)
        return code;
    if (device >= 0 && backend && strcmp(backend, "auto") != 0 && strncmp(backend, "cuda", 4) != 0)
        return cli_usage_error(&run, "--device has no meaning with --backend %s", backend);
    if (pairs && bench_pairs_check(pairs, &err) != LW_OK)
        return cli_usage_error(&run, "%s", err.message);
    bench b = {.repeats = repeats ? repeats : 5,
               .quick = quick,
               .pairs = pairs,
               .mode = mode > 0 ? mode - 1 : -1,
               .scores = scores,
               .two_piece = two_piece,
               .letters = letters,
               .vertices = vertices,
               .backend = backend ? backend : "auto",
               .device = device < 0 ? 0 : device,
               .device_named = device >= 0,
               .host = &run.host};
    b.n_sizes = sizes.n;
    for (int i = 0; i < sizes.n; i++)
        b.sizes[i] = sizes.value[i];
    lw_outfile *file = NULL; /* opened before the work, so that a wrong name does not waste it */
    lw_status status = json ? lw_outfile_open(&file, json, run.temporaries, &err) : LW_OK;
    bool products = true; /* as inference has them: loops close to each other */
    for (int d = 0; d < bench_domain_count; d++)
        products = products && (!(domains >> d & 1) || strcmp(bench_domains[d].name, "infer") == 0);
    if (status == LW_OK)
        status = (products ? lw_pool_open_team : lw_pool_open)(&b.pool, run.threads, &err);
    if (status == LW_OK)
        status = bench_run(&b, domains, &err);
    /* what is listed was verified, also where something else was wrong */
    if ((status == LW_OK || b.n_wrong) && !(json && strcmp(json, "-") == 0))
        bench_print(&b, stdout);
    if (file && (status == LW_OK || b.n_wrong)) {
        lw_status written = write_json(&b, file, &err);
        status = status == LW_OK ? written : status;
    } else if (file) {
        status = lw_outfile_close(file, status, &err);
    }
    bench_free(&b);
    lw_pool_close(b.pool);
    return cli_end(&run, status, &err);
}
