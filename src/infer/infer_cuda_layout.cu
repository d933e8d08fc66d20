/* infer_cuda_layout.cu - bytes brought into the order that products read, their sums, and convolutions of few
 * channels, which are no products. */
#include "infer/infer_cuda_product.cuh"

enum { THREADS = 256, WARPS = THREADS / LW_WARP };

static unsigned blocks_for(const infer_cuda *x, int64_t work)
{
    int64_t blocks = (work + THREADS - 1) / THREADS, most = (int64_t)x->multiprocessors * 32;
    return (unsigned)(blocks < most ? blocks : most);
}

/* ---- weights --------------------------------------------------------------------------------------- */

/* One warp a row. Neighbouring warps take neighbouring rows, so that weights stored column by column are read
 * from the first-level cache. */
__global__ void __launch_bounds__(THREADS) lw_pack_rows(lw_cuda_packing p)
{
    const lw_cuda_form *f = &p.form;
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / LW_WARP;
    if (row >= f->rows)
        return;
    int32_t sum = 0;
    const uint8_t *from = p.from + row / f->inner * f->outer_step + row % f->inner * f->row_step;
    int64_t depth = f->taps * f->channel_pitch;
    for (int64_t k = lw_lane(); k < f->pitch; k += LW_WARP) {
        int64_t tap = f->taps == 1 ? 0 : k / f->channel_pitch, c = k - tap * f->channel_pitch;
        uint8_t byte = 0;
        if (k < depth && c < f->channels)
            byte = from[c * f->channel_step + tap * f->tap_step] ^ (uint8_t)f->flip;
        sum += (int8_t)byte;
        if (p.to)
            p.to[row * f->pitch + k] = byte;
    }
    sum = lw_reduce_add_xor(LW_ALL_LANES, sum, LW_WARP);
    if (p.sum && lw_lane() == 0)
        p.sum[row] = sum;
}

extern "C" lw_status lw_cuda_pack(infer_cuda *x, const lw_cuda_packing *p, lw_error *err)
{
    if (p->form.rows == 0)
        return LW_OK;
    LW_CUDA_TRY(err, "packing weights",
                lw_launch(lw_pack_rows, dim3((unsigned)((p->form.rows + WARPS - 1) / WARPS)), THREADS, 0,
                          x->stream, *p));
    return LW_OK;
}

/* ---- sums of rows of A ----------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) lw_sum_rows(lw_cuda_product p, int32_t *sums)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / LW_WARP);
    if (row >= p.m)
        return;
    p.a += blockIdx.y * p.a_batch;
    const uint8_t *from = lw_row_of(&p, row);
    int32_t sum = 0;
    if (p.patches.offset) { /* whole segments; channels that fill up are 0 */
        for (int s = lw_lane(); s < p.patches.segments; s += LW_WARP) {
            uint4 v = *(const uint4 *)(from + p.patches.offset[s]);
            uint32_t words[4] = {v.x, v.y, v.z, v.w};
            for (int i = 0; i < 4; i++)
                sum = lw_dp4a_ss(words[i], 0x01010101u, sum);
        }
    } else {
        for (int k = lw_lane(); k < p.k; k += LW_WARP)
            sum += (int8_t)(from[k] ^ (uint8_t)p.flip);
    }
    sum = lw_reduce_add_xor(LW_ALL_LANES, sum, LW_WARP);
    if (lw_lane() == 0)
        sums[(int64_t)blockIdx.y * p.m + row] = sum;
}

extern "C" lw_status lw_cuda_row_sums(infer_cuda *x, const lw_cuda_product *p, int32_t *sums, lw_error *err)
{
    if (p->m == 0 || p->batches == 0)
        return LW_OK;
    lw_sum_rows<<<dim3((unsigned)((p->m + WARPS - 1) / WARPS), (unsigned)p->batches), THREADS, 0,
                  x->stream>>>(*p, sums);
    return lw_cuda_launched("sums of rows", err);
}

/* ---- images ---------------------------------------------------------------------------------------- */

enum { SIDE = 64 };

