/* ops_einsum.c - Einsum of floats, by plain loops over all labels. The dimensions of an ellipsis have digits
 * for labels, from the last one backwards. */
#include <ctype.h>
#include <string.h>

#include "common/fail.h"
#include "infer/op.h"

enum { MOST_INPUTS = 4, MOST_LABELS = 16 };

typedef struct sum_of_products {
    int n_labels, n_out;
    char label[MOST_LABELS]; /* those of the output first, in its order */
    int64_t dim[MOST_LABELS], stride[MOST_INPUTS][MOST_LABELS];
} sum_of_products;

/* The place of a label, which is added unless it is there; -1: no room. */
static int place_of(sum_of_products *s, char label)
{
    for (int i = 0; i < s->n_labels; i++)
        if (s->label[i] == label)
            return i;
    if (s->n_labels == MOST_LABELS)
        return -1;
    s->label[s->n_labels] = label;
    s->dim[s->n_labels] = -1;
    return s->n_labels++;
}

enum { MOST_TEXT = 256 };

/* How many dimensions of x the ellipsis in a term stands for; -1: the term has none. */
static int ellipsis_of(const char *term, const char *end, const lw_tensor *x)
{
    int labels = 0;
    const char *dots = NULL;
    for (const char *p = term; p < end; p++)
        if (isalpha((unsigned char)*p))
            labels++;
        else if (!dots && end - p >= 3 && memcmp(p, "...", 3) == 0)
            dots = p;
    return !dots ? -1 : x->rank - labels;
}

/* Appends a term to `to`, its ellipsis as the last `dims` of the digits for `most`. NULL: no room. */
static char *write_term(char *to, const char *to_end, const char *term, const char *end, int most, int dims)
{
    for (const char *p = term; p < end && to < to_end; p++) {
        if (dims < 0 || end - p < 3 || memcmp(p, "...", 3) != 0) {
            *to++ = *p;
            continue;
        }
        for (int i = most - dims; i < most && to < to_end; i++)
            *to++ = (char)('0' + i);
        dims = -1; /* another one stays and is refused */
        p += 2;
    }
    return to < to_end ? to : NULL;
}

/* The equation without blanks and with digits for ellipses; without an output that is told. */
static lw_status plain_equation(const lw_op_call *c, char text[MOST_TEXT], lw_error *err)
{
    const char *equation = lw_node_string(c->node, "equation", "");
    char squeezed[MOST_TEXT];
    size_t n = 0;
    int most = 0, input = 0;
    for (const char *p = equation; *p; p++) {
        if (isdigit((unsigned char)*p))
            return lw_fail(err, LW_E_INPUT, "equation '%.60s': labels are letters", equation);
        if (*p != ' ' && n + 1 < sizeof squeezed)
            squeezed[n++] = *p;
    }
    squeezed[n] = 0;
    bool fits = strlen(equation) < sizeof squeezed;
    for (int pass = 0; pass < 2 && fits; pass++) {
        const char *p = squeezed, *arrow = strstr(squeezed, "->"), *end = arrow ? arrow : squeezed + n;
        char *to = text;
        input = 0;
        for (; to && p <= end; p++, input++) {
            const char *term = p;
            while (p < end && *p != ',')
                p++;
            const lw_tensor *x = lw_in(c, input);
            if (!x)
                break;
            int dims = ellipsis_of(term, p, x);
            if (dims > 9)
                return lw_fail(err, LW_E_INPUT, "equation '%.60s': an ellipsis of %d dimensions", equation,
                               dims);
            most = dims > most ? dims : most;
            to = pass ? write_term(to, text + MOST_TEXT - 1, term, p, most, dims < 0 ? -1 : dims) : to;
            if (pass && to && p < end)
                *to++ = ',';
        }
        if (pass && to && arrow)
            to = write_term(to, text + MOST_TEXT - 1, arrow, squeezed + n, most, most);
        fits = to != NULL;
        if (pass && fits)
            *to = 0;
    }
    if (!fits)
        return lw_fail(err, LW_E_INPUT, "equation '%.60s' is too long", equation);
    int operands = 1;
    for (const char *p = squeezed; *p && strncmp(p, "->", 2) != 0; p++)
        operands += *p == ',';
    if (operands != c->n_in)
        return lw_fail(err, LW_E_INPUT, "equation '%.60s' is for %d inputs, there are %d", equation, operands,
                       c->n_in);
    return LW_OK;
}

