/* database.c - sequences to be searched: read from FASTA, or mapped from a .lwdb file.
 *
 * A .lwdb file, version 1, little-endian throughout; every section begins at a multiple of 64 bytes, with
 * zero bytes between:
 *
 *     header       512 bytes, see struct header
 *     start        n x int64   of sequence i within `codes`, in the order of `codes`
 *     len          n x int32   letters, descending
 *     order        n x int32   place of sequence i in the file it came from
 *     name_start   n x int64   of the name of the sequence at place i of that file, within `names`
 *     sums         one uint64 per block of 2^20 bytes of names and codes taken as one piece
 *     names        0-terminated
 *     codes        one byte a letter, its position in LW_DATABASE_DNA or LW_DATABASE_PROTEIN
 *
 * The header's sum covers the header, its index sum covers start to sums: both are read at once. The blocks
 * are checked while the search runs, or by lw_database_check(). */
#include "align/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/outfile.h"
#include "common/pool.h"
#include "common/seqio.h"

enum { VERSION = 1, ALIGN = 64, BLOCK = 1 << 20, BYTE_ORDER_MARK = 0x01020304, DUPLICATE_NAMES = 1 };
static const char magic[8] = {'L', 'W', 'D', 'B', '\r', '\n', 0x1a, '\n'};

/* No member needs padding, so that the struct is the file's bytes. */
typedef struct header {
    char magic[8];
    uint32_t version, byte_order;
    uint32_t type;  /* lw_alphabet_type */
    uint32_t flags; /* DUPLICATE_NAMES */
    int64_t n, letters, name_bytes, file_bytes;
    int64_t count[LW_MAX_LETTERS]; /* how often each code occurs */
    uint64_t index_sum;
    char unused[184];
    uint64_t sum; /* of all bytes before it */
} header;
_Static_assert(sizeof(header) == 512, "the header has 512 bytes");

/* Where the sections begin. */
typedef struct layout {
    int64_t start, len, order, name_start, sums, names, codes, end;
    int64_t n_blocks;
} layout;

struct lw_database {
    lw_database_view view;
    lw_alphabet_type type;
    int64_t count[LW_MAX_LETTERS]; /* how often each code occurs */
    bool duplicate_names;
    const int64_t *name_start; /* by place in the user's file */
    const char *names;
    int64_t name_bytes;
    char *path;
    void *map; /* of a database file; NULL: the arrays below are its own */
    int64_t map_bytes;
    uint8_t *own_codes;
    int64_t *own_start, *own_name_start;
    int32_t *own_len, *own_order;
    char *own_names;
};

/* ---- checksum -------------------------------------------------------------------------------------- */

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* Four interleaved chains of xor, rotate and multiply by odd numbers: every step is a bijection of the chain
 * and of the word, so a change of one word always changes the sum; four chains keep the multiplier busy. */
static uint64_t checksum(const void *data, size_t n)
{
    static const uint64_t odd[4] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu,
                                    0xd6e8feb86659fd93u};
    const uint8_t *p = data;
    uint64_t chain[4] = {n, 1, 2, 3};
    for (; n >= 32; n -= 32, p += 32) {
        uint64_t word[4];
        memcpy(word, p, 32);
        for (int k = 0; k < 4; k++)
            chain[k] = rotate((chain[k] ^ word[k]) * odd[k], 29);
    }
    uint64_t rest[4] = {0};
    memcpy(rest, p, n);
    uint64_t sum = 0;
    for (int k = 0; k < 4; k++) {
        chain[k] = rotate((chain[k] ^ rest[k]) * odd[k], 29);
        sum = rotate((sum ^ chain[k]) * odd[k], 31);
    }
    return sum ^ sum >> 32;
}

/* ---- sections -------------------------------------------------------------------------------------- */

static int64_t aligned(int64_t offset)
{
    return (offset + ALIGN - 1) / ALIGN * ALIGN;
}

