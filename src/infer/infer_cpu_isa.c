/* infer_cpu_isa.c - the int8 product of one instruction set. Compiled once per instruction set
 * (src/infer/CMakeLists.txt) with LW_ISA_NAME set to its name. */
#include "infer/infer_cpu_kernels.h"

#include <stdlib.h>

#include "common/fail.h"
#include "common/simd_dot.h"
#include "infer/infer_tuning.h"
#include "infer/quant.h"

enum { COLUMNS = LW_CPU_GEMM_VECTORS * LW_DOT_LANES, STEP = COLUMNS * LW_DOT_DEPTH };

/* ---- packing --------------------------------------------------------------------------------------- */

/* One step: byte d of group j is row d's byte j. The rows are there, and `columns` is COLUMNS where the
 * caller says so with a constant, so that the compiler interleaves whole vectors. */
LW_SIMD void pack_step(const uint8_t *b, uint8_t flip, int64_t ldb, int rows, int columns, uint8_t *out)
{
    for (int j = 0; j < columns; j++)
        for (int d = 0; d < LW_DOT_DEPTH; d++)
            out[j * LW_DOT_DEPTH + d] = d < rows ? (uint8_t)(b[d * ldb + j] ^ flip) : 0;
}

static void pack(const uint8_t *b, bool is_signed, int64_t ldb, int64_t k, int columns, int8_t *panel)
{
    uint8_t flip = is_signed ? 0 : 0x80, *out = (uint8_t *)panel;
    int64_t i = 0;
    for (; columns == COLUMNS && i + LW_DOT_DEPTH <= k; i += LW_DOT_DEPTH, out += STEP)
        pack_step(b + i * ldb, flip, ldb, LW_DOT_DEPTH, COLUMNS, out);
    for (; i < k; i += LW_DOT_DEPTH, out += STEP) {
        memset(out, 0, STEP);
        pack_step(b + i * ldb, flip, ldb, k - i < LW_DOT_DEPTH ? (int)(k - i) : LW_DOT_DEPTH, columns, out);
    }
}

static void pack_transposed(const uint8_t *b, bool is_signed, int64_t ldb, int64_t k, int columns,
                            int8_t *panel)
{
    uint8_t flip = is_signed ? 0 : 0x80;
    int64_t steps = (k + LW_DOT_DEPTH - 1) / LW_DOT_DEPTH;
    if (columns < COLUMNS || k % LW_DOT_DEPTH)
        memset(panel, 0, (size_t)(steps * STEP));
    for (int j = 0; j < columns; j++) {
        const uint8_t *from = b + j * ldb;
        uint8_t *to = (uint8_t *)panel + j * LW_DOT_DEPTH;
        int64_t i = 0;
        for (; i + LW_DOT_DEPTH <= k; i += LW_DOT_DEPTH, to += STEP)
            for (int d = 0; d < LW_DOT_DEPTH; d++)
                to[d] = (uint8_t)(from[i + d] ^ flip);
        for (int d = 0; i + d < k; d++)
            to[d] = (uint8_t)(from[i + d] ^ flip);
    }
}

static void pack_a(const uint8_t *a, bool is_signed, int64_t lda, int64_t k, int rows, int32_t *tile,
                   int32_t *row_sum)
{
    int64_t steps = (k + LW_DOT_DEPTH - 1) / LW_DOT_DEPTH;
    for (int i = 0; i < rows; i++) {
        const uint8_t *from = a + i * lda;
        int32_t *to = tile + i;
        uint32_t sum = 0;
        for (int64_t s = 0; s < steps; s++, to += rows) {
            uint8_t byte[LW_DOT_DEPTH] = {0};
            int here = k - s * LW_DOT_DEPTH < LW_DOT_DEPTH ? (int)(k - s * LW_DOT_DEPTH) : LW_DOT_DEPTH;
            if (here == LW_DOT_DEPTH)
                memcpy(byte, from + s * LW_DOT_DEPTH, LW_DOT_DEPTH);
            else
                memcpy(byte, from + s * LW_DOT_DEPTH, (size_t)here);
            *to = lw_dot_a(byte, is_signed, here, &sum);
        }
        row_sum[i] = (int32_t)sum;
    }
}

