/* npy.c - reading and writing .npy. */
#include "common/npy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fail.h"

static const struct {
    const char *name; /* NumPy's */
    char kind;        /* of the type string "<i4" */
    int size;
} dtypes[] = {
    [LW_BOOL] = {"bool", 'b', 1},   [LW_I8] = {"int8", 'i', 1},     [LW_U8] = {"uint8", 'u', 1},
    [LW_I16] = {"int16", 'i', 2},   [LW_U16] = {"uint16", 'u', 2},  [LW_I32] = {"int32", 'i', 4},
    [LW_U32] = {"uint32", 'u', 4},  [LW_I64] = {"int64", 'i', 8},   [LW_U64] = {"uint64", 'u', 8},
    [LW_F16] = {"float16", 'f', 2}, [LW_F32] = {"float32", 'f', 4}, [LW_F64] = {"float64", 'f', 8},
};

int64_t lw_dtype_size(lw_dtype dtype)
{
    return dtypes[dtype].size;
}

const char *lw_dtype_name(lw_dtype dtype)
{
    return dtypes[dtype].name;
}

float lw_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    uint32_t bits;
    float value;
    if (exponent == 31) { /* infinity or NaN */
        bits = sign | 0x7F800000 | fraction << 13;
    } else if (exponent > 0) { /* the bias goes from 15 to 127 */
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else { /* zero or subnormal: fraction * 2^-24, exact in single */
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* --- the header: a Python dictionary ------------------------------------------------------- */

typedef struct header {
    lw_dtype dtype;
    bool big_endian, fortran;
    int ndim;
    int64_t shape[LW_NPY_DIMS];
} header;

/* The text behind 'key': in the dictionary, or NULL. */
static const char *find_key(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *p = text; (p = strpbrk(p, "'\"")) != NULL; p++) {
        if (strncmp(p + 1, key, length) != 0 || p[1 + length] != *p)
            continue;
        const char *value = p + length + 2;
        value += strspn(value, " \t\n");
        if (*value == ':')
            return value + 1 + strspn(value + 1, " \t\n");
    }
    return NULL;
}

static lw_status parse_dtype(header *h, const char *text, const char *path, lw_error *err)
{
    char code[16] = "";
    if ((*text == '\'' || *text == '"') && strcspn(text + 1, "'\"") < sizeof code) {
        memcpy(code, text + 1, strcspn(text + 1, "'\""));
        const char *digits = code + 2;
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
            if (code[0] == '\0' || strchr("<>|=", code[0]) == NULL || code[1] != dtypes[i].kind ||
                digits[0] != '0' + dtypes[i].size || digits[1] != '\0')
                continue;
            h->dtype = (lw_dtype)i;
            h->big_endian = code[0] == '>';
            return LW_OK;
        }
    }
    return lw_fail(
        err, LW_E_INPUT,
        "%s: dtype %.*s is not supported; save it as bool, an integer of 8 to 64 bits or a float of 16 to "
        "64 bits",
        path, (int)(strcspn(text, ",}") < 40 ? strcspn(text, ",}") : 40), text);
}

static lw_status parse_header(header *h, const char *text, const char *path, lw_error *err)
{
    const char *descr = find_key(text, "descr"), *order = find_key(text, "fortran_order"),
               *shape = find_key(text, "shape");
    if (!descr || !order || !shape || *shape != '(')
        return lw_fail(err, LW_E_INPUT, "%s: the .npy header lacks descr, fortran_order or shape", path);
    LW_TRY(parse_dtype(h, descr, path, err));
    if (strncmp(order, "True", 4) == 0)
        h->fortran = true;
    else if (strncmp(order, "False", 5) != 0)
        return lw_fail(err, LW_E_INPUT, "%s: fortran_order is neither True nor False", path);
    h->ndim = 0;
    for (const char *p = shape + 1;;) {
        p += strspn(p, " ,L\t\n");
        if (*p == ')')
            return LW_OK;
        if (h->ndim == LW_NPY_DIMS)
            return lw_fail(err, LW_E_INPUT, "%s: more than %d dimensions", path, LW_NPY_DIMS);
        char *end;
        errno = 0;
        long long extent = strtoll(p, &end, 10);
        if (end == p || extent < 0 || errno)
            return lw_fail(err, LW_E_INPUT, "%s: the shape in the .npy header is damaged", path);
        h->shape[h->ndim++] = extent;
        p = end;
    }
}

