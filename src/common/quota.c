/* quota.c - how much processor time the control groups of this process leave to it.
 *
 * Containers and batch systems often limit time and not processors: then all of them are to be seen, and
 * threads on all would be stopped together for most of each period. Version 2 of the groups
 * (cpu.max) and version 1 (cpu.cfs_*_us) at their usual places. In a container the group's path may be the
 * host's, of which only the end of the walk upwards, the container's own group, is to be seen. */
#include "common/quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its first numbers, as many as there are, up to two; "max" is none. */
static int read_numbers(const char *path, long long number[2])
{
    FILE *file = fopen(path, "re");
    int n = file ? fscanf(file, "%lld %lld", &number[0], &number[1]) : 0;
    if (file)
        fclose(file);
    return n < 0 ? 0 : n;
}

static int processors(const char *folder, bool first_version)
{
    char path[PATH_MAX + 32];
    long long number[2], second[2];
    int n;
    if (first_version) {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        n = read_numbers(path, number); /* -1: none */
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        n = n >= 1 && read_numbers(path, second) >= 1 ? 2 : 0;
        number[1] = n == 2 ? second[0] : 0;
    } else {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        n = read_numbers(path, number);
    }
    if (n < 2 || number[0] <= 0 || number[1] <= 0)
        return INT_MAX;
    long long whole = number[0] / number[1] + (number[0] % number[1] != 0);
    return whole < INT_MAX ? (int)whole : INT_MAX;
}

static bool names_cpu(const char *controllers)
{
    for (const char *at = controllers; (at = strstr(at, "cpu")); at += 3)
        if ((at == controllers || at[-1] == ',') && (at[3] == ',' || at[3] == '\0'))
            return true;
    return false;
}

int lw_quota_processors(const char *root)
{
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    int least = INT_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *groups = fopen(path, "re");
    while (groups && getline(&line, &room, groups) > 0) { /* number:controllers:/path */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *controllers++ = *group++ = '\0';
        bool first_version = *controllers != '\0';
        if (first_version && !names_cpu(controllers))
            continue;
        int top = snprintf(path, sizeof path, "%s/sys/fs/cgroup%s", root, first_version ? "/cpu" : "");
        if (top < 0 || (size_t)top + strlen(group) >= sizeof path)
            continue;
        strcpy(path + top, group);
        for (char *end = path + strlen(path); end;) {
            *end = '\0';
            int n = processors(path, first_version);
            least = n < least ? n : least;
            end = end > path + top ? strrchr(path + top, '/') : NULL;
        }
    }
    free(line);
    if (groups)
        fclose(groups);
    return least;
}
