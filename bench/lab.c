/* lab.c - the laboratory's driver: input, one checked launch, timed launches, what was found. */
#include "lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime_api.h>

#include "bench.h"
#include "common/device.h"
#include "common/fail.h"
#include "common/numerics.h"
#include "opcodes.h"

/* What a CUDA call that failed becomes. */
#define TRY_CUDA(what, call)                                                                                 \
    do {                                                                                                     \
        cudaError_t code_ = (call);                                                                          \
        if (code_ != cudaSuccess) {                                                                          \
            cudaGetLastError();                                                                              \
            return lw_fail(err, LW_E_DEVICE, "bench: %s: %s", what, cudaGetErrorString(code_));              \
        }                                                                                                    \
    } while (0)

enum { MAX_REPEATS = 16, MAX_VARIANTS = 16 };

typedef struct lab {
    bench *b;
    int cc, multiprocessors;
    char *device_memory; /* in, in2, out, clocks */
    size_t capacity;
    char *in, *in2, *out, *clocks; /* within */
    char *flush;
    size_t flush_bytes;
    cudaEvent_t begin, end;
} lab;

bool lab_pci_address(int device, char *text, int size)
{
    return cudaDeviceGetPCIBusId(text, size, device) == cudaSuccess;
}

lw_status lab_numerics(int device, char *text, size_t size, lw_error *err)
{
    lw_numerics n;
    LW_TRY(lw_device_numerics(device, &n, err));
    lw_numerics_text(&n, text, size);
    return LW_OK;
}

static void lab_close(lab *l)
{
    cudaFree(l->device_memory);
    cudaFree(l->flush);
    if (l->begin)
        cudaEventDestroy(l->begin);
    if (l->end)
        cudaEventDestroy(l->end);
}

static lw_status lab_open(lab *l, bench *b, lw_error *err)
{
    lw_device d;
    memset(l, 0, sizeof *l);
    l->b = b;
    LW_TRY(lw_device_query(b->device, &d, err));
    l->cc = d.major * 10 + d.minor;
    l->multiprocessors = d.multiprocessors;
    l->flush_bytes = 2 * (size_t)d.l2_bytes + 1024;
    TRY_CUDA("choosing the device", cudaSetDevice(b->device));
    TRY_CUDA("an event", cudaEventCreate(&l->begin));
    TRY_CUDA("an event", cudaEventCreate(&l->end));
    TRY_CUDA("memory to flush the caches", cudaMalloc((void **)&l->flush, l->flush_bytes));
    return LW_OK;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 255) & ~(size_t)255;
}

/* Device memory for in, in2, out and the clocks of each block. */
static lw_status lab_memory(lab *l, size_t in, size_t in2, size_t out, unsigned blocks, lw_error *err)
{
    size_t clocks = 2 * sizeof(long long) * blocks;
    size_t bytes = rounded(in) + rounded(in2) + rounded(out) + rounded(clocks);
    if (bytes > l->capacity) {
        cudaFree(l->device_memory);
        l->device_memory = NULL;
        l->capacity = 0;
        TRY_CUDA("memory of a kernel", cudaMalloc((void **)&l->device_memory, bytes));
        l->capacity = bytes;
    }
    l->in = l->device_memory;
    l->in2 = l->in + rounded(in);
    l->out = l->in2 + rounded(in2);
    l->clocks = l->out + rounded(out);
    return LW_OK;
}

static lw_status launch(const void *kernel, unsigned blocks, unsigned threads, lab_args *args, lw_error *err)
{
    void *list[1] = {args};
    TRY_CUDA("launching a kernel", cudaLaunchKernel(kernel, (struct dim3){blocks, 1, 1},
                                                    (struct dim3){threads, 1, 1}, list, 0, NULL));
    return LW_OK;
}

/* Seconds of one launch by events. */
static lw_status timed(lab *l, const void *kernel, unsigned blocks, unsigned threads, lab_args *args,
                       bool flush, double *seconds, lw_error *err)
{
    float ms;
    if (flush)
        TRY_CUDA("flushing the caches", cudaMemsetAsync(l->flush, 0, l->flush_bytes, NULL));
    TRY_CUDA("an event", cudaEventRecord(l->begin, NULL));
    LW_TRY(launch(kernel, blocks, threads, args, err));
    TRY_CUDA("an event", cudaEventRecord(l->end, NULL));
    TRY_CUDA("a kernel of the bench", cudaEventSynchronize(l->end));
    TRY_CUDA("an event", cudaEventElapsedTime(&ms, l->begin, l->end));
    *seconds = ms * 1e-3;
    return lw_stopped(l->b->host) ? lw_fail(err, LW_E_INTERRUPTED, "interrupted") : LW_OK;
}

