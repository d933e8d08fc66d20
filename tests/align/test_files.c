/* test_files.c - whole runs through the public call: the same bytes whatever did the work, and independent
 * judges of scores and records. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <htslib/sam.h>

#include "lanewise/align.h"
#include "align/align_backend.h"
#include "align/cigar.h"
#include "cli/program.h"
#include "common/files.h"
#include "sanitized.h"

/* ---- inputs ---------------------------------------------------------------------------------- */

enum { REF_LETTERS = 1200, N_READS = LW_FEWER(120, 40) };
static char ref_path[256], reads_path[2][256];
static char ref_letters[3][REF_LETTERS + 1];

/* Three references, the third a piece of the first, and reads with errors: pairs, some random, some N. */
static void make_inputs(void)
{
    uint64_t state = 42;
    random_letters(ref_letters[0], REF_LETTERS, "ACGT", &state);
    random_letters(ref_letters[1], 400, "ACGT", &state);
    memcpy(ref_letters[2], ref_letters[0] + 700, 300);
    ref_letters[2][300] = '\0';
    strcpy(ref_path, test_path("ref.fa"));
    strcpy(reads_path[0], test_path("1.fq"));
    strcpy(reads_path[1], test_path("2.fq"));
    FILE *ref = fopen(ref_path, "w"), *out[2] = {fopen(reads_path[0], "w"), fopen(reads_path[1], "w")};
    cr_assert(ref && out[0] && out[1]);
    for (int i = 0; i < 3; i++)
        fprintf(ref, ">ref%d\n%s\n", i, ref_letters[i]);
    fclose(ref);
    for (int i = 0; i < N_READS; i++) {
        int source = i % 5 == 4 ? 1 : 0, whole = source ? 400 : REF_LETTERS;
        int insert = 100 + (int)(random_number(&state) % 200),
            at = (int)(random_number(&state) % (uint32_t)(whole - insert));
        char mate[2][512];
        for (int m = 0; m < 2; m++) {
            int length = 30 + (int)(random_number(&state) % 70);
            const char *from = ref_letters[source] + at + (m ? insert - length : 0);
            int n = mutate(from, length, i % 4 * 3, mate[m], &state);
            if (i % 17 == 3)
                n = mutate(from, 0, 1, mate[m], &state); /* empty */
            if (i % 19 == 5) {
                random_letters(mate[m], 40, i % 2 ? "ACGT" : "N", &state);
                n = 40;
            }
            if ((m + i) % 2)
                reverse_complement(mate[m], n);
            fprintf(out[m], "@read%d/%d\n%s\n+\n", i, m + 1, mate[m]);
            for (int k = 0; k < n; k++)
                fputc(33 + (int)(random_number(&state) % 42), out[m]);
            fputc('\n', out[m]);
        }
    }
    fclose(out[0]);
    fclose(out[1]);
}

/* Warnings go nowhere. */
static const lw_host silent_host;

/* The bytes that a job writes; to be freed. */
static char *bytes_of(lw_align_job job, size_t *n)
{
    lw_error err = {0};
    char path[256];
    strcpy(path, test_path("out"));
    job.output = path;
    cr_assert_eq(lw_align_files(&job, &silent_host, NULL, &err), LW_OK, "%s", err.message);
    char *bytes = test_read(path, n);
    unlink(path);
    return bytes;
}

static const char *reads_list[2];

static lw_align_job base_job(void)
{
    lw_align_job job;
    lw_align_job_init(&job);
    reads_list[0] = reads_path[0];
    reads_list[1] = reads_path[1];
    job.reference = ref_path;
    job.reads = reads_list;
    job.n_reads = 2;
    job.backend = "scalar";
    job.threads = 1;
    job.read_group = "@RG\tID:a";
    return job;
}

/* The job with every usable backend, several thread counts and batch sizes: always the same bytes. */
static void check_same_bytes(lw_align_job job)
{
    size_t n;
    char *want = bytes_of(job, &n);
    cr_assert_gt(n, 1000);
    static const int threads[] = {1, 2, 5};
    static const int64_t batches[] = {1, 700, 5000, 0};
    for (int b = 0; b < lw_align_backend_count; b++) {
        const lw_backend *row = &lw_align_backends[b]->base;
        if (row->usable(row, 0, NULL) != LW_OK)
            continue;
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
            for (size_t s = 0; s < sizeof batches / sizeof *batches; s++) {
                if (b == 0 && (t != 1 || s == 0)) /* the reference row is slow */
                    continue;
                job.backend = row->name;
                job.threads = threads[t];
                job.batch_letters = batches[s];
                size_t m;
                char *got = bytes_of(job, &m);
                cr_assert(m == n && memcmp(got, want, n) == 0, "%s, %d threads, batches of %d: other bytes",
                          row->name, threads[t], (int)batches[s]);
                free(got);
            }
    }
    free(want);
}

