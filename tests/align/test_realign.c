/* Records that are seen to be optimal without computing are just what computing makes of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "align/realign.h"

enum { LETTERS = 1500, READ = 40, ROUNDS = 4000 };

static uint32_t state = 12345;

static int below(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)n);
}

/* A run over one reference, with repeats so that reads fit in more than one place. */
static void begin_run(lw_realign_run *run, lw_refs *refs, char *letters)
{
    static char *name = "r";
    static int64_t start = 0;
    static int32_t len = LETTERS;
    static int32_t ref_of = 0;
    for (int i = 0; i < LETTERS; i++)
        letters[i] = i > 12 && below(20) > 0 && (i / 150) % 2 ? letters[i - 7] : "ACGT"[below(4)];
    letters[LETTERS] = '\0';
    *refs =
        (lw_refs){.n = 1, .total = LETTERS, .name = &name, .letters = letters, .start = &start, .len = &len};
    run->refs = refs;
    run->ref_of = &ref_of;
    run->pad = 20;
    lw_match_table_fill(&run->match, &run->scoring);
    cr_assert_eq(lw_encode_refs(&run->scoring, refs, &run->ref_codes, NULL, NULL), LW_OK);
    lw_realign_prepare(run);
}

static void check(int match, int mismatch, int open, int extend)
{
    lw_realign_run run = {0};
    lw_refs refs;
    char letters[LETTERS + 1];
    cr_assert_eq(lw_scoring_dna(&run.scoring, match, mismatch, open, extend, NULL), LW_OK);
    begin_run(&run, &refs, letters);
    lw_align_setup setup = {.scoring = &run.scoring,
                            .mode = LW_SEMIGLOBAL,
                            .strands = LW_FORWARD,
                            .min_score = INT32_MIN,
                            .n_hits = 1};
    lw_realign_solver solver = {.backend = &lw_align_cpu, .scoring = &run.scoring, .pad = run.pad};
    cr_assert_eq(lw_align_cpu.open(&lw_align_cpu, &solver.context, &setup, NULL), LW_OK);
    bam1_t *record = bam_init1();
    lw_cigars cigars = {0};
    int proved = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char read[READ + 1];
        int at = below(LETTERS - READ);
        memcpy(read, letters + at, READ);
        for (int changes = below(4); changes > 0; changes--)
            read[below(READ)] = "ACGTN"[below(below(10) ? 4 : 5)];
        uint32_t cigar = bam_cigar_gen(READ, BAM_CMATCH);
        cr_assert(bam_set1(record, 1, "q", 0, 0, at, 60, 1, &cigar, -1, -1, 0, READ, read, NULL, 0) >= 0);
        lw_realign_item item;
        uint8_t codes[READ];
        cr_assert_eq(lw_realign_look(&run, record, &item, "file", 1, NULL), LW_OK);
        lw_realign_begin(&run, record, &item, codes);
        int64_t start = 0;
        int32_t len = READ;
        lw_seqs reads = {.n = 1, .codes = codes, .start = &start, .len = &len};
        lw_realign_task task = {.start = at, .end = at + READ, .present = item.present};
        cigars.n = 0;
        cr_assert_eq(lw_realign_solve(&solver, &reads, &run.ref_codes.seqs, 1, &task, &cigars, NULL), LW_OK);
        cr_assert_geq(task.score, item.present);
        proved += item.proved;
        if (item.proved)
            cr_assert(task.score == item.present && task.new_start == at && !task.widened &&
                          task.n_cigar == 1 && cigars.op[task.cigar] == cigar,
                      "%d %d %d %d: %s at %d", match, mismatch, open, extend, read, at);
    }
    cr_assert_gt(proved, ROUNDS / 10);
    bam_destroy1(record);
    free(cigars.op);
    lw_align_cpu.close(solver.context);
    lw_realign_solver_free(&solver);
    lw_encoded_free(&run.ref_codes);
}

Test(realign, what_is_proved_is_optimal)
{
    check(1, 4, 6, 1);
    check(2, 4, 4, 2);
    check(1, 1, 0, 1);
    check(5, 4, 8, 0);
    check(1, 0, 3, 1);
}
