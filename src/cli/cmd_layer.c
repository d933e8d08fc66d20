/* cmd_layer.c - lanewise layer: one quantized layer from tensors. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "lanewise/infer.h"

static const cli_spec spec = {
    .name = "layer",
    .usage = "KIND --input NAME=x.npy|NUMBER... [--set NAME=VALUE]... [-o y.npy]",
    .about = "Runs one layer on tensors from .npy files and writes its result as .npy. 'lanewise layer list' "
             "names the\n"
             "kinds with their inputs and settings.\n",
    .min_inputs = 1,
    .max_inputs = 1,
    .has_output = true,
    .has_backend = true,
    .has_threads = true,
    .backend_list = lw_infer_backend_list,
};

static void print_line(void *user, const char *text)
{
    (void)user;
    puts(text);
}

/* Splits NAME=VALUE of every text; names are copied to `names`. CLI_GO_ON, or the code of a usage error. */
static int split(cli *run, const char *option, const cli_texts *texts, lw_layer_value *out, char (*names)[64])
{
    for (int i = 0; i < texts->n; i++) {
        const char *text = texts->value[i], *equals = strchr(text, '=');
        if (!equals)
            return cli_usage_error(run, "--%s %s: NAME=VALUE is expected", option, text);
        if (snprintf(names[i], sizeof names[i], "%.*s", (int)(equals - text), text) >= (int)sizeof names[i])
            return cli_usage_error(run, "--%s %.40s...: a name has at most %zu letters", option, text,
                                   sizeof names[i] - 1);
        out[i] = (lw_layer_value){names[i], equals + 1};
    }
    return CLI_GO_ON;
}

int cmd_layer(int argc, char **argv)
{
    cli_texts in = {0}, set = {0};
    const char *quantize = NULL, *save_weights = NULL;
    const cli_option rows[] = {
        {0, "input", "NAME=VALUE", "a tensor (an .npy file) or a number; may be repeated", CLI_TEXTS, &in, 0,
         0, NULL},
        {0, "set", "NAME=VALUE", "a setting, such as stride=2,2 or axis=-1; may be repeated", CLI_TEXTS, &set,
         0, 0, NULL},
        {0, "quantize", "HOW",
         "make the float weights int8: tensor (one scale), channel (one for each output),\n"
         "tensor-asymmetric, channel-asymmetric (with zero points)",
         CLI_TEXT, &quantize, 0, 0, NULL},
        {0, "save-weights", "PREFIX", "write what --quantize made to PREFIX-w.npy, PREFIX-w-scale.npy, ...",
         CLI_TEXT, &save_weights, 0, 0, NULL},
        CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    lw_error err = {0};
    bool list = strcmp(run.inputs[0], "list") == 0;
    if (list && (in.n || set.n || quantize || save_weights || strcmp(run.output, "-") != 0))
        return cli_usage_error(&run, "list takes none of these options: it only names the layers");
    if (list) {
        lw_layer_list(print_line, NULL);
        return cli_end(&run, LW_OK, &err);
    }
    if ((code = cli_writes_binary(&run, "npy")) != CLI_GO_ON ||
        (code = cli_names_tensor(&run, run.output)) != CLI_GO_ON)
        return code;
    if (save_weights && !quantize)
        return cli_usage_error(&run, "--save-weights goes with --quantize");
    lw_layer_value inputs[CLI_MAX_TEXTS], settings[CLI_MAX_TEXTS];
    char input_names[CLI_MAX_TEXTS][64], setting_names[CLI_MAX_TEXTS][64];
    if ((code = split(&run, "input", &in, inputs, input_names)) != CLI_GO_ON)
        return code;
    for (int i = 0; i < in.n; i++)
        if ((code = cli_also_reads(&run, inputs[i].text)) != CLI_GO_ON)
            return code;
    static const char *const made[] = {"w", "w-scale", "w-zero", "r", "r-scale", "r-zero"};
    const char *files[CLI_MAX_TEXTS];
    for (int i = 0; i < in.n; i++)
        files[i] = inputs[i].text;
    for (size_t i = 0; save_weights && i < sizeof made / sizeof *made; i++) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s-%s.npy", save_weights, made[i]) >= (int)sizeof path)
            return cli_usage_error(&run, "--save-weights %.40s...: the path is too long", save_weights);
        if ((code = cli_also_writes(&run, path, files, in.n)) != CLI_GO_ON)
            return code;
    }
    if ((code = split(&run, "set", &set, settings, setting_names)) != CLI_GO_ON)
        return code;
    lw_layer_job job = {.kind = run.inputs[0],
                        .inputs = inputs,
                        .n_inputs = in.n,
                        .settings = settings,
                        .n_settings = set.n,
                        .quantize = quantize,
                        .save_weights = save_weights,
                        .output = run.output,
                        .backend = run.backend,
                        .threads = run.threads};
    double seconds = 0;
    lw_status status = lw_layer_run_files(&job, &seconds, run.temporaries, &run.host, &err);
    if (status == LW_OK && run.verbose) {
        char text[64];
        snprintf(text, sizeof text, "computed in %.6f s", seconds);
        run.host.say(run.host.user, LW_SAY_INFO, text);
    }
    return cli_end(&run, status, &err);
}
