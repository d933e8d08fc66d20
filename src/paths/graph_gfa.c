/* graph_gfa.c - the reader of GFA 1: the two ends of every segment are vertices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "paths/graph.h"
#include "paths/lines.h"

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
            if (strncmp(tag, "LN:i:", 5) == 0 && !lw_lines_count(tag + 5, 0, INT32_MAX, &length))
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

lw_status lw_graph_read_gfa(lw_graph **out, lw_lines *lines, const lw_graph_options *options,
                            const lw_host *host, lw_error *err)
{
    lw_status status = LW_OK;
    gfa g = {.lines = lines};
    lw_edges edges = {0};
    lw_names ends = {0};
    char *text = NULL;
    int32_t *order = NULL;
    int64_t jumps = 0, containments = 0;
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
        jumps += strcmp(kind, "J") == 0;
        containments += strcmp(kind, "C") == 0;
    }
    if (jumps + containments > 0)
        lw_say(host, LW_SAY_WARNING,
               "%s: %lld jumps (J) and %lld containments (C) are no links and were left out", lines->name,
               (long long)jumps, (long long)containments);
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
