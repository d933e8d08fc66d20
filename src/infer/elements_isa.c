/* elements_isa.c - functions of many floats for one instruction set. Compiled once per instruction set
 * (src/infer/CMakeLists.txt) with LW_ISA_NAME set to its name: plain loops for the compiler to make vectors
 * of. */
#include "infer/elements.h"

#include "common/real.h"

static void erf_of(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = lw_erf(x[i]);
}

static void gelu_of(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = 0.5f * x[i] * (1 + lw_erf(x[i] * 0.7071067811865476f));
}

#define ISA_PASTE(a, b) a##b
#define ISA_TABLE(name) ISA_PASTE(lw_elements_, name)
const lw_elements ISA_TABLE(LW_ISA_NAME) = {erf_of, gelu_of};
