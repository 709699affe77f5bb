"""Seeds of the target mxnet: a symbol, a NUL, and the file of its parameters."""

import json
import struct


def array(dims, data=b"", version=2, flag=0, storage=0):
    marks = {0: b"", 1: struct.pack("<I", 0xF993FAC8), 2: struct.pack("<Ii", 0xF993FAC9, storage), 3: struct.pack("<Ii", 0xF993FACA, storage)}
    extents = struct.pack(f"<I{len(dims)}{'q' if version else 'I'}", len(dims), *dims)
    return marks[version] + extents + struct.pack("<iii", 1, 0, flag) + data


def parameters(arrays):
    names = b"".join(struct.pack("<Q", len(name)) + name.encode() for name in arrays)
    return struct.pack("<QQQ", 0x112, 0, len(arrays)) + b"".join(arrays.values()) + struct.pack("<Q", len(arrays)) + names


def node(op, name, inputs=(), member="attrs", **attributes):
    return {"op": op, "name": name, "inputs": [list(each) for each in inputs]} | ({member: attributes} if attributes else {})


def symbol(nodes, heads=((-1, 0, 0),)):
    heads = [[entry[0] % len(nodes), *entry[1:]] for entry in heads]
    return json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": heads, "attrs": {"mxnet_version": ["int", 10901]}}).encode()


def network():
    return [node("null", "data", __dtype__="0"), node("null", "w"), node("Convolution", "c", [(0, 0, 0), (1, 0)], kernel="(3, 3)", num_filter="2", num_group="1", no_bias="True"),
            node("null", "label"), node("SliceChannel", "s", [(2, 0, 0)], "param", num_outputs="2"), node("SoftmaxOutput", "out", [(4, 1, 0), (3, 0, 0)], "attr")]


def seeds():
    floats = struct.pack("<18f", *range(18))
    kinds = {f"arg:k{flag}": array((2,), bytes(2 * size), flag=flag) for flag, size in enumerate((4, 8, 2, 1, 4, 1, 8, 1, 2, 2, 4, 8, 2))}
    versions = {f"aux:v{version}": array((1, 2), bytes(8), version) for version in range(4)}
    weights = {"arg:w": array((2, 1, 3, 3), floats)}
    yield "network", symbol(network()) + b"\0" + parameters(weights)
    yield "kinds", symbol(network()) + b"\0" + parameters(weights | kinds | versions)
    yield "heads", symbol(network(), [(4, 0), (4, 1, 0)]) + b"\0" + parameters({})
    yield "states", symbol([node("null", "x"), node("RNN", "r", [(0, 0)], mode="lstm", state_outputs="True")], [(1, 2, 0)]) + b"\0" + parameters({})
    yield "sparse", symbol(network()) + b"\0" + parameters({"w": array((2,), bytes(8), storage=1)})
    yield "huge", symbol(network()) + b"\0" + parameters({"w": array((1 << 40, 1 << 40), bytes(8))})
    yield "cut", symbol(network()) + b"\0" + parameters(weights)[:-9]
    yield "forward", symbol([node("relu", "y", [(0, 0, 0)])]) + b"\0" + parameters({})
