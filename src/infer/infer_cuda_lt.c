/* infer_cuda_lt.c - the int8 product of NVIDIA's cuBLASLt, looked up when it is first wanted: a machine
 * without the library loses nothing but speed. The few constants and the result's layout below are those of
 * its documented interface (CUDA 11 and later). */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda_check.h"
#include "infer/infer_cuda.h"

enum {
    LT_COMPUTE_32I = 72, /* cublasComputeType_t */
    LT_R_8I = 3,         /* cudaDataType_t */
    LT_R_32I = 10,
    LT_DESC_TRANSA = 3, /* cublasLtMatmulDescAttributes_t */
    LT_OP_T = 1,
    LT_PREF_WORKSPACE = 1 /* cublasLtMatmulPreferenceAttributes_t */
};
#define LT_WORKSPACE (INT64_C(32) << 20)

typedef struct lt_result { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} lt_result;

enum { MOST_PLANS = 16 };
typedef struct plan {
    int64_t m, n, k, lda, ldb;
    void *descriptor, *a, *b, *c;
    lt_result best;
    bool usable;
} plan;

struct lw_lt {
    void *library, *handle;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*descriptor_create)(void **descriptor, int compute, int scale);
    int (*descriptor_destroy)(void *descriptor);
    int (*descriptor_set)(void *descriptor, int attribute, const void *value, size_t size);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
    int (*layout_destroy)(void *layout);
    int (*preference_create)(void **preference);
    int (*preference_destroy)(void *preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t size);
    int (*heuristic)(void *handle, void *descriptor, void *a, void *b, void *c, void *d, void *preference,
                     int wanted, lt_result *results, int *returned);
    int (*multiply)(void *handle, void *descriptor, const void *alpha, const void *a, void *layout_a,
                    const void *b, void *layout_b, const void *beta, const void *c, void *layout_c, void *d,
                    void *layout_d, const void *algorithm, void *workspace, size_t size, cudaStream_t stream);
    plan plans[MOST_PLANS];
    int n_plans;
};

/* A function of the library; the pointer is stored through bytes, as POSIX recommends. */
static bool look_up(struct lw_lt *lt, const char *name, void *function)
{
    void *symbol = dlsym(lt->library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static struct lw_lt *lt_open(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so"};
    struct lw_lt *lt = calloc(1, sizeof *lt);
    if (!lt)
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !lt->library; i++)
        lt->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool good = lt->library && look_up(lt, "cublasLtCreate", &lt->create) &&
                look_up(lt, "cublasLtDestroy", &lt->destroy) &&
                look_up(lt, "cublasLtMatmulDescCreate", &lt->descriptor_create) &&
                look_up(lt, "cublasLtMatmulDescDestroy", &lt->descriptor_destroy) &&
                look_up(lt, "cublasLtMatmulDescSetAttribute", &lt->descriptor_set) &&
                look_up(lt, "cublasLtMatrixLayoutCreate", &lt->layout_create) &&
                look_up(lt, "cublasLtMatrixLayoutDestroy", &lt->layout_destroy) &&
                look_up(lt, "cublasLtMatmulPreferenceCreate", &lt->preference_create) &&
                look_up(lt, "cublasLtMatmulPreferenceDestroy", &lt->preference_destroy) &&
                look_up(lt, "cublasLtMatmulPreferenceSetAttribute", &lt->preference_set) &&
                look_up(lt, "cublasLtMatmulAlgoGetHeuristic", &lt->heuristic) &&
                look_up(lt, "cublasLtMatmul", &lt->multiply) && lt->create(&lt->handle) == 0;
    if (!good) {
        lw_lt_close(lt);
        return NULL;
    }
    return lt;
}

bool lw_lt_usable(infer_cuda *x)
{
    if (!x->lt_sought)
        x->lt = lt_open();
    x->lt_sought = true;
    return x->lt != NULL;
}

static void plan_free(const struct lw_lt *lt, plan *p)
{
    if (p->descriptor)
        lt->descriptor_destroy(p->descriptor);
    void *layouts[] = {p->a, p->b, p->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            lt->layout_destroy(layouts[i]);
}

void lw_lt_close(struct lw_lt *lt)
{
    if (!lt)
        return;
    for (int i = 0; i < lt->n_plans; i++)
        plan_free(lt, &lt->plans[i]);
    if (lt->handle)
        lt->destroy(lt->handle);
    if (lt->library)
        dlclose(lt->library);
    free(lt);
}

/* Rows of c are columns to the library: c' (n x m) = transpose(b') (n x k) a' (k x m). */
static void plan_make(struct lw_lt *lt, plan *p)
{
    int transposed = LT_OP_T, n = 0;
    void *preference = NULL;
    size_t workspace = LT_WORKSPACE;
    p->usable =
        lt->descriptor_create(&p->descriptor, LT_COMPUTE_32I, LT_R_32I) == 0 &&
        lt->descriptor_set(p->descriptor, LT_DESC_TRANSA, &transposed, sizeof transposed) == 0 &&
        lt->layout_create(&p->b, LT_R_8I, (uint64_t)p->k, (uint64_t)p->n, p->ldb) == 0 &&
        lt->layout_create(&p->a, LT_R_8I, (uint64_t)p->k, (uint64_t)p->m, p->lda) == 0 &&
        lt->layout_create(&p->c, LT_R_32I, (uint64_t)p->n, (uint64_t)p->m, p->n) == 0 &&
        lt->preference_create(&preference) == 0 &&
        lt->preference_set(preference, LT_PREF_WORKSPACE, &workspace, sizeof workspace) == 0 &&
        lt->heuristic(lt->handle, p->descriptor, p->b, p->a, p->c, p->c, preference, 1, &p->best, &n) == 0 &&
        n == 1 && p->best.state == 0;
    if (preference)
        lt->preference_destroy(preference);
}

lw_status lw_lt_product(infer_cuda *x, int64_t m, int64_t n, int64_t k, const uint8_t *a, int64_t lda,
                        const uint8_t *b, int64_t ldb, int32_t *sums, bool *done, lw_error *err)
{
    struct lw_lt *lt = x->lt;
    plan *p = NULL;
    for (int i = 0; i < lt->n_plans && !p; i++) {
        plan *q = &lt->plans[i];
        if (q->m == m && q->n == n && q->k == k && q->lda == lda && q->ldb == ldb)
            p = q;
    }
    if (!p) {
        if (lt->n_plans == MOST_PLANS)
            plan_free(lt, &lt->plans[--lt->n_plans]);
        p = &lt->plans[lt->n_plans++];
        *p = (plan){.m = m, .n = n, .k = k, .lda = lda, .ldb = ldb};
        plan_make(lt, p);
    }
    if (!p->usable)
        return LW_OK;
    int32_t one = 1, zero = 0;
    void *workspace;
    LW_TRY(lw_cuda_allocate_if_free(x, &workspace, (int64_t)p->best.workspace, err));
    if (!workspace) /* our own kernels need none */
        return LW_OK;
    *done = lt->multiply(lt->handle, p->descriptor, &one, b, p->b, a, p->a, &zero, sums, p->c, sums, p->c,
                         p->best.algorithm, workspace, p->best.workspace, x->stream) == 0;
    lw_cuda_release(x, workspace);
    return LW_OK;
}
