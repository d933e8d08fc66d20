/* ops_einsum.c - Einsum of floats: labels without an ellipsis, by plain loops over all of them. */
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

static lw_status parse(const lw_op_call *c, sum_of_products *s, lw_error *err)
{
    char text[256], output[MOST_LABELS + 1] = {0};
    size_t n = 0;
    int operands = 1, n_out = 0;
    const char *equation = lw_node_string(c->node, "equation", "");
    for (const char *p = equation; *p; p++)
        if (*p != ' ' && n + 1 < sizeof text)
            text[n++] = *p;
    text[n] = 0;
    char *arrow = strstr(text, "->");
    if (strlen(equation) >= sizeof text || strchr(text, '.'))
        return lw_fail(err, LW_E_INPUT, "equation '%.60s': an ellipsis is not supported", equation);
    const char *inputs_end = arrow ? arrow : text + n;
    if (arrow) {
        if (strlen(arrow + 2) > MOST_LABELS)
            return lw_fail(err, LW_E_INPUT, "equation '%.60s' has too many labels", equation);
        strcpy(output, arrow + 2);
        n_out = (int)strlen(output);
    } else { /* every label that stands once, in their order */
        for (int l = 0; l < 128 && n_out < MOST_LABELS; l++) {
            int times = 0;
            for (const char *p = text; p < inputs_end; p++)
                times += *p == l;
            if (isalpha(l) && times == 1)
                output[n_out++] = (char)l;
        }
    }
    for (int i = 0; i < n_out; i++)
        if (!isalpha((unsigned char)output[i]) || place_of(s, output[i]) != i)
            return lw_fail(err, LW_E_INPUT,
                           "equation '%.60s': the output's labels are not letters that differ", equation);
    s->n_out = n_out;
    for (const char *p = text; p < inputs_end; p++)
        operands += *p == ',';
    if (operands != c->n_in)
        return lw_fail(err, LW_E_INPUT, "equation '%.60s' is for %d inputs, there are %d", equation, operands,
                       c->n_in);
    const char *p = text;
    for (int i = 0; i < operands; i++, p++) {
        const lw_tensor *x = lw_in(c, i);
        LW_TRY(lw_want(x, LW_F32, "the input", err));
        int rank = 0;
        for (; p < inputs_end && *p != ','; p++, rank++) {
            int at = isalpha((unsigned char)*p) ? place_of(s, *p) : -1;
            if (at < 0 || rank >= x->rank)
                return lw_fail(err, LW_E_INPUT, "equation '%.60s': input %d does not fit its %d dimensions",
                               equation, i, x->rank);
            if (s->dim[at] >= 0 && s->dim[at] != x->dim[rank])
                return lw_fail(err, LW_E_INPUT, "equation '%.60s': label %c is %lld and %lld", equation, *p,
                               (long long)s->dim[at], (long long)x->dim[rank]);
            s->dim[at] = x->dim[rank];
            s->stride[i][at] += lw_tensor_span(x, rank + 1, x->rank);
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
    float *y;
    int64_t sums; /* products of a sum */
} einsum_job;

/* Adds up all products of one element of the output, the last label fastest. */
static lw_status element_task(void *arg, int64_t element, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const einsum_job *job = arg;
    const sum_of_products *s = job->s;
    int64_t from[MOST_INPUTS] = {0}, index[MOST_LABELS] = {0}, at = element;
    float sum = 0;
    for (int k = s->n_out - 1; k >= 0; at /= s->dim[k], k--)
        for (int i = 0; i < job->c->n_in; i++)
            from[i] += at % s->dim[k] * s->stride[i][k];
    for (int64_t n = 0; n < job->sums; n++) {
        float product = ((const float *)job->c->in[0]->data)[from[0]];
        for (int i = 1; i < job->c->n_in; i++)
            product *= ((const float *)job->c->in[i]->data)[from[i]];
        sum += product;
        for (int k = s->n_labels - 1; k >= s->n_out; k--) {
            bool more = ++index[k] < s->dim[k];
            for (int i = 0; i < job->c->n_in; i++)
                from[i] += more ? s->stride[i][k] : -s->stride[i][k] * (s->dim[k] - 1);
            if (more)
                break;
            index[k] = 0;
        }
    }
    job->y[element] = sum;
    return LW_OK;
}

static lw_status run_einsum(const lw_op_call *c, lw_error *err)
{
    sum_of_products s = {0};
    if (c->n_in > MOST_INPUTS)
        return lw_fail(err, LW_E_INPUT, "more than %d inputs are not supported", MOST_INPUTS);
    LW_TRY(parse(c, &s, err));
    if (s.n_out > LW_MAX_RANK)
        return lw_fail(err, LW_E_INPUT, "an output of %d dimensions", s.n_out);
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, s.n_out, s.dim, err));
    einsum_job job = {.s = &s, .c = c, .y = c->out[0]->data, .sums = 1};
    for (int k = s.n_out; k < s.n_labels; k++)
        if (__builtin_mul_overflow(job.sums, s.dim[k], &job.sums))
            return lw_fail(err, LW_E_RANGE, "the labels have more combinations than can be counted");
    bool small = (double)job.sums * (double)c->out[0]->count < 1 << 16;
    return lw_pool_for(small ? NULL : c->pool, c->out[0]->count, element_task, &job, err);
}

const lw_op lw_ops_einsum[] = {
    {"", "Einsum", 12, 0, 1, MOST_INPUTS, run_einsum, "sum of products", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
