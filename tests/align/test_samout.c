/* test_samout.c - what is hard to reach through whole alignments: very long CIGARs, headers of several
 * inputs. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/sam.h>

#include "align/samout.h"
#include "common/files.h"

enum { N_OPS = 70001 }; /* = and X in turn, more than the 65,535 that a BAM record's own field counts */

Test(samout, more_operations_than_16_bits_count)
{
    lw_scoring s;
    lw_match_table table;
    cr_assert_eq(lw_scoring_dna(&s, 5, 1, 6, 1, NULL), LW_OK);
    lw_match_table_fill(&table, &s);
    char *query = malloc(N_OPS + 1), *target = malloc(N_OPS + 1), *qual = malloc(N_OPS + 1);
    uint32_t *cigar = malloc(N_OPS * sizeof *cigar);
    for (int i = 0; i < N_OPS; i++) {
        query[i] = 'A';
        target[i] = i % 2 ? 'C' : 'A';
        qual[i] = 'I';
        cigar[i] = 1 << 4 | (i % 2 ? BAM_CDIFF : BAM_CEQUAL);
    }
    query[N_OPS] = target[N_OPS] = qual[N_OPS] = '\0';
    /* a batch of one read: name, letters, qualities */
    lw_read read = {
        .name = 0, .name_len = 4, .seq = 5, .qual = 5 + N_OPS + 1, .aux = -1, .number = 1, .len = N_OPS};
    lw_read_batch batch = {.n = 1, .read = &read, .text = malloc(2 * N_OPS + 8)};
    strcpy(batch.text, "long");
    strcpy(batch.text + read.seq, query);
    strcpy(batch.text + read.qual, qual);
    lw_alignment alignment = {.target = 0,
                              .target_name = "ref",
                              .target_letters = target,
                              .target_len = N_OPS,
                              .score = 42,
                              .qend = N_OPS,
                              .tend = N_OPS,
                              .mapq = 60,
                              .cigar = cigar,
                              .n_cigar = N_OPS};
    lw_path_count(&table, query, target, cigar, N_OPS, &alignment.counts);
    lw_aligned_read aligned = {.batch = &batch,
                               .name = "long",
                               .name_len = 4,
                               .forward = batch.text + read.seq,
                               .n = 1,
                               .alignment = &alignment};
    lw_sq sq = {.name = "ref", .len = N_OPS, .md5 = "d41d8cd98f00b204e9800998ecf8427e"};
    lw_samout_options o = {.match = &table, .sq = &sq, .n_sq = 1, .unmapped = true};
    static const char *const names[] = {"long.sam", "long.bam"};
    for (int format = LW_FORMAT_SAM; format <= LW_FORMAT_BAM; format++) {
        const char *path = test_path(names[format]);
        lw_outfile *file;
        lw_sink *sink;
        lw_chunk chunk = {0};
        lw_error err = {0};
        o.format = (lw_align_format)format;
        cr_assert_eq(lw_outfile_open(&file, path, NULL, &err), LW_OK);
        cr_assert_eq(lw_samout_open(&sink, &o, file, &err), LW_OK, "%s", err.message);
        cr_assert_eq(sink->format(sink, &chunk, &aligned, &err), LW_OK, "%s", err.message);
        cr_assert_eq(sink->write(sink, &chunk, &err), LW_OK);
        cr_assert_eq(lw_outfile_close(file, sink->close(sink, LW_OK, &err), &err), LW_OK);
        lw_chunk_free(&chunk);
        samFile *in = sam_open(path, "r");
        sam_hdr_t *header = sam_hdr_read(in);
        bam1_t *b = bam_init1();
        cr_assert_geq(sam_read1(in, header, b), 0);
        cr_assert_eq(b->core.n_cigar, N_OPS);
        cr_assert_eq(memcmp(bam_get_cigar(b), cigar, N_OPS * sizeof *cigar), 0);
        cr_assert_eq(b->core.l_qseq, N_OPS);
        cr_assert_eq(bam_get_qual(b)[N_OPS - 1], 'I' - 33);
        cr_assert_eq(bam_aux2i(bam_aux_get(b, "NM")), N_OPS / 2);
        cr_assert_null(bam_aux_get(b, "CG"), "htslib has put the CIGAR back");
        bam_destroy1(b);
        sam_hdr_destroy(header);
        sam_close(in);
    }
    free(batch.text), free(query), free(target), free(qual), free(cigar);
}