/* The machine code of the laboratory's kernels, all at once and once a run; all of them take lab_args. */
static lw_status read_opcodes(lab *l, lw_error *err)
{
    bench *b = l->b;
    struct cudaFuncAttributes attributes = {0};
    if (b->opcodes || cudaFuncGetAttributes(&attributes, lab_copy_kernel) != cudaSuccess)
        return LW_OK;
    b->opcodes = calloc(1, sizeof *b->opcodes);
    if (!b->opcodes)
        return lw_fail_memory(err, sizeof *b->opcodes);
    char architecture[16];
    snprintf(architecture, sizeof architecture, "sm_%d", attributes.binaryVersion);
    LW_TRY(opcodes_read(b->opcodes, architecture, "lab_args", err));
    lw_say(b->host, LW_SAY_INFO, "opcodes: %s", b->opcodes->source ? b->opcodes->source : "not known here");
    return LW_OK;
}

void lab_free(bench *b)
{
    if (b->opcodes)
        opcodes_free(b->opcodes);
    free(b->opcodes);
    b->opcodes = NULL;
}

static const char *codes_of(const lab *l, const void *kernel)
{
#if CUDART_VERSION >= 12030 /* names of kernels are told from CUDA 12.3 on */
    const char *name;
    if (l->b->opcodes && cudaFuncGetName(&name, kernel) == cudaSuccess)
        return opcodes_of(l->b->opcodes, name);
    cudaGetLastError();
#else
    (void)l, (void)kernel;
#endif
    return NULL;
}

/* Registers, local memory and opcodes of a kernel. */
static void describe(const lab *l, const void *kernel, bench_result *r)
{
    struct cudaFuncAttributes attributes = {0};
    if (cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess) {
        r->registers = attributes.numRegs;
        r->local_bytes = (int)attributes.localSizeBytes;
    }
    const char *codes = codes_of(l, kernel);
    if (codes)
        opcodes_show(codes, r->opcodes, sizeof r->opcodes);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}

static int repeats_of(const bench *b)
{
    return b->repeats < MAX_REPEATS ? b->repeats : MAX_REPEATS;
}

/* --- ceilings ------------------------------------------------------------------------------------------- */

/* All blocks of the checked launch must hold what the reference says of warps 0 and 31. */
static lw_status check_ceiling(lab *l, const lab_ceiling *row, const uint32_t *in, lab_args args, bool *right,
                               lw_error *err)
{
    enum { ROUNDS = 2 };
    size_t words = (size_t)l->multiprocessors * LAB_THREADS;
    uint32_t *got = malloc(words * sizeof *got), want[32];
    if (!got)
        return lw_fail_memory(err, words * sizeof *got);
    args.rounds = ROUNDS;
    lw_status status = launch(row->kernel, (unsigned)l->multiprocessors, LAB_THREADS, &args, err);
    if (status == LW_OK &&
        cudaMemcpy(got, l->out, words * sizeof *got, cudaMemcpyDeviceToHost) != cudaSuccess)
        status = lw_fail(err, LW_E_DEVICE, "bench ceilings: %s: %s", row->name,
                         cudaGetErrorString(cudaGetLastError()));
    *right = status == LW_OK;
    for (int warp = 0; warp < LAB_WARPS && *right; warp += LAB_WARPS - 1) {
        lab_ceiling_reference(row, in, warp, ROUNDS, want);
        for (size_t block = 0; block < (size_t)l->multiprocessors && *right; block++)
            for (int lane = 0; lane < 32 && *right; lane++) {
                uint32_t word = got[block * LAB_THREADS + (size_t)warp * 32 + (size_t)lane];
                *right = word == want[lane];
                if (!*right)
                    bench_wrong(l->b, "ceiling %s: block %zu, thread %d has %08x, not %08x", row->name, block,
                                warp * 32 + lane, word, want[lane]);
            }
    }
    free(got);
    return status;
}

