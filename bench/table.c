/* table.c - what `lanewise bench` prints: the machine, a table for each domain, what was found, what was left
 * out. Columns are as wide as what stands in them, and those that would be empty are not there. */
#include "bench.h"

#include <string.h>

#include "common/cpu.h"
#include "common/device.h"

enum {
    WHAT,
    BACKEND,
    SHAPE,
    MEDIAN,
    LEAST,
    MOST,
    UNIT,
    PER_CLOCK,
    SHARE,
    PER_WATT,
    PEER,
    ERROR,
    REGISTERS,
    REMARK,
    OPCODES,
    COLUMNS
};

enum { CELL = 176 };

typedef struct column {
    const char *head;
    bool right; /* numbers */
} column;

static const column columns[COLUMNS] = {[WHAT] = {"what", false},
                                        [BACKEND] = {"backend", false},
                                        [SHAPE] = {"shape", false},
                                        [MEDIAN] = {"median", true},
                                        [LEAST] = {"min", true},
                                        [MOST] = {"max", true},
                                        [UNIT] = {"unit", false},
                                        [PER_CLOCK] = {"/clock/SM", true},
                                        [SHARE] = {"of ceiling", false},
                                        [PER_WATT] = {"/watt", true},
                                        [PEER] = {"beside peer", false},
                                        [ERROR] = {"error below", true},
                                        [REGISTERS] = {"registers", false},
                                        [REMARK] = {"remark", false},
                                        [OPCODES] = {"instructions", false}};

/* Rows that are printed together, and what their names and shapes begin with or are, said once above them. */
typedef struct block {
    const bench *b;
    int first, last;
    size_t skip; /* of the names */
    bool with_shape;
} block;

void bench_number(char *text, size_t size, double x)
{
    if (x <= 0)
        snprintf(text, size, "%g", x);
    else if (x < 0.001 || x >= 1e9)
        snprintf(text, size, "%.3e", x);
    else
        snprintf(text, size, "%.*f", x >= 1000 ? 0 : x >= 100 ? 1 : x >= 10 ? 2 : x >= 1 ? 3 : 4, x);
}

/* The peer's result with the same shape, if there is one. */
static const bench_result *peer_of(const bench *b, const bench_result *r)
{
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->results[i].backend, "peer") == 0 && strcmp(b->results[i].domain, r->domain) == 0 &&
            strcmp(b->results[i].shape, r->shape) == 0 && strcmp(b->results[i].unit, r->unit) == 0)
            return &b->results[i];
    return NULL;
}

/* The unit with a smaller prefix where less than a tenth of it was reached, and how many of these it is. */
static double readable(const bench_result *r, char *unit)
{
    static const char prefixes[] = "TGMk";
    double scale = 1;
    memcpy(unit, r->unit, sizeof r->unit);
    for (size_t i = 0; i + 2 < sizeof prefixes; i++)
        if (unit[0] == prefixes[i] && r->median * scale < 0.1 && bench_unit_scale(unit) > 0 &&
            strcmp(unit, "TOPS") != 0) {
            unit[0] = prefixes[i + 1];
            scale *= 1000;
        }
    if (strcmp(unit, "TOPS") == 0 && r->median < 0.1) {
        unit[0] = 'G';
        scale = 1000;
    }
    return scale;
}