static void column_sums(const int8_t *panel, int64_t steps, int32_t *sum)
{
    lw_vec total[LW_CPU_GEMM_VECTORS], ones = lw_v32_set1(LW_DOT_ONES);
    for (int v = 0; v < LW_CPU_GEMM_VECTORS; v++)
        total[v] = lw_v32_set1(0);
    for (int64_t s = 0; s < steps; s++)
        for (int v = 0; v < LW_CPU_GEMM_VECTORS; v++)
            total[v] = lw_dot(total[v], ones, lw_dot_b(panel + s * STEP + v * LW_DOT_LANES * LW_DOT_DEPTH));
    for (int v = 0; v < LW_CPU_GEMM_VECTORS; v++)
        lw_dot_put(sum + v * LW_DOT_LANES, total[v]);
}

#ifdef LW_DOT_NARROW
_Static_assert((int)COLUMNS == (int)LW_INFER_EXCESS_COLUMNS && (int)LW_DOT_LANES <= (int)LW_CPU_GEMM_A_BEYOND,
               "the caller has room for so many");

static int magnitude(int x)
{
    return x < 0 ? -x : x;
}

static int64_t count_excess(const uint8_t *b, bool is_signed, int64_t row, int64_t column, int64_t k,
                            int64_t columns)
{
    int flip = is_signed ? 0 : 0x80;
    int64_t count = 0;
    for (int64_t i = 0; i < k; i += 2)
        for (int64_t j = 0; j < columns; j++) {
            int x = (int8_t)(b[i * row + j * column] ^ flip),
                y = i + 1 < k ? (int8_t)(b[(i + 1) * row + j * column] ^ flip) : 0;
            count += magnitude(x) + magnitude(y) > LW_DOT_NARROW_PAIR;
        }
    return count;
}

/* Takes what is too much from the larger byte of a pair: at most all of it, since the other one is at most
 * LW_DOT_NARROW_PAIR, so that it fits a byte as well. */
static lw_status take_excess(int8_t *panel, int64_t steps, lw_infer_excess *out, lw_error *err)
{
    for (int pass = 0; pass < 2; pass++) {
        int64_t count = 0;
        for (int j = 0; j < COLUMNS; j++) {
            out->start[j] = count;
            for (int64_t s = 0; s < steps; s++)
                for (int d = 0; d < LW_DOT_DEPTH; d += 2) {
                    int8_t *pair = panel + s * STEP + j * LW_DOT_DEPTH + d, group[LW_DOT_DEPTH] = {0};
                    int more = magnitude(pair[0]) + magnitude(pair[1]) - LW_DOT_NARROW_PAIR;
                    if (more <= 0)
                        continue;
                    if (pass) {
                        int which = magnitude(pair[1]) > magnitude(pair[0]);
                        group[d + which] = (int8_t)(pair[which] < 0 ? -more : more);
                        pair[which] = (int8_t)(pair[which] - group[d + which]);
                        out->entry[count].step = (uint32_t)s;
                        memcpy(&out->entry[count].group, group, sizeof group);
                    }
                    count++;
                }
        }
        out->start[COLUMNS] = count;
        if (!pass && !(out->entry = malloc((size_t)(count + 1) * sizeof *out->entry)))
            return lw_fail_memory(err, (size_t)count * sizeof *out->entry);
    }
    return LW_OK;
}

static void add_excess(int rows, const int32_t *a, const lw_infer_excess *excess, int32_t *c, int64_t ldc)
{
    for (int j = 0; j < COLUMNS; j++) {
        lw_vec sum = lw_v32_set1(0);
        int32_t of_row[LW_DOT_LANES];
        if (excess->start[j] == excess->start[j + 1])
            continue;
        for (int64_t e = excess->start[j]; e < excess->start[j + 1]; e++)
            sum = lw_dot(sum, lw_dot_get(a + (int64_t)excess->entry[e].step * rows),
                         lw_v32_set1(excess->entry[e].group));
        lw_dot_put(of_row, sum);
        for (int i = 0; i < rows; i++)
            c[i * ldc + j] = (int32_t)((uint32_t)c[i * ldc + j] + (uint32_t)of_row[i]);
    }
}
_Static_assert((int)LW_DOT_LANES >= (int)LW_CPU_GEMM_ROWS, "a tile's rows in one vector");
#endif

/* ---- products -------------------------------------------------------------------------------------- */

