/* main.c - the table of subcommands. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "lanewise/lanewise.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} command;

static const command commands[] = {
    {"version", cmd_version, "print the version"},
};

int cmd_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("lanewise %s\n", lw_version());
    return 0;
}

static void usage(FILE *to)
{
    fprintf(to, "Usage: lanewise SUBCOMMAND [options] INPUT...\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0)
        return cmd_version(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    usage(stderr);
    return 2;
}
