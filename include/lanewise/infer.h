/* infer.h - quantized ONNX models, exact.
 *
 * Integers are those of the ONNX standard and, where it leaves the order of scales open, of ONNX Runtime's
 * CPU provider: the same on every backend. Floats are computed in float32. */
#ifndef LANEWISE_INFER_H
#define LANEWISE_INFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lanewise/dtype.h"
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model that has been read, checked and folded. Used by one thread at a time. */
typedef struct lw_network lw_network;

/* Reads an .onnx file. backend: "auto", "scalar", "cpu" ... (NULL: auto). threads 0: one per CPU. Constant
 * parts are computed once, here. LW_E_IO; LW_E_INPUT: not ONNX, an operator that is not supported (its name,
 * version and node are said), shapes that do not agree; LW_E_RANGE: sums that int32 could not hold;
 * LW_E_UNSUPPORTED: the backend cannot run. */
lw_status lw_network_open(lw_network **out, const char *path, const char *backend, int threads,
                          const lw_host *host, lw_error *err);
/* The same from the bytes of an .onnx file, which are not needed any longer after the call; external data is
 * refused. */
lw_status lw_network_open_memory(lw_network **out, const void *data, size_t size, const char *backend,
                                 int threads, const lw_host *host, lw_error *err);
void lw_network_close(lw_network *network); /* NULL is allowed */

/* Makes integer kernels of DequantizeLinear, operator, QuantizeLinear, as ONNX Runtime's default
 * optimizations do; after opening, before the first run. Results may move by one step of their scale against
 * the model as it is written, since a float sum rounds otherwise than an integer. *fused (may be NULL): how
 * many operators. LW_E_RANGE: a sum that int32 could not hold; LW_E_NOMEM: only lw_network_close() is left.
 */
lw_status lw_network_fuse(lw_network *network, int *fused, lw_error *err);

const char *lw_network_backend(const lw_network *network);

/* Names of the inputs that a caller must give, and of the outputs, in the file's order. */
int lw_network_n_inputs(const lw_network *network);
const char *lw_network_input(const lw_network *network, int i);
int lw_network_n_outputs(const lw_network *network);
const char *lw_network_output(const lw_network *network, int i);

/* Initializers that the model lists among its inputs as well: defaults, which a caller may override. They are
 * constants, computed with when the model is opened, until lw_network_override() makes an input of one; its
 * place among the inputs (behind all others) is stored in *input, which may be NULL, and where nothing is
 * given for it, it has its default. To be called before the model is fused and before its first run; on an
 * input, it changes nothing. lw_network_run_files() and lw_network_run_sequences() override what they are
 * given. LW_E_ARG: no such name, or too late; after other failures only lw_network_close() is left. */
int lw_network_n_overridable(const lw_network *network);
const char *lw_network_overridable(const lw_network *network, int i);
lw_status lw_network_override(lw_network *network, const char *name, int *input, lw_error *err);

/* ---- on arrays in memory ----
 *
 *     lw_network *n;
 *     lw_network_open(&n, "model.onnx", NULL, 0, NULL, &err);
 *     lw_array x = {.dtype = LW_F32, .rank = 2, .dim = {1, 64}, .data = numbers}, y;
 *     lw_network_set_input(n, 0, &x, &err);
 *     lw_network_compute(n, &err);
 *     lw_network_output_array(n, 0, &y, &err);    // y.data: y.dim[0] * ... elements of y.dtype
 *     lw_network_close(n);
 */

enum { LW_ARRAY_RANK = 8 };

/* Dense, row-major (the last dimension runs fastest), in the machine's byte order. */
typedef struct lw_array {
    lw_dtype dtype;
    int rank;                   /* 0: one number */
    int64_t dim[LW_ARRAY_RANK]; /* >= 0 */
    const void *data;           /* borrowed */
} lw_array;

/* What the model declares of input i: dtype (LW_F32 where it declares none), rank (-1: none declared), dim
 * (-1: any). data is NULL. LW_E_ARG: no such input. */
lw_status lw_network_input_array(const lw_network *network, int i, lw_array *out, lw_error *err);

/* Gives input i its elements, which are copied; they stay until they are replaced. LW_E_ARG: no such input,
 * no data; LW_E_INPUT: not the declared type or shape; LW_E_RANGE, LW_E_NOMEM. After a failure the input is
 * as it was. */
lw_status lw_network_set_input(lw_network *network, int i, const lw_array *array, lw_error *err);

/* Runs the model on the inputs that were set. Blocks until done. Weights that the backend packed or copied to
 * a device are kept for the next call. LW_E_ARG: an input is missing; LW_E_INPUT: shapes that do not agree
 * inside, with the node's name; LW_E_RANGE: a sum could leave int32; LW_E_NOMEM, LW_E_DEVICE,
 * LW_E_INTERRUPTED. After a failure there are no outputs; another try may follow (not after LW_E_DEVICE). */
