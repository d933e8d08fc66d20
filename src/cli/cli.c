/* cli.c - options, messages, signals and exit codes of all subcommands. */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/numbers.h"

enum {
    MAX_ROWS = 96,     /* options of one subcommand, shared ones included */
    LONG_BASE = 256,   /* getopt's value of the long option of row i is LONG_BASE + i */
    HELP_COLUMN = 27,  /* where the explanations begin */
    MAX_BACKENDS = 32, /* rows of one domain */
    /* From a signal to a hard stop, which a long launch on a device or a blocked read may need: within a
     * second all is over. */
    GRACE_MICROSECONDS = 600000,
    /* What ends while outputs get their names waits for that, so often: 0.2 s together. */
    WAIT_MICROSECONDS = 20000,
    MOST_WAITS = 10,
    MAX_DEVICE_ORDINAL = 1023
};

/* --- signals ---------------------------------------------------------------------------------------- */

/* What a handler can reach. */
static lw_temporaries temporaries;
static volatile int stop;      /* what the library looks at */
static atomic_int stop_signal; /* the first one that asked the run to stop; 0: none */
static atomic_int waits = MOST_WAITS;

/* The first signal asks the run to stop, which removes its outputs itself; the second one, or an alarm when
 * that takes long, ends the process here. */
static void on_signal(int signal_number)
{
    int reason = errno, none = 0; /* the code that a signal interrupts may be about to look at errno */
    if (signal_number != SIGALRM && atomic_compare_exchange_strong(&stop_signal, &none, signal_number)) {
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = GRACE_MICROSECONDS}}, NULL);
        errno = reason;
        return;
    }
    if (!lw_temporaries_remove(&temporaries) && atomic_fetch_sub(&waits, 1) > 0) {
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = WAIT_MICROSECONDS}}, NULL);
        errno = reason;
        return;
    }
    int asked = atomic_load(&stop_signal);
    _exit(128 + (asked ? asked : signal_number));
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGALRM};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        struct sigaction old;
        /* what the parent ignores stays ignored (nohup, background jobs of a script), but for our own timer
         */
        if (caught[i] != SIGALRM && sigaction(caught[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
            continue;
        sigaction(caught[i], &action, NULL);
    }
    sigset_t timer;
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &timer, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write() ... */
    signal(SIGXFSZ, SIG_IGN); /* ... and so is a file that grows beyond ulimit -f */
}

/* --- messages ----------------------------------------------------------------------------------------- */

static void say(void *user, int level, const char *text)
{
    cli *run = user;
    if (level > LW_SAY_WARNING && run->verbose < level - LW_SAY_WARNING)
        return;
    progress_clear(&run->live);
    fprintf(stderr, "lanewise %s: %s%s\n", run->spec->name, level == LW_SAY_WARNING ? "warning: " : "", text);
}

static void show_progress(void *user, double done, double total, double work)
{
    cli *run = user;
    progress_update(&run->live, done, total, work);
}

int cli_usage_error(cli *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "lanewise %s: ", run->spec->name);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nTry 'lanewise %s --help'.\n", run->spec->name);
    va_end(args);
    free(run->command_line);
    run->command_line = NULL;
    return CLI_USAGE;
}

static int edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    int n = (int)strlen(a), m = (int)strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int gap = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            row[j] = change < gap ? change : gap;
        }
    }
    return row[m];
}

