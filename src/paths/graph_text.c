/* graph_text.c - the readers of DIMACS .gr and Matrix Market. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "paths/graph.h"
#include "paths/lines.h"

/* The next word of a line, cut off in place; "" at the end. */
static char *word(char **p)
{
    char *start = *p + strspn(*p, " \t");
    char *end = start + strcspn(start, " \t");
    *p = *end ? end + 1 : end;
    *end = '\0';
    return start;
}

/* One weight of a file whose weights may be bound to be whole, transformed. */
static lw_status take_weight(const lw_lines *lines, const char *text, bool only_whole,
                             const lw_graph_options *options, lw_weight *w, lw_error *err)
{
    const char *wrong = lw_weight_parse(text, w);
    if (!wrong && only_whole && !w->is_whole)
        wrong = "the weight has a fraction, and this format promises whole ones";
    if (!wrong && options->weight) /* "none" */
        *w = lw_weight_whole(1);
    else if (!wrong)
        wrong = lw_weight_transform(w, options->transform);
    return wrong ? lw_lines_bad(lines, text, err, "%s", wrong) : LW_OK;
}

static lw_status count_entries(const lw_lines *lines, int64_t found, int64_t promised, lw_error *err)
{
    if (found == promised)
        return LW_OK;
    return lw_fail(err, LW_E_INPUT, "%s: its header promises %lld entries and there are %lld; %s",
                   lines->name, (long long)promised, (long long)found,
                   found < promised ? "the file is cut short" : "header and body do not belong together");
}

/* --- DIMACS ----------------------------------------------------------------------------------------- */

lw_status lw_graph_read_gr(lw_graph **out, lw_lines *lines, const lw_graph_options *options, lw_error *err)
{
    lw_status status = LW_OK;
    lw_edges edges = {0};
    int64_t n = -1, promised = 0;
    for (;;) {
        char *p;
        LW_TRY_END(lw_lines_next(lines, &p, err));
        if (!p)
            break;
        char first = *p;
        char *kind = word(&p);
        if (first == '\0' || first == 'c' || *kind == '\0')
            continue;
        char *a = word(&p), *b = word(&p), *c = word(&p), *rest = word(&p);
        if (strcmp(kind, "p") == 0) {
            if (n >= 0) {
                status = lw_lines_bad(lines, NULL, err, "a second 'p' line");
                goto end;
            }
            if (strcmp(a, "sp") != 0 || !lw_lines_count(b, 0, INT32_MAX, &n) ||
                !lw_lines_count(c, 0, INT64_MAX, &promised)) {
                status =
                    lw_lines_bad(lines, NULL, err,
                                 "'p sp VERTICES ARCS' was expected, found 'p %.30s %.30s %.30s'", a, b, c);
                goto end;
            }
        } else if (strcmp(kind, "a") == 0) {
            int64_t from, to;
            lw_weight w;
            if (n < 0) {
                status = lw_lines_bad(lines, NULL, err, "an arc before the 'p sp' line");
                goto end;
            }
            if (*c == '\0' || *rest != '\0') {
                status = lw_lines_bad(lines, NULL, err,
                                      "'a FROM TO WEIGHT' was expected, found 'a %.30s %.30s %.30s%s%.30s'",
                                      a, b, c, *rest ? " " : "", rest);
                goto end;
            }
            if (!lw_lines_count(a, 1, n, &from) || !lw_lines_count(b, 1, n, &to)) {
                status = lw_lines_bad(lines, lw_lines_count(a, 1, n, &from) ? b : a, err,
                                      "a vertex number from 1 to %lld was expected", (long long)n);
                goto end;
            }
            LW_TRY_END(take_weight(lines, c, true, options, &w, err));
            LW_TRY_END(lw_edges_add(&edges, from - 1, to - 1, w, err));
        } else {
            status = lw_lines_bad(lines, kind, err, "a line that begins with 'c', 'p' or 'a' was expected");
            goto end;
        }
    }
    if (n < 0) {
        status = lw_fail(err, LW_E_INPUT, "%s: no 'p sp' line; the file is %s", lines->name,
                         lines->number ? "not a DIMACS shortest-path graph" : "empty");
        goto end;
    }
    LW_TRY_END(count_entries(lines, edges.n, promised, err));
    status = lw_graph_build(out, n, &edges, NULL, false, options->undirected, 1, err);
end:
    lw_edges_free(&edges);
    return status;
}

