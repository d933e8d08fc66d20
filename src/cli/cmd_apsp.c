/* cmd_apsp.c - lanewise apsp: all-pairs shortest paths of a graph in a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "common/fail.h"
#include "lanewise/paths.h"

static const cli_spec spec = {
    .name = "apsp",
    .usage = "GRAPH [options]",
    .about = "All-pairs shortest paths (Floyd-Warshall) of a DIMACS .gr, Matrix Market .mtx, edge list\n"
             "(.tsv, .csv, .txt; names or numbers), GFA 1 or dense .npy graph, plain or gzip.\n"
             "Integer matrices hold the type's largest value where there is no path, float matrices and text "
             "inf.\n",
    .min_inputs = 1,
    .max_inputs = 1,
    .has_output = true,
    .has_backend = true,
    .has_threads = true,
    .backend_list = lw_paths_backend_list,
    .work_unit = "relaxations",
    .item = "pivots",
};

static const char *const input_formats[] = {"auto", "gr", "mtx", "edges", "gfa", "npy", NULL};
static const char *const output_formats[] = {"npy", "tsv", "long", "phylip", NULL};
static const char *const dtypes[] = {"int32", "int64", "float32", "float64", NULL};
static const char *const transforms[] = {"none", "reciprocal", "minuslog", "1000-x", NULL};

enum { CHECKPOINT_SECONDS = 60 };

typedef struct options {
    int input_format, output_format, dtype, transform;
    bool directed, undirected, components, next, stats, force;
    const char *from, *to, *weight, *query, *sets, *checkpoint;
    double checkpoint_every; /* < 0: not given */
    int64_t device_bytes;
} options;

