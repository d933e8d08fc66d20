/* matout.c - distance matrices to files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/npy.h"
#include "common/outfile.h"
#include "paths/graph.h"

static const lw_dtype dtype_of[] = {
    [LW_PATHS_S32] = LW_I32, [LW_PATHS_S64] = LW_I64, [LW_PATHS_F32] = LW_F32, [LW_PATHS_F64] = LW_F64};

char *lw_paths_beside(const char *path, const char *suffix)
{
    size_t n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".npy") == 0)
        n -= 4;
    char *name = malloc(n + strlen(suffix) + 1);
    if (name) {
        memcpy(name, path, n);
        strcpy(name + n, suffix);
    }
    return name;
}

/* A stream that failed is noticed here, once per row. */
static lw_status check(lw_outfile *file, FILE *f, lw_error *err)
{
    return ferror(f) ? lw_outfile_failed(file, errno, err) : LW_OK;
}

static lw_status write_names(const lw_graph *g, lw_outfile *file, lw_error *err)
{
    char number[LW_VERTEX_NUMBER];
    FILE *f = lw_outfile_stream(file);
    if (!f)
        return lw_fail_memory(err, BUFSIZ);
    for (int64_t v = 0; v < lw_graph_vertices(g); v++)
        fprintf(f, "%s\n", lw_graph_name(g, v, number));
    return check(file, f, err);
}

static lw_status write_array(lw_dtype dtype, void *data, int64_t n, lw_outfile *file, lw_error *err)
{
    lw_npy array = {.dtype = dtype, .ndim = 2, .shape = {n, n}, .count = n * n, .data = data};
    return lw_npy_write(file, &array, err);
}

static lw_status open_beside(lw_outfile **file, const char *path, const char *suffix,
                             lw_temporaries *temporaries, lw_error *err)
{
    char *name = lw_paths_beside(path, suffix);
    lw_status status =
        name ? lw_outfile_open(file, name, temporaries, err) : lw_fail_memory(err, strlen(path) + 16);
    free(name);
    return status;
}

/* The matrix gets its name last. */
static lw_status write_npy(const lw_paths *p, const lw_graph *g, const char *path,
                           lw_temporaries *temporaries, lw_error *err)
{
    lw_outfile *matrix = NULL, *next = NULL, *names = NULL;
    lw_status status = lw_outfile_open(&matrix, path, temporaries, err);
    if (status == LW_OK && p->next)
        status = open_beside(&next, path, ".next.npy", temporaries, err);
    if (status == LW_OK && path && strcmp(path, "-") != 0 && lw_graph_named(g))
        status = open_beside(&names, path, ".names.txt", temporaries, err);
    if (status == LW_OK)
        status = write_array(dtype_of[p->type], p->distance, p->n, matrix, err);
    if (status == LW_OK && next)
        status = write_array(LW_I32, p->next, p->n, next, err);
    if (status == LW_OK && names)
        status = write_names(g, names, err);
    return lw_outfile_close_all((lw_outfile *[]){names, next, matrix}, 3, status, err);
}

static lw_status write_text(const lw_paths *p, const lw_graph *g, lw_matrix_format format, lw_outfile *file,
                            FILE *f, lw_error *err)
{
    char number[LW_VERTEX_NUMBER], other[LW_VERTEX_NUMBER], text[LW_DISTANCE_TEXT];
    if (format == LW_MATRIX_PHYLIP) {
        fprintf(f, "%lld\n", (long long)p->n);
    } else if (format == LW_MATRIX_LONG) {
        fputs("#from\tto\tdistance\n", f);
    } else {
        fputs("#vertex", f);
        for (int64_t v = 0; v < p->n; v++)
            fprintf(f, "\t%s", lw_graph_name(g, v, number));
        putc('\n', f);
    }
    for (int64_t i = 0; i < p->n; i++) {
        const char *name = lw_graph_name(g, i, number);
        if (format == LW_MATRIX_PHYLIP)
            fprintf(f, "%-10s", name);
        else if (format == LW_MATRIX_TSV)
            fputs(name, f);
        for (int64_t j = 0; j < p->n; j++) {
            if (format == LW_MATRIX_LONG) {
                if (i == j || !lw_paths_reached(p, i, j))
                    continue;
                lw_paths_text(p, i, j, text);
                fprintf(f, "%s\t%s\t%s\n", name, lw_graph_name(g, j, other), text);
                continue;
            }
            int length = lw_paths_text(p, i, j, text);
            putc(format == LW_MATRIX_TSV ? '\t' : ' ', f);
            fwrite(text, 1, (size_t)length, f);
        }
        if (format != LW_MATRIX_LONG)
            putc('\n', f);
        LW_TRY(check(file, f, err));
    }
    return LW_OK;
}

lw_status lw_paths_writable(const lw_graph *g, lw_matrix_format format, lw_error *err)
{
    const char *bad = format == LW_MATRIX_PHYLIP ? " \t" : "\t";
    char number[LW_VERTEX_NUMBER];
    if (format == LW_MATRIX_NPY || !lw_graph_named(g))
        return LW_OK;
    for (int64_t v = 0; v < lw_graph_vertices(g); v++) {
        const char *name = lw_graph_name(g, v, number);
        if (name[strcspn(name, bad)] != '\0')
            return lw_fail(err, LW_E_INPUT,
                           "vertex '%.100s' has a %s in its name, which %s cannot hold; use --format %s",
                           name, format == LW_MATRIX_PHYLIP ? "blank" : "tab",
                           format == LW_MATRIX_PHYLIP ? "PHYLIP" : "a table",
                           format == LW_MATRIX_PHYLIP ? "tsv" : "npy");
    }
    return LW_OK;
}

lw_status lw_paths_write(const lw_paths *p, const lw_graph *g, lw_matrix_format format, const char *path,
                         lw_temporaries *temporaries, lw_error *err)
{
    if (p->next && (format != LW_MATRIX_NPY || !path || strcmp(path, "-") == 0))
        return lw_fail(err, LW_E_ARG, "next hops go beside a .npy file: name one as output");
    LW_TRY(lw_paths_writable(g, format, err));
    if (format == LW_MATRIX_NPY)
        return write_npy(p, g, path, temporaries, err);
    lw_outfile *file;
    LW_TRY(lw_outfile_open(&file, path, temporaries, err));
    FILE *f = lw_outfile_stream(file);
    lw_status status = f ? write_text(p, g, format, file, f, err) : lw_fail_memory(err, BUFSIZ);
    return lw_outfile_close(file, status, err);
}