/* A block moves 64 positions x 64 channels through shared memory, so that both sides are whole lines. */
__global__ void __launch_bounds__(THREADS) lw_lay_block(lw_cuda_images p)
{
    __shared__ uint8_t tile[SIDE][SIDE + 4];
    int padded = p.padded[0] * p.padded[1] * p.padded[2], plane = p.padded[1] * p.padded[2];
    int64_t size = (int64_t)p.in[0] * p.in[1] * p.in[2];
    int first = (int)blockIdx.x * SIDE, column = (int)blockIdx.y * SIDE;
    int t = (int)threadIdx.x;
    int at = first + t % SIDE, i0 = at / plane - p.pad[0], in_plane = at % plane;
    int i1 = in_plane / p.padded[2] - p.pad[1], i2 = in_plane % p.padded[2] - p.pad[2];
    bool inside =
        at < padded && i0 >= 0 && i0 < p.in[0] && i1 >= 0 && i1 < p.in[1] && i2 >= 0 && i2 < p.in[2];
    int64_t offset = inside ? ((int64_t)i0 * p.in[1] + i1) * p.in[2] + i2 : 0;
    for (int64_t image = blockIdx.z; image < p.images; image += gridDim.z) {
        const uint8_t *from = p.from + image * p.groups * p.channels * size + offset;
        __syncthreads();
        for (int c = t / SIDE; c < SIDE; c += THREADS / SIDE) {
            int k = column + c, group = k / p.channel_pitch, channel = k % p.channel_pitch;
            uint8_t byte = 0;
            if (group < p.groups && channel < p.channels)
                byte = inside ? from[(int64_t)(group * p.channels + channel) * size] ^ p.flip : p.zero;
            tile[c][t % SIDE] = byte;
        }
        __syncthreads();
        uint8_t *to = p.to + image * (int64_t)padded * p.groups * p.channel_pitch;
        for (int s = t; s < SIDE * SIDE / 4; s += THREADS) {
            int position = s / (SIDE / 4), c = s % (SIDE / 4) * 4;
            if (first + position < padded && column + c < p.groups * p.channel_pitch) {
                uint32_t word = (uint32_t)tile[c][position] | (uint32_t)tile[c + 1][position] << 8 |
                                (uint32_t)tile[c + 2][position] << 16 | (uint32_t)tile[c + 3][position] << 24;
                *(uint32_t *)(to + (int64_t)(first + position) * p.groups * p.channel_pitch + column + c) =
                    word;
            }
        }
    }
}

extern "C" lw_status lw_cuda_lay_images(infer_cuda *x, const lw_cuda_images *p, lw_error *err)
{
    int64_t padded = (int64_t)p->padded[0] * p->padded[1] * p->padded[2];
    dim3 grid((unsigned)((padded + SIDE - 1) / SIDE),
              (unsigned)((p->groups * p->channel_pitch + SIDE - 1) / SIDE),
              (unsigned)(p->images < 1024 ? p->images : 1024));
    LW_CUDA_TRY(err, "laying out images", lw_launch(lw_lay_block, grid, THREADS, 0, x->stream, *p));
    return LW_OK;
}

/* ---- patches of few channels ------------------------------------------------------------------------ */

LW_DEVICE uint8_t lw_pixel(const lw_cuda_window *w, const uint8_t *image, int c, const int *i)
{
    if (i[0] < 0 || i[0] >= w->in[0] || i[1] < 0 || i[1] >= w->in[1] || i[2] < 0 || i[2] >= w->in[2])
        return w->zero;
    return image[(((int64_t)c * w->in[0] + i[0]) * w->in[1] + i[1]) * w->in[2] + i[2]] ^ w->flip;
}

__global__ void __launch_bounds__(THREADS)
    lw_write_patches(lw_cuda_window w, int64_t rows, int64_t pitch, uint8_t *to)
{
    int taps = w.kernel[0] * w.kernel[1] * w.kernel[2], depth = w.channels * taps;
    int64_t positions = (int64_t)w.out[0] * w.out[1] * w.out[2];
    for (int64_t s = (int64_t)blockIdx.x * THREADS + threadIdx.x; s < rows * pitch / 4;
         s += (int64_t)gridDim.x * THREADS) {
        int64_t row = s / (pitch / 4), image = row / positions, p = row % positions;
        int o2 = (int)(p % w.out[2]), o1 = (int)(p / w.out[2] % w.out[1]),
            o0 = (int)(p / w.out[2] / w.out[1]);
        uint32_t word = 0;
        for (int f = 0; f < 4; f++) {
            int k = (int)(s % (pitch / 4)) * 4 + f, c = k / taps, tap = k % taps;
            int q2 = tap % w.kernel[2], q1 = tap / w.kernel[2] % w.kernel[1],
                q0 = tap / w.kernel[2] / w.kernel[1];
            int i[3] = {o0 * w.stride[0] + q0 * w.dilation[0] - w.pad[0],
                        o1 * w.stride[1] + q1 * w.dilation[1] - w.pad[1],
                        o2 * w.stride[2] + q2 * w.dilation[2] - w.pad[2]};
            if (k < depth)
                word |= (uint32_t)lw_pixel(&w, w.from + image * w.image_step, c, i) << (8 * f);
        }
        *(uint32_t *)(to + row * pitch + s % (pitch / 4) * 4) = word;
    }
}

