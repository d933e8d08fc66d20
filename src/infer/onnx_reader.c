/* onnx_reader.c - .onnx files, through protobuf-c and ONNX's own onnx.proto, into lw_model. */
#include "infer/model.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fail.h"
#include "infer/op.h"
#include "onnx.pb-c.h"

/* Message nesting beyond any real model; protobuf-c unpacks by recursion, so the depth is checked before it.
 */
enum { MAX_NESTING = 100 };

typedef struct bytes {
    uint8_t *data;
    size_t n;
} bytes;

/* memcpy, also of nothing from nowhere: protobuf-c leaves empty fields NULL. */
static void copy_bytes(void *to, const void *from, size_t n)
{
    if (n > 0)
        memcpy(to, from, n);
}

/* ---- files ------------------------------------------------------------------------------------- */

static lw_status read_range(bytes *out, const char *path, int64_t offset, int64_t length, lw_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        int reason = fd >= 0 && errno == 0 ? EINVAL : errno;
        if (fd >= 0)
            close(fd);
        return lw_fail(err, LW_E_IO, "%s: cannot be read: %s", path,
                       fd >= 0 ? "not a regular file" : strerror(reason));
    }
    int64_t end;
    if (length < 0)
        length = info.st_size - offset;
    if (offset < 0 || length < 0 || __builtin_add_overflow(offset, length, &end) || end > info.st_size) {
        close(fd);
        return lw_fail(err, LW_E_INPUT, "%s: %lld bytes at offset %lld are wanted, the file has %lld", path,
                       (long long)length, (long long)offset, (long long)info.st_size);
    }
    uint8_t *data = malloc((size_t)length + 1);
    if (!data) {
        close(fd);
        return lw_fail_memory(err, (size_t)length);
    }
    for (int64_t n = 0; n < length;) {
        ssize_t got = pread(fd, data + n, (size_t)(length - n), offset + n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            lw_fail(err, LW_E_IO, "%s: cannot be read: %s", path,
                    got < 0 ? strerror(errno) : "it became shorter");
            free(data);
            close(fd);
            return LW_E_IO;
        }
        n += got;
    }
    close(fd);
    *out = (bytes){data, (size_t)length};
    return LW_OK;
}

/* ---- nesting ----------------------------------------------------------------------------------- */

static bool read_varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t byte = *(*p)++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            return true;
    }
    return false;
}

/* The messages that can lead back to themselves (graphs in attributes of nodes, types in types), and the
 * fields that lead from one to the next. */
enum message { MODEL, TRAINING, FUNCTION, GRAPH, NODE, ATTRIBUTE, VALUE_INFO, TYPE, TYPE_PART };
static const struct {
    enum message from;
    unsigned field;
    enum message to;
} fields[] = {{MODEL, 7, GRAPH},       {MODEL, 20, TRAINING},   {MODEL, 25, FUNCTION},
              {TRAINING, 1, GRAPH},    {TRAINING, 2, GRAPH},    {FUNCTION, 7, NODE},
              {GRAPH, 1, NODE},        {GRAPH, 11, VALUE_INFO}, {GRAPH, 12, VALUE_INFO},
              {GRAPH, 13, VALUE_INFO}, {NODE, 5, ATTRIBUTE},    {ATTRIBUTE, 6, GRAPH},
              {ATTRIBUTE, 11, GRAPH},  {ATTRIBUTE, 14, TYPE},   {ATTRIBUTE, 15, TYPE},
              {VALUE_INFO, 2, TYPE},   {TYPE, 4, TYPE_PART},    {TYPE, 5, TYPE_PART},
              {TYPE, 9, TYPE_PART},    {TYPE_PART, 1, TYPE},    {TYPE_PART, 2, TYPE}};

/* Whether messages nest deeper than MAX_NESTING; bytes that are not a message are protobuf-c's business. */
static bool too_deep(const uint8_t *p, const uint8_t *end, enum message message, int depth)
{
    if (depth > MAX_NESTING)
        return true;
    while (p < end) {
        uint64_t key, length = 0;
        if (!read_varint(&p, end, &key))
            return false;
        int wire = key & 7;
        if (wire == 0 || wire == 2) {
            if (!read_varint(&p, end, &length))
                return false;
        }
        length = wire == 0 ? 0 : wire == 1 ? 8 : wire == 5 ? 4 : length;
        if (length > (uint64_t)(end - p))
            return false;
        for (size_t i = 0; wire == 2 && i < sizeof fields / sizeof *fields; i++)
            if (fields[i].from == message && fields[i].field == key >> 3 &&
                too_deep(p, p + length, fields[i].to, depth + 1))
                return true;
        p += length;
    }
    return false;
}

/* ---- tensors ----------------------------------------------------------------------------------- */

