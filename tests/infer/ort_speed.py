#!/usr/bin/env python3
"""Speed of the int8 product on the CPU beside ONNX Runtime's, in turns on the same cores: weights of 4096 x 4096, 1, 64
and 1024 rows. Usage: ort_speed.py TIME-MODEL [THREADS [ROUNDS]]. The best time of all rounds counts."""
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

tool, threads, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1, int(sys.argv[3]) if len(sys.argv) > 3 else 3
N = 4096
r = np.random.default_rng(1)


def model(bits):
    w = r.integers(-(1 << bits - 1), 1 << bits - 1, (N, N)).astype(np.int8)
    tensors = {"xs": np.float32(0.01), "xz": np.uint8(128), "w": w, "ws": np.float32(0.01), "wz": np.int8(0), "ys": np.float32(5), "yz": np.uint8(128)}
    graph = h.make_graph([h.make_node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])], "g",
                         [h.make_tensor_value_info("x", T.UINT8, ["m", N])], [h.make_tensor_value_info("y", T.UINT8, ["m", N])],
                         [nh.from_array(np.asarray(v), k) for k, v in tensors.items()])
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])
    m.ir_version = 8
    return m


print(f"ONNX Runtime {ort.__version__}, {threads} threads, {N} x {N} weights; ms (GOPS)")
print("weights   rows   lanewise        ONNX Runtime    ratio")
with tempfile.TemporaryDirectory() as folder:
    for bits in (7, 8):
        onnx.save(model(bits), f"{folder}/m.onnx")
        o = ort.SessionOptions()
        o.intra_op_num_threads = threads
        session = ort.InferenceSession(f"{folder}/m.onnx", o, providers=["CPUExecutionProvider"])
        for m in (1, 64, 1024):
            repeats = {1: 40, 64: 12, 1024: 3}[m]
            ours = theirs = 1e30
            x = r.integers(0, 256, (m, N)).astype(np.uint8)
            for _ in range(rounds):
                run = subprocess.run([tool, f"{folder}/m.onnx", "cpu", str(threads), str(repeats), str(m)], capture_output=True, text=True, check=True)
                ours = min(ours, float(run.stdout))
                session.run(None, {"x": x})
                for _ in range(repeats):
                    start = time.perf_counter()
                    session.run(None, {"x": x})
                    theirs = min(theirs, 1e3 * (time.perf_counter() - start))
            work = 2e-6 * m * N * N
            print(f"{bits} bits   {m:5}   {ours:8.3f} ({work / ours:4.0f})  {theirs:8.3f} ({work / theirs:4.0f})   {theirs / ours:.2f}", flush=True)
