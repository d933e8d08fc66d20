/* ops_elementwise.c - one element in, one element out: arithmetic, comparisons, activations, casts.
 * Transcendental functions are the C library's float ones, within 1 ULP of correctly rounded on glibc. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/real.h"
#include "infer/elements.h"
#include "infer/op.h"

/* ---- two inputs, broadcast ------------------------------------------------------------------------ */

typedef enum binary { ADD, SUB, MUL, DIV, POW, MIN, MAX, MOD, FMOD, PRELU } binary;
typedef enum comparison { EQUAL, LESS, GREATER, LESS_EQUAL, GREATER_EQUAL, AND, OR, XOR } comparison;

/* Steps an index over a broadcast shape and the offsets of the inputs with it. */
typedef struct walk {
    int rank;
    int64_t dim[LW_MAX_RANK], index[LW_MAX_RANK], stride[3][LW_MAX_RANK], at[3];
} walk;

static void step(walk *w)
{
    for (int k = w->rank - 1; k >= 0; k--) {
        for (int i = 0; i < 3; i++)
            w->at[i] += w->stride[i][k];
        if (++w->index[k] < w->dim[k])
            return;
        for (int i = 0; i < 3; i++)
            w->at[i] -= w->stride[i][k] * w->dim[k];
        w->index[k] = 0;
    }
}

static lw_status walk_of(walk *w, const lw_tensor *a, const lw_tensor *b, lw_error *err)
{
    memset(w, 0, sizeof *w);
    LW_TRY(lw_broadcast(a, b, &w->rank, w->dim, err));
    lw_broadcast_strides(a, w->rank, w->stride[0]);
    lw_broadcast_strides(b, w->rank, w->stride[1]);
    return LW_OK;
}

/* Floor and truncated remainders of integers; a zero divisor has been refused. */
static int64_t floor_mod(int64_t x, int64_t y)
{
    int64_t r = y == -1 ? 0 : x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static float apply_float(binary op, float x, float y)
{
    switch (op) {
    case ADD:
        return x + y;
    case SUB:
        return x - y;
    case MUL:
        return x * y;
    case DIV:
        return x / y;
    case POW:
        return powf(x, y);
    case MIN:
        return x < y || isnan(x) ? x : y;
    case MAX:
        return x > y || isnan(x) ? x : y;
    case FMOD:
        return fmodf(x, y);
    case PRELU:
        return x < 0 ? x * y : x;
    default:
        return NAN;
    }
}

static double apply_double(binary op, double x, double y)
{
    switch (op) {
    case ADD:
        return x + y;
    case SUB:
        return x - y;
    case MUL:
        return x * y;
    case DIV:
        return x / y;
    case POW:
        return pow(x, y);
    case MIN:
        return x < y || isnan(x) ? x : y;
    case MAX:
        return x > y || isnan(x) ? x : y;
    case FMOD:
        return fmod(x, y);
    case PRELU:
        return x < 0 ? x * y : x;
    default:
        return NAN;
    }
}

/* Integers wrap as the standard's reference does (two's complement). */
static int64_t apply_integer(binary op, int64_t x, int64_t y)
{
    switch (op) {
    case ADD:
        return (int64_t)((uint64_t)x + (uint64_t)y);
    case SUB:
        return (int64_t)((uint64_t)x - (uint64_t)y);
    case MUL:
        return (int64_t)((uint64_t)x * (uint64_t)y);
    case DIV:
        return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
    case POW: {
        uint64_t r = 1, base = (uint64_t)x;
        if (y < 0) /* toward zero: 1/x is less than 1, but of 1 and -1 */
            return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
        for (uint64_t n = (uint64_t)y; n; n >>= 1, base *= base)
            r *= n & 1 ? base : 1;
        return (int64_t)r;
    }
    case MIN:
        return x < y ? x : y;
    case MAX:
        return x > y ? x : y;
    case MOD:
        return floor_mod(x, y);
    case FMOD:
        return y == -1 ? 0 : x % y;
    case PRELU:
        return x < 0 ? (int64_t)((uint64_t)x * (uint64_t)y) : x;
    }
    return 0;
}

static void store_integer(lw_tensor *t, int64_t i, int64_t v)
{
    switch (lw_dtype_size(t->dtype)) {
    case 1:
        ((uint8_t *)t->data)[i] = t->dtype == LW_BOOL ? v != 0 : (uint8_t)v;
        break;
    case 2:
        ((uint16_t *)t->data)[i] = (uint16_t)v;
        break;
    case 4:
        ((uint32_t *)t->data)[i] = (uint32_t)v;
        break;
    default:
        ((int64_t *)t->data)[i] = v;
    }
}

static lw_status same_dtype(const lw_tensor *a, const lw_tensor *b, lw_error *err)
{
    if (!a || !b)
        return lw_fail(err, LW_E_INPUT, "an input is missing");
    if (a->dtype != b->dtype)
        return lw_fail(err, LW_E_INPUT, "inputs of different types: %s and %s", lw_dtype_name(a->dtype),
                       lw_dtype_name(b->dtype));
    if (a->dtype == LW_F16)
        return lw_fail(err, LW_E_INPUT, "float16 arithmetic is not supported");
    return LW_OK;
}

/* Float elements, run by run of the innermost dimension, whose strides are 0 or 1. */
typedef struct float_job {
    binary op;
    walk w; /* its last dimension is the run */
    const float *a, *b;
    float *y;
    int64_t runs, each; /* of all, of a task */
} float_job;

#define RUN(expression)                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                        \
        float x = a[i * of_a], z = b[i * of_b];                                                              \
        y[i] = expression;                                                                                   \
    }                                                                                                        \
    break;

