"""Quantization, integer products, and networks of QDQ pairs."""

import numpy as np
from builder import Skip
from layers import conv_operands, matmul_shapes
from registry import spec

BYTES = ["u1", "i1"]


def factors(b, shape, kind, **options):
    """Of seven bits where they are signed: beyond them, the peer's sums of two products saturate on CPUs without VNNI."""
    if kind == "i1":
        options.update(low=-63, high=63, hard=0)
    return b.x(shape, kind, **options)


def scale(b, shape=()):
    return b.given(b.rng.uniform(0.01, 0.2, tuple(shape)).astype(np.float32), 0.9)


def zero(b, dtype, shape=(), constant=0.9):
    dtype = np.dtype(dtype)
    low, high = (-4, 4) if dtype.kind == "i" else (100, 140)
    return b.given(b.rng.integers(low, high, tuple(shape)).astype(dtype), constant)


def parameters(b, shape, dtype, axes=True):
    """Scale and zero point of a tensor, or of each of an axis; and the attribute that says so."""
    if axes and len(shape) > 1 and b.opset >= 13 and b.chance(0.4):
        axis = b.axis(len(shape))
        count = [shape[axis]]
        return [scale(b, count)] + ([zero(b, dtype, count)] if b.chance(0.7) else []), {"axis": axis}
    return [scale(b)] + ([zero(b, dtype)] if b.chance(0.7) else []), {}


@spec("QuantizeLinear", 10)
def quantize(b):
    shape = b.shape(1, 4)
    dtype = b.pick(BYTES + (["u2", "i2"] if b.opset >= 21 else []))
    b.units = 1
    parts, options = parameters(b, shape, dtype)
    if len(parts) == 1 and dtype != "u1":
        raise Skip
    b.node("QuantizeLinear", [b.x(shape, low=-12, high=12)] + parts, **options)


@spec("DequantizeLinear", 10)
def dequantize(b):
    shape = b.shape(1, 4)
    dtype = b.pick(BYTES + ["i4"] + (["u2", "i2"] if b.opset >= 21 else []))
    parts, options = parameters(b, shape, dtype)
    if dtype == "i4":
        parts = parts[:1]
    b.elementwise()
    b.node("DequantizeLinear", [b.x(shape, dtype, hard=0.2)] + parts, **options)


