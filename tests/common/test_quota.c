/* test_quota.c - quotas of control groups, of both versions, in a tree of files that stands for the system's.
 */
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

#include "common/quota.h"
#include "files.h"

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static void put(const char *root, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

Test(quota, every_group_above_counts)
{
    enum { FILES = 3 };
    const struct {
        const char *what, *groups;
        const char *file[FILES][2];
        int expected;
    } cases[] = {
        {"nothing to be read", NULL, {{NULL}}, INT_MAX},
        {"no limit", "0::/job\n", {{"job/cpu.max", "max 100000\n"}}, INT_MAX},
        {"two processors and a half", "0::/job\n", {{"job/cpu.max", "250000 100000\n"}}, 3},
        {"whole ones", "0::/job\n", {{"job/cpu.max", "400000 100000\n"}}, 4},
        {"less than one", "0::/job\n", {{"job/cpu.max", "1000 100000\n"}}, 1},
        {"more than any", "0::/job\n", {{"job/cpu.max", "9000000000000000 1\n"}}, INT_MAX},
        {"a group above",
         "0::/slurm/job/step\n",
         {{"slurm/job/step/cpu.max", "max 100000\n"}, {"slurm/cpu.max", "200000 100000\n"}},
         2},
        {"the tightest",
         "0::/slurm/job/step\n",
         {{"slurm/job/step/cpu.max", "800000 100000\n"},
          {"slurm/job/cpu.max", "500000 100000\n"},
          {"slurm/cpu.max", "600000 100000\n"}},
         5},
        {"a container sees its own group as the top", "0::/docker/1f\n", {{"cpu.max", "150000 100000"}}, 2},
        {"the top itself", "0::/\n", {{"cpu.max", "150000 100000\n"}}, 2},
        {"not the neighbour's", "0::/job\n", {{"job2/cpu.max", "100000 100000\n"}}, INT_MAX},
        {"nonsense", "0::/job\nhello\n::\n7\n", {{"job/cpu.max", "-5 0\n"}}, INT_MAX},
        {"a number alone", "0::/job\n", {{"job/cpu.max", "100000\n"}}, INT_MAX},
        {"version 1",
         "3:cpu,cpuacct:/job\n2:cpuset:/job\n0::/\n",
         {{"cpu/job/cpu.cfs_quota_us", "300000\n"}, {"cpu/job/cpu.cfs_period_us", "100000\n"}},
         3},
        {"version 1, no limit",
         "3:cpuacct,cpu:/job\n",
         {{"cpu/job/cpu.cfs_quota_us", "-1\n"}, {"cpu/job/cpu.cfs_period_us", "100000\n"}},
         INT_MAX},
        {"version 1, another controller",
         "3:cpuset:/job\n",
         {{"cpu/job/cpu.cfs_quota_us", "100000\n"}, {"cpu/job/cpu.cfs_period_us", "100000\n"}},
         INT_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[] = "/tmp/lw-test-XXXXXX";
        cr_assert(mkdtemp(root));
        if (cases[i].groups)
            put(root, "proc/self/cgroup", cases[i].groups);
        for (int k = 0; k < FILES && cases[i].file[k][0]; k++) {
            char name[200];
            snprintf(name, sizeof name, "sys/fs/cgroup/%s", cases[i].file[k][0]);
            put(root, name, cases[i].file[k][1]);
        }
        int got = lw_quota_processors(root);
        cr_expect_eq(got, cases[i].expected, "%s: %d, not %d", cases[i].what, got, cases[i].expected);
        nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
    cr_expect(lw_quota_processors("") >= 1);
}
