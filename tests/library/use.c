/* use.c - a program of someone else's, built from what is installed: one pair of sequences and its CIGAR. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <lanewise/align.h>
#include <lanewise/infer.h>
#include <lanewise/lanewise.h>
#include <lanewise/paths.h>
#include <lanewise/search.h>

static int fail(const char *where, const lw_error *err)
{
    fprintf(stderr, "%s: %s\n", where, err->message);
    return 1;
}

int main(void)
{
    static const char query[] = "ACGTTTGCA", target[] = "ACGTTGCA";
    const int32_t query_length = (int32_t)strlen(query), target_length = (int32_t)strlen(target);
    uint8_t codes[2][16];
    lw_error err = {0};
    lw_scoring scoring;
    lw_aligner *aligner;
    if (lw_scoring_dna(&scoring, 1, 4, 6, 1, &err) != LW_OK)
        return fail("scoring", &err);
    lw_scoring_encode(&scoring, query, query_length, codes[0]);
    lw_scoring_encode(&scoring, target, target_length, codes[1]);
    const int64_t start = 0;
    lw_seqs queries = {.n = 1, .codes = codes[0], .start = &start, .len = &query_length};
    lw_seqs targets = {.n = 1, .codes = codes[1], .start = &start, .len = &target_length};
    const lw_aligner_options options = {.mode = LW_GLOBAL, .backend = "cpu", .threads = 1};
    if (lw_aligner_open(&aligner, &scoring, &options, &err) != LW_OK)
        return fail("aligner", &err);
    lw_pair pair;
    uint32_t *cigar;
    if (lw_aligner_paths(aligner, &queries, &targets, &pair, &cigar, &err) != LW_OK)
        return fail("paths", &err);
    printf("lanewise %s: score %d, ", lw_version(), pair.score);
    for (int32_t k = 0; k < pair.n_cigar; k++)
        printf("%u%c", cigar[pair.cigar + k] >> 4, "MID"[cigar[pair.cigar + k] & 15]);
    printf("\n");
    free(cigar);
    lw_aligner_close(aligner);
    return 0;
}
