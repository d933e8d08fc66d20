/* opcodes.c - reading cuobjdump's listing. */
#include "opcodes.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fail.h"

enum { MAX_CODES = 128, CODE_LENGTH = 32 };

typedef struct tally {
    char code[MAX_CODES][CODE_LENGTH];
    int count[MAX_CODES], n;
} tally;

static void tally_add(tally *t, const char *code, size_t length)
{
    if (length == 0 || length >= CODE_LENGTH)
        return;
    int i = 0;
    while (i < t->n && (strncmp(t->code[i], code, length) != 0 || t->code[i][length]))
        i++;
    if (i == MAX_CODES)
        return;
    if (i == t->n) {
        memcpy(t->code[i], code, length);
        t->code[i][length] = '\0';
        t->count[t->n++] = 0;
    }
    t->count[i]++;
}

/* As text, most frequent first. */
static char *tally_text(const tally *t)
{
    char *text = malloc((size_t)t->n * (CODE_LENGTH + 12) + 1), *p = text;
    bool done[MAX_CODES] = {false};
    if (!text)
        return NULL;
    *p = '\0';
    for (int k = 0; k < t->n; k++) {
        int best = -1;
        for (int i = 0; i < t->n; i++)
            if (!done[i] && (best < 0 || t->count[i] > t->count[best]))
                best = i;
        done[best] = true;
        p += sprintf(p, "%s%s %d", k ? "," : "", t->code[best], t->count[best]);
    }
    return text;
}

static lw_status keep(opcodes *o, const char *name, char *codes, lw_error *err)
{
    if (o->n == o->capacity) {
        int more = 2 * o->capacity + 64;
        opcodes_kernel *grown = realloc(o->kernels, (size_t)more * sizeof *grown);
        if (!grown)
            return lw_fail_memory(err, (size_t)more * sizeof *grown);
        o->kernels = grown;
        o->capacity = more;
    }
    o->kernels[o->n].name = strdup(name);
    o->kernels[o->n].codes = codes;
    if (!o->kernels[o->n++].name || !codes)
        return lw_fail_memory(err, strlen(name));
    return LW_OK;
}

/* The program cuobjdump, or NULL. */
static const char *find_program(char *path, size_t size)
{
    const char *folders = getenv("PATH");
    char all[8192];
    snprintf(all, sizeof all, "%s:/usr/local/cuda/bin", folders ? folders : "");
    for (char *rest = all, *folder; (folder = strsep(&rest, ":"));) {
        snprintf(path, size, "%s/cuobjdump", folder);
        if (*folder == '/' && access(path, X_OK) == 0 && !strchr(path, '\''))
            return path;
    }
    return NULL;
}

/* Reads "Function : NAME" and the instructions that follow it. */
static lw_status parse(opcodes *o, FILE *listing, lw_error *err)
{
    char line[4096], name[1024] = "";
    tally *t = calloc(1, sizeof *t);
    lw_status status = t ? LW_OK : lw_fail_memory(err, sizeof *t);
    while (status == LW_OK) {
        char *more = fgets(line, sizeof line, listing);
        char *function = more ? strstr(line, "Function : ") : NULL;
        if ((!more || function) && name[0] && t->n)
            status = keep(o, name, tally_text(t), err);
        if (!more)
            break;
        if (function) {
            snprintf(name, sizeof name, "%s", function + 11);
            name[strcspn(name, " \n")] = '\0';
            t->n = 0;
            continue;
        }
        /*  "        /x0010x/          @!P0 IADD3 R1, R2, R3 ;    /x 0x... x/"  (x: an asterisk) */
        char *p = line + strspn(line, " \t");
        if (strncmp(p, "/*", 2) != 0 || p[2] == ' ')
            continue;
        p = strstr(p, "*/");
        if (!p)
            continue;
        p += 2;
        p += strspn(p, " \t");
        if (*p == '@') {
            p += strcspn(p, " \t");
            p += strspn(p, " \t");
        }
        if (isupper((unsigned char)*p))
            tally_add(t, p, strcspn(p, " ;\t\n"));
    }
    free(t);
    return status;
}

/* Only the parts of the program that name a kernel of the laboratory are taken apart, side by side: all of a
 * program takes minutes, and so does cuobjdump's own choice by many names. */
