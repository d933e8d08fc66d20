/* test_encode.c - letters to codes, and the guess of what they are. */
#include <criterion/criterion.h>

#include "align/encode.h"
#include "common/files.h"

static lw_scoring dna(void)
{
    lw_scoring s;
    cr_assert_eq(lw_scoring_dna(&s, 1, 4, 6, 1, NULL), LW_OK);
    return s;
}

static lw_scoring protein(void)
{
    lw_scoring s;
    cr_assert_eq(lw_scoring_matrix(&s, "BLOSUM62", LW_PROTEIN, 11, 1, NULL), LW_OK);
    return s;
}

/* The letters that the codes stand for. */
static const char *round_trip(const lw_scoring *s, const char *text, lw_substitutions *counts)
{
    static char letters[64];
    uint8_t codes[64];
    int64_t n = (int64_t)strlen(text), bad = lw_encode(s, text, n, codes, counts);
    if (bad >= 0) {
        snprintf(letters, sizeof letters, "bad %d", (int)bad);
        return letters;
    }
    for (int64_t i = 0; i < n; i++)
        letters[i] = s->letter[codes[i]];
    letters[n] = '\0';
    return letters;
}

Test(encode, dna_letters)
{
    lw_scoring s = dna();
    cr_expect_str_eq(round_trip(&s, "ACGTUNacgtun", NULL), "ACGTTNACGTTN");
    cr_expect_str_eq(round_trip(&s, "RYSWKMBDHVryswkmbdhv", NULL), "NNNNNNNNNNNNNNNNNNNN");
    cr_expect_str_eq(round_trip(&s, "", NULL), "");
    static const char *const illegal[] = {"ACG1", "ACG-", "ACG*", "ACGE", "ACG\xC3", "ACG="};
    for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++)
        cr_expect_str_eq(round_trip(&s, illegal[i], NULL), "bad 3", "%s", illegal[i]);
    cr_expect_str_eq(round_trip(&s, "-A-", NULL), "bad 0");
}

Test(encode, protein_letters)
{
    lw_scoring s = protein();
    lw_substitutions counts = {{0}};
    cr_expect_str_eq(round_trip(&s, "ARNDCQEGHILKMFPSTWYVBZX*", &counts), "ARNDCQEGHILKMFPSTWYVBZX*");
    cr_expect_str_eq(round_trip(&s, "arndx", &counts), "ARNDX");
    for (int c = 0; c < 256; c++)
        cr_expect_eq(counts.count[c], 0);
    cr_expect_str_eq(round_trip(&s, "MUOJujUK", &counts), "MXXXXXXK");
    cr_expect_eq(counts.count['U'] + counts.count['u'], 3);
    cr_expect_eq(counts.count['O'], 1);
    cr_expect_eq(counts.count['J'] + counts.count['j'], 2);
    cr_expect_str_eq(round_trip(&s, "MK-", &counts), "bad 2");
    cr_expect_str_eq(round_trip(&s, "M1", &counts), "bad 1");
}

static void keep(void *user, int level, const char *text)
{
    cr_expect_eq(level, LW_SAY_WARNING);
    strcat(strcat(user, text), "\n");
}

Test(encode, one_warning)
{
    lw_scoring s = protein();
    lw_substitutions counts = {{0}};
    char said[256] = "";
    lw_host host = {.user = said, .say = keep};
    lw_warn_substitutions(&host, &counts);
    cr_expect_str_eq(said, "");
    round_trip(&s, "MUOJujUK", &counts);
    lw_warn_substitutions(&host, &counts);
    cr_expect_str_eq(said, "letters without a column in the matrix counted as X: J 2, O 1, U 3\n");
}