static lw_status one_ceiling(lab *l, const lab_ceiling *row, bool show, lw_error *err)
{
    bench *b = l->b;
    unsigned blocks = (unsigned)l->multiprocessors;
    uint32_t *in = malloc(LAB_CEILING_WORDS * sizeof *in);
    long long *clocks = malloc(2 * sizeof *clocks * blocks);
    double *block_clocks = malloc(sizeof *block_clocks * blocks);
    double per_clock[MAX_REPEATS], per_second[MAX_REPEATS];
    int repeats = show ? repeats_of(b) : 2;
    lw_status status = LW_OK;
    if (!in || !clocks || !block_clocks) {
        status = lw_fail_memory(err, LAB_CEILING_WORDS * sizeof *in);
        goto end;
    }
    lab_ceiling_input(row, in);
    lab_args args = {.in = l->in, .out = l->out, .clocks = (long long *)l->clocks, .rounds = 1000};
    if (cudaMemcpy(l->in, in, LAB_CEILING_WORDS * sizeof *in, cudaMemcpyHostToDevice) != cudaSuccess) {
        status = lw_fail(err, LW_E_DEVICE, "bench ceilings: %s", cudaGetErrorString(cudaGetLastError()));
        goto end;
    }
    bool right = false;
    LW_TRY_END(check_ceiling(l, row, in, args, &right, err));
    if (!right)
        goto end;
    /* about a millisecond each */
    double seconds;
    args.rounds = 20;
    LW_TRY_END(timed(l, row->kernel, blocks, LAB_THREADS, &args, false, &seconds, err));
    LW_TRY_END(timed(l, row->kernel, blocks, LAB_THREADS, &args, false, &seconds, err));
    double rounds = 20 * (b->quick || !show ? 0.5e-3 : 2e-3) / (seconds > 1e-6 ? seconds : 1e-6);
    args.rounds = rounds < 50 ? 50 : rounds > 20000 ? 20000 : (uint32_t)rounds;
    double operations = row->operations * LAB_THREADS * args.rounds;
    for (int k = 0; k < repeats; k++) {
        LW_TRY_END(timed(l, row->kernel, blocks, LAB_THREADS, &args, false, &seconds, err));
        if (cudaMemcpy(clocks, l->clocks, 2 * sizeof *clocks * blocks, cudaMemcpyDeviceToHost) !=
            cudaSuccess) {
            status = lw_fail(err, LW_E_DEVICE, "bench ceilings: %s", cudaGetErrorString(cudaGetLastError()));
            goto end;
        }
        for (unsigned i = 0; i < blocks; i++)
            block_clocks[i] = (double)(clocks[2 * i + 1] - clocks[2 * i]);
        per_clock[k] = operations / median(block_clocks, (int)blocks);
        per_second[k] = operations * blocks / seconds * 1e-12;
    }
    double clock_rate = median(per_clock, repeats);
    if (show) {
        bench_result about = {
            .domain = "ceilings", .backend = "cuda", .verified = true, .per_clock = clock_rate};
        snprintf(about.name, sizeof about.name, "%s", row->name);
        snprintf(about.unit, sizeof about.unit, "T%s/s", row->unit);
        snprintf(about.shape, sizeof about.shape, "%d threads a multiprocessor, %d chains", LAB_THREADS,
                 LAB_CHAINS);
        describe(l, row->kernel, &about);
        /* compiled to something else than what the row is named after: said, not hidden */
        const char *codes = codes_of(l, row->kernel);
        if (codes && row->opcode && l->cc == 90 && opcodes_count(codes, row->opcode) < row->count)
            about.verified = false;
        status = bench_add(b, &about, per_second, repeats, err);
        if (status == LW_OK && !about.verified)
            status = bench_find(b, row->name, "", err, "the compiler made %d %s where %d were asked for",
                                opcodes_count(codes, row->opcode), row->opcode, row->count);
    }
    qsort(per_second, (size_t)repeats, sizeof *per_second, by_size);
    bench_ceiling_add(b, row->name, clock_rate, per_second[repeats / 2] * 1e12);
end:
    free(in), free(clocks), free(block_clocks);
    return status;
}