static layout lay_out(int64_t n, int64_t name_bytes, int64_t letters)
{
    layout l;
    l.start = sizeof(header);
    l.len = aligned(l.start + n * 8);
    l.order = aligned(l.len + n * 4);
    l.name_start = aligned(l.order + n * 4);
    l.sums = aligned(l.name_start + n * 8);
    int64_t data = aligned(name_bytes) + letters;
    l.n_blocks = (data + BLOCK - 1) / BLOCK;
    l.names = aligned(l.sums + l.n_blocks * 8);
    l.codes = aligned(l.names + name_bytes);
    l.end = l.codes + letters;
    return l;
}

/* ---- opening a database file ------------------------------------------------------------------------- */

static lw_status check_index(const lw_database *d, lw_error *err)
{
    const lw_database_view *v = &d->view;
    int64_t at = 0;
    int32_t last = INT32_MAX;
    for (int64_t i = 0; i < v->n; i++) {
        if (v->start[i] != at || v->len[i] < 0 || v->len[i] > last || v->order[i] < 0 ||
            v->order[i] >= v->n || d->name_start[i] < 0 || d->name_start[i] >= d->name_bytes)
            return lw_fail(err, LW_E_INPUT,
                           "%s: the index is inconsistent at entry %lld: make the database again", d->path,
                           (long long)i);
        at += v->len[i];
        last = v->len[i];
    }
    if (at != v->letters || (v->n > 0 && d->names[d->name_bytes - 1] != '\0'))
        return lw_fail(err, LW_E_INPUT, "%s: the index does not fit the sequences: make the database again",
                       d->path);
    return LW_OK;
}

static int32_t n_codes(const int64_t count[LW_MAX_LETTERS])
{
    int32_t n = LW_MAX_LETTERS;
    while (n > 1 && count[n - 1] == 0)
        n--;
    return n;
}

static lw_status check_header(const header *h, int64_t size, const char *path, lw_error *err)
{
    if (h->byte_order != BYTE_ORDER_MARK)
        return lw_fail(err, LW_E_INPUT, "%s: not in little-endian byte order: make the database again", path);
    if (h->version != VERSION)
        return lw_fail(err, LW_E_INPUT,
                       "%s: database version %u, but this program reads version %d: make it again "
                       "with `lanewise makedb`",
                       path, h->version, VERSION);
    if (h->sum != checksum(h, offsetof(header, sum)))
        return lw_fail(err, LW_E_INPUT,
                       "%s: the header does not match its checksum: the file was changed or damaged", path);
    if (h->file_bytes != size)
        return lw_fail(err, LW_E_INPUT, "%s: %s: %lld bytes where %lld were written", path,
                       size < h->file_bytes ? "truncated" : "bytes were added at its end", (long long)size,
                       (long long)h->file_bytes);
    if (h->type > LW_PROTEIN || h->n < 0 || h->n > INT32_MAX || h->letters < 0 || h->name_bytes < h->n ||
        n_codes(h->count) >
            (h->type == LW_DNA ? (int)sizeof LW_DATABASE_DNA : (int)sizeof LW_DATABASE_PROTEIN) - 1 ||
        h->letters > size || h->name_bytes > size || lay_out(h->n, h->name_bytes, h->letters).end != size)
        return lw_fail(err, LW_E_INPUT, "%s: the header is inconsistent: make the database again", path);
    return LW_OK;
}

static lw_status map_file(lw_database *d, int fd, int64_t size, lw_error *err)
{
    if (size < (int64_t)sizeof(header))
        return lw_fail(err, LW_E_INPUT, "%s: truncated: %lld bytes, fewer than a database's header", d->path,
                       (long long)size);
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return lw_fail(err, LW_E_IO, "%s: cannot be mapped: %s", d->path, strerror(errno));
    d->map = map;
    d->map_bytes = size;
    const header *h = map;
    LW_TRY(check_header(h, size, d->path, err));
    layout l = lay_out(h->n, h->name_bytes, h->letters);
    const char *base = map;
    if (h->index_sum != checksum(base + l.start, (size_t)(l.names - l.start)))
        return lw_fail(err, LW_E_INPUT,
                       "%s: the index does not match its checksum: the file was changed or damaged", d->path);
    d->view = (lw_database_view){.n = h->n,
                                 .letters = h->letters,
                                 .n_codes = n_codes(h->count),
                                 .codes = (const uint8_t *)base + l.codes,
                                 .start = (const int64_t *)(const void *)(base + l.start),
                                 .len = (const int32_t *)(const void *)(base + l.len),
                                 .order = (const int32_t *)(const void *)(base + l.order),
                                 .packed = true};
    d->type = (lw_alphabet_type)h->type;
    memcpy(d->count, h->count, sizeof d->count);
    d->duplicate_names = h->flags & DUPLICATE_NAMES;
    d->name_start = (const int64_t *)(const void *)(base + l.name_start);
    d->names = base + l.names;
    d->name_bytes = h->name_bytes;
    return check_index(d, err);
}

