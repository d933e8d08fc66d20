#!/usr/bin/env python3
"""Speed of the int8 product on the CPU beside ONNX Runtime's, in turns on the same cores: weights of 4096 x 4096, 1, 64
and 1024 rows. Usage: ort_speed.py TIME-MODEL [THREADS [ROUNDS]].

Weights: 'uniform', all 256 values alike (what no quantizer makes); 'tensor' and 'channel', normally distributed floats
quantized with one scale or with one for each column; '7 bits', as ONNX Runtime recommends for CPUs without VNNI.
Processor time counts (of all threads), the least of each turn: a busy machine moves that least. The ratio is the median
of the rounds' ratios, each of two neighbouring turns."""
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

tool, threads, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1, int(sys.argv[3]) if len(sys.argv) > 3 else 5
N = 4096
r = np.random.default_rng(1)


def weights(kind):
    if kind == "uniform":
        return r.integers(-128, 128, (N, N)).astype(np.int8), np.float32(0.01)
    if kind == "7 bits":
        return r.integers(-64, 64, (N, N)).astype(np.int8), np.float32(0.01)
    w = r.standard_normal((N, N), np.float32)
    scale = np.abs(w).max(0 if kind == "channel" else None) / np.float32(127)
    return np.rint(w / scale).astype(np.int8), scale


def model(kind):
    w, scale = weights(kind)
    tensors = {"xs": np.float32(0.01), "xz": np.uint8(128), "w": w, "ws": scale, "wz": np.zeros(np.shape(scale), np.int8), "ys": np.float32(5),
               "yz": np.uint8(128)}
    graph = h.make_graph([h.make_node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])], "g",
                         [h.make_tensor_value_info("x", T.UINT8, ["m", N])], [h.make_tensor_value_info("y", T.UINT8, ["m", N])],
                         [nh.from_array(np.asarray(v), k) for k, v in tensors.items()])
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])
    m.ir_version = 8
    return m


print(f"ONNX Runtime {ort.__version__}, {threads} threads, {N} x {N} weights; ms of processor time (GOPS)")
print("weights    rows   lanewise         ONNX Runtime     ratio (least, most)")
with tempfile.TemporaryDirectory() as folder:
    for kind in ("uniform", "tensor", "channel", "7 bits"):
        onnx.save(model(kind), f"{folder}/m.onnx")
        o = ort.SessionOptions()
        o.intra_op_num_threads = threads
        o.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = ort.InferenceSession(f"{folder}/m.onnx", o, providers=["CPUExecutionProvider"])
        for m in (1, 64, 1024):
            repeats = {1: 40, 64: 8, 1024: 2}[m]
            ours, theirs = [], []
            x = r.integers(0, 256, (m, N)).astype(np.uint8)
            for _ in range(rounds):
                run = subprocess.run([tool, f"{folder}/m.onnx", "cpu", str(threads), str(repeats), str(m)], capture_output=True, text=True, check=True)
                ours.append(float(run.stdout.split()[1]))
                session.run(None, {"x": x})
                least = float("inf")
                for _ in range(repeats):
                    start = time.process_time()
                    session.run(None, {"x": x})
                    least = min(least, 1e3 * (time.process_time() - start))
                theirs.append(least)
            work = 2e-6 * m * N * N
            ratios = sorted(b / a for a, b in zip(ours, theirs))
            a, b = statistics.median(ours), statistics.median(theirs)
            print(f"{kind:8} {m:6}   {a:8.3f} ({work / a:4.0f})  {b:8.3f} ({work / b:4.0f})   "
                  f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}, {ratios[-1]:.2f})", flush=True)
