/* fuzz_options.c - the command line: one option of every kind, the arguments from the input's lines. */
#include "fuzz/fuzz.h"

#include "cli/cli.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const choices[] = {"local", "global", "semiglobal", NULL};
    static const cli_spec spec = {.name = "fuzz",
                                  .usage = "A... [options]",
                                  .about = "A command of every kind of option.\n",
                                  .min_inputs = 1,
                                  .max_inputs = 3,
                                  .has_output = true,
                                  .has_backend = true,
                                  .has_threads = true,
                                  .has_seed = true,
                                  .item = "items"};
    char *argv[66] = {0};
    int argc = 0;
    char *text = malloc(size + 1);
    FUZZ_REQUIRE(text, "memory");
    memcpy(text, data, size);
    text[size] = 0;
    argv[argc++] = (char *)"fuzz";
    for (char *p = text, *end = text + size; p <= end && argc < 65; p += strlen(p) + 1) {
        char *newline = memchr(p, '\n', (size_t)(end - p));
        if (newline)
            *newline = 0;
        argv[argc++] = p;
    }
    bool flag = false;
    int number = 0, choice = 0, count = 0;
    int64_t large = 0, bytes = 0;
    double real = 0;
    const char *word = NULL;
    cli_texts texts = {0};
    cli_list list = {0};
    const cli_option rows[] = {{'f', "flag", NULL, "a flag", CLI_FLAG, &flag, 0, 0, NULL},
                               {'c', "count", NULL, "a count", CLI_COUNT, &count, 0, 0, NULL},
                               {'w', "word", "TEXT", "a text", CLI_TEXT, &word, 0, 0, NULL},
                               {0, "words", "TEXT", "texts", CLI_TEXTS, &texts, 0, 0, NULL},
                               {'A', "number", "N", "a number", CLI_INT, &number, -5, 32767, NULL},
                               {0, "large", "N", "a large number", CLI_INT64, &large, 0, 1e15, NULL},
                               {0, "real", "X", "a real number", CLI_DOUBLE, &real, 0, 1e300, NULL},
                               {0, "bytes", "SIZE", "a size", CLI_SIZE, &bytes, 1, 1e18, NULL},
                               {'m', "mode", "MODE", "a choice", CLI_CHOICE, &choice, 0, 0, choices},
                               {0, "list", "N,...", "a list", CLI_LIST, &list, 0, 100, NULL},
                               CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code == CLI_GO_ON) {
        FUZZ_REQUIRE(run.n_inputs >= 1 && run.n_inputs <= 3, "%d inputs", run.n_inputs);
        FUZZ_REQUIRE(number >= -5 && number <= 32767 && large >= 0 && real >= 0 && bytes >= 0, "range");
        FUZZ_REQUIRE(choice >= 0 && choice < 3 && list.n >= 0 && list.n <= CLI_MAX_LIST, "choice");
        lw_error err = {0};
        cli_end(&run, LW_OK, &err);
    } else {
        FUZZ_REQUIRE(code == CLI_DONE || code == CLI_USAGE || code == CLI_FAILED, "exit code %d", code);
    }
    free(text);
    return 0;
}
