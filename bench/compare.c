/* compare.c - lanewise bench compare: the JSON of several runs as tables and drawings. Markdown and HTML are
 * written side by side; the drawings are SVG, in the HTML too, so that each file stands alone. */
#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "compare.h"

static void note(compare_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(compare_report *r, const char *format, ...)
{
    if (r->n_notes == COMPARE_NOTES)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(r->notes[r->n_notes++], sizeof r->notes[0], format, args);
    va_end(args);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static lw_status read_file(const char *path, char **text, size_t *length, lw_error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file)
        return lw_fail(err, LW_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    size_t capacity = 1 << 16;
    lw_status status = LW_OK;
    *length = 0;
    *text = malloc(capacity + 1);
    while (*text && status == LW_OK) {
        size_t got = fread(*text + *length, 1, capacity - *length, file);
        *length += got;
        if (*length < capacity)
            break;
        char *grown = realloc(*text, 2 * capacity + 1);
        if (!grown)
            status = lw_fail_memory(err, 2 * capacity);
        else
            *text = grown;
        capacity *= 2;
    }
    if (!*text)
        status = lw_fail_memory(err, capacity);
    else
        (*text)[*length] = '\0';
    if (status == LW_OK && ferror(file))
        status = lw_fail(err, LW_E_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (file != stdin)
        fclose(file);
    return status;
}

static lw_status read_run(compare_report *r, const char *path, lw_error *err)
{
    compare_run *n = &r->runs[r->n];
    char *text = NULL;
    size_t length = 0;
    *n = (compare_run){.path = path};
    lw_status status = read_file(path, &text, &length, err);
    if (status == LW_OK)
        status = json_read(&n->root, text, length, path, err);
    free(text);
    LW_TRY(status);
    r->n++;
    const char *schema = json_text(n->root, "schema", "");
    n->results = json_get(n->root, "results");
    n->host = json_get(n->root, "host");
    if (strncmp(schema, "lanewise-bench-", 15) != 0 || !n->results || n->results->kind != JSON_ARRAY)
        return lw_fail(err, LW_E_INPUT, "%s: no results of 'lanewise bench --json' (schema \"%.40s\")", path,
                       schema);
    if (strcmp(schema, "lanewise-bench-1") != 0)
        note(r,
             "%s has schema %.40s, this program knows lanewise-bench-1: members of the same names are "
             "compared.",
             path, schema);
    const char *device = json_text(n->host, "device", NULL);
    char threads[32];
    snprintf(threads, sizeof threads, "CPU, %.0f threads", json_number(n->host, "threads", 0));
    snprintf(n->label, sizeof n->label, "%c: %s", 'A' + r->n - 1, device ? device : threads);
    return LW_OK;
}

static bool same_key(const json *a, const json *b)
{
    static const char *const names[] = {"domain", "name", "backend", "shape", "unit"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(json_text(a, names[i], ""), json_text(b, names[i], "")) != 0)
            return false;
    return true;
}

static lw_status collect(compare_report *r, lw_error *err)
{
    for (int k = 0; k < r->n; k++) {
        int unreadable = 0, wrong = 0, twice = 0;
        for (const json *e = r->runs[k].results->child; e; e = e->next) {
            if (!json_get(e, "domain") || !json_get(e, "name") || json_number(e, "median", -1) < 0) {
                unreadable++;
                continue;
            }
            const json *verified = json_get(e, "verified");
            if (verified && verified->kind == JSON_BOOL && verified->number <= 0)
                wrong++;
            int i = 0;
            while (i < r->n_rows) {
                const json *other = NULL;
                for (int j = 0; j < r->n && !other; j++)
                    other = r->rows[i].at[j];
                if (same_key(other, e))
                    break;
                i++;
            }
            if (i == r->capacity) {
                int more = 2 * r->capacity + 64;
                compare_row *grown = realloc(r->rows, (size_t)more * sizeof *grown);
                if (!grown)
                    return lw_fail_memory(err, (size_t)more * sizeof *grown);
                r->rows = grown;
                r->capacity = more;
            }
            if (i == r->n_rows)
                memset(&r->rows[r->n_rows++], 0, sizeof *r->rows);
            twice += r->rows[i].at[k] != NULL;
            r->rows[i].at[k] = e;
        }
        if (unreadable)
            note(r, "%s: results left out, as they lack domain, name or median: %d.", r->runs[k].path,
                 unreadable);
        if (twice)
            note(r, "%s: results that stand there again, of which the last is compared: %d.", r->runs[k].path,
                 twice);
        if (wrong)
            note(r, "%s: results marked as not verified: %d.", r->runs[k].path, wrong);
    }
    for (int k = 0; k < r->n; k++) {
        int missing = 0, only = 0;
        for (int i = 0; i < r->n_rows; i++) {
            int have = 0;
            for (int j = 0; j < r->n; j++)
                have += r->rows[i].at[j] != NULL;
            missing += !r->rows[i].at[k];
            only += r->rows[i].at[k] && have == 1 && r->n > 1;
        }
        if (missing)
            note(r, "%s lacks %d of %d rows (shown as -).", r->runs[k].path, missing, r->n_rows);
        if (only)
            note(r, "Rows that are only in %s: %d.", r->runs[k].path, only);
    }
    for (int k = 1; k < r->n; k++)
        if (strcmp(r->runs[k].label + 2, r->runs[0].label + 2) != 0) {
            note(r, "The runs are of different machines: absolute figures compare machines, figures per "
                    "clock compare "
                    "code.");
            break;
        }
    return LW_OK;
}

/* --- writing -------------------------------------------------------------------------------------------- */

void compare_text(FILE *to, const char *text, bool markdown)
{
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", to);
        else if (*text == '&')
            fputs("&amp;", to);
        else if (*text == '"' && !markdown)
            fputs("&quot;", to);
        else if (*text == '|' && markdown)
            fputs("\\|", to);
        else if ((unsigned char)*text < ' ')
            putc(' ', to);
        else
            putc(*text, to);
}

static void heading(compare_report *r, int level, const char *text)
{
    fprintf(r->md, "%s%.*s %s\n\n", level > 1 ? "\n" : "", level, "####", text);
    fprintf(r->html, "<h%d>", level);
    compare_text(r->html, text, false);
    fprintf(r->html, "</h%d>\n", level);
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789.e+-")] == '\0';
}

/* A row of a table; the first one of a table is its head, the last call has NULL. */
static void table_row(compare_report *r, bool head, int n, const char *const *cells)
{
    if (head)
        fprintf(r->html, "<div><table>\n");
    if (n == 0) {
        fprintf(r->html, "</table></div>\n");
        return;
    }
    fprintf(r->html, "<tr>");
    fprintf(r->md, "|");
    for (int i = 0; i < n; i++) {
        fprintf(r->html, head ? "<th>" : is_number(cells[i]) ? "<td class=\"n\">" : "<td>");
        compare_text(r->html, cells[i], false);
        fprintf(r->html, head ? "</th>" : "</td>");
        fprintf(r->md, " ");
        compare_text(r->md, cells[i], true);
        fprintf(r->md, " |");
    }
    fprintf(r->html, "</tr>\n");
    fprintf(r->md, "\n");
    if (head) {
        fprintf(r->md, "|");
        for (int i = 0; i < n; i++)
            fprintf(r->md, "---|");
        fprintf(r->md, "\n");
    }
}

static void paragraph(compare_report *r, const char *text)
{
    fprintf(r->html, "<p>");
    compare_text(r->html, text, false);
    fprintf(r->html, "</p>\n");
    compare_text(r->md, text, true);
    fprintf(r->md, "\n\n");
}

const json *compare_any(const compare_report *r, const compare_row *w)
{
    const json *e = NULL;
    for (int k = 0; k < r->n && !e; k++)
        e = w->at[k];
    return e;
}

static void run_table(compare_report *r)
{
    const char *const head[] = {
        "run", "file", "version", "CPU threads", "GPU", "driver", "float32 of its kernels"};
    heading(r, 2, "Runs");
    table_row(r, true, 7, head);
    for (int k = 0; k < r->n; k++) {
        const json *host = r->runs[k].host;
        char letter[2] = {(char)('A' + k), '\0'}, threads[16];
        snprintf(threads, sizeof threads, "%.0f", json_number(host, "threads", 0));
        const char *const cells[] = {letter,
                                     r->runs[k].path,
                                     json_text(host, "version", "-"),
                                     threads,
                                     json_text(host, "device", "none"),
                                     json_text(host, "driver", "-"),
                                     json_text(host, "device_numerics", "-")};
        table_row(r, false, 7, cells);
    }
    table_row(r, false, 0, NULL);
}

/* What a table tells of each run. */
enum { MEDIAN, RATIO, PER_CLOCK, PER_WATT, SHARE, PARTS };
static const struct {
    const char *member, *head, *format; /* head: of a run's letter; format NULL: bench_number() */
    double scale;
} parts[PARTS] = {[MEDIAN] = {"median", "%c", NULL, 1},
                  [RATIO] = {"median", "%c / A", "%.2f", 1},
                  [PER_CLOCK] = {"per_clock", "%c, /clock/SM", NULL, 1},
                  [PER_WATT] = {"per_watt", "%c, /watt", NULL, 1},
                  [SHARE] = {"share", "%c, %% of ceiling", NULL, 100}};

/* The number of run k, 0 where it has none. */
static double part_of(const compare_row *w, int part, int k)
{
    double x = json_number(w->at[k], parts[part].member, 0) * parts[part].scale;
    double first = json_number(w->at[0], "median", 0);
    return part != RATIO ? x : first > 0 ? x / first : 0;
}

/* Whether any row of a domain has it. */
static bool domain_has(const compare_report *r, const char *domain, int part)
{
    for (int i = 0; i < r->n_rows; i++)
        for (int k = 0; k < r->n; k++)
            if (strcmp(json_text(compare_any(r, &r->rows[i]), "domain", ""), domain) == 0 &&
                part_of(&r->rows[i], part, k) > 0)
                return true;
    return false;
}

/* The rows of one domain. Columns: what, backend, shape, unit, and what is known of the parts for each run.
 */
static void domain_table(compare_report *r, const char *domain)
{
    enum { CELLS = 4 + PARTS * COMPARE_RUNS };
    char texts[CELLS][64];
    const char *cells[CELLS] = {"what", "backend", "shape", "unit"};
    bool shown[PARTS];
    int n = 4;
    for (int part = 0; part < PARTS; part++) {
        shown[part] = part <= RATIO || domain_has(r, domain, part);
        for (int k = part == RATIO; k < r->n && shown[part]; k++, n++) {
            snprintf(texts[n], sizeof texts[n], parts[part].head, 'A' + k);
            cells[n] = texts[n];
        }
    }
    heading(r, 2, domain);
    table_row(r, true, n, cells);
    for (int i = 0; i < r->n_rows; i++) {
        const compare_row *w = &r->rows[i];
        const json *e = compare_any(r, w);
        if (strcmp(json_text(e, "domain", ""), domain) != 0)
            continue;
        cells[0] = json_text(e, "name", "");
        cells[1] = json_text(e, "backend", "");
        cells[2] = json_text(e, "shape", "");
        cells[3] = json_text(e, "unit", "");
        n = 4;
        for (int part = 0; part < PARTS; part++)
            for (int k = part == RATIO; k < r->n && shown[part]; k++, n++) {
                double x = part_of(w, part, k);
                if (w->at[k] && x > 0 && part == SHARE)
                    snprintf(texts[n], sizeof texts[n], "%.*f", x < 10 ? 1 : 0, x);
                else if (w->at[k] && x > 0 && parts[part].format)
                    snprintf(texts[n], sizeof texts[n], parts[part].format, x);
                else if (w->at[k] && x > 0)
                    bench_number(texts[n], sizeof texts[n], x);
                else
                    snprintf(texts[n], sizeof texts[n], "-");
                cells[n] = texts[n];
            }
        table_row(r, false, n, cells);
    }
    table_row(r, false, 0, NULL);
}

/* The lists "findings" and "skipped" of the runs. */
static void lists(compare_report *r, const char *list, const char *title, const char *const *members, int n)
{
    bool begun = false;
    for (int k = 0; k < r->n; k++) {
        const json *all = json_get(r->runs[k].root, list);
        for (const json *e = all ? all->child : NULL; e; e = e->next) {
            char letter[2] = {(char)('A' + k), '\0'};
            const char *cells[4] = {"run"};
            if (!begun) {
                heading(r, 2, title);
                for (int i = 0; i < n; i++)
                    cells[i + 1] = members[i];
                table_row(r, true, n + 1, cells);
                begun = true;
            }
            cells[0] = letter;
            for (int i = 0; i < n; i++)
                cells[i + 1] = json_text(e, members[i], "");
            table_row(r, false, n + 1, cells);
        }
    }
    if (begun)
        table_row(r, false, 0, NULL);
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* *svg and *svg_size are those of r->svg, which is complete. */
static void write_all(compare_report *r, const char *base, char *const *svg, const size_t *svg_size)
{
    heading(r, 1, "lanewise bench: comparison");
    run_table(r);
    fprintf(r->md, "\n");
    for (int i = 0; i < r->n_notes; i++)
        paragraph(r, r->notes[i]);
    heading(r, 2, "Drawings");
    if (base)
        fprintf(r->md, "![rates and rooflines](<%s.svg>)\n",
                strrchr(base, '/') ? strrchr(base, '/') + 1 : base);
    else
        fprintf(r->md, "With -o BASE, drawings are written to BASE.svg and BASE.html.\n");
    fflush(r->svg);
    fwrite(*svg, 1, *svg_size, r->html);
    for (int i = 0; i < r->n_rows; i++) { /* domains in the order of their first row */
        const char *domain = json_text(compare_any(r, &r->rows[i]), "domain", "");
        bool before = false;
        for (int j = 0; j < i; j++)
            before = before || strcmp(json_text(compare_any(r, &r->rows[j]), "domain", ""), domain) == 0;
        if (!before)
            domain_table(r, domain);
    }
    static const char *const findings[] = {"technique", "sentence"}, *const skipped[] = {"domain", "what",
                                                                                         "reason"};
    lists(r, "findings", "What each machine showed", findings, 2);
    lists(r, "skipped", "Skipped", skipped, 3);
}

static lw_status write_file(const char *base, const char *suffix, const char *text, size_t length,
                            lw_temporaries *temporaries, lw_error *err)
{
    char path[4096];
    lw_outfile *file;
    if (snprintf(path, sizeof path, "%s%s", base, suffix) >= (int)sizeof path)
        return lw_fail(err, LW_E_ARG, "the name of the report is too long");
    LW_TRY(lw_outfile_open(&file, path, temporaries, err));
    FILE *to = lw_outfile_stream(file);
    if (!to)
        return lw_outfile_close(file, lw_fail_memory(err, length), err);
    fwrite(text, 1, length, to);
    return lw_outfile_close(file, LW_OK, err);
}

static const char html_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>lanewise "
    "bench</title>\n<style>\n"
    "body{font-family:sans-serif;max-width:1200px;margin:2em auto;padding:0 1em;color:#222;background:#fff}\n"
    "div{overflow-x:auto}\nsvg{max-width:100%;height:auto}\n"
    "table{border-collapse:collapse;font-size:13px;margin:1em 0}\n"
    "td,th{border:1px solid #ccc;padding:2px 6px;text-align:left}\nth{background:#eee}\n"
    ".n{text-align:right}\n"
    "@media (prefers-color-scheme:dark){body{color:#e4e6e9;background:#16181c}"
    "td,th{border-color:#444a52}th{background:#24272d}}\n"
    "</style>\n</head>\n<body>\n";

lw_status bench_compare(const char *const *paths, int n, const char *base, FILE *markdown,
                        lw_temporaries *temporaries, const lw_host *host, lw_error *err)
{
    compare_report *r = calloc(1, sizeof *r);
    char *md = NULL, *html = NULL, *svg = NULL;
    size_t md_size = 0, html_size = 0, svg_size = 0;
    if (!r)
        return lw_fail_memory(err, sizeof *r);
    lw_status status = LW_OK;
    if (n > COMPARE_RUNS) {
        status = lw_fail(err, LW_E_ARG, "compare takes at most %d files, not %d", COMPARE_RUNS, n);
        goto end;
    }
    for (int i = 0; i < n; i++)
        LW_TRY_END(read_run(r, paths[i], err));
    LW_TRY_END(collect(r, err));
    for (int i = 0; i < r->n_notes; i++)
        lw_say(host, LW_SAY_WARNING, "%s", r->notes[i]);
    r->md = open_memstream(&md, &md_size);
    r->html = open_memstream(&html, &html_size);
    r->svg = open_memstream(&svg, &svg_size);
    if (!r->md || !r->html || !r->svg)
        status = lw_fail_memory(err, BUFSIZ);
    if (status == LW_OK) {
        compare_draw(r);
        fputs(html_head, r->html);
        write_all(r, base, &svg, &svg_size);
        fputs("</body>\n</html>\n", r->html);
    }
    bool complete = status == LW_OK;
    complete = (!r->md || fclose(r->md) == 0) && complete;
    complete = (!r->html || fclose(r->html) == 0) && complete;
    complete = (!r->svg || fclose(r->svg) == 0) && complete;
    if (!complete) {
        status = lw_fail_memory(err, md_size + html_size + svg_size);
        goto end;
    }
    if (base) {
        LW_TRY_END(write_file(base, ".md", md, md_size, temporaries, err));
        LW_TRY_END(write_file(base, ".svg", svg, svg_size, temporaries, err));
        LW_TRY_END(write_file(base, ".html", html, html_size, temporaries, err));
    }
    fwrite(md, 1, md_size, markdown);
end:
    for (int k = 0; k < COMPARE_RUNS; k++)
        json_free(r->runs[k].root);
    free(r->rows), free(r), free(md), free(html), free(svg);
    return status;
}
