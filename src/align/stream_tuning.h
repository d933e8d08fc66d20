/* stream_tuning.h - how much memory the batches of align and pairs may take. */
#ifndef LW_STREAM_TUNING_H
#define LW_STREAM_TUNING_H

#include <stdint.h>

/* All batches together. The promise is 2 GB for the whole process: this leaves room for the references, the
 * host side of a CUDA context (about 0.3 GB) and the output's compression buffers. */
#define LW_STREAM_BYTES (INT64_C(768) << 20)

/* Bytes a batch takes for each letter it holds: text and qualities (2), codes (1), growth by doubling (3). */
#define LW_STREAM_LETTER_BYTES 6
/* The same for each letter of each record: packed letters and qualities (1.5), growth by powers of two. */
#define LW_STREAM_RECORD_LETTER_BYTES 3
/* Bytes for each record besides: name, lw_read, hit, task, path, operations, bam1_t and its tags. */
#define LW_STREAM_RECORD_BYTES 640

/* Batches beyond two per lane: one with the reader, one with the writer. */
#define LW_STREAM_SPARE_BATCHES 2

/* The pipe between htslib and the output file: about sixteen compressed blocks of BAM, so that neither side
 * wakes the other for each of them. */
#define LW_SAMOUT_PIPE_BYTES (1 << 20)

/* Most secondary placements of a read that can be asked for. */
#define LW_MAX_SECONDARY 1000

/* All against all: pairs in one call of a backend, and their letters; 262,144 pairs keep a GPU busy and take
 * some 20 MB, their letters at most a quarter of a gigabyte. */
#define LW_ALL_BLOCK_PAIRS 262144
#define LW_ALL_BLOCK_LETTERS (INT64_C(1) << 28)

#endif
