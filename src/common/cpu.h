/* cpu.h - which vector instruction sets this processor has, best first. */
#ifndef LW_CPU_H
#define LW_CPU_H

#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lw_isa {
    LW_ISA_AMX,        /* int8 tiles, with AVX-512 VNNI */
    LW_ISA_AVX512VNNI, /* with AVX-512BW */
    LW_ISA_AVX512BW,
    LW_ISA_AVX2,
    LW_ISA_SSE41,
    LW_ISA_DOTPROD, /* NEON with products of four bytes */
    LW_ISA_NEON,
    LW_ISA_PLAIN,
    LW_ISA_COUNT
} lw_isa;

/* "amx", "avx512vnni", "avx512bw", "avx2", "sse41", "dotprod", "neon", "plain". */
const char *lw_isa_name(lw_isa isa);

/* A bit (1 << isa) for each instruction set that may be used: those of the processor and operating system,
 * less those named in the environment variable LANEWISE_DISABLE ("avx512bw,avx2"; avx512bw takes avx512vnni
 * with it, and that takes amx; neon takes dotprod). LW_ISA_PLAIN is always there and may not be named.
 * LW_E_ARG: an unknown name in the variable. */
lw_status lw_isa_usable(unsigned *set, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
