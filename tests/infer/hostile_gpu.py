"""Models whose numbers, shapes and values lead nowhere good for the kernels of a GPU: those of hostile_onnx.py with
their operands as inputs, and more. models() yields (name, model, {input: (dtype, dims, values)}). run_cuda.py runs them
on every backend."""
import struct

import hostile_onnx as h
import tiny_onnx as t
from tiny_onnx import FLOAT, INT8, INT32, INT64, UINT8, chunk, node, number

NAN, INF, BIG, TINY = float("nan"), float("inf"), 3.4e38, 1e-45
DESCR = {FLOAT: "<f4", UINT8: "|u1", INT8: "|i1", INT32: "<i4", INT64: "<i8", h.DOUBLE: "<f8", h.UINT64: "<u8", 9: "|b1"}
CODES = dict(h.CODES)
CODES[9] = "?"
one, none, zero = (FLOAT, [], 1.0), (UINT8, [], 0), (FLOAT, [], 0.0)
microsoft = h.microsoft


def f(dims, *values):
    n = 1
    for d in dims:
        n *= d
    return (FLOAT, dims) + tuple(values[i % len(values)] for i in range(n))


def b(dims, *values, dtype=UINT8):
    return (dtype,) + f(dims, *(values or (0, 255, 128, 7)))[1:]


def s(dims, *values):
    return b(dims, *(values or (-128, 127, 0, 3)), dtype=INT8)


def scales(x, w, y, kind=b):
    """The operands of QLinearMatMul of 3 x 40 and 40 x 5 with these scales."""
    return (kind([3, 40]), (FLOAT, [], x), kind([], 0), s([40, 5]), (FLOAT, [], w), s([], 0), (FLOAT, [], y), kind([], 0))


