/* layer.c - single layers by name: each is one or two of ONNX's operators, with names for its inputs that a
 * person can remember. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/numbers.h"
#include "infer/network.h"
#include "infer/ops_quant.h"
#include "infer/quantize.h"

enum { MOST_INPUTS = 12, MOST_SETTINGS = 8, MOST_LIST = 8 };

typedef struct input {
    const char *name;
    bool optional;
} input;

typedef enum setting_kind { WHOLE, WHOLE_LIST, REAL, WORD } setting_kind;

typedef struct setting {
    const char *name, *attribute; /* as people and as ONNX say it */
    setting_kind kind;
} setting;

typedef struct kind {
    const char *name, *what;
    const char *domain, *op;
    int opset;
    input inputs[MOST_INPUTS + 1];
    setting settings[MOST_SETTINGS + 1];
    const char *fixed; /* an integer attribute that is always 1; NULL: none */
    bool times_input;  /* the result is multiplied with the first input (SiLU) */
    int spatial;       /* dimensions that the first input must have beside batch and channels; 0: any */
} kind;

#define WINDOW                                                                                               \
    {"stride", "strides", WHOLE_LIST}, {"dilation", "dilations", WHOLE_LIST}, {"pads", "pads", WHOLE_LIST},  \
    {                                                                                                        \
        "auto-pad", "auto_pad", WORD                                                                         \
    }
#define CONV                                                                                                 \
    {{"x", false},     {"x-scale", false}, {"x-zero", true}, {"w", false},   {"w-scale", false},             \
     {"w-zero", true}, {"y-scale", false}, {"y-zero", true}, {"bias", true}, {NULL, false}},                 \
    {                                                                                                        \
        WINDOW, {"groups", "group", WHOLE},                                                                  \
        {                                                                                                    \
            NULL, NULL, WHOLE                                                                                \
        }                                                                                                    \
    }
#define POOL                                                                                                 \
    {{"x", false}, {NULL, false}},                                                                           \
    {                                                                                                        \
        {"kernel", "kernel_shape", WHOLE_LIST}, WINDOW, {"ceil", "ceil_mode", WHOLE},                        \
            {"count-pads", "count_include_pad", WHOLE},                                                      \
        {                                                                                                    \
            NULL, NULL, WHOLE                                                                                \
        }                                                                                                    \
    }
#define UNARY                                                                                                \
    {{"x", false}, {NULL, false}},                                                                           \
    {                                                                                                        \
        {                                                                                                    \
            NULL, NULL, WHOLE                                                                                \
        }                                                                                                    \
    }
#define BINARY_Q                                                                                             \
    {{"x", false},     {"x-scale", false}, {"x-zero", true}, {"b", false}, {"b-scale", false},               \
     {"b-zero", true}, {"y-scale", false}, {"y-zero", true}, {NULL, false}},                                 \
    {                                                                                                        \
        {                                                                                                    \
            NULL, NULL, WHOLE                                                                                \
        }                                                                                                    \
    }
#define TABLE_Q                                                                                              \
    {                                                                                                        \
        {"x", false}, {"x-scale", false}, {"x-zero", true}, {"y-scale", false}, {"y-zero", true},            \
        {                                                                                                    \
            NULL, false                                                                                      \
        }                                                                                                    \
    }
static const char onnx[] = "", microsoft[] = "com.microsoft", lanewise[] = "lanewise";

