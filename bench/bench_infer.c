/* bench_infer.c - int8 layers and the float ones between them: every backend, checked against the scalar row
 * (where that takes long: some rows and channels of it), then timed; NVIDIA's cuBLASLt as the peer of
 * products, where it is installed, with a requantization of its own. */
#include "bench.h"

#include <math.h>
#include <stdio.h>

#include "common/device.h"
#include "infer_cases.h"

typedef enum layer { COPY, LINEAR, SOFTMAX, LAYERNORM, CONV } layer;

typedef struct shape {
    layer layer;
    const char *name;
    int64_t m, n, k; /* linear: rows, outputs, inputs; softmax: rows, n; conv: length, outputs, inputs */
    int64_t width, images;
} shape;

/* What a GPU is timed on, and what a CPU is; the quick ones are small enough for the scalar row. */
static const shape on_gpu[] = {
    {COPY, "copy", 1, 1 << 28, 0, 0, 0},          {LINEAR, "linear", 1, 16384, 16384, 0, 0},
    {LINEAR, "linear", 2, 16384, 16384, 0, 0},    {LINEAR, "linear", 4, 16384, 16384, 0, 0},
    {LINEAR, "linear", 8, 16384, 16384, 0, 0},    {LINEAR, "linear", 16, 16384, 16384, 0, 0},
    {LINEAR, "linear", 32, 16384, 16384, 0, 0},   {LINEAR, "linear", 64, 16384, 16384, 0, 0},
    {LINEAR, "linear", 128, 16384, 16384, 0, 0},  {LINEAR, "linear", 256, 16384, 16384, 0, 0},
    {LINEAR, "linear", 512, 16384, 16384, 0, 0},  {LINEAR, "linear", 1024, 16384, 16384, 0, 0},
    {LINEAR, "linear", 4096, 16384, 16384, 0, 0}, {LINEAR, "linear", 4096, 4096, 4096, 0, 0},
    {SOFTMAX, "softmax", 65536, 4096, 0, 0, 0},   {LAYERNORM, "layernorm", 65536, 4096, 0, 0, 0},
    {CONV, "conv1d", 4096, 128, 64, 9, 64},
};
static const shape on_cpu[] = {
    {LINEAR, "linear", 1, 4096, 4096, 0, 0},       {LINEAR, "linear", 64, 4096, 4096, 0, 0},
    {LINEAR, "linear", 1024, 4096, 4096, 0, 0},    {SOFTMAX, "softmax", 4096, 4096, 0, 0, 0},
    {LAYERNORM, "layernorm", 4096, 4096, 0, 0, 0}, {CONV, "conv1d", 4096, 128, 64, 9, 4},
};
static const shape quick[] = {
    {LINEAR, "linear", 1, 192, 333, 0, 0},  {LINEAR, "linear", 37, 192, 320, 0, 0},
    {SOFTMAX, "softmax", 50, 300, 0, 0, 0}, {LAYERNORM, "layernorm", 50, 300, 0, 0, 0},
    {CONV, "conv1d", 200, 24, 20, 9, 2},
};

static lw_status case_of(const shape *s, infer_case *c, lw_error *err)
{
    static const int64_t same[] = {0}, pads[] = {4, 4};
    int64_t rows[] = {s->m, s->layer == LINEAR ? s->k : s->n}, one[] = {s->n};
    *c = (infer_case){.domain = "", .opset = 17};
    switch (s->layer) {
    case COPY:
        c->op = "Transpose";
        c->n_in = 1;
        infer_case_ints(c, "perm", same, 1);
        return infer_case_tensor(&c->in[0], LW_F32, 1, one, 1, err);
    case SOFTMAX:
        c->op = "Softmax";
        c->n_in = 1;
        return infer_case_tensor(&c->in[0], LW_F32, 2, rows, 1, err);
    case LAYERNORM:
        c->op = "LayerNormalization";
        c->n_in = 3;
        LW_TRY(infer_case_tensor(&c->in[0], LW_F32, 2, rows, 1, err));
        LW_TRY(infer_case_tensor(&c->in[1], LW_F32, 1, one, 2, err));
        return infer_case_tensor(&c->in[2], LW_F32, 1, one, 3, err);
    case LINEAR: {
        int64_t w[] = {s->n, s->k};
        c->domain = "com.microsoft";
        c->op = "QGemm";
        c->opset = 1;
        c->n_in = 9;
        infer_case_int(c, "transB", 1);
        LW_TRY(infer_case_tensor(&c->in[0], LW_I8, 2, rows, 1, err));
        LW_TRY(infer_case_tensor(&c->in[3], LW_I8, 2, w, 2, err));
        break;
    }
    case CONV: {
        int64_t x[] = {s->images, s->k, s->m}, w[] = {s->n, s->k, s->width};
        c->op = "QLinearConv";
        c->n_in = 8;
        infer_case_ints(c, "pads", pads, 2);
        LW_TRY(infer_case_tensor(&c->in[0], LW_I8, 3, x, 1, err));
        LW_TRY(infer_case_tensor(&c->in[3], LW_I8, 3, w, 2, err));
        break;
    }
    }
    int scale = s->layer == LINEAR ? 7 : 6;
    double depth = (double)s->k * (s->width ? s->width : 1);
    LW_TRY(infer_case_float(&c->in[1], 0.02f, err));
    LW_TRY(infer_case_zero(&c->in[2], LW_I8, 3, err));
    LW_TRY(infer_case_float(&c->in[4], 0.01f, err));
    LW_TRY(infer_case_zero(&c->in[5], LW_I8, 0, err));
    LW_TRY(infer_case_float(&c->in[scale], (float)(0.02 * 0.01 * 80 * sqrt(depth)), err));
    return infer_case_zero(&c->in[scale + 1], LW_I8, -5, err);
}

