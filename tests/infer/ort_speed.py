#!/usr/bin/env python3
"""Speed of the int8 product on the CPU beside ONNX Runtime's, in turns on the same cores: weights of 4096 x 4096, 1, 64
and 1024 rows. Usage: ort_speed.py TIME-MODEL [THREADS [ROUNDS]] [--kinds a,b] [--rows 1,64] [--disable amx[,...]] [--wall].
With --model FILE a whole model instead, whose open dimensions are all --rows, on random floats and random 0 and 1.

Weights: 'uniform', all 256 values alike (what no quantizer makes); 'tensor' and 'channel', normally distributed floats
quantized with one scale or with one for each column; '7 bits', as ONNX Runtime recommends for CPUs without VNNI.
Processor time counts (of all threads), the least of each turn: a busy machine moves that least; --wall takes the time of
a clock, for several threads of a machine that is not busy. The ratio is the median of the rounds' ratios, each of two
neighbouring turns. --disable runs our product without an instruction set. The last column compares the results, where the
program lanewise lies beside TIME-MODEL: on CPUs without VNNI ONNX Runtime's sums saturate unless weights have 7 bits."""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime as ort
import tiny_onnx as tiny

FLOAT, UINT8, INT8 = tiny.FLOAT, tiny.UINT8, tiny.INT8
N = 4096
p = argparse.ArgumentParser()
p.add_argument("tool")
p.add_argument("threads", type=int, nargs="?", default=1)
p.add_argument("rounds", type=int, nargs="?", default=5)
p.add_argument("--model")
p.add_argument("--kinds", default="uniform,tensor,channel,7 bits")
p.add_argument("--rows")
p.add_argument("--disable", default="")
p.add_argument("--wall", action="store_true")
o = p.parse_args()
lanewise = os.path.join(os.path.dirname(o.tool) or ".", "lanewise")
environment = dict(os.environ, **({"LANEWISE_DISABLE": o.disable} if o.disable else {}))
clock = time.perf_counter if o.wall else time.process_time
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
    constants = {"xs": np.float32(0.01), "xz": np.uint8(128), "w": w, "ws": scale, "wz": np.zeros(np.shape(scale), np.int8), "ys": np.float32(5),
                 "yz": np.uint8(128)}
    kinds = {"float32": FLOAT, "uint8": UINT8, "int8": INT8}
    return tiny.model([tiny.node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])],
                      [tiny.value("x", UINT8, ["m", N])], [tiny.value("y", UINT8, ["m", N])],
                      [tiny.tensor(k, kinds[str(np.asarray(v).dtype)], np.shape(v), np.asarray(v).tobytes()) for k, v in constants.items()])


def compare(folder, x, theirs):
    if not os.path.exists(lanewise):
        return "-"
    np.save(f"{folder}/x.npy", x)
    subprocess.run([lanewise, "infer", f"{folder}/m.onnx", "--backend", "cpu", "-t", str(o.threads), "--input", f"x={folder}/x.npy",
                    "--output", f"{folder}/y.npy"], check=True, env=environment, capture_output=True)
    differ = np.count_nonzero(np.load(f"{folder}/y.npy") != theirs)
    return f"{differ} differ" if differ else "equal"


def session_of(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = o.threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if o.wall else "0")
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def turns(path, session, inputs, rows, repeats):
    """Milliseconds of ours and of theirs, one of each for every round, and their last outputs."""
    ours, theirs = [], []
    for _ in range(o.rounds):
        run = subprocess.run([o.tool, path, "cpu", str(o.threads), str(repeats), str(rows)], capture_output=True, text=True, check=True,
                             env=environment)
        ours.append(float(run.stdout.split()[0 if o.wall else 1]))
        outputs = session.run(None, inputs)
        least = float("inf")
        for _ in range(repeats):
            start = clock()
            session.run(None, inputs)
            least = min(least, 1e3 * (clock() - start))
        theirs.append(least)
    return ours, theirs, outputs


def ratio(ours, theirs):
    ratios = sorted(b / a for a, b in zip(ours, theirs))
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}, {ratios[-1]:.2f})"


def whole_model():
    session = session_of(o.model)
    print("rows   lanewise   ONNX Runtime   ratio (least, most)")
    for rows in map(int, (o.rows or "8,16").split(",")):
        inputs = {}
        for i in session.get_inputs():
            shape = [d if isinstance(d, int) else rows for d in i.shape]
            inputs[i.name] = r.standard_normal(shape, np.float32) if i.type == "tensor(float)" else r.integers(0, 2, shape, np.int64)
        ours, theirs, _ = turns(o.model, session, inputs, rows, 8)
        print(f"{rows:4}   {statistics.median(ours):8.3f}   {statistics.median(theirs):8.3f}       {ratio(ours, theirs)}", flush=True)


def products():
    print("weights    rows   lanewise         ONNX Runtime     ratio (least, most)  results")
    with tempfile.TemporaryDirectory() as folder:
        for kind in o.kinds.split(","):
            with open(f"{folder}/m.onnx", "wb") as f:
                f.write(model(kind))
            session = session_of(f"{folder}/m.onnx")
            for m in map(int, (o.rows or "1,64,1024").split(",")):
                x = r.integers(0, 256, (m, N)).astype(np.uint8)
                ours, theirs, y = turns(f"{folder}/m.onnx", session, {"x": x}, m, {1: 40, 64: 8, 1024: 2}.get(m, 4))
                work = 2e-6 * m * N * N
                a, b = statistics.median(ours), statistics.median(theirs)
                print(f"{kind:8} {m:6}   {a:8.3f} ({work / a:4.0f})  {b:8.3f} ({work / b:4.0f})   "
                      f"{ratio(ours, theirs)}   {compare(folder, x, y[0])}", flush=True)


print(f"ONNX Runtime {ort.__version__}, {o.threads} threads, {o.model or f'{N} x {N} weights'}"
      f"{', without ' + o.disable if o.disable else ''}; ms of {'a clock' if o.wall else 'processor time'}{'' if o.model else ' (GOPS)'}")
whole_model() if o.model else products()