static bool dtype_of(int onnx, lw_dtype *out)
{
    static const struct {
        int onnx;
        lw_dtype dtype;
    } known[] = {
        {ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, LW_F32},   {ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, LW_U8},
        {ONNX__TENSOR_PROTO__DATA_TYPE__INT8, LW_I8},     {ONNX__TENSOR_PROTO__DATA_TYPE__UINT16, LW_U16},
        {ONNX__TENSOR_PROTO__DATA_TYPE__INT16, LW_I16},   {ONNX__TENSOR_PROTO__DATA_TYPE__INT32, LW_I32},
        {ONNX__TENSOR_PROTO__DATA_TYPE__INT64, LW_I64},   {ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, LW_BOOL},
        {ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, LW_F16}, {ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE, LW_F64},
        {ONNX__TENSOR_PROTO__DATA_TYPE__UINT32, LW_U32},  {ONNX__TENSOR_PROTO__DATA_TYPE__UINT64, LW_U64}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].onnx == onnx) {
            *out = known[i].dtype;
            return true;
        }
    return false;
}

/* 4-bit integers, in the numbers of newer versions of onnx.proto: two to a byte in the file, the first in the
 * low half; one to a byte here. */
enum { ONNX_UINT4 = 21, ONNX_INT4 = 22 };

static bool nibbles_of(int onnx, lw_dtype *out)
{
    *out = onnx == ONNX_INT4 ? LW_I8 : LW_U8;
    return onnx == ONNX_INT4 || onnx == ONNX_UINT4;
}

static void unpack_nibbles(lw_tensor *t, const uint8_t *packed, const int32_t *numbers)
{
    for (int64_t i = 0; i < t->count; i++) {
        uint8_t byte = packed ? packed[i / 2] : (uint8_t)numbers[i / 2], v = i % 2 ? byte >> 4 : byte & 15;
        ((uint8_t *)t->data)[i] = t->dtype == LW_I8 && v > 7 ? (uint8_t)(v - 16) : v;
    }
    t->bits = 4;
}

static const char *text(const char *s)
{
    return s ? s : "";
}

/* External data stays inside the model's folder: no absolute path, no "..", no link that leaves it. */
static lw_status external_data(bytes *out, const Onnx__TensorProto *p, const char *model_path,
                               int64_t expected, lw_error *err)
{
    const char *location = NULL, *offset = "0";
    for (size_t i = 0; i < p->n_external_data; i++) {
        const char *key = text(p->external_data[i]->key);
        if (strcmp(key, "location") == 0)
            location = p->external_data[i]->value;
        else if (strcmp(key, "offset") == 0)
            offset = text(p->external_data[i]->value);
    }
    char *end = NULL;
    long long at = strtoll(offset, &end, 10);
    if (!location || !*location || !end || *end || at < 0)
        return lw_fail(err, LW_E_INPUT, "%s: tensor %s: its external data has no usable location and offset",
                       model_path, text(p->name));
    char path[PATH_MAX], folder[PATH_MAX], real_folder[PATH_MAX], real_path[PATH_MAX];
    const char *slash = strrchr(model_path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - model_path) : 1, slash ? model_path : ".");
    if (snprintf(path, sizeof path, "%s/%s", *folder ? folder : "/", location) >= (int)sizeof path)
        return lw_fail(err, LW_E_INPUT, "%s: tensor %s: the name of its external data is too long",
                       model_path, text(p->name));
    if (location[0] == '/' || strstr(location, ".."))
        return lw_fail(err, LW_E_INPUT,
                       "%s: tensor %s: external data '%s' lies outside the model's folder and is refused",
                       model_path, text(p->name), location);
    if (!realpath(*folder ? folder : "/", real_folder) || !realpath(path, real_path))
        return lw_fail(err, LW_E_IO, "%s: tensor %s: external data %s: %s", model_path, text(p->name), path,
                       strerror(errno));
    size_t n = strlen(real_folder);
    if (strncmp(real_folder, real_path, n) != 0 || (n > 1 && real_path[n] != '/'))
        return lw_fail(err, LW_E_INPUT,
                       "%s: tensor %s: external data '%s' leads outside the model's folder and is refused",
                       model_path, text(p->name), location);
    return read_range(out, real_path, at, expected, err);
}

