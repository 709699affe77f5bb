"""Seeds of the target cntk: dictionaries of functions, and files that are broken in one place."""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures/caffe2_ops"))

from net_file import message, number, varint  # noqa: E402

BATCH = 2147483647


def value(kind, held):
    return number(1, 1) + number(2, kind) + held


def size(held):
    return value(3, number(5, held))


def text(held):
    return value(6, message(8, held))


def shape(extents):
    return message(1, b"".join(varint(extent) for extent in extents))


def dims(extents):
    return value(7, message(9, shape(extents)))


def axis(index, name=""):
    return value(8, message(10, number(1, index), message(2, name), number(3, 1)))


def many(values):
    return value(9, message(11, b"".join(message(1, each) for each in values)))


def entries(items):
    return number(1, 2) + b"".join(message(2, message(1, key), message(2, each)) for key, each in items.items())


def dictionary(items):
    return value(10, message(12, entries(items)))


def array(extents, elements=(), kind=1):
    packed = struct.pack(f"<{len(elements)}{'fd'[kind == 2]}", *elements)
    return value(11, message(13, number(1, kind), number(2, 0), message(3, shape(extents)), message(5 if kind == 2 else 4, message(1, packed)) if elements else b""))


def texts(names):
    return many([text(name) for name in names])


def variable(kind, uid, extents, **more):
    return dictionary({"kind": size(kind), "data_type": size(1), "uid": text(uid), "shape": dims(extents), "needs_gradient": value(1, number(3, 1)), **more})


def function(op, uid, inputs, attributes=None, **more):
    return dictionary({"type": text("PrimitiveFunction"), "op": size(op), "uid": text(uid), "inputs": texts(inputs), "attributes": dictionary(attributes or {}), **more})


def block(uid, name, root, holders, values, attributes=None):
    return function(57, uid, values, attributes, block_function_op_name=text(name), block_function_composite=dictionary({"root": text(root)}),
                    block_function_composite_arguments_map_keys=texts(holders), block_function_composite_arguments_map_values=texts(values))


def model(variables, functions, root):
    return entries({"version": size(3), "type": text("CompositeFunction"), "root": text(root), "uid": text("CompositeFunction9"), "name": text("m"),
                    "inputs": many(variables), "primitive_functions": many(functions), "state": dictionary({})})


def data():
    return variable(0, "x", [2, 6], dynamic_axis=many([axis(BATCH, "defaultBatchAxis")]), name=text("data"))


def small(weights=(1.0, -2.0)):
    """Every kind of value, a block that is one operator and one that is functions, and two outputs."""
    holder = variable(4, "p", [2, 6])
    attributes = {"flag": value(1, b""), "whole": value(2, number(4, -3)), "real": value(5, varint(7 << 3 | 1) + struct.pack("<d", 0.5)),
                  "float": value(4, varint(6 << 3 | 5) + struct.pack("<f", 0.5)), "free": dims([(1 << 64) - 3, 4]), "none": value(0, b"")}
    functions = [function(19, "Plus1", ["p", "w"], attributes), block("Block2", "Shift", "Plus1", ["p"], ["x"]),
                 block("Block3", "Softmax", "Plus1", ["q"], ["Block2_Output_0"], {"axis": axis(-1)}),
                 block("Block4", "LocalResponseNormalization", "Plus1", ["p"], ["x"], {"depthRadius": size(2)}),
                 function(87, "TopK5", ["Block3_Output_0"], {"axis": axis(0), "numItems": size(1)}, name=text("top")),
                 function(44, "Combine6", ["TopK5_Output_1", "Block4_Output_0", "w"])]
    return model([data(), variable(2, "w", [2], value=array([2], weights)), holder,
                  variable(3, "d", [], value=array([], [0.5], 2))], functions, "Combine6")


def large(message_bytes, elements):
    return b"ktnc" + struct.pack("<I", len(message_bytes)) + message_bytes + elements


def seeds():
    relu = function(3, "ReLU1", ["x"])
    yield "every", small()
    yield "large", large(model([data(), variable(2, "w", [2], value=array([2]))], [function(19, "Plus1", ["x", "w"])], "Plus1"), struct.pack("<2f", 1, 2))
    yield "large_cut_off", large(small(()), b"\0\0\0\0")
    yield "few_elements", model([variable(2, "x", [9], value=array([9], [1.0]))], [relu], "ReLU1")
    yield "huge_shape", model([variable(2, "x", [1 << 40, 1 << 40], value=array([1 << 40, 1 << 40], [1.0]))], [relu], "ReLU1")
    yield "cycle", model([data()], [function(19, "Plus1", ["x", "ReLU1_Output_0"]), function(3, "ReLU1", ["Plus1_Output_0"])], "ReLU1")
    yield "circle_of_blocks", model([data()], [block("B", "b", "C", [], []), block("C", "c", "B", [], [])], "B")
    yield "circle_of_holders", model([data()], [function(3, "ReLU1", ["p"]), block("B", "b", "ReLU1", ["p", "q"], ["q", "p"])], "B")
    yield "no_root", model([data()], [relu], "other")
    yield "sequence", model([data(), variable(0, "y", [2], dynamic_axis=many([axis(BATCH, "steps"), axis(BATCH, "batch")]))], [function(19, "Plus1", ["x", "y"])], "Plus1")
    yield "function_of_python", model([data()], [dictionary({"type": text("UserDefinedFunction"), "uid": text("U"), "inputs": texts(["x"])})], "U")
