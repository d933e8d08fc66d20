/* sets.c - distances between sets of vertices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "paths/graph.h"
#include "paths/lines.h"
#include "paths/readout.h"

typedef struct member {
    int32_t set;
    int32_t vertex;
} member;

struct lw_paths_sets {
    lw_names names;
    member *members; /* by set, each vertex once, after sort_members() */
    int64_t n, capacity;
    int64_t *missing; /* per set: names that the graph lacks */
    int64_t missing_capacity;
    int64_t *first; /* of each set in members[]; names.n + 1 */
};

static lw_status add_member(lw_paths_sets *s, const lw_graph *g, const char *set, const char *vertex,
                            lw_error *err)
{
    int32_t index;
    LW_TRY(lw_names_intern(&s->names, set, strlen(set), &index, err));
    if (index >= s->missing_capacity) {
        int64_t capacity = 2 * s->missing_capacity + 16;
        int64_t *missing = realloc(s->missing, (size_t)capacity * sizeof *missing);
        if (!missing)
            return lw_fail_memory(err, (size_t)capacity * sizeof *missing);
        memset(missing + s->missing_capacity, 0, (size_t)(capacity - s->missing_capacity) * sizeof *missing);
        s->missing = missing;
        s->missing_capacity = capacity;
    }
    int64_t v = lw_graph_find(g, vertex);
    if (v < 0) {
        s->missing[index]++;
        return LW_OK;
    }
    if (s->n == s->capacity) {
        int64_t capacity = 2 * s->capacity + 256;
        member *larger = realloc(s->members, (size_t)capacity * sizeof *larger);
        if (!larger)
            return lw_fail_memory(err, (size_t)capacity * sizeof *larger);
        s->members = larger;
        s->capacity = capacity;
    }
    s->members[s->n++] = (member){.set = index, .vertex = (int32_t)v};
    return LW_OK;
}

static int by_set(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->set != y->set)
        return x->set < y->set ? -1 : 1;
    return (x->vertex > y->vertex) - (x->vertex < y->vertex);
}

static lw_status sort_members(lw_paths_sets *s, lw_error *err)
{
    s->first = calloc((size_t)s->names.n + 2, sizeof *s->first);
    if (!s->first)
        return lw_fail_memory(err, (size_t)s->names.n * sizeof *s->first);
    if (s->n > 0)
        qsort(s->members, (size_t)s->n, sizeof *s->members, by_set);
    int64_t kept = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (kept == 0 || by_set(&s->members[kept - 1], &s->members[i]) != 0)
            s->members[kept++] = s->members[i];
    s->n = kept;
    for (int64_t i = 0; i < kept; i++)
        s->first[s->members[i].set + 1]++;
    for (int64_t c = 0; c < s->names.n; c++)
        s->first[c + 1] += s->first[c];
    return LW_OK;
}

/* One line: "SET VERTEX", or with gmt SET, description, vertices. */
static lw_status take_line(lw_paths_sets *s, const lw_graph *g, const lw_lines *lines, char *line, bool gmt,
                           lw_error *err)
{
    char delimiter = gmt ? '\t' : lw_lines_delimiter(line), *set, *vertex, *more;
    LW_TRY(lw_lines_field(lines, &line, delimiter, &set, err));
    LW_TRY(lw_lines_field(lines, &line, delimiter, &vertex, err));
    if (gmt) /* that was the description */
        LW_TRY(lw_lines_field(lines, &line, delimiter, &vertex, err));
    if (!set || !vertex || *set == '\0' || *vertex == '\0')
        return lw_lines_bad(lines, set, err,
                            gmt ? "'SET DESCRIPTION VERTEX...' was expected" : "'SET VERTEX' was expected");
    LW_TRY(add_member(s, g, set, vertex, err));
    for (;;) {
        LW_TRY(lw_lines_field(lines, &line, delimiter, &more, err));
        if (!more)
            return LW_OK;
        if (!gmt)
            return lw_lines_bad(lines, more, err, "'SET VERTEX' was expected");
        if (*more != '\0')
            LW_TRY(add_member(s, g, set, more, err));
    }
}

