/* elements.c - which instruction set's functions of many floats run. */
#include "infer/elements.h"

#include "common/cpu.h"
#include "common/fail.h"

lw_status lw_elements_choose(const lw_elements **out, lw_error *err)
{
    unsigned usable;
    LW_TRY(lw_isa_usable(&usable, err));
    *out = &lw_elements_plain;
#if defined(__x86_64__)
    if (usable >> LW_ISA_AVX2 & 1)
        *out = &lw_elements_avx2;
    if (usable >> LW_ISA_AVX512BW & 1)
        *out = &lw_elements_avx512bw;
#endif
    return LW_OK;
}
