/* fuzz_paths.c - the CPU row of shortest paths, on every instruction set, against the scalar one. */
#include "fuzz/fuzz.h"

#include "paths/paths_backend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const disabled[] = {"", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon"};
    fuzz_bytes bytes = {data, size};
    enum { MOST = 96 };
    bool wide = fuzz_take(&bytes, 2), negative = fuzz_take(&bytes, 2);
    uint32_t first = fuzz_take(&bytes, 256);
    const char *off = disabled[first % 4];
    /* time grows with the cube: most graphs are small, one in 64 is as large as they get */
    const uint32_t most = first / 4 == 21 ? MOST : first / 32 == 5 ? MOST / 2 : MOST / 6;
    int64_t n = fuzz_take(&bytes, most + 1),
            largest = 1 + fuzz_take(&bytes, fuzz_take(&bytes, 2) ? 40000 : 200);
    static int32_t narrow_matrix[2][MOST * MOST];
    static int64_t wide_matrix[2][MOST * MOST];
    int64_t potential[MOST] = {0}, low = 0, high = largest * n + 1;
    for (int64_t i = 0; negative && i < n; i++) { /* weights of potentials: no cycle can be negative */
        potential[i] = fuzz_take(&bytes, 100);
        low = -200, high = largest * n + 200;
    }
    int64_t max_weight = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            bool edge = fuzz_take(&bytes, 3) == 1;
            int64_t w = i == j ? 0
                        : edge ? fuzz_take(&bytes, (uint32_t)largest) + potential[i] - potential[j]
                               : -1000;
            bool none = i != j && !edge;
            if (!none && w > max_weight)
                max_weight = w;
            for (int r = 0; r < 2; r++) {
                narrow_matrix[r][i * n + j] = none ? LW_PATHS_INF_S32 : (int32_t)w;
                wide_matrix[r][i * n + j] = none ? LW_PATHS_INF_S64 : w;
            }
        }
    lw_error err = {0};
    setenv("LANEWISE_DISABLE", off, 1);
    const lw_paths_backend *rows[2] = {&lw_paths_scalar, &lw_paths_cpu};
    for (int r = 0; r < 2; r++) {
        void *context;
        lw_paths_setup setup = {0};
        FUZZ_REQUIRE(rows[r]->open(rows[r], &context, &setup, &err) == LW_OK, "%s", err.message);
        lw_paths_job job = {.type = wide ? LW_PATHS_S64 : LW_PATHS_S32,
                            .n = n,
                            .matrix = wide ? (void *)wide_matrix[r] : (void *)narrow_matrix[r],
                            .ld = n,
                            .negative = negative,
                            .low = low,
                            .high = high,
                            .max_weight = max_weight};
        lw_paths_report report = {0};
        FUZZ_REQUIRE(rows[r]->solve(context, &job, &report, &err) == LW_OK, "%s", err.message);
        rows[r]->close(context);
    }
    for (int64_t i = 0; i < n * n; i++) {
        int64_t a = wide ? wide_matrix[0][i] : narrow_matrix[0][i],
                b = wide ? wide_matrix[1][i] : narrow_matrix[1][i];
        FUZZ_REQUIRE(a == b || (a > high && b > high), "d(%d,%d): scalar %lld, cpu %lld", (int)(i / n),
                     (int)(i % n), (long long)a, (long long)b);
    }
    return 0;
}
