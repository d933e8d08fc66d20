/* test_layers.c - whole operators on every backend that can run here against the scalar row, in the shapes
 * where kernels differ: few and many rows, depths that are no multiple of anything, groups, dilation, empty
 * batches. Integers must be equal, floats within a bound. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "infer_cases.h"

/* The C library's exponential against the device's: see docs/infer.md. */
#define FLOAT_BOUND 2e-5

static void compare(const char *what, const char *backend, const lw_tensor *got, const lw_tensor *want)
{
    cr_assert(got->dtype == want->dtype && got->count == want->count, "%s, %s: another type or shape", what,
              backend);
    int64_t wrong = 0, first = -1;
    for (int64_t i = 0; i < want->count; i++) {
        double x = lw_tensor_number(got, i), y = lw_tensor_number(want, i);
        bool good = want->dtype == LW_F32 ? fabs(x - y) <= FLOAT_BOUND * (fabs(y) < 1 ? 1 : fabs(y)) : x == y;
        wrong += !good;
        first = !good && first < 0 ? i : first;
    }
    cr_expect(wrong == 0, "%s, %s: %lld of %lld differ, first %lld: %g instead of %g", what, backend,
              (long long)wrong, (long long)want->count, (long long)first,
              first < 0 ? 0 : lw_tensor_number(got, first), first < 0 ? 0 : lw_tensor_number(want, first));
}

/* Runs the case twice on one row (the second time with what it keeps). The library's row refuses what is not
 * for it: false. */
static bool check_row(const char *what, const lw_infer_backend *row, infer_case *c, const lw_tensor *want)
{
    lw_error err = {0};
    lw_network n = {.backend = row};
    bool refused = false;
    cr_assert(lw_network_attach(&n, &err) == LW_OK, "%s", err.message);
    for (int time = 0; time < 2 && !refused; time++) {
        lw_tensor *got = NULL;
        lw_status status = infer_case_run(&n, c, &got, &err);
        if (status == LW_OK)
            status = lw_network_fetch(&n, got, &err);
        refused = status == LW_E_UNSUPPORTED && row == &lw_infer_cuda_library;
        cr_assert(status == LW_OK || refused, "%s, %s: %s", what, row->base.name, err.message);
        if (!refused)
            compare(what, row->base.name, got, want);
        lw_tensor_release(got);
    }
    for (int i = 0; i < c->n_in; i++) /* device copies belong to this context */
        if (c->in[i] && c->in[i]->buffer->device) {
            c->in[i]->buffer->device->release(c->in[i]->buffer->device);
            c->in[i]->buffer->device = NULL;
        }
    lw_network_detach(&n);
    return !refused;
}

/* Runs the case on the scalar row and on all others; the number of runs by cuBLASLt. */
static int check(const char *what, infer_case *c)
{
    lw_error err = {0};
    lw_network scalar = {.backend = &lw_infer_scalar};
    lw_tensor *want = NULL;
    cr_assert(infer_case_run(&scalar, c, &want, &err) == LW_OK, "%s: %s", what, err.message);
    for (int b = 1; b < lw_infer_backend_count; b++) {
        const lw_infer_backend *row = lw_infer_backends[b];
        if (row->base.usable(&row->base, 0, NULL) == LW_OK)
            check_row(what, row, c, want);
    }
    const lw_infer_backend *library = &lw_infer_cuda_library;
    int by_library = library->base.usable(&library->base, 0, NULL) == LW_OK && want->count > 0 &&
                     check_row(what, library, c, want);
    lw_tensor_release(want);
    infer_case_free(c);
    return by_library;
}

static void make(lw_tensor **out, lw_dtype dtype, int rank, const int64_t *dim, uint64_t seed)
{
    cr_assert(infer_case_tensor(out, dtype, rank, dim, seed, NULL) == LW_OK);
}

static void scale_and_zero(infer_case *c, int at, float scale, lw_dtype dtype, int32_t zero)
{
    cr_assert(infer_case_float(&c->in[at], scale, NULL) == LW_OK);
    cr_assert(infer_case_zero(&c->in[at + 1], dtype, zero, NULL) == LW_OK);
}

