/* fuzz_matrix.c - scoring matrices in NCBI's format. */
#include "fuzz/fuzz.h"

#include "lanewise/align.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes bytes = {data, size};
    lw_alphabet_type type = fuzz_take(&bytes, 2) ? LW_PROTEIN : LW_DNA;
    lw_scoring scoring;
    lw_error err = {0};
    lw_status status = lw_scoring_matrix(&scoring, fuzz_file(bytes.data, bytes.size), type, 11, 1, &err);
    FUZZ_ERROR(status, err);
    if (status != LW_OK)
        return 0;
    FUZZ_REQUIRE(scoring.n_letters >= 1 && scoring.n_letters <= LW_MAX_LETTERS, "letters");
    for (int i = 0; i < 256; i++)
        FUZZ_REQUIRE(scoring.code[i] == LW_NO_CODE || scoring.code[i] < scoring.n_letters, "code of %d", i);
    for (int a = 0; a < scoring.n_letters; a++)
        for (int b = 0; b < scoring.n_letters; b++) {
            int s = scoring.score[a * LW_MAX_LETTERS + b];
            FUZZ_REQUIRE(s >= scoring.min_score && s <= scoring.max_score, "score %d", s);
        }
    return 0;
}
