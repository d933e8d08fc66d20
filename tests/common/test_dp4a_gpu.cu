/* test_dp4a_gpu.cu - the device forms of dp4a.cuh and pow2.h against the host's, word by word. */
#include <criterion/criterion.h>
#include <cuda_runtime_api.h>

#include "common/device.h"
#include "common/dp4a_cases.h"
#include "common/pow2.h"

enum { N_WORDS = 512 };

/* Counts the differences between the device's two forms and the host's answers. */
__global__ void compare(const int32_t *host, int *differences)
{
    int i = blockIdx.x, j = threadIdx.x;
    int32_t out[LW_DP4A_FORMS], portable[LW_DP4A_FORMS];
    lw_dp4a_forms(lw_dp4a_word(i), lw_dp4a_word(j), (int32_t)lw_dp4a_word(i * 31 + j), out, portable);
    for (int form = 0; form < LW_DP4A_FORMS; form++) {
        int32_t want = host[(i * N_WORDS + j) * LW_DP4A_FORMS + form];
        if (out[form] != want || portable[form] != want)
            atomicAdd(differences, 1);
    }
}

__global__ void divide(lw_divider by, uint32_t first, int *differences)
{
    uint32_t x = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (lw_divide(x, by) != x / by.divisor || lw_modulo(x, by) != x % by.divisor)
        atomicAdd(differences, 1);
}

static int *device_counter(void)
{
    int *counter;
    cr_assert(cudaMalloc((void **)&counter, sizeof *counter) == cudaSuccess);
    cudaMemset(counter, 0, sizeof *counter);
    return counter;
}

static int counted(int *counter)
{
    int n = -1;
    cr_assert(cudaMemcpy(&n, counter, sizeof n, cudaMemcpyDeviceToHost) == cudaSuccess);
    cudaFree(counter);
    return n;
}

static void need_device(void)
{
    lw_error err = {};
    if (lw_device_count(&err) == 0)
        cr_skip_test("no GPU: %s", err.message);
}

Test(dp4a_gpu, device_forms_equal_the_hosts)
{
    need_device();
    size_t bytes = sizeof(int32_t) * N_WORDS * N_WORDS * LW_DP4A_FORMS;
    int32_t *host = (int32_t *)malloc(bytes), portable[LW_DP4A_FORMS], *device;
    for (int i = 0; i < N_WORDS; i++)
        for (int j = 0; j < N_WORDS; j++)
            lw_dp4a_forms(lw_dp4a_word(i), lw_dp4a_word(j), (int32_t)lw_dp4a_word(i * 31 + j),
                          host + (i * N_WORDS + j) * LW_DP4A_FORMS, portable);
    cr_assert(cudaMalloc((void **)&device, bytes) == cudaSuccess);
    cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
    int *differences = device_counter();
    compare<<<N_WORDS, N_WORDS>>>(device, differences);
    int n = counted(differences);
    cr_expect(n == 0, "%d differences", n);
    cudaFree(device);
    free(host);
}

Test(dp4a_gpu, invariant_division_on_the_device)
{
    need_device();
    const uint32_t divisors[] = {1, 2, 3, 7, 10, 641, 65537, 0x7fffffff, 0x80000001, 0xffffffff};
    int *differences = device_counter();
    for (size_t k = 0; k < sizeof divisors / sizeof *divisors; k++)
        for (uint32_t first = 0; first < 3; first++)
            divide<<<1024, 256>>>(lw_divider_of(divisors[k]), first * 0x7fff0000u, differences);
    int n = counted(differences);
    cr_expect(n == 0, "%d differences", n);
}