/* The strides are constants at each call below, so that the compiler makes vectors of the loops. */
static inline __attribute__((always_inline)) void
run_of_floats(binary op, int64_t n, const float *a, int64_t of_a, const float *b, int64_t of_b, float *y)
{
    switch (op) {
    case ADD:
        RUN(x + z)
    case SUB:
        RUN(x - z)
    case MUL:
        RUN(x * z)
    case DIV:
        RUN(x / z)
    default:
        RUN(apply_float(op, x, z))
    }
}

static lw_status float_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const float_job *job = arg;
    walk w = job->w;
    int last = w.rank - 1;
    int64_t n = w.dim[last], of_a = w.stride[0][last], of_b = w.stride[1][last];
    int64_t first = task * job->each, end = first + job->each < job->runs ? first + job->each : job->runs;
    w.rank = last;
    for (int64_t k = last - 1, at = first; k >= 0; at /= w.dim[k], k--) {
        w.index[k] = at % w.dim[k];
        for (int i = 0; i < 2; i++)
            w.at[i] += w.index[k] * w.stride[i][k];
    }
    for (int64_t r = first; r < end; r++, step(&w)) {
        const float *a = job->a + w.at[0], *b = job->b + w.at[1];
        float *y = job->y + r * n;
        if (of_a && of_b)
            run_of_floats(job->op, n, a, 1, b, 1, y);
        else if (of_a)
            run_of_floats(job->op, n, a, 1, b, 0, y);
        else
            run_of_floats(job->op, n, a, 0, b, of_b, y);
    }
    return LW_OK;
}

enum { ELEMENTS_A_TASK = 1 << 14 };

static void combine_floats(lw_pool *pool, binary op, const walk *w, const float *a, const float *b, float *y,
                           int64_t count)
{
    float_job job = {.op = op, .w = *w, .a = a, .b = b, .y = y};
    walk *v = &job.w;
    if (count == 0)
        return;
    if (v->rank == 0)
        v->dim[v->rank++] = 1; /* its strides are 0 */
    /* dimensions that both inputs step through as through one */
    while (v->rank > 1) {
        int k = v->rank - 2;
        bool one = true;
        for (int i = 0; i < 2; i++)
            one = one && v->stride[i][k] == v->stride[i][k + 1] * v->dim[k + 1];
        if (!one && v->dim[k + 1] > 1)
            break;
        for (int i = 0; i < 2; i++)
            v->stride[i][k] = one ? v->stride[i][k + 1] : v->stride[i][k];
        v->dim[k] *= v->dim[k + 1];
        v->rank--;
    }
    int64_t n = v->dim[v->rank - 1];
    job.runs = count / n;
    job.each = n < ELEMENTS_A_TASK ? ELEMENTS_A_TASK / n : 1;
    int64_t tasks = (job.runs + job.each - 1) / job.each;
    lw_pool_for(tasks > 1 ? pool : NULL, tasks, float_task, &job, NULL); /* its tasks cannot fail */
}

