/* routes.c - what people read off a distance matrix: routes of listed pairs, centralities, distances between
 * sets. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "common/outfile.h"
#include "paths/graph.h"
#include "paths/lines.h"

static double distance(const lw_paths *p, int64_t i, int64_t j)
{
    int64_t at = i * p->n + j;
    switch (p->type) {
    case LW_PATHS_S32:
        return ((const int32_t *)p->distance)[at];
    case LW_PATHS_S64:
        return (double)((const int64_t *)p->distance)[at];
    case LW_PATHS_F32:
        return (double)((const float *)p->distance)[at];
    default:
        return ((const double *)p->distance)[at];
    }
}

/* The next field of a line of tabs, else of commas, else of blanks. */
static char *field(char **p, char delimiter)
{
    char *start = *p + strspn(*p, " ");
    const char *stops = delimiter == '\t' ? "\t" : delimiter == ',' ? "," : " ";
    char *end = start + strcspn(start, stops);
    *p = *end ? end + 1 : end;
    *end = '\0';
    while (end > start && end[-1] == ' ')
        *--end = '\0';
    return start;
}

static char delimiter_of(const char *line)
{
    return strchr(line, '\t') ? '\t' : strchr(line, ',') ? ',' : ' ';
}

/* An output stream opened, filled by `fill` and closed. */
typedef lw_status (*filler)(void *arg, FILE *f, lw_error *err);

static lw_status with_output(const char *path, lw_temporaries *temporaries, filler fill, void *arg,
                             lw_error *err)
{
    lw_outfile *file;
    LW_TRY(lw_outfile_open(&file, path, temporaries, err));
    FILE *f = lw_outfile_stream(file);
    lw_status status = f ? fill(arg, f, err) : lw_fail_memory(err, BUFSIZ);
    if (status == LW_OK && ferror(f))
        status = lw_outfile_failed(file, errno, err);
    return lw_outfile_close(file, status, err);
}

typedef struct request {
    const lw_paths *paths;
    const lw_graph *graph;
    const char *list; /* the file to read */
    const lw_host *host;
} request;

/* --- routes ----------------------------------------------------------------------------------------- */

static lw_status print_route(const request *r, int64_t i, int64_t j, FILE *f, lw_error *err)
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

static lw_status print_routes(void *arg, FILE *f, lw_error *err)
{
    const request *r = arg;
    lw_lines lines;
    LW_TRY(lw_lines_open(&lines, r->list, err));
    lw_status status = LW_OK;
    fputs("#from\tto\tdistance\thops\troute\n", f);
    for (;;) {
        char *line;
        LW_TRY_END(lw_lines_next(&lines, &line, err));
        if (!line)
            break;
        if (line[strspn(line, " \t")] == '\0' || *line == '#')
            continue;
        char delimiter = delimiter_of(line);
        char *from = field(&line, delimiter), *to = field(&line, delimiter), *rest = field(&line, delimiter);
        if (*from == '\0' || *to == '\0' || *rest != '\0') {
            status = lw_lines_bad(&lines, *rest ? rest : from, err, "'FROM TO' was expected");
            goto end;
        }
        int64_t i = lw_graph_find(r->graph, from), j = lw_graph_find(r->graph, to);
        if (i < 0 || j < 0) {
            status = lw_lines_bad(&lines, i < 0 ? from : to, err, "the graph has no such vertex");
            goto end;
        }
        LW_TRY_END(print_route(r, i, j, f, err));
    }
end:
    lw_lines_close(&lines);
    return status;
}

lw_status lw_paths_write_routes(const lw_paths *paths, const lw_graph *graph, const char *pairs,
                                const char *path, lw_temporaries *temporaries, lw_error *err)
{
    if (!paths->next)
        return lw_fail(err, LW_E_ARG, "routes need next hops");
    request r = {.paths = paths, .graph = graph, .list = pairs};
    return with_output(path, temporaries, print_routes, &r, err);
}

/* --- statistics ------------------------------------------------------------------------------------- */

typedef struct vertex_stats {
    int64_t reached;
    double eccentricity, sum, harmonic;
} vertex_stats;

static vertex_stats stats_of(const lw_paths *p, int64_t i)
{
    vertex_stats s = {.eccentricity = -INFINITY};
    for (int64_t j = 0; j < p->n; j++) {
        if (i == j || !lw_paths_reached(p, i, j))
            continue;
        double d = distance(p, i, j);
        s.reached++;
        s.sum += d;
        s.harmonic += 1 / d;
        s.eccentricity = d > s.eccentricity ? d : s.eccentricity;
    }
    if (s.reached == 0)
        s.eccentricity = 0;
    return s;
}