/* Bytes a second of copying (both directions counted) by a kernel or by the runtime, and of reading. */
static lw_status bandwidths(lab *l, bool show, lw_error *err)
{
    static const char *const names[] = {"copy", "copy by cudaMemcpy", "read"};
    bench *b = l->b;
    size_t free_bytes, total, bytes = (size_t)(b->quick || !show ? 512 : 2048) << 20;
    TRY_CUDA("free memory", cudaMemGetInfo(&free_bytes, &total));
    while (bytes > free_bytes / 4)
        bytes /= 2;
    LW_TRY(lab_memory(l, bytes, 0, bytes, 1, err));
    TRY_CUDA("filling", cudaMemset(l->in, 1, bytes));
    for (int way = 0; way < 3; way++) {
        double rate[MAX_REPEATS], seconds;
        int repeats = show ? repeats_of(b) : 2;
        lab_args args = {.in = l->in, .out = l->out, .n = (uint32_t)(bytes / 16), .a = 0x5a5a5a5a};
        const void *kernel = way == 0 ? lab_copy_kernel : lab_read_kernel;
        for (int k = -1; k < repeats; k++) {
            if (way == 1) {
                float ms;
                TRY_CUDA("an event", cudaEventRecord(l->begin, NULL));
                TRY_CUDA("copying", cudaMemcpyAsync(l->out, l->in, bytes, cudaMemcpyDeviceToDevice, NULL));
                TRY_CUDA("an event", cudaEventRecord(l->end, NULL));
                TRY_CUDA("copying", cudaEventSynchronize(l->end));
                TRY_CUDA("an event", cudaEventElapsedTime(&ms, l->begin, l->end));
                seconds = ms * 1e-3;
            } else
                LW_TRY(timed(l, kernel, (unsigned)l->multiprocessors * 16, 512, &args, true, &seconds, err));
            if (k >= 0)
                rate[k] = (way == 2 ? 1 : 2) * (double)bytes / seconds * 1e-9;
        }
        qsort(rate, (size_t)repeats, sizeof *rate, by_size);
        bench_ceiling_add(b, names[way], 0, rate[repeats / 2] * 1e9);
        if (!show)
            continue;
        bench_result about = {.domain = "ceilings", .backend = "cuda", .verified = true, .unit = "GB/s"};
        snprintf(about.name, sizeof about.name, "%s", names[way]);
        snprintf(about.shape, sizeof about.shape, "%zu MiB", bytes >> 20);
        if (way != 1)
            describe(l, kernel, &about);
        LW_TRY(bench_add(b, &about, rate, repeats, err));
    }
    char value = 0;
    TRY_CUDA("reading back", cudaMemcpy(&value, l->out + bytes / 2, 1, cudaMemcpyDeviceToHost));
    return value == 1 ? LW_OK : lw_fail(err, LW_E_INTERNAL, "bench ceilings: the copy differs");
}

lw_status lab_ceilings(bench *b, bool show, lw_error *err)
{
    lab l;
    lw_status status = lab_open(&l, b, err);
    if (status == LW_OK && show)
        status = read_opcodes(&l, err);
    if (status == LW_OK)
        status = lab_memory(&l, LAB_CEILING_WORDS * 4, 0, (size_t)l.multiprocessors * LAB_THREADS * 4,
                            (unsigned)l.multiprocessors, err);
    for (int i = 0; i < lab_ceilings_count && status == LW_OK; i++) {
        const lab_ceiling *row = &lab_ceilings_table[i];
        if (l.cc >= row->minimum_cc)
            status = one_ceiling(&l, row, show, err);
        else if (show)
            status = bench_skip(b, "ceilings", row->name, "this GPU has no such instruction", err);
    }
    if (status == LW_OK)
        status = bandwidths(&l, show, err);
    lab_close(&l);
    return status;
}

/* --- techniques ----------------------------------------------------------------------------------------- */

typedef struct outcome {
    const lab_variant *variant;
    double seconds; /* median; 0: did not run */
    double error;   /* greatest, where a tolerance is given */
    int64_t wrong;  /* words */
    const char *codes;
} outcome;

/* Compares the output with the reference. */
static void judge(const lab_technique *t, const uint32_t *got, const uint32_t *want, outcome *o)
{
    for (size_t i = 0; i < t->check_words; i++) {
        if (t->tolerance <= 0) {
            o->wrong += got[i] != want[i];
            continue;
        }
        float x, y;
        memcpy(&x, &got[i], 4);
        memcpy(&y, &want[i], 4);
        double error = fabs((double)x - (double)y) / (fabs((double)y) > 1 ? fabs((double)y) : 1);
        o->wrong += !(error <= t->tolerance);
        o->error = error > o->error ? error : o->error;
    }
}

