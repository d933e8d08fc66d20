/* lab.h - the laboratory: small kernels for one question each, timed and checked by one driver (lab.c). Every
 * kernel takes one lab_args by value. Bench code only: these kernels may use raw intrinsics, product kernels
 * may not. */
#ifndef LW_LAB_H
#define LW_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bench;

/* PCI address of the device for NVML; what this binary's device code does with float32, in words. */
bool lab_pci_address(int device, char *text, int size);
lw_status lab_numerics(int device, char *text, size_t size, lw_error *err);

/* Measures the GPU's ceilings into b->ceilings; with `show` also as results. */
lw_status lab_ceilings(struct bench *b, bool show, lw_error *err);

/* The GPU's part of the techniques. */
lw_status lab_techniques(struct bench *b, lw_error *err);

/* Frees what the laboratory keeps in *b. */
void lab_free(struct bench *b);

typedef struct lab_args {
    const void *in, *in2; /* as filled by the technique; other memory than out */
    void *out;
    long long *clocks; /* two of each block, begin and end; NULL: not asked for */
    uint32_t n;        /* elements, threads, or rows: the technique says */
    uint32_t rounds;   /* repeats inside the kernel */
    uint32_t a, b, c;
    float f;
} lab_args;

/* --- ceilings (lab_ceilings.cu) ----------------------------------------------------------------------- */

enum { LAB_THREADS = 1024, LAB_WARPS = 32, LAB_CHAINS = 8, LAB_STEPS = 16 };
/* words of input of a ceiling's kernel: one for each chain and thread, then three of every thread */
enum { LAB_CEILING_WORDS = (LAB_CHAINS + 3) * LAB_THREADS };

typedef struct lab_ceiling {
    const char *name;
    const void *kernel;
    const char *opcode; /* what it is on sm_90; at least `count` of them must be in the machine code */
    int count;          /* in the kernel */
    double operations;  /* of one thread in one round */
    const char *unit;   /* of the rate by the clock, "lane-ops" */
    int minimum_cc;     /* major * 10 + minor that has the instruction */
    int op[2];          /* of even and odd chains, for lab_ceiling_input() and lab_ceiling_reference() */
} lab_ceiling;

extern const lab_ceiling lab_ceilings_table[];
extern const int lab_ceilings_count;
extern const void *const lab_copy_kernel, *const lab_read_kernel; /* n 16-byte words each */

void lab_ceiling_input(const lab_ceiling *row, uint32_t *in);
/* What warp `warp` of every block writes: 32 words. */
void lab_ceiling_reference(const lab_ceiling *row, const uint32_t *in, int warp, uint32_t rounds,
                           uint32_t *out);

/* --- techniques (lab_*.cu) ------------------------------------------------------------------------------ */

typedef struct lab_variant {
    const char *name;
    const void *kernel;
    unsigned threads;   /* of a block */
    const char *opcode; /* that must be in its machine code on sm_90; NULL: any */
    int minimum_cc;
    bool fails; /* shown to be wrong: not an error */
    uint32_t a, b, c;
    float f;
} lab_variant;

#define NOT_USED "in no kernel of the product"
typedef struct lab_technique {
    const char *name, *shape, *unit;
    const char *where; /* in the product, or NOT_USED */
    size_t in_bytes, in2_bytes, out_bytes;
    uint32_t n, rounds;                /* of a timed run */
    uint32_t check_rounds;             /* of the run that is compared; n is the same */
    unsigned blocks, per_sm;           /* blocks, or blocks a multiprocessor */
    double work;                       /* units of `unit` without its prefix, of one thread in one round */
    bool flush;                        /* the caches before each timed run */
    size_t check_words;                /* words of the output that are compared */
    double tolerance;                  /* 0: words are equal; else of float32, relative to what is above 1 */
    void (*fill)(void *in, void *in2); /* NULL: random words */
    void (*reference)(const lab_args *args, const lab_variant *variant, uint32_t *out);
    const lab_variant *variants;
    int n_variants;
} lab_technique;

/* The tables of the .cu files. */
typedef struct lab_list {
    const lab_technique *technique;
    int n;
} lab_list;
extern const lab_list lab_integer, lab_warp, lab_float;

/* A fixed pseudo-random function of i. */
static inline uint32_t lab_hash(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* --- one source, four builds (lab_build.cu) ----------------------------------------------------------- */

enum { LAB_SOFTMAX_WAYS = 5, LAB_ROW = 1024, LAB_CENSUS = 1024, LAB_RESIDUALS = 12 };
typedef struct lab_build {
    const char *name;                      /* of the compiler's options: "default", "-ftz=true", ... */
    const void *softmax[LAB_SOFTMAX_WAYS]; /* in, out: n rows of LAB_ROW floats; rounds */
    const void *residual;                  /* in: x; in2: y; out: x * x + y */
    const void *census;                    /* in: x; out: expf(x) */
    const void *probe;                     /* common/numerics.cuh */
} lab_build;
extern const lab_build lab_build_default, lab_build_ftz, lab_build_nofmad, lab_build_fast;
extern const char *const lab_softmax_names[LAB_SOFTMAX_WAYS];

/* Greatest error of the fast functions against float64 (lab_float.cu). */
enum { LAB_FUNCTIONS = 5 };
typedef struct lab_function {
    const char *name, *fast, *precise, *range;
    float low, high;
    const void *census[2]; /* fast, precise: greatest error of n samples in units in the last
                            * place, and absolute; both float patterns */
} lab_function;
extern const lab_function lab_functions[LAB_FUNCTIONS];

#ifdef __cplusplus
}
#endif
#endif