/* --- element order ------------------------------------------------------------------------- */

static void swap_bytes(unsigned char *data, int64_t count, int size)
{
    for (int64_t i = 0; i < count; i++, data += size)
        for (int low = 0, high = size - 1; low < high; low++, high--) {
            unsigned char byte = data[low];
            data[low] = data[high];
            data[high] = byte;
        }
}

/* Fortran order to C order, any number of dimensions; two dimensions in tiles, so that both sides stay in
 * cache. */
static void to_c_order(unsigned char *out, const unsigned char *in, const lw_npy *a, int size)
{
    if (a->count == 0) /* and no walk along a dimension of any length */
        return;
    if (a->ndim == 2) {
        int64_t rows = a->shape[0], columns = a->shape[1];
        const int64_t tile = 64;
        for (int64_t r0 = 0; r0 < rows; r0 += tile)
            for (int64_t c0 = 0; c0 < columns; c0 += tile)
                for (int64_t r = r0; r < rows && r < r0 + tile; r++)
                    for (int64_t c = c0; c < columns && c < c0 + tile; c++)
                        memcpy(out + (r * columns + c) * size, in + (c * rows + r) * size, (size_t)size);
        return;
    }
    int64_t index[LW_NPY_DIMS] = {0};
    for (int64_t i = 0; i < a->count; i++) {
        int64_t from = 0;
        for (int k = a->ndim - 1; k >= 0; k--)
            from = from * a->shape[k] + index[k];
        memcpy(out + i * size, in + from * size, (size_t)size);
        for (int k = a->ndim - 1; k >= 0 && ++index[k] == a->shape[k]; k--)
            index[k] = 0;
    }
}

/* --- files --------------------------------------------------------------------------------- */

static lw_status read_all(FILE *f, void *data, size_t n, const char *path, const char *what, lw_error *err)
{
    if (fread(data, 1, n, f) == n)
        return LW_OK;
    if (ferror(f))
        return lw_fail(err, LW_E_IO, "%s: reading failed: %s", path, strerror(errno));
    return lw_fail(err, LW_E_INPUT, "%s: cut short: the file ends within the %s", path, what);
}

