/* window.c - sliding windows. */
#include "infer/window.h"

#include <string.h>

#include "common/fail.h"

/* No window is that wide; below it nothing that is computed from the spans of two of them overflows. */
#define LW_WINDOW_MOST (INT64_C(1) << 40)

lw_status lw_window_list(const lw_node *node, const char *name, int want, int64_t least, int64_t *out,
                         lw_error *err)
{
    int64_t n;
    const int64_t *list = lw_node_ints(node, name, &n);
    if (n == 0)
        return LW_OK;
    if (n != want)
        return lw_fail(err, LW_E_INPUT, "%s has %lld numbers where %d belong", name, (long long)n, want);
    for (int k = 0; k < want; k++) {
        if (list[k] < least || list[k] > INT32_MAX)
            return lw_fail(err, LW_E_INPUT, "%s holds %lld", name, (long long)list[k]);
        out[k] = list[k];
    }
    return LW_OK;
}

lw_status lw_window_of(lw_window *w, const lw_node *node, const lw_tensor *x, const int64_t *kernel,
                       lw_error *err)
{
    int dims = x->rank - 2;
    if (dims < 1 || dims > 3)
        return lw_fail(err, LW_E_INPUT,
                       "the input has %d dimensions: 3 to 5 (batch, channels, 1 to 3 spatial) are supported",
                       x->rank);
    *w = (lw_window){.dims = dims};
    int64_t pads[6] = {0};
    for (int k = 0; k < 3; k++)
        w->in[k] = w->out[k] = w->kernel[k] = w->stride[k] = w->dilation[k] = 1;
    for (int k = 0; k < dims; k++) {
        w->in[k] = x->dim[2 + k];
        w->kernel[k] = kernel ? kernel[k] : 0;
    }
    int64_t declared[3] = {w->kernel[0], w->kernel[1], w->kernel[2]};
    LW_TRY(lw_window_list(node, "kernel_shape", dims, 1, declared, err));
    for (int k = 0; k < dims; k++) {
        if (kernel && declared[k] != kernel[k])
            return lw_fail(err, LW_E_INPUT, "kernel_shape says %lld, the weight has %lld",
                           (long long)declared[k], (long long)kernel[k]);
        if (declared[k] < 1)
            return lw_fail(err, LW_E_INPUT, "the kernel has no elements");
        w->kernel[k] = declared[k];
    }
    LW_TRY(lw_window_list(node, "strides", dims, 1, w->stride, err));
    LW_TRY(lw_window_list(node, "dilations", dims, 1, w->dilation, err));
    LW_TRY(lw_window_list(node, "pads", 2 * dims, 0, pads, err));
    const char *automatic = lw_node_string(node, "auto_pad", "NOTSET");
    bool same_upper = strcmp(automatic, "SAME_UPPER") == 0, same_lower = strcmp(automatic, "SAME_LOWER") == 0;
    bool valid = strcmp(automatic, "VALID") == 0;
    if (!same_upper && !same_lower && !valid && strcmp(automatic, "NOTSET") != 0)
        return lw_fail(err, LW_E_INPUT, "auto_pad '%s' does not exist", automatic);
    int64_t round_up = lw_node_int(node, "ceil_mode", 0);
    w->in_count = w->out_count = w->kernel_count = 1;
    for (int k = 0; k < dims; k++) {
        int64_t reach;
        if (__builtin_mul_overflow(w->kernel[k] - 1, w->dilation[k], &reach) || reach >= LW_WINDOW_MOST)
            return lw_fail(err, LW_E_RANGE, "a kernel of %lld with dilation %lld spans too much",
                           (long long)w->kernel[k], (long long)w->dilation[k]);
        reach++;
        w->pad[k] = valid ? 0 : pads[k];
        w->pad_end[k] = valid ? 0 : pads[dims + k];
        if (same_upper || same_lower) {
            w->out[k] = (w->in[k] + w->stride[k] - 1) / w->stride[k];
            int64_t all = (w->out[k] - 1) * w->stride[k] + reach - w->in[k];
            all = all > 0 ? all : 0;
            w->pad[k] = same_upper ? all / 2 : all - all / 2;
            w->pad_end[k] = all - w->pad[k];
        } else {
            int64_t room = w->in[k] + w->pad[k] + w->pad_end[k] - reach;
            if (room < 0)
                return lw_fail(err, LW_E_INPUT,
                               "the kernel spans %lld along dimension %d, the padded input has %lld",
                               (long long)reach, 2 + k, (long long)(room + reach));
            w->out[k] = room / w->stride[k] + 1;
            if (round_up && room % w->stride[k] != 0 && w->out[k] * w->stride[k] < w->in[k] + w->pad[k])
                w->out[k]++; /* a last window that starts inside the input or its leading padding */
            /* ONNX Runtime's own operator counts what that window has beyond the padding as padding */
            int64_t beyond = (w->out[k] - 1) * w->stride[k] - room;
            if (beyond > 0 && strcmp(node->op, "QLinearAveragePool") == 0)
                w->pad_end[k] += beyond;
        }
        w->in_count *= w->in[k];
        if (__builtin_mul_overflow(w->out_count, w->out[k], &w->out_count) ||
            __builtin_mul_overflow(w->kernel_count, w->kernel[k], &w->kernel_count))
            return lw_fail(err, LW_E_RANGE, "the windows have more elements than can be counted");
    }
    return LW_OK;
}

/* The kernel's elements whose place is below `end`. */
static int64_t elements_below(const lw_window *w, int k, int64_t start, int64_t end)
{
    int64_t n = start >= end ? 0 : (end - 1 - start) / w->dilation[k] + 1;
    return n < w->kernel[k] ? n : w->kernel[k];
}

void lw_window_part_of(lw_window_part *part, const lw_window *w, int64_t position)
{
    part->inside = part->padded = 1;
    for (int k = 2; k >= 0; k--) {
        int64_t start = position % w->out[k] * w->stride[k] - w->pad[k];
        position /= w->out[k];
        part->start[k] = start;
        part->first[k] = elements_below(w, k, start, 0);
        part->last[k] = elements_below(w, k, start, w->in[k]);
        part->inside *= part->last[k] - part->first[k];
        part->padded *= elements_below(w, k, start, w->in[k] + w->pad_end[k]);
    }
}
