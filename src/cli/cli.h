/* cli.h - what the subcommands of the program share.
 *
 * A subcommand is a function in cmd_NAME.c, a line of commands.h and a row of the table in main.c:
 *
 *     int cmd_align(int argc, char **argv)
 *     {
 *         int match = 1;
 *         const cli_option rows[] = {
 *             {'A', "match", "N", "score of equal letters (default 1)", CLI_INT, &match, 0, 32767, NULL},
 *             {0, "eqx", NULL, "write = and X in place of M", CLI_FLAG, &eqx, 0, 0, NULL},
 *             CLI_END};
 *         cli run;
 *         int code = cli_begin(&run, argc, argv, &spec, rows);
 *         if (code != CLI_GO_ON)
 *             return code;
 *         lw_error err = {0};
 *         lw_status status = ...(&run.host, run.inputs, run.n_inputs, &err);
 *         return cli_end(&run, status, &err);
 *     } */
#ifndef LW_CLI_H
#define LW_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/lanewise.h"
#include "cli/progress.h"
#include "common/outfile.h"

enum { CLI_GO_ON = -1, CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };
enum { CLI_MAX_DEVICES = 16, CLI_MAX_LIST = 16, CLI_MAX_TEXTS = 64 };

typedef enum cli_kind {
    CLI_FLAG,   /* bool *: set to true */
    CLI_COUNT,  /* int *: one more each time */
    CLI_TEXT,   /* const char **; a second FILE is an error, of other texts the last one counts */
    CLI_TEXTS,  /* cli_texts *: one more each time, at most CLI_MAX_TEXTS */
    CLI_INT,    /* int *, within low .. high */
    CLI_INT64,  /* int64_t *, within low .. high */
    CLI_DOUBLE, /* double *, within low .. high */
    CLI_SIZE,   /* int64_t *: bytes from 1 on, with K, M, G or T */
    CLI_CHOICE, /* int *: index into choices */
    CLI_LIST,   /* cli_list *: 1 to CLI_MAX_LIST comma-separated integers within low .. high */
    CLI_HEADING /* no option: `help` is a heading in the list of options */
} cli_kind;

typedef struct cli_list {
    int n;
    int64_t value[CLI_MAX_LIST];
} cli_list;

typedef struct cli_texts {
    int n;
    const char *value[CLI_MAX_TEXTS];
} cli_texts;

typedef struct cli_option {
    char letter;          /* 0: has only a long name */
    const char *name;     /* long name; NULL: has only a letter */
    const char *argument; /* how help shows it ("FILE"); NULL: takes none */
    const char *help;     /* may hold newlines */
    cli_kind kind;
    void *value;
    double low, high;
    const char *const *choices; /* NULL-terminated, for CLI_CHOICE */
} cli_option;

/* The row that ends a list of options. */
#define CLI_END                                                                                              \
    {                                                                                                        \
        0, NULL, NULL, NULL, CLI_FLAG, NULL, 0, 0, NULL                                                      \
    }

typedef struct cli_spec {
    const char *name;           /* of the subcommand */
    const char *usage;          /* "REF READS... [options]" */
    const char *about;          /* paragraph under it; ends with a newline */
    int min_inputs, max_inputs; /* max_inputs < 0: any number */
    bool has_output;            /* takes -o */
    bool has_backend;           /* takes --backend and --device */
    bool has_threads;           /* takes -t */
    bool has_seed;              /* takes --seed */
    int (*backend_list)(int device, lw_backend_info *out, int capacity); /* for --backend list */
    const char *work_unit; /* of lw_host.progress's work: "cells" (shown as GCUPS), "relaxations",
                              "operations"; NULL: items only */
    const char *item;      /* "reads"; what done and total count */
} cli_spec;

/* One run of a subcommand. Filled by cli_begin(); lives until cli_end(). */
typedef struct cli {
    const cli_spec *spec;
    int n_inputs;
    const char *const *inputs; /* the arguments that are not options, in order */
    /* shared options */
    const char *backend; /* "auto" unless given */
    int n_devices;       /* 0: not given */
    int devices[CLI_MAX_DEVICES];
    int threads; /* 0: all CPUs */
    int64_t seed;
    const char *output; /* "-" unless given */
    bool quiet, progress;
    bool reads_stdin; /* '-' is among the inputs */
    int verbose;
    lw_host host;                /* say, progress and stop of this run */
    lw_temporaries *temporaries; /* for lw_outfile_open() */
    /* for the last line at -v; filled by the subcommand (may stay empty) */
    char used_backend[64], used_device[256];
    double work;    /* cells, relaxations ... done; taken from the progress calls if left 0 */
    double started; /* seconds, monotonic */
    struct progress live;
    char *command_line; /* argv joined with blanks, for @PG */
} cli;

/* Reads the options. CLI_GO_ON, or the exit code after --help (printed to standard output) or after a usage
 * error (said on standard error, with a hint). Installs the handlers of SIGINT and SIGTERM. */
int cli_begin(cli *run, int argc, char **argv, const cli_spec *spec, const cli_option *options);

/* For each file that an option names as an input (cli_begin() does it for `inputs`): CLI_GO_ON, or the exit
 * code where it is standard input a second time or the file of -o. */
int cli_also_reads(cli *run, const char *path);

/* For each file that is written besides that of -o: CLI_GO_ON, or the exit code where it is an input, one of
 * the n files `reads` (which may hold NULL) or the file of -o. */
int cli_also_writes(cli *run, const char *path, const char *const *reads, int n);

/* Whether both names lead to one file, which need not exist yet: y.npy and ./y.npy. */
bool cli_same_file(const char *a, const char *b);

/* CLI_GO_ON, or the exit code where `option`, which is about GPUs, stands beside --backend scalar or cpu. */
int cli_about_gpus(cli *run, const char *option);

/* CLI_GO_ON, or the exit code where a binary format would go to a terminal. */
int cli_writes_binary(cli *run, const char *format);

/* CLI_GO_ON, or the exit code of a usage error where the output is text and its name that of a packed file.
 * `instead`: what else to do, such as "write .bam, or ". */
int cli_writes_text(cli *run, const char *instead);

/* CLI_GO_ON, or the exit code of a usage error where `path` promises a text that is not written: tensors are
 * .npy. */
int cli_names_tensor(cli *run, const char *path);

/* A usage error found by the subcommand itself: says it with the hint and returns CLI_USAGE. */
int cli_usage_error(cli *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the run: closes standard output with a check, shows the error (status != LW_OK), the last line at -v,
 * and returns the exit code: 0, 1, 130 or 143 when a signal came; an LW_E_ARG failure is a usage error (2).
 */
int cli_end(cli *run, lw_status status, lw_error *err);

/* For what runs without cli_begin(): closes standard output with a check; CLI_DONE, or CLI_FAILED with a
 * message. */
int cli_finish_output(const char *command);

/* The name nearest to a mistyped word, NULL if none is near. */
const char *cli_nearest(const char *word, const char *const *names, int n);

/* What --backend list prints: each row, usable or not and why, and the choice of auto. */
void cli_print_backends(int (*list)(int device, lw_backend_info *out, int capacity), int device);

#endif