void lw_paths_sets_free(lw_paths_sets *s)
{
    if (!s)
        return;
    lw_names_free(&s->names);
    free(s->members);
    free(s->missing);
    free(s->first);
    free(s);
}

lw_status lw_paths_sets_read(lw_paths_sets **out, const lw_graph *graph, const char *path,
                             const lw_host *host, lw_error *err)
{
    lw_lines lines;
    lw_paths_sets *s = calloc(1, sizeof *s);
    if (!s)
        return lw_fail_memory(err, sizeof *s);
    lw_status status = lw_lines_open(&lines, path, err);
    if (status != LW_OK) {
        free(s);
        return status;
    }
    size_t length = strlen(path);
    bool gmt = length > 4 && strcasecmp(path + length - 4, ".gmt") == 0;
    for (;;) {
        char *line;
        LW_TRY_END(lw_lines_next(&lines, &line, err));
        if (!line)
            break;
        if (line[strspn(line, " \t")] != '\0' && *line != '#')
            LW_TRY_END(take_line(s, graph, &lines, line, gmt, err));
    }
    if (s->names.n == 0) {
        status = lw_fail(err, LW_E_INPUT, "%s: no sets in this file", lines.name);
        goto end;
    }
    LW_TRY_END(sort_members(s, err));
    for (int64_t c = 0; c < s->names.n; c++)
        if (s->missing[c] > 0)
            lw_say(host, LW_SAY_WARNING,
                   "set %.60s: %lld of its vertices are not in the graph and were left out",
                   lw_names_text(&s->names, c), (long long)s->missing[c]);
    *out = s;
    s = NULL;
end:
    lw_lines_close(&lines);
    lw_paths_sets_free(s);
    return status;
}

typedef struct job {
    const lw_paths *paths;
    const lw_paths_sets *sets;
} job;

static void print_set_pair(const lw_paths *p, const lw_paths_sets *s, int64_t a, int64_t b, FILE *f)
{
    double closest = 0, shortest = 0;
    int64_t reached = 0, pairs = 0;
    for (int64_t t = s->first[b]; t < s->first[b + 1]; t++) {
        double least = INFINITY;
        for (int64_t u = s->first[a]; u < s->first[a + 1]; u++) {
            int64_t i = s->members[u].vertex, j = s->members[t].vertex;
            if (!lw_paths_reached(p, i, j))
                continue;
            double d = lw_distance(p, i, j);
            least = d < least ? d : least;
            shortest += d;
            pairs++;
        }
        if (!isinf(least)) {
            closest += least;
            reached++;
        }
    }
    fprintf(f, "%s\t%s\t%lld\t%lld\t%.9g\t%.9g\t%lld\t%lld\n", lw_names_text(&s->names, a),
            lw_names_text(&s->names, b), (long long)(s->first[a + 1] - s->first[a]),
            (long long)(s->first[b + 1] - s->first[b]), reached ? closest / (double)reached : INFINITY,
            pairs ? shortest / (double)pairs : INFINITY, (long long)reached, (long long)pairs);
}

static lw_status print_sets(const void *arg, FILE *f, lw_error *err)
{
    (void)err;
    const job *j = arg;
    fputs("#from_set\tto_set\tn_from\tn_to\tclosest\tshortest\tto_reached\tpairs_reached\n", f);
    for (int64_t a = 0; a < j->sets->names.n; a++)
        for (int64_t b = 0; b < j->sets->names.n; b++)
            if (a != b)
                print_set_pair(j->paths, j->sets, a, b, f);
    return LW_OK;
}

lw_status lw_paths_write_sets(const lw_paths *paths, const lw_paths_sets *sets, const char *path,
                              lw_temporaries *temporaries, lw_error *err)
{
    job j = {.paths = paths, .sets = sets};
    return lw_readout(path, temporaries, print_sets, &j, err);
}
