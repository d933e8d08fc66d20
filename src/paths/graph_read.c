/* graph_read.c - which format a file has. */
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "paths/graph.h"
#include "paths/lines.h"

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
    if (lines.no_end)
        lw_say(host, LW_SAY_WARNING,
               "%s: no end-of-file block at the end of this bgzip file: it may have been cut short", path);
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
        status = lw_graph_read_gr(out, &lines, options, err);
        break;
    case LW_GRAPH_MTX:
        status = lw_graph_read_mtx(out, &lines, options, err);
        break;
    case LW_GRAPH_GFA:
        status = lw_graph_read_gfa(out, &lines, options, host, err);
        break;
    default:
        status = lw_graph_read_edges(out, &lines, options, host, err);
        break;
    }
end:
    lw_lines_close(&lines);
    return status;
}