static lw_status read_tensor(lw_tensor **out, const Onnx__TensorProto *p, const char *model_path,
                             bool from_memory, lw_error *err)
{
    lw_dtype dtype;
    bool nibbles = nibbles_of(p->data_type, &dtype);
    if (!nibbles && !dtype_of(p->data_type, &dtype))
        return lw_fail(err, LW_E_INPUT, "%s: tensor %s has element type %d, which is not supported",
                       model_path, text(p->name), p->data_type);
    if (p->n_dims > LW_MAX_RANK)
        return lw_fail(err, LW_E_INPUT, "%s: tensor %s has %zu dimensions: at most %d are supported",
                       model_path, text(p->name), p->n_dims, LW_MAX_RANK);
    int64_t count = 1, element = lw_dtype_size(dtype), size;
    for (size_t k = 0; k < p->n_dims; k++)
        if (p->dims[k] < 0 || __builtin_mul_overflow(count, p->dims[k], &count))
            return lw_fail(err, LW_E_INPUT, "%s: tensor %s: its shape cannot be", model_path, text(p->name));
    if (__builtin_mul_overflow(count, element, &size) || size == INT64_MAX)
        return lw_fail(err, LW_E_INPUT, "%s: tensor %s: its shape cannot be", model_path, text(p->name));
    int64_t stored = count; /* elements, or bytes of two */
    if (nibbles)
        stored = size = (count + 1) / 2;
    bool external = p->has_data_location && p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    /* what the file holds is compared with the shape before memory is taken for it */
    size_t have = p->has_raw_data                      ? p->raw_data.len / (size_t)element
                  : dtype == LW_F32                    ? p->n_float_data
                  : dtype == LW_F64                    ? p->n_double_data
                  : dtype == LW_I64                    ? p->n_int64_data
                  : dtype == LW_U32 || dtype == LW_U64 ? p->n_uint64_data
                                                       : p->n_int32_data;
    if (!external && ((int64_t)have != stored || (p->has_raw_data && p->raw_data.len != (size_t)size)))
        return lw_fail(err, LW_E_INPUT, "%s: tensor %s: %zu elements for a shape of %lld", model_path,
                       text(p->name), have, (long long)count);
    bytes file = {0};
    if (external && from_memory)
        return lw_fail(err, LW_E_INPUT, "%s: tensor %s: external data needs a model in a file", model_path,
                       text(p->name));
    if (external)
        LW_TRY(external_data(&file, p, model_path, size, err));
    lw_tensor *t = NULL;
    lw_error inner = {0};
    lw_status status = lw_tensor_new(&t, dtype, (int)p->n_dims, p->dims, &inner);
    if (status != LW_OK) {
        free(file.data);
        return lw_fail(err, status, "%s: tensor %s: %s", model_path, text(p->name), inner.message);
    }
    if (nibbles)
        unpack_nibbles(t,
                       external          ? (const uint8_t *)file.data
                       : p->has_raw_data ? p->raw_data.data
                                         : NULL,
                       p->int32_data);
    else if (external)
        copy_bytes(t->data, file.data,
                   (size_t)size); /* little-endian, as this machine (checked when built) */
    else if (p->has_raw_data)
        copy_bytes(t->data, p->raw_data.data, (size_t)size);
    else
        for (int64_t i = 0; i < count; i++) {
            switch (dtype) { /* each type has one field of the message, whose length was compared above */
            case LW_F32:
                ((float *)t->data)[i] = p->float_data[i];
                break;
            case LW_F64:
                ((double *)t->data)[i] = p->double_data[i];
                break;
            case LW_BOOL:
            case LW_I8:
            case LW_U8:
                ((uint8_t *)t->data)[i] = (uint8_t)p->int32_data[i];
                break;
            case LW_I16:
            case LW_U16:
            case LW_F16:
                ((uint16_t *)t->data)[i] = (uint16_t)p->int32_data[i];
                break;
            case LW_I32:
                ((int32_t *)t->data)[i] = p->int32_data[i];
                break;
            case LW_U32:
                ((uint32_t *)t->data)[i] = (uint32_t)p->uint64_data[i];
                break;
            case LW_I64:
                ((int64_t *)t->data)[i] = p->int64_data[i];
                break;
            case LW_U64:
                ((uint64_t *)t->data)[i] = p->uint64_data[i];
                break;
            }
        }
    free(file.data);
    *out = t;
    return LW_OK;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ONNX raw data is copied as it is");

lw_status lw_tensor_read_pb(lw_tensor **out, const char *path, lw_error *err)
{
    bytes file;
    LW_TRY(read_range(&file, path, 0, -1, err));
    Onnx__TensorProto *p = onnx__tensor_proto__unpack(NULL, file.n, file.data);
    free(file.data);
    if (!p)
        return lw_fail(err, LW_E_INPUT, "%s: not an ONNX tensor", path);
    lw_status status = read_tensor(out, p, path, false, err);
    onnx__tensor_proto__free_unpacked(p, NULL);
    return status;
}

/* ---- the graph --------------------------------------------------------------------------------- */

typedef struct builder {
    lw_model *model;
    int *slots; /* open-addressing table of value names -> index + 1 */
    size_t n_slots;
    lw_error *err;
} builder;

static size_t hash(const char *s)
{
    size_t h = 14695981039346656037u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

static lw_status copy_text(char **out, const char *s, size_t n, lw_error *err)
{
    *out = strndup(s, n);
    return *out ? LW_OK : lw_fail_memory(err, n + 1);
}

static lw_status grow_slots(builder *b)
{
    size_t n = b->n_slots ? 2 * b->n_slots : 1024;
    int *slots = calloc(n, sizeof *slots);
    if (!slots)
        return lw_fail_memory(b->err, n * sizeof *slots);
    for (int i = 0; i < b->model->n_values; i++) {
        if (b->model->values[i].inner)
            continue;
        size_t at = hash(b->model->values[i].name) & (n - 1);
        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = i + 1;
    }
    free(b->slots);
    b->slots = slots;
    b->n_slots = n;
    return LW_OK;
}

static lw_status new_value(builder *b, const char *name, int *index)
{
    lw_model *m = b->model;
    if (m->n_values == m->values_capacity) {
        int capacity = 2 * m->values_capacity + 256;
        lw_value *grown = realloc(m->values, (size_t)capacity * sizeof *grown);
        if (!grown)
            return lw_fail_memory(b->err, (size_t)capacity * sizeof *grown);
        m->values = grown;
        m->values_capacity = capacity;
    }
    lw_value *v = &m->values[m->n_values];
    *v = (lw_value){.rank = -1, .last_use = -1};
    LW_TRY(copy_text(&v->name, name, strlen(name), b->err));
    *index = m->n_values++;
    return LW_OK;
}

/* The index of a value by name, made when new. */
static lw_status value_of(builder *b, const char *name, int *index)
{
    lw_model *m = b->model;
    if (2 * (size_t)(m->n_values + 1) > b->n_slots)
        LW_TRY(grow_slots(b));
    size_t at = hash(name) & (b->n_slots - 1);
    for (; b->slots[at]; at = (at + 1) & (b->n_slots - 1))
        if (strcmp(m->values[b->slots[at] - 1].name, name) == 0) {
            *index = b->slots[at] - 1;
            return LW_OK;
        }
    LW_TRY(new_value(b, name, index));
    b->slots[at] = *index + 1;
    return LW_OK;
}

/* ---- branches ---- */

/* The names that a branch gives to values of its own; they hide those of the graphs around it. */
typedef struct own_name {
    const char *text;
    int value;
} own_name;
typedef struct scope {
    const struct scope *outer;
    own_name *names; /* sorted */
    size_t n;
} scope;

static int by_text(const void *a, const void *b)
{
    return strcmp(((const own_name *)a)->text, ((const own_name *)b)->text);
}

/* The value that a name stands for where `s` (NULL: the main graph) is the innermost scope. */
static lw_status resolve(builder *b, const scope *s, const char *name, int *index)
{
    own_name key = {.text = name};
    for (; s; s = s->outer) {
        const own_name *found = s->n ? bsearch(&key, s->names, s->n, sizeof key, by_text) : NULL;
        if (found) {
            *index = found->value;
            return LW_OK;
        }
    }
    return value_of(b, name, index);
}

/* Values for what the branch's initializers and nodes make. */
static lw_status open_scope(builder *b, scope *s, const Onnx__GraphProto *g)
{
    size_t n = g->n_initializer, k = 0;
    for (size_t i = 0; i < g->n_node; i++)
        n += g->node[i]->n_output;
    s->names = malloc(n * sizeof *s->names + 1);
    if (!s->names)
        return lw_fail_memory(b->err, n * sizeof *s->names);
    for (size_t i = 0; i < g->n_initializer; i++)
        s->names[k++].text = text(g->initializer[i]->name);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t o = 0; o < g->node[i]->n_output; o++)
            if (*text(g->node[i]->output[o]))
                s->names[k++].text = g->node[i]->output[o];
    if (k)
        qsort(s->names, k, sizeof *s->names, by_text);
    for (size_t i = 0; i < k; i++)
        if (s->n == 0 || strcmp(s->names[s->n - 1].text, s->names[i].text) != 0) {
            s->names[s->n] = s->names[i];
            LW_TRY(new_value(b, s->names[s->n].text, &s->names[s->n].value));
            b->model->values[s->names[s->n++].value].inner = true;
        }
    return LW_OK;
}

static lw_status declare(builder *b, const Onnx__ValueInfoProto *info, int *index)
{
    LW_TRY(value_of(b, text(info->name), index));
    lw_value *v = &b->model->values[*index];
    if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return LW_OK;
    const Onnx__TypeProto__Tensor *type = info->type->tensor_type;
    v->declared = true;
    v->dtype_supported = nibbles_of(type->elem_type, &v->dtype) || dtype_of(type->elem_type, &v->dtype);
    if (!type->shape)
        return LW_OK;
    if (type->shape->n_dim > LW_MAX_RANK)
        return lw_fail(b->err, LW_E_INPUT, "%s: value %s has %zu dimensions: at most %d are supported",
                       b->model->path, v->name, type->shape->n_dim, LW_MAX_RANK);
    v->rank = (int)type->shape->n_dim;
    for (int k = 0; k < v->rank; k++) {
        const Onnx__TensorShapeProto__Dimension *d = type->shape->dim[k];
        v->dim[k] = LW_DIM_UNKNOWN;
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            v->dim[k] = d->dim_value;
        else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && !v->dim_name[k])
            LW_TRY(copy_text(&v->dim_name[k], text(d->dim_param), strlen(text(d->dim_param)), b->err));
    }
    return LW_OK;
}

