/* fuzz_layers.c - integer products and convolutions: the CPU row, on every instruction set, against the
 * scalar one. */
#include "fuzz/fuzz.h"

#include "infer/infer_backend.h"

static const char *const disabled[] = {"", "avx512bw", "avx512bw,avx2", "avx512bw,avx2,sse41,neon"};

static void fill(fuzz_bytes *bytes, uint8_t *to, int64_t n)
{
    uint8_t last = (uint8_t)fuzz_take(bytes, 256);
    for (int64_t i = 0; i < n; i++)
        to[i] = bytes->size ? (uint8_t)fuzz_take(bytes, 256) : (uint8_t)(last + 37 * i);
}

static int32_t zero(fuzz_bytes *bytes, bool is_signed)
{
    return (int32_t)fuzz_take(bytes, 256) - (is_signed ? 128 : 0);
}

static void product(fuzz_bytes *bytes)
{
    enum { MOST = 80 };
    static uint8_t a[MOST * MOST], b[MOST * MOST];
    static int32_t c[2][MOST * MOST];
    int32_t a_zero[MOST], b_zero[MOST];
    lw_gemm g = {.m = fuzz_take(bytes, 20), .n = fuzz_take(bytes, MOST), .k = fuzz_take(bytes, MOST)};
    g.a_signed = fuzz_take(bytes, 2), g.b_signed = fuzz_take(bytes, 2);
    g.a_zero_is_scalar = fuzz_take(bytes, 2), g.b_zero_is_scalar = fuzz_take(bytes, 2);
    g.lda = g.k, g.ldb = g.n, g.ldc = g.n;
    for (int i = 0; i < MOST; i++)
        a_zero[i] = zero(bytes, g.a_signed), b_zero[i] = zero(bytes, g.b_signed);
    fill(bytes, a, g.m * g.k), fill(bytes, b, g.k * g.n);
    g.a = a, g.b = b, g.a_zero = a_zero, g.b_zero = b_zero;
    const lw_infer_backend *rows[2] = {&lw_infer_scalar, &lw_infer_cpu};
    lw_error err = {0};
    for (int r = 0; r < 2; r++) {
        g.c = c[r];
        FUZZ_REQUIRE(rows[r]->gemm(NULL, &g, &err) == LW_OK, "%s", err.message);
    }
    FUZZ_REQUIRE(memcmp(c[0], c[1], (size_t)(g.m * g.n) * sizeof **c) == 0, "product %d x %d x %d", (int)g.m,
                 (int)g.n, (int)g.k);
}

static void convolution(fuzz_bytes *bytes)
{
    enum { MOST = 12 };
    static uint8_t x[4 * MOST * MOST], w[4 * 4 * 25];
    static int32_t y[2][4 * 64 * 64];
    int32_t w_zero[4];
    lw_conv v = {
        .dims = 1 + (int)fuzz_take(bytes, 2), .c = 1 + fuzz_take(bytes, 4), .o = 1 + fuzz_take(bytes, 4)};
    int64_t in = 1, out = 1, kernel = 1;
    for (int k = 0; k < v.dims; k++) {
        v.in[k] = 1 + fuzz_take(bytes, MOST), v.kernel[k] = 1 + fuzz_take(bytes, 5);
        v.stride[k] = 1 + fuzz_take(bytes, 3), v.dilation[k] = 1 + fuzz_take(bytes, 3);
        v.pad[k] = fuzz_take(bytes, 6);
        int64_t span =
            v.in[k] + v.pad[k] + (int64_t)fuzz_take(bytes, 6) - v.dilation[k] * (v.kernel[k] - 1) - 1;
        if (span < 0)
            return;
        v.out[k] = span / v.stride[k] + 1;
        in *= v.in[k], out *= v.out[k], kernel *= v.kernel[k];
    }
    v.x_signed = fuzz_take(bytes, 2), v.w_signed = fuzz_take(bytes, 2);
    v.x_zero = zero(bytes, v.x_signed);
    for (int i = 0; i < 4; i++)
        w_zero[i] = zero(bytes, v.w_signed);
    fill(bytes, x, v.c * in), fill(bytes, w, v.o * v.c * kernel);
    v.x = x, v.w = w, v.w_zero = w_zero;
    const lw_infer_backend *rows[2] = {&lw_infer_scalar, &lw_infer_cpu};
    lw_error err = {0};
    for (int r = 0; r < 2; r++) {
        v.y = y[r];
        FUZZ_REQUIRE(rows[r]->conv(NULL, &v, &err) == LW_OK, "%s", err.message);
    }
    FUZZ_REQUIRE(memcmp(y[0], y[1], (size_t)(v.o * out) * sizeof **y) == 0, "convolution");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes bytes = {data, size};
    bool conv = fuzz_take(&bytes, 2);
    setenv("LANEWISE_DISABLE", disabled[fuzz_take(&bytes, 4)], 1);
    if (conv)
        convolution(&bytes);
    else
        product(&bytes);
    return 0;
}