typedef struct block_check {
    const lw_database *database;
    const uint64_t *sums;
    const char *data;
    int64_t bytes;
    const lw_host *host;
} block_check;

static lw_status check_block(void *arg, int64_t i, int worker, lw_error *err)
{
    (void)worker;
    const block_check *c = arg;
    int64_t from = i * BLOCK, to = from + BLOCK < c->bytes ? from + BLOCK : c->bytes;
    if (lw_stopped(c->host))
        return lw_fail(err, LW_E_INTERRUPTED, "interrupted");
    if (checksum(c->data + from, (size_t)(to - from)) != c->sums[i])
        return lw_fail(
            err, LW_E_INPUT,
            "%s: bytes %lld to %lld do not match their checksum: the file was changed or damaged; make the "
            "database again",
            c->database->path, (long long)(c->data - (const char *)c->database->map + from),
            (long long)(c->data - (const char *)c->database->map + to));
    return LW_OK;
}

lw_status lw_database_check_blocks(const lw_database *d, lw_pool *pool, const lw_host *host, lw_error *err)
{
    if (!d->map)
        return LW_OK;
    layout l = lay_out(d->view.n, d->name_bytes, d->view.letters);
    const char *base = d->map;
    block_check c = {.database = d,
                     .sums = (const uint64_t *)(const void *)(base + l.sums),
                     .data = base + l.names,
                     .bytes = l.end - l.names,
                     .host = host};
    return lw_pool_for(pool, l.n_blocks, check_block, &c, err);
}

lw_status lw_database_check(const lw_database *d, int threads, lw_error *err)
{
    lw_pool *pool = NULL;
    LW_TRY(lw_pool_open(&pool, threads, err));
    lw_status status = lw_database_check_blocks(d, pool, NULL, err);
    lw_pool_close(pool);
    return status;
}

/* ---- reading sequences ------------------------------------------------------------------------------- */

const char *lw_database_alphabet(lw_alphabet_type type)
{
    return type == LW_DNA ? LW_DATABASE_DNA : LW_DATABASE_PROTEIN;
}

void lw_database_codes(lw_alphabet_type type, uint8_t code[256])
{
    const char *letters = lw_database_alphabet(type);
    memset(code, LW_NO_CODE, 256);
    for (int i = 0; letters[i]; i++) {
        code[(unsigned char)letters[i]] = (uint8_t)i;
        if (letters[i] != '*')
            code[(unsigned char)(letters[i] | 0x20)] = (uint8_t)i; /* lower case */
    }
    if (type == LW_DNA)
        code['U'] = code['u'] = code['T'];
}

/* A growing copy of a FASTA file. */
typedef struct loader {
    lw_database *database;
    int64_t n, capacity, code_capacity, name_capacity;
    int64_t letters;
    int64_t empty;
    int64_t *start; /* by place in the file */
    int32_t *len;
} loader;

static lw_status grow(void **array, int64_t *capacity, int64_t wanted, size_t each, lw_error *err)
{
    if (wanted <= *capacity)
        return LW_OK;
    int64_t more = *capacity + *capacity / 2 > wanted ? *capacity + *capacity / 2 : wanted;
    void *moved = realloc(*array, (size_t)more * each);
    if (!moved)
        return lw_fail_memory(err, (size_t)more * each);
    *array = moved;
    *capacity = more;
    return LW_OK;
}

