"""Operators whose work is the same for all values: elements, reductions, normalizations, products, windows, layers."""

import itertools

import numpy as np

from .model import Cases, Const, Model, bools, const, longs, normal, uniform, whole

CASES = Cases()
op = CASES.op
HALF, DOUBLE = np.float16, np.float64

MAP = (1, 64, 56, 56)
TEXT = (1, 128, 768)


def elements():
    for kind in ("Erf", "Tanh", "Exp", "Sigmoid", "Log", "Sin", "Sqrt", "Softplus", "Gelu", "Mish", "HardSwish", "Floor", "Round", "Elu",
                 "Softsign", "Sign", "Atan", "Cosh", "Reciprocal", "Not", "IsNaN"):
        x = bools(*TEXT) if kind == "Not" else uniform(0.1, 4, *TEXT)
        op(f"{kind}", kind, x, opset=22)
    for dtype, name in ((HALF, "f16"), (DOUBLE, "f64")):
        for kind in ("Erf", "Tanh", "Exp", "Sigmoid"):
            op(f"{kind}.{name}", kind, uniform(-4, 4, *TEXT, dtype=dtype), opset=22)
    for kind in ("Add", "Mul", "Div", "Pow", "Max", "Mod"):
        attributes = {"fmod": 1} if kind == "Mod" else {}
        op(f"{kind}.same", kind, uniform(0.5, 4, *TEXT), uniform(0.5, 4, *TEXT), **attributes)
    op("Add.row", "Add", normal(*TEXT), normal(768))
    op("Add.column", "Add", normal(*TEXT), normal(1, 128, 1))
    op("Add.channels", "Add", normal(*MAP), normal(1, 64, 1, 1))
    op("Add.outer", "Add", normal(512, 1), normal(1, 512))
    op("Add.middle", "Add", normal(8, 64, 64, 8), normal(8, 1, 64, 1))
    op("Mul.f16", "Mul", normal(*TEXT, dtype=HALF), normal(*TEXT, dtype=HALF))
    op("Add.i64", "Add", whole(0, 99, 100000), whole(0, 99, 100000))
    op("Div.i64", "Div", whole(0, 9999, 100000), whole(1, 99, 100000))
    op("Div.i32", "Div", whole(0, 9999, 100000, dtype=np.int32), whole(1, 99, 100000, dtype=np.int32))
    op("Mod.i64", "Mod", whole(0, 9999, 100000), whole(1, 99, 100000))
    op("Greater.row", "Greater", normal(*TEXT), normal(768))
    op("Equal.i64", "Equal", whole(0, 9, 512, 1), whole(0, 9, 1, 512))
    op("Where.same", "Where", bools(*TEXT), normal(*TEXT), normal(*TEXT))
    op("Where.mask", "Where", bools(1, 1, 128, 128), normal(1, 12, 128, 128), const(np.float32(-1e9)))
    op("Where.rows", "Where", bools(128, 1), normal(128, 768), normal(768))
    op("Clip", "Clip", normal(*TEXT), const(np.float32(-1)), const(np.float32(1)))
    op("PRelu", "PRelu", normal(*MAP), const(normal(64, 1, 1)))
    op("BitShift", "BitShift", whole(0, 99, 100000, dtype=np.uint32), whole(0, 8, 100000, dtype=np.uint32), direction="LEFT")
    types = {"f4": 1, "f2": 10, "f8": 11, "bf16": 16, "i1": 3, "u1": 2, "i4": 6, "i8": 7, "b1": 9, "f8e4m3": 17}
    for source, target in itertools.product(("f4", "f2", "f8", "u1", "i4", "i8", "b1"), types):
        if source != target:
            value = bools(*TEXT) if source == "b1" else uniform(0, 100, *TEXT, dtype=np.dtype(source))
            op(f"Cast.{source}.{target}", "Cast", value, to=types[target])