static lw_status run_variant(lab *l, const lab_technique *t, const lab_variant *v, const uint32_t *host_in,
                             const uint32_t *host_in2, uint32_t *got, uint32_t *want, outcome *o,
                             lw_error *err)
{
    bench *b = l->b;
    unsigned blocks = t->blocks   ? t->blocks
                      : t->per_sm ? t->per_sm * (unsigned)l->multiprocessors
                                  : (t->n + v->threads - 1) / v->threads;
    lab_args args = {.in = l->in,
                     .in2 = l->in2,
                     .out = l->out,
                     .n = t->n,
                     .rounds = t->check_rounds,
                     .a = v->a,
                     .b = v->b,
                     .c = v->c,
                     .f = v->f};
    o->variant = v;
    TRY_CUDA("clearing", cudaMemset(l->out, 0, t->out_bytes));
    LW_TRY(launch(v->kernel, blocks, v->threads, &args, err));
    TRY_CUDA(v->name, cudaMemcpy(got, l->out, t->check_words * 4, cudaMemcpyDeviceToHost));
    lab_args host = args;
    host.in = host_in;
    host.in2 = host_in2;
    memset(want, 0, t->check_words * 4);
    t->reference(&host, v, want);
    judge(t, got, want, o);
    if (o->wrong && !v->fails) {
        bench_wrong(b, "technique %s, %s: %lld of %zu words differ from the reference", t->name, v->name,
                    (long long)o->wrong, t->check_words);
        return LW_OK;
    }
    bench_result about = {.domain = "techniques", .backend = "cuda", .verified = o->wrong == 0};
    snprintf(about.name, sizeof about.name, "%s: %s", t->name, v->name);
    snprintf(about.shape, sizeof about.shape, "%s", t->shape);
    snprintf(about.unit, sizeof about.unit, "G%s/s", t->unit);
    describe(l, v->kernel, &about);
    o->codes = codes_of(l, v->kernel);
    if (v->opcode && o->codes && l->cc == 90 && opcodes_count(o->codes, v->opcode) == 0)
        about.verified = false;
    args.rounds = t->rounds;
    double rate[MAX_REPEATS], seconds;
    int repeats = repeats_of(b);
    double work = t->work * t->rounds * (t->blocks || t->per_sm ? (double)blocks * v->threads : (double)t->n);
    for (int k = -1; k < repeats; k++) {
        LW_TRY(timed(l, v->kernel, blocks, v->threads, &args, t->flush, &seconds, err));
        if (k >= 0)
            rate[k] = work / seconds * 1e-9;
    }
    LW_TRY(bench_add(b, &about, rate, repeats, err));
    o->seconds = work * 1e-9 / b->results[b->n - 1].median;
    return LW_OK;
}

/* One sentence: the fastest against each other, what the compiler made alike, what came out wrong. */
static lw_status conclude(bench *b, const lab_technique *t, const outcome *o, int n, lw_error *err)
{
    char text[512] = "";
    size_t used = 0;
    int best = -1;
#define PUT(...)                                                                                             \
    do {                                                                                                     \
        int put_ = snprintf(text + used, sizeof text - used, __VA_ARGS__);                                   \
        used = used + (size_t)put_ < sizeof text ? used + (size_t)put_ : sizeof text - 1;                    \
    } while (0)
    for (int i = 0; i < n; i++)
        if (o[i].seconds > 0 && !o[i].wrong && (best < 0 || o[i].seconds < o[best].seconds))
            best = i;
    if (best < 0)
        return LW_OK;
    PUT("%s is fastest", o[best].variant->name);
    for (int i = 0; i < n; i++)
        if (i != best && o[i].seconds > 0 && !o[i].wrong)
            PUT(", %.2f x %s", o[i].seconds / o[best].seconds, o[i].variant->name);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (o[i].codes && o[k].codes && o[i].variant->kernel != o[k].variant->kernel &&
                strcmp(o[i].codes, o[k].codes) == 0)
                PUT("; the compiler made the same instructions of %s and %s", o[k].variant->name,
                    o[i].variant->name);
    for (int i = 0; i < n; i++) {
        const lab_variant *v = o[i].variant;
        if (v && o[i].codes && v->opcode && opcodes_count(o[i].codes, v->opcode) == 0)
            PUT("; there is no %s in %s on this card", v->opcode, v->name);
        if (o[i].wrong && v->fails)
            PUT("; %s is wrong in %lld of %zu results, as it must be expected", v->name,
                (long long)o[i].wrong, t->check_words);
        else if (v && v->fails)
            PUT("; %s happened to be right this time", v->name);
    }
#undef PUT
    return bench_find(b, t->name, t->where, err, "%s", text);
}

static lw_status run_technique(lab *l, const lab_technique *t, lw_error *err)
{
    outcome outcomes[MAX_VARIANTS] = {{0}};
    lw_status status = LW_OK;
    uint32_t *in = malloc(t->in_bytes + 4), *in2 = malloc(t->in2_bytes + 4);
    uint32_t *got = malloc(t->check_words * 4), *want = malloc(t->check_words * 4);
    if (!in || !in2 || !got || !want) {
        status = lw_fail_memory(err, t->in_bytes);
        goto end;
    }
    for (size_t i = 0; i < t->in_bytes / 4; i++)
        in[i] = lab_hash((uint32_t)i + 1);
    for (size_t i = 0; i < t->in2_bytes / 4; i++)
        in2[i] = lab_hash((uint32_t)i + 0x40000000);
    if (t->fill)
        t->fill(in, in2);
    LW_TRY_END(lab_memory(l, t->in_bytes, t->in2_bytes, t->out_bytes, 0, err));
    if (cudaMemcpy(l->in, in, t->in_bytes, cudaMemcpyHostToDevice) != cudaSuccess ||
        (t->in2_bytes && cudaMemcpy(l->in2, in2, t->in2_bytes, cudaMemcpyHostToDevice) != cudaSuccess)) {
        status = lw_fail(err, LW_E_DEVICE, "bench techniques: %s", cudaGetErrorString(cudaGetLastError()));
        goto end;
    }
    for (int i = 0; i < t->n_variants && i < MAX_VARIANTS; i++) {
        if (l->cc < t->variants[i].minimum_cc) {
            char what[128];
            snprintf(what, sizeof what, "%s: %s", t->name, t->variants[i].name);
            LW_TRY_END(bench_skip(l->b, "techniques", what, "this GPU has no such instruction", err));
            continue;
        }
        LW_TRY_END(run_variant(l, t, &t->variants[i], in, in2, got, want, &outcomes[i], err));
    }
    status = conclude(l->b, t, outcomes, t->n_variants < MAX_VARIANTS ? t->n_variants : MAX_VARIANTS, err);
end:
    free(in), free(in2), free(got), free(want);
    return status;
}