static void cell(const block *k, const bench_result *r, int which, char *text)
{
    const bench_result *peer;
    char unit[sizeof r->unit];
    double scale = readable(r, unit);
    *text = '\0';
    switch (which) {
    case WHAT:
        snprintf(text, CELL, "%s", r->name + k->skip);
        break;
    case BACKEND:
        snprintf(text, CELL, "%s", r->backend);
        break;
    case SHAPE:
        if (k->with_shape)
            snprintf(text, CELL, "%s", r->shape);
        break;
    case MEDIAN:
        bench_number(text, CELL, r->median * scale);
        break;
    case LEAST:
        if (r->repeats > 1)
            bench_number(text, CELL, r->minimum * scale);
        break;
    case MOST:
        if (r->repeats > 1)
            bench_number(text, CELL, r->maximum * scale);
        break;
    case UNIT:
        snprintf(text, CELL, "%s", unit);
        break;
    case PER_CLOCK:
        if (r->per_clock > 0)
            bench_number(text, CELL, r->per_clock);
        break;
    case SHARE:
        if (r->share > 0)
            snprintf(text, CELL, "%4.*f %% %s", r->share < 0.1 ? 1 : 0, 100 * r->share, r->limit);
        break;
    case PER_WATT:
        if (r->per_watt > 0)
            bench_number(text, CELL, r->per_watt * scale);
        break;
    case PEER:
        peer = peer_of(k->b, r);
        if (peer && peer != r && peer->median > 0)
            snprintf(text, CELL, "%.2f x", r->median / peer->median);
        break;
    case ERROR:
        if (r->error > 0)
            snprintf(text, CELL, "%.1e", r->error);
        break;
    case REGISTERS:
        if (r->registers > 0 && r->local_bytes > 0)
            snprintf(text, CELL, "%d, %d bytes spilled", r->registers, r->local_bytes);
        else if (r->registers > 0)
            snprintf(text, CELL, "%d", r->registers);
        break;
    case REMARK:
        if (!r->verified)
            snprintf(text, CELL, "see below");
        else if (r->in_cache)
            snprintf(text, CELL, "in the L2 cache");
        break;
    default:
        snprintf(text, CELL, "%s", r->opcodes);
        break;
    }
}

