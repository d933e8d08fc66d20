#!/usr/bin/env python3
"""Operators that every backend computes with the same arithmetic in the same order - float products, convolutions and
recurrent layers, 8-bit recurrent layers, what moves bytes - on random shapes: each backend's results must be the bits
of the scalar reference. Usage: same_bits.py PROGRAM [ROUNDS [SEED [KINDS]]]; KINDS: some of convolution,product,recurrent,large_recurrent,slices,splits,joined.
Needs numpy."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"same_bits: skipped: {missing}")
    print("cases: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_onnx as t  # noqa: E402

program, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
only = sys.argv[4].split(",") if len(sys.argv) > 4 else None
counts = {"passed": 0, "failed": 0, "skipped": 0}
TYPES = {"float32": t.FLOAT, "uint8": t.UINT8, "int8": t.INT8, "int32": t.INT32, "int64": t.INT64}
LANEWISE = "lanewise"


def backends():
    lines = subprocess.run([program, "infer", "--backend", "list"], capture_output=True, text=True).stdout.splitlines()
    return [line.split()[0] for line, state in zip(lines[::2], lines[1::2]) if state.split()[:1] in (["usable"], ["usable;"])]


class Model:
    """Nodes side by side, each with inputs and outputs of its own, in one run."""
    def __init__(self, r):
        self.r, self.nodes, self.inputs, self.outputs, self.tensors, self.names = r, [], {}, [], [], []

    def constant(self, a):
        a = np.ascontiguousarray(a)
        name = f"c{len(self.tensors)}"
        self.tensors.append(t.tensor(name, TYPES[a.dtype.name], a.shape, a.tobytes()))
        return name

    def input(self, a):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = np.ascontiguousarray(a)
        return name

    def floats(self, *shape):
        return (self.r.standard_normal(shape) * self.r.choice([0.1, 1, 3])).astype(np.float32)

    def add(self, op, inputs, kinds, domain="", **attributes):
        outputs = []
        for kind, rank in kinds:
            outputs.append(f"y{len(self.outputs)}")
            self.outputs.append((outputs[-1], TYPES[kind], rank))
            self.names.append(f"{op} {attributes} " + " ".join(str(self.inputs[i].shape) for i in inputs if i in self.inputs))
        self.nodes.append(t.node(op, inputs, outputs, domain, **attributes))

    def run(self, folder, backend):
        """The outputs' bytes."""
        arguments = ["--backend", backend, "-q", "-t", "2"]
        for name in self.inputs:
            arguments += ["--input", f"{name}={name}.npy"]
        for name, _, _ in self.outputs:
            arguments += ["--output", f"{name}={name}.{backend}.npy"]
        run = subprocess.run([program, "infer", "m.onnx", *arguments], capture_output=True, text=True, cwd=folder, timeout=60)
        if run.returncode:
            raise RuntimeError(f"{backend}: {run.stderr.strip()}")
        return [np.load(f"{folder}/{name}.{backend}.npy") for name, _, _ in self.outputs]

    def write(self, folder):
        values = [t.value(name, TYPES[a.dtype.name], a.shape) for name, a in self.inputs.items()]
        outputs = [t.value(name, kind, [f"{name}_{k}" for k in range(rank)]) for name, kind, rank in self.outputs]
        more = b"".join(t.chunk(8, t.chunk(1, d) + t.number(2, 1)) for d in ("com.microsoft", LANEWISE))
        with open(folder + "/m.onnx", "wb") as file:
            file.write(t.model(self.nodes, values, outputs, self.tensors, extra_opset=more))
        for name, a in self.inputs.items():
            np.save(f"{folder}/{name}.npy", a)


def convolution(m):
    r, dims = m.r, int(m.r.integers(1, 4))
    groups = int(r.choice([1, 1, 2, 5]))
    channels, outputs = int(r.integers(1, 20)), int(r.choice([1, 3, 8, 20, 70]))
    size, kernel = [int(v) for v in r.integers(6, 40 if dims == 1 else 12, dims)], [int(v) for v in r.integers(1, 5, dims)]
    x, w = m.floats(int(r.integers(1, 4)), channels * groups, *size), m.floats(outputs * groups, channels, *kernel)
    if r.random() < 0.3:
        x[r.random(x.shape) < 0.8] = 0
    bias = [m.constant(m.floats(outputs * groups))] if r.random() < 0.7 else []
    m.add("Conv", [m.input(x), m.constant(w), *bias], [("float32", 2 + dims)], group=groups, pads=[int(v) for v in r.integers(0, 3, 2 * dims)],
          strides=[int(v) for v in r.integers(1, 3, dims)], dilations=[int(v) for v in r.integers(1, 2 if dims == 3 else 3, dims)])