/* Room for one more sequence: three arrays that grow together. */
static lw_status grow_index(loader *l, lw_error *err)
{
    if (l->n < l->capacity)
        return LW_OK;
    int64_t start_capacity = l->capacity, len_capacity = l->capacity, name_capacity = l->capacity,
            wanted = l->n + 1024;
    LW_TRY(grow((void **)&l->start, &start_capacity, wanted, sizeof *l->start, err));
    LW_TRY(grow((void **)&l->len, &len_capacity, wanted, sizeof *l->len, err));
    LW_TRY(grow((void **)&l->database->own_name_start, &name_capacity, wanted, sizeof(int64_t), err));
    l->capacity = start_capacity;
    return LW_OK;
}

lw_status lw_database_letter_error(const char *where, lw_alphabet_type type, unsigned char c,
                                   int64_t position, lw_error *err)
{
    const char *what =
        type == LW_DNA ? "DNA letter (ACGTU and IUPAC codes)" : "protein letter (A to Z and *)";
    if (c > ' ' && c < 127)
        return lw_fail(err, LW_E_INPUT, "%s: '%c' at position %lld is not a %s", where, c,
                       (long long)position, what);
    return lw_fail(err, LW_E_INPUT, "%s: byte 0x%02x at position %lld is not a %s", where, c,
                   (long long)position, what);
}

static lw_status take_record(loader *l, lw_seqio *reader, const lw_read_batch *batch, int64_t i,
                             const uint8_t code[256], lw_alphabet_type type, lw_error *err)
{
    lw_database *d = l->database;
    const lw_read *r = &batch->read[i];
    char where[512];
    if (l->n == INT32_MAX)
        return lw_fail(err, LW_E_RANGE, "%s: more than %d sequences: split the database", d->path, INT32_MAX);
    if (r->name_len == 0)
        return lw_fail(err, LW_E_INPUT, "%s: a database sequence needs a name",
                       lw_read_where(reader, batch, i, where, sizeof where));
    LW_TRY(grow_index(l, err));
    LW_TRY(grow((void **)&d->own_names, &l->name_capacity, d->name_bytes + r->name_len + 1, 1, err));
    LW_TRY(grow((void **)&d->own_codes, &l->code_capacity, l->letters + r->len + 1, 1,
                err)); /* + 1: never NULL */
    const unsigned char *text = (const unsigned char *)lw_read_seq(batch, i);
    uint8_t *codes = d->own_codes + l->letters;
    uint8_t bad = 0;
    for (int32_t k = 0; k < r->len; k++) {
        codes[k] = code[text[k]];
        bad |= codes[k];
    }
    if (bad & 0x80) { /* LW_NO_CODE: no code of a letter has this bit */
        int32_t k = 0;
        while (codes[k] != LW_NO_CODE)
            k++;
        return lw_database_letter_error(lw_read_where(reader, batch, i, where, sizeof where), type, text[k],
                                        k + 1, err);
    }
    memcpy(d->own_names + d->name_bytes, lw_read_name(batch, i), (size_t)r->name_len + 1);
    d->own_name_start[l->n] = d->name_bytes;
    d->name_bytes += r->name_len + 1;
    l->start[l->n] = l->letters;
    l->len[l->n] = r->len;
    l->letters += r->len;
    l->empty += r->len == 0;
    l->n++;
    return LW_OK;
}

/* Sequences were read as protein; decides what they are, by the rule of lw_guess_type(). */
static lw_alphabet_type guess_type(const loader *l)
{
    int64_t seen[LW_MAX_LETTERS] = {0}, plain = 0, iupac = 0;
    for (int64_t k = 0; k < l->letters; k++)
        seen[l->database->own_codes[k]]++;
    uint8_t dna[256];
    lw_database_codes(LW_DNA, dna);
    for (int c = 0; LW_DATABASE_PROTEIN[c]; c++) {
        char letter = LW_DATABASE_PROTEIN[c];
        iupac += dna[(unsigned char)letter] != LW_NO_CODE ? seen[c] : 0;
        plain += strchr("ACGTUN", letter) ? seen[c] : 0;
    }
    return iupac == l->letters && plain * 10 >= l->letters * 9 ? LW_DNA : LW_PROTEIN;
}

/* Turns the codes of nucleotides from those of protein into those of DNA. */
static void recode_dna(loader *l)
{
    uint8_t dna[256], map[LW_MAX_LETTERS] = {0};
    lw_database_codes(LW_DNA, dna);
    for (int c = 0; LW_DATABASE_PROTEIN[c]; c++)
        map[c] = dna[(unsigned char)LW_DATABASE_PROTEIN[c]];
    for (int64_t k = 0; k < l->letters; k++)
        l->database->own_codes[k] = map[l->database->own_codes[k]];
}