/* `rows` is a constant at each call below, so that the sums stay in registers. They have names of their own
 * because GCC 12 keeps the elements of an array in memory as well. */
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define SUM_NAMES(i)                                                                                         \
    lw_vec sum##i##0 = lw_v32_set1(0), sum##i##1 = sum##i##0, sum##i##2 = sum##i##0, sum##i##3 = sum##i##0;
#define EACH_SUM(i, DO)                                                                                      \
    if (rows > i) {                                                                                          \
        DO(sum##i##0, i, 0)                                                                                  \
        DO(sum##i##1, i, 1)                                                                                  \
        if (LW_CPU_GEMM_VECTORS > 2) {                                                                       \
            DO(sum##i##2, i, 2)                                                                              \
            DO(sum##i##3, i, 3)                                                                              \
        }                                                                                                    \
    }
#define GET(sum, i, v) sum = lw_dot_get(c + i * ldc + v * LW_DOT_LANES);
#define PUT(sum, i, v) lw_dot_put(c + i * ldc + v * LW_DOT_LANES, sum);
#define DOT(sum, i, v) sum = lw_dot(sum, x, b##v);
#define GET_ROW(i) EACH_SUM(i, GET)
#define PUT_ROW(i) EACH_SUM(i, PUT)
#define DOT_ROW(i)                                                                                           \
    if (rows > i)                                                                                            \
        x = lw_v32_set1((uint32_t)a[i]);                                                                     \
    EACH_SUM(i, DOT)
LW_SIMD void multiply_rows(int rows, const int32_t *a, int64_t steps, const int8_t *panel, bool add,
                           int32_t *c, int64_t ldc)
{
    enum { BYTES = LW_DOT_LANES * LW_DOT_DEPTH };
    EACH_ROW(SUM_NAMES)
    if (add) {
        EACH_ROW(GET_ROW)
    }
#pragma GCC unroll 4
    for (int64_t s = 0; s < steps; s++, a += rows, panel += STEP) {
        if (rows < LW_CPU_GEMM_ROWS) /* nothing else fetches: the caller's blocks are the whole depth */
            for (int at = 0; at < STEP; at += 64)
                __builtin_prefetch(panel + LW_CPU_GEMM_AHEAD + at, 0, 3);
        lw_vec x, b0 = lw_dot_b(panel), b1 = lw_dot_b(panel + BYTES), b2 = b0, b3 = b0;
        if (LW_CPU_GEMM_VECTORS > 2) {
            b2 = lw_dot_b(panel + 2 * BYTES);
            b3 = lw_dot_b(panel + 3 * BYTES);
        }
        EACH_ROW(DOT_ROW)
    }
    EACH_ROW(PUT_ROW)
}
_Static_assert(LW_CPU_GEMM_VECTORS == 2 || LW_CPU_GEMM_VECTORS == 4, "EACH_SUM() has two or four");

static void multiply(int rows, const int32_t *a, int64_t steps, const int8_t *panel, bool add, int32_t *c,
                     int64_t ldc)
{
    switch (rows) {
    case 1:
        multiply_rows(1, a, steps, panel, add, c, ldc);
        break;
    case 2:
        multiply_rows(2, a, steps, panel, add, c, ldc);
        break;
    case 3:
        multiply_rows(3, a, steps, panel, add, c, ldc);
        break;
    case 4:
        multiply_rows(4, a, steps, panel, add, c, ldc);
        break;
    case 5:
        multiply_rows(5, a, steps, panel, add, c, ldc);
        break;
    default:
        multiply_rows(6, a, steps, panel, add, c, ldc);
    }
}
_Static_assert(LW_CPU_GEMM_ROWS == 6, "multiply() has a case for each number of rows");

/* ---- results --------------------------------------------------------------------------------------- */

/* Plain loops over one row of at most LW_CPU_GEMM_FINISH columns, for the compiler to make vectors of. */
static void finish_row(const lw_gemm *g, const lw_infer_tile *t, int r, int from, int n)
{
    int32_t sum[LW_CPU_GEMM_FINISH];
    float factor[LW_CPU_GEMM_FINISH], y[LW_CPU_GEMM_FINISH];
    const lw_result *result = &g->result;
    int64_t row = t->first_row + r, column = t->first_column + from;
    const int32_t *in = t->sum + r * t->ld + from, *column_sum = t->column_sum + from;
    uint32_t za = (uint32_t)(g->a_zero[g->a_zero_is_scalar ? 0 : row] + t->a_shift);
    /* sum (a - za)(b - zb) = sum ab - za sum b + zb (K za - sum a) */
    uint32_t by_zb = (uint32_t)g->k * za - (uint32_t)t->row_sum[r];
    if (g->b_zero_is_scalar) {
        uint32_t fixed = by_zb * (uint32_t)(g->b_zero[0] + t->b_shift);
        for (int j = 0; j < n; j++)
            sum[j] = (int32_t)((uint32_t)in[j] - za * (uint32_t)column_sum[j] + fixed);
    } else {
        const int32_t *zb = g->b_zero + column;
        for (int j = 0; j < n; j++)
            sum[j] = (int32_t)((uint32_t)in[j] - za * (uint32_t)column_sum[j] +
                               by_zb * (uint32_t)(zb[j] + t->b_shift));
    }
    if (result->bias)
        for (int j = 0; j < n; j++)
            sum[j] = (int32_t)((uint32_t)sum[j] + (uint32_t)result->bias[column + j]);
    if (result->kind == LW_RESULT_SUMS) {
        if (g->c_by_column)
            for (int j = 0; j < n; j++)
                ((int32_t *)g->c)[(column + j) * g->ldc + row] = sum[j];
        else
            memcpy((int32_t *)g->c + row * g->ldc + column, sum, (size_t)n * sizeof *sum);
        return;
    }
    for (int j = 0; j < n; j++)
        factor[j] = result->multiplier[result->one_multiplier ? 0 : column + j];
    if (result->row_scale)
        for (int j = 0; j < n; j++)
            factor[j] = result->row_scale[row] * factor[j];
    if (result->kind == LW_RESULT_QUANTIZED) {
        /* in variables of their own: a byte that is stored could be any of *g */
        int64_t step = g->c_by_column ? g->ldc : 1;
        uint8_t *out = (uint8_t *)g->c + (g->c_by_column ? column * g->ldc + row : row * g->ldc + column);
        for (int j = 0; j < n; j++)
            sum[j] = lw_requantize(sum[j], factor[j], result->zero, result->low, result->high);
        if (step == 1)
            for (int j = 0; j < n; j++)
                out[j] = (uint8_t)sum[j];
        else
            for (int j = 0; j < n; j++)
                out[j * step] = (uint8_t)sum[j];
        return;
    }
    for (int j = 0; j < n; j++)
        y[j] = (float)sum[j] * factor[j];
    if (result->real_bias)
        for (int j = 0; j < n; j++)
            y[j] = y[j] + result->real_bias[column + j];
    if (g->c_by_column)
        for (int j = 0; j < n; j++)
            ((float *)g->c)[(column + j) * g->ldc + row] = y[j];
    else
        memcpy((float *)g->c + row * g->ldc + column, y, (size_t)n * sizeof *y);
}

static void finish(const lw_gemm *g, const lw_infer_tile *t)
{
    for (int r = 0; r < t->rows; r++)
        for (int from = 0; from < t->columns; from += LW_CPU_GEMM_FINISH)
            finish_row(g, t, r, from,
                       t->columns - from < LW_CPU_GEMM_FINISH ? t->columns - from : LW_CPU_GEMM_FINISH);
}

#define ISA_PASTE(a, b) a##b
#define ISA_TABLE(name) ISA_PASTE(lw_infer_kernels_, name)
const lw_infer_cpu_kernels ISA_TABLE(LW_ISA_NAME) = {
    .columns = COLUMNS,
    .depth = LW_DOT_DEPTH,
    .a_added = {LW_DOT_TO_UNSIGNED, LW_DOT_TO_SIGNED},
    .steps_together = LW_CPU_STEPS_TOGETHER,
    .pack = pack,
    .pack_transposed = pack_transposed,
    .pack_a = pack_a,
    .column_sums = column_sums,
    .multiply = multiply,
    .finish = finish,
#ifdef LW_HAS_NARROW
    .narrow = &LW_HAS_NARROW,
#endif
#ifdef LW_DOT_NARROW
    .count_excess = count_excess,
    .take_excess = take_excess,
    .add_excess = add_excess,
#endif
};
