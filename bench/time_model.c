/* time_model.c - time-model MODEL.onnx BACKEND THREADS REPEATS ROWS: runs a model on random inputs (ROWS for
 * every dimension that it leaves open) and prints the best time and the least processor
 * time (of all threads) in milliseconds: what tests/infer/ort_speed.py sets beside ONNX Runtime's. Weights
 * are packed by a first run that does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lanewise/lanewise.h"

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static lw_status fill(lw_network *n, int i, int64_t rows, lw_error *err)
{
    lw_array in;
    lw_status status = lw_network_input_array(n, i, &in, err);
    int64_t count = lw_dtype_size(in.dtype);
    for (int k = 0; k < in.rank; k++) {
        in.dim[k] = in.dim[k] < 0 ? rows : in.dim[k];
        count *= in.dim[k];
    }
    in.rank = in.rank < 0 ? 0 : in.rank;
    unsigned char *data = malloc((size_t)count + 1);
    if (!data)
        return LW_E_NOMEM;
    for (int64_t k = 0; k < count; k++)
        data[k] = (unsigned char)(rand() >> 8);
    if (in.dtype == LW_F32)
        for (int64_t k = 0; k < count / 4; k++)
            ((float *)(void *)data)[k] = (float)(rand() % 2000) * 0.001f - 1;
    if (in.dtype == LW_I64) /* tokens and masks */
        for (int64_t k = 0; k < count / 8; k++)
            ((int64_t *)(void *)data)[k] = rand() >> 8 & 1;
    in.data = data;
    if (status == LW_OK)
        status = lw_network_set_input(n, i, &in, err);
    free(data);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fputs("usage: time-model MODEL.onnx BACKEND THREADS REPEATS ROWS\n", stderr);
        return 2;
    }
    lw_network *n = NULL;
    lw_error err = {0};
    lw_status status = lw_network_open(&n, argv[1], argv[2], atoi(argv[3]), NULL, &err);
    for (int i = 0; status == LW_OK && i < lw_network_n_inputs(n); i++)
        status = fill(n, i, atoll(argv[5]), &err);
    double best = 1e30, least = 1e30;
    for (int r = 0; status == LW_OK && r <= atoi(argv[4]); r++) {
        double started = now(CLOCK_MONOTONIC), before = now(CLOCK_PROCESS_CPUTIME_ID);
        status = lw_network_compute(n, &err);
        double took = now(CLOCK_MONOTONIC) - started, worked = now(CLOCK_PROCESS_CPUTIME_ID) - before;
        best = r > 0 && took < best ? took : best;
        least = r > 0 && worked < least ? worked : least;
    }
    lw_network_close(n);
    if (status != LW_OK) {
        fprintf(stderr, "time-model: %s\n", err.message);
        return 1;
    }
    printf("%.4f %.4f\n", best, least);
    return 0;
}