static lw_status parse(const lw_op_call *c, sum_of_products *s, lw_error *err)
{
    char text[MOST_TEXT], output[MOST_LABELS + 1] = {0};
    int n_out = 0;
    const char *equation = lw_node_string(c->node, "equation", "");
    for (int i = 0; i < c->n_in; i++)
        if (!lw_in(c, i) || lw_in(c, i)->dtype != LW_F64)
            LW_TRY(lw_want(lw_in(c, i), LW_F32, "the input", err));
    LW_TRY(plain_equation(c, text, err));
    const char *arrow = strstr(text, "->"), *inputs_end = arrow ? arrow : text + strlen(text);
    if (arrow) {
        if (strlen(arrow + 2) > MOST_LABELS)
            return lw_fail(err, LW_E_INPUT, "equation '%.60s' has too many labels", equation);
        strcpy(output, arrow + 2);
        n_out = (int)strlen(output);
    } else { /* what ellipses stand for and every letter that stands once, in their order */
        for (int l = 0; l < 128 && n_out < MOST_LABELS; l++) {
            int times = 0;
            for (const char *p = text; p < inputs_end; p++)
                times += *p == l;
            if ((isalpha(l) && times == 1) || (isdigit(l) && times > 0))
                output[n_out++] = (char)l;
        }
    }
    for (int i = 0; i < n_out; i++)
        if (!isalnum((unsigned char)output[i]) || place_of(s, output[i]) != i)
            return lw_fail(err, LW_E_INPUT,
                           "equation '%.60s': the output's labels are not letters that differ", equation);
    s->n_out = n_out;
    const char *p = text;
    for (int i = 0; i < c->n_in; i++, p++) {
        const lw_tensor *x = lw_in(c, i);
        int rank = 0;
        for (; p < inputs_end && *p != ','; p++, rank++) {
            int at = isalnum((unsigned char)*p) ? place_of(s, *p) : -1;
            if (at < 0 || rank >= x->rank)
                return lw_fail(err, LW_E_INPUT, "equation '%.60s': input %d does not fit its %d dimensions",
                               equation, i, x->rank);
            int64_t size = x->dim[rank];
            bool repeats = s->dim[at] == 1 || size == 1; /* as in a broadcast */
            if (s->dim[at] >= 0 && s->dim[at] != size && !repeats)
                return lw_fail(err, LW_E_INPUT, "equation '%.60s': label %c is %lld and %lld", equation, *p,
                               (long long)s->dim[at], (long long)size);
            s->dim[at] = s->dim[at] < 0 || s->dim[at] == 1 ? size : s->dim[at];
            s->stride[i][at] += size == 1 ? 0 : lw_tensor_span(x, rank + 1, x->rank);
        }
        if (rank != x->rank)
            return lw_fail(err, LW_E_INPUT, "equation '%.60s': input %d does not fit its %d dimensions",
                           equation, i, x->rank);
    }
    for (int i = 0; i < n_out; i++)
        if (s->dim[i] < 0)
            return lw_fail(err, LW_E_INPUT, "equation '%.60s': no input has label %c", equation, s->label[i]);
    return LW_OK;
}

typedef struct einsum_job {
    const sum_of_products *s;
    const lw_op_call *c;
    void *y;
    int64_t sums; /* products of a sum */
} einsum_job;

/* Adds up all products of one element of the output, the last label fastest. */
#define ELEMENT_TASK(name, real)                                                                             \
    static lw_status name(void *arg, int64_t element, int worker, lw_error *err)                             \
    {                                                                                                        \
        (void)worker, (void)err;                                                                             \
        const einsum_job *job = arg;                                                                         \
        const sum_of_products *s = job->s;                                                                   \
        int64_t from[MOST_INPUTS], index[MOST_LABELS] = {0};                                                 \
        real sum = 0;                                                                                        \
        first_products(job, element, from);                                                                  \
        for (int64_t n = 0; n < job->sums; n++) {                                                            \
            real product = ((const real *)job->c->in[0]->data)[from[0]];                                     \
            for (int i = 1; i < job->c->n_in; i++)                                                           \
                product *= ((const real *)job->c->in[i]->data)[from[i]];                                     \
            sum += product;                                                                                  \
            next_products(s, job->c->n_in, index, from);                                                     \
        }                                                                                                    \
        ((real *)job->y)[element] = sum;                                                                     \
        return LW_OK;                                                                                        \
    }

/* The inputs' elements of an output element's first product. */
static void first_products(const einsum_job *job, int64_t element, int64_t from[MOST_INPUTS])
{
    const sum_of_products *s = job->s;
    memset(from, 0, MOST_INPUTS * sizeof *from);
    for (int k = s->n_out - 1; k >= 0; element /= s->dim[k], k--)
        for (int i = 0; i < job->c->n_in; i++)
            from[i] += element % s->dim[k] * s->stride[i][k];
}

static void next_products(const sum_of_products *s, int inputs, int64_t index[MOST_LABELS],
                          int64_t from[MOST_INPUTS])
{
    for (int k = s->n_labels - 1; k >= s->n_out; k--) {
        bool more = ++index[k] < s->dim[k];
        for (int i = 0; i < inputs; i++)
            from[i] += more ? s->stride[i][k] : -s->stride[i][k] * (s->dim[k] - 1);
        if (more)
            return;
        index[k] = 0;
    }
}
ELEMENT_TASK(float_task, float)
ELEMENT_TASK(double_task, double)

static lw_status run_einsum(const lw_op_call *c, lw_error *err)
{
    sum_of_products s = {0};
    if (c->n_in > MOST_INPUTS)
        return lw_fail(err, LW_E_INPUT, "more than %d inputs are not supported", MOST_INPUTS);
    LW_TRY(parse(c, &s, err));
    if (s.n_out > LW_MAX_RANK)
        return lw_fail(err, LW_E_INPUT, "an output of %d dimensions", s.n_out);
    lw_dtype dtype = c->in[0]->dtype;
    for (int i = 1; i < c->n_in; i++)
        LW_TRY(lw_want(c->in[i], dtype, "each input", err));
    LW_TRY(lw_tensor_new(&c->out[0], dtype, s.n_out, s.dim, err));
    einsum_job job = {.s = &s, .c = c, .y = c->out[0]->data, .sums = 1};
    for (int k = s.n_out; k < s.n_labels; k++)
        if (__builtin_mul_overflow(job.sums, s.dim[k], &job.sums))
            return lw_fail(err, LW_E_RANGE, "the labels have more combinations than can be counted");
    bool small = (double)job.sums * (double)c->out[0]->count < 1 << 16;
    return lw_pool_for(small ? NULL : c->pool, c->out[0]->count, dtype == LW_F32 ? float_task : double_task,
                       &job, err);
}

const lw_op lw_ops_einsum[] = {
    {"", "Einsum", 12, 0, 1, MOST_INPUTS, run_einsum, "sum of products", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