def product(m):
    r, (rows, depth, columns) = m.r, (int(v) for v in m.r.integers(1, [90, 200, 150]))
    if r.random() < 0.4:
        a, b = bool(r.integers(2)), bool(r.integers(2))
        x = m.input(m.floats(*((depth, rows) if a else (rows, depth))))
        w = m.constant(m.floats(*((columns, depth) if b else (depth, columns))))
        bias = [m.constant(m.floats(columns))] if r.integers(2) else []
        m.add("Gemm", [x, w, *bias], [("float32", 2)], transA=int(a), transB=int(b), alpha=float(r.choice([1, 0.3])))
        return
    batch = [int(v) for v in r.integers(1, 4, r.integers(3))]
    x, one = m.input(m.floats(*batch, rows, depth)), r.integers(2)
    w = m.constant(m.floats(depth, columns)) if one else m.input(m.floats(*batch, depth, columns))
    m.add("MatMul", [x, w], [("float32", 2 + len(batch))])


def large_recurrent(m):
    """A batch that a GPU's block takes in several parts; the last states are asked for."""
    hidden, batch = [(1024, 32), (512, 128), (1536, 12)][int(m.r.integers(3))]
    small = lambda *shape: m.constant(m.floats(*shape) * np.float32(0.05))
    m.add("LSTM", [m.input(m.floats(2, batch, 3)), small(1, 4 * hidden, 3), small(1, 4 * hidden, hidden)],
          [("float32", 4), ("float32", 3), ("float32", 3)], hidden_size=hidden)


ACTIVATIONS = ["Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign"]


def recurrent(m):
    r = m.r
    op = str(r.choice(["LSTM", "LSTM", "GRU", "GRU", "RNN"]))
    gates, states, each = {"LSTM": (4, 2, 3), "GRU": (3, 1, 2), "RNN": (1, 1, 1)}[op]
    bytes_ = op != "RNN" and r.random() < 0.6
    d, steps, batch = int(r.integers(1, 3)), int(r.integers(1, 12)), int(r.choice([1, 2, 5, 40]))
    inputs, hidden = int(r.choice([1, 4, 7, 16, 33])), int(r.choice([1, 3, 16, 20, 64, 130]))
    layout = int(r.integers(2)) if not bytes_ else 0
    x = m.input(m.floats(*((batch, steps) if layout else (steps, batch)), inputs))
    lengths = m.input(r.integers(0, steps + 1, batch).astype(np.int32)) if r.random() < 0.4 else ""
    state = lambda: m.input(m.floats(*((batch, d) if layout else (d, batch)), hidden)) if r.random() < 0.5 else ""
    bias = m.constant(m.floats(d, 2 * gates * hidden)) if r.random() < 0.7 else ""
    more = {"direction": "bidirectional" if d == 2 else str(r.choice(["forward", "reverse"]))}
    if layout:
        more["layout"] = 1
    if op == "GRU":
        more["linear_before_reset"] = int(r.integers(2))
    if r.random() < 0.4 and not (bytes_ and op == "GRU"):
        more["activations"] = [str(v) for v in r.choice(ACTIVATIONS, each * d)]
    if r.random() < 0.3:
        more["clip"] = 2.5
    if op == "LSTM" and r.random() < 0.2:
        more["input_forget"] = 1
    tail = [bias, lengths, state()]
    if op == "LSTM":
        tail += [state(), m.constant(m.floats(d, 3 * hidden)) if r.random() < 0.3 else ""]
    outputs = [("float32", 4)] + [("float32", 3)] * states
    if not bytes_:
        w, rec = m.floats(d, gates * hidden, inputs), m.floats(d, gates * hidden, hidden)
        m.add(op, [x, m.constant(w), m.constant(rec), *tail], outputs, hidden_size=hidden, **more)
        return

    def weights(depth):
        kind = [np.int8, np.uint8][r.integers(2)]
        shape = (d, gates * hidden) if r.integers(2) else (d,)
        zero = r.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape) if r.integers(2) else np.full(shape, 0 if kind == np.int8 else 128)
        return (m.constant(r.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (d, depth, gates * hidden)).astype(kind)),
                [m.constant((r.random(shape) * 0.02 + 0.001).astype(np.float32)), m.constant(zero.astype(kind))])
    w, rec = weights(inputs), weights(hidden)
    if op == "LSTM":
        m.add("DynamicQuantizeLSTM", [x, w[0], rec[0], *tail, *w[1], *rec[1]], outputs, "com.microsoft", hidden_size=hidden, **more)
    else:
        m.add("DynamicQuantizeGRU", [x, w[0], rec[0], *tail, *w[1], *rec[1]], outputs, LANEWISE, hidden_size=hidden, **more)


