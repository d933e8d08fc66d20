/* infer_cuda_floats.cu - products and convolutions of floats. Every sum has one order, that of the host: from
 * the first product to the last, each product and each addition rounded by itself (--fmad=false). */
#include "common/cuda_check.h"
#include "common/warp.cuh"
#include "infer/infer_cuda.h"
#include "infer/infer_tuning.h"

enum { THREADS = 256, SIDE = 64, DEPTH = 16 };

/* DEPTH of 64 rows of A and 64 columns of B; a block makes 64 x 64 results, 4 x 4 a thread. */
typedef struct lw_float_stage {
    float a[DEPTH][SIDE + 4], b[DEPTH][SIDE + 4];
} lw_float_stage;

/* What fills a stage up: 0 * -0 added to a sum leaves it as it is, also where it is -0. */
#define LW_NOTHING_A 0.0f
#define LW_NOTHING_B -0.0f

LW_DEVICE void lw_add_stage(const lw_float_stage *s, int y, int x, float (&sum)[4][4])
{
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        float4 va = *(const float4 *)&s->a[k][y], vb = *(const float4 *)&s->b[k][x];
        float la[4] = {va.x, va.y, va.z, va.w}, lb[4] = {vb.x, vb.y, vb.z, vb.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[i][j] = sum[i][j] + la[i] * lb[j];
    }
}

/* ---- products ---------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) lw_float_tile(lw_cuda_float_product p)
{
    __shared__ lw_float_stage stage;
    int64_t z = blockIdx.z, i0 = (int64_t)blockIdx.y * SIDE, j0 = (int64_t)blockIdx.x * SIDE;
    const float *from_a = p.a + z / p.inner * p.a_outer + z % p.inner * p.a_inner;
    const float *from_b = p.b + z / p.inner * p.b_outer + z % p.inner * p.b_inner;
    int t = (int)threadIdx.x, y = t / 16 * 4, x = t % 16 * 4;
    /* as on the host: into A where rows of B are contiguous */
    float of_a = p.b_column == 1 ? p.alpha : 1, of_sum = p.b_column == 1 ? 1 : p.alpha;
    float sum[4][4] = {};
    for (int64_t k0 = 0; k0 < p.k; k0 += DEPTH) {
        __syncthreads();
        for (int s = t; s < SIDE * DEPTH; s += THREADS) {
            /* neighbouring threads along the dimension whose elements are neighbours */
            int ka = p.a_column == 1 ? s % DEPTH : s / SIDE, ia = p.a_column == 1 ? s / DEPTH : s % SIDE;
            int kb = p.b_row == 1 ? s % DEPTH : s / SIDE, jb = p.b_row == 1 ? s / DEPTH : s % SIDE;
            bool in_a = i0 + ia < p.m && k0 + ka < p.k, in_b = j0 + jb < p.n && k0 + kb < p.k;
            stage.a[ka][ia] =
                in_a ? of_a * from_a[(i0 + ia) * p.a_row + (k0 + ka) * p.a_column] : LW_NOTHING_A;
            stage.b[kb][jb] = in_b ? from_b[(k0 + kb) * p.b_row + (j0 + jb) * p.b_column] : LW_NOTHING_B;
        }
        __syncthreads();
        lw_add_stage(&stage, y, x, sum);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (i0 + y + i < p.m && j0 + x + j < p.n)
                p.c[(z * p.m + i0 + y + i) * p.n + j0 + x + j] = of_sum * sum[i][j];
}

extern "C" lw_status lw_cuda_multiply_floats(infer_cuda *x, const lw_cuda_float_product *p, lw_error *err)
{
    int64_t batches = p->outer * p->inner;
    if (p->m == 0 || p->n == 0 || batches == 0)
        return LW_OK;
    dim3 grid((unsigned)((p->n + SIDE - 1) / SIDE), (unsigned)((p->m + SIDE - 1) / SIDE), (unsigned)batches);
    LW_CUDA_TRY(err, "float product", lw_launch(lw_float_tile, grid, THREADS, 0, x->stream, *p));
    return LW_OK;
}

/* ---- convolutions ------------------------------------------------------------------------------------ */

/* Where the window of an output position begins, and the channels of its image and group. */
typedef struct lw_float_place {
    int i[3];
    const float *from;
} lw_float_place;

LW_DEVICE lw_float_place lw_float_place_of(const lw_cuda_float_convolution *p, int image, int group, int at)
{
    int i0 = (int)lw_divide((uint32_t)at, p->plane), in_plane = at - i0 * (int)p->plane.divisor;
    int i1 = (int)lw_divide((uint32_t)in_plane, p->line), i2 = in_plane - i1 * (int)p->line.divisor;
    lw_float_place v;
    v.i[0] = i0 * p->stride[0] - p->pad[0];
    v.i[1] = i1 * p->stride[1] - p->pad[1];
    v.i[2] = i2 * p->stride[2] - p->pad[2];
    v.from = p->x + ((int64_t)image * p->groups + group) * p->channels * p->in_count;
    return v;
}

/* What lies under an element of the kernel; 0 outside the image. */
LW_DEVICE float lw_float_pixel(const lw_cuda_float_convolution *p, const lw_float_place *v, int channel,
                               int q0, int q1, int q2)
{
    int i0 = v->i[0] + q0 * p->dilation[0], i1 = v->i[1] + q1 * p->dilation[1],
        i2 = v->i[2] + q2 * p->dilation[2];
    bool inside = i0 >= 0 && i0 < p->in[0] && i1 >= 0 && i1 < p->in[1] && i2 >= 0 && i2 < p->in[2];
    return inside ? v->from[channel * p->in_count + (i0 * p->in[1] + i1) * p->in[2] + i2] : 0;
}