Test(files, same_bytes_in_every_format)
{
    make_inputs();
    for (int format = LW_FORMAT_SAM; format <= LW_FORMAT_TSV; format++) {
        lw_align_job job = base_job();
        job.format = (lw_align_format)format;
        check_same_bytes(job);
    }
}

Test(files, same_bytes_in_every_mode)
{
    make_inputs();
    for (int mode = LW_LOCAL; mode <= LW_SEMIGLOBAL; mode++) {
        lw_align_job job = base_job();
        job.format = LW_FORMAT_BAM;
        job.mode = (lw_mode)mode;
        job.split_matches = true;
        job.gap_open = 2;
        check_same_bytes(job);
    }
}

Test(files, same_bytes_with_secondary_records)
{
    make_inputs();
    lw_align_job job = base_job();
    job.secondary = 4;
    job.match = 2;
    job.mismatch = 3;
    check_same_bytes(job);
}

Test(files, same_bytes_for_pairs)
{
    make_inputs();
    lw_align_job job = base_job();
    job.n_reads = 1;
    job.mates = reads_path[1];
    job.secondary = 1;
    check_same_bytes(job);
    job.format = LW_FORMAT_BAM;
    job.insert_high = 180;
    check_same_bytes(job);
}

/* ---- records ---------------------------------------------------------------------------------- */

/* Every record's CIGAR, scored again from SEQ and the reference alone, is its AS; its tags are consistent. */
static void check_record(const sam_hdr_t *header, const bam1_t *b, const lw_scoring *s)
{
    const bam1_core_t *c = &b->core;
    cr_assert_eq(c->l_qseq ? bam_cigar2qlen((int)c->n_cigar, bam_get_cigar(b)) : 0,
                 c->n_cigar ? c->l_qseq : 0);
    if (c->flag & BAM_FUNMAP) {
        cr_assert_eq(c->n_cigar, 0);
        cr_assert_eq(c->qual, 0);
        return;
    }
    const char *target = ref_letters[c->tid];
    cr_assert_leq(bam_endpos(b), sam_hdr_tid2len(header, c->tid));
    int64_t score = 0, q = 0, t = c->pos;
    int nm = 0;
    for (uint32_t k = 0; k < c->n_cigar; k++) {
        uint32_t op = bam_cigar_op(bam_get_cigar(b)[k]), length = bam_cigar_oplen(bam_get_cigar(b)[k]);
        cr_assert_gt(length, 0);
        if (op == BAM_CSOFT_CLIP) {
            cr_assert(k == 0 || k == c->n_cigar - 1);
            q += length;
        } else if (op == BAM_CINS || op == BAM_CDEL) {
            score -= s->gap_open + (int64_t)length * s->gap_extend;
            nm += (int)length;
            q += op == BAM_CINS ? length : 0;
            t += op == BAM_CDEL ? length : 0;
        } else {
            for (uint32_t i = 0; i < length; i++, q++, t++) {
                char letter = seq_nt16_str[bam_seqi(bam_get_seq(b), q)];
                bool same = letter == target[t] && letter != 'N';
                score += s->score[s->code[(uint8_t)letter] * LW_MAX_LETTERS + s->code[(uint8_t)target[t]]];
                nm += !same;
                cr_assert(op == BAM_CMATCH || (op == BAM_CEQUAL) == same, "= and X");
            }
        }
    }
    cr_assert_eq(bam_aux2i(bam_aux_get(b, "AS")), score, "%s: AS", bam_get_qname(b));
    cr_assert_eq(bam_aux2i(bam_aux_get(b, "NM")), nm, "%s: NM", bam_get_qname(b));
    cr_assert_leq(c->qual, 60);
    if (!(c->flag & BAM_FSECONDARY))
        cr_assert(bam_aux_get(b, "XS"));
}

