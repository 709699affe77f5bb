"""Sequences and optional values inside of a graph, packed weights, caches, and rarer layers."""

import numpy as np
from builder import Skip
from contrib import MICROSOFT, ML
from layers import CHANNELS, conv_operands, matmul_shapes
from onnx import TensorProto
from quantized import BYTES, scale, zero
from registry import spec


@spec("Sequences", 13)
def sequences(b):
    shape = b.shape(1, 3, empty=0)
    axis = b.int(0, len(shape) - 1)
    x = b.x(shape, b.dtype(["f4", "i8"]), constant=0)
    kind = b.pick(["one by one", "sizes", "equal", "built"])
    options = {"axis": axis - len(shape) if b.chance(0.3) else axis}
    if kind == "one by one":
        values = b.node("SplitToSequence", [x], **options, **b.some(keepdims=b.int(0, 1)))
    elif kind == "sizes":
        low = b.int(0, shape[axis])
        values = b.node("SplitToSequence", [x, b.ints([low, shape[axis] - low])], **options)
    elif kind == "equal":
        values = b.node("SplitToSequence", [x, b.ints(np.int64(b.int(1, 3)))], **options)
    else:
        values = b.node("SequenceConstruct", [x, x, b.node("Neg", [x])])
    step = b.pick(["at", "length", "insert", "erase", "concat", "stack"])
    if step == "at":
        b.node("SequenceAt", [values, b.ints(np.int64(b.pick([0, -1])))])
    elif step == "length":
        b.node("SequenceLength", [values])
    elif step == "insert":
        longer = b.node("SequenceInsert", [values, x] + ([b.ints(np.int64(0))] if b.chance(0.5) else []))
        b.node("SequenceAt", [longer, b.ints(np.int64(b.pick([0, -1])))])
    elif step == "erase":
        b.node("SequenceLength", [b.node("SequenceErase", [values] + ([b.ints(np.int64(0))] if b.chance(0.5) else []))])
    elif step == "concat":
        if kind == "one by one" and "keepdims" in [a.name for a in b.nodes[-1].attribute]:
            raise Skip
        b.node("ConcatFromSequence", [values], axis=axis)
    else:
        if kind != "built":
            raise Skip
        b.node("ConcatFromSequence", [values], axis=b.int(-len(shape) - 1, len(shape)), new_axis=1)


@spec("TensorScatter", 24)
def tensor_scatter(b):
    n, h, longest, d = b.int(1, 3), b.int(1, 3), b.int(4, 9), b.int(1, 5)
    steps = b.int(1, 3)
    at = [b.given(b.rng.integers(0, longest - steps + 1, n))] if b.chance(0.7) else []
    b.exact()
    b.node("TensorScatter", [b.x([n, h, longest, d]), b.x([n, h, steps, d])] + at, **b.some(mode=b.pick(["linear", "circular"])))