static sam_hdr_t *header_of(const char *text)
{
    sam_hdr_t *h = sam_hdr_parse(strlen(text), text);
    cr_assert(h);
    return h;
}

static lw_status write_header(sam_hdr_t *const *headers, int n, const char *rg, char **text, lw_error *err)
{
    static const char *const paths[] = {"one.bam", "two.bam", "three.bam"};
    lw_samout_options o = {.format = LW_FORMAT_SAM,
                           .header = headers,
                           .header_path = paths,
                           .n_headers = n,
                           .read_group = rg,
                           .command_line = "lanewise align a\tb\nc"};
    lw_outfile *file;
    lw_sink *sink;
    const char *path = test_path("header.sam");
    cr_assert_eq(lw_outfile_open(&file, path, NULL, NULL), LW_OK);
    lw_status status = lw_samout_open(&sink, &o, file, err);
    if (status == LW_OK)
        status = sink->close(sink, LW_OK, err);
    status = lw_outfile_close(file, status, err);
    *text = status == LW_OK ? test_read(path, NULL) : NULL;
    return status;
}

Test(samout, lines_of_the_input_headers_are_kept)
{
    sam_hdr_t *h[2] = {
        header_of("@HD\tVN:1.5\tSO:coordinate\n@SQ\tSN:x\tLN:5\n@RG\tID:a\tSM:s\n"
                  "@PG\tID:bwa\tPN:bwa\n@PG\tID:samtools\tPN:samtools\tPP:bwa\n@CO\thello\n"),
        header_of("@SQ\tSN:y\tLN:6\n@RG\tID:a\tSM:s\n@RG\tID:b\tSM:s\n@PG\tID:bwa\tPN:bwa\tVN:2\n"
                  "@PG\tID:sort\tPP:bwa\n")};
    char *text;
    lw_error err = {0};
    cr_assert_eq(write_header(h, 2, "@RG\\tID:mine\\tSM:t", &text, &err), LW_OK, "%s", err.message);
    cr_assert(strstr(text, "@HD\tVN:1.6\tSO:unsorted"));
    cr_assert_null(strstr(text, "SN:x"), "the input's references are not ours");
    cr_assert_eq(strstr(text, "@RG\tID:a\tSM:s\n") - strstr(text, "@RG\tID:a"), 0);
    cr_assert_null(strstr(strstr(text, "@RG\tID:a") + 1, "@RG\tID:a"), "equal lines stand once");
    cr_assert(strstr(text, "@RG\tID:b\tSM:s\n"));
    cr_assert(strstr(text, "@RG\tID:mine\tSM:t\n"));
    cr_assert(strstr(text, "@CO\thello\n"));
    cr_assert(strstr(text, "@PG\tID:bwa.1\tPN:bwa\tVN:2\n"), "renamed: %s", text);
    cr_assert(strstr(text, "@PG\tID:sort\tPP:bwa.1\n"), "and so is what points at it");
    const char *pg = strstr(text, "@PG\tID:lanewise");
    cr_assert(pg && strstr(pg, "\tPP:") && strstr(pg, "VN:") && strstr(pg, "CL:lanewise align a b c"), "%s",
              text);
    free(text);
    sam_hdr_destroy(h[0]);
    sam_hdr_destroy(h[1]);
}

Test(samout, contradicting_read_groups_are_refused)
{
    sam_hdr_t *h[2] = {header_of("@RG\tID:a\tSM:s\n"), header_of("@RG\tID:a\tSM:other\n")};
    char *text;
    lw_error err = {0};
    cr_assert_eq(write_header(h, 2, NULL, &text, &err), LW_E_INPUT);
    cr_assert(strstr(err.message, "two.bam") && strstr(err.message, "'a'"), "%s", err.message);
    static const char *const bad[] = {"",         "ID:x",         "@RG",       "@RG\\tSM:x",
                                      "@RG ID:x", "@RG\\tID:x\n", "@RG\\tID:", "@RG\\tID:x\\tfoo"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (lw_error){0};
        cr_assert_eq(write_header(h, 1, bad[i], &text, &err), LW_E_ARG, "'%s'", bad[i]);
    }
    err = (lw_error){0};
    cr_assert_eq(write_header(h, 1, "@RG\\tID:a\\tSM:t", &text, &err), LW_E_ARG);
    cr_assert_eq(write_header(h, 1, "@RG\\tID:a\\tSM:s", &text, &(lw_error){0}), LW_OK);
    free(text);
    sam_hdr_destroy(h[0]);
    sam_hdr_destroy(h[1]);
}
