#!/usr/bin/env python3
"""Writes small ONNX models, good and bad, without the onnx package: tiny_onnx.py KIND FILE [ARGUMENT].
The kinds are the functions below."""
import struct
import sys

FLOAT, UINT8, INT8, INT32, INT64, BOOL = 1, 2, 3, 6, 7, 9


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def chunk(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dtype, dims, raw, extra=b""):
    return b"".join(number(1, d) for d in dims) + number(2, dtype) + chunk(8, name) + (chunk(9, raw) if raw is not None else b"") + extra


def attribute(name, value):
    if isinstance(value, int):
        return chunk(1, name) + number(20, 2) + number(3, value)
    if isinstance(value, float):
        return chunk(1, name) + number(20, 1) + varint(2 << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        return chunk(1, name) + number(20, 3) + chunk(4, value)
    if isinstance(value, bytes):
        return chunk(1, name) + number(20, 5) + chunk(6, value)
    if isinstance(value[0], str):
        return chunk(1, name) + number(20, 8) + b"".join(chunk(9, v) for v in value)
    return chunk(1, name) + number(20, 7) + b"".join(number(8, v) for v in value)


def node(op, inputs, outputs, domain="", name="", **attributes):
    return (b"".join(chunk(1, i) for i in inputs) + b"".join(chunk(2, o) for o in outputs) + (chunk(3, name) if name else b"")
            + chunk(4, op) + b"".join(chunk(5, attribute(k, v)) for k, v in attributes.items()) + (chunk(7, domain) if domain else b""))


def value(name, dtype, dims):
    shape = b"".join(chunk(1, number(1, d) if isinstance(d, int) else chunk(2, d)) for d in dims)
    return chunk(1, name) + chunk(2, chunk(1, number(1, dtype) + chunk(2, shape)))


def model(nodes, inputs, outputs, tensors=(), opset=17, extra_opset=b""):
    graph = (b"".join(chunk(1, n) for n in nodes) + chunk(2, "g") + b"".join(chunk(5, t) for t in tensors)
             + b"".join(chunk(11, i) for i in inputs) + b"".join(chunk(12, o) for o in outputs))
    return number(1, 8) + chunk(7, graph) + chunk(8, number(2, opset)) + extra_opset


def floats(*v):
    return struct.pack(f"<{len(v)}f", *v)


def one(node_, **more):
    return model([node_], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])], **more)


def mean_of_letters():
    """The mean of each one-hot channel: N x 4 x L -> N x 4."""
    return model([node("ReduceMean", ["x"], ["y"], axes=[2], keepdims=0)], [value("x", FLOAT, ["n", 4, "length"])],
                 [value("y", FLOAT, ["n", 4])])


def same_tokens():
    """Token numbers as they are: N x 8 int64."""
    return model([node("Identity", ["x"], ["y"])], [value("x", INT64, ["n", 8])], [value("y", INT64, ["n", 8])])


def masked_tokens():
    """Token numbers and the mask of a text encoder; any length."""
    shape = ["n", "length"]
    return model([node("Identity", ["input_ids"], ["y"]), node("Identity", ["attention_mask"], ["m"])],
                 [value("input_ids", INT64, shape), value("attention_mask", INT64, shape)],
                 [value("y", INT64, shape), value("m", INT64, shape)])


def last_letters():
    """Channels last and a fixed batch of 2: 2 x 4 x 3 -> 2 x 3."""
    return model([node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], [value("x", FLOAT, [2, 4, 3])], [value("y", FLOAT, [2, 3])],
                 [tensor("axes", INT64, [1], struct.pack("<q", 1))])


def relu():
    return one(node("Relu", ["x"], ["y"]))


def relu_of_opset(opset):
    return model([node("Relu", ["x"], ["y"])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])], opset=int(opset))


def cyclic():
    return model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], [value("x", FLOAT, [2])], [value("b", FLOAT, [2])])


def unknown_operator():
    return one(node("Frobnicate", ["x"], ["y"], name="middle"))


def unknown_domain():
    return one(node("Relu", ["x"], ["y"], domain="org.example"))


def bad_shapes():
    return model([node("Add", ["x", "w"], ["y"])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])],
                 [tensor("w", FLOAT, [3], floats(1, 2, 3))])


def short_tensor():
    return model([node("Add", ["x", "w"], ["y"])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])],
                 [tensor("w", FLOAT, [2], floats(1))])


def huge_tensor():
    return model([node("Add", ["x", "w"], ["y"])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])],
                 [tensor("w", FLOAT, [1 << 40, 1 << 40], floats(1))])


def huge_result():
    """A constant that would have 2^50 elements."""
    return model([node("ConstantOfShape", ["s"], ["a"]), node("Add", ["x", "a"], ["y"])], [value("x", FLOAT, [2])],
                 [value("y", FLOAT, [2])], [tensor("s", INT64, [1], struct.pack("<q", 1 << 50))])


