/* test_cpu.c - the instruction sets that may be used, and the variable that takes them away. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"

Test(cpu, disable)
{
    unsigned all, some;
    lw_error err = {0};
    unsetenv("LANEWISE_DISABLE");
    cr_assert_eq(lw_isa_usable(&all, &err), LW_OK);
    cr_expect(all >> LW_ISA_PLAIN & 1);
    setenv("LANEWISE_DISABLE", "", 1);
    cr_expect_eq(lw_isa_usable(&some, &err), LW_OK);
    cr_expect_eq(some, all);
    setenv("LANEWISE_DISABLE", "avx512bw,sse41", 1);
    cr_expect_eq(lw_isa_usable(&some, &err), LW_OK);
    cr_expect_eq(some, all & ~(1u << LW_ISA_AMX | 1u << LW_ISA_AVX512VNNI | 1u << LW_ISA_AVX512BW |
                               1u << LW_ISA_SSE41));
    setenv("LANEWISE_DISABLE", "avx512vnni", 1);
    cr_expect_eq(lw_isa_usable(&some, &err), LW_OK);
    cr_expect_eq(some, all & ~(1u << LW_ISA_AMX | 1u << LW_ISA_AVX512VNNI));
    setenv("LANEWISE_DISABLE", "dotprod", 1);
    cr_expect_eq(lw_isa_usable(&some, &err), LW_OK);
    cr_expect_eq(some, all & ~(1u << LW_ISA_DOTPROD));
    setenv("LANEWISE_DISABLE", "avx512bw,avx2,sse41,neon", 1);
    cr_expect_eq(lw_isa_usable(&some, &err), LW_OK);
    cr_expect_eq(some, 1u << LW_ISA_PLAIN);
}

Test(cpu, unknown_names)
{
    static const char *const bad[] = {"avx", "avx2 ", "plain", "avx2,,sse41", "AVX2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned set;
        lw_error err = {0};
        setenv("LANEWISE_DISABLE", bad[i], 1);
        cr_expect_eq(lw_isa_usable(&set, &err), LW_E_ARG, "%s", bad[i]);
        cr_expect(strstr(err.message, "LANEWISE_DISABLE: '") == err.message, "%s", err.message);
    }
}
