/* test_onnx_nodes.c - ONNX's own node tests: every one whose operators are claimed must pass, integers
 * exactly, floats within ONNX's tolerance (relative 1e-3, absolute 1e-7). */
#include <criterion/criterion.h>
#include <dirent.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "infer/network.h"

/* Debian's set, and the newer one of the onnx package in the venv that scripts/test.sh makes. */
static const char debian[] = "/usr/share/libonnx-testdata/data/node";
static const char newer[] =
    LW_SOURCE_DIR "/build/venv/lib/python3*/site-packages/onnx/backend/test/data/node";

/* Tests (how their names begin) of a claimed operator in a form that is not claimed; the refusal must say so.
 */
static const struct {
    const char *test, *says;
} not_claimed[] = {
    {"test_einsum_", "an ellipsis is not supported"},
    {"test_resize_", "mode cubic is not supported"},
    {"test_resize_", "keep_aspect_ratio_policy is not supported"},
    {"test_resize_", "antialias, tf_crop_and_resize or an unknown rounding is not supported"},
    {"test_maxpool_with_argmax_2d_precomputed_pads", "the indices output is not supported"},
    {"test_maxpool_with_argmax_2d_precomputed_strides", "the indices output is not supported"},
    {"test_batchnorm_example_training_mode", "for inference"},
    {"test_batchnorm_epsilon_training_mode", "for inference"},
    {"test_cast_FLOAT_to_BFLOAT16", "not supported"},
    {"test_training_dropout", "training"},
    {"test_training_dropout_default", "training"},
    {"test_training_dropout_default_mask", "training"},
    {"test_training_dropout_mask", "training"},
    {"test_training_dropout_zero_ratio", "training"},
    {"test_training_dropout_zero_ratio_mask", "training"},
};

static bool same(const lw_tensor *got, const lw_tensor *want, char *why, size_t size)
{
    char a[200], b[200];
    if (got->dtype != want->dtype || got->rank != want->rank ||
        memcmp(got->dim, want->dim, (size_t)want->rank * sizeof *want->dim)) {
        snprintf(why, size, "%s instead of %s", lw_tensor_text(got, a, sizeof a),
                 lw_tensor_text(want, b, sizeof b));
        return false;
    }
    bool real = want->dtype == LW_F32 || want->dtype == LW_F64 || want->dtype == LW_F16;
    for (int64_t i = 0; i < want->count; i++) {
        double x = lw_tensor_number(got, i), y = lw_tensor_number(want, i);
        bool ok = real ? x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-7 + 1e-3 * fabs(y)
                       : lw_tensor_integer(got, i) == lw_tensor_integer(want, i);
        if (!ok) {
            snprintf(why, size, "element %lld is %g instead of %g", (long long)i, x, y);
            return false;
        }
    }
    return true;
}

/* The test's tensors input_0.pb ... or output_0.pb ...; the number read. */
static int read_tensors(const char *folder, const char *kind, lw_tensor **out, int n)
{
    int k = 0;
    for (; k < n; k++) {
        char path[1024];
        struct stat info;
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, k);
        if (stat(path, &info) != 0 || lw_tensor_read_pb(&out[k], path, NULL) != LW_OK)
            break;
    }
    return k;
}

typedef enum verdict { PASSED, NOT_CLAIMED, FAILED } verdict;

