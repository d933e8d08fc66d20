/* test_arrays.c - the public calls on arrays in memory; and models with bytes changed, which must be read or
 * refused without harm. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lanewise/lanewise.h"

/* A model that tests/infer/tiny_onnx.py writes. */
static uint8_t *tiny(const char *kind, const char *argument, size_t *size)
{
    char path[] = "/tmp/lanewise-tiny-XXXXXX", command[600];
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    snprintf(command, sizeof command, "python3 %s/tests/infer/tiny_onnx.py %s %s %s", LW_SOURCE_DIR, kind,
             path, argument);
    cr_assert_eq(system(command), 0, "%s", command);
    uint8_t *data = malloc(1 << 20);
    FILE *f = fdopen(file, "rb");
    *size = fread(data, 1, 1 << 20, f);
    fclose(f);
    remove(path);
    cr_assert_gt(*size, 0);
    return data;
}

/* Runs on new inputs; the outputs are in *n. */
static lw_status run_letters(lw_network *n, int64_t rows, int seed, int64_t bad, lw_error *err)
{
    int64_t ids[5 * 3];
    float x[5 * 3 * 8];
    uint32_t state = (uint32_t)seed * 77 + 1;
    for (int64_t i = 0; i < rows * 3 * 8; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 16) / 32768 - 1;
        ids[i / 8] = (int64_t)(state >> 20) % 12 - 6;
    }
    ids[rows] += bad;
    lw_array a = {.dtype = LW_I64, .rank = 2, .dim = {rows, 3}, .data = ids},
             b = {.dtype = LW_F32, .rank = 3, .dim = {rows, 3, 8}, .data = x};
    cr_assert_eq(lw_network_set_input(n, 0, &a, NULL), LW_OK);
    cr_assert_eq(lw_network_set_input(n, 1, &b, NULL), LW_OK);
    return lw_network_compute(n, err);
}

/* y = (x w) * s^2 with defaults of w and s. */
static float first_result(lw_network *n)
{
    lw_error err = {0};
    lw_array y = {0};
    cr_assert_eq(lw_network_compute(n, &err), LW_OK, "%s", err.message);
    cr_assert_eq(lw_network_output_array(n, 0, &y, NULL), LW_OK);
    return *(const float *)y.data;
}

Test(arrays, defaults_are_overridden)
{
    lw_backend_info rows[16];
    int n_rows = lw_infer_backend_list(0, rows, 16);
    size_t size;
    uint8_t *data = tiny("with_defaults", "", &size);
    const uint8_t x[] = {10, 1};
    const int8_t w[] = {5, -1, 7, 1};
    const float s = 0.5f;
    lw_array ax = {.dtype = LW_U8, .rank = 2, .dim = {1, 2}, .data = x},
             aw = {.dtype = LW_I8, .rank = 2, .dim = {2, 2}, .data = w}, as = {.dtype = LW_F32, .data = &s};
    for (int b = 0; b < n_rows; b++) {
        lw_network *n = NULL;
        lw_error err = {0};
        int at_w = -1, at_s = -1, again = -1;
        if (!rows[b].usable)
            continue;
        cr_assert_eq(lw_network_open_memory(&n, data, size, rows[b].name, 1, NULL, &err), LW_OK, "%s",
                     err.message);
        cr_expect(lw_network_n_inputs(n) == 1 && lw_network_n_overridable(n) == 2 &&
                  strcmp(lw_network_overridable(n, 1), "s") == 0);
        cr_assert_eq(lw_network_set_input(n, 0, &ax, NULL), LW_OK);
        cr_assert_eq(lw_network_override(n, "s", &at_s, &err), LW_OK, "%s", err.message);
        cr_assert_eq(lw_network_override(n, "w", &at_w, &err), LW_OK, "%s", err.message);
        cr_assert_eq(lw_network_override(n, "w", &again, &err), LW_OK, "%s", err.message);
        cr_expect(at_s == 1 && at_w == 2 && again == 2 && lw_network_n_inputs(n) == 3);
        cr_expect_eq(lw_network_override(n, "k", NULL, &err), LW_E_ARG);
        for (int run = 0; run < 3; run++)
            cr_expect_eq(first_result(n), 52, "its defaults");
        cr_assert_eq(lw_network_set_input(n, at_s, &as, NULL), LW_OK);
        cr_expect_eq(first_result(n), 3.25f);
        cr_assert_eq(lw_network_set_input(n, at_w, &aw, NULL), LW_OK);
        for (int run = 0; run < 3; run++)
            cr_expect_eq(first_result(n), 14.25f);
        cr_expect_eq(lw_network_override(n, "w", &again, &err), LW_OK);
        lw_network_close(n);

        cr_assert_eq(lw_network_open_memory(&n, data, size, rows[b].name, 1, NULL, &err), LW_OK);
        cr_assert_eq(lw_network_set_input(n, 0, &ax, NULL), LW_OK);
        cr_expect_eq(first_result(n), 52);
        lw_error late = {0};
        cr_expect_eq(lw_network_override(n, "w", NULL, &late), LW_E_ARG, "too late");
        cr_expect(strstr(late.message, "before the model is fused or run"), "%s", late.message);
        lw_network_close(n);
    }
    free(data);
}

