"""Networks with free dims, small versions of what people serve."""

import re

import numpy as np
from free_dims_models import Builder, weights
from onnx import TensorProto, helper


def conv(b, value, inputs, outputs, kernel=3, stride=1, group=1, relu=True, **extra):
    pad = kernel // 2
    options = {"strides": [stride, stride], "group": group, **extra}
    if "auto_pad" not in extra:
        options["pads"] = [pad] * 4
    value = b.add("Conv", [value, weights(outputs, inputs // group, kernel, kernel), weights(outputs)], **options)
    return b.add("Relu", [value]) if relu else value


def head(b, value, channels):
    mean = b.add("Flatten", [b.add("GlobalAveragePool", [value])], axis=1)
    return b.add("Gemm", [mean, weights(5, channels), weights(5)], transB=1)


def residual():
    """ResNet's stem, with its padded pooling, and a stage that halves the map."""
    b = Builder([("x", ["N", 3, "H", "W"])])
    value = conv(b, "x", 3, 8, kernel=7, stride=2)
    value = b.add("MaxPool", [value], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stride, inputs, outputs in ((1, 8, 8), (2, 8, 16), (2, 16, 16)):
        same = value if stride == 1 else conv(b, value, inputs, outputs, kernel=1, stride=stride, relu=False)
        inner = conv(b, conv(b, value, inputs, outputs, stride=stride), outputs, outputs, relu=False)
        value = b.add("Relu", [b.add("Add", [inner, same])])
    return b.model([head(b, value, 16)])


def inverted_residual():
    """MobileNet's blocks: expand, depthwise, project, with Clip."""
    b = Builder([("x", ["N", 3, "H", "W"])])

    def clip(value):
        return b.add("Clip", [value, np.float32(0), np.float32(6)])

    value = clip(conv(b, "x", 3, 8, stride=2, relu=False))
    for stride in (1, 2, 1):
        wide = clip(conv(b, value, 8, 24, kernel=1, relu=False))
        deep = clip(conv(b, wide, 24, 24, stride=stride, group=24, relu=False))
        flat = conv(b, deep, 24, 8, kernel=1, relu=False)
        value = b.add("Add", [value, flat]) if stride == 1 else flat
    return b.model([value, head(b, value, 8)])


def same_padding():
    """TensorFlow's SAME pads, which depend on the extents, and pooling that rounds up."""
    b = Builder([("x", ["N", 2, "H", "W"])])
    value = conv(b, "x", 2, 4, stride=2, auto_pad="SAME_UPPER")
    value = conv(b, value, 4, 4, stride=2, group=4, auto_pad="SAME_UPPER")
    value = b.add("MaxPool", [value], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    return b.model([conv(b, value, 4, 3)])


def steps_of_three(**options):
    """Strides of three and two behind each other: the extents are quotients of quotients, and so are pads."""
    def make():
        b = Builder([("x", [1, 2, "H", "W"])])
        value, two = "x", np.linspace(-1, 1, 36).reshape(2, 2, 3, 3).astype(np.float32)
        if "ceil_mode" not in options:
            value = b.add("Conv", [value, two], kernel_shape=[3, 3], strides=[3, 3], **options)
        value = b.add("MaxPool", [value], kernel_shape=[3, 3], strides=[3, 3], **options)
        return b.model([b.add("AveragePool", [value], kernel_shape=[2, 2], strides=[2, 2], **options)])
    return make


def same_means():
    """Means of windows that the padding cuts, which count with it or without."""
    b = Builder([("x", ["N", 2, "H", "W"])])
    value = b.add("AveragePool", ["x"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    value = b.add("AveragePool", [value], kernel_shape=[2, 3], strides=[1, 2], auto_pad="SAME_LOWER", count_include_pad=1)
    return b.model([b.add("AveragePool", [value], kernel_shape=[4, 2], strides=[2, 1], auto_pad="SAME_LOWER")])


def grown_by_cubes():
    """Maps grown by cubic interpolation, by a ratio and to a size."""
    b = Builder([("x", ["N", 2, "H", "W"])])
    by_ratio = np.asarray([1, 1, 1.5, 2.25], np.float32)
    values = [b.add("Resize", ["x", "", by_ratio], mode="cubic", coordinate_transformation_mode=mode, **options)
              for mode, options in (("half_pixel", {}), ("align_corners", {"exclude_outside": 1}), ("asymmetric", {"cubic_coeff_a": -0.5}))]
    size = b.add("Concat", [b.dim("x", 0), b.ints(2), b.dim("x", 3), b.dim("x", 2)], axis=0)
    values.append(b.add("Resize", ["x", "", "", size], mode="cubic", coordinate_transformation_mode="pytorch_half_pixel"))
    return b.model(values)


def cut_and_grown():
    """The middle of maps, with what lies outside filled."""
    b = Builder([("x", ["N", 2, "H", "W"])])
    roi = np.asarray([0, 0, 0.25, -0.2, 1, 1, 0.75, 1.1], np.float32)
    return b.model([b.add("Resize", ["x", roi, np.asarray([1, 1, 2, 3], np.float32)], mode="linear",
                          coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.5)])


def shrunk_smoothly():
    """Maps shrunk by a ratio, with filters as wide as the result's elements."""
    b = Builder([("x", ["N", 2, "H", "W"])])
    return b.model([b.add("Resize", ["x", "", np.asarray([0.5, 0.6], np.float32)], mode=mode, antialias=1, axes=[2, 3])
                    for mode in ("linear", "cubic")], opset=18)


def shrunk_to_size():
    """Maps of any size shrunk smoothly to one, and each to half of itself."""
    b = Builder([("x", ["N", 2, "H", "W"])])
    half = b.add("Concat", [b.add("Div", [b.dim("x", 2), b.ints(2)]), b.add("Div", [b.dim("x", 3), b.ints(2)])], axis=0)
    return b.model([b.add("Resize", ["x", "", "", size], mode=mode, antialias=1, axes=[2, 3], **options) for size in (b.ints(9, 12), half)
                    for mode, options in (("linear", {}), ("cubic", {"exclude_outside": 1}))], opset=18)


def kept_in_shape():
    """Pictures of any size scaled to fit a frame, with what is left of it filled, or to cover one, with what is over cut."""
    b = Builder([("x", ["N", 3, "H", "W"])])
    policies = {"not_larger": {"antialias": 1}, "not_smaller": {"coordinate_transformation_mode": "asymmetric"}}
    values = [b.add("Resize", ["x", "", "", b.ints(12, 16)], mode="linear", axes=[2, 3], keep_aspect_ratio_policy=policy, **options)
              for policy, options in policies.items()]
    framed = b.add("CenterCropPad", [values[0], b.ints(12, 16)], axes=[-2, -1])
    return b.model([conv(b, framed, 3, 4), values[1], b.add("CenterCropPad", [values[1], b.ints(12, 16)], axes=[2, 3])], opset=19)


def best_of_each_row():
    """The three largest elements of rows of any length, and sums by their places."""
    b = Builder([("x", ["N", "T"])])
    b.nodes.append(helper.make_node("TopK", ["x", b.ints(3)], ["best", "at"], axis=1))
    return b.model(["best", b.add("ScatterElements", ["x", "at", "best"], axis=1)])


def round_up_pooling():
    b = Builder([("x", ["N", 2, "H", "W"])])
    value = b.add("MaxPool", ["x"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    value = b.add("AveragePool", [value], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    value = b.add("AveragePool", [value], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, count_include_pad=1)
    return b.model([conv(b, value, 2, 3)])


def detector():
    """YOLO's parts: stacked poolings, a grown map beside the one it joins, boxes of two scales in a row."""
    b = Builder([("x", ["N", 3, "H", "W"])])
    large = conv(b, conv(b, "x", 3, 6, stride=2), 6, 6, stride=2)
    small = conv(b, large, 6, 6, stride=2)
    pools = [small]
    for _ in range(3):
        pools.append(b.add("MaxPool", [pools[-1]], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    small = conv(b, b.add("Concat", pools, axis=1), 24, 6, kernel=1)
    grown = b.add("Resize", [small, "", np.asarray([1, 1, 2, 2], np.float32)], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    large = conv(b, b.add("Concat", [grown, large], axis=1), 12, 6)
    rows = []
    for value in (large, small):
        value = conv(b, value, 6, 7, kernel=1, relu=False)
        shape = b.add("Concat", [b.dim("x", 0), b.ints(7), b.ints(-1)], axis=0)
        rows.append(b.add("Reshape", [value, shape]))
    every = b.add("Transpose", [b.add("Concat", rows, axis=2)], perm=[0, 2, 1])
    box, score = b.add("Slice", [every, b.ints(0), b.ints(4), b.ints(2)]), b.add("Slice", [every, b.ints(4), b.ints(7), b.ints(2)])
    return b.model([b.add("Concat", [box, b.add("Sigmoid", [score])], axis=2)])


def pyramid_of_sizes():
    """A segmentation head: maps grown to the size of the input by linear interpolation."""
    b = Builder([("x", ["N", 3, "H", "W"])])
    value = conv(b, conv(b, "x", 3, 6, stride=2), 6, 6, stride=2)
    value = conv(b, value, 6, 2, kernel=1, relu=False)
    size = b.add("Concat", [b.dim("x", 0), b.ints(2), b.dim("x", 2), b.dim("x", 3)], axis=0)
    return b.model([b.add("Resize", [value, "", "", size], mode="linear", coordinate_transformation_mode="half_pixel")])


def positions():
    """An encoder with a table of positions, a causal mask and a mask of what is padded."""
    b = Builder([("x", ["N", "T", 8]), ("mask", ["N", "T"])])
    count = b.add("Gather", [b.add("Shape", ["x"]), np.asarray(1, np.int64)], axis=0)
    index = b.add("Range", [np.asarray(0, np.int64), count, np.asarray(1, np.int64)])
    value = b.add("Add", ["x", b.add("Gather", [weights(600, 8), index], axis=0)])
    rows, columns = b.add("Unsqueeze", [index, b.ints(1)]), b.add("Unsqueeze", [index, b.ints(0)])
    causal = b.add("Where", [b.add("Less", [rows, columns]), np.float32(-1e4), np.float32(0)])
    seen = b.add("Mul", [b.add("Sub", [np.float32(1), b.add("Unsqueeze", ["mask", b.ints(1)])]), np.float32(-1e4)])
    bias = b.add("Add", [causal, seen])
    for _ in range(2):
        q, k, v = (b.add("MatMul", [value, weights(8, 8)]) for _ in range(3))
        scores = b.add("MatMul", [q, b.add("Transpose", [k], perm=[0, 2, 1])])
        mixed = b.add("MatMul", [b.add("Softmax", [b.add("Add", [scores, bias])], axis=-1), v])
        value = b.add("Add", [value, mixed])
    return b.model([value])


def rotary():
    """Angles from positions and frequencies, and a fill of the input's shape."""
    b = Builder([("x", ["N", "T", 8])])
    count = b.add("Gather", [b.add("Shape", ["x"]), np.asarray(1, np.int64)], axis=0)
    index = b.add("Cast", [b.add("Range", [np.asarray(0, np.int64), count, np.asarray(1, np.int64)])], to=TensorProto.FLOAT)
    angles = b.add("Mul", [b.add("Unsqueeze", [index, b.ints(1)]), np.asarray([[1, 0.1, 0.01, 0.001]], np.float32)])
    both = b.add("Concat", [angles, angles], axis=1)
    half, rest = b.add("Slice", ["x", b.ints(0), b.ints(4), b.ints(2)]), b.add("Slice", ["x", b.ints(4), b.ints(8), b.ints(2)])
    turned = b.add("Concat", [b.add("Neg", [rest]), half], axis=2)
    value = b.add("Add", [b.add("Mul", ["x", b.add("Cos", [both])]), b.add("Mul", [turned, b.add("Sin", [both])])])
    ones = b.add("ConstantOfShape", [b.add("Shape", ["x"])], value=b.tensor(np.asarray([0.5], np.float32)))
    return b.model([b.add("Add", [value, ones])])


def text_lines():
    """A recognizer's end: columns of a map of fixed height as a sequence, with N and W free."""
    b = Builder([("x", ["N", 3, 16, "W"])])
    value = conv(b, conv(b, "x", 3, 8, stride=2), 8, 8, stride=2)
    value = b.add("AveragePool", [value], kernel_shape=[4, 2], strides=[4, 2])
    shape = b.add("Concat", [b.dim(value, 0), b.ints(8), b.dim(value, 3)], axis=0)
    rows = b.add("Transpose", [b.add("Reshape", [value, shape])], perm=[0, 2, 1])
    q = b.add("Reshape", [b.add("MatMul", [rows, weights(8, 24)]), b.ints(0, -1, 3, 2, 4)])
    q = b.add("Transpose", [q], perm=[2, 0, 3, 1, 4])
    q, k, v = (b.add("Squeeze", [b.add("Slice", [q, b.ints(i), b.ints(i + 1), b.ints(0)]), b.ints(0)]) for i in range(3))
    scores = b.add("Softmax", [b.add("MatMul", [q, b.add("Transpose", [k], perm=[0, 1, 3, 2])])], axis=-1)
    mixed = b.add("Transpose", [b.add("MatMul", [scores, v])], perm=[0, 2, 1, 3])
    rows = b.add("Add", [rows, b.add("Reshape", [mixed, b.ints(0, -1, 8)])])
    return b.model([b.add("Softmax", [b.add("MatMul", [rows, weights(8, 11)])], axis=-1)])


def read_lines():
    """A CRNN: the columns of a map of fixed height go through two recurrent layers in both directions, as PyTorch exports
    them: with states of zeros as large as the batch."""
    b = Builder([("x", ["N", 3, 16, "W"])])
    value = conv(b, conv(b, "x", 3, 8, stride=2), 8, 12, stride=2)
    value = b.add("AveragePool", [value], kernel_shape=[4, 1], strides=[4, 1])
    rows, batch = b.add("Transpose", [b.add("Squeeze", [value, b.ints(2)])], perm=[2, 0, 1]), b.dim("x", 0)
    state = b.add("ConstantOfShape", [b.add("Concat", [b.ints(2), batch, b.ints(10)], axis=0)], value=b.tensor(np.zeros(1, np.float32)))
    for kind, gates, size, states in (("LSTM", 4, 12, [state, state]), ("GRU", 3, 20, [state])):
        value = b.add(kind, [rows, weights(2, gates * 10, size), weights(2, gates * 10, 10), weights(2, 2 * gates * 10), ""] + states,
                      hidden_size=10, direction="bidirectional", **({"linear_before_reset": 1} if kind == "GRU" else {}))
        rows = b.add("Reshape", [b.add("Transpose", [value], perm=[0, 2, 1, 3]), b.ints(0, 0, -1)])
    return b.model([b.add("LogSoftmax", [b.add("MatMul", [rows, weights(20, 11)])], axis=2)])


def inputs_of(shapes, dims):
    """Random inputs for a --input-shapes text with its names bound to `dims`, in the order in which they stand there."""
    given = {name: body.split(",") for name, body in re.findall(r"(\w+):\[([^\]]*)\]", shapes)}
    free = list(dict.fromkeys(dim for body in given.values() for dim in body if not dim.isdigit()))
    bound = dict(zip(free, dims, strict=True))
    rng = np.random.default_rng(1)
    return {name: rng.uniform(-1, 1, [bound.get(dim) or int(dim) for dim in body]).astype(np.float32)
            for name, body in given.items()}


# name: model, --input-shapes, values of the free dims that are asked for
def grown_by_filters():
    """Transposed convolutions of few channels, whose phases are pixels beside each other."""
    b = Builder([("x", ["N", 8, "H", "W"])])
    value = b.add("ConvTranspose", ["x", weights(8, 4, 4, 4)], strides=[2, 2], pads=[1, 1, 1, 1])
    value = b.add("ConvTranspose", [value, weights(4, 4, 3, 3)], strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    return b.model([b.add("ConvTranspose", [value, weights(4, 3, 3, 3)], strides=[2, 2], auto_pad="SAME_LOWER")])


def normed_groups():
    """Maps that are normalized by channels and by groups of them, also as exporters write the latter."""
    b = Builder([("x", ["N", 3, "H", "W"])])
    value = conv(b, "x", 3, 20, relu=False)
    value = b.add("Relu", [b.add("GroupNormalization", [value, weights(20), weights(20)], num_groups=4)])
    value = conv(b, value, 20, 32, relu=False)
    rows = b.add("Reshape", [value, b.ints(0, 2, -1)])
    rows = b.add("InstanceNormalization", [rows, np.ones(2, np.float32), np.zeros(2, np.float32)])
    value = b.add("Relu", [b.add("Mul", [b.add("Reshape", [rows, b.add("Shape", [value])]), weights(32, 1, 1)])])
    value = conv(b, value, 32, 16, relu=False)
    return b.model([conv(b, b.add("InstanceNormalization", [value, weights(16), weights(16)]), 16, 4)], opset=21)


def squares():
    """Both sides are one free extent: pads of "same" and blocks of space."""
    b = Builder([("x", ["N", 4, "H", "H"])])
    most = b.add("MaxPool", ["x"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    mean = b.add("AveragePool", ["x"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")
    return b.model([most, conv(b, mean, 4, 4, stride=2, auto_pad="SAME_UPPER"), b.add("SpaceToDepth", ["x"], blocksize=2)])


def diagonals():
    """Axes that an equation gives one letter are as long as each other, whatever they are called."""
    b = Builder([("x", ["N", "T", "U"]), ("y", ["T", "K"])])
    rows = b.add("Einsum", ["x"], equation="...ii->...i")
    product = b.add("Einsum", ["x", "y"], equation="bii,ij->bj")
    return b.model([rows, b.add("Einsum", ["x"], equation="bii->b"), product, b.add("Einsum", [rows, rows, "x"], equation="bi,ci,bij")])


NETS = {
    "grown_by_filters": (grown_by_filters, "x:[N,8,H,W]", [(1, 1, 1), (2, 7, 5), (1, 17, 16)]),
    "normed_groups": (normed_groups, "x:[N,3,H,W]", [(1, 8, 16), (2, 33, 21), (1, 1, 7)]),
    "diagonals": (diagonals, "x:[N,T,U] y:[T,K]", [(2, 7, 7, 3), (1, 1, 1, 1), (5, 64, 64, 32), (3, 33, 33, 2)]),
    "squares": (squares, "x:[N,4,H,H]", [(1, 2), (2, 34), (1, 64)]),
    "residual": (residual, "x:[N,3,H,W]", [(1, 64, 64), (2, 33, 71), (1, 1, 1), (3, 224, 97)]),
    "inverted_residual": (inverted_residual, "x:[N,3,H,W]", [(1, 32, 32), (2, 33, 71), (1, 1, 1), (3, 130, 97)]),
    "same_padding": (same_padding, "x:[N,2,H,W]", [(1, 32, 32), (2, 33, 71), (1, 30, 29), (1, 1, 1), (3, 131, 97)]),
    "same_steps": (steps_of_three(auto_pad="SAME_UPPER"), "x:[1,2,H,W]", [(27, 27), (28, 31), (61, 97), (100, 35), (5, 2)]),
    "same_lower_steps": (steps_of_three(auto_pad="SAME_LOWER"), "x:[1,2,H,W]", [(27, 27), (28, 31), (61, 97), (100, 35)]),
    "round_up_steps": (steps_of_three(ceil_mode=1), "x:[1,2,H,W]", [(27, 27), (28, 31), (61, 97), (100, 35)]),
    "same_means": (same_means, "x:[N,2,H,W]", [(1, 32, 32), (2, 33, 71), (1, 30, 29), (3, 131, 97)]),
    "grown_by_cubes": (grown_by_cubes, "x:[N,2,H,W]", [(1, 8, 16), (2, 12, 20), (1, 34, 64)]),
    "cut_and_grown": (cut_and_grown, "x:[N,2,H,W]", [(1, 8, 16), (2, 33, 21), (1, 7, 64)]),
    "shrunk_smoothly": (shrunk_smoothly, "x:[N,2,H,W]", [(1, 20, 30), (2, 12, 50), (1, 64, 25)]),
    "shrunk_to_size": (shrunk_to_size, "x:[N,2,H,W]", [(1, 20, 30), (2, 12, 50), (1, 64, 25), (1, 9, 7)]),
    "kept_in_shape": (kept_in_shape, "x:[N,3,H,W]", [(1, 24, 24), (2, 31, 20), (1, 7, 64), (3, 50, 13), (1, 12, 16)]),
    "best_of_each_row": (best_of_each_row, "x:[N,T]", [(1, 3), (2, 50), (3, 999)]),
    "round_up_pooling": (round_up_pooling, "x:[N,2,H,W]", [(1, 32, 32), (2, 33, 71), (1, 30, 29), (3, 131, 97)]),
    "detector": (detector, "x:[N,3,H,W]", [(1, 32, 32), (2, 40, 72), (1, 8, 8), (3, 136, 96), (1, 39, 37)]),
    "pyramid_of_sizes": (pyramid_of_sizes, "x:[N,3,H,W]", [(1, 32, 32), (2, 33, 71), (1, 130, 97)]),
    "positions": (positions, "x:[N,T,8] mask:[N,T]", [(1, 1), (1, 2), (3, 17), (2, 97), (1, 509)]),
    "rotary": (rotary, "x:[N,T,8]", [(1, 1), (1, 2), (3, 17), (2, 97)]),
    "read_lines": (read_lines, "x:[N,3,16,W]", [(1, 32), (2, 33), (3, 127), (1, 320), (1, 1)]),
    "text_lines": (text_lines, "x:[N,3,16,W]", [(1, 32), (2, 33), (3, 127), (1, 320)]),
}
# For which extents there are kernels, where a net takes others too: below them its results have no elements.
KERNELS = {"round_up_pooling": "H >= 2, W >= 2", "text_lines": "(W + 3)//4 >= 2, (W + 3)//8 != 0"}
