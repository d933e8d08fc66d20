/* test_refs.c - references in memory, their sums, and the indexed copy for CRAM. */
#include <strings.h>
#include <htslib/faidx.h>
#include <htslib/hts.h>
#include <criterion/criterion.h>

#include "common/refs.h"
#include "common/files.h"

static lw_refs *load(const char *path)
{
    lw_refs *refs = NULL;
    lw_error err = {0};
    cr_assert_eq(lw_refs_load(&refs, path, NULL, NULL, &err), LW_OK, "%s", err.message);
    return refs;
}

Test(refs, loads)
{
    static const char text[] = ">a one\nacgtn\nACGU\n>b\r\nTT TT\r\n";
    const char *path = test_write("ref.fa", text, sizeof text - 1);
    lw_refs *refs = load(path);
    cr_expect_eq(refs->n, 2);
    cr_expect_eq(refs->total, 13);
    cr_expect_str_eq(refs->path, path);
    cr_expect_str_eq(refs->name[0], "a");
    cr_expect_str_eq(refs->name[1], "b");
    cr_expect_str_eq(refs->letters + refs->start[0], "ACGTNACGU");
    cr_expect_str_eq(refs->letters + refs->start[1], "TTTT");
    cr_expect_eq(refs->len[0], 9);
    cr_expect_eq(refs->len[1], 4);
    char md5[33];
    cr_expect_eq(lw_refs_md5(refs, 1, md5, NULL), LW_OK);
    cr_expect_str_eq(md5, "2f803268a6367d0943978eb5f84cc62e"); /* printf TTTT | md5sum */
    lw_refs_free(refs);
}

Test(refs, refuses)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", ": the file is empty"},
        {">a\nAC\n>b\nAC\n>b x\nAC\n>a\nAC\n",
         ": record 3 (b): record 2 has the same name; reference names must be unique"},
        {">a\n>b\nAC\n", ": record 1 (a): the reference sequence is empty: remove it or give its letters"},
        {">a\nAC\n> b\nAC\n", ": record 2: a reference sequence needs a name right after the '>'"},
        {"AC\n", ": line 1: text before the first header: FASTA begins with '>', FASTQ with '@'"},
        {"@HD\tVN:1.6\n@SQ\tSN:a\tLN:5\n", ": holds alignments; the reference must be FASTA"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = test_write("ref.fa", cases[i].text, strlen(cases[i].text));
        lw_refs *refs = NULL;
        lw_error err = {0};
        cr_expect_eq(lw_refs_load(&refs, path, NULL, NULL, &err), LW_E_INPUT);
        cr_expect_str_eq(err.message + strlen(path), cases[i].message);
        cr_expect_null(refs);
    }
    lw_error err = {0};
    lw_refs *refs = NULL;
    cr_expect_eq(lw_refs_load(&refs, "/missing", NULL, NULL, &err), LW_E_IO);
    cr_expect_str_eq(err.message, "/missing: cannot be opened: No such file or directory");
}

Test(refs, many_and_long)
{
    enum { MANY = 20000, LONG = 40000000 };
    const char *path = test_path("many.fa");
    FILE *file = fopen(path, "w");
    for (int i = 0; i < MANY; i++)
        fprintf(file, ">r%d\n%.*s\n", i, i % 8 + 1, "ACGTACGT");
    fprintf(file, ">long\n");
    for (int i = 0; i < LONG / 8; i++)
        fputs("acgtacgt", file);
    cr_assert_eq(fclose(file), 0);
    lw_refs *refs = load(path);
    cr_expect_eq(refs->n, MANY + 1);
    for (int i = 0; i < MANY; i++)
        cr_expect(refs->len[i] == i % 8 + 1 && atoi(refs->name[i] + 1) == i);
    cr_expect_eq(refs->len[MANY], LONG);
    cr_expect_eq(strspn(refs->letters + refs->start[MANY], "ACGT"), LONG);
    lw_refs_free(refs);
}

