#!/usr/bin/env python3
"""Writes models whose numbers, shapes and fields lead nowhere good, one FOLDER/NAME.onnx each: hostile_onnx.py FOLDER.
All operands are constants, so that loading a model runs its node; the sizes that could overflow are written in the file
itself. Each is refused with one line, or computed, and nothing else happens."""
import os
import struct
import sys

import tiny_onnx as t
from tiny_onnx import FLOAT, INT8, INT32, INT64, UINT8, chunk, node, number, tensor

MOST, LEAST, DOUBLE, UINT4, UINT64 = 2**63 - 1, -(2**63), 11, 21, 13
CODES = {FLOAT: "f", UINT8: "B", INT8: "b", INT32: "i", INT64: "q", DOUBLE: "d", UINT64: "Q"}


def constant(name, dtype, *values, dims=None):
    return tensor(name, dtype, [len(values)] if dims is None else dims, struct.pack(f"<{len(values)}{CODES[dtype]}", *values))


nodes_of = {}  # model -> its node, for hostile_gpu.py


def of(op, *operands, outputs=1, domain="", opset=17, **attributes):
    """A node of constants a, b, c, ...; (dtype, values...) or (dtype, [dims], values...); None: left out."""
    kept = op, operands, attributes, domain, outputs, opset
    names, tensors = [], []
    for name, operand in zip("abcdefghijklmnopqr", operands):
        names.append(name if operand else "")
        if operand:
            dtype, *values = operand
            dims = values.pop(0) if values and isinstance(values[0], list) else None
            tensors.append(constant(name, dtype, *values, dims=dims))
    made = [f"y{i}" for i in range(outputs)]
    extra = chunk(8, chunk(1, domain) + number(2, 1)) if domain else b""
    model = t.model([node(op, names, made, domain=domain, **attributes)], [], [t.value("y0", FLOAT, [])], tensors, opset, extra)
    nodes_of[model] = kept
    return model


def strange(dtype, dims, fields):
    """One tensor whose elements stand in `fields`."""
    return t.model([node("Identity", ["a"], ["y0"])], [], [t.value("y0", FLOAT, [])], [tensor("a", dtype, dims, None, fields)])


def packed(field, code, *values):
    return chunk(field, b"".join(t.varint(v) for v in values) if code == "v" else struct.pack(f"<{len(values)}{code}", *values))