static lw_status read_attr(builder *b, lw_attr *a, const Onnx__AttributeProto *p)
{
    lw_error *err = b->err;
    LW_TRY(copy_text(&a->name, text(p->name), strlen(text(p->name)), err));
    switch (p->type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        a->kind = LW_ATTR_INT;
        a->i = p->i;
        return LW_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        a->kind = LW_ATTR_FLOAT;
        a->f = p->f;
        return LW_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        a->kind = LW_ATTR_STRING;
        return copy_text(&a->s, p->s.data ? (const char *)p->s.data : "", p->s.len, err);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        a->kind = LW_ATTR_TENSOR;
        return p->t ? read_tensor(&a->t, p->t, b->model->path, b->model->from_memory, err)
                    : lw_fail(err, LW_E_INPUT, "%s: attribute %s holds no tensor", b->model->path, a->name);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        a->kind = LW_ATTR_INTS;
        a->n = (int64_t)p->n_ints;
        a->ints = malloc(p->n_ints * sizeof *a->ints + 1);
        if (!a->ints)
            return lw_fail_memory(err, p->n_ints * sizeof *a->ints);
        copy_bytes(a->ints, p->ints, p->n_ints * sizeof *a->ints);
        return LW_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        a->kind = LW_ATTR_FLOATS;
        a->n = (int64_t)p->n_floats;
        a->floats = malloc(p->n_floats * sizeof *a->floats + 1);
        if (!a->floats)
            return lw_fail_memory(err, p->n_floats * sizeof *a->floats);
        copy_bytes(a->floats, p->floats, p->n_floats * sizeof *a->floats);
        return LW_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: { /* one after the other, each with its NUL */
        size_t size = 1;
        for (size_t i = 0; i < p->n_strings; i++)
            size += p->strings[i].len + 1;
        a->kind = LW_ATTR_STRINGS;
        a->s = calloc(1, size);
        if (!a->s)
            return lw_fail_memory(err, size);
        for (size_t i = 0, at = 0; i < p->n_strings; at += p->strings[i++].len + 1)
            copy_bytes(a->s + at, p->strings[i].data, p->strings[i].len);
        a->n = (int64_t)p->n_strings;
        return LW_OK;
    }
    default:
        a->kind = LW_ATTR_OTHER; /* subgraphs, sparse tensors: no operator here takes them */
        return LW_OK;
    }
}