static lw_status combine(lw_pool *pool, const lw_tensor *a, const lw_tensor *b, binary op, lw_tensor **out,
                         lw_error *err)
{
    walk w;
    if (op != POW)
        LW_TRY(same_dtype(a, b, err));
    else if (!a || !b || a->dtype == LW_F16 || b->dtype == LW_F16)
        return lw_fail(err, LW_E_INPUT, "float16 arithmetic is not supported");
    LW_TRY(walk_of(&w, a, b, err));
    LW_TRY(lw_tensor_new(out, a->dtype, w.rank, w.dim, err));
    lw_tensor *y = *out;
    if (a->dtype == LW_F32 && b->dtype == LW_F32) {
        combine_floats(pool, op, &w, a->data, b->data, y->data, y->count);
    } else if (a->dtype == LW_F32 || a->dtype == LW_F64) {
        for (int64_t i = 0; i < y->count; i++, step(&w)) {
            double v = apply_double(op, lw_tensor_number(a, w.at[0]), lw_tensor_number(b, w.at[1]));
            if (a->dtype == LW_F32)
                ((float *)y->data)[i] = (float)v;
            else
                ((double *)y->data)[i] = v;
        }
    } else if (b->dtype == LW_F32 || b->dtype == LW_F64) { /* of Pow alone */
        for (int64_t i = 0; i < y->count; i++, step(&w))
            store_integer(y, i,
                          lw_to_integer(pow(lw_tensor_number(a, w.at[0]), lw_tensor_number(b, w.at[1]))));
    } else {
        for (int64_t i = 0; i < y->count; i++, step(&w)) {
            int64_t vb = lw_tensor_integer(b, w.at[1]);
            if (vb == 0 && (op == DIV || op == MOD || op == FMOD)) {
                lw_tensor_release(y);
                *out = NULL;
                return lw_fail(err, LW_E_INPUT, "division of integers by zero");
            }
            store_integer(y, i, apply_integer(op, lw_tensor_integer(a, w.at[0]), vb));
        }
    }
    return LW_OK;
}

#define BINARY(function, op)                                                                                 \
    static lw_status function(const lw_op_call *c, lw_error *err)                                            \
    {                                                                                                        \
        return combine(c->pool, lw_in(c, 0), lw_in(c, 1), op, &c->out[0], err);                              \
    }
BINARY(run_add, ADD)
BINARY(run_sub, SUB)
BINARY(run_mul, MUL)
BINARY(run_div, DIV)
BINARY(run_pow, POW)
BINARY(run_prelu, PRELU)

static lw_status run_mod(const lw_op_call *c, lw_error *err)
{
    return combine(c->pool, lw_in(c, 0), lw_in(c, 1), lw_node_int(c->node, "fmod", 0) ? FMOD : MOD,
                   &c->out[0], err);
}

/* Any number of inputs, from the left. */
static lw_status fold(const lw_op_call *c, binary op, lw_error *err)
{
    const lw_tensor *first = lw_in(c, 0);
    if (!first)
        return lw_fail(err, LW_E_INPUT, "an input is missing");
    lw_tensor *sum = lw_tensor_retain((lw_tensor *)first);
    for (int i = 1; i < c->n_in; i++) {
        lw_tensor *next = NULL;
        lw_status status = combine(c->pool, sum, lw_in(c, i), op, &next, err);
        lw_tensor_release(sum);
        if (status != LW_OK)
            return status;
        sum = next;
    }
    c->out[0] = sum;
    return LW_OK;
}

static lw_status run_min(const lw_op_call *c, lw_error *err)
{
    return fold(c, MIN, err);
}

static lw_status run_max(const lw_op_call *c, lw_error *err)
{
    return fold(c, MAX, err);
}

static lw_status run_sum(const lw_op_call *c, lw_error *err)
{
    return fold(c, ADD, err);
}

static lw_status compare(const lw_op_call *c, comparison op, lw_error *err)
{
    const lw_tensor *a = lw_in(c, 0), *b = lw_in(c, 1);
    walk w;
    LW_TRY(same_dtype(a, b, err));
    if (op >= AND)
        LW_TRY(lw_want(a, LW_BOOL, "the input", err));
    LW_TRY(walk_of(&w, a, b, err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_BOOL, w.rank, w.dim, err));
    bool is_float = a->dtype == LW_F32 || a->dtype == LW_F64;
    for (int64_t i = 0; i < c->out[0]->count; i++, step(&w)) {
        double fx = is_float ? lw_tensor_number(a, w.at[0]) : 0,
               fy = is_float ? lw_tensor_number(b, w.at[1]) : 0;
        int64_t x = is_float ? 0 : lw_tensor_integer(a, w.at[0]),
                y = is_float ? 0 : lw_tensor_integer(b, w.at[1]);
        bool less = is_float ? fx < fy : x < y, equal = is_float ? fx == fy : x == y,
             greater = is_float ? fx > fy : x > y;
        bool r = op == EQUAL           ? equal
                 : op == LESS          ? less
                 : op == GREATER       ? greater
                 : op == LESS_EQUAL    ? less || equal
                 : op == GREATER_EQUAL ? greater || equal
                 : op == AND           ? x && y
                 : op == OR            ? x || y
                                       : !x != !y;
        ((uint8_t *)c->out[0]->data)[i] = r;
    }
    return LW_OK;
}

