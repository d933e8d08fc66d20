/* infer_cuda_graph.c - runs of a model that are kept as CUDA graphs.
 *
 * When the same shapes come a second time, the run is recorded: the inputs become tensors that only the
 * device has, what the nodes launch goes into a graph, and their memory comes from an arena that belongs to
 * the recording, so that it lies in the same places ever after. Whatever nodes compute on the host meanwhile
 * depends on shapes and constants alone, since the inputs are not there to be looked at: a node that asks for
 * them ends the recording, and such a model runs node by node. Later runs of these shapes copy the inputs,
 * launch the graph and copy the outputs.
 *
 * A recording costs more than a run. Models that cannot be recorded, and shapes that do not stay long enough,
 * are no longer recorded once that has been seen a few times in a row (infer_tuning.h). */
#include <stdlib.h>
#include <string.h>

#include "common/cuda_check.h"
#include "infer/infer_cuda.h"
#include "infer/infer_tuning.h"
#include "infer/network.h"

/* ---- the arena -------------------------------------------------------------------------------------- */

/* Device memory is taken from the system in chunks of at least so many bytes; addresses are multiples of
 * ALIGNED. */
#define CHUNK (INT64_C(32) << 20)
enum { ALIGNED = 256 };

/* A piece of a chunk; in the order of addresses within it. */
typedef struct piece {
    char *at;
    int64_t size;
    bool used, first; /* first: of its chunk */
} piece;

struct lw_cuda_recording {
    infer_cuda *x;
    piece *pieces;
    int n_pieces, capacity;
    bool checks;        /* a kernel may set *flag */
    int32_t *flag;      /* on the device: an index was out of bounds */
    int64_t generation; /* of the constants' memory, when it was recorded */
    int64_t replays;
    int n_in, n_out;
    lw_tensor **in, **out;
    lw_tensor **kept; /* host tensors whose device copies the graph reads */
    int n_kept;
    cudaGraphExec_t graph;
};

static bool grow(struct lw_cuda_recording *r)
{
    if (r->n_pieces < r->capacity)
        return true;
    int capacity = r->capacity ? 2 * r->capacity : 64;
    piece *pieces = realloc(r->pieces, (size_t)capacity * sizeof *pieces);
    if (pieces) {
        r->pieces = pieces;
        r->capacity = capacity;
    }
    return pieces != NULL;
}

/* Cuts what is more than `size` off piece i, as a free piece. */
static bool cut(struct lw_cuda_recording *r, int i, int64_t size)
{
    piece rest = {.at = r->pieces[i].at + size, .size = r->pieces[i].size - size};
    if (rest.size == 0)
        return true;
    if (!grow(r))
        return false;
    memmove(&r->pieces[i + 2], &r->pieces[i + 1], (size_t)(r->n_pieces - i - 1) * sizeof *r->pieces);
    r->pieces[i].size = size;
    r->pieces[i + 1] = rest;
    r->n_pieces++;
    return true;
}

lw_status lw_cuda_arena_take(struct lw_cuda_recording *r, void **out, int64_t bytes, lw_error *err)
{
    int best = -1;
    int64_t size = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    for (int i = 0; i < r->n_pieces; i++)
        if (!r->pieces[i].used && r->pieces[i].size >= size &&
            (best < 0 || r->pieces[i].size < r->pieces[best].size))
            best = i;
    if (best < 0) {
        void *p;
        int64_t chunk = size > CHUNK ? size : CHUNK;
        if (!grow(r))
            return lw_fail_memory(err, (size_t)r->capacity * sizeof *r->pieces);
        LW_TRY(lw_cuda_allocate_aside(r->x, &p, chunk, err));
        best = r->n_pieces++;
        r->pieces[best] = (piece){.at = p, .size = chunk, .first = true};
    }
    if (!cut(r, best, size))
        return lw_fail_memory(err, (size_t)r->capacity * sizeof *r->pieces);
    r->pieces[best].used = true;
    *out = r->pieces[best].at;
    return LW_OK;
}

/* Joins piece i with the one behind it, if both are free. */
static void join(struct lw_cuda_recording *r, int i)
{
    if (i < 0 || i + 1 >= r->n_pieces || r->pieces[i].used || r->pieces[i + 1].used || r->pieces[i + 1].first)
        return;
    r->pieces[i].size += r->pieces[i + 1].size;
    r->n_pieces--;
    memmove(&r->pieces[i + 1], &r->pieces[i + 2], (size_t)(r->n_pieces - i - 1) * sizeof *r->pieces);
}

bool lw_cuda_arena_give(struct lw_cuda_recording *r, void *p)
{
    for (int i = 0; r && i < r->n_pieces; i++)
        if (r->pieces[i].at == p && r->pieces[i].used) {
            r->pieces[i].used = false;
            join(r, i);
            join(r, i - 1);
            return true;
        }
    return false;
}