static const kind kinds[] = {
    {"linear",
     "y = x * transpose(w) + bias, w as outputs x inputs; all 8-bit, bias int32",
     microsoft,
     "QGemm",
     1,
     {{"x", false},
      {"x-scale", false},
      {"x-zero", true},
      {"w", false},
      {"w-scale", false},
      {"w-zero", true},
      {"bias", true},
      {"y-scale", true},
      {"y-zero", true},
      {NULL, false}},
     {{NULL, NULL, WHOLE}},
     "transB",
     false,
     0},
    {"linear-dynamic",
     "float x quantized on the fly (uint8), times 8-bit w (inputs x outputs), to float",
     microsoft,
     "DynamicQuantizeMatMul",
     1,
     {{"x", false}, {"w", false}, {"w-scale", false}, {"w-zero", true}, {"bias", true}, {NULL, false}},
     {{NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"matmul",
     "8-bit product of the last two dimensions, requantized",
     onnx,
     "QLinearMatMul",
     17,
     {{"x", false},
      {"x-scale", false},
      {"x-zero", true},
      {"w", false},
      {"w-scale", false},
      {"w-zero", true},
      {"y-scale", false},
      {"y-zero", true},
      {NULL, false}},
     {{NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"matmul-integer",
     "8-bit product to int32",
     onnx,
     "MatMulInteger",
     17,
     {{"x", false}, {"w", false}, {"x-zero", true}, {"w-zero", true}, {NULL, false}},
     {{NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"conv1d", "8-bit convolution of batch x channels x length", onnx, "QLinearConv", 17, CONV, NULL, false,
     1},
    {"conv2d", "8-bit convolution of batch x channels x height x width", onnx, "QLinearConv", 17, CONV, NULL,
     false, 2},
    {"add", "8-bit sum", microsoft, "QLinearAdd", 1, BINARY_Q, NULL, false, 0},
    {"mul", "8-bit product by element", microsoft, "QLinearMul", 1, BINARY_Q, NULL, false, 0},
    {"quantize",
     "float to int8, or to the type of y-zero's file",
     onnx,
     "QuantizeLinear",
     17,
     {{"x", false}, {"y-scale", false}, {"y-zero", true}, {NULL, false}},
     {{"axis", "axis", WHOLE}, {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"dequantize",
     "8 bits or int32 to float",
     onnx,
     "DequantizeLinear",
     17,
     {{"x", false}, {"x-scale", false}, {"x-zero", true}, {NULL, false}},
     {{"axis", "axis", WHOLE}, {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"embedding",
     "rows of a table",
     onnx,
     "Gather",
     17,
     {{"table", false}, {"x", false}, {NULL, false}},
     {{"axis", "axis", WHOLE}, {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"softmax",
     "softmax along an axis (default: the last)",
     onnx,
     "Softmax",
     17,
     {{"x", false}, {NULL, false}},
     {{"axis", "axis", WHOLE}, {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"layernorm",
     "layer normalization from an axis on (default: the last)",
     onnx,
     "LayerNormalization",
     17,
     {{"x", false}, {"scale", false}, {"bias", true}, {NULL, false}},
     {{"axis", "axis", WHOLE}, {"epsilon", "epsilon", REAL}, {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"batchnorm",
     "batch normalization with given statistics",
     onnx,
     "BatchNormalization",
     17,
     {{"x", false}, {"scale", false}, {"bias", false}, {"mean", false}, {"variance", false}, {NULL, false}},
     {{"epsilon", "epsilon", REAL}, {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"maxpool", "largest of each window", onnx, "MaxPool", 17, POOL, NULL, false, 0},
    {"averagepool", "mean of each window", onnx, "AveragePool", 17, POOL, NULL, false, 0},
    {"globalaveragepool", "mean of each channel", onnx, "GlobalAveragePool", 17, UNARY, NULL, false, 0},
    {"relu", "max(x, 0)", onnx, "Relu", 17, UNARY, NULL, false, 0},
    {"leakyrelu",
     "x, or alpha * x below 0",
     onnx,
     "LeakyRelu",
     17,
     {{"x", false}, {NULL, false}},
     {{"alpha", "alpha", REAL}, {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"clip",
     "x within [min, max]",
     onnx,
     "Clip",
     17,
     {{"x", false}, {"min", true}, {"max", true}, {NULL, false}},
     {{NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"sigmoid", "1 / (1 + exp(-x))", onnx, "Sigmoid", 17, UNARY, NULL, false, 0},
    {"tanh", "tanh(x)", onnx, "Tanh", 17, UNARY, NULL, false, 0},
    {"silu", "x * sigmoid(x)", onnx, "Sigmoid", 17, UNARY, NULL, true, 0},
    {"gelu",
     "x * normal distribution function of x; approximate=tanh for the other form",
     onnx,
     "Gelu",
     20,
     {{"x", false}, {NULL, false}},
     {{"approximate", "approximate", WORD}, {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"lstm",
     "long short-term memory, ONNX's gate order",
     onnx,
     "LSTM",
     17,
     {{"x", false},
      {"w", false},
      {"r", false},
      {"bias", true},
      {"lengths", true},
      {"h0", true},
      {"c0", true},
      {"peepholes", true},
      {NULL, false}},
     {{"direction", "direction", WORD},
      {"clip", "clip", REAL},
      {"layout", "layout", WHOLE},
      {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {"gru",
     "gated recurrent unit, ONNX's gate order",
     onnx,
     "GRU",
     17,
     {{"x", false},
      {"w", false},
      {"r", false},
      {"bias", true},
      {"lengths", true},
      {"h0", true},
      {NULL, false}},
     {{"direction", "direction", WORD},
      {"linear-before-reset", "linear_before_reset", WHOLE},
      {"clip", "clip", REAL},
      {"layout", "layout", WHOLE},
      {NULL, NULL, WHOLE}},
     NULL,
     false,
     0},
    {.name = "linear-rows",
     .what = "float x, each row quantized on the fly (uint8), times 8-bit w (inputs x outputs), to float",
     .domain = lanewise,
     .op = "DynamicRowsMatMul",
     .opset = 1,
     .inputs = {{"x", false}, {"w", false}, {"w-scale", false}, {"w-zero", true}, {"bias", true}}},
    {.name = "attention",
     .what = "softmax(q k * scale + mask) v, all products of 8-bit integers; without y-scale to float",
     .domain = lanewise,
     .op = "QLinearAttention",
     .opset = 1,
     .inputs = {{"q", false},
                {"q-scale", false},
                {"q-zero", true},
                {"k", false},
                {"k-scale", false},
                {"k-zero", true},
                {"v", false},
                {"v-scale", false},
                {"v-zero", true},
                {"y-scale", true},
                {"y-zero", true},
                {"mask", true}},
     .settings = {{"scale", "scale", REAL}, {"causal", "causal", WHOLE}}},
    {.name = "lstm-int8",
     .what = "LSTM with 8-bit w (directions x inputs x 4 hidden) and r (directions x hidden x 4 hidden)",
     .domain = microsoft,
     .op = "DynamicQuantizeLSTM",
     .opset = 1,
     .inputs = {{"x", false},
                {"w", false},
                {"r", false},
                {"bias", true},
                {"lengths", true},
                {"h0", true},
                {"c0", true},
                {"peepholes", true},
                {"w-scale", false},
                {"w-zero", true},
                {"r-scale", false},
                {"r-zero", true}},
     .settings = {{"direction", "direction", WORD}}},
    {.name = "gru-int8",
     .what = "GRU with 8-bit w (directions x inputs x 3 hidden) and r (directions x hidden x 3 hidden)",
     .domain = lanewise,
     .op = "DynamicQuantizeGRU",
     .opset = 1,
     .inputs = {{"x", false},
                {"w", false},
                {"r", false},
                {"bias", true},
                {"lengths", true},
                {"h0", true},
                {"w-scale", false},
                {"w-zero", true},
                {"r-scale", false},
                {"r-zero", true}},
     .settings = {{"direction", "direction", WORD}, {"linear-before-reset", "linear_before_reset", WHOLE}}},
    {.name = "softmax-int8",
     .what = "8-bit softmax",
     .domain = microsoft,
     .op = "QLinearSoftmax",
     .opset = 1,
     .inputs = TABLE_Q,
     .settings = {{"axis", "axis", WHOLE}}},
    {.name = "sigmoid-int8",
     .what = "8-bit 1 / (1 + exp(-x))",
     .domain = microsoft,
     .op = "QLinearSigmoid",
     .opset = 1,
     .inputs = TABLE_Q},
    {.name = "leakyrelu-int8",
     .what = "8-bit x, or alpha * x below 0",
     .domain = microsoft,
     .op = "QLinearLeakyRelu",
     .opset = 1,
     .inputs = TABLE_Q,
     .settings = {{"alpha", "alpha", REAL}}},
    {.name = "averagepool-int8",
     .what = "8-bit mean of each window",
     .domain = microsoft,
     .op = "QLinearAveragePool",
     .opset = 1,
     .inputs = TABLE_Q,
     .settings = {{"kernel", "kernel_shape", WHOLE_LIST},
                  WINDOW,
                  {"ceil", "ceil_mode", WHOLE},
                  {"count-pads", "count_include_pad", WHOLE}}},
    {.name = "globalaveragepool-int8",
     .what = "8-bit mean of each channel",
     .domain = microsoft,
     .op = "QLinearGlobalAveragePool",
     .opset = 1,
     .inputs = TABLE_Q},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* What --quantize makes 8-bit: weights, each followed by its scale and zero point by name, and the dimensions
 * along which the scales vary, with one for each channel and with one for all. */
enum { LAST_AXIS = 1 << LW_MAX_RANK }; /* whatever its number */
static const struct {
    const char *kind, *weight;
    unsigned each, all;
} quantizable[] = {{"linear", "w", 1, 0},
                   {"linear-dynamic", "w", LAST_AXIS, 0},
                   {"linear-rows", "w", LAST_AXIS, 0},
                   {"matmul", "w", LAST_AXIS, 0},
                   {"conv1d", "w", 1, 0},
                   {"conv2d", "w", 1, 0},
                   {"lstm-int8", "w", 1 | 1 << 2, 1},
                   {"lstm-int8", "r", 1 | 1 << 2, 1},
                   {"gru-int8", "w", 1 | 1 << 2, 1},
                   {"gru-int8", "r", 1 | 1 << 2, 1}};
enum { N_QUANTIZABLE = sizeof quantizable / sizeof *quantizable };

void lw_layer_list(void (*line)(void *user, const char *text), void *user)
{
    for (int i = 0; i < N_KINDS; i++) {
        char text[600];
        int n = snprintf(text, sizeof text, "%-22s %s\n%-22s   inputs:", kinds[i].name, kinds[i].what, "");
        for (const input *in = kinds[i].inputs; in->name; in++)
            n += snprintf(text + n, sizeof text - (size_t)n, in->optional ? " [%s]" : " %s", in->name);
        for (const setting *s = kinds[i].settings; s->name; s++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s",
                          s == kinds[i].settings ? "  settings: " : " ", s->name);
        line(user, text);
    }
}

static lw_status kind_of(const char *name, const kind **out, lw_error *err)
{
    char known[600] = "";
    for (int i = 0; i < N_KINDS; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out = &kinds[i];
            return LW_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", kinds[i].name);
    }
    return lw_fail(err, LW_E_ARG, "no layer is called '%s'; there are: %s", name, known);
}

/* ---- settings -> attributes ---------------------------------------------------------------------- */

static lw_status set_attribute(lw_attr *a, const setting *s, const char *text, lw_error *err)
{
    double real;
    int n;
    a->name = strdup(s->attribute);
    if (!a->name)
        return lw_fail_memory(err, strlen(s->attribute));
    switch (s->kind) {
    case WHOLE:
        a->kind = LW_ATTR_INT;
        return lw_parse_int(text, s->name, INT32_MIN, INT32_MAX, &a->i, err);
    case REAL:
        a->kind = LW_ATTR_FLOAT;
        LW_TRY(lw_parse_double(text, s->name, -3e38, 3e38, &real, err));
        a->f = (float)real;
        return LW_OK;
    case WORD:
        a->kind = LW_ATTR_STRING;
        a->s = strdup(text);
        return a->s ? LW_OK : lw_fail_memory(err, strlen(text));
    case WHOLE_LIST:
        a->kind = LW_ATTR_INTS;
        a->ints = malloc(MOST_LIST * sizeof *a->ints);
        if (!a->ints)
            return lw_fail_memory(err, MOST_LIST * sizeof *a->ints);
        LW_TRY(lw_parse_int_list(text, s->name, INT32_MIN, INT32_MAX, a->ints, MOST_LIST, &n, err));
        a->n = n;
        return LW_OK;
    }
    return LW_OK;
}

static lw_status settings_of(lw_node *node, const kind *k, const lw_layer_job *job, lw_error *err)
{
    node->attrs = calloc((size_t)job->n_settings + 2, sizeof *node->attrs);
    if (!node->attrs)
        return lw_fail_memory(err, (size_t)job->n_settings * sizeof *node->attrs);
    for (int i = 0; i < job->n_settings; i++) {
        const setting *s = k->settings;
        while (s->name && strcmp(s->name, job->settings[i].name) != 0)
            s++;
        if (!s->name)
            return lw_fail(err, LW_E_ARG, "layer %s has no setting '%s'", k->name, job->settings[i].name);
        for (int j = 0; j < i; j++)
            if (strcmp(job->settings[j].name, s->name) == 0)
                return lw_fail(err, LW_E_ARG, "layer %s: the setting '%s' is given twice", k->name, s->name);
        node->n_attrs++;
        LW_TRY(set_attribute(&node->attrs[i], s, job->settings[i].text, err));
    }
    if (k->fixed) {
        static const setting always = {"", "", WHOLE};
        setting s = always;
        s.attribute = k->fixed;
        LW_TRY(set_attribute(&node->attrs[node->n_attrs++], &s, "1", err));
    }
    return LW_OK;
}

/* ---- inputs -------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A number on the command line: zero points have the type of the tensor they belong to (the output's: that of
 * x, or int8 where x is no integer tensor) and, where each scale has its own, the shape of `scales` (NULL:
 * one number); all else is float32. */
static lw_status from_number(lw_tensor **out, const char *name, const char *text, const lw_tensor *owner,
                             const lw_tensor *scales, lw_error *err)
{
    if (!ends_with(name, "-zero")) {
        double value;
        LW_TRY(lw_parse_double(text, name, -3e38, 3e38, &value, err));
        LW_TRY(lw_tensor_new(out, LW_F32, 0, NULL, err));
        *(float *)(*out)->data = (float)value;
        return LW_OK;
    }
    bool whole = owner && (lw_dtype_is_quantized(owner->dtype) || owner->dtype == LW_I32);
    lw_dtype dtype = whole ? owner->dtype : LW_I8;
    int32_t low = INT32_MIN, high = INT32_MAX;
    int64_t value;
    if (dtype != LW_I32)
        lw_dtype_range(dtype, &low, &high);
    LW_TRY(lw_parse_int(text, name, low, high, &value, err));
    LW_TRY(lw_tensor_new(out, dtype, scales ? scales->rank : 0, scales ? scales->dim : NULL, err));
    for (int64_t i = 0; i < (*out)->count; i++)
        if (dtype == LW_I32)
            ((int32_t *)(*out)->data)[i] = (int32_t)value;
        else
            lw_quant_store(*out, i, (int32_t)value);
    return LW_OK;
}

/* Whether a value is the name of a tensor's file: .npy, '-', or what is there and is no number (/dev/fd/63).
 */
static bool names_a_file(const char *text)
{
    double value;
    lw_error none = {0};
    return ends_with(text, ".npy") || strcmp(text, "-") == 0 ||
           (access(text, F_OK) == 0 && lw_parse_double(text, "", -3e38, 3e38, &value, &none) != LW_OK);
}

static const lw_layer_value *find(const lw_layer_job *job, const char *name)
{
    for (int i = 0; i < job->n_inputs; i++)
        if (strcmp(job->inputs[i].name, name) == 0)
            return &job->inputs[i];
    return NULL;
}

static int index_of(const kind *k, const char *name)
{
    for (int i = 0; k->inputs[i].name; i++)
        if (strcmp(k->inputs[i].name, name) == 0)
            return i;
    return -1;
}

/* The tensor that a zero point belongs to: "w" of "w-zero"; of the output's, x. */
static const lw_tensor *owner_of(const kind *k, const char *name, lw_tensor *const *in)
{
    char owner[32];
    snprintf(owner, sizeof owner, "%.*s", (int)(strlen(name) - strlen("-zero")), name);
    return in[strcmp(owner, "y") == 0 || index_of(k, owner) < 0 ? 0 : index_of(k, owner)];
}

/* Whether `name` is the scale or the zero point of a weight that --quantize makes. */
static bool made_by_quantizing(const kind *k, const lw_layer_job *job, const char *name)
{
    for (int i = 0; job->quantize && i < N_QUANTIZABLE; i++) {
        size_t n = strlen(quantizable[i].weight);
        if (strcmp(quantizable[i].kind, k->name) == 0 && strncmp(name, quantizable[i].weight, n) == 0 &&
            (strcmp(name + n, "-scale") == 0 || strcmp(name + n, "-zero") == 0))
            return true;
    }
    return false;
}

/* Saves one of what --quantize made: PREFIX-NAME.npy. */
static lw_status save(const lw_layer_job *job, const char *name, const char *what, const lw_tensor *t,
                      struct lw_temporaries *temporaries, lw_error *err)
{
    char path[4096];
    if (!job->save_weights)
        return LW_OK;
    if (snprintf(path, sizeof path, "%s-%s%s.npy", job->save_weights, name, what) >= (int)sizeof path)
        return lw_fail(err, LW_E_ARG, "--save-weights %s: the path is too long", job->save_weights);
    return lw_tensor_write_npy(t, path, temporaries, err);
}

/* Float weights become 8-bit ones, with their scales and zero points. */
static lw_status quantize_inputs(const kind *k, const lw_layer_job *job, lw_tensor **in,
                                 struct lw_temporaries *temporaries, lw_error *err)
{
    static const char *const ways[] = {"tensor", "channel", "tensor-asymmetric", "channel-asymmetric"};
    int way = 0;
    while (way < 4 && strcmp(job->quantize, ways[way]) != 0)
        way++;
    if (way == 4)
        return lw_fail(err, LW_E_ARG,
                       "--quantize %s: tensor, channel, tensor-asymmetric or channel-asymmetric is expected",
                       job->quantize);
    int found = 0;
    for (int i = 0; i < N_QUANTIZABLE; i++) {
        const char *name = quantizable[i].weight;
        if (strcmp(quantizable[i].kind, k->name) != 0)
            continue;
        found++;
        char scale_name[32], zero_name[32];
        snprintf(scale_name, sizeof scale_name, "%s-scale", name);
        snprintf(zero_name, sizeof zero_name, "%s-zero", name);
        if (find(job, scale_name) || find(job, zero_name))
            return lw_fail(err, LW_E_ARG, "--quantize makes %s and %s: they cannot be given", scale_name,
                           zero_name);
        int at = index_of(k, name), at_scale = index_of(k, scale_name), at_zero = index_of(k, zero_name);
        unsigned axes = way % 2 ? quantizable[i].each : quantizable[i].all;
        if (axes == LAST_AXIS)
            axes = in[at]->rank ? 1u << (in[at]->rank - 1) : 0;
        lw_tensor *q = NULL;
        lw_error inner = {0};
        lw_status status =
            lw_quantize_weights(in[at], axes, way < 2, &q, &in[at_scale], &in[at_zero], &inner);
        if (status != LW_OK) {
            lw_tensor_release(q);
            return lw_fail(err, status, "layer %s: %s: %s", k->name, name, inner.message);
        }
        lw_tensor_release(in[at]);
        in[at] = q;
        LW_TRY(save(job, name, "", in[at], temporaries, err));
        LW_TRY(save(job, name, "-scale", in[at_scale], temporaries, err));
        LW_TRY(save(job, name, "-zero", in[at_zero], temporaries, err));
    }
    return found ? LW_OK : lw_fail(err, LW_E_ARG, "layer %s has no weights to quantize", k->name);
}

static lw_status inputs_of(const kind *k, const lw_layer_job *job, lw_tensor **in, lw_error *err)
{
    for (int i = 0; i < job->n_inputs; i++) {
        if (index_of(k, job->inputs[i].name) < 0)
            return lw_fail(err, LW_E_ARG, "layer %s has no input '%s'", k->name, job->inputs[i].name);
        if (find(job, job->inputs[i].name) != &job->inputs[i])
            return lw_fail(err, LW_E_ARG, "layer %s: the input '%s' is given twice", k->name,
                           job->inputs[i].name);
    }
    bool each = strcmp(k->op, "QuantizeLinear") == 0 || strcmp(k->op, "DequantizeLinear") == 0;
    for (int pass = 0; pass < 2; pass++) /* tensors first: they say the types of zero points */
        for (int i = 0; k->inputs[i].name; i++) {
            const char *name = k->inputs[i].name;
            const lw_layer_value *v = find(job, name);
            bool is_file = v && names_a_file(v->text), is_zero = ends_with(name, "-zero");
            const lw_tensor *owner = is_zero ? owner_of(k, name, in) : NULL;
            const lw_tensor *scales = is_zero && each ? in[1] : NULL;
            if (v && pass == 0 && is_file)
                LW_TRY(lw_tensor_read_npy(&in[i], v->text, err));
            else if (v && pass == 1 && !is_file)
                LW_TRY(from_number(&in[i], name, v->text, owner, scales, err));
            else if (!v && pass == 1 && !k->inputs[i].optional && !made_by_quantizing(k, job, name))
                return lw_fail(err, LW_E_ARG, "layer %s needs the input '%s'", k->name, name);
            else if (!v && pass == 1 && is_zero && !made_by_quantizing(k, job, name) &&
                     (strcmp(name, "y-zero") != 0 || find(job, "y-scale")))
                LW_TRY(from_number(&in[i], name, "0", owner, scales, err));
        }
    return LW_OK;
}

/* ---- running ------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lw_status times(lw_network *n, lw_tensor *x, lw_tensor **y, lw_error *err)
{
    lw_node node = {.name = (char *)"times",
                    .op = (char *)"Mul",
                    .domain = (char *)"",
                    .opset = 17,
                    .n_in = 2,
                    .n_out = 1};
    lw_tensor *in[2] = {x, *y}, *out[1] = {NULL};
    lw_op_call call = {.node = &node, .in = in, .n_in = 2, .out = out, .n_out = 1};
    node.impl = lw_op_find("", "Mul", 17);
    LW_TRY(lw_network_run_call(n, &call, err));
    lw_tensor_release(*y);
    *y = out[0];
    return LW_OK;
}

lw_status lw_layer_run_files(const lw_layer_job *job, double *seconds, struct lw_temporaries *temporaries,
                             const lw_host *host, lw_error *err)
{
    const kind *k = NULL;
    lw_network n = {.host = host};
    lw_node node = {0};
    lw_tensor *in[MOST_INPUTS] = {NULL}, *out[3] = {NULL};
    lw_status status = LW_OK;
    char text[200];
    LW_TRY(kind_of(job->kind, &k, err));
    node.name = (char *)k->name;
    node.op = (char *)k->op;
    node.domain = (char *)k->domain;
    node.opset = k->opset;
    for (node.n_in = 0; k->inputs[node.n_in].name; node.n_in++)
        ;
    node.n_out = 1;
    node.impl = lw_op_find(k->domain, k->op, k->opset);
    LW_TRY_END(lw_infer_backend_choose(&n.backend, job->backend, host, err));
    LW_TRY_END(lw_pool_open_team(&n.pool, job->threads, err));
    LW_TRY_END(lw_network_attach(&n, err));
    LW_TRY_END(settings_of(&node, k, job, err));
    LW_TRY_END(inputs_of(k, job, in, err));
    if (job->quantize)
        LW_TRY_END(quantize_inputs(k, job, in, temporaries, err));
    if (k->spatial && in[0]->rank != 2 + k->spatial) {
        status = lw_fail(err, LW_E_INPUT, "layer %s: x is %s; it must have %d dimensions", k->name,
                         lw_tensor_text(in[0], text, sizeof text), 2 + k->spatial);
        goto end;
    }
    for (int i = 0; i < node.n_in; i++)
        if (in[i])
            lw_say(host, LW_SAY_INFO, "%s: %s", k->inputs[i].name, lw_tensor_text(in[i], text, sizeof text));
    lw_op_call call = {.node = &node, .in = in, .n_in = node.n_in, .out = out, .n_out = 1};
    lw_error inner = {0};
    double start = now();
    status = lw_network_run_call(&n, &call, &inner);
    if (status == LW_OK && k->times_input)
        status = times(&n, in[0], &out[0], &inner);
    if (status == LW_OK)
        status = lw_network_fetch(&n, out[0], &inner);
    if (seconds)
        *seconds = now() - start;
    if (status != LW_OK) {
        lw_fail(err, status, "layer %s: %s", k->name, inner.message);
        goto end;
    }
    lw_say(host, LW_SAY_INFO, "y: %s", lw_tensor_text(out[0], text, sizeof text));
    status = lw_tensor_write_npy(out[0], job->output, temporaries, err);
end:
    for (int i = 0; i < MOST_INPUTS; i++)
        lw_tensor_release(in[i]);
    lw_tensor_release(out[0]);
    for (int i = 0; i < node.n_attrs; i++)
        lw_attr_free(&node.attrs[i]);
    free(node.attrs);
    lw_network_detach(&n);
    lw_pool_close(n.pool);
    return status;
}