/* order[] = places by length, longest first, equal lengths as they stand: two stable counting passes of 16
 * bits. */
static lw_status sort_by_length(const int32_t *len, int64_t n, int32_t *order, lw_error *err)
{
    enum { BUCKETS = 1 << 16 };
    int32_t *first = malloc((size_t)(n ? n : 1) * sizeof *first);
    int64_t *count = calloc(BUCKETS + 1, sizeof *count);
    if (!first || !count) {
        free(first), free(count);
        return lw_fail_memory(err, (size_t)n * sizeof *first);
    }
    for (int pass = 0; pass < 2; pass++) {
        int32_t *to = pass ? order : first;
        memset(count, 0, (BUCKETS + 1) * sizeof *count);
        for (int64_t i = 0; i < n; i++)
            count[((INT32_MAX - len[i]) >> 16 * pass & (BUCKETS - 1)) + 1]++;
        for (int b = 0; b < BUCKETS; b++)
            count[b + 1] += count[b];
        for (int64_t i = 0; i < n; i++) {
            int32_t place = pass ? first[i] : (int32_t)i;
            to[count[(INT32_MAX - len[place]) >> 16 * pass & (BUCKETS - 1)]++] = place;
        }
    }
    free(first), free(count);
    return LW_OK;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Two equal names are found by their 64-bit sums: among 10^7 different names two sums agree with a chance of
 * 3 in a million, and then a warning is wrong. */
static lw_status find_duplicates(lw_database *d, lw_error *err)
{
    int64_t n = d->view.n;
    uint64_t *sums = malloc((size_t)(n ? n : 1) * sizeof *sums);
    if (!sums)
        return lw_fail_memory(err, (size_t)n * sizeof *sums);
    for (int64_t i = 0; i < n; i++)
        sums[i] = checksum(d->names + d->name_start[i], strlen(d->names + d->name_start[i]));
    qsort(sums, (size_t)n, sizeof *sums, compare_hashes);
    for (int64_t i = 1; i < n; i++)
        d->duplicate_names |= sums[i] == sums[i - 1];
    free(sums);
    return LW_OK;
}

/* The view of what was read. The codes stay where they are: sorting them would need them twice. */
static lw_status finish_loading(loader *l, lw_error *err)
{
    lw_database *d = l->database;
    size_t n = (size_t)(l->n ? l->n : 1);
    d->own_start = malloc(n * sizeof *d->own_start);
    d->own_len = malloc(n * sizeof *d->own_len);
    d->own_order = malloc(n * sizeof *d->own_order);
    if (!d->own_start || !d->own_len || !d->own_order)
        return lw_fail_memory(err, n * 16);
    LW_TRY(sort_by_length(l->len, l->n, d->own_order, err));
    for (int64_t i = 0; i < l->n; i++) {
        d->own_start[i] = l->start[d->own_order[i]];
        d->own_len[i] = l->len[d->own_order[i]];
    }
    void *shrunk = realloc(d->own_codes, l->letters ? (size_t)l->letters : 1);
    if (shrunk)
        d->own_codes = shrunk;
    for (int64_t k = 0; k < l->letters; k++)
        d->count[d->own_codes[k]]++;
    d->view = (lw_database_view){.n = l->n,
                                 .letters = l->letters,
                                 .n_codes = n_codes(d->count),
                                 .codes = d->own_codes,
                                 .start = d->own_start,
                                 .len = d->own_len,
                                 .order = d->own_order,
                                 .packed = false};
    d->names = d->own_names;
    d->name_start = d->own_name_start;
    return find_duplicates(d, err);
}

static lw_status load_text(lw_database *d, lw_letters letters, lw_pool *pool, const lw_host *host,
                           lw_error *err)
{
    enum { BATCH_LETTERS = 4 << 20 };
    lw_status status = LW_OK;
    lw_seqio *reader = NULL;
    lw_read_batch batch = {0};
    loader l = {.database = d};
    lw_seqio_options options = {.pool = pool, .host = host};
    lw_alphabet_type type = letters == LW_LETTERS_DNA ? LW_DNA : LW_PROTEIN;
    const char *path = d->path;
    uint8_t code[256];
    lw_database_codes(type, code);
    LW_TRY_END(lw_seqio_open(&reader, &path, 1, &options, err));
    for (;;) {
        LW_TRY_END(lw_seqio_read(reader, &batch, 0, BATCH_LETTERS, err));
        if (batch.n == 0)
            break;
        for (int64_t i = 0; i < batch.n; i++)
            LW_TRY_END(take_record(&l, reader, &batch, i, code, type, err));
    }
    if (letters == LW_LETTERS_AUTO) {
        type = guess_type(&l);
        if (type == LW_DNA)
            recode_dna(&l);
    }
    d->type = type;
    LW_TRY_END(finish_loading(&l, err));
    if (l.empty)
        lw_say(host, LW_SAY_WARNING, "%s: %lld of %lld sequences are empty and cannot be hit", d->path,
               (long long)l.empty, (long long)l.n);
end:
    free(l.start), free(l.len);
    lw_read_batch_free(&batch);
    lw_seqio_close(reader);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

lw_status lw_database_open(lw_database **out, const char *path, lw_letters letters, int threads,
                           const lw_host *host, lw_error *err)
{
    lw_status status = LW_OK;
    lw_pool *pool = NULL;
    int fd = -1;
    lw_database *d = calloc(1, sizeof *d);
    if (d)
        d->path = strdup(path);
    if (!d || !d->path) {
        free(d);
        return lw_fail_memory(err, sizeof *d);
    }
    bool is_file = false;
    struct stat stat;
    if (strcmp(path, "-") != 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &stat) != 0) {
            status = lw_fail(err, LW_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
            goto end;
        }
        char first[sizeof magic];
        is_file = S_ISREG(stat.st_mode) && pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first &&
                  memcmp(first, magic, sizeof magic) == 0;
        if (!is_file && ends_with(path, ".lwdb")) {
            status =
                lw_fail(err, LW_E_INPUT, "%s: not a lanewise database (it does not begin like one)", path);
            goto end;
        }
    }
    if (is_file) {
        LW_TRY_END(map_file(d, fd, stat.st_size, err));
        if (letters != LW_LETTERS_AUTO && (letters == LW_LETTERS_DNA) != (d->type == LW_DNA))
            status = lw_fail(err, LW_E_ARG, "%s holds %s, not %s", path,
                             d->type == LW_DNA ? "DNA" : "protein", d->type == LW_DNA ? "protein" : "DNA");
    } else {
        LW_TRY_END(lw_pool_open(&pool, threads, err));
        status = load_text(d, letters, pool, host, err);
    }
end:
    if (fd >= 0)
        close(fd);
    lw_pool_close(pool);
    if (status != LW_OK) {
        lw_database_close(d);
        return status;
    }
    *out = d;
    return LW_OK;
}

void lw_database_close(lw_database *d)
{
    if (!d)
        return;
    if (d->map)
        munmap(d->map, (size_t)d->map_bytes);
    free(d->own_codes), free(d->own_start), free(d->own_name_start), free(d->own_len), free(d->own_order);
    free(d->own_names), free(d->path), free(d);
}

/* ---- what others ask ---------------------------------------------------------------------------------- */

const lw_database_view *lw_database_get_view(const lw_database *d)
{
    return &d->view;
}

const char *lw_database_name(const lw_database *d, int64_t i)
{
    return d->names + d->name_start[d->view.order[i]];
}

const char *lw_database_path(const lw_database *d)
{
    return d->path;
}

const int64_t *lw_database_code_counts(const lw_database *d)
{
    return d->count;
}

bool lw_database_duplicate_names(const lw_database *d)
{
    return d->duplicate_names;
}

bool lw_database_mapped(const lw_database *d)
{
    return d->map != NULL;
}

int64_t lw_database_sequences(const lw_database *d)
{
    return d->view.n;
}

int64_t lw_database_letters(const lw_database *d)
{
    return d->view.letters;
}

lw_alphabet_type lw_database_type(const lw_database *d)
{
    return d->type;
}

/* ---- writing ------------------------------------------------------------------------------------------ */

/* Names and codes as one stream of whole blocks. */
typedef struct stream {
    uint8_t *block;
    int64_t used;
    uint64_t *sums; /* filled in the first pass, NULL in the second */
    int64_t n_sums;
    lw_outfile *file; /* written in the second pass, NULL in the first */
} stream;

static lw_status flush(stream *s, lw_error *err)
{
    if (s->used == 0)
        return LW_OK;
    if (s->sums)
        s->sums[s->n_sums++] = checksum(s->block, (size_t)s->used);
    if (s->file)
        LW_TRY(lw_outfile_write(s->file, s->block, (size_t)s->used, err));
    s->used = 0;
    return LW_OK;
}

/* data NULL: zero bytes */
static lw_status put(stream *s, const void *data, int64_t n, lw_error *err)
{
    const uint8_t *from = data;
    while (n > 0) {
        int64_t piece = n < BLOCK - s->used ? n : BLOCK - s->used;
        if (from) {
            memcpy(s->block + s->used, from, (size_t)piece);
            from += piece;
        } else {
            memset(s->block + s->used, 0, (size_t)piece);
        }
        s->used += piece;
        n -= piece;
        if (s->used == BLOCK)
            LW_TRY(flush(s, err));
    }
    return LW_OK;
}

static lw_status put_data(const lw_database *d, stream *s, lw_error *err)
{
    LW_TRY(put(s, d->names, d->name_bytes, err));
    LW_TRY(put(s, NULL, aligned(d->name_bytes) - d->name_bytes, err));
    for (int64_t i = 0; i < d->view.n; i++)
        LW_TRY(put(s, d->view.codes + d->view.start[i], d->view.len[i], err));
    return flush(s, err);
}

lw_status lw_database_write(const lw_database *d, const char *path, lw_temporaries *temporaries,
                            const lw_host *host, lw_error *err)
{
    const uint32_t mark = BYTE_ORDER_MARK;
    if (*(const uint8_t *)&mark != 0x04)
        return lw_fail(
            err, LW_E_UNSUPPORTED,
            "database files are little-endian and this machine is not: search the FASTA file instead");
    lw_status status = LW_OK;
    layout l = lay_out(d->view.n, d->name_bytes, d->view.letters);
    stream s = {.block = malloc(BLOCK)};
    uint8_t *index = calloc(1, (size_t)l.names);
    lw_outfile *file = NULL;
    if (!s.block || !index) {
        status = lw_fail_memory(err, (size_t)l.names + BLOCK);
        goto end;
    }
    LW_TRY_END(lw_outfile_open(&file, path, temporaries, err));
    int64_t at = 0;
    for (int64_t i = 0; i < d->view.n; i++) {
        memcpy(index + l.start + 8 * i, &at, 8);
        at += d->view.len[i];
    }
    memcpy(index + l.len, d->view.len, (size_t)d->view.n * 4);
    memcpy(index + l.order, d->view.order, (size_t)d->view.n * 4);
    memcpy(index + l.name_start, d->name_start, (size_t)d->view.n * 8);
    s.sums = (uint64_t *)(void *)(index + l.sums);
    LW_TRY_END(put_data(d, &s, err));
    header h = {.version = VERSION,
                .byte_order = BYTE_ORDER_MARK,
                .type = (uint32_t)d->type,
                .flags = d->duplicate_names ? DUPLICATE_NAMES : 0,
                .n = d->view.n,
                .letters = d->view.letters,
                .name_bytes = d->name_bytes,
                .file_bytes = l.end,
                .index_sum = checksum(index + l.start, (size_t)(l.names - l.start))};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.count, d->count, sizeof h.count);
    h.sum = checksum(&h, offsetof(header, sum));
    memcpy(index, &h, sizeof h);
    LW_TRY_END(lw_outfile_write(file, index, (size_t)l.names, err));
    s.sums = NULL;
    s.file = file;
    LW_TRY_END(put_data(d, &s, err));
    if (lw_stopped(host))
        status = lw_fail(err, LW_E_INTERRUPTED, "interrupted");
end:
    free(s.block), free(index);
    return lw_outfile_close(file, status, err);
}
