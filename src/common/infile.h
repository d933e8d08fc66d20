/* infile.h - input files as htslib streams, and what packed them. */
#ifndef LW_INFILE_H
#define LW_INFILE_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/status.h"

struct hFILE;

typedef struct lw_infile {
    struct hFILE *stream; /* the caller's, to pass on to htslib or to close; it owns fd */
    int fd;
    bool regular;  /* may be opened again */
    int64_t bytes; /* of a regular file, also as standard input; else -1 */
} lw_infile;

/* Opens `path` ("-": standard input) under the name `shown` for messages. Never by hopen(), which would fetch
 * "http:" and the like. LW_E_IO: not there, not allowed, a folder; LW_E_INPUT: packed by another program than
 * gzip and bgzip. */
lw_status lw_infile_open(lw_infile *out, const char *path, const char *shown, lw_error *err);

#endif
