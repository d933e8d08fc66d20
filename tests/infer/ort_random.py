#!/usr/bin/env python3
"""Random one-node models of every integer operator, run by lanewise and by ONNX Runtime on the same inputs: integers
must be equal. Some inputs are constants of the model, or defaults that are overridden or kept. Usage: ort_random.py PROGRAM [BACKEND] [SEED] [ROUNDS]. Needs the packages onnx and onnxruntime.
ort_random.py --save FOLDER [SEED] [ROUNDS] saves the cases as ONNX node tests instead (for test_onnx_nodes)."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnx.numpy_helper
    import onnxruntime as ort
    from onnx import TensorProto as T, helper as h
except ImportError as missing:
    print(f"ort_random: skipped: {missing}")
    print("cases: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

ONNX_TYPE = {np.uint8: T.UINT8, np.int8: T.INT8, np.int32: T.INT32, np.float32: T.FLOAT, np.int16: T.INT16, np.uint16: T.UINT16, np.int64: T.INT64, np.bool_: T.BOOL}
BYTES = [np.uint8, np.int8]


def onnx_type(a):
    return ONNX_TYPE[a.dtype.type]


class Cases:
    def __init__(self, seed):
        self.r = np.random.default_rng(seed)

    def dtype(self):
        return BYTES[self.r.integers(2)]

    def data(self, dtype, *shape):
        i = np.iinfo(dtype)
        a = self.r.integers(i.min, i.max + 1, shape).astype(dtype)
        if a.size and self.r.random() < 0.2:
            a[...] = self.r.choice([i.min, i.max])  # saturation at both ends
        return a

    def weight(self, other, dtype, *shape):
        """Without VNNI, ONNX Runtime saturates 16-bit sums of uint8 times int8 products: there only 7-bit weights."""
        a = self.data(dtype, *shape)
        return (a // 2).astype(dtype) if other == np.uint8 and dtype == np.int8 else a

    def zero(self, dtype, *shape):
        i = np.iinfo(dtype)
        return self.r.choice([i.min, 0, i.max, self.r.integers(i.min, i.max + 1)], shape).astype(dtype)

    def scale(self, *shape):
        # powers of two make exact ties at .5, the others everything else
        if self.r.random() < 0.3:
            return (2.0 ** self.r.integers(-6, 1, shape)).astype(np.float32)
        return (self.r.random(shape) * 0.2 + 1e-3).astype(np.float32)

    def size(self, most):
        return int(self.r.integers(1, most + 1))

    def rows(self, most):
        """Now and then none."""
        return 0 if self.r.random() < 0.08 else self.size(most)

    def qlinear_matmul(self):
        ta, tb = self.dtype(), self.dtype()
        if ta == np.int8 and tb == np.uint8:
            tb = np.int8  # a pair that ONNX Runtime does not have
        m, k, n = self.rows(9), self.size(67), self.size(33)
        batch = [(), (2,), (3, 2)][self.r.integers(3)]
        per_column = self.r.random() < 0.4
        sb = self.scale(n) if per_column else self.scale()
        zb = np.zeros(n, tb) if per_column else self.zero(tb)
        return "QLinearMatMul", "", {}, [self.data(ta, *batch, m, k), self.scale(), self.zero(ta), self.weight(ta, tb, k, n), sb, zb,
                                         self.scale() * np.float32(k), self.zero(ta)]

    def matmul_integer(self):
        ta, tb = self.dtype(), self.dtype()
        if ta == np.int8 and tb == np.uint8:
            tb = np.int8
        m, k, n = self.rows(9), self.size(67), self.size(33)
        return "MatMulInteger", "", {}, [self.data(ta, m, k), self.weight(ta, tb, k, n), self.zero(ta), self.zero(tb)]

    def convolution(self):
        dims = self.size(2)
        group = self.r.choice([1, 1, 2, 4])
        c, o = group * self.size(3), group * self.size(3)
        kernel = [self.size(3) for _ in range(dims)]
        image = [self.size(9) + 6 for _ in range(dims)]
        attrs = {"group": int(group), "strides": [self.size(2) for _ in range(dims)], "dilations": [self.size(2) for _ in range(dims)],
                 "pads": [int(self.r.integers(0, 3)) for _ in range(2 * dims)]}
        return attrs, c, o, kernel, image

    def qlinear_conv(self):
        attrs, c, o, kernel, image = self.convolution()
        tx, tw = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)][self.r.integers(3)]
        per_channel = self.r.random() < 0.5
        group = attrs["group"]
        inputs = [self.data(tx, self.rows(2), c, *image), self.scale(), self.zero(tx), self.weight(tx, tw, o, c // group, *kernel),
                  self.scale(o) if per_channel else self.scale(), np.zeros(o, tw) if per_channel else self.zero(tw),
                  self.scale() * np.float32(c * np.prod(kernel)), self.zero(tx)]
        if self.r.random() < 0.6:
            inputs.append(self.r.integers(-20000, 20000, o).astype(np.int32))
        return "QLinearConv", "", attrs, inputs

    def conv_integer(self):
        attrs, c, o, kernel, image = self.convolution()
        return "ConvInteger", "", attrs, [self.data(np.uint8, self.size(2), c, *image), self.data(np.uint8, o, c // attrs["group"], *kernel),
                                          self.zero(np.uint8), self.zero(np.uint8)]

    def quantize(self):
        t = self.dtype()
        scale = self.scale()
        x = (self.r.standard_normal((self.rows(50),)) * 200 * scale).astype(np.float32)
        halves = np.float32(self.r.integers(-200, 200)) * scale + scale / 2
        x[: len(x) // 2] = halves
        return "QuantizeLinear", "", {}, [x, scale, self.zero(t)]

    def dequantize(self):
        t = self.dtype()
        return "DequantizeLinear", "", {}, [self.data(t, self.size(50)), self.scale(), self.zero(t)]

    def dynamic_quantize(self):
        return "DynamicQuantizeLinear", "", {}, [(self.r.standard_normal((self.size(5), self.size(50))) * self.r.choice([1e-3, 1, 100])).astype(np.float32)]

    def qlinear_add(self):
        t = self.dtype()
        shape = (self.size(4), self.size(40))
        other = shape if self.r.random() < 0.6 else (1, shape[1])
        op = ["QLinearAdd", "QLinearMul"][self.r.integers(2)]
        return op, "com.microsoft", {}, [self.data(t, *shape), self.scale(), self.zero(t), self.data(t, *other), self.scale(), self.zero(t),
                                         self.scale() * np.float32(3), self.zero(t)]

    def qgemm(self):
        ta, tb = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)][self.r.integers(3)]
        m, k, n = self.rows(9), self.size(67), self.size(33)
        ra, rb = int(self.r.integers(2)), int(self.r.integers(2))
        a = self.data(ta, *((k, m) if ra else (m, k)))
        b = self.weight(ta, tb, *((n, k) if rb else (k, n)))
        return "QGemm", "com.microsoft", {"transA": ra, "transB": rb, "alpha": 1.0}, [
            a, self.scale(), self.zero(ta), b, self.scale(), self.zero(tb), self.r.integers(-9999, 9999, n).astype(np.int32),
            self.scale() * np.float32(k), self.zero(ta)]

    def by_table(self):
        t = self.dtype()
        op, attrs = [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1})][self.r.integers(2)]
        return op, "com.microsoft", attrs, [self.data(t, self.size(300)), self.scale(), self.zero(t), self.scale(), self.zero(t)]

    def pool(self):
        t = self.dtype()
        return "QLinearGlobalAveragePool", "com.microsoft", {"channels_last": 0}, [
            self.data(t, self.size(2), self.size(5), self.size(9), self.size(9)), self.scale(), self.zero(t), self.scale(), self.zero(t)]

    def concat(self):
        t = self.dtype()
        rows = self.size(4)
        inputs = [self.scale(), self.zero(t)]
        for _ in range(self.size(3)):
            inputs += [self.data(t, rows, self.size(9)), self.scale(), self.zero(t)]
        return "QLinearConcat", "com.microsoft", {"axis": 1}, inputs


    def average_pool(self):
        t = self.dtype()
        dims = self.size(2)
        kernel = [self.size(3) for _ in range(dims)]
        attrs = {"kernel_shape": kernel, "strides": [self.size(2) for _ in range(dims)], "count_include_pad": int(self.r.integers(2)),
                 "pads": [int(self.r.integers(0, k)) for k in kernel] + [int(self.r.integers(0, k)) for k in kernel],
                 "ceil_mode": sum(kernel) % 2}
        return "QLinearAveragePool", "com.microsoft", attrs, [
            self.data(t, self.size(2), self.size(3), *[self.size(9) + 3 for _ in range(dims)]), self.scale(), self.zero(t), self.scale(), self.zero(t)]

    def softmax(self):
        t = self.dtype()
        opset = int(self.r.choice([12, 13]))
        shape = [self.size(3), self.size(5), self.size(40)]
        return "QLinearSoftmax", "com.microsoft", {"opset": opset, "axis": int(self.r.integers(3))}, [
            self.data(t, *shape), self.scale(), self.zero(t), np.float32(1 / 256), np.asarray(0 if t == np.uint8 else -128, t)]

    def where(self):
        t = self.dtype()
        shape = (self.size(4), self.size(20))
        return "QLinearWhere", "com.microsoft", {}, [self.r.integers(0, 2, shape).astype(bool), self.data(t, *shape), self.scale(), self.zero(t),
                                                     self.data(t, 1, shape[1]), self.scale(), self.zero(t), self.scale(), self.zero(t)]

    # from here on floats come out, which are compared within a bound

    def floats(self, *shape):
        return self.r.standard_normal(shape).astype(np.float32)

    def attention(self):
        tx, tw = np.uint8, self.dtype()
        heads, size, b, n = self.size(3), self.size(5), self.size(3), self.size(9)
        width, inputs = heads * size, self.size(30)
        mask = [self.r.integers(1, n + 1, b).astype(np.int32), self.r.integers(0, 2, (b, n)).astype(np.int32), None][self.r.integers(3)]
        if mask is not None and mask.ndim == 2:
            mask[:, 0] = 1
        wide = self.r.random() < 0.5 and tw == np.int8
        return "QAttention", "com.microsoft", {"num_heads": heads, "unidirectional": int(self.r.integers(2))}, [
            self.data(tx, b, n, inputs), self.weight(tx, tw, inputs, 3 * width), self.floats(3 * width), self.scale() * np.float32(0.05),
            self.scale(3 * width) if wide else self.scale(), mask, self.zero(tx), np.zeros(3 * width, tw) if wide else self.zero(tw)]

    def lstm(self):
        tw = np.int8
        d, b, n, hidden, inputs = self.size(2), 1, self.size(6), self.size(7), self.size(9)
        many = self.r.random() < 0.5
        scale = lambda: self.scale(d, 4 * hidden) * np.float32(0.05) if many else self.scale(d) * np.float32(0.05)
        zero = lambda: np.zeros((d, 4 * hidden) if many else d, tw)
        return "DynamicQuantizeLSTM", "com.microsoft", {"hidden_size": hidden, "direction": ["forward", "bidirectional"][d - 1]}, [
            self.floats(n, b, inputs), self.weight(np.uint8, tw, d, inputs, 4 * hidden), self.weight(np.uint8, tw, d, hidden, 4 * hidden),
            self.floats(d, 8 * hidden), None, self.floats(d, b, hidden), self.floats(d, b, hidden), self.floats(d, 3 * hidden), scale(), zero(),
            scale(), zero()]

    def rnn(self):
        op, gates = [("LSTM", 4), ("GRU", 3), ("RNN", 1)][self.r.integers(3)]
        d, b, n, hidden, inputs = self.size(2), self.size(3), self.size(6), self.size(7), self.size(9)
        attrs = {"hidden_size": hidden, "direction": [["forward", "reverse"][self.r.integers(2)], "bidirectional"][d - 1]}
        if op == "GRU":
            attrs["linear_before_reset"] = int(self.r.integers(2))
        if self.r.random() < 0.3:
            attrs["activations"] = {"LSTM": ["HardSigmoid", "Softsign", "Relu"], "GRU": ["HardSigmoid", "ScaledTanh"], "RNN": ["Relu"]}[op] * d
            if op == "GRU":
                attrs["activation_alpha"], attrs["activation_beta"] = [0.3, 0.9] * d, [0.4, 0.8] * d
        lengths = self.r.integers(1, n + 1, b).astype(np.int32) if self.r.random() < 0.5 else None
        inputs_ = [self.floats(n, b, inputs), self.floats(d, gates * hidden, inputs), self.floats(d, gates * hidden, hidden),
                   self.floats(d, 2 * gates * hidden), lengths, self.floats(d, b, hidden)]
        if op == "LSTM":
            inputs_ += [self.floats(d, b, hidden), self.floats(d, 3 * hidden)]
        return op, "", attrs, inputs_

    def embed(self):
        b, n, width = self.size(3), self.size(8), self.size(17)
        ids, segments = self.r.integers(0, 11, (b, n)).astype(np.int32), self.r.integers(0, 2, (b, n)).astype(np.int32)
        mask = self.r.integers(0, 2, (b, n)).astype(np.int32)
        return "EmbedLayerNormalization", "com.microsoft", {}, [ids, segments, self.floats(11, width), self.floats(n + 1, width),
                                                                self.floats(2, width), self.floats(width), self.floats(width), mask]

    def skip(self):
        b, n, width = self.size(3), self.size(8), self.size(17) + 3
        return "SkipLayerNormalization", "com.microsoft", {"epsilon": 1e-5}, [self.floats(b, n, width), self.floats(b, n, width), self.floats(width),
                                                                             self.floats(width), self.floats(width)]

    def gelu(self):
        op = ["BiasGelu", "FastGelu", "Gelu"][self.r.integers(3)]
        x = self.floats(3, 40) * np.float32(3)
        return op, "com.microsoft", {}, [x] if op == "Gelu" else [x, self.floats(40)]

    def nbits(self):
        m, n, k, bits, block = self.size(7), self.size(70), self.size(150), [4, 8][self.r.integers(2)], [16, 32, 64][self.r.integers(3)]
        blocks = -(-k // block)
        zero = [None, self.data(np.uint8, n * (-(-blocks * bits // 8)))][self.r.integers(2)]
        return "MatMulNBits", "com.microsoft", {"K": k, "N": n, "bits": bits, "block_size": block}, [
            self.floats(2, m, k), self.data(np.uint8, n, blocks, block * bits // 8), self.scale(n * blocks) * np.float32(0.1), zero, None,
            [None, self.floats(n)][self.r.integers(2)]]

    def window(self, dims, image):
        """Attributes of convolutions and pools; all padding is smaller than the kernel."""
        kernel = [self.size(min(3, d)) for d in image]
        attrs = {"strides": [self.size(3) for _ in range(dims)]}
        if self.r.random() < 0.3:
            attrs["auto_pad"] = ["SAME_UPPER", "SAME_LOWER", "VALID"][self.r.integers(3)]
        else:
            attrs["pads"] = [int(self.r.integers(0, k)) for k in kernel + kernel]
        return kernel, attrs

    def float_conv(self):
        dims, group = self.size(3), int(self.r.choice([1, 1, 2, 3]))
        image = [self.size(7) for _ in range(dims)]
        c, o = group * self.size(3), group * self.size(3)
        kernel, attrs = self.window(dims, image)
        attrs["group"] = group
        if "pads" in attrs and self.r.random() < 0.5:
            attrs["dilations"] = [self.size(2) if 2 * (k - 1) < d else 1 for k, d in zip(kernel, image)]
        return "Conv", "", attrs, [self.floats(self.rows(3), c, *image), self.floats(o, c // group, *kernel), [None, self.floats(o)][self.r.integers(2)]]

    def float_pool(self):
        dims = self.size(3)
        image = [self.size(8) for _ in range(dims)]
        kernel, attrs = self.window(dims, image)
        op = ["MaxPool", "AveragePool"][self.r.integers(2)]
        attrs["kernel_shape"] = kernel
        if "pads" in attrs:
            attrs["ceil_mode"] = int(self.r.integers(2)) if op == "MaxPool" else 0
        if op == "AveragePool":
            attrs["count_include_pad"] = int(self.r.integers(2))
        return op, "", attrs, [self.floats(self.rows(3), self.size(3), *image)]

    def slice(self):
        rank = self.size(4)
        axes = self.r.permutation(rank)[:self.size(rank)]
        far = lambda: [self.r.integers(-9, 10), 2**63 - 1, -2**63, 2**31 - 1][self.r.choice(4, p=[.85, .05, .05, .05])]
        starts, ends = ([far() for _ in axes] for _ in range(2))
        steps = [int(self.r.choice([1, 2, 3, -1, -2, 2**62, -2**62])) for _ in axes]
        # backwards to the largest number of int32 or int64: no elements by the standard, all of them by ONNX Runtime
        ends = [8 if e > 8 and s < 0 else e for e, s in zip(ends, steps)]
        axes = [int(a) - (rank if self.r.random() < 0.5 else 0) for a in axes]
        return "Slice", "", {}, [self.data(np.int8, *[self.rows(7) for _ in range(rank)])] + [np.array(a, np.int64) for a in (starts, ends, axes, steps)]

    def split(self):
        rank = self.size(3)
        axis, parts = int(self.r.integers(rank)), [self.rows(4) for _ in range(3)]
        shape = [self.rows(5) for _ in range(rank)]
        shape[axis] = sum(parts)
        return "Split", "", {"axis": axis - (rank if self.r.random() < 0.5 else 0)}, [self.floats(*shape), np.array(parts, np.int64)]

    def places(self):
        """Operators that write to places which indices name, or find them."""
        op = ["ScatterElements", "ScatterND", "CumSum", "TopK", "NonZero", "ReverseSequence"][self.r.integers(6)]
        t = [np.float32, np.int32, np.int64][self.r.integers(3)]
        shape = [self.size(4) + 1 for _ in range(2 + self.r.integers(2))]
        axis = int(self.r.integers(len(shape)))
        x = self.r.integers(-2, 3, shape).astype(t)
        if op == "ScatterElements":
            attrs = {"axis": axis - len(shape), "reduction": ["add", "mul"][self.r.integers(2)]}
            i = self.r.integers(-shape[axis], shape[axis], shape)
            return op, "", attrs, [x, i, self.r.integers(-5, 5, shape).astype(t)]
        if op == "ScatterND":
            n = self.size(5)
            i = np.stack([self.r.integers(-d, d, n) for d in shape[:2]], axis=-1)
            return op, "", {"reduction": ["add", "mul"][self.r.integers(2)]}, [x, i, self.r.integers(-5, 5, [n, *shape[2:]]).astype(t)]
        if op == "CumSum":
            return op, "", {"exclusive": int(self.r.integers(2)), "reverse": int(self.r.integers(2))}, [x, np.int64(axis)]
        if op == "TopK":
            return op, "", {"axis": axis, "largest": int(self.r.integers(2))}, [x, np.array([self.r.integers(0, shape[axis] + 1)])]
        if op == "NonZero":
            return op, "", {}, [x]
        batch = int(self.r.integers(2))
        return op, "", {"batch_axis": batch, "time_axis": 1 - batch}, [x, self.r.integers(0, shape[1 - batch] + 1, shape[batch])]

    def einsum_any(self):
        """Letters anywhere, sizes of 1 repeat. (Sizes of 0 end ONNX Runtime 1.32 with a segmentation fault.)"""
        sizes = {l: self.size(5) for l in "abcd"}
        terms = ["".join(self.r.choice(list("abcd"), self.size(3), replace=self.r.random() < 0.2)) for _ in range(self.size(3))]
        seen = sorted(set("".join(terms)))
        out = "".join(self.r.permutation(seen)[:int(self.r.integers(0, len(seen) + 1))])
        equation = ",".join(terms) + ("->" + out if self.r.random() < 0.8 else "")
        return "Einsum", "", {"equation": equation}, [self.floats(*[sizes[l] if self.r.random() < 0.9 or t.count(l) > 1 else 1 for l in t])
                                                        for t in terms]

    def lstm_any(self):
        """Clips, coupled gates; sequences of no steps, whose initial states ONNX Runtime would make zero."""
        op, attrs, inputs = "LSTM", {}, []
        while op != "LSTM" or not inputs:
            op, _, attrs, inputs = self.rnn()
        attrs = {k: v for k, v in attrs.items() if "activation" not in k} | {"clip": 0.5, "input_forget": int(self.r.integers(2))}
        keep = [0, 1, 2, *[i for i in range(3, 8) if self.r.random() < 0.6]]
        if inputs[4] is not None and 5 not in keep and 6 not in keep:
            inputs[4] = (inputs[4] * self.r.integers(0, 2, len(inputs[4]))).astype(np.int32)
        return op, "", attrs, [a if i in keep else None for i, a in enumerate(inputs)]

    def resize(self):
        mode = ["nearest", "linear", "cubic"][self.r.integers(3)]
        places = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
        attrs = {"mode": mode, "coordinate_transformation_mode": places[self.r.integers(4)], "nearest_mode": "floor"}
        if mode == "cubic":
            attrs["exclude_outside"] = int(self.r.integers(2))
            attrs["cubic_coeff_a"] = [-0.75, -0.5][self.r.integers(2)]
        sizes = np.array([1, 2, self.size(12), self.size(12)], np.int64)
        return "Resize", "", attrs, [self.floats(1, 2, self.size(8) + 1, self.size(8) + 1), None, None, sizes]

    def einsum(self):
        equation, shapes = [("...ij,...jk->...ik", ((2, 5, 3, 4), (2, 5, 4, 2))), ("bhqd,bhkd->bhqk", ((2, 3, 4, 5), (2, 3, 6, 5))),
                            ("...i,...i->...", ((2, 3, 4), (2, 1, 4))), ("a...->...a", ((2, 3, 4),))][self.r.integers(4)]
        return "Einsum", "", {"equation": equation}, [self.floats(*s) for s in shapes]


# relative to the largest magnitude; integers that come of floats on the way may differ by one
BOUNDED = {"attention", "lstm", "rnn", "embed", "skip", "gelu", "nbits", "resize", "einsum", "float_conv", "float_pool", "einsum_any", "lstm_any"}
FLOAT_BOUND = {"DynamicQuantizeLSTM": 0.005}


INPUT, CONSTANT, OVERRIDDEN, KEPT = range(4)
ALL_GIVEN = {"QLinearWhere"}  # ONNX Runtime 1.32 crashes where some of its operands are constants


def model_of(op, domain, attrs, inputs, modes):
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(inputs)]
    outputs = {"DynamicQuantizeLinear": ["y0", "y1", "y2"], "EmbedLayerNormalization": ["y0", "y1"], "LSTM": ["y0", "y1", "y2"],
               "DynamicQuantizeLSTM": ["y0", "y1", "y2"], "GRU": ["y0", "y1"], "RNN": ["y0", "y1"], "Split": ["y0", "y1", "y2"],
               "TopK": ["y0", "y1"]}.get(op, ["y0"])
    node = h.make_node(op, names, outputs, domain=domain, **attrs)
    given = [(n, a, m) for n, a, m in zip(names, inputs, modes) if a is not None]
    graph = h.make_graph([node], "g", [h.make_tensor_value_info(n, onnx_type(a), a.shape) for n, a, m in given if m != CONSTANT],
                         [h.make_empty_tensor_value_info(o) for o in outputs],
                         [onnx.numpy_helper.from_array(np.roll(a, 1) if m == OVERRIDDEN else a, n) for n, a, m in given if m != INPUT])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    return model, names, outputs


def save(folder, model, names, inputs, outputs):
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for k, a in enumerate(arrays):
            with open(os.path.join(data, f"{kind}_{k}.pb"), "wb") as f:
                f.write(onnx.numpy_helper.from_array(a).SerializeToString())


def main():
    saved = None
    if sys.argv[1] == "--save":
        saved = sys.argv[2]
        sys.argv[1:3] = ["", "onnxruntime"]
    program = sys.argv[1]
    backend = sys.argv[2] if len(sys.argv) > 2 else "scalar"
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 16
    cases = Cases(seed)
    makers = [cases.qlinear_matmul, cases.matmul_integer, cases.qlinear_conv, cases.conv_integer, cases.quantize, cases.dequantize,
              cases.dynamic_quantize, cases.qlinear_add, cases.qgemm, cases.by_table, cases.pool, cases.concat, cases.average_pool, cases.softmax, cases.where,
              cases.attention, cases.lstm, cases.rnn, cases.embed, cases.skip, cases.gelu,
              cases.nbits, cases.resize, cases.einsum, cases.float_conv, cases.float_pool, cases.slice, cases.split, cases.einsum_any, cases.lstm_any, cases.places]
    passed = failed = skipped = 0
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        for round_ in range(rounds):
            for maker in makers:
                op, domain, attrs, inputs = maker()
                inputs = [None if a is None else np.asarray(a) for a in inputs]
                modes = [INPUT] + [INPUT if saved or op in ALL_GIVEN else int(m) for m in cases.r.choice(4, len(inputs) - 1, p=[.4, .2, .3, .1])]
                model, names, outputs = model_of(op, domain, attrs, inputs, modes)
                path = os.path.join(folder, "model.onnx")
                onnx.save(model, path)
                try:
                    want = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(
                        None, {n: a for n, a, m in zip(names, inputs, modes) if a is not None and m in (INPUT, OVERRIDDEN)})
                except Exception as unsupported:
                    skipped += 1
                    print(f"[SKIP] {op}: ONNX Runtime: {str(unsupported)[:120]}")
                    continue
                if saved:
                    save(os.path.join(saved, f"test_{seed}_{passed:04}_{op}"), model, names, inputs, want)
                    passed += 1
                    continue
                command = [program, "infer", path, "--backend", backend, "-t", "1"]
                for n, a, m in zip(names, inputs, modes):
                    if a is None or m not in (INPUT, OVERRIDDEN):
                        continue
                    np.save(os.path.join(folder, n + ".npy"), a)
                    command += ["--input", f"{n}={folder}/{n}.npy"]
                for o in outputs:
                    command += ["--output", f"{o}={folder}/{o}.npy"]
                run = subprocess.run(command, capture_output=True, text=True)
                problem = None
                if run.returncode:
                    problem = run.stderr.strip()
                else:
                    for o, w in zip(outputs, want):
                        got = np.load(os.path.join(folder, o + ".npy"))
                        if got.dtype != w.dtype or got.shape != w.shape:
                            problem = f"{o}: {got.dtype}{got.shape} instead of {w.dtype}{w.shape}"
                        elif w.dtype == np.float32 and maker.__name__ in BOUNDED:
                            worst = np.abs(got - w).max(initial=0) / max(np.abs(w).max(initial=0), 1)
                            if not worst <= FLOAT_BOUND.get(op, 2e-5):
                                problem = f"{o}: differs by {worst:.3g} of the largest"
                        elif not np.array_equal(got, w):
                            at = np.flatnonzero(got.ravel() != w.ravel())
                            problem = f"{o}: {len(at)} of {w.size} differ, first {got.ravel()[at[0]]} instead of {w.ravel()[at[0]]}"
                if problem:
                    failed += 1
                    print(f"FAILED seed {seed} round {round_} {op} {attrs} {[(a.dtype.name, a.shape, m) for a, m in zip(inputs, modes) if a is not None]}: {problem}")
                else:
                    passed += 1
    print(f"ONNX Runtime {ort.__version__}, backend {backend}, seed {seed}")
    print(f"cases: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
