/* paths_backends.c - the table of rows. */
#include "paths/paths_backend.h"

const lw_paths_backend *const lw_paths_backends[] = {&lw_paths_scalar};
const int lw_paths_backend_count = sizeof lw_paths_backends / sizeof lw_paths_backends[0];