static lw_status read_links(builder *b, const scope *s, int **out, int *n_out, size_t n, char **names)
{
    *out = malloc(n * sizeof **out + 1);
    if (!*out)
        return lw_fail_memory(b->err, n * sizeof **out);
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = -1;
        if (names[i] && *names[i])
            LW_TRY(resolve(b, s, names[i], &(*out)[i]));
        *n_out = (int)i + 1;
    }
    return LW_OK;
}

static int imported_opset(const Onnx__ModelProto *p, const char *domain)
{
    for (size_t i = 0; i < p->n_opset_import; i++) {
        const char *d = text(p->opset_import[i]->domain);
        if (strcmp(strcmp(d, "ai.onnx") == 0 ? "" : d, domain) == 0)
            return p->opset_import[i]->version > INT_MAX ? INT_MAX : (int)p->opset_import[i]->version;
    }
    return *domain ? 1 : 0;
}

static lw_status read_node(builder *b, const scope *s, lw_node *node, const Onnx__NodeProto *p,
                           const Onnx__ModelProto *model, size_t number)
{
    char name[64];
    snprintf(name, sizeof name, "%.40s #%zu", text(p->op_type), number);
    const char *domain = strcmp(text(p->domain), "ai.onnx") == 0 ? "" : text(p->domain);
    LW_TRY(copy_text(&node->name, *text(p->name) ? p->name : name,
                     *text(p->name) ? strlen(p->name) : strlen(name), b->err));
    LW_TRY(copy_text(&node->op, text(p->op_type), strlen(text(p->op_type)), b->err));
    LW_TRY(copy_text(&node->domain, domain, strlen(domain), b->err));
    node->opset = imported_opset(model, domain);
    node->attrs = calloc(p->n_attribute + 1, sizeof *node->attrs);
    if (!node->attrs)
        return lw_fail_memory(b->err, p->n_attribute * sizeof *node->attrs);
    for (size_t i = 0; i < p->n_attribute; i++) {
        node->n_attrs = (int)i + 1;
        LW_TRY(read_attr(b, &node->attrs[i], p->attribute[i]));
    }
    LW_TRY(read_links(b, s, &node->in, &node->n_in, p->n_input, p->input));
    LW_TRY(read_links(b, s, &node->out, &node->n_out, p->n_output, p->output));
    node->impl = lw_op_find(node->domain, node->op, node->opset);
    return LW_OK;
}