x4 = (FLOAT, [4], 1, 2, 3, 4)
image = (FLOAT, [1, 1, 1, 1, 1], 1)
one, zero = (FLOAT, [], 1.0), (UINT8, [], 0)
byte = (UINT8, [1, 1, 1, 1, 1], 7)
microsoft = "com.microsoft"
models = {
    "matmul_nbits_sizes": of("MatMulNBits", (FLOAT, [1, 1], 1), (UINT8, [1, 1, 1], 1), one, domain=microsoft, K=2**31 - 1, N=2**31 - 1,
                             bits=4, block_size=16),
    "matmul_nbits_block": of("MatMulNBits", (FLOAT, [1, 1], 1), (UINT8, [1, 1, 8], *[1] * 8), one, domain=microsoft, K=1, N=1, bits=4,
                             block_size=LEAST),
    "matmul_nbits_group": of("MatMulNBits", (FLOAT, [1, 2], 1, 1), (UINT8, [1, 1, 8], *[1] * 8), (FLOAT, [1], 1), None, (INT32, [2], -1, 7),
                             domain=microsoft, K=2, N=1, bits=4, block_size=16),
    "resize_part": of("Resize", image, (FLOAT, [10], *[-3e38] * 5, *[3e38] * 5), None, (INT64, [5], 2, 2, 2, 2, 2), mode="linear",
                      coordinate_transformation_mode="tf_crop_and_resize", opset=18),
    "resize_smooth": of("Resize", (FLOAT, [1, 4], 1, 2, 3, 4), None, (FLOAT, [2], 1, 1e-38), mode="cubic", antialias=1, opset=18),
    "resize_far": of("Resize", (FLOAT, [1, 4], 1, 2, 3, 4), None, None, (INT64, [2], 1, MOST), mode="cubic",
                     keep_aspect_ratio_policy="not_smaller", opset=18),
    "einsum_ellipsis": of("Einsum", x4, x4, equation="...,......->..."),
    "einsum_short": of("Einsum", x4, equation="...iiiiii->i..."),
    # numbers at the ends of their types
    "range": of("Range", (INT64, [], LEAST), (INT64, [], MOST), (INT64, [], 2**62)),
    "slice_step": of("Slice", x4, (INT64, 1), (INT64, MOST), (INT64, 0), (INT64, MOST)),
    "slice_back": of("Slice", x4, (INT64, MOST), (INT64, LEAST), (INT64, 0), (INT64, LEAST)),
    "slice_twice": of("Slice", x4, (INT64, 3, 3), (INT64, 4, 4), (INT64, 0, 0)),
    "pad": of("Pad", x4, (INT64, MOST, MOST)),
    "split": of("Split", x4, (INT64, MOST, MOST, 6), outputs=3),
    "prelu": of("PRelu", (INT64, MOST - 1, LEAST), (INT64, 3, 3)),
    "power": of("Pow", (INT32, 4, -1, 0), (FLOAT, 0.5, 1e30, float("nan"))),
    "power_negative": of("Pow", (INT64, 2, 1, -1, 0), (INT64, -1, -1, -3, -1)),
    "sum": of("ReduceSum", (INT64, MOST, MOST), axes=[0]),
    "product": of("ReduceProd", (INT32, *[2**31 - 1] * 4)),
    "mean_of_none": of("ReduceMean", (INT64, [0]), axes=[0]),
    "largest_of_none": of("ReduceMax", (INT32, [0, 2]), axes=[0]),
    "length": of("ReduceL2", (INT64, LEAST, LEAST)),
    "blocks": of("DequantizeLinear", (INT8, [2], 1, 2), (FLOAT, [1, 1], 1.0), axis=0, block_size=MOST),
    "softmax_scale": of("QLinearSoftmax", (UINT8, 1, 2), one, zero, (FLOAT, [], 1e-30), zero, domain=microsoft, opset=13),
    "window": of("AveragePool", image, kernel_shape=[2**31 - 1] * 3, pads=[2**31 - 1] * 6),
    "window_steps": of("QLinearAveragePool", byte, one, zero, one, zero, domain=microsoft, kernel_shape=[1, 1, 3],
                       dilations=[1, 1, 2**30], pads=[2**30] * 6, strides=[2**30] * 3),
    "convolution_steps": of("ConvInteger", byte, (UINT8, [1, 1, 1, 1, 3], 1, 2, 3), dilations=[1, 1, 2**30], pads=[2**30] * 6,
                            strides=[2**30] * 3),
    "convolution_groups": of("ConvInteger", byte, byte, group=MOST),
    "window_weight": of("Conv", (FLOAT, [1, 1, 1], 1), (FLOAT, [0, 1, 2**31 - 1]), dilations=[2**31 - 1]),
    "activation_numbers": of("RNN", (FLOAT, [1, 1, 1], 1), (FLOAT, [1, 1, 1], 1), (FLOAT, [1, 1, 1], 1), activations=["LeakyRelu"],
                             activation_alpha=[1, 2]),
    # places that are not there
    "scatter_outside": of("ScatterND", x4, (INT64, [1, 1], LEAST), (FLOAT, [1], 1)),
    "scatter_shape": of("ScatterND", (FLOAT, [2, 2], 1, 2, 3, 4), (INT64, [1, 1], 0), (FLOAT, [1], 1)),
    "scatter_nowhere": of("ScatterND", (FLOAT, [0]), (INT64, [1, 1], 0), (FLOAT, [1], 1)),
    "scatter_elements": of("ScatterElements", (FLOAT, [2, 1], 1, 2), (INT64, [1, 2], 0, 0), (FLOAT, [1, 2], 1, 2), axis=0),
    "sums_along": of("CumSum", x4, (INT64, LEAST)),
    "sums_overflow": of("CumSum", (INT64, [2], MOST, MOST), (INT64, 0)),
    "top_of_few": of("TopK", x4, (INT64, MOST), outputs=2),
    "top_of_none": of("TopK", (FLOAT, [0, 2]), (INT64, 1), outputs=2, axis=0),
    "reverse_axes": of("ReverseSequence", (FLOAT, [2, 2], 1, 2, 3, 4), (INT64, 2, 2), batch_axis=MOST, time_axis=MOST),
    "reverse_beyond": of("ReverseSequence", (FLOAT, [2, 2], 1, 2, 3, 4), (INT64, 2, 3)),
    # operands that are not there
    "product_of_nothing": of("MatMulInteger", None, (UINT8, [1, 1], 1)),
    "product_with_nothing": of("QLinearMatMul", (UINT8, [1, 1], 1), one, zero, None, one, zero, one, zero),
    "floats_of_nothing": of("MatMulIntegerToFloat", None, None, one, one, domain=microsoft),
    "empty_product": of("MatMulInteger", (UINT8, [0, 2]), (UINT8, [2, 1], 1, 1), (UINT8, [0])),
    "flat_embedding": of("EmbedLayerNormalization", (INT32, [1, 1], 0), None, (FLOAT, [1, 1], 1), (FLOAT, [], 1), None, (FLOAT, 1),
                         (FLOAT, 1), domain=microsoft),
    # dimensions that no memory holds, of tensors without elements
    "empty_shape": of("Concat", (FLOAT, [0, 2**62, 2**62]), axis=1),
    "empty_scores": of("Attention", (FLOAT, [1, 2**31, 0]), (FLOAT, [0, 0]), domain=microsoft, num_heads=1),
    "empty_places": of("ScatterND", (FLOAT, [0, 2**62, 2**62]), (INT64, [0, 1]), (FLOAT, [0, 2**62, 2**62])),
    "empty_top": of("TopK", (FLOAT, [0, 2**62, 2**62]), (INT64, 0), outputs=2, axis=0),
    "empty_rows": of("Transpose", (FLOAT, [0, 2**62, 2**62])),
    # elements in another field than their type's
    "short_integers": strange(INT32, [5], packed(4, "f", 1, 2, 3, 4, 5) + packed(5, "v", 1)),
    "short_doubles": strange(DOUBLE, [5], packed(5, "v", 1, 2, 3, 4, 5) + packed(10, "d", 1)),
    "short_nibbles": strange(UINT4, [4], packed(4, "f", 1, 2)),
    "most_nibbles": strange(UINT4, [MOST], b""),
    "integers_in_floats": strange(INT64, [2], packed(4, "f", 1, 2)),
}
nodes = {name: nodes_of[model] for name, model in models.items() if model in nodes_of}


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, data in models.items():
        with open(os.path.join(sys.argv[1], name + ".onnx"), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
