/* fuzz.h - what the fuzz targets share: inputs as files, and bytes taken off an input one by one. */
#ifndef LW_FUZZ_H
#define LW_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A path under which the bytes can be opened as a file, valid until the next call. In memory: thousands of
 * inputs a second need no disk. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    if (fd >= 0)
        close(fd);
    fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* The front of the input decides on options; the rest is content. */
typedef struct fuzz_bytes {
    const uint8_t *data;
    size_t size;
} fuzz_bytes;

/* 0 .. below - 1; 0 when the input is used up. */
static inline uint32_t fuzz_take(fuzz_bytes *bytes, uint32_t below)
{
    uint32_t value = 0;
    for (uint32_t reach = 1; reach < below && bytes->size;
         reach = reach > UINT32_MAX / 256 ? below : reach * 256) {
        value = value << 8 | *bytes->data++;
        bytes->size--;
    }
    return below ? value % below : 0;
}

/* Stops the run with a message: the fuzzer keeps the input. */
#define FUZZ_REQUIRE(condition, ...)                                                                         \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* A failing call owes its caller one line without control characters, and a status. */
#define FUZZ_ERROR(status, err)                                                                              \
    do {                                                                                                     \
        FUZZ_REQUIRE((status) == LW_OK || ((err).status == (status) && (err).message[0]), "no message");     \
        FUZZ_REQUIRE((status) != LW_E_INTERNAL, "internal error: %s", (err).message);                        \
        for (const char *p_ = (err).message; *p_; p_++)                                                      \
            FUZZ_REQUIRE((unsigned char)*p_ >= 32 && *p_ != 127, "a message with control characters: %s",    \
                         (err).message);                                                                     \
    } while (0)

#endif