static lw_status print_stats(void *arg, FILE *f, lw_error *err)
{
    const request *r = arg;
    const lw_paths *p = r->paths;
    int64_t n = p->n, pairs = 0;
    double diameter = 0, radius = INFINITY, sum = 0;
    vertex_stats *all = malloc(((size_t)n + 1) * sizeof *all);
    if (!all)
        return lw_fail_memory(err, (size_t)n * sizeof *all);
    for (int64_t i = 0; i < n; i++) {
        vertex_stats s = all[i] = stats_of(p, i);
        if (s.reached == 0)
            continue;
        diameter = pairs == 0 || s.eccentricity > diameter ? s.eccentricity : diameter;
        radius = s.eccentricity < radius ? s.eccentricity : radius;
        pairs += s.reached;
        sum += s.sum;
    }
    fprintf(f, "## vertices %lld\n## pairs_reached %lld\n", (long long)n, (long long)pairs);
    fprintf(f, "## diameter %.15g\n## radius %.15g\n", diameter, pairs ? radius : 0);
    fprintf(f, "## mean_distance %.15g\n", pairs ? sum / (double)pairs : 0);
    fputs("#vertex\treached\teccentricity\tmean_distance\tcloseness\tharmonic\n", f);
    for (int64_t i = 0; i < n; i++) {
        const vertex_stats *s = &all[i];
        char number[LW_VERTEX_NUMBER];
        double count = (double)s->reached, others = n > 1 ? (double)(n - 1) : 1;
        fprintf(f, "%s\t%lld\t%.15g\t%.15g\t%.15g\t%.15g\n", lw_graph_name(r->graph, i, number),
                (long long)s->reached, s->eccentricity, count > 0 ? s->sum / count : 0,
                count > 0 ? count / s->sum * (count / others) : 0, s->harmonic / others);
    }
    free(all);
    return LW_OK;
}

lw_status lw_paths_write_stats(const lw_paths *paths, const lw_graph *graph, const char *path,
                               lw_temporaries *temporaries, lw_error *err)
{
    request r = {.paths = paths, .graph = graph};
    return with_output(path, temporaries, print_stats, &r, err);
}

/* --- sets ------------------------------------------------------------------------------------------- */

typedef struct member {
    int32_t set;
    int32_t vertex;
} member;

typedef struct sets {
    lw_names names;
    member *members; /* by set, each vertex once, after sort_members() */
    int64_t n, capacity;
    int64_t *missing; /* per set: names that the graph lacks */
    int64_t missing_capacity;
    int64_t *first; /* of each set in members[]; names.n + 1 */
} sets;

static lw_status add_member(sets *s, const lw_graph *g, const char *set, const char *vertex, lw_error *err)
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

static lw_status sort_members(sets *s, lw_error *err)
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

static lw_status read_sets(sets *s, const request *r, lw_error *err)
{
    lw_lines lines;
    LW_TRY(lw_lines_open(&lines, r->list, err));
    lw_status status = LW_OK;
    size_t length = strlen(r->list);
    bool gmt = length > 4 && strcasecmp(r->list + length - 4, ".gmt") == 0;
    for (;;) {
        char *line;
        LW_TRY_END(lw_lines_next(&lines, &line, err));
        if (!line)
            break;
        if (line[strspn(line, " \t")] == '\0' || *line == '#')
            continue;
        char delimiter = gmt ? '\t' : delimiter_of(line);
        char *set = field(&line, delimiter);
        if (gmt)
            field(&line, delimiter); /* the description */
        char *vertex = field(&line, delimiter);
        if (*set == '\0' || *vertex == '\0') {
            status =
                lw_lines_bad(&lines, set, err,
                             gmt ? "'SET DESCRIPTION VERTEX...' was expected" : "'SET VERTEX' was expected");
            goto end;
        }
        LW_TRY_END(add_member(s, r->graph, set, vertex, err));
        while (gmt && *line != '\0') {
            vertex = field(&line, delimiter);
            if (*vertex != '\0')
                LW_TRY_END(add_member(s, r->graph, set, vertex, err));
        }
        if (!gmt && *line != '\0') {
            status = lw_lines_bad(&lines, line, err, "'SET VERTEX' was expected");
            goto end;
        }
    }
    if (s->names.n == 0) {
        status = lw_fail(err, LW_E_INPUT, "%s: no sets in this file", lines.name);
        goto end;
    }
    status = sort_members(s, err);
end:
    lw_lines_close(&lines);
    return status;
}

static void print_set_pair(const request *r, const sets *s, int64_t a, int64_t b, FILE *f)
{
    const lw_paths *p = r->paths;
    double closest = 0, shortest = 0;
    int64_t reached = 0, pairs = 0;
    for (int64_t t = s->first[b]; t < s->first[b + 1]; t++) {
        double least = INFINITY;
        for (int64_t u = s->first[a]; u < s->first[a + 1]; u++) {
            int64_t i = s->members[u].vertex, j = s->members[t].vertex;
            if (!lw_paths_reached(p, i, j))
                continue;
            double d = distance(p, i, j);
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

static lw_status print_sets(void *arg, FILE *f, lw_error *err)
{
    const request *r = arg;
    sets s = {0};
    lw_status status = LW_OK;
    LW_TRY_END(read_sets(&s, r, err));
    for (int64_t c = 0; c < s.names.n; c++)
        if (s.missing[c] > 0)
            lw_say(r->host, LW_SAY_WARNING,
                   "set %.60s: %lld of its vertices are not in the graph and were left out",
                   lw_names_text(&s.names, c), (long long)s.missing[c]);
    fputs("#from_set\tto_set\tn_from\tn_to\tclosest\tshortest\tto_reached\tpairs_reached\n", f);
    for (int64_t a = 0; a < s.names.n; a++)
        for (int64_t b = 0; b < s.names.n; b++)
            if (a != b)
                print_set_pair(r, &s, a, b, f);
end:
    lw_names_free(&s.names);
    free(s.members);
    free(s.missing);
    free(s.first);
    return status;
}

lw_status lw_paths_write_sets(const lw_paths *paths, const lw_graph *graph, const char *list,
                              const char *path, lw_temporaries *temporaries, const lw_host *host,
                              lw_error *err)
{
    request r = {.paths = paths, .graph = graph, .list = list, .host = host};
    return with_output(path, temporaries, print_sets, &r, err);
}