#define COMPARISON(function, op)                                                                             \
    static lw_status function(const lw_op_call *c, lw_error *err)                                            \
    {                                                                                                        \
        return compare(c, op, err);                                                                          \
    }
COMPARISON(run_equal, EQUAL)
COMPARISON(run_less, LESS)
COMPARISON(run_greater, GREATER)
COMPARISON(run_less_equal, LESS_EQUAL)
COMPARISON(run_greater_equal, GREATER_EQUAL)
COMPARISON(run_and, AND)
COMPARISON(run_or, OR)
COMPARISON(run_xor, XOR)

static lw_status run_where(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *condition = lw_in(c, 0), *a = lw_in(c, 1), *b = lw_in(c, 2);
    LW_TRY(lw_want(condition, LW_BOOL, "the condition", err));
    if (!a || !b || a->dtype != b->dtype)
        return lw_fail(err, LW_E_INPUT, "inputs of different types");
    walk w = {0};
    lw_tensor both = {.dtype = a->dtype};
    LW_TRY(lw_broadcast(a, b, &both.rank, both.dim, err));
    LW_TRY(lw_broadcast(condition, &both, &w.rank, w.dim, err));
    lw_broadcast_strides(a, w.rank, w.stride[0]);
    lw_broadcast_strides(b, w.rank, w.stride[1]);
    lw_broadcast_strides(condition, w.rank, w.stride[2]);
    LW_TRY(lw_tensor_new(&c->out[0], a->dtype, w.rank, w.dim, err));
    if (w.rank == 0)
        w.dim[w.rank++] = 1; /* its strides are 0 */
    int last = --w.rank;
    int64_t size = lw_dtype_size(a->dtype), n = w.dim[last];
    int64_t of_a = w.stride[0][last], of_b = w.stride[1][last], of_c = w.stride[2][last];
    for (int64_t i = 0; i < c->out[0]->count; i += n, step(&w)) {
        const uint8_t *first = (const uint8_t *)condition->data + w.at[2];
        const char *x = (const char *)a->data + w.at[0] * size, *z = (const char *)b->data + w.at[1] * size;
        char *to = (char *)c->out[0]->data + i * size;
        if (size == 4)
            for (int64_t k = 0; k < n; k++)
                ((uint32_t *)(void *)to)[k] = first[k * of_c] ? ((const uint32_t *)(const void *)x)[k * of_a]
                                                              : ((const uint32_t *)(const void *)z)[k * of_b];
        else
            for (int64_t k = 0; k < n; k++)
                memcpy(to + k * size, first[k * of_c] ? x + k * of_a * size : z + k * of_b * size,
                       (size_t)size);
    }
    return LW_OK;
}

/* ---- one input ------------------------------------------------------------------------------------ */

typedef float (*real_function)(float x, float p, float q);

typedef struct map_job {
    real_function f;
    float p, q;
    lw_elements_function all; /* not NULL: takes the place of f */
    const float *from;
    float *to;
    int64_t count;
} map_job;

static lw_status map_task(void *arg, int64_t task, int worker, lw_error *err)
{
    (void)worker, (void)err;
    const map_job *job = arg;
    int64_t first = task * ELEMENTS_A_TASK, end = first + ELEMENTS_A_TASK;
    end = end < job->count ? end : job->count;
    if (job->all)
        job->all(end - first, job->from + first, job->to + first);
    else
        for (int64_t i = first; i < end; i++)
            job->to[i] = job->f(job->from[i], job->p, job->q);
    return LW_OK;
}

