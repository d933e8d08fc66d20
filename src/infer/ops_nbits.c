/* ops_nbits.c - com.microsoft MatMulNBits: float rows times weights of 2, 4 or 8 bits with a scale for each
 * block of a column. Weights become floats, (q - zero) * scale, some columns at a time; their products with A
 * are those of float matrices. */
#include <stdlib.h>

#include "common/fail.h"
#include "infer/op.h"
#include "infer/product.h"

typedef struct nbits {
    const lw_op_call *c;
    int64_t m, n, k;
    int bits;
    int64_t block, blocks;  /* depth of one, and how many there are in a column */
    const uint8_t *b;       /* of each column `blocks` of block * bits / 8 bytes, the least bits first */
    const float *scale;     /* n x blocks */
    const uint8_t *zero;    /* packed as b is, each column from a byte on; or */
    const float *real_zero; /* n x blocks; both NULL: half of the range */
    const int32_t *group;   /* the block of each of the k; NULL: they lie in order */
    float **weight;         /* of each worker: COLUMNS x k */
    float *y;
} nbits;

enum { COLUMNS = 64 };

static int number_at(const uint8_t *p, int64_t i, int bits)
{
    return p[i * bits / 8] >> i * bits % 8 & ((1 << bits) - 1);
}

static float zero_of(const nbits *w, int64_t column, int64_t block)
{
    if (w->real_zero)
        return w->real_zero[column * w->blocks + block];
    return w->zero ? (float)number_at(w->zero + column * ((w->blocks * w->bits + 7) / 8), block, w->bits)
                   : (float)(1 << (w->bits - 1));
}

static void column_of_floats(const nbits *w, int64_t column, float *out)
{
    const uint8_t *b = w->b + column * w->blocks * (w->block * w->bits / 8);
    const float *scale = w->scale + column * w->blocks;
    for (int64_t k = 0; w->group && k < w->k; k++)
        out[k] = ((float)number_at(b, k, w->bits) - zero_of(w, column, w->group[k])) * scale[w->group[k]];
    for (int64_t s = 0; !w->group && s < w->blocks; s++) {
        float zero = zero_of(w, column, s), by = scale[s];
        int64_t first = s * w->block, end = first + w->block < w->k ? first + w->block : w->k, k = first;
        for (; w->bits == 4 && k + 2 <= end; k += 2) {
            out[k] = ((float)(b[k / 2] & 15) - zero) * by;
            out[k + 1] = ((float)(b[k / 2] >> 4) - zero) * by;
        }
        for (; k < end; k++)
            out[k] = ((float)number_at(b, k, w->bits) - zero) * by;
    }
}

static lw_status columns_task(void *arg, int64_t task, int worker, lw_error *err)
{
    const nbits *w = arg;
    int64_t first = task * COLUMNS, columns = w->n - first < COLUMNS ? w->n - first : COLUMNS;
    for (int64_t j = 0; j < columns; j++)
        column_of_floats(w, first + j, w->weight[worker] + j * w->k);
    lw_float_gemm g = {.m = w->m,
                       .n = columns,
                       .k = w->k,
                       .a = lw_in(w->c, 0)->data,
                       .a_row = w->k,
                       .a_column = 1,
                       .b = w->weight[worker],
                       .b_row = 1,
                       .b_column = w->k,
                       .c = w->y + first,
                       .ldc = w->n,
                       .alpha = 1};
    return lw_float_product(NULL, &g, err);
}