/* ---- recordings --------------------------------------------------------------------------------------- */

bool lw_cuda_recording_asks(infer_cuda *x)
{
    return x->recording != NULL;
}

lw_status lw_cuda_recording_keep(infer_cuda *x, lw_tensor *t, lw_error *err)
{
    struct lw_cuda_recording *r = x->recording;
    if (!r)
        return LW_OK;
    lw_tensor **kept = realloc(r->kept, (size_t)(r->n_kept + 1) * sizeof(lw_tensor *));
    if (!kept)
        return lw_fail_memory(err, (size_t)(r->n_kept + 1) * sizeof(lw_tensor *));
    r->kept = kept;
    r->kept[r->n_kept++] = lw_tensor_retain(t);
    return LW_OK;
}

int32_t *lw_cuda_recording_flag(infer_cuda *x)
{
    if (!x->recording)
        return NULL;
    x->recording->checks = true;
    return x->recording->flag;
}

static void release_all(lw_tensor **list, int n)
{
    for (int i = 0; list && i < n; i++)
        lw_tensor_release(list[i]);
    free(list);
}

static void recording_free(struct lw_cuda_recording *r)
{
    if (!r)
        return;
    if (r->graph)
        cudaGraphExecDestroy(r->graph);
    r->x->recording = r; /* their memory goes back to the arena */
    release_all(r->in, r->n_in);
    release_all(r->out, r->n_out);
    release_all(r->kept, r->n_kept);
    r->x->recording = NULL;
    for (int i = 0; i < r->n_pieces; i++) /* whole chunks again: every tensor in them is gone */
        if (r->pieces[i].first)
            cudaFreeAsync(r->pieces[i].at, r->x->stream);
    if (r->flag)
        cudaFreeAsync(r->flag, r->x->stream);
    free(r->pieces);
    free(r);
}

static bool same_shapes(lw_tensor *const *a, lw_tensor *const *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!a || a[i]->dtype != b[i]->dtype || a[i]->rank != b[i]->rank || a[i]->bits != b[i]->bits ||
            memcmp(a[i]->dim, b[i]->dim, (size_t)a[i]->rank * sizeof *a[i]->dim) != 0)
            return false;
    return true;
}

/* Into a graph, everything between the inputs and the outputs. */
static lw_status capture(infer_cuda *x, struct lw_cuda_recording *r, const struct lw_network *n,
                         cudaGraph_t *graph, lw_error *err)
{
    LW_CUDA_TRY(err, "running kernels", cudaStreamSynchronize(x->stream));
    LW_CUDA_TRY(err, "recording a run", cudaStreamBeginCapture(x->stream, cudaStreamCaptureModeRelaxed));
    x->recording = r;
    lw_status status = lw_cuda_fill(x, r->flag, 0, sizeof *r->flag, err);
    if (status == LW_OK)
        status = lw_network_walk(n, r->in, r->out, NULL, NULL, err);
    x->recording = NULL;
    cudaError_t code = cudaStreamEndCapture(x->stream, graph);
    if (status == LW_OK && code != cudaSuccess)
        status = lw_cuda_fail(err, code, "recording a run");
    cudaGetLastError();
    return status;
}

static lw_status record(infer_cuda *x, const struct lw_network *n, lw_tensor *const *inputs,
                        struct lw_cuda_recording **out, lw_error *err)
{
    struct lw_cuda_recording *r = calloc(1, sizeof *r);
    cudaGraph_t graph = NULL;
    lw_status status = LW_OK;
    void *p;
    *out = r;
    if (!r)
        return lw_fail_memory(err, sizeof *r);
    r->x = x;
    r->generation = x->generation;
    r->in = calloc((size_t)n->model->n_inputs + 1, sizeof(lw_tensor *));
    r->out = calloc((size_t)n->model->n_outputs + 1, sizeof(lw_tensor *));
    if (!r->in || !r->out)
        return lw_fail_memory(err, (size_t)(n->model->n_inputs + n->model->n_outputs) * sizeof(lw_tensor *));
    r->n_in = n->model->n_inputs;
    r->n_out = n->model->n_outputs;
    LW_TRY(lw_cuda_allocate_aside(x, &p, sizeof *r->flag, err));
    r->flag = p;
    x->recording = r;
    for (int i = 0; i < r->n_in && status == LW_OK; i++) {
        status = lw_cuda_tensor(x, &r->in[i], inputs[i]->dtype, inputs[i]->rank, inputs[i]->dim, &p, err);
        if (status == LW_OK) {
            r->in[i]->bits = inputs[i]->bits;
            ((lw_cuda_copy *)r->in[i]->buffer->device)->input = true;
        }
    }
    x->recording = NULL;
    if (status == LW_OK)
        status = capture(x, r, n, &graph, err);
    if (status == LW_OK) {
        cudaError_t code = cudaGraphInstantiate(&r->graph, graph, 0);
        if (code != cudaSuccess)
            status = lw_cuda_fail(err, code, "recording a run");
    }
    if (graph)
        cudaGraphDestroy(graph);
    return status;
}

