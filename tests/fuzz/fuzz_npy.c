/* fuzz_npy.c - NumPy's array files. */
#include "fuzz/fuzz.h"

#include "common/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lw_npy array = {0};
    lw_error err = {0};
    lw_status status = lw_npy_read(&array, fuzz_file(data, size), &err);
    FUZZ_ERROR(status, err);
    if (status == LW_OK) {
        int64_t count = 1;
        for (int k = 0; k < array.ndim; k++)
            count *= array.shape[k];
        FUZZ_REQUIRE(count == array.count, "count");
        volatile uint8_t sum = 0;
        for (int64_t i = 0; i < array.count * lw_dtype_size(array.dtype); i++)
            sum = (uint8_t)(sum + ((uint8_t *)array.data)[i]);
    }
    lw_npy_free(&array);
    return 0;
}
