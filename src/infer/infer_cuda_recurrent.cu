/* infer_cuda_recurrent.cu - RNN, GRU and LSTM. */
#include "infer/infer_cuda_recurrent.h"

#include "common/cuda_check.h"
#include "common/dp4a.cuh"
#include "common/grid.cuh"
#include "common/warp.cuh"
#include "infer/infer_tuning.h"

enum { THREADS = 256 };

/* ---- X by steps ---------------------------------------------------------------------------------------- */

LW_DEVICE int lw_length_of(const int32_t *lengths, int b, int steps)
{
    int length = lengths ? lengths[b] : steps;
    return length < 0 ? 0 : length > steps ? steps : length;
}

__global__ void __launch_bounds__(THREADS) lw_lay_steps(lw_cuda_steps p)
{
    int64_t rows = (int64_t)p.steps * p.batch;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < rows * p.inputs;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t row = i / p.inputs;
        int s = (int)(row / p.batch), b = (int)(row % p.batch), length = lw_length_of(p.lengths, b, p.steps);
        int64_t t = p.backward ? length - 1 - s : s,
                at = p.batch_first ? b * (int64_t)p.steps + t : t * p.batch + b;
        p.to[i] = s < length ? p.from[at * p.inputs + i % p.inputs] : 0;
    }
}