static verdict run_one(const char *data, const char *name, const char *backend, char *why, size_t size)
{
    char folder[512], path[600];
    lw_error err = {0};
    lw_network *n = NULL;
    snprintf(folder, sizeof folder, "%s/%s", data, name);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    lw_status status = lw_network_open(&n, path, backend, 1, NULL, &err);
    if (status != LW_OK) {
        snprintf(why, size, "%s", err.message);
        return strstr(err.message, "is not supported") ? NOT_CLAIMED : FAILED;
    }
    enum { MOST = 64 };
    lw_tensor *in[MOST] = {0}, *want[MOST] = {0}, *got[MOST] = {0};
    verdict v = FAILED;
    bool types = true;
    for (int i = 0; i < n->model->n_inputs; i++)
        types = types && n->model->values[n->model->inputs[i]].dtype_supported;
    int n_in = read_tensors(folder, "input", in, n->model->n_inputs),
        n_want = read_tensors(folder, "output", want, n->model->n_outputs);
    if (!types || n_in < n->model->n_inputs || n_want < n->model->n_outputs) {
        snprintf(why, size, "tensors of a kind that is not supported");
        v = NOT_CLAIMED;
    } else if (lw_network_run(n, in, got, NULL, NULL, &err) != LW_OK) {
        snprintf(why, size, "%s", err.message);
        for (size_t i = 0; i < sizeof not_claimed / sizeof *not_claimed; i++)
            if (strncmp(not_claimed[i].test, name, strlen(not_claimed[i].test)) == 0 &&
                strstr(err.message, not_claimed[i].says))
                v = NOT_CLAIMED;
        if (strstr(err.message, "float16") || strstr(err.message, "must be float32, not float64"))
            v = NOT_CLAIMED;
    } else {
        v = PASSED;
        /* twice more where runs are recorded and repeated */
        for (int run = 0; v == PASSED && run < (n->backend->run ? 3 : 1); run++) {
            for (int i = 0; run > 0 && i < n->model->n_outputs; i++) {
                lw_tensor_release(got[i]);
                got[i] = NULL;
            }
            if (run > 0 && lw_network_run(n, in, got, NULL, NULL, &err) != LW_OK) {
                snprintf(why, size, "run %d: %s", run, err.message);
                v = FAILED;
            }
            for (int i = 0; i < n->model->n_outputs && v == PASSED; i++)
                v = same(got[i], want[i], why, size) ? PASSED : FAILED;
        }
    }
    for (int i = 0; i < MOST; i++) {
        lw_tensor_release(in[i]);
        lw_tensor_release(want[i]);
        lw_tensor_release(got[i]);
    }
    lw_network_close(n);
    return v;
}

/* At least `least` must pass, on every backend that can run here. */
static void run_all(const char *data, int least)
{
    struct dirent **list;
    int n = scandir(data, &list, NULL, alphasort);
    cr_assert_geq(n, 0, "%s cannot be listed", data);
    for (int b = 0; b < lw_infer_backend_count; b++) {
        const lw_backend *row = &lw_infer_backends[b]->base;
        int count[3] = {0};
        if (row->usable(row, 0, NULL) != LW_OK)
            continue;
        for (int i = 0; i < n; i++) {
            char why[1200] = "";
            if (strncmp(list[i]->d_name, "test_", 5) != 0)
                continue;
            verdict v = run_one(data, list[i]->d_name, row->name, why, sizeof why);
            count[v]++;
            cr_expect(v != FAILED, "%s, %s: %s", list[i]->d_name, row->name, why);
            if (getenv("LANEWISE_TEST_LIST"))
                fprintf(stderr, "%s\t%s\t%s\t%s\n",
                        v == PASSED   ? "passed"
                        : v == FAILED ? "failed"
                                      : "not claimed",
                        row->name, list[i]->d_name, why);
        }
        fprintf(stderr, "ONNX node tests, %s: %d passed, %d not claimed, %d failed\n", row->name,
                count[PASSED], count[NOT_CLAIMED], count[FAILED]);
        cr_expect(count[PASSED] > least, "only %d passed: is the test data complete?", count[PASSED]);
    }
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

/* Tests of the same kind in another folder: what ort_random.py saved, for machines without Python. */
Test(onnx_nodes, given_set, .timeout = 300)
{
    const char *given = getenv("LANEWISE_ONNX_TESTS");
    if (!given)
        cr_skip_test("LANEWISE_ONNX_TESTS names no folder");
    run_all(given, 0);
}

Test(onnx_nodes, debian_set, .timeout = 300)
{
    if (access(debian, R_OK) != 0)
        cr_skip_test("no ONNX test data in %s (Debian: libonnx-testdata)", debian);
    run_all(debian, 500);
}

Test(onnx_nodes, newer_set, .timeout = 300)
{
    glob_t found;
    if (glob(newer, 0, NULL, &found) != 0)
        cr_skip_test("no onnx package in build/venv: its newer node tests do not run");
    run_all(found.gl_pathv[0], 700);
    globfree(&found);
}
