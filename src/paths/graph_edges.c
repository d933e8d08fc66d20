/* graph_edges.c - edge lists: tables of blanks, tabs or commas; STRING's, BioGRID's, SNAP's and one's own. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "paths/graph.h"
#include "paths/lines.h"

/* Widest table; BioGRID's has 37 columns. */
enum { LW_MAX_COLUMNS = 1024 };

typedef struct row {
    int n;
    char *field[LW_MAX_COLUMNS];
} row;

typedef struct table {
    lw_lines *lines;
    const lw_graph_options *options;
    char delimiter; /* '\t', ',' or ' ' for blanks */
    int n_columns;
    int from, to, weight; /* columns; weight -1: 1 each */
    lw_names names;
    lw_edges edges;
} table;

/* Cuts a line in place. LW_E_INPUT: too many columns, an open quote. */
static lw_status cut(const table *t, char *line, row *out, lw_error *err)
{
    out->n = 0;
    for (;;) {
        char *field;
        LW_TRY(lw_lines_field(t->lines, &line, t->delimiter, &field, err));
        if (!field)
            return LW_OK;
        if (out->n == LW_MAX_COLUMNS)
            return lw_lines_bad(t->lines, NULL, err, "more than %d columns", LW_MAX_COLUMNS);
        out->field[out->n++] = field;
    }
}

static bool is_number(const char *text)
{
    lw_weight w;
    return lw_weight_parse(text, &w) == NULL;
}

