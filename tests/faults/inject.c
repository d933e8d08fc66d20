/* inject.c - a library for LD_PRELOAD that makes the n-th call of one kind fail. For tests only.
 *
 *     LW_FAULT=KIND:N      the N-th such call fails, the others work; N 0: none, but they are counted
 *     LW_FAULT_COUNT=FILE  receives how many calls there were
 *
 * KIND: memory (malloc, calloc, realloc, strdup called by the program itself: libraries answer for their
 * own), thread (pthread_create), and of any caller, for files with descriptors above 2: write-full (ENOSPC),
 * write-broken (EPIPE), write-error (EIO), write-short (half of the bytes), write-again (EINTR), read-error
 * (EIO), read-short (one byte at a time from the N-th call on), read-again (EINTR), open (EMFILE), rename,
 * fsync, close (ENOSPC). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static bool started; /* main() runs: what libraries linked into the program do before it is theirs */
static char wanted[32];
static long target = -1; /* -1: not set up, nothing fails */
static atomic_long calls;
static uintptr_t program_low, program_high;

static int find_program(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            program_low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            program_high = program_low + info->dlpi_phdr[i].p_memsz;
        }
    return 1; /* the first object is the program */
}

__attribute__((constructor)) static void set_up(void)
{
    const char *fault = getenv("LW_FAULT");
    const char *colon = fault ? strchr(fault, ':') : NULL;
    if (!colon || (size_t)(colon - fault) >= sizeof wanted)
        return;
    dl_iterate_phdr(find_program, NULL);
    memcpy(wanted, fault, (size_t)(colon - fault));
    target = atol(colon + 1);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("LW_FAULT_COUNT");
    if (!path || target < 0)
        return;
    target = -1;
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "%ld\n", atomic_load(&calls));
        fclose(file);
    }
}

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **envp)
{
    started = true;
    return real_main(argc, argv, envp);
}

int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    real_main = start;
    return ((__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main"))(
        counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* Counts a call of this kind; true for the one that is to fail. */
static bool fails(const char *kind)
{
    return target >= 0 && strcmp(kind, wanted) == 0 && atomic_fetch_add(&calls, 1) + 1 == target;
}

static bool by_program(void *caller)
{
    return started && (uintptr_t)caller >= program_low && (uintptr_t)caller < program_high;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MEMORY_FAILS (target >= 0 && by_program(__builtin_return_address(0)) && fails("memory"))

/* dlsym() may allocate, so the allocator is called by glibc's own names. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

void *malloc(size_t size)
{
    if (MEMORY_FAILS) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    if (MEMORY_FAILS) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    if (MEMORY_FAILS) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, size);
}

char *strdup(const char *text)
{
    if (MEMORY_FAILS) {
        errno = ENOMEM;
        return NULL;
    }
    size_t size = strlen(text) + 1;
    char *copy = __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    return by_program(__builtin_return_address(0)) && fails("thread")
               ? EAGAIN
               : REAL(pthread_create)(thread, attr, start, arg);
}

static ssize_t failed(int reason)
{
    errno = reason;
    return -1;
}

/* A pipe inside the program takes and gives whatever there is. */
static bool is_file(int fd)
{
    struct stat info;
    return fd > 2 && fstat(fd, &info) == 0 && !S_ISFIFO(info.st_mode);
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (target >= 0 && is_file(fd)) {
        if (fails("write-full"))
            return failed(ENOSPC);
        if (fails("write-broken"))
            return failed(EPIPE);
        if (fails("write-error"))
            return failed(EIO);
        if (fails("write-again"))
            return failed(EINTR);
        if (fails("write-short"))
            size = (size + 1) / 2;
    }
    return REAL(write)(fd, data, size);
}

ssize_t read(int fd, void *data, size_t size)
{
    if (target >= 0 && is_file(fd)) {
        if (fails("read-error"))
            return failed(EIO);
        if (fails("read-again"))
            return failed(EINTR);
        if (strcmp(wanted, "read-short") == 0 && size > 1 && atomic_fetch_add(&calls, 1) + 1 >= target &&
            target > 0)
            size = 1;
    }
    return REAL(read)(fd, data, size);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    /* files of the system's are none of ours */
    bool ours = strncmp(path, "/proc", 5) != 0 && strncmp(path, "/sys", 4) != 0 &&
                strncmp(path, "/dev", 4) != 0 && strncmp(path, "/etc", 4) != 0 &&
                strncmp(path, "/usr", 4) != 0 && strncmp(path, "/lib", 4) != 0;
    return ours && fails("open") ? (int)failed(EMFILE) : REAL(open)(path, flags, mode);
}

int rename(const char *from, const char *to)
{
    return fails("rename") ? (int)failed(EACCES) : REAL(rename)(from, to);
}

int fsync(int fd)
{
    return fails("fsync") ? (int)failed(EIO) : REAL(fsync)(fd);
}

int close(int fd)
{
    if (fd > 2 && fails("close")) {
        REAL(close)(fd);
        return (int)failed(ENOSPC);
    }
    return REAL(close)(fd);
}