def any_tensor(m, shape):
    kind = str(m.r.choice(["float32", "uint8", "int8", "int32"]))
    return kind, (m.floats(*shape) if kind == "float32" else m.r.integers(0, 100, shape).astype(kind))


def slices(m):
    r, shape = m.r, [int(v) for v in m.r.integers(1, 9, m.r.integers(1, 5))]
    kind, x = any_tensor(m, shape)
    axes = r.permutation(len(shape))[:r.integers(1, len(shape) + 1)]
    numbers = [r.integers(-10, 10, len(axes)), r.integers(-10, 10, len(axes)), axes, r.choice([-3, -2, -1, 1, 1, 1, 2], len(axes))]
    m.add("Slice", [m.input(x)] + [m.constant(n.astype(np.int64)) for n in numbers], [(kind, len(shape))])


def splits(m):
    r, shape = m.r, [int(v) for v in m.r.integers(1, 9, m.r.integers(1, 5))]
    kind, x = any_tensor(m, shape)
    axis, parts = int(r.integers(len(shape))), int(r.integers(1, 5))
    cut = np.diff([0, *sorted(r.integers(0, shape[axis] + 1, parts - 1)), shape[axis]])
    m.add("Split", [m.input(x), m.constant(cut.astype(np.int64))], [(kind, len(shape))] * parts, axis=axis)


def joined(m):
    r, shape = m.r, [int(v) for v in m.r.integers(1, 9, m.r.integers(1, 5))]
    kind, axis = [np.uint8, np.int8][r.integers(2)], int(r.integers(len(shape)))
    scale = lambda: m.constant(np.float32(r.choice([0.02, 0.05, 0.31])))
    zero = lambda: m.constant(np.asarray(r.integers(0, 9), kind))
    inputs = [scale(), zero()]
    for _ in range(r.integers(1, 5)):
        shape[axis] = int(r.integers(1, 9))
        inputs += [m.input(r.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)), scale(), zero()]
    m.add("QLinearConcat", inputs, [(np.dtype(kind).name, len(shape))], "com.microsoft", axis=axis)


usable = backends()
with tempfile.TemporaryDirectory() as work:
    for number in range(rounds):
        model = Model(np.random.default_rng(seed * 1000 + number))
        for make, times in ((convolution, 6), (product, 4), (recurrent, 8), (large_recurrent, 1), (slices, 4), (splits, 3), (joined, 3)):
            for _ in range(times if not only or make.__name__ in only else 0):
                make(model)
        model.write(work)
        want = model.run(work, "scalar")
        for backend in usable:
            if backend == "scalar":
                continue
            try:
                got = model.run(work, backend)
            except (RuntimeError, subprocess.TimeoutExpired) as refused:
                counts["failed"] += 1
                print(f"FAILED round {number}: {refused}")
                continue
            for name, g, w in zip(model.names, got, want):
                same = g.dtype == w.dtype and g.shape == w.shape and g.tobytes() == w.tobytes()
                counts["passed" if same else "failed"] += 1
                if not same:
                    where = np.flatnonzero(g.ravel() != w.ravel()) if g.shape == w.shape else []
                    what = f"{len(where)} of {w.size} differ, first {where[0]}: {g.ravel()[where[0]]!r} instead of {w.ravel()[where[0]]!r}" if len(
                        where) else f"{g.dtype}{g.shape} instead of {w.dtype}{w.shape}, or another bit of a zero or NaN"
                    print(f"FAILED {backend}, round {number}: {name}: {what}")
print(f"backends: {' '.join(usable)}")
print(f"cases: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
sys.exit(1 if counts["failed"] else 0)
