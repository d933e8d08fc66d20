/* window.h - the geometry that convolution and pooling share: kernels that slide over 1 to 3 spatial
 * dimensions with stride, dilation and padding. */
#ifndef LW_WINDOW_H
#define LW_WINDOW_H

#include "infer/model.h"

typedef struct lw_window {
    int dims; /* spatial; arrays below are filled to 3 with neutral values, so that loops can always be three
                 deep */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t pad[3], pad_end[3];
    int64_t in_count, out_count, kernel_count; /* products */
} lw_window;

/* From the node's attributes kernel_shape, strides, dilations, pads, auto_pad, ceil_mode. x has the batch and
 * the channels in its first two dimensions; kernel (NULL: from kernel_shape) is the weight's spatial shape.
 */
lw_status lw_window_of(lw_window *w, const lw_node *node, const lw_tensor *x, const int64_t *kernel,
                       lw_error *err);

/* The node's attribute `name`, `want` numbers of at least `least`; *out stays as it is without it. */
lw_status lw_window_list(const lw_node *node, const char *name, int want, int64_t least, int64_t *out,
                         lw_error *err);

/* What of the kernel at one output position lies inside the input: elements [first, last) along each
 * dimension, inside = their product; padded: the elements that lie inside the input and its declared padding.
 */
typedef struct lw_window_part {
    int64_t start[3]; /* place of the kernel's first element */
    int64_t first[3], last[3], inside, padded;
} lw_window_part;

void lw_window_part_of(lw_window_part *part, const lw_window *w, int64_t position);

#endif
