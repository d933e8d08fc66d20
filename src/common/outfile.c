/* outfile.c - output files that appear whole or not at all. */
#include "common/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>

#include "common/fail.h"
#include "common/numbers.h"

struct lw_outfile {
    char *name;      /* for messages */
    char *target;    /* what the temporary becomes */
    char *temporary; /* NULL: the target is written directly, or the file has its name */
    bool renamed;
    int fd;
    FILE *stream; /* on fd; NULL until asked for */
    lw_temporaries *temporaries;
    int slot; /* in temporaries; -1: none */
};

bool lw_temporaries_remove(lw_temporaries *temporaries)
{
    int none = 0;
    /* -1 already: a second signal during the removal helps with it */
    if (!atomic_compare_exchange_strong(&temporaries->renaming, &none, -1) && none > 0)
        return false;
    for (int i = 0; i < LW_TEMPORARIES; i++) {
        int noted = 2;
        /* 3 for good: its owner no longer frees the place, so that nobody stores another name there */
        if (atomic_compare_exchange_strong(&temporaries->used[i], &noted, 3) || noted == 3)
            unlink(temporaries->name[i]);
    }
    return true;
}

/* False when the files are being removed. */
static bool begin_renaming(lw_temporaries *temporaries)
{
    int n = temporaries ? atomic_load(&temporaries->renaming) : 0;
    while (temporaries && n >= 0)
        if (atomic_compare_exchange_weak(&temporaries->renaming, &n, n + 1))
            return true;
    return !temporaries;
}

static void end_renaming(lw_temporaries *temporaries)
{
    if (temporaries)
        atomic_fetch_sub(&temporaries->renaming, 1);
}

int lw_temporaries_add(lw_temporaries *temporaries, const char *name)
{
    if (!temporaries || strlen(name) >= LW_TEMPORARY_NAME)
        return -1;
    for (int i = 0; i < LW_TEMPORARIES; i++) {
        int is_free = 0;
        if (!atomic_compare_exchange_strong(&temporaries->used[i], &is_free, 1))
            continue;
        strcpy(temporaries->name[i], name);
        atomic_store(&temporaries->used[i], 2);
        if (atomic_load(&temporaries->renaming) < 0) /* a removal may have passed this place already */
            unlink(name);
        return i;
    }
    return -1;
}

void lw_temporaries_drop(lw_temporaries *temporaries, int slot)
{
    int noted = 2;
    if (temporaries && slot >= 0)
        atomic_compare_exchange_strong(&temporaries->used[slot], &noted, 0);
}

/* The descriptor that a name such as /dev/stdout or /dev/fd/3 stands for; -1: an ordinary name. */
static int named_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(folders[i]);
        int64_t fd;
        if (strncmp(path, folders[i], n) == 0 && lw_parse_int(path + n, path, 0, INT_MAX, &fd, NULL) == LW_OK)
            return (int)fd;
    }
    return -1;
}

/* Creates the temporary beside file->target. */
static lw_status open_temporary(lw_outfile *file, const struct stat *old, lw_error *err)
{
    size_t size = strlen(file->target) + 64;
    file->temporary = malloc(size);
    if (!file->temporary)
        return lw_fail_memory(err, size);
    const char *slash = strrchr(file->target, '/');
    int folder = slash ? (int)(slash - file->target + 1) : 0;
    bool short_name = false;
    for (int attempt = 0; attempt < 100; attempt++) {
        if (short_name)
            snprintf(file->temporary, size, "%.*s.lanewise.%ld.%d", folder, file->target, (long)getpid(),
                     attempt);
        else if (attempt == 0)
            snprintf(file->temporary, size, "%s.tmp.%ld", file->target, (long)getpid());
        else
            snprintf(file->temporary, size, "%s.tmp.%ld.%d", file->target, (long)getpid(), attempt);
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0) {
            file->slot = lw_temporaries_add(file->temporaries, file->temporary);
            if (old && fchmod(file->fd, old->st_mode & 07777) != 0)
                return lw_fail(err, LW_E_IO, "%s: cannot take over the old file's permissions: %s",
                               file->name, strerror(errno));
            return LW_OK;
        }
        if (errno == ENAMETOOLONG && !short_name)
            short_name = true; /* the target's own name may still fit */
        else if (errno != EEXIST)
            break;
    }
    int reason = errno;
    free(file->temporary);
    file->temporary = NULL;
    return lw_fail(err, LW_E_IO, "%s: cannot be created: %s", file->name, strerror(reason));
}