static lw_status run(opcodes *o, const char *program, const char *architecture, const char *mark,
                     lw_error *err)
{
    size_t size = 2 * strlen(program) + 512;
    char *command = malloc(size);
    if (!command)
        return lw_fail_memory(err, size);
    snprintf(
        command, size,
        "PATH=$PATH:'%.*s'; d=$(mktemp -d) && cd \"$d\" && '%s' -xelf .%s.cubin /proc/%ld/exe >log 2>&1; "
        "for f in *.cubin; do grep -q %s \"$f\" && '%s' -sass \"$f\" >\"$f.txt\" 2>>log & done; wait; "
        "cat *.txt; rm -r \"$d\"",
        (int)(strrchr(program, '/') - program), program, program, architecture, (long)getpid(), mark,
        program);
    FILE *pipe = popen(command, "r");
    free(command);
    if (!pipe)
        return LW_OK; /* then what the build recorded is used */
    lw_status status = parse(o, pipe, err);
    pclose(pipe);
    return status;
}

lw_status opcodes_read(opcodes *o, const char *architecture, const char *mark, lw_error *err)
{
    char path[4096];
    memset(o, 0, sizeof *o);
    const char *program = find_program(path, sizeof path);
    if (program)
        LW_TRY(run(o, program, architecture, mark, err));
    if (o->n) {
        o->source = "cuobjdump";
        return LW_OK;
    }
    for (const opcodes_recorded *r = opcodes_record; r->name; r++)
        if (strcmp(r->architecture, architecture) == 0)
            LW_TRY(keep(o, r->name, strdup(r->codes), err));
    if (o->n)
        o->source = "recorded by the build";
    return LW_OK;
}

const char *opcodes_of(const opcodes *o, const char *name)
{
    for (int i = 0; i < o->n; i++)
        if (strcmp(o->kernels[i].name, name) == 0)
            return o->kernels[i].codes;
    return NULL;
}

/* Whether the modifiers of `opcode` are all among those of the `length` letters at `code`. */
static bool is(const char *code, size_t length, const char *opcode)
{
    size_t base = strcspn(opcode, ".");
    if (length < base || strncmp(code, opcode, base) != 0 || (length > base && code[base] != '.'))
        return false;
    for (const char *m = opcode + base; *m == '.'; m += 1 + strcspn(m + 1, ".")) {
        size_t size = 1 + strcspn(m + 1, ".");
        bool found = false;
        for (const char *p = code + base; p < code + length; p += 1 + strcspn(p + 1, ". ")) {
            size_t part = 1 + strcspn(p + 1, ". ");
            found = found || (part == size && strncmp(p, m, size) == 0);
        }
        if (!found)
            return false;
    }
    return true;
}

int opcodes_count(const char *codes, const char *opcode)
{
    int total = 0;
    for (const char *p = codes; p && *p;) {
        size_t length = strcspn(p, " ");
        if (is(p, length, opcode))
            total += atoi(p + length);
        p += strcspn(p, ",");
        p += *p == ',';
    }
    return total;
}

void opcodes_show(const char *codes, char *text, size_t size)
{
    static const char *const frame[] = {"NOP",      "BRA",       "EXIT", "S2R",     "S2UR", "ULDC",
                                        "LDC",      "MOV",       "CS2R", "UMOV",    "BSSY", "BSYNC",
                                        "IMAD.MOV", "IMAD.WIDE", "R2UR", "WARPSYNC"};
    size_t used = 0;
    text[0] = '\0';
    int shown = 0;
    for (const char *p = codes; p && *p && shown < 5;) {
        size_t length = strcspn(p, " "), whole = strcspn(p, ",");
        bool computes = true;
        for (size_t i = 0; i < sizeof frame / sizeof *frame; i++)
            computes = computes && !is(p, length, frame[i]);
        if (computes && used + whole + 3 < size) {
            used += (size_t)snprintf(text + used, size - used, "%s%.*s", shown ? ", " : "", (int)whole, p);
            shown++;
        }
        p += whole;
        p += *p == ',';
    }
}

void opcodes_free(opcodes *o)
{
    for (int i = 0; i < o->n; i++)
        free(o->kernels[i].name), free(o->kernels[i].codes);
    free(o->kernels);
    memset(o, 0, sizeof *o);
}