@spec("BlockedQuantization", 21)
def blocked(b):
    block = b.pick([2, 3, 16])
    rows, columns = b.int(1, 4) * block - (b.int(0, 1) if b.chance(0.2) else 0), b.int(1, 9)
    shape = [-(-rows // block), columns]
    dtype = b.pick(BYTES)
    parts = [scale(b, shape)] + ([zero(b, dtype, shape)] if b.chance(0.7) else [])
    b.units = 1
    if b.chance(0.5):
        b.node("DequantizeLinear", [b.x([rows, columns], dtype)] + parts, axis=0, block_size=block)
    elif len(parts) == 2 or dtype == "u1":
        b.node("QuantizeLinear", [b.x([rows, columns], low=-12, high=12)] + parts, axis=0, block_size=block)
    else:
        raise Skip


@spec("DynamicQuantizeLinear", 11)
def dynamic(b):
    b.units = 1
    b.node("DynamicQuantizeLinear", [b.x(b.shape(1, 3, empty=0))], 3)


@spec("MatMulInteger", 10)
def matmul_integer(b):
    left, right = matmul_shapes(b)
    if len(left) < 2 or len(right) < 2:
        raise Skip
    kinds = b.pick(BYTES), b.pick(BYTES)
    zeros = []
    if b.chance(0.7):
        zeros = [zero(b, kinds[0], constant=0.5), zero(b, kinds[1], right[-1:] if b.chance(0.3) and len(right) == 2 else (), constant=0.5)][:b.int(1, 2)]
    b.node("MatMulInteger", [b.x(left, kinds[0], hard=0.3), factors(b, right, kinds[1], constant=0.6, hard=0.3)] + zeros)


@spec("ConvInteger", 10)
def conv_integer(b):
    x, w, options, _ = conv_operands(b, b.pick([1, 2, 2, 2]))
    kinds = "u1", b.pick(BYTES)
    zeros = [zero(b, kinds[0]), zero(b, kinds[1])][:b.int(0, 2)]
    b.node("ConvInteger", [b.x(x, kinds[0], hard=0.3), factors(b, w, kinds[1], constant=0.7, hard=0.3)] + zeros, **options)


@spec("QLinearConv", 10)
def qlinear_conv(b):
    x, w, options, _ = conv_operands(b, b.pick([1, 2, 2, 2]))
    kind = b.pick(BYTES)
    weight = "i1" if kind == "i1" else b.pick(BYTES)
    per_channel = [w[0]] if b.chance(0.4) else []
    b.units = 1
    zero_w = b.const(np.zeros(per_channel, weight)) if per_channel else zero(b, weight)
    bias = [b.x([w[0]], "i4", low=-500, high=500, constant=1)] if b.chance(0.5) else []
    b.node("QLinearConv", [b.x(x, kind), scale(b), zero(b, kind), factors(b, w, weight, constant=0.9), scale(b, per_channel), zero_w, scale(b), zero(b, kind)] + bias, **options)


@spec("QLinearMatMul", 10)
def qlinear_matmul(b):
    left, right = matmul_shapes(b)
    if len(left) < 2 or len(right) < 2:
        raise Skip
    kind = b.pick(BYTES)
    b.units = 1
    b.node("QLinearMatMul", [b.x(left, kind), scale(b), zero(b, kind), factors(b, right, kind, constant=0.7), scale(b), zero(b, kind), scale(b), zero(b, kind)])


def pair(b, value, dtype, low_zero=True):
    parts = [scale(b), zero(b, dtype)]
    return b.node("DequantizeLinear", [b.node("QuantizeLinear", [value] + parts)] + parts)


def weight(b, shape, axis, per_channel):
    count = [shape[axis]] if per_channel else []
    parts = [b.const(b.rng.uniform(0.01, 0.1, count).astype(np.float32)), b.const(np.zeros(count, np.int8))]
    return b.node("DequantizeLinear", [factors(b, shape, "i1", constant=1)] + parts, axis=axis if per_channel else None)


@spec("QdqConv", 13)
def qdq_conv(b):
    x, w, options, _ = conv_operands(b, 2)
    kind = b.pick(BYTES)
    parts = [pair(b, b.x(x), kind), weight(b, w, 0, b.chance(0.6))]
    if b.chance(0.5):
        parts.append(b.x([w[0]], constant=1))
    value = b.node("Conv", parts, **options)
    if b.chance(0.6):
        value = b.node(b.pick(["Relu", "Relu", "Sigmoid", "HardSwish"]) if b.opset >= 14 else "Relu", [value])
    b.atol, b.rtol = 0.25, 0  # one step of the output's scale, where a sum lies between two
    if b.chance(0.8):
        pair(b, value, kind)


@spec("QdqMatMul", 13)
def qdq_matmul(b):
    left, right = matmul_shapes(b)
    if len(left) < 2 or len(right) != 2:
        raise Skip
    kind = b.pick(BYTES)
    value = b.node("MatMul", [pair(b, b.x(left), kind), weight(b, right, 1, b.chance(0.5))])
    if b.chance(0.5):
        value = b.node("Add", [value, b.x(right[-1:], constant=1)])
    b.atol, b.rtol = 0.25, 0
    if b.chance(0.7):
        pair(b, value, kind)


@spec("QdqMix", 13)
def qdq_mix(b):
    """Operators between quantized values: some are done on the integers."""
    shape = [b.int(1, 2), b.pick([3, 8, 16]), b.int(2, 9), b.int(2, 9)]
    kind = b.pick(BYTES)
    parts = [scale(b), zero(b, kind)]
    value = b.node("DequantizeLinear", [b.x(shape, kind)] + parts)
    op = b.pick(["MaxPool", "Transpose", "Reshape", "Concat", "Add", "Mul", "AveragePool", "GlobalAveragePool", "Relu", "Resize", "Pad", "Softmax", "Clip"])
    if op == "MaxPool" or op == "AveragePool":
        value = b.node(op, [value], kernel_shape=[2, 2])
    elif op == "Reshape":
        value = b.node(op, [value, b.ints([0, -1])])
    elif op == "Concat":
        value = b.node(op, [value, b.node("DequantizeLinear", [b.x(shape, kind)] + parts)], axis=1)
    elif op in ("Add", "Mul"):
        value = b.node(op, [value, b.node("DequantizeLinear", [b.x(b.broadcast(shape), kind), scale(b), zero(b, kind)])])
    elif op == "Resize":
        value = b.node(op, [value, "", b.const(np.array([1, 1, 2, 2], np.float32))], mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    elif op == "Pad":
        value = b.node(op, [value, b.ints([0, 0, 1, 1, 0, 0, 1, 1])])
    elif op == "Clip":
        value = b.node(op, [value, b.const(np.float32(0)), b.const(np.float32(6))])
    else:
        value = b.node(op, [value])
    out = parts if b.chance(0.4) else [scale(b), zero(b, kind)]
    b.units = 1
    value = b.node("QuantizeLinear", [value] + out)
    if b.chance(0.5):
        b.node("DequantizeLinear", [value] + out)
        b.atol, b.rtol = 0.25, 0