/* ---- verification -------------------------------------------------------------------------------------- */

enum { MOST_PARTS = 16 };

/* At most MOST_PARTS of n parts, the first and the last among them. */
static int parts_of(int64_t n, int most, int64_t at[MOST_PARTS])
{
    int count = n < most ? (int)n : most;
    for (int i = 0; i < count; i++)
        at[i] = count == n ? i : (n - 1) * i / (count - 1);
    return count;
}

/* The scalar row on some rows of the input (and of the weights): results must be those at their places. The
 * largest relative difference of floats goes to *error. */
static lw_status verify(const bench *b, const lw_network *n, const shape *s, const infer_case *c,
                        double *error, lw_error *err)
{
    bool products = s->layer == LINEAR || s->layer == CONV;
    int64_t at[MOST_PARTS], of_w[MOST_PARTS];
    int rows = parts_of(c->in[0]->dim[0], s->layer == CONV ? 2 : MOST_PARTS, at),
        outputs = products ? parts_of(s->n, s->layer == CONV ? 4 : MOST_PARTS, of_w) : 0;
    infer_case part = *c;
    lw_tensor *want = NULL, *got = NULL, *x = NULL, *w = NULL;
    lw_network scalar = {.backend = &lw_infer_scalar, .pool = b->pool};
    lw_status status = LW_OK;
    *error = 0;
    if (s->layer == COPY)
        return LW_OK;
    LW_TRY_END(infer_case_parts(c->in[0], at, rows, &x, err));
    part.in[0] = x;
    if (products) {
        LW_TRY_END(infer_case_parts(c->in[3], of_w, outputs, &w, err));
        part.in[3] = w;
    }
    LW_TRY_END(infer_case_run(&scalar, &part, &want, err));
    LW_TRY_END(infer_case_run(n, c, &got, err));
    LW_TRY_END(lw_network_fetch(n, got, err));
    int64_t wrong = 0, across = products ? s->n : 1, few = products ? outputs : 1,
            span = s->layer == LINEAR ? 1
                   : s->layer == CONV ? s->m
                                      : s->n;
    for (int64_t i = 0; i < want->count; i++) {
        int64_t in_span = i % span, o = i / span % few, row = i / span / few;
        int64_t place = (at[row] * across + (products ? of_w[o] : 0)) * span + in_span;
        if (want->dtype == LW_F32) {
            double wants = ((const float *)want->data)[i], gets = ((const float *)got->data)[place];
            /* results of a normalization are of the order of 1 */
            double off = fabs(gets - wants) / (s->layer == LAYERNORM && fabs(wants) < 1 ? 1 : fabs(wants));
            *error = off > *error || isnan(off) ? off : *error;
        } else {
            wrong += lw_tensor_integer(want, i) != lw_tensor_integer(got, place);
        }
    }
    if (wrong || !(*error < 1e-4))
        status = lw_fail(err, LW_E_INTERNAL, "%s, %s: %lld of %lld results differ, floats by up to %g",
                         n->backend->base.name, s->name, (long long)wrong, (long long)want->count, *error);
end:
    lw_tensor_release(x);
    lw_tensor_release(w);
    lw_tensor_release(want);
    lw_tensor_release(got);
    return status;
}

/* ---- timing -------------------------------------------------------------------------------------------- */

typedef struct job {
    const lw_network *network;
    const infer_case *c;
    int times;
} job;

static lw_status work(void *arg, lw_error *err)
{
    const job *j = arg;
    for (int i = 0; i < j->times; i++) {
        lw_tensor *out;
        lw_status status = infer_case_run(j->network, j->c, &out, err);
        lw_tensor_release(out);
        LW_TRY(status);
    }
    return j->network->context ? j->network->backend->wait(j->network->context, err) : LW_OK;
}

/* Operations for a byte of a product, every operand moved once; 0: not counted in operations. */
static double intensity_of(const shape *s)
{
    double m = (double)s->m, n = (double)s->n, k = (double)s->k, bytes = n * k + m * k + m * n;
    if (s->layer == LINEAR)
        return 2 * m * n * k / bytes;
    double per_image = m * k + m * n, width = (double)s->width, images = (double)s->images;
    return s->layer == CONV ? 2 * m * n * k * width * images / (n * k * width + images * per_image) : 0;
}