/* A product of weights (rows) and patches (columns, of all images) that are never written out. */
__global__ void __launch_bounds__(THREADS) lw_float_convolve_tile(lw_cuda_float_convolution p)
{
    __shared__ lw_float_stage stage;
    int t = (int)threadIdx.x, y = t / 16 * 4, x = t % 16 * 4, group = (int)blockIdx.z;
    int o0 = (int)blockIdx.y * SIDE, j0 = (int)blockIdx.x * SIDE, columns = p.images * (int)p.count.divisor;
    int depth = p.channels * (int)p.taps.divisor, first = group * p.outputs;
    const float *weights = p.w + (int64_t)first * depth;
    int column = j0 + t % SIDE; /* a thread lays out elements of one patch */
    bool in_b = column < columns;
    int image = in_b ? (int)lw_divide((uint32_t)column, p.count) : 0;
    lw_float_place place =
        lw_float_place_of(&p, image, group, in_b ? column - image * (int)p.count.divisor : 0);
    float sum[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            sum[i][j] = p.bias && o0 + y + i < p.outputs ? p.bias[first + o0 + y + i] : 0;
    for (int k0 = 0; k0 < depth; k0 += DEPTH) {
        __syncthreads();
        for (int s = t; s < SIDE * DEPTH; s += THREADS) {
            int k = s % DEPTH, i = s / DEPTH;
            bool in_a = o0 + i < p.outputs && k0 + k < depth;
            stage.a[k][i] = in_a ? weights[(int64_t)(o0 + i) * depth + k0 + k] : LW_NOTHING_A;
        }
        for (int k = t / SIDE; k < DEPTH; k += THREADS / SIDE) {
            int channel = (int)lw_divide((uint32_t)(k0 + k), p.taps);
            int tap = k0 + k - channel * (int)p.taps.divisor;
            int q0 = (int)lw_divide((uint32_t)tap, p.kernel_plane);
            int in_plane = tap - q0 * (int)p.kernel_plane.divisor;
            int q1 = (int)lw_divide((uint32_t)in_plane, p.kernel_line);
            int q2 = in_plane - q1 * (int)p.kernel_line.divisor;
            stage.b[k][t % SIDE] =
                in_b && k0 + k < depth ? lw_float_pixel(&p, &place, channel, q0, q1, q2) : LW_NOTHING_B;
        }
        __syncthreads();
        lw_add_stage(&stage, y, x, sum);
    }
    for (int j = 0; j < 4; j++) {
        int to = j0 + x + j, of = (int)lw_divide((uint32_t)to, p.count), at = to - of * (int)p.count.divisor;
        for (int i = 0; i < 4; i++)
            if (to < columns && o0 + y + i < p.outputs)
                p.y[((int64_t)of * p.outputs * p.groups + first + o0 + y + i) * p.count.divisor + at] =
                    sum[i][j];
    }
}

/* Groups of few outputs: a thread a result, neighbouring threads at neighbouring positions. */
__global__ void __launch_bounds__(THREADS) lw_float_convolve(lw_cuda_float_convolution p)
{
    int positions = (int)p.count.divisor, outputs = p.outputs * p.groups;
    int taps = (int)p.taps.divisor, kernel_line = (int)p.kernel_line.divisor,
        kernel_lines = (int)p.kernel_plane.divisor / kernel_line;
    for (int64_t s = (int64_t)blockIdx.x * THREADS + threadIdx.x; s < (int64_t)p.images * outputs * positions;
         s += (int64_t)gridDim.x * THREADS) {
        int64_t row = s / positions;
        int image = (int)(row / outputs), o = (int)(row % outputs);
        lw_float_place place = lw_float_place_of(&p, image, o / p.outputs, (int)(s - row * positions));
        const float *weight = p.w + (int64_t)o * p.channels * taps;
        float sum = p.bias ? p.bias[o] : 0;
        for (int c = 0; c < p.channels; c++)
            for (int q0 = 0; q0 < taps / (kernel_line * kernel_lines); q0++)
                for (int q1 = 0; q1 < kernel_lines; q1++)
                    for (int q2 = 0; q2 < kernel_line; q2++)
                        sum = sum + *weight++ * lw_float_pixel(&p, &place, c, q0, q1, q2);
        p.y[s] = sum;
    }
}

extern "C" lw_status lw_cuda_convolve_floats(infer_cuda *x, const lw_cuda_float_convolution *p, lw_error *err)
{
    int64_t columns = (int64_t)p->images * p->count.divisor, results = columns * p->outputs * p->groups;
    if (results == 0)
        return LW_OK;
    if (p->outputs < LW_CUDA_FLOAT_OUTPUTS) {
        int64_t blocks = (results + THREADS - 1) / THREADS, most = (int64_t)x->multiprocessors * 32;
        LW_CUDA_TRY(err, "float convolution",
                    lw_launch(lw_float_convolve, dim3((unsigned)(blocks < most ? blocks : most)), THREADS, 0,
                              x->stream, *p));
        return LW_OK;
    }
    dim3 grid((unsigned)((columns + SIDE - 1) / SIDE), (unsigned)((p->outputs + SIDE - 1) / SIDE),
              (unsigned)p->groups);
    LW_CUDA_TRY(err, "float convolution", lw_launch(lw_float_convolve_tile, grid, THREADS, 0, x->stream, *p));
    return LW_OK;
}
