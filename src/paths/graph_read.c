/* graph_read.c - which format a file has, and the readers of DIMACS .gr, Matrix Market, GFA 1 and dense .npy.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "common/npy.h"
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

/* A count or a vertex number in [low, high]. */
static bool parse_count(const char *text, int64_t low, int64_t high, int64_t *out)
{
    size_t n = strlen(text);
    if (n == 0 || n > 18 || text[strspn(text, "0123456789")] != '\0')
        return false;
    *out = strtoll(text, NULL, 10);
    return *out >= low && *out <= high;
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

static lw_status read_gr(lw_graph **out, lw_lines *lines, const lw_graph_options *options, lw_error *err)
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
            if (strcmp(a, "sp") != 0 || !parse_count(b, 0, INT32_MAX, &n) ||
                !parse_count(c, 0, INT64_MAX, &promised)) {
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
            if (!parse_count(a, 1, n, &from) || !parse_count(b, 1, n, &to)) {
                status = lw_lines_bad(lines, parse_count(a, 1, n, &from) ? b : a, err,
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

static lw_status read_mtx(lw_graph **out, lw_lines *lines, const lw_graph_options *options, lw_error *err)
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
            if (!parse_count(a, 0, INT32_MAX, &rows) || !parse_count(b, 0, INT32_MAX, &columns) ||
                !parse_count(c, 0, INT64_MAX, &promised) || *rest) {
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
        if (!parse_count(a, 1, n, &from) || !parse_count(b, 1, n, &to)) {
            status = lw_lines_bad(lines, parse_count(a, 1, n, &from) ? b : a, err,
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

/* --- GFA 1 ------------------------------------------------------------------------------------------ */

typedef struct gfa_link {
    int32_t from, to; /* interned segments */
    bool from_reverse, to_reverse;
    int64_t from_overlap, to_overlap; /* bases of each that the overlap covers */
    int64_t line;
} gfa_link;

typedef struct gfa {
    lw_lines *lines;
    lw_names names;    /* of segments, by first mention */
    int64_t *length;   /* of each; -1: no S line yet */
    int32_t *position; /* of each among the S lines */
    int64_t capacity, n_segments;
    gfa_link *links;
    int64_t n_links, link_capacity;
} gfa;

static lw_status segment(gfa *g, const char *name, int32_t *index, lw_error *err)
{
    LW_TRY(lw_names_intern(&g->names, name, strlen(name), index, err));
    if (g->names.n > g->capacity) {
        int64_t capacity = g->capacity ? 2 * g->capacity : 256;
        int64_t *length = realloc(g->length, (size_t)capacity * sizeof *length);
        g->length = length ? length : g->length;
        int32_t *position = realloc(g->position, (size_t)capacity * sizeof *position);
        g->position = position ? position : g->position;
        if (!length || !position)
            return lw_fail_memory(err, (size_t)capacity * sizeof *length);
        for (int64_t i = g->capacity; i < capacity; i++)
            length[i] = -1;
        g->capacity = capacity;
    }
    return LW_OK;
}

/* Splits at tabs. */
static char *column(char **p)
{
    char *start = *p, *end = start + strcspn(start, "\t");
    *p = *end ? end + 1 : end;
    *end = '\0';
    return start;
}

static lw_status take_segment(gfa *g, char *p, lw_error *err)
{
    char *name = column(&p), *sequence = column(&p);
    if (*name == '\0' || *sequence == '\0')
        return lw_lines_bad(g->lines, name, err, "'S NAME SEQUENCE' was expected");
    int32_t index;
    LW_TRY(segment(g, name, &index, err));
    if (g->length[index] >= 0)
        return lw_lines_bad(g->lines, name, err, "a second segment of this name");
    int64_t length = (int64_t)strlen(sequence);
    if (strcmp(sequence, "*") == 0) {
        length = -1;
        while (*p != '\0') {
            char *tag = column(&p);
            if (strncmp(tag, "LN:i:", 5) == 0 && !parse_count(tag + 5, 0, INT32_MAX, &length))
                return lw_lines_bad(g->lines, tag, err, "a length was expected");
        }
        if (length < 0)
            return lw_lines_bad(g->lines, name, err, "neither a sequence nor an LN tag for segment");
    }
    g->length[index] = length;
    g->position[index] = (int32_t)g->n_segments++;
    return LW_OK;
}

static lw_status take_link(gfa *g, char *p, lw_error *err)
{
    char *from = column(&p), *from_side = column(&p), *to = column(&p), *to_side = column(&p),
         *cigar = column(&p);
    gfa_link l = {.line = g->lines->number};
    const char *sides = "+-";
    if (*to_side == '\0' || from_side[0] == '\0' || from_side[1] || to_side[1] ||
        !strchr(sides, *from_side) || !strchr(sides, *to_side))
        return lw_lines_bad(g->lines, NULL, err,
                            "'L FROM +/- TO +/- OVERLAP' was expected, found 'L %.40s %.8s %.40s %.8s'", from,
                            from_side, to, to_side);
    l.from_reverse = *from_side == '-';
    l.to_reverse = *to_side == '-';
    for (const char *c = cigar; *c != '\0' && strcmp(cigar, "*") != 0;) {
        char *end;
        long long n = strtoll(c, &end, 10);
        if (end == c || n < 0 || n > INT32_MAX || *end == '\0' || !strchr("MIDNSHPX=", *end))
            return lw_lines_bad(g->lines, cigar, err, "the overlap must be a CIGAR or *");
        l.from_overlap += strchr("MDN=X", *end) ? n : 0;
        l.to_overlap += strchr("MIS=X", *end) ? n : 0;
        c = end + 1;
    }
    LW_TRY(segment(g, from, &l.from, err));
    LW_TRY(segment(g, to, &l.to, err));
    if (g->n_links == g->link_capacity) {
        int64_t capacity = g->link_capacity ? 2 * g->link_capacity : 256;
        gfa_link *larger = realloc(g->links, (size_t)capacity * sizeof *larger);
        if (!larger)
            return lw_fail_memory(err, (size_t)capacity * sizeof *larger);
        g->links = larger;
        g->link_capacity = capacity;
    }
    g->links[g->n_links++] = l;
    return LW_OK;
}

/* A link a -> b is the arc a -> b of weight length(b) - overlap, and its mirror b' -> a' of weight
 * length(a) - overlap: entering a segment costs the bases that it adds. */
static lw_status take_links(const gfa *g, const lw_graph_options *options, lw_edges *edges, lw_error *err)
{
    for (int64_t i = 0; i < g->n_links; i++) {
        const gfa_link *l = &g->links[i];
        for (int side = 0; side < 2; side++) {
            int32_t s = side ? l->to : l->from;
            if (g->length[s] < 0)
                return lw_fail(err, LW_E_INPUT,
                               "%s: line %lld: link to segment '%.100s', which has no S line", g->lines->name,
                               (long long)l->line, lw_names_text(&g->names, s));
            if (g->length[s] < (side ? l->to_overlap : l->from_overlap))
                return lw_fail(err, LW_E_INPUT, "%s: line %lld: the overlap is longer than segment '%.100s'",
                               g->lines->name, (long long)l->line, lw_names_text(&g->names, s));
        }
        int64_t a = 2 * (int64_t)g->position[l->from] + l->from_reverse;
        int64_t b = 2 * (int64_t)g->position[l->to] + l->to_reverse;
        lw_weight forward = lw_weight_whole(g->length[l->to] - l->to_overlap);
        lw_weight mirror = lw_weight_whole(g->length[l->from] - l->from_overlap);
        const char *wrong = NULL;
        if (options->weight) {
            forward = mirror = lw_weight_whole(1);
        } else {
            wrong = lw_weight_transform(&forward, options->transform);
            wrong = wrong ? wrong : lw_weight_transform(&mirror, options->transform);
        }
        if (wrong)
            return lw_fail(err, LW_E_INPUT, "%s: line %lld: %s", g->lines->name, (long long)l->line, wrong);
        LW_TRY(lw_edges_add(edges, a, b, forward, err));
        LW_TRY(lw_edges_add(edges, b ^ 1, a ^ 1, mirror, err));
    }
    return LW_OK;
}

static lw_status read_gfa(lw_graph **out, lw_lines *lines, const lw_graph_options *options, lw_error *err)
{
    lw_status status = LW_OK;
    gfa g = {.lines = lines};
    lw_edges edges = {0};
    lw_names ends = {0};
    char *text = NULL;
    int32_t *order = NULL;
    for (;;) {
        char *p;
        LW_TRY_END(lw_lines_next(lines, &p, err));
        if (!p)
            break;
        char *kind = column(&p);
        if (strcmp(kind, "S") == 0)
            LW_TRY_END(take_segment(&g, p, err));
        else if (strcmp(kind, "L") == 0)
            LW_TRY_END(take_link(&g, p, err));
        else if (strcmp(kind, "H") == 0 && strstr(p, "VN:Z:2")) {
            status = lw_lines_bad(lines, NULL, err, "this is GFA 2; convert it to GFA 1");
            goto end;
        }
    }
    if (g.n_segments == 0) {
        status = lw_fail(err, LW_E_INPUT, "%s: no segments (S lines) in this file", lines->name);
        goto end;
    }
    if (g.n_segments > INT32_MAX / 2) {
        status = lw_fail(err, LW_E_RANGE, "%s: more than 2^31 - 1 vertices", lines->name);
        goto end;
    }
    LW_TRY_END(take_links(&g, options, &edges, err));
    order = malloc((size_t)g.n_segments * sizeof *order);
    text = malloc(g.names.used + 2);
    if (!order || !text) {
        status = lw_fail_memory(err, (size_t)g.n_segments * sizeof *order);
        goto end;
    }
    for (int32_t s = 0; s < g.names.n; s++)
        if (g.length[s] >= 0)
            order[g.position[s]] = s;
    for (int64_t i = 0; i < g.n_segments; i++)
        for (int side = 0; side < 2; side++) {
            int32_t vertex;
            int length = sprintf(text, "%s%c", lw_names_text(&g.names, order[i]), "+-"[side]);
            LW_TRY_END(lw_names_intern(&ends, text, (size_t)length, &vertex, err));
        }
    status = lw_graph_build(out, ends.n, &edges, &ends, false, options->undirected, 0, err);
end:
    free(order);
    free(text);
    free(g.length);
    free(g.position);
    free(g.links);
    lw_names_free(&g.names);
    lw_names_free(&ends);
    lw_edges_free(&edges);
    return status;
}

/* --- dense .npy ------------------------------------------------------------------------------------- */

/* One entry: false where there is no edge; *wrong for what is no weight. */
static bool dense_entry(const lw_npy *a, int64_t i, lw_weight *w, const char **wrong)
{
#define LW_CASE(TAG, T, MAX)                                                                                 \
    case TAG: {                                                                                              \
        T v = ((const T *)a->data)[i];                                                                       \
        *w = lw_weight_whole((int64_t)v);                                                                    \
        if (v == MAX)                                                                                        \
            return false;                                                                                    \
        break;                                                                                               \
    }
    switch (a->dtype) {
        LW_CASE(LW_I8, int8_t, INT8_MAX)
        LW_CASE(LW_U8, uint8_t, UINT8_MAX)
        LW_CASE(LW_I16, int16_t, INT16_MAX)
        LW_CASE(LW_U16, uint16_t, UINT16_MAX)
        LW_CASE(LW_I32, int32_t, INT32_MAX)
        LW_CASE(LW_U32, uint32_t, UINT32_MAX)
        LW_CASE(LW_I64, int64_t, INT64_MAX)
    case LW_U64: {
        uint64_t v = ((const uint64_t *)a->data)[i];
        if (v == UINT64_MAX)
            return false;
        *w = lw_weight_whole(v > INT64_MAX ? INT64_MAX : (int64_t)v);
        break;
    }
    default: {
        double v = a->dtype == LW_F64   ? ((const double *)a->data)[i]
                   : a->dtype == LW_F32 ? (double)((const float *)a->data)[i]
                                        : (double)lw_half_to_float(((const uint16_t *)a->data)[i]);
        if (isnan(v)) {
            *wrong = "not a number (NaN)";
            return false;
        }
        if (isinf(v)) {
            if (v < 0)
                *wrong = "minus infinity";
            return false;
        }
        *w = lw_weight_real(v);
        return true;
    }
    }
#undef LW_CASE
    if (w->whole > LW_WEIGHT_MAX || w->whole < -LW_WEIGHT_MAX)
        *wrong = "an integer beyond 2^53";
    return true;
}

lw_status lw_graph_read_npy(lw_graph **out, const char *path, const lw_graph_options *options, lw_error *err)
{
    lw_status status = LW_OK;
    lw_npy a = {0};
    lw_graph *g = NULL;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    LW_TRY(lw_npy_read(&a, path, err));
    if (a.ndim != 2 || a.shape[0] != a.shape[1]) {
        char shape[64] = "";
        for (int k = 0; k < a.ndim && k < 3; k++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", k ? " x " : "",
                     (long long)a.shape[k]);
        status = lw_fail(err, LW_E_INPUT, "%s: a square matrix was expected, found %s%s", name,
                         a.ndim ? shape : "a single number", a.ndim > 3 ? " x ..." : "");
        goto end;
    }
    if (a.dtype == LW_BOOL) {
        status = lw_fail(
            err, LW_E_INPUT,
            "%s: dtype bool holds no weights; save integers or floats, with the type's largest value or inf "
            "where there is no edge",
            name);
        goto end;
    }
    int64_t n = a.shape[0], arcs = 0, capacity = 1024;
    if (n > INT32_MAX) {
        status = lw_fail(err, LW_E_RANGE, "%s: more than 2^31 - 1 vertices", name);
        goto end;
    }
    /* rows are in order already, so this goes straight into compressed rows; weights begin whole and turn
     * into floats at the first fraction */
    g = calloc(1, sizeof *g);
    if (g) {
        g->n = n;
        g->start = calloc((size_t)n + 1, sizeof *g->start);
        g->to = malloc((size_t)capacity * sizeof *g->to);
        g->whole = malloc((size_t)capacity * sizeof *g->whole);
    }
    if (!g || !g->start || !g->to || !g->whole) {
        status = lw_fail_memory(err, (size_t)n * sizeof *g->start);
        goto end;
    }
    for (int64_t i = 0; i < n; i++) {
        if (arcs + n > capacity) {
            int64_t larger = 2 * capacity > arcs + n ? 2 * capacity : arcs + n;
            larger = larger < n * n ? larger : n * n;
            int32_t *to = realloc(g->to, (size_t)larger * sizeof *to);
            g->to = to ? to : g->to;
            void *weights =
                realloc(g->whole ? (void *)g->whole : (void *)g->real, (size_t)larger * sizeof *g->whole);
            if (weights && g->whole)
                g->whole = weights;
            else if (weights)
                g->real = weights;
            if (!to || !weights) {
                status = lw_fail_memory(err, (size_t)larger * sizeof *g->whole);
                goto end;
            }
            capacity = larger;
        }
        for (int64_t j = 0; j < n; j++) {
            const char *wrong = NULL;
            lw_weight w = {0}, back = {0};
            bool is_edge = dense_entry(&a, i * n + j, &w, &wrong);
            if (!wrong && is_edge)
                wrong = options->weight ? (w = lw_weight_whole(1), NULL)
                                        : lw_weight_transform(&w, options->transform);
            if (!wrong && options->undirected && dense_entry(&a, j * n + i, &back, &wrong) && !wrong) {
                wrong = options->weight ? (back = lw_weight_whole(1), NULL)
                                        : lw_weight_transform(&back, options->transform);
                if (!is_edge || back.real < w.real)
                    w = back;
                is_edge = true;
            }
            if (wrong && i != j) {
                status = lw_fail(err, LW_E_INPUT, "%s: entry (%lld, %lld): %s", name, (long long)i,
                                 (long long)j, wrong);
                goto end;
            }
            if (wrong || !is_edge || (i == j && w.real >= 0))
                continue;
            if (!w.is_whole && g->whole) {
                g->real = (double *)(void *)g->whole;
                for (int64_t e = 0; e < arcs; e++) {
                    int64_t before;
                    memcpy(&before, &g->real[e], sizeof before);
                    g->real[e] = (double)before;
                }
                g->whole = NULL;
            }
            g->to[arcs] = (int32_t)j;
            if (g->whole)
                g->whole[arcs] = w.whole;
            else
                g->real[arcs] = w.real;
            arcs++;
            g->negative = g->negative || w.real < 0;
        }
        g->start[i + 1] = arcs;
    }
    *out = g;
    g = NULL;
end:
    lw_npy_free(&a);
    lw_graph_free(g);
    return status;
}

/* --- which format ----------------------------------------------------------------------------------- */

static bool ends_with(const char *path, size_t length, const char *suffix)
{
    size_t n = strlen(suffix);
    return length > n && strncasecmp(path + length - n, suffix, n) == 0;
}

static lw_graph_format format_by_suffix(const char *path)
{
    size_t length = strlen(path);
    if (ends_with(path, length, ".npy"))
        return LW_GRAPH_NPY;
    if (ends_with(path, length, ".gz"))
        length -= 3;
    else if (ends_with(path, length, ".bgz"))
        length -= 4;
    if (ends_with(path, length, ".gr"))
        return LW_GRAPH_GR;
    if (ends_with(path, length, ".mtx") || ends_with(path, length, ".mm"))
        return LW_GRAPH_MTX;
    if (ends_with(path, length, ".gfa"))
        return LW_GRAPH_GFA;
    if (ends_with(path, length, ".tsv") || ends_with(path, length, ".csv") || ends_with(path, length, ".txt"))
        return LW_GRAPH_EDGES;
    return LW_GRAPH_AUTO;
}

static lw_graph_format format_by_content(const char *bytes)
{
    if (strncasecmp(bytes, "%%MatrixMarket", 14) == 0)
        return LW_GRAPH_MTX;
    if (strncmp(bytes, "H\tVN:", 5) == 0 || strncmp(bytes, "S\t", 2) == 0)
        return LW_GRAPH_GFA;
    if (strncmp(bytes, "p sp ", 5) == 0 || strncmp(bytes, "c ", 2) == 0 || strncmp(bytes, "c\n", 2) == 0)
        return LW_GRAPH_GR;
    return LW_GRAPH_EDGES;
}

lw_status lw_graph_read(lw_graph **out, const char *path, const lw_graph_options *options,
                        const lw_host *host, lw_error *err)
{
    lw_graph_format format = options->format ? options->format : format_by_suffix(path);
    if (format != LW_GRAPH_EDGES && format != LW_GRAPH_AUTO &&
        (options->from || options->to || (options->weight && strcmp(options->weight, "none") != 0)))
        return lw_fail(err, LW_E_ARG, "%s: columns can be chosen in edge lists only", path);
    if (format == LW_GRAPH_NPY)
        return lw_graph_read_npy(out, path, options, err);
    lw_lines lines;
    LW_TRY(lw_lines_open(&lines, path, err));
    lw_status status = LW_OK;
    if (format == LW_GRAPH_AUTO) {
        char bytes[17];
        size_t got;
        LW_TRY_END(lw_lines_peek(&lines, bytes, sizeof bytes - 1, &got, err));
        bytes[got] = '\0';
        if (got > 5 && memcmp(bytes, "\x93NUMPY", 6) == 0) {
            bool from_start = strcmp(path, "-") != 0;
            lw_lines_close(&lines);
            return from_start
                       ? lw_graph_read_npy(out, path, options, err)
                       : lw_fail(err, LW_E_ARG, "say --input-format npy to read .npy from standard input");
        }
        format = format_by_content(bytes);
    }
    switch (format) {
    case LW_GRAPH_GR:
        status = read_gr(out, &lines, options, err);
        break;
    case LW_GRAPH_MTX:
        status = read_mtx(out, &lines, options, err);
        break;
    case LW_GRAPH_GFA:
        status = read_gfa(out, &lines, options, err);
        break;
    default:
        status = lw_graph_read_edges(out, &lines, options, host, err);
        break;
    }
end:
    lw_lines_close(&lines);
    return status;
}