static lw_status map_job_of(const lw_op_call *c, map_job job, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, x->rank, x->dim, err));
    job.from = x->data;
    job.to = c->out[0]->data;
    job.count = x->count;
    int64_t tasks = (x->count + ELEMENTS_A_TASK - 1) / ELEMENTS_A_TASK;
    return lw_pool_for(tasks > 1 ? c->pool : NULL, tasks, map_task, &job, err);
}

static lw_status map(const lw_op_call *c, real_function f, float p, float q, lw_error *err)
{
    return map_job_of(c, (map_job){.f = f, .p = p, .q = q}, err);
}

static lw_status run_erf(const lw_op_call *c, lw_error *err)
{
    const lw_elements *e;
    LW_TRY(lw_elements_choose(&e, err));
    return map_job_of(c, (map_job){.all = e->erf}, err);
}

static lw_status run_exactgelu(const lw_op_call *c, lw_error *err)
{
    const lw_elements *e;
    LW_TRY(lw_elements_choose(&e, err));
    return map_job_of(c, (map_job){.all = e->gelu}, err);
}

#define REAL(name, expression)                                                                               \
    static float name##_of(float x, float p, float q)                                                        \
    {                                                                                                        \
        (void)p, (void)q;                                                                                    \
        return expression;                                                                                   \
    }                                                                                                        \
    static lw_status run_##name(const lw_op_call *c, lw_error *err)                                          \
    {                                                                                                        \
        return map(c, name##_of, 0, 0, err);                                                                 \
    }
REAL(sqrt, sqrtf(x))
REAL(exp, expf(x))
REAL(log, logf(x))
REAL(tanh, lw_tanh(x))
REAL(sin, sinf(x))
REAL(cos, cosf(x))
REAL(reciprocal, 1 / x)
REAL(floor, floorf(x))
REAL(ceil, ceilf(x))
REAL(round, rintf(x))
REAL(sigmoid, 1 / (1 + expf(-x)))
REAL(softplus, x > 0 ? x + lw_log1p(expf(-x)) : lw_log1p(expf(x)))
REAL(softsign, x / (1 + fabsf(x)))
REAL(hardswish, x *fminf(1, fmaxf(0, x / 6 + 0.5f)))
REAL(fastgelu, 0.5f * x * (1 + lw_tanh(0.7978845608028654f * (x + 0.044715f * x * x * x))))

static float leaky_of(float x, float alpha, float q)
{
    (void)q;
    return x < 0 ? alpha * x : x;
}

static lw_status run_leaky_relu(const lw_op_call *c, lw_error *err)
{
    return map(c, leaky_of, lw_node_float(c->node, "alpha", 0.01f), 0, err);
}

static float elu_of(float x, float alpha, float q)
{
    (void)q;
    return x < 0 ? alpha * lw_expm1(x) : x;
}

static lw_status run_elu(const lw_op_call *c, lw_error *err)
{
    return map(c, elu_of, lw_node_float(c->node, "alpha", 1), 0, err);
}

static float selu_of(float x, float alpha, float gamma)
{
    return gamma * (x > 0 ? x : alpha * lw_expm1(x));
}

static lw_status run_selu(const lw_op_call *c, lw_error *err)
{
    return map(c, selu_of, lw_node_float(c->node, "alpha", 1.67326319217681884765625f),
               lw_node_float(c->node, "gamma", 1.05070102214813232421875f), err);
}

static float hard_sigmoid_of(float x, float alpha, float beta)
{
    return fminf(1, fmaxf(0, alpha * x + beta));
}

static lw_status run_hard_sigmoid(const lw_op_call *c, lw_error *err)
{
    return map(c, hard_sigmoid_of, lw_node_float(c->node, "alpha", 0.2f),
               lw_node_float(c->node, "beta", 0.5f), err);
}

static lw_status run_gelu(const lw_op_call *c, lw_error *err)
{
    bool fast = strcmp(lw_node_string(c->node, "approximate", "none"), "tanh") == 0;
    return fast ? run_fastgelu(c, err) : run_exactgelu(c, err);
}

/* com.microsoft: the function of input + bias. */
static lw_status with_bias(const lw_op_call *c, lw_status (*run)(const lw_op_call *, lw_error *),
                           lw_error *err)
{
    lw_tensor *sum = NULL;
    if (lw_in(c, 1))
        LW_TRY(combine(c->pool, lw_in(c, 0), lw_in(c, 1), ADD, &sum, err));
    lw_tensor *in[1] = {sum ? sum : lw_in(c, 0)};
    lw_op_call inner = *c;
    inner.in = in;
    inner.n_in = 1;
    lw_status status = run(&inner, err);
    lw_tensor_release(sum);
    return status;
}

static lw_status run_fast_gelu_bias(const lw_op_call *c, lw_error *err)
{
    return with_bias(c, run_fastgelu, err);
}

static lw_status run_bias_gelu(const lw_op_call *c, lw_error *err)
{
    return with_bias(c, run_exactgelu, err);
}

/* Relu, Abs, Neg, Sign keep the type of their input. */
static lw_status keep_type(const lw_op_call *c, double (*f)(double), int64_t (*g)(int64_t), lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    if (!x || x->dtype == LW_F16 || x->dtype == LW_BOOL)
        return lw_fail(err, LW_E_INPUT, "inputs of this type are not supported");
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, x->dim, err));
    for (int64_t i = 0; i < x->count; i++) {
        if (x->dtype == LW_F32)
            ((float *)c->out[0]->data)[i] = (float)f(((const float *)x->data)[i]);
        else if (x->dtype == LW_F64)
            ((double *)c->out[0]->data)[i] = f(((const double *)x->data)[i]);
        else
            store_integer(c->out[0], i, g(lw_tensor_integer(x, i)));
    }
    return LW_OK;
}