def deep(n=20000):
    """A chain of n nodes."""
    names = ["x"] + [f"v{i}" for i in range(1, int(n))] + ["y"]
    return model([node("Relu", [a], [b]) for a, b in zip(names, names[1:])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])])


def letters_and_reals():
    """Rows of a table, chosen by ids, and reals: a product of bytes, its softmax; and the ids' shape."""
    table, w = [((7 * i) % 23) / 8 - 1 for i in range(6 * 8)], bytes((11 * i) % 256 for i in range(8 * 5))
    nodes = [node("Gather", ["t", "ids"], ["a"]), node("Add", ["a", "x"], ["b"]),
             node("DynamicQuantizeLinear", ["b"], ["q", "s", "z"]), node("MatMulInteger", ["q", "w", "z"], ["c"]),
             node("Cast", ["c"], ["d"], to=FLOAT), node("Mul", ["d", "s"], ["e"]), node("Mul", ["e", "k"], ["l"]),
             node("Softmax", ["l"], ["y"], axis=-1), node("Shape", ["ids"], ["n"])]
    return model(nodes, [value("ids", INT64, ["n", 3]), value("x", FLOAT, ["n", 3, 8])],
                 [value("y", FLOAT, ["n", 3, 5]), value("n", INT64, [2])],
                 [tensor("t", FLOAT, [6, 8], floats(*table)), tensor("w", INT8, [8, 5], w), tensor("k", FLOAT, [], floats(0.01))])


def with_defaults():
    """(x w) * s^2, where w and s are inputs with defaults, k a constant that cannot be given."""
    nodes = [node("Mul", ["s", "s"], ["t"]), node("Mul", ["t", "k"], ["u"]), node("MatMulInteger", ["x", "w"], ["a"]),
             node("Cast", ["a"], ["b"], to=FLOAT), node("Mul", ["b", "u"], ["y"])]
    return model(nodes, [value("w", INT8, [2, "columns"]), value("x", UINT8, ["n", 2]), value("s", FLOAT, [])],
                 [value("y", FLOAT, ["n", "columns"])],
                 [tensor("w", INT8, [2, 2], bytes([1, 2, 3, 255])), tensor("s", FLOAT, [], floats(2)), tensor("k", FLOAT, [], floats(1))])


def backwards():
    """Elements of x from 9 places before its end, backwards to its beginning: the standard takes that start for 0. And the largest of
    each two, without the indices that nobody names."""
    return model([node("Slice", ["x", "s", "e", "", "t"], ["y"]), node("MaxPool", ["x"], ["z", ""], kernel_shape=[2])],
                 [value("x", FLOAT, [1, "c", 2])], [value("y", FLOAT, [1, "c", 2]), value("z", FLOAT, [1, "c", 1])],
                 [tensor("s", INT64, [3], struct.pack("<3q", 0, -9, 0)), tensor("e", INT64, [3], struct.pack("<3q", 9, -9, 9)),
                  tensor("t", INT64, [3], struct.pack("<3q", 1, -1, 1))])


def on_elements():
    """Resize 7 -> 17, where output 8 lies on element 3 exactly; and the whole kernel divides at QLinearAveragePool's end."""
    return model([node("Resize", ["x", "", "", "n"], ["y"], mode="nearest", nearest_mode="ceil",
                       coordinate_transformation_mode="half_pixel"),
                  node("QLinearAveragePool", ["q", "s", "o", "s", "o"], ["z"], "com.microsoft", kernel_shape=[2], strides=[2],
                       ceil_mode=1, count_include_pad=1)],
                 [value("x", FLOAT, [1, 1, 7]), value("q", UINT8, [1, 1, 3])], [value("y", FLOAT, [1, 1, 17]), value("z", UINT8, [1, 1, 2])],
                 [tensor("n", INT64, [3], struct.pack("<3q", 1, 1, 17)), tensor("s", FLOAT, [], floats(1)), tensor("o", UINT8, [], b"\0")],
                 extra_opset=chunk(8, chunk(1, "com.microsoft") + number(2, 1)))


def wide_kernel(width, *dims):
    """A pool that one element is too small for, over unknown dimensions; its state counts the same batch."""
    return model([node("MaxPool", ["x"], ["y"], kernel_shape=[int(width)] * (len(dims) - 2)), node("Add", ["s", "s"], ["z"])],
                 [value("x", FLOAT, [int(d) if d.isdigit() else d for d in dims]), value("s", FLOAT, [2, dims[0]])],
                 [value("y", FLOAT, list("abcd")[:len(dims)]), value("z", FLOAT, [2, dims[0]])])


def branch(nodes, output, tensors=()):
    return b"".join(chunk(1, n) for n in nodes) + chunk(2, "b") + b"".join(chunk(5, t) for t in tensors) + chunk(12, chunk(1, output))


