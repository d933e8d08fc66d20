/* files.h - files that tests make, in a folder of their own that goes away with the process. */
#ifndef LW_TEST_FILES_H
#define LW_TEST_FILES_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char test_folder[64];

static inline void test_remove_folder(void)
{
    DIR *folder = opendir(test_folder);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", test_folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    closedir(folder);
    rmdir(test_folder);
}

/* The path of NAME in the test's folder; up to 8 of them at a time. */
static inline const char *test_path(const char *name)
{
    static char paths[8][400];
    static int next;
    if (!*test_folder) {
        strcpy(test_folder, "/tmp/lw-test-XXXXXX");
        cr_assert(mkdtemp(test_folder));
        atexit(test_remove_folder);
    }
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder, name);
    return path;
}

static inline const char *test_write(const char *name, const void *data, size_t n)
{
    const char *path = test_path(name);
    FILE *file = fopen(path, "wb");
    cr_assert(file);
    cr_assert(fwrite(data, 1, n, file) == n && fclose(file) == 0);
    return path;
}

/* A whole file, with a NUL behind it; to be freed. */
static inline char *test_read(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    if (n)
        *n = 0;
    cr_assert(file, "%s is missing", path);
    size_t capacity = 1 << 16, used = 0, got;
    char *data = malloc(capacity + 1);
    while ((got = fread(data + used, 1, capacity - used, file)) > 0) {
        used += got;
        if (used == capacity)
            data = realloc(data, (capacity *= 2) + 1);
    }
    fclose(file);
    data[used] = '\0';
    if (n)
        *n = used;
    return data;
}

/* Entries of the test's folder. */
static inline int test_count_files(void)
{
    int n = 0;
    DIR *folder = opendir(test_folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    if (folder)
        closedir(folder);
    return n;
}

/* The path of a file beside the checkout; skips the test, loudly, where it is absent. */
static inline const char *test_shared(const char *name)
{
    static char paths[8][600];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", LW_SHARED_DIR, name);
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is not there", path);
    return path;
}

#endif