/* Where a file by this name, which is not there, would come to be: a link may lead to it. NULL: errno. */
static char *end_of_links(const char *path)
{
    enum { MOST_LINKS = 40 }; /* as Linux */
    char *target = strdup(path), *to = malloc(PATH_MAX);
    for (int i = 0; target && to; i++) {
        ssize_t n = readlink(target, to, PATH_MAX);
        if (n < 0)
            break;
        char *slash = strrchr(target, '/'), *next = NULL;
        int folder = slash && *to != '/' ? (int)(slash - target + 1) : 0;
        int reason = n == PATH_MAX ? ENAMETOOLONG : i == MOST_LINKS ? ELOOP : 0;
        if (reason == 0 && asprintf(&next, "%.*s%.*s", folder, target, (int)n, to) < 0) {
            next = NULL;
            reason = ENOMEM;
        }
        free(target);
        target = next;
        errno = reason;
    }
    int reason = errno;
    if (!to) {
        free(target);
        target = NULL;
        reason = ENOMEM;
    }
    free(to);
    errno = reason;
    return target;
}

static lw_status open_target(lw_outfile *file, const char *path, lw_error *err)
{
    int standing = named_descriptor(path);
    if (standing >= 0) {
        int flags = fcntl(standing, F_GETFL);
        if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
            return lw_fail(err, LW_E_IO, "%s: is closed, or open for reading only", file->name);
        file->fd = fcntl(standing, F_DUPFD_CLOEXEC, 0);
        if (file->fd < 0)
            return lw_fail(err, LW_E_IO, "%s: cannot be written: %s", file->name, strerror(errno));
        return LW_OK;
    }
    struct stat old;
    bool exists = stat(path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode))
        return lw_fail(err, LW_E_IO, "%s: is a folder: give a file name", path);
    if (exists && !S_ISREG(old.st_mode)) {
        file->fd = open(path, O_WRONLY | O_CLOEXEC);
        if (file->fd < 0)
            return lw_fail(err, LW_E_IO, "%s: cannot be opened for writing: %s", path, strerror(errno));
        return LW_OK;
    }
    if (exists && access(path, W_OK) != 0)
        return lw_fail(err, LW_E_IO, "%s: exists and may not be overwritten: %s", path, strerror(errno));
    /* what a symbolic link points to is replaced or made, not the link */
    file->target = exists ? realpath(path, NULL) : end_of_links(path);
    if (!file->target)
        return lw_fail(err, LW_E_IO, "%s: cannot be created: %s", path, strerror(errno));
    return open_temporary(file, exists ? &old : NULL, err);
}

lw_status lw_outfile_open(lw_outfile **out, const char *path, lw_temporaries *temporaries, lw_error *err)
{
    if (!path)
        path = "-";
    if (!*path)
        return lw_fail(err, LW_E_IO, "the name of the output file is empty");
    lw_outfile *file = calloc(1, sizeof *file);
    if (!file)
        return lw_fail_memory(err, sizeof *file);
    file->fd = file->slot = -1;
    file->temporaries = temporaries;
    file->name = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
    lw_status status = file->name ? open_target(file, path, err) : lw_fail_memory(err, strlen(path));
    if (status != LW_OK)
        return lw_outfile_close(file, status, err);
    *out = file;
    return LW_OK;
}

const char *lw_outfile_name(const lw_outfile *file)
{
    return file->name;
}

int lw_outfile_fd(const lw_outfile *file)
{
    return file->fd;
}

FILE *lw_outfile_stream(lw_outfile *file)
{
    if (!file->stream) {
        file->stream = fdopen(file->fd, "w");
        if (file->stream)
            setvbuf(file->stream, NULL, _IOFBF, 1 << 18);
    }
    return file->stream;
}

