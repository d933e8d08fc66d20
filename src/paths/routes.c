/* routes.c - distances and routes of listed pairs. */
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "paths/graph.h"
#include "paths/lines.h"
#include "paths/readout.h"

struct lw_paths_pairs {
    int64_t n, capacity;
    int32_t (*ends)[2];
};

/* One line "FROM TO". */
static lw_status take_pair(lw_paths_pairs *p, const lw_graph *g, const lw_lines *lines, char *line,
                           lw_error *err)
{
    char delimiter = lw_lines_delimiter(line), *field[3];
    for (int i = 0; i < 3; i++)
        LW_TRY(lw_lines_field(lines, &line, delimiter, &field[i], err));
    if (!field[0] || !field[1] || *field[0] == '\0' || *field[1] == '\0' || field[2])
        return lw_lines_bad(lines, field[2] ? field[2] : field[0], err, "'FROM TO' was expected");
    int64_t ends[2];
    for (int i = 0; i < 2; i++) {
        ends[i] = lw_graph_find(g, field[i]);
        if (ends[i] < 0)
            return lw_lines_bad(lines, field[i], err, "the graph has no such vertex");
    }
    if (p->n == p->capacity) {
        int64_t capacity = 2 * p->capacity + 64;
        void *larger = realloc(p->ends, (size_t)capacity * sizeof *p->ends);
        if (!larger)
            return lw_fail_memory(err, (size_t)capacity * sizeof *p->ends);
        p->ends = larger;
        p->capacity = capacity;
    }
    p->ends[p->n][0] = (int32_t)ends[0];
    p->ends[p->n++][1] = (int32_t)ends[1];
    return LW_OK;
}

lw_status lw_paths_pairs_read(lw_paths_pairs **out, const lw_graph *graph, const char *path, lw_error *err)
{
    lw_lines lines;
    lw_paths_pairs *p = calloc(1, sizeof *p);
    if (!p)
        return lw_fail_memory(err, sizeof *p);
    lw_status status = lw_lines_open(&lines, path, err);
    if (status != LW_OK) {
        free(p);
        return status;
    }
    for (;;) {
        char *line;
        LW_TRY_END(lw_lines_next(&lines, &line, err));
        if (!line)
            break;
        if (line[strspn(line, " \t")] != '\0' && *line != '#')
            LW_TRY_END(take_pair(p, graph, &lines, line, err));
    }
    *out = p;
    p = NULL;
end:
    lw_lines_close(&lines);
    lw_paths_pairs_free(p);
    return status;
}

void lw_paths_pairs_free(lw_paths_pairs *p)
{
    if (p)
        free(p->ends);
    free(p);
}

typedef struct routes {
    const lw_paths *paths;
    const lw_graph *graph;
    const lw_paths_pairs *pairs;
} routes;

static lw_status print_route(const routes *r, int64_t i, int64_t j, FILE *f, lw_error *err)
{
    const lw_paths *p = r->paths;
    char a[LW_VERTEX_NUMBER], b[LW_VERTEX_NUMBER], text[LW_DISTANCE_TEXT];
    lw_paths_text(p, i, j, text);
    fprintf(f, "%s\t%s\t%s\t", lw_graph_name(r->graph, i, a), lw_graph_name(r->graph, j, b), text);
    if (!lw_paths_reached(p, i, j)) {
        fputs("-1\t*\n", f);
        return LW_OK;
    }
    int64_t hops = 0;
    for (int64_t v = i; v != j; v = p->next[v * p->n + j])
        if (p->next[v * p->n + j] < 0 || ++hops > p->n)
            return lw_fail(err, LW_E_INTERNAL, "the next hops from %s to %s do not arrive",
                           lw_graph_name(r->graph, i, a), lw_graph_name(r->graph, j, b));
    fprintf(f, "%lld\t%s", (long long)hops, lw_graph_name(r->graph, i, a));
    for (int64_t v = i; v != j;) {
        v = p->next[v * p->n + j];
        fprintf(f, ",%s", lw_graph_name(r->graph, v, a));
    }
    putc('\n', f);
    return LW_OK;
}

static lw_status print_routes(const void *arg, FILE *f, lw_error *err)
{
    const routes *r = arg;
    fputs("#from\tto\tdistance\thops\troute\n", f);
    for (int64_t i = 0; i < r->pairs->n; i++)
        LW_TRY(print_route(r, r->pairs->ends[i][0], r->pairs->ends[i][1], f, err));
    return LW_OK;
}

lw_status lw_paths_write_routes(const lw_paths *paths, const lw_graph *graph, const lw_paths_pairs *pairs,
                                const char *path, lw_temporaries *temporaries, lw_error *err)
{
    if (!paths->next)
        return lw_fail(err, LW_E_ARG, "routes need next hops");
    routes r = {.paths = paths, .graph = graph, .pairs = pairs};
    return lw_readout(path, temporaries, print_routes, &r, err);
}