static lw_status read_initializer(builder *b, const scope *s, const Onnx__TensorProto *p)
{
    lw_model *m = b->model;
    lw_tensor *t;
    int v;
    LW_TRY(resolve(b, s, text(p->name), &v));
    if (m->values[v].constant)
        return lw_fail(b->err, LW_E_INPUT, "%s: initializer %s stands twice", m->path, m->values[v].name);
    LW_TRY(read_tensor(&t, p, m->path, m->from_memory, b->err));
    m->values[v].constant = t;
    return LW_OK;
}

static lw_status read_nodes(builder *b, const scope *s, const Onnx__GraphProto *g, const Onnx__ModelProto *p,
                            int guard);

/* The nodes of one branch of the If `at`; its outputs become inputs of the If. */
static lw_status read_branch(builder *b, const scope *outer, int at, const Onnx__GraphProto *g,
                             const Onnx__ModelProto *p, bool wanted)
{
    lw_model *m = b->model;
    lw_node *node = &m->nodes[at];
    scope s = {.outer = outer};
    lw_status status = LW_OK;
    if (!g || node->n_in < 1 || node->in[0] < 0 || g->n_output != (size_t)node->n_out || g->n_input > 0)
        return lw_fail(b->err, LW_E_INPUT,
                       "%s: node %s: its condition and its branches' %d outputs are needed", m->path,
                       node->name, node->n_out);
    if (g->n_sparse_initializer > 0)
        return lw_fail(b->err, LW_E_INPUT, "%s: sparse initializers are not supported", m->path);
    lw_guard *guards = realloc(m->guards, (size_t)(m->n_guards + 1) * sizeof *guards);
    if (!guards)
        return lw_fail_memory(b->err, (size_t)(m->n_guards + 1) * sizeof *guards);
    m->guards = guards;
    guards[m->n_guards++] = (lw_guard){node->in[0], wanted, node->guard};
    int guard = m->n_guards, *in;
    LW_TRY_END(open_scope(b, &s, g));
    for (size_t i = 0; i < g->n_initializer; i++)
        LW_TRY_END(read_initializer(b, &s, g->initializer[i]));
    LW_TRY_END(read_nodes(b, &s, g, p, guard));
    node = &m->nodes[at]; /* they may have moved */
    in = realloc(node->in, ((size_t)node->n_in + g->n_output) * sizeof *in);
    if (!in) {
        status = lw_fail_memory(b->err, ((size_t)node->n_in + g->n_output) * sizeof *in);
        goto end;
    }
    node->in = in;
    for (size_t i = 0; i < g->n_output; i++) {
        LW_TRY_END(resolve(b, &s, text(g->output[i]->name), &in[node->n_in]));
        node->n_in++;
    }
end:
    free(s.names);
    return status;
}

static const Onnx__GraphProto *graph_of(const Onnx__NodeProto *p, const char *name)
{
    for (size_t i = 0; i < p->n_attribute; i++)
        if (strcmp(text(p->attribute[i]->name), name) == 0)
            return p->attribute[i]->g;
    return NULL;
}

/* All nodes of a graph, and those of its branches. */
static lw_status read_nodes(builder *b, const scope *s, const Onnx__GraphProto *g, const Onnx__ModelProto *p,
                            int guard)
{
    lw_model *m = b->model;
    if (g->n_node > INT_MAX / 8 - (size_t)m->n_nodes || g->n_initializer > INT_MAX / 8)
        return lw_fail(b->err, LW_E_INPUT, "%s: %zu nodes are more than can be handled", m->path, g->n_node);
    for (size_t i = 0; i < g->n_node; i++) {
        if (m->n_nodes == m->nodes_capacity) {
            int capacity = 2 * m->nodes_capacity + (int)g->n_node;
            lw_node *grown = realloc(m->nodes, (size_t)capacity * sizeof *grown);
            if (!grown)
                return lw_fail_memory(b->err, (size_t)capacity * sizeof *grown);
            m->nodes = grown;
            m->nodes_capacity = capacity;
        }
        int at = m->n_nodes++;
        m->nodes[at] = (lw_node){.guard = guard};
        LW_TRY(read_node(b, s, &m->nodes[at], g->node[i], p, (size_t)at));
        if (m->nodes[at].impl && strcmp(m->nodes[at].op, "If") == 0 && !*m->nodes[at].domain) {
            if (m->nodes[at].n_in != 1)
                return lw_fail(b->err, LW_E_INPUT, "%s: node %s: %d inputs", m->path, m->nodes[at].name,
                               m->nodes[at].n_in);
            LW_TRY(read_branch(b, s, at, graph_of(g->node[i], "then_branch"), p, true));
            LW_TRY(read_branch(b, s, at, graph_of(g->node[i], "else_branch"), p, false));
        }
    }
    return LW_OK;
}