extern "C" lw_status lw_cuda_lay_steps(infer_cuda *x, const lw_cuda_steps *p, lw_error *err)
{
    int64_t count = (int64_t)p->steps * p->batch * p->inputs, blocks = (count + THREADS - 1) / THREADS,
            most = (int64_t)x->multiprocessors * 32;
    LW_CUDA_TRY(
        err, "laying out steps",
        lw_launch(lw_lay_steps, dim3((unsigned)(blocks < most ? blocks : most)), THREADS, 0, x->stream, *p));
    return LW_OK;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

LW_HD int lw_gates_of(lw_cell kind)
{
    return kind == LW_LSTM ? 4 : kind == LW_GRU ? 3 : 1;
}

/* Bytes from one row to the next in shared memory: rows that neighbouring lanes read begin in different
 * banks.
 */
LW_HD int lw_row_bytes(bool bytes, int pitch, int hidden)
{
    return bytes ? pitch + 16 : (hidden | 1) * 4;
}

/* What a block is about. */
typedef struct lw_recurrence {
    int d, first, units, wide; /* units [first, first + units) of direction d */
    const float *bias, *peep;
    float largest, least; /* of the states that it makes; least as a magnitude */
} lw_recurrence;

LW_DEVICE int64_t lw_state_at(const lw_cuda_recurrent *p, int d, int b, int i)
{
    return ((int64_t)d * p->batch + b) * p->hidden + i;
}

/* As the node has them: sequences first in layout 1. */
LW_DEVICE int64_t lw_outer_at(const lw_cuda_recurrent *p, int d, int b, int i)
{
    return (p->batch_first ? (int64_t)b * p->directions + d : (int64_t)d * p->batch + b) * p->hidden + i;
}

LW_DEVICE void lw_note(lw_recurrence *v, float h)
{
    v->largest = h > v->largest ? h : v->largest;
    v->least = -h > v->least ? -h : v->least;
}

/* To what the product number `product` will quantize by. */
LW_DEVICE void lw_tell(const lw_cuda_recurrent *p, lw_recurrence *v, int64_t product)
{
    uint32_t *to = p->extremes + (v->d * lw_recurrent_products(p) + product) * 2;
    float largest = lw_reduce_fmax_xor(LW_ALL_LANES, v->largest, LW_WARP);
    float least = lw_reduce_fmax_xor(LW_ALL_LANES, v->least, LW_WARP);
    if (lw_lane() == 0) {
        atomicMax(&to[0], __float_as_uint(largest));
        atomicMax(&to[1], __float_as_uint(least));
    }
    v->largest = v->least = 0;
}

LW_DEVICE void lw_begin_states(const lw_cuda_recurrent *p, lw_recurrence *v)
{
    for (int i = (int)threadIdx.x; i < p->batch * v->units; i += THREADS) {
        int b = i / v->units, unit = v->first + i % v->units;
        int64_t outer = lw_outer_at(p, v->d, b, unit), at = lw_state_at(p, v->d, b, unit);
        float h = p->h0 ? p->h0[outer] : 0;
        p->h[at] = h;
        p->cell[at] = p->c0 ? p->c0[outer] : 0;
        lw_note(v, h);
    }
}

LW_DEVICE void lw_end_states(const lw_cuda_recurrent *p, const lw_recurrence *v, const float *h)
{
    for (int i = (int)threadIdx.x; i < p->batch * v->units; i += THREADS) {
        int b = i / v->units, unit = v->first + i % v->units;
        int64_t outer = lw_outer_at(p, v->d, b, unit), at = lw_state_at(p, v->d, b, unit);
        if (p->last_h)
            p->last_h[outer] = h[at];
        if (p->last_cell)
            p->last_cell[outer] = p->cell[at];
    }
}

/* Number of R's row for row r of the block, whose gates have `units` rows each. */
LW_DEVICE int64_t lw_row_of_r(const lw_cuda_recurrent *p, const lw_recurrence *v, int r)
{
    return (int64_t)v->d * v->wide + r / v->units * p->hidden + v->first + r % v->units;
}

template <bool BYTES>
LW_DEVICE const char *lw_own_row(const lw_cuda_recurrent *p, const lw_recurrence *v, int r)
{
    int64_t row = lw_row_of_r(p, v, r);
    return BYTES ? (const char *)(p->r_bytes + row * p->pitch) : (const char *)(p->r + row * p->hidden);
}

template <bool BYTES>
LW_DEVICE void lw_keep_rows(const lw_cuda_recurrent *p, const lw_recurrence *v, char *to)
{
    int words = (BYTES ? p->pitch : p->hidden * 4) / 4, apart = lw_row_bytes(BYTES, p->pitch, p->hidden);
    for (int i = (int)threadIdx.x; i < lw_gates_of(p->kind) * v->units * words; i += THREADS) {
        int r = i / words, k = i % words;
        *(uint32_t *)(to + r * apart + k * 4) = *(const uint32_t *)(lw_own_row<BYTES>(p, v, r) + k * 4);
    }
}

/* States of sequences [b0, b0 + n) into shared memory, quantized to signed bytes where R has bytes. */
template <bool BYTES>
LW_DEVICE void lw_take_states(const lw_cuda_recurrent *p, const float *from, int n, float scale, uint8_t zero,
                              char *to)
{
    int words = BYTES ? p->pitch / 4 : p->hidden, apart = lw_row_bytes(BYTES, p->pitch, p->hidden);
    for (int i = (int)threadIdx.x; i < n * words; i += THREADS) {
        int b = i / words, k = i % words;
        const float *row = from + (int64_t)b * p->hidden;
        uint32_t word = 0;
        if (!BYTES)
            word = __float_as_uint(lw_fresh(row + k));
        for (int f = 0; BYTES && f < 4; f++)
            if (k * 4 + f < p->hidden)
                word |= (uint32_t)(lw_quantize(lw_fresh(row + k * 4 + f), scale, zero, 0, 255) ^ 0x80)
                        << (8 * f);
        *(uint32_t *)(to + b * apart + k * 4) = word;
    }
}

LW_DEVICE int32_t lw_dot16(uint4 a, uint4 b, int32_t sum, bool portable)
{
    if (portable) {
        sum = lw_dp4a_ss_portable(lw_opaque(a.x), lw_opaque(b.x), sum);
        sum = lw_dp4a_ss_portable(lw_opaque(a.y), lw_opaque(b.y), sum);
        sum = lw_dp4a_ss_portable(lw_opaque(a.z), lw_opaque(b.z), sum);
        return lw_dp4a_ss_portable(lw_opaque(a.w), lw_opaque(b.w), sum);
    }
    sum = lw_dp4a_ss(a.x, b.x, sum);
    sum = lw_dp4a_ss(a.y, b.y, sum);
    sum = lw_dp4a_ss(a.z, b.z, sum);
    return lw_dp4a_ss(a.w, b.w, sum);
}

/* A sequence's states times one row of R: of floats, from the first to the last. */
template <bool BYTES>
LW_DEVICE float lw_times_row(const lw_cuda_recurrent *p, const char *states, const char *weights, int64_t row,
                             float scale, int32_t zero)
{
    if (!BYTES) {
        const float *a = (const float *)states, *w = (const float *)weights;
        float sum = 0;
#pragma unroll 8
        for (int k = 0; k < p->hidden; k++)
            sum = sum + a[k] * w[k];
        return sum;
    }
    const uint4 *a = (const uint4 *)states, *w = (const uint4 *)weights;
    const uint4 ones = make_uint4(0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u);
    int64_t column = p->r_each ? row : row / (lw_gates_of(p->kind) * p->hidden);
    int32_t dot = 0, of_a = 0, w_zero = p->r_zero ? (int8_t)(p->r_zero[column] ^ p->r_flip) : 0;
#pragma unroll 4
    for (int k = 0; k < p->pitch / 16; k++) {
        dot = lw_dot16(a[k], w[k], dot, p->portable);
        if (w_zero)
            of_a = lw_dot16(a[k], ones, of_a, p->portable);
    }
    uint32_t fixed =
        (uint32_t)p->hidden * (uint32_t)zero * (uint32_t)w_zero - (uint32_t)zero * (uint32_t)p->r_sum[row];
    int32_t sum = (int32_t)((uint32_t)dot + fixed - (uint32_t)w_zero * (uint32_t)of_a);
    return (float)sum * (scale * p->r_scale[column]);
}

/* What a unit has before the products with R: its sums with W, its state and cell. */
typedef struct lw_own {
    float x[4], h, cell;
} lw_own;

LW_DEVICE void lw_take_own(const lw_cuda_recurrent *p, const lw_recurrence *v, int s, int phase, int b,
                           int unit, const float *now, lw_own *own)
{
    const float *x = p->gates + (((int64_t)v->d * p->steps + s) * p->batch + b) * v->wide + unit;
    int64_t at = lw_state_at(p, v->d, b, unit);
#pragma unroll
    for (int g = 0; g < 4; g++)
        own->x[g] = g * p->hidden < v->wide ? x[g * p->hidden] : 0;
    own->h = now[at];
    own->cell = p->kind == LW_LSTM ? p->cell[at] : phase == 1 ? p->update[at] : 0;
}

/* Unit `unit` of sequence b after the products with R: back[gate * units]. GRU's second phase finds what
 * comes of the update gate in own->cell. */
LW_DEVICE void lw_unit(const lw_cuda_recurrent *p, lw_recurrence *v, int s, int phase, int b, int unit,
                       const lw_own *own, const float *back, int units, float *next)
{
    int hidden = p->hidden, d = v->d, length = lw_length_of(p->lengths, b, p->steps);
    const float *bias = v->bias, *x = own->x;
    int64_t at = lw_state_at(p, d, b, unit);
    const lw_gate *f = p->f[d];
    float h = own->h;
    if (p->kind == LW_GRU && phase == 0) {
        float gate[2];
#pragma unroll
        for (int g = 0; g < 2; g++)
            gate[g] =
                lw_gru_gate(f, p->clip, lw_gate_sum(x[g], back[g * units], bias, g * hidden + unit, v->wide));
        if (lw_recurrent_phases(p) == 2) {
            p->update[at] = gate[0];
            p->gated[at] = gate[1] * h;
            lw_note(v, gate[1] * h);
            return;
        }
        if (s < length)
            h = lw_gru_unit(f, p->clip, true, gate[0], gate[1], x[2] + (bias ? bias[2 * hidden + unit] : 0),
                            back[2 * units], bias ? bias[5 * hidden + unit] : 0, h);
    } else if (s >= length) { /* stays as it was */
    } else if (p->kind == LW_GRU) {
        h = lw_gru_unit(f, p->clip, false, own->cell, 0, x[2] + (bias ? bias[2 * hidden + unit] : 0), back[0],
                        bias ? bias[5 * hidden + unit] : 0, h);
    } else if (p->kind == LW_LSTM) {
        float sum[4], cell = own->cell;
#pragma unroll
        for (int g = 0; g < 4; g++)
            sum[g] = lw_gate_sum(x[g], back[g * units], bias, g * hidden + unit, v->wide);
        lw_lstm_unit(f, p->clip, p->input_forget, sum, v->peep ? v->peep + unit : NULL, hidden, &cell, &h);
        p->cell[at] = cell;
    } else {
        h = lw_rnn_unit(f, p->clip, lw_gate_sum(x[0], back[0], bias, unit, v->wide));
    }
    next[at] = h;
    lw_note(v, h);
    if (s < length) {
        int64_t t = d == 1 || p->reverse_only ? length - 1 - s : s;
        int64_t to = p->batch_first ? ((int64_t)b * p->steps + t) * p->directions + d
                                    : (t * p->directions + d) * p->batch + b;
        p->y[to * hidden + unit] = h;
    }
}

template <bool BYTES> __global__ void __launch_bounds__(THREADS, 1) lw_recur(lw_cuda_recurrent p)
{
    LW_DYNAMIC_SHARED(uint4, shared);
    lw_recurrence v = {};
    int gates = lw_gates_of(p.kind), apart = lw_row_bytes(BYTES, p.pitch, p.hidden),
        phases = lw_recurrent_phases(&p);
    v.d = (int)blockIdx.y;
    v.first = (int)blockIdx.x * p.units;
    v.units = p.hidden - v.first < p.units ? p.hidden - v.first : p.units;
    v.wide = gates * p.hidden;
    v.bias = p.bias ? p.bias + v.d * 2 * v.wide : NULL;
    v.peep = p.peep ? p.peep + v.d * 3 * p.hidden : NULL;
    char *rows = (char *)shared, *states = rows + (p.keeps ? gates * p.units * apart : 0);
    float *back = (float *)(states + p.sequences * apart);
    int64_t all = (int64_t)p.directions * p.batch * p.hidden, of_direction = lw_state_at(&p, v.d, 0, 0);
    uint32_t meeting = 0;
    /* a thread with one unit or none takes what does not wait for others before it waits */
    bool early = p.sequences == p.batch && p.batch * v.units <= THREADS;
    int b_early = (int)threadIdx.x / v.units, u_early = (int)threadIdx.x % v.units;
    lw_own mine = {};
    if (p.keeps)
        lw_keep_rows<BYTES>(&p, &v, rows);
    lw_begin_states(&p, &v);
    if (BYTES)
        lw_tell(&p, &v, 0);
    for (int s = 0; s < p.steps; s++) {
        const float *now = p.h + s % 2 * all;
        float *next = p.h + (s + 1) % 2 * all;
        for (int phase = 0; phase < phases; phase++) {
            int64_t product = (int64_t)s * phases + phase;
            int first_row = phase * 2 * v.units, some = (phases == 1 ? gates : 2 - phase) * v.units;
            float scale = 1;
            uint8_t zero = 0;
            if (early && b_early < p.batch)
                lw_take_own(&p, &v, s, phase, b_early, v.first + u_early, now, &mine);
            lw_meet(&p.arrived[v.d], gridDim.x, ++meeting);
            if (BYTES) {
                const uint32_t *extremes = p.extremes + (v.d * lw_recurrent_products(&p) + product) * 2;
                lw_dynamic_parameters(-__uint_as_float(lw_fresh_word(extremes + 1)),
                                      __uint_as_float(lw_fresh_word(extremes)), &scale, &zero);
            }
            for (int b0 = 0; b0 < p.batch; b0 += p.sequences) {
                int n = p.batch - b0 < p.sequences ? p.batch - b0 : p.sequences;
                const float *from = (phase ? p.gated : now) + of_direction + (int64_t)b0 * p.hidden;
                __syncthreads();
                lw_take_states<BYTES>(&p, from, n, scale, zero, states);
                __syncthreads();
                for (int i = (int)threadIdx.x; i < n * some; i += THREADS) {
                    int r = first_row + i % some;
                    const char *row = p.keeps ? rows + r * apart : lw_own_row<BYTES>(&p, &v, r);
                    back[i] = lw_times_row<BYTES>(&p, states + i / some * apart, row, lw_row_of_r(&p, &v, r),
                                                  scale, (int8_t)(zero ^ 0x80));
                }
                __syncthreads();
                for (int i = (int)threadIdx.x; i < n * v.units; i += THREADS) {
                    int b = i / v.units, u = i % v.units;
                    if (!early)
                        lw_take_own(&p, &v, s, phase, b0 + b, v.first + u, now, &mine);
                    lw_unit(&p, &v, s, phase, b0 + b, v.first + u, &mine, back + b * some + u, v.units, next);
                }
            }
            if (BYTES)
                lw_tell(&p, &v, product + 1);
        }
    }
    __syncthreads(); /* the last states are of other threads' when the batch comes in several parts */
    lw_end_states(&p, &v, p.h + p.steps % 2 * all);
}

/* How many units a block has, and how much it holds. */
static bool plan(const infer_cuda *x, lw_cuda_recurrent *p, int64_t *bytes)
{
    bool of_bytes = !p->r;
    int gates = lw_gates_of(p->kind), blocks = x->multiprocessors / p->directions;
    int64_t apart = lw_row_bytes(of_bytes, p->pitch, p->hidden), most = p->hidden, least;
    if (blocks < 1)
        return false;
    least = (p->hidden + blocks - 1) / blocks; /* a multiprocessor has one block */
    int64_t busy =
        ((int64_t)LW_CUDA_RECURRENT_PRODUCTS + (int64_t)p->batch * gates - 1) / ((int64_t)p->batch * gates);
    int64_t units = busy > least ? busy : least;
    units = units < most ? units : most;
    int64_t held = (x->shared_bytes - apart) / (gates * (apart + 4)); /* beside the states of a sequence */
    units = units > held && held >= least ? held : units;
    int64_t kept = gates * units * apart, sequence = apart + gates * units * 4;
    p->keeps = kept + sequence <= x->shared_bytes;
    kept = p->keeps ? kept : 0;
    int64_t sequences = (x->shared_bytes - kept) / sequence;
    if (sequences < 1)
        return false;
    p->units = (int)units;
    p->sequences = (int)(sequences < p->batch ? sequences : p->batch);
    *bytes = kept + p->sequences * sequence;
    return true;
}

extern "C" lw_status lw_cuda_recur(infer_cuda *x, const lw_cuda_recurrent *given, lw_error *err)
{
    lw_cuda_recurrent p = *given;
    int64_t bytes;
    void (*kernel)(lw_cuda_recurrent) = p.r ? lw_recur<false> : lw_recur<true>;
    if (!plan(x, &p, &bytes))
        return lw_fail(err, LW_E_INTERNAL, "a recurrent layer of %d units does not fit on %d multiprocessors",
                       p.hidden, x->multiprocessors);
    /* a state of the device, not of the launch: the same for every layer, so that threads do not disturb each
     * other */
    LW_CUDA_TRY(err, "loading kernels",
                cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)x->shared_bytes));
    dim3 grid((unsigned)((p.hidden + p.units - 1) / p.units), (unsigned)p.directions);
    LW_CUDA_TRY(err, "steps of a recurrent layer",
                lw_launch_together(kernel, grid, THREADS, (size_t)bytes, x->stream, p));
    return LW_OK;
}
