/* fuzz_graph.c - the readers of graphs, every format and option. */
#include "fuzz/fuzz.h"

#include "paths/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const columns[] = {NULL, "1", "2", "3", "weight", "none"};
    fuzz_bytes bytes = {data, size};
    lw_graph_options options = {.format = (lw_graph_format)fuzz_take(&bytes, LW_GRAPH_NPY + 1),
                                .undirected = fuzz_take(&bytes, 2),
                                .transform = (lw_transform)fuzz_take(&bytes, LW_TRANSFORM_1000_MINUS + 1),
                                .weight = columns[fuzz_take(&bytes, 6)]};
    lw_error err = {0};
    lw_graph *graph = NULL;
    lw_status status = lw_graph_read(&graph, fuzz_file(bytes.data, bytes.size), &options, NULL, &err);
    FUZZ_ERROR(status, err);
    if (status != LW_OK)
        return 0;
    for (int64_t v = 0; v < graph->n; v++)
        for (int64_t e = graph->start[v]; e < graph->start[v + 1]; e++) {
            FUZZ_REQUIRE(graph->to[e] >= 0 && graph->to[e] < graph->n, "an edge that leads nowhere");
            FUZZ_REQUIRE(e == graph->start[v] || graph->to[e] > graph->to[e - 1], "order of a row");
            double w = lw_graph_weight(graph, e);
            FUZZ_REQUIRE(w - w == 0, "weight %g", w);
            FUZZ_REQUIRE(w >= 0 || graph->negative, "a negative weight that is not told");
        }
    char number[LW_VERTEX_NUMBER];
    if (graph->n)
        FUZZ_REQUIRE(lw_graph_find(graph, lw_graph_name(graph, graph->n - 1, number)) == graph->n - 1,
                     "a name that does not find its vertex");
    lw_graph_free(graph);
    return 0;
}
