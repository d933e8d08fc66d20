/* fuzz_onnx.c - ONNX models: reading, checking, describing, fusing, running on inputs of their declared
 * shapes. */
#include "fuzz/fuzz.h"

#include "infer/network.h"

/* A machine with little memory: a model of a few bytes may ask for as much as there is, and gets to the error
 * paths instead of minutes over empty gigabytes. (Wide windows over 4 MB took the scalar row 7 s here, beside
 * other work longer than an input may.) The linker puts this before the library's calls. */
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return size > 1u << 20 ? NULL : __real_aligned_alloc(alignment, size);
}

static void count_line(void *user, const char *text)
{
    *(size_t *)user += strlen(text);
}

/* On ones, as far as the inputs' shapes are declared; unknown dimensions are 2. */
static void run(const lw_network *network)
{
    enum { MOST = 8 };
    const lw_model *m = network->model;
    lw_tensor *in[MOST] = {NULL}, *out[MOST] = {NULL};
    lw_error err = {0};
    bool ready = m->n_inputs <= MOST && m->n_outputs <= MOST;
    for (int i = 0; i < m->n_inputs && ready; i++) {
        const lw_value *v = &m->values[m->inputs[i]];
        int64_t dim[LW_MAX_RANK];
        for (int k = 0; k < v->rank; k++)
            dim[k] = v->dim[k] == LW_DIM_UNKNOWN ? 2 : v->dim[k];
        ready = v->declared && v->dtype_supported && v->rank >= 0 &&
                lw_tensor_new(&in[i], v->dtype, v->rank, dim, &err) == LW_OK;
        for (int64_t k = 0; ready && k < in[i]->count * lw_dtype_size(v->dtype); k++)
            ((uint8_t *)in[i]->data)[k] = v->dtype == LW_F32 ? (uint8_t)(k % 4 < 2    ? 0
                                                                         : k % 4 == 2 ? 0x80
                                                                                      : 0x3f)
                                                             : 1;
    }
    if (ready) {
        err = (lw_error){0};
        lw_status status = lw_network_run(network, in, out, NULL, NULL, &err);
        FUZZ_ERROR(status, err);
        FUZZ_REQUIRE(status != LW_E_DEVICE, "the GPU failed: %s", err.message);
    }
    for (int i = 0; i < MOST; i++) {
        lw_tensor_release(in[i]);
        lw_tensor_release(out[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    lw_error err = {0};
    size_t letters = 0;
    lw_status status = lw_network_describe(path, "scalar", false, count_line, &letters, &err);
    FUZZ_ERROR(status, err);
    lw_network *network = NULL;
    err = (lw_error){0};
    /* the rest of a model's bytes say what it is: its size chooses the kernels, and whether nodes are fused
     */
    const char *backend = getenv("LW_FUZZ_BACKEND"); /* replay.c, on a GPU */
    status = lw_network_open(&network, path, backend ? backend : size % 2 ? "cpu" : "scalar", 1, NULL, &err);
    FUZZ_ERROR(status, err);
    if (status != LW_OK)
        return 0;
    int fused = 0;
    if (size % 4 >= 2) {
        status = lw_network_fuse(network, &fused, &err);
        FUZZ_ERROR(status, err);
    }
    for (int again = 0; status == LW_OK && again < (backend ? 3 : 1); again++) /* the third is a CUDA graph */
        run(network);
    lw_network_close(network);
    return 0;
}