/* A run that comes again may be repeated as a whole: with other inputs, after other shapes, after failures.
 */
Test(arrays, again_and_again)
{
    static const struct {
        int64_t rows;
        int64_t bad;
    } runs[] = {{4, 0}, {4, 0}, {4, 0},  {4, 0}, {2, 0}, {4, 0}, {2, 0}, {2, 0}, {2, 0}, {2, 77},
                {2, 0}, {4, 0}, {4, 99}, {4, 0}, {5, 0}, {5, 0}, {5, 0}, {1, 9}, {1, 9}, {1, 0}};
    lw_backend_info rows[16];
    int n_rows = lw_infer_backend_list(0, rows, 16);
    size_t size;
    uint8_t *data = tiny("letters_and_reals", "", &size);
    for (int b = 0; b < n_rows; b++) {
        lw_network *n = NULL, *reference = NULL;
        lw_error err = {0};
        if (!rows[b].usable)
            continue;
        cr_assert_eq(lw_network_open_memory(&reference, data, size, "scalar", 1, NULL, &err), LW_OK);
        cr_assert_eq(lw_network_open_memory(&n, data, size, rows[b].name, 1, NULL, &err), LW_OK, "%s",
                     err.message);
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            lw_error got = {0}, why = {0};
            lw_status status = run_letters(n, runs[r].rows, (int)r, runs[r].bad, &got);
            lw_status expected = run_letters(reference, runs[r].rows, (int)r, runs[r].bad, &why);
            cr_assert_eq(expected, runs[r].bad ? LW_E_INPUT : LW_OK, "%s", why.message);
            cr_assert_eq(status, expected, "%s, run %zu: %s", rows[b].name, r, got.message);
            cr_expect(status == LW_OK || strcmp(got.message, why.message) == 0, "%s, not %s", got.message,
                      why.message);
            for (int o = 0; status == LW_OK && o < 2; o++) {
                lw_array y, z;
                cr_assert_eq(lw_network_output_array(n, o, &y, NULL), LW_OK);
                cr_assert_eq(lw_network_output_array(reference, o, &z, NULL), LW_OK);
                cr_assert(y.rank == z.rank && memcmp(y.dim, z.dim, sizeof *y.dim * (size_t)y.rank) == 0);
                for (int64_t i = 0; o == 0 && i < runs[r].rows * 15; i++)
                    cr_assert_float_eq(((const float *)y.data)[i], ((const float *)z.data)[i], 2e-6,
                                       "%s, run %zu", rows[b].name, r);
                cr_expect(o == 0 || memcmp(y.data, z.data, 2 * sizeof(int64_t)) == 0);
            }
        }
        lw_network_close(n);
        lw_network_close(reference);
    }
    free(data);
}

