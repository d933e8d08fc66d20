/* matrices.h - the built-in matrices: the files of data/matrices, put into the binary by CMake. */
#ifndef LW_MATRICES_H
#define LW_MATRICES_H

typedef struct lw_matrix_text {
    const char *name;
    const char *text; /* the file, as it stands in data/matrices */
} lw_matrix_text;

extern const lw_matrix_text lw_matrices[];
extern const int lw_matrix_count;
extern const char lw_matrix_names[]; /* "BLOSUM45, BLOSUM50, ..." */

#endif
