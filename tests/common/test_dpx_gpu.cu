/* test_dpx_gpu.cu - the device forms of dpx.cuh and warp.cuh against the host's. */
#include <criterion/criterion.h>
#include <cuda_runtime_api.h>

#include "common/cuda_check.h"
#include "common/device.h"
#include "common/dpx_cases.h"
#include "common/warp.cuh"

enum { N_WORDS = 512 };

/* Bit k of differences[0] is set when form k of the device disagrees with the host's answer. */
__global__ void compare(const uint32_t *host_answers, unsigned *differences)
{
    uint32_t i = blockIdx.x, j = threadIdx.x;
    uint32_t best[LW_DPX_FORMS], any[LW_DPX_FORMS], host[LW_DPX_FORMS];
    lw_dpx_forms(lw_dpx_word(i), lw_dpx_word(j), lw_dpx_word(i * 37 + j), best, any, host);
    for (int k = 0; k < LW_DPX_FORMS; k++) {
        uint32_t want = host_answers[(i * N_WORDS + j) * LW_DPX_FORMS + k];
        if (best[k] != want || any[k] != want || host[k] != want)
            atomicOr(differences, 1u << k);
    }
}

enum { N_WARP_ANSWERS = 7 };

/* One warp per width 2, 4 .. 32. */
__global__ void reduce(const int32_t *values, int32_t *answers)
{
    int lane = lw_lane(), width = 2 << blockIdx.x;
    int32_t v = values[lane];
    uint32_t mask = lw_group_mask(width, lane);
    int32_t *out = answers + (blockIdx.x * LW_WARP + lane) * N_WARP_ANSWERS;
    out[0] = (int32_t)lw_from_lane(mask, (uint32_t)lw_reduce_add_down(mask, v, width), 0, width);
    out[1] = (int32_t)lw_from_lane(mask, (uint32_t)lw_reduce_max_down(mask, v, width), 0, width);
    out[2] = lw_reduce_add_xor(mask, v, width);
    out[3] = lw_reduce_max_xor(mask, v, width);
    out[4] = lw_reduce_min_xor(mask, v, width);
    out[5] = (int32_t)lw_ballot(mask, v & 1);
    out[6] = (int32_t)lw_from_below(mask, (uint32_t)v, 1, width);
}

static void need_device(void)
{
    lw_error err = {};
    if (lw_device_count(&err) == 0)
        cr_skip_test("no GPU: %s", err.message);
}

Test(dpx_gpu, device_forms_equal_the_hosts)
{
    need_device();
    size_t n = (size_t)N_WORDS * N_WORDS * LW_DPX_FORMS;
    uint32_t *host = (uint32_t *)malloc(n * sizeof *host), *device, best[LW_DPX_FORMS], any[LW_DPX_FORMS];
    for (uint32_t i = 0; i < N_WORDS; i++)
        for (uint32_t j = 0; j < N_WORDS; j++)
            lw_dpx_forms(lw_dpx_word(i), lw_dpx_word(j), lw_dpx_word(i * 37 + j), best, any,
                         host + (i * N_WORDS + j) * LW_DPX_FORMS);
    unsigned *differences, found = ~0u;
    cr_assert(cudaMalloc((void **)&device, n * sizeof *host) == cudaSuccess);
    cr_assert(cudaMalloc((void **)&differences, sizeof found) == cudaSuccess);
    cudaMemcpy(device, host, n * sizeof *host, cudaMemcpyHostToDevice);
    cudaMemset(differences, 0, sizeof found);
    compare<<<N_WORDS, N_WORDS>>>(device, differences);
    cr_assert(cudaMemcpy(&found, differences, sizeof found, cudaMemcpyDeviceToHost) == cudaSuccess);
    cr_expect(found == 0, "forms that differ, as bits: %x", found);
    cudaFree(device), cudaFree(differences);
    free(host);
}

Test(warp_gpu, device_reductions_equal_the_hosts)
{
    need_device();
    int32_t values[LW_WARP], answers[5 * LW_WARP * N_WARP_ANSWERS], *device_values, *device_answers;
    for (uint32_t i = 0; i < LW_WARP; i++)
        values[i] = (int32_t)lw_dpx_word(1000 + i) >> 8;
    cr_assert(cudaMalloc((void **)&device_values, sizeof values) == cudaSuccess);
    cr_assert(cudaMalloc((void **)&device_answers, sizeof answers) == cudaSuccess);
    cudaMemcpy(device_values, values, sizeof values, cudaMemcpyHostToDevice);
    reduce<<<5, LW_WARP>>>(device_values, device_answers);
    cr_assert(cudaMemcpy(answers, device_answers, sizeof answers, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (int w = 0; w < 5; w++)
        for (int lane = 0; lane < LW_WARP; lane++) {
            int width = 2 << w, first = lane & ~(width - 1);
            const int32_t *got = answers + (w * LW_WARP + lane) * N_WARP_ANSWERS, *group = values + first;
            int32_t odd[LW_WARP];
            for (int i = 0; i < width; i++)
                odd[i] = group[i] & 1;
            int32_t sum = lw_reduce_add_host(group, width), most = lw_reduce_max_host(group, width);
            cr_expect(got[0] == sum && got[2] == sum, "sum, width %d", width);
            cr_expect(got[1] == most && got[3] == most, "maximum, width %d", width);
            cr_expect(got[4] == lw_reduce_min_host(group, width), "minimum, width %d", width);
            cr_expect((uint32_t)got[5] == lw_ballot_host(odd, width) << first, "ballot, width %d", width);
            cr_expect(got[6] == values[lane == first ? lane : lane - 1], "shift, width %d", width);
        }
    cudaFree(device_values), cudaFree(device_answers);
}
