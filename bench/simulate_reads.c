/* simulate_reads.c - makes reads with errors from a reference, the same bytes for the same seed.
 *
 *   simulate-reads REF.fa N LENGTH ERRORS SEED > reads.fq
 *
 * Positions and strands are uniform. ERRORS is the fraction of letters hit by an error: 80 % substitutions,
 * 10 % insertions, 10 % deletions of one letter. Qualities are binned and random. A read's name holds its
 * truth: r<number>_<contig>_<0-based start>_<strand>. REF may be "random:LENGTH" for a random reference,
 * which is then written to the file random-LENGTH.fa. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static uint64_t random_state[2];

/* xoroshiro128+ (Blackman and Vigna, 2018) */
static uint64_t next_random(void)
{
    uint64_t a = random_state[0], b = random_state[1], sum = a + b;
    b ^= a;
    random_state[0] = ((a << 24) | (a >> 40)) ^ b ^ (b << 16);
    random_state[1] = (b << 37) | (b >> 27);
    return sum;
}

static double next_fraction(void)
{
    return (double)(next_random() >> 11) * 0x1p-53;
}

static int64_t below(int64_t n)
{
    return (int64_t)(next_fraction() * (double)n);
}

typedef struct contig {
    char name[64];
    int64_t start, length;
} contig;

typedef struct reference {
    char *letters;
    int64_t length, capacity;
    contig *contigs;
    int64_t n;
} reference;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "simulate-reads: %s %s\n", what, which);
    exit(1);
}

static void *grow(void *p, size_t bytes)
{
    p = realloc(p, bytes);
    if (!p)
        die("out of memory for", "the reference");
    return p;
}

static void add_letter(reference *ref, char c)
{
    if (ref->length == ref->capacity)
        ref->letters = grow(ref->letters, (size_t)(ref->capacity = 2 * ref->capacity + 4096));
    ref->letters[ref->length++] = c;
    ref->contigs[ref->n - 1].length++;
}

static void add_contig(reference *ref, const char *name)
{
    ref->contigs = grow(ref->contigs, (size_t)(ref->n + 1) * sizeof *ref->contigs);
    contig *c = &ref->contigs[ref->n++];
    snprintf(c->name, sizeof c->name, "%.*s", (int)strcspn(name, " \t\r\n"), name);
    c->start = ref->length;
    c->length = 0;
}

static void read_reference(reference *ref, const char *path)
{
    gzFile file = gzopen(path, "rb");
    char line[65536];
    if (!file)
        die("cannot open", path);
    while (gzgets(file, line, sizeof line)) {
        if (line[0] == '>')
            add_contig(ref, line + 1);
        else if (ref->n == 0)
            die("no FASTA header at the start of", path);
        else
            for (const char *p = line; *p; p++)
                if (isalpha((unsigned char)*p))
                    add_letter(ref, (char)toupper((unsigned char)*p));
    }
    gzclose(file);
}

static void random_reference(reference *ref, int64_t length)
{
    char path[64];
    snprintf(path, sizeof path, "random-%" PRId64 ".fa", length);
    add_contig(ref, "random");
    for (int64_t i = 0; i < length; i++)
        add_letter(ref, "ACGT"[next_random() >> 62]);
    FILE *file = fopen(path, "w");
    if (!file)
        die("cannot write", path);
    fprintf(file, ">random\n");
    for (int64_t i = 0; i < length; i += 70)
        fprintf(file, "%.*s\n", (int)(length - i < 70 ? length - i : 70), ref->letters + i);
    if (fclose(file) != 0)
        die("cannot write", path);
}

static char complement(char c)
{
    const char *from = "ACGTN", *at = strchr(from, c);
    return at && c ? "TGCAN"[at - from] : 'N';
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr,
                "Usage: simulate-reads REF.fa|random:LENGTH N READ_LENGTH ERROR_FRACTION SEED > reads.fq\n");
        return 2;
    }
    int64_t n = strtoll(argv[2], NULL, 10), length = strtoll(argv[3], NULL, 10);
    double errors = strtod(argv[4], NULL);
    random_state[0] = strtoull(argv[5], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    random_state[1] = random_state[0] ^ UINT64_C(0xbf58476d1ce4e5b9);
    for (int i = 0; i < 16; i++)
        next_random();
    reference ref = {0};
    if (strncmp(argv[1], "random:", 7) == 0)
        random_reference(&ref, strtoll(argv[1] + 7, NULL, 10));
    else
        read_reference(&ref, argv[1]);
    if (n < 0 || length < 1 || ref.length < 2 * length)
        die("the reference is too short for such reads:", argv[1]);

    char *read = grow(NULL, (size_t)length + 1), *quality = grow(NULL, (size_t)length + 1);
    read[length] = quality[length] = '\0';
    static char buffer[1 << 20];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (int64_t k = 0; k < n; k++) {
        const contig *c;
        int64_t at;
        do { /* a place where the read and some deletions fit into one contig */
            at = below(ref.length);
            int64_t low = 0, high = ref.n - 1;
            while (low < high) {
                int64_t middle = (low + high + 1) / 2;
                if (ref.contigs[middle].start <= at)
                    low = middle;
                else
                    high = middle - 1;
            }
            c = &ref.contigs[low];
        } while (at + 2 * length > c->start + c->length);
        const char *source = ref.letters + at;
        for (int64_t i = 0, j = 0; i < length; i++) {
            double u = next_fraction();
            if (u >= errors) {
                read[i] = source[j++];
            } else if (u < 0.8 * errors) {
                char other;
                do
                    other = "ACGT"[next_random() >> 62];
                while (other == source[j]);
                read[i] = other;
                j++;
            } else if (u < 0.9 * errors || j >= 2 * length - 1) {
                read[i] = "ACGT"[next_random() >> 62];
            } else {
                j++;
                read[i] = source[j++];
            }
        }
        for (int64_t i = 0; i < length; i++) { /* four bins, as recent Illumina machines write them */
            unsigned u = (unsigned)(next_random() >> 57);
            quality[i] = u < 116 ? 'F' : u < 123 ? ':' : u < 127 ? ',' : '#';
        }
        bool reverse = next_random() >> 63;
        for (int64_t i = 0, j = length - 1; reverse && i <= j; i++, j--) {
            char first = complement(read[j]);
            read[j] = complement(read[i]);
            read[i] = first;
        }
        printf("@r%" PRId64 "_%s_%" PRId64 "_%c\n%s\n+\n%s\n", k, c->name, at - c->start, reverse ? '-' : '+',
               read, quality);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "simulate-reads: cannot write: %s\n", strerror(errno));
        return 1;
    }
    free(read);
    free(quality);
    free(ref.letters);
    free(ref.contigs);
    return 0;
}