lw_status lw_outfile_hts(lw_outfile *file, const char *mode, struct htsFile **out, lw_error *err)
{
    int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    hFILE *stream = fd < 0 ? NULL : hdopen(fd, "w");
    if (!stream) {
        int reason = errno;
        if (fd >= 0)
            close(fd);
        return lw_fail(err, LW_E_IO, "%s: cannot be opened for writing: %s", file->name, strerror(reason));
    }
    *out = hts_hopen(stream, file->name, mode);
    if (!*out) {
        int reason = errno;
        hclose_abruptly(stream);
        return lw_fail(err, LW_E_IO, "%s: cannot be opened for writing: %s", file->name, strerror(reason));
    }
    return LW_OK;
}

lw_status lw_outfile_write(lw_outfile *file, const void *data, size_t n, lw_error *err)
{
    const char *p = data;
    while (n > 0) {
        ssize_t written = write(file->fd, p, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return lw_outfile_failed(file, errno, err);
        p += written;
        n -= (size_t)written;
    }
    return LW_OK;
}

lw_status lw_outfile_failed(const lw_outfile *file, int error_number, lw_error *err)
{
    return lw_fail(err, LW_E_IO, "%s: writing failed: %s", file->name,
                   error_number ? strerror(error_number) : "the disk may be full");
}

/* Everything written and the descriptor closed: what the disk refuses, it has refused by now. */
static lw_status complete(lw_outfile *file, lw_error *err)
{
    lw_status status = LW_OK;
    errno = 0;
    if (file->stream) {
        bool failed = ferror(file->stream) != 0;
        if (fflush(file->stream) != 0)
            status = lw_outfile_failed(file, errno, err);
        else if (failed)
            status = lw_outfile_failed(file, 0, err);
        if (fclose(file->stream) != 0 && status == LW_OK)
            status = lw_outfile_failed(file, errno, err);
        file->stream = NULL;
    } else if (file->fd >= 0 && close(file->fd) != 0) {
        status = lw_outfile_failed(file, errno, err);
    }
    file->fd = -1;
    return status;
}

static lw_status take_name(lw_outfile *file, lw_error *err)
{
    if (!file->temporary)
        return LW_OK;
    if (rename(file->temporary, file->target) != 0)
        return lw_fail(err, LW_E_IO, "%s: cannot be renamed from %s: %s", file->name, file->temporary,
                       strerror(errno));
    lw_temporaries_drop(file->temporaries, file->slot);
    free(file->temporary);
    file->temporary = NULL;
    file->renamed = true;
    return LW_OK;
}

static void release(lw_outfile *file)
{
    if (file->stream)
        fclose(file->stream);
    else if (file->fd >= 0)
        close(file->fd);
    if (file->temporary) { /* not renamed */
        unlink(file->temporary);
        lw_temporaries_drop(file->temporaries, file->slot);
        free(file->temporary);
    }
    free(file->target);
    free(file->name);
    free(file);
}

lw_status lw_outfile_close_all(lw_outfile *const *files, int n, lw_status so_far, lw_error *err)
{
    lw_status status = so_far;
    lw_temporaries *temporaries = NULL;
    for (int i = 0; i < n && status == LW_OK; i++)
        if (files[i]) {
            status = complete(files[i], err);
            temporaries = files[i]->temporaries;
        }
    bool renaming = status == LW_OK && begin_renaming(temporaries);
    if (status == LW_OK && !renaming)
        status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    for (int i = 0; i < n && status == LW_OK; i++)
        if (files[i])
            status = take_name(files[i], err);
    for (int i = 0; i < n; i++)
        if (files[i] && status != LW_OK && files[i]->renamed)
            unlink(files[i]->target); /* one of them could not be renamed: a part of a result is none */
    if (renaming)
        end_renaming(temporaries);
    for (int i = 0; i < n; i++)
        if (files[i])
            release(files[i]);
    return status;
}

lw_status lw_outfile_close(lw_outfile *file, lw_status so_far, lw_error *err)
{
    return lw_outfile_close_all(&file, 1, so_far, err);
}
