/* readout.c - an output stream from beginning to end. */
#include "paths/readout.h"

#include <errno.h>

#include "common/fail.h"

lw_status lw_readout(const char *path, lw_temporaries *temporaries,
                     lw_status (*fill)(const void *arg, FILE *f, lw_error *err), const void *arg,
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