/* The sums that samtools wrote into a CRAM's header. */
Test(refs, md5_of_a_real_reference)
{
    static const char *const sums[] = {"8ede36131e0dbf3417807e48f77f3ebd", "8e7993f7a93158587ee897d7287948ec",
                                       "3adcb065e1cf74fafdbba1e8c352b323", "251af66a69ee589c9f3757340ec2de6f",
                                       "cf200a65fb754836dcc56b24b3170ee8", "6f9368fd2192c89c613718399d2d31fc",
                                       "cd05857ece6411f40257a565ccfe15bb"};
    lw_refs *refs = load(LW_SOURCE_DIR "/data/ref/ce.fa.gz");
    cr_assert_eq(refs->n, 7);
    for (int i = 0; i < 7; i++) {
        char md5[33];
        cr_expect_eq(lw_refs_md5(refs, i, md5, NULL), LW_OK);
        cr_expect_str_eq(md5, sums[i]);
    }
    lw_refs_free(refs);
}

static void check_indexed(const lw_refs *refs, const char *path)
{
    faidx_t *index = fai_load3(path, NULL, NULL, 0);
    cr_assert(index, "%s has no index", path);
    for (int64_t i = 0; i < refs->n; i++) {
        hts_pos_t n = 0;
        char *letters = faidx_fetch_seq64(index, refs->name[i], 0, refs->len[i] - 1, &n);
        cr_expect_eq(n, refs->len[i]);
        cr_expect(letters && strcasecmp(letters, refs->letters + refs->start[i]) == 0);
        free(letters);
    }
    fai_destroy(index);
}

Test(refs, indexed_copy)
{
    hts_set_log_level(HTS_LOG_OFF);
    static const char text[] = ">a one\nacgtn\nAC\n>b\nTTTT\n";
    const char *path = test_write("ref.fa", text, sizeof text - 1);
    setenv("TMPDIR", test_folder, 1);
    lw_refs *refs = load(path);
    static lw_temporaries temporaries;
    lw_fasta *fasta = NULL;
    lw_error err = {0};
    /* no index yet: a copy, and nothing beside the user's file but it */
    cr_assert_eq(lw_refs_indexed_fasta(&fasta, refs, &temporaries, &err), LW_OK, "%s", err.message);
    cr_expect(strcmp(lw_fasta_path(fasta), path) != 0);
    check_indexed(refs, lw_fasta_path(fasta));
    cr_expect_eq(test_count_files(), 3);
    lw_fasta_close(fasta);
    cr_expect_eq(test_count_files(), 1);
    /* an index: the file itself */
    cr_assert_eq(fai_build(path), 0);
    cr_assert_eq(lw_refs_indexed_fasta(&fasta, refs, &temporaries, &err), LW_OK, "%s", err.message);
    cr_expect_str_eq(lw_fasta_path(fasta), path);
    lw_fasta_close(fasta);
    cr_expect_eq(test_count_files(), 2);
    /* an index of something else */
    char name[500];
    snprintf(name, sizeof name, "%s.fai", path);
    FILE *file = fopen(name, "w");
    fputs("a\t8\t7\t5\t6\nb\t4\t19\t4\t5\n", file);
    fclose(file);
    cr_assert_eq(lw_refs_indexed_fasta(&fasta, refs, &temporaries, &err), LW_OK, "%s", err.message);
    cr_expect(strcmp(lw_fasta_path(fasta), path) != 0);
    check_indexed(refs, lw_fasta_path(fasta));
    lw_fasta_close(fasta);
    /* no place for the copy */
    setenv("TMPDIR", "/missing-folder", 1);
    cr_expect_eq(lw_refs_indexed_fasta(&fasta, refs, &temporaries, &err), LW_E_IO);
    cr_expect_str_eq(
        err.message,
        "/missing-folder: the temporary copy of the reference cannot be made: No such file or directory");
    lw_refs_free(refs);
}
