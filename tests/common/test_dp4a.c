/* test_dp4a.c - the host forms against sums in 64 bits. The device forms: test_dp4a_gpu.cu. */
#include <criterion/criterion.h>

#include "common/dp4a_cases.h"

static int32_t wide(int form, uint32_t a, uint32_t b, int32_t c)
{
    int64_t sum = c;
    for (int i = 0; i < 4 && form < 3; i++) {
        int64_t x = form == 0 ? (int8_t)(a >> 8 * i) : (uint8_t)(a >> 8 * i);
        int64_t y = form == 1 ? (uint8_t)(b >> 8 * i) : (int8_t)(b >> 8 * i);
        sum += x * y;
    }
    for (int i = 0; i < 2 && form >= 3; i++)
        sum += (int64_t)(int16_t)(a >> 16 * i) * (int8_t)(b >> 8 * (i + (form == 4 ? 2 : 0)));
    return (int32_t)(uint32_t)(uint64_t)sum;
}

Test(dp4a, host_forms_equal_sums_in_64_bits)
{
    for (uint32_t i = 0; i < 400; i++)
        for (uint32_t j = 0; j < 400; j++) {
            uint32_t a = lw_dp4a_word(i), b = lw_dp4a_word(j);
            int32_t c = (int32_t)lw_dp4a_word(i * 31 + j), out[LW_DP4A_FORMS], portable[LW_DP4A_FORMS];
            lw_dp4a_forms(a, b, c, out, portable);
            for (int form = 0; form < LW_DP4A_FORMS; form++)
                cr_assert(out[form] == wide(form, a, b, c) && portable[form] == out[form],
                          "form %d of %08x %08x %08x", form, a, b, c);
        }
}