def branches():
    """y = c ? (d ? x + 10 + z : x + 20) : z * 3, with z = x + x: one name for many things, and a name hidden."""
    inner = [branch([node("Add", ["x", "k"], ["v"]), node("Add", ["v", "z"], ["w"])], "w", [tensor("k", FLOAT, [], floats(10))]),
             branch([node("Add", ["x", "k"], ["v"])], "v", [tensor("k", FLOAT, [], floats(20))])]
    outer = [branch([node("If", ["d"], ["v"], then_branch=inner[0], else_branch=inner[1])], "v"),
             branch([node("Mul", ["z", "k"], ["v"])], "v", [tensor("k", FLOAT, [], floats(3))])]
    return model([node("Add", ["x", "x"], ["z"]), node("If", ["c"], ["y"], then_branch=outer[0], else_branch=outer[1])],
                 [value("x", FLOAT, [2]), value("c", BOOL, []), value("d", BOOL, [1])], [value("y", FLOAT, [2])],
                 [tensor("k", FLOAT, [], floats(1000))])


def dead_branch(taken="then", kind="bool"):
    """A condition with a default, true: the other branch has an operator that is not supported, and a constant that cannot be made."""
    good = branch([node("Relu", ["x"], ["v"])], "v")
    bad = branch([node("Reshape", ["k", "s"], ["r"]), node("Frobnicate", ["x"], ["v"], name="middle")], "v",
                 [tensor("k", FLOAT, [1], floats(1)), tensor("s", INT64, [1], struct.pack("<q", 7))])
    then, otherwise = (good, bad) if taken == "then" else (bad, good)
    condition = tensor("c", BOOL, [], b"\1") if kind == "bool" else tensor("c", FLOAT, [], floats(1))
    attributes = {"then_branch": then, "else_branch": otherwise} if kind != "half" else {"then_branch": then}
    return model([node("If", ["c"], ["y"], name="fork", **attributes)], [value("x", FLOAT, [2]), value("c", BOOL, [])],
                 [value("y", FLOAT, [2])], [condition])


def cyclic_branch():
    """A branch that reads what its own If makes."""
    return model([node("If", ["c"], ["y"], name="fork", then_branch=branch([node("Relu", ["y"], ["v"])], "v"),
                       else_branch=branch([node("Relu", ["x"], ["v"])], "v"))],
                 [value("x", FLOAT, [2]), value("c", BOOL, [])], [value("y", FLOAT, [2])])


def external(location):
    extra = chunk(13, chunk(1, "location") + chunk(2, location)) + number(14, 1)
    return model([node("Add", ["x", "w"], ["y"])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])],
                 [tensor("w", FLOAT, [2], None, extra)])


def quantized(scale="1", zero_type="uint8"):
    zero = {"uint8": (UINT8, b"\0"), "int8": (INT8, b"\0"), "float32": (FLOAT, floats(0)), "int32": (INT32, bytes(4))}[zero_type]
    return model([node("QuantizeLinear", ["x", "s", "z"], ["y"], name="q")], [value("x", FLOAT, [2])], [value("y", zero[0], [2])],
                 [tensor("s", FLOAT, [], floats(float(scale))), tensor("z", zero[0], [], zero[1])])


def wrong_zero():
    """uint8 data, an int8 zero point."""
    return model([node("DequantizeLinear", ["x", "s", "z"], ["y"], name="d")], [value("x", UINT8, [2])], [value("y", FLOAT, [2])],
                 [tensor("s", FLOAT, [], floats(1)), tensor("z", INT8, [], b"\0")])


def overflowing():
    """70,000 products of 255 x 127: more than int32 holds."""
    k = 70000
    return model([node("MatMulInteger", ["x", "w", "z"], ["y"], name="sum")], [value("x", UINT8, ["n", k])], [value("y", INT32, ["n", 1])],
                 [tensor("w", INT8, [k, 1], b"\x7f" * k), tensor("z", UINT8, [], b"\0")])


def overflowing_conv():
    """A bias that leaves no room for the products."""
    return model([node("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z", "b"], ["y"], name="conv")],
                 [value("x", UINT8, [1, 1, 9])], [value("y", UINT8, [1, 1, 7])],
                 [tensor("s", FLOAT, [], floats(1)), tensor("z", UINT8, [], b"\0"), tensor("w", UINT8, [1, 1, 3], b"\1\2\3"),
                  tensor("b", INT32, [1], struct.pack("<i", 2**31 - 1000))])


def npy(dtype, shape, order, data):
    """npy "<f4" 2,3 C HEX: a NumPy file."""
    head = f"{{'descr': '{dtype}', 'fortran_order': {order == 'F'}, 'shape': ({shape},), }}".replace(",,", ",")
    head = head.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes.fromhex(data)


def main():
    kind, path, *arguments = sys.argv[1:]
    with open(path, "wb") as file:
        file.write(globals()[kind](*arguments))


if __name__ == "__main__":
    main()