/* Characters of UTF-8. */
static int characters(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void print_block(const block *k, const char *indent, FILE *to)
{
    int width[COLUMNS] = {0};
    char text[CELL];
    for (int c = 0; c < COLUMNS; c++) {
        for (int i = k->first; i < k->last; i++) {
            cell(k, &k->b->results[i], c, text);
            int n = characters(text);
            width[c] = n > width[c] ? n : width[c];
        }
        if (width[c] && characters(columns[c].head) > width[c])
            width[c] = characters(columns[c].head);
    }
    for (int i = k->first - 1; i < k->last; i++) {
        fputs(indent, to);
        int blanks = 0; /* before the next text: none are written behind the last one */
        for (int c = 0; c < COLUMNS; c++) {
            if (!width[c])
                continue;
            if (i < k->first)
                snprintf(text, sizeof text, "%s", columns[c].head);
            else
                cell(k, &k->b->results[i], c, text);
            int room = width[c] - characters(text);
            blanks += 2 + (columns[c].right ? room : 0);
            if (*text) {
                fprintf(to, "%*s%s", blanks, "", text);
                blanks = columns[c].right ? 0 : room;
            } else {
                blanks += columns[c].right ? 0 : room;
            }
        }
        putc('\n', to);
    }
}

static void print_finding(const bench_finding *f, bool with_name, FILE *to)
{
    fprintf(to, "  %s%s%s", with_name ? f->technique : "  =>", with_name ? ": " : " ", f->sentence);
    if (f->where[0])
        fprintf(to, " [%s]", f->where);
    putc('\n', to);
}

/* Bytes of a technique's name in "technique: variant", and of what parts them; 0: it has none. */
static size_t technique_of(const bench_result *r)
{
    const char *colon = strstr(r->name, ": ");
    return strcmp(r->domain, "techniques") == 0 && colon ? (size_t)(colon - r->name) + 2 : 0;
}

static bool same_technique(const bench_result *a, const bench_result *b)
{
    size_t n = technique_of(a);
    return n && n == technique_of(b) && strncmp(a->name, b->name, n) == 0 &&
           strcmp(a->shape, b->shape) == 0 && strcmp(a->backend, b->backend) == 0;
}

static const bench_finding *finding_of(const bench *b, const bench_result *r)
{
    size_t n = technique_of(r);
    for (int i = 0; i < b->n_findings && n && strncmp(r->backend, "cuda", 4) == 0; i++)
        if (strlen(b->findings[i].technique) == n - 2 &&
            strncmp(b->findings[i].technique, r->name, n - 2) == 0)
            return &b->findings[i];
    return NULL;
}

/* The variants of one technique, and what they showed. Returns the index behind them. */
static int print_technique(const bench *b, int first, FILE *to)
{
    const bench_result *r = &b->results[first];
    block k = {b, first, first, technique_of(r), false};
    while (k.last < b->n && same_technique(r, &b->results[k.last]))
        k.last++;
    fprintf(to, "\n  %.*s (%s)\n", (int)k.skip - 2, r->name, r->shape);
    print_block(&k, "  ", to);
    const bench_finding *f = finding_of(b, r);
    if (f)
        print_finding(f, false, to);
    return k.last;
}

static void print_domain(const bench *b, const bench_domain *d, FILE *to)
{
    bool begun = false;
    for (int i = 0; i < b->n;) {
        const bench_result *r = &b->results[i];
        if (strcmp(r->domain, d->name) != 0) {
            i++;
            continue;
        }
        if (!begun)
            fprintf(to, "\n%s: %s\n", d->name, d->what);
        begun = true;
        if (technique_of(r)) {
            i = print_technique(b, i, to);
            continue;
        }
        block k = {b, i, i, 0, true};
        while (k.last < b->n && strcmp(b->results[k.last].domain, d->name) == 0 &&
               !technique_of(&b->results[k.last]))
            k.last++;
        putc('\n', to);
        print_block(&k, "", to);
        i = k.last;
    }
}

static void print_machine(const bench *b, FILE *to)
{
    unsigned usable = 0;
    lw_isa_usable(&usable, NULL);
    fprintf(to, "lanewise %s bench\n", lw_version());
    fprintf(to, "  CPU  %d threads;", lw_pool_threads(b->pool));
    for (int isa = 0; isa < LW_ISA_COUNT; isa++)
        if (usable >> isa & 1)
            fprintf(to, " %s", lw_isa_name((lw_isa)isa));
    putc('\n', to);
    lw_device d;
    if (!b->device_name[0] || lw_device_query(b->device, &d, NULL) != LW_OK)
        return;
    int driver, runtime;
    lw_device_versions(&driver, &runtime);
    fprintf(to, "  GPU  %s, compute capability %d.%d, %d multiprocessors, CUDA %d.%d%s%s\n", b->device_name,
            d.major, d.minor, d.multiprocessors, runtime / 1000, runtime % 1000 / 10,
            b->sensor.driver[0] ? ", driver " : "", b->sensor.driver);
    if (b->first.mhz > 0)
        fprintf(to, "       %.0f MHz, %.0f W, %.0f C before; %.0f MHz, %.0f W, %.0f C at the end\n",
                b->first.mhz, b->first.watts, b->first.celsius, b->last.mhz, b->last.watts, b->last.celsius);
    fprintf(to, "       float32 of its kernels: %s\n", b->numerics);
}

static bool same_skip(const bench_skipped *a, const bench_skipped *b)
{
    return strcmp(a->domain, b->domain) == 0 && strcmp(a->reason, b->reason) == 0;
}

/* What a domain leaves out for one reason in one line. */
static void print_skipped(const bench *b, FILE *to)
{
    for (int i = 0; i < b->n_skipped; i++) {
        const bench_skipped *s = &b->skipped[i];
        bool before = false;
        for (int j = 0; j < i; j++)
            before = before || same_skip(&b->skipped[j], s);
        if (before)
            continue;
        fprintf(to, "  %s, %s", s->domain, s->what);
        for (int j = i + 1; j < b->n_skipped; j++)
            if (same_skip(&b->skipped[j], s))
                fprintf(to, ", %s", b->skipped[j].what);
        fprintf(to, ": %s\n", s->reason);
    }
}

/* Whether print_technique() has shown it. */
static bool was_shown(const bench *b, const bench_finding *f)
{
    for (int i = 0; i < b->n; i++)
        if (finding_of(b, &b->results[i]) == f)
            return true;
    return false;
}

void bench_print(const bench *b, FILE *to)
{
    int n = 0;
    print_machine(b, to);
    if (b->quick)
        fprintf(to,
                "  small inputs (--quick): everything is checked, few rates are as high as they can be\n");
    for (int d = 0; d < bench_domain_count; d++)
        print_domain(b, &bench_domains[d], to);
    for (int i = 0; i < b->n_findings; i++)
        if (!was_shown(b, &b->findings[i])) {
            if (n++ == 0)
                fprintf(to, "\nfound here\n");
            print_finding(&b->findings[i], true, to);
        }
    if (b->n_skipped)
        fprintf(to, "\nskipped\n");
    print_skipped(b, to);
    fprintf(to, "\n%d results in %.0f s, each verified before it was timed", b->n, b->seconds);
    if (b->n_wrong)
        fprintf(to, "; %d more are wrong on this machine and are not shown", b->n_wrong);
    putc('\n', to);
}