extern "C" lw_status lw_cuda_patch_rows(infer_cuda *x, const lw_cuda_window *w, int64_t rows, int64_t pitch,
                                        uint8_t *to, lw_error *err)
{
    if (rows == 0)
        return LW_OK;
    lw_write_patches<<<blocks_for(x, rows * pitch / 4), THREADS, 0, x->stream>>>(*w, rows, pitch, to);
    return lw_cuda_launched("laying out patches", err);
}

/* ---- convolutions that are no products ---------------------------------------------------------------- */

/* A thread computes one result; neighbouring threads, neighbouring positions. b_sum is not needed: both zero
 * points are subtracted on the way. */
__global__ void __launch_bounds__(THREADS)
    lw_convolve(lw_cuda_window w, const uint8_t *weights, uint8_t weight_flip, int groups, int outputs,
                lw_cuda_product p)
{
    int taps = w.kernel[0] * w.kernel[1] * w.kernel[2], of_group = outputs / groups;
    int32_t a_zero = lw_a_zero(&p);
    int image = (int)blockIdx.y / outputs, o = (int)blockIdx.y % outputs, group = o / of_group;
    int32_t b_zero = p.b_zero ? (int8_t)(p.b_zero[o * p.b_zero_step] ^ p.b_zero_flip) : 0;
    lw_column column = lw_column_of(&p, 0, o);
    column.b_zero = 0;
    int at = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (at >= p.positions)
        return;
    int o2 = at % w.out[2], o1 = at / w.out[2] % w.out[1], o0 = at / w.out[2] / w.out[1];
    int32_t sum = 0;
    for (int c = 0; c < w.channels; c++) {
        const uint8_t *weight = weights + ((int64_t)o * w.channels + c) * taps;
        for (int tap = 0, q0 = 0; q0 < w.kernel[0]; q0++)
            for (int q1 = 0; q1 < w.kernel[1]; q1++)
                for (int q2 = 0; q2 < w.kernel[2]; q2++, tap++) {
                    int i[3] = {o0 * w.stride[0] + q0 * w.dilation[0] - w.pad[0],
                                o1 * w.stride[1] + q1 * w.dilation[1] - w.pad[1],
                                o2 * w.stride[2] + q2 * w.dilation[2] - w.pad[2]};
                    int32_t pixel =
                        (int8_t)lw_pixel(&w, w.from + image * w.image_step, group * w.channels + c, i);
                    sum += (pixel - a_zero) * ((int8_t)(weight[tap] ^ weight_flip) - b_zero);
                }
    }
    lw_store_one(&p, sum, image * p.positions + at, o, &column);
}

extern "C" lw_status lw_cuda_direct_convolution(infer_cuda *x, const lw_cuda_window *w,
                                                const uint8_t *weights, uint8_t weight_flip, int64_t images,
                                                int groups, int outputs, const lw_cuda_product *p,
                                                lw_error *err)
{
    if (images == 0 || outputs == 0 || p->positions == 0)
        return LW_OK;
    int64_t jobs = images * outputs;
    if (jobs > 65535)
        return lw_fail(err, LW_E_INTERNAL, "%lld images x channels at a time", (long long)jobs);
    dim3 grid((unsigned)((p->positions + THREADS - 1) / THREADS), (unsigned)jobs);
    lw_convolve<<<grid, THREADS, 0, x->stream>>>(*w, weights, weight_flip, groups, outputs, *p);
    return lw_cuda_launched("8-bit convolution", err);
}