static bool ends_with(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

static lw_matrix_format output_format(const options *o, const char *path)
{
    if (o->output_format >= 0)
        return (lw_matrix_format)o->output_format;
    if (ends_with(path, ".npy"))
        return LW_MATRIX_NPY;
    if (ends_with(path, ".phy") || ends_with(path, ".phylip") || ends_with(path, ".dist"))
        return LW_MATRIX_PHYLIP;
    return LW_MATRIX_TSV;
}

/* Fails now rather than after hours where the output could not be made. Pipes and devices are not tried
 * twice. */
static lw_status try_output(cli *run, lw_error *err)
{
    struct stat there;
    if (strcmp(run->output, "-") == 0 || (stat(run->output, &there) == 0 && !S_ISREG(there.st_mode)))
        return LW_OK;
    lw_outfile *file;
    lw_status status = lw_outfile_open(&file, run->output, run->temporaries, err);
    if (status == LW_OK)
        lw_outfile_close(file, LW_E_INTERRUPTED, NULL); /* takes the temporary away again */
    return status;
}

/* The files that are written besides that of -o must not be inputs either. */
static int side_files(cli *run, const options *o)
{
    const char *reads[] = {o->query, o->sets};
    const char *const suffixes[] = {".names.txt", ".next.npy"};
    int code = o->checkpoint ? cli_also_writes(run, o->checkpoint, reads, 2) : CLI_GO_ON;
    bool matrix = !o->query && !o->stats && !o->sets && strcmp(run->output, "-") != 0 &&
                  output_format(o, run->output) == LW_MATRIX_NPY;
    for (int i = 0; i < 2 && matrix && code == CLI_GO_ON; i++) {
        char *name = i == 0 || o->next ? lw_paths_beside(run->output, suffixes[i]) : NULL;
        if (name)
            code = cli_also_writes(run, name, reads, 2);
        if (name && code == CLI_GO_ON && o->checkpoint && cli_same_file(name, o->checkpoint))
            code = cli_usage_error(run, "%s cannot be two outputs", name);
        free(name);
    }
    return code;
}

/* What is read besides the graph. */
typedef struct lists {
    lw_paths_pairs *pairs;
    lw_paths_sets *sets;
} lists;

/* Before the work, so that a mistake in them does not waste it. */
static lw_status read_lists(cli *run, const options *o, const lw_graph *graph, lists *out, lw_error *err)
{
    if (o->query)
        return lw_paths_pairs_read(&out->pairs, graph, o->query, err);
    if (o->sets)
        return lw_paths_sets_read(&out->sets, graph, o->sets, &run->host, err);
    return lw_paths_writable(graph, o->stats ? LW_MATRIX_TSV : output_format(o, run->output), err);
}

static lw_status write_result(cli *run, const options *o, const lw_paths *paths, const lw_graph *graph,
                              const lists *l, lw_error *err)
{
    if (l->pairs)
        return lw_paths_write_routes(paths, graph, l->pairs, run->output, run->temporaries, err);
    if (l->sets)
        return lw_paths_write_sets(paths, l->sets, run->output, run->temporaries, err);
    if (o->stats)
        return lw_paths_write_stats(paths, graph, run->output, run->temporaries, err);
    return lw_paths_write(paths, graph, output_format(o, run->output), run->output, run->temporaries, err);
}

static lw_status solve(cli *run, const options *o, lw_error *err)
{
    lw_graph_options reading = {.format = (lw_graph_format)o->input_format,
                                .undirected = o->undirected,
                                .transform = (lw_transform)o->transform,
                                .from = o->from,
                                .to = o->to,
                                .weight = o->weight};
    lw_paths_options solving = {.backend = run->backend,
                                .device = run->n_devices > 0 ? run->devices[0] : 0,
                                .threads = run->threads,
                                .device_bytes = o->device_bytes,
                                .dtype = o->dtype,
                                .next = o->next || o->query,
                                .components = o->components,
                                .force = o->force,
                                .checkpoint = o->checkpoint,
                                .checkpoint_seconds =
                                    o->checkpoint_every < 0 ? CHECKPOINT_SECONDS : o->checkpoint_every,
                                .host = &run->host};
    lw_graph *graph = NULL;
    lw_paths paths = {0};
    lists l = {0};
    lw_status status;
    LW_TRY(try_output(run, err));
    LW_TRY(lw_graph_read(&graph, run->inputs[0], &reading, &run->host, err));
    LW_TRY_END(read_lists(run, o, graph, &l, err));
    LW_TRY_END(lw_paths_solve(&paths, graph, &solving, err));
    LW_TRY_END(write_result(run, o, &paths, graph, &l, err));
    snprintf(run->used_backend, sizeof run->used_backend, "%s", paths.backend);
    run->work = paths.relaxations;
end:
    lw_paths_pairs_free(l.pairs);
    lw_paths_sets_free(l.sets);
    lw_paths_free(&paths);
    lw_graph_free(graph);
    return status;
}

/* CLI_GO_ON, or the exit code where options contradict each other or could have no effect. */
static int check_options(cli *run, const options *o)
{
    bool table = o->query || o->stats || o->sets;
    if (o->directed && o->undirected)
        return cli_usage_error(run, "--directed and --undirected exclude each other");
    if ((o->query != NULL) + o->stats + (o->sets != NULL) > 1)
        return cli_usage_error(run, "--query, --stats and --sets exclude each other");
    if (o->next && table)
        return cli_usage_error(run, "--next goes with a matrix, not with --query, --stats or --sets");
    if (table && o->output_format >= 0)
        return cli_usage_error(run,
                               "--format is that of a matrix: leave it out with --query, --stats or --sets");
    if (table && output_format(o, run->output) != LW_MATRIX_TSV)
        return cli_usage_error(run, "--query, --stats and --sets write tables: -o %s names another format",
                               run->output);
    if (o->next && (strcmp(run->output, "-") == 0 || output_format(o, run->output) != LW_MATRIX_NPY))
        return cli_usage_error(run, "--next needs -o FILE.npy, beside which it writes FILE.next.npy");
    if (o->checkpoint_every >= 0 && !o->checkpoint)
        return cli_usage_error(run, "--checkpoint-every goes with --checkpoint FILE");
    if (o->transform != 0 && o->weight && strcmp(o->weight, "none") == 0)
        return cli_usage_error(run, "--weight none leaves nothing for --transform");
    if (run->n_devices > 1)
        return cli_usage_error(run, "apsp works on one device; --device names %d", run->n_devices);
    return o->device_bytes > 0 ? cli_about_gpus(run, "--gpu-mem") : CLI_GO_ON;
}

int cmd_apsp(int argc, char **argv)
{
    options o = {.output_format = -1, .dtype = LW_PATHS_AUTO, .checkpoint_every = -1};
    const cli_option rows[] = {
        {0, NULL, NULL, "Graph", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "input-format", "NAME", "auto, gr, mtx, edges, gfa or npy (default: by suffix, else by content)",
         CLI_CHOICE, &o.input_format, 0, 0, input_formats},
        {0, "directed", NULL, "edges lead one way (default)", CLI_FLAG, &o.directed, 0, 0, NULL},
        {0, "undirected", NULL, "edges lead both ways", CLI_FLAG, &o.undirected, 0, 0, NULL},
        {0, "weight", "COLUMN",
         "edge lists: weights are in this column, by heading or number (default: the\nthird; 1 if there are "
         "two); none: "
         "every edge weighs 1",
         CLI_TEXT, &o.weight, 0, 0, NULL},
        {0, "from", "COLUMN", "edge lists: column of the start (default 1)", CLI_TEXT, &o.from, 0, 0, NULL},
        {0, "to", "COLUMN", "edge lists: column of the end (default 2)", CLI_TEXT, &o.to, 0, 0, NULL},
        {0, "transform", "NAME",
         "weights: none, reciprocal (1/x), minuslog (-ln x) or 1000-x (STRING's scores)", CLI_CHOICE,
         &o.transform, 0, 0, transforms},
        {0, NULL, NULL, "Computing", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "dtype", "TYPE",
         "int32, int64, float32 or float64 (default: int32 for whole weights, else float32)", CLI_CHOICE,
         &o.dtype, 0, 0, dtypes},
        {0, "components", NULL, "each connected component by itself: faster where there are many", CLI_FLAG,
         &o.components, 0, 0, NULL},
        {0, "gpu-mem", "SIZE", "most device memory to take, e.g. 4G (default: what is free)", CLI_SIZE,
         &o.device_bytes, 0, 0, NULL},
        {0, "checkpoint", "FILE", "save the state here now and then; resume from it if it is there", CLI_TEXT,
         &o.checkpoint, 0, 0, NULL},
        {0, "checkpoint-every", "SECONDS", "between two saves (default 60)", CLI_DOUBLE, &o.checkpoint_every,
         0, 1e9, NULL},
        {0, "force", NULL, "go on although memory does not seem to suffice", CLI_FLAG, &o.force, 0, 0, NULL},
        {0, NULL, NULL, "Output", CLI_HEADING, NULL, 0, 0, NULL},
        {0, "format", "NAME",
         "npy, tsv, long (one line per pair) or phylip (default: by the suffix of -o,\nelse tsv)", CLI_CHOICE,
         &o.output_format, 0, 0, output_formats},
        {0, "next", NULL, "also store next hops, in OUT.next.npy beside -o OUT.npy", CLI_FLAG, &o.next, 0, 0,
         NULL},
        {0, "query", "FILE", "instead: distance, hops and route of the pairs listed in FILE", CLI_TEXT,
         &o.query, 0, 0, NULL},
        {0, "stats", NULL, "instead: eccentricity, mean distance and closeness of every vertex, diameter",
         CLI_FLAG, &o.stats, 0, 0, NULL},
        {0, "sets", "FILE",
         "instead: closest and shortest distances between the vertex sets in FILE\n(lines SET VERTEX, or "
         ".gmt)",
         CLI_TEXT, &o.sets, 0, 0, NULL},
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    if ((code = check_options(&run, &o)) != CLI_GO_ON)
        return code;
    if ((o.query && (code = cli_also_reads(&run, o.query)) != CLI_GO_ON) ||
        (o.sets && (code = cli_also_reads(&run, o.sets)) != CLI_GO_ON))
        return code;
    bool binary = !o.query && !o.stats && !o.sets && output_format(&o, run.output) == LW_MATRIX_NPY;
    if ((code = binary ? cli_writes_binary(&run, "npy") : cli_writes_text(&run, "")) != CLI_GO_ON)
        return code;
    if ((code = side_files(&run, &o)) != CLI_GO_ON)
        return code;
    lw_error err = {0};
    return cli_end(&run, solve(&run, &o, &err), &err);
}
