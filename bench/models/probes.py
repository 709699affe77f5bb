"""Small models, one for each opset from 7 to 22, whose nodes are written the way that opset wants them.

What changed over these opsets: Clip bounds (11), Unsqueeze, Squeeze, Split and ReduceSum axes (13), the other
reductions' axes (18), Softmax's default axis (13), Slice inputs (10), Pad inputs (11), BatchNormalization's training form
(14), LayerNormalization (17), Gelu and the like (20), wider Cast, Reshape and Constant types (21, 22).
"""

import numpy as np
from net import IR_OF_OPSET, Net
from onnx import TensorProto


def reduce_mean(net, x, axes, keepdims):
    if net.opset < 18:
        return net.node("ReduceMean", [x], axes=axes, keepdims=keepdims)
    return net.node("ReduceMean", [x, net.int64s(axes)], keepdims=keepdims)


def squeeze(net, x, axes):
    return net.node("Squeeze", [x], axes=axes) if net.opset < 13 else net.node("Squeeze", [x, net.int64s(axes)])


def split(net, x, sizes, axis):
    if net.opset < 13:
        return net.node("Split", [x], outputs=len(sizes), axis=axis, split=sizes)
    if net.opset >= 18 and len(set(sizes)) == 1:
        return net.node("Split", [x], outputs=len(sizes), axis=axis, num_outputs=len(sizes))
    return net.node("Split", [x, net.int64s(sizes)], outputs=len(sizes), axis=axis)


def slice_rows(net, x, start, end, axis):
    if net.opset < 10:
        return net.node("Slice", [x], starts=[start], ends=[end], axes=[axis])
    return net.node("Slice", [x, net.int64s([start]), net.int64s([end]), net.int64s([axis])])


def pad(net, x, pads):
    if net.opset < 11:
        return net.node("Pad", [x], mode="constant", pads=pads, value=0.5)
    return net.node("Pad", [x, net.int64s(pads), net.weight(net.fresh("pad_value"), np.float32(0.5))], mode="constant")


def reduce_sum(net, x, axes, keepdims):
    if net.opset < 13:
        return net.node("ReduceSum", [x], axes=axes, keepdims=keepdims)
    return net.node("ReduceSum", [x, net.int64s(axes)], keepdims=keepdims)


def normalize(net, x, size):
    """Over the last axis: one node since opset 17, the pieces before."""
    scale = net.weight(net.fresh("scale"), net.rng.uniform(0.5, 1.5, size).astype(np.float32))
    shift = net.weight(net.fresh("shift"), net.rng.standard_normal(size, dtype=np.float32))
    if net.opset >= 17:
        return net.node("LayerNormalization", [x, scale, shift], axis=-1, epsilon=1e-5)
    centered = net.node("Sub", [x, reduce_mean(net, x, [-1 if net.opset >= 11 else 2], 1)])
    square = net.node("Mul", [centered, centered])
    variance = net.node("Add", [reduce_mean(net, square, [-1 if net.opset >= 11 else 2], 1),
                                net.constant(np.float32(1e-5))])
    scaled = net.node("Div", [centered, net.node("Sqrt", [variance])])
    return net.node("Add", [net.node("Mul", [scaled, scale]), shift])


def gelu(net, x):
    """One node since opset 20; through Erf since 9; before, through Tanh."""
    if net.opset >= 20:
        return net.node("Gelu", [x])
    half = net.node("Mul", [x, net.constant(np.float32(0.5))])
    if net.opset >= 9:
        gate = net.node("Erf", [net.node("Mul", [x, net.constant(np.float32(0.70710678))])])
    else:
        gate = net.node("Tanh", [net.node("Mul", [x, net.constant(np.float32(0.79788456))])])
    return net.node("Mul", [half, net.node("Add", [gate, net.constant(np.float32(1))])])


def probe(opset):
    """Picture [1, 3, 17, 19] through a small convolution net, then tokens through normalization, GELU and a mask."""
    net = Net(f"probe_opset{opset}", opset, seed=1000 + opset)
    x = net.input("image", [1, 3, 17, 19])
    x = net.relu6(net.batch_norm(net.conv(x, 13, 3, 2), gain=2.0))
    x = net.relu(net.batch_norm(net.conv(x, 13, 3, group=13)))
    x = net.max_pool(x, 3, 2, [1, 1, 1, 1])  # [1, 13, 5, 5]
    y = pad(net, x, [0, 0, 1, 0, 0, 0, 0, 2])  # [1, 13, 6, 7]
    y = net.node("AveragePool", [y], kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 0, 0])  # [1, 13, 5, 6]
    y = net.node("Reshape", [y, net.int64s([0, 13, -1])])  # [1, 13, 30]
    y = gelu(net, normalize(net, y, 30))
    left, right = split(net, y, [15, 15], 2)
    y = net.node("Concat", [net.node("Sub", [left, right]), slice_rows(net, y, 3, 18, 2)], axis=2)  # [1, 13, 30]
    y = net.node("MatMul", [y, net.node("Transpose", [y], perm=[0, 2, 1])])  # [1, 13, 13]
    # Softmax meant "all axes from 1" by default before opset 13; the last axis means the same in both.
    y = net.node("Softmax", [y], axis=2)
    if opset >= 9:
        small = net.node("Less", [y, net.constant(np.float32(0.05))])
        y = net.node("Where", [small, net.constant(np.float32(-1)), y])
    y = net.node("Concat", [y, net.unsqueeze(reduce_sum(net, y, [2], 0), [2])], axis=2)  # [1, 13, 14]
    y = net.node("Cast", [net.node("Cast", [y], to=TensorProto.DOUBLE)], to=TensorProto.FLOAT)
    pooled = squeeze(net, net.global_average_pool(x), [2, 3])  # [1, 13]
    logits = net.node("Gemm", [pooled, net.weight("fc.weight", net.rng.standard_normal((10, 13), dtype=np.float32)),
                               net.weight("fc.bias", np.zeros(10, np.float32))], transB=1)
    net.output(y, "tokens", [1, 13, 14])
    net.output(logits, "logits", [1, 10])
    return net


PROBES = {f"probe_opset{opset}": (lambda opset=opset: probe(opset)) for opset in IR_OF_OPSET}
