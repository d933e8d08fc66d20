/* bench.c - the table of domains, and the timing and the lists that they share. */
#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cpu.h"
#include "common/device.h"
#include "common/fail.h"
#include "common/fingerprint.h"
#include "lab.h"

const bench_domain bench_domains[] = {
    {"ceilings", "rates of single instructions, bandwidths", bench_ceilings, NULL, NULL, 0, 0},
    {"align", "reads against a reference, and paths", bench_align, lw_align_backend_list,
     "letters of the reference", 1000, 100000000},
    {"apsp", "all-pairs shortest paths of random graphs", bench_paths, lw_paths_backend_list,
     "vertices of the graph", 16, 1000000},
    {"infer", "int8 layers", bench_infer, lw_infer_backend_list, "inputs and outputs of a square layer", 16,
     65536},
    {"search", "queries against a protein database", bench_search, lw_search_backend_list,
     "letters of the database", 10000, 100000000000},
    {"techniques", "kernels that differ in one thing", bench_techniques, NULL, NULL, 0, 0},
};
const int bench_domain_count = (int)(sizeof bench_domains / sizeof *bench_domains);

double bench_now(bool of_thread)
{
    struct timespec t;
    clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Room for one more element of a list. */
static lw_status grow(void **list, int n, int *capacity, size_t size, lw_error *err)
{
    if (n < *capacity)
        return LW_OK;
    int more = 2 * *capacity + 16;
    void *grown = realloc(*list, (size_t)more * size);
    if (!grown)
        return lw_fail_memory(err, (size_t)more * size);
    *list = grown;
    *capacity = more;
    return LW_OK;
}

double bench_unit_scale(const char *unit)
{
    static const struct {
        char letter;
        double scale;
    } prefixes[] = {{'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
    size_t length = strlen(unit);
    bool is_rate = length >= 4 && (strcmp(unit + length - 2, "/s") == 0 ||
                                   strcmp(unit + length - 4, "CUPS") == 0 || strcmp(unit, "TOPS") == 0);
    for (size_t i = 0; is_rate && i < sizeof prefixes / sizeof *prefixes; i++)
        if (unit[0] == prefixes[i].letter)
            return prefixes[i].scale;
    return 0;
}

/* What the sensors and the ceilings say about a result of the GPU. */
static void add_readings(bench *b, bench_result *r)
{
    r->before = b->last;
    r->after = b->last = nvml_read(&b->sensor);
    double mhz = r->before.mhz > 0 ? (r->before.mhz + r->after.mhz) / 2 : r->after.mhz;
    double watts = r->before.watts > 0 ? (r->before.watts + r->after.watts) / 2 : r->after.watts;
    double scale = bench_unit_scale(r->unit);
    if (scale > 0 && mhz > 0 && r->per_clock <= 0 && b->multiprocessors > 0)
        r->per_clock = r->median * scale / (mhz * 1e6 * b->multiprocessors);
    if (scale > 0 && watts > 0)
        r->per_watt = r->median / watts;
}

lw_status bench_add(bench *b, const bench_result *about, double *rates, int n, lw_error *err)
{
    LW_TRY(grow((void **)&b->results, b->n, &b->capacity, sizeof *b->results, err));
    qsort(rates, (size_t)n, sizeof *rates, compare);
    bench_result *r = &b->results[b->n++];
    *r = *about;
    r->repeats = n;
    r->minimum = rates[0];
    r->median = rates[n / 2];
    r->maximum = rates[n - 1];
    if (strncmp(r->backend, "cuda", 4) == 0)
        add_readings(b, r);
    if (bench_unit_scale(r->unit) <= 0) /* no rate: *about may be a rate's copy */
        r->per_clock = r->per_watt = r->share = 0;
    if (!r->in_cache)
        bench_limit(b, r);
    if (b->host->progress)
        b->host->progress(b->host->user, b->n, 0, 0);
    lw_say(b->host, LW_SAY_INFO, "%s, %s, %s: %.5g %s", r->name, r->backend, r->shape, r->median, r->unit);
    return LW_OK;
}

lw_status bench_measure(bench *b, const bench_result *about, double amount,
                        lw_status (*work)(void *arg, lw_error *err), void *arg, lw_error *err)
{
    double *rate = malloc((size_t)b->repeats * sizeof *rate);
    if (!rate)
        return lw_fail_memory(err, (size_t)b->repeats * sizeof *rate);
    lw_status status = work(arg, err);
    if (strncmp(about->backend, "cuda", 4) == 0)
        b->last = nvml_read(&b->sensor);
    for (int k = 0; k < b->repeats && status == LW_OK; k++) {
        double start = bench_now(about->one_thread);
        status = work(arg, err);
        rate[k] = amount / (bench_now(about->one_thread) - start);
        if (lw_stopped(b->host) && status == LW_OK)
            status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    }
    if (status == LW_OK)
        status = bench_add(b, about, rate, b->repeats, err);
    free(rate);
    return status;
}

/* As much of a text as there is room for. */
static void keep_text(char *to, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(to, text, length);
    to[length] = '\0';
}

bool bench_wants(const bench *b, const char *backend)
{
    return strcmp(b->backend, "auto") == 0 || strcmp(b->backend, backend) == 0 ||
           (strcmp(b->backend, "cuda") == 0 && strncmp(backend, "cuda", 4) == 0);
}

lw_status bench_folder(char *path, size_t size, lw_error *err)
{
    const char *where = getenv("TMPDIR");
    if (!where || !*where)
        where = "/tmp";
    if (snprintf(path, size, "%s/lanewise-XXXXXX", where) >= (int)size || !mkdtemp(path))
        return lw_fail(err, LW_E_IO, "%s: a folder for temporary files cannot be made: %s", where,
                       strerror(errno));
    return LW_OK;
}

lw_status bench_skip(bench *b, const char *domain, const char *what, const char *reason, lw_error *err)
{
    LW_TRY(grow((void **)&b->skipped, b->n_skipped, &b->skipped_capacity, sizeof *b->skipped, err));
    bench_skipped *s = &b->skipped[b->n_skipped++];
    keep_text(s->domain, sizeof s->domain, domain);
    keep_text(s->what, sizeof s->what, what);
    keep_text(s->reason, sizeof s->reason, reason);
    return LW_OK;
}

lw_status bench_find(bench *b, const char *technique, const char *where, lw_error *err, const char *format,
                     ...)
{
    LW_TRY(grow((void **)&b->findings, b->n_findings, &b->findings_capacity, sizeof *b->findings, err));
    bench_finding *f = &b->findings[b->n_findings++];
    keep_text(f->technique, sizeof f->technique, technique);
    keep_text(f->where, sizeof f->where, where);
    va_list args;
    va_start(args, format);
    vsnprintf(f->sentence, sizeof f->sentence, format, args);
    va_end(args);
    return LW_OK;
}

void bench_wrong(bench *b, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lw_say(b->host, LW_SAY_ERROR, "%s", text);
    b->n_wrong++;
}

void bench_ceiling_add(bench *b, const char *name, double per_clock, double per_second)
{
    if (b->n_ceilings == BENCH_MAX_CEILINGS)
        return;
    bench_ceiling *c = &b->ceilings[b->n_ceilings++];
    keep_text(c->name, sizeof c->name, name);
    c->per_clock = per_clock;
    c->per_second = per_second;
}

const bench_ceiling *bench_ceiling_find(const bench *b, const char *name)
{
    for (int i = 0; i < b->n_ceilings; i++)
        if (strcmp(b->ceilings[i].name, name) == 0)
            return &b->ceilings[i];
    return NULL;
}

/* Whether a domain has the row that --backend names; `name` may also stand for many. */
static bool has_backend(const bench_domain *d, int device, const char *name)
{
    lw_backend_info rows[16];
    int n = d->list ? d->list(device, rows, 16) : 0;
    bool has = strcmp(name, "auto") == 0 || strcmp(name, "cuda") == 0;
    for (int i = 0; i < n && i < 16; i++)
        has = has || strcmp(name, rows[i].name) == 0;
    return has;
}

/* The rows of a domain's table that cannot run here, with their reasons. */
static lw_status list_unusable(bench *b, const bench_domain *d, lw_error *err)
{
    lw_backend_info rows[16];
    int n = d->list ? d->list(b->device, rows, 16) : 0;
    if (d->list && !has_backend(d, b->device, b->backend))
        LW_TRY(bench_skip(b, d->name, b->backend, "this domain has no such backend", err));
    for (int i = 0; i < n && i < 16; i++)
        if (!rows[i].usable && bench_wants(b, rows[i].name))
            LW_TRY(bench_skip(b, d->name, rows[i].name, rows[i].reason, err));
    return LW_OK;
}

/* Once, or for each of --sizes. */
static lw_status run_domain(bench *b, const bench_domain *d, lw_error *err)
{
    if (!b->n_sizes)
        return d->run(b, err);
    for (int i = 0; i < b->n_sizes; i++) {
        b->size = b->sizes[i];
        LW_TRY(d->run(b, err));
    }
    return LW_OK;
}

static bool wants_gpu(const bench *b)
{
    return strcmp(b->backend, "auto") == 0 || strncmp(b->backend, "cuda", 4) == 0;
}

lw_status bench_run(bench *b, unsigned domains, lw_error *err)
{
    bool known = false;
    double start = bench_now(false);
    for (int d = 0; d < bench_domain_count; d++)
        known = known || has_backend(&bench_domains[d], b->device, b->backend);
    if (!known)
        return lw_fail(err, LW_E_ARG,
                       "unknown backend '%s': auto, cuda, or one that 'lanewise devices' shows", b->backend);
    lw_device device;
    if (b->device_named)
        LW_TRY(lw_device_query(b->device, &device, err));
    if (wants_gpu(b) && lw_device_query(b->device, &device, NULL) == LW_OK) {
        char pci[32];
        snprintf(b->device_name, sizeof b->device_name, "%s", device.name);
        b->multiprocessors = device.multiprocessors;
        if (!lab_pci_address(b->device, pci, sizeof pci) || !nvml_open(&b->sensor, pci))
            LW_TRY(bench_skip(b, "all", "clocks and power",
                              "libnvidia-ml.so.1 does not tell them for this GPU: no figures per clock of "
                              "whole runs and none per watt",
                              err));
        b->first = b->last = nvml_read(&b->sensor);
        LW_TRY(lab_numerics(b->device, b->numerics, sizeof b->numerics, err));
        lw_say(b->host, LW_SAY_INFO, "ceilings of %s", b->device_name);
        LW_TRY(lab_ceilings(b, domains & 1, err)); /* bit 0: bench_domains[0] shows them */
    }
    for (int d = 0; d < bench_domain_count; d++) {
        if (!(domains >> d & 1))
            continue;
        lw_say(b->host, LW_SAY_INFO, "%s: %s", bench_domains[d].name, bench_domains[d].what);
        LW_TRY(run_domain(b, &bench_domains[d], err));
        LW_TRY(list_unusable(b, &bench_domains[d], err));
    }
    b->seconds = bench_now(false) - start;
    if (b->n_wrong)
        return lw_fail(err, LW_E_INTERNAL, "%d results of the bench are wrong on this machine", b->n_wrong);
    return LW_OK;
}

void bench_free(bench *b)
{
    nvml_close(&b->sensor);
    lab_free(b);
    free(b->results), free(b->skipped), free(b->findings);
}

/* --- JSON ----------------------------------------------------------------------------------------------- */

static void put_string(FILE *to, const char *text)
{
    putc('"', to);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else if (*p < ' ')
            fprintf(to, "\\u%04x", *p);
        else
            putc(*p, to);
    putc('"', to);
}

static void put_member(FILE *to, const char *before, const char *name, const char *value)
{
    fprintf(to, "%s\"%s\": ", before, name);
    put_string(to, value);
}

static void put_reading(FILE *to, const char *name, const nvml_reading *r)
{
    fprintf(to, ", \"%s\": {\"mhz\": %.0f, \"memory_mhz\": %.0f, \"watts\": %.1f, \"celsius\": %.0f}", name,
            r->mhz, r->memory_mhz, r->watts, r->celsius);
}

static void put_host(const bench *b, FILE *to)
{
    unsigned usable = 0;
    lw_isa_usable(&usable, NULL);
    put_member(to, "{", "version", lw_version());
    fprintf(to, ", \"threads\": %d, \"isa\": [", lw_pool_threads(b->pool));
    const char *comma = "";
    for (int isa = 0; isa < LW_ISA_COUNT; isa++)
        if (usable >> isa & 1) {
            fprintf(to, "%s\"%s\"", comma, lw_isa_name(isa));
            comma = ", ";
        }
    fprintf(to, "], \"numeric_fingerprint\": \"%016llx\", \"device\": ",
            (unsigned long long)lw_numeric_fingerprint());
    lw_device d;
    if (lw_device_query(b->device, &d, NULL) != LW_OK) {
        fprintf(to, "null}");
        return;
    }
    int driver, runtime;
    lw_device_versions(&driver, &runtime);
    put_string(to, d.name);
    fprintf(to,
            ", \"compute_capability\": \"%d.%d\", \"multiprocessors\": %d, \"clock_khz\": %d, "
            "\"cuda_runtime\": \"%d.%d\"",
            d.major, d.minor, d.multiprocessors, d.clock_khz, runtime / 1000, runtime % 1000 / 10);
    put_member(to, ", ", "driver", b->sensor.driver);
    put_member(to, ", ", "device_numerics", b->numerics);
    fprintf(to, "}");
}

static void put_result(const bench_result *r, FILE *to)
{
    put_member(to, "{", "domain", r->domain);
    put_member(to, ", ", "name", r->name);
    put_member(to, ", ", "backend", r->backend);
    put_member(to, ", ", "shape", r->shape);
    fprintf(to, ", \"verified\": %s", r->verified ? "true" : "false");
    put_member(to, ", ", "unit", r->unit);
    fprintf(to, ", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g, \"repeats\": %d", r->median, r->minimum,
            r->maximum, r->repeats);
    if (r->error > 0)
        fprintf(to, ", \"error\": %.3g", r->error);
    if (r->in_cache)
        fprintf(to, ", \"in_cache\": true");
    if (r->after.mhz > 0) {
        put_reading(to, "before", &r->before);
        put_reading(to, "after", &r->after);
    }
    if (r->per_clock > 0)
        fprintf(to, ", \"per_clock\": %.6g", r->per_clock);
    if (r->per_watt > 0)
        fprintf(to, ", \"per_watt\": %.6g", r->per_watt);
    if (r->share > 0) {
        put_member(to, ", ", "ceiling", r->limit);
        fprintf(to, ", \"share\": %.4f, \"operations_per_byte\": %.4g", r->share, r->intensity);
    }
    if (r->registers > 0) {
        fprintf(to, ", \"registers\": %d, \"local_bytes\": %d", r->registers, r->local_bytes);
        put_member(to, ", ", "opcodes", r->opcodes);
    }
    putc('}', to);
}

void bench_write_json(const bench *b, FILE *to)
{
    fprintf(to, "{\"schema\": \"lanewise-bench-1\",\n \"host\": ");
    put_host(b, to);
    fprintf(to, ",\n \"results\": [");
    for (int i = 0; i < b->n; i++) {
        fprintf(to, "%s\n  ", i ? "," : "");
        put_result(&b->results[i], to);
    }
    fprintf(to, "\n ],\n \"ceilings\": [");
    for (int i = 0; i < b->n_ceilings; i++) {
        put_member(to, i ? ",\n  {" : "\n  {", "name", b->ceilings[i].name);
        fprintf(to, ", \"per_clock\": %.6g, \"per_second\": %.6g}", b->ceilings[i].per_clock,
                b->ceilings[i].per_second);
    }
    fprintf(to, "\n ],\n \"findings\": [");
    for (int i = 0; i < b->n_findings; i++) {
        put_member(to, i ? ",\n  {" : "\n  {", "technique", b->findings[i].technique);
        put_member(to, ", ", "sentence", b->findings[i].sentence);
        put_member(to, ", ", "where", b->findings[i].where);
        putc('}', to);
    }
    fprintf(to, "\n ],\n \"skipped\": [");
    for (int i = 0; i < b->n_skipped; i++) {
        put_member(to, i ? ",\n  {" : "\n  {", "domain", b->skipped[i].domain);
        put_member(to, ", ", "what", b->skipped[i].what);
        put_member(to, ", ", "reason", b->skipped[i].reason);
        putc('}', to);
    }
    fprintf(to, "\n ]}\n");
}