bad = (NAN, INF, -INF, BIG, -BIG, TINY, -0.0, 0.0, 1.0)
OPERATORS = {  # operator, its operands, attributes
    "nothing_deep": ("MatMulInteger", (b([3, 0]), s([0, 5])), {}),
    "nothing_wide": ("MatMulInteger", (b([3, 40]), s([40, 0])), {}),
    "nothing_high": ("MatMulInteger", (b([0, 40]), s([40, 5])), {}),
    "nothing_many": ("MatMulInteger", (b([0, 3, 40]), s([40, 5])), {}),
    "not_alike": ("MatMulInteger", (b([3, 40]), s([39, 5])), {}),
    "zeros_of_rows": ("MatMulInteger", (b([3, 40]), s([40, 5]), b([3], 255, 0, 1), s([5], -128, 127)), {}),
    "zeros_of_nothing": ("MatMulInteger", (b([3, 40]), s([40, 5]), b([0]), s([0])), {}),
    "zeros_of_many": ("MatMulInteger", (b([3, 40]), s([40, 5]), b([7]), s([6])), {}),
    "sums_full": ("MatMulInteger", (b([2, 3000], 255), b([3000, 3], 255), b([], 0), b([], 0)), {}),
    "sums_least": ("MatMulInteger", (s([2, 3000], -128), s([3000, 3], 127), s([], 127), s([], -128)), {}),
    "linear_nan": ("QLinearMatMul", scales(NAN, 1.0, 1.0), {}),
    "linear_inf": ("QLinearMatMul", scales(INF, 1.0, 1.0), {}),
    "linear_by_zero": ("QLinearMatMul", scales(1.0, 1.0, 0.0), {}),
    "linear_nothing_by_zero": ("QLinearMatMul", scales(0.0, 0.0, 0.0), {}),
    "linear_tiny": ("QLinearMatMul", scales(TINY, TINY, TINY), {}),
    "linear_huge": ("QLinearMatMul", scales(BIG, BIG, TINY, s), {}),
    "linear_negative": ("QLinearMatMul", scales(-1.0, 1.0, -0.5), {}),
    "linear_scales": ("QLinearMatMul", scales(1.0, 1.0, 1.0)[:4] + (f([4], 1.0),) + scales(1.0, 1.0, 1.0)[5:], {}),
    "quantize_bad": ("QuantizeLinear", (f([3, 9], *bad), one, none), {}),
    "quantize_by_bad": ("QuantizeLinear", (f([9, 3], 1.0, -3.0, 1e9), f([9], *bad), b([9], 3)), {"axis": 0}),
    "quantize_axis": ("QuantizeLinear", (f([3, 9], *bad), f([3], 1.0), b([3], 3)), {"axis": 2**40}),
    "dequantize_by_bad": ("DequantizeLinear", (b([9, 3]), f([9], *bad), b([9], 3)), {"axis": 0}),
    "dynamic_bad": ("DynamicQuantizeLinear", (f([3, 9], *bad),), {}),
    "dynamic_none": ("DynamicQuantizeLinear", (f([0]),), {}),
    "dynamic_zeros": ("DynamicQuantizeLinear", (f([40], 0.0),), {}),
    "dynamic_tiny": ("DynamicQuantizeLinear", (f([40], TINY, -TINY),), {}),
    "softmax_bad": ("Softmax", (f([9, 9], *bad),), {}),
    "softmax_least": ("Softmax", (f([4, 2000], -INF),), {}),
    "softmax_none": ("Softmax", (f([4, 0]),), {}),
    "softmax_axis": ("Softmax", (f([4, 2], 1.0),), {"axis": h.LEAST}),
    "norm_bad": ("LayerNormalization", (f([9, 9], *bad), f([9], 1.0), f([9], 0.0)), {}),
    "norm_none": ("LayerNormalization", (f([4, 0]), f([0]), f([0])), {}),
    "norm_flat": ("LayerNormalization", (f([4, 300], 7.0), f([300], 1.0), f([300], 0.0)), {"epsilon": 0.0}),
    "norm_short": ("LayerNormalization", (f([4, 9], 7.0), f([8], 1.0), f([8], 0.0)), {}),
    "mean_bad": ("ReduceMean", (f([9, 9], *bad),), {"axes": [1]}),
    "mean_none": ("ReduceMean", (f([4, 0]),), {"axes": [1]}),
    "gather_far": ("Gather", (f([5, 3], 1.0), (INT64, [4], 0, 5, -6, h.MOST)), {}),
    "gather_least": ("Gather", (f([5, 3], 1.0), (INT64, [2], h.LEAST, -5)), {}),
    "gather_short": ("Gather", (f([5, 3], 1.0), (INT32, [2], 2**31 - 1, -(2**31))), {"axis": 1}),
    "gather_none": ("Gather", (f([0, 3]), (INT64, [1], 0)), {}),
    "gather_nothing": ("Gather", (f([5, 3], 1.0), (INT64, [0])), {}),
    "tuples_far": ("GatherND", (f([5, 3], 1.0), (INT64, [2, 2], 0, 3, h.MOST, h.LEAST)), {}),
    "tuples_deep": ("GatherND", (f([5, 3], 1.0), (INT64, [2, 3], 0)), {}),
    "tuples_batch": ("GatherND", (f([5, 3], 1.0), (INT64, [2, 1], 0, 1)), {"batch_dims": 2**33}),
    "concat_none": ("Concat", (f([0, 3]), f([0, 3])), {"axis": 0}),
    "concat_rank": ("Concat", (f([2, 3], 1.0), f([2], 1.0)), {"axis": 0}),
    "transpose_twice": ("Transpose", (f([2, 3], 1.0),), {"perm": [0, 0]}),
    "transpose_far": ("Transpose", (f([2, 3], 1.0),), {"perm": [h.MOST, 0]}),
    "slice_far": ("Slice", (f([4, 4], 1.0, 2.0, 3.0), (INT64, [1], h.LEAST), (INT64, [1], h.MOST), (INT64, [1], 1), (INT64, [1], h.MOST)), {}),
    "add_bad": ("Add", (f([9, 1], *bad), f([1, 9], *bad)), {}),
    "divide_bad": ("Div", (f([9, 1], *bad), f([1, 9], *bad)), {}),
    "power_bad": ("Pow", (f([9, 1], *bad), f([1, 9], *bad)), {}),
    "add_none": ("Add", (f([0, 4]), f([1, 4], 1.0)), {}),
    "add_apart": ("Add", (f([3, 4], 1.0), f([3, 5], 1.0)), {}),
    "add_ranks": ("Add", (f([1] * 8, 1.0), f([2] * 8, 1.0)), {}),
    "clip_turned": ("Clip", (f([9], *bad), (FLOAT, [], 5.0), (FLOAT, [], -5.0)), {}),
    "clip_nan": ("Clip", (f([9], *bad), (FLOAT, [], NAN), (FLOAT, [], NAN)), {}),
    "where_none": ("Where", ((9, [0, 4]), f([4], 1.0), f([1], 2.0)), {}),
    "cast_most": ("Cast", ((INT64, [4], h.MOST, h.LEAST, 0, -1),), {"to": 1}),
    "cast_unknown": ("Cast", (f([9], *bad),), {"to": 99}),
    "product_bad": ("MatMul", (f([9, 9], *bad), f([9, 9], 1.0, 0.0)), {}),
    "product_none": ("MatMul", (f([4, 0]), f([0, 5])), {}),
    "gemm_c": ("Gemm", (f([4, 3], 1.0), f([3, 5], 1.0), f([6], 1.0)), {}),
    "pool_pads": ("MaxPool", (f([1, 1, 4, 4], *bad),), {"kernel_shape": [2, 2], "pads": [2**31 - 1, 0, 0, 0], "strides": [2**30, 1]}),
    "pool_long": ("AveragePool", (f([1, 1, 4], *bad),), {"kernel_shape": [2**25], "pads": [2**25, 2**25], "strides": [2**24]}),
    "pool_wide": ("MaxPool", (f([1, 1, 4, 4], *bad),), {"kernel_shape": [2**31 - 1, 1]}),
    "pool_steps": ("AveragePool", (f([1, 1, 4, 4], *bad),), {"kernel_shape": [2, 2], "strides": [2**31 - 1, 2**31 - 1]}),
    "pool_none": ("GlobalAveragePool", (f([2, 3, 0, 4]),), {}),
    "pool_bad": ("GlobalMaxPool", (f([2, 3, 9], *bad),), {}),
    "pool_no_step": ("MaxPool", (f([1, 1, 4, 4], 1.0),), {"kernel_shape": [2, 2], "strides": [0, 0]}),
    "conv_apart": ("ConvInteger", (b([1, 2, 5, 5]), s([3, 2, 3, 3])), {"dilations": [2**31 - 1, 1]}),
    "conv_none": ("ConvInteger", (b([0, 2, 5, 5]), s([3, 2, 3, 3])), {}),
    "conv_no_kernel": ("ConvInteger", (b([1, 2, 5, 5]), s([0, 2, 3, 3])), {}),
    "conv_groups": ("ConvInteger", (b([1, 4, 5, 5]), s([3, 2, 3, 3])), {"group": 2}),
    "conv_pads": ("ConvInteger", (b([1, 2, 5, 5]), s([3, 2, 3, 3])), {"pads": [2**30, 2**30, 2**30, 2**30], "strides": [2**30, 2**30]}),
    "conv_negative": ("ConvInteger", (b([1, 2, 5, 5]), s([3, 2, 3, 3])), {"pads": [-1, -1, -1, -1]}),
}
BYTES = {
    "table_nan": ("QLinearSigmoid", (b([9]), (FLOAT, [], NAN), none, one, none), {}),
    "table_by_zero": ("QLinearLeakyRelu", (b([9]), one, none, zero, none), {"alpha": INF}),
    "bytes_nan": ("QLinearAdd", (b([9]), (FLOAT, [], NAN), none, b([9]), one, none, one, none), {}),
    "bytes_by_zero": ("QLinearMul", (b([9]), one, none, b([9]), one, none, zero, none), {}),
    "bytes_apart": ("QLinearAdd", (b([9]), one, none, b([8]), one, none, one, none), {}),
    "softmax_of_none": ("QLinearSoftmax", (b([3, 0]), one, none, one, none), {"opset": 13}),
    "softmax_nan": ("QLinearSoftmax", (b([3, 5]), (FLOAT, [], NAN), none, one, none), {"opset": 13}),
    "mean_by_zero": ("QLinearGlobalAveragePool", (b([1, 2, 3]), one, none, zero, none), {}),
    "image_of_none": ("QLinearGlobalAveragePool", (b([1, 2, 0]), one, none, one, none), {}),
    "to_floats_nan": ("MatMulIntegerToFloat", (b([3, 40]), s([40, 5]), (FLOAT, [], NAN), f([5], *bad)), {}),
    "dynamic_product_bad": ("DynamicQuantizeMatMul", (f([9, 9], *bad), s([9, 5]), one), {}),
    "skip_short": ("SkipLayerNormalization", (f([1, 4, 9], *bad), f([1, 4, 8], 1.0), f([9], 1.0)), {}),
    "gelu_bad": ("BiasGelu", (f([9, 9], *bad), f([9], *bad)), {}),
    "gemm_bytes": ("QGemm", (b([3, 40]), one, none, s([40, 5]), one, s([], 0), (INT32, [5], 2**31 - 1, -(2**31)), one, none), {"alpha": NAN}),
}