Test(layers, products, .timeout = 120)
{
    static const int64_t shapes[][3] = {{1, 130, 1},
                                        {1, 300, 333},
                                        {3, 65, 64},
                                        {5, 33, 4097},
                                        {8, 129, 512},
                                        {17, 70, 256},
                                        {40, 200, 768},
                                        {70, 130, 100},
                                        {0, 5, 16},
                                        {200, 300, 65},
                                        {129, 257, 1024},
                                        /* few rows: every way to divide depth and columns */
                                        {1, 34001, 40},
                                        {1, 4224, 2048},
                                        {1, 96, 8192},
                                        {2, 8500, 300},
                                        {1, 70, 4100},
                                        {4, 61, 2049},
                                        {1, 41, 16500},
                                        {3, 33, 20000}};
    static const int32_t zeros[] = {-128, 0, 127};
    int by_library = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int variant = 0; variant < 6; variant++) {
            int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            int64_t a[] = {m, k}, straight[] = {k, n}, turned[] = {n, k}, columns[] = {n};
            lw_dtype type_a = variant % 2 ? LW_U8 : LW_I8, type_b = variant / 2 % 2 ? LW_U8 : LW_I8;
            infer_case c = {.domain = "com.microsoft", .op = "QGemm", .opset = 1, .n_in = 9};
            char what[100];
            bool turns = variant % 3 != 0;
            infer_case_int(&c, "transB", turns);
            make(&c.in[0], type_a, 2, a, s + 1);
            scale_and_zero(&c, 1, 0.02f, type_a, zeros[variant % 3] + (type_a == LW_U8 ? 128 : 0));
            make(&c.in[3], type_b, 2, turns ? turned : straight, s + 2);
            make(&c.in[4], LW_F32, 1, columns, s + 3);
            for (int64_t j = 0; j < n; j++)
                ((float *)c.in[4]->data)[j] = 0.001f * (float)(j % 7 + 1);
            if (variant < 5)
                make(&c.in[5], type_b, 1, columns, s + 4);
            if (variant != 3)
                make(&c.in[6], LW_I32, 1, columns, s + 5);
            if (variant != 4)
                scale_and_zero(&c, 7, variant == 1 ? 1e-4f : 0.003f * (float)(k + 9), LW_U8, 131);
            snprintf(what, sizeof what, "product %lld x %lld x %lld, variant %d", (long long)m, (long long)n,
                     (long long)k, variant);
            by_library += check(what, &c);
        }
    cr_log_info("%d products by cuBLASLt", by_library);
}