static double relu_real(double x)
{
    return x < 0 ? 0 : x;
}

static int64_t relu_integer(int64_t x)
{
    return x < 0 ? 0 : x;
}

static double negative(double x)
{
    return -x;
}

static int64_t negative_integer(int64_t x)
{
    return (int64_t)(0 - (uint64_t)x);
}

static int64_t magnitude(int64_t x)
{
    return x < 0 ? negative_integer(x) : x;
}

static double sign_real(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static int64_t sign_integer(int64_t x)
{
    return (x > 0) - (x < 0);
}

static lw_status run_relu(const lw_op_call *c, lw_error *err)
{
    return keep_type(c, relu_real, relu_integer, err);
}

static lw_status run_neg(const lw_op_call *c, lw_error *err)
{
    return keep_type(c, negative, negative_integer, err);
}

static lw_status run_abs(const lw_op_call *c, lw_error *err)
{
    return keep_type(c, fabs, magnitude, err);
}

static lw_status run_sign(const lw_op_call *c, lw_error *err)
{
    return keep_type(c, sign_real, sign_integer, err);
}

static lw_status run_not(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(lw_want(x, LW_BOOL, "the input", err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_BOOL, x->rank, x->dim, err));
    for (int64_t i = 0; i < x->count; i++)
        ((uint8_t *)c->out[0]->data)[i] = !((const uint8_t *)x->data)[i];
    return LW_OK;
}

static lw_status run_isnan(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_BOOL, x->rank, x->dim, err));
    const float *from = x->data;
    uint8_t *to = c->out[0]->data;
    for (int64_t i = 0; i < x->count; i++)
        to[i] = isnan(from[i]) != 0;
    return LW_OK;
}

static lw_status run_isinf(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0);
    LW_TRY(lw_want(x, LW_F32, "the input", err));
    LW_TRY(lw_tensor_new(&c->out[0], LW_BOOL, x->rank, x->dim, err));
    bool positive = lw_node_int(c->node, "detect_positive", 1) != 0,
         negative_too = lw_node_int(c->node, "detect_negative", 1) != 0;
    for (int64_t i = 0; i < x->count; i++) {
        float v = ((const float *)x->data)[i];
        ((uint8_t *)c->out[0]->data)[i] = isinf(v) && (v > 0 ? positive : negative_too);
    }
    return LW_OK;
}

