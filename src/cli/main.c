/* main.c - the table of subcommands. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "common/device.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} command;

static const command commands[] = {
    {"align", cmd_align, "align every read with every reference: FASTQ to BAM"},
    {"realign", cmd_realign, "align placed reads again, optimally: BAM to BAM"},
    {"pairs", cmd_pairs, "align the n-th sequence of one file with the n-th of another"},
    {"search", cmd_search, "every query against every sequence of a database"},
    {"makedb", cmd_makedb, "pack a database for search"},
    {"apsp", cmd_apsp, "all-pairs shortest paths of a graph"},
    {"infer", cmd_infer, "run a quantized ONNX model"},
    {"layer", cmd_layer, "run one quantized layer"},
    {"bench", cmd_bench, "verify and time the kernels of this machine"},
    {"devices", cmd_devices, "show devices, backends and what auto would choose"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void usage(FILE *to)
{
    fprintf(to, "Usage: lanewise SUBCOMMAND [options] INPUT...\n\n"
                "Exact alignment, all-pairs shortest paths and int8 inference, on GPUs and on any CPU.\n\n"
                "Subcommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
    fprintf(to, "\n'lanewise SUBCOMMAND --help' explains one; 'lanewise --version' says what this is.\n");
}

static int version(void)
{
    printf("lanewise %s\nhtslib %s\nCUDA code: %s\n", lw_version(), hts_version(), lw_device_compiled());
    return cli_finish_output("--version");
}

static const command *find(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown(const char *word)
{
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = cli_nearest(word, names, N_COMMANDS);
    fprintf(stderr, "lanewise: unknown %s '%s'", *word == '-' ? "option" : "subcommand", word);
    if (nearest)
        fprintf(stderr, "; did you mean '%s'?", nearest);
    fprintf(stderr, "\nTry 'lanewise --help'.\n");
    return CLI_USAGE;
}

/* What htslib would otherwise do behind our backs: print, and fetch CRAM references from the network. */
static void tame_htslib(void)
{
    hts_set_log_level(HTS_LOG_OFF); /* our own messages say more */
    const char *places = getenv("REF_PATH");
    if (!places || !*places || strstr(places, "://"))
        setenv("REF_PATH", "/nonexistent/%s", 1);
}

/* The first files that are opened would get the numbers of standard streams that the caller closed, and
 * messages and results would go into them. What stands in their place refuses to be read or written, as they
 * do. */
static void keep_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(CLI_FAILED); /* there is no one to tell */
}

int main(int argc, char **argv)
{
    keep_standard_streams();
    tame_htslib();
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0)
        return version();
    const command *c = find(word);
    if (c)
        return c->run(argc - 1, argv + 1);
    if (strcmp(word, "-h") != 0 && strcmp(word, "--help") != 0 && strcmp(word, "help") != 0)
        return unknown(word);
    if (argc > 2 && *argv[2] != '-') { /* lanewise help SUBCOMMAND */
        c = find(argv[2]);
        char *arguments[] = {argv[2], "--help", NULL};
        return c ? c->run(2, arguments) : unknown(argv[2]);
    }
    usage(stdout);
    return cli_finish_output("--help");
}
