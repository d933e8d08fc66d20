/* numerics_cuda.cu - the probe as this library's options compile it. */
#include "common/numerics.cuh"

#include "common/cuda_check.h"
#include "common/device.h"

typedef struct probe_args {
    const float *in;
    float *out;
} probe_args;

static __global__ void probe(probe_args args)
{
    lw_numerics_probe(args.in, args.out);
}

extern "C" lw_status lw_device_numerics(int device, lw_numerics *out, lw_error *err)
{
    float in[LW_PROBE_INPUTS], result[LW_PROBE_OUTPUTS], *memory = NULL;
    lw_device found;
    lw_status status = LW_OK;
    LW_TRY(lw_device_query(device, &found, err));
    LW_CUDA_TRY(err, "choosing the device", cudaSetDevice(device));
    LW_CUDA_TRY(err, "memory of the numeric probe", cudaMalloc(&memory, sizeof in + sizeof result));
    probe_args args = {memory, memory + LW_PROBE_INPUTS};
    lw_numerics_input(in);
    LW_CUDA_TRY_END(err, "copying the probe's input",
                    cudaMemcpy(memory, in, sizeof in, cudaMemcpyHostToDevice));
    LW_CUDA_TRY_END(err, "the numeric probe", lw_launch(probe, dim3(1), 1, 0, 0, args));
    LW_CUDA_TRY_END(err, "copying the probe's result",
                    cudaMemcpy(result, memory + LW_PROBE_INPUTS, sizeof result, cudaMemcpyDeviceToHost));
    *out = lw_numerics_judge(in, result);
end:
    cudaFree(memory);
    return status;
}
