/* cmd_bench.c - lanewise bench: verifies, then times the kernels of this machine. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common/cpu.h"
#include "common/device.h"
#include "common/fail.h"
#include "common/outfile.h"

static const cli_spec spec = {
    .name = "bench",
    .usage = "[DOMAIN...] [options]",
    .about =
        "Checks the kernels of this machine against the scalar reference and times them; where a peer's "
        "library\n"
        "is installed, it runs on the same input and must give the same answers. DOMAIN: align, apsp, search "
        "(default: "
        "all).\n"
        "\n"
        "  lanewise bench align\n"
        "  lanewise bench align --backend cpu --repeat 9 --json results.json\n"
        "\n"
        "The JSON holds \"schema\" (\"lanewise-bench-1\"), \"host\" (version, threads, instruction sets, "
        "device) and\n"
        "\"results\", each with domain, name, backend, shape, verified, unit, median, min, max, repeats.\n",
    .min_inputs = 0,
    .max_inputs = 16,
    .has_threads = true};

static void put_string(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        putc(*text, to);
    }
    putc('"', to);
}

static lw_status write_json(const cli *run, const bench *b, const char *path, lw_error *err)
{
    lw_outfile *file;
    LW_TRY(lw_outfile_open(&file, path, run->temporaries, err));
    FILE *to = lw_outfile_stream(file);
    if (!to)
        return lw_outfile_close(file, lw_fail_memory(err, BUFSIZ), err);
    unsigned usable = 0;
    lw_isa_usable(&usable, NULL);
    fprintf(
        to,
        "{\"schema\": \"lanewise-bench-1\",\n \"host\": {\"version\": \"%s\", \"threads\": %d, \"isa\": [",
        lw_version(), lw_pool_threads(b->pool));
    const char *comma = "";
    for (int isa = 0; isa < LW_ISA_COUNT; isa++)
        if (usable >> isa & 1) {
            fprintf(to, "%s\"%s\"", comma, lw_isa_name(isa));
            comma = ", ";
        }
    fprintf(to, "], \"device\": ");
    lw_device d;
    if (lw_device_query(b->device, &d, NULL) == LW_OK)
        put_string(to, d.name);
    else
        fprintf(to, "null");
    fprintf(to, "},\n \"results\": [");
    for (int i = 0; i < b->n; i++) {
        const bench_result *r = &b->results[i];
        fprintf(to, "%s\n  {\"domain\": ", i ? "," : "");
        put_string(to, r->domain);
        fprintf(to, ", \"name\": ");
        put_string(to, r->name);
        fprintf(to, ", \"backend\": ");
        put_string(to, r->backend);
        fprintf(to, ", \"shape\": ");
        put_string(to, r->shape);
        fprintf(to, ", \"verified\": %s, \"unit\": ", r->verified ? "true" : "false");
        put_string(to, r->unit);
        fprintf(to, ", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g, \"repeats\": %d}", r->median,
                r->minimum, r->maximum, r->repeats);
    }
    fprintf(to, "\n ]}\n");
    return lw_outfile_close(file, LW_OK, err);
}

/* The peer's result with the same shape, if there is one. */
static const bench_result *peer_of(const bench *b, const bench_result *r)
{
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->results[i].backend, "peer") == 0 && strcmp(b->results[i].domain, r->domain) == 0 &&
            strcmp(b->results[i].shape, r->shape) == 0 && strcmp(b->results[i].unit, r->unit) == 0)
            return &b->results[i];
    return NULL;
}

static void print_table(const bench *b)
{
    printf("%-34s %-16s %-46s %10s %10s %10s %-9s %s\n", "what", "backend", "shape", "median", "min", "max",
           "unit", "against peer");
    for (int i = 0; i < b->n; i++) {
        const bench_result *r = &b->results[i], *peer = peer_of(b, r);
        printf("%-34s %-16s %-46s %10.2f %10.2f %10.2f %-9s", r->name, r->backend, r->shape, r->median,
               r->minimum, r->maximum, r->unit);
        if (peer && peer != r)
            printf(" %.2f x", r->median / peer->median);
        printf("\n");
    }
}

int cmd_bench(int argc, char **argv)
{
    const char *json = NULL, *backend = "auto";
    int repeats = 5, device = 0;
    bool quick = false;
    int64_t letters = 0, vertices = 0;
    const cli_option rows[] = {
        {0, "repeat", "N", "timed runs of each kernel; the median is shown (5)", CLI_INT, &repeats, 1, 1000,
         NULL},
        {0, "quick", NULL, "small inputs: checks more than it measures", CLI_FLAG, &quick, 0, 0, NULL},
        {0, "backend", "NAME", "only this backend (cuda: all of its policies)", CLI_TEXT, &backend, 0, 0,
         NULL},
        {0, "letters", "N", "letters of the database of `search` (200000000 on a GPU, else 4000000)",
         CLI_INT64, &letters, 1000, 1e11, NULL},
        {0, "vertices", "N", "largest graph of `apsp` (65536 on a GPU, else 4096)", CLI_INT64, &vertices, 256,
         1e6, NULL},
        {0, "device", "N", "CUDA device (0)", CLI_INT, &device, 0, CLI_MAX_DEVICES - 1, NULL},
        {0, "json", "FILE", "also write the results to FILE ('-': standard output)", CLI_TEXT, &json, 0, 0,
         NULL},
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    for (int i = 0; i < run.n_inputs; i++) {
        bool known = false;
        for (int d = 0; d < bench_domain_count; d++)
            known = known || strcmp(run.inputs[i], bench_domains[d].name) == 0;
        if (!known)
            return cli_usage_error(&run, "there is no bench '%s'", run.inputs[i]);
    }
    bench b = {.repeats = repeats,
               .quick = quick,
               .letters = letters,
               .vertices = vertices,
               .backend = backend,
               .device = device,
               .host = &run.host};
    lw_error err = {0};
    lw_status status = lw_pool_open(&b.pool, run.threads, &err);
    for (int d = 0; d < bench_domain_count && status == LW_OK; d++) {
        bool wanted = run.n_inputs == 0;
        for (int i = 0; i < run.n_inputs; i++)
            wanted = wanted || strcmp(run.inputs[i], bench_domains[d].name) == 0;
        if (wanted)
            status = bench_domains[d].run(&b, &err);
    }
    if (status == LW_OK && !(json && strcmp(json, "-") == 0))
        print_table(&b);
    if (status == LW_OK && json)
        status = write_json(&run, &b, json, &err);
    free(b.results);
    lw_pool_close(b.pool);
    return cli_end(&run, status, &err);
}