/* --- Matrix Market ---------------------------------------------------------------------------------- */

lw_status lw_graph_read_mtx(lw_graph **out, lw_lines *lines, const lw_graph_options *options, lw_error *err)
{
    lw_status status = LW_OK;
    lw_edges edges = {0};
    char *p;
    LW_TRY(lw_lines_next(lines, &p, err));
    if (!p)
        return lw_fail(err, LW_E_INPUT, "%s: the file is empty", lines->name);
    char *banner = word(&p), *object = word(&p), *layout = word(&p), *field = word(&p), *symmetry = word(&p);
    if (strcasecmp(banner, "%%MatrixMarket") != 0 || strcasecmp(object, "matrix") != 0)
        return lw_lines_bad(lines, banner, err, "'%%%%MatrixMarket matrix ...' was expected");
    if (strcasecmp(layout, "coordinate") != 0)
        return lw_lines_bad(lines, layout, err,
                            "only coordinate matrices are read (save a dense one as .npy)");
    bool pattern = strcasecmp(field, "pattern") == 0, whole = strcasecmp(field, "integer") == 0;
    if (!pattern && !whole && strcasecmp(field, "real") != 0)
        return lw_lines_bad(lines, field, err, "the field must be integer, real or pattern");
    if (pattern && options->transform != LW_TRANSFORM_NONE)
        return lw_graph_no_weights(lines->name, err);
    bool symmetric = strcasecmp(symmetry, "symmetric") == 0;
    if (!symmetric && strcasecmp(symmetry, "general") != 0)
        return lw_lines_bad(lines, symmetry, err, "the symmetry must be general or symmetric");
    int64_t n = -1, promised = 0, found = 0;
    for (;;) {
        LW_TRY_END(lw_lines_next(lines, &p, err));
        if (!p)
            break;
        if (*p == '%')
            continue;
        char *a = word(&p), *b = word(&p), *c = word(&p), *rest = word(&p);
        if (*a == '\0')
            continue;
        if (n < 0) {
            int64_t rows, columns;
            if (!lw_lines_count(a, 0, INT32_MAX, &rows) || !lw_lines_count(b, 0, INT32_MAX, &columns) ||
                !lw_lines_count(c, 0, INT64_MAX, &promised) || *rest) {
                status = lw_lines_bad(lines, a, err, "'ROWS COLUMNS ENTRIES' was expected");
                goto end;
            }
            if (rows != columns) {
                status = lw_lines_bad(lines, NULL, err,
                                      "the matrix is not square (%lld x %lld), so it is no graph",
                                      (long long)rows, (long long)columns);
                goto end;
            }
            n = rows;
            continue;
        }
        int64_t from, to;
        lw_weight w = lw_weight_whole(1);
        if (*b == '\0' || (*c == '\0') != pattern || *rest) {
            status = lw_lines_bad(lines, NULL, err,
                                  "'ROW COLUMN%s' was expected, found '%.30s %.30s %.30s%s%.30s'",
                                  pattern ? "" : " VALUE", a, b, c, *rest ? " " : "", rest);
            goto end;
        }
        if (!lw_lines_count(a, 1, n, &from) || !lw_lines_count(b, 1, n, &to)) {
            status = lw_lines_bad(lines, lw_lines_count(a, 1, n, &from) ? b : a, err,
                                  "an index from 1 to %lld was expected", (long long)n);
            goto end;
        }
        if (!pattern)
            LW_TRY_END(take_weight(lines, c, whole, options, &w, err));
        LW_TRY_END(lw_edges_add(&edges, from - 1, to - 1, w, err));
        found++;
    }
    if (n < 0) {
        status = lw_fail(err, LW_E_INPUT, "%s: cut short: no line with the sizes", lines->name);
        goto end;
    }
    LW_TRY_END(count_entries(lines, found, promised, err));
    status = lw_graph_build(out, n, &edges, NULL, false, options->undirected || symmetric, 1, err);
end:
    lw_edges_free(&edges);
    return status;
}