/* --- one source, four builds ---------------------------------------------------------------------------- */

static const lab_build *const builds[] = {&lab_build_default, &lab_build_ftz, &lab_build_nofmad,
                                          &lab_build_fast};
enum { BUILDS = sizeof builds / sizeof *builds };

/* Runs a kernel on copies of in (and in2), brings n floats back. */
static lw_status small_run(lab *l, const void *kernel, const float *in, const float *in2, size_t n_in,
                           float *out, size_t n_out, unsigned threads, lw_error *err)
{
    LW_TRY(lab_memory(l, n_in * 4, n_in * 4, n_out * 4, 1, err));
    lab_args args = {.in = l->in, .in2 = l->in2, .out = l->out, .n = (uint32_t)n_out, .rounds = 1};
    TRY_CUDA("copying", cudaMemcpy(l->in, in, n_in * 4, cudaMemcpyHostToDevice));
    if (in2)
        TRY_CUDA("copying", cudaMemcpy(l->in2, in2, n_in * 4, cudaMemcpyHostToDevice));
    LW_TRY(launch(kernel, 1, threads, &args, err));
    TRY_CUDA("a kernel of the bench", cudaMemcpy(out, l->out, n_out * 4, cudaMemcpyDeviceToHost));
    return LW_OK;
}

/* x = 1 + 2^-k, y = -(1 + 2^(1-k)): x * x + y is 2^-2k exactly; rounding the product first gives 0. */
static lw_status residuals(lab *l, const lab_build *build, lw_error *err)
{
    float x[LAB_RESIDUALS], y[LAB_RESIDUALS], r[LAB_RESIDUALS];
    for (int i = 0; i < LAB_RESIDUALS; i++) {
        x[i] = 1 + ldexpf(1, -(12 + i));
        y[i] = -(1 + ldexpf(1, 1 - (12 + i)));
    }
    LW_TRY(small_run(l, build->residual, x, y, LAB_RESIDUALS, r, LAB_RESIDUALS, LAB_RESIDUALS, err));
    double least = 2, most = 0;
    for (int i = 0; i < LAB_RESIDUALS; i++) {
        double want = ldexp(1, -2 * (12 + i)), error = fabs(r[i] - want) / want;
        least = error < least ? error : least;
        most = error > most ? error : most;
    }
    char name[64];
    snprintf(name, sizeof name, "residual x*x + y, build %s", build->name);
    return bench_find(l->b, name, "src/common/numerics.cuh", err,
                      "k = 12 to 23: the relative error is between %g and %g (0: one rounding; 1: two)",
                      least, most);
}

static lw_status census(lab *l, const lab_build *build, lw_error *err)
{
    float x[LAB_CENSUS], r[LAB_CENSUS];
    int normal = 0, subnormal = 0, zero = 0;
    for (int i = 0; i < LAB_CENSUS; i++)
        x[i] = (float)(-87 - 0.02 * i);
    LW_TRY(small_run(l, build->census, x, NULL, LAB_CENSUS, r, LAB_CENSUS, LAB_CENSUS, err));
    for (int i = 0; i < LAB_CENSUS; i++) {
        normal += r[i] >= 0x1p-126f;
        subnormal += r[i] > 0 && r[i] < 0x1p-126f;
        zero += r[i] == 0;
    }
    char name[64];
    snprintf(name, sizeof name, "tail of expf, build %s", build->name);
    return bench_find(l->b, name, "", err,
                      "of exp(-87) to exp(-107.46) in %d steps, %d are normal, %d subnormal, %d zero",
                      LAB_CENSUS, normal, subnormal, zero);
}

