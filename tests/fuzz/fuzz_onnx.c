/* fuzz_onnx.c - ONNX models: reading, checking, describing. */
#include "fuzz/fuzz.h"

#include "lanewise/infer.h"

/* A machine with little memory: a model of a few bytes may ask for as much as there is, and gets to the error
 * paths instead of minutes over empty gigabytes. The linker puts this before the library's calls. */
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return size > 4u << 20 ? NULL : __real_aligned_alloc(alignment, size);
}

static void count_line(void *user, const char *text)
{
    *(size_t *)user += strlen(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    lw_error err = {0};
    size_t letters = 0;
    lw_status status = lw_network_describe(path, "scalar", count_line, &letters, &err);
    FUZZ_ERROR(status, err);
    lw_network *network = NULL;
    err = (lw_error){0};
    status = lw_network_open(&network, path, "scalar", 1, NULL, &err);
    FUZZ_ERROR(status, err);
    if (status == LW_OK)
        lw_network_close(network);
    return 0;
}