static lw_status read_node(const lw_op_call *c, nbits *w, lw_error *err)
{
    const lw_tensor *a = lw_in(c, 0), *b = lw_in(c, 1), *scale = lw_in(c, 2), *zero = lw_in(c, 3),
                    *group = lw_in(c, 4);
    int64_t bits = lw_node_int(c->node, "bits", 4);
    *w = (nbits){.c = c,
                 .n = lw_node_int(c->node, "N", 0),
                 .k = lw_node_int(c->node, "K", 0),
                 .bits = (int)bits,
                 .block = lw_node_int(c->node, "block_size", 0)};
    LW_TRY(lw_want(a, LW_F32, "A", err));
    LW_TRY(lw_want(b, LW_U8, "B", err));
    LW_TRY(lw_want(scale, LW_F32, "scales", err));
    if (bits != 2 && bits != 4 && bits != 8)
        return lw_fail(err, LW_E_INPUT, "weights of %lld bits are not supported", (long long)bits);
    if (w->block < 16 || w->block > 1 << 20 || (w->block & (w->block - 1)))
        return lw_fail(err, LW_E_INPUT, "block_size is %lld: a power of two from 16 on is needed",
                       (long long)w->block);
    if (a->rank < 1 || w->k < 1 || w->n < 1 || w->n > INT32_MAX || w->k > INT32_MAX ||
        a->dim[a->rank - 1] != w->k)
        return lw_fail(err, LW_E_INPUT, "A, K = %lld and N = %lld do not agree", (long long)w->k,
                       (long long)w->n);
    w->blocks = (w->k + w->block - 1) / w->block;
    w->m = lw_tensor_span(a, 0, a->rank - 1);
    int64_t all, bytes;
    if (__builtin_mul_overflow(w->n, w->blocks, &all) ||
        __builtin_mul_overflow(all, w->block * bits / 8, &bytes) || b->count != bytes || scale->count != all)
        return lw_fail(err, LW_E_INPUT,
                       "B of %lld bytes and %lld scales do not fit %lld columns of %lld blocks",
                       (long long)b->count, (long long)scale->count, (long long)w->n, (long long)w->blocks);
    int64_t zeros = w->n * ((w->blocks * bits + 7) / 8);
    if (zero && zero->dtype == LW_F32 ? zero->count != all
                                      : zero && (zero->dtype != LW_U8 || zero->count != zeros))
        return lw_fail(err, LW_E_INPUT, "zero points must be %lld bytes or %lld floats", (long long)zeros,
                       (long long)all);
    w->b = b->data;
    w->scale = scale->data;
    if (zero && zero->dtype == LW_F32)
        w->real_zero = zero->data;
    else if (zero)
        w->zero = zero->data;
    LW_TRY(lw_want_bias(lw_in(c, 5), LW_F32, w->n, err));
    if (!group)
        return LW_OK;
    LW_TRY(lw_want(group, LW_I32, "g_idx", err));
    w->group = group->data;
    if (group->count < w->k)
        return lw_fail(err, LW_E_INPUT, "g_idx has %lld numbers for a depth of %lld", (long long)group->count,
                       (long long)w->k);
    for (int64_t k = 0; k < w->k; k++)
        if (w->group[k] < 0 || w->group[k] >= w->blocks)
            return lw_fail(err, LW_E_INPUT, "g_idx[%lld] is %d of %lld blocks", (long long)k, w->group[k],
                           (long long)w->blocks);
    return LW_OK;
}

static lw_status run_matmul_nbits(const lw_op_call *c, lw_error *err)
{
    const lw_tensor *bias = lw_in(c, 5);
    nbits w;
    int64_t dim[LW_MAX_RANK];
    LW_TRY(read_node(c, &w, err));
    const lw_tensor *a = lw_in(c, 0);
    for (int i = 0; i < a->rank; i++)
        dim[i] = i + 1 < a->rank ? a->dim[i] : w.n;
    LW_TRY(lw_tensor_new(&c->out[0], LW_F32, a->rank, dim, err));
    if (w.m == 0)
        return LW_OK;
    int workers = lw_pool_threads(c->pool);
    float *memory = NULL;
    lw_status status = LW_OK;
    w.y = c->out[0]->data;
    LW_TRY_END(lw_room(&memory, workers * COLUMNS, w.k, sizeof *memory, err));
    LW_TRY_END(lw_room(&w.weight, workers, 1, sizeof *w.weight, err));
    for (int i = 0; i < workers; i++)
        w.weight[i] = memory + i * COLUMNS * w.k;
    LW_TRY_END(lw_pool_for(c->pool, (w.n + COLUMNS - 1) / COLUMNS, columns_task, &w, err));
    for (int64_t i = 0; bias && i < w.m * w.n; i++)
        w.y[i] += ((const float *)bias->data)[i % w.n];
end:
    free(memory);
    free(w.weight);
    return status;
}

const lw_op lw_ops_nbits[] = {
    {"com.microsoft", "MatMulNBits", 1, 0, 3, 6, run_matmul_nbits, "float product of small weights", NULL},
    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};
