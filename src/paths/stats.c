/* stats.c - eccentricity, closeness and diameter. */
#include <math.h>
#include <stdlib.h>

#include "common/fail.h"
#include "paths/readout.h"

typedef struct job {
    const lw_paths *paths;
    const lw_graph *graph;
} job;

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
        double d = lw_distance(p, i, j);
        s.reached++;
        s.sum += d;
        s.harmonic += 1 / d;
        s.eccentricity = d > s.eccentricity ? d : s.eccentricity;
    }
    if (s.reached == 0)
        s.eccentricity = 0;
    return s;
}

static lw_status print_stats(const void *arg, FILE *f, lw_error *err)
{
    const job *r = arg;
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
    job r = {.paths = paths, .graph = graph};
    return lw_readout(path, temporaries, print_stats, &r, err);
}
