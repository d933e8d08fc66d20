/* test_pairs_table.c - `lanewise pairs` and `align` against results of independent programs (data/README.md
 * says where the tables come from). */
#include "cli/program.h"

/* One row of pairs.tsv. */
typedef struct row {
    char id[16], category[32], mode[16], matrix[32];
    int gap_open, gap_extend; /* the table's: a gap of k costs gap_open + (k - 1) * gap_extend */
    char *query, *target;
    char score[16], qstart[16], qend[16], tstart[16], tend[16];
    char *cigar;
    bool seen;
} row;

static row *read_rows(const char *path, int *n)
{
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s is missing", path);
    row *rows = calloc(512, sizeof *rows);
    char *line = NULL;
    size_t capacity = 0;
    *n = 0;
    while (getline(&line, &capacity, file) > 0) {
        if (*line == '#' || strncmp(line, "id\t", 3) == 0)
            continue;
        char *f[16], *save = line;
        for (int k = 0; k < 16; k++)
            f[k] = strsep(&save, "\t\n");
        row *r = &rows[(*n)++];
        strcpy(r->id, f[0]), strcpy(r->category, f[1]), strcpy(r->mode, f[2]), strcpy(r->matrix, f[3]);
        r->gap_open = atoi(f[4]);
        r->gap_extend = atoi(f[5]);
        r->query = strdup(f[6]);
        r->target = strdup(f[7]);
        strcpy(r->score, f[8]), strcpy(r->qstart, f[9]), strcpy(r->qend, f[10]);
        strcpy(r->tstart, f[11]), strcpy(r->tend, f[12]);
        r->cigar = strdup(f[14]);
    }
    fclose(file);
    free(line);
    return rows;
}

/* '=' and 'X' become M, and neighbours melt: for rows with letters N and X, which never count as equal here.
 */
static void merge_matches(const char *cigar, char *out)
{
    long run = 0;
    char last = 0;
    int n = 0;
    for (const char *p = cigar; *p;) {
        char *end;
        long length = strtol(p, &end, 10);
        char op = *end == '=' || *end == 'X' ? 'M' : *end;
        if (op != last && run)
            n += sprintf(out + n, "%ld%c", run, last);
        run = op == last ? run + length : length;
        last = op;
        p = end + 1;
    }
    sprintf(out + n, "%ld%c", run, last);
}

static bool same_cigar(const row *r, const char *got)
{
    if (strcmp(r->cigar, got) == 0)
        return true;
    static char a[1 << 16], b[1 << 16];
    if (!strpbrk(r->query, "NnXx"))
        return false;
    merge_matches(r->cigar, a);
    merge_matches(got, b);
    return strcmp(a, b) == 0;
}

static void check_row(const row *r, const char *line)
{
    static const int column[] = {4, 5, 6, 7};
    const char *const want[] = {r->qstart, r->qend, r->tstart, r->tend};
    cr_expect_str_eq(field(line, 0), r->id);
    cr_expect_str_eq(field(line, 3), r->score, "%s (%s %s %s): score %s, not %s", r->id, r->category, r->mode,
                     r->matrix, field(line, 3), r->score);
    for (int k = 0; k < 4; k++)
        if (strcmp(want[k], ".") != 0)
            cr_expect_str_eq(field(line, column[k]), want[k], "%s: column %d is %s, not %s", r->id, column[k],
                             field(line, column[k]), want[k]);
    if (strcmp(r->cigar, ".") != 0)
        cr_expect(same_cigar(r, field(line, 8)), "%s: CIGAR %s, not %s", r->id, field(line, 8), r->cigar);
}

static bool same_scheme(const row *a, const row *b)
{
    return strcmp(a->mode, b->mode) == 0 && strcmp(a->matrix, b->matrix) == 0 && a->gap_open == b->gap_open &&
           a->gap_extend == b->gap_extend;
}