/* *done: all indices were good, and the outputs are there. */
static lw_status replay(infer_cuda *x, struct lw_cuda_recording *r, lw_tensor *const *inputs,
                        lw_tensor **outputs, bool *done, lw_error *err)
{
    int32_t flag = 0;
    lw_status status = LW_OK;
    if (++r->replays == LW_CUDA_REPLAYS_THAT_PAY)
        x->in_vain = 0;
    for (int i = 0; i < r->n_in; i++)
        LW_CUDA_TRY(err, "copying a tensor to the GPU",
                    cudaMemcpyAsync(((lw_cuda_copy *)r->in[i]->buffer->device)->p, inputs[i]->data,
                                    (size_t)inputs[i]->count * (size_t)lw_dtype_size(inputs[i]->dtype),
                                    cudaMemcpyHostToDevice, x->stream));
    LW_CUDA_TRY(err, "running kernels", cudaGraphLaunch(r->graph, x->stream));
    for (int i = 0; i < r->n_out; i++) {
        const lw_tensor *t = r->out[i];
        if (t->data) {
            outputs[i] = lw_tensor_retain(r->out[i]);
            continue;
        }
        LW_TRY_END(lw_tensor_new(&outputs[i], t->dtype, t->rank, t->dim, err));
        outputs[i]->bits = t->bits;
        LW_CUDA_TRY_END(err, "copying a tensor from the GPU",
                        cudaMemcpyAsync(outputs[i]->data, ((lw_cuda_copy *)t->buffer->device)->p,
                                        (size_t)t->count * (size_t)lw_dtype_size(t->dtype),
                                        cudaMemcpyDeviceToHost, x->stream));
    }
    if (r->checks)
        LW_CUDA_TRY_END(err, "copying a tensor from the GPU",
                        cudaMemcpyAsync(&flag, r->flag, sizeof flag, cudaMemcpyDeviceToHost, x->stream));
    LW_CUDA_TRY_END(err, "running kernels", cudaStreamSynchronize(x->stream));
    *done = flag == 0;
end:
    for (int i = 0; !*done && i < r->n_out; i++) {
        lw_tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
    return status;
}

/* A tensor without elements, to compare shapes with. */
static lw_status remember(infer_cuda *x, lw_tensor *const *inputs, int n, lw_error *err)
{
    release_all(x->last, x->n_last);
    x->n_last = 0;
    x->last = calloc((size_t)n + 1, sizeof(lw_tensor *));
    if (!x->last)
        return lw_fail_memory(err, (size_t)n * sizeof(lw_tensor *));
    for (; x->n_last < n; x->n_last++) {
        const lw_tensor *t = inputs[x->n_last];
        LW_TRY(lw_tensor_new_elsewhere(&x->last[x->n_last], t->dtype, t->rank, t->dim, err));
        x->last[x->n_last]->bits = t->bits;
    }
    x->hopeless = false;
    return LW_OK;
}

void lw_cuda_forget_kept(infer_cuda *x)
{
    recording_free(x->kept);
    x->kept = NULL;
}

void lw_cuda_forget(infer_cuda *x)
{
    lw_cuda_forget_kept(x);
    release_all(x->last, x->n_last);
    x->last = NULL;
}

lw_status lw_cuda_run(void *context, const struct lw_network *n, lw_tensor *const *inputs,
                      lw_tensor **outputs, bool *done, lw_error *err)
{
    infer_cuda *x = context;
    int n_in = n->model->n_inputs;
    *done = false;
    if (!x->pooled)
        return LW_OK;
    if (x->kept && same_shapes(x->kept->in, inputs, n_in) && x->kept->generation == x->generation)
        return replay(x, x->kept, inputs, outputs, done, err);
    if (x->n_last != n_in || !same_shapes(x->last, inputs, n_in))
        return remember(x, inputs, n_in, err);
    if (x->hopeless || x->in_vain == LW_CUDA_RECORDINGS_IN_VAIN)
        return LW_OK;
    struct lw_cuda_recording *r;
    lw_error why = {0};
    lw_cuda_forget_kept(x);
    x->in_vain++;                                  /* until it has paid */
    if (record(x, n, inputs, &r, &why) != LW_OK) { /* what is wrong shows when the nodes run one by one */
        recording_free(r);
        cudaGetLastError(); /* the nodes' launches look at it */
        x->hopeless = true;
        return LW_OK;
    }
    x->kept = r;
    return replay(x, r, inputs, outputs, done, err);
}
