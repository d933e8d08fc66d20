/* drawings.c - the drawings of `lanewise bench compare`, as SVG: bars of the rates, and for each run a
 * roofline of its card. Colours are classes, so that a reader whose screen is dark gets dark ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compare.h"

enum { WIDTH = 960, COLOURS = 8 };

static const char style[] =
    "<style>\n"
    ".lw{font-family:sans-serif}.lw .page{fill:#fff}.lw text{fill:#222}.lw .dim{fill:#5c6168}\n"
    ".lw .field{fill:#fafafa;stroke:#999}.lw .grid{stroke:#e2e2e2}.lw .roof{stroke:#444;stroke-width:1.5}\n"
    ".lw .lead{stroke:#999}.lw .c0{fill:#2f6db3}.lw .c1{fill:#d1702a}.lw .c2{fill:#3d8f4f}.lw "
    ".c3{fill:#a13d63}\n"
    ".lw .c4{fill:#6b5fa8}.lw .c5{fill:#8a7a2f}.lw .c6{fill:#2f8f96}.lw .c7{fill:#777}\n"
    "@media (prefers-color-scheme:dark){\n"
    ".lw .page{fill:#16181c}.lw text{fill:#e4e6e9}.lw .dim{fill:#a3a9b2}\n"
    ".lw .field{fill:#1d2025;stroke:#777}.lw .grid{stroke:#33373e}.lw .roof{stroke:#c4c8ce}\n"
    ".lw .lead{stroke:#777}.lw .c0{fill:#6ea8ea}.lw .c1{fill:#ef9d5c}.lw .c2{fill:#74c486}.lw "
    ".c3{fill:#e088aa}\n"
    ".lw .c4{fill:#a99fe4}.lw .c5{fill:#cdbb62}.lw .c6{fill:#66c6ce}.lw .c7{fill:#b4b4b4}}\n"
    "</style>\n";

static void label(FILE *to, double x, double y, const char *anchor, int size, bool dim, const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\"%s>", x, y, anchor, size,
            dim ? " class=\"dim\"" : "");
    compare_text(to, text, false);
    fprintf(to, "</text>\n");
}

static void line(FILE *to, const char *class, double x1, double y1, double x2, double y2)
{
    fprintf(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2,
            y2);
}

/* At most `most` bytes of a text, whole characters of UTF-8, with dots where something is left out. */
static const char *shortened(char *to, size_t size, const char *text, size_t most)
{
    size_t n = strlen(text);
    if (n <= most) {
        snprintf(to, size, "%s", text);
        return to;
    }
    for (n = most - 2; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    snprintf(to, size, "%.*s...", (int)n, text);
    return to;
}

/* A rate as people read it: no exponents. */
static void rate_text(char *to, size_t size, double rate, const char *unit)
{
    snprintf(to, size, rate >= 1000 ? "%.0f %s" : "%.3g %s", rate, unit);
}

static double legend(const compare_report *r, FILE *to, double y)
{
    for (int k = 0; k < r->n; k++) {
        char text[64];
        double x = 20 + k % 2 * 460, at = y + k / 2 * 20;
        fprintf(to, "<rect class=\"c%d\" x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\"/>\n", k % COLOURS,
                x, at - 10);
        label(to, x + 18, at, "start", 13, false, shortened(text, sizeof text, r->runs[k].label, 58));
    }
    return y + 20 * ((r->n + 1) / 2) + 14;
}

/* --- bars ----------------------------------------------------------------------------------------------- */

enum { BARS_LEFT = 340, BAR = 12, ROW_LEAST = 26, DOMAIN_MOST = 40 };

static double best_of(const compare_report *r, const compare_row *w)
{
    double best = 0;
    for (int k = 0; k < r->n; k++)
        best = fmax(best, json_number(w->at[k], "median", 0));
    return best;
}

/* What a full bar is: the best run of this row, or where there is one run the best row of its domain and
 * unit. */
static double full_bar(const compare_report *r, const compare_row *w)
{
    const json *e = compare_any(r, w);
    double best = best_of(r, w);
    for (int i = 0; i < r->n_rows && r->n == 1; i++) {
        const json *other = compare_any(r, &r->rows[i]);
        if (strcmp(json_text(e, "domain", ""), json_text(other, "domain", "")) == 0 &&
            strcmp(json_text(e, "unit", ""), json_text(other, "unit", "")) == 0)
            best = fmax(best, best_of(r, &r->rows[i]));
    }
    return best;
}

/* Whether there is something to compare in a row. */
static bool is_drawn(const compare_report *r, const compare_row *w)
{
    int runs = 0;
    for (int k = 0; k < r->n; k++)
        runs += json_number(w->at[k], "median", 0) > 0;
    return runs > 1 || (runs == 1 && r->n == 1);
}

/* One row: what it is in two lines, and a bar for each run. */
static double bar_row(const compare_report *r, const compare_row *w, FILE *to, double y)
{
    const json *e = compare_any(r, w);
    char text[256], cut[80];
    double best = full_bar(r, w), height = r->n * BAR > ROW_LEAST ? r->n * BAR : ROW_LEAST;
    snprintf(text, sizeof text, "%s, %s", json_text(e, "name", ""), json_text(e, "backend", ""));
    label(to, BARS_LEFT - 8, y + height / 2 - 3, "end", 11, false, shortened(cut, sizeof cut, text, 52));
    label(to, BARS_LEFT - 8, y + height / 2 + 9, "end", 10, true,
          shortened(cut, sizeof cut, json_text(e, "shape", ""), 56));
    double top = y + (height - r->n * BAR) / 2;
    for (int k = 0; k < r->n; k++, top += BAR) {
        double x = json_number(w->at[k], "median", 0), width = (WIDTH - BARS_LEFT - 130) * x / best;
        if (w->at[k])
            fprintf(to, "<rect class=\"c%d\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
                    k % COLOURS, BARS_LEFT, top + 1, width, BAR - 2);
        if (w->at[k])
            rate_text(text, sizeof text, x, json_text(e, "unit", ""));
        else
            snprintf(text, sizeof text, "not in %c", 'A' + k);
        label(to, BARS_LEFT + width + 5, top + BAR - 3, "start", 10, true, text);
    }
    return y + height + 6;
}

/* The rates of one domain. */
static double bars_of(const compare_report *r, const char *domain, FILE *to, double y)
{
    int drawn = 0, left_out = 0;
    for (int i = 0; i < r->n_rows; i++) {
        const json *e = compare_any(r, &r->rows[i]);
        if (strcmp(json_text(e, "domain", ""), domain) != 0 ||
            !(bench_unit_scale(json_text(e, "unit", "")) > 0))
            continue;
        if (drawn == DOMAIN_MOST || !is_drawn(r, &r->rows[i])) {
            left_out++;
            continue;
        }
        if (drawn++ == 0)
            label(to, 20, y += 24, "start", 14, false, domain);
        y = bar_row(r, &r->rows[i], to, y + (drawn == 1 ? 8 : 0));
    }
    if (left_out && drawn) {
        char text[64];
        snprintf(text, sizeof text, "not drawn, but in the table: %d more rows", left_out);
        label(to, BARS_LEFT, y += 10, "start", 10, true, text);
    }
    return y;
}

static double bars(const compare_report *r, FILE *to, double y)
{
    double begin = y;
    label(to, 20, y, "start", 17, false,
          r->n == 1 ? "Rates, each row relative to the best of its unit"
                    : "Rates of what several runs have, each row relative to its best run");
    for (int d = 0; d < bench_domain_count; d++)
        if (bench_domains[d].list) /* the others measure the card, not the product */
            y = bars_of(r, bench_domains[d].name, to, y);
    if (y <= begin)
        label(to, 40, y += 18, "start", 11, true, "no rates of align, apsp, infer or search to compare");
    return y + 24;
}

/* --- rooflines ------------------------------------------------------------------------------------------ */

enum { ROOF_HEIGHT = 430, MOST_LEVELS = 24, MOST_GROUPS = 48, MOST_LABELS = 48 };

typedef struct level { /* a ceiling */
    const char *name;
    double rate;
    double label_at; /* y */
} level;

typedef struct group { /* results of one kernel */
    const json *best;  /* of the greatest share */
    double share;
    bool drawn;
} group;

typedef struct roof {
    const compare_report *r;
    int run;
    FILE *to;
    double bandwidth;
    level levels[MOST_LEVELS];
    int n_levels;
    group groups[MOST_GROUPS];
    int n_groups;
    double x0, x1, y0, y1;             /* the field: left, right, bottom, top */
    double low, high, bottom, ceiling; /* decades */
    struct place {
        double x, y;
    } labels[MOST_LABELS];
    int n_labels;
} roof;

static double across(const roof *f, double operations_per_byte)
{
    return f->x0 + (log10(operations_per_byte) - f->low) / (f->high - f->low) * (f->x1 - f->x0);
}

static double up(const roof *f, double rate)
{
    return f->y0 - (log10(rate) - f->bottom) / (f->ceiling - f->bottom) * (f->y0 - f->y1);
}

static double ceiling_of(const json *root, const char *name)
{
    const json *all = json_get(root, "ceilings");
    for (const json *e = all ? all->child : NULL; e; e = e->next)
        if (strcmp(json_text(e, "name", ""), name) == 0)
            return json_number(e, "per_second", 0);
    return 0;
}

static bool is_bandwidth(const char *ceiling)
{
    return strcmp(ceiling, "copy") == 0 || strcmp(ceiling, "read") == 0;
}

/* Where a result lies; false: it has no place. What is bounded by bandwidth lies below the slope, at the
 * operations that its bytes feed. */
static bool point_of(const roof *f, const json *e, double *x, double *y)
{
    const char *name = json_text(e, "ceiling", "");
    double rate = ceiling_of(f->r->runs[f->run].root, name) * json_number(e, "share", 0);
    *x = json_number(e, "operations_per_byte", 0);
    *y = is_bandwidth(name) ? rate * *x : rate;
    return *x > 0 && *y > 0;
}

static bool same_kernel(const json *a, const json *b)
{
    static const char *const names[] = {"domain", "name", "backend"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(json_text(a, names[i], ""), json_text(b, names[i], "")) != 0)
            return false;
    return true;
}

static int by_rate(const void *a, const void *b)
{
    double x = ((const level *)a)->rate, y = ((const level *)b)->rate;
    return (x < y) - (x > y);
}

/* The kernels with a share of a ceiling, and these ceilings. */
static void gather(roof *f)
{
    const json *root = f->r->runs[f->run].root;
    for (const json *e = f->r->runs[f->run].results->child; e; e = e->next) {
        const char *name = json_text(e, "ceiling", "");
        double share = json_number(e, "share", 0), x, y, rate = ceiling_of(root, name);
        if (!(share > 0) || !(rate > 0) || strcmp(json_text(e, "domain", ""), "techniques") == 0)
            continue;
        bool drawn = point_of(f, e, &x, &y);
        int i = 0;
        while (i < f->n_groups && !same_kernel(f->groups[i].best, e))
            i++;
        if (i == f->n_groups && i < MOST_GROUPS)
            f->groups[f->n_groups++] = (group){e, 0, false};
        if (i < f->n_groups &&
            (drawn > f->groups[i].drawn || (drawn == f->groups[i].drawn && share > f->groups[i].share)))
            f->groups[i] = (group){e, share, drawn};
        for (i = 0; i < f->n_levels && strcmp(f->levels[i].name, name) != 0;)
            i++;
        if (drawn && i == f->n_levels && i < MOST_LEVELS && !is_bandwidth(name))
            f->levels[f->n_levels++] = (level){name, rate, 0};
    }
    qsort(f->levels, (size_t)f->n_levels, sizeof *f->levels, by_rate);
}

/* Axes that hold all points and ceilings, five decades at the most. */
static void scale(roof *f)
{
    double most = f->n_levels ? f->levels[0].rate : f->bandwidth, least = most;
    for (const json *e = f->r->runs[f->run].results->child; e; e = e->next) {
        double x, y;
        if (!point_of(f, e, &x, &y))
            continue;
        most = fmax(most, y);
        least = fmin(least, y);
    }
    f->low = 0, f->high = 5.5;
    f->ceiling = log10(most) + 0.25;
    f->bottom = fmax(floor(log10(least) * 2 - 0.2) / 2, f->ceiling - 5);
    f->bottom = fmin(f->bottom, f->ceiling - 2);
}

static void field(const roof *f)
{
    char text[64];
    fprintf(f->to, "<rect class=\"field\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\"/>\n", f->x0,
            f->y1, f->x1 - f->x0, f->y0 - f->y1);
    for (int d = 0; d <= (int)f->high; d++) {
        double x = across(f, pow(10, d));
        line(f->to, "grid", x, f->y0, x, f->y1);
        snprintf(text, sizeof text, "%.0f", pow(10, d));
        label(f->to, x, f->y0 + 15, "middle", 11, true, text);
    }
    for (int d = (int)ceil(f->bottom); d <= (int)floor(f->ceiling); d++) {
        double y = up(f, pow(10, d));
        line(f->to, "grid", f->x0, y, f->x1, y);
        snprintf(text, sizeof text, "%g T/s", pow(10, d - 12));
        label(f->to, f->x0 - 6, y + 4, "end", 11, true, text);
    }
    label(f->to, (f->x0 + f->x1) / 2, f->y0 + 33, "middle", 11, false,
          "operations of the ceiling's kind for a byte of device memory");
}

/* The slope of the bandwidth, and the ceilings with their names one below the other at the right. */
static void ceilings(roof *f)
{
    enum { APART = 14 };
    char text[96];
    double most = f->n_levels ? f->levels[0].rate : pow(10, f->ceiling);
    double from = fmax(1, pow(10, f->bottom) / f->bandwidth), knee = fmax(from, most / f->bandwidth);
    line(f->to, "roof", across(f, from), up(f, from * f->bandwidth), across(f, knee), up(f, most));
    snprintf(text, sizeof text, "copying, %.2f TB/s", f->bandwidth * 1e-12);
    double middle = sqrt(from * knee), x = across(f, middle), y = up(f, middle * f->bandwidth);
    double angle = -atan2(up(f, from * f->bandwidth) - up(f, most), across(f, knee) - across(f, from));
    if (knee > 4 * from) {
        fprintf(f->to, "<g transform=\"translate(%.1f %.1f) rotate(%.1f)\">", x, y, angle * 57.29578);
        label(f->to, 0, -5, "middle", 11, false, text);
        fprintf(f->to, "</g>\n");
    } else {
        label(f->to, f->x0 + 6, f->y1 + 14, "start", 11, false, text);
    }
    for (int i = 0; i < f->n_levels; i++) {
        level *v = &f->levels[i];
        v->label_at = up(f, v->rate);
        if (i > 0 && v->label_at < v[-1].label_at + APART)
            v->label_at = v[-1].label_at + APART;
        if (i == 0 || v[-1].rate / v->rate > 1.03) /* nearly equal ones are one line */
            line(f->to, "roof", across(f, v->rate / f->bandwidth), up(f, v->rate), f->x1, up(f, v->rate));
        line(f->to, "lead", f->x1, up(f, v->rate), f->x1 + 16, v->label_at);
        char rate[32];
        rate_text(rate, sizeof rate, v->rate * 1e-12, "T/s");
        snprintf(text, sizeof text, "%.40s, %s", v->name, rate);
        label(f->to, f->x1 + 20, v->label_at + 4, "start", 11, false, text);
    }
}

/* A number beside a point, moved until it covers no other one. */
static void number(roof *f, double x, double y, const char *text)
{
    static const int moves[] = {0, 12, -12, 24, -24, 36, -36, 48, -48, 60, -60};
    double at_x = x + 7, at_y = y + 4;
    bool free = false;
    for (size_t m = 0; m < sizeof moves / sizeof *moves && !free; m++)
        for (int side = 0; side < 2 && !free; side++) {
            at_x = side ? x - 21 : x + 7;
            at_y = y + 4 + moves[m];
            free = at_y < f->y0 - 2 && at_y > f->y1 + 10;
            for (int i = 0; i < f->n_labels && free; i++)
                free = fabs(f->labels[i].x - at_x) > 15 || fabs(f->labels[i].y - at_y) > 11;
        }
    if (f->n_labels < MOST_LABELS)
        f->labels[f->n_labels++] = (struct place){at_x, at_y};
    if (fabs(at_y - y - 4) > 8)
        line(f->to, "lead", x, y, at_x > x ? at_x - 1 : at_x + 14, at_y - 4);
    label(f->to, at_x, at_y, "start", 11, false, text);
}

static bool is_inside(const roof *f, double x, double y)
{
    return x >= 1 && x <= pow(10, f->high) && y >= pow(10, f->bottom);
}

static void points(roof *f)
{
    char text[256];
    double x, y;
    for (const json *e = f->r->runs[f->run].results->child; e; e = e->next) {
        if (!point_of(f, e, &x, &y) || !is_inside(f, x, y))
            continue;
        fprintf(f->to, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill-opacity=\"0.75\"><title>",
                f->run % COLOURS, across(f, x), up(f, y));
        snprintf(text, sizeof text, "%s %s, %s, %.40s: %.0f %% of %s", json_text(e, "domain", ""),
                 json_text(e, "name", ""), json_text(e, "backend", ""), json_text(e, "shape", ""),
                 100 * json_number(e, "share", 0), json_text(e, "ceiling", ""));
        compare_text(f->to, text, false);
        fprintf(f->to, "</title></circle>\n");
    }
    for (int i = 0; i < f->n_groups; i++)
        if (f->groups[i].drawn && point_of(f, f->groups[i].best, &x, &y) && is_inside(f, x, y)) {
            snprintf(text, sizeof text, "%d", i + 1);
            number(f, across(f, x), up(f, y), text);
        }
}

/* What the numbers mean, in two columns. Returns the height. */
static double key(const roof *f, double top)
{
    int half = (f->n_groups + 1) / 2;
    for (int i = 0; i < f->n_groups; i++) {
        const json *e = f->groups[i].best;
        char text[256], cut[96], number_text[24];
        double place_x, place_y;
        snprintf(number_text, sizeof number_text, "%d", i + 1);
        snprintf(text, sizeof text, "%s %s, %s: %.*f %% of %s%s", json_text(e, "domain", ""),
                 json_text(e, "name", ""), json_text(e, "backend", ""), f->groups[i].share < 0.1 ? 1 : 0,
                 100 * f->groups[i].share, json_text(e, "ceiling", ""),
                 point_of(f, e, &place_x, &place_y) && is_inside(f, place_x, place_y) ? "" : " (not drawn)");
        double x = 20 + i / half * 460, y = top + 16 * (i % half);
        label(f->to, x + 18, y, "end", 11, false, number_text);
        label(f->to, x + 24, y, "start", 11, true, shortened(cut, sizeof cut, text, 72));
    }
    return 16 * half;
}

static double roofline(const compare_report *r, int k, FILE *to, double top)
{
    char text[160];
    roof f = {.r = r,
              .run = k,
              .to = to,
              .bandwidth = ceiling_of(r->runs[k].root, "copy"),
              .x0 = 80,
              .x1 = WIDTH - 230,
              .y0 = top + ROOF_HEIGHT - 50,
              .y1 = top + 14};
    gather(&f);
    snprintf(text, sizeof text, "Roofline of %s", r->runs[k].label);
    label(to, 20, top, "start", 17, false, text);
    if (!f.n_groups || !(f.bandwidth > 0)) {
        label(to, 40, top + 20, "start", 11, true, "no results with a ceiling in this run");
        return top + 50;
    }
    scale(&f);
    field(&f);
    ceilings(&f);
    points(&f);
    return top + ROOF_HEIGHT + 10 + key(&f, top + ROOF_HEIGHT + 8) + 24;
}

void compare_draw(compare_report *r)
{
    char *body = NULL;
    size_t length;
    FILE *to = open_memstream(&body, &length);
    if (!to)
        return;
    double y = bars(r, to, legend(r, to, 30) + 10);
    for (int k = 0; k < r->n; k++)
        y = roofline(r, k, to, y + 10);
    if (fclose(to) == 0)
        fprintf(
            r->svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lw\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\">\n%s<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n",
            WIDTH, y + 10, WIDTH, y + 10, style, body);
    free(body);
}