Test(files, every_cigar_scores_as)
{
    make_inputs();
    for (int round = 0; round < 12; round++) {
        lw_align_job job = base_job();
        char path[256];
        strcpy(path, test_path("out.bam"));
        job.backend = round % 2 ? "auto" : "scalar";
        job.format = LW_FORMAT_BAM;
        job.output = path;
        job.mode = (lw_mode)(round % 3);
        job.split_matches = round / 3 % 2;
        job.secondary = round % 4;
        job.match = 1 + round % 5;
        job.mismatch = round % 4;
        job.gap_open = round % 3 * 2;
        job.gap_extend = round % 2 + (job.gap_open == 0);
        lw_error err = {0};
        lw_align_summary summary;
        cr_assert_eq(lw_align_files(&job, &silent_host, &summary, &err), LW_OK, "%s", err.message);
        lw_scoring s;
        lw_scoring_dna(&s, job.match, job.mismatch, job.gap_open, job.gap_extend, NULL);
        samFile *in = sam_open(path, "r");
        sam_hdr_t *header = sam_hdr_read(in);
        bam1_t *b = bam_init1();
        int primary = 0, secondary = 0, aligned = 0;
        while (sam_read1(in, header, b) >= 0) {
            check_record(header, b, &s);
            char name[32]; /* input order, nothing lost */
            bool second = b->core.flag & BAM_FSECONDARY;
            primary += !second;
            secondary += second;
            aligned += !second && !(b->core.flag & BAM_FUNMAP);
            snprintf(name, sizeof name, "read%d/%d", (primary - 1) % N_READS, primary > N_READS ? 2 : 1);
            cr_assert_str_eq(bam_get_qname(b), name);
        }
        cr_assert_eq(primary, 2 * N_READS);
        cr_assert_eq(summary.reads, 2 * N_READS);
        cr_assert_eq(summary.aligned, aligned);
        cr_assert_eq(summary.secondary, secondary);
        bam_destroy1(b);
        sam_hdr_destroy(header);
        sam_close(in);
    }
}

/* ---- limits ----------------------------------------------------------------------------------- */

Test(files, jobs_out_of_range_are_refused)
{
    make_inputs();
    static const struct {
        int match, mismatch, open, extend, secondary, min_score, type;
        lw_mode mode;
        const char *matrix;
    } bad[] = {
        {.match = -5},
        {.mismatch = 40000},
        {.open = -7},
        {.extend = 32768},
        {.secondary = -1},
        {.secondary = 1000000},
        {.min_score = -3},
        {.matrix = "NUC.4.4", .match = 3},
        {.type = LW_PROTEIN, .mismatch = 3},
        {.mode = (lw_mode)7},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lw_align_job job = base_job();
        job.output = test_path("never");
        job.match = bad[i].match ? bad[i].match : job.match;
        job.mismatch = bad[i].mismatch ? bad[i].mismatch : job.mismatch;
        job.gap_open = bad[i].open ? bad[i].open : job.gap_open;
        job.gap_extend = bad[i].extend ? bad[i].extend : job.gap_extend;
        job.secondary = bad[i].secondary;
        job.min_score = bad[i].min_score ? bad[i].min_score : job.min_score;
        job.type = bad[i].type ? bad[i].type : job.type;
        job.mode = bad[i].mode;
        job.matrix = bad[i].matrix;
        lw_error err = {0};
        cr_assert_eq(lw_align_files(&job, &silent_host, NULL, &err), LW_E_ARG, "case %zu: %s", i,
                     err.message);
        cr_assert_neq(access(job.output, F_OK), 0);
    }
}

/* A job that could leave 32 bits is refused with its numbers, before any work. */
Test(files, scores_beyond_32_bits_are_refused)
{
    static char letters[40001];
    uint64_t state = 3;
    random_letters(letters, 40000, "ACGT", &state);
    FILE *file = fopen(test_path("long.fa"), "w");
    fprintf(file, ">long\n%s\n", letters);
    fclose(file);
    strcpy(ref_path, test_path("long.fa"));
    strcpy(reads_path[0], ref_path);
    lw_align_job job = base_job();
    job.n_reads = 1;
    job.match = 32767;
    job.output = test_path("never");
    lw_error err = {0};
    cr_assert_eq(lw_align_files(&job, &silent_host, NULL, &err), LW_E_RANGE);
    cr_assert(strstr(err.message, "long.fa: record 1 (long)") && strstr(err.message, "1310680000"), "%s",
              err.message);
    job.match = 1;
    job.mode = LW_GLOBAL;
    job.gap_extend = 32767;
    err = (lw_error){0};
    cr_assert_eq(lw_align_files(&job, &silent_host, NULL, &err), LW_E_RANGE);
    cr_assert(strstr(err.message, "lower the gap penalties"), "%s", err.message);
}
