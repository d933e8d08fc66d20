/* test_outfile.c - outputs appear whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <htslib/hts.h>
#include <htslib/sam.h>
#include <criterion/criterion.h>

#include "common/outfile.h"
#include "common/files.h"

static void expect_content(const char *path, const char *expected)
{
    char *data = test_read(path, NULL);
    cr_expect_str_eq(data, expected);
    free(data);
}

/* Everything that is open from now on ends as `status`. */
static lw_outfile *begin(const char *path, lw_temporaries *temporaries)
{
    lw_outfile *file = NULL;
    lw_error err = {0};
    cr_assert_eq(lw_outfile_open(&file, path, temporaries, &err), LW_OK, "%s", err.message);
    return file;
}

Test(outfile, appears_when_closed)
{
    const char *path = test_path("out.txt");
    static lw_temporaries temporaries;
    lw_outfile *file = begin(path, &temporaries);
    cr_expect_str_eq(lw_outfile_name(file), path);
    cr_expect_eq(lw_outfile_write(file, "abc", 3, NULL), LW_OK);
    cr_expect(access(path, F_OK) != 0, "the target must not be there yet");
    cr_expect_eq(test_count_files(), 1);
    cr_expect_eq(lw_outfile_close(file, LW_OK, NULL), LW_OK);
    expect_content(path, "abc");
    cr_expect_eq(test_count_files(), 1);
    for (int i = 0; i < LW_TEMPORARIES; i++)
        cr_expect_eq(temporaries.used[i], 0);
}

Test(outfile, failure_leaves_the_old_file)
{
    const char *path = test_write("out.txt", "old", 3);
    lw_outfile *file = begin(path, NULL);
    fputs("new", lw_outfile_stream(file));
    cr_expect_eq(lw_outfile_close(file, LW_E_INPUT, NULL), LW_E_INPUT);
    expect_content(path, "old");
    cr_expect_eq(test_count_files(), 1);
}

Test(outfile, replaces_and_keeps_permissions)
{
    const char *path = test_write("out.txt", "old", 3);
    chmod(path, 0640);
    lw_outfile *file = begin(path, NULL);
    fputs("new", lw_outfile_stream(file));
    cr_expect_eq(lw_outfile_close(file, LW_OK, NULL), LW_OK);
    expect_content(path, "new");
    struct stat info;
    stat(path, &info);
    cr_expect_eq(info.st_mode & 0777, 0640);
}

Test(outfile, new_file_has_the_usual_permissions)
{
    umask(027);
    const char *path = test_path("out.txt");
    lw_outfile *file = begin(path, NULL);
    cr_expect_eq(lw_outfile_close(file, LW_OK, NULL), LW_OK);
    struct stat info;
    stat(path, &info);
    cr_expect_eq(info.st_mode & 0777, 0640);
}

