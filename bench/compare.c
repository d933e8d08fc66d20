/* compare.c - lanewise bench compare: the JSON of several runs as tables and drawings. Markdown and HTML are
 * written side by side; the drawings are SVG, in the HTML too, so that each file stands alone. */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "json.h"

enum { MAX_RUNS = 16, MAX_NOTES = 64, MAX_BARS = 48, MAX_POINTS = 64 };

typedef struct run {
    const char *path;
    json *root;
    const json *results, *host;
    char label[96]; /* "A: NVIDIA H200" */
} run;

typedef struct row {
    const json *at[MAX_RUNS]; /* the result in each run; NULL: it has none */
} row;

typedef struct report {
    run runs[MAX_RUNS];
    int n;
    row *rows;
    int n_rows, capacity;
    char notes[MAX_NOTES][256];
    int n_notes;
    FILE *md, *html, *svg;
} report;

static const char *const colours[] = {"#2f6db3", "#d1702a", "#3d8f4f", "#a13d63",
                                      "#6b5fa8", "#8a7a2f", "#2f8f96", "#777777"};
enum { COLOURS = sizeof colours / sizeof *colours };

static void note(report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(report *r, const char *format, ...)
{
    if (r->n_notes == MAX_NOTES)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(r->notes[r->n_notes++], sizeof r->notes[0], format, args);
    va_end(args);
}

/* --- reading ----------------------------------------------------------------------------------------------
 */

static lw_status read_file(const char *path, char **text, size_t *length, lw_error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file)
        return lw_fail(err, LW_E_IO, "%s: cannot be opened", path);
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
        status = lw_fail(err, LW_E_IO, "%s: cannot be read", path);
    if (file != stdin)
        fclose(file);
    return status;
}