Test(encode, batches)
{
    lw_scoring s = dna();
    static const char good[] = ">a\nACGT\n>b\n>c\nTTN\n", bad[] = ">a\nACGT\n>b x\nAC GT1ACGT\n";
    lw_encoded encoded = {0};
    for (int round = 0; round < 2; round++) {
        const char *path =
            round ? test_write("bad.fa", bad, sizeof bad - 1) : test_write("good.fa", good, sizeof good - 1);
        lw_seqio *reader = NULL;
        lw_read_batch batch = {0};
        lw_error err = {0};
        cr_assert_eq(lw_seqio_open(&reader, &path, 1, NULL, &err), LW_OK);
        cr_assert_eq(lw_seqio_read(reader, &batch, 0, 0, &err), LW_OK);
        lw_status status = lw_encode_batch(&s, reader, &batch, &encoded, NULL, &err);
        if (round == 0) {
            cr_assert_eq(status, LW_OK);
            cr_expect_eq(encoded.seqs.n, 3);
            cr_expect_eq(encoded.seqs.len[0], 4);
            cr_expect_eq(encoded.seqs.len[1], 0);
            cr_expect_eq(encoded.seqs.start[2], 4);
            cr_expect_eq(encoded.seqs.codes[6], 4);
        } else {
            cr_expect_eq(status, LW_E_INPUT);
            cr_expect_str_eq(err.message + strlen(path),
                             ": record 2 (b): '1' at position 5 is not a nucleotide letter");
        }
        lw_read_batch_free(&batch);
        lw_seqio_close(reader);
    }
    const char *path = test_write("ref.fa", ">a\nAC\n>b\nA-C\n", 13);
    lw_refs *refs = NULL;
    lw_error err = {0};
    cr_assert_eq(lw_refs_load(&refs, path, NULL, NULL, &err), LW_OK);
    cr_expect_eq(lw_encode_refs(&s, refs, &encoded, NULL, &err), LW_E_INPUT);
    cr_expect_str_eq(
        err.message + strlen(path),
        ": record 2 (b): '-' at position 2 is not a nucleotide letter: remove the gaps of aligned "
        "sequences first");
    refs->letters[refs->start[1] + 1] = 'N';
    cr_expect_eq(lw_encode_refs(&s, refs, &encoded, NULL, &err), LW_OK);
    cr_expect_eq(encoded.seqs.n, 2);
    cr_expect_eq(encoded.seqs.len[1], 3);
    lw_refs_free(refs);
    lw_encoded_free(&encoded);
}

Test(encode, type)
{
    static const struct {
        const char *letters;
        lw_alphabet_type type;
    } cases[] = {
        {"", LW_DNA},
        {"ACGTNacgtnUu", LW_DNA},
        {"ACGTACGTAR", LW_DNA},
        {"ACGTACGTRY", LW_PROTEIN},
        {"ACGE", LW_PROTEIN},
        {"MKV", LW_PROTEIN},
        {"ACGT*", LW_PROTEIN},
        {"ACGTACGTACGTACGTACGT-1", LW_DNA}, /* a damaged file, to be refused as what it nearly is */
        {"MKT-", LW_PROTEIN},
        {"NNNNNNNNNN", LW_DNA},
        {"GATTACA", LW_DNA},
        {"SKVDHWWKVDM", LW_PROTEIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(lw_guess_type(cases[i].letters, (int64_t)strlen(cases[i].letters)), cases[i].type, "%s",
                     cases[i].letters);
    lw_refs *refs = NULL;
    cr_assert_eq(lw_refs_load(&refs, LW_SOURCE_DIR "/data/ref/ce.fa.gz", NULL, NULL, NULL), LW_OK);
    cr_expect_eq(lw_guess_refs_type(refs), LW_DNA);
    lw_refs_free(refs);
    cr_assert_eq(lw_refs_load(&refs, LW_SOURCE_DIR "/data/protein/query500.fasta.gz", NULL, NULL, NULL),
                 LW_OK);
    cr_expect_eq(lw_guess_refs_type(refs), LW_PROTEIN);
    lw_refs_free(refs);
}