def elements(operand):
    dtype, dims, *values = operand if isinstance(operand[1], list) else (operand[0], [len(operand) - 1]) + operand[1:]
    return dtype, dims, values


def array(operand):
    """Bytes of a .npy file."""
    dtype, dims, values = elements(operand)
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (DESCR[dtype], "".join("%d," % d for d in dims))
    header = header.ljust(128 - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%d%s" % (len(values), CODES[dtype]), *values)


def variants(name, op, operands, attributes, domain, outputs, opset):
    """The data alone as an input; the data from the device; all operands as inputs."""
    letters = "abcdefghijklmnopqr"
    for kind in ("data", "device", "inputs"):
        given = [k for k, o in enumerate(operands) if o and (kind == "inputs" or k == 0)]
        nodes, names = [], [letters[k] if o else "" for k, o in enumerate(operands)]
        if kind == "device":
            if not given or operands[0][0] != FLOAT:
                continue
            nodes, names[0] = [node("Neg", ["a"], ["n"]), node("Neg", ["n"], ["m"])], "m"
        inputs = [t.value(letters[k], elements(operands[k])[0], elements(operands[k])[1]) for k in given]
        tensors = []
        for k, o in enumerate(operands):
            if o and k not in given:
                dtype, dims, values = elements(o)
                tensors.append(t.tensor(letters[k], dtype, dims, struct.pack("<%d%s" % (len(values), CODES[dtype]), *values)))
        made = ["y%d" % i for i in range(outputs)]
        extra = chunk(8, chunk(1, domain) + number(2, 1)) if domain else b""
        yield ("%s.%s" % (name, kind), t.model(nodes + [node(op, names, made, domain=domain, **attributes)], inputs, [t.value("y0", FLOAT, [])],
                                               tensors, opset, extra), {letters[k]: array(operands[k]) for k in given})


def models():
    for name, (op, operands, attributes) in OPERATORS.items():
        yield from variants(name, op, operands, attributes, "", 3 if op == "DynamicQuantizeLinear" else 1, 17)
    for name, (op, operands, attributes) in BYTES.items():
        yield from variants(name, op, operands, attributes, microsoft, 1, 17)
    for name, made in h.models.items():
        yield name + ".constant", made, {}
    for name, (op, operands, attributes, domain, outputs, opset) in h.nodes.items():
        yield from variants(name, op, operands, attributes, domain, outputs, opset)
