/* test_parasail.c - scores against parasail's, an independent implementation: random and adversarial pairs,
 * and reads against several references on both strands. Its `scan` kernels are the ones without known faults.
 */
#include <parasail.h>
#include <parasail/matrices/blosum50.h>
#include <parasail/matrices/blosum62.h>

#include "cli/program.h"

enum { N_PAIRS = 300, LONGEST = 400 };
static char query[N_PAIRS][2 * LONGEST], target[N_PAIRS][2 * LONGEST];

static void write_pairs(const char *alphabet, uint64_t seed)
{
    char a[128], b[128];
    snprintf(a, sizeof a, "%s/a.fa", program_dir());
    snprintf(b, sizeof b, "%s/b.fa", program_dir());
    FILE *queries = fopen(a, "w"), *targets = fopen(b, "w");
    uint64_t state = seed;
    for (int i = 0; i < N_PAIRS; i++) {
        int n = 1 + (int)(random_number(&state) % LONGEST);
        /* few letters and repeats make many ties and gaps */
        random_letters(target[i], n, i % 3 == 0 ? "AC" : alphabet, &state);
        if (i % 5 == 0)
            for (int k = 7; k < n; k++)
                target[i][k] = target[i][k - 7];
        int from = (int)(random_number(&state) % (uint32_t)n), m = n - from;
        if (m > LONGEST / 2)
            m = LONGEST / 2;
        if (i % 4 == 3 || m == 0)
            random_letters(query[i], m = 1 + (int)(random_number(&state) % 100), alphabet, &state);
        else
            m = mutate(target[i] + from, m, (int)(random_number(&state) % 30), query[i], &state);
        if (m == 0)
            strcpy(query[i], "A");
        for (char *p = query[i]; *p; p++) /* parasail has no rule for N */
            if (*p == 'N')
                *p = 'A';
        fprintf(queries, ">%d\n%s\n", i, query[i]);
        fprintf(targets, ">%d\n%s\n", i, target[i]);
    }
    fclose(queries);
    fclose(targets);
}

typedef parasail_result_t *(*oracle)(const char *, int, const char *, int, int, int,
                                     const parasail_matrix_t *);

static const struct {
    const char *mode;
    oracle run;
} modes[] = {
    {"local", parasail_sw_scan_32}, {"global", parasail_nw_scan_32}, {"semiglobal", parasail_sg_dx_scan_32}};

static void check_pairs(const parasail_matrix_t *matrix, int open, int extend, const char *options)
{
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        const char *out =
            sh_ok("$LW pairs a.fa b.fa -q --mode %s -O %d -E %d %s", modes[m].mode, open, extend, options);
        for (int i = 0; i < N_PAIRS; i++) {
            /* parasail's "open" is the cost of a gap's first letter */
            parasail_result_t *r = modes[m].run(query[i], (int)strlen(query[i]), target[i],
                                                (int)strlen(target[i]), open + extend, extend, matrix);
            cr_assert_eq(atoi(field(record(out, i), 3)), parasail_result_get_score(r),
                         "%s, pair %d: %s, not %d", modes[m].mode, i, field(record(out, i), 3),
                         parasail_result_get_score(r));
            parasail_result_free(r);
        }
    }
}

Test(parasail, dna_pairs)
{
    static const int schemes[][4] = {{1, 4, 6, 1}, {2, 3, 3, 2},   {1, 1, 0, 1},     {5, 4, 8, 0},
                                     {2, 2, 3, 1}, {1, 29, 61, 3}, {100, 100, 90, 7}};
    write_pairs("ACGT", 1);
    for (size_t k = 0; k < sizeof schemes / sizeof *schemes; k++) {
        const int *s = schemes[k];
        char options[64];
        parasail_matrix_t *matrix = parasail_matrix_create("ACGT", s[0], -s[1]);
        snprintf(options, sizeof options, "--type dna -A %d -B %d", s[0], s[1]);
        check_pairs(matrix, s[2], s[3], options);
        parasail_matrix_free(matrix);
    }
}

Test(parasail, protein_pairs)
{
    write_pairs("ARNDCQEGHILKMFPSTWYVBZX", 2);
    check_pairs(&parasail_blosum62, 11, 1, "--matrix BLOSUM62");
    check_pairs(&parasail_blosum50, 10, 2, "--matrix BLOSUM50");
    check_pairs(&parasail_blosum62, 0, 1, "--matrix BLOSUM62");
}

/* The best over references and strands, with the tie rule's strand and reference. */
Test(parasail, reads_against_references)
{
    static char ref[3][1200];
    uint64_t state = 8;
    char path[128];
    snprintf(path, sizeof path, "%s/r.fa", program_dir());
    FILE *file = fopen(path, "w");
    for (int r = 0; r < 3; r++) {
        random_letters(ref[r], 1000, "ACGT", &state);
        if (r == 2)
            memcpy(ref[2] + 100, ref[0] + 500, 300);
        fprintf(file, ">%d\n%s\n", r, ref[r]);
    }
    fclose(file);
    snprintf(path, sizeof path, "%s/q.fa", program_dir());
    file = fopen(path, "w");
    for (int i = 0; i < N_PAIRS; i++) {
        int n = mutate(ref[i % 3] + random_number(&state) % 800, 150, i % 20, query[i], &state);
        for (char *p = query[i]; *p; p++)
            if (*p == 'N')
                *p = 'C';
        if (i % 2)
            reverse_complement(query[i], n);
        fprintf(file, ">%d\n%s\n", i, query[i]);
    }
    fclose(file);
    parasail_matrix_t *matrix = parasail_matrix_create("ACGT", 1, -4);
    for (int m = 0; m < 3; m++) {
        const char *out = sh_ok("$LW align r.fa q.fa -q --format tsv --mode %s", modes[m].mode);
        for (int i = 0; i < N_PAIRS; i++) {
            int best = -1000000, best_reverse = 0, best_ref = 0;
            for (int reverse = 0; reverse < 2; reverse++) {
                char *q = strdup(query[i]);
                int n = (int)strlen(q);
                if (reverse)
                    reverse_complement(q, n);
                for (int r = 0; r < 3; r++) {
                    parasail_result_t *result = modes[m].run(q, n, ref[r], 1000, 7, 1, matrix);
                    int score = parasail_result_get_score(result);
                    if (score > best)
                        best = score, best_reverse = reverse, best_ref = r;
                    parasail_result_free(result);
                }
                free(q);
            }
            const char *line = record(out, i);
            cr_assert_eq(atoi(field(line, 3)), best, "%s, read %d", modes[m].mode, i);
            cr_assert_str_eq(field(line, 2), best_reverse ? "-" : "+", "%s, read %d", modes[m].mode, i);
            cr_assert_eq(atoi(field(line, 1)), best_ref, "%s, read %d", modes[m].mode, i);
        }
    }
    parasail_matrix_free(matrix);
}
