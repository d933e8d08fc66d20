#!/usr/bin/env python3
"""lanewise layer: --quantize against ONNX Runtime's quantizer, and the layers that no standard names against numpy,
on every backend that runs here. Usage: layers.py PROGRAM [ROUNDS]. Needs numpy; onnx and onnxruntime for part of it."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"layers: skipped: {missing}")
    print("cases: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)
try:
    from onnxruntime.quantization import quant_utils
    import onnx
except ImportError:
    quant_utils = None

program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
counts = {"passed": 0, "failed": 0, "skipped": 0}
f32 = np.float32


def backends():
    lines = subprocess.run([program, "layer", "--backend", "list"], capture_output=True, text=True).stdout.splitlines()
    usable = [line.split()[0] for line, state in zip(lines[::2], lines[1::2]) if state.split()[:1] in (["usable"], ["usable;"])]
    assert "scalar" in usable and "cpu" in usable, usable
    return usable


def layer(folder, kind, inputs, settings=(), extra=(), backend="cpu"):
    command = [program, "layer", kind, "--backend", backend, "-o", f"{folder}/y.npy", *extra]
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            np.save(f"{folder}/{name}.npy", value)
            value = f"{folder}/{name}.npy"
        command += ["--input", f"{name}={value}"]
    for name, value in dict(settings).items():
        command += ["--set", f"{name}={value}"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return np.load(f"{folder}/y.npy")


def check(name, got, want, bound=None):
    ok = got.shape == want.shape and got.dtype == want.dtype
    if ok and bound is None:
        ok = np.array_equal(got, want)
    elif ok:
        ok = np.abs(got.astype(np.float64) - want).max(initial=0) <= bound * max(np.abs(want).max(initial=0), 1e-30)
    counts["passed" if ok else "failed"] += 1
    if not ok:
        print(f"FAILED {name}: {got.dtype}{got.shape} {got.ravel()[:5]} instead of {want.dtype}{want.shape} {want.ravel()[:5]}")


def rounded(x, scale, zero, low, high):
    return np.clip(np.rint(x.astype(f32) / f32(scale)) + zero, low, high).astype(np.int64)


def dynamic(x):
    """DynamicQuantizeLinear: values, scale, zero point."""
    low, high = min(f32(0), x.min(initial=0)), max(f32(0), x.max(initial=0))
    scale = f32((high - low) / f32(255)) if high > low else f32(1)
    zero = int(np.rint(np.clip(-low / scale, 0, 255)))
    return rounded(x, scale, zero, 0, 255), scale, zero


def quantized_weights(w, axes, symmetric):
    """As documented: --quantize."""
    move = [d for d in range(w.ndim) if d not in axes]
    low, high = np.minimum(w.min(axis=tuple(move), keepdims=True), 0), np.maximum(w.max(axis=tuple(move), keepdims=True), 0)
    if symmetric:
        high = np.maximum(high, -low)
        low = -high
    scale = ((high.astype(np.float64) - low) / (254 if symmetric else 255)).astype(f32)
    scale[scale == 0] = 1
    zero = np.zeros_like(scale) if symmetric else np.clip(np.rint(-128 - low / scale), -128, 127)
    q = np.clip(np.rint(w / scale) + zero, -127 if symmetric else -128, 127).astype(np.int8)
    shape = [w.shape[d] for d in axes]
    return q, scale.reshape(shape), zero.astype(np.int8).reshape(shape)


WAYS = {"tensor": (False, True), "channel": (True, True), "tensor-asymmetric": (False, False), "channel-asymmetric": (True, False)}


def weights_of_quantize(folder, r, backend):
    o, i = int(r.integers(1, 9)), int(r.integers(1, 30))
    w = (r.standard_normal((o, i)) * r.random((o, 1))).astype(f32)
    w[0, 0] = 0
    x = r.integers(0, 256, (3, i)).astype(np.uint8)
    for how, (each, symmetric) in WAYS.items():
        y = layer(folder, "linear", {"x": x, "x-scale": 0.25, "x-zero": 3, "w": w}, extra=["--quantize", how, "--save-weights", f"{folder}/s"],
                  backend=backend)
        q, scale, zero = [np.load(f"{folder}/s-{n}.npy") for n in ("w", "w-scale", "w-zero")]
        want = quantized_weights(w, [0] if each else [], symmetric)
        for name, a, b in zip(("w", "w-scale", "w-zero"), (q, scale, zero), want):
            check(f"--quantize {how}: {name}", a, b)
        sums = (x.astype(np.int64) - 3) @ (q.astype(np.int64) - zero.reshape(-1, 1)).T
        check(f"linear --quantize {how}", y, sums.astype(f32) * (f32(0.25) * scale.reshape(1, -1)))
        if quant_utils:
            for c in range(o if each else 1):
                part = w[c] if each else w
                theirs = quant_utils.quantize_data(part, onnx.TensorProto.INT8, symmetric)
                # (rmin, rmax, zero, scale, data) in older versions, (zero, scale, data) in newer ones
                z, s, data = theirs[-3:]
                check(f"--quantize {how} as ONNX Runtime", q[c] if each else q, np.asarray(data).reshape(part.shape).astype(np.int8))
                check(f"--quantize {how}, scale as ONNX Runtime", scale.ravel()[c], np.asarray(s, f32).reshape(()))
                check(f"--quantize {how}, zero point as ONNX Runtime", zero.ravel()[c], np.asarray(z, np.int8).reshape(()))


def without_zero_points(folder, r, backend):
    """quantize and dequantize with a scale for each index of an axis and no zero points, or one number for all of them."""
    x, scale = r.standard_normal((3, 5)).astype(f32), (r.random(5) + 0.01).astype(f32)
    for given, zero in (({}, 0), ({"y-zero": -9}, -9)):
        want = np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8)
        check("quantize by axis", layer(folder, "quantize", {"x": x, "y-scale": scale, **given}, {"axis": -1}, backend=backend), want)
    for t in (np.int8, np.uint8, np.int16, np.int32):
        q = r.integers(0, 100, (3, 5)).astype(t)
        check(f"dequantize {t.__name__}", layer(folder, "dequantize", {"x": q, "x-scale": 0.5}, backend=backend), q.astype(f32) * f32(0.5))
        check(f"dequantize {t.__name__} by axis", layer(folder, "dequantize", {"x": q, "x-scale": scale}, {"axis": 1}, backend=backend),
              q.astype(f32) * scale)


def rows(folder, r, backend):
    b, m, k, n = [int(v) for v in r.integers(1, 20, 4)]
    x, w, bias = r.standard_normal((b, m, k)).astype(f32), r.integers(-128, 128, (k, n)).astype(np.int8), r.standard_normal(n).astype(f32)
    x *= 10.0 ** r.integers(-3, 3, (b, m, 1)).astype(f32)
    scale, zero = r.random(n).astype(f32) + f32(0.01), r.integers(-128, 128, n).astype(np.int8)
    want = np.empty((b, m, n), f32)
    for i in np.ndindex(b, m):
        q, s, z = dynamic(x[i])
        want[i] = ((q - z) @ (w.astype(np.int64) - zero)).astype(f32) * (s * scale) + bias
    check("linear-rows", layer(folder, "linear-rows", {"x": x, "w": w, "w-scale": scale, "w-zero": zero, "bias": bias}, backend=backend), want)


def attention(folder, r, backend):
    b, q, k, d, v = [int(n) for n in r.integers(1, 12, 5)]
    inputs, values = {}, {}
    for name, shape in {"q": (b, 2, q, d), "k": (b, 2, k, d), "v": (b, 2, k, v)}.items():
        t = [np.int8, np.uint8][r.integers(2)]
        i = np.iinfo(t)
        a, scale, zero = r.integers(i.min, i.max + 1, shape).astype(t), f32(r.random() * 0.05 + 0.001), int(r.integers(i.min, i.max + 1))
        inputs |= {name: a, f"{name}-scale": repr(float(scale)), f"{name}-zero": zero}
        values[name] = (a.astype(np.int64) - zero, scale)
    mask = np.where(r.random((q, k)) < 0.3, f32(-3), f32(0)).astype(f32)
    size = f32(1) / np.sqrt(f32(d))
    scores = (values["q"][0] @ values["k"][0].swapaxes(-1, -2)).astype(f32) * (values["q"][1] * values["k"][1] * size) + mask
    e = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    parts = np.rint((e / e.sum(axis=-1, keepdims=True)).astype(f32) / (f32(1) / f32(255))).astype(np.int64)
    sums = parts @ values["v"][0]
    part = f32(1) / f32(255)
    want = sums.astype(f32) * (part * values["v"][1])
    # a part is an integer that comes of floats: it may differ by one
    check("attention", layer(folder, "attention", inputs | {"mask": mask}, backend=backend), want, 0.02)
    multiplier = part * values["v"][1] / f32(0.02)
    got = layer(folder, "attention", inputs | {"mask": mask, "y-scale": 0.02, "y-zero": 5}, backend=backend)
    low, high = np.iinfo(got.dtype).min, np.iinfo(got.dtype).max
    want = np.clip(np.rint(sums.astype(f32) * multiplier) + 5, low, high)
    counts["passed" if np.abs(got - want).max(initial=0) <= 1 + 0.01 * 255 else "failed"] += 1


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent(folder, r, backend):
    kind, gates = [("lstm-int8", 4), ("gru-int8", 3)][r.integers(2)]
    n, hidden, inputs = [int(v) for v in r.integers(1, 8, 3)]
    x = r.standard_normal((n, 1, inputs)).astype(f32)
    w, u = [(r.standard_normal((1, k, gates * hidden)) * 0.5).astype(f32) for k in (inputs, hidden)]
    bias = r.standard_normal((1, 2 * gates * hidden)).astype(f32)
    (qw, sw, _), (qu, su, _) = quantized_weights(w, [0, 2], True), quantized_weights(u, [0, 2], True)
    h = c = np.zeros(hidden)
    all_x, s, z = dynamic(x)
    from_x = (all_x[:, 0] - z) @ qw[0].astype(np.int64) * (s * sw[0])
    out = []

    def back(state, weights, scales):
        q, s, z = dynamic(state.astype(f32)[None])
        return ((q - z) @ weights.astype(np.int64) * (s * scales))[0]
    for t in range(n):
        b, g = bias[0], gates * hidden
        if gates == 4:
            gate = (from_x[t] + back(h, qu[0], su[0]) + b[:g] + b[g:]).reshape(4, hidden)
            c = sigmoid(gate[2]) * c + sigmoid(gate[0]) * np.tanh(gate[3])
            h = sigmoid(gate[1]) * np.tanh(c)
        else:
            zr = sigmoid(from_x[t][:2 * hidden] + back(h, qu[0][:, :2 * hidden], su[0][:2 * hidden]) + b[:2 * hidden] + b[g:g + 2 * hidden])
            new = np.tanh(from_x[t][2 * hidden:] + b[2 * hidden:g] + back(zr[hidden:] * h, qu[0][:, 2 * hidden:], su[0][2 * hidden:])
                          + b[g + 2 * hidden:])
            h = (1 - zr[:hidden]) * new + zr[:hidden] * h
        out.append(h)
    want = np.array(out, f32).reshape(n, 1, 1, hidden)
    check(kind, layer(folder, kind, {"x": x, "w": w, "r": u, "bias": bias}, extra=["--quantize", "channel"], backend=backend), want, 0.02)


with tempfile.TemporaryDirectory() as folder:
    for backend in backends():
        r = np.random.default_rng(1)
        for _ in range(rounds):
            for test in (weights_of_quantize, without_zero_points, rows, attention, recurrent):
                try:
                    test(folder, r, backend)
                except RuntimeError as problem:
                    counts["failed"] += 1
                    print(f"FAILED {test.__name__} on {backend}: {problem}")
print(f"cases: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
sys.exit(1 if counts["failed"] else 0)
