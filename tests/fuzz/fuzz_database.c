/* fuzz_database.c - database files: what opens must stay within its own bounds. */
#include "fuzz/fuzz.h"

#include "align/database.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lw_error err = {0};
    lw_database *database = NULL;
    lw_status status = lw_database_open(&database, fuzz_file(data, size), LW_LETTERS_AUTO, 1, NULL, &err);
    FUZZ_ERROR(status, err);
    if (status != LW_OK)
        return 0;
    const lw_database_view *view = lw_database_get_view(database);
    int64_t letters = 0, sum = 0;
    for (int64_t i = 0; i < view->n; i++) {
        letters += view->len[i];
        FUZZ_REQUIRE(i == 0 || view->len[i] <= view->len[i - 1], "order by length");
        FUZZ_REQUIRE(view->order[i] >= 0 && view->order[i] < view->n, "place in the file");
        for (int32_t k = 0; k < view->len[i]; k++)
            sum += view->codes[view->start[i] + k];
        sum += (int64_t)strlen(lw_database_name(database, i));
    }
    FUZZ_REQUIRE(letters == view->letters && sum >= 0, "letters");
    status = lw_database_check(database, 1, &err);
    FUZZ_ERROR(status, err);
    lw_database_close(database);
    return 0;
}