static lw_status probe(lab *l, const lab_build *build, lw_error *err)
{
    float in[LW_PROBE_INPUTS], out[LW_PROBE_OUTPUTS];
    char name[64], text[128];
    lw_numerics_input(in);
    LW_TRY(small_run(l, build->probe, in, NULL, LW_PROBE_INPUTS, out, LW_PROBE_OUTPUTS, 1, err));
    lw_numerics n = lw_numerics_judge(in, out);
    lw_numerics_text(&n, text, sizeof text);
    snprintf(name, sizeof name, "fingerprint, build %s", build->name);
    return bench_find(l->b, name, "src/common/numerics_cuda.cu, printed by lanewise devices", err, "%s",
                      text);
}

/* Rows of normally distributed numbers. */
static void softmax_input(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (uint32_t k = 0; k < 4; k++)
            sum += (float)(lab_hash((uint32_t)i * 4 + k) >> 8) * 0x1p-24f;
        x[i] = (sum - 2) * 1.7320508f * 3; /* about normal, deviation 3 */
    }
}

/* Against double precision: greatest absolute error, and greatest of what is above 1e-30 relative to itself.
 */
static void softmax_error(const float *x, const float *y, size_t rows, double *absolute, double *relative)
{
    static double e[LAB_ROW];
    *absolute = *relative = 0;
    for (size_t r = 0; r < rows; r++, x += LAB_ROW, y += LAB_ROW) {
        double most = x[0], sum = 0;
        for (int i = 1; i < LAB_ROW; i++)
            most = x[i] > most ? x[i] : most;
        for (int i = 0; i < LAB_ROW; i++)
            sum += e[i] = exp((double)x[i] - most);
        for (int i = 0; i < LAB_ROW; i++) {
            double want = e[i] / sum, error = fabs(y[i] - want);
            *absolute = error > *absolute ? error : *absolute;
            if (want > 1e-30 && error / want > *relative)
                *relative = error / want;
        }
    }
}

typedef struct softmax_outcome {
    double memory, compute; /* seconds */
    double absolute, relative;
} softmax_outcome;

static lw_status softmax(lab *l, const lab_build *build, int way, softmax_outcome *o, lw_error *err)
{
    enum { CHECKED = 64, REPEATED = 64 }; /* rows compared; passes over a row in the compute-bound case */
    bench *b = l->b;
    size_t rows = b->quick ? 16384 : 65536, bytes = rows * LAB_ROW * 4;
    float *x = malloc(bytes), *y = malloc(CHECKED * LAB_ROW * 4);
    lw_status status = LW_OK;
    if (!x || !y) {
        free(x), free(y);
        return lw_fail_memory(err, bytes);
    }
    softmax_input(x, CHECKED * LAB_ROW);
    for (size_t at = CHECKED * LAB_ROW; at < rows * LAB_ROW; at += CHECKED * LAB_ROW)
        memcpy(x + at, x, CHECKED * LAB_ROW * 4);
    LW_TRY_END(lab_memory(l, bytes, 0, bytes, 1, err));
    lab_args args = {.in = l->in, .out = l->out, .n = (uint32_t)rows, .rounds = 1};
    if (cudaMemcpy(l->in, x, bytes, cudaMemcpyHostToDevice) != cudaSuccess) {
        status = lw_fail(err, LW_E_DEVICE, "bench softmax: %s", cudaGetErrorString(cudaGetLastError()));
        goto end;
    }
    LW_TRY_END(launch(build->softmax[way], (unsigned)rows / 8, 256, &args, err));
    if (cudaMemcpy(y, l->out, CHECKED * LAB_ROW * 4, cudaMemcpyDeviceToHost) != cudaSuccess) {
        status = lw_fail(err, LW_E_DEVICE, "bench softmax: %s", cudaGetErrorString(cudaGetLastError()));
        goto end;
    }
    softmax_error(x, y, CHECKED, &o->absolute, &o->relative);
    if (!(o->absolute < 1e-5)) {
        bench_wrong(b, "technique softmax %s, build %s: error %g", lab_softmax_names[way], build->name,
                    o->absolute);
        goto end;
    }
    for (int compute = 0; compute < 2; compute++) {
        double rate[MAX_REPEATS], seconds;
        int repeats = repeats_of(b);
        bench_result about = {.domain = "techniques", .backend = "cuda", .verified = true};
        snprintf(about.name, sizeof about.name, "softmax %s", lab_softmax_names[way]);
        snprintf(about.shape, sizeof about.shape, "%zu x %d, %s, build %s", compute ? rows / 8 : rows,
                 LAB_ROW, compute ? "64 passes in registers" : "one pass", build->name);
        snprintf(about.unit, sizeof about.unit, "%s", compute ? "Gelements/s" : "GB/s");
        describe(l, build->softmax[way], &about);
        args.rounds = compute ? REPEATED : 1;
        args.n = (uint32_t)(compute ? rows / 8 : rows);
        for (int k = -1; k < repeats; k++) {
            LW_TRY_END(timed(l, build->softmax[way], args.n / 8, 256, &args, !compute, &seconds, err));
            if (k >= 0)
                rate[k] =
                    (compute ? (double)args.n * LAB_ROW * REPEATED : 2.0 * (double)bytes) / seconds * 1e-9;
        }
        LW_TRY_END(bench_add(b, &about, rate, repeats, err));
        *(compute ? &o->compute : &o->memory) = 1 / b->results[b->n - 1].median;
    }
end:
    free(x), free(y);
    return status;
}

