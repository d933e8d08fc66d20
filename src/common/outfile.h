/* outfile.h - output files that appear whole or not at all.
 *
 * An output is written under a temporary name beside its target (TARGET.tmp.PID) and renamed when it
 * was closed without error; on failure the temporary is removed and an older file of that name stays as
 * it was. "-" is standard output. A target that exists and is not a regular file (a pipe, a device,
 * /dev/stdout, /dev/fd/N) is written directly. The program must ignore SIGPIPE, so that a closed pipe is
 * the error EPIPE. */
#ifndef LW_OUTFILE_H
#define LW_OUTFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "lanewise/status.h"

/* The temporaries that exist now, for a signal handler to remove. Owned by the program (it must be
 * reachable from the handler), zero-initialised, lent to lw_outfile_open(). */
enum { LW_TEMPORARIES = 32, LW_TEMPORARY_NAME = 4096 };
typedef struct lw_temporaries {
    atomic_int renaming; /* threads that give files their names; -1: the files are being removed */
    atomic_int used[LW_TEMPORARIES]; /* 0 free, 1 being filled, 2 a file to remove, 3 removed */
    char name[LW_TEMPORARIES][LW_TEMPORARY_NAME];
} lw_temporaries;

/* Unlinks them all, and from then on no file gets its name: for the end of the process. False, and nothing is
 * done, while files that belong together get their names: it takes microseconds. Async-signal-safe. */
bool lw_temporaries_remove(lw_temporaries *temporaries);
/* Notes a temporary file: its slot for lw_temporaries_drop(), or -1 where there is no room (a kill at the
 * wrong moment then leaves it behind). `temporaries` may be NULL. */
int lw_temporaries_add(lw_temporaries *temporaries, const char *name);
void lw_temporaries_drop(lw_temporaries *temporaries, int slot);

struct htsFile;

typedef struct lw_outfile lw_outfile;

/* Begins the output `path` (NULL or "-": standard output). `temporaries` may be NULL. Fails at once where the
 * folder is missing or may not be written, so that no work is lost. Sets *out on LW_OK only. LW_E_IO,
 * LW_E_NOMEM. */
lw_status lw_outfile_open(lw_outfile **out, const char *path, lw_temporaries *temporaries, lw_error *err);

/* The target's name for messages ("standard output" for "-"). */
const char *lw_outfile_name(const lw_outfile *file);

/* The open descriptor; it stays the outfile's own. */
int lw_outfile_fd(const lw_outfile *file);

/* An htslib file that writes to a duplicate of the descriptor; `mode` as hts_open() takes it ("wb",
 * "wc,version=3.0"). The caller closes it with hts_close(), checked, before lw_outfile_close(). LW_E_IO,
 * LW_E_NOMEM. */
lw_status lw_outfile_hts(lw_outfile *file, const char *mode, struct htsFile **out, lw_error *err);

/* A buffered stream on the descriptor, made on the first call; the outfile's own: do not close it. NULL: no
 * memory. Use either this, or lw_outfile_write(), or the descriptor. */
FILE *lw_outfile_stream(lw_outfile *file);

/* Writes all n bytes to the descriptor, unbuffered. LW_E_IO with the reason. */
lw_status lw_outfile_write(lw_outfile *file, const void *data, size_t n, lw_error *err);

/* Records "NAME: writing failed: REASON" for a writer that saw an error; the reason is that of error_number
 * (an errno; 0: not known). Returns LW_E_IO. */
lw_status lw_outfile_failed(const lw_outfile *file, int error_number, lw_error *err);

/* Ends the output and frees it. With so_far LW_OK: flushes, closes and renames; the first failure is recorded
 * and returned, and nothing stays under either name. With another status: removes what was written and
 * returns that status. NULL is allowed and returns so_far. */
lw_status lw_outfile_close(lw_outfile *file, lw_status so_far, lw_error *err);
/* The same for files that belong together (NULL among them is allowed): every one is complete on the disk
 * before the first gets its name, in this order, and after a failure none of them stays. */
lw_status lw_outfile_close_all(lw_outfile *const *files, int n, lw_status so_far, lw_error *err);

#endif
