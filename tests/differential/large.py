"""Extents that whole templates work on: register tiles with their tails, rows longer than caches' lines, many channels."""

import numpy as np
from elementwise import BINARY
from layers import REDUCTIONS
from registry import spec

LONG = [64, 65, 96, 100, 127, 128, 129, 200, 256, 257]


@spec("large.MatMul", 13)
def matmul(b):
    m, k, n = b.pick([1, 2, 5, 31, 64, 100, 197]), b.pick(LONG + [512, 1000]), b.pick(LONG + [512, 1000])
    lead = b.pick([[], [], [2], [3]])
    dtype = b.dtype(["f4", "f4", "f4", "f8"])
    value = b.node("MatMul", [b.x(lead + [m, k], dtype, constant=0), b.x([k, n], dtype, constant=0.8)])
    if b.chance(0.6):
        value = b.node("Add", [value, b.x([n], dtype, constant=1)])
    if b.chance(0.5):
        b.node(b.pick(["Relu", "Sigmoid", "Tanh"]), [value])
    b.rtol = 5e-4


@spec("large.Conv", 13)
def conv(b):
    c, k, kernel, size = b.pick([3, 16, 32, 48, 64, 65]), b.pick([8, 16, 24, 32, 64, 65]), b.pick([1, 1, 3, 3, 5, 7]), b.int(7, 40)
    group, stride, pad = b.pick([1, 1, 1, c]), b.pick([1, 1, 2]), b.pick([0, kernel // 2])
    out = c if group == c else k
    value = b.node("Conv", [b.x([b.pick([1, 1, 2]), c, size, b.int(7, 40)], constant=0), b.x([out, c // group, kernel, kernel], constant=1)] +
                   ([b.x([out], constant=1)] if b.chance(0.7) else []), strides=[stride] * 2, pads=[pad] * 4, group=group)
    if b.chance(0.6):
        value = b.node(b.pick(["Relu", "Sigmoid", "LeakyRelu"]), [value])
    if b.chance(0.4):
        kernel = b.pick([1, 3])
        b.node("Conv", [value, b.x([b.pick([8, 30, 64]), out, kernel, kernel], constant=1)], pads=[kernel // 2] * 4)
    b.rtol = 5e-4


@spec("large.Rows", 18)
def rows(b):
    """Softmax, normalization and reductions of long rows and of many."""
    shape = [b.pick([1, 3, 17, 64, 100]), b.pick(LONG + [768, 1000, 1031])]
    kind = b.pick(["Softmax", "LogSoftmax", "LayerNormalization", "reduce", "reduce", "ArgMax", "CumSum", "TopK"])
    dtype = "f2" if kind == "LayerNormalization" and b.chance(0.3) else "f4"
    x = b.x(shape, dtype, constant=0)
    b.rtol, b.atol = 5e-4, 1e-4
    if kind in ("Softmax", "LogSoftmax", "ArgMax"):
        b.node(kind, [x], axis=b.axis(2))
    elif kind == "LayerNormalization":
        b.node(kind, [x, b.x(shape[1:], dtype, constant=1), b.x(shape[1:], dtype, constant=1)])
    elif kind == "CumSum":
        b.node(kind, [x, b.ints(np.int64(b.axis(2)))])
    elif kind == "TopK":
        b.node(kind, [x, b.ints([b.int(1, min(shape))])], 2, axis=b.axis(2))
    else:
        b.node(b.pick(sorted(set(REDUCTIONS) - {"ReduceProd", "ReduceLogSum"})), [x, b.ints([b.axis(2)])], keepdims=b.int(0, 1))


@spec("large.Elementwise", 13)
def elementwise(b):
    shape = b.pick([[1000], [33, 257], [3, 64, 65], [2, 5, 31, 33], [1, 1, 1, 4099]])
    op = b.pick([name for name, (since, types) in BINARY.items() if since < 13 and "f4" in types and name != "Div"])
    b.elementwise()
    value = b.node(op, [b.x(shape, constant=0), b.x(b.broadcast(shape), constant=0.5)])
    if op in ("Add", "Sub", "Mul"):
        b.node(b.pick(["Exp", "Sigmoid", "Tanh", "Erf", "Abs", "Sqrt", "Floor"]), [value])
        b.atol = 1e-5


@spec("large.Moves", 13)
def moves(b):
    shape = b.pick([[64, 65], [100, 200], [3, 50, 70], [2, 17, 33, 16], [4, 64, 64], [2, 3, 5, 7, 11, 4]])
    x = b.x(shape, b.dtype(["f4", "f4", "i1", "f8", "f2", "i4"]), constant=0)
    rank = len(shape)
    b.exact()
    kind = b.pick(["Transpose", "Transpose", "Gather", "Concat", "Slice", "Pad", "Tile"])
    if kind == "Transpose":
        b.node(kind, [x], perm=[int(p) for p in b.rng.permutation(rank)])
    elif kind == "Gather":
        axis = b.int(0, rank - 1)
        b.node(kind, [x, b.given(b.rng.integers(-shape[axis], shape[axis], b.pick([[], [7], [3, 40]])))], axis=axis)
    elif kind == "Concat":
        b.node(kind, [x, x, x], axis=b.axis(rank))
    elif kind == "Slice":
        b.node(kind, [x, b.ints([-1]), b.ints([-2**40]), b.ints([b.axis(rank)]), b.ints([b.pick([-1, -2, -3])])])
    elif kind == "Pad":
        b.node(kind, [x, b.ints([b.int(0, 3) for _ in range(2 * rank)])], mode=b.pick(["constant", "edge", "reflect"]))
    else:
        b.node(kind, [x, b.ints([b.int(1, 2) for _ in shape])])