/* Bounds as inputs (opset 11 on) or attributes. */
static lw_status run_clip(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *x = lw_in(c, 0), *low = lw_in(c, 1), *high = lw_in(c, 2);
    if (!x || x->dtype == LW_F16 || (low && (low->dtype != x->dtype || low->count != 1)) ||
        (high && (high->dtype != x->dtype || high->count != 1)))
        return lw_fail(err, LW_E_INPUT, "the bounds must be single numbers of the input's type");
    const lw_attr *least = c->node->opset < 11 ? lw_node_attr(c->node, "min") : NULL;
    const lw_attr *most = c->node->opset < 11 ? lw_node_attr(c->node, "max") : NULL;
    LW_TRY(lw_tensor_new(&c->out[0], x->dtype, x->rank, x->dim, err));
    bool is_float = x->dtype == LW_F32 || x->dtype == LW_F64;
    for (int64_t i = 0; i < x->count; i++) {
        if (is_float) {
            double v = lw_tensor_number(x, i);
            if (low || least) {
                double bound = low ? lw_tensor_number(low, 0) : least->f;
                v = v < bound ? bound : v;
            }
            if (high || most) {
                double bound = high ? lw_tensor_number(high, 0) : most->f;
                v = v > bound ? bound : v;
            }
            if (x->dtype == LW_F32)
                ((float *)c->out[0]->data)[i] = (float)v;
            else
                ((double *)c->out[0]->data)[i] = v;
        } else {
            int64_t v = lw_tensor_integer(x, i);
            v = low && v < lw_tensor_integer(low, 0) ? lw_tensor_integer(low, 0) : v;
            v = high && v > lw_tensor_integer(high, 0) ? lw_tensor_integer(high, 0) : v;
            store_integer(c->out[0], i, v);
        }
    }
    return LW_OK;
}

static lw_status cast(const lw_tensor *x, lw_dtype to, int bits, lw_tensor **out, lw_error *err)
{
    if (to == LW_F16)
        return lw_fail(err, LW_E_INPUT, "casts to float16 are not supported");
    LW_TRY(lw_tensor_new(out, to, x->rank, x->dim, err));
    bool from_real = x->dtype == LW_F32 || x->dtype == LW_F64 || x->dtype == LW_F16;
    for (int64_t i = 0; i < x->count; i++) {
        if (to == LW_F32)
            ((float *)(*out)->data)[i] =
                from_real ? (float)lw_tensor_number(x, i) : (float)lw_tensor_integer(x, i);
        else if (to == LW_F64)
            ((double *)(*out)->data)[i] = lw_tensor_number(x, i);
        else if (to == LW_BOOL)
            ((uint8_t *)(*out)->data)[i] =
                from_real ? lw_tensor_number(x, i) != 0 : lw_tensor_integer(x, i) != 0;
        else if (!from_real)
            store_integer(*out, i, lw_tensor_integer(x, i));
        else
            store_integer(*out, i, lw_to_integer(lw_tensor_number(x, i)));
    }
    for (int64_t i = 0; i < x->count && bits == 4; i++) { /* wraps, as the wider types do */
        int v = ((uint8_t *)(*out)->data)[i] & 15;
        ((uint8_t *)(*out)->data)[i] = (uint8_t)(to == LW_I8 && v > 7 ? v - 16 : v);
    }
    (*out)->bits = bits;
    return LW_OK;
}

static lw_status run_cast(const lw_op_call *c, lw_error *err)
{
    static const int dtypes[] = {
        [1] = LW_F32, [2] = LW_U8,   [3] = LW_I8,   [4] = LW_U16,  [5] = LW_I16,  [6] = LW_I32,
        [7] = LW_I64, [9] = LW_BOOL, [10] = LW_F16, [11] = LW_F64, [12] = LW_U32, [13] = LW_U64};
    int64_t to = lw_node_int(c->node, "to", 0);
    if (lw_in(c, 0) && (to == 21 || to == 22)) /* uint4, int4 */
        return cast(lw_in(c, 0), to == 21 ? LW_U8 : LW_I8, 4, &c->out[0], err);
    if (!lw_in(c, 0) || to < 1 || to >= (int64_t)(sizeof dtypes / sizeof *dtypes) || to == 8)
        return lw_fail(err, LW_E_INPUT, "a cast to element type %lld is not supported", (long long)to);
    return cast(lw_in(c, 0), (lw_dtype)dtypes[to], 0, &c->out[0], err);
}

static lw_status run_cast_like(const lw_op_call *c, lw_error *err)
{
    if (!lw_in(c, 0) || !lw_in(c, 1))
        return lw_fail(err, LW_E_INPUT, "an input is missing");
    return cast(lw_in(c, 0), lw_in(c, 1)->dtype, lw_in(c, 1)->bits, &c->out[0], err);
}

