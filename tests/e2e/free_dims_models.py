"""Small models with free dims, each of one kind of shape arithmetic."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(11)


def weights(*shape):
    return (RNG.random(shape, dtype=np.float32) - 0.5) / max(1, int(np.prod(shape[1:]))) ** 0.5


class Builder:
    def __init__(self, inputs):
        self.inputs, self.nodes, self.constants = inputs, [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, inputs, **attributes):
        name = f"{op.lower()}{len(self.nodes)}"
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        self.nodes.append(helper.make_node(op, names, [name], name=name, **attributes))
        return name

    @staticmethod
    def tensor(array):
        return numpy_helper.from_array(array)

    def ints(self, *values):
        return self.constant(np.asarray(values, np.int64))

    def dim(self, value, axis):
        return self.add("Gather", [self.add("Shape", [value]), np.asarray([axis], np.int64)], axis=0)

    def model(self, outputs, opset=13):
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.inputs]
        results = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "g", infos, results, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        return model.SerializeToString()


def pyramid():
    """Five strided convolutions and a mean: a total stride of 32."""
    b = Builder([("x", ["N", 3, "H", "W"])])
    value, channels = "x", 3
    for wide in (4, 6, 8, 8, 8):
        value = b.add("Conv", [value, weights(wide, channels, 3, 3), weights(wide)], strides=[2, 2], pads=[1, 1, 1, 1])
        value, channels = b.add("Relu", [value]), wide
    mean = b.add("Flatten", [b.add("GlobalAveragePool", [value])], axis=1)
    return b.model([value, b.add("Softmax", [b.add("MatMul", [mean, weights(8, 5)])], axis=-1)])


def tokens():
    """Two heads of attention over any length, split and joined by shape arithmetic."""
    b = Builder([("x", ["N", "T", 8])])
    length = b.dim("x", 1)

    def heads(value, order):
        shape = b.add("Concat", [b.dim("x", 0), length, b.ints(2), b.ints(4)], axis=0)
        return b.add("Transpose", [b.add("Reshape", [value, shape])], perm=order)

    q = heads(b.add("MatMul", ["x", weights(8, 8)]), [0, 2, 1, 3])
    k = heads(b.add("MatMul", ["x", weights(8, 8)]), [0, 2, 3, 1])
    v = heads(b.add("MatMul", ["x", weights(8, 8)]), [0, 2, 1, 3])
    scores = b.add("Softmax", [b.add("Mul", [b.add("MatMul", [q, k]), np.float32(0.5)])], axis=-1)
    mixed = b.add("Transpose", [b.add("MatMul", [scores, v])], perm=[0, 2, 1, 3])
    joined = b.add("Reshape", [mixed, b.add("Concat", [b.dim("x", 0), length, b.ints(8)], axis=0)])
    total = b.add("Add", [joined, "x"])
    mean = b.add("ReduceMean", [total], axes=[-1], keepdims=1)
    return b.model([b.add("Sub", [total, mean])])


def frames():
    """A window of 400 samples every 160, as spectrograms have; logarithms of its energy."""
    b = Builder([("x", ["N", "S"])])
    signal = b.add("Unsqueeze", ["x", b.ints(1)])
    bands = b.add("Conv", [signal, weights(6, 1, 400)], strides=[160])
    energy = b.add("Mul", [bands, bands])
    return b.model([b.add("Transpose", [b.add("Log", [b.add("Add", [energy, np.float32(1e-3)])])], perm=[0, 2, 1])])


def net_of_two_scales():
    """A map at half the size, grown again and added: extents must be even."""
    b = Builder([("x", [1, 2, "H", "W"])])
    small = b.add("Conv", ["x", weights(3, 2, 3, 3)], strides=[2, 2], pads=[1, 1, 1, 1])
    large = b.add("Resize", [small, "", np.asarray([1, 1, 2, 2], np.float32)], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    same = b.add("Conv", ["x", weights(3, 2, 1, 1)])
    return b.model([b.add("Sigmoid", [b.add("Add", [large, same])])])


def masked_past():
    """Rows that are there and new ones, each times its element of a mask."""
    b = Builder([("m", ["S"]), ("p", ["P", 4]), ("x", ["T", 4])])
    columns = b.add("Unsqueeze", ["m", np.asarray([1])])
    return b.model([b.add("Mul", [b.add("Concat", ["p", "x"], axis=0), columns])])


# name: model, --input-shapes, --shape-buckets, shapes that are asked for
def baked_states():
    """Steps of a recurrence from states that an exporter wrote a batch of three into."""
    b = Builder([("x", ["N", "T", 4])])
    steps = b.add("Transpose", ["x"], perm=[1, 0, 2])
    shape = b.add("Concat", [b.ints(1), b.dim("x", 0), b.ints(5)], axis=0)
    state = b.add("Expand", [np.zeros((1, 3, 5), np.float32), shape])
    b.add("GRU", [steps, weights(1, 15, 4), weights(1, 15, 5), weights(1, 30), "", state], hidden_size=5)
    return b.model([b.nodes[-1].output[0]])


def rows_of_a_fixed_size():
    """Twelve numbers in all, of rows of four."""
    b = Builder([("x", ["N", 4]), ("y", ["T", 6])])
    return b.model([b.add("Concat", [b.add("Reshape", ["x", b.ints(2, 6)]), "y"], axis=0)])


MODELS = {
    "pyramid": (pyramid, "x:[N,3,H,W]", "N=1,2;H=32,64;W=64",
                [(1, 3, 32, 64), (2, 3, 64, 64), (1, 3, 33, 64), (1, 3, 31, 63), (3, 3, 97, 40), (1, 3, 1, 1), (2, 3, 5, 131)]),
    "pyramid_without_buckets": (pyramid, "x:[N,3,H,W]", None, [(1, 3, 224, 160), (1, 3, 33, 65), (2, 3, 17, 3)]),
    "tokens": (tokens, "x:[N,T,8]", "N=1;T=16,32",
               [(1, 16, 8), (1, 32, 8), (1, 1, 8), (1, 15, 8), (1, 17, 8), (4, 127, 8), (3, 2, 8)]),
    "frames": (frames, "x:[N,S]", "N=1;S=1600", [(1, 1600), (1, 1599), (2, 1601), (1, 400), (1, 559), (1, 560), (1, 17280)]),
    "two_scales": (net_of_two_scales, "x:[1,2,H,W]", "H=16..32:16;W=16", [(1, 2, 16, 16), (1, 2, 32, 16), (1, 2, 2, 6), (1, 2, 46, 82)]),
}
