/* cmd_devices.c - lanewise devices: what is here, what is compiled in, what auto would choose. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <htslib/hts.h>

#include "common/device.h"
#include "common/fingerprint.h"
#include "common/numerics.h"
#include "common/pool.h"

typedef struct domain {
    const char *name;
    const char *what;
    int (*list)(int device, lw_backend_info *out, int capacity);
} domain;

static const domain domains[] = {
    {"align", "alignment (align, realign, pairs)", lw_align_backend_list},
    {"search", "database search (search)", lw_search_backend_list},
    {"paths", "shortest paths (apsp)", lw_paths_backend_list},
    {"infer", "int8 models (infer)", lw_infer_backend_list},
};
enum { N_DOMAINS = sizeof domains / sizeof *domains, MAX_ROWS = 32 };

static const cli_spec spec = {
    .name = "devices",
    .usage = "[--json]",
    .about = "Shows the CUDA devices of this machine, what this binary was compiled for, each backend "
             "(usable or not,\n"
             "and why not), and a fingerprint of how this build rounds floating point.\n",
};

static void print_text(void)
{
    int driver, runtime, n;
    lw_error reason = {0};
    lw_device_versions(&driver, &runtime);
    n = lw_device_count(&reason);
    printf("lanewise %s\n", lw_version());
    printf("CUDA code for: %s\n", lw_device_compiled());
    if (runtime)
        printf("CUDA runtime: %d.%d\n", runtime / 1000, runtime % 1000 / 10);
    if (driver)
        printf("CUDA driver: up to %d.%d\n", driver / 1000, driver % 1000 / 10);
    printf("CPU threads: %d\n", lw_pool_default_threads());
    printf("numeric fingerprint: %016llx\n", (unsigned long long)lw_numeric_fingerprint());
    if (n == 0)
        printf("devices: none: %s\n", reason.message);
    for (int i = 0; i < n; i++) {
        lw_device d;
        lw_error err = {0};
        lw_status status = lw_device_query(i, &d, &err);
        printf("device %d: %s, compute capability %d.%d, %d multiprocessors, %.1f GB\n", i, d.name, d.major,
               d.minor, d.multiprocessors, (double)d.memory_bytes / 1e9);
        lw_numerics numerics;
        if (status == LW_OK)
            status = lw_device_numerics(i, &numerics, &err);
        if (status == LW_OK) {
            char text[128];
            lw_numerics_text(&numerics, text, sizeof text);
            printf("  this build's device code, float32: %s\n", text);
        } else
            printf("  not usable: %s\n", err.message);
    }
    for (int i = 0; i < N_DOMAINS; i++) {
        printf("\nbackends of %s:\n", domains[i].what);
        cli_print_backends(domains[i].list, 0);
    }
}

/* A JSON string. */
static void put_string(const char *text)
{
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < ' ')
            printf("\\u%04x", *p);
        else
            putchar(*p);
    putchar('"');
}

static void put_field(const char *name, const char *value, const char *after)
{
    put_string(name);
    printf(": ");
    put_string(value);
    printf("%s", after);
}

static void put_version(const char *name, int version)
{
    if (version)
        printf("\"%s\": \"%d.%d\", ", name, version / 1000, version % 1000 / 10);
    else
        printf("\"%s\": null, ", name);
}

static void print_device(int ordinal)
{
    lw_device d;
    lw_error err = {0};
    lw_status status = lw_device_query(ordinal, &d, &err);
    lw_numerics numerics;
    char text[128] = "";
    if (status == LW_OK)
        status = lw_device_numerics(ordinal, &numerics, &err);
    if (status == LW_OK)
        lw_numerics_text(&numerics, text, sizeof text);
    printf("    {\"ordinal\": %d, ", ordinal);
    put_field("name", d.name, ", ");
    printf("\"compute_capability\": \"%d.%d\", \"multiprocessors\": %d, \"clock_khz\": %d, \"memory_bytes\": "
           "%lld, "
           "\"l2_bytes\": %lld, \"shared_bytes_per_block\": %lld, \"usable\": %s, ",
           d.major, d.minor, d.multiprocessors, d.clock_khz, (long long)d.memory_bytes, (long long)d.l2_bytes,
           (long long)d.shared_bytes, status == LW_OK ? "true" : "false");
    put_field("numerics", text, ", ");
    put_field("reason", status == LW_OK ? "" : err.message, "}");
}

static void print_domain(const domain *d)
{
    lw_backend_info *info = calloc(MAX_ROWS, sizeof *info);
    int n = info ? d->list(0, info, MAX_ROWS) : 0;
    printf("    \"%s\": [\n", d->name);
    for (int i = 0; i < n && i < MAX_ROWS; i++) {
        printf("      {");
        put_field("name", info[i].name, ", ");
        put_field("what", info[i].what, ", ");
        printf("\"usable\": %s, \"auto\": %s, ", info[i].usable ? "true" : "false",
               info[i].automatic ? "true" : "false");
        put_field("reason", info[i].reason, i + 1 < n ? "},\n" : "}\n");
    }
    printf("    ]");
    free(info);
}

static void print_json(void)
{
    int driver, runtime;
    lw_error reason = {0};
    lw_device_versions(&driver, &runtime);
    int n = lw_device_count(&reason);
    printf("{\n  ");
    put_field("version", lw_version(), ",\n  ");
    put_field("htslib", hts_version(), ",\n  \"cuda\": {");
    put_version("runtime", runtime);
    put_version("driver", driver);
    put_field("compiled_for", lw_device_compiled(), "},\n");
    printf("  \"cpu_threads\": %d,\n  \"numeric_fingerprint\": \"%016llx\",\n", lw_pool_default_threads(),
           (unsigned long long)lw_numeric_fingerprint());
    printf("  \"devices\": [");
    for (int i = 0; i < n; i++) {
        printf("%s\n", i ? "," : "");
        print_device(i);
    }
    printf("%s],\n  ", n ? "\n  " : "");
    put_field("no_device_reason", n ? "" : reason.message, ",\n  \"backends\": {\n");
    for (int i = 0; i < N_DOMAINS; i++) {
        print_domain(&domains[i]);
        printf("%s", i + 1 < N_DOMAINS ? ",\n" : "\n");
    }
    printf("  }\n}\n");
}

int cmd_devices(int argc, char **argv)
{
    bool json = false;
    const cli_option options[] = {{0, "json", NULL, "as JSON", CLI_FLAG, &json, 0, 0, NULL}, CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, options);
    if (code != CLI_GO_ON)
        return code;
    if (json)
        print_json();
    else
        print_text();
    return cli_end(&run, LW_OK, NULL);
}
