"""Models and archives that tests make up, and broken copies of them."""

import io
import tarfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def model_of(nodes, inputs, outputs, initializers=()):
    """A model's bytes; inputs and outputs as (name, dtype, shape)."""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs], list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model.SerializeToString()


def one_node_model(op, inputs, output, constants=(), **attributes):
    """A model of one node; inputs and output as (name, dtype, shape)."""
    node = helper.make_node(op, [i[0] for i in inputs] + [c[0] for c in constants], [output[0]], name="the_node",
                            **attributes)
    return model_of([node], inputs, [output], [numpy_helper.from_array(array, name) for name, array in constants])


def archive(members, links=(), others=()):
    """A tar of (name, bytes), of symbolic links (name, target) and of others (name, tarfile's type, target)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, kind, target in [(name, tarfile.SYMTYPE, target) for name, target in links] + list(others):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            tar.addfile(info)
    return buffer.getvalue()


def external_model(location):
    """y = x + w with w in a file; the model's bytes and those of the file."""
    weights = np.arange(4, dtype=np.float32)
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [4], weights.tobytes(), raw=True)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, [4])],
                     [("y", TensorProto.FLOAT, [4])], [tensor])
    return model, weights.tobytes()


def mutated(data, rng):
    """The bytes cut off, or with flipped bits among the first 4096 or anywhere."""
    kind = rng.randrange(3)
    if kind == 0:
        return data[:rng.randrange(1, len(data))]
    data = bytearray(data)
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(min(len(data), 4096)) if kind == 1 else rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
    return bytes(data)