@spec("PackedWeights", 21)
def packed_weights(b):
    """Weights of 4 bits, per tensor, per column and by blocks."""
    m, k, n = b.int(1, 9), b.pick([16, 32, 48]), b.pick([8, 16, 17, 32])
    signed = b.chance(0.5)
    codes = b.rng.integers(0, 256, -(-k * n // 2)).astype(np.uint8)
    blocks = b.pick([0, 0, 16])
    per_column = b.chance(0.5)
    shape = [k // blocks, n] if blocks else [n] if per_column else []
    tensor = TensorProto(data_type=TensorProto.UINT8, dims=[k, n], raw_data=codes.tobytes(), name="w4")
    tensor.data_type = 22 if signed else 21
    value = b.node("Constant", [], value=tensor)
    options = {"axis": 0, "block_size": blocks} if blocks else {"axis": 1} if per_column else {}
    weights = b.node("DequantizeLinear", [value, b.const(b.rng.uniform(0.01, 0.1, shape).astype(np.float32))], **options)
    b.node("MatMul", [b.x([m, k], constant=0), weights])


@spec("ConvTransposeShapes", 11)
def conv_transpose_shapes(b):
    x, _, options, kernel = conv_operands(b, 2, group=1)
    options = {"strides": [b.int(1, 3), b.int(1, 3)]}
    full = [(e - 1) * s + k for e, s, k in zip(x[2:], options["strides"], kernel)]
    wanted = [b.int(max(f - 2, 1), f + min(s - 1, 1)) for f, s in zip(full, options["strides"])]
    b.node("ConvTranspose", [b.x(x), b.x([x[1], b.int(1, 9)] + kernel, constant=0.8)], output_shape=wanted,
           **options, **b.some(auto_pad=b.pick(["SAME_UPPER", "SAME_LOWER", "NOTSET"])))


@spec("MaxRoiPool", 7, 21)
def max_roi_pool(b):
    c, h, w, rois = b.int(1, 3), b.int(4, 12), b.int(4, 12), b.int(1, 4)
    start = b.rng.integers(0, 4, (rois, 2))
    boxes = np.concatenate([np.zeros((rois, 1)), start, start + b.rng.integers(0, 8, (rois, 2))], 1).astype(np.float32)
    b.node("MaxRoiPool", [b.x([1, c, h, w]), b.given(boxes)], pooled_shape=[b.int(1, 3), b.int(1, 3)], **b.some(spatial_scale=0.5))


@spec("ms.Quantize", 13, 20)
def quantize(b):
    shape, kind = b.shape(1, 3, empty=0), b.pick(BYTES + ["u2", "i2"])
    b.units = 1
    if b.chance(0.5):
        b.node("QuantizeLinear", [b.x(shape, low=-5, high=5), scale(b), b.const(np.zeros((), kind))], domain=MICROSOFT)
    else:
        b.node("DequantizeLinear", [b.x(shape, kind), scale(b), b.const(np.zeros((), kind))], domain=MICROSOFT)


@spec("ms.QGemm", 13, 20)
def qgemm(b):
    left, right = matmul_shapes(b)
    if len(left) != 2 or len(right) != 2:
        raise Skip
    kind = b.pick(BYTES)
    parts = [b.x(left, kind), scale(b), zero(b, kind), b.x(right, kind, constant=1), scale(b), zero(b, kind),
             b.x(right[1:], "i4", constant=1) if b.chance(0.5) else ""]
    b.units, b.rtol = 1, 1e-3
    b.node("QGemm", parts + ([scale(b), zero(b, kind)] if b.chance(0.6) else []), domain=MICROSOFT, **b.some(alpha=0.5))


@spec("ms.MatMulIntegerToFloat", 13, 20)
def integer_to_float(b):
    left, right = matmul_shapes(b)
    if len(left) < 2 or len(right) != 2:
        raise Skip
    kinds = "u1", b.pick(BYTES)
    count = right[1:] if b.chance(0.4) else []
    parts = [b.x(left, kinds[0]), b.x(right, kinds[1], constant=1), scale(b), scale(b, count), zero(b, kinds[0]), b.const(np.zeros(count, kinds[1]))]
    b.node("MatMulIntegerToFloat", parts + ([b.x(right[1:], constant=1)] if b.chance(0.5) else []), domain=MICROSOFT)


@spec("ms.EmbedLayerNormalization", 13, 20)
def embed(b):
    n, s, h = b.int(1, 3), b.int(1, 5), b.pick([4, 8, 17])
    parts = [b.given(b.rng.integers(0, 9, (n, s)).astype(np.int32), 0), b.given(b.rng.integers(0, 2, (n, s)).astype(np.int32), 0),
             b.x([9, h], constant=1), b.x([6, h], constant=1), b.x([2, h], constant=1), b.x([h], constant=1), b.x([h], constant=1)]
    if b.chance(0.5):
        parts.append(b.given((b.rng.random((n, s)) < 0.7).astype(np.int32), 0))
    b.atol = 1e-4
    b.node("EmbedLayerNormalization", parts, 2, domain=MICROSOFT, **b.some(epsilon=1e-3))


@spec("ms.RotaryEmbedding", 13, 20)
def ms_rotary(b):
    n, heads, s, d = b.int(1, 2), b.int(1, 3), b.int(1, 5), b.pick([4, 8, 16])
    flat = b.chance(0.5)
    at = b.given(np.array([b.int(0, 3)])) if b.chance(0.5) else b.given(b.rng.integers(0, 8, (n, s)))
    b.node("RotaryEmbedding", [b.x([n, s, heads * d] if flat else [n, heads, s, d]), at, b.x([9, d // 2], constant=1), b.x([9, d // 2], constant=1)],
           domain=MICROSOFT, **b.some(interleaved=b.int(0, 1)))


@spec("ms.QLinearWhere", 13, 20)
def qlinear_where(b):
    shape, kind = b.shape(1, 3, empty=0), b.pick(BYTES)
    b.units = 1
    b.node("QLinearWhere", [b.x(b.broadcast(shape), "b1"), b.x(shape, kind), scale(b), zero(b, kind), b.x(b.broadcast(shape), kind), scale(b), zero(b, kind),
                            scale(b), zero(b, kind)], domain=MICROSOFT)


@spec("ml.SvmClassifier", 13, 22)
def svm_classifier(b):
    n, c, classes = b.int(1, 4), b.int(1, 4), b.int(2, 4)
    vectors = [b.int(1, 3) for _ in range(classes)]
    total, pairs = sum(vectors), classes * (classes - 1) // 2
    options = {"kernel_type": b.pick(["LINEAR", "RBF", "POLY", "SIGMOID"]), "kernel_params": [0.5, 0.1, 2.0], "vectors_per_class": vectors}
    if b.chance(0.5):
        options.update(prob_a=b.rng.normal(size=pairs).tolist(), prob_b=b.rng.normal(size=pairs).tolist())
    b.rtol = 1e-3
    b.node("SVMClassifier", [b.x([n, c])], 2, domain=ML, classlabels_ints=list(range(classes)), coefficients=b.rng.normal(size=total * (classes - 1)).tolist(),
           support_vectors=b.rng.normal(size=total * c).tolist(), rho=b.rng.normal(size=pairs).tolist(), **options)


@spec("Blocks", 13)
def blocks(b):
    """ConvNeXt's and EfficientNet's parts: layouts that turn around products and normalizations."""
    n, c, h, w = b.int(1, 2), b.pick(CHANNELS[3:]), b.int(3, 9), b.int(3, 9)
    x = b.x([n, c, h, w], constant=0)
    y = b.node("Conv", [x, b.x([c, 1, 3, 3], constant=1), b.x([c], constant=1)], group=c, pads=[1, 1, 1, 1])
    y = b.node("Transpose", [y], perm=[0, 2, 3, 1])
    if b.opset >= 17 and b.chance(0.7):
        y = b.node("LayerNormalization", [y, b.x([c], constant=1), b.x([c], constant=1)], epsilon=1e-2)
    y = b.node("Add", [b.node("MatMul", [y, b.x([c, 2 * c], constant=1)]), b.x([2 * c], constant=1)])
    y = b.node(b.pick(["Relu", "Sigmoid", "Erf"]), [y])
    y = b.node("MatMul", [y, b.x([2 * c, c], constant=1)])
    y = b.node("Mul", [y, b.x([c], constant=1)])
    b.node("Add", [b.node("Transpose", [y], perm=[0, 3, 1, 2]), x])
    b.rtol, b.atol = 1e-3, 1e-4