/* Puts producers before consumers (the standard asks for that order; not all writers keep it) and finds names
 * that nothing makes, values that two nodes make, and cycles. */
static lw_status sort_nodes(builder *b)
{
    lw_model *m = b->model;
    int *maker = malloc((size_t)(m->n_values + 1) * sizeof *maker),
        *waiting = calloc((size_t)m->n_nodes + 1, sizeof *waiting);
    int *users = calloc((size_t)m->n_values + 2, sizeof *users), *user = NULL,
        *queue = malloc(((size_t)m->n_nodes + 1) * sizeof *queue);
    lw_node *sorted = calloc((size_t)m->n_nodes + 1, sizeof *sorted);
    lw_status status = LW_OK;
    int64_t links = 0;
    for (int i = 0; i < m->n_nodes; i++)
        for (int k = 0; lw_node_reads(m, &m->nodes[i], k) != LW_NO_MORE; k++)
            links++;
    user = malloc(((size_t)links + 1) * sizeof *user);
    if (!maker || !waiting || !users || !user || !queue || !sorted) {
        status = lw_fail_memory(b->err, (size_t)m->n_nodes * sizeof *sorted);
        goto end;
    }
    for (int i = 0; i < m->n_values; i++)
        maker[i] = m->values[i].constant || m->values[i].is_input ? -1 : -2;
    for (int i = 0; i < m->n_nodes; i++)
        for (int k = 0; k < m->nodes[i].n_out; k++) {
            int v = m->nodes[i].out[k];
            if (v < 0)
                continue;
            if (maker[v] != -2) {
                status = lw_fail(b->err, LW_E_INPUT, "%s: value %s is made twice (node %s)", m->path,
                                 m->values[v].name, m->nodes[i].name);
                goto end;
            }
            maker[v] = i;
        }
    for (int i = 0; i < m->n_nodes; i++)
        for (int k = 0, v; (v = lw_node_reads(m, &m->nodes[i], k)) != LW_NO_MORE; k++) {
            if (v < 0)
                continue;
            if (maker[v] == -2) {
                status = lw_fail(b->err, LW_E_INPUT, "%s: node %s reads %s, which nothing makes", m->path,
                                 m->nodes[i].name, m->values[v].name);
                goto end;
            }
            waiting[i] += maker[v] >= 0;
            users[v + 1]++;
        }
    for (int v = 0; v < m->n_values; v++)
        users[v + 1] += users[v];
    int *fill = malloc(((size_t)m->n_values + 1) * sizeof *fill);
    if (!fill) {
        status = lw_fail_memory(b->err, (size_t)m->n_values * sizeof *fill);
        goto end;
    }
    copy_bytes(fill, users, (size_t)m->n_values * sizeof *fill);
    for (int i = 0; i < m->n_nodes; i++)
        for (int k = 0, v; (v = lw_node_reads(m, &m->nodes[i], k)) != LW_NO_MORE; k++)
            if (v >= 0)
                user[fill[v]++] = i;
    free(fill);
    int head = 0, tail = 0;
    for (int i = 0; i < m->n_nodes; i++)
        if (waiting[i] == 0)
            queue[tail++] = i;
    while (head < tail) {
        int i = queue[head++];
        for (int k = 0; k < m->nodes[i].n_out; k++) {
            int v = m->nodes[i].out[k];
            for (int u = v < 0 ? 0 : users[v]; v >= 0 && u < users[v + 1]; u++)
                if (--waiting[user[u]] == 0)
                    queue[tail++] = user[u];
        }
    }
    if (tail < m->n_nodes) {
        for (int i = 0; i < m->n_nodes; i++)
            if (waiting[i] > 0) {
                status = lw_fail(b->err, LW_E_INPUT, "%s: the graph has a cycle through node %s", m->path,
                                 m->nodes[i].name);
                goto end;
            }
    }
    for (int i = 0; i < m->n_nodes; i++)
        sorted[i] = m->nodes[queue[i]];
    free(m->nodes);
    m->nodes = sorted;
    sorted = NULL;
end:
    free(maker), free(waiting), free(users), free(user), free(queue), free(sorted);
    return status;
}