static lw_status softmaxes(lab *l, lw_error *err)
{
    softmax_outcome o[BUILDS][LAB_SOFTMAX_WAYS] = {{{0}}};
    for (int k = 0; k < BUILDS; k++) {
        LW_TRY(probe(l, builds[k], err));
        LW_TRY(residuals(l, builds[k], err));
        LW_TRY(census(l, builds[k], err));
        for (int way = 0; way < LAB_SOFTMAX_WAYS; way++)
            LW_TRY(softmax(l, builds[k], way, &o[k][way], err));
        char name[64];
        snprintf(name, sizeof name, "softmax, build %s", builds[k]->name);
        const softmax_outcome *s = o[k];
        LW_TRY(bench_find(
            l->b, name, "", err,
            "greatest error of %s, %s, %s, %s, %s: %.2e, %.2e, %.2e, %.2e, %.2e (relative %.1e, %.1e, %.1e, "
            "%.1e, "
            "%.1e); against the first, the last is %.2f x as fast from memory and %.2f x in registers",
            lab_softmax_names[0], lab_softmax_names[1], lab_softmax_names[2], lab_softmax_names[3],
            lab_softmax_names[4], s[0].absolute, s[1].absolute, s[2].absolute, s[3].absolute, s[4].absolute,
            s[0].relative, s[1].relative, s[2].relative, s[3].relative, s[4].relative,
            s[0].memory / s[4].memory, s[0].compute / s[4].compute));
    }
    return bench_find(l->b, "fast math and softmax", "", err,
                      "-use_fast_math against the default build of the same source (%s): %.2f x as fast from "
                      "memory, %.2f x in registers, %.1f x the error",
                      lab_softmax_names[0], o[0][0].memory / o[3][0].memory,
                      o[0][0].compute / o[3][0].compute, o[3][0].relative / o[0][0].relative);
}

/* --- errors of the fast functions ----------------------------------------------------------------------- */

static lw_status function_errors(lab *l, lw_error *err)
{
    for (int i = 0; i < LAB_FUNCTIONS; i++) {
        const lab_function *f = &lab_functions[i];
        float worst[2][2]; /* fast, precise; in the last place, absolute */
        for (int precise = 0; precise < 2; precise++) {
            LW_TRY(lab_memory(l, 0, 0, sizeof worst[0], 1, err));
            lab_args args = {.out = l->out, .n = l->b->quick ? 1u << 22 : 1u << 26};
            memcpy(&args.a, &f->low, 4);
            memcpy(&args.b, &f->high, 4);
            TRY_CUDA("clearing", cudaMemset(l->out, 0, sizeof worst[0]));
            LW_TRY(launch(f->census[precise], (unsigned)l->multiprocessors * 8, 256, &args, err));
            TRY_CUDA("a kernel of the bench",
                     cudaMemcpy(worst[precise], l->out, sizeof worst[0], cudaMemcpyDeviceToHost));
        }
        char name[64];
        snprintf(name, sizeof name, "%s against %s", f->fast, f->precise);
        LW_TRY(bench_find(
            l->b, name, i == 1 ? "src/infer/infer_cuda_rows.cu" : "", err,
            "greatest errors over %s, %d M samples against float64: %.4g and %.3g in the last place, "
            "%.2g and %.2g absolute",
            f->range, l->b->quick ? 4 : 64, (double)worst[0][0], (double)worst[1][0], (double)worst[0][1],
            (double)worst[1][1]));
    }
    return LW_OK;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

lw_status lab_techniques(bench *b, lw_error *err)
{
    const lab_list *const lists[] = {&lab_integer, &lab_warp, &lab_float};
    lab l;
    lw_status status = lab_open(&l, b, err);
    if (status == LW_OK)
        status = read_opcodes(&l, err);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (int i = 0; i < lists[k]->n && status == LW_OK; i++) {
            lw_say(b->host, LW_SAY_DETAIL, "technique: %s", lists[k]->technique[i].name);
            status = run_technique(&l, &lists[k]->technique[i], err);
        }
    if (status == LW_OK)
        status = function_errors(&l, err);
    if (status == LW_OK)
        status = softmaxes(&l, err);
    lab_close(&l);
    return status;
}
