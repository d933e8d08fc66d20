/* infile.c - opening input files. */
#include "common/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>

#include "common/fail.h"

/* The program that packed what begins with these bytes, if it is one that we cannot undo. */
static const char *packed_with(const char *bytes, size_t n)
{
    static const struct {
        const char *magic, *program;
    } packers[] = {{"BZh", "bzip2"},
                   {"\xFD"
                    "7zXZ",
                    "xz"},
                   {"\x28\xB5\x2F\xFD", "zstd"},
                   {"\x04\x22\x4D\x18", "lz4"},
                   {"PK\x03\x04", "zip"},
                   {"7z\xBC\xAF", "7-Zip"},
                   {"\x1F\x9D", "compress"}};
    for (size_t i = 0; i < sizeof packers / sizeof *packers; i++) {
        size_t length = strlen(packers[i].magic);
        if (n >= length && memcmp(bytes, packers[i].magic, length) == 0)
            return packers[i].program;
    }
    return NULL;
}

/* Bytes of gzip's shortest file: header 10, an empty block 2, check sum and length 8. zlib takes fewer for
 * plain text. */
enum { SHORTEST_GZIP = 20 };

static bool begins_gzip(const char *bytes, size_t n)
{
    return n > 0 && memcmp(bytes, "\x1F\x8B", n < 2 ? n : 2) == 0;
}

lw_status lw_infile_open(lw_infile *out, const char *path, const char *shown, lw_error *err)
{
    struct stat info;
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        int reason = errno;
        if (fd >= 0)
            close(fd);
        return lw_fail(err, LW_E_IO, "%s: cannot be opened: %s", shown, strerror(reason));
    }
    if (S_ISDIR(info.st_mode)) {
        close(fd);
        return lw_fail(err, LW_E_IO, "%s: is a folder: give a file", shown);
    }
    hFILE *stream = hdopen(fd, "r");
    if (!stream) {
        close(fd);
        return lw_fail_memory(err, sizeof info);
    }
    char bytes[SHORTEST_GZIP];
    errno = 0;
    ssize_t got = hpeek(stream, bytes, sizeof bytes);
    int reason = errno;
    const char *program = got > 0 ? packed_with(bytes, (size_t)got) : NULL;
    bool cut = got < SHORTEST_GZIP && got > 0 && begins_gzip(bytes, (size_t)got);
    if (got < 0 || program || cut)
        hclose_abruptly(stream);
    if (got < 0)
        return lw_fail(err, LW_E_IO, "%s: reading failed: %s", shown, strerror(reason));
    if (program)
        return lw_fail(err, LW_E_INPUT,
                       "%s: is compressed with %s: unpack it first (gzip and bgzip are read)", shown,
                       program);
    if (cut)
        return lw_fail(err, LW_E_INPUT, "%s: the compressed data are cut short: fetch the file again", shown);
    *out = (lw_infile){.stream = stream,
                       .fd = fd,
                       .regular = S_ISREG(info.st_mode) && !is_stdin,
                       .bytes = S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1};
    return LW_OK;
}