const char *cli_nearest(const char *word, const char *const *names, int n)
{
    int best = 3; /* two slips of the finger */
    const char *nearest = NULL;
    for (int i = 0; i < n; i++) {
        int distance = edit_distance(word, names[i]);
        if (distance < best && distance < (int)strlen(names[i])) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

/* --- the list of options ------------------------------------------------------------------------------ */

typedef struct option_table {
    cli_option row[MAX_ROWS];
    int n, n_own; /* own rows first, then the shared ones */
    /* where the shared rows put what cli_begin() looks at later */
    bool help;
    const char *devices;
} option_table;

static void add_row(option_table *table, cli_option row)
{
    if (table->n < MAX_ROWS)
        table->row[table->n++] = row;
}

static void build_table(option_table *table, cli *run, const cli_option *own)
{
    const cli_spec *spec = run->spec;
    memset(table, 0, sizeof *table);
    for (; own->letter || own->name || own->kind == CLI_HEADING; own++)
        add_row(table, *own);
    table->n_own = table->n;
    if (spec->has_output)
        add_row(table, (cli_option){'o', "output", "FILE", "write here (default '-', standard output)",
                                    CLI_TEXT, &run->output, 0, 0, NULL});
    if (spec->has_backend) {
        add_row(table,
                (cli_option){0, "backend", "NAME",
                             "auto (default), scalar, cpu, cuda, or one of 'list', which explains them",
                             CLI_TEXT, &run->backend, 0, 0, NULL});
        add_row(table, (cli_option){0, "device", "LIST", "CUDA devices to use, such as 0 or 0,1", CLI_TEXT,
                                    &table->devices, 0, 0, NULL});
    }
    if (spec->has_threads)
        add_row(table, (cli_option){'t', "threads", "N", "CPU threads (default: all)", CLI_INT, &run->threads,
                                    1, 4096, NULL});
    if (spec->has_seed)
        add_row(table, (cli_option){0, "seed", "N", "of random numbers (default 1)", CLI_INT64, &run->seed, 0,
                                    9e15, NULL});
    add_row(table, (cli_option){'q', "quiet", NULL, "no progress line", CLI_FLAG, &run->quiet, 0, 0, NULL});
    add_row(table, (cli_option){'v', "verbose", NULL, "say what is done and how fast; twice: more", CLI_COUNT,
                                &run->verbose, 0, 0, NULL});
    add_row(table, (cli_option){0, "progress", NULL, "show progress although standard error is no terminal",
                                CLI_FLAG, &run->progress, 0, 0, NULL});
    add_row(table, (cli_option){'h', "help", NULL, "this text", CLI_FLAG, &table->help, 0, 0, NULL});
}

/* "-A, --match N" */
static int option_text(char *text, size_t size, const cli_option *row)
{
    char letter[8] = "    ";
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c%s", row->letter, row->name ? ", " : "");
    return snprintf(text, size, "  %s%s%s%s%s", letter, row->name ? "--" : "", row->name ? row->name : "",
                    row->argument ? " " : "", row->argument ? row->argument : "");
}

static void print_options(const cli_option *row, int n)
{
    for (int i = 0; i < n; i++) {
        if (row[i].kind == CLI_HEADING) {
            printf("\n%s:\n", row[i].help);
            continue;
        }
        char text[128];
        int width = option_text(text, sizeof text, &row[i]);
        printf("%s", text);
        if (width > HELP_COLUMN - 2) {
            putchar('\n');
            width = 0;
        }
        for (const char *line = row[i].help; line;) {
            int length = (int)strcspn(line, "\n");
            printf("%*s%.*s\n", HELP_COLUMN - width, "", length, line);
            width = 0;
            line = line[length] ? line + length + 1 : NULL;
        }
    }
}

static void print_help(const cli *run, const option_table *table)
{
    printf("Usage: lanewise %s %s\n\n%s", run->spec->name, run->spec->usage, run->spec->about);
    if (table->n_own > 0 && table->row[0].kind != CLI_HEADING)
        printf("\nOptions:\n");
    print_options(table->row, table->n_own);
    printf("\nCommon options:\n");
    print_options(table->row + table->n_own, table->n - table->n_own);
}

/* --- parsing -------------------------------------------------------------------------------------------- */

/* "-A (--match)" */
static void label(char *text, size_t size, const cli_option *row)
{
    if (row->letter && row->name)
        snprintf(text, size, "-%c (--%s)", row->letter, row->name);
    else if (row->letter)
        snprintf(text, size, "-%c", row->letter);
    else
        snprintf(text, size, "--%s", row->name);
}

static lw_status parse_choice(const cli_option *row, const char *what, const char *text, lw_error *err)
{
    char names[512] = "";
    size_t used = 0;
    for (int i = 0; row->choices[i]; i++) {
        if (strcmp(row->choices[i], text) == 0) {
            *(int *)row->value = i;
            return LW_OK;
        }
        if (used < sizeof names)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", row->choices[i]);
    }
    return lw_fail(err, LW_E_ARG, "%s: '%.100s' is not one of %s", what, text, names);
}

static lw_status set_value(const cli_option *row, const char *text, lw_error *err)
{
    char what[80];
    label(what, sizeof what, row);
    /* a real number's limits may lie beyond int64_t */
    bool whole = row->kind == CLI_INT || row->kind == CLI_INT64 || row->kind == CLI_LIST;
    int64_t low = whole ? (int64_t)row->low : 0, high = whole ? (int64_t)row->high : 0, number = 0;
    lw_status status = LW_OK;
    switch (row->kind) {
    case CLI_FLAG:
        *(bool *)row->value = true;
        break;
    case CLI_COUNT:
        ++*(int *)row->value;
        break;
    case CLI_TEXT:
        *(const char **)row->value = text;
        break;
    case CLI_TEXTS: {
        cli_texts *list = row->value;
        if (list->n == CLI_MAX_TEXTS)
            status = lw_fail(err, LW_E_ARG, "%s: given more than %d times", what, CLI_MAX_TEXTS);
        else
            list->value[list->n++] = text;
        break;
    }
    case CLI_INT:
        status = lw_parse_int(text, what, low, high, &number, err);
        if (status == LW_OK)
            *(int *)row->value = (int)number;
        break;
    case CLI_INT64:
        status = lw_parse_int(text, what, low, high, row->value, err);
        break;
    case CLI_DOUBLE:
        status = lw_parse_double(text, what, row->low, row->high, row->value, err);
        break;
    case CLI_SIZE: /* 0 stands for "not given" */
        status = lw_parse_size(text, what, &number, err);
        if (status == LW_OK && number == 0)
            status = lw_fail(err, LW_E_ARG, "%s: 0 is too little", what);
        if (status == LW_OK)
            *(int64_t *)row->value = number;
        break;
    case CLI_CHOICE:
        status = parse_choice(row, what, text, err);
        break;
    case CLI_LIST: {
        cli_list *list = row->value;
        status = lw_parse_int_list(text, what, low, high, list->value, CLI_MAX_LIST, &list->n, err);
        break;
    }
    case CLI_HEADING:
        break;
    }
    return status;
}

static const cli_option *row_of(const option_table *table, int value)
{
    if (value >= LONG_BASE)
        return &table->row[value - LONG_BASE];
    for (int i = 0; i < table->n; i++)
        if (table->row[i].letter == value)
            return &table->row[i];
    return NULL;
}

/* Whether the word, found where a value belongs, is one of the options: then the value was forgotten. -2 may
 * be a number. */
static bool is_option(const option_table *table, const char *word)
{
    if (word[0] == '-' && isalpha((unsigned char)word[1]) && word[2] == '\0')
        return row_of(table, word[1]) != NULL;
    for (int i = 0; word[0] == '-' && word[1] == '-' && i < table->n; i++) {
        const char *name = table->row[i].name;
        if (name && strncmp(word + 2, name, strlen(name)) == 0 && strchr("=", word[2 + strlen(name)]))
            return true;
    }
    return false;
}

static int unknown_option(cli *run, const option_table *table, const char *word)
{
    const char *names[MAX_ROWS];
    int n = 0;
    for (int i = 0; i < table->n; i++)
        if (table->row[i].name)
            names[n++] = table->row[i].name;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *nearest = cli_nearest(name, names, n);
    if (nearest)
        return cli_usage_error(run, "unknown option '--%s'; did you mean '--%s'?", name, nearest);
    return cli_usage_error(run, "unknown option '--%s'", name);
}

/* Of two files for one purpose the first would be ignored in silence. */
static bool names_one_file(const cli_option *row)
{
    return row->kind == CLI_TEXT && row->argument && strcmp(row->argument, "FILE") == 0;
}

/* Reads all options; CLI_GO_ON or the exit code. The inputs are then argv[optind ..]. */
static int parse(cli *run, int argc, char **argv, const option_table *table)
{
    struct option longs[MAX_ROWS + 1];
    char letters[2 * MAX_ROWS + 2] = ":";
    bool given[MAX_ROWS] = {false};
    int n_longs = 0, n_letters = 1;
    for (int i = 0; i < table->n; i++) {
        const cli_option *row = &table->row[i];
        if (row->letter) {
            letters[n_letters++] = row->letter;
            if (row->argument)
                letters[n_letters++] = ':';
        }
        if (row->name)
            longs[n_longs++] = (struct option){row->name, row->argument ? required_argument : no_argument,
                                               NULL, LONG_BASE + i};
    }
    letters[n_letters] = '\0';
    longs[n_longs] = (struct option){NULL, 0, NULL, 0};
    opterr = 0;
    optind = 0; /* glibc: begin anew */
    for (int value; (value = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        const cli_option *row;
        char what[80];
        lw_error err = {0};
        switch (value) {
        case ':':
            row = row_of(table, optopt);
            label(what, sizeof what, row);
            return cli_usage_error(run, "%s needs a value (%s)", what, row->argument);
        case '?':
            if (optopt >= LONG_BASE)
                return cli_usage_error(run, "--%s takes no value", row_of(table, optopt)->name);
            if (optopt)
                return cli_usage_error(run, "unknown option '-%c'", optopt);
            return unknown_option(run, table, argv[optind - 1]);
        default:
            row = row_of(table, value);
            if (row->argument && optarg == argv[optind - 1] && is_option(table, optarg)) {
                label(what, sizeof what, row);
                return cli_usage_error(run, "%s needs a value (%s), and %s is an option", what, row->argument,
                                       optarg);
            }
            if (given[row - table->row] && names_one_file(row)) {
                label(what, sizeof what, row);
                return cli_usage_error(run, "%s is given twice; it takes one file", what);
            }
            given[row - table->row] = true;
            if (set_value(row, optarg, &err) != LW_OK)
                return cli_usage_error(run, "%s", err.message);
        }
    }
    return CLI_GO_ON;
}

static int parse_devices(cli *run, const char *text)
{
    lw_error err = {0};
    int64_t value[CLI_MAX_DEVICES];
    if (lw_parse_int_list(text, "--device", 0, MAX_DEVICE_ORDINAL, value, CLI_MAX_DEVICES, &run->n_devices,
                          &err) != LW_OK)
        return cli_usage_error(run, "%s", err.message);
    for (int i = 0; i < run->n_devices; i++) {
        for (int j = 0; j < i; j++)
            if (value[i] == value[j])
                return cli_usage_error(run, "--device: %d stands twice in '%s'", (int)value[i], text);
        run->devices[i] = (int)value[i];
    }
    if (strcmp(run->backend, "auto") == 0)
        run->backend = "cuda"; /* a named device is a wish for CUDA, never the CPU in silence */
    return cli_about_gpus(run, "--device");
}

void cli_print_backends(int (*list)(int device, lw_backend_info *out, int capacity), int device)
{
    lw_backend_info *info = calloc(MAX_BACKENDS, sizeof *info);
    int n = info ? list(device, info, MAX_BACKENDS) : 0;
    for (int i = 0; i < n && i < MAX_BACKENDS; i++) {
        printf("  %-12s %s\n", info[i].name, info[i].what);
        if (info[i].usable)
            printf("  %-12s usable%s\n", "", info[i].automatic ? "; auto chooses this one" : "");
        else
            printf("  %-12s not usable: %s\n", "", info[i].reason);
    }
    free(info);
}

/* Closes standard output; the reason when what was written did not all arrive. */
static bool close_output(lw_error *err)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    failed |= fflush(stdout) != 0;
    int reason = errno;
    /* closed by the caller (>&-) and nothing written: no one misses anything */
    if (fclose(stdout) != 0 && errno != EBADF) {
        failed = true;
        reason = errno;
    }
    if (failed && err->status == LW_OK) {
        err->status = LW_E_IO;
        snprintf(err->message, sizeof err->message, "standard output: writing failed: %s",
                 reason ? strerror(reason) : "the disk may be full");
    }
    return !failed;
}

int cli_finish_output(const char *command)
{
    lw_error err = {0};
    if (close_output(&err))
        return CLI_DONE;
    fprintf(stderr, "lanewise %s: %s\n", command, err.message);
    return CLI_FAILED;
}

static char *join(int argc, char **argv)
{
    size_t size = sizeof "lanewise";
    for (int i = 0; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char *text = malloc(size);
    if (!text)
        return NULL;
    char *p = stpcpy(text, "lanewise");
    for (int i = 0; i < argc; i++) {
        *p++ = ' ';
        p = stpcpy(p, argv[i]);
    }
    for (p = text; *p; p++) /* it becomes a field of a header line */
        if (*p == '\t' || *p == '\n' || *p == '\r')
            *p = ' ';
    return text;
}

static bool same_regular(const struct stat *a, const struct stat *b)
{
    return S_ISREG(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether both names lead to one regular file. */
static bool same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && same_regular(&one, &other);
}

bool cli_same_file(const char *a, const char *b)
{
    if (strcmp(a, b) == 0 || same_file(a, b))
        return true;
    if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0)
        return false;
    const char *slash[] = {strrchr(a, '/'), strrchr(b, '/')}, *whole[] = {a, b}, *last[2];
    struct stat folder[2];
    for (int i = 0; i < 2; i++) {
        char name[PATH_MAX];
        int n = slash[i] ? snprintf(name, sizeof name, "%.*s/", (int)(slash[i] - whole[i]), whole[i])
                         : snprintf(name, sizeof name, ".");
        if (n >= (int)sizeof name || stat(name, &folder[i]) != 0)
            return false;
        last[i] = slash[i] ? slash[i] + 1 : whole[i];
    }
    return strcmp(last[0], last[1]) == 0 && folder[0].st_dev == folder[1].st_dev &&
           folder[0].st_ino == folder[1].st_ino;
}

/* Looks at an input's file. Whether there is one. */
static bool look(const char *path, struct stat *out)
{
    return (strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, out) : stat(path, out)) == 0;
}

/* Whether both inputs lead to one pipe, of which each would read a part: '-' and /dev/stdin. */
static bool same_pipe(const char *a, const char *b)
{
    struct stat one, other;
    return look(a, &one) && look(b, &other) && (S_ISFIFO(one.st_mode) || S_ISSOCK(one.st_mode)) &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

int cli_also_reads(cli *run, const char *path)
{
    if (!*path)
        return cli_usage_error(run, "the name of an input is empty");
    bool from_stdin = strcmp(path, "-") == 0, to_stdout = strcmp(run->output, "-") == 0;
    if (from_stdin && run->reads_stdin)
        return cli_usage_error(run, "standard input ('-') is given twice; it can be read once");
    run->reads_stdin = run->reads_stdin || from_stdin;
    for (int i = 0; i < run->n_inputs && run->inputs[i] != path; i++)
        if (same_pipe(run->inputs[i], path))
            return cli_usage_error(run, "%s and %s are one pipe; it can be read once", run->inputs[i], path);
    struct stat in, out;
    if (!run->spec->has_output || !look(path, &in) ||
        (to_stdout ? fstat(STDOUT_FILENO, &out) : stat(run->output, &out)) != 0 || !same_regular(&in, &out))
        return CLI_GO_ON;
    if (to_stdout)
        return cli_usage_error(run, "standard output is a file that is read, %s: give another name",
                               from_stdin ? "standard input" : path);
    return cli_usage_error(run, "-o %s would replace an input: give another name", run->output);
}

int cli_also_writes(cli *run, const char *path, const char *const *reads, int n)
{
    bool replaces = false;
    for (int i = 0; i < run->n_inputs; i++)
        replaces = replaces || same_file(run->inputs[i], path);
    for (int i = 0; i < n; i++)
        replaces = replaces || (reads[i] && same_file(reads[i], path));
    if (replaces)
        return cli_usage_error(run, "%s, which is written too, would replace an input: give another name",
                               path);
    if (cli_same_file(run->output, path))
        return cli_usage_error(run, "%s cannot be two outputs", path);
    return CLI_GO_ON;
}

int cli_about_gpus(cli *run, const char *option)
{
    if (strcmp(run->backend, "scalar") == 0 || strcmp(run->backend, "cpu") == 0)
        return cli_usage_error(run, "%s has no meaning with --backend %s", option, run->backend);
    return CLI_GO_ON;
}

int cli_writes_binary(cli *run, const char *format)
{
    if (strcmp(run->output, "-") == 0 && isatty(STDOUT_FILENO))
        return cli_usage_error(run, "%s is binary and standard output is a terminal: name a file with -o",
                               format);
    return CLI_GO_ON;
}

int cli_writes_text(cli *run, const char *instead)
{
    static const char *const packed[] = {".gz", ".bgz", ".bz2", ".xz", ".zst", ".zip"};
    const char *dot = strrchr(run->output, '.');
    for (size_t i = 0; dot && i < sizeof packed / sizeof *packed; i++)
        if (strcasecmp(dot, packed[i]) == 0)
            return cli_usage_error(run, "-o %s: text is written uncompressed: %s'-o - | gzip > %s'",
                                   run->output, instead, run->output);
    return CLI_GO_ON;
}

int cli_names_tensor(cli *run, const char *path)
{
    static const char *const texts[] = {".tsv", ".csv", ".txt", ".json", ".npz"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof texts / sizeof *texts; i++)
        if (strcasecmp(dot, texts[i]) == 0)
            return cli_usage_error(run, "tensors are written as .npy: %s names another format", path);
    return CLI_GO_ON;
}

int cli_begin(cli *run, int argc, char **argv, const cli_spec *spec, const cli_option *options)
{
    memset(run, 0, sizeof *run);
    run->spec = spec;
    run->backend = "auto";
    run->output = "-";
    run->seed = 1;
    run->started = progress_now();
    run->temporaries = &temporaries;
    run->command_line = join(argc, argv); /* before getopt sorts argv */
    if (!run->command_line) {
        fprintf(stderr, "lanewise %s: out of memory\n", spec->name);
        return CLI_FAILED;
    }
    catch_signals();
    option_table table;
    build_table(&table, run, options);
    int code = parse(run, argc, argv, &table);
    if (code != CLI_GO_ON)
        return code;
    if (table.help) {
        print_help(run, &table);
        free(run->command_line);
        return cli_finish_output(spec->name);
    }
    if (table.devices && (code = parse_devices(run, table.devices)) != CLI_GO_ON)
        return code;
    if (spec->backend_list && strcmp(run->backend, "list") == 0) {
        cli_print_backends(spec->backend_list, run->n_devices > 0 ? run->devices[0] : 0);
        free(run->command_line);
        return cli_finish_output(spec->name);
    }
    run->n_inputs = argc - optind;
    run->inputs = (const char *const *)(argv + optind);
    if (run->n_inputs < spec->min_inputs)
        return cli_usage_error(
            run, run->n_inputs == 0 ? "no input: expected %s" : "too few inputs: expected %s", spec->usage);
    if (spec->max_inputs >= 0 && run->n_inputs > spec->max_inputs)
        return cli_usage_error(run, "unexpected argument '%s': expected %s", run->inputs[spec->max_inputs],
                               spec->usage);
    for (int i = 0; i < run->n_inputs; i++)
        if ((code = cli_also_reads(run, run->inputs[i])) != CLI_GO_ON)
            return code;
    run->host = (lw_host){.user = run, .say = say, .progress = show_progress, .stop = &stop};
    progress_begin(&run->live, stderr, run->progress, run->quiet, spec->item ? spec->item : "items",
                   spec->work_unit);
    return CLI_GO_ON;
}

/* The last line at -v. */
static void report(const cli *run)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double wall = progress_now() - run->started;
    double cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    double work = run->work > 0 ? run->work : run->live.work;
    char rate[64] = "";
    if (work > 0 && run->spec->work_unit)
        progress_rate(rate, sizeof rate, work, wall, run->spec->work_unit);
    else if (run->live.done > 0)
        progress_rate(rate, sizeof rate, run->live.done, wall, run->spec->item);
    fprintf(stderr, "lanewise %s %s:", lw_version(), run->spec->name);
    if (*run->used_backend)
        fprintf(stderr, " backend %s,", run->used_backend);
    if (*run->used_device)
        fprintf(stderr, " device %s,", run->used_device);
    fprintf(stderr, " wall %.2f s, CPU %.2f s, peak memory %.0f MB%s%s\n", wall, cpu,
            (double)usage.ru_maxrss * 1024 / 1e6, *rate ? ", " : "", rate);
}

int cli_end(cli *run, lw_status status, lw_error *err)
{
    lw_error own = {0};
    if (!err)
        err = &own;
    progress_end(&run->live);
    if (!close_output(status == LW_OK ? err : &own) && status == LW_OK)
        status = LW_E_IO;
    int code = status == LW_OK ? CLI_DONE : status == LW_E_ARG ? CLI_USAGE : CLI_FAILED;
    /* a signal also breaks off what waits in a system call, which then fails */
    int asked = atomic_load(&stop_signal);
    if (status != LW_OK && asked)
        code = 128 + asked;
    if (status != LW_OK)
        say(run, LW_SAY_ERROR, *err->message ? err->message : lw_status_name(status));
    if (code == CLI_USAGE)
        fprintf(stderr, "Try 'lanewise %s --help'.\n", run->spec->name);
    if (run->verbose > 0)
        report(run);
    free(run->command_line);
    run->command_line = NULL;
    return code;
}
