/* fuzz_search.c - the CPU row of database search, on every instruction set, against the scalar one: the hits
 * of queries, subjects, penalties, cuts and filters that the input chooses. */
#include "fuzz/fuzz.h"

#include "align/search_backend.h"

enum { QUERIES = 3, SUBJECTS = 90, LONGEST = 300, LETTERS = 24 };

static lw_error err;

static void must(lw_status status)
{
    FUZZ_REQUIRE(status == LW_OK, "%s", err.message);
}

/* A sequence: letters of the input, a period, or a piece of `like` with a letter changed now and then. */
static void draw(fuzz_bytes *bytes, uint8_t *codes, int32_t n, const uint8_t *like, int32_t like_len)
{
    uint32_t kind = fuzz_take(bytes, 4), period = 1 + fuzz_take(bytes, 16), from = fuzz_take(bytes, LONGEST);
    for (int32_t k = 0; k < n; k++)
        if (kind == 0 || (kind == 1 && k < (int32_t)period) || (kind > 1 && like_len == 0))
            codes[k] = (uint8_t)(bytes->size ? fuzz_take(bytes, LETTERS) : (uint32_t)(k * 7 + 3) % LETTERS);
        else if (kind == 1)
            codes[k] = codes[k - (int32_t)period];
        else
            codes[k] = k % 29 == 13 ? (uint8_t)fuzz_take(bytes, LETTERS)
                                    : like[(from + (uint32_t)k) % (uint32_t)like_len];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const disabled[] = {"", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon"};
    static uint8_t query_codes[QUERIES * LONGEST], subject_codes[SUBJECTS * LONGEST];
    int64_t query_start[QUERIES], subject_start[SUBJECTS];
    int32_t query_len[QUERIES], subject_len[SUBJECTS], order[SUBJECTS];
    fuzz_bytes bytes = {data, size};
    err = (lw_error){0};
    uint32_t first = fuzz_take(&bytes, 256);
    const char *off = disabled[first % 4];
    /* the scalar row takes nearly all of the time: most inputs are short sequences, one in 64 is of the
     * longest */
    const uint32_t longest = first / 4 == 21 ? LONGEST : first / 32 == 5 ? LONGEST / 4 : LONGEST / 12;
    int scale = fuzz_take(&bytes, 4) == 3 ? 300 : 16;
    int open = (int)fuzz_take(&bytes, (uint32_t)scale), extend = (int)fuzz_take(&bytes, (uint32_t)scale);
    lw_scoring letters, scoring;
    must(lw_scoring_matrix(&letters, "BLOSUM62", LW_PROTEIN, open, extend, &err));
    lw_search_scoring(&scoring, &letters);
    int n_queries = 1 + (int)fuzz_take(&bytes, QUERIES), n_subjects = (int)fuzz_take(&bytes, SUBJECTS + 1);
    n_subjects = longest == LONGEST ? n_subjects / 4 : n_subjects;
    int32_t top = fuzz_take(&bytes, 3) == 0 ? INT32_MAX : 1 + (int32_t)fuzz_take(&bytes, 12);
    int32_t min_score[QUERIES], filter[QUERIES];
    bool filtered = fuzz_take(&bytes, 4) == 1;
    int64_t at = 0;
    for (int i = 0; i < n_queries; i++) {
        query_start[i] = at;
        query_len[i] = (int32_t)fuzz_take(&bytes, longest);
        min_score[i] = 1 + (int32_t)fuzz_take(&bytes, 60);
        filter[i] = (int32_t)fuzz_take(&bytes, 60);
        draw(&bytes, query_codes + at, query_len[i], query_codes, i ? query_len[0] : 0);
        at += query_len[i];
    }
    /* the longest subject first; small steps make many of equal length */
    int32_t len = (int32_t)fuzz_take(&bytes, longest);
    at = 0;
    for (int i = 0; i < n_subjects; i++) {
        subject_start[i] = at;
        subject_len[i] = len;
        order[i] = i;
        draw(&bytes, subject_codes + at, len, query_codes, query_len[0]);
        at += len;
        len -= (int32_t)fuzz_take(&bytes, 4) % (len + 1);
    }
    for (int i = n_subjects - 1; i > 0; i--) { /* places in the file: among equal lengths they ascend */
        int j = (int)fuzz_take(&bytes, (uint32_t)i + 1);
        int32_t other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (int i = 1; i < n_subjects; i++)
        for (int j = i; j > 0 && subject_len[j] == subject_len[j - 1] && order[j] < order[j - 1]; j--) {
            int32_t other = order[j];
            order[j] = order[j - 1];
            order[j - 1] = other;
        }
    lw_database_view view = {.n = n_subjects,
                             .letters = at,
                             .n_codes = LETTERS,
                             .codes = subject_codes,
                             .start = subject_start,
                             .len = subject_len,
                             .order = order,
                             .packed = true};
    lw_seqs queries = {.n = n_queries, .codes = query_codes, .start = query_start, .len = query_len};
    lw_search_setup setup = {.scoring = &scoring, .database = &view};
    lw_search_request request = {
        .queries = &queries, .min_score = min_score, .filter = filtered ? filter : NULL, .top_n = top};
    setenv("LANEWISE_DISABLE", off, 1);
    const lw_search_backend *rows[2] = {&lw_search_scalar, &lw_search_cpu};
    static lw_search_hit hits[2][QUERIES * SUBJECTS];
    int32_t n_hits[2][QUERIES];
    for (int r = 0; r < 2; r++) {
        void *context;
        lw_search_result result = {.hits = hits[r], .stride = SUBJECTS, .n_hits = n_hits[r]};
        must(rows[r]->open(rows[r], &context, &setup, &err));
        must(rows[r]->search(context, &request, &result, &err));
        rows[r]->close(context);
    }
    for (int q = 0; q < n_queries; q++) {
        FUZZ_REQUIRE(n_hits[0][q] == n_hits[1][q], "query %d: scalar has %d hits, cpu %d", q, n_hits[0][q],
                     n_hits[1][q]);
        for (int k = 0; k < n_hits[0][q]; k++) {
            const lw_search_hit *a = &hits[0][q * SUBJECTS + k], *b = &hits[1][q * SUBJECTS + k];
            FUZZ_REQUIRE(a->score == b->score && a->subject == b->subject,
                         "query %d, hit %d: scalar %d of subject %d, cpu %d of %d", q, k, a->score,
                         a->subject, b->score, b->subject);
        }
    }
    return 0;
}