static lw_status read_stream(lw_npy *out, FILE *f, const char *path, lw_error *err)
{
    unsigned char magic[12];
    LW_TRY(read_all(f, magic, 10, path, ".npy header", err));
    if (memcmp(magic, "\x93NUMPY", 6) != 0)
        return lw_fail(err, LW_E_INPUT, "%s: not a .npy file (it does not begin with \\x93NUMPY)", path);
    if (magic[6] < 1 || magic[6] > 3)
        return lw_fail(err, LW_E_INPUT, "%s: .npy version %d.%d is not supported", path, magic[6], magic[7]);
    size_t length = (size_t)magic[8] | (size_t)magic[9] << 8;
    if (magic[6] > 1) {
        LW_TRY(read_all(f, magic + 10, 2, path, ".npy header", err));
        length |= (size_t)magic[10] << 16 | (size_t)magic[11] << 24;
    }
    if (length > 1 << 20) /* for plain dtypes it is a hundred bytes */
        return lw_fail(err, LW_E_INPUT, "%s: the .npy header claims %zu bytes", path, length);
    char *text = malloc(length + 1);
    if (!text)
        return lw_fail_memory(err, length + 1);
    lw_status status = read_all(f, text, length, path, ".npy header", err);
    text[length] = '\0';
    header h = {0};
    if (status == LW_OK)
        status = parse_header(&h, text, path, err);
    free(text);
    LW_TRY(status);

    int size = dtypes[h.dtype].size;
    int64_t count = 1;
    for (int k = 0; k < h.ndim; k++)
        if (__builtin_mul_overflow(count, h.shape[k], &count))
            return lw_fail(err, LW_E_INPUT, "%s: the shape is larger than any memory", path);
    int64_t bytes;
    if (__builtin_mul_overflow(count, (int64_t)size, &bytes))
        return lw_fail(err, LW_E_INPUT, "%s: the shape is larger than any memory", path);
    /* a header may claim anything: where the file's size is known, it says how much memory can be needed */
    struct stat about;
    if (fstat(fileno(f), &about) == 0 && S_ISREG(about.st_mode) && about.st_size - ftello(f) < bytes)
        return lw_fail(err, LW_E_INPUT, "%s: cut short: the file ends within the array", path);
    unsigned char *data = malloc(bytes ? (size_t)bytes : 1);
    if (!data)
        return lw_fail_memory(err, (size_t)bytes);
    status = read_all(f, data, (size_t)bytes, path, "array", err);
    if (status == LW_OK && getc(f) != EOF)
        status = lw_fail(err, LW_E_INPUT, "%s: bytes after the array that the header describes", path);
    if (status != LW_OK) {
        free(data);
        return status;
    }
    out->dtype = h.dtype;
    out->ndim = h.ndim;
    memcpy(out->shape, h.shape, sizeof h.shape);
    out->count = count;
    out->data = data;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (h.big_endian)
        swap_bytes(data, count, size);
#else
    if (!h.big_endian)
        swap_bytes(data, count, size);
#endif
    if (h.fortran && h.ndim > 1) {
        unsigned char *turned = malloc(bytes ? (size_t)bytes : 1);
        if (!turned) {
            lw_npy_free(out);
            return lw_fail_memory(err, (size_t)bytes);
        }
        to_c_order(turned, data, out, size);
        free(data);
        out->data = turned;
    }
    return LW_OK;
}

lw_status lw_npy_read(lw_npy *out, const char *path, lw_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    if (!f)
        return lw_fail(err, LW_E_IO, "%s: %s", path, strerror(errno));
    lw_status status = read_stream(out, f, is_stdin ? "standard input" : path, err);
    if (!is_stdin)
        fclose(f);
    return status;
}

void lw_npy_free(lw_npy *array)
{
    if (!array)
        return;
    free(array->data);
    array->data = NULL;
}

size_t lw_npy_header(char head[LW_NPY_HEADER], lw_dtype dtype, int ndim, const int64_t *shape)
{
    /* at most 10 + 60 + 8 * 21 bytes, so that the header never exceeds 256 */
    char *text = head + 10, *p = text;
    p += sprintf(p, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                 dtypes[dtype].size == 1 ? '|' : '<', dtypes[dtype].kind, dtypes[dtype].size);
    for (int k = 0; k < ndim; k++)
        p += sprintf(p, "%s%lld", k ? ", " : "", (long long)shape[k]);
    p += sprintf(p, "%s), }", ndim == 1 ? "," : "");
    size_t total = ((size_t)(p - head) + 1 + 63) / 64 * 64;
    memset(p, ' ', total - (size_t)(p - head));
    head[total - 1] = '\n';
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)((total - 10) & 255);
    head[9] = (char)((total - 10) >> 8);
    return total;
}

lw_status lw_npy_write(lw_outfile *file, const lw_npy *array, lw_error *err)
{
    char head[LW_NPY_HEADER];
    size_t n = lw_npy_header(head, array->dtype, array->ndim, array->shape);
    LW_TRY(lw_outfile_write(file, head, n, err));
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "lw_npy_write() writes the machine's bytes, which must be little-endian"
#endif
    return lw_outfile_write(file, array->data, (size_t)(array->count * dtypes[array->dtype].size), err);
}