def reductions():
    for axes in ([0], [1], [2], [3], [0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [0, 1, 2], [0, 2, 3], [1, 2, 3], [0, 1, 2, 3], [0, 1, 3]):
        op(f"ReduceSum.{axes}", "ReduceSum", normal(8, 32, 28, 28), const(np.array(axes, np.int64)))
    for kind in ("ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare", "ReduceLogSum", "ReduceL1"):
        op(f"{kind}.rows", kind, uniform(0.5, 1.5, 128, 768), longs(1))
        op(f"{kind}.columns", kind, uniform(0.5, 1.5, 128, 768), longs(0))
    op("ReduceSum.i64", "ReduceSum", whole(0, 99, 128, 768), longs(1))
    op("ReduceMean.f16", "ReduceMean", normal(128, 768, dtype=HALF), longs(1))
    op("ReduceMax.u8", "ReduceMax", whole(0, 255, 128, 768, dtype=np.uint8), longs(1))
    op("ReduceSum.f64", "ReduceSum", normal(128, 768, dtype=DOUBLE), longs(1))
    for kind in ("ArgMax", "ArgMin"):
        op(f"{kind}.rows", kind, normal(128, 1000), axis=1)
        op(f"{kind}.channels", kind, normal(1, 21, 128, 128), axis=1)
        op(f"{kind}.columns", kind, normal(1000, 128), axis=0)
    op("ArgMax.long", "ArgMax", normal(1, 32000), axis=1)
    for axis in (0, 1, 2, 3):
        op(f"Softmax.{axis}", "Softmax", normal(2, 32, 48, 50), axis=axis)
        op(f"LogSoftmax.{axis}", "LogSoftmax", normal(2, 32, 48, 50), axis=axis)
        op(f"CumSum.{axis}", "CumSum", normal(2, 32, 48, 50), const(np.int64(axis)))
    op("Softmax.attention", "Softmax", normal(1, 12, 128, 128), axis=-1)
    op("Softmax.wide", "Softmax", normal(1, 32000), axis=-1)
    op("Softmax.f16", "Softmax", normal(128, 1000, dtype=HALF), axis=-1)
    op("Hardmax", "Hardmax", normal(128, 1000), axis=-1)
    op("CumSum.long", "CumSum", normal(64, 4096), const(np.int64(1)))
    op("CumSum.first", "CumSum", normal(1000, 64), const(np.int64(0)))
    op("CumSum.i64", "CumSum", whole(0, 2, 64, 512), const(np.int64(1)))
    for name, shape, axis in (("rows", (1, 128, 768), -1), ("short", (1, 4096, 64), -1), ("map", (1, 64, 32, 32), 1)):
        size = shape[axis:] if axis < 0 else shape[axis:]
        op(f"LayerNormalization.{name}", "LayerNormalization", normal(*shape), const(normal(*size)), const(normal(*size)), axis=axis)
        op(f"RMSNormalization.{name}", "RMSNormalization", normal(*shape), const(normal(*size)), axis=axis, opset=23)
    op("LayerNormalization.f16", "LayerNormalization", normal(*TEXT, dtype=HALF), const(normal(768, dtype=HALF)))
    op("SkipLayerNormalization", "SkipLayerNormalization", normal(*TEXT), normal(*TEXT), const(normal(768)), const(normal(768)),
       domain="com.microsoft")
    for size in (16, 56):
        op(f"GroupNormalization.{size}", "GroupNormalization", normal(1, 64, size, size), const(normal(64)), const(normal(64)), num_groups=8)
        op(f"InstanceNormalization.{size}", "InstanceNormalization", normal(1, 64, size, size), const(normal(64)), const(normal(64)))
    op("BatchNormalization", "BatchNormalization", normal(*MAP), *(const(uniform(0.5, 1, 64)) for _ in range(4)))
    op("LRN", "LRN", normal(*MAP), size=5)
    op("LpNormalization.1", "LpNormalization", normal(128, 768), axis=1)
    op("LpNormalization.0", "LpNormalization", normal(128, 768), axis=0)
    op("MeanVarianceNormalization", "MeanVarianceNormalization", normal(*MAP))


def products():
    for m, k, n in ((1, 768, 768), (128, 768, 768), (197, 64, 197), (1, 4096, 1000), (64, 64, 64), (1000, 16, 16)):
        op(f"MatMul.{m}x{k}x{n}.constant", "MatMul", normal(m, k), const(normal(k, n)))
        op(f"MatMul.{m}x{k}x{n}.input", "MatMul", normal(m, k), normal(k, n))
    op("MatMul.batch", "MatMul", normal(12, 128, 64), normal(12, 64, 128))
    op("MatMul.spread", "MatMul", normal(4, 12, 64, 64), normal(64, 64))
    op("MatMul.vector", "MatMul", normal(512, 512), normal(512))
    op("MatMul.f64", "MatMul", normal(128, 256, dtype=DOUBLE), normal(256, 128, dtype=DOUBLE))
    op("MatMul.f16", "MatMul", normal(128, 768, dtype=HALF), const(normal(768, 768, dtype=HALF)))
    op("MatMul.i32", "MatMul", whole(0, 9, 128, 128, dtype=np.int32), whole(0, 9, 128, 128, dtype=np.int32))
    op("Gemm.tt", "Gemm", normal(256, 128), normal(128, 256), normal(128), transA=1, transB=1)
    op("Gemm.transB", "Gemm", normal(128, 256), const(normal(512, 256)), const(normal(512)), transB=1)
    for equation, shapes in (("bij,bjk->bik", ((8, 64, 64), (8, 64, 64))), ("bhid,bhjd->bhij", ((1, 8, 128, 64), (1, 8, 128, 64))),
                             ("bhij,bjhd->bihd", ((1, 8, 128, 128), (1, 128, 8, 64))), ("bnqd,bkd->bnqk", ((1, 8, 64, 64), (1, 64, 64))),
                             ("i,j->ij", ((512,), (512,))), ("ij->ji", ((512, 512),)), ("ii->i", ((512, 512),)), ("ij,ij->i", ((512, 512), (512, 512))),
                             ("abc,cd,de->abe", ((4, 64, 64), (64, 64), (64, 64))), ("bchw,bkc->bkhw", ((1, 64, 32, 32), (1, 32, 64))),
                             ("nkctv,kvw->nctw", ((1, 3, 32, 32, 25), (3, 25, 25)))):
        op(f"Einsum.{equation}", "Einsum", *(normal(*s) for s in shapes), equation=equation)
    op("MatMulInteger", "MatMulInteger", whole(0, 255, 128, 768, dtype=np.uint8), const(whole(-127, 127, 768, 768, dtype=np.int8)))
    op("MatMulInteger.input", "MatMulInteger", whole(0, 255, 128, 256, dtype=np.uint8), whole(-127, 127, 256, 128, dtype=np.int8))
    op("DynamicQuantizeLinear", "DynamicQuantizeLinear", normal(*TEXT), outputs=3)
    scale, zero = const(np.float32(0.02)), const(np.uint8(128))
    op("QuantizeLinear", "QuantizeLinear", normal(*TEXT), scale, zero)
    op("QuantizeLinear.axis", "QuantizeLinear", normal(*MAP), const(uniform(0.01, 0.1, 64)), const(whole(-9, 9, 64, dtype=np.int8)), axis=1)
    op("DequantizeLinear", "DequantizeLinear", whole(0, 255, *TEXT, dtype=np.uint8), scale, zero)
    op("DequantizeLinear.axis", "DequantizeLinear", whole(-99, 99, *MAP, dtype=np.int8), const(uniform(0.01, 0.1, 64)), axis=1)
    op("QLinearMatMul", "QLinearMatMul", whole(0, 255, 128, 768, dtype=np.uint8), scale, zero, const(whole(-127, 127, 768, 768, dtype=np.int8)),
       const(np.float32(0.01)), const(np.int8(0)), const(np.float32(2)), const(np.uint8(128)))
    op("QLinearConv", "QLinearConv", whole(0, 255, 1, 64, 28, 28, dtype=np.uint8), scale, zero, const(whole(-99, 99, 64, 64, 3, 3, dtype=np.int8)),
       const(np.float32(0.01)), const(np.int8(0)), const(np.float32(2)), const(np.uint8(128)), pads=[1, 1, 1, 1])
    op("QLinearConv.depthwise", "QLinearConv", whole(0, 255, 1, 64, 56, 56, dtype=np.uint8), scale, zero, const(whole(-99, 99, 64, 1, 3, 3, dtype=np.int8)),
       const(np.float32(0.01)), const(np.int8(0)), const(np.float32(2)), const(np.uint8(128)), pads=[1, 1, 1, 1], group=64)
    op("ConvInteger", "ConvInteger", whole(0, 255, 1, 32, 28, 28, dtype=np.uint8), const(whole(-99, 99, 32, 32, 3, 3, dtype=np.int8)), pads=[1, 1, 1, 1])
    op("QLinearAdd", "QLinearAdd", whole(0, 255, *MAP, dtype=np.uint8), scale, zero, whole(0, 255, *MAP, dtype=np.uint8), scale, zero,
       const(np.float32(0.03)), zero, domain="com.microsoft")
    op("QLinearGlobalAveragePool", "QLinearGlobalAveragePool", whole(0, 255, 1, 256, 7, 7, dtype=np.uint8), scale, zero, scale, zero, domain="com.microsoft", channels_last=0)
    op("QLinearSigmoid", "QLinearSigmoid", whole(0, 255, *MAP, dtype=np.uint8), scale, zero, const(np.float32(1 / 256)), zero, domain="com.microsoft")
    for m in (1, 64):
        op(f"MatMulNBits.{m}", "MatMulNBits", normal(m, 512), const(whole(0, 255, 512, 16, 16, dtype=np.uint8)), const(uniform(0.01, 0.1, 512 * 16)),
           domain="com.microsoft", K=512, N=512, bits=4, block_size=32)
    op("Det", "Det", normal(64, 8, 8))
    op("Trilu", "Trilu", normal(12, 128, 128))


def attention():
    heads = (1, 12, 128, 64)
    op("Attention.plain", "Attention", normal(*heads), normal(*heads), normal(*heads), opset=23)
    op("Attention.causal", "Attention", normal(*heads), normal(*heads), normal(*heads), opset=23, is_causal=1)
    op("Attention.mask", "Attention", normal(*heads), normal(*heads), normal(*heads), bools(128, 128, share=0.8), opset=23)
    op("Attention.bias", "Attention", normal(*heads), normal(*heads), normal(*heads), normal(1, 12, 128, 128), opset=23)
    op("Attention.cache", "Attention", normal(1, 12, 1, 64), normal(1, 12, 1, 64), normal(1, 12, 1, 64), None, normal(1, 12, 255, 64),
       normal(1, 12, 255, 64), opset=23, outputs=3)
    op("Attention.grouped", "Attention", normal(1, 16, 64, 64), normal(1, 4, 64, 64), normal(1, 4, 64, 64), opset=23)
    op("Attention.flat", "Attention", normal(1, 128, 768), normal(1, 128, 768), normal(1, 128, 768), opset=23, q_num_heads=12, kv_num_heads=12)
    op("RotaryEmbedding", "RotaryEmbedding", normal(1, 12, 128, 64), normal(128, 32), normal(128, 32), whole(0, 128, 1, 128), opset=23)
    op("MultiHeadAttention", "MultiHeadAttention", normal(1, 128, 768), normal(1, 128, 768), normal(1, 128, 768), domain="com.microsoft", num_heads=12)
    op("GroupQueryAttention", "GroupQueryAttention", normal(1, 1, 512), normal(1, 1, 128), normal(1, 1, 128), normal(1, 2, 127, 64), normal(1, 2, 127, 64),
       const(np.array([127], np.int32)), const(np.array(128, np.int32)), domain="com.microsoft", outputs=3, num_heads=8, kv_num_heads=2)


def layers():
    for name, kind, gates in (("LSTM", "LSTM", 4), ("GRU", "GRU", 3), ("RNN", "RNN", 1)):
        for steps, batch, size, hidden, direction in ((50, 1, 64, 64, 1), (100, 1, 128, 256, 1), (40, 8, 64, 128, 2), (400, 1, 80, 128, 1), (1, 1, 64, 128, 1)):
            op(f"{name}.{steps}x{batch}x{size}x{hidden}{'.both' * (direction - 1)}", kind, normal(steps, batch, size),
               const(uniform(-0.1, 0.1, direction, gates * hidden, size)), const(uniform(-0.1, 0.1, direction, gates * hidden, hidden)),
               const(uniform(-0.1, 0.1, direction, 2 * gates * hidden)), hidden_size=hidden, direction="bidirectional" if direction == 2 else "forward")
    for name, x, w, attributes in (
            ("1x1", MAP, (64, 64, 1, 1), {}), ("3x3", MAP, (64, 64, 3, 3), {"pads": [1] * 4}), ("7x7s2", (1, 3, 224, 224), (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
            ("depthwise", MAP, (64, 1, 3, 3), {"pads": [1] * 4, "group": 64}), ("depthwise7", MAP, (64, 1, 7, 7), {"pads": [3] * 4, "group": 64}),
            ("dilated", (1, 32, 32, 32), (32, 32, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}), ("groups", MAP, (64, 16, 3, 3), {"pads": [1] * 4, "group": 4}),
            ("patches", (1, 3, 224, 224), (192, 3, 16, 16), {"strides": [16, 16]}), ("1d", (1, 80, 500), (128, 80, 3), {"pads": [1, 1]}),
            ("1d.depthwise", (1, 128, 500), (128, 1, 31), {"pads": [15, 15], "group": 128}), ("1d.long", (1, 1, 16000), (128, 1, 10), {"strides": [5]}),
            ("3d", (1, 8, 16, 28, 28), (16, 8, 3, 3, 3), {"pads": [1] * 6}), ("odd", (1, 13, 31, 33), (17, 13, 3, 5), {})):
        op(f"Conv.{name}", "Conv", normal(*x), const(normal(*w)), const(normal(w[0])), **attributes)
    op("Conv.f16", "Conv", normal(1, 32, 28, 28, dtype=HALF), const(normal(32, 32, 3, 3, dtype=HALF)), pads=[1] * 4)
    op("Conv.input", "Conv", normal(1, 32, 28, 28), normal(32, 32, 3, 3), pads=[1] * 4)
    for name, x, w, attributes in (
            ("2x2s2", (1, 64, 28, 28), (64, 32, 2, 2), {"strides": [2, 2]}), ("4x4s2", (1, 64, 28, 28), (64, 32, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
            ("3x3s2", (1, 32, 28, 28), (32, 32, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}), ("3x3", (1, 32, 28, 28), (32, 32, 3, 3), {}),
            ("groups", (1, 64, 28, 28), (64, 1, 4, 4), {"strides": [2, 2], "pads": [1] * 4, "group": 64}),
            ("1d", (1, 128, 100), (128, 64, 16), {"strides": [8], "pads": [4, 4]}), ("3d", (1, 8, 8, 14, 14), (8, 8, 2, 2, 2), {"strides": [2, 2, 2]})):
        op(f"ConvTranspose.{name}", "ConvTranspose", normal(*x), const(normal(*w)), **attributes)
    for name, kind, attributes in (
            ("MaxPool.2x2", "MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}), ("MaxPool.3x3s2", "MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
            ("MaxPool.5x5", "MaxPool", {"kernel_shape": [5, 5], "pads": [2] * 4}), ("MaxPool.dilated", "MaxPool", {"kernel_shape": [3, 3], "dilations": [2, 2]}),
            ("AveragePool.3x3", "AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4}), ("AveragePool.dilated", "AveragePool", {"kernel_shape": [3, 3], "dilations": [2, 2]}),
            ("LpPool", "LpPool", {"kernel_shape": [3, 3]}), ("GlobalAveragePool", "GlobalAveragePool", {}), ("GlobalMaxPool", "GlobalMaxPool", {})):
        op(name, kind, normal(*MAP), **attributes)
    op("MaxPool.indices", "MaxPool", normal(*MAP), outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    op("MaxPool.13", "MaxPool", normal(1, 128, 20, 20), kernel_shape=[13, 13], pads=[6] * 4)
    op("MaxPool.u8", "MaxPool", whole(0, 255, *MAP, dtype=np.uint8), kernel_shape=[3, 3], strides=[2, 2])
    op("MaxPool.1d", "MaxPool", normal(1, 64, 4000), kernel_shape=[4], strides=[4])
    op("AveragePool.1d", "AveragePool", normal(1, 64, 4000), kernel_shape=[25], pads=[12, 12])
    op("MaxUnpool", "MaxUnpool", normal(1, 16, 14, 14), lambda r: (np.arange(16 * 196) * 4).reshape(1, 16, 14, 14), kernel_shape=[2, 2], strides=[2, 2])


def hidden_chain(kind):
    """Two products around an activation: what a block of a transformer has between its normalizations."""

    def make():
        model = Model(21)
        x = model.node("MatMul", normal(128, 384)(model.random), Const(normal(384, 1536)(model.random)))
        x = model.node(kind, model.node("Add", x, Const(normal(1536)(model.random))))
        model.node("MatMul", x, Const(normal(1536, 384)(model.random)))
        return model

    return make


def int4_product(m):
    def make():
        model = Model(21)
        weights = model.random.integers(0, 255, (512, 256)).astype(np.uint8)
        low, high = Const(weights & 15), Const(weights >> 4)
        del high
        scales = Const(uniform(0.01, 0.1, 16, 256)(model.random))
        b = model.node("DequantizeLinear", low, scales, axis=0, block_size=32)
        model.node("MatMul", normal(m, 512)(model.random), b)
        return model

    return make


elements()
reductions()
products()
attention()
layers()
CASES.add("feed_forward.Gelu", hidden_chain("Gelu"))
CASES.add("DequantizeLinear.blocks.1", int4_product(1))
CASES.add("DequantizeLinear.blocks.64", int4_product(64))