lw_status lw_network_compute(lw_network *network, lw_error *err);

/* Output i of the last lw_network_compute(): data belongs to the network and stays until the next one, or
 * until it is closed. Before the first one: what the model declares, data NULL. LW_E_ARG: no such output. */
lw_status lw_network_output_array(const lw_network *network, int i, lw_array *out, lw_error *err);

/* A tensor by name in an .npy file. */
typedef struct lw_named_file {
    const char *name; /* NULL: the only (or next) input or output */
    const char *path;
} lw_named_file;

struct lw_temporaries;

/* Runs the model once on tensors from .npy files and writes the wanted outputs (all or none appears). dump
 * (may be NULL): a folder that receives every intermediate value as INDEX_NAME.npy. */
lw_status lw_network_run_files(lw_network *network, const lw_named_file *inputs, int n_inputs,
                               const lw_named_file *outputs, int n_outputs, const char *dump,
                               struct lw_temporaries *temporaries, lw_error *err);

/* A model over the windows of sequences. */
typedef struct lw_sequence_job {
    const char *const *files; /* FASTA, FASTQ, SAM, BAM or CRAM; "-": standard input */
    int n_files;
    const char *reference;   /* FASTA for CRAM; NULL: none */
    const char *encoding;    /* "onehot:ACGT", "kmer:6", "kmer:6+5", "index", "index:ACGTN" */
    int64_t window;          /* letters; 0: what the model declares, else each sequence whole */
    int64_t step;            /* from one window's start to the next; 0: the window */
    int64_t batch;           /* windows at a time, where the model leaves it open; 0: 64 */
    bool whole_windows_only; /* no window beyond the end of its sequence; else the last one is filled up with
                                unknown letters */
    const lw_named_file *inputs; /* of the model's other inputs, by name; the same for every batch */
    int n_inputs;
    const lw_named_file *outputs; /* .npy (with the windows in FILE.tsv) or TSV; none: the first output as TSV
                                     to standard output */
    int n_outputs;
} lw_sequence_job;

typedef struct lw_sequence_counts {
    int64_t sequences, windows, without; /* without: sequences that got no window */
} lw_sequence_counts;

/* Runs the model on every window of every sequence, in order; one row of results each, with the sequence's
 * name and the window's coordinates (0-based, half-open, cut at the sequence's end). The model's first
 * dimension counts windows. An input attention_mask that is not given becomes 1 where there are letters, one
 * named token_type_ids 0. counts may be NULL. LW_E_ARG, LW_E_INPUT, LW_E_IO. */
lw_status lw_network_run_sequences(lw_network *network, const lw_sequence_job *job,
                                   struct lw_temporaries *temporaries, lw_sequence_counts *counts,
                                   lw_error *err);

/* Describes a model line by line, also one that cannot run: its inputs and outputs, each node with the kernel
 * of this backend (NULL: auto) that runs it and the types and sizes it makes (traced with unknown dimensions
 * set to 1, or where that is too small to 64 or 512), and what is not supported. A CUDA backend that this
 * build has needs no GPU for that. fuse: as lw_network_fuse() leaves the model. */
lw_status lw_network_describe(const char *path, const char *backend, bool fuse,
                              void (*line)(void *user, const char *text), void *user, lw_error *err);

/* One named value of a layer: a tensor in an .npy file or a number, as text. */
typedef struct lw_layer_value {
    const char *name, *text;
} lw_layer_value;

typedef struct lw_layer_job {
    const char *kind;             /* "linear", "conv2d", "softmax" ...; see lw_layer_list() */
    const lw_layer_value *inputs; /* tensors and numbers by name */
    int n_inputs;
    const lw_layer_value *settings; /* attributes by name: whole numbers, numbers, lists "1,1", words */
    int n_settings;
    const char
        *quantize; /* "tensor", "channel", "tensor-asymmetric", "channel-asymmetric": float weights become
                      int8, their scales and zero points are made; NULL: weights are 8-bit already */
    const char *save_weights; /* what quantize made goes to SAVE_WEIGHTS-NAME.npy; NULL: nowhere */
    const char *output;       /* .npy file; "-": standard output */
    const char *backend;      /* NULL: auto */
    int threads;              /* 0: one per CPU */
} lw_layer_job;

/* Runs one layer. *seconds (may be NULL) receives the time of the computation alone. Shapes are said through
 * host->say. LW_E_ARG: no such kind, input or setting, or one is missing; LW_E_INPUT; LW_E_IO; LW_E_RANGE. */
lw_status lw_layer_run_files(const lw_layer_job *job, double *seconds, struct lw_temporaries *temporaries,
                             const lw_host *host, lw_error *err);

/* One line for each kind: its name, inputs and settings. */
void lw_layer_list(void (*line)(void *user, const char *text), void *user);

#ifdef __cplusplus
}
#endif
#endif