Test(layers, convolutions, .timeout = 120)
{
    static const struct {
        int rank;
        int64_t x[5], w[5], pads[6], strides[3], dilations[3], groups;
    } shapes[] = {
        {3, {2, 20, 100}, {24, 20, 9}, {4, 4}, {1}, {1}, 1},
        {3, {2, 4, 70}, {6, 4, 9}, {0, 3}, {2}, {2}, 1},
        {3, {1, 64, 33}, {16, 32, 3}, {1, 1}, {1}, {1}, 2},
        {4, {2, 3, 17, 19}, {8, 3, 3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}, 1},
        {4, {1, 32, 9, 8}, {40, 16, 3, 2}, {1, 0, 2, 1}, {1, 2}, {2, 1}, 2},
        {4, {2, 12, 8, 9}, {12, 1, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 12},
        {5, {1, 17, 4, 5, 6}, {5, 17, 2, 3, 3}, {0, 1, 1, 1, 1, 1}, {1, 1, 2}, {1, 1, 1}, 1},
        {3, {0, 20, 30}, {8, 20, 3}, {1, 1}, {1}, {1}, 1},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int variant = 0; variant < 4; variant++) {
            int dims = shapes[s].rank - 2;
            int64_t outputs[] = {shapes[s].w[0]};
            lw_dtype type_x = variant % 2 ? LW_U8 : LW_I8, type_w = variant / 2 ? LW_U8 : LW_I8;
            infer_case c = {.domain = "", .op = "QLinearConv", .opset = 17, .n_in = 9};
            char what[60];
            infer_case_ints(&c, "pads", shapes[s].pads, 2 * dims);
            infer_case_ints(&c, "strides", shapes[s].strides, dims);
            infer_case_ints(&c, "dilations", shapes[s].dilations, dims);
            infer_case_int(&c, "group", shapes[s].groups);
            make(&c.in[0], type_x, shapes[s].rank, shapes[s].x, s + 1);
            scale_and_zero(&c, 1, 0.02f, type_x, type_x == LW_U8 ? 255 : -5);
            make(&c.in[3], type_w, shapes[s].rank, shapes[s].w, s + 2);
            make(&c.in[4], LW_F32, 1, outputs, s);
            for (int64_t j = 0; j < outputs[0]; j++)
                ((float *)c.in[4]->data)[j] = 0.001f * (float)(j % 5 + 1);
            if (variant)
                make(&c.in[5], type_w, 1, outputs, s + 4);
            else
                cr_assert(infer_case_zero(&c.in[5], type_w, 0, NULL) == LW_OK);
            scale_and_zero(&c, 6, 0.8f, LW_I8, -128);
            if (variant != 2)
                make(&c.in[8], LW_I32, 1, outputs, s + 5);
            snprintf(what, sizeof what, "convolution %zu, variant %d", s, variant);
            check(what, &c);
        }
}

Test(layers, rows_and_elements, .timeout = 60)
{
    static const int64_t widths[] = {1, 3, 128, 333, 512, 516, 1000, 4096, 4099, 5000};
    for (size_t s = 0; s < sizeof widths / sizeof *widths; s++) {
        int64_t n = widths[s], dim[] = {7, n}, one[] = {n};
        infer_case soft = {.domain = "", .op = "Softmax", .opset = 17, .n_in = 1};
        make(&soft.in[0], LW_F32, 2, dim, s);
        check("softmax", &soft);
        infer_case norm = {.domain = "", .op = "LayerNormalization", .opset = 17, .n_in = 3};
        make(&norm.in[0], LW_F32, 2, dim, s);
        make(&norm.in[1], LW_F32, 1, one, s + 1);
        make(&norm.in[2], LW_F32, 1, one, s + 2);
        check("layer norm", &norm);
        infer_case quantize = {.domain = "", .op = "QuantizeLinear", .opset = 17, .n_in = 3};
        infer_case_int(&quantize, "axis", 1);
        make(&quantize.in[0], LW_F32, 2, dim, s);
        make(&quantize.in[1], LW_F32, 1, one, s);
        make(&quantize.in[2], LW_I8, 1, one, s);
        for (int64_t j = 0; j < n; j++) /* powers of two: ties */
            ((float *)quantize.in[1]->data)[j] = 1.0f / (float)(1 << (j % 9));
        check("quantize", &quantize);
        infer_case dynamic = {
            .domain = "com.microsoft", .op = "DynamicQuantizeMatMul", .opset = 1, .n_in = 5};
        int64_t w[] = {n, 40}, columns[] = {40};
        make(&dynamic.in[0], LW_F32, 2, dim, s);
        make(&dynamic.in[1], LW_U8, 2, w, s);
        make(&dynamic.in[2], LW_F32, 1, columns, s);
        for (int64_t j = 0; j < 40; j++)
            ((float *)dynamic.in[2]->data)[j] = 1e-4f * (float)(j + 1);
        make(&dynamic.in[3], LW_U8, 1, columns, s);
        make(&dynamic.in[4], LW_F32, 1, columns, s);
        check("dynamic product", &dynamic);
    }
    static const int64_t wide[] = {3, 1, 5, 7}, narrow[] = {4, 1, 7}, perm[] = {2, 0, 3, 1};
    infer_case add = {.domain = "", .op = "Add", .opset = 17, .n_in = 2};
    make(&add.in[0], LW_F32, 4, wide, 1);
    make(&add.in[1], LW_F32, 3, narrow, 2);
    check("broadcast sum", &add);
    infer_case turn = {.domain = "", .op = "Transpose", .opset = 17, .n_in = 1};
    infer_case_ints(&turn, "perm", perm, 4);
    make(&turn.in[0], LW_I8, 4, wide, 1);
    check("transpose", &turn);
}