static const char by_element[] = "elementwise";
const lw_op lw_ops_elementwise[] = {
    {"", "Add", 7, 0, 2, 2, run_add, by_element, NULL},
    {"", "Sub", 7, 0, 2, 2, run_sub, by_element, NULL},
    {"", "Mul", 7, 0, 2, 2, run_mul, by_element, NULL},
    {"", "Div", 7, 0, 2, 2, run_div, by_element, NULL},
    {"", "Pow", 7, 0, 2, 2, run_pow, by_element, NULL},
    {"", "Mod", 10, 0, 2, 2, run_mod, by_element, NULL},
    {"", "PRelu", 7, 0, 2, 2, run_prelu, by_element, NULL},
    {"", "Min", 8, 0, 1, 1 << 20, run_min, by_element, NULL},
    {"", "Max", 8, 0, 1, 1 << 20, run_max, by_element, NULL},
    {"", "Sum", 8, 0, 1, 1 << 20, run_sum, by_element, NULL},
    {"", "Equal", 7, 0, 2, 2, run_equal, by_element, NULL},
    {"", "Less", 7, 0, 2, 2, run_less, by_element, NULL},
    {"", "Greater", 7, 0, 2, 2, run_greater, by_element, NULL},
    {"", "LessOrEqual", 12, 0, 2, 2, run_less_equal, by_element, NULL},
    {"", "GreaterOrEqual", 12, 0, 2, 2, run_greater_equal, by_element, NULL},
    {"", "And", 7, 0, 2, 2, run_and, by_element, NULL},
    {"", "Or", 7, 0, 2, 2, run_or, by_element, NULL},
    {"", "Xor", 7, 0, 2, 2, run_xor, by_element, NULL},
    {"", "Where", 9, 0, 3, 3, run_where, by_element, NULL},
    {"", "Sqrt", 6, 0, 1, 1, run_sqrt, by_element, NULL},
    {"", "Exp", 6, 0, 1, 1, run_exp, by_element, NULL},
    {"", "Log", 6, 0, 1, 1, run_log, by_element, NULL},
    {"", "Erf", 9, 0, 1, 1, run_erf, by_element, NULL},
    {"", "Tanh", 6, 0, 1, 1, run_tanh, by_element, NULL},
    {"", "Sin", 7, 0, 1, 1, run_sin, by_element, NULL},
    {"", "Cos", 7, 0, 1, 1, run_cos, by_element, NULL},
    {"", "Reciprocal", 6, 0, 1, 1, run_reciprocal, by_element, NULL},
    {"", "Floor", 6, 0, 1, 1, run_floor, by_element, NULL},
    {"", "Ceil", 6, 0, 1, 1, run_ceil, by_element, NULL},
    {"", "Round", 11, 0, 1, 1, run_round, by_element, NULL},
    {"", "Sigmoid", 6, 0, 1, 1, run_sigmoid, by_element, NULL},
    {"", "Softplus", 1, 0, 1, 1, run_softplus, by_element, NULL},
    {"", "Softsign", 1, 0, 1, 1, run_softsign, by_element, NULL},
    {"", "HardSwish", 14, 0, 1, 1, run_hardswish, by_element, NULL},
    {"", "HardSigmoid", 6, 0, 1, 1, run_hard_sigmoid, by_element, NULL},
    {"", "LeakyRelu", 6, 0, 1, 1, run_leaky_relu, by_element, NULL},
    {"", "Elu", 6, 0, 1, 1, run_elu, by_element, NULL},
    {"", "Selu", 6, 0, 1, 1, run_selu, by_element, NULL},
    {"", "Gelu", 20, 0, 1, 1, run_gelu, by_element, NULL},
    {"", "Relu", 6, 0, 1, 1, run_relu, by_element, NULL},
    {"", "Neg", 6, 0, 1, 1, run_neg, by_element, NULL},
    {"", "Abs", 6, 0, 1, 1, run_abs, by_element, NULL},
    {"", "Sign", 9, 0, 1, 1, run_sign, by_element, NULL},
    {"", "Not", 1, 0, 1, 1, run_not, by_element, NULL},
    {"", "IsNaN", 9, 0, 1, 1, run_isnan, by_element, NULL},
    {"", "IsInf", 10, 0, 1, 1, run_isinf, by_element, NULL},
    {"", "Clip", 6, 0, 1, 3, run_clip, by_element, NULL},
    {"", "Cast", 9, 0, 1, 1, run_cast, by_element, NULL},
    {"", "CastLike", 15, 0, 2, 2, run_cast_like, by_element, NULL},
    {"com.microsoft", "Gelu", 1, 0, 1, 1, run_exactgelu, by_element, NULL},
    {"com.microsoft", "BiasGelu", 1, 0, 2, 2, run_bias_gelu, by_element, NULL},
    {"com.microsoft", "FastGelu", 1, 0, 1, 2, run_fast_gelu_bias, by_element, NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