Test(arrays, set_compute_read)
{
    size_t size;
    uint8_t *data = tiny("mean_of_letters", "", &size);
    lw_network *n = NULL;
    lw_error err = {0};
    cr_assert_eq(lw_network_open_memory(&n, data, size, "cpu", 1, NULL, &err), LW_OK, "%s", err.message);
    free(data); /* not needed any longer */
    lw_array declared, y;
    cr_assert_eq(lw_network_input_array(n, 0, &declared, &err), LW_OK);
    cr_expect(declared.dtype == LW_F32 && declared.rank == 3 && declared.dim[0] == -1 &&
              declared.dim[1] == 4 && !declared.data);
    cr_assert_eq(lw_network_output_array(n, 0, &y, &err), LW_OK);
    cr_expect(y.rank == 2 && y.dim[1] == 4 && !y.data, "declared before the first run");
    cr_expect_eq(lw_network_compute(n, &err), LW_E_ARG);
    cr_expect(strstr(err.message, "input 'x' of memory is not given"), "%s", err.message);

    float x[2 * 4 * 3];
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    lw_array in = {.dtype = LW_F32, .rank = 3, .dim = {2, 4, 3}, .data = x};
    for (int run = 0; run < 2; run++) {
        cr_assert_eq(lw_network_set_input(n, 0, &in, NULL), LW_OK);
        x[0] = 99; /* it was copied */
        cr_assert_eq(lw_network_compute(n, NULL), LW_OK);
        cr_assert_eq(lw_network_output_array(n, 0, &y, NULL), LW_OK);
        cr_assert(y.dtype == LW_F32 && y.rank == 2 && y.dim[0] == 2 && y.dim[1] == 4);
        for (int i = 0; i < 8; i++)
            cr_expect_float_eq(((const float *)y.data)[i], 3 * (float)i + 1, 1e-6, "%d", i);
        x[0] = 0;
    }
    cr_assert_eq(lw_network_compute(n, NULL), LW_OK, "the input stays");

    lw_array wrong[] = {{.dtype = LW_F64, .rank = 3, .dim = {2, 4, 3}, .data = x},
                        {.dtype = LW_F32, .rank = 2, .dim = {2, 4}, .data = x},
                        {.dtype = LW_F32, .rank = 3, .dim = {2, 5, 2}, .data = x},
                        {.dtype = LW_F32, .rank = 3, .dim = {2, 4, -1}, .data = x},
                        {.dtype = LW_F32, .rank = 3, .dim = {2, 4, 3}},
                        {.dtype = LW_F32, .rank = 9, .data = x},
                        {.dtype = (lw_dtype)77, .rank = 0, .data = x}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lw_error why = {0};
        cr_expect_neq(lw_network_set_input(n, 0, &wrong[i], &why), LW_OK, "%zu", i);
        cr_expect_neq(why.message[0], '\0');
    }
    lw_error why = {0};
    cr_expect_eq(lw_network_set_input(n, 1, &in, &why), LW_E_ARG);
    cr_expect_eq(lw_network_output_array(n, 1, &y, &why), LW_E_ARG);
    cr_expect_eq(lw_network_input_array(n, -1, &y, &why), LW_E_ARG);
    cr_assert_eq(lw_network_compute(n, NULL), LW_OK, "refused inputs change nothing");
    /* no windows at all */
    lw_array none = {.dtype = LW_F32, .rank = 3, .dim = {0, 4, 3}};
    cr_assert_eq(lw_network_set_input(n, 0, &none, NULL), LW_OK);
    cr_assert_eq(lw_network_compute(n, NULL), LW_OK);
    cr_assert_eq(lw_network_output_array(n, 0, &y, NULL), LW_OK);
    cr_expect(y.rank == 2 && y.dim[0] == 0);
    lw_network_close(n);
    lw_network_close(NULL);
}

Test(arrays, external_data_needs_a_file)
{
    size_t size;
    uint8_t *data = tiny("external", "w.bin", &size);
    lw_network *n = NULL;
    lw_error err = {0};
    cr_expect_eq(lw_network_open_memory(&n, data, size, "scalar", 1, NULL, &err), LW_E_INPUT);
    cr_expect(strstr(err.message, "external data needs a model in a file"), "%s", err.message);
    free(data);
}

/* Single bytes, cuts, swaps of stretches: opened, described by name, run on zeros where that is possible. */
Test(arrays, changed_bytes_do_no_harm, .timeout = 300)
{
    static const char *const kinds[] = {"quantized", "overflowing_conv", "last_letters", "short_tensor",
                                        "bad_shapes"};
    uint64_t state = 7;
    int opened = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t size;
        uint8_t *data = tiny(kinds[k], "", &size), *changed = malloc(size);
        for (int round = 0; round < 4000; round++) {
            memcpy(changed, data, size);
            size_t n = size;
            for (int c = round % 3; c >= 0; c--) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                uint32_t r = (uint32_t)(state >> 33);
                size_t at = r % size;
                if (r >> 16 & 1)
                    changed[at] = (uint8_t)(state >> 20);
                else if (r >> 17 & 1)
                    changed[at] ^= (uint8_t)(1u << (r >> 20 & 7));
                else if (r >> 18 & 1)
                    n = at + 1;
                else
                    memmove(changed + at, changed + at / 2, (size - at) / 2);
            }
            lw_network *network = NULL;
            lw_error err = {0};
            lw_status status = lw_network_open_memory(&network, changed, n, "cpu", 1, NULL, &err);
            cr_assert(status == LW_OK || err.message[0], "a refusal without a reason");
            if (status != LW_OK)
                continue;
            opened++;
            static const double zeros[64];
            bool ready = true;
            for (int i = 0; i < lw_network_n_inputs(network) && ready; i++) {
                lw_array in;
                lw_network_input_array(network, i, &in, NULL);
                int64_t count = 1;
                for (int d = 0; d < in.rank; d++) {
                    in.dim[d] = in.dim[d] < 0 ? 1 : in.dim[d];
                    count = count > 64 || in.dim[d] > 64 ? 65 : count * in.dim[d];
                }
                in.rank = in.rank < 0 ? 0 : in.rank;
                in.data = zeros;
                ready = count <= 64 && lw_network_set_input(network, i, &in, NULL) == LW_OK;
            }
            if (ready) {
                status = lw_network_compute(network, &err);
                cr_assert(status == LW_OK || err.message[0]);
            }
            lw_network_close(network);
        }
        free(data);
        free(changed);
    }
    cr_expect_gt(opened, 100, "only %d models were good enough to open", opened);
}