/* Options of a row's scheme. */
static void scheme_options(const row *r, char *out)
{
    int match, mismatch;
    int n = sprintf(out, "--mode %s -O %d -E %d", strcmp(r->mode, "fit") == 0 ? "semiglobal" : r->mode,
                    r->gap_open - r->gap_extend, r->gap_extend);
    if (sscanf(r->matrix, "%d/-%d", &match, &mismatch) == 2)
        sprintf(out + n, " --type dna -A %d -B %d", match, mismatch);
    else
        sprintf(out + n, " --matrix %s", r->matrix);
}

/* All rows of one scheme go through one run. Returns the number of rows checked. */
static int check_table(const char *path, const char *backend)
{
    int n, checked = 0;
    row *rows = read_rows(path, &n);
    for (int i = 0; i < n; i++) {
        if (rows[i].seen || strcmp(rows[i].mode, "overlap") == 0)
            continue;
        char options[128], a[128], b[128];
        snprintf(a, sizeof a, "%s/a.fa", program_dir());
        snprintf(b, sizeof b, "%s/b.fa", program_dir());
        FILE *queries = fopen(a, "w"), *targets = fopen(b, "w");
        cr_assert(queries && targets);
        for (int j = i; j < n; j++)
            if (same_scheme(&rows[i], &rows[j])) {
                fprintf(queries, ">%s\n%s\n", rows[j].id, rows[j].query);
                fprintf(targets, ">t%s\n%s\n", rows[j].id, rows[j].target);
            }
        fclose(queries);
        fclose(targets);
        scheme_options(&rows[i], options);
        const char *out = sh_ok("$LW pairs a.fa b.fa -q --eqx --backend %s %s", backend, options);
        int line = 0;
        for (int j = i; j < n; j++)
            if (same_scheme(&rows[i], &rows[j])) {
                rows[j].seen = true;
                check_row(&rows[j], record(out, line++));
                checked++;
            }
        cr_assert_eq(count_lines(out), line + 1);
    }
    return checked;
}

Test(pairs_table, copied_rows_scalar)
{
    cr_assert_eq(check_table(LW_SOURCE_DIR "/tests/data/align_pairs.tsv", "scalar"), 149);
}

Test(pairs_table, copied_rows_auto)
{
    cr_assert_eq(check_table(LW_SOURCE_DIR "/tests/data/align_pairs.tsv", "auto"), 149);
}

Test(pairs_table, all_rows)
{
    const char *path = LW_SHARED_DIR "/cases/align/pairs.tsv";
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is not there: rows cut from reads that may not be copied", path);
    cr_assert_eq(check_table(path, "auto"), 200);
}

/* Letters outside the alphabet: policy tables, one score column each. */
static void check_policy(const char *path, int column, const char *options)
{
    FILE *file = fopen(path, "r");
    cr_assert(file);
    char *line = NULL;
    size_t capacity = 0;
    int n = 0;
    while (getline(&line, &capacity, file) > 0) {
        if (*line == '#' || strncmp(line, "id\t", 3) == 0)
            continue;
        char text[4096];
        snprintf(text, sizeof text, ">q\n%s\n", field(line, 1));
        program_put("a.fa", text);
        snprintf(text, sizeof text, ">t\n%s\n", field(line, 2));
        program_put("b.fa", text);
        const char *out = sh_ok("$LW pairs a.fa b.fa -q %s", options);
        cr_expect_str_eq(field(record(out, 0), 3), field(line, column), "%s: %s", field(line, 0), out);
        n++;
    }
    free(line);
    fclose(file);
    cr_assert_gt(n, 3);
}

Test(pairs_table, policy_dna)
{
    check_policy(LW_SOURCE_DIR "/tests/data/align_policy_dna.tsv", 4, "--type dna -A 2 -B 3 -O 3 -E 2");
}

Test(pairs_table, policy_protein)
{
    check_policy(LW_SOURCE_DIR "/tests/data/align_policy_protein.tsv", 4, "--matrix BLOSUM62 -O 10 -E 1");
}