static lw_status read_run(report *r, const char *path, lw_error *err)
{
    run *n = &r->runs[r->n];
    char *text = NULL;
    size_t length = 0;
    *n = (run){.path = path};
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

static lw_status collect(report *r, lw_error *err)
{
    for (int k = 0; k < r->n; k++) {
        int unreadable = 0, wrong = 0;
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
                row *grown = realloc(r->rows, (size_t)more * sizeof *grown);
                if (!grown)
                    return lw_fail_memory(err, (size_t)more * sizeof *grown);
                r->rows = grown;
                r->capacity = more;
            }
            if (i == r->n_rows)
                memset(&r->rows[r->n_rows++], 0, sizeof *r->rows);
            r->rows[i].at[k] = e;
        }
        if (unreadable)
            note(r, "%s: %d results lack domain, name or median and are left out.", r->runs[k].path,
                 unreadable);
        if (wrong)
            note(r, "%s: %d results are marked as not verified.", r->runs[k].path, wrong);
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
            note(r, "%d rows are only in %s.", only, r->runs[k].path);
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

/* --- writing ----------------------------------------------------------------------------------------------
 */

/* Text with what HTML and Markdown tables cannot hold replaced. */
static void put_text(FILE *to, const char *text, bool markdown)
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

static void heading(report *r, int level, const char *text)
{
    fprintf(r->md, "%s%.*s %s\n\n", level > 1 ? "\n" : "", level, "####", text);
    fprintf(r->html, "<h%d>", level);
    put_text(r->html, text, false);
    fprintf(r->html, "</h%d>\n", level);
}

/* A row of a table; the first one of a table is its head, the last call has NULL. */
static void table_row(report *r, bool head, int n, const char *const *cells)
{
    if (head)
        fprintf(r->html, "<table>\n");
    if (n == 0) {
        fprintf(r->html, "</table>\n");
        return;
    }
    fprintf(r->html, "<tr>");
    fprintf(r->md, "|");
    for (int i = 0; i < n; i++) {
        fprintf(r->html, head ? "<th>" : "<td>");
        put_text(r->html, cells[i], false);
        fprintf(r->html, head ? "</th>" : "</td>");
        fprintf(r->md, " ");
        put_text(r->md, cells[i], true);
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

static void paragraph(report *r, const char *text)
{
    fprintf(r->html, "<p>");
    put_text(r->html, text, false);
    fprintf(r->html, "</p>\n");
    put_text(r->md, text, true);
    fprintf(r->md, "\n\n");
}

static const json *any_of(const report *r, const row *w)
{
    const json *e = NULL;
    for (int k = 0; k < r->n && !e; k++)
        e = w->at[k];
    return e;
}

static void run_table(report *r)
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

/* The rows of one domain. Columns: what, backend, shape, unit, the medians, B/A ..., share of the ceiling. */
static void domain_table(report *r, const char *domain)
{
    enum { CELLS = 5 + 3 * MAX_RUNS };
    char texts[CELLS][64];
    const char *cells[CELLS] = {"what", "backend", "shape", "unit"};
    int n = 4;
    for (int pass = 0; pass < 3; pass++) /* medians, ratios, shares */
        for (int k = pass == 1; k < r->n; k++, n++) {
            if (pass == 1)
                snprintf(texts[n], sizeof texts[n], "%c / A", 'A' + k);
            else
                snprintf(texts[n], sizeof texts[n], pass == 0 ? "%c" : "%c, %% of ceiling", 'A' + k);
            cells[n] = texts[n];
        }
    heading(r, 2, domain);
    table_row(r, true, n, cells);
    for (int i = 0; i < r->n_rows; i++) {
        const row *w = &r->rows[i];
        const json *e = any_of(r, w);
        if (strcmp(json_text(e, "domain", ""), domain) != 0)
            continue;
        cells[0] = json_text(e, "name", "");
        cells[1] = json_text(e, "backend", "");
        cells[2] = json_text(e, "shape", "");
        cells[3] = json_text(e, "unit", "");
        n = 4;
        double first = json_number(w->at[0], "median", 0);
        for (int pass = 0; pass < 3; pass++)
            for (int k = pass == 1; k < r->n; k++, n++) {
                double x = json_number(w->at[k], "median", 0),
                       share = 100 * json_number(w->at[k], "share", 0);
                double shown = pass == 0 ? x : pass == 1 ? (first > 0 ? x / first : 0) : share;
                if (w->at[k] && shown > 0)
                    snprintf(texts[n], sizeof texts[n], pass == 2 ? "%.0f" : pass ? "%.2f" : "%.4g", shown);
                else
                    snprintf(texts[n], sizeof texts[n], "-");
                cells[n] = texts[n];
            }
        table_row(r, false, n, cells);
    }
    table_row(r, false, 0, NULL);
}

/* The lists "findings" and "skipped" of the runs. */
static void lists(report *r, const char *list, const char *title, const char *const *members, int n)
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

/* --- drawings ----------------------------------------------------------------------------------------------
 */

enum { WIDTH = 960, LEFT = 370, BAR = 11, ROOF_HEIGHT = 420 };

static void svg_text(FILE *to, double x, double y, const char *anchor, int size, const char *colour,
                     const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">", x, y, anchor,
            size, colour);
    put_text(to, text, false);
    fprintf(to, "</text>\n");
}

static void legend(const report *r, FILE *to, double y)
{
    for (int k = 0; k < r->n; k++) {
        double x = 20 + k % 3 * 310, at = y + k / 3 * 18;
        fprintf(to, "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, at - 10,
                colours[k % COLOURS]);
        svg_text(to, x + 18, at, "start", 12, "#222", r->runs[k].label);
    }
}

/* Bars of the product's rows, each row scaled to its best run. Returns the height. */
static double bars(const report *r, FILE *to, double y)
{
    int drawn = 0;
    svg_text(to, 20, y, "start", 16, "#111", "Rates, each row relative to its best");
    y += 14;
    for (int i = 0; i < r->n_rows && drawn < MAX_BARS; i++) {
        const row *w = &r->rows[i];
        const json *e = any_of(r, w);
        const char *domain = json_text(e, "domain", "");
        double best = 0;
        if (strcmp(domain, "techniques") == 0 || strcmp(domain, "ceilings") == 0)
            continue;
        for (int k = 0; k < r->n; k++)
            best = fmax(best, json_number(w->at[k], "median", 0));
        if (!(best > 0))
            continue;
        char text[160];
        snprintf(text, sizeof text, "%s %.24s, %.16s, %.28s", domain, json_text(e, "name", ""),
                 json_text(e, "backend", ""), json_text(e, "shape", ""));
        svg_text(to, LEFT - 8, y + 10, "end", 10, "#222", text);
        for (int k = 0; k < r->n; k++) {
            double x = json_number(w->at[k], "median", 0);
            if (!(x > 0))
                continue;
            double width = (WIDTH - LEFT - 130) * x / best;
            fprintf(to, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", LEFT,
                    y + k * BAR, width, BAR - 2, colours[k % COLOURS]);
            snprintf(text, sizeof text, "%.4g %s", x, json_text(e, "unit", ""));
            svg_text(to, LEFT + width + 4, y + k * BAR + 8, "start", 9, "#444", text);
        }
        y += r->n * BAR + 7;
        drawn++;
    }
    if (!drawn)
        svg_text(to, 40, y += 14, "start", 11, "#666", "(no results of align, search, apsp or infer)");
    return y + 20;
}

static double ceiling_of(const json *root, const char *name)
{
    const json *all = json_get(root, "ceilings");
    for (const json *e = all ? all->child : NULL; e; e = e->next)
        if (strcmp(json_text(e, "name", ""), name) == 0)
            return json_number(e, "per_second", 0);
    return 0;
}

/* Operations a second against operations a byte, both logarithmic, with the card's own bandwidth and the
 * ceilings that bound its results. */
static double roofline(const report *r, int k, FILE *to, double top)
{
    const json *root = r->runs[k].root;
    const char *shown[16];
    int n_shown = 0, points = 0;
    double bandwidth = ceiling_of(root, "copy"), most = 0;
    char text[160];
    for (const json *e = r->runs[k].results->child; e; e = e->next) {
        const char *name = json_text(e, "ceiling", "");
        if (!(json_number(e, "operations_per_byte", 0) > 0) || !(ceiling_of(root, name) > 0))
            continue;
        points++;
        most = fmax(most, ceiling_of(root, name));
        int i = 0;
        while (i < n_shown && strcmp(shown[i], name) != 0)
            i++;
        if (i == n_shown && n_shown < 16)
            shown[n_shown++] = name;
    }
    snprintf(text, sizeof text, "Roofline of %s", r->runs[k].label);
    svg_text(to, 20, top, "start", 16, "#111", text);
    if (!points || !(bandwidth > 0)) {
        svg_text(to, 40, top + 20, "start", 11, "#666", "(no results with a ceiling in this run)");
        return top + 44;
    }
    const double x0 = 80, x1 = WIDTH - 170, y0 = top + ROOF_HEIGHT - 40, y1 = top + 20;
    const double low = 0, high = 5.5; /* decades of operations a byte */
    const double peak = ceil(log10(most) * 2) / 2 + 0.2, floor_ = peak - 3;
#define X(v) (x0 + (log10(v) - low) / (high - low) * (x1 - x0))
#define Y(v) (y0 - (log10(v) - floor_) / (peak - floor_) * (y0 - y1))
    fprintf(to,
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"#fafafa\" stroke=\"#999\"/>\n",
            x0, y1, x1 - x0, y0 - y1);
    for (int d = 0; d <= 5; d++) {
        snprintf(text, sizeof text, "%.0f", pow(10, d));
        fprintf(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e2e2e2\"/>\n",
                X(pow(10, d)), y0, X(pow(10, d)), y1);
        svg_text(to, X(pow(10, d)), y0 + 14, "middle", 10, "#444", text);
    }
    for (int d = (int)ceil(floor_); d <= (int)floor(peak); d++) {
        snprintf(text, sizeof text, "%g T/s", pow(10, d - 12));
        fprintf(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e2e2e2\"/>\n", x0,
                Y(pow(10, d)), x1, Y(pow(10, d)));
        svg_text(to, x0 - 6, Y(pow(10, d)) + 3, "end", 10, "#444", text);
    }
    svg_text(to, (x0 + x1) / 2, y0 + 30, "middle", 11, "#222",
             "operations of the ceiling for a byte of device memory");
    double left = fmax(1, pow(10, floor_) / bandwidth), knee = most / bandwidth;
    fprintf(to,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#555\" stroke-width=\"1.5\"/>\n",
            X(left), Y(left * bandwidth), X(knee), Y(most));
    snprintf(text, sizeof text, "copy, %.2f TB/s", bandwidth * 1e-12);
    svg_text(to, X(left) + 8, Y(left * bandwidth) - 2, "start", 10, "#333", text);
    for (int i = 0; i < n_shown; i++) {
        double level = ceiling_of(root, shown[i]);
        bool repeated = false; /* ceilings of the same height share a label's place */
        for (int j = 0; j < i; j++)
            repeated = repeated || fabs(log10(ceiling_of(root, shown[j]) / level)) < 0.03;
        fprintf(to,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#555\" "
                "stroke-dasharray=\"%s\"/>\n",
                X(level / bandwidth), Y(level), x1, Y(level), repeated ? "2 4" : "none");
        snprintf(text, sizeof text, "%s, %.3g T/s", shown[i], level * 1e-12);
        svg_text(to, x1 + 4, Y(level) + 3 + (repeated ? 11 * i : 0), "start", 10, "#333", text);
    }
    for (const json *e = r->runs[k].results->child; e; e = e->next) {
        double x = json_number(e, "operations_per_byte", 0),
               level = ceiling_of(root, json_text(e, "ceiling", ""));
        double y = level * json_number(e, "share", 0);
        if (!(x > 0) || !(y >= pow(10, floor_)) || !(x <= pow(10, high)))
            continue;
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" fill-opacity=\"0.75\"><title>", X(x),
                Y(y), colours[k % COLOURS]);
        snprintf(text, sizeof text, "%s %s, %s, %.40s: %.0f %% of %s", json_text(e, "domain", ""),
                 json_text(e, "name", ""), json_text(e, "backend", ""), json_text(e, "shape", ""),
                 100 * json_number(e, "share", 0), json_text(e, "ceiling", ""));
        put_text(to, text, false);
        fprintf(to, "</title></circle>\n");
    }
#undef X
#undef Y
    return top + ROOF_HEIGHT + 10;
}

static void draw(report *r)
{
    char *body = NULL;
    size_t length;
    FILE *to = open_memstream(&body, &length);
    if (!to)
        return;
    double y = 30;
    legend(r, to, y);
    y += 18 * ((r->n + 2) / 3) + 20;
    y = bars(r, to, y);
    for (int k = 0; k < r->n; k++)
        y = roofline(r, k, to, y + 10);
    if (fclose(to) == 0)
        fprintf(
            r->svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" "
            "font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"white\"/>\n%s</svg>\n",
            WIDTH, y + 10, WIDTH, y + 10, body);
    free(body);
}

/* --- the whole ---------------------------------------------------------------------------------------------
 */

static void write_all(report *r)
{
    heading(r, 1, "lanewise bench: comparison");
    run_table(r);
    fprintf(r->md, "\n");
    for (int i = 0; i < r->n_notes; i++)
        paragraph(r, r->notes[i]);
    for (int i = 0; i < r->n_rows; i++) { /* domains in the order of their first row */
        const char *domain = json_text(any_of(r, &r->rows[i]), "domain", "");
        bool before = false;
        for (int j = 0; j < i; j++)
            before = before || strcmp(json_text(any_of(r, &r->rows[j]), "domain", ""), domain) == 0;
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
    "body{font-family:sans-serif;max-width:1200px;margin:2em auto;color:#222}\n"
    "table{border-collapse:collapse;font-size:13px;margin:1em 0}\n"
    "td,th{border:1px solid #ccc;padding:2px 6px;text-align:left}\nth{background:#eee}\n"
    "</style>\n</head>\n<body>\n";

lw_status bench_compare(const char *const *paths, int n, const char *base, FILE *markdown,
                        lw_temporaries *temporaries, const lw_host *host, lw_error *err)
{
    report *r = calloc(1, sizeof *r);
    char *md = NULL, *html = NULL, *svg = NULL;
    size_t md_size = 0, html_size = 0, svg_size = 0;
    if (!r)
        return lw_fail_memory(err, sizeof *r);
    lw_status status = LW_OK;
    if (n > MAX_RUNS) {
        status = lw_fail(err, LW_E_ARG, "compare takes at most %d files, not %d", MAX_RUNS, n);
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
        draw(r);
        fflush(r->svg);
        fputs(html_head, r->html);
        write_all(r);
        heading(r, 2, "Drawings");
        if (base)
            fprintf(r->md, "See %s.svg.\n", strrchr(base, '/') ? strrchr(base, '/') + 1 : base);
        else
            fprintf(r->md, "With -o BASE, drawings are written to BASE.svg and BASE.html.\n");
        fwrite(svg, 1, svg_size, r->html);
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
    for (int k = 0; k < MAX_RUNS; k++)
        json_free(r->runs[k].root);
    free(r->rows), free(r), free(md), free(html), free(svg);
    return status;
}
