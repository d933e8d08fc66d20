/* exec.c - linked into the test programs of a cross build. Criterion starts each test as a new process of the
 * same program, which the system's kernel may not know how to run: such a call goes to the emulator. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The beginning of an executable file; 0: it is not there or shorter. */
static int read_head(const char *path, Elf64_Ehdr *head)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, head, sizeof *head);
    if (file >= 0)
        close(file);
    return n == (ssize_t)sizeof *head;
}

int execve(const char *path, char *const argv[], char *const env[])
{
    char *emulated[64] = {(char *)LW_EMULATOR, (char *)"-L", (char *)LW_SYSROOT, (char *)path};
    Elf64_Ehdr head, own;
    if (read_head(path, &head) && read_head("/proc/self/exe", &own) &&
        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_machine == own.e_machine) {
        for (int i = 1; argv[i] && i + 4 < (int)(sizeof emulated / sizeof *emulated); i++)
            emulated[i + 3] = argv[i];
        path = LW_EMULATOR;
        argv = emulated;
    }
    return (int)syscall(SYS_execve, path, argv, env);
}
