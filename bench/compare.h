/* compare.h - what the two halves of `lanewise bench compare` share: the runs that were read, and the writing
 * of tables (compare.c) and drawings (drawings.c). */
#ifndef LW_BENCH_COMPARE_H
#define LW_BENCH_COMPARE_H

#include <stdbool.h>
#include <stdio.h>

#include "json.h"

enum { COMPARE_RUNS = 16, COMPARE_NOTES = 64 };

typedef struct compare_run {
    const char *path;
    json *root;
    const json *results, *host;
    char label[96]; /* "A: NVIDIA H200" */
} compare_run;

typedef struct compare_row {
    const json *at[COMPARE_RUNS]; /* the result in each run; NULL: it has none */
} compare_row;

typedef struct compare_report {
    compare_run runs[COMPARE_RUNS];
    int n;
    compare_row *rows;
    int n_rows, capacity;
    char notes[COMPARE_NOTES][256];
    int n_notes;
    FILE *md, *html, *svg;
} compare_report;

/* The row's result in the first run that has one. */
const json *compare_any(const compare_report *r, const compare_row *row);

/* Text with what HTML (and SVG) or Markdown tables cannot hold replaced. */
void compare_text(FILE *to, const char *text, bool markdown);

/* Writes bars of the rates and a roofline of each run to r->svg: nothing where memory runs out, which closing
 * the stream tells too. */
void compare_draw(compare_report *r);

#endif
