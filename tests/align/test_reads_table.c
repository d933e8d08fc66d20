/* test_reads_table.c - real reads against real references: the best score over both strands and all
 * references, and its place where that is unique, as independent programs found them. */
#include "cli/program.h"

/* Aligns the reads of one set of `table` that stand in it and compares. Returns how many were compared. */
static int check_set(const char *table, const char *set, const char *ref, const char *reads, bool one_line)
{
    FILE *file = fopen(table, "r");
    cr_assert(file, "%s is missing", table);
    char *line = NULL, options[128] = "";
    size_t capacity = 0;
    char names[256];
    snprintf(names, sizeof names, "%s/names", program_dir());
    FILE *wanted = fopen(names, "w");
    cr_assert(wanted);
    while (getline(&line, &capacity, file) > 0)
        if (strcmp(field(line, 0), set) == 0) {
            fprintf(wanted, "%s\n", field(line, 1));
            /* the table's gap_open is the cost of a gap's first letter */
            sprintf(options, "-A %s -B %d -O %d -E %s", field(line, 2), abs(atoi(field(line, 3))),
                    atoi(field(line, 4)) - atoi(field(line, 5)), field(line, 5));
        }
    fclose(wanted);
    /* of FASTQ with one line a sequence only the reads that are asked for */
    const char *const filter =
        "awk 'NR == FNR {want[\"@\" $1]; next} FNR % 4 == 1 {on = $1 in want} on' names -";
    const char *out = sh_ok("gzip -dc '%s' | %s | $LW align '%s' - -q --format tsv %s", reads,
                            one_line ? filter : "cat", ref, options);
    rewind(file);
    int n = 0;
    while (getline(&line, &capacity, file) > 0) {
        if (strcmp(field(line, 0), set) != 0)
            continue;
        n++;
        char key[512];
        snprintf(key, sizeof key, "\n%s\t", field(line, 1));
        const char *got = strstr(out, key);
        cr_assert(got, "%s has no line", field(line, 1));
        got++;
        cr_expect_str_eq(field(got, 3), field(line, 6), "%s: score %s, not %s", field(line, 1), field(got, 3),
                         field(line, 6));
        static const int column[][2] = {{7, 2}, {8, 1}, {11, 6}, {12, 7}}; /* strand, reference, its ends */
        for (int k = 0; k < 4; k++)
            if (strcmp(field(line, column[k][0]), ".") != 0)
                cr_expect_str_eq(field(got, column[k][1]), field(line, column[k][0]), "%s: %s, not %s",
                                 field(line, 1), field(got, column[k][1]), field(line, column[k][0]));
    }
    free(line);
    fclose(file);
    return n;
}

static const char *shared(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", LW_SHARED_DIR, name);
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is not there: reads that may not be copied", path);
    return path;
}

Test(reads_table, illumina_c_elegans)
{
    cr_assert_eq(check_set(LW_SOURCE_DIR "/tests/data/align_best_ce.tsv", "ce_illumina",
                           LW_SOURCE_DIR "/data/ref/ce.fa.gz",
                           LW_SOURCE_DIR "/data/reads/illumina_ce1000.fastq.gz", true),
                 75);
}

Test(reads_table, nanopore_sars_cov_2)
{
    cr_assert_eq(check_set(shared("cases/reads_vs_ref/best.tsv"), "sarscov2_ont",
                           shared("data/ref/MN908947.3.fa"),
                           shared("data/reads/sarscov2_MT007544_ont.fastq.gz"), true),
                 100);
}

Test(reads_table, long_reads_of_lambda)
{
    cr_assert_eq(check_set(shared("cases/reads_vs_ref/best.tsv"), "lambda_long",
                           shared("data/ref/lambda_NC_001416.fa.gz"),
                           shared("data/reads/lambda_long_racon.fastq.gz"), false),
                 30);
}

Test(reads_table, pieces_of_long_reads_of_lambda)
{
    cr_assert_eq(check_set(shared("cases/reads_vs_ref/best.tsv"), "lambda_spoa",
                           shared("data/ref/lambda_NC_001416.fa.gz"),
                           shared("data/reads/lambda_spoa.fastq.gz"), true),
                 28);
}
