/* program.h - runs the real program through the shell, in a folder of the test's own. */
#ifndef LW_TEST_PROGRAM_H
#define LW_TEST_PROGRAM_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct outcome {
    int code;        /* exit code; 128 + signal */
    char *out, *err; /* what it wrote; never freed: tests are short */
} outcome;

static char program_folder[64];

static inline void program_clean(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", program_folder);
    if (*program_folder && system(command) != 0)
        fprintf(stderr, "%s could not be removed\n", program_folder);
}

/* The folder in which commands run. */
static inline const char *program_dir(void)
{
    if (!*program_folder) {
        strcpy(program_folder, "/tmp/lw-cli-XXXXXX");
        cr_assert(mkdtemp(program_folder));
        atexit(program_clean);
    }
    return program_folder;
}

static inline char *program_slurp(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", program_dir(), name);
    FILE *file = fopen(path, "rb");
    cr_assert(file, "%s is missing", path);
    size_t used = 0, capacity = 1 << 16, got;
    char *text = malloc(capacity + 1);
    while ((got = fread(text + used, 1, capacity - used, file)) > 0)
        if ((used += got) == capacity)
            text = realloc(text, (capacity *= 2) + 1);
    fclose(file);
    text[used] = '\0';
    return text;
}

static inline void program_put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", program_dir(), name);
    FILE *file = fopen(path, "wb");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline bool program_exists(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", program_dir(), name);
    return access(path, F_OK) == 0;
}

/* Runs a shell command there; $LW is the program. */
static inline outcome sh(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline outcome sh(const char *format, ...)
{
    char command[8192];
    int n = snprintf(command, sizeof command, "cd '%s' && export LW='%s' && { ", program_dir(), LW_PROGRAM);
    va_list args;
    va_start(args, format);
    n += vsnprintf(command + n, sizeof command - (size_t)n, format, args);
    va_end(args);
    cr_assert(n + 40 < (int)sizeof command);
    strcpy(command + n, "\n} >.out 2>.err");
    int status = system(command);
    outcome o = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
    o.out = program_slurp(".out");
    o.err = program_slurp(".err");
    return o;
}

/* The same, and it must succeed. */
#define sh_ok(...)                                                                                           \
    __extension__({                                                                                          \
        outcome sh_ok_outcome_ = sh(__VA_ARGS__);                                                            \
        cr_assert_eq(sh_ok_outcome_.code, 0, "exit code %d: %s", sh_ok_outcome_.code, sh_ok_outcome_.err);   \
        sh_ok_outcome_.out;                                                                                  \
    })

/* Skips, loudly, where a program that judges the output is not installed. */
static inline void need(const char *program)
{
    if (sh("command -v %s", program).code != 0)
        cr_skip_test("%s is not installed", program);
}

static inline int count_lines(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* The k-th tab-separated field of a line, in one of a few buffers. */
static inline const char *field(const char *line, int k)
{
    static char buffers[8][1 << 17];
    static int next;
    char *buffer = buffers[next++ % 8];
    for (; k > 0 && line; k--) {
        line = strpbrk(line, "\t\n");
        line = line && *line == '\t' ? line + 1 : NULL;
    }
    cr_assert(line);
    size_t n = strcspn(line, "\t\n");
    cr_assert(n < sizeof buffers[0]);
    memcpy(buffer, line, n);
    buffer[n] = '\0';
    return buffer;
}

/* The n-th line that does not begin with '#' or '@'. */
static inline const char *record(const char *text, int n)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (*line != '#' && *line != '@' && n-- == 0)
            return line;
    cr_assert_fail("there is no such record in: %s", text);
    return NULL;
}

static inline uint32_t random_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline void random_letters(char *out, int n, const char *alphabet, uint64_t *state)
{
    for (int i = 0; i < n; i++)
        out[i] = alphabet[random_number(state) % strlen(alphabet)];
    out[n] = '\0';
}

static inline void reverse_complement(char *text, int n)
{
    static const char *const pair = "ATCGNNRYKMBVDH";
    for (int i = 0, j = n - 1; i <= j; i++, j--) {
        char a = text[i], b = text[j];
        const char *pa = strchr(pair, a), *pb = strchr(pair, b);
        text[i] = pb ? pair[(pb - pair) ^ 1] : b;
        text[j] = pa ? pair[(pa - pair) ^ 1] : a;
    }
}

/* Copies n letters with about `errors` substitutions, insertions and deletions; returns the new length. */
static inline int mutate(const char *from, int n, int errors, char *out, uint64_t *state)
{
    int m = 0;
    for (int i = 0; i < n; i++) {
        if ((int)(random_number(state) % (uint32_t)n) >= errors) {
            out[m++] = from[i];
            continue;
        }
        switch (random_number(state) % 4) {
        case 0: /* deletion */
            break;
        case 1:
            out[m++] = "ACGT"[random_number(state) % 4];
            out[m++] = from[i];
            break;
        default:
            out[m++] = "ACGTN"[random_number(state) % 5];
        }
    }
    out[m] = '\0';
    return m;
}

#endif