Test(outfile, symbolic_link_stays)
{
    const char *path = test_write("real.txt", "old", 3), *link = test_path("link.txt");
    cr_assert_eq(symlink(path, link), 0);
    lw_outfile *file = begin(link, NULL);
    fputs("new", lw_outfile_stream(file));
    cr_expect_eq(lw_outfile_close(file, LW_OK, NULL), LW_OK);
    expect_content(path, "new");
    struct stat info;
    cr_expect(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
}

Test(outfile, long_name)
{
    char name[256];
    memset(name, 'x', 255);
    name[255] = '\0';
    const char *path = test_path(name);
    lw_outfile *file = begin(path, NULL);
    cr_expect_eq(lw_outfile_close(file, LW_OK, NULL), LW_OK);
    cr_expect_eq(access(path, F_OK), 0);
    cr_expect_eq(test_count_files(), 1);
}

Test(outfile, two_of_one_name)
{
    const char *path = test_path("out.txt");
    lw_outfile *a = begin(path, NULL), *b = begin(path, NULL);
    fputs("a", lw_outfile_stream(a));
    fputs("b", lw_outfile_stream(b));
    cr_expect_eq(lw_outfile_close(a, LW_OK, NULL), LW_OK);
    cr_expect_eq(lw_outfile_close(b, LW_OK, NULL), LW_OK);
    expect_content(path, "b");
    cr_expect_eq(test_count_files(), 1);
}

Test(outfile, refused_at_once)
{
    lw_outfile *file = NULL;
    static const char *const paths[] = {"/tmp", "/missing-folder/x", "", "/dev/fd/77", "/proc/self/fd/77"};
    static const char *const messages[] = {"/tmp: is a folder: give a file name",
                                           "/missing-folder/x: cannot be created: No such file or directory",
                                           "the name of the output file is empty",
                                           "/dev/fd/77: cannot be written: Bad file descriptor",
                                           "/proc/self/fd/77: cannot be written: Bad file descriptor"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        lw_error err = {0};
        cr_expect_eq(lw_outfile_open(&file, paths[i], NULL, &err), LW_E_IO);
        cr_expect_str_eq(err.message, messages[i]);
    }
}

Test(outfile, full_disk)
{
    lw_error err = {0};
    lw_outfile *file = begin("/dev/full", NULL); /* a device: written directly */
    cr_expect_eq(lw_outfile_write(file, "abc", 3, &err), LW_E_IO);
    cr_expect_str_eq(err.message, "/dev/full: writing failed: No space left on device");
    cr_expect_eq(lw_outfile_close(file, LW_E_IO, &err), LW_E_IO);

    err = (lw_error){0};
    file = begin("/dev/full", NULL);
    fputs("abc", lw_outfile_stream(file)); /* seen when the stream is flushed */
    cr_expect_eq(lw_outfile_close(file, LW_OK, &err), LW_E_IO);
    cr_expect_str_eq(err.message, "/dev/full: writing failed: No space left on device");
}

/* A limit on the size of files stands for a disk that fills up while writing. */
Test(outfile, disk_fills_up)
{
    signal(SIGXFSZ, SIG_IGN);
    const char *path = test_write("out.txt", "old", 3);
    struct rlimit limit = {100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    lw_error err = {0};
    lw_outfile *file = begin(path, NULL);
    FILE *stream = lw_outfile_stream(file);
    for (int i = 0; i < 200000; i++)
        putc('x', stream);
    cr_expect_eq(lw_outfile_close(file, LW_OK, &err), LW_E_IO);
    cr_expect(strstr(err.message, "out.txt: writing failed: File too large"), "%s", err.message);
    expect_content(path, "old");
    cr_expect_eq(test_count_files(), 1);
}

Test(outfile, closed_pipe)
{
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    close(ends[0]);
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    lw_error err = {0};
    lw_outfile *file = begin(path, NULL);
    cr_expect_eq(lw_outfile_write(file, "abc", 3, &err), LW_E_IO);
    cr_expect(strstr(err.message, ": writing failed: Broken pipe"), "%s", err.message);
    cr_expect_eq(lw_outfile_close(file, LW_E_IO, &err), LW_E_IO);
    close(ends[1]);
}

Test(outfile, named_pipe)
{
    const char *path = test_path("fifo");
    cr_assert_eq(mkfifo(path, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        char text[8] = "";
        int fd = open(path, O_RDONLY);
        _exit(read(fd, text, 3) == 3 && strcmp(text, "abc") == 0 ? 0 : 1);
    }
    lw_outfile *file = begin(path, NULL);
    cr_expect_eq(lw_outfile_write(file, "abc", 3, NULL), LW_OK);
    cr_expect_eq(lw_outfile_close(file, LW_OK, NULL), LW_OK);
    int status;
    waitpid(child, &status, 0);
    cr_expect_eq(status, 0);
    struct stat info;
    cr_expect(stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
}

Test(outfile, standard_output)
{
    int saved = dup(STDOUT_FILENO);
    const char *path = test_path("stdout.txt");
    int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    static const char *const names[] = {"-", NULL, "/dev/stdout", "/dev/fd/1"};
    for (int i = 0; i < 4; i++) {
        lw_outfile *file = begin(names[i], NULL);
        if (i < 2)
            cr_expect_str_eq(lw_outfile_name(file), "standard output");
        cr_expect_eq(lw_outfile_write(file, "a", 1, NULL), LW_OK);
        cr_expect_eq(lw_outfile_close(file, LW_OK, NULL), LW_OK);
    }
    dup2(saved, STDOUT_FILENO);
    expect_content(path, "aaaa"); /* standard output itself stays open */
}

Test(outfile, htslib_writes_to_it)
{
    const char *path = test_path("out.bam");
    lw_outfile *file = begin(path, NULL);
    htsFile *bam = NULL;
    cr_assert_eq(lw_outfile_hts(file, "wb", &bam, NULL), LW_OK);
    sam_hdr_t *header = sam_hdr_init();
    cr_expect_eq(sam_hdr_add_line(header, "SQ", "SN", "x", "LN", "5", NULL), 0);
    cr_expect_eq(sam_hdr_write(bam, header), 0);
    sam_hdr_destroy(header);
    cr_expect_eq(hts_close(bam), 0);
    cr_expect(access(path, F_OK) != 0);
    cr_expect_eq(lw_outfile_close(file, LW_OK, NULL), LW_OK);
    bam = hts_open(path, "r");
    cr_assert(bam);
    cr_expect_eq(hts_check_EOF(bam), 1);
    hts_close(bam);

    lw_error err = {0};
    hts_set_log_level(HTS_LOG_OFF);
    file = begin("/dev/full", NULL);
    cr_assert_eq(lw_outfile_hts(file, "wb", &bam, &err), LW_OK);
    cr_expect(hts_close(bam) < 0);
    cr_expect_eq(lw_outfile_close(file, lw_outfile_failed(file, errno, &err), &err), LW_E_IO);
    cr_expect_str_eq(err.message, "/dev/full: writing failed: No space left on device");
}

Test(outfile, a_handler_can_remove_temporaries)
{
    static lw_temporaries temporaries;
    lw_outfile *files[3];
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "out%d", i);
        files[i] = begin(test_path(name), &temporaries);
    }
    cr_expect_eq(test_count_files(), 3);
    cr_expect_eq(lw_outfile_close(files[1], LW_OK, NULL), LW_OK);
    /* not between the names of files that belong together */
    atomic_store(&temporaries.renaming, 1);
    cr_expect_not(lw_temporaries_remove(&temporaries));
    cr_expect_eq(test_count_files(), 3);
    atomic_store(&temporaries.renaming, 0);
    cr_expect(lw_temporaries_remove(&temporaries));
    cr_expect_eq(test_count_files(), 1);
    /* what a process does that goes on nevertheless: nothing gets its name any more */
    lw_error err = {0};
    cr_expect_eq(lw_outfile_close(files[0], LW_OK, &err), LW_E_INTERRUPTED);
    cr_expect_eq(lw_outfile_close(files[2], LW_E_INTERRUPTED, &err), LW_E_INTERRUPTED);
    cr_expect_eq(test_count_files(), 1);
    cr_expect_eq(lw_temporaries_add(NULL, "x"), -1);
    /* the places of what was removed stay taken: another handler may still be reading their names */
    for (int i = 0; i < LW_TEMPORARIES - 2; i++)
        cr_expect_eq(lw_temporaries_add(&temporaries, "/tmp/lw-no-such-file"), i == 0 ? 1 : i + 2);
    cr_expect_eq(lw_temporaries_add(&temporaries, "/tmp/lw-no-such-file"), -1);
    cr_expect(lw_temporaries_remove(&temporaries));
}