static lw_status read_graph(builder *b, const Onnx__ModelProto *p)
{
    const Onnx__GraphProto *g = p->graph;
    lw_model *m = b->model;
    for (size_t i = 0; i < g->n_initializer; i++)
        LW_TRY(read_initializer(b, NULL, g->initializer[i]));
    if (g->n_sparse_initializer > 0)
        return lw_fail(b->err, LW_E_INPUT, "%s: sparse initializers are not supported", m->path);
    m->inputs = calloc(g->n_input + 1, sizeof *m->inputs);
    m->overridable = calloc(g->n_input + 1, sizeof *m->overridable);
    m->outputs = calloc(g->n_output + 1, sizeof *m->outputs);
    if (!m->inputs || !m->overridable || !m->outputs)
        return lw_fail_memory(b->err, g->n_node * sizeof *m->nodes);
    for (size_t i = 0; i < g->n_input; i++) {
        int v;
        LW_TRY(declare(b, g->input[i], &v));
        if (m->values[v].is_input)
            return lw_fail(b->err, LW_E_INPUT, "%s: input %s stands twice", m->path, m->values[v].name);
        m->values[v].is_input = true;
        if (m->values[v].constant)
            m->overridable[m->n_overridable++] = v;
        else
            m->inputs[m->n_inputs++] = v;
    }
    m->most_inputs = m->n_inputs + m->n_overridable;
    for (size_t i = 0; i < g->n_value_info; i++) {
        int v;
        LW_TRY(declare(b, g->value_info[i], &v));
    }
    LW_TRY(read_nodes(b, NULL, g, p, 0));
    for (size_t i = 0; i < g->n_output; i++) {
        int v;
        LW_TRY(declare(b, g->output[i], &v));
        m->values[v].is_output = true;
        m->outputs[m->n_outputs++] = v;
    }
    LW_TRY(sort_nodes(b));
    bool *made = calloc((size_t)m->n_values + 1, 1);
    if (!made)
        return lw_fail_memory(b->err, (size_t)m->n_values);
    for (int i = 0; i < m->n_nodes; i++) {
        for (int k = 0, v; (v = lw_node_reads(m, &m->nodes[i], k)) != LW_NO_MORE; k++)
            if (v >= 0)
                m->values[v].last_use = i;
        for (int k = 0; k < m->nodes[i].n_out; k++)
            if (m->nodes[i].out[k] >= 0)
                made[m->nodes[i].out[k]] = true;
    }
    lw_status status = LW_OK;
    for (int i = 0; i < m->n_outputs && status == LW_OK; i++) {
        const lw_value *v = &m->values[m->outputs[i]];
        if (!made[m->outputs[i]] && !v->constant && !v->is_input)
            status = lw_fail(b->err, LW_E_INPUT, "%s: nothing makes the output %s", m->path, v->name);
    }
    free(made);
    return status;
}

/* path NULL: from memory. */
static lw_status parse_model(lw_model **out, const uint8_t *data, size_t size, const char *path,
                             lw_error *err)
{
    const char *name = path ? path : "memory";
    if (size == 0)
        return lw_fail(err, LW_E_INPUT, "%s: the file is empty", name);
    if (too_deep(data, data + size, MODEL, 0))
        return lw_fail(err, LW_E_INPUT, "%s: not an ONNX model: messages nested more than %d deep", name,
                       MAX_NESTING);
    Onnx__ModelProto *p = onnx__model_proto__unpack(NULL, size, data);
    if (!p || !p->graph || p->n_opset_import == 0) {
        if (p)
            onnx__model_proto__free_unpacked(p, NULL);
        return lw_fail(err, LW_E_INPUT, "%s: not an ONNX model, or cut short", name);
    }
    builder b = {.model = calloc(1, sizeof(lw_model)), .err = err};
    lw_status status =
        b.model ? copy_text(&b.model->path, name, strlen(name), err) : lw_fail_memory(err, sizeof *b.model);
    if (status == LW_OK)
        status = copy_text(&b.model->producer, text(p->producer_name), strlen(text(p->producer_name)), err);
    if (status == LW_OK) {
        b.model->from_memory = !path;
        b.model->ir_version = (int)p->ir_version;
        b.model->opset = imported_opset(p, "");
        status = read_graph(&b, p);
    }
    onnx__model_proto__free_unpacked(p, NULL);
    free(b.slots);
    if (status != LW_OK) {
        lw_model_free(b.model);
        return status;
    }
    *out = b.model;
    return LW_OK;
}

lw_status lw_model_read(lw_model **out, const char *path, lw_error *err)
{
    bytes file = {0};
    LW_TRY(read_range(&file, path, 0, -1, err));
    lw_status status = parse_model(out, file.data, file.n, path, err);
    free(file.data);
    return status;
}

lw_status lw_model_read_memory(lw_model **out, const void *data, size_t size, lw_error *err)
{
    return parse_model(out, data, size, NULL, err);
}