static bool is_whole_label(const char *text)
{
    text += *text == '-' || *text == '+';
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Words that head the two columns of an unweighted table. */
static bool is_heading(const char *text)
{
    static const char *const words[] = {"source",     "target",       "from",         "to",     "src",
                                        "dst",        "node1",        "node2",        "node_1", "node_2",
                                        "protein1",   "protein2",     "gene1",        "gene2",  "gene_a",
                                        "gene_b",     "interactor_a", "interactor_b", "origin", "destination",
                                        "fromnodeid", "tonodeid",     "vertex1",      "vertex2"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* The column that `spec` means: its number, or its name in the heading (which may be absent). */
static int find_column(const table *t, const char *spec, const row *heading)
{
    if (heading)
        for (int c = 0; c < heading->n; c++)
            if (strcmp(heading->field[c], spec) == 0)
                return c;
    if (spec[strspn(spec, "0123456789")] == '\0' && strlen(spec) < 6) {
        int number = atoi(spec);
        if (number >= 1 && number <= t->n_columns)
            return number - 1;
    }
    return -1;
}

static lw_status no_column(const table *t, const char *option, const char *spec, const row *heading,
                           lw_error *err)
{
    char names[300] = "";
    size_t used = 0;
    for (int c = 0; heading && c < heading->n && used + 40 < sizeof names; c++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.30s", c ? ", " : "; they are ",
                                 heading->field[c]);
    return lw_fail(err, LW_E_ARG, "%s: no column '%s' for %s among its %d%s", t->lines->name, spec, option,
                   t->n_columns, names);
}

/* Decides on heading and columns, given the first two rows (the second may be NULL or of another width; the
 * first one's line number is for messages) and the last comment before them, cut, or NULL. *skip: the first
 * row is a heading. */
static lw_status choose_columns(table *t, const row *first, int64_t first_number, const row *second,
                                const row *comment, bool *skip, lw_error *err)
{
    const lw_graph_options *o = t->options;
    const row *body = second && second->n == first->n ? second : first;
    t->n_columns = first->n;
    const row *heading = comment && comment->n == first->n ? comment : NULL;
    *skip = false;
    /* names may stand in the first row in place of a comment */
    const char *specs[] = {o->from, o->to, o->weight && strcmp(o->weight, "none") != 0 ? o->weight : NULL};
    for (int i = 0; i < 3; i++)
        if (specs[i] && find_column(t, specs[i], heading) < 0) {
            heading = first;
            *skip = true;
        }
    static const char *const options[] = {"--from", "--to", "--weight"};
    int *columns[] = {&t->from, &t->to, &t->weight};
    t->from = 0;
    t->to = 1;
    t->weight = -1;
    for (int i = 0; i < 3; i++) {
        if (!specs[i])
            continue;
        *columns[i] = find_column(t, specs[i], heading);
        if (*columns[i] < 0)
            return no_column(t, options[i], specs[i], heading, err);
    }
    static const char *const symbols[] = {"Official Symbol Interactor A", "Official Symbol Interactor B"};
    const row *named = heading ? heading : first;
    bool biogrid = find_column(t, symbols[0], named) >= 0 && find_column(t, symbols[1], named) >= 0;
    if (biogrid) {
        *skip = *skip || named == first;
        t->from = o->from ? t->from : find_column(t, symbols[0], named);
        t->to = o->to ? t->to : find_column(t, symbols[1], named);
    }
    if (t->n_columns < 2 || body == first)
        t->lines->number = first_number;
    if (!o->weight && !biogrid && t->n_columns > 2) {
        if (t->n_columns > 3 && !is_number(body->field[2]))
            return lw_lines_bad(
                t->lines, body->field[2], err,
                "%d columns, of which the third is no weight (say --weight COLUMN or --weight none)",
                t->n_columns);
        t->weight = 2;
    }
    if (t->n_columns < 2)
        return lw_lines_bad(t->lines, first->field[0], err, "an edge needs two vertices");
    if (t->weight < 0 && o->transform != LW_TRANSFORM_NONE)
        return lw_graph_no_weights(t->lines->name, err);
    if (*skip)
        return LW_OK;
    if (t->weight >= 0) {
        const char *wrong;
        lw_weight w;
        wrong = lw_weight_parse(first->field[t->weight], &w);
        *skip = second && wrong && strcmp(wrong, "the weight is not a number") == 0 &&
                second->n == first->n && is_number(second->field[t->weight]);
    } else {
        const char *a = first->field[t->from], *b = first->field[t->to];
        *skip = (is_heading(a) && is_heading(b)) ||
                (second && second->n == first->n && !is_whole_label(a) && !is_whole_label(b) &&
                 is_whole_label(second->field[t->from]) && is_whole_label(second->field[t->to]));
    }
    return LW_OK;
}

static lw_status add_row(table *t, const row *r, lw_error *err)
{
    if (r->n != t->n_columns)
        return lw_lines_bad(t->lines, NULL, err,
                            "%d columns where the first line has %d (it begins with '%.60s')", r->n,
                            t->n_columns, r->n ? r->field[0] : "");
    int32_t from, to;
    const char *a = r->field[t->from], *b = r->field[t->to];
    if (*a == '\0' || *b == '\0')
        return lw_lines_bad(t->lines, NULL, err, "an empty vertex name");
    lw_weight w = lw_weight_whole(1);
    if (t->weight >= 0) {
        const char *text = r->field[t->weight], *wrong = lw_weight_parse(text, &w);
        if (!wrong)
            wrong = lw_weight_transform(&w, t->options->transform);
        if (wrong)
            return lw_lines_bad(t->lines, text, err, "%s", wrong);
    }
    LW_TRY(lw_names_intern(&t->names, a, strlen(a), &from, err));
    LW_TRY(lw_names_intern(&t->names, b, strlen(b), &to, err));
    return lw_edges_add(&t->edges, from, to, w, err);
}

/* The next line that is neither empty nor a comment; the last comment passed on the way goes to *comment
 * (malloc'ed, replaces what was there) if comment is not NULL. */
static lw_status next_data(lw_lines *lines, char **line, char **comment, lw_error *err)
{
    for (;;) {
        LW_TRY(lw_lines_next(lines, line, err));
        if (*line == NULL)
            return LW_OK;
        char *p = *line + strspn(*line, " \t");
        if (*p == '\0')
            continue;
        if (*p != '#' && *p != '%')
            return LW_OK;
        if (comment) {
            free(*comment);
            *comment = strdup(p + strspn(p, "#% "));
            if (!*comment)
                return lw_fail_memory(err, strlen(p));
        }
    }
}

/* Three columns or more between blanks, and no comma but within a number. */
static bool has_decimal_commas(const char *line)
{
    int columns = 0;
    for (const char *p = line; *p; p++) {
        columns += !isblank((unsigned char)*p) && (p == line || isblank((unsigned char)p[-1]));
        if (*p == '"' ||
            (*p == ',' && (p == line || !isdigit((unsigned char)p[-1]) || !isdigit((unsigned char)p[1]))))
            return false;
    }
    return columns >= 3;
}

lw_status lw_graph_read_edges(lw_graph **out, lw_lines *lines, const lw_graph_options *options,
                              const lw_host *host, lw_error *err)
{
    lw_status status = LW_OK;
    table t = {.lines = lines, .options = options};
    char *line = NULL, *comment = NULL, *first_text = NULL;
    row *rows = malloc(3 * sizeof *rows); /* 0: this line, 1: the first line, 2: the comment before it */
    if (!rows)
        return lw_fail_memory(err, 3 * sizeof *rows);
    LW_TRY_END(next_data(lines, &line, &comment, err));
    if (!line) {
        status = lw_fail(err, LW_E_INPUT, "%s: no edges in this file", lines->name);
        goto end;
    }
    int64_t first_number = lines->number;
    t.delimiter = lw_lines_delimiter(line);
    if (t.delimiter == ',' && has_decimal_commas(line)) {
        status =
            lw_fail(err, LW_E_INPUT,
                    "%s: line %lld: do commas or blanks separate its columns? Write decimal points, or tabs "
                    "between the columns, found '%.80s'",
                    lines->name, (long long)first_number, line);
        goto end;
    }
    first_text = strdup(line);
    if (!first_text) {
        status = lw_fail_memory(err, strlen(line));
        goto end;
    }
    LW_TRY_END(cut(&t, first_text, &rows[1], err));
    if (comment)
        LW_TRY_END(cut(&t, comment, &rows[2], err));
    LW_TRY_END(next_data(lines, &line, NULL, err));
    if (line)
        LW_TRY_END(cut(&t, line, &rows[0], err));
    bool skip;
    int64_t number = lines->number;
    LW_TRY_END(choose_columns(&t, &rows[1], first_number, line ? &rows[0] : NULL, comment ? &rows[2] : NULL,
                              &skip, err));
    if (skip) {
        lw_say(host, LW_SAY_INFO, "%s: line %lld is taken as the heading", lines->name,
               (long long)first_number);
    } else {
        lines->number = first_number; /* for a message */
        LW_TRY_END(add_row(&t, &rows[1], err));
    }
    lines->number = number;
    while (line) {
        LW_TRY_END(add_row(&t, &rows[0], err));
        LW_TRY_END(next_data(lines, &line, NULL, err));
        if (line)
            LW_TRY_END(cut(&t, line, &rows[0], err));
    }
    if (t.edges.n == 0) {
        status = lw_fail(err, LW_E_INPUT, "%s: no edges in this file", lines->name);
        goto end;
    }
    status = lw_graph_build(out, t.names.n, &t.edges, &t.names, true, options->undirected, 0, err);
end:
    free(rows);
    free(first_text);
    free(comment);
    lw_edges_free(&t.edges);
    lw_names_free(&t.names);
    return status;
}