/* Bytes moved or operations (a multiply-add is two) of one run. */
static double amount_of(const shape *s, const char **unit)
{
    double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    *unit = "TB/s";
    switch (s->layer) {
    case COPY:
        return 8e-12 * n;
    case SOFTMAX:
    case LAYERNORM:
        return 8e-12 * m * n;
    case LINEAR:
        if (m <= 16)
            return 1e-12 * (n * k + m * k + m * n);
        *unit = "TOPS";
        return 2e-12 * m * n * k;
    default:
        *unit = "TOPS";
        return 2e-12 * m * n * k * (double)(s->width * s->images);
    }
}

static lw_status bench_shape(bench *b, const lw_infer_backend *row, const shape *s, bool peer, lw_error *err)
{
    infer_case c;
    lw_network n = {.backend = row, .pool = b->pool, .host = b->host};
    bench_result about = {.domain = "infer", .verified = true};
    const char *unit;
    double error = 0, amount = amount_of(s, &unit);
    lw_status status = LW_OK;
    LW_TRY_END(case_of(s, &c, err));
    LW_TRY_END(lw_network_attach(&n, err));
    LW_TRY_END(verify(b, &n, s, &c, &error, err));
    /* a device is given so much at a time that its start does not count */
    double seconds = amount / (s->layer == LINEAR && s->m > 16 ? 400 : s->layer == CONV ? 100 : 3);
    enum { MOST_TIMES = 1000 }; /* small ones take as long as it takes to start them */
    double times = row->open && !b->quick ? 0.02 / seconds + 1 : 1;
    job j = {.network = &n, .c = &c, .times = times < MOST_TIMES ? (int)times : MOST_TIMES};
    snprintf(about.unit, sizeof about.unit, "%s", unit);
    snprintf(about.backend, sizeof about.backend, "%s", peer ? "peer" : row->base.name);
    snprintf(about.name, sizeof about.name, "%s%s", s->name, peer ? " cuBLASLt + requantize" : "");
    about.error = error;
    about.intensity = intensity_of(s);
    if (s->layer == CONV)
        snprintf(about.shape, sizeof about.shape, "%lld x %lld x %lld -> %lld, width %lld",
                 (long long)s->images, (long long)s->k, (long long)s->m, (long long)s->n,
                 (long long)s->width);
    else if (s->layer == LINEAR)
        snprintf(about.shape, sizeof about.shape, "%lld x %lld -> %lld", (long long)s->m, (long long)s->k,
                 (long long)s->n);
    else
        snprintf(about.shape, sizeof about.shape, "%lld x %lld", (long long)s->m, (long long)s->n);
    lw_device device;
    about.in_cache = row->open && strcmp(unit, "TB/s") == 0 &&
                     lw_device_query(b->device, &device, NULL) == LW_OK &&
                     1e12 * amount < 2 * (double)device.l2_bytes;
    LW_TRY_END(bench_measure(b, &about, amount * j.times, work, &j, err));
end:
    infer_case_free(&c);
    lw_network_detach(&n);
    return status;
}

lw_status bench_infer(bench *b, lw_error *err)
{
    const int64_t size = b->size;
    const shape sized[] = {
        /* of --sizes: square layers, rows of that many */
        {LINEAR, "linear", 1, size, size, 0, 0},       {LINEAR, "linear", 32, size, size, 0, 0},
        {LINEAR, "linear", 1024, size, size, 0, 0},    {SOFTMAX, "softmax", 4096, size, 0, 0, 0},
        {LAYERNORM, "layernorm", 4096, size, 0, 0, 0},
    };
    for (int r = 0; r < lw_infer_backend_count; r++) {
        const lw_infer_backend *row = lw_infer_backends[r];
        bool gpu = row->open != NULL, plain = strcmp(row->base.name, "cuda-int") == 0;
        if (!bench_wants(b, row->base.name) || row->base.usable(&row->base, b->device, NULL) != LW_OK)
            continue;
        const shape *shapes = size ? sized : b->quick ? quick : gpu ? on_gpu : on_cpu;
        size_t n = size ? sizeof sized : b->quick ? sizeof quick : gpu ? sizeof on_gpu : sizeof on_cpu;
        for (size_t i = 0; i < n / sizeof *shapes; i++) {
            const shape *s = &shapes[i];
            double work_of = (double)s->m * (double)s->n * (double)s->k;
            /* what would take seconds is left out */
            bool small = b->quick && !size;
            if (!small && s->layer != COPY && (row == &lw_infer_scalar || (plain && work_of > 1e11)))
                continue;
            LW_TRY(bench_shape(b, row, s, false, err));
            bool with_peer = row == &lw_infer_cuda_tensor && s->layer == LINEAR && s->m >= 16 && !small;
            lw_error refused = {0};
            if (with_peer && bench_shape(b, &lw_infer_cuda_library, s, true, &refused) != LW_OK)
                lw_say(b->host, LW_SAY_INFO, "cuBLASLt is not compared: %s", refused.message);
        }
    }
    return LW_OK;
}
