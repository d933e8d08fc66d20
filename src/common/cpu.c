/* cpu.c - finding the processor's vector instruction sets. */
#include "common/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__x86_64__) && defined(__linux__) && defined(LW_HAVE_AMX)
#include <sys/syscall.h>
#include <unistd.h>

/* Tiles are 8 KiB of state per thread that a process has to ask Linux for. */
static int tiles_granted(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return __builtin_cpu_supports("amx-int8") && __builtin_cpu_supports("amx-tile") &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#elif defined(__x86_64__) || defined(__i386__)
static int tiles_granted(void)
{
    return 0;
}
#endif

static const char *const names[LW_ISA_COUNT] = {"amx",   "avx512vnni", "avx512bw", "avx2",
                                                "sse41", "dotprod",    "neon",     "plain"};

const char *lw_isa_name(lw_isa isa)
{
    return names[isa];
}

/* What processor and operating system offer (the compiler's helpers ask both). */
static unsigned detected(void)
{
    unsigned set = 1u << LW_ISA_PLAIN;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw"))
        set |= 1u << LW_ISA_AVX512BW;
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
        set |= 1u << LW_ISA_AVX512VNNI | (tiles_granted() ? 1u << LW_ISA_AMX : 0);
    if (__builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma")) /* all from AMD and Intel have both */
        set |= 1u << LW_ISA_AVX2;
    if (__builtin_cpu_supports("sse4.1"))
        set |= 1u << LW_ISA_SSE41;
#elif defined(__aarch64__)
    set |= 1u << LW_ISA_NEON; /* part of the base architecture */
#if defined(__linux__)
    enum { HWCAP_BIT_ASIMDDP = 20 };
    if (getauxval(AT_HWCAP) >> HWCAP_BIT_ASIMDDP & 1)
        set |= 1u << LW_ISA_DOTPROD;
#elif defined(__ARM_FEATURE_DOTPROD)
    set |= 1u << LW_ISA_DOTPROD; /* the compiler's target has it */
#endif
#endif
    return set;
}

lw_status lw_isa_usable(unsigned *set, lw_error *err)
{
    *set = detected();
    const char *text = getenv("LANEWISE_DISABLE");
    while (text && *text) {
        size_t n = strcspn(text, ",");
        int isa = 0;
        while (isa < LW_ISA_PLAIN && !(strlen(names[isa]) == n && strncmp(names[isa], text, n) == 0))
            isa++;
        if (isa == LW_ISA_PLAIN)
            return lw_fail(err, LW_E_ARG,
                           "LANEWISE_DISABLE: '%.*s' is not one of amx, avx512vnni, avx512bw, avx2, sse41, "
                           "dotprod, neon",
                           (int)n, text);
        *set &= ~(1u << isa);
        if (isa == LW_ISA_AVX512BW)
            *set &= ~(1u << LW_ISA_AVX512VNNI);
        if (isa == LW_ISA_AVX512BW || isa == LW_ISA_AVX512VNNI)
            *set &= ~(1u << LW_ISA_AMX);
        if (isa == LW_ISA_NEON)
            *set &= ~(1u << LW_ISA_DOTPROD);
        text += n + (text[n] == ',');
    }
    return LW_OK;
}
